"""lumos usage on the command line."""

from pathlib import Path
from typing import Any

import pytest

from lumos.model.dataset import Reader, Usage
from usage.shop_logs import NOW, row, shop, urn, write_log


@pytest.fixture
def place(workplace: Path) -> Path:
    """A folder with a store of three tables, and a log of forty days."""
    (workplace / ".lumos").mkdir()
    shop(workplace / ".lumos")
    write_log(
        workplace / "history.csv",
        [
            row(
                1, "SELECT o.amount, c.name FROM orders o JOIN customers c ON o.customer_id = c.id"
            ),
            row(2, "SELECT id FROM orders WHERE amount > 7", user="BOB", days_ago=40),
            row(3, "SELECT x FROM nowhere.known"),
            row(4, "SELEC 'secret'"),
            row(5, "SELECT 1", EXECUTION_STATUS="FAIL"),
        ],
    )
    return workplace


def test_the_story_of_usage(place: Path, lumos: Any) -> None:
    result = lumos("usage", "ingest", place / "history.csv")
    assert result.code == 0
    assert "4 statements, 4 counted, 1 failed" in result.words
    assert "1 table in the logs matches no dataset: shop.nowhere.known (1)" in " ".join(
        result.err.split()
    )
    assert "secret" not in result.out + result.err
    shown = lumos("usage", "show", "orders")
    assert "2 reads, 2 readers" in shown.words
    assert "Unread columns: note" in shown.words
    unread = lumos("usage", "unread", "--since", "30d", "--columns")
    assert "refunds never" in unread.words
    assert "customers: 1 of 3 columns unread: phone" in unread.words
    assert "1 unread dataset, 2 read" in unread.words
    top = lumos("usage", "top", "--limit", 1)
    assert "orders 2 2 200 B 10" in top.words
    assert "2 datasets and 1 table that no scan has found were read since" in top.words
    assert "known (not scanned) 1 1" in lumos("usage", "top").words
    assert "history" in lumos("usage", "list").words
    removed = lumos("usage", "remove", "history").out
    assert removed == "Removed log:history with its reads of 3 datasets.\n"
    assert "No query logs yet" in lumos("usage", "top").words
    assert "Unknown: no query log" in lumos("usage", "show", "orders").words


def test_what_a_snapshot_reported_is_shown_as_such(place: Path, lumos: Any) -> None:
    result = Usage(readers=(Reader(name="bi", reads=7),), last_accessed=NOW)
    with shop(place / ".lumos")._store.open().transaction() as transaction:
        transaction.save_aspect(urn("sales/refunds"), "usage", result, writer="import", at=NOW)
    shown = lumos("usage", "show", "refunds").words
    covered = "From a snapshot; no query log covers this dataset."
    assert f"{covered} It was last read on {NOW:%F}" in shown
    assert "7 reads, 1 reader" in shown
    assert "DAY" not in shown


def test_skipped_rows_are_reported(place: Path, lumos: Any) -> None:
    lines = ["dataset,user,time,reads", f"orders,ann,{NOW:%F},0", f"orders,ann,{NOW:%F},x",
             "orders,ann,2099-01-01,1"]  # fmt: skip
    (place / "usage.csv").write_text("\n".join(lines))
    result = lumos("usage", "ingest", place / "usage.csv").words
    assert "1 dated in the future, 1 without a read, 1 with an invalid read count" in result


def test_all_of_it_as_json(place: Path, lumos: Any) -> None:
    report = lumos("usage", "ingest", place / "history.csv", "--name", "wh", "--json").json
    assert report["format_version"] == "1.0"
    assert report["logs"][0]["log"] == "log:wh"
    assert lumos("usage", "show", "orders", "--since", "7d", "--json").json["reads"] == 1
    assert [
        each["name"]
        for each in lumos("usage", "unread", "--since", "30d", "--json").json["datasets"]
    ] == ["refunds"]
    assert lumos("usage", "top", "--json").json["total"] == 3
    assert lumos("usage", "logs", "--json").json["logs"][0]["statements"] == 4


def test_unread_claims_nothing_without_a_log(place: Path, lumos: Any) -> None:  # noqa: ARG001
    result = lumos("usage", "unread")
    assert result.code == 0
    assert "0 unread datasets, 0 read" in result.words
    assert "remark   3 datasets in snowflake not judged: no log covers it" in result.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["missing.csv"], "There is nothing at missing.csv"),
        (["history.csv", "--columns", "user"], "is not a list of FIELD=COLUMN"),
        (["history.csv", "--columns", "who=USER_NAME"], "No field of a query log named 'who'"),
        (["history.csv", "--dialect", "klingon"], "No SQL dialect named 'klingon'"),
    ],
)
def test_misuse_is_one_sentence(place: Path, lumos: Any, words: list[str], sentence: str) -> None:  # noqa: ARG001
    result = lumos("usage", "ingest", *words)
    assert result.code == 2
    assert sentence in result.err
