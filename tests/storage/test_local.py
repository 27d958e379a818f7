"""Local files: listing, selection, ranged reads."""

import os
from pathlib import Path

import pytest

from lumos.storage import (
    FileSelection,
    KeyRange,
    ListedFile,
    ListingProblem,
    LocalStorage,
    TableRoot,
)


def names(root: Path) -> set[str]:
    found = LocalStorage().walk(KeyRange(str(root)))
    return {
        listing.path.removeprefix(f"{root}/")
        for listing in found
        if not isinstance(listing, TableRoot)
    }


def test_markers_scratch_space_and_hidden_files_are_not_listed(tmp_path: Path) -> None:
    for name in ("a.csv", "sub/b.csv", "_SUCCESS", ".a.csv.crc", "_temporary/0/c.csv", ".x/d.csv",
                 "_year=2024/e.csv"):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert names(tmp_path) == {"a.csv", "sub/b.csv", "_year=2024/e.csv"}


def test_a_loop_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "link.csv").symlink_to(tmp_path / "a.csv")
    (tmp_path / "dangling.csv").symlink_to(tmp_path / "nowhere")
    assert names(tmp_path) == {"a.csv", "link.csv"}


def test_a_name_that_is_not_utf8_is_reported(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/\xff.csv", "wb"):
        pass
    (listing,) = LocalStorage().walk(KeyRange(str(tmp_path)))
    assert isinstance(listing, ListingProblem)
    assert listing.code == "bad_name"
    assert listing.path.endswith("\\xff.csv")


def test_a_folder_whose_name_is_not_valid_utf8_is_reported_and_not_entered(tmp_path: Path) -> None:
    bad = os.fsencode(tmp_path) + b"/bad\xff"
    os.makedirs(bad + b"/below")
    with open(bad + b"/below/x.csv", "wb") as file:
        file.write(b"a\n1\n")
    (tmp_path / "good").mkdir()
    met, stretches = LocalStorage().split(str(tmp_path), parts=8)
    assert [each.code for each in met] == ["bad_name"]
    assert "bad\\xff" in met[0].path
    assert all("bad" not in each.folder for each in stretches)


def test_a_folder_that_must_not_be_listed_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: str) -> object:
        raise PermissionError(13, "Permission denied", folder)

    # Tests may run as root, whom no permission stops.
    monkeypatch.setattr("lumos.storage.local.os.scandir", refuse)
    (listing,) = LocalStorage().walk(KeyRange(str(tmp_path)))
    assert isinstance(listing, ListingProblem)
    assert listing.code == "permission_denied"


def test_splitting_and_walking_together_see_every_file_once(tmp_path: Path) -> None:
    for folder in range(5):
        for file in range(3):
            path = tmp_path / f"{folder}" / "deep" / f"{file}.csv"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    (tmp_path / "top.csv").touch()
    for parts in (1, 2, 4, 100):
        met, stretches = LocalStorage().split(str(tmp_path), parts=parts)
        below = [listing for stretch in stretches for listing in LocalStorage().walk(stretch)]
        paths = [listing.path for listing in [*met, *below]]
        assert len(paths) == len(set(paths)) == 16


def test_a_shallow_listing_leaves_out_what_lies_in_folders_below(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "a.csv").touch()
    (tmp_path / "top.csv").touch()
    met, stretches = LocalStorage().split(str(tmp_path), parts=8, deep=False)
    assert (met, stretches) == ([], [KeyRange(str(tmp_path), deep=False)])
    assert [each.path for each in LocalStorage().walk(stretches[0])] == [f"{tmp_path}/top.csv"]


def test_a_crowded_folder_at_the_top_is_left_to_a_task(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    for number in range(1001):
        (tmp_path / f"{number}.csv").touch()
    met, stretches = LocalStorage().split(str(tmp_path), parts=8)
    assert met == []
    assert sum(1 for stretch in stretches for _ in LocalStorage().walk(stretch)) == 1001


def test_a_single_file_is_a_root_too(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a\n")
    met, stretches = LocalStorage().split(str(file), parts=8)
    assert stretches == []
    assert isinstance(met[0], ListedFile)
    assert (met[0].path, met[0].size) == (str(file), 2)


def test_reads_past_the_end_give_what_there_is(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b"0123456789")
    with LocalStorage().open(str(file)) as opened:
        assert (opened.size, opened.head(3), opened.tail(3)) == (10, b"012", b"789")
        assert opened.head(99) == opened.tail(99) == b"0123456789"


@pytest.mark.parametrize(
    ("path", "chosen"),
    [
        ("/lake/raw/a.csv", True),
        ("/lake/raw/a.json", False),
        ("/lake/tmp/a.csv", False),
        ("/lake/raw/draft_a.csv", False),
    ],
)
def test_a_selection_follows_patterns_and_exclusions(path: str, chosen: bool) -> None:
    selection = FileSelection("/lake", ("*.csv", "*.parquet"), ("/tmp/*", "draft_*"))
    assert (path in selection) is chosen
