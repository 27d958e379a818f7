"""Creates the event sources of watched sources."""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from lumos.config.settings import EventWebhook, WatchedSource
from lumos.config.sources import (
    AzureSourceSettings,
    FileSourceSettings,
    GcsSourceSettings,
    HdfsSourceSettings,
    PostgresSourceSettings,
    S3SourceSettings,
    SourceSettings,
)
from lumos.errors import LumosError, MisuseError
from lumos.sources.addresses import is_address, section_of
from lumos.sources.events.azure_queue import AzureQueue
from lumos.sources.events.folders import FolderEvents
from lumos.sources.events.hdfs import HdfsChanges
from lumos.sources.events.interface import EventSource
from lumos.sources.events.pubsub import PubSubSubscription
from lumos.sources.events.s3_setup import setup_bucket, teardown_bucket
from lumos.sources.events.setup_report import EventSetupReport
from lumos.sources.events.sqs import SqsQueue, default_queue_name
from lumos.sources.events.webhook import WebhookEvents

_log = logging.getLogger(__name__)


def create_event_sources(
    watched: Iterable[WatchedSource], *, state: str = ""
) -> Iterator[tuple[EventSource, list[WatchedSource]]]:
    """The event source of each watched source that is not only polled; sends no requests.

    Sources that name the same queue or webhook share one event source. Webhooks keep messages in
    the folder `state`, if it is on this machine.
    """
    webhooks: dict[str, tuple[EventWebhook, list[WatchedSource]]] = {}
    queues: dict[str, tuple[S3SourceSettings, list[WatchedSource]]] = {}
    for each in watched:
        source = each.source
        if each.watch_mode == "polling":
            continue
        if isinstance(source, FileSourceSettings):
            folders = [os.path.abspath(path) for path in source.paths]
            yield FolderEvents(", ".join(folders), folders), [each]
        elif isinstance(source, S3SourceSettings) and each.event_webhook is not None:
            webhook = each.event_webhook
            webhooks.setdefault(webhook.listen, (webhook, []))[1].append(each)
        elif isinstance(source, S3SourceSettings):
            for bucket in source.buckets[:1] if each.sqs_queue else source.buckets:
                name = each.sqs_queue or default_queue_name(bucket)
                # Errors name the bucket of the queue.
                one = msgspec.structs.replace(source, buckets=(bucket,))
                queues.setdefault(name, (one, []))[1].append(each)
        elif isinstance(source, AzureSourceSettings) and each.storage_queue:
            yield from _yield_created(partial(AzureQueue, each.storage_queue, source), [each])
        elif isinstance(source, GcsSourceSettings) and each.pubsub_subscription:
            yield from _yield_created(
                partial(PubSubSubscription, each.pubsub_subscription, source), [each]
            )
        elif isinstance(source, HdfsSourceSettings):
            yield HdfsChanges(source), [each]
        elif isinstance(source, PostgresSourceSettings):
            # Imported late: its driver is only needed for this source.
            from lumos.sources.events.postgres import PostgresNotifications

            yield PostgresNotifications(source), [each]
        else:
            _log.warning(
                "%s is polled every %d s: %s.",
                source.name or source.type, each.polling_interval, _without_events(source),
            )  # fmt: skip
    for webhook, sources in webhooks.values():
        yield WebhookEvents(webhook, _message_folder(webhook, state)), sources
    for name, (source, sources) in queues.items():
        yield from _yield_created(partial(SqsQueue, name, source), sources)


def _yield_created(
    create: Callable[[], EventSource], watched: list[WatchedSource]
) -> Iterator[tuple[EventSource, list[WatchedSource]]]:
    """Yield the event source; if its settings are invalid, log a warning, so that others work."""
    try:
        events = create()
    except (LumosError, OSError) as problem:
        for each in watched:
            _log.warning(
                "%s is polled every %d s: %s",
                each.source.name or each.source.type, each.polling_interval, problem,
            )  # fmt: skip
    else:
        yield events, watched


def _without_events(source: SourceSettings) -> str:
    """Why there are no events of a source."""
    if isinstance(source, AzureSourceSettings):
        return "set storage_queue to a queue that receives its events"
    if isinstance(source, GcsSourceSettings):
        return "set pubsub_subscription to a subscription that receives its events"
    return f"there are no events of '{source.type}' sources"


def _message_folder(webhook: EventWebhook, state: str) -> Path:
    if webhook.folder is None and (not state or "://" in state):
        raise MisuseError(
            f"The webhook {webhook.listen} keeps messages on this machine, and state_uri is not a "
            "local folder. Set event_webhook.folder."
        )
    return Path(webhook.folder or f"{state}/watch")


def setup_events(
    address: str, configured: Sequence[SourceSettings], *, dry_run: bool
) -> EventSetupReport:
    """Set up a bucket or database so that it sends events."""
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
