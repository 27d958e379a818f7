"""Converts datasets to entities of Atlas with columns, classifications, terms and labels, and back.

`encode` converts what Atlas has fields for, and `decode` converts it back. Everything else is
stored as JSON in the attribute `properties`.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Final, TypeAlias
from urllib.parse import quote

import msgspec

from lumos.catalogs.atlas import types
from lumos.catalogs.interface import AspectStorage
from lumos.catalogs.packed_properties import own_properties, pack, restore, unpack
from lumos.model import dataset as aspects
from lumos.model.catalog import CatalogEntry
from lumos.model.json_codec import to_json
from lumos.model.schema import Field, Schema
from lumos.model.types import SchemaSyntaxError, Unknown, parse_type
from lumos.model.urn import InvalidUrn, Urn, name_in

NATIVE: Final = frozenset(
    {"location", "schema", "lineage", "ownership", "governance", "documentation", "properties"}
)
# The property of a dataset that Lumos deleted. Atlas drops the terms and columns of deleted
# entities, so all aspects are stored in properties.
DELETED: Final = "lumos.deleted"
# The property with a hash of what another tool wrote, as it was when Lumos last wrote.
_TOOL_HASH: Final = "lumos.seen"
_MAX_TEXT_LENGTH: Final = 30_000
_MAX_NAME_LENGTH: Final = 200
_LABEL: Final = re.compile(r"[A-Za-z0-9_-]{1,50}", re.ASCII)
_CUSTOM_KEY: Final = re.compile(r"[A-Za-z0-9_-]{1,50}", re.ASCII)
_MAX_CUSTOM_LENGTH: Final = 500
_ESCAPED: Final = re.compile(r"_x([0-9A-F]{1,6})_")
_LIKE_ESCAPED: Final = re.compile("_x[0-9A-F]")
_PREFIX: Final = "lumos_x_"
_CLASSIFICATION: Final = "CLASSIFICATION"


class _Json(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, rename="camel"):
    """A value in Atlas's JSON format."""


class Classification(_Json):
    """A classification of an entity. Those that Lumos creates for tags do not propagate."""

    type_name: str
    propagate: bool = False
    remove_propagations_on_entity_delete: bool = False
    attributes: dict[str, Any] = {}
    validity_periods: list[Any] = []


class Relationship(_Json):
    """A relationship to another entity, by its type and qualified name."""

    relationship_type: str
    type_name: str
    qualified_name: str
    attributes: dict[str, Any] = {}

    @property
    def target(self) -> tuple[str, str]:
        return self.type_name, self.qualified_name


# Relationships by the name of their end, which has either one relationship or a list of them.
Relationships: TypeAlias = dict[str, list[Relationship] | Relationship | None]


class RawPart(_Json):
    """Values of Atlas that Lumos does not model; stored under `raw["atlas"]`."""

    classifications: list[Classification] = []
    custom_attributes: dict[str, str] = {}
    business_attributes: dict[str, dict[str, Any]] = {}
    business_definitions: dict[str, list[Any]] = {}
    relationships: Relationships = {}


