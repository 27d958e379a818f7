"""Schemas: the rows of `schemaMetadata`, and what people wrote over them."""

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
from lumos.catalogs.datahub.types import class_in, class_of, exact_type, to_class, type_of
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
_HOLDING: Final = frozenset({"ArrayType", "MapType", "RecordType", "UnionType"})
_OWN: Final = "lumos"
# Before the name of a column of a key where the value has a column of the same name.
_OF_KEY: Final = "[key=True]."
_ANNOTATIONS: Final = ("description", TAGS.aspect, TERMS.aspect)
_WRITTEN: Final = frozenset(
    {"fieldPath", "nullable", "type", "nativeDataType", "recursive", "isPartOfKey",
     "isPartitioningKey", "jsonProps", *_ANNOTATIONS}
)  # fmt: skip


class Edits:
    """What people wrote over the rows of a schema.

    That stays when a row goes: a scan may have missed the column, which is there again tomorrow.
    """

    def __init__(self, body: Any) -> None:
        self._body = body or {}
        self._infos: dict[str, dict[str, Any]] = {}
        # Edits are mostly on plain paths, and rows may have typed ones.
        self._paths: dict[str, str] = {}
        for info in self._body.get("editableSchemaFieldInfo") or ():
            self._infos.setdefault(info["fieldPath"], dict(info))
            self._paths.setdefault(_plain_path(info["fieldPath"]), info["fieldPath"])

    def description(self, row: Mapping[str, Any]) -> str | None:
        if not self._infos:
            return row.get("description")
        written: str | None = self._info(row).get("description")
        return row.get("description") if written is None else written

    def descriptions(self) -> dict[str, str]:
        """What people wrote on columns and on what is inside of them, by path."""
        found = (
            (path, self._infos[whole].get("description")) for path, whole in self._paths.items()
        )
        return {path: text for path, text in found if text is not None}

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
        """A row with other annotations; those that people typed stay edits if they are wanted."""
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
        """The path of the edit of a row."""
        path: str = row["fieldPath"]
        return path if path in self._infos else self._paths.get(_plain_path(path), path)


def _plain_path(path: str) -> str:
    if not path.startswith(field_paths.VERSION):
        return path
    return ".".join(step.name for step in field_paths.parsed(path).steps)


class _Node(msgspec.Struct, eq=False):
    """A row, the facts that Lumos wrote into it, and the rows inside it."""

    row: dict[str, Any]
    step: FieldPathStep
    path: FieldPath
    lumos: str
    facts: dict[str, Any]
    inside: list["_Node"] = []
    type: DataType | None = None


class _Column(NamedTuple):
    """A column and its rows, by their paths in Lumos."""

    field: Field
    rows: dict[str, dict[str, Any]]


def read_schema(aspects: Aspects, platform: str) -> Schema | None:
    """The schema as people see it: what they typed takes precedence over the source."""
    if SCHEMA not in aspects:
        return None
    return Schema(fields=tuple(column.field for column in _columns(aspects, platform)))


def write_schema(aspects: Aspects, schema: Schema | None, platform: str, name: str) -> bool:
    """Changes the rows of what changed, and leaves all other keys as they are.

    Returns whether it is certain that the schema will be read as it was written.
    """
    if schema is None:
        aspects.pop(SCHEMA, None)
        aspects.pop(EDITS, None)
        return True
    if SCHEMA not in aspects and EDITS not in aspects:
        plain_rows = [_plain_row(field, platform) for field in schema.fields]
        if None not in plain_rows:
            aspects[SCHEMA] = {**_skeleton(platform, name), "fields": plain_rows}
            return True
    before = _numbered(_columns(aspects, platform) if SCHEMA in aspects else [])
    edits = Edits(aspects.get(EDITS))
    rows: list[dict[str, Any]] = []
    seen: dict[str, int] = {}
    for field in schema.fields:
        number = seen[field.name] = seen.get(field.name, 0) + 1
        old = before.get((field.name, number))
        if old is not None and old.field == field:
            rows += old.rows.values()
        elif old is not None and _without_annotations(old.field) == _without_annotations(field):
            rows += _annotate_rows(old, field, edits)
        else:
            rows += _rebuild_rows(field, old.rows if old else {}, platform, edits)
    aspects[SCHEMA] = {**(aspects.get(SCHEMA) or _skeleton(platform, name)), "fields": rows}
    if EDITS in aspects:
        aspects[EDITS] = edits.body()
    return False


