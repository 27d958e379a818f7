"""What a warehouse itself says that a statement read and wrote, in the words of its log."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from lumos.lineage.reported_lineage import (
    DatasetReference,
    LocationReference,
    ReportedEdge,
    TableName,
    UrnReference,
)
from lumos.model.json_codec import decode_json
from lumos.model.lineage import ColumnMapping
from lumos.model.urn import SCHEME

_STAGES: Final = frozenset({"stage", "function", "procedure", "sequence", "integration"})


class TableAccess(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A table that was read, and those of its columns that are known to have been."""

    table: DatasetReference
    columns: tuple[str, ...] = ()


def accesses(data: bytes, platform: str | None) -> tuple[TableAccess, ...]:
    """The tables in a list of accessed objects, inputs or referenced tables; JSON or nothing."""
    found: dict[DatasetReference, dict[str, None]] = {}
    for each in _records(data):
        if str(each.get("objectDomain", "")).lower() in _STAGES:
            continue
        table = _table(each, platform)
        if table is not None:
            found.setdefault(table, {}).update(dict.fromkeys(_columns(each)))
    return tuple(TableAccess(table=table, columns=tuple(names)) for table, names in found.items())


def modifications(data: bytes, platform: str | None) -> tuple[ReportedEdge, ...]:
    """The edges that a list of modified objects tells of, column by column."""
    edges: dict[tuple[DatasetReference, DatasetReference], dict[ColumnMapping, None]] = {}
    for each in _records(data):
        target = _table(each, platform)
        for column in each.get("columns") or ():
            if target is None or not isinstance(column, Mapping):
                continue
            to = _folded(str(column.get("columnName", "")))
            for source in column.get("directSources") or column.get("baseSources") or ():
                table = _table(source, platform)
                if table is None or not source.get("columnName"):
                    continue
                mapping = ColumnMapping(upstream=_folded(str(source["columnName"])), downstream=to)
                edges.setdefault((table, target), {})[mapping] = None
    return tuple(
        ReportedEdge(upstream=upstream, downstream=downstream, columns=tuple(mappings))
        for (upstream, downstream), mappings in edges.items()
    )


def _records(data: bytes) -> Iterator[Mapping[str, Any]]:
    if not data:
        return
    try:
        found = decode_json(data)
    except msgspec.DecodeError:
        return
    for each in found if isinstance(found, list) else [found]:
        if isinstance(each, Mapping):
            # BigQuery's export wraps repeated values.
            inner = each.get("v")
            yield inner if isinstance(inner, Mapping) else each


def _table(record: Mapping[str, Any], platform: str | None) -> DatasetReference | None:
    if record.get("plain"):
        return reference(str(record["objectName"]), platform)
    if name := record.get("objectName"):
        return TableName(parts=tuple(map(_folded, _split(str(name)))), platform=platform)
    for keys in (
        ("project_id", "dataset_id", "table_id"),
        ("projectId", "datasetId", "tableId"),
        ("catalogName", "schema", "table"),
    ):
        if record.get(keys[-1]):
            parts = tuple(str(record[key]).lower() for key in keys if record.get(key))
            return TableName(parts=parts, platform=platform)
    return None


def reference(text: str, platform: str | None = None) -> DatasetReference:
    """What a person or a list calls a dataset: a URN, a place, or a table's name."""
    if text.startswith(SCHEME):
        return UrnReference(urn=text)
    if "://" in text or text.startswith("/"):
        return LocationReference(uri=text)
    return TableName(parts=tuple(map(_folded, _split(text))), platform=platform)


def _columns(record: Mapping[str, Any]) -> Iterator[str]:
    for column in record.get("columns") or ():
        name = column.get("columnName") if isinstance(column, Mapping) else column
        if name:
            yield _folded(str(name))


def _split(name: str) -> list[str]:
    """The parts of a dotted name, quotes kept where they hold dots together."""
    parts, quoted = [""], False
    for character in name:
        if character == '"':
            quoted = not quoted
        if character == "." and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part]


def _folded(name: str) -> str:
    """A name as others meet it: only one in quotes keeps its case, if it has small letters."""
    bare = name.removeprefix('"').removesuffix('"').replace('""', '"')
    return bare if bare != name and bare != bare.upper() else bare.lower()
