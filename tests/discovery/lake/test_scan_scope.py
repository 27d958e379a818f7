"""Scans after events look at what changed only, and find what a scan of the whole lake finds."""

import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from discovery.lake.tables_scanned import Scans
from files import write_parquet
from lumos.discovery.lake import job
from lumos.discovery.lake.manifest import ScanManifest
from lumos.discovery.lake.parts import KeyRangeSet
from lumos.discovery.lake.scan_scope import plan_scope
from lumos.discovery.lake.table_reader import TableRecord
from lumos.model.discovery import Discovery
from lumos.storage import FileSelection, KeyRange

LAKE = FileSelection("/lake")
DELTA = ScanManifest(tables={"/lake/sales": TableRecord(("delta",), "", "", ("/lake/other",))})


def scope(*changed: str, manifest: ScanManifest = DELTA) -> Any:
    return plan_scope(changed, manifest, LAKE)


def test_the_folder_of_a_file_is_listed_around_the_file() -> None:
    found = scope("/lake/a/x-1.parquet", "/lake/a/x-3.parquet", "/lake/b/y.csv")
    assert found.key_ranges == (
        KeyRange("/lake/a", "/lake/a/x-1.parque", "/lake/a/x-3.parquet", deep=False),
        KeyRange("/lake/b", "/lake/b/y.cs", "/lake/b/y.csv", deep=False),
    )
    assert not found.tables


@pytest.mark.parametrize(
    "path",
    ["/lake/sales/_delta_log/00000000000000000007.json", "/lake/sales/dt=1/part-0.parquet",
     "/lake/other/part-0.parquet"],
)  # fmt: skip
def test_of_a_known_table_only_the_log_is_read(path: str) -> None:
    found = scope(path)
    assert set(found.tables) == {"/lake/sales"}
    assert (found.key_ranges, found.new_tables) == ((), frozenset())


def test_the_first_commit_makes_a_folder_a_table() -> None:
    found = scope("/lake/new/_delta_log/0.json", "/lake/new/part-0.parquet")
    assert found.new_tables == {"/lake/new"}
    assert found.key_ranges == (KeyRange("/lake/new"),)


@pytest.mark.parametrize(
    "path", ["/lake/a/_SUCCESS", "/lake/a/_temporary/0/part-0.parquet", "/lake/.crc/x"]
)
def test_temporary_files_and_markers_are_not_looked_at(path: str) -> None:
    found = scope(path)
    assert (found.key_ranges, found.tables) == ((), {})


@pytest.mark.parametrize(
    "path",
    ["/lake/", "/lake/_delta_log/0.json", "/lake/metadata/",
     "/lake/x/00001-0a0a0a0a-0a0a-0a0a-0a0a-0a0a0a0a0a0a.metadata.json"],
)  # fmt: skip
def test_the_whole_lake_is_listed_where_more_may_have_changed(path: str) -> None:
    assert scope(path) is None


def test_the_whole_lake_is_listed_instead_of_a_thousand_folders() -> None:
    assert scope(*(f"/lake/{number}/x.csv" for number in range(1001))) is None


def test_many_folders_are_listed_through_the_folder_above_them() -> None:
    found = scope(*(f"/lake/a/{number}/x.csv" for number in range(1001)))
    assert found.key_ranges == (KeyRange("/lake/a"),)


def test_a_file_below_a_folder_that_may_be_an_excluded_table_is_not_taken_for_loose() -> None:
    selection = LAKE._replace(exclude=("secret",))
    assert plan_scope(["/lake/secret/dt=1/x.parquet"], ScanManifest(), selection) is None
    assert plan_scope(["/lake/open/x.parquet"], ScanManifest(), selection) is not None


@pytest.mark.parametrize(
    ("key_range", "inside", "outside"),
    [
        (KeyRange("/l/a"), "/l/a/b/c", "/l/ab/c"),
        (KeyRange("/l/a", deep=False), "/l/a/c", "/l/a/b/c"),
        (KeyRange("/l/a", after="/l/a/c", until="/l/a/e"), "/l/a/d", "/l/a/c"),
        (KeyRange("/l/a", after="/l/a/c", until="/l/a/e"), "/l/a/e", "/l/a/e1"),
    ],
)
def test_a_key_range_covers_its_files(key_range: KeyRange, inside: str, outside: str) -> None:
    ranges = KeyRangeSet([key_range])
    assert (ranges.covers(inside), ranges.covers(outside)) == (True, False)


