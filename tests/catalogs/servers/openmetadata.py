"""A stub of OpenMetadata's REST interface, kept in memory.

It answers the documented routes as a server of release 1.13.4 was seen to answer them, and refuses
what the published JSON schemas refuse. A round trip through it proves no more than that. With
`version` 2.0.0 it answers patches that do not fit, and names, as the source of that release says.

    stub = Openmetadata(specification())
    with Server(stub) as server:
        ... server.address, stub.BOT ...
        assert stub.violations == []
"""

import base64
import re
import sys
import uuid
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from lumos.catalogs.rest import version_numbers

from .http import Answer, Request, Server, serve
from .openmetadata_columns import all_columns, columns_in
from .openmetadata_estate import Estate
from .openmetadata_kinds import (
    KINDS,
    ROUTES,
    UNLISTED,
    UNLISTED_LABELS,
    Entity,
    FailedEntry,
    Kind,
    Writer,
)
from .openmetadata_texts import PatchFailed, patched
from .spec import Specification, specification

BOT: Final = "token-of-the-bot"
HUMAN: Final = "token-of-a-human"
_WRITERS: Final = {BOT: Writer("ingestion-bot"), HUMAN: Writer("admin")}
_BASE: Final = "/api/v1/"
_MOST: Final = 1_000_000
_WINDOW: Final = 10_000
_NUL: Final = b"\\u0000"
_JSON_PATCH: Final = "application/json-patch+json"
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAMES: Final = {1: r"((?!::).)*", 2: r'((?!::)[^>"\x00-\x1f])*'}
# Where lists may be narrowed down: the parameter and the field that it is about.
_NARROWED: Final = ("service", "database", "databaseSchema", "parent", "glossary", "classification")


