"""The items of FROM: tables, queries, joins, table functions, PIVOT and MATCH_RECOGNIZE."""

from collections.abc import Callable, Collection, Iterable
from functools import cache
from itertools import pairwise
from typing import Final

from sqlglot import exp

from lumos.lineage.sql.context import (
    AnalysisContext,
    FromItem,
    Scope,
    UnresolvedColumn,
    is_literal_identifier,
)
from lumos.lineage.sql.expressions import (
    ExpressionLineage,
    ExpressionReader,
    ExpressionRole,
    SubqueryReader,
)
from lumos.lineage.sql.projections import output_name
from lumos.lineage.sql.relation import (
    LimitedStar,
    ListElement,
    OriginUse,
    QueryColumn,
    QueryRelation,
    RelationItem,
    Star,
    ValueStar,
)
from lumos.lineage.sql.script import Parts
from lumos.lineage.sql.source_text import Clause, offset_of
from lumos.model.lineage import Derivation, UseKind
from lumos.model.paths import ELEMENT

_FILTERING_JOINS: Final = frozenset({"SEMI", "ANTI"})
_FILE_FUNCTIONS: Final = frozenset(
    {"readparquet", "parquetscan", "readcsv", "readcsvauto", "readjson", "readjsonauto",
     "readndjson", "icebergscan", "deltascan"}
)  # fmt: skip
# The columns that Snowflake's FLATTEN returns.
_FLATTEN_COLUMNS: Final = ("seq", "key", "path", "index", "value", "this")


