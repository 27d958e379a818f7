"""The OpenAPI 3.1 document, generated from the table of routes and the types of the SDK."""

import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec

from lumos.model.types import DataType
from lumos.server.routes import ROUTES, Route
from lumos.server.sdk_methods import Parameter
from lumos.server.wire import PROBLEM, REPORT_HEADER, ApiProblem, body_type
from lumos.version import __version__

_JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
_FILE_TYPES: Final = (NDJSON, _JSON, "application/yaml", "application/zstd")
_REF: Final = "#/components/schemas/{name}"
_DECIMAL: Final = {"type": "string", "format": "decimal"}
_INVALID_ID_CHARACTERS: Final = re.compile(r"[^A-Za-z0-9._-]+")
# The error statuses that any route may return.
_ERRORS: Final = (400, 401, 403, 404, 409, 422, 429, 500, 502, 503, 504)
_BODY_ERRORS: Final = (408, 413, 415)
_IF_NONE_MATCH: Final = {
    "name": "If-None-Match",
    "in": "header",
    "description": "The ETag of an earlier answer; 304 if it is still the same.",
    "schema": {"type": "string"},
}
_IF_MATCH: Final = {
    "name": "If-Match",
    "in": "header",
    "description": "The ETag of GET /api/v1/datasets/show; 412 if the dataset has changed since.",
    "schema": {"type": "string"},
}


class ExtraRoute(msgspec.Struct, frozen=True, kw_only=True):
    """A route that does not call a single method of the SDK; without a role, anyone may use it."""

    method: str
    url: str
    name: str
    summary: str
    role: str | None
    media_type: str = _JSON
    body: Any = None
    result: Any = None
    statuses: tuple[int, ...] = ()
    parameters: tuple[Mapping[str, Any], ...] = ()
    # The method or feature of the SDK behind the route, if a switch can disable it.
    sdk_path: str | None = None


def document(extra: tuple[ExtraRoute, ...], routes: tuple[Route, ...] = ROUTES) -> dict[str, Any]:
    """The OpenAPI document as JSON values."""
    schemas = _Schemas(extra, routes)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.url, {})[route.method.lower()] = _operation(route, schemas)
    for each in extra:
        paths.setdefault(each.url, {})[each.method.lower()] = _extra_operation(each, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Lumos",
            "version": __version__,
            "description": "Every answer is the value that the command prints with --json.",
        },
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": schemas.components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


class _Schemas:
    """The JSON Schemas of all types."""

    def __init__(self, extra: tuple[ExtraRoute, ...], routes: tuple[Route, ...]) -> None:
        types: list[Any] = [ApiProblem]
        for route in routes:
            types += [route.sdk_method.result, *(each.type for each in route.sdk_method.parameters)]
            if route.has_body:
                types.append(body_type(route))
        types += [each.body for each in extra if each.body is not None]
        types += [each.result for each in extra if each.result is not None]
        distinct = list({str(each): each for each in types}.values())
        generated, components = msgspec.json.schema_components(
            distinct, schema_hook=_schema_of, ref_template=_REF
        )
        schemas = {str(each): schema for each, schema in zip(distinct, generated, strict=True)}
        self._schemas: dict[str, Any] = _portable(schemas)
        self.components: dict[str, Any] = _portable(components)

    def of(self, type: Any) -> Any:
        return self._schemas[str(type)]


def _schema_of(type: type[Any]) -> dict[str, Any]:
    if type is DataType:
        return {"description": "The canonical text of a type", "type": "string"}
    raise NotImplementedError(type)