class Openmetadata:
    """The stub; without a specification it takes any body, which is faster."""

    def __init__(
        self, specification: Specification | None = None, *, version: str = "1.13.4"
    ) -> None:
        self.version = version
        self.specification = specification
        self.is_searchable = True
        self.may_write = True
        self.violations: list[str] = []
        self.empty()

    def empty(self) -> None:
        """Makes it a catalog that nobody has worked with yet."""
        self.estate = Estate()
        self._types = {
            name: str(uuid.uuid4()) for name in (*KINDS, "string", "markdown", "integer")
        }

    def entities(self, type: str) -> list[dict[str, Any]]:
        """All entities of a type, whole, for a test to look at."""
        return [self.estate.told(each) for each in self.estate.listed(type)]

    def __call__(self, request: Request) -> Answer:
        if not request.path.startswith(_BASE):
            return _refusal(FailedEntry(404, "HTTP 404 Not Found"))
        try:
            writer = _writer(request)
            return self._answer(request, request.path.removeprefix(_BASE), writer)
        except FailedEntry as refused:
            return _refusal(refused)

    def _answer(self, request: Request, path: str, writer: Writer) -> Answer:
        for pattern, methods in _ROUTES:
            if match := pattern.fullmatch(path):
                if request.method not in methods:
                    raise FailedEntry(405, "HTTP 405 Method Not Allowed")
                parts = {key: unquote(value) for key, value in match.groupdict().items() if value}
                _check_body(request)
                return methods[request.method](self, request, writer, **parts)
        raise FailedEntry(404, "HTTP 404 Not Found")

    # The server itself

    def _version(self, _request: Request, _writer: Writer) -> Answer:
        return Answer.of({"version": self.version, "revision": "stub", "timestamp": 0})

    def _me(self, _request: Request, writer: Writer) -> Answer:
        return Answer.of(self.estate.told(self.estate.named("user", writer)))

    def _permissions(self, _request: Request, _writer: Writer, resource: str) -> Answer:
        access = "allow" if self.may_write else "notAllow"
        operations = ("Create", "Delete", "EditAll", "ViewAll")
        permissions = [
            {"operation": each, "access": "allow" if each == "ViewAll" else access}
            for each in operations
        ]
        return Answer.of({"resource": resource, "permissions": permissions})

    def _search(self, request: Request, _writer: Writer) -> Answer:
        first, size = (int(request.query.get(key, "0")) for key in ("from", "size"))
        if first + size > _WINDOW:
            raise FailedEntry(500, f"Result window is too large, from + size must be less than or equal to: [{_WINDOW}]")  # fmt: skip
        return Answer.of({"hits": {"hits": [], "total": {"value": 0}}})

    def _type(self, request: Request, _writer: Writer, name: str) -> Answer:
        if name not in self._types or (name in KINDS and not KINDS[name].extends):
            raise FailedEntry(404, f"type instance for {name} not found")
        told: dict[str, Any] = {"id": self._types[name], "name": name}
        if "customProperties" in request.query.get("fields", "") and name in KINDS:
            names = {id: name for name, id in self._types.items()}
            told["customProperties"] = [
                {
                    **each,
                    "propertyType": {
                        **each["propertyType"],
                        "name": names[each["propertyType"]["id"]],
                    },
                }
                for each in self.estate.properties[name].values()
            ]
        return Answer.of(told)

    def _declare(self, request: Request, _writer: Writer, id: str) -> Answer:
        self._hold_against("type/customProperty.json", request.json)
        name = next((name for name, each in self._types.items() if each == id), None)
        if name is None:
            raise FailedEntry(404, f"type instance for {id} not found")
        self.estate.properties[name][request.json["name"]] = request.json
        if request.json["propertyType"]["id"] == self._types["integer"]:
            self.estate.numbers.add((name, request.json["name"]))
        return Answer.of({"id": id, "name": name})

    # Entities

    def _list(self, request: Request, _writer: Writer, route: str) -> Answer:
        kind, query = ROUTES[route], request.query
        limit = int(query.get("limit", "10"))
        if not 0 <= limit <= _MOST:
            raise FailedEntry(400, f"[query param limit must be less than or equal to {_MOST}]")
        fields, include = _fields(kind, request), query.get("include", "non-deleted")
        page: list[Entity] = []
        total = 0
        after = _cursor(query.get("after"))
        wanted = _narrowed(query)
        for each in self.estate.listed(kind.type):
            if include != "all" and each.deleted is not (include == "deleted"):
                continue
            if wanted and not wanted(each):
                continue
            total += 1
            if len(page) <= limit and (after is None or (each.name, each.id) > after):
                page.append(each)
        paging: dict[str, Any] = {"total": total}
        if len(page) > limit:
            page = page[:limit]
            # The last page names none.
            if page:
                paging["after"] = _opaque(page[-1])
        data = [_as_listed(kind.type, self.estate.told(each, fields)) for each in page]
        return Answer.of({"data": data, "paging": paging})

    def _put(self, request: Request, writer: Writer, route: str) -> Answer:
        entity, is_new = self._made(ROUTES[route], request.json, writer)
        return Answer.of(self.estate.told(entity), 201 if is_new else 200)

    def _post(self, request: Request, writer: Writer, route: str) -> Answer:
        before = len(list(self.estate.listed(ROUTES[route].type)))
        entity, is_new = self._made(ROUTES[route], request.json, writer)
        if not is_new and before:
            raise FailedEntry(409, "Entity already exists")
        return Answer.of(self.estate.told(entity), 201)

    def _bulk(self, request: Request, writer: Writer, route: str) -> Answer:
        kind = ROUTES[route]
        if not kind.bulk:
            raise FailedEntry(405, "HTTP 405 Method Not Allowed")
        passed, failed = [], []
        for body in request.json:
            try:
                entity, is_new = self._made(kind, body, writer)
                if is_new and kind.type == "container":
                    for column in all_columns(entity.facts):
                        column["tags"] = []
                passed.append({"request": entity.fqn, "status": 200})
            except FailedEntry as refused:
                failed.append({"request": body, "message": refused.message, "status": 400})
        status = "success" if not failed else "partialSuccess" if passed else "failure"
        return Answer.of(
            {
                "status": status,
                "numberOfRowsProcessed": len(request.json),
                "numberOfRowsPassed": len(passed),
                "numberOfRowsFailed": len(failed),
                "successRequest": passed,
                "failedRequest": failed,
            }
        )

    def _made(self, kind: Kind, body: Any, writer: Writer) -> tuple[Entity, bool]:
        if not isinstance(body, dict):
            raise FailedEntry(400, "Invalid request format")
        self._check_name(body.get("name"))
        self._hold_against(kind.create, body)
        return self.estate.put(kind.type, body, writer)

    def _check_name(self, name: Any) -> None:
        if not isinstance(name, str):
            raise FailedEntry(400, "[query param name must not be null]")
        if not 1 <= len(name.encode("utf-16-le")) // 2 <= 256:
            raise FailedEntry(400, "[query param name size must be between 1 and 256]")
        pattern = _NAMES[version_numbers(self.version)[0]]
        if not re.fullmatch(pattern, name):
            raise FailedEntry(400, f'[query param name must match "^{pattern}$"]')

    def _get(self, request: Request, _writer: Writer, route: str, **key: str) -> Answer:
        kind = ROUTES[route]
        fields = _fields(kind, request)
        return Answer.of(self.estate.told(self._found(request, route, **key), fields))

    def _patch(self, request: Request, writer: Writer, route: str, **key: str) -> Answer:
        entity = self._found(request, route, **key)
        document = self.estate.told(entity)
        # Not among what the server reads before it applies a patch: gone unless the patch says it.
        document.pop("schemaDefinition", None)
        document = self._patched(request, document)
        for field in {each["path"].split("/")[1] for each in request.json if each["op"] != "test"}:
            if self.specification is not None and field in document:
                value = _as_sent(document[field])
                complaint = self.specification.complaint_of_field(entity.kind.entity, field, value)
                self._complain(complaint)
        self.estate.patch(entity, document, writer)
        return Answer.of(self.estate.told(entity))

    def _patched(self, request: Request, document: Any) -> Any:
        if request.headers.get("Content-Type") != _JSON_PATCH:
            raise FailedEntry(415, "HTTP 415 Unsupported Media Type")
        try:
            return patched(document, request.json)
        except PatchFailed as failed:
            if version_numbers(self.version) >= (2,):
                raise FailedEntry(400, str(failed)) from None
            raise FailedEntry(
                500,
                f"An exception with message [{failed}] was thrown while processing request.",
                "UNHANDLED_SERVER_EXCEPTION",
            ) from None

    def _delete(self, request: Request, _writer: Writer, route: str, **key: str) -> Answer:
        hard, recursive = (
            request.query.get(name) == "true" for name in ("hardDelete", "recursive")
        )
        entity = self._found(request, route, include="all", **key)
        self.estate.delete(entity, hard=hard, recursive=recursive)
        return Answer.of(self.estate.told(entity))

    def _restore(self, request: Request, _writer: Writer, route: str) -> Answer:
        self._hold_against("api/data/restoreEntity.json", request.json)
        entity = self.estate.with_id(ROUTES[route].type, request.json["id"], include="all")
        if not entity.deleted:
            raise FailedEntry(500, 'An exception with message [Cannot invoke "PutResponse.getEntity()" because "response" is null] was thrown while processing request.', "UNHANDLED_SERVER_EXCEPTION")  # fmt: skip
        self.estate.restore(entity)
        return Answer.of(self.estate.told(entity))

    def _found(
        self,
        request: Request,
        route: str,
        id: str | None = None,
        name: str | None = None,
        include: str | None = None,
    ) -> Entity:
        type = ROUTES[route].type
        include = include or request.query.get("include", "non-deleted")
        if name is not None:
            return self.estate.named(type, name, include=include)
        assert id is not None
        return self.estate.with_id(type, id, include=include)

    # Lineage

    def _link(self, request: Request, writer: Writer) -> Answer:
        self._hold_against("api/lineage/addLineage.json", request.json)
        edge = request.json["edge"]
        ends = [self.estate.with_id(edge[key]["type"], edge[key]["id"]) for key in ("fromEntity", "toEntity")]  # fmt: skip
        details = edge.get("lineageDetails") or {}
        self._lay(ends[0], ends[1], details, writer)
        if not self.is_searchable:
            raise FailedEntry(500, "Connect to the search engine failed")
        return Answer(200)

    def _lay(self, source: Entity, target: Entity, said: dict[str, Any], writer: Writer) -> None:
        """Keeps what can be kept of an edge; unknown columns go without a word."""
        known = columns_in(source) | columns_in(target)
        columns = [
            {**each, "fromColumns": left}
            for each in said.get("columnsLineage") or ()
            if each.get("toColumn") in known
            and (left := [name for name in each.get("fromColumns") or () if name in known])
        ]
        if "pipeline" in said:
            said = {**said, "pipeline": self.estate.reference(said["pipeline"]["id"])}
        details = {"source": "Manual", **said, "columnsLineage": columns, "updatedBy": str(writer), "updatedAt": self.estate.moment()}  # fmt: skip
        self.estate.link(source.id, target.id, details)  # fmt: skip

    def _edge(self, _request: Request, _writer: Writer, source: str, target: str) -> Answer:
        return Answer.of({"edge": self._details(source, target)})

    def _details(self, source: str, target: str) -> dict[str, Any]:
        if (source, target) not in self.estate.edges:
            raise FailedEntry(404, f"Lineage edge not found between {source} and  {target}")
        return self.estate.edges[source, target]

    def _patch_edge(self, request: Request, writer: Writer, **ends: str) -> Answer:
        source, target = (
            self.estate.with_id(ends[f"{end}_type"], ends[end]) for end in ("source", "target")
        )
        said = msgspec.json.decode(msgspec.json.encode(self._details(source.id, target.id)))
        said = self._patched(request, said)
        self._hold_against("type/entityLineage.json#/definitions/lineageDetails", said)
        self._lay(source, target, said, writer)
        return Answer.of(self.estate.edges[source.id, target.id])

    def _unlink(self, _request: Request, _writer: Writer, **ends: str) -> Answer:
        self._details(ends["source"], ends["target"])
        self.estate.unlink(ends["source"], ends["target"])
        return Answer(200)

    def _lineage(self, request: Request, _writer: Writer, type: str, **key: str) -> Answer:
        entity = self.estate.named(type, key["name"]) if "name" in key else self.estate.with_id(type, key["id"])  # fmt: skip
        edges = {
            field: [
                {
                    "fromEntity": source,
                    "toEntity": target,
                    "lineageDetails": self.estate.edges[source, target],
                }
                for source, target in self.estate.edges_of(entity)
                if (source, target)[end] == entity.id and request.query.get(depth, "1") != "0"
            ]
            for field, end, depth in (
                ("upstreamEdges", 1, "upstreamDepth"),
                ("downstreamEdges", 0, "downstreamDepth"),
            )
        }
        ids = {edge["fromEntity"] for edge in edges["upstreamEdges"]}
        ids |= {edge["toEntity"] for edge in edges["downstreamEdges"]}
        nodes = [self.estate.reference(id) for id in sorted(ids - {entity.id})]
        return Answer.of({"entity": entity.reference, "nodes": nodes, **edges})

    # Schemas

    def _hold_against(self, schema: str, body: Any) -> None:
        if self.specification is not None:
            self._complain(self.specification.complaint(schema, body))

    def _complain(self, complaint: str | None) -> None:
        if complaint is not None:
            self.violations.append(complaint)
            raise FailedEntry(400, f"Invalid request format: {complaint}")