class AtlasEntity(msgspec.Struct, kw_only=True):
    """An entity of Atlas; fields are named as in its REST interface."""

    attributes: dict[str, Any]
    classifications: dict[str, Classification] = {}
    terms: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    custom: dict[str, str] = {}
    business: dict[str, Any] = {}
    relations: Relationships = {}
    columns: "dict[str, AtlasEntity]" = {}
    deleted: bool = False
    type_name: str = types.DATASET
    # The other fields are only set in entities that were read from Atlas. `output_of` and
    # `input_of` are GUIDs of processes; `upstream` are inputs of processes of other tools.
    guid: str = ""
    qualified_name: str = ""
    # Attributes that Lumos does not model, of an entity of another tool.
    others: dict[str, Any] = {}
    # Single-valued relationships, such as the table of a column. Atlas requires some in updates.
    single: dict[str, Any] = {}
    # Users edit `userDescription`, which overrides the description that tools write.
    tool_text: str | None = None
    has_user_text: bool = False
    output_of: tuple[str, ...] = ()
    input_of: tuple[str, ...] = ()
    upstream: tuple[str, ...] = ()
    # The names of the ends that had relationships before a write.
    former_ends: tuple[str, ...] = ()

    @property
    def is_foreign(self) -> bool:
        """Whether another tool writes the entity."""
        return self.type_name not in types.ATTRIBUTES

    def annotated(self, wanted: "AtlasEntity") -> "AtlasEntity":
        """The entity of another tool with everything that Lumos may write there."""
        attributes = dict(self.attributes)
        for each in types.METADATA_ATTRIBUTES:
            if each["name"] in wanted.attributes:
                attributes[each["name"]] = wanted.attributes[each["name"]]
        # Atlas shows the text of the tool if users entered none.
        attributes["description"] = wanted.attributes.get("description") or self.tool_text
        columns = {
            name: column.annotated(wanted.columns[name]) if name in wanted.columns else column
            for name, column in self.columns.items()
        }
        return msgspec.structs.replace(
            self, attributes=attributes, columns=columns, classifications=wanted.classifications,
            terms=wanted.terms, labels=wanted.labels, custom=wanted.custom,
            business=wanted.business, relations=wanted.relations,
        )  # fmt: skip

    def written_by_tool(self) -> str:
        """A hash of everything that Lumos does not write."""
        columns = {name: AtlasEntity(attributes={}) for name in self.columns}
        nothing = AtlasEntity(attributes={"upstream": [], "properties": {}}, columns=columns)
        bare = self.annotated(nothing)
        fields = [(name, column.attributes) for name, column in bare.columns.items()]
        return lookup_of(to_json((bare.attributes, bare.others, fields)).decode())


def lookup_of(name: str) -> str:
    """A hash of a qualified name, which Atlas can look up in its index."""
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def column_name(urn: str, column: str) -> str:
    return f"{urn}#{quote(column, safe='', errors='surrogatepass')}"


def classification_name(tag: str, categories: Mapping[str, str] = MappingProxyType({})) -> str:
    """The name of the classification for a tag.

    It consists of letters, digits, `_`, `.` and inner blanks; other characters are written as
    `_x2D_`. A name that does not start with a letter, or that another kind of type already has,
    gets the prefix `lumos_x_`.
    """
    edges = {0, len(tag) - 1}
    name = "".join(
        f"_x{ord(char):X}_" if _must_escape(tag, index, index in edges) else char
        for index, char in enumerate(tag)
    )
    is_plain = name[:1].isascii() and name[:1].isalpha() and not name.startswith(_PREFIX)
    is_free = categories.get(name, _CLASSIFICATION) == _CLASSIFICATION
    return name if is_plain and is_free else f"{_PREFIX}{name}"


def _must_escape(tag: str, index: int, is_edge: bool) -> bool:
    char = tag[index]
    if char == "_":
        return _LIKE_ESCAPED.match(tag, index) is not None
    return (is_edge and char == " ") or not (char.isascii() and (char.isalnum() or char in " ."))


def tag_of(classification: str) -> str:
    name = classification.removeprefix(_PREFIX)
    return _ESCAPED.sub(lambda code: _character(int(code[1], 16), code[0]), name)


def _character(code: int, text: str) -> str:
    return chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else text


