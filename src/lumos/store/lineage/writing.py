"""Writes lineage: what a reporter says replaces what it said before, and nobody else's word."""

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import Connection, bindparam, delete, select, text, update

from lumos.model.catalog import Job
from lumos.model.dataset import Lineage
from lumos.model.json_codec import from_json
from lumos.model.lineage import Edge, Script, UnparsedStatement
from lumos.store import tables
from lumos.store.lineage import jobs as reported_jobs
from lumos.store.lineage import naming
from lumos.store.lineage import owners as reported_owners
from lumos.store.lineage import scripts as reported_scripts
from lumos.store.lineage import unparsed as reported_unparsed
from lumos.store.lineage.aspect import TOLD, ReportedUpstream, reported_upstream
from lumos.store.lineage.merging import all_mappings, all_uses
from lumos.store.lineage.rows import EDGE, NO_JOB, add_nodes, among, body_of, present_names
from lumos.store.lineage.values import Reporting
from lumos.store.locks import lock_key
from lumos.store.rows import replace

_ROW: Final = 1


class _Key(NamedTuple):
    """What tells an edge apart from all others."""

    reporter: int
    upstream: int
    downstream: int
    job: int


class LineageWriter:
    """Writes lineage in a transaction, which ends it with `finish`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._told: dict[str, tuple[list[Edge], datetime | None]] = {}
        self._reported: dict[str, tuple[ReportedUpstream, ...]] = {}
        self._is_other_graph = False
        self._below: set[int] = set()
        self._retold: set[str] = set()
        self.changed_jobs: set[str] = set()

    def report(
        self,
        reporter: str,
        edges: Sequence[Edge],
        jobs: Sequence[Job] = (),
        scripts: Sequence[Script] = (),
        owners: reported_owners.Owners = MappingProxyType({}),
        *,
        unparsed: Sequence[UnparsedStatement] = (),
        at: datetime,
    ) -> Reporting:
        """Makes a reporter's edges, jobs, texts of SQL and named owners exactly these.

        The same holds for the statements that could not be parsed.

        Texts that are too long are not kept.
        """
        if self._connection.dialect.name == "sqlite":
            # What was kept before of texts and clauses must not stay in pages that are free now.
            self._connection.exec_driver_sql("PRAGMA secure_delete = ON")
        changed = self._replace({reporter: edges}, at=at)
        number = self._reporter(reporter)
        self.changed_jobs |= reported_jobs.replace_all(self._connection, number, jobs, at=at)
        nodes = self._nodes({each.dataset for each in scripts if each.dataset is not None})
        reported_scripts.replace_all(self._connection, number, scripts, nodes)
        reported_owners.replace_all(self._connection, number, owners)
        reported_unparsed.replace_all(self._connection, number, unparsed)
        return changed

    def add(
        self, reporter: str, edges: Sequence[Edge], jobs: Sequence[Job] = (), *, at: datetime
    ) -> Reporting:
        """Adds to what a reporter says; what it says of other edges and jobs stays."""
        changed = self._replace({reporter: edges}, at=at, partly=True)
        number = self._reporter(reporter)
        self.changed_jobs |= reported_jobs.put_all(self._connection, number, jobs, at=at)
        return changed

    def remember(self, reporter: str, memory: bytes) -> None:
        """Keeps what a reporter that has spoken must know to understand what comes later."""
        table = tables.lineage_reporter
        named = update(table).where(table.c.name == reporter)
        self._connection.execute(named.values(memory=memory))

    def withdraw(self, reporter: str, links: Collection[tuple[str, str]]) -> Reporting:
        """Takes a reporter's word on some links back, under whichever job."""
        table = tables.lineage_reporter.c
        ids = self._connection.scalars(select(table.id).where(table.name == reporter)).all()
        nodes = self._nodes({urn for link in links for urn in link})
        wanted = {(nodes[before], nodes[after]) for before, after in links}
        gone = {
            key: row
            for key, row in self._present(ids).items()
            if (key.upstream, key.downstream) in wanted
        }
        self._delete(row.id for row in gone.values())
        self._below |= {key.downstream for key in gone}
        touched = {end for key in gone for end in (key.upstream, key.downstream)}
        return Reporting(removed=len(gone), touched=self._urns(touched))

    def look_up(self, urns: Collection[str]) -> None:
        """Lets what reporters say that some datasets are made from be known at once."""
        if urns:
            found = reported_upstream(self._connection, urns)
            self._reported |= {urn: found.get(urn, ()) for urn in urns}

    def reported(self, urn: str) -> tuple[ReportedUpstream, ...]:
        """What reporters say that a dataset is made from."""
        if urn not in self._reported:
            self.look_up([urn])
        return self._reported[urn]

    def tell(self, urn: str, lineage: Lineage, *, writer: str, at: datetime) -> None:
        """Lets what a dataset's lineage aspect says count as edges once the transaction ends."""
        self._told[urn] = _edges(urn, lineage, writer, at), at

    def forget_told(self, urn: str) -> None:
        """Takes back what a dataset's lineage aspect said."""
        self._told[urn] = [], None

    def rename(self, urn: str, to: str) -> None:
        """Lets all that is known of a dataset's lineage follow it to another URN."""
        self._reported.clear()
        self._is_other_graph |= naming.move_edges(self._connection, urn, to)
        naming.rename_reporters(self._connection, urn, to)
        self._retell(urn, to)

    def absorb(self, urn: str, into: str) -> None:
        """Gives a dataset the edges of another that becomes part of it."""
        self._reported.clear()
        self._is_other_graph |= naming.move_edges(self._connection, urn, into)
        self._retell(urn, into)
        self._silence([f"{TOLD}{urn}"])
        aspect = tables.aspect.c
        statement = select(tables.aspect).where(aspect.urn == into, aspect.name == "lineage")
        if (row := self._connection.execute(statement).one_or_none()) is not None:
            told = from_json(row.body, Lineage)
            self.tell(into, told, writer=row.writer, at=row.updated_at)

    def _retell(self, urn: str, to: str) -> None:
        self._retold |= naming.rename_in_told(self._connection, urn, to)
        self._below |= naming.below(self._connection, to)

    @property
    def changes_any(self) -> bool:
        """Whether any dataset or job has other lineage than before."""
        return bool(self._below or self._retold or self.changed_jobs)

    def changed_datasets(self) -> set[str]:
        """What is said to be made from other things, or in another way, than before."""
        return self._retold | set(self._urns(self._below))

    def finish(self) -> None:
        """Writes what was told, and that there are other edges now."""
        self.settle()
        if self._is_other_graph:
            # At the very end, since all writers meet at this row.
            statement = replace(self._connection.dialect.name, tables.lineage_revision)
            row = {"id": _ROW, "revision": uuid.uuid4().hex}
            self._connection.execute(statement, row)

    @property
    def changes_graph(self) -> bool:
        """Whether there are other edges than before, as far as what was told is settled."""
        return self._is_other_graph

    def settle(self) -> None:
        """Writes what was told so far."""
        told, self._told = self._told, {}
        by_time: dict[datetime, dict[str, list[Edge]]] = {}
        for urn, (edges, at) in told.items():
            if edges and at is not None:
                by_time.setdefault(at, {})[f"{TOLD}{urn}"] = edges
        for at, reports in by_time.items():
            self._replace(reports, at=at)
        self._silence([f"{TOLD}{urn}" for urn, (edges, _) in told.items() if not edges])

    def _replace(
        self, reports: Mapping[str, Sequence[Edge]], *, at: datetime, partly: bool = False
    ) -> Reporting:
        """Makes the edges of some reporters exactly these, or `partly` these as well."""
        self._lock(reports)
        self._reported.clear()
        reporters = self._reporters(reports, at=at)
        urns = {
            urn
            for edges in reports.values()
            for edge in edges
            for urn in (edge.upstream, edge.downstream, edge.job)
            if urn is not None
        }
        nodes = self._nodes(urns)
        wanted: dict[_Key, dict[str, Any]] = {}
        for key, edge in _once(
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
        present = self._present(reporters.values())
        new = [row for key, row in wanted.items() if key not in present]
        changed = [
            {"wanted": present[key].id, **{name: row[name] for name in _SAID}}
            for key, row in wanted.items()
            if key in present and any(getattr(present[key], name) != row[name] for name in _SAID)
        ]
        gone = () if partly else [key for key in present if key not in wanted]
        if new:
            self._connection.execute(tables.lineage_edge.insert(), new)
        if changed:
            self._connection.execute(_CHANGE, changed)
        self._delete(present[key].id for key in gone)
        self._see_again(
            [present[key].id for key in wanted if key in present], reporters, partly, at
        )
        self._is_other_graph |= bool(new)
        touched = {
            *((row["upstream"], row["downstream"]) for row in new),
            *((key.upstream, key.downstream) for key in gone),
        }
        ids = {each["wanted"] for each in changed}
        touched |= {(key[1], key[2]) for key, row in present.items() if row.id in ids}
        self._below |= {downstream for _, downstream in touched}
        return Reporting(
            added=len(new),
            changed=len(changed),
            removed=len(gone),
            unchanged=len(wanted) - len(new) - len(changed),
            touched=self._urns({id for ends in touched for id in ends}),
        )

    def _see_again(
        self, ids: Sequence[int], reporters: Mapping[str, int], partly: bool, at: datetime
    ) -> None:
        if not ids:
            return
        if partly:
            rows = [{"wanted": id, "at": at} for id in ids]
            self._connection.execute(_SEE_AGAIN, rows)
            return
        spoke = among(self._connection, EDGE.reporter, reporters.values())
        statement = update(tables.lineage_edge).where(spoke, EDGE.last_seen < at)
        self._connection.execute(statement.values(last_seen=at))

    def _present(self, reporters: Iterable[int]) -> dict[_Key, Any]:
        statement = _PRESENT.where(among(self._connection, EDGE.reporter, reporters))
        return {
            _Key(row.reporter, row.upstream, row.downstream, row.job): row
            for row in self._connection.execute(statement).all()
        }

    def _delete(self, ids: Iterable[int]) -> None:
        self._reported.clear()
        if gone := list(ids):
            chosen = among(self._connection, EDGE.id, gone)
            self._connection.execute(delete(tables.lineage_edge).where(chosen))
            self._is_other_graph = True

    def _lock(self, names: Iterable[str]) -> None:
        if self._connection.dialect.name == "postgresql":
            for name in sorted(names):
                self._connection.execute(_LOCK, {"key": lock_key(f"lineage {name}")})

    def _reporter(self, name: str) -> int:
        reporter = tables.lineage_reporter.c
        statement = select(reporter.id).where(reporter.name == name)
        return int(self._connection.execute(statement).scalar_one())

    def _reporters(self, names: Collection[str], *, at: datetime) -> dict[str, int]:
        """The numbers of reporters, which spoke just now."""
        reporter = tables.lineage_reporter
        statement = _reporters(self._connection.dialect.name)
        rows = [{"name": name, "reported_at": at} for name in sorted(names)]
        if rows:
            self._connection.execute(statement, rows)
        chosen = among(self._connection, reporter.c.name, names)
        numbers = select(reporter.c.id, reporter.c.name).where(chosen)
        return {row.name: row.id for row in self._connection.execute(numbers)}

    def _nodes(self, urns: Collection[str]) -> dict[str, int]:
        """The numbers of URNs; one that a dataset had before means the dataset."""
        if not urns:
            return {}
        names = present_names(self._connection, urns)
        ids = add_nodes(self._connection, set(names.values()))
        return {urn: ids[name] for urn, name in names.items()}

    def _urns(self, ids: Collection[int]) -> tuple[str, ...]:
        node = tables.lineage_node.c
        statement = select(node.urn).where(among(self._connection, node.id, ids))
        return tuple(sorted(self._connection.scalars(statement)))

    def _silence(self, names: Collection[str]) -> None:
        """Takes reporters out with all that they said."""
        reporter = tables.lineage_reporter
        chosen = among(self._connection, reporter.c.name, names)
        ids = self._connection.scalars(select(reporter.c.id).where(chosen)).all()
        if ids:
            gone = self._present(ids)
            self._below |= {key.downstream for key in gone}
            self._delete(row.id for row in gone.values())
            reported_scripts.forget(self._connection, ids)
            reported_owners.forget(self._connection, ids)
            reported_unparsed.forget(self._connection, ids)
            spoke = among(self._connection, reporter.c.id, ids)
            self._connection.execute(delete(reporter).where(spoke))


def _edges(urn: str, lineage: Lineage, writer: str, at: datetime) -> list[Edge]:
    said = (
        *((each.urn, urn, each) for each in lineage.upstream),
        *((urn, each.urn, each) for each in lineage.downstream),
    )
    return [
        Edge(
            upstream=upstream,
            downstream=downstream,
            origin=f"{TOLD}{urn}",
            at=at,
            type=each.type,
            created_by=writer,
            columns=each.columns,
            uses=each.uses,
        )
        for upstream, downstream, each in said
    ]


def _key(reporter: int, edge: Edge, nodes: Mapping[str, int]) -> _Key:
    job = NO_JOB if edge.job is None else nodes[edge.job]
    return _Key(reporter, nodes[edge.upstream], nodes[edge.downstream], job)


def _once(edges: Iterable[tuple[_Key, Edge]]) -> Iterable[tuple[_Key, Edge]]:
    """Every edge once: what is said of it in several places belongs together."""
    found: dict[_Key, list[Edge]] = {}
    for key, edge in edges:
        found.setdefault(key, []).append(edge)
    for key, some in found.items():
        if len(some) == 1:
            yield key, some[0]
            continue
        yield (
            key,
            msgspec.structs.replace(
                some[0],
                at=min(edge.at for edge in some),
                type=some[0].type if len({edge.type for edge in some}) == 1 else "TRANSFORMED",
                confidence=max(edge.confidence for edge in some),
                columns=all_mappings(edge.columns for edge in some),
                uses=all_uses(edge.uses for edge in some),
            ),
        )


def _reporters(dialect: str) -> Any:
    from sqlalchemy.dialects import postgresql, sqlite

    make = postgresql.insert if dialect == "postgresql" else sqlite.insert
    insert = make(tables.lineage_reporter)
    return insert.on_conflict_do_update(
        index_elements=["name"], set_={"reported_at": insert.excluded.reported_at}
    )


_SAID: Final = ("type", "confidence", "body")
_LOCK: Final = text("SELECT pg_advisory_xact_lock(:key)")
_PRESENT: Final = select(
    EDGE.id,
    EDGE.reporter,
    EDGE.upstream,
    EDGE.downstream,
    EDGE.job,
    *(EDGE[name] for name in _SAID),
)
_CHANGE: Final = (
    update(tables.lineage_edge)
    .where(EDGE.id == bindparam("wanted"))
    .values({name: bindparam(name) for name in _SAID})
)
_SEE_AGAIN: Final = (
    update(tables.lineage_edge)
    .where(EDGE.id == bindparam("wanted"))
    .values(last_seen=bindparam("at"))
)
