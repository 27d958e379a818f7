"""Parts that several reports contain: a schema, and the datasets that a change affects."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import UNSET, UnsetType

from lumos.model.change import (
    Affected,
    AffectedUse,
    BlastRadius,
    ChangeEvent,
    EventType,
    Verdict,
)
from lumos.model.report import Report
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.urn import display_names
from lumos.schemas.wording import blast_radius_of, breakage_of, clause_of, gone_clause


def _has_annotations(note: NestedField) -> bool:
    annotations = note.description, note.tags, note.terms, note.compliance, note.properties
    return any(annotations) or note.default is not None


class FieldReport(Report, frozen=True, kw_only=True):
    name: str
    type: str
    nullable: bool
    key: bool
    partition: bool
    default: str | None
    description: str | None
    tags: tuple[str, ...]
    # The type as the source spells it, if native types are requested.
    native_type: str | None = None
    terms: tuple[str, ...] = ()
    compliance: tuple[str, ...] = ()
    properties: dict[str, str] = msgspec.field(default_factory=dict)
    # Annotations of fields inside the column.
    nested: tuple[NestedField, ...] = ()
    # The id of the column in its table, which survives renaming.
    field_id: int | UnsetType = UNSET

    @classmethod
    def of(cls, field: Field, *, native: bool = False) -> "FieldReport":
        return cls(
            name=field.name,
            type=field.type.text,
            nullable=field.nullable,
            key=field.key,
            partition=field.partition,
            default=field.default,
            description=field.description,
            tags=field.tags,
            native_type=field.native_type if native else None,
            terms=field.terms,
            compliance=field.compliance,
            properties=field.properties,
            nested=tuple(
                note
                for note in field.nested
                if _has_annotations(note) or (native and note.field_id is not None)
            ),
            field_id=field.field_id if native and field.field_id is not None else UNSET,
        )


class SchemaReport(Report, frozen=True, kw_only=True):
    fields: tuple[FieldReport, ...]

    @classmethod
    def of(cls, schema: Schema | None, *, native: bool = False) -> "SchemaReport":
        fields = schema.fields if schema else ()
        return cls(fields=tuple(FieldReport.of(field, native=native) for field in fields))


class AffectedUseReport(Report, frozen=True, kw_only=True):
    """Where a dataset uses what changed and why that breaks it, also as one sentence.

    `path` is that of the change, '' if the dataset as a whole changed or it is not known.
    """

    path: str
    change: str
    reason: str
    file: str | None
    line: int | None
    sentence: str


class AffectedDataset(Report, frozen=True, kw_only=True):
    """A downstream dataset that breaks or may break, its owners at that time, and where."""

    urn: str
    name: str
    verdict: Verdict
    owners: tuple[str, ...]
    uses: tuple[AffectedUseReport, ...]

    @classmethod
    def of(cls, found: Affected, *, name: str, clauses: Mapping[str, str]) -> "AffectedDataset":
        uses = found.uses or (AffectedUse(),)
        return cls(
            urn=found.urn,
            name=name,
            verdict=found.verdict,
            owners=found.owners,
            uses=tuple(
                AffectedUseReport(
                    path=use.path,
                    change=(clause := clauses.get(use.path, "")),
                    reason=use.reason,
                    file=use.file,
                    line=use.line,
                    sentence=": ".join(filter(None, (clause, breakage_of(found, name, use)))),
                )
                for use in uses
            ),
        )


def _merge(known: Sequence[BlastRadius]) -> BlastRadius:
    """The effect of several changes: each affected dataset once, by its worst verdict."""
    datasets: dict[str, Affected] = {}
    for each in (affected for found in known for affected in found.datasets):
        before = datasets.get(each.urn, each)
        # If several changes affect the same use, the first one is kept.
        uses = {use.path: use for use in (*each.uses, *before.uses)}
        is_breaking = Verdict.BREAKING in (each.verdict, before.verdict)
        datasets[each.urn] = msgspec.structs.replace(
            each,
            verdict=Verdict.BREAKING if is_breaking else each.verdict,
            uses=tuple(uses.values()),
        )
    worst_first = sorted(datasets.values(), key=lambda each: each.verdict is not Verdict.BREAKING)
    breaking = sum(each.verdict is Verdict.BREAKING for each in worst_first)
    return BlastRadius(
        # Counts may include datasets that are not listed.
        breaking=max(breaking, *(each.breaking for each in known)),
        undetermined=max(
            len(worst_first) - breaking,
            *(each.undetermined for each in known if each.count > len(each.datasets)),
            0,
        ),
        datasets=tuple(worst_first),
        problem=next((each.problem for each in known if each.problem is not None), None),
    )


class AffectedReport(Report, frozen=True, kw_only=True):
    """The downstream effect of a change; the worst come first, 1,000 at most.

    `problem` is the reason if the effect is unknown; `summary` is all of it in one line.
    """

    summary: str
    breaking: int
    undetermined: int
    owners: tuple[str, ...]
    datasets: tuple[AffectedDataset, ...]
    problem: str | None

    @classmethod
    def of(cls, *events: ChangeEvent) -> "AffectedReport | None":
        """The effect of the events of one dataset; None if nothing was downstream."""
        known = [each.affected for each in events if each.affected is not None]
        if not known:
            return None
        found = known[0] if len(known) == 1 else _merge(known)
        names = display_names([each.urn for each in found.datasets], {})
        clauses: dict[str, str] = {}
        for event in events:
            if event.type is EventType.DELETED:
                clauses[""] = gone_clause(event.urn)
            for finding in event.findings:
                clauses.setdefault(finding.change.path, clause_of(finding))
        return cls(
            summary=blast_radius_of(found),
            breaking=found.breaking,
            undetermined=found.undetermined,
            owners=found.owners,
            datasets=tuple(
                AffectedDataset.of(each, name=names[each.urn], clauses=clauses)
                for each in found.datasets
            ),
            problem=found.problem,
        )
