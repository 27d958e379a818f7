"""Encodes entries as states of entities, and decodes them.

Reading returns an entry; `raw` contains the values that encoding the entry would not reproduce.
Writing starts with `raw` and changes only what contradicts the entry.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from lumos.catalogs.interface import AspectStorage
from lumos.catalogs.openmetadata import columns, labels, lineage
from lumos.catalogs.openmetadata.columns import Column
from lumos.catalogs.openmetadata.kinds import CATALOG, canonical_urn
from lumos.catalogs.openmetadata.labels import OpenMetadataLabels, read_labels
from lumos.catalogs.openmetadata.lineage import Edges
from lumos.catalogs.openmetadata.names import (
    EntityLocation,
    encode_own_text,
    join_fqn,
    without_lost_characters,
    without_nul,
)
from lumos.catalogs.openmetadata.server import CustomProperties
from lumos.catalogs.openmetadata.states import (
    COLUMN_KEYS,
    COLUMNS,
    PORTABLE_FIELDS,
    PRODUCTS,
    EntityState,
    names_in,
)
from lumos.catalogs.packed_properties import Packed, pack, restore, unpack
from lumos.catalogs.three_way_merge import merge_json
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import (
    ASPECTS,
    Definition,
    Documentation,
    Governance,
    Lineage,
    Location,
    Ownership,
    Properties,
    Statistics,
)
from lumos.model.schema import Schema
from lumos.model.urn import Urn

_ENTITY_KEY: Final = "entity"
EXTENSION: Final = "extension"
DECLARED: Final = "declared"
"""The key in `raw` with the definitions of custom properties of users."""
_MODELLED_COLUMN_KEYS: Final = frozenset({"name", "description", "tags", "children"})
NATIVE: Final = frozenset(
    {"schema", "lineage", "ownership", "governance", "documentation", "definition", "location",
     "statistics"}
)  # fmt: skip
URN: Final = "lumosUrn"
PARENT: Final = "lumosParent"
HIDDEN: Final = "lumosHidden"
EDGES: Final = "lumosEdges"
LINEAGE: Final = "lumosLineage"
_DISPLAY_NAME_PROPERTY: Final = "lumosDisplayed"
_MARKER_PROPERTIES: Final = frozenset({URN, PARENT, HIDDEN, EDGES, _DISPLAY_NAME_PROPERTY})
# The fields that users can edit in OpenMetadata.
_EDITABLE: Final = frozenset(
    {"format", "schema", "ownership", "governance", "documentation", "properties"}
)
_FOREIGN_PREFIX: Final = "openmetadata."
_EDGE_DETAILS: Final = "edges"
_PACKED_PROPERTY: Final = re.compile(
    r"lumos(?P<name>[A-Z][a-z]+)(?P<part>[1-9]\d{0,5})?\Z", re.ASCII
)
_PACKED_FIELDS: Final = frozenset(("name", "platform", "format", *ASPECTS, "timestamps", "raw"))
_MAX_PROPERTY_LENGTH: Final = 200_000
_FORMATS: Final = frozenset({"csv", "tsv", "json", "parquet", "avro"})
_MAX_SAFE_INTEGER: Final = 2**53
_KEY: Final = "PRIMARY_KEY"


class RenderedState(NamedTuple):
    """The encoded state of an entry, and how each aspect is stored."""

    state: EntityState
    storage: dict[str, AspectStorage]


def is_placeholder_parent(raw: Mapping[str, Any]) -> bool:
    """Whether an entity is a placeholder that only exists because it contains others."""
    return PARENT in (raw.get("extension") or {})


class OpenMetadataEntryCodec:
    """Encodes entries as states of the entities of one server, and decodes them."""

    def __init__(self, labels: OpenMetadataLabels, properties: CustomProperties) -> None:
        self._labels = labels
        self._properties = properties

    def read(
        self, urn: str, location: EntityLocation, state: EntityState, edges: Edges, *, deleted: bool
    ) -> CatalogEntry:
        """Decode the entry of a state and its upstream edges."""
        extension = state.get("extension", {})
        exact = unpack(_packed_keys(extension)).exact
        visible = self._decode(urn, state)
        exact_name = exact.pop("name", None)
        exact_lineage = exact.pop("lineage", None)
        packed = exact.pop("raw", None)
        entry = restore(
            visible,
            exact,
            native=_EDITABLE,
            as_shown=lambda entry: self._decode(
                urn, self._encode(entry, location, existing_state=state)
            ),
        )
        if exact_name is not None and extension.get(_DISPLAY_NAME_PROPERTY, "") == state.get(
            "displayName", ""
        ):
            entry = msgspec.structs.replace(entry, name=exact_name)
        written = lineage.read_written_edges(extension.get(EDGES))
        merged = lineage.merge_lineage(exact_lineage, edges, written)
        raw = self._read_raw(entry, location, state, packed)
        raw = self._with_definitions(raw, location, extension)
        return msgspec.structs.replace(
            entry,
            lineage=merged,
            deleted=deleted,
            raw=_with_edge_details(raw, edges, written, merged),
        )

    def render(
        self,
        entry: CatalogEntry,
        location: EntityLocation,
        *,
        existing: EntityState | None,
        declared: Collection[str] = (),
    ) -> RenderedState:
        """Encode an entry as a state.

        `existing` is the current state of the entity; values that only users set are preserved.
        `declared` are the custom properties that the server has for this type of entity.
        """
        state = self._encode(entry, location, existing_state=existing)
        raw = raw_record(entry.raw)
        if raw:
            state = self._apply_raw(entry.urn, location.type, state, raw)
        before = existing or {}
        # Bots are not allowed to change the display name of an existing entity.
        name: str | None = without_nul(entry.name)
        if existing is None and name != _default_name(entry.urn):
            name = name or None
        else:
            name = before.get("displayName")
        if name is not None:
            state["displayName"] = name
        extension = self._foreign_properties(entry.properties or {}, before, declared, raw)
        if extension:
            state["extension"] = extension
        packed = self._pack(entry, location, state)
        for key, text in packed.properties.items():
            # `lumos.schema.2` becomes lumosSchema2.
            _, field, *part = key.split(".")
            extension["".join(("lumos", field.capitalize(), *part))] = encode_own_text(text)
        if "lumos.name" in packed.properties and "displayName" in state:
            extension[_DISPLAY_NAME_PROPERTY] = state["displayName"]
        # These properties are written after the entity itself.
        written_later = (EDGES, HIDDEN) if entry.deleted else (EDGES,)
        old_extension = before.get("extension", {})
        extension |= {key: old_extension[key] for key in written_later if key in old_extension}
        if location.is_shortened:
            extension[URN] = entry.urn
        if extension:
            state["extension"] = extension
        return RenderedState(state, packed.storage)

    def _pack(self, entry: CatalogEntry, location: EntityLocation, state: EntityState) -> Packed:
        """Pack the fields of an entry that a state does not contain."""
        visible = self._decode(entry.urn, state)
        raw = unmodelled(state, self._encode(visible, location))
        # The query of a view is always packed, since any patch by others removes it.
        visible = msgspec.structs.replace(
            visible, raw={CATALOG: raw} if raw else {}, definition=None
        )
        packed = pack(entry, visible, max_length=_MAX_PROPERTY_LENGTH)
        storage = dict(packed.storage)
        if entry.lineage is not None:
            storage["lineage"] = "partly"
        if "schemaDefinition" in state and entry.definition is not None:
            storage["definition"] = "partly"
        return Packed(packed.properties, storage)

    def _encode(
        self,
        entry: CatalogEntry,
        location: EntityLocation,
        *,
        existing_state: EntityState | None = None,
    ) -> EntityState:
        """Encode the fields that OpenMetadata has; owners in `existing_state` take precedence."""
        state: EntityState = {}
        documentation, governance = entry.documentation, entry.governance
        if documentation is not None and (
            text := without_lost_characters(documentation.description or "")
        ):
            state["description"] = text
        if documentation is not None and documentation.domain:
            state["domains"] = [self._labels.domain(documentation.domain)]
        if governance is not None and (
            tags := self._make_labels(governance.tags, governance.terms)
        ):
            state["tags"] = tags
        if entry.ownership is not None and entry.ownership.owners:
            state["owners"] = self._owners(
                entry.ownership, (existing_state or {}).get("owners", ())
            )
        if entry.schema is not None and entry.schema.fields and location.type != "topic":
            state[COLUMNS] = columns.encode_columns(entry.schema, self._make_labels)
        match location.type:
            case "table":
                if entry.definition is not None and entry.definition.sql:
                    sql = without_nul(entry.definition.sql)
                    state |= {"schemaDefinition": sql, "tableType": "View"}
                if entry.format in _FORMATS:
                    state["fileFormat"] = entry.format
                if entry.schema is not None and (keys := columns.key_columns(entry.schema)):
                    state["tableConstraints"] = [{"constraintType": _KEY, "columns": keys}]
            case "container":
                if entry.format in _FORMATS:
                    state["fileFormats"] = [entry.format]
                if entry.location is not None and entry.location.uri:
                    state["fullPath"] = without_nul(entry.location.uri)
                measured = entry.statistics or Statistics()
                sizes = {
                    "size": measured.total_size_bytes,
                    "numberOfObjects": measured.file_count,
                }
                state |= {k: size for k, size in sizes.items() if 0 < size <= _MAX_SAFE_INTEGER}
            case _:
                # Topics require a number of partitions.
                state["partitions"] = 1
        return state

    def _apply_raw(
        self, urn: str, entity_type: str, state: EntityState, raw: Mapping[str, Any]
    ) -> EntityState:
        """Override values of a state with those in `raw` that do not contradict the entry."""
        before = self._decode(urn, state)
        for key, value in raw.get(_ENTITY_KEY, {}).items():
            if key == PRODUCTS and isinstance(value, list):
                existing = [
                    product
                    for fqn in value
                    if isinstance(fqn, str) and (product := self._labels.product(fqn))
                ]
                state = _replace_key(state, PRODUCTS, existing or None)
            if key not in PORTABLE_FIELDS[entity_type]:
                continue
            changed = _replace_key(state, key, value)
            if self._decode(urn, changed) == before:
                state = changed
        raw_columns = raw.get(COLUMNS)
        if not raw_columns or COLUMNS not in state:
            return state
        new_columns = []
        for column in state[COLUMNS]:
            changed = _override_column(column, raw_columns, ())
            is_same = changed == column or (
                columns.decode_columns([changed]) == columns.decode_columns([column])
            )
            new_columns.append(changed if is_same else column)
        return {**state, COLUMNS: new_columns}

    def _make_labels(self, tags: Iterable[str], terms: Iterable[str]) -> list[dict[str, Any]]:
        labels_of_both = [
            *self._labels.tags(dict.fromkeys(tags)),
            *(self._labels.term(name) for name in dict.fromkeys(terms)),
        ]
        # If a tag and a term have the same qualified name, the server only keeps the tag.
        distinct = {label["tagFQN"]: label for label in reversed(labels_of_both)}
        return sorted(distinct.values(), key=lambda label: (label["source"], label["tagFQN"]))

    def _owners(
        self, ownership: Ownership, existing: Iterable[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        teams = {each["name"] for each in existing if each["type"] == "team"}
        references = map(self._labels.owner, labels.storable_owners(ownership.owners, teams))
        return list({(each["type"], each["name"]): each for each in references}.values())

    @staticmethod
    def _foreign_properties(
        properties: Properties,
        before: EntityState,
        declared: Collection[str],
        raw: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Custom properties of users: those in the entry, and those whose values are not text."""
        not_text = {
            key: value
            for key, value in before.get("extension", {}).items()
            if not isinstance(value, str)
        }
        texts_to_set = {
            key.removeprefix(_FOREIGN_PREFIX): text
            for key, text in properties.items()
            if key.startswith(_FOREIGN_PREFIX) and text and without_nul(text) == text
        }
        # Existing properties are declared, even if they were declared after `declared` was read.
        known = {
            key for key in (*declared, *before.get("extension", {})) if not is_lumos_property(key)
        }
        others = raw.get(EXTENSION, {})
        return not_text | {
            key: value for key, value in {**others, **texts_to_set}.items() if key in known
        }

    def _with_definitions(
        self, raw: dict[str, Any], location: EntityLocation, extension: Mapping[str, Any]
    ) -> dict[str, Any]:
        record = raw.get(CATALOG, {})
        own = [key for key in extension if not is_lumos_property(key)]
        if not own or not isinstance(record, dict) or DECLARED in record:
            return raw
        declared = self._properties.definitions(location.type, own)
        return {**raw, CATALOG: {**record, DECLARED: declared}} if declared else raw

    def _decode(self, urn: str, state: EntityState) -> CatalogEntry:
        parsed = Urn.parse(urn)
        own = {
            f"{_FOREIGN_PREFIX}{key}": value
            for key, value in state.get("extension", {}).items()
            if isinstance(value, str) and not is_lumos_property(key)
        }
        names = read_labels(state.get("tags", ()))
        formats = state.get("fileFormats") or [state.get("fileFormat")]
        schema: Schema | None = None
        if COLUMNS in state:
            keys = [
                name
                for constraint in state.get("tableConstraints", ())
                if constraint.get("constraintType") == _KEY
                for name in constraint.get("columns") or ()
            ]
            schema = columns.decode_columns(state[COLUMNS], keys)
        owners = sorted(
            map(labels.owner_of, state.get("owners", ())),
            key=lambda owner: (owner.kind, owner.name),
        )
        domains = state.get("domains", ())
        return CatalogEntry(
            urn=urn,
            name=state.get("displayName") or _default_name(urn),
            platform=parsed.platform,
            format=formats[0] if len(formats) == 1 else None,
            schema=schema,
            ownership=Ownership(owners=tuple(owners)) if owners else None,
            governance=Governance(tags=names.tags, terms=names.terms) if any(names) else None,
            documentation=Documentation(
                description=state.get("description"),
                domain=labels.domain_of(domains[0]) if domains else None,
            )
            if "description" in state or domains
            else None,
            properties=own or None,
            definition=Definition(sql=state["schemaDefinition"], dialect=parsed.platform)
            if "schemaDefinition" in state
            else None,
            location=Location(uri=state["fullPath"]) if "fullPath" in state else None,
            statistics=Statistics(
                file_count=int(state.get("numberOfObjects", 0)),
                total_size_bytes=int(state.get("size", 0)),
            )
            if "size" in state or "numberOfObjects" in state
            else None,
        )

    def _read_raw(
        self, entry: CatalogEntry, location: EntityLocation, state: EntityState, packed: Any
    ) -> dict[str, Any]:
        current = unmodelled(state, self._encode(self._decode(entry.urn, state), location))
        if packed is None:
            return {CATALOG: current} if current else {}
        record = packed.get(CATALOG, {})
        with_raw = msgspec.structs.replace(entry, raw=packed)
        modelled = self.render(with_raw, location, existing=state).state
        before_edits = unmodelled(
            modelled, self._encode(self._decode(entry.urn, modelled), location)
        )
        if before_edits == current:
            return dict(packed)
        others = {key: value for key, value in packed.items() if key != CATALOG}
        # The merge of the whole entry reports conflicts.
        merged = merge_json(before_edits, current, record)
        return {**others, CATALOG: merged} if merged else others


