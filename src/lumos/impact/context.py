"""What a store knows of all that hangs on a dataset, and reasoning through the SQL kept there."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from lumos.impact.rules.downstream import Making, Versions
from lumos.impact.rules.type_uses import StatementEffect, TableVersions
from lumos.model.lineage import Edge, Script, UnparsedStatement
from lumos.model.schema import Schema
from lumos.store import Store
from lumos.store.collecting import without_collecting
from lumos.store.lineage import Walk

_Fact = tuple[str, str]
Links = tuple[tuple[str, str], ...]


class StoredDownstream:
    """Everything down the stream of one dataset, read from the store in a few large steps.

    What is down the stream of others as well may be read with it.
    """

    def __init__(self, store: Store, urn: str, *others: str) -> None:
        self.store = store
        self._all_unparsed = store.lineage.unparsed()
        self._walk: Walk = self._walked(urn, others)
        self._outside: dict[str, tuple[Making, ...]] = {}
        self._asked: dict[str, Schema | None] = {}
        self._supposed: Schema | None = None

    @property
    def urn(self) -> str:
        """The dataset as it is called now."""
        return self._walk.start

    @cached_property
    def datasets(self) -> frozenset[str]:
        """All that lies downstream, whether or not the store has it; jobs are no datasets."""
        return frozenset(node.urn for node in self._walk.nodes) - self._jobs - {self.urn}

    @cached_property
    def gone(self) -> frozenset[str]:
        """Those that the store had and that are no longer there."""
        states = {node.urn: node.state for node in self._walk.nodes}
        return frozenset(urn for urn in self.datasets if states[urn] not in ("live", None))

    @property
    def cycles(self) -> tuple[tuple[str, ...], ...]:
        """Datasets between which data flows round."""
        return self._walk.cycles

    def _walked(self, urn: str, others: Collection[str]) -> Walk:
        """The walk past edges, and past statements that could not be parsed."""
        made: set[str] = set()
        while True:
            walk = self.store.lineage.walk(urn, *others, *made, direction="downstream")
            reached = {node.urn for node in walk.nodes}
            more = {
                target
                for _, each in self._all_unparsed
                if not reached.isdisjoint(each.reads)
                for target in each.writes
            }
            if more <= reached:
                return walk
            made |= more

    @cached_property
    def unparsed(self) -> tuple[tuple[str, UnparsedStatement], ...]:
        """The statements that name a dataset here and could not be parsed, with their reporters."""
        here = {self.urn, *self.datasets}
        return tuple(each for each in self._all_unparsed if not here.isdisjoint(each[1].reads))

    @cached_property
    def all_links(self) -> Links:
        """All links from upstream to downstream; what a job moves goes from its inputs on."""
        links = tuple(_past(self._jobs, self._walk.links)) if self._jobs else self._walk.links
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
        """The same; all that is here lies downstream of the one dataset that was asked about."""
        assert urn == self.urn
        return self.all_links

    def makings(self, urn: str) -> Sequence[Making]:
        """How a dataset is made, as far as each reporter knows."""
        if urn in self._makings:
            return self._makings[urn]
        if urn not in self._outside:
            self._outside |= _makings(self.store, [urn])
        return self._outside[urn]

    def schema(self, urn: str) -> Schema | None:
        """The present schema of a dataset, also of one that only takes part."""
        if urn == self.urn and self._supposed is not None:
            return self._supposed
        if urn in self._schemas:
            return self._schemas[urn]
        if urn not in self._asked:
            self._asked[urn] = self.store.directory.schemas([urn]).get(urn)
        return self._asked[urn]

    def suppose(self, schema: Schema) -> None:
        """Takes this for the present schema of the dataset, whatever the store has."""
        self._supposed = schema

    def owners(self, urn: str) -> Sequence[str]:
        """Who answers for a dataset; of one that no scan has found, whom reporters name."""
        return self._owners.get(urn, ())

    @cached_property
    def _jobs(self) -> frozenset[str]:
        return self.store.lineage.jobs_among([node.urn for node in self._walk.nodes])

    @cached_property
    def _makings(self) -> Mapping[str, tuple[Making, ...]]:
        makings = _makings(self.store, self.datasets)
        for reporter, each in self.unparsed:
            for urn in each.writes:
                if urn in makings:
                    making = Making(
                        origin=reporter, file=each.file, line=each.line, unparsed=each.reads
                    )
                    makings[urn] = (*makings[urn], making)
        return makings

    @cached_property
    def _schemas(self) -> Mapping[str, Schema | None]:
        """Of all that the SQL may ask for, lest every model is a question of its own."""
        wanted = {self.urn, *self.datasets}
        for makings in self._makings.values():
            for making in makings:
                wanted.update(urn for _, urn in making.tables)
                wanted.update(edge.upstream for edge in making.edges)
        return dict.fromkeys(wanted) | self.store.directory.schemas(wanted)

    @cached_property
    def _owners(self) -> Mapping[str, tuple[str, ...]]:
        unscanned = {node.urn for node in self._walk.nodes if node.state is None}
        told = self.store.lineage.owners(unscanned) if unscanned else {}
        return told | self.store.directory.owners(self.datasets)


def reason(
    making: Making, dataset: str, versions: Versions, *, with_fields: bool
) -> Sequence[StatementEffect]:
    """What changes for a dataset in the SQL that makes it."""
    # Most questions are answered by edges and by the text alone, without the parser.
    from lumos.impact.types import effects

    assert making.sql is not None
    urns = dict(making.tables)

    def table(parts: tuple[str, ...]) -> TableVersions:
        urn = urns.get(parts)
        return TableVersions.of(".".join(parts), None) if urn is None else versions(urn)

    return effects(
        making.sql,
        dialect=making.dialect,
        tables=table,
        is_wanted=lambda parts: urns.get(parts) == dataset,
        with_fields=with_fields,
    )


def _past(jobs: Collection[str], links: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Links between datasets alone; what a job writes hangs on what it reads."""
    onward: dict[str, list[str]] = {}
    plain = list(links)
    for before, after in plain:
        if before in jobs:
            onward.setdefault(before, []).append(after)
    for before, after in plain:
        if before in jobs:
            continue
        waiting, seen = [after], {after}
        while waiting:
            end = waiting.pop()
            if end not in jobs:
                yield before, end
                continue
            further = [each for each in onward.get(end, ()) if each not in seen]
            seen.update(further)
            waiting += further


