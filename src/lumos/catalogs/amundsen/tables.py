"""Datasets as tables: the fragment of the graph for an entry, and back."""

from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec

from lumos.catalogs.amundsen import graph, names
from lumos.catalogs.amundsen.carried import carried, carry
from lumos.catalogs.amundsen.graph import BADGE, COLUMN, KIND, TABLE, TAG, USER, Fragment, Node
from lumos.catalogs.interface import AspectStorage
from lumos.catalogs.packed_properties import restore
from lumos.model import dataset as aspects
from lumos.model.catalog import CatalogEntry
from lumos.model.lineage import ColumnMapping
from lumos.model.schema import Field, Schema
from lumos.model.types import SchemaSyntaxError, Unknown, parse_type
from lumos.model.urn import Urn

NATIVE: Final = frozenset(
    {"schema", "statistics", "lineage", "ownership", "governance", "documentation", "properties",
     "usage"}
)  # fmt: skip
_DELETED: Final = "lumos_deleted"
# On the relation to a badge that stands for a compliance label.
_COMPLIANCE: Final = "lumos_compliance"
_VIEW: Final = "view"
# Databuilder's badge of partition columns, and one for keys in its style.
_PARTITION_BADGE: Final = "partition column"
_KEY_BADGE: Final = "primary key"
_WATERMARKS: Final = {"low_watermark": "minimum", "high_watermark": "maximum"}
_UPDATED: Final = "last_updated_timestamp"


class RenderedTable(NamedTuple):
    """An entry as a part of the graph, and how each of its aspects is held."""

    fragment: Fragment
    held: dict[str, AspectStorage]


def render(entry: CatalogEntry) -> RenderedTable:
    """The fragment that an entry is written as."""
    fragment = _native(entry)
    root = Node(TABLE, names.required_table_key(entry.urn))
    shown = _shown(entry.urn, fragment)
    _, raw = _badges_in(entry)
    exact = msgspec.structs.replace(entry, raw=raw)
    properties, packed = carry(exact, msgspec.structs.replace(shown, raw={}))
    fragment.nodes[root].update(properties)
    return RenderedTable(fragment, packed.held)


def entry_in(key: str, fragment: Fragment) -> CatalogEntry:
    """The entry that a fragment holds."""
    properties = fragment.nodes[Node(TABLE, key)]
    shown = _shown(names.dataset_urn(key), fragment)
    raw = shown.raw
    exact = carried(properties)
    for catalog, record in exact.pop("raw", {}).items():
        both = catalog in raw and isinstance(record, dict)
        raw[catalog] = {**record, **raw[catalog]} if both else record
    entry = restore(shown, exact, native=NATIVE, as_shown=_as_shown)
    deleted = properties.get(_DELETED) is True
    return msgspec.structs.replace(entry, raw=raw, deleted=deleted)


def _as_shown(entry: CatalogEntry) -> CatalogEntry:
    return _shown(entry.urn, _native(entry))


