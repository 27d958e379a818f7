"""lumos impact and lumos schema impact, from files of SQL to the answer."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from files import write_text
from impact.sample_inventory import FOLDER, load_sample_inventory
from lumos.store import Database, Store
from schema_histories import day, record

EVENTS = "lumos://bigquery/user_events"
FOUNDING = ("user_sessions", "user_features", "daily_users")
MADE = {
    "user_sessions": "account_id INT64\nplan STRING\nsession_no INT64\nstarted_at TIMESTAMPTZ(us)\n"
    "ended_at TIMESTAMPTZ(us)\nevents INT64",
    "reporting.daily_users": "day DATE\nuser_key STRING",
}


def urn_of(name: str) -> str:
    return f"lumos://bigquery/{name.replace('.', '/')}"


@pytest.fixture
def store(workplace: Path) -> Store:
    """The tables of the founding documents' example, as a scan would have found them."""
    made = Store.open(Database.sqlite(workplace / ".lumos/lumos.db"), create=True)
    tables = load_sample_inventory().tables
    for name in ("user_events", "user_accounts", "feature_store.user_features"):
        record(made, urn_of(name), str(tables[name].schema), day("2024-01-01"), format="table")
    for name, schema in MADE.items():
        record(made, urn_of(name), schema, day("2024-01-01"), format="table")
    return made


@pytest.fixture
def documented_example(store: Store, workplace: Path, lumos: Any) -> Store:
    """The same with the models that read them, taken in from their files."""
    (workplace / "models").mkdir()
    for name in FOUNDING:
        text = (FOLDER / "bigquery" / f"{name}.sql").read_text(encoding="utf-8")
        (workplace / "models" / f"{name}.sql").write_text(text, encoding="utf-8")
    taken = lumos("lineage", "ingest", "models", "--dialect", "bigquery")
    assert taken.code == 0, taken.err
    return store


@pytest.mark.usefixtures("documented_example")
def test_the_documented_example_is_reported_line_by_line(lumos: Any) -> None:
    result = lumos("impact", "user_events", "--change", "user_id: STRING -> INT64", "--json")
    assert (result.code, result.err) == (0, "")
    report = result.json
    assert report["change"] == {
        "urn": EVENTS, "path": "user_id", "kind": "type_changed", "before": "STRING",
        "after": "INT64",
    }  # fmt: skip
    rows = {row["urn"].removeprefix("lumos://bigquery/"): row for row in report["downstream"]}
    assert {
        name: (row["verdict"], row["owner"], row["distance"]) for name, row in rows.items()
    } == {
        "user_sessions": ("BREAKING", "analytics-team", 1),
        "feature_store/user_features": ("BREAKING", "ml-platform", 1),
        "reporting/daily_users": ("COMPATIBLE", "bi-team", 1),
    }
    first = {name: row["reasons"][0] for name, row in rows.items()}
    assert first["user_sessions"]["text"] == "expects STRING user_id in JOIN"
    assert first["user_sessions"]["clause"] == "ON a.user_id = e.user_id"
    assert first["user_sessions"]["usage"] == "JOIN"
    assert (first["user_sessions"]["file"], first["user_sessions"]["line"]) == (
        "models/user_sessions.sql", 13,
    )  # fmt: skip
    features = first["feature_store/user_features"]["text"]
    assert features.startswith("type mismatch in pipeline")
    assert first["reporting/daily_users"]["text"] == "casts user_id to STRING anyway"
    assert report["recommendations"] == [
        "Notify analytics-team and ml-platform before deploying",
        "Consider backward-compatible approach: add new column first",
        "Update 2 downstream pipelines before schema change",
    ]
    assert report["coverage"] == 1.0
    assert report["summary"] == {
        "datasets": 3, "consumers": 0, "affected": 3, "breaking": 2, "undetermined": 0,
        "compatible": 1,
    }  # fmt: skip


@pytest.mark.usefixtures("documented_example")
def test_the_text_has_the_worst_first_by_owner(lumos: Any) -> None:
    result = lumos("impact", "user_events", "--change", "user_id: STRING -> INT64")
    lines = [line.strip() for line in result.out.splitlines()]
    assert lines[0] == (
        "Changing user_id of user_events from STRING to INT64: of 3 downstream datasets, 2 break and "
        "1 is compatible."
    )
    owners = [line for line in lines if line in ("analytics-team", "ml-platform", "bi-team")]
    assert owners == ["analytics-team", "ml-platform", "bi-team"]
    assert "expects STRING user_id in JOIN, models/user_sessions.sql:13" in lines
    assert "1. Notify analytics-team and ml-platform before deploying" in lines
    assert "\x1b" not in result.out


