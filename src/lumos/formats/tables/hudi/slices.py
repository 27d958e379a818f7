"""Data files and which of them count: of each file group the newest base file and its logs."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple
from urllib.parse import unquote

from lumos.formats.tables.hudi.properties import TableProperties
from lumos.formats.tables.interface import Entry, LiveFile

_BASE: Final = re.compile(
    r"(?P<group>[^_]+)_[^_]+_(?P<instant>\d{14}(?:\d{3})?)\.(?P<format>parquet|orc|hfile|lance)\Z",
    re.ASCII,
)
# A log of changed rows for other readers ends in `.cdc` and holds no rows of the table.
_LOG: Final = re.compile(
    r"\.(?P<group>[^_]+)_(?P<instant>\d{14}(?:\d{3})?)\.log\.\d+(?:_[^_.]+)?\Z", re.ASCII
)
_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
LOG_FORMAT: Final = "hudi-log"


class _Base(NamedTuple):
    """A base file and the instant that begins its slice."""

    instant: str
    entry: Entry
    format: str


class _Log(NamedTuple):
    """A log file and the time that decides which slice it belongs to."""

    time: str
    entry: Entry


class Slice(NamedTuple):
    """The newest state of one file group: a base file, logs after it, or both."""

    partition: str
    base: Entry | None
    format: str
    logs: tuple[Entry, ...]


class Timing(NamedTuple):
    """What the timeline knows of the instants in names."""

    # Whether files of that instant were written by something that ended.
    is_ended: Callable[[str], bool]
    # When it ended, where that is told.
    end_of: Callable[[str], str | None]
    # Instants of compactions that are still to come, which newer logs may be named after.
    pending_compactions: frozenset[str]


def live_slices(
    entries: Iterable[Entry],
    timing: Timing,
    replaced: frozenset[tuple[str, str]],
    *,
    is_partitioned: bool | None,
) -> Iterator[Slice]:
    """The slices that a reader of the current version would read, in the order of their groups."""
    bases: dict[tuple[str, str], _Base] = {}
    logs: dict[tuple[str, str], list[_Log]] = {}
    for entry in entries:
        partition, _, name = entry.name.rpartition("/")
        if is_partitioned is not None and bool(partition) != is_partitioned:
            continue
        if match := _BASE.match(name) or _LOG.match(name):
            group, instant = (partition, match["group"]), match["instant"]
            is_log = name.startswith(".")
            counts = timing.is_ended(instant) or (is_log and instant in timing.pending_compactions)
            if group in replaced or not counts:
                continue
            if is_log:
                logs.setdefault(group, []).append(_Log(timing.end_of(instant) or instant, entry))
            elif group not in bases or bases[group].instant < instant:
                bases[group] = _Base(instant, entry, match["format"])
    for group in sorted({**bases, **logs}):
        base = bases.get(group)
        since = "" if base is None else base.instant
        newer = tuple(log.entry for log in logs.get(group, ()) if log.time >= since)
        yield Slice(
            partition=group[0],
            base=None if base is None else base.entry,
            format="" if base is None else base.format,
            logs=newer,
        )


def live_files(
    slices: Iterable[Slice], rows: dict[str, int | None], properties: TableProperties
) -> Iterator[LiveFile]:
    """The files of slices; a log file tells no rows, since it changes those of its base file."""
    for each in slices:
        partition = partition_values(each.partition, properties)
        if each.base is not None:
            counted = rows.get(each.base.name)
            base = each.base
            yield LiveFile(base.name, base.size, counted, partition, (), each.format)
        for log in each.logs:
            new = rows.get(log.name) if each.base is None else None
            yield LiveFile(log.name, log.size, new, partition, (), LOG_FORMAT)


def partition_values(path: str, properties: TableProperties) -> tuple[tuple[str, str | None], ...]:
    """The values in a partition's path, as far as its form tells them apart."""
    columns = properties.partition_columns
    if not path or not columns:
        return ()
    # A format of dates may put slashes into the one value there is.
    parts = path.split("/") if len(columns) > 1 else [path]
    if len(parts) != len(columns):
        return ()
    return tuple(
        (word, _value(part.removeprefix(f"{column}="), properties))
        for word, column, part in zip(properties.partition_by, columns, parts, strict=True)
    )


def _value(text: str, properties: TableProperties) -> str | None:
    if text == _NO_VALUE:
        return None
    is_encoded = properties.is_set("hoodie.datasource.write.partitionpath.urlencode")
    return unquote(text) if is_encoded else text
