"""Records of one server made fit for another: what they refer to is found there by its name.

People, labels and domains with plain names, and what an entity is in, are created. A record is
written without references to anything else that is missing, and completed once that is there.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from threading import RLock
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from lumos.catalogs.openmetadata.index import Index
from lumos.catalogs.openmetadata.kinds import (
    DATASET,
    FREE_FORM,
    KINDS,
    EntityKind,
    Record,
    is_same,
    locate,
    name_of,
    service_type,
)
from lumos.catalogs.openmetadata.labels import MADE, OpenMetadataLabels, domain_of
from lumos.catalogs.openmetadata.lineage import portable_details
from lumos.catalogs.openmetadata.names import (
    HOMES,
    OWN_SERVICE,
    EntityLocation,
    joined,
    meant,
    split,
)
from lumos.catalogs.openmetadata.properties import CustomProperties
from lumos.catalogs.openmetadata.server import Server
from lumos.catalogs.openmetadata.states import Operation, is_own_label, pointer
from lumos.catalogs.openmetadata.texts import is_same_text
from lumos.errors import CatalogError
from lumos.model.dataset import Owner
from lumos.model.urn import InvalidUrn, Urn

Reference: TypeAlias = dict[str, str]

_FQN: Final = "fullyQualifiedName"
# Of edges that follow from something else, such as the features of a model, nothing is told.
_NO_DETAILS: Final = MappingProxyType({"source": "Manual"})
_TIMES: Final = frozenset({"startDate"})
_DETAILS: Final = ("source", "sqlQuery", "description")
_INTERNAL: Final = 500


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
        self._known_as: dict[tuple[str, str], str] = {}
        self._names: dict[str, str | None] = {}
        self.missed: set[tuple[str, str]] = set()
        """What was looked for and is not there; cleared by the caller."""
        self._lock = RLock()

    def forget(self) -> None:
        """Look for everything again."""
        with self._lock:
            self._found.clear()
            self._names.clear()

    # From this server

    def portable(self, value: Any) -> Any:
        """A value with the URNs of datasets and without identifiers of this server."""
        match value:
            case {"type": str(type), "id": str(id)} if len(value) == 2:
                fqn = self._name_of(type, id)
                return {} if fqn is None else self.portable({"type": type, _FQN: fqn})
            case {"type": str(type), "fullyQualifiedName": str(fqn)} if (
                len(value) == 2 and type in HOMES
            ):
                return {"type": DATASET, _FQN: self._urn(type, fqn)}
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
        if id not in self._names:
            known = HOMES.get(type) or KINDS.get(type)
            entity = known and self._server.get(f"{known.route}/{id}", include="all")
            self._names[id] = entity[_FQN] if entity else None
        return self._names[id]

    def edges(self, type: str, entity: Mapping[str, Any]) -> list[Record]:
        """The edges that lead to an entity."""
        told = self._server.get(
            f"lineage/{type}/{entity['id']}", upstreamDepth=1, downstreamDepth=0
        )
        nodes = {node["id"]: node for node in (told or {}).get("nodes") or ()}
        to = split(entity[_FQN])
        found = []
        for edge in (told or {}).get("upstreamEdges") or ():
            start, end = (_id(edge[side]) for side in ("fromEntity", "toEntity"))
            node, details = nodes.get(start), edge.get("lineageDetails") or _NO_DETAILS
            if end == entity["id"] and node is not None:
                parts = split(node[_FQN])
                if parts[0] != OWN_SERVICE:
                    is_dataset = node["type"] in HOMES
                    name = (self._urn if is_dataset else name_of)(node["type"], node[_FQN])
                    found.append({"from": name, **portable_details(details, parts, to)})
        return sorted(found, key=lambda each: str(each["from"]))

    # To this server

    def find(self, type: str, fqn: str) -> Reference | None:
        """An entity by its type and qualified name; created where that is possible."""
        with self._lock:
            if (type, fqn) not in self._found:
                if (found := self._looked_for(type, fqn)) is None:
                    self.missed.add((type, fqn))
                    return None
                self._found[type, fqn] = found
            return self._found[type, fqn]

    def _looked_for(self, type: str, asked: str) -> Reference | None:
        fqn = asked
        match type:
            case "dataset":
                return self._dataset(fqn)
            case "user" | "team":
                kind: Any = "group" if type == "team" else "user"
                owner = Owner(name=meant(split(fqn)[0]), kind=kind)
                self._labels.ensure(owners=[owner])
                return {"id": self._labels.owner(owner)["id"], "type": type}
            case "tag":
                fqn = self._labels.find("Classification", fqn) or fqn
            case "glossaryTerm":
                fqn = self._labels.find("Glossary", fqn) or fqn
            case "domain":
                parts = split(fqn)
                if len(parts) == 1 or self.find(type, joined(*parts[:-1])) is None:
                    self._labels.ensure(domains=[domain_of({_FQN: fqn})])
                    fqn = self._labels.domain(domain_of({_FQN: fqn}))[_FQN]
                else:
                    self._above(KINDS[type], joined(fqn, "x"), {})
        if (spec := KINDS.get(type)) is None:
            return None
        there = self._server.named(spec.route, fqn)
        if there is None:
            return None
        if fqn != asked:
            self._known_as[type, asked] = fqn
        return {"id": there["id"], "type": type}

    def _dataset(self, urn: str) -> Reference | None:
        try:
            found = self._index.find(self._index.names.place(Urn.parse(urn)))
        except InvalidUrn:
            return None
        return None if found is None else {"id": found.id, "type": found.place.home}

    def body(self, spec: EntityKind, fqn: str, record: Record) -> Record:
        """The request that creates an entity; what it is in is created first."""
        body = {"name": split(fqn)[-1], **spec.needed, **self._above(spec, fqn, record)}
        for field in spec.fields:
            value = self._possible_in(field, record)
            if value in (None, [], {}) or field in spec.later:
                continue
            match spec.refers.get(field):
                case "name":
                    body[field] = _names(value)
                case "id":
                    body[field] = [each["id"] for each in self._sent(field, value)]
                case _:
                    body[field] = self._sent(field, value)
        if extension := self._extension(spec, record, {}):
            body["extension"] = extension
        return body

    def _above(self, spec: EntityKind, fqn: str, record: Record) -> Record:
        """The fields that name what an entity is in."""
        parts = split(fqn)
        fields: Record = {}
        for field, type in spec.above:
            if field == "parent" and len(parts) <= len(spec.above):
                continue
            is_first = type.endswith("Service") or (field != "parent" and len(spec.above) > 1)
            above = joined(*(parts[:1] if is_first else parts[:-1]))
            if (type, above) not in self._found:
                self._hold(spec, type, above, record)
            fields[field] = above
        return fields

    def _hold(self, spec: EntityKind, type: str, fqn: str, record: Record) -> None:
        """Create what an entity is in, if it is missing."""
        there = self._server.named(KINDS[type].route, fqn)
        if there is None:
            body = {"name": split(fqn)[-1], **KINDS[type].needed, "description": MADE}
            body |= self._above(KINDS[type], fqn, {})
            if KINDS[type].is_service:
                told = record.get("serviceType")
                body["serviceType"] = told or service_type(spec, joined(split(fqn)[0], "x"))
                self._index.forget_services()
            there = self._server.put(KINDS[type].route, body)
        self._found[type, fqn] = {"id": there["id"], "type": type}

    def operations(
        self, spec: EntityKind, entity: Mapping[str, Any], there: Record, wanted: Record
    ) -> list[Operation]:
        """The changes that lead from one record to another, as far as possible here."""
        operations: list[Operation] = []
        for field in spec.fields:
            old, new = there.get(field), self._possible_in(field, wanted)
            new = None if new in ([], {}, "") else new
            is_text = field == "description" and is_same_text(old, new)
            if is_text or is_same(old, new) or field in ("displayName", "email", "serviceType"):
                continue
            value = self._sent(field, new)
            if field == "tags":
                others = [each for each in entity.get("tags") or () if not is_own_label(each)]
                value = [*(value or ()), *others]
            if value is None and (isinstance(old, list) or field in spec.needed):
                value = [] if isinstance(old, list) else spec.needed[field]
            operations.append(_set(f"/{field}", value))
        return [*operations, *self._extended(spec, entity, there, wanted)]

    def _extended(
        self, spec: EntityKind, entity: Mapping[str, Any], there: Record, wanted: Record
    ) -> list[Operation]:
        old, new = there.get("extension") or {}, self._extension(spec, wanted, there)
        if old == new:
            return []
        if not entity.get("extension"):
            return [_set("/extension", new)]
        return [
            _set(f"/extension/{pointer(key)}", new.get(key))
            for key in sorted(old.keys() | new.keys())
            if old.get(key) != new.get(key)
        ]

    def _extension(self, spec: EntityKind, wanted: Record, there: Record) -> Record:
        """Custom properties, without those that are declared here in another way or not at all."""
        extension: Record = wanted.get("extension") or {}
        if not extension:
            return extension
        declared = wanted.get("declared")
        if isinstance(declared, dict):
            self._properties.define(spec.type, declared)
        refused = self._properties.refused(spec.type, extension, declared)
        refused |= extension.keys() - self._properties.known(spec.type)
        old: Record = there.get("extension") or {}
        taken = {key: value for key, value in extension.items() if key not in refused}
        return taken | {key: old[key] for key in refused if key in old}

    def _possible_in(self, field: str, record: Record) -> Any:
        value = record.get(field)
        if field == "tags":
            return self._labels.compatible(self._possible(value or []))
        return value if field in FREE_FORM else self._possible(value)

    def _possible(self, value: Any) -> Any:
        """A value without references to what is missing."""
        match value:
            case {"tagFQN": str(fqn), "source": str(source)}:
                if (found := self._labels.find(source, fqn)) is None:
                    self.missed.add(("tag" if source == "Classification" else "glossaryTerm", fqn))
                    return None
                return {**value, "tagFQN": found}
            case {"type": str(type), "fullyQualifiedName": str(fqn)} if len(value) == 2:
                if self.find(type, fqn) is None:
                    return None
                return {"type": type, _FQN: self._known_as.get((type, fqn), fqn)}
            case {"relationType": _, "term": term}:
                possible = self._possible(term)
                return None if possible is None else {**value, "term": possible}
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
        """Make the edges that lead to an entity those of a record; True if any differed."""
        old, new = ({each["from"]: each for each in _edges(side)} for side in (there, wanted))
        to = {"id": entity["id"], "type": type}
        parts = split(entity[_FQN])
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
        if name.startswith("lumos://"):
            found = self.find(DATASET, name)
            parts = () if found is None else self._index.names.place(Urn.parse(name)).parts
            return None if found is None else (found, parts)
        place = locate(name)
        found = None if place is None else self.find(*place)
        return None if place is None or found is None else (found, split(place[1]))

    def link(self, start: Reference, end: Reference, details: Record) -> None:
        try:
            self._server.link({"fromEntity": start, "toEntity": end, "lineageDetails": details})
        except CatalogError as problem:
            # Without its search engine the server fails after the edge is written.
            if problem.status != _INTERNAL:
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


def _names(value: Any) -> Any:
    """How a request that creates an entity names others."""
    if isinstance(value, list):
        return [_names(each) for each in value]
    return value.get("term", value)[_FQN]


def _edges(record: Record) -> Iterable[Record]:
    return [each for each in record.get("edges") or () if isinstance(each, dict)]


def _set(path: str, value: Any) -> Operation:
    if value is None:
        return {"op": "remove", "path": path}
    return {"op": "add", "path": path, "value": value}


def _id(reference: Any) -> str:
    return reference["id"] if isinstance(reference, dict) else str(reference)
