"""The history of a table's schemas.

Each snapshot refers to the schema that it was written with. Schema changes between two snapshots,
or after the last snapshot, are only recorded in older metadata files. The files that were current
around a change are opened, if the metadata log of the current file still lists them.
"""

from bisect import bisect_left

import msgspec
from msgspec.structs import replace

from lumos.formats.interface import UnreadableFile
from lumos.formats.tables.iceberg.metadata import (
    METADATA_FOLDER,
    NO_SNAPSHOT,
    CurrentMetadata,
    IcebergMetadata,
    IcebergSnapshot,
    MetadataLogEntry,
    metadata_version,
    parse_metadata,
    time_from_ms,
)
from lumos.formats.tables.iceberg.schema import documents_equal, iceberg_schema
from lumos.formats.tables.interface import TableFolder, TableSchemaVersion

# By default, writers do not keep more earlier metadata files than this.
_MAX_FILES = 100
_MAX_BYTES = 64 * 1024 * 1024


class EarlierMetadata(msgspec.Struct, frozen=True, array_like=True):
    """What is needed of an earlier metadata file.

    `schema` is the id of its schema, or the schema's JSON if it has no id; None if the file is
    unreadable.
    """

    schema: int | str | None
    snapshot: int | None = None
    sequence: int = 0


class _Evidence(msgspec.Struct, frozen=True):
    """Evidence that the table had a schema at a time: a snapshot, or a metadata file."""

    at: int
    schema: int | str
    snapshot: IcebergSnapshot | None
    is_snapshot: bool
    # Whether the table was created with it.
    is_first: bool
    # The sequence number of the last snapshot; 0 in version 1.
    sequence: int
    # The position in the metadata log.
    position: int = 0

    @property
    def order(self) -> tuple[int, ...]:
        """The sort key.

        Times are only compared if there are no sequence numbers, because clocks of writers differ.
        """
        if self.sequence == 0:
            return (0, 0, self.at, self.position)
        return (self.sequence, 0 if self.is_snapshot else 1, self.position)


