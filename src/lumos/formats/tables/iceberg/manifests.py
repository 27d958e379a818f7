"""Manifest lists and manifests: which files are live.

A manifest never changes. So what one tells is kept, and only new ones are opened.
"""

import zlib
from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec

from lumos.formats.interface import UnreadableFile
from lumos.formats.tables.containers import Container
from lumos.formats.tables.iceberg.metadata import Snapshot, Spec, SpecField, broken
from lumos.formats.tables.iceberg.parquet_manifests import MAGIC, ParquetManifest
from lumos.formats.tables.iceberg.words import partition_text
from lumos.formats.tables.interface import Folder
from lumos.formats.varints import Malformed
from lumos.model.conversions.json_values import number_at, objects_at

_LONGEST_FILE: Final = 256 * 1024 * 1024
_DELETED: Final = 2
_ADDED: Final = 1
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


class OutOfReach(Exception):
    """Manifests that this table has but that cannot be read here; the reason is for people."""


class Manifest(msgspec.Struct, frozen=True):
    """A manifest as a list of them tells of it."""

    manifest_path: str
    manifest_length: int = 0
    partition_spec_id: int = 0
    content: int | None = 0
    sequence_number: int | None = 0

    @property
    def holds_deletes(self) -> bool:
        return self.content == _DELETES


class LiveRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A live data or delete file; a path is relative to the root where it lies inside."""

    path: str
    size: int
    rows: int
    format: str
    sequence: int
    partition: tuple[tuple[str, str | None], ...] = ()
    # 0 data, 1 deleted positions, 2 deleted values.
    content: int = 0
    referenced: str | None = None
    offset: int | None = None
    length: int | None = None
    is_outside: bool = False


class Part(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a manifest; its files are packed, since there may be millions."""

    path: str
    length: int
    spec_id: int
    deletes: bool
    files: int
    size: int
    rows: int
    # Folders outside the root in which files lie.
    outside: tuple[str, ...]
    packed: bytes

    def live(self) -> Iterator[LiveRow]:
        """The files of the manifest that count."""
        yield from _ROWS.decode(zlib.decompress(self.packed))


_ROWS: Final = msgspec.msgpack.Decoder(list[LiveRow])


_Count = Annotated[int, msgspec.Meta(ge=0)]


class _DataFile(msgspec.Struct, frozen=True):
    file_path: str
    file_format: str
    record_count: _Count
    file_size_in_bytes: _Count
    # Parquet has no records without fields.
    partition: dict[str, Any] = {}
    content: int | None = 0
    content_offset: _Count | None = None
    content_size_in_bytes: _Count | None = None
    referenced_data_file: str | None = None


class _Entry(msgspec.Struct, frozen=True):
    status: int
    data_file: _DataFile
    sequence_number: int | None = None


