"""Parses messages about objects: S3, SNS, EventBridge, MinIO, Google Pub/Sub and Event Grid.

Anybody who may write to a queue decides what a message contains, so sizes and nesting are limited,
and everything that is not as documented is a MalformedMessage.
"""

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import SplitResult, unquote, unquote_plus, urlsplit

import msgspec

from lumos.config.settings import StorageEventType
from lumos.sources.events.interface import ObjectEvent, ReceivedMessage

MAX_MESSAGE_BYTES: Final = 1024 * 1024
_MAX_RECORDS: Final = 10_000
_MAX_KEY_LENGTH: Final = 4096
# Subscribed SNS topics may wrap the message of S3 more than once.
_MAX_ENVELOPES: Final = 3
_EVENT_BRIDGE: Final = {
    "Object Created": StorageEventType.CREATED,
    "Object Deleted": StorageEventType.DELETED,
}
_PUB_SUB: Final = {
    "OBJECT_FINALIZE": StorageEventType.CREATED,
    "OBJECT_DELETE": StorageEventType.DELETED,
    "OBJECT_ARCHIVE": StorageEventType.DELETED,
}
_EVENT_GRID: Final = {
    "Microsoft.Storage.BlobCreated": StorageEventType.CREATED,
    "Microsoft.Storage.BlobDeleted": StorageEventType.DELETED,
    "Microsoft.Storage.BlobRenamed": StorageEventType.CREATED,
    "Microsoft.Storage.DirectoryDeleted": StorageEventType.DELETED,
    "Microsoft.Storage.DirectoryRenamed": StorageEventType.CREATED,
}
_CONTAINERS: Final = "/blobServices/default/containers/"


class MalformedMessage(ValueError):
    """A message that is not of any known format."""


def parse_message(body: str | bytes) -> tuple[ObjectEvent, ...]:
    """The events of a message; none if it is about something else, such as a test message."""
    return tuple(_events(_decode(body), envelopes=0))


def read_message(
    receipt: str,
    parse: Callable[[], tuple[ObjectEvent, ...]],
    *,
    sent_at: float | None,
    delivery: int = 1,
    id: str = "",
) -> ReceivedMessage:
    """A message with the events that `parse` returns, or marked as malformed; `id` is for logs."""
    received = ReceivedMessage(receipt, sent_at=sent_at, delivery=delivery)
    try:
        events = parse()
    except MalformedMessage as problem:
        return received._replace(outcome="malformed", reason=f"{id or receipt}, {problem}")
    return received._replace(outcome="events" if events else "ignored", events=events)


def _decode(body: str | bytes) -> Any:
    if len(body) > MAX_MESSAGE_BYTES:
        raise MalformedMessage(f"longer than {MAX_MESSAGE_BYTES} bytes")
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        pass
    try:
        # Azure encodes the messages of its queues.
        return msgspec.json.decode(base64.b64decode(body, validate=True))
    except (binascii.Error, ValueError, msgspec.DecodeError, RecursionError):
        raise MalformedMessage("not JSON") from None


def _events(message: Any, *, envelopes: int) -> Iterator[ObjectEvent]:
    match message:
        case {"Type": "Notification", "Message": str(inner)}:
            if envelopes == _MAX_ENVELOPES:
                raise MalformedMessage("too many SNS envelopes")
            yield from _events(_decode(inner), envelopes=envelopes + 1)
        case {"Type": "SubscriptionConfirmation" | "UnsubscribeConfirmation"}:
            return
        case {"Event": "s3:TestEvent"}:
            return
        case {"Records": [*records]}:
            _check_count(records)
            for record in records:
                yield from _s3_event(record)
        case {"source": str(source), "detail-type": str(kind), "detail": detail}:
            if source != "aws.s3":
                raise MalformedMessage("an EventBridge event that is not from S3")
            yield from _event_bridge_event(kind, detail, message.get("time"))
        case {"message": {"attributes": dict(attributes)}}:
            yield from pub_sub_events(attributes)
        case {"attributes": dict(attributes)}:
            yield from pub_sub_events(attributes)
        case [*items]:
            _check_count(items)
            for item in items:
                yield from _event_grid_events(item)
        case {"subject": str()}:
            yield from _event_grid_events(message)
        case _:
            raise MalformedMessage("of an unknown format")


def _check_count(records: list[Any]) -> None:
    if len(records) > _MAX_RECORDS:
        raise MalformedMessage(f"more than {_MAX_RECORDS} records")


