"""A dataset and its aspects, each of which is read, written and compared separately."""

from datetime import date, datetime
from typing import Final, Literal

import msgspec

from lumos.model.lineage import ColumnMapping, ColumnUse, LineageType
from lumos.model.schema import Schema

Properties = dict[str, str]

# Defaults that are normalized to one object: msgspec omits a default from JSON only if the value is
# the identical object, and equal values must have the same JSON.
_DEFAULT_OWNER_TYPE: Final = "TECHNICAL_OWNER"
_DEFAULT_TIMEZONE: Final = "UTC"


class Aspect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of a dataset's metadata that is written independently."""


class Location(Aspect, frozen=True, kw_only=True):
    """The location and partitioning of the data.

    `identity` is a stable id within the source that survives a rename.
    """

    uri: str
    partitioning: str | None = None
    partition_keys: tuple[str, ...] = ()
    identity: str | None = None


class ColumnStatistics(Aspect, frozen=True, kw_only=True):
    """Column statistics from file footers; minimum and maximum only for numbers and times."""

    null_count: int | None = None
    compressed_bytes: int | None = None
    minimum: str | None = None
    maximum: str | None = None


class Statistics(Aspect, frozen=True, kw_only=True):
    """Size and age of the live data files, or of a table.

    `bytes_by_class` is the size by storage class, if known. `alternating` means that writers with
    different schemas write in turns. `partition_count` is the number of partitions in a metastore.
    """

    file_count: int = 0
    total_size_bytes: int = 0
    total_size_exact: bool = True
    bytes_by_class: dict[str, int] = {}
    row_count: int | None = None
    row_count_exact: bool = False
    last_modified: datetime | None = None
    columns: dict[str, ColumnStatistics] = {}
    alternating: bool = False
    partition_count: int | None = None


class Definition(Aspect, frozen=True, kw_only=True):
    """The query of a view in the dialect of its platform."""

    sql: str
    dialect: str


class DriftedShape(Aspect, frozen=True, kw_only=True):
    """A schema that differs from the schema of the dataset, and the files that have it."""

    shape: str
    file_count: int
    examples: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    first_seen: datetime | None = None
    last_seen: datetime | None = None


class UpstreamEdge(Aspect, frozen=True, kw_only=True):
    """An upstream dataset."""

    urn: str
    type: LineageType = "TRANSFORMED"
    columns: tuple[ColumnMapping, ...] = ()
    uses: tuple[ColumnUse, ...] = ()


class Lineage(Aspect, frozen=True, kw_only=True):
    """Upstream and downstream datasets."""

    upstream: tuple[UpstreamEdge, ...] = ()
    downstream: tuple[UpstreamEdge, ...] = ()


class Owner(Aspect, frozen=True, kw_only=True):
    """A user or group with an ownership type."""

    name: str
    kind: Literal["user", "group"] = "user"
    type: str = _DEFAULT_OWNER_TYPE

    def __post_init__(self) -> None:
        if self.type == _DEFAULT_OWNER_TYPE:
            msgspec.structs.force_setattr(self, "type", _DEFAULT_OWNER_TYPE)


class Ownership(Aspect, frozen=True, kw_only=True):
    """The owners of a dataset."""

    owners: tuple[Owner, ...] = ()


class Governance(Aspect, frozen=True, kw_only=True):
    """Tags, glossary terms and compliance labels."""

    tags: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    compliance: tuple[str, ...] = ()


class Documentation(Aspect, frozen=True, kw_only=True):
    """Description, business context and domain."""

    description: str | None = None
    business_context: str | None = None
    domain: str | None = None


class VersionRecord(Aspect, frozen=True, kw_only=True):
    """One step of a dataset's history.

    The schema is omitted if it is unknown or equal to the current one.
    """

    cloud_version: str
    schema_version: str
    at: datetime
    changes: tuple[str, ...] = ()
    author: str | None = None
    breaking: bool = False
    schema: Schema | None = None


class Versioning(Aspect, frozen=True, kw_only=True):
    """The current versions of a dataset and its history."""

    cloud_version: str
    schema_version: str
    history: tuple[VersionRecord, ...] = ()


