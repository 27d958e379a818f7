"""Which of the shapes that its files have is a dataset's schema, from scan to scan."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, TypeAlias

import msgspec

from lumos.formats.interface import MAYBE_INTEGERS
from lumos.model.dataset import DriftedShape
from lumos.model.json_codec import to_json
from lumos.model.schema import Field, Schema
from lumos.model.types import FLOAT64, NULL, SIGNED, Array, DataType, Map, Member, Struct

# How many scans in a row an earlier shape must lead before the dataset has returned to it.
_SCANS_TO_RETURN: Final = 2
_SCANS_TO_RETURN_FROM_ALTERNATING: Final = 5
# How many quiet scans it takes until earlier alternation is forgotten.
_SCANS_TO_CALM: Final = 3
# How often writers may take turns before that is called alternating.
_TURNS_TO_ALTERNATE: Final = 2

# The newest partition of some files, and the time of the newest file in it.
Newest: TypeAlias = tuple[str, int]
# Of a shape that is on record, but not when it was last written.
_UNKNOWN: Final[Newest] = ("", 0)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class ShapePresent(msgspec.Struct, frozen=True, kw_only=True):
    """A shape that some files of a dataset have now, and its full fingerprint."""

    full: str
    shape: str
    newest: Newest
    file_count: int
    oldest: int


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """What is remembered of a dataset's shapes between scans.

    `full` is the full fingerprint of the current shape, even if no file has it any longer.
    `ranks` numbers the shapes in the order in which they were first met; `newest` is the age of
    the current one when it was last written. `waiting` is an earlier shape that leads again, and
    `waited` for how many scans.
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


class RecalledMemory(NamedTuple):
    """The memory of a dataset in the store, with the schema that its files declare as JSON.

    `body` is how the store keeps the memory. There is none where the memory was made from the
    schema on record, which fits files of the same `format` alone.
    """

    memory: Memory
    schema: bytes
    body: bytes | None
    format: str | None


# Gives the memories of datasets by their paths, as far as the store has them.
Recall: TypeAlias = Callable[[Collection[str]], Mapping[str, RecalledMemory]]


def recalled_memory(body: bytes, schema: bytes, format: str | None) -> RecalledMemory:
    """A memory as the store keeps it."""
    return RecalledMemory(msgspec.json.decode(body, type=Memory), schema, body, format)


def memory_of_record(
    recorded: Schema,
    drift: Sequence[DriftedShape],
    *,
    partition_keys: Collection[str],
    format: str | None,
) -> RecalledMemory:
    """The memory of a dataset of which only the recorded schema and drift are known."""
    fields = (field for field in recorded.fields if field.name not in partition_keys)
    schema = Schema(fields=tuple(fields))
    first_seen = {
        each.shape: (each.first_seen - _EPOCH) // timedelta(microseconds=1)
        for each in drift
        if each.first_seen is not None
    }
    shapes = dict.fromkeys((*(each.shape for each in drift), schema.shape))
    memory = Memory(
        current=schema.shape,
        full=schema.full,
        newest=_UNKNOWN,
        ranks={shape: rank for rank, shape in enumerate(shapes)},
        first_seen=first_seen,
    )
    return RecalledMemory(memory, to_json(schema), None, format)


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset's schema after a scan; `reverted` if it just returned to an earlier one."""

    memory: Memory
    reverted: bool = False


def choose(present: Sequence[ShapePresent], memory: Memory | None) -> Choice:
    """The schema of a dataset whose files declare theirs.

    A shape never met before is a change at once. An earlier one counts again only when it alone
    was written over several scans; writers that take turns do not make a dataset change each time.
    """
    ordered = sorted(present, key=lambda each: (each.newest, each.file_count, each.shape))
    ranks = {} if memory is None else dict(memory.ranks)
    newcomers = [each for each in ordered if each.shape not in ranks]
    for each in newcomers:
        ranks[each.shape] = len(ranks)
    first_seen = _first_seen(present, {} if memory is None else memory.first_seen)
    if memory is None or newcomers:
        chosen = newcomers[-1]
        return Choice(
            memory=Memory(
                current=chosen.shape,
                full=chosen.full,
                newest=chosen.newest,
                ranks=ranks,
                first_seen=first_seen,
            )
        )
    kept = msgspec.structs.replace(memory, first_seen=first_seen)
    return _among_known({each.shape: each for each in ordered}, kept)


def _first_seen(present: Iterable[ShapePresent], before: Mapping[str, int]) -> dict[str, int]:
    now = {each.shape: min(each.oldest, before.get(each.shape, each.oldest)) for each in present}
    return {**before, **now}


