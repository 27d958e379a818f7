"""The models of a dbt schema.yml, as far as their columns are told there."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from lumos.config.yaml_tree import (
    ConfigNode,
    ConfigPosition,
    ConfigProblem,
    ConfigurationError,
    ListNode,
    MappingNode,
    ScalarNode,
    parse_yaml,
)
from lumos.model.conversions.sql_types import Dialect, type_from_sql
from lumos.model.schema import Field, Schema
from lumos.model.types import UNKNOWN

_SECTIONS: Final = ("models", "seeds", "snapshots", "tables")
_TESTS: Final = ("tests", "data_tests")


class Model(NamedTuple):
    """A model, seed, snapshot or source table and its listed columns.

    Only an `enforced` contract makes the list complete. `untyped` columns have no data_type,
    `unquoted` names may stand in any case, `nested` ones tell of fields inside columns.
    """

    name: str
    schema: Schema
    enforced: bool
    has_key: bool
    untyped: frozenset[str]
    unquoted: frozenset[str]
    nested: tuple[str, ...]


def models_from_dbt(text: str, *, file: str, dialect: Dialect) -> tuple[Model, ...]:
    """Every model of the text; raises ConfigurationError with file and line."""
    root, problems = parse_yaml(text, place=ConfigPosition(origin=file, folder=""), environment={})
    if problems:
        raise ConfigurationError(problems)
    return tuple(_model(block, dialect) for block in _models(root))


def _models(root: MappingNode) -> Iterator[MappingNode]:
    for section in _SECTIONS:
        yield from (block for block in _blocks(root, section) if _text(block, "name"))
    for source in _blocks(root, "sources"):
        yield from _models(source)


def _model(block: MappingNode, dialect: Dialect) -> Model:
    fields: dict[str, Field] = {}
    untyped, unquoted, nested = set(), set(), []
    keys = {
        name.casefold()
        for constraint in _blocks(block, "constraints")
        if _text(constraint, "type") == "primary_key"
        for name in _texts(constraint, "columns")
    }
    for column in _blocks(block, "columns"):
        name = _text(column, "name")
        if not name:
            raise _wrong(column, "A column has no name.")
        if name in fields or name in nested:
            raise _wrong(column, f"The column '{name}' stands twice.")
        if "." in name:
            nested.append(name)
            continue
        fields[name] = _field(column, name, dialect, is_key=name.casefold() in keys)
        if not _text(column, "data_type"):
            untyped.add(name)
        if _text(column, "quote").lower() != "true":
            unquoted.add(name)
    contract = _block(_block(block, "config"), "contract") or _block(block, "contract")
    return Model(
        name=_text(block, "name"),
        schema=Schema(fields=tuple(fields.values())),
        enforced=contract is not None and _text(contract, "enforced").lower() == "true",
        has_key=any(field.key for field in fields.values()),
        untyped=frozenset(untyped),
        unquoted=frozenset(unquoted),
        nested=tuple(nested),
    )


def _field(column: MappingNode, name: str, dialect: Dialect, *, is_key: bool) -> Field:
    constraints = {_text(each, "type") for each in _blocks(column, "constraints")}
    tests = {test for section in _TESTS for test in _test_names(column, section)}
    is_key = is_key or "primary_key" in constraints
    data_type = _text(column, "data_type")
    return Field(
        name=name,
        type=type_from_sql(data_type, dialect) if data_type else UNKNOWN,
        nullable=not (is_key or "not_null" in constraints or "not_null" in tests),
        key=is_key,
        description=_text(column, "description") or None,
        native_type=data_type or None,
    )


def _test_names(column: MappingNode, section: str) -> Iterator[str]:
    for item in _items(column, section):
        if isinstance(item, ScalarNode):
            yield item.written or item.text
        elif isinstance(item, MappingNode):
            yield from item.entries


def _items(block: MappingNode, key: str) -> tuple[ConfigNode, ...]:
    entry = block.entries.get(key)
    return entry.node.items if entry is not None and isinstance(entry.node, ListNode) else ()


def _blocks(block: MappingNode, key: str) -> Iterator[MappingNode]:
    return (item for item in _items(block, key) if isinstance(item, MappingNode))


def _block(block: MappingNode | None, key: str) -> MappingNode | None:
    entry = block.entries.get(key) if block is not None else None
    return entry.node if entry is not None and isinstance(entry.node, MappingNode) else None


def _texts(block: MappingNode, key: str) -> Iterator[str]:
    return (
        item.written or item.text for item in _items(block, key) if isinstance(item, ScalarNode)
    )


def _text(block: MappingNode, key: str) -> str:
    """The value as it was written: dbt has variables of its own."""
    entry = block.entries.get(key)
    node = None if entry is None else entry.node
    return (node.written or node.text).strip() if isinstance(node, ScalarNode) else ""


def _wrong(block: MappingNode, text: str) -> ConfigurationError:
    return ConfigurationError([ConfigProblem(place=block.place, key=block.path, text=text)])
