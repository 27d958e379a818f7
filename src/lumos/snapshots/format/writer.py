"""Writes snapshots atomically; snapshots of the same state have the same bytes."""

import heapq
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Literal, Self

import msgspec

from lumos.model.catalog import CatalogEntity, GlossaryTerm, Group, Job, SnapshotEntry, User
from lumos.model.dataset import Dataset
from lumos.snapshots.format.codec import (
    MalformedJson,
    add_hash,
    canonical,
    decode_entry,
    decode_json,
    digest,
    key_of,
    split_hash,
)
from lumos.snapshots.format.document import (
    DATASETS,
    GLOSSARY,
    GROUPS,
    JOBS,
    KINDS,
    OTHERS,
    USERS,
    EntryKind,
    SnapshotFacts,
    SnapshotHeader,
)
from lumos.snapshots.format.encodings import MANIFEST, KeyedEntry, encoding_of
from lumos.snapshots.format.errors import DuplicateEntry, SnapshotError
from lumos.snapshots.format.manifest import ManifestBuilder, header_of_facts

MAX_IN_MEMORY: Final = 128 * 1024 * 1024


class EntrySorter:
    """Sorts entries of one kind; entries beyond the memory limit are spilled to temporary files."""

    def __init__(self, kind: EntryKind, *, max_in_memory: int = MAX_IN_MEMORY) -> None:
        self._kind = kind
        self._max_in_memory = max_in_memory
        self._entries: list[KeyedEntry] = []
        self._size = 0
        self._runs: list[IO[bytes]] = []
        self._files = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._files.close()

    def add(self, key: str, body: bytes, content_hash: str) -> None:
        self._entries.append((key, body, content_hash))
        self._size += len(body)
        if self._size > self._max_in_memory:
            self._spill()

    def sorted_entries(self) -> Iterator[KeyedEntry]:
        """All entries, sorted by key; entries with the same key are adjacent."""
        self._entries.sort()
        if not self._runs:
            return iter(self._entries)
        return heapq.merge(*map(self._read, self._runs), self._entries)

    def _spill(self) -> None:
        self._entries.sort()
        run = tempfile.TemporaryFile(prefix="lumos-")  # noqa: SIM115
        self._files.enter_context(run)
        lines = (
            add_hash(body, content_hash, after=b"\n") for _, body, content_hash in self._entries
        )
        run.writelines(lines)
        self._runs.append(run)
        self._entries.clear()
        self._size = 0

    def _read(self, run: IO[bytes]) -> Iterator[KeyedEntry]:
        run.seek(0)
        for line in run:
            body, content_hash = split_hash(line[:-1])
            yield key_of(self._kind, body), body, str(content_hash)


class _Manifest(msgspec.Struct):
    """The keys that identify the manifest of a snapshot."""

    format: Literal["lumos-snapshot"]
    files: dict[str, list[str]]


def write_snapshot(
    path: str | Path,
    facts: SnapshotFacts,
    datasets: Iterable[Dataset],
    *,
    glossary: Iterable[GlossaryTerm] = (),
    users: Iterable[User] = (),
    groups: Iterable[Group] = (),
    jobs: Iterable[Job] = (),
    others: Iterable[CatalogEntity] = (),
) -> SnapshotHeader:
    """Write a snapshot, and return its header; the entries may be in any order.

    The extension of the path sets the encoding. An existing snapshot is replaced after the new one
    was written completely.
    """
    file = Path(path)
    encoding = encoding_of(file)
    entries: dict[EntryKind, Iterable[SnapshotEntry]] = {
        GLOSSARY: glossary,
        USERS: users,
        GROUPS: groups,
        JOBS: jobs,
        OTHERS: others,
        DATASETS: datasets,
    }
    with ExitStack() as open_sorters:
        totals = ManifestBuilder()
        sorters = {kind: open_sorters.enter_context(EntrySorter(kind)) for kind in KINDS}
        for kind, sorter in sorters.items():
            _collect(file, kind, entries[kind], sorter, totals)
        header = header_of_facts(facts, totals)
        bodies = {kind.plural: _check_duplicates(file, kind, sorters[kind]) for kind in KINDS}
        with _replace_atomically(file, is_folder=encoding.is_folder) as temporary:
            try:
                encoding.write(temporary, canonical(header), bodies)
            except MalformedJson as problem:
                raise SnapshotError(file, problem.path, f"{problem.problem}.") from None
    return header


