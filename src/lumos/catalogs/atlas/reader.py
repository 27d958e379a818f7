"""Reads datasets from Atlas."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from lumos.catalogs.atlas import types
from lumos.catalogs.atlas.entries import (
    AtlasEntity,
    AtlasEntryCodec,
    Classification,
    Relationship,
    Relationships,
    is_dataset,
    lookup_of,
    related_targets,
)
from lumos.catalogs.atlas.items import AtlasTerms
from lumos.catalogs.atlas.server import KIND, AtlasServer, is_active, relationship_attributes
from lumos.catalogs.chunks import batched
from lumos.model.catalog import CatalogEntry
from lumos.model.conversions.sql_types import type_from_sql
from lumos.model.json_codec import from_json
from lumos.model.urn import InvalidUrn, Urn

_CHUNK: Final = 100
_LINEAGE: Final = "#lineage"
# An entity, and the entities that it refers to by GUID.
_Row: TypeAlias = tuple[dict[str, Any], dict[str, Any]]


class AtlasReader:
    """Reads entities of datasets; `codec` converts them for this server."""

    def __init__(self, server: AtlasServer, terms: AtlasTerms) -> None:
        self._server = server
        self._terms = terms
        # The GUIDs of entities of other types, by type and qualified name.
        self.targets: dict[tuple[str, str], str] = {}

    @property
    def codec(self) -> AtlasEntryCodec:
        return AtlasEntryCodec(self._server.types, self._server.business_metadata, self.targets)

    def find_targets(self, entries: Iterable[CatalogEntry]) -> None:
        """Look up the entities of other types that these datasets have relationships to."""
        wanted: dict[str, list[str]] = {}
        for type, name in {target for entry in entries for target in related_targets(entry)}:
            if type in self._server.types and (type, name) not in self.targets:
                wanted.setdefault(type, []).append(name)
        for type, names in wanted.items():
            for entity, _ in self._server.named(type, names):
                self.targets[type, entity["attributes"]["qualifiedName"]] = entity["guid"]

    def entry(self, urn: str, entity: AtlasEntity) -> CatalogEntry:
        return self.codec.entry(urn, entity)

    def many(self, urns: Sequence[str]) -> dict[str, AtlasEntity]:
        """The entities of datasets by URN, including placeholders."""
        entities = {urn: versions[0] for urn, versions in self.versions(urns).items()}
        wanted: dict[str, list[str]] = {}
        for urn in urns:
            type, name = foreign_location(urn) or ("", "")
            is_missing = urn not in entities or entities[urn].attributes.get("placeholder")
            if is_missing and type in self._server.types:
                wanted.setdefault(type, []).append(name)
        for type, names in wanted.items():
            rows = self._server.named(type, names)
            entities |= {urn: versions[0] for urn, versions in self._convert(rows).items()}
        return entities

    def versions(self, urns: Sequence[str]) -> dict[str, list[AtlasEntity]]:
        """The entity that Lumos wrote for each dataset, followed by its deleted predecessors."""
        if not urns or types.DATASET not in self._server.types:
            return {}
        wanted = set(urns)
        headers = self._server.find(types.DATASET, [lookup_of(urn) for urn in sorted(wanted)])
        guids = [each["guid"] for each in headers if each["attributes"]["qualifiedName"] in wanted]
        return self._convert(self._server.entities(guids))

    def all(
        self, *, placeholders: bool = False, after: str | None = None
    ) -> Iterator[tuple[str, AtlasEntity]]:
        """All datasets sorted by URN, or all placeholders.

        Placeholders only exist because the lineage of a dataset refers to them.
        """
        guids: dict[str, list[str]] = {}
        own = self._server.all(types.DATASET) if types.DATASET in self._server.types else ()
        for header in own:
            urn = header["attributes"]["qualifiedName"]
            if bool(header["attributes"].get("placeholder")) == placeholders and is_dataset(urn):
                guids.setdefault(urn, []).append(header["guid"])
        foreign: dict[str, list[str]] = {}
        for type in () if placeholders else types.FOREIGN.keys() & self._server.types.keys():
            for header in self._server.active(type):
                if header["typeName"] == type:
                    foreign[foreign_urn(type, header["attributes"]["qualifiedName"])] = [
                        header["guid"]
                    ]
        guids = {**foreign, **guids}
        for batch in batched(sorted(urn for urn in guids if urn > (after or "")), _CHUNK):
            rows = self._server.entities([guid for urn in batch for guid in guids[urn]])
            entities = self._convert(rows)
            yield from ((urn, entities[urn][0]) for urn in batch if urn in entities)

    def with_attributes(self, **attributes: str) -> Iterator[tuple[str, AtlasEntity]]:
        """The active datasets of Lumos with these attributes."""
        headers = self._server.query(types.DATASET, **attributes)
        for batch in batched(dict.fromkeys(each["guid"] for each in headers), _CHUNK):
            for urn, (entity, *_) in self._convert(self._server.entities(batch)).items():
                if is_dataset(urn) and not entity.attributes.get("placeholder"):
                    yield urn, entity

    def downstream_of(self, entities: Iterable[AtlasEntity]) -> set[str]:
        """The URNs of datasets that are derived from these entities."""
        guids = list({guid for entity in entities for guid in entity.input_of})
        processes = self._server.entities(guids, ignoreRelationships=True, minExtInfo=True)
        return {
            process["attributes"]["qualifiedName"].removesuffix(_LINEAGE)
            for process, _ in processes
            if process["status"] == "ACTIVE"
        }

    def _convert(self, rows: Iterable[_Row]) -> dict[str, list[AtlasEntity]]:
        """The entities of datasets by URN: first the current one, then deleted predecessors."""
        rows_by_urn: dict[str, list[tuple[bool, int, AtlasEntity]]] = {}
        outputs: dict[str, list[AtlasEntity]] = {}
        row_list = list(rows)
        names = self._names(entity for entity, _ in row_list)
        for entity, referred in row_list:
            converted = self._to_entity(entity, referred)
            converted.relations = _other_relations(entity, names)
            for guid in _related(entity, "outputFromProcesses", "", own=False):
                outputs.setdefault(guid, []).append(converted)
            type, name = converted.type_name, converted.qualified_name
            urn = name if type == types.DATASET else foreign_urn(type, name)
            row = (not converted.deleted, entity.get("updateTime") or 0, converted)
            rows_by_urn.setdefault(urn, []).append(row)
        # Inputs of processes of other tools are upstream of the outputs.
        for process, _ in self._server.entities(list(outputs), minExtInfo=True):
            inputs = tuple(filter(None, map(_urn_of, process["attributes"].get("inputs") or ())))
            for converted in outputs[process["guid"]]:
                converted.upstream += inputs
        return {
            urn: [
                converted for *_, converted in sorted(rows, key=lambda row: row[:2], reverse=True)
            ]
            for urn, rows in rows_by_urn.items()
        }

    def _names(self, entities: Iterable[Mapping[str, Any]]) -> dict[str, str]:
        """By GUID, the qualified names of the targets of relationships that are not modelled."""
        guids = {each["guid"] for entity in entities for _, each, _ in _other_headers(entity)}
        options = {"ignoreRelationships": True, "minExtInfo": True}
        return {
            entity["guid"]: entity["attributes"]["qualifiedName"]
            for entity, _ in self._server.entities(sorted(guids), **options)
            if "qualifiedName" in entity["attributes"]
        }

    def _to_entity(self, entity: Mapping[str, Any], referred: Mapping[str, Any]) -> AtlasEntity:
        attributes, type = entity["attributes"], entity["typeName"]
        business = dict(entity.get("businessAttributes") or {})
        is_dataset = type == types.DATASET or type in types.FOREIGN
        process = types.PROCESS if is_dataset else types.COLUMN_PROCESS
        values = (
            {name: attributes.get(name) for name in types.ATTRIBUTES[type]}
            if type in types.ATTRIBUTES
            else _foreign_attributes(attributes, business.pop(types.METADATA, {}))
        )
        tool_text, user_text = values["description"], attributes.get("userDescription")
        if user_text:
            values["description"] = user_text
        relations = entity.get("relationshipAttributes") or {}
        return AtlasEntity(
            type_name=type,
            attributes=values,
            classifications={
                each["typeName"]: _classification(each)
                for each in sorted(
                    entity.get("classifications") or (), key=lambda each: str(each["typeName"])
                )
                if each.get("entityGuid", entity["guid"]) == entity["guid"]
            },
            terms=tuple(
                sorted(
                    self._terms.key(guid, name)
                    for guid, name in _related(entity, "meanings", types.TERM).items()
                )
            ),
            labels=tuple(sorted(entity.get("labels") or ())),
            custom=entity.get("customAttributes") or {},
            business=business,
            columns=self._columns(entity, referred),
            guid=entity["guid"],
            qualified_name=attributes["qualifiedName"],
            others={} if type not in types.FOREIGN else _other_attributes(attributes),
            single={
                name: {key: each[key] for key in ("guid", "typeName")}
                for name, each in relations.items()
                if isinstance(each, dict) and is_active(each)
            },
            tool_text=tool_text,
            has_user_text=bool(user_text),
            deleted=entity["status"] == "DELETED",
            output_of=tuple(_related(entity, "outputFromProcesses", process)),
            input_of=tuple(_related(entity, "inputToProcesses", process)),
        )

    def _columns(
        self, entity: Mapping[str, Any], referred: Mapping[str, Any]
    ) -> dict[str, AtlasEntity]:
        is_own = entity["typeName"] == types.DATASET
        columns: dict[str, AtlasEntity] = {}
        for relation in types.FOREIGN.get(entity["typeName"], ("columns",)):
            for guid in _related(entity, relation, types.COLUMN, own=is_own):
                if guid not in referred:
                    continue
                attributes = referred[guid]["attributes"]
                column = self._to_entity(referred[guid], referred)
                if not is_own:
                    is_partition = relation != "columns"
                    position = None if is_partition else attributes.get("position")
                    column.attributes |= _column_type(attributes) | {
                        "partition": is_partition,
                        "position": len(columns) if position is None else position,
                    }
                columns[column.attributes["name"]] = column
        return columns


def _foreign_attributes(
    attributes: Mapping[str, Any], metadata: Mapping[str, Any]
) -> dict[str, Any]:
    """The attributes of an entity of another tool, named as those of Lumos."""
    text = metadata.get("properties") or "{}"
    try:
        properties = from_json(text, dict[str, str])
    except msgspec.DecodeError:
        # Not JSON of Lumos: somebody edited the text.
        properties = {types.METADATA: text}
    return {
        "name": attributes.get("name"), "owner": attributes.get("owner"),
        "description": attributes.get("description") or attributes.get("comment"),
        "location": attributes.get("path") or attributes.get("location"),
        "upstream": metadata.get("upstream") or [],
        "properties": properties,
    }  # fmt: skip


def _other_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of another tool that Lumos does not model."""
    known = ("name", "qualifiedName", "owner", "description", "userDescription")
    return {
        name: value
        for name, value in sorted(attributes.items())
        if name not in known and isinstance(value, str | int | float | bool)
    }


