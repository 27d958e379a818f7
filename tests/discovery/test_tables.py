"""Lakes with tables, from files to recorded versions, by whole scans."""

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import DoubleType

from files import write_parquet
from formats.tables import delta_logs as log
from lumos import Lumos
from lumos.model.change import EventType
from lumos.store import Store

pytestmark = pytest.mark.usefixtures("spark", "workplace")

A = pa.table({"id": pa.array([1, 2], pa.int64()), "c": ["x", "y"]})
B = pa.table({"id": pa.array([3], pa.int64()), "c": ["x"], "n": [1.5]})


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    (tmp_path / "lake").mkdir()
    return tmp_path / "lake"


def delta(folder: Path, rows: pa.Table, **options: Any) -> None:
    deltalake.write_deltalake(str(folder), rows, mode="append", schema_mode="merge", **options)


def formats(report: Any, lake: Path) -> dict[str, str]:
    mark = f"lumos://file{lake}/"
    return {each.urn.removeprefix(mark): each.format for each in report.datasets}


def test_a_delta_table_is_one_dataset_with_the_history_of_its_log(lake: Path) -> None:
    delta(lake / "orders", A, partition_by=["c"], configuration={"delta.appendOnly": "true"})
    delta(lake / "orders", B)
    write_parquet(lake / "loose/x.parquet", id=pa.int64())
    lumos = Lumos()
    report = lumos.ingest(lake)
    assert formats(report, lake) == {"orders": "delta", "loose/x.parquet": "parquet"}
    assert {each.change for each in report.datasets} == {"new"}
    log = [
        datetime.fromtimestamp(each["timestamp"] / 1000, UTC)
        for each in deltalake.DeltaTable(str(lake / "orders")).history()
    ]
    history = lumos.history("orders").versions
    assert [(each.schema_version, each.timestamp, each.cause) for each in history] == [
        ("1.1.0", log[0], "log"), ("1.0.0", log[1], "log"),
    ]  # fmt: skip
    shown = lumos.show("orders").dataset
    assert shown["statistics"]["file_count"] == 3
    assert shown["statistics"]["row_count"] == 3
    assert shown["properties"]["file.table.version"] == "1"
    assert shown["properties"]["file.delta.appendOnly"] == "true"
    again = lumos.ingest(lake)
    assert {each.change for each in again.datasets} == {"unchanged"}
    assert again.summary.files_read == 0
    delta(lake / "orders", B)
    (changed,) = (each for each in lumos.ingest(lake).datasets if each.change == "changed")
    (event,) = lumos.changes(types=["MODIFIED"]).events
    assert (event.urn, event.metadata["table_version"]) == (changed.urn, "2")


def test_fields_of_iceberg_keep_their_ids_and_a_rename_is_a_rename(lake: Path) -> None:
    catalog = InMemoryCatalog("judge", warehouse=f"file://{lake}")
    catalog.create_namespace("n")
    table = catalog.create_table("n.visits", A.schema)
    table.append(A)
    lumos = Lumos()
    lumos.ingest(lake)
    with table.update_schema() as update:
        update.rename_column("c", "country")
        update.add_column("n", DoubleType())
    lumos.ingest(lake)
    store = Store.open(lumos.database)
    schema = store.get(store.find("visits")).schema
    assert schema is not None
    assert [(each.name, each.field_id) for each in schema.fields] == [
        ("id", 1), ("country", 2), ("n", 3),
    ]  # fmt: skip
    latest, first = lumos.history("visits").versions
    assert (first.cause, latest.cause) == ("log", "log")
    assert "country" in latest.summary


def test_loose_datasets_that_become_tables_are_not_gone(lake: Path) -> None:
    # Folders that are so alike were one dataset before.
    for name in ("a", "b", "c"):
        delta(lake / name, A)
        delta(lake / name, A)
    delta(lake / "orders", B)
    delta(lake / "orders", B)
    catalog = InMemoryCatalog("judge", warehouse=f"file://{lake}")
    catalog.create_namespace("n")
    catalog.create_table("n.visits", A.schema).append(A)
    before = Lumos(overrides={"scan.tables": False}).ingest(lake)
    assert not {"delta", "iceberg"} & set(formats(before, lake).values())
    lumos = Lumos()
    report = lumos.ingest(lake)
    assert formats(report, lake) == {
        "a": "delta", "b": "delta", "c": "delta", "orders": "delta", "n/visits": "iceberg",
    }  # fmt: skip
    assert (report.held, report.missing) == ((), ())
    listed = lumos.list()
    assert {each.urn for each in listed.datasets} == {each.urn for each in report.datasets}
    assert EventType.CREATED in {event.type for event in lumos.changes(dataset="orders").events}


