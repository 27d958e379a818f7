"""Snapshots that look whole and are not, or that unfold to more than they seem."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lumos.snapshots.format.comparison import compare
from lumos.snapshots.format.encodings import parquet_folder
from lumos.snapshots.format.errors import (
    EditedSnapshot,
    SnapshotError,
    SnapshotTooLarge,
    TruncatedSnapshot,
)
from lumos.snapshots.format.validation import validate
from lumos.snapshots.format.writer import write_snapshot
from lumos.snapshots.on_spark import compare_schemas
from snapshots.format.test_damage import problems, replaced, written
from snapshots.format.test_encodings import NAMES, content
from snapshots.sample_inventories import CUSTOMERS, FACTS, customers, many


def compared(before: Path, after: Path) -> list[Any]:
    return list(compare(before, after, compare_schemas=compare_schemas))


@pytest.mark.parametrize(
    ("old", "path"),
    [
        ('"exported_at":"{}"', "exported_at"),
        ('"created":"{}"', "datasets[1].timestamps.created"),
        ('"freshness":"{}"', "datasets[1].quality.freshness"),
        ('"at":"{}"', "datasets[1].versioning.history[0].at"),
        ('"last_read":"{}"', "datasets[1].usage.readers[0].last_read"),
        ('"started_at":"{}"', "jobs[0].runs[0].started_at"),
    ],
)
def test_a_time_without_a_zone_is_reported_with_its_path(
    tmp_path: Path, old: str, path: str
) -> None:
    zoned = "2024-01-15T12:00:00Z"
    file = replaced(
        written(tmp_path, "estate.json"), old.format(zoned), old.format(zoned.removesuffix("Z"))
    )
    assert ("format", path) in problems(file)
    with pytest.raises(SnapshotError, match="with its zone"):
        content(file)


def a_bomb(folder: Path, *, rows: int, size: int) -> Path:
    """A folder whose datasets are one large text that all rows share."""
    bomb = written(folder, "bomb.parquet")
    columns = {name: ["x"] * rows for name in ("urn", "content_hash")}
    columns["body"] = ["{" + " " * size + "}"] * rows
    pq.write_table(pa.table(columns), bomb / "datasets-00000.parquet", compression="zstd")
    return bomb


def test_a_parquet_bomb_is_stopped_in_little_memory(tmp_path: Path) -> None:
    bomb = a_bomb(tmp_path, rows=600, size=200_000)
    assert (bomb / "datasets-00000.parquet").stat().st_size < 10_000
    allocated = pa.total_allocated_bytes()
    tracemalloc.start()
    assert ("too_large", "datasets-00000.parquet") in problems(bomb)
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()
    assert pa.total_allocated_bytes() - allocated < 20_000_000
    with pytest.raises(SnapshotTooLarge):
        content(bomb)


def test_large_rows_are_unfolded_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = a_bomb(tmp_path, rows=100, size=400_000)
    monkeypatch.setattr("lumos.decompression.MAX_COMPRESSION_RATIO", 1_000_000)
    monkeypatch.setattr(parquet_folder, "ALWAYS_ALLOWED", 1_000_000)
    tracemalloc.start()
    found = problems(bomb)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()
    assert [code for code, _ in found if code != "reference"][:100] == ["format"] * 100


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("side", ["source", "target"])
def test_a_comparison_refuses_a_side_that_lacks_entries(
    tmp_path: Path, name: str, side: str
) -> None:
    write_snapshot(tmp_path / name, FACTS, many(3))
    whole = tmp_path / "whole.jsonl"
    write_snapshot(whole, FACTS, many(3))
    if name == "estate.parquet":
        table = pq.read_table(tmp_path / name / "datasets-00000.parquet")
        pq.write_table(table.slice(0, 2), tmp_path / name / "datasets-00000.parquet")
    elif name == "estate.jsonl.zst":
        (tmp_path / name).unlink()
        _compressed(tmp_path / name, whole.read_bytes().splitlines(keepends=True)[:-1])
    else:
        _without_the_last_dataset(tmp_path / name)
    sides = (tmp_path / name, whole) if side == "source" else (whole, tmp_path / name)
    with pytest.raises(TruncatedSnapshot, match="Expected 3 datasets, found 2"):
        compared(*sides)


def _compressed(file: Path, lines: list[bytes]) -> None:
    with pa.OSFile(str(file), "wb") as stored, pa.CompressedOutputStream(stored, "zstd") as stream:
        stream.write(b"".join(lines))


def _without_the_last_dataset(file: Path) -> None:
    text = file.read_text()
    if file.suffix == ".json":
        start = text.rindex(",\n{")
        file.write_text(text[:start] + "\n]}\n")
    elif file.suffix == ".yaml":
        file.write_text(text[: text.rindex("\n- urn:") + 1])
    else:
        file.write_text("".join(text.splitlines(keepends=True)[:-1]))


def test_a_comparison_refuses_a_header_that_was_edited(tmp_path: Path) -> None:
    whole = written(tmp_path, "whole.jsonl")
    edited = replaced(written(tmp_path), '"scope":"all"', '"scope":"incremental"')
    for sides in ((whole, edited), (edited, whole)):
        with pytest.raises(EditedSnapshot, match="header does not match"):
            compared(*sides)


def test_a_comparison_refuses_entries_that_nobody_counted(tmp_path: Path) -> None:
    file = written(tmp_path)
    more = file.read_text().splitlines()[-1].replace("customers", "customers2")
    file.write_text(file.read_text() + more + "\n")
    with pytest.raises(EditedSnapshot, match="Expected 2 datasets, found 3"):
        compared(file, written(tmp_path, "whole.jsonl"))


@pytest.mark.parametrize(
    ("name", "old", "new", "path"),
    [
        ("estate.json", '"datasets":[', '"datasets":[],"datasets":[', "datasets"),
        ("estate.json", '"platform":"local"', '"platform":"x","platform":"local"', "platform"),
        ("estate.json", '"datasets":2', '"datasets":7,"datasets":2', "counts.datasets"),
        ("estate.jsonl", '"datasets":2', '"datasets":7,"datasets":2', "counts.datasets"),
        ("estate.jsonl", '"scope":"all"', '"scope":"x","scope":"all"', "scope"),
        ("estate.json", '"name":"customers"', '"name":"x","name":"customers"', "datasets[1].name"),
        (
            "estate.jsonl",
            '"name":"e-mail"',
            '"name":"x","name":"e-mail"',
            ": dataset.schema.fields[1].name",
        ),
        ("estate.json", '"a":"first"', '"a":"x","a":"first"', "datasets[1].properties.a"),
    ],
)
@pytest.mark.parametrize("is_formatted", [False, True])
def test_a_duplicate_key_is_reported(
    tmp_path: Path, name: str, old: str, new: str, path: str, is_formatted: bool
) -> None:
    file = replaced(written(tmp_path, name), old, new)
    if is_formatted and name == "estate.json":
        file.write_bytes(msgspec.json.format(file.read_bytes()))
    found = [problem for problem in validate(file) if problem.path.endswith(path)]
    assert [(problem.code, problem.text) for problem in found] == [
        ("format", "The key is duplicated.")
    ]
    with pytest.raises(SnapshotError, match="is duplicated"):
        content(file)


def test_a_line_with_a_duplicate_word_is_reported(tmp_path: Path) -> None:
    file = written(tmp_path)
    *lines, last = file.read_text().splitlines()
    file.write_text("\n".join([*lines, f'{{ "dataset": {{}}, {last[1:]}']))
    assert ("format", f"line {len(lines) + 1}") in problems(file)


def test_a_hash_that_stands_elsewhere_hides_no_second_key(tmp_path: Path) -> None:
    file = written(tmp_path, "estate.json")
    document = json.loads(file.read_text())
    entry = document["datasets"][1]
    moved = {"content_hash": entry.pop("content_hash"), **entry}
    document["datasets"][1] = moved
    file.write_text(json.dumps(document))
    assert problems(file) == []
    replaced(file, '"name": "customers"', '"name": "x", "name": "customers"')
    assert ("format", "datasets[1].name") in problems(file)


def nested(levels: int) -> Any:
    value: Any = "deep"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("levels", "is_written"), [(90, True), (95, True), (96, False), (120, False), (900, False)]
)
def test_what_nests_too_deeply_for_yaml_is_not_written_as_yaml(
    tmp_path: Path, levels: int, is_written: bool
) -> None:
    entry = msgspec.structs.replace(customers(), lineage=None, raw={"x": nested(levels)})
    if is_written:
        write_snapshot(tmp_path / "a.yaml", FACTS, [entry])
        assert list(validate(tmp_path / "a.yaml")) == []
        return
    with pytest.raises(SnapshotError, match=r"nests (deeper than 100 levels|too deeply)"):
        write_snapshot(tmp_path / "a.yaml", FACTS, [entry])
    assert list(tmp_path.iterdir()) == []


def test_what_no_encoding_can_hold_is_one_sentence(tmp_path: Path) -> None:
    entry = msgspec.structs.replace(customers(), raw={"x": nested(100_000)})
    with pytest.raises(SnapshotError, match=f"{CUSTOMERS}' nests too deeply"):
        write_snapshot(tmp_path / "a.jsonl", FACTS, [entry])