def _writer(request: Request) -> Writer:
    token = request.headers.get("Authorization")
    if token is None:
        raise FailedEntry(401, "Not Authorized! Token not present")
    writer = _WRITERS.get(token.removeprefix("Bearer "))
    if writer is None:
        raise FailedEntry(401, "Not Authorized! Invalid token.")
    return writer


def _check_body(request: Request) -> None:
    if not request.body:
        return
    try:
        body = request.json
    except ValueError as problem:
        raise FailedEntry(400, str(problem)) from None
    if _NUL in request.body and _holds_nul(body):
        raise FailedEntry(500, "An exception with message [org.postgresql.util.PSQLException: ERROR: unsupported Unicode escape sequence] was thrown while processing request.", "UNHANDLED_SERVER_EXCEPTION")  # fmt: skip


def _holds_nul(value: Any) -> bool:
    match value:
        case str():
            return "\0" in value
        case dict():
            is_description = str(value.get("path", "")) == "/description"
            return any(
                _holds_nul(each)
                for key, each in value.items()
                if key != "description" and not (is_description and key == "value")
            )
        case list():
            return any(map(_holds_nul, value))
        case _:
            return False


def _refusal(refused: FailedEntry) -> Answer:
    body: dict[str, Any] = {"code": refused.status, "message": refused.message}
    if refused.kind is not None:
        body["errorType"] = refused.kind
    return Answer.of(body, refused.status)


