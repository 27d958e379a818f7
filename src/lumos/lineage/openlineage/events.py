"""Reads OpenLineage events from files: a JSON object, an array, or JSON lines, also gzipped."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Annotated, Any, Final, NamedTuple, cast

import msgspec

from lumos.errors import LumosError
from lumos.lineage.reported_lineage import LineageProblem
from lumos.model.json_codec import NestedTooDeeply, decode_json

# Limits against decompression bombs.
MAX_BYTES: Final = 2 * 1024**3
MAX_EVENT_BYTES: Final = 256 * 1024**2
_HEAD_BYTES: Final = 1000

NonEmptyText = Annotated[str, msgspec.Meta(min_length=1)]


class EventDataset(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A dataset in an event; facets are decoded later, so that an invalid one is harmless."""

    namespace: str
    name: NonEmptyText
    facets: dict[str, msgspec.Raw] | None = None
    input_facets: dict[str, msgspec.Raw] | None = None
    output_facets: dict[str, msgspec.Raw] | None = None


class EventJob(msgspec.Struct, frozen=True, kw_only=True):
    namespace: str
    name: NonEmptyText
    facets: dict[str, msgspec.Raw] | None = None


class EventRun(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    run_id: NonEmptyText
    facets: dict[str, msgspec.Raw] | None = None


class OpenLineageEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An event of a run, a job or a dataset; a run has several events."""

    event_time: datetime
    event_type: str | None = None
    run: EventRun | None = None
    job: EventJob | None = None
    inputs: list[EventDataset] | None = None
    outputs: list[EventDataset] | None = None
    dataset: EventDataset | None = None

    @property
    def at(self) -> datetime:
        """The time of the event; without a time zone it is UTC."""
        time = self.event_time
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


class EventsTooLarge(LumosError):
    """A file or event that exceeds the limits."""


class _EventsResponse(msgspec.Struct):
    """The response of an OpenLineage server."""

    events: list[msgspec.Raw]


def is_event(value: Any) -> bool:
    """Whether a decoded JSON object looks like an event, complete or not."""
    if not isinstance(value, dict):
        return False
    if isinstance(events := value.get("events"), list):
        return any(map(is_event, events[:1]))
    return "eventTime" in value and bool(value.keys() & {"job", "run", "dataset"})


def read_events(
    file: Path, *, name: str | None = None
) -> Iterator[OpenLineageEvent | LineageProblem]:
    """The events in a file, and a problem for each JSON text that is not an event.

    `name` is the name of the file in problems.
    """
    file_name = name or str(file)
    try:
        with _open(file) as stream:
            for line, text in _texts(stream, file_name):
                yield from _events(text, file_name, line)
    except (gzip.BadGzipFile, zlib.error, EOFError) as problem:
        yield LineageProblem(
            place=file_name, reason=f"The gzip file is incomplete or corrupt: {problem}."
        )
    except EventsTooLarge as problem:
        yield LineageProblem(place=file_name, reason=str(problem))


def _open(file: Path) -> IO[bytes]:
    with file.open("rb") as stream:
        is_gzip = stream.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(file)) if is_gzip else file.open("rb")


def _texts(stream: IO[bytes], file_name: str) -> Iterator[tuple[int, bytes]]:
    """The JSON texts of a stream, with their lines.

    If the first line is complete JSON, each line is a text; otherwise the stream is one text.
    """
    first = b""
    number = 0
    while not first.strip():
        first = stream.readline(MAX_EVENT_BYTES + 1)
        number += 1
        if not first:
            return
    if not _is_complete_json(first.removeprefix(b"\xef\xbb\xbf")):
        remaining = stream.read(MAX_EVENT_BYTES + 1)
        if len(remaining) > MAX_EVENT_BYTES:
            raise EventsTooLarge(_too_large(file_name))
        yield number, (first + remaining).removeprefix(b"\xef\xbb\xbf")
        return
    bytes_read = len(first)
    line = first.removeprefix(b"\xef\xbb\xbf")
    while line:
        if len(line) > MAX_EVENT_BYTES or bytes_read > MAX_BYTES:
            raise EventsTooLarge(_too_large(file_name))
        if line.strip():
            yield number, line
        line = stream.readline(MAX_EVENT_BYTES + 1)
        bytes_read += len(line)
        number += 1


def _too_large(file_name: str) -> str:
    return (
        f"{file_name} is too large: an event may have at most {MAX_EVENT_BYTES // 1024**2} MB, "
        f"a file {MAX_BYTES // 1024**3} GB. Split it."
    )


def _is_complete_json(line: bytes) -> bool:
    try:
        decode_json(line, msgspec.Raw)
    except NestedTooDeeply:
        # Reported as an unreadable event, so that the following lines are still read.
        return True
    except msgspec.DecodeError:
        return False
    return True


def _events(text: bytes, file_name: str, line: int) -> Iterator[OpenLineageEvent | LineageProblem]:
    for each in _unwrap(text):
        try:
            yield decode_json(each, OpenLineageEvent)
        except msgspec.MsgspecError as problem:
            reason = f"Not an OpenLineage event: {problem}."
            yield LineageProblem(place=file_name, line=line, reason=reason)


def _unwrap(text: bytes) -> Iterator[bytes | msgspec.Raw]:
    """The objects of an array or of a server's response, or the object itself."""
    # A text with errors is yielded as it is: decoding it as an event reports them.
    objects: list[msgspec.Raw] | None = None
    with suppress(msgspec.MsgspecError):
        if text.lstrip().startswith(b"["):
            objects = decode_json(text, list[msgspec.Raw])
        elif b'"events"' in text[:_HEAD_BYTES]:
            objects = decode_json(text, _EventsResponse).events
    yield from [text] if objects is None else objects


class DatasetKey(NamedTuple):
    namespace: str
    name: str
