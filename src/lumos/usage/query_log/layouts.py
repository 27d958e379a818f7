"""Layouts of query logs: column names of warehouses and generic logs."""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from lumos.errors import MisuseError, UnknownName

LogField: TypeAlias = Literal[
    "id", "user", "time", "statement", "bytes", "rows", "calls", "database", "schema", "failed",
    "kind", "accessed", "modified", "dataset", "column", "message", "line",
]  # fmt: skip
FIELDS: Final[tuple[LogField, ...]] = LogField.__args__  # type: ignore[attr-defined]


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """Column names of a kind of log, preferred names first, in lower case.

    `needs` are required fields. `failed` is how failed statements are marked: by a status, a flag
    or an error message. Statements whose kind is in `skipped` are ignored, such as scripts whose
    statements are logged separately. `cumulative` logs contain totals, so that a newer log replaces
    an older one. In `abbreviated` statements, lists of values are printed as `(...)`.
    """

    name: str
    columns: dict[LogField, tuple[str, ...]]
    needs: tuple[LogField, ...]
    dialect: str | None = None
    platform: str | None = None
    failed: Literal["status", "flag", "error"] = "status"
    skipped: frozenset[str] = frozenset()
    cumulative: bool = False
    abbreviated: bool = False


class RecognisedLayout(msgspec.Struct, frozen=True, kw_only=True):
    """A layout, with the column index of each field in one log."""

    layout: Layout
    indexes: dict[LogField, int]


_DATABASE: Final = ("database_name", "database", "catalog_name", "catalog", "dbname", "datname")
_SCHEMA: Final = ("schema_name", "schema")

