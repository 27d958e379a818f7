"""Reads statements that change rows: INSERT, UPDATE, DELETE, MERGE."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sqlglot import exp

from lumos.lineage.sql.context import FromItem, Scope
from lumos.lineage.sql.dialects import NestedName
from lumos.lineage.sql.expressions import ExpressionLineage, ExpressionRole
from lumos.lineage.sql.projections import output_name
from lumos.lineage.sql.queries import QueryReader
from lumos.lineage.sql.relation import (
    LimitedStar,
    Origin,
    QueryColumn,
    QueryRelation,
    RelationItem,
    Star,
)
from lumos.lineage.sql.script import Parts
from lumos.lineage.sql.source_text import Clause
from lumos.model.lineage import Derivation, UseKind


class WriteResult:
    """The columns that a statement writes to a table.

    `returned_rows` are the rows of RETURNING. With `covers_all_columns`, the table has no other
    columns.
    """

    def __init__(
        self,
        table: Parts,
        result: QueryRelation,
        *,
        positional: bool = False,
        covers_all_columns: bool = False,
    ) -> None:
        self.table = table
        self.result = result
        self.positional = positional
        self.returned_rows: QueryRelation | None = None
        self.covers_all_columns = covers_all_columns


class WriteReader:
    """Reads statements that write rows."""

    def __init__(self, queries: QueryReader) -> None:
        self._queries = queries
        self._context = queries.context
        self._expressions = queries.expressions

    def read(self, node: exp.Expr, ctes: Mapping[str, QueryRelation]) -> list[WriteResult]:
        """The writes of a statement, which may use the given CTEs."""
        ctes = self._queries.read_ctes(node, None, ctes)
        if isinstance(node, exp.Insert):
            return self._read_insert(node, ctes)
        if isinstance(node, exp.Update):
            return self._read_update(node, ctes)
        if isinstance(node, exp.Delete):
            return self._read_delete(node, ctes)
        if isinstance(node, exp.Merge):
            return self._read_merge(node, ctes)
        return []

    def target(self, node: exp.Expr) -> tuple[Parts, list[str]]:
        """The name of a target table, and the columns listed after it."""
        columns: list[str] = []
        if isinstance(node, exp.Schema):
            columns = [
                self._context.name(each.this if isinstance(each, exp.ColumnDef) else each)
                for each in node.expressions
                if isinstance(each, exp.Identifier | exp.Column | exp.ColumnDef | exp.Dot)
            ]
            columns = [*self._copied_columns(node.expressions), *columns]
            node = node.this
        if isinstance(node, exp.Table):
            return self._context.table_name(node), columns
        return (), columns

    def _copied_columns(self, nodes: Iterable[exp.Expr]) -> Iterator[str]:
        """The columns of the tables that `CREATE TABLE name (LIKE other)` copies."""
        for each in nodes:
            if isinstance(each, exp.LikeProperty) and isinstance(each.this, exp.Table):
                table = self._context.table_name(each.this)
                yield from self._context.known_columns(table) or ()

    def columns_of_like(self, node: exp.Create) -> list[str]:
        """The columns that `CREATE TABLE name LIKE other` copies."""
        properties = node.args.get("properties")
        return list(self._copied_columns(properties.expressions)) if properties is not None else []

    def match_to_target(
        self,
        table: Parts,
        listed_columns: Sequence[str],
        relation: QueryRelation,
        *,
        by_name: bool = False,
    ) -> tuple[QueryRelation, bool]:
        """Give the columns of a result the names of its target's columns.

        `listed_columns` is the column list of the statement. Also returns whether columns were
        matched by position.
        """
        names = list(listed_columns) or (self._context.known_columns(table) or [])
        if by_name or not names:
            return relation, not by_name
        items: list[RelationItem] = []
        for position, item in enumerate(relation.items):
            if isinstance(item, Star):
                items += [each for each in relation.items[position:]
                          if isinstance(each, Star) or each.name in names]  # fmt: skip
                break
            if position >= len(names):
                reason = (
                    f"the query returns {len(relation.items)} columns, but {'.'.join(table)} "
                    f"takes {len(names)}"
                )
                self._context.add_problem(reason, None, is_remark=True)
                break
            items.append(item.with_name(names[position]))
        renamed = QueryRelation(items)
        renamed.parents = [relation]
        return renamed, True

    def _read_insert(
        self, node: exp.Insert, ctes: Mapping[str, QueryRelation]
    ) -> list[WriteResult]:
        if not isinstance(node.this, exp.Schema | exp.Table):
            return []
        table, listed_columns = self.target(node.this)
        query = node.args.get("expression") or node.args.get("source")
        relation = QueryRelation()
        if isinstance(query, exp.Expr):
            relation = self._queries.read(query, None, ctes)
        static, dynamic = self._partitions(node)
        covers_all_columns = not (listed_columns or static or dynamic)
        if not listed_columns and (static or dynamic):
            all_columns = self._context.known_columns(table) or ()
            other = [name for name in all_columns if name not in static and name not in dynamic]
            listed_columns = [*other, *dynamic] if all_columns else []
        result, positional = self.match_to_target(
            table, listed_columns, relation, by_name=bool(node.args.get("by_name"))
        )
        positional = positional and not isinstance(query, exp.Values)
        writes = [
            WriteResult(table, result, positional=positional, covers_all_columns=covers_all_columns)
        ]
        conflict = node.args.get("conflict")
        if conflict is not None and conflict.expressions:
            scope = self._context.scope(None, ctes)
            scope.sources = [self._target_source(node.this, table, ctes)]
            scope.named_rows = {**scope.named_rows, "excluded": result, "new": result}
            assignments = [each.transform(_replace_values_call) for each in conflict.expressions]
            clause_uses = QueryRelation()
            if conflict.args.get("duplicate") and isinstance(query, exp.Select):
                # In MySQL, assignments may also use the sources of the query.
                self._queries.sources.fill(query, scope, clause_uses)
                self._register_assigned(conflict, table, scope, listed_columns=listed_columns)
            update = self._write_assignments(table, assignments, scope, [result, clause_uses])
            self._read_where(conflict, scope, clause_uses)
            writes.append(update)
        self._read_returning(node, table, self._context.scope(None, ctes), writes)
        return writes

    def _partitions(self, node: exp.Insert) -> tuple[set[str], list[str]]:
        """The partition columns with static values, and those that the query fills."""
        static: set[str] = set()
        dynamic: list[str] = []
        partition = node.args.get("partition") or node.this.args.get("partition")
        for each in partition.expressions if isinstance(partition, exp.Partition) else ():
            if isinstance(each, exp.EQ):
                static.add(self._context.name(each.this))
            else:
                dynamic.append(self._context.name(each))
        return static, dynamic

    def _target_source(
        self, node: exp.Expr, table: Parts, ctes: Mapping[str, QueryRelation]
    ) -> FromItem:
        target = node.this if isinstance(node, exp.Schema) else node
        alias = target.args.get("alias")
        name = self._context.name(alias.this) if alias is not None else table[-1]
        relation = ctes.get(table[0]) if len(table) == 1 else None
        if relation is None:
            # The target is only read if its columns are named.
            relation = self._context.table(table, is_read=False)
        return FromItem(name, relation, table)

    def _redirect_cte_writes(
        self, writes: list[WriteResult], ctes: Mapping[str, QueryRelation]
    ) -> list[WriteResult]:
        """Redirect writes to a CTE to the tables that it reads."""
        redirected: list[WriteResult] = []
        for each in writes:
            query = ctes.get(each.table[0]) if len(each.table) == 1 else None
            if query is None:
                redirected.append(each)
                continue
            redirected += [
                WriteResult(table, result)
                for table, result in target_columns(query, each.result).items()
            ]
        return redirected

    def _read_returning(
        self, node: exp.Expr, table: Parts, scope: Scope, writes: list[WriteResult]
    ) -> None:
        """Read RETURNING, which returns the new rows, and OUTPUT ... INTO, which writes them."""
        returning = node.args.get("returning")
        if returning is None or not writes:
            return
        result = writes[0].result
        old_rows = self._context.table(table, is_read=False)
        into = returning.args.get("into")
        new_rows = old_rows if into else apply_changes(old_rows, result)
        inner = self._context.scope(None, scope.ctes)
        inner.sources = [FromItem(table[-1], new_rows, table)]
        inner.sources += [each for each in scope.sources if each.parts != table]
        row_names = {
            "inserted": new_rows, "deleted": old_rows, "new": new_rows, "old": old_rows,
        }  # fmt: skip
        inner.named_rows = {**inner.named_rows, **row_names}
        inner.variables |= {"$action"}
        select = exp.Select(expressions=list(returning.expressions))
        returned_rows = self._queries.projections.read(select, inner, QueryRelation())
        returned_rows.parents += [old_rows, result]
        writes[0].returned_rows = returned_rows
        if isinstance(into, exp.Table | exp.Schema | exp.Identifier | exp.Parameter):
            target = into if isinstance(into, exp.Table | exp.Schema) else exp.Table(this=into)
            name, listed_columns = self.target(target)
            matched, positional = self.match_to_target(name, listed_columns, returned_rows)
            writes.append(WriteResult(name, matched, positional=positional))

    def _read_update(
        self, node: exp.Update, ctes: Mapping[str, QueryRelation]
    ) -> list[WriteResult]:
        scope = self._context.scope(None, ctes)
        clause_uses = QueryRelation()
        table, scope_has_target = self._updated_table(node, scope, clause_uses)
        if not table:
            return []
        self._queries.sources.fill(node, scope, clause_uses)
        if not scope_has_target and not self._is_in_from(table, node, scope):
            scope.sources.insert(0, self._target_source(node.this, table, ctes))
        self._register_assigned(node, table, scope)
        return self._read_assignments(node, table, scope, clause_uses)

    def _register_assigned(
        self, node: exp.Expr, table: Parts, scope: Scope, *, listed_columns: Sequence[str] = ()
    ) -> None:
        """Register the columns in SET, and in the column list, as columns of the target."""
        target = next((each for each in scope.sources if each.parts == table), None)
        if target is not None:
            assigned = {(target.name, self._context.name(_assigned_name(each.this)))
                        for each in node.expressions
                        if isinstance(each.this, exp.Column)}  # fmt: skip
            assigned.update((target.name, name) for name in listed_columns)
            names_in_query = scope.qualified_names
            scope.qualified_names = lambda: {*names_in_query(), *assigned}

    def _updated_table(
        self, node: exp.Update, scope: Scope, clause_uses: QueryRelation
    ) -> tuple[Parts, bool]:
        """The target of UPDATE (maybe an alias in FROM), and whether it was added to the scope."""
        target = node.this
        if not isinstance(target, exp.Table):
            return (), False
        table = self._context.table_name(target)
        if target.args.get("joins"):
            self._queries.sources.add(target, scope, clause_uses)
            return self._table_named_in_set(node, scope) or table, True
        from_clause = node.args.get("from_")
        if from_clause is not None and len(table) == 1 and target.args.get("alias") is None:
            for each in from_clause.find_all(exp.Table):
                alias = each.args.get("alias")
                if alias is not None and self._context.name(alias.this) == table[0]:
                    return self._context.table_name(each), False
        return table, False

    def _table_named_in_set(self, node: exp.Update, scope: Scope) -> Parts | None:
        for each in node.expressions:
            column = each.this
            if isinstance(column, exp.Column) and column.args.get("table") is not None:
                source = scope.find_source(self._context.column_parts(column)[:-1])
                if source is not None and source.relation.table is not None:
                    return source.relation.table
        return None

    def _is_in_from(self, table: Parts, node: exp.Update, scope: Scope) -> bool:
        """Whether FROM contains the target under the same name."""
        alias = node.this.args.get("alias")
        name = self._context.name(alias.this) if alias is not None else None
        target = self._context.table_name(node.this)
        return any(
            source.name in (name, target[-1])
            and (source.parts == table or source.parts[-len(target) :] == target)
            for source in scope.sources
        )

    def _read_assignments(
        self, node: exp.Update, table: Parts, scope: Scope, clause_uses: QueryRelation
    ) -> list[WriteResult]:
        result = [
            self._write_assignments(changed_table, assignments, scope, [])
            for changed_table, assignments in self._assignments_by_table(node, table, scope).items()
        ]
        self._read_where(node, scope, clause_uses)
        clause_uses.parents += [source.relation for source in scope.sources]
        for write in result:
            write.result.parents.append(clause_uses)
        result = self._redirect_cte_writes(result, scope.ctes)
        self._read_returning(node, result[0].table if result else table, scope, result)
        return result

    def _assignments_by_table(
        self, node: exp.Update, table: Parts, scope: Scope
    ) -> dict[Parts, list[exp.Expr]]:
        """The assignments by table; MySQL may update several tables at once."""
        by_table: dict[Parts, list[exp.Expr]] = {table: []}
        for each in node.expressions:
            changed_table = table
            if node.this.args.get("joins") and isinstance(each.this, exp.Column):
                source = scope.find_source(self._context.column_parts(each.this)[:-1])
                if source is not None and source.relation.table is not None:
                    changed_table = source.relation.table
            by_table.setdefault(changed_table, []).append(each)
        return by_table

    def _write_assignments(
        self, table: Parts, assignments: Iterable[exp.Expr], scope: Scope,
        parents: list[QueryRelation],
    ) -> WriteResult:  # fmt: skip
        """The columns that SET assigns."""
        result_parents = list(parents)
        items: list[RelationItem] = []
        for name, value, tables in self._assigned_values(assignments, scope):
            items.append(value.with_name(name))
            result_parents += tables
        result = QueryRelation(items)
        result.parents = result_parents
        return WriteResult(table, result)

    def _assigned_values(
        self, assignments: Iterable[exp.Expr], scope: Scope
    ) -> Iterator[tuple[str, QueryColumn, list[QueryRelation]]]:
        """The assigned column, its value, and the tables of subqueries in that value."""
        for each in assignments:
            if not isinstance(each, exp.EQ | exp.PropertyEQ):
                continue
            left, right = each.this, each.expression
            if isinstance(left, exp.Parameter):
                continue
            if isinstance(left, exp.Tuple | exp.Paren):
                names = left.expressions if isinstance(left, exp.Tuple) else [left.this]
                yield from self._read_tuple_assignment(names, right, scope)
                continue
            lineage = self._read_expression(right, scope, Clause.VALUE)
            tables = lineage.absorb_subqueries(self._context.count_origins)
            value = lineage.column("", definition=right)
            yield self._context.name(_assigned_name(left)), value, tables

    def _read_tuple_assignment(
        self, names: Sequence[exp.Expr], right: exp.Expr, scope: Scope
    ) -> Iterator[tuple[str, QueryColumn, list[QueryRelation]]]:
        """Read SET (a, b) = (SELECT x, y ...), or SET (a, b) = (x, y)."""
        if isinstance(right, exp.Query):
            relation = self._queries.query(right, scope)
            subquery = ExpressionLineage()
            subquery.relations.append(relation)
            tables = subquery.absorb_subqueries(self._context.count_origins)
            for name, column in zip(names, relation.all_columns(), strict=False):
                yield (
                    self._context.name(_assigned_name(name)),
                    column.with_uses(subquery.uses),
                    tables,
                )
            return
        values = right.expressions if isinstance(right, exp.Tuple) else [right.this]
        for name, value in zip(names, values, strict=False):
            lineage = self._read_expression(value, scope)
            tables = lineage.absorb_subqueries(self._context.count_origins)
            assigned = lineage.column("", definition=value)
            yield self._context.name(_assigned_name(name)), assigned, tables

    def _read_expression(
        self, node: exp.Expr, scope: Scope, clause: Clause = Clause.ITEM
    ) -> ExpressionLineage:
        return self._expressions.read([node], scope, ExpressionRole(clause))

    def _read_where(self, node: exp.Expr, scope: Scope, clause_uses: QueryRelation) -> None:
        where = node.args.get("where")
        self._expressions.read_condition(where, scope, clause_uses, UseKind.FILTER, Clause.WHERE)

    def _read_delete(
        self, node: exp.Delete, ctes: Mapping[str, QueryRelation]
    ) -> list[WriteResult]:
        target = node.this
        deleted_from = node.args.get("tables")
        scope = self._context.scope(None, ctes)
        clause_uses = QueryRelation()
        if isinstance(target, exp.Subquery):
            return self._read_delete_from_query(node, target, scope, clause_uses)
        if not isinstance(target, exp.Table):
            if not deleted_from:
                return []
            target = deleted_from[0]
        table = self._context.table_name(target)
        if target.args.get("joins") or deleted_from:
            self._queries.sources.add(target, scope, clause_uses)
        else:
            scope.sources.append(self._target_source(target, table, ctes))
        table = target_table(scope.sources[0].relation) or table
        for each in deleted_from or ():
            source = scope.find_source(self._context.table_name(each))
            if source is not None:
                table = target_table(source.relation) or table
        using = node.args.get("using") or []
        for each in using if isinstance(using, list) else [using]:
            self._queries.sources.add(each, scope, clause_uses)
        self._read_where(node, scope, clause_uses)
        result = QueryRelation()
        result.parents = [clause_uses, *(source.relation for source in scope.sources)]
        writes = [WriteResult(table, result)]
        self._read_returning(node, table, scope, writes)
        return writes

    def _read_delete_from_query(
        self, node: exp.Delete, target: exp.Subquery, scope: Scope, clause_uses: QueryRelation
    ) -> list[WriteResult]:
        """Read Oracle's DELETE FROM (query)."""
        self._queries.sources.add(target, scope, clause_uses)
        self._read_where(node, scope, clause_uses)
        query = scope.sources[0].relation
        result = QueryRelation()
        result.parents = [clause_uses, query]
        table = target_table(query)
        return [WriteResult(table, result)] if table is not None else []

    def _read_merge(self, node: exp.Merge, ctes: Mapping[str, QueryRelation]) -> list[WriteResult]:
        table, _ = self.target(node.this)
        scope = self._context.scope(None, ctes)
        clause_uses = QueryRelation()
        target = self._target_source(node.this, table, ctes)
        scope.sources.append(target)
        self._queries.sources.add(node.args["using"], scope, clause_uses)
        self._expressions.read_condition(
            node.args.get("on"), scope, clause_uses, UseKind.JOIN, Clause.ON
        )
        source = scope.sources[-1]
        clause_uses.parents += [each.relation for each in scope.sources]
        writes: list[WriteResult] = []
        whens = node.args.get("whens")
        for when in whens.expressions if whens is not None else ():
            self._expressions.read_condition(
                when.args.get("condition"), scope, clause_uses, UseKind.FILTER, Clause.WHEN
            )
            action = when.args.get("then")
            if isinstance(action, exp.Update):
                writes.append(
                    WriteResult(table, self._match_by_name(table, source.relation))
                    if any(isinstance(each, exp.Star) for each in action.expressions)
                    else self._write_assignments(table, action.expressions, scope, [])
                )
                self._read_where(action, scope, clause_uses)
            elif isinstance(action, exp.Insert):
                writes.append(self._read_merge_insert(action, table, scope, source))
                self._read_where(action, scope, clause_uses)
        writes = writes or [WriteResult(table, QueryRelation())]
        for each in writes:
            each.result.parents.append(clause_uses)
        writes = self._redirect_cte_writes(writes, ctes)
        self._read_returning(node, writes[0].table if writes else table, scope, writes)
        return writes

    def _read_merge_insert(
        self, action: exp.Insert, table: Parts, scope: Scope, source: FromItem
    ) -> WriteResult:
        values = action.args.get("expression")
        columns = action.this
        if isinstance(columns, exp.Tuple) and len(columns.expressions) == 1:
            # The parser reads VALUES (...) without a column list as a function.
            call = columns.expressions[0]
            if isinstance(call, exp.Anonymous) and call.name.lower() == "values":
                values, columns = exp.Tuple(expressions=call.expressions), None
        if not isinstance(values, exp.Expr):
            return WriteResult(table, self._match_by_name(table, source.relation))
        column_nodes: list[exp.Expr] = []
        if isinstance(columns, exp.Tuple | exp.Schema):
            column_nodes = columns.expressions
        elif isinstance(columns, exp.Paren):
            column_nodes = [columns.this]
        value_nodes = values.expressions if isinstance(values, exp.Tuple) else [values]
        if isinstance(values, exp.Paren):
            value_nodes = [values.this]
        items: list[RelationItem] = []
        parents: list[QueryRelation] = []
        for value in value_nodes:
            lineage = self._read_expression(value, scope)
            name = output_name(value, self._context)
            items.append(lineage.column(name, definition=value))
            parents += lineage.absorb_subqueries(self._context.count_origins)
        names = [self._context.name(_assigned_name(each)) for each in column_nodes]
        result, positional = self.match_to_target(table, names, QueryRelation(items))
        result.parents += parents
        return WriteResult(table, result, positional=positional and not names)

    def _match_by_name(self, table: Parts, relation: QueryRelation) -> QueryRelation:
        """Match columns of MERGE ... UPDATE SET * or INSERT * by name."""
        names = self._context.known_columns(table)
        items: list[RelationItem] = []
        for item in relation.items:
            if isinstance(item, Star):
                items.append(item)
            elif names is None or item.name in names:
                items.append(item.via_star())
        if names is not None and relation.has_unknown_columns:
            guesses = [relation.guess(name) for name in names if relation.find(name) is None]
            items = [item for item in items if isinstance(item, QueryColumn)]
            items += [column.via_star() for column in guesses if column is not None]
        matched = QueryRelation(items)
        matched.parents = [relation]
        return matched


