"""What edges alone tell, where there is no SQL to reason through."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from lumos.impact.rules.type_uses import ClauseKind, OutputColumn, TableVersions, ValueType
from lumos.impact.rules.values import rank
from lumos.impact.rules.verdicts import (
    BREAKING,
    COMPATIBLE,
    UNDETERMINED,
    Decision,
    resolved,
    type_finding,
)
from lumos.model.change import ConsumerUse
from lumos.model.lineage import ColumnMapping, ColumnUse, Derivation, Edge, UseKind
from lumos.model.schema import Field, Schema
from lumos.model.types import Unknown

ALL: Final = "*"
Fact = TypeVar("Fact", ColumnMapping, ColumnUse)
_USES: Final = {
    UseKind.JOIN: ConsumerUse.JOINED,
    UseKind.GROUP_BY: ConsumerUse.GROUPED,
    UseKind.FILTER: ConsumerUse.FILTERED,
    UseKind.CONDITIONAL: ConsumerUse.FILTERED,
    UseKind.WINDOW: ConsumerUse.GROUPED,
}


class Told(NamedTuple):
    """A decision with its place, and the columns (table, name) that it is about."""

    decision: Decision
    usage: str | None = None
    clause: str | None = None
    line: int | None = None
    file: str | None = None
    origins: tuple[tuple[str, str], ...] = ()


class Read(NamedTuple):
    """What is decided of one dataset that a making reads, and its columns that change by it."""

    told: list[Told]
    outputs: list[OutputColumn]
    is_doubtful: bool = False


def read(edge: Edge, versions: TableVersions, target: Schema | None) -> Read:
    """What an edge says of the changes of its upstream."""
    if not edge.columns and not edge.uses:
        text = f"which columns of {edge.upstream} it uses is not known: no SQL, no column lineage"
        return Read([Told(Decision(UNDETERMINED, text))], [], True)
    told: list[Told] = []
    outputs: list[OutputColumn] = []
    is_doubtful = False
    mappings, uses = _by_column(edge.columns), _by_column(edge.uses)
    for name in _changed(versions, mappings, uses):
        before, after = versions.columns.get(name, (None, None))
        starred = mappings.get(ALL, [])
        if starred and before is None and after is not None:
            starred = []
        mine = mappings.get(name.casefold(), [])
        if versions.is_doubtful or name in versions.lost:
            lost = [*mine, *uses.get(name.casefold(), ())]
            told += _about(versions.key, name, map(_lost, lost))
            outputs += [_lost_output(each, name, versions.key) for each in mine]
            continue
        used = [*uses.get(name.casefold(), ()), *uses.get(ALL, ())]
        told += _about(versions.key, name, (_use(use, before, after) for use in used))
        for mapping in mine:
            told += _about(versions.key, name, _mapping(mapping, before, after, target))
            outputs.append(_output(mapping, name, versions.key, before, after))
        if starred and not mine:
            is_doubtful = True
            text = f"takes all columns of {edge.upstream}, of which nobody knows what they become"
            told.append(Told(Decision(UNDETERMINED, text), ClauseKind.PROJECTION.value, ALL,
                             starred[0].line, starred[0].file))  # fmt: skip
    if versions.is_reordered and any(each.positional and each.star for each in edge.columns):
        text = f"goes by the places of columns of {edge.upstream}, and they move"
        told.append(Told(Decision(BREAKING, text), ClauseKind.INSERT.value, ALL))
    return Read(told, [each for each in outputs if each.before != each.after or each.is_lost],
                is_doubtful)  # fmt: skip


def _about(table: str, column: str, told: Iterable[Told]) -> Iterator[Told]:
    return (each._replace(origins=((table, column),)) for each in told)


def _changed(
    versions: TableVersions,
    mappings: Mapping[str, Sequence[ColumnMapping]],
    uses: Mapping[str, Sequence[ColumnUse]],
) -> Iterator[str]:
    """The columns that may have changed; of a doubtful table all that are used."""
    if not versions.is_doubtful:
        yield from versions.changed
        return
    names = {name.casefold(): name for name in versions.columns}
    for name in dict.fromkeys([*mappings, *uses]):
        yield names.get(name, name)


def _lost(fact: ColumnMapping | ColumnUse) -> Told:
    usage = fact.usage.value if isinstance(fact, ColumnUse) else ClauseKind.PROJECTION.value
    clause = fact.expression if isinstance(fact, ColumnUse) else fact.transformation
    text = f"what becomes of {fact.upstream} in {usage.replace('_', ' ')} cannot be told"
    return Told(Decision(UNDETERMINED, text), usage, clause, fact.line, fact.file)


def _lost_output(mapping: ColumnMapping, name: str, key: str) -> OutputColumn:
    return OutputColumn(
        name=mapping.downstream, before=ValueType(), after=ValueType(), is_lost=True,
        clause=mapping.transformation, line=mapping.line, origins=((key, name),),
    )  # fmt: skip


def _use(use: ColumnUse, before: Field | None, after: Field | None) -> Told:
    usage, clause = use.usage.value, use.expression
    place = (usage, clause, use.line, use.file)
    where = usage.replace("_", " ")
    if before is not None and after is None:
        return Told(Decision(BREAKING, f"needs {use.upstream} in {where}"), *place)
    if before is None or after is None or isinstance(after.type, Unknown):
        text = f"what becomes of {use.upstream} in {where} cannot be told"
        return Told(Decision(UNDETERMINED, text), *place)
    kinds = {_USES[use.usage]} if use.usage in _USES else set[ConsumerUse]()
    if use.negated:
        kinds.add(ConsumerUse.NOT_IN)
    found = [_nulls(use, before, after, kinds, where)]
    if before.type != after.type and use.cast_to is not None:
        found.append(Decision(COMPATIBLE, f"casts {use.upstream} to {use.cast_to} anyway"))
    elif before.type != after.type:
        finding = type_finding(before.type, after.type)
        verdict = resolved(finding, frozenset(kinds))
        text = f"expects {before.type.text} {use.upstream} in {where}"
        if verdict is COMPATIBLE:
            text = f"works with {after.type.text} {use.upstream} as well"
        found.append(Decision(verdict, text))
    return Told(min(found, key=lambda each: rank(each.verdict)), *place)


def _nulls(
    use: ColumnUse, before: Field, after: Field, kinds: set[ConsumerUse], where: str
) -> Decision:
    if after.nullable and not before.nullable and kinds & {ConsumerUse.JOINED, ConsumerUse.NOT_IN}:
        where = "NOT IN" if ConsumerUse.NOT_IN in kinds else where
        return Decision(BREAKING, f"expects no nulls of {use.upstream} in {where}")
    return Decision(COMPATIBLE, f"works with {use.upstream} as it will be")


def _mapping(
    mapping: ColumnMapping, before: Field | None, after: Field | None, target: Schema | None
) -> Iterator[Told]:
    clause = mapping.transformation
    place = (ClauseKind.PROJECTION.value, clause, mapping.line, mapping.file)
    name = mapping.upstream
    if before is not None and after is None:
        text = (
            f"no longer has {mapping.downstream}" if mapping.star else f"needs {name} in PROJECTION"
        )
        yield Told(Decision(BREAKING, text), *place)
        return
    if before is None or after is None:
        return
    stored = _field(target, mapping.downstream)
    if before.type != after.type:
        yield Told(_of_type(mapping, before, after, stored), *place)
    if after.nullable and not before.nullable:
        text = f"{mapping.downstream} may be null from now on"
        if stored is not None and stored.nullable:
            text = f"{mapping.downstream} may be null already"
        is_key = stored is not None and stored.key
        yield Told(Decision(BREAKING if is_key else COMPATIBLE, text), *place)


def _of_type(mapping: ColumnMapping, before: Field, after: Field, stored: Field | None) -> Decision:
    if mapping.cast_to is not None:
        return Decision(COMPATIBLE, f"casts {mapping.upstream} to {mapping.cast_to} anyway")
    if isinstance(after.type, Unknown):
        return Decision(UNDETERMINED, f"what becomes of {mapping.downstream} cannot be told")
    if mapping.derivation not in (Derivation.IDENTITY, None):
        finding = type_finding(before.type, after.type)
        if resolved(finding, frozenset()) is COMPATIBLE and not finding.breaks_if:
            return Decision(COMPATIBLE, f"works with {after.type.text} {mapping.upstream} as well")
        return Decision(
            UNDETERMINED, f"what {mapping.transformation or 'it'} makes of {after.type.text} "
            f"{mapping.upstream} cannot be told without its SQL",
        )  # fmt: skip
    finding = type_finding(before.type, after.type)
    uses = frozenset({ConsumerUse.SINK}) if stored is not None else frozenset[ConsumerUse]()
    if stored is not None and stored.key:
        uses |= {ConsumerUse.KEY}
    verdict = resolved(finding, uses)
    if verdict is BREAKING:
        return Decision(BREAKING, "type mismatch in pipeline")
    return Decision(verdict, f"{mapping.downstream} becomes {after.type.text}")


def _output(
    mapping: ColumnMapping, name: str, key: str, before: Field | None, after: Field | None
) -> OutputColumn:
    is_same = mapping.derivation in (Derivation.IDENTITY, None) and mapping.cast_to is None
    old, new = _value(before), _value(after)
    is_lost = False
    if mapping.cast_to is not None and old is not None and new is not None:
        new = ValueType(type=old.type, nullable=new.nullable)
    elif not is_same and old is not None and new is not None and old.type == new.type:
        # What is made of it is of the type that it was, whatever that is.
        old, new = ValueType(nullable=old.nullable), ValueType(nullable=new.nullable)
    elif not is_same:
        is_lost = new is not None
        old, new = ValueType(), ValueType() if is_lost else None
    return OutputColumn(
        name=mapping.downstream,
        before=old,
        after=new,
        is_lost=is_lost or (after is not None and isinstance(after.type, Unknown)),
        is_same_value=is_same,
        clause=mapping.transformation,
        line=mapping.line,
        origins=((key, name),),
    )


def _value(field: Field | None) -> ValueType | None:
    return None if field is None else ValueType(type=field.type, nullable=field.nullable)


def _field(schema: Schema | None, name: str) -> Field | None:
    return None if schema is None else field_named(schema, name)


def field_named(schema: Schema, name: str) -> Field | None:
    """The column of that name, in this case or in another."""
    exact = schema.field(name)
    if exact is not None:
        return exact
    folded = name.casefold()
    return next((field for field in schema.fields if field.name.casefold() == folded), None)


def _by_column(facts: Sequence[Fact]) -> dict[str, list[Fact]]:
    found: dict[str, list[Fact]] = {}
    for each in facts:
        found.setdefault(each.upstream.casefold(), []).append(each)
    return found
