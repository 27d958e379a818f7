"""Live files in buckets: however they come and go, and however often they are packed in between."""

from hypothesis import given
from hypothesis import strategies as st

from lumos.formats.tables.delta.state import (
    DeltaFile,
    DeltaFiles,
    files_in_buckets,
    total_of_buckets,
)
from lumos.formats.tables.interface import RowDeletes

FILES = st.builds(
    DeltaFile,
    path=st.sampled_from(["a", "b/c", "ü%", "s3://x/y/z", "\ud7ff"]),
    size=st.integers(0, 2**40),
    rows=st.none() | st.integers(0, 100),
    partition=st.integers(0, 3),
    deletes=st.none()
    | st.builds(RowDeletes, kind=st.just("dv"), path=st.just("v"), count=st.just(9)),
    vector=st.sampled_from(["", "u1", "i2"]),
)
# A file that comes, the key of one that goes, or all is packed and opened again.
STEPS = st.lists(FILES | FILES.map(lambda live: live.key) | st.none(), max_size=40)


@given(STEPS)
def test_buckets_hold_what_a_dictionary_would(steps: list[DeltaFile | str | None]) -> None:
    files, model = DeltaFiles(), dict[str, DeltaFile]()
    for step in steps:
        match step:
            case None:
                files = DeltaFiles(files.buckets())
            case str():
                files.drop(step)
                model.pop(step, None)
            case _:
                files.put(step)
                model[step.key] = step
    buckets = files.buckets()
    assert {live.key: live for live in files_in_buckets(buckets)} == model
    result = total_of_buckets(buckets)
    assert (result.files, result.size) == (len(model), sum(live.size for live in model.values()))
    left = [
        None if live.rows is None else max(0, live.rows - (9 if live.deletes else 0))
        for live in model.values()
    ]
    assert result.rows == (None if None in left else sum(each or 0 for each in left))
    assert result.outside == tuple(sorted({path for path in _paths(model) if "//" in path}))


def _paths(model: dict[str, DeltaFile]) -> set[str]:
    return {live.path for live in model.values()}


def test_what_was_not_touched_is_not_packed_anew() -> None:
    files = DeltaFiles()
    for number in range(10_000):
        files.put(DeltaFile(path=f"f{number}", size=1, rows=1, partition=0))
    before = list(files.buckets())
    later = DeltaFiles(before)
    later.drop("f7")
    after = later.buckets()
    changed = [number for number, bucket in enumerate(after) if bucket is not before[number]]
    assert len(changed) == 1
    assert total_of_buckets(after).files == 9_999
