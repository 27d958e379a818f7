"""The verdict on a place where a value that changes is used."""

from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from lumos.impact.rules.kinds import (
    castable,
    family,
    has_structure,
    is_spelled_otherwise,
    is_time,
    is_written_alike,
    keeps_equality,
    keeps_order,
    meet,
    refuses,
    takes,
    words_for,
)
from lumos.impact.rules.type_uses import ArgumentKind, ClauseKind, TypeUse, UseOperation, ValueType
from lumos.impact.rules.values import rank
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
from lumos.schemas.compatibility import judge

BREAKING: Final = Verdict.BREAKING
UNDETERMINED: Final = Verdict.UNDETERMINED
COMPATIBLE: Final = Verdict.COMPATIBLE
_WHOLE: Final = frozenset({*SIGNED, *UNSIGNED})
_CALLS: Final = (UseOperation.CALLED, UseOperation.AGGREGATED)
_PAIRING: Final = (UseOperation.COMPARED, UseOperation.NOT_IN, UseOperation.COMBINED)


class Decision(NamedTuple):
    """A verdict with its words; where it `fails`, there is no value any more."""

    verdict: Verdict
    text: str
    fails: bool = False


def resolved(finding: Finding, uses: frozenset[ConsumerUse]) -> Verdict:
    """A rule's verdict where all uses of the value are known."""
    if any(use in finding.breaks_if for use in uses):
        return BREAKING
    if uses and all(use in finding.holds_if for use in uses):
        return COMPATIBLE
    if finding.consumer is UNDETERMINED and finding.breaks_if:
        return COMPATIBLE
    return finding.consumer if rank(finding.consumer) < rank(COMPATIBLE) else COMPATIBLE


@lru_cache(maxsize=4096)
def type_finding(before: DataType, after: DataType) -> Finding:
    """The gravest that the rules say of a column whose type becomes another."""
    old, new = (Schema(fields=(Field(name="value", type=type),)) for type in (before, after))
    return judge(compare(old, new))[0]


def decide(meeting: TypeUse) -> tuple[Decision, ...]:
    """What becomes of a statement at one place: of the value's type, and of its nulls."""
    found = []
    if meeting.act in _STRUCTURAL:
        return (_STRUCTURAL[meeting.act](meeting),)
    before, after = meeting.before or ValueType(), meeting.after or ValueType()
    if before.type != after.type or isinstance(after.type, Unknown):
        found.append(_of_type(meeting, before.type, after.type))
    if before.nullable is False and after.nullable:
        found.append(_of_nulls(meeting))
    return tuple(found)


def _of_type(meeting: TypeUse, before: DataType, after: DataType) -> Decision:
    if meeting.accepts is not None and refuses(meeting.accepts, before, after):
        name, kinds = meeting.partner_text or "a function", words_for(meeting.accepts)
        text = f"passes {meeting.value} to {name}, which takes {kinds}"
        return Decision(BREAKING, text, fails=True)
    if meeting.act is UseOperation.CAST:
        return _cast(meeting, before, after)
    if before == after:
        # Neither is known.
        return _lost(meeting)
    finding = type_finding(before, after)
    if meeting.act is UseOperation.COUNTED:
        return Decision(COMPATIBLE, f"asks only whether there is a {meeting.value}")
    if meeting.act is UseOperation.HANDED_ON:
        if isinstance(after, Unknown):
            return _lost(meeting)
        return Decision(COMPATIBLE, f"hands {meeting.value} on as it is")
    if meeting.act is UseOperation.SPELLED or _is_written_out(meeting, before, after):
        return _spelled(meeting, before, after)
    if meeting.act is UseOperation.ENCODED:
        return _encoded(meeting, before, after)
    if meeting.act is UseOperation.HASHED:
        return _hashed(meeting, before, after)
    if meeting.act is UseOperation.STORED:
        return _stored(meeting, finding, before, after)
    if _is_too_long(meeting, before, after):
        return Decision(BREAKING, f"counts days with {meeting.value} as {before.text}", fails=True)
    if meeting.act is UseOperation.DIVIDED and _is_whole_no_more(meeting, before, after):
        return Decision(BREAKING, f"divides {meeting.value} as a whole number")
    if meeting.is_literal and (gone := _gone_symbols(meeting, before, after)):
        return Decision(
            BREAKING, f"compares {meeting.value} with {gone}, which is gone", fails=True
        )
    if meeting.act in _CALLS and not _is_known_to_take(meeting, before, after):
        name = meeting.partner_text or "a function"
        return Decision(
            UNDETERMINED, f"passes {meeting.value} to {name}, of which nobody knows what it takes"
        )
    if rank(finding.consumer) == rank(COMPATIBLE) and not finding.breaks_if:
        works = Decision(COMPATIBLE, f"works with {_new(meeting)} as well")
        return _built_otherwise(meeting, before, after) or works
    match meeting.act:
        case UseOperation.COMPARED | UseOperation.NOT_IN:
            return _compared(meeting, finding, before, after)
        case UseOperation.COMBINED:
            return _combined(meeting, finding, before, after)
        case UseOperation.CALLED | UseOperation.AGGREGATED:
            return _called(meeting, finding, before, after)
        case UseOperation.CALCULATED | UseOperation.DIVIDED:
            return _calculated(meeting, finding, before, after)
        case UseOperation.GROUPED:
            return _grouped(meeting, finding, before, after)
        case UseOperation.SORTED if keeps_order(before, after):
            return Decision(COMPATIBLE, f"sorts {_new(meeting)} in the same order")
        case _:
            return _by_rule(meeting, finding, frozenset(), _expects(meeting, before))


