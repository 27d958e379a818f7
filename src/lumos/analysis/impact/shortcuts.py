"""What the text and the edges show without reasoning through the SQL."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from lumos.analysis.impact.downstream import Making
from lumos.analysis.impact.facts import ALL
from lumos.model.lineage import ColumnMapping, Derivation, Edge
from lumos.model.meeting import Output, TableVersions, Value
from lumos.model.schema import Field
from lumos.model.types import Unknown

_COUNT: Final = re.compile(r"count\s*\(\s*\*\s*\)")
_WRITES: Final = re.compile(r"\b(?:insert|merge|update|delete|copy)\b")
_OUTER: Final = re.compile(r"\b(?:left|right|full|outer|is\s+not\s+null)\b")
_NATURAL: Final = re.compile(r"\bnatural\b")


def is_unmentioned(making: Making, changed: Mapping[str, TableVersions]) -> bool:
    """Whether the text certainly uses nothing that changes, by a name or by a star."""
    assert making.sql is not None
    text = making.sql.casefold()
    if _NATURAL.search(text):
        return False
    for versions in changed.values():
        if versions.is_doubtful:
            return False
        if any(name.casefold() in text for name in versions.changed):
            return False
    if ALL not in _COUNT.sub("", text):
        return True
    return all(_has_no_star(edge) for edge in making.edges if edge.upstream in changed)


def _has_no_star(edge: Edge) -> bool:
    is_told = bool(edge.columns)
    return is_told and not any(each.star or each.upstream == ALL for each in edge.columns)


def same_columns(making: Making, changed: Mapping[str, TableVersions]) -> list[Output] | None:
    """The columns that change where all changed ones are only handed on; None if there is more."""
    assert making.sql is not None
    text = making.sql.casefold()
    if _WRITES.search(text) or any(not _keeps_columns(each) for each in changed.values()):
        return None
    if any(_changes_nulls(each) for each in changed.values()) and _OUTER.search(text):
        return None
    targets: dict[str, int] = {}
    for edge in making.edges:
        for mapping in edge.columns:
            targets[mapping.downstream] = targets.get(mapping.downstream, 0) + 1
    found: list[Output] = []
    mentions: dict[str, int] = {}
    for edge in making.edges:
        versions = changed.get(edge.upstream)
        if versions is None:
            continue
        handed = _handed_on(edge, versions, targets)
        if handed is None:
            return None
        for mapping, before, after in handed:
            name = before.name.casefold()
            mentions[name] = mentions.get(name, 0) + (not mapping.star)
            found.append(_output(mapping, edge.upstream, before, after))
    for versions in changed.values():
        for name in versions.changed:
            folded = name.casefold()
            if len(_word(folded).findall(text)) != mentions.get(folded, 0):
                return None
    return found


def names_what_goes(making: Making, changed: Mapping[str, TableVersions]) -> bool:
    """Whether all that changes is columns that go, and the edges show where they are named."""
    assert making.sql is not None
    text = making.sql.casefold()
    if _WRITES.search(text):
        # A table with columns of its own keeps them.
        return False
    for edge in making.edges:
        versions = changed.get(edge.upstream)
        if versions is None:
            continue
        if versions.is_doubtful or not _has_no_star(edge):
            return False
        named = {each.upstream.casefold() for each in edge.columns}
        named.update(each.upstream.casefold() for each in edge.uses)
        for name in versions.changed:
            _, after = versions.columns[name]
            folded = name.casefold()
            if after is not None or (folded not in named and _word(folded).search(text)):
                return False
    return True


def _handed_on(
    edge: Edge, versions: TableVersions, targets: Mapping[str, int]
) -> list[tuple[ColumnMapping, Field, Field]] | None:
    """The mappings of changed columns if nothing else is done with these."""
    names = {name.casefold(): name for name in versions.changed}
    if any(use.upstream.casefold() in names or use.upstream == ALL for use in edge.uses):
        return None
    found = []
    for mapping in edge.columns:
        if mapping.upstream == ALL:
            return None
        name = names.get(mapping.upstream.casefold())
        if name is None:
            continue
        before, after = versions.columns[name]
        is_same = mapping.derivation is Derivation.IDENTITY and mapping.cast_to is None
        if not is_same or targets[mapping.downstream] > 1 or before is None or after is None:
            return None
        found.append((mapping, before, after))
    return found


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


def _output(mapping: ColumnMapping, upstream: str, before: Field, after: Field) -> Output:
    return Output(
        name=mapping.downstream,
        before=Value(type=before.type, nullable=before.nullable),
        after=Value(type=after.type, nullable=after.nullable),
        is_same_value=True,
        clause=mapping.transformation,
        line=mapping.line,
        origins=((upstream, before.name),),
    )


@lru_cache(maxsize=1024)
def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
