"""Writes the differences to a server in as few proposals and calls as possible."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from lumos.catalogs.chunks import chunked, in_halves
from lumos.catalogs.datahub.aspects import Entity, ServerModel
from lumos.catalogs.datahub.names import LONGEST, is_acceptable
from lumos.catalogs.datahub.patches import EMPTY, build_patch
from lumos.catalogs.datahub.server import Gms, MetadataProposal
from lumos.catalogs.interface import Refused
from lumos.errors import CatalogError, CatalogUnavailable, LumosError

_MOST_PROPOSALS: Final = 200
_CALL: Final = 20
_MOST_BYTES: Final = 12 << 20
# In a call each proposal has more around it, and quotation marks inside are escaped.
_AROUND: Final = 600
_SHOWN: Final = 80


class Change(NamedTuple):
    """What has to be sent so that an entity is what it shall be."""

    entity: Entity
    proposals: list[MetadataProposal]
    dropped: list[str]
    erased: bool = False

    @property
    def is_needed(self) -> bool:
        return bool(self.proposals or self.dropped or self.erased)

    @property
    def size(self) -> int:
        return sum(_size(proposal) for proposal in self.proposals)


class WriteJob(NamedTuple):
    """The changes that belong together: they are all made, or their subject is refused."""

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
        """How much of a call it is; what needs calls of its own counts for many proposals."""
        alone = sum(len(change.dropped) + change.erased for change in self.changes)
        return sum(len(change.proposals) for change in self.changes) + alone * _CALL


class WriteOutcome(NamedTuple):
    """What became of a job; without a problem all of it is there."""

    subject: Any
    problem: CatalogError | None


def create_entity(entity: Entity, aspects: Mapping[str, Any]) -> Change:
    """What makes an entity of which nothing is there."""
    return Change(entity, [_upsert(entity, name, body) for name, body in aspects.items()], [])


def change_entity(
    entity: Entity, old: Mapping[str, Any], new: Mapping[str, Any], server: ServerModel
) -> Change:
    """What makes some aspects of an entity others; members of lists one by one."""
    before, after = (server.normalize(entity, aspects) for aspects in (old, new))
    proposals: list[MetadataProposal] = []
    dropped: list[str] = []
    for name in {**before, **after}:
        was, now = before.get(name), after.get(name)
        if was == now:
            continue
        if (difference := build_patch(name, was, now, new.get(name))) is not None:
            proposals.append(
                MetadataProposal(entity.type, entity.urn, name, difference, patch=True)
            )
        elif now is not None:
            proposals.append(_upsert(entity, name, new[name]))
        elif name in EMPTY:
            proposals.append(_upsert(entity, name, EMPTY[name]))
        else:
            dropped.append(name)
    return Change(entity, proposals, dropped)


def plan_job(name: str, subject: str, plan: Callable[[], WriteJob]) -> WriteJob | Refused:
    """The job that is planned, or why the server would refuse it."""
    try:
        job = plan()
    except CatalogUnavailable:
        raise
    except LumosError as problem:
        return Refused(subject, problem)
    except UnicodeEncodeError as problem:
        where = subject.encode("ascii", "backslashreplace").decode()
        text = f"something of {where} is not: {problem.object[:_SHOWN]!a}"
        return Refused(
            subject, CatalogError(f"{name} takes only text that is Unicode; {text}", platform=name)
        )
    refusals = (_find_refusal(name, change) for change in job.changes)
    refusal = next(filter(None, refusals), None)
    return job if refusal is None else Refused(subject, refusal)


def _find_refusal(name: str, change: Change) -> CatalogError | None:
    """Why a server would not take a change, as far as that is known without asking."""
    urn = change.entity.urn
    if (problem := refuse_name(name, urn)) is not None:
        return problem
    for proposal in change.proposals:
        if (size := _size(proposal)) > _MOST_BYTES:
            return CatalogError(
                f"{name} takes no aspect of more than {_MOST_BYTES >> 20} MB; {proposal.aspect} "
                f"of {urn} has {size >> 20} MB",
                platform=name,
            )
    return None


def refuse_name(name: str, urn: str) -> CatalogError | None:
    """Why a server would not take anything of that name."""
    if is_acceptable(urn):
        return None
    return CatalogError(
        f"{name} takes no URN of more than {LONGEST} characters (percent-encoded): {urn}",
        platform=name,
    )


def send_jobs(gms: Gms, jobs: Iterable[WriteJob]) -> Iterator[WriteOutcome]:
    """Sends jobs, many with one call and some calls in parallel; yields each when it is done.

    No entity may be in two of them.
    """
    chunks = chunked(
        jobs,
        most=_MOST_PROPOSALS,
        most_bytes=_MOST_BYTES,
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
        for aspect in change.dropped:
            gms.drop(change.entity.type, change.entity.urn, aspect)
        if change.erased:
            gms.erase(change.entity.urn)


def _upsert(entity: Entity, aspect: str, body: Any) -> MetadataProposal:
    return MetadataProposal(entity.type, entity.urn, aspect, msgspec.json.encode(body))


def _size(proposal: MetadataProposal) -> int:
    return len(proposal.body) * 5 // 4 + len(proposal.urn) + _AROUND
