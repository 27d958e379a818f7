"""The impact on simple statements, from their text and edges, without parsing.

Most statements only copy a changed column, or compare it with another column in a join. For these,
the clauses in the edges and the types of both columns give the same result as the parser, in a
tenth of the time or less. All other statements are parsed.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

import msgspec

from lumos.impact.rules.edges import ALL
from lumos.impact.rules.graph import DatasetDerivation, Versions
from lumos.impact.rules.type_families import contains_struct
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
from lumos.model.lineage import UNKNOWN_NAME, ColumnMapping, ColumnUse, Derivation, Edge, UseKind
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
def _keyword_pattern(keyword: str) -> re.Pattern[str]:
    """A pattern for a whole word, ten times as fast as one that starts with a word boundary."""
    return re.compile(rf"{keyword}\b(?<!\w{keyword})")


class _Keywords:
    """Keywords to look for in lower-case SQL."""

    def __init__(self, *keywords: str) -> None:
        self._keywords = keywords

    def are_in(self, text: str) -> bool:
        # Most texts contain no keyword: `in` is faster than the pattern.
        return any(
            keyword in text and _keyword_pattern(keyword).search(text) for keyword in self._keywords
        )


_COUNT_STAR: Final = re.compile(r"count\s*\(\s*\*\s*\)")
_WRITE_KEYWORDS: Final = _Keywords("insert", "merge", "update", "delete", "copy")
_OUTER_JOIN_KEYWORDS: Final = _Keywords("left", "right", "full", "outer")
_NOT_NULL: Final = re.compile(r"\bis\s+not\s+null\b")
_CONDITION_USES: Final = (UseKind.JOIN, UseKind.FILTER)
_REPORT_ORDER: Final = {ClauseKind.JOIN: 0, ClauseKind.PROJECTION: 1}
_SELECT_STAR: Final = re.compile(r"\bselect\s+(?:[\w.]+\.)?(\*)")
_SELECT: Final = _keyword_pattern("select")
_NESTING_KEYWORDS: Final = _Keywords(
    "with", "union", "intersect", "except", "minus", "distinct", "lateral", "pivot", "unpivot",
    "unnest", "using", "values",
)  # fmt: skip
_NATURAL_KEYWORD: Final = _Keywords("natural")
# STRUCT(*), CONCAT_WS(',', o.*)
_STAR_AS_ARGUMENT: Final = re.compile(r"[(,]\s*(?:\w+\.)*\*\s*\)")
# FROM orders AS o(a, b)
_RENAMED_BY_POSITION: Final = re.compile(
    r"(?:from|join)(?<!\wfrom)(?<!\wjoin)\s+[^\s(),]+\s+(?:as\s+)?(?!(?:as|on|using)\b)\w+\s*\("
)


def uses_no_changed_column(
    derivation: DatasetDerivation, changed: Mapping[str, TableVersions]
) -> bool:
    """Whether the statement certainly uses no changed column, by name or by star."""
    assert derivation.sql is not None
    text = derivation.sql.casefold()
    if _NATURAL_KEYWORD.are_in(text):
        return False
    for versions in changed.values():
        if versions.may_have_changed:
            return False
        # An unknown macro may read any column that existed before.
        if UNKNOWN_NAME in text and versions.removes_or_changes:
            return False
        if any(name.casefold() in text for name in versions.changed_columns):
            return False
    edges = [edge for edge in derivation.edges if edge.upstream in changed]
    if _uses_unnamed_columns(text, edges):
        return False
    if ALL not in _COUNT_STAR.sub("", text):
        # DuckDB's FROM without SELECT selects all columns without a star.
        return not any(each.star for edge in derivation.edges for each in edge.columns)
    return all(map(_has_no_star, edges))


def _uses_unnamed_columns(text: str, edges: Sequence[Edge]) -> bool:
    """Whether columns are renamed by position, or used without being named.

    Examples: STRUCT(*), SELECT t FROM t.
    """
    if _RENAMED_BY_POSITION.search(text):
        return True
    if ALL in text and _STAR_AS_ARGUMENT.search(_COUNT_STAR.sub("", text)):
        return True
    columns = {each.upstream for edge in edges for each in edge.columns}
    columns |= {each.upstream for edge in edges for each in edge.uses}
    return any(lineage_column(name).casefold() not in text for name in columns - {ALL})


def _has_no_star(edge: Edge) -> bool:
    columns = edge.columns
    return bool(columns) and not any(each.star or each.upstream == ALL for each in columns)


def simple_statement_effect(
    derivation: DatasetDerivation, changed: Mapping[str, TableVersions], versions_of: Versions
) -> StatementEffect | None:
    """The effect of changed tables on a simple statement; None if it has to be parsed."""
    assert derivation.sql is not None
    text = derivation.sql.casefold()
    if any(not _keeps_columns(each) for each in changed.values()) or _WRITE_KEYWORDS.are_in(text):
        return None
    if _NESTING_KEYWORDS.are_in(text) and any(map(_changes_structure, changed.values())):
        # Combined results need structs of the same structure.
        return None
    if any(_changes_nulls(each) for each in changed.values()) and (
        _OUTER_JOIN_KEYWORDS.are_in(text) or _NOT_NULL.search(text)
    ):
        return None
    sources_per_target = Counter(
        mapping.downstream for edge in derivation.edges for mapping in edge.columns
    )
    type_uses: list[TypeUse] = []
    all_derived: list[_DerivedColumn] = []
    for edge in derivation.edges:
        if edge.upstream not in changed:
            continue
        if not (edge.columns or edge.uses):
            # The statement may select a star that was not expanded.
            return None
        edge_uses = _type_uses_in_clauses(derivation, edge, changed[edge.upstream], versions_of)
        derived = _derived_columns(edge, changed[edge.upstream], sources_per_target, text)
        if derived is None or edge_uses is None:
            return None
        all_derived += (each for each in derived if each.output.before != each.output.after)
        type_uses += edge_uses
        type_uses += (each.type_use for each in derived if each.type_use is not None)
    if type_uses and (len(_SELECT.findall(text)) != 1 or _NESTING_KEYWORDS.are_in(text)):
        # A name may refer to the result of another query.
        return None
    if not _edges_explain_occurrences(changed, text, derivation.edges):
        return None
    # The order in which the parser reports uses: joins, projections, others.
    type_uses.sort(key=lambda use: _REPORT_ORDER.get(use.clause_kind, len(_REPORT_ORDER)))
    distinct_uses = tuple(dict.fromkeys(type_uses))
    return StatementEffect(
        type_uses=distinct_uses,
        outputs=tuple(_with_type_use(each, distinct_uses) for each in all_derived),
    )


class _DerivedColumn(NamedTuple):
    """A column derived from a changed one, and the type use that computes it, if any."""

    output: OutputColumn
    type_use: TypeUse | None = None


def _with_type_use(derived: _DerivedColumn, type_uses: Sequence[TypeUse]) -> OutputColumn:
    if derived.type_use is None:
        return derived.output
    position = type_uses.index(derived.type_use)
    return msgspec.structs.replace(derived.output, type_uses=(position,))


def _type_uses_in_clauses(
    derivation: DatasetDerivation, edge: Edge, versions: TableVersions, versions_of: Versions
) -> list[TypeUse] | None:
    """Type uses of changed columns in conditions, GROUP BY and ORDER BY; None if not simple."""
    names = {name.casefold(): name for name in versions.changed_columns}
    compared = _compared_columns(edge)
    type_uses: list[TypeUse] = []
    for use in edge.uses:
        if use.upstream == ALL:
            return None
        name = names.get(lineage_column(use.upstream).casefold())
        if name is None:
            continue
        before, after = versions.columns[name]
        if before is None or after is None or not is_lineage_column(use.upstream):
            return None
        if use.usage not in _CONDITION_USES and use.upstream.casefold() in compared:
            before, after = _without_nulls(before), _without_nulls(after)
            if before == after:
                continue
        clause_uses = simple_clause_uses(use, edge, (before, after), derivation.edges, versions_of)
        if clause_uses is None:
            return None
        type_uses += clause_uses
    return type_uses


def edges_cover_removed_columns(
    derivation: DatasetDerivation, changed: Mapping[str, TableVersions]
) -> bool:
    """Whether columns are only removed, and the edges contain every use of them."""
    assert derivation.sql is not None
    for versions in changed.values():
        has_remaining = any(
            versions.columns[name][1] is not None for name in versions.changed_columns
        )
        if versions.may_have_changed or has_remaining:
            return False
    edges = [edge for edge in derivation.edges if edge.upstream in changed]
    text = derivation.sql.casefold()
    if UNKNOWN_NAME in text:
        return False
    if not all(map(_has_no_star, edges)) or _uses_unnamed_columns(text, edges):
        return False
    # An existing target table keeps its columns.
    return not _WRITE_KEYWORDS.are_in(text) and _edges_explain_occurrences(
        changed, text, derivation.edges
    )


def _derived_columns(
    edge: Edge, versions: TableVersions, sources_per_target: Mapping[str, int], text: str
) -> list[_DerivedColumn] | None:
    """The columns that are copies of changed columns, or their MIN or MAX.

    None if the statement derives a column from them in another way.
    """
    names = {name.casefold(): name for name in versions.changed_columns}
    compared = _compared_columns(edge)
    derived = []
    for mapping in edge.columns:
        if mapping.upstream == ALL:
            return None
        name = names.get(lineage_column(mapping.upstream).casefold())
        if name is None:
            continue
        before, after = versions.columns[name]
        if sources_per_target[mapping.downstream] > 1 or before is None or after is None:
            return None
        if not is_lineage_column(mapping.upstream):
            # A nested field, whose type only the parser determines.
            return None
        is_copied = mapping.derivation is Derivation.IDENTITY and mapping.cast_to is None
        min_or_max = None if is_copied else min_or_max_use(mapping, edge.upstream, (before, after))
        if not is_copied and min_or_max is None:
            return None
        if name.casefold() in compared:
            before, after = _without_nulls(before), _without_nulls(after)
        has_nulls = before.nullable and after.nullable
        if (
            min_or_max
            and not has_nulls
            and (not min_or_max.is_window or _OUTER_JOIN_KEYWORDS.are_in(text))
        ):
            return None
        line = _line_of_star(text) if mapping.star else None
        output = OutputColumn(
            name=mapping.downstream,
            before=ValueType.of(before),
            after=ValueType.of(after),
            clause=mapping.transformation,
            line=line or mapping.line,
            origins=((edge.upstream, before.name),),
        )
        derived.append(_DerivedColumn(output, min_or_max.type_use if min_or_max else None))
    return derived


def _compared_columns(edge: Edge) -> set[str]:
    """The columns in conditions, which filter out nulls."""
    return {use.upstream.casefold() for use in edge.uses if use.usage in _CONDITION_USES}


def _without_nulls(field: Field) -> Field:
    return msgspec.structs.replace(field, nullable=False)


def _line_of_star(text: str) -> int | None:
    """The line of the only `SELECT *`; edges only record the line of the statement."""
    stars = [each.start(1) for each in _SELECT_STAR.finditer(text)]
    return text.count("\n", 0, stars[0]) + 1 if len(stars) == 1 else None


def _keeps_columns(versions: TableVersions) -> bool:
    """Whether only types and nullability of columns change."""
    if versions.may_have_changed or versions.is_reordered:
        return False
    pairs = [versions.columns[name] for name in versions.changed_columns]
    return all(
        before is not None and after is not None and not isinstance(after.type, Unknown)
        for before, after in pairs
    )


def _changes_nulls(versions: TableVersions) -> bool:
    pairs = [versions.columns[name] for name in versions.changed_columns]
    return any(before and after and before.nullable != after.nullable for before, after in pairs)


def _changes_structure(versions: TableVersions) -> bool:
    pairs = [versions.columns[name] for name in versions.changed_columns]
    return any(each is not None and contains_struct(each.type) for pair in pairs for each in pair)


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
_LIST_OPERATIONS: Final = {
    UseKind.GROUP_BY: UseOperation.GROUPED,
    UseKind.SORT: UseOperation.SORTED,
}
_WORD: Final = re.compile(r"[\w$]+")
_WORD_CHARACTER: Final = re.compile(r"\w")
_SORT_DIRECTION: Final = re.compile(r"\s+(?:asc|desc)$", re.IGNORECASE)
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
    """A comparison of a column with the column `other` or, if that is None, with a literal.

    `text` is the SQL of the other side.
    """

    column: str
    text: str
    operator: str
    other: str | None = None

    @property
    def is_literal(self) -> bool:
        return self.other is None


def simple_clause_uses(
    use: ColumnUse, edge: Edge, pair: tuple[Field, Field], all_edges: Sequence[Edge],
    versions_of: Versions,
) -> list[TypeUse] | None:  # fmt: skip
    """Return the type uses of a simple clause; None if it is not simple.

    `all_edges` are the edges of the statement, used to find the other side of a comparison.
    """
    is_special = use.negated or use.cast_to is not None or use.downstream is not None
    if is_special or use.usage not in _CLAUSES or use.expression is None:
        return None
    keyword, clause_kind = _CLAUSES[use.usage]
    match = keyword.match(use.expression)
    if match is None:
        return None
    before, after = map(ValueType.of, pair)
    type_use = TypeUse(
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
    body = use.expression[match.end() :].strip()
    if use.usage in _LIST_OPERATIONS:
        return _list_use(type_use, name, body, _LIST_OPERATIONS[use.usage])
    comparisons = _comparisons(name, body)
    if comparisons is None:
        return None
    type_uses = []
    for comparison in comparisons:
        partner = _partner_versions(comparison, use, edge, all_edges, versions_of)
        if partner is None:
            return None
        old, new = partner
        type_uses.append(
            msgspec.structs.replace(
                type_use, partner_before=old, partner=new, partner_text=comparison.text,
                is_literal=comparison.is_literal,
                is_ordering=comparison.operator not in _EQUALITIES,
            )
        )  # fmt: skip
    return type_uses or None


class MinOrMaxUse(NamedTuple):
    """MIN or MAX of a column, which has the type of the column.

    The result is null if there are no rows; a window function always has rows.
    """

    type_use: TypeUse
    is_window: bool


def min_or_max_use(
    mapping: ColumnMapping, upstream: str, pair: tuple[Field, Field]
) -> MinOrMaxUse | None:
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
        before=ValueType.of(pair[0]),
        after=ValueType.of(pair[1]),
        partner_text=match.group(1).upper(),
        accepts=(ArgumentKind.ANY,),
        clause=mapping.transformation,
        line=mapping.line,
        origins=((upstream, pair[0].name),),
    )
    return MinOrMaxUse(type_use, is_window=match.group(4) is not None)


def _is_unchanged_by_min_max(type: DataType) -> bool:
    if isinstance(type, Decimal):
        return type.precision is not None
    return isinstance(type, String) or type in _UNCHANGED_BY_MIN_MAX


def _list_use(
    type_use: TypeUse, column_name: str, items_text: str, operation: UseOperation
) -> list[TypeUse] | None:
    names = set()
    for item in items_text.split(","):
        column = _COLUMN.fullmatch(_SORT_DIRECTION.sub("", item.strip()))
        if column is not None:
            names.add(column.group(2).casefold())
        elif not item.strip().isdigit():
            return None
    if column_name not in names:
        return None
    if (
        operation is UseOperation.GROUPED
        and type_use.after is not None
        and type_use.after.type == STRING
    ):
        # Whether strings of any length can be grouped depends on the dialect.
        return None
    return [msgspec.structs.replace(type_use, operation=operation)]


def _comparisons(name: str, body: str) -> list[Comparison] | None:
    """The comparisons of a column in conditions joined by AND; None if not simple."""
    conditions = _split_conditions(body)
    if conditions is None:
        return None
    comparisons = []
    for condition in conditions:
        if name not in _WORD.findall(condition.casefold()):
            continue
        comparison = _parse_comparison(name, condition.strip())
        if comparison is None:
            return None
        comparisons.append(comparison)
    return comparisons


def _parse_comparison(name: str, condition: str) -> Comparison | None:
    literal_match = _LITERAL_COMPARISON.fullmatch(condition)
    if literal_match is not None and literal_match.group(2).casefold() == name:
        return Comparison(name, literal_match.group(4), literal_match.group(3))
    column_match = _COLUMN_COMPARISON.fullmatch(condition)
    if column_match is None:
        return None
    first, left, operator, second, right = column_match.groups()
    if left.casefold() == name:
        return Comparison(name, second, operator, right.casefold())
    if right.casefold() == name:
        return Comparison(name, first, operator, left.casefold())
    return None


def _split_conditions(body: str) -> list[str] | None:
    """Split conditions that are joined by AND; None if they are joined differently."""
    parts, start, depth = [], 0, 0
    for token in _CONDITION_TOKENS.finditer(body):
        text = token.group().lower()
        if text == "(":
            depth += 1
        elif text == ")":
            depth -= 1
        elif depth == 0 and text == "and":
            parts.append(body[start : token.start()])
            start = token.end()
        elif depth == 0 and text in ("or", "between", "case", ","):
            return None
    return [*parts, body[start:]]


def _partner_versions(
    comparison: Comparison,
    use: ColumnUse,
    edge: Edge,
    all_edges: Sequence[Edge],
    versions_of: Versions,
) -> tuple[ValueType, ValueType] | None:
    """The other side of a comparison before and after the change; None if it is unknown."""
    if comparison.other is None:
        value = ValueType(type=STRING if comparison.text.startswith("'") else INT32, nullable=False)
        return value, value
    tables = {
        other.upstream
        for other in all_edges
        if any(
            each.upstream.casefold() == comparison.other
            and each.usage is use.usage
            and each.expression == use.expression
            for each in other.uses
        )
    }
    if comparison.other == comparison.column:
        tables.discard(edge.upstream)
    if len(tables) != 1:
        return None
    table = versions_of(tables.pop())
    name = next((each for each in table.columns if each.casefold() == comparison.other), None)
    if name is None or table.may_have_changed or name in table.unknown_columns:
        return None
    before, after = table.columns[name]
    if before is None or after is None:
        return None
    return ValueType.of(before), ValueType.of(after)


def _edges_explain_occurrences(
    changed: Mapping[str, TableVersions], text: str, edges: Sequence[Edge]
) -> bool:
    """Whether each occurrence of a changed column in a statement is an alias or part of an edge."""
    clauses: dict[str, set[tuple[object, str]]] = {
        name.casefold(): set() for each in changed.values() for name in each.changed_columns
    }
    if not all(map(_WORD.fullmatch, clauses)):
        return False
    for edge in edges:
        for mapping in edge.columns:
            known_clauses = clauses.get(lineage_column(mapping.upstream).casefold())
            if known_clauses is not None and not mapping.star:
                known_clauses.add((mapping.downstream, mapping.transformation or ""))
        for use in edge.uses:
            known_clauses = clauses.get(lineage_column(use.upstream).casefold())
            if known_clauses is not None:
                known_clauses.add((use.usage, use.expression or ""))
    for name, clause_texts in clauses.items():
        occurrences = _occurrences(name, text)
        aliases = sum(_is_alias(text, position) for position in occurrences)
        in_edges = sum(len(_occurrences(name, clause.casefold())) for _, clause in clause_texts)
        if aliases + in_edges != len(occurrences):
            return False
    return True


def _occurrences(word: str, text: str) -> list[int]:
    """The positions of a whole word in a text; str.find is faster than a pattern."""
    positions = []
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        if not (_WORD.match(text[start - 1 : start]) or _WORD.match(text, end)):
            positions.append(start)
        start = text.find(word, end)
    return positions


def _is_alias(text: str, position: int) -> bool:
    before = text[:position].rstrip()
    return (
        len(before) < position
        and before.endswith("as")
        and not _WORD_CHARACTER.match(before[-3:-2])
    )