class Manifests:
    """Reads the manifests of a table that believes to lie at `location`."""

    def __init__(self, folder: Folder, location: str, specs: dict[int, Spec]) -> None:
        self._folder = folder
        self._location = location
        self._specs = specs

    def of(self, snapshot: Snapshot) -> list[Manifest]:
        """The manifests of a snapshot; raises UnreadableFile and OutOfReach."""
        if snapshot.key_id is not None:
            raise OutOfReach("its manifests are encrypted")
        if snapshot.manifest_list is None:
            return [Manifest(path) for path in snapshot.manifests or ()]
        path = self._inside(snapshot.manifest_list)
        try:
            data = self._folder.read(path)
        except FileNotFoundError:
            raise _gone(path) from None
        if data.startswith(MAGIC):
            raise OutOfReach("its list of manifests is Parquet, which no version up to 4 has")
        container = _opened(data, path)
        try:
            return [msgspec.convert(each, Manifest) for each in container.records(_LIST_FIELDS)]
        except (Malformed, msgspec.ValidationError) as problem:
            raise _damaged(path, problem) from None

    def parts(self, manifests: list[Manifest], known: dict[str, Part]) -> Iterator[Part]:
        """What the manifests tell; raises UnreadableFile and OutOfReach."""
        paths = [self._inside(each.manifest_path) for each in manifests]
        fresh = []
        for path, manifest in zip(paths, manifests, strict=True):
            if manifest.manifest_length > _LONGEST_FILE:
                raise broken(f"{path} is longer than {_LONGEST_FILE // 2**20} MB")
            if not _is_same(known.get(path), manifest):
                fresh.append(path)
        contents = self._folder.read_many(fresh)
        for path, manifest in zip(paths, manifests, strict=True):
            kept = known.get(path)
            if kept is not None and _is_same(kept, manifest):
                yield kept
                continue
            content = next(contents)
            if isinstance(content, FileNotFoundError):
                raise _gone(path)
            if isinstance(content, OSError):
                raise content
            yield self._part(path, manifest, content)

    def _inside(self, uri: str) -> str:
        path = self._place(uri)
        if path is None or ".." in path.split("/"):
            raise OutOfReach(f"its manifests lie elsewhere ({uri.rpartition('/')[0]})")
        return path

    def _place(self, uri: str) -> str | None:
        """The path below the root; version 4 may say that itself instead of an address."""
        is_address = uri.startswith(("/", "file:")) or "://" in uri
        return self._folder.inside(uri, self._location) if is_address else uri

    def _part(self, path: str, manifest: Manifest, data: bytes) -> Part:
        container = _opened(data, path)
        # It says so itself, too; snapshots of the first version name it without its spec.
        told = container.metadata.get("partition-spec-id", b"")
        spec_id = int(told) if told.isdigit() and len(told) < 10 else manifest.partition_spec_id
        spec = self._specs.get(spec_id) or Spec()
        partition = _Partition(container.partition_fields, spec)
        rows: list[LiveRow] = []
        outside: set[str] = set()
        try:
            for record in container.records(_ENTRY_FIELDS):
                entry = msgspec.convert(record, _Entry)
                if bool(entry.data_file.content) != manifest.holds_deletes:
                    raise Malformed("It mixes data and delete files.")
                if entry.status != _DELETED:
                    rows.append(self._row(entry, manifest, partition, outside))
        except (Malformed, msgspec.ValidationError) as problem:
            raise _damaged(path, problem) from None
        return Part(
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
        self, entry: _Entry, manifest: Manifest, partition: "_Partition", outside: set[str]
    ) -> LiveRow:
        file = entry.data_file
        inside = self._place(file.file_path)
        if inside is None:
            outside.add(_folder_of(file.file_path))
        elif ".." in inside.split("/"):
            raise Malformed("A path leads out of the table.")
        sequence = entry.sequence_number
        if sequence is None:
            # Written before its commit had a number; the manifest has it.
            sequence = (manifest.sequence_number or 0) if entry.status == _ADDED else 0
        referenced = file.referenced_data_file
        if referenced is not None:
            referenced = self._place(referenced) or referenced
        return LiveRow(
            path=file.file_path if inside is None else inside,
            size=file.file_size_in_bytes,
            rows=file.record_count,
            format=file.file_format.lower(),
            sequence=sequence,
            partition=partition.of(file.partition),
            content=file.content or 0,
            referenced=referenced,
            offset=file.content_offset,
            length=file.content_size_in_bytes,
            is_outside=inside is None,
        )


class _Partition:
    """Names and texts of a manifest's partition values; equal ones are made once."""

    def __init__(self, fields: list[dict[str, Any]], spec: Spec) -> None:
        by_id = {each.field_id: each for each in spec.fields if each.field_id is not None}
        by_name = {field.name: field for field in spec.fields}
        self._fields: dict[str, tuple[SpecField, object]] = {}
        for field in fields:
            name = field["name"]
            id = number_at(field, "field-id")
            meant = by_name.get(name) if id is None else by_id.get(id, by_name.get(name))
            meant = meant or SpecField(name=name)
            self._fields[name] = meant, field.get("type")
        self._known: dict[tuple[Any, ...], tuple[tuple[str, str | None], ...]] = {}

    def of(self, values: dict[str, Any]) -> tuple[tuple[str, str | None], ...]:
        key = tuple(values.values())
        if any(isinstance(value, list | dict) for value in key):
            raise Malformed("A value of a partition is none.")
        found = self._known.get(key)
        if found is None:
            found = tuple(
                (meant.name or name, partition_text(values.get(name), meant.transform, type))
                for name, (meant, type) in self._fields.items()
                if meant.transform != "void"
            )
            self._known[key] = found
        return found


def _is_same(kept: Part | None, manifest: Manifest) -> bool:
    return (
        kept is not None
        and kept.length == manifest.manifest_length
        and kept.deletes == manifest.holds_deletes
    )


def _folder_of(uri: str) -> str:
    """Where a file lies, without the folders of its partition."""
    folder = uri.rpartition("/")[0]
    while "=" in folder.rpartition("/")[2]:
        folder = folder.rpartition("/")[0]
    return folder


class _AvroManifest(Container):
    @property
    def partition_fields(self) -> list[dict[str, Any]]:
        """The fields of the record inside `data_file` that holds partition values."""
        schema = self.schema
        for name in ("data_file", "partition"):
            schema = next((f.get("type") for f in _fields(schema) if f.get("name") == name), None)
        return _fields(schema)


def _fields(record: Any) -> list[dict[str, Any]]:
    return objects_at(record, "fields") if isinstance(record, dict) else []


def _opened(data: bytes, path: str) -> _AvroManifest | ParquetManifest:
    if data.startswith(_ENCRYPTED):
        raise OutOfReach("its manifests are encrypted")
    try:
        return ParquetManifest(data) if data.startswith(MAGIC) else _AvroManifest(data)
    except Malformed as problem:
        raise _damaged(path, problem) from None


def _damaged(path: str, problem: Exception) -> UnreadableFile:
    return broken(f"{path} is damaged: {problem}")


def _gone(path: str) -> UnreadableFile:
    return broken(f"{path} is gone, which its current snapshot is made of")
