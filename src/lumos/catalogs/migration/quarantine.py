"""Finds datasets that cannot be migrated; they stop the migration or are skipped."""

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

from lumos.catalogs import FailedEntry, ReadsEntries
from lumos.errors import LumosError
from lumos.model.catalog import CatalogEntry
from lumos.snapshots.catalogs import PlatformCatalog, SnapshotCatalog
from lumos.snapshots.format.checks import implausible_values
from lumos.snapshots.format.document import DATASETS, EntryKind
from lumos.snapshots.reports import RefusedReport

OnError: TypeAlias = Literal["stop", "skip"]


class InvalidDataset(LumosError):
    """A dataset is not valid in a snapshot; nothing was written."""

    def __init__(self, urn: str, reason: str) -> None:
        self.urn = urn
        super().__init__(
            f"The dataset {urn} cannot be migrated: {reason.rstrip('.')}. Nothing was written. "
            "Skip such datasets with: --on-error skip"
        )


class ValidatedCatalog(SnapshotCatalog):
    """A catalog without invalid datasets: they raise an error or are `skipped`."""

    def __init__(self, catalog: SnapshotCatalog, on_error: OnError) -> None:
        self._catalog = catalog
        self._on_error = on_error
        self.name, self.kind, self.file = catalog.name, catalog.kind, catalog.file
        self.skipped: list[RefusedReport] = []

    def datasets(self) -> Iterator[CatalogEntry]:
        for each in self._read_each():
            reason = str(each.problem) if isinstance(each, FailedEntry) else _find_error(each)
            if reason is None:
                assert isinstance(each, CatalogEntry)
                yield each
            elif self._on_error == "stop":
                raise InvalidDataset(each.urn, reason)
            else:
                self.skipped.append(
                    RefusedReport(kind=DATASETS.singular, key=each.urn, problem=reason)
                )

    def items(self, kind: EntryKind) -> Iterator[Any]:
        return self._catalog.items(kind)

    def count(self) -> int | None:
        return self._catalog.count()

    def lineage_left_out(self) -> int:
        return self._catalog.lineage_left_out()

    def close(self) -> None:
        self._catalog.close()

    def _read_each(self) -> Iterator[CatalogEntry | FailedEntry]:
        catalog = self._catalog
        if isinstance(catalog, PlatformCatalog) and isinstance(catalog.platform, ReadsEntries):
            return catalog.platform.export_each()
        return iter(catalog.datasets())


def _find_error(entry: CatalogEntry) -> str | None:
    """Why a snapshot with this dataset would be invalid, or None."""
    errors = (each for each in implausible_values(entry.urn, entry) if each.is_error)
    first = next(errors, None)
    return None if first is None else f"{first.path}: {first.text}"
