"""Determines the schema of a dataset from the shapes of its files, from scan to scan."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Final, NamedTuple, TypeAlias

import msgspec

from lumos.discovery.grouping.datasets import DatasetGroup
from lumos.discovery.grouping.patterns import CALENDAR
from lumos.discovery.grouping.values import BRACES, TIMES
from lumos.discovery.lake.summaries import FileSet, PartitionKey, add_row_counts
from lumos.formats.columns import column_statistics, merge_columns
from lumos.formats.identification import FORMATS
from lumos.formats.inference import widen
from lumos.formats.interface import MAYBE_INTEGERS
from lumos.model.dataset import ColumnStatistics, DriftedShape, Location, Statistics
from lumos.model.discovery import FoundDataset
from lumos.model.json_codec import from_json, to_json
from lumos.model.schema import Field, Schema
from lumos.model.types import (
    DATE,
    FLOAT64,
    INT32,
    INT64,
    NULL,
    SIGNED,
    STRING,
    Array,
    DataType,
    Map,
    Member,
    Struct,
)

# How many scans in a row an earlier shape must be the newest before it is used again.
_SCANS_TO_RETURN: Final = 2
_SCANS_TO_RETURN_FROM_ALTERNATING: Final = 5
# After how many scans with a single writer earlier alternation is forgotten.
_SCANS_TO_FORGET_ALTERNATION: Final = 3
# After how many turns of writers a dataset counts as alternating.
_TURNS_TO_ALTERNATE: Final = 2

# The newest partition of some files, and the time of the newest file in it.
Newest: TypeAlias = tuple[str, int]
# The value for a recorded shape whose last write is unknown.
_UNKNOWN: Final[Newest] = ("", 0)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class PresentShape(msgspec.Struct, frozen=True, kw_only=True):
    """A shape that some files of a dataset have now, and its full fingerprint."""

    full: str
    shape: str
    newest: Newest
    file_count: int
    oldest: int


class ShapeMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of a dataset's shapes between scans.

    `full` is the full fingerprint of the current shape, even if no file has it any longer.
    `ranks` numbers the shapes in the order in which they were first seen; `newest` is the age of
    the current one when it was last written. `waiting` is an earlier shape that leads again, and
    `waited` is the number of scans since.
    """

    current: str
    full: str
    newest: Newest
    ranks: dict[str, int]
    first_seen: dict[str, int]
    waiting: str = ""
    waited: int = 0
    waiting_newest: Newest = ("", 0)
    turns: int = 0
    calm: int = 0
    alternating: bool = False


class StoredMemory(NamedTuple):
    """The memory of a dataset in the store, with the schema that its files declare as JSON.

    `body` is the stored form. It is empty if the memory was made from the recorded schema, which
    only fits files of the same `format`.
    """

    memory: ShapeMemory
    schema: bytes
    body: bytes | None
    format: str | None


# Returns the memories of datasets by path, as far as the store has them.
LoadMemories: TypeAlias = Callable[[Collection[str]], Mapping[str, StoredMemory]]


def decode_memory(body: bytes, schema: bytes, format: str | None) -> StoredMemory:
    """Decode a memory of the store."""
    return StoredMemory(msgspec.json.decode(body, type=ShapeMemory), schema, body, format)


def memory_from_record(
    recorded: Schema,
    drift: Sequence[DriftedShape],
    *,
    partition_keys: Collection[str],
    format: str | None,
) -> StoredMemory:
    """A memory made from the recorded schema and drift of a dataset."""
    fields = (field for field in recorded.fields if field.name not in partition_keys)
    schema = Schema(fields=tuple(fields))
    first_seen = {
        each.shape: (each.first_seen - _EPOCH) // timedelta(microseconds=1)
        for each in drift
        if each.first_seen is not None
    }
    shapes = dict.fromkeys((*(each.shape for each in drift), schema.shape))
    memory = ShapeMemory(
        current=schema.shape,
        full=schema.full,
        newest=_UNKNOWN,
        ranks={shape: rank for rank, shape in enumerate(shapes)},
        first_seen=first_seen,
    )
    return StoredMemory(memory, to_json(schema), None, format)


class SchemaChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset's schema after a scan; `reverted` if it just returned to an earlier one."""

    memory: ShapeMemory
    reverted: bool = False


