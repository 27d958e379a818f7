"""Snapshots that are cut off, edited, too new, of the wrong kind or made to do harm."""

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lumos.errors import LumosError
from lumos.snapshots.format.checks import SnapshotProblem
from lumos.snapshots.format.encodings import json_lines
from lumos.snapshots.format.errors import NotASnapshot, SnapshotError, SnapshotTooLarge
from lumos.snapshots.format.reader import open_snapshot
from lumos.snapshots.format.validation import validate
from lumos.snapshots.format.writer import write_snapshot
from snapshots.format.test_encodings import NAMES, content
from snapshots.sample_inventories import CUSTOMERS, FACTS, everything, many

TEXTS = ("estate.json", "estate.yaml", "estate.jsonl")


def problems(file: Path) -> list[tuple[str, str]]:
    """The codes and places of all that is wrong with a file, and that no reader takes it whole."""
    found = list(validate(file))
    return [(problem.code, problem.path) for problem in found]


def written(folder: Path, name: str = "estate.jsonl", **facts: Any) -> Path:
    """A snapshot of everything."""
    write_snapshot(folder / name, msgspec.structs.replace(FACTS, **facts), **everything())
    return folder / name


def line_of(file: Path, text: str) -> int:
    """The number of the first line that is that text."""
    lines = file.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text == line)


def replaced(file: Path, old: str, new: str) -> Path:
    """The file with its first such text replaced."""
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    return file


@pytest.mark.parametrize("name", NAMES)
def test_a_sound_snapshot_has_no_problems_and_is_counted(tmp_path: Path, name: str) -> None:
    validation = validate(written(tmp_path, name))
    assert list(validation) == []
    assert validation.header is not None
    assert validation.counts == validation.header.counts


@pytest.mark.parametrize("name", NAMES)
def test_odd_and_many_datasets_are_sound_too(tmp_path: Path, name: str) -> None:
    write_snapshot(tmp_path / name, FACTS, many(120, fields=25))
    assert list(validate(tmp_path / name)) == []


@pytest.mark.parametrize("name", TEXTS)
def test_an_edited_dataset_is_reported_by_its_hash(tmp_path: Path, name: str) -> None:
    file = replaced(written(tmp_path, name), "Master customer table", "Mistress customer table")
    (problem,) = validate(file)
    assert problem.code == "hash"
    assert CUSTOMERS in problem.text
    with pytest.raises(SnapshotError, match="content hash"):
        content(file)


@pytest.mark.parametrize("name", TEXTS)
def test_a_hash_is_that_of_the_content_and_not_of_its_layout(tmp_path: Path, name: str) -> None:
    file = written(tmp_path, name)
    if name == "estate.yaml":
        file.write_text(file.read_text().replace("\n", "\n\n").replace("name: ", "name:   "))
    elif name == "estate.json":
        file.write_text(json.dumps(json.loads(file.read_text()), indent=4, sort_keys=True))
    else:
        lines = [json.dumps(json.loads(line)) for line in file.read_text().splitlines()]
        file.write_text("\n".join(lines))
    assert list(validate(file)) == []
    assert content(file) == content(written(tmp_path, "other.json"))


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('"platform":"local"', '"platform":"other"', "hashes.header"),
        ('"datasets":2', '"datasets":3', "counts.datasets"),
        ('"lineage_edges":1', '"lineage_edges":2', "counts.lineage_edges"),
        ('"overall":"', '"overall":"0', "hashes.overall"),
        ('"users":"', '"users":"0', "hashes.users"),
    ],
)
def test_an_edited_header_is_reported(tmp_path: Path, old: str, new: str, place: str) -> None:
    file = replaced(written(tmp_path), old, new)
    assert [path for _, path in problems(file)] == [place]


@pytest.mark.parametrize("name", TEXTS)
def test_an_entry_that_was_taken_out_is_missed(tmp_path: Path, name: str) -> None:
    file = written(tmp_path, name)
    if name == "estate.jsonl":
        lines = file.read_text().splitlines(keepends=True)
        file.write_text(
            "".join(line for line in lines if '"user":' not in line or "john" not in line)
        )
    elif name == "estate.json":
        document = json.loads(file.read_text())
        del document["users"][1]
        file.write_text(json.dumps(document))
    else:
        text = file.read_text()
        start, end = text.index("- name: john.doe"), text.index("groups:\n- name")
        file.write_text(text[:start] + text[end:])
    assert problems(file) == [("count", "counts.users")]
    with pytest.raises(SnapshotError, match="Expected 2 users, found 1"):
        content(file)


