"""Where a file belongs, as far as its path alone says: folder, name pattern, partition values."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote

from lumos.pipeline.variables import TIMES, Template, month_number, sortable, template_of

Partitions = tuple[tuple[str, str], ...]

_HIVE: Final = re.compile(r"([^=/]+?)(?:=|%3[Dd])(.*)\Z", re.DOTALL)
# Keys whose values are tables, where they are plurals: table=orders, t=clicks.
_KEY_OF_TABLES: Final = re.compile(
    r"(?:t|tbl|tables?|table_?name|entity|entity_(?:type|name)|topic|stream|collection|object"
    r"|events?|event_(?:type|name)|record_type|type|feed|dataset)\Z",
    re.ASCII | re.IGNORECASE,
)
_PLURAL: Final = re.compile(r"(?:[A-Za-z]+[-_.])*[A-Za-z]{2,}[A-Za-z](?<![sui])s\Z", re.ASCII)
_YEAR: Final = re.compile(r"(?:(?:y|year)[-_]?)?((?:1[5-9]|20)\d\d)\Z", re.ASCII | re.IGNORECASE)
_DATA: Final = (
    r"csv|tsv|psv|tab|txt|jsonl?|ndjson|geojson|parquet|parq|pq|avro|orc|xml|xlsx?|log|dat|data|tbl"
    r"|arrow|feather"
)
_PACKED: Final = r"snappy|gz(?:ip)?|zstd?|bz2|lz4|lzo|zlib|deflate|xz|br|z|zip"
_ENDING: Final = re.compile(rf"(?:\.(?:{_DATA}|{_PACKED}))+\Z", re.ASCII | re.IGNORECASE)
# Logs that are put away, and parts, may be counted after their ending: access.log.3.gz.
_COUNTED: Final = re.compile(
    rf"(\.(?:{_DATA}))([._-]\d[\dT_.-]*)((?:\.(?:{_PACKED}))*)\Z", re.ASCII | re.IGNORECASE
)
_COMPRESSION: Final = re.compile(rf"\.(?:{_PACKED})(?=\.|\Z)", re.IGNORECASE)
# What may stand below a folder of that placeholder, with the letters people put in front.
_BELOW: Final = {"yyyy": "mm", "mm": "dd", "yyyy-mm": "dd", "dd": "hh", "date": "hh", "hh": "mi"}
_FINER: Final = {
    kind: re.compile(rf"(?:(?:{words})[-_=]?)?({numbers})\Z", re.ASCII | re.IGNORECASE)
    for kind, words, numbers in (
        ("mm", "m|month|mon", r"0?[1-9]|1[0-2]"),
        ("dd", "d|day", r"0?[1-9]|[12]\d|3[01]"),
        ("hh", "h|hour|hr", r"[01]?\d|2[0-4]"),
        ("mi", "m|min|minute", r"[0-5]?\d"),
    )
}
# Placeholders for what is no value: a brace in a name.
BRACES: Final = {"open": "{", "close": "}"}
_ESCAPED: Final = {brace: f"{{{kind}}}" for kind, brace in BRACES.items()}
# Folders that spread files by the first digits of a hash.
_FAN_OUT: Final = re.compile(r"(?=.*\d)(?=.*[a-f])[0-9a-f]{2,4}\Z", re.ASCII)
_DAY_OF_YEAR: Final = re.compile(r"[0-3]\d\d\Z", re.ASCII)
_PART_OF_YEAR: Final = re.compile(r"([QqHh][1-4]|[Ww]\d\d?)\Z", re.ASCII)
_NUMBERED_MONTH: Final = re.compile(r"\d\d?[-_. ]+([A-Za-z]+)\Z", re.ASCII)
CALENDAR: Final = {
    "year": "yyyy", "yyyy": "yyyy", "yr": "yyyy", "y": "yyyy", "month": "mm", "mm": "mm",
    "m": "mm", "mon": "mm", "day": "dd", "dd": "dd", "d": "dd", "hour": "hh", "hh": "hh",
    "hr": "hh", "h": "hh", "minute": "mi", "min": "mi",
}  # fmt: skip


# Stands for names of many files that were summed up whatever they are called.
ANY_NAME: Final = "{name}"


class Placement(NamedTuple):
    """A file's place: the folders above the first variable one, and the rest as a pattern.

    In the pattern, variable parts are placeholders such as `{date}` or `dt={hive}`. `partitions`
    holds hive keys with their values, and the dates of the path under their placeholders.
    """

    base: str
    pattern: str
    partitions: Partitions


class Segment(NamedTuple):
    """A folder's name as a template; `hive` is its key where it is one of `key=value`."""

    template: Template
    hive: str = ""


def place(path: str, root: str) -> Placement:
    """The placement of a file below a root."""
    folder, _, name = path.rpartition("/")
    if path == root:
        # A file that is scanned by itself says nothing about the others in its folder.
        return Placement(folder, _escaped(name), ())
    base, above, partitions, is_dated = _placed_folder(folder, root)
    stem, ending = split_name(name)
    template = template_of(stem)
    if not is_dated and template.kinds:
        partitions += _times(template)
    pattern = f"{above}{template.text}{_COMPRESSION.sub('', ending).lower()}"
    return Placement(base, pattern, partitions)


