"""A graph in CSV files as databuilder's FsNeo4jCSVLoader writes them: nodes and relationships."""

import csv
import os
import shutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from lumos.catalogs.amundsen.graph import (
    COLUMN,
    FOLLOWED,
    MARK,
    NEEDED_BY,
    PARTS,
    REFERENCE,
    REVERSE,
    TABLE,
    Change,
    Fragment,
    Graph,
    Node,
    Plan,
    Properties,
    Relation,
    merge_changes,
    modelled,
    reference,
)
from lumos.errors import CatalogError

NODES: Final = "nodes"
RELATIONS: Final = "relationships"
# A complete new version whose files are not yet at their places.
_COMMITTED: Final = ".committed"
_UNQUOTED: Final = ":UNQUOTED"
_LONGEST_FIELD: Final = 64 * 1024 * 1024
_NODE: Final = ("LABEL", "KEY")
_RELATION: Final = ("START_KEY", "START_LABEL", "END_KEY", "END_LABEL", "TYPE", "REVERSE_TYPE")
_PAIRS: Final = frozenset(REVERSE.items())
# Relations that databuilder writes from the other end.
_TURNED: Final = frozenset(
    {"CLUSTER_OF", "DASHBOARD_GROUP_OF", "HAS_UPSTREAM", "SCHEMA_OF", "TABLE_OF", "WATERMARK"}
)


