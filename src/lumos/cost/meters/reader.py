"""Finds files with resource usage ("meters") in folders, detects their kind and reads them."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

from lumos.cost.meters.compression import UnreadableUsageFile, open_decompressed
from lumos.cost.meters.dbt import read_run_results
from lumos.cost.meters.spark import FIRST_EVENT, read_event_log
from lumos.cost.meters.tables import has_table_name, is_table, read_table
from lumos.errors import MisuseError
from lumos.model.cost import MeteredUsage

MeterKind = Literal["spark", "dbt", "table"]
_ROLLING_LOG_PREFIX: Final = "eventlog_v2_"
_PART_NAME: Final = re.compile(r"events_(\d+)_")
_COMPACTED_MARK: Final = ".compact"
_HEAD_BYTES: Final = 64 * 1024
_MAX_RESULTS_BYTES: Final = 1024**3


class MeterFile(NamedTuple):
    """A file with resource usage, or the parts of a rolling event log."""

    kind: MeterKind
    name: str
    paths: tuple[str, ...]


class MeterReading(NamedTuple):
    """The usage in a meter file; `reporter` is the default reporter name."""

    meter: MeterFile
    reporter: str
    metered: tuple[MeteredUsage, ...]
    remarks: tuple[str, ...]


def find_meters(paths: Iterable[str | Path]) -> Iterator[MeterFile]:
    """Yield the meter files at paths and in folders; other files in folders are skipped.

    Raises MisuseError if a path itself is another file.
    """
    for path in map(str, paths):
        if not os.path.exists(path):
            raise MisuseError(
                f"There is no file or folder {path}. Name one that exists: lumos cost ingest PATH"
            )
        if os.path.isdir(path):
            yield from _find_in_folder(path)
            continue
        meter = _detect_usage_file(path)
        if meter is None and has_table_name(path):
            # Reading it raises an error that lists the missing columns.
            meter = MeterFile("table", path, (path,))
        if meter is None:
            raise MisuseError(
                f"{path} is not a Spark event log, not a run_results.json of dbt and not a CSV "
                "file with usage. Name one of these: lumos cost ingest PATH"
            )
        yield meter


def read_meter(meter: MeterFile, *, engine: str = "") -> MeterReading:
    """Read a meter file; `engine` is used if the file does not name one."""
    try:
        return _read(meter, engine)
    except ArithmeticError:
        reason = "a time or a quantity in it is too large"
        raise UnreadableUsageFile(meter.name, reason) from None


def _read(meter: MeterFile, engine: str) -> MeterReading:
    match meter.kind:
        case "spark":
            application = read_event_log(meter.paths, name=meter.name, engine=engine)
            remarks = (*application.remarks, *_compaction_remarks(meter))
            return MeterReading(meter, "spark", (application.metered,), remarks)
        case "dbt":
            metered = read_run_results(_read_content(meter), name=meter.name, engine=engine)
            return MeterReading(meter, "dbt", tuple(metered), ())
        case "table":
            rows = read_table(meter.paths[0])
            name = re.sub(r"(\.(csv|tsv|txt|gz|zst|zstd|bz2))+\Z", "", os.path.basename(meter.name))
            return MeterReading(meter, f"table:{name}", tuple(row.metered for row in rows), ())


def _find_in_folder(folder: str) -> Iterator[MeterFile]:
    if (rolling := _rolling_log(folder)) is not None:
        yield rolling
        return
    for entry in sorted(os.scandir(folder), key=lambda each: each.name):
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir():
            yield from _find_in_folder(entry.path)
        elif (meter := _detect_usage_file(entry.path)) is not None:
            yield meter


def _rolling_log(folder: str) -> MeterFile | None:
    """The parts of a rolling event log in order, starting with the last compacted one."""
    if not os.path.basename(os.path.abspath(folder)).startswith(_ROLLING_LOG_PREFIX):
        return None
    numbered = sorted(
        (int(match.group(1)), _COMPACTED_MARK not in name, name)
        for name in os.listdir(folder)
        if (match := _PART_NAME.match(name))
    )
    compacted = [index for index, each in enumerate(numbered) if not each[1]]
    if compacted:
        first = numbered[compacted[-1]]
        numbered = [first, *(each for each in numbered if each[0] > first[0])]
    paths = tuple(os.path.join(folder, name) for _, _, name in numbered)
    return MeterFile("spark", folder, paths) if paths else None


def _compaction_remarks(meter: MeterFile) -> Iterator[str]:
    if any(_COMPACTED_MARK in os.path.basename(path) for path in meter.paths):
        yield (
            f"{meter.name}: the log was compacted, so executors removed before that are not "
            "included."
        )


def _detect_usage_file(path: str) -> MeterFile | None:
    try:
        with open_decompressed(path) as stream:
            head = stream.read(_HEAD_BYTES)
    except (OSError, UnreadableUsageFile):
        return None
    if head.startswith(FIRST_EVENT):
        return MeterFile("spark", path, (path,))
    if head.lstrip().startswith(b"{") and b"/run-results/" in head:
        return MeterFile("dbt", path, (path,))
    text = head.decode("utf-8-sig", errors="replace")
    return MeterFile("table", path, (path,)) if is_table(text) else None


def _read_content(meter: MeterFile) -> bytes:
    with open_decompressed(meter.paths[0]) as stream:
        data = stream.read(_MAX_RESULTS_BYTES + 1)
    if len(data) > _MAX_RESULTS_BYTES:
        raise UnreadableUsageFile(meter.name, "it is larger than 1 GB")
    return data
