"""Reads and writes schemas: `schemaMetadata`, and `editableSchemaMetadata` with edits of users."""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from lumos.catalogs.datahub import field_paths
from lumos.catalogs.datahub.aspects import Aspects
from lumos.catalogs.datahub.common_aspects import (
    TAGS,
    TERMS,
    DataHubLabels,
    read_labels,
    with_labels,
)
from lumos.catalogs.datahub.field_paths import FieldPath, FieldPathStep
from lumos.catalogs.datahub.names import platform_urn
from lumos.catalogs.datahub.types import class_in, class_of, encode_type, exact_type, type_of
from lumos.errors import LumosError
from lumos.model.json_codec import from_plain, to_plain
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.type_path import nested_parts
from lumos.model.types import (
    STRING,
    Array,
    DataType,
    Map,
    Member,
    Struct,
    Union,
    Unknown,
    parse_type,
    quoted_name,
)

SCHEMA: Final = "schemaMetadata"
EDITS: Final = "editableSchemaMetadata"
_NESTED: Final = (Array, Map, Struct, Union)
_CONTAINER_CLASSES: Final = frozenset({"ArrayType", "MapType", "RecordType", "UnionType"})
_EXTRAS_KEY: Final = "lumos"
# Prefix of a column in the key schema of a Kafka topic, if the value schema has the same column.
_KEY_PREFIX: Final = "[key=True]."
_ANNOTATIONS: Final = ("description", TAGS.aspect, TERMS.aspect)
_MODELLED: Final = frozenset(
    {"fieldPath", "nullable", "type", "nativeDataType", "recursive", "isPartOfKey",
     "isPartitioningKey", "jsonProps", *_ANNOTATIONS}
)  # fmt: skip


