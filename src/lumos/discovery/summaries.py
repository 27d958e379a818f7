"""Files summed up: one row for every folder, name pattern and schema, whatever their number."""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from lumos.discovery.grouping.patterns import Placement, place, tells_time
from lumos.discovery.hints import ColumnSplit, Hints
from lumos.formats.columns import ColumnFacts, merge_columns, unpack_columns
from lumos.formats.interface import LARGEST
from lumos.model.discovery import Problem
from lumos.spark.problems import ProblemCount, ProblemList, count_problems
from lumos.storage import FileHint

_ALL_BITS: Final = 2**64 - 1
# So many values of a level are remembered in each place, the first in the order of text.
MOST_VALUES: Final = 1000
# How Hive and Spark write a partition whose value is null.
_NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
_INTEGER: Final = re.compile(r"(0|-?[1-9]\d{0,17})\Z", re.ASCII)
_DIGITS: Final = re.compile(r"\d{1,9}\Z", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}\Z", re.ASCII)
Partitions = tuple[tuple[str, str], ...]


class FileRow(NamedTuple):
    """A file as the manifest remembers it.

    A file that is no data has no `format`. One that could not be read is `failed`, for a reason,
    and beside that tells whatever an earlier scan knew of it; one that was read may have a reason
    as a remark. `columns` are statistics, where they were wanted.
    """

    path: str
    size: int
    modified: int
    etag: str
    format: str | None = None
    full: str | None = None
    row_count: int | None = None
    row_count_exact: bool = False
    failed: bool = False
    code: str | None = None
    reason: str | None = None
    columns: bytes | None = None
    storage_class: str = ""


class PartitionKey(msgspec.Struct, array_like=True, order=True, frozen=True):
    """A key of partition folders and what all its values have in common."""

    position: int
    key: str
    integers: bool
    digits: bool
    dates: bool


class PlaceSummary(msgspec.Struct, array_like=True):
    """All files of one folder, name pattern, format and schema.

    `content` changes whenever one of the files does, in whatever order they are met. `newest` is
    the last partition and the time of the newest file in it. `dataset` is what the paths say they
    belong to; `others` are values that may tell datasets apart, by where they stand in the path.
    """

    base: str
    pattern: str
    format: str
    full: str
    newest: tuple[str, int]
    oldest: int
    modified: int
    first_path: str
    last_path: str
    file_count: int = 0
    size: int = 0
    row_count: int | None = 0
    row_count_exact: bool = True
    content: int = 0
    keys: list[PartitionKey] = []
    # Nothing where the files were opened without asking for statistics of columns.
    columns: tuple[ColumnFacts, ...] | None = None
    # Bytes by storage class, as far as the storage reports it.
    classes: dict[str, int] = {}
    dataset: str = ""
    others: dict[str, list[str]] = {}

    def merge(self, other: "PlaceSummary") -> None:
        """Takes in what another task summed up of the same place."""
        self.newest = max(self.newest, other.newest)
        self.oldest = min(self.oldest, other.oldest)
        self.modified = max(self.modified, other.modified)
        self.first_path = min(self.first_path, other.first_path)
        self.last_path = max(self.last_path, other.last_path)
        self.file_count += other.file_count
        self.size += other.size
        for name, size in other.classes.items():
            self.classes[name] = self.classes.get(name, 0) + size
        self.row_count = added(self.row_count, other.row_count)
        self.row_count_exact &= other.row_count_exact
        self.content = (self.content + other.content) & _ALL_BITS
        self.keys = merged_keys(self.keys, other.keys)
        self.columns = _merged_columns(self.columns, other.columns)
        for label, values in other.others.items():
            known = self.others.get(label, [])
            self.others[label] = sorted({*known, *values})[: MOST_VALUES + 1]


class Summary(msgspec.Struct, array_like=True):
    """What some files come to; only the first problems are kept in words.

    `hints` is the fingerprint of those that decided where files belong. `problem_counts` tells of
    all problems; parts that were written before it was kept do not have it.
    """

    places: list[PlaceSummary]
    listed: int = 0
    failed: int = 0
    problems: list[Problem] = []
    hints: str = ""
    problem_counts: list[ProblemCount] = []
    # Files that are no data by their content or extension.
    not_data: int = 0

    @property
    def all_problems(self) -> ProblemList:
        """The problems in words, and how many there are."""
        counts = self.problem_counts or count_problems(self.problems)
        return ProblemList(len(self.problems), self.problems, counts)

    @property
    def tells_columns(self) -> bool:
        """Whether the statistics of all columns are known."""
        return all(place.columns is not None for place in self.places)


def merged_places(places: Iterable[PlaceSummary]) -> list[PlaceSummary]:
    """What several tasks summed up, each place once."""
    found: dict[tuple[str, str, str, str], PlaceSummary] = {}
    for each in places:
        key = (each.base, each.pattern, each.format, each.full)
        if key in found:
            found[key].merge(each)
        else:
            found[key] = each
    return list(found.values())


def _merged_columns(
    left: tuple[ColumnFacts, ...] | None, right: tuple[ColumnFacts, ...] | None
) -> tuple[ColumnFacts, ...] | None:
    return None if left is None or right is None else merge_columns((left, right))


def added(left: int | None, right: int | None) -> int | None:
    """Rows of both together; nothing where one is unknown, or it is more than can be."""
    if left is None or right is None or left + right > LARGEST:
        return None
    return left + right


