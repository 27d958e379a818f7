"""Reads Iceberg tables, versions 1 to 3, from their metadata files."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

import msgspec

from lumos.formats.interface import Remark
from lumos.formats.tables.iceberg.history import EarlierMetadata, IcebergHistory
from lumos.formats.tables.iceberg.manifests import (
    LiveCounts,
    ManifestContent,
    ManifestReader,
    UnreachableManifests,
    count_live_files,
    live_files,
)
from lumos.formats.tables.iceberg.metadata import (
    METADATA_FOLDER,
    NO_SNAPSHOT,
    IcebergMetadata,
    IcebergSnapshot,
    current_metadata,
    location_elsewhere,
    metadata_path,
    metadata_signature,
    time_from_ms,
)
from lumos.formats.tables.iceberg.schema import (
    IcebergSchema,
    iceberg_schema,
    identity_columns,
    partition_columns,
    sort_columns,
    unknown_transforms,
)
from lumos.formats.tables.interface import (
    LiveFile,
    TableFacts,
    TableFeature,
    TableFolder,
    TableKind,
    TableReader,
    remarks_on_features,
    without_secrets,
)

# The properties with the folders of data files.
_DATA_PATHS: Final = (
    "write.data.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)
_MAX_FILES: Final = 10_000


def find_outside_locations(
    manifests: Sequence[ManifestContent], metadata: IcebergMetadata, root: str
) -> tuple[str, ...]:
    """The URIs of the table's folders and files outside of its root, as in the metadata.

    A configured data folder belongs entirely to the table. Other folders may also contain files of
    other datasets, so the table's files in them are listed one by one, unless there are very many.
    """
    properties = metadata.properties or {}
    configured = [properties.get(name) for name in _DATA_PATHS]
    paths = [path.rstrip("/") for path in configured if isinstance(path, str)]
    folders = {folder for manifest in manifests for folder in manifest.outside}
    used_paths = {path for path in paths if any(is_below(folder, path) for folder in folders)}
    others = {
        folder for folder in folders if not any(is_below(folder, path) for path in used_paths)
    }
    files = set()
    for file in _files_outside(manifests, others):
        files.add(file)
        if len(files) > _MAX_FILES:
            return _outermost_locations(used_paths | others, root)
    return _outermost_locations(used_paths | files, root)


def _files_outside(manifests: Sequence[ManifestContent], folders: set[str]) -> Iterator[str]:
    for manifest in manifests:
        if folders.intersection(manifest.outside):
            for file in manifest.live():
                if file.is_outside and any(is_below(file.path, folder) for folder in folders):
                    yield file.path


def _outermost_locations(locations: set[str], root: str) -> tuple[str, ...]:
    """The locations that are not inside other locations and do not contain the table."""
    outermost: dict[str, str] = {}
    for location in sorted(locations, key=lambda each: (len(each), each)):
        if not is_below(root, location) and not any(
            path in outermost for path in _path_and_parents(location)
        ):
            outermost[_without_scheme(location)] = location
    return tuple(sorted(outermost.values()))


def _path_and_parents(location: str) -> Iterator[str]:
    """Yield the location and all folders above it, without the scheme."""
    path = _without_scheme(location)
    while path:
        yield path
        path = path.rpartition("/")[0]


def is_below(location: str, other: str) -> bool:
    """Whether a location is the same as another location, or inside of it."""
    return f"{_without_scheme(location)}/".startswith(f"{_without_scheme(other)}/")


def _without_scheme(uri: str) -> str:
    """The URI without its scheme: one location may have several, such as `s3:` and `s3a:`."""
    return uri.partition("://")[2] or uri.removeprefix("file:")


_MAX_VERSION: Final = 3


def table_features(
    metadata: IcebergMetadata, schema: IcebergSchema, counts: LiveCounts
) -> tuple[TableFeature, ...]:
    """The features by name, and whether they are supported."""
    features: list[TableFeature] = []
    if metadata.format_version >= _MAX_VERSION:
        known = metadata.format_version == _MAX_VERSION
        features.append(TableFeature(f"format v{metadata.format_version}", known))
    features.extend(
        TableFeature(f"type {name}", read) for name, read in sorted(schema.new_types.items())
    )
    if schema.has_defaults:
        features.append(TableFeature("default values", True))
    if metadata.next_row_id is not None:
        features.append(TableFeature("row lineage", True))
    specs = [*metadata.specs.values(), *(metadata.sort_orders or ())]
    if any(len(field.sources) > 1 for spec in specs for field in spec.fields):
        features.append(TableFeature("transforms of several columns", True))
    features.extend(
        TableFeature(f"transform {name}", False) for name in sorted(unknown_transforms(specs))
    )
    if metadata.encryption_keys:
        features.append(TableFeature("encryption", False))
    if counts.vectors:
        features.append(TableFeature("deletion vectors", True))
    if counts.position_files:
        features.append(TableFeature("position deletes", True))
    if counts.equality_files:
        features.append(TableFeature("equality deletes", False))
    return tuple(features)


_COMMENT: Final = "comment"


def table_properties(
    metadata: IcebergMetadata, schema: IcebergSchema, counts: LiveCounts
) -> tuple[dict[str, str], str | None]:
    """The properties by name, and the description of the table."""
    properties = without_secrets(
        {str(name): str(value) for name, value in (metadata.properties or {}).items()}
    )
    description = properties.pop(_COMMENT, None)
    derived = {
        "iceberg.format-version": str(metadata.format_version),
        "iceberg.sort-order": ", ".join(sort_columns(metadata.current_order, schema.paths)),
        "iceberg.identifier-fields": ", ".join(schema.nested_keys),
        "iceberg.branches": _references(metadata, "branch"),
        "iceberg.tags": _references(metadata, "tag"),
        "iceberg.delete-files": str(
            counts.vectors + counts.position_files + counts.equality_files or ""
        ),
        "iceberg.delete-bytes": str(counts.delete_bytes or ""),
    }
    properties.update((name, text) for name, text in derived.items() if text)
    return properties, description or None


def _references(metadata: IcebergMetadata, type: str) -> str:
    """The branches or tags and their snapshots, without the main branch."""
    return ", ".join(
        f"{name} at {reference.snapshot_id}"
        for name, reference in sorted((metadata.refs or {}).items())
        if reference.type == type and name != "main"
    )


# Increment this when the layout changes; states with another layout are ignored.
_LAYOUT: Final = 2
_MAX_SNAPSHOT_TIMES: Final = 10_000


class _SavedState(msgspec.Struct, frozen=True, array_like=True):
    """The state that the next read continues from."""

    layout: int
    location: str
    manifests: tuple[ManifestContent, ...]
    # Earlier metadata files by name.
    log: dict[str, EarlierMetadata]
    # The name of the metadata file that was current.
    current: str = ""
    # When snapshots added rows, by sequence number; includes snapshots that have expired since.
    times: dict[int, int] = {}


_STATE_DECODER: Final = msgspec.msgpack.Decoder(_SavedState)


class IcebergReader(TableReader):
    kind: ClassVar[TableKind] = "iceberg"
    title: ClassVar[str] = "Iceberg"

    def signature(self, folder: TableFolder) -> str:
        return metadata_signature(folder)

    def read(
        self, folder: TableFolder, saved_state: bytes | None, *, max_commits: int
    ) -> tuple[TableFacts, bytes]:
        earlier = _decode_saved_state(saved_state)
        current = current_metadata(folder, last_name=earlier.current)
        metadata = current.metadata
        location = _recorded_root(metadata)
        # If the table was moved, the relative paths in the saved state are invalid.
        usable_state = (
            earlier if earlier.location == location else _SavedState(_LAYOUT, location, (), {})
        )
        snapshot = metadata.current_snapshot
        manifests, remarks = _read_manifests(folder, metadata, snapshot, usable_state)
        counts = count_live_files(manifests) if not remarks else _counts_from_summary(snapshot)
        spec = metadata.current_spec
        schema = iceberg_schema(metadata.current_schema, identity_columns(spec))
        history = IcebergHistory(folder, current, usable_state.log)
        schema_versions = history.schema_versions(identity_columns(spec), max_commits=max_commits)
        features = table_features(metadata, schema, counts)
        properties, description = table_properties(metadata, schema, counts)
        identity = (metadata.table_uuid, None if snapshot is None else snapshot.snapshot_id)
        content = hashlib.blake2b(repr(identity).encode(), digest_size=16)
        facts = TableFacts(
            kind=self.kind,
            version=NO_SNAPSHOT if snapshot is None else str(snapshot.snapshot_id),
            at=time_from_ms(_current_since(metadata, snapshot)),
            operation=None if snapshot is None else snapshot.operation,
            schema=schema.schema,
            partition_by=partition_columns(spec, schema.paths),
            files=counts.files,
            bytes=counts.bytes,
            rows=counts.live_rows,
            rows_exact=counts.rows_exact and not remarks,
            properties=properties,
            description=description,
            identity=metadata.table_uuid or "",
            past=schema_versions,
            features=features,
            remarks=(*current.remarks, *remarks, *remarks_on_features(features)),
            outside_locations=find_outside_locations(manifests, metadata, folder.root),
            table_location=location_elsewhere(folder, metadata),
            content=content.hexdigest(),
        )
        times = _snapshot_times(metadata, usable_state.times)
        new_state = _SavedState(
            _LAYOUT, location, tuple(manifests), history.opened, current.name, times
        )
        return facts, msgspec.msgpack.encode(new_state)

    def live(self, saved_state: bytes) -> Iterator[LiveFile]:
        known = _STATE_DECODER.decode(saved_state)
        return live_files(known.manifests, known.times)


def _snapshot_times(metadata: IcebergMetadata, known: Mapping[int, int]) -> dict[int, int]:
    """The times of snapshots that added rows, by sequence number, which version 1 does not have."""
    times = {
        each.sequence_number: each.timestamp_ms
        for each in metadata.snapshots or ()
        # The operation `replace` only rearranges rows.
        if each.sequence_number > 0 and each.timestamp_ms > 0 and each.operation != "replace"
    }
    newest = sorted({**known, **times}.items())[-_MAX_SNAPSHOT_TIMES:]
    return dict(newest)


def _decode_saved_state(saved_state: bytes | None) -> _SavedState:
    empty = _SavedState(_LAYOUT, "", (), {})
    try:
        decoded = _STATE_DECODER.decode(saved_state or b"")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return empty
    return decoded if decoded.layout == _LAYOUT else empty


def _recorded_root(metadata: IcebergMetadata) -> str:
    """The root in the metadata: the parent of the folder with the metadata."""
    path = metadata_path(metadata)
    return (
        path.removesuffix(f"/{METADATA_FOLDER}")
        if path.endswith(f"/{METADATA_FOLDER}")
        else metadata.location
    )


def _read_manifests(
    folder: TableFolder,
    metadata: IcebergMetadata,
    snapshot: IcebergSnapshot | None,
    earlier: _SavedState,
) -> tuple[list[ManifestContent], tuple[Remark, ...]]:
    """The contents of the manifests, or a remark if they cannot be read."""
    if snapshot is None:
        return [], ()
    reader = ManifestReader(folder, earlier.location, metadata.specs)
    try:
        known = {manifest.path: manifest for manifest in earlier.manifests}
        return list(reader.contents(reader.manifests(snapshot), known)), ()
    except UnreachableManifests as problem:
        return [], (
            Remark(
                "outside_data",
                f"Its sizes come from the summary of its writer, because {problem}.",
            ),
        )


def _counts_from_summary(snapshot: IcebergSnapshot | None) -> LiveCounts:
    if snapshot is None:
        return LiveCounts()
    return LiveCounts(
        files=snapshot.total("total-data-files") or 0,
        bytes=snapshot.total("total-files-size") or 0,
        rows=snapshot.total("total-records") or 0,
        deleted_rows=snapshot.total("total-position-deletes") or 0,
    )


def _current_since(metadata: IcebergMetadata, snapshot: IcebergSnapshot | None) -> int:
    """When the snapshot became current: after a rollback, this is later than its own time."""
    if snapshot is None:
        return metadata.last_updated_ms
    for last in (metadata.snapshot_log or [])[-1:]:
        if last.snapshot_id == snapshot.snapshot_id:
            return last.timestamp_ms
    return snapshot.timestamp_ms
