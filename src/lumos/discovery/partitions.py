"""The columns that partition folders add, and the scheme of a path in words."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from lumos.discovery.grouping.patterns import CALENDAR
from lumos.discovery.grouping.values import BRACES, TIMES
from lumos.discovery.summaries import PartitionKey
from lumos.model.schema import Field
from lumos.model.types import DATE, INT32, INT64, STRING, DataType

_PLACEHOLDER: Final = re.compile(r"\{([a-z-]+)\}")


def partition_fields(keys: Iterable[PartitionKey]) -> list[Field]:
    """The columns of hive keys, typed by what all their values have in common."""
    fields: dict[str, Field] = {}
    for key in sorted(keys):
        if not key.key.startswith("{"):
            fields[key.key] = Field(name=key.key, type=_partition_type(key), partition=True)
    return list(fields.values())


def scheme(names: Sequence[str], ending: str, fields: Iterable[Field]) -> str | None:
    """How paths of a dataset vary, such as `year={yyyy}/month={mm}`; nothing where they do not.

    `names` are the templates of its folders and, last, of its files. A file's name is told where
    it holds the date that no folder tells.
    """
    types = {field.name: field.type for field in fields}
    *folders, stem = names
    varying = [index for index, folder in enumerate(folders) if _kinds(folder)]
    told = [_shown(folder, types) for folder in folders[varying[0] :]] if varying else []
    in_folders = {kind for folder in folders for kind in _kinds(folder)}
    is_dated = in_folders & TIMES or any(
        type == DATE or name.lower() in CALENDAR for name, type in types.items()
    )
    if _kinds(stem) & TIMES and not is_dated:
        told.append(_shown(stem, types) + ending)
    return "/".join(told) or None


def _kinds(name: str) -> set[str]:
    return set(_PLACEHOLDER.findall(name)) - BRACES.keys()


def _shown(name: str, types: dict[str, DataType]) -> str:
    key, is_hive, _ = name.partition("={hive}")
    if is_hive:
        key = _as_is(key)
        value = "date" if types.get(key) == DATE else CALENDAR.get(key.lower(), key)
        return f"{key}={{{value}}}"
    return _as_is(name)


def _as_is(name: str) -> str:
    return _PLACEHOLDER.sub(lambda match: BRACES.get(match[1], match[0]), name)


def _partition_type(key: PartitionKey) -> DataType:
    if key.dates:
        return DATE
    # 01 is a month where the key says so, and an identifier anywhere else.
    if key.digits and key.key.casefold() in CALENDAR:
        return INT32
    return INT64 if key.integers else STRING
