"""Builds runs from events in any order, and encodes events that are stored for the next ingest."""

import zlib
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from lumos.lineage.openlineage.events import DatasetKey, EventDataset, EventJob, OpenLineageEvent
from lumos.lineage.openlineage.facets import READ_FACETS

State: TypeAlias = Literal["RUNNING", "COMPLETE", "FAILED", "ABORTED"]
Facets: TypeAlias = dict[str, msgspec.Raw]

_STATES: Final[dict[str, State]] = {
    "COMPLETE": "COMPLETE",
    "FAIL": "FAILED",
    "ABORT": "ABORTED",
}


class JobKey(NamedTuple):
    namespace: str
    name: str


class RunDataset(msgspec.Struct, kw_only=True):
    """A dataset in all events of one run; facets of later events override earlier ones.

    `io_facets` are its input or output facets.
    """

    facets: Facets = {}
    io_facets: Facets = {}


class OpenLineageRun(msgspec.Struct, kw_only=True):
    """One run of a job; without `run_id`, the definition of the job."""

    run_id: str | None
    job: JobKey
    started_at: datetime
    last_at: datetime
    ended_at: datetime | None = None
    state: State = "RUNNING"
    inputs: dict[DatasetKey, RunDataset] = {}
    outputs: dict[DatasetKey, RunDataset] = {}
    job_facets: Facets = {}
    run_facets: Facets = {}


def runs_of(events: Iterable[OpenLineageEvent]) -> list[OpenLineageRun]:
    """The runs of all jobs, newest last; repeated events have no effect."""
    runs: dict[tuple[JobKey, str | None], OpenLineageRun] = {}
    for event in sorted(events, key=lambda each: each.at):
        if event.job is None:
            continue
        key = (
            JobKey(event.job.namespace, event.job.name),
            None if event.run is None else event.run.run_id,
        )
        run = runs.get(key)
        if run is None:
            run = runs[key] = OpenLineageRun(
                run_id=key[1], job=key[0], started_at=event.at, last_at=event.at
            )
        _add(run, event, event.job)
    return sorted(runs.values(), key=lambda run: (run.last_at, run.run_id or ""))


def _add(run: OpenLineageRun, event: OpenLineageEvent, job: EventJob) -> None:
    run.last_at = event.at
    state = state_of(event)
    if state is not None:
        run.state, run.ended_at = state, event.at
    run.job_facets |= job.facets or {}
    run.run_facets |= (event.run.facets if event.run else None) or {}
    for event_datasets, run_datasets in ((event.inputs, run.inputs), (event.outputs, run.outputs)):
        for each in event_datasets or ():
            dataset = run_datasets.setdefault(DatasetKey(each.namespace, each.name), RunDataset())
            dataset.facets |= each.facets or {}
            dataset.io_facets |= each.input_facets or each.output_facets or {}


def state_of(event: OpenLineageEvent) -> State | None:
    """The final state of a run, if the event has one."""
    return _STATES.get((event.event_type or "").upper())


_decoder: Final = msgspec.json.Decoder(list[OpenLineageEvent])


def decode_events(data: bytes | None) -> list[OpenLineageEvent]:
    """Decode the stored events of a reporter."""
    return [] if data is None else _decoder.decode(zlib.decompress(data))


def encode_events(events: Iterable[OpenLineageEvent], runs: Collection[str | None]) -> bytes:
    """Encode the events of the given runs, to be stored."""
    by_run: dict[str | None, dict[tuple[datetime, bytes], OpenLineageEvent]] = {}
    for event in events:
        run = None if event.run is None else event.run.run_id
        if run in runs:
            stripped = _strip_unread_facets(event)
            by_run.setdefault(run, {})[event.at, _content(stripped)] = stripped
    stored = [
        event for _, events_of_run in sorted(by_run.items(), key=lambda pair: pair[0] or "")
        for event in _events_to_store(events_of_run)
    ]  # fmt: skip
    return zlib.compress(msgspec.json.encode(stored))


def _events_to_store(
    events: Mapping[tuple[datetime, bytes], OpenLineageEvent],
) -> list[OpenLineageEvent]:
    """The first event, which has the start time, and of events with equal content the last."""
    sorted_keys = sorted(events)
    last_times = {content: at for at, content in sorted_keys}
    return [
        events[key]
        for index, key in enumerate(sorted_keys)
        if index == 0 or last_times[key[1]] == key[0]
    ]  # fmt: skip


def _content(event: OpenLineageEvent) -> bytes:
    """The content of an event without its time."""
    content = (event.job, event.run, event.inputs, event.outputs, event.dataset, state_of(event))
    return msgspec.json.encode(content)


def _strip_unread_facets(event: OpenLineageEvent) -> OpenLineageEvent:
    """An event without the facets that Lumos does not read."""
    replace = msgspec.structs.replace
    return replace(
        event,
        run=event.run and replace(event.run, facets=_without_unread(event.run.facets)),
        job=event.job and replace(event.job, facets=_without_unread(event.job.facets)),
        inputs=event.inputs and [_strip_dataset(each) for each in event.inputs],
        outputs=event.outputs and [_strip_dataset(each) for each in event.outputs],
        dataset=event.dataset and _strip_dataset(event.dataset),
    )


def _strip_dataset(dataset: EventDataset) -> EventDataset:
    return msgspec.structs.replace(
        dataset,
        facets=_without_unread(dataset.facets),
        input_facets=_without_unread(dataset.input_facets),
        output_facets=_without_unread(dataset.output_facets),
    )


def _without_unread(facets: Facets | None) -> Facets | None:
    return facets and {name: text for name, text in facets.items() if name in READ_FACETS}
