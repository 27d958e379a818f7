"""Sends changes to a server in as few proposals and calls as possible."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from lumos.catalogs.chunks import chunked, in_halves
from lumos.catalogs.datahub.aspects import Entity, ServerModel
from lumos.catalogs.datahub.names import MAX_URN_LENGTH, is_acceptable
from lumos.catalogs.datahub.patches import EMPTY, build_patch
from lumos.catalogs.datahub.server import Gms, MetadataProposal
from lumos.catalogs.interface import FailedEntry
from lumos.errors import CatalogError, CatalogUnavailable, LumosError

_MAX_PROPOSALS: Final = 200
_PROPOSALS_PER_CALL: Final = 20
_MAX_BYTES: Final = 12 << 20
# The overhead of each proposal in a call.
_OVERHEAD_BYTES: Final = 600
_MAX_QUOTED: Final = 80


class Change(NamedTuple):
    """The proposals and deletions that change an entity."""

    entity: Entity
    proposals: list[MetadataProposal]
    removed_aspects: list[str]
    is_erased: bool = False

    @property
    def is_needed(self) -> bool:
        return bool(self.proposals or self.removed_aspects or self.is_erased)

    @property
    def size(self) -> int:
        return sum(_size(proposal) for proposal in self.proposals)


class WriteJob(NamedTuple):
    """The changes for one subject; if one of them is rejected, the subject is rejected."""

    subject: Any
    changes: Sequence[Change]

    @property
    def size(self) -> int:
        return sum(change.size for change in self.changes)

    @property
    def is_needed(self) -> bool:
        return any(change.is_needed for change in self.changes)

    @property
    def parts(self) -> int:
        """The weight in a call: the proposals, plus a fixed number for each deletion."""
        deletions = sum(len(change.removed_aspects) + change.is_erased for change in self.changes)
        return (
            sum(len(change.proposals) for change in self.changes) + deletions * _PROPOSALS_PER_CALL
        )


class WriteOutcome(NamedTuple):
    """The result of a job; without a problem, it was written completely."""

    subject: Any
    problem: CatalogError | None


def create_entity(entity: Entity, aspects: Mapping[str, Any]) -> Change:
    """The change that creates an entity."""
    return Change(entity, [_upsert(entity, name, body) for name, body in aspects.items()], [])


def change_entity(
    entity: Entity, old: Mapping[str, Any], new: Mapping[str, Any], server: ServerModel
) -> Change:
    """The change from old to new aspects; members of lists are changed one by one."""
    before, after = (server.normalize(entity, aspects) for aspects in (old, new))
    proposals: list[MetadataProposal] = []
    removed_aspects: list[str] = []
    for name in {**before, **after}:
        old_body, new_body = before.get(name), after.get(name)
        if old_body == new_body:
            continue
        if (difference := build_patch(name, old_body, new_body, new.get(name))) is not None:
            proposals.append(
                MetadataProposal(entity.type, entity.urn, name, difference, patch=True)
            )
        elif new_body is not None:
            proposals.append(_upsert(entity, name, new[name]))
        elif name in EMPTY:
            proposals.append(_upsert(entity, name, EMPTY[name]))
        else:
            removed_aspects.append(name)
    return Change(entity, proposals, removed_aspects)


def plan_job(name: str, subject: str, plan: Callable[[], WriteJob]) -> WriteJob | FailedEntry:
    """The planned job, or why the server would reject it."""
    try:
        job = plan()
    except CatalogUnavailable:
        raise
    except LumosError as problem:
        return FailedEntry(subject, problem)
    except UnicodeEncodeError as problem:
        printable = subject.encode("ascii", "backslashreplace").decode()
        text = f"{printable} has invalid Unicode: {problem.object[:_MAX_QUOTED]!a}"
        return FailedEntry(subject, CatalogError(f"{name} cannot store it: {text}", platform=name))
    problems = (_find_problem(name, change) for change in job.changes)
    first = next(filter(None, problems), None)
    return job if first is None else FailedEntry(subject, first)


def _find_problem(name: str, change: Change) -> CatalogError | None:
    """Why a server would reject a change, if that is known in advance."""
    urn = change.entity.urn
    if (problem := check_urn(name, urn)) is not None:
        return problem
    for proposal in change.proposals:
        if (size := _size(proposal)) > _MAX_BYTES:
            return CatalogError(
                f"{name} accepts aspects of up to {_MAX_BYTES >> 20} MB; {proposal.aspect} of "
                f"{urn} has {size >> 20} MB",
                platform=name,
            )
    return None


def check_urn(name: str, urn: str) -> CatalogError | None:
    """The error for a URN that is too long, or None."""
    if is_acceptable(urn):
        return None
    return CatalogError(
        f"{name} accepts URNs of up to {MAX_URN_LENGTH} characters (percent-encoded), not {urn}",
        platform=name,
    )


def send_jobs(gms: Gms, jobs: Iterable[WriteJob]) -> Iterator[WriteOutcome]:
    """Send jobs, many in one call and some calls in parallel, and yield their outcomes.

    No entity may be in two jobs.
    """
    chunks = chunked(
        jobs,
        max_parts=_MAX_PROPOSALS,
        max_bytes=_MAX_BYTES,
        size=lambda job: job.size,
        count=lambda job: job.parts,
    )

    def work(chunk: Sequence[WriteJob]) -> list[WriteOutcome]:
        done = in_halves(chunk, lambda part: _send(gms, part))
        return [WriteOutcome(job.subject, problem) for job, problem in done]

    for outcomes in gms.caller.each(chunks, work):
        yield from outcomes


def _send(gms: Gms, jobs: Sequence[WriteJob]) -> None:
    changes = [change for job in jobs for change in job.changes]
    if proposals := [proposal for change in changes for proposal in change.proposals]:
        gms.send(proposals)
    for change in changes:
        for aspect in change.removed_aspects:
            gms.remove_aspect(change.entity.type, change.entity.urn, aspect)
        if change.is_erased:
            gms.erase(change.entity.urn)


def _upsert(entity: Entity, aspect: str, body: Any) -> MetadataProposal:
    return MetadataProposal(entity.type, entity.urn, aspect, msgspec.json.encode(body))


def _size(proposal: MetadataProposal) -> int:
    return len(proposal.body) * 5 // 4 + len(proposal.urn) + _OVERHEAD_BYTES
