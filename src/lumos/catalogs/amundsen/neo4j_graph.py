"""Amundsen's graph in Neo4j: parametrised Cypher over batches of rows.

Labels, types and property names in the statements are constants, because Cypher has no parameters
for them. All values from outside are parameters.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeVar

from neo4j import Driver, GraphDatabase, ManagedTransaction, Session, TrustCustomCAs
from neo4j import exceptions as faults

from lumos.catalogs.amundsen import graph
from lumos.catalogs.amundsen.graph import (
    BADGE,
    COLUMN,
    KIND,
    MARK,
    TABLE,
    TAG,
    USER,
    Fragment,
    Node,
)
from lumos.config.platforms import AmundsenPlatform
from lumos.errors import CatalogError, CatalogTooOld, CatalogUnavailable, CatalogUnreachable

T = TypeVar("T")
K = TypeVar("K", Node, graph.Relation)
# The task of databuilder that removes stale nodes selects them by these properties.
PUBLISHED_TAG: Final = "lumos"
_PUBLISHED: Final = (
    f"{{published_tag: '{PUBLISHED_TAG}', publisher_last_updated_epoch_ms: timestamp()}}"
)
# Set on nodes that were only created as targets of references.
_REFERENCE: Final = "lumos_reference"
# By label: the relations that prevent the deletion of a node; if there are none, any relation does.
# Children come before their parents.
_NEEDED_BY: Final = {
    TABLE: ("HAS_DOWNSTREAM", "TABLE_OF_DASHBOARD"), COLUMN: ("HAS_DOWNSTREAM",), USER: (), TAG: (),
    BADGE: (), "Dashboardgroup": ("DASHBOARD",), "Schema": ("TABLE",),
    "Cluster": ("SCHEMA", "DASHBOARD_GROUP"), "Database": ("CLUSTER",),
}  # fmt: skip
_OLDEST: Final = (4, 4)
# The attempts to get the commit of a transaction confirmed.
_MAX_COMMITS: Final = 12
_SECTION: Final = f"platform_config.{KIND}"
_LABELS: Final = (*graph.MODELLED.keys() - graph.REVERSE.keys(), "Cluster", "Dashboardgroup",
                  "Database", "Schema", graph.ITEM)  # fmt: skip


class Neo4jGraph(graph.Graph):
    """The graph of a server; the first call connects."""

    def __init__(self, settings: AmundsenPlatform, *, platform: str) -> None:
        self._platform, self._address = platform, str(settings.neo4j_uri)
        self._is_indexed = False
        # Suppress hints such as that no node has a label yet.
        logging.getLogger("neo4j.notifications").setLevel(logging.ERROR)
        uri = settings.neo4j_uri.reveal() if settings.neo4j_uri else ""
        trust: dict[str, Any] = {}
        if settings.ca_file is not None:
            # The driver accepts either a secure scheme or certificates.
            uri = uri.replace("+s://", "://", 1)
            certificates = TrustCustomCAs(str(settings.ca_file))
            trust = {"encrypted": True, "trusted_certificates": certificates}
        password = settings.neo4j_password
        with self._errors():
            self._driver: Driver = GraphDatabase.driver(
                uri,
                auth=(settings.neo4j_user or "neo4j", password.reveal()) if password else None,
                connection_timeout=settings.timeout,
                connection_acquisition_timeout=settings.timeout,
                max_transaction_retry_time=settings.timeout,
                **trust,
            )

    def version(self) -> str:
        """The version of the server; raises an error if it is too old."""
        statement = "CALL dbms.components() YIELD versions RETURN versions[0]"
        version = self._read(
            lambda transaction: [str(row[0]) for row in transaction.run(statement)]
        )[0]
        if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST:
            raise CatalogTooOld(self._platform, "constraints by label", needed="Neo4j 4.4 or later")
        return version

    def close(self) -> None:
        self._driver.close()

    def keys(self, label: str) -> Collection[str]:
        statement = f"MATCH (n:{label}) WHERE n.{MARK[label]} IS NOT NULL RETURN n.key"
        return self._read(lambda transaction: [row[0] for row in transaction.run(statement)])

    def read(self, nodes: Sequence[Node]) -> dict[Node, Fragment]:
        return self._read(lambda transaction: _fragments(transaction, nodes))

    def write(
        self, wanted: Mapping[Node, Fragment | None], before: Mapping[Node, Fragment]
    ) -> set[Node]:
        def work(transaction: ManagedTransaction) -> set[Node]:
            existing = _fragments(transaction, list(wanted))
            changes = {
                node: change
                for node in wanted
                if (change := _difference(existing.get(node), wanted[node], before.get(node)))
            }
            if changes:
                _apply(transaction, _merge_changes(changes.values()))
            return set(changes)

        self._create_indexes()
        return self._write(work)

    def clean_up(self) -> None:
        """Delete nodes that Lumos created as references and that nothing refers to any more."""

        def work(transaction: ManagedTransaction) -> None:
            created = f"n.{_REFERENCE} AND n.published_tag = '{PUBLISHED_TAG}'"
            for label in _NEEDED_BY:
                condition = f"{created} AND NOT {_needed_condition(label)}"
                _run(transaction, f"MATCH (n:{label}) WHERE {condition} DETACH DELETE n")

        self._write(work)

    def _create_indexes(self) -> None:
        """Create the same constraints as databuilder; without them, a write scans all nodes."""
        if self._is_indexed:
            return
        with self._errors(), self._driver.session() as session:
            for label in _LABELS:
                # Committed by Neo4j itself: a lost transaction of the client would leave an index
                # without the constraint, which prevents creating the constraint again.
                session.run(
                    f"CREATE CONSTRAINT IF NOT EXISTS FOR (n:{label}) REQUIRE n.key IS UNIQUE"
                ).consume()
        self._is_indexed = True

    def _read(self, work: Callable[[ManagedTransaction], T]) -> T:
        with self._errors():
            return self._until_confirmed(lambda session: session.execute_read(work))

    def _write(self, work: Callable[[ManagedTransaction], T]) -> T:
        with self._errors():
            return self._until_confirmed(lambda session: session.execute_write(work))

    def _until_confirmed(self, transact: Callable[[Session], T]) -> T:
        """Repeat a transaction until its commit is confirmed; all transactions are idempotent.

        The driver itself only repeats transactions that are known to have failed.
        """
        attempts = 1
        while True:
            try:
                with self._driver.session() as session:
                    return transact(session)
            except faults.IncompleteCommit:
                if attempts == _MAX_COMMITS:
                    raise
                attempts += 1

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Convert errors of the driver to catalog errors."""
        try:
            yield
        except (faults.AuthError, faults.Forbidden) as problem:
            raise CatalogUnavailable(
                f"Neo4j at {self._address} denied access: {problem.message} Check "
                f"{_SECTION}.neo4j_user and {_SECTION}.neo4j_password.",
                platform=self._platform,
            ) from problem
        except UnicodeEncodeError as problem:
            text = f"Neo4j only accepts valid Unicode: {problem.reason}"
            raise CatalogError(text, platform=self._platform) from None
        except (faults.ConfigurationError, ValueError) as problem:
            raise CatalogUnavailable(
                f"Cannot connect to Neo4j at {self._address}: {problem}. Check "
                f"{_SECTION}.neo4j_uri, as in neo4j+s://graph.example.com:7687.",
                platform=self._platform,
            ) from problem
        except (faults.ServiceUnavailable, faults.SessionExpired, OSError) as problem:
            raise CatalogUnreachable(
                self._platform, self._address, str(problem), ca_file=f"{_SECTION}.ca_file"
            ) from problem
        except (faults.Neo4jError, faults.DriverError) as problem:
            text = f"Neo4j at {self._address} failed: {problem}"
            if isinstance(problem, faults.Neo4jError) and not problem.is_retryable():
                raise CatalogError(text, platform=self._platform) from problem
            raise CatalogUnavailable(text, platform=self._platform, retryable=True) from problem


