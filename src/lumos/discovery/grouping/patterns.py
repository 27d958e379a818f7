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
    TIME_KINDS,
    WRITER_WORDS,
    ValueTemplate,
    file_template,
    folder_template,
    month_number,
    to_sortable,
)
from lumos.model.dataset_pattern import COMPRESSION_EXTENSIONS, FORMAT_EXTENSIONS

Partitions = tuple[tuple[str, str], ...]

_HIVE: Final = re.compile(r"([^=/]+?)(?:=|%3[Dd])(.*)\Z", re.DOTALL)
_YEAR: Final = re.compile(r"(?:(?:y|year)[-_]?)?((?:19|20)\d\d)\Z", re.ASCII | re.IGNORECASE)
# Only for files: in SQL, raw.data is a table of the schema raw.
_ANY_DATA: Final = "|".join(sorted(FORMAT_EXTENSIONS | {"dat", "data"}))
_ANY_COMPRESSION: Final = "|".join(sorted(COMPRESSION_EXTENSIONS))
_EXTENSIONS: Final = re.compile(
    rf"(?:\.(?:{_ANY_DATA}|{_ANY_COMPRESSION}))+\Z", re.ASCII | re.IGNORECASE
)
# Rotated logs and parts may have a counter after their extension: access.log.3.gz.
_COUNTED_NAME: Final = re.compile(
    rf"(\.(?:{_ANY_DATA}))([._-]\d[\dT_.-]*)((?:\.(?:{_ANY_COMPRESSION}))*)\Z",
    re.ASCII | re.IGNORECASE,
)
_COMPRESSION: Final = re.compile(rf"\.(?:{_ANY_COMPRESSION})(?=\.|\Z)", re.IGNORECASE)
# The part of a date that a subfolder may have, by the kind of its parent folder.
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
# Folders that may distribute files by the first digits of their hash: 0f/3c/0f3c9a....
_FAN_OUT: Final = re.compile(r"(?:/[0-9a-f]{2,4})+\Z", re.ASCII)
_DAY_OF_YEAR: Final = re.compile(r"[0-3]\d\d\Z", re.ASCII)
_PART_OF_YEAR: Final = re.compile(r"([QqHh][1-4]|[Ww]\d\d)\Z", re.ASCII)
_NUMBERED_MONTH: Final = re.compile(r"\d\d?[-_. ]+([A-Za-z]+)\Z", re.ASCII)
# Folders of a Hive ACID table: base_0000005, delta_0000006_0000006_0000, delete_delta_....
_HIVE_ACID: Final = re.compile(
    r"(?:base_\d{7,}|(?:delete_)?delta_\d{7,}_\d{7,}(?:_\d{4})?)(?:_v\d{7,})?\Z", re.ASCII
)
# Partition keys whose values are parts of a date, and the placeholder of that part.
DATE_KEYS: Final = {
    "year": "yyyy", "yyyy": "yyyy", "yr": "yyyy", "y": "yyyy", "month": "mm", "mm": "mm",
    "m": "mm", "mon": "mm", "day": "dd", "dd": "dd", "d": "dd", "hour": "hh", "hh": "hh",
    "hr": "hh", "h": "hh", "minute": "mi", "min": "mi",
}  # fmt: skip
# Last words of keys whose values are times in any form: dt, event_date.
_TIME_WORDS: Final = DATE_KEYS.keys() | {
    "date", "dt", "ds", "time", "ts", "timestamp", "week", "wk", "quarter", "qtr", "second", "sec",
}  # fmt: skip
# The value that Hive and Spark write for a partition whose value is null.
NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
_COUNTER_WORDS: Final = WRITER_WORDS | {"seq", "sequence", "offset"}
PLACEHOLDER: Final = re.compile(r"\{([a-z-]+)\}")
_MAX_RECURSION: Final = 100
# Prefixes of labels of values in file names, for paths without and with a date.
NAME_LABEL: Final = "name."
DATED_NAME_LABEL: Final = "dated_name."
# Separates a value from the date of its file: `job7@2024-01-05`. The labels of such pairs start
# with this mark.
DATE_MARK: Final = "@"
_BRACES_ESCAPED: Final = {brace: f"{{{kind}}}" for kind, brace in BRACES.items()}
# Placeholders in the path of a dataset by kind of value. In file names, years and other numbers
# cannot be distinguished, so YYYY is only used for folders.
_FILE_PLACEHOLDERS: Final = {
    "date": "YYYY-MM-DD", "yyyy-mm": "YYYY-MM", "quarter": "YYYY-QQ", "week": "YYYY-WW",
    "time": "YYYY-MM-DDTHH", "mm": "MM", **BRACES,
}  # fmt: skip
_FOLDER_PLACEHOLDERS: Final = {**_FILE_PLACEHOLDERS, "yyyy": "YYYY"}
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


