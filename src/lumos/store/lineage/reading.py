"""Reads lineage: edges, walks up and down the stream, paths between columns, jobs."""

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec
from sqlalchemy import Connection, and_, func, not_, or_, select

from lumos.model.catalog import Job
from lumos.model.dataset import Lineage
from lumos.model.json_codec import from_json
from lumos.model.lineage import Script, UnparsedStatement
from lumos.model.urn import Urn
from lumos.store import tables
from lumos.store.database import Database
from lumos.store.lineage import columns, graph
from lumos.store.lineage.aspect import TOLD, downstream_of, upstream_of
from lumos.store.lineage.columns import ColumnNode
from lumos.store.lineage.owners import owners_of
from lumos.store.lineage.owners import told_by as owners_told_by
from lumos.store.lineage.rows import (
    DOWNSTREAM,
    EDGE,
    EDGES,
    REPORTER,
    UPSTREAM,
    among,
    edges_of,
    node_ids,
    present_names,
)
from lumos.store.lineage.scripts import scripts_of, without_scripts
from lumos.store.lineage.unparsed import all_unparsed
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

# Up to here, asking the database level by level is faster than loading all that there is, and what
# holds it.
_WIDE: Final = 10_000
_PAGED: Final = {"yield_per": 1000}
JOBS: Final = "jobs"


