"""Records of one server made fit for another: what they refer to is found there by its name.

People and what Lumos itself makes to refer to are made. Anything else a record waits for.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from threading import RLock
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from lumos.catalogs.openmetadata.containers import HOMES
from lumos.catalogs.openmetadata.entity_kinds import (
    CATALOG,
    FREE_FORM,
    THINGS,
    Record,
    Thing,
    is_person,
    name_of,
)
from lumos.catalogs.openmetadata.index import Index
from lumos.catalogs.openmetadata.labels import OWN, OpenMetadataLabels, term_named
from lumos.catalogs.openmetadata.lineage import portable_details
from lumos.catalogs.openmetadata.names import OWN_SERVICE, EntityLocation, joined, meant, split
from lumos.catalogs.openmetadata.properties import CustomProperties
from lumos.catalogs.openmetadata.server import Server
from lumos.catalogs.openmetadata.states import is_own_label
from lumos.errors import CatalogError
from lumos.model.dataset import Owner
from lumos.model.urn import InvalidUrn, Urn

Operation: TypeAlias = dict[str, Any]
Reference: TypeAlias = dict[str, str]

DATASET: Final = "dataset"
# Of edges that follow from something else, such as the features of a model, nothing is told.
_NO_DETAILS: Final = MappingProxyType({"source": "Manual"})
_TIMES: Final = frozenset({"startDate"})
_DETAILS: Final = ("source", "sqlQuery", "description")
_WRITTEN_ALTHOUGH_REFUSED: Final = 500


class Referring:
    """What records of one server refer to."""

    def __init__(
        self, server: Server, labels: OpenMetadataLabels, properties: CustomProperties, index: Index
    ) -> None:
        self._server = server
        self._labels = labels
        self._properties = properties
        self._index = index
        self._found: dict[tuple[str, str], Reference] = {}
        self._names: dict[str, str | None] = {}
        self.missed: set[tuple[str, str]] = set()
        """What was looked for and is not there; for whoever looks to empty."""
        self._lock = RLock()

    def forget(self, type: str, fqn: str) -> None:
        """Looks for something again when it is needed next."""
        with self._lock:
            self._found.pop((type, fqn), None)

    def forget_all(self) -> None:
        with self._lock:
            self._found.clear()
            self._names.clear()

    # From this server

    def portable(self, value: Any) -> Any:
        """A value in which datasets are named as in Lumos, and nothing by this server's ids."""
        match value:
            case {"type": str(type), "id": str(id)} if len(value) == 2:
                fqn = self._name_of(type, id)
                return (
                    {} if fqn is None else self.portable({"type": type, "fullyQualifiedName": fqn})
                )
            case {"type": str(type), "fullyQualifiedName": str(fqn)} if (
                len(value) == 2 and type in HOMES
            ):
                return {"type": DATASET, "fullyQualifiedName": self._urn(type, fqn)}
            case dict():
                return {
                    key: each if key in FREE_FORM else self.portable(each)
                    for key, each in value.items()
                }
            case list():
                return [self.portable(each) for each in value]
            case _:
                return value

    def _urn(self, home: str, fqn: str) -> str:
        return str(self._index.names.urn(EntityLocation(home, split(fqn))))

    def _name_of(self, type: str, id: str) -> str | None:
        """The qualified name of what is only told by its identifier."""
        if id not in self._names:
            known = HOMES.get(type) or THINGS.get(type)
            entity = known and self._server.get(f"{known.route}/{id}", include="all")
            self._names[id] = entity["fullyQualifiedName"] if entity else None
        return self._names[id]

    def edges(self, type: str, entity: Mapping[str, Any]) -> list[Record]:
        """The edges that lead to an entity."""
        told = self._server.get(
            f"lineage/{type}/{entity['id']}", upstreamDepth=1, downstreamDepth=0
        )
        nodes = {node["id"]: node for node in (told or {}).get("nodes") or ()}
        to = split(entity["fullyQualifiedName"])
        found = []
        for edge in (told or {}).get("upstreamEdges") or ():
            start, end = (_id(edge[side]) for side in ("fromEntity", "toEntity"))
            node, details = nodes.get(start), edge.get("lineageDetails") or _NO_DETAILS
            if end == entity["id"] and node is not None:
                parts = split(node["fullyQualifiedName"])
                if parts[0] != OWN_SERVICE:
                    told_of_it = portable_details(details, parts, to)
                    found.append({"from": self.end_named(node), **told_of_it})
        return sorted(found, key=lambda each: str(each["from"]))

    def end_named(self, node: Mapping[str, Any]) -> str:
        """The end of an edge, as Lumos names it."""
        type, fqn = node["type"], node["fullyQualifiedName"]
        return self._urn(type, fqn) if type in HOMES else name_of(type, fqn)

    def declared(self, type: str, extension: Mapping[str, Any]) -> Record:
        """How the custom properties that an entity has are declared."""
        return self._properties.definitions(type, extension)

    # To this server

    def declare(self, type: str, record: Record) -> None:
        """Makes sure that an entity can have the custom properties that a record says."""
        declared = record.get("declared")
        if isinstance(declared, dict):
            self._properties.define(type, declared)

    def find(self, type: str, fqn: str) -> Reference | None:
        """Something by its type and qualified name; made where that is possible."""
        with self._lock:
            if (type, fqn) not in self._found:
                found = self._looked_for(type, fqn)
                if found is None:
                    self.missed.add((type, fqn))
                    return None
                self._found[type, fqn] = found
            return self._found[type, fqn]

    def _looked_for(self, type: str, fqn: str) -> Reference | None:
        if type == DATASET:
            return self._dataset(fqn)
        if is_person(type):
            owner = Owner(name=meant(split(fqn)[0]), kind="group" if type == "team" else "user")
            self._labels.ensure(owners=[owner])
            return {"id": self._labels.owner(owner)["id"], "type": type}
        if (thing := THINGS.get(type)) is None:
            return None
        there = self._server.named(thing.route, fqn, include="all")
        if there is None and self._is_for_lumos_to_make(type, fqn):
            there = self._server.named(thing.route, fqn)
        if there is None or there.get("deleted"):
            return None
        return {"id": there["id"], "type": type}

    def _is_for_lumos_to_make(self, type: str, fqn: str) -> bool:
        """Makes what Lumos itself refers to; says whether that was so."""
        parts = split(fqn)
        match type:
            case "tag" if parts[0] == OWN:
                self._labels.ensure(tags=[meant(parts[-1])])
            case "glossaryTerm" if parts[0] == OWN:
                self._labels.ensure(terms=[term_named(fqn)])
            case "domain" if len(parts) == 1:
                self._labels.ensure(domains=[meant(parts[0])])
            case "domain" if self.find(type, joined(*parts[:-1])) is not None:
                # People have domains in others of which nothing is said.
                body = {"name": parts[-1], "parent": joined(*parts[:-1]), **THINGS[type].needed}
                self._server.put(THINGS[type].route, body)
            case _:
                return False
        return True

    def _dataset(self, urn: str) -> Reference | None:
        try:
            found = self._index.find(self._index.names.place(Urn.parse(urn)))
        except InvalidUrn:
            return None
        return None if found is None else {"id": found.id, "type": found.place.home}

    def body(self, thing: Thing, fqn: str, record: Record) -> Record | None:
        """What makes an entity, or nothing where what it is in is not there."""
        body = {"name": split(fqn)[-1], **thing.needed}
        for field, type, above in _above(thing, fqn):
            if self.find(type, above) is None:
                return None
            body[field] = above
        for field in thing.fields:
            value = self._possible_in(field, record)
            if value in (None, [], {}) or field in thing.later:
                continue
            is_by_name = thing.refers.get(field) == "name"
            body[field] = _names(value) if is_by_name else self._sent(field, value)
        if extension := self._extension(thing, record, {}):
            body["extension"] = extension
        return body

    def operations(
        self,
        thing: Thing,
        entity: Mapping[str, Any],
        there: Record,
        wanted: Record,
        *,
        is_bot: bool,
    ) -> list[Operation]:
        """What leads from one record to another, as far as it can be shown."""
        operations: list[Operation] = []
        for field in thing.fields:
            old, new = there.get(field), self._possible_in(field, wanted)
            is_denied = (field == "displayName" and is_bot) or field == "serviceType"
            if old == (None if new in ([], {}, "") else new) or is_denied:
                continue
            value = self._sent(field, new)
            if field == "tags":
                others = [each for each in entity.get("tags") or () if not is_own_label(each)]
                value = [*(value or ()), *others]
            if value is None and (isinstance(old, list) or field in thing.needed):
                value = [] if isinstance(old, list) else thing.needed[field]
            operations.append(_set(f"/{field}", value))
        extension = self._extension(thing, wanted, there)
        return [*operations, *_extended(entity, there, extension)]

    def _extension(self, thing: Thing, wanted: Record, there: Record) -> Record:
        """Custom properties, without those that the server takes for something else."""
        extension: Record = wanted.get("extension") or {}
        if not extension:
            return extension
        refused = self._properties.refused(thing.type, extension, wanted.get("declared"))
        old: Record = there.get("extension") or {}
        taken = {key: value for key, value in extension.items() if key not in refused}
        return taken | {key: old[key] for key in refused if key in old}

    def _possible_in(self, field: str, record: Record) -> Any:
        value = record.get(field)
        return value if field in FREE_FORM else self._possible(value)

    def _possible(self, value: Any) -> Any:
        """A value without references to what is not there."""
        match value:
            case {"tagFQN": str(fqn), "source": source}:
                type = "tag" if source == "Classification" else "glossaryTerm"
                return None if self.find(type, fqn) is None else value
            case {"type": str(type), "fullyQualifiedName": str(fqn)} if len(value) == 2:
                return None if self.find(type, fqn) is None else value
            case {"relationType": _, "term": term}:
                return None if self._possible(term) is None else value
            case dict():
                told = {key: self._possible(each) for key, each in value.items()}
                return {key: each for key, each in told.items() if each is not None}
            case list():
                told_ones = (self._possible(each) for each in value)
                return [each for each in told_ones if each is not None]
            case _:
                return value

    def _sent(self, field: str, value: Any) -> Any:
        """A value with this server's identifiers."""
        if field in FREE_FORM:
            return value
        match value:
            case {"type": str(type), "fullyQualifiedName": str(fqn)} if len(value) == 2:
                return self.find(type, fqn)
            case dict():
                return {key: self._sent(key, each) for key, each in value.items()}
            case list():
                return [self._sent(field, each) for each in value]
            case int() if field in _TIMES:
                return datetime.fromtimestamp(value / 1000, UTC).isoformat().replace("+00:00", "Z")
            case _:
                return value

    def draw(self, type: str, entity: Mapping[str, Any], there: Record, wanted: Record) -> bool:
        """Makes the edges that lead to an entity those of a record; says whether any differed."""
        old, new = ({each["from"]: each for each in _edges(side)} for side in (there, wanted))
        to = {"id": entity["id"], "type": type}
        parts = split(entity["fullyQualifiedName"])
        is_changed = False
        for name, edge in new.items():
            start = self.end(name)
            if old.get(name) != edge and start is not None:
                self.link(start[0], to, self.details_sent(edge, start[1], parts))
                is_changed = True
        for name in old.keys() - new.keys():
            if (start := self.end(name)) is not None:
                path = f"{start[0]['type']}/{start[0]['id']}/{type}/{entity['id']}"
                is_changed = self._server.delete(f"lineage/{path}") or is_changed
        return is_changed

    def end(self, name: str) -> tuple[Reference, tuple[str, ...]] | None:
        """Where an edge begins, with the parts of its qualified name here."""
        type, fqn = DATASET, name
        if name.startswith(f"{CATALOG}:"):
            _, type, fqn = name.split(":", 2)
        if (found := self.find(type, fqn)) is None:
            return None
        if type == DATASET:
            return found, self._index.names.place(Urn.parse(fqn)).parts
        return found, split(fqn)

    def link(self, start: Reference, end: Reference, details: Record) -> None:
        try:
            self._server.link({"fromEntity": start, "toEntity": end, "lineageDetails": details})
        except CatalogError as problem:
            # Without its search engine the server fails after the edge is written.
            if problem.status != _WRITTEN_ALTHOUGH_REFUSED:
                raise

    def details_sent(
        self, edge: Mapping[str, Any], start: tuple[str, ...], end: tuple[str, ...]
    ) -> Record:
        """What is said of an edge, with the names that its ends have here."""
        details: Record = {key: edge[key] for key in _DETAILS if key in edge}
        pipeline = self._possible(edge.get("pipeline"))
        if pipeline:
            details["pipeline"] = self._sent("pipeline", pipeline)
        details["columnsLineage"] = [
            {
                **line,
                "fromColumns": [joined(*start, *split(each)) for each in line["fromColumns"]],
                "toColumn": joined(*end, *split(line["toColumn"])),
            }
            for line in edge.get("columns") or ()
        ]
        return details


