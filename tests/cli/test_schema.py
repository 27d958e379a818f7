"""lumos schema, in process."""

import json
import os
import subprocess
import sys
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
    assert lines[0] == "new"
    assert lines[1] == "removed discount DECIMAL(9,2) BREAKING"
    assert "changed ratio INT32 -> FLOAT64 undetermined" in lines
    assert "safe in Avro, Delta, Spark, breaks Iceberg v2" in lines
    assert "changed amount INT32 -> INT64 compatible" in lines
    assert "comment `odd [name]` x informational" in lines
    assert lines[-1] == "4 changes in 1 dataset, 1 breaking, 1 undetermined."
    assert lumos("schema", "diff", "old.schema", "old.schema").out == "Nothing differs.\n"


def test_a_rename_is_suggested_and_new_required_fields_are_reported_for_old_data(
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
def test_breaking_changes_set_the_exit_code_only_on_request(
    lumos: Any, tmp_path: Path, before: str, after: str, options: tuple[str, ...], code: int
) -> None:
    write_text(tmp_path / "old.schema", [before])
    write_text(tmp_path / "new.schema", [after])
    assert lumos("schema", "diff", "old.schema", "new.schema", *options).code == code


@pytest.mark.usefixtures("files")
def test_the_report_is_written_where_it_is_wanted(lumos: Any, tmp_path: Path) -> None:
    lumos("schema", "diff", "old.schema", "new.schema")
    assert not (tmp_path / "schema_diff.json").exists()
    result = lumos("schema", "diff", "old.schema", "new.schema", "--json", "--output", "d.json")
    assert json.loads((tmp_path / "d.json").read_text()) == result.json


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
    assert "user_events 2.0.0 -> 3.0.0" in result.words
    report = json.loads((tmp_path / "schema_diff.json").read_text())
    assert report["summary"]["breaking"] == 2
    gated = lumos("schema", "diff", "--base", "main", "--dir", "schemas/", "--exit-code", "--json")
    assert (gated.code, gated.json) == (10, report)


@pytest.mark.usefixtures("store")
def test_history_is_listed_newest_first(lumos: Any) -> None:
    report = lumos("schema", "history", "user_events", "--json").json
    assert [each["schema_version"] for each in report["versions"]] == ["2.0.0", "1.1.0", "1.0.0"]
    assert set(report["versions"][0]) == {
        "schema_version", "cloud_version", "timestamp", "recorded_at", "event", "cause", "author",
        "source", "summary", "breaking", "fingerprint", "changes", "affected_downstream",
        "affected", "breaking_change_alert", "schema",
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
def test_the_timeline_and_the_evolution_are_reported(lumos: Any) -> None:
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
    assert "user_events 1.0.0 -> 2.0.0" in result.words
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
        (("diff", "a.schema"), 2, "Give A and B, or --base and --head"),
        (("diff", "a.schema", "a.schema", "--base", "x"), 2, "not both"),
        (("diff", "--base", "x"), 2, "is not inside a readable git repository"),
        (("diff", "--base=--output=x", "--head", "-x"), 2, "is not inside a readable git repository"),
        (("diff", "a.schema", "b.schema"), 2, "There is no file b.schema."),
        (("diff", "a.schema", "bad.schema"), 2, "bad.schema:1:2: "),
        (("diff", "a.schema", "deep.schema"), 2, "deep.schema:1:603: a type nests deeper than 100 levels."),
        (("diff", "a.schema", "user_events@9.9.9"), 2, "Its versions: 1.0.0, 1.1.0, 2.0.0."),
        (("diff", "a.schema", "users"), 2, "No dataset users in the store."),
        (("history", "users"), 2, "No dataset users in the store."),
        (("history", "user_events", "--as-of", "never"), 2, "'never' is not a time."),
        (("evolution", "--since", "x"), 2, "'x' is not a time."),
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


def test_the_dataset_with_the_worst_change_stands_first(lumos: Any, tmp_path: Path) -> None:
    for folder, type in (("d1", "INT32"), ("d2", "INT64")):
        write_text(tmp_path / folder / "a.schema", [f"a {type}"])
        write_text(tmp_path / folder / "b.schema", [f"a {type}"])
    write_text(tmp_path / "d1/b.schema", ["a STRING"])
    shown = lumos("schema", "diff", "d1", "d2").out
    assert shown.index("b\n") < shown.index("a\n")
    report = lumos("schema", "diff", "d1", "d2", "--json").json
    assert [each["urn"] for each in report["datasets"]] == ["lumos://schema/a", "lumos://schema/b"]


@pytest.mark.usefixtures("store")
def test_a_major_version_says_whether_it_is_undetermined(lumos: Any, tmp_path: Path) -> None:
    store = Store.open(Database.sqlite(tmp_path / ".lumos/lumos.db"))
    record(
        store,
        EVENTS,
        THIRD.replace("event_id STRING NOT NULL", "event_id STRING"),
        day("2024-02-01"),
    )
    timeline = lumos("schema", "timeline", "user_events")
    assert "3.0.0 S-4 2024-02-01 12:00:00 5 ~1 undetermined" in timeline.words
    last = lumos("schema", "timeline", "user_events", "--json").json["versions"][-1]
    assert (last["breaking"], last["verdict"]) == (False, "undetermined")
    assert (
        "SCHEMA_CHANGE undetermined Made event_id nullable"
        in lumos("version", "show", "user_events").words
    )


@pytest.mark.usefixtures("store")
def test_what_a_person_declared_to_break_shows_in_history_and_counts(lumos: Any) -> None:
    lumos("version", "bump", "user_events", "--type", "DATA_UPDATE", "--level", "major")
    assert "declared BREAKING" in lumos("schema", "history", "user_events").words
    report = lumos("schema", "evolution", "--json").json
    assert (report["summary"]["total_changes"], report["summary"]["breaking_changes"]) == (3, 2)
    assert report["summary"]["changes_by_kind"]["declared"] == 1


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    "words", [("", "new.schema"), ("old.schema", ""), ("--output", "", "a.schema", "b.schema")]
)
def test_empty_arguments_are_refused(lumos: Any, words: tuple[str, ...]) -> None:
    result = lumos("schema", "diff", *words)
    assert result.code == 2


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    "words",
    [("schema", "history", ""), ("schema", "export", ""), ("schema", "diff", "--base", "x", "--dir", ""),
     ("version", "bump", "user_events", "--type", "DATA_UPDATE", "--key", "")],
)  # fmt: skip
def test_empty_names_are_refused(lumos: Any, tmp_path: Path, words: tuple[str, ...]) -> None:
    git("init", "--quiet", "--initial-branch", "main")
    result = lumos(*words)
    assert result.code == 2, result.err
    assert "empty" in result.err
    assert not list(tmp_path.glob("s3"))


