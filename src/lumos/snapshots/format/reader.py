"""Opens snapshots, and reads their entries one by one."""

from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from lumos.model.catalog import CatalogEntity, CatalogEntry, GlossaryTerm, Group, Job, User
from lumos.snapshots.format.codec import (
    HashedEntry,
    MalformedJson,
    canonical,
    decode_entry,
    decode_header,
    has_valid_hash,
    key_of,
    refuse_duplicate_keys,
    split_hash,
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
    """An entry before it is decoded.

    `body` is its JSON, upgraded to the current format; `stored` its JSON and hash as in the file.
    """

    position: int
    key: str
    body: bytes
    stored: HashedEntry


class OpenSnapshot:
    """An open snapshot; entries are ordered by name or URN.

    An error in an entry is raised, with the path of the entry, when the entry is read.
    """

    def __init__(self, file: Path, container: SnapshotContainer) -> None:
        self.file = file
        self.container = container
        try:
            self.header: SnapshotHeader = decode_header(container.header)
        except MalformedJson as problem:
            path = container.header_path(problem.path.removeprefix("."))
            raise self.format_error(path, problem) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Do nothing, because no file stays open between reads."""

    def datasets(self) -> Iterator[CatalogEntry]:
        return self.entries(DATASETS)

    def terms(self) -> Iterator[GlossaryTerm]:
        return self.entries(GLOSSARY)

    def users(self) -> Iterator[User]:
        return self.entries(USERS)

    def groups(self) -> Iterator[Group]:
        return self.entries(GROUPS)

    def jobs(self) -> Iterator[Job]:
        return self.entries(JOBS)

    def others(self) -> Iterator[CatalogEntity]:
        """All entries of kinds that Lumos does not model."""
        return self.entries(OTHERS)

    def entries(self, kind: EntryKind) -> Iterator[Any]:
        """Yield all entries of a kind; checks their hashes and their number."""
        for record in self.records(kind):
            yield self.entry(kind, record)

    def entry(self, kind: EntryKind, record: EntryRecord) -> Any:
        """Decode a record and check its hash."""
        entry_path = self.container.path_of(kind, record.position)
        try:
            value = decode_entry(kind, record.body)
            is_unchanged = has_valid_hash(
                record.stored, lambda: self.container.downgrade_entry(kind, canonical(value))
            )
        except MalformedJson as problem:
            raise self.format_error(f"{entry_path}{problem.path}", problem) from None
        if not is_unchanged:
            raise EditedSnapshot(
                self.file, entry_path, f"'{record.key}' does not match its content hash."
            )
        return value

    def records(self, kind: EntryKind) -> Iterator[EntryRecord]:
        """Yield all records of a kind in order; raises errors for duplicates and wrong counts."""
        stored = self.container.entries(kind)
        count = 0
        in_file_order = (self._record(kind, entry) for entry in stored)
        records = (
            in_file_order
            if self.container.streamed
            else iter(sorted(in_file_order, key=attrgetter("key")))
        )
        last_key = None
        for record in records:
            if last_key is not None and record.key <= last_key:
                entry_path = self.container.path_of(kind, record.position)
                raise order_error(self.file, entry_path, kind, record.key, last_key)
            last_key = record.key
            count += 1
            yield record
        self.check_count(kind, count)

    def check_count(self, kind: EntryKind, found: int) -> None:
        """Raise an error if the number of entries differs from the header."""
        counts = self.header.counts
        expected = getattr(counts, kind.plural) if counts else found
        path = self.container.header_path(f"counts.{kind.plural}")
        text = f"Expected {expected} {kind.plural}, found {found}"
        if found < expected:
            raise TruncatedSnapshot(self.file, path, f"{text}: its end is missing.")
        # The counts in legacy layouts are incomplete.
        if found > expected and self.header.hashes is not None:
            raise EditedSnapshot(self.file, path, f"{text}: some were added.")

    def check_header(self) -> None:
        """Raise an error if the header does not match its hash."""
        hashes = self.header.hashes
        is_legacy = self.container.is_legacy
        if hashes is not None and not is_legacy and facts_hash(self.header) != hashes.header:
            text = "The header does not match this hash: it was edited."
            raise EditedSnapshot(self.file, "hashes.header", text)

    def _record(self, kind: EntryKind, stored: StoredJson | SnapshotError) -> EntryRecord:
        if isinstance(stored, SnapshotError):
            raise stored
        try:
            hashed = split_stored(stored)
            body = self.container.upgrade_entry(kind, hashed.body)
            return EntryRecord(stored.position, key_of(kind, body), body, hashed)
        except MalformedJson as problem:
            entry_path = self.container.path_of(kind, stored.position)
            raise self.format_error(f"{entry_path}{problem.path}", problem) from None

    def format_error(self, path: str, problem: MalformedJson) -> SnapshotError:
        """The error for JSON that does not have the expected format."""
        error = TruncatedSnapshot if problem.is_truncated else SnapshotError
        return error(self.file, path, f"{problem.problem}.")


def open_snapshot(path: str | Path) -> OpenSnapshot:
    """Open a snapshot in any encoding and layout; use it as a context manager."""
    file = Path(path)
    return OpenSnapshot(file, open_container(file))


def open_container(file: Path) -> SnapshotContainer:
    """Open a file or folder; its content is upgraded to the current version of the format."""
    encoding = encoding_of(file)
    try:
        container = encoding.open(file)
        refuse_duplicate_keys(container.header)
    except MalformedJson as problem:
        raise SnapshotError(file, problem.path.removeprefix("."), f"{problem.problem}.") from None
    except FileNotFoundError:
        raise SnapshotError(file, "", "There is no such snapshot.") from None
    except OSError as error:
        raise SnapshotError(file, "", f"It cannot be read: {error.strerror}.") from None
    return upgrade_container(file, container)


def split_stored(stored: StoredJson) -> HashedEntry:
    """Split a stored entry into its JSON and its hash."""
    _, body, content_hash = stored
    return split_hash(body) if content_hash is None else HashedEntry(body, content_hash)


def order_error(
    file: Path, entry_path: str, kind: EntryKind, key: str, previous_key: str
) -> SnapshotError:
    """The error for an entry that is a duplicate, or out of order."""
    if key == previous_key:
        return DuplicateEntry(file, entry_path, f"The {kind.singular} '{key}' is duplicated.")
    text = f"'{key}' must not follow '{previous_key}': entries are ordered by {kind.key}."
    return EntryOutOfOrder(file, entry_path, text)