@pytest.mark.parametrize("name", [*TEXTS, "estate.jsonl.zst"])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.6, 0.999])
def test_a_cut_off_snapshot_is_refused_wherever_it_was_cut(
    tmp_path: Path, name: str, share: float
) -> None:
    write_snapshot(tmp_path / name, FACTS, many(40))
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(data[: int(len(data) * share)])
    assert [problem for problem in validate(tmp_path / name) if problem.severity == "error"]
    with pytest.raises(SnapshotError):
        content(tmp_path / name)


def test_a_cut_off_line_is_named(tmp_path: Path) -> None:
    file = written(tmp_path)
    data = file.read_bytes()
    file.write_bytes(data[:-100])
    last = len(data.splitlines())
    places = [path.partition(":")[0] for code, path in problems(file) if code == "truncated"]
    assert places == [f"line {last}"]


def test_lines_that_are_none_do_not_hide_the_next_problem(tmp_path: Path) -> None:
    file = written(tmp_path)
    lines = file.read_text().splitlines()
    lines[2] = "nonsense"
    lines[4] = '{"person":{"name":"x"}}'
    lines[-1] = lines[-1].replace('"platform":"snowflake"', '"platform":7')
    file.write_text("\n".join(lines))
    reported = {path: code for code, path in problems(file)}
    assert reported["line 3"] == "format"
    assert reported["line 5"] == "format"
    assert reported[f"line {len(lines)}: dataset.platform"] == "format"


@pytest.mark.parametrize("name", TEXTS)
def test_a_newer_version_is_refused_with_what_to_do(tmp_path: Path, name: str) -> None:
    file = written(tmp_path, name)
    old = "format_version: '1.1'" if name == "estate.yaml" else '"format_version":"1.1"'
    replaced(file, old, old.replace("1.1", "1.2"))
    (problem,) = validate(file)
    assert (problem.code, problem.path) == ("newer_version", "format_version")
    assert "1.2" in problem.text
    assert "pip install --upgrade lumos" in problem.text
    with pytest.raises(SnapshotError, match="Upgrade Lumos"):
        open_snapshot(file)


@pytest.mark.parametrize("version", ["0.9", "1", "x", 1.0, None, ""])
def test_a_version_that_never_was_is_refused(tmp_path: Path, version: object) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"format": "lumos-snapshot", "format_version": version}))
    assert problems(file) == [("format", "format_version")]


@pytest.mark.parametrize(
    ("name", "text", "code", "words"),
    [
        ("a.yaml", "format: lumos-snapshot\nformat_version: 2.0\n", "newer_version", "format 2.0"),
        (
            "a.json",
            '{"format": "lumos-snapshot", "format_version": 2}',
            "newer_version",
            "format 2.0",
        ),
        ("a.yaml", "format: lumos-snapshot\nformat_version: 1.0\n", "format", "in quotes"),
    ],
)
def test_a_version_without_quotes_is_understood(
    tmp_path: Path, name: str, text: str, code: str, words: str
) -> None:
    (tmp_path / name).write_text(text)
    (problem,) = validate(tmp_path / name)
    assert (problem.code, problem.path, words in problem.text) == (code, "format_version", True)


def test_a_duplicate_dataset_is_reported(tmp_path: Path) -> None:
    file = written(tmp_path)
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines, lines[-1]]))
    assert ("duplicate", f"line {len(lines) + 1}: dataset") in problems(file)
    with pytest.raises(SnapshotError, match="is duplicated"):
        content(file)


def test_a_duplicate_dataset_in_a_document_is_reported(tmp_path: Path) -> None:
    file = written(tmp_path, "estate.json")
    document = json.loads(file.read_text())
    document["datasets"].append(document["datasets"][0])
    file.write_text(json.dumps(document))
    assert ("duplicate", "datasets[2]") in problems(file)


