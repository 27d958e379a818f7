"""Converts datasets to fragments of Amundsen's graph, and back."""

from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec

from lumos.catalogs.amundsen import graph, names
from lumos.catalogs.amundsen.graph import (
    BADGE,
    COLUMN,
    KIND,
    TABLE,
    TAG,
    USER,
    Fragment,
    Node,
    pack_fields,
    unpack_fields,
)
from lumos.catalogs.interface import AspectStorage
from lumos.catalogs.packed_properties import restore
from lumos.model import dataset as aspects
from lumos.model.catalog import CatalogEntry
from lumos.model.lineage import ColumnMapping
from lumos.model.paths import lineage_column
from lumos.model.schema import Field, Schema
from lumos.model.types import SchemaSyntaxError, Unknown, parse_type
from lumos.model.urn import Urn

NATIVE: Final = frozenset(
    {"schema", "statistics", "lineage", "ownership", "governance", "documentation", "properties",
     "usage"}
)  # fmt: skip
_DELETED: Final = "lumos_deleted"
# Set on relations to badges that represent compliance labels.
_COMPLIANCE: Final = "lumos_compliance"
_VIEW: Final = "view"
# Databuilder's badge for partition columns, and a similar one for keys.
_PARTITION_BADGE: Final = "partition column"
_KEY_BADGE: Final = "primary key"
_WATERMARKS: Final = {"low_watermark": "minimum", "high_watermark": "maximum"}
_UPDATED: Final = "last_updated_timestamp"


class RenderedTable(NamedTuple):
    """The fragment of an entry, and how each of its aspects is stored."""

    fragment: Fragment
    storage: dict[str, AspectStorage]


def render(entry: CatalogEntry) -> RenderedTable:
    """Encode an entry as a fragment of the graph."""
    fragment = _encode(entry)
    root = Node(TABLE, names.required_table_key(entry.urn))
    visible = _decode(entry.urn, fragment)
    _, raw = _badges_in(entry)
    unpacked = msgspec.structs.replace(entry, raw=raw)
    properties, packed = pack_fields(unpacked, msgspec.structs.replace(visible, raw={}))
    fragment.nodes[root].update(properties)
    return RenderedTable(fragment, packed.storage)


def entry_in(key: str, fragment: Fragment) -> CatalogEntry:
    """Decode the entry of a table."""
    properties = fragment.nodes[Node(TABLE, key)]
    visible = _decode(names.dataset_urn(key), fragment)
    raw = visible.raw
    packed = unpack_fields(properties)
    for catalog, record in packed.pop("raw", {}).items():
        both = catalog in raw and isinstance(record, dict)
        raw[catalog] = {**record, **raw[catalog]} if both else record
    entry = restore(visible, packed, native=NATIVE, as_shown=_round_trip)
    deleted = properties.get(_DELETED) is True
    return msgspec.structs.replace(entry, raw=raw, deleted=deleted)


def _round_trip(entry: CatalogEntry) -> CatalogEntry:
    return _decode(entry.urn, _encode(entry))


def _encode(entry: CatalogEntry) -> Fragment:
    """The part of an entry that Amundsen has nodes, relations and properties for."""
    key = names.required_table_key(entry.urn)
    root, parts = Node(TABLE, key), names.parse_key(key)
    is_view = entry.definition is not None or entry.format == _VIEW
    fragment = Fragment.of(root, {"name": parts.table, "is_view": is_view})
    if entry.deleted:
        # Amundsen does not show or index tables without a schema.
        fragment.nodes[root][_DELETED] = True
    else:
        schema, cluster = Node("Schema", parts.schema_key), Node("Cluster", parts.cluster_key)
        database = Node("Database", parts.database_key)
        parents = ((schema, parts.schema), (cluster, parts.cluster), (database, parts.database))
        fragment.references.update((node, {"name": text}) for node, text in parents)
        fragment.refer(root, "TABLE_OF", schema)
        parent_relations = ((schema, "SCHEMA_OF", cluster), (cluster, "CLUSTER_OF", database))
        fragment = fragment._replace(
            parents=tuple(graph.relation(*each) for each in parent_relations)
        )
    fragment.describe(root, entry.documentation.description if entry.documentation else None)
    for source, text in (entry.properties or {}).items():
        if source:
            end = Node("Programmatic_Description", f"{key}/_{source}_description")
            values = {"description_source": source, "description": text}
            fragment.add_part(root, "DESCRIPTION", end, values)
    governance = entry.governance or aspects.Governance()
    for tag in governance.tags:
        fragment.refer(root, "TAGGED_BY", Node(TAG, tag))
    for owner in entry.ownership.owners if entry.ownership else ():
        fragment.refer(root, "OWNER", Node(USER, owner.name))
    for reader in entry.usage.readers if entry.usage else ():
        fragment.refer(root, "READ_BY", Node(USER, reader.name), {"read_count": reader.reads})
    for badge, category in _badges_in(entry)[0].items():
        _add_badge(fragment, root, badge, category)
    for label in governance.compliance:
        _add_badge(fragment, root, label.lower(), "compliance", {_COMPLIANCE: True})
    _add_statistics(fragment, root, entry)
    fields = entry.schema.fields if entry.schema else ()
    for number, field in enumerate(fields):
        _add_column(fragment, root, field, number)
    columns = {field.name for field in fields}
    for edge in entry.lineage.upstream if entry.lineage else ():
        if (upstream := names.table_key(edge.urn)) is not None:
            fragment.refer(root, "HAS_UPSTREAM", Node(TABLE, upstream))
            for mapping in edge.columns:
                if mapping.downstream in columns:
                    start = Node(COLUMN, names.column_key(key, mapping.downstream))
                    # Amundsen has columns only, no nested fields.
                    column = lineage_column(mapping.upstream)
                    end = Node(COLUMN, names.column_key(upstream, column))
                    fragment.refer(start, "HAS_UPSTREAM", end)
    return fragment