@pytest.mark.usefixtures("files")
def test_a_report_is_written_through_a_link(lumos: Any, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "link.json").symlink_to(tmp_path / "out/d.json")
    assert lumos("schema", "diff", "old.schema", "new.schema", "--output", "link.json").code == 0
    assert (tmp_path / "link.json").is_symlink()
    assert "discount" in (tmp_path / "out/d.json").read_text()


@pytest.mark.usefixtures("files")
def test_a_pipe_and_a_device_stay_what_they_are(lumos: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert lumos("schema", "diff", "old.schema", "new.schema", "--output", "pipe").code == 0
    assert b"discount" in os.read(reader, 10_000)
    assert (tmp_path / "pipe").is_fifo()
    (tmp_path / "null").symlink_to("/dev/null")
    assert lumos("schema", "diff", "old.schema", "new.schema", "--output", "null").code == 0
    assert (tmp_path / "null").is_char_device()
    os.close(reader)


@pytest.mark.usefixtures("files")
def test_a_report_may_be_printed_instead(lumos: Any, tmp_path: Path) -> None:
    result = lumos("schema", "diff", "old.schema", "new.schema", "--output", "-")
    assert result.json["summary"]["changes"] == 4
    assert not (tmp_path / "-").exists()


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("output", "problem"), [("folder", "is a folder"), ("no/d.json", "no folder")]
)
def test_a_report_is_written_into_files_in_folders_that_are_there(
    lumos: Any, tmp_path: Path, output: str, problem: str
) -> None:
    (tmp_path / "folder").mkdir()
    result = lumos("schema", "diff", "old.schema", "new.schema", "--output", output)
    assert result.code == 2
    assert problem in result.err
    assert not (tmp_path / "no").exists()


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("words", [("--head", "x"), ("--dir", "x")])
def test_options_of_revisions_need_a_base(lumos: Any, words: tuple[str, ...]) -> None:
    result = lumos("schema", "diff", "old.schema", "new.schema", *words)
    assert result.code == 2
    assert "--base" in result.err


