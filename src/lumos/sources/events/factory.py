"""Creates the event sources of watched sources."""

import logging
import os
from collections.abc import Iterable, Iterator

from lumos.config.settings import WatchedSource
from lumos.config.sources import FileSourceSettings, S3SourceSettings
from lumos.sources.events.folders import FolderEvents
from lumos.sources.events.interface import EventSource
from lumos.sources.events.sqs import SqsQueue, default_queue_name

_log = logging.getLogger(__name__)


def has_events(watched: WatchedSource) -> bool:
    """Whether this version can watch a source by events."""
    return isinstance(watched.source, FileSourceSettings | S3SourceSettings)


def create_event_sources(
    watched: Iterable[WatchedSource],
) -> Iterator[tuple[EventSource, list[WatchedSource]]]:
    """The event source of each watched source that is not only polled; sends no requests.

    Sources that name the same queue share one event source.
    """
    queues: dict[str, tuple[S3SourceSettings, list[WatchedSource]]] = {}
    for each in watched:
        source = each.source
        if each.watch_mode == "polling":
            continue
        if isinstance(source, FileSourceSettings):
            folders = [os.path.abspath(path) for path in source.paths]
            yield FolderEvents(", ".join(folders), folders), [each]
        elif isinstance(source, S3SourceSettings):
            names = [each.sqs_queue] if each.sqs_queue else map(default_queue_name, source.buckets)
            for name in names:
                queues.setdefault(name, (source, []))[1].append(each)
        else:
            _log.warning(
                "%s is polled every %d s: there are no events of '%s' sources.",
                source.name or source.type, each.polling_interval, source.type,
            )  # fmt: skip
    for name, (source, sources) in queues.items():
        yield SqsQueue(name, source), sources
