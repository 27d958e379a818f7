"""Releases, and the refresh of each dataset after a release."""

from datetime import datetime
from typing import Literal

import msgspec

# waiting: the data is not expected yet, or is late. refreshed: the data after the release was
# scanned. given up: the data did not arrive in time. unscheduled: the dataset has no schedule.
RefreshState = Literal["waiting", "refreshed", "given up", "failed", "unscheduled"]


class DatasetSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a dataset, for comparing it before and after a release."""

    schema_version: str | None = None
    cloud_version: str | None = None
    columns: int = 0
    rows: int | None = None
    files: int | None = None
    bytes: int | None = None


class ReleaseRefresh(msgspec.Struct, frozen=True, kw_only=True):
    """The refresh of one dataset after a release.

    `run` is the time of the first run after the release, `partition` the name of the partition that
    it writes, and `available` the time when that is expected. `attempts` is the number of scans for
    it; the next scan is at `next_look`, and there is none after `give_up`.
    """

    urn: str
    state: RefreshState
    run: datetime | None = None
    partition: str | None = None
    available: datetime | None = None
    next_look: datetime | None = None
    give_up: datetime | None = None
    attempts: int = 0
    reason: str | None = None
    before: DatasetSummary = DatasetSummary()
    after: DatasetSummary | None = None
    changes: tuple[str, ...] = ()
    affected: tuple[str, ...] = ()
    updated_at: datetime | None = None


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """A release that was announced, and when."""

    name: str
    at: datetime
    created_at: datetime
    created_by: str
