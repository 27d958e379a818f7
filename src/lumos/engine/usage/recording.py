"""Reads that others than query logs tell of, such as the inputs of OpenLineage's runs."""

import hashlib
from collections.abc import Iterable
from datetime import UTC, date, datetime

from lumos.config.settings import UsageSettings
from lumos.engine.usage.ingesting import settle
from lumos.engine.usage.readers import naming
from lumos.lineage.reported import Read
from lumos.store import Store
from lumos.store.usage import UNKNOWN_COLUMNS, Reads


def record_reads(
    store: Store,
    reporter: str,
    reads: Iterable[tuple[str, Read]],
    *,
    settings: UsageSettings,
    at: datetime,
) -> int:
    """Counts reads of datasets by their URNs; gives how many were new.

    The same reader's read of the same dataset at the same moment is the same read.
    """
    rename = naming(settings)
    keyed = {_key(urn, read): (urn, read) for urn, read in reads}
    days = {_day(read) for _, read in keyed.values()}
    with store.transaction() as transaction:
        usage = transaction.usage
        counted = set(store.usage.counted(days))
        fresh = {key: each for key, each in keyed.items() if key not in counted}
        keys: dict[date, list[int]] = {}
        for key, (_, read) in fresh.items():
            keys.setdefault(_day(read), []).append(key)
        touched = usage.add(
            reporter,
            [
                Reads(
                    urn,
                    _day(read),
                    rename(read.reader) if rename else read.reader,
                    read.times,
                    read.at.astimezone(UTC),
                    read.bytes,
                    read.rows,
                    dict.fromkeys(read.columns or (UNKNOWN_COLUMNS,), read.times),
                )
                for urn, read in fresh.values()
            ],
        )
        usage.count(reporter, keys)
    settle(store, touched, settings.retention_days, at=at)
    return len(fresh)


def _day(read: Read) -> date:
    return read.at.astimezone(UTC).date()


def _key(urn: str, read: Read) -> int:
    text = "\x1f".join((urn, read.reader, read.at.astimezone(UTC).isoformat()))
    return int.from_bytes(
        hashlib.blake2b(text.encode(), digest_size=8).digest(), "big", signed=True
    )
