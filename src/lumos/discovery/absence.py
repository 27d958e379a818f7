"""Looks again for datasets that a listing left out: listings may lag behind what is there."""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from lumos.discovery.grouping.state import GroupingState
from lumos.discovery.owned_paths import Claims
from lumos.discovery.parts import Part, PartIndex, read_identities
from lumos.model.discovery import Problem
from lumos.storage import FileSelection, KeyRange, StorageAccess, storage_of

OVERLOOKED: Final = "not_listed_yet"
# Where more are gone at once, it is not for a listing that lags.
_MOST: Final = 50


class Absence:
    """What the last scan knew of files, beside what this one found."""

    def __init__(
        self, selection: FileSelection, now: Iterable[Part], access: StorageAccess
    ) -> None:
        self._selection = selection
        self._now = PartIndex(now)
        self._access = access

    def overlooked(
        self, before: GroupingState, datasets: Collection[str], claims: Collection[str]
    ) -> Iterator[Problem]:
        """Files of datasets without any listed file that are there all the same, one of each."""
        if len(datasets) > _MOST:
            return
        owned = Claims(claims)
        storage = storage_of(self._selection.root, self._selection.access)
        paths = {place.dataset: place.first_path for place in reversed(before.places)}
        for dataset in sorted(datasets):
            path = paths.get(dataset)
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

    def _is_listed(self, path: str) -> bool:
        """Whether this scan met the file, whatever it made of it."""
        folder = path.rpartition("/")[0]
        for part in self._now.of([KeyRange(folder)], first=path, last=path):
            identities, _ = read_identities(part.path, access=self._access)
            if path in identities:
                return True
        return False
