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
    OpenMetadataEntries,
    definitions_in,
    edge_details_in,
    is_lumos_property,
)
from lumos.catalogs.openmetadata.index import Index, IndexedEntity
from lumos.catalogs.openmetadata.labels import OpenMetadataLabels
from lumos.catalogs.openmetadata.lineage import Edges, NativeEdge, WrittenEdge, WrittenEdges
from lumos.catalogs.openmetadata.names import (
    DATASET_TYPES,
    EntityLocation,
    is_dataset_urn,
    join_fqn,
)
from lumos.catalogs.openmetadata.properties import CustomProperties
from lumos.catalogs.openmetadata.reader import OpenMetadataReader, ReadDataset
from lumos.catalogs.openmetadata.references import References
from lumos.catalogs.openmetadata.server import Outdated, RequestRefused, Server
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
from lumos.model.dataset import ASPECTS, Owner, UpstreamEdge
from lumos.model.schema import Field, NestedField
from lumos.model.urn import InvalidUrn, Urn

BATCH_SIZE: Final = 200
_MAX_BYTES: Final = 8_000_000
_ATTEMPTS: Final = 4
_NOT_FOUND: Final = 404
_BAD_REQUEST: Final = 400
_INTERNAL: Final = 500


class EntryWrite(msgspec.Struct):
    """The progress of writing one entry: its `existing` entity, and the `state` to write."""

    entry: CatalogEntry
    location: EntityLocation
    existing: ReadDataset | None
    id: str = ""
    raw: dict[str, Any] = {}
    state: EntityState = {}
    storage: dict[str, AspectStorage] = {}
    changed: bool = False
    is_restored: bool = False
    must_be_hidden: bool = False
    was_hidden: bool = False
    problem: LumosError | None = None


