"""Arbitrary pairs of schemas that have much in common, with words at every depth."""

from collections.abc import Iterator

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from lumos.model.paths import ELEMENT, KEY, VALUE, child
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.types import (
    INT32,
    INT64,
    STRING,
    Array,
    DataType,
    Map,
    Member,
    Struct,
    Union,
    quoted_name,
)
from model.strategies import SCALARS, TEXTS, arrays, maps, structs, unions

FEW_NAMES = st.sampled_from(("a", "b", "c", "A", "a.b", "", "`", "[]", "{}"))
FEW_TYPES = st.sampled_from((INT32, INT64, STRING)) | SCALARS
WORDS = st.none() | st.sampled_from(("x", "y")) | TEXTS
TAGS = st.lists(st.sampled_from(("pii", "money", "'")), max_size=2).map(tuple)
IDS = st.none() | st.integers(1, 4)
NATIVE = st.none() | st.sampled_from(("int4", "text"))


def _structs(inner: SearchStrategy[DataType]) -> SearchStrategy[DataType]:
    return structs(inner, names=FEW_NAMES, max_size=4, unique_by=lambda member: member.name)


def _containers(inner: SearchStrategy[DataType]) -> SearchStrategy[DataType]:
    repeating = structs(inner, names=FEW_NAMES)
    return arrays(inner) | maps(inner) | _structs(inner) | repeating | unions(inner)


TYPES = st.recursive(FEW_TYPES, _containers, max_leaves=6) | _structs(FEW_TYPES)


def places(type: DataType, path: str) -> Iterator[str]:
    """All paths inside a type that somebody may say something of."""
    match type:
        case Array(element):
            yield path + ELEMENT
            yield from places(element, path + ELEMENT)
        case Map(key, value):
            for place, inner in ((path + KEY, key), (path + VALUE, value)):
                yield place
                yield from places(inner, place)
        case Struct(members):
            for member in members:
                place = child(path, member.name)
                yield place
                yield from places(member.type, place)
        case Union(options):
            yield from (f"{path}<{index}>" for index in range(len(options)))


@st.composite
def fields(draw: DrawFn) -> Field:
    name, type = draw(FEW_NAMES), draw(TYPES)
    return Field(
        name=name,
        type=type,
        nullable=draw(st.booleans()),
        key=draw(st.booleans()),
        partition=draw(st.booleans()),
        default=draw(WORDS),
        description=draw(WORDS),
        tags=draw(TAGS),
        native_type=draw(NATIVE),
        field_id=draw(IDS),
        nested=draw(_notes(type, quoted_name(name))),
    )


@st.composite
def _notes(draw: DrawFn, type: DataType, path: str) -> tuple[NestedField, ...]:
    inside = sorted(set(places(type, path)))
    spoken_of = draw(st.lists(st.sampled_from(inside), unique=True, max_size=3)) if inside else []
    return tuple(
        NestedField(
            path=place,
            description=draw(WORDS),
            default=draw(WORDS),
            tags=draw(TAGS),
            field_id=draw(IDS),
        )
        for place in spoken_of
    )


@st.composite
def _edited_type(draw: DrawFn, type: DataType) -> DataType:
    """The type with some of its parts changed, added, removed or moved."""
    match type:
        case Struct(members):
            kept = [
                Member(member.name, draw(_edited_type(member.type)), nullable=draw(st.booleans()))
                for member in draw(st.permutations(members))
                if draw(st.booleans())
            ]
            fresh = Member(draw(FEW_NAMES), draw(FEW_TYPES))
            return Struct([*kept, fresh] if draw(st.booleans()) else kept)
        case Array(element):
            return Array(draw(_edited_type(element)), element_nullable=draw(st.booleans()))
        case Map(key, value):
            return Map(
                draw(st.just(key) | FEW_TYPES),
                draw(_edited_type(value)),
                value_nullable=draw(st.booleans()),
            )
        case _:
            return draw(st.just(type) | FEW_TYPES)


@st.composite
def _edited(draw: DrawFn, field: Field) -> Field:
    type = draw(st.just(field.type) | _edited_type(field.type))
    path = quoted_name(field.name)
    there = set(places(type, path))
    notes = {note.path: note for note in draw(_notes(type, path))}
    notes |= {note.path: note for note in field.nested if note.path in there}
    return msgspec.structs.replace(field, type=type, nested=tuple(notes.values()), **draw(_EDITS))


def _distinct(some: list[Field]) -> Schema:
    return Schema(fields=tuple({field.name: field for field in some}.values()))


SCHEMAS = st.lists(fields(), max_size=4).map(_distinct)


@st.composite
def pairs_of_schemas(draw: DrawFn) -> tuple[Schema, Schema]:
    """Two schemas of which the second keeps some columns of the first, in some order."""
    before = draw(SCHEMAS)
    kept = [
        draw(_edited(field))
        for field in draw(st.permutations(before.fields))
        if draw(st.booleans())
    ]
    fresh = draw(st.lists(fields(), max_size=2))
    return before, _distinct(draw(st.permutations([*kept, *fresh])))


_EDITS = st.fixed_dictionaries(
    {},
    optional={
        "nullable": st.booleans(),
        "key": st.booleans(),
        "default": WORDS,
        "description": WORDS,
        "tags": TAGS,
        "field_id": IDS,
    },
)
