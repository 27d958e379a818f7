"""Reads metadata files of Iceberg, and finds the current one.

A catalog knows which file is current. Without a catalog, the current file is the one in the version
hint next to the files, or the one with the highest number. Schemas and types stay JSON values, so
that unknown content does not make a file unreadable.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec

from lumos.formats.compression import CorruptCompression, compression_of
from lumos.formats.interface import Remark, UnreadableFile
from lumos.formats.tables.interface import FileEntry, TableFolder

# Ten times the size of the largest file seen so far, which had about ten thousand snapshots.
MAX_METADATA_BYTES: Final = 128 * 1024 * 1024
NO_SNAPSHOT: Final = "none"


class _MetadataPart(msgspec.Struct, frozen=True, rename="kebab", gc=False):
    """A JSON object; unknown fields are ignored."""


class IcebergSnapshot(_MetadataPart, frozen=True):
    """A snapshot of the table."""

    snapshot_id: int
    timestamp_ms: int = 0
    parent_snapshot_id: int | None = None
    sequence_number: int = 0
    # The file that lists the manifests; version 1 may list them here.
    manifest_list: str | None = None
    manifests: list[str] | None = None
    summary: dict[str, Any] | None = None
    schema_id: int | None = None
    key_id: str | None = None

    @property
    def operation(self) -> str | None:
        """The operation, such as append, overwrite, delete or replace."""
        operation = (self.summary or {}).get("operation")
        return operation if isinstance(operation, str) else None

    def total(self, name: str) -> int | None:
        """A number in the summary, such as `total-records`; None if it is missing or invalid."""
        text = str((self.summary or {}).get(name, ""))
        return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


class TransformField(_MetadataPart, frozen=True):
    """A partition or sort field: a transform of one or more source columns."""

    transform: str = "identity"
    name: str = ""
    source_id: int | None = None
    source_ids: list[int] | None = None
    field_id: int | None = None
    direction: str | None = None
    null_order: str | None = None

    @property
    def sources(self) -> list[int]:
        """The ids of the source columns."""
        if self.source_ids:
            return self.source_ids
        return [] if self.source_id is None else [self.source_id]


class TransformSpec(_MetadataPart, frozen=True):
    """A partition spec or sort order."""

    spec_id: int = 0
    order_id: int = 0
    fields: list[TransformField] = []


class SnapshotReference(_MetadataPart, frozen=True):
    """A branch or tag."""

    snapshot_id: int
    type: str = "branch"


class MetadataLogEntry(_MetadataPart, frozen=True):
    """An earlier metadata file, and when it was current."""

    metadata_file: str
    timestamp_ms: int = 0


class SnapshotLogEntry(_MetadataPart, frozen=True):
    """A snapshot that became current, and when."""

    snapshot_id: int
    timestamp_ms: int = 0


class IcebergMetadata(_MetadataPart, frozen=True):
    """A metadata file."""

    format_version: int
    table_uuid: str | None = None
    view_uuid: str | None = None
    location: str = ""
    last_updated_ms: int = 0
    last_sequence_number: int = 0
    # Version 1 has a single schema and partition spec.
    schema: dict[str, Any] | None = None
    partition_spec: list[TransformField] | None = None
    schemas: list[dict[str, Any]] | None = None
    current_schema_id: int | None = None
    partition_specs: list[TransformSpec] | None = None
    default_spec_id: int = 0
    sort_orders: list[TransformSpec] | None = None
    default_sort_order_id: int = 0
    properties: dict[str, Any] | None = None
    current_snapshot_id: int | None = None
    snapshots: list[IcebergSnapshot] | None = None
    refs: dict[str, SnapshotReference] | None = None
    metadata_log: list[MetadataLogEntry] | None = None
    snapshot_log: list[SnapshotLogEntry] | None = None
    next_row_id: int | None = None
    encryption_keys: list[Any] | None = None

    @property
    def schema_by_id(self) -> dict[int, dict[str, Any]]:
        """The listed schemas; empty in old files of version 1, which list none."""
        schemas = {}
        for schema in self.schemas or ():
            id = schema.get("schema-id", 0)
            if isinstance(id, int):
                schemas[id] = schema
        return schemas

    @property
    def current_schema(self) -> dict[str, Any]:
        """The current schema; raises UnreadableFile."""
        schemas, id = self.schema_by_id, self.current_schema_id
        if id is not None and id in schemas:
            return schemas[id]
        if self.schema is None or (schemas and id is not None):
            raise broken_table(f"Its current schema {id} is missing")
        return self.schema

    @property
    def current_spec(self) -> TransformSpec:
        """The current partition spec; raises UnreadableFile."""
        return self._select_by_id(self.specs, self.default_spec_id, "partition spec")

    @property
    def specs(self) -> dict[int, TransformSpec]:
        """All partition specs by id: manifests may still use older ones."""
        if self.partition_specs:
            return {spec.spec_id: spec for spec in self.partition_specs}
        return {0: TransformSpec(fields=self.partition_spec or [])}

    @property
    def current_order(self) -> TransformSpec:
        """The current sort order; raises UnreadableFile."""
        orders = {order.order_id: order for order in self.sort_orders or ()}
        orders.setdefault(0, TransformSpec())
        return self._select_by_id(orders, self.default_sort_order_id, "sort order")

    def _select_by_id(self, specs: dict[int, TransformSpec], id: int, label: str) -> TransformSpec:
        if id not in specs:
            raise broken_table(f"Its {label} {id} is missing")
        return specs[id]

    @property
    def current_snapshot(self) -> IcebergSnapshot | None:
        """The current snapshot; None before the first one. Raises UnreadableFile."""
        id = self.current_snapshot_id
        # In version 1, writers use -1 if there is no snapshot.
        if id is None or id == -1:
            return None
        for snapshot in self.snapshots or ():
            if snapshot.snapshot_id == id:
                return snapshot
        raise broken_table(f"Its current snapshot {id} is missing")


class TruncatedMetadata(UnreadableFile):
    """A metadata file that was not written completely, or is damaged."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        super().__init__("broken_table", f"{name} {reason}")


