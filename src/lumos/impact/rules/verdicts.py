"""Verdicts on single uses of a value whose type or nullability changes."""

from functools import lru_cache
from typing import Final, NamedTuple

from lumos.impact.rules.results import rank
from lumos.impact.rules.type_families import (
    accepts_string_literal,
    accepts_type,
    are_comparable,
    contains_struct,
    describe_kinds,
    family,
    has_same_encoding,
    is_castable,
    is_formatted_differently,
    keeps_equality,
    keeps_order,
    rejects_new_type,
)
from lumos.impact.rules.type_uses import ArgumentKind, ClauseKind, TypeUse, UseOperation, ValueType
from lumos.model.change import ConsumerUse, Finding, Verdict
from lumos.model.schema import Field, Schema
from lumos.model.types import (
    DATE,
    FLOATS,
    NULL,
    SIGNED,
    UNSIGNED,
    Array,
    DataType,
    Decimal,
    Enum,
    Map,
    String,
    Struct,
    Timestamp,
    Unknown,
    quoted_text,
)
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import classify

BREAKING: Final = Verdict.BREAKING
UNDETERMINED: Final = Verdict.UNDETERMINED
COMPATIBLE: Final = Verdict.COMPATIBLE
_INTEGERS: Final = frozenset({*SIGNED, *UNSIGNED})
_CALL_OPERATIONS: Final = (UseOperation.CALLED, UseOperation.AGGREGATED)
_PAIR_OPERATIONS: Final = (UseOperation.COMPARED, UseOperation.NOT_IN, UseOperation.COMBINED)


class Assessment(NamedTuple):
    """A verdict with its reason; `fails` means that the expression no longer returns a value."""

    verdict: Verdict
    text: str
    fails: bool = False


def resolve_verdict(finding: Finding, uses: frozenset[ConsumerUse]) -> Verdict:
    """The verdict of a compatibility rule, given all uses of the value."""
    if any(use in finding.breaks_if for use in uses):
        return BREAKING
    if uses and all(use in finding.holds_if for use in uses):
        return COMPATIBLE
    if finding.consumer is UNDETERMINED and finding.breaks_if:
        return COMPATIBLE
    return finding.consumer if rank(finding.consumer) < rank(COMPATIBLE) else COMPATIBLE


@lru_cache(maxsize=4096)
def type_finding(before: DataType, after: DataType) -> Finding:
    """The most severe finding for a column that changes from one type to another."""
    old, new = (Schema(fields=(Field(name="value", type=type),)) for type in (before, after))
    return classify(compare(old, new))[0]


def assess_use(use: TypeUse) -> tuple[Assessment, ...]:
    """Assess one use of a changed value: its type and its nullability."""
    if (assessment := _assess_independent_of_type(use)) is not None:
        return (assessment,)
    assessments = []
    before, after = use.before or ValueType(), use.after or ValueType()
    if before.type != after.type or isinstance(after.type, Unknown):
        assessments.append(_assess_type(use, before.type, after.type))
    if before.nullable is False and after.nullable:
        assessments.append(_assess_nulls(use))
    return tuple(assessments)


