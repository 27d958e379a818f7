"""Writes lineage: a report replaces the earlier one of the same reporter."""

import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import Connection, bindparam, delete, or_, select, update

from lumos.model.catalog import CatalogEntity, Job
from lumos.model.dataset import Lineage, UpstreamEdge
from lumos.model.json_codec import from_json, to_json
from lumos.model.lineage import Edge, Script, UnparsedStatement
from lumos.store import tables
from lumos.store.database import lock_in_transaction
from lumos.store.lineage import report_contents
from lumos.store.lineage.edges import (
    ASPECT_REPORTER,
    EDGE,
    NO_JOB,
    EdgeBody,
    LineageChanges,
    ReportedUpstream,
    add_nodes,
    all_mappings,
    all_uses,
    body_of,
    current_urns,
    node_ids,
    reported_upstream,
)
from lumos.store.lineage.reported_items import (
    ReportedItem,
    add_items,
    replace_items,
    reporters_with_items,
)
from lumos.store.statements import among, replace

# The id of the only row of `lineage_revision`.
_REVISION_ID: Final = 1


class _EdgeChanges:
    """The changed edges of one reporter, as pairs of upstream and downstream node ids."""

    def __init__(self) -> None:
        self.added: list[tuple[int, int]] = []
        self.changed: list[tuple[int, int]] = []
        self.removed: list[tuple[int, int]] = []

    @property
    def ends(self) -> list[tuple[int, int]]:
        return [*self.added, *self.changed, *self.removed]

    @property
    def nodes(self) -> set[int]:
        return {id for ends in self.ends for id in ends}


class _EdgeKey(NamedTuple):
    """The unique key of an edge."""

    reporter: int
    upstream: int
    downstream: int
    job: int


class ReporterContents(NamedTuple):
    """The lineage by one reporter: edges, jobs and consumers (`items`), SQL texts and owners."""

    reporter: str
    edges: Sequence[Edge]
    items: Sequence[ReportedItem] = ()
    scripts: Sequence[Script] = ()
    owners: report_contents.Owners = MappingProxyType({})
    unparsed: Sequence[UnparsedStatement] = ()