def _is_too_long(meeting: TypeUse, before: DataType, after: DataType) -> bool:
    """Days are added to dates with 32 bits nearly everywhere."""
    if SIGNED.get(before, 64) > 32 or SIGNED.get(after, 64) <= 32 or family(after) != "number":
        return False
    partner = _partner(meeting)
    return (
        meeting.act is UseOperation.CALCULATED and partner is not None and family(partner) == "time"
    )


def _is_whole_no_more(meeting: TypeUse, before: DataType, after: DataType) -> bool:
    other = meeting.partner_before.type if meeting.partner_before is not None else None
    return before in _WHOLE and other in _WHOLE and after not in _WHOLE


def _is_known_to_take(meeting: TypeUse, before: DataType, after: DataType) -> bool:
    """Whether a function takes the new type for certain, as it took the old one.

    Some functions take a decimal of one size only, that of the list they look it up in. No
    dialect chooses a function by the length of a text.
    """
    if isinstance(before, String) and isinstance(after, String):
        return True
    if meeting.accepts is None:
        return False
    if takes(meeting.accepts, before) is not False or takes(meeting.accepts, after):
        return True
    # The dialect writes such values out where a text is wanted.
    return ArgumentKind.TEXT in meeting.accepts and family(before) == family(after)


def _gone_symbols(meeting: TypeUse, before: DataType, after: DataType) -> str | None:
    if not (isinstance(before, Enum) and isinstance(after, Enum)):
        return None
    gone = [quoted_text(each) for each in before.symbols if each not in after.symbols]
    return next((each for each in gone if each in (meeting.partner_text or "")), None)


def _spelled(meeting: TypeUse, before: DataType, after: DataType) -> Decision:
    kind = family(after)
    if kind is None:
        return _lost(meeting)
    if isinstance(before, Array) and isinstance(after, Array):
        # Lists are put together, not texts.
        return _lost(meeting)
    if isinstance(after, Array | Map | Struct):
        return Decision(BREAKING, f"writes {meeting.value} out as text", fails=True)
    if is_spelled_otherwise(before, after):
        text = f"writes {meeting.value} out as text, and {after.text} otherwise than {before.text}"
        return Decision(BREAKING, text)
    return Decision(COMPATIBLE, f"writes {meeting.value} out as text anyway")


def _is_written_out(meeting: TypeUse, before: DataType, after: DataType) -> bool:
    """Whether a function of texts is given numbers or times, which the dialect writes out."""
    if (
        meeting.act not in _CALLS
        or meeting.accepts is None
        or ArgumentKind.TEXT not in meeting.accepts
    ):
        return False
    return takes(meeting.accepts, before) is False and family(after) == family(before)


