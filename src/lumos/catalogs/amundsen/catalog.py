"""A catalog on a graph: the common part of Amundsen's server and its CSV folders."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

from lumos.catalogs.adapter import WritesInGroups
from lumos.catalogs.amundsen.graph import DASHBOARD, TABLE, Fragment, Graph, Node
from lumos.catalogs.amundsen.items import LABELS, generic_node, item_in, item_node, render_item
from lumos.catalogs.amundsen.names import dataset_urn, required_table_key, table_key
from lumos.catalogs.amundsen.tables import NATIVE, RenderedTable, entry_in, render
from lumos.catalogs.chunks import batched, chunked, in_halves
from lumos.catalogs.interface import (
    AspectStorage,
    CatalogItem,
    FailedEntry,
    WrittenEntry,
    item_key,
)
from lumos.errors import CatalogError, LumosError
from lumos.model.catalog import CatalogEntry

# Limits of a transaction.
_MAX_TABLES: Final = 500
_MAX_RELATIONS: Final = 20_000
_PAGE: Final = 500


class GraphCatalog(WritesInGroups):
    """A catalog whose datasets are tables of a graph."""

    native: ClassVar[frozenset[str]] = NATIVE
    batch_size: ClassVar[int] = _MAX_TABLES

    @property
    @abstractmethod
    def _graph(self) -> Graph:
        """The graph; the first use opens it."""

    def get_many(self, urns: Sequence[str]) -> dict[str, CatalogEntry]:
        nodes = {Node(TABLE, key): urn for urn in urns if (key := table_key(urn)) is not None}
        fragments = self._graph.read(list(nodes)) if nodes else {}
        return {nodes[node]: self._entry(node, part) for node, part in fragments.items()}

    def export_each(self, *, after: str | None = None) -> Iterator[CatalogEntry | FailedEntry]:
        keys = {dataset_urn(key): key for key in self._graph.keys(TABLE)}
        urns = sorted(urn for urn in keys if after is None or urn > after)
        for batch in batched(urns, _PAGE):
            page = {Node(TABLE, keys[urn]): urn for urn in batch}
            fragments = self._graph.read(list(page))
            for node, urn in page.items():
                if node in fragments:
                    try:
                        entry = self._entry(node, fragments[node])
                    except CatalogError as problem:
                        yield FailedEntry(urn, problem)
                    else:
                        yield entry

    def count(self) -> int:
        return len(self._graph.keys(TABLE))

    def put_many(
        self, entries: Sequence[CatalogEntry], *, current: Mapping[str, CatalogEntry | None]
    ) -> Iterator[WrittenEntry | FailedEntry]:
        wanted: dict[Node, RenderedTable] = {}
        urns: dict[Node, str] = {}
        before: dict[Node, Fragment] = {}
        for entry in entries:
            try:
                node = Node(TABLE, required_table_key(entry.urn))
                wanted[node], urns[node] = render(entry), entry.urn
            except LumosError as error:
                yield FailedEntry(entry.urn, error)
            else:
                if (known := current.get(entry.urn)) is not None:
                    before[node] = render(known).fragment
        changed: set[Node] = set()

        def send(nodes: Sequence[Node]) -> None:
            fragments = {node: wanted[node].fragment for node in nodes}
            changed.update(self._graph.write(fragments, before))

        def size(node: Node) -> int:
            return len(wanted[node].fragment.relations)

        for chunk in chunked(wanted, max_parts=_MAX_TABLES, max_bytes=_MAX_RELATIONS, size=size):
            for node, problem in in_halves(chunk, send):
                if problem is not None:
                    yield FailedEntry(urns[node], problem)
                else:
                    held, is_changed = wanted[node].storage, node in changed
                    yield WrittenEntry(urn=urns[node], changed=is_changed, held=held)

    def storage_of(self, entry: CatalogEntry) -> dict[str, AspectStorage]:
        return render(entry).storage

    def erase_many(self, urns: Sequence[str]) -> None:
        keys = filter(None, map(table_key, dict.fromkeys(urns)))
        for batch in batched(keys, _MAX_TABLES):
            self._graph.write(dict.fromkeys(Node(TABLE, key) for key in batch), {})

    def items(self) -> Iterator[CatalogItem]:
        # Earlier versions stored some entities as generic items that are now stored as dashboards.
        dashboards: set[str] = set()
        for label in LABELS:
            for keys in batched(sorted(self._graph.keys(label)), _PAGE):
                fragments = self._graph.read([Node(label, key) for key in keys])
                for node, part in fragments.items():
                    item = item_in(node, part)
                    if label == DASHBOARD:
                        dashboards.add(item_key(item))
                    elif item_key(item) in dashboards:
                        continue
                    yield item

    def get_items(self, type: type[CatalogItem], keys: Sequence[str]) -> dict[str, CatalogItem]:
        nodes = {item_node(type, key): key for key in keys}
        fragments = self._graph.read(list(nodes)) if nodes else {}
        return {nodes[node]: item_in(node, part) for node, part in fragments.items()}

    def put_items(self, items: Sequence[CatalogItem]) -> Iterator[FailedEntry]:
        wanted = {item_node(type(item), item_key(item)): item for item in items}

        def send(nodes: Sequence[Node]) -> None:
            self._graph.write({node: render_item(wanted[node]) for node in nodes}, {})

        for node, problem in in_halves(list(wanted), send):
            if problem is not None:
                yield FailedEntry(item_key(wanted[node]), problem)

    def erase_item(self, item: CatalogItem) -> None:
        key = item_key(item)
        nodes = (item_node(type(item), key), generic_node(type(item), key))
        self._graph.write(dict.fromkeys(nodes), {})

    def _entry(self, node: Node, fragment: Fragment) -> CatalogEntry:
        try:
            return entry_in(node.key, fragment)
        except (LumosError, KeyError, TypeError, ValueError) as problem:
            raise CatalogError(
                f"The table '{node.key}' cannot be read: {problem}", platform=self.name
            ) from problem
