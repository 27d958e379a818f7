"""Comments above SQL tell of the table below them."""

import pytest

from lumos.annotations.owner_names import OwnerOfUnknownKind
from lumos.lineage.header_comments import HeaderComment, file_header, header_above, header_of
from lumos.model.dataset import Owner

BOTH = (OwnerOfUnknownKind(name="ann"), OwnerOfUnknownKind(name="bob"))
LIFETIME = HeaderComment(
    description="Customer lifetime value calculation",
    owners=(OwnerOfUnknownKind(name="analytics-team"),),
    sla="Updated daily by 6am UTC",
)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "{{ config(materialized='table') }}\n"
            "-- Customer lifetime value calculation\n"
            "-- Owner: analytics-team\n"
            "-- SLA: Updated daily by 6am UTC\n"
            "\n"
            "SELECT 1",
            id="a dbt model",
        ),
        pytest.param(
            "-- Customer lifetime value calculation\n-- owner: analytics-team\n-- sla: Updated daily by 6am UTC\nSELECT 1",
            id="at the top, in lower case",
        ),
        pytest.param(
            "/*\n * Customer lifetime value calculation\n *\n * Owner: analytics-team\n * SLA: Updated daily by 6am UTC\n */\nSELECT 1",
            id="a block with stars",
        ),
        pytest.param(
            "/* Customer lifetime value\n   calculation\n   @owner: analytics-team\n   SLA: Updated daily by 6am UTC */\nSELECT 1",
            id="a block whose words wrap",
        ),
        pytest.param(
            "{# Customer lifetime value calculation\nOwner: analytics-team #}\n-- SLA: Updated daily by 6am UTC\nselect 1",
            id="a comment of Jinja",
        ),
        pytest.param(
            "-- ------------------------------\n"
            "-- Customer lifetime value calculation\n"
            "-- ==============================\n"
            "-- Copyright 2024 Example\n"
            "-- noqa: disable=all\n"
            "-- Owner: analytics-team\n"
            "-- SLA: Updated daily by 6am UTC\n"
            "SELECT 1",
            id="decoration and what linters want",
        ),
        pytest.param(
            "-- Description: Customer lifetime value calculation\n-- Here is how it works.\n-- Owner: analytics-team\n-- SLA: Updated daily by 6am UTC\nSELECT 1",
            id="a named description",
        ),
    ],
)
def test_a_header_gives_description_owner_and_sla(text):
    assert header_of(text) == LIFETIME


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 -- Owner: nobody",
        "",
        "-- SELECT a FROM b WHERE c = 1;\nSELECT 1",
        "/*+ FULL(t) */ SELECT 1",
        "SELECT 1;\n-- Owner: a\n",
    ],
)
def test_other_comments_say_nothing(text):
    assert header_of(text).empty


def test_code_that_is_switched_off_is_no_description():
    text = "-- select a,\n-- b as c\n-- from d\n\n-- All orders\nselect 1"
    assert header_of(text).description == "All orders"


def test_several_owners_and_tags_are_distinguished():
    header = header_of(
        "-- Owners: jane@example.com, @acme/finance; team:sales\n-- Tags: pii, #tier-1\nselect 1"
    )
    assert header.owners == (
        Owner(name="jane@example.com"),
        Owner(name="acme/finance", kind="group"),
        Owner(name="sales", kind="group"),
    )
    assert header.tags == ("pii", "tier-1")


SCRIPT = """\
-- The daily load.
-- Owner: platform-team

CREATE TABLE a AS SELECT 1;

-- All of b
-- SLA: hourly
CREATE TABLE b AS SELECT 1;
CREATE TABLE c AS SELECT 1;
/* What d is.
   Owner: jane */
CREATE TABLE d AS SELECT 1;
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            4,
            HeaderComment(
                description="The daily load.", owners=(OwnerOfUnknownKind(name="platform-team"),)
            ),
        ),
        (8, HeaderComment(description="All of b", sla="hourly")),
        (9, HeaderComment()),
        (12, HeaderComment(description="What d is.", owners=(OwnerOfUnknownKind(name="jane"),))),
    ],
)
def test_a_statement_has_the_comments_right_above_it(line, expected):
    assert header_above(SCRIPT.split("\n"), line) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-- Description: Every order\n-- of the shop", HeaderComment(description="Every order of the shop")),
        (
            "-- Description: Every order,\n-- Web shop included.\n-- Owner: ann",
            HeaderComment(
                description="Every order, Web shop included.", owners=(OwnerOfUnknownKind(name="ann"),)
            ),
        ),
        (
            "/**\n * All orders\n *\n * @owner a-team\n * @sla hourly\n */",
            HeaderComment(description="All orders", owners=(OwnerOfUnknownKind(name="a-team"),), sla="hourly"),
        ),
        ("-- Owner:\n--   - ann\n--   - bob\n-- SLA: daily", HeaderComment(owners=BOTH, sla="daily")),
        ("/*\n * Owners:\n * - ann\n * - bob\n */", HeaderComment(owners=BOTH)),
        ("/* Owners:\n     - ann\n     - bob\n   All orders */", HeaderComment(owners=BOTH, description="All orders")),
        ("-- Owners: [ann, 'bob']\n-- Tags: [pii]", HeaderComment(owners=BOTH, tags=("pii",))),
        ("-- Owner: TBD\n-- SLA: n/a", HeaderComment()),
        ("-- Owner: ann\n-- All orders", HeaderComment(owners=BOTH[:1], description="All orders")),
        ("-- The owner decides.", HeaderComment(description="The owner decides.")),
        ("-- Where orders go, with all items", HeaderComment(description="Where orders go, with all items")),
        ("-- From the shop (all of them)", HeaderComment(description="From the shop (all of them)")),
        ("-- With all item(s) of an order", HeaderComment(description="With all item(s) of an order")),
        ("-- where a = 1", HeaderComment()),
        ("-- select a, b", HeaderComment()),
        ("-- from raw.orders", HeaderComment()),
        ("-- with x as (", HeaderComment()),
    ],
)  # fmt: skip
def test_headers_are_written_in_many_ways(text, expected):
    assert header_of(f"{text}\nSELECT 1") == expected


@pytest.mark.parametrize(
    ("text", "line", "owner"),
    [
        ("-- Owner: ann\nCREATE", 2, None),
        ("-- Owner: ann\n\nCREATE", 3, "ann"),
        ("-- Owner: ann\n\n-- Owner: bob\nCREATE", 4, "ann"),
        ("-- Owner: ann\n  \n-- Owner: bob\n\nCREATE", 5, "ann"),
        ("-- Owner: ann\nUSE x;\n-- Owner: bob\nCREATE", 4, "ann"),
        ("CREATE", 1, None),
    ],
)
def test_a_comment_right_above_the_first_statement_is_not_the_files(text, line, owner):
    found = file_header(text, line).owners
    assert (found[0].name if found else None) == owner
