"""Creates the event sources of watched sources."""

import logging
import os
from collections.abc import Iterable, Iterator, Sequence

from lumos.config.settings import WatchedSource
from lumos.config.sources import (
    FileSourceSettings,
    PostgresSourceSettings,
    S3SourceSettings,
    SourceSettings,
)
from lumos.errors import MisuseError
from lumos.sources.addresses import is_address, section_of
from lumos.sources.events.folders import FolderEvents
from lumos.sources.events.interface import EventSource
from lumos.sources.events.s3_setup import setup_bucket, teardown_bucket
from lumos.sources.events.setup_report import EventSetupReport
from lumos.sources.events.sqs import SqsQueue, default_queue_name

_log = logging.getLogger(__name__)


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
        elif isinstance(source, PostgresSourceSettings):
            # Imported late: its driver is only needed for this source.
            from lumos.sources.events.postgres import PostgresNotifications

            yield PostgresNotifications(source), [each]
        else:
            _log.warning(
                "%s is polled every %d s: there are no events of '%s' sources.",
                source.name or source.type, each.polling_interval, source.type,
            )  # fmt: skip
    for name, (source, sources) in queues.items():
        yield SqsQueue(name, source), sources


def setup_events(
    address: str, configured: Sequence[SourceSettings], *, dry_run: bool
) -> EventSetupReport:
    """Let a bucket or database send events."""
    section = _section(address, configured)
    if isinstance(section, PostgresSourceSettings):
        from lumos.sources.events.postgres import setup_trigger

        return setup_trigger(section, dry_run=dry_run)
    return setup_bucket(address, configured, dry_run=dry_run)


def teardown_events(
    address: str, configured: Sequence[SourceSettings], *, dry_run: bool
) -> EventSetupReport:
    """Remove what `setup_events` has created."""
    section = _section(address, configured)
    if isinstance(section, PostgresSourceSettings):
        from lumos.sources.events.postgres import teardown_trigger

        return teardown_trigger(section, dry_run=dry_run)
    return teardown_bucket(address, configured, dry_run=dry_run)


def _section(address: str, configured: Sequence[SourceSettings]) -> SourceSettings:
    section = section_of(address, configured) if is_address(address) else None
    if not isinstance(section, S3SourceSettings | PostgresSourceSettings):
        raise MisuseError(
            f"'{address}' is neither an S3 bucket nor a PostgreSQL database. Name one: lumos watch "
            "setup s3://my-bucket"
        )
    return section
