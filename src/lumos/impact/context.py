"""The dataset of an impact analysis and everything downstream of it, read from the store."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from lumos.impact.rules.graph import DatasetDerivation, Versions
from lumos.impact.rules.type_uses import StatementEffect, TableVersions
from lumos.model.lineage import Edge, Script, UnparsedStatement
from lumos.model.paths import lineage_column
from lumos.model.schema import Schema
from lumos.store import Store
from lumos.store.garbage_collection import paused_gc
from lumos.store.lineage import Walk

_Fact = tuple[str, str]
Links = tuple[tuple[str, str], ...]


class ImpactContext:
    """Everything downstream of a dataset (and of `others`), read in a few large queries."""

    def __init__(self, store: Store, urn: str, *others: str) -> None:
        self.store = store
        self._all_unparsed = store.lineage.unparsed()
        self._walk: Walk = self._walk_downstream(urn, others)
        self._other_derivations: dict[str, tuple[DatasetDerivation, ...]] = {}
        self._other_schemas: dict[str, Schema | None] = {}
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
    def gone(self) -> frozenset[str]:
        """Downstream datasets that have been deleted."""
        states = {node.urn: node.state for node in self._walk.nodes}
        return frozenset(urn for urn in self.datasets if states[urn] not in ("live", None))

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
        here = {self.urn, *self.datasets}
        return tuple(each for each in self._all_unparsed if not here.isdisjoint(each[1].reads))

    @cached_property
    def all_links(self) -> Links:
        """All (upstream, downstream) links; jobs are replaced by links from inputs to outputs."""
        links = (
            tuple(_links_without_jobs(self._jobs, self._walk.links))
            if self._jobs
            else self._walk.links
        )
        here = {self.urn, *self.datasets}
        unparsed = (
            (read, written)
            for _, each in self.unparsed
            for read in each.reads
            for written in each.writes
            if read in here and read != written
        )
        return tuple(dict.fromkeys((*links, *unparsed)))

    def links(self, urn: str) -> Links:
        """All links below the dataset of this context."""
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
        """Return the current schema of a dataset, which need not be downstream."""
        if urn == self.urn and self._assumed_schema is not None:
            return self._assumed_schema
        if urn in self._schemas:
            return self._schemas[urn]
        if urn not in self._other_schemas:
            self._other_schemas[urn] = self.store.schemas.current([urn]).get(urn)
        return self._other_schemas[urn]

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
    def _schemas(self) -> Mapping[str, Schema | None]:
        """Schemas of all tables that the SQL may need, in one query."""
        urns = {self.urn, *self.datasets}
        for derivations in self._derivations.values():
            for derivation in derivations:
                urns.update(urn for _, urn in derivation.tables)
                urns.update(edge.upstream for edge in derivation.edges)
        return dict.fromkeys(urns) | self.store.schemas.current(urns)

    @cached_property
    def _owners(self) -> Mapping[str, tuple[str, ...]]:
        unscanned = {node.urn for node in self._walk.nodes if node.state is None}
        remaining = self.store.lineage.owners(unscanned) if unscanned else {}
        return remaining | self.store.owners(self.datasets)


def analyse_derivation(
    derivation: DatasetDerivation, dataset: str, versions: Versions, *, with_fields: bool
) -> Sequence[StatementEffect]:
    """The effects of changed tables on a dataset, from the SQL that writes it."""
    # Imported late: edges and text answer most requests without the parser.
    from lumos.impact.types.effects import effects

    assert derivation.sql is not None
    urns = dict(derivation.tables)

    def table(parts: tuple[str, ...]) -> TableVersions:
        urn = urns.get(parts)
        return TableVersions.of(".".join(parts), None) if urn is None else versions(urn)

    return effects(
        derivation.sql,
        dialect=derivation.dialect,
        tables=table,
        is_wanted=lambda parts: urns.get(parts) == dataset,
        with_fields=with_fields,
    )


def _links_without_jobs(
    jobs: Collection[str], links: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """Links between datasets only; outputs of a job are linked to its inputs."""
    outputs_of_jobs: dict[str, list[str]] = {}
    plain = list(links)
    for before, after in plain:
        if before in jobs:
            outputs_of_jobs.setdefault(before, []).append(after)
    for before, after in plain:
        if before in jobs:
            continue
        stack, seen = [after], {after}
        while stack:
            end = stack.pop()
            if end not in jobs:
                yield before, end
                continue
            unseen = [each for each in outputs_of_jobs.get(end, ()) if each not in seen]
            seen.update(unseen)
            stack += unseen


def _load_derivations(
    store: Store, urns: Collection[str]
) -> dict[str, tuple[DatasetDerivation, ...]]:
    edges: dict[str, dict[str, list[Edge]]] = {urn: {} for urn in urns}
    with paused_gc():
        for edge in store.lineage.edges_into(urns):
            edges[edge.downstream].setdefault(edge.origin, []).append(edge)
        scripts = store.lineage.scripts(urns)
        return {
            urn: tuple(_derivations_of(urn, by, scripts.get(urn, ()))) for urn, by in edges.items()
        }


def _derivations_of(
    urn: str, edges: Mapping[str, Sequence[Edge]], scripts: Iterable[tuple[str, Script]]
) -> Iterator[DatasetDerivation]:
    """The derivations with SQL, and those of edges that add information to it."""
    with_sql: list[DatasetDerivation] = []
    explained: dict[str, set[str]] = {}
    for reporter, script in scripts:
        upstreams = {dataset for _, dataset in script.tables}
        if script.dataset != urn and urn not in upstreams:
            # Another script of the same reporter.
            continue
        own = tuple(each for each in edges.get(reporter, ()) if each.upstream in upstreams)
        explained.setdefault(reporter, set()).update(edge.upstream for edge in own)
        with_sql.append(
            DatasetDerivation(
                origin=reporter,
                edges=own,
                sql=script.sql,
                dialect=script.dialect,
                file=script.file,
                tables=script.tables,
            )
        )
    yield from with_sql
    rest = [
        edge
        for reporter, some in edges.items()
        for edge in some
        if edge.upstream not in explained.get(reporter, ())
    ]
    if not rest:
        return
    remaining: dict[str, list[Edge]] = {}
    for edge in _informative_edges(rest, _facts_by_upstream(with_sql)):
        remaining.setdefault(edge.origin, []).append(edge)
    for reporter, some in remaining.items():
        yield DatasetDerivation(origin=reporter, edges=tuple(some))


def _informative_edges(edges: Sequence[Edge], known: Mapping[str, set[_Fact]]) -> Iterator[Edge]:
    """The edges with column facts that are not in the SQL, or the only ones of an upstream."""
    detailed = {*known, *(edge.upstream for edge in edges if edge.columns or edge.uses)}
    for edge in edges:
        facts = set(_facts(edge))
        if not facts and edge.upstream in detailed:
            continue
        if facts and facts <= known.get(edge.upstream, set()):
            continue
        yield edge


def _facts_by_upstream(derivations: Iterable[DatasetDerivation]) -> dict[str, set[_Fact]]:
    found: dict[str, set[_Fact]] = {}
    for derivation in derivations:
        for edge in derivation.edges:
            found.setdefault(edge.upstream, set()).update(_facts(edge))
    return found


def _facts(edge: Edge) -> Iterator[_Fact]:
    for mapping in edge.columns:
        # Other reporters may know the column only, not the field.
        yield lineage_column(mapping.upstream).casefold(), mapping.downstream.casefold()
    for use in edge.uses:
        yield lineage_column(use.upstream).casefold(), use.usage
