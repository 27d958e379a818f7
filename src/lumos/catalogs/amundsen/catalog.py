"""What Amundsen's server and its CSV folders have in common: a catalog on a graph."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

from lumos.catalogs.amundsen.graph import TABLE, Change, Fragment, Graph, Node, difference
from lumos.catalogs.amundsen.items import LABELS, item_in, item_key, item_node, render_item
from lumos.catalogs.amundsen.names import dataset_urn, required_table_key, table_key
from lumos.catalogs.amundsen.tables import NATIVE, Rendered, entry_in, render
from lumos.catalogs.chunks import chunked, in_halves, one
from lumos.catalogs.cleanup import Tidies
from lumos.catalogs.interface import (
    NO_FILTERS,
    Filters,
    HasAddress,
    HoldsItems,
    Item,
    MergesWrites,
    Platform,
    ReadsMany,
    Refused,
    Searches,
    WrittenEntry,
)
from lumos.catalogs.search import found
from lumos.errors import CatalogError, CatalogUnavailable, LumosError
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Dataset

# Tables per transaction, and nodes and relations in it.
MOST: Final = 500
_MOST_PARTS: Final = 20_000
_PAGE: Final = 500


class GraphCatalog(Platform, HasAddress, ReadsMany, MergesWrites, Searches, HoldsItems, Tidies):
    """A catalog whose datasets are tables of a graph."""

    native: ClassVar[frozenset[str]] = NATIVE

    @property
    @abstractmethod
    def _graph(self) -> Graph:
        """The graph; it is opened by the first use."""

    def emit(self, dataset: Dataset) -> None:
        self.write(CatalogEntry.of(dataset))

    def get(self, urn: str) -> CatalogEntry | None:
        return self.get_many([urn]).get(urn)

    def get_many(self, urns: Sequence[str]) -> dict[str, CatalogEntry]:
        nodes = {Node(TABLE, key): urn for urn in urns if (key := table_key(urn)) is not None}
        fragments = self._graph.read(list(nodes)) if nodes else {}
        return {nodes[node]: self._entry(node, part) for node, part in fragments.items()}

    def export(self, *, after: str | None = None) -> Iterator[CatalogEntry]:
        for each in self.export_each(after=after):
            if isinstance(each, Refused):
                raise each.problem
            yield each

    def export_each(self, *, after: str | None = None) -> Iterator[CatalogEntry | Refused]:
        keys = {dataset_urn(key): key for key in self._graph.keys(TABLE)}
        urns = sorted(urn for urn in keys if after is None or urn > after)
        for start in range(0, len(urns), _PAGE):
            page = {Node(TABLE, keys[urn]): urn for urn in urns[start : start + _PAGE]}
            fragments = self._graph.read(list(page))
            for node, urn in page.items():
                if node in fragments:
                    try:
                        entry = self._entry(node, fragments[node])
                    except CatalogError as problem:
                        yield Refused(urn, problem)
                    else:
                        yield entry

    def count(self) -> int:
        return len(self._graph.keys(TABLE))

    def search(
        self, text: str, filters: Filters = NO_FILTERS, *, limit: int | None = None
    ) -> Iterator[Dataset]:
        # Amundsen's search is a service of its own, whose index lags behind.
        return found(self.export(), text, filters, limit=limit)

    def put(self, entry: CatalogEntry) -> WrittenEntry:
        for written in self.put_many([entry], over={}):
            if isinstance(written, Refused):
                raise written.problem
            return written
        raise AssertionError("every entry is yielded")

    def put_many(
        self, entries: Sequence[CatalogEntry], *, over: Mapping[str, CatalogEntry | None]
    ) -> Iterator[WrittenEntry | Refused]:
        wanted: dict[Node, Rendered] = {}
        urns: dict[Node, str] = {}
        for entry in entries:
            try:
                node = Node(TABLE, required_table_key(entry.urn))
                wanted[node] = render(entry)
            except LumosError as problem:
                yield Refused(entry.urn, problem)
            else:
                urns[node] = entry.urn

        def parts(node: Node) -> int:
            fragment = wanted[node].fragment
            return len(fragment.nodes) + len(fragment.relations)

        changed: set[Node] = set()

        def send(nodes: Sequence[Node]) -> None:
            def plan(current: Mapping[Node, Fragment]) -> list[Change]:
                changes = {
                    node: _change(current.get(node), wanted[node].fragment, over.get(urns[node]))
                    for node in nodes
                }
                changed.difference_update(nodes)
                changed.update(node for node in nodes if changes[node])
                return [change for change in changes.values() if change]

            self._graph.change(nodes, plan)

        for chunk in chunked(wanted, most=_MOST_PARTS, most_bytes=MOST, size=one, count=parts):
            for node, problem in in_halves(chunk, send):
                if problem is None:
                    yield WrittenEntry(
                        urn=urns[node], changed=node in changed, held=wanted[node].held
                    )
                else:
                    yield Refused(urns[node], problem)

    def erase(self, urn: str) -> None:
        self.erase_many([urn])

    def erase_many(self, urns: Sequence[str]) -> None:
        keys = filter(None, map(table_key, dict.fromkeys(urns)))
        self._erase([Node(TABLE, key) for key in keys])

    def items(self) -> Iterator[Item]:
        for label in LABELS:
            nodes = [Node(label, key) for key in sorted(self._graph.keys(label))]
            for start in range(0, len(nodes), _PAGE):
                fragments = self._graph.read(nodes[start : start + _PAGE])
                yield from (item_in(node, part) for node, part in fragments.items())

    def get_item(self, type: type[Item], key: str) -> Item | None:
        return self.get_items(type, [key]).get(key)

    def get_items(self, type: type[Item], keys: Sequence[str]) -> dict[str, Item]:
        nodes = {item_node(type, key): key for key in keys}
        fragments = self._graph.read(list(nodes)) if nodes else {}
        return {nodes[node]: item_in(node, part) for node, part in fragments.items()}

    def put_item(self, item: Item) -> None:
        for refused in self.put_items([item]):
            raise refused.problem

    def put_items(self, items: Sequence[Item]) -> Iterator[Refused]:
        wanted = {item_node(type(item), item_key(item)): item for item in items}
        rendered = {node: render_item(item) for node, item in wanted.items()}

        def send(nodes: Sequence[Node]) -> None:
            self._graph.change(
                nodes,
                lambda current: [
                    change
                    for node in nodes
                    if (change := _change(current.get(node), rendered[node], None))
                ],
            )

        for node, problem in in_halves(list(rendered), send):
            if problem is not None:
                yield Refused(item_key(wanted[node]), problem)

    def erase_item(self, item: Item) -> None:
        self._erase([item_node(type(item), item_key(item))])

    def tidy(self) -> None:
        self._graph.tidy()

    def _erase(self, nodes: Sequence[Node]) -> None:
        for start in range(0, len(nodes), MOST):
            some = nodes[start : start + MOST]
            self._graph.change(
                some,
                lambda current: [
                    difference(each, Fragment.empty(), each) for each in current.values()
                ],
            )

    def _entry(self, node: Node, fragment: Fragment) -> CatalogEntry:
        try:
            return entry_in(node.key, fragment)
        except CatalogUnavailable:
            raise
        except (LumosError, KeyError, TypeError, ValueError) as problem:
            raise CatalogError(
                f"The table '{node.key}' cannot be read: {problem}", platform=self.name
            ) from problem


def _change(current: Fragment | None, wanted: Fragment, over: CatalogEntry | None) -> Change:
    there = Fragment.empty() if current is None else current
    # What others changed since it was read is kept.
    before = there if over is None else render(over).fragment
    return difference(there, wanted, before)