class Schedule(Aspect, frozen=True, kw_only=True):
    """The schedule of new data."""

    cron: str
    timezone: str = _DEFAULT_TIMEZONE
    availability_lag_minutes: int = 0

    def __post_init__(self) -> None:
        if self.timezone == _DEFAULT_TIMEZONE:
            msgspec.structs.force_setattr(self, "timezone", _DEFAULT_TIMEZONE)


class Reader(Aspect, frozen=True, kw_only=True):
    """One consumer's reads in the usage period."""

    name: str
    reads: int = 0
    bytes: int | None = None
    rows: int | None = None
    last_read: datetime | None = None


class ColumnReads(Aspect, frozen=True, kw_only=True):
    """The number of reads of a column, and the day of the last one."""

    reads: int = 0
    last_read: date | None = None


class Usage(Aspect, frozen=True, kw_only=True):
    """The reads of a dataset since `since`; the column `*` means unknown columns."""

    readers: tuple[Reader, ...] = ()
    last_accessed: datetime | None = None
    since: date | None = None
    columns: dict[str, ColumnReads] = {}


class QualityCheck(Aspect, frozen=True, kw_only=True):
    """One named expectation and its last result."""

    name: str
    status: Literal["PASSED", "WARNING", "FAILED"]
    details: str | None = None


class ValueCount(Aspect, frozen=True, kw_only=True):
    """A frequent value and its minimum number of rows."""

    value: str
    count: int


class ColumnProfile(Aspect, frozen=True, kw_only=True):
    """The profile of one column, or of one member of a struct.

    `misfits` are values that do not match the column's type. Lengths are lengths of texts, bytes,
    lists and maps. Values are only recorded if the privacy rules allow it.
    """

    nulls: int = 0
    nans: int = 0
    misfits: int = 0
    distinct: int | None = None
    minimum: str | None = None
    maximum: str | None = None
    mean: str | None = None
    stddev: float | None = None
    quantiles: dict[str, str] = {}
    top: tuple[ValueCount, ...] = ()
    shortest: int | None = None
    longest: int | None = None
    mean_length: float | None = None
    elements: int | None = None
    null_elements: int | None = None


class Profile(Aspect, frozen=True, kw_only=True):
    """The profile of the rows of a dataset.

    `sampled` is the share of the data that was read, or None for all data. `unread` is the number
    of files that could not be read.
    """

    measured_at: datetime
    rows: int
    files: int = 0
    unread: int = 0
    sampled: float | None = None
    columns: dict[str, ColumnProfile] = {}


class Quality(Aspect, frozen=True, kw_only=True):
    """Measured or imported data quality; scores are from 0 to 1.

    `freshness` is the time of the newest data. Lumos measures the `profile`; the other values are
    results of a validator.
    """

    score: float | None = None
    measured_at: datetime | None = None
    freshness: datetime | None = None
    validator: str | None = None
    dimensions: dict[str, float] = {}
    checks: tuple[QualityCheck, ...] = ()
    profile: Profile | None = None


class Cost(Aspect, frozen=True, kw_only=True):
    """The cost of a dataset in a period, by cost type."""

    currency: str
    period: str
    own: dict[str, float] = {}
    attributed: dict[str, float] = {}
    calculated_at: datetime | None = None


class Dataset(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The identity of a dataset and its known aspects."""

    urn: str
    name: str
    platform: str
    format: str | None = None
    location: Location | None = None
    schema: Schema | None = None
    statistics: Statistics | None = None
    drift: tuple[DriftedShape, ...] | None = None
    definition: Definition | None = None
    lineage: Lineage | None = None
    ownership: Ownership | None = None
    governance: Governance | None = None
    documentation: Documentation | None = None
    properties: Properties | None = None
    versioning: Versioning | None = None
    schedule: Schedule | None = None
    usage: Usage | None = None
    quality: Quality | None = None
    cost: Cost | None = None


IDENTITY = ("urn", "name", "platform", "format")
ASPECTS = tuple(name for name in Dataset.__struct_fields__ if name not in IDENTITY)
