"""Why names that differ are values of one kind rather than names of tables."""

import re
from collections.abc import Sequence
from typing import Final

from lumos.pipeline.grouping.units import Unit, clusters
from lumos.pipeline.grouping.words import (
    DAYTIMES,
    OF_LOOKUPS,
    OF_TABLES,
    STAGES,
    holds_entities,
    is_total,
    is_value,
    looks_like_table,
    names_entity,
    words_of,
)
from lumos.pipeline.placement import ANY_NAME

PIECES: Final = re.compile(r"\{[a-z-]+\}|[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+|.", re.DOTALL)
_CODE: Final = re.compile(r"[A-Z]{1,8}(?:[.-][A-Z]{1,4})?(?:\d{1,4}|\{n\})?\Z", re.ASCII)
_SHORT: Final = re.compile(r"[a-z]{2,3}\Z", re.ASCII)
_ONE_WORD: Final = re.compile(r"(?:[0-9A-Za-z]|\{[a-z-]+\})+\Z", re.ASCII)
_SIZE: Final = re.compile(r"(?:sf\d+|\d{1,4}(?:[kmbghdwy]|min|mo|km|mb|gb|hz))\Z", re.IGNORECASE)
_SHORT_VALUE: Final = re.compile(r"\w{1,3}\Z", re.ASCII)
VALUE: Final = re.compile(r"\{(?:place|code|id|uuid|hash|n|region|name)\}\Z")
# 1.4.0 beside 1.5.0-rc1, and pt-BR beside de.
_VERSION: Final = re.compile(
    r"v?(?:\d+|\{n\})(?:\.(?:\d+|\{n\}))+(?:[-.+]?[A-Za-z]+(?:[.-]?(?:\d+|\{n\}))?)?\Z", re.ASCII
)
_LOCALE: Final = re.compile(r"[a-z]{2}[-_](?:[A-Z]{2}|[A-Z][a-z]{3})\Z", re.ASCII)
# So many values for sure take in one name that may be anything.
_FEW_STRAYS: Final = 5
# So many names of equal tables are values, if at most that share of them look like tables' names.
_MANY_FILES: Final = ((4, 1 / 3), (6, 0.6), (12, 0.8))
# Folders are made for tables more often than files are.
MANY_FOLDERS: Final = ((5, 0.2), (8, 1 / 3), (12, 0.6), (24, 0.8))


def why_values(
    texts: Sequence[str],
    parent: str,
    units: Sequence[Unit],
    *,
    many: Sequence[tuple[int, float]] = _MANY_FILES,
    tables: int = 1,
) -> str | None:
    """Why names that differ are values rather than tables; nothing where they are not."""
    if len(texts) < 2:
        return None
    before, values, after = varying(texts)
    if before[-1:] == ["="]:
        return None
    around = words_of(" ".join(piece for piece in (*before, *after) if piece[0] != "{"))
    inside = words_of(parent)
    names = (" ".join(words_of(name)) for value in values for name in value.split("/"))
    if not STAGES.isdisjoint(names) or not all(value.strip("-_. ") for value in values):
        return None
    if all(map(_SIZE.match, values)):
        return None
    shown = f"{', '.join(sorted(values)[:3])}{' ...' if len(values) > 3 else ''}"
    if tables > 1 and len(values) > 2:
        return f"{len(values)} names stand beside the same {tables} tables ({shown})"
    if inside and inside[-1] in OF_TABLES:
        return None
    if {value.lower() for value in values} <= DAYTIMES or all(map(_VERSION.match, values)):
        return f"the names differ in a value ({shown})"
    are_parts = "{split}" in values and "-of-" in "".join(after)
    if are_parts or _are_beside_values(values) or _are_strays(values, units):
        return f"the names differ in a value ({shown})"
    share = sum(map(looks_like_table, values)) / len(values)
    if _are_codes(values) and (not share or _are_codes_of(around, share, units)):
        return f"the names differ in a code ({shown})"
    if after[-1:] == ["{id}"] and not before and not share and _have_same_columns(units):
        return f"the names tell a kind of thing before its id ({shown})"
    are_tables = share > 0.5
    if names_entity(around) and not are_tables:
        return f"the names tell which {' '.join(around)} it is ({shown})"
    if holds_entities(parent) and not are_tables:
        return f"the folder {parent} holds one thing of a kind under each name ({shown})"
    is_many = any(len(values) >= count and share <= limit for count, limit in many)
    if is_many and _have_same_columns(units):
        return f"{len(values)} names have the same columns ({shown})"
    return None


def _are_codes_of(around: Sequence[str], share: float, units: Sequence[Unit]) -> bool:
    """Whether words in capitals are values of what stands beside them, though one is a plural."""
    return bool(around) and share < 0.5 and len(units) > 2 and _have_same_columns(units)


def _are_beside_values(values: Sequence[str]) -> bool:
    """Whether some are values for sure and the others may be: X beside the numbers 1 to 22."""
    others = [value for value in values if not VALUE.match(value)]
    if ANY_NAME in values or len(others) == len(values):
        return ANY_NAME in values
    if any(map(is_total, others)):
        return False
    if "{id}" in values or "{hash}" in values:
        return all(map(_ONE_WORD.match, others))
    return all(
        _SHORT_VALUE.match(value) or _CODE.match(value) or _LOCALE.match(value) for value in others
    )


def _are_strays(values: Sequence[str], units: Sequence[Unit]) -> bool:
    """Whether a few names stand among many that are values for sure, with the same columns."""
    sure = sum(unit.files for value, unit in zip(values, units, strict=True) if VALUE.match(value))
    others = [value for value in values if not VALUE.match(value)]
    return (
        sure >= _FEW_STRAYS * len(others)
        and not any(looks_like_table(value) or is_total(value) for value in others)
        and _have_same_columns(units)
    )


def _are_codes(values: Sequence[str]) -> bool:
    if all(len(value) == 1 or _CODE.match(value) for value in values):
        return True
    is_short = len(values) > 2 and len(set(map(len, values))) == 1
    if is_short and all(map(_SHORT.match, values)):
        return True
    # enwiki, dewiki and frwiki differ in a language.
    before = common(values)
    after = common([value[before:][::-1] for value in values])
    return before + after > 2 and all(
        is_value(value[before : len(value) - after].lower()) for value in values
    )


def _have_same_columns(units: Sequence[Unit]) -> bool:
    """Whether columns are evidence at all, more than one or a code's name, and as good as equal."""
    every = [columns.families for unit in units for columns in unit.columns]
    if any(len(names) < 2 or OF_LOOKUPS.issuperset(names) for names in every):
        return False
    return len(clusters(units, lambda pair: pair.same)) == 1


def varying(texts: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """What all texts begin with, what each has of its own, and what all end with."""
    pieces = [PIECES.findall(text) for text in texts]
    start = common(pieces)
    stop = common([each[start:][::-1] for each in pieces])
    own = ["".join(each[start : len(each) - stop]) for each in pieces]
    return pieces[0][:start], own, pieces[0][len(pieces[0]) - stop :]


def common(pieces: Sequence[Sequence[str]]) -> int:
    count = 0
    for column in zip(*pieces, strict=False):
        if len(set(column)) > 1:
            break
        count += 1
    return count