def _among_known(present: Mapping[str, ShapePresent], memory: Memory) -> Choice:
    if memory.newest == _UNKNOWN:
        # All that is there now was there when the current shape was recorded.
        newest = max(each.newest for each in present.values())
        memory = msgspec.structs.replace(memory, newest=newest)
    current = present.get(memory.current)
    # What was written after the current shape was last seen to be written.
    later = [
        each
        for shape, each in present.items()
        if shape != memory.current and (current is None or each.newest > memory.newest)
    ]
    if current is not None and current.newest > memory.newest:
        return Choice(memory=_current_written(memory, current, others=bool(later)))
    if not later:
        return Choice(memory=memory)
    leader = max(later, key=lambda each: (each.newest, memory.ranks[each.shape]))
    if current is not None and len(later) > 1:
        # Two earlier shapes at once: nobody returned to either.
        return Choice(memory=_turn(memory, calm=0))
    return _waiting_for(leader, memory, is_gone=current is None)


def _current_written(memory: Memory, current: ShapePresent, *, others: bool) -> Memory:
    written = msgspec.structs.replace(
        memory, newest=current.newest, full=current.full, waiting="", waited=0
    )
    if others:
        return _turn(written, calm=0)
    calm = memory.calm + 1
    if calm >= _SCANS_TO_CALM:
        return msgspec.structs.replace(written, calm=calm, turns=0, alternating=False)
    return msgspec.structs.replace(written, calm=calm)


def _waiting_for(leader: ShapePresent, memory: Memory, *, is_gone: bool) -> Choice:
    is_new = leader.newest > memory.waiting_newest
    if memory.waiting != leader.shape:
        memory = _turn(memory, calm=0)
        waited = 1
    elif is_new or (is_gone and not memory.alternating):
        waited = memory.waited + 1
    else:
        # Nothing was written since; a file put in once is no return.
        return Choice(memory=memory)
    needed = _SCANS_TO_RETURN_FROM_ALTERNATING if memory.alternating else _SCANS_TO_RETURN
    if waited < needed:
        waiting = msgspec.structs.replace(
            memory, waiting=leader.shape, waited=waited, waiting_newest=leader.newest
        )
        return Choice(memory=waiting)
    returned = msgspec.structs.replace(
        memory,
        current=leader.shape,
        full=leader.full,
        newest=leader.newest,
        waiting="",
        waited=0,
        alternating=False,
    )
    return Choice(memory=returned, reverted=True)


def _turn(memory: Memory, *, calm: int) -> Memory:
    turns = memory.turns + 1
    return msgspec.structs.replace(
        memory, turns=turns, calm=calm, alternating=turns >= _TURNS_TO_ALTERNATE
    )


def completed(schemas: Sequence[Schema], before: Schema | None) -> list[Schema]:
    """Schemas, oldest first, whose doubtful types are taken from the newest one that is sure.

    A column of nulls alone says nothing of its type, and one of doubles that pandas wrote may be
    integers with gaps: neither is a change where other files, or the dataset before, know better.
    """
    if not any(_is_doubtful(field) for schema in schemas for field in schema.fields):
        return list(schemas)
    sure: dict[str, DataType] = {}
    for schema in schemas if before is None else (before, *schemas):
        for field in schema.fields:
            if MAYBE_INTEGERS not in field.tags:
                sure[field.name] = filled(field.type, sure.get(field.name, NULL))
    settled = {} if before is None else {field.name: field.type for field in before.fields}
    doubtful = {
        field.name: settled.get(field.name, sure.get(field.name, NULL))
        for schema in schemas
        for field in schema.fields
        if MAYBE_INTEGERS in field.tags
    }
    return [
        Schema(fields=tuple(_completed(field, sure, doubtful) for field in schema.fields))
        for schema in schemas
    ]


def _is_doubtful(field: Field) -> bool:
    return NULL.text in field.type.text or MAYBE_INTEGERS in field.tags


def _completed(
    field: Field, sure: Mapping[str, DataType], doubtful: Mapping[str, DataType]
) -> Field:
    is_doubtful = MAYBE_INTEGERS in field.tags
    if field.name in doubtful and (is_doubtful or field.type in SIGNED):
        known = doubtful[field.name]
        type = known if known in SIGNED or known == FLOAT64 else field.type
        tags = tuple(tag for tag in field.tags if tag != MAYBE_INTEGERS)
        return msgspec.structs.replace(field, type=type, tags=tags)
    type = filled(field.type, sure.get(field.name, NULL))
    return field if type is field.type else msgspec.structs.replace(field, type=type)


def filled(type: DataType, other: DataType) -> DataType:
    """A type whose parts that only ever were null are taken from another."""
    match type, other:
        case _ if type == NULL:
            return other
        case Array(), Array():
            element = filled(type.element, other.element)
            if element is not type.element:
                return Array(element, element_nullable=type.element_nullable)
        case Map(), Map():
            value = filled(type.value, other.value)
            if value is not type.value:
                return Map(type.key, value, value_nullable=type.value_nullable)
        case Struct(), Struct():
            return _filled_struct(type, other)
    return type


def _filled_struct(type: Struct, other: Struct) -> Struct:
    known = {member.name: member.type for member in other.members}
    types = [filled(member.type, known.get(member.name, NULL)) for member in type.members]
    if all(new is member.type for new, member in zip(types, type.members, strict=True)):
        return type
    return Struct(
        Member(member.name, new, nullable=member.nullable)
        for new, member in zip(types, type.members, strict=True)
    )