def _assess_type(use: TypeUse, before: DataType, after: DataType) -> Assessment:
    if use.accepts is not None and rejects_new_type(use.accepts, before, after):
        name, kinds = use.partner_text or "a function", describe_kinds(use.accepts)
        text = f"passes {use.value} to {name}, which takes {kinds}"
        return Assessment(BREAKING, text, fails=True)
    if use.operation is UseOperation.CAST:
        return _assess_cast(use, before, after)
    if before == after:
        # Both types are unknown.
        return _assess_unknown(use)
    finding = type_finding(before, after)
    if use.operation is UseOperation.COUNTED:
        return Assessment(COMPATIBLE, f"only counts {use.value} or checks it for null")
    if use.operation is UseOperation.PASSED_THROUGH:
        if isinstance(after, Unknown):
            return _assess_unknown(use)
        return Assessment(COMPATIBLE, f"passes {use.value} through unchanged")
    if use.operation is UseOperation.FORMATTED or _is_formatted_as_text(use, before, after):
        return _assess_formatting(use, before, after)
    if use.operation is UseOperation.ENCODED:
        return _assess_encoding(use, before, after)
    if use.operation is UseOperation.HASHED:
        return _assess_hash(use, before, after)
    if use.operation is UseOperation.STORED:
        return _assess_stored_value(use, finding, before, after)
    if _is_too_wide_for_days(use, before, after):
        return Assessment(BREAKING, f"adds {use.value} to a date as {before.text}", fails=True)
    operand_types = before, use.partner_before.type if use.partner_before is not None else None
    was_integer_division = use.operation is UseOperation.DIVIDED and _INTEGERS.issuperset(
        operand_types
    )
    if was_integer_division and after not in _INTEGERS:
        return Assessment(BREAKING, f"divides {use.value} as an integer")
    if use.is_literal and (removed := _removed_symbol(use, before, after)):
        return Assessment(
            BREAKING, f"compares {use.value} with {removed}, which is removed", fails=True
        )
    if use.operation in _CALL_OPERATIONS and not _is_known_to_accept(use, before, after):
        name = use.partner_text or "a function"
        return Assessment(
            UNDETERMINED, f"passes {use.value} to {name}, whose accepted types are unknown"
        )
    if rank(finding.consumer) == rank(COMPATIBLE) and not finding.breaks_if:
        compatible = Assessment(COMPATIBLE, f"works with {_new_value_text(use)} as well")
        return _assess_structs(use, before, after) or compatible
    match use.operation:
        case UseOperation.COMPARED | UseOperation.NOT_IN:
            return _assess_comparison(use, finding, before, after)
        case UseOperation.COMBINED:
            assessment = _assess_pair(use, before, after, "combines {value} with {partner}")
            return assessment or _assess_by_rule(
                use, finding, frozenset(), _expects_text(use, before)
            )
        case UseOperation.CALLED | UseOperation.AGGREGATED:
            return _assess_call(use, finding, before, after)
        case UseOperation.CALCULATED | UseOperation.DIVIDED:
            return _assess_arithmetic(use, finding, before, after)
        case UseOperation.GROUPED:
            return _assess_grouping(use, finding, before, after)
        case UseOperation.SORTED if keeps_order(before, after):
            return Assessment(COMPATIBLE, f"sorts {_new_value_text(use)} in the same order")
        case _:
            return _assess_by_rule(use, finding, frozenset(), _expects_text(use, before))


def _is_too_wide_for_days(use: TypeUse, before: DataType, after: DataType) -> bool:
    """Whether a number of days added to a date becomes 64-bit, which most dialects reject."""
    if SIGNED.get(before, 64) > 32 or SIGNED.get(after, 64) <= 32 or family(after) != "number":
        return False
    partner = _partner_type(use)
    return (
        use.operation is UseOperation.CALCULATED
        and partner is not None
        and family(partner) == "time"
    )


def _is_known_to_accept(use: TypeUse, before: DataType, after: DataType) -> bool:
    """Whether a function certainly accepts the new type if it accepted the old one.

    All functions accept strings of any length. A function whose accepted kinds are unknown may
    reject the new type: one that searches an array for a decimal accepts only one precision.
    """
    if isinstance(before, String) and isinstance(after, String):
        return True
    if use.accepts is None:
        return False
    if accepts_type(use.accepts, before) is not False or accepts_type(use.accepts, after):
        return True
    # The dialect converts such values to strings.
    return ArgumentKind.TEXT in use.accepts and family(before) == family(after)


def _removed_symbol(use: TypeUse, before: DataType, after: DataType) -> str | None:
    if not (isinstance(before, Enum) and isinstance(after, Enum)):
        return None
    removed_symbols = [quoted_text(each) for each in before.symbols if each not in after.symbols]
    return next((each for each in removed_symbols if each in (use.partner_text or "")), None)


def _assess_formatting(use: TypeUse, before: DataType, after: DataType) -> Assessment:
    kind = family(after)
    if kind is None:
        return _assess_unknown(use)
    if isinstance(before, Array) and isinstance(after, Array):
        # Arrays are concatenated, not strings.
        return _assess_unknown(use)
    if isinstance(after, Array | Map | Struct):
        return Assessment(BREAKING, f"converts {use.value} to text", fails=True)
    if is_formatted_differently(before, after):
        text = f"converts {use.value} to text, which formats {after.text} unlike {before.text}"
        return Assessment(BREAKING, text)
    return Assessment(COMPATIBLE, f"converts {use.value} to text anyway")


def _is_formatted_as_text(use: TypeUse, before: DataType, after: DataType) -> bool:
    """Whether a string function gets numbers or times, which the dialect converts to text."""
    if (
        use.operation not in _CALL_OPERATIONS
        or use.accepts is None
        or ArgumentKind.TEXT not in use.accepts
    ):
        return False
    return accepts_type(use.accepts, before) is False and family(after) == family(before)


