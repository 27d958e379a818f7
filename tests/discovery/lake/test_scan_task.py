"""What tasks do, one after the other in this process."""

import os
from contextlib import closing
from operator import attrgetter
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from files import write_parquet, write_text
from lumos.discovery.lake import scan_task as work
from lumos.discovery.lake.parts import ManifestPart, PartIndex, read_part
from lumos.discovery.lake.scan_task import ScanJob, ScanResult, ScanTask, plan_deferred, plan_tasks
from lumos.discovery.lake.summaries import FileSet
from lumos.spark.spill import SpillSort
from lumos.storage import DEFAULT_ACCESS, FileSelection, ListedFile, TableRoot

_FORMS = ("orders", "users", "clicks")


class Scanner:
    """Scans a folder again and again, as a driver with one executor would."""

    def __init__(self, root: Path, state: Path, *, works: int = 4) -> None:
        self.works = works
        self.job = ScanJob(
            FileSelection(str(root)), str(state), str(state / "parts"), DEFAULT_ACCESS, False, ()
        )
        self.parts: list[ManifestPart] = []
        self.done: list[ScanResult] = []
        self.met: list[TableRoot] = []

    def scan(self, *, column_stats: bool = False) -> int:
        """How many files a scan opens."""
        index = PartIndex(self.parts)
        self.job = self.job._replace(column_stats=column_stats)
        works, self.met = plan_tasks(self.job.selection, parts=self.works, index=index)
        self.done = self.run(works)
        left_over = [portion for each in self.done for portion in each.deferred]
        self.done += self.run(plan_deferred(left_over, index))
        self.parts = [each.part for each in self.done if each.part is not None]
        return sum(each.files_read for each in self.done)

    def run(self, works: list[ScanTask]) -> list[ScanResult]:
        return [work.run_task(self.job, each) for each in works]

    def listed(self) -> int:
        return sum(each.summary.listed for each in self.done)

    def places(self) -> dict[tuple[str, str, str, str], FileSet]:
        places: dict[tuple[str, str, str, str], FileSet] = {}
        for each in self.done:
            for place in each.summary.file_sets:
                key = (place.base, place.pattern, place.format, place.schema_fingerprint)
                if key in places:
                    places[key].merge(place)
                else:
                    places[key] = place
        return places

    def paths(self) -> list[str]:
        return sorted(
            row.path
            for part in self.parts
            for row in read_part(part.path, access=DEFAULT_ACCESS)[0]
        )


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for name in _FORMS:
        for day in range(1, 6):
            write_parquet(tmp_path / f"lake/{name}/dt=2024-01-0{day}/part-0.parquet", id=pa.int64())
    write_text(tmp_path / "lake/notes.csv", ["a,b", "1,x"])
    return tmp_path / "lake"


@pytest.fixture
def scanner(lake: Path, tmp_path: Path) -> Scanner:
    return Scanner(lake, tmp_path / "state")


def test_an_unchanged_lake_opens_nothing_and_writes_no_part(scanner: Scanner) -> None:
    assert scanner.scan() == 16
    before, parts = scanner.places(), {part.path for part in scanner.parts}
    assert scanner.scan() == 0
    assert {part.path for part in scanner.parts} == parts
    assert scanner.places() == before


def test_only_what_is_new_or_changed_is_opened(scanner: Scanner, lake: Path) -> None:
    scanner.scan()
    untouched = {part.path for part in scanner.parts}
    write_parquet(lake / "orders/dt=2024-01-01/part-0.parquet", rows=3, id=pa.int64())
    write_parquet(lake / "orders/dt=2024-01-06/part-0.parquet", id=pa.int64())
    (lake / "orders/dt=2024-01-02/part-0.parquet").unlink()
    assert scanner.scan() == 2
    assert scanner.listed() == 16
    assert len(untouched & {part.path for part in scanner.parts}) == len(untouched) - 1


def test_a_new_folder_leaves_the_parts_of_others_alone(lake: Path, tmp_path: Path) -> None:
    scanner = Scanner(lake, tmp_path / "state", works=3)
    scanner.scan()
    before = {part.path for part in scanner.parts}
    assert len(before) >= 3
    write_parquet(lake / "returns/dt=2024-01-01/part-0.parquet", id=pa.int64())
    assert scanner.scan() == 1
    assert len(before & {part.path for part in scanner.parts}) >= len(before) - 1


def test_a_folder_that_cannot_be_listed_keeps_what_was_known(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanner.scan()
    before = scanner.paths()
    scandir = os.scandir

    def refuse(folder: str) -> object:
        if str(folder).endswith("orders"):
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    monkeypatch.setattr("lumos.storage.local.os.scandir", refuse)
    assert scanner.scan() == 0
    assert scanner.paths() == before
    assert [each.code for done in scanner.done for each in done.listing_problems.listed] == [
        "permission_denied"
    ]
    monkeypatch.undo()
    assert scanner.scan() == 0
    assert scanner.paths() == before


def test_too_many_files_for_a_task_come_in_portions(
    scanner: Scanner, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanner.scan()
    whole = scanner.places()
    monkeypatch.setattr(work, "_MAX_FILES", 4)
    monkeypatch.setattr(work, "_BATCH_SIZE", 2)
    portioned = Scanner(lake, tmp_path / "other")
    assert portioned.scan() == 16
    assert portioned.places() == whole
    assert portioned.scan() == 0
    assert portioned.places() == whole


def test_statistics_of_columns_open_files_that_did_not_show_them(scanner: Scanner) -> None:
    scanner.scan()
    assert scanner.scan(column_stats=True) == 16
    assert scanner.scan(column_stats=True) == 0
    assert scanner.scan() == 0


def test_a_table_is_no_loose_files_and_files_of_a_claimed_folder_are_none(
    scanner: Scanner, lake: Path
) -> None:
    log = lake / "clicks/_delta_log/00000000000000000000.json"
    log.parent.mkdir()
    log.touch()
    scanner.scan()
    found = [*scanner.met, *(root for done in scanner.done for root in done.table_roots)]
    assert found == [TableRoot(str(lake / "clicks"), "delta")]
    assert {path.split("/")[-3] for path in scanner.paths()} == {
        "orders",
        "users",
        lake.parent.name,
    }
    scanner.job = scanner.job._replace(owned_paths=(str(lake / "users"),))
    scanner.scan()
    assert not [path for path in scanner.paths() if "/users/" in path]
    assert {each for done in scanner.done for each in done.skipped_owned_paths} == {
        str(lake / "users")
    }


def test_where_tables_do_not_count_their_files_are_like_any_others(
    scanner: Scanner, lake: Path
) -> None:
    (lake / "clicks/_delta_log").mkdir()
    scanner.job = scanner.job._replace(selection=FileSelection(str(lake), tables=False))
    assert scanner.scan() == 16
    assert not scanner.met


def test_files_beyond_what_memory_should_hold_wait_on_disk_in_order() -> None:
    files = [ListedFile(f"/lake/{number * 7919 % 1000:04d}", number, 0) for number in range(1000)]
    decode = msgspec.msgpack.Decoder(list[ListedFile]).decode
    with closing(SpillSort(decode, key=attrgetter("path"), max_in_memory=64)) as spill:
        for each in files:
            spill.add(each)
        assert list(spill.in_order()) == sorted(files)