def parse_metadata(name: str, data: bytes) -> IcebergMetadata:
    """Parse a metadata file, compressed or not; raises TruncatedMetadata or UnreadableFile."""
    compression = compression_of(data[:16])
    if compression is not None:
        try:
            data, finished = compression.decompress(data, MAX_METADATA_BYTES + 1)
        except CorruptCompression:
            raise TruncatedMetadata(name, "has damaged compressed data") from None
        if not finished and len(data) <= MAX_METADATA_BYTES:
            raise TruncatedMetadata(name, "is truncated")
    if len(data) > MAX_METADATA_BYTES:
        raise too_long(name)
    try:
        metadata = msgspec.json.decode(data, type=IcebergMetadata)
    except RecursionError:
        raise broken_table(f"{name} nests too deeply") from None
    except msgspec.ValidationError as problem:
        raise broken_table(f"{name} is not table metadata: {problem}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise TruncatedMetadata(name, f"is not table metadata: {problem}") from None
    if metadata.view_uuid is not None:
        raise UnreadableFile(
            "unsupported_feature", f"{name} describes an Iceberg view, not a table"
        )
    return metadata


def too_long(name: str) -> UnreadableFile:
    return UnreadableFile("broken_table", f"{name} is longer than {MAX_METADATA_BYTES // 2**20} MB")


def broken_table(reason: str) -> UnreadableFile:
    """The error for a table with invalid metadata."""
    return UnreadableFile("broken_table", reason)


def time_from_ms(milliseconds: int) -> datetime:
    """Convert a time in the metadata; raises UnreadableFile."""
    try:
        seconds, rest = divmod(milliseconds, 1000)
        return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest * 1000)
    except (OverflowError, ValueError, OSError):
        raise broken_table(f"{milliseconds} is not a time in milliseconds") from None


METADATA_FOLDER: Final = "metadata"
_HINT: Final = "version-hint.text"
_MAX_HINT_BYTES: Final = 4096
_SUFFIX: Final = re.compile(r"(?:\.(?:gz|gzip|zst|zstd))?\.metadata\.json(?:\.(?:gz|zst))?\Z")
_UUID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
# A file that is only named by a UUID is not committed yet.
_UNCOMMITTED: Final = re.compile(_UUID + r"\Z", re.IGNORECASE)
# The names of metadata files of tables in a catalog, which only refers to complete files.
_CATALOG_FILE_NAME: Final = re.compile(rf"\d+-{_UUID}\Z", re.IGNORECASE)
_MAX_TRUNCATED: Final = 100
_NUMBER: Final = re.compile(r"v?(\d{1,18})(?:-.*)?\Z", re.DOTALL)


class CurrentMetadata(NamedTuple):
    """The current metadata file, with remarks if it was chosen among several."""

    name: str
    metadata: IcebergMetadata
    # The sizes of all metadata files.
    sizes: dict[str, int]
    remarks: tuple[Remark, ...] = ()


class _NumberedFile(NamedTuple):
    number: int
    entry: FileEntry


