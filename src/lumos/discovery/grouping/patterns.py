"""Path patterns: the dataset and the partition of a file, from its path alone.

The result depends neither on other files nor on the root of the scan. docs/GROUPING.md is the
specification.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote

from lumos.discovery.grouping.values import (
    BRACES,
    TIMES,
    WRITER_WORDS,
    ValueTemplate,
    file_template,
    folder_template,
    month_number,
    sortable,
)
from lumos.model.dataset_pattern import COMPRESSION_EXTENSIONS, FORMAT_EXTENSIONS

Partitions = tuple[tuple[str, str], ...]

_HIVE: Final = re.compile(r"([^=/]+?)(?:=|%3[Dd])(.*)\Z", re.DOTALL)
_YEAR: Final = re.compile(r"(?:(?:y|year)[-_]?)?((?:19|20)\d\d)\Z", re.ASCII | re.IGNORECASE)
# Only for files: in SQL, raw.data is a table of the schema raw.
_DATA: Final = "|".join(sorted(FORMAT_EXTENSIONS | {"dat", "data"}))
_COMPRESSIONS: Final = "|".join(sorted(COMPRESSION_EXTENSIONS))
_EXTENSIONS: Final = re.compile(rf"(?:\.(?:{_DATA}|{_COMPRESSIONS}))+\Z", re.ASCII | re.IGNORECASE)
# Rotated logs and parts may be counted after their extension: access.log.3.gz.
_COUNTED_NAME: Final = re.compile(
    rf"(\.(?:{_DATA}))([._-]\d[\dT_.-]*)((?:\.(?:{_COMPRESSIONS}))*)\Z", re.ASCII | re.IGNORECASE
)
_COMPRESSION: Final = re.compile(rf"\.(?:{_COMPRESSIONS})(?=\.|\Z)", re.IGNORECASE)
# The part of a date that a folder may have below a folder of each kind.
_NEXT_DATE_PART: Final = {
    "yyyy": "mm", "mm": "dd", "yyyy-mm": "dd", "dd": "hh", "date": "hh", "hh": "mi", "mi": "ss",
}  # fmt: skip
_DATE_PARTS: Final = {
    # A letter right before a single digit is not a date: bars of M1 and M5, form W2.
    kind: re.compile(
        rf"(?:(?:{words})[-_=]?|{words[0]}(?:[-_=]|(?=\d\d\Z)))?({numbers})\Z",
        re.ASCII | re.IGNORECASE,
    )
    for kind, words, numbers in (
        ("mm", "month|mon", r"0?[1-9]|1[0-2]"),
        ("dd", "day", r"0?[1-9]|[12]\d|3[01]"),
        ("hh", "hour|hr", r"[01]?\d|2[0-4]"),
        ("mi", "minute|min", r"[0-5]?\d"),
        ("ss", "second|sec", r"[0-5]?\d"),
    )
}
# Folders that may spread files by the first digits of their hash: 0f/3c/0f3c9a....
_FAN_OUT: Final = re.compile(r"(?:/[0-9a-f]{2,4})+\Z", re.ASCII)
_DAY_OF_YEAR: Final = re.compile(r"[0-3]\d\d\Z", re.ASCII)
_PART_OF_YEAR: Final = re.compile(r"([QqHh][1-4]|[Ww]\d\d)\Z", re.ASCII)
_NUMBERED_MONTH: Final = re.compile(r"\d\d?[-_. ]+([A-Za-z]+)\Z", re.ASCII)
# Folders of a Hive ACID table: base_0000005, delta_0000006_0000006_0000, delete_delta_....
_HIVE_ACID: Final = re.compile(
    r"(?:base_\d{7,}|(?:delete_)?delta_\d{7,}_\d{7,}(?:_\d{4})?)(?:_v\d{7,})?\Z", re.ASCII
)
CALENDAR: Final = {
    "year": "yyyy", "yyyy": "yyyy", "yr": "yyyy", "y": "yyyy", "month": "mm", "mm": "mm",
    "m": "mm", "mon": "mm", "day": "dd", "dd": "dd", "d": "dd", "hour": "hh", "hh": "hh",
    "hr": "hh", "h": "hh", "minute": "mi", "min": "mi",
}  # fmt: skip
# Last words of keys whose values are times in any form: dt, event_date.
_WORDS_OF_TIME: Final = CALENDAR.keys() | {
    "date", "dt", "ds", "time", "ts", "timestamp", "week", "wk", "quarter", "qtr", "second", "sec",
}  # fmt: skip
# How Hive and Spark write a partition whose value is null.
NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
_COUNTING_WORDS: Final = WRITER_WORDS | {"seq", "sequence", "offset"}
_PLACEHOLDER: Final = re.compile(r"\{([a-z-]+)\}")
_MAX_RECURSION: Final = 100
# Labels of values in file names, of paths without and with a date.
IN_NAMES: Final = "name."
IN_DATED_NAMES: Final = "dated_name."
# Separates a value from the date of its file.
WITH_DATE: Final = "@"
_BRACES_ESCAPED: Final = {brace: f"{{{kind}}}" for kind, brace in BRACES.items()}
# How values are written in the path of a dataset. Years and numbers of file names cannot be
# distinguished, so they are one kind there.
_IN_FILES: Final = {
    "date": "YYYY-MM-DD", "yyyy-mm": "YYYY-MM", "quarter": "YYYY-QQ", "week": "YYYY-WW",
    "time": "YYYY-MM-DDTHH", "mm": "MM", **BRACES,
}  # fmt: skip
_IN_FOLDERS: Final = {**_IN_FILES, "yyyy": "YYYY"}
_ANY_VALUE: Final = "NNN"
# Words that look like placeholders are escaped, so that `a_NNN` is not the same as `a_7`.
_PLACEHOLDER_LOOKALIKE: Final = re.compile(r"(?<![^\W_])(?:NNN|YYYY|MM)(?![^\W_])")
_AROUND_IDENTIFIERS: Final = re.compile(rf"(?:{_ANY_VALUE}[\W_]*)*\0(?:[\W_]*(?:{_ANY_VALUE}|\0))*")
_AFTER_DATE: Final = re.compile(
    rf"(YYYY-MM(?:-DD(?:THH)?)?[\W_]*{_ANY_VALUE})(?:[\W_]*{_ANY_VALUE})+"
)
_SEPARATORS: Final = " -_.+#()[]"
_AROUND_VALUES: Final = re.compile(r"[\W_]*\0[\W_\0]*")
# train-00000-of-00002
_BETWEEN_VALUES: Final = re.compile(
    rf"\0[\W_]*(?:{'|'.join(sorted(WRITER_WORDS))})[\W_]*(?=\0)", re.IGNORECASE
)
_NUMBERS_AT_END: Final = re.compile(r"(?:\{n\}[\W_]*)+\Z")
_LETTERS_OR_DIGITS: Final = re.compile(r"[A-Za-z]+|\d+")


class Placement(NamedTuple):
    """The dataset and partition of a file, by its path.

    `base` are the folders above the first that varies, and `pattern` is the rest with placeholders
    such as `{date}` or `dt={hive}`. `partitions` holds keys with their values, and the dates of
    the path under their placeholders. `path_values` are values of keys, identifiers and codes;
    files with different ones and different columns are different datasets.
    """

    base: str
    pattern: str
    dataset: str
    partitions: Partitions = ()
    path_values: Partitions = ()


class PathLevel(NamedTuple):
    """A folder of a path; `hive` is its key if it is `key=value`.

    `key` is the level in the path of a dataset, `times` are its dates, and `path_values` the values
    that may distinguish datasets.
    """

    template: ValueTemplate
    key: str
    hive: str = ""
    is_partition: bool = False
    times: Partitions = ()
    path_values: tuple[str, ...] = ()


class FileName(NamedTuple):
    """The name of a file, its extension without compression, and the same fields as a level."""

    template: ValueTemplate
    extension: str
    key: str
    belongs_to_folder: bool
    times: Partitions
    path_values: Partitions
    dated_path_values: Partitions


def place_file(path: str) -> Placement:
    """Determine the dataset and partition of a file."""
    folder, fan_out, file = _split_path(path)
    found = _folder_facts(folder)
    if not file.belongs_to_folder:
        dataset = f"{found.dataset}/{file.key}"
    else:
        # A path that only consists of values needs a name as well.
        dataset = found.dataset or "/".join(folder.split("/")[:2])
    partitions = found.partitions if found.is_dated else found.partitions + file.times
    path_values = found.path_values
    if not (found.is_dated or file.times):
        path_values += file.path_values
    elif file.dated_path_values:
        # Identifiers of dated files belong to jobs, unless they occur on several dates.
        date = "/".join(value for key, value in partitions if is_time_partition(key, value))
        path_values += tuple(
            pair
            for label, value in file.dated_path_values
            for pair in ((label, value), (f"{WITH_DATE}{label}", f"{value}{WITH_DATE}{date}"))
        )
    pattern = f"{found.above}{'{id}/' * len(fan_out)}{file.template.text}{file.extension}"
    return Placement(found.base, pattern, dataset, partitions, path_values)


@lru_cache(maxsize=16384)
def levels(path: str) -> tuple[tuple[PathLevel, ...], ValueTemplate, str]:
    """The folders of a file below its anchor, its name, and its extension without compression."""
    folder, fan_out, file = _split_path(path)
    inside = folder[len(anchor_of(path)) :].strip("/")
    folders = _levels(tuple(inside.split("/"))) if inside else ()
    hash_folders = (_value_level("id", name) for name in fan_out)
    return (*folders, *hash_folders), file.template, file.extension


def _split_path(path: str) -> tuple[str, list[str], FileName]:
    """The folder, the folders below it that distribute files by their hash, and the file name."""
    folder, _, name = path.rpartition("/")
    file = _file_name(name, _YEAR.match(folder[folder.rfind("/") + 1 :]) is not None)
    if file.belongs_to_folder and file.template.kinds in (("id",), ("uuid",)):
        fan_out = _FAN_OUT.search(folder)
        names = fan_out.group().strip("/").split("/") if fan_out is not None else []
        identifier = file.template.values[0].replace("-", "").lower()
        # Short words may look like digits of a hash (`ad`, `fee`), so the file's hash must match.
        while names and not identifier.startswith("".join(names)):
            names.pop(0)
        if names:
            return folder[: -len("/".join(["", *names]))], names, file
    return folder, [], file


@lru_cache(maxsize=65536)
def _file_name(name: str, below_year: bool) -> FileName:
    stem, extension = split_name(name)
    template = file_template(stem, below_year=below_year)
    extension = _COMPRESSION.sub("", extension)
    values = [(index, value) for index, value in enumerate(_identities(template)) if value]
    return FileName(
        template,
        extension,
        _key(template, _IN_FILES) + extension,
        template.is_writer_name,
        _times(template),
        tuple((f"{IN_NAMES}{index}", value) for index, value in values),
        tuple(
            (f"{IN_DATED_NAMES}{index}", value)
            for index, value in values
            if template.kinds[index] != "uuid"
        ),
    )


def folder_dataset(folder: str) -> str:
    """The common prefix of the paths of all datasets in a folder."""
    return _folder_facts(folder.rstrip("/")).dataset


def anchor_of(path: str) -> str:
    """The bucket or server of an address, which has no pattern; empty for local paths."""
    scheme, separator, rest = path.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}" if separator else ""


def name_of(path: str) -> str:
    """The name of a file's dataset: the words of its path, without values and extensions."""
    folders, stem, _ = levels(path)
    if not stem.is_writer_name:
        return words_of(stem)
    named_levels = [level for level in folders if not level.is_partition]
    return words_of(named_levels[-1].template) if named_levels else ""


