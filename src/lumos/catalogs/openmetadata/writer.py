"""Writes datasets to an OpenMetadata server: new ones in bulk, others as patches."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any, Final, NamedTuple

import msgspec

from lumos.catalogs.chunks import chunked, in_halves
from lumos.catalogs.interface import AspectStorage, FailedEntry, WrittenEntry
from lumos.catalogs.openmetadata import lineage
from lumos.catalogs.openmetadata.entries import (
    EDGES,
    LINEAGE,
    PARENT,
    definitions_in,
    edge_details_in,
    is_lumos_property,
)
from lumos.catalogs.openmetadata.index import IndexedEntity
from lumos.catalogs.openmetadata.lineage import NativeEdge, WrittenEdge, WrittenEdges
from lumos.catalogs.openmetadata.names import (
    DATASET_TYPES,
    EntityLocation,
    is_dataset_urn,
    join_fqn,
)
from lumos.catalogs.openmetadata.reader import OpenMetadataReader, ReadDataset
from lumos.catalogs.openmetadata.references import EdgeStart, References
from lumos.catalogs.openmetadata.server import (
    ATTEMPTS,
    Outdated,
)
from lumos.catalogs.openmetadata.states import (
    EntityState,
    body_of,
    differences,
    guard,
    has_labels,
    raw_columns,
    repeat_definition,
)
from lumos.catalogs.three_way_merge import merge
from lumos.errors import CatalogError, CatalogUnavailable, LumosError
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import ASPECTS, UpstreamEdge
from lumos.model.urn import InvalidUrn, Urn

BATCH_SIZE: Final = 200
_MAX_BYTES: Final = 8_000_000
_NOT_FOUND: Final = 404
_BAD_REQUEST: Final = 400
_INTERNAL: Final = 500


class EntryWrite(msgspec.Struct):
    """The progress of writing one entry: its `existing` entity, and the `state` to write."""

    entry: CatalogEntry
    location: EntityLocation
    existing: ReadDataset | None
    state: EntityState = {}
    storage: dict[str, AspectStorage] = {}
    changed: bool = False
    is_restored: bool = False
    must_be_hidden: bool = False
    was_hidden: bool = False
    problem: LumosError | None = None

    @property
    def raw(self) -> Mapping[str, Any]:
        """The existing entity."""
        return {} if self.existing is None else self.existing.raw


class Linker:
    """Writes the upstream edges of datasets whose upstream entities exist."""

    def __init__(self, reader: OpenMetadataReader, references: References) -> None:
        self._reader = reader
        self._references = references
        self._server = reader.server
        self._index = reader.index
        self._properties = references.properties
        # By missing upstream dataset: the downstream datasets whose edges wait for it.
        self._waiting: dict[str, set[str]] = {}
        self._lock = Lock()

    def waiting_for(self, urns: Collection[str]) -> list[str]:
        """Return and forget the datasets whose edges waited for these upstream datasets."""
        with self._lock:
            waiting = {urn for upstream in urns for urn in self._waiting.pop(upstream, ())}
        return sorted(waiting - set(urns))

    def find_upstreams(self, writes: Iterable[EntryWrite]) -> None:
        """Find the entities of upstream datasets with few requests."""
        locations: set[EntityLocation] = set()
        for write in writes:
            if write.problem is None and write.entry.lineage is not None:
                upstream = (self._index.locate(edge.urn) for edge in write.entry.lineage.upstream)
                locations.update((write.location, *filter(None, upstream)))
        self._index.find_many(locations)

    def link(self, write: EntryWrite) -> None:
        """Write the upstream edges of a dataset whose upstream entities exist."""
        current = (
            write.existing.edges
            if write.existing is not None
            else lineage.no_edges(write.location.parts)
        )
        native_edges = {**current.edges, **current.others}
        details = edge_details_in(write.entry)
        # Edges from entities that are not datasets have details only.
        wanted: dict[str, list[UpstreamEdge]] = {
            name: [] for name in details if not is_dataset_urn(name)
        }
        for edge in write.entry.lineage.upstream if write.entry.lineage is not None else ():
            if is_dataset_urn(edge.urn):
                wanted.setdefault(edge.urn, []).append(edge)
        starts = {
            name: start for name in wanted if (start := self._find_start(name, write)) is not None
        }
        extension = write.raw.get("extension") or {}
        before = lineage.read_written_edges(extension.get(EDGES))

        def differs(name: str, start: EdgeStart) -> bool:
            native, parts = native_edges.get(name), write.location.parts
            if native is None:
                return True
            if name in details and not lineage.has_details(details[name], native, parts):
                return True
            if not wanted[name]:
                return False
            if LINEAGE in extension and name not in before:
                # Lumos was interrupted before it saved what it has written.
                return True
            # Columns that the server dropped are not sent again.
            dropped = lineage.dropped_pairs(before.get(name), native)
            pairs = lineage.pairs_of(wanted[name], start.parts, parts).keys()
            return pairs - dropped != native.columns.keys()

        changed = {name for name, start in starts.items() if differs(name, start)}
        # Hidden entities cannot have edges; their lineage is in a custom property.
        is_unchanged = not changed and native_edges.keys() <= wanted.keys()
        if is_unchanged or write.raw.get("deleted"):
            return
        downstream = self._index.find(write.location)
        if downstream is None:
            return
        latest = (
            self._reader.edges(write.location, downstream.id)
            if write.existing is not None
            else current
        )
        written: WrittenEdges = {}
        stored_edges: dict[str, NativeEdge] = {}
        are_columns_known = True
        for name, start in starts.items():
            reference, parts = start
            if wanted[name]:
                sent = self._put_edge(
                    downstream,
                    start,
                    wanted[name],
                    current.edges.get(name),
                    latest.edges.get(name),
                    details.get(name),
                )
                # The server silently drops columns that it does not know: read them back if needed.
                are_columns_known = are_columns_known and sent is not None and not sent
                stored_edges[name] = NativeEdge(**reference, parts=parts, columns={}, details={})
                continue
            if name in changed:
                encoded = self._references.encode_details(details[name], parts, downstream.parts)
                self._references.link(reference, downstream.reference, encoded)
            written[name] = WrittenEdge(reference["id"])
        for name, native in native_edges.items():
            if name not in wanted:
                self._server.delete_edge(native.reference, downstream.reference)
        write.changed = True
        if not are_columns_known:
            stored_edges = self._reader.edges(downstream.location, downstream.id).edges
        self._save_written_edges(write, downstream, wanted, stored_edges, written)

    def _find_start(self, name: str, write: EntryWrite) -> EdgeStart | None:
        """The upstream entity of an edge, or None if it does not exist yet."""
        if not is_dataset_urn(name):
            return self._references.edge_start(name)
        if (location := self._index.locate(name)) is None:
            return None
        if (upstream := self._index.find(location)) is None:
            with self._lock:
                self._waiting.setdefault(name, set()).add(write.entry.urn)
            return None
        return EdgeStart(upstream.reference, upstream.parts)

    def _put_edge(
        self,
        downstream: IndexedEntity,
        upstream: EdgeStart,
        edges: Sequence[UpstreamEdge],
        current: NativeEdge | None,
        latest: NativeEdge | None,
        wanted_details: Mapping[str, Any] | None,
    ) -> dict[lineage.Pair, str | None] | None:
        """Write an edge; return the columns that were sent, or None if it may have failed."""
        columns = lineage.pairs_of(edges, upstream.parts, downstream.parts)
        if latest is not None:
            before = current.columns if current is not None else {}
            columns |= {
                pair: function
                for pair, function in latest.columns.items()
                if pair not in before and pair not in columns
            }
        details = lineage.details_of(edges, columns, latest.details if latest is not None else {})
        if wanted_details is not None:
            sent = self._references.encode_details(wanted_details, upstream.parts, downstream.parts)
            details = lineage.with_details(details, sent)
        try:
            self._server.put_edge(upstream.reference, downstream.reference, details)
        except CatalogError as problem:
            # Without its search engine, the server fails after it has written the edge.
            if problem.status not in (_INTERNAL, _NOT_FOUND):
                raise
            return None
        return columns

    def _save_written_edges(
        self,
        write: EntryWrite,
        downstream: IndexedEntity,
        wanted: Mapping[str, list[UpstreamEdge]],
        current_edges: Mapping[str, NativeEdge],
        written: WrittenEdges,
    ) -> None:
        """Save in a property which of the sent edges and columns the server stored."""
        for urn, edges in wanted.items():
            if (native := current_edges.get(urn)) is None:
                continue
            sent = lineage.pairs_of(edges, native.parts, downstream.parts)
            stored = sent.keys() & native.columns.keys()
            unknown = sent.keys() - stored
            at = lineage.written_at(native.details)
            written[urn] = WrittenEdge(native.id, tuple(sorted(stored)), tuple(sorted(unknown)), at)
        text = msgspec.json.encode(written).decode() if written else None
        current = (write.raw.get("extension") or {}).get(EDGES)
        if text == current:
            return
        self._properties.declare(downstream.location.type, [EDGES])
        # The extension exists: the property with the lineage is in it.
        operation: dict[str, Any] = {"op": "remove", "path": f"/extension/{EDGES}"}
        if text is not None:
            operation |= {"op": "add", "value": text}
        operations = [operation, *repeat_definition(write.state)]
        self._server.patch(f"{downstream.location.route}/{downstream.id}", operations)


class _NewEntity(NamedTuple):
    write: EntryWrite
    body: dict[str, Any]
    size: int


class Writer:
    """Writes entries, and merges edits that users made in the meantime."""

    def __init__(self, reader: OpenMetadataReader, references: References) -> None:
        self._reader = reader
        self._server = reader.server
        self._index = reader.index
        self._codec = reader.codec
        self._labels = references.labels
        self._properties = references.properties
        self._linker = Linker(reader, references)

    def write(
        self,
        entries: Sequence[CatalogEntry],
        *,
        current: Mapping[str, CatalogEntry | None],
        existing: Mapping[str, ReadDataset],
        newer: Collection[str] = (),
    ) -> Iterator[WrittenEntry | FailedEntry]:
        """Write entries; `current` are the entries that the caller read, `existing` their entities.

        The entities of the URNs in `newer` were read later than their entries.
        """
        writes = []
        for entry in entries:
            try:
                location = self._index.names.locate(Urn.parse(entry.urn))
                writes.append(EntryWrite(entry, location, existing.get(entry.urn)))
            except InvalidUrn as problem:
                yield FailedEntry(entry.urn, problem)
        for write in writes:
            try:
                self._ensure_labels(write.entry)
            except CatalogUnavailable:
                raise
            except LumosError as problem:
                write.problem = problem
            if (
                write.problem is None
                and write.entry.urn in newer
                and write.entry.urn in current
                and write.existing is not None
            ):
                write.entry = self._rebase(current[write.entry.urn], write.existing, write.entry)
        try:
            self._create(
                [write for write in writes if write.existing is None and write.problem is None]
            )
            self._for_each(writes, lambda write: self._change(write, current.get(write.entry.urn)))
            self._linker.find_upstreams(writes)
            self._for_each(writes, self._linker.link)
            self._link_waiting(writes)
            self._for_each(writes, self._hide)
        finally:
            self._hide_again(writes)
        for write in writes:
            if write.problem is not None:
                yield FailedEntry(write.entry.urn, write.problem)
            else:
                yield WrittenEntry(urn=write.entry.urn, changed=write.changed, held=write.storage)

    def _for_each(self, writes: Iterable[EntryWrite], step: Any) -> None:
        """Run a step for all entries without a problem."""

        def run_step(write: EntryWrite) -> None:
            try:
                step(write)
            except CatalogUnavailable:
                raise
            except LumosError as problem:
                write.problem = problem

        for _ in self._server.each([write for write in writes if write.problem is None], run_step):
            pass

    def _ensure_labels(self, entry: CatalogEntry) -> None:
        """Create the tags, terms, owners and domains that an entry refers to."""
        labelled: list[Any] = [] if entry.governance is None else [entry.governance]
        for field in entry.schema.fields if entry.schema is not None else ():
            labelled += (field, *field.nested)
        domain = entry.documentation.domain if entry.documentation is not None else None
        self._labels.ensure(
            tags=sorted({tag for each in labelled for tag in each.tags}),
            terms=sorted({term for each in labelled for term in each.terms}),
            owners=entry.ownership.owners if entry.ownership is not None else (),
            domains=[domain] if domain else (),
        )

    def storage_of(self, entry: CatalogEntry) -> dict[str, AspectStorage]:
        """How a new entity would store the fields of an entry; nothing is written."""
        location = self._index.names.locate(Urn.parse(entry.urn))
        declared = self._properties.declared(location.type) | definitions_in(entry).keys()
        return self._codec.render(entry, location, existing=None, declared=declared).storage

    def _create(self, writes: Iterable[EntryWrite]) -> None:
        """Create missing entities in bulk."""
        levels: dict[tuple[int, str], list[EntryWrite]] = {}
        for write in writes:
            levels.setdefault((len(write.location.parts), write.location.type), []).append(write)
        # Parents before their children.
        for (_, entity_type), level in sorted(levels.items()):
            created = [new for write in level if (new := self._plan_new(write)) is not None]
            for chunk in chunked(
                created, max_parts=BATCH_SIZE, max_bytes=_MAX_BYTES, size=lambda new: new.size
            ):
                self._send(entity_type, chunk)

    def _plan_new(self, write: EntryWrite) -> _NewEntity | None:
        # A bucket is created with its first object.
        if self._index.is_parent(write.location):
            write.existing = self._reader.read(write.entry.urn)
        if write.existing is not None:
            return None
        try:
            self._render(write)
            body = body_of(write.location.type, write.state) | self._index.prepare(write.location)
        except CatalogUnavailable:
            raise
        except LumosError as problem:
            write.problem = problem
            return None
        return _NewEntity(write, body, len(msgspec.json.encode(body)))

    def _render(self, write: EntryWrite) -> None:
        """Encode an entry, and declare the custom properties that it needs."""
        entity_type = write.location.type
        self._properties.define(entity_type, definitions_in(write.entry))
        rendered = self._codec.render(
            write.entry,
            write.location,
            existing=None if write.existing is None else write.existing.state,
            declared=self._properties.declared(entity_type),
        )
        write.storage, write.state = rendered.storage, rendered.state
        if write.existing is None or rendered.state != write.existing.state:
            extension = rendered.state.get("extension", {})
            self._properties.declare(entity_type, filter(is_lumos_property, extension))

    def _send(self, entity_type: str, chunk: Sequence[_NewEntity]) -> None:
        route = DATASET_TYPES[entity_type].route
        by_name: dict[Any, EntryWrite] = {_request_key(new.body): new.write for new in chunk}
        by_name |= {new.write.location.fqn: new.write for new in chunk}

        def send(part: Sequence[_NewEntity]) -> None:
            for request, message, status in self._server.bulk(route, [new.body for new in part]):
                write = by_name.get(_request_key(request) if isinstance(request, dict) else request)
                name = "an entity of a bulk request" if write is None else write.entry.urn
                problem = CatalogError(
                    f"{self._server.platform} rejected {name}: {message}",
                    platform=self._server.platform,
                    status=status,
                )
                if write is None:
                    raise problem
                write.problem = problem
            # The server drops labels of columns when it creates containers in bulk, but not when
            # it changes them.
            labelled = [
                new.body
                for new in part
                if new.write.problem is None and has_labels(raw_columns(entity_type, new.body))
            ]
            if entity_type == "container" and labelled:
                self._server.bulk(route, labelled)

        for new, problem in in_halves(chunk, send):
            write = new.write
            write.problem = write.problem or problem
            write.changed = True
            self._index.drop(write.location)

    def _change(self, write: EntryWrite, base: CatalogEntry | None) -> None:
        """Patch an existing entity, and retry if it was changed in the meantime."""
        if write.existing is None:
            return
        existing, entry = write.existing, write.entry
        is_deleted = write.must_be_hidden = entry.deleted
        for attempt in range(ATTEMPTS):
            try:
                self._patch(write, existing, entry)
                # After a lost response, the retried patch no longer matches.
                write.changed = write.changed or attempt > 0
                return
            except Outdated:
                if attempt == ATTEMPTS - 1:
                    raise
                latest = self._reader.read(entry.urn)
                if latest is None:
                    write.existing = None
                    self._create([write])
                    return
                entry, existing = self._rebase(base, latest, write.entry), latest
                if write.is_restored:
                    # Lumos itself has restored it.
                    entry = msgspec.structs.replace(entry, deleted=is_deleted)
                self._ensure_labels(entry)
        raise AssertionError("the last attempt raises")

    def _rebase(
        self, base: CatalogEntry | None, existing: ReadDataset, entry: CatalogEntry
    ) -> CatalogEntry:
        if not existing.is_dataset:
            return entry
        latest = self._reader.entry(existing)
        return entry if latest == base else rebase(base, latest, entry)

    def _patch(self, write: EntryWrite, existing: ReadDataset, entry: CatalogEntry) -> None:
        write.entry, write.existing = entry, existing
        self._render(write)
        operations = differences(existing.location.type, existing.raw, existing.state, write.state)
        is_hidden = bool(existing.raw.get("deleted"))
        if not operations and (not is_hidden or entry.deleted):
            return
        route = existing.location.route
        current: Mapping[str, Any] = existing.raw
        if is_hidden:
            self._server.put(f"{route}/restore", {"id": existing.id})
            write.is_restored = True
            write.existing = existing._replace(raw={**existing.raw, "deleted": False})
            self._index.add(existing.location, existing.id)
            operations = operations or repeat_definition(write.state)
            current = self._server.get(f"{route}/{existing.id}") or {}
        if operations:
            self._server.patch(f"{route}/{existing.id}", [*guard(current), *operations])
        write.changed = True

    def _link_waiting(self, writes: Iterable[EntryWrite]) -> None:
        """Write the edges of earlier datasets that waited for datasets that exist now.

        Problems are ignored, since a custom property of the datasets has all of their lineage.
        """
        written = {write.entry.urn for write in writes if write.problem is None}
        waiting_writes = []
        for urn in self._linker.waiting_for(written):
            if (existing := self._reader.read(urn)) is not None:
                entry = self._reader.entry(existing)
                waiting_writes.append(
                    EntryWrite(entry, existing.location, existing, existing.state)
                )
        self._for_each(waiting_writes, self._linker.link)

    def _hide_again(self, writes: Iterable[EntryWrite]) -> None:
        """Hide entities that were restored for a change that failed."""
        for write in writes:
            if (
                write.existing
                and write.is_restored
                and write.must_be_hidden
                and not write.was_hidden
            ):
                # The earlier problem is reported.
                with suppress(CatalogError):
                    self._server.delete(f"{write.location.route}/{write.existing.id}")

    def _hide(self, write: EntryWrite) -> None:
        entity_type = DATASET_TYPES[write.location.type]
        if not write.entry.deleted or write.raw.get("deleted"):
            return
        entity = self._index.find(write.location)
        if entity is None:
            return
        try:
            self._server.delete(f"{entity_type.route}/{entity.id}")
        except CatalogError as problem:
            if problem.status != _BAD_REQUEST:
                raise
            # Hiding a container would also hide the entities in it.
            self._index.mark_hidden(entity_type.type, entity.id)
        else:
            self._index.add(write.location, None)
        write.was_hidden = True
        is_change = write.existing is None or not write.existing.is_deleted
        write.changed = write.changed or is_change

    def erase(self, urns: Sequence[str]) -> None:
        for _ in self._server.each(urns, self._erase):
            pass

    def _erase(self, urn: str) -> None:
        """Delete a dataset; one that contains others becomes a placeholder."""
        existing = self._reader.read(urn)
        if existing is None or not existing.is_dataset:
            return
        route = existing.location.route
        try:
            self._server.delete(f"{route}/{existing.id}", hardDelete=True)
        except CatalogError as problem:
            if problem.status != _BAD_REQUEST:
                raise
            for native in existing.edges.edges.values():
                reference = {"id": existing.id, "type": existing.location.type}
                self._server.delete_edge(native.reference, reference)
            self._properties.declare(existing.location.type, [PARENT])
            placeholder_state = {"extension": {PARENT: "Others are in it."}}
            operations = differences(
                existing.location.type, existing.raw, existing.state, placeholder_state
            )
            self._server.patch(f"{route}/{existing.id}", operations)
        else:
            self._index.mark_erased(existing.location)


def rebase(base: CatalogEntry | None, latest: CatalogEntry, entry: CatalogEntry) -> CatalogEntry:
    """Merge an entry with the changes since `base` was read."""
    if base is None:
        return merge(None, latest, entry).entry
    merged = merge(base, latest, entry).entry
    # Removed aspects stay removed, unless users have changed them.
    removed = {
        name: None
        for name in ASPECTS
        if getattr(entry, name) is None and getattr(base, name) == getattr(latest, name)
    }
    return msgspec.structs.replace(merged, **removed)


def _request_key(body: Mapping[str, Any]) -> tuple[str, str]:
    parent = body.get("parent") or {}
    return (
        f"{body.get('databaseSchema') or body.get('service')}/{parent.get('id', '')}",
        join_fqn(str(body.get("name"))),
    )