def metadata_signature(folder: TableFolder) -> str:
    """A hash that changes with every metadata file and the hint."""
    hash = hashlib.blake2b(digest_size=16)
    for entry in folder.entries(METADATA_FOLDER):
        if entry.name == _HINT or _SUFFIX.search(entry.name):
            hash.update(repr(tuple(entry)).encode("utf-8", "surrogatepass"))
    return hash.hexdigest()


def metadata_version(name: str) -> int | None:
    """The number in the name of a metadata file; None for uncommitted ones."""
    stem = _SUFFIX.sub("", name)
    match = _NUMBER.match(stem)
    return None if match is None or _UNCOMMITTED.match(stem) else int(match.group(1))


def current_metadata(folder: TableFolder, *, last_name: str = "") -> CurrentMetadata:
    """Find the current metadata file; raises UnreadableFile.

    `last_name` is the name of the file that was current at the previous read.
    """
    files: list[_NumberedFile] = []
    has_hint = False
    sizes: dict[str, int] = {}
    for entry in folder.entries(METADATA_FOLDER):
        if entry.name == _HINT:
            has_hint = entry.size <= _MAX_HINT_BYTES
        elif _SUFFIX.search(entry.name):
            sizes[entry.name] = entry.size
            if (number := metadata_version(entry.name)) is not None:
                files.append(_NumberedFile(number, entry))
    hinted_files = _files_from_hint(folder, files) if has_hint else []
    committed_names = {last_name, *(file.entry.name for file in hinted_files)}
    remarks: list[Remark] = []
    while files:
        try:
            current = _select(folder, hinted_files, files, sizes)
            return current._replace(remarks=(*remarks, *current.remarks))
        except TruncatedMetadata as problem:
            is_from_catalog = _CATALOG_FILE_NAME.match(_SUFFIX.sub("", problem.name)) is not None
            if (
                problem.name in committed_names
                or not is_from_catalog
                or len(remarks) == _MAX_TRUNCATED
            ):
                raise
            # Catalogs do not refer to incomplete files, so the previous file is current.
            files = [file for file in files if file.entry.name != problem.name]
            reason = problem.reason.rstrip(".")
            text = f"{reason}; it was not committed, and the file before it is used."
            remarks.append(Remark("half_written_table", text))
    raise UnreadableFile("half_written_table", "Its folder contains no committed metadata file yet")


def _select(
    folder: TableFolder,
    hinted_files: list[_NumberedFile],
    files: list[_NumberedFile],
    sizes: dict[str, int],
) -> CurrentMetadata:
    candidates = _files_after_hint(hinted_files, files)
    if len(candidates) == 1:
        return CurrentMetadata(candidates[0].name, _metadata(folder, candidates[0]), sizes)
    if not candidates:
        highest = max(file.number for file in files)
        candidates = [file.entry for file in files if file.number == highest]
    return _choose_latest(folder, candidates, files, sizes)


def _metadata(folder: TableFolder, entry: FileEntry) -> IcebergMetadata:
    if entry.size > MAX_METADATA_BYTES:
        raise too_long(entry.name)
    try:
        return parse_metadata(entry.name, folder.read(f"{METADATA_FOLDER}/{entry.name}"))
    except FileNotFoundError:
        raise broken_table(f"{entry.name} is listed, but missing") from None


def _files_from_hint(folder: TableFolder, files: Iterable[_NumberedFile]) -> list[_NumberedFile]:
    """The files with the number or name that the hint contains."""
    try:
        text = folder.read(f"{METADATA_FOLDER}/{_HINT}").decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return []
    if text.isascii() and text.isdigit() and len(text) < 19:
        return [file for file in files if file.number == int(text)]
    name = _SUFFIX.sub("", text.rpartition("/")[2])
    return [file for file in files if _SUFFIX.sub("", file.entry.name) == name]


def _files_after_hint(
    hinted_files: list[_NumberedFile], files: Iterable[_NumberedFile]
) -> list[FileEntry]:
    """The newest files that follow the hinted_files files, or else these.

    Writers update the hint after they add a file, so the hint may be out of date.
    """
    by_number: dict[int, list[_NumberedFile]] = {}
    for file in files:
        by_number.setdefault(file.number, []).append(file)
    while hinted_files and (following := by_number.get(hinted_files[0].number + 1)):
        hinted_files = following
    return [file.entry for file in hinted_files]


def _other_table(
    folder: TableFolder, entry: FileEntry, metadata: IcebergMetadata
) -> list[tuple[FileEntry, IcebergMetadata]]:
    """The metadata of an entry, if it belongs to another table; damaged files are ignored."""
    try:
        other = _metadata(folder, entry)
    except UnreadableFile:
        return []
    return [(entry, other)] if other.table_uuid != metadata.table_uuid else []


