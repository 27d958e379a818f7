"""Paths of fields in lineage."""

import pytest

from lumos.model.paths import (
    is_lineage_column,
    lineage_column,
    lineage_path,
    overlap,
    path_below,
)
from lumos.model.types import quoted_name


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("address", "address"),
        ("address", "address.geo.lat"),
        ("items", "items[].sku"),
        ("items[]", "items[].sku"),
        ("items.sku", "items[].sku"),
        ("Items.SKU", "items[].sku"),
        ("rows[][].x", "rows.x"),
        ("notes{}", "notes.home"),
        ("notes{}.x", "notes.home.x"),
        ("choice<1>.x", "choice.x"),
        ("a.`zip code`", "a.`ZIP code`"),
        ("order id", "`order id`"),
    ],
)
def test_values_that_share_data_overlap(one: str, other: str) -> None:
    assert overlap(one, other)
    assert overlap(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("address.street", "address.geo.lat"),
        ("address", "addresses"),
        ("items[].sku", "items[].qty"),
        ("items.sku", "items[].qty"),
        ("notes{key}", "notes{}"),
        ("notes{}.x", "notes{}.y"),
        ("a.`b.c`", "a.b.c"),
    ],
)
def test_neighbours_do_not_overlap(one: str, other: str) -> None:
    assert not overlap(one, other)
    assert not overlap(other, one)


@pytest.mark.parametrize(
    ("path", "outer", "expected"),
    [
        ("items[].sku", "items", "[].sku"),
        ("items[].sku", "items[]", ".sku"),
        ("items.sku", "items[]", ".sku"),
        ("items[].sku", "items.sku", ""),
        ("items", "items[]", None),
        ("items[].sku", "items[].qty", None),
    ],
)
def test_the_rest_of_a_path_below_another(path: str, outer: str, expected: str | None) -> None:
    assert path_below(path, outer) == expected


def test_a_text_that_is_no_path_is_one_column() -> None:
    assert lineage_column("sum(x[0])") == "sum(x[0])"
    assert lineage_column("order id") == "order id"
    assert lineage_column("items[].sku") == "items"


@pytest.mark.parametrize(
    "name", ["id", "user.name", "a b", "größe", "a`b", "x[0]", "a{}", "*", "`"]
)
def test_a_column_of_lineage_comes_back_from_its_path(name: str) -> None:
    path = lineage_path(name)
    assert lineage_column(path) == name
    assert is_lineage_column(path)
    assert overlap(path, quoted_name(name))
    assert not overlap(path, "user")
