"""The columns that a SELECT returns: expressions, aliases, stars."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from sqlglot import exp

from lumos.lineage.sql.context import AnalysisContext, FromItem, Scope
from lumos.lineage.sql.expressions import ExpressionLineage, ExpressionReader, ExpressionRole
from lumos.lineage.sql.relation import (
    FieldAccess,
    LimitedStar,
    QueryColumn,
    QueryRelation,
    RelationItem,
    Star,
    ValueStar,
    combine_branches,
)
from lumos.lineage.sql.source_text import Clause, offset_and_depth, offset_of

# Expressions that return a value of their argument: `ARRAY_AGG(t ORDER BY x LIMIT 1)[OFFSET(0)]`.
_ARGUMENT_SELECTORS: Final = (
    exp.Paren, exp.AnyValue, exp.ArrayAgg, exp.Bracket, exp.HavingMax, exp.IgnoreNulls, exp.Limit,
    exp.Order, exp.RespectNulls,
)  # fmt: skip


class ProjectionReader:
    """Reads the expressions between SELECT and FROM."""

    def __init__(self, context: AnalysisContext, expressions: ExpressionReader) -> None:
        self._context = context
        self._expressions = expressions

    def read(self, node: exp.Select, scope: Scope, clause_uses: QueryRelation) -> QueryRelation:
        """The result of the projections; subqueries become parents of `clause_uses`."""
        items: list[RelationItem] = []
        implicit_names: dict[str, QueryColumn] = {}
        for projection in node.expressions:
            star = _star_of(projection)
            if star is not None:
                count_before = len(items)
                items += self._read_star(star, projection, scope, clause_uses)
                self._context.count_origins(len(items) - count_before)
                continue
            if isinstance(projection, exp.EQ | exp.PropertyEQ) and isinstance(
                projection.this, exp.Parameter
            ):
                # SELECT @total = SUM(amount) assigns a variable and returns nothing.
                value = self._read_expression(projection.expression, scope, clause_uses)
                variable = self._context.name(projection.this)
                self._context.variable_values[variable] = value.column(variable)
                continue
            columns = self._read_columns(projection, scope, clause_uses)
            items += columns
            if isinstance(projection, exp.Alias | exp.Aliases):
                if self._context.traits.has_lateral_aliases:
                    for column in columns:
                        scope.aliases.setdefault(column.name, column)
            elif not isinstance(projection, exp.Column | exp.Dot):
                for name in _implicit_names(projection, self._context):
                    implicit_names.setdefault(name, columns[0])
        relation = QueryRelation(items)
        relation.implicit_names = implicit_names
        return relation

    def _read_columns(
        self, node: exp.Expr, scope: Scope, clause_uses: QueryRelation
    ) -> list[QueryColumn]:
        if isinstance(node, exp.QueryTransform) and isinstance(node.args.get("schema"), exp.Schema):
            # Hive's TRANSFORM (a, b) USING 'script' AS (c, d)
            lineage = self._read_expression(
                exp.Tuple(expressions=node.expressions), scope, clause_uses
            )
            outputs = node.args["schema"].expressions
            return [lineage.column(self._context.name(each.this)) for each in outputs]
        inner = node.this if isinstance(node, exp.Alias | exp.Aliases) else node
        # With options, DuckDB's UNNEST returns the fields of the elements.
        returns_elements = isinstance(inner, exp.Explode | exp.Inline) and not inner.args.get(
            "expressions"
        )
        if returns_elements and isinstance(node, exp.Alias | exp.Aliases):
            aliases = node.expressions if isinstance(node, exp.Aliases) else [node.args["alias"]]
            names = [self._context.name(each) for each in aliases]
            lineage, columns = self._expressions.read_elements(inner, names, scope)
            clause_uses.parents += lineage.absorb_subqueries(self._context.count_origins)
            return columns
        if isinstance(node, exp.Aliases):
            lineage = self._read_expression(node.this, scope, clause_uses)
            return [lineage.column(self._context.name(name)) for name in node.expressions]
        lineage = self._read_expression(node, scope, clause_uses)
        column = lineage.column(output_name(node, self._context), definition=node)
        if isinstance(inner, exp.Struct):
            column.fields = self._struct_fields(inner, scope)
        return [column]

    def _struct_fields(self, node: exp.Struct, scope: Scope) -> dict[str, QueryColumn]:
        """The fields of a struct expression."""
        fields: dict[str, QueryColumn] = {}
        for each in node.expressions:
            if isinstance(each, exp.PropertyEQ):
                name, value = self._context.name(each.this), each.expression
            else:
                name, value = output_name(each, self._context), each
            lineage = self._expressions.read([value], scope, ExpressionRole(Clause.ITEM))
            fields[name] = lineage.column(name, definition=value)
            if isinstance(value, exp.Struct):
                fields[name].fields = self._struct_fields(value, scope)
        return fields

    def _read_expression(
        self, node: exp.Expr, scope: Scope, clause_uses: QueryRelation
    ) -> ExpressionLineage:
        end = offset_of(node.args.get("alias")) if isinstance(node, exp.Alias) else None
        lineage = self._expressions.read([node], scope, ExpressionRole(Clause.ITEM, end=end))
        clause_uses.parents += lineage.absorb_subqueries(self._context.count_origins)
        return lineage

    def _read_star(
        self, star: exp.Star, node: exp.Expr, scope: Scope, clause_uses: QueryRelation
    ) -> Iterator[RelationItem]:
        name = self._context.name
        excluded = list(self._excluded_columns(star, scope))
        excluded_names = {name(each) for each in excluded}
        renamed = {name(each.this): name(each.args["alias"])
                   for each in star.args.get("rename") or ()}  # fmt: skip
        replaced = {name(each.args["alias"]): each for each in star.args.get("replace") or ()}
        replaced_names: set[str] = set()
        pattern = star.args.get("ilike")
        pattern_regex = _like_regex(pattern.name) if isinstance(pattern, exp.Literal) else None
        items = list(self._expand_star(node, scope, clause_uses))
        self._notify_named_columns(
            [
                *excluded,
                *(each.this for each in star.args.get("rename") or ()),
                *(each.args["alias"] for each in replaced.values()),
            ],
            items,
        )
        for item in items:
            if (
                pattern_regex is not None
                and isinstance(item, QueryColumn)
                and not pattern_regex.fullmatch(item.name)
            ):
                continue
            if isinstance(item, Star):
                missing = excluded_names | set(replaced)
                yield LimitedStar(item, missing, renamed) if missing or renamed else item
            elif item.name in replaced:
                replaced_names.add(item.name)
                node = replaced[item.name]
                yield self._read_expression(node, scope, clause_uses).column(
                    item.name, definition=node
                )
            elif item.name not in excluded_names:
                yield item.with_name(renamed.get(item.name, item.name))
        for column, expression in replaced.items():
            if column not in replaced_names:
                yield self._read_expression(expression, scope, clause_uses).column(column)

    def _excluded_columns(self, star: exp.Star, scope: Scope) -> Iterator[exp.Expr]:
        """The columns that a star excludes; fields of structs are read, but not excluded."""
        for each in star.args.get("except_") or ():
            if isinstance(each, exp.Anonymous):
                # ClickHouse's EXCEPT STRICT (a, b)
                yield from each.expressions
                continue
            parts = self._context.column_parts(each) if isinstance(each, exp.Column) else ()
            if len(parts) > 1 and scope.find_source(parts[:-1]) is None:
                self._expressions.read([each], scope, ExpressionRole(Clause.ITEM))
            else:
                yield each

    def _notify_named_columns(
        self, nodes: Iterable[exp.Expr], items: Sequence[RelationItem]
    ) -> None:
        """Report columns in EXCEPT, RENAME and REPLACE after a star to the watcher.

        Most dialects reject unknown names there.
        """
        if not self._context.is_watched:
            return
        for each in nodes:
            name = self._context.name(each)
            matches = [item if isinstance(item, QueryColumn) else item.column(name)
                       for item in items
                       if isinstance(item, Star) or item.name == name]  # fmt: skip
            columns = [column for column in matches if column is not None]
            excerpt = self._context.excerpt(offset_of(each), Clause.ITEM)
            self._context.watcher.on_star_columns_named(each, columns, excerpt)

    def _expand_star(
        self, node: exp.Expr, scope: Scope, clause_uses: QueryRelation
    ) -> Iterator[RelationItem]:
        if isinstance(node, exp.Dot) and not isinstance(node.this, exp.Column):
            yield from self._expand_struct(node.this, scope, clause_uses)
            return
        qualifier = _qualifier(node)
        if qualifier is None:
            yield from self._expand_sources(scope)
            return
        parts = self._context.column_parts(qualifier)
        if isinstance(qualifier.this, exp.Star):
            parts = parts[:-1]
        source = scope.find_source(parts)
        if source is not None and source.is_value:
            # The star returns the fields of the elements, not the elements.
            yield from source.relation.items
            return
        if source is not None:
            yield from self._star_items(source, frozenset())
            return
        struct = scope.resolve(parts)
        if isinstance(struct, QueryColumn) and struct.fields:
            yield from (column.via_star() for column in struct.fields.values())
            return
        if not isinstance(struct, QueryColumn):
            yield ValueStar(self._read_expression(qualifier, scope, clause_uses).column("*"))
            return
        excerpt = self._context.excerpt(offset_of(qualifier), Clause.ITEM)
        self._context.record_read(struct)
        self._context.watcher.on_name(qualifier, struct, None, excerpt)
        lineage = ExpressionLineage()
        lineage.add(struct, ExpressionRole(Clause.ITEM), excerpt, is_star=True)
        value = lineage.column("*")
        value.definition = FieldAccess(struct, ())
        yield ValueStar(value)

    def _expand_struct(
        self, node: exp.Expr, scope: Scope, clause_uses: QueryRelation
    ) -> Iterator[RelationItem]:
        """All fields of a value, such as BigQuery's `IF(new.id IS NULL, old, new).*`."""
        lineage = self._read_expression(node, scope, clause_uses)
        rows: list[QueryRelation] = []
        for value in _possible_values(node):
            if isinstance(value, exp.Struct):
                rows.append(QueryRelation(self._struct_fields(value, scope).values()))
            elif isinstance(value, exp.Column):
                parts = self._context.column_parts(value)
                is_column = any(source.relation.find(parts[-1]) for source in scope.sources)
                source = None if is_column else scope.find_source(parts)
                rows += [source.relation] if source is not None else []
        if not rows:
            yield ValueStar(lineage.column("*"))
            return
        # The condition that selects the row influences all of its fields.
        clause_uses.uses.update(lineage.uses)
        for item in combine_branches(rows, is_by_name=True).items:
            yield item.via_star() if isinstance(item, QueryColumn) else item

    def _expand_sources(self, scope: Scope) -> Iterator[RelationItem]:
        if not scope.sources:
            return
        merged_columns = dict(scope.merged_columns)
        for name, column in merged_columns.items():
            yield column.with_name(name).via_star()
        for source in scope.sources:
            yield from self._star_items(source, frozenset(merged_columns))

    def _star_items(self, source: FromItem, excluded: frozenset[str]) -> Iterator[RelationItem]:
        for item in source.relation.items:
            if isinstance(item, ValueStar) and source.is_value and source.name:
                yield item.as_column().with_name(source.name).via_star()
            elif isinstance(item, Star):
                yield LimitedStar(item, excluded) if excluded else item
            elif item.name not in excluded:
                self._context.record_read(item)
                yield item.via_star()


