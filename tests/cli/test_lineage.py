"""lumos lineage ingest, add and remove on the command line."""

from pathlib import Path
from typing import Any

import pytest

from lumos import Lumos
from recorded_lake import RecordedLake


@pytest.fixture
def models(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a lake in the store and SQL that reads it."""
    monkeypatch.chdir(workplace)
    seen = RecordedLake(Lumos())
    seen.see("raw/orders", "id INT64\namount FLOAT64\ncountry STRING")
    folder = workplace / "models"
    folder.mkdir()
    (folder / "totals.sql").write_text(
        "-- Owner: sales-team\nselect country, sum(amount) as total from raw.orders group by country\n"
    )
    (folder / "broken.sql").write_text("select from where;\n")
    (folder / "notes.txt").write_text("hello")
    return folder


@pytest.mark.usefixtures("models")
def test_an_ingest_reports_which_names_were_resolved_and_how(lumos: Any) -> None:
    done = lumos("lineage", "ingest", "models")
    assert done.code == 0
    assert "sql:models/totals.sql 1 1 0 0 100 % query, read as table totals" in done.words
    assert "raw.orders name orders" in done.words
    assert "models.totals assumed totals" in done.words
    assert "67 % of output columns resolved (2 of 3)." in done.out
    assert "1 edge: 1 new, 0 changed, 0 unchanged, 0 removed" in done.words
    assert "problem  models/broken.sql:1: " in done.err
    assert "models/notes.txt" in done.err


@pytest.mark.usefixtures("models")
def test_json_has_everything(lumos: Any) -> None:
    lumos("lineage", "ingest", "models", "--json")
    done = lumos("lineage", "ingest", "models", "--json").json
    assert done["format_version"] == "1.0"
    assert done["edges"] == {"added": 0, "changed": 0, "removed": 0, "unchanged": 1}
    assert done["coverage"] == {
        "columns": 3, "resolved": 2, "share": 0.6667, "tables": 1, "tables_found": 1,
    }  # fmt: skip
    assert done["not_found"] == []
    assert {each["name"]: each["way"] for each in done["tables"]} == {
        "raw.orders": "name",
        "models.totals": "assumed",
    }
    assert [(each["place"], each["line"]) for each in done["problems"]] == [
        ("models/broken.sql", 1)
    ]
    assert done["unrecognised"] == ["models/notes.txt"]


def test_tables_that_are_not_found_are_reported_with_the_nearest_name(
    lumos: Any, models: Path
) -> None:
    (models / "broken.sql").write_text("select id from raw.orderz")
    done = lumos("lineage", "ingest", "models")
    assert "raw.orderz not found orderz" in done.words
    assert "models.broken assumed broken" in done.words
    assert (
        "1 of 2 tables that the files read was not found: raw.orderz (nearest: raw.orders). "
        "Scan them with: lumos ingest PATH, or map them to datasets under sql_names in lumos.yaml"
        in done.words
    )
    tables = " cross join ".join(f"source_{number}" for number in range(8))
    (models / "broken.sql").write_text(f"select source_1.id from {tables}")
    done = lumos("lineage", "ingest", "models")
    assert "8 of 9 tables that the files read were not found: source_0, source_1, " in done.words
    assert "source_4 and 3 more; --json lists all." in done.words
    found = lumos("lineage", "ingest", "models", "--json").json
    assert len(found["not_found"]) == 8
    assert (found["coverage"]["tables"], found["coverage"]["tables_found"]) == (9, 1)


def test_a_column_that_its_table_lacks_is_not_resolved(lumos: Any, models: Path) -> None:
    (models / "broken.sql").write_text("select id, sum(amuont) as total from raw.orders group by 1")
    done = lumos("lineage", "ingest", "models")
    assert "'amuont' is not among the known columns of raw.orders" in done.err
    assert "75 % of output columns resolved (3 of 4)." in done.words
    shown = lumos("lineage", "show", "broken", "--upstream")
    assert "orders" in shown.out


@pytest.mark.usefixtures("models")
def test_queries_are_named_after_their_paths_on_request(lumos: Any) -> None:
    done = lumos("lineage", "ingest", "models", "--name-from", "{schema}/{table}.sql")
    assert "query, read as table models.totals" in done.words


@pytest.mark.usefixtures("models")
def test_a_dry_run_says_that_nothing_was_written(lumos: Any) -> None:
    done = lumos("lineage", "ingest", "models", "--dry-run")
    assert (done.code, "Nothing was written." in done.out) == (0, True)
    assert lumos("lineage", "ingest", "models", "--json").json["edges"]["added"] == 1


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("models/notes.txt",), 1, "No file with lineage was found"),
        (("nowhere",), 2, "There is nothing at nowhere"),
        (("models", "--dialect", "klingon"), 2, "klingon"),
        (("models", "--name-from", "{folder}/*.sql"), 2, "such as {schema}/{table}/*.sql"),
        ((), 2, "Give the files or folders to read"),
    ],
)
@pytest.mark.usefixtures("models")
def test_what_cannot_be_read_has_its_exit_code(
    lumos: Any, words: tuple[str, ...], code: int, message: str
) -> None:
    done = lumos("lineage", "ingest", *words)
    assert (done.code, message in done.err) == (code, True)


def test_a_broken_declaration_fails_with_its_line(lumos: Any, models: Path) -> None:
    (models.parent / "edges.yaml").write_text("lineage:\n  - from: a\n    tpye: VIEW\n    to: b\n")
    done = lumos("lineage", "ingest", "edges.yaml")
    assert done.code == 1
    assert "problem  edges.yaml:3: " in done.err
    assert "Did you mean 'type'?" in done.err


@pytest.mark.usefixtures("models")
def test_edges_by_hand_come_and_go(lumos: Any) -> None:
    words = ("raw/orders", "lumos://tableau/sales/weekly")
    columns = ("--column", "amount=revenue", "--type", "copied")
    done = lumos("lineage", "add", *words, *columns, "--allow-dangling")
    assert done.words == "added orders -> weekly"
    assert "remark   weekly is not in the store" in done.err
    assert lumos("lineage", "add", *words, "--column", "amount").code == 2
    assert lumos("lineage", "remove", *words).out.startswith("removed ")
    again = lumos("lineage", "remove", *words)
    assert (again.code, again.out.startswith("not there ")) == (1, True)


@pytest.mark.usefixtures("models")
def test_an_edge_by_hand_needs_datasets_that_are_known(lumos: Any) -> None:
    for words in (("ordrs", "lumos://tableau/sales/weekly"), ("raw/orders", "ordrs")):
        refused = lumos("lineage", "add", *words)
        assert refused.code == 2
        assert "No dataset ordrs in the store. Did you mean 'orders'?" in refused.err
        assert "record the edge anyway with --allow-dangling" in refused.err
    assert "--allow-dangling" in lumos("lineage", "add", "orders", "lumos://tableau/weekly").err
    lumos("lineage", "ingest", "models")
    assert lumos("lineage", "add", "totals", "orders").words == "added totals -> orders"


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize(("first", "second"), [("sql", "spark"), ("spark", "sql")])
def test_another_dialect_leaves_one_table_of_a_query(lumos: Any, first: str, second: str) -> None:
    dialects = {"sql": (), "spark": ("--dialect", "spark")}
    lumos("lineage", "ingest", "models", *dialects[first])
    again = lumos("lineage", "ingest", "models", *dialects[second])
    assert "models.totals assumed totals" in again.words
    shown = lumos("show", "totals", "--json").json
    assert shown["dataset"]["urn"] == f"lumos://{second}/models/totals"
    assert lumos("show", f"lumos://{first}/models/totals").code == 2


@pytest.mark.usefixtures("models")
def test_a_path_that_does_not_exist_suggests_the_nearest_one(lumos: Any) -> None:
    refused = lumos("lineage", "ingest", "modles")
    assert refused.code == 2
    assert "There is nothing at modles. Did you mean 'models'?" in refused.err


def test_reporters_that_cannot_be_found_are_named(lumos: Any, models: Path) -> None:
    lumos("lineage", "ingest", "models")
    for file in models.glob("*.sql"):
        file.unlink()
    held = lumos("lineage", "ingest", "models").err
    assert (
        "of these folders could not be found: sql:models/broken.sql, sql:models/totals.sql." in held
    )
    assert "--accept-removals" in held
