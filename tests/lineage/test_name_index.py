"""Names in SQL, places and URNs find their datasets."""

import subprocess
import sys

import pytest

from lumos.config.sql_names import SqlName
from lumos.errors import MisuseError
from lumos.lineage.declared import parse_reference
from lumos.lineage.name_index import NameIndex
from lumos.lineage.reported_lineage import (
    LocationReference,
    ResolutionMethod,
    TableName,
    UrnReference,
)
from lumos.store.datasets import DatasetLocation


def listing(urn: str, uri: str | None = None, *, state: str = "live") -> DatasetLocation:
    return DatasetLocation(
        urn, urn.rpartition("/")[2], urn.split("/")[2].partition("@")[0], state, uri
    )


LAKE = (
    listing("lumos://s3/lake/raw/events", "s3://lake/raw/events"),
    listing("lumos://s3/lake/processed/events", "s3://lake/processed/events"),
    listing("lumos://s3/lake/raw/users.csv", "s3://lake/raw/users.csv"),
    listing("lumos://s3/lake/raw/tickets.jsonl", "s3://lake/raw/tickets.jsonl"),
    listing("lumos://s3/lake/raw/delta.csv.gz", "s3://lake/raw/delta.csv.gz"),
    listing("lumos://file/data/raw/clicks", "/data/raw/clicks"),
    listing("lumos://file/data/raw/logs", "/data/raw/log_*.json"),
)
SHOP = (
    listing("lumos://postgres/shop/public/orders"),
    listing("lumos://postgres/shop/sales/Orders"),
    listing("lumos://snowflake@eu/FINANCE/PUBLIC/INVOICES"),
)
NAMES = NameIndex((*LAKE, *SHOP), ["lumos://sql/mart/kpis", "lumos://airflow/x", "urn:li:other"])


def found(name: str, *, names: NameIndex = NAMES, dialect: str | None = None, **more: str):
    return names.find(TableName(parts=tuple(name.split(".")), **more), dialect=dialect)


@pytest.mark.parametrize(
    ("name", "dialect", "urn"),
    [
        ("raw.events", None, "lumos://s3/lake/raw/events"),
        ("RAW.EVENTS", None, "lumos://s3/lake/raw/events"),
        ("hive.raw.events", "trino", "lumos://s3/lake/raw/events"),
        ("lake.raw.events", None, "lumos://s3/lake/raw/events"),
        ("users", None, "lumos://s3/lake/raw/users.csv"),
        ("raw.users", None, "lumos://s3/lake/raw/users.csv"),
        ("tickets", None, "lumos://s3/lake/raw/tickets.jsonl"),
        ("raw.delta", None, "lumos://s3/lake/raw/delta.csv.gz"),
        ("main.clicks", "duckdb", "lumos://file/data/raw/clicks"),
        ("shop.public.orders", "postgres", "lumos://postgres/shop/public/orders"),
        ("public.orders", None, "lumos://postgres/shop/public/orders"),
        ("sales.Orders", "postgres", "lumos://postgres/shop/sales/Orders"),
        ("finance.public.invoices", "snowflake", "lumos://snowflake@eu/FINANCE/PUBLIC/INVOICES"),
        ("invoices", None, "lumos://snowflake@eu/FINANCE/PUBLIC/INVOICES"),
    ],
)
def test_a_name_that_only_one_dataset_has_finds_it(name, dialect, urn):
    assert (found(name, dialect=dialect).urn, found(name, dialect=dialect).method) == (
        urn,
        ResolutionMethod.NAME,
    )


@pytest.mark.parametrize(
    ("name", "dialect", "urn"),
    [
        ("archive.events", None, "lumos://sql/archive/events"),
        ("other.public.orders", "postgres", "lumos://postgres/other/public/orders"),
        ("sales.orders", "postgres", "lumos://postgres/sales/orders"),
        ("nobody", "snowflake", "lumos://snowflake/nobody"),
        ("kpis", None, "lumos://sql/kpis"),
        ("a.b", "tsql", "lumos://mssql/a/b"),
    ],
)
def test_a_name_that_says_otherwise_is_not_bent_to_fit(name, dialect, urn):
    assert (found(name, dialect=dialect).urn, found(name, dialect=dialect).method) == (
        urn,
        ResolutionMethod.ASSUMED,
    )


