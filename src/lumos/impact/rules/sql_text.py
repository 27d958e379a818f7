"""Shortcuts: impact on simple statements, from their text and edges, without parsing.

Most statements pass a column on and compare it with another one in a join. For these, the clause
in the edge and the types on both sides give the same result as the parser, at a tenth of the cost
or less. All other statements are left to the parser.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

import msgspec

from lumos.impact.rules.edges import ALL
from lumos.impact.rules.graph import DatasetDerivation, Versions
from lumos.impact.rules.type_families import has_structure
from lumos.impact.rules.type_uses import (
    ArgumentKind,
    ClauseKind,
    OutputColumn,
    StatementEffect,
    TableVersions,
    TypeUse,
    UseOperation,
    ValueType,
)
from lumos.model.lineage import ColumnMapping, ColumnUse, Derivation, Edge, UseKind
from lumos.model.paths import is_lineage_column, lineage_column
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
    Unknown,
)


@cache
def _word_pattern(word: str) -> re.Pattern[str]:
    """A pattern for a whole word; starting with the letters makes it ten times faster."""
    return re.compile(rf"{word}\b(?<!\w{word})")


class _Words:
    """Words to look for in a lower-case text."""

    def __init__(self, *words: str) -> None:
        self._words = words

    def are_in(self, text: str) -> bool:
        # Most texts contain none of them and need no pattern.
        return any(word in text and _word_pattern(word).search(text) for word in self._words)


_COUNT: Final = re.compile(r"count\s*\(\s*\*\s*\)")
_WRITES: Final = _Words("insert", "merge", "update", "delete", "copy")
_OUTER: Final = _Words("left", "right", "full", "outer")
_NOT_NULL: Final = re.compile(r"\bis\s+not\s+null\b")
_COMPARING_USES: Final = (UseKind.JOIN, UseKind.FILTER)
_READING_ORDER: Final = {ClauseKind.JOIN: 0, ClauseKind.PROJECTION: 1}
_STAR: Final = re.compile(r"\bselect\s+(?:[\w.]+\.)?(\*)")
_SELECT: Final = _word_pattern("select")
_NESTING_KEYWORDS: Final = _Words(
    "with", "union", "intersect", "except", "minus", "distinct", "lateral", "pivot", "unpivot",
    "unnest", "using", "values",
)  # fmt: skip
_NATURAL: Final = _Words("natural")
# STRUCT(*), CONCAT_WS(',', o.*)
_ALL_AS_ARGUMENTS: Final = re.compile(r"[(,]\s*(?:\w+\.)*\*\s*\)")
# FROM orders AS o(a, b)
_RENAMED_BY_POSITION: Final = re.compile(
    r"(?:from|join)(?<!\wfrom)(?<!\wjoin)\s+[^\s(),]+\s+(?:as\s+)?(?!(?:as|on|using)\b)\w+\s*\("
)


def is_unmentioned(derivation: DatasetDerivation, changed: Mapping[str, TableVersions]) -> bool:
    """Whether the statement certainly uses nothing that changes, by name or by star."""
    assert derivation.sql is not None
    text = derivation.sql.casefold()
    if _NATURAL.are_in(text):
        return False
    for versions in changed.values():
        if versions.is_doubtful:
            return False
        if any(name.casefold() in text for name in versions.changed):
            return False
    edges = [edge for edge in derivation.edges if edge.upstream in changed]
    if _uses_unnamed_columns(text, edges):
        return False
    if ALL not in _COUNT.sub("", text):
        # DuckDB's FROM without SELECT selects all columns without a star.
        return not any(each.star for edge in derivation.edges for each in edge.columns)
    return all(map(_has_no_star, edges))


def _uses_unnamed_columns(text: str, edges: Sequence[Edge]) -> bool:
    """Whether columns are renamed by position, or used without being named.

    Examples: STRUCT(*), SELECT t FROM t.
    """
    if _RENAMED_BY_POSITION.search(text):
        return True
    if ALL in text and _ALL_AS_ARGUMENTS.search(_COUNT.sub("", text)):
        return True
    read = {each.upstream for edge in edges for each in edge.columns}
    read |= {each.upstream for edge in edges for each in edge.uses}
    return any(lineage_column(name).casefold() not in text for name in read - {ALL})


def _has_no_star(edge: Edge) -> bool:
    has_columns = bool(edge.columns)
    return has_columns and not any(each.star or each.upstream == ALL for each in edge.columns)


def plain_effect(
    derivation: DatasetDerivation, changed: Mapping[str, TableVersions], versions: Versions
) -> StatementEffect | None:
    """Return the effect on a simple statement; None if it has to be parsed."""
    assert derivation.sql is not None
    text = derivation.sql.casefold()
    if any(not _keeps_columns(each) for each in changed.values()) or _WRITES.are_in(text):
        return None
    if _NESTING_KEYWORDS.are_in(text) and any(map(_changes_structure, changed.values())):
        # Combined results need structs of the same structure.
        return None
    if any(_changes_nulls(each) for each in changed.values()) and (
        _OUTER.are_in(text) or _NOT_NULL.search(text)
    ):
        return None
    targets: dict[str, int] = {}
    for edge in derivation.edges:
        for mapping in edge.columns:
            targets[mapping.downstream] = targets.get(mapping.downstream, 0) + 1
    type_uses: list[TypeUse] = []
    passed_on: list[_PassedOn] = []
    for edge in derivation.edges:
        if edge.upstream not in changed:
            continue
        if not (edge.columns or edge.uses):
            # The edge may stand for an unexpanded star.
            return None
        edge_uses = _type_uses_of_edge(derivation, edge, changed[edge.upstream], versions)
        passed = _passed_on(edge, changed[edge.upstream], targets, text)
        if passed is None or edge_uses is None:
            return None
        passed_on += (each for each in passed if each.output.before != each.output.after)
        type_uses += edge_uses
        type_uses += (each.type_use for each in passed if each.type_use is not None)
    if type_uses and _is_nested(text):
        return None
    if not _edges_explain_changes(changed, text, derivation.edges):
        return None
    distinct_uses = tuple(dict.fromkeys(sorted(type_uses, key=_reading_order)))
    return StatementEffect(
        type_uses=distinct_uses,
        outputs=tuple(_with_type_use(each, distinct_uses) for each in passed_on),
    )


class _PassedOn(NamedTuple):
    """A column derived from a changed one, and the type use on the way, if any."""

    output: OutputColumn
    type_use: TypeUse | None = None


def _reading_order(type_use: TypeUse) -> int:
    """Sort key: joins first, then projections, then the rest, as the parser reports them."""
    return _READING_ORDER.get(type_use.clause_kind, len(_READING_ORDER))


def _with_type_use(passed: _PassedOn, type_uses: Sequence[TypeUse]) -> OutputColumn:
    if passed.type_use is None:
        return passed.output
    position = type_uses.index(passed.type_use)
    return msgspec.structs.replace(passed.output, is_same_value=False, type_uses=(position,))


def _is_nested(text: str) -> bool:
    """Whether a name may refer to the result of another query."""
    return len(_SELECT.findall(text)) != 1 or _NESTING_KEYWORDS.are_in(text)


def _type_uses_of_edge(
    derivation: DatasetDerivation, edge: Edge, versions: TableVersions, all_versions: Versions
) -> list[TypeUse] | None:
    """Type uses of changed columns in conditions, GROUP BY and ORDER BY; None if not plain."""
    names = {name.casefold(): name for name in versions.changed}
    compared = _compared_columns(edge)
    found: list[TypeUse] = []
    for use in edge.uses:
        if use.upstream == ALL:
            return None
        name = names.get(lineage_column(use.upstream).casefold())
        if name is None:
            continue
        before, after = versions.columns[name]
        if before is None or after is None or not is_lineage_column(use.upstream):
            return None
        if use.usage not in _COMPARING_USES and use.upstream.casefold() in compared:
            before, after = _without_nulls(before), _without_nulls(after)
            if before == after:
                continue
        edge_uses = plain_type_uses(use, edge, (before, after), derivation.edges, all_versions)
        if edge_uses is None:
            return None
        found += edge_uses
    return found


def only_names_removed_columns(
    derivation: DatasetDerivation, changed: Mapping[str, TableVersions]
) -> bool:
    """Whether columns are only removed, and the edges show everywhere they are named."""
    assert derivation.sql is not None
    if not all(map(_only_loses_columns, changed.values())):
        return False
    edges = [edge for edge in derivation.edges if edge.upstream in changed]
    text = derivation.sql.casefold()
    if not all(map(_has_no_star, edges)) or _uses_unnamed_columns(text, edges):
        return False
    # An existing target table keeps its columns.
    return not _WRITES.are_in(text) and _edges_explain_changes(changed, text, derivation.edges)


def _only_loses_columns(versions: TableVersions) -> bool:
    return not versions.is_doubtful and all(
        versions.columns[name][1] is None for name in versions.changed
    )


def _edges_explain_changes(
    changed: Mapping[str, TableVersions], text: str, edges: Sequence[Edge]
) -> bool:
    names = {name.casefold() for each in changed.values() for name in each.changed}
    return edges_explain_names(names, text, edges)


def _passed_on(
    edge: Edge, versions: TableVersions, targets: Mapping[str, int], text: str
) -> list[_PassedOn] | None:
    """The columns that changed ones are passed on to, as they are or as MIN or MAX.

    None if the statement does more with them.
    """
    names = {name.casefold(): name for name in versions.changed}
    compared = _compared_columns(edge)
    found = []
    for mapping in edge.columns:
        if mapping.upstream == ALL:
            return None
        name = names.get(lineage_column(mapping.upstream).casefold())
        if name is None:
            continue
        before, after = versions.columns[name]
        if targets[mapping.downstream] > 1 or before is None or after is None:
            return None
        if not is_lineage_column(mapping.upstream):
            # A field of the column: the parser knows its type.
            return None
        is_same = mapping.derivation is Derivation.IDENTITY and mapping.cast_to is None
        extreme = None if is_same else extreme_value(mapping, edge.upstream, (before, after))
        if not is_same and extreme is None:
            return None
        if name.casefold() in compared:
            before, after = _without_nulls(before), _without_nulls(after)
        has_nulls = before.nullable and after.nullable
        if extreme and not has_nulls and (not extreme.is_of_rows or _OUTER.are_in(text)):
            return None
        line = _line_of_star(text) if mapping.star else None
        output = _output(mapping, edge.upstream, before, after, line or mapping.line)
        found.append(_PassedOn(output, extreme.type_use if extreme else None))
    return found


def _compared_columns(edge: Edge) -> set[str]:
    """The columns whose nulls are filtered out by a comparison."""
    return {use.upstream.casefold() for use in edge.uses if use.usage in _COMPARING_USES}


def _without_nulls(field: Field) -> Field:
    return msgspec.structs.replace(field, nullable=False)


def _line_of_star(text: str) -> int | None:
    """The line of the only `SELECT *`; edges only record the line of the statement."""
    stars = [each.start(1) for each in _STAR.finditer(text)]
    return text.count("\n", 0, stars[0]) + 1 if len(stars) == 1 else None


def _keeps_columns(versions: TableVersions) -> bool:
    """Whether only types and nullability of columns change."""
    if versions.is_doubtful or versions.is_reordered:
        return False
    pairs = [versions.columns[name] for name in versions.changed]
    return all(
        before is not None and after is not None and not isinstance(after.type, Unknown)
        for before, after in pairs
    )


def _changes_nulls(versions: TableVersions) -> bool:
    pairs = [versions.columns[name] for name in versions.changed]
    return any(before and after and before.nullable != after.nullable for before, after in pairs)


def _changes_structure(versions: TableVersions) -> bool:
    pairs = [versions.columns[name] for name in versions.changed]
    return any(each is not None and has_structure(each.type) for pair in pairs for each in pair)


def _output(
    mapping: ColumnMapping, upstream: str, before: Field, after: Field, line: int | None
) -> OutputColumn:
    return OutputColumn(
        name=mapping.downstream,
        before=ValueType(type=before.type, nullable=before.nullable),
        after=ValueType(type=after.type, nullable=after.nullable),
        is_same_value=True,
        clause=mapping.transformation,
        line=line,
        origins=((upstream, before.name),),
    )


_NAME: Final = r"((?:[a-z_]\w*\.)*([a-z_]\w*))"
_LITERAL: Final = r"('[^']*'|\d{1,9})"
_COLUMN: Final = re.compile(_NAME, re.IGNORECASE)
_OPERATOR: Final = r"\s*(=|<>|!=|<=|>=|<|>)\s*"
_EQUALITIES: Final = frozenset({"=", "<>", "!="})
_COLUMN_COMPARISON: Final = re.compile(rf"{_NAME}{_OPERATOR}{_NAME}", re.IGNORECASE)
_LITERAL_COMPARISON: Final = re.compile(rf"{_NAME}{_OPERATOR}{_LITERAL}", re.IGNORECASE)
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
_CONDITION_TOKENS: Final = re.compile(r"'[^']*'|[()]|\b(?:and|or|between|case)\b|,", re.IGNORECASE)
# MAX(o.amount) OVER (PARTITION BY o.day, o.shop)
_MIN_OR_MAX: Final = re.compile(
    rf"(max|min)\s*\(\s*{_NAME}\s*\)(\s*over\s*\(\s*partition\s+by\s+"
    r"[a-z_][\w.]*(?:\s*,\s*[a-z_][\w.]*)*\s*\))?",
    re.IGNORECASE,
)
# Types that MIN and MAX return unchanged in every dialect.
_UNCHANGED_BY_MIN_MAX: Final = frozenset({*SIGNED, BOOLEAN, DATE, FLOAT32, FLOAT64})


class Comparison(NamedTuple):
    """A compared column and the other side: a literal unless `other` names a column."""

    column: str
    text: str
    operator: str
    other: str | None = None

    @property
    def is_literal(self) -> bool:
        return self.other is None


def plain_type_uses(
    use: ColumnUse, edge: Edge, pair: tuple[Field, Field], all_edges: Sequence[Edge],
    versions: Versions,
) -> list[TypeUse] | None:  # fmt: skip
    """Return the type uses of a simple clause; None if it is not simple.

    `all_edges` are the edges of the statement, used to find the other side of a comparison.
    """
    is_special = use.negated or use.cast_to is not None or use.downstream is not None
    if is_special or use.usage not in _CLAUSES or use.expression is None:
        return None
    begins, clause_kind = _CLAUSES[use.usage]
    start = begins.match(use.expression)
    if start is None:
        return None
    before, after = (ValueType(type=each.type, nullable=each.nullable) for each in pair)
    plain = TypeUse(
        clause_kind=clause_kind,
        operation=UseOperation.COMPARED,
        value=pair[0].name,
        before=before,
        after=after,
        clause=use.expression,
        line=use.line,
        origins=((edge.upstream, pair[0].name),),
    )
    name = use.upstream.casefold()
    body = use.expression[start.end() :].strip()
    if use.usage in _LISTS:
        return _listed_column(plain, name, body, _LISTS[use.usage])
    sides = _comparisons(name, body)
    if sides is None:
        return None
    found = []
    for side in sides:
        partner = _compared_type(side, use, edge, all_edges, versions)
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


class ExtremeValue(NamedTuple):
    """MIN or MAX of a column, which has the type of the column.

    Without rows it is null; a window function (`is_of_rows`) always has rows.
    """

    type_use: TypeUse
    is_of_rows: bool


def extreme_value(
    mapping: ColumnMapping, upstream: str, pair: tuple[Field, Field]
) -> ExtremeValue | None:
    """The type use of a plain MIN or MAX; None for any other expression."""
    if mapping.derivation is not Derivation.AGGREGATION or mapping.cast_to is not None:
        return None
    match = _MIN_OR_MAX.fullmatch(mapping.transformation or "")
    if match is None or match.group(3).casefold() != mapping.upstream.casefold():
        return None
    if not all(_is_unchanged_by_min_max(each.type) for each in pair):
        return None
    type_use = TypeUse(
        clause_kind=ClauseKind.PROJECTION,
        operation=UseOperation.AGGREGATED,
        value=match.group(3),
        before=_value(pair[0]),
        after=_value(pair[1]),
        partner_text=match.group(1).upper(),
        accepts=(ArgumentKind.ANY,),
        clause=mapping.transformation,
        line=mapping.line,
        origins=((upstream, pair[0].name),),
    )
    return ExtremeValue(type_use, is_of_rows=match.group(4) is not None)


def _is_unchanged_by_min_max(type: DataType) -> bool:
    if isinstance(type, Decimal):
        return type.precision is not None
    return isinstance(type, String) or type in _UNCHANGED_BY_MIN_MAX


def _listed_column(
    plain: TypeUse, name: str, body: str, operation: UseOperation
) -> list[TypeUse] | None:
    names = [_COLUMN.fullmatch(_DIRECTION.sub("", each.strip())) for each in body.split(",")]
    if not all(each is not None or item.strip().isdigit()
               for each, item in zip(names, body.split(","), strict=True)):  # fmt: skip
        return None
    if name not in [each.group(2).casefold() for each in names if each is not None]:
        return None
    if operation is UseOperation.GROUPED and plain.after is not None and plain.after.type == STRING:
        # Whether strings of any length can be grouped depends on the dialect.
        return None
    return [msgspec.structs.replace(plain, operation=operation)]


def _comparisons(name: str, body: str) -> list[Comparison] | None:
    """The comparisons of a column among conditions joined by AND; None if not plain."""
    conditions = _conditions(body)
    if conditions is None:
        return None
    found = []
    for condition in conditions:
        if name not in _WORD.findall(condition.casefold()):
            continue
        side = _comparison(name, condition.strip())
        if side is None:
            return None
        found.append(side)
    return found


def _comparison(name: str, condition: str) -> Comparison | None:
    with_literal = _LITERAL_COMPARISON.fullmatch(condition)
    if with_literal is not None and with_literal.group(2).casefold() == name:
        return Comparison(name, with_literal.group(4), with_literal.group(3))
    both = _COLUMN_COMPARISON.fullmatch(condition)
    if both is None:
        return None
    first, left, operator, second, right = both.groups()
    if left.casefold() == name:
        return Comparison(name, second, operator, right.casefold())
    if right.casefold() == name:
        return Comparison(name, first, operator, left.casefold())
    return None


def _conditions(body: str) -> list[str] | None:
    """The conditions joined by AND; None if they are joined differently."""
    parts, start, depth = [], 0, 0
    for piece in _CONDITION_TOKENS.finditer(body):
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


def _compared_type(
    side: Comparison, use: ColumnUse, edge: Edge, all_edges: Sequence[Edge], versions: Versions
) -> tuple[ValueType, ValueType] | None:
    if side.other is None:
        value = ValueType(type=STRING if side.text.startswith("'") else INT32, nullable=False)
        return value, value
    tables = {
        other.upstream
        for other in all_edges
        if any(_is_in(each, use, side.other) for each in other.uses)
    }
    if side.other == side.column:
        tables.discard(edge.upstream)
    if len(tables) != 1:
        return None
    table = versions(tables.pop())
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


def edges_explain_names(names: Iterable[str], text: str, edges: Sequence[Edge]) -> bool:
    """Whether edges and aliases account for every occurrence of the names in a statement."""
    clauses: dict[str, set[tuple[object, str]]] = {name: set() for name in names}
    if not all(map(_WORD.fullmatch, clauses)):
        return False
    for edge in edges:
        for mapping in edge.columns:
            known = clauses.get(lineage_column(mapping.upstream).casefold())
            if known is not None and not mapping.star:
                known.add((mapping.downstream, mapping.transformation or ""))
        for use in edge.uses:
            known = clauses.get(lineage_column(use.upstream).casefold())
            if known is not None:
                known.add((use.usage, use.expression or ""))
    for name, known_clauses in clauses.items():
        occurrences = _occurrences(name, text)
        explained = sum(_is_alias(text, position) for position in occurrences)
        explained += sum(len(_occurrences(name, clause.casefold())) for _, clause in known_clauses)
        if explained != len(occurrences):
            return False
    return True


def _occurrences(word: str, text: str) -> list[int]:
    """The positions of a word in a text; str.find is faster than a pattern."""
    found = []
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        if not (_WORD.match(text[start - 1 : start]) or _WORD.match(text, end)):
            found.append(start)
        start = text.find(word, end)
    return found


def _is_alias(text: str, position: int) -> bool:
    before = text[:position].rstrip()
    return len(before) < position and before.endswith("as") and not _LETTER.match(before[-3:-2])