class IcebergHistory:
    """Finds the schemas of a table; `opened` contains the metadata files that were read before."""

    def __init__(
        self, folder: TableFolder, current: CurrentMetadata, opened: dict[str, EarlierMetadata]
    ) -> None:
        self._folder = folder
        self._metadata: IcebergMetadata = current.metadata
        self._current = current
        self._schemas = self._metadata.schema_by_id
        self._snapshots = sorted(
            self._metadata.snapshots or (),
            key=lambda each: (each.sequence_number, each.timestamp_ms),
        )
        self._by_id = {each.snapshot_id: each for each in self._snapshots}
        names = {_name(entry) for entry in self._metadata.metadata_log or ()}
        self._latest_evidence = self._current_evidence()
        self.opened = {name: earlier for name, earlier in opened.items() if name in names}

    def schema_versions(
        self, partitioned_by: frozenset[int], *, max_commits: int
    ) -> tuple[TableSchemaVersion, ...]:
        """The schemas in chronological order, the current one last."""
        snapshot_evidence = self._snapshot_evidence()[-max_commits:] if max_commits > 0 else []
        log = self._metadata.metadata_log or []
        recent = log[max(0, len(log) - min(max_commits, _MAX_FILES)) :]
        changes = self._changes(
            snapshot_evidence, self._files_near_changes(snapshot_evidence, recent)
        )
        if self._schemas_without_change(changes):
            changes = self._changes(snapshot_evidence, recent)
        if not self._is_complete(log):
            self._insert_missing(changes)
        return tuple(self._to_schema_version(change, partitioned_by) for change in changes)

    def _changes(
        self, snapshot_evidence: list[_Evidence], log: list[MetadataLogEntry]
    ) -> list["_Change"]:
        self._open(log)
        by_order = sorted(
            [*snapshot_evidence, *self._log_evidence(log)], key=lambda each: each.order
        )
        changes: list[_Change] = []
        latest = 0
        for evidence in (*by_order, self._latest_evidence):
            in_order, latest = evidence.at >= latest, max(evidence.at, latest)
            if not changes:
                changes.append(_Change(evidence, exact=evidence.is_first))
            elif evidence.schema != changes[-1].evidence.schema:
                evidence = replace(evidence, at=latest)
                changes.append(_Change(evidence, exact=in_order))
        return changes

    def _snapshot_evidence(self) -> list[_Evidence]:
        return [
            _Evidence(
                at=each.timestamp_ms,
                schema=each.schema_id,
                snapshot=each,
                is_snapshot=True,
                is_first=each.parent_snapshot_id is None,
                sequence=each.sequence_number,
            )
            for each in self._snapshots
            if each.schema_id is not None and each.schema_id in self._schemas
        ]

    def _files_near_changes(
        self, snapshot_evidence: list[_Evidence], log: list[MetadataLogEntry]
    ) -> list[MetadataLogEntry]:
        """The metadata files next to a schema change.

        These are all files except those between two snapshots that have the same schema.
        """
        by_time = sorted(snapshot_evidence, key=lambda each: each.at)
        times = [each.at for each in by_time]
        found = []
        for entry in log:
            position = bisect_left(times, entry.timestamp_ms)
            following = by_time[position] if position < len(by_time) else self._latest_evidence
            if position == 0 or by_time[position - 1].schema != following.schema:
                found.append(entry)
        return found

    def _log_evidence(self, log: list[MetadataLogEntry]) -> list[_Evidence]:
        found = []
        for position, entry in enumerate(log):
            earlier = self.opened.get(_name(entry))
            if earlier is not None and earlier.schema is not None:
                found.append(
                    _Evidence(
                        at=entry.timestamp_ms,
                        schema=earlier.schema,
                        snapshot=self._by_id.get(earlier.snapshot or -1),
                        is_snapshot=False,
                        is_first=_is_first(entry),
                        sequence=earlier.sequence,
                        position=position,
                    )
                )
        return found

    def _open(self, log: list[MetadataLogEntry]) -> None:
        to_open: list[str] = []
        remaining = _MAX_BYTES
        for entry in reversed(log):
            # Only use the name: if the table was moved, the recorded location is outdated.
            name = _name(entry)
            size = self._current.sizes.get(name)
            if name in self.opened or size is None:
                continue
            remaining -= size
            if remaining < 0:
                break
            to_open.append(name)
        contents = self._folder.read_many([f"{METADATA_FOLDER}/{name}" for name in to_open])
        for name, content in zip(to_open, contents, strict=True):
            if isinstance(content, bytes):
                self.opened[name] = self._earlier_metadata(name, content)
            elif not isinstance(content, FileNotFoundError):
                raise content

    def _earlier_metadata(self, name: str, content: bytes) -> EarlierMetadata:
        try:
            metadata = parse_metadata(name, content)
            document = metadata.current_schema
        except UnreadableFile:
            # Damaged earlier files are ignored.
            return EarlierMetadata(None)
        id = metadata.current_snapshot_id
        snapshot = None if id in (None, -1) else id
        for known, other in self._schemas.items():
            if documents_equal(document, other):
                return EarlierMetadata(known, snapshot, metadata.last_sequence_number)
        text = msgspec.json.encode(document).decode()
        return EarlierMetadata(text, snapshot, metadata.last_sequence_number)

    def _current_evidence(self) -> _Evidence:
        metadata = self._metadata
        id = metadata.current_schema_id
        document = metadata.current_schema
        known = id is not None and id in self._schemas
        return _Evidence(
            at=metadata.last_updated_ms,
            schema=id if known and id is not None else msgspec.json.encode(document).decode(),
            snapshot=metadata.current_snapshot,
            is_snapshot=False,
            is_first=not metadata.metadata_log and not self._snapshots,
            sequence=metadata.last_sequence_number,
        )

    def _schemas_without_change(self, changes: list["_Change"]) -> list[int]:
        """The ids of schemas that no change introduces; returning to a lower id does not count."""
        introduced: set[int] = set()
        for schema in (change.evidence.schema for change in changes):
            if isinstance(schema, int) and schema >= max(introduced, default=0):
                introduced.add(schema)
        return sorted(self._schemas.keys() - introduced)

    def _is_complete(self, log: list[MetadataLogEntry]) -> bool:
        """Whether every metadata file since the first one was read."""
        return bool(log) and _is_first(log[0]) and all(_name(entry) in self.opened for entry in log)

    def _insert_missing(self, changes: list["_Change"]) -> None:
        """Insert the schemas without evidence before those with higher ids."""
        for id in self._schemas_without_change(changes):
            later = (
                position
                for position, change in enumerate(changes)
                if isinstance(change.evidence.schema, int) and change.evidence.schema > id
            )
            position = next(later, len(changes) - 1)
            evidence = replace(changes[position].evidence, schema=id, is_snapshot=False)
            changes.insert(position, _Change(evidence, exact=False))

    def _to_schema_version(
        self, change: "_Change", partitioned_by: frozenset[int]
    ) -> TableSchemaVersion:
        evidence = change.evidence
        if isinstance(evidence.schema, int):
            document = self._schemas[evidence.schema]
        else:
            document = msgspec.json.decode(evidence.schema)
        return TableSchemaVersion(
            schema=iceberg_schema(document, partitioned_by).schema,
            at=time_from_ms(evidence.at),
            version=str(evidence.snapshot.snapshot_id) if evidence.snapshot else NO_SNAPSHOT,
            operation=evidence.snapshot.operation
            if evidence.snapshot and evidence.is_snapshot
            else None,
            exact_time=change.exact,
        )


class _Change(msgspec.Struct, frozen=True):
    """A change to a schema, with the first evidence of it.

    Its time is only `exact` if no earlier evidence of the schema can be missing.
    """

    evidence: _Evidence
    exact: bool


def _is_first(entry: MetadataLogEntry) -> bool:
    """Whether the table was created with this file: names such as `v1` start at 1, others at 0."""
    name = _name(entry)
    return metadata_version(name) == (1 if name.startswith("v") else 0)


def _name(entry: MetadataLogEntry) -> str:
    return entry.metadata_file.rpartition("/")[2]