def definitions_in(entry: CatalogEntry) -> dict[str, Any]:
    """The definitions of custom properties on the server that a dataset comes from."""
    record = entry.raw.get(CATALOG)
    declared = record.get(DECLARED) if isinstance(record, dict) else None
    if not isinstance(declared, dict):
        return {}
    return {
        name: definition
        for name, definition in declared.items()
        if isinstance(definition, dict) and isinstance(definition.get("type"), str)
    }


def edge_details_in(entry: CatalogEntry) -> dict[str, Any]:
    """The details of upstream edges in `raw`, by upstream URN."""
    record = entry.raw.get(CATALOG)
    details: Any = record.get(_EDGE_DETAILS) if isinstance(record, dict) else None
    return dict(details) if lineage.is_details_by_urn(details) else {}


def with_canonical_edges(entry: CatalogEntry) -> CatalogEntry:
    """Rename entities in edges to the URNs of snapshot format 1.1."""
    details = edge_details_in(entry)
    renamed = {canonical_urn(name): each for name, each in details.items()}
    if renamed.keys() == details.keys():
        return entry
    record = {**entry.raw[CATALOG], _EDGE_DETAILS: renamed}
    return msgspec.structs.replace(entry, raw={**entry.raw, CATALOG: record})


def _with_edge_details(
    raw: dict[str, Any], edges: Edges, written: lineage.WrittenEdges, merged: Lineage | None
) -> dict[str, Any]:
    record = raw.get(CATALOG)
    before = record.get(_EDGE_DETAILS) if isinstance(record, dict) else None
    if before is not None and not lineage.is_details_by_urn(before):
        return raw
    upstream = {edge.urn for edge in merged.upstream} if merged is not None else set()
    details = lineage.unmodelled_details(before or {}, edges, written, upstream)
    if details == (before or {}):
        return raw
    others = {key: value for key, value in (record or {}).items() if key != _EDGE_DETAILS}
    record = {**others, _EDGE_DETAILS: details} if details else others
    rest = {key: value for key, value in raw.items() if key != CATALOG}
    return {**rest, CATALOG: record} if record else rest


