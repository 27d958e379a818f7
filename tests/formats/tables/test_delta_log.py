"""Logs of Delta tables, whole and broken: what counts, what is a problem, and what is opened."""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lumos.formats.interface import UnreadableFile
from lumos.formats.tables.delta.reader import DeltaReader
from lumos.formats.tables.interface import RowDeletes

from .delta_judge import ALL, ours, read, theirs
from .delta_logs import (
    LOG,
    START,
    Actions,
    add,
    checkpoint,
    commit_name,
    field,
    info,
    lines,
    log,
    metadata,
    protocol,
    remove,
    saved,
    small,
    without,
)
from .folder import MemoryFolder

Files = dict[str, bytes]
STATE: Actions = [protocol(), metadata(field("a")), add("f0", 1), add("f1", 2), add("f2", 4)]
AT_2 = f"{LOG}/{2:020}.checkpoint"
SIDECAR = "_sidecars/3a0d65cd-4056-49b8-937b-95f9e3ee90e5.parquet"


def _problem(files: Files) -> UnreadableFile:
    with pytest.raises(UnreadableFile) as problem:
        read(MemoryFolder(files))
    return problem.value


def _plain() -> Files:
    return {f"{AT_2}.parquet": checkpoint(STATE)}


def _in_parts() -> Files:
    return {
        f"{AT_2}.0000000001.0000000002.parquet": checkpoint(STATE[:3]),
        f"{AT_2}.0000000002.0000000002.parquet": checkpoint(STATE[3:]),
    }


def _of_version_2(ending: str) -> Files:
    features = ["v2Checkpoint"]
    files = checkpoint(STATE[2:])
    sidecar = {"path": SIDECAR.split("/")[1], "sizeInBytes": len(files), "modificationTime": START}
    top = [
        {"checkpointMetadata": {"version": 2}},
        protocol(3, 7, readerFeatures=features, writerFeatures=features),
        metadata(field("a")),
        {"sidecar": sidecar},
    ]
    name = f"{AT_2}.80a083e8-7026-4e79-81be-64bd76c43a11.{ending}"
    return {
        name: lines(top) if ending == "json" else checkpoint(top),
        f"{LOG}/{SIDECAR}": files,
    }


CHECKPOINTS: list[Callable[[], Files]] = [
    pytest.param(_plain, id="one file"),
    pytest.param(_in_parts, id="two parts"),
    pytest.param(lambda: _of_version_2("parquet"), id="a sidecar"),
    pytest.param(lambda: _of_version_2("json"), id="JSON and a sidecar"),
]


@pytest.mark.parametrize("made", CHECKPOINTS)
def test_a_checkpoint_stands_for_the_commits_before_it(
    made: Callable[[], Files], tmp_path: Path
) -> None:
    files = {**made(), commit_name(3): lines([add("f3", 8), remove("f0"), info(3)])}
    facts = read(MemoryFolder(files))
    assert (facts.version, facts.files, facts.bytes, facts.rows) == ("3", 3, 14, 30)
    assert ours(saved(files, tmp_path)) == theirs(tmp_path)


@pytest.mark.parametrize(
    ("address", "is_read"),
    [
        (f"s3a://lake/table/{LOG}/{SIDECAR}", True),
        ("s3://other/sidecar.parquet", False),
        ("../secret.parquet", False),
        (f"s3://lake/table/{LOG}/../../secret.parquet", False),
        ("..", False),
    ],
)
def test_a_sidecar_lies_in_the_log_or_is_none(address: str, is_read: bool) -> None:
    top = [*STATE[:3], {"sidecar": {"path": address, "sizeInBytes": 1}}]
    files = {
        f"{AT_2}.{uuid.UUID(int=7)}.json": lines(top),
        f"{LOG}/{SIDECAR}": checkpoint(STATE[3:]),
    }
    if is_read:
        assert read(MemoryFolder(files)).files == 3
    else:
        assert "outside of the log" in _problem(files).reason


@pytest.mark.parametrize("made", CHECKPOINTS)
def test_a_checkpoint_that_lacks_a_part_is_none(made: Callable[[], Files]) -> None:
    whole = made()
    for gone in whole:
        files = {name: data for name, data in whole.items() if name != gone}
        problem = _problem({**files, commit_name(3): lines([add("f3"), info(3)])})
        assert problem.code == "broken_table"
        # The commits themselves are as good.
        facts = read(MemoryFolder({**files, **small(4)}))
        assert (facts.version, facts.files) == ("3", 4)


