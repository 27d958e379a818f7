"""Manifest lists and manifests of Iceberg: which data files and delete files are live.

Manifests never change, so their content is stored and only new ones are opened.
"""

import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
import pyarrow as pa

from lumos.formats.interface import UnreadableFile
from lumos.formats.tables.avro_containers import AvroContainer
from lumos.formats.tables.iceberg.metadata import (
    IcebergSnapshot,
    TransformField,
    TransformSpec,
    broken_table,
)
from lumos.formats.tables.iceberg.schema import partition_text
from lumos.formats.tables.interface import (
    LiveFile,
    RowDeletes,
    TableFolder,
    folder_without_partitions,
)
from lumos.formats.tables.parquet_rows import FAULTS, ParquetRows
from lumos.formats.varints import MalformedData
from lumos.model.conversions.json_values import number_at, objects_at

MAGIC: Final = b"PAR1"
_BATCH_SIZE: Final = 10_000


class ParquetManifest:
    """A manifest in Parquet, as in version 4; raises MalformedData."""

    def __init__(self, data: bytes) -> None:
        try:
            self._rows = ParquetRows(data)
        except FAULTS as problem:
            raise MalformedData(f"It is not Parquet ({type(problem).__name__}).") from None
        schema = self._rows.schema
        self.metadata: dict[str, bytes] = {
            key.decode("utf-8", "replace"): value for key, value in (schema.metadata or {}).items()
        }
        self._schema = schema

    @property
    def partition_fields(self) -> list[dict[str, Any]]:
        """The fields of partition values, in the form of Avro manifests."""
        record: Any = pa.struct(list(self._schema))
        for name in ("data_file", "partition"):
            record = record.field(name).type if record.get_field_index(name) >= 0 else None
            if not isinstance(record, pa.StructType):
                return []
        return [_avro_field(record.field(index)) for index in range(record.num_fields)]

    def records(self, keep: Collection[str]) -> Iterator[dict[str, Any]]:
        """Yield the records with only the fields in `keep`, including those of the data file."""
        paths = self._rows.columns
        columns = [path for path in paths if all(part in keep for part in path.split(".")[:2])]
        try:
            for batch in self._rows.batches(columns, rows=_BATCH_SIZE):
                yield from batch.to_pylist()
        except FAULTS as problem:
            raise MalformedData(f"A record cannot be read ({type(problem).__name__}).") from None


def _avro_field(field: pa.Field) -> dict[str, Any]:
    id = (field.metadata or {}).get(b"PARQUET:field_id", b"")
    return {"name": field.name, "field-id": int(id) if id.isdigit() else None}


_MAX_FILE_BYTES: Final = 256 * 1024 * 1024
_DELETED_STATUS: Final = 2
_ADDED_STATUS: Final = 1
_DELETES: Final = 1
_ENCRYPTED: Final = b"AGS1"
_LIST_FIELDS: Final = frozenset(
    ("manifest_path", "manifest_length", "partition_spec_id", "content", "sequence_number")
)
_ENTRY_FIELDS: Final = frozenset(
    (
        "status", "sequence_number", "data_file", "content", "file_path", "file_format",
        "partition", "record_count", "file_size_in_bytes", "content_offset",
        "content_size_in_bytes", "referenced_data_file",
    )
)  # fmt: skip


class UnreachableManifests(Exception):
    """Manifests that cannot be read; the message gives the reason."""


class IcebergManifest(msgspec.Struct, frozen=True):
    """An entry of a manifest list."""

    manifest_path: str
    manifest_length: int = 0
    partition_spec_id: int = 0
    content: int | None = 0
    sequence_number: int | None = 0

    @property
    def holds_deletes(self) -> bool:
        return self.content == _DELETES


