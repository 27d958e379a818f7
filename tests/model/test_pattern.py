"""Which datasets a pattern means."""

import pytest

from lumos.errors import MisuseError
from lumos.model.pattern import DatasetPattern, without_ending

ORDERS = "lumos://s3/lake/sales/orders"


@pytest.mark.parametrize(
    ("pattern", "urn", "is_meant"),
    [
        ("orders", ORDERS, True),
        ("orders", "lumos://s3/lake/sales/old_orders", False),
        ("orders", "lumos://s3/lake/orders/items", False),
        ("Orders", ORDERS, False),
        ("sales/orders", ORDERS, True),
        ("/lake/sales/orders/", ORDERS, True),
        ("sales/*", ORDERS, True),
        ("sales/*", "lumos://s3/lake/wholesales/orders", False),
        ("*", ORDERS, True),
        ("order?", ORDERS, True),
        ("[mo]rders", ORDERS, True),
        ("orders[1]", "lumos://s3/lake/orders%5B1%5D", True),
        (ORDERS, ORDERS, True),
        ("lumos://s3/lake/*", ORDERS, True),
        ("lumos://s3/lake", ORDERS, False),
        ("lumos://gcs/*", ORDERS, False),
        ("orders", f"{ORDERS}?env=DEV", True),
        ("orders", "lumos://file/lake/orders.csv", True),
        ("orders.csv", "lumos://file/lake/orders.csv", True),
        ("my data", "lumos://file/lake/my%20data", True),
    ],
)
def test_a_pattern_means_a_dataset_by_name_end_of_path_or_urn(
    pattern: str, urn: str, is_meant: bool
) -> None:
    assert DatasetPattern(pattern).matches(urn) is is_meant


def test_a_name_that_does_not_stand_in_the_urn_counts_too() -> None:
    assert DatasetPattern("public.orders").matches("lumos://pg/shop/1234", "public.orders")


@pytest.mark.parametrize("text", ["", " ", "/"])
def test_a_pattern_of_nothing_is_refused(text: str) -> None:
    with pytest.raises(MisuseError, match="names no datasets"):
        DatasetPattern(text)


@pytest.mark.parametrize(
    ("name", "short"),
    [("users.csv", "users"), ("data.v2", "data.v2"), (".csv", ".csv"), ("a/*.csv", "a/*")],
)
def test_endings_of_data_files_are_left_out(name: str, short: str) -> None:
    assert without_ending(name) == short
