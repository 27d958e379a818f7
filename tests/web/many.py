"""A store with very many datasets, written directly so that filling it takes seconds."""

import hashlib
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import Table, insert

from lumos import Lumos
from lumos.model.change import ChangeEvent, EventType
from lumos.model.dataset import Documentation, Location, Owner, Ownership, Statistics
from lumos.model.json_codec import to_json
from lumos.model.lineage import ColumnMapping, Edge
from lumos.model.schema import Field, Schema
from lumos.model.types import INT64, STRING
from lumos.store import tables
from lumos.store.transaction import schema_row

LAKE = "lumos://s3/lake"
SOURCE = "s3:s3://lake"
FIELDS = 25
_BATCH = 5_000
_TEAMS = tuple(f"team-{number}" for number in range(40))
_WORDS = ("order", "customer", "click", "session", "invoice", "price", "stock", "visit", "email",
          "campaign", "ticket", "device", "region", "refund", "basket", "supplier")  # fmt: skip


def urn_of(number: int) -> str:
    """The URN of one of the datasets."""
    return f"{LAKE}/area_{number % 40}/{name_of(number)}"


def name_of(number: int) -> str:
    return f"{_WORDS[number % 16]}_{_WORDS[number // 16 % 16]}_{number}"


def fill_many(folder: Path, count: int) -> Lumos:
    """Lumos in a folder with datasets of 25 columns, owners, descriptions, versions and lineage."""
    (folder / "lumos.yaml").write_text("storage: {path: store.db}\n")
    lumos = Lumos(folder / "lumos.yaml")
    store, at = lumos.create_store(), datetime.now(UTC).replace(microsecond=0)
    numbers = iter(range(count))
    while batch := list(islice(numbers, _BATCH)):
        rows: dict[Table, list[dict[str, Any]]] = {}
        for number in batch:
            for table, row in _rows(number, at):
                rows.setdefault(table, []).append(row)
        with lumos.database.writing() as connection:
            for table, of_table in rows.items():
                connection.execute(insert(table), of_table)
    edges = [
        Edge(
            upstream=urn_of(number // 3),
            downstream=urn_of(number),
            origin="sql",
            at=at,
            columns=(ColumnMapping(upstream="order_0", downstream="order_0"),),
        )
        for number in range(1, count)
    ]
    with store.transaction() as transaction:
        transaction.lineage.report("sql:models", edges, at=at)
    store.rebuild_search()
    return lumos


def _rows(number: int, at: datetime) -> Iterator[tuple[Table, dict[str, Any]]]:
    chance = random.Random(number)
    urn, name = urn_of(number), name_of(number)
    first = at - timedelta(days=number % 300, seconds=number % 86_400)
    names = [
        "order_0",
        *(f"{chance.choice(_WORDS)}_{each}_{number % 900}" for each in range(1, FIELDS)),
    ]
    fields = tuple(Field(name=each, type=INT64 if len(each) % 2 else STRING) for each in names)
    schema = schema_row(Schema(fields=fields))
    # Datasets of equal names of columns would share a schema; the table has each once.
    schema["hash"] = hashlib.blake2b(urn.encode(), digest_size=16).hexdigest()
    event = ChangeEvent(
        event_id=schema["hash"], urn=urn, type=EventType.CREATED, at=first, cause="scan",
        cloud_version="S-1", schema_version="1.0.0", new_schema=schema["hash"], summary="first seen",
    )  # fmt: skip
    yield tables.schema_body, schema
    yield tables.dataset, {
        "urn": urn, "name": name, "platform": "s3", "format": "parquet", "source": SOURCE,
        "state": "live", "cloud_version": "S-1", "schema_version": "1.0.0",
        "schema_hash": schema["hash"], "fingerprint": schema["hash"], "content": "1",
        "created_at": first, "updated_at": first,
    }  # fmt: skip
    yield tables.change_event, {
        "event_id": event.event_id, "urn": urn, "type": event.type.value, "breaking": False,
        "recorded_at": first, "body": to_json(event),
    }  # fmt: skip
    yield tables.schema_version, {
        "urn": urn, "number": 1, "version": "1.0.0", "cloud_version": "S-1",
        "schema_hash": schema["hash"], "event_id": event.event_id, "recorded_at": first,
    }  # fmt: skip
    statistics = Statistics(
        file_count=1, total_size_bytes=1_000_000, row_count=1000, last_modified=first
    )
    aspects = {"location": Location(uri=f"s3://lake/{name}"), "statistics": statistics}
    if number % 10:
        aspects["ownership"] = Ownership(owners=(Owner(name=_TEAMS[number % 40]),))
    if number % 3:
        aspects["documentation"] = Documentation(
            description=f"One row per {_WORDS[number % 16]}.", domain=_WORDS[number % 7]
        )
    for aspect, value in aspects.items():
        yield tables.aspect, {
            "urn": urn, "name": aspect, "body": to_json(value), "writer": "scan",
            "updated_at": first,
        }  # fmt: skip