@pytest.mark.usefixtures("files")
def test_strict_alone_is_remarked(lumos: Any) -> None:
    result = lumos("schema", "diff", "old.schema", "new.schema", "--strict")
    assert (result.code, "without --exit-code" in result.err) == (0, True)


def test_names_and_comments_cannot_command_a_terminal(lumos: Any, tmp_path: Path) -> None:
    name = "`a\x1b[31m\u202eb\nc`"
    (tmp_path / "old.schema").write_text(f"{name} INT64\n")
    (tmp_path / "new.schema").write_text(f"{name} STRING COMMENT '\x1b]0;x\x07'\n")
    result = lumos("schema", "diff", "old.schema", "new.schema")
    assert not {"\x1b", "\u202e", "\x07"} & set(result.out)
    assert r"`a\x1b[31m\u202eb\nc`" in result.out
    assert r"\x1b]0;x\x07" in result.out
    report = lumos("schema", "diff", "old.schema", "new.schema", "--json").json
    assert report["datasets"][0]["changes"][0]["path"] == name


def test_no_line_ends_with_blanks(lumos: Any, tmp_path: Path) -> None:
    write_text(tmp_path / "old.schema", ["a INT64"])
    write_text(tmp_path / "new.schema", ["a STRING"])
    lines = lumos("schema", "diff", "old.schema", "new.schema").out.split("\n")
    assert lines == [line.rstrip() for line in lines]


def test_many_changes_are_reported_as_plain_lines(lumos: Any, tmp_path: Path) -> None:
    write_text(tmp_path / "old.schema", [f"a{n} INT64" for n in range(1_200)])
    write_text(tmp_path / "new.schema", [f"a{n} STRING" for n in range(1_200)])
    result = lumos("schema", "diff", "old.schema", "new.schema")
    assert "changed a1199 INT64 -> STRING BREAKING" in result.words
    assert "1,200 changes in 1 dataset, 1,200 breaking." in result.out


def run_script(
    *words: str, tail: str = "", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    script = 'exec "$0" -c "from lumos.cli.main import command; command()" "$@" ' + tail
    return subprocess.run(
        ["sh", "-c", script, sys.executable, *words],
        capture_output=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_a_stream_that_lacks_a_character_gets_its_number(tmp_path: Path) -> None:
    write_text(tmp_path / "old.schema", ["`größe` INT64"])
    write_text(tmp_path / "new.schema", ["`größe` STRING"])
    done = run_script("schema", "diff", "old.schema", "new.schema", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"gr\xf6\xdfe" in done.stdout


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_closed_stdout_is_no_traceback(words: tuple[str, ...]) -> None:
    done = run_script("schema", "diff", "old.schema", "new.schema", *words, tail=">&-")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.usefixtures("store")
def test_history_says_what_may_have_been_renamed(lumos: Any, tmp_path: Path) -> None:
    store = Store.open(Database.sqlite(tmp_path / ".lumos/lumos.db"))
    record(store, EVENTS, THIRD.replace("session_id", "visit_id"), day("2024-02-01"))
    shown = lumos("schema", "history", "user_events").words
    assert "perhaps renamed to visit_id (same position)" in shown
    assert "breaking where SELECT" not in shown


@pytest.mark.usefixtures("store")
def test_the_map_shows_a_prefix_that_came_and_went(
    lumos: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = ("version", "bump", "user_events", "--type", "DATA_UPDATE", "--level", "none")
    monkeypatch.setenv("LUMOS_CLOUD_VERSION_PREFIX", "V-")
    lumos(*step)
    monkeypatch.delenv("LUMOS_CLOUD_VERSION_PREFIX")
    lumos(*step)
    assert "S-3 2.0.0 V-4 2.0.0 S-5 2.0.0" in lumos("version", "map", "user_events").words