class Linker:
    """Writes the upstream edges of datasets."""

    def __init__(
        self,
        server: Server,
        index: Index,
        properties: CustomProperties,
        reader: OpenMetadataReader,
        references: References,
    ) -> None:
        self._server = server
        self._index = index
        self._properties = properties
        self._reader = reader
        self._references = references
        # Downstream datasets by their missing upstream datasets.
        self._waiting: dict[str, set[str]] = {}
        self._lock = Lock()

    def waiting_for(self, urns: Collection[str]) -> list[str]:
        """Return and clear the datasets with edges that waited for these upstream datasets."""
        with self._lock:
            found = {urn for upstream in urns for urn in self._waiting.pop(upstream, ())}
        return sorted(found - set(urns))

    def find_upstreams(self, jobs: Iterable[EntryWrite]) -> None:
        """Find the entities of upstream datasets with few requests."""
        locations: set[EntityLocation] = set()
        for job in jobs:
            if job.problem is None and job.entry.lineage is not None:
                locations.add(job.location)
                for edge in job.entry.lineage.upstream:
                    with suppress(InvalidUrn):
                        locations.add(self._index.names.locate(Urn.parse(edge.urn)))
        self._index.find_many(locations)

    def link(self, job: EntryWrite) -> None:
        """Write the upstream edges of a dataset whose upstream entities exist."""
        lineage_edges = job.entry.lineage.upstream if job.entry.lineage is not None else ()
        current = (
            job.existing.edges if job.existing is not None else lineage.no_edges(job.location.parts)
        )
        wanted_details = edge_details_in(job.entry)
        if not lineage_edges and not current.edges and not wanted_details and not current.others:
            return
        wanted: dict[str, list[UpstreamEdge]] = {}
        for edge in lineage_edges:
            wanted.setdefault(edge.urn, []).append(edge)
        upstreams = {urn: self._find_upstream(urn, job) for urn in wanted}
        entity_starts = {
            name: self._references.edge_start(name)
            for name in wanted_details
            if not is_dataset_urn(name)
        }
        if not self._differs(job, wanted, current, upstreams) and not self._has_other_details(
            job, wanted_details, current, upstreams, entity_starts
        ):
            return
        if job.raw.get("deleted"):
            # Hidden entities cannot have edges; the lineage is packed.
            return
        found = self._index.find(job.location)
        if found is None:
            return
        latest = self._reader.edges(job.location, found.id) if job.existing is not None else current
        written_edges: dict[str, NativeEdge] = {}
        is_known = True
        for urn, edges in wanted.items():
            if (upstream := upstreams[urn]) is None:
                continue
            sent = self._put_edge(
                found,
                upstream,
                edges,
                current.edges.get(urn),
                latest.edges.get(urn),
                wanted_details.get(urn),
            )
            # The server silently drops columns that it does not know, so read back what it has.
            is_known = is_known and sent is not None and not sent
            location = upstream.location
            written_edges[urn] = NativeEdge(upstream.id, location.type, location.parts, {}, {})
        for urn, native in current.edges.items():
            if urn not in wanted:
                self._server.delete_edge(native.reference, found.reference)
        entity_edges = self._write_entity_edges(found, wanted_details, current, entity_starts)
        job.changed = True
        current_edges = (
            written_edges if is_known else self._reader.edges(found.location, found.id).edges
        )
        self._save_written_edges(job, found, wanted, current_edges, entity_edges)

    def _write_entity_edges(
        self,
        downstream: IndexedEntity,
        wanted_details: Mapping[str, Any],
        current: Edges,
        entity_starts: Mapping[str, Any],
    ) -> WrittenEdges:
        """Write the edges from entities that are not datasets."""
        written: WrittenEdges = {}
        for name, start in entity_starts.items():
            if start is None:
                continue
            reference, parts = start
            native = current.others.get(name)
            wanted = wanted_details[name]
            if native is None or not lineage.has_details(wanted, native, downstream.parts):
                details = self._references.encode_details(wanted, parts, downstream.parts)
                self._references.link(reference, downstream.reference, details)
            written[name] = WrittenEdge(reference["id"])
        for name, native in current.others.items():
            if name not in wanted_details:
                self._server.delete_edge(native.reference, downstream.reference)
        return written

    @staticmethod
    def _has_other_details(
        job: EntryWrite,
        wanted_details: Mapping[str, Any],
        current: Edges,
        upstreams: Mapping[str, IndexedEntity | None],
        entity_starts: Mapping[str, Any],
    ) -> bool:
        """Whether edges lack wanted details, or come from other entities."""
        if current.others.keys() - wanted_details.keys():
            return True
        for name, mine in wanted_details.items():
            native = current.edges.get(name) or current.others.get(name)
            exists = (entity_starts if name in entity_starts else upstreams).get(name) is not None
            if exists and (
                native is None or not lineage.has_details(mine, native, job.location.parts)
            ):
                return True
        return False

    def _find_upstream(self, urn: str, job: EntryWrite) -> IndexedEntity | None:
        """The upstream entity of an edge, or None if it does not exist yet."""
        try:
            location = self._index.names.locate(Urn.parse(urn))
        except InvalidUrn:
            return None
        if (found := self._index.find(location)) is None:
            with self._lock:
                self._waiting.setdefault(urn, set()).add(job.entry.urn)
        return found

    def _differs(
        self,
        job: EntryWrite,
        wanted: Mapping[str, list[UpstreamEdge]],
        current: Edges,
        upstreams: Mapping[str, IndexedEntity | None],
    ) -> bool:
        if current.edges.keys() - wanted.keys():
            return True
        extension = job.raw.get("extension") or {}
        written_edges = lineage.read_written_edges(extension.get(EDGES))
        for urn, edges in wanted.items():
            if (upstream := upstreams[urn]) is None:
                continue
            native, written = current.edges.get(urn), written_edges.get(urn)
            # Lumos was interrupted before it saved what it has written.
            if native is None or (LINEAGE in extension and written is None):
                return True
            pairs = lineage.pairs_of(edges, upstream.parts, job.location.parts).keys()
            # Columns that the server dropped are not sent again.
            unknown = written.unknown if written is not None and written.id == native.id else ()
            if pairs - set(unknown) != native.columns.keys():
                return True
        return False

    def _put_edge(
        self,
        downstream: IndexedEntity,
        upstream: IndexedEntity,
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
        job: EntryWrite,
        found: IndexedEntity,
        wanted: Mapping[str, list[UpstreamEdge]],
        current_edges: Mapping[str, NativeEdge],
        others: WrittenEdges,
    ) -> None:
        """Save in a property which of the sent edges and columns the server stored."""
        written: WrittenEdges = dict(others)
        for urn, edges in wanted.items():
            if (native := current_edges.get(urn)) is None:
                continue
            sent = lineage.pairs_of(edges, native.parts, found.parts)
            stored = sent.keys() & native.columns.keys()
            unknown = sent.keys() - stored
            at = lineage.written_at(native.details)
            written[urn] = WrittenEdge(native.id, tuple(sorted(stored)), tuple(sorted(unknown)), at)
        text = msgspec.json.encode(written).decode() if written else None
        current = (job.raw.get("extension") or {}).get(EDGES)
        if text == current:
            return
        self._properties.declare(found.location.type, [EDGES])
        # The extension exists: it already has the packed lineage.
        operation: dict[str, Any] = {"op": "remove", "path": f"/extension/{EDGES}"}
        if text is not None:
            operation |= {"op": "add", "value": text}
        operations = [operation, *repeat_definition(job.state)]
        self._server.patch(f"{found.location.route}/{found.id}", operations)