def _makings(store: Store, urns: Collection[str]) -> dict[str, tuple[Making, ...]]:
    edges: dict[str, dict[str, list[Edge]]] = {urn: {} for urn in urns}
    with without_collecting():
        for edge in store.lineage.edges_into(urns):
            edges[edge.downstream].setdefault(edge.origin, []).append(edge)
        scripts = store.lineage.scripts(urns)
        return {urn: tuple(_made(urn, by, scripts.get(urn, ()))) for urn, by in edges.items()}


def _made(
    urn: str, edges: Mapping[str, Sequence[Edge]], scripts: Iterable[tuple[str, Script]]
) -> Iterator[Making]:
    """The makings with SQL, and edges that tell of something beside it."""
    with_sql: list[Making] = []
    explained: dict[str, set[str]] = {}
    for reporter, script in scripts:
        named = {dataset for _, dataset in script.tables}
        if script.dataset != urn and urn not in named:
            # Its reporter has more than one text, and this one makes something else.
            continue
        own = tuple(each for each in edges.get(reporter, ()) if each.upstream in named)
        explained.setdefault(reporter, set()).update(edge.upstream for edge in own)
        with_sql.append(
            Making(
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
    told: dict[str, list[Edge]] = {}
    for edge in _telling(rest, _facts_by_upstream(with_sql)):
        told.setdefault(edge.origin, []).append(edge)
    for reporter, some in told.items():
        yield Making(origin=reporter, edges=tuple(some))


def _telling(edges: Sequence[Edge], known: Mapping[str, set[_Fact]]) -> Iterator[Edge]:
    """The edges that say more than the SQL that is known, and more than only that they are."""
    detailed = {*known, *(edge.upstream for edge in edges if edge.columns or edge.uses)}
    for edge in edges:
        facts = set(_facts(edge))
        if not facts and edge.upstream in detailed:
            continue
        if facts and facts <= known.get(edge.upstream, set()):
            continue
        yield edge


def _facts_by_upstream(makings: Iterable[Making]) -> dict[str, set[_Fact]]:
    found: dict[str, set[_Fact]] = {}
    for making in makings:
        for edge in making.edges:
            found.setdefault(edge.upstream, set()).update(_facts(edge))
    return found


def _facts(edge: Edge) -> Iterator[_Fact]:
    for mapping in edge.columns:
        yield mapping.upstream.casefold(), mapping.downstream.casefold()
    for use in edge.uses:
        yield use.upstream.casefold(), use.usage
