"""lumos job, run, worker and schedule: what is printed, and what wrong input is answered with."""

from pathlib import Path
from typing import Any

import pytest

from lumos import Lumos


@pytest.fixture
def store(workplace: Path) -> Lumos:
    lumos = Lumos(workplace / "lumos.yaml") if (workplace / "lumos.yaml").exists() else Lumos()
    lumos.create_store()
    return lumos


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("run", "Name at least one step, as in: lumos run ingest:sources.yaml"),
        ("run bake:cake", "No kind of job named 'bake'."),
        ("run export", "The step 'export' needs a value, as in: export:nightly.json"),
        ("run version:scan --resume 1", "Give steps or a job to resume, not both."),
        ("run --resume 7", "There is no job 7. See all with: lumos job list"),
        ("run version:scan --max-attempts 0", "See: lumos run --help"),
        ("run version:scan --time-limit 9999999", "The time limit in seconds must be between"),
        ("job show 7", "There is no job 7. See all with: lumos job list"),
        ("job show x", "See: lumos job show --help"),
        ("job show 0", "See: lumos job show --help"),
        ("job cancel 7", "There is no job 7."),
        ("job retry 7", "There is no job 7."),
        ("job list --state done", "No state of jobs named 'done'."),
        ("job list --limit 0", "See: lumos job list --help"),
        ("worker --once --concurrency 65", "See: lumos worker --help"),
        ("schedule add x 61_*_*_*_* version", "is not a cron expression"),
        ("schedule add x daily version --timezone Oslo", "Unknown time zone 'Oslo'."),
        ("schedule add x daily version --catch-up some", "No catch-up policy named 'some'."),
        ("schedule add x daily version --jitter -1", "See: lumos schedule add --help"),
        ("schedule add x/y daily version", "is not a valid name of a schedule"),
        ("schedule add x daily", "See: lumos schedule add --help"),
        ("schedule remove x", "No schedule named 'x'. See all with: lumos schedule list"),
        ("schedule pause x", "No schedule named 'x'."),
        ("schedule run x", "No schedule named 'x'."),
    ],
)
@pytest.mark.usefixtures("store")
def test_wrong_input_is_answered_with_advice(lumos: Any, words: str, sentence: str) -> None:
    result = lumos(*(word.replace("_", " ") for word in words.split()))
    assert result.code == 2
    assert sentence in result.err
    assert result.err.startswith("lumos: ")


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize("words", ["job list", "job show 1", "schedule list"])
def test_without_a_store_there_are_no_jobs(lumos: Any, words: str) -> None:
    result = lumos(*words.split())
    assert result.code == 1
    assert "There is no store" in result.err


def test_a_job_is_listed_shown_cancelled_and_retried(lumos: Any, store: Lumos) -> None:
    assert lumos("job", "list").out.startswith("No jobs.")
    assert lumos("run", "--detach", "version:scan").out == (
        "Job 1 is queued. See it with: lumos job show 1\n"
    )
    assert "1 version queued 0/3" in lumos("job", "list").words
    assert lumos("job", "cancel", "1").out == "Job 1 is cancelled.\n"
    shown = lumos("job", "show", "1")
    assert "Job 1 version cancelled" in shown.words
    assert "Cancellation requested." in shown.out
    assert "is queued" in lumos("job", "retry", "1").out
    assert "only failed, dead and cancelled jobs can be retried" in lumos("job", "retry", "1").err
    assert store.jobs.show(1).state == "queued"


def test_a_schedule_is_added_listed_paused_and_removed(lumos: Any, store: Lumos) -> None:
    assert "is due at" in lumos("schedule", "add", "nightly", "30 2 * * *", "version:scan").out
    assert "nightly 30 2 * * * UTC version" in lumos("schedule", "list").words
    assert "is paused" in lumos("schedule", "pause", "nightly").out
    assert "nightly 30 2 * * * UTC version paused" in lumos("schedule", "list").words
    assert "is due at" in lumos("schedule", "resume", "nightly").out
    assert lumos("schedule", "run", "nightly").out.startswith("Job 1 is queued.")
    assert store.jobs.show(1).requested_by
    assert "jobs of Lumos 1" in lumos("db", "status").words
    assert lumos("schedule", "remove", "nightly").out == "Removed schedule nightly.\n"
    assert lumos("schedule", "list").out.startswith("No schedules.")


@pytest.mark.usefixtures("store")
def test_a_worker_that_finds_nothing_says_so(lumos: Any) -> None:
    result = lumos("worker", "--once")
    assert (result.code, result.out) == (0, "Jobs: 0 succeeded, 0 failed.\n")