class ManifestFile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A live data or delete file; the path of a file in the table is relative to its root."""

    path: str
    size: int
    rows: int
    format: str
    sequence: int
    partition: tuple[tuple[str, str | None], ...] = ()
    # 0 is data, 1 position deletes, 2 equality deletes.
    content: int = 0
    referenced: str | None = None
    offset: int | None = None
    length: int | None = None
    is_outside: bool = False


class ManifestContent(msgspec.Struct, frozen=True, array_like=True):
    """The content of a manifest; its files are encoded, because there may be millions."""

    path: str
    length: int
    spec_id: int
    deletes: bool
    files: int
    size: int
    rows: int
    # Folders of files outside of the root.
    outside: tuple[str, ...]
    packed: bytes

    def live(self) -> Iterator[ManifestFile]:
        """Yield the live files of the manifest."""
        yield from _ROWS.decode(zlib.decompress(self.packed))


_ROWS: Final = msgspec.msgpack.Decoder(list[ManifestFile])


_Count = Annotated[int, msgspec.Meta(ge=0)]


class _DataFile(msgspec.Struct, frozen=True):
    file_path: str
    file_format: str
    record_count: _Count
    file_size_in_bytes: _Count
    # Missing in Parquet, which has no empty structs.
    partition: dict[str, Any] = {}
    content: int | None = 0
    content_offset: _Count | None = None
    content_size_in_bytes: _Count | None = None
    referenced_data_file: str | None = None


class _Entry(msgspec.Struct, frozen=True):
    status: int
    data_file: _DataFile
    sequence_number: int | None = None


class ManifestReader:
    """Reads the manifests of a table; `location` is its root in the metadata."""

    def __init__(self, folder: TableFolder, location: str, specs: dict[int, TransformSpec]) -> None:
        self._folder = folder
        self._location = location
        self._specs = specs

    def of(self, snapshot: IcebergSnapshot) -> list[IcebergManifest]:
        """The manifests of a snapshot; raises UnreadableFile and UnreachableManifests."""
        if snapshot.key_id is not None:
            raise UnreachableManifests("its manifests are encrypted")
        if snapshot.manifest_list is None:
            return [IcebergManifest(path) for path in snapshot.manifests or ()]
        path = self._path_in_table(snapshot.manifest_list)
        try:
            data = self._folder.read(path)
        except FileNotFoundError:
            raise _missing_file(path) from None
        if data.startswith(MAGIC):
            raise UnreachableManifests(
                "its manifest list is a Parquet file, which no version up to 4 has"
            )
        container = _open_manifest(data, path)
        try:
            return [
                msgspec.convert(each, IcebergManifest) for each in container.records(_LIST_FIELDS)
            ]
        except (MalformedData, msgspec.ValidationError) as problem:
            raise _damaged_file(path, problem) from None

    def parts(
        self, manifests: list[IcebergManifest], known: dict[str, ManifestContent]
    ) -> Iterator[ManifestContent]:
        """Yield the content of manifests; raises UnreadableFile and UnreachableManifests."""
        paths = [self._path_in_table(each.manifest_path) for each in manifests]
        new_paths = []
        for path, manifest in zip(paths, manifests, strict=True):
            if manifest.manifest_length > _MAX_FILE_BYTES:
                raise broken_table(f"{path} is longer than {_MAX_FILE_BYTES // 2**20} MB")
            if not _is_same(known.get(path), manifest):
                new_paths.append(path)
        contents = self._folder.read_many(new_paths)
        for path, manifest in zip(paths, manifests, strict=True):
            known_content = known.get(path)
            if known_content is not None and _is_same(known_content, manifest):
                yield known_content
                continue
            content = next(contents)
            if isinstance(content, FileNotFoundError):
                raise _missing_file(path)
            if isinstance(content, OSError):
                raise content
            yield self._part(path, manifest, content)

    def _path_in_table(self, uri: str) -> str:
        path = self._relative_path(uri)
        if path is None or ".." in path.split("/"):
            raise UnreachableManifests(
                f"its manifests are outside of the table ({uri.rpartition('/')[0]})"
            )
        return path

    def _relative_path(self, uri: str) -> str | None:
        """The path relative to the root; version 4 may contain it instead of a URI."""
        is_uri = uri.startswith(("/", "file:")) or "://" in uri
        return self._folder.inside(uri, self._location) if is_uri else uri

    def _part(self, path: str, manifest: IcebergManifest, data: bytes) -> ManifestContent:
        container = _open_manifest(data, path)
        # Snapshots of version 1 do not give the spec of a manifest.
        stored = container.metadata.get("partition-spec-id", b"")
        spec_id = (
            int(stored) if stored.isdigit() and len(stored) < 10 else manifest.partition_spec_id
        )
        spec = self._specs.get(spec_id) or TransformSpec()
        partition = _PartitionTexts(container.partition_fields, spec)
        rows: list[ManifestFile] = []
        outside: set[str] = set()
        try:
            for record in container.records(_ENTRY_FIELDS):
                entry = msgspec.convert(record, _Entry)
                if bool(entry.data_file.content) != manifest.holds_deletes:
                    raise MalformedData("It mixes data and delete files.")
                if entry.status != _DELETED_STATUS:
                    rows.append(self._row(entry, manifest, partition, outside))
        except (MalformedData, msgspec.ValidationError) as problem:
            raise _damaged_file(path, problem) from None
        return ManifestContent(
            path=path,
            length=manifest.manifest_length,
            spec_id=spec_id,
            deletes=manifest.holds_deletes,
            files=len(rows),
            size=sum(row.size if row.length is None else row.length for row in rows),
            rows=sum(row.rows for row in rows),
            outside=tuple(sorted(outside)),
            packed=zlib.compress(msgspec.msgpack.encode(rows), 1),
        )

    def _row(
        self,
        entry: _Entry,
        manifest: IcebergManifest,
        partition: "_PartitionTexts",
        outside: set[str],
    ) -> ManifestFile:
        file = entry.data_file
        relative = self._relative_path(file.file_path)
        if relative is None:
            outside.add(folder_without_partitions(file.file_path))
        elif ".." in relative.split("/"):
            raise MalformedData("A path leads out of the table.")
        sequence = entry.sequence_number
        if sequence is None:
            # Entries of the same commit inherit the number of the manifest.
            sequence = (manifest.sequence_number or 0) if entry.status == _ADDED_STATUS else 0
        referenced = file.referenced_data_file
        if referenced is not None:
            referenced = self._relative_path(referenced) or referenced
        return ManifestFile(
            path=file.file_path if relative is None else relative,
            size=file.file_size_in_bytes,
            rows=file.record_count,
            format=file.file_format.lower(),
            sequence=sequence,
            partition=partition.of(file.partition),
            content=file.content or 0,
            referenced=referenced,
            offset=file.content_offset,
            length=file.content_size_in_bytes,
            is_outside=relative is None,
        )


class _PartitionTexts:
    """Names and texts of partition values; equal ones are converted once."""

    def __init__(self, fields: list[dict[str, Any]], spec: TransformSpec) -> None:
        by_id = {each.field_id: each for each in spec.fields if each.field_id is not None}
        by_name = {field.name: field for field in spec.fields}
        self._fields: dict[str, tuple[TransformField, object]] = {}
        for field in fields:
            name = field["name"]
            id = number_at(field, "field-id")
            spec_field = by_name.get(name) if id is None else by_id.get(id, by_name.get(name))
            spec_field = spec_field or TransformField(name=name)
            self._fields[name] = spec_field, field.get("type")
        self._known: dict[tuple[Any, ...], tuple[tuple[str, str | None], ...]] = {}

    def of(self, values: dict[str, Any]) -> tuple[tuple[str, str | None], ...]:
        key = tuple(values.values())
        if any(isinstance(value, list | dict) for value in key):
            raise MalformedData("A partition value is a list or struct.")
        found = self._known.get(key)
        if found is None:
            found = tuple(
                (field.name or name, partition_text(values.get(name), field.transform, type))
                for name, (field, type) in self._fields.items()
                if field.transform != "void"
            )
            self._known[key] = found
        return found


def _is_same(known_content: ManifestContent | None, manifest: IcebergManifest) -> bool:
    return (
        known_content is not None
        and known_content.length == manifest.manifest_length
        and known_content.deletes == manifest.holds_deletes
    )


class _AvroManifest(AvroContainer):
    @property
    def partition_fields(self) -> list[dict[str, Any]]:
        """The fields of the record of partition values in `data_file`."""
        schema = self.schema
        for name in ("data_file", "partition"):
            schema = next((f.get("type") for f in _fields(schema) if f.get("name") == name), None)
        return _fields(schema)


def _fields(record: Any) -> list[dict[str, Any]]:
    return objects_at(record, "fields") if isinstance(record, dict) else []


def _open_manifest(data: bytes, path: str) -> _AvroManifest | ParquetManifest:
    if data.startswith(_ENCRYPTED):
        raise UnreachableManifests("its manifests are encrypted")
    try:
        return ParquetManifest(data) if data.startswith(MAGIC) else _AvroManifest(data)
    except MalformedData as problem:
        raise _damaged_file(path, problem) from None


def _damaged_file(path: str, problem: Exception) -> UnreadableFile:
    return broken_table(f"{path} is damaged: {problem}")


def _missing_file(path: str) -> UnreadableFile:
    return broken_table(f"{path} of its current snapshot is missing")


_POSITIONS: Final = 1
_VECTORS: Final = "puffin"


class LiveCounts(NamedTuple):
    """Totals of live data files and delete files."""

    files: int = 0
    bytes: int = 0
    rows: int = 0
    vectors: int = 0
    position_files: int = 0
    equality_files: int = 0
    delete_bytes: int = 0
    deleted_rows: int = 0

    @property
    def rows_exact(self) -> bool:
        """Whether the row count is exact.

        Positions may be deleted twice, and the rows of equality deletes are not counted.
        """
        return not (self.position_files or self.equality_files)

    @property
    def live_rows(self) -> int:
        """The number of rows without known deletes."""
        return max(0, self.rows - self.deleted_rows)


def count_live_files(parts: Sequence[ManifestContent]) -> LiveCounts:
    """The totals of the manifests of a snapshot."""
    data = [part for part in parts if not part.deletes]
    deletes = [part for part in parts if part.deletes]
    rows = [row for part in deletes for row in part.live()]
    vectors = [row for row in rows if row.format == _VECTORS]
    positions = [row for row in rows if row.format != _VECTORS and row.content == _POSITIONS]
    # Vectors of removed data files delete nothing.
    with_vectors = {row.referenced for row in vectors}
    if with_vectors:
        with_vectors -= {row.path for part in data for row in part.live()}
    return LiveCounts(
        files=sum(part.files for part in data),
        bytes=sum(part.size for part in data),
        rows=sum(part.rows for part in data),
        vectors=len(vectors),
        position_files=len(positions),
        equality_files=len(rows) - len(vectors) - len(positions),
        delete_bytes=sum(part.size for part in deletes),
        deleted_rows=sum(row.rows for row in vectors if row.referenced not in with_vectors)
        + sum(row.rows for row in positions),
    )


def live_files(
    parts: Sequence[ManifestContent], times: Mapping[int, int] = MappingProxyType({})
) -> Iterator[LiveFile]:
    """Yield the live data files with the deletes that apply to each.

    `times` are the milliseconds since 1970 at which rows with a sequence number were added.
    """
    deletes = _DeleteIndex(part for part in parts if part.deletes)
    for part in parts:
        if part.deletes:
            continue
        for row in part.live():
            yield LiveFile(
                path=row.path,
                size=row.size,
                rows=row.rows,
                partition=row.partition,
                deletes=deletes.to(row, part.spec_id),
                format=row.format,
                added=times[row.sequence] * 1000 if row.sequence in times else None,
            )


class _DeleteIndex:
    """Delete files by the data files that they apply to."""

    def __init__(self, parts: Iterable[ManifestContent]) -> None:
        self._by_file: dict[str, list[ManifestFile]] = {}
        self._by_partition: dict[object, list[ManifestFile]] = {}
        self._global: list[ManifestFile] = []
        for part in parts:
            for row in part.live():
                if row.referenced is not None:
                    self._by_file.setdefault(row.referenced, []).append(row)
                elif row.content != _POSITIONS and not row.partition:
                    self._global.append(row)
                else:
                    key = part.spec_id, row.partition
                    self._by_partition.setdefault(key, []).append(row)

    def to(self, data: ManifestFile, spec_id: int) -> tuple[RowDeletes, ...]:
        """The deletes that apply to a data file."""
        file_deletes = self._by_file.get(data.path, ())
        vectors = [row for row in file_deletes if row.format == _VECTORS]
        partition_deletes = self._by_partition.get((spec_id, data.partition), ())
        found = [*vectors, *self._global]
        # A vector replaces earlier position deletes.
        found += [
            row
            for row in (*file_deletes, *partition_deletes)
            if row.format != _VECTORS and not (vectors and row.content == _POSITIONS)
        ]
        return tuple(_deletes(row) for row in found if _applies(row, data))


def _applies(row: ManifestFile, data: ManifestFile) -> bool:
    """Whether deletes apply to data: from later commits or, for positions, the same commit."""
    if row.content == _POSITIONS:
        return row.sequence >= data.sequence
    return row.sequence > data.sequence


def _deletes(row: ManifestFile) -> RowDeletes:
    kind: Literal["dv", "positions", "equality"] = "equality"
    if row.format == _VECTORS:
        kind = "dv"
    elif row.content == _POSITIONS:
        kind = "positions"
    return RowDeletes(
        kind=kind,
        path=row.path,
        offset=row.offset or 0,
        length=row.length or row.size,
        count=row.rows,
    )
