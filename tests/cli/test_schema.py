"""lumos schema, in process."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from files import write_text
from lumos.store import Database, Store
from schema_histories import day, record

pytestmark = pytest.mark.usefixtures("workplace")

EVENTS = "lumos://s3/data-lake-prod/raw/user_events"
FIRST = "event_id STRING NOT NULL\nuser_id STRING\ntimestamp TIMESTAMP\nevent_type STRING"
SECOND = f"{FIRST}\nsession_id STRING"
THIRD = SECOND.replace("user_id STRING", "user_id INT64")

OLD = ["amount INT32", "discount DECIMAL(9,2)", "ratio INT32", "`odd [name]` STRING"]
NEW = ["amount INT64", "ratio FLOAT64", "`odd [name]` STRING COMMENT 'x'"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """The founding documents' example."""
    made = Store.open(Database.sqlite(tmp_path / ".lumos/lumos.db"), create=True)
    record(made, EVENTS, FIRST, day("2023-06-01"))
    record(made, EVENTS, SECOND, day("2023-09-15"))
    record(made, EVENTS, THIRD, day("2024-01-10"))
    return made


@pytest.fixture
def files(tmp_path: Path) -> None:
    write_text(tmp_path / "old.schema", OLD)
    write_text(tmp_path / "new.schema", NEW)


@pytest.mark.usefixtures("files")
def test_diff_prints_the_promised_json(lumos: Any) -> None:
    result = lumos("schema", "diff", "old.schema", "new.schema", "--json")
    assert (result.code, result.err) == (0, "")
    report = result.json
    assert set(report) == {"format_version", "datasets", "summary"}
    (dataset,) = report["datasets"]
    assert set(dataset) == {"urn", "from_version", "to_version", "changes"}
    assert [set(change) for change in dataset["changes"]] == [
        {"path", "kind", "before", "after", "consumer", "storage", "rule", "flags", "notes", "fingerprint"}
    ] * 4  # fmt: skip
    assert report["summary"] == {
        "datasets": 1, "changes": 4, "breaking": 1, "compatible": 1, "informational": 1,
        "undetermined": 1,
    }  # fmt: skip
    assert dataset["changes"][0]["path"] == "discount"


@pytest.mark.usefixtures("files")
def test_diff_shows_old_and_new_side_by_side_breaking_first(lumos: Any) -> None:
    out = lumos("schema", "diff", "old.schema", "new.schema").out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0] == "lumos://schema/new"
    assert lines[1] == "removed discount DECIMAL(9,2) BREAKING"
    assert "changed ratio INT32 -> FLOAT64 undetermined" in lines
    assert "safe in Avro, Delta, Spark, breaks Iceberg v2" in lines
    assert "changed amount INT32 -> INT64 compatible" in lines
    assert "comment `odd [name]` x informational" in lines
    assert lines[-1] == "4 changes in 1 dataset, 1 breaking, 1 undetermined."
    assert lumos("schema", "diff", "old.schema", "old.schema").out == "Nothing differs.\n"


def test_a_rename_is_suggested_and_new_required_fields_are_told_for_old_data(
    lumos: Any, tmp_path: Path
) -> None:
    write_text(tmp_path / "old.schema", ["id INT64", "mail STRING"])
    write_text(tmp_path / "new.schema", ["id INT64", "email STRING", "must DATE NOT NULL"])
    words = lumos("schema", "diff", "old.schema", "new.schema").words
    assert "perhaps renamed to email (same position)" in words
    assert "added must DATE NOT NULL compatible, old data BREAKING" in words


