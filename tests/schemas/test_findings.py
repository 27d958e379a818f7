"""Findings as rows of JSON, their sums, and the fingerprints that waivers name."""

import pytest

from lumos.model.json_codec import from_json, to_json, to_plain
from lumos.model.schema import parse_schema
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import classify
from lumos.schemas.findings import ChangeCounts, ChangeRow, change_rows, moved_names, summarise

URN = "lumos://s3/lake/orders"
BEFORE = """
id INT32 KEY
gone DECIMAL(9,2) NOT NULL
day DATE
note STRING COMMENT 'free text'
"""
AFTER = """
note STRING
id INT64 KEY NOT NULL
day DATE PARTITION
fresh STRING NOT NULL
"""


def rows(before: str, after: str, urn: str = URN) -> dict[tuple[str, str], ChangeRow]:
    findings = classify(compare(parse_schema(before), parse_schema(after)), format="parquet")
    return {(row.kind, row.path): row for row in change_rows(urn, findings)}


def test_both_sides_stand_as_canonical_text_or_plain_values() -> None:
    sides = {key: (row.before, row.after) for key, row in rows(BEFORE, AFTER).items()}
    assert sides == {
        ("removed", "gone"): ("DECIMAL(9,2) NOT NULL", None),
        ("added", "fresh"): (None, "STRING NOT NULL"),
        ("type_changed", "id"): ("INT32", "INT64"),
        ("nullability", "id"): (True, False),
        ("partitioning", "day"): (False, True),
        ("description", "note"): ("free text", None),
        ("reordered", ""): (("id", "day", "note"), ("note", "id", "day")),
    }


def test_a_row_has_the_keys_of_the_contract_and_comes_back_from_json() -> None:
    for row in rows(BEFORE, AFTER).values():
        assert set(to_plain(row)) == {
            "path", "kind", "before", "after", "consumer", "storage", "rule", "flags", "notes",
            "fingerprint",
        }  # fmt: skip
        assert from_json(to_json(row), ChangeRow) == row


def test_a_summary_counts_consumer_verdicts_over_datasets() -> None:
    first = rows(BEFORE, AFTER).values()
    second = rows("a INT64", "a UNKNOWN").values()
    assert summarise([first, second]) == ChangeCounts(
        datasets=2, changes=8, breaking=1, compatible=4, informational=2, undetermined=1
    )
    assert summarise([]) == ChangeCounts()


def test_every_change_has_a_fingerprint_of_its_own() -> None:
    change_table = rows(BEFORE, AFTER)
    assert len({row.fingerprint for row in change_table.values()}) == len(change_table)
    elsewhere = rows(BEFORE, AFTER, urn="lumos://s3/lake/others")
    assert {row.fingerprint for row in change_table.values()}.isdisjoint(
        row.fingerprint for row in elsewhere.values()
    )


@pytest.mark.parametrize(
    ("key", "before", "after"),
    [
        pytest.param(
            ("added", "fresh"),
            "id INT32",
            "other STRING\nid INT32\nfresh STRING NOT NULL COMMENT 'new'",
            id="a new field at another place, with other words",
        ),
        pytest.param(
            ("removed", "gone"),
            "gone DECIMAL(9,2) NOT NULL COMMENT 'x'\nmore STRING",
            "Gone STRING",
            id="a removed field beside one that differs in case",
        ),
        pytest.param(
            ("type_changed", "id"), "x INT8\nid INT32", "id INT64", id="a type among other changes"
        ),
        pytest.param(
            ("reordered", ""),
            "first INT8\nid INT32\nday DATE\nnote STRING\nlast INT8",
            "first INT8\nnote STRING\nid INT32\nextra STRING\nday DATE\nlast INT8",
            id="the same fields change places among others",
        ),
    ],
)
def test_a_fingerprint_stays_whatever_else_changes(
    key: tuple[str, str], before: str, after: str
) -> None:
    assert rows(before, after)[key].fingerprint == rows(BEFORE, AFTER)[key].fingerprint


@pytest.mark.parametrize(
    ("key", "before", "after"),
    [
        (("added", "fresh"), "id INT32", "id INT32\nfresh STRING"),
        (("added", "fresh"), "id INT32", "id INT32\nfresh STRING NOT NULL DEFAULT 'x'"),
        (("removed", "gone"), "id INT32\ngone STRING", "id INT32"),
        (("type_changed", "id"), "id INT32", "id STRING"),
        (("nullability", "id"), "id INT32 NOT NULL", "id INT32"),
        (
            ("reordered", ""),
            "id INT32\nday DATE\nnote STRING",
            "day DATE\nid INT32\nnote STRING",
        ),
    ],
)
def test_another_change_at_the_same_place_has_another_fingerprint(
    key: tuple[str, str], before: str, after: str
) -> None:
    assert rows(before, after)[key].fingerprint != rows(BEFORE, AFTER)[key].fingerprint


def test_a_fingerprint_is_the_same_in_every_release() -> None:
    assert rows("id INT32", "id INT64")["type_changed", "id"].fingerprint == (
        "1c1dcee14b912b48522c280c942f0b6c"
    )


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        ("abc", "abc", ""),
        ("abc", "bac", "ab"),
        ("abcde", "acbde", "bc"),
        ("abcd", "dabc", "abcd"),
        ("abcdef", "bacdfe", "abef"),
    ],
)
def test_a_name_moved_when_it_changed_sides_with_another(
    before: str, after: str, moved: str
) -> None:
    assert moved_names(before, after) == set(moved)
