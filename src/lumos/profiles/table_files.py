"""The live files of a table, each with what its log says of its rows."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from lumos.discovery.tables import Memory, live_files
from lumos.formats.tables import LiveFile, TableFacts
from lumos.formats.tables.iceberg.schema import INITIAL_DEFAULT
from lumos.formats.tables.interface import Deletes
from lumos.model.discovery import Problem
from lumos.model.json_codec import from_json
from lumos.model.schema import Schema
from lumos.model.types import Array, Map, Struct
from lumos.profiles.column_names import KnownField, known_fields
from lumos.profiles.columns import kind_of_values
from lumos.profiles.plan import SourceFile, identity_of
from lumos.profiles.rows import HUDI_SLICE, FileTask
from lumos.storage.schemes import absolute

_LOG: Final = "hudi-log"
# How Delta's protocol writes bytes, which Spark writes as they are.
_ESCAPED: Final = re.compile(r"(\\u00[0-9a-fA-F]{2})+")


class TableFiles(NamedTuple):
    """The files of a table, its columns, and what of it is not taken into account."""

    files: Iterator[SourceFile]
    fields: tuple[KnownField, ...]
    remarks: list[Problem]


def table_files(root: str, memory: Memory) -> TableFiles:
    """The live files of a table, in tasks that apply what its log says of them.

    Tasks come without the table's fields, which are the same for all of them.
    """
    facts = from_json(memory.facts, TableFacts)
    fields = known_fields(facts.schema, facts.properties)
    return TableFiles(_files(root, memory, facts, fields), fields, _remarks(root, memory))


def _files(
    root: str, memory: Memory, facts: TableFacts, fields: tuple[KnownField, ...]
) -> Iterator[SourceFile]:
    known_as = identity_of(fields)
    names = tuple(field.name for field in facts.schema.fields)
    initial = _initial_values(facts.schema)
    binary = {each.name for each in facts.schema.fields if kind_of_values(each.type) == "bytes"}
    for live, logs in _slices(live_files(memory)):
        is_slice = bool(logs) or live.format == _LOG
        path = absolute(live.path, root)
        constants = initial | {
            name: _of_delta(text, name in binary) if memory.kind == "delta" else text
            for name, text in live.partition
        }
        deletes = tuple(
            msgspec.structs.replace(each, path=each.path and absolute(each.path, root))
            for each in live.deletes
            if each.kind != "equality"
        )
        task = FileTask(
            path,
            live.size + sum(log.size for log in logs),
            HUDI_SLICE if is_slice else live.format,
            unit=0,
            names=names,
            constants=tuple(constants.items()),
            deletes=deletes,
            spelled=live.path,
            table=root if is_slice else "",
            logs=tuple(log.path for log in logs),
            near=root,
        )
        partition = "/".join(f"{name}={value}" for name, value in live.partition)
        yield SourceFile(task, partition, _identity(task, known_as))


def _slices(files: Iterable[LiveFile]) -> Iterator[tuple[LiveFile, list[LiveFile]]]:
    """Each file with the logs that change its rows."""
    base: LiveFile | None = None
    logs: list[LiveFile] = []
    for file in files:
        if file.format == _LOG and base is not None and _group(file) == _group(base):
            logs.append(file)
            continue
        if base is not None:
            yield base, logs
        base, logs = file, []
    if base is not None:
        yield base, logs


def _group(file: LiveFile) -> tuple[str, str]:
    folder, _, name = file.path.rpartition("/")
    return folder, name.lstrip(".").partition("_")[0]


def _of_delta(text: str | None, is_binary: bool) -> str | bytes | None:
    """A partition's value as Delta's protocol has it: an empty text is how null is written."""
    if is_binary and text and _ESCAPED.fullmatch(text):
        return bytes.fromhex(text.replace(r"\u00", ""))
    return text or None


def _initial_values(schema: Schema) -> dict[str, str | bytes | None]:
    """What rows of files without a column have in it, by Iceberg's default for them."""
    found: dict[str, str | bytes | None] = {}
    for field in schema.fields:
        text = field.properties.get(INITIAL_DEFAULT)
        if text is None or isinstance(field.type, Struct | Array | Map):
            continue
        is_bytes = kind_of_values(field.type) == "bytes"
        found[field.name] = _unhexed(text) if is_bytes else text
    return found


def _unhexed(text: str) -> bytes:
    """Bytes and UUIDs, which are both written in hexadecimal digits."""
    try:
        return bytes.fromhex(text.replace("-", ""))
    except ValueError:
        return text.encode("utf-8", "replace")


def _identity(task: FileTask, known_as: bytes) -> bytes:
    """Another one, too, where the same bytes are other columns now, as after a rename."""
    facts = (task.path, task.size, task.format, known_as.hex(), task.constants)
    return identity_of(*facts, *map(_spelled, task.deletes), *task.logs)


def _spelled(deletes: Deletes) -> str:
    return f"{deletes.kind} {deletes.path} {deletes.offset} {deletes.inline.hex()}"


def _remarks(root: str, memory: Memory) -> list[Problem]:
    if memory.kind != "iceberg":
        return []
    equality = sum(
        any(each.kind == "equality" for each in live.deletes) for live in live_files(memory)
    )
    if not equality:
        return []
    reason = (
        f"Rows of {equality:,} files are deleted by their values (equality deletes), which is not "
        "looked into: they are counted all the same."
    )
    return [Problem(path=root, code="unsupported_feature", reason=reason, remark=True)]
