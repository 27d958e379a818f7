"""Registries in each database, and a clock that tests set."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lumos.config.jobs import JobSettings
from lumos.jobs.runner import (
    AnyJobEvent,
    FailureEvent,
    JobRunner,
    RunnerDied,
    SuccessEvent,
)
from lumos.model.job import JobRecord, JobRequest
from lumos.store import Database, JobRegistry, Store

START = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)
LEASE = timedelta(seconds=60)


class SetClock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def move(self, **passed: float) -> None:
        self.now += timedelta(**passed)


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A store of each kind."""
    if request.param == "sqlite":
        opened = Database.sqlite(tmp_path / "lumos.db")
    else:
        opened = Database.postgres(request.getfixturevalue("emptied_postgres"))
    Store.open(opened, create=True)
    yield opened
    opened.engine.dispose()


@pytest.fixture
def registry(database: Database, clock: SetClock) -> JobRegistry:
    return JobRegistry(database, clock)


def request(**facts: object) -> JobRequest:
    defaults: dict[str, object] = {
        "kind": "version",
        "arguments": {},
        "requested_by": "ann",
        "max_attempts": 3,
    }
    return JobRequest(**{**defaults, **facts})  # type: ignore[arg-type]


def quick(**facts: object) -> JobSettings:
    """Settings with which tests need not wait."""
    defaults: dict[str, object] = {"poll_seconds": 1, "retry_seconds": 1, "max_retry_seconds": 1}
    return JobSettings(**{**defaults, **facts})  # type: ignore[arg-type]


class ScriptedRunner(JobRunner):
    """Does what a function says: an event, or the failure of the process."""

    def __init__(self, play: Callable[[JobRecord], AnyJobEvent | Sequence[AnyJobEvent]]) -> None:
        self._play = play
        self.stopped = 0
        self._events: list[AnyJobEvent] = []
        self._dies = False

    def start(self, job: JobRecord) -> None:
        try:
            played = self._play(job)
        except ProcessLookupError:
            self._dies = True
            return
        self._events = list(played) if isinstance(played, Sequence) else [played]

    def poll(self, seconds: float) -> Sequence[AnyJobEvent]:  # noqa: ARG002
        if self._dies:
            self._dies = False
            raise RunnerDied(-9)
        events, self._events = self._events, []
        return events

    def stop(self) -> None:
        self.stopped += 1


SUCCESS = SuccessEvent({"done": True})
FAILURE = FailureEvent("The bucket does not answer.", False)
MISTAKE = FailureEvent("No dataset x.", True)