class _Change(NamedTuple):
    """The nodes and relations to write; a property that is None is removed."""

    nodes: dict[Node, graph.Properties]
    relations: dict[graph.Relation, graph.Properties]
    references: dict[Node, graph.Properties]
    removed_nodes: set[Node]
    removed_relations: set[graph.Relation]


def _difference(
    existing: Fragment | None, wanted: Fragment | None, before: Fragment | None
) -> _Change | None:
    """The change from `before` to `wanted`; later changes by others are preserved."""
    current, wanted = existing or Fragment({}, {}, {}), wanted or Fragment({}, {}, {})
    base = before or current
    nodes = _find_differences(current.nodes, wanted.nodes, base.nodes)
    relations = _find_differences(current.relations, wanted.relations, base.relations)
    removed_nodes = (base.nodes.keys() & current.nodes.keys()) - wanted.nodes.keys()
    removed_relations = (base.relations.keys() & current.relations.keys()) - wanted.relations.keys()
    if not (nodes or relations or removed_nodes or removed_relations):
        return None
    if any(each.type in ("TABLE_OF", "DASHBOARD_OF") for each in relations):
        relations |= {each: {} for each in wanted.parents}
    references = {
        node: {**properties, _REFERENCE: True}
        for node, properties in wanted.references.items()
        if node not in current.references
    }
    return _Change(nodes, relations, references, removed_nodes, removed_relations)


