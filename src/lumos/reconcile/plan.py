"""The statements that would repair differences, in Hive's SQL; nothing executes them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from lumos.model.conversions.sql_types import type_to_sql
from lumos.model.schema import Schema
from lumos.model.types import parse_type
from lumos.model.urn import name_in
from lumos.reconcile.reports import ReconciledPartition, ReconcileFinding

# More partitions than this are repaired by a single MSCK REPAIR statement.
_MAX_PARTITIONS: Final = 50
_STORED_AS: Final = {"parquet": "PARQUET", "orc": "ORC", "avro": "AVRO"}


def repair_statements(
    findings: Iterable[ReconcileFinding],
    keys: Mapping[str, Sequence[str]],
    schemas: Mapping[str, Schema],
) -> Iterator[str]:
    """The statements for the findings; those that need a decision are SQL comments.

    `keys` are the partition keys of tables by name, and `schemas` those of datasets by URN.
    """
    for each in findings:
        match each.kind:
            case "partitions_missing":
                yield from _drop_partitions(each, keys)
            case "partitions_unregistered":
                yield from _add_partitions(each, keys)
            case "stale_statistics":
                assert each.table is not None
                names = ", ".join(map(quoted_name, keys.get(each.table, ())))
                partition = f" PARTITION ({names})" if names else ""
                yield f"ANALYZE TABLE {_table(each)}{partition} COMPUTE STATISTICS;"
            case "schema_difference":
                yield from _change_columns(each)
            case "table_without_data":
                yield _note(each, "no data. If the table is not needed:")
                yield _comment(f"-- DROP TABLE {_table(each)};")
            case "data_without_table":
                yield from _create_table(each, schemas)
            case "format_difference":
                yield _note(each, f"{each.details}. Create it again with the right format.")
            case "shared_location" | "nested_location":
                yield _note(each, f"{each.details}. Move or drop all but one of them.")
            case "files_outside_partitions":
                yield _note(each, f"{each.details}. Move them into partition folders.")


def _drop_partitions(finding: ReconcileFinding, keys: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for each in finding.partitions:
        partition = _partition(finding, each, keys)
        yield f"ALTER TABLE {_table(finding)} DROP IF EXISTS PARTITION ({partition});"
    if finding.count is not None and finding.count > len(finding.partitions):
        more = finding.count - len(finding.partitions)
        yield _note(finding, f"{more:,} more partitions have no files:")
        yield f"MSCK REPAIR TABLE {_table(finding)} DROP PARTITIONS;"


def _add_partitions(finding: ReconcileFinding, keys: Mapping[str, Sequence[str]]) -> Iterator[str]:
    if (finding.count or 0) > _MAX_PARTITIONS:
        yield f"MSCK REPAIR TABLE {_table(finding)};"
        return
    for each in finding.partitions:
        yield (
            f"ALTER TABLE {_table(finding)} ADD IF NOT EXISTS PARTITION "
            f"({_partition(finding, each, keys)}) LOCATION {quoted_text(each.location)};"
        )


def _change_columns(finding: ReconcileFinding) -> Iterator[str]:
    new_columns = []
    for change in finding.changes:
        is_column = "." not in change.path and "[" not in change.path
        name = quoted_name(change.path)
        if change.kind == "added" and is_column and isinstance(change.after, str):
            new_columns.append(f"{name} {_hive_type(change.after)}")
        elif change.kind == "removed" and is_column:
            yield _note(finding, f"the files have no column {name}; queries return NULL.")
        elif is_column and isinstance(change.after, str):
            type = _hive_type(change.after)
            yield f"ALTER TABLE {_table(finding)} CHANGE COLUMN {name} {name} {type};"
        else:
            yield _note(finding, f"{change.path} differs ({change.kind}).")
    if new_columns:
        yield f"ALTER TABLE {_table(finding)} ADD COLUMNS ({', '.join(new_columns)});"


def _create_table(finding: ReconcileFinding, schemas: Mapping[str, Schema]) -> Iterator[str]:
    urn = finding.dataset_urn or ""
    format = finding.details.partition(",")[0]
    schema = schemas.get(urn)
    if schema is None or format not in _STORED_AS:
        yield f"-- {_comment(finding.location)} has no table. Register it if it is needed."
        return
    columns = ", ".join(
        f"{quoted_name(field.name)} {type_to_sql(field.type, 'hive')}"
        for field in schema.fields
        if not field.partition
    )
    keys = ", ".join(
        f"{quoted_name(field.name)} {type_to_sql(field.type, 'hive')}"
        for field in schema.fields
        if field.partition
    )
    partition_clause = f" PARTITIONED BY ({keys})" if keys else ""
    # Tables have folders, while the location of a dataset may be one file.
    location = finding.location
    name = _comment(name_in(urn))
    if location.endswith(f".{format}"):
        location = location.rpartition("/")[0]
        name = location.rpartition("/")[2]
    yield f"-- {_comment(finding.location)} has no table. If it is needed:"
    yield (
        f"-- CREATE EXTERNAL TABLE {quoted_name(_comment(name))} ({_comment(columns)})"
        f"{_comment(partition_clause)} STORED AS {_STORED_AS[format]} "
        f"LOCATION {quoted_text(_comment(location))};"
    )


def _partition(
    finding: ReconcileFinding, partition: ReconciledPartition, keys: Mapping[str, Sequence[str]]
) -> str:
    pairs = zip(keys.get(finding.table or "", ()), partition.values, strict=False)
    return ", ".join(f"{quoted_name(key)}={quoted_text(value)}" for key, value in pairs)


def _hive_type(text: str) -> str:
    return type_to_sql(parse_type(text.removesuffix(" NOT NULL")), "hive")


def _table(finding: ReconcileFinding) -> str:
    assert finding.table is not None
    return ".".join(quoted_name(part) for part in finding.table.split(".", 1))


def _note(finding: ReconcileFinding, text: str) -> str:
    return _comment(f"-- {finding.table}: {text}")


def _comment(text: str) -> str:
    """The text on one line, so that a comment does not end in the middle of it."""
    return " ".join(text.splitlines())


def quoted_name(name: str) -> str:
    """A name in Hive's quotes."""
    return "`" + name.replace("`", "``") + "`"


def quoted_text(text: str) -> str:
    """A text in Hive's quotes."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + escaped.replace("\n", "\\n").replace("\r", "\\r") + "'"
