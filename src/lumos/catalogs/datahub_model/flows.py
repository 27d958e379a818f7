"""Flows and their jobs as DataHub names them: `dataFlow` and `dataJob`."""

import re
from typing import Any, Final, NamedTuple

from lumos.catalogs.datahub_model.annotations import folded_aspect, text_in
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
    type: Any = folded_aspect(job, "dataJobInfo").get("type")
    if isinstance(type, dict):
        type = next(iter(type.values()), None)
    return type if isinstance(type, str) and type else None


def before(job: CatalogEntity, name: JobName) -> tuple[str, ...]:
    """The names of the jobs of the same flow that come right before one."""
    said = folded_aspect(job, "dataJobInputOutput")
    edges = (text_in(each, "destinationUrn") for each in said.get("inputDatajobEdges") or ())
    found = (job_of(urn or "") for urn in (*(said.get("inputDatajobs") or ()), *edges))
    others = (each.id for each in found if each and each.flow == name.flow and each != name)
    return tuple(dict.fromkeys(others))
