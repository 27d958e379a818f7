"""Paths that a table's own metadata names: nothing outside of the scanned roots is opened."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discovery.lake.tables_scanned import Scans
from discovery.lake.tables_written import write_delta, write_iceberg
from formats.tables.delta_logs import add, field, log, metadata, protocol, small
from formats.tables.hudi_tables import table_of
from lumos.discovery.lake.table_folder import StoredTableFolder
from lumos.discovery.lake.table_paths import TablePaths, without_dot_segments
from lumos.discovery.lake.table_reader import TableMemory
from lumos.formats.interface import UnreadableFile
from lumos.formats.tables import table_reader
from lumos.model.json_codec import to_json
from lumos.model.schema import Field, Schema
from lumos.model.types import parse_type
from lumos.profiles.columns import profiled_columns
from lumos.profiles.files import table_files
from lumos.profiles.job import ProfileJob, read_tasks
from lumos.profiles.measurements import FileTotals
from lumos.storage import DEFAULT_ACCESS, LocalStorage
from lumos.storage.s3 import S3Access
from s3_server import S3Server


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    return tmp_path / "outside"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The real location of whatever is listed or opened on this machine."""
    found: list[str] = []
    for name in ("entries", "read", "open"):
        original = getattr(LocalStorage, name)

        def spy(self: Any, path: str, *given: Any, original: Any = original, **named: Any) -> Any:
            found.append(str(Path(path).resolve()))
            return original(self, path, *given, **named)

        monkeypatch.setattr(LocalStorage, name, spy)
    return found


def save(files: dict[str, bytes], folder: Path) -> None:
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


def linked(path: Path, target: Path) -> None:
    """Moves a file or folder, and leaves a link in its place."""
    shutil.move(path, target)
    path.symlink_to(target)


def hudi_timeline(table: Path, outside: Path) -> None:
    """The timeline is kept outside, by a property."""
    written = table_of("appended", 9)
    written.properties["hoodie.timeline.path"] = "../../../outside/timeline"
    written.save_properties()
    written.save(table)
    shutil.move(table / ".hoodie/timeline", outside / "timeline")


def hudi_link_like_a_scheme(table: Path, outside: Path) -> None:
    """The timeline is named like an address, and a folder of that name is a link."""
    written = table_of("appended", 9)
    written.properties["hoodie.timeline.path"] = "x://timeline"
    written.save_properties()
    written.save(table)
    shutil.move(table / ".hoodie/timeline", outside / "timeline")
    (table / ".hoodie/x:").symlink_to(outside)


def hudi_dots_behind_a_scheme(table: Path, outside: Path) -> None:
    written = table_of("appended", 9)
    written.properties["hoodie.timeline.path"] = "x://../../../../outside/y://timeline"
    written.save_properties()
    written.save(table)
    (table / ".hoodie/x:").mkdir()
    (outside / "y:").mkdir()
    shutil.move(table / ".hoodie/timeline", outside / "y:/timeline")


def hudi_link(table: Path, outside: Path) -> None:
    table_of("appended", 9).save(table)
    linked(table / ".hoodie", outside / "hoodie")


def hudi_data_link(table: Path, outside: Path) -> None:
    table_of("appended", 9).save(table)
    file = next(each for each in sorted(table.rglob("*.parquet")))
    linked(file, outside / file.name)


def delta_log_link(table: Path, outside: Path) -> None:
    write_delta(table)
    linked(table / "_delta_log", outside / "log")


def delta_commit_link(table: Path, outside: Path) -> None:
    write_delta(table)
    linked(table / f"_delta_log/{0:020}.json", outside / "commit.json")


def iceberg_link(table: Path, outside: Path) -> None:
    write_iceberg(table.parent, "t")
    shutil.move(table.parent / "n/t", table)
    linked(table / "metadata", outside / "metadata")


def iceberg_file_link(table: Path, outside: Path) -> None:
    write_iceberg(table.parent, "t")
    shutil.move(table.parent / "n/t", table)
    newest = max((table / "metadata").glob("*.metadata.json"))
    linked(newest, outside / newest.name)


REFUSED = [
    hudi_timeline,
    hudi_link_like_a_scheme,
    hudi_dots_behind_a_scheme,
    hudi_link,
    hudi_data_link,
    delta_log_link,
    delta_commit_link,
    iceberg_link,
    iceberg_file_link,
]


@pytest.mark.parametrize("make", REFUSED, ids=lambda make: make.__name__)
def test_a_table_that_leads_outside_is_a_problem_and_nothing_there_is_opened(
    make: Callable[[Path, Path], None],
    lake: Path,
    outside: Path,
    opened: list[str],
    scans: Scans,
) -> None:
    write_delta(lake / "good")
    make(lake / "t", outside)
    opened.clear()
    assert scans.found() == {"good": "delta"}
    assert ("t", "outside_path") in scans.problems
    assert [path for path in opened if path.startswith(str(outside))] == []


