"""The second reading of a Delta table: only what is new is opened, and nothing differs for it."""

import pytest

from lumos.formats.tables.delta.reader import DeltaReader
from lumos.formats.tables.interface import TableFacts

from .delta_judge import ALL, read
from .delta_logs import (
    LOG,
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
    small,
    without,
)
from .folder import MemoryFolder


def _first(files: dict[str, bytes]) -> tuple[TableFacts, bytes]:
    return DeltaReader().read(MemoryFolder(files), None, max_commits=ALL)


def test_the_second_reading_opens_nothing() -> None:
    facts, memory = _first(small(5))
    folder = MemoryFolder(small(5))
    again, kept = DeltaReader().read(folder, memory, max_commits=ALL)
    assert folder.opened == []
    assert folder.listed == [LOG]
    assert (again, kept) == (facts, memory)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_later_reading_opens_new_commits_alone(version: int) -> None:
    _, memory = _first(small(version))
    folder = MemoryFolder(small(5))
    facts, kept = DeltaReader().read(folder, memory, max_commits=ALL)
    assert folder.opened == [commit_name(each) for each in range(version, 5)]
    assert (facts, kept) == _first(small(5))


def test_a_checkpoint_of_what_is_known_is_not_opened() -> None:
    _, memory = _first(small(3))
    state: Actions = [protocol(), metadata(field("a")), add("f0"), add("f1"), add("f2"), add("f3")]
    files = {**small(5), f"{LOG}/{3:020}.checkpoint.parquet": checkpoint(state)}
    folder = MemoryFolder(files)
    facts, _ = DeltaReader().read(folder, memory, max_commits=ALL)
    assert folder.opened == [commit_name(3), commit_name(4)]
    assert facts.files == 5


def test_a_log_that_was_written_anew_is_read_anew() -> None:
    _, memory = _first(small(4))
    other = log(
        [protocol(), metadata(field("z"), id="another"), add("g0"), info(50)],
        *([add(f"g{version}"), info(50 + version)] for version in range(1, 6)),
    )
    facts, kept = DeltaReader().read(MemoryFolder(other), memory, max_commits=ALL)
    assert (facts, kept) == _first(other)
    assert [column.name for column in facts.schema.fields] == ["z"]


def test_a_restored_log_of_fewer_commits_is_read_anew() -> None:
    _, memory = _first(small(5))
    facts, kept = DeltaReader().read(MemoryFolder(small(3)), memory, max_commits=ALL)
    assert (facts, kept) == _first(small(3))


def test_history_outlives_its_commits() -> None:
    before, memory = _first(small(5))
    state = [protocol(), metadata(field("between"))]
    files = {
        f"{LOG}/{8:020}.checkpoint.parquet": checkpoint([*state, add("f8")]),
        commit_name(8): lines([add("f8"), info(8)]),
        commit_name(9): lines([metadata(field("c")), info(9)]),
    }
    facts, _ = DeltaReader().read(MemoryFolder(files), memory, max_commits=ALL)
    assert facts.past[: len(before.past)] == before.past
    later = [(each.version, each.exact_time) for each in facts.past[len(before.past) :]]
    assert later == [("8", False), ("9", True)]
    assert facts.files == 1


@pytest.mark.parametrize("memory", [b"", b"\x00", b"no msgpack at all", b"\x9d" + b"\xc0" * 13])
def test_a_memory_that_is_no_use_is_passed_over(memory: bytes) -> None:
    facts = read(MemoryFolder(small(4)), memory)
    assert facts == read(MemoryFolder(small(4)))


def test_a_broken_commit_leaves_the_memory_as_it_was() -> None:
    facts, memory = _first(small(3))
    mended = {**small(3), commit_name(3): lines([remove("f0"), info(3)])}
    for broken in (mended[commit_name(3)][:20], b"\xff"):
        with pytest.raises(Exception, match="commit 3"):
            read(MemoryFolder({**mended, commit_name(3): broken}), memory)
    assert read(MemoryFolder(mended), memory).files == facts.files - 1


def test_the_signature_opens_nothing_and_changes_with_the_log() -> None:
    def signature(files: dict[str, bytes]) -> str:
        folder = MemoryFolder(files)
        made = DeltaReader().signature(folder)
        assert folder.opened == []
        return made

    files = small(4)
    same = signature(files)
    assert signature({**files, f"{LOG}/_last_checkpoint": b"{}", f"{LOG}/x.tmp": b""}) == same
    assert signature({**files, "part-0.parquet": b"x"}) == same
    assert signature(small(5)) != same
    assert signature(without(files, 0)) != same
    assert signature({**files, commit_name(3): files[commit_name(3)] + b"\n"}) != same
    assert signature({**files, f"{LOG}/{3:020}.checkpoint.parquet": b"x"}) != same


def test_partitions_that_are_gone_are_forgotten_in_time() -> None:
    commits: list[Actions] = [[protocol(), metadata(field("a"), field("p"), partition_by=["p"])]]
    for number in range(30):
        old = [remove(f"{number - 1}-{each}") for each in range(100)] if number else []
        new = [
            add(f"{number}-{each}", partitionValues={"p": f"{number}/{each}"})
            for each in range(100)
        ]
        commits.append([*old, *new])
    memory, sizes = None, []
    for count in range(1, 32):
        folder = MemoryFolder(log(*commits[:count]))
        facts, memory = DeltaReader().read(folder, memory, max_commits=ALL)
        sizes.append(len(memory))
    assert max(sizes) < 3 * sizes[10]
    assert facts.files == 100
    live = {file.path: file.partition for file in DeltaReader().live(memory or b"")}
    assert live == {f"29-{each}": (("p", f"29/{each}"),) for each in range(100)}