class FileAssignment(NamedTuple):
    """The dataset and partition of a file, by its path.

    `base` is the path above the first folder with a value, and `pattern` is the remaining path
    with placeholders such as `{date}` or `dt={hive}`. `partitions` are the keys with their values,
    and the dates of the path with their placeholders as keys. `path_values` are values of keys,
    identifiers and codes; files that differ in one of them and in their columns are different
    datasets.
    """

    base: str
    pattern: str
    dataset: str
    partitions: Partitions = ()
    path_values: Partitions = ()


class PathLevel(NamedTuple):
    """A folder of a path; `hive_key` is its key if its name is `key=value`.

    `key` is its name in the path of a dataset, with values replaced by placeholders. `times` are
    its dates, and `path_values` the values that may distinguish datasets.
    """

    template: ValueTemplate
    key: str
    hive_key: str = ""
    is_partition: bool = False
    times: Partitions = ()
    path_values: tuple[str, ...] = ()


class FileName(NamedTuple):
    """The name of a file, its extension without compression, and the same fields as a folder.

    If `belongs_to_folder` is true, as for `part-0001`, the folder names the dataset, not the file.
    """

    template: ValueTemplate
    extension: str
    key: str
    belongs_to_folder: bool
    times: Partitions
    path_values: Partitions
    dated_path_values: Partitions


def assign_file(path: str) -> FileAssignment:
    """Determine the dataset and partition of a file."""
    folder, fan_out, file = _split_path(path)
    above = _analyse_folder(folder)
    if not file.belongs_to_folder:
        dataset = f"{above.dataset}/{file.key}"
    else:
        # A path that only consists of values names no dataset; use its first folder.
        dataset = above.dataset or "/".join(folder.split("/")[:2])
    partitions = above.partitions if above.is_dated else above.partitions + file.times
    path_values = above.path_values
    if not (above.is_dated or file.times):
        path_values += file.path_values
    elif file.dated_path_values:
        # An identifier in a dated name is usually that of a job, unless it occurs on several dates.
        date = "/".join(value for key, value in partitions if is_time_partition(key, value))
        path_values += tuple(
            pair
            for label, value in file.dated_path_values
            for pair in ((label, value), (f"{DATE_MARK}{label}", f"{value}{DATE_MARK}{date}"))
        )
    pattern = f"{above.pattern}{'{id}/' * len(fan_out)}{file.template.text}{file.extension}"
    return FileAssignment(above.base, pattern, dataset, partitions, path_values)


@lru_cache(maxsize=16384)
def path_levels(path: str) -> tuple[tuple[PathLevel, ...], ValueTemplate, str]:
    """The folders of a file below its anchor, its name, and its extension without compression."""
    folder, fan_out, file = _split_path(path)
    relative = folder[len(anchor_of(path)) :].strip("/")
    folders = _parse_folders(tuple(relative.split("/"))) if relative else ()
    hash_folders = (_value_level("id", name) for name in fan_out)
    return (*folders, *hash_folders), file.template, file.extension


def _split_path(path: str) -> tuple[str, list[str], FileName]:
    """The folder, its subfolders that distribute files by hash (`0f/3c`), and the file name."""
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
    values = [(index, value) for index, value in enumerate(_identifying_values(template)) if value]
    return FileName(
        template,
        extension,
        _path_key(template, _FILE_PLACEHOLDERS) + extension,
        template.is_writer_name,
        _time_partitions(template),
        tuple((f"{NAME_LABEL}{index}", value) for index, value in values),
        tuple(
            (f"{DATED_NAME_LABEL}{index}", value)
            for index, value in values
            if template.kinds[index] != "uuid"
        ),
    )


def folder_dataset(folder: str) -> str:
    """The common prefix of the paths of all datasets in a folder."""
    return _analyse_folder(folder.rstrip("/")).dataset


def anchor_of(path: str) -> str:
    """The bucket or server of an address, which has no pattern; empty for local paths."""
    scheme, separator, rest = path.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}" if separator else ""


def name_of(path: str) -> str:
    """The name of a file's dataset: the words of its path, without values and extensions."""
    folders, stem, _ = path_levels(path)
    if not stem.is_writer_name:
        return words_of(stem)
    named_levels = [level for level in folders if not level.is_partition]
    return words_of(named_levels[-1].template) if named_levels else ""