def fields_with_edits(edits: Any, fields: Sequence[Field], platform: str) -> list[Field]:
    """Those of some columns that people annotated, with these annotations only."""
    bare = (
        [{key: value for key, value in row.items() if key not in _ANNOTATIONS} for _, row in rows]
        for rows in (_rows(field, platform) for field in fields)
    )
    columns = (_columns({SCHEMA: {"fields": rows}, EDITS: edits}, platform) for rows in bare)
    found = [column.field for some in columns for column in some]
    return [field for field in found if field != _without_annotations(field)]


def _skeleton(platform: str, name: str) -> dict[str, Any]:
    return {
        # Names of files need not be Unicode, and this is only shown.
        "schemaName": name.encode(errors="backslashreplace").decode(),
        "platform": platform_urn(platform),
        "version": 0,
        "hash": "",
        "platformSchema": {"com.linkedin.schema.OtherSchema": {"rawSchema": ""}},
    }


def _plain_row(field: Field, platform: str) -> dict[str, Any] | None:
    """The row of a column that needs nothing else, as most do; None for other columns."""
    name, native = field.name, field.native_type
    type_class = _reported_class(field.type, native, platform)
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
def _reported_class(type: DataType, native: str | None, platform: str) -> str | None:
    """The class of a type, if class and native text identify the type exactly."""
    if isinstance(type, _NESTED) or native in ("", type.text):
        return None
    if type_of(type.text if native is None else native, class_of(type), platform) != type:
        return None
    return str(next(iter(to_class(type)["type"])))


def _columns(aspects: Aspects, platform: str) -> list[_Column]:
    edits = Edits(aspects.get(EDITS))
    nodes = _tree(aspects[SCHEMA].get("fields") or ())
    names = _column_names(nodes)
    return [_column(node, name, platform, edits) for node, name in zip(nodes, names, strict=True)]


def _column_names(nodes: Sequence[_Node]) -> list[str]:
    """A name for each column that no other has: a Kafka topic has keys and values apart."""
    names = [node.facts.get("name", node.step.name) for node in nodes]
    count = Counter(names)
    taken = {name for name in names if count[name] == 1}
    for index, node in enumerate(nodes):
        if count[names[index]] > 1:
            names[index] = next(
                name for name in _names_for(node, names[index]) if name not in taken
            )
            taken.add(names[index])
    return names


def _names_for(node: _Node, name: str) -> Iterator[str]:
    """Names for a column that another one has the name of, the nicest first."""
    whole = node.row["fieldPath"]
    yield f"{_OF_KEY}{name}" if node.path.is_key else name
    yield whole
    yield from (f"{whole} ({number})" for number in itertools.count(2))


def _tree(rows: Any) -> list[_Node]:
    """The rows of columns, each with the rows of what is inside it."""
    tops: list[_Node] = []
    typed: dict[tuple[Any, ...], _Node] = {}
    plain: dict[str, _Node] = {}
    for row in rows:
        path = field_paths.parsed(row["fieldPath"])
        if path.is_typed:
            # A key and a value can have the same names.
            *above, (name, option) = ((step.name, _option(step)) for step in path.steps)
            key = (path.is_key, *above, (name, option))
            # The options of a union have its name; they are inside it.
            parent = typed.get((path.is_key, *above, (name, ())) if option else key[:-1])
            node = _Node(row, path.steps[-1], path, path.lumos, _own_facts(row))
            typed.setdefault(key, node)
        else:
            parent, step = _plain_parent(plain, row["fieldPath"])
            lumos = quoted_name(step.name) if parent is None else _inside(parent, step.name)
            node = _Node(row, step, path, lumos, _own_facts(row))
            plain.setdefault(row["fieldPath"], node)
        (tops if parent is None else parent.inside).append(node)
    return tops


def _option(step: FieldPathStep) -> tuple[str, ...]:
    """Which of a union's options a step is, where it is one."""
    return step.types[step.types.index("union") + 1 :] if "union" in step.types else ()


def _plain_parent(plain: Mapping[str, _Node], path: str) -> tuple[_Node | None, FieldPathStep]:
    """What a plain path is inside of: dots also stand in names, so only a holder counts."""
    end = path.rfind(".")
    while end > 0:
        parent = plain.get(path[:end])
        if parent is not None and class_in(parent.row.get("type")) in _HOLDING:
            return parent, FieldPathStep(path[end + 1 :])
        end = path.rfind(".", 0, end)
    return None, FieldPathStep(path)


def _inside(parent: _Node, name: str) -> str:
    marks = {"ArrayType": "[]", "MapType": "{}"}
    mark = marks.get(class_in(parent.row.get("type")), "")
    return f"{parent.lumos}{mark}.{quoted_name(name)}"


