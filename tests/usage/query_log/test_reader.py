"""Logs as warehouses export them: the statements in them, who ran them and when."""

import csv
import gzip
import io
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lumos.errors import MisuseError
from lumos.usage.query_log.files import UnreadableLog, chunks, recognise_log
from lumos.usage.query_log.reader import (
    LoggedStatement,
    QueryLogReader,
    StatementExample,
    moment_of,
)

AT = datetime(2024, 3, 5, 10, 30, 0, 250_000, tzinfo=UTC)
SQL = "SELECT id, amount\nFROM sales.orders WHERE day = '2024-03-05'"


def as_csv(*rows: dict[str, Any], delimiter: str = ",") -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0], delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def as_lines(*rows: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def read(
    file: Path, mapping: dict[str, str] | None = None, *, size: int = 1000, **options: Any
) -> tuple[list[LoggedStatement], list[StatementExample], dict[str, int]]:
    log = recognise_log(file, mapping)
    assert log is not None
    reader = QueryLogReader(**options)
    found = [each for chunk in chunks(log, size) for each in reader.read(chunk)]
    return (
        [logged for logged, _ in found],
        [example for _, example in found if example is not None],
        dict(reader.skipped),
    )


SNOWFLAKE = {
    "QUERY_ID": "01b2-a", "QUERY_TEXT": SQL, "DATABASE_NAME": "SHOP", "SCHEMA_NAME": "PUBLIC",
    "USER_NAME": "ANN", "START_TIME": "2024-03-05 10:30:00.250 +0000", "EXECUTION_STATUS": "SUCCESS",
    "BYTES_SCANNED": "1000", "ROWS_PRODUCED": "7",
}  # fmt: skip
BIGQUERY = {
    "creation_time": "2024-03-05 10:30:00.250000 UTC", "job_id": "job_1", "user_email": "ann@x.org",
    "query": SQL, "statement_type": "SELECT", "error_result": None, "project_id": "shop",
    "total_bytes_processed": "1000",
    "referenced_tables": [{"project_id": "shop", "dataset_id": "sales", "table_id": "orders"}],
}  # fmt: skip
STL_QUERY = {
    "userid": "100", "query": "55", "label": "default", "xid": "9", "pid": "3", "database": "shop",
    "querytxt": SQL, "starttime": "2024-03-05 10:30:00.25", "endtime": "2024-03-05 10:30:01",
    "aborted": "0",
}  # fmt: skip
SYS_QUERY = {
    "user_id": "100", "query_id": "55", "query_type": "SELECT", "status": "success",
    "start_time": "2024-03-05T10:30:00.250Z", "returned_rows": "7", "returned_bytes": "1000",
    "query_text": SQL, "database_name": "shop",
}  # fmt: skip
DATABRICKS = {
    "statement_id": "s-1", "executed_by": "ann@x.org", "statement_text": SQL,
    "start_time": "2024-03-05T10:30:00.250+00:00", "execution_status": "FINISHED", "read_bytes": 1000,
    "read_rows": 7,
}  # fmt: skip
TRINO = {
    "createTime": "2024-03-05T10:30:00.250Z",
    "context": {"user": "ann", "catalog": "hive", "schema": "sales"},
    "metadata": {"queryId": "q1", "query": SQL, "queryState": "FINISHED"},
    "statistics": {"physicalInputBytes": 1000, "physicalInputRows": 7},
    "ioMetadata": {"inputs": [{"catalogName": "hive", "schema": "sales", "table": "orders"}]},
}
CLICKHOUSE = {
    "type": "QueryFinish", "event_time": "2024-03-05 10:30:00.250", "query_id": "c1", "user": "ann",
    "query": SQL, "read_bytes": 1000, "read_rows": 7, "current_database": "sales",
}  # fmt: skip
GENERIC = {
    "who": "x",
    "sql": SQL,
    "user": "ann",
    "timestamp": 1709634600250,
    "bytes": 1000,
    "rows": 7,
}


@pytest.mark.parametrize(
    ("name", "content", "dialect", "reader", "rows"),
    [
        pytest.param("a.csv", as_csv(SNOWFLAKE), "snowflake", "ANN", 7, id="snowflake query history"),
        pytest.param("a.csv", as_csv(SNOWFLAKE, delimiter=";"), "snowflake", "ANN", 7, id="semicolons"),
        pytest.param("a.json", as_lines(BIGQUERY), "bigquery", "ann@x.org", None, id="bigquery jobs"),
        pytest.param("a.json", json.dumps([BIGQUERY], indent=1).encode(), "bigquery", "ann@x.org", None, id="a json array"),
        pytest.param("a.csv", as_csv(STL_QUERY), "redshift", "100", None, id="redshift stl_query"),
        pytest.param("a.csv", as_csv(SYS_QUERY), "redshift", "100", 7, id="redshift sys_query_history"),
        pytest.param("a.json", as_lines(DATABRICKS), "databricks", "ann@x.org", 7, id="databricks query history"),
        pytest.param("a.json", as_lines(TRINO), "trino", "ann", 7, id="trino events"),
        pytest.param("a.json", as_lines(CLICKHOUSE), "clickhouse", "ann", 7, id="clickhouse query log"),
        pytest.param("a.json", as_lines(GENERIC), None, "ann", 7, id="the usual names"),
        pytest.param("a.csv.gz", gzip.compress(as_csv(SNOWFLAKE)), "snowflake", "ANN", 7, id="gzip"),
    ],
)  # fmt: skip
def test_an_export_is_known_by_its_columns(
    tmp_path: Path, name: str, content: bytes, dialect: str | None, reader: str, rows: int | None
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    log = recognise_log(file)
    assert log is not None
    assert log.recognised.layout.dialect == dialect
    (logged,), (example,), left_out = read(file)
    assert left_out == {}
    assert example.statement == SQL
    assert moment_of(logged.at) == AT
    assert (logged.reader, logged.rows) == (reader, rows)
    assert logged.bytes in (1000, None)


def test_parquet_is_read_in_row_groups(tmp_path: Path) -> None:
    rows = [{**SNOWFLAKE, "QUERY_ID": str(number), "START_TIME": AT} for number in range(25)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet", row_group_size=10)
    log = recognise_log(tmp_path / "a.parquet")
    assert log is not None
    assert len(list(chunks(log))) == 3
    logged, examples, _ = read(tmp_path / "a.parquet")
    assert (len(logged), len(examples)) == (25, 1)
    assert {moment_of(each.at) for each in logged} == {AT}
    assert len({each.key for each in logged}) == 25


def test_pieces_of_json_lines_hold_every_line_once(tmp_path: Path) -> None:
    rows = [{**DATABRICKS, "statement_id": str(number), "x": "y" * number} for number in range(60)]
    (tmp_path / "a.json").write_bytes(as_lines(*rows))
    for size in (1, 100, 333, 10**6):
        logged, _, _ = read(tmp_path / "a.json", size=size)
        assert len({each.key for each in logged}) == len(logged) == 60


CSVLOG = (
    '2024-03-05 10:30:00.250 UTC,"ann","shop",77,"[local]",65e6f3a8.4d,{line},"SELECT",'
    '2024-03-05 10:29:00 UTC,3/5,0,{level},00000,"{message}",,,,,,,,,"psql","client backend",,0\n'
)


def test_postgres_logs_as_csv_without_a_header(tmp_path: Path) -> None:
    messages = [
        ("LOG", "statement: SELECT 1 FROM orders"),
        ("LOG", "duration: 0.5 ms"),
        ("LOG", "duration: 12.250 ms  statement: SELECT \n  2 FROM orders"),
        ("LOG", "execute <unnamed>: SELECT $1 FROM orders"),
        ("LOG", "duration: 0.1 ms  bind <unnamed>: SELECT $1 FROM orders"),
        ("LOG", "connection received"),
        ("ERROR", "relation does not exist"),
    ]
    text = "".join(
        CSVLOG.format(line=line, level=level, message=message)
        for line, (level, message) in enumerate(messages, start=1)
    )
    (tmp_path / "postgresql.csv").write_text(text)
    logged, examples, left_out = read(tmp_path / "postgresql.csv")
    assert len(examples) == 1, "all three are alike"
    assert [each.reader for each in logged] == ["ann"] * 3
    assert len({each.key for each in logged}) == 3
    assert left_out == {"no_statement": 4}
    assert examples[0].database == "shop"


@pytest.mark.parametrize(
    ("prefix", "reader"),
    [
        ("2024-03-05 10:30:00.250 UTC [77] ann@shop ", "ann"),
        ("2024-03-05 10:30:00.250 UTC [77]: [1-1] user=ann,db=shop,app=psql,client=::1 ", "ann"),
        ("2024-03-05 10:30:00.250 UTC [77] ", "(unknown)"),
    ],
)
def test_postgres_logs_as_text(tmp_path: Path, prefix: str, reader: str) -> None:
    text = (
        f"{prefix}LOG:  statement: SELECT a\n\tFROM orders\n\tWHERE b = 1;\n"
        f"{prefix}ERROR:  relation does not exist\n"
        f"{prefix}STATEMENT:  SELECT 1 FROM nowhere\n"
        f"{prefix}LOG:  duration: 3.1 ms  statement: SELECT a FROM orders WHERE b = 2\n"
    )
    (tmp_path / "postgresql.log").write_text(text)
    logged, examples, left_out = read(tmp_path / "postgresql.log")
    assert [each.reader for each in logged] == [reader] * 2
    assert len(examples) == 1
    assert left_out == {}
    assert moment_of(logged[0].at) == AT


def test_sums_of_pg_stat_statements_replace_each_other(tmp_path: Path) -> None:
    row = {
        "userid": 10,
        "dbid": 5,
        "queryid": 1,
        "query": "SELECT $1 FROM t",
        "calls": 12,
        "rows": 4,
    }
    (tmp_path / "stats_monday.csv").write_bytes(as_csv(row))
    log = recognise_log(tmp_path / "stats_monday.csv")
    assert log is not None
    assert log.recognised.layout.cumulative
    assert log.name == "pg_stat_statements"
    os.utime(tmp_path / "stats_monday.csv", (AT.timestamp(), AT.timestamp()))
    (logged,), _, _ = read(tmp_path / "stats_monday.csv")
    assert (logged.run_count, logged.rows, moment_of(logged.at)) == (12, 4, AT)


def test_failed_statements_and_scripts_are_left_out(tmp_path: Path) -> None:
    rows = [
        BIGQUERY,
        {**BIGQUERY, "job_id": "2", "error_result": {"reason": "invalidQuery"}},
        {**BIGQUERY, "job_id": "3", "statement_type": "SCRIPT"},
        {**BIGQUERY, "job_id": "4", "query": None, "referenced_tables": None},
        {**BIGQUERY, "job_id": "5", "creation_time": "yesterday"},
    ]
    (tmp_path / "a.json").write_bytes(as_lines(*rows) + b"{broken\n\n")
    logged, _, left_out = read(tmp_path / "a.json")
    assert len(logged) == 1
    assert left_out == {
        "failed": 1, "part_of_others": 1, "no_statement": 1, "no_time": 1, "unreadable": 1
    }  # fmt: skip


def test_rows_without_an_id_count_as_often_as_they_stand_there(tmp_path: Path) -> None:
    row = {"user": "ann", "time": "2024-03-05 10:30:00", "sql": SQL}
    (tmp_path / "a.csv").write_bytes(as_csv(row, row, {**row, "time": "2024-03-05 10:30:01"}))
    (tmp_path / "b.csv").write_bytes(as_csv(row))
    ours, _, _ = read(tmp_path / "a.csv")
    theirs, _, _ = read(tmp_path / "b.csv")
    assert len({each.key for each in ours}) == 3
    assert theirs[0].key == ours[0].key, "an overlapping export holds the same statement"


def test_an_id_that_is_used_again_on_another_day_is_another_statement(tmp_path: Path) -> None:
    later = {**STL_QUERY, "starttime": "2024-03-09 10:30:00"}
    (tmp_path / "a.csv").write_bytes(as_csv(STL_QUERY, later, STL_QUERY))
    logged, _, _ = read(tmp_path / "a.csv")
    assert len({each.key for each in logged}) == 2


def test_odd_values_do_no_harm(tmp_path: Path) -> None:
    odd: list[Any] = [None, 7, 1.5, True, [], {}, "", "x", [1], {"a": 1}]
    rows = [{**GENERIC, name: value} for name in GENERIC for value in odd]
    rows += [{**BIGQUERY, name: value} for name in BIGQUERY for value in odd]
    for given in (rows, [each for each in rows if "sql" in each]):
        (tmp_path / "a.json").write_bytes(as_lines(*given))
        logged, _, left_out = read(tmp_path / "a.json")
        assert len(logged) + sum(left_out.values()) == len(given)


def test_columns_may_be_named(tmp_path: Path) -> None:
    row = {"wer": "ann", "wann": "2024-03-05T10:30:00.25Z", "was": SQL}
    (tmp_path / "a.csv").write_bytes(as_csv(row))
    assert recognise_log(tmp_path / "a.csv") is None
    logged, _, _ = read(tmp_path / "a.csv", {"user": "wer", "time": "WANN", "statement": "was"})
    assert [each.reader for each in logged] == ["ann"]
    with pytest.raises(MisuseError, match="No column named 'wen'"):
        recognise_log(tmp_path / "a.csv", {"user": "wen"})
    with pytest.raises(MisuseError, match="needs columns for user, time and statement"):
        recognise_log(tmp_path / "a.csv", {"user": "wer"})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"id,name\n1,Ann\n"),
        ("a.json", b'{"id": 1}\n'),
        ("a.json", b"[1, 2"),
        ("a.sql", SQL.encode()),
        ("a.parquet", b"PAR1 and nothing else"),
        ("a.gz", b"\x1f\x8b broken"),
        ("empty", b""),
    ],
)
def test_other_files_are_no_query_logs(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert recognise_log(tmp_path / name) is None


def test_a_log_that_ends_in_the_middle_says_so(tmp_path: Path) -> None:
    packed = gzip.compress(as_csv(*({**SNOWFLAKE, "QUERY_ID": str(n)} for n in range(5000))))
    (tmp_path / "a.csv.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(UnreadableLog, match="gzip data is damaged"):
        read(tmp_path / "a.csv.gz")


def test_what_unfolds_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumos.decompression.ALWAYS_ALLOWED", 200_000)
    monkeypatch.setattr("lumos.decompression.MAX_COMPRESSION_RATIO", 10)
    rows = as_csv(SNOWFLAKE) + b'"","","","","","","","",""\n' * 1_000_000
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(rows))
    with pytest.raises(UnreadableLog, match="decompressed size exceeds the limit"):
        read(tmp_path / "a.csv.gz")


def test_readers_may_have_other_names(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(as_csv(SNOWFLAKE))
    (logged,), _, _ = read(tmp_path / "a.csv", rename_reader=lambda name: name[::-1])
    assert logged.reader == "NNA"