LAYOUTS: Final = (
    Layout(
        name="snowflake access history",
        dialect="snowflake",
        platform="snowflake",
        needs=("id", "user", "time", "accessed"),
        columns={
            "id": ("query_id",),
            "user": ("user_name",),
            "time": ("query_start_time",),
            "accessed": ("direct_objects_accessed", "base_objects_accessed"),
            "modified": ("objects_modified",),
            "statement": ("query_text",),
        },
    ),
    Layout(
        name="snowflake query history",
        dialect="snowflake",
        platform="snowflake",
        needs=("id", "user", "time", "statement", "bytes"),
        columns={
            "id": ("query_id",),
            "user": ("user_name",),
            "time": ("start_time",),
            "statement": ("query_text",),
            "bytes": ("bytes_scanned",),
            "rows": ("rows_produced",),
            "database": ("database_name",),
            "schema": ("schema_name",),
            "failed": ("execution_status",),
        },
    ),
    Layout(
        name="bigquery jobs",
        dialect="bigquery",
        platform="bigquery",
        needs=("id", "user", "time", "statement"),
        failed="error",
        # The statements of a script are logged as separate jobs.
        skipped=frozenset({"script"}),
        columns={
            "id": ("job_id",),
            "user": ("user_email",),
            "time": ("start_time", "creation_time"),
            "statement": ("query",),
            "bytes": ("total_bytes_processed", "total_bytes_billed"),
            "database": ("project_id",),
            "failed": ("error_result",),
            "kind": ("statement_type",),
            "accessed": ("referenced_tables",),
        },
    ),
    Layout(
        name="redshift query log",
        dialect="redshift",
        platform="redshift",
        needs=("id", "user", "time", "statement"),
        failed="flag",
        columns={
            "id": ("query",),
            "user": ("usename", "username", "user_name", "userid"),
            "time": ("starttime",),
            "statement": ("querytxt",),
            "database": ("database",),
            "failed": ("aborted",),
        },
    ),
    Layout(
        name="redshift query history",
        dialect="redshift",
        platform="redshift",
        needs=("id", "user", "time", "statement", "rows"),
        columns={
            "id": ("query_id",),
            "user": ("usename", "username", "user_name", "user_id"),
            "time": ("start_time",),
            "statement": ("query_text",),
            "bytes": ("returned_bytes",),
            "rows": ("returned_rows",),
            "database": ("database_name",),
            "failed": ("status",),
        },
    ),
    Layout(
        name="databricks query history",
        dialect="databricks",
        needs=("id", "user", "time", "statement"),
        columns={
            "id": ("statement_id",),
            "user": ("executed_by", "executed_as"),
            "time": ("start_time",),
            "statement": ("statement_text",),
            "bytes": ("read_bytes",),
            "rows": ("read_rows", "produced_rows"),
            "failed": ("execution_status",),
        },
    ),
    Layout(
        name="trino events",
        dialect="trino",
        needs=("id", "user", "time", "statement"),
        columns={
            "id": ("metadata.queryid",),
            "user": ("context.user",),
            "time": ("createtime",),
            "statement": ("metadata.query",),
            "bytes": ("statistics.physicalinputbytes", "statistics.totalbytes"),
            "rows": ("statistics.physicalinputrows", "statistics.totalrows"),
            "database": ("context.catalog",),
            "schema": ("context.schema",),
            "failed": ("metadata.querystate",),
            "accessed": ("iometadata.inputs",),
        },
    ),
    Layout(
        name="clickhouse query log",
        dialect="clickhouse",
        platform="clickhouse",
        needs=("id", "user", "time", "statement", "kind"),
        skipped=frozenset(
            {"querystart", "exceptionbeforestart", "exceptionwhileprocessing", "1", "3", "4"}
        ),
        columns={
            "id": ("query_id",),
            "user": ("user",),
            "time": ("event_time_microseconds", "event_time"),
            "statement": ("query",),
            "bytes": ("read_bytes",),
            "rows": ("read_rows",),
            "schema": ("current_database",),
            "kind": ("type",),
        },
    ),
    Layout(
        name="postgres log",
        dialect="postgres",
        platform="postgres",
        needs=("user", "time", "message", "id", "line"),
        columns={
            "id": ("session_id",),
            "line": ("session_line_num", "line_num"),
            "user": ("user_name", "user"),
            "time": ("log_time", "timestamp"),
            "message": ("message",),
            "database": ("database_name", "dbname"),
        },
    ),
    Layout(
        name="pg_stat_statements",
        dialect="postgres",
        platform="postgres",
        needs=("statement", "calls"),
        cumulative=True,
        columns={
            "id": ("queryid",),
            "user": ("rolname", "usename", "username", "user", "userid"),
            "time": ("exported_at", "captured_at", "now"),
            "statement": ("query",),
            "calls": ("calls",),
            "rows": ("rows",),
            "database": ("datname", "dbname", "dbid"),
        },
    ),
    Layout(
        name="mysql digests",
        dialect="mysql",
        needs=("statement", "calls", "id"),
        cumulative=True,
        abbreviated=True,
        columns={
            "id": ("digest",),
            "user": ("user", "username"),
            "time": ("last_seen",),
            "statement": ("digest_text",),
            "calls": ("count_star",),
            "rows": ("sum_rows_sent",),
            "schema": ("schema_name",),
            # The same statement has one digest in all databases.
            "line": ("schema_name",),
        },
    ),
    Layout(
        name="usage",
        needs=("dataset", "user", "time"),
        columns={
            "id": ("id", "query_id"),
            "dataset": ("dataset", "urn", "table", "table_name"),
            "column": ("column", "column_name", "columns"),
            "user": ("user", "reader", "user_name", "username", "user_email"),
            "time": ("time", "timestamp", "date", "day", "read_at", "at"),
            "calls": ("reads", "count", "times"),
            "bytes": ("bytes", "bytes_read", "read_bytes"),
            "rows": ("rows", "rows_read", "read_rows"),
        },
    ),
    Layout(
        name="query log",
        needs=("statement", "user", "time"),
        columns={
            "id": ("query_id", "statement_id", "job_id", "id"),
            "user": (
                "user_name", "username", "user", "user_email", "executed_by", "usename",
                "login_name",
            ),
            "time": (
                "start_time", "started_at", "start", "query_start", "query_start_time",
                "create_time", "created", "creation_time", "event_time", "timestamp", "time",
                "executed_at",
            ),
            "statement": (
                "statement", "sql", "query_text", "sql_text", "statement_text", "query", "text",
            ),
            "bytes": (
                "bytes", "bytes_scanned", "bytes_read", "read_bytes", "physical_input_bytes",
                "total_bytes_processed",
            ),
            "rows": ("rows", "rows_read", "read_rows", "rows_produced", "physical_input_rows"),
            "calls": ("calls", "count"),
            "database": _DATABASE,
            "schema": _SCHEMA,
            "failed": ("execution_status", "status", "state", "query_state"),
        },
    ),
)  # fmt: skip
POSTGRES_LOG: Final = next(each for each in LAYOUTS if each.name == "postgres log")
# csvlog has no header; later versions append columns.
CSVLOG_COLUMNS: Final = (
    "log_time", "user_name", "database_name", "process_id", "connection_from", "session_id",
    "session_line_num", "command_tag", "session_start_time", "virtual_transaction_id",
    "transaction_id", "error_severity", "sql_state_code", "message",
)  # fmt: skip


def recognise(
    columns: Iterable[str], mapping: Mapping[str, str] | None = None
) -> RecognisedLayout | None:
    """The first layout whose required columns exist; `mapping` maps fields to columns instead."""
    indexes = {name.strip().lower(): index for index, name in reversed(list(enumerate(columns)))}
    if mapping:
        return _map_columns(indexes, mapping)
    for layout in LAYOUTS:
        field_indexes = {
            field: next((indexes[name] for name in names if name in indexes), None)
            for field, names in layout.columns.items()
        }
        if all(field_indexes[field] is not None for field in layout.needs):
            return RecognisedLayout(
                layout=layout,
                indexes={
                    field: index for field, index in field_indexes.items() if index is not None
                },
            )
    return None


def _map_columns(indexes: Mapping[str, int], mapping: Mapping[str, str]) -> RecognisedLayout:
    field_indexes: dict[LogField, int] = {}
    for field, column in mapping.items():
        if field not in FIELDS:
            raise UnknownName("field of a query log", field, FIELDS)
        if column.lower() not in indexes:
            raise UnknownName("column", column, indexes)
        field_indexes[field] = indexes[column.lower()]
    if (
        "user" not in field_indexes
        or "time" not in field_indexes
        or not field_indexes.keys() & {"statement", "dataset"}
    ):
        raise MisuseError(
            "A log needs columns for user, time and statement (or dataset): "
            "--columns user=WHO,time=WHEN,statement=SQL_TEXT"
        )
    layout = Layout(name="mapped", needs=(), columns={})
    return RecognisedLayout(layout=layout, indexes=field_indexes)
