"""Reads that others than query logs tell of, such as the inputs of OpenLineage's runs."""

import hashlib
from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import NamedTuple

import msgspec

from lumos.config.settings import UsageSettings
from lumos.lineage.reported_lineage import DatasetRead
from lumos.store import Store
from lumos.store.usage import UNKNOWN_COLUMNS, Reads
from lumos.usage.ingest import SKEW, settle
from lumos.usage.readers import naming


class Recorded(NamedTuple):
    """How many reads are counted now, and how many never, since they lie in the future."""

    counted: int
    ahead: int


def record_reads(
    store: Store,
    reporter: str,
    reads: Iterable[tuple[str, DatasetRead]],
    *,
    settings: UsageSettings,
    at: datetime,
) -> Recorded:
    """Counts reads of datasets by their URNs.

    A run's read of a dataset, by whichever name it is told, is one read, and so is what a reader
    without runs read at one moment. What lies in the future was not read yet.
    """
    rename = naming(settings)
    keyed = {_key(urn, read): (urn, read) for urn, read in reads}
    ahead = {key for key, (_, read) in keyed.items() if read.at > at + SKEW}
    with store.transaction() as transaction:
        usage = transaction.usage
        counted = set(store.usage.counted_by(reporter))
        fresh = {key: each for key, each in keyed.items() if key not in counted | ahead}
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
    return Recorded(len(fresh), len(ahead))


def _day(read: DatasetRead) -> date:
    return read.at.astimezone(UTC).date()


def _key(urn: str, read: DatasetRead) -> int:
    if read.run is None:
        text = "\x1f".join((urn, read.reader, read.at.astimezone(UTC).isoformat()))
    else:
        # The URN may be another one once the name has found its dataset.
        text = "\x1f".join((read.run, msgspec.json.encode(read.dataset).decode()))
    return int.from_bytes(
        hashlib.blake2b(text.encode(), digest_size=8).digest(), "big", signed=True
    )
