"""JSON Schema (drafts 4 to 2020-12, and OpenAPI's dialect), from and to Lumos types.

| direction        | lost                                                                        |
|------------------|-----------------------------------------------------------------------------|
| from JSON Schema | patterns, numeric bounds that match no integer type, conditions (`if`, `not`) |
| from JSON Schema | additional properties next to named ones, the positions of tuple elements   |
| from JSON Schema | schemas in other documents: UNKNOWN('ref:...')                              |
| to JSON Schema   | FLOAT16 (FLOAT32), DECIMAL digits, BINARY lengths, units of time (us)        |
| to JSON Schema   | DURATION (an ISO duration, so INTERVAL), map keys other than STRING          |
| to JSON Schema   | UNKNOWN (any value, so JSON), NOT NULL on JSON, keys, partitions, tags, ids   |
A nullable field may be missing or null: JSON distinguishes the two, tables do not.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import quote, unquote, urljoin

from lumos.model import types
from lumos.model.conversions.fallback_types import make_distinct
from lumos.model.conversions.json_values import (
    default_text,
    default_value,
    number_at,
    object_at,
    objects_at,
    text_at,
    texts_at,
)
from lumos.model.schema import Field, Schema
from lumos.model.type_path import TOO_DEEP, TOO_LARGE, NamedTypes, TypePath

JsonSchema: TypeAlias = dict[str, Any] | bool

_DEFINITION_PREFIXES: Final = (
    "#/$defs/", "#/definitions/", "#/components/schemas/", "#/$documents/",
)  # fmt: skip
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_CHOICES: Final = ("anyOf", "oneOf")
# The key under which a bundle contains other documents.
_BUNDLE_KEY: Final = "$documents"
_MAX_BUNDLE_DEPTH: Final = 300
# Annotations apply to the schema itself, not to referring schemas.
_ANNOTATIONS: Final = ("title", "description", "default", "examples", "$comment", "$defs")


class ResolvedJsonSchema(NamedTuple):
    """A schema without references and its options, or a `replacement` type to use instead.

    `is_expanded` means that it contains parts of other schemas, whose size is limited.
    """

    schema: dict[str, Any]
    type_path: TypePath
    nullable: bool
    options: tuple[dict[str, Any], ...] = ()
    is_expanded: bool = False
    replacement: types.DataType | None = None


class JsonSchemaDocument:
    """A schema document with the definitions that can be referenced."""

    def __init__(self, document: JsonSchema) -> None:
        self.document = document
        self.references = NamedTypes()
        # The document itself is a schema that encloses all others.
        self.root = TypePath(inside=frozenset(["#"]))

    def resolve(self, schema: object, type_path: TypePath) -> ResolvedJsonSchema:
        """Resolve references and combinations of a schema, and note its annotations at the path."""
        nullable = is_expanded = False
        for _ in range(types.MAX_DEPTH):
            if not isinstance(schema, dict):
                # `true` allows any value, `false` none.
                any_or_none = types.JSON if schema is True else types.UNKNOWN
                return ResolvedJsonSchema(
                    {}, type_path, nullable or schema is True, replacement=any_or_none
                )
            _note_annotations(schema, type_path)
            nullable = nullable or schema.get("nullable") is True
            if pointer := reference_in(schema):
                target = self._target(pointer)
                replacement = self.references.replacement_for(
                    pointer, type_path, display_name=self._name(pointer)
                )
                if target is None or replacement is not None:
                    return ResolvedJsonSchema(
                        {},
                        type_path,
                        nullable,
                        replacement=replacement or types.Unknown(f"ref:{pointer}"),
                    )
                is_expanded, type_path = True, type_path.within(pointer)
                schema = _merge([_drop_keywords(schema, _REFERENCES), target])
            elif parts := objects_at(schema, "allOf"):
                if self.references.is_exhausted:
                    return ResolvedJsonSchema({}, type_path, nullable, replacement=TOO_LARGE)
                parts, type_path = self._targets(parts, type_path)
                is_expanded = True
                schema = _merge([_drop_keywords(schema, ("allOf",)), *parts])
            else:
                options = _options(schema)
                others = tuple(option for option in options if not _is_null(option))
                nullable = nullable or len(others) < len(options)
                if not options or len(others) > 1:
                    return ResolvedJsonSchema(schema, type_path, nullable, others, is_expanded)
                schema = others[0] if others else {"type": "null"}
        return ResolvedJsonSchema({}, type_path, nullable, replacement=TOO_DEEP)

    def _targets(
        self, parts: list[dict[str, Any]], type_path: TypePath
    ) -> tuple[list[dict[str, Any]], TypePath]:
        """The parts of an `allOf` with references resolved, each reference once."""
        targets = []
        for part in parts:
            pointer = reference_in(part)
            target = part if pointer is None else self._target(pointer)
            if pointer is None or target is None:
                # Keep references to other documents, which make the whole type UNKNOWN.
                targets.append(part)
            elif pointer not in type_path.inside:
                type_path = type_path.within(pointer)
                targets.append(target)
        return targets, type_path

    def _name(self, pointer: str) -> str:
        """The name of a referenced schema."""
        if pointer == "#" and isinstance(self.document, dict):
            return text_at(self.document, "title") or pointer
        prefix = next((prefix for prefix in _DEFINITION_PREFIXES if pointer.startswith(prefix)), "")
        return pointer.removeprefix(prefix)

    def _target(self, pointer: str) -> dict[str, Any] | None:
        """The schema at a JSON pointer into this document."""
        if pointer != "#" and not pointer.startswith("#/"):
            return None
        target: Any = self.document
        for step in unquote(pointer).split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(target, list):
                target = dict(zip(map(str, range(len(target))), target, strict=True))
            target = target.get(step) if isinstance(target, dict) else None
        return {} if target is True else target if isinstance(target, dict) else None


def reference_in(schema: dict[str, Any]) -> str | None:
    """The pointer of a reference, or None."""
    return next((text for keyword in _REFERENCES if (text := text_at(schema, keyword))), None)


def _note_annotations(schema: dict[str, Any], type_path: TypePath) -> None:
    default = default_text(schema["default"]) if "default" in schema else None
    type_path.note(text_at(schema, "description") or text_at(schema, "title"), default=default)


def _options(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The alternatives of a schema; none if it has properties, for which they are conditions."""
    if "properties" in schema:
        return []
    options = objects_at(schema, "anyOf") or objects_at(schema, "oneOf")
    shared = _drop_keywords(schema, (*_CHOICES, *_ANNOTATIONS))
    return [_merge([option, shared]) for option in options]


