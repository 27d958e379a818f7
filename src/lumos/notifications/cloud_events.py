"""CloudEvents 1.0 (https://github.com/cloudevents/spec) of change events."""

from collections.abc import Iterator
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from lumos.model.json_codec import to_json, to_plain
from lumos.model.report import FORMAT_VERSION
from lumos.schemas.changes import EventReport

STRUCTURED: Final = "application/cloudevents+json; charset=utf-8"
_DATA: Final = "application/json"
# The printable characters of ASCII except the space, the quotation mark and the percent sign.
_UNESCAPED: Final = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in ('"', "%"))


class CloudEvent(NamedTuple):
    """The attributes of an event, and its data as JSON."""

    attributes: dict[str, str | bool]
    data: bytes

    @property
    def id(self) -> str:
        """The id; it does not change if the event is sent again."""
        return str(self.attributes["id"])

    @property
    def subject(self) -> str:
        """The URN of the dataset."""
        return str(self.attributes["subject"])

    def structured(self) -> bytes:
        """The event as one JSON document, with the content type STRUCTURED."""
        return to_json({**self.attributes, "data": msgspec.Raw(self.data)})

    def texts(self) -> Iterator[tuple[str, str]]:
        """The attributes other than the content type as text, for the binary mode."""
        for name, value in self.attributes.items():
            if name != "datacontenttype":
                yield name, str(value).lower() if isinstance(value, bool) else value

    def binary_headers(self) -> dict[str, str]:
        """The headers of an HTTP request whose body is the data."""
        headers = {f"ce-{name}": quote(text, safe=_UNESCAPED) for name, text in self.texts()}
        return {"content-type": _DATA, **headers}

    def binary_fields(self) -> dict[str, str]:
        """The headers of a Kafka message, or the fields of a Redis message other than the data."""
        return {"content-type": _DATA, **{f"ce_{name}": text for name, text in self.texts()}}


def to_cloud_event(event: EventReport, *, position: int, source: str) -> CloudEvent:
    """Convert a change event; its data is the JSON that `lumos watch --json` prints.

    `sequence` is the position in the change log, padded so that its texts sort like numbers.
    """
    return CloudEvent(
        {
            "specversion": "1.0",
            "id": event.event_id,
            "source": source,
            "type": f"lumos.dataset.{event.type.value.lower()}",
            "subject": event.urn,
            "time": event.timestamp.isoformat().replace("+00:00", "Z"),
            "datacontenttype": _DATA,
            "sequence": f"{position:020}",
            "breaking": event.breaking,
        },
        to_json({"format_version": FORMAT_VERSION, **to_plain(event)}),
    )


def sample_event(id: str, *, source: str) -> CloudEvent:
    """An event that tests a subscriber; nothing has changed."""
    return CloudEvent(
        {
            "specversion": "1.0",
            "id": id,
            "source": source,
            "type": "lumos.test",
            "subject": "lumos:test",
            "datacontenttype": _DATA,
        },
        to_json({"format_version": FORMAT_VERSION}),
    )