def test_a_table_comes_and_goes_and_its_name_stays(lake: Path) -> None:
    delta(lake / "orders", A)
    delta(lake / "orders", A)
    write_parquet(lake / "loose/x.parquet", id=pa.int64())
    lumos = Lumos(overrides={"scan.max_removed_share": 1})
    (urn,) = (each.urn for each in lumos.ingest(lake).datasets if each.format == "delta")
    log = lake / "orders/_delta_log"
    os.rename(log, lake / "put_aside")
    (dataset,) = (each for each in lumos.ingest(lake).datasets if each.urn == urn)
    assert dataset.format == "parquet"
    os.rename(lake / "put_aside", log)
    (dataset,) = (each for each in lumos.ingest(lake).datasets if each.urn == urn)
    assert dataset.format == "delta"
    (log / "00000000000000000001.json").write_bytes(b"{")
    report = lumos.ingest(lake)
    assert urn in {each.urn for each in report.datasets}
    assert [(each.code, each.path) for each in report.problems] == [
        ("broken_table", str(lake / "orders"))
    ]
    shutil.rmtree(lake / "orders")
    assert lumos.ingest(lake).missing == (urn,)


def test_a_broken_table_that_was_never_read_removes_no_dataset(lake: Path) -> None:
    for name in ("orders", "visits", "wares", "users"):
        columns = {"id": pa.int64(), f"{name}_at": pa.int64(), f"of_{name}": pa.string()}
        write_parquet(lake / name / f"data/{name}.parquet", **columns)
    lumos = Lumos()
    before = {each.urn for each in lumos.ingest(lake).datasets}
    (lake / "orders/_delta_log").mkdir()
    report = lumos.ingest(lake)
    assert [problem.code for problem in report.problems] == ["half_written_table"]
    assert report.missing == ()
    assert len(report.held) == 1
    assert {each.urn for each in lumos.list().datasets} == before


def test_what_explain_says_of_a_table_and_of_what_lies_in_it(lake: Path) -> None:
    delta(lake / "orders", A, partition_by=["c"])
    table = deltalake.DeltaTable(str(lake / "orders"))
    live = sorted((lake / "orders").rglob("*.parquet"))
    table.delete("c = 'x'")
    dead = next(path for path in live if "c=x" in str(path))
    for lumos in (Lumos(overrides={"storage.path": "other.db"}), Lumos()):
        if lumos.settings.storage.path != "other.db":
            lumos.ingest(lake)
        whole = lumos.explain(str(lake / "orders"))
        assert (whole.kind, whole.datasets[0].rule, whole.datasets[0].files) == (
            "folder",
            "table",
            1,
        )
        (above,) = lumos.explain(str(lake)).datasets
        assert above == whole.datasets[0]
        part = lumos.explain(str(next(path for path in live if path != dead)))
        assert (part.kind, part.verdict, part.datasets[0].urn) == ("file", "dataset", above.urn)
        assert lumos.explain(str(dead)).verdict == "not_live"
        first = lake / "orders/_delta_log/00000000000000000000.json"
        assert lumos.explain(str(first)).verdict == "log"
        assert lumos.explain(str(first.parent)).verdict == "log"


def test_what_a_table_needs_beside_its_data_is_never_explained_as_removed(lake: Path) -> None:
    catalog = InMemoryCatalog("judge", warehouse=f"file://{lake}")
    catalog.create_namespace("n")
    catalog.create_table("n.accounts", A.schema).append(A)
    name = "00000000000000000000.json"
    vector = {"storageType": "p", "pathOrInlineDv": f"{lake}/orders/dv.bin", "sizeInBytes": 40}
    actions = [
        log.protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors"]),
        log.metadata(log.field("id")),
        log.add("a.parquet", rows=10, deletionVector={**vector, "cardinality": 3, "offset": 1}),
    ]
    (lake / "orders/_delta_log").mkdir(parents=True)
    (lake / "orders/_delta_log" / name).write_bytes(log.lines(actions))
    (lake / "orders/dv.bin").write_bytes(b"x" * 60)
    lumos = Lumos()
    lumos.ingest(lake)
    needed = [*lake.glob("n/accounts/metadata/*"), lake / "orders/dv.bin"]
    assert {path.suffix for path in needed} == {".json", ".avro", ".bin"}
    assert {lumos.explain(str(path)).verdict for path in needed} == {"log"}