class LineageReader:
    """The edges of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def edges_of(self, urn: str, direction: Direction) -> tuple[KeptEdge, ...]:
        """What each reporter says of the edges into (upstream) or out of a dataset."""
        with self._database.reading() as connection:
            known = present_names(connection, [urn])
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

    def named(self, name: str) -> tuple[str, ...]:
        """What reporters speak of under a name or an end of a path, with a dot or a slash."""
        node = tables.lineage_node.c.urn
        words = [part for part in name.replace(".", "/").split("/") if part]
        if not words:
            return ()
        ending = Urn.of("any", words).path_text
        wanted = func.lower(node).endswith(f"/{ending.lower()}", autoescape=True)
        with self._database.reading() as connection:
            return tuple(connection.scalars(select(node).where(wanted).order_by(node).limit(5)))

    def between(self, links: Iterable[tuple[str, str]]) -> tuple[MergedEdge, ...]:
        """All that is known of some links, such as those of a walk."""
        wanted = {tuple(link) for link in links}
        with self._database.reading() as connection:
            ends = (
                among(connection, node.c.urn, {link[side] for link in wanted})
                for side, node in enumerate((UPSTREAM, DOWNSTREAM))
            )
            edges = edges_of(connection, EDGES.where(*ends))
            return merged(edge for edge in edges if (edge.upstream, edge.downstream) in wanted)

    def edges_into(self, urns: Collection[str]) -> Iterator[KeptEdge]:
        """What each reporter says of the edges into some datasets, in no order."""
        with self._database.reading() as connection:
            yield from _edges_at(connection, urns, "upstream")

    def jobs_among(self, urns: Collection[str]) -> frozenset[str]:
        """Those of some URNs that are of jobs and not of datasets."""
        item = tables.item.c
        with self._database.reading() as connection:
            wanted = among(connection, item.key, urns)
            return frozenset(connection.scalars(select(item.key).where(item.kind == JOBS, wanted)))

    def leading_on(self, urns: Collection[str]) -> frozenset[str]:
        """Those of some datasets from which data flows to anything."""
        node = tables.lineage_node.c
        onward = select(EDGE.id).where(EDGE.upstream == node.id, EDGE.downstream != node.id)
        with self._database.reading() as connection:
            statement = select(node.urn).where(among(connection, node.urn, urns), onward.exists())
            return frozenset(connection.scalars(statement))

    def all(self) -> Iterator[KeptEdge]:
        """Every edge of every reporter, in no order."""
        with self._database.reading() as connection:
            yield from edges_of(connection, EDGES.execution_options(**_PAGED))

    def count(self) -> int:
        """How many edges all reporters tell of."""
        with self._database.reading() as connection:
            statement = select(func.count()).select_from(tables.lineage_edge)
            return int(connection.execute(statement).scalar_one())

    def count_links_outside(self) -> int:
        """How many links that reporters tell of have an end that the store has no dataset of.

        Such a table was assumed by its name and never scanned. Links of jobs are not counted.
        """
        dataset, item = tables.dataset.c, tables.item.c
        is_job = [
            select(item.key).where(item.kind == JOBS, item.key == end.c.urn).exists()
            for end in (UPSTREAM, DOWNSTREAM)
        ]
        is_dataset = [
            select(dataset.urn).where(dataset.urn == end.c.urn).exists()
            for end in (UPSTREAM, DOWNSTREAM)
        ]
        links = (
            EDGES.with_only_columns(UPSTREAM.c.urn, DOWNSTREAM.c.urn, maintain_column_froms=True)
            .where(REPORTER.name.not_like(f"{TOLD}%"), not_(or_(*is_job)), not_(and_(*is_dataset)))
            .distinct()
        )
        with self._database.reading() as connection:
            statement = select(func.count()).select_from(links.subquery())
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

    def remembered(self, reporters: Collection[str]) -> dict[str, bytes]:
        """What some reporters remember, of those that do."""
        reporter = tables.lineage_reporter.c
        statement = select(reporter.name, reporter.memory).where(reporter.memory.is_not(None))
        with self._database.reading() as connection:
            wanted = statement.where(among(connection, reporter.name, reporters))
            return {row.name: row.memory for row in connection.execute(wanted)}

    def jobs(self) -> Iterator[Job]:
        """Every job with its runs, by URN; what it reads and writes under present names."""
        item = tables.item.c
        statement = select(item.body).where(item.kind == JOBS).order_by(item.key)
        with self._database.reading() as connection:
            moved = {row.urn: row.dataset_urn for row in connection.execute(_ALIASES)}
            for body in connection.scalars(statement, execution_options=_PAGED):
                yield _renamed(from_json(body, Job), moved)

    def ends_not_here(self) -> dict[str, set[str]]:
        """What reporters say that jobs read and write and the store does not have, by job."""
        item = tables.item.c
        with self._database.reading() as connection:
            ends = _ends_of_jobs(connection)
            every = set().union(*ends.values())
            keys = select(item.key).where(item.kind == JOBS, among(connection, item.key, every))
            here = {*_states(connection, every), *connection.scalars(keys)}
        return {urn: some - here for urn, some in ends.items() if some - here}

    def jobs_at(self) -> dict[str, set[str]]:
        """Which jobs read or write what, as reporters say."""
        jobs: dict[str, set[str]] = {}
        with self._database.reading() as connection:
            for job, ends in _ends_of_jobs(connection).items():
                for urn in ends:
                    jobs.setdefault(urn, set()).add(job)
        return jobs

    def job(self, urn: str) -> Job | None:
        """One job by its URN."""
        item = tables.item.c
        statement = select(item.body).where(item.kind == JOBS, item.key == urn)
        with self._database.reading() as connection:
            body = connection.execute(statement).scalar_one_or_none()
            if body is None:
                return None
            job = from_json(body, Job)
            return _renamed(job, present_names(connection, [*job.inputs, *job.outputs]))

    def told_by(self, reporter: str) -> tuple[KeptEdge, ...]:
        """All edges that one reporter tells of."""
        with self._database.reading() as connection:
            edges = edges_of(connection, EDGES.where(REPORTER.name == reporter))
            return tuple(sorted(edges, key=_order))

    def scripts(self, urns: Collection[str]) -> dict[str, tuple[tuple[str, Script], ...]]:
        """For each of some datasets, who keeps which texts of SQL that make it."""
        with self._database.reading() as connection:
            return scripts_of(connection, urns)

    def unparsed(self) -> tuple[tuple[str, UnparsedStatement], ...]:
        """Every statement that could not be parsed, with its reporter."""
        with self._database.reading() as connection:
            return all_unparsed(connection)

    def owners(self, urns: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Whom reporters name as owners of some datasets, scanned or not."""
        with self._database.reading() as connection:
            return owners_of(connection, urns)

    def owners_told_by(self, reporter: str) -> dict[str, tuple[str, ...]]:
        """The owners that one reporter names, by URN."""
        with self._database.reading() as connection:
            return owners_told_by(connection, reporter)

    def without_scripts(self, prefix: str) -> set[str]:
        """Reporters whose names begin in some way that tell of edges and keep no text of SQL."""
        with self._database.reading() as connection:
            return without_scripts(connection, prefix)

    def walk(
        self,
        urn: str,
        *others: str,
        direction: Direction,
        depth: int | None = None,
        limit: int | None = None,
    ) -> Walk:
        """What lies up or down the stream of a dataset, or of several, at most `depth` edges away.

        Of more than `limit` the nearest are listed.
        """
        with self._database.reading() as connection:
            known = present_names(connection, [urn, *others])
            starts = dict.fromkeys(known[each] for each in (urn, *others))
            ids = node_ids(connection, starts)
            found = graph.Reach({}, [], 0, truncated=False)
            if ids:
                found = self._reach(connection, ids.values(), direction, depth, limit)
            urns, states = _nodes(connection, found.depths)
            # Nobody speaks of them, but they may be there.
            alone = [each for each in starts if each not in ids]
            states |= _states(connection, alone) if alone else {}
        far = {urns[each]: steps for each, steps in found.depths.items()} | dict.fromkeys(alone, 0)
        links = (
            (urns[before], urns[after])[:: 1 if direction == "downstream" else -1]
            for before, after in found.links
        )
        nodes = (Reached(each, steps, states.get(each)) for each, steps in far.items())
        return Walk(
            start=known[urn],
            direction=direction,
            depth=depth,
            nodes=tuple(sorted(nodes, key=lambda node: (node.depth, node.urn))),
            links=tuple(sorted(Link(*link) for link in links)),
            total=found.total + len(alone),
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
        with_uses: bool = True,
    ) -> ColumnWalk:
        """What a column is made from (upstream) or what is made from it, and what it decides about.

        What is only decided about is where the walk ends, unless it shall go `past_uses`; without
        `with_uses` it only follows values.
        """
        with self._database.reading() as connection:
            start = ColumnNode(present_names(connection, [urn])[urn], column)
            found = columns.walk(
                start,
                lambda urns: _edges_at(connection, urns, direction),
                direction=direction,
                depth=depth,
                past_uses=past_uses,
                with_uses=with_uses,
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
        with_uses: bool = True,
    ) -> ColumnPaths:
        """Ways down the stream from one column to another, shortest first.

        One that ends at a dataset as a whole decides about all its columns.
        """
        with self._database.reading() as connection:
            known = present_names(connection, [start[0], goal[0]])
            begin = ColumnNode(known[start[0]], start[1])
            end = ColumnNode(known[goal[0]], goal[1])
            found = columns.walk(
                begin,
                lambda urns: _edges_at(connection, urns, "downstream"),
                direction="downstream",
                depth=depth,
                past_uses=past_uses,
                with_uses=with_uses,
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
        found = self._reach(connection, [id], "upstream", None, None)
        return set(_nodes(connection, found.depths)[0].values())

    def _reach(
        self,
        connection: Connection,
        starts: Collection[int],
        direction: Direction,
        depth: int | None,
        limit: int | None,
    ) -> graph.Reach:
        begin, end = _ends(direction)

        def expand(nodes: Collection[int]) -> list[tuple[int, int]]:
            statement = select(begin, end).distinct().where(among(connection, begin, nodes))
            return [(before, after) for before, after in connection.execute(statement).all()]

        compact = self._kept_graph(connection)
        if compact is None:
            most = _WIDE if limit is None else min(_WIDE, limit)
            found = graph.reach(starts, expand, depth=depth, most=most)
            if found is not None:
                return found
            compact = self._made_graph(connection)
        return compact.reach(starts, direction=direction, depth=depth, limit=limit)

    def _kept_graph(self, connection: Connection) -> "CompactGraph | None":
        """All links, where an earlier walk needed them and they are still the same."""
        kept: tuple[str, CompactGraph] | None = self._database.kept.get(_KEPT)
        if kept is None or kept[0] != connection.execute(_REVISION).scalar():
            return None
        return kept[1]

    def _made_graph(self, connection: Connection) -> "CompactGraph":
        """All links as the connection sees them, kept for later walks."""
        import numpy as np

        from lumos.store.lineage.compact import CompactGraph

        statement = select(EDGE.upstream, EDGE.downstream).distinct()
        rows = connection.execute(statement, execution_options=_PAGED)
        ends = np.fromiter((id for row in rows for id in row), dtype=np.int64)
        made = CompactGraph(ends[::2], ends[1::2])
        self._database.kept[_KEPT] = connection.execute(_REVISION).scalar(), made
        return made


_KEPT: Final = "lineage graph"
_REVISION: Final = select(tables.lineage_revision.c.revision)
_ALIASES: Final = select(tables.alias.c.urn, tables.alias.c.dataset_urn)


def _ends(direction: Direction) -> tuple[Any, Any]:
    ends = EDGE.upstream, EDGE.downstream
    return ends if direction == "downstream" else ends[::-1]


def _edges_at(
    connection: Connection, urns: Iterable[str], direction: Direction
) -> Iterator[KeptEdge]:
    """The edges that lead on from some datasets in that direction."""
    begin = UPSTREAM if direction == "downstream" else DOWNSTREAM
    return edges_of(connection, EDGES.where(among(connection, begin.c.urn, urns)))


def _nodes(connection: Connection, ids: Collection[int]) -> tuple[dict[int, str], dict[str, State]]:
    """URNs by number, and the states of those that are datasets of the store."""
    node, dataset = tables.lineage_node, tables.dataset
    joined = node.outerjoin(dataset, dataset.c.urn == node.c.urn)
    statement = select(node.c.id, node.c.urn, dataset.c.state).select_from(joined)
    rows = connection.execute(statement.where(among(connection, node.c.id, ids))).all()
    return {id: urn for id, urn, _ in rows}, {urn: state for _, urn, state in rows if state}


def _ends_of_jobs(connection: Connection) -> dict[str, set[str]]:
    """What reporters say that jobs read and write, by job."""
    said = tables.lineage_job.c
    ends: dict[str, set[str]] = {}
    for row in connection.execute(select(said.job, said.body)):
        job = from_json(row.body, Job)
        ends.setdefault(row.job, set()).update((*job.inputs, *job.outputs))
    return ends


def _states(connection: Connection, urns: Collection[str]) -> dict[str, State]:
    dataset = tables.dataset.c
    statement = select(dataset.urn, dataset.state).where(among(connection, dataset.urn, urns))
    return {row.urn: row.state for row in connection.execute(statement).all()}


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