@pytest.mark.usefixtures("documented_example")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--drop", "user_id", "--exit-code"), 10),
        (("--drop", "user_id"), 0),
        (("--drop", "page_url", "--exit-code", "--strict"), 0),
        (("--drop", "usr_id", "--exit-code"), 2),
    ],
)
def test_the_exit_code_says_whether_anything_breaks(
    lumos: Any, words: tuple[str, ...], code: int
) -> None:
    assert lumos("impact", "user_events", *words).code == code


@pytest.mark.usefixtures("store")
def test_without_lineage_strict_does_not_call_it_safe(lumos: Any) -> None:
    words = ("impact", "user_events", "--drop", "user_id", "--exit-code")
    result = lumos(*words)
    assert result.code == 0
    assert "no lineage of user_events is known" in result.err
    assert lumos(*words, "--strict").code == 11


@pytest.mark.usefixtures("documented_example")
def test_an_unknown_column_and_a_wrong_before_are_answered_in_one_sentence(lumos: Any) -> None:
    result = lumos("impact", "user_events", "--change", "usr_id: STRING -> INT64")
    assert (result.code, result.out) == (2, "")
    assert "Did you mean 'user_id'?" in result.err
    result = lumos("impact", "user_events", "--change", "user_id: INT32 -> INT64")
    assert "user_id of user_events is STRING NOT NULL, not INT32" in result.err


@pytest.mark.usefixtures("documented_example")
def test_files_are_written_in_the_form_of_their_ending(lumos: Any, workplace: Path) -> None:
    words = ("impact", "user_events", "--change", "user_id: INT64", "-o")
    for name in ("impact.md", "impact.html", "impact.json", "impact.dot", "impact.mmd", "i.txt"):
        result = lumos(*words, name)
        assert (result.code, result.out) == (0, "")
        assert f"Wrote {name}." in result.err
    assert (workplace / "impact.md").read_text().startswith("### Changing user_id of ")
    page = (workplace / "impact.html").read_text()
    assert "<!doctype html>" in page
    data = json.loads(re.search(r'id="picture">(.*)</script>', page)[1])  # type: ignore[index]
    [broken] = [box["impact"] for box in data["boxes"] if box["name"] == "user_sessions"]
    assert broken["verdict"] == "breaking"
    assert broken["reasons"][0]["where"] == "models/user_sessions.sql:13"
    assert "user_id" in broken["reasons"][0]["clause"]
    assert any("before deploying" in each for each in broken["recommendations"])
    assert json.loads((workplace / "impact.json").read_text())["format_version"] == "1.0"
    assert 'color="#c0392b"' in (workplace / "impact.dot").read_text()
    assert "linkStyle" in (workplace / "impact.mmd").read_text()
    assert "Recommendations" in (workplace / "i.txt").read_text()
    assert "Unknown format of impact.xyz" in lumos(*words, "impact.xyz").err
    assert "contradict" in lumos(*words, "i.md", "--json", "--format", "markdown").err


@pytest.mark.usefixtures("documented_example")
def test_the_changes_of_a_pull_request_are_judged(lumos: Any, workplace: Path) -> None:
    assert lumos("schema", "export", "schemas").code == 0
    (file,) = (workplace / "schemas").rglob("user_events.schema")
    write_text(workplace / "old.schema", file.read_text().splitlines())
    changed = file.read_text().replace("user_id STRING", "user_id INT64")
    write_text(workplace / "new.schema", changed.splitlines())
    lumos("schema", "diff", "old.schema", "new.schema", "--output", "schema_diff.json")
    result = lumos("schema", "impact", "--changes", "schema_diff.json", "--exit-code")
    assert result.code == 10
    assert result.out.startswith("This changes 1 schema, affecting 3 downstream datasets.")
    assert "expects STRING user_id in JOIN, models/user_sessions.sql:13" in result.words
    # The file that `schema diff --base` writes needs no name.
    report = lumos("schema", "impact", "--json").json
    assert report["summary"]["breaking"] == 2
    assert [each["change"]["urn"] for each in report["datasets"]] == [EVENTS]
