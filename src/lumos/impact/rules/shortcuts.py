"""What the text and the edges show without reasoning through the SQL."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

import msgspec

from lumos.impact.rules import plain
from lumos.impact.rules.downstream import Making, Versions
from lumos.impact.rules.facts import ALL
from lumos.impact.rules.kinds import has_structure
from lumos.impact.rules.plain import are_explained
from lumos.impact.rules.type_uses import (
    ClauseKind,
    OutputColumn,
    StatementEffect,
    TableVersions,
    TypeUse,
    ValueType,
)
from lumos.model.lineage import ColumnMapping, Derivation, Edge, UseKind
from lumos.model.schema import Field
from lumos.model.types import Unknown


@cache
def _whole(word: str) -> re.Pattern[str]:
    """A word and not a part of one; what begins with letters is found at a tenth of the cost."""
    return re.compile(rf"{word}\b(?<!\w{word})")


class _Words:
    """Words to look for in a text of small letters."""

    def __init__(self, *words: str) -> None:
        self._words = words

    def are_in(self, text: str) -> bool:
        # Most texts have none of them, and those are told without any pattern.
        return any(word in text and _whole(word).search(text) for word in self._words)


_COUNT: Final = re.compile(r"count\s*\(\s*\*\s*\)")
_WRITES: Final = _Words("insert", "merge", "update", "delete", "copy")
_OUTER: Final = _Words("left", "right", "full", "outer")
_NOT_NULL: Final = re.compile(r"\bis\s+not\s+null\b")
_COMPARING: Final = (UseKind.JOIN, UseKind.FILTER)
_READ: Final = {ClauseKind.JOIN: 0, ClauseKind.PROJECTION: 1}
_STAR: Final = re.compile(r"\bselect\s+(?:[\w.]+\.)?(\*)")
_SELECT: Final = _whole("select")
_NESTING: Final = _Words(
    "with", "union", "intersect", "except", "minus", "distinct", "lateral", "pivot", "unpivot",
    "unnest", "using", "values",
)  # fmt: skip
_NATURAL: Final = _Words("natural")
# STRUCT(*), CONCAT_WS(',', o.*)
_ALL_AS_ARGUMENTS: Final = re.compile(r"[(,]\s*(?:\w+\.)*\*\s*\)")
# FROM orders AS o(a, b)
_NAMED_BY_PLACES: Final = re.compile(
    r"(?:from|join)(?<!\wfrom)(?<!\wjoin)\s+[^\s(),]+\s+(?:as\s+)?(?!(?:as|on|using)\b)\w+\s*\("
)


def is_unmentioned(making: Making, changed: Mapping[str, TableVersions]) -> bool:
    """Whether the text certainly uses nothing that changes, by a name or by a star."""
    assert making.sql is not None
    text = making.sql.casefold()
    if _NATURAL.are_in(text):
        return False
    for versions in changed.values():
        if versions.is_doubtful:
            return False
        if any(name.casefold() in text for name in versions.changed):
            return False
    edges = [edge for edge in making.edges if edge.upstream in changed]
    if _takes_more_than_named(text, edges):
        return False
    if ALL not in _COUNT.sub("", text):
        # DuckDB's FROM without SELECT takes all without a star.
        return not any(each.star for edge in making.edges for each in edge.columns)
    return all(map(_has_no_star, edges))


def _takes_more_than_named(text: str, edges: Sequence[Edge]) -> bool:
    """Whether columns get other names by their places, or are read together by no name.

    They are arguments, or a row is one value: STRUCT(*), SELECT t FROM t.
    """
    if _NAMED_BY_PLACES.search(text):
        return True
    if ALL in text and _ALL_AS_ARGUMENTS.search(_COUNT.sub("", text)):
        return True
    read = {each.upstream for edge in edges for each in edge.columns}
    read |= {each.upstream for edge in edges for each in edge.uses}
    return any(name.casefold() not in text for name in read - {ALL})


def _has_no_star(edge: Edge) -> bool:
    is_told = bool(edge.columns)
    return is_told and not any(each.star or each.upstream == ALL for each in edge.columns)


def plain_effect(
    making: Making, changed: Mapping[str, TableVersions], versions: Versions
) -> StatementEffect | None:
    """What changes where changed columns are handed on and plainly used; None if there is more."""
    assert making.sql is not None
    text = making.sql.casefold()
    if any(not _keeps_columns(each) for each in changed.values()) or _WRITES.are_in(text):
        return None
    if _NESTING.are_in(text) and any(map(_changes_structure, changed.values())):
        # Where results are put together, structures have to be built alike.
        return None
    if any(_changes_nulls(each) for each in changed.values()) and (
        _OUTER.are_in(text) or _NOT_NULL.search(text)
    ):
        return None
    targets: dict[str, int] = {}
    for edge in making.edges:
        for mapping in edge.columns:
            targets[mapping.downstream] = targets.get(mapping.downstream, 0) + 1
    meetings: list[TypeUse] = []
    handed_on: list[_HandedOn] = []
    for edge in making.edges:
        if edge.upstream not in changed:
            continue
        if not (edge.columns or edge.uses):
            # Whether it is read by a star that nobody followed, the edge does not tell.
            return None
        met = _met(making, edge, changed[edge.upstream], versions)
        handed = _handed_on(edge, changed[edge.upstream], targets, text)
        if handed is None or met is None:
            return None
        handed_on += (each for each in handed if each.output.before != each.output.after)
        meetings += met
        meetings += (each.meeting for each in handed if each.meeting is not None)
    if meetings and _is_nested(text):
        return None
    if not _are_explained(changed, text, making.edges):
        return None
    once = tuple(dict.fromkeys(sorted(meetings, key=_when_read)))
    return StatementEffect(
        meetings=once, outputs=tuple(_with_its_meeting(each, once) for each in handed_on)
    )


class _HandedOn(NamedTuple):
    """A column that is made of a changed one, and what it meets on the way."""

    output: OutputColumn
    meeting: TypeUse | None = None


def _when_read(meeting: TypeUse) -> int:
    """The order in which a statement is read."""
    return _READ.get(meeting.place, len(_READ))


def _with_its_meeting(handed: _HandedOn, meetings: Sequence[TypeUse]) -> OutputColumn:
    if handed.meeting is None:
        return handed.output
    place = meetings.index(handed.meeting)
    return msgspec.structs.replace(handed.output, is_same_value=False, meetings=(place,))


def _is_nested(text: str) -> bool:
    """Whether a name in one clause may mean what another query made of the column."""
    return len(_SELECT.findall(text)) != 1 or _NESTING.are_in(text)


def _met(
    making: Making, edge: Edge, versions: TableVersions, all_versions: Versions
) -> list[TypeUse] | None:
    """What conditions, groupings and orders do with changed columns if all do it plainly."""
    names = {name.casefold(): name for name in versions.changed}
    compared = _compared(edge)
    found: list[TypeUse] = []
    for use in edge.uses:
        if use.upstream == ALL:
            return None
        name = names.get(use.upstream.casefold())
        if name is None:
            continue
        before, after = versions.columns[name]
        if before is None or after is None:
            return None
        if use.usage not in _COMPARING and use.upstream.casefold() in compared:
            before, after = _required(before), _required(after)
            if before == after:
                continue
        met = plain.meetings(use, edge, (before, after), making.edges, all_versions)
        if met is None:
            return None
        found += met
    return found


def names_what_goes(making: Making, changed: Mapping[str, TableVersions]) -> bool:
    """Whether all that changes is columns that go, and the edges show where they are named."""
    assert making.sql is not None
    if not all(map(_only_goes, changed.values())):
        return False
    edges = [edge for edge in making.edges if edge.upstream in changed]
    text = making.sql.casefold()
    if not all(map(_has_no_star, edges)) or _takes_more_than_named(text, edges):
        return False
    # A table with columns of its own keeps them.
    return not _WRITES.are_in(text) and _are_explained(changed, text, making.edges)


def _only_goes(versions: TableVersions) -> bool:
    return not versions.is_doubtful and all(
        versions.columns[name][1] is None for name in versions.changed
    )


def _are_explained(changed: Mapping[str, TableVersions], text: str, edges: Sequence[Edge]) -> bool:
    names = {name.casefold() for each in changed.values() for name in each.changed}
    return are_explained(names, text, edges)


def _handed_on(
    edge: Edge, versions: TableVersions, targets: Mapping[str, int], text: str
) -> list[_HandedOn] | None:
    """The columns that changed ones are handed on to; None if something is made of them.

    The largest and smallest of all values are of their type, too.
    """
    names = {name.casefold(): name for name in versions.changed}
    compared = _compared(edge)
    found = []
    for mapping in edge.columns:
        if mapping.upstream == ALL:
            return None
        name = names.get(mapping.upstream.casefold())
        if name is None:
            continue
        before, after = versions.columns[name]
        if targets[mapping.downstream] > 1 or before is None or after is None:
            return None
        is_same = mapping.derivation is Derivation.IDENTITY and mapping.cast_to is None
        extreme = None if is_same else plain.extreme(mapping, edge.upstream, (before, after))
        if not is_same and extreme is None:
            return None
        if name.casefold() in compared:
            before, after = _required(before), _required(after)
        has_nulls = before.nullable and after.nullable
        if extreme and not has_nulls and (not extreme.is_of_rows or _OUTER.are_in(text)):
            return None
        line = _line_of_star(text) if mapping.star else None
        output = _output(mapping, edge.upstream, before, after, line or mapping.line)
        found.append(_HandedOn(output, extreme.meeting if extreme else None))
    return found


def _compared(edge: Edge) -> set[str]:
    """The columns of which a comparison that must hold lets no nulls through."""
    return {use.upstream.casefold() for use in edge.uses if use.usage in _COMPARING}


def _required(field: Field) -> Field:
    return msgspec.structs.replace(field, nullable=False)


def _line_of_star(text: str) -> int | None:
    """The line of the only star after a SELECT; edges say on which line its statement begins."""
    stars = [each.start(1) for each in _STAR.finditer(text)]
    return text.count("\n", 0, stars[0]) + 1 if len(stars) == 1 else None


def _keeps_columns(versions: TableVersions) -> bool:
    """Whether columns get other types and nothing more."""
    if versions.is_doubtful or versions.is_reordered:
        return False
    pairs = [versions.columns[name] for name in versions.changed]
    return all(
        before is not None and after is not None and not isinstance(after.type, Unknown)
        for before, after in pairs
    )


def _changes_nulls(versions: TableVersions) -> bool:
    pairs = [versions.columns[name] for name in versions.changed]
    return any(before and after and before.nullable != after.nullable for before, after in pairs)


def _changes_structure(versions: TableVersions) -> bool:
    pairs = [versions.columns[name] for name in versions.changed]
    return any(each is not None and has_structure(each.type) for pair in pairs for each in pair)


def _output(
    mapping: ColumnMapping, upstream: str, before: Field, after: Field, line: int | None
) -> OutputColumn:
    return OutputColumn(
        name=mapping.downstream,
        before=ValueType(type=before.type, nullable=before.nullable),
        after=ValueType(type=after.type, nullable=after.nullable),
        is_same_value=True,
        clause=mapping.transformation,
        line=line,
        origins=((upstream, before.name),),
    )