def _native(entry: CatalogEntry) -> Fragment:
    """The part of an entry that Amundsen has nodes, relations and properties for."""
    key = names.required_table_key(entry.urn)
    root, name = Node(TABLE, key), names.table_name(key)
    is_view = entry.definition is not None or entry.format == _VIEW
    part = Fragment.of(root, {"name": name.table, "is_view": is_view})
    if entry.deleted:
        # Amundsen shows and indexes only what belongs to a schema.
        part.nodes[root][_DELETED] = True
    else:
        schema, cluster = Node("Schema", name.schema_key), Node("Cluster", name.cluster_key)
        database = Node("Database", name.database_key)
        parents = ((schema, name.schema), (cluster, name.cluster), (database, name.database))
        part.references.update((node, {"name": text}) for node, text in parents)
        part.refer(root, "TABLE_OF", schema)
        above = ((schema, "SCHEMA_OF", cluster), (cluster, "CLUSTER_OF", database))
        part = part._replace(chain=tuple(graph.relation(*each) for each in above))
    part.describe(root, entry.documentation.description if entry.documentation else None)
    for source, text in (entry.properties or {}).items():
        if source:
            end = Node("Programmatic_Description", f"{key}/_{source}_description")
            shown = {"description_source": source, "description": text}
            part.add_part(root, "DESCRIPTION", end, shown)
    governance = entry.governance or aspects.Governance()
    for tag in governance.tags:
        part.refer(root, "TAGGED_BY", Node(TAG, tag))
    for owner in entry.ownership.owners if entry.ownership else ():
        part.refer(root, "OWNER", Node(USER, owner.name))
    for reader in entry.usage.readers if entry.usage else ():
        part.refer(root, "READ_BY", Node(USER, reader.name), {"read_count": reader.reads})
    for badge, category in _badges_in(entry)[0].items():
        _badge(part, root, badge, category)
    for label in governance.compliance:
        _badge(part, root, label.lower(), "compliance", {_COMPLIANCE: True})
    _add_statistics(part, root, entry)
    fields = entry.schema.fields if entry.schema else ()
    for number, field in enumerate(fields):
        _add_column(part, root, field, number)
    columns = {field.name for field in fields}
    for edge in entry.lineage.upstream if entry.lineage else ():
        if (upstream := names.table_key(edge.urn)) is not None:
            part.refer(root, "HAS_UPSTREAM", Node(TABLE, upstream))
            for mapping in edge.columns:
                if mapping.downstream in columns:
                    start = Node(COLUMN, names.column_key(key, mapping.downstream))
                    end = Node(COLUMN, names.column_key(upstream, mapping.upstream))
                    part.refer(start, "HAS_UPSTREAM", end)
    return part


def _badge(
    part: Fragment,
    start: Node,
    name: str,
    category: str,
    properties: graph.Properties | None = None,
) -> None:
    if name:
        part.references.setdefault(Node(BADGE, name), {"category": category})
        part.refer(start, "HAS_BADGE", Node(BADGE, name), properties)


def _add_column(part: Fragment, root: Node, field: Field, number: int) -> None:
    column = Node(COLUMN, names.column_key(root.key, field.name))
    shown = {"name": field.name, "col_type": field.type.text, "sort_order": number}
    part.add_part(root, "COLUMN", column, shown)
    part.describe(column, field.description)
    # Columns of Amundsen have badges only, in lower case.
    marks = ((_KEY_BADGE, field.key), (_PARTITION_BADGE, field.partition))
    for badge in (*(mark for mark, is_set in marks if is_set), *field.tags):
        _badge(part, column, badge.lower(), "column")


def _add_statistics(part: Fragment, root: Node, entry: CatalogEntry) -> None:
    """The time of the last change, and the range of the first partition key as watermarks."""
    if entry.statistics is None:
        return
    modified = entry.statistics.last_modified
    if modified is not None:
        end, seconds = Node("Timestamp", f"{root.key}/timestamp"), int(modified.timestamp())
        shown: graph.Properties = {_UPDATED: seconds, "timestamp": seconds, "name": _UPDATED}
        part.add_part(root, "LAST_UPDATED_AT", end, shown)
    # Without a location, the statistics are watermarks that were read.
    keys = entry.location.partition_keys if entry.location else tuple(entry.statistics.columns)
    for column in keys[:1]:
        values = entry.statistics.columns.get(column, aspects.ColumnStatistics())
        for kind, attribute in _WATERMARKS.items():
            if (value := getattr(values, attribute)) is not None:
                shown = {"partition_key": column, "partition_value": value}
                part.add_part(root, "WATERMARK", Node("Watermark", f"{root.key}/{kind}/"), shown)