def _assess_encoding(use: TypeUse, before: DataType, after: DataType) -> Assessment:
    if isinstance(after, Unknown):
        return _assess_unknown(use)
    name = use.partner_text or "a function"
    if has_same_encoding(before, after):
        return Assessment(COMPATIBLE, f"encodes {use.value} with {name} as before")
    text = f"encodes {use.value} with {name}, which formats {after.text} unlike {before.text}"
    # Readers of the text may or may not use the fields that are added or removed.
    are_structs = contains_struct(before) and contains_struct(after)
    has_other_fields = are_structs and _field_names(before) != _field_names(after)
    return Assessment(UNDETERMINED if has_other_fields else BREAKING, text)


def _field_names(type: DataType) -> object:
    """The names of the fields in a type, nested like the type."""
    match type:
        case Struct(members):
            return {member.name: _field_names(member.type) for member in members}
        case Array(element):
            return [_field_names(element)]
        case Map(key, value):
            return [_field_names(key), _field_names(value)]
        case _:
            return None


def _assess_hash(use: TypeUse, before: DataType, after: DataType) -> Assessment:
    name = use.partner_text or "a function"
    if isinstance(before, String) and isinstance(after, String):
        return Assessment(COMPATIBLE, f"passes {use.value} to {name} as text as before")
    text = f"passes {use.value} to {name}, whose result depends on its type"
    families = family(before), family(after)
    return Assessment(
        UNDETERMINED if None in families or families[0] == families[1] else BREAKING, text
    )


def _assess_grouping(
    use: TypeUse, finding: Finding, before: DataType, after: DataType
) -> Assessment:
    if resolve_verdict(finding, frozenset({ConsumerUse.GROUPED})) is COMPATIBLE:
        return Assessment(COMPATIBLE, f"works with {_new_value_text(use)} as well")
    if ConsumerUse.GROUPED in finding.breaks_if:
        # More values are distinguished than before.
        return Assessment(BREAKING, _expects_text(use, before))
    clause_name, value = _clause_name(use), use.value
    match keeps_equality(before, after):
        case True:
            text = f"distinguishes {after.text} {value} in {clause_name} as before"
            return Assessment(COMPATIBLE, text)
        case False:
            text = f"different {before.text} {value} become the same {after.text} in {clause_name}"
            return Assessment(BREAKING, text)
        case None:
            text = (
                f"different {before.text} {value} may become the same {after.text} in {clause_name}"
            )
            return Assessment(UNDETERMINED, text)


def _assess_by_rule(
    use: TypeUse, finding: Finding, uses: frozenset[ConsumerUse], text: str
) -> Assessment:
    verdict = resolve_verdict(finding, uses)
    if verdict is COMPATIBLE:
        return Assessment(COMPATIBLE, f"works with {_new_value_text(use)} as well")
    return Assessment(verdict, text)


def _assess_cast(use: TypeUse, before: DataType, after: DataType) -> Assessment:
    target = use.partner.type if use.partner is not None else None
    target_text = use.partner_text or "another type"
    if target is not None and not isinstance(target, Unknown):
        target_text = target.text
    is_allowed = None if target is None else is_castable(before, after, target)
    if (
        is_allowed
        and target is not None
        and family(target) == "text"
        and is_formatted_differently(before, after)
    ):
        text = (
            f"casts {use.value} to {target_text}, which formats {after.text} unlike {before.text}"
        )
        return Assessment(BREAKING, text)
    if is_allowed:
        return Assessment(COMPATIBLE, f"casts {use.value} to {target_text} anyway")
    if is_allowed is None:
        return Assessment(
            UNDETERMINED, f"casts {use.value} to {target_text}, with an unknown result"
        )
    return Assessment(
        BREAKING,
        f"casts {use.value} to {target_text}, which {after.text} does not allow",
        fails=True,
    )


def _assess_comparison(
    use: TypeUse, finding: Finding, before: DataType, after: DataType
) -> Assessment:
    uses = {ConsumerUse.JOINED} if use.clause_kind is ClauseKind.JOIN else {ConsumerUse.FILTERED}
    if use.operation is UseOperation.NOT_IN:
        uses.add(ConsumerUse.NOT_IN)
    assessment = _assess_pair(use, before, after, "compares {value} with {partner}")
    if assessment is not None:
        return assessment
    if use.is_literal and before in _INTEGERS and (after in FLOATS or isinstance(after, Decimal)):
        return Assessment(COMPATIBLE, f"works with {_new_value_text(use)} as well")
    if _partner_type(use) == after and not use.is_literal:
        return Assessment(COMPATIBLE, f"compares {use.value} with {after.text} anyway")
    return _assess_by_rule(use, finding, frozenset(uses), _expects_text(use, before))