def choose_schema(present: Sequence[PresentShape], memory: ShapeMemory | None) -> SchemaChoice:
    """Choose the schema of a dataset whose files declare theirs.

    A new shape is a change at once. An earlier shape is used again only after several scans in
    which no other shape was written, so writers that take turns do not change the dataset every
    time.
    """
    ordered = sorted(present, key=lambda each: (each.newest, each.file_count, each.shape))
    ranks = {} if memory is None else dict(memory.ranks)
    new_shapes = [each for each in ordered if each.shape not in ranks]
    for each in new_shapes:
        ranks[each.shape] = len(ranks)
    first_seen = _first_seen(present, {} if memory is None else memory.first_seen)
    if memory is None or new_shapes:
        chosen = new_shapes[-1]
        return SchemaChoice(
            memory=ShapeMemory(
                current=chosen.shape,
                full=chosen.full,
                newest=chosen.newest,
                ranks=ranks,
                first_seen=first_seen,
            )
        )
    updated = msgspec.structs.replace(memory, first_seen=first_seen)
    return _choose_known({each.shape: each for each in ordered}, updated)


def _first_seen(present: Iterable[PresentShape], before: Mapping[str, int]) -> dict[str, int]:
    now = {each.shape: min(each.oldest, before.get(each.shape, each.oldest)) for each in present}
    return {**before, **now}


def _choose_known(present: Mapping[str, PresentShape], memory: ShapeMemory) -> SchemaChoice:
    if memory.newest == _UNKNOWN:
        # All present shapes already existed when the current shape was recorded.
        newest = max(each.newest for each in present.values())
        memory = msgspec.structs.replace(memory, newest=newest)
    current = present.get(memory.current)
    # Shapes that were written after the last known write of the current shape.
    later = [
        each
        for shape, each in present.items()
        if shape != memory.current and (current is None or each.newest > memory.newest)
    ]
    if current is not None and current.newest > memory.newest:
        return SchemaChoice(memory=_current_written(memory, current, others=bool(later)))
    if not later:
        return SchemaChoice(memory=memory)
    leader = max(later, key=lambda each: (each.newest, memory.ranks[each.shape]))
    if current is not None and len(later) > 1:
        # Two earlier shapes at once: the dataset returns to neither.
        return SchemaChoice(memory=_count_turn(memory, calm=0))
    return _wait_for(leader, memory, is_gone=current is None)


def _current_written(memory: ShapeMemory, current: PresentShape, *, others: bool) -> ShapeMemory:
    written = msgspec.structs.replace(
        memory, newest=current.newest, full=current.full, waiting="", waited=0
    )
    if others:
        return _count_turn(written, calm=0)
    calm = memory.calm + 1
    if calm >= _SCANS_TO_FORGET_ALTERNATION:
        return msgspec.structs.replace(written, calm=calm, turns=0, alternating=False)
    return msgspec.structs.replace(written, calm=calm)


def _wait_for(leader: PresentShape, memory: ShapeMemory, *, is_gone: bool) -> SchemaChoice:
    is_new = leader.newest > memory.waiting_newest
    if memory.waiting != leader.shape:
        memory = _count_turn(memory, calm=0)
        scans = 1
    elif is_new or (is_gone and not memory.alternating):
        scans = memory.waited + 1
    else:
        # Nothing was written since; a single file does not count.
        return SchemaChoice(memory=memory)
    needed = _SCANS_TO_RETURN_FROM_ALTERNATING if memory.alternating else _SCANS_TO_RETURN
    if scans < needed:
        pending = msgspec.structs.replace(
            memory, waiting=leader.shape, waited=scans, waiting_newest=leader.newest
        )
        return SchemaChoice(memory=pending)
    returned = msgspec.structs.replace(
        memory,
        current=leader.shape,
        full=leader.full,
        newest=leader.newest,
        waiting="",
        waited=0,
        alternating=False,
    )
    return SchemaChoice(memory=returned, reverted=True)


def _count_turn(memory: ShapeMemory, *, calm: int) -> ShapeMemory:
    turns = memory.turns + 1
    return msgspec.structs.replace(
        memory, turns=turns, calm=calm, alternating=turns >= _TURNS_TO_ALTERNATE
    )


def complete_types(schemas: Sequence[Schema], before: Schema | None) -> list[Schema]:
    """Schemas, oldest first, with uncertain types replaced by those of the newest certain schema.

    A column of nulls has no certain type, and doubles that pandas wrote may be integers with gaps.
    Neither is a change if other files or the last schema are certain.
    """
    if not any(_is_uncertain(field) for schema in schemas for field in schema.fields):
        return list(schemas)
    certain: dict[str, DataType] = {}
    for schema in schemas if before is None else (before, *schemas):
        for field in schema.fields:
            if MAYBE_INTEGERS not in field.tags:
                certain[field.name] = fill_null_types(field.type, certain.get(field.name, NULL))
    recorded = {} if before is None else {field.name: field.type for field in before.fields}
    uncertain = {
        field.name: recorded.get(field.name, certain.get(field.name, NULL))
        for schema in schemas
        for field in schema.fields
        if MAYBE_INTEGERS in field.tags
    }
    return [
        Schema(fields=tuple(_complete_field(field, certain, uncertain) for field in schema.fields))
        for schema in schemas
    ]