class _NewEntity(NamedTuple):
    job: EntryWrite
    body: dict[str, Any]
    size: int


class Writer:
    """Writes entries, and merges edits that users made in the meantime."""

    def __init__(
        self,
        server: Server,
        index: Index,
        entries: OpenMetadataEntries,
        labels: OpenMetadataLabels,
        properties: CustomProperties,
        reader: OpenMetadataReader,
        references: References,
    ) -> None:
        self._server = server
        self._index = index
        self._entries = entries
        self._labels = labels
        self._properties = properties
        self._reader = reader
        self._linker = Linker(server, index, properties, reader, references)

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
        jobs = []
        for entry in entries:
            try:
                jobs.append(self._job(entry, existing.get(entry.urn)))
            except InvalidUrn as problem:
                yield FailedEntry(entry.urn, problem)
        self._ensure_labels(jobs)
        for job in jobs:
            if (
                job.problem is None
                and job.entry.urn in newer
                and job.entry.urn in current
                and job.existing is not None
            ):
                job.entry = self._rebase(current[job.entry.urn], job.existing, job.entry)
        try:
            self._create([job for job in jobs if job.existing is None and job.problem is None])
            self._for_each(jobs, lambda job: self._change(job, current.get(job.entry.urn)))
            self._linker.find_upstreams(jobs)
            self._for_each(jobs, self._linker.link)
            self._link_waiting(jobs)
            self._for_each(jobs, self._hide)
        finally:
            self._hide_again(jobs)
        for job in jobs:
            if job.problem is not None:
                yield FailedEntry(job.entry.urn, job.problem)
            else:
                yield WrittenEntry(urn=job.entry.urn, changed=job.changed, held=job.storage)

    def _for_each(self, jobs: Iterable[EntryWrite], step: Any) -> None:
        """Run a step for all entries without a problem."""

        def run_step(job: EntryWrite) -> None:
            try:
                step(job)
            except CatalogUnavailable:
                raise
            except LumosError as problem:
                job.problem = problem

        for _ in self._server.each([job for job in jobs if job.problem is None], run_step):
            pass

    def _ensure_labels(self, jobs: Sequence[EntryWrite]) -> None:
        """Create missing labels; a failure only affects the entries that need the label."""
        try:
            self._ensure_labels_of(job.entry for job in jobs)
        except CatalogUnavailable:
            raise
        except LumosError:
            self._for_each(jobs, lambda job: self._ensure_labels_of([job.entry]))

    def _ensure_labels_of(self, entries: Iterable[CatalogEntry]) -> None:
        tags: set[str] = set()
        terms: set[str] = set()
        owners: set[Owner] = set()
        domains: set[str] = set()
        for entry in entries:
            if entry.governance is not None:
                tags.update(entry.governance.tags)
                terms.update(entry.governance.terms)
            if entry.ownership is not None:
                owners.update(entry.ownership.owners)
            if entry.documentation is not None and entry.documentation.domain:
                domains.add(entry.documentation.domain)
            for field in entry.schema.fields if entry.schema is not None else ():
                parts: tuple[Field | NestedField, ...] = (field, *field.nested)
                for part in parts:
                    tags.update(part.tags)
                    terms.update(part.terms)
        self._labels.ensure(
            tags=sorted(tags),
            terms=sorted(terms),
            owners=sorted(owners, key=lambda owner: (owner.kind, owner.name, owner.type)),
            domains=sorted(domains),
        )

    def _job(self, entry: CatalogEntry, existing: ReadDataset | None) -> EntryWrite:
        location = self._index.names.locate(Urn.parse(entry.urn))
        job = EntryWrite(entry, location, existing)
        if existing is not None:
            job.id, job.raw = existing.id, existing.raw
        return job

    def storage_of(self, entry: CatalogEntry) -> dict[str, AspectStorage]:
        """How a new entity would store the fields of an entry; nothing is written."""
        location = self._index.names.locate(Urn.parse(entry.urn))
        declared = self._properties.declared(location.type) | definitions_in(entry).keys()
        return self._entries.render(entry, location, existing=None, declared=declared).storage

    def _create(self, jobs: Iterable[EntryWrite]) -> None:
        """Create missing entities in bulk."""
        levels: dict[tuple[int, str], list[EntryWrite]] = {}
        for job in jobs:
            levels.setdefault((len(job.location.parts), job.location.type), []).append(job)
        # Parents before their children.
        for (_, entity_type), level in sorted(levels.items()):
            created = [new for job in level if (new := self._plan_new(job)) is not None]
            for chunk in chunked(
                created, max_parts=BATCH_SIZE, max_bytes=_MAX_BYTES, size=lambda new: new.size
            ):
                self._send(entity_type, chunk)

    def _plan_new(self, job: EntryWrite) -> _NewEntity | None:
        # A bucket is created with its first object.
        existing = self._reader.read(job.entry.urn) if self._index.is_parent(job.location) else None
        if existing is not None:
            job.existing, job.id, job.raw = existing, existing.id, existing.raw
            return None
        try:
            return self._render_new(job)
        except CatalogUnavailable:
            raise
        except LumosError as problem:
            job.problem = problem
            return None

    def _render_new(self, job: EntryWrite) -> _NewEntity:
        rendered = self._entries.render(
            job.entry,
            job.location,
            existing=None,
            declared=self._declared_properties(job.location.type, job.entry),
        )
        job.storage, job.state = rendered.storage, rendered.state
        self._declare_own(job.location.type, rendered.state)
        body = body_of(job.location.type, rendered.state) | self._index.prepare(job.location)
        return _NewEntity(job, body, len(msgspec.json.encode(body)))

    def _send(self, entity_type: str, chunk: Sequence[_NewEntity]) -> None:
        route = DATASET_TYPES[entity_type].route
        by_name: dict[Any, EntryWrite] = {_request_key(new.body): new.job for new in chunk}
        by_name |= {new.job.location.fqn: new.job for new in chunk}

        def send(part: Sequence[_NewEntity]) -> None:
            for refusal in self._server.bulk(route, [new.body for new in part]):
                self._record_refusal(refusal, by_name)
            # The server drops labels of columns when it creates containers in bulk, but not when
            # it changes them.
            labelled = [
                new.body
                for new in part
                if new.job.problem is None and has_labels(raw_columns(entity_type, new.body))
            ]
            if entity_type == "container" and labelled:
                self._server.bulk(route, labelled)

        for new, problem in in_halves(chunk, send):
            job = new.job
            job.problem = job.problem or problem
            job.changed = True
            self._index.drop(job.location)

    def _record_refusal(self, refusal: RequestRefused, jobs: Mapping[Any, EntryWrite]) -> None:
        """Record the problem of an entity in a bulk request; raise it if the entity is unknown."""
        request = refusal.request
        job = jobs.get(_request_key(request) if isinstance(request, dict) else request)
        platform = self._server.platform
        what = "an entity of a bulk request" if job is None else job.entry.urn
        problem = CatalogError(
            f"{platform} rejected {what}: {refusal.message}",
            platform=platform,
            status=refusal.status,
        )
        if job is None:
            raise problem
        job.problem = problem

    def _change(self, job: EntryWrite, base: CatalogEntry | None) -> None:
        """Patch an existing entity, and retry if it was changed in the meantime."""
        if job.existing is None:
            return
        existing, entry = job.existing, job.entry
        is_deleted = job.must_be_hidden = entry.deleted
        for attempt in range(_ATTEMPTS):
            try:
                self._patch(job, existing, entry)
                # After a lost response, the retried patch no longer matches.
                job.changed = job.changed or attempt > 0
                return
            except Outdated:
                if attempt == _ATTEMPTS - 1:
                    raise
                latest = self._reader.read(entry.urn)
                if latest is None:
                    self._create([job])
                    return
                entry, existing = self._rebase(base, latest, job.entry), latest
                if job.is_restored:
                    # Lumos itself has restored it.
                    entry = msgspec.structs.replace(entry, deleted=is_deleted)
                self._ensure_labels_of([entry])
        raise AssertionError("the last attempt raises")

    def _rebase(
        self, base: CatalogEntry | None, existing: ReadDataset, entry: CatalogEntry
    ) -> CatalogEntry:
        if not existing.is_dataset:
            return entry
        latest = self._reader.entry(existing)
        return entry if latest == base else rebase(base, latest, entry)

    def _patch(self, job: EntryWrite, existing: ReadDataset, entry: CatalogEntry) -> None:
        entity_type = existing.location.type
        rendered = self._entries.render(
            entry,
            existing.location,
            existing=existing.state,
            declared=self._declared_properties(entity_type, entry),
        )
        job.storage, job.entry, job.existing, job.raw = (
            rendered.storage,
            entry,
            existing,
            existing.raw,
        )
        job.state = rendered.state
        operations = differences(entity_type, existing.raw, existing.state, rendered.state)
        is_hidden = bool(existing.raw.get("deleted"))
        if not operations and (not is_hidden or entry.deleted):
            return
        self._declare_own(entity_type, rendered.state)
        route = DATASET_TYPES[entity_type].route
        current_edges: Mapping[str, Any] = existing.raw
        if is_hidden:
            self._server.put(f"{route}/restore", {"id": existing.id})
            job.is_restored = True
            job.raw = {**existing.raw, "deleted": False}
            self._index.add(existing.location, existing.id)
            operations = operations or repeat_definition(rendered.state)
            current_edges = self._server.get(f"{route}/{existing.id}") or {}
        if operations:
            self._server.patch(f"{route}/{existing.id}", [*guard(current_edges), *operations])
        job.changed = True

    def _declared_properties(self, entity_type: str, entry: CatalogEntry) -> frozenset[str]:
        self._properties.define(entity_type, definitions_in(entry))
        return self._properties.declared(entity_type)

    def _declare_own(self, entity_type: str, state: Mapping[str, Any]) -> None:
        ours = [key for key in state.get("extension", {}) if is_lumos_property(key)]
        self._properties.declare(entity_type, ours)

    def _link_waiting(self, jobs: Iterable[EntryWrite]) -> None:
        """Write the edges of earlier datasets that waited for datasets that exist now.

        Problems are ignored, since the packed lineage has these edges.
        """
        written = {job.entry.urn for job in jobs if job.problem is None}
        waiting = []
        for urn in self._linker.waiting_for(written):
            if (existing := self._reader.read(urn)) is not None:
                entry = self._reader.entry(existing)
                waiting.append(
                    EntryWrite(
                        entry,
                        existing.location,
                        existing,
                        existing.id,
                        existing.raw,
                        existing.state,
                    )
                )
        self._for_each(waiting, self._linker.link)

    def _hide_again(self, jobs: Iterable[EntryWrite]) -> None:
        """Hide entities that were restored for a change that failed."""
        for job in jobs:
            if job.is_restored and job.must_be_hidden and not job.was_hidden:
                # The earlier problem is reported.
                with suppress(CatalogError):
                    self._server.delete(f"{job.location.route}/{job.id}")

    def _hide(self, job: EntryWrite) -> None:
        """Hide a deleted dataset."""
        entity_type = DATASET_TYPES[job.location.type]
        if not job.entry.deleted or job.raw.get("deleted"):
            return
        found = self._index.find(job.location)
        if found is None:
            return
        try:
            self._server.delete(f"{entity_type.route}/{found.id}")
        except CatalogError as problem:
            if problem.status != _BAD_REQUEST:
                raise
            # Hiding a container would also hide the entities in it.
            self._index.mark_hidden(entity_type.type, found.id)
        else:
            self._index.add(job.location, None)
        job.was_hidden = True
        is_change = job.existing is None or not job.existing.is_deleted
        job.changed = job.changed or is_change

    def erase(self, urns: Sequence[str]) -> None:
        """Delete datasets permanently."""
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
            self._clear(existing)
        else:
            self._index.mark_erased(existing.location)

    def _clear(self, existing: ReadDataset) -> None:
        entity_type = existing.location.type
        for native in existing.edges.edges.values():
            self._server.delete_edge(native.reference, {"id": existing.id, "type": entity_type})
        self._properties.declare(entity_type, [PARENT])
        bare = {"extension": {PARENT: "Others are in it."}}
        operations = differences(entity_type, existing.raw, existing.state, bare)
        self._server.patch(f"{DATASET_TYPES[entity_type].route}/{existing.id}", operations)


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