def _above(thing: Thing, fqn: str) -> Iterable[tuple[str, str, str]]:
    """What an entity is in: the fields that say so, with types and qualified names."""
    parts = split(fqn)
    for field, type in thing.above:
        if field != "parent":
            is_at_top = type.endswith("Service") or len(thing.above) > 1
            yield field, type, joined(*(parts[:1] if is_at_top else parts[:-1]))
        elif len(parts) > len(thing.above):
            yield field, type, joined(*parts[:-1])


def _names(value: Any) -> Any:
    """What a request that makes something calls others by."""
    if isinstance(value, list):
        return [_names(each) for each in value]
    return value.get("term", value)["fullyQualifiedName"]


def _edges(record: Record) -> list[Record]:
    edges = record.get("edges")
    return [each for each in edges if isinstance(each, dict)] if isinstance(edges, list) else []


def _set(path: str, value: Any) -> Operation:
    if value is None:
        return {"op": "remove", "path": path}
    return {"op": "add", "path": path, "value": value}


def _extended(entity: Mapping[str, Any], there: Record, new: Record) -> list[Operation]:
    old = there.get("extension") or {}
    if old == new:
        return []
    if not entity.get("extension"):
        return [_set("/extension", new)]
    return [
        _set(f"/extension/{key.replace('~', '~0').replace('/', '~1')}", new.get(key))
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]


def _id(reference: Any) -> str:
    return reference["id"] if isinstance(reference, dict) else str(reference)