def _choose_latest(
    folder: TableFolder,
    candidates: list[FileEntry],
    files: list[_NumberedFile],
    sizes: dict[str, int],
) -> CurrentMetadata:
    """Choose the current file among several with the highest number.

    If a table was dropped and created again in the same folder, its files start at number 0 again,
    next to the files of the dropped table.
    """
    latest = max((file.entry for file in files), key=lambda entry: entry.modified)
    loaded = [(entry, _metadata(folder, entry)) for entry in candidates]
    if latest.modified > max(entry.modified for entry in candidates):
        loaded.extend(_other_table(folder, latest, loaded[0][1]))
    if len(loaded) == 1:
        return CurrentMetadata(loaded[0][0].name, loaded[0][1], sizes)
    logged_names = {
        entry.metadata_file.rpartition("/")[2]
        for _, metadata in loaded
        for entry in metadata.metadata_log or ()
    }
    latest_candidates = [each for each in loaded if each[0].name not in logged_names] or loaded
    entry, metadata = max(
        latest_candidates, key=lambda each: (each[1].last_updated_ms, each[0].name)
    )
    if len(latest_candidates) == 1:
        return CurrentMetadata(entry.name, metadata, sizes)
    others = ", ".join(
        sorted(each[0].name for each in latest_candidates if each[0] is not entry)[:3]
    )
    remark = Remark(
        "ambiguous_metadata",
        f"{entry.name} is used as the current metadata, because it was updated last. Without a "
        f"catalog, it may also be {others}.",
    )
    return CurrentMetadata(entry.name, metadata, sizes, (remark,))


_METADATA_PATH: Final = "write.metadata.path"


class IcebergLocation(NamedTuple):
    """The location of a table and of its metadata, as recorded in the metadata."""

    location: str
    metadata: str


def metadata_path(metadata: IcebergMetadata) -> str:
    """The location in `write.metadata.path`; empty if that is not set."""
    path = (metadata.properties or {}).get(_METADATA_PATH)
    return path.rstrip("/") if isinstance(path, str) else ""


def location_elsewhere(folder: TableFolder, metadata: IcebergMetadata) -> str:
    """The location of a table if this folder only contains its metadata; otherwise empty."""
    path, location = metadata_path(metadata), metadata.location.rstrip("/")
    if not path or folder.inside(f"{path}/x", "") != f"{METADATA_FOLDER}/x":
        return ""
    return location if folder.inside(f"{location}/x", "") is None else ""


def find_table_location(folder: TableFolder) -> IcebergLocation:
    """The location of the table whose metadata is in this folder; raises UnreadableFile."""
    newest = current_metadata(folder)
    path = metadata_path(newest.metadata)
    if not path or not newest.metadata.location:
        raise _stray_metadata("its table has no 'write.metadata.path'")
    if any(_is_other_table(folder, name, newest.metadata) for name in set(_files_to_check(newest))):
        raise _stray_metadata("it belongs to several tables, which only a catalog can distinguish")
    return IcebergLocation(newest.metadata.location, path)


def _stray_metadata(reason: str) -> UnreadableFile:
    return UnreadableFile(
        "stray_metadata",
        f"The folder contains Iceberg metadata, but is not named {METADATA_FOLDER}, and {reason}; "
        "no table is read, and its files are treated as separate files",
    )


def _files_to_check(newest: CurrentMetadata) -> Iterator[str]:
    """Yield the files to open to find out whether the folder contains another table, too."""
    numbers = {
        name: number for name in newest.sizes if (number := metadata_version(name)) is not None
    }
    log = newest.metadata.metadata_log or ()
    same_table = {newest.name, *(entry.metadata_file.rpartition("/")[2] for entry in log)}
    others = numbers.keys() - same_table
    if others:
        yield max(others, key=lambda name: (numbers[name], name))
    yield from _files_with_shared_number(numbers)


def _files_with_shared_number(numbers: Mapping[str, int]) -> list[str]:
    """The files that share a number, the highest one: files of one table have distinct numbers."""
    counts = Counter(numbers.values())
    shared = max((number for number, count in counts.items() if count > 1), default=None)
    return [name for name, number in numbers.items() if number == shared]


def _is_other_table(folder: TableFolder, name: str, metadata: IcebergMetadata) -> bool:
    try:
        other = parse_metadata(name, folder.read(f"{METADATA_FOLDER}/{name}"))
    except (UnreadableFile, FileNotFoundError):
        # Damaged earlier files are ignored.
        return False
    return other.table_uuid != metadata.table_uuid
