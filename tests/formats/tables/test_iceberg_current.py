"""Which of Iceberg's metadata files counts, and what is said where that one cannot be read."""

import gzip
from typing import Any

import pytest

from lumos.formats.interface import UnreadableFile

from .iceberg_tables import LOCATION, READER, facts_of, in_memory, metadata, packed

A, B = "1c12d441-03fe-4693-9a96-a0705ddf69c1", "2c12d441-03fe-4693-9a96-a0705ddf69c1"


def named(text: str, **more: Any) -> dict[str, Any]:
    """A metadata file that is known by its table's comment."""
    return metadata(properties={"comment": text}, **more)


def problem_of(folder: Any) -> tuple[str, str]:
    with pytest.raises(UnreadableFile) as problem:
        facts_of(folder)
    return problem.value.code, problem.value.reason


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"v1.metadata.json": "old", "v2.metadata.json": "new"}, id="numbers of Hadoop"),
        pytest.param({"v9.metadata.json": "old", "v10.metadata.json": "new"}, id="numbers, not texts"),
        pytest.param({f"00000-{B}.metadata.json": "old", f"00001-{A}.metadata.json": "new"}, id="numbers of catalogs"),
        pytest.param({"version-hint.text": b"2\n", "v1.metadata.json": "old", "v2.metadata.json": "new", "v4.metadata.json": "left over"}, id="a hint"),
        pytest.param({"version-hint.text": b"1", "v1.metadata.json": "old", "v2.metadata.json": "new"}, id="a hint that is late"),
        pytest.param({"version-hint.text": b"7", "v1.metadata.json": "old", "v2.metadata.json": "new"}, id="a hint to nothing"),
        pytest.param({"version-hint.text": b"\xff?", "v1.metadata.json": "old", "v2.metadata.json": "new"}, id="a hint that is none"),
        pytest.param({"version-hint.text": b"1" + b" " * 5000, "v1.metadata.json": "old", "v2.metadata.json": "new"}, id="a hint that is too long"),
        pytest.param({"version-hint.text": f"00003-{A}".encode(), f"00003-{A}.metadata.json": "new", f"00009-{B}.metadata.json": "left over"}, id="a hint by name"),
        pytest.param({"version-hint.text": f"00003-{A}.metadata.json".encode(), f"00003-{A}.metadata.json": "new"}, id="a hint by full name"),
        pytest.param({"version-hint.text": f"00003-{A}".encode(), f"00003-{A}.metadata.json": "new", f"00003-{B}.metadata.json": "left over"}, id="a hint by name, of two with one number"),
        pytest.param({f"{A}.metadata.json": "not committed", "v1.metadata.json": "new"}, id="not committed"),
        pytest.param({"12345678-03fe-4693-9a96-a0705ddf69c1.metadata.json": "not committed", "v1.metadata.json": "new"}, id="not committed, in digits"),
        pytest.param({"v1.metadata.json": "old", "v2.gz.metadata.json": "new"}, id="compressed"),
        pytest.param({"v1.metadata.json": "old", "v2.metadata.json.gz": "new"}, id="compressed, old name"),
    ],
)  # fmt: skip
def test_the_current_metadata_file_is_found(files: dict[str, Any]) -> None:
    contents: dict[str, Any] = {}
    for name, content in files.items():
        if isinstance(content, str):
            content = named(content)
            content = gzip.compress(packed(content)) if "gz" in name else content
        contents[name] = content
    facts = facts_of(in_memory(contents))
    assert (facts.description, facts.remarks) == ("new", ())


def test_of_two_files_with_one_number_the_last_updated_one_counts_and_that_is_said() -> None:
    files = {
        f"00002-{A}.metadata.json": named("new", last_updated_ms=1_700_000_000_002),
        f"00002-{B}.metadata.json": named("old", last_updated_ms=1_700_000_000_001),
    }
    facts = facts_of(in_memory(files))
    assert facts.description == "new"
    assert [remark.code for remark in facts.remarks] == ["ambiguous_metadata"]
    assert B in facts.remarks[0].reason


def test_of_two_files_with_one_number_the_one_that_the_other_follows_is_no_rival() -> None:
    log = [{"metadata-file": f"{LOCATION}/metadata/00002-{B}.metadata.json", "timestamp-ms": 5}]
    files = {
        f"00002-{A}.metadata.json": named("new", metadata_log=log, last_updated_ms=1),
        f"00002-{B}.metadata.json": named("old", last_updated_ms=2),
    }
    facts = facts_of(in_memory(files))
    assert (facts.description, facts.remarks) == ("new", ())


def test_a_table_that_was_dropped_and_made_again_is_the_new_one() -> None:
    files = {
        f"00005-{A}.metadata.json": named("old", last_updated_ms=1_700_000_000_001),
        f"00000-{B}.metadata.json": named("new", last_updated_ms=1_700_000_000_002, table_uuid=B),
    }
    made_later = {f"metadata/00000-{B}.metadata.json": 99}
    facts = facts_of(in_memory(files, modified=made_later))
    assert facts.description == "new"
    assert [remark.code for remark in facts.remarks] == ["ambiguous_metadata"]


def test_a_copied_table_has_odd_file_times_and_that_does_not_matter() -> None:
    files = {"v1.metadata.json": named("old"), "v2.metadata.json": named("new")}
    facts = facts_of(in_memory(files, modified={"metadata/v1.metadata.json": 99}))
    assert (facts.description, facts.remarks) == ("new", ())