def is_named_by_file(path: str) -> bool:
    """Whether a file's own name, rather than its folder, names its dataset."""
    return not levels(path)[1].is_writer_name


def words_of(template: ValueTemplate) -> str:
    """The text of a name without its values and their separators."""
    if not template.varies:
        return literal(template.text)
    blanked = _PLACEHOLDER.sub(
        lambda match: match[0] if match[1] in BRACES else "\0", template.text
    )
    blanked = _BETWEEN_VALUES.sub("\0", blanked)
    plain = _AROUND_VALUES.sub("\0", blanked).strip("\0").replace("\0", "_")
    return literal(plain).strip(_SEPARATORS)


def literal(text: str) -> str:
    """A template's text with the braces of the name itself."""
    return _PLACEHOLDER.sub(lambda match: BRACES.get(match[1], match[0]), text)


def split_name(name: str) -> tuple[str, str]:
    """A file's name and its extension: `title.basics` and `.tsv.gz`, `access.3` and `.log.gz`."""
    extensions = _EXTENSIONS.search(name)
    counted = (
        _COUNTED_NAME.search(name)
        if extensions is None or _COMPRESSION.match(extensions[0])
        else None
    )
    if counted is not None and counted.start():
        return name[: counted.start()] + counted[2], counted[1] + counted[3]
    if extensions is None or extensions.start() == 0:
        return name, ""
    return name[: extensions.start()], extensions.group()


