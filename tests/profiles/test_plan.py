"""Which files are measured together, and what a job of many files carries along."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark import cloudpickle

from lumos.profiles import plan as planning
from lumos.profiles.job import ProfileJob, _part_reader
from lumos.profiles.measurements import FileTotals, UnitMeasurement
from lumos.profiles.plan import (
    MeasuredUnit,
    SourceFile,
    SourceFiles,
    divide,
    identity_of,
    sample_files,
    store_part,
    stored_tasks,
    task_parts,
)
from lumos.profiles.tasks import FileTask
from lumos.storage import DEFAULT_ACCESS


def source_files(count: int, *, size: int = 1000) -> Iterator[SourceFile]:
    """Files of ten partitions, in no order."""
    for number in np.random.default_rng(7).permutation(count):
        partition = f"dt={number * 10 // count}"
        path = f"/lake/{partition}/{number:08d}.csv"
        constants = (("dt", str(number)), ("raw", b"\xff"), ("none", None))
        task = FileTask(path, size, "csv", 0, names=("a", "b"), constants=constants)
        yield SourceFile(task, partition, identity_of(path))


def unit(identities: bytes) -> MeasuredUnit:
    return MeasuredUnit("spec", identities, 1, UnitMeasurement(FileTotals(1, 1, []), {}))


@pytest.fixture
def few_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "_MAX_FILES_IN_MEMORY", 16)


@pytest.mark.usefixtures("few_in_memory")
def test_files_come_by_partition_and_path_as_often_as_they_are_wanted() -> None:
    expected = sorted(source_files(100), key=lambda each: (each.partition, each.task.path))
    with closing(SourceFiles(source_files(100))) as files:
        assert list(files) == expected
        assert list(files) == expected
        assert (len(files), files.size) == (100, 100_000)
        assert list(files.partitions) == [number // 10 for number in range(100)]


@pytest.mark.usefixtures("few_in_memory")
def test_only_units_all_of_whose_files_are_there_are_kept() -> None:
    first, second, third, *_ = (each.identity for each in source_files(100))
    whole, overlapping, partly_gone = unit(first + second), unit(second), unit(third + b"gone----")
    with closing(SourceFiles(source_files(100))) as files:
        division = divide(files, [whole, overlapping, partly_gone], leaves=1)
        assert division.reused == [whole]
        assert division.files_to_read == 98
        read = {
            file.identity
            for file, unit in zip(files, division.unit_numbers, strict=True)
            if unit >= 0
        }
        assert read == {each.identity for each in files} - {first, second}


def test_files_without_bytes_are_one_unit() -> None:
    with closing(SourceFiles(source_files(100, size=0))) as files:
        assert set(divide(files, (), leaves=1).unit_numbers) == {0}


def test_every_file_is_in_one_part_and_no_part_has_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planning, "_MAX_FILES_PER_PART", 7)
    with closing(SourceFiles(source_files(100))) as files:
        parts = list(task_parts(files, divide(files, (), leaves=1), parts=4))
        assert max(len(part.tasks) for part in parts) == 7
        assert [task.path for part in parts for task in part.tasks] == [
            file.task.path for file in files
        ]
        assert sum(part.size for part in parts) == files.size


def test_a_sample_is_the_same_files_every_time() -> None:
    with closing(SourceFiles(source_files(100))) as files:
        some = list(sample_files(files, 0.255))
        assert some == list(sample_files(files, 0.255))
        assert sum(file.task.sample for file in some) == pytest.approx(25.5)


def test_tasks_come_back_from_the_state_as_they_were(tmp_path: Path) -> None:
    tasks = [file.task for file in source_files(1500)]
    part = store_part(str(tmp_path / "part.tasks"), DEFAULT_ACCESS, tasks, size=5)
    assert (part.files, part.bytes) == (1500, 5)
    assert list(stored_tasks(part.path, DEFAULT_ACCESS)) == tasks


def test_the_code_of_a_job_does_not_grow_with_its_files(tmp_path: Path) -> None:
    """What Spark is sent is the code and a row for each part; of the files it holds nothing."""
    job = ProfileJob((), DEFAULT_ACCESS)
    with closing(SourceFiles(source_files(30_000))) as files:
        parts = [
            store_part(
                str(tmp_path / f"{number}.tasks"), DEFAULT_ACCESS, part.tasks, size=part.size
            )
            for number, part in enumerate(task_parts(files, divide(files, (), leaves=1), parts=2))
        ]
    code = cloudpickle.dumps(_part_reader(job, (), pa.schema([])))
    assert len(code) + sum(len(part.path) + 16 for part in parts) < 10_000
    assert sum(part.files for part in parts) == 30_000