def _fields(kind: Kind, request: Request) -> frozenset[str]:
    fields = frozenset(filter(None, request.query.get("fields", "").split(",")))
    if unknown := sorted(fields - kind.fields):
        raise FailedEntry(400, f"Invalid field name {unknown[0]}")
    return fields


def _as_sent(value: Any) -> Any:
    """A value of a patched document without what only answers tell."""
    match value:
        case dict() if "tagFQN" in value:
            return {key: each for key, each in value.items() if key not in ("name", "appliedBy")}
        case dict():
            return {key: _as_sent(each) for key, each in value.items()}
        case list():
            return [_as_sent(each) for each in value]
        case _:
            return value


def _as_listed(type: str, told: dict[str, Any]) -> dict[str, Any]:
    """An entity as lists tell it, which leave some things out."""
    if type in UNLISTED:
        told.pop(UNLISTED[type], None)
    if type in UNLISTED_LABELS:
        held = told.get(UNLISTED_LABELS[type]) or []
        for field in held if isinstance(held, list) else held.get("schemaFields") or []:
            field.pop("tags", None)
    return told


def _narrowed(query: dict[str, str]) -> Callable[[Entity], bool] | None:
    asked = {key: query[key] for key in _NARROWED if key in query}
    if query.get("root") == "true":
        return lambda entity: "parent" not in entity.above
    if not asked:
        return None
    return lambda entity: all(
        any(above.fqn == fqn for above in _all_above(entity)) for fqn in asked.values()
    )


