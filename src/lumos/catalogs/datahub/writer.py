"""Sends changes to a server in as few proposals and calls as possible.

Lists are changed by patches, which preserve concurrent changes to other members. A server converts
a list to maps by the keys of its members, such as the URN of an owner, applies the patch and
converts the maps back. New members are added at the end, so members that must follow a new one are
removed and added again. If this does not result in the wanted order, the list is replaced. Patches
are idempotent.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from lumos.catalogs.chunks import chunked, in_halves
from lumos.catalogs.datahub.aspects import STAMP, Entity, ServerModel, apply_patch, key_in
from lumos.catalogs.datahub.common_aspects import PROPERTIES
from lumos.catalogs.datahub.names import MAX_URN_LENGTH, is_acceptable
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
    """The changes for one dataset or item, the `subject`, which is written completely or not."""

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
        if (patch := build_patch(name, old_body, new_body, new.get(name))) is not None:
            proposals.append(MetadataProposal(entity.type, entity.urn, name, patch, patch=True))
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
    """Send jobs, many in one call and several calls in parallel, and yield their outcomes.

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


# The values of a member's keys.
_Key: TypeAlias = tuple[str, ...]

_CUSTOM: Final = "customProperties"
_SOURCE: Final = "attribution\u241fsource"
EMPTY: Final[dict[str, Any]] = {
    "domains": {"domains": []},
    "editableSchemaMetadata": {"editableSchemaFieldInfo": []},
    "globalTags": {"tags": []},
    "glossaryTerms": {"terms": [], "auditStamp": STAMP},
    "ownership": {"owners": []},
    "status": {"removed": False},
    "structuredProperties": {"properties": []},
    "upstreamLineage": {"upstreams": []},
}
"""Empty bodies of aspects; other aspects can only be removed by a separate call."""
STAMPS: Final = frozenset({"auditStamp", "created", "lastModified"})
"""Audit stamps; an aspect that only has these is empty."""


class _KeyedList(NamedTuple):
    """A list in an aspect, and the keys that identify its members.

    Servers group members by their first key, which changes their order; `orders` are the orders of
    the keys to try. Servers drop members whose last key is empty.
    """

    list: str
    orders: tuple[tuple[str, ...], ...]


def _attributed_list(list: str, key: str) -> _KeyedList:
    return _KeyedList(list, ((_SOURCE, key), (key, _SOURCE, key)))


_KEYED_LISTS: Final = {
    "domains": _KeyedList("domains", ((),)),
    "editableSchemaMetadata": _KeyedList("editableSchemaFieldInfo", (("fieldPath",),)),
    "globalTags": _attributed_list("tags", "tag"),
    "glossaryTerms": _attributed_list("terms", "urn"),
    "ownership": _KeyedList(
        "owners", ((_SOURCE, "typeUrn", "type", "owner"), ("owner", _SOURCE, "typeUrn", "type"))
    ),
    "structuredProperties": _attributed_list("properties", "propertyUrn"),
    "upstreamLineage": _KeyedList("upstreams", (("dataset",),)),
}


def build_patch(aspect: str, old: Any, new: Any, sent: Any) -> bytes | None:
    """The patch that changes an aspect from `old` to `new`, or None if it must be replaced.

    `old` and `new` are normalized bodies, or None if the aspect does not exist. `sent` is `new`
    with the defaults that servers require.
    """
    if aspect in _KEYED_LISTS:
        if new is None:
            # An aspect cannot be removed by a patch, but it can be emptied.
            stamps = {name: old[name] for name in old if name in STAMPS}
            new = sent = {_KEYED_LISTS[aspect].list: [], **stamps}
        return _list_patch(aspect, old, new, sent)
    if aspect == PROPERTIES and new is not None:
        return _properties_patch(old, new, sent)
    return None


def _list_patch(
    aspect: str, old: Mapping[str, Any] | None, new: Mapping[str, Any], sent: Mapping[str, Any]
) -> bytes | None:
    name, orders = _KEYED_LISTS[aspect]
    before, after, sent_members = ((body or {}).get(name) or [] for body in (old, new, sent))
    for keys in orders:
        operations_to_try = _list_operations(name, keys, before, after, after)
        if operations_to_try is None:
            continue
        primary_keys = {name: list(keys)}
        after_first, after_second = before, before
        for _ in range(2):
            # Applied twice, since a call may be retried.
            patch = {"arrayPrimaryKeys": primary_keys, "patch": operations_to_try}
            after_first, after_second = (
                after_second,
                apply_patch(aspect, {name: after_second}, patch).get(name) or [],
            )
        if after_first == after == after_second:
            operations = _list_operations(name, keys, before, after, sent_members) or []
            operations += _field_operations(old, new, sent, without=name)
            return msgspec.json.encode({"arrayPrimaryKeys": primary_keys, "patch": operations})
    return None


def _list_operations(
    name: str, keys: Sequence[str], old: Sequence[Any], new: Sequence[Any], sent: Sequence[Any]
) -> list[dict[str, Any]] | None:
    before, after, members = (
        {_key(member, keys): member for member in side} for side in (old, new, sent)
    )
    repeated = Counter(_key(member, keys) for member in old)
    if not all(key[-1] for key in (*before, *after)):
        return None
    wanted, prefix_length = list(after), 0
    for key in before:
        prefix_length += prefix_length < len(wanted) and key == wanted[prefix_length]
    later = wanted[prefix_length:]
    removed = [key for key in before if key not in after]
    if any(key in before for key in later):
        # Remove new members too: if the call is retried, the list already contains them.
        removed += later
    changed = (
        key for key in wanted[:prefix_length] if before[key] != after[key] or repeated[key] > 1
    )
    return [
        *(_operation((name, *key), None) for key in removed),
        *(_operation((name, *key), members[key]) for key in (*changed, *later)),
    ]


def _key(member: Any, keys: Sequence[str]) -> _Key:
    return tuple(key_in(member, each) for each in keys) or (str(member),)


def _properties_patch(
    old: Mapping[str, Any] | None, new: Mapping[str, Any], sent: Mapping[str, Any]
) -> bytes | None:
    before, after = ((body or {}).get(_CUSTOM) or {} for body in (old, new))
    if "" in before.keys() | after.keys():
        return None
    operations = [
        *(_operation((_CUSTOM, name), None) for name in before if name not in after),
        *(
            _operation((_CUSTOM, name), text)
            for name, text in after.items()
            if before.get(name) != text
        ),
        *_field_operations(old, new, sent, without=_CUSTOM),
    ]
    return msgspec.json.encode(operations)


def _field_operations(
    old: Mapping[str, Any] | None, new: Mapping[str, Any], sent: Mapping[str, Any], *, without: str
) -> Iterator[dict[str, Any]]:
    # Defaults are only sent if the aspect does not exist yet.
    before, after = ({}, sent) if old is None else (old, new)
    for name in {**before, **after}:
        if name != without and before.get(name) != after.get(name):
            yield _operation((name,), sent[name] if name in after else None)


def _operation(path: Sequence[str], value: Any) -> dict[str, Any]:
    pointer = "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in path)
    if value is None:
        return {"op": "remove", "path": pointer, "value": {}}
    return {"op": "add", "path": pointer, "value": value}