def test_a_stream_that_is_out_of_order_is_reported(tmp_path: Path) -> None:
    file = written(tmp_path)
    lines = file.read_text().splitlines()
    lines[-1], lines[-2] = lines[-2], lines[-1]
    file.write_text("\n".join(lines))
    assert problems(file) == [("order", f"line {len(lines)}: dataset")]
    with pytest.raises(SnapshotError, match="must not follow"):
        content(file)


def test_a_kind_of_items_after_the_datasets_is_reported(tmp_path: Path) -> None:
    file = written(tmp_path)
    header, first, *lines = file.read_text().splitlines()
    file.write_text("\n".join([header, *lines, first]))
    assert ("order", f"line {len(lines) + 2}") in problems(file)


def test_documents_may_be_in_any_order(tmp_path: Path) -> None:
    file = written(tmp_path, "estate.json")
    document = json.loads(file.read_text())
    document["datasets"].reverse()
    file.write_text(json.dumps(document))
    assert list(validate(file)) == []
    assert content(file) == content(written(tmp_path))


@pytest.mark.parametrize("name", NAMES)
def test_dangling_lineage_is_reported_at_its_edge(tmp_path: Path, name: str) -> None:
    entries = list(many(3))
    write_snapshot(tmp_path / name, FACTS, [entries[0], entries[2]])
    (problem,) = validate(tmp_path / name)
    assert (problem.code, problem.severity) == ("reference", "error")
    assert problem.path.endswith(".lineage.upstream[0]")
    assert entries[1].urn in problem.text


@pytest.mark.parametrize("scope", ["selected", "incremental"])
def test_a_part_of_an_estate_may_lead_out_of_itself(tmp_path: Path, scope: str) -> None:
    facts = msgspec.structs.replace(FACTS, scope=scope)
    write_snapshot(tmp_path / "a.jsonl", facts, list(many(3))[2:])
    (problem,) = validate(tmp_path / "a.jsonl")
    assert (problem.code, problem.severity) == ("reference", "warning")


def test_people_and_words_are_missed_only_where_some_are_listed(tmp_path: Path) -> None:
    given = everything()
    write_snapshot(
        tmp_path / "a.json", FACTS, **(given | {"users": [], "groups": [], "glossary": []})
    )
    assert list(validate(tmp_path / "a.json")) == []
    write_snapshot(tmp_path / "b.json", FACTS, **(given | {"users": given["users"][1:]}))
    reported = {problem.path: problem.severity for problem in validate(tmp_path / "b.json")}
    assert reported == {
        "glossary[2].owners[0]": "warning",
        "groups[0].members[0]": "warning",
        "jobs[0].owner": "warning",
        "datasets[1].ownership.owners[0]": "warning",
    }


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ('"name":"customers",', "", "datasets[1]"),
        (
            '"type":"STRING","nullable"',
            '"type":"TEXTY","nullable"',
            "datasets[1].schema.fields[0].type",
        ),
        (
            '"nullable":false,"key"',
            '"nullable":"no","key"',
            "datasets[1].schema.fields[0].nullable",
        ),
        ('"score":0.985', '"score":"good"', "datasets[1].quality.score"),
        ('"status":"PASSED"', '"status":"GREAT"', "datasets[1].quality.checks[0].status"),
        ('"type":"COPIED"', '"type":"GUESSED"', "datasets[1].lineage.upstream[0].type"),
        (
            '"started_at":"2024-01-15T12:00:00Z"',
            '"started_at":"noon"',
            "jobs[0].runs[0].started_at",
        ),
        ('"exported_at":"2024-01-15T12:00:00Z"', '"exported_at":"noon"', "exported_at"),
        ('"scope":"all"', '"scope":"some"', "scope"),
        ('"users":[', '"users":7,"x":[', "users"),
    ],
)
def test_what_the_format_does_not_allow_is_reported_with_its_path(
    tmp_path: Path, old: str, new: str, path: str
) -> None:
    file = replaced(written(tmp_path, "estate.json"), old, new)
    assert ("format", path) in problems(file)
    with pytest.raises(SnapshotError):
        content(file)


def test_an_invalid_urn_is_reported(tmp_path: Path) -> None:
    first, second = list(many(2))
    odd = msgspec.structs.replace(first, urn="urn:li:dataset:(s3,x,PROD)")
    other = msgspec.structs.replace(second, urn="lumos://s3/a b", lineage=None)
    write_snapshot(tmp_path / "a.json", FACTS, [odd, other])
    assert problems(tmp_path / "a.json") == [("urn", "datasets[0].urn"), ("urn", "datasets[1].urn")]