@pytest.mark.parametrize("make", REFUSED, ids=lambda make: make.__name__)
def test_what_lies_in_the_scanned_root_is_read(
    make: Callable[[Path, Path], None],
    tmp_path: Path,
    outside: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make(tmp_path / "lake/t", outside)
    scans = Scans(str(tmp_path), tmp_path / "state", monkeypatch)
    assert "lake/t" in scans.found()
    assert "outside_path" not in {code for _, code in scans.problems}


@pytest.mark.parametrize("named", ["version", "file"])
def test_the_archive_of_a_hudi_table_leads_nowhere(
    named: str, lake: Path, outside: Path, opened: list[str], scans: Scans
) -> None:
    table_of("archived", 9).save(lake / "t")
    history = lake / "t/.hoodie/timeline/history"
    shutil.copytree(history, outside / "manifest_history")
    if named == "version":
        away = "history/../../../../../../outside/manifest_history/manifest_1"
        (history / "manifest_history").mkdir()
        (history / "_version_").write_text(away)
    else:
        names = {"files": [{"fileName": "../../../../../outside/manifest_history/x.parquet"}]}
        number = (history / "_version_").read_text()
        (history / f"manifest_{number}").write_text(json.dumps(names))
    opened.clear()
    assert scans.found() == {"t": "hudi"}
    assert ("t", "incomplete_history") in scans.problems
    assert [path for path in opened if path.startswith(str(outside))] == []


def test_a_known_table_that_became_a_link_is_not_followed(
    lake: Path, outside: Path, opened: list[str], scans: Scans
) -> None:
    write_delta(lake / "t")
    before = scans.scan().datasets
    linked(lake / "t", outside / "t")
    opened.clear()
    assert scans.scan().datasets == before
    assert ("t", "outside_path") in scans.problems
    assert [path for path in opened if path.startswith(str(outside))] == []


def test_metadata_of_iceberg_that_names_a_table_above_the_lake_is_read_where_it_lies(
    lake: Path, outside: Path, opened: list[str], scans: Scans
) -> None:
    write_iceberg(lake, "t", **{"write.metadata.path": f"file://{lake}/meta/t"})
    for file in (lake / "meta/t").glob("*.metadata.json"):
        metadata = json.loads(file.read_text())
        metadata["location"] = f"file://{lake}/../outside/t"
        file.write_text(json.dumps(metadata))
    shutil.move(lake / "n/t", outside / "t")
    opened.clear()
    scans.scan()
    assert [path for path in opened if path.startswith(str(outside))] == []


def test_manifests_of_iceberg_outside_are_not_opened(
    lake: Path, outside: Path, opened: list[str], scans: Scans
) -> None:
    write_iceberg(lake, "t")
    for file in (lake / "n/t/metadata").glob("*.metadata.json"):
        metadata = json.loads(file.read_text())
        for snapshot in metadata["snapshots"]:
            name = Path(snapshot["manifest-list"]).name
            shutil.copy(lake / "n/t/metadata" / name, outside / name)
            snapshot["manifest-list"] = (
                f"{metadata['location']}/metadata/../../../../outside/{name}"
            )
        file.write_text(json.dumps(metadata))
    opened.clear()
    assert scans.found() == {"n/t": "iceberg"}
    assert ("n/t", "outside_data") in scans.problems
    assert [path for path in opened if path.startswith(str(outside))] == []


def test_dots_in_a_bucket_lead_to_no_key_outside_and_are_no_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of("appended", 9)
    objects = {
        path.replace("/timeline/", "/../../secret/"): data for path, data in table.files.items()
    }
    table.properties["hoodie.timeline.path"] = "../../secret"
    table.save_properties()
    objects[".hoodie/hoodie.properties"] = table.files[".hoodie/hoodie.properties"]
    # The timeline lies both where engines look for it and below a key with dots in it.
    keys = {f"lake/t/{path}": data for path, data in objects.items()}
    keys |= {without_dot_segments(f"/{key}")[1:]: data for key, data in keys.items()}
    with S3Server({"b": keys}) as server:
        access = S3Access(endpoint_url=server.url, access_key_id="k", secret_access_key="s")
        scans = Scans("s3://b/lake/t", tmp_path / "state", monkeypatch, access=access)
        assert scans.found() == {}
        assert ("", "outside_path") in scans.problems
        asked = [request.path + str(request.query) for request in server.requests]
        assert [each for each in asked if "secret" in each] == []


def test_a_lake_may_be_reached_by_a_link(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_delta(lake / "orders")
    (tmp_path / "link").symlink_to(lake)
    scans = Scans(str(tmp_path / "link"), tmp_path / "state", monkeypatch)
    assert scans.found() == {"orders": "delta"}


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("a.parquet", "s3://lake/sales/t/a.parquet"),
        ("x=1//a.parquet", "s3://lake/sales/t/x=1//a.parquet"),
        ("../u/a.parquet", "s3://lake/sales/u/a.parquet"),
        ("s3a://lake/sales/u/./a.parquet", "s3://lake/sales/u/a.parquet"),
        ("s3://archive/2023/a.parquet", "s3://archive/2023/a.parquet"),
        ("a..b/..c/a.parquet", "s3://lake/sales/t/a..b/..c/a.parquet"),
        ("../../other/a.parquet", None),
        ("../../../../lake/sales2/a.parquet", None),
        ("s3://lake/sales2/a.parquet", None),
        ("s3://archive/2023/../2022/a.parquet", None),
        ("s3://sales/a.parquet", None),
        ("/etc/passwd", None),
        ("file:///etc/passwd", None),
        ("gs://lake/sales/t/a.parquet", None),
    ],
)
def test_paths_in_buckets_are_resolved_as_engines_do(path: str, location: str | None) -> None:
    paths = TablePaths("s3://lake/sales/t", ("s3://lake/sales", "s3://archive/2023"))
    if location is not None:
        assert paths.resolve(path) == location
        return
    with pytest.raises(UnreadableFile) as caught:
        paths.resolve(path)
    assert caught.value.code == "outside_path"