def _column(node: _Node, name: str, platform: str, edits: Edits) -> _Column:
    rows = {}
    top = quoted_name(name)
    notes = list(node.facts.get("nested", ()))
    nodes = list(_walk(node)) if node.inside else [node]
    for each in reversed(nodes):
        # What is inside comes first, so that no depth is too much.
        _type(each, platform)
    for each in nodes:
        path = f"{top}{each.lumos[len(node.lumos) :]}"
        rows[path] = each.row
        if each is not node:
            note = NestedField(path=path, **_annotations(each, platform, edits))
            if note != NestedField(path=path):
                notes.append(note)
    row = node.row
    field = Field(
        name=name,
        type=_type(node, platform),
        nullable=bool(row.get("nullable")),
        key=bool(row.get("isPartOfKey")) or node.path.is_key,
        partition=bool(row.get("isPartitioningKey")),
        **_annotations(node, platform, edits),
    )
    if notes:
        order = {part.path: number for number, part in enumerate(nested_parts(field))}
        notes.sort(key=lambda note: order.get(note.path, len(order)))
        field = msgspec.structs.replace(field, nested=tuple(notes))
    return _Column(field, rows)


def _walk(node: _Node) -> Iterator[_Node]:
    waiting = [node]
    while waiting:
        yield (next_one := waiting.pop())
        waiting += reversed(next_one.inside)


def _annotations(node: _Node, platform: str, edits: Edits) -> dict[str, Any]:
    """The fields of a column that are not its name and type."""
    native = node.row.get("nativeDataType") or None
    if native == _type(node, platform).text:
        native = None
    return {
        "description": edits.description(node.row),
        "tags": edits.labels(TAGS, node.row),
        "terms": edits.labels(TERMS, node.row),
        "native_type": node.facts.get("native_type", native),
        "default": node.facts.get("default"),
        "field_id": node.facts.get("field_id"),
    }


def _type(node: _Node, platform: str) -> DataType:
    if node.type is None:
        node.type = node.facts.get("type") or _reported_type(node, platform)
    return node.type


def _reported_type(node: _Node, platform: str) -> DataType:
    native, type_class = node.row.get("nativeDataType") or "", class_in(node.row.get("type"))
    if not node.inside:
        return type_of(native, type_class, platform)
    exact = exact_type(native)
    if exact is not None and class_of(exact) == type_class:
        return exact
    try:
        return _type_around(node, platform)
    except ValueError:
        # Deeper than types can be; the rows are kept in `raw`.
        return Unknown(native)


def _type_around(node: _Node, platform: str) -> DataType:
    """The type of a field by the fields inside it."""
    if options := [inside for inside in node.inside if inside.step.name == node.step.name]:
        return Union(_type(option, platform) for option in options)
    struct: DataType = Struct(
        Member(inside.step.name, _type(inside, platform), nullable=bool(inside.row.get("nullable")))
        for inside in node.inside
    )
    containers = [type for type in node.step.types if type in ("array", "map")]
    if not node.path.is_typed:
        type_class = class_in(node.row.get("type"))
        containers = {"ArrayType": ["array"], "MapType": ["map"]}.get(type_class, [])
    for container in reversed(containers):
        struct = Array(struct) if container == "array" else Map(STRING, struct)
    return struct


def _own_facts(row: Mapping[str, Any]) -> dict[str, Any]:
    """What Lumos wrote into a row because DataHub has no place for it."""
    text = row.get("jsonProps")
    if not text or _OWN not in text:
        return {}
    try:
        facts = msgspec.json.decode(text)[_OWN]
        if "type" in facts:
            facts["type"] = parse_type(facts["type"])
        facts["nested"] = from_plain(facts.get("nested", []), tuple[NestedField, ...])
    except (msgspec.MsgspecError, LumosError, KeyError, TypeError):
        # Whoever wrote this, it was not Lumos.
        return {}
    return dict(facts)


def _numbered(columns: list[_Column]) -> dict[tuple[str, int], _Column]:
    seen: dict[str, int] = {}
    found = {}
    for column in columns:
        name = column.field.name
        seen[name] = seen.get(name, 0) + 1
        found[name, seen[name]] = column
    return found


def _without_annotations(field: Field) -> Field:
    bare: dict[str, Any] = {"description": None, "tags": (), "terms": ()}
    notes = (msgspec.structs.replace(note, **bare) for note in field.nested)
    left = tuple(note for note in notes if note != NestedField(path=note.path))
    return msgspec.structs.replace(field, **bare, nested=left)


