"""Flows and their jobs as DataHub names them, for a module that is about to use neutral URNs."""

import re
from typing import Final, NamedTuple

from lumos.model.catalog import CatalogEntity

_PART: Final = r"[^,()]+"
_FLOW: Final = re.compile(
    rf"urn:li:dataFlow:\((?P<orchestrator>{_PART}),(?P<id>{_PART}),(?P<cluster>{_PART})\)"
)
_JOB: Final = re.compile(rf"urn:li:dataJob:\((?P<flow>urn:li:dataFlow:\(.+\)),(?P<id>{_PART})\)")


class Flow(NamedTuple):
    """A flow by what tells it from others."""

    orchestrator: str
    id: str
    cluster: str

    @property
    def urn(self) -> str:
        return f"urn:li:dataFlow:({self.orchestrator},{self.id},{self.cluster})"


class JobName(NamedTuple):
    """A job by its flow and its name in there."""

    flow: Flow
    id: str


def flow_of(urn: str) -> Flow | None:
    """The flow that has a URN, or nothing."""
    match = _FLOW.fullmatch(urn)
    return Flow(match["orchestrator"], match["id"], match["cluster"]) if match else None


def job_of(urn: str) -> JobName | None:
    """The job that has a URN, or nothing."""
    match = _JOB.fullmatch(urn)
    flow = flow_of(match["flow"]) if match else None
    return JobName(flow, match["id"]) if match and flow else None


def type_of_job(job: CatalogEntity) -> str | None:
    """What kind of work a job is, in the words of its orchestrator."""
    return job.properties.get("type")


def before(job: CatalogEntity, name: JobName) -> tuple[str, ...]:
    """The names of the jobs of the same flow that come right before one."""
    found = map(job_of, job.references.get("upstream", ()))
    return tuple(each.id for each in found if each and each.flow == name.flow and each != name)