def _assess_pair(
    use: TypeUse, before: DataType, after: DataType, template: str
) -> Assessment | None:
    """Assess two values that need compatible types; None if the general rule applies."""
    partner = _partner_type(use)
    partner_type_before = use.partner_before.type if use.partner_before is not None else None
    if isinstance(after, Map) and not isinstance(before, Map):
        return Assessment(BREAKING, _expects_text(use, before), fails=True)
    if partner_type_before == before and partner == after:
        return _assess_same_change(use, before, after)
    is_comparable = are_comparable(after, partner)
    was_comparable = are_comparable(before, partner_type_before)
    if is_comparable is None:
        text = template.format(value=use.value, partner=use.partner_text or "something")
        return Assessment(UNDETERMINED, f"{text}, whose type is unknown")
    if not is_comparable and was_comparable is not False:
        return Assessment(BREAKING, _expects_text(use, before), fails=True)
    if (
        is_comparable
        and was_comparable is False
        and partner is not None
        and not accepts_string_literal(before)
    ):
        return Assessment(COMPATIBLE, f"compares {use.value} with {partner.text} anyway")
    return None


def _assess_structs(use: TypeUse, before: DataType, after: DataType) -> Assessment | None:
    """Assess combined structs, whose compatibility differs between dialects; None for others.

    Spark rejects a different number of fields and wider decimals; DuckDB casts field by field.
    """
    partner = _partner_type(use)
    if use.operation not in _PAIR_OPERATIONS or partner in (after, NULL):
        return None
    if not (contains_struct(before) or contains_struct(after)):
        return None
    other = use.partner_text or "something"
    text = f"combines {use.value} with {other}, and {after.text} has a different structure"
    return Assessment(UNDETERMINED, text)


def _assess_same_change(use: TypeUse, before: DataType, after: DataType) -> Assessment:
    """Assess two values that change the same way: their equality or order may be lost."""
    value = use.value
    is_preserved: bool | None = True
    if use.is_ordering:
        verdict = resolve_verdict(type_finding(before, after), frozenset())
        is_preserved = keeps_order(before, after) or verdict is COMPATIBLE
    elif use.operation is not UseOperation.COMBINED:
        is_preserved = keeps_equality(before, after)
    if is_preserved:
        return Assessment(COMPATIBLE, f"both sides of {value} change the same way")
    if use.is_ordering:
        return Assessment(BREAKING, f"orders {value} as {before.text} in {_clause_name(use)}")
    text = f"different {before.text} {value}"
    if is_preserved is None:
        return Assessment(UNDETERMINED, f"{text} may become the same {after.text}")
    return Assessment(BREAKING, f"{text} become the same {after.text}")


def _assess_call(use: TypeUse, finding: Finding, before: DataType, after: DataType) -> Assessment:
    name = use.partner_text or "a function"
    if use.accepts is None or rejects_new_type(use.accepts, before, after) is None:
        return Assessment(UNDETERMINED, f"passes {use.value} of unknown type to {name}")
    if ArgumentKind.ANY in use.accepts and keeps_order(before, after):
        # Functions of any type that depend on the order: MAX, MAX_BY.
        return Assessment(COMPATIBLE, f"works with {_new_value_text(use)} as well")
    text = f"passes {use.value} to {name} as {before.text}"
    assessment = _assess_by_rule(use, finding, frozenset(), text)
    if assessment.verdict is BREAKING and contains_struct(before) and contains_struct(after):
        # The function may or may not need the fields that change.
        return assessment._replace(verdict=UNDETERMINED)
    return assessment


def _assess_arithmetic(
    use: TypeUse, finding: Finding, before: DataType, after: DataType
) -> Assessment:
    if isinstance(after, Unknown):
        return _assess_unknown(use)
    text = f"calculates with {use.value} as {before.text}"
    adds_days = before == DATE and isinstance(after, Timestamp)
    partner = _partner_type(use)
    if adds_days and (partner is None or family(partner) != "interval"):
        return Assessment(BREAKING, text, fails=True)
    if family(before) != family(after):
        return Assessment(BREAKING, text, fails=True)
    return _assess_by_rule(use, finding, frozenset(), text)


