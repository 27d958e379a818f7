"""A graph in CSV files as databuilder's FsNeo4jCSVLoader writes them: nodes and relationships."""

import csv
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from lumos.catalogs.amundsen import graph
from lumos.catalogs.amundsen.graph import Fragment, Node, Properties, Relation
from lumos.errors import CatalogError

_NODES: Final = "nodes"
_RELATIONS: Final = "relationships"
# A complete new version that was not yet moved to its final location.
_COMMITTED: Final = ".committed"
_UNQUOTED: Final = ":UNQUOTED"
_MAX_FIELD_SIZE: Final = 64 * 1024 * 1024
_NODE: Final = ("LABEL", "KEY")
_RELATION: Final = ("START_KEY", "START_LABEL", "END_KEY", "END_LABEL", "TYPE", "REVERSE_TYPE")
_PAIRS: Final = frozenset(graph.REVERSE.items())
# Relations from a schema or a group of dashboards to its parents.
_PARENT_RELATIONS: Final = frozenset({"CLUSTER_OF", "DASHBOARD_GROUP_OF", "SCHEMA_OF"})
# Relations from a dashboard or table to its group or schema.
_TO_PARENTS: Final = ("DASHBOARD_OF", "TABLE_OF")
# Relations that databuilder writes from their other end.
_WRITTEN_REVERSED: Final = _PARENT_RELATIONS | {"HAS_UPSTREAM", "TABLE_OF", "WATERMARK"}