def _shown(urn: str, part: Fragment) -> CatalogEntry:
    """What nodes and relations say, without what is carried."""
    root = Node(TABLE, names.required_table_key(urn))
    properties, ends = part.nodes[root], part.ends()
    programmatic = {
        str(source): str(part.nodes[node].get("description", ""))
        for node in ends(root, "DESCRIPTION")
        if (source := part.nodes[node].get("description_source")) and node.label != "Description"
    }
    badges = ends(root, "HAS_BADGE")
    compliance = tuple(each.key for each in badges if badges[each].get(_COMPLIANCE))
    others = {
        each.key: part.references.get(each, {}).get("category", "")
        for each in badges
        if not badges[each].get(_COMPLIANCE)
    }
    tags = tuple(each.key for each in ends(root, "TAGGED_BY"))
    owners = tuple(aspects.Owner(name=each.key) for each in ends(root, "OWNER"))
    readers = tuple(
        aspects.Reader(name=each.key, reads=_count(found.get("read_count")))
        for each, found in ends(root, "READ_BY").items()
    )
    text = part.description(ends, root)
    return CatalogEntry(
        urn=urn,
        name=names.shown_name(str(properties["name"])),
        platform=Urn.parse(urn).platform,
        format=_VIEW if properties.get("is_view") in (True, "True", "true") else None,
        schema=_schema(part, root, ends),
        statistics=_statistics(part, root, ends),
        lineage=_lineage(part, root, ends),
        ownership=aspects.Ownership(owners=owners) if owners else None,
        governance=aspects.Governance(tags=tags, compliance=compliance)
        if tags or compliance
        else None,
        documentation=None if text is None else aspects.Documentation(description=text),
        properties=programmatic or None,
        usage=aspects.Usage(readers=readers) if readers else None,
        raw={KIND: {"badges": others}} if others else {},
    )


def _schema(part: Fragment, root: Node, ends: graph.Ends) -> Schema | None:
    columns = [(node, part.nodes[node]) for node in ends(root, "COLUMN") if node in part.nodes]
    columns.sort(key=lambda each: _count(each[1].get("sort_order")))
    fields = tuple(_field(part, node, each, ends) for node, each in columns)
    return Schema(fields=fields) if fields else None


def _field(part: Fragment, column: Node, properties: graph.Properties, ends: graph.Ends) -> Field:
    badges = {each.key for each in ends(column, "HAS_BADGE")}
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
        description=part.description(ends, column),
        tags=tuple(sorted(badges - {_KEY_BADGE, _PARTITION_BADGE})),
    )


def _statistics(part: Fragment, root: Node, ends: graph.Ends) -> aspects.Statistics | None:
    times = [part.nodes.get(each, {}) for each in ends(root, "LAST_UPDATED_AT")]
    seconds = _count(times[0].get(_UPDATED)) if times else None
    columns: dict[str, dict[str, Any]] = {}
    for node in ends(root, "WATERMARK"):
        kind, values = node.key.rstrip("/").rpartition("/")[2], part.nodes.get(node, {})
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


def _lineage(part: Fragment, root: Node, ends: graph.Ends) -> aspects.Lineage | None:
    edges: dict[str, list[ColumnMapping]] = {end.key: [] for end in ends(root, "HAS_UPSTREAM")}
    for each in sorted(part.relations):
        if each.type == "HAS_UPSTREAM" and each.start in part.nodes and each.start != root:
            upstream, downstream = names.split_column_key(each.end.key), each.start.key
            if upstream is not None:
                name = downstream[len(names.column_key(root.key, "")) :]
                mapping = ColumnMapping(upstream=upstream[1], downstream=name)
                edges.setdefault(upstream[0], []).append(mapping)
    found = tuple(
        aspects.UpstreamEdge(urn=names.dataset_urn(key), columns=tuple(edges[key]))
        for key in sorted(edges)
    )
    return aspects.Lineage(upstream=found) if found else None


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


def _count(value: Any) -> int:
    """A number that a CSV file may hold as text."""
    try:
        return int(float(value)) if isinstance(value, str) else int(value or 0)
    except ValueError:
        return 0