def _encoded(meeting: TypeUse, before: DataType, after: DataType) -> Decision:
    if isinstance(after, Unknown):
        return _lost(meeting)
    name = meeting.partner_text or "a function"
    if is_written_alike(before, after):
        return Decision(COMPATIBLE, f"writes {meeting.value} out with {name} as before")
    text = f"writes {meeting.value} out with {name}, and {after.text} otherwise than {before.text}"
    return Decision(BREAKING, text)


def _hashed(meeting: TypeUse, before: DataType, after: DataType) -> Decision:
    name = meeting.partner_text or "a function"
    if isinstance(before, String) and isinstance(after, String):
        return Decision(COMPATIBLE, f"passes {meeting.value} to {name} as text as before")
    text = f"passes {meeting.value} to {name}, which depends on its type"
    kinds = family(before), family(after)
    return Decision(UNDETERMINED if None in kinds or kinds[0] == kinds[1] else BREAKING, text)


def _grouped(meeting: TypeUse, finding: Finding, before: DataType, after: DataType) -> Decision:
    if resolved(finding, frozenset({ConsumerUse.GROUPED})) is COMPATIBLE:
        return Decision(COMPATIBLE, f"works with {_new(meeting)} as well")
    if ConsumerUse.GROUPED in finding.breaks_if:
        # More values are told apart from now on.
        return Decision(BREAKING, _expects(meeting, before))
    where, name = _where(meeting), meeting.value
    match keeps_equality(before, after):
        case True:
            text = f"tells {after.text} {name} apart in {where} as before"
            return Decision(COMPATIBLE, text)
        case False:
            text = f"different {before.text} {name} become the same {after.text} in {where}"
            return Decision(BREAKING, text)
        case None:
            text = f"different {before.text} {name} may become the same {after.text} in {where}"
            return Decision(UNDETERMINED, text)


def _by_rule(
    meeting: TypeUse, finding: Finding, uses: frozenset[ConsumerUse], text: str
) -> Decision:
    verdict = resolved(finding, uses)
    if verdict is COMPATIBLE:
        return Decision(COMPATIBLE, f"works with {_new(meeting)} as well")
    return Decision(verdict, text)


def _cast(meeting: TypeUse, before: DataType, after: DataType) -> Decision:
    to = meeting.partner.type if meeting.partner is not None else None
    shown = meeting.partner_text or "another type"
    if to is not None and not isinstance(to, Unknown):
        shown = to.text
    works = None if to is None else castable(before, after, to)
    if works and to is not None and family(to) == "text" and is_spelled_otherwise(before, after):
        text = f"casts {meeting.value} to {shown}, and writes {after.text} otherwise"
        return Decision(BREAKING, f"{text} than {before.text}")
    if works:
        return Decision(COMPATIBLE, f"casts {meeting.value} to {shown} anyway")
    if works is None:
        return Decision(UNDETERMINED, f"casts {meeting.value} to {shown}, which nobody can judge")
    return Decision(
        BREAKING,
        f"casts {meeting.value} to {shown}, which {after.text} does not allow",
        fails=True,
    )


def _compared(meeting: TypeUse, finding: Finding, before: DataType, after: DataType) -> Decision:
    uses = {ConsumerUse.JOINED} if meeting.place is ClauseKind.JOIN else {ConsumerUse.FILTERED}
    if meeting.act is UseOperation.NOT_IN:
        uses.add(ConsumerUse.NOT_IN)
    found = _met(meeting, before, after, "compares {value} with {partner}")
    if found is not None:
        return found
    if meeting.is_literal and before in _WHOLE and (after in FLOATS or isinstance(after, Decimal)):
        return Decision(COMPATIBLE, f"works with {_new(meeting)} as well")
    if _partner(meeting) == after and not meeting.is_literal:
        return Decision(COMPATIBLE, f"compares {meeting.value} with {after.text} anyway")
    return _by_rule(meeting, finding, frozenset(uses), _expects(meeting, before))


def _combined(meeting: TypeUse, finding: Finding, before: DataType, after: DataType) -> Decision:
    found = _met(meeting, before, after, "puts {value} together with {partner}")
    return found or _by_rule(meeting, finding, frozenset(), _expects(meeting, before))