def is_named_by_file(path: str) -> bool:
    """Whether a file's own name, rather than its folder, names its dataset."""
    return not path_levels(path)[1].is_writer_name


def words_of(template: ValueTemplate) -> str:
    """The text of a name without its values and their separators."""
    if not template.has_value:
        return restore_braces(template.text)
    text = PLACEHOLDER.sub(lambda match: match[0] if match[1] in BRACES else "\0", template.text)
    text = _BETWEEN_VALUES.sub("\0", text)
    words = _AROUND_VALUES.sub("\0", text).strip("\0").replace("\0", "_")
    return restore_braces(words).strip(_SEPARATORS)


def restore_braces(text: str) -> str:
    """A template's text with its placeholders for braces replaced by braces."""
    return PLACEHOLDER.sub(lambda match: BRACES.get(match[1], match[0]), text)


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
    """Whether a folder is a partition by its name: `dt=2024-01-01`, 2024-01, 05, an identifier."""
    return _parse_folders((folder,))[0].is_partition


def is_time_partition(key: str, value: str) -> bool:
    """Whether the values of a partition are dates or times, by its key or by this value."""
    words = _LETTERS_OR_DIGITS.findall(key.lower())
    # A single letter such as d means a day only if it is the whole key: d=05, not plan_d=basic.
    is_short = len(words) > 1 and len(words[-1]) == 1
    if key.startswith("{") or (words and not is_short and words[-1] in _TIME_WORDS):
        return True
    return bool(_time_partitions(file_template(value)))


class _FolderAnalysis(NamedTuple):
    """The parts of a `FileAssignment` that follow from a folder and the folders above it.

    `next_part` is the part of a date that a subfolder may have, such as `mm` below a year.
    """

    base: str
    pattern: str = ""
    dataset: str = ""
    partitions: Partitions = ()
    path_values: Partitions = ()
    is_dated: bool = False
    named_levels: int = 0
    next_part: str = ""


@lru_cache(maxsize=65536)
def _analyse_folder(folder: str) -> _FolderAnalysis:
    """Analyse a folder and the folders above it."""
    if folder == anchor_of(f"{folder}/"):
        return _FolderAnalysis(folder, dataset=folder)
    parent, _, name = folder.rpartition("/")
    if parent.count("/") > _MAX_RECURSION:
        # Analyse from the top down, so that each call finds its parent in the cache.
        for match in re.finditer("/", parent):
            _analyse_folder(parent[: match.start()])
    above = _analyse_folder(parent)
    level, kind = _parse_folder(name, above.next_part)
    base, pattern = above.base, above.pattern
    if pattern or level.template.has_value:
        pattern += f"{level.template.text}/"
    else:
        base = folder
    partitions, path_values, is_dated = (above.partitions, above.path_values, above.is_dated)
    if level.hive_key:
        value = level.template.values[0]
        partitions += ((level.hive_key, value),)
        if is_time_partition(level.hive_key, value):
            is_dated = True
        elif value != NULL_PARTITION and _COUNTER_WORDS.isdisjoint(
            _LETTERS_OR_DIGITS.findall(level.hive_key.lower())
        ):
            # Values of keys such as `batch` and `load_id` are counters and name no dataset.
            path_values += ((level.hive_key, value),)
    elif level.template.kinds:
        partitions += level.times
        is_dated = is_dated or bool(level.times)
        path_values += tuple(
            (f"{above.named_levels}.{index}", value)
            for index, value in enumerate(level.path_values, len(path_values))
        )
    dataset, named_levels = above.dataset, above.named_levels
    if not level.is_partition:
        dataset, named_levels = f"{dataset}/{level.key}", named_levels + 1
    next_part = _NEXT_DATE_PART.get(kind, "")
    return _FolderAnalysis(
        base, pattern, dataset, partitions, path_values, is_dated, named_levels, next_part
    )


@lru_cache(maxsize=65536)
def _parse_folders(names: tuple[str, ...]) -> tuple[PathLevel, ...]:
    """The folders of a path, from the top down; a date may extend over several folders."""
    levels: list[PathLevel] = []
    expected_date_part = ""
    for name in names:
        level, kind = _parse_folder(name, expected_date_part)
        levels.append(level)
        expected_date_part = _NEXT_DATE_PART.get(kind, "")
    return tuple(levels)


