"""lumos hint on the command line."""

from pathlib import Path
from typing import Any

import pytest

from files import write_text

pytestmark = pytest.mark.usefixtures("lake")


@pytest.fixture
def lake(workplace: Path) -> Path:
    for app in ("web", "pos"):
        write_text(workplace / f"lake/raw/{app}_log/x.csv", [f"id,{app}_x", "1,2"])
    write_text(workplace / "lumos.yaml", ["# mine", "sources:", "  - type: file", "    path: lake"])
    return workplace / "lake"


def test_a_hint_from_first_to_last(lumos: Any) -> None:
    text = Path("lumos.yaml").read_bytes()
    assert lumos("hint", "list").out == "No hints. Add one with: lumos hint add PATTERN\n"
    trial = lumos("hint", "add", "lake/raw/*_log/**", "--name", "logs", "--dry-run")
    assert trial.out.splitlines() == [
        "Would add to lumos.yaml:6: join raw/*_log/** as logs",
        f"The effect is unknown before the first scan of {Path.cwd()}/lake.",
    ]
    added = lumos("hint", "add", "lake/raw/*_log/**", "--name", "logs")
    assert added.out.startswith("Added to lumos.yaml:6: join raw/*_log/** as logs\n")
    assert added.out.endswith("Run `lumos ingest` to apply it.\n")
    again = lumos("hint", "add", "lake/raw/*_log/**", "--name", "logs")
    assert (again.code, again.out) == (
        0,
        "Nothing to do: lumos.yaml:6 already has hint 1: join raw/*_log/** as logs\n",
    )
    lumos("hint", "add", "lake/exports/*", "--split", "--in-store")
    assert lumos("hint", "list").words == (
        "NO PATTERN NAME ACTION STORED IN FILES "
        "1 raw/*_log/** logs join lumos.yaml:6 ? "
        f"2 {Path.cwd()}/lake/exports/* - split store ?"
    )
    assert lumos("hint", "remove", "2").out.startswith("Removed from store: split ")
    assert lumos("hint", "remove", "raw/*_log/**").out.startswith("Removed from lumos.yaml:6")
    assert Path("lumos.yaml").read_bytes() == text


@pytest.mark.usefixtures("spark")
def test_the_effect_on_the_last_scan_is_shown(lumos: Any) -> None:
    assert lumos("ingest").code == 0
    trial = lumos("hint", "add", "lake/raw/*_log/**", "--name", "logs", "--dry-run")
    assert [line for line in trial.out.splitlines() if not line.startswith("Effect")] == [
        "Would add to lumos.yaml:6: join raw/*_log/** as logs",
        "  joined: 2 datasets -> 1 dataset",
        "    - pos_log/x.csv  1 file",
        "    - web_log/x.csv  1 file",
        "    + logs  2 files",
    ]
    report = lumos("hint", "add", "lake/nothing", "--json").json
    assert (report["change"], report["hint"]["files"]) == ("added", 0)
    assert report["warnings"] == ["No file of the last scan matches the hint."]
    (hint,) = lumos("hint", "list", "--json").json["hints"]
    assert (hint["number"], hint["patterns"], hint["action"]) == (1, ["nothing"], "join")
    assert (hint["kept_in"], hint["line"]) == ("config", 6)
    removed = lumos("hint", "remove", "1", "--dry-run", "--json").json
    assert (removed["change"], removed["dry_run"]) == ("removed", True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("add", "lake/{x"), "braces must contain a name"),
        (("add", "elsewhere/**"), "is not in a known root"),
        (("add", "lake/a", "lake/b"), "put it in quotes"),
        (("remove", "3"), "lumos hint list"),
    ],
)
def test_misuse_is_one_sentence_and_exit_code_2(
    lumos: Any, words: tuple[str, ...], message: str
) -> None:
    done = lumos("hint", *words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_a_read_only_file_is_an_error_with_a_way_out(lumos: Any) -> None:
    Path("lumos.yaml").chmod(0o444)
    done = lumos("hint", "add", "lake/raw/**")
    assert done.code == 1
    assert "lumos.yaml is read-only. Make it writable, or keep the hint in the store" in done.err
    assert lumos("hint", "add", "lake/raw/**", "--in-store").code == 0


def test_help_has_examples(lumos: Any) -> None:
    assert "lumos hint add raw/orders_v1 --name orders" in lumos("hint", "add", "--help").words