def test_all_that_is_odd_about_a_table_is_reported(lake: Path) -> None:
    features = {"readerFeatures": ["oracle"], "writerFeatures": ["oracle"]}
    actions = [log.protocol(3, 7, **features), log.metadata(log.field("id"))]
    actions.append(log.add("s3://elsewhere/x/a.parquet"))
    (lake / "orders/_delta_log").mkdir(parents=True)
    (lake / "orders" / log.commit_name(0)).write_bytes(log.lines(actions))
    codes = {problem.code for problem in Lumos().ingest(lake).problems}
    assert codes == {"unsupported_feature", "outside_data"}


def test_a_new_partition_column_is_no_older_than_the_scan_before(lake: Path) -> None:
    catalog = InMemoryCatalog("judge", warehouse=f"file://{lake}")
    catalog.create_namespace("n")
    table = catalog.create_table("n.accounts", A.schema)
    table.append(A)
    lumos = Lumos()
    lumos.ingest(lake)
    asked = datetime.now(UTC).replace(microsecond=0)
    with table.update_spec() as spec:
        spec.add_identity("c")
    lumos.ingest(lake)
    (event,) = lumos.changes(types=["SCHEMA_CHANGED"]).events
    assert asked <= event.timestamp <= datetime.now(UTC)
    assert event.metadata["time"] == "approximate"


def test_new_table_metadata_is_recorded_without_new_data(lake: Path) -> None:
    catalog = InMemoryCatalog("judge", warehouse=f"file://{lake}")
    catalog.create_namespace("n")
    table = catalog.create_table("n.accounts", A.schema)
    table.append(A)
    delta(lake / "n/orders", A)
    lumos = Lumos()
    lumos.ingest(lake)

    def changed() -> dict[str, str]:
        seen = list(lumos.changes(types=["METADATA_CHANGED"]).events)
        urns = [each.urn for each in lumos.ingest(lake).datasets if each.change == "changed"]
        new = {
            event.urn.rpartition("/")[2]: event.summary
            for event in lumos.changes(types=["METADATA_CHANGED"]).events
            if event not in seen
        }
        assert {urn.rpartition("/")[2] for urn in urns} == set(new)
        return new

    with table.transaction() as change:
        change.set_properties(team="blue", comment="all of them")
    snapshot = table.current_snapshot()
    assert snapshot is not None
    table.manage_snapshots().create_tag(snapshot.snapshot_id, "audited").commit()
    catalog.create_table("n.orders", A.schema, location=f"file://{lake}/n/orders")
    assert changed() == {
        "accounts": "description, iceberg.tags, team changed",
        "orders": "also changed",
    }
    assert changed() == {}
    shown = lumos.show("accounts").dataset
    assert shown["properties"]["file.team"] == "blue"
    assert shown["documentation"]["description"] == "all of them"
    with table.update_spec() as spec:
        spec.add_field("id", BucketTransform(4))
    assert changed() == {"accounts": "partitioning changed"}
    assert lumos.show("accounts").dataset["location"]["partitioning"] == "bucket[4](id)"
    lumos.annotations.docs.set("accounts", "what people say")
    with table.transaction() as change:
        change.remove_properties("team", "comment")
    shutil.rmtree(lake / "n/orders/metadata")
    assert changed() == {"accounts": "description, team changed", "orders": "also changed"}
    assert changed() == {}
    shown = lumos.show("accounts").dataset
    assert "file.team" not in shown["properties"]
    assert shown["documentation"]["description"] == "what people say"


def test_a_file_that_two_tables_have_is_explained_by_both(lake: Path) -> None:
    delta(lake / "orders", A)
    (file,) = (lake / "orders").glob("*.parquet")
    log = (lake / "orders/_delta_log/00000000000000000000.json").read_text()
    clone = lake / "clone/_delta_log/00000000000000000000.json"
    clone.parent.mkdir(parents=True)
    clone.write_text(log.replace(f'"path":"{file.name}"', f'"path":"file://{file}"'))
    lumos = Lumos()
    assert formats(lumos.ingest(lake), lake) == {"orders": "delta", "clone": "delta"}
    explained = lumos.explain(str(file))
    assert [each.urn.rpartition("/")[2] for each in explained.datasets] == ["orders", "clone"]
    folder = lumos.explain(str(lake / "orders"))
    assert [(each.files_here, each.files) for each in folder.datasets] == [(1, 1), (1, 1)]
    deltalake.write_deltalake(str(lake / "orders"), A, mode="overwrite")
    lumos.ingest(lake)
    explained = lumos.explain(str(file))
    assert explained.verdict == "dataset", "whoever tidies up must not remove it"
    assert [each.urn.rpartition("/")[2] for each in explained.datasets] == ["clone"]