def _met(meeting: TypeUse, before: DataType, after: DataType, words: str) -> Decision | None:
    """The verdict where two values must go together, or None where the rule alone decides."""
    partner = _partner(meeting)
    was = meeting.partner_before.type if meeting.partner_before is not None else None
    if isinstance(after, Map) and not isinstance(before, Map):
        return Decision(BREAKING, _expects(meeting, before), fails=True)
    if was == before and partner == after:
        return _alike(meeting, before, after)
    fits, fitted = meet(after, partner), meet(before, was)
    if fits is None:
        text = words.format(value=meeting.value, partner=meeting.partner_text or "something")
        return Decision(UNDETERMINED, f"{text}, whose type is not known")
    if not fits and fitted is not False:
        return Decision(BREAKING, _expects(meeting, before), fails=True)
    if fits and fitted is False and partner is not None and not is_time(before):
        return Decision(COMPATIBLE, f"compares {meeting.value} with {partner.text} anyway")
    return None


def _built_otherwise(meeting: TypeUse, before: DataType, after: DataType) -> Decision | None:
    """Structures that meet must be built alike; how far, each dialect decides by itself.

    Spark refuses another number of fields and wider decimals, DuckDB casts field by field.
    """
    partner = _partner(meeting)
    if meeting.act not in _PAIRING or partner in (after, NULL):
        return None
    if not (has_structure(before) or has_structure(after)):
        return None
    other = meeting.partner_text or "something"
    text = f"puts {meeting.value} beside {other}, and {after.text} is not built alike"
    return Decision(UNDETERMINED, text)


def _alike(meeting: TypeUse, before: DataType, after: DataType) -> Decision:
    """Both sides change alike, and what was equal, or less, must still be."""
    name = meeting.value
    is_same: bool | None = True
    if meeting.is_ordering:
        is_same = keeps_order(before, after) or _is_compatible(type_finding(before, after))
    elif meeting.act is not UseOperation.COMBINED:
        is_same = keeps_equality(before, after)
    if is_same:
        return Decision(COMPATIBLE, f"both sides of {name} change alike")
    if meeting.is_ordering:
        return Decision(BREAKING, f"orders {name} as {before.text} in {_where(meeting)}")
    text = f"different {before.text} {name}"
    if is_same is None:
        return Decision(UNDETERMINED, f"{text} may become the same {after.text}")
    return Decision(BREAKING, f"{text} become the same {after.text}")


def _is_compatible(finding: Finding) -> bool:
    return resolved(finding, frozenset()) is COMPATIBLE


def _called(meeting: TypeUse, finding: Finding, before: DataType, after: DataType) -> Decision:
    name = meeting.partner_text or "a function"
    if meeting.accepts is None or refuses(meeting.accepts, before, after) is None:
        return Decision(UNDETERMINED, f"passes {meeting.value} of a type not known to {name}")
    if ArgumentKind.ANY in meeting.accepts and keeps_order(before, after):
        # Of all values that it takes, it finds the first or the last: MAX, MAX_BY.
        return Decision(COMPATIBLE, f"works with {_new(meeting)} as well")
    text = f"passes {meeting.value} to {name} as {before.text}"
    return _by_rule(meeting, finding, frozenset(), text)


def _calculated(meeting: TypeUse, finding: Finding, before: DataType, after: DataType) -> Decision:
    if isinstance(after, Unknown):
        return _lost(meeting)
    text = f"calculates with {meeting.value} as {before.text}"
    adds_days = before == DATE and isinstance(after, Timestamp)
    partner = _partner(meeting)
    if adds_days and (partner is None or family(partner) != "interval"):
        return Decision(BREAKING, text, fails=True)
    if family(before) != family(after):
        return Decision(BREAKING, text, fails=True)
    return _by_rule(meeting, finding, frozenset(), text)


def _stored(meeting: TypeUse, finding: Finding, before: DataType, after: DataType) -> Decision:
    target = _partner(meeting)
    if target is None or isinstance(target, Unknown):
        return _by_rule(
            meeting, finding, frozenset({ConsumerUse.SINK}), _stores(meeting, after, target)
        )
    fits = meet(after, target)
    if fits is None:
        return _lost(meeting)
    if after == target or rank(type_finding(after, target).consumer) == rank(COMPATIBLE):
        return Decision(COMPATIBLE, f"stores {meeting.value} as {target.text} all the same")
    if not fits:
        text = f"type mismatch in pipeline: {_stores(meeting, after, target)}"
        return Decision(BREAKING, text, fails=True)
    if before == target or _holds(before, target):
        return Decision(BREAKING, _stores(meeting, after, target))
    return _by_rule(
        meeting, finding, frozenset({ConsumerUse.SINK}), _stores(meeting, after, target)
    )


