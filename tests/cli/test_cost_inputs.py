"""lumos cost ingest, meters, set, remove and list on the command line."""

from pathlib import Path
from typing import Any

import pytest

from cost.sample_store import CostSample, job, urn

TABLE = "job,period,engine,quantity,unit\n"


@pytest.fixture
def place(workplace: Path) -> Path:
    """A folder with a configuration, a store of one dataset and one job, and a table of usage."""
    (workplace / ".lumos").mkdir()
    sample = CostSample(workplace / ".lumos")
    sample.dataset("raw")
    sample.lineage(jobs=(job("nightly"),))
    (workplace / "lumos.yaml").write_text("cost_model: {currency: EUR}\n")
    (workplace / "emr.csv").write_text(f"{TABLE}nightly,2024-01,emr,3,instance-hours\n")
    return workplace


def test_the_story_of_meters(place: Path, lumos: Any) -> None:
    result = lumos("cost", "ingest", "emr.csv")
    assert (result.code, result.words) == (
        0,
        "table:emr 1 file, 1 job, 2024-01-01 to 2024-01-31 1 new, 0 changed, 0 unchanged",
    )
    assert "1 unchanged" in lumos("cost", "ingest", place / "emr.csv").words
    assert lumos("cost", "meters", "--json").json["meters"] == [
        {
            "reporter": "table:emr",
            "rows": 1,
            "since": "2024-01-01T00:00:00Z",
            "until": "2024-02-01T00:00:00Z",
        }
    ]
    (place / "emr.csv").write_text(f"{TABLE}nightly,2024-01-05,emr,3,instance-hours\n")
    refused = lumos("cost", "ingest", "emr.csv")
    assert refused.code == 2
    assert "lumos cost remove --meter table:emr" in " ".join(refused.err.split())
    assert "Deleted table:emr with 1 row" in lumos("cost", "forget", "emr").words
    assert "No usage is imported yet" in lumos("cost", "meters").words


def test_wrong_rows_are_reported_with_their_lines(place: Path, lumos: Any) -> None:
    (place / "bad.csv").write_text(
        f"{TABLE}nightly,2024-13,emr,3,hour\nnightly,2024-01,emr,x,hour\n"
    )
    refused = lumos("cost", "ingest", "bad.csv")
    assert refused.code == 2
    assert "line 2: There is no month '2024-13'" in refused.err
    assert "line 3: Invalid number 'x' in quantity" in refused.err


def test_a_file_that_cannot_be_read_is_a_failure(place: Path, lumos: Any) -> None:
    (place / "log").write_text('{"Event":"SparkListenerLogStart","Spark Version":"4.1.0"}\n')
    failed = lumos("cost", "ingest", "log")
    assert failed.code == 1
    assert "has no application start event" in " ".join(failed.err.split())


@pytest.mark.usefixtures("place")
def test_the_story_of_overrides(lumos: Any) -> None:
    result = lumos(
        "cost",
        "set",
        "raw",
        "storage=80",
        "other=-12.5",
        "--since",
        "2024-02-01",
        "--reason",
        "licence",
    )
    assert result.code == 0
    assert "raw other -12.50 EUR 2024-02-01" in result.words
    assert "80.00 EUR" in lumos("cost", "overrides").words
    assert "Removed 1 override;" in lumos("cost", "unset", "raw", "other").words
    (left,) = lumos("cost", "overrides", "--json").json["overrides"]
    assert (left["urn"], left["type"], left["amount"], left["since"]) == (
        urn("raw"),
        "storage",
        80,
        "2024-02-01",
    )


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("raw", "storage"), "Invalid cost 'storage'"),
        (("raw", "storage=much"), "Invalid cost 'storage=much'"),
        (("raw", "storage=1", "storage=2"), "given twice"),
        (("raw", "strage=1"), "Did you mean 'storage'"),
        (("rwa", "storage=1"), "rwa"),
        (("raw", "storage=1", "--currency", "USD"), "EUR and USD"),
    ],
)
def test_what_cannot_be_set_is_reported(lumos: Any, words: tuple[str, ...], problem: str) -> None:
    refused = lumos("cost", "set", *words)
    assert refused.code == 2
    assert problem in " ".join(refused.err.split())
