"""Writes snapshots: whole or not at all, and the same bytes for the same state."""

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

from lumos.model.catalog import CatalogEntity, GlossaryTerm, Group, Item, Job, User
from lumos.model.dataset import Dataset
from lumos.snapshots.format.codec import (
    MalformedJson,
    canonical,
    decode_json,
    digest,
    entry_of,
    key_of,
    seal,
    unseal,
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
    """Entries of one kind; what is too much for the memory waits, sorted, in temporary files."""

    def __init__(self, kind: EntryKind, *, most_in_memory: int = MAX_IN_MEMORY) -> None:
        self._kind = kind
        self._most = most_in_memory
        self._held: list[KeyedEntry] = []
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
        """Takes an entry."""
        self._held.append((key, body, content_hash))
        self._size += len(body)
        if self._size > self._most:
            self._set_aside()

    def in_order(self) -> Iterator[KeyedEntry]:
        """All entries; those of the same key come one after the other."""
        self._held.sort()
        if not self._runs:
            return iter(self._held)
        return heapq.merge(*map(self._read, self._runs), self._held)

    def _set_aside(self) -> None:
        self._held.sort()
        run = tempfile.TemporaryFile(prefix="lumos-")  # noqa: SIM115
        self._files.enter_context(run)
        lines = (seal(body, content_hash, after=b"\n") for _, body, content_hash in self._held)
        run.writelines(lines)
        self._runs.append(run)
        self._held.clear()
        self._size = 0

    def _read(self, run: IO[bytes]) -> Iterator[KeyedEntry]:
        run.seek(0)
        for line in run:
            body, content_hash = unseal(line[:-1])
            yield key_of(self._kind, body), body, str(content_hash)


class _Manifest(msgspec.Struct):
    """What tells the manifest of a snapshot from other files of that name."""

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
    """Writes a snapshot of entries in any order and gives the header it has.

    The path's ending chooses the encoding. What was there before is replaced when all is written.
    """
    file = Path(path)
    encoding = encoding_of(file)
    given: dict[EntryKind, Iterable[Item]] = {
        GLOSSARY: glossary,
        USERS: users,
        GROUPS: groups,
        JOBS: jobs,
        OTHERS: others,
        DATASETS: datasets,
    }
    with ExitStack() as open_sorters:
        tally = ManifestBuilder()
        sorters = {kind: open_sorters.enter_context(EntrySorter(kind)) for kind in KINDS}
        for kind, sorter in sorters.items():
            _collect(file, kind, given[kind], sorter, tally)
        header = header_of_facts(facts, tally)
        bodies = {kind.plural: _in_order(file, kind, sorters[kind]) for kind in KINDS}
        with _replacing(file, is_folder=encoding.is_folder) as place:
            try:
                encoding.write(place, canonical(header), bodies)
            except MalformedJson as problem:
                raise SnapshotError(file, problem.path, f"{problem.problem}.") from None
    return header


def _collect(
    file: Path, kind: EntryKind, values: Iterable[Item], sorter: EntrySorter, tally: ManifestBuilder
) -> None:
    keyed = attrgetter(kind.key)
    for value in values:
        key = keyed(value)
        try:
            body = canonical(value)
        except UnicodeEncodeError:
            problem = f"The {kind.singular} {key!r} holds text that is not Unicode."
            raise SnapshotError(file, kind.plural, problem) from None
        except RecursionError:
            problem = f"The {kind.singular} '{key}' nests too deeply."
            raise SnapshotError(file, kind.plural, problem) from None
        if not isinstance(value, Dataset) or value.quality or value.cost:
            _check_numbers(file, kind, key, body)
        content_hash = digest(body)
        tally.add(kind, value, content_hash)
        sorter.add(key, body, content_hash)


def _check_numbers(file: Path, kind: EntryKind, key: str, body: bytes) -> None:
    # What is not known is left out, so that null can only be in what is carried along, in a text,
    # or in the place of a number that JSON has no word for.
    if b":null" not in body:
        return
    try:
        is_same = canonical(entry_of(kind, body)) == body
    except MalformedJson:
        is_same = False
    if not is_same:
        problem = f"The {kind.singular} '{key}' holds NaN or infinity in the place of a number."
        raise SnapshotError(file, kind.plural, problem)


def _in_order(file: Path, kind: EntryKind, sorter: EntrySorter) -> Iterator[KeyedEntry]:
    last = None
    for entry in sorter.in_order():
        key = entry[0]
        if key == last:
            raise DuplicateEntry(file, kind.plural, f"The {kind.singular} '{key}' was given twice.")
        last = key
        yield entry


@contextmanager
def _replacing(file: Path, *, is_folder: bool) -> Iterator[Path]:
    """A place beside the file, which takes the file's place once all is written."""
    if file.is_dir():
        _check_replaceable(file, is_folder=is_folder)
    file.parent.mkdir(parents=True, exist_ok=True)
    place = file.with_name(f".{file.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        yield place
        _settle(place)
        if file.is_dir():
            before = file.with_name(f".{file.name}.{uuid.uuid4().hex[:8]}.old")
            file.rename(before)
            place.rename(file)
            shutil.rmtree(before)
        else:
            os.replace(place, file)
    finally:
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)


def _settle(place: Path) -> None:
    """Makes sure that what was written is on the disk before it takes the place of anything."""
    for file in place.iterdir() if place.is_dir() else (place,):
        with file.open("rb") as written:
            os.fsync(written.fileno())


def _check_replaceable(folder: Path, *, is_folder: bool) -> None:
    """Refuses a folder that holds anything but a snapshot."""
    names = {each.name for each in folder.iterdir()} if is_folder else {""}
    if not names:
        return
    foreign = names - _files_of_snapshot(folder)
    if foreign:
        named = f", such as {min(foreign)}" if is_folder else ""
        problem = f"There is a folder of that name already, with other things{named}."
        raise SnapshotError(folder, "", problem)


def _files_of_snapshot(folder: Path) -> set[str]:
    """The files that a snapshot in Parquet is made of; none where the folder holds no snapshot."""
    try:
        manifest = decode_json((folder / MANIFEST).read_bytes(), _Manifest)
    except (OSError, MalformedJson):
        return set()
    return {MANIFEST, *(name for names in manifest.files.values() for name in names)}