def is_partition(folder: str) -> bool:
    """Whether a folder's name is a partition: `dt=2024-01-01`, 2024-01, 05, an identifier."""
    return _levels((folder,))[0].is_partition


def is_time_partition(key: str, value: str) -> bool:
    """Whether a partition is one of time, by its key or by its value."""
    words = _LETTERS_OR_DIGITS.findall(key.lower())
    # Letters such as d mean a day only where they are the whole key: d=05, but not plan_d=basic.
    is_short = len(words) > 1 and len(words[-1]) == 1
    if key.startswith("{") or (words and not is_short and words[-1] in _WORDS_OF_TIME):
        return True
    return bool(_times(file_template(value)))


class _Folder(NamedTuple):
    """What the folders of a path say; `expected` is the part of a date that may follow."""

    base: str
    above: str = ""
    dataset: str = ""
    partitions: Partitions = ()
    path_values: Partitions = ()
    is_dated: bool = False
    named_levels: int = 0
    expected: str = ""


@lru_cache(maxsize=65536)
def _folder_facts(folder: str) -> _Folder:
    """What a folder and the folders above it say."""
    if folder == anchor_of(f"{folder}/"):
        return _Folder(folder, dataset=folder)
    parent, _, name = folder.rpartition("/")
    if parent.count("/") > _MAX_RECURSION:
        # From the top down, so that each call finds its parent in the cache.
        for match in re.finditer("/", parent):
            _folder_facts(parent[: match.start()])
    found = _folder_facts(parent)
    level, kind = _level(name, found.expected)
    base, above = found.base, found.above
    if above or level.template.varies:
        above += f"{level.template.text}/"
    else:
        base = folder
    partitions, path_values, is_dated = found.partitions, found.path_values, found.is_dated
    if level.hive:
        value = level.template.values[0]
        partitions += ((level.hive, value),)
        if is_time_partition(level.hive, value):
            is_dated = True
        elif value != NULL_PARTITION and not _is_counted(level.hive):
            path_values += ((level.hive, value),)
    elif level.template.kinds:
        partitions += level.times
        is_dated = is_dated or bool(level.times)
        path_values += tuple(
            (f"{found.named_levels}.{index}", value)
            for index, value in enumerate(level.path_values, len(path_values))
        )
    dataset, named_levels = found.dataset, found.named_levels
    if not level.is_partition:
        dataset, named_levels = f"{dataset}/{level.key}", named_levels + 1
    expected = _NEXT_DATE_PART.get(kind, "")
    return _Folder(base, above, dataset, partitions, path_values, is_dated, named_levels, expected)