def _is_null(schema: dict[str, Any]) -> bool:
    if "const" in schema:
        return schema["const"] is None
    return schema.get("type") in ("null", ["null"]) or schema.get("enum") == [None]


def _drop_keywords(schema: dict[str, Any], keywords: Iterable[str]) -> dict[str, Any]:
    excluded = frozenset(keywords)
    return {keyword: value for keyword, value in schema.items() if keyword not in excluded}


def _merge(schemas: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The intersection of schemas; for contradicting keywords, the first schema is used."""
    merged: dict[str, Any] = {}
    for schema in schemas:
        for keyword, value in schema.items():
            earlier = merged.get(keyword)
            if keyword == "properties" and isinstance(value, dict):
                merged[keyword] = {
                    **object_at(merged, keyword),
                    **_drop_keywords(value, earlier or ()),
                }
            elif keyword in ("required", "allOf") and isinstance(value, list):
                merged[keyword] = [*(earlier if isinstance(earlier, list) else ()), *value]
            else:
                merged.setdefault(keyword, value)
    return merged


DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"

_BOUNDS: Final[dict[types.DataType, tuple[int, int]]] = {
    **{type: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for type, bits in types.SIGNED.items()},
    **{type: (0, 2**bits - 1) for type, bits in types.UNSIGNED.items()},
}
_TYPE_BY_FORMAT: Final[dict[tuple[str, str], types.DataType]] = {
    ("string", "date"): types.DATE,
    ("string", "date-time"): types.Timestamp("us", zoned=True),
    ("string", "date-time-local"): types.Timestamp("us"),
    ("string", "time"): types.Time("us"),
    ("string", "uuid"): types.UUID,
    ("string", "duration"): types.INTERVAL,
    ("string", "decimal"): types.Decimal(),
    ("string", "byte"): types.BINARY,
    ("string", "binary"): types.BINARY,
    ("number", "float"): types.FLOAT32,
    ("number", "double"): types.FLOAT64,
    ("number", "decimal"): types.Decimal(),
    ("integer", "int8"): types.INT8,
    ("integer", "int16"): types.INT16,
    ("integer", "int32"): types.INT32,
    ("integer", "int64"): types.INT64,
}
_JSON_SCHEMA_BY_TYPE: Final[dict[types.DataType, dict[str, Any]]] = {
    **{type: {"type": kind, "format": name} for (kind, name), type in _TYPE_BY_FORMAT.items()},
    **{
        type: {"type": "integer", "minimum": minimum, "maximum": maximum}
        for type, (minimum, maximum) in _BOUNDS.items()
    },
    types.BOOLEAN: {"type": "boolean"},
    types.INT64: {"type": "integer"},
    types.FLOAT16: {"type": "number", "format": "float"},
    types.FLOAT64: {"type": "number"},
    types.STRING: {"type": "string"},
    types.BINARY: {"type": "string", "contentEncoding": "base64"},
    types.NULL: {"type": "null"},
    types.JSON: {},
}
_ANY_OBJECT: Final = types.Map(types.STRING, types.JSON)
_OBJECT_KEYWORDS: Final = ("properties", "required", "additionalProperties", "patternProperties")
_IMPLIED_KINDS: Final = (
    *((keyword, "object") for keyword in _OBJECT_KEYWORDS),
    *((keyword, "array") for keyword in ("items", "prefixItems", "minItems", "maxItems")),
    *((keyword, "string") for keyword in ("maxLength", "minLength", "pattern", "contentEncoding")),
    *((keyword, "number") for keyword in ("minimum", "maximum", "multipleOf")),
)


def schema_from_json_schema(schema: JsonSchema) -> Schema:
    """Read the properties of an object as columns, and any other type as a column `value`."""
    return Schema(fields=tuple(_Reader(schema).columns()))


def bundle_json_schema(schema: JsonSchema, documents: Mapping[str, JsonSchema]) -> JsonSchema:
    """One document that contains the other documents to which a schema refers by name.

    References are matched by name, or by the URL that they have relative to `$id`.
    """
    if not isinstance(schema, dict):
        return schema
    bundled = _rewrite_references(schema, "", documents, _base(schema, ""))
    assert isinstance(bundled, dict)
    definitions = {
        name: _rewrite_references(document, _bundle_pointer(name), documents, _base(document, name))
        for name, document in documents.items()
    }
    return {**bundled, _BUNDLE_KEY: definitions}


def _base(document: JsonSchema, name: str) -> str:
    return (text_at(document, "$id") if isinstance(document, dict) else None) or name


def _bundle_pointer(name: str) -> str:
    escaped = name.replace("~", "~0").replace("/", "~1")
    return f"/{_BUNDLE_KEY}/{quote(escaped, safe='~')}"


def _rewrite_references(
    value: Any, root: str, documents: Mapping[str, JsonSchema], base: str, depth: int = 0
) -> Any:
    """Rewrite the references in a part of a document; `root` is its pointer in the bundle."""
    if depth > _MAX_BUNDLE_DEPTH:
        return {}
    if isinstance(value, list):
        return [_rewrite_references(each, root, documents, base, depth + 1) for each in value]
    if not isinstance(value, dict):
        return value
    rewritten = {
        key: _rewrite_references(each, root, documents, base, depth + 1)
        for key, each in value.items()
    }
    for keyword in _REFERENCES:
        if (text := text_at(value, keyword)) is not None:
            rewritten[keyword] = _rewritten_reference(text, root, documents, base)
    return rewritten


def _rewritten_reference(
    text: str, root: str, documents: Mapping[str, JsonSchema], base: str
) -> str:
    document, _, pointer = text.partition("#")
    if not document:
        return f"#{root}{pointer}" if root or pointer else "#"
    try:
        absolute = urljoin(base, document)
    except ValueError:
        absolute = document
    for name in (document, absolute):
        if name in documents:
            return f"#{_bundle_pointer(name)}{pointer}"
    by_id = (name for name, each in documents.items() if _base(each, "") == absolute)
    document_name = next(by_id, None)
    return text if document_name is None else f"#{_bundle_pointer(document_name)}{pointer}"


def type_from_json_schema(schema: JsonSchema) -> types.DataType:
    """Return the type of a schema's values, without nulls."""
    reader = _Reader(schema)
    return reader.type(schema, reader.document.root)[0]


def schema_to_json_schema(schema: Schema) -> dict[str, Any]:
    """An object schema of draft 2020-12."""
    members = [
        (field.name, field.type, field.nullable, TypePath.of(field)) for field in schema.fields
    ]
    return {"$schema": DRAFT, **_object(members)}


def type_to_json_schema(type: types.DataType) -> dict[str, Any]:
    """Return the nearest JSON Schema of the type's values, without nulls."""
    return _write(type, TypePath())


class _Reader:
    """Reads one document, whose parts may refer to each other."""

    def __init__(self, schema: JsonSchema) -> None:
        self.document = JsonSchemaDocument(schema)
        self.references = self.document.references

    def columns(self) -> Iterator[Field]:
        root = self.document.root
        resolved = self.document.resolve(self.document.document, root)
        if (
            resolved.replacement is None
            and "properties" in resolved.schema
            and _kinds(resolved.schema) == ["object"]
        ):
            required = frozenset(texts_at(resolved.schema, "required"))
            for name, schema in object_at(resolved.schema, "properties").items():
                yield self._column(name, schema, resolved.type_path, required=name in required)
        else:
            yield self._column("value", self.document.document, root, required=True)

    def _column(self, name: str, schema: object, root: TypePath, *, required: bool) -> Field:
        type_path = TypePath(path=TypePath.column(name).path, inside=root.inside)
        type, nullable = self.type(schema, type_path)
        native = _native_type(schema)
        return type_path.field(name, type, nullable=nullable or not required, native_type=native)

    def type(self, schema: object, type_path: TypePath) -> tuple[types.DataType, bool]:
        """The type, and whether null is one of its values."""
        resolved = self.document.resolve(schema, type_path)
        if resolved.replacement is not None:
            return resolved.replacement, resolved.nullable
        type, nullable = self._resolved_type(resolved)
        if resolved.is_expanded:
            self.references.count_expansion(type)
        return type, resolved.nullable or nullable or type in (types.NULL, types.JSON)

    def _resolved_type(self, resolved: ResolvedJsonSchema) -> tuple[types.DataType, bool]:
        schema, type_path = resolved.schema, resolved.type_path
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(values, list) and values:
            return _type_of_values(values), None in values
        if resolved.options:
            return self._union(resolved.options, type_path)
        kinds = _kinds(schema)
        others = [kind for kind in kinds if kind != "null"]
        if len(others) > 1:
            schemas = tuple({**schema, "type": kind} for kind in others)
            return self._union(schemas, type_path)[0], len(others) < len(kinds)
        kind = others[0] if others else "null" if kinds else "any"
        return self._of_kind(kind, schema, type_path), len(others) < len(kinds)

    def _union(
        self, schemas: tuple[dict[str, Any], ...], type_path: TypePath
    ) -> tuple[types.DataType, bool]:
        if type_path.is_deepest:
            return TOO_DEEP, True
        member_types: list[types.DataType] = []
        nullable = False
        for index, schema in enumerate(schemas):
            # Each option adds to the total size, since shared parts are expanded for each of them.
            if self.references.is_exhausted:
                member_types.append(TOO_LARGE)
                break
            type, may_be_null = self.type(schema, type_path.option(index))
            if type != types.NULL:
                member_types.append(self.references.count_expansion(type))
            nullable = nullable or may_be_null
        return _union_of(member_types) if member_types else types.NULL, nullable

    def _of_kind(self, kind: str, schema: dict[str, Any], type_path: TypePath) -> types.DataType:
        match kind:
            case "any":
                return types.JSON
            case "null":
                return types.NULL
            case "boolean":
                return types.BOOLEAN
            case "integer" | "number":
                return _number(kind, schema)
            case "string":
                return _string(schema)
            case "array" | "object" if type_path.is_deepest:
                return TOO_DEEP
            case "array":
                return self._array(schema, type_path)
            case "object":
                return self._object(schema, type_path)
            case _:
                return types.Unknown(kind)

    def _array(self, schema: dict[str, Any], type_path: TypePath) -> types.DataType:
        items = schema.get("items")
        elements = objects_at(schema, "prefixItems") or objects_at(schema, "items")
        if isinstance(items, dict):
            elements = [*elements, items]
        element, nullable = self.type({"anyOf": elements}, type_path.element())
        return types.Array(element, element_nullable=nullable)

    def _object(self, schema: dict[str, Any], type_path: TypePath) -> types.DataType:
        additional = schema.get("additionalProperties")
        properties = object_at(schema, "properties")
        values = [each for each in object_at(schema, "patternProperties").values() if each]
        if isinstance(additional, dict):
            values.append(additional)
        if values and not properties:
            value, nullable = self.type({"anyOf": values}, type_path.value())
            return types.Map(types.STRING, value, value_nullable=nullable)
        if "properties" not in schema and additional is not False:
            return _ANY_OBJECT
        required = frozenset(texts_at(schema, "required"))
        members = []
        for name, each in properties.items():
            type, nullable = self.type(each, type_path.member(name))
            members.append(types.Member(name, type, nullable=nullable or name not in required))
        return types.Struct(members)


def _kinds(schema: dict[str, Any]) -> list[str]:
    """The JSON types that a schema declares, or implies by its keywords; empty means any type."""
    kind = text_at(schema, "type")
    named = [kind] if kind else list(dict.fromkeys(texts_at(schema, "type")))
    return named or next(([kind] for keyword, kind in _IMPLIED_KINDS if keyword in schema), [])


def _union_of(member_types: list[types.DataType]) -> types.DataType:
    distinct_types = list(dict.fromkeys(member_types))
    return distinct_types[0] if len(distinct_types) == 1 else types.Union(distinct_types)


def _type_of_values(values: list[Any]) -> types.DataType:
    symbols = [value for value in values if isinstance(value, str)]
    member_types: list[types.DataType] = [types.Enum(symbols)] if symbols else []
    for value in values:
        match value:
            case bool():
                member_types.append(types.BOOLEAN)
            case int():
                member_types.append(types.INT64)
            case float():
                member_types.append(types.FLOAT64)
            case list():
                member_types.append(types.Array(types.JSON))
            case dict():
                member_types.append(_ANY_OBJECT)
    if types.FLOAT64 in member_types:
        member_types = [type for type in member_types if type != types.INT64]
    return _union_of(member_types) if member_types else types.NULL


def _number(kind: str, schema: dict[str, Any]) -> types.DataType:
    named = _TYPE_BY_FORMAT.get((kind, text_at(schema, "format") or ""))
    if kind == "number":
        return named or types.FLOAT64
    bounds = schema.get("minimum"), schema.get("maximum")
    return next((type for type, range in _BOUNDS.items() if range == bounds), named or types.INT64)


def _string(schema: dict[str, Any]) -> types.DataType:
    if text_at(schema, "contentEncoding"):
        return types.BINARY
    if text_at(schema, "contentMediaType") == "application/json":
        return types.JSON
    length = number_at(schema, "maxLength")
    named = _TYPE_BY_FORMAT.get(("string", text_at(schema, "format") or ""))
    return named or types.String(length if length and length > 0 else None)


def _native_type(schema: object) -> str | None:
    if not isinstance(schema, dict):
        return None
    kind = text_at(schema, "type") or "|".join(texts_at(schema, "type")) or reference_in(schema)
    return " ".join(part for part in (kind, text_at(schema, "format")) if part) or None


def _object(members: list[tuple[str, types.DataType, bool, TypePath]]) -> dict[str, Any]:
    names = make_distinct(name for name, _, _, _ in members)
    properties = {}
    required = []
    for name, (_, type, nullable, type_path) in zip(names, members, strict=True):
        properties[name] = _annotated(_write_nullable(type, nullable, type_path), type_path)
        if not nullable:
            required.append(name)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema


def _annotated(schema: dict[str, Any], type_path: TypePath) -> dict[str, Any]:
    details = type_path.details
    if details.description:
        schema["description"] = details.description
    if details.default is not None:
        # The default of a string is its text, except for the default null of a nullable string.
        is_text = schema.get("type") == "string" or (
            schema.get("type") == ["string", "null"] and details.default != "null"
        )
        schema["default"] = details.default if is_text else default_value(details.default)
    return schema


def _write_nullable(type: types.DataType, nullable: bool, type_path: TypePath) -> dict[str, Any]:
    schema = _write(type, type_path)
    if not nullable:
        return schema
    if "anyOf" in schema:
        schema["anyOf"].append({"type": "null"})
    elif schema.get("type", "null") != "null":
        schema["type"] = [schema["type"], "null"]
    if "enum" in schema:
        schema["enum"].append(None)
    return schema


def _write(type: types.DataType, type_path: TypePath) -> dict[str, Any]:
    """A new JSON Schema, which the caller may modify."""
    if type in _JSON_SCHEMA_BY_TYPE:
        return dict(_JSON_SCHEMA_BY_TYPE[type])
    match type:
        case types.Decimal():
            return {"type": "number", "format": "decimal"}
        case types.String(length):
            return {"type": "string", "maxLength": length}
        case types.Binary():
            return dict(_JSON_SCHEMA_BY_TYPE[types.BINARY])
        case types.Time():
            return {"type": "string", "format": "time"}
        case types.Timestamp(_, zoned):
            return {"type": "string", "format": "date-time" if zoned else "date-time-local"}
        case types.Duration():
            return {"type": "string", "format": "duration"}
        case types.Enum(symbols):
            return {"type": "string", "enum": list(symbols)}
        case types.Array(element, nullable):
            inner = type_path.element()
            return {
                "type": "array",
                "items": _annotated(_write_nullable(element, nullable, inner), inner),
            }
        case types.Map(_, value, nullable):
            additional = _annotated(
                _write_nullable(value, nullable, type_path.value()), type_path.value()
            )
            return {"type": "object", "additionalProperties": additional}
        case types.Struct(members):
            return _object(
                [
                    (each.name, each.type, each.nullable, type_path.member(each.name))
                    for each in members
                ]
            )
        case types.Union(options):
            schemas = []
            for index, option in enumerate(options):
                schemas.append(
                    _annotated(_write(option, type_path.option(index)), type_path.option(index))
                )
            return {"anyOf": schemas} if schemas else {"not": {}}
        case types.Unknown(name):
            return {"$comment": name} if name else {}
        case _:
            return {}
