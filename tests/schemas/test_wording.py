"""What happened, in words."""

from collections.abc import Sequence
from typing import get_args

import pytest

from lumos.model.change import (
    Affected,
    AffectedUse,
    AnySchemaChange,
    BlastRadius,
    EventType,
    FieldAdded,
    Verdict,
)
from lumos.model.schema import parse_schema
from lumos.rendering.text import join_names
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import classify
from lumos.schemas.wording import (
    affected_sentence_of,
    blast_radius_of,
    clause_of,
    drift_summary,
    format_position,
    sentence_of,
    summary_of,
)

# Each line changes one thing: before, after, summary, sentence, clause.
WORDS = [
    ("a INT64\nb STRING", "a INT64", "1 field removed: b", "Removed b field", "b was removed"),
    (
        "a INT64", "a INT64\nemail STRING", "1 field added: email", "Added email field",
        "email was added",
    ),
    (
        "a STRUCT<b: INT32>", "a STRUCT<b: INT64>", "1 type changed: a.b INT32 -> INT64",
        "Changed type of a.b from INT32 to INT64", "a.b became INT64",
    ),
    ("a INT64", "a INT64 NOT NULL", "1 field made required: a", "Made a required",
     "a became required"),
    ("a INT64 NOT NULL", "a INT64", "1 field made nullable: a", "Made a nullable",
     "a became nullable"),
    ("a INT64", "a INT64 KEY", "1 field put into the key: a", "Made a part of the key",
     "a joined the key"),
    ("a INT64 KEY", "a INT64", "1 field taken out of the key: a", "Took a out of the key",
     "a left the key"),
    ("a INT64", "a INT64 PARTITION", "1 new partition column: a", "Started partitioning by a",
     "a became a partition column"),
    ("a INT64 PARTITION", "a INT64", "1 former partition column: a", "Stopped partitioning by a",
     "a is no longer a partition column"),
    ("a INT64\nb INT64", "b INT64\na INT64", "1 list of fields reordered: columns",
     "Reordered fields", "columns were reordered"),
    ("a INT64", "a INT64 DEFAULT '1'", "1 default changed: a", "Changed default of a",
     "the default of a changed"),
    ("a INT64", "a INT64 COMMENT 'x'", "1 description changed: a", "Changed description of a",
     "the description of a changed"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "summary", "sentence", "clause"), WORDS)
def test_one_change_in_words(
    before: str, after: str, summary: str, sentence: str, clause: str
) -> None:
    findings = classify(compare(parse_schema(before), parse_schema(after)))
    assert summary_of(EventType.SCHEMA_CHANGED, findings) == summary
    assert [sentence_of(finding.change) for finding in findings] == [sentence]
    assert [clause_of(finding) for finding in findings] == [clause]


def test_a_field_that_was_perhaps_renamed_is_reported_with_its_new_name() -> None:
    findings = classify(compare(parse_schema("a INT64\nb INT32"), parse_schema("a INT64\nc INT32")))
    assert [clause_of(finding) for finding in findings] == [
        "b was removed, perhaps renamed to c (same position)",
        "c was added",
    ]


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
    findings = classify(compare(parse_schema("z INT64"), parse_schema(after)))
    assert summary_of(EventType.SCHEMA_CHANGED, findings) == (
        "1 field removed: z; 5 fields added: a, b, c and 2 more"
    )


def test_types_of_any_length_make_a_line_of_readable_length() -> None:
    wide = ", ".join(f"field_{number}: INT64" for number in range(200))
    findings = classify(compare(parse_schema("a INT64"), parse_schema(f"a STRUCT<{wide}>")))
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
    findings = classify(compare(parse_schema("a INT64"), parse_schema(after)))
    assert summary_of(type, findings, flags) == words