def _portable(schema: Any) -> Any:
    """Adapt generated schemas to the values that Lumos writes and to the keywords tools support.

    Decimals are numbers or texts of numbers. Tuples are arrays of a fixed length: many tools do not
    know `prefixItems`.
    """
    if isinstance(schema, list):
        return [_portable(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "prefixItems" in schema:
        members = [_portable(each) for each in schema["prefixItems"]]
        distinct = [each for at, each in enumerate(members) if each not in members[:at]]
        rest = {key: value for key, value in schema.items() if key != "prefixItems"}
        return {**rest, "items": distinct[0] if len(distinct) == 1 else {"anyOf": distinct}}
    if {key: schema.get(key) for key in _DECIMAL} == _DECIMAL:
        rest = {key: value for key, value in schema.items() if key not in _DECIMAL}
        return {**rest, "type": ["number", "string"]}
    return {key: _portable(value) for key, value in schema.items()}


def _operation(route: Route, schemas: _Schemas) -> dict[str, Any]:
    method = route.sdk_method
    summary, _, description = method.doc.partition("\n\n")
    # OpenAPI 3.1 cannot describe the lines of NDJSON or the content of files.
    schema = {"type": "string"} if _is_streamed(route) else schemas.of(method.result)
    media_types = _FILE_TYPES if route.output else (NDJSON if method.is_stream else _JSON,)
    operation: dict[str, Any] = {
        "operationId": _INVALID_ID_CHARACTERS.sub("_", method.path).replace(".", "_"),
        "summary": " ".join(summary.split()),
        "tags": [route.path.split("/")[1]],
        "x-lumos-verb": method.path,
        "x-lumos-role": route.role,
        "security": [{"token": []}],
        "parameters": list(_parameters(route, schemas)),
        "responses": {
            "200": {
                "description": "The result",
                "content": {each: {"schema": schema} for each in media_types},
                "headers": _result_headers(route),
            },
            **_problems(_ERRORS),
        },
    }
    if description:
        operation["description"] = " ".join(description.split())
    if route.method == "GET" and not _is_streamed(route):
        operation["responses"]["304"] = {"description": "The answer has not changed"}
    if route.conditional:
        operation["responses"] |= _problems((412,))
    if route.has_body:
        schema = schemas.of(body_type(route))
        operation["requestBody"] = {"required": True, "content": {_JSON: {"schema": schema}}}
        operation["responses"] |= _problems(_BODY_ERRORS)
    return operation


def _is_streamed(route: Route) -> bool:
    return route.sdk_method.is_stream or route.output is not None


def _result_headers(route: Route) -> dict[str, Any]:
    text = {"schema": {"type": "string"}}
    headers: dict[str, Any] = {"X-Request-Id": text}
    if route.output:
        headers[REPORT_HEADER] = {"description": "The report as percent-encoded JSON", **text}
    if route.method == "GET" and not _is_streamed(route):
        headers["ETag"] = text
    if route.conditional:
        headers["ETag"] = {
            "description": "With If-Match: the ETag of the dataset after this write",
            **text,
        }
    if route.page is not None:
        headers["Link"] = {"description": 'The next page: `<URL>; rel="next"`', **text}
    return headers


def _parameters(route: Route, schemas: _Schemas) -> Iterator[dict[str, Any]]:
    if not route.has_body:
        for each in route.sdk_method.parameters:
            yield _query_parameter(each, schemas)
    if route.method == "GET" and not _is_streamed(route):
        yield dict(_IF_NONE_MATCH)
    if route.conditional:
        yield dict(_IF_MATCH)


def _query_parameter(parameter: Parameter, schemas: _Schemas) -> dict[str, Any]:
    schema = schemas.of(parameter.type)
    if parameter.is_mapping:
        items = {"type": "string", "pattern": "^[^=]+="}
        schema = {"type": "array", "items": items, "description": "key=value"}
    elif "anyOf" in schema:
        # A query has no null: the parameter is omitted instead.
        options = [each for each in schema["anyOf"] if each.get("type") != "null"]
        schema = options[0] if len(options) == 1 else {"anyOf": options}
    elif isinstance(schema.get("type"), list):
        json_types = [each for each in schema["type"] if each != "null"]
        schema = {**schema, "type": json_types[0] if len(json_types) == 1 else json_types}
    if "enum" in schema:
        schema = {**schema, "enum": [each for each in schema["enum"] if each is not None]}
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.is_required,
        "schema": schema,
    }


def _extra_operation(route: ExtraRoute, schemas: _Schemas) -> dict[str, Any]:
    schema = {"type": "string"} if route.result is None else schemas.of(route.result)
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": ["lineage" if "/lineage" in route.url else "server"],
        "security": [] if route.role is None else [{"token": []}],
        "parameters": [dict(each) for each in route.parameters],
        "responses": {
            "200": {"description": "The result", "content": {route.media_type: {"schema": schema}}},
            **_problems(route.statuses),
        },
    }
    if route.role is not None:
        operation["x-lumos-role"] = route.role
        operation["responses"] |= _problems(_ERRORS)
    if route.body is not None:
        schema = schemas.of(route.body)
        operation["requestBody"] = {"required": True, "content": {_JSON: {"schema": schema}}}
        operation["responses"] |= _problems(_BODY_ERRORS)
    return operation


def _problems(statuses: tuple[int, ...]) -> dict[str, Any]:
    schema = {"$ref": _REF.format(name="ApiProblem")}
    return {
        str(status): {
            "description": HTTPStatus(status).phrase,
            "content": {PROBLEM: {"schema": schema}},
        }
        for status in statuses
    }