def _collect(
    file: Path,
    kind: EntryKind,
    values: Iterable[SnapshotEntry],
    sorter: EntrySorter,
    totals: ManifestBuilder,
) -> None:
    get_key = attrgetter(kind.key)
    for value in values:
        key = get_key(value)
        try:
            body = canonical(value)
        except UnicodeEncodeError:
            problem = f"The {kind.singular} {key!r} contains text that is not Unicode."
            raise SnapshotError(file, kind.plural, problem) from None
        except RecursionError:
            problem = f"The {kind.singular} '{key}' nests too deeply."
            raise SnapshotError(file, kind.plural, problem) from None
        if not isinstance(value, Dataset) or value.quality or value.cost:
            _check_numbers(file, kind, key, body)
        content_hash = digest(body)
        totals.add(kind, value, content_hash)
        sorter.add(key, body, content_hash)


def _check_numbers(file: Path, kind: EntryKind, key: str, body: bytes) -> None:
    # Unknown values are omitted. So null only occurs in extras, inside text, or in place of a
    # number that JSON cannot represent, such as NaN.
    if b":null" not in body:
        return
    try:
        is_unchanged = canonical(decode_entry(kind, body)) == body
    except MalformedJson:
        is_unchanged = False
    if not is_unchanged:
        problem = f"The {kind.singular} '{key}' contains NaN or infinity."
        raise SnapshotError(file, kind.plural, problem)


def _check_duplicates(file: Path, kind: EntryKind, sorter: EntrySorter) -> Iterator[KeyedEntry]:
    last_key = None
    for entry in sorter.sorted_entries():
        key = entry[0]
        if key == last_key:
            raise DuplicateEntry(file, kind.plural, f"The {kind.singular} '{key}' was given twice.")
        last_key = key
        yield entry


@contextmanager
def _replace_atomically(file: Path, *, is_folder: bool) -> Iterator[Path]:
    """Yield a temporary path; if the block ends without an error, it replaces the file."""
    if file.is_dir():
        _check_replaceable(file, is_folder=is_folder)
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        yield temporary
        _sync(temporary)
        if file.is_dir():
            old = file.with_name(f".{file.name}.{uuid.uuid4().hex[:8]}.old")
            file.rename(old)
            temporary.rename(file)
            shutil.rmtree(old)
        else:
            os.replace(temporary, file)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary)
        else:
            temporary.unlink(missing_ok=True)


def _sync(temporary: Path) -> None:
    """Flush the new files to disk before they replace the old ones."""
    for file in temporary.iterdir() if temporary.is_dir() else (temporary,):
        with file.open("rb") as stream:
            os.fsync(stream.fileno())


def _check_replaceable(folder: Path, *, is_folder: bool) -> None:
    """Raise an error if the folder contains anything but a snapshot."""
    names = {path.name for path in folder.iterdir()} if is_folder else {""}
    if not names:
        return
    other_files = names - _files_of_snapshot(folder)
    if other_files:
        example = f", such as {min(other_files)}" if is_folder else ""
        problem = f"There is already a folder of this name with other files{example}."
        raise SnapshotError(folder, "", problem)


def _files_of_snapshot(folder: Path) -> set[str]:
    """The files of a Parquet snapshot; empty if the folder is not a snapshot."""
    try:
        manifest = decode_json((folder / MANIFEST).read_bytes(), _Manifest)
    except (OSError, MalformedJson):
        return set()
    return {MANIFEST, *(name for names in manifest.files.values() for name in names)}
