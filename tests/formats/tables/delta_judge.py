"""Facts of Delta tables as the deltalake library tells them, and ours in the same words."""

from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from lumos.formats.tables.delta.reader import DeltaReader
from lumos.formats.tables.interface import TableFacts, TableFolder
from lumos.model.conversions.arrow import schema_from_arrow
from lumos.model.schema import Schema

from .folder import LocalFolder

ALL = 1_000_000


class DescribedTable(NamedTuple):
    """What both can say of one version of a table."""

    version: int
    schema: tuple[tuple[str, str, bool], ...]
    partition_by: tuple[str, ...]
    files: dict[str, tuple[int, int | None]]
    size: int
    rows: int | None
    configuration: dict[str, str]
    description: str | None
    identity: str


def read(folder: TableFolder, memory: bytes | None = None, *, most: int = ALL) -> TableFacts:
    return DeltaReader().read(folder, memory, max_commits=most)[0]


def ours(root: Path | str) -> DescribedTable:
    """What Lumos says of the table's current version."""
    facts, memory = DeltaReader().read(LocalFolder(root), None, max_commits=ALL)
    return described(facts, memory)


def described(facts: TableFacts, memory: bytes) -> DescribedTable:
    live = list(DeltaReader().live(memory))
    assert len(live) == facts.files
    assert sum(file.size for file in live) == facts.bytes
    return DescribedTable(
        version=int(facts.version),
        schema=columns(facts.schema),
        partition_by=facts.partition_by,
        files={file.path: (file.size, file.rows) for file in live},
        size=facts.bytes,
        rows=facts.rows,
        configuration={
            key: value
            for key, value in facts.properties.items()
            if key not in ("delta.minReaderVersion", "delta.minWriterVersion", "delta.name")
            and key != "delta.clusteringColumns"
        },
        description=facts.description,
        identity=facts.identity,
    )


def theirs(root: Path | str, version: int | None = None) -> DescribedTable:
    """What deltalake says of a version, or of the current one."""
    table = DeltaTable(root, version=version)
    metadata = table.metadata()
    adds = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return DescribedTable(
        version=table.version(),
        schema=columns(schema_from_arrow(pa.schema(table.schema()))),
        partition_by=tuple(metadata.partition_columns),
        files={unquote(add["path"]): (add["size_bytes"], add["num_records"]) for add in adds},
        size=sum(add["size_bytes"] for add in adds),
        rows=_rows(adds),
        configuration={key: str(value) for key, value in metadata.configuration.items()},
        description=metadata.description or None,
        identity=str(metadata.id),
    )


def _rows(adds: list[dict[str, Any]]) -> int | None:
    counts = [add["num_records"] for add in adds]
    if None in counts:
        return None
    return sum(counts) - sum(add.get("deletionVector.cardinality") or 0 for add in adds)


def columns(schema: Schema) -> tuple[tuple[str, str, bool], ...]:
    return tuple((field.name, field.type.text, field.nullable) for field in schema.fields)