def facts(found: Discovery) -> dict[str, Any]:
    return {
        each.path: (each.schema, each.statistics, each.content, each.renamed_from, each.merged_from)
        for each in found.datasets
        if each.path not in found.unscanned
    }


class TwoScans:
    """One lake, scanned after events and as a whole: both must find the same."""

    def __init__(self, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lake = lake
        self.scoped = Scans(str(lake), tmp_path / "scoped", monkeypatch)
        self.whole = Scans(str(lake), tmp_path / "whole", monkeypatch)
        self.full_scans = 0
        plan = job.plan_tasks

        def counted(*args: Any, **options: Any) -> Any:
            self.full_scans += 1
            return plan(*args, **options)

        monkeypatch.setattr(job, "plan_tasks", counted)

    def scan(self, *changed: Path | str) -> Discovery:
        """Scans both, and returns what the scan after events has found."""
        expected = self.whole.scan()
        self.full_scans = 0
        found = self.scoped.scan(changed=None if not changed else [str(each) for each in changed])
        known = facts(expected)
        for path in found.unscanned:
            known.pop(path)
        assert facts(found) == known
        assert {each.path for each in expected.datasets} == {
            *(each.path for each in found.datasets),
            *found.unscanned,
        }
        assert found.files_listed == expected.files_listed
        assert {(each.path, each.code) for each in found.problems} == {
            (each.path, each.code) for each in expected.problems
        }
        return found


@pytest.fixture
def both(lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TwoScans:
    for name in ("orders", "users"):
        for day in range(1, 4):
            write_parquet(lake / f"{name}/dt=2024-01-0{day}/part-0.parquet", id=pa.int64())
    write_deltalake(str(lake / "sales"), pa.table({"id": [1]}))
    both = TwoScans(lake, tmp_path, monkeypatch)
    both.scan()
    return both


def test_a_new_file_is_read_and_nothing_else(both: TwoScans) -> None:
    path = both.lake / "orders/dt=2024-01-04/part-0.parquet"
    write_parquet(path, id=pa.int64(), total=pa.float64())
    found = both.scan(path)
    assert (found.files_read, found.tables_read, both.full_scans) == (1, 0, 0)
    assert found.unscanned == (f"{both.lake}/sales",)


def test_what_is_outside_of_the_scope_is_kept_even_if_it_is_gone(both: TwoScans) -> None:
    shutil.rmtree(both.lake / "users")
    path = both.lake / "orders/dt=2024-01-04/part-0.parquet"
    write_parquet(path, id=pa.int64())
    found = both.scoped.scan(changed=[str(path)])
    assert {each.path for each in found.datasets} == {f"{both.lake}/orders", f"{both.lake}/users"}


def test_a_deleted_folder_is_a_missing_dataset(both: TwoScans) -> None:
    shutil.rmtree(both.lake / "users")
    found = both.scan(f"{both.lake}/users/")
    assert f"{both.lake}/users" not in {each.path for each in found.datasets}
    assert both.full_scans == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("users/part-0.parquet", "users/part-1.parquet", id="another part"),
        pytest.param("users/dt=2024-01-01/x.parquet", "users/dt=2025-01-01/y.parquet", id="a partition"),
        pytest.param("users_2024.parquet", "users_2025.parquet", id="in the root"),
    ],
)  # fmt: skip
def test_a_dataset_whose_known_files_were_all_replaced_is_not_missing(
    both: TwoScans, old: str, new: str
) -> None:
    shutil.rmtree(both.lake / "users")
    write_parquet(both.lake / old, id=pa.int64())
    both.scan()
    (both.lake / old).unlink()
    write_parquet(both.lake / new, id=pa.int64())
    # The message of the new file comes later, or never.
    both.scan(both.lake / old)