def _is_uncertain(field: Field) -> bool:
    return NULL.text in field.type.text or MAYBE_INTEGERS in field.tags


def _complete_field(
    field: Field, certain: Mapping[str, DataType], uncertain: Mapping[str, DataType]
) -> Field:
    is_uncertain = MAYBE_INTEGERS in field.tags
    if field.name in uncertain and (is_uncertain or field.type in SIGNED):
        known = uncertain[field.name]
        type = known if known in SIGNED or known == FLOAT64 else field.type
        tags = tuple(tag for tag in field.tags if tag != MAYBE_INTEGERS)
        return msgspec.structs.replace(field, type=type, tags=tags)
    type = fill_null_types(field.type, certain.get(field.name, NULL))
    return field if type is field.type else msgspec.structs.replace(field, type=type)


def fill_null_types(type: DataType, other: DataType) -> DataType:
    """A type with its null parts taken from another type."""
    match type, other:
        case _ if type == NULL:
            return other
        case Array(), Array():
            element = fill_null_types(type.element, other.element)
            if element is not type.element:
                return Array(element, element_nullable=type.element_nullable)
        case Map(), Map():
            value = fill_null_types(type.value, other.value)
            if value is not type.value:
                return Map(type.key, value, value_nullable=type.value_nullable)
        case Struct(), Struct():
            return _fill_struct(type, other)
    return type


def _fill_struct(type: Struct, other: Struct) -> Struct:
    known = {member.name: member.type for member in other.members}
    types = [fill_null_types(member.type, known.get(member.name, NULL)) for member in type.members]
    if all(new is member.type for new, member in zip(types, type.members, strict=True)):
        return type
    return Struct(
        Member(member.name, new, nullable=member.nullable)
        for new, member in zip(types, type.members, strict=True)
    )


_ALL_BITS: Final = 2**64 - 1
# Formats whose records may omit keys.
_SPARSE_FORMATS: Final = frozenset({"json"})
_SCANS_TO_REMOVE: Final = 2


class MergedDataset(NamedTuple):
    """A dataset with the memory of its shapes."""

    found: FoundDataset
    memory: ShapeMemory


class SchemaPool:
    """Schemas by their full fingerprint, decoded when needed."""

    def __init__(self, encoded_schemas: Mapping[str, bytes]) -> None:
        self._bodies = dict(encoded_schemas)
        self._decoded: dict[str, Schema] = {}

    def __getitem__(self, full: str) -> Schema:
        if full not in self._decoded:
            self._decoded[full] = from_json(self._bodies[full], Schema)
        return self._decoded[full]

    def add(self, full: str, schema: Schema) -> None:
        """Add a schema, which may be that of no file."""
        if full not in self._bodies:
            self._bodies[full] = to_json(schema)
            self._decoded[full] = schema

    def add_json(self, full: str, body: bytes) -> None:
        """Add a schema as JSON, unless it is known."""
        self._bodies.setdefault(full, body)

    def encoded_schemas(self, fulls: Iterable[str]) -> dict[str, bytes]:
        """Some of the schemas as JSON."""
        return {full: self._bodies[full] for full in fulls}


def merge_group(
    group: DatasetGroup, schemas: SchemaPool, memory: ShapeMemory | None
) -> MergedDataset:
    """The dataset of a group; `schemas` has those of its files and its last schema."""
    file_sets = group.file_sets
    ordered = sorted(
        file_sets,
        key=lambda file_set: (file_set.newest, file_set.file_count, file_set.schema_fingerprint),
    )
    format = ordered[-1].format
    before = schemas[memory.full] if memory is not None else None
    if FORMATS[format].declares_schema:
        choice, own, drift = _declared(ordered, schemas, memory, before)
    else:
        choice, own = _inferred_choice(ordered, schemas, memory, before, format)
        drift = ()
    schemas.add(choice.memory.full, own)
    partitions = partition_fields(group.keys)
    files = sum(file_set.file_count for file_set in file_sets)
    content = sum(file_set.content for file_set in file_sets) & _ALL_BITS
    found = FoundDataset(
        path=group.dataset,
        name=group.name,
        format=format,
        location=Location(
            uri=group.location,
            partitioning=scheme(group.names, group.extension, partitions),
            partition_keys=tuple(field.name for field in partitions),
        ),
        schema=_with_partitions(own, partitions),
        statistics=Statistics(
            file_count=files,
            total_size_bytes=sum(file_set.size for file_set in file_sets),
            bytes_by_class=_classes(file_sets),
            row_count=_total_rows(file_sets),
            row_count_exact=all(file_set.row_count_exact for file_set in file_sets),
            last_modified=_time(max(file_set.modified for file_set in file_sets)),
            columns=_columns(file_sets),
            alternating=choice.memory.alternating,
        ),
        drift=drift,
        content=f"{files:x}-{content:016x}",
        reverted=choice.reverted,
        renamed_from=group.renamed_from,
        merged_from=group.merged_from,
        split_from=group.split_from,
    )
    return MergedDataset(found, choice.memory)


