"""The columns of tables as a file tells them: `schema.table` with a list of columns."""

from collections.abc import Mapping
from pathlib import Path

from lumos.config.yaml_tree import (
    ConfigNode,
    ConfigProblem,
    ConfigurationError,
    ListNode,
    MappingNode,
    ScalarNode,
    read_yaml,
)
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
    problems: list[ConfigProblem]
    root, problems = read_yaml(file, environment={})
    tables = {name: _columns(entry.node, problems) for name, entry in root.entries.items()}
    if problems:
        raise ConfigurationError(problems)
    return TableColumns(tables)


def _parts(name: str) -> Parts:
    return tuple(part.strip(' "`[]').lower() for part in name.split("."))


def _columns(node: ConfigNode, problems: list[ConfigProblem]) -> list[str]:
    if isinstance(node, MappingNode):
        inner = node.entries.get("columns")
        if inner is not None and not isinstance(inner.node, ScalarNode):
            return _columns(inner.node, problems)
        return list(node.entries)
    if isinstance(node, ListNode):
        return [name for item in node.items if (name := _name(item, problems)) is not None]
    _refuse(node, problems, "a list of columns, or names with their types")
    return []


def _name(node: ConfigNode, problems: list[ConfigProblem]) -> str | None:
    if isinstance(node, ScalarNode) and not node.empty:
        return node.text
    if isinstance(node, MappingNode):
        given = node.entries.get("name")
        if given is not None and isinstance(given.node, ScalarNode):
            return given.node.text
        if len(node.entries) == 1:
            return next(iter(node.entries))
    _refuse(node, problems, "a column's name, or 'name' with its 'type'")
    return None


def _refuse(node: ConfigNode, problems: list[ConfigProblem], wanted: str) -> None:
    problems.append(
        ConfigProblem(place=node.place, key=node.path, text=f"{node.path} must be {wanted}.")
    )