@lru_cache(maxsize=65536)
def _levels(names: tuple[str, ...]) -> tuple[PathLevel, ...]:
    """The folders of a path, from the top down; a date may extend over several of them."""
    found: list[PathLevel] = []
    expected = ""
    for name in names:
        level, kind = _level(name, expected)
        found.append(level)
        expected = _NEXT_DATE_PART.get(kind, "")
    return tuple(found)


@lru_cache(maxsize=65536)
def _level(name: str, expected: str) -> tuple[PathLevel, str]:
    """The level of a folder, and its kind, which decides what part of a date may follow."""
    hive = _HIVE.match(name)
    if hive is not None:
        key, value = unquote(hive[1]), unquote(hive[2])
        template = ValueTemplate(f"{_escaped(key)}={{hive}}", ("hive",), (value,))
        return PathLevel(template, "", key, is_partition=True), CALENDAR.get(key.lower(), "")
    if year := _YEAR.match(name):
        return _value_level("yyyy", year[1]), "yyyy"
    if expected:
        kind, value = _continue_date(name, expected)
        if kind:
            return _value_level(kind, value), kind
    if _HIVE_ACID.match(name):
        return _value_level("n", name), ""
    template = folder_template(name)
    level = PathLevel(
        template,
        _key(template, _IN_FOLDERS),
        is_partition=template.varies and template.is_writer_name,
        times=_times(template),
        path_values=tuple(filter(None, _identities(template))),
    )
    is_whole = len(template.kinds) == 1 and template.text == f"{{{template.kinds[0]}}}"
    return level, template.kinds[0] if is_whole else ""


