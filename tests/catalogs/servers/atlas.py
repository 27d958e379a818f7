"""A stub of Apache Atlas's REST v2 interface, with the habits that a real 2.1.0 showed.

- A bulk write is all or nothing. It updates the active entity with the same qualified name and
  touches only the attributes that were sent; classifications and labels only of new entities.
- Required attributes, and the owner of owned entities, must be sent with every write.
- A lookup by qualified names leaves out those that do not exist.
- Deleted entities cannot be found by qualified name; another one may take it. Their relations
  are deleted, too, but still listed. Columns are deleted with their dataset.
- An update of an entity does not bring a deleted relation back; another one has to be created.
- The list of all types does not contain business metadata.
- The audit log has pages that begin with the last event of the page before, the oldest first.
- A search with a limit above 10,000 gives 100, and one with more than a hundred criteria fails.
"""

import base64
import copy
import itertools
import re
import uuid
from typing import Any
from urllib.parse import parse_qs, urlsplit

from .http import Answer, Request

USER, PASSWORD, TOKEN = "lumos", "hush-hush", "a-token"
_BASE = "/api/atlas/"
_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_ .]*", re.ASCII)
_LABEL = re.compile(r"[a-zA-Z0-9_-]{1,50}", re.ASCII)
_MOST, _DEFAULT = 10_000, 100
_TYPES = {
    "Referenceable": [], "Asset": ["Referenceable"], "DataSet": ["Asset"], "Process": ["Asset"],
    "AtlasGlossary": [], "AtlasGlossaryTerm": [], "hive_table": ["DataSet"],
    "hive_column": ["DataSet"], "hive_process": ["Process"],
}  # fmt: skip
# Relations by name: the end at the first entity, and the end at the second one.
_RELATIONS = {
    "lumos_dataset_columns": ("columns", "dataset"),
    "hive_table_columns": ("columns", "table"),
    "AtlasGlossarySemanticAssignment": ("assignedEntities", "meanings"),
    "AtlasGlossaryTermAnchor": ("terms", "anchor"),
    "dataset_process_inputs": ("inputs", "inputToProcesses"),
    "process_dataset_outputs": ("outputs", "outputFromProcesses"),
}
_ENDS = {
    "dataset": ("lumos_dataset_columns", 1), "table": ("hive_table_columns", 1), "anchor": ("AtlasGlossaryTermAnchor", 1),
    "meanings": ("AtlasGlossarySemanticAssignment", 1), "inputs": ("dataset_process_inputs", 0),
    "outputs": ("process_dataset_outputs", 0),
}  # fmt: skip
_OWNERS = {"lumos_column": "dataset", "hive_column": "table", "AtlasGlossaryTerm": "anchor"}
_COLUMNS = ("lumos_dataset_columns", "hive_table_columns")
_OWNING = (*_COLUMNS, "AtlasGlossaryTermAnchor")


class _Refused(Exception):
    def __init__(self, status: int, text: str) -> None:
        self.answer = Answer.of(
            {"errorCode": f"ATLAS-{status}-00-001", "errorMessage": text}, status
        )
        super().__init__(text)


def _listed(value: Any) -> list[dict[str, Any]]:
    return value if isinstance(value, list) else [value] if value else []


class StubEntity:
    def __init__(self, guid: str, type: str, at: int) -> None:
        self.guid, self.type, self.updated = guid, type, at
        self.events: list[tuple[int, str]] = []
        self.attributes: dict[str, Any] = {}
        self.classifications: list[dict[str, Any]] = []
        self.labels: list[str] = []
        self.custom: dict[str, str] = {}
        self.business: dict[str, Any] = {}
        self.status = "ACTIVE"


class StubRelation:
    def __init__(self, name: str, ends: tuple[str, str]) -> None:
        self.name, self.ends, self.status, self.guid = name, ends, "ACTIVE", str(uuid.uuid4())
        self.attributes: dict[str, Any] = {}


