"""What happened, in words."""

from typing import get_args

import pytest

from lumos.analysis.comparison import compare
from lumos.analysis.compatibility import judge
from lumos.analysis.wording import blast_radius_of, sentence_of, summary_of
from lumos.model.change import (
    Affected,
    AnySchemaChange,
    BlastRadius,
    EventType,
    FieldAdded,
    Verdict,
)
from lumos.model.text import parse_schema

# Each line changes one thing: before, after, summary, sentence.
WORDS = [
    ("a INT64\nb STRING", "a INT64", "1 field removed: b", "Removed b field"),
    ("a INT64", "a INT64\nemail STRING", "1 field added: email", "Added email field"),
    (
        "a STRUCT<b: INT32>", "a STRUCT<b: INT64>", "1 type changed: a.b INT32 -> INT64",
        "Changed type of a.b from INT32 to INT64",
    ),
    ("a INT64", "a INT64 NOT NULL", "1 field made required: a", "Made a required"),
    ("a INT64 NOT NULL", "a INT64", "1 field made nullable: a", "Made a nullable"),
    ("a INT64", "a INT64 KEY", "1 field put into the key: a", "Made a part of the key"),
    ("a INT64 KEY", "a INT64", "1 field taken out of the key: a", "Took a out of the key"),
    ("a INT64", "a INT64 PARTITION", "1 new partition column: a", "Began to partition by a"),
    ("a INT64 PARTITION", "a INT64", "1 former partition column: a", "Ceased to partition by a"),
    ("a INT64\nb INT64", "b INT64\na INT64", "1 list of fields reordered: columns",
     "Reordered fields"),
    ("a INT64", "a INT64 DEFAULT '1'", "1 default changed: a", "Changed default of a"),
    ("a INT64", "a INT64 COMMENT 'x'", "1 description changed: a", "Changed description of a"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "summary", "sentence"), WORDS)
def test_one_change_in_words(before: str, after: str, summary: str, sentence: str) -> None:
    findings = judge(compare(parse_schema(before), parse_schema(after)))
    assert summary_of(EventType.SCHEMA_CHANGED, findings) == summary
    assert [sentence_of(finding.change) for finding in findings] == [sentence]


def test_every_kind_of_change_has_words() -> None:
    tried = {
        type(change)
        for before, after, *_ in WORDS
        for change in compare(parse_schema(before), parse_schema(after))
    }
    # Tags have no place in the text of a schema.
    assert {kind.__name__ for kind in set(get_args(AnySchemaChange)) - tried} == {"TagsChanged"}


def test_changes_of_one_kind_are_counted_and_some_of_them_named() -> None:
    after = "\n".join(f"{name} INT64" for name in "abcde")
    findings = judge(compare(parse_schema("z INT64"), parse_schema(after)))
    assert summary_of(EventType.SCHEMA_CHANGED, findings) == (
        "1 field removed: z; 5 fields added: a, b, c and 2 more"
    )


def test_types_of_any_length_make_a_line_of_readable_length() -> None:
    wide = ", ".join(f"field_{number}: INT64" for number in range(200))
    findings = judge(compare(parse_schema("a INT64"), parse_schema(f"a STRUCT<{wide}>")))
    assert len(summary_of(EventType.SCHEMA_CHANGED, findings)) < 120


@pytest.mark.parametrize(
    ("type", "flags", "after", "words"),
    [
        (EventType.CREATED, (), "a INT64", "first seen"),
        (EventType.MODIFIED, (), "a INT64", "new data, same schema"),
        (EventType.DELETED, (), "a INT64", "gone"),
        (EventType.RESTORED, (), "a INT64", "back again"),
        (EventType.RESTORED, (), "a INT64\nb INT64", "back again; 1 field added: b"),
        (
            EventType.SCHEMA_CHANGED, ("reverted",), "a INT64\nb INT64",
            "1 field added: b; back to an earlier schema",
        ),
    ],
)  # fmt: skip
def test_what_is_no_change_of_schema_has_words_too(
    type: EventType, flags: tuple[str, ...], after: str, words: str
) -> None:
    findings = judge(compare(parse_schema("a INT64"), parse_schema(after)))
    assert summary_of(type, findings, flags) == words


def test_a_nested_field_is_named_by_its_path() -> None:
    (change,) = compare(
        parse_schema("a ARRAY<STRUCT<b: INT64>>"),
        parse_schema("a ARRAY<STRUCT<b: INT64, c: INT64>>"),
    )
    assert isinstance(change, FieldAdded)
    assert sentence_of(change) == "Added a[].c field"


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (BlastRadius(), ""),
        (BlastRadius(breaking=1), "1 downstream breaks"),
        (BlastRadius(undetermined=1_200), "1,200 downstream undetermined"),
        (BlastRadius(breaking=2, undetermined=1), "2 downstream break, 1 undetermined"),
        (BlastRadius(problem="no room"), "what breaks downstream is not known"),
        (
            BlastRadius(
                breaking=1,
                datasets=(
                    Affected(urn="lumos://x/a", verdict=Verdict.BREAKING, owners=tuple("abcdefg")),
                    Affected(urn="lumos://x/b", verdict=Verdict.BREAKING, owners=("a",)),
                ),
            ),
            "1 downstream breaks (a, b, c, d, e, and 2 more)",
        ),
    ],
)
def test_a_blast_radius_in_words(found: BlastRadius, words: str) -> None:
    assert blast_radius_of(found) == words