def test_what_only_lineage_speaks_of_stays_the_same():
    datasets = (
        "lumos://snowflake@eu/MART/KPIS",
        "lumos://sql/a/b",
        "lumos://hive/a/b",
        "lumos://x/c/d",
        "lumos://y/c/d",
    )
    names = NameIndex((), datasets)
    assert found("mart.kpis", names=names, platform="snowflake").urn == datasets[0]
    assert found("mart.kpis", names=names).method is ResolutionMethod.ASSUMED
    assert found("a.b", names=names).urn == "lumos://sql/a/b"
    assert found("c.d", names=names).method is ResolutionMethod.AMBIGUOUS


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("raw.evnts", "raw.events"),
        ("archive.events", "raw.events"),
        ("warehouse.raw.ticket", "lake.raw.tickets"),
        ("kpi", None),
        ("something_else", None),
    ],
)
def test_the_nearest_known_dataset_is_named_in_the_same_number_of_parts(name, nearest):
    assert NAMES.nearest(TableName(parts=tuple(name.split(".")))) == nearest


def test_the_only_dataset_in_a_folder_of_that_name_is_the_nearest():
    urns = (
        "lumos://file/data/visits/p.parquet",
        "lumos://file/data/raw/a",
        "lumos://file/data/raw/b",
    )
    names = NameIndex(tuple(map(listing, urns)), ())
    assert names.nearest(TableName(parts=("mart", "visits"))) == "visits/p.parquet"
    assert names.nearest(TableName(parts=("raw",))) is None


def test_a_dataset_of_the_same_name_on_another_platform_is_named_by_its_urn():
    table = TableName(parts=("raw", "delta"), platform="snowflake")
    assert NAMES.nearest(table) == "lumos://s3/lake/raw/delta.csv.gz"


def test_a_table_that_a_query_creates_may_be_the_nearest():
    assert NAMES.nearest(TableName(parts=("kpi",)), created=["lumos://sql/mart/kpis"]) == "kpis"


def test_a_name_that_several_have_is_not_guessed():
    answer = found("events")
    assert answer.method is ResolutionMethod.AMBIGUOUS
    assert answer.candidates == ("lumos://s3/lake/processed/events", "lumos://s3/lake/raw/events")
    assert answer.urn == "lumos://sql/events"


def test_the_dialect_decides_between_two_of_the_same_name():
    names = NameIndex(
        (listing("lumos://postgres/shop/public/orders"), listing("lumos://s3/lake/orders"))
    )
    assert found("orders", names=names).method is ResolutionMethod.AMBIGUOUS
    assert (
        found("orders", names=names, dialect="postgres").urn
        == "lumos://postgres/shop/public/orders"
    )


def test_a_dataset_that_is_there_goes_before_one_that_is_gone():
    gone = listing("lumos://file/old/orders", "/old/orders", state="missing")
    assert found("orders", names=NameIndex([gone])).urn == "lumos://file/old/orders"
    there = listing("lumos://file/new/orders", "/new/orders")
    assert found("orders", names=NameIndex([gone, there])).urn == "lumos://file/new/orders"


def test_a_table_of_a_warehouse_is_no_file_of_the_same_name():
    assert found("raw.events", platform="snowflake").urn == "lumos://snowflake/raw/events"
    assert found("raw.events", platform="spark").urn == "lumos://s3/lake/raw/events"


def test_what_was_assumed_gives_way_to_files_that_are_found_later():
    names = NameIndex(LAKE, ["lumos://hive/raw/events"])
    answer = found("raw.events", names=names, platform="hive")
    assert (answer.urn, answer.method) == ("lumos://s3/lake/raw/events", ResolutionMethod.NAME)
    assert found("raw.others", names=names, platform="hive").urn == "lumos://hive/raw/others"


