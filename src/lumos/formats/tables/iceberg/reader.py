"""Reads one Iceberg table."""

import hashlib
from collections.abc import Iterator
from typing import ClassVar, Final

import msgspec

from lumos.formats.interface import Remark
from lumos.formats.tables.iceberg import current as metadata_files
from lumos.formats.tables.iceberg.apart import location_elsewhere, metadata_path
from lumos.formats.tables.iceberg.claims import claimed
from lumos.formats.tables.iceberg.current import METADATA, Current
from lumos.formats.tables.iceberg.deletes import Counts, counted, live_files
from lumos.formats.tables.iceberg.features import features
from lumos.formats.tables.iceberg.history import History, LogFact
from lumos.formats.tables.iceberg.manifests import Manifests, OutOfReach, Part
from lumos.formats.tables.iceberg.metadata import NO_SNAPSHOT, Metadata, Snapshot, moment
from lumos.formats.tables.iceberg.properties import properties_of
from lumos.formats.tables.iceberg.schema import schema_of
from lumos.formats.tables.iceberg.words import identity_columns, partitioned_by
from lumos.formats.tables.interface import (
    Folder,
    Kind,
    LiveFile,
    TableFacts,
    TableReader,
    remarks_on,
)

# Counted up when what is kept means something else; older memories are passed over then.
_LAYOUT: Final = 2


class _Memory(msgspec.Struct, frozen=True, array_like=True):
    """What a reading leaves for the next one."""

    layout: int
    location: str
    parts: tuple[Part, ...]
    log: dict[str, LogFact]
    # The metadata file that was the current one.
    current: str = ""


_MEMORY: Final = msgspec.msgpack.Decoder(_Memory)


class IcebergReader(TableReader):
    kind: ClassVar[Kind] = "iceberg"
    title: ClassVar[str] = "Iceberg"

    def signature(self, folder: Folder) -> str:
        return metadata_files.signature(folder)

    def read(
        self, folder: Folder, memory: bytes | None, *, most_commits: int
    ) -> tuple[TableFacts, bytes]:
        earlier = _remembered(memory)
        current = metadata_files.current(folder, seen=earlier.current)
        metadata = current.metadata
        location = _believed_root(metadata)
        # Of a table that moved, the paths that were found inside it mean nothing any longer.
        kept = earlier if earlier.location == location else _Memory(_LAYOUT, location, (), {})
        snapshot = metadata.current_snapshot
        parts, remarks = _live_parts(folder, metadata, snapshot, kept)
        counts = counted(parts) if not remarks else _as_summed_up(snapshot)
        spec = metadata.current_spec
        schema = schema_of(metadata.current_schema, identity_columns(spec))
        history = History(folder, current, kept.log)
        past = history.past(identity_columns(spec), most_commits=most_commits)
        found = features(metadata, schema, counts)
        properties, description = properties_of(metadata, schema, counts)
        facts = TableFacts(
            kind=self.kind,
            version=NO_SNAPSHOT if snapshot is None else str(snapshot.snapshot_id),
            at=moment(_since(metadata, snapshot)),
            operation=None if snapshot is None else snapshot.operation,
            schema=schema.schema,
            partition_by=partitioned_by(spec, schema.names),
            files=counts.files,
            bytes=counts.bytes,
            rows=counts.live_rows,
            rows_exact=counts.rows_exact and not remarks,
            properties=properties,
            description=description,
            identity=metadata.table_uuid or "",
            past=past,
            features=found,
            remarks=(*current.remarks, *remarks, *remarks_on(found)),
            claims=claimed(parts, metadata, folder.root),
            elsewhere=location_elsewhere(folder, metadata),
            content=_content(current, snapshot),
        )
        left = _Memory(_LAYOUT, location, tuple(parts), history.seen, current.name)
        return facts, msgspec.msgpack.encode(left)

    def live(self, memory: bytes) -> Iterator[LiveFile]:
        return live_files(_MEMORY.decode(memory).parts)


def _remembered(memory: bytes | None) -> _Memory:
    nothing = _Memory(_LAYOUT, "", (), {})
    try:
        kept = _MEMORY.decode(memory or b"")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return nothing
    return kept if kept.layout == _LAYOUT else nothing


def _believed_root(metadata: Metadata) -> str:
    """Where the table believes the folder to lie that holds its metadata."""
    path = metadata_path(metadata)
    return path.removesuffix(f"/{METADATA}") if path.endswith(f"/{METADATA}") else metadata.location


def _live_parts(
    folder: Folder, metadata: Metadata, snapshot: Snapshot | None, kept: _Memory
) -> tuple[list[Part], tuple[Remark, ...]]:
    """What is live; where manifests are out of reach, nothing but a remark."""
    if snapshot is None:
        return [], ()
    manifests = Manifests(folder, kept.location, metadata.specs)
    try:
        listed = manifests.of(snapshot)
        known = {part.path: part for part in kept.parts}
        return list(manifests.parts(listed, known)), ()
    except OutOfReach as problem:
        return [], (
            Remark(
                "outside_data",
                f"Its files are told as its writer summed them up, since {problem}.",
            ),
        )


def _as_summed_up(snapshot: Snapshot | None) -> Counts:
    if snapshot is None:
        return Counts()
    return Counts(
        files=snapshot.total("total-data-files") or 0,
        bytes=snapshot.total("total-files-size") or 0,
        rows=snapshot.total("total-records") or 0,
        deleted_rows=snapshot.total("total-position-deletes") or 0,
    )


def _since(metadata: Metadata, snapshot: Snapshot | None) -> int:
    """When the snapshot became the current one; one that was rolled back to is older itself."""
    if snapshot is None:
        return metadata.last_updated_ms
    for last in (metadata.snapshot_log or [])[-1:]:
        if last.snapshot_id == snapshot.snapshot_id:
            return last.timestamp_ms
    return snapshot.timestamp_ms


def _content(current: Current, snapshot: Snapshot | None) -> str:
    told = (current.metadata.table_uuid, None if snapshot is None else snapshot.snapshot_id)
    return hashlib.blake2b(repr(told).encode(), digest_size=16).hexdigest()
