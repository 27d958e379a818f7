"""Finds the time partitions in the paths of a dataset's files, and their arrival times (pure)."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from lumos.discovery.grouping.patterns import is_time_partition
from lumos.profiles.plan import SourceFile
from lumos.releases.windows import Granularity, PartitionTime, partition_time

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Arrivals(NamedTuple):
    """The time partitions, each with the time of its oldest file, or None if that is unknown.

    `newest` is the time of the newest file. `granularity` is that of most partitions, or None if
    there are no time partitions.
    """

    partitions: dict[PartitionTime, datetime | None]
    newest: datetime | None
    granularity: Granularity | None

    @property
    def known(self) -> dict[PartitionTime, datetime]:
        """The partitions with a known arrival time."""
        return {time: at for time, at in self.partitions.items() if at is not None}


def arrivals_of(files: Iterable[SourceFile]) -> Arrivals:
    """The arrivals of files with partition values."""
    partitions: dict[PartitionTime, datetime | None] = {}
    newest: datetime | None = None
    for file in files:
        at = None if file.modified is None else _EPOCH + timedelta(microseconds=file.modified)
        newest = at if newest is None else max(newest, at or newest)
        pairs = (part.partition("=") for part in file.partition.split("/") if part)
        values = [value for key, _, value in pairs if is_time_partition(key, value)]
        if (time := partition_time(values)) is None:
            continue
        known = partitions.get(time, at)
        partitions[time] = min(at, known) if at is not None and known is not None else at
    counts = Counter(time.granularity for time in partitions)
    return Arrivals(partitions, newest, counts.most_common(1)[0][0] if counts else None)
