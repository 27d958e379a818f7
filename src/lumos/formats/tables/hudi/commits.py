"""The files of ended writes: JSON in Hudi 0.x, Avro since 1.0, with the same content."""

from typing import Any, Final

import msgspec

from lumos.formats.interface import UnreadableFile
from lumos.formats.tables.containers import Container
from lumos.formats.varints import CutOff, Malformed

_AVRO: Final = b"Obj\x01"
# Services move rows between files; the schema they carry may be older than the table's.
_SERVICES: Final = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT", "INDEX"})
_NUMBERED_SCHEMA: Final = ("latest_schema", "latestSchema")


class WrittenFile(msgspec.Struct, frozen=True, array_like=True):
    """A file that a write left behind, and how many rows it has (a log file: how many new ones)."""

    path: str
    rows: int | None


class Commit(msgspec.Struct, frozen=True):
    """What one write says; `numbered` is the schema once more, with the ids of fields."""

    operation: str | None
    schema: str | None
    numbered: str | None
    replaced: tuple[tuple[str, str], ...]
    files: tuple[WrittenFile, ...]

    @property
    def declares_schema(self) -> bool:
        """Whether the table has this schema from now on."""
        return self.schema is not None and self.operation not in _SERVICES


def commit_of(data: bytes, name: str) -> Commit:
    """What the file of a write says; raises UnreadableFile."""
    try:
        content = _avro(data) if data.startswith(_AVRO) else msgspec.json.decode(data)
        return _commit(_object(content))
    except CutOff:
        raise UnreadableFile("broken_table", f"{name} is cut off") from None
    except RecursionError:
        raise UnreadableFile("broken_table", f"{name} nests too deeply to be read") from None
    except (Malformed, ValueError, TypeError) as problem:
        raise UnreadableFile("broken_table", f"{name} is damaged: {problem}"[:300]) from None


def _avro(data: bytes) -> object:
    for record in Container(data).records():
        return record
    raise CutOff


def _commit(content: dict[str, Any]) -> Commit:
    extra = _object(content.get("extraMetadata"))
    numbered = next((text for key in _NUMBERED_SCHEMA if (text := _text(extra.get(key)))), None)
    replaced = _object(content.get("partitionToReplaceFileIds"))
    written = _object(content.get("partitionToWriteStats"))
    return Commit(
        operation=_text(content.get("operationType")),
        schema=_text(extra.get("schema")),
        numbered=numbered,
        replaced=tuple(
            (partition, str(file_id))
            for partition, file_ids in replaced.items()
            for file_id in _list(file_ids)
        ),
        files=tuple(
            file
            for stats in written.values()
            for stat in _list(stats)
            for file in _written(_object(stat))
        ),
    )


def _written(stat: dict[str, Any]) -> list[WrittenFile]:
    path = _text(stat.get("path"))
    if path is None:
        return []
    # A log file holds changes of rows, too; only the new ones add to the table.
    is_log = path.rpartition("/")[2].startswith(".")
    rows = stat.get("numInserts" if is_log else "numWrites")
    is_count = isinstance(rows, int) and not isinstance(rows, bool) and rows >= 0
    return [WrittenFile(path, rows if is_count else None)]


def _object(value: object) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError(f"It holds a {type(value).__name__} where an object belongs.")
    return value


def _list(value: object) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise TypeError(f"It holds a {type(value).__name__} where a list belongs.")
    return value


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
