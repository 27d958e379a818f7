"""The columns of tables as a file tells them: `schema.table` with a list of columns."""

from collections.abc import Mapping
from pathlib import Path

from lumos.config.tree import Block, ConfigurationError, Listing, Node, Problem, Scalar
from lumos.config.yaml_tree import read
from lumos.lineage.sql.script import Parts


class TableColumns:
    """Tables and their columns; a name that says less finds the only table that ends with it."""

    def __init__(self, tables: Mapping[str, list[str]]) -> None:
        self._by_parts = {_parts(name): columns for name, columns in tables.items()}

    def __call__(self, table: Parts) -> list[str] | None:
        """The columns of a table, or None if none or several could be meant."""
        wanted = tuple(part.lower() for part in table)
        if wanted in self._by_parts:
            return self._by_parts[wanted]
        ending = [
            columns
            for parts, columns in self._by_parts.items()
            if parts == wanted[-len(parts) :] or wanted == parts[-len(wanted) :]
        ]
        return ending[0] if len(ending) == 1 else None


def columns_in(file: Path) -> TableColumns:
    """The tables of a YAML file; raises ConfigurationError with all that is wrong, by line.

    A table has a list of names, of `{name, type}`, or a mapping of names to types; these may also
    stand under `columns`.
    """
    problems: list[Problem]
    root, problems = read(file, environment={})
    tables = {name: _columns(entry.node, problems) for name, entry in root.entries.items()}
    if problems:
        raise ConfigurationError(problems)
    return TableColumns(tables)


def _parts(name: str) -> Parts:
    return tuple(part.strip(' "`[]').lower() for part in name.split("."))


def _columns(node: Node, problems: list[Problem]) -> list[str]:
    if isinstance(node, Block):
        inner = node.entries.get("columns")
        if inner is not None and not isinstance(inner.node, Scalar):
            return _columns(inner.node, problems)
        return list(node.entries)
    if isinstance(node, Listing):
        return [name for item in node.items if (name := _name(item, problems)) is not None]
    _refuse(node, problems, "a list of columns, or names with their types")
    return []


def _name(node: Node, problems: list[Problem]) -> str | None:
    if isinstance(node, Scalar) and not node.empty:
        return node.text
    if isinstance(node, Block):
        given = node.entries.get("name")
        if given is not None and isinstance(given.node, Scalar):
            return given.node.text
        if len(node.entries) == 1:
            return next(iter(node.entries))
    _refuse(node, problems, "a column's name, or 'name' with its 'type'")
    return None


def _refuse(node: Node, problems: list[Problem], wanted: str) -> None:
    problems.append(Problem(place=node.place, key=node.path, text=f"{node.path} must be {wanted}."))
