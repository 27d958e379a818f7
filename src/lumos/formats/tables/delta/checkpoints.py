"""Checkpoints: the state of a table at a version, in one file, in parts, or with sidecars."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import unquote

import msgspec
import pyarrow as pa

from lumos.formats.tables.delta.log import (
    FOLDER,
    MAX_PATH_LENGTH,
    SIDECARS,
    Action,
    Add,
    CorruptDeltaLog,
    DeletionVector,
    DeltaCheckpoint,
    DeltaMetadata,
    DeltaProtocol,
    DomainMetadata,
    Sidecar,
    log_path,
    read_actions,
    row_count_in,
)
from lumos.formats.tables.delta.state import DeltaState
from lumos.formats.tables.interface import TableFolder
from lumos.formats.tables.parquet_rows import READ_ERRORS, ParquetRows, is_below

_BATCH_SIZE: Final = 10_000
_ADD_COLUMNS: Final = (
    "path", "size", "partitionValues", "deletionVector", "stats", "modificationTime",
)  # fmt: skip
_PARSED_ROW_COUNT: Final = "stats_parsed.numRecords"
_OTHER_ACTIONS: Final[dict[str, tuple[str, ...]]] = {
    "metaData": (
        "id",
        "name",
        "description",
        "format.provider",
        "schemaString",
        "partitionColumns",
        "configuration",
    ),
    "protocol": ("minReaderVersion", "minWriterVersion", "readerFeatures", "writerFeatures"),
    "domainMetadata": ("domain", "configuration", "removed"),
    "sidecar": ("path",),
}
_Part = TypeVar("_Part", DeltaMetadata, DeltaProtocol, DomainMetadata, Sidecar, DeletionVector)


def load_checkpoint(
    folder: TableFolder, checkpoint: DeltaCheckpoint, state: DeltaState, *, files: bool = True
) -> None:
    """Apply a checkpoint to the state; raises CorruptDeltaLog.

    Without `files`, only the other actions are applied, such as the schema.
    """
    sidecars: list[str] = []
    for name, data in _read_files(folder, [log_path(name) for name in checkpoint.names]):
        _load(name, data, state, sidecars, files=files)
    if files:
        for name, data in _read_files(folder, [_sidecar_path(folder, each) for each in sidecars]):
            _load(name, data, state, [], files=True)


def _sidecar_path(folder: TableFolder, name_or_uri: str) -> str:
    """The path of a sidecar; a URI has to be inside of the log."""
    address = unquote(name_or_uri)
    path = folder.inside(address, folder.root) if "/" in address else f"{SIDECARS}/{address}"
    if path is None or not path.startswith(f"{FOLDER}/") or ".." in path.split("/"):
        raise CorruptDeltaLog(f"its sidecar '{address}' is outside of the log")
    return path


def _read_files(folder: TableFolder, paths: list[str]) -> Iterator[tuple[str, bytes]]:
    for path, data in zip(paths, folder.read_many(paths), strict=True):
        if isinstance(data, FileNotFoundError):
            raise CorruptDeltaLog(f"'{path}' is missing")
        if isinstance(data, OSError):
            raise data
        yield path, data


def _load(name: str, data: bytes, state: DeltaState, sidecars: list[str], *, files: bool) -> None:
    try:
        actions: Iterable[tuple[Action, int | None]] = (
            (
                (action, row_count_in(action.add.stats) if action.add else None)
                for action in read_actions(data)
            )
            if name.endswith(".json")
            else _actions_in_parquet(data, files=files)
        )
        for action, rows in actions:
            if action.sidecar is not None:
                sidecars.append(action.sidecar.path)
            elif action.add is not None:
                state.add(action.add, rows)
            elif action.remove is None:
                state.apply(action)
    except CorruptDeltaLog as problem:
        raise CorruptDeltaLog(f"'{name}': {problem}") from None


def _actions_in_parquet(data: bytes, *, files: bool) -> Iterator[tuple[Action, int | None]]:
    """Yield the actions in a Parquet file, each with the row count of the file that it adds."""
    try:
        file = ParquetRows(data)
        columns = _columns_to_read(file.columns, files=files)
        for batch in file.batches(columns, rows=_BATCH_SIZE):
            names = batch.schema.names
            if "add" in names:
                yield from _add_actions(batch.column("add"))
            yield from _other_actions(batch, names)
    except READ_ERRORS as problem:
        raise CorruptDeltaLog(f"it is not a complete checkpoint: {problem}") from None


def _columns_to_read(existing: list[str], *, files: bool) -> list[str]:
    selected = [f"{action}.{part}" for action, parts in _OTHER_ACTIONS.items() for part in parts]
    if files:
        selected += [f"add.{part}" for part in _ADD_COLUMNS]
        if any(is_below(path, f"add.{_PARSED_ROW_COUNT}") for path in existing):
            selected.append(f"add.{_PARSED_ROW_COUNT}")
    columns = [name for name in selected if any(is_below(path, name) for path in existing)]
    if not any(name.startswith(("add.", "metaData.")) for name in columns):
        raise CorruptDeltaLog("it contains no actions")
    return columns


def _add_actions(adds: pa.StructArray) -> Iterator[tuple[Action, int | None]]:
    valid = adds.filter(adds.is_valid())
    if not len(valid):
        return
    columns = {field.name: _child(valid, field.name) for field in valid.type}
    count = len(valid)
    nulls: list[Any] = [None] * count
    partitions = columns["partitionValues"].to_pylist() if "partitionValues" in columns else nulls
    vectors = columns.get("deletionVector")
    times = columns["modificationTime"].to_pylist() if "modificationTime" in columns else nulls
    for path, size, partition, vector, rows, time in zip(
        columns["path"].to_pylist(),
        columns["size"].to_pylist(),
        partitions,
        nulls if vectors is None or vectors.null_count == count else vectors.to_pylist(),
        _row_counts(columns, count),
        times,
        strict=True,
    ):
        if path is None or size is None or size < 0 or len(path) > MAX_PATH_LENGTH:
            raise CorruptDeltaLog("a file in it has no path or size, or an invalid one")
        add = Add(
            path=path,
            size=size,
            partition_values=dict(partition) if partition else None,
            deletion_vector=vector and _convert(vector, DeletionVector),
            modification_time=time if isinstance(time, int) else None,
        )
        yield Action(add=add), rows


def _child(array: pa.StructArray, name: str) -> pa.Array:
    # Unlike `field`, `flatten` makes members of null structs null.
    return array.flatten()[array.type.get_field_index(name)]


def _row_counts(columns: Mapping[str, pa.Array], count: int) -> list[int | None]:
    """The row counts in the statistics, which may be JSON, a struct or missing."""
    parsed: list[int | None] = [None] * count
    if "stats_parsed" in columns:
        parsed = _child(columns["stats_parsed"], "numRecords").to_pylist()
    if "stats" not in columns or None not in parsed:
        return parsed
    texts = columns["stats"].to_pylist()
    pairs = zip(parsed, texts, strict=True)
    return [row_count_in(text) if rows is None else rows for rows, text in pairs]


def _other_actions(batch: pa.RecordBatch, names: list[str]) -> Iterator[tuple[Action, None]]:
    for name in _OTHER_ACTIONS.keys() & set(names):
        array = batch.column(name)
        for value in array.filter(array.is_valid()).to_pylist():
            match name:
                case "metaData":
                    settings = dict(value.get("configuration") or ())
                    metadata = {**value, "configuration": settings}
                    action = Action(meta_data=_convert(metadata, DeltaMetadata))
                case "protocol":
                    action = Action(protocol=_convert(value, DeltaProtocol))
                case "domainMetadata":
                    action = Action(domain_metadata=_convert(value, DomainMetadata))
                case _:
                    action = Action(sidecar=_convert(value, Sidecar))
            yield action, None


def _convert(value: Any, kind: type[_Part]) -> _Part:
    # In Parquet, missing fields are null.
    present = {key: each for key, each in value.items() if each is not None}
    return msgspec.convert(present, kind)
