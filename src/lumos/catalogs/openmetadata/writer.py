"""Datasets into an OpenMetadata server: new ones many at a time, others by their differences."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any, Final, NamedTuple

import msgspec

from lumos.catalogs.chunks import chunked, in_halves
from lumos.catalogs.interface import How, Refused, WrittenEntry
from lumos.catalogs.openmetadata import lineage
from lumos.catalogs.openmetadata.entries import (
    EDGES,
    LINEAGE,
    PARENT,
    OpenMetadataEntries,
    declared_in,
    is_ours,
    said_of_edges,
)
from lumos.catalogs.openmetadata.index import Index, IndexedEntity
from lumos.catalogs.openmetadata.labels import OpenMetadataLabels
from lumos.catalogs.openmetadata.lineage import Edges, Mark, Marks, NativeEdge
from lumos.catalogs.openmetadata.names import HOMES, EntityLocation, joined
from lumos.catalogs.openmetadata.properties import CustomProperties
from lumos.catalogs.openmetadata.reader import Held, OpenMetadataReader
from lumos.catalogs.openmetadata.references import Referring
from lumos.catalogs.openmetadata.server import Outdated, RequestRefused, Server
from lumos.catalogs.openmetadata.states import (
    State,
    body_of,
    differences,
    guard,
    has_labels,
    raw_columns,
    said_again,
)
from lumos.catalogs.three_way_merge import merge
from lumos.errors import CatalogError, CatalogUnavailable, LumosError
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import ASPECTS, Owner, UpstreamEdge
from lumos.model.schema import Field, NestedField
from lumos.model.urn import InvalidUrn, Urn

MOST: Final = 200
_MOST_BYTES: Final = 8_000_000
_ATTEMPTS: Final = 4
_NOT_FOUND: Final = 404
_BAD_REQUEST: Final = 400
_INTERNAL: Final = 500
_DATASET: Final = "lumos://"


class LinkJob(msgspec.Struct):
    """What becomes of one entry."""

    entry: CatalogEntry
    place: EntityLocation
    held: Held | None
    """What was there before, if anything was."""
    id: str = ""
    raw: dict[str, Any] = {}
    state: State = {}
    """The state that it is to be in."""
    held_as: dict[str, How] = {}
    changed: bool = False
    is_restored: bool = False
    shall_be_hidden: bool = False
    is_hidden_again: bool = False
    problem: LumosError | None = None


class Linker:
    """Draws the edges that lead to datasets."""

    def __init__(
        self,
        server: Server,
        index: Index,
        properties: CustomProperties,
        reader: OpenMetadataReader,
        referring: Referring,
    ) -> None:
        self._server = server
        self._index = index
        self._properties = properties
        self._reader = reader
        self._referring = referring
        # Datasets with edges from others that are not there yet, by those others.
        self._waiting: dict[str, set[str]] = {}
        self._lock = Lock()

    def waiting_for(self, urns: Collection[str]) -> list[str]:
        """Those that waited for some datasets, which are there now."""
        with self._lock:
            found = {urn for end in urns for urn in self._waiting.pop(end, ())}
        return sorted(found - set(urns))

    def look_for_ends(self, jobs: Iterable[LinkJob]) -> None:
        """Finds the ends of many edges by few calls."""
        places: set[EntityLocation] = set()
        for job in jobs:
            if job.problem is None and job.entry.lineage is not None:
                places.add(job.place)
                for edge in job.entry.lineage.upstream:
                    with suppress(InvalidUrn):
                        places.add(self._index.names.place(Urn.parse(edge.urn)))
        self._index.find_many(places)

    def link(self, job: LinkJob) -> None:
        """Writes the edges that lead to a dataset, as far as their other ends are there."""
        told = job.entry.lineage.upstream if job.entry.lineage is not None else ()
        known = job.held.edges if job.held is not None else lineage.no_edges(job.place.parts)
        said = said_of_edges(job.entry)
        if not told and not known.edges and not said and not known.others:
            return
        wanted: dict[str, list[UpstreamEdge]] = {}
        for edge in told:
            wanted.setdefault(edge.urn, []).append(edge)
        ends = {urn: self._end(urn, job) for urn in wanted}
        starts = {name: self._referring.end(name) for name in said if not name.startswith(_DATASET)}
        if not self._differs(job, wanted, known, ends) and not self._differs_in_words(
            job, said, known, ends, starts
        ):
            return
        if job.raw.get("deleted"):
            # Nothing can be said of edges to what is hidden; what is carried tells them.
            return
        found = self._index.find(job.place)
        if found is None:
            return
        fresh = self._reader.edges(job.place, found.id) if job.held is not None else known
        drawn: dict[str, NativeEdge] = {}
        is_sure = True
        for urn, edges in wanted.items():
            if (end := ends[urn]) is None:
                continue
            sent = self._put_edge(
                found, end, edges, known.edges.get(urn), fresh.edges.get(urn), said.get(urn)
            )
            # The server drops columns that it does not know without a word.
            is_sure = is_sure and sent is not None and not sent
            drawn[urn] = NativeEdge(end.id, end.place.home, end.place.parts, {}, {})
        for urn, native in known.edges.items():
            if urn not in wanted:
                self._server.delete(
                    f"lineage/{native.type}/{native.id}/{found.place.home}/{found.id}"
                )
        drawn_from = self._draw_from_entities(found, said, known, starts)
        job.changed = True
        now = drawn if is_sure else self._reader.edges(found.place, found.id).edges
        self._mark(job, found, wanted, now, drawn_from)

    def _draw_from_entities(
        self, to: IndexedEntity, said: Mapping[str, Any], known: Edges, starts: Mapping[str, Any]
    ) -> Marks:
        """Draws the edges that come from what is no dataset."""
        marks: Marks = {}
        for name, start in starts.items():
            if start is None:
                continue
            reference, parts = start
            native = known.others.get(name)
            if native is None or not lineage.is_fit(said[name], native, to.place.parts):
                details = self._referring.details_sent(said[name], parts, to.place.parts)
                self._referring.link(reference, {"id": to.id, "type": to.place.home}, details)
            marks[name] = Mark(reference["id"])
        for name, native in known.others.items():
            if name not in said:
                self._server.delete(f"lineage/{native.type}/{native.id}/{to.place.home}/{to.id}")
        return marks

    @staticmethod
    def _differs_in_words(
        job: LinkJob,
        said: Mapping[str, Any],
        known: Edges,
        ends: Mapping[str, IndexedEntity | None],
        starts: Mapping[str, Any],
    ) -> bool:
        """Whether edges do not say what is said of them, or come from other entities."""
        if known.others.keys() - said.keys():
            return True
        for name, mine in said.items():
            native = known.edges.get(name) or known.others.get(name)
            is_there = (starts if name in starts else ends).get(name) is not None
            if is_there and (native is None or not lineage.is_fit(mine, native, job.place.parts)):
                return True
        return False

    def _end(self, urn: str, job: LinkJob) -> IndexedEntity | None:
        """Where an edge comes from, if it is there; otherwise it waits."""
        try:
            place = self._index.names.place(Urn.parse(urn))
        except InvalidUrn:
            return None
        if (found := self._index.find(place)) is None:
            with self._lock:
                self._waiting.setdefault(urn, set()).add(job.entry.urn)
        return found

    def _differs(
        self,
        job: LinkJob,
        wanted: Mapping[str, list[UpstreamEdge]],
        known: Edges,
        ends: Mapping[str, IndexedEntity | None],
    ) -> bool:
        if known.edges.keys() - wanted.keys():
            return True
        marks = _marks(job)
        is_told = LINEAGE in (job.raw.get("extension") or {})
        for urn, edges in wanted.items():
            end, native, mark = ends[urn], known.edges.get(urn), marks.get(urn)
            if end is None:
                continue
            # One that Lumos tells of and did not note was broken off in between.
            if native is None or (is_told and mark is None):
                return True
            pairs = lineage.pairs_of(edges, end.place.parts, job.place.parts).keys()
            # Columns that the server does not know were sent before, in vain.
            unknown = mark.unknown if mark is not None and mark.id == native.id else ()
            if pairs - set(unknown) != native.columns.keys():
                return True
        return False

    def _put_edge(
        self,
        to: IndexedEntity,
        end: IndexedEntity,
        edges: Sequence[UpstreamEdge],
        known: NativeEdge | None,
        fresh: NativeEdge | None,
        said: Mapping[str, Any] | None,
    ) -> dict[lineage.Pair, str | None] | None:
        """Draws an edge; gives the columns that were sent, or nothing where it may have failed."""
        columns = lineage.pairs_of(edges, end.place.parts, to.place.parts)
        if fresh is not None:
            before = known.columns if known is not None else {}
            columns |= {
                pair: function
                for pair, function in fresh.columns.items()
                if pair not in before and pair not in columns
            }
        details = lineage.details_of(edges, columns, fresh.details if fresh is not None else {})
        if said is not None:
            sent = self._referring.details_sent(said, end.place.parts, to.place.parts)
            details = lineage.with_said(details, sent)
        edge = {
            "fromEntity": {"id": end.id, "type": end.place.home},
            "toEntity": {"id": to.id, "type": to.place.home},
            "lineageDetails": details,
        }
        try:
            self._server.link(edge)
        except CatalogError as problem:
            # Without its search engine the server fails after the edge is written; what is read
            # back says whether it is there.
            if problem.status not in (_INTERNAL, _NOT_FOUND):
                raise
            return None
        return columns

    def _mark(
        self,
        job: LinkJob,
        found: IndexedEntity,
        wanted: Mapping[str, list[UpstreamEdge]],
        now: Mapping[str, NativeEdge],
        others: Marks,
    ) -> None:
        """Notes beside the entity which edges and columns are there of those that were sent."""
        marks: Marks = dict(others)
        for urn, edges in wanted.items():
            if (native := now.get(urn)) is None:
                continue
            sent = lineage.pairs_of(edges, native.parts, found.place.parts)
            there = sent.keys() & native.columns.keys()
            unknown = sent.keys() - there
            at = lineage.written_at(native.details)
            marks[urn] = Mark(native.id, tuple(sorted(there)), tuple(sorted(unknown)), at)
        text = msgspec.json.encode(marks).decode() if marks else None
        known = (job.raw.get("extension") or {}).get(EDGES)
        if text == known:
            return
        self._properties.declare(found.place.home, [EDGES])
        path = f"{HOMES[found.place.home].route}/{found.id}"
        # What is carried of edges is there already, and so is the extension that holds it.
        place = f"/extension/{EDGES}"
        operation: dict[str, Any] = {"op": "remove", "path": place}
        if text is not None:
            operation = {"op": "add", "path": place, "value": text}
        self._server.patch(path, [operation, *said_again(job.state)])


def _marks(job: LinkJob) -> Marks:
    return lineage.marked((job.raw.get("extension") or {}).get(EDGES))


class _New(NamedTuple):
    job: LinkJob
    body: dict[str, Any]
    size: int


class Writer:
    """Writes entries exactly as they are, except where people changed something meanwhile."""

    def __init__(
        self,
        server: Server,
        index: Index,
        entries: OpenMetadataEntries,
        labels: OpenMetadataLabels,
        properties: CustomProperties,
        reader: OpenMetadataReader,
        referring: Referring,
    ) -> None:
        self._server = server
        self._index = index
        self._entries = entries
        self._labels = labels
        self._properties = properties
        self._reader = reader
        self._linker = Linker(server, index, properties, reader, referring)

    def write(
        self,
        entries: Sequence[CatalogEntry],
        *,
        over: Mapping[str, CatalogEntry | None],
        there: Mapping[str, Held],
        newer: Collection[str] = (),
    ) -> Iterator[WrittenEntry | Refused]:
        """Writes entries over what the caller has read, `there` being the same as it was told.

        Of those that are `newer`, `there` was told later than what the caller has read.
        """
        jobs = []
        for entry in entries:
            try:
                jobs.append(self._job(entry, there.get(entry.urn)))
            except InvalidUrn as problem:
                yield Refused(entry.urn, problem)
        self._label(jobs)
        for job in jobs:
            if (
                job.problem is None
                and job.entry.urn in newer
                and job.entry.urn in over
                and job.held is not None
            ):
                job.entry = self._rebased(over[job.entry.urn], job.held, job.entry)
        try:
            self._make([job for job in jobs if job.held is None and job.problem is None])
            self._all(jobs, lambda job: self._change(job, over.get(job.entry.urn)))
            self._linker.look_for_ends(jobs)
            self._all(jobs, self._linker.link)
            self._link_those_that_waited(jobs)
            self._all(jobs, self._hide)
        finally:
            self._hide_again(jobs)
        for job in jobs:
            if job.problem is not None:
                yield Refused(job.entry.urn, job.problem)
            else:
                yield WrittenEntry(urn=job.entry.urn, changed=job.changed, held=job.held_as)

    def _all(self, jobs: Iterable[LinkJob], step: Any) -> None:
        """Takes a step with each of the entries that nothing is wrong with."""

        def taken(job: LinkJob) -> None:
            try:
                step(job)
            except CatalogUnavailable:
                raise
            except LumosError as problem:
                job.problem = problem

        for _ in self._server.each([job for job in jobs if job.problem is None], taken):
            pass

    def _label(self, jobs: Sequence[LinkJob]) -> None:
        """Makes sure that what entries refer to is there; one that cannot be fails alone."""
        try:
            self._labels_for(job.entry for job in jobs)
        except CatalogUnavailable:
            raise
        except LumosError:
            self._all(jobs, lambda job: self._labels_for([job.entry]))

    def _labels_for(self, entries: Iterable[CatalogEntry]) -> None:
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

    def _job(self, entry: CatalogEntry, held: Held | None) -> LinkJob:
        place = self._index.names.place(Urn.parse(entry.urn))
        job = LinkJob(entry, place, held)
        if held is not None:
            job.id, job.raw = held.id, held.raw
        return job

    def _make(self, jobs: Iterable[LinkJob]) -> None:
        """Makes entities that are not there, many by one call."""
        levels: dict[tuple[int, str], list[LinkJob]] = {}
        for job in jobs:
            levels.setdefault((len(job.place.parts), job.place.home), []).append(job)
        # What is deeper comes later: it may be in what is made before.
        for (_, home), level in sorted(levels.items()):
            news = [new for job in level if (new := self._new(job)) is not None]
            for chunk in chunked(
                news, most=MOST, most_bytes=_MOST_BYTES, size=lambda new: new.size
            ):
                self._send(home, chunk)

    def _new(self, job: LinkJob) -> _New | None:
        # A bucket comes into being with what is first put into it.
        held = self._reader.held(job.entry.urn) if self._index.is_holder(job.place) else None
        if held is not None:
            job.held, job.id, job.raw = held, held.id, held.raw
            return None
        try:
            return self._made(job)
        except CatalogUnavailable:
            raise
        except LumosError as problem:
            job.problem = problem
            return None

    def _made(self, job: LinkJob) -> _New:
        rendered = self._entries.render(
            job.entry, job.place, there=None, declared=self._declared(job.place.home, job.entry)
        )
        job.held_as, job.state = rendered.held, rendered.state
        self._declare(job.place.home, rendered.state)
        body = body_of(job.place.home, rendered.state) | self._index.prepare(job.place)
        return _New(job, body, len(msgspec.json.encode(body)))

    def _send(self, home: str, chunk: Sequence[_New]) -> None:
        route = HOMES[home].route
        by_name: dict[Any, LinkJob] = {_key(new.body): new.job for new in chunk}
        by_name |= {new.job.place.fqn: new.job for new in chunk}

        def send(part: Sequence[_New]) -> None:
            for refusal in self._server.bulk(route, [new.body for new in part]):
                self._refused(refusal, by_name)
            # The server forgets labels of columns where it makes containers in bulk, but not where
            # it changes them.
            labelled = [
                new.body
                for new in part
                if new.job.problem is None and has_labels(raw_columns(home, new.body))
            ]
            if home == "container" and labelled:
                self._server.bulk(route, labelled)

        for new, problem in in_halves(chunk, send):
            job = new.job
            job.problem = job.problem or problem
            job.changed = True
            self._index.forget(job.place)

    def _refused(self, refusal: RequestRefused, jobs: Mapping[Any, LinkJob]) -> None:
        """Notes what is wrong with one of many; raises where nobody can tell with which."""
        request = refusal.request
        job = jobs.get(_key(request) if isinstance(request, dict) else request)
        platform = self._server.platform
        what = "one of many" if job is None else job.entry.urn
        problem = CatalogError(
            f"{platform} rejected {what}: {refusal.message}",
            platform=platform,
            status=refusal.status,
        )
        if job is None:
            raise problem
        job.problem = problem

    def _change(self, job: LinkJob, over: CatalogEntry | None) -> None:
        """Changes what is there by the differences, and again where people were faster."""
        if job.held is None:
            return
        held, entry = job.held, job.entry
        is_deleted = job.shall_be_hidden = entry.deleted
        for attempt in range(_ATTEMPTS):
            try:
                self._patch(job, held, entry)
                # A patch whose answer was lost does not fit what it has made itself.
                job.changed = job.changed or attempt > 0
                return
            except Outdated:
                if attempt == _ATTEMPTS - 1:
                    raise
                fresh = self._reader.held(entry.urn)
                if fresh is None:
                    self._make([job])
                    return
                entry, held = self._rebased(over, fresh, job.entry), fresh
                if job.is_restored:
                    # That it is not hidden now is our own doing.
                    entry = msgspec.structs.replace(entry, deleted=is_deleted)
                self._labels_for([entry])
        raise AssertionError("the last attempt raises")

    def _rebased(self, over: CatalogEntry | None, held: Held, entry: CatalogEntry) -> CatalogEntry:
        if not held.is_dataset:
            return entry
        fresh = self._reader.entry(held)
        return entry if fresh == over else rebased(over, fresh, entry)

    def _patch(self, job: LinkJob, held: Held, entry: CatalogEntry) -> None:
        home = held.place.home
        rendered = self._entries.render(
            entry, held.place, there=held.state, declared=self._declared(home, entry)
        )
        job.held_as, job.entry, job.held, job.raw = rendered.held, entry, held, held.raw
        job.state = rendered.state
        operations = differences(home, held.raw, held.state, rendered.state)
        is_hidden = bool(held.raw.get("deleted"))
        if not operations and (not is_hidden or entry.deleted):
            return
        self._declare(home, rendered.state)
        route = HOMES[home].route
        now: Mapping[str, Any] = held.raw
        if is_hidden:
            self._server.put(f"{route}/restore", {"id": held.id})
            job.is_restored = True
            job.raw = {**held.raw, "deleted": False}
            self._index.learn(held.place, held.id)
            operations = operations or said_again(rendered.state)
            now = self._server.get(f"{route}/{held.id}") or {}
        if operations:
            self._server.patch(f"{route}/{held.id}", [*guard(now), *operations])
        job.changed = True

    def _declared(self, home: str, entry: CatalogEntry) -> frozenset[str]:
        self._properties.define(home, declared_in(entry))
        return self._properties.known(home)

    def _declare(self, home: str, state: Mapping[str, Any]) -> None:
        ours = [key for key in state.get("extension", {}) if is_ours(key)]
        self._properties.declare(home, ours)

    def _link_those_that_waited(self, jobs: Iterable[LinkJob]) -> None:
        """Draws edges from datasets that are there now to those that were written before them.

        Whatever goes wrong there concerns nobody who writes now; what is carried tells the edges.
        """
        written = {job.entry.urn for job in jobs if job.problem is None}
        again = []
        for urn in self._linker.waiting_for(written):
            if (held := self._reader.held(urn)) is not None:
                entry = self._reader.entry(held)
                again.append(LinkJob(entry, held.place, held, held.id, held.raw, held.state))
        self._all(again, self._linker.link)

    def _hide_again(self, jobs: Iterable[LinkJob]) -> None:
        """Hides what was shown only to be changed, where the change came to nothing."""
        for job in jobs:
            if job.is_restored and job.shall_be_hidden and not job.is_hidden_again:
                # Whatever went wrong before is what people should be told of.
                with suppress(CatalogError):
                    self._server.delete(f"{HOMES[job.place.home].route}/{job.id}")

    def _hide(self, job: LinkJob) -> None:
        """Hides a dataset that is deleted, and shows one that is not."""
        home = HOMES[job.place.home]
        if not job.entry.deleted or job.raw.get("deleted"):
            return
        found = self._index.find(job.place)
        if found is None:
            return
        try:
            self._server.delete(f"{home.route}/{found.id}")
        except CatalogError as problem:
            if problem.status != _BAD_REQUEST:
                raise
            # Others are in it, and would be hidden with it.
            self._index.mark_hidden(home.type, found.id)
        else:
            self._index.learn(job.place, None)
        job.is_hidden_again = True
        is_news = job.held is None or not job.held.is_deleted
        job.changed = job.changed or is_news

    def erase(self, urns: Sequence[str]) -> None:
        """Takes entities out."""
        for _ in self._server.each(urns, self._erase):
            pass

    def _erase(self, urn: str) -> None:
        """Takes an entity out; one that others are in stays, and says nothing any more."""
        held = self._reader.held(urn)
        if held is None or not held.is_dataset:
            return
        route = HOMES[held.place.home].route
        try:
            self._server.delete(f"{route}/{held.id}", hardDelete=True)
        except CatalogError as problem:
            if problem.status != _BAD_REQUEST:
                raise
            self._empty(held)
        else:
            self._index.dropped(held.place)

    def _empty(self, held: Held) -> None:
        home = held.place.home
        for native in held.edges.edges.values():
            self._server.delete(f"lineage/{native.type}/{native.id}/{home}/{held.id}")
        self._properties.declare(home, [PARENT])
        bare = {"extension": {PARENT: "Others are in it."}}
        operations = differences(home, held.raw, held.state, bare)
        self._server.patch(f"{HOMES[home].route}/{held.id}", operations)


def rebased(over: CatalogEntry | None, fresh: CatalogEntry, entry: CatalogEntry) -> CatalogEntry:
    """An entry that was meant for what was read, made for what is there by now."""
    if over is None:
        return merge(None, fresh, entry).entry
    merged = merge(over, fresh, entry).entry
    # What shall be gone is gone, unless people have changed it since.
    gone = {
        name: None
        for name in ASPECTS
        if getattr(entry, name) is None and getattr(over, name) == getattr(fresh, name)
    }
    return msgspec.structs.replace(merged, **gone)


def _key(body: Mapping[str, Any]) -> tuple[str, str]:
    parent = body.get("parent") or {}
    return (
        f"{body.get('databaseSchema') or body.get('service')}/{parent.get('id', '')}",
        joined(str(body.get("name"))),
    )