def _s3_event(record: Any) -> Iterator[ObjectEvent]:
    """A record of S3 or MinIO, whose keys are encoded like a form."""
    match record:
        case {
            "eventName": str(name),
            "s3": {"bucket": {"name": str(bucket)}, "object": {"key": str(key)}},
        }:
            kind = _s3_type(name)
            if kind is not None:
                path = f"s3://{_bucket(bucket)}/{_key(unquote_plus, key)}"
                yield ObjectEvent(path, kind, _seconds(record.get("eventTime")))
        case {"eventName": str(name)} if _s3_type(name) is None:
            return
        case _:
            raise MalformedMessage("a record of S3 without a bucket or key")


def _s3_type(name: str) -> StorageEventType | None:
    """The type of an event; None for restores, tags, transitions and the like."""
    try:
        return StorageEventType(name)
    except ValueError:
        return None


def _event_bridge_event(kind: str, detail: Any, time: Any) -> Iterator[ObjectEvent]:
    """An event of EventBridge, whose keys are not encoded."""
    if kind not in _EVENT_BRIDGE:
        return
    match detail:
        case {"bucket": {"name": str(bucket)}, "object": {"key": str(key)}}:
            path = f"s3://{_bucket(bucket)}/{_key(str, key)}"
            yield ObjectEvent(path, _EVENT_BRIDGE[kind], _seconds(time))
        case _:
            raise MalformedMessage("an EventBridge event without a bucket or key")


def pub_sub_events(attributes: Mapping[str, Any]) -> Iterator[ObjectEvent]:
    """The event in the attributes of a notification of Google Cloud Storage."""
    match attributes:
        case {"eventType": str(kind), "bucketId": str(bucket), "objectId": str(key)}:
            if kind in _PUB_SUB:
                path = f"gs://{_bucket(bucket)}/{_key(str, key)}"
                yield ObjectEvent(path, _PUB_SUB[kind], _seconds(attributes.get("eventTime")))
        case _:
            raise MalformedMessage("a Pub/Sub message without eventType, bucketId or objectId")


def _event_grid_events(item: Any) -> Iterator[ObjectEvent]:
    """An event of Event Grid, in its own schema or as a CloudEvent."""
    match item:
        case {"subject": str(subject), "data": dict(data)}:
            kind = str(item.get("eventType") or item.get("type") or "")
            if kind == "Microsoft.EventGrid.SubscriptionValidationEvent":
                return
        case _:
            raise MalformedMessage("an Event Grid event without a subject or data")
    if not kind.startswith("Microsoft.Storage."):
        raise MalformedMessage("an Event Grid event that is not about a storage account")
    if kind not in _EVENT_GRID:
        return
    at = _seconds(item.get("eventTime") or item.get("time"))
    host = _url(data.get("url") or data.get("destinationUrl") or data.get("sourceUrl")).hostname
    container, _, key = subject.removeprefix(_CONTAINERS).partition("/blobs/")
    if not subject.startswith(_CONTAINERS) or not host:
        raise MalformedMessage("an Event Grid event without a container or account")
    folder = "/" if kind.startswith("Microsoft.Storage.Directory") else ""
    base = f"abfss://{_bucket(container)}@{host.replace('.blob.', '.dfs.')}/"
    yield ObjectEvent(f"{base}{_key(str, key)}{folder}", _EVENT_GRID[kind], at)
    if kind.endswith("Renamed") and "sourceUrl" in data:
        # The old name is gone; the path of a URL starts with the container.
        old_key = unquote(_url(data["sourceUrl"]).path).removeprefix(f"/{container}/")
        yield ObjectEvent(f"{base}{_key(str, old_key)}{folder}", StorageEventType.DELETED, at)


def _url(text: object) -> SplitResult:
    try:
        return urlsplit(text if isinstance(text, str) else "")
    except ValueError:
        raise MalformedMessage("an impossible URL") from None


def _bucket(name: str) -> str:
    if not name or "/" in name:
        raise MalformedMessage("an impossible bucket name")
    return name


def _key(decode: Any, key: str) -> str:
    try:
        decoded: str = decode(key, errors="strict") if decode is unquote_plus else key
    except UnicodeDecodeError:
        raise MalformedMessage("a key that is not UTF-8") from None
    if not decoded or len(decoded) > _MAX_KEY_LENGTH or "\0" in decoded:
        raise MalformedMessage("an impossible key")
    return decoded


def _seconds(text: Any) -> float | None:
    """A time as seconds since 1970; None if it is missing or not a time."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo is not None else None