def _add_badge(
    fragment: Fragment,
    start: Node,
    name: str,
    category: str,
    properties: graph.Properties | None = None,
) -> None:
    if name:
        fragment.references.setdefault(Node(BADGE, name), {"category": category})
        fragment.refer(start, "HAS_BADGE", Node(BADGE, name), properties)


def _add_column(fragment: Fragment, root: Node, field: Field, number: int) -> None:
    column = Node(COLUMN, names.column_key(root.key, field.name))
    values = {"name": field.name, "col_type": field.type.text, "sort_order": number}
    fragment.add_part(root, "COLUMN", column, values)
    fragment.describe(column, field.description)
    # Columns in Amundsen have no tags, only badges in lower case.
    flags = ((_KEY_BADGE, field.key), (_PARTITION_BADGE, field.partition))
    for badge in (*(name for name, is_set in flags if is_set), *field.tags):
        _add_badge(fragment, column, badge.lower(), "column")


def _add_statistics(fragment: Fragment, root: Node, entry: CatalogEntry) -> None:
    """Add the time of the last change, and the range of the first partition key as watermarks."""
    if entry.statistics is None:
        return
    modified = entry.statistics.last_modified
    if modified is not None:
        end, seconds = Node("Timestamp", f"{root.key}/timestamp"), int(modified.timestamp())
        values: graph.Properties = {_UPDATED: seconds, "timestamp": seconds, "name": _UPDATED}
        fragment.add_part(root, "LAST_UPDATED_AT", end, values)
    # An entry without a location was read from Amundsen; its statistics come from watermarks.
    keys = entry.location.partition_keys if entry.location else tuple(entry.statistics.columns)
    for column in keys[:1]:
        statistics = entry.statistics.columns.get(column, aspects.ColumnStatistics())
        for kind, attribute in _WATERMARKS.items():
            if (value := getattr(statistics, attribute)) is not None:
                values = {"partition_key": column, "partition_value": value}
                fragment.add_part(
                    root, "WATERMARK", Node("Watermark", f"{root.key}/{kind}/"), values
                )


def _decode(urn: str, fragment: Fragment) -> CatalogEntry:
    """Decode nodes and relations, without packed fields."""
    root = Node(TABLE, names.required_table_key(urn))
    properties, neighbours = fragment.nodes[root], fragment.neighbours()
    programmatic = {
        str(source): str(fragment.nodes[node].get("description", ""))
        for node in neighbours(root, "DESCRIPTION")
        if (source := fragment.nodes[node].get("description_source"))
        and node.label != "Description"
    }
    badges = neighbours(root, "HAS_BADGE")
    compliance = tuple(each.key for each in badges if badges[each].get(_COMPLIANCE))
    other_badges = {
        each.key: fragment.references.get(each, {}).get("category", "")
        for each in badges
        if not badges[each].get(_COMPLIANCE)
    }
    tags = tuple(each.key for each in neighbours(root, "TAGGED_BY"))
    owners = tuple(aspects.Owner(name=each.key) for each in neighbours(root, "OWNER"))
    readers = tuple(
        aspects.Reader(name=each.key, reads=_to_integer(found.get("read_count")))
        for each, found in neighbours(root, "READ_BY").items()
    )
    text = fragment.description(neighbours, root)
    return CatalogEntry(
        urn=urn,
        name=names.unescape_name(str(properties["name"])),
        platform=Urn.parse(urn).platform,
        format=_VIEW if properties.get("is_view") in (True, "True", "true") else None,
        schema=_schema(fragment, root, neighbours),
        statistics=_statistics(fragment, root, neighbours),
        lineage=_lineage(fragment, root, neighbours),
        ownership=aspects.Ownership(owners=owners) if owners else None,
        governance=aspects.Governance(tags=tags, compliance=compliance)
        if tags or compliance
        else None,
        documentation=None if text is None else aspects.Documentation(description=text),
        properties=programmatic or None,
        usage=aspects.Usage(readers=readers) if readers else None,
        raw={KIND: {"badges": other_badges}} if other_badges else {},
    )