def test_a_damaged_checkpoint_is_said_and_done_without() -> None:
    files = {**small(4), f"{AT_2}.parquet": b"PAR1 or so"}
    facts = read(MemoryFolder(files))
    assert (facts.version, facts.files) == ("3", 4)
    assert [remark.code for remark in facts.remarks] == ["damaged_checkpoint"]
    assert _problem(without(files, 0)).code == "broken_table"


def test_an_older_checkpoint_serves_where_the_newest_is_damaged() -> None:
    files = {**small(5), **_plain(), f"{LOG}/{4:020}.checkpoint.parquet": b"no Parquet"}
    facts = read(MemoryFolder(without(files, 0, 1, 2)))
    assert (facts.version, facts.files, facts.bytes) == ("4", 5, 7 + 200)


@pytest.mark.parametrize(
    "hint",
    [
        b'{"version":99,"size":3}',
        b'{"ver',
        b"",
        b'{"version":2,"size":3,"parts":7}',
    ],
)
def test_the_hint_at_the_last_checkpoint_is_never_trusted(hint: bytes) -> None:
    files = {**small(4), f"{LOG}/_last_checkpoint": hint}
    assert read(MemoryFolder(files)).version == "3"


def test_what_writers_leave_beside_commits_is_passed_over() -> None:
    odd = {
        f"{LOG}/{9:020}.json.tmp": b"x",
        f"{LOG}/_commit_{uuid.UUID(int=1)}.json.tmp": b"x",
        f"{LOG}/{3:020}.crc": b"{}",
        f"{LOG}/.{9:020}.json.crc": b"x",
        f"{LOG}/9.json": b"x",
        f"{LOG}/{'9' * 20}.json": b"x",
        f"{LOG}/{8:020}.checkpoint.parquet": b"",
    }
    assert read(MemoryFolder({**small(4), **odd})).version == "3"


@pytest.mark.parametrize(
    ("files", "words"),
    [
        pytest.param(without(small(4), 1), "commit 1 is missing", id="gap"),
        pytest.param(without(small(4), 0), "first commit is missing", id="first gone"),
        pytest.param({**without(small(5), 0, 1, 2, 3), **_plain()}, "commit 3", id="behind one"),
        pytest.param(
            {**small(4), commit_name(3): small(4)[commit_name(3)][:40]}, "commit 3", id="cut off"
        ),
        pytest.param({**small(4), commit_name(3): b"\x00\xff" * 9}, "commit 3", id="binary"),
        pytest.param({**small(4), commit_name(3): b"[1]\n"}, "commit 3", id="no action"),
        pytest.param({**small(4), commit_name(3): b"[" * 100_000}, "commit 3", id="deep"),
        pytest.param(log([protocol(), add("f0")]), "schema", id="no metadata"),
        pytest.param(log([metadata(field("a"))]), "protocol", id="no protocol"),
        pytest.param(
            log([protocol(), {"metaData": {"id": "x", "schemaString": "{"}}]), "schema", id="schema"
        ),
        pytest.param(log([protocol(), metadata(field("a")), add("x", -1)]), "commit 0", id="size"),
    ],
)
def test_a_broken_log_is_a_problem_and_shows_no_older_version(files: Files, words: str) -> None:
    problem = _problem(files)
    assert problem.code == "broken_table"
    assert words in problem.reason
    assert "\n" not in problem.reason


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({}, id="nothing"),
        pytest.param({f"{LOG}/_last_checkpoint": b"{}"}, id="a hint"),
        pytest.param({commit_name(0): b""}, id="an empty commit"),
        pytest.param({commit_name(0): b"", commit_name(1): b""}, id="two empty commits"),
        pytest.param({commit_name(0): b"\n"}, id="a blank commit"),
    ],
)
def test_a_log_without_a_commit_is_half_written(files: Files) -> None:
    assert _problem(files).code == "half_written_table"


@pytest.mark.parametrize("blank", [b"", b" \n"])
def test_an_empty_commit_at_the_end_does_not_count_yet(blank: bytes) -> None:
    folder = MemoryFolder({**small(3), commit_name(3): blank})
    facts, memory = DeltaReader().read(folder, None, max_commits=ALL)
    assert (facts.version, facts.files) == ("2", 3)
    assert [remark.code for remark in facts.remarks] == ["half_written_table"]
    folder.files = small(4)
    later = read(folder, memory)
    assert (later.version, later.files, later.remarks) == ("3", 4, ())


def test_an_empty_commit_that_others_followed_changed_nothing() -> None:
    facts = read(MemoryFolder({**small(4), commit_name(1): b""}))
    assert (facts.version, facts.files, facts.remarks) == ("3", 3, ())


