"""How tables of metastores become datasets; without a server."""

import base64
import json

import pytest

from lumos.model.dataset import Owner
from lumos.model.types import parse_type
from lumos.sources.metastores.tables import (
    MetastoreColumn,
    MetastoreTable,
    dataset_of,
    registered_table,
)

PARQUET = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"


def _dataset(**facts: object):
    return dataset_of(
        MetastoreTable(**{"database": "shop", "name": "orders", **facts}),  # type: ignore[arg-type]
        address="thrift://h:9083",
    )


def _presto_view(**view: object) -> str:
    encoded = base64.b64encode(json.dumps(view).encode()).decode()
    return f"/* Presto View: {encoded} */"


def test_columns_have_nested_types_native_types_and_comments_and_keys_come_last() -> None:
    found = _dataset(
        columns=(
            MetastoreColumn("id", "bigint", "the id"),
            MetastoreColumn("tags", "array<struct<k:string,v:map<string,decimal(9,2)>>>"),
        ),
        partition_columns=(MetastoreColumn("dt", "date"),),
    )
    assert [(field.name, field.type, field.partition) for field in found.schema.fields] == [
        ("id", parse_type("INT64"), False),
        ("tags", parse_type("ARRAY<STRUCT<k: STRING, v: MAP<STRING, DECIMAL(9,2)>>>"), False),
        ("dt", parse_type("DATE"), True),
    ]
    assert found.schema.fields[0].description == "the id"
    assert found.schema.fields[1].native_type.startswith("array<struct<")
    assert found.location.partition_keys == ("dt",)


def test_names_of_any_kind_are_kept() -> None:
    found = _dataset(
        database="sh/op",
        name="or'd\"ers; DROP TABLE x --",
        columns=(MetastoreColumn("sélect", "int"), MetastoreColumn("a b`", "int")),
    )
    assert found.path.count("/") == 1
    assert [field.name for field in found.schema.fields] == ["sélect", "a b`"]


@pytest.mark.parametrize(
    ("facts", "format"),
    [
        ({"format_classes": (PARQUET,)}, "parquet"),
        ({"format_classes": ("org.apache.hadoop.mapred.TextInputFormat", "org.openx.data.jsonserde.JsonSerDe")}, "json"),
        ({"format_classes": ("org.apache.hadoop.mapred.TextInputFormat", "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe")}, "csv"),
        ({"parameters": {"table_type": "ICEBERG"}, "format_classes": (PARQUET,)}, "iceberg"),
        ({"parameters": {"spark.sql.sources.provider": "delta"}, "format_classes": (PARQUET,)}, "delta"),
        ({"format_classes": ("org.apache.hudi.hadoop.HoodieParquetInputFormat",)}, "hudi"),
        ({"format_classes": ("com.example.Own",)}, None),
        ({"type": "VIRTUAL_VIEW", "format_classes": (PARQUET,)}, None),
    ],
)  # fmt: skip
def test_the_format_of_the_files_comes_from_what_the_table_declares(facts, format) -> None:
    assert MetastoreTable(database="d", name="t", **facts).format == format


def test_statistics_are_registered_and_do_not_change_the_dataset() -> None:
    before = MetastoreTable(
        database="shop",
        name="orders",
        location="s3://lake/orders",
        parameters={"numFiles": "3", "totalSize": "99", "numRows": "7", "owner.team": "sales"},
    )
    after = MetastoreTable(
        database="shop",
        name="orders",
        location="s3://lake/orders",
        parameters={"numFiles": "4", "totalSize": "100", "numRows": "-1", "owner.team": "sales"},
    )
    one, other = (dataset_of(each, address="thrift://h:9083") for each in (before, after))
    assert one.content == other.content
    assert one.source_metadata is not None
    assert one.source_metadata.properties == {
        "location": "s3://lake/orders",
        "type": "external_table",
        "parameter.owner.team": "sales",
    }
    assert (registered_table(before).files, registered_table(before).bytes) == (3, 99)
    assert registered_table(after).rows is None
    # The files are counted where they lie.
    assert (one.statistics.file_count, one.statistics.total_size_bytes) == (0, 0)


