"""Inferred types: the same for the same values, however they are divided over files."""

import json
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.formats.inference import MAX_MEMBERS, struct_or_map, type_of_texts, widen
from lumos.formats.json import type_of_values
from lumos.model.types import BOOLEAN, FLOAT64, INT64, NULL, STRING, Array, Map, Struct

TEXTS = st.sampled_from(
    ["", "NA", "1", "-7", "0", "00", "1.5", "1e9", "x", "true", "FALSE", " 3 ", "2024-01-31",
     "2024-02-31", "2024-01-31 10:00:00", "2024-01-31T10:00Z", "9223372036854775807",
     "9223372036854775808", "9" * 38, "9" * 39, "+5", "-"]
)  # fmt: skip
VALUES = st.recursive(
    st.sampled_from([None, True, 1, -5, 2**63, 10**38, 1.5, "x", "", "2024-01-31"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(parts=st.lists(st.lists(TEXTS, max_size=4), min_size=1, max_size=4))
def test_the_type_of_texts_is_that_of_their_parts_widened(parts: list[list[str]]) -> None:
    whole = type_of_texts([text for part in parts for text in part])
    assert whole == reduce(widen, map(type_of_texts, parts))


def by_name(type: Any) -> Any:
    """The type with members in the order of their names, since files may differ in that."""
    match type:
        case Struct(members):
            return sorted((member.name, str(by_name(member.type))) for member in members)
        case Array(element):
            return ["array", by_name(element)]
        case _:
            return type


@given(parts=st.lists(st.lists(VALUES, max_size=4), min_size=1, max_size=4))
def test_the_type_of_json_values_is_that_of_their_parts_widened(parts: list[list[Any]]) -> None:
    whole = type_of_values([value for part in parts for value in part])
    assert by_name(whole) == by_name(reduce(widen, map(type_of_values, parts)))


@given(values=st.lists(VALUES, max_size=6))
def test_json_values_have_the_type_of_their_own_text(values: list[Any]) -> None:
    assert type_of_values(json.loads(json.dumps(values))) == type_of_values(values)


@pytest.mark.parametrize(
    ("left", "right", "together"),
    [
        (INT64, FLOAT64, FLOAT64),
        (INT64, NULL, INT64),
        (BOOLEAN, INT64, STRING),
        (Array(NULL), Array(INT64), Array(INT64)),
        (Array(INT64), INT64, STRING),
    ],
)
def test_types_widen_both_ways(left: Any, right: Any, together: Any) -> None:
    assert widen(left, right) == widen(right, left) == together


def test_an_object_with_data_for_keys_is_a_map() -> None:
    many = {f"k{number}": INT64 for number in range(MAX_MEMBERS + 1)}
    few = {"other": FLOAT64}
    assert isinstance(struct_or_map(few), Struct)
    assert struct_or_map(many) == Map(STRING, INT64)
    assert widen(struct_or_map(few), struct_or_map(many)) == Map(STRING, FLOAT64)
