"""lumos changes and lumos version, on a store that was filled without a scan."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lumos import Lumos
from lumos.model.lineage import ColumnUse, Edge, UseKind
from recorded_lake import START, RecordedLake


@pytest.fixture
def lake(workplace: Path) -> RecordedLake:
    """Orders lose a column; users only get data."""
    seen = RecordedLake(Lumos(overrides={"storage.path": str(workplace / ".lumos/lumos.db")}))
    seen.see("orders", "id INT64\ndiscount INT64")
    seen.see("users", "id INT64")
    seen.see("orders", "id INT64")
    seen.see("users", "id INT64")
    return seen


@pytest.mark.usefixtures("lake")
def test_changes_are_lines_newest_first(lumos: Any) -> None:
    result = lumos("changes")
    assert result.code == 0
    assert [" ".join(line.split()) for line in result.out.splitlines()] == [
        "TIME (UTC) VERDICT EVENT VERSION DATASET WHAT",
        "2024-01-01 03:00:00 MODIFIED S-2 1.0.0 users new data, same schema",
        "2024-01-01 02:00:00 BREAKING SCHEMA_CHANGED S-2 2.0.0 orders 1 field removed: discount",
        "2024-01-01 01:00:00 CREATED S-1 1.0.0 users first seen",
        "2024-01-01 00:00:00 CREATED S-1 1.0.0 orders first seen",
        "4 events in 2 datasets; 1 breaking change.",
    ]


def test_breaking_changes_are_counted_by_field_and_deleted_dataset(
    lake: RecordedLake, lumos: Any
) -> None:
    lake.see("events", "id INT64\nuser INT64\nurl STRING")
    changed = lake.see("events", "id INT64\nmore STRING")
    lake.lose("users")
    assert changed.breaking_changes == 2
    assert lumos("changes", "--breaking").out.splitlines()[-1] == (
        "3 events in 3 datasets; 4 breaking changes."
    )
    summary = lumos("changes", "--json").json["summary"]
    assert (summary["breaking"], summary["breaking_changes"]) == (3, 4)


def test_a_line_says_who_breaks_downstream(lake: RecordedLake, lumos: Any) -> None:
    edge = Edge(
        upstream="lumos://file/lake/users", downstream="lumos://x/mart", origin="test", at=START
    )
    with lake.store.transaction() as transaction:
        transaction.lineage.report("test", [edge], at=START)
    lake.lose("users")
    line = lumos("changes", "--dataset", "users", "--limit", 1).out.splitlines()[1]
    assert " ".join(line.split()).endswith(" users gone; breaks mart")
    assert lumos("changes", "--json", "--limit", 1).json["events"][0]["affected"] == {
        "summary": "breaks mart", "breaking": 1, "undetermined": 0, "owners": [],
        "datasets": [{
            "urn": "lumos://x/mart", "name": "mart", "verdict": "breaking", "owners": [],
            "uses": [{
                "path": "", "change": "users is gone", "reason": "", "file": None, "line": None,
                "sentence": "users is gone: breaks mart",
            }],
        }],
        "problem": None,
    }  # fmt: skip


def test_history_names_under_each_change_what_it_breaks(lake: RecordedLake, lumos: Any) -> None:
    edges = [
        Edge(
            upstream="lumos://file/lake/orders",
            downstream=f"lumos://x/mart{number:02}",
            origin="test",
            at=START,
            uses=(ColumnUse(upstream="id", usage=UseKind.JOIN, file="m.sql", line=number + 1),),
        )
        for number in range(52)
    ]
    with lake.store.transaction() as transaction:
        transaction.lineage.report("test", edges, at=START)
    lake.see("orders", "id STRING\nnew STRING")
    lines = lumos("history", "orders").out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.split()[:1] == ["changed"])
    assert lines[start + 1] == "    id became STRING: breaks mart00, m.sql:1"
    assert lines[start + 50 : start + 53] == [
        "    id became STRING: breaks mart49, m.sql:50",
        "    ... and 2 more: lumos history lumos://file/lake/orders --json",
        "  added     new                      STRING                       compatible",
    ]


@pytest.mark.usefixtures("lake")
def test_changes_as_json_hold_every_promised_fact(lumos: Any) -> None:
    output = lumos("changes", "--breaking", "--json").json
    assert set(output) == {"format_version", "events", "summary"}
    assert output["summary"] == {"events": 1, "breaking": 1, "datasets": 1, "breaking_changes": 1}
    (event,) = output["events"]
    assert set(event) == {
        "event_id", "urn", "type", "change_type", "timestamp", "cause", "author", "source_path",
        "cloud_version", "schema_version", "breaking", "summary", "flags", "changes", "old_schema",
        "new_schema", "metadata", "affected_downstream", "affected", "breaking_changes",
    }  # fmt: skip
    assert (event["type"], event["change_type"]) == ("SCHEMA_CHANGED", "SCHEMA_CHANGE")
    assert event["timestamp"] == "2024-01-01T02:00:00Z"
    assert [field["name"] for field in event["old_schema"]["fields"]] == ["id", "discount"]
    assert event["changes"][0]["path"] == "discount"


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["--type", "CREATED"], 2),
        (["--type", "created", "--type", "modified"], 3),
        (["--dataset", "users"], 2),
        (["--limit", "1"], 1),
        (["--since", "2024-01-01T02:00"], 2),
        (["--until", "2024-01-01T00:30"], 1),
        (["--since", "7d"], 0),
    ],
)
@pytest.mark.usefixtures("lake")
def test_changes_can_be_narrowed(lumos: Any, words: list[str], lines: int) -> None:
    assert len(lumos("changes", "--json", *words).json["events"]) == lines


@pytest.mark.usefixtures("lake")
def test_no_changes_are_said_so(lumos: Any) -> None:
    assert lumos("changes", "--since", "7d").out == "No changes. Scan for some with: lumos ingest\n"
    empty = lumos("changes", "--since", "7d", "--json").json
    assert (empty["events"], empty["summary"]["events"]) == ([], 0)


@pytest.mark.usefixtures("lake")
def test_the_exit_code_reports_breaking_changes_where_that_is_wanted(lumos: Any) -> None:
    assert lumos("changes").code == 0
    assert lumos("changes", "--exit-code").code == 10
    assert lumos("changes", "--exit-code", "--json").code == 10
    assert lumos("changes", "--exit-code", "--dataset", "users").code == 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--since", "yesterday"], "'yesterday' is not a time"),
        (["--type", "SCHEMA_CHANGE"], "Did you mean 'SCHEMA_CHANGED'?"),
        (["--dataset", "order"], "No dataset order in the store"),
    ],
)
@pytest.mark.usefixtures("lake")
def test_what_cannot_be_meant_is_one_sentence(lumos: Any, words: list[str], complaint: str) -> None:
    result = lumos("changes", *words)
    assert result.code == 2
    assert complaint in result.err
    assert result.out == ""


def test_a_reader_that_has_enough_is_no_failure(lake: RecordedLake) -> None:
    lake.see_all([f"dataset_{number}" for number in range(2_000)], "id INT64")
    command = [sys.executable, "-c", "from lumos.cli.main import main; main()", "changes"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"TIME (UTC)")
        process.stdout.close()
        assert process.wait() == 0
        assert process.stderr.read() == b""


@pytest.mark.usefixtures("lake")
def test_a_version_shows_its_history_newest_first(lumos: Any) -> None:
    shown = lumos("version", "show", "orders")
    assert "cloud version S-2, S-1 before" in shown.words
    assert "SCHEMA_CHANGE: 1 field removed: discount" in shown.words
    assert shown.words.index("2.0.0 S-2") < shown.words.index("1.0.0 S-1")
    plain = lumos("version", "show", "orders", "--json").json
    assert set(plain) == {
        "format_version", "urn", "name", "state", "cloud_version", "schema_version", "timestamp",
        "author", "cause", "change_type", "change_details", "previous_version", "version_history",
        "milestones",
    }  # fmt: skip
    assert plain["version_history"][1] == {
        "version": "S-2",
        "schema_version": "2.0.0",
        "timestamp": "2024-01-01T02:00:00Z",
        "change_type": "SCHEMA_CHANGE",
        "author": None,
        "breaking": True,
        "verdict": "breaking",
        "changes": ["Removed discount field"],
    }


def test_a_version_shows_when_the_dataset_was_gone(lumos: Any, lake: RecordedLake) -> None:
    lake.lose("orders")
    shown = lumos("version", "show", "orders").words
    assert "missing: the last scan did not find it" in shown
    assert "S-3 2024-01-01 04:00:00 DELETED gone 2.0.0 S-2 2024-01-01 02:00:00" in shown
    output = lumos("history", "orders").words
    assert "S-3 2024-01-01 04:00:00 gone 2.0.0 S-2 2024-01-01 02:00:00" in output


def test_the_map_of_versions_folds_what_is_the_same(lumos: Any, lake: RecordedLake) -> None:
    lake.see("orders", "id INT64")
    lake.see("orders", "id INT64")
    mapped = lumos("version", "map", "orders", "--json").json
    assert mapped["versions"] == {"S-1": "1.0.0", "S-2": "2.0.0", "S-3": "2.0.0", "S-4": "2.0.0"}
    assert "S-2 ... S-4 2.0.0" in lumos("version", "map", "orders").words


@pytest.mark.usefixtures("lake")
def test_a_version_is_moved_by_hand_and_with_a_key_only_once(lumos: Any) -> None:
    words = ["version", "bump", "users", "--type", "SCHEMA_CHANGE", "--key", "release-42"]
    assert lumos(*words).out == "users: S-2 1.0.0 -> S-3 1.1.0\n"
    assert "nothing changed" in lumos(*words).out
    again = lumos(*words, "--json").json
    assert (again["applied"], again["after"]) == (
        False, {"cloud_version": "S-3", "schema_version": "1.1.0"},
    )  # fmt: skip
    major = lumos("version", "bump", "users", "--type", "SCHEMA_CHANGE", "--level", "major")
    assert major.out == "users: S-3 1.1.0 -> S-4 2.0.0\n"
    assert lumos("changes", "--dataset", "users", "--breaking", "--exit-code").code == 10


@pytest.mark.usefixtures("lake")
def test_a_type_that_does_not_exist_is_refused(lumos: Any) -> None:
    result = lumos("version", "bump", "users", "--type", "DATA_CHANGE")
    assert result.code == 2
    assert "No change type named 'DATA_CHANGE'" in result.err


@pytest.mark.usefixtures("lake")
def test_versions_of_many_datasets_are_looked_through_and_updated(
    lumos: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lumos("version", "scan").out == "2 datasets: all up to date.\n"
    assert "orders S-2 2.0.0" in lumos("version", "scan", "--all").words
    monkeypatch.setenv("LUMOS_CLOUD_VERSION_PREFIX", "V-")
    needed = lumos("version", "scan", "ord*")
    assert "orders S-2 2.0.0 V-3 2.0.0 prefix" in needed.words
    assert "1 needs a new version." in needed.words
    assert "2 need a new version, 2 updated." in lumos("version", "scan", "--update").words
    assert lumos("version", "scan", "--json").json["summary"] == {
        "datasets": 2, "outdated": 0, "updated": 0,
    }  # fmt: skip


@pytest.mark.usefixtures("lake")
def test_old_events_of_new_data_are_pruned(lumos: Any) -> None:
    assert lumos("db", "prune", "--json").json["removed"] == 1
    assert lumos("db", "prune", "--older-than", "1d").out.startswith("Deleted 0 MODIFIED")
    assert lumos("db", "prune", "--older-than", "soon").code == 2


@pytest.mark.usefixtures("lake")
def test_these_commands_start_neither_spark_nor_arrow() -> None:
    program = (
        "import sys\nfrom lumos.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "import json; json.dump(sorted({'pyspark', 'pyarrow'} & set(sys.modules)), sys.stderr)"
    )
    for words in (["changes"], ["version", "show", "orders"], ["version", "scan"]):
        done = subprocess.run(
            [sys.executable, "-c", program, *words], capture_output=True, text=True, check=True
        )
        assert json.loads(done.stderr) == []
