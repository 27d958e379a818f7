"""Tables that do not lie in one folder, or in the midst of which a scan begins."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.table import Table

from discovery.lake.tables_scanned import Scans
from discovery.lake.tables_written import ROWS, write_delta, write_iceberg, write_loose
from lumos.discovery.lake.contents import LakeContents
from lumos.discovery.lake.table_reader import live_files, load_table_memory
from lumos.storage import DEFAULT_ACCESS
from lumos.storage.s3 import S3Access
from s3_server import S3Server


@pytest.mark.parametrize("hashed", ["false", "true"])
def test_data_outside_the_root_is_the_table_s(hashed: str, lake: Path, scans: Scans) -> None:
    write_loose(lake / "a/loose/x.parquet")
    pool = {"write.data.path": f"file://{lake}/pool/visits"}
    write_iceberg(lake, "visits", **pool, **{"write.object-storage.enabled": hashed})
    assert list((lake / "pool/visits").rglob("*.parquet"))
    assert scans.found() == {"n/visits": "iceberg", "a/loose/x.parquet": "parquet"}
    assert scans.jobs == 3, "works that took the table's files for loose ones are done once more"
    again = scans.scan()
    assert (again.files_read, again.tables_read, scans.jobs) == (0, 0, 2)
    shutil.rmtree(lake / "n")
    left = scans.found()
    assert left.pop("a/loose/x.parquet") == "parquet"
    assert [path.partition("/")[0] for path in left] == ["pool"], "files of no table are loose"


def test_data_outside_of_what_is_scanned_is_named(lake: Path, tmp_path: Path, scans: Scans) -> None:
    write_iceberg(lake, "visits", **{"write.data.path": f"file://{tmp_path}/elsewhere"})
    assert scans.found() == {"n/visits": "iceberg"}
    assert scans.problems == {("n/visits", "outside_data")}


def test_very_many_files_elsewhere_are_claimed_by_their_folders(
    lake: Path, scans: Scans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumos.discovery.lake.table_reader._MAX_OWNED_FILES", 3)
    catalog = InMemoryCatalog("judge", warehouse=f"file://{lake}")
    catalog.create_namespace("n")
    where = {"write.data.path": f"file://{lake}/pool/visits"}
    table = catalog.create_table("n.visits", ROWS.schema, properties=where)
    for _ in range(5):
        table.append(ROWS)
    write_loose(lake / "pool/loose/x.parquet")
    assert scans.found() == {"n/visits": "iceberg", "pool/loose/x.parquet": "parquet"}
    (kept,) = scans.manifest.tables.values()
    assert kept.owned_paths == (str(lake / "pool/visits"),)
    assert scans.scan().files_read == 0


@pytest.mark.parametrize("root", ["orders/c=x", "orders/_delta_log", "n/visits/data"])
def test_a_scan_that_begins_inside_of_a_table_says_so(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    write_delta(lake / "orders", by=["c"])
    write_iceberg(lake, "visits")
    inside = Scans(str(lake / root), tmp_path / "inside", monkeypatch)
    codes = {(each.code, each.path, each.remark) for each in inside.scan().problems}
    assert codes == {("inside_table", str(lake / root), True)}
    loose = {each.code for each in inside.scan(tables=False).problems}
    assert loose <= {"inside_dataset"}
    for whole in (lake, lake / "orders"):
        assert not Scans(str(whole), tmp_path / whole.name, monkeypatch).scan().problems


def apart(lake: Path, log: str, **properties: str) -> Table:
    """A table at `n/visits` whose metadata lies in another folder of the lake."""
    catalog = InMemoryCatalog("judge", warehouse=f"file://{lake}")
    catalog.create_namespace("n")
    where = {"write.metadata.path": f"file://{lake}/{log}", **properties}
    table = catalog.create_table("n.visits", ROWS.schema, properties=where)
    table.append(ROWS)
    return table


@pytest.mark.parametrize(
    ("log", "data"),
    [
        ("meta/v", ""),
        ("meta/v", "pool/visits"),
        ("meta/v/metadata", ""),
        ("meta/v/metadata", "pool/visits"),
        ("n/visits/meta", "pool/visits"),
        ("n/visits", ""),
        ("n/visits", "n/visits"),
        ("a", "n/visits"),
    ],
)
def test_a_table_whose_metadata_lies_apart_is_one_dataset_at_its_location(
    log: str, data: str, lake: Path, scans: Scans
) -> None:
    write_loose(lake / "loose/x.parquet")
    where = {"write.data.path": f"file://{lake}/{data}"} if data else {}
    table = apart(lake, log, **where)
    expected = {"n/visits": "iceberg", "loose/x.parquet": "parquet"}
    assert scans.found() == expected
    assert scans.problems == set()
    before = scans.last
    assert before is not None
    again = scans.scan()
    assert (again.files_read, again.tables_read, scans.jobs) == (0, 0, 2)
    assert again.datasets == before.datasets
    table.append(ROWS)
    table.delete("id = 2")
    assert scans.found() == expected
    visits = scans.dataset("n/visits")
    assert visits.statistics.row_count == table.scan().to_arrow().num_rows
    assert visits.statistics.file_count == len(list(table.scan().plan_files()))
    assert visits.location.uri == str(lake / "n/visits")
    (kept,) = scans.manifest.tables.values()
    memory = load_table_memory(kept, DEFAULT_ACCESS)
    assert memory is not None
    live = {
        str(lake / "n/visits" / file.path.removeprefix("file://")) for file in live_files(memory)
    }
    assert live == {
        task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()
    }
    shutil.rmtree(lake / log)
    assert "iceberg" not in scans.found().values(), "without its metadata there is no table"


@pytest.mark.parametrize("narrowed", [{"file_patterns": ("*.parquet",)}, {"exclude": ("*.json",)}])
def test_patterns_of_files_say_nothing_of_metadata_that_lies_apart(
    narrowed: dict[str, object], lake: Path, scans: Scans
) -> None:
    apart(lake, "meta/v")
    assert scans.found(**narrowed) == {"n/visits": "iceberg"}


@pytest.mark.parametrize("exclude", ["meta/*", "n/*", "visits", "v"])
def test_a_table_is_left_out_by_its_place_or_that_of_its_metadata(
    exclude: str, lake: Path, scans: Scans
) -> None:
    apart(lake, "meta/v")
    for _ in range(2):
        assert "iceberg" not in scans.found(exclude=(exclude,)).values()


def test_what_was_loose_goes_on_as_the_table_by_its_data(lake: Path, scans: Scans) -> None:
    table = apart(lake, "a/v")
    table.append(ROWS)
    before = scans.found(tables=False)
    assert scans.found(tables=True) == {"n/visits": "iceberg"}
    visits = scans.dataset("n/visits")
    former = [scans.inside(each or "") for each in (visits.renamed_from, *visits.merged_from)]
    assert set(former) == set(before)
    assert former[0].startswith("n/visits/data")


@pytest.mark.parametrize("back", [False, True])
def test_metadata_may_move_while_the_table_lives_on(back: bool, lake: Path, scans: Scans) -> None:
    catalog = InMemoryCatalog("judge", warehouse=f"file://{lake}")
    catalog.create_namespace("n")
    table = catalog.create_table("n.visits", ROWS.schema)
    table.append(ROWS)
    assert scans.found() == {"n/visits": "iceberg"}
    with table.transaction() as change:
        change.set_properties({"write.metadata.path": f"file://{lake}/meta/v"})
    table.append(ROWS)
    if back:
        with table.transaction() as change:
            change.remove_properties("write.metadata.path")
        table.append(ROWS)
    for _ in range(2):
        assert scans.found() == {"n/visits": "iceberg"}
        assert scans.dataset("n/visits").statistics.row_count == (9 if back else 6)
    assert scans.last is not None
    assert scans.last.tables_read == 0
    shutil.rmtree(lake / "meta")
    assert scans.found() == {"n/visits": "iceberg"}, "what lies in the usual place tells of it"
    assert scans.problems == ({("n/visits", "outside_data")} if back else set())


def test_a_lake_that_was_moved_as_a_whole_has_the_same_tables(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart(lake, "meta/v", **{"write.data.path": f"file://{lake}/n/visits/parts"})
    shutil.move(lake, tmp_path / "moved")
    scans = Scans(str(tmp_path / "moved"), tmp_path / "state", monkeypatch)
    assert scans.found() == {"n/visits": "iceberg"}
    assert scans.dataset("n/visits").statistics.row_count == 3
    assert scans.problems == set()


def test_a_table_of_which_only_the_metadata_is_scanned_is_found_there(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart(lake, "meta/v")
    scans = Scans(str(lake / "meta"), tmp_path / "state", monkeypatch)
    for _ in range(2):
        assert scans.found() == {"v": "iceberg"}
        assert scans.problems == {("v", "outside_data")}
        assert scans.dataset("v").statistics.row_count == 3
    data = Scans(str(lake / "n"), tmp_path / "of_data", monkeypatch)
    assert set(data.found().values()) == {"parquet"}, "nothing there tells of the table"


def test_metadata_in_buckets_may_lie_apart(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = apart(lake, "meta/v")
    for _ in range(3):
        table.append(ROWS)
    files = {str(each.relative_to(lake)): each.read_bytes() for each in lake.rglob("*.*")}
    # Its addresses are of a place where the lake lay before.
    with S3Server({"lake": files}, page_size=3) as server:
        access = S3Access(endpoint_url=server.url, access_key_id="k", secret_access_key="s")
        scans = Scans("s3://lake", tmp_path / "state", monkeypatch, access=access)
        assert scans.found() == {"n/visits": "iceberg"}
        assert scans.dataset("n/visits").statistics.row_count == 12
        server.requests.clear()
        scans.scan()
        assert server.counted("GET", listing=False) == 0, "an unchanged lake is not opened"


def _shared(lake: Path) -> None:
    apart(lake, "meta")
    catalog = InMemoryCatalog("other", warehouse=f"file://{lake}")
    catalog.create_namespace("n")
    where = {"write.metadata.path": f"file://{lake}/meta"}
    catalog.create_table("n.other", ROWS.schema, properties=where).append(ROWS)


def _copied_alone(lake: Path) -> None:
    write_iceberg(lake, "visits")
    shutil.copytree(lake / "n/visits/metadata", lake / "meta")
    shutil.rmtree(lake / "n")


def _above_its_table(lake: Path) -> None:
    apart(lake, "meta")
    shutil.move(lake / "n", lake / "meta/n")
    for file in (lake / "meta").glob("*.metadata.json"):
        text = file.read_text().replace(f"{lake}/n/visits", f"{lake}/meta/n/visits")
        file.write_text(text)


def _around_another(lake: Path) -> None:
    apart(lake, "meta")
    write_delta(lake / "n/visits/orders")


def _inside_another(lake: Path) -> None:
    apart(lake, "meta")
    write_delta(lake / "n")


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (_shared, "belongs to several tables"),
        (_copied_alone, "has no 'write.metadata.path'"),
        (_above_its_table, "in its own subfolder"),
        (_around_another, "would contain other tables"),
        (_inside_another, "would be part of another table"),
    ],
)
def test_metadata_without_a_table_is_reported(
    write: Callable[[Path], None], reason: str, lake: Path, scans: Scans
) -> None:
    write(lake)
    for _ in range(2):
        found = scans.scan()
        (problem,) = found.problems
        assert (problem.code, problem.path) == ("stray_metadata", str(lake / "meta"))
        assert problem.remark
        assert reason in problem.reason
        assert "iceberg" not in {each.format for each in found.datasets}


def test_two_folders_of_metadata_of_one_table_are_one_table_and_a_remark(
    lake: Path, scans: Scans
) -> None:
    apart(lake, "meta/v")
    shutil.copytree(lake / "meta/v", lake / "meta/w")
    for _ in range(2):
        found = scans.found()
        assert found.pop("n/visits") == "iceberg"
        assert all(path.startswith("meta/w/") for path in found)
        assert scans.problems == {("meta/w", "stray_metadata")}


def test_broken_metadata_that_lies_apart_hides_its_files_and_keeps_what_was_known(
    lake: Path, scans: Scans
) -> None:
    apart(lake, "meta/v")
    newest = max((lake / "meta/v").glob("*.metadata.json"))
    whole = newest.read_bytes()
    newest.write_bytes(b"[]")
    assert set(scans.found().values()) == {"parquet"}, "nobody can say where its data is"
    assert scans.problems == {("meta/v", "broken_table")}
    newest.write_bytes(whole[:-9])
    assert scans.found() == {"n/visits": "iceberg"}
    assert scans.problems == {("n/visits", "half_written_table")}, "it may be under way"
    newest.write_bytes(whole)
    assert scans.found() == {"n/visits": "iceberg"}
    assert scans.problems == set()
    newest.write_bytes(whole[:-9])
    assert scans.found() == {"n/visits": "iceberg"}
    assert scans.problems == {("n/visits", "broken_table")}, "it was whole before"


def test_explanations_know_metadata_that_lies_apart(lake: Path, scans: Scans) -> None:
    apart(lake, "meta/v")
    write_loose(lake / "loose/x.parquet")
    scans.scan()
    selection = scans.selection
    for lens in (
        LakeContents.of_scan(selection, scans.manifest, state_access=DEFAULT_ACCESS),
        LakeContents.read_now(selection, state_access=DEFAULT_ACCESS),
    ):
        for file in (*(lake / "meta/v").iterdir(), lake / "meta/v"):
            table = lens.tables.containing(str(file))
            assert table is not None
            assert table.root == str(lake / "n/visits")
            assert table.explain(str(file)).verdict == "log"
        (data,) = (lake / "n/visits").rglob("*.parquet")
        table = lens.tables.containing(str(data))
        assert table is not None
        assert table.explain(str(data)).verdict == "dataset"
        assert lens.tables.containing(str(lake / "loose/x.parquet")) is None
        assert [each.dataset for each in lens.groups] == [str(lake / "loose/x.parquet")]


def test_a_table_with_metadata_apart_comes_back_when_another_log_in_it_is_gone(
    lake: Path, scans: Scans
) -> None:
    apart(lake, "meta/v")
    assert scans.found() == {"n/visits": "iceberg"}
    write_delta(lake / "n/visits")
    assert scans.found() == {"n/visits": "delta"}
    shutil.rmtree(lake / "n/visits/_delta_log")
    for _ in range(2):
        assert scans.found() == {"n/visits": "iceberg"}
        assert scans.problems == set()
