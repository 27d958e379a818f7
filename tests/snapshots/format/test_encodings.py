"""Every encoding gives back what was put into it, as the same bytes each time."""

import hashlib
import random
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from lumos.model.catalog import CatalogEntry
from lumos.snapshots.format.errors import SnapshotError, UnknownEncoding
from lumos.snapshots.format.reader import open_snapshot
from lumos.snapshots.format.writer import write_snapshot
from snapshots.sample_inventories import FACTS, customers, everything, many

NAMES = ("estate.json", "estate.yaml", "estate.jsonl", "estate.jsonl.zst", "estate.parquet")


def content(path: Path) -> dict[str, list[object]]:
    """All that a snapshot holds, by kind."""
    with open_snapshot(path) as snapshot:
        return {
            "datasets": list(snapshot.datasets()),
            "glossary": list(snapshot.terms()),
            "users": list(snapshot.users()),
            "groups": list(snapshot.groups()),
            "jobs": list(snapshot.jobs()),
            "others": list(snapshot.others()),
        }


def all_bytes(path: Path) -> dict[str, bytes]:
    """The bytes of a file, or of all files in a folder."""
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    return {file.name: file.read_bytes() for file in files}


@pytest.mark.parametrize("name", NAMES)
def test_everything_comes_back_as_it_was(tmp_path: Path, name: str) -> None:
    given = everything()
    header = write_snapshot(tmp_path / name, FACTS, **given)
    found = content(tmp_path / name)
    for kind, values in given.items():
        key = "urn" if kind in ("datasets", "jobs", "others") else "name"
        assert found[kind] == sorted(values, key=lambda value: getattr(value, key))
    with open_snapshot(tmp_path / name) as snapshot:
        assert snapshot.header == header
        assert snapshot.header.facts == FACTS


@pytest.mark.parametrize("name", NAMES)
def test_the_same_state_gives_the_same_bytes_in_whatever_order_it_comes(
    tmp_path: Path, name: str
) -> None:
    entries = list(many(50))
    write_snapshot(tmp_path / "a" / name, FACTS, entries)
    random.Random(1).shuffle(entries)
    write_snapshot(tmp_path / "b" / name, FACTS, entries)
    assert all_bytes(tmp_path / "a" / name) == all_bytes(tmp_path / "b" / name)


@pytest.mark.parametrize("name", NAMES)
def test_only_the_time_of_the_export_differs_between_two_exports(tmp_path: Path, name: str) -> None:
    later = msgspec.structs.replace(FACTS, exported_at=FACTS.exported_at + timedelta(days=1))
    first = write_snapshot(tmp_path / "a" / name, FACTS, **everything())
    second = write_snapshot(tmp_path / "b" / name, later, **everything())
    assert first.hashes == second.hashes
    assert content(tmp_path / "a" / name) == content(tmp_path / "b" / name)


def test_hashes_are_the_same_in_every_encoding(tmp_path: Path) -> None:
    headers = [write_snapshot(tmp_path / name, FACTS, **everything()) for name in NAMES]
    assert len({header.hashes for header in headers}) == 1


def test_a_dataset_need_not_be_an_entry(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "a.json", FACTS, [customers().dataset])
    assert content(tmp_path / "a.json")["datasets"] == [CatalogEntry.of(customers().dataset)]


def test_the_content_hash_can_be_worked_out_by_anybody(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "a.jsonl", FACTS, many(1))
    line = (tmp_path / "a.jsonl").read_bytes().splitlines()[-1]
    body, _, content_hash = (
        line.removeprefix(b'{"dataset":').removesuffix(b"}").partition(b',"content_hash":')
    )
    assert hashlib.sha256(body + b"}").hexdigest() == msgspec.json.decode(
        content_hash.removesuffix(b"}")
    )


@pytest.mark.parametrize("name", ["estate.xml", "estate", "estate.json.gz"])
def test_an_ending_that_names_no_encoding_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnknownEncoding, match=r"\.jsonl\.zst"):
        write_snapshot(tmp_path / name, FACTS, ())


@pytest.mark.parametrize("name", NAMES)
def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, name: str) -> None:
    write_snapshot(tmp_path / name, FACTS, many(3))
    before = all_bytes(tmp_path / name)
    with pytest.raises(SnapshotError, match="given twice"):
        write_snapshot(tmp_path / name, FACTS, [*many(3), *many(1)])
    assert all_bytes(tmp_path / name) == before
    assert [each.name for each in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("foreign", "text", "is_snapshot"),
    [
        pytest.param("notes.txt", "mine", False, id="no snapshot"),
        pytest.param("notes.txt", "mine", True, id="beside a snapshot"),
        pytest.param("manifest.json", '{"name": "an extension"}', False, id="another's manifest"),
        pytest.param("datasets-00007.parquet", "mine", True, id="not named by the manifest"),
    ],
)
def test_a_folder_with_other_things_is_not_replaced(
    tmp_path: Path, foreign: str, text: str, is_snapshot: bool
) -> None:
    folder = tmp_path / "estate.parquet"
    if is_snapshot:
        write_snapshot(folder, FACTS, many(3))
    else:
        folder.mkdir()
    (folder / foreign).write_text(text)
    before = all_bytes(folder)
    with pytest.raises(SnapshotError, match="with other files"):
        write_snapshot(folder, FACTS, many(2))
    assert all_bytes(folder) == before


@pytest.mark.parametrize(
    ("name", "needless"),
    [("a.json", {"pyarrow", "yaml"}), ("a.jsonl", {"pyarrow", "yaml"}), ("a.yaml", {"pyarrow"})],
)
def test_an_encoding_loads_no_library_of_another(
    tmp_path: Path, name: str, needless: set[str]
) -> None:
    write_snapshot(tmp_path / name, FACTS, **everything())
    code = (
        "import sys\n"
        "from lumos.snapshots.format.validation import validate\n"
        "import lumos.snapshots.format.comparison, lumos.snapshots.format.writer\n"
        f"assert not list(validate({str(tmp_path / name)!r}))\n"
        "print(*{module.partition('.')[0] for module in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert needless.isdisjoint(done.stdout.split())