def _holds(type: DataType, target: DataType) -> bool:
    return rank(type_finding(type, target).consumer) == rank(COMPATIBLE)


def _of_nulls(meeting: TypeUse) -> Decision:
    value = meeting.value
    if meeting.act is UseOperation.NOT_IN:
        return Decision(BREAKING, f"expects no nulls of {value} in NOT IN")
    if meeting.act is UseOperation.COMPARED and meeting.place is ClauseKind.JOIN:
        return Decision(BREAKING, f"expects no nulls of {value} in JOIN")
    if (
        meeting.act is UseOperation.STORED
        and meeting.partner is not None
        and not meeting.partner.nullable
    ):
        return Decision(BREAKING, f"stores {value} in a column that refuses nulls")
    if meeting.act is UseOperation.COMBINED and (meeting.partner_text or "").endswith("COALESCE"):
        return Decision(COMPATIBLE, f"replaces nulls of {value} anyway")
    return Decision(COMPATIBLE, f"works with nulls of {value} as well")


def passed_on(
    name: str, before: ValueType, after: ValueType, *, is_key: bool, is_lost: bool
) -> tuple[Decision, ...]:
    """What it means that a dataset's own column changes."""
    found = []
    if is_lost or isinstance(after.type, Unknown):
        if before.type == after.type or is_lost:
            found.append(Decision(UNDETERMINED, f"what becomes of {name} cannot be told"))
    elif before.type != after.type and isinstance(before.type, Unknown):
        found.append(Decision(UNDETERMINED, f"{name} becomes {after.type.text}"))
    elif before.type != after.type:
        finding = type_finding(before.type, after.type)
        uses = frozenset({ConsumerUse.KEY}) if is_key else frozenset[ConsumerUse]()
        verdict = resolved(finding, uses)
        text = f"{name} becomes {after.type.text}, was {before.type.text}"
        found.append(Decision(verdict, text))
    if before.nullable is False and after.nullable:
        verdict = BREAKING if is_key else COMPATIBLE
        found.append(Decision(verdict, f"{name} may be null from now on"))
    return tuple(found)


def _named(meeting: TypeUse) -> Decision:
    return Decision(BREAKING, f"needs {meeting.value} in {_where(meeting)}")


def _ambiguous(meeting: TypeUse) -> Decision:
    return Decision(BREAKING, f"{meeting.value} means more than one column from now on")


def _placed(meeting: TypeUse) -> Decision:
    what = "moves" if meeting.before == meeting.after else "comes"
    if meeting.after is None:
        what = "goes"
    return Decision(
        BREAKING, f"goes by the places of columns in {_where(meeting)}, and {meeting.value} {what}"
    )  # fmt: skip


def _keyed(meeting: TypeUse) -> Decision:
    return Decision(BREAKING, f"joins by {meeting.value} as well from now on")


def _lost(meeting: TypeUse) -> Decision:
    return Decision(
        UNDETERMINED, f"what becomes of {meeting.value} in {_where(meeting)} cannot be told"
    )


_STRUCTURAL: Final[dict[UseOperation, Callable[[TypeUse], Decision]]] = {
    UseOperation.NAMED: _named,
    UseOperation.AMBIGUOUS: _ambiguous,
    UseOperation.PLACED: _placed,
    UseOperation.KEYED: _keyed,
    UseOperation.LOST: _lost,
}


def _partner(meeting: TypeUse) -> DataType | None:
    return meeting.partner.type if meeting.partner is not None else None


def _expects(meeting: TypeUse, before: DataType) -> str:
    return f"expects {before.text} {meeting.value} in {_where(meeting)}"


def _stores(meeting: TypeUse, after: DataType, target: DataType | None) -> str:
    column = f"a {target.text} column" if target is not None else "a column of another type"
    return f"stores {after.text} {meeting.value} in {column}"


def _new(meeting: TypeUse) -> str:
    after = meeting.after.type.text if meeting.after is not None else "no"
    return f"{after} {meeting.value}"


def _where(meeting: TypeUse) -> str:
    return meeting.place.value.replace("_", " ")
