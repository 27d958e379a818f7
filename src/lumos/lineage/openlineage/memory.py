"""What is remembered of a job's events, so that it does not matter which of them come together.

Kept are the events of the runs that count; of these, those that no later one says again.
"""

import zlib
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from lumos.lineage.openlineage.events import DatasetPart, Event
from lumos.lineage.openlineage.facets import READ
from lumos.lineage.openlineage.runs import Facets, state_of

_decoder: Final = msgspec.json.Decoder(list[Event])


def recalled(memory: bytes | None) -> list[Event]:
    """The events in a memory."""
    return [] if memory is None else _decoder.decode(zlib.decompress(memory))


def memory_of(events: Iterable[Event], runs: Collection[str | None]) -> bytes:
    """A memory of the events of some runs."""
    by_run: dict[str | None, dict[tuple[datetime, bytes], Event]] = {}
    for event in events:
        run = None if event.run is None else event.run.run_id
        if run in runs:
            needed = _stripped(event)
            by_run.setdefault(run, {})[event.at, _content(needed)] = needed
    kept = [
        event for _, some in sorted(by_run.items(), key=lambda pair: pair[0] or "")
        for event in _needed(some)
    ]  # fmt: skip
    return zlib.compress(msgspec.json.encode(kept))


def _needed(events: Mapping[tuple[datetime, bytes], Event]) -> list[Event]:
    """The first event, since the run began with it, and of those that are alike the last."""
    ordered = sorted(events)
    last = {content: at for at, content in ordered}
    return [
        events[key]
        for number, key in enumerate(ordered)
        if number == 0 or last[key[1]] == key[0]
    ]  # fmt: skip


def _content(event: Event) -> bytes:
    """All that an event says but when."""
    parts = (event.job, event.run, event.inputs, event.outputs, event.dataset, state_of(event))
    return msgspec.json.encode(parts)


def _stripped(event: Event) -> Event:
    """An event with those facets alone that are ever read."""
    replace = msgspec.structs.replace
    return replace(
        event,
        run=event.run and replace(event.run, facets=_read(event.run.facets)),
        job=event.job and replace(event.job, facets=_read(event.job.facets)),
        inputs=event.inputs and [_part(each) for each in event.inputs],
        outputs=event.outputs and [_part(each) for each in event.outputs],
        dataset=event.dataset and _part(event.dataset),
    )


def _part(part: DatasetPart) -> DatasetPart:
    return msgspec.structs.replace(
        part,
        facets=_read(part.facets),
        input_facets=_read(part.input_facets),
        output_facets=_read(part.output_facets),
    )


def _read(facets: Facets | None) -> Facets | None:
    return facets and {name: text for name, text in facets.items() if name in READ}
