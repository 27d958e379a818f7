"""The schemas a table had, and since when.

Snapshots name the schema they were written with. What was changed between two snapshots, or after
the last one, only older metadata files know; those around a change are opened, as far as the log
of the current one still names them.
"""

from bisect import bisect_left

import msgspec

from lumos.formats.interface import UnreadableFile
from lumos.formats.tables.iceberg.current import METADATA, Current, number_of
from lumos.formats.tables.iceberg.metadata import (
    NO_SNAPSHOT,
    LogEntry,
    Metadata,
    Snapshot,
    moment,
    parsed,
)
from lumos.formats.tables.iceberg.schema import documents_equal, schema_of
from lumos.formats.tables.interface import Folder, Past

# Writers keep this many earlier metadata files by default.
_MOST_FILES = 100
_MOST_BYTES = 64 * 1024 * 1024


class LogFact(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of an earlier metadata file: its schema's id, or the schema where it has none.

    A file that cannot be read any longer is kept as one that says nothing.
    """

    schema: int | str | None
    snapshot: int | None = None
    sequence: int = 0


class _Fact(msgspec.Struct, frozen=True):
    """That the table had a schema at a time."""

    at: int
    schema: int | str
    snapshot: Snapshot | None
    # The snapshot was written then; otherwise nothing but the metadata was.
    wrote: bool
    is_first: bool
    # Of the last snapshot that there was; in the first version there are none.
    sequence: int
    # Where metadata files stand in the log.
    place: int = 0

    @property
    def order(self) -> tuple[int, ...]:
        """Clocks of writers differ, so that times only count where nothing else is told."""
        if self.sequence == 0:
            return (0, 0, self.at, self.place)
        return (self.sequence, 0 if self.wrote else 1, self.place)


class History:
    """Works out the past of one table; `seen` is what earlier readings learned of its log."""

    def __init__(self, folder: Folder, current: Current, seen: dict[str, LogFact]) -> None:
        self._folder = folder
        self._metadata: Metadata = current.metadata
        self._current = current
        self._schemas = self._metadata.schema_by_id
        self._snapshots = sorted(
            self._metadata.snapshots or (),
            key=lambda each: (each.sequence_number, each.timestamp_ms),
        )
        self._by_id = {each.snapshot_id: each for each in self._snapshots}
        names = {_name(entry) for entry in self._metadata.metadata_log or ()}
        self._now = self._as_of_now()
        self.seen = {name: fact for name, fact in seen.items() if name in names}

    def past(self, partitioned_by: frozenset[int], *, most_commits: int) -> tuple[Past, ...]:
        """The schemas in the order of their time, the current one last."""
        written = self._of_snapshots()[-most_commits:] if most_commits > 0 else []
        log = self._metadata.metadata_log or []
        recent = log[max(0, len(log) - min(most_commits, _MOST_FILES)) :]
        changes = self._changes(written, self._around_changes(written, recent))
        if self._unseen(changes):
            changes = self._changes(written, recent)
        if not self._is_whole(log):
            self._insert_unseen(changes)
        return tuple(self._past(change, partitioned_by) for change in changes)

    def _changes(self, written: list[_Fact], log: list[LogEntry]) -> list["_Change"]:
        self._open(log)
        facts = sorted([*written, *self._of_log(log)], key=lambda fact: fact.order)
        changes: list[_Change] = []
        latest = 0
        for fact in (*facts, self._now):
            in_order, latest = fact.at >= latest, max(fact.at, latest)
            if not changes:
                changes.append(_Change(fact, exact=fact.is_first))
            elif fact.schema != changes[-1].fact.schema:
                fact = msgspec.structs.replace(fact, at=latest)
                changes.append(_Change(fact, exact=in_order))
        return changes

    def _of_snapshots(self) -> list[_Fact]:
        return [
            _Fact(
                at=each.timestamp_ms,
                schema=each.schema_id,
                snapshot=each,
                wrote=True,
                is_first=each.parent_snapshot_id is None,
                sequence=each.sequence_number,
            )
            for each in self._snapshots
            if each.schema_id is not None and each.schema_id in self._schemas
        ]

    def _around_changes(self, written: list[_Fact], log: list[LogEntry]) -> list[LogEntry]:
        """The files that are not between two snapshots of one schema."""
        by_time = sorted(written, key=lambda fact: fact.at)
        times = [fact.at for fact in by_time]
        found = []
        for entry in log:
            place = bisect_left(times, entry.timestamp_ms)
            following = by_time[place] if place < len(by_time) else self._now
            if place == 0 or by_time[place - 1].schema != following.schema:
                found.append(entry)
        return found

    def _of_log(self, log: list[LogEntry]) -> list[_Fact]:
        facts = []
        for place, entry in enumerate(log):
            fact = self.seen.get(_name(entry))
            if fact is not None and fact.schema is not None:
                facts.append(
                    _Fact(
                        at=entry.timestamp_ms,
                        schema=fact.schema,
                        snapshot=self._by_id.get(fact.snapshot or -1),
                        wrote=False,
                        is_first=_is_first(entry),
                        sequence=fact.sequence,
                        place=place,
                    )
                )
        return facts

    def _open(self, log: list[LogEntry]) -> None:
        wanted: list[str] = []
        left = _MOST_BYTES
        for entry in reversed(log):
            # By its name alone: a table that moved has its old files beside the new ones.
            name = _name(entry)
            size = self._current.sizes.get(name)
            if name in self.seen or size is None:
                continue
            left -= size
            if left < 0:
                break
            wanted.append(name)
        contents = self._folder.read_many([f"{METADATA}/{name}" for name in wanted])
        for name, content in zip(wanted, contents, strict=True):
            if isinstance(content, bytes):
                self.seen[name] = self._learned(name, content)
            elif not isinstance(content, FileNotFoundError):
                raise content

    def _learned(self, name: str, content: bytes) -> LogFact:
        try:
            metadata = parsed(name, content)
            document = metadata.current_schema
        except UnreadableFile:
            # It counts no more, so that its damage is nobody's trouble.
            return LogFact(None)
        id = metadata.current_snapshot_id
        snapshot = None if id in (None, -1) else id
        for known, other in self._schemas.items():
            if documents_equal(document, other):
                return LogFact(known, snapshot, metadata.last_sequence_number)
        text = msgspec.json.encode(document).decode()
        return LogFact(text, snapshot, metadata.last_sequence_number)

    def _as_of_now(self) -> _Fact:
        metadata = self._metadata
        id = metadata.current_schema_id
        document = metadata.current_schema
        known = id is not None and id in self._schemas
        return _Fact(
            at=metadata.last_updated_ms,
            schema=id if known and id is not None else msgspec.json.encode(document).decode(),
            snapshot=metadata.current_snapshot,
            wrote=False,
            is_first=not metadata.metadata_log and not self._snapshots,
            sequence=metadata.last_sequence_number,
        )

    def _unseen(self, changes: list["_Change"]) -> list[int]:
        """Schemas that no change shows, or none before that to one with a higher number."""
        seen: set[int] = set()
        for schema in (change.fact.schema for change in changes):
            if isinstance(schema, int) and schema >= max(seen, default=0):
                seen.add(schema)
        return sorted(self._schemas.keys() - seen)

    def _is_whole(self, log: list[LogEntry]) -> bool:
        """Whether every metadata file since the first one was seen, so that nothing is missed."""
        return bool(log) and _is_first(log[0]) and all(_name(entry) in self.seen for entry in log)

    def _insert_unseen(self, changes: list["_Change"]) -> None:
        """Schemas that no snapshot and no file shows: their numbers tell between which they lay."""
        for id in self._unseen(changes):
            later = (
                place
                for place, change in enumerate(changes)
                if isinstance(change.fact.schema, int) and change.fact.schema > id
            )
            place = next(later, len(changes) - 1)
            fact = msgspec.structs.replace(changes[place].fact, schema=id, wrote=False)
            changes.insert(place, _Change(fact, exact=False))

    def _past(self, change: "_Change", partitioned_by: frozenset[int]) -> Past:
        fact = change.fact
        if isinstance(fact.schema, int):
            document = self._schemas[fact.schema]
        else:
            document = msgspec.json.decode(fact.schema)
        return Past(
            schema=schema_of(document, partitioned_by).schema,
            at=moment(fact.at),
            version=str(fact.snapshot.snapshot_id) if fact.snapshot else NO_SNAPSHOT,
            operation=fact.snapshot.operation if fact.snapshot and fact.wrote else None,
            exact_time=change.exact,
        )


class _Change(msgspec.Struct, frozen=True):
    """The first sign of a schema; its time is exact unless an earlier sign may be lost."""

    fact: _Fact
    exact: bool


def _is_first(entry: LogEntry) -> bool:
    """Whether it is the file that made the table; the numbers of those named `v1` begin with 1."""
    name = _name(entry)
    return number_of(name) == (1 if name.startswith("v") else 0)


def _name(entry: LogEntry) -> str:
    return entry.metadata_file.rpartition("/")[2]