def _annotate_rows(old: _Column, field: Field, edits: Edits) -> Iterator[dict[str, Any]]:
    """A column's rows with other descriptions and tags."""
    wanted: dict[str, Field | NestedField] = {note.path: note for note in field.nested}
    wanted[quoted_name(field.name)] = field
    for path, row in old.rows.items():
        each = wanted.get(path) or NestedField(path=path)
        yield edits.update_row(row, each.description, each.tags, each.terms)


def _rebuild_rows(
    field: Field, old: Mapping[str, Mapping[str, Any]], platform: str, edits: Edits
) -> Iterator[dict[str, Any]]:
    """A column's rows anew, with what others wrote into the rows of the same paths."""
    for path, row in _rows(field, platform):
        before = old.get(path, {})
        # Annotations stay attributed to their authors where they are still wanted.
        annotations = {key: before[key] for key in _ANNOTATIONS if key in before}
        others = {key: value for key, value in before.items() if key not in _WRITTEN}
        bare = {key: value for key, value in row.items() if key not in _ANNOTATIONS}
        wanted = row.get("description"), read_labels(TAGS, row), read_labels(TERMS, row)
        yield edits.update_row({**bare, **annotations, **others}, *wanted)


def _rows(field: Field, platform: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """A column's rows by their paths in Lumos: its own, then those of the members inside."""
    notes = {note.path: note for note in field.nested}
    inside = list(_members(field))
    left = [notes[path] for path in notes.keys() - {path for path, _, _ in inside}] if notes else []
    typed = isinstance(field.type, _NESTED) or not field.name or field.name.startswith("[")
    path = _typed_path(field) if typed else field.name
    row = _row(path, field.type, field, platform)
    row["nullable"] = field.nullable
    row["isPartOfKey"] = field.key
    if field.partition:
        row["isPartitioningKey"] = True
    read = field_paths.parsed(path)
    extra: dict[str, Any] = {}
    if read.steps[-1].name != field.name:
        extra["name"] = field.name
    if left:
        extra["nested"] = to_plain(sorted(left, key=lambda note: note.path))
    yield quoted_name(field.name), _with_facts(row, extra)
    for place, typed_path, member in inside:
        note = notes.get(place) or NestedField(path=place)
        row = _row(typed_path, member.type, note, platform)
        row["nullable"] = member.nullable
        yield place, row


def _members(field: Field) -> Iterator[tuple[str, str, Member]]:
    if not isinstance(field.type, _NESTED):
        return
    top = _typed_path(field)
    yield from _members_of(quoted_name(field.name), top, field.type)


def _typed_path(field: Field) -> str:
    name = field.name.removeprefix(_OF_KEY)
    root = field_paths.ROOT if name == field.name else field_paths.KEY_ROOT
    return field_paths.below(root, name, field.type)


def _members_of(lumos: str, path: str, type: DataType) -> Iterator[tuple[str, str, Member]]:
    match type:
        case Array(element, _):
            yield from _members_of(f"{lumos}[]", path, element)
        case Map(_, value, _):
            yield from _members_of(f"{lumos}{{}}", path, value)
        case Struct(members):
            for member in members:
                place = f"{lumos}.{quoted_name(member.name)}"
                below = field_paths.below(path, member.name, member.type)
                yield place, below, member
                yield from _members_of(place, below, member.type)
        case _:
            # The options of a union have names in DataHub, and none in Lumos.
            return


def _row(path: str, type: DataType, said: Field | NestedField, platform: str) -> dict[str, Any]:
    native = type.text if said.native_type is None else said.native_type
    row: dict[str, Any] = {
        "fieldPath": path,
        "nullable": True,
        "type": to_class(type),
        "nativeDataType": native,
        "recursive": False,
        "isPartOfKey": False,
    }
    if said.description is not None:
        row["description"] = said.description
    row = with_labels(TERMS, with_labels(TAGS, row, said.tags), said.terms)
    facts: dict[str, Any] = {}
    # The rows inside a nested type do not define it exactly.
    is_told = type_of(native, class_of(type), platform) == type and not isinstance(type, _NESTED)
    if native != type.text and not is_told:
        facts["type"] = type.text
    if said.native_type is not None and said.native_type in ("", type.text):
        facts["native_type"] = said.native_type
    for name in ("default", "field_id"):
        if (fact := getattr(said, name)) is not None:
            facts[name] = fact
    return _with_facts(row, facts)


def _with_facts(row: dict[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    if not facts:
        return row
    known = msgspec.json.decode(row["jsonProps"])[_OWN] if "jsonProps" in row else {}
    text = msgspec.json.encode({_OWN: {**known, **facts}}, order="sorted").decode()
    return {**row, "jsonProps": text}
