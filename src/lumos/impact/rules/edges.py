"""Impact derived only from lineage edges, if no SQL is available."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from lumos.impact.rules.graph import DatasetDerivation
from lumos.impact.rules.results import rank
from lumos.impact.rules.type_uses import ClauseKind, OutputColumn, TableVersions, ValueType
from lumos.impact.rules.verdicts import (
    BREAKING,
    COMPATIBLE,
    UNDETERMINED,
    Assessment,
    resolve_verdict,
    type_finding,
)
from lumos.model.change import ConsumerUse, FieldAdded, Finding, KeyChanged
from lumos.model.lineage import ColumnMapping, ColumnUse, Derivation, Edge, UseKind
from lumos.model.paths import column_of, is_lineage_column, lineage_column
from lumos.model.schema import Field, Schema
from lumos.model.type_path import field_at
from lumos.model.types import Unknown

ALL: Final = "*"
Reference = TypeVar("Reference", ColumnMapping, ColumnUse)
_CONSUMER_USES: Final = {
    UseKind.JOIN: ConsumerUse.JOINED,
    UseKind.GROUP_BY: ConsumerUse.GROUPED,
    UseKind.FILTER: ConsumerUse.FILTERED,
    UseKind.CONDITIONAL: ConsumerUse.FILTERED,
    UseKind.WINDOW: ConsumerUse.GROUPED,
}


class LocatedAssessment(NamedTuple):
    """An assessment with its clause and position; `origins` are the (table, column) pairs."""

    assessment: Assessment
    usage: str | None = None
    clause: str | None = None
    line: int | None = None
    file: str | None = None
    origins: tuple[tuple[str, str], ...] = ()


class EdgeAssessment(NamedTuple):
    """The assessments for one upstream dataset, and the output columns that change with it."""

    assessments: list[LocatedAssessment]
    outputs: list[OutputColumn]
    may_have_changed: bool = False


def assess_edge(edge: Edge, versions: TableVersions, target: Schema | None) -> EdgeAssessment:
    """Assess the changes of an upstream dataset with the columns and uses of an edge."""
    if not edge.columns and not edge.uses:
        text = f"the columns used from {edge.upstream} are unknown: no SQL, no column lineage"
        return EdgeAssessment([LocatedAssessment(Assessment(UNDETERMINED, text))], [], True)
    assessments: list[LocatedAssessment] = []
    outputs: list[OutputColumn] = []
    downstream_may_have_changed = False
    table = versions.key
    mappings, uses = _by_upstream_column(edge.columns), _by_upstream_column(edge.uses)
    for name in _changed_columns(versions, mappings, uses):
        before, after = versions.columns.get(name, (None, None))
        column_mappings = mappings.get(name.casefold(), [])
        column_uses = uses.get(name.casefold(), [])
        if versions.may_have_changed or name in versions.unknown_columns:
            references: list[ColumnMapping | ColumnUse] = [*column_mappings, *column_uses]
            assessments += [_with_origin(_unknown_effect(each), table, each) for each in references]
            outputs += [_unknown_output(each, table) for each in column_mappings]
            continue
        for use in [*column_uses, *uses.get(ALL, ())]:
            pair = _field_pair(use.upstream, before, after)
            if pair is None:
                assessments.append(_with_origin(_unknown_effect(use), table, use))
            elif pair[0] != pair[1]:
                assessments.append(_with_origin(_assess_column_use(use, *pair), table, use))
        for mapping in column_mappings:
            pair = _field_pair(mapping.upstream, before, after)
            if pair is None:
                assessments.append(_with_origin(_unknown_effect(mapping), table, mapping))
                outputs.append(_unknown_output(mapping, table))
            elif pair[0] != pair[1]:
                column_assessments = _assess_mapping(mapping, *pair, target)
                assessments += [_with_origin(each, table, mapping) for each in column_assessments]
                outputs.append(_output_column(mapping, table, *pair))
        is_added = before is None and after is not None
        if ALL in mappings and not column_mappings and not is_added:
            downstream_may_have_changed = True
            text = f"selects all columns of {edge.upstream}, with an unknown effect"
            star = mappings[ALL][0]
            assessments.append(
                LocatedAssessment(
                    Assessment(UNDETERMINED, text),
                    ClauseKind.PROJECTION.value,
                    ALL,
                    star.line,
                    star.file,
                )
            )
    if versions.is_reordered and any(each.positional and each.star for each in edge.columns):
        text = f"relies on column positions of {edge.upstream}, and they change"
        assessments.append(
            LocatedAssessment(Assessment(BREAKING, text), ClauseKind.INSERT.value, ALL)
        )
    changed_outputs = [each for each in outputs if each.before != each.after or each.is_unknown]
    return EdgeAssessment(assessments, changed_outputs, downstream_may_have_changed)


def _with_origin(
    assessment: LocatedAssessment, table: str, reference: ColumnMapping | ColumnUse
) -> LocatedAssessment:
    return assessment._replace(origins=((table, reference.upstream),))


def _field_pair(
    path: str, before: Field | None, after: Field | None
) -> tuple[Field | None, Field | None] | None:
    """The column or nested field at a path, before and after; None if unknown."""
    old, new = (None if each is None else field_at(path, each) for each in (before, after))
    if before is not None and (old is None or isinstance(old.type, Unknown)):
        return (before, after) if is_lineage_column(path) else None
    return old, new


def _changed_columns(
    versions: TableVersions,
    mappings: Mapping[str, Sequence[ColumnMapping]],
    uses: Mapping[str, Sequence[ColumnUse]],
) -> Iterator[str]:
    """The columns that may have changed; all used columns if the table changed in unknown ways."""
    if not versions.may_have_changed:
        yield from versions.changed_columns
        return
    names = {name.casefold(): name for name in versions.columns}
    for name in dict.fromkeys([*mappings, *uses]):
        yield names.get(name, name)


def _unknown_effect(reference: ColumnMapping | ColumnUse) -> LocatedAssessment:
    usage = (
        reference.usage.value if isinstance(reference, ColumnUse) else ClauseKind.PROJECTION.value
    )
    clause = reference.expression if isinstance(reference, ColumnUse) else reference.transformation
    text = f"effect on {reference.upstream} in {usage.replace('_', ' ')} is unknown"
    return LocatedAssessment(
        Assessment(UNDETERMINED, text), usage, clause, reference.line, reference.file
    )


def _unknown_output(mapping: ColumnMapping, key: str) -> OutputColumn:
    return OutputColumn(
        name=mapping.downstream, before=ValueType(), after=ValueType(), is_unknown=True,
        clause=mapping.transformation, line=mapping.line, origins=((key, mapping.upstream),),
    )  # fmt: skip


def _assess_column_use(
    use: ColumnUse, before: Field | None, after: Field | None
) -> LocatedAssessment:
    usage, clause = use.usage.value, use.expression
    location = (usage, clause, use.line, use.file)
    clause_name = usage.replace("_", " ")
    if before is not None and after is None:
        return LocatedAssessment(
            Assessment(BREAKING, f"needs {use.upstream} in {clause_name}"), *location
        )
    if before is None or after is None or isinstance(after.type, Unknown):
        text = f"effect on {use.upstream} in {clause_name} is unknown"
        return LocatedAssessment(Assessment(UNDETERMINED, text), *location)
    consumer_uses = (
        {_CONSUMER_USES[use.usage]} if use.usage in _CONSUMER_USES else set[ConsumerUse]()
    )
    if use.negated:
        consumer_uses.add(ConsumerUse.NOT_IN)
    assessments = [_assess_nulls(use, before, after, consumer_uses, clause_name)]
    if before.type != after.type and use.cast_to is not None:
        assessments.append(Assessment(COMPATIBLE, f"casts {use.upstream} to {use.cast_to} anyway"))
    elif before.type != after.type:
        finding = type_finding(before.type, after.type)
        verdict = resolve_verdict(finding, frozenset(consumer_uses))
        text = f"expects {before.type.text} {use.upstream} in {clause_name}"
        if verdict is COMPATIBLE:
            text = f"works with {after.type.text} {use.upstream} as well"
        assessments.append(Assessment(verdict, text))
    return LocatedAssessment(min(assessments, key=lambda each: rank(each.verdict)), *location)


def _assess_nulls(
    use: ColumnUse, before: Field, after: Field, consumer_uses: set[ConsumerUse], clause_name: str
) -> Assessment:
    if (
        after.nullable
        and not before.nullable
        and consumer_uses & {ConsumerUse.JOINED, ConsumerUse.NOT_IN}
    ):
        clause_name = "NOT IN" if ConsumerUse.NOT_IN in consumer_uses else clause_name
        return Assessment(BREAKING, f"expects no nulls of {use.upstream} in {clause_name}")
    return Assessment(COMPATIBLE, f"works with the new {use.upstream}")


def _assess_mapping(
    mapping: ColumnMapping, before: Field | None, after: Field | None, target: Schema | None
) -> Iterator[LocatedAssessment]:
    clause = mapping.transformation
    location = (ClauseKind.PROJECTION.value, clause, mapping.line, mapping.file)
    name = mapping.upstream
    if before is not None and after is None:
        text = (
            f"no longer has {mapping.downstream}" if mapping.star else f"needs {name} in PROJECTION"
        )
        yield LocatedAssessment(Assessment(BREAKING, text), *location)
        return
    if before is None or after is None:
        return
    stored = find_field(target, mapping.downstream)
    if before.type != after.type:
        yield LocatedAssessment(_assess_mapped_type(mapping, before, after, stored), *location)
    if after.nullable and not before.nullable:
        text = f"{mapping.downstream} may be null from now on"
        if stored is not None and stored.nullable:
            text = f"{mapping.downstream} is already nullable"
        is_key = stored is not None and stored.key
        yield LocatedAssessment(Assessment(BREAKING if is_key else COMPATIBLE, text), *location)


def _assess_mapped_type(
    mapping: ColumnMapping, before: Field, after: Field, stored: Field | None
) -> Assessment:
    if mapping.cast_to is not None:
        return Assessment(COMPATIBLE, f"casts {mapping.upstream} to {mapping.cast_to} anyway")
    if isinstance(after.type, Unknown):
        return Assessment(UNDETERMINED, f"effect on {mapping.downstream} is unknown")
    if mapping.derivation not in (Derivation.IDENTITY, None):
        finding = type_finding(before.type, after.type)
        if resolve_verdict(finding, frozenset()) is COMPATIBLE and not finding.breaks_if:
            return Assessment(
                COMPATIBLE, f"works with {after.type.text} {mapping.upstream} as well"
            )
        return Assessment(
            UNDETERMINED,
            f"the result of {mapping.transformation or 'the expression'} for {after.type.text} "
            f"{mapping.upstream} is unknown without its SQL",
        )
    finding = type_finding(before.type, after.type)
    uses = frozenset({ConsumerUse.SINK}) if stored is not None else frozenset[ConsumerUse]()
    if stored is not None and stored.key:
        uses |= {ConsumerUse.KEY}
    verdict = resolve_verdict(finding, uses)
    if verdict is BREAKING:
        text = f"type mismatch in pipeline: {mapping.downstream} becomes {after.type.text}"
        return Assessment(BREAKING, text)
    return Assessment(verdict, f"{mapping.downstream} becomes {after.type.text}")


def _output_column(
    mapping: ColumnMapping, key: str, before: Field | None, after: Field | None
) -> OutputColumn:
    is_copied = mapping.derivation in (Derivation.IDENTITY, None) and mapping.cast_to is None
    old, new = (None if each is None else ValueType.of(each) for each in (before, after))
    is_unknown = False
    if mapping.cast_to is not None and old is not None and new is not None:
        new = ValueType(type=old.type, nullable=new.nullable)
    elif not is_copied and old is not None and new is not None and old.type == new.type:
        # Only the nullability changes: the type of the derived column stays.
        old, new = ValueType(nullable=old.nullable), ValueType(nullable=new.nullable)
    elif not is_copied:
        is_unknown = new is not None
        old, new = ValueType(), ValueType() if is_unknown else None
    return OutputColumn(
        name=mapping.downstream,
        before=old,
        after=new,
        is_unknown=is_unknown or (after is not None and isinstance(after.type, Unknown)),
        clause=mapping.transformation,
        line=mapping.line,
        origins=((key, mapping.upstream),),
    )


def find_field(schema: Schema | None, name: str) -> Field | None:
    """The column with a name, ignoring case if there is no exact match."""
    if schema is None:
        return None
    exact = schema.field(name)
    if exact is not None:
        return exact
    folded = name.casefold()
    return next((field for field in schema.fields if field.name.casefold() == folded), None)


def _by_upstream_column(references: Sequence[Reference]) -> dict[str, list[Reference]]:
    by_column: dict[str, list[Reference]] = {}
    for each in references:
        by_column.setdefault(lineage_column(each.upstream).casefold(), []).append(each)
    return by_column


def assess_key_changes(
    findings: Sequence[Finding], derivation: DatasetDerivation, schema: Schema | None
) -> Iterator[LocatedAssessment]:
    """Assess key changes for a dataset that is derived from the changed one."""
    for finding in findings:
        change = finding.change
        if isinstance(change, KeyChanged):
            yield from _assess_joins(derivation, {column_of(change.path)}, change.path)
        elif isinstance(change, FieldAdded) and change.after.key:
            keys = {field.name for field in schema.fields if field.key} if schema else set()
            yield from _assess_joins(derivation, keys, change.path)


def _assess_joins(
    derivation: DatasetDerivation, columns: set[str], path: str
) -> Iterator[LocatedAssessment]:
    folded = {name.casefold() for name in columns}
    if not any(edge.columns or edge.uses for edge in derivation.edges) and derivation.sql is None:
        yield LocatedAssessment(Assessment(UNDETERMINED, f"unknown whether it joins on {path}"))
        return
    for edge in derivation.edges:
        for use in edge.uses:
            column = lineage_column(use.upstream)
            if use.usage is UseKind.JOIN and column.casefold() in folded:
                text = f"joins on {use.upstream}, and {path} changes the key"
                yield LocatedAssessment(
                    Assessment(BREAKING, text), use.usage.value, use.expression, use.line, use.file
                )
                return
    yield LocatedAssessment(Assessment(COMPATIBLE, f"does not join on {path}"))
