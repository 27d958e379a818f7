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
from lumos.schemas.wording import blast_radius_of, breakage_of, clause_of, deletion_clause


def _has_annotations(field: NestedField) -> bool:
    annotations = field.description, field.tags, field.terms, field.compliance, field.properties
    return any(annotations) or field.default is not None


class FieldReport(Report, frozen=True, kw_only=True):
    name: str
    type: str
    nullable: bool
    key: bool
    partition: bool
    default: str | None
    description: str | None
    tags: tuple[str, ...]
    # The type in the source; only set if native types were requested.
    native_type: str | None = None
    terms: tuple[str, ...] = ()
    compliance: tuple[str, ...] = ()
    properties: dict[str, str] = msgspec.field(default_factory=dict)
    # The annotations of fields inside the column.
    nested: tuple[NestedField, ...] = ()
    # The id of the column in its table, which does not change if the column is renamed.
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
                nested_field
                for nested_field in field.nested
                if _has_annotations(nested_field) or (native and nested_field.field_id is not None)
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
    """A use of a changed field in a downstream dataset, and the reason why it breaks.

    `path` is the changed field; it is empty if the dataset itself changed, or if the field is
    unknown. `sentence` describes the use and the reason.
    """

    path: str
    change: str
    reason: str
    file: str | None
    line: int | None
    sentence: str


class AffectedDataset(Report, frozen=True, kw_only=True):
    """A downstream dataset that breaks or may break, with its owners at that time and its uses."""

    urn: str
    name: str
    verdict: Verdict
    owners: tuple[str, ...]
    uses: tuple[AffectedUseReport, ...]

    @classmethod
    def of(cls, affected: Affected, *, name: str, clauses: Mapping[str, str]) -> "AffectedDataset":
        uses = affected.uses or (AffectedUse(),)
        return cls(
            urn=affected.urn,
            name=name,
            verdict=affected.verdict,
            owners=affected.owners,
            uses=tuple(
                AffectedUseReport(
                    path=use.path,
                    change=(clause := clauses.get(use.path, "")),
                    reason=use.reason,
                    file=use.file,
                    line=use.line,
                    sentence=": ".join(filter(None, (clause, breakage_of(affected, name, use)))),
                )
                for use in uses
            ),
        )


def _merge(radii: Sequence[BlastRadius]) -> BlastRadius:
    """Merge the effects of several changes; each affected dataset gets its worst verdict."""
    datasets: dict[str, Affected] = {}
    for each in (affected for radius in radii for affected in radius.datasets):
        earlier = datasets.get(each.urn, each)
        # If several changes affect the same use, the first change is used.
        uses = {use.path: use for use in (*each.uses, *earlier.uses)}
        is_breaking = Verdict.BREAKING in (each.verdict, earlier.verdict)
        datasets[each.urn] = msgspec.structs.replace(
            each,
            verdict=Verdict.BREAKING if is_breaking else each.verdict,
            uses=tuple(uses.values()),
        )
    worst_first = sorted(datasets.values(), key=lambda each: each.verdict is not Verdict.BREAKING)
    breaking = sum(each.verdict is Verdict.BREAKING for each in worst_first)
    return BlastRadius(
        # The counts of the changes may include datasets that are not listed.
        breaking=max(breaking, *(each.breaking for each in radii)),
        undetermined=max(
            len(worst_first) - breaking,
            *(each.undetermined for each in radii if each.count > len(each.datasets)),
            0,
        ),
        datasets=tuple(worst_first),
        problem=next((each.problem for each in radii if each.problem is not None), None),
    )


class AffectedReport(Report, frozen=True, kw_only=True):
    """The downstream effect of a change; at most 1,000 datasets are listed, breaking ones first.

    `problem` is the reason why the effect is unknown; `summary` describes the effect in one line.
    """

    summary: str
    breaking: int
    undetermined: int
    owners: tuple[str, ...]
    datasets: tuple[AffectedDataset, ...]
    problem: str | None

    @classmethod
    def of(cls, *events: ChangeEvent) -> "AffectedReport | None":
        """The effect of the events of one dataset; None if it had no downstream datasets."""
        radii = [each.affected for each in events if each.affected is not None]
        if not radii:
            return None
        radius = radii[0] if len(radii) == 1 else _merge(radii)
        names = display_names([each.urn for each in radius.datasets], {})
        clauses: dict[str, str] = {}
        for event in events:
            if event.type is EventType.DELETED:
                clauses[""] = deletion_clause(event.urn)
            for finding in event.findings:
                clauses.setdefault(finding.change.path, clause_of(finding))
        return cls(
            summary=blast_radius_of(radius),
            breaking=radius.breaking,
            undetermined=radius.undetermined,
            owners=radius.owners,
            datasets=tuple(
                AffectedDataset.of(each, name=names[each.urn], clauses=clauses)
                for each in radius.datasets
            ),
            problem=radius.problem,
        )
