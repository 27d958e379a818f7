"""What one reporter says of lineage, before its names are found among the datasets."""

from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

from lumos.model.catalog import Job
from lumos.model.dataset import Owner, Properties
from lumos.model.lineage import ColumnMapping, ColumnUse, LineageType


class TableName(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="table"):
    """A table as SQL names it, from the catalog down; unquoted parts are in lower case."""

    parts: tuple[str, ...]
    platform: str | None = None
    instance: str | None = None


class Place(msgspec.Struct, frozen=True, kw_only=True, tag="place"):
    """A dataset by where its data lies, such as `s3://bucket/path` or `/data/events`."""

    uri: str


class Known(msgspec.Struct, frozen=True, kw_only=True, tag="urn"):
    """A dataset by its URN."""

    urn: str


Reference: TypeAlias = TableName | Place | Known


class ReportedEdge(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Data flows from one dataset to another; `job` is the URN of the job that moves it.

    Of the edges to one dataset that have a `rank`, those of the highest count.
    """

    upstream: Reference
    downstream: Reference
    type: LineageType = "TRANSFORMED"
    confidence: float = 1.0
    job: str | None = None
    columns: tuple[ColumnMapping, ...] = ()
    uses: tuple[ColumnUse, ...] = ()
    rank: tuple[bool, datetime] | None = None


class ReportedScript(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A text of SQL that edges were taken from; all as in `lumos.model.lineage.Script`."""

    sql: str
    dialect: str | None = None
    file: str | None = None
    dataset: Reference | None = None
    tables: tuple[tuple[tuple[str, ...], Reference], ...] = ()


class ReportedUnparsed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A statement that could not be parsed, and the tables that it seems to read and write.

    `others` are names in it that mean a table which it reads, or something else.
    """

    line: int
    file: str | None = None
    reads: tuple[Reference, ...] = ()
    writes: tuple[Reference, ...] = ()
    others: tuple[Reference, ...] = ()


class JobFlow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a job reads and writes, whether or not data flows between the two."""

    job: str
    inputs: tuple[Reference, ...] = ()
    outputs: tuple[Reference, ...] = ()


class Alias(msgspec.Struct, frozen=True, kw_only=True):
    """Other names of a dataset, for when it is not found under the first one."""

    dataset: Reference
    others: tuple[Reference, ...]


class Described(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a reporter says of a dataset, or of its columns by name, beside lineage."""

    dataset: Reference
    description: str | None = None
    owners: tuple[Owner, ...] = ()
    tags: tuple[str, ...] = ()
    properties: Properties = {}
    columns: dict[str, str] = {}
    column_tags: dict[str, tuple[str, ...]] = {}


class Read(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody read a dataset, and which of its columns, where that is known.

    A `run` reads a dataset once, however many reports tell of it.
    """

    dataset: Reference
    reader: str
    at: datetime
    run: str | None = None
    times: int = 1
    columns: tuple[str, ...] = ()
    bytes: int | None = None
    rows: int | None = None


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What could not be understood, and where; the rest of the report holds all the same."""

    place: str
    reason: str
    statement: str | None = None
    line: int | None = None
    severity: Literal["error", "remark"] = "error"


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """How many output columns there were, and of how many it is known what they are made from."""

    columns: int = 0
    resolved: int = 0

    def __add__(self, other: "Coverage") -> "Coverage":
        return Coverage(
            columns=self.columns + other.columns, resolved=self.resolved + other.resolved
        )


class Reported(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that one reporter says now; what it said before and does not repeat is no longer so.

    `reporter` names it for good: `sql:models/sessions.sql`, `dbt:shop`, `openlineage:ns/job`.
    """

    reporter: str
    edges: tuple[ReportedEdge, ...] = ()
    scripts: tuple[ReportedScript, ...] = ()
    unparsed: tuple[ReportedUnparsed, ...] = ()
    jobs: tuple[Job, ...] = ()
    flows: tuple[JobFlow, ...] = ()
    aliases: tuple[Alias, ...] = ()
    descriptions: tuple[Described, ...] = ()
    reads: tuple[Read, ...] = ()
    problems: tuple[Problem, ...] = ()
    coverage: Coverage = Coverage()
    # Where not all could be understood: what it tells all of. What it said of others before stays.
    written: tuple[Reference, ...] | None = None
    # What it must be told next time to understand what it hears then.
    memory: bytes | None = None