def test_keys_that_the_format_does_not_have_are_reported(tmp_path: Path) -> None:
    file = written(tmp_path, "estate.yaml")
    replaced(file, "    business_context: Who pays", "    business_contxt: Who pays")
    reported = {problem.code: problem for problem in validate(file)}
    assert reported["unknown_key"].path.endswith("datasets[1].documentation.business_contxt")
    assert reported["unknown_key"].severity == "warning"
    assert reported["unknown_key"].path.startswith(f"line {line_of(file, f'- urn: {CUSTOMERS}')}: ")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.json", b"[1, 2]"),
        ("a.json", b'{"format_version": "1.0", "datasets": []}'),
        ("a.json", b'{"format": "something-else", "format_version": "1.0"}'),
        ("a.json", b"\x89PNG\r\n\x1a\n"),
        ("a.json", b"name,age\nAnn,7\n"),
        ("a.json", b"7"),
        ("a.yaml", b"- 1\n- 2\n"),
        ("a.yaml", b"just text"),
        ("a.yaml", b"sources: []\n"),
        ("a.jsonl", b'{"id": 1}\n{"id": 2}\n'),
        ("a.jsonl", b"name,age\nAnn,7\n"),
        ("a.jsonl.zst", b"PK\x03\x04 is no zstd"),
        ("a.jsonl.zst", b'{"format": "lumos-snapshot", "format_version": "1.0"}\n'),
        ("a.parquet", b"PAR1"),
    ],
)
def test_a_file_of_the_wrong_kind_is_called_that(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(NotASnapshot):
        open_snapshot(tmp_path / name)
    (problem,) = validate(tmp_path / name)
    assert problem.code == "not_a_snapshot"


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_not_there_is_called_that(tmp_path: Path, name: str) -> None:
    with pytest.raises(SnapshotError, match="no such snapshot"):
        open_snapshot(tmp_path / name)


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{letter}: &{letter} [{','.join([f'*{before}'] * 9)}]\n"
    for before, letter in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        pytest.param(BOMB, 1, "Anchors and aliases", id="bomb"),
        pytest.param(
            "format: lumos-snapshot\nx: &a 1\ny: *a\n", 2, "Anchors and aliases", id="alias"
        ),
        pytest.param("x: 1\ny:\n  <<: {a: 1}\n", 3, "Merge keys", id="merge key"),
        pytest.param("x: 1\ny: !!python/object/apply:os.system [ls]\n", 2, "tag", id="object"),
        pytest.param("x: 1\ny: !!binary aGk=\n", 2, "tag", id="binary"),
        pytest.param("x: 1\nx: 2\n", 2, "is duplicated", id="key twice"),
        pytest.param("x: 1\n---\ny: 2\n", 2, "second document", id="two documents"),
        pytest.param("x: " + "[" * 1000 + "]" * 1000, 1, "deeper than 100", id="deep"),
        pytest.param("? [a, b]\n: 1\n", 1, "key must be text", id="odd key"),
        pytest.param("x: 1\n\ty: 2\n", 2, "not valid YAML", id="tab"),
        pytest.param("x: {a: 1\n", 2, "not valid YAML", id="open bracket"),
    ],
)
def test_yaml_that_could_do_harm_is_refused_with_its_line(
    tmp_path: Path, text: str, line: int, reason: str
) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    with pytest.raises(SnapshotError, match=reason) as error:
        open_snapshot(file)
    assert error.value.path == f"line {line}"


def test_yaml_with_characters_that_it_may_not_have_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"x: \xff\xfe\n")
    with pytest.raises(SnapshotError, match="not valid YAML"):
        open_snapshot(tmp_path / "a.yaml")


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_json_that_nests_without_end_is_refused(tmp_path: Path, name: str) -> None:
    head = '{"format":"lumos-snapshot","format_version":"1.0","exported_at":"2024-01-15T12:00:00Z"'
    deep = '{"urn":"lumos://s3/a","name":"a","platform":"s3","raw":{"a":' + "[" * 100_000
    start = f'{head},"datasets":[' if name == "a.json" else head + "}\n" + '{"dataset":'
    (tmp_path / name).write_text(start + deep)
    assert [problem for problem in validate(tmp_path / name) if problem.severity == "error"]


