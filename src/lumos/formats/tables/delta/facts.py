"""What is told of a Delta table, from what its log amounts to."""

import hashlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from lumos.formats.interface import Remark
from lumos.formats.tables.delta.actions import Damaged, Metadata
from lumos.formats.tables.delta.features import features_of
from lumos.formats.tables.delta.live import Totals, in_piles, totals
from lumos.formats.tables.delta.schema import logical_names, schema_of
from lumos.formats.tables.delta.state import Memory, Told
from lumos.formats.tables.interface import LiveFile, Past, TableFacts, remarks_on
from lumos.formats.tables.secrets import without_secrets
from lumos.model.schema import Schema

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def facts_of(memory: Memory, remarks: Iterable[Remark]) -> TableFacts:
    """The facts; raises Damaged."""
    metadata = memory.metadata
    schema = schema_of(metadata)
    features = features_of(memory.protocol, metadata.settings)
    live = totals(memory.live)
    return TableFacts(
        kind="delta",
        version=str(memory.version),
        at=_moment(memory.at),
        operation=memory.operation,
        schema=schema,
        partition_by=tuple(metadata.partition_columns or ()),
        files=live.files,
        bytes=live.size,
        rows=live.rows,
        properties=_properties(memory, schema),
        description=metadata.description or None,
        identity=metadata.id or "",
        past=_past(memory.told, schema, memory),
        features=features,
        remarks=(*remarks, *remarks_on(features), *_on_history(memory)),
        claims=live.elsewhere,
        content=_content(memory, live),
    )


def _properties(memory: Memory, schema: Schema) -> dict[str, str]:
    """The table's settings as it has them, and what Delta keeps elsewhere under names like them."""
    metadata, protocol = memory.metadata, memory.protocol
    told = {
        **without_secrets(metadata.settings),
        "delta.minReaderVersion": str(protocol.min_reader_version),
        "delta.minWriterVersion": str(protocol.min_writer_version),
        "delta.name": metadata.name or "",
        "delta.clusteringColumns": _clustering(memory.clustering, schema),
    }
    return {key: value for key, value in told.items() if value}


def _clustering(configuration: str, schema: Schema) -> str:
    """The columns by which the files are clustered, in words."""
    if not configuration:
        return ""
    try:
        columns = msgspec.json.decode(configuration, type=_Clustering).clusteringColumns
    except (ValueError, RecursionError):
        return ""
    names = logical_names(schema)
    return ", ".join(".".join([names.get(path[0], path[0]), *path[1:]]) for path in columns if path)


class _Clustering(msgspec.Struct):
    clusteringColumns: list[list[str]] = []


def _past(told: Iterable[Told], current: Schema, memory: Memory) -> tuple[Past, ...]:
    """The schemas in the order of their versions; clocks that went back change no order."""
    past: list[Past] = []
    for each in told:
        metadata = Metadata(
            schema_string=each.schema_string, partition_columns=each.partition_columns
        )
        try:
            schema = schema_of(metadata)
        except Damaged:
            # A schema of old times that nobody can read was none that anybody could use.
            continue
        if past and past[-1].schema == schema:
            continue
        at = _moment(each.at)
        is_later = not past or at >= past[-1].at
        past.append(
            Past(
                schema=schema,
                at=at if is_later else past[-1].at,
                version=str(each.version),
                operation=each.operation,
                author=each.author,
                exact_time=each.exact_time and is_later,
            )
        )
    if not past or past[-1].schema != current:
        at = max([_moment(memory.at), *(each.at for each in past)])
        version = str(memory.version)
        past.append(Past(schema=current, at=at, version=version, exact_time=False))
    return tuple(past)


def _on_history(memory: Memory) -> tuple[Remark, ...]:
    if not memory.unread:
        return ()
    versions = ", ".join(map(str, memory.unread[:5]))
    more = len(memory.unread) - 5
    others = f" and {more:,} more" if more > 0 else ""
    return (
        Remark(
            "incomplete_history",
            f"Damaged commits that a checkpoint has made needless: {versions}{others}. Schemas "
            "that they brought are missing from the table's history.",
        ),
    )


def _moment(microseconds: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return _EPOCH


def _content(memory: Memory, live: Totals) -> str:
    digest = hashlib.blake2b(digest_size=16)
    told = (memory.metadata.id, memory.version, memory.at, live.files, live.size)
    digest.update(repr(told).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def live_of(memory: Memory) -> Iterator[LiveFile]:
    """The live files; their partitions under the names of columns."""
    metadata = memory.metadata
    names = logical_names(schema_of(metadata))
    partitions = [
        tuple((names.get(name, name), value) for name, value in partition)
        for partition in memory.partitions
    ]
    format = (metadata.format and metadata.format.provider) or "parquet"
    for file in in_piles(memory.live):
        yield LiveFile(
            path=file.path,
            size=file.size,
            rows=file.rows,
            partition=partitions[file.partition],
            deletes=() if file.deletes is None else (file.deletes,),
            format=format,
        )
