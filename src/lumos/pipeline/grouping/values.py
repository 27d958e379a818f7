"""Why names that differ are values of one kind rather than names of tables."""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Final

from lumos.pipeline.grouping.agreement import (
    are_evidence,
    have_own_columns,
    have_same_columns,
    hold_measures,
    share_columns,
)
from lumos.pipeline.grouping.units import Unit, kinds_of
from lumos.pipeline.grouping.words import (
    DAYTIMES,
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
from lumos.pipeline.variables import TIMES, sizes_of

PIECES: Final = re.compile(r"\{[a-z-]+\}|[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+|.", re.DOTALL)
_CODE: Final = re.compile(r"[A-Z]{1,12}(?:[._-][A-Z]{1,4})?(?:\d{1,4}|\{n\})?\Z", re.ASCII)
_SHORT: Final = re.compile(r"[a-z]{2,3}\Z", re.ASCII)
# I7FD0, MGSP3: what only a machine calls its files.
_MIXED: Final = re.compile(r"[0-9A-Z]{4,}\Z", re.ASCII)
_DIGIT_INSIDE: Final = re.compile(r"\d[A-Z]")
_LONGEST_CODE: Final = 6
_LONGEST_CODE_OF_PLACE: Final = 2
_ONE_WORD: Final = re.compile(r"(?:[0-9A-Za-z]|\{[a-z-]+\})+\Z", re.ASCII)
_SHORT_VALUE: Final = re.compile(r"\w{1,3}\Z", re.ASCII)
VALUE: Final = re.compile(r"\{(?:place|person|code|id|uuid|hash|n|region|name)\}\Z")
# 1.4.0 beside 1.5.0-rc1, and pt-BR beside de.
_VERSION: Final = re.compile(
    r"v?(?:\d+|\{n\})(?:\.(?:\d+|\{n\}))+(?:[-.+]?[A-Za-z]+(?:[.-]?(?:\d+|\{n\}))?)?\Z", re.ASCII
)
_LOCALE: Final = re.compile(r"[a-z]{2}[-_](?:[A-Z]{2}|[A-Z][a-z]{3})\Z", re.ASCII)
_HEX: Final = re.compile(r"(?=[a-f]*\d)[0-9a-f]{4,}\Z", re.ASCII)
_MAY_BE_VALUES: Final = (_SHORT_VALUE, _CODE, _LOCALE, _HEX)
_NUMBER: Final = re.compile(r"\d+")
# What follows in web01 and db{n}, which are machines by what they do.
_HOST_NUMBER: Final = re.compile(r"\d\d\Z|\{n\}\Z", re.ASCII)
_ROLE: Final = re.compile(r"[a-z]{2,10}\Z", re.ASCII)
# sub-{n}_task- before a value: each part of such a name is a key and a value.
_PAIRS: Final = re.compile(r"(?:\A|_)[a-z]+-[^_-]+_(?:[^_]+_)*[a-z]+-\Z")
_STARTING_DATE: Final = re.compile(r"\{(?:date|time|yyyy-mm|yyyy|week|quarter)\}")
# MPI-ESM1-2-LR, r1i1p1f2: what has a number in it, or nothing but capitals.
_MARK: Final = re.compile(r"(?=[^0-9{]*[0-9{]|[A-Z-]+\Z)[0-9A-Za-z{}.-]+\Z", re.ASCII)
_PEOPLE: Final = re.compile(r"[^\W\d_]+(?:[ -][^\W\d_]+)?, [^\W\d_]+(?:[ -][^\W\d_]+)?\Z")
_COMPANY: Final = re.compile(
    r"\b(?:GmbH|AG|KG|SE|Inc|LLC|Ltd|PLC|plc|Corp|SA|SAS|SARL|BV|NV|Oy|AB|ApS|SpA|Srl|Pty)(?![A-Za-z])"
)
# So few names are values where people and places are called so.
_LEAST_PROPER: Final = (3, 1 / 3)
# So few are values beside a word that all have: plug_washer, plug_dryer, plug_fridge.
_LEAST_WORDS: Final = (3, 0.0)
_WORD: Final = re.compile(r"[^\W\d_]+\Z")
_NAMES: Final = frozenset({"name", "place", "person", "code"})
# What divides the parts of a name; a placeholder is one part.
_SEPARATORS: Final = re.compile(r"[^0-9A-Za-z{}]+(?![a-z-]*\})", re.ASCII)
_FEWEST_NAMES: Final = 3
# So many values for sure take in one name that may be anything.
_FEW_STRAYS: Final = 5
# So many names of equal tables are values, if at most that share of them look like tables' names.
MANY_FILES: Final = ((4, 1 / 3), (6, 0.6), (12, 0.8))
# Folders are made for tables more often than files are.
MANY_FOLDERS: Final = ((5, 0.2), (8, 1 / 3), (12, 0.6), (24, 0.8))


class _Case:
    """Names that differ, what they have in common, and what they stand in and beside."""

    def __init__(self, texts: Sequence[str], parent: str, units: Sequence[Unit]) -> None:
        self.texts = texts
        self.parent = parent
        self.units = units
        self.before, self.values, self.after = varying(texts)

    @cached_property
    def shown(self) -> str:
        """A few of the names, for people."""
        return f"{', '.join(sorted(self.values)[:3])}{' ...' if len(self.values) > 3 else ''}"

    @cached_property
    def share(self) -> float:
        """How many of them look like names of tables."""
        return sum(map(looks_like_table, self.values)) / len(self.values)

    @cached_property
    def around(self) -> tuple[str, ...]:
        """The words that all names have."""
        return words_of(" ".join(piece for piece in (*self.before, *self.after) if piece[0] != "{"))

    @property
    def are_tables(self) -> bool:
        return self.share > 0.5


def why_values(
    texts: Sequence[str],
    parent: str,
    units: Sequence[Unit],
    *,
    many: Sequence[tuple[int, float]] = MANY_FILES,
    tables: int = 1,
    names: int = 0,
) -> str | None:
    """Why names that differ are values rather than tables; nothing where they are not.

    `tables` tells how many tables have the names beside them, and `names` how many there are
    where values among them, such as numbers, are told apart too.
    """
    if len(texts) < 2:
        return None
    case = _Case(texts, parent, units)
    if _are_never_values(case):
        return None
    count = max(len(texts), names)
    if tables > 1 and count > 2:
        return f"{count} names stand beside the same {tables} tables ({case.shown})"
    reason = _why(case, many)
    if reason is None and any("{n}" in text for text in texts):
        # A number that varies in one of them does so in all.
        case = _Case([_NUMBER.sub("{n}", text) for text in texts], parent, units)
        reason = None if _are_never_values(case) else _why(case, many)
    return None if reason is None else f"{reason} ({case.shown})"


def _why(case: _Case, many: Sequence[tuple[int, float]]) -> str | None:
    reason = next(filter(None, (why(case) for why in _FOR_SURE)), None)
    inside = words_of(case.parent)
    if reason is None and not (inside and inside[-1] in OF_TABLES):
        reason = next(filter(None, (why(case) for why in _PERHAPS)), None) or _why_many(case, many)
    return reason


def _are_never_values(case: _Case) -> bool:
    """Whether something forbids it: a hive key, stages, sizes, or columns that go with names."""
    if case.before[-1:] == ["="] or not all(value.strip("-_. ") for value in case.values):
        return True
    if _has_stage(case.values, case.units) or _are_sizes(case.texts):
        return True
    return have_own_columns(case.units)


def _why_value(case: _Case) -> str | None:
    values, units = case.values, case.units
    are_parts = "{split}" in values and "-of-" in "".join(case.after)
    is_daytime = {value.lower() for value in values} <= DAYTIMES
    if are_parts or is_daytime or all(map(_VERSION.match, values)):
        return "the names differ in a value"
    if _are_beside_values(values, units) or _are_strays(values, units):
        return "the names differ in a value"
    return None


def _why_code(case: _Case) -> str | None:
    if not _are_codes(case.values, case.units):
        return None
    # Words in capitals are values of what stands beside them, though one is a plural.
    are_of_it = case.around and case.share < 0.5 and len(case.units) > 2
    if not case.share or (are_of_it and have_same_columns(case.units)):
        return "the names differ in a code"
    return None


def _why_host(case: _Case) -> str | None:
    are_roles = not case.share and all(map(_ROLE.match, case.values))
    if are_roles and _HOST_NUMBER.match("".join(case.after[:1])) and have_same_columns(case.units):
        return "the names are those of machines"
    return None


def _why_several(case: _Case) -> str | None:
    if not case.share and _are_several_values(case.values, case.units):
        return "the names differ in several values"
    return None


def _why_id(case: _Case) -> str | None:
    if case.share or not have_same_columns(case.units):
        return None
    if case.after[-1:] == ["{id}"] and not case.before:
        return "the names tell a kind of thing before its id"
    return "each id has one of the names only" if _have_own_ids(case.units) else None


def _why_people(case: _Case) -> str | None:
    if all(map(_COMPANY.search, case.texts)) or all(map(_PEOPLE.match, case.texts)):
        return "the names are those of companies or people"
    return None


def _why_key(case: _Case) -> str | None:
    if _PAIRS.search("".join(case.before)) and not case.are_tables:
        return "the names tell a value after its key"
    return None


def _why_entity(case: _Case) -> str | None:
    if case.are_tables:
        return None
    near = _nearest(case.before[::-1]) + _nearest(case.after)
    if names_entity(near) and share_columns(case.units):
        return f"the names tell which {' '.join(case.around)} it is"
    if holds_entities(case.parent):
        return f"the folder {case.parent} holds one thing of a kind under each name"
    return None


# Asked in this order; folders for tables hold values only where they are for sure.
_FOR_SURE: Final = (_why_value, _why_code, _why_several)
_PERHAPS: Final = (_why_host, _why_id, _why_people, _why_key, _why_entity)


def _why_many(case: _Case, many: Sequence[tuple[int, float]]) -> str | None:
    share = case.share
    if looks_like_table(" ".join(_nearest(case.before[::-1]))):
        # After a table's name, even plurals are values.
        share = 0
    elif many and _are_proper(case.values, case.units):
        share, many = share / 2, (*many, _LEAST_PROPER)
    are_words = case.around and all(map(_WORD.match, case.values))
    is_table = looks_like_table(" ".join(case.around)) or hold_measures(case.units)
    if many and are_words and not is_table:
        many = (*many, _LEAST_WORDS)
    # What is cut into parts is a table more often.
    are_cut = case.after[-1:] == ["{n}"] and all(unit.files > 1 for unit in case.units)
    count = len(case.values) / (2 if are_cut else 1)
    is_many = any(count >= least and share <= limit for least, limit in many)
    if is_many and have_same_columns(case.units):
        return f"{len(case.values)} names have the same columns"
    return None


def why_once(units: Sequence[Unit]) -> str | None:
    """Why names of files in folders that are values are values too, if each comes once."""
    named = [unit for unit in units if unit.title or not _NAMES.isdisjoint(kinds_of(unit.stem))]
    folders_of: dict[str, set[tuple[str, ...]]] = {}
    for unit in named:
        for name in unit.seen(len(unit.names) - 1):
            folders_of.setdefault(name, set()).add(unit.folders)
    names = sorted(folders_of)
    if len(named) < len(units) or len(names) < _FEWEST_NAMES or _tell_stage(names):
        return None
    if any(looks_like_table(unit.stem) or is_total(unit.stem) for unit in units):
        return None
    if len(set().union(*folders_of.values())) < 2 or max(map(len, folders_of.values())) > 1:
        return None
    kinds = set().union(*(kinds_of(folder) for unit in units for folder in unit.folders))
    # What is new each day may be a table of that day, unless a machine named it.
    if kinds & TIMES and len({(len(name), *_SEPARATORS.findall(name)) for name in names}) > 1:
        return None
    return f"each name comes once ({', '.join(names[:3])})" if have_same_columns(units) else None


def have_dates_of_their_own(units: Sequence[Unit], index: int) -> bool:
    """Whether names at one place of paths begin with a date, and go on with a remark on it."""
    texts = [unit.names[index] for unit in units]
    remarks = [_STARTING_DATE.sub("", text) for text in texts]
    if not all(map(_STARTING_DATE.match, texts)) or any(map(looks_like_table, remarks)):
        return False
    if any(not STAGES.isdisjoint(words_of(remark)) for remark in remarks):
        return False
    dates = [
        # Some rows of a unit may lie less deep than most.
        {
            path[index].values[:1]
            for row in unit.rows
            for path in (row.first, row.last)
            if len(path) > index
        }
        for unit in units
    ]
    return len(set().union(*dates)) == sum(map(len, dates))


def _has_stage(values: Sequence[str], units: Sequence[Unit]) -> bool:
    """Whether one is a stage or an environment, other than a code such as GOLD among many."""
    codes = [value for value in values if _CODE.match(value)]
    if "{code}" in values and _are_many_beside(codes, values, units):
        return _tell_stage(value for value in values if value not in codes)
    return _tell_stage(values)


def _tell_stage(values: Iterable[str]) -> bool:
    names = (" ".join(words_of(name)) for value in values for name in value.split("/"))
    return not STAGES.isdisjoint(names)


def _are_proper(values: Sequence[str], units: Sequence[Unit]) -> bool:
    """Whether they are written as names of people and places are, where folders are not."""
    above = "".join(name for unit in units[:1] for name in unit.folders if name not in values)
    return above.islower() and all(map(_is_proper, values))


def _is_proper(value: str) -> bool:
    """Whether a name is made of words with a capital each: Old Mill, JillSmith."""
    words = [piece for piece in PIECES.findall(value) if piece not in " -_"]
    return bool(words) and all(word[0].isupper() and word[1:].islower() for word in words)


def _are_sizes(texts: Sequence[str]) -> bool:
    """Whether each tells a size, and not all the same one."""
    sizes = set(map(sizes_of, texts))
    return len(sizes) > 1 and () not in sizes


def _nearest(pieces: Iterable[str]) -> tuple[str, ...]:
    """The word that only separators divide from what varies."""
    piece = next((piece for piece in pieces if piece[0].isalnum() or piece[0] == "{"), "")
    return words_of(piece) if piece[:1].isalpha() else ()


def _are_beside_values(values: Sequence[str], units: Sequence[Unit]) -> bool:
    """Whether some are values for sure and the others may be: X beside the numbers 1 to 22."""
    others = [value for value in values if not VALUE.match(value)]
    if ANY_NAME in values or len(others) == len(values):
        return ANY_NAME in values
    if any(map(is_total, others)):
        return False
    if "{id}" in values or "{hash}" in values:
        return all(map(_ONE_WORD.match, others))
    if all(any(kind.match(value) for kind in _MAY_BE_VALUES) for value in others):
        return True
    # No list of places or of names is complete.
    is_known = "{place}" in values or "{person}" in values
    are_few = 2 * sum(map(looks_like_table, others)) <= len(others)
    return is_known and are_few and are_evidence(units)


def _are_strays(values: Sequence[str], units: Sequence[Unit]) -> bool:
    """Whether a few names stand among many that are values for sure, with the same columns."""
    others = [value for value in values if not VALUE.match(value)]
    return (
        _are_many_beside(others, values, units)
        and not any(looks_like_table(value) or is_total(value) for value in others)
        and have_same_columns(units)
    )


def _are_many_beside(others: Sequence[str], values: Sequence[str], units: Sequence[Unit]) -> bool:
    """Whether far more files have values for sure than there are other names."""
    sure = sum(unit.files for value, unit in zip(values, units, strict=True) if VALUE.match(value))
    return sure >= _FEW_STRAYS * len(others)


def _are_codes(values: Sequence[str], units: Sequence[Unit]) -> bool:
    if all(len(value) == 1 or _CODE.match(value) for value in values):
        # Long ones are words.
        return max(map(len, values)) <= _LONGEST_CODE or have_same_columns(units)
    is_even = len(values) > 2 and len(set(map(len, values))) == 1
    if is_even and all(map(_SHORT.match, values)):
        return True
    if is_even and all(map(_MIXED.match, values)) and any(map(_DIGIT_INSIDE.search, values)):
        return True
    if len(values) > 2 and all(map(_HEX.match, values)):
        return True
    # enwiki, itwiki and ptwiki differ in a language.
    before = common(values)
    after = common([value[before:][::-1] for value in values])
    return any(
        first + last > _LONGEST_CODE_OF_PLACE
        and all(is_value(value[first : len(value) - last].lower()) for value in values)
        for first in range(before + 1)
        for last in range(after + 1)
    )


def _are_several_values(values: Sequence[str], units: Sequence[Unit]) -> bool:
    """Whether names of the same form differ in several places, in each of which stand values."""
    if len({tuple(_SEPARATORS.findall(value)) for value in values}) == 1:
        parts = _varying_parts([_SEPARATORS.split(value) for value in values])
        return len(parts) > 1 and all(
            _are_known(part) or _are_codes(part, units) or _are_beside_values(part, units)
            for part in parts
        )
    if len({value.count("_") for value in values}) == 1:
        parts = _varying_parts([value.split("_") for value in values])
        are_marks = all(map(_MARK.match, (value for part in parts for value in part)))
        return len(parts) > 1 and are_marks and have_same_columns(units)
    return False


def _varying_parts(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    parts = (list(dict.fromkeys(part)) for part in zip(*rows, strict=True))
    return [part for part in parts if len(part) > 1]


def _are_known(values: Sequence[str]) -> bool:
    return all(VALUE.match(value) or is_value(value.lower()) for value in values)


def _have_own_ids(units: Sequence[Unit]) -> bool:
    """Whether no id in names of files stands beside two words, as it would beside two tables."""
    kinds = {unit.rows[0].first[-1].kinds for unit in units}
    if len(kinds) > 1 or "id" not in (common := kinds.pop()):
        return False
    number = common.index("id")
    seen = [
        {path[-1].values[number] for row in unit.rows for path in (row.first, row.last)}
        for unit in units
    ]
    return min(map(len, seen)) > 1 and len(set().union(*seen)) == sum(map(len, seen))


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