def test_a_compacted_run_fills_a_gap() -> None:
    run = f"{LOG}/{1:020}.{2:020}.compacted.json"
    files = {**without(small(4), 1, 2), run: lines([add("f1"), add("f2")])}
    facts = read(MemoryFolder(files))
    assert (facts.version, facts.files) == ("3", 4)


def test_a_compacted_run_spares_commits_that_history_may_not_open() -> None:
    run = f"{LOG}/{1:020}.{2:020}.compacted.json"
    folder = MemoryFolder({**small(4), run: lines([add("f1"), add("f2")])})
    assert read(folder, most=1).files == 4
    assert folder.opened == [commit_name(0), run, commit_name(3)]


def test_of_the_past_no_more_commits_are_opened_than_allowed() -> None:
    folder = MemoryFolder({**small(6), **_plain()})
    facts = read(folder, most=4)
    assert commit_name(1) not in folder.opened
    assert commit_name(2) in folder.opened
    assert (facts.version, facts.files) == ("5", 6)


def test_a_damaged_commit_that_a_checkpoint_made_needless_is_said() -> None:
    facts = read(MemoryFolder({**small(4), **_plain(), commit_name(1): b'{"metaData":'}))
    assert (facts.version, facts.files) == ("3", 4)
    assert [remark.code for remark in facts.remarks] == ["incomplete_history"]
    assert "1" in facts.remarks[0].reason


@pytest.mark.parametrize(
    ("action", "at", "exact"),
    [
        pytest.param({"timestamp": START}, START, True, id="commit"),
        pytest.param({"timestamp": 1, "inCommitTimestamp": START}, START, True, id="in commit"),
        pytest.param({"timestamp": None}, START + 5, False, id="none"),
        pytest.param({"timestamp": "yesterday"}, START + 5, False, id="text"),
        pytest.param({"timestamp": 10**19}, START + 5, False, id="no time"),
        pytest.param({"timestamp": -1}, START + 5, False, id="negative"),
    ],
)
def test_a_version_came_when_its_commit_says_or_was_written(
    action: dict[str, object], at: int, exact: bool
) -> None:
    files = log([{"commitInfo": {"operation": "CREATE", **action}}, protocol(), metadata()])
    folder = MemoryFolder(files, modified={commit_name(0): (START + 5) * 1000})
    facts = read(folder)
    assert facts.at == facts.past[0].at == datetime.fromtimestamp(at / 1000, UTC)
    assert (facts.past[0].exact_time, facts.operation) == (exact, "CREATE")


def test_clocks_that_went_back_change_no_order() -> None:
    files = log(
        [protocol(), metadata(field("a")), info(9)],
        [metadata(field("b")), info(1)],
        [metadata(field("c")), info(10, userName="ann")],
    )
    past = read(MemoryFolder(files)).past
    assert [each.version for each in past] == ["0", "1", "2"]
    assert [each.at for each in past] == sorted(each.at for each in past)
    assert [each.exact_time for each in past] == [True, False, True]
    assert past[2].author == "ann"


def test_settings_alone_are_no_new_schema() -> None:
    files = log(
        [protocol(), metadata(field("a")), info(0)],
        [metadata(field("a"), owner="ann"), info(1)],
    )
    facts = read(MemoryFolder(files))
    assert [each.version for each in facts.past] == ["0"]
    assert facts.properties["owner"] == "ann"


@pytest.mark.parametrize(
    ("written", "path"),
    [
        pytest.param("a%20b/c%25.parquet", "a b/c%.parquet", id="escaped"),
        pytest.param("s3://lake/table/x.parquet", "x.parquet", id="inside, in full"),
        pytest.param("s3a://lake/table/x.parquet", "x.parquet", id="another scheme"),
        pytest.param("s3://other/t/day=1/x.parquet", "s3://other/t/day=1/x.parquet", id="clone"),
        pytest.param("../t/x.parquet", "s3://lake/t/x.parquet", id="up"),
        pytest.param("a/../x.parquet", "x.parquet", id="up and down"),
    ],
)
def test_paths_are_addresses(written: str, path: str) -> None:
    folder = MemoryFolder(log([protocol(), metadata(field("a")), add(written)]))
    facts, memory = DeltaReader().read(folder, None, max_commits=ALL)
    assert [file.path for file in DeltaReader().live(memory)] == [path]
    assert facts.outside_locations == ((path,) if path.startswith("s3:") else ())


def test_very_many_files_elsewhere_are_claimed_by_their_folders() -> None:
    clone = [f"s3://lake/source/day={number % 3}/{number}.parquet" for number in range(10_001)]
    lone = "s3://bucket/x.parquet"
    facts = read(MemoryFolder(log([protocol(), metadata(), *map(add, clone), add(lone)])))
    assert facts.outside_locations == (lone, "s3://lake/source")
    few = read(MemoryFolder(log([protocol(), metadata(), *map(add, clone[:1000])])))
    assert few.outside_locations == tuple(sorted(clone[:1000]))


