"""Lineage: edges, column mappings, SQL scripts and runs of jobs."""

import enum
from datetime import datetime
from typing import Final, Literal

import msgspec

# The placeholder in rendered SQL for values that only a dbt project defines.
UNKNOWN_NAME: Final = "__jinja__"
LineageType = Literal["TRANSFORMED", "COPIED", "VIEW"]


class Derivation(enum.StrEnum):
    """The kind of derivation of a value, as in OpenLineage's direct lineage."""

    IDENTITY = "IDENTITY"
    TRANSFORMATION = "TRANSFORMATION"
    AGGREGATION = "AGGREGATION"


class UseKind(enum.StrEnum):
    """An influence of a column on a result other than its value, as in OpenLineage."""

    JOIN = "JOIN"
    FILTER = "FILTER"
    GROUP_BY = "GROUP_BY"
    SORT = "SORT"
    WINDOW = "WINDOW"
    CONDITIONAL = "CONDITIONAL"


class ColumnMapping(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An upstream column, the downstream column that is derived from it, and the expression.

    `cast_to` is the type of a cast. `positional` means that columns are matched by position, and
    `star` that the column comes from `*`. `file` and `line` are the position in the code.
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


class ColumnUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A use of a column that influences one downstream column, or all if `downstream` is None.

    `expression` is the text of the clause, `cast_to` the type of a cast, and `negated` means
    `NOT IN`.
    """

    upstream: str
    usage: UseKind
    downstream: str | None = None
    expression: str | None = None
    cast_to: str | None = None
    negated: bool = False
    file: str | None = None
    line: int | None = None


class Edge(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Data flow from one dataset or job to another, as reported by an origin."""

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
    """SQL text that produces datasets.

    `dataset` is the dataset that it produces; None means all targets of its reporter's edges.
    `tables` maps table names (as tuples of their parts) to datasets.
    """

    sql: str
    dialect: str | None = None
    file: str | None = None
    dataset: str | None = None
    tables: tuple[tuple[tuple[str, ...], str], ...] = ()


class UnparsedStatement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An SQL statement that could not be parsed, and the URNs of tables in its text."""

    line: int
    file: str | None = None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


class JobRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One execution of a job."""

    run_id: str
    job: str
    started_at: datetime
    ended_at: datetime | None = None
    state: Literal["RUNNING", "COMPLETE", "FAILED", "ABORTED"] = "RUNNING"
