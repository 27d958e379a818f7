"""Manifest lists and manifests of Iceberg, which list the live data files and delete files.

Manifests never change, so their content is stored, and only new manifests are opened.
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
from lumos.formats.tables.parquet_rows import READ_ERRORS, ParquetRows
from lumos.formats.varints import MalformedData
from lumos.model.conversions.json_values import number_at, objects_at

MAGIC: Final = b"PAR1"
_BATCH_SIZE: Final = 10_000


class ParquetManifest:
    """A manifest in Parquet, as in version 4 of the format; raises MalformedData."""

    def __init__(self, data: bytes) -> None:
        try:
            self._rows = ParquetRows(data)
        except READ_ERRORS as problem:
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
        except READ_ERRORS as problem:
            raise MalformedData(f"A record cannot be read ({type(problem).__name__}).") from None


def _avro_field(field: pa.Field) -> dict[str, Any]:
    id = (field.metadata or {}).get(b"PARQUET:field_id", b"")
    return {"name": field.name, "field-id": int(id) if id.isdigit() else None}


_MAX_FILE_BYTES: Final = 256 * 1024 * 1024
# The status of an entry in a manifest.
_ADDED_STATUS: Final = 1
_DELETED_STATUS: Final = 2
# The content of a manifest that lists delete files.
_DELETES: Final = 1
_ENCRYPTED_MAGIC: Final = b"AGS1"
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
    """The manifests cannot be read; the message is the reason."""


class IcebergManifest(msgspec.Struct, frozen=True):
    """An entry of a manifest list."""

    manifest_path: str
    manifest_length: int = 0
    partition_spec_id: int = 0
    content: int | None = 0
    sequence_number: int | None = 0

    @property
    def lists_deletes(self) -> bool:
        return self.content == _DELETES


class ManifestFile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A live data or delete file; `path` is relative to the root, or a URI if `is_outside`."""

    path: str
    size: int
    rows: int
    format: str
    sequence: int
    partition: tuple[tuple[str, str | None], ...] = ()
    # 0 is data, 1 position deletes, 2 equality deletes.
    content: int = 0
    # The only data file that the deletes apply to.
    data_file: str | None = None
    offset: int | None = None
    length: int | None = None
    is_outside: bool = False


class ManifestContent(msgspec.Struct, frozen=True, array_like=True):
    """The content of a manifest; its files are encoded, because a table may have millions."""

    path: str
    length: int
    spec_id: int
    lists_deletes: bool
    file_count: int
    size: int
    rows: int
    # Folders of files outside of the root.
    outside: tuple[str, ...]
    encoded_files: bytes

    def live(self) -> Iterator[ManifestFile]:
        """Yield the live files of the manifest."""
        yield from _FILES_DECODER.decode(zlib.decompress(self.encoded_files))


