"""Determines the schema of a dataset from the shapes of its files, from scan to scan."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Final, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from lumos.discovery.grouping.datasets import DatasetGroup
from lumos.discovery.grouping.patterns import DATE_KEYS, PLACEHOLDER, restore_braces
from lumos.discovery.grouping.values import BRACES, TIME_KINDS
from lumos.discovery.lake.summaries import FileSet, PartitionKey, add_row_counts
from lumos.formats.columns import column_statistics, merge_columns
from lumos.formats.identification import FORMATS
from lumos.formats.inference import widen
from lumos.formats.interface import MAYBE_INTEGERS
from lumos.model.dataset import DriftedShape, Location, Statistics
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

# The number of consecutive scans in which an earlier shape must be the newest to be used again.
_SCANS_TO_RETURN: Final = 2
_SCANS_TO_RETURN_FROM_ALTERNATING: Final = 5
# The number of consecutive scans with a single writer after which a dataset stops alternating.
_SCANS_TO_FORGET_ALTERNATION: Final = 3
# The number of changes from one writer to another after which a dataset is alternating.
_WRITER_CHANGES_TO_ALTERNATE: Final = 2

# The last partition of a file set, and the modification time of the newest file in it.
Newest: TypeAlias = tuple[str, int]
# Used for a recorded shape of which the last write is unknown.
_UNKNOWN_NEWEST: Final[Newest] = ("", 0)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class PresentShape(msgspec.Struct, frozen=True, kw_only=True):
    """A shape that some files of a dataset have now; `full` is the schema's full fingerprint."""

    full: str
    shape: str
    newest: Newest
    file_count: int
    oldest: int


# The names of fields in stored memories, where they differ.
_STORED_NAMES: Final = {
    "candidate": "waiting",
    "candidate_scans": "waited",
    "candidate_newest": "waiting_newest",
    "single_writer_scans": "calm",
}


class ShapeMemory(msgspec.Struct, frozen=True, kw_only=True, rename=_STORED_NAMES):
    """The shapes of a dataset's files, as a scan stores them for the next scan.

    `full` is the full fingerprint of the current shape, even if no file has it any longer.
    `ranks` numbers the shapes in the order in which they were first seen. `newest` is the last
    known write of the current shape. `candidate` is an earlier shape that was written after that
    and may become the current shape again; `candidate_scans` is the number of scans since. `turns`
    is how often the writer changed, and `single_writer_scans` the number of scans in a row in which
    only the current shape was written.
    """

    current: str
    full: str
    newest: Newest
    ranks: dict[str, int]
    first_seen: dict[str, int]
    candidate: str = ""
    candidate_scans: int = 0
    candidate_newest: Newest = ("", 0)
    turns: int = 0
    single_writer_scans: int = 0
    alternating: bool = False


class StoredMemory(NamedTuple):
    """The memory of a dataset in the store, with the schema that its files declare, as JSON.

    `body` is the encoded memory. It is None if the memory was derived from the recorded schema;
    such a memory only applies to files of the same `format`.
    """

    memory: ShapeMemory
    schema: bytes
    body: bytes | None
    format: str | None


# A function that returns the memories in the store for paths of datasets.
LoadMemories: TypeAlias = Callable[[Collection[str]], Mapping[str, StoredMemory]]


def decode_memory(body: bytes, schema: bytes, format: str | None) -> StoredMemory:
    """Decode a memory from the store."""
    return StoredMemory(msgspec.json.decode(body, type=ShapeMemory), schema, body, format)


def memory_from_record(
    recorded: Schema,
    drift: Sequence[DriftedShape],
    *,
    partition_keys: Collection[str],
    format: str | None,
) -> StoredMemory:
    """Derive a memory from the recorded schema and drift of a dataset."""
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
        newest=_UNKNOWN_NEWEST,
        ranks={shape: rank for rank, shape in enumerate(shapes)},
        first_seen=first_seen,
    )
    return StoredMemory(memory, to_json(schema), None, format)


class SchemaChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The schema of a dataset after a scan; `reverted` means that an earlier schema returned."""

    memory: ShapeMemory
    reverted: bool = False


def choose_schema(present: Sequence[PresentShape], memory: ShapeMemory | None) -> SchemaChoice:
    """Choose the schema of a dataset whose files declare their schemas.

    A new shape is used immediately. An earlier shape is used again only after several scans in
    which no other shape was written, so two writers that take turns do not change the schema every
    time.
    """
    ordered = sorted(present, key=lambda each: (each.newest, each.file_count, each.shape))
    ranks = {} if memory is None else dict(memory.ranks)
    new_shapes = [each for each in ordered if each.shape not in ranks]
    for each in new_shapes:
        ranks[each.shape] = len(ranks)
    first_seen = {} if memory is None else dict(memory.first_seen)
    for each in present:
        first_seen[each.shape] = min(each.oldest, first_seen.get(each.shape, each.oldest))
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
    updated = replace(memory, first_seen=first_seen)
    return _choose_earlier_shape({each.shape: each for each in ordered}, updated)


def _choose_earlier_shape(present: Mapping[str, PresentShape], memory: ShapeMemory) -> SchemaChoice:
    if memory.newest == _UNKNOWN_NEWEST:
        # All present shapes already existed when the current shape was recorded.
        newest = max(each.newest for each in present.values())
        memory = replace(memory, newest=newest)
    current = present.get(memory.current)
    # Shapes that were written after the last known write of the current shape.
    later = [
        each
        for shape, each in present.items()
        if shape != memory.current and (current is None or each.newest > memory.newest)
    ]
    if current is not None and current.newest > memory.newest:
        return SchemaChoice(memory=_update_current(memory, current, has_others=bool(later)))
    if not later:
        return SchemaChoice(memory=memory)
    newest_shape = max(later, key=lambda each: (each.newest, memory.ranks[each.shape]))
    if current is not None and len(later) > 1:
        # Two earlier shapes were written, so neither becomes the current shape.
        return SchemaChoice(memory=_count_turn(memory))
    return _count_candidate_scan(newest_shape, memory, is_current_missing=current is None)


def _update_current(memory: ShapeMemory, current: PresentShape, *, has_others: bool) -> ShapeMemory:
    updated = replace(
        memory, newest=current.newest, full=current.full, candidate="", candidate_scans=0
    )
    if has_others:
        return _count_turn(updated)
    scans = memory.single_writer_scans + 1
    if scans >= _SCANS_TO_FORGET_ALTERNATION:
        return replace(updated, single_writer_scans=scans, turns=0, alternating=False)
    return replace(updated, single_writer_scans=scans)


def _count_candidate_scan(
    newest_shape: PresentShape, memory: ShapeMemory, *, is_current_missing: bool
) -> SchemaChoice:
    was_written = newest_shape.newest > memory.candidate_newest
    if memory.candidate != newest_shape.shape:
        memory = _count_turn(memory)
        scans = 1
    elif was_written or (is_current_missing and not memory.alternating):
        scans = memory.candidate_scans + 1
    else:
        # The candidate was not written since the last scan, and one write is not enough.
        return SchemaChoice(memory=memory)
    needed = _SCANS_TO_RETURN_FROM_ALTERNATING if memory.alternating else _SCANS_TO_RETURN
    if scans < needed:
        pending = replace(
            memory,
            candidate=newest_shape.shape,
            candidate_scans=scans,
            candidate_newest=newest_shape.newest,
        )
        return SchemaChoice(memory=pending)
    reverted = replace(
        memory,
        current=newest_shape.shape,
        full=newest_shape.full,
        newest=newest_shape.newest,
        candidate="",
        candidate_scans=0,
        alternating=False,
    )
    return SchemaChoice(memory=reverted, reverted=True)


def _count_turn(memory: ShapeMemory) -> ShapeMemory:
    turns = memory.turns + 1
    return replace(
        memory,
        turns=turns,
        single_writer_scans=0,
        alternating=turns >= _WRITER_CHANGES_TO_ALTERNATE,
    )


def complete_types(schemas: Sequence[Schema], last_schema: Schema | None) -> list[Schema]:
    """Replace uncertain types by those of the newest schema that is certain about the column.

    `schemas` are sorted from the oldest to the newest. A column of nulls has no certain type, and
    doubles that pandas wrote may be integers with missing values. Neither counts as a schema change
    if other files or the last schema have a certain type.
    """
    if not any(
        NULL.text in field.type.text or MAYBE_INTEGERS in field.tags
        for schema in schemas
        for field in schema.fields
    ):
        return list(schemas)
    certain: dict[str, DataType] = {}
    for schema in schemas if last_schema is None else (last_schema, *schemas):
        for field in schema.fields:
            if MAYBE_INTEGERS not in field.tags:
                certain[field.name] = fill_null_types(field.type, certain.get(field.name, NULL))
    recorded = (
        {} if last_schema is None else {field.name: field.type for field in last_schema.fields}
    )
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


def _complete_field(
    field: Field, certain: Mapping[str, DataType], uncertain: Mapping[str, DataType]
) -> Field:
    is_uncertain = MAYBE_INTEGERS in field.tags
    if field.name in uncertain and (is_uncertain or field.type in SIGNED):
        certain_type = uncertain[field.name]
        type = certain_type if certain_type in SIGNED or certain_type == FLOAT64 else field.type
        tags = tuple(tag for tag in field.tags if tag != MAYBE_INTEGERS)
        return replace(field, type=type, tags=tags)
    type = fill_null_types(field.type, certain.get(field.name, NULL))
    return field if type is field.type else replace(field, type=type)


def fill_null_types(type: DataType, other: DataType) -> DataType:
    """A type in which null types, also nested, are replaced by the types of another type."""
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
            other_types = {member.name: member.type for member in other.members}
            members = [
                (member, fill_null_types(member.type, other_types.get(member.name, NULL)))
                for member in type.members
            ]
            if any(new is not member.type for member, new in members):
                return Struct(
                    Member(member.name, new, nullable=member.nullable) for member, new in members
                )
    return type


_ALL_BITS: Final = 2**64 - 1
# Formats whose records may omit keys.
_SPARSE_FORMATS: Final = frozenset({"json"})
_SCANS_TO_REMOVE: Final = 2


class MergedDataset(NamedTuple):
    """A dataset, and the memory of its shapes for the next scan."""

    found: FoundDataset
    memory: ShapeMemory


class SchemaPool:
    """Schemas by their full fingerprint, decoded when needed."""

    def __init__(self, encoded_schemas: Mapping[str, bytes]) -> None:
        self._encoded = dict(encoded_schemas)
        self._decoded: dict[str, Schema] = {}

    def __getitem__(self, fingerprint: str) -> Schema:
        if fingerprint not in self._decoded:
            self._decoded[fingerprint] = from_json(self._encoded[fingerprint], Schema)
        return self._decoded[fingerprint]

    def add(self, fingerprint: str, schema: Schema) -> None:
        """Add a schema, unless the pool already has it."""
        if fingerprint not in self._encoded:
            self._encoded[fingerprint] = to_json(schema)
            self._decoded[fingerprint] = schema

    def add_json(self, fingerprint: str, body: bytes) -> None:
        """Add a schema as JSON, unless the pool already has it."""
        self._encoded.setdefault(fingerprint, body)

    def encoded_schemas(self, fingerprints: Iterable[str]) -> dict[str, bytes]:
        """The schemas with these fingerprints, as JSON."""
        return {fingerprint: self._encoded[fingerprint] for fingerprint in fingerprints}


def merge_group(
    group: DatasetGroup, schemas: SchemaPool, memory: ShapeMemory | None
) -> MergedDataset:
    """The dataset of a group; `schemas` must include those of its files and its last schema."""
    file_sets = group.file_sets
    ordered = sorted(
        file_sets,
        key=lambda file_set: (file_set.newest, file_set.file_count, file_set.schema_fingerprint),
    )
    format = ordered[-1].format
    last_schema = schemas[memory.full] if memory is not None else None
    if FORMATS[format].declares_schema:
        choice, schema, drift = _choose_declared(ordered, schemas, memory, last_schema)
    else:
        choice, schema = _choose_inferred(ordered, schemas, memory, last_schema, format)
        drift = ()
    schemas.add(choice.memory.full, schema)
    partitions = partition_fields(group.keys)
    files = sum(file_set.file_count for file_set in file_sets)
    content = sum(file_set.content for file_set in file_sets) & _ALL_BITS
    bytes_by_class: Counter[str] = Counter()
    for file_set in file_sets:
        bytes_by_class.update(file_set.classes)
    columns = [file_set.columns for file_set in file_sets if file_set.columns is not None]
    has_columns = len(columns) == len(file_sets)
    dataset = FoundDataset(
        path=group.dataset,
        name=group.name,
        format=format,
        location=Location(
            uri=group.location,
            partitioning=partitioning_scheme(group.names, group.extension, partitions),
            partition_keys=tuple(field.name for field in partitions),
        ),
        schema=_with_partitions(schema, partitions),
        statistics=Statistics(
            file_count=files,
            total_size_bytes=sum(file_set.size for file_set in file_sets),
            bytes_by_class=dict(sorted(bytes_by_class.items())),
            row_count=reduce(add_row_counts, (file_set.row_count for file_set in file_sets)),
            row_count_exact=all(file_set.row_count_exact for file_set in file_sets),
            last_modified=_to_datetime(max(file_set.modified for file_set in file_sets)),
            columns=column_statistics(merge_columns(columns)) if has_columns else {},
            alternating=choice.memory.alternating,
        ),
        drift=drift,
        content=f"{files:x}-{content:016x}",
        reverted=choice.reverted,
        renamed_from=group.renamed_from,
        merged_from=group.merged_from,
        split_from=group.split_from,
    )
    return MergedDataset(dataset, choice.memory)


def _to_datetime(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def _choose_declared(
    ordered: Sequence[FileSet],
    schemas: SchemaPool,
    memory: ShapeMemory | None,
    last_schema: Schema | None,
) -> tuple[SchemaChoice, Schema, tuple[DriftedShape, ...]]:
    completed = complete_types(
        [schemas[file_set.schema_fingerprint] for file_set in ordered], last_schema
    )
    by_shape: dict[str, list[tuple[FileSet, Schema]]] = {}
    for file_set, schema in zip(ordered, completed, strict=True):
        by_shape.setdefault(schema.shape, []).append((file_set, schema))
    present = [
        PresentShape(
            full=files[-1][1].full,
            shape=shape,
            newest=max(file_set.newest for file_set, _ in files),
            file_count=sum(file_set.file_count for file_set, _ in files),
            oldest=min(file_set.oldest for file_set, _ in files),
        )
        for shape, files in by_shape.items()
    ]
    choice = choose_schema(present, memory)
    current = by_shape.get(choice.memory.current)
    chosen = last_schema if current is None else current[-1][1]
    assert chosen is not None
    drift = tuple(
        _to_drifted_shape(shape, files, chosen, choice.memory)
        for shape, files in by_shape.items()
        if shape != choice.memory.current
    )
    return choice, chosen, drift


def _to_drifted_shape(
    shape: str, files: Sequence[tuple[FileSet, Schema]], current: Schema, memory: ShapeMemory
) -> DriftedShape:
    file_sets = [file_set for file_set, _ in files]
    examples = {
        path for file_set in file_sets for path in (file_set.first_path, file_set.last_path)
    }
    return DriftedShape(
        shape=shape,
        file_count=sum(file_set.file_count for file_set in file_sets),
        examples=tuple(sorted(examples))[:3],
        differences=tuple(_differences(files[-1][1], current)),
        first_seen=_to_datetime(memory.first_seen[shape]),
        last_seen=_to_datetime(max(file_set.modified for file_set in file_sets)),
    )


def _differences(drifted: Schema, current: Schema) -> Iterable[str]:
    drifted_fields = {field.name: field.shape() for field in drifted.fields}
    current_fields = {field.name: field.shape() for field in current.fields}
    for name in [*current_fields, *(name for name in drifted_fields if name not in current_fields)]:
        if drifted_fields.get(name) != current_fields.get(name):
            drifted_field = drifted_fields.get(name, "nothing")
            yield f"{drifted_field} instead of {current_fields.get(name, 'nothing')}"


def _wider_type(type: DataType, last_type: DataType) -> DataType:
    """The last type if it includes all values of the current type; otherwise the current type."""
    match type, last_type:
        case Struct(), Struct():
            last_types = {member.name: member.type for member in last_type.members}
            return Struct(
                Member(member.name, _wider_type(member.type, last_types.get(member.name, NULL)))
                for member in type.members
            )
        case Array(), Array():
            return Array(_wider_type(type.element, last_type.element))
        case Map(), Map():
            return Map(type.key, _wider_type(type.value, last_type.value))
    return last_type if widen(last_type, type) == last_type else type


def _choose_inferred(
    ordered: Sequence[FileSet],
    schemas: SchemaPool,
    memory: ShapeMemory | None,
    last_schema: Schema | None,
    format: str,
) -> tuple[SchemaChoice, Schema]:
    """Choose the schema of a dataset whose files do not declare one.

    It is the union of the files' columns with widened types, so a column that is missing in some
    files is not a change. A widened type stays wide, even if all current values fit a narrower one.
    JSON records may omit keys, so a missing key is only removed if the next scan does not find it
    either.
    """
    schema = _merge_inferred(schemas[file_set.schema_fingerprint] for file_set in ordered)
    if last_schema is not None:
        last_types = {field.name: field.type for field in last_schema.fields}
        fields = (
            Field(name=field.name, type=_wider_type(field.type, last_types.get(field.name, NULL)))
            for field in schema.fields
        )
        schema = Schema(fields=tuple(fields))
    scans_missing = 0
    if memory is not None and last_schema is not None and format in _SPARSE_FORMATS:
        merged = _merge_inferred((last_schema, schema))
        if merged.shape == last_schema.shape and schema.shape != last_schema.shape:
            scans_missing = memory.candidate_scans + (memory.candidate_newest != ordered[-1].newest)
            schema = last_schema if scans_missing < _SCANS_TO_REMOVE else schema
    memory_after = ShapeMemory(
        current=schema.shape,
        full=schema.full,
        newest=ordered[-1].newest,
        ranks={},
        first_seen={},
        candidate_scans=scans_missing if scans_missing < _SCANS_TO_REMOVE else 0,
        candidate_newest=ordered[-1].newest if scans_missing else ("", 0),
    )
    return SchemaChoice(memory=memory_after), schema


def _merge_inferred(schemas: Iterable[Schema]) -> Schema:
    """The union of columns, with types widened to fit all schemas."""
    fields: dict[str, Field] = {}
    for schema in schemas:
        for field in schema.fields:
            merged = fields.get(field.name)
            type = field.type if merged is None else widen(merged.type, field.type)
            fields[field.name] = Field(name=field.name, type=type)
    return Schema(fields=tuple(fields.values()))


def _with_partitions(schema: Schema, partitions: Sequence[Field]) -> Schema:
    """Append partition columns, as Spark and Hive do; they replace columns of the same name."""
    names = {field.name for field in partitions}
    columns = (field for field in schema.fields if field.name not in names)
    return Schema(fields=(*columns, *partitions))


def partition_fields(keys: Iterable[PartitionKey]) -> list[Field]:
    """The columns of Hive partition keys, with a type that fits all values."""
    fields: dict[str, Field] = {}
    for key in sorted(keys):
        if not key.key.startswith("{"):
            fields[key.key] = Field(name=key.key, type=_partition_type(key), partition=True)
    return list(fields.values())


def partitioning_scheme(
    names: Sequence[str], extension: str, fields: Iterable[Field]
) -> str | None:
    """The varying part of a dataset's paths, such as `year={yyyy}/month={mm}`; None if none varies.

    `names` are the templates of the folders and, last, of the files. The file name is only included
    if it has a date that no folder has.
    """
    types = {field.name: field.type for field in fields}
    *folders, stem = names
    varying = [index for index, folder in enumerate(folders) if _placeholder_kinds(folder)]
    parts = [_describe_level(folder, types) for folder in folders[varying[0] :]] if varying else []
    folder_kinds = {kind for folder in folders for kind in _placeholder_kinds(folder)}
    is_dated = folder_kinds & TIME_KINDS or any(
        type == DATE or name.lower() in DATE_KEYS for name, type in types.items()
    )
    if _placeholder_kinds(stem) & TIME_KINDS and not is_dated:
        parts.append(_describe_level(stem, types) + extension)
    return "/".join(parts) or None


def _placeholder_kinds(name: str) -> set[str]:
    return set(PLACEHOLDER.findall(name)) - BRACES.keys()


def _describe_level(name: str, types: dict[str, DataType]) -> str:
    key, is_hive, _ = name.partition("={hive}")
    if is_hive:
        key = restore_braces(key)
        value = "date" if types.get(key) == DATE else DATE_KEYS.get(key.lower(), key)
        return f"{key}={{{value}}}"
    return restore_braces(name)


def _partition_type(key: PartitionKey) -> DataType:
    if key.dates:
        return DATE
    # 01 is a number for keys such as month; for other keys, it may be an identifier.
    if key.digits and key.key.casefold() in DATE_KEYS:
        return INT32
    return INT64 if key.integers else STRING