def compressed(file: Path, pieces: int, piece: bytes) -> Path:
    """A zstd file that unfolds to many equal pieces."""
    with pa.OSFile(str(file), "wb") as stored, pa.CompressedOutputStream(stored, "zstd") as stream:
        for _ in range(pieces):
            stream.write(piece)
    return file


@pytest.mark.parametrize(
    "piece", [b" " * 1_000_000, b"\n" * 1_000_000], ids=["one line", "many lines"]
)
def test_a_zstd_bomb_is_stopped_in_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: bytes
) -> None:
    monkeypatch.setattr("lumos.decompression.ALWAYS_ALLOWED", 4_000_000)
    monkeypatch.setattr("lumos.decompression.MAX_COMPRESSION_RATIO", 100)
    monkeypatch.setattr(json_lines, "MAX_LINE", 8_000_000)
    file = compressed(tmp_path / "a.jsonl.zst", 400, piece)
    assert file.stat().st_size < 100_000
    tracemalloc.start()
    with pytest.raises(SnapshotTooLarge):
        open_snapshot(file)
    assert tracemalloc.get_traced_memory()[1] < 60_000_000
    tracemalloc.stop()


def test_a_line_without_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "MAX_LINE", 4_000_000)
    file = written(tmp_path)
    with file.open("ab") as stream:
        stream.write(b'{"dataset":{"urn":"' + b"x" * 9_000_000)
    last = file.read_bytes().count(b"\n") + 1
    assert ("too_large", f"line {last}") in problems(file)


def test_damaged_zstd_is_reported(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "a.jsonl.zst", FACTS, many(500))
    data = bytearray((tmp_path / "a.jsonl.zst").read_bytes())
    middle = len(data) // 2
    data[middle : middle + 20] = b"\xff" * 20
    (tmp_path / "a.jsonl.zst").write_bytes(bytes(data))
    with pytest.raises(SnapshotError):
        content(tmp_path / "a.jsonl.zst")


def edit_manifest(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """The folder with something else in its manifest."""
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.mark.parametrize(
    "name",
    ["../other/datasets-00000.parquet", "/etc/passwd", "datasets-00000.parquet/../x", "..", "", 7],
)
def test_a_manifest_cannot_lead_out_of_its_folder(tmp_path: Path, name: object) -> None:
    folder = written(tmp_path, "estate.parquet")
    edit_manifest(folder, lambda manifest: manifest["files"]["datasets"].append(name))
    with pytest.raises(SnapshotError) as error:
        open_snapshot(folder)
    assert error.value.path == "manifest.json: files.datasets[1]"


def test_a_link_in_a_folder_is_not_followed(tmp_path: Path) -> None:
    folder = written(tmp_path, "estate.parquet")
    (folder / "datasets-00000.parquet").rename(tmp_path / "outside.parquet")
    (folder / "datasets-00000.parquet").symlink_to(tmp_path / "outside.parquet")
    with pytest.raises(SnapshotError, match="is a symbolic link"):
        open_snapshot(folder)


def test_a_file_that_is_missing_from_a_folder_is_named(tmp_path: Path) -> None:
    folder = written(tmp_path, "estate.parquet")
    (folder / "datasets-00000.parquet").unlink()
    assert ("truncated", "datasets-00000.parquet") in problems(folder)


def test_files_that_the_manifest_does_not_name_are_not_read(tmp_path: Path) -> None:
    folder = written(tmp_path, "estate.parquet")
    (folder / "datasets-00001.parquet").write_bytes(b"nonsense")
    assert list(validate(folder)) == []


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_damaged_parquet_file_is_named(tmp_path: Path, share: float) -> None:
    folder = written(tmp_path, "estate.parquet")
    file = folder / "datasets-00000.parquet"
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * share)])
    assert ("format", "datasets-00000.parquet") in problems(folder)