def dissect(path: str, root: str) -> tuple[tuple[Template, ...], Template, str]:
    """A file's folders below the root, its name and its ending, with their values."""
    folder, _, name = path.rpartition("/")
    if path == root:
        return (), Template(_escaped(name)), ""
    inside = folder[len(root) :].strip("/")
    placed = segments(inside.split("/")) if inside else []
    stem, ending = split_name(name)
    ending = _COMPRESSION.sub("", ending).lower()
    return tuple(segment.template for segment in placed), template_of(stem), ending


def split_name(name: str) -> tuple[str, str]:
    """A file's name and its ending: `title.basics` and `.tsv.gz`, `access.3` and `.log.gz`."""
    ending = _ENDING.search(name)
    counted = _COUNTED.search(name) if ending is None or _COMPRESSION.match(ending[0]) else None
    if counted is not None and counted.start():
        return name[: counted.start()] + counted[2], counted[1] + counted[3]
    if ending is None or ending.start() == 0:
        return name, ""
    return name[: ending.start()], ending.group()


def segments(folders: Sequence[str]) -> list[Segment]:
    """The folders of a path, from the root down; a date may go through several of them."""
    found: list[Segment] = []
    expected = ""
    for folder in folders:
        segment, kind = _segment(folder, expected)
        found.append(segment)
        expected = _BELOW.get(kind, "")
    return found


@lru_cache(maxsize=65536)
def _placed_folder(folder: str, root: str) -> tuple[str, str, Partitions, bool]:
    """Base, pattern of the variable folders, partitions, and whether they tell a date."""
    inside = folder[len(root) :].strip("/")
    folders = inside.split("/") if inside else []
    placed = segments(folders)
    fixed = next((index for index, segment in enumerate(placed) if _varies(segment)), len(placed))
    partitions: Partitions = ()
    is_dated = False
    for segment in placed[fixed:]:
        if segment.hive:
            value = segment.template.values[0]
            partitions += ((segment.hive, value),)
            is_dated |= tells_time(segment.hive, value)
        else:
            times = _times(segment.template)
            partitions += times
            is_dated |= bool(times)
    base = "/".join([root.rstrip("/"), *folders[:fixed]])
    above = "".join(f"{segment.template.text}/" for segment in placed[fixed:])
    return base, above, partitions, is_dated


def is_partition(folder: str) -> bool:
    """Whether a folder's name is nothing but a value: `dt=2024-01-01`, 2024-01, 05, an id."""
    (segment,) = segments([folder])
    kinds = segment.template.kinds
    return bool(segment.hive) or (
        len(kinds) == 1 and segment.template.text == f"{{{kinds[0]}}}" and kinds[0] != "code"
    )


def tells_time(key: str, value: str) -> bool:
    """Whether a partition is of a time: by its key, or by its value."""
    return key.startswith("{") or key.lower() in CALENDAR or bool(_times(template_of(value)))


def _varies(segment: Segment) -> bool:
    return any(kind not in BRACES for kind in segment.template.kinds)


@lru_cache(maxsize=65536)
def _segment(folder: str, expected: str) -> tuple[Segment, str]:
    """A folder's segment, and the placeholder that decides what may follow below."""
    hive = _HIVE.match(folder)
    if hive is not None:
        key, value = unquote(hive[1]), unquote(hive[2])
        if _KEY_OF_TABLES.match(key) and _PLURAL.match(value):
            return Segment(Template(_escaped(folder))), ""
        template = Template(f"{_escaped(key)}={{hive}}", ("hive",), (value,))
        return Segment(template, key), CALENDAR.get(key.lower(), "")
    if year := _YEAR.match(folder):
        return Segment(Template.of_one("yyyy", year[1])), "yyyy"
    if expected:
        kind, value = _finer(folder, expected)
        if kind:
            return Segment(Template.of_one(kind, value)), kind
    if _FAN_OUT.match(folder):
        return Segment(Template.of_one("hash", folder)), ""
    template = template_of(folder)
    is_whole = len(template.kinds) == 1 and template.text == f"{{{template.kinds[0]}}}"
    return Segment(template), template.kinds[0] if is_whole else ""


def _finer(folder: str, expected: str) -> tuple[str, str]:
    """The part of a date that a folder stands for below a coarser one."""
    if number := _FINER[expected].match(folder):
        return expected, number[1].zfill(2)
    if expected == "mm":
        named = _NUMBERED_MONTH.match(folder)
        month = month_number(named[1] if named else folder)
        if month is not None:
            return "mm", month
        if _PART_OF_YEAR.match(folder):
            return "quarter" if folder[0] in "QqHh" else "week", folder
        if _DAY_OF_YEAR.match(folder):
            return "ddd", folder
    return "", ""


def _times(template: Template) -> Partitions:
    return tuple(
        (f"{{{kind}}}", sortable(kind, value))
        for kind, value in zip(template.kinds, template.values, strict=True)
        if kind in TIMES
    )


def _escaped(name: str) -> str:
    """A name that is no template: its braces are no placeholders."""
    if "{" not in name and "}" not in name:
        return name
    return "".join(_ESCAPED.get(letter, letter) for letter in name)