def _default_name(urn: str) -> str:
    return Urn.parse(urn).name


def is_lumos_property(key: str) -> bool:
    """Whether Lumos writes a custom property."""
    match = _PACKED_PROPERTY.match(key)
    return key in _MARKER_PROPERTIES or (
        match is not None and match["name"].lower() in _PACKED_FIELDS
    )


def _packed_keys(extension: Mapping[str, Any]) -> dict[str, str]:
    """The packed properties with keys as in other catalogs: `lumos.schema.2` for lumosSchema2."""
    packed = {}
    for key, text in extension.items():
        if is_lumos_property(key) and key not in _MARKER_PROPERTIES:
            match = _PACKED_PROPERTY.match(key)
            assert match is not None, f"{key} is not packed"
            parts = ("lumos", match["name"].lower(), match["part"])
            packed[".".join(filter(None, parts))] = text
    return packed


# Values that encoding an entry would not reproduce


def unmodelled(state: EntityState, modelled: EntityState) -> dict[str, Any]:
    """The values of a state that differ from the state encoded from an entry; None if missing."""
    fields = {field for each in PORTABLE_FIELDS.values() for field in each}
    entity = {
        key: state.get(key)
        for key in sorted(fields & (state.keys() | modelled.keys()))
        if state.get(key) != modelled.get(key)
    }
    if products := sorted(names_in(state, PRODUCTS)):
        entity[PRODUCTS] = products
    raw_columns = dict(_unmodelled_columns(state.get(COLUMNS, []), modelled.get(COLUMNS, []), ()))
    extension = {
        key: value
        for key, value in state.get(EXTENSION, {}).items()
        if not isinstance(value, str) and not key.startswith("lumos")
    }
    parts = {_ENTITY_KEY: entity, COLUMNS: raw_columns, EXTENSION: extension}
    return {key: value for key, value in parts.items() if value}


