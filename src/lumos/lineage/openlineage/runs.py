"""Events put together: one run of a job has several of them, in any order and perhaps twice."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from lumos.lineage.openlineage.events import DatasetPart, Event, JobPart

State: TypeAlias = Literal["RUNNING", "COMPLETE", "FAILED", "ABORTED"]
Facets: TypeAlias = dict[str, msgspec.Raw]

_STATES: Final[dict[str, State]] = {
    "COMPLETE": "COMPLETE",
    "FAIL": "FAILED",
    "ABORT": "ABORTED",
}


class DatasetKey(NamedTuple):
    namespace: str
    name: str


class JobKey(NamedTuple):
    namespace: str
    name: str


class Seen(msgspec.Struct, kw_only=True):
    """A dataset as all events of one run tell it, the later ones overruling the earlier."""

    facets: Facets
    own_facets: Facets

    @classmethod
    def new(cls) -> "Seen":
        return cls(facets={}, own_facets={})


class Run(msgspec.Struct, kw_only=True):
    """One run, or without `run_id` a job as it is meant to run."""

    run_id: str | None
    job: JobKey
    started_at: datetime
    last_at: datetime
    ended_at: datetime | None = None
    state: State = "RUNNING"
    inputs: dict[DatasetKey, Seen] = {}
    outputs: dict[DatasetKey, Seen] = {}
    job_facets: Facets = {}
    run_facets: Facets = {}


def runs_of(events: Iterable[Event]) -> list[Run]:
    """The runs of all jobs, the newest last; an event that comes twice says nothing new."""
    runs: dict[tuple[JobKey, str | None], Run] = {}
    for event in sorted(events, key=lambda each: each.at):
        if event.job is None:
            continue
        key = (_key_of(event.job), None if event.run is None else event.run.run_id)
        run = runs.get(key)
        if run is None:
            run = runs[key] = Run(run_id=key[1], job=key[0], started_at=event.at, last_at=event.at)
        _add(run, event, event.job)
    return sorted(runs.values(), key=lambda run: (run.last_at, run.run_id or ""))


def _add(run: Run, event: Event, job: JobPart) -> None:
    run.last_at = event.at
    state = state_of(event)
    if state is not None:
        run.state, run.ended_at = state, event.at
    run.job_facets |= job.facets or {}
    run.run_facets |= (event.run.facets if event.run else None) or {}
    for parts, seen in ((event.inputs, run.inputs), (event.outputs, run.outputs)):
        for part in parts or ():
            dataset = seen.setdefault(DatasetKey(part.namespace, part.name), Seen.new())
            dataset.facets |= part.facets or {}
            dataset.own_facets |= part.input_facets or part.output_facets or {}


def state_of(event: Event) -> State | None:
    """How a run stands after an event, if that says so."""
    return _STATES.get((event.event_type or "").upper())


def datasets_of(events: Iterable[Event]) -> Iterator[tuple[DatasetKey, Seen]]:
    """The datasets that events tell of by themselves, without a job."""
    found: dict[DatasetKey, Seen] = {}
    for event in sorted(events, key=lambda each: each.at):
        part: DatasetPart | None = event.dataset
        if part is not None:
            seen = found.setdefault(DatasetKey(part.namespace, part.name), Seen.new())
            seen.facets |= part.facets or {}
    yield from found.items()


def _key_of(job: JobPart) -> JobKey:
    return JobKey(job.namespace, job.name)