class FromReader:
    """Reads FROM and its joins into a scope, and adds their indirect uses to `clause_uses`."""

    def __init__(
        self, context: AnalysisContext, expressions: ExpressionReader, subqueries: SubqueryReader
    ) -> None:
        self._context = context
        self._expressions = expressions
        self._subqueries = subqueries
        self._pivots = _PivotReader(context, expressions)

    def fill(self, node: exp.Expr, scope: Scope, clause_uses: QueryRelation) -> None:
        """Read the FROM clause of a SELECT, UPDATE or DELETE."""
        scope.qualified_names = self._qualified_names(node)
        from_clause = node.args.get("from_")
        if from_clause is not None:
            self.add(from_clause.this, scope, clause_uses)
        match = node.args.get("match")
        if match is not None and scope.sources:
            source = scope.sources.pop()
            relation = self._pivots.match_recognize(match, source.relation, scope)
            self._add_source(scope, match.args.get("alias"), relation, match)
        self._read_joins(node, scope, clause_uses)
        for window in node.args.get("windows") or ():
            scope.windows[self._context.name(window.this)] = window

    def _read_joins(self, node: exp.Expr, scope: Scope, clause_uses: QueryRelation) -> None:
        filters: list[FromItem] = []
        conditions: list[exp.Expr] = []
        joins = node.args.get("joins") or []
        laterals = node.args.get("laterals") or []
        for lateral in laterals:
            if not joins or _starts_before(lateral, joins[0]):
                self.add(lateral, scope, clause_uses)
        for join in joins:
            first_joined = len(scope.sources)
            self.add(join.this, scope, clause_uses)
            self._context.watcher.on_join(join, scope, first_joined)
            self._merge_shared_columns(join, scope, first_joined, clause_uses)
            for key in ("on", "match_condition"):
                if join.args.get(key) is not None:
                    conditions.append(join.args[key])
            if _is_filter(join):
                filters += scope.sources[first_joined:]
        for lateral in laterals:
            if joins and not _starts_before(lateral, joins[0]):
                self.add(lateral, scope, clause_uses)
        for condition in conditions:
            self._expressions.read_condition(condition, scope, clause_uses, UseKind.JOIN, Clause.ON)
        if filters:
            clause_uses.parents += [source.relation for source in filters]
            ids = {id(source) for source in filters}
            scope.sources = [each for each in scope.sources if id(each) not in ids]

    def _qualified_names(self, node: exp.Expr) -> Callable[[], Collection[tuple[str, str]]]:
        """A function that returns the qualified names of a query, collected on the first call."""

        @cache
        def collect() -> Collection[tuple[str, str]]:
            qualified = (column for column in node.find_all(exp.Column) if column.args.get("table"))
            names = (self._context.column_parts(column) for column in qualified)
            # In `a.b.c`, `b` may be a column of the source `a`, or a source with the column `c`.
            return {pair for parts in names for pair in pairwise(parts)}

        return collect

    def add(self, node: exp.Expr, scope: Scope, clause_uses: QueryRelation) -> None:
        """Add one item of FROM to the scope, with the joins inside of it."""
        alias = node.args.get("alias")
        if isinstance(node, exp.Table):
            self._add_table(node, scope, clause_uses)
        elif isinstance(node, exp.Subquery):
            self._add_subquery(node, scope, clause_uses)
        elif isinstance(node, exp.Lateral):
            self._add_lateral(node, scope, clause_uses)
        elif isinstance(node, exp.Unnest):
            self._add_unnest(node, scope, clause_uses)
        elif isinstance(node, exp.Values):
            relation = self._read_values(node, scope, clause_uses)
            self._add_source(scope, alias, relation, node)
        elif isinstance(node, exp.Pivot):
            self._add_pivot_statement(node, scope, clause_uses)
        elif isinstance(node, exp.Final):
            self.add(node.this, scope, clause_uses)
        elif isinstance(node, exp.Stream) and isinstance(node.this, exp.Subquery):
            # Databricks: STREAM(table)
            table = node.this.this
            if alias is not None:
                table.set("alias", alias)
            self.add(table, scope, clause_uses)
        elif isinstance(node, exp.Query):
            relation = self._subqueries.read(node, scope.outer, scope.ctes)
            self._add_source(scope, alias, relation, node)
        else:
            self._add_function(node, alias, scope, clause_uses)
        if isinstance(node, exp.Table | exp.Subquery):
            self._read_joins(node, scope, clause_uses)

    def _add_source(
        self, scope: Scope, alias: exp.Expr | None, relation: QueryRelation, node: exp.Expr,
        *, parts: Parts = (),
    ) -> None:  # fmt: skip
        relation = self._context.with_column_names(self._alias_columns(alias), relation)
        name = self._context.name(alias.this) if alias is not None and alias.this else ""
        name = name or (parts[-1] if parts else "")
        for pivot in node.args.get("pivots") or ():
            relation = self._pivots.pivot(pivot, relation, scope)
            alias_of_pivot = pivot.args.get("alias")
            if alias_of_pivot is not None:
                name, parts = self._context.name(alias_of_pivot.this) or name, ()
                relation = relation.with_column_names(self._alias_columns(alias_of_pivot))
        scope.sources.append(FromItem(name, relation, parts))

    def _alias_columns(self, alias: exp.Expr | None) -> list[str]:
        columns = alias.args.get("columns") if alias is not None else None
        return [self._context.name(each.this if isinstance(each, exp.ColumnDef) else each)
                for each in columns or ()]  # fmt: skip

    def _add_table(self, node: exp.Table, scope: Scope, clause_uses: QueryRelation) -> None:
        alias = node.args.get("alias")
        if node.args.get("rows_from"):
            for each in node.args["rows_from"]:
                self._add_function(each.this, alias, scope, clause_uses)
            return
        if isinstance(node.this, exp.Var | exp.Literal):
            # Files, such as Snowflake's @stage or 's3://bucket/data.parquet'.
            self._add_source(scope, alias, QueryRelation([ValueStar(QueryColumn("*"))]), node)
            return
        if isinstance(node.this, exp.Values):
            self._add_source(scope, alias, self._read_values(node.this, scope, clause_uses), node)
            return
        if isinstance(node.this, exp.Query):
            relation = self._subqueries.read(node.this, scope.outer, scope.ctes)
            self._add_source(scope, alias, relation, node)
            return
        file = _file_of(node.this)
        if file is not None:
            relation = self._context.table((file,))
            self._add_source(scope, alias, relation, node, parts=(file,))
            return
        if isinstance(node.this, exp.Func) and not is_literal_identifier(node.this):
            if isinstance(node.this, exp.DynamicIdentifier):
                self._context.add_problem("a table whose name is computed at run time", None)
            self._add_function(node.this, alias, scope, clause_uses, item=node)
            return
        parts = self._context.table_name(node)
        if len(parts) == 1 and parts[0] in scope.ctes:
            relation = scope.ctes[parts[0]]
        elif (
            self._context.traits.has_paths_in_from
            and len(parts) > 1
            and scope.find_source(parts[:1]) is not None
        ):
            self._add_array_path(node, parts, scope)
            return
        else:
            relation = self._context.table(parts)
        self._add_source(scope, alias, relation, node, parts=parts)

    def _add_array_path(self, node: exp.Table, parts: Parts, scope: Scope) -> None:
        """Add an array of an earlier table, as in `FROM orders o, o.items i`."""
        resolved = scope.resolve(parts)
        column = resolved if isinstance(resolved, QueryColumn) else QueryColumn(parts[-1])
        self._context.record_read(column)
        excerpt = self._context.excerpt(offset_of(node), Clause.ITEM)
        self._context.watcher.on_name(node, column, None, excerpt)
        alias = node.args.get("alias")
        element = column.part(parts[-1], ELEMENT, definition=ListElement(column))
        relation = QueryRelation([ValueStar(element)])
        name = self._context.name(alias.this) if alias is not None else parts[-1]
        scope.sources.append(FromItem(name, relation, (), True))

    def _add_subquery(self, node: exp.Subquery, scope: Scope, clause_uses: QueryRelation) -> None:
        alias = node.args.get("alias")
        is_join = _is_join_in_brackets(node.this)
        if is_join and alias is None:
            self.add(node.this, scope, clause_uses)
            return
        if is_join:
            inner = self._context.scope(scope.outer, scope.ctes)
            joins = QueryRelation()
            self.add(node.this, inner, joins)
            relation = self._context.check_size(
                QueryRelation(item for each in inner.sources for item in each.relation.items)
            )
            relation.uses = joins.uses
            relation.parents = [*joins.parents, *(each.relation for each in inner.sources)]
        else:
            ctes = self._subqueries.read_ctes(node, scope.outer, scope.ctes)
            relation = self._subqueries.read(node.this, scope.outer, ctes)
        self._add_source(scope, alias, relation, node)

    def _add_pivot_statement(
        self, node: exp.Pivot, scope: Scope, clause_uses: QueryRelation
    ) -> None:
        inner = self._context.scope(scope.outer, scope.ctes)
        self.add(node.this, inner, clause_uses)
        relation = self._pivots.pivot_statement(node, inner.sources[0].relation, scope)
        self._add_source(scope, node.args.get("alias"), relation, node)

    def _add_lateral(self, node: exp.Lateral, scope: Scope, clause_uses: QueryRelation) -> None:
        alias = node.args.get("alias")
        if isinstance(node.this, exp.Query):
            relation = self._subqueries.query(node.this, scope)
            self._add_source(scope, alias, relation, node)
        elif isinstance(node.this, exp.Unnest):
            self._add_unnest(node.this, scope, clause_uses, alias=alias)
        else:
            self._add_function(node.this, alias, scope, clause_uses, item=node)

    def _add_unnest(
        self,
        node: exp.Unnest,
        scope: Scope,
        clause_uses: QueryRelation,
        *,
        alias: exp.Expr | None = None,
    ) -> None:
        alias = alias or node.args.get("alias")
        names = self._alias_columns(alias)
        has_name = alias is not None and alias.this is not None
        arrays = node.expressions
        # Whether the columns are the fields of the elements.
        is_expanded = bool(names) and (
            len(names) > len(arrays) or (has_name and self._context.traits.expands_rows)
        )
        values: list[QueryColumn] = []
        for each in arrays:
            lineage = self._expressions.read([each], scope, ExpressionRole(Clause.ITEM))
            clause_uses.parents += lineage.relations
            element = ListElement(each, is_expanded=is_expanded)
            values.append(
                lineage.column("*").part(
                    "*", ELEMENT, definition=element, is_unknown_field=is_expanded
                )
            )
        offset = node.args.get("offset")
        # The index of an element does not depend on its value.
        offset_columns = (
            [QueryColumn(self._context.name(offset))] if isinstance(offset, exp.Expr) else []
        )
        if not has_name and len(names) == 1:
            # The alias names the elements themselves.
            relation = QueryRelation([ValueStar(values[0].with_name(names[0])), *offset_columns])
            scope.sources.append(FromItem(names[0], relation, (), True))
            return
        items: list[RelationItem] = []
        if names:
            for position, name in enumerate(names):
                items.append(values[min(position, len(values) - 1)].with_name(name))
        else:
            items = [ValueStar(value) for value in values]
        name = self._context.name(alias.this) if alias is not None and has_name else ""
        relation = QueryRelation([*items, *offset_columns])
        if not names and len(values) == 1:
            # DuckDB calls the column of the elements unnest.
            relation.implicit_names = {"unnest": values[0].with_name("unnest")}
        scope.sources.append(FromItem(name, relation, (), not names))

    def _read_value(
        self, nodes: Iterable[exp.Expr], scope: Scope, clause_uses: QueryRelation
    ) -> QueryColumn:
        role = ExpressionRole(Clause.ITEM, derivation=Derivation.TRANSFORMATION)
        lineage = self._expressions.read(nodes, scope, role)
        clause_uses.parents += lineage.relations
        return lineage.column("*")

    def _read_values(
        self, node: exp.Values, scope: Scope, clause_uses: QueryRelation
    ) -> QueryRelation:
        columns: list[QueryColumn] = []
        for row in node.expressions:
            cells = row.expressions if isinstance(row, exp.Tuple) else [row]
            for position, cell in enumerate(cells):
                value = self._read_value([cell], scope, clause_uses)
                value.definition = cell
                if position < len(columns):
                    columns[position] = columns[position].merge(value)
                else:
                    columns.append(value.with_name(f"column{position + 1}"))
        relation = QueryRelation(columns)
        relation.implicit_names = {
            f"col{position}": column for position, column in enumerate(columns, start=1)
        }
        return relation

    def _add_function(
        self, node: exp.Expr, alias: exp.Expr | None, scope: Scope, clause_uses: QueryRelation,
        *, item: exp.Expr | None = None,
    ) -> None:  # fmt: skip
        """Add a table function, whose columns are all derived from its arguments."""
        # OPENJSON ... WITH, JSON_TABLE and similar functions declare their columns.
        declared_columns = node.find_all(exp.OpenJSONColumnDef, exp.JSONColumnDef, exp.ColumnDef)
        names = self._alias_columns(alias) or [
            self._context.name(each.this) for each in declared_columns
        ]
        has_flatten = self._context.traits.has_flatten
        if has_flatten and isinstance(node.this, exp.Explode):
            names = names or list(_FLATTEN_COLUMNS)
        name = self._context.name(alias.this) if alias is not None and alias.this else ""
        if isinstance(node, exp.Explode | exp.Inline) and names and not has_flatten:
            lineage, columns = self._expressions.read_elements(node, names, scope)
            clause_uses.parents += lineage.relations
            scope.sources.append(FromItem(name, QueryRelation(columns)))
            return
        value = self._read_value([node], scope, clause_uses)
        row_numbers = self._row_number_columns(item, names)
        items: list[RelationItem] = [
            QueryColumn(name) if name in row_numbers else value.with_name(name) for name in names
        ] or [ValueStar(value)]
        scope.sources.append(FromItem(name, QueryRelation(items), (), not names))

    def _row_number_columns(self, item: exp.Expr | None, names: list[str]) -> set[str]:
        """The columns of a table function that only number its rows."""
        if item is not None and item.args.get("ordinality"):
            return set(names[-1:])
        is_flattened = names == list(_FLATTEN_COLUMNS) and self._context.traits.has_flatten
        return {"seq", "index"} if is_flattened else set()

    def _merge_shared_columns(
        self, join: exp.Expr, scope: Scope, first_joined: int, clause_uses: QueryRelation
    ) -> None:
        """Merge the columns that USING and NATURAL compare into one column."""
        using = join.args.get("using") or ()
        is_natural = join.args.get("method") == "NATURAL"
        if not using and not is_natural:
            return
        left = self._context.scope(scope.outer, scope.ctes)
        left.sources, left.merged_columns = scope.sources[:first_joined], scope.merged_columns
        right = self._context.scope(None, scope.ctes)
        right.sources = scope.sources[first_joined:]
        clause = Clause.ON
        names = {self._context.name(each): offset_of(each) for each in using}
        if is_natural:
            clause = Clause.JOIN
            position = offset_of(join.this)
            names = dict.fromkeys(self._shared_columns(left, right, position), position)
        for name, offset in names.items():
            sides = [self._resolve_side(name, each, offset) for each in (left, right)]
            lineage = ExpressionLineage()
            for side in sides:
                if side is not None:
                    lineage.add(side, ExpressionRole(Clause.ON, UseKind.JOIN), None)
            excerpt = self._context.excerpt(offset, clause)
            for use in lineage.uses:
                clause_uses.uses[OriginUse(use.origin, use.usage, excerpt)] = None
            self._context.watcher.on_shared_column(name, sides, excerpt)
            scope.merged_columns[name] = _coalesce(sides[:1] if _is_filter(join) else sides, name)

    def _resolve_side(self, name: str, scope: Scope, offset: int | None) -> QueryColumn | None:
        column = scope.resolve((name,))
        if isinstance(column, UnresolvedColumn):
            self._context.add_problem(column.reason, offset, is_remark=column.column is not None)
            column = column.column
        if column is not None:
            self._context.record_read(column)
        return column

    def _shared_columns(self, left: Scope, right: Scope, offset: int | None) -> list[str]:
        sides = [[column.name for source in scope.sources for column in source.relation.columns]
                 for scope in (left, right)]  # fmt: skip
        if any(
            source.relation.has_unknown_columns
            for scope in (left, right)
            for source in scope.sources
        ):
            self._context.add_problem("NATURAL JOIN of tables whose columns are not known", offset)
        right_names = set(sides[1])
        return [name for name in dict.fromkeys(sides[0]) if name in right_names]