class CsvFolder(Graph):
    """The graph of a folder, in memory until it is saved."""

    def __init__(self, folder: Path, *, platform: str) -> None:
        self._folder, self._platform = folder, platform
        self.saves_changes = True
        self._nodes: dict[Node, Properties] = {}
        self._outgoing: dict[Node, dict[Relation, Properties]] = {}
        self._incoming: dict[Node, set[Relation]] = {}
        _finish(folder)
        self._version = _version(folder)
        for row in self._rows(NODES, _NODE):
            node = Node(row.pop("LABEL"), row.pop("KEY"))
            self._nodes.setdefault(node, {}).update(row)
        for row in self._rows(RELATIONS, _RELATION):
            start_key, start, end_key, end, type, reverse = (row.pop(name) for name in _RELATION)
            each = Relation(Node(start, start_key), type, Node(end, end_key), reverse)
            if (reverse, type) in _PAIRS:
                each = Relation(each.end, reverse, each.start, type)
            self._relate(each, row)

    def keys(self, label: str) -> Collection[str]:
        mark = MARK[label]
        return [
            node.key for node, each in self._nodes.items() if node.label == label and mark in each
        ]

    def read(self, nodes: Sequence[Node]) -> dict[Node, Fragment]:
        return {node: self._fragment(node) for node in nodes if self._is_held(node)}

    def change(self, nodes: Sequence[Node], plan: Plan) -> None:
        if changes := plan(self.read(nodes)):
            self._apply(merge_changes(changes))
            if self.saves_changes:
                self.save()

    def tidy(self) -> None:
        # The chain from a schema to its database becomes free from below.
        for _ in range(3):
            for node, properties in list(self._nodes.items()):
                if REFERENCE in properties and not self._is_needed(node):
                    self._forget(node)
        if self.saves_changes:
            self.save()

    def save(self) -> None:
        """Write all files; either all of them are replaced or none."""
        if _version(self._folder) != self._version:
            raise CatalogError(
                f"{self._folder} was changed by another program. Run the command again.",
                platform=self._platform,
            )
        self._folder.mkdir(parents=True, exist_ok=True)
        staged = Path(mkdtemp(prefix=".", dir=self._folder))
        try:
            self._write(staged)
            staged.chmod(0o755)
            staged.rename(self._folder / _COMMITTED)
        except BaseException:
            shutil.rmtree(staged, ignore_errors=True)
            raise
        _finish(self._folder)
        self._version = _version(self._folder)

    def _apply(self, change: Change) -> None:
        for each in change.removed_relations:
            self._unrelate(each)
        for node in change.removed_nodes:
            self._remove(node)
        for node, properties in change.nodes.items():
            there = self._nodes.setdefault(node, {})
            there.update(properties)
            self._nodes[node] = {name: each for name, each in there.items() if each is not None}
        for node, properties in change.references.items():
            self._nodes.setdefault(node, dict(properties))
        for each, properties in change.relations.items():
            self._relate(
                each, {name: value for name, value in properties.items() if value is not None}
            )

    def _is_held(self, node: Node) -> bool:
        return MARK[node.label] in self._nodes.get(node, {})

    def _fragment(self, root: Node) -> Fragment:
        part = Fragment({root: modelled(root.label, self._nodes[root])}, {}, {})
        waiting = [root]
        while waiting:
            start = waiting.pop()
            for each, properties in self._outgoing.get(start, {}).items():
                if each.type not in FOLLOWED.get(start.label, ()):
                    continue
                found = modelled(each.end.label, self._nodes.get(each.end, {}))
                if each.type in PARTS and (each.end.label not in MARK or self._is_held(each.end)):
                    part.nodes[each.end] = found
                    waiting.append(each.end)
                else:
                    part.references[each.end] = found
                part.relations[each] = modelled(each.type, properties)
        return part

    def _relate(self, each: Relation, properties: Properties) -> None:
        self._outgoing.setdefault(each.start, {}).setdefault(each, {}).update(properties)
        self._incoming.setdefault(each.end, set()).add(each)

    def _unrelate(self, each: Relation) -> None:
        self._outgoing.get(each.start, {}).pop(each, None)
        self._incoming.get(each.end, set()).discard(each)

    def _is_needed(self, node: Node) -> bool:
        types = NEEDED_BY.get(node.label)
        if types is None:
            return False
        found = [*self._outgoing.get(node, {}), *self._incoming.get(node, ())]
        return any(not types or each.reverse in types and each.end == node for each in found)

    def _remove(self, node: Node) -> None:
        """Remove a node, or what is known of it while others refer to it."""
        if node.label in (TABLE, COLUMN):
            for each in [*self._outgoing.get(node, {}), *self._incoming.get(node, ())]:
                end = each.end if each.start == node else each.start
                if end.key.startswith(f"{node.key}/") and end.label not in (TABLE, COLUMN):
                    self._forget(end)
        if not self._is_needed(node):
            self._forget(node)
            return
        self._nodes[node] = reference(node)
        for each in [*self._outgoing.get(node, {}), *self._incoming.get(node, ())]:
            types = NEEDED_BY[node.label]
            if types and each.reverse not in types:
                self._unrelate(each)

    def _forget(self, node: Node) -> None:
        for each in [*self._outgoing.pop(node, {}), *self._incoming.pop(node, ())]:
            self._unrelate(each)
        self._nodes.pop(node, None)

    def _rows(self, kind: str, required: Sequence[str]) -> Iterator[dict[str, Any]]:
        csv.field_size_limit(_LONGEST_FIELD)
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
                                f"{path}:{reader.line_num}: the row has not {len(names)} fields.",
                                platform=self._platform,
                            )
                        yield {
                            name.removesuffix(_UNQUOTED): _value(name, text)
                            for name, text in row.items()
                        }
            except (OSError, UnicodeDecodeError, csv.Error) as problem:
                raise CatalogError(f"{path}: {problem}", platform=self._platform) from None

    def _write(self, folder: Path) -> None:
        # As in databuilder, rows with the same columns are in one file, and files are numbered.
        numbers: dict[frozenset[str], int] = {}
        files: dict[Path, list[dict[str, Any]]] = {}

        def add(kind: str, name: str, row: dict[str, Any], properties: Properties) -> None:
            row |= {_header(key, properties[key]): properties[key] for key in sorted(properties)}
            number = numbers.setdefault(frozenset(row), len(numbers))
            files.setdefault(folder / kind / f"{name}_{number}.csv", []).append(row)

        for node in sorted(self._nodes):
            add(NODES, node.label, {"LABEL": node.label, "KEY": node.key}, self._nodes[node])
        for each in sorted(each for some in self._outgoing.values() for each in some):
            properties = self._outgoing[each.start][each]
            start, type, end, reverse = each
            if type in _TURNED:
                start, type, end, reverse = end, reverse, start, type
            row = {
                "START_KEY": start.key, "START_LABEL": start.label, "END_KEY": end.key,
                "END_LABEL": end.label, "TYPE": type, "REVERSE_TYPE": reverse,
            }  # fmt: skip
            add(RELATIONS, f"{start.label}_{end.label}_{type}", row, properties)
        for kind in (NODES, RELATIONS):
            (folder / kind).mkdir()
        for path, rows in files.items():
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]), quoting=csv.QUOTE_NONNUMERIC)
                writer.writeheader()
                writer.writerows(rows)
                file.flush()
                os.fsync(file.fileno())


def check_writable(folder: Path) -> None:
    """Raise an error if the folder cannot be written, without creating it."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise CatalogError(
            f"{folder} cannot be written: {existing} is not a folder that may be written to. "
            "Name another folder.",
            platform=str(folder),
        )


def _finish(folder: Path) -> None:
    """Move a complete new version to its place; whoever reads does this, as the writer may be dead."""
    committed = folder / _COMMITTED
    for kind in (NODES, RELATIONS):
        if (committed / kind).exists():
            shutil.rmtree(folder / kind, ignore_errors=True)
            (committed / kind).rename(folder / kind)
    with suppress(OSError):
        committed.rmdir()


def _version(folder: Path) -> tuple[tuple[str, int, int], ...]:
    paths = sorted(path for kind in (NODES, RELATIONS) for path in (folder / kind).glob("*.csv"))
    return tuple((str(each), each.stat().st_mtime_ns, each.stat().st_size) for each in paths)


def _header(name: str, value: Any) -> str:
    return f"{name}{_UNQUOTED}" if isinstance(value, int) else name


def _value(name: str, text: str) -> Any:
    if not name.endswith(_UNQUOTED):
        return text
    if text in ("True", "False"):
        return text == "True"
    try:
        return int(text)
    except ValueError:
        return text