def _find_differences(
    current: Mapping[K, graph.Properties],
    wanted: Mapping[K, graph.Properties],
    base: Mapping[K, graph.Properties],
) -> dict[K, graph.Properties]:
    differences: dict[K, graph.Properties] = {}
    for each, properties in wanted.items():
        existing = current.get(each)
        if existing is None:
            differences[each] = {**properties, _REFERENCE: None}
        elif properties != base.get(each):
            changed = {
                key: value for key, value in properties.items() if existing.get(key) != value
            }
            if changed or existing.keys() - properties.keys():
                differences[each] = {
                    **changed,
                    **dict.fromkeys(existing.keys() - properties.keys()),
                }
    return differences


def _merge_changes(changes: Iterable[_Change]) -> _Change:
    merged = _Change({}, {}, {}, set(), set())
    for change in changes:
        for merged_part, part in zip(merged, change, strict=True):
            merged_part.update(part)  # type: ignore[attr-defined]
    return merged


def _fragments(transaction: ManagedTransaction, nodes: Sequence[Node]) -> dict[Node, Fragment]:
    fragments: dict[Node, Fragment] = {}
    for label, keys in _by_label(nodes).items():
        match = f"MATCH (n:{label} {{key: key}}) WHERE n.{MARK[label]} IS NOT NULL"
        statement = f"UNWIND $keys AS key {match} RETURN key, properties(n)"
        for key, properties in transaction.run(statement, keys=keys):
            node = Node(label, key)
            fragments[node] = Fragment.of(node, graph.modelled(label, properties))
        paths = {label: f"(n:{label} {{key: key}})"} if label in graph.FOLLOWED else {}
        if label == TABLE:
            paths[COLUMN] = "(:Table {key: key})-[:COLUMN]->(n:Column)"
        for start, path in paths.items():
            _add_relations(transaction, fragments, label, keys, start, path)
    return fragments


def _add_relations(
    transaction: ManagedTransaction, fragments: dict[Node, Fragment], label: str, keys: list[str],
    start: str, path: str,
) -> None:  # fmt: skip
    statement = f"""
        UNWIND $keys AS key MATCH {path}-[r:{"|".join(graph.FOLLOWED[start])}]->(m)
        RETURN key, n.key, type(r), properties(r), labels(m)[0], m.key,
            CASE WHEN m:Table OR m:User THEN {{}} ELSE properties(m) END"""
    for root, key, type, details, end_label, end_key, properties in transaction.run(
        statement, keys=keys
    ):
        if (part := fragments.get(Node(label, root))) is not None:
            each = graph.relation(Node(start, key), type, Node(end_label, end_key))
            part.add_read(each, details, properties)