def test_an_instance_distinguishes_two_databases_and_need_not_be_known():
    two = NameIndex(
        (
            listing("lumos://postgres@a/shop/public/orders"),
            listing("lumos://postgres@b/shop/public/orders"),
        )
    )
    name = "shop.public.orders"
    assert found(name, names=two, platform="postgres", instance="a").urn.startswith(
        "lumos://postgres@a/"
    )
    assert (
        found(name, names=two, platform="postgres", instance="db:5432").method
        is ResolutionMethod.AMBIGUOUS
    )
    assert (
        found(name, platform="postgres", instance="db:5432").urn
        == "lumos://postgres/shop/public/orders"
    )


@pytest.mark.parametrize(
    ("uri", "urn"),
    [
        ("s3://lake/raw/events", "lumos://s3/lake/raw/events"),
        ("s3a://lake/raw/events/", "lumos://s3/lake/raw/events"),
        ("s3://lake/raw/events/date=2024-01-15/part-0.parquet", "lumos://s3/lake/raw/events"),
        ("file:///data/raw/clicks", "lumos://file/data/raw/clicks"),
        ("file:/data/raw/clicks/day=1", "lumos://file/data/raw/clicks"),
        ("/data/raw/log_7.json", "lumos://file/data/raw/logs"),
    ],
)
def test_a_place_is_the_dataset_that_it_lies_in(uri, urn):
    answer = NAMES.find(LocationReference(uri=uri))
    assert (answer.urn, answer.method) == (urn, ResolutionMethod.LOCATION)


@pytest.mark.parametrize(
    ("uri", "urn"),
    [
        ("s3://lake/raw/eventsold", "lumos://s3/lake/raw/eventsold"),
        ("gs://other/x", "lumos://gcs/other/x"),
        ("abfss://raw@acme.dfs.core.windows.net/x", "lumos://azure@acme/raw/x"),
        ("hdfs://nn:8020/warehouse/x", "lumos://hdfs/nn/warehouse/x"),
        ("webhdfs://nn:9870/warehouse/x", "lumos://hdfs/nn/warehouse/x"),
        ("wasbs://raw@acme.blob.core.windows.net/x", "lumos://azure@acme/raw/x"),
        ("/tmp/x", "lumos://file/tmp/x"),
    ],
)
def test_a_place_where_nothing_is_known_gets_the_urn_that_a_scan_would_give(uri, urn):
    answer = NAMES.find(LocationReference(uri=uri))
    assert (answer.urn, answer.method) == (urn, ResolutionMethod.ASSUMED)


@pytest.mark.parametrize(
    ("parts", "urn", "method"),
    [
        (("lumos://s3/lake/raw/events",), "lumos://s3/lake/raw/events", ResolutionMethod.URN),
        (("s3://lake/raw/events",), "lumos://s3/lake/raw/events", ResolutionMethod.LOCATION),
        (
            ("parquet", "s3a://lake/raw/events"),
            "lumos://s3/lake/raw/events",
            ResolutionMethod.LOCATION,
        ),
    ],
)
def test_sql_may_name_urns_and_paths(parts, urn, method):
    answer = NAMES.find(TableName(parts=parts))
    assert (answer.urn, answer.method) == (urn, method)


@pytest.mark.parametrize("text", ["raw/users.csv", "lake/raw/users.csv", "raw/users", "raw.users"])
def test_people_may_name_the_end_of_a_path(text):
    assert NAMES.find(parse_reference(text)).urn == "lumos://s3/lake/raw/users.csv"


def test_other_names_help_where_the_first_is_not_known():
    glue = TableName(parts=("x", "y"), platform="glue")
    answer = NAMES.find(glue, others=[LocationReference(uri="s3://lake/raw/events")])
    assert (answer.urn, answer.method) == ("lumos://s3/lake/raw/events", ResolutionMethod.LOCATION)
    assert (
        NAMES.find(
            UrnReference(urn="lumos://glue/x/y"),
            others=[LocationReference(uri="s3://lake/raw/events")],
        ).urn
        == "lumos://glue/x/y"
    )