class CsvFolder(graph.Graph):
    """The graph of a folder, in memory until it is saved.

    Saving preserves nodes and relations that no fragment contains, and properties that Lumos does
    not know. It drops references that no fragment needs any more.
    """

    def __init__(
        self, folder: Path, *, platform: str, is_in_batch: Callable[[], bool] = lambda: False
    ) -> None:
        self._folder, self._platform, self._is_in_batch = folder, platform, is_in_batch
        self._fragments: dict[Node, Fragment] = {}
        self._nodes: dict[Node, Properties] = {}
        self._relations: dict[Relation, Properties] = {}
        _finish_commit(folder)
        self._version = _version(folder)
        for row in self._rows(_NODES, _NODE):
            node = Node(row.pop("LABEL"), row.pop("KEY"))
            self._nodes.setdefault(node, {}).update(row)
        for row in self._rows(_RELATIONS, _RELATION):
            start_key, start, end_key, end, type, reverse = (row.pop(name) for name in _RELATION)
            each = Relation(Node(start, start_key), type, Node(end, end_key), reverse)
            if (reverse, type) in _PAIRS:
                each = Relation(each.end, reverse, each.start, type)
            self._relations.setdefault(each, {}).update(row)
        self._outside_fragments = self._read_fragments()

    def keys(self, label: str) -> Collection[str]:
        return [node.key for node in self._fragments if node.label == label]

    def read(self, nodes: Sequence[Node]) -> dict[Node, Fragment]:
        return {node: self._fragments[node] for node in nodes if node in self._fragments}

    def write(
        self,
        wanted: Mapping[Node, Fragment | None],
        before: Mapping[Node, Fragment],  # noqa: ARG002
    ) -> set[Node]:
        changed = set()
        for node, fragment in wanted.items():
            existing = self._fragments.get(node)
            if fragment is None and existing is not None:
                del self._fragments[node]
                self._forget(node)
                changed.add(node)
            elif fragment is not None and (existing is None or existing[:2] != fragment[:2]):
                self._fragments[node] = fragment
                changed.add(node)
        if changed and not self._is_in_batch():
            self.save()
        return changed

    def _forget(self, root: Node) -> None:
        """Drop the parts of a removed table that are in no fragment."""

        def is_part(node: Node) -> bool:
            return node == root or node.key.startswith(f"{root.key}/")

        nodes, relations = self._outside_fragments
        nodes -= {node for node in nodes if is_part(node)}
        relations -= {each for each in relations if is_part(each.start) or is_part(each.end)}

    def save(self) -> None:
        """Write all files; either all of them are replaced or none."""
        if _version(self._folder) != self._version:
            raise CatalogError(
                f"{self._folder} was changed by another program. Run the command again.",
                platform=self._platform,
            )
        self._folder.mkdir(parents=True, exist_ok=True)
        staging = Path(mkdtemp(prefix=".", dir=self._folder))
        try:
            self._write_files(staging)
            staging.rename(self._folder / _COMMITTED)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise
        _finish_commit(self._folder)
        self._version = _version(self._folder)

    def _read_fragments(self) -> tuple[set[Node], set[Relation]]:
        """Find all fragments; return the nodes and relations that belong to none of them."""
        outgoing: dict[Node, list[Relation]] = {}
        for each in self._relations:
            outgoing.setdefault(each.start, []).append(each)
        nodes, relations = set(self._nodes), set(self._relations)
        for root, properties in self._nodes.items():
            if root.label == graph.COLUMN or not self._is_marked(root):
                continue
            fragment = Fragment.of(root, graph.modelled(root.label, properties))
            pending, seen, parents = [root], {root}, []
            while pending:
                for each in outgoing.get(pending.pop(), ()):
                    is_parent_relation = each.type in _PARENT_RELATIONS
                    if is_parent_relation:
                        parents.append(each)
                        fragment.references[each.end] = {}
                    elif each.type in graph.FOLLOWED.get(each.start.label, ()):
                        fragment.add_read(
                            each, self._relations[each], self._nodes.get(each.end, {})
                        )
                        is_parent_relation = each.type in _TO_PARENTS
                    if (is_parent_relation or each.end in fragment.nodes) and each.end not in seen:
                        seen.add(each.end)
                        pending.append(each.end)
            self._fragments[root] = fragment._replace(parents=tuple(parents))
            nodes -= fragment.nodes.keys() | fragment.references.keys()
            relations -= {*fragment.relations, *parents}
        return nodes | {end for each in relations for end in (each.start, each.end)}, relations

    def _is_marked(self, node: Node) -> bool:
        return graph.MARK.get(node.label, "") in self._nodes.get(node, {})

    def _rows(self, kind: str, required: Sequence[str]) -> Iterator[dict[str, Any]]:
        csv.field_size_limit(_MAX_FIELD_SIZE)
        for path in sorted((self._folder / kind).glob("*.csv")):
            try:
                with path.open(encoding="utf-8", newline="") as file:
                    reader = csv.DictReader(file)
                    names = reader.fieldnames or ()
                    if missing := set(required) - set(names):
                        raise CatalogError(
                            f"{path} has no column {sorted(missing)[0]}. Write it with "
                            "databuilder's FsNeo4jCSVLoader.",
                            platform=self._platform,
                        )
                    for row in reader:
                        if None in row or None in row.values():
                            raise CatalogError(
                                f"{path}:{reader.line_num}: expected {len(names)} fields.",
                                platform=self._platform,
                            )
                        yield {
                            name.removesuffix(_UNQUOTED): _value(name, text)
                            for name, text in row.items()
                        }
            except (OSError, UnicodeDecodeError, csv.Error) as problem:
                raise CatalogError(f"{path}: {problem}", platform=self._platform) from None

    def _write_files(self, folder: Path) -> None:
        # As in databuilder, rows with the same columns are in one file, and files are numbered.
        numbers: dict[frozenset[str], int] = {}
        files: dict[Path, list[dict[str, Any]]] = {}

        def add(kind: str, name: str, row: dict[str, Any], properties: Properties) -> None:
            for key, value in sorted(properties.items()):
                row[f"{key}{_UNQUOTED}" if isinstance(value, int) else key] = value
            number = numbers.setdefault(frozenset(row), len(numbers))
            files.setdefault(folder / kind / f"{name}_{number}.csv", []).append(row)

        nodes, relations = self._graph()
        for node in sorted(nodes):
            add(_NODES, node.label, {"LABEL": node.label, "KEY": node.key}, nodes[node])
        for each in sorted(relations):
            start, type, end, reverse = each
            if type in _WRITTEN_REVERSED:
                start, type, end, reverse = end, reverse, start, type
            ends = (start.key, start.label, end.key, end.label, type, reverse)
            row = dict(zip(_RELATION, ends, strict=True))
            add(_RELATIONS, f"{start.label}_{end.label}_{type}", row, relations[each])
        for kind in (_NODES, _RELATIONS):
            (folder / kind).mkdir()
        for path, rows in files.items():
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]), quoting=csv.QUOTE_NONNUMERIC)
                writer.writeheader()
                writer.writerows(rows)
                file.flush()
                os.fsync(file.fileno())

    def _graph(self) -> tuple[dict[Node, Properties], dict[Relation, Properties]]:
        """All nodes and relations, with the properties that Lumos does not know."""
        relations = {each: self._relations[each] for each in self._outside_fragments[1]}
        nodes = {node: self._reference(node, {}) for node in self._outside_fragments[0]}
        for fragment in self._fragments.values():
            for each, properties in fragment.relations.items():
                relations[each] = _unmodelled(each.type, self._relations.get(each, {})) | properties
            relations.update((each, self._relations.get(each, {})) for each in fragment.parents)
            for node, properties in fragment.references.items():
                nodes.setdefault(node, self._reference(node, properties))
        for fragment in self._fragments.values():
            for node, properties in fragment.nodes.items():
                nodes[node] = _unmodelled(node.label, self._nodes.get(node, {})) | properties
        return nodes, relations

    def _reference(self, node: Node, properties: Properties) -> Properties:
        # The node was an item when it was read, and is now only the target of a reference.
        was_item = self._is_marked(node) and node.label != graph.COLUMN
        return node.reference if was_item else self._nodes.get(node) or properties


def check_writable(folder: Path) -> None:
    """Raise an error if the folder cannot be written, without creating it."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise CatalogError(
            f"{folder} cannot be written: {existing} is not a writable folder. Use another folder.",
            platform=str(folder),
        )


def _finish_commit(folder: Path) -> None:
    """Move a complete new version to its location; also done by readers, if a writer was killed."""
    committed = folder / _COMMITTED
    for kind in (_NODES, _RELATIONS):
        if (committed / kind).exists():
            shutil.rmtree(folder / kind, ignore_errors=True)
            (committed / kind).rename(folder / kind)
    with suppress(OSError):
        committed.rmdir()


def _version(folder: Path) -> tuple[tuple[str, int, int], ...]:
    paths = sorted(path for kind in (_NODES, _RELATIONS) for path in (folder / kind).glob("*.csv"))
    return tuple((str(each), each.stat().st_mtime_ns, each.stat().st_size) for each in paths)


def _unmodelled(kind: str, properties: Properties) -> Properties:
    known = graph.modelled(kind, properties)
    return {key: value for key, value in properties.items() if key not in known}


def _value(name: str, text: str) -> Any:
    if not name.endswith(_UNQUOTED):
        return text
    if text in ("True", "False"):
        return text == "True"
    with suppress(ValueError):
        return int(text)
    return text