def _all_above(entity: Entity) -> list[Entity]:
    found = list(entity.above.values())
    return found + [each for above in found for each in _all_above(above)]


def _opaque(entity: Entity) -> str:
    text = msgspec.json.encode({"name": entity.name, "id": entity.id})
    return base64.b64encode(text).decode()


def _cursor(after: str | None) -> tuple[str, str] | None:
    if after is None:
        return None
    try:
        found = msgspec.json.decode(base64.b64decode(after))
        return found["name"], found["id"]
    except (ValueError, KeyError, TypeError):
        raise FailedEntry(
            500, "JSON parsing failed with message [Failed to process JSON ]."
        ) from None


_ENTITY = f"(?P<route>{'|'.join(sorted(ROUTES, key=len, reverse=True))})"
_ID = rf"(?P<id>{_UUID.pattern})"
_ENDS = rf"(?P<source_type>\w+)/(?P<source>{_UUID.pattern})/(?P<target_type>\w+)/(?P<target>{_UUID.pattern})"  # fmt: skip
_Method = Callable[..., Answer]
_ROUTES: Final[list[tuple[re.Pattern[str], dict[str, _Method]]]] = [
    (re.compile(pattern), methods)
    for pattern, methods in (
        ("system/version", {"GET": Openmetadata._version}),
        ("users/loggedInUser", {"GET": Openmetadata._me}),
        (r"permissions/(?P<resource>\w+)", {"GET": Openmetadata._permissions}),
        ("search/query", {"GET": Openmetadata._search}),
        (r"metadata/types/name/(?P<name>\w+)", {"GET": Openmetadata._type}),
        (f"metadata/types/{_ID}", {"PUT": Openmetadata._declare}),
        ("lineage", {"PUT": Openmetadata._link}),
        (rf"lineage/getLineageEdge/(?P<source>{_UUID.pattern})/(?P<target>{_UUID.pattern})", {"GET": Openmetadata._edge}),
        (f"lineage/{_ENDS}", {"PATCH": Openmetadata._patch_edge, "DELETE": Openmetadata._unlink}),
        (rf"lineage/(?P<type>\w+)/(?:name/(?P<name>[^/]+)|{_ID})", {"GET": Openmetadata._lineage}),
        (_ENTITY, {"GET": Openmetadata._list, "PUT": Openmetadata._put, "POST": Openmetadata._post}),
        (f"{_ENTITY}/bulk", {"PUT": Openmetadata._bulk}),
        (f"{_ENTITY}/restore", {"PUT": Openmetadata._restore}),
        (
            f"{_ENTITY}/(?:name/(?P<name>[^/]+)|{_ID})",
            {"GET": Openmetadata._get, "PATCH": Openmetadata._patch, "DELETE": Openmetadata._delete},
        ),
    )
]  # fmt: skip


if __name__ == "__main__":
    checked = "--checked" in sys.argv[1:]
    serve(Server(Openmetadata(specification() if checked else None), recording=False))
