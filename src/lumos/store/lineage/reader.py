"""Reads lineage: edges, upstream and downstream walks, paths between columns, jobs."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec
from sqlalchemy import (
    Connection,
    and_,
    bindparam,
    case,
    exists,
    false,
    func,
    not_,
    or_,
    select,
    union_all,
)

from lumos.model.catalog import CatalogEntity, Job, consumer_name
from lumos.model.dataset import Lineage, UpstreamEdge
from lumos.model.json_codec import from_json
from lumos.model.lineage import Script, UnparsedStatement
from lumos.model.paths import overlap
from lumos.model.urn import SCHEME, Urn
from lumos.store import tables
from lumos.store.database import Database
from lumos.store.datasets import DatasetState
from lumos.store.lineage import graph
from lumos.store.lineage.edges import (
    ASPECT_REPORTER,
    DOWNSTREAM,
    EDGE,
    EDGES,
    REPORTER,
    UPSTREAM,
    LineageReporter,
    MergedEdge,
    StoredEdge,
    current_urns,
    downstream_of,
    edges_of,
    merge_edges,
    node_ids,
    upstream_of,
)
from lumos.store.lineage.report_contents import (
    all_unparsed,
    owners_by,
    owners_of,
    scripts_of,
    without_scripts,
)
from lumos.store.lineage.reported_items import JOBS, reported_consumers
from lumos.store.lineage.walks import (
    ColumnNode,
    ColumnPaths,
    ColumnStep,
    ColumnWalk,
    Direction,
    Link,
    ReachedColumn,
    ReachedDataset,
    Walk,
    walk_columns,
)
from lumos.store.statements import among

if TYPE_CHECKING:
    from lumos.store.lineage.compact_graph import CompactGraph

# Up to this number of nodes, querying level by level is faster than loading all edges.
_MAX_QUERIED_NODES: Final = 10_000
_PAGED: Final = {"yield_per": 1000}


class LineageReader:
    """Reads the lineage of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def edges_of(self, urn: str, direction: Direction) -> tuple[StoredEdge, ...]:
        """The edges of all reporters into (upstream) or out of a dataset."""
        with self._database.reading() as connection:
            known = current_urns(connection, [urn])
            return tuple(sorted(_edges_at(connection, known.values(), direction), key=_edge_order))

    def of_dataset(self, urn: str) -> Lineage | None:
        """The edges of a dataset with that current URN, merged from all reporters."""
        with self._database.reading() as connection:
            edges = sorted(edges_of(connection, _EDGES_AT, {"urn": urn}), key=_edge_order)
        upstream = merge_edges(each for each in edges if each.downstream == urn)
        downstream = merge_edges(each for each in edges if each.upstream == urn)
        if not upstream and not downstream:
            return None
        return Lineage(
            upstream=tuple(map(upstream_of, upstream)),
            downstream=tuple(map(downstream_of, downstream)),
        )

    def of_datasets(self, urns: Collection[str]) -> dict[str, Lineage]:
        """The edges of datasets by current URN, merged from all reporters; others are omitted."""
        upstream: dict[str, list[UpstreamEdge]] = {}
        downstream: dict[str, list[UpstreamEdge]] = {}
        with self._database.reading() as connection:
            for edge in merge_edges(_edges_at(connection, urns, "upstream")):
                upstream.setdefault(edge.downstream, []).append(upstream_of(edge))
            for edge in merge_edges(_edges_at(connection, urns, "downstream")):
                downstream.setdefault(edge.upstream, []).append(downstream_of(edge))
        return {
            urn: Lineage(
                upstream=tuple(upstream.get(urn, ())), downstream=tuple(downstream.get(urn, ()))
            )
            for urn in upstream.keys() | downstream.keys()
        }

    def find_by_name(self, name: str) -> tuple[str, ...]:
        """Reported URNs that end with a name or path, with dots or slashes between its parts.

        If there are none, the consumers of that name, such as dashboards.
        """
        node = tables.lineage_node.c.urn
        parts = [part for part in name.replace(".", "/").split("/") if part]
        if not parts:
            return ()
        ending = Urn.of("any", parts).path_text
        has_ending = func.lower(node).endswith(f"/{ending.lower()}", autoescape=True)
        statement = select(node).where(has_ending, _IS_REPORTED).order_by(node).limit(5)
        with self._database.reading() as connection:
            urns = tuple(connection.scalars(statement))
            return urns or tuple(
                urn
                for urn, entity in sorted(reported_consumers(connection).items())
                if name.casefold()
                in ((entity.display_name or "").casefold(), consumer_name(entity).casefold())
            )

    def between(self, links: Iterable[tuple[str, str]]) -> tuple[MergedEdge, ...]:
        """The merged edges between the given pairs of upstream and downstream URNs."""
        pairs = {tuple(link) for link in links}
        with self._database.reading() as connection:
            ends = (
                among(connection, node.c.urn, {pair[side] for pair in pairs})
                for side, node in enumerate((UPSTREAM, DOWNSTREAM))
            )
            edges = edges_of(connection, EDGES.where(*ends))
            return merge_edges(edge for edge in edges if (edge.upstream, edge.downstream) in pairs)

    def edges_into(self, urns: Collection[str]) -> Iterator[StoredEdge]:
        """The edges of all reporters into the given datasets, unordered."""
        with self._database.reading() as connection:
            yield from _edges_at(connection, urns, "upstream")

    def jobs_among(self, urns: Collection[str]) -> frozenset[str]:
        """Those of the given URNs that are jobs."""
        item = tables.item.c
        with self._database.reading() as connection:
            is_given = among(connection, item.key, urns)
            statement = select(item.key).where(item.kind == JOBS, is_given)
            return frozenset(connection.scalars(statement))

    def consumers(self, urns: Collection[str] | None = None) -> dict[str, CatalogEntity]:
        """All reported consumers of datasets, or those with the given URNs, by URN."""
        with self._database.reading() as connection:
            return reported_consumers(connection, urns)

    def with_downstream(self, urns: Collection[str]) -> frozenset[str]:
        """Those of the given datasets that have other datasets downstream."""
        node = tables.lineage_node.c
        outgoing = select(EDGE.id).where(EDGE.upstream == node.id, EDGE.downstream != node.id)
        with self._database.reading() as connection:
            statement = select(node.urn).where(among(connection, node.urn, urns), outgoing.exists())
            return frozenset(connection.scalars(statement))

    def all(self) -> Iterator[StoredEdge]:
        """Every edge of every reporter, unordered."""
        with self._database.reading() as connection:
            yield from edges_of(connection, EDGES.execution_options(**_PAGED))

    def count(self) -> int:
        """The number of edges of all reporters."""
        with self._database.reading() as connection:
            statement = select(func.count()).select_from(tables.lineage_edge)
            return int(connection.execute(statement).scalar_one())

    def count_links_outside(self) -> int:
        """The number of reported links from or to a table that is not a dataset of the store.

        Such a table is only known from lineage. Links from and to jobs and consumers are not
        counted.
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
            .where(
                REPORTER.name.not_like(f"{ASPECT_REPORTER}%"),
                not_(or_(*is_job)),
                not_(and_(*is_dataset)),
            )
            .distinct()
        )
        with self._database.reading() as connection:
            ends = (_is_no_consumer(connection, end.c.urn) for end in (UPSTREAM, DOWNSTREAM))
            links = links.where(*ends)
            statement = select(func.count()).select_from(links.subquery())
            return int(connection.execute(statement).scalar_one())

    def ends(self) -> Iterator[str]:
        """All URNs with an edge, whether they are datasets of the store or not."""
        statement = select(tables.lineage_node.c.urn).where(_HAS_EDGE)
        with self._database.reading() as connection:
            yield from connection.scalars(statement)

    def outside(self, text: str | None = None, *, limit: int | None = None) -> tuple[str, ...]:
        """Tables with edges that are not datasets of the store, ordered by URN.

        With `text`, only those whose paths contain all of its words.
        """
        node = tables.lineage_node.c.urn
        with self._database.reading() as connection:
            conditions = (*_outside_conditions(text), _is_no_consumer(connection, _NODE.urn))
            statement = select(node).where(*conditions).order_by(node).limit(limit)
            return tuple(connection.scalars(statement))

    def search_outside(
        self, text: str, *, owner: str | None = None, limit: int | None = None
    ) -> dict[str, tuple[str, ...]]:
        """Tables outside of the store and consumers, and their owners.

        Each word of the text is in their path, name or owners. With `owner`, only those of this
        owner.
        """
        node = tables.lineage_node.c.urn
        with self._database.reading() as connection:
            owners = owners_of(connection)
            consumers = reported_consumers(connection)

            def is_owned(is_meant: Callable[[str], bool]) -> Any:
                owned = [urn for urn, names in owners.items() if any(map(is_meant, names))]
                return among(connection, node, owned)

            def has_word(word: str) -> Any:
                named = [
                    urn
                    for urn, each in consumers.items()
                    if word in f"{consumer_name(each)} {each.description or ''}".lower()
                ]
                in_owner = is_owned(lambda name: word in name.lower())
                return or_(in_owner, among(connection, node, named))

            conditions = [*_outside_conditions(text, has_word)]
            if owner is not None:
                conditions.append(is_owned(lambda name: name.lower() == owner.lower()))
            statement = select(node).where(*conditions).order_by(node).limit(limit)
            return {urn: owners.get(urn, ()) for urn in connection.scalars(statement)}

    def count_outside(self, text: str | None = None) -> int:
        """The number of tables with edges that are not datasets of the store; see `outside`."""
        with self._database.reading() as connection:
            conditions = (*_outside_conditions(text), _is_no_consumer(connection, _NODE.urn))
            statement = select(func.count()).select_from(tables.lineage_node).where(*conditions)
            return int(connection.execute(statement).scalar_one())

    def reporter_names(self, prefix: str) -> Iterator[str]:
        """The names of reporters with a prefix."""
        statement = select(REPORTER.name).where(REPORTER.name.startswith(prefix, autoescape=True))
        with self._database.reading() as connection:
            yield from connection.scalars(statement)

    def active_reporters(self, prefix: str) -> tuple[str, ...]:
        """The names of reporters with a prefix that have edges, jobs or consumers."""
        item = tables.lineage_item.c
        statement = select(REPORTER.name).where(
            REPORTER.name.startswith(prefix, autoescape=True),
            or_(
                exists().where(EDGE.reporter == REPORTER.id),
                exists().where(item.reporter == REPORTER.id),
            ),
        )
        with self._database.reading() as connection:
            return tuple(connection.scalars(statement))

    def reporters(self) -> tuple[LineageReporter, ...]:
        """The reporters of lineage, by name."""
        reporter = tables.lineage_reporter.c
        statement = (
            select(reporter.name, reporter.reported_at, func.count(EDGE.id))
            .select_from(tables.lineage_reporter.outerjoin(tables.lineage_edge))
            .group_by(reporter.id, reporter.name, reporter.reported_at)
        )
        with self._database.reading() as connection:
            return tuple(sorted(LineageReporter(*row) for row in connection.execute(statement)))

    def memories(self, reporters: Collection[str]) -> dict[str, bytes]:
        """The state that each reporter saved with `LineageWriter.save_memory`, by name."""
        reporter = tables.lineage_reporter.c
        statement = select(reporter.name, reporter.memory).where(reporter.memory.is_not(None))
        with self._database.reading() as connection:
            is_given = among(connection, reporter.name, reporters)
            return {row.name: row.memory for row in connection.execute(statement.where(is_given))}

    def jobs(self) -> Iterator[Job]:
        """Every job with its runs, ordered by URN; inputs and outputs have current URNs."""
        item = tables.item.c
        statement = select(item.body).where(item.kind == JOBS).order_by(item.key)
        with self._database.reading() as connection:
            current_urns = {row.urn: row.dataset_urn for row in connection.execute(_ALIASES)}
            for body in connection.scalars(statement, execution_options=_PAGED):
                yield _with_current_urns(from_json(body, Job), current_urns)

    def unknown_job_ends(self) -> dict[str, set[str]]:
        """The reported inputs and outputs of each job that are not in the store."""
        item = tables.item.c
        with self._database.reading() as connection:
            ends = _inputs_and_outputs(connection)
            all_ends = set().union(*ends.values())
            keys = select(item.key).where(item.kind == JOBS, among(connection, item.key, all_ends))
            stored = {*_states(connection, all_ends), *connection.scalars(keys)}
        return {urn: job_ends - stored for urn, job_ends in ends.items() if job_ends - stored}

    def jobs_by_dataset(self) -> dict[str, set[str]]:
        """The jobs that read or write each dataset, as reported."""
        jobs: dict[str, set[str]] = {}
        with self._database.reading() as connection:
            for job, ends in _inputs_and_outputs(connection).items():
                for urn in ends:
                    jobs.setdefault(urn, set()).add(job)
        return jobs

    def job(self, urn: str) -> Job | None:
        item = tables.item.c
        statement = select(item.body).where(item.kind == JOBS, item.key == urn)
        with self._database.reading() as connection:
            body = connection.execute(statement).scalar_one_or_none()
            if body is None:
                return None
            job = from_json(body, Job)
            return _with_current_urns(job, current_urns(connection, [*job.inputs, *job.outputs]))

    def edges_by(self, reporter: str) -> tuple[StoredEdge, ...]:
        """All edges of one reporter."""
        with self._database.reading() as connection:
            edges = edges_of(connection, EDGES.where(REPORTER.name == reporter))
            return tuple(sorted(edges, key=_edge_order))

    def scripts(self, urns: Collection[str]) -> dict[str, tuple[tuple[str, Script], ...]]:
        """The SQL texts that write each of the given datasets, with their reporters."""
        with self._database.reading() as connection:
            return scripts_of(connection, urns)

    def unparsed(self) -> tuple[tuple[str, UnparsedStatement], ...]:
        """Every statement that could not be parsed, with its reporter."""
        with self._database.reading() as connection:
            return all_unparsed(connection)

    def owners(self, urns: Collection[str] | None = None) -> dict[str, tuple[str, ...]]:
        """The reported owners of the given datasets, or of all datasets, scanned or not."""
        with self._database.reading() as connection:
            return owners_of(connection, urns)

    def owners_by(self, reporter: str) -> dict[str, tuple[str, ...]]:
        """The owners by one reporter, by URN."""
        with self._database.reading() as connection:
            return owners_by(connection, reporter)

    def without_scripts(self, prefix: str) -> set[str]:
        """Reporters with a prefix that have edges but no SQL texts."""
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
        """The datasets upstream or downstream of one or several datasets, up to `depth` edges away.

        If there are more than `limit`, only the nearest are listed.
        """
        with self._database.reading() as connection:
            known = current_urns(connection, [urn, *others])
            starts = dict.fromkeys(known[each] for each in (urn, *others))
            ids = node_ids(connection, starts)
            found = graph.Reach({}, [], 0, truncated=False)
            if ids:
                found = self._reach(connection, ids.values(), direction, depth, limit)
            urns, states = _nodes(connection, found.depths)
            # Starts without any edge may still be datasets of the store.
            unlinked = [each for each in starts if each not in ids]
            states |= _states(connection, unlinked) if unlinked else {}
        depth_of = {urns[each]: steps for each, steps in found.depths.items()} | dict.fromkeys(
            unlinked, 0
        )
        links = (
            (urns[before], urns[after])[:: 1 if direction == "downstream" else -1]
            for before, after in found.links
        )
        nodes = (ReachedDataset(each, steps, states.get(each)) for each, steps in depth_of.items())
        return Walk(
            start=known[urn],
            direction=direction,
            depth=depth,
            nodes=tuple(sorted(nodes, key=lambda node: (node.depth, node.urn))),
            links=tuple(sorted(Link(*link) for link in links)),
            total=found.total + len(unlinked),
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
        """The columns that a column is derived from (upstream) or that depend on it.

        The walk does not continue from columns that are only influenced, unless `past_uses` is
        set. Without `with_uses`, it follows derivations only.
        """
        with self._database.reading() as connection:
            start = ColumnNode(current_urns(connection, [urn])[urn], column)
            found = walk_columns(
                start,
                lambda urns: _edges_at(connection, urns, direction),
                direction=direction,
                depth=depth,
                past_uses=past_uses,
                with_uses=with_uses,
            )
            states = _states(connection, {node.urn for node in found.depths})
        nodes = (
            ReachedColumn(*node, depth_of, node not in found.direct, states.get(node.urn))
            for node, depth_of in found.depths.items()
        )
        return ColumnWalk(
            start=start,
            direction=direction,
            depth=depth,
            nodes=tuple(sorted(nodes, key=lambda node: (node.depth, node.urn, node.column or ""))),
            steps=tuple(sorted(found.steps, key=_step_order)),
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
        """Downstream paths from one column to another, shortest first.

        A path to a dataset as a whole is a path to each of its columns.
        """
        with self._database.reading() as connection:
            known = current_urns(connection, [start[0], goal[0]])
            begin = ColumnNode(known[start[0]], start[1])
            end = ColumnNode(known[goal[0]], goal[1])
            found = walk_columns(
                begin,
                lambda urns: _edges_at(connection, urns, "downstream"),
                direction="downstream",
                depth=depth,
                past_uses=past_uses,
                with_uses=with_uses,
                within=self._upstream_closure(connection, end.urn),
            )
        goals = {node for node in found.depths if _matches(node, end)}
        steps = ((step.upstream, step.downstream, step) for step in found.steps)
        paths, truncated = graph.shortest_paths(begin, goals, steps, limit=limit)
        return ColumnPaths(
            start=begin,
            goal=end,
            paths=tuple(tuple(path) for path in paths),
            truncated=truncated or found.truncated,
        )

    def _upstream_closure(self, connection: Connection, urn: str) -> set[str]:
        """A dataset and everything upstream of it."""
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

        compact = self._cached_graph(connection)
        if compact is None:
            max_nodes = _MAX_QUERIED_NODES if limit is None else min(_MAX_QUERIED_NODES, limit)
            found = graph.walk_graph(starts, expand, depth=depth, limit=max_nodes)
            if found is not None:
                return found
            compact = self._load_graph(connection)
        return compact.reach(starts, direction=direction, depth=depth, limit=limit)

    def _cached_graph(self, connection: Connection) -> "CompactGraph | None":
        """The graph that an earlier walk loaded, or None if edges have changed since."""
        cached: tuple[str, CompactGraph] | None = self._database.cache.get(_CACHE_KEY)
        if cached is None or cached[0] != connection.execute(_REVISION).scalar():
            return None
        return cached[1]

    def _load_graph(self, connection: Connection) -> "CompactGraph":
        """Load all links and cache them for later walks."""
        import numpy as np

        from lumos.store.lineage.compact_graph import CompactGraph

        statement = select(EDGE.upstream, EDGE.downstream).distinct()
        rows = connection.execute(statement, execution_options=_PAGED)
        ends = np.fromiter((id for row in rows for id in row), dtype=np.int64)
        loaded = CompactGraph(ends[::2], ends[1::2])
        self._database.cache[_CACHE_KEY] = connection.execute(_REVISION).scalar(), loaded
        return loaded


_CACHE_KEY: Final = "lineage graph"
_REVISION: Final = select(tables.lineage_revision.c.revision)
_NODE: Final = tables.lineage_node.c
_HAS_EDGE: Final = or_(
    exists().where(EDGE.upstream == _NODE.id), exists().where(EDGE.downstream == _NODE.id)
)
# Nodes are not deleted with their edges, since other transactions may use them. Nodes that
# no reporter mentions any more are ignored.
_IS_REPORTED: Final = or_(
    _HAS_EDGE,
    exists().where(tables.lineage_script.c.dataset == _NODE.id),
    exists().where(EDGE.job == _NODE.id),
)
_WORD_SEPARATORS: Final = re.compile(r"[\s./]+")
_LIKE_WILDCARDS: Final = re.compile(r"[%_!]")
_ALIASES: Final = select(tables.alias.c.urn, tables.alias.c.dataset_urn)
# Built once: building a statement takes longer than running it.
# One statement for both ends; an edge from a dataset to itself is in the first half only.
_EDGES_AT: Final = union_all(
    EDGES.where(DOWNSTREAM.c.urn == bindparam("urn")),
    EDGES.where(UPSTREAM.c.urn == bindparam("urn"), DOWNSTREAM.c.urn != bindparam("urn")),
)


def _outside_conditions(
    text: str | None, or_has_word: Callable[[str], Any] = lambda _: false()
) -> Iterator[Any]:
    """The conditions of `LineageReader.outside`, for `tables.lineage_node`.

    `or_has_word` is a condition for words that a path does not contain.
    """
    dataset, item = tables.dataset.c, tables.item.c
    yield _HAS_EDGE
    yield not_(exists().where(dataset.urn == _NODE.urn))
    yield not_(exists().where(item.kind == JOBS, item.key == _NODE.urn))
    words = [word for word in _WORD_SEPARATORS.split((text or "").lower()) if word]
    if text is not None and not words:
        yield false()
    for word in words:
        # The platform before the first slash is not part of the path.
        part = _LIKE_WILDCARDS.sub(r"!\g<0>", Urn.of("any", [word]).path_text.lower())
        in_path = func.lower(_NODE.urn).like(f"{SCHEME}%/%{part}%", escape="!")
        yield or_(in_path, or_has_word(word))


def _is_no_consumer(connection: Connection, urn: Any) -> Any:
    is_consumer = among(connection, urn, reported_consumers(connection))
    # SQLAlchemy negates `= ANY(...)` of PostgreSQL to `!= ANY(...)`.
    return case((is_consumer, 1), else_=0) == 0


def _ends(direction: Direction) -> tuple[Any, Any]:
    ends = EDGE.upstream, EDGE.downstream
    return ends if direction == "downstream" else ends[::-1]


def _edges_at(
    connection: Connection, urns: Iterable[str], direction: Direction
) -> Iterator[StoredEdge]:
    """The edges that lead away from the given datasets in a direction."""
    begin = UPSTREAM if direction == "downstream" else DOWNSTREAM
    return edges_of(connection, EDGES.where(among(connection, begin.c.urn, urns)))


def _nodes(
    connection: Connection, ids: Collection[int]
) -> tuple[dict[int, str], dict[str, DatasetState]]:
    """URNs by node id, and the states of the URNs that are datasets of the store."""
    node, dataset = tables.lineage_node, tables.dataset
    joined = node.outerjoin(dataset, dataset.c.urn == node.c.urn)
    statement = select(node.c.id, node.c.urn, dataset.c.state).select_from(joined)
    rows = connection.execute(statement.where(among(connection, node.c.id, ids))).all()
    return {id: urn for id, urn, _ in rows}, {urn: state for _, urn, state in rows if state}


def _inputs_and_outputs(connection: Connection) -> dict[str, set[str]]:
    """The reported inputs and outputs of jobs, by job."""
    reported = tables.lineage_item.c
    ends: dict[str, set[str]] = {}
    is_job = reported.job.startswith(SCHEME)
    for row in connection.execute(select(reported.job, reported.body).where(is_job)):
        job = from_json(row.body, Job)
        ends.setdefault(row.job, set()).update((*job.inputs, *job.outputs))
    return ends


def _states(connection: Connection, urns: Collection[str]) -> dict[str, DatasetState]:
    dataset = tables.dataset.c
    statement = select(dataset.urn, dataset.state).where(among(connection, dataset.urn, urns))
    return {row.urn: row.state for row in connection.execute(statement).all()}


def _with_current_urns(job: Job, current_urns: dict[str, str]) -> Job:
    inputs, outputs = (
        tuple(dict.fromkeys(current_urns.get(urn, urn) for urn in urns))
        for urns in (job.inputs, job.outputs)
    )
    return msgspec.structs.replace(job, inputs=inputs, outputs=outputs)


def _matches(node: ColumnNode, goal: ColumnNode) -> bool:
    if node.urn != goal.urn:
        return False
    return node.column is None or goal.column is None or overlap(node.column, goal.column)


def _edge_order(edge: StoredEdge) -> tuple[str, str, str, str]:
    return edge.upstream, edge.downstream, edge.origin, edge.job or ""


def _step_order(step: ColumnStep) -> tuple[str, str, str, str]:
    up, down = step.upstream, step.downstream
    return up.urn, up.column or "", down.urn, down.column or ""