def _value_level(kind: str, value: str) -> PathLevel:
    """A level that consists of a single value."""
    template = ValueTemplate.of_one(kind, value)
    path_values = (value,) if kind in ("id", "number") else ()
    return PathLevel(
        template, "", is_partition=True, times=_times(template), path_values=path_values
    )


def _continue_date(name: str, expected: str) -> tuple[str, str]:
    """The kind and value of a folder that continues the date of the folder above."""
    if number := _DATE_PARTS[expected].match(name):
        return expected, number[1].zfill(2)
    if expected == "mm":
        named = _NUMBERED_MONTH.match(name)
        month = month_number(named[1] if named else name)
        if month is not None:
            return "mm", month
        if _PART_OF_YEAR.match(name):
            return "quarter" if name[0] in "QqHh" else "week", name
        if _DAY_OF_YEAR.match(name):
            return "ddd", name
    return "", ""


def _key(template: ValueTemplate, spellings: dict[str, str]) -> str:
    """A name as part of the path of a dataset, with NNN for values that are not dates."""
    text = _PLACEHOLDER_LOOKALIKE.sub(r"\\\g<0>", template.text)
    if not template.kinds:
        return text
    text = _PLACEHOLDER.sub(
        lambda match: "\0" if match[1] in ("id", "uuid") else spellings.get(match[1], _ANY_VALUE),
        text,
    )
    # Identifiers may contain separators, and a time may follow a date, so the number of values in
    # a row has no meaning.
    if "\0" in text:
        text = _AROUND_IDENTIFIERS.sub(_ANY_VALUE, text)
    return _AFTER_DATE.sub(r"\1", text) if _ANY_VALUE in text else text


def _times(template: ValueTemplate) -> Partitions:
    return tuple(
        (f"{{{kind}}}", sortable(kind, value))
        for kind, value in zip(template.kinds, template.values, strict=True)
        if kind in TIMES
    )


def _identities(template: ValueTemplate) -> Iterator[str]:
    """For each value of a name: the value if it may name a dataset, otherwise an empty text.

    Dates and counters never do. A number is a counter if it is padded, if it follows a date (as
    hours or a counter of that day), if the name has a writer's word, or if it is at the end of a
    name with words, perhaps before other numbers: orders+0+0000012.
    """
    at_end = _NUMBERS_AT_END.search(template.text)
    last = len(template.kinds) - (at_end[0].count("{") if at_end else 0)
    has_words = bool(template.words)
    after_date = False
    for index, (kind, value) in enumerate(zip(template.kinds, template.values, strict=True)):
        after_date = after_date or kind in TIMES
        is_count = kind == "n" and (
            after_date
            or (value[0] == "0" and len(value) > 1)
            or (has_words and (index >= last or template.is_writer_name))
        )
        yield "" if kind in TIMES or kind in BRACES or is_count else value


def _is_counted(key: str) -> bool:
    """Whether a key is a counter of the writer: `batch=3`, `load_id=17`."""
    return any(word in _COUNTING_WORDS for word in _LETTERS_OR_DIGITS.findall(key.lower()))


def _escaped(name: str) -> str:
    """A text with its braces escaped, so that they are not placeholders."""
    if "{" not in name and "}" not in name:
        return name
    return "".join(_BRACES_ESCAPED.get(letter, letter) for letter in name)