@lru_cache(maxsize=65536)
def _parse_folder(name: str, expected_date_part: str) -> tuple[PathLevel, str]:
    """The level of a folder, and the kind of its value, such as `yyyy`; empty for other names."""
    hive = _HIVE.match(name)
    if hive is not None:
        key, value = unquote(hive[1]), unquote(hive[2])
        template = ValueTemplate(f"{_escape_braces(key)}={{hive}}", ("hive",), (value,))
        return PathLevel(template, "", key, is_partition=True), DATE_KEYS.get(key.lower(), "")
    if year := _YEAR.match(name):
        return _value_level("yyyy", year[1]), "yyyy"
    if expected_date_part:
        kind, value = _continue_date(name, expected_date_part)
        if kind:
            return _value_level(kind, value), kind
    if _HIVE_ACID.match(name):
        return _value_level("n", name), ""
    template = folder_template(name)
    level = PathLevel(
        template,
        _path_key(template, _FOLDER_PLACEHOLDERS),
        is_partition=template.has_value and template.is_writer_name,
        times=_time_partitions(template),
        path_values=tuple(filter(None, _identifying_values(template))),
    )
    is_single_value = len(template.kinds) == 1 and template.text == f"{{{template.kinds[0]}}}"
    return level, template.kinds[0] if is_single_value else ""


def _value_level(kind: str, value: str) -> PathLevel:
    """A level that consists of a single value."""
    template = ValueTemplate.of_one(kind, value)
    path_values = (value,) if kind in ("id", "number") else ()
    return PathLevel(
        template, "", is_partition=True, times=_time_partitions(template), path_values=path_values
    )


def _continue_date(name: str, expected_date_part: str) -> tuple[str, str]:
    """The kind and value of a folder that continues the date of the folder above."""
    if number := _DATE_PARTS[expected_date_part].match(name):
        return expected_date_part, number[1].zfill(2)
    if expected_date_part == "mm":
        named = _NUMBERED_MONTH.match(name)
        month = month_number(named[1] if named else name)
        if month is not None:
            return "mm", month
        if _PART_OF_YEAR.match(name):
            return "quarter" if name[0] in "QqHh" else "week", name
        if _DAY_OF_YEAR.match(name):
            return "ddd", name
    return "", ""


def _path_key(template: ValueTemplate, placeholders: dict[str, str]) -> str:
    """A name as part of the path of a dataset, with NNN for values that are not dates."""
    text = _PLACEHOLDER_LOOKALIKE.sub(r"\\\g<0>", template.text)
    if not template.kinds:
        return text
    text = PLACEHOLDER.sub(
        lambda match: (
            "\0" if match[1] in ("id", "uuid") else placeholders.get(match[1], _ANY_VALUE)
        ),
        text,
    )
    # Identifiers may contain separators, and a time may follow a date, so the number of values in
    # a row has no meaning.
    if "\0" in text:
        text = _AROUND_IDENTIFIERS.sub(_ANY_VALUE, text)
    return _AFTER_DATE.sub(r"\1", text) if _ANY_VALUE in text else text


def _time_partitions(template: ValueTemplate) -> Partitions:
    return tuple(
        (f"{{{kind}}}", to_sortable(kind, value))
        for kind, value in zip(template.kinds, template.values, strict=True)
        if kind in TIME_KINDS
    )


def _identifying_values(template: ValueTemplate) -> Iterator[str]:
    """For each value of a name: the value if it may name a dataset, otherwise an empty string.

    Dates and counters never name a dataset. A number is a counter if it is padded, if it follows a
    date (as hours or a counter of that day), if the name has a writer's word, or if it is at the
    end of a name with words, perhaps before other numbers: orders+0+0000012.
    """
    numbers_at_end = _NUMBERS_AT_END.search(template.text)
    first_at_end = len(template.kinds) - (numbers_at_end[0].count("{") if numbers_at_end else 0)
    has_words = bool(template.words)
    is_after_date = False
    for index, (kind, value) in enumerate(zip(template.kinds, template.values, strict=True)):
        is_after_date = is_after_date or kind in TIME_KINDS
        is_counter = kind == "n" and (
            is_after_date
            or (value[0] == "0" and len(value) > 1)
            or (has_words and (index >= first_at_end or template.is_writer_name))
        )
        yield "" if kind in TIME_KINDS or kind in BRACES or is_counter else value


def _escape_braces(name: str) -> str:
    """A text with placeholders for its literal braces."""
    if "{" not in name and "}" not in name:
        return name
    return "".join(_BRACES_ESCAPED.get(letter, letter) for letter in name)
