"""A dataset and its aspects; each aspect is read, written, compared and carried on its own."""

from datetime import date, datetime
from typing import Final, Literal

import msgspec

from lumos.model.lineage import ColumnMapping, ColumnUse, LineageType
from lumos.model.schema import Schema

Properties = dict[str, str]

# A default is left out of JSON only where it is the very same object, and the same value shall
# always give the same JSON.
_OWNER_TYPE: Final = "TECHNICAL_OWNER"
_TIMEZONE: Final = "UTC"


class Aspect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One independently written part of what is known about a dataset."""


class Location(Aspect, frozen=True, kw_only=True):
    """Where the data lies and how it is partitioned.

    `identity` is what the place itself tells a dataset by, and which outlives a rename.
    """

    uri: str
    partitioning: str | None = None
    partition_keys: tuple[str, ...] = ()
    identity: str | None = None


class ColumnStatistics(Aspect, frozen=True, kw_only=True):
    """What footers say of one column; minimum and maximum only for numbers and times."""

    null_count: int | None = None
    compressed_bytes: int | None = None
    minimum: str | None = None
    maximum: str | None = None


class Statistics(Aspect, frozen=True, kw_only=True):
    """Size and age of the live data files, or of a table.

    `bytes_by_class` is its size by storage class, where the storage tells. `alternating` says that
    writers with different schemas take turns.
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


class Definition(Aspect, frozen=True, kw_only=True):
    """The query that a view shows the result of, in its platform's dialect."""

    sql: str
    dialect: str


class DriftedShape(Aspect, frozen=True, kw_only=True):
    """A schema that some files of the dataset still have beside the dataset's own."""

    shape: str
    file_count: int
    examples: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    first_seen: datetime | None = None
    last_seen: datetime | None = None


class UpstreamEdge(Aspect, frozen=True, kw_only=True):
    """A dataset this one is made from."""

    urn: str
    type: LineageType = "TRANSFORMED"
    columns: tuple[ColumnMapping, ...] = ()
    uses: tuple[ColumnUse, ...] = ()


class Lineage(Aspect, frozen=True, kw_only=True):
    """What a dataset is made from and what is made from it."""

    upstream: tuple[UpstreamEdge, ...] = ()
    downstream: tuple[UpstreamEdge, ...] = ()


class Owner(Aspect, frozen=True, kw_only=True):
    """A user or a group and the kind of responsibility."""

    name: str
    kind: Literal["user", "group"] = "user"
    type: str = _OWNER_TYPE

    def __post_init__(self) -> None:
        if self.type == _OWNER_TYPE:
            msgspec.structs.force_setattr(self, "type", _OWNER_TYPE)


class Ownership(Aspect, frozen=True, kw_only=True):
    """Who answers for the dataset."""

    owners: tuple[Owner, ...] = ()


class Governance(Aspect, frozen=True, kw_only=True):
    """Labels that rules hang on."""

    tags: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    compliance: tuple[str, ...] = ()


class Documentation(Aspect, frozen=True, kw_only=True):
    """What people should know before they use the data."""

    description: str | None = None
    business_context: str | None = None
    domain: str | None = None


class VersionRecord(Aspect, frozen=True, kw_only=True):
    """One step of a dataset's history.

    The schema is left out where it is not known, and where it is the dataset's present one.
    """

    cloud_version: str
    schema_version: str
    at: datetime
    changes: tuple[str, ...] = ()
    author: str | None = None
    breaking: bool = False
    schema: Schema | None = None


class Versioning(Aspect, frozen=True, kw_only=True):
    """The dataset's present versions and how it came to them."""

    cloud_version: str
    schema_version: str
    history: tuple[VersionRecord, ...] = ()


class Schedule(Aspect, frozen=True, kw_only=True):
    """When new data is expected."""

    cron: str
    timezone: str = _TIMEZONE
    availability_lag_minutes: int = 0

    def __post_init__(self) -> None:
        if self.timezone == _TIMEZONE:
            msgspec.structs.force_setattr(self, "timezone", _TIMEZONE)


class Reader(Aspect, frozen=True, kw_only=True):
    """One consumer's reads in the usage period."""

    name: str
    reads: int = 0
    bytes: int | None = None
    rows: int | None = None
    last_read: datetime | None = None


class ColumnReads(Aspect, frozen=True, kw_only=True):
    """How often a column was read, and on which day last."""

    reads: int = 0
    last_read: date | None = None


class Usage(Aspect, frozen=True, kw_only=True):
    """Who read what and when, as far back as `since`; a column `*` stands for columns unknown."""

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
    """A value that many rows have, and how many have it at least."""

    value: str
    count: int


class ColumnProfile(Aspect, frozen=True, kw_only=True):
    """What was measured of the values of one column, or of one member of a struct.

    `misfits` are values that are not of the column's type. Lengths are those of texts, bytes, lists
    and maps. Values themselves are there only as far as the rules on privacy let them be kept.
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
    """What the rows themselves say of their columns.

    `sampled` is the share of the data that was read, where it was not all; of `unread` files
    nothing is known, since they could not be read.
    """

    measured_at: datetime
    rows: int
    files: int = 0
    unread: int = 0
    sampled: float | None = None
    columns: dict[str, ColumnProfile] = {}


class Quality(Aspect, frozen=True, kw_only=True):
    """Measured or imported quality of the data, scores from 0 to 1; `freshness` is its newest.

    What validators say and what Lumos measured itself, its `profile`, stand beside each other.
    """

    score: float | None = None
    measured_at: datetime | None = None
    freshness: datetime | None = None
    validator: str | None = None
    dimensions: dict[str, float] = {}
    checks: tuple[QualityCheck, ...] = ()
    profile: Profile | None = None


class Cost(Aspect, frozen=True, kw_only=True):
    """What the dataset costs in a period, by cost type."""

    currency: str
    period: str
    own: dict[str, float] = {}
    attributed: dict[str, float] = {}
    calculated_at: datetime | None = None


class Dataset(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A dataset's identity and whichever aspects are known or meant."""

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
