"""How datasets hang together: edges, column mappings, jobs and their runs."""

import enum
from datetime import datetime
from typing import Literal

import msgspec

LineageType = Literal["TRANSFORMED", "COPIED", "VIEW"]


class Derivation(enum.StrEnum):
    """How a value comes about, in the words of OpenLineage's direct lineage."""

    IDENTITY = "IDENTITY"
    TRANSFORMATION = "TRANSFORMATION"
    AGGREGATION = "AGGREGATION"


class UseKind(enum.StrEnum):
    """How a column decides about a result without being its value, in OpenLineage's words."""

    JOIN = "JOIN"
    FILTER = "FILTER"
    GROUP_BY = "GROUP_BY"
    SORT = "SORT"
    WINDOW = "WINDOW"
    CONDITIONAL = "CONDITIONAL"


class ColumnMapping(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A column that another one is made from, and by which expression.

    `cast_to` is the type that it is cast to on the way, `positional` says that its place in a list
    decides where it goes, `star` that nobody named it. `file` and `line` are where this is written.
    """

    upstream: str
    downstream: str
    transformation: str | None = None
    derivation: Derivation | None = None
    cast_to: str | None = None
    positional: bool = False
    star: bool = False
    file: str | None = None
    line: int | None = None


class ColumnUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A column that decides about one downstream column, or about all of them (`downstream` None).

    `expression` is the text of the clause, `cast_to` as in a mapping, `negated` says `NOT IN`.
    """

    upstream: str
    usage: UseKind
    downstream: str | None = None
    expression: str | None = None
    cast_to: str | None = None
    negated: bool = False
    file: str | None = None
    line: int | None = None


class Edge(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Data flows from one dataset or job to another, as some origin reported."""

    upstream: str
    downstream: str
    origin: str
    at: datetime
    type: LineageType = "TRANSFORMED"
    confidence: float = 1.0
    created_by: str = "lumos"
    job: str | None = None
    columns: tuple[ColumnMapping, ...] = ()
    uses: tuple[ColumnUse, ...] = ()


class Script(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A text of SQL that makes datasets.

    `dataset` is the only one that it makes; without it, all that its reporter's edges lead to.
    `tables` says which dataset is meant by each table that it reads or writes, by the parts of the
    table's name: as the analysis of SQL gives them, and as it asks for the table's columns.
    """

    sql: str
    dialect: str | None = None
    file: str | None = None
    dataset: str | None = None
    tables: tuple[tuple[tuple[str, ...], str], ...] = ()


class UnparsedStatement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A statement of SQL that could not be parsed, and the URNs of the tables in its text."""

    line: int
    file: str | None = None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


class Job(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that reads and writes datasets and has a cost of its own."""

    urn: str
    name: str
    platform: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    owner: str | None = None


class JobRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One execution of a job."""

    run_id: str
    job: str
    started_at: datetime
    ended_at: datetime | None = None
    state: Literal["RUNNING", "COMPLETE", "FAILED", "ABORTED"] = "RUNNING"
