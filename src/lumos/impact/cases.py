"""Cases to be judged: a dataset as it is and as somebody wants it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.errors import MisuseError
from lumos.impact.changes import Wish, changed
from lumos.impact.context import StoredDownstream, reason
from lumos.impact.rules.schemas import Schemas
from lumos.model.change import AnySchemaChange, Finding
from lumos.model.conversions.sql_types import Dialect
from lumos.model.schema import Schema
from lumos.model.urn import Urn
from lumos.schemas.compatibility import judge
from lumos.schemas.fingerprint_diff import Known, findings_between
from lumos.schemas.proposals import understood

if TYPE_CHECKING:
    from lumos.schemas.proposal_reader import Kind, Proposal

_INFERRED: Final = "no scan found the schema of {}; it is taken from the SQL that makes it"


class Case(NamedTuple):
    """Judged changes of a dataset, and its schemas before and after where they are known.

    `renamed` are new paths by old ones.
    """

    findings: tuple[Finding, ...]
    present: Schema | None
    proposed: Schema | None
    renamed: dict[str, str]
    remarks: tuple[str, ...]


class Proposing(NamedTuple):
    """A file with a proposed schema, and how to read it; as for `lumos schema predict`."""

    file: str | Path
    kind: "Kind | None"
    model: str | None


def case_of(
    world: StoredDownstream, wish: Wish, proposing: Proposing | None, *, dialect: Dialect | None
) -> Case:
    """The case that somebody puts in words, or in a file, or in both."""
    urn = world.urn
    platform = Urn.parse(urn).platform
    present = Schemas(world, reason).known(urn)
    remarks: list[str] = []
    if present is not None and world.schema(urn) is None:
        remarks.append(_INFERRED.format(urn))
    base = present
    if proposing is not None:
        proposal = _proposal(world, proposing, dialect)
        if present is None:
            raise MisuseError(
                f"No schema of {urn} is known, so a proposed one has nothing to be compared with. "
                "Scan it first (lumos ingest), or say what changes with --change."
            )
        shown = proposal.rendered(present)
        base = understood(present, shown, proposal.schema, proposal.form)
        remarks += proposal.remarks
    told = changed(urn, platform, base, wish, dialect=dialect)
    findings = judged(world, present, told.schema, told.changes)
    if not findings:
        raise MisuseError(f"Nothing changes: that is the schema that {urn} has.")
    return Case(findings, present, told.schema, told.renamed, (*remarks, *told.remarks))


def judged(
    world: StoredDownstream,
    present: Schema | None,
    proposed: Schema | None,
    changes: Sequence[AnySchemaChange],
) -> tuple[Finding, ...]:
    """What leads from one schema to the other; where they are not known, the changes are told."""
    entry = world.store.entries.get(world.urn)
    format = None if entry is None else entry.known.format
    if present is None or proposed is None:
        return judge(changes, format=format)
    return findings_between(Known.of(present), Known.of(proposed, format))


def _proposal(world: StoredDownstream, proposing: Proposing, dialect: Dialect | None) -> "Proposal":
    # Other tools' types are many, and only this reads them.
    from lumos.schemas.output import given
    from lumos.schemas.proposal_reader import Wanted, read_proposal

    given(str(proposing.file), "file of the proposed schema")
    urn = Urn.parse(world.urn)
    entry = world.store.entries.get(world.urn)
    wanted = Wanted(
        name=urn.name if entry is None else entry.known.name,
        platform=urn.platform,
        model=proposing.model,
        dialect=dialect,
    )
    return read_proposal(Path(proposing.file), kind=proposing.kind, wanted=wanted)
