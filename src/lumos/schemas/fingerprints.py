"""What makes a change the same change, so that a waiver can name one."""

from collections.abc import Sequence
from typing import TypeAlias

from lumos.model import schema
from lumos.model.change import (
    AnySchemaChange,
    FieldAdded,
    FieldRemoved,
    Finding,
    Reordered,
    TagsChanged,
    TypeChanged,
)
from lumos.model.schema import Field
from lumos.model.types import quoted_text

Fact: TypeAlias = str | bool | Sequence["Fact"] | None


def fingerprint(urn: str, finding: Finding) -> str:
    """The same for the same change of the same dataset, whatever else changes beside it.

    Rules and verdicts stay out, and so does what other changes move: a new field's position, and
    fields that keep their place in a reordering.
    """
    change = finding.change
    before, after = _sides(change)
    return schema.fingerprint(map(_line, (urn, kind_of(change), change.path, before, after)))


def kind_of(change: AnySchemaChange) -> str:
    """The change's kind as JSON has it: `added`, `type_changed`, ..."""
    return str(change.__struct_config__.tag)


def _sides(change: AnySchemaChange) -> tuple[Fact, Fact]:
    match change:
        case FieldAdded(after=field):
            return None, (_nature(field), field.default)
        case FieldRemoved(before=field):
            return _nature(field), None
        case TypeChanged(before=old, after=new):
            return old.text, new.text
        case Reordered(before=names, after=others):
            moved = moved_names(names, others)
            return [name for name in names if name in moved], [
                name for name in others if name in moved
            ]
        case TagsChanged(before=tags, after=others):
            return sorted(tags), sorted(others)
        case _:
            return change.before, change.after


def _line(fact: Fact) -> str:
    match fact:
        case str():
            return quoted_text(fact)
        case None | bool():
            return str(fact)
        case _:
            return f"({', '.join(map(_line, fact))})"


def _nature(field: Field) -> tuple[str, bool, bool, bool]:
    return field.type.text, field.nullable, field.key, field.partition


def moved_names(before: Sequence[str], after: Sequence[str]) -> set[str]:
    """The names that changed sides with some other name; the rest neither moved nor was passed."""
    place = {name: position for position, name in enumerate(after)}
    places = [place[name] for name in before]
    highest = -1
    passed_before = []
    for position in places:
        passed_before.append(highest > position)
        highest = max(highest, position)
    lowest = len(places)
    moved = set()
    for index in range(len(places) - 1, -1, -1):
        if passed_before[index] or lowest < places[index]:
            moved.add(before[index])
        lowest = min(lowest, places[index])
    return moved
