"""Changes as people say them, read against a schema."""

import pytest

from lumos.errors import MisuseError
from lumos.impact.changes import (
    ChangedSchema,
    RequestedChanges,
    UnknownColumn,
    apply_requested_changes,
)
from lumos.model.conversions.sql_types import Dialect
from lumos.model.schema import Schema, parse_schema

URN = "lumos://bigquery/shop/orders"
SCHEMA = parse_schema(
    "id INT64 NOT NULL\n"
    "User_Id STRING\n"
    "amount DECIMAL(10,2)\n"
    "seen_at TIMESTAMPTZ(us)\n"
    "`order date` DATE\n"
    "`a:b` STRING\n"
    "`a.b` INT32\n"
    "kind ENUM('x->y', 'z: w')\n"
    "items ARRAY<STRUCT<price: DECIMAL(9,2), sku: STRING NOT NULL>>\n"
    "notes MAP<STRING, INT64>"
)


def wished(
    *,
    change: str | tuple[str, ...] = (),
    drop: str | tuple[str, ...] = (),
    rename: str | tuple[str, ...] = (),
    schema: Schema | None = SCHEMA,
    dialect: Dialect | None = None,
) -> ChangedSchema:
    words = [(each,) if isinstance(each, str) else each for each in (change, drop, rename)]
    wish = RequestedChanges(change=words[0], drop=words[1], rename=words[2])
    return apply_requested_changes(URN, "bigquery", schema, wish, dialect=dialect)


def line(found: ChangedSchema, name: str) -> str:
    """A column as it is after the changes."""
    assert found.schema is not None
    return next(str(field) for field in found.schema.fields if field.name == name)


@pytest.mark.parametrize(
    ("text", "column", "after"),
    [
        ("User_Id: STRING -> INT64", "User_Id", "User_Id INT64"),
        ("User_Id:INT64", "User_Id", "User_Id INT64"),
        ("user_id: string -> int64", "User_Id", "User_Id INT64"),
        ("id: INT64 NOT NULL -> STRING", "id", "id STRING NOT NULL"),
        ("id: nullable", "id", "id INT64"),
        ("id: required -> nullable", "id", "id INT64"),
        ("id: NULL", "id", "id INT64"),
        ("User_Id: NOT NULL", "User_Id", "User_Id STRING NOT NULL"),
        ("User_Id: nullable -> required", "User_Id", "User_Id STRING NOT NULL"),
        ("User_Id: STRING -> INT64 NOT NULL", "User_Id", "User_Id INT64 NOT NULL"),
        ("amount: DECIMAL -> FLOAT64", "amount", "amount FLOAT64"),
        ("amount: NUMERIC(12,2)", "amount", "amount DECIMAL(12,2)"),
        ("id: BIGINT -> VARCHAR(20)", "id", "id STRING(20) NOT NULL"),
        ("seen_at: TIMESTAMP -> DATE", "seen_at", "seen_at DATE"),
        ("order date: STRING", "order date", "`order date` STRING"),
        ("`order date`: DATE -> STRING", "order date", "`order date` STRING"),
        ('"order date": DATE -> STRING', "order date", "`order date` STRING"),
        ("a:b: STRING -> INT64", "a:b", "`a:b` INT64"),
        ("a.b: INT32 -> INT64", "a.b", "`a.b` INT64"),
        ("kind: ENUM('x->y', 'z: w') -> ENUM('x->y')", "kind", "kind ENUM('x->y')"),
        ("items[].price: DECIMAL(9,2) -> FLOAT64", "items",
         "items ARRAY<STRUCT<price: FLOAT64, sku: STRING NOT NULL>>"),
        ("items[].sku: nullable", "items", "items ARRAY<STRUCT<price: DECIMAL(9,2), sku: STRING>>"),
        ("notes{}: INT64 -> STRING", "notes", "notes MAP<STRING, STRING>"),
        ("notes: MAP<STRING, STRING>", "notes", "notes MAP<STRING, STRING>"),
    ],
)  # fmt: skip
def test_a_change_is_read(text: str, column: str, after: str) -> None:
    assert line(wished(change=text), column) == after


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id: STRING -> INT32", "id of lumos://bigquery/shop/orders is INT64 NOT NULL, not STRING"),
        ("id: nullable -> required", "is INT64 NOT NULL, not nullable"),
        ("id: INT64", "changes nothing: id is INT64 NOT NULL"),
        (
            "User_Id: STRNG",
            "Invalid type 'STRNG' in 'User_Id: STRNG': no type named 'STRNG'. Did you",
        ),
        ("User_Id: STRUCT<a", "Invalid type"),
        ("User_Id STRING INT64", "Invalid change 'User_Id STRING INT64'. Use --change"),
        ("User_Id=INT64", "Invalid change 'User_Id=INT64'. Use --change 'User_Id: INT64'."),
        ("User_Id:", "Give the new type after the colon"),
        ("User_Id: -> INT64", "Give the new type after the colon"),
        ("User_Id: STRING -> INT64 -> INT32", "Give the new type after the colon"),
    ],
)
def test_a_change_that_cannot_be_is_refused(text: str, message: str) -> None:
    with pytest.raises(MisuseError) as refused:
        wished(change=text)
    assert message in str(refused.value)