class Edits:
    """Annotations that users entered on rows of a schema.

    The edits of a removed row stay stored, since the column may come back.
    """

    def __init__(self, body: Any) -> None:
        self._body = body or {}
        self._infos: dict[str, dict[str, Any]] = {}
        # Edits mostly have plain paths, rows may have typed ones.
        self._paths: dict[str, str] = {}
        for info in self._body.get("editableSchemaFieldInfo") or ():
            self._infos.setdefault(info["fieldPath"], dict(info))
            self._paths.setdefault(_plain_path(info["fieldPath"]), info["fieldPath"])

    def description(self, row: Mapping[str, Any]) -> str | None:
        if not self._infos:
            return row.get("description")
        edited: str | None = self._info(row).get("description")
        return row.get("description") if edited is None else edited

    def descriptions(self) -> dict[str, str]:
        """Descriptions of columns and nested fields that users entered, by path."""
        texts = (
            (plain_path, self._infos[path].get("description"))
            for plain_path, path in self._paths.items()
        )
        return {plain_path: text for plain_path, text in texts if text is not None}

    def labels(self, kind: DataHubLabels, row: Mapping[str, Any]) -> tuple[str, ...]:
        if not self._infos:
            return read_labels(kind, row)
        return tuple(dict.fromkeys((*read_labels(kind, row), *read_labels(kind, self._info(row)))))

    def update_row(
        self,
        row: dict[str, Any],
        description: str | None,
        tags: tuple[str, ...],
        terms: tuple[str, ...],
    ) -> dict[str, Any]:
        """Change the annotations of a row; edits of users that are still wanted stay edits."""
        if self.description(row) != description:
            self._info(row).pop("description", None)
            row = {key: value for key, value in row.items() if key != "description"}
            if description is not None:
                row["description"] = description
        for kind, wanted in ((TAGS, tags), (TERMS, terms)):
            row = self._update_labels(kind, row, wanted)
        return row

    def body(self) -> dict[str, Any]:
        infos = [info for info in self._infos.values() if info.keys() - {"fieldPath"}]
        return {**self._body, "editableSchemaFieldInfo": infos}

    def _update_labels(
        self, kind: DataHubLabels, row: dict[str, Any], wanted: tuple[str, ...]
    ) -> dict[str, Any]:
        if self.labels(kind, row) == wanted:
            return row
        info = self._info(row)
        theirs = [name for name in read_labels(kind, info) if name in wanted]
        ours = [name for name in wanted if name not in theirs]
        if (*ours, *theirs) != wanted:
            theirs, ours = [], list(wanted)
        if info:
            self._infos[self._path(row)] = with_labels(kind, info, theirs)
        return with_labels(kind, row, ours)

    def _info(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return self._infos.get(self._path(row), {})

    def _path(self, row: Mapping[str, Any]) -> str:
        """The path under which a row was edited; the path of the row if it was not edited."""
        path: str = row["fieldPath"]
        return path if path in self._infos else self._paths.get(_plain_path(path), path)


def _plain_path(path: str) -> str:
    if not path.startswith(field_paths.VERSION):
        return path
    return ".".join(step.name for step in field_paths.parse(path).steps)


class _Node(msgspec.Struct, eq=False):
    """A row, the extra fields that Lumos stored in it, and its nested rows."""

    row: dict[str, Any]
    step: FieldPathStep
    path: FieldPath
    lumos_path: str
    extras: dict[str, Any]
    children: list["_Node"] = []
    type: DataType | None = None


class _Column(NamedTuple):
    """A column, and its rows by path in Lumos."""

    field: Field
    rows: dict[str, dict[str, Any]]


def read_schema(aspects: Aspects, platform: str) -> Schema | None:
    """Read the schema; annotations that users entered override those of the source."""
    if SCHEMA not in aspects:
        return None
    return Schema(fields=tuple(column.field for column in _columns(aspects, platform)))


def write_schema(aspects: Aspects, schema: Schema | None, platform: str, name: str) -> bool:
    """Write a schema, without changing unchanged rows and keys that are not modelled.

    Return True if the schema is guaranteed to be read as written, False if the caller has to check.
    """
    if schema is None:
        aspects.pop(SCHEMA, None)
        aspects.pop(EDITS, None)
        return True
    if SCHEMA not in aspects and EDITS not in aspects:
        plain_rows = [_plain_row(field, platform) for field in schema.fields]
        if None not in plain_rows:
            aspects[SCHEMA] = {**_empty_schema(platform, name), "fields": plain_rows}
            return True
    before = _by_name_and_occurrence(_columns(aspects, platform) if SCHEMA in aspects else [])
    edits = Edits(aspects.get(EDITS))
    rows: list[dict[str, Any]] = []
    counts: Counter[str] = Counter()
    for field in schema.fields:
        counts[field.name] += 1
        old = before.get((field.name, counts[field.name]))
        if old is not None and old.field == field:
            rows += old.rows.values()
        elif old is not None and _without_annotations(old.field) == _without_annotations(field):
            rows += _annotate_rows(old, field, edits)
        else:
            rows += _rebuild_rows(field, old.rows if old else {}, platform, edits)
    aspects[SCHEMA] = {**(aspects.get(SCHEMA) or _empty_schema(platform, name)), "fields": rows}
    if EDITS in aspects:
        aspects[EDITS] = edits.body()
    return False


def fields_with_edits(edits: Any, fields: Sequence[Field], platform: str) -> list[Field]:
    """The columns that users annotated, with only these annotations."""
    rows_without_annotations = (
        [{key: value for key, value in row.items() if key not in _ANNOTATIONS} for _, row in rows]
        for rows in (_rows(field, platform) for field in fields)
    )
    columns_by_field = (
        _columns({SCHEMA: {"fields": rows}, EDITS: edits}, platform)
        for rows in rows_without_annotations
    )
    annotated = [column.field for columns in columns_by_field for column in columns]
    return [field for field in annotated if field != _without_annotations(field)]


def _empty_schema(platform: str, name: str) -> dict[str, Any]:
    return {
        # This name is only for display; file names may be invalid Unicode.
        "schemaName": name.encode(errors="backslashreplace").decode(),
        "platform": platform_urn(platform),
        "version": 0,
        "hash": "",
        "platformSchema": {"com.linkedin.schema.OtherSchema": {"rawSchema": ""}},
    }


def _plain_row(field: Field, platform: str) -> dict[str, Any] | None:
    """The row of a simple column, built quickly; None for other columns."""
    name, native = field.name, field.native_type
    type_class = _exact_class(field.type, native, platform)
    has_more = (
        field.nested or field.compliance or field.properties
        or field.default is not None or field.field_id is not None
    )  # fmt: skip
    if type_class is None or has_more or not name or name[0] == "[" or "." in name:
        return None
    row: dict[str, Any] = {
        "fieldPath": name,
        "nullable": field.nullable,
        "type": {"type": {type_class: {}}},
        "nativeDataType": field.type.text if native is None else native,
        "recursive": False,
        "isPartOfKey": field.key,
    }
    if field.description is not None:
        row["description"] = field.description
    if field.tags or field.terms:
        if "" in (*field.tags, *field.terms):
            return None
        row = with_labels(TERMS, with_labels(TAGS, row, field.tags), field.terms)
    if field.partition:
        row["isPartitioningKey"] = True
    return row


@lru_cache(maxsize=4_096)
def _exact_class(type: DataType, native: str | None, platform: str) -> str | None:
    """The class of a type, if class and native text identify the type exactly."""
    if isinstance(type, _NESTED) or native in ("", type.text):
        return None
    if type_of(type.text if native is None else native, class_of(type), platform) != type:
        return None
    return str(next(iter(encode_type(type)["type"])))


def _columns(aspects: Aspects, platform: str) -> list[_Column]:
    edits = Edits(aspects.get(EDITS))
    nodes = _tree(aspects[SCHEMA].get("fields") or ())
    names = _column_names(nodes)
    return [_column(node, name, platform, edits) for node, name in zip(nodes, names, strict=True)]


def _column_names(nodes: Sequence[_Node]) -> list[str]:
    """Unique names of columns; a Kafka topic has separate schemas for keys and values."""
    names = [node.extras.get("name", node.step.name) for node in nodes]
    count = Counter(names)
    taken = {name for name in names if count[name] == 1}
    for index, node in enumerate(nodes):
        if count[names[index]] > 1:
            names[index] = next(
                name for name in _unique_names(node, names[index]) if name not in taken
            )
            taken.add(names[index])
    return names


def _unique_names(node: _Node, name: str) -> Iterator[str]:
    """Candidates for the name of a column whose name is taken, the most readable first."""
    path = node.row["fieldPath"]
    yield f"{_KEY_PREFIX}{name}" if node.path.is_key else name
    yield path
    yield from (f"{path} ({number})" for number in itertools.count(2))


def _tree(rows: Any) -> list[_Node]:
    """The rows of columns, each with its nested rows."""
    tops: list[_Node] = []
    typed: dict[tuple[Any, ...], _Node] = {}
    plain: dict[str, _Node] = {}
    for row in rows:
        path = field_paths.parse(row["fieldPath"])
        if path.is_typed:
            # A key and a value can have the same names.
            *parent_steps, (name, option) = ((step.name, _option(step)) for step in path.steps)
            key = (path.is_key, *parent_steps, (name, option))
            # The options of a union have the same name and are nested in it.
            parent = typed.get((path.is_key, *parent_steps, (name, ())) if option else key[:-1])
            node = _Node(row, path.steps[-1], path, path.lumos_path, _read_extras(row))
            typed.setdefault(key, node)
        else:
            parent, step = _plain_parent(plain, row["fieldPath"])
            lumos_path = (
                quoted_name(step.name) if parent is None else _nested_path(parent, step.name)
            )
            node = _Node(row, step, path, lumos_path, _read_extras(row))
            plain.setdefault(row["fieldPath"], node)
        (tops if parent is None else parent.children).append(node)
    return tops


def _option(step: FieldPathStep) -> tuple[str, ...]:
    """The types that identify an option of a union; empty for other steps."""
    return step.types[step.types.index("union") + 1 :] if "union" in step.types else ()


def _plain_parent(plain: Mapping[str, _Node], path: str) -> tuple[_Node | None, FieldPathStep]:
    """The parent of a plain path: the nearest container, since names may contain dots."""
    end = path.rfind(".")
    while end > 0:
        parent = plain.get(path[:end])
        if parent is not None and class_in(parent.row.get("type")) in _CONTAINER_CLASSES:
            return parent, FieldPathStep(path[end + 1 :])
        end = path.rfind(".", 0, end)
    return None, FieldPathStep(path)


def _nested_path(parent: _Node, name: str) -> str:
    marks = {"ArrayType": "[]", "MapType": "{}"}
    mark = marks.get(class_in(parent.row.get("type")), "")
    return f"{parent.lumos_path}{mark}.{quoted_name(name)}"


def _column(node: _Node, name: str, platform: str, edits: Edits) -> _Column:
    rows = {}
    top = quoted_name(name)
    nested_fields = list(node.extras.get("nested", ()))
    nodes = list(_walk(node)) if node.children else [node]
    for each in reversed(nodes):
        # Nested types first, to avoid deep recursion.
        _type(each, platform)
    for each in nodes:
        path = f"{top}{each.lumos_path[len(node.lumos_path) :]}"
        rows[path] = each.row
        if each is not node:
            nested = NestedField(path=path, **_annotations(each, platform, edits))
            if nested != NestedField(path=path):
                nested_fields.append(nested)
    row = node.row
    field = Field(
        name=name,
        type=_type(node, platform),
        nullable=bool(row.get("nullable")),
        key=bool(row.get("isPartOfKey")) or node.path.is_key,
        partition=bool(row.get("isPartitioningKey")),
        **_annotations(node, platform, edits),
    )
    if nested_fields:
        order = {part.path: number for number, part in enumerate(nested_parts(field))}
        nested_fields.sort(key=lambda nested: order.get(nested.path, len(order)))
        field = msgspec.structs.replace(field, nested=tuple(nested_fields))
    return _Column(field, rows)


def _walk(node: _Node) -> Iterator[_Node]:
    pending = [node]
    while pending:
        yield (next_one := pending.pop())
        pending += reversed(next_one.children)


def _annotations(node: _Node, platform: str, edits: Edits) -> dict[str, Any]:
    """The annotations and details of a column or nested field."""
    native = node.row.get("nativeDataType") or None
    if native == _type(node, platform).text:
        native = None
    return {
        "description": edits.description(node.row),
        "tags": edits.labels(TAGS, node.row),
        "terms": edits.labels(TERMS, node.row),
        "native_type": node.extras.get("native_type", native),
        "default": node.extras.get("default"),
        "field_id": node.extras.get("field_id"),
    }


def _type(node: _Node, platform: str) -> DataType:
    if node.type is None:
        node.type = node.extras.get("type") or _reported_type(node, platform)
    return node.type


def _reported_type(node: _Node, platform: str) -> DataType:
    native, type_class = node.row.get("nativeDataType") or "", class_in(node.row.get("type"))
    if not node.children:
        return type_of(native, type_class, platform)
    exact = exact_type(native)
    if exact is not None and class_of(exact) == type_class:
        return exact
    try:
        return _type_of_nested(node, platform)
    except ValueError:
        # Nested deeper than types of Lumos can be; the `raw` part of the entry still has the rows.
        return Unknown(native)


def _type_of_nested(node: _Node, platform: str) -> DataType:
    """The type of a field, derived from its nested fields."""
    if options := [child for child in node.children if child.step.name == node.step.name]:
        return Union(_type(option, platform) for option in options)
    struct: DataType = Struct(
        Member(child.step.name, _type(child, platform), nullable=bool(child.row.get("nullable")))
        for child in node.children
    )
    containers = [type for type in node.step.types if type in ("array", "map")]
    if not node.path.is_typed:
        type_class = class_in(node.row.get("type"))
        containers = {"ArrayType": ["array"], "MapType": ["map"]}.get(type_class, [])
    for container in reversed(containers):
        struct = Array(struct) if container == "array" else Map(STRING, struct)
    return struct


def _read_extras(row: Mapping[str, Any]) -> dict[str, Any]:
    """The extra fields that Lumos stored in a row because DataHub does not have them."""
    text = row.get("jsonProps")
    if not text or _EXTRAS_KEY not in text:
        return {}
    try:
        extras = msgspec.json.decode(text)[_EXTRAS_KEY]
        if "type" in extras:
            extras["type"] = parse_type(extras["type"])
        extras["nested"] = from_plain(extras.get("nested", []), tuple[NestedField, ...])
    except (msgspec.MsgspecError, LumosError, KeyError, TypeError):
        # Lumos did not write this.
        return {}
    return dict(extras)


def _by_name_and_occurrence(columns: list[_Column]) -> dict[tuple[str, int], _Column]:
    counts: Counter[str] = Counter()
    by_occurrence = {}
    for column in columns:
        counts[column.field.name] += 1
        by_occurrence[column.field.name, counts[column.field.name]] = column
    return by_occurrence


def _without_annotations(field: Field) -> Field:
    no_annotations: dict[str, Any] = {"description": None, "tags": (), "terms": ()}
    nested_fields = (msgspec.structs.replace(nested, **no_annotations) for nested in field.nested)
    remaining = tuple(nested for nested in nested_fields if nested != NestedField(path=nested.path))
    return msgspec.structs.replace(field, **no_annotations, nested=remaining)


def _annotate_rows(old: _Column, field: Field, edits: Edits) -> Iterator[dict[str, Any]]:
    """Change the annotations in the rows of a column."""
    wanted: dict[str, Field | NestedField] = {nested.path: nested for nested in field.nested}
    wanted[quoted_name(field.name)] = field
    for path, row in old.rows.items():
        annotated = wanted.get(path) or NestedField(path=path)
        yield edits.update_row(row, annotated.description, annotated.tags, annotated.terms)


def _rebuild_rows(
    field: Field, old: Mapping[str, Mapping[str, Any]], platform: str, edits: Edits
) -> Iterator[dict[str, Any]]:
    """Build the rows of a column again, with the keys of its old rows that are not modelled."""
    for path, row in _rows(field, platform):
        before = old.get(path, {})
        # Start from the existing tags and terms, whose items contain DataHub's `attribution`.
        annotations = {key: before[key] for key in _ANNOTATIONS if key in before}
        others = {key: value for key, value in before.items() if key not in _MODELLED}
        without_annotations = {key: value for key, value in row.items() if key not in _ANNOTATIONS}
        wanted = row.get("description"), read_labels(TAGS, row), read_labels(TERMS, row)
        yield edits.update_row({**without_annotations, **annotations, **others}, *wanted)


def _rows(field: Field, platform: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a column by path in Lumos: the column first, then its nested fields."""
    nested_fields = {nested.path: nested for nested in field.nested}
    members = list(_members(field))
    not_in_type = (
        [nested_fields[path] for path in nested_fields.keys() - {path for path, _, _ in members}]
        if nested_fields
        else []
    )
    is_typed = isinstance(field.type, _NESTED) or not field.name or field.name.startswith("[")
    path = _typed_path(field) if is_typed else field.name
    row = _build_row(path, field.type, field, platform)
    row["nullable"] = field.nullable
    row["isPartOfKey"] = field.key
    if field.partition:
        row["isPartitioningKey"] = True
    parsed = field_paths.parse(path)
    extra: dict[str, Any] = {}
    if parsed.steps[-1].name != field.name:
        extra["name"] = field.name
    if not_in_type:
        extra["nested"] = to_plain(sorted(not_in_type, key=lambda nested: nested.path))
    yield quoted_name(field.name), _with_extras(row, extra)
    for lumos_path, typed_path, member in members:
        nested = nested_fields.get(lumos_path) or NestedField(path=lumos_path)
        row = _build_row(typed_path, member.type, nested, platform)
        row["nullable"] = member.nullable
        yield lumos_path, row


def _members(field: Field) -> Iterator[tuple[str, str, Member]]:
    """The path in Lumos, the path in DataHub and the definition of each nested member."""
    if not isinstance(field.type, _NESTED):
        return
    top = _typed_path(field)
    yield from _members_of(quoted_name(field.name), top, field.type)


def _typed_path(field: Field) -> str:
    name = field.name.removeprefix(_KEY_PREFIX)
    root = field_paths.ROOT if name == field.name else field_paths.KEY_ROOT
    return field_paths.typed_path(root, name, field.type)


def _members_of(
    parent_lumos_path: str, parent_path: str, type: DataType
) -> Iterator[tuple[str, str, Member]]:
    match type:
        case Array(element, _):
            yield from _members_of(f"{parent_lumos_path}[]", parent_path, element)
        case Map(_, value, _):
            yield from _members_of(f"{parent_lumos_path}{{}}", parent_path, value)
        case Struct(members):
            for member in members:
                lumos_path = f"{parent_lumos_path}.{quoted_name(member.name)}"
                typed_path = field_paths.typed_path(parent_path, member.name, member.type)
                yield lumos_path, typed_path, member
                yield from _members_of(lumos_path, typed_path, member.type)
        case _:
            # Options of a union have no names in Lumos.
            return


def _build_row(
    path: str, type: DataType, annotated: Field | NestedField, platform: str
) -> dict[str, Any]:
    native = type.text if annotated.native_type is None else annotated.native_type
    row: dict[str, Any] = {
        "fieldPath": path,
        "nullable": True,
        "type": encode_type(type),
        "nativeDataType": native,
        "recursive": False,
        "isPartOfKey": False,
    }
    if annotated.description is not None:
        row["description"] = annotated.description
    row = with_labels(TERMS, with_labels(TAGS, row, annotated.tags), annotated.terms)
    extras: dict[str, Any] = {}
    # Nested rows do not define a nested type exactly.
    is_exact = type_of(native, class_of(type), platform) == type and not isinstance(type, _NESTED)
    if native != type.text and not is_exact:
        extras["type"] = type.text
    if annotated.native_type is not None and annotated.native_type in ("", type.text):
        extras["native_type"] = annotated.native_type
    for name in ("default", "field_id"):
        if (value := getattr(annotated, name)) is not None:
            extras[name] = value
    return _with_extras(row, extras)


def _with_extras(row: dict[str, Any], extras: Mapping[str, Any]) -> dict[str, Any]:
    if not extras:
        return row
    known = msgspec.json.decode(row["jsonProps"])[_EXTRAS_KEY] if "jsonProps" in row else {}
    text = msgspec.json.encode({_EXTRAS_KEY: {**known, **extras}}, order="sorted").decode()
    return {**row, "jsonProps": text}