def test_a_single_file_is_missing_without_listing_anything_else(both: TwoScans) -> None:
    path = both.lake / "countries.parquet"
    write_parquet(path, id=pa.int64())
    both.scan(path)
    path.unlink()
    both.scan(path)
    assert both.full_scans == 0


def test_a_commit_reads_one_table(both: TwoScans) -> None:
    write_deltalake(str(both.lake / "other"), pa.table({"a": [1]}))
    both.scan(both.lake / "other/_delta_log/00000000000000000000.json")
    write_deltalake(str(both.lake / "sales"), pa.table({"id": [2]}), mode="append")
    found = both.scan(both.lake / "sales/_delta_log/00000000000000000001.json")
    assert (found.files_read, found.tables_read, both.full_scans) == (0, 1, 0)
    assert found.unscanned == (f"{both.lake}/other",)


def test_loose_files_become_a_table_with_its_first_commit(both: TwoScans) -> None:
    folder = both.lake / "becoming"
    write_parquet(folder / "part-0.parquet", id=pa.int64())
    both.scan(folder / "part-0.parquet")
    write_deltalake(str(folder), pa.table({"id": [2]}))
    found = both.scan(folder / "_delta_log/00000000000000000000.json")
    assert found.tables_read == 1
    assert both.full_scans == 0


def test_files_of_a_table_without_its_log_become_loose_again(both: TwoScans) -> None:
    shutil.rmtree(both.lake / "sales/_delta_log")
    found = both.scan(both.lake / "sales/_delta_log/00000000000000000000.json")
    assert found.files_read == 1
    assert both.full_scans == 0


def test_files_of_a_former_table_in_a_changed_folder_are_listed_once(both: TwoScans) -> None:
    write_deltalake(str(both.lake / "x/t"), pa.table({"id": [1]}))
    both.scan(f"{both.lake}/x/")
    shutil.rmtree(both.lake / "x/t/_delta_log")
    found = both.scan(f"{both.lake}/x/")
    assert (found.files_read, both.full_scans) == (1, 0)


def test_a_lost_part_is_replaced_by_a_scan_of_the_whole_lake(both: TwoScans) -> None:
    for part in Path(both.scoped.state, "parts").glob("*.parquet"):
        part.unlink()
    path = both.lake / "orders/dt=2024-01-04/part-0.parquet"
    write_parquet(path, id=pa.int64())
    both.scan(path)
    assert both.full_scans == 1


@pytest.mark.parametrize("seed", range(3))
def test_after_any_changes_both_scans_find_the_same(both: TwoScans, seed: int) -> None:
    chance = random.Random(seed)
    columns = {name: pa.int64() for name in "abcd"}
    for _ in range(6):
        changed: set[str] = set()
        for _ in range(chance.randint(1, 5)):
            name = f"{chance.choice(['orders', 'users', 'deep/er', 'flat'])}"
            day = f"/dt=2024-01-0{chance.randint(1, 5)}" if chance.random() < 0.7 else ""
            path = both.lake / f"{name}{day}/part-{chance.randint(0, 2)}.parquet"
            match chance.choice(["write", "write", "delete", "folder", "commit"]):
                case "write":
                    chosen = chance.sample(sorted(columns), chance.randint(1, 3))
                    write_parquet(path, **{each: columns[each] for each in sorted(chosen)})
                    changed.add(str(path))
                case "delete" if path.exists():
                    path.unlink()
                    changed.add(str(path))
                case "folder" if path.parent.exists() and path.parent != both.lake:
                    shutil.rmtree(path.parent)
                    changed.add(f"{path.parent}/")
                case "commit":
                    root = both.lake / chance.choice(["sales", "returns"])
                    write_deltalake(str(root), pa.table({"id": [chance.random()]}), mode="append")
                    last = max((root / "_delta_log").glob("*.json"))
                    changed.add(str(last))
        if changed:
            both.scan(*changed)
    # The next scan of the whole lake goes on from what the scans after events have left.
    assert facts(both.scoped.scan()) == facts(both.whole.scan())
    assert both.scoped.last is not None
    assert both.scoped.last.files_read == 0