def test_an_older_file_that_is_damaged_does_not_matter_however_new_it_looks() -> None:
    files = {"v1.metadata.json": b"{", "v2.metadata.json": named("new")}
    assert (
        facts_of(in_memory(files, modified={"metadata/v1.metadata.json": 99})).description == "new"
    )


@pytest.mark.parametrize(
    ("newest", "reason"),
    [
        pytest.param(b"", "v2.metadata.json is not table metadata", id="empty"),
        pytest.param(
            packed(named("x"))[:-20], "v2.metadata.json is not table metadata", id="cut off"
        ),
        pytest.param(b"\xff\xfe\x00", "v2.metadata.json is not table metadata", id="no text"),
        pytest.param(b"[]", "v2.metadata.json is not table metadata", id="no object"),
        pytest.param(b'{"a":' * 5000, "nests too deeply", id="deep"),
        pytest.param(
            gzip.compress(packed(named("x")))[:-12], "truncated", id="cut off where compressed"
        ),
        pytest.param(gzip.compress(b" " * (200 << 20)), "longer than 128 MB", id="a bomb"),
        pytest.param(packed(metadata(schemas=[])), "current schema 0", id="no schema"),
        pytest.param(
            packed(metadata(current_schema_id=5)), "current schema 5", id="another schema"
        ),
        pytest.param(packed(metadata(default_spec_id=5)), "partition spec 5", id="another spec"),
        pytest.param(packed(metadata(default_sort_order_id=5)), "sort order 5", id="another order"),
        pytest.param(
            packed(metadata(current_snapshot_id=5)), "current snapshot 5", id="another snapshot"
        ),
        pytest.param(packed(metadata(last_updated_ms=1 << 62)), "not a time", id="no time"),
    ],
)
def test_an_unreadable_newest_file_is_a_broken_table_and_not_the_one_before(
    newest: bytes, reason: str
) -> None:
    code, reasons = problem_of(
        in_memory({"v1.metadata.json": named("old"), "v2.metadata.json": newest})
    )
    assert code == "broken_table"
    assert reason in reasons


CUT_OFF = packed(named("new"))[:-20]


@pytest.mark.parametrize(
    "newest",
    [
        pytest.param({f"00002-{A}.metadata.json": CUT_OFF}, id="cut off"),
        pytest.param({f"00002-{A}.metadata.json": b""}, id="empty"),
        pytest.param(
            {f"00002-{A}.gz.metadata.json": gzip.compress(packed(named("new")))[:-12]},
            id="cut off where compressed",
        ),
        pytest.param(
            {f"00002-{A}.metadata.json": CUT_OFF, f"00003-{B}.metadata.json": CUT_OFF},
            id="several",
        ),
        pytest.param({f"00001-{A}.metadata.json": CUT_OFF}, id="beside a whole one"),
        pytest.param(
            {f"00002-{A}.metadata.json": CUT_OFF, "version-hint.text": f"00001-{B}".encode()},
            id="after the one that a hint names",
        ),
    ],
)
def test_a_newest_file_of_a_catalog_that_is_cut_off_was_never_committed(
    newest: dict[str, bytes],
) -> None:
    files = {f"00000-{A}.metadata.json": named("old"), f"00001-{B}.metadata.json": named("last")}
    facts = facts_of(in_memory({**files, **newest}))
    assert facts.description == "last"
    cut_off = sorted(name for name in newest if name.endswith(".json"))
    assert {remark.code for remark in facts.remarks} == {"half_written_table"}
    reasons = sorted(remark.reason for remark in facts.remarks)
    assert [reason.partition(" ")[0] for reason in reasons] == cut_off


def test_a_newest_file_that_is_whole_and_no_table_is_a_broken_table() -> None:
    files = {f"00000-{A}.metadata.json": named("old"), f"00001-{B}.metadata.json": b"[]"}
    assert problem_of(in_memory(files))[0] == "broken_table"


@pytest.mark.parametrize("hint", [b"1", f"00001-{B}".encode()])
def test_a_file_that_is_cut_off_though_a_hint_names_it_is_a_broken_table(hint: bytes) -> None:
    files = {f"00000-{A}.metadata.json": named("old"), f"00001-{B}.metadata.json": CUT_OFF}
    assert problem_of(in_memory({**files, "version-hint.text": hint}))[0] == "broken_table"


def test_a_file_that_was_whole_before_is_damaged_and_the_table_does_not_go_back() -> None:
    files = {f"00000-{A}.metadata.json": named("old"), f"00001-{B}.metadata.json": named("new")}
    _, memory = READER.read(in_memory(files), None, max_commits=10)
    damaged = in_memory({**files, f"00001-{B}.metadata.json": CUT_OFF})
    with pytest.raises(UnreadableFile) as problem:
        facts_of(damaged, memory)
    assert problem.value.code == "broken_table"
    later = in_memory({**files, f"00002-{A}.metadata.json": CUT_OFF})
    assert facts_of(later, memory).description == "new"


def test_a_first_file_that_is_cut_off_is_half_written() -> None:
    files = {f"00000-{A}.metadata.json": CUT_OFF}
    assert problem_of(in_memory(files))[0] == "half_written_table"


def test_a_table_whose_first_commit_is_under_way_is_half_written() -> None:
    assert (
        problem_of(in_memory({f"{A}.metadata.json": named("not committed")}))[0]
        == "half_written_table"
    )