class AtlasEntryCodec:
    """Converts entries for a server.

    `categories` are the categories of its types by name, and `business` the attributes of its
    business metadata. `targets` are the types and names of the entities, besides datasets of
    Lumos, that relationships may lead to.
    """

    def __init__(
        self,
        categories: Mapping[str, str],
        business: Mapping[str, list[dict[str, Any]]] = MappingProxyType({}),
        targets: Container[tuple[str, str]] = (),
    ) -> None:
        self._categories = categories
        self._business = business
        self._targets = targets

    def render(
        self, entry: CatalogEntry, before: AtlasEntity | None = None
    ) -> tuple[AtlasEntity, dict[str, AspectStorage]]:
        """The entity of an entry with packed properties, and how each aspect is stored.

        `before` is the entity that Atlas has. If another tool wrote it, Lumos only annotates it.
        """
        native = self.encode(entry)
        is_foreign = before is not None and before.is_foreign
        if before is not None and is_foreign:
            native = before.annotated(native)
        visible = self.decode(entry.urn, native)
        packed = pack(entry, visible, max_length=_MAX_TEXT_LENGTH)
        if before is not None and is_foreign:
            # Other tools decide whether their entities exist.
            marks = {DELETED: "true"} if entry.deleted else {}
            if packed.properties:
                marks[_TOOL_HASH] = before.written_by_tool()
            native.attributes["properties"] = {
                **native.attributes["properties"], **packed.properties, **marks,
            }  # fmt: skip
            return native, packed.storage
        if entry.deleted:
            empty = CatalogEntry(urn=entry.urn, name=visible.name, platform=entry.platform)
            packed = pack(entry, empty, max_length=_MAX_TEXT_LENGTH)
            native = AtlasEntity(attributes={**_NO_ATTRIBUTES, "name": visible.name}, deleted=True)
            native.attributes["properties"] = {DELETED: "true"}
        native.attributes["properties"] |= packed.properties
        native.attributes |= {"lookup": lookup_of(entry.urn), "placeholder": False}
        return native, packed.storage

    def entry(self, urn: str, entity: AtlasEntity) -> CatalogEntry:
        properties = entity.attributes.get("properties") or {}
        packed = unpack(properties).exact
        visible = self.decode(urn, entity)
        is_all_packed = entity.deleted and DELETED in properties
        is_tool_unchanged = (
            entity.is_foreign and properties.get(_TOOL_HASH) == entity.written_by_tool()
        )
        raw = packed.pop("raw", None)
        native_raw = {} if is_all_packed else visible.raw.get("atlas", {})
        if is_tool_unchanged and raw is not None:
            native_raw.pop("attributes", None)
        raw = raw or {}
        if is_all_packed:
            empty = CatalogEntry(urn=urn, name=visible.name, platform=Urn.parse(urn).platform)
            entry = msgspec.structs.replace(empty, **packed)
        else:

            def as_shown(value: CatalogEntry) -> CatalogEntry:
                native = self.encode(value)
                return self.decode(urn, entity.annotated(native) if is_tool_unchanged else native)

            entry = restore(visible, packed, native=NATIVE, as_shown=as_shown)
        if native_raw:
            before = raw.get("atlas") if isinstance(raw, dict) else None
            raw = {**raw, "atlas": {**(before if isinstance(before, dict) else {}), **native_raw}}
        return msgspec.structs.replace(
            entry, deleted=entity.deleted or DELETED in properties, raw=raw
        )

    def encode(self, entry: CatalogEntry) -> AtlasEntity:
        """Encode the part of an entry that Atlas has fields for."""
        raw = _raw_part(entry)
        definitions = {**raw.business_definitions, **self._business}
        business = {
            name: values
            for name, values in raw.business_attributes.items()
            if values and values.keys() <= _applicable(definitions.get(name, ()))
        }
        details = {each.type_name: each for each in raw.classifications}
        governance = entry.governance or aspects.Governance()
        location = entry.location
        owners = entry.ownership.owners if entry.ownership else ()
        edges = entry.lineage.upstream if entry.lineage else ()
        fields = entry.schema.fields if entry.schema else ()
        attributes = {
            **_NO_ATTRIBUTES,
            "name": entry.name or name_in(entry.urn), "platform": entry.platform,
            "format": entry.format,
            "description": entry.documentation.description if entry.documentation else None,
            "owner": next((owner.name for owner in owners if owner.kind == "user"), None),
            "location": location.uri if location else None,
            "partitionKeys": list(location.partition_keys) if location else [],
            "upstream": list(dict.fromkeys(edge.urn for edge in edges if is_dataset(edge.urn))),
            "properties": own_properties(entry.properties or {}),
        }  # fmt: skip
        columns = {each.name: self._column(number, each) for number, each in enumerate(fields)}
        return AtlasEntity(
            attributes=attributes,
            classifications=self._classifications(governance.tags, details),
            terms=tuple(sorted(set(filter(None, governance.terms)))),
            labels=tuple(
                sorted({each for each in governance.compliance if _LABEL.fullmatch(each)})
            ),
            custom=raw.custom_attributes,
            business=business,
            relations=raw.relationships if self._are_possible(raw.relationships) else {},
            columns=columns,
        )

    def _are_possible(self, relations: Relationships) -> bool:
        """Whether this server has the types and the targets of these relationships."""
        return not relations.keys() & types.MODELLED_ENDS and all(
            (each.type_name == types.DATASET or each.target in self._targets)
            and self._categories.get(each.relationship_type) == "RELATIONSHIP"
            for each in relationships(relations)
        )

    def _column(self, position: int, field: Field) -> AtlasEntity:
        attributes = {
            "name": field.name, "description": field.description, "position": position,
            "type": field.type.text, "nativeType": field.native_type, "default": field.default,
            "nullable": field.nullable, "key": field.key, "partition": field.partition,
        }  # fmt: skip
        return AtlasEntity(
            type_name=types.COLUMN,
            attributes=attributes,
            classifications=self._classifications(field.tags, {}),
            terms=tuple(sorted(set(filter(None, field.terms)))),
        )

    def _classifications(
        self, tags: Iterable[str], details: Mapping[str, Classification]
    ) -> dict[str, Classification]:
        names = sorted({classification_name(tag, self._categories) for tag in tags})
        return {
            name: details.get(name, Classification(type_name=name))
            for name in names
            if len(name) <= _MAX_NAME_LENGTH
        }

    def decode(self, urn: str, entity: AtlasEntity) -> CatalogEntry:
        """Decode the fields of an entity, without packed properties."""
        attributes = entity.attributes
        own = unpack(attributes.get("properties") or {}).own
        own = {name: text for name, text in own.items() if name not in (DELETED, _TOOL_HASH)}
        description, owner = attributes.get("description"), attributes.get("owner")
        uri = attributes.get("location")
        keys = tuple(attributes.get("partitionKeys") or ())
        tags = tuple(sorted(map(tag_of, entity.classifications)))
        upstream = dict.fromkeys((*(attributes.get("upstream") or ()), *entity.upstream))
        columns = sorted(
            entity.columns.items(),
            key=lambda each: (each[1].attributes.get("position") or 0, each[0]),
        )
        fields = tuple(_field(name, column) for name, column in columns)
        has_governance = tags or entity.terms or entity.labels
        return CatalogEntry(
            urn=urn,
            name=attributes.get("name") or name_in(urn),
            platform=attributes.get("platform") or Urn.parse(urn).platform,
            format=attributes.get("format"),
            location=None if uri is None else aspects.Location(uri=uri, partition_keys=keys),
            schema=Schema(fields=fields) if fields else None,
            lineage=aspects.Lineage(
                upstream=tuple(aspects.UpstreamEdge(urn=each) for each in upstream)
            )
            if upstream
            else None,
            ownership=aspects.Ownership(owners=(aspects.Owner(name=owner),))
            if owner is not None
            else None,
            governance=aspects.Governance(tags=tags, terms=entity.terms, compliance=entity.labels)
            if has_governance
            else None,
            documentation=None
            if description is None
            else aspects.Documentation(description=description),
            properties=own or None,
            raw=self._to_raw(entity),
        )

    def _to_raw(self, entity: AtlasEntity) -> dict[str, Any]:
        """The values of an entity that Lumos does not model; empty for most that Lumos wrote."""
        special = [
            each
            for name, each in sorted(entity.classifications.items())
            if each != Classification(type_name=name)
        ]
        definitions = {
            name: [_definition(each) for each in self._business.get(name, ())]
            for name in entity.business
        }
        part = RawPart(
            classifications=special,
            custom_attributes=entity.custom,
            business_attributes=entity.business,
            business_definitions=definitions,
            relationships=entity.relations,
        )
        raw = msgspec.to_builtins(part)
        if entity.others:
            raw["attributes"] = entity.others
        return {"atlas": raw} if raw else {}