RULES = (
    SqlName(match="raw.*", urn="lumos://s3/data-lake/raw/{table}"),
    SqlName(match="*.dwh.*", urn="lumos://snowflake@eu/{database}/{schema}/{table}"),
    SqlName(
        dialect="snowflake",
        platform="snowflake",
        instance="eu",
        database="FINANCE",
        schema="PUBLIC",
    ),
)


@pytest.mark.parametrize(
    ("name", "dialect", "urn", "method"),
    [
        ("raw.events", None, "lumos://s3/data-lake/raw/events", ResolutionMethod.RULE),
        ("hive.RAW.Events", None, "lumos://s3/data-lake/raw/Events", ResolutionMethod.RULE),
        ("prod.dwh.kpis", None, "lumos://snowflake@eu/prod/dwh/kpis", ResolutionMethod.RULE),
        ("dwh.kpis", None, "lumos://sql/dwh/kpis", ResolutionMethod.ASSUMED),
        (
            "invoices",
            "snowflake",
            "lumos://snowflake@eu/FINANCE/PUBLIC/INVOICES",
            ResolutionMethod.NAME,
        ),
        (
            "payments",
            "snowflake",
            "lumos://snowflake@eu/finance/public/payments",
            ResolutionMethod.ASSUMED,
        ),
    ],
)
def test_rules_of_the_configuration_go_first(name, dialect, urn, method):
    answer = found(name, names=NameIndex((*LAKE, *SHOP), rules=RULES), dialect=dialect)
    assert (answer.urn, answer.method) == (urn, method)


def test_the_environment_is_part_of_assumed_urns():
    assert found("a.b", names=NameIndex((), environment="DEV")).urn == "lumos://sql/a/b?env=DEV"


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"match": "raw.*"}, "either 'urn'"),
        ({"urn": "lumos://s3/{tabel}"}, "not a part of a table name"),
        ({"urn": "s3://lake/{table}"}, "does not start with lumos://"),
        ({"urn": "lumos://s3/x", "platform": "s3"}, "either 'urn'"),
        ({"match": ".", "platform": "s3"}, "'match' is empty"),
    ],
)
def test_a_rule_that_cannot_work_is_refused(rule, words):
    with pytest.raises(MisuseError, match=words.replace("{", "\\{")):
        SqlName(**rule)


@pytest.mark.parametrize(
    ("table", "urn"),
    [
        ("rates", "lumos://file/lake/ref/rates_NNN.csv"),
        ("ref.rates", "lumos://file/lake/ref/rates_NNN.csv"),
        ("orders", "lumos://file/lake/sales/orders"),
        ("raw.trips", "lumos://file/lake/raw/trips/trips_YYYY-MM.parquet"),
    ],
)
def test_a_table_is_found_by_the_name_of_a_dataset(table: str, urn: str) -> None:
    datasets = {
        "lumos://file/lake/ref/rates_NNN.csv": "rates",
        "lumos://file/lake/sales/orders": "orders",
        "lumos://file/lake/sales/orders_YYYY": "orders",
        "lumos://file/lake/raw/trips/trips_YYYY-MM.parquet": "trips",
    }
    names = NameIndex(
        DatasetLocation(each, name, "file", "live", None) for each, name in datasets.items()
    )
    found = names.find(TableName(parts=tuple(table.split("."))), dialect="spark")
    assert found.urn == urn


def test_a_platform_that_is_no_dialect_does_not_import_all_dialects() -> None:
    code = """
import sys
from lumos.errors import UnknownName
from lumos.lineage.sql.dialects import find_dialect
try:
    find_dialect("schema")
except UnknownName as problem:
    assert "snowflake" in problem.known
print("sqlglot.dialects.snowflake" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
