"""The folder that readers of tables are given."""

from pathlib import Path

import pytest

from lumos.discovery.lake import table_folder
from lumos.discovery.lake.table_folder import StoredTableFolder
from lumos.storage.local import LocalStorage


def test_a_file_of_a_log_that_is_too_long_is_refused_by_its_listing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_folder, "MAX_FILE_BYTES", 10)
    for name, length in (("a", 10), ("b", 11), ("c", 1)):
        (tmp_path / f"log/{name}").parent.mkdir(exist_ok=True)
        (tmp_path / f"log/{name}").write_bytes(b"x" * length)
    folder = StoredTableFolder(LocalStorage(), str(tmp_path))
    assert [entry.name for entry in folder.entries("log")] == ["a", "b", "c"]
    first, refused, last = folder.read_many(["log/a", "log/b", "log/c"])
    assert (first, last) == (b"x" * 10, b"x")
    assert isinstance(refused, OSError)
    with pytest.raises(OSError, match="longer than"):
        folder.read("log/b")