class Atlas:
    """The stub; `entities` are all that it holds, by GUID."""

    def __init__(self) -> None:
        self.empty()

    def empty(self) -> None:
        self.definitions: dict[str, dict[str, Any]] = {}
        self.categories = dict.fromkeys(_TYPES, "ENTITY")
        self.entities: dict[str, StubEntity] = {}
        self.relations: dict[str, list[StubRelation]] = {}
        self._names, self._ends = dict(_RELATIONS), dict(_ENDS)
        self._active: dict[tuple[str, str], str] = {}
        self._clock = itertools.count(1)
        self.posted: list[str] = []

    def __call__(self, request: Request) -> Answer:
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if request.headers.get("Authorization") not in (f"Basic {login}", f"Bearer {TOKEN}"):
            return Answer(401)
        path = request.path.removeprefix(_BASE)
        try:
            return self._answer(request, path)
        except _Refused as refused:
            return refused.answer

    def named(self, name: str) -> StubEntity:
        """The active dataset whose URN ends with a name."""
        [found] = [
            each
            for each in self.entities.values()
            if each.type == "lumos_dataset"
            and each.status == "ACTIVE"
            and each.attributes["qualifiedName"].endswith(name)
        ]
        return found

    def add(self, type: str, qualified: str, /, **attributes: Any) -> StubEntity:
        """An entity that another tool wrote."""
        body = {"qualifiedName": qualified, "name": qualified, **attributes}
        answer = self._post([{"typeName": type, "guid": "-1", "attributes": body}])
        return self.entities[answer["guidAssignments"]["-1"]]

    def _answer(self, request: Request, path: str) -> Answer:
        guids = parse_qs(urlsplit(request.target).query).get("guid", [])
        assert len(request.target) < 8_000, "Atlas refuses longer addresses"
        match (request.method, path.split("/")):
            case "GET", ["admin", "version"]:
                return Answer.of({"Version": "2.1.0", "Name": "apache-atlas"})
            case "GET", ["admin", "session"]:
                return Answer.of({"userName": USER})
            case "GET", ["v2", "types", "typedefs", "headers"]:
                rows = [{"name": name, "category": each} for name, each in self.categories.items()
                        if each != "BUSINESS_METADATA"]  # fmt: skip
                return Answer.of(rows)
            case "GET", ["v2", "types", "typedef", "name", name]:
                if name in _RELATIONS:
                    first, second = _RELATIONS[name]
                    return Answer.of({"endDef1": {"name": first}, "endDef2": {"name": second}})
                if name not in self.definitions:
                    raise _Refused(404, f"Given typename {name} was invalid")
                return Answer.of(self.definitions[name])
            case "GET", ["v2", "types", "typedefs"]:
                wanted = [each for name, each in self.definitions.items()
                          if self.categories[name] == "BUSINESS_METADATA"]  # fmt: skip
                return Answer.of({"businessMetadataDefs": wanted})
            case "GET", ["v2", "entity", "bulk", "uniqueAttribute", "type", type]:
                query = parse_qs(urlsplit(request.target).query)
                assert all(key.endswith(":qualifiedName") for key in query)
                found = [self._active[type, name] for [name] in query.values()
                         if (type, name) in self._active]  # fmt: skip
                return Answer.of(self._read(found) if found else {})
            case "POST", ["v2", "entity", "guid", guid, "businessmetadata"]:
                assert "isOverwrite=true" in request.target
                self._check_business(request.json)
                self._existing(guid).business = request.json
                return Answer(204)
            case "POST" | "PUT", ["v2", "types", "typedefs"]:
                self._define(request.json, is_new=request.method == "POST")
                return Answer.of(request.json)
            case "POST", ["v2", "search", "basic"]:
                return Answer.of(self._search(request.json))
            case "GET", ["v2", "search", "dsl"]:
                return Answer.of(self._query(parse_qs(urlsplit(request.target).query)))
            case "GET", ["v2", "entity", guid, "audit"]:
                return Answer.of(self._events(guid, parse_qs(urlsplit(request.target).query)))
            case "GET", ["v2", "entity", "bulk"]:
                return Answer.of(self._read(guids))
            case "POST", ["v2", "entity", "bulk"]:
                return Answer.of(self._post(request.json["entities"]))
            case "DELETE", ["v2", "entity", "bulk"]:
                return Answer.of(self._delete(guids))
            case "POST", ["v2", "entity", "bulk", "setClassifications"]:
                return Answer.of(self._classify(request.json["guidHeaderMap"]))
            case "POST", ["v2", "entity", "guid", guid, "labels"]:
                self._check_labels(request.json)
                self._existing(guid).labels = request.json
                return Answer(204)
            case "DELETE", ["v2", "relationship", "guid", guid]:
                self._relation(guid).status = "DELETED"
                return Answer(204)
            case "PUT", ["v2", "relationship"]:
                self._relation(request.json["guid"]).attributes = request.json["attributes"]
                return Answer.of(request.json)
            case "POST", ["v2", "relationship"]:
                body = request.json
                ends = (body["end1"]["guid"], body["end2"]["guid"])
                assert not self._between(body["typeName"], ends, "ACTIVE")
                relation = StubRelation(body["typeName"], ends)
                relation.attributes = body["attributes"] or {}
                for one in set(ends):
                    self.relations.setdefault(one, []).append(relation)
                return Answer.of(body)
            case "PUT", ["admin", "purge"]:
                return Answer.of(self._purge(request.json))
        raise AssertionError(f"no route {request!r}")

    def _define(self, body: dict[str, Any], *, is_new: bool) -> None:
        categories = {"entityDefs": "ENTITY", "relationshipDefs": "RELATIONSHIP",
                      "classificationDefs": "CLASSIFICATION",
                      "businessMetadataDefs": "BUSINESS_METADATA"}  # fmt: skip
        rows = [(categories[kind], each) for kind, some in body.items() for each in some]
        for category, each in rows:
            name = each["name"]
            if is_new and name in self.categories:
                raise _Refused(409, f"Given type {name} already exists")
            if category == "CLASSIFICATION" and not _NAME.fullmatch(name):
                raise _Refused(400, f"{name}: invalid name for a classification")
            if not is_new:
                before = {each["name"] for each in self.definitions[name].get("attributeDefs", [])}
                after = {each["name"] for each in each.get("attributeDefs", [])}
                if before - after:
                    raise _Refused(400, f"{name}: attributes cannot be removed")
        for category, each in rows:
            self.categories[each["name"]] = category
            self.definitions[each["name"]] = each
            if category == "RELATIONSHIP" and each["name"] not in _RELATIONS:
                first, second = (each[end]["name"] for end in ("endDef1", "endDef2"))
                self._names[each["name"]] = (first, second)
                self._ends |= {first: (each["name"], 0), second: (each["name"], 1)}

    def _is_a(self, type: str, parent: str) -> bool:
        parents = self.definitions.get(type, {}).get("superTypes") or _TYPES.get(type, [])
        return type == parent or any(self._is_a(each, parent) for each in parents)

    def _search(self, query: dict[str, Any]) -> dict[str, Any]:
        type, limit = query["typeName"], query.get("limit") or _DEFAULT
        limit = _DEFAULT if limit > _MOST else limit
        if type not in self.categories:
            raise _Refused(404, f"Given typename {type} was invalid")
        found = [each for each in self.entities.values() if self._is_a(each.type, type)]
        if query.get("excludeDeletedEntities"):
            found = [each for each in found if each.status == "ACTIVE"]
        if filters := query.get("entityFilters"):
            equal = {each["attributeValue"] for each in filters["criterion"]
                     if (each["attributeName"], each["operator"]) == ("lookup", "=")}  # fmt: skip
            later = [each["attributeValue"] for each in filters["criterion"]
                     if (each["attributeName"], each["operator"]) == ("lookup", ">")]  # fmt: skip
            assert bool(equal) != bool(later)
            if len(equal) > 100:
                raise _Refused(500, "There was an error processing your request.")
            found = [
                each
                for each in found
                if each.attributes["lookup"] in equal
                or any(each.attributes["lookup"] > start for start in later)
            ]
        if query.get("sortBy"):
            found.sort(key=lambda each: str(each.attributes[query["sortBy"]]))
        offset = query.get("offset", 0)
        names = {"qualifiedName", "name", "description", "owner", *query.get("attributes", ())}
        rows = [
            {"guid": each.guid, "typeName": each.type, "status": each.status,
             "attributes": {name: value for name, value in each.attributes.items() if name in names}}
            for each in found[offset : offset + limit]
        ]  # fmt: skip
        return {"approximateCount": len(found), **({"entities": rows} if rows else {})}

    def _query(self, parameters: dict[str, list[str]]) -> dict[str, Any]:
        """A query in the DSL, as far as Lumos uses it."""
        [text], limit, offset = (parameters["query"], *(
            int(parameters[name][0]) for name in ("limit", "offset")
        ))  # fmt: skip
        match = re.fullmatch(r"(\w+) where (.+) orderby (\w+)", text)
        assert match is not None, text
        wanted = dict(re.findall(r'(\w+) = "([^"]*)"', match[2]))
        found = [
            each
            for each in self.entities.values()
            if self._is_a(each.type, match[1])
            and all(each.attributes.get(name) == value for name, value in wanted.items())
        ]
        found.sort(key=lambda each: str(each.attributes[match[3]]))
        rows = [
            {"guid": each.guid, "typeName": each.type, "status": each.status,
             "attributes": {name: each.attributes[name] for name in ("qualifiedName", "name")}}
            for each in found[offset : offset + limit]
        ]  # fmt: skip
        return {"queryType": "DSL", "approximateCount": -1, **({"entities": rows} if rows else {})}

    def _events(self, guid: str, parameters: dict[str, list[str]]) -> list[dict[str, Any]]:
        entity, start = self._existing(guid), int(parameters.get("startKey", ["0"])[0])
        events = [
            {"entityId": guid, "eventKey": str(at), "timestamp": at, "user": USER, "action": action,
             "details": f"{action}: {guid}"}
            for at, action in entity.events
            if at >= start
        ]  # fmt: skip
        return events[: int(parameters["count"][0])]

    def _existing(self, guid: str) -> StubEntity:
        if guid not in self.entities:
            raise _Refused(404, f"Given instance guid {guid} is invalid/not found")
        return self.entities[guid]

    def _read(self, guids: list[str]) -> dict[str, Any]:
        entities = [self._existing(guid) for guid in guids]
        columns = [
            relation.ends[1]
            for each in entities
            for relation in self.relations.get(each.guid, ())
            if relation.name in _COLUMNS and relation.ends[0] == each.guid
        ]
        return {
            "entities": [self._shown(each) for each in entities],
            "referredEntities": {guid: self._shown(self.entities[guid]) for guid in columns},
        }

    def _shown(self, entity: StubEntity) -> dict[str, Any]:
        related: dict[str, list[Any]] = {}
        for relation in self.relations.get(entity.guid, ()):
            for end, guid in enumerate(relation.ends):
                other = self.entities[relation.ends[1 - end]]
                if guid == entity.guid:
                    related.setdefault(self._names[relation.name][end], []).append(
                        {"guid": other.guid, "typeName": other.type, "entityStatus": other.status,
                         "displayText": other.attributes["name"],
                         "relationshipType": relation.name,
                         "relationshipAttributes": {"attributes": relation.attributes},
                         "relationshipGuid": relation.guid,
                         "relationshipStatus": relation.status}
                    )  # fmt: skip
        ends = ("dataset", "table", "anchor")
        single = {name: related.pop(name)[0] for name in ends if name in related}
        definition = self.definitions.get(entity.type, {}).get("attributeDefs", ())
        attributes = {**dict.fromkeys(each["name"] for each in definition), **entity.attributes}
        for name in ("inputs", "outputs"):
            if name in related:
                attributes[name] = [
                    {**each, "uniqueAttributes": {"qualifiedName":
                     self.entities[each["guid"]].attributes["qualifiedName"]}}
                    for each in related[name]
                ]  # fmt: skip
        return {
            "guid": entity.guid, "typeName": entity.type, "status": entity.status,
            "updateTime": entity.updated, "attributes": attributes,
            "relationshipAttributes": {**related, **single},
            "classifications": entity.classifications, "labels": entity.labels,
            "customAttributes": entity.custom, "businessAttributes": entity.business,
        }  # fmt: skip

    def _check_business(self, values: dict[str, Any]) -> None:
        for name, attributes in values.items():
            known = {each["name"] for each in self.definitions.get(name, {}).get("attributeDefs", ())
                     if '"DataSet"' in each["options"]["applicableEntityTypes"]}  # fmt: skip
            if not attributes.keys() <= known:
                raise _Refused(400, f"invalid business-metadata: {name}")

    def _post(self, bodies: list[dict[str, Any]]) -> dict[str, Any]:
        found: list[tuple[dict[str, Any], str | None]] = []
        sent = {body["guid"] for body in bodies}
        for body in bodies:
            attributes, type, guid = body["attributes"], body["typeName"], body["guid"]
            if type not in self.categories:
                raise _Refused(400, f"Type ENTITY with name {type} does not exist")
            if not attributes.get("name") and attributes.get("name") != "":
                raise _Refused(404, f"{type}.name: mandatory attribute value missing")
            owner = _OWNERS.get(type)
            if owner and owner not in {**attributes, **body.get("relationshipAttributes", {})}:
                raise _Refused(404, f"{type}.{owner}: mandatory attribute value missing")
            if guid.startswith("-"):
                known = self._active.get((type, attributes["qualifiedName"]))
            else:
                known = self._existing(guid).guid
                if self.entities[known].status != "ACTIVE":
                    raise _Refused(404, f"Given instance guid {guid} is invalid/not found")
            for each in body.get("classifications") or ():
                if self.categories.get(each["typeName"]) != "CLASSIFICATION":
                    raise _Refused(400, f"invalid classification: {each['typeName']}")
            self._check_labels(body.get("labels") or ())
            self._check_business(body.get("businessAttributes") or {})
            for reference in self._references(body):
                guid = self._guid(reference)
                if guid not in sent and self._existing(guid).status != "ACTIVE":
                    raise _Refused(404, f"{guid} is deleted")
            found.append((body, known))
        assigned = {}
        for body, known in found:
            name = body["attributes"]["qualifiedName"]
            guid = known or self._active.get((body["typeName"], name)) or str(uuid.uuid4())
            assigned[body["guid"]] = guid
            entity = self.entities.get(guid)
            if entity is None:
                entity = self.entities[guid] = StubEntity(guid, body["typeName"], 0)
                self._active[body["typeName"], name] = guid
                entity.labels = sorted(set(body.get("labels") or ()))
                entity.business = body.get("businessAttributes") or {}
                entity.classifications = [
                    self._classification(guid, each) for each in body.get("classifications") or ()
                ]
            entity.updated = next(self._clock)
            action = "ENTITY_UPDATE" if entity.events else "ENTITY_CREATE"
            entity.events.append((entity.updated, action))
            entity.attributes |= {
                key: value
                for key, value in body["attributes"].items()
                if key not in ("inputs", "outputs", "table")
            }
            if body.get("customAttributes") is not None:
                entity.custom = body["customAttributes"]
            self.posted.append(name)
        for body, _ in found:
            guid = assigned[body["guid"]]
            values = {**body["attributes"], **body.get("relationshipAttributes", {})}
            for key, (relation, end) in self._ends.items():
                if key in values:
                    others = {
                        assigned.get(other := self._guid(each), other): each
                        for each in _listed(values[key])
                    }
                    self._relate(relation, end, guid, others)
        return {"guidAssignments": {key: guid for key, guid in assigned.items() if key[0] == "-"}}

    def _check_labels(self, labels: Any) -> None:
        for label in labels:
            if not _LABEL.fullmatch(label):
                raise _Refused(400, f"Invalid label: {label}")

    def _references(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        values = {**body["attributes"], **body.get("relationshipAttributes", {})}
        return [each for key in self._ends if key in values for each in _listed(values[key])]

    def _guid(self, reference: dict[str, Any]) -> str:
        if "guid" in reference:
            return str(reference["guid"])
        name = reference["typeName"], reference["uniqueAttributes"]["qualifiedName"]
        if name not in self._active:
            raise _Refused(404, f"Instance {name[0]} with {name[1]} does not exist")
        return self._active[name]

    def _relate(self, name: str, end: int, guid: str, others: dict[str, dict[str, Any]]) -> None:
        there = [
            each
            for each in self.relations.get(guid, ())
            if each.name == name and each.ends[end] == guid and each.status == "ACTIVE"
        ]
        for each in there:
            if each.ends[1 - end] not in others:
                each.status = "DELETED"
        known = {each.ends[1 - end] for each in there}
        for other, reference in others.items():
            ends = (guid, other) if end == 0 else (other, guid)
            if other not in known and not self._between(name, ends, "DELETED"):
                relation = StubRelation(name, ends)
                values = reference.get("relationshipAttributes") or {}
                relation.attributes = values.get("attributes") or {}
                for one in set(ends):
                    self.relations.setdefault(one, []).append(relation)

    def _relation(self, guid: str) -> StubRelation:
        relations = (each for some in self.relations.values() for each in some)
        return next(each for each in relations if each.guid == guid)

    def _between(self, name: str, ends: tuple[str, str], status: str) -> bool:
        return any(
            (each.name, each.ends, each.status) == (name, ends, status)
            for each in self.relations.get(ends[0], ())
        )

    def _classification(self, guid: str, body: dict[str, Any]) -> dict[str, Any]:
        return {"propagate": True, "removePropagationsOnEntityDelete": False, **body,
                "entityGuid": guid}  # fmt: skip

    def _classify(self, headers: dict[str, Any]) -> list[str]:
        lines = []
        for header in headers.values():
            guid = self._active.get((header["typeName"], header["attributes"]["qualifiedName"]))
            if guid is None:
                lines.append(f"Entity:{header['typeName']}:[Not found]:(Skipped)")
                continue
            known = [
                each
                for each in header["classifications"]
                if self.categories.get(each["typeName"]) == "CLASSIFICATION"
            ]
            lines += [
                f"Add:{guid} -> {each['typeName']}:({'Done' if each in known else 'Partial'})"
                for each in header["classifications"]
            ]
            self.entities[guid].classifications = [self._classification(guid, e) for e in known]
        return lines

    def _delete(self, guids: list[str]) -> dict[str, Any]:
        for guid in guids:
            if guid in self.entities:
                self._delete_one(self.entities[guid])
        return {"mutatedEntities": {"DELETE": guids}}

    def _delete_one(self, entity: StubEntity) -> None:
        if entity.status == "DELETED":
            return
        entity.status, entity.updated = "DELETED", next(self._clock)
        entity.events.append((entity.updated, "ENTITY_DELETE"))
        self._active.pop((entity.type, entity.attributes["qualifiedName"]), None)
        for relation in self.relations.get(entity.guid, ()):
            relation.status = "DELETED"
            if relation.name in _OWNING and relation.ends[0] == entity.guid:
                self._delete_one(self.entities[relation.ends[1]])

    def _purge(self, guids: list[str]) -> dict[str, Any]:
        purged = [guid for guid in guids if guid in self.entities
                  and self.entities[guid].status == "DELETED"]  # fmt: skip
        for guid in purged:
            del self.entities[guid]
            for relation in self.relations.pop(guid, ()):
                for other in relation.ends:
                    if other in self.relations:
                        self.relations[other].remove(relation)
        return {"mutatedEntities": {"PURGE": purged}}

    def state(self) -> Any:
        """All active entities and their active relations, without GUIDs and times."""
        return {
            _title(each): (
                {name: value for name, value in each.attributes.items() if value not in (None, [])},
                sorted(row["typeName"] for row in each.classifications),
                each.labels,
                each.custom,
                each.business,
                sorted(
                    (relation.name, *(_title(self.entities[guid]) for guid in relation.ends))
                    for relation in self.relations.get(each.guid, ())
                    if relation.status == "ACTIVE"
                ),
            )
            for each in self.entities.values()
            if each.status == "ACTIVE"
        }

    def saved(self) -> Any:
        """A copy of all that it holds, for `restore`."""
        held = (self.definitions, self.categories, self.entities, self.relations, self._active)
        return copy.deepcopy(held)

    def restore(self, saved: Any) -> None:
        (self.definitions, self.categories, self.entities, self.relations,
         self._active) = copy.deepcopy(saved)  # fmt: skip


def _title(entity: StubEntity) -> str:
    return f"{entity.type} {entity.attributes['qualifiedName']}"
