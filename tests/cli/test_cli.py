"""The command line, in process."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from files import write_parquet, write_text

pytestmark = pytest.mark.usefixtures("workplace")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write_parquet(tmp_path / "lake/orders/part-0.parquet", id=pa.int64(), note=pa.string())
    write_text(tmp_path / "lake/users.csv", ["id,name", "1,Ann"])
    return tmp_path / "lake"


@pytest.mark.usefixtures("spark")
def test_ingest_prints_the_promised_json(lumos: Any, lake: Path) -> None:
    result = lumos("ingest", lake, "--json")
    assert result.code == 0
    report = result.json
    assert set(report) >= {"format_version", "summary", "datasets", "problems"}
    assert set(report["summary"]) >= {
        "files_listed", "files_read", "files_unchanged", "files_failed", "files_skipped", "tables",
        "tables_read", "datasets_new", "datasets_changed", "datasets_unchanged", "datasets_missing", "seconds",
    }  # fmt: skip
    orders = report["datasets"][0]
    assert set(orders) >= {
        "urn", "name", "platform", "format", "location", "schema", "statistics", "versioning",
        "change", "drift",
    }  # fmt: skip
    assert set(orders["location"]) == {"uri", "partitioning", "partition_keys"}
    assert orders["location"]["uri"] == str(lake / "orders")
    assert set(orders["statistics"]) == {
        "file_count", "total_size_bytes", "total_size_exact", "bytes_by_class", "row_count", "row_count_exact", "partition_count",
        "last_modified",
        "alternating", "columns",
    }  # fmt: skip
    assert set(orders["schema"]["fields"][0]) >= {
        "name", "type", "nullable", "partition", "description",
    }  # fmt: skip
    assert orders["versioning"] == {"cloud_version": "S-1", "schema_version": "1.0.0"}
    assert orders["change"] == "new"


@pytest.mark.usefixtures("spark")
def test_skipped_files_are_counted_and_explained(lumos: Any, lake: Path) -> None:
    write_text(lake / "metadata.json", ['{"title": "users"}'])
    write_text(lake / "users.csv.md5", ["d41d8cd98f00b204e9800998ecf8427e"])
    output = "2 files that are not data were skipped; lumos explain PATH shows why."
    assert output in lumos("ingest", lake).out
    # A second scan reads no file again.
    assert output in lumos("ingest", lake).out
    assert output in lumos("discover", lake).out
    assert "it is a description" in lumos("explain", lake / "metadata.json").out


@pytest.mark.usefixtures("spark")
def test_a_changed_lake_is_reported_to_people(lumos: Any, lake: Path) -> None:
    assert lumos("ingest", lake).code == 0
    write_parquet(lake / "orders/part-1.parquet", id=pa.int64())
    result = lumos("ingest", lake)
    assert result.code == 0
    assert "removed note STRING BREAKING" in result.words
    assert "BREAKING" in result.out
    assert "2 datasets: 0 new, 1 changed, 1 unchanged, 0 missing; 1 breaking change." in result.out
    assert lumos("list", "--json").json["datasets"][0]["schema_version"] == "2.0.0"
    assert "orders" in lumos("list", "ord").out
    assert "No dataset matches." in lumos("list", "nothing").out
    shown = lumos("show", "orders")
    assert "parquet" in shown.out
    assert "drift: 1 older file still has note" in shown.out
    assert lumos("show", "orders", "--json").json["dataset"]["name"] == "orders"
    assert "1 field removed: note" in lumos("history", "orders").out
    history = lumos("history", "orders", "--json").json
    assert [version["schema_version"] for version in history["versions"]] == ["2.0.0", "1.0.0"]
    assert lumos("db", "status", "--json").json["rows"]["dataset"] == 2
    assert "schema versions" in lumos("db", "status").out
    assert "change_event" in lumos("db", "status", "--verbose").out
    assert "already" in lumos("db", "upgrade").out


@pytest.mark.usefixtures("spark")
def test_a_scan_names_who_breaks_and_exits_with_10_on_request(lumos: Any, lake: Path) -> None:
    lumos("ingest", lake)
    (lake.parent / "models").mkdir()
    for number in range(7):
        write_text(
            lake.parent / f"models/notes_{number}.sql",
            ["-- Owner: analytics-team", f"create table notes_{number} as", "select id, note",
             "from orders"],
        )  # fmt: skip
    write_text(
        lake.parent / "models/people.sql", ["create table people as", "select name", "from users"]
    )
    lumos("lineage", "ingest", "models")
    write_parquet(lake / "orders/part-1.parquet", id=pa.int64())
    result = lumos("ingest", lake, "--exit-code")
    assert result.code == 10
    lines = [line.strip() for line in result.out.splitlines()]
    start = lines.index("note was removed: breaks notes_0 (analytics-team), models/notes_0.sql:3")
    assert lines[start - 1].split() == ["removed", "note", "STRING", "BREAKING"]
    assert lines[start + 4].endswith("breaks notes_4 (analytics-team), models/notes_4.sql:3")
    assert lines[start + 5] == "... and 2 more: lumos history orders"
    assert "lineage ingest" not in result.out

    # What is found once is no change the next time; a dataset that is gone breaks its readers.
    assert lumos("ingest", lake, "--exit-code").code == 0
    (lake / "users.csv").unlink()
    result = lumos("ingest", lake, "--exit-code", "--accept-removals", "--json")
    assert result.code == 10
    assert result.json["summary"]["breaking_changes"] == 1
    assert lumos("changes", "--json").json["summary"]["breaking_changes"] == 2
    (gone,) = result.json["gone"]
    assert gone["urn"] in result.json["missing"]
    assert [use["sentence"] for each in gone["affected"]["datasets"] for use in each["uses"]] == [
        "users.csv is gone: breaks people, models/people.sql:2"
    ]


@pytest.mark.usefixtures("spark")
def test_without_lineage_a_breaking_change_says_how_to_learn_who_breaks(
    lumos: Any, lake: Path
) -> None:
    lumos("ingest", lake)
    write_parquet(lake / "orders/part-1.parquet", id=pa.int64(), more=pa.int64())
    result = lumos("ingest", lake)
    assert result.code == 0
    assert "Readers of this data are unknown. Record SQL, dbt or OpenLineage with" in result.out


@pytest.mark.usefixtures("spark")
def test_a_problem_goes_to_stderr_and_does_not_fail_the_rest(lumos: Any, lake: Path) -> None:
    (lake / "broken.parquet").write_bytes(b"nothing")
    result = lumos("ingest", lake)
    assert result.code == 0
    assert "broken.parquet" in result.err
    assert "not_parquet" in result.err


@pytest.mark.usefixtures("spark")
def test_an_empty_folder_fails_with_one_sentence(lumos: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = lumos("ingest", tmp_path / "empty", "--json")
    assert result.code == 1
    assert result.json["datasets"] == []
    assert "No dataset was found" in result.err


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        pytest.param(("ingest", "nowhere"), 2, "There is nothing at", id="no such path"),
        pytest.param(("ingest",), 2, "Nothing to scan", id="nothing named"),
        pytest.param(("ingest", "-c", "no.yaml"), 2, "no.yaml", id="no such configuration"),
        pytest.param(("ingest", "-c", "bad.yaml"), 2, "bad.yaml:1", id="broken configuration"),
        pytest.param(("list",), 1, "There is no store at", id="no store"),
        pytest.param(
            ("show", "x", "--store", "bad.yaml"), 1, "is not a Lumos store", id="no database"
        ),
        pytest.param(("db", "upgrade"), 1, "There is no store at", id="nothing to upgrade"),
        pytest.param(("init", "bad.yaml"), 2, "exists already", id="file exists"),
        pytest.param(("init", "bad.yaml/l.yaml"), 1, "bad.yaml: File exists", id="no folder"),
    ],
)
def test_wrong_use_gets_one_sentence_and_the_right_code(
    lumos: Any, tmp_path: Path, words: tuple[str, ...], code: int, sentence: str
) -> None:
    write_text(tmp_path / "bad.yaml", ["plattform: local " + " " * 200])
    before = sorted(tmp_path.rglob("*"))
    result = lumos(*words)
    assert result.code == code
    assert sentence in result.err
    assert "Traceback" not in result.err
    assert result.out == ""
    assert sorted(tmp_path.rglob("*")) == before


def test_debug_shows_the_traceback_of_that_command_alone(lumos: Any) -> None:
    for words in (("--debug", "ingest", "nowhere"), ("ingest", "nowhere", "--debug")):
        result = lumos(*words)
        assert result.code == 2
        assert "Traceback" in result.err
    assert "Traceback" not in lumos("ingest", "nowhere").err


def test_unknown_commands_and_options_are_misuse(lumos: Any) -> None:
    assert lumos("ingets").code == 2
    assert lumos("list", "--colour").code == 2


def test_init_writes_a_file_that_config_check_accepts(lumos: Any, tmp_path: Path) -> None:
    assert lumos("init").code == 0
    assert lumos("config", "check").code == 0
    assert "lumos.yaml is valid" in lumos("config", "check").out
    assert lumos("config", "check", "--json").json["file"] == str(tmp_path / "lumos.yaml")
    assert lumos("init").code == 2
    assert lumos("init", "--force").code == 0


def test_config_check_warns_of_unknown_switches(lumos: Any, tmp_path: Path) -> None:
    write_text(tmp_path / "lumos.yaml", ["features:", "  auto_detect: true"])
    result = lumos("config", "check")
    assert result.code == 0
    assert "features.auto_detect" in result.out
    assert "Did you mean 'auto_detection'?" in result.out


def test_the_version_is_shown(lumos: Any) -> None:
    assert lumos("--version").out.startswith("lumos 0.")


@pytest.mark.usefixtures("spark")
def test_steps_are_reported_as_json_lines_when_asked(lumos: Any, lake: Path) -> None:
    result = lumos("ingest", lake, "--json", "--log-format", "json")
    entries = [json.loads(line) for line in result.err.splitlines()]
    assert [entry["message"] for entry in entries] == [
        "scan started",
        "dataset changed",
        "dataset changed",
        "scan finished",
    ]
    assert entries[-1]["files"] == 2
    assert {"time", "level"} <= set(entries[0])
    assert result.json["summary"]["datasets_new"] == 2


@pytest.mark.usefixtures("spark")
def test_quiet_leaves_stderr_empty_and_verbose_shows_steps(lumos: Any, lake: Path) -> None:
    (lake / "broken.parquet").write_bytes(b"nothing")
    assert lumos("ingest", "--quiet", lake).err == ""
    assert "scan finished source=file:" in lumos("ingest", lake, "-v").err


def test_search_finds_what_was_ingested(lumos: Any, tmp_path: Path) -> None:
    from lumos.model.schema import parse_schema
    from lumos.store import Database, Store
    from store.conftest import dataset

    store = Store.open(Database.sqlite(tmp_path / ".lumos/lumos.db"), create=True)
    with store.transaction() as transaction:
        schema = parse_schema("id INT64\nmeta STRUCT<priority: INT32>")
        hash = transaction.save_schema(schema)
        transaction.save(dataset("user_clicks", schema_hash=hash))
    result = lumos("search", "clicks")
    assert result.out.startswith("Results (1 dataset):")
    assert "Platform: File (Parquet) | Schema: 1.0.0" in result.out
    assert "Fields" not in result.out
    assert lumos("search", "clicks", "--json").json["results"][0]["name"] == "user_clicks"
    assert lumos("search", "priority").out.endswith("   Fields: meta.priority\n")
    assert lumos("search", "priority", "--json").json["results"][0]["fields"] == ["meta.priority"]
    advice = "No dataset matches 'nothing'. See all with: lumos list\n"
    assert lumos("search", "nothing").out == advice
    assert lumos("search", "nothing", "--json").json["total"] == 0
    misspelt = lumos("search", "user_cliks")
    assert misspelt.out == "No dataset matches 'user_cliks'. Did you mean user_clicks?\n"
    assert lumos("search", "user_cliks", "--json").json["suggestion"] == "user_clicks"


@pytest.mark.usefixtures("spark")
def test_doctor_finds_everything_in_order(lumos: Any, lake: Path, tmp_path: Path) -> None:
    write_text(tmp_path / "lumos.yaml", ["sources:", "  - type: file", f"    path: {lake}"])
    result = lumos("doctor")
    assert result.code == 0
    for words in ("java", "store", "source file", "platform local", "ran a job", "pyarrow"):
        assert words in result.out


@pytest.mark.usefixtures("spark")
def test_doctor_names_what_is_wrong_and_the_next_step(
    lumos: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path / "lumos.yaml", ["sources:", "  - type: file", "    path: nowhere"])
    (tmp_path / ".lumos").write_text("a file where the store's folder should be")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    report = lumos("doctor", "--json")
    assert report.code == 1
    failed = {
        check["name"]: check for check in report.json["checks"] if check["status"] == "failed"
    }
    assert set(failed) >= {"java", "source file"}
    assert "openjdk-17" in failed["java"]["next_step"]


@pytest.mark.usefixtures("spark")
def test_names_that_look_like_markup_are_shown_as_they_are(lumos: Any, tmp_path: Path) -> None:
    write_text(tmp_path / "lake/j [kg]/units [kg].csv", ["id,share [/day],[red]x", "1,2,3"])
    assert "units [kg]" in lumos("ingest", tmp_path / "lake").out
    shown = lumos("show", "units [kg]")
    assert "share [/day]" in shown.out
    assert "[red]x" in shown.out


@pytest.mark.usefixtures("spark")
def test_a_change_of_order_is_reported(lumos: Any, tmp_path: Path) -> None:
    write_parquet(tmp_path / "lake/t/part-0.parquet", a=pa.int64(), b=pa.int64())
    lumos("ingest", tmp_path / "lake")
    write_parquet(tmp_path / "lake/t/part-1.parquet", b=pa.int64(), a=pa.int64())
    assert "reordered columns a, b -> b, a" in lumos("ingest", tmp_path / "lake").words
    assert "list of fields reordered" in lumos("history", "t").out


@pytest.mark.usefixtures("spark")
def test_what_is_held_back_can_be_confirmed(lumos: Any, lake: Path) -> None:
    lumos("ingest", lake)
    (lake / "users.csv").unlink()
    held = lumos("ingest", lake).err
    assert "1 dataset could not be found: users." in held
    assert "if it is really gone, run again with --accept-removals" in held
    assert "gone  users" in lumos("ingest", lake, "--accept-removals").out
    assert "missing: the last scan did not find it" in lumos("show", "users").out


def test_an_address_that_cannot_be_read_yet_is_named(lumos: Any) -> None:
    result = lumos("ingest", "ftp://bucket/raw")
    assert result.code == 2
    assert "does not support 'ftp://'" in result.err


def test_explain_says_in_words_what_was_decided(lumos: Any, lake: Path) -> None:
    output = lumos("explain", lake / "users.csv")
    assert output.code == 0
    assert "belongs to  users.csv" in output.out
    assert "(rule: pattern)" in output.out
    assert "now, by examining" in output.out
    output = lumos("explain", lake)
    assert "all of its 1 file, parquet" in output.out
    refused = lumos("explain", lake / "nothing.csv")
    assert (refused.code, "There is nothing at" in refused.err) == (2, True)


@pytest.mark.usefixtures("spark")
def test_explain_shows_the_scan_and_prints_json(lumos: Any, lake: Path) -> None:
    lumos("ingest", lake)
    output = lumos("explain", lake / "users.csv", "--json").json
    assert (output["kind"], output["verdict"], output["drifts"]) == ("file", "dataset", False)
    assert output["scanned_at"] is not None
    assert "by the scan of" in lumos("explain", lake).out


def test_a_process_of_its_own_ends_with_the_code_and_all_that_was_said(tmp_path: Path) -> None:
    def run(*words: str) -> tuple[int, str, str]:
        command = [sys.executable, "-m", "lumos", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    code, out, err = run("list")
    assert (code, out) == (1, "")
    assert err.startswith("lumos: There is no store")
    code, out, err = run("--version")
    assert (code, err) == (0, "")
    assert out.startswith("lumos ")
