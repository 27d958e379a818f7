"""Edges into an OpenMetadata server: drawn once both ends are there, over what others drew."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any, Final

import msgspec

from lumos.catalogs.interface import How
from lumos.catalogs.openmetadata import lineage
from lumos.catalogs.openmetadata.entries import EDGES, LINEAGE, said_of_edges
from lumos.catalogs.openmetadata.index import Index, IndexedEntity
from lumos.catalogs.openmetadata.lineage import Edges, Mark, Marks, NativeEdge
from lumos.catalogs.openmetadata.names import HOMES, EntityLocation
from lumos.catalogs.openmetadata.patches import said_again
from lumos.catalogs.openmetadata.properties import CustomProperties
from lumos.catalogs.openmetadata.reader import Held, OpenMetadataReader
from lumos.catalogs.openmetadata.references import Referring
from lumos.catalogs.openmetadata.server import Server
from lumos.catalogs.openmetadata.states import State
from lumos.errors import CatalogError, LumosError
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import UpstreamEdge
from lumos.model.urn import InvalidUrn, Urn

_DATASET: Final = "lumos://"
_NOT_FOUND: Final = 404
_INTERNAL: Final = 500


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
        things = {name: self._referring.end(name) for name in said if not name.startswith(_DATASET)}
        if not self._differs(job, wanted, known, ends) and not self._differs_in_words(
            job, said, known, ends, things
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
        drawn_from = self._draw_from_things(found, said, known, things)
        job.changed = True
        now = drawn if is_sure else self._reader.edges(found.place, found.id).edges
        self._mark(job, found, wanted, now, drawn_from)

    def _draw_from_things(
        self, to: IndexedEntity, said: Mapping[str, Any], known: Edges, things: Mapping[str, Any]
    ) -> Marks:
        """Draws the edges that come from what is no dataset."""
        marks: Marks = {}
        for name, start in things.items():
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
        things: Mapping[str, Any],
    ) -> bool:
        """Whether edges do not say what is said of them, or come from other things."""
        if known.others.keys() - said.keys():
            return True
        for name, mine in said.items():
            native = known.edges.get(name) or known.others.get(name)
            is_there = (things if name in things else ends).get(name) is not None
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