class LineageWriter:
    """Writes lineage in a transaction, which calls `finish` at its end."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._aspects: dict[str, tuple[list[Edge], datetime | None]] = {}
        self._reported: dict[str, tuple[ReportedUpstream, ...]] = {}
        self._has_graph_changes = False
        self._changed_nodes: set[int] = set()
        self._renamed_aspects: set[str] = set()
        self.changed_items: set[str] = set()

    def report(
        self,
        reporter: str,
        edges: Sequence[Edge],
        jobs: Sequence[Job] = (),
        scripts: Sequence[Script] = (),
        owners: report_contents.Owners = MappingProxyType({}),
        *,
        unparsed: Sequence[UnparsedStatement] = (),
        consumers: Sequence[CatalogEntity] = (),
        at: datetime,
    ) -> LineageChanges:
        """Replace everything that a reporter reported: edges, jobs, consumers and SQL texts.

        SQL texts that are too long are not stored.
        """
        report = ReporterContents(reporter, edges, (*jobs, *consumers), scripts, owners, unparsed)
        return self.report_all([report], at=at)[0]

    def report_all(
        self, reports: Sequence[ReporterContents], *, at: datetime
    ) -> list[LineageChanges]:
        """Replace what several reporters reported, as `report` does, with few statements."""
        if self._connection.dialect.name == "sqlite":
            # Overwrite deleted SQL, which may be confidential, in free pages.
            self._connection.exec_driver_sql("PRAGMA secure_delete = ON")
        changed = self._replace({each.reporter: each.edges for each in reports}, at=at)
        ids = self._reporter_ids([each.reporter for each in reports])
        items = {ids[each.reporter]: each.items for each in reports}
        for id in reporters_with_items(self._connection, items):
            self.changed_items |= replace_items(self._connection, id, items[id], at=at)
        datasets = {script.dataset for each in reports for script in each.scripts}
        nodes = self._node_ids({urn for urn in datasets if urn is not None})
        by_id = [(ids[each.reporter], each) for each in reports]
        report_contents.replace_scripts(
            self._connection, {id: each.scripts for id, each in by_id}, nodes
        )
        report_contents.replace_owners(self._connection, {id: each.owners for id, each in by_id})
        report_contents.replace_unparsed(
            self._connection, {id: each.unparsed for id, each in by_id}
        )
        return [changed[each.reporter] for each in reports]

    def add(
        self, reporter: str, edges: Sequence[Edge], jobs: Sequence[Job] = (), *, at: datetime
    ) -> LineageChanges:
        """Add or update edges and jobs of a reporter, without deleting others."""
        changed = self._replace({reporter: edges}, at=at, add_only=True)
        id = self._reporter_ids([reporter])[reporter]
        self.changed_items |= add_items(self._connection, id, jobs, at=at)
        return changed[reporter]

    def save_memory(self, reporter: str, memory: bytes) -> None:
        """Store the state that a reporter needs to interpret later input."""
        table = tables.lineage_reporter
        statement = update(table).where(table.c.name == reporter).values(memory=memory)
        self._connection.execute(statement)

    def retract(self, reporter: str, links: Collection[tuple[str, str]]) -> LineageChanges:
        """Delete the edges of a reporter between the given pairs of datasets, for all jobs."""
        table = tables.lineage_reporter.c
        ids = self._connection.scalars(select(table.id).where(table.name == reporter)).all()
        nodes = self._node_ids({urn for link in links for urn in link})
        pairs = {(nodes[before], nodes[after]) for before, after in links}
        deleted = {
            key: row
            for key, row in self._stored_edges(ids).items()
            if (key.upstream, key.downstream) in pairs
        }
        self._delete(row.id for row in deleted.values())
        self._changed_nodes |= {key.downstream for key in deleted}
        affected = {end for key in deleted for end in (key.upstream, key.downstream)}
        return LineageChanges(removed=len(deleted), touched=self._urns(affected))

    def load_reported(self, urns: Collection[str]) -> None:
        """Load the reported upstream edges of the given datasets with one query."""
        if urns:
            found = reported_upstream(self._connection, urns)
            self._reported |= {urn: found.get(urn, ()) for urn in urns}

    def reported(self, urn: str) -> tuple[ReportedUpstream, ...]:
        """The reported upstream edges of a dataset."""
        if urn not in self._reported:
            self.load_reported([urn])
        return self._reported[urn]

    def save_aspect(self, urn: str, lineage: Lineage, *, writer: str, at: datetime) -> None:
        """Write the lineage aspect of a dataset as edges at the end of the transaction."""
        self._aspects[urn] = _edges_of_aspect(urn, lineage, writer, at), at

    def delete_aspect(self, urn: str) -> None:
        """Delete the edges from the lineage aspect of a dataset."""
        self._aspects[urn] = [], None

    def rename(self, urn: str, to: str) -> None:
        """Move the lineage of a dataset to another URN."""
        self._reported.clear()
        self._has_graph_changes |= _move_edges(self._connection, urn, to)
        reporter = tables.lineage_reporter
        for prefix in _DATASET_REPORTERS:
            is_reporter = reporter.c.name == f"{prefix}{urn}"
            self._connection.execute(
                update(reporter).where(is_reporter).values(name=f"{prefix}{to}")
            )
        self._rename_in_aspects(urn, to)

    def merge_into(self, urn: str, into: str) -> None:
        """Move the edges of a dataset to another one that it is merged into."""
        self._reported.clear()
        self._has_graph_changes |= _move_edges(self._connection, urn, into)
        self._rename_in_aspects(urn, into)
        self._delete_reporters([f"{ASPECT_REPORTER}{urn}"])
        aspect = tables.aspect.c
        statement = select(tables.aspect).where(aspect.urn == into, aspect.name == "lineage")
        if (row := self._connection.execute(statement).one_or_none()) is not None:
            lineage = from_json(row.body, Lineage)
            self.save_aspect(into, lineage, writer=row.writer, at=row.updated_at)

    def _rename_in_aspects(self, urn: str, to: str) -> None:
        self._renamed_aspects |= _rename_in_aspects(self._connection, urn, to)
        node = tables.lineage_node
        downstream = select(EDGE.downstream).join_from(
            tables.lineage_edge, node, node.c.id == EDGE.upstream
        )
        self._changed_nodes |= set(self._connection.scalars(downstream.where(node.c.urn == to)))

    @property
    def has_changes(self) -> bool:
        """Whether the lineage of any dataset, or any job or consumer, changed."""
        return bool(self._changed_nodes or self._renamed_aspects or self.changed_items)

    def changed_datasets(self) -> set[str]:
        """The datasets whose upstream edges changed."""
        return self._renamed_aspects | set(self._urns(self._changed_nodes))

    def finish(self) -> None:
        """Write collected lineage aspects, and a new revision if edges changed."""
        self.flush()
        if self._has_graph_changes:
            # Written at the end, because every writer locks this row until it commits.
            statement = replace(self._connection.dialect.name, tables.lineage_revision)
            row = {"id": _REVISION_ID, "revision": uuid.uuid4().hex}
            self._connection.execute(statement, row)

    @property
    def has_graph_changes(self) -> bool:
        """Whether edges were added or removed; aspects that are not flushed are ignored."""
        return self._has_graph_changes

    def flush(self) -> None:
        """Write the lineage aspects that were collected so far."""
        aspects, self._aspects = self._aspects, {}
        by_time: dict[datetime, dict[str, list[Edge]]] = {}
        for urn, (edges, at) in aspects.items():
            if edges and at is not None:
                by_time.setdefault(at, {})[f"{ASPECT_REPORTER}{urn}"] = edges
        for at, reports in by_time.items():
            self._replace(reports, at=at)
        self._delete_reporters(
            [f"{ASPECT_REPORTER}{urn}" for urn, (edges, _) in aspects.items() if not edges]
        )

    def _replace(
        self, reports: Mapping[str, Sequence[Edge]], *, at: datetime, add_only: bool = False
    ) -> dict[str, LineageChanges]:
        """Replace the edges of the given reporters, or with `add_only` add and update them."""
        # Sorted, so that two writers cannot deadlock.
        lock_in_transaction(self._connection, *(f"lineage {name}" for name in sorted(reports)))
        self._reported.clear()
        reporters = self._update_reporters(reports, at=at)
        urns = {
            urn
            for edges in reports.values()
            for edge in edges
            for urn in (edge.upstream, edge.downstream, edge.job)
            if urn is not None
        }
        nodes = self._node_ids(urns)
        wanted: dict[_EdgeKey, dict[str, Any]] = {}
        for key, edge in _merge_duplicates(
            (_key(reporters[name], edge, nodes), edge)
            for name, edges in reports.items()
            for edge in edges
        ):
            wanted[key] = {
                **key._asdict(),
                "type": edge.type,
                "confidence": edge.confidence,
                "created_by": edge.created_by,
                "first_seen": edge.at,
                "last_seen": at,
                "body": body_of(edge),
            }
        stored = self._stored_edges(reporters.values())
        new = [row for key, row in wanted.items() if key not in stored]
        changed = [
            {"wanted": stored[key].id, **{name: row[name] for name in _UPDATED_COLUMNS}}
            for key, row in wanted.items()
            if key in stored
            and any(getattr(stored[key], name) != row[name] for name in _UPDATED_COLUMNS)
        ]
        deleted = () if add_only else [key for key in stored if key not in wanted]
        if new:
            self._connection.execute(tables.lineage_edge.insert(), new)
        if changed:
            self._connection.execute(_UPDATE, changed)
        self._delete(stored[key].id for key in deleted)
        self._update_last_seen(
            [stored[key].id for key in wanted if key in stored], reporters, add_only, at
        )
        self._has_graph_changes |= bool(new)
        keys = {row.id: key for key, row in stored.items()}
        changed_keys = [keys[each["wanted"]] for each in changed]
        by_reporter: dict[int, _EdgeChanges] = {id: _EdgeChanges() for id in reporters.values()}
        for row in new:
            by_reporter[row["reporter"]].added.append((row["upstream"], row["downstream"]))
        for key in changed_keys:
            by_reporter[key.reporter].changed.append((key.upstream, key.downstream))
        for key in deleted:
            by_reporter[key.reporter].removed.append((key.upstream, key.downstream))
        wanted_edges = Counter(key.reporter for key in wanted)
        nodes_touched = {id for each in by_reporter.values() for id in each.nodes}
        urn_of = self._urns_by_id(nodes_touched)
        self._changed_nodes |= {
            downstream for each in by_reporter.values() for _, downstream in each.ends
        }
        return {
            name: LineageChanges(
                added=len(changes.added),
                changed=len(changes.changed),
                removed=len(changes.removed),
                unchanged=wanted_edges[id] - len(changes.added) - len(changes.changed),
                touched=tuple(sorted(urn_of[node] for node in changes.nodes)),
            )
            for name, id in reporters.items()
            for changes in (by_reporter[id],)
        }

    def _update_last_seen(
        self, ids: Sequence[int], reporters: Mapping[str, int], add_only: bool, at: datetime
    ) -> None:
        if not ids:
            return
        if add_only:
            rows = [{"wanted": id, "at": at} for id in ids]
            self._connection.execute(_UPDATE_LAST_SEEN, rows)
            return
        is_reported = among(self._connection, EDGE.reporter, reporters.values())
        statement = update(tables.lineage_edge).where(is_reported, EDGE.last_seen < at)
        self._connection.execute(statement.values(last_seen=at))

    def _stored_edges(self, reporters: Iterable[int]) -> dict[_EdgeKey, Any]:
        statement = _SELECT_EDGES.where(among(self._connection, EDGE.reporter, reporters))
        return {
            _EdgeKey(row.reporter, row.upstream, row.downstream, row.job): row
            for row in self._connection.execute(statement).all()
        }

    def _delete(self, ids: Iterable[int]) -> None:
        self._reported.clear()
        if deleted := list(ids):
            is_deleted = among(self._connection, EDGE.id, deleted)
            self._connection.execute(delete(tables.lineage_edge).where(is_deleted))
            self._has_graph_changes = True

    def _reporter_ids(self, names: Collection[str]) -> dict[str, int]:
        reporter = tables.lineage_reporter.c
        is_named = among(self._connection, reporter.name, names)
        ids = select(reporter.id, reporter.name).where(is_named)
        return {row.name: row.id for row in self._connection.execute(ids)}

    def _update_reporters(self, names: Collection[str], *, at: datetime) -> dict[str, int]:
        """Set the time of the last report of reporters, and return their ids by name."""
        statement = _upsert_reporters(self._connection.dialect.name)
        rows = [{"name": name, "reported_at": at} for name in sorted(names)]
        if rows:
            self._connection.execute(statement, rows)
        return self._reporter_ids(names)

    def _node_ids(self, urns: Collection[str]) -> dict[str, int]:
        """The node ids of URNs; former URNs are resolved."""
        if not urns:
            return {}
        names = current_urns(self._connection, urns)
        ids = add_nodes(self._connection, set(names.values()))
        return {urn: ids[name] for urn, name in names.items()}

    def _urns(self, ids: Collection[int]) -> tuple[str, ...]:
        return tuple(sorted(self._urns_by_id(ids).values()))

    def _urns_by_id(self, ids: Collection[int]) -> dict[int, str]:
        node = tables.lineage_node.c
        statement = select(node.id, node.urn).where(among(self._connection, node.id, ids))
        return {row.id: row.urn for row in self._connection.execute(statement)}

    def _delete_reporters(self, names: Collection[str]) -> None:
        """Delete reporters with everything they reported."""
        reporter = tables.lineage_reporter
        chosen = among(self._connection, reporter.c.name, names)
        ids = self._connection.scalars(select(reporter.c.id).where(chosen)).all()
        if ids:
            deleted = self._stored_edges(ids)
            self._changed_nodes |= {key.downstream for key in deleted}
            self._delete(row.id for row in deleted.values())
            report_contents.delete_contents(self._connection, ids)
            chosen = among(self._connection, reporter.c.id, ids)
            self._connection.execute(delete(reporter).where(chosen))


def _edges_of_aspect(urn: str, lineage: Lineage, writer: str, at: datetime) -> list[Edge]:
    edges = (
        *((each.urn, urn, each) for each in lineage.upstream),
        *((urn, each.urn, each) for each in lineage.downstream),
    )
    return [
        Edge(
            upstream=upstream,
            downstream=downstream,
            origin=f"{ASPECT_REPORTER}{urn}",
            at=at,
            type=each.type,
            created_by=writer,
            columns=each.columns,
            uses=each.uses,
        )
        for upstream, downstream, each in edges
    ]


def _key(reporter: int, edge: Edge, nodes: Mapping[str, int]) -> _EdgeKey:
    job = NO_JOB if edge.job is None else nodes[edge.job]
    return _EdgeKey(reporter, nodes[edge.upstream], nodes[edge.downstream], job)


def _merge_duplicates(edges: Iterable[tuple[_EdgeKey, Edge]]) -> Iterable[tuple[_EdgeKey, Edge]]:
    """Merge the edges with the same key."""
    edges_by_key: dict[_EdgeKey, list[Edge]] = {}
    for key, edge in edges:
        edges_by_key.setdefault(key, []).append(edge)
    for key, group in edges_by_key.items():
        if len(group) == 1:
            yield key, group[0]
            continue
        yield (
            key,
            msgspec.structs.replace(
                group[0],
                at=min(edge.at for edge in group),
                type=group[0].type if len({edge.type for edge in group}) == 1 else "TRANSFORMED",
                confidence=max(edge.confidence for edge in group),
                columns=all_mappings(edge.columns for edge in group),
                uses=all_uses(edge.uses for edge in group),
            ),
        )


def _upsert_reporters(dialect: str) -> Any:
    from sqlalchemy.dialects import postgresql, sqlite

    insert_into = postgresql.insert if dialect == "postgresql" else sqlite.insert
    insert = insert_into(tables.lineage_reporter)
    return insert.on_conflict_do_update(
        index_elements=["name"], set_={"reported_at": insert.excluded.reported_at}
    )


_UPDATED_COLUMNS: Final = ("type", "confidence", "body")
_SELECT_EDGES: Final = select(
    EDGE.id,
    EDGE.reporter,
    EDGE.upstream,
    EDGE.downstream,
    EDGE.job,
    *(EDGE[name] for name in _UPDATED_COLUMNS),
)
_UPDATE: Final = (
    update(tables.lineage_edge)
    .where(EDGE.id == bindparam("wanted"))
    .values({name: bindparam(name) for name in _UPDATED_COLUMNS})
)
_UPDATE_LAST_SEEN: Final = (
    update(tables.lineage_edge)
    .where(EDGE.id == bindparam("wanted"))
    .values(last_seen=bindparam("at"))
)


# Prefixes of reporters for a single dataset, followed by its URN.
_DATASET_REPORTERS: Final = (ASPECT_REPORTER, "view:")


def _move_edges(connection: Connection, urn: str, to: str) -> bool:
    """Move the edges and SQL texts of one URN to another; return False if it has no node.

    Edges between the two are deleted.
    """
    ids = node_ids(connection, [urn, to])
    if urn not in ids:
        return False
    node = tables.lineage_node
    if to not in ids:
        connection.execute(update(node).where(node.c.id == ids[urn]).values(urn=to))
        return True
    old, new = ids[urn], ids[to]
    is_adjacent = or_(*(each.in_((old, new)) for each in (EDGE.upstream, EDGE.downstream)))
    rows = connection.execute(select(tables.lineage_edge).where(is_adjacent)).all()
    edges_of_new = {
        (row.reporter, row.upstream, row.downstream, row.job): row
        for row in rows
        if old not in (row.upstream, row.downstream)
    }
    for row in rows:
        if old not in (row.upstream, row.downstream):
            continue
        ends = {
            side: new if getattr(row, side) == old else getattr(row, side)
            for side in ("upstream", "downstream")
        }
        duplicate = edges_of_new.get((row.reporter, ends["upstream"], ends["downstream"], row.job))
        is_self_edge = ends["upstream"] == ends["downstream"] and row.upstream != row.downstream
        if duplicate is None and not is_self_edge:
            statement = update(tables.lineage_edge).where(EDGE.id == row.id).values(**ends)
            connection.execute(statement)
            continue
        connection.execute(delete(tables.lineage_edge).where(EDGE.id == row.id))
        if duplicate is not None and not is_self_edge:
            first = min(duplicate.first_seen, row.first_seen)
            merged = {"body": _merge_bodies(duplicate.body, row.body), "first_seen": first}
            connection.execute(
                update(tables.lineage_edge).where(EDGE.id == duplicate.id).values(merged)
            )
    script = tables.lineage_script
    connection.execute(update(script).where(script.c.dataset == old).values(dataset=new))
    connection.execute(delete(node).where(node.c.id == old))
    return True


def _rename_in_aspects(connection: Connection, urn: str, to: str) -> set[str]:
    """Replace a URN in the lineage aspects of other datasets; return the changed datasets."""
    changed: set[str] = set()
    edge, reporter, node = EDGE, tables.lineage_reporter.c, tables.lineage_node
    joined = tables.lineage_edge.join(tables.lineage_reporter, reporter.id == edge.reporter).join(
        node, or_(node.c.id == edge.upstream, node.c.id == edge.downstream)
    )
    statement = (
        select(reporter.name)
        .distinct()
        .select_from(joined)
        .where(node.c.urn == to, reporter.name.startswith(ASPECT_REPORTER, autoescape=True))
    )
    urns = [name.removeprefix(ASPECT_REPORTER) for name in connection.scalars(statement)]
    aspect, extras = tables.aspect, tables.extras
    aspects = select(aspect.c.urn, aspect.c.body).where(
        among(connection, aspect.c.urn, urns), aspect.c.name == "lineage"
    )
    for row in connection.execute(aspects).all():
        lineage = from_json(row.body, Lineage)
        renamed = Lineage(
            upstream=tuple(_replace_urn(lineage.upstream, urn, to)),
            downstream=tuple(_replace_urn(lineage.downstream, urn, to)),
        )
        if renamed == lineage:
            continue
        changed.add(row.urn)
        connection.execute(
            update(aspect)
            .where(aspect.c.urn == row.urn, aspect.c.name == "lineage")
            .values(body=to_json(renamed))
        )
        connection.execute(
            delete(extras).where(extras.c.urn == row.urn, extras.c.name == "lineage")
        )
    return changed


def _replace_urn(edges: Iterable[UpstreamEdge], urn: str, to: str) -> Iterable[UpstreamEdge]:
    return (msgspec.structs.replace(edge, urn=to) if edge.urn == urn else edge for edge in edges)


def _merge_bodies(first: bytes | None, second: bytes | None) -> bytes | None:
    bodies = [from_json(body, EdgeBody) for body in (first, second) if body is not None]
    if not bodies:
        return None
    return to_json(
        EdgeBody(
            columns=all_mappings(body.columns for body in bodies),
            uses=all_uses(body.uses for body in bodies),
        )
    )