def test_a_file_is_removed_under_whatever_spelling() -> None:
    spellings = ["/abs/p%23", "file:/abs/p%23", "file:///abs/p%23"]
    for written in spellings:
        for spelled in spellings:
            files = log([protocol(), metadata(field("a")), add(written)], [remove(spelled)])
            assert read(MemoryFolder(files, root="/lake/table")).files == 0


def _vector(kind: str, place: str, count: int = 3, **more: int) -> dict[str, object]:
    given = {"storageType": kind, "pathOrInlineDv": place, "sizeInBytes": 40, "cardinality": count}
    return {**given, **more}


@pytest.mark.parametrize(
    ("vector", "deletes"),
    [
        pytest.param(
            _vector("u", "ab^-aqEH.-t@S}K{vb[*k^", offset=4),
            RowDeletes(
                "dv", "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin", 4, 40, 3
            ),
            id="beside the data",
        ),
        pytest.param(
            _vector("p", "s3://lake/table/v%20.bin", offset=1),
            RowDeletes("dv", "v .bin", 1, 40, 3),
            id="anywhere",
        ),
        pytest.param(
            _vector("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"),
            RowDeletes(
                "dv",
                "",
                0,
                40,
                3,
                # Rows 3, 4, 7, 11, 18 and 29.
                b"d9\xd3\xd0\x00\x00\x00\x01\x00\x00\x00\x1c:0\x00\x00\x01\x00\x00\x00\x00\x00"
                b"\x05\x00\x10\x00\x00\x00\x03\x00\x04\x00\x07\x00\x0b\x00\x12\x00\x1d\x00",
            ),
            id="inline",
        ),
    ],
)
def test_deletion_vectors_are_reported_with_their_location(
    vector: dict[str, object], deletes: RowDeletes
) -> None:
    files = log([protocol(3, 7), metadata(field("a")), add("x", rows=10, deletionVector=vector)])
    facts, memory = DeltaReader().read(MemoryFolder(files), None, max_commits=ALL)
    assert facts.rows == 7
    assert [file.deletes for file in DeltaReader().live(memory)] == [(deletes,)]
    assert [file.rows for file in DeltaReader().live(memory)] == [10]


def test_a_new_vector_replaces_the_file_with_the_old_one() -> None:
    old, new = _vector("i", "0" * 50), _vector("i", "1" * 50, count=5)
    files = log(
        [protocol(3, 7), metadata(field("a")), add("x")],
        [remove("x"), add("x", deletionVector=old)],
        [add("x", deletionVector=new), remove("x", deletionVector=old)],
    )
    facts = read(MemoryFolder(files))
    assert (facts.files, facts.rows) == (1, 5)


@pytest.mark.parametrize(
    "vector",
    [_vector("u", "short"), _vector("x", "0" * 20), _vector("i", "~~~~~"), _vector("u", "")],
)
def test_a_vector_that_cannot_be_understood_is_a_problem(vector: dict[str, object]) -> None:
    files = log([protocol(3, 7), metadata(field("a")), add("x", deletionVector=vector)])
    assert _problem(files).code == "broken_table"


def test_the_row_count_is_unknown_if_that_of_one_file_is() -> None:
    files = log([protocol(), metadata(field("a")), add("x"), add("y", rows=None)])
    assert read(MemoryFolder(files)).rows is None
    torn = add("y")
    torn["add"]["stats"] = '{"numRecords":'
    assert read(MemoryFolder(log([protocol(), metadata(field("a")), torn]))).rows is None


def test_an_empty_partition_value_is_null() -> None:
    one = add("x", partitionValues={"day": ""})
    files = log(
        [protocol(1, 2), metadata(field("a"), field("day", "string"), partition_by=["day"]), one]
    )
    _, memory = DeltaReader().read(MemoryFolder(files), None, max_commits=ALL)
    assert [file.partition for file in DeltaReader().live(memory)] == [(("day", None),)]


def test_partitions_of_live_files_have_the_names_of_columns() -> None:
    physical = {"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "col-7"}
    columns = [field("a"), field("day", "date", **physical)]
    one = add("x", partitionValues={"col-7": "2024-05-01"})
    files = log([protocol(2, 5), metadata(*columns, partition_by=["day"]), one])
    facts, memory = DeltaReader().read(MemoryFolder(files), None, max_commits=ALL)
    assert [file.partition for file in DeltaReader().live(memory)] == [(("day", "2024-05-01"),)]
    assert facts.partition_by == ("day",)