def _apply(transaction: ManagedTransaction, change: _Change) -> None:
    ends = "MATCH (a:{} {{key: row.start}}), (b:{} {{key: row.end}})"
    for (start, end, type, reverse), rows in _by_type(
        {each: {} for each in change.removed_relations}
    ):
        match_both = f"OPTIONAL MATCH (a)-[r:{type}]->(b) OPTIONAL MATCH (b)-[q:{reverse}]->(a)"
        _run(
            transaction,
            f"UNWIND $rows AS row {ends.format(start, end)} {match_both} DELETE r, q",
            rows,
        )
    for label, keys in _by_label(change.removed_nodes).items():
        _remove(transaction, label, keys)
    for nodes, on in ((change.nodes, ""), (change.references, "ON CREATE")):
        for label, keys in _by_label(nodes).items():
            rows = [{"key": key, "properties": nodes[Node(label, key)]} for key in keys]
            merge = f"UNWIND $rows AS row MERGE (n:{label} {{key: row.key}})"
            _run(transaction, f"{merge} {on} SET n += row.properties, n += {_PUBLISHED}", rows)
    for (start, end, type, reverse), rows in _by_type(change.relations):
        merge = f"MERGE (a)-[r:{type}]->(b) MERGE (b)-[q:{reverse}]->(a)"
        assignments = ", ".join(
            f"{each} += row.properties, {each} += {_PUBLISHED}" for each in "rq"
        )
        _run(
            transaction,
            f"UNWIND $rows AS row {ends.format(start, end)} {merge} SET {assignments}",
            rows,
        )


def _remove(transaction: ManagedTransaction, label: str, keys: list[str]) -> None:
    """Delete nodes with their parts; a node that others refer to becomes a reference."""
    rows = [{"key": key, "properties": {**Node(label, key).reference, "key": key}} for key in keys]
    match = f"UNWIND $rows AS row MATCH (n:{label} {{key: row.key}})"
    if label in (TABLE, COLUMN):
        part_condition = "p.key STARTS WITH row.key + '/' AND NOT p:Table AND NOT p:Column"
        _run(transaction, f"{match}--(p) WHERE {part_condition} DETACH DELETE p", rows)
    _run(transaction, f"{match} WHERE NOT {_needed_condition(label)} DETACH DELETE n", rows)
    if needed_by := _NEEDED_BY.get(label):
        types = [*needed_by, "HAS_UPSTREAM", "DASHBOARD_WITH_TABLE"]
        _run(transaction, f"{match} MATCH (n)-[r]-() WHERE NOT type(r) IN {types} DELETE r", rows)
    if label in _NEEDED_BY:
        _run(
            transaction,
            f"{match} SET n = row.properties, n.{_REFERENCE} = true, n += {_PUBLISHED}",
            rows,
        )


def _run(transaction: ManagedTransaction, statement: str, rows: Sequence[Any] = ()) -> None:
    transaction.run(statement, rows=rows).consume()


def _by_label(nodes: Iterable[Node]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for node in sorted(nodes):
        groups.setdefault(node.label, []).append(node.key)
    return groups


def _by_type(
    relations: Mapping[graph.Relation, graph.Properties],
) -> Iterable[tuple[tuple[str, str, str, str], list[dict[str, Any]]]]:
    groups: dict[tuple[str, str, str, str], list[dict[str, Any]]] = {}
    for each, properties in relations.items():
        row = {"start": each.start.key, "end": each.end.key, "properties": properties}
        kind = each.start.label, each.end.label, each.type, each.reverse
        groups.setdefault(kind, []).append(row)
    return groups.items()


def _needed_condition(label: str) -> str:
    """The Cypher condition that something refers to a node."""
    types = _NEEDED_BY.get(label)
    if types is None:
        return "false"
    return f"(n)-[:{'|'.join(types)}]->()" if types else "(n)--()"