def _schema(fragment: Fragment, root: Node, neighbours: graph.Neighbours) -> Schema | None:
    columns = [
        (node, fragment.nodes[node])
        for node in neighbours(root, "COLUMN")
        if node in fragment.nodes
    ]
    columns.sort(key=lambda each: _to_integer(each[1].get("sort_order")))
    fields = tuple(_field(fragment, node, each, neighbours) for node, each in columns)
    return Schema(fields=fields) if fields else None


def _field(
    fragment: Fragment, column: Node, properties: graph.Properties, neighbours: graph.Neighbours
) -> Field:
    badges = {each.key for each in neighbours(column, "HAS_BADGE")}
    text = str(properties.get("col_type", ""))
    try:
        type: Any = parse_type(text)
    except SchemaSyntaxError:
        type = Unknown(text)
    return Field(
        name=str(properties["name"]),
        type=type,
        key=_KEY_BADGE in badges,
        partition=_PARTITION_BADGE in badges,
        description=fragment.description(neighbours, column),
        tags=tuple(sorted(badges - {_KEY_BADGE, _PARTITION_BADGE})),
    )


def _statistics(
    fragment: Fragment, root: Node, neighbours: graph.Neighbours
) -> aspects.Statistics | None:
    times = [fragment.nodes.get(each, {}) for each in neighbours(root, "LAST_UPDATED_AT")]
    seconds = _to_integer(times[0].get(_UPDATED)) if times else None
    columns: dict[str, dict[str, Any]] = {}
    for node in neighbours(root, "WATERMARK"):
        kind, values = node.key.rstrip("/").rpartition("/")[2], fragment.nodes.get(node, {})
        if kind in _WATERMARKS:
            column = columns.setdefault(str(values.get("partition_key")), {})
            column[_WATERMARKS[kind]] = str(values.get("partition_value"))
    if seconds is None and not columns:
        return None
    return aspects.Statistics(
        last_modified=None if seconds is None else datetime.fromtimestamp(seconds, UTC),
        columns={
            name: msgspec.convert(values, aspects.ColumnStatistics)
            for name, values in columns.items()
        },
    )


def _lineage(
    fragment: Fragment, root: Node, neighbours: graph.Neighbours
) -> aspects.Lineage | None:
    edges: dict[str, list[ColumnMapping]] = {
        end.key: [] for end in neighbours(root, "HAS_UPSTREAM")
    }
    for each in sorted(fragment.relations):
        if each.type == "HAS_UPSTREAM" and each.start in fragment.nodes and each.start != root:
            upstream, downstream = names.split_column_key(each.end.key), each.start.key
            if upstream is not None:
                name = downstream[len(names.column_key(root.key, "")) :]
                mapping = ColumnMapping(upstream=upstream[1], downstream=name)
                edges.setdefault(upstream[0], []).append(mapping)
    upstream_edges = tuple(
        aspects.UpstreamEdge(urn=names.dataset_urn(key), columns=tuple(edges[key]))
        for key in sorted(edges)
    )
    return aspects.Lineage(upstream=upstream_edges) if upstream_edges else None


def _badges_in(entry: CatalogEntry) -> tuple[dict[str, str], dict[str, Any]]:
    """The badges that are not compliance labels, and the raw records without them."""
    compliance = {label.lower() for label in (entry.governance or aspects.Governance()).compliance}
    record = entry.raw.get(KIND)
    badges = record.get("badges") if isinstance(record, dict) else None
    is_native = isinstance(badges, dict) and all(
        isinstance(category, str) and name and name not in compliance
        for name, category in badges.items()
    )
    if not record or not badges or not is_native:
        return {}, entry.raw
    rest = {key: value for key, value in record.items() if key != "badges"}
    raw = {**entry.raw, KIND: rest}
    return badges, raw if rest else {key: raw[key] for key in raw if key != KIND}


def _to_integer(value: Any) -> int:
    """The value as an integer; CSV files contain numbers as text."""
    try:
        return int(float(value)) if isinstance(value, str) else int(value or 0)
    except ValueError:
        return 0
