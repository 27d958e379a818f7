"""Checkpoints: the state of a table at one version, in one file, in parts, or with sidecars."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import unquote

import msgspec
import pyarrow as pa

from lumos.formats.tables.delta.actions import (
    LONGEST_PATH,
    Action,
    Add,
    Damaged,
    DeletionVector,
    Domain,
    Metadata,
    Protocol,
    Sidecar,
    actions_of,
    rows_of,
)
from lumos.formats.tables.delta.log import FOLDER, SIDECARS, Checkpoint, in_log
from lumos.formats.tables.delta.state import State
from lumos.formats.tables.interface import Folder
from lumos.formats.tables.parquet_rows import FAULTS, ParquetRows, is_below

_BATCH: Final = 10_000
_FILES: Final = ("path", "size", "partitionValues", "deletionVector", "stats")
_ROWS_PARSED: Final = "stats_parsed.numRecords"
_SMALL: Final[dict[str, tuple[str, ...]]] = {
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
_Part = TypeVar("_Part", Metadata, Protocol, Domain, Sidecar, DeletionVector)


def load(folder: Folder, checkpoint: Checkpoint, state: State, *, files: bool = True) -> None:
    """Puts a checkpoint's actions into the state, with or without its files; raises Damaged."""
    sidecars: list[str] = []
    for name, data in _contents(folder, [in_log(name) for name in checkpoint.names]):
        _load(name, data, state, sidecars, files=files)
    if files:
        for name, data in _contents(folder, [_sidecar(folder, each) for each in sidecars]):
            _load(name, data, state, [], files=True)


def _sidecar(folder: Folder, address: str) -> str:
    """Where a sidecar lies: it is named, or has an address, which may only be in the log."""
    plain = unquote(address)
    path = folder.inside(plain, folder.root) if "/" in plain else f"{SIDECARS}/{plain}"
    if path is None or not path.startswith(f"{FOLDER}/") or ".." in path.split("/"):
        raise Damaged(f"its sidecar '{plain}' lies elsewhere")
    return path


def _contents(folder: Folder, paths: list[str]) -> Iterator[tuple[str, bytes]]:
    for path, data in zip(paths, folder.read_many(paths), strict=True):
        if isinstance(data, FileNotFoundError):
            raise Damaged(f"'{path}' is gone")
        if isinstance(data, OSError):
            raise data
        yield path, data


def _load(name: str, data: bytes, state: State, sidecars: list[str], *, files: bool) -> None:
    try:
        actions = _lines(data) if name.endswith(".json") else _rows(data, files=files)
        for action, rows in actions:
            if action.sidecar is not None:
                sidecars.append(action.sidecar.path)
            elif action.add is not None:
                state.add(action.add, rows)
            elif action.remove is None:
                state.apply(action)
    except Damaged as problem:
        raise Damaged(f"'{name}': {problem}") from None


def _lines(data: bytes) -> Iterator[tuple[Action, int | None]]:
    for action in actions_of(data):
        yield action, rows_of(action.add.stats) if action.add else None


def _rows(data: bytes, *, files: bool) -> Iterator[tuple[Action, int | None]]:
    """The actions of a Parquet file, each with the number of rows of the file that it adds."""
    try:
        file = ParquetRows(data)
        columns = _columns(file.columns, files=files)
        for batch in file.batches(columns, rows=_BATCH):
            names = batch.schema.names
            if "add" in names:
                yield from _adds(batch.column("add"))
            yield from _others(batch, names)
    except FAULTS as problem:
        raise Damaged(f"it is no whole checkpoint: {problem}") from None


def _columns(there: list[str], *, files: bool) -> list[str]:
    wanted = [f"{action}.{part}" for action, parts in _SMALL.items() for part in parts]
    if files:
        wanted += [f"add.{part}" for part in _FILES]
        if any(is_below(path, f"add.{_ROWS_PARSED}") for path in there):
            wanted.append(f"add.{_ROWS_PARSED}")
    columns = [name for name in wanted if any(is_below(path, name) for path in there)]
    if not any(name.startswith(("add.", "metaData.")) for name in columns):
        raise Damaged("it holds no actions")
    return columns


def _adds(adds: pa.StructArray) -> Iterator[tuple[Action, int | None]]:
    kept = adds.filter(adds.is_valid())
    if not len(kept):
        return
    columns = {field.name: _child(kept, field.name) for field in kept.type}
    count = len(kept)
    nothing: list[Any] = [None] * count
    partitions = columns["partitionValues"].to_pylist() if "partitionValues" in columns else nothing
    vectors = columns.get("deletionVector")
    for path, size, partition, vector, rows in zip(
        columns["path"].to_pylist(),
        columns["size"].to_pylist(),
        partitions,
        nothing if vectors is None or vectors.null_count == count else vectors.to_pylist(),
        _row_counts(columns, count),
        strict=True,
    ):
        if path is None or size is None or size < 0 or len(path) > LONGEST_PATH:
            raise Damaged("a file in it has no path or size, or an impossible one")
        add = Add(
            path=path,
            size=size,
            partition_values=dict(partition) if partition else None,
            deletion_vector=vector and _converted(vector, DeletionVector),
        )
        yield Action(add=add), rows


def _child(array: pa.StructArray, name: str) -> pa.Array:
    # Unlike `field`, it lets what is null in the struct be null in its parts.
    return array.flatten()[array.type.get_field_index(name)]


def _row_counts(columns: Mapping[str, pa.Array], count: int) -> list[int | None]:
    """As the statistics tell, which stand in a text, or taken apart, or nowhere."""
    parsed: list[int | None] = [None] * count
    if "stats_parsed" in columns:
        parsed = _child(columns["stats_parsed"], "numRecords").to_pylist()
    if "stats" not in columns or None not in parsed:
        return parsed
    texts = columns["stats"].to_pylist()
    pairs = zip(parsed, texts, strict=True)
    return [rows_of(text) if rows is None else rows for rows, text in pairs]


def _others(batch: pa.RecordBatch, names: list[str]) -> Iterator[tuple[Action, None]]:
    for name in _SMALL.keys() & set(names):
        array = batch.column(name)
        for value in array.filter(array.is_valid()).to_pylist():
            match name:
                case "metaData":
                    told = {**value, "configuration": dict(value.get("configuration") or ())}
                    action = Action(meta_data=_converted(told, Metadata))
                case "protocol":
                    action = Action(protocol=_converted(value, Protocol))
                case "domainMetadata":
                    action = Action(domain_metadata=_converted(value, Domain))
                case _:
                    action = Action(sidecar=_converted(value, Sidecar))
            yield action, None


def _converted(value: Any, kind: type[_Part]) -> _Part:
    # What a writer left out of a row stands there as a null.
    given = {key: each for key, each in value.items() if each is not None}
    return msgspec.convert(given, kind)