def output_name(node: exp.Expr, context: AnalysisContext) -> str:
    """The name of an output column: its alias, its own name, or else its text."""
    if isinstance(node, exp.Alias):
        return context.name(node.args["alias"])
    if isinstance(node, exp.Column):
        return context.name(node.this)
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        return context.name(node.expression)
    inner = node
    while (isinstance(inner, exp.Paren) and context.traits.names_through_brackets) or (
        isinstance(inner, exp.Cast) and context.traits.names_through_casts
    ):
        inner = inner.this
    if isinstance(inner, exp.Column) and not isinstance(inner.this, exp.Star):
        return context.name(inner.this)
    offset, depth = offset_and_depth(node)
    text = None
    if offset is not None:
        text = context.source.clause_text(offset, Clause.ITEM, enclosing_queries=depth)
    return _lower_outside_quotes(text or node.sql(dialect=context.dialect))


def _star_of(node: exp.Expr) -> exp.Star | None:
    if isinstance(node, exp.Star):
        return node
    if isinstance(node, exp.Columns):
        # The columns whose names match a pattern.
        return node.this if isinstance(node.this, exp.Star) else exp.Star()
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        return node.this
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Star):
        return node.expression
    return None


def _possible_values(node: exp.Expr) -> Iterator[exp.Expr]:
    """The expressions that may be the value of an expression, such as the branches of CASE."""
    stack: list[exp.Expr | None] = [node]
    while stack:
        value = stack.pop()
        if isinstance(value, _ARGUMENT_SELECTORS):
            stack.append(value.this)
        elif isinstance(value, exp.If):
            stack += [value.args.get("false"), value.args.get("true")]
        elif isinstance(value, exp.Case):
            stack += [
                value.args.get("default"),
                *(each.args["true"] for each in value.args["ifs"]),
            ]
        elif isinstance(value, exp.Coalesce):
            stack += [*reversed(value.expressions), value.this]
        elif value is not None:
            yield value


