"""Keys of tables and dashboards: each URN has one, and each key has one URN."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalogs.strategies import TEXTS, URNS
from lumos.catalogs.amundsen.names import (
    column_key,
    dashboard_id,
    dashboard_key,
    dataset_urn,
    parse_key,
    split_column_key,
    table_key,
)

ODD_URNS = st.sampled_from(
    ("lumos://amundsen/hive:%2F%2Fgold.core%2Forders", "lumos://amundsen/x", "lumos://hive@PROD/a/b",
     "lumos://s3/_/b", "lumos://s3/b", "lumos://s3//b", "lumos://s3/a/", "lumos://s3/%25/b",
     "lumos://amundsen/Hive:%2F%2Fgold.core%2Forders")
)  # fmt: skip
KEYS = st.builds("{}://{}.{}/{}".format, *[st.text("aA._%@:/-", max_size=4)] * 4) | st.text()


@given(first=URNS | ODD_URNS, second=URNS | ODD_URNS)
def test_each_urn_has_a_key_of_its_own(first: str, second: str) -> None:
    keys = [table_key(urn) for urn in (first, second)]
    assert None not in keys
    assert (first == second) == (keys[0] == keys[1])
    assert [dataset_urn(key) for key in keys if key] == [first, second]


@given(key=KEYS.filter(bool))
def test_each_key_has_a_urn_that_leads_back(key: str) -> None:
    assert table_key(dataset_urn(key)) == key


@given(urn=URNS, column=TEXTS)
def test_a_column_is_found_in_the_key_of_its_table(urn: str, column: str) -> None:
    key = table_key(urn) or ""
    assert split_column_key(column_key(key, column)) == (key, column)


@given(first=st.tuples(TEXTS, TEXTS), second=st.tuples(TEXTS, TEXTS))
def test_each_dashboard_has_a_key_of_its_own(
    first: tuple[str, str], second: tuple[str, str]
) -> None:
    keys = [dashboard_key(*each) for each in (first, second)]
    assert [dashboard_id(key) for key in keys] == [first, second]


@pytest.mark.parametrize(
    ("urn", "key"),
    [
        ("lumos://s3/data-lake/raw/orders.v2", "s3://PROD.data-lake.raw/orders.v2"),
        ("lumos://snowflake@eu/FINANCE/Customers", "snowflake://eu.FINANCE/Customers"),
        ("lumos://postgres/shop/public/revenue?env=DEV", "postgres://@DEV.shop.public/revenue"),
        ("lumos://hive@gold/core/orders", "hive://gold.core/orders"),
        ("lumos://kafka/events.signup", "kafka://PROD._/events.signup"),
        ("lumos://s3/lake.eu/a%2Fb", "s3://PROD.lake%2Eeu/a%2Fb"),
        ("lumos://amundsen/Hive:%2F%2Fgold.core%2Forders", "Hive://gold.core/orders"),
    ],
)
def test_keys_read_like_those_of_databuilder(urn: str, key: str) -> None:
    assert table_key(urn) == key
    assert dataset_urn(key) == urn


def test_the_parts_of_a_key_have_the_keys_of_databuilder() -> None:
    name = parse_key("hive://gold.core/orders")
    assert (name.database_key, name.cluster_key, name.schema_key) == (
        "database://hive",
        "hive://gold",
        "hive://gold.core",
    )


@pytest.mark.parametrize("text", ["job:x", "lumos://airflow", "lumos://s3/a b"])
def test_other_text_has_no_key(text: str) -> None:
    assert table_key(text) is None
