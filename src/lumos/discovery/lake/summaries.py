"""Reads data files and summarises them by folder, name pattern, format and schema.

The driver of a scan only sees summaries, whose size does not grow with the number of files.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from lumos.discovery.grouping.hints import ColumnSplit, HintMatcher
from lumos.discovery.grouping.patterns import (
    NULL_PARTITION,
    FileAssignment,
    Partitions,
    assign_file,
    is_time_partition,
)
from lumos.formats.columns import FileColumnStatistics, merge_columns, pack_columns, unpack_columns
from lumos.formats.identification import read_file
from lumos.formats.interface import MAX_COUNT, UnreadableFile
from lumos.model.discovery import Problem
from lumos.spark.problems import ProblemCount, ProblemList, count_problems
from lumos.storage import FileHint, FileStorage, ListedFile

_ALL_BITS: Final = 2**64 - 1
# The number of values stored per path level of a file set: the first in alphabetical order.
MAX_PATH_VALUES: Final = 1000
_INTEGER: Final = re.compile(r"(0|-?[1-9]\d{0,17})\Z", re.ASCII)
_DIGITS: Final = re.compile(r"\d{1,9}\Z", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}\Z", re.ASCII)
# No file has this size, so the next scan retries a file that could not be opened.
_UNREADABLE_SIZE: Final = -1

# Folder, name pattern, format and schema fingerprint.
FileSetKey = tuple[str, str, str, str]


class FileRow(NamedTuple):
    """A file as the manifest stores it.

    A file that is not data has no `format`. A file that could not be read is `failed`, with a code
    and a reason, and has its other values from an earlier scan. For readable files, `reason` is a
    remark. `columns` are packed statistics, if they were requested.
    """

    path: str
    size: int
    modified: int
    etag: str
    format: str | None = None
    schema_fingerprint: str | None = None
    row_count: int | None = None
    row_count_exact: bool = False
    failed: bool = False
    code: str | None = None
    reason: str | None = None
    columns: bytes | None = None
    storage_class: str = ""


class PartitionKey(msgspec.Struct, array_like=True, order=True, frozen=True):
    """A key of partition folders, and whether all its values are integers, digits or dates."""

    position: int
    key: str
    integers: bool
    digits: bool
    dates: bool


class FileSet(msgspec.Struct, array_like=True):
    """All files of one folder, name pattern, format and schema.

    `content` is a fingerprint that does not depend on the order of files. `newest` is the last
    partition and the time of its newest file. `dataset` is the path of the dataset to which the
    pattern belongs. `path_values` are values that may distinguish datasets, by their position in
    the path.
    """

    base: str
    pattern: str
    format: str
    schema_fingerprint: str
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
    # None if column statistics were not requested for all files.
    columns: tuple[FileColumnStatistics, ...] | None = None
    # Bytes by storage class, if the storage reports it.
    classes: dict[str, int] = {}
    dataset: str = ""
    path_values: dict[str, list[str]] = {}

    @property
    def key(self) -> FileSetKey:
        """The values that identify the file set in every scan."""
        return self.base, self.pattern, self.format, self.schema_fingerprint

    def merge(self, other: "FileSet") -> None:
        """Add the files that another task summarised for the same key."""
        self.newest = max(self.newest, other.newest)
        self.oldest = min(self.oldest, other.oldest)
        self.modified = max(self.modified, other.modified)
        self.first_path = min(self.first_path, other.first_path)
        self.last_path = max(self.last_path, other.last_path)
        self.file_count += other.file_count
        self.size += other.size
        for name, size in other.classes.items():
            self.classes[name] = self.classes.get(name, 0) + size
        self.row_count = add_row_counts(self.row_count, other.row_count)
        self.row_count_exact &= other.row_count_exact
        self.content = (self.content + other.content) & _ALL_BITS
        self.keys = merge_partition_keys(self.keys, other.keys)
        self.columns = (
            None
            if self.columns is None or other.columns is None
            else merge_columns((self.columns, other.columns))
        )
        for label, values in other.path_values.items():
            merged = {*self.path_values.get(label, []), *values}
            self.path_values[label] = sorted(merged)[: MAX_PATH_VALUES + 1]


class FileSummary(msgspec.Struct, array_like=True):
    """The file sets of a number of files, with counts and the first of their problems.

    `hints` is the fingerprint of the hints that were applied. `problem_counts` counts all problems;
    manifests of earlier versions do not have it.
    """

    file_sets: list[FileSet]
    listed: int = 0
    failed: int = 0
    problems: list[Problem] = []
    hints: str = ""
    problem_counts: list[ProblemCount] = []
    # The number of files that are not data by content or extension.
    not_data: int = 0

    @property
    def all_problems(self) -> ProblemList:
        """The first problems, and the number of all problems."""
        counts = self.problem_counts or count_problems(self.problems)
        return ProblemList(len(self.problems), self.problems, counts)

    @property
    def has_column_stats(self) -> bool:
        """Whether column statistics are known for all files."""
        return all(file_set.columns is not None for file_set in self.file_sets)


def merge_file_sets(file_sets: Iterable[FileSet]) -> list[FileSet]:
    """The file sets of several tasks, merged by key."""
    merged: dict[FileSetKey, FileSet] = {}
    for each in file_sets:
        if each.key in merged:
            merged[each.key].merge(each)
        else:
            merged[each.key] = each
    return list(merged.values())


def add_row_counts(left: int | None, right: int | None) -> int | None:
    """The sum of two row counts; None if one is unknown or the sum is too large for the store."""
    if left is None or right is None or left + right > MAX_COUNT:
        return None
    return left + right


class EarlierSummary(NamedTuple):
    """The summary of the last scan, and the files that were added, changed or removed since."""

    summary: FileSummary
    changed: Collection[str]


def summarise(
    rows: Sequence[FileRow],
    *,
    root: str,
    hints: Sequence[FileHint] = (),
    splits: Sequence[ColumnSplit] = (),
    earlier: EarlierSummary | None = None,
) -> FileSummary:
    """Summarise files; file sets without changes are taken from `earlier`."""
    matcher = HintMatcher(hints, root=root, splits=splits)
    problems = ProblemList()
    for row in rows:
        if row.code is not None:
            reason = row.reason or ""
            problems.add(
                Problem(path=row.path, code=row.code, reason=reason, remark=not row.failed)
            )
    failed = sum(row.failed for row in rows)
    unchanged: list[FileSet] = []
    changed: Iterable[FileRow] = rows
    if earlier is not None and not hints and not splits:
        # Everything below the base folder of a changed file is summarised again.
        changed_folders = tuple({f"{assign_file(path).base}/" for path in earlier.changed})
        unchanged = [
            each
            for each in earlier.summary.file_sets
            if not f"{each.base}/".startswith(changed_folders)
        ]
        changed = (row for row in rows if row.path.startswith(changed_folders))
    return FileSummary(
        [*unchanged, *_summarise_file_sets(changed, matcher.assign)],
        len(rows),
        failed,
        problems.listed,
        matcher.fingerprint,
        problems.counts,
        sum(row.format is None and not row.failed for row in rows),
    )


def _summarise_file_sets(
    rows: Iterable[FileRow], assign: Callable[[str], FileAssignment]
) -> Iterable[FileSet]:
    file_sets: dict[FileSetKey, FileSet] = {}
    columns: dict[FileSetKey, list[tuple[FileColumnStatistics, ...]] | None] = {}
    merged_partitions: set[tuple[FileSetKey, Partitions]] = set()
    path_values: dict[FileSetKey, dict[str, set[str]]] = {}
    for row in rows:
        if row.format is None or row.schema_fingerprint is None:
            continue
        assignment = assign(row.path)
        partitions = assignment.partitions
        key = (assignment.base, assignment.pattern, row.format, row.schema_fingerprint)
        newest = (sortable_partitions(partitions), row.modified)
        file_set = file_sets.get(key)
        if file_set is None:
            file_set = file_sets[key] = FileSet(
                *key,
                newest,
                row.modified,
                row.modified,
                row.path,
                row.path,
                dataset=assignment.dataset,
            )
            columns[key] = None if row.columns is None else [unpack_columns(row.columns)]
        else:
            if (statistics := columns[key]) is not None and row.columns is not None:
                statistics.append(unpack_columns(row.columns))
            else:
                columns[key] = None
            file_set.newest = max(file_set.newest, newest)
            file_set.oldest = min(file_set.oldest, row.modified)
            file_set.modified = max(file_set.modified, row.modified)
            file_set.first_path = min(file_set.first_path, row.path)
            file_set.last_path = max(file_set.last_path, row.path)
        file_set.file_count += 1
        file_set.size += row.size
        if row.storage_class:
            class_size = file_set.classes.get(row.storage_class, 0)
            file_set.classes[row.storage_class] = class_size + row.size
        file_set.row_count = add_row_counts(file_set.row_count, row.row_count)
        file_set.row_count_exact &= row.row_count_exact
        file_set.content = (file_set.content + _fingerprint(row)) & _ALL_BITS
        if partitions and (key, partitions) not in merged_partitions:
            merged_partitions.add((key, partitions))
            file_set.keys = merge_partition_keys(file_set.keys, _partition_keys(partitions))
        if assignment.path_values:
            values_by_label = path_values.setdefault(key, {})
            for label, value in assignment.path_values:
                values = values_by_label.setdefault(label, set())
                values.add(value)
                if len(values) > 4 * MAX_PATH_VALUES:
                    values_by_label[label] = set(sorted(values)[: MAX_PATH_VALUES + 1])
    for key, values_by_label in path_values.items():
        file_sets[key].path_values = {
            label: sorted(values)[: MAX_PATH_VALUES + 1]
            for label, values in values_by_label.items()
        }
    for key, files in columns.items():
        file_sets[key].columns = None if files is None else merge_columns(files)
    return file_sets.values()


def _fingerprint(row: FileRow) -> int:
    text = f"{row.path}\n{row.size}\n{row.modified}\n{row.etag}"
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


@lru_cache(maxsize=65_536)
def sortable_partitions(partitions: Partitions) -> str:
    """Partition values as text that sorts naturally (9 before 10); if any is a date, only dates."""
    dates = [value for key, value in partitions if is_time_partition(key, value)]
    return "/".join(
        value.zfill(20) if value.isdigit() and len(value) < 20 else value
        for value in dates or [value for _, value in partitions]
    )


def merge_partition_keys(left: list[PartitionKey], right: list[PartitionKey]) -> list[PartitionKey]:
    """The partition keys of two file sets, with the types that fit the values of both."""
    if left == right:
        return left
    merged = {(each.position, each.key): each for each in left}
    for each in right:
        other = merged.get((each.position, each.key), each)
        merged[each.position, each.key] = PartitionKey(
            each.position,
            each.key,
            other.integers and each.integers,
            other.digits and each.digits,
            other.dates and each.dates,
        )
    return sorted(merged.values())


@lru_cache(maxsize=65_536)
def _partition_keys(partitions: Partitions) -> list[PartitionKey]:
    return [
        PartitionKey(
            position,
            key,
            _INTEGER.match(value) is not None,
            _DIGITS.match(value) is not None,
            _DATE.match(value) is not None,
        )
        for position, (key, value) in enumerate(partitions)
        if value != NULL_PARTITION and not key.startswith("{")
    ]


class DataFileReader:
    """Reads headers and footers of the files of one storage, and collects their schemas."""

    def __init__(self, storage: FileStorage, *, column_stats: bool) -> None:
        self._storage = storage
        self._column_stats = column_stats
        self.encoded_schemas: dict[str, bytes] = {}

    def read(self, files: Iterable[tuple[ListedFile, FileRow | None]]) -> Iterator[FileRow]:
        """Read files in order; each is given with its row of the last scan, if any.

        A file that can no longer be read keeps its last row, so that its dataset does not change.
        """
        if self._storage.concurrency == 1:
            yield from (self._read_or_keep_last(listed, last_row) for listed, last_row in files)
            return
        with ThreadPoolExecutor(self._storage.concurrency) as threads:
            yield from threads.map(lambda file: self._read_or_keep_last(*file), files)

    def _read_or_keep_last(self, listed: ListedFile, last_row: FileRow | None) -> FileRow:
        try:
            return self._read(listed)
        except UnreadableFile as problem:
            failed = _failed_row(listed, problem.code, problem.reason)
        except FileNotFoundError:
            failed = _unopened_row(
                listed, "vanished", "The file was deleted before it could be read."
            )
        except PermissionError:
            failed = _unopened_row(listed, "permission_denied", "No permission to read the file.")
        except Exception as problem:  # noqa: BLE001 - one corrupt file must not end a scan
            reason = f"It could not be read: {type(problem).__name__}: {problem}"
            failed = _unopened_row(listed, "unreadable", reason)
        if last_row is None or last_row.schema_fingerprint is None:
            return failed
        return last_row._replace(failed=True, code=failed.code, reason=failed.reason)

    def _read(self, listed: ListedFile) -> FileRow:
        with self._storage.open(listed.path, size=listed.size) as file:
            name = listed.path.rpartition("/")[2]
            format_and_facts = read_file(name, file, column_stats=self._column_stats)
        if format_and_facts is None:
            return _make_row(listed)
        format, facts = format_and_facts
        fingerprint = facts.known.full
        if fingerprint not in self.encoded_schemas:
            self.encoded_schemas[fingerprint] = facts.known.body
        code, reason = facts.remarks[0] if facts.remarks else (None, None)
        return _make_row(
            listed,
            format=format.name,
            schema_fingerprint=fingerprint,
            row_count=facts.row_count,
            row_count_exact=facts.row_count_exact,
            code=code,
            reason=reason,
            columns=pack_columns(facts.columns) if self._column_stats else None,
        )


def _make_row(listed: ListedFile, **facts: Any) -> FileRow:
    return FileRow(*listed[:4], storage_class=listed.storage_class, **facts)


def _failed_row(listed: ListedFile, code: str, reason: str) -> FileRow:
    return _make_row(listed, failed=True, code=code, reason=reason)


def _unopened_row(listed: ListedFile, code: str, reason: str) -> FileRow:
    return _failed_row(listed._replace(size=_UNREADABLE_SIZE), code, reason)