class Earlier(NamedTuple):
    """What files came to before, and which of them have come, changed or gone since."""

    summary: Summary
    changed: Collection[str]


def summarise(
    rows: Sequence[FileRow],
    *,
    root: str,
    hints: Sequence[FileHint] = (),
    splits: Sequence[ColumnSplit] = (),
    earlier: Earlier | None = None,
) -> Summary:
    """Sums up files by their place and schema; what no change touched is taken from `earlier`."""
    placing = Hints(hints, root=root, splits=splits)
    problems = ProblemList()
    for row in rows:
        if row.code is not None:
            reason = row.reason or ""
            problems.add(
                Problem(path=row.path, code=row.code, reason=reason, remark=not row.failed)
            )
    failed = sum(row.failed for row in rows)
    kept: list[PlaceSummary] = []
    anew: Iterable[FileRow] = rows
    if earlier is not None and not hints and not splits:
        # Whatever lies below the base of a changed file is summed up again.
        touched = tuple({f"{place(path).base}/" for path in earlier.changed})
        kept = [each for each in earlier.summary.places if not f"{each.base}/".startswith(touched)]
        anew = (row for row in rows if row.path.startswith(touched))
    return Summary(
        [*kept, *_places(anew, placing.place)],
        len(rows),
        failed,
        problems.listed,
        placing.fingerprint,
        problems.counts,
        sum(row.format is None and not row.failed for row in rows),
    )


def _places(
    rows: Iterable[FileRow], place_of: Callable[[str], Placement]
) -> Iterable[PlaceSummary]:
    places: dict[tuple[str, str, str, str], PlaceSummary] = {}
    columns: dict[tuple[str, str, str, str], list[tuple[ColumnFacts, ...]] | None] = {}
    met: set[tuple[tuple[str, str, str, str], Partitions]] = set()
    others: dict[tuple[str, str, str, str], dict[str, set[str]]] = {}
    for row in rows:
        if row.format is None or row.full is None:
            continue
        placed = place_of(row.path)
        partitions = placed.partitions
        key = (placed.base, placed.pattern, row.format, row.full)
        newest = (age(partitions), row.modified)
        found = places.get(key)
        if found is None:
            found = places[key] = PlaceSummary(
                *key, newest, row.modified, row.modified, row.path, row.path, dataset=placed.dataset
            )
            columns[key] = None if row.columns is None else [unpack_columns(row.columns)]
        else:
            if (known := columns[key]) is not None and row.columns is not None:
                known.append(unpack_columns(row.columns))
            else:
                columns[key] = None
            found.newest = max(found.newest, newest)
            found.oldest = min(found.oldest, row.modified)
            found.modified = max(found.modified, row.modified)
            found.first_path = min(found.first_path, row.path)
            found.last_path = max(found.last_path, row.path)
        found.file_count += 1
        found.size += row.size
        if row.storage_class:
            known_size = found.classes.get(row.storage_class, 0)
            found.classes[row.storage_class] = known_size + row.size
        found.row_count = added(found.row_count, row.row_count)
        found.row_count_exact &= row.row_count_exact
        found.content = (found.content + _print(row)) & _ALL_BITS
        if partitions and (key, partitions) not in met:
            met.add((key, partitions))
            found.keys = merged_keys(found.keys, _keys(partitions))
        if placed.others:
            known_values = others.setdefault(key, {})
            for label, value in placed.others:
                values = known_values.setdefault(label, set())
                values.add(value)
                if len(values) > 4 * MOST_VALUES:
                    known_values[label] = set(sorted(values)[: MOST_VALUES + 1])
    for key, by_label in others.items():
        places[key].others = {
            label: sorted(values)[: MOST_VALUES + 1] for label, values in by_label.items()
        }
    for key, files in columns.items():
        places[key].columns = None if files is None else merge_columns(files)
    return places.values()


def _print(row: FileRow) -> int:
    text = f"{row.path}\n{row.size}\n{row.modified}\n{row.etag}"
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


@lru_cache(maxsize=65_536)
def age(partitions: Partitions) -> str:
    """Partition values as text that sorts as people count, 9 before 10; dates alone if any."""
    dates = [value for key, value in partitions if tells_time(key, value)]
    return "/".join(
        value.zfill(20) if value.isdigit() and len(value) < 20 else value
        for value in dates or [value for _, value in partitions]
    )


def merged_keys(left: list[PartitionKey], right: list[PartitionKey]) -> list[PartitionKey]:
    """Partition keys of two sets of files, with what the values of both have in common."""
    if left == right:
        return left
    merged = {(each.position, each.key): each for each in left}
    for each in right:
        known = merged.get((each.position, each.key), each)
        merged[each.position, each.key] = PartitionKey(
            each.position,
            each.key,
            known.integers and each.integers,
            known.digits and each.digits,
            known.dates and each.dates,
        )
    return sorted(merged.values())


@lru_cache(maxsize=65_536)
def _keys(partitions: Partitions) -> list[PartitionKey]:
    return [
        PartitionKey(
            position,
            key,
            _INTEGER.match(value) is not None,
            _DIGITS.match(value) is not None,
            _DATE.match(value) is not None,
        )
        for position, (key, value) in enumerate(partitions)
        if value != _NULL_PARTITION and not key.startswith("{")
    ]