@pytest.mark.parametrize(
    ("before", "after", "options", "code"),
    [
        ("a INT32", "a STRING", (), 0),
        ("a INT32", "a STRING", ("--exit-code",), 10),
        ("a INT32", "a STRING", ("--exit-code", "--json"), 10),
        ("a INT32", "a FLOAT64", ("--exit-code",), 0),
        ("a INT32", "a FLOAT64", ("--exit-code", "--strict"), 11),
        ("a INT32", "a FLOAT64", ("--strict",), 0),
        ("a INT32\nb DATE", "a FLOAT64", ("--exit-code", "--strict"), 10),
        ("a INT32", "a INT64", ("--exit-code", "--strict"), 0),
        ("a INT32", "a INT32", ("--exit-code", "--strict"), 0),
    ],
)
def test_the_exit_code_tells_only_when_asked(
    lumos: Any, tmp_path: Path, before: str, after: str, options: tuple[str, ...], code: int
) -> None:
    write_text(tmp_path / "old.schema", [before])
    write_text(tmp_path / "new.schema", [after])
    assert lumos("schema", "diff", "old.schema", "new.schema", *options).code == code


@pytest.mark.usefixtures("files")
def test_the_report_is_written_where_it_is_wanted(lumos: Any, tmp_path: Path) -> None:
    lumos("schema", "diff", "old.schema", "new.schema")
    assert not (tmp_path / "schema_diff.json").exists()
    result = lumos("schema", "diff", "old.schema", "new.schema", "--json", "--output", "out/d.json")
    assert json.loads((tmp_path / "out/d.json").read_text()) == result.json


def git(*words: str) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *words], check=True, capture_output=True)


def test_the_workflow_of_the_founding_documents(lumos: Any, tmp_path: Path, store: Store) -> None:
    git("init", "--quiet", "--initial-branch", "main")
    written = lumos("schema", "export", "schemas")
    assert "1 dataset in schemas: 1 file written, 0 removed." in written.out
    git("add", "schemas")
    git("commit", "--quiet", "--message", "schemas")
    git("switch", "--quiet", "--create", "feature")
    record(store, EVENTS, FIRST, day("2024-02-01"))
    assert lumos("schema", "export", "schemas", "--json").json["written"] == [
        "s3/data-lake-prod/raw/user_events.schema"
    ]
    git("commit", "--quiet", "--all", "--message", "less")
    result = lumos("schema", "diff", "--base", "main", "--head", "feature")
    assert result.code == 0
    assert f"{EVENTS} 2.0.0 -> 3.0.0" in result.words
    report = json.loads((tmp_path / "schema_diff.json").read_text())
    assert report["summary"]["breaking"] == 2
    gated = lumos("schema", "diff", "--base", "main", "--dir", "schemas/", "--exit-code", "--json")
    assert (gated.code, gated.json) == (10, report)


@pytest.mark.usefixtures("store")
def test_history_is_told_newest_first(lumos: Any) -> None:
    report = lumos("schema", "history", "user_events", "--json").json
    assert [each["schema_version"] for each in report["versions"]] == ["2.0.0", "1.1.0", "1.0.0"]
    assert set(report["versions"][0]) == {
        "schema_version", "cloud_version", "timestamp", "recorded_at", "event", "cause", "author",
        "source", "summary", "breaking", "fingerprint", "changes", "affected_downstream",
        "breaking_change_alert", "schema",
    }  # fmt: skip
    assert report["versions"][0]["timestamp"] == "2024-01-10T12:00:00Z"
    result = lumos("schema", "history", "user_events")
    assert "changed user_id STRING -> INT64 BREAKING" in result.words
    assert "added session_id STRING compatible" in result.words
    assert "4 fields" in result.words
    assert lumos("history", "user_events").out == result.out
    assert (
        lumos("history", "user_events", "--as-of", "2023-12-24", "--json").json["versions"]
        == (report["versions"][1:])
    )


@pytest.mark.usefixtures("store")
def test_the_timeline_and_the_evolution_are_told(lumos: Any) -> None:
    result = lumos("schema", "timeline", "user_events")
    assert "1.1.0 S-2 2023-09-15 12:00:00 5 +1" in result.words
    assert "2.0.0 S-3 2024-01-10 12:00:00 5 ~1 BREAKING" in result.words
    report = lumos("schema", "timeline", EVENTS, "--json").json
    assert [each["field_count"] for each in report["versions"]] == [4, 5, 5]
    result = lumos("schema", "evolution", "--until", "2024-01-10")
    assert "user_events 3 2 1 0.01" in result.words
    assert "3 versions of 1 dataset, 2 changes, 1 breaking." in result.words
    report = lumos("schema", "evolution", "user_events", "--since", "2023-07-01", "--json").json
    assert set(report) == {"format_version", "period_start", "period_end", "datasets", "summary"}
    assert report["datasets"][0]["total_versions"] == 2


