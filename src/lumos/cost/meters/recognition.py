"""Which files of a place tell what jobs used, and reading one of them."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

from lumos.cost.meters.dbt import read_run_results
from lumos.cost.meters.spark import FIRST_EVENT, read_event_log
from lumos.cost.meters.tables import is_table, read_table
from lumos.cost.meters.unfolding import UnreadableMeter, unfolded
from lumos.errors import MisuseError
from lumos.model.metering import Metered

Kind = Literal["spark", "dbt", "table"]
_ROLLING: Final = "eventlog_v2_"
_PART: Final = re.compile(r"events_(\d+)_")
_COMPACT: Final = ".compact"
_HEAD: Final = 64 * 1024
_LARGEST_RESULTS: Final = 1024**3


class Meter(NamedTuple):
    """A file, or the parts of a rolling log, that tells what was used."""

    kind: Kind
    name: str
    paths: tuple[str, ...]


class MeterReading(NamedTuple):
    """What one of them tells; `reporter` is who says so, unless somebody gives it a name."""

    meter: Meter
    reporter: str
    metered: tuple[Metered, ...]
    remarks: tuple[str, ...]


def found_meters(paths: Iterable[str | Path]) -> Iterator[Meter]:
    """The meters in some places; a file that is none is an error, in a folder it is passed over."""
    for path in map(str, paths):
        if not os.path.exists(path):
            raise MisuseError(
                f"There is no file or folder {path}. Name one that exists: lumos cost ingest PATH"
            )
        if os.path.isdir(path):
            yield from _in_folder(path)
            continue
        meter = _recognised(path)
        if meter is None:
            raise MisuseError(
                f"{path} is not a Spark event log, not a run_results.json of dbt and not a table "
                "with the columns job, started_at, ended_at, engine, quantity and unit."
            )
        yield meter


def read_meter(meter: Meter, *, engine: str = "") -> MeterReading:
    """What a meter tells; `engine` says what it ran on, where the file does not."""
    try:
        return _read(meter, engine)
    except ArithmeticError:
        reason = "it holds a time or a quantity that is too large"
        raise UnreadableMeter(meter.name, reason) from None


def _read(meter: Meter, engine: str) -> MeterReading:
    match meter.kind:
        case "spark":
            found = read_event_log(meter.paths, name=meter.name, engine=engine)
            remarks = (*found.remarks, *_compacted(meter))
            return MeterReading(meter, "spark", (found.metered,), remarks)
        case "dbt":
            metered = read_run_results(_content(meter), name=meter.name, engine=engine)
            return MeterReading(meter, "dbt", tuple(metered), ())
        case "table":
            rows = read_table(meter.paths[0])
            name = re.sub(r"(\.(csv|tsv|txt|gz|zst|zstd|bz2))+\Z", "", os.path.basename(meter.name))
            return MeterReading(meter, f"table:{name}", tuple(row.metered for row in rows), ())


def _in_folder(folder: str) -> Iterator[Meter]:
    if (rolling := _rolling(folder)) is not None:
        yield rolling
        return
    for entry in sorted(os.scandir(folder), key=lambda each: each.name):
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir():
            yield from _in_folder(entry.path)
        elif (meter := _recognised(entry.path)) is not None:
            yield meter


def _rolling(folder: str) -> Meter | None:
    """The parts of a rolling event log in their order, from the last one that was compacted on."""
    if not os.path.basename(os.path.abspath(folder)).startswith(_ROLLING):
        return None
    numbered = sorted(
        (int(match.group(1)), _COMPACT not in name, name)
        for name in os.listdir(folder)
        if (match := _PART.match(name))
    )
    compacted = [place for place, each in enumerate(numbered) if not each[1]]
    if compacted:
        first = numbered[compacted[-1]]
        numbered = [first, *(each for each in numbered if each[0] > first[0])]
    paths = tuple(os.path.join(folder, name) for _, _, name in numbered)
    return Meter("spark", folder, paths) if paths else None


def _compacted(meter: Meter) -> Iterator[str]:
    if any(_COMPACT in os.path.basename(path) for path in meter.paths):
        yield (
            f"{meter.name}: the log was compacted, so executors removed before that are not "
            "counted."
        )


def _recognised(path: str) -> Meter | None:
    try:
        with unfolded(path) as stream:
            head = stream.read(_HEAD)
    except (OSError, UnreadableMeter):
        return None
    if head.startswith(FIRST_EVENT):
        return Meter("spark", path, (path,))
    if head.lstrip().startswith(b"{") and b"/run-results/" in head:
        return Meter("dbt", path, (path,))
    text = head.decode("utf-8-sig", errors="replace")
    return Meter("table", path, (path,)) if is_table(text) else None


def _content(meter: Meter) -> bytes:
    with unfolded(meter.paths[0]) as stream:
        data = stream.read(_LARGEST_RESULTS + 1)
    if len(data) > _LARGEST_RESULTS:
        raise UnreadableMeter(meter.name, "it holds more than a gigabyte")
    return data