_FILES_DECODER: Final = msgspec.msgpack.Decoder(list[ManifestFile])


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
    """Reads the manifests of a table; `location` is the table's root in its metadata."""

    def __init__(self, folder: TableFolder, location: str, specs: dict[int, TransformSpec]) -> None:
        self._folder = folder
        self._location = location
        self._specs = specs

    def manifests(self, snapshot: IcebergSnapshot) -> list[IcebergManifest]:
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

    def contents(
        self, manifests: list[IcebergManifest], known: dict[str, ManifestContent]
    ) -> Iterator[ManifestContent]:
        """Yield the contents of manifests; raises UnreadableFile and UnreachableManifests.

        `known` are the stored contents by path; these manifests are not opened again.
        """
        paths = [self._path_in_table(each.manifest_path) for each in manifests]
        new_paths = []
        for path, manifest in zip(paths, manifests, strict=True):
            if manifest.manifest_length > _MAX_FILE_BYTES:
                raise broken_table(f"{path} is longer than {_MAX_FILE_BYTES // 2**20} MB")
            if not _is_same(known.get(path), manifest):
                new_paths.append(path)
        new_files = self._folder.read_many(new_paths)
        for path, manifest in zip(paths, manifests, strict=True):
            known_content = known.get(path)
            if known_content is not None and _is_same(known_content, manifest):
                yield known_content
                continue
            data = next(new_files)
            if isinstance(data, FileNotFoundError):
                raise _missing_file(path)
            if isinstance(data, OSError):
                raise data
            yield self._parse(path, manifest, data)

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

    def _parse(self, path: str, manifest: IcebergManifest, data: bytes) -> ManifestContent:
        container = _open_manifest(data, path)
        # In version 1 of the format, snapshots do not contain the spec of their manifests.
        stored = container.metadata.get("partition-spec-id", b"")
        spec_id = (
            int(stored) if stored.isdigit() and len(stored) < 10 else manifest.partition_spec_id
        )
        spec = self._specs.get(spec_id) or TransformSpec()
        partition_texts = _PartitionTexts(container.partition_fields, spec)
        files: list[ManifestFile] = []
        outside: set[str] = set()
        try:
            for record in container.records(_ENTRY_FIELDS):
                entry = msgspec.convert(record, _Entry)
                if bool(entry.data_file.content) != manifest.lists_deletes:
                    raise MalformedData("It mixes data and delete files.")
                if entry.status != _DELETED_STATUS:
                    files.append(self._convert(entry, manifest, partition_texts, outside))
        except (MalformedData, msgspec.ValidationError) as problem:
            raise _damaged_file(path, problem) from None
        return ManifestContent(
            path=path,
            length=manifest.manifest_length,
            spec_id=spec_id,
            lists_deletes=manifest.lists_deletes,
            file_count=len(files),
            size=sum(file.size if file.length is None else file.length for file in files),
            rows=sum(file.rows for file in files),
            outside=tuple(sorted(outside)),
            encoded_files=zlib.compress(msgspec.msgpack.encode(files), 1),
        )

    def _convert(
        self,
        entry: _Entry,
        manifest: IcebergManifest,
        partition_texts: "_PartitionTexts",
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
            # Entries that were added with the manifest inherit its sequence number.
            sequence = (manifest.sequence_number or 0) if entry.status == _ADDED_STATUS else 0
        data_file = file.referenced_data_file
        if data_file is not None:
            data_file = self._relative_path(data_file) or data_file
        return ManifestFile(
            path=file.file_path if relative is None else relative,
            size=file.file_size_in_bytes,
            rows=file.record_count,
            format=file.file_format.lower(),
            sequence=sequence,
            partition=partition_texts.of(file.partition),
            content=file.content or 0,
            data_file=data_file,
            offset=file.content_offset,
            length=file.content_size_in_bytes,
            is_outside=relative is None,
        )


class _PartitionTexts:
    """Converts partition values to their names and texts; equal values are converted once."""

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
        self._cache: dict[tuple[Any, ...], tuple[tuple[str, str | None], ...]] = {}

    def of(self, values: dict[str, Any]) -> tuple[tuple[str, str | None], ...]:
        key = tuple(values.values())
        if any(isinstance(value, list | dict) for value in key):
            raise MalformedData("A partition value is a list or struct.")
        texts = self._cache.get(key)
        if texts is None:
            texts = tuple(
                (field.name or name, partition_text(values.get(name), field.transform, type))
                for name, (field, type) in self._fields.items()
                if field.transform != "void"
            )
            self._cache[key] = texts
        return texts


def _is_same(known_content: ManifestContent | None, manifest: IcebergManifest) -> bool:
    return (
        known_content is not None
        and known_content.length == manifest.manifest_length
        and known_content.lists_deletes == manifest.lists_deletes
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
    if data.startswith(_ENCRYPTED_MAGIC):
        raise UnreachableManifests("its manifests are encrypted")
    try:
        return ParquetManifest(data) if data.startswith(MAGIC) else _AvroManifest(data)
    except MalformedData as problem:
        raise _damaged_file(path, problem) from None


def _damaged_file(path: str, problem: Exception) -> UnreadableFile:
    return broken_table(f"{path} is damaged: {problem}")


def _missing_file(path: str) -> UnreadableFile:
    return broken_table(f"{path} of its current snapshot is missing")


# The content of files with position deletes, and the format of deletion vectors.
_POSITION_DELETES: Final = 1
_VECTOR_FORMAT: Final = "puffin"


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
        """The number of rows minus the known deletes."""
        return max(0, self.rows - self.deleted_rows)


def count_live_files(manifests: Sequence[ManifestContent]) -> LiveCounts:
    """The totals of the manifests of a snapshot."""
    data = [each for each in manifests if not each.lists_deletes]
    deletes = [each for each in manifests if each.lists_deletes]
    delete_files = [file for manifest in deletes for file in manifest.live()]
    vectors = [file for file in delete_files if file.format == _VECTOR_FORMAT]
    positions = [
        file
        for file in delete_files
        if file.format != _VECTOR_FORMAT and file.content == _POSITION_DELETES
    ]
    # Vectors of removed data files delete nothing.
    removed = {file.data_file for file in vectors}
    if removed:
        removed -= {file.path for manifest in data for file in manifest.live()}
    return LiveCounts(
        files=sum(manifest.file_count for manifest in data),
        bytes=sum(manifest.size for manifest in data),
        rows=sum(manifest.rows for manifest in data),
        vectors=len(vectors),
        position_files=len(positions),
        equality_files=len(delete_files) - len(vectors) - len(positions),
        delete_bytes=sum(manifest.size for manifest in deletes),
        deleted_rows=sum(file.rows for file in vectors if file.data_file not in removed)
        + sum(file.rows for file in positions),
    )


def live_files(
    manifests: Sequence[ManifestContent], times: Mapping[int, int] = MappingProxyType({})
) -> Iterator[LiveFile]:
    """Yield the live data files, each with the deletes that apply to it.

    `times` contains, by sequence number, when rows were added, in milliseconds since 1970.
    """
    deletes = _DeleteIndex(each for each in manifests if each.lists_deletes)
    for manifest in manifests:
        if manifest.lists_deletes:
            continue
        for file in manifest.live():
            yield LiveFile(
                path=file.path,
                size=file.size,
                rows=file.rows,
                partition=file.partition,
                deletes=deletes.applying_to(file, manifest.spec_id),
                format=file.format,
                added=times[file.sequence] * 1000 if file.sequence in times else None,
            )


class _DeleteIndex:
    """Delete files by the data files that they apply to."""

    def __init__(self, manifests: Iterable[ManifestContent]) -> None:
        self._by_file: dict[str, list[ManifestFile]] = {}
        self._by_partition: dict[object, list[ManifestFile]] = {}
        self._global: list[ManifestFile] = []
        for manifest in manifests:
            for file in manifest.live():
                if file.data_file is not None:
                    self._by_file.setdefault(file.data_file, []).append(file)
                elif file.content != _POSITION_DELETES and not file.partition:
                    self._global.append(file)
                else:
                    key = manifest.spec_id, file.partition
                    self._by_partition.setdefault(key, []).append(file)

    def applying_to(self, data: ManifestFile, spec_id: int) -> tuple[RowDeletes, ...]:
        """The deletes that apply to a data file."""
        file_deletes = self._by_file.get(data.path, ())
        vectors = [file for file in file_deletes if file.format == _VECTOR_FORMAT]
        partition_deletes = self._by_partition.get((spec_id, data.partition), ())
        # A vector replaces earlier position deletes.
        others = [
            file
            for file in (*file_deletes, *partition_deletes)
            if file.format != _VECTOR_FORMAT and not (vectors and file.content == _POSITION_DELETES)
        ]
        candidates = (*vectors, *self._global, *others)
        return tuple(_row_deletes(file) for file in candidates if _applies(file, data))


def _applies(deletes: ManifestFile, data: ManifestFile) -> bool:
    """Whether a delete file applies to a data file: it does if it was committed later.

    Position deletes also apply to data files of the same commit.
    """
    if deletes.content == _POSITION_DELETES:
        return deletes.sequence >= data.sequence
    return deletes.sequence > data.sequence


def _row_deletes(file: ManifestFile) -> RowDeletes:
    kind: Literal["dv", "positions", "equality"] = "equality"
    if file.format == _VECTOR_FORMAT:
        kind = "dv"
    elif file.content == _POSITION_DELETES:
        kind = "positions"
    return RowDeletes(
        kind=kind,
        path=file.path,
        offset=file.offset or 0,
        length=file.length or file.size,
        count=file.rows,
    )