def _other_headers(entity: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """The active relationships that Lumos does not model: end, header, and whether it is single.

    Relationships between entities of one tool, such as a table and its database, are omitted.
    """
    prefix = f"{entity['typeName'].partition('_')[0]}_"
    for end, value in (entity.get("relationshipAttributes") or {}).items():
        is_single = isinstance(value, dict)
        for each in [value] if is_single else value or ():
            is_own = end in types.MODELLED_ENDS or each["relationshipType"].startswith(prefix)
            if not is_own and is_active(each):
                yield end, each, is_single


def _other_relations(entity: Mapping[str, Any], names: Mapping[str, str]) -> Relationships:
    relations: Relationships = {}
    for end, each, is_single in _other_headers(entity):
        if (name := names.get(each["guid"])) is None:
            continue
        relation = Relationship(
            relationship_type=each["relationshipType"],
            type_name=each["typeName"],
            qualified_name=name,
            attributes=relationship_attributes(each),
        )
        if is_single:
            relations[end] = relation
        else:
            known = relations.setdefault(end, [])
            assert isinstance(known, list)
            known.append(relation)
    return {
        end: sorted(each, key=lambda one: one.target) if isinstance(each, list) else each
        for end, each in sorted(relations.items())
    }


def _column_type(attributes: Mapping[str, Any]) -> dict[str, Any]:
    native = attributes.get("type") or attributes.get("data_type") or ""
    type = type_from_sql(native, "hive")
    return {"type": type.text, "nativeType": native if native != type.text else None}


def _related(
    entity: Mapping[str, Any], relation: str, type: str, *, own: bool = True
) -> dict[str, str]:
    """The GUIDs and names of related entities of a type; with `own=False`, of types of other tools.

    Deleted relations are only followed from a deleted entity, whose relations are all deleted.
    """
    is_deleted = entity["status"] == "DELETED"
    return {
        each["guid"]: each.get("displayText") or ""
        for each in (entity.get("relationshipAttributes") or {}).get(relation) or ()
        if (each["relationshipStatus"] == "ACTIVE" or is_deleted)
        and (each["typeName"] == type if own else not each["typeName"].startswith("lumos_"))
    }


def _classification(value: Mapping[str, Any]) -> Classification:
    return Classification(
        type_name=value["typeName"],
        propagate=value.get("propagate") is not False,
        remove_propagations_on_entity_delete=bool(value.get("removePropagationsOnEntityDelete")),
        attributes={
            name: each for name, each in (value.get("attributes") or {}).items() if each is not None
        },
        validity_periods=value.get("validityPeriods") or [],
    )


def _urn_of(reference: Mapping[str, Any]) -> str | None:
    """The URN of an input of a process; for types of other tools it contains the type."""
    name = (reference.get("uniqueAttributes") or {}).get("qualifiedName")
    if not isinstance(name, str) or not name:
        return None
    type = reference["typeName"]
    return name if type == types.DATASET else foreign_urn(type, name)


def foreign_urn(type: str, name: str) -> str:
    """The URN of an entity that another tool wrote."""
    return str(Urn.of(KIND, (type, name)))


def foreign_location(urn: str) -> tuple[str, str] | None:
    """The type and qualified name of an entity that another tool wrote; None for other URNs."""
    try:
        parsed = Urn.parse(urn)
    except InvalidUrn:
        return None
    is_foreign = len(parsed.path) == 2 and parsed.path[0] in types.FOREIGN
    if not is_foreign or str(Urn.of(KIND, parsed.path)) != urn:
        return None
    return parsed.path[0], parsed.path[1]


def as_json(classifications: Iterable[Classification]) -> list[Any]:
    """Classifications as JSON; `propagate` is always sent, because Atlas's default is true."""
    return [{**msgspec.to_builtins(each), "propagate": each.propagate} for each in classifications]