def test_an_unknown_column_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownColumn, match=r"has no column 'usr_id'.*Did you mean 'User_Id'\?"):
        wished(drop="usr_id")
    with pytest.raises(UnknownColumn, match=r"Did you mean 'items\[\].price'\?"):
        wished(change="items[].prise: INT64")


def test_a_dialect_says_whose_types_are_meant() -> None:
    ours = wished(change="`order date`: TIMESTAMP")
    assert line(ours, "order date") == "`order date` TIMESTAMP(us)"
    assert ours.remarks == (
        "TIMESTAMP is read as the Lumos type TIMESTAMP(us); for TIMESTAMPTZ(us) as in bigquery, "
        "add --dialect bigquery",
    )
    theirs = wished(change="`order date`: TIMESTAMP", dialect="bigquery")
    assert line(theirs, "order date") == "`order date` TIMESTAMPTZ(us)"
    assert theirs.remarks == ()


@pytest.mark.parametrize(
    ("text", "column", "after"),
    [
        ("User_Id", "User_Id", None),
        ("USER_ID", "User_Id", None),
        ("order date", "order date", None),
        ("a.b", "a.b", None),
        ("items[].price", "items", "items ARRAY<STRUCT<sku: STRING NOT NULL>>"),
    ],
)
def test_a_column_is_dropped(text: str, column: str, after: str | None) -> None:
    schema = wished(drop=text).schema
    assert schema is not None
    left = {field.name: str(field) for field in schema.fields}
    assert left.get(column) == after
    assert len(left) == len(SCHEMA.fields) - (after is None)


def test_what_has_no_name_cannot_be_dropped() -> None:
    with pytest.raises(MisuseError, match="has no name and cannot be dropped"):
        wished(drop="items[]")


@pytest.mark.parametrize(
    ("text", "renamed", "place"),
    [
        ("User_Id -> uid", {"User_Id": "uid"}, 1),
        ("user_id -> `user id`", {"User_Id": "`user id`"}, 1),
        ("items[].price -> items[].cost", {"items[].price": "items[].cost"}, None),
        ("items[].price -> cost", {"items[].price": "items[].cost"}, None),
    ],
)
def test_a_column_is_renamed_where_it_stands(
    text: str, renamed: dict[str, str], place: int | None
) -> None:
    found = wished(rename=text)
    assert found.renamed == renamed
    assert found.schema is not None
    if place is None:
        assert "STRUCT<cost: DECIMAL(9,2), sku: STRING NOT NULL>" in line(found, "items")
    else:
        (new,) = renamed.values()
        assert str(found.schema.fields[place]) == f"{new} STRING"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("User_Id", "Invalid rename"),
        ("User_Id -> ", "Invalid rename"),
        ("User_Id -> User_Id", "both names are the same"),
        ("User_Id -> id", "already has a column 'id'"),
        ("nobody -> id", "has no column 'nobody'"),
    ],
)
def test_a_renaming_that_cannot_be_is_refused(text: str, message: str) -> None:
    with pytest.raises(MisuseError, match=message):
        wished(rename=text)


def test_changes_are_combined_but_each_column_changes_once() -> None:
    found = wished(change=("id: STRING", "amount: FLOAT64"), drop="notes", rename="kind -> sort")
    assert found.schema is not None
    names = [field.name for field in found.schema.fields]
    assert names == ["id", "User_Id", "amount", "seen_at", "order date", "a:b", "a.b", "sort",
                     "items"]  # fmt: skip
    with pytest.raises(MisuseError, match="changed more than once"):
        wished(change="id: STRING", drop="id")


def test_without_a_schema_the_words_say_all() -> None:
    found = wished(change="user_id: STRING -> INT64", drop="plan", rename="a -> b", schema=None)
    assert found.schema is None
    assert [(change.path, type(change).__name__) for change in found.changes] == [
        ("user_id", "TypeChanged"),
        ("plan", "FieldRemoved"),
        ("a", "FieldRemoved"),
        ("b", "FieldAdded"),
    ]
    with pytest.raises(MisuseError, match=r"The schema of .* is unknown"):
        wished(change="user_id: INT64", schema=None)
