"""Storage events: which objects were written or deleted, from queues and from the kernel."""

from lumos.sources.events.interface import (
    Backlog,
    EventSource,
    EventSourceFailed,
    ObjectEvent,
    ReceivedMessage,
)

__all__ = ["Backlog", "EventSource", "EventSourceFailed", "ObjectEvent", "ReceivedMessage"]
