"""A dataset and everything downstream of it, read from the store for an impact analysis."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from lumos.impact.rules.graph import DatasetDerivation, Versions
from lumos.impact.rules.type_uses import StatementEffect, TableVersions
from lumos.model.catalog import CatalogEntity
from lumos.model.lineage import Edge, Script, UnparsedStatement
from lumos.model.paths import lineage_column
from lumos.model.schema import Schema
from lumos.store import Store
from lumos.store.garbage_collection import paused_gc
from lumos.store.lineage import Walk

_ColumnReference = tuple[str, str]
Links = tuple[tuple[str, str], ...]


class ImpactContext:
    """Everything downstream of a dataset (and of `others`), read in a few large queries."""

    def __init__(
        self,
        store: Store,
        urn: str,
        *others: str,
        schemas: dict[str, Schema | None] | None = None,
    ) -> None:
        """`schemas` is a cache of schemas that the contexts of several changes share."""
        self.store = store
        self._shared_schemas = {} if schemas is None else schemas
        self._all_unparsed = store.lineage.unparsed()
        self._walk: Walk = self._walk_downstream(urn, others)
        self._other_derivations: dict[str, tuple[DatasetDerivation, ...]] = {}
        self._assumed_schema: Schema | None = None

    @property
    def urn(self) -> str:
        """The current URN of the dataset."""
        return self._walk.start

    @cached_property
    def datasets(self) -> frozenset[str]:
        """All downstream datasets, including those not in the store; without jobs."""
        return frozenset(node.urn for node in self._walk.nodes) - self._jobs - {self.urn}

    @cached_property
    def deleted(self) -> frozenset[str]:
        """Downstream datasets that have been deleted."""
        states = {node.urn: node.state for node in self._walk.nodes}
        return frozenset(urn for urn in self.datasets if states[urn] not in ("live", None))

    @cached_property
    def consumers(self) -> Mapping[str, CatalogEntity]:
        """Downstream consumers that store no data, such as dashboards."""
        return self.store.lineage.consumers(self.datasets)

    @property
    def cycles(self) -> tuple[tuple[str, ...], ...]:
        """Cycles in the lineage."""
        return self._walk.cycles

    def _walk_downstream(self, urn: str, others: Collection[str]) -> Walk:
        """Walk downstream along edges and unparsable statements."""
        unparsed_targets: set[str] = set()
        while True:
            walk = self.store.lineage.walk(urn, *others, *unparsed_targets, direction="downstream")
            reached = {node.urn for node in walk.nodes}
            new_targets = {
                target
                for _, each in self._all_unparsed
                if not reached.isdisjoint(each.reads)
                for target in each.writes
            }
            if new_targets <= reached:
                return walk
            unparsed_targets |= new_targets

    @cached_property
    def unparsed(self) -> tuple[tuple[str, UnparsedStatement], ...]:
        """The unparsable statements that mention these datasets, with their reporters."""
        urns = {self.urn, *self.datasets}
        return tuple(each for each in self._all_unparsed if not urns.isdisjoint(each[1].reads))

    @cached_property
    def all_links(self) -> Links:
        """All (upstream, downstream) links; jobs are replaced by links from inputs to outputs."""
        links = (
            tuple(_links_without_jobs(self._jobs, self._walk.links))
            if self._jobs
            else self._walk.links
        )
        urns = {self.urn, *self.datasets}
        unparsed = (
            (read, written)
            for _, each in self.unparsed
            for read in each.reads
            for written in each.writes
            if read in urns and read != written
        )
        return tuple(dict.fromkeys((*links, *unparsed)))

    def links(self, urn: str) -> Links:
        """All links downstream of the dataset of this context."""
        assert urn == self.urn
        return self.all_links

    def derivations(self, urn: str) -> Sequence[DatasetDerivation]:
        """How a dataset is derived, one entry per reporter and script."""
        if urn in self._derivations:
            return self._derivations[urn]
        if urn not in self._other_derivations:
            self._other_derivations |= _load_derivations(self.store, [urn])
        return self._other_derivations[urn]

    def schema(self, urn: str) -> Schema | None:
        """The current schema of any dataset, downstream or not."""
        if urn == self.urn and self._assumed_schema is not None:
            return self._assumed_schema
        schemas = self._schemas
        if urn not in schemas:
            schemas[urn] = self.store.schemas.current([urn]).get(urn)
        return schemas[urn]

    def assume_schema(self, schema: Schema) -> None:
        """Use this as the current schema of the dataset instead of the stored one."""
        self._assumed_schema = schema

    def owners(self, urn: str) -> Sequence[str]:
        """The owners of a dataset; for one that was never scanned, those in lineage reports."""
        return self._owners.get(urn, ())

    @cached_property
    def _jobs(self) -> frozenset[str]:
        return self.store.lineage.jobs_among([node.urn for node in self._walk.nodes])

    @cached_property
    def _derivations(self) -> Mapping[str, tuple[DatasetDerivation, ...]]:
        derivations = _load_derivations(self.store, self.datasets)
        for reporter, each in self.unparsed:
            for urn in each.writes:
                if urn in derivations:
                    derivation = DatasetDerivation(
                        origin=reporter, file=each.file, line=each.line, unparsed=each.reads
                    )
                    derivations[urn] = (*derivations[urn], derivation)
        return derivations

    @cached_property
    def _schemas(self) -> dict[str, Schema | None]:
        """Schemas of all tables that the SQL may need, in one query."""
        urns = {self.urn, *self.datasets}
        for derivations in self._derivations.values():
            for derivation in derivations:
                urns.update(urn for _, urn in derivation.tables)
                urns.update(edge.upstream for edge in derivation.edges)
        shared = self._shared_schemas
        missing_urns = urns - shared.keys()
        shared.update(dict.fromkeys(missing_urns) | self.store.schemas.current(missing_urns))
        return shared

    @cached_property
    def _owners(self) -> Mapping[str, tuple[str, ...]]:
        unscanned = {node.urn for node in self._walk.nodes if node.state is None}
        reported_owners = self.store.lineage.owners(unscanned) if unscanned else {}
        return reported_owners | self.store.owners(self.datasets)


def analyse_derivation(
    derivation: DatasetDerivation, dataset: str, versions_of: Versions, *, with_fields: bool
) -> Sequence[StatementEffect]:
    """The effects of changed tables on a dataset, from the SQL that writes it."""
    # Imported late: most requests need edges and text only, not the parser.
    from lumos.impact.types.effects import effects

    assert derivation.sql is not None
    urns = dict(derivation.tables)

    def versions_of_table(parts: tuple[str, ...]) -> TableVersions:
        urn = urns.get(parts)
        return TableVersions.of(".".join(parts), None) if urn is None else versions_of(urn)

    return effects(
        derivation.sql,
        dialect=derivation.dialect,
        tables=versions_of_table,
        is_wanted=lambda parts: urns.get(parts) == dataset,
        with_fields=with_fields,
    )


def _links_without_jobs(
    jobs: Collection[str], links: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """Replace links to and from jobs by links from the inputs of a job to its outputs."""
    outputs_of_jobs: dict[str, list[str]] = {}
    all_links = list(links)
    for upstream, downstream in all_links:
        if upstream in jobs:
            outputs_of_jobs.setdefault(upstream, []).append(downstream)
    for upstream, downstream in all_links:
        if upstream in jobs:
            continue
        stack, seen = [downstream], {downstream}
        while stack:
            target = stack.pop()
            if target not in jobs:
                yield upstream, target
                continue
            new_outputs = [each for each in outputs_of_jobs.get(target, ()) if each not in seen]
            seen.update(new_outputs)
            stack += new_outputs


def _load_derivations(
    store: Store, urns: Collection[str]
) -> dict[str, tuple[DatasetDerivation, ...]]:
    edges: dict[str, dict[str, list[Edge]]] = {urn: {} for urn in urns}
    with paused_gc():
        for edge in store.lineage.edges_into(urns):
            edges[edge.downstream].setdefault(edge.origin, []).append(edge)
        scripts = store.lineage.scripts(urns)
        return {
            urn: tuple(_derivations_of(urn, by_reporter, scripts.get(urn, ())))
            for urn, by_reporter in edges.items()
        }


def _derivations_of(
    urn: str, edges: Mapping[str, Sequence[Edge]], scripts: Iterable[tuple[str, Script]]
) -> Iterator[DatasetDerivation]:
    """The derivations with SQL, then one per reporter for edges that add columns to the SQL."""
    with_sql: list[DatasetDerivation] = []
    upstreams_with_sql: dict[str, set[str]] = {}
    for reporter, script in scripts:
        upstreams = {dataset for _, dataset in script.tables}
        if script.dataset != urn and urn not in upstreams:
            # Another script of the same reporter.
            continue
        script_edges = tuple(each for each in edges.get(reporter, ()) if each.upstream in upstreams)
        upstreams_with_sql.setdefault(reporter, set()).update(
            edge.upstream for edge in script_edges
        )
        with_sql.append(
            DatasetDerivation(
                origin=reporter,
                edges=script_edges,
                sql=script.sql,
                dialect=script.dialect,
                file=script.file,
                tables=script.tables,
            )
        )
    yield from with_sql
    other_edges = [
        edge
        for reporter, reporter_edges in edges.items()
        for edge in reporter_edges
        if edge.upstream not in upstreams_with_sql.get(reporter, ())
    ]
    if not other_edges:
        return
    edges_by_reporter: dict[str, list[Edge]] = {}
    for edge in _informative_edges(other_edges, _references_by_upstream(with_sql)):
        edges_by_reporter.setdefault(edge.origin, []).append(edge)
    for reporter, reporter_edges in edges_by_reporter.items():
        yield DatasetDerivation(origin=reporter, edges=tuple(reporter_edges))


def _informative_edges(
    edges: Sequence[Edge], in_sql: Mapping[str, set[_ColumnReference]]
) -> Iterator[Edge]:
    """The edges with columns that the SQL does not mention, and edges without columns.

    Edges without columns are only used if nothing else tells the columns of their upstream dataset.
    """
    upstreams_with_columns = {
        *in_sql,
        *(edge.upstream for edge in edges if edge.columns or edge.uses),
    }
    for edge in edges:
        references = set(_column_references(edge))
        if not references and edge.upstream in upstreams_with_columns:
            continue
        if references and references <= in_sql.get(edge.upstream, set()):
            continue
        yield edge


def _references_by_upstream(
    derivations: Iterable[DatasetDerivation],
) -> dict[str, set[_ColumnReference]]:
    references: dict[str, set[_ColumnReference]] = {}
    for derivation in derivations:
        for edge in derivation.edges:
            references.setdefault(edge.upstream, set()).update(_column_references(edge))
    return references


def _column_references(edge: Edge) -> Iterator[_ColumnReference]:
    for mapping in edge.columns:
        # Some reporters report the column instead of the nested field.
        yield lineage_column(mapping.upstream).casefold(), mapping.downstream.casefold()
    for use in edge.uses:
        yield lineage_column(use.upstream).casefold(), use.usage