def _like_regex(text: str) -> re.Pattern[str]:
    """The regular expression of a LIKE pattern."""
    parts = (".*" if each == "%" else "." if each == "_" else re.escape(each) for each in text)
    return re.compile("".join(parts), re.IGNORECASE)


def _qualifier(node: exp.Expr) -> exp.Column | None:
    if isinstance(node, exp.Column):
        return node
    if isinstance(node, exp.Dot) and isinstance(node.this, exp.Column):
        return node.this
    return None


def _implicit_names(node: exp.Expr, context: AnalysisContext) -> Iterator[str]:
    """The names of an expression without an alias: that of the cast column or of the function."""
    if isinstance(node, exp.Cast):
        inner = node.this
        while isinstance(inner, exp.Cast | exp.Paren):
            inner = inner.this
        if isinstance(inner, exp.Column):
            yield context.name(inner.this)
    elif isinstance(node, exp.Func):
        yield (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()


def _lower_outside_quotes(text: str) -> str:
    """The text in lower case, except for quoted parts."""
    pieces: list[str] = []
    start, quote = 0, ""
    for position, character in enumerate(text):
        if quote:
            if character == quote:
                pieces.append(text[start : position + 1])
                start, quote = position + 1, ""
        elif character in "'\"`":
            pieces.append(text[start:position].lower())
            start, quote = position, character
    pieces.append(text[start:] if quote else text[start:].lower())
    return "".join(pieces)
