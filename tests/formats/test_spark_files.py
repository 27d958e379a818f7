"""Files that Spark writes, in every format and compression that it has."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lumos.formats.columns import merge_columns
from lumos.formats.interface import FileFacts

from .material import found

ROWS = 1000
SQL = f"""
    SELECT id, cast(id AS int) AS i, concat('say "', id, '", ok') AS s, id / 3 AS f,
           cast(id AS decimal(20, 3)) AS d, date_add(date'2024-01-01', cast(id AS int)) AS day,
           timestamp_seconds(id) AS at, id % 2 = 0 AS even, if(id % 7 = 0, NULL, id) AS gaps
    FROM range({ROWS})
"""
NESTED = SQL.replace(
    "FROM", ", array(named_struct('x', id, 'y', 'z')) AS items, map('k', id) AS labels FROM"
)
DECLARED = (
    "id INT64, i INT32, s STRING, f FLOAT64, d DECIMAL(20,3), day DATE, at {timestamp}, "
    "even BOOLEAN, gaps INT64, items ARRAY<STRUCT<x: INT64, y: STRING>>, labels MAP<STRING, INT64>"
)


def written(folder: Path) -> tuple[str, str, list[FileFacts]]:
    """The format, the one schema without what says that it holds no nulls, and all facts."""
    files = sorted(file for file in folder.iterdir() if file.name.startswith("part-"))
    read = [found(file.name, file.read_bytes(), column_stats=True) for file in files]
    [format], [schema] = ({each[0] for each in read}, {str(each[1].schema) for each in read})
    assert all(facts.remarks == () for _, facts in read)
    return (
        format,
        ", ".join(schema.replace(" NOT NULL", "").splitlines()),
        [each[1] for each in read],
    )


@pytest.mark.parametrize(
    ("format", "codec", "timestamp"),
    [
        ("parquet", "snappy", "TIMESTAMP(us)"),
        ("parquet", "zstd", "TIMESTAMP(us)"),
        ("parquet", "none", "TIMESTAMP(us)"),
        ("orc", "snappy", "TIMESTAMP(ns)"),
        ("orc", "zlib", "TIMESTAMP(ns)"),
        ("orc", "zstd", "TIMESTAMP(ns)"),
        ("orc", "lz4", "TIMESTAMP(ns)"),
    ],
)
def test_declared_schemas_and_statistics(
    spark: SparkSession, tmp_path: Path, format: str, codec: str, timestamp: str
) -> None:
    rows = spark.sql(NESTED).repartition(2)
    rows.write.format(format).option("compression", codec).save(str(tmp_path / "lake"))
    found_format, schema, facts = written(tmp_path / "lake")
    assert (found_format, schema) == (format, DECLARED.format(timestamp=timestamp))
    assert sum(each.row_count or 0 for each in facts) == ROWS
    columns = {column.path: column for column in merge_columns(each.columns for each in facts)}
    assert (columns["id"].minimum, columns["id"].maximum, columns["id"].bounded) == (0, 999, True)
    assert (columns["d"].minimum, columns["d"].maximum, columns["d"].bounded) == (0, 999, True)
    assert columns["gaps"].null_count == 143
    assert columns["id"].compressed_bytes
    assert (columns["s"].minimum, columns["s"].bounded) == (None, False)


@pytest.mark.parametrize("codec", ["none", "gzip", "bzip2"])
@pytest.mark.parametrize("header", [True, False])
def test_csv(spark: SparkSession, tmp_path: Path, codec: str, header: bool) -> None:
    rows = spark.sql(SQL).coalesce(1)
    rows.write.option("compression", codec).option("header", header).csv(str(tmp_path / "lake"))
    format, schema, [facts] = written(tmp_path / "lake")
    types = [
        "INT64",
        "INT64",
        "STRING",
        "FLOAT64",
        "FLOAT64",
        "DATE",
        "TIMESTAMPTZ(us)",
        "BOOLEAN",
        "INT64",
    ]
    assert format == "csv"
    assert [str(field.type) for field in facts.schema.fields] == types
    assert ("id INT64" in schema) is header
    assert facts.row_count is None or facts.row_count == pytest.approx(ROWS, rel=0.05)


@pytest.mark.parametrize("codec", ["none", "gzip", "bzip2"])
def test_json(spark: SparkSession, tmp_path: Path, codec: str) -> None:
    rows = spark.sql(NESTED).coalesce(1)
    rows.write.option("compression", codec).json(str(tmp_path / "lake"))
    format, schema, _ = written(tmp_path / "lake")
    assert (format, schema) == (
        "json",
        "id INT64, i INT64, s STRING, f FLOAT64, d FLOAT64, day STRING, at STRING, even BOOLEAN, "
        "items ARRAY<STRUCT<x: INT64, y: STRING>>, labels STRUCT<k: INT64>, gaps INT64",
    )