@pytest.mark.parametrize(
    ("columns", "code", "path"),
    [
        ({"urn": ["x"], "body": ["{}"]}, "format", "datasets-00000.parquet"),
        ({"urn": [1], "content_hash": ["x"], "body": ["{}"]}, "format", "datasets-00000.parquet"),
        (
            {"urn": ["x"], "content_hash": ["x"], "body": pa.array([None], pa.string())},
            "format",
            "datasets-00000.parquet[0]",
        ),
        (
            {"urn": ["x"], "content_hash": ["x"], "body": ['{"urn":"lumos://s3/a"}']},
            "format",
            "datasets-00000.parquet[0]",
        ),
    ],
    ids=["no hash", "number as URN", "no body", "another dataset's body"],
)
def test_parquet_with_other_columns_is_reported(
    tmp_path: Path, columns: dict[str, Any], code: str, path: str
) -> None:
    folder = written(tmp_path, "estate.parquet")
    pq.write_table(pa.table(columns), folder / "datasets-00000.parquet")
    assert (code, path) in problems(folder)


def test_a_folder_with_a_snapshot_is_replaced_whole(tmp_path: Path) -> None:
    written(tmp_path, "estate.parquet")
    write_snapshot(tmp_path / "estate.parquet", FACTS, many(1))
    assert len(content(tmp_path / "estate.parquet")["datasets"]) == 1
    assert not (tmp_path / "estate.parquet" / "users-00000.parquet").exists()
    assert [each.name for each in tmp_path.iterdir()] == ["estate.parquet"]


@pytest.mark.parametrize("name", NAMES)
def test_random_damage_never_ends_in_a_traceback(tmp_path: Path, name: str) -> None:
    import random

    write_snapshot(tmp_path / name, FACTS, **everything())
    file = (
        tmp_path / name
        if (tmp_path / name).is_file()
        else tmp_path / name / "datasets-00000.parquet"
    )
    whole = file.read_bytes()
    for seed in range(60):
        dice = random.Random(seed)
        data = bytearray(whole)
        for _ in range(dice.randint(1, 5)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        file.write_bytes(bytes(data))
        found = list(validate(tmp_path / name))
        assert all(isinstance(problem, SnapshotProblem) for problem in found)
        try:
            content(tmp_path / name)
        except LumosError:
            assert found


@pytest.mark.parametrize("name", NAMES)
def test_a_list_under_a_wrong_name_is_reported(tmp_path: Path, name: str) -> None:
    file = written(tmp_path, name)
    header = file if file.is_file() else file / "manifest.json"
    if name == "estate.jsonl.zst":
        with pa.CompressedInputStream(pa.OSFile(str(file)), "zstd") as stream:
            text = stream.read().decode()
        with pa.CompressedOutputStream(pa.OSFile(str(file), "wb"), "zstd") as stream:
            stream.write(text.replace('"format":', '"dataset":[],"format":', 1).encode())
    elif name == "estate.yaml":
        header.write_text("dataset: []\n" + header.read_text())
    else:
        header.write_text(header.read_text().replace("{", '{"dataset":[],', 1))
    (problem,) = validate(file)
    assert (problem.code, problem.path, problem.severity) == ("unknown_key", "dataset", "warning")


@pytest.mark.parametrize(
    ("aspect", "part", "path"),
    [
        ("properties", {"a": "b", "c d": 7}, ".properties.c d"),
        ("quality", {"dimensions": {"x": 0.5, "y": "high"}}, ".quality.dimensions.y"),
        ("cost", {"currency": "EUR", "period": "m", "own": {"a": 1, "b": None}}, ".cost.own.b"),
        (
            "statistics",
            {"columns": {"a": {}, "b": {"null_count": "x"}}},
            ".statistics.columns.b.null_count",
        ),
        ("statistics", {"columns": {"a": {}, "b": []}}, ".statistics.columns.b"),
    ],
)
def test_keys_of_free_maps_are_named(
    tmp_path: Path, aspect: str, part: dict[str, Any], path: str
) -> None:
    file = written(tmp_path, "estate.json")
    document = json.loads(file.read_text())
    document["datasets"][1][aspect] = part
    file.write_text(json.dumps(document))
    assert ("format", f"datasets[1]{path}") in problems(file)


@pytest.mark.parametrize("name", TEXTS)
def test_what_editors_do_to_text_is_no_damage(tmp_path: Path, name: str) -> None:
    file = written(tmp_path, name)
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    assert list(validate(file)) == []
    assert content(file) == content(written(tmp_path, "other.json"))