def _assess_stored_value(
    use: TypeUse, finding: Finding, before: DataType, after: DataType
) -> Assessment:
    target = _partner_type(use)
    if target is None or isinstance(target, Unknown):
        return _assess_by_rule(
            use, finding, frozenset({ConsumerUse.SINK}), _stores_text(use, after, target)
        )
    is_comparable = are_comparable(after, target)
    if is_comparable is None:
        return _assess_unknown(use)
    if after == target or _is_widening(after, target):
        return Assessment(COMPATIBLE, f"still stores {use.value} as {target.text}")
    if not is_comparable:
        text = f"type mismatch in pipeline: {_stores_text(use, after, target)}"
        return Assessment(BREAKING, text, fails=True)
    if before == target or _is_widening(before, target):
        return Assessment(BREAKING, _stores_text(use, after, target))
    return _assess_by_rule(
        use, finding, frozenset({ConsumerUse.SINK}), _stores_text(use, after, target)
    )


def _is_widening(type: DataType, target: DataType) -> bool:
    return rank(type_finding(type, target).consumer) == rank(COMPATIBLE)


def _assess_nulls(use: TypeUse) -> Assessment:
    value = use.value
    if use.operation is UseOperation.NOT_IN:
        return Assessment(BREAKING, f"expects no nulls of {value} in NOT IN")
    if use.operation is UseOperation.COMPARED and use.clause_kind is ClauseKind.JOIN:
        return Assessment(BREAKING, f"expects no nulls of {value} in JOIN")
    if (
        use.operation is UseOperation.STORED
        and use.partner is not None
        and not use.partner.nullable
    ):
        return Assessment(BREAKING, f"stores {value} in a column that rejects nulls")
    if use.operation is UseOperation.COMBINED and (use.partner_text or "").endswith("COALESCE"):
        return Assessment(COMPATIBLE, f"replaces nulls of {value} anyway")
    return Assessment(COMPATIBLE, f"works with nulls of {value} as well")


def assess_column_change(
    name: str, before: ValueType, after: ValueType, *, is_key: bool, is_unknown: bool
) -> tuple[Assessment, ...]:
    """Assess a column of a downstream dataset that changes."""
    assessments = []
    if is_unknown or isinstance(after.type, Unknown):
        if before.type == after.type or is_unknown:
            assessments.append(Assessment(UNDETERMINED, f"effect on {name} is unknown"))
    elif before.type != after.type and isinstance(before.type, Unknown):
        assessments.append(Assessment(UNDETERMINED, f"{name} becomes {after.type.text}"))
    elif before.type != after.type:
        finding = type_finding(before.type, after.type)
        uses = frozenset({ConsumerUse.KEY}) if is_key else frozenset[ConsumerUse]()
        verdict = resolve_verdict(finding, uses)
        text = f"{name} becomes {after.type.text}, was {before.type.text}"
        if verdict is BREAKING and contains_struct(before.type) and contains_struct(after.type):
            # Only readers of the fields that change are affected.
            verdict = UNDETERMINED
        assessments.append(Assessment(verdict, text))
    if before.nullable is False and after.nullable:
        verdict = BREAKING if is_key else COMPATIBLE
        assessments.append(Assessment(verdict, f"{name} may be null from now on"))
    return tuple(assessments)


def _assess_independent_of_type(use: TypeUse) -> Assessment | None:
    """Assess a use whose verdict does not depend on types; None for other uses."""
    clause, value = _clause_name(use), use.value
    match use.operation:
        case UseOperation.MISSING:
            return Assessment(BREAKING, f"needs {value} in {clause}")
        case UseOperation.AMBIGUOUS:
            return Assessment(BREAKING, f"{value} becomes ambiguous")
        case UseOperation.USED_BY_POSITION:
            change = "moved" if use.before == use.after else "added"
            if use.after is None:
                change = "removed"
            text = f"relies on column positions in {clause}, and {value} is {change}"
            return Assessment(BREAKING, text)
        case UseOperation.NATURAL_JOIN_KEY:
            return Assessment(BREAKING, f"now also joins by {value}")
        case UseOperation.UNKNOWN:
            return _assess_unknown(use)
        case _:
            return None


def _assess_unknown(use: TypeUse) -> Assessment:
    return Assessment(UNDETERMINED, f"effect on {use.value} in {_clause_name(use)} is unknown")


def _partner_type(use: TypeUse) -> DataType | None:
    return use.partner.type if use.partner is not None else None


def _expects_text(use: TypeUse, before: DataType) -> str:
    return f"expects {before.text} {use.value} in {_clause_name(use)}"


def _stores_text(use: TypeUse, after: DataType, target: DataType | None) -> str:
    column = f"a {target.text} column" if target is not None else "a column of another type"
    return f"stores {after.text} {use.value} in {column}"


def _new_value_text(use: TypeUse) -> str:
    after = use.after.type.text if use.after is not None else "no"
    return f"{after} {use.value}"


def _clause_name(use: TypeUse) -> str:
    return use.clause_kind.value.replace("_", " ")
