"""The slice: files in, Spark reads them, datasets with versions and changes come out."""

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from files import write_parquet, write_text
from lumos import Lumos
from lumos.catalogs import Platform
from lumos.discovery.reports import DatasetReport, IngestReport
from lumos.errors import LumosError, MisuseError
from lumos.model.dataset import Dataset
from lumos.plugins import PLATFORMS, register, unregister
from lumos.store import Store

pytestmark = pytest.mark.usefixtures("spark", "workplace")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Partitioned Parquet, two CSV tables in one folder, and things that are no data."""
    lake = tmp_path / "lake"
    for day in ("2024-01-01", "2024-01-02"):
        write_parquet(lake / f"events/dt={day}/part-0.parquet", id=pa.int64(), name=pa.string())
    write_text(lake / "ref/users.csv", ["id,name,zip", "1,Ann,01234"])
    write_text(lake / "ref/rates_20240101.csv", ["code;rate", "EUR;1.5"])
    write_text(lake / "ref/rates_20240102.csv", ["code;rate", "EUR;2"])
    (lake / "ref/logo.png").write_bytes(b"\x89PNG\r\n")
    (lake / "events/_SUCCESS").touch()
    return lake


def by_name(report: IngestReport) -> dict[str, DatasetReport]:
    return {dataset.name: dataset for dataset in report.datasets}


def test_a_folder_of_parquet_and_csv_becomes_datasets(lake: Path) -> None:
    report = Lumos().ingest(lake)
    found = by_name(report)
    assert sorted(found) == ["events", "rates", "users"]
    events = found["events"]
    assert events.urn == f"lumos://file{lake}/events"
    assert (events.format, events.change) == ("parquet", "new")
    assert [(field.name, field.type, field.partition) for field in events.schema.fields] == [
        ("id", "INT64", False),
        ("name", "STRING", False),
        ("dt", "DATE", True),
    ]
    assert events.location is not None
    assert (events.location.uri, events.location.partitioning) == (f"{lake}/events", "dt={date}")
    assert events.statistics is not None
    assert (events.statistics.file_count, events.statistics.row_count) == (2, 4)
    assert events.versioning is not None
    assert (events.versioning.cloud_version, events.versioning.schema_version) == ("S-1", "1.0.0")
    assert found["rates"].location is not None
    assert found["rates"].location.uri == f"{lake}/ref/rates_*.csv"
    assert found["rates"].location.partitioning == "rates_{date}.csv"
    assert [field.type for field in found["rates"].schema.fields] == ["STRING", "FLOAT64"]
    assert found["users"].schema.fields[2].type == "STRING"
    summary = report.summary
    assert (summary.files_listed, summary.files_read, summary.files_failed) == (6, 6, 0)
    assert (summary.datasets_new, summary.datasets_changed) == (3, 0)


def test_a_second_run_on_unchanged_data_changes_nothing_and_opens_nothing(lake: Path) -> None:
    lumos = Lumos()
    first = lumos.ingest(lake)
    before = lumos.store_status().rows
    second = lumos.ingest(lake)
    after = lumos.store_status().rows
    assert (second.summary.files_read, second.summary.files_unchanged) == (0, 6)
    assert {dataset.change for dataset in second.datasets} == {"unchanged"}
    assert [dataset.schema for dataset in second.datasets] == [
        dataset.schema for dataset in first.datasets
    ]
    assert {name: rows for name, rows in after.items() if name != "audit"} == {
        name: rows for name, rows in before.items() if name != "audit"
    }


def test_a_change_is_reported_once_with_its_verdict(lake: Path) -> None:
    lumos = Lumos()
    lumos.ingest(lake)
    write_parquet(lake / "events/dt=2024-01-03/part-0.parquet", id=pa.int32(), extra=pa.string())
    report = lumos.ingest(lake)
    events = by_name(report)["events"]
    assert report.summary.files_read == 1
    assert events.change == "changed"
    assert events.versioning is not None
    assert (events.versioning.cloud_version, events.versioning.schema_version) == ("S-2", "2.0.0")
    assert [(change.path, change.kind, change.consumer.value) for change in events.changes] == [
        ("name", "removed", "breaking"),
        ("id", "type_changed", "breaking"),
        ("extra", "added", "compatible"),
    ]
    (drift,) = events.drift
    assert drift.file_count == 2
    assert lumos.ingest(lake).summary.datasets_changed == 0
    history = lumos.history("events")
    assert [version.schema_version for version in history.versions] == ["2.0.0", "1.0.0"]
    assert history.versions[0].breaking


def test_new_data_with_the_same_schema_steps_only_the_cloud_version(lake: Path) -> None:
    lumos = Lumos()
    lumos.ingest(lake)
    write_parquet(lake / "events/dt=2024-01-03/part-0.parquet", id=pa.int64(), name=pa.string())
    events = by_name(lumos.ingest(lake))["events"]
    assert events.versioning is not None
    assert (events.versioning.cloud_version, events.versioning.schema_version) == ("S-2", "1.0.0")
    assert (events.change, events.changes) == ("changed", ())


def test_a_bad_file_is_a_problem_and_changes_no_dataset(lake: Path) -> None:
    lumos = Lumos()
    lumos.ingest(lake)
    bad = lake / "events/dt=2024-01-02/part-1.parquet"
    bad.write_bytes(b"PAR1 cut off")
    (lake / "ref/users.csv").write_bytes(b"\x00\x01\x02")
    report = lumos.ingest(lake)
    assert [(problem.path, problem.code) for problem in report.problems] == [
        (str(bad), "not_parquet"),
        (str(lake / "ref/users.csv"), "not_text"),
    ]
    assert report.summary.files_failed == 2
    assert by_name(report)["events"].change == "unchanged"
    assert by_name(report)["users"].change == "unchanged"
    assert report.held == ()
    assert lumos.show("users").dataset["versioning"]["cloud_version"] == "S-1"


def test_a_dataset_that_goes_and_comes_back_keeps_its_history(lake: Path) -> None:
    lumos = Lumos(overrides={"scan.max_removed_share": 0.5})
    lumos.ingest(lake)
    shutil.move(lake / "events", lake.parent / "aside")
    gone = lumos.ingest(lake)
    assert gone.missing == (f"lumos://file{lake}/events",)
    assert gone.summary.datasets_missing == 1
    assert [dataset.name for dataset in lumos.list().datasets] == ["rates", "users"]
    shutil.move(lake.parent / "aside", lake / "events")
    back = by_name(lumos.ingest(lake))["events"]
    assert back.change == "changed"
    assert back.versioning is not None
    assert (back.versioning.cloud_version, back.versioning.schema_version) == ("S-3", "1.0.0")


def test_sudden_mass_disappearance_is_not_believed(lake: Path) -> None:
    lumos = Lumos()
    lumos.ingest(lake)
    shutil.rmtree(lake / "ref")
    report = lumos.ingest(lake)
    assert report.missing == ()
    assert len(report.held) == 2
    assert len(lumos.list().datasets) == 3


def test_two_formats_under_one_name_stay_apart(lake: Path) -> None:
    write_text(lake / "events/dt=2024-01-01/part-0.csv", ["a,b", "1,2"])
    urns = [dataset.urn for dataset in Lumos().ingest(lake / "events").datasets]
    assert urns == [f"lumos://file{lake}/events", f"lumos://file{lake}/events/%2A.csv"]


def test_odd_names_survive_the_way_into_the_store(tmp_path: Path) -> None:
    write_text(tmp_path / "lake/ä b%2F\nx/sm'ile=😀.csv", ["a,b", "1,2"])
    lumos = Lumos()
    (found,) = lumos.ingest(tmp_path / "lake").datasets
    assert found.name == "sm'ile=😀"
    assert lumos.show(found.urn).dataset["urn"] == found.urn


def test_a_calendar_partition_is_named(tmp_path: Path) -> None:
    write_parquet(tmp_path / "lake/clicks/year=2024/month=01/day=09/part-0.parquet", id=pa.int64())
    (found,) = Lumos().ingest(tmp_path / "lake").datasets
    assert found.location is not None
    assert found.location.partitioning == "year={yyyy}/month={mm}/day={dd}"
    assert [field.type for field in found.schema.fields] == ["INT64", "INT32", "INT32", "INT32"]


def test_a_column_that_is_null_in_new_files_keeps_its_type(tmp_path: Path) -> None:
    lumos = Lumos()
    write_parquet(tmp_path / "lake/t/part-0.parquet", a=pa.string())
    lumos.ingest(tmp_path / "lake")
    write_parquet(tmp_path / "lake/t/part-1.parquet", a=pa.null())
    (found,) = lumos.ingest(tmp_path / "lake").datasets
    assert (found.schema.fields[0].type, found.changes) == ("STRING", ())


def test_sources_come_from_the_configuration(lake: Path, tmp_path: Path) -> None:
    write_text(
        tmp_path / "sources.yaml",
        ["sources:", "  - type: file", "    path: lake", "    file_patterns: ['*.csv']",
         "    exclude: ['users*']", "cloud_version_prefix: rel-", "environment: staging"],
    )  # fmt: skip
    (found,) = Lumos(tmp_path / "sources.yaml").ingest().datasets
    assert found.urn == f"lumos://file{lake}/ref/rates_YYYY-MM-DD.csv?env=STAGING"
    assert found.location is not None
    assert found.location.uri == f"{lake}/ref/rates_*.csv"
    assert found.versioning is not None
    assert found.versioning.cloud_version == "rel-1"


def test_nothing_to_ingest_says_how_to_name_something() -> None:
    with pytest.raises(MisuseError, match="lumos ingest PATH"):
        Lumos().ingest()


def test_a_registered_platform_receives_what_changed(lake: Path, tmp_path: Path) -> None:
    received: list[str] = []

    class Recorded(Platform):
        kind = "recorded"

        def __init__(self, settings: object) -> None:
            self.settings = settings

        def emit(self, dataset: Dataset) -> None:
            received.append(dataset.name)

    register(PLATFORMS, "recorded", Recorded)
    try:
        write_text(tmp_path / "lumos.yaml", ["platform: recorded"])
        lumos = Lumos()
        lumos.ingest(lake)
        assert sorted(received) == ["events", "rates", "users"]
        lumos.ingest(lake)
        assert len(received) == 3
    finally:
        unregister(PLATFORMS, "recorded")


def test_a_platform_that_refuses_gets_the_change_again_next_time(
    lake: Path, caplog: pytest.LogCaptureFixture
) -> None:
    attempts: list[str] = []

    class Refusing(Platform):
        kind = "refusing"

        def __init__(self, settings: object) -> None:
            self.settings = settings

        def emit(self, dataset: Dataset) -> None:
            attempts.append(dataset.name)
            if len(attempts) == 2:
                raise MisuseError("The catalog said no.")

    register(PLATFORMS, "refusing", Refusing)
    try:
        lumos = Lumos(environment={"LUMOS_PLATFORM": "refusing"})
        first = lumos.ingest(lake).catalog
        second = lumos.ingest(lake).catalog
    finally:
        unregister(PLATFORMS, "refusing")
    assert first is not None
    assert second is not None
    assert (first.published, first.waiting, second.published) == (2, 0, 1)
    assert [each.problem for each in first.refused] == ["The catalog said no."]
    assert f"rejected the dataset {first.refused[0].key}" in caplog.text
    assert attempts[3:] == [attempts[1]]


def test_a_scan_that_fails_leaves_no_manifest_behind(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lumos = Lumos()

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lumos.discovery.dataset_recorder.DatasetRecorder.record", fail)
    with pytest.raises(OSError, match="No space"):
        lumos.ingest(lake)
    monkeypatch.undo()
    leftovers = [folder for folder in Path(lumos.state_uri).rglob("*") if folder.is_file()]
    assert leftovers == []
    assert lumos.store_status().rows["dataset"] == 0


def test_a_source_that_cannot_be_scanned_yet_does_not_stop_the_others(
    lake: Path, tmp_path: Path
) -> None:
    write_text(
        tmp_path / "lumos.yaml",
        ["platform: redshift", "sources:", "  - {type: snowflake, account: a, user: u}",
         f"  - {{type: file, path: {lake}}}"],
    )  # fmt: skip
    assert len(Lumos().ingest().datasets) == 3


def test_roots_inside_one_another_are_scanned_once(lake: Path) -> None:
    report = Lumos().ingest(lake, lake / "ref", lake)
    assert (report.summary.datasets_new, report.summary.datasets_unchanged) == (3, 0)


def test_the_tenth_month_is_newer_than_the_ninth(tmp_path: Path) -> None:
    write_parquet(tmp_path / "lake/t/month=10/part-0.parquet", a=pa.int64(), b=pa.int64())
    write_parquet(tmp_path / "lake/t/month=9/part-0.parquet", a=pa.int64())
    (found,) = Lumos().ingest(tmp_path / "lake").datasets
    assert [field.name for field in found.schema.fields] == ["a", "b", "month"]


def test_two_stores_in_one_folder_keep_apart(lake: Path, tmp_path: Path) -> None:
    one = Lumos(overrides={"storage.path": str(tmp_path / "one.db")})
    two = Lumos(overrides={"storage.path": str(tmp_path / "two.db")})
    one.ingest(lake)
    assert two.ingest(lake).summary.datasets_new == 3
    assert one.ingest(lake).summary.files_read == 0


def test_the_file_backend_mirrors_schemas_as_text(lake: Path, tmp_path: Path) -> None:
    lumos = Lumos(overrides={"storage.backend": "file", "storage.path": str(tmp_path / "known")})
    lumos.ingest(lake)
    write_parquet(lake / "events/dt=2024-01-03/part-0.parquet", id=pa.int64())
    lumos.ingest(lake)
    folder = tmp_path / f"known/schemas/file{lake}/events"
    assert sorted(file.name for file in folder.iterdir()) == ["1.0.0.schema", "2.0.0.schema"]
    assert (folder / "2.0.0.schema").read_text().endswith("id INT64\ndt DATE PARTITION\n")


def test_only_the_top_folder_is_scanned_where_that_is_wanted(lake: Path, tmp_path: Path) -> None:
    write_text(lake / "top.csv", ["a,b", "1,2"])
    write_text(
        tmp_path / "lumos.yaml",
        ["sources:", f"  - {{type: file, path: {lake}, recursive: false}}"],
    )
    assert [dataset.name for dataset in Lumos().ingest().datasets] == ["top"]


def test_two_scans_of_one_source_at_a_time_are_refused(lake: Path) -> None:
    lumos = Lumos()
    lumos.ingest(lake)
    with (
        Store.open(lumos.database).lock(f"file:{lake}"),
        pytest.raises(LumosError, match="Another scan of"),
    ):
        Lumos().ingest(lake)
    assert lumos.ingest(lake).summary.datasets_unchanged == 3


def versions(report: IngestReport) -> dict[str, str]:
    return {
        dataset.name: f"{dataset.versioning.cloud_version} {dataset.versioning.schema_version}"
        for dataset in report.datasets
        if dataset.versioning
    }


def test_a_numbered_file_joins_and_nothing_changes_without_a_change(tmp_path: Path) -> None:
    lumos, folder = Lumos(), tmp_path / "lake/s"
    write_parquet(folder / "users_1.parquet", id=pa.int64())
    assert versions(lumos.ingest(tmp_path / "lake")) == {"users": "S-1 1.0.0"}
    write_parquet(folder / "users_2.parquet", id=pa.int64())
    assert versions(lumos.ingest(tmp_path / "lake")) == {"users": "S-2 1.0.0"}
    for _ in range(2):
        report = lumos.ingest(tmp_path / "lake")
        assert versions(report) == {"users": "S-2 1.0.0"}
        assert (report.summary.datasets_changed, report.summary.datasets_missing) == (0, 0)


def test_a_file_that_breaks_later_changes_nothing_until_it_is_mended(tmp_path: Path) -> None:
    lumos, folder = Lumos(), tmp_path / "lake/t"
    write_parquet(folder / "part-1.parquet", a=pa.int64())
    write_parquet(folder / "part-2.parquet", a=pa.int64(), b=pa.int64())
    lumos.ingest(tmp_path / "lake")
    (folder / "part-2.parquet").write_bytes(b"garbage")
    for _ in range(2):
        report = lumos.ingest(tmp_path / "lake")
        assert versions(report) == {"t": "S-1 1.0.0"}
        assert [problem.code for problem in report.problems] == ["not_parquet"]
        assert (report.summary.files_failed, report.datasets[0].change) == (1, "unchanged")
    write_parquet(folder / "part-2.parquet", a=pa.int64())
    assert versions(lumos.ingest(tmp_path / "lake")) == {"t": "S-2 1.0.0"}
    # An earlier schema counts again when it is still the newest a scan later.
    assert versions(lumos.ingest(tmp_path / "lake")) == {"t": "S-3 2.0.0"}


def test_a_folder_that_cannot_be_listed_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lumos, lake = Lumos(), tmp_path / "lake"
    write_parquet(lake / "t/dt=2024-01-01/part-0.parquet", a=pa.int64())
    write_parquet(lake / "t/dt=2024-01-02/part-0.parquet", a=pa.int64(), b=pa.int64())
    lumos.ingest(lake)
    real = os.scandir

    def refuse(folder: str) -> object:
        if str(folder).endswith("dt=2024-01-02"):
            raise PermissionError(13, "Permission denied", folder)
        return real(folder)

    # Tests may run as root, whom no permission stops; a lake this small is listed in this process.
    monkeypatch.setattr("lumos.storage.local.os.scandir", refuse)
    report = lumos.ingest(lake)
    assert [problem.code for problem in report.problems] == ["permission_denied"]
    assert versions(report) == {"t": "S-1 1.0.0"}
    monkeypatch.undo()
    assert versions(lumos.ingest(lake)) == {"t": "S-1 1.0.0"}


def test_one_file_of_a_dataset_scanned_by_itself_leaves_the_dataset_alone(lake: Path) -> None:
    lumos = Lumos()
    lumos.ingest(lake)
    report = lumos.ingest(lake / "events/dt=2024-01-01/part-0.parquet")
    (alone,) = report.datasets
    assert alone.urn.endswith("/lake/events")
    assert (alone.change, alone.statistics.file_count) == ("unchanged", 1)
    assert [problem.code for problem in report.problems] == ["inside_dataset"]
    assert lumos.show("events").dataset["statistics"]["file_count"] == 2
    assert versions(lumos.ingest(lake))["events"] == "S-1 1.0.0"


def test_a_null_partition_does_not_change_the_key_type(tmp_path: Path) -> None:
    lumos = Lumos()
    write_parquet(tmp_path / "lake/t/k=1/part-0.parquet", a=pa.int64())
    lumos.ingest(tmp_path / "lake")
    write_parquet(tmp_path / "lake/t/k=__HIVE_DEFAULT_PARTITION__/part-0.parquet", a=pa.int64())
    (found,) = lumos.ingest(tmp_path / "lake").datasets
    assert (found.schema.fields[1].type, found.changes) == ("INT64", ())


def test_a_table_beside_partitions_has_none(tmp_path: Path) -> None:
    write_parquet(tmp_path / "lake/o/k=1/part-0.parquet", a=pa.int64())
    write_parquet(tmp_path / "lake/o/other.parquet", b=pa.int64())
    found = by_name(Lumos().ingest(tmp_path / "lake"))
    assert [field.name for field in found["o"].schema.fields] == ["a", "k"]
    assert [field.name for field in found["other"].schema.fields] == ["b"]


def test_columns_with_one_name_are_distinguished(tmp_path: Path) -> None:
    folder = tmp_path / "lake/d"
    folder.mkdir(parents=True)
    twice = pa.table([pa.array([1]), pa.array(["x"]), pa.array([1])], names=["a", "a", "A"])
    pq.write_table(twice, folder / "part-0.parquet")
    (found,) = Lumos().ingest(tmp_path / "lake").datasets
    assert [field.name for field in found.schema.fields] == ["a", "a_2", "A"]
    assert found.flags == ("case-only: a, A",)


def test_the_sdk_writes_and_checks_a_configuration(tmp_path: Path) -> None:
    assert Lumos.init().file == str(tmp_path / "lumos.yaml")
    with pytest.raises(MisuseError, match="exists already"):
        Lumos.init()
    checked = Lumos().config_check()
    assert (checked.file, checked.notes) == (str(tmp_path / "lumos.yaml"), ())
    assert checked.settings["platform"] == "local"


def test_accepted_removals_are_held_up_by_nothing_that_lies_beside(tmp_path: Path) -> None:
    for name in ("alpha", "beta", "gamma"):
        write_text(tmp_path / f"lake/{name}.csv", [f"{name}_id,{name}_name", "1,Ann"])
    (tmp_path / "lake/broken.parquet").write_bytes(b"PAR1 and no footer")
    lumos = Lumos()
    lumos.ingest(tmp_path / "lake")
    (tmp_path / "lake/alpha.csv").unlink()
    held = lumos.ingest(tmp_path / "lake")
    assert (len(held.held), held.missing) == (1, ())
    gone = lumos.ingest(tmp_path / "lake", accept_removals=True)
    assert (gone.held, len(gone.missing)) == ((), 1)


def test_a_remark_is_no_reason_to_doubt_that_something_is_gone(tmp_path: Path) -> None:
    for name in ("alpha", "beta", "gamma", "delta"):
        write_text(tmp_path / f"lake/{name}.csv", [f"{name}_id,{name}_name", "1,Ann"])
    write_parquet(tmp_path / "lake/other.csv", whatever=pa.int64())
    lumos = Lumos()
    first = lumos.ingest(tmp_path / "lake")
    assert [(each.code, each.remark) for each in first.problems] == [("mislabelled", True)]
    (tmp_path / "lake/alpha.csv").unlink()
    assert len(lumos.ingest(tmp_path / "lake").missing) == 1
