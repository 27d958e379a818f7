"""How datasets hang together: edges, column mappings, jobs and their runs."""

from datetime import datetime
from typing import Literal

import msgspec

LineageType = Literal["TRANSFORMED", "COPIED", "VIEW"]


class ColumnMapping(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A column that another one is made from, and by which expression."""

    upstream: str
    downstream: str
    transformation: str | None = None


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
