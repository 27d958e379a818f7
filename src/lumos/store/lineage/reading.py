"""Reads lineage: edges, walks up and down the stream, paths between columns, jobs."""

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec
from sqlalchemy import Connection, func, select, tuple_

from lumos.model.catalog import Job
from lumos.model.codec import from_json
from lumos.model.dataset import Lineage
from lumos.store import tables
from lumos.store.database import Database
from lumos.store.lineage import columns, graph
from lumos.store.lineage.aspect import downstream_of, upstream_of
from lumos.store.lineage.columns import ColumnNode
from lumos.store.lineage.rows import (
    DOWNSTREAM,
    EDGE,
    EDGES,
    REPORTER,
    UPSTREAM,
    batches,
    edges_of,
    node_ids,
)
from lumos.store.lineage.values import (
    ColumnPaths,
    ColumnWalk,
    Direction,
    KeptEdge,
    Link,
    MergedEdge,
    Reached,
    ReachedColumn,
    Reporter,
    Walk,
    merged,
)
from lumos.store.records import State

if TYPE_CHECKING:
    from lumos.store.lineage.compact import CompactGraph

# Up to here, asking the database level by level is faster than loading all that there is.
_WIDE: Final = 2000
_PAGED: Final = {"yield_per": 1000}
JOBS: Final = "jobs"


