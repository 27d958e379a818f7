"""Opens snapshots and gives their entries one by one."""

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from lumos.model.catalog import CatalogEntity, CatalogEntry, GlossaryTerm, Group, Job, User
from lumos.snapshots.format.codec import (
    MalformedJson,
    SealedEntry,
    canonical,
    entry_of,
    header_of,
    key_of,
    matches,
    refuse_repeated,
    unseal,
)
from lumos.snapshots.format.document import (
    DATASETS,
    GLOSSARY,
    GROUPS,
    JOBS,
    OTHERS,
    USERS,
    EntryKind,
    SnapshotHeader,
)
from lumos.snapshots.format.encodings import SnapshotContainer, StoredJson, encoding_of
from lumos.snapshots.format.errors import (
    DuplicateEntry,
    EditedSnapshot,
    EntryOutOfOrder,
    SnapshotError,
    TruncatedSnapshot,
)
from lumos.snapshots.format.manifest import facts_hash
from lumos.snapshots.format.versions import upgrade_container


class EntryRecord(NamedTuple):
    """An entry before it is decoded: its place and key, its JSON, and what its file has of it."""

    position: int
    key: str
    body: bytes
    sealed: SealedEntry


class OpenSnapshot:
    """An opened snapshot; its entries come in the order of their names or URNs.

    Whatever is wrong with an entry is raised when it is reached, with the path to it.
    """

    def __init__(self, file: Path, container: SnapshotContainer) -> None:
        self.file = file
        self.container = container
        try:
            self.header: SnapshotHeader = header_of(container.header)
        except MalformedJson as problem:
            place = container.header_place(problem.path.removeprefix("."))
            raise self.wrong(place, problem) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Nothing stays open between reads; the block says where the snapshot is in use."""

    def datasets(self) -> Iterator[CatalogEntry]:
        """All datasets."""
        return self.entries(DATASETS)

    def terms(self) -> Iterator[GlossaryTerm]:
        """All terms of the glossary."""
        return self.entries(GLOSSARY)

    def users(self) -> Iterator[User]:
        """All users."""
        return self.entries(USERS)

    def groups(self) -> Iterator[Group]:
        """All groups."""
        return self.entries(GROUPS)

    def jobs(self) -> Iterator[Job]:
        """All jobs."""
        return self.entries(JOBS)

    def others(self) -> Iterator[CatalogEntity]:
        """All that Lumos has no kind for."""
        return self.entries(OTHERS)

    def entries(self, kind: EntryKind) -> Iterator[Any]:
        """All entries of a kind, each held against its hash, and all against their count."""
        for record in self.records(kind):
            yield self.entry(kind, record)

    def entry(self, kind: EntryKind, record: EntryRecord) -> Any:
        """The entry of a record, which must be what its hash says."""
        place = self.container.place(kind, record.position)
        try:
            value = entry_of(kind, record.body)
            is_same = matches(
                record.sealed, lambda: self.container.as_written(kind, canonical(value))
            )
        except MalformedJson as problem:
            raise self.wrong(f"{place}{problem.path}", problem) from None
        if not is_same:
            raise EditedSnapshot(
                self.file, place, f"'{record.key}' is not what its content hash says."
            )
        return value

    def records(self, kind: EntryKind) -> Iterator[EntryRecord]:
        """All entries of a kind, in their order, none of them twice, and as many as are told."""
        stored = self.container.entries(kind)
        found = 0
        taken = (self._record(kind, each) for each in stored)
        records = taken if self.container.streamed else iter(sorted(taken, key=_by_key))
        last = None
        for record in records:
            if last is not None and record.key <= last:
                place = self.container.place(kind, record.position)
                raise order_error(self.file, place, kind, record.key, last)
            last = record.key
            found += 1
            yield record
        self.check_count(kind, found)

    def check_count(self, kind: EntryKind, found: int) -> None:
        """Fails where there are fewer or more entries of a kind than the header says."""
        counts = self.header.counts
        wanted = getattr(counts, kind.plural) if counts else found
        place = self.container.header_place(f"counts.{kind.plural}")
        text = f"It should have {wanted} {kind.plural} and has {found}"
        if found < wanted:
            raise TruncatedSnapshot(self.file, place, f"{text}: its end is missing.")
        # Earlier layouts did not count everything.
        if found > wanted and self.header.hashes is not None:
            raise EditedSnapshot(self.file, place, f"{text}: some were added.")

    def check_header(self) -> None:
        """Fails where the facts of the header are not what its hash says."""
        told = self.header.hashes
        is_legacy = self.container.is_legacy
        if told is not None and not is_legacy and facts_hash(self.header) != told.header:
            text = "The facts of the header are not what this hash says: something was edited."
            raise EditedSnapshot(self.file, "hashes.header", text)

    def _record(self, kind: EntryKind, stored: StoredJson | SnapshotError) -> EntryRecord:
        if isinstance(stored, SnapshotError):
            raise stored
        try:
            sealed = unseal_stored(stored)
            body = self.container.present(kind, sealed.body)
            return EntryRecord(stored.position, key_of(kind, body), body, sealed)
        except MalformedJson as problem:
            place = self.container.place(kind, stored.position)
            raise self.wrong(f"{place}{problem.path}", problem) from None

    def wrong(self, path: str, problem: MalformedJson) -> SnapshotError:
        """The error for JSON that is not what the format asks for."""
        error = TruncatedSnapshot if problem.cut_off else SnapshotError
        return error(self.file, path, f"{problem.problem}.")


def open_snapshot(path: str | Path) -> OpenSnapshot:
    """Opens a snapshot in any of the encodings and layouts; use it as a context manager."""
    file = Path(path)
    return OpenSnapshot(file, open_container(file))


def open_container(file: Path) -> SnapshotContainer:
    """Opens a file or folder, brought to the present version of the format."""
    encoding = encoding_of(file)
    try:
        container = encoding.open(file)
        refuse_repeated(container.header)
    except MalformedJson as problem:
        raise SnapshotError(file, problem.path.removeprefix("."), f"{problem.problem}.") from None
    except FileNotFoundError:
        raise SnapshotError(file, "", "There is no such snapshot.") from None
    except OSError as error:
        raise SnapshotError(file, "", f"It cannot be read: {error.strerror}.") from None
    return upgrade_container(file, container)


def unseal_stored(stored: StoredJson) -> SealedEntry:
    """An entry as it was stored, and its hash, apart from each other."""
    _, body, content_hash = stored
    return unseal(body) if content_hash is None else SealedEntry(body, content_hash)


def order_error(file: Path, place: str, kind: EntryKind, key: str, last: str) -> SnapshotError:
    """The error for an entry that does not come after the one before it."""
    if key == last:
        return DuplicateEntry(file, place, f"The {kind.singular} '{key}' is duplicated.")
    text = f"'{key}' must not follow '{last}': entries are ordered by their {kind.key}s."
    return EntryOutOfOrder(file, place, text)


def _by_key(record: EntryRecord) -> str:
    return record.key
