"""Plain uses of columns: what conditions, groupings and orders do, read from their own words.

Most statements hand a column on and compare it with another in a join. The parser takes
milliseconds for each of them; the clause, which the edge repeats, and the types on both sides say
the same. Whatever is not as plain as that is left to those who read the whole statement.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from lumos.impact.rules.type_uses import (
    ArgumentKind,
    ClauseKind,
    TableVersions,
    TypeUse,
    UseOperation,
    ValueType,
)
from lumos.model.lineage import ColumnMapping, ColumnUse, Derivation, Edge, UseKind
from lumos.model.schema import Field
from lumos.model.types import (
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT32,
    SIGNED,
    STRING,
    DataType,
    Decimal,
    String,
)

_NAME: Final = r"((?:[a-z_]\w*\.)*([a-z_]\w*))"
_LITERAL: Final = r"('[^']*'|\d{1,9})"
_COLUMN: Final = re.compile(_NAME, re.IGNORECASE)
_OPERATOR: Final = r"\s*(=|<>|!=|<=|>=|<|>)\s*"
_EQUALITIES: Final = frozenset({"=", "<>", "!="})
_BOTH: Final = re.compile(rf"{_NAME}{_OPERATOR}{_NAME}", re.IGNORECASE)
_WITH_LITERAL: Final = re.compile(rf"{_NAME}{_OPERATOR}{_LITERAL}", re.IGNORECASE)
_CLAUSES: Final = {
    UseKind.JOIN: (re.compile(r"on\s+", re.IGNORECASE), ClauseKind.JOIN),
    UseKind.FILTER: (re.compile(r"where\s+", re.IGNORECASE), ClauseKind.FILTER),
    UseKind.GROUP_BY: (re.compile(r"group\s+by\s+", re.IGNORECASE), ClauseKind.GROUP_BY),
    UseKind.SORT: (re.compile(r"order\s+by\s+", re.IGNORECASE), ClauseKind.SORT),
}
_LISTS: Final = {UseKind.GROUP_BY: UseOperation.GROUPED, UseKind.SORT: UseOperation.SORTED}
_WORD: Final = re.compile(r"[\w$]+")
_LETTER: Final = re.compile(r"\w")
_DIRECTION: Final = re.compile(r"\s+(?:asc|desc)$", re.IGNORECASE)
_PIECES: Final = re.compile(r"'[^']*'|[()]|\b(?:and|or|between|case)\b|,", re.IGNORECASE)
# MAX(o.amount) OVER (PARTITION BY o.day, o.shop)
_EXTREME: Final = re.compile(
    rf"(max|min)\s*\(\s*{_NAME}\s*\)(\s*over\s*\(\s*partition\s+by\s+"
    r"[a-z_][\w.]*(?:\s*,\s*[a-z_][\w.]*)*\s*\))?",
    re.IGNORECASE,
)
# Those that every dialect gives back as they are.
_WELL_KNOWN: Final = frozenset({*SIGNED, BOOLEAN, DATE, FLOAT32, FLOAT64})


class Side(NamedTuple):
    """A column that is compared, and the text of what it is compared with.

    That is a literal unless `other` is the name of a column.
    """

    column: str
    text: str
    operator: str
    other: str | None = None

    @property
    def is_literal(self) -> bool:
        return self.other is None


Versions = Callable[[str], TableVersions]


def meetings(
    use: ColumnUse, edge: Edge, pair: tuple[Field, Field], beside: Sequence[Edge],
    versions: Versions,
) -> list[TypeUse] | None:  # fmt: skip
    """What a plain use does with a column of another type; None if it is not that plain.

    `beside` are all edges of the statement, in which the other side of a comparison is found.
    """
    is_odd = use.negated or use.cast_to is not None or use.downstream is not None
    if is_odd or use.usage not in _CLAUSES or use.expression is None:
        return None
    begins, place = _CLAUSES[use.usage]
    start = begins.match(use.expression)
    if start is None:
        return None
    before, after = (ValueType(type=each.type, nullable=each.nullable) for each in pair)
    plain = TypeUse(
        place=place, act=UseOperation.COMPARED, value=pair[0].name, before=before, after=after,
        clause=use.expression, line=use.line, origins=((edge.upstream, pair[0].name),),
    )  # fmt: skip
    name = use.upstream.casefold()
    body = use.expression[start.end() :].strip()
    if use.usage in _LISTS:
        return _listed(plain, name, body, _LISTS[use.usage])
    sides = _sides(name, body)
    if sides is None:
        return None
    found = []
    for side in sides:
        partner = _partner(side, use, edge, beside, versions)
        if partner is None:
            return None
        old, new = partner
        found.append(
            msgspec.structs.replace(
                plain, partner_before=old, partner=new, partner_text=side.text,
                is_literal=side.is_literal, is_ordering=side.operator not in _EQUALITIES,
            )
        )  # fmt: skip
    return found or None


class Extreme(NamedTuple):
    """A largest or smallest value, which is of the type that all values have.

    Of no rows at all it is null, unless it `is_of_rows`.
    """

    meeting: TypeUse
    is_of_rows: bool


def extreme(mapping: ColumnMapping, upstream: str, pair: tuple[Field, Field]) -> Extreme | None:
    """What the largest or smallest value of a column does with it, if nothing more is done."""
    if mapping.derivation is not Derivation.AGGREGATION or mapping.cast_to is not None:
        return None
    match = _EXTREME.fullmatch(mapping.transformation or "")
    if match is None or match.group(3).casefold() != mapping.upstream.casefold():
        return None
    if not all(_is_well_known(each.type) for each in pair):
        return None
    meeting = TypeUse(
        place=ClauseKind.PROJECTION, act=UseOperation.AGGREGATED, value=match.group(3),
        before=_value(pair[0]), after=_value(pair[1]), partner_text=match.group(1).upper(),
        accepts=(ArgumentKind.ANY,),
        clause=mapping.transformation, line=mapping.line, origins=((upstream, pair[0].name),),
    )  # fmt: skip
    return Extreme(meeting, is_of_rows=match.group(4) is not None)


def _is_well_known(type: DataType) -> bool:
    if isinstance(type, Decimal):
        return type.precision is not None
    return isinstance(type, String) or type in _WELL_KNOWN


def _listed(plain: TypeUse, name: str, body: str, act: UseOperation) -> list[TypeUse] | None:
    names = [_COLUMN.fullmatch(_DIRECTION.sub("", each.strip())) for each in body.split(",")]
    if not all(each is not None or item.strip().isdigit()
               for each, item in zip(names, body.split(","), strict=True)):  # fmt: skip
        return None
    if name not in [each.group(2).casefold() for each in names if each is not None]:
        return None
    if act is UseOperation.GROUPED and plain.after is not None and plain.after.type == STRING:
        # Whether texts of any length can be grouped by depends on the dialect.
        return None
    return [msgspec.structs.replace(plain, act=act)]


def _sides(name: str, body: str) -> list[Side] | None:
    """The comparisons of a column among conditions that all must hold; None if there is more."""
    conditions = _conditions(body)
    if conditions is None:
        return None
    found = []
    for condition in conditions:
        if name not in _WORD.findall(condition.casefold()):
            continue
        side = _side(name, condition.strip())
        if side is None:
            return None
        found.append(side)
    return found


def _side(name: str, condition: str) -> Side | None:
    with_literal = _WITH_LITERAL.fullmatch(condition)
    if with_literal is not None and with_literal.group(2).casefold() == name:
        return Side(name, with_literal.group(4), with_literal.group(3))
    both = _BOTH.fullmatch(condition)
    if both is None:
        return None
    first, left, operator, second, right = both.groups()
    if left.casefold() == name:
        return Side(name, second, operator, right.casefold())
    if right.casefold() == name:
        return Side(name, first, operator, left.casefold())
    return None


def _conditions(body: str) -> list[str] | None:
    """The parts between ANDs; None where something else than AND holds them together."""
    parts, start, depth = [], 0, 0
    for piece in _PIECES.finditer(body):
        text = piece.group().lower()
        if text == "(":
            depth += 1
        elif text == ")":
            depth -= 1
        elif depth == 0 and text == "and":
            parts.append(body[start : piece.start()])
            start = piece.end()
        elif depth == 0 and text in ("or", "between", "case", ","):
            return None
    return [*parts, body[start:]]


def _partner(
    side: Side, use: ColumnUse, edge: Edge, beside: Sequence[Edge], versions: Versions
) -> tuple[ValueType, ValueType] | None:
    if side.other is None:
        value = ValueType(type=STRING if side.text.startswith("'") else INT32, nullable=False)
        return value, value
    holders = {
        other.upstream
        for other in beside
        if any(_is_in(each, use, side.other) for each in other.uses)
    }
    if side.other == side.column:
        holders.discard(edge.upstream)
    if len(holders) != 1:
        return None
    table = versions(holders.pop())
    name = next((each for each in table.columns if each.casefold() == side.other), None)
    if name is None or table.is_doubtful or name in table.lost:
        return None
    before, after = table.columns[name]
    if before is None or after is None:
        return None
    return _value(before), _value(after)


def _is_in(each: ColumnUse, use: ColumnUse, name: str) -> bool:
    return (
        each.upstream.casefold() == name
        and each.usage is use.usage
        and each.expression == use.expression
    )


def _value(field: Field) -> ValueType:
    return ValueType(type=field.type, nullable=field.nullable)


def are_explained(names: Iterable[str], text: str, edges: Sequence[Edge]) -> bool:
    """Whether edges and aliases account for every place in a statement where a name stands."""
    clauses: dict[str, set[tuple[object, str]]] = {name: set() for name in names}
    if not all(map(_WORD.fullmatch, clauses)):
        return False
    for edge in edges:
        for mapping in edge.columns:
            known = clauses.get(mapping.upstream.casefold())
            if known is not None and not mapping.star:
                known.add((mapping.downstream, mapping.transformation or ""))
        for use in edge.uses:
            known = clauses.get(use.upstream.casefold())
            if known is not None:
                known.add((use.usage, use.expression or ""))
    for name, told in clauses.items():
        places = _places(name, text)
        explained = sum(_is_alias(text, place) for place in places)
        explained += sum(len(_places(name, clause.casefold())) for _, clause in told)
        if explained != len(places):
            return False
    return True


def _places(word: str, text: str) -> list[int]:
    """Where a word stands in a text; a pattern would look at each letter of it."""
    found = []
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        if not (_WORD.match(text[start - 1 : start]) or _WORD.match(text, end)):
            found.append(start)
        start = text.find(word, end)
    return found


def _is_alias(text: str, place: int) -> bool:
    before = text[:place].rstrip()
    return len(before) < place and before.endswith("as") and not _LETTER.match(before[-3:-2])