_NO_ATTRIBUTES: Final[dict[str, Any]] = {
    name: [] if name in ("partitionKeys", "upstream") else None
    for name in types.ATTRIBUTES[types.DATASET]
}


def is_dataset(urn: str) -> bool:
    """Whether a text is the canonical URN of a dataset."""
    try:
        return str(Urn.parse(urn)) == urn
    except InvalidUrn:
        return False


def _field(name: str, column: AtlasEntity) -> Field:
    attributes = column.attributes
    text = attributes.get("type") or "unknown"
    try:
        type = parse_type(text)
    except SchemaSyntaxError:
        type = Unknown(text)
    return Field(
        name=name,
        type=type,
        nullable=attributes.get("nullable") is not False,
        key=attributes.get("key") is True,
        partition=attributes.get("partition") is True,
        default=attributes.get("default"),
        description=attributes.get("description"),
        native_type=attributes.get("nativeType"),
        tags=tuple(sorted(map(tag_of, column.classifications))),
        terms=column.terms,
    )


def relationships(relations: Relationships) -> Iterator[Relationship]:
    for each in relations.values():
        yield from each if isinstance(each, list) else filter(None, (each,))


def related_targets(entry: CatalogEntry) -> set[tuple[str, str]]:
    """The types and names of entities of other types that a dataset has relationships to."""
    found = {each.target for each in relationships(_raw_part(entry).relationships)}
    return {each for each in found if each[0] != types.DATASET}


