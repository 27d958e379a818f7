"""The models of a dbt schema.yml, as far as their columns are told there."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from lumos.config.tree import Block, ConfigurationError, Listing, Node, Place, Problem, Scalar
from lumos.config.yaml_tree import parse
from lumos.model.conversions.sql import Dialect, type_from_sql
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
    root, problems = parse(text, place=Place(origin=file, folder=""), environment={})
    if problems:
        raise ConfigurationError(problems)
    return tuple(_model(block, dialect) for block in _models(root))


def _models(root: Block) -> Iterator[Block]:
    for section in _SECTIONS:
        yield from (block for block in _blocks(root, section) if _text(block, "name"))
    for source in _blocks(root, "sources"):
        yield from _models(source)


def _model(block: Block, dialect: Dialect) -> Model:
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


def _field(column: Block, name: str, dialect: Dialect, *, is_key: bool) -> Field:
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


def _test_names(column: Block, section: str) -> Iterator[str]:
    for item in _items(column, section):
        if isinstance(item, Scalar):
            yield item.written or item.text
        elif isinstance(item, Block):
            yield from item.entries


def _items(block: Block, key: str) -> tuple[Node, ...]:
    entry = block.entries.get(key)
    return entry.node.items if entry is not None and isinstance(entry.node, Listing) else ()


def _blocks(block: Block, key: str) -> Iterator[Block]:
    return (item for item in _items(block, key) if isinstance(item, Block))


def _block(block: Block | None, key: str) -> Block | None:
    entry = block.entries.get(key) if block is not None else None
    return entry.node if entry is not None and isinstance(entry.node, Block) else None


def _texts(block: Block, key: str) -> Iterator[str]:
    return (item.written or item.text for item in _items(block, key) if isinstance(item, Scalar))


def _text(block: Block, key: str) -> str:
    """The value as it was written: dbt has variables of its own."""
    entry = block.entries.get(key)
    node = None if entry is None else entry.node
    return (node.written or node.text).strip() if isinstance(node, Scalar) else ""


def _wrong(block: Block, text: str) -> ConfigurationError:
    return ConfigurationError([Problem(place=block.place, key=block.path, text=text)])
