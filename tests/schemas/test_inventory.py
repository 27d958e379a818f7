"""Whole estates compared in memory: only what differs is looked at."""

import pytest

from lumos.errors import MisuseError
from lumos.model.json_codec import to_json
from lumos.model.schema import parse_schema
from lumos.schemas.findings import (
    FingerprintedSchema,
    SchemaDifferences,
    change_table_rows,
    find_differences,
    findings_between,
)

OLD = FingerprintedSchema.of(parse_schema("id INT32\ngone STRING"), "parquet")
NEW = FingerprintedSchema.of(parse_schema("id INT64"), "delta")
UNREADABLE = FingerprintedSchema("other", b"no JSON", None)


def test_datasets_are_counted_as_added_changed_or_removed() -> None:
    before = {"same": OLD, "changed": OLD, "removed": OLD}
    after = {"added": NEW, "changed": NEW, "same": OLD}
    assert find_differences(before, after) == SchemaDifferences(
        changed={"changed": findings_between(OLD, NEW)}, added=("added",), removed=("removed",)
    )


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {}, ((), ())),
        ({}, {"a": OLD}, (("a",), ())),
        ({"a": OLD}, {}, ((), ("a",))),
        ({"a": OLD}, {"b": OLD}, (("b",), ("a",))),
    ],
)
def test_an_estate_may_come_or_go_whole(
    before: dict[str, FingerprintedSchema],
    after: dict[str, FingerprintedSchema],
    expected: tuple[object, object],
) -> None:
    found = find_differences(before, after)
    assert (found.added, found.removed) == expected
    assert found.changed == {}


def test_schemas_with_the_same_fingerprint_are_not_even_decoded() -> None:
    assert find_differences({"a": UNREADABLE}, {"a": UNREADABLE}) == SchemaDifferences({}, (), ())


def test_schemas_are_decoded_where_they_differ() -> None:
    stored = {"a": OLD._replace(schema=to_json(OLD.schema))}
    assert find_differences(stored, {"a": NEW}) == find_differences({"a": OLD}, {"a": NEW})


def test_a_fingerprint_from_elsewhere_makes_no_change() -> None:
    assert find_differences({"a": OLD}, {"a": OLD._replace(fingerprint="x")}).changed == {}


def test_a_row_of_a_table_has_both_sides_as_json() -> None:
    rows = change_table_rows("u", to_json(OLD.schema), to_json(NEW.schema), "parquet")
    assert [(row["urn"], row["kind"], row["before"], row["after"]) for row in rows] == [
        ("u", "removed", '"STRING"', "null"),
        ("u", "type_changed", '"INT32"', '"INT64"'),
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"no JSON",
        b'{"fields":[{"name":"a","type":"NONSENSE"}]}',
        b'{"fields":[{"name":"a","type":"INT64"},{"name":"a","type":"INT64"}]}',
    ],
    ids=["broken", "no such type", "a field twice"],
)
def test_a_schema_that_cannot_be_compared_names_its_dataset(body: bytes) -> None:
    with pytest.raises(MisuseError, match="The schemas of lumos://s3/a cannot be compared: "):
        change_table_rows("lumos://s3/a", body, to_json(NEW.schema), None)