def business_definitions(entry: CatalogEntry, entity: AtlasEntity) -> dict[str, Any]:
    """The definitions in an entry of the business metadata that its entity has."""
    known = _raw_part(entry).business_definitions if entity.business else {}
    return {name: known[name] for name in entity.business if name in known}


def _definition(attribute: Mapping[str, Any]) -> dict[str, Any]:
    """The definition of an attribute of business metadata, as another server accepts it."""
    keys = ("name", "typeName", "cardinality", "isOptional", "isIndexable", "options")
    return {key: attribute[key] for key in keys if key in attribute}


def _applicable(attributes: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The attributes of business metadata that a dataset of Lumos may have."""
    return frozenset(
        each["name"]
        for each in attributes
        if any(
            f'"{type}"' in (each.get("options") or {}).get("applicableEntityTypes", "")
            for type in types.DATASET_SUPERTYPES
        )
    )


def _raw_part(entry: CatalogEntry) -> RawPart:
    """The part of an entry's raw record that Atlas stores unchanged."""
    raw = entry.raw.get("atlas")
    if not isinstance(raw, dict):
        return RawPart()
    keys = msgspec.structs.fields(RawPart)
    raw = {key.encode_name: raw[key.encode_name] for key in keys if key.encode_name in raw}
    try:
        part = msgspec.convert(raw, RawPart)
    except msgspec.ValidationError:
        return RawPart()
    names = [each.type_name for each in part.classifications]
    tags = {classification_name(tag) for tag in (entry.governance or aspects.Governance()).tags}
    is_accepted = (
        msgspec.to_builtins(part) == raw
        and names == sorted(set(names))
        and tags >= set(names)
        and all(each != Classification(type_name=each.type_name) for each in part.classifications)
        and all(
            _CUSTOM_KEY.fullmatch(key) and len(text) <= _MAX_CUSTOM_LENGTH
            for key, text in part.custom_attributes.items()
        )
    )
    return part if is_accepted else RawPart()