def test_sparks_own_schema_gives_the_case_of_names_and_tables_that_hive_cannot_read() -> None:
    schema = {
        "type": "struct",
        "fields": [
            {"name": "userId", "type": "long", "nullable": True, "metadata": {}},
            {"name": "Day", "type": "date", "nullable": True, "metadata": {}},
        ],
    }
    text = json.dumps(schema)
    halves = {
        "spark.sql.sources.schema.numParts": "2",
        "spark.sql.sources.schema.part.0": text[:20],
        "spark.sql.sources.schema.part.1": text[20:],
    }
    readable = _dataset(
        columns=(MetastoreColumn("userid", "bigint"),),
        partition_columns=(MetastoreColumn("day", "date"),),
        parameters={"spark.sql.sources.schema": text},
    )
    unreadable = _dataset(columns=(MetastoreColumn("col", "array<string>"),), parameters=halves)
    changed_by_hive = _dataset(
        columns=(
            MetastoreColumn("userid", "bigint"),
            MetastoreColumn("day", "date"),
            MetastoreColumn("x", "int"),
        ),
        parameters=halves,
    )
    names = [
        [field.name for field in each.schema.fields]
        for each in (readable, unreadable, changed_by_hive)
    ]
    assert names == [["userId", "Day"], ["userId", "Day"], ["userid", "day", "x"]]
    assert readable.schema.fields[1].partition
    broken = _dataset(
        columns=(MetastoreColumn("a", "int"),), parameters={"spark.sql.sources.schema": "{"}
    )
    assert [field.name for field in broken.schema.fields] == ["a"]


@pytest.mark.parametrize(
    ("facts", "sql", "dialect"),
    [
        pytest.param({"expanded_sql": "SELECT `a` FROM `shop`.`t`"}, "SELECT `a` FROM `shop`.`t`", "hive", id="hive"),
        pytest.param(
            {
                "original_sql": "SELECT a FROM t",
                "parameters": {"view.catalogAndNamespace.part.0": "spark_catalog", "view.catalogAndNamespace.part.1": "other"},
            },
            "SELECT a FROM `other`.t", "spark", id="spark in another database",
        ),
        pytest.param(
            {"original_sql": _presto_view(originalSql="SELECT a FROM awsdatacatalog.shop.t", catalog="awsdatacatalog", schema="shop")},
            "SELECT a FROM shop.t", "trino", id="athena",
        ),
        pytest.param(
            {"original_sql": _presto_view(originalSql="WITH c AS (SELECT 1 AS x) SELECT x FROM c, t", schema="other")},
            'WITH c AS (SELECT 1 AS x) SELECT x FROM c, "other".t', "trino", id="trino with a query of its own",
        ),
    ],
)  # fmt: skip
def test_the_query_of_a_view_names_the_tables_it_means(facts, sql, dialect) -> None:
    found = _dataset(type="VIRTUAL_VIEW", **facts)
    assert found.format == "view"
    assert found.source_metadata is not None
    assert found.source_metadata.definition is not None
    assert (found.source_metadata.definition.sql, found.source_metadata.definition.dialect) == (
        sql,
        dialect,
    )


@pytest.mark.parametrize(
    "text", ["/* Presto View: %%% */", "/* Presto View: e30= */", "/* Presto View */", ""]
)
def test_a_view_without_a_readable_query_is_still_a_view(text: str) -> None:
    found = _dataset(type="VIRTUAL_VIEW", original_sql=text)
    assert found.source_metadata is not None
    assert found.source_metadata.definition is None


def test_an_owner_and_a_comment_are_reported() -> None:
    found = _dataset(owner=Owner(name="etl", kind="group"), comment="All orders")
    assert found.source_metadata is not None
    assert found.source_metadata.owner == Owner(name="etl", kind="group")
    assert found.source_metadata.description == "All orders"


def test_four_thousand_columns_are_read() -> None:
    columns = tuple(MetastoreColumn(f"c{number}", "string") for number in range(4000))
    assert len(_dataset(columns=columns).schema.fields) == 4000
