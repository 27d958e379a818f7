"""Reads events from files: one JSON object, an array of them, or one to a line, also gzipped."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Annotated, Any, Final, cast

import msgspec

from lumos.errors import LumosError
from lumos.lineage.reported import Problem
from lumos.model.json_codec import NestedTooDeeply, decode_json

# What a small gzipped file may become, and how long one event may be.
MAX_BYTES: Final = 2 * 1024**3
MAX_EVENT: Final = 256 * 1024**2
_HEAD: Final = 1000

Text = Annotated[str, msgspec.Meta(min_length=1)]


class DatasetPart(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A dataset in an event; facets are read one by one, so that a broken one harms no other."""

    namespace: str
    name: Text
    facets: dict[str, msgspec.Raw] | None = None
    input_facets: dict[str, msgspec.Raw] | None = None
    output_facets: dict[str, msgspec.Raw] | None = None


class JobPart(msgspec.Struct, frozen=True, kw_only=True):
    namespace: str
    name: Text
    facets: dict[str, msgspec.Raw] | None = None


class RunPart(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    run_id: Text
    facets: dict[str, msgspec.Raw] | None = None


class Event(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A run, a job or a dataset at some time; of a run there are several events."""

    event_time: datetime
    event_type: str | None = None
    run: RunPart | None = None
    job: JobPart | None = None
    inputs: list[DatasetPart] | None = None
    outputs: list[DatasetPart] | None = None
    dataset: DatasetPart | None = None

    @property
    def at(self) -> datetime:
        """When it happened; a time without a zone is UTC."""
        time = self.event_time
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


class TooLarge(LumosError):
    """A file that holds more than anybody would want to read."""


class _Wrapped(msgspec.Struct):
    """What a server of events answers with."""

    events: list[msgspec.Raw]


def is_event(value: Any) -> bool:
    """Whether a decoded JSON object looks like an event, however complete."""
    if not isinstance(value, dict):
        return False
    if isinstance(events := value.get("events"), list):
        return any(map(is_event, events[:1]))
    return "eventTime" in value and bool(value.keys() & {"job", "run", "dataset"})


def read_events(file: Path, *, name: str | None = None) -> Iterator[Event | Problem]:
    """The events of a file; what is none is a problem with its line, and the rest goes on.

    `name` is what the file is called in problems.
    """
    place = name or str(file)
    try:
        with _opened(file) as stream:
            for line, text in _texts(stream, place):
                yield from _events(text, place, line)
    except (gzip.BadGzipFile, zlib.error, EOFError) as problem:
        yield Problem(place=place, reason=f"The file is no whole gzip file: {problem}.")
    except TooLarge as problem:
        yield Problem(place=place, reason=str(problem))


def _opened(file: Path) -> IO[bytes]:
    with file.open("rb") as stream:
        is_gzip = stream.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(file)) if is_gzip else file.open("rb")


def _texts(stream: IO[bytes], place: str) -> Iterator[tuple[int, bytes]]:
    """The JSON texts of a stream with their lines: one to a line where the first line is whole."""
    first = b""
    number = 0
    while not first.strip():
        first = stream.readline(MAX_EVENT + 1)
        number += 1
        if not first:
            return
    if not _is_whole(first.removeprefix(b"\xef\xbb\xbf")):
        rest = stream.read(MAX_EVENT + 1)
        if len(rest) > MAX_EVENT:
            raise TooLarge(_too_large(place))
        yield number, (first + rest).removeprefix(b"\xef\xbb\xbf")
        return
    read = len(first)
    line = first.removeprefix(b"\xef\xbb\xbf")
    while line:
        if len(line) > MAX_EVENT or read > MAX_BYTES:
            raise TooLarge(_too_large(place))
        if line.strip():
            yield number, line
        line = stream.readline(MAX_EVENT + 1)
        read += len(line)
        number += 1


def _too_large(place: str) -> str:
    return (
        f"{place} is too large: an event may have {MAX_EVENT // 1024**2} MB and a file "
        f"{MAX_BYTES // 1024**3} GB. Split it."
    )


def _is_whole(line: bytes) -> bool:
    try:
        decode_json(line, msgspec.Raw)
    except NestedTooDeeply:
        # Reported as an event that cannot be read, so that the lines after it still are.
        return True
    except msgspec.DecodeError:
        return False
    return True


def _events(text: bytes, place: str, line: int) -> Iterator[Event | Problem]:
    for each in _unwrapped(text):
        try:
            yield decode_json(each, Event)
        except msgspec.MsgspecError as problem:
            reason = f"This is no OpenLineage event: {problem}."
            yield Problem(place=place, line=line, reason=reason)


def _unwrapped(text: bytes) -> Iterator[bytes | msgspec.Raw]:
    """The objects of an array or of a server's answer, or the object itself."""
    # Whatever is wrong with it is said by whoever reads it as one event.
    several: list[msgspec.Raw] | None = None
    with suppress(msgspec.MsgspecError):
        if text.lstrip().startswith(b"["):
            several = decode_json(text, list[msgspec.Raw])
        elif b'"events"' in text[:_HEAD]:
            several = decode_json(text, _Wrapped).events
    yield from [text] if several is None else several
