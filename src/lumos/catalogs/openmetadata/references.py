"""Converts the references in records to names, and back to identifiers on another server.

Missing users, labels, domains and parents of an entity are created. References to other missing
entities are omitted, and added once these entities exist. `rename_record` replaces names in a
record by new ones.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from threading import RLock
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from lumos.catalogs.interface import NewNames
from lumos.catalogs.openmetadata.index import Index
from lumos.catalogs.openmetadata.kinds import (
    CATALOG,
    DATASET,
    FREE_FORM,
    KINDS,
    EntityKind,
    Record,
    is_same,
    locate,
    service_type,
    urn_of,
)
from lumos.catalogs.openmetadata.labels import (
    PLACEHOLDER_TEXT,
    OpenMetadataLabels,
    domain_fqn,
    domain_of,
    tag_fqn,
    tag_of,
    team_name,
    term_fqn,
    term_of,
    user_name,
)
from lumos.catalogs.openmetadata.lineage import portable_details
from lumos.catalogs.openmetadata.names import (
    DATASET_TYPES,
    LUMOS_SERVICE,
    EntityLocation,
    decode_name,
    is_dataset_urn,
    is_same_text,
    join_fqn,
    split_fqn,
)
from lumos.catalogs.openmetadata.server import CustomProperties, Server
from lumos.catalogs.openmetadata.states import Operation, extension_operations, is_direct_label
from lumos.errors import CatalogError
from lumos.model.dataset import Owner
from lumos.model.urn import Urn

Reference: TypeAlias = dict[str, str]

_FQN: Final = "fullyQualifiedName"
# Derived edges, such as those of features of a model, have no details.
_DEFAULT_DETAILS: Final = MappingProxyType({"source": "Manual"})
_TIME_FIELDS: Final = frozenset({"startDate"})
_DETAILS: Final = ("source", "sqlQuery", "description")
_INTERNAL: Final = 500


class EdgeStart(NamedTuple):
    """The upstream entity of an edge, and the parts of its qualified name on this server."""

    reference: Reference
    parts: tuple[str, ...]


class References:
    """Resolves the references in records of one server."""

    def __init__(
        self, server: Server, labels: OpenMetadataLabels, properties: CustomProperties, index: Index
    ) -> None:
        self.server = server
        self.labels = labels
        self.properties = properties
        self.index = index
        self._found: dict[tuple[str, str], Reference] = {}
        self._resolved_names: dict[tuple[str, str], str] = {}
        self._names: dict[str, str | None] = {}
        self.missing: set[tuple[str, str]] = set()
        """References that could not be resolved; cleared by the caller."""
        self._lock = RLock()

    def clear_cache(self) -> None:
        with self._lock:
            self._found.clear()
            self._names.clear()

    # From this server

    def portable(self, value: Any) -> Any:
        """Replace the identifiers in a value by names, and the names of datasets by URNs."""
        match value:
            case {"type": str(type), "id": str(id)} if len(value) == 2:
                fqn = self._fqn_of(type, id)
                return {} if fqn is None else self.portable({"type": type, _FQN: fqn})
            case {"type": str(type), "fullyQualifiedName": str(fqn)} if (
                len(value) == 2 and type in DATASET_TYPES
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

    def _urn(self, entity_type: str, fqn: str) -> str:
        return str(self.index.names.urn(EntityLocation(entity_type, split_fqn(fqn))))

    def _fqn_of(self, type: str, id: str) -> str | None:
        if id not in self._names:
            known = DATASET_TYPES.get(type) or KINDS.get(type)
            entity = known and self.server.get(f"{known.route}/{id}", include="all")
            self._names[id] = entity[_FQN] if entity else None
        return self._names[id]

    def edges(self, type: str, entity: Mapping[str, Any]) -> list[Record]:
        edges = []
        for node, details in self.server.upstream_edges(type, entity["id"]):
            parts = split_fqn(node[_FQN])
            if parts[0] != LUMOS_SERVICE:
                to_urn = self._urn if node["type"] in DATASET_TYPES else urn_of
                portable = portable_details(
                    details or _DEFAULT_DETAILS, parts, split_fqn(entity[_FQN])
                )
                edges.append({"from": to_urn(node["type"], node[_FQN]), **portable})
        return sorted(edges, key=lambda each: str(each["from"]))

    # To this server

    def find(self, type: str, fqn: str) -> Reference | None:
        """Find an entity by type and qualified name, and create it if possible."""
        with self._lock:
            if (type, fqn) not in self._found:
                if (reference := self._look_up(type, fqn)) is None:
                    self.missing.add((type, fqn))
                    return None
                self._found[type, fqn] = reference
            return self._found[type, fqn]

    def _look_up(self, type: str, wanted_fqn: str) -> Reference | None:
        fqn = wanted_fqn
        match type:
            case "dataset":
                return self._dataset(fqn)
            case "user" | "team":
                kind: Any = "group" if type == "team" else "user"
                owner = Owner(name=decode_name(split_fqn(fqn)[0]), kind=kind)
                self.labels.ensure(owners=[owner])
                return {"id": self.labels.owner(owner)["id"], "type": type}
            case "tag":
                fqn = self.labels.find("Classification", fqn) or fqn
            case "glossaryTerm":
                fqn = self.labels.find("Glossary", fqn) or fqn
            case "domain":
                parts = split_fqn(fqn)
                if len(parts) == 1 or self.find(type, join_fqn(*parts[:-1])) is None:
                    self.labels.ensure(domains=[domain_of({_FQN: fqn})])
                    fqn = self.labels.domain(domain_of({_FQN: fqn}))[_FQN]
                else:
                    self._parent_fields(KINDS[type], join_fqn(fqn, "x"), {})
        if (spec := KINDS.get(type)) is None:
            return None
        existing = self.server.named(spec.route, fqn)
        if existing is None:
            return None
        if fqn != wanted_fqn:
            self._resolved_names[type, wanted_fqn] = fqn
        return {"id": existing["id"], "type": type}

    def _dataset(self, urn: str) -> Reference | None:
        location = self.index.locate(urn)
        entity = None if location is None else self.index.find(location)
        return None if entity is None else entity.reference

    def body(self, spec: EntityKind, fqn: str, record: Record) -> Record:
        """The request that creates an entity; its parents are created first."""
        body = {
            "name": split_fqn(fqn)[-1],
            **spec.required,
            **self._parent_fields(spec, fqn, record),
        }
        for field in spec.fields:
            value = self._resolvable_field(field, record)
            if value in (None, [], {}) or field in spec.patch_only:
                continue
            match spec.references.get(field):
                case "name":
                    body[field] = _qualified_names(value)
                case "id":
                    body[field] = [each["id"] for each in self._encode(field, value)]
                case _:
                    body[field] = self._encode(field, value)
        if extension := self._extension(spec, record, {}):
            body["extension"] = extension
        return body

    def _parent_fields(self, spec: EntityKind, fqn: str, record: Record) -> Record:
        """The fields that refer to the parents of an entity."""
        parts = split_fqn(fqn)
        fields: Record = {}
        for field, type in spec.parents:
            if field == "parent" and len(parts) <= len(spec.parents):
                continue
            is_top_parent = type.endswith("Service") or (
                field != "parent" and len(spec.parents) > 1
            )
            parent = join_fqn(*(parts[:1] if is_top_parent else parts[:-1]))
            if (type, parent) not in self._found:
                self._ensure_parent(spec, type, parent, record)
            fields[field] = parent
        return fields

    def _ensure_parent(self, spec: EntityKind, type: str, fqn: str, record: Record) -> None:
        """Create a parent of an entity if it is missing."""
        existing = self.server.named(KINDS[type].route, fqn)
        if existing is None:
            body = {
                "name": split_fqn(fqn)[-1],
                **KINDS[type].required,
                "description": PLACEHOLDER_TEXT,
            }
            body |= self._parent_fields(KINDS[type], fqn, {})
            if KINDS[type].is_service:
                body["serviceType"] = record.get("serviceType") or service_type(
                    spec, join_fqn(split_fqn(fqn)[0], "x")
                )
                self.index.clear_services()
            existing = self.server.put(KINDS[type].route, body)
        self._found[type, fqn] = {"id": existing["id"], "type": type}

    def operations(
        self, spec: EntityKind, entity: Mapping[str, Any], existing: Record, wanted: Record
    ) -> list[Operation]:
        """The patch operations that change a record to the wanted one, if this server allows it."""
        operations: list[Operation] = []
        for field in spec.fields:
            old, new = existing.get(field), self._resolvable_field(field, wanted)
            new = None if new in ([], {}, "") else new
            is_text = field == "description" and is_same_text(old, new)
            if is_text or is_same(old, new) or field in ("displayName", "email", "serviceType"):
                continue
            value = self._encode(field, new)
            if field == "tags":
                others = [each for each in entity.get("tags") or () if not is_direct_label(each)]
                value = [*(value or ()), *others]
            if value is None and (isinstance(old, list) or field in spec.required):
                value = [] if isinstance(old, list) else spec.required[field]
            operation: Operation = {"op": "remove", "path": f"/{field}"}
            if value is not None:
                operation = {"op": "add", "path": f"/{field}", "value": value}
            operations.append(operation)
        new_extension = self._extension(spec, wanted, existing)
        old_extension = existing.get("extension") or {}
        return [*operations, *extension_operations(entity, old_extension, new_extension)]

    def _extension(self, spec: EntityKind, wanted: Record, existing: Record) -> Record:
        """Remove custom properties that this server declares differently or not at all."""
        extension: Record = wanted.get("extension") or {}
        if not extension:
            return extension
        declared = wanted.get("declared")
        if isinstance(declared, dict):
            self.properties.define(spec.type, declared)
        incompatible = self.properties.incompatible(spec.type, extension, declared)
        incompatible |= extension.keys() - self.properties.declared(spec.type)
        old: Record = existing.get("extension") or {}
        accepted = {key: value for key, value in extension.items() if key not in incompatible}
        return accepted | {key: old[key] for key in incompatible if key in old}

    def _resolvable_field(self, field: str, record: Record) -> Any:
        value = record.get(field)
        if field == "tags":
            return self.labels.without_exclusive_duplicates(self._drop_unresolvable(value or []))
        return value if field in FREE_FORM else self._drop_unresolvable(value)

    def _drop_unresolvable(self, value: Any) -> Any:
        """Remove references to missing entities from a value."""
        match value:
            case {"tagFQN": str(fqn), "source": str(source)}:
                if (found := self.labels.find(source, fqn)) is None:
                    self.missing.add(("tag" if source == "Classification" else "glossaryTerm", fqn))
                    return None
                return {**value, "tagFQN": found}
            case {"type": str(type), "fullyQualifiedName": str(fqn)} if len(value) == 2:
                if self.find(type, fqn) is None:
                    return None
                return {"type": type, _FQN: self._resolved_names.get((type, fqn), fqn)}
            case {"relationType": _, "term": term}:
                resolvable = self._drop_unresolvable(term)
                return None if resolvable is None else {**value, "term": resolvable}
            case dict():
                values = {key: self._drop_unresolvable(each) for key, each in value.items()}
                return {key: each for key, each in values.items() if each is not None}
            case list():
                resolved = (self._drop_unresolvable(each) for each in value)
                return [each for each in resolved if each is not None]
            case _:
                return value

    def _encode(self, field: str, value: Any) -> Any:
        """Encode a value with the identifiers of this server."""
        if field in FREE_FORM:
            return value
        match value:
            case {"type": str(type), "fullyQualifiedName": str(fqn)} if len(value) == 2:
                return self.find(type, fqn)
            case dict():
                return {key: self._encode(key, each) for key, each in value.items()}
            case list():
                return [self._encode(field, each) for each in value]
            case int() if field in _TIME_FIELDS:
                return datetime.fromtimestamp(value / 1000, UTC).isoformat().replace("+00:00", "Z")
            case _:
                return value

    def write_edges(
        self, type: str, entity: Mapping[str, Any], existing: Record, wanted: Record
    ) -> bool:
        """Replace the upstream edges of an entity by those of a record; return if any changed."""
        old, new = ({each["from"]: each for each in _edges(side)} for side in (existing, wanted))
        downstream = {"id": entity["id"], "type": type}
        parts = split_fqn(entity[_FQN])
        is_changed = False
        for name, edge in new.items():
            start = self.edge_start(name)
            if old.get(name) != edge and start is not None:
                self.link(start[0], downstream, self.encode_details(edge, start[1], parts))
                is_changed = True
        for name in old.keys() - new.keys():
            if (start := self.edge_start(name)) is not None:
                is_changed = self.server.delete_edge(start[0], downstream) or is_changed
        return is_changed

    def edge_start(self, name: str) -> EdgeStart | None:
        """The upstream entity of an edge, or None."""
        type, fqn = (DATASET, name) if is_dataset_urn(name) else locate(name) or ("", "")
        if not type or (reference := self.find(type, fqn)) is None:
            return None
        is_dataset = type == DATASET
        parts = self.index.names.locate(Urn.parse(name)).parts if is_dataset else split_fqn(fqn)
        return EdgeStart(reference, parts)

    def link(self, upstream: Reference, downstream: Reference, details: Record) -> None:
        try:
            self.server.put_edge(upstream, downstream, details)
        except CatalogError as problem:
            # Without its search engine, the server fails after it has written the edge.
            if problem.status != _INTERNAL:
                raise

    def encode_details(
        self, edge: Mapping[str, Any], upstream: tuple[str, ...], downstream: tuple[str, ...]
    ) -> Record:
        """The details of an edge, with the names of columns on this server."""
        details: Record = {key: edge[key] for key in _DETAILS if key in edge}
        pipeline = self._drop_unresolvable(edge.get("pipeline"))
        if pipeline:
            details["pipeline"] = self._encode("pipeline", pipeline)
        details["columnsLineage"] = [
            {
                **line,
                "fromColumns": [
                    join_fqn(*upstream, *split_fqn(each)) for each in line["fromColumns"]
                ],
                "toColumn": join_fqn(*downstream, *split_fqn(line["toColumn"])),
            }
            for line in edge.get("columns") or ()
        ]
        return details


def _qualified_names(value: Any) -> Any:
    """The qualified names of references, for a request that creates an entity."""
    if isinstance(value, list):
        return [_qualified_names(each) for each in value]
    return value.get("term", value)[_FQN]


def _edges(record: Record) -> Iterable[Record]:
    return [each for each in record.get("edges") or () if isinstance(each, dict)]


# Free-form values: never renamed, even if they look like a qualified name.
_FREE_FORM_KEYS: Final = FREE_FORM | {"extension", "declared", _FQN}


def rename_record(record: Record, names: NewNames) -> Record:
    """Replace the names that a record of an entity or dataset refers to by new ones."""
    renamed = {
        key: value if key in _FREE_FORM_KEYS else _rename_value(value, names)
        for key, value in record.items()
    }
    match renamed.get("edges"):
        case list() as edges:
            new_edges = [
                {**edge, "from": _rename_upstream(edge["from"], names)}
                if isinstance(edge, dict) and isinstance(edge.get("from"), str)
                else edge
                for edge in edges
            ]
            renamed["edges"] = sorted(
                new_edges,
                key=lambda edge: str(edge.get("from", "")) if isinstance(edge, dict) else "",
            )
        case dict() as edges:
            # Records of datasets have edges by upstream URN.
            renamed["edges"] = {_rename_upstream(urn, names): edge for urn, edge in edges.items()}
    return renamed


def _rename_upstream(urn: str, names: NewNames) -> str:
    return urn if urn.startswith(f"{CATALOG}:") else names.dataset(urn)


def _rename_value(value: Any, names: NewNames) -> Any:
    match value:
        case {"tagFQN": str(fqn), "source": str(source)}:
            return {**value, "tagFQN": _rename_label(source, fqn, names)}
        case {"type": str(type), "fullyQualifiedName": str(fqn)} if len(value) == 2:
            return {"type": type, _FQN: _rename_reference(type, fqn, names)}
        case dict():
            return {key: _rename_value(each, names) for key, each in value.items()}
        case list():
            renamed: list[Any] = []
            for each in value:
                new = _rename_value(each, names)
                # Drop duplicates that the renaming creates.
                if new == each or new not in renamed:
                    renamed.append(new)
            return renamed
        case _:
            return value


def _rename_label(source: str, fqn: str, names: NewNames) -> str:
    label = {"tagFQN": fqn, "source": source}
    tag, term = tag_of(label), term_of(label)
    if tag is not None and tag in names.tags:
        return tag_fqn(names.tags[tag])
    if term is not None and term in names.terms:
        return term_fqn(names.terms[term])
    return fqn


def _rename_reference(type: str, fqn: str, names: NewNames) -> str:
    match type:
        case "dataset":
            return names.dataset(fqn)
        case "user" | "team":
            name = decode_name(split_fqn(fqn)[0])
            if name not in names.owners:
                return fqn
            escape_name = team_name if type == "team" else user_name
            return join_fqn(escape_name(names.owners[name]))
        case "tag":
            return _rename_label("Classification", fqn, names)
        case "glossaryTerm":
            return _rename_label("Glossary", fqn, names)
        case "domain" if (name := domain_of({_FQN: fqn})) in names.domains:
            return domain_fqn(names.domains[name])
        case _:
            return fqn
