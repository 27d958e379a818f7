"""What a proposal says of a dataset, and what its form leaves as it is."""

import pytest

from lumos.model.schema import Schema, parse_schema
from lumos.schemas.files import find_repeated_field
from lumos.schemas.proposals import ProposalFormat, complete_proposal

CURRENT = """
id INT32 NOT NULL KEY DEFAULT '0' COMMENT 'who'
item STRUCT<price: DECIMAL(9,2) NOT NULL, n: INT16>
tags ARRAY<INT16 NOT NULL>
facts MAP<STRING, INT16>
dt DATE PARTITION
"""
# As a form shows it that knows neither small integers nor decimals nor keys.
SHOWN = """
id INT64 NOT NULL
item STRUCT<price: FLOAT64, n: INT64>
tags ARRAY<INT64>
facts MAP<STRING, INT64>
dt DATE
"""


def meant(proposed: str, format: ProposalFormat | None = None) -> str:
    schemas = (parse_schema(text) for text in (CURRENT, SHOWN, proposed))
    return str(complete_proposal(*schemas, format or ProposalFormat()))


def expected(text: str) -> str:
    return str(parse_schema(text))


def test_a_proposal_that_says_what_the_form_would_show_changes_nothing() -> None:
    assert meant(SHOWN) == expected(CURRENT)


@pytest.mark.parametrize(
    ("old", "new", "becomes"),
    [
        pytest.param("id INT64 NOT NULL", "id INT64", "id INT32 KEY DEFAULT '0' COMMENT 'who'", id="a fact"),
        pytest.param("id INT64", "id STRING", "id STRING NOT NULL KEY DEFAULT '0' COMMENT 'who'", id="a type"),
        pytest.param("n: INT64>", "n: STRING>", "item STRUCT<price: DECIMAL(9,2) NOT NULL, n: STRING>", id="a member"),
        pytest.param("price: FLOAT64", "price: FLOAT64 NOT NULL", "item STRUCT<price: DECIMAL(9,2) NOT NULL, n: INT16>", id="required as before"),
        pytest.param("n: INT64>", "n: INT64, x: DATE>", "item STRUCT<price: DECIMAL(9,2) NOT NULL, n: INT16, x: DATE>", id="a new member"),
        pytest.param("ARRAY<INT64>", "ARRAY<STRING>", "tags ARRAY<STRING NOT NULL>", id="an element"),
        pytest.param("MAP<STRING, INT64>", "MAP<STRING, DATE>", "facts MAP<STRING, DATE>", id="a map's value"),
    ],
)  # fmt: skip
def test_only_what_differs_from_that_is_a_change(old: str, new: str, becomes: str) -> None:
    proposed = SHOWN.replace(old, new)
    assert proposed != SHOWN
    name = becomes.split()[0]
    wanted = "\n".join(
        becomes if line.startswith(f"{name} ") else line for line in CURRENT.strip().splitlines()
    )
    assert meant(proposed) == expected(wanted)


def test_fields_that_come_and_go_do_so() -> None:
    found = meant("item STRUCT<price: FLOAT64, n: INT64>\nnew UUID")
    assert found == expected("item STRUCT<price: DECIMAL(9,2) NOT NULL, n: INT16>\nnew UUID")


def test_a_form_of_single_files_says_nothing_of_partitions() -> None:
    found = meant("id INT64 NOT NULL", ProposalFormat(has_partitions=False))
    assert found.splitlines()[1:] == ["dt DATE PARTITION"]


def test_order_counts_only_where_the_form_has_one() -> None:
    turned = "\n".join(reversed(SHOWN.strip().splitlines())) + "\nnew UUID"
    assert meant(turned, ProposalFormat(is_ordered=False)) == expected(f"{CURRENT}new UUID")
    assert meant(turned).startswith("dt DATE PARTITION\nfacts")


def test_names_in_any_case_mean_the_field_that_there_is() -> None:
    current = parse_schema("userId INT64\na INT32\nA INT32")
    proposed = parse_schema("USERID INT64\na STRING\nNEW DATE")
    format = ProposalFormat(case_insensitive=frozenset({"USERID", "a", "NEW"}))
    found = complete_proposal(current, current, proposed, format)
    assert [field.name for field in found.fields] == ["userId", "a", "NEW"]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a INT32\nb STRUCT<a: INT32>", None),
        ("a STRUCT<x: INT32, x: STRING>", "a.x"),
        ("a ARRAY<STRUCT<m: MAP<STRING, STRUCT<x: INT32, x: STRING>>>>", "a[].m{}.x"),
        ("a UNION<INT32, STRUCT<x: INT32, x: STRING>>", "a<1>.x"),
    ],
)
def test_a_repeated_name_is_found_at_any_depth(text: str, path: str | None) -> None:
    assert find_repeated_field(parse_schema(text)) == path


def test_a_repeated_column_is_found() -> None:
    fields = parse_schema("a INT32").fields
    assert find_repeated_field(Schema(fields=fields * 2)) == "a"
