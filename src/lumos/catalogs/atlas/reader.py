"""Reads datasets from Atlas."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from lumos.catalogs.atlas import types
from lumos.catalogs.atlas.entries import (
    AtlasEntity,
    AtlasEntries,
    Classification,
    is_dataset,
    lookup_of,
)
from lumos.catalogs.atlas.items import AtlasTerms
from lumos.catalogs.atlas.server import KIND, AtlasServer
from lumos.catalogs.chunks import batched
from lumos.model.catalog import CatalogEntry
from lumos.model.conversions.sql_types import type_from_sql
from lumos.model.urn import InvalidUrn, Urn

_CHUNK: Final = 100
_LINEAGE: Final = "#lineage"


class AtlasReader:
    """Reads entities of the type `lumos_dataset`; `entries` converts them for this server."""

    def __init__(self, server: AtlasServer, terms: AtlasTerms) -> None:
        self._server = server
        self._terms = terms

    @property
    def entries(self) -> AtlasEntries:
        return AtlasEntries(self._server.types, self._server.business_metadata)

    def entry(self, urn: str, entity: AtlasEntity) -> CatalogEntry:
        return self.entries.entry(urn, entity)

    def many(self, urns: Sequence[str]) -> dict[str, AtlasEntity]:
        """The entities of datasets by URN, including placeholders."""
        versions = self.versions(urns)
        return {urn: versions[urn][0] for urn in urns if urn in versions}

    def versions(self, urns: Sequence[str]) -> dict[str, list[AtlasEntity]]:
        """The current entity of each dataset, followed by its deleted predecessors."""
        if not urns or types.DATASET not in self._server.types:
            return {}
        wanted = set(urns)
        headers = self._server.find(types.DATASET, [lookup_of(urn) for urn in sorted(wanted)])
        guids = [each["guid"] for each in headers if each["attributes"]["qualifiedName"] in wanted]
        return self._versions(guids)

    def all(
        self, *, placeholders: bool = False, after: str | None = None
    ) -> Iterator[tuple[str, AtlasEntity]]:
        """All datasets sorted by URN, or all placeholders.

        Placeholders only exist because the lineage of a dataset refers to them.
        """
        guids: dict[str, list[str]] = {}
        known: set[str] = set()
        for header in (
            self._server.all(types.DATASET) if types.DATASET in self._server.types else ()
        ):
            urn = header["attributes"]["qualifiedName"]
            is_placeholder = bool(header["attributes"].get("placeholder"))
            if not is_placeholder:
                known.add(urn)
            if is_placeholder == placeholders and urn > (after or "") and is_dataset(urn):
                guids.setdefault(urn, []).append(header["guid"])
        hadoop: set[str] = set()
        for type in () if placeholders else types.HADOOP.keys() & self._server.types.keys():
            for header in self._server.active(type):
                urn = hadoop_urn(type, header["attributes"]["qualifiedName"])
                if header["typeName"] == type and urn not in known and urn > (after or ""):
                    guids[urn] = [header["guid"]]
                    hadoop.add(urn)
        for some in batched(sorted(guids), _CHUNK):
            own = [guid for urn in some if urn not in hadoop for guid in guids[urn]]
            others = [guid for urn in some if urn in hadoop for guid in guids[urn]]
            entities = {
                **{urn: rows[0] for urn, rows in self._versions(own).items()},
                **self._convert_hadoop(self._server.entities(others)),
            }
            yield from ((urn, entities[urn]) for urn in some if urn in entities)

    def with_attributes(self, **attributes: str) -> Iterator[tuple[str, AtlasEntity]]:
        """The active datasets of Lumos with these attributes."""
        headers = self._server.query(types.DATASET, **attributes)
        for some in batched(dict.fromkeys(each["guid"] for each in headers), _CHUNK):
            for urn, (entity, *_) in self._versions(some).items():
                if is_dataset(urn) and not entity.attributes.get("placeholder"):
                    yield urn, entity

    def hadoop(self, urns: Iterable[str]) -> dict[str, AtlasEntity]:
        """The entities that other tools wrote, by the URNs of the datasets that they represent."""
        locations = (hadoop_location(urn) for urn in urns)
        found = (
            self._server.named(*location)
            for location in locations
            if location is not None and location[0] in self._server.types
        )
        return self._convert_hadoop(filter(None, found))

    def _convert_hadoop(
        self, entities: Iterable[tuple[dict[str, Any], dict[str, Any]]]
    ) -> dict[str, AtlasEntity]:
        """Entities of other tools by URN; each is given with the entities that it refers to."""
        foreign: dict[str, list[AtlasEntity]] = {}
        found = {
            hadoop_urn(entity["typeName"], entity["attributes"]["qualifiedName"]): self._add_hadoop(
                entity, referred, foreign
            )
            for entity, referred in entities
        }
        self._add_inputs(foreign)
        return found

    def _add_hadoop(
        self,
        entity: Mapping[str, Any],
        referred: Mapping[str, Any],
        foreign: dict[str, list[AtlasEntity]],
    ) -> AtlasEntity:
        converted = self._to_entity(entity, referred, ("name", "description", "owner"))
        attributes = entity["attributes"]
        text = attributes.get("userDescription") or attributes.get("description")
        converted.attributes["description"] = text or attributes.get("comment")
        converted.attributes["location"] = attributes.get("path") or attributes.get("location")
        known = ("name", "qualifiedName", "owner", "description", "userDescription")
        converted.others = {
            name: value
            for name, value in sorted(attributes.items())
            if name not in known and isinstance(value, str | int | float | bool)
        }
        position = 0
        for relation in types.HADOOP[entity["typeName"]]:
            for guid in _related(entity, relation, "", own=False):
                if (row := referred.get(guid)) is None:
                    continue
                column = self._to_entity(row, referred, ("name", "description", "position"))
                native = row["attributes"].get("type") or row["attributes"].get("data_type") or ""
                if column.attributes["description"] is None:
                    column.attributes["description"] = row["attributes"].get("comment")
                if column.attributes["position"] is None or relation != "columns":
                    column.attributes["position"] = position
                type = type_from_sql(native, "hive")
                column.attributes |= {
                    "type": type.text, "nativeType": native if native != type.text else None,
                    "partition": relation != "columns",
                }  # fmt: skip
                converted.columns[column.attributes["name"]] = column
                position += 1
        for guid in _related(entity, "outputFromProcesses", "", own=False):
            foreign.setdefault(guid, []).append(converted)
        return converted

    def _add_inputs(self, foreign: Mapping[str, Sequence[AtlasEntity]]) -> None:
        """Add the inputs of processes of other tools to the upstream lineage of their outputs."""
        for process, _ in self._server.entities(list(foreign), minExtInfo=True):
            inputs = tuple(filter(None, map(_urn_of, process["attributes"].get("inputs") or ())))
            for converted in foreign[process["guid"]]:
                converted.upstream += inputs

    def downstream_of(self, entities: Iterable[AtlasEntity]) -> set[str]:
        """The URNs of datasets that are derived from these entities."""
        guids = list({guid for entity in entities for guid in entity.input_of})
        processes = self._server.entities(guids, ignoreRelationships=True, minExtInfo=True)
        return {
            process["attributes"]["qualifiedName"].removesuffix(_LINEAGE)
            for process, _ in processes
            if process["status"] == "ACTIVE"
        }

    def _versions(self, guids: Sequence[str]) -> dict[str, list[AtlasEntity]]:
        found: dict[str, list[tuple[bool, int, AtlasEntity]]] = {}
        foreign: dict[str, list[AtlasEntity]] = {}
        for entity, referred in self._server.entities(guids):
            converted = self._to_entity(entity, referred, types.DATASET_ATTRIBUTES)
            for guid in _related(entity, "outputFromProcesses", "", own=False):
                foreign.setdefault(guid, []).append(converted)
            row = (not converted.deleted, entity.get("updateTime") or 0, converted)
            found.setdefault(entity["attributes"]["qualifiedName"], []).append(row)
        self._add_inputs(foreign)
        return {
            urn: [
                converted for *_, converted in sorted(rows, key=lambda row: row[:2], reverse=True)
            ]
            for urn, rows in found.items()
        }

    def _to_entity(
        self, entity: Mapping[str, Any], referred: Mapping[str, Any], names: Iterable[str]
    ) -> AtlasEntity:
        attributes = entity["attributes"]
        user_text = attributes.get("userDescription")
        values = {name: attributes.get(name) for name in names}
        if user_text:
            # `userDescription`, which users edit, overrides `description`.
            values["description"] = user_text
        columns = (referred.get(guid) for guid in _related(entity, "columns", types.COLUMN))
        is_dataset = entity["typeName"] == types.DATASET
        process = types.PROCESS if is_dataset else types.COLUMN_PROCESS
        return AtlasEntity(
            type_name=entity["typeName"],
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
            business=entity.get("businessAttributes") or {},
            columns={
                each["attributes"]["name"]: self._to_entity(each, referred, types.COLUMN_ATTRIBUTES)
                for each in columns
                if each is not None
            },
            guid=entity["guid"],
            qualified_name=attributes["qualifiedName"],
            deleted=entity["status"] == "DELETED",
            has_user_text=bool(user_text),
            output_of=tuple(_related(entity, "outputFromProcesses", process)),
            input_of=tuple(_related(entity, "inputToProcesses", process)),
        )


def _related(
    entity: Mapping[str, Any], relation: str, type: str, *, own: bool = True
) -> dict[str, str]:
    """The GUIDs and names of related entities of a type; without `own`, of all foreign types.

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
    return name if type == types.DATASET else hadoop_urn(type, name)


def hadoop_urn(type: str, name: str) -> str:
    """The URN of an entity that another tool wrote."""
    return str(Urn.of(KIND, (type, name)))


def hadoop_location(urn: str) -> tuple[str, str] | None:
    """The type and qualified name of such an entity, or None for other URNs."""
    try:
        parsed = Urn.parse(urn)
    except InvalidUrn:
        return None
    is_hadoop = len(parsed.path) == 2 and parsed.path[0] in types.HADOOP
    if not is_hadoop or str(Urn.of(KIND, parsed.path)) != urn:
        return None
    return parsed.path[0], parsed.path[1]


def as_json(classifications: Iterable[Classification]) -> list[Any]:
    """Classifications as JSON; `propagate` is always sent, because Atlas's default is true."""
    return [{**msgspec.to_builtins(each), "propagate": each.propagate} for each in classifications]
