"""When the rows of tables arrived, as their logs say, and the schedules that follow from it."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.memory import InMemoryCatalog

from formats.tables.hudi_tables import HudiTable
from lumos.discovery.lake.table_folder import StoredTableFolder
from lumos.discovery.lake.table_reader import TableMemory
from lumos.formats.tables import table_reader
from lumos.model.json_codec import to_json
from lumos.profiles.files import table_files
from lumos.releases.arrivals import Arrivals, arrivals_of
from lumos.releases.learning import learn_schedule
from lumos.storage import LocalStorage

FIRST = datetime(2024, 1, 1, tzinfo=UTC)
SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "day", "type": "date", "nullable": True, "metadata": {}},
    ],
}


def arrivals(kind: str, root: Path, memory: bytes | None = None) -> tuple[Arrivals, bytes]:
    """The arrivals of a table as a scan would find them, and the state for the next scan."""
    folder = StoredTableFolder(LocalStorage(), str(root))
    facts, new_memory = table_reader(kind).read(folder, memory, max_commits=100)
    found = table_files(str(root), TableMemory(kind, to_json(facts), new_memory))
    return arrivals_of(found.files), new_memory


def add(day: datetime, arrived: datetime | None, **facts: object) -> dict[str, object]:
    """The action that adds the file of a day."""
    action: dict[str, object] = {
        "path": f"day={day:%Y-%m-%d}/{facts.pop('name', 'a')}.parquet",
        "size": 10,
        "partitionValues": {"day": f"{day:%Y-%m-%d}"},
        "dataChange": True,
        **facts,
    }
    if arrived is not None:
        action["modificationTime"] = int(arrived.timestamp() * 1000)
    return {"add": action}


def commit(root: Path, version: int, *actions: dict[str, object]) -> None:
    folder = root / "_delta_log"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{version:020d}.json").write_text("\n".join(map(json.dumps, actions)))


def create(root: Path) -> None:
    metadata = {
        "id": "x",
        "format": {"provider": "parquet"},
        "schemaString": json.dumps(SCHEMA),
        "partitionColumns": ["day"],
        "configuration": {},
    }
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    commit(root, 0, {"protocol": protocol}, {"metaData": metadata})


def test_a_schedule_is_learnt_from_the_commits_of_a_delta_table(tmp_path: Path) -> None:
    create(tmp_path)
    for number in range(10):
        day = FIRST + timedelta(days=number)
        commit(tmp_path, number + 1, add(day, day + timedelta(days=1, hours=6)))
    found, memory = arrivals("delta", tmp_path)
    assert len(found.known) == 10
    assert found.newest == FIRST + timedelta(days=10, hours=6)
    learnt = learn_schedule(found.known)
    assert learnt is not None
    assert (learnt.schedule.cron, learnt.schedule.availability_lag_minutes) == ("0 0 * * *", 360)
    # The next scan reads the new commit only.
    later = FIRST + timedelta(days=10)
    commit(tmp_path, 11, add(later, later + timedelta(days=1, hours=5)))
    found, _ = arrivals("delta", tmp_path, memory)
    assert len(found.known) == 11


def test_rewritten_files_and_wrong_times_are_no_arrivals(tmp_path: Path) -> None:
    create(tmp_path)
    days = [FIRST + timedelta(days=number) for number in range(4)]
    commit(
        tmp_path,
        1,
        add(days[0], days[0], dataChange=False),
        add(days[1], None),
        add(days[2], None, modificationTime=-5),
        add(days[3], None, modificationTime=10**30),
    )
    found, _ = arrivals("delta", tmp_path)
    assert len(found.partitions) == 4
    assert found.known == {}


def test_rows_of_an_iceberg_table_arrive_with_their_snapshot(tmp_path: Path) -> None:
    catalog = InMemoryCatalog("x", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("n")
    rows = pa.table({"id": pa.array([1], pa.int64()), "day": pa.array(["2024-01-01"])})
    table = catalog.create_table("n.t", schema=rows.schema)
    with table.update_spec() as spec:
        spec.add_identity("day")
    table.append(rows)
    table.append(pa.table({"id": pa.array([2], pa.int64()), "day": pa.array(["2024-01-02"])}))
    root = Path(table.location().removeprefix("file://"))
    found, _ = arrivals("iceberg", root)
    snapshots = sorted(each.timestamp_ms for each in table.metadata.snapshots)
    times = sorted(int(each.timestamp() * 1000) for each in found.known.values())
    assert times == snapshots
    assert sorted(each.text for each in found.known) == ["2024-01-01", "2024-01-02"]


def test_files_of_a_hudi_table_have_their_own_time(tmp_path: Path) -> None:
    table = HudiTable()
    table.write({"group": 3}, partition="NO")
    root = table.save(tmp_path)
    moment = FIRST + timedelta(days=1, hours=6)
    for file in root.rglob("*.parquet"):
        os.utime(file, (moment.timestamp(), moment.timestamp()))
    folder = StoredTableFolder(LocalStorage(), str(root))
    _, memory = table_reader("hudi").read(folder, None, max_commits=100)
    (live,) = table_reader("hudi").live(memory)
    assert live.added == int(moment.timestamp()) * 1_000_000