class LineageReader:
    """The edges of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def edges_of(self, urn: str, direction: Direction) -> tuple[KeptEdge, ...]:
        """What each reporter says of the edges into (upstream) or out of a dataset."""
        with self._database.reading() as connection:
            known = _resolved(connection, [urn])
            return tuple(sorted(_edges_at(connection, known.values(), direction), key=_order))

    def merged_of(self, urn: str, direction: Direction) -> tuple[MergedEdge, ...]:
        """The edges into (upstream) or out of a dataset, each once, with all that say so."""
        return merged(self.edges_of(urn, direction))

    def around(self, urn: str) -> Lineage | None:
        """What a dataset is made from and what is made from it, whoever says so."""
        upstream, downstream = (self.merged_of(urn, side) for side in ("upstream", "downstream"))
        if not upstream and not downstream:
            return None
        return Lineage(
            upstream=tuple(map(upstream_of, upstream)),
            downstream=tuple(map(downstream_of, downstream)),
        )

    def between(self, links: Iterable[tuple[str, str]]) -> tuple[MergedEdge, ...]:
        """All that is known of some links, such as those of a walk."""
        pair = tuple_(UPSTREAM.c.urn, DOWNSTREAM.c.urn)
        with self._database.reading() as connection:
            return merged(
                edge
                for some in batches(links)
                for edge in edges_of(connection, EDGES.where(pair.in_([tuple(x) for x in some])))
            )

    def all(self) -> Iterator[KeptEdge]:
        """Every edge of every reporter, in no order."""
        with self._database.reading() as connection:
            yield from edges_of(connection, EDGES.execution_options(**_PAGED))

    def count(self) -> int:
        """How many edges all reporters tell of."""
        with self._database.reading() as connection:
            statement = select(func.count()).select_from(tables.lineage_edge)
            return int(connection.execute(statement).scalar_one())

    def reporters(self) -> tuple[Reporter, ...]:
        """Who tells of lineage, by name."""
        reporter = tables.lineage_reporter.c
        statement = (
            select(reporter.name, reporter.reported_at, func.count(EDGE.id))
            .select_from(tables.lineage_reporter.outerjoin(tables.lineage_edge))
            .group_by(reporter.id, reporter.name, reporter.reported_at)
        )
        with self._database.reading() as connection:
            return tuple(sorted(Reporter(*row) for row in connection.execute(statement)))

    def jobs(self) -> Iterator[Job]:
        """Every job with its runs, by URN; what it reads and writes under present names."""
        item = tables.item.c
        statement = select(item.body).where(item.kind == JOBS).order_by(item.key)
        with self._database.reading() as connection:
            moved = {row.urn: row.dataset_urn for row in connection.execute(_ALIASES)}
            for body in connection.scalars(statement, execution_options=_PAGED):
                yield _renamed(from_json(body, Job), moved)

    def job(self, urn: str) -> Job | None:
        """One job by its URN."""
        item = tables.item.c
        statement = select(item.body).where(item.kind == JOBS, item.key == urn)
        with self._database.reading() as connection:
            body = connection.execute(statement).scalar_one_or_none()
            if body is None:
                return None
            job = from_json(body, Job)
            return _renamed(job, _resolved(connection, [*job.inputs, *job.outputs]))

    def told_by(self, reporter: str) -> tuple[KeptEdge, ...]:
        """All edges that one reporter tells of."""
        with self._database.reading() as connection:
            edges = edges_of(connection, EDGES.where(REPORTER.name == reporter))
            return tuple(sorted(edges, key=_order))

    def walk(
        self,
        urn: str,
        *,
        direction: Direction,
        depth: int | None = None,
        limit: int | None = None,
    ) -> Walk:
        """What lies up or down the stream of a dataset, at most `depth` edges away.

        Of more than `limit` the nearest are listed.
        """
        with self._database.reading() as connection:
            start = _resolved(connection, [urn])[urn]
            id = node_ids(connection, [start]).get(start)
            if id is None:
                # Nobody speaks of it, but it may be there.
                id, found = _NO_NODE, graph.Reach({_NO_NODE: 0}, [], 1, truncated=False)
            else:
                found = self._reach(connection, id, direction, depth, limit)
            urns = {id: start} | _urns(connection, found.depths)
            states = _states(connection, urns.values())
        nodes = (
            Reached(urns[each], far, states.get(urns[each])) for each, far in found.depths.items()
        )
        links = (
            (urns[before], urns[after])[:: 1 if direction == "downstream" else -1]
            for before, after in found.links
        )
        return Walk(
            start=start,
            direction=direction,
            depth=depth,
            nodes=tuple(sorted(nodes, key=lambda node: (node.depth, node.urn))),
            links=tuple(sorted(Link(*link) for link in links)),
            total=found.total,
            truncated=found.truncated,
        )

    def columns(
        self,
        urn: str,
        column: str,
        *,
        direction: Direction,
        depth: int | None = None,
        past_uses: bool = False,
    ) -> ColumnWalk:
        """What a column is made from (upstream) or what is made from it, and what it decides about.

        What is only decided about is where the walk ends, unless it shall go `past_uses`.
        """
        with self._database.reading() as connection:
            start = ColumnNode(_resolved(connection, [urn])[urn], column)
            found = columns.walk(
                start,
                lambda urns: _edges_at(connection, urns, direction),
                direction=direction,
                depth=depth,
                past_uses=past_uses,
            )
            states = _states(connection, {node.urn for node in found.depths})
        nodes = (
            ReachedColumn(*node, far, node not in found.direct, states.get(node.urn))
            for node, far in found.depths.items()
        )
        return ColumnWalk(
            start=start,
            direction=direction,
            depth=depth,
            nodes=tuple(sorted(nodes, key=lambda node: (node.depth, node.urn, node.column or ""))),
            steps=tuple(sorted(found.steps, key=_by_names)),
            truncated=found.truncated,
        )

    def paths(
        self,
        start: tuple[str, str],
        goal: tuple[str, str],
        *,
        depth: int | None = None,
        limit: int = 20,
        past_uses: bool = True,
    ) -> ColumnPaths:
        """Ways down the stream from one column to another, shortest first.

        One that ends at a dataset as a whole decides about all its columns.
        """
        with self._database.reading() as connection:
            known = _resolved(connection, [start[0], goal[0]])
            begin = ColumnNode(known[start[0]], start[1])
            end = ColumnNode(known[goal[0]], goal[1])
            found = columns.walk(
                begin,
                lambda urns: _edges_at(connection, urns, "downstream"),
                direction="downstream",
                depth=depth,
                past_uses=past_uses,
                within=self._leading_to(connection, end.urn),
            )
        goals = {node for node in found.depths if _is_at(node, end)}
        steps = ((step.upstream, step.downstream, step) for step in found.steps)
        paths, truncated = graph.shortest_paths(begin, goals, steps, limit=limit)
        return ColumnPaths(
            start=begin,
            goal=end,
            paths=tuple(tuple(path) for path in paths),
            truncated=truncated or found.truncated,
        )

    def _leading_to(self, connection: Connection, urn: str) -> set[str]:
        """All datasets from which data flows to one, and itself."""
        id = node_ids(connection, [urn]).get(urn)
        if id is None:
            return {urn}
        found = self._reach(connection, id, "upstream", None, None)
        return set(_urns(connection, found.depths).values())

    def _reach(
        self,
        connection: Connection,
        start: int,
        direction: Direction,
        depth: int | None,
        limit: int | None,
    ) -> graph.Reach:
        begin, end = _ends(direction)

        def expand(nodes: Collection[int]) -> Iterator[tuple[int, int]]:
            for some in batches(nodes):
                statement = select(begin, end).distinct().where(begin.in_(some))
                yield from map(tuple, connection.execute(statement))

        most = _WIDE if limit is None else min(_WIDE, limit)
        found = graph.reach(start, expand, depth=depth, most=most)
        if found is not None:
            return found
        compact = self._compact(connection)
        return compact.reach(start, direction=direction, depth=depth, limit=limit)

    def _compact(self, connection: Connection) -> "CompactGraph":
        """All links, as of what the connection sees; made anew only where there are others now."""
        import numpy as np

        from lumos.store.lineage.compact import CompactGraph

        revision = connection.execute(select(tables.lineage_revision.c.revision)).scalar()
        kept = self._database.kept.get(_KEPT)
        if kept is None or kept[0] != revision:
            statement = select(EDGE.upstream, EDGE.downstream).distinct()
            rows = connection.execute(statement, execution_options=_PAGED)
            ends = np.fromiter((id for row in rows for id in row), dtype=np.int64)
            kept = revision, CompactGraph(ends[::2], ends[1::2])
            self._database.kept[_KEPT] = kept
        graph: CompactGraph = kept[1]
        return graph


_NO_NODE: Final = 0
_KEPT: Final = "lineage graph"
_ALIASES: Final = select(tables.alias.c.urn, tables.alias.c.dataset_urn)


def _ends(direction: Direction) -> tuple[Any, Any]:
    ends = EDGE.upstream, EDGE.downstream
    return ends if direction == "downstream" else ends[::-1]


def _edges_at(
    connection: Connection, urns: Iterable[str], direction: Direction
) -> Iterator[KeptEdge]:
    """The edges that lead on from some datasets in that direction."""
    begin = UPSTREAM if direction == "downstream" else DOWNSTREAM
    for some in batches(urns):
        yield from edges_of(connection, EDGES.where(begin.c.urn.in_(some)))


def _resolved(connection: Connection, urns: Collection[str]) -> dict[str, str]:
    """URNs and those under which the datasets are known now."""
    alias = tables.alias.c
    moved = connection.execute(_ALIASES.where(alias.urn.in_(urns)))
    return {urn: urn for urn in urns} | {row.urn: row.dataset_urn for row in moved}


def _urns(connection: Connection, ids: Collection[int]) -> dict[int, str]:
    node = tables.lineage_node.c
    return {
        id: urn
        for some in batches(ids)
        for id, urn in connection.execute(select(node.id, node.urn).where(node.id.in_(some)))
    }


def _states(connection: Connection, urns: Collection[str]) -> dict[str, State]:
    dataset = tables.dataset.c
    return {
        urn: state
        for some in batches(urns)
        for urn, state in connection.execute(
            select(dataset.urn, dataset.state).where(dataset.urn.in_(some))
        )
    }


def _renamed(job: Job, moved: dict[str, str]) -> Job:
    inputs, outputs = (
        tuple(dict.fromkeys(moved.get(urn, urn) for urn in urns))
        for urns in (job.inputs, job.outputs)
    )
    return msgspec.structs.replace(job, inputs=inputs, outputs=outputs)


def _is_at(node: ColumnNode, goal: ColumnNode) -> bool:
    if node.urn != goal.urn:
        return False
    return node.column is None or node.column.lower() == (goal.column or "").lower()


def _order(edge: KeptEdge) -> tuple[str, str, str, str]:
    return edge.upstream, edge.downstream, edge.origin, edge.job or ""


def _by_names(step: columns.ColumnStep) -> tuple[str, str, str, str]:
    up, down = step.upstream, step.downstream
    return up.urn, up.column or "", down.urn, down.column or ""
