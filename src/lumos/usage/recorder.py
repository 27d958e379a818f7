"""Records reads from other sources than query logs, such as inputs of OpenLineage runs."""

import hashlib
from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import NamedTuple

import msgspec

from lumos.config.settings import UsageSettings
from lumos.lineage.reported_lineage import DatasetRead
from lumos.store import Store
from lumos.store.usage import UNKNOWN_COLUMNS, Reads
from lumos.usage.ingest import SKEW, refresh_usage
from lumos.usage.pseudonyms import reader_renamer


class RecordedReads(NamedTuple):
    """The number of reads counted now, and of those skipped because they are in the future."""

    counted: int
    ahead: int


def record_reads(
    store: Store,
    reporter: str,
    reads: Iterable[tuple[str, DatasetRead]],
    *,
    settings: UsageSettings,
    at: datetime,
) -> RecordedReads:
    """Count reads of datasets by URN.

    A run is counted as one read per dataset, whatever name it uses for the dataset. Without a run,
    reads by one reader at the same time are counted as one. Reads in the future are skipped.
    """
    rename = reader_renamer(settings)
    by_key = {_key(urn, read): (urn, read) for urn, read in reads}
    ahead = {key for key, (_, read) in by_key.items() if read.at > at + SKEW}
    with store.transaction() as transaction:
        usage = transaction.usage
        counted = set(store.usage.counted_keys_by(reporter))
        fresh = {key: each for key, each in by_key.items() if key not in counted | ahead}
        keys: dict[date, list[int]] = {}
        for key, (_, read) in fresh.items():
            keys.setdefault(_day(read), []).append(key)
        changed = usage.add(
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
    refresh_usage(store, changed, settings.retention_days, at=at)
    return RecordedReads(len(fresh), len(ahead))


def _day(read: DatasetRead) -> date:
    return read.at.astimezone(UTC).date()


def _key(urn: str, read: DatasetRead) -> int:
    if read.run is None:
        text = "\x1f".join((urn, read.reader, read.at.astimezone(UTC).isoformat()))
    else:
        # The name is stable; the URN changes once the dataset is known.
        text = "\x1f".join((read.run, msgspec.json.encode(read.dataset).decode()))
    return int.from_bytes(
        hashlib.blake2b(text.encode(), digest_size=8).digest(), "big", signed=True
    )
