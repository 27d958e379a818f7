"""Which datasets a pattern means."""

import pytest

from lumos.errors import MisuseError
from lumos.formats.compression import COMPRESSIONS
from lumos.formats.identification import FORMATS
from lumos.model.dataset_pattern import DatasetPattern, strip_extensions

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
        ("delta", "lumos://file/lake/delta.csv.gz", True),
        ("lake/iota", "lumos://file/lake/iota.snappy.parquet", True),
        ("iota.snappy", "lumos://file/lake/iota.snappy.parquet", True),
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
    with pytest.raises(MisuseError, match="matches nothing"):
        DatasetPattern(text)


@pytest.mark.parametrize(
    ("name", "stripped"),
    [
        ("users.csv", "users"),
        ("tickets.jsonl", "tickets"),
        ("zeta.ndjson", "zeta"),
        ("delta.csv.gz", "delta"),
        ("DELTA.CSV.GZ", "DELTA"),
        ("iota.snappy.parquet", "iota"),
        ("part-00000.c000.snappy.parquet", "part-00000"),
        ("orders.zip", "orders"),
        ("data.v2", "data.v2"),
        ("data.v2.json.zst", "data.v2"),
        ("orders.c000", "orders.c000"),
        (".csv", ".csv"),
        (".csv.gz", ".csv.gz"),
        ("csv.gz", "csv"),
        ("lake/.json", "lake/.json"),
        ("a/*.csv", "a/*"),
        ("*.csv.gz", "*.csv.gz"),
    ],
)
def test_format_and_compression_extensions_are_stripped_but_never_the_whole_name(
    name: str, stripped: str
) -> None:
    assert strip_extensions(name) == stripped


def test_every_extension_that_a_format_or_codec_claims_is_stripped() -> None:
    extensions = [suffix for format in FORMATS.values() for suffix in format.suffixes]
    extensions += [suffix for codec in COMPRESSIONS for suffix in codec.suffixes]
    assert {strip_extensions(f"orders{each}") for each in extensions} == {"orders"}