class _PivotReader:
    """Reads PIVOT, UNPIVOT and MATCH_RECOGNIZE."""

    def __init__(self, context: AnalysisContext, expressions: ExpressionReader) -> None:
        self._context = context
        self._expressions = expressions

    def pivot(self, pivot: exp.Expr, relation: QueryRelation, scope: Scope) -> QueryRelation:
        """The result of PIVOT or UNPIVOT after a FROM item."""
        inner = self._inner_scope(relation, scope)
        fields = [each for each in pivot.args.get("fields") or () if isinstance(each, exp.In)]
        if pivot.args.get("unpivot"):
            columns, consumed = self._read_unpivot(pivot, fields, inner)
        else:
            columns, consumed = self._read_pivot(pivot, fields, inner)
        return self._combine_columns(pivot, relation, columns, consumed)

    def pivot_statement(
        self, node: exp.Pivot, relation: QueryRelation, scope: Scope
    ) -> QueryRelation:
        """The result of DuckDB's PIVOT or UNPIVOT statement, whose values name the columns."""
        inner = self._inner_scope(relation, scope)
        keys = [each.this if isinstance(each, exp.In) else each for each in node.expressions]
        new_columns = node.args.get("into")
        items: list[RelationItem]
        if node.args.get("unpivot"):
            role = ExpressionRole(Clause.ITEM, derivation=Derivation.TRANSFORMATION)
            value = self._expressions.read(keys, inner, role)
            names = ["name", "value"]
            if isinstance(new_columns, exp.UnpivotColumns):
                name = self._context.name
                names = [name(new_columns.this.this), name(new_columns.expressions[0].this)]
            items = [QueryColumn(names[0]), value.column(names[1])]
            consumed = self._column_names(keys)
        else:
            using = node.args.get("using") or []
            value = self._expressions.read(using, inner, ExpressionRole(Clause.ITEM))
            role = ExpressionRole(Clause.ITEM, UseKind.CONDITIONAL)
            self._expressions.read(keys, inner, role, into=value)
            items = [ValueStar(value.column("*"))]
            consumed = self._column_names([*keys, *using])
        return self._combine_columns(node, relation, items, consumed)

    def match_recognize(
        self, node: exp.Expr, relation: QueryRelation, scope: Scope
    ) -> QueryRelation:
        """The result of MATCH_RECOGNIZE: the partition or all columns, and the measures."""
        # Pattern variables, as in `up.price`, are rows of the only source.
        node = node.transform(
            lambda each: exp.column(each.this) if isinstance(each, exp.Column) else each
        )
        inner = self._inner_scope(relation, scope)
        items: list[RelationItem] = []
        conditions = QueryRelation()
        rows = node.args.get("rows")
        expressions = [each.this for each in node.args.get("measures") or ()]
        if rows is not None and rows.name.upper().startswith("ALL"):
            items += relation.items
        else:
            expressions = [*(node.args.get("partition_by") or ()), *expressions]
        for each in expressions:
            lineage = self._expressions.read([each], inner, ExpressionRole(Clause.ITEM))
            items.append(lineage.column(output_name(each, self._context)))
        for each in node.args.get("define") or ():
            self._expressions.read_condition(
                each.this, inner, conditions, UseKind.FILTER, Clause.ITEM
            )
        result = QueryRelation(items)
        result.parents = [conditions, relation]
        return result

    def _inner_scope(self, relation: QueryRelation, scope: Scope) -> Scope:
        inner = self._context.scope(scope.outer, scope.ctes)
        inner.sources = [FromItem("", relation)]
        return inner

    def _combine_columns(
        self,
        node: exp.Expr,
        relation: QueryRelation,
        columns: Iterable[RelationItem],
        consumed: set[str],
    ) -> QueryRelation:
        """The columns of GROUP BY, or else those that PIVOT does not use, and the new columns."""
        unchanged: list[RelationItem] = []
        group = node.args.get("group")
        if isinstance(group, exp.Group):
            names = [self._context.name(each.this) for each in group.find_all(exp.Column)]
            grouped_columns = [relation.find(name) or relation.guess(name) for name in names]
            unchanged += [column for column in grouped_columns if column is not None]
        else:
            for item in relation.items:
                if isinstance(item, Star):
                    unchanged.append(LimitedStar(item, consumed))
                elif item.name not in consumed:
                    unchanged.append(item)
        result = QueryRelation([*unchanged, *columns])
        result.parents = [relation]
        return result

    def _column_names(self, nodes: Iterable[exp.Expr]) -> set[str]:
        return {
            self._context.name(column.this)
            for node in nodes
            for column in node.find_all(exp.Column)
        }

    def _read_pivot(
        self, pivot: exp.Expr, fields: list[exp.In], scope: Scope
    ) -> tuple[list[QueryColumn], set[str]]:
        values = [
            self._expressions.read([each], scope, ExpressionRole(Clause.ITEM))
            for each in pivot.expressions
        ]
        conditions = ExpressionLineage()
        role = ExpressionRole(Clause.ITEM, UseKind.CONDITIONAL)
        for field in fields:
            self._expressions.read([field.this], scope, role, into=conditions)
        columns: list[QueryColumn] = []
        for position, name in enumerate(self._pivot_names(pivot, fields)):
            # Every value of the field has one column for each aggregate.
            value = values[position % len(values)]
            uses = {**value.uses, **conditions.uses}
            columns.append(QueryColumn(name, value.origins, uses, is_resolved=value.is_resolved))
        consumed = [*pivot.expressions, *(field.this for field in fields)]
        return columns, self._column_names(consumed)

    def _pivot_names(self, pivot: exp.Expr, fields: list[exp.In]) -> list[str]:
        """The names of the new columns: those that the dialect derives and those in the query."""
        names = [self._context.name(each) for each in pivot.args.get("columns") or ()]
        has_alias = any(isinstance(each, exp.Alias) for each in pivot.expressions)
        if len(pivot.expressions) == 1 and not (has_alias and names):
            for field in fields:
                for each in field.expressions:
                    alias = each.args.get("alias") if isinstance(each, exp.PivotAlias) else each
                    names.append(self._context.name(alias) if alias is not None else "")
        return list(dict.fromkeys(filter(None, names)))

    def _read_unpivot(
        self, pivot: exp.Expr, fields: list[exp.In], scope: Scope
    ) -> tuple[list[QueryColumn], set[str]]:
        values = [
            self._context.name(part)
            for each in pivot.expressions
            for part in (each.expressions if isinstance(each, exp.Tuple) else [each])
        ]
        columns = [QueryColumn(name) for name in values]
        names: list[QueryColumn] = []
        consumed: set[str] = set()
        role = ExpressionRole(Clause.ITEM, derivation=Derivation.TRANSFORMATION)
        for field in fields:
            for each in field.expressions:
                column = each.this if isinstance(each, exp.PivotAlias | exp.Alias) else each
                parts = column.expressions if isinstance(column, exp.Tuple) else [column]
                for position, part in enumerate(parts[: len(columns)]):
                    value = self._expressions.read([part], scope, role).column(values[position])
                    columns[position] = columns[position].merge(value)
                    if isinstance(part, exp.Column):
                        consumed.add(self._context.name(part.this))
            names.append(QueryColumn(self._context.name(field.this)))
        return [*names, *columns], consumed


