"""Which schema is a dataset's, when its files have several."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Final, NamedTuple

from lumos.discovery.current_schema import Choice, Memory, ShapePresent, choose, completed
from lumos.discovery.grouping.datasets import Group
from lumos.discovery.partitions import partition_fields, scheme
from lumos.discovery.summaries import PlaceSummary, added
from lumos.formats.columns import column_statistics, merge_columns
from lumos.formats.identification import FORMATS
from lumos.formats.inference import widen
from lumos.model.dataset import ColumnStatistics, DriftedShape, Location, Statistics
from lumos.model.discovery import FoundDataset
from lumos.model.json_codec import from_json, to_json
from lumos.model.schema import Field, Schema
from lumos.model.types import NULL, Array, DataType, Map, Member, Struct

_ALL_BITS: Final = 2**64 - 1
# Formats whose records may leave keys out.
_SPARSE: Final = frozenset({"json"})
_SCANS_TO_MISS: Final = 2
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Merged(NamedTuple):
    """A dataset with what is remembered of its shapes; that of inferred schemas is the schema."""

    found: FoundDataset
    memory: Memory


class Schemas:
    """Schemas by their full fingerprint, decoded when somebody asks."""

    def __init__(self, bodies: Mapping[str, bytes]) -> None:
        self._bodies = dict(bodies)
        self._decoded: dict[str, Schema] = {}

    def __getitem__(self, full: str) -> Schema:
        if full not in self._decoded:
            self._decoded[full] = from_json(self._bodies[full], Schema)
        return self._decoded[full]

    def add(self, full: str, schema: Schema) -> None:
        """Takes in a schema that perhaps no file has as it is."""
        if full not in self._bodies:
            self._bodies[full] = to_json(schema)
            self._decoded[full] = schema

    def add_json(self, full: str, body: bytes) -> None:
        """Takes in a schema as JSON, unless it is there."""
        self._bodies.setdefault(full, body)

    def bodies(self, fulls: Iterable[str]) -> dict[str, bytes]:
        """Some of the schemas as JSON."""
        return {full: self._bodies[full] for full in fulls}


def merge(group: Group, schemas: Schemas, memory: Memory | None) -> Merged:
    """The dataset of a group; `schemas` holds those of its files, and the one it had before."""
    places = group.places
    ordered = sorted(places, key=lambda place: (place.newest, place.file_count, place.full))
    format = ordered[-1].format
    before = schemas[memory.full] if memory is not None else None
    if FORMATS[format].declares_schema:
        choice, own, drift = _declared(ordered, schemas, memory, before)
    else:
        choice, own = _inferred_choice(ordered, schemas, memory, before, format)
        drift = ()
    schemas.add(choice.memory.full, own)
    partitions = partition_fields(group.keys)
    files = sum(place.file_count for place in places)
    content = sum(place.content for place in places) & _ALL_BITS
    found = FoundDataset(
        path=group.dataset,
        name=group.name,
        format=format,
        location=Location(
            uri=group.location,
            partitioning=scheme(group.names, group.ending, partitions),
            partition_keys=tuple(field.name for field in partitions),
        ),
        schema=_with_partitions(own, partitions),
        statistics=Statistics(
            file_count=files,
            total_size_bytes=sum(place.size for place in places),
            bytes_by_class=_classes(places),
            row_count=_total_rows(places),
            row_count_exact=all(place.row_count_exact for place in places),
            last_modified=_time(max(place.modified for place in places)),
            columns=_columns(places),
            alternating=choice.memory.alternating,
        ),
        drift=drift,
        content=f"{files:x}-{content:016x}",
        reverted=choice.reverted,
        renamed_from=group.renamed_from,
        merged_from=group.merged_from,
        split_from=group.split_from,
    )
    return Merged(found, choice.memory)


def _classes(places: Iterable[PlaceSummary]) -> dict[str, int]:
    found: dict[str, int] = {}
    for place in places:
        for name, size in place.classes.items():
            found[name] = found.get(name, 0) + size
    return dict(sorted(found.items()))


def _total_rows(places: Iterable[PlaceSummary]) -> int | None:
    none: int | None = 0
    return reduce(added, (place.row_count for place in places), none)


def _columns(places: Sequence[PlaceSummary]) -> dict[str, ColumnStatistics]:
    known = [place.columns for place in places if place.columns is not None]
    return column_statistics(merge_columns(known)) if len(known) == len(places) else {}


def _time(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def _declared(
    ordered: Sequence[PlaceSummary],
    schemas: Schemas,
    memory: Memory | None,
    before: Schema | None,
) -> tuple[Choice, Schema, tuple[DriftedShape, ...]]:
    complete = completed([schemas[place.full] for place in ordered], before)
    by_shape: dict[str, list[tuple[PlaceSummary, Schema]]] = {}
    for place, schema in zip(ordered, complete, strict=True):
        by_shape.setdefault(schema.shape, []).append((place, schema))
    choice = choose([_present(shape, files) for shape, files in by_shape.items()], memory)
    current = by_shape.get(choice.memory.current)
    own = before if current is None else current[-1][1]
    assert own is not None
    drift = tuple(
        _drifted(shape, files, own, choice.memory)
        for shape, files in by_shape.items()
        if shape != choice.memory.current
    )
    return choice, own, drift


def _present(shape: str, files: Sequence[tuple[PlaceSummary, Schema]]) -> ShapePresent:
    return ShapePresent(
        full=files[-1][1].full,
        shape=shape,
        newest=max(place.newest for place, _ in files),
        file_count=sum(place.file_count for place, _ in files),
        oldest=min(place.oldest for place, _ in files),
    )


def _drifted(
    shape: str, files: Sequence[tuple[PlaceSummary, Schema]], own: Schema, memory: Memory
) -> DriftedShape:
    places = [place for place, _ in files]
    examples = {path for place in places for path in (place.first_path, place.last_path)}
    return DriftedShape(
        shape=shape,
        file_count=sum(place.file_count for place in places),
        examples=tuple(sorted(examples))[:3],
        differences=tuple(_differences(files[-1][1], own)),
        first_seen=_time(memory.first_seen[shape]),
        last_seen=_time(max(place.modified for place in places)),
    )


def _differences(older: Schema, newest: Schema) -> Iterable[str]:
    there = {field.name: field.shape() for field in older.fields}
    here = {field.name: field.shape() for field in newest.fields}
    for name in [*here, *(name for name in there if name not in here)]:
        if there.get(name) != here.get(name):
            yield f"{there.get(name, 'nothing')} instead of {here.get(name, 'nothing')}"


def _steady(schema: Schema, before: Schema) -> Schema:
    known = {field.name: field.type for field in before.fields}
    return Schema(
        fields=tuple(
            Field(name=field.name, type=_steady_type(field.type, known.get(field.name, NULL)))
            for field in schema.fields
        )
    )


def _steady_type(type: DataType, before: DataType) -> DataType:
    """The type from before where its values may be what is there now."""
    match type, before:
        case Struct(), Struct():
            known = {member.name: member.type for member in before.members}
            return Struct(
                Member(member.name, _steady_type(member.type, known.get(member.name, NULL)))
                for member in type.members
            )
        case Array(), Array():
            return Array(_steady_type(type.element, before.element))
        case Map(), Map():
            return Map(type.key, _steady_type(type.value, before.value))
    return before if widen(before, type) == before else type


def _inferred_choice(
    ordered: Sequence[PlaceSummary],
    schemas: Schemas,
    memory: Memory | None,
    before: Schema | None,
    format: str,
) -> tuple[Choice, Schema]:
    """A widening union over the files: a column that some of them lack is no change.

    A type that was guessed wide once stays so: values that happen to be fewer or narrower today
    change nothing. Keys of JSON may be rare. Those that no file has any longer are gone only when
    they are still missing a scan later.
    """
    own = _inferred(schemas[place.full] for place in ordered)
    if before is not None:
        own = _steady(own, before)
    missing = 0
    if memory is not None and before is not None and format in _SPARSE:
        kept = _inferred((before, own))
        if kept.shape == before.shape and own.shape != before.shape:
            missing = memory.waited + (memory.waiting_newest != ordered[-1].newest)
            own = before if missing < _SCANS_TO_MISS else own
    seen = Memory(
        current=own.shape,
        full=own.full,
        newest=ordered[-1].newest,
        ranks={},
        first_seen={},
        waited=missing if missing < _SCANS_TO_MISS else 0,
        waiting_newest=ordered[-1].newest if missing else ("", 0),
    )
    return Choice(memory=seen), own


def _inferred(schemas: Iterable[Schema]) -> Schema:
    """A widening union: a column missing from some files is no change."""
    fields: dict[str, Field] = {}
    for schema in schemas:
        for field in schema.fields:
            known = fields.get(field.name)
            type = field.type if known is None else widen(known.type, field.type)
            fields[field.name] = Field(name=field.name, type=type)
    return Schema(fields=tuple(fields.values()))


def _with_partitions(schema: Schema, partitions: Sequence[Field]) -> Schema:
    """Partition columns come last, as Spark and Hive have them; a file's own copy of one goes."""
    names = {field.name for field in partitions}
    own = (field for field in schema.fields if field.name not in names)
    return Schema(fields=(*own, *partitions))
