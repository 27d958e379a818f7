"""Lakes to measure on: the same bytes on every machine, made once and kept in build/bench.

Each dataset has column names of its own, or all but two in common with the others, daily partitions
with one file each and a column that is added halfway. Every file is a slice of its dataset's random
rows, so no two files are alike.
"""

import json
import multiprocessing
import os
import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

KEPT = Path(__file__).parents[1] / "build" / "bench"
COLUMNS = 30

Format: TypeAlias = Literal["parquet", "csv", "json"]
# Kept lakes of another generation are made anew.
_GENERATION = 1
_FIRST_DAY = date(2024, 1, 1)
_SUFFIX: dict[Format, str] = {"parquet": "parquet", "csv": "csv", "json": "jsonl"}
_ROWS: dict[Format, tuple[int, int]] = {"parquet": (20, 50), "csv": (90, 110), "json": (90, 110)}
# fmt: off
_SUBJECTS = (
    "account", "basket", "click", "device", "invoice", "order", "parcel", "payment",
    "refund", "session", "store", "ticket", "user", "vehicle", "visit", "voucher",
)
_QUALITIES = (
    "billed", "closed", "daily", "final", "first", "gross", "inner", "last",
    "local", "manual", "net", "open", "prior", "remote", "total", "valid",
)
# fmt: on


@dataclass(frozen=True, kw_only=True)
class Lake:
    """What a lake holds."""

    format: Format
    datasets: int
    files_each: int
    # Whether all datasets have the same columns but for two.
    similar: bool = False

    @property
    def files(self) -> int:
        return self.datasets * self.files_each

    @property
    def root(self) -> Path:
        kind = "-similar" if self.similar else ""
        return KEPT / "lakes" / f"{self.format}-{self.datasets}x{self.files_each}{kind}"

    @property
    def suffix(self) -> str:
        return _SUFFIX[self.format]

    @property
    def rows(self) -> int:
        return sum(int(_row_counts(self, dataset).sum()) for dataset in range(self.datasets))


def parquet(datasets: int, files_each: int, *, similar: bool = False) -> Lake:
    """A lake of Parquet files with 20 to 50 rows each."""
    return _made(Lake(format="parquet", datasets=datasets, files_each=files_each, similar=similar))


def csv(datasets: int, files_each: int) -> Lake:
    """A lake of CSV files with about 100 rows each."""
    return _made(Lake(format="csv", datasets=datasets, files_each=files_each))


def json_lines(datasets: int, files_each: int) -> Lake:
    """A lake of JSON Lines files with about 100 rows each."""
    return _made(Lake(format="json", datasets=datasets, files_each=files_each))


def warm_up(lake: Lake) -> None:
    """Reads every file, so that nobody is measured on an empty page cache."""
    for folder, _, names in os.walk(lake.root):
        for name in names:
            (Path(folder) / name).read_bytes()