def raw_record(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The valid parts of the record of OpenMetadata in `raw`."""
    record = raw.get(CATALOG)
    if not isinstance(record, dict):
        return {}
    parts = {key: record.get(key) for key in (_ENTITY_KEY, COLUMNS, EXTENSION)}
    return {key: value for key, value in parts.items() if isinstance(value, dict) and value}


def _override_column(column: Column, raw: Mapping[str, Any], parent: tuple[str, ...]) -> Column:
    path = (*parent, column["name"])
    own = raw.get(join_fqn(*path))
    for key, value in own.items() if isinstance(own, dict) else ():
        if key in COLUMN_KEYS and key not in _MODELLED_COLUMN_KEYS:
            column = _replace_key(column, key, value)
    if "children" in column:
        children = [_override_column(child, raw, path) for child in column["children"]]
        column = {**column, "children": children}
    return column


def _replace_key(target: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    rest = {each: each_value for each, each_value in target.items() if each != key}
    return rest if value is None else {**rest, key: value}


def _unmodelled_columns(
    existing: list[Column], modelled: list[Column], parent: tuple[str, ...]
) -> Iterator[tuple[str, dict[str, Any]]]:
    by_name = {column["name"]: column for column in modelled}
    for column in existing:
        path = (*parent, column["name"])
        other = by_name.get(column["name"], {})
        differences = {
            key: column.get(key)
            for key in COLUMN_KEYS
            if key not in _MODELLED_COLUMN_KEYS and column.get(key) != other.get(key)
        }
        if differences:
            yield join_fqn(*path), differences
        yield from _unmodelled_columns(column.get("children", []), other.get("children", []), path)