def _classes(file_sets: Iterable[FileSet]) -> dict[str, int]:
    found: dict[str, int] = {}
    for file_set in file_sets:
        for name, size in file_set.classes.items():
            found[name] = found.get(name, 0) + size
    return dict(sorted(found.items()))


def _total_rows(file_sets: Iterable[FileSet]) -> int | None:
    none: int | None = 0
    return reduce(add_row_counts, (file_set.row_count for file_set in file_sets), none)


def _columns(file_sets: Sequence[FileSet]) -> dict[str, ColumnStatistics]:
    known = [file_set.columns for file_set in file_sets if file_set.columns is not None]
    return column_statistics(merge_columns(known)) if len(known) == len(file_sets) else {}


def _time(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def _declared(
    ordered: Sequence[FileSet],
    schemas: SchemaPool,
    memory: ShapeMemory | None,
    before: Schema | None,
) -> tuple[SchemaChoice, Schema, tuple[DriftedShape, ...]]:
    complete = complete_types(
        [schemas[file_set.schema_fingerprint] for file_set in ordered], before
    )
    by_shape: dict[str, list[tuple[FileSet, Schema]]] = {}
    for file_set, schema in zip(ordered, complete, strict=True):
        by_shape.setdefault(schema.shape, []).append((file_set, schema))
    choice = choose_schema([_present(shape, files) for shape, files in by_shape.items()], memory)
    current = by_shape.get(choice.memory.current)
    own = before if current is None else current[-1][1]
    assert own is not None
    drift = tuple(
        _drifted(shape, files, own, choice.memory)
        for shape, files in by_shape.items()
        if shape != choice.memory.current
    )
    return choice, own, drift


def _present(shape: str, files: Sequence[tuple[FileSet, Schema]]) -> PresentShape:
    return PresentShape(
        full=files[-1][1].full,
        shape=shape,
        newest=max(file_set.newest for file_set, _ in files),
        file_count=sum(file_set.file_count for file_set, _ in files),
        oldest=min(file_set.oldest for file_set, _ in files),
    )


def _drifted(
    shape: str, files: Sequence[tuple[FileSet, Schema]], own: Schema, memory: ShapeMemory
) -> DriftedShape:
    file_sets = [file_set for file_set, _ in files]
    examples = {
        path for file_set in file_sets for path in (file_set.first_path, file_set.last_path)
    }
    return DriftedShape(
        shape=shape,
        file_count=sum(file_set.file_count for file_set in file_sets),
        examples=tuple(sorted(examples))[:3],
        differences=tuple(_differences(files[-1][1], own)),
        first_seen=_time(memory.first_seen[shape]),
        last_seen=_time(max(file_set.modified for file_set in file_sets)),
    )


def _differences(older: Schema, newest: Schema) -> Iterable[str]:
    old_types = {field.name: field.shape() for field in older.fields}
    new_types = {field.name: field.shape() for field in newest.fields}
    for name in [*new_types, *(name for name in old_types if name not in new_types)]:
        if old_types.get(name) != new_types.get(name):
            yield f"{old_types.get(name, 'nothing')} instead of {new_types.get(name, 'nothing')}"


def _keep_wider_types(schema: Schema, before: Schema) -> Schema:
    known = {field.name: field.type for field in before.fields}
    return Schema(
        fields=tuple(
            Field(name=field.name, type=_wider_type(field.type, known.get(field.name, NULL)))
            for field in schema.fields
        )
    )


def _wider_type(type: DataType, before: DataType) -> DataType:
    """Return the earlier type if it includes the present values, otherwise the present type."""
    match type, before:
        case Struct(), Struct():
            known = {member.name: member.type for member in before.members}
            return Struct(
                Member(member.name, _wider_type(member.type, known.get(member.name, NULL)))
                for member in type.members
            )
        case Array(), Array():
            return Array(_wider_type(type.element, before.element))
        case Map(), Map():
            return Map(type.key, _wider_type(type.value, before.value))
    return before if widen(before, type) == before else type


def _inferred_choice(
    ordered: Sequence[FileSet],
    schemas: SchemaPool,
    memory: ShapeMemory | None,
    before: Schema | None,
    format: str,
) -> tuple[SchemaChoice, Schema]:
    """Return the union of the files' columns with widened types.

    A column that is missing in some files is not a change.

    A widened type stays wide, even if fewer or narrower values are present now. Keys of JSON may be
    rare, so a missing key is only removed if it is still missing one scan later.
    """
    own = _merge_inferred(schemas[file_set.schema_fingerprint] for file_set in ordered)
    if before is not None:
        own = _keep_wider_types(own, before)
    missing = 0
    if memory is not None and before is not None and format in _SPARSE_FORMATS:
        merged = _merge_inferred((before, own))
        if merged.shape == before.shape and own.shape != before.shape:
            missing = memory.waited + (memory.waiting_newest != ordered[-1].newest)
            own = before if missing < _SCANS_TO_REMOVE else own
    seen = ShapeMemory(
        current=own.shape,
        full=own.full,
        newest=ordered[-1].newest,
        ranks={},
        first_seen={},
        waited=missing if missing < _SCANS_TO_REMOVE else 0,
        waiting_newest=ordered[-1].newest if missing else ("", 0),
    )
    return SchemaChoice(memory=seen), own


def _merge_inferred(schemas: Iterable[Schema]) -> Schema:
    """The union of columns, with types widened to fit all schemas."""
    fields: dict[str, Field] = {}
    for schema in schemas:
        for field in schema.fields:
            known = fields.get(field.name)
            type = field.type if known is None else widen(known.type, field.type)
            fields[field.name] = Field(name=field.name, type=type)
    return Schema(fields=tuple(fields.values()))


def _with_partitions(schema: Schema, partitions: Sequence[Field]) -> Schema:
    """Append partition columns, as in Spark and Hive, in place of the files' own copies."""
    names = {field.name for field in partitions}
    own = (field for field in schema.fields if field.name not in names)
    return Schema(fields=(*own, *partitions))


_PLACEHOLDER: Final = re.compile(r"\{([a-z-]+)\}")


def partition_fields(keys: Iterable[PartitionKey]) -> list[Field]:
    """The columns of Hive partition keys, with a type that fits all values."""
    fields: dict[str, Field] = {}
    for key in sorted(keys):
        if not key.key.startswith("{"):
            fields[key.key] = Field(name=key.key, type=_partition_type(key), partition=True)
    return list(fields.values())


def scheme(names: Sequence[str], ending: str, fields: Iterable[Field]) -> str | None:
    """How the paths of a dataset vary, such as `year={yyyy}/month={mm}`; None if they do not.

    `names` are the templates of the folders and, last, of the files. The file name is only included
    if it has a date that no folder has.
    """
    types = {field.name: field.type for field in fields}
    *folders, stem = names
    varying = [index for index, folder in enumerate(folders) if _kinds(folder)]
    varying_parts = (
        [_format_level(folder, types) for folder in folders[varying[0] :]] if varying else []
    )
    in_folders = {kind for folder in folders for kind in _kinds(folder)}
    is_dated = in_folders & TIMES or any(
        type == DATE or name.lower() in CALENDAR for name, type in types.items()
    )
    if _kinds(stem) & TIMES and not is_dated:
        varying_parts.append(_format_level(stem, types) + ending)
    return "/".join(varying_parts) or None


def _kinds(name: str) -> set[str]:
    return set(_PLACEHOLDER.findall(name)) - BRACES.keys()


def _format_level(name: str, types: dict[str, DataType]) -> str:
    key, is_hive, _ = name.partition("={hive}")
    if is_hive:
        key = _unescape(key)
        value = "date" if types.get(key) == DATE else CALENDAR.get(key.lower(), key)
        return f"{key}={{{value}}}"
    return _unescape(name)


def _unescape(name: str) -> str:
    return _PLACEHOLDER.sub(lambda match: BRACES.get(match[1], match[0]), name)


def _partition_type(key: PartitionKey) -> DataType:
    if key.dates:
        return DATE
    # 01 is a number for keys such as month, and an identifier otherwise.
    if key.digits and key.key.casefold() in CALENDAR:
        return INT32
    return INT64 if key.integers else STRING
