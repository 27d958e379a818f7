"""A metadata file of DataHub as a catalog."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from lumos.catalogs.adapter import FileCatalog
from lumos.catalogs.datahub import lineage
from lumos.catalogs.datahub.aspects import CATALOG, Entity, aspects_after, read_writes
from lumos.catalogs.datahub.codec import RenderedItem
from lumos.catalogs.datahub.dataset import (
    INSTANCE,
    DataHubCatalog,
    DatasetCodec,
    read_instance,
)
from lumos.catalogs.datahub.items import DataHubItems
from lumos.catalogs.datahub.metadata_file import MetadataFile, check_writable
from lumos.catalogs.datahub.names import Naming, check_dataset_urn
from lumos.catalogs.interface import (
    AspectStorage,
    CatalogItem,
    FailedEntry,
    WrittenEntry,
)
from lumos.errors import LumosError
from lumos.model.catalog import CatalogEntry
from lumos.model.urn import Urn


class _OpenFile(NamedTuple):
    file: MetadataFile
    naming: Naming
    datasets: DatasetCodec
    items: DataHubItems


class DatahubFile(DataHubCatalog, FileCatalog):
    """A metadata file of DataHub; the first write creates it."""

    kind: ClassVar[str] = "datahub-file"
    example: ClassVar[str] = "metadata.json"

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        # By the DataHub URN of an expected upstream dataset: the entries in the batch that refer
        # to it, by URN.
        self._waiting: dict[str, dict[str, CatalogEntry]] = {}

    def check_writable(self) -> None:
        check_writable(self.path)

    def get(self, urn: str) -> CatalogEntry | None:
        opened = self._opened
        datahub_urn = opened.naming.existing_datasets().get(urn)
        if datahub_urn is None:
            return None
        return opened.datasets.read(urn, read_writes(opened.file, datahub_urn))

    def export_each(self, *, after: str | None = None) -> Iterator[CatalogEntry | FailedEntry]:
        opened = self._opened
        for urn, datahub_urn in sorted(opened.naming.existing_datasets().items()):
            if after is not None and urn <= after:
                continue
            try:
                entry = opened.datasets.read(urn, read_writes(opened.file, datahub_urn))
            except LumosError as problem:
                yield FailedEntry(urn, problem)
            else:
                yield entry

    def put(self, entry: CatalogEntry) -> WrittenEntry:
        opened = self._opened
        check_dataset_urn(entry.urn)
        datahub_urn = opened.datasets.entity(entry.urn).urn
        opened.naming.add(datahub_urn, Urn.parse(entry.urn).instance or None)
        self._reserve_upstream(entry)
        rendered = opened.datasets.render(entry)
        before = opened.file.writes(datahub_urn)
        is_changed = opened.file.replace(Entity("dataset", datahub_urn), rendered.writes)
        self._save()
        if is_changed:
            old, new = (
                sorted(map(lineage.without_explicit_urns, side), key=lambda each: each.aspect)
                for side in (before, rendered.writes)
            )
            is_changed = old != new
        return WrittenEntry(urn=entry.urn, changed=is_changed, held=rendered.storage)

    def as_stored(self, entry: CatalogEntry) -> CatalogEntry:
        if CATALOG not in entry.raw:
            return entry
        return self._opened.datasets.read(entry.urn, self._render_only(entry).writes)

    def storage_of(self, entry: CatalogEntry) -> dict[str, AspectStorage]:
        return self._render_only(entry).storage

    def _render_only(self, entry: CatalogEntry) -> RenderedItem:
        """Encode an entry that is not written, and reserve the names that it uses."""
        opened = self._opened
        check_dataset_urn(entry.urn)
        for urn in (entry.urn, *lineage.upstream_urns(entry)):
            opened.naming.reserve(urn)
        return opened.datasets.render(entry)

    def erase(self, urn: str) -> None:
        opened = self._opened
        if (datahub_urn := opened.naming.existing_datasets().get(urn)) is not None:
            opened.file.replace(Entity("dataset", datahub_urn), [])
            opened.naming.remove(datahub_urn)
            self._save()

    def items(self) -> Iterator[CatalogItem]:
        return self._opened.items.all()

    def get_item(self, type: type[CatalogItem], key: str) -> CatalogItem | None:
        return self._opened.items.get(type, key)

    def put_item(self, item: CatalogItem) -> None:
        self._opened.items.put(item)
        self._save()

    def item_as_stored(self, item: CatalogItem) -> CatalogItem:
        return self._opened.items.as_stored(item)

    def erase_item(self, item: CatalogItem) -> None:
        self._opened.items.erase(item)
        self._save()

    def _write_batch(self) -> None:
        try:
            self._rewrite_edges()
            self._opened.file.save()
        finally:
            self._waiting.clear()

    def _reserve_upstream(self, entry: CatalogEntry) -> None:
        """Reserve the names of upstream datasets.

        DataHub stores the instance of a dataset with the dataset itself. Upstream datasets with an
        instance are expected later in the same batch.
        """
        naming = self._opened.naming
        for urn in lineage.upstream_urns(entry):
            naming.reserve(urn)
            is_expected = self._in_batch and "@" in urn
            if is_expected and (datahub_urn := naming.expect(urn)) is not None:
                self._waiting.setdefault(datahub_urn, {})[entry.urn] = entry

    def _rewrite_edges(self) -> None:
        """Write edges again whose expected upstream datasets were not in the batch."""
        opened = self._opened
        entries = {
            urn: entry
            for datahub_urn in opened.naming.take_missing()
            for urn, entry in self._waiting.get(datahub_urn, {}).items()
        }
        for urn, entry in entries.items():
            if (datahub_urn := opened.naming.existing_datasets().get(urn)) is not None:
                rendered = opened.datasets.render(entry)
                opened.file.replace(Entity("dataset", datahub_urn), rendered.writes)

    @cached_property
    def _opened(self) -> _OpenFile:
        file = MetadataFile.read(self.path)
        naming = Naming()
        for entity in file.entities():
            if entity.type == "dataset":
                naming.add(
                    entity.urn,
                    read_instance(aspects_after(read_writes(file, entity.urn, INSTANCE))),
                )
                if file.mentions(entity.urn, lineage.UPSTREAM, lineage.URN_MARKERS):
                    aspects = aspects_after(read_writes(file, entity.urn, lineage.UPSTREAM))
                    for datahub_urn, urn in lineage.explicit_urn_pairs(aspects):
                        naming.reserve(urn, datahub_urn)
        return _OpenFile(file, naming, DatasetCodec(naming), DataHubItems(file, naming))

    def _save(self) -> None:
        if not self._in_batch:
            self._opened.file.save()