def _coalesce(sides: list[QueryColumn | None], name: str) -> QueryColumn:
    """The column that USING returns: the COALESCE of both sides, as in the SQL standard."""
    merged: QueryColumn | None = None
    for side in sides:
        if side is not None:
            merged = side if merged is None else merged.merge(side)
    return merged or QueryColumn(name, is_resolved=False)


def _is_join_in_brackets(node: exp.Expr) -> bool:
    """Whether brackets contain FROM items and not a query."""
    while isinstance(node, exp.Subquery):
        if node.args.get("alias") is not None or node.args.get("joins"):
            return True
        node = node.this
    return isinstance(node, exp.Table)


def _is_filter(join: exp.Expr) -> bool:
    """Whether the right side of a join only filters the rows of the left side."""
    return join.args.get("kind") in _FILTERING_JOINS or join.args.get("side") in _FILTERING_JOINS


def _file_of(node: exp.Expr) -> str | None:
    """The file that read_parquet('s3://bucket/name') and similar functions read."""
    name = node.name if isinstance(node, exp.Anonymous) else node.key
    arguments = node.expressions or [node.this]
    reads_file = name.lower().replace("_", "") in _FILE_FUNCTIONS
    if not reads_file or not arguments or not isinstance(arguments[0], exp.Literal):
        return None
    file = arguments[0].name
    return file if "://" in file or file.startswith("/") else None


def _starts_before(node: exp.Expr, other_node: exp.Expr) -> bool:
    first, second = offset_of(node), offset_of(other_node)
    return first is not None and second is not None and first < second