def test_commits_between_scans_are_reported_at_their_own_time(lake: Path) -> None:
    delta(lake / "orders", A)
    lumos = Lumos()
    lumos.ingest(lake)
    delta(lake / "orders", B)
    committed = deltalake.DeltaTable(str(lake / "orders")).history(1)[0]["timestamp"]
    asked = datetime.now(UTC)
    delta(lake / "orders", B)
    received: list[datetime] = []
    lumos.on_change(lambda event: received.append(event.at), types=["SCHEMA_CHANGED"])
    lumos.ingest(lake)
    at = datetime.fromtimestamp(committed / 1000, UTC)
    assert received == [at]
    assert at < asked
    (event,) = lumos.changes(since=asked, types=["SCHEMA_CHANGED"]).events
    assert event.timestamp == at
    assert asked - at < timedelta(hours=1)


def test_a_table_made_anew_in_the_same_place_shows_all_of_its_own_past(lake: Path) -> None:
    delta(lake / "orders", B)
    lumos = Lumos()
    lumos.ingest(lake)
    shutil.rmtree(lake / "orders")
    delta(lake / "orders", A)
    delta(lake / "orders", B)
    lumos.ingest(lake)
    (dataset,) = lumos.list().datasets
    reported = [str(each.schema_version) for each in lumos.history(dataset.urn).versions]
    assert reported == ["2.1.0", "2.0.0", "1.0.0"]


def test_all_changes_since_the_last_scan_are_reported(lake: Path) -> None:
    delta(lake / "orders", B)
    lumos = Lumos()
    lumos.ingest(lake)
    deltalake.write_deltalake(str(lake / "orders"), A, mode="overwrite", schema_mode="overwrite")
    delta(lake / "orders", pa.table({"id": pa.array([3], pa.int64()), "z": ["x"]}))
    (dataset,) = lumos.ingest(lake).datasets
    assert [(row.path, row.consumer) for row in dataset.changes] == [
        ("n", "breaking"),
        ("z", "compatible"),
    ]
    assert dataset.summary == "1 field removed: n; 1 field added: z"


def test_a_dataset_whose_files_a_table_elsewhere_takes_in_comes_back_as_it_was(lake: Path) -> None:
    for name in "abcdef":
        write_parquet(lake / f"{name}/x.parquet", **{f"of_{name}": pa.int64()})
    raw = lake / "raw/events"
    write_parquet(raw / "part-0.parquet", id=pa.int64())
    lumos = Lumos()
    lumos.ingest(lake)
    urn = next(each.urn for each in lumos.list().datasets if each.urn.endswith("/raw/events"))
    lumos.annotations.tags.set(urn, "gold")
    catalog = InMemoryCatalog("judge", warehouse=f"file://{lake}")
    catalog.create_namespace("n")
    table = catalog.create_table("n.test", pa.schema([("id", pa.int64())]))
    table.add_files([str(raw / "part-0.parquet")])
    lumos.ingest(lake)
    assert [event.type for event in lumos.changes(types=["RENAMED", "MERGED"]).events] == ["MERGED"]
    write_parquet(raw / "part-1.parquet", id=pa.int64())
    shutil.rmtree(lake / "n")
    lumos.ingest(lake, accept_removals=True)
    shown = lumos.show(urn).dataset
    assert (shown["urn"], shown["governance"]["tags"]) == (urn, ("gold",))


def test_files_and_tables_are_counted_apart(lake: Path) -> None:
    delta(lake / "orders", A)
    write_parquet(lake / "loose/x.parquet", id=pa.int64())
    lumos = Lumos()
    found = lumos.discover(str(lake)).summary
    assert (found.files_listed, found.tables, found.datasets) == (1, 1, 2)
    reported = lumos.ingest(lake).summary
    assert (reported.files_listed, reported.tables, reported.tables_read) == (1, 1, 1)
    assert lumos.ingest(lake).summary.tables_read == 0