def test_a_nested_field_is_named_by_its_path() -> None:
    (change,) = compare(
        parse_schema("a ARRAY<STRUCT<b: INT64>>"),
        parse_schema("a ARRAY<STRUCT<b: INT64, c: INT64>>"),
    )
    assert isinstance(change, FieldAdded)
    assert sentence_of(change) == "Added a[].c field"


def radius(
    *paths: str,
    owners: Sequence[str] = ("web",),
    verdict: Verdict = Verdict.BREAKING,
    count: int | None = None,
) -> BlastRadius:
    """Datasets that break, each on the seventh line of a file of its name."""
    count = count or len(paths)
    breaking = count if verdict is Verdict.BREAKING else 0
    return BlastRadius(
        breaking=breaking,
        undetermined=count - breaking,
        datasets=tuple(
            Affected(
                urn=f"lumos://x/{path}",
                verdict=verdict,
                owners=tuple(owners),
                uses=(AffectedUse(file=f"models/{path.rpartition('/')[2]}.sql", line=7),),
            )
            for path in paths
        ),
    )


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (BlastRadius(), ""),
        (BlastRadius(breaking=1), "breaks 1 dataset"),
        (BlastRadius(undetermined=1_200), "may break 1,200 datasets"),
        (BlastRadius(breaking=2, undetermined=1), "breaks 2 datasets; may break 1 dataset"),
        (BlastRadius(problem="no room"), "what breaks downstream is not known"),
        (radius("marts/sales"), "breaks sales (web), models/sales.sql:7"),
        (
            radius("marts/sales", "marts/users", count=12),
            "breaks 12 datasets: sales (web), users (web) and 10 more",
        ),
        (
            radius("raw/sales", "marts/sales"),
            "breaks 2 datasets: raw/sales (web), marts/sales (web)",
        ),
        (radius("a", owners="stuvw"), "breaks a (s, t, u, and 2 more), models/a.sql:7"),
        (radius("a", verdict=Verdict.UNDETERMINED), "may break a (web), models/a.sql:7"),
    ],
)
def test_a_blast_radius_in_words(found: BlastRadius, words: str) -> None:
    assert blast_radius_of(found) == words


def test_a_dataset_of_a_message_is_reported_with_its_urn_and_line() -> None:
    (found,) = radius("marts/sales").datasets
    assert affected_sentence_of(found) == "lumos://x/marts/sales breaks (web), models/sales.sql:7"


@pytest.mark.parametrize(
    ("file", "line", "words"),
    [
        ("a.sql", 7, "a.sql:7"),
        ("a.sql", None, "a.sql"),
        # The definition of a view lies in no file.
        (None, 7, "line 7 of its SQL"),
        (None, None, ""),
    ],
)
def test_a_position_in_words(file: str | None, line: int | None, words: str) -> None:
    assert format_position(file, line) == words


@pytest.mark.parametrize(
    ("files", "differences", "are_older", "words"),
    [
        (2, ["nothing instead of channel STRING", "coupon STRING instead of nothing"], True,
         "2 older files lack channel; they still have coupon"),
        (1, ["nothing instead of a INT32", "nothing instead of `b c` INT32 NOT NULL"], True,
         "1 older file lacks a, `b c`"),
        (1, ["id INT32 instead of id INT64", "x DATE instead of nothing"], True,
         "1 older file has id as INT32 instead of INT64; it still has x"),
        (1200, ["x DATE instead of nothing"], False, "1,200 files also have x"),
        (3, [], True, "3 older files have the columns in another order"),
        (1, ["another layout"], False, "1 file has another layout"),
    ],
)  # fmt: skip
def test_drift_names_what_files_lack_and_what_they_still_have(
    files: int, differences: list[str], are_older: bool, words: str
) -> None:
    assert drift_summary(files, differences, are_older=are_older) == words


def test_a_single_name_too_many_is_named_as_well() -> None:
    assert join_names(["a", "b", "c"], 2) == "a, b, c"
    assert join_names(["a", "b", "c", "d"], 2) == "a, b and 2 more"
