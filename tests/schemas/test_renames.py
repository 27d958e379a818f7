"""Suggested renames: by field id, then by place with the same type and properties."""

import msgspec
import pytest

from lumos.model.change import FieldRemoved
from lumos.model.schema import Field, NestedField, Schema, parse_schema
from lumos.model.types import INT32, INT64, Array, Member, Struct
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import classify
from lumos.schemas.renames import Rename, suggest_renames


def renames(before: str, after: str) -> list[tuple[str, str]]:
    found = suggest_renames(compare(parse_schema(before), parse_schema(after)))
    assert {rename.evidence for rename in found} <= {"position"}
    return [(rename.before, rename.after) for rename in found]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param("a INT64", "b INT64", [("a", "b")], id="the only column"),
        pytest.param(
            "a INT64\nb DATE", "x INT64\ny DATE", [("a", "x"), ("b", "y")], id="all columns"
        ),
        pytest.param(
            "a INT64\nb DATE\nc INT8",
            "n STRING\na INT64\nx DATE\nc INT8",
            [("b", "x")],
            id="beside a new column elsewhere",
        ),
        pytest.param(
            "q INT8\na INT64\nb DATE", "a INT64\nx DATE", [("b", "x")], id="beside a removed one"
        ),
        pytest.param(
            "a INT64\nb DATE\nc INT8",
            "a INT64\nx DATE\ny DATE\nc INT8",
            [("b", "x")],
            id="the first of two at the same place",
        ),
        pytest.param("a INT64", "b INT32", [], id="another type"),
        pytest.param("a INT64", "b INT64 NOT NULL", [], id="another nullability"),
        pytest.param("a INT64 KEY", "b INT64", [], id="no longer the key"),
        pytest.param("a INT64", "b INT64 DEFAULT '0'", [], id="another default"),
        pytest.param("a DATE\nb INT64", "b INT64\nx DATE", [], id="the same type elsewhere"),
        pytest.param(
            "s STRUCT<a: INT64, t: STRUCT<b: DATE>>",
            "s STRUCT<x: INT64, t: STRUCT<y: DATE>>",
            [("s.a", "s.x"), ("s.t.b", "s.t.y")],
            id="members at every level",
        ),
        pytest.param("a INT64\ns STRUCT<x: DATE>", "s STRUCT<x: DATE, b: INT64>", [], id="moved"),
    ],
)
def test_a_rename_is_suggested_by_place_type_and_properties(
    before: str, after: str, expected: list[tuple[str, str]]
) -> None:
    assert sorted(renames(before, after)) == sorted(expected)


def with_ids(*columns: tuple[str, int | None]) -> Schema:
    return Schema(fields=tuple(Field(name=name, type=INT64, field_id=id) for name, id in columns))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(
            [("a", 1), ("b", 2)],
            [("x", 2), ("y", 1)],
            "a>y field id b>x field id",
            id="ids before places",
        ),
        pytest.param([("a", 1)], [("x", 2)], "", id="other ids deny it"),
        pytest.param([("a", 1)], [("x", None)], "a>x position", id="one id says nothing"),
        pytest.param(
            [("a", 1), ("b", 1)], [("k", 3), ("x", 1)], "b>x position", id="an id that stands twice"
        ),
    ],
)
def test_a_field_id_says_more_than_a_place(
    before: list[tuple[str, int | None]], after: list[tuple[str, int | None]], expected: str
) -> None:
    found = suggest_renames(compare(with_ids(*before), with_ids(*after)))
    texts = sorted(f"{rename.before}>{rename.after} {rename.evidence}" for rename in found)
    assert " ".join(texts) == expected


def test_a_member_is_recognised_by_the_field_id_noted_of_it() -> None:
    def schema(name: str, place: int) -> Schema:
        members = [Member("k", INT32), Member("l", INT32)]
        members.insert(place, Member(name, INT64))
        note = NestedField(path=f"s[].{name}", field_id=7)
        return Schema(fields=(Field(name="s", type=Array(Struct(members)), nested=(note,)),))

    (found,) = suggest_renames(compare(schema("old", 0), schema("new", 2)))
    assert found == Rename(before="s[].old", after="s[].new", evidence="field id")


def test_a_rename_is_a_note_on_both_findings_and_changes_no_verdict() -> None:
    findings = classify(compare(parse_schema("a INT64"), parse_schema("b INT64")))
    assert [(finding.rule, finding.consumer.value, finding.notes[0]) for finding in findings] == [
        ("field-removed", "breaking", "perhaps renamed to b (same position)"),
        ("field-added", "compatible", "perhaps renamed from a (same position)"),
    ]


def test_changes_stored_without_positions_suggest_nothing() -> None:
    changes = compare(parse_schema("a INT64"), parse_schema("b INT64"))
    stored = [
        msgspec.structs.replace(change, position=None)
        if isinstance(change, FieldRemoved)
        else change
        for change in changes
    ]
    assert suggest_renames(stored) == ()
