"""Arbitrary types and schemas, with every kind of type and the oddest names."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from lumos.model.schema import Field, Schema
from lumos.model.types import (
    SIMPLE,
    UNITS,
    Array,
    Binary,
    DataType,
    Decimal,
    Duration,
    Enum,
    Map,
    Member,
    String,
    Struct,
    Time,
    Timestamp,
    Union,
    Unknown,
)

ODD_NAMES = (
    "", " ", "a.b", "a-b", "`", "``", "a`b", "'", "''", '"', "a\nb", "\r\n", "#", "1st", "order",
    "NOT", "NULL", "größe", "名前", "🦆", "a:b", "a,b", "<", ">", "\\", "a\\b",
    "{}", "[]", "\x00", "\t",
)  # fmt: skip
TEXTS = st.sampled_from(ODD_NAMES) | st.text(max_size=6)
NAMES = st.sampled_from(("id", "name", "value", "Id", "_x", *ODD_NAMES)) | st.text(max_size=6)
LENGTHS = st.none() | st.integers(1, 2**40)

SIMPLE_TYPES = st.sampled_from(tuple(SIMPLE.values()))
DECIMALS = st.just(Decimal()) | st.builds(Decimal, st.integers(1, 100), st.integers(-50, 120))
STRINGS = st.builds(String, LENGTHS)
BINARIES = st.builds(Binary, LENGTHS)
TIMES = st.sampled_from(
    tuple(
        type
        for unit in UNITS
        for type in (Time(unit), Timestamp(unit), Timestamp(unit, zoned=True), Duration(unit))
    )
)
ENUMS = st.builds(Enum, st.lists(TEXTS, max_size=3))
UNKNOWNS = st.builds(Unknown, TEXTS)
SCALARS = st.one_of(SIMPLE_TYPES, DECIMALS, STRINGS, BINARIES, TIMES, ENUMS, UNKNOWNS)


def plain_decimals(most_digits: int) -> SearchStrategy[DataType]:
    """Decimals as most systems have them: a scale from 0 to the precision."""
    return st.integers(1, most_digits).flatmap(
        lambda precision: st.integers(0, precision).map(lambda scale: Decimal(precision, scale))
    )


def arrays(inner: SearchStrategy[DataType]) -> SearchStrategy[DataType]:
    return st.builds(
        lambda type, nullable: Array(type, element_nullable=nullable), inner, st.booleans()
    )


def maps(
    inner: SearchStrategy[DataType], keys: SearchStrategy[DataType] | None = None
) -> SearchStrategy[DataType]:
    return st.builds(
        lambda key, value, nullable: Map(key, value, value_nullable=nullable),
        inner if keys is None else keys,
        inner,
        st.booleans(),
    )


def structs(
    inner: SearchStrategy[DataType], names: SearchStrategy[str] = NAMES, **limits: Any
) -> SearchStrategy[DataType]:
    member = st.builds(
        lambda name, type, nullable: Member(name, type, nullable=nullable),
        names,
        inner,
        st.booleans(),
    )
    return st.lists(member, **{"max_size": 3, **limits}).map(Struct)


def unions(inner: SearchStrategy[DataType], **limits: Any) -> SearchStrategy[DataType]:
    return st.lists(inner, **{"max_size": 3, **limits}).map(Union)


def _all_containers(inner: SearchStrategy[DataType]) -> SearchStrategy[DataType]:
    return st.one_of(arrays(inner), maps(inner), structs(inner), unions(inner))


def nested(
    scalars: SearchStrategy[DataType],
    containers: Callable[[SearchStrategy[DataType]], SearchStrategy[DataType]] = _all_containers,
) -> SearchStrategy[DataType]:
    """The scalars and what the containers build from them."""
    return st.recursive(scalars, containers, max_leaves=6)


TYPES = nested(SCALARS)


def schemas(types: SearchStrategy[DataType] = TYPES) -> SearchStrategy[Schema]:
    """Schemas with all that their text form carries."""
    field = st.builds(
        Field,
        name=NAMES,
        type=types,
        nullable=st.booleans(),
        key=st.booleans(),
        partition=st.booleans(),
        default=st.none() | TEXTS,
        description=st.none() | TEXTS.filter(bool),
    )
    fields = st.lists(field, max_size=4, unique_by=lambda field: field.name)
    return fields.map(lambda fields: Schema(fields=tuple(fields)))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 300) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


def json_with(words: tuple[str, ...]) -> SearchStrategy[Any]:
    """JSON values that use the words of a schema language, mostly in the wrong places."""
    texts = st.sampled_from(words)
    return st.recursive(
        st.none() | st.booleans() | st.integers(-3, 300) | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=5),
        max_leaves=12,
    )