def test_dots_above_everything_stay_at_the_top() -> None:
    assert without_dot_segments("/a/../../b") == "/b"
    assert without_dot_segments("s3://bucket/../../b") == "s3://bucket/b"


def secret(outside: Path) -> Path:
    pq.write_table(pa.table({"a": pa.array([1, 2], pa.int64())}), outside / "secret.parquet")
    return outside / "secret.parquet"


def profiled(table: Path, *roots: Path) -> FileTotals:
    """What is counted of a Delta table with the column `a`."""
    folder = StoredTableFolder(LocalStorage(), str(table))
    facts, memory = table_reader("delta").read(folder, None, max_commits=10)
    found = table_files(str(table), TableMemory("delta", to_json(facts), memory))
    leaves = tuple(profiled_columns(Schema(fields=(Field(name="a", type=parse_type("INT64")),))))
    job = ProfileJob(leaves, DEFAULT_ACCESS, found.fields, roots=tuple(map(str, roots)))
    counted: dict[int, FileTotals] = {}
    tasks = (file.task for file in found.files)
    assert not list(read_tasks(job, tasks, counted, (), pa.schema([])))
    return counted[0]


@pytest.mark.parametrize(
    "path",
    [
        "{outside}/secret.parquet",
        "file://{outside}/secret.parquet",
        "../outside/secret.parquet",
        "%2e%2e/outside/secret.parquet",
        "x/../../outside/secret.parquet",
        "{table}/../outside/secret.parquet",
        "link.parquet",
        "folder/secret.parquet",
    ],
)
def test_a_profile_opens_files_of_a_delta_table_in_scanned_roots_alone(
    path: str, tmp_path: Path, outside: Path
) -> None:
    table = tmp_path / "t"
    file = secret(outside)
    spelled = path.format(outside=outside, table=table)
    save(log([protocol(), metadata(field("a")), add(spelled, file.stat().st_size)]), table)
    (table / "link.parquet").symlink_to(file)
    (table / "folder").symlink_to(outside)
    refused = profiled(table, table)
    assert (refused.rows, [each.code for each in refused.problems.listed]) == (0, ["outside_path"])
    allowed = profiled(table, table, outside)
    assert (allowed.rows, allowed.problems.listed) == (2, [])


def test_an_address_that_no_storage_serves_is_a_problem(tmp_path: Path) -> None:
    save(log([protocol(), metadata(field("a")), add("ftp://host/a.parquet")]), tmp_path / "t")
    found = profiled(tmp_path / "t")
    assert [each.code for each in found.problems.listed] == ["outside_path"]


def test_a_deletion_vector_outside_is_not_opened(
    tmp_path: Path, outside: Path, opened: list[str]
) -> None:
    table = tmp_path / "t"
    save(small(1), table)
    shutil.copy(secret(outside), table / "f0")
    vector = {
        "storageType": "p",
        "pathOrInlineDv": "../outside/vector.bin",
        "sizeInBytes": 4,
        "cardinality": 1,
    }
    commit = [protocol(), metadata(field("a")), add("f0", 10, deletionVector=vector)]
    save(log(commit), table)
    opened.clear()
    assert [each.code for each in profiled(table).problems.listed] == ["outside_path"]
    assert [path for path in opened if path.startswith(str(outside))] == []
