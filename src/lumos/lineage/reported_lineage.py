"""Lineage from one reporter, before names are resolved to datasets."""

import enum
from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

from lumos.model.catalog import CatalogEntity, Job
from lumos.model.dataset import Owner, Properties
from lumos.model.lineage import ColumnMapping, ColumnUse, LineageType


class TableName(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="table", gc=False
):
    """A table name as in SQL, catalog first; unquoted parts are in lower case."""

    parts: tuple[str, ...]
    platform: str | None = None
    instance: str | None = None


class LocationReference(msgspec.Struct, frozen=True, kw_only=True, tag="place"):
    """A dataset by its location, such as `s3://bucket/path` or `/data/events`."""

    uri: str


class UrnReference(msgspec.Struct, frozen=True, kw_only=True, tag="urn"):
    """A dataset by its URN."""

    urn: str


DatasetReference: TypeAlias = TableName | LocationReference | UrnReference


class ReportedEdge(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An edge from one dataset to another; `job` is the URN of the job that moves the data.

    Of ranked edges to the same dataset, only those with the highest `rank` are used.
    """

    upstream: DatasetReference
    downstream: DatasetReference
    type: LineageType = "TRANSFORMED"
    confidence: float = 1.0
    job: str | None = None
    columns: tuple[ColumnMapping, ...] = ()
    uses: tuple[ColumnUse, ...] = ()
    rank: tuple[bool, datetime] | None = None


class ReportedScript(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A SQL text with the lineage of some edges; fields as in `lumos.model.lineage.Script`."""

    sql: str
    dialect: str | None = None
    file: str | None = None
    dataset: DatasetReference | None = None
    tables: tuple[tuple[tuple[str, ...], DatasetReference], ...] = ()


class ReportedUnparsedStatement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A statement that could not be parsed, and the tables that it probably reads and writes.

    `others` are names that may be columns, or tables that it reads.
    """

    line: int
    file: str | None = None
    reads: tuple[DatasetReference, ...] = ()
    writes: tuple[DatasetReference, ...] = ()
    others: tuple[DatasetReference, ...] = ()


class JobFlow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The inputs and outputs of a job, with or without edges between them."""

    job: str
    inputs: tuple[DatasetReference, ...] = ()
    outputs: tuple[DatasetReference, ...] = ()


class DatasetAlias(msgspec.Struct, frozen=True, kw_only=True):
    """Other names of a dataset, used if its first name is unknown."""

    dataset: DatasetReference
    others: tuple[DatasetReference, ...]


class ReportedAnnotations(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Annotations of a dataset and its columns, by column name, from a reporter."""

    dataset: DatasetReference
    description: str | None = None
    owners: tuple[Owner, ...] = ()
    tags: tuple[str, ...] = ()
    properties: Properties = {}
    columns: dict[str, str] = {}
    column_tags: dict[str, tuple[str, ...]] = {}


class DatasetRead(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A read of a dataset and, if known, of its columns.

    Reads of the same `run` are counted once.
    """

    dataset: DatasetReference
    reader: str
    at: datetime
    run: str | None = None
    times: int = 1
    columns: tuple[str, ...] = ()
    bytes: int | None = None
    rows: int | None = None


class LineageProblem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A problem in a part of a file; the other parts are used.

    `place` is the file or reporter.
    """

    place: str
    reason: str
    statement: str | None = None
    line: int | None = None
    severity: Literal["error", "remark"] = "error"


class ColumnCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """The number of output columns, and of those with known origins."""

    columns: int = 0
    resolved: int = 0

    def __add__(self, other: "ColumnCoverage") -> "ColumnCoverage":
        return ColumnCoverage(
            columns=self.columns + other.columns, resolved=self.resolved + other.resolved
        )


class ReportedLineage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The complete lineage of one reporter; it replaces its earlier lineage.

    `reporter` is its permanent name: `sql:models/sessions.sql`, `dbt:shop`, `openlineage:ns/job`.
    """

    reporter: str
    edges: tuple[ReportedEdge, ...] = ()
    scripts: tuple[ReportedScript, ...] = ()
    unparsed: tuple[ReportedUnparsedStatement, ...] = ()
    jobs: tuple[Job, ...] = ()
    # Dashboards and the like; the edges lead to their `consumer_urn`.
    consumers: tuple[CatalogEntity, ...] = ()
    flows: tuple[JobFlow, ...] = ()
    aliases: tuple[DatasetAlias, ...] = ()
    annotations: tuple[ReportedAnnotations, ...] = ()
    reads: tuple[DatasetRead, ...] = ()
    problems: tuple[LineageProblem, ...] = ()
    coverage: ColumnCoverage = ColumnCoverage()
    # Set if a statement could not be analysed: the tables that analysed statements write. All other
    # tables keep their earlier lineage.
    analysed_targets: tuple[DatasetReference, ...] | None = None
    # Encoded events that the reporter needs to interpret its next input.
    stored_events: bytes | None = None


class ResolutionMethod(enum.StrEnum):
    """How a name was resolved to a dataset."""

    URN = "urn"
    RULE = "rule"
    LOCATION = "place"
    NAME = "name"
    # No dataset has this name: the URN is derived from the name until such a dataset is scanned.
    ASSUMED = "assumed"
    # Several datasets have this name; none was chosen.
    AMBIGUOUS = "ambiguous"


class Resolution(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The URN of a dataset, how it was resolved, and other candidates."""

    urn: str
    method: ResolutionMethod
    candidates: tuple[str, ...] = ()
