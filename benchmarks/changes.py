"""The log of changes with 1,000,000 events of 20,000 datasets, in process, on SQLite."""

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import insert

from lumos import Lumos
from lumos.model.change import ChangeEvent, EventType, Finding
from lumos.model.json_codec import to_json
from lumos.model.schema import Schema, parse_schema
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import classify
from lumos.schemas.wording import summary_of
from lumos.store import Database, Store, tables

EVENTS = 1_000_000
DATASETS = 20_000
A_SCAN = 2_000
ROUNDS = 5
_WIDE = "\n".join(f"field_{number} INT64" for number in range(25))
BEFORE = parse_schema(_WIDE)
NARROWER = parse_schema(_WIDE.replace("field_3 INT64\n", ""))
WIDER = parse_schema(f"{_WIDE}\nextra STRING")


def measure() -> dict[str, Any]:
    """Milliseconds from the question to the last event; for long answers also to the first."""
    now = datetime.now(UTC)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lumos.db"
        database = Database.sqlite(file)
        Store.open(database, create=True)
        _fill(database, now)
        lumos = Lumos(environment={}, overrides={"storage.path": str(file)})
        return {
            "events": EVENTS,
            "datasets": DATASETS,
            "breaking_since_7d_ms": _ms(lambda: _drain(lumos, since="7d", breaking=True)),
            "breaking_ever_ms": _ms(lambda: _drain(lumos, breaking=True)),
            "newest_100_ms": _ms(lambda: _drain(lumos, limit=100)),
            "one_type_ms": _ms(lambda: _drain(lumos, types=["DELETED"])),
            "one_dataset_ms": _ms(lambda: _drain(lumos, dataset="table_77")),
            "pattern_of_400_datasets_ms": _ms(lambda: _drain(lumos, dataset="area7/*")),
            "all_first_event_ms": _ms(lambda: next(lumos.change_history.iterate())),
            "all_seconds": _seconds(lambda: _drain(lumos)),
            "plain_read_of_all_rows_seconds": _seconds(lambda: _rows(database)),
            "version_map_ms": _ms(lambda: lumos.version.map("table_77")),
            "version_scan_of_all_seconds": _seconds(lumos.version.scan),
            "nothing_to_forget_ms": _ms(lambda: lumos.change_history.forget_old("90d")),
            "forget_seconds": _seconds(lambda: _forget(lumos)),
        }


def _ms(work: Callable[[], object]) -> float:
    return round(statistics.median(_taken(work) for _ in range(ROUNDS)) * 1000, 1)


def _seconds(work: Callable[[], object]) -> float:
    return round(_taken(work), 2)


def _taken(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _drain(lumos: Lumos, **words: Any) -> None:
    for _ in lumos.change_history.iterate(**words):
        pass


def _rows(database: Database) -> None:
    with database.reading() as connection:
        for _ in connection.exec_driver_sql("SELECT * FROM change_event"):
            pass


def _forget(lumos: Lumos) -> None:
    assert lumos.change_history.forget_old("1d").removed > EVENTS // 2


def _fill(database: Database, now: datetime) -> None:
    schemas = {name: _hash(name) for name in ("before", "narrower", "wider")}
    bodies = zip(schemas.values(), (BEFORE, NARROWER, WIDER), strict=True)
    with database.writing() as connection:
        connection.execute(insert(tables.schema_body), [_schema(*pair) for pair in bodies])
        connection.execute(
            insert(tables.dataset), [_dataset(each, now) for each in range(DATASETS)]
        )
        rows: list[dict[str, Any]] = []
        for row in _events(now):
            rows.append(row)
            if len(rows) == 20_000:
                connection.execute(insert(tables.change_event), rows)
                rows.clear()
        connection.execute(
            insert(tables.schema_version), [_version(n, now) for n in range(DATASETS)]
        )


def _hash(name: str) -> str:
    return name.ljust(32, "0")


def _urn(number: int) -> str:
    return f"lumos://file/lake/area{number % 50}/table_{number}"


def _schema(hash: str, schema: Schema) -> dict[str, Any]:
    return {"hash": hash, "shape": schema.shape, "full": schema.full, "body": to_json(schema)}


def _dataset(number: int, now: datetime) -> dict[str, Any]:
    return {
        "urn": _urn(number),
        "name": f"table_{number}",
        "platform": "file",
        "format": "parquet",
        "source": "file:/lake",
        "state": "live",
        "cloud_version": f"S-{EVENTS // DATASETS}",
        "schema_version": "1.0.0",
        "schema_hash": _hash("before"),
        "fingerprint": BEFORE.full,
        "content": "",
        "created_at": now,
        "updated_at": now,
    }


def _version(number: int, now: datetime) -> dict[str, Any]:
    return {
        "urn": _urn(number),
        "number": 1,
        "version": "1.0.0",
        "cloud_version": "S-1",
        "schema_hash": _hash("before"),
        "event_id": f"{number:032x}",
        "recorded_at": now,
    }


def _events(now: datetime) -> Iterator[dict[str, Any]]:
    """A scan each half hour, each of which finds some datasets changed, and few schemas."""
    chance = random.Random(1)
    removed, added = classify(compare(BEFORE, NARROWER)), classify(compare(BEFORE, WIDER))
    scans = EVENTS // A_SCAN
    for number in range(EVENTS):
        scan = number // A_SCAN
        draw = chance.random()
        findings: tuple[Finding, ...]
        if number < DATASETS:
            type, findings, new = EventType.CREATED, (), "before"
        elif draw < 0.001:
            type, findings, new = EventType.SCHEMA_CHANGED, removed, "narrower"
        elif draw < 0.01:
            type, findings, new = EventType.SCHEMA_CHANGED, added, "wider"
        elif draw < 0.011:
            type, findings, new = EventType.DELETED, (), "before"
        else:
            type, findings, new = EventType.MODIFIED, (), "before"
        event = ChangeEvent(
            event_id=f"{number:032x}",
            urn=_urn(number % DATASETS),
            type=type,
            at=now - timedelta(minutes=30 * (scans - scan)),
            cause="scan",
            cloud_version=f"S-{number // DATASETS + 1}",
            schema_version="1.0.0",
            source_path=f"/lake/area{number % 50}/table_{number % DATASETS}",
            old_schema=_hash("before"),
            new_schema=_hash(new),
            findings=findings,
            summary=summary_of(type, findings),
            metadata={"source": "file:/lake", "format": "parquet", "files": 12, "bytes": 123456},
        )
        yield {
            "event_id": event.event_id,
            "urn": event.urn,
            "type": type.value,
            "breaking": event.breaking,
            "recorded_at": event.at,
            "body": to_json(event),
        }
