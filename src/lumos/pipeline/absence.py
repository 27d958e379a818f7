"""Looks again for datasets that a listing left out: listings may lag behind what is there."""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from lumos.model.discovery import Problem
from lumos.pipeline.claims import Claims
from lumos.pipeline.grouping import Settlement
from lumos.pipeline.parts import LOST, Part, PartIndex, read_identities
from lumos.storage import Access, Selection, Stretch, storage_of

OVERLOOKED: Final = "not_listed_yet"
# Where more are gone at once, it is not for a listing that lags.
_MOST: Final = 50


class Absence:
    """What the last scan knew of files, beside what this one found."""

    def __init__(
        self, selection: Selection, before: Iterable[Part], now: Iterable[Part], access: Access
    ) -> None:
        self._selection = selection
        self._before = PartIndex(before)
        self._now = PartIndex(now)
        self._access = access

    def overlooked(
        self, settled: Settlement, datasets: Collection[str], claims: Collection[str]
    ) -> Iterator[Problem]:
        """Files of datasets without any listed file that are there all the same, one of each."""
        if len(datasets) > _MOST:
            return
        owned = Claims(claims)
        storage = storage_of(self._selection.root, self._selection.access)
        for dataset in sorted(datasets):
            path = self._file_of(settled, dataset)
            if path is None or path not in self._selection or owned.of(path) is not None:
                continue
            if self._is_listed(path):
                continue
            try:
                with storage.open(path) as file:
                    size = file.size
            except OSError:
                continue
            reason = f"It has {size:,} bytes, but no listing shows it; its dataset stays for now."
            yield Problem(path=path, code=OVERLOOKED, reason=reason)

    def _file_of(self, settled: Settlement, dataset: str) -> str | None:
        """A file of a dataset, as the last scan knew it."""
        for place in settled.places:
            if place.dataset != dataset or place.missed:
                continue
            for part in self._before.of([Stretch(place.base)]):
                try:
                    _, summary = read_identities(part.path, access=self._access)
                except LOST:
                    continue
                for each in summary.places:
                    if (each.base, each.pattern, each.full) == (
                        place.base,
                        place.pattern,
                        place.full,
                    ):
                        return each.first_path
        return None

    def _is_listed(self, path: str) -> bool:
        """Whether this scan met the file, whatever it made of it."""
        folder = path.rpartition("/")[0]
        for part in self._now.of([Stretch(folder)], first=path, last=path):
            identities, _ = read_identities(part.path, access=self._access)
            if path in identities:
                return True
        return False
