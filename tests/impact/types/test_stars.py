"""Names beside a star, and what a star has to bring."""

import pytest

from lumos.impact.rules.type_uses import TableVersions, UseOperation
from lumos.impact.types.effects import effects
from lumos.model.schema import parse_schema

BEFORE = "id INT64\nnote STRING\nqty INT32\naddress STRUCT<zip: STRING, city: STRING>"
OTHER = "id INT64\nnote STRING"


def needed(query: str, *, gone: str = "note", dialect: str = "spark") -> set[str]:
    """The names that a query needs although the table does not have them any more."""
    after = "\n".join(line for line in BEFORE.splitlines() if not line.startswith(f"{gone} "))
    if gone == "city":
        after = BEFORE.replace(", city: STRING", "")
    versions = {
        ("orders",): TableVersions.of("orders", parse_schema(BEFORE), parse_schema(after)),
        ("others",): TableVersions.of("others", parse_schema(OTHER)),
    }
    found = effects(
        f"create table t as {query}",
        dialect=dialect,
        tables=versions.get,
        is_wanted=lambda parts: parts == ("t",),
    )
    return {each.value for each in found[0].type_uses if each.operation is UseOperation.MISSING}


@pytest.mark.parametrize(
    ("query", "dialect"),
    [
        ("select * except (note) from orders", "spark"),
        ("select o.* except (note) from orders as o", "spark"),
        ("select * except (id, note) from orders", "spark"),
        ("with a as (select * from orders) select * except (note) from a", "spark"),
        ("select * except (note) from (select * from orders)", "spark"),
        ("select * except (note) from orders", "bigquery"),
        ("select * replace ('x' as note) from orders", "bigquery"),
        ("select * exclude (note) from orders", "duckdb"),
        ("select columns(* exclude (note)) from orders", "duckdb"),
        ("select * exclude note from orders", "snowflake"),
        ("select * rename (note as memo) from orders", "snowflake"),
        ("select * except strict (note) from orders", "clickhouse"),
        ("select x.* except (note) from orders x join orders y on x.id = y.id", "spark"),
    ],
)
def test_a_name_beside_a_star_needs_its_column(query: str, dialect: str) -> None:
    assert needed(query, dialect=dialect) == {"note"}


@pytest.mark.parametrize(
    ("query", "dialect"),
    [
        ("select * except (qty) from orders", "spark"),
        # Without STRICT, ClickHouse leaves out what is there.
        ("select * except (note) from orders", "clickhouse"),
        # The other table still has one.
        ("select * exclude (note) from orders, others", "duckdb"),
        ("select x.* except (note), y.id as k from others x join orders y on x.id = y.id", "spark"),
    ],
)
def test_other_names_beside_a_star_need_nothing_that_goes(query: str, dialect: str) -> None:
    assert needed(query, dialect=dialect) == set()


def test_a_field_beside_a_star_is_no_column() -> None:
    assert needed("select * except (address.city) from orders", gone="city") == {"address.city"}
    assert needed("select * except (address.zip) from orders", gone="city") == set()