@pytest.mark.usefixtures("store")
def test_two_versions_are_compared(lumos: Any) -> None:
    result = lumos("schema", "diff", "user_events@1.0.0", "user_events@S-3", "--exit-code")
    assert result.code == 10
    assert f"{EVENTS} 1.0.0 -> 2.0.0" in result.words
    assert "2 changes in 1 dataset, 1 breaking." in result.words


@pytest.mark.usefixtures("store")
def test_predict_says_what_would_break(lumos: Any, tmp_path: Path) -> None:
    properties = {"event_id": {"type": "string"}, "user_id": {"type": "string"}}
    (tmp_path / "p.json").write_text(
        json.dumps({"properties": properties, "required": ["event_id"]})
    )
    result = lumos("schema", "predict", "user_events", "p.json", "--exit-code")
    assert result.code == 10
    assert "changed user_id INT64 -> STRING BREAKING" in result.words
    assert "4 changes in 1 dataset, 4 breaking." in result.words
    report = lumos("schema", "predict", "user_events", "p.json", "--json").json
    assert report["proposed"] == {"file": "p.json", "kind": "json-schema"}
    assert set(report) == {"format_version", "datasets", "summary", "proposed", "remarks"}
    write_text(tmp_path / "p.txt", ["models: [{name: m, columns: [{name: event_id}]}]"])
    result = lumos("schema", "predict", "user_events", "p.txt", "--as", "dbt", "--model", "m")
    assert "remark contract" in result.err.replace("the ", "").replace("   ", " ")


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("diff", "a.schema"), 2, "give A and B, or --base and --head"),
        (("diff", "a.schema", "a.schema", "--base", "x"), 2, "not both"),
        (("diff", "--base", "x"), 2, "is not inside a git repository"),
        (("diff", "--base=--output=x", "--head", "-x"), 2, "is not inside a git repository"),
        (("diff", "a.schema", "b.schema"), 2, "There is no file b.schema."),
        (("diff", "a.schema", "bad.schema"), 2, "bad.schema:1:2: "),
        (("diff", "a.schema", "deep.schema"), 2, "deep.schema:1:603: a type nests deeper than 100 levels."),
        (("diff", "a.schema", "user_events@9.9.9"), 2, "Its versions: 1.0.0, 1.1.0, 2.0.0."),
        (("diff", "a.schema", "users"), 2, "No dataset users in the store."),
        (("history", "users"), 2, "No dataset users in the store."),
        (("history", "user_events", "--as-of", "never"), 2, "'never' is no time."),
        (("evolution", "--since", "x"), 2, "'x' is no time."),
        (("predict", "user_events", "deep.json"), 2, "deep.json: this JSON nests too deeply"),
        (("predict", "user_events", "none.sql"), 2, "none.sql: there is no such file."),
        (("export", "a.schema"), 2, "a.schema is a file."),
        (("timeline", "user_events", "--store", "none.db"), 1, "There is no store at"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("store")
def test_wrong_use_gets_one_sentence_and_the_right_code(
    lumos: Any, tmp_path: Path, words: tuple[str, ...], code: int, sentence: str
) -> None:
    write_text(tmp_path / "a.schema", ["a INT32"])
    write_text(tmp_path / "bad.schema", ["a?"])
    write_text(tmp_path / "deep.schema", ["a " + "ARRAY<" * 20_000])
    write_text(tmp_path / "deep.json", ['{"type":' * 50_000])
    before = sorted(tmp_path.rglob("*"))
    result = lumos("schema", *words)
    assert (result.code, result.out) == (code, "")
    assert sentence in " ".join(result.err.replace("│", " ").split())
    assert "Traceback" not in result.err
    assert sorted(tmp_path.rglob("*")) == before