def _replace_values_call(node: exp.Expr) -> exp.Expr:
    """Replace MySQL's VALUES(column), a column of the row to be inserted, by new.column."""
    is_call = isinstance(node, exp.Anonymous) and node.name.lower() == "values"
    argument = node.expressions[0] if is_call and len(node.expressions) == 1 else None
    name = argument.this if isinstance(argument, exp.Column) else argument
    if isinstance(name, exp.Identifier):
        return exp.Column(this=name.copy(), table=exp.to_identifier("new"))
    return node


def _assigned_name(node: exp.Expr) -> exp.Expr:
    """The assigned column, without its table or field."""
    column = node.this if isinstance(node, exp.Column) else node
    return column if isinstance(column, exp.Expr) else node


def target_table(query: QueryRelation) -> Parts | None:
    """The table that a write to a query changes: the first whose column it returns unchanged."""
    if query.table is not None:
        return query.table
    for column in query.all_columns():
        origin = _unchanged_origin(column)
        if origin is not None:
            return origin[0]
    return None


def target_columns(query: QueryRelation, result: QueryRelation) -> dict[Parts, QueryRelation]:
    """The columns assigned through a query, such as a CTE, by the tables that they belong to."""
    by_table: dict[Parts, list[RelationItem]] = {}
    for column in result.columns:
        source = query.find(column.name) or query.guess(column.name)
        origin = _unchanged_origin(source) if source is not None else None
        if origin is not None:
            by_table.setdefault(origin[0], []).append(column.with_name(origin[1]))
    table = target_table(query)
    if not by_table and table is not None:
        by_table[table] = []
    relations = {table: QueryRelation(items) for table, items in by_table.items()}
    for relation in relations.values():
        relation.parents = [result]
    return relations


def apply_changes(table: QueryRelation, changed: QueryRelation) -> QueryRelation:
    """The columns of a table after some of them were changed."""
    names = {column.name: column for column in changed.columns}
    items: list[RelationItem] = []
    for item in table.items:
        if isinstance(item, Star):
            items += [*names.values(), LimitedStar(item, names)]
        else:
            items.append(names.get(item.name, item))
    return QueryRelation(items)


def _unchanged_origin(column: QueryColumn) -> Origin | None:
    for origin, path in column.origins.items():
        if path.derivation is Derivation.IDENTITY and not isinstance(origin[1], NestedName):
            return origin
    return None