@contextmanager
def copied(lake: Lake) -> Iterator[Path]:
    """A copy whose files may be replaced; until then they are links to the lake's own."""
    copy = lake.root.with_name(f"{lake.root.name}-copy-{os.getpid()}")
    try:
        yield Path(shutil.copytree(lake.root, copy, copy_function=os.link))
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def replace_files(lake: Lake, copy: Path, *, count: int, turn: int) -> int:
    """Writes one file of `count` datasets anew, in every turn an older one; gives the rows won so.

    The columns stay as they are, and the rows were never there before.
    """
    won, place = 0, lake.files_each - turn
    for dataset in range(0, lake.datasets, lake.datasets // count):
        path = copy / _relative(lake, dataset, place)
        unfinished = path.with_name("_unfinished")
        fresh = next(_slices(lake, dataset, turn=turn))
        _write_file(lake, place, fresh, unfinished)
        won += fresh.num_rows - int(_row_counts(lake, dataset)[place])
        unfinished.replace(path)
    return won


@contextmanager
def linked(lake: Lake, *, files_each: int) -> Iterator[Path]:
    """The lake's datasets with more names in them, each a link to one of the lake's files.

    This is for measurements of what a long listing costs, whatever the files hold.
    """
    folder = lake.root.with_name(f"{lake.root.name}-linked-{os.getpid()}")
    try:
        for dataset in range(lake.datasets):
            for place in range(lake.files_each):
                original = _relative(lake, dataset, place)
                partition = folder / original.parent
                partition.mkdir(parents=True)
                for part in range(files_each // lake.files_each):
                    os.link(lake.root / original, partition / f"part-{part:05d}.{lake.suffix}")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _made(lake: Lake) -> Lake:
    marker = lake.root.with_suffix(".made")
    wanted = json.dumps({**asdict(lake), "columns": COLUMNS, "generation": _GENERATION})
    if marker.exists() and marker.read_text(encoding="utf-8") == wanted:
        return lake
    shutil.rmtree(lake.root, ignore_errors=True)
    marker.unlink(missing_ok=True)
    with multiprocessing.get_context("spawn").Pool() as pool:
        for _ in pool.imap_unordered(partial(_write_dataset, lake), range(lake.datasets)):
            pass
    marker.write_text(wanted, encoding="utf-8")
    return lake


def _write_dataset(lake: Lake, dataset: int) -> None:
    for place, rows in enumerate(_slices(lake, dataset)):
        path = lake.root / _relative(lake, dataset, place)
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_file(lake, place, rows, path)


def _write_file(lake: Lake, place: int, rows: pa.Table, path: Path) -> None:
    columns = COLUMNS if place < lake.files_each // 2 else COLUMNS + 1
    _WRITERS[lake.format](rows.select(range(columns)), path)


def _relative(lake: Lake, dataset: int, place: int) -> Path:
    day = _FIRST_DAY + timedelta(days=place)
    return Path(_dataset_name(dataset)) / f"dt={day}" / f"part-00000.{lake.suffix}"


def _dataset_name(dataset: int) -> str:
    subject = _SUBJECTS[dataset % len(_SUBJECTS)]
    return f"{subject}_{_QUALITIES[dataset // len(_SUBJECTS) % len(_QUALITIES)]}_{dataset:04d}"


def _slices(lake: Lake, dataset: int, *, turn: int = 0) -> Iterator[pa.Table]:
    """The rows of each file of a dataset; another turn gives other rows."""
    rows = _row_counts(lake, dataset, turn=turn)
    total = int(rows.sum())
    chance = np.random.default_rng([dataset, turn])
    table = pa.table(
        {
            f"{name}_{kind}": make(chance, total)
            for name, (kind, make) in zip(_column_names(lake, dataset), _kinds(), strict=True)
        }
    )
    start = 0
    for count in rows.tolist():
        yield table.slice(start, count)
        start += count


def _row_counts(lake: Lake, dataset: int, *, turn: int = 0) -> np.ndarray[Any, np.dtype[np.int64]]:
    fewest, most = _ROWS[lake.format]
    return np.random.default_rng([dataset, turn, 1]).integers(fewest, most + 1, lake.files_each)


def _column_names(lake: Lake, dataset: int) -> list[str]:
    every = [f"{subject}_{quality}" for subject in _SUBJECTS for quality in _QUALITIES]
    if lake.similar:
        shared = every[: COLUMNS - 1]
        return [*shared, f"{_dataset_name(dataset)}_own", every[COLUMNS]]
    return random.Random(dataset).sample(every, COLUMNS + 1)


_Make: TypeAlias = Callable[[np.random.Generator, int], pa.Array]


def _kinds() -> Iterable[tuple[str, _Make]]:
    """Kinds of columns by turns, one more than the first schema has."""
    return [list(_KINDS.items())[number % len(_KINDS)] for number in range(COLUMNS + 1)]


def _whole(chance: np.random.Generator, rows: int) -> pa.Array:
    return pa.array(chance.integers(0, 10**12, rows))


def _small(chance: np.random.Generator, rows: int) -> pa.Array:
    return pa.array(chance.integers(0, 10**6, rows, dtype=np.int32), mask=_holes(chance, rows))


def _ratio(chance: np.random.Generator, rows: int) -> pa.Array:
    return pa.array(chance.random(rows) * 1000, mask=_holes(chance, rows))


def _amount(chance: np.random.Generator, rows: int) -> pa.Array:
    cents = pa.array(chance.integers(0, 10**9, rows)).cast(pa.decimal128(19, 0))
    return pa.compute.multiply(cents, pa.scalar(Decimal("0.01"))).cast(pa.decimal128(12, 2))


def _flag(chance: np.random.Generator, rows: int) -> pa.Array:
    return pa.array(chance.random(rows) < 0.5)


def _day(chance: np.random.Generator, rows: int) -> pa.Array:
    first = (_FIRST_DAY - date(1970, 1, 1)).days
    return pa.array(chance.integers(first, first + 365, rows, dtype=np.int32)).cast(pa.date32())


def _moment(chance: np.random.Generator, rows: int) -> pa.Array:
    first = int((datetime(2024, 1, 1) - datetime(1970, 1, 1)).total_seconds()) * 10**6
    micros = chance.integers(first, first + 365 * 86_400 * 10**6, rows)
    return pa.array(micros).cast(pa.timestamp("us", tz="UTC"))


def _label(chance: np.random.Generator, rows: int) -> pa.Array:
    words = pa.array([f"{quality} {subject}" for quality in _QUALITIES for subject in _SUBJECTS])
    return words.take(pa.array(chance.integers(0, len(words), rows), mask=_holes(chance, rows)))


def _key(chance: np.random.Generator, rows: int) -> pa.Array:
    return pa.array([value.hex() for value in _chunks(chance.bytes(8 * rows))])


def _status(chance: np.random.Generator, rows: int) -> pa.Array:
    return pa.array(["new", "paid", "sent", "done"]).take(pa.array(chance.integers(0, 4, rows)))


_KINDS: dict[str, _Make] = {
    "id": _whole,
    "count": _small,
    "ratio": _ratio,
    "amount": _amount,
    "flag": _flag,
    "day": _day,
    "at": _moment,
    "label": _label,
    "key": _key,
    "status": _status,
}


def _holes(chance: np.random.Generator, rows: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return chance.random(rows) < 0.05


def _chunks(data: bytes) -> list[bytes]:
    return [data[start : start + 8] for start in range(0, len(data), 8)]


def _write_parquet(table: pa.Table, path: Path) -> None:
    pa.parquet.write_table(table, path)


def _write_csv(table: pa.Table, path: Path) -> None:
    pa.csv.write_csv(table, path)


def _write_json_lines(table: pa.Table, path: Path) -> None:
    path.write_bytes(msgspec.json.Encoder(decimal_format="number").encode_lines(table.to_pylist()))


_WRITERS: dict[Format, Callable[[pa.Table, Path], None]] = {
    "parquet": _write_parquet,
    "csv": _write_csv,
    "json": _write_json_lines,
}
