"""Searches and shows datasets of a catalog directly, without importing them into the store."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final

from lumos.catalogs.interface import (
    Connects,
    Filters,
    Platform,
    ReadsEntries,
    ReadsHistory,
    Searches,
)
from lumos.catalogs.reports import CatalogChangeReport, CatalogHistoryReport
from lumos.config.secret import mask_arguments
from lumos.datasets.reports import SearchReport, SearchResult, ShowReport
from lumos.errors import MisuseError, did_you_mean
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Dataset
from lumos.model.type_path import field_paths
from lumos.model.urn import SCHEME, InvalidUrn, Urn

_MAX_SUGGESTED: Final = 3
_MAX_LISTED: Final = 5


class CatalogReader:
    """Reads one catalog, and closes its connections after each call."""

    def __init__(self, platform: Platform) -> None:
        self._platform: Any = platform

    def search(
        self,
        text: str,
        *,
        platform: str | None = None,
        owner: str | None = None,
        tag: str | None = None,
        format: str | None = None,
        limit: int = 20,
    ) -> SearchReport:
        """The datasets of the catalog that contain every word of a text, best first."""
        filters = Filters(platform=platform, owner=owner, tag=tag, format=format)
        with self._connect(Searches, "searched"):
            # One more than the limit, to know whether there are more.
            datasets = list(self._platform.search(text, filters, limit=limit + 1))
        words = text.casefold().split()
        return SearchReport(
            query=mask_arguments([text], text),
            total=len(datasets),
            all_counted=len(datasets) <= limit,
            results=tuple(
                SearchResult.of(dataset, _matching_fields(dataset, words))
                for dataset in datasets[:limit]
            ),
        )

    def show(self, name: str) -> ShowReport:
        """The entry of a dataset in the catalog, by URN, name or path."""
        with self._connect(ReadsEntries, "read"):
            entry = self._find(name)
        return ShowReport.of(entry.dataset, state="missing" if entry.deleted else "live")

    def history(self, name: str, *, limit: int | None = None) -> CatalogHistoryReport:
        """The changes of a dataset that the catalog recorded, newest first."""
        with self._connect(ReadsHistory, "asked for changes: it keeps no record that Lumos reads"):
            urn = self._find(name).urn
            changes = islice(self._platform.history(urn), limit)
            return CatalogHistoryReport(
                catalog=self._platform.name,
                urn=urn,
                changes=tuple(CatalogChangeReport(**each._asdict()) for each in changes),
            )

    def _find(self, name: str) -> CatalogEntry:
        if name.startswith(SCHEME):
            try:
                urn = str(Urn.parse(name))
            except InvalidUrn as problem:
                raise MisuseError(f"{problem}.") from None
            urns = [urn]
        else:
            last = name.rstrip("/").rpartition("/")[2]
            candidates = self._platform.search(last, limit=None)
            urns = [each.urn for each in candidates if _has_name(each, name)]
        entries: dict[str, CatalogEntry] = self._platform.get_many(urns)
        if len(entries) == 1:
            return next(iter(entries.values()))
        if entries:
            listed = ", ".join(sorted(entries)[:_MAX_LISTED])
            raise MisuseError(f"'{name}' is ambiguous in {self._platform.name}: {listed}.")
        raise self._unknown(name)

    def _unknown(self, name: str) -> MisuseError:
        known = (entry.name for entry in self._platform.export() if not entry.deleted)
        question = did_you_mean(name.rpartition("/")[2], known, limit=_MAX_SUGGESTED)
        return MisuseError(
            f"{self._platform.name} has no dataset '{name}'.{question} "
            f"Search with: lumos search TEXT --platform {self._platform.name}"
        )

    @contextmanager
    def _connect(self, ability: type[Any], verb: str) -> Iterator[None]:
        if not isinstance(self._platform, ability):
            raise MisuseError(f"The catalog '{self._platform.kind}' cannot be {verb}.")
        try:
            yield
        finally:
            if isinstance(self._platform, Connects):
                self._platform.close()


def _has_name(dataset: Dataset, name: str) -> bool:
    """Whether a dataset has this name, or a path that ends with it."""
    urn = dataset.urn
    return name in (dataset.name, Urn.parse(urn).name) or f"/{urn}".endswith(f"/{name}")


def _matching_fields(dataset: Dataset, words: list[str]) -> tuple[str, ...]:
    if dataset.schema is None:
        return ()
    return tuple(
        path
        for path in field_paths(dataset.schema)
        if any(word in path.casefold() for word in words)
    )
