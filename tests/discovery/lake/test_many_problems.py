"""A scan of very many files that cannot be read: the first are listed, all are counted."""

from pathlib import Path

import pytest
from pyspark import cloudpickle

from discovery.lake.tables_scanned import Scans
from files import write_text
from lumos.discovery.lake import job as discovery
from lumos.discovery.lake.scan_task import ScanJob, ScanTask, encode_task, scan_worker
from lumos.discovery.lake.summaries import FileRow, FileSummary, summarise
from lumos.discovery.lake.table_reader import TableJob, table_worker
from lumos.spark.problems import MAX_LISTED_PER_TASK
from lumos.storage import DEFAULT_ACCESS, FileSelection, ListedFile


def broken(number: int) -> FileRow:
    path = f"/lake/{number:05d}.parquet"
    return FileRow(path, 1, 0, "", failed=True, code="not_parquet", reason="It is none.")


def test_a_scan_lists_some_problems_and_counts_the_others(
    lake: Path, scans: Scans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "MAX_LISTED_IN_TOTAL", 2)
    for number in range(5):
        write_text(lake / f"{number}.parquet", ["nothing"])
    for _ in range(2):
        found = scans.scan()
        assert found.files_failed == 5
        more, *listed = found.problems
        assert [scans.inside(each.path) for each in listed] == ["0.parquet", "1.parquet"]
        assert (more.path, more.code, more.remark) == (str(lake), "not_parquet", False)
        assert more.reason == "3 more problems with the code not_parquet not listed."


def test_a_part_keeps_some_problems_in_words_and_counts_all() -> None:
    summary = summarise([broken(number) for number in range(500)], root="/lake")
    assert len(summary.problems) == MAX_LISTED_PER_TASK
    assert summary.all_problems.total == 500


def test_a_part_of_an_earlier_release_counts_the_problems_that_it_lists() -> None:
    kept = summarise([broken(number) for number in range(3)], root="/lake").problems
    assert FileSummary([], 3, 3, kept).all_problems.total == 3


def test_works_do_not_travel_inside_the_code(tmp_path: Path) -> None:
    job = ScanJob(
        FileSelection(str(tmp_path)), str(tmp_path), str(tmp_path), DEFAULT_ACCESS, False, ()
    )
    tables = TableJob(FileSelection(str(tmp_path)), str(tmp_path), str(tmp_path), DEFAULT_ACCESS)
    for code in (cloudpickle.dumps(scan_worker(job)), cloudpickle.dumps(table_worker(tables))):
        assert len(code) < 5_000
    listed = [ListedFile(f"/lake/{number:05d}.parquet", number, 0) for number in range(1000)]
    place, stretches, files, work = encode_task(ScanTask([], listed))
    assert (place, stretches, files) == ("", 0, 1000)
    assert len(work) > 20_000
