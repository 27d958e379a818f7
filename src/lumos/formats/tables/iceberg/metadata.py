"""Iceberg's metadata file: what of it is used here.

What stands there by its own name is a struct; schemas and types stay JSON values, since they are
read whatever they hold.
"""

from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from lumos.formats.compression import Damaged, compression_of
from lumos.formats.interface import UnreadableFile

# The largest ones known hold some ten thousand snapshots and are a tenth as long.
LONGEST: Final = 128 * 1024 * 1024
NO_SNAPSHOT: Final = "none"


class _Part(msgspec.Struct, frozen=True, rename="kebab", gc=False):
    """A JSON object; what else stands in it is passed over."""


class Snapshot(_Part, frozen=True):
    """One state of the table's data."""

    snapshot_id: int
    timestamp_ms: int = 0
    parent_snapshot_id: int | None = None
    sequence_number: int = 0
    # A list of manifests; the first version could name them right here.
    manifest_list: str | None = None
    manifests: list[str] | None = None
    summary: dict[str, Any] | None = None
    schema_id: int | None = None
    key_id: str | None = None

    @property
    def operation(self) -> str | None:
        """What brought it about: append, overwrite, delete, replace."""
        found = (self.summary or {}).get("operation")
        return found if isinstance(found, str) else None

    def total(self, name: str) -> int | None:
        """A number that its writer counted."""
        text = str((self.summary or {}).get(name, ""))
        return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


class SpecField(_Part, frozen=True):
    """One value that rows are partitioned or sorted by."""

    transform: str = "identity"
    name: str = ""
    source_id: int | None = None
    source_ids: list[int] | None = None
    field_id: int | None = None
    direction: str | None = None
    null_order: str | None = None

    @property
    def sources(self) -> list[int]:
        """The ids of the columns it is made of."""
        if self.source_ids:
            return self.source_ids
        return [] if self.source_id is None else [self.source_id]


class Spec(_Part, frozen=True):
    """How rows are partitioned, or sorted."""

    spec_id: int = 0
    order_id: int = 0
    fields: list[SpecField] = []


class Reference(_Part, frozen=True):
    """A branch or tag."""

    snapshot_id: int
    type: str = "branch"


class LogEntry(_Part, frozen=True):
    """An earlier metadata file, and when it was the current one."""

    metadata_file: str
    timestamp_ms: int = 0


class SnapshotEntry(_Part, frozen=True):
    """A snapshot that became the current one, and when."""

    snapshot_id: int
    timestamp_ms: int = 0


class Metadata(_Part, frozen=True):
    """A metadata file."""

    format_version: int
    table_uuid: str | None = None
    view_uuid: str | None = None
    location: str = ""
    last_updated_ms: int = 0
    last_sequence_number: int = 0
    # Of the first version, which had one of each.
    schema: dict[str, Any] | None = None
    partition_spec: list[SpecField] | None = None
    schemas: list[dict[str, Any]] | None = None
    current_schema_id: int | None = None
    partition_specs: list[Spec] | None = None
    default_spec_id: int = 0
    sort_orders: list[Spec] | None = None
    default_sort_order_id: int = 0
    properties: dict[str, Any] | None = None
    current_snapshot_id: int | None = None
    snapshots: list[Snapshot] | None = None
    refs: dict[str, Reference] | None = None
    metadata_log: list[LogEntry] | None = None
    snapshot_log: list[SnapshotEntry] | None = None
    next_row_id: int | None = None
    encryption_keys: list[Any] | None = None

    @property
    def schema_by_id(self) -> dict[int, dict[str, Any]]:
        """The schemas it lists; none in old files of the first version."""
        found = {}
        for schema in self.schemas or ():
            id = schema.get("schema-id", 0)
            if isinstance(id, int):
                found[id] = schema
        return found

    @property
    def current_schema(self) -> dict[str, Any]:
        """The schema that counts now; raises UnreadableFile."""
        listed, id = self.schema_by_id, self.current_schema_id
        if id is not None and id in listed:
            return listed[id]
        if self.schema is None or (listed and id is not None):
            raise broken(f"Its current schema {id} is not there")
        return self.schema

    @property
    def current_spec(self) -> Spec:
        """How rows are partitioned now; raises UnreadableFile."""
        return self._chosen(self.specs, self.default_spec_id, "partition spec")

    @property
    def specs(self) -> dict[int, Spec]:
        """All partition specs, since manifests of older ones stay."""
        if self.partition_specs:
            return {spec.spec_id: spec for spec in self.partition_specs}
        return {0: Spec(fields=self.partition_spec or [])}

    @property
    def current_order(self) -> Spec:
        """How rows are sorted; raises UnreadableFile."""
        orders = {order.order_id: order for order in self.sort_orders or ()}
        orders.setdefault(0, Spec())
        return self._chosen(orders, self.default_sort_order_id, "sort order")

    def _chosen(self, specs: dict[int, Spec], id: int, called: str) -> Spec:
        if id not in specs:
            raise broken(f"Its {called} {id} is not there")
        return specs[id]

    @property
    def current_snapshot(self) -> Snapshot | None:
        """The state that counts now; nothing before the first one. Raises UnreadableFile."""
        id = self.current_snapshot_id
        # Writers of the first version wrote -1 for none.
        if id is None or id == -1:
            return None
        for snapshot in self.snapshots or ():
            if snapshot.snapshot_id == id:
                return snapshot
        raise broken(f"Its current snapshot {id} is not there")


class CutOff(UnreadableFile):
    """A file that is not whole: it was never written to its end, or is damaged."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        super().__init__("broken_table", f"{name} {reason}")


def parsed(name: str, data: bytes) -> Metadata:
    """The metadata in a file, compressed or not; raises UnreadableFile, where possible CutOff."""
    compression = compression_of(data[:16])
    if compression is not None:
        try:
            data, finished = compression.unpack(data, LONGEST + 1)
        except Damaged:
            raise CutOff(name, "is damaged where it is compressed") from None
        if not finished and len(data) <= LONGEST:
            raise CutOff(name, "is cut off")
    if len(data) > LONGEST:
        raise too_long(name)
    try:
        metadata = msgspec.json.decode(data, type=Metadata)
    except RecursionError:
        raise broken(f"{name} nests too deeply") from None
    except msgspec.ValidationError as problem:
        raise broken(f"{name} is no table metadata: {problem}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise CutOff(name, f"is no table metadata: {problem}") from None
    if metadata.view_uuid is not None:
        raise UnreadableFile("unsupported_feature", f"{name} describes an Iceberg view, no table")
    return metadata


def too_long(name: str) -> UnreadableFile:
    return UnreadableFile("broken_table", f"{name} is longer than {LONGEST // 2**20} MB")


def broken(reason: str) -> UnreadableFile:
    """A table whose metadata cannot be right."""
    return UnreadableFile("broken_table", reason)


def moment(milliseconds: int) -> datetime:
    """A time of the metadata; raises UnreadableFile."""
    try:
        seconds, rest = divmod(milliseconds, 1000)
        return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest * 1000)
    except (OverflowError, ValueError, OSError):
        raise broken(f"{milliseconds} is no time in milliseconds") from None
