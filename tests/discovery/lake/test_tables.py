"""Tables in a lake: one dataset each, none of their files loose, whatever became of them."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from discovery.lake.tables_scanned import Scans
from discovery.lake.tables_written import ROWS, write_delta, write_iceberg, write_loose
from formats.tables.delta_logs import small
from formats.tables.hudi_tables import table_of
from lumos.discovery.lake.table_paths import may_overlap
from lumos.formats.tables import table_reader
from lumos.storage import FileHint, KeyRange
from lumos.storage.s3 import S3Access
from s3_server import S3Server


def test_each_kind_of_table_is_one_dataset_and_its_files_are_none(lake: Path, scans: Scans) -> None:
    write_delta(lake / "sales/orders", by=["c"])
    write_iceberg(lake, "visits")
    for path, data in table_of("appended", 8).files.items():
        (lake / "trips" / path).parent.mkdir(parents=True, exist_ok=True)
        (lake / "trips" / path).write_bytes(data)
    write_loose(lake / "loose/x.parquet")
    assert scans.found() == {
        "sales/orders": "delta", "n/visits": "iceberg", "trips": "hudi", "loose/x.parquet": "parquet",
    }  # fmt: skip
    orders = scans.dataset("sales/orders")
    assert orders.statistics.row_count == 3
    assert orders.statistics.file_count == 2
    assert orders.location.partition_keys == ("c",)
    assert orders.table is not None
    assert orders.table.version == "0"


def test_an_unchanged_table_is_not_read_again(lake: Path, scans: Scans) -> None:
    write_delta(lake / "orders")
    write_iceberg(lake, "visits")
    assert scans.scan().tables_read == 2
    before = scans.last
    assert before is not None
    again = scans.scan()
    assert again.tables_read == 0
    assert again.datasets == before.datasets
    write_delta(lake / "orders")
    changed = scans.scan()
    assert changed.tables_read == 1
    orders = scans.dataset("orders")
    assert orders.table is not None
    assert (orders.table.version, orders.statistics.row_count) == ("1", 6)


def test_what_is_lost_of_a_table_is_read_anew(lake: Path, scans: Scans) -> None:
    write_delta(lake / "orders")
    before = scans.scan()
    parts = Path(scans.state, "parts")
    for file in parts.glob("*.facts"):
        file.unlink()
    again = scans.scan()
    assert (again.tables_read, again.datasets) == (1, before.datasets)
    for file in parts.glob("*.facts"):
        file.write_bytes(b"trash")
    again = scans.scan()
    assert (again.tables_read, again.datasets) == (1, before.datasets)
    for file in parts.glob("*.table"):
        file.unlink()
    again = scans.scan()
    assert (again.tables_read, again.datasets) == (1, before.datasets)
    for file in parts.glob("*.table"):
        file.unlink()
    write_delta(lake / "orders")
    assert scans.scan().datasets[0].statistics.row_count == 6
    for file in parts.glob("*.table"):
        file.write_bytes(b"trash")
    write_delta(lake / "orders")
    assert scans.scan().datasets[0].statistics.row_count == 9


def test_the_state_of_a_scan_holds_no_more_than_is_needed(lake: Path, scans: Scans) -> None:
    for _ in range(3):
        write_delta(lake / "orders")
        scans.scan()
    names = sorted(file.suffix for file in Path(scans.state, "parts").iterdir())
    assert names == [".facts", ".table"]


def test_a_broken_table_keeps_what_was_known_and_comes_back(lake: Path, scans: Scans) -> None:
    write_delta(lake / "orders")
    write_delta(lake / "orders")
    known = scans.scan().datasets
    last = lake / "orders/_delta_log/00000000000000000001.json"
    whole = last.read_bytes()
    last.write_bytes(whole[: len(whole) // 2])
    broken = scans.scan()
    assert scans.problems == {("orders", "broken_table")}
    assert broken.datasets == known
    last.write_bytes(whole)
    assert scans.scan().datasets == known
    assert scans.problems == set()


def test_a_table_with_too_many_columns_is_a_problem(lake: Path, scans: Scans) -> None:
    wide = {f"c{number}": pa.array([], pa.int64()) for number in range(20_001)}
    write_delta(lake / "wide", pa.table(wide))
    assert scans.scan().datasets == ()
    assert scans.problems == {("wide", "too_many_columns")}


def test_a_table_that_never_could_be_read_hides_its_files_all_the_same(
    lake: Path, scans: Scans
) -> None:
    write_delta(lake / "orders")
    (lake / "orders/_delta_log/00000000000000000000.json").write_bytes(b"{")
    write_loose(lake / "loose/x.parquet")
    assert scans.found() == {"loose/x.parquet": "parquet"}
    assert scans.problems == {("orders", "broken_table")}


def test_files_beside_an_empty_log_are_no_datasets_and_it_is_said_so(
    lake: Path, scans: Scans
) -> None:
    write_loose(lake / "orders/x.parquet")
    (lake / "orders/_delta_log").mkdir()
    assert scans.found() == {}
    assert scans.problems == {("orders", "half_written_table")}


def test_a_stray_log_does_not_hide_the_table_of_another_kind(lake: Path, scans: Scans) -> None:
    write_iceberg(lake, "visits")
    (lake / "n/visits/_delta_log").mkdir()
    assert scans.found() == {"n/visits": "iceberg"}
    assert scans.problems == {("n/visits", "half_written_table")}
    assert [problem.remark for problem in scans.last.problems] == [True]  # type: ignore[union-attr]
    assert scans.scan().tables_read == 0


def test_two_logs_in_one_root_are_one_dataset(lake: Path, scans: Scans) -> None:
    write_iceberg(lake, "both")
    write_delta(lake / "n/both")
    assert scans.found() == {"n/both": "delta"}
    metadata = scans.dataset("n/both").source_metadata
    assert metadata is not None
    assert metadata.properties["also"] == "iceberg"
    shutil.rmtree(lake / "n/both/metadata")
    assert scans.found() == {"n/both": "delta"}
    metadata = scans.dataset("n/both").source_metadata
    assert metadata is not None
    assert "also" not in metadata.properties


@pytest.mark.parametrize(
    ("narrowed", "found"),
    [
        ({"file_patterns": ("*.csv",)}, {"sales/orders": "delta"}),
        ({"exclude": ("*.parquet",)}, {"sales/orders": "delta"}),
        ({"exclude": ("sales/*",)}, {"x.parquet": "parquet"}),
        ({"exclude": ("orders",)}, {"x.parquet": "parquet"}),
        ({"recursive": False}, {"x.parquet": "parquet"}),
        ({"tables": False}, {"sales/orders": "parquet", "x.parquet": "parquet"}),
    ],
)
def test_patterns_are_of_files_and_a_table_is_left_out_by_its_root(
    narrowed: dict[str, object], found: dict[str, str], lake: Path, scans: Scans
) -> None:
    write_delta(lake / "sales/orders")
    write_delta(lake / "sales/orders")
    write_loose(lake / "x.parquet")
    assert scans.found(**narrowed) == found


@pytest.mark.parametrize("recursive", [True, False])
def test_a_root_may_be_a_table_and_hold_the_state_of_its_scans(
    recursive: bool, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_delta(lake)
    scans = Scans(str(lake), lake / "_lumos", monkeypatch)
    assert scans.found(recursive=recursive) == {"": "delta"}
    for path, data in table_of("appended", 6).files.items():
        (lake / "trips" / path).parent.mkdir(parents=True, exist_ok=True)
        (lake / "trips" / path).write_bytes(data)
    inner = Scans(str(lake / "trips"), lake / "trips/state", monkeypatch)
    first = inner.scan(recursive=recursive).datasets
    assert inner.scan().datasets == first
    assert inner.problems == set()


def test_a_table_in_a_table_is_part_of_it(lake: Path, scans: Scans) -> None:
    write_delta(lake / "orders")
    write_delta(lake / "orders/clone")
    assert scans.found() == {"orders": "delta"}


def test_a_table_around_a_known_one_takes_it_in(lake: Path, scans: Scans) -> None:
    write_delta(lake / "orders/inner")
    assert scans.found() == {"orders/inner": "delta"}
    write_delta(lake / "orders")
    for _ in range(2):
        assert scans.found() == {"orders": "delta"}


def test_a_folder_of_metadata_makes_no_table(lake: Path, scans: Scans) -> None:
    write_loose(lake / "orders/data/x.parquet")
    (lake / "orders/metadata").mkdir()
    (lake / "orders/metadata/about.metadata.json").write_text(json.dumps({"a": 1}))
    assert "iceberg" not in scans.found().values()


def _served(lake: Path) -> dict[str, bytes]:
    files = (path for path in lake.rglob("*") if path.is_file())
    return {str(path.relative_to(lake)): path.read_bytes() for path in files}


@pytest.mark.parametrize("page_size", [2, 7, 1000])
def test_tables_in_buckets_are_whole_however_the_keys_are_cut(
    page_size: int, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(6):
        write_delta(lake / "Sales/orders", by=["c"])
    write_delta(lake / "0/few")
    write_iceberg(lake, "visits")
    for number in range(9):
        write_loose(lake / f"loose/p{number}.parquet")
    with S3Server({"lake": _served(lake)}, page_size=page_size) as server:
        access = S3Access(endpoint_url=server.url, access_key_id="k", secret_access_key="s")
        scans = Scans("s3://lake", tmp_path / "state", monkeypatch, access=access)
        expected = {"Sales/orders": "delta", "0/few": "delta", "n/visits": "iceberg"}
        found = scans.found()
        assert expected.items() <= found.items()
        assert {path.partition("/")[0] for path in found.keys() - expected.keys()} == {"loose"}
        gets = server.counted("GET", listing=False)
        scans.scan()
        assert server.counted("GET", listing=False) == gets, "an unchanged lake is not opened"


def test_a_log_that_a_listing_does_not_show_yet_is_asked_for(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_delta(lake / "orders")
    with S3Server({"lake": _served(lake)}) as server:
        access = S3Access(endpoint_url=server.url, access_key_id="k", secret_access_key="s")
        scans = Scans("s3://lake", tmp_path / "state", monkeypatch, access=access)
        assert scans.found() == {"orders": "delta"}
        hidden = {key: data for key, data in server.buckets["lake"].items() if "_delta_log" in key}
        for key in hidden:
            server.drop("lake", key)

        def appear(job: int) -> None:
            if job == 2:
                for key, data in hidden.items():
                    server.put("lake", key, data)

        scans.between = appear
        assert scans.found() == {"orders": "delta"}
        assert scans.last is not None
        assert scans.last.files_listed == 0


def test_a_hint_is_of_files_and_a_table_below_it_stays_a_table(lake: Path, scans: Scans) -> None:
    write_delta(lake / "sales/orders")
    write_loose(lake / "sales/a.parquet")
    write_loose(lake / "sales/b.parquet")
    found = scans.found(hints=(FileHint("sales", "everything"),))
    assert found == {"sales/orders": "delta", "everything": "parquet"}


def test_a_log_that_was_written_anew_under_the_same_version_is_read_anew(
    lake: Path, scans: Scans
) -> None:
    write_delta(lake / "orders")
    scans.scan()
    shutil.rmtree(lake / "orders")
    write_delta(lake / "orders", ROWS.append_column("n", pa.array([1, 2, 3])))
    assert scans.scan().tables_read == 1
    assert [field.name for field in scans.dataset("orders").schema.fields] == ["id", "c", "n"]


def test_a_library_that_raises_anything_ends_no_scan(
    lake: Path, scans: Scans, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_delta(lake / "orders")
    write_loose(lake / "loose/x.parquet")

    def fail(*_arguments: object, **_more: object) -> None:
        raise RuntimeError("Generic error\n\nDebug source:\n  Kernel { ... }")

    monkeypatch.setattr(type(table_reader("delta")), "read", fail)
    assert scans.found() == {"loose/x.parquet": "parquet"}
    assert scans.last is not None
    (problem,) = scans.last.problems
    assert problem.code == "unreadable"
    assert "\n" not in problem.reason


def test_a_log_that_must_not_be_read_is_named(
    lake: Path, scans: Scans, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_delta(lake / "orders")

    def refuse(*_arguments: object, **_more: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(table_reader("delta")), "signature", refuse)
    assert scans.found() == {}
    assert scans.problems == {("orders", "permission_denied")}


def test_only_works_that_may_have_met_a_table_s_files_are_done_again(
    lake: Path, scans: Scans
) -> None:
    for number in range(40):
        write_loose(lake / f"area{number:02d}/deep/x{number}.parquet")
    for number in range(0, 40, 7):
        write_delta(lake / f"area{number:02d}/orders")
    scans.scan()
    assert scans.jobs == 2, "what is loose, then tables, and nothing twice"
    write_delta(lake / "area01/orders")
    scans.scan()
    assert scans.jobs == 2


@pytest.mark.parametrize(
    ("place", "claim", "may"),
    [
        (KeyRange("/l"), "/l/t", True),
        (KeyRange("/l/t/part"), "/l/t", True),
        (KeyRange("/l/t"), "/l/t", True),
        (KeyRange("/l/t2"), "/l/t", False),
        (KeyRange("/l", deep=False), "/l/t", True),
        (KeyRange("/l", deep=False), "/l/t/x.parquet", False),
        (KeyRange("s3://l", "s3://l/a", "s3://l/s"), "s3://l/t", False),
        (KeyRange("s3://l", "s3://l/a", "s3://l/t/x"), "s3://l/t", True),
        (KeyRange("s3://l", "s3://l/t/x", ""), "s3://l/t", True),
        (KeyRange("s3://l", "s3://l/u", ""), "s3://l/t", False),
    ],
)
def test_a_claim_meets_the_places_that_may_list_its_files(
    place: KeyRange, claim: str, may: bool
) -> None:
    assert may_overlap(place, claim) is may


def test_one_more_commit_opens_one_more_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"orders/{path}": data for path, data in small(40).items()}
    last = max(path for path in files if path.endswith(".json"))
    newest = files.pop(last)
    with S3Server({"lake": files}) as server:
        access = S3Access(endpoint_url=server.url, access_key_id="k", secret_access_key="s")
        scans = Scans("s3://lake", tmp_path / "state", monkeypatch, access=access)
        scans.scan()
        assert server.counted("GET", listing=False) >= 39
        server.put("lake", last, newest)
        server.requests.clear()
        assert scans.scan().tables_read == 1
        opened = [request.path for request in server.requests if "list-type" not in request.query]
        assert opened == [f"/lake/{last}"]
    table = scans.dataset("orders").table
    assert table is not None
    assert table.version == "39"
