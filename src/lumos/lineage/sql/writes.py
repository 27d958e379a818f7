"""Reads statements that change rows: INSERT, UPDATE, DELETE, MERGE."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sqlglot import exp

from lumos.lineage.sql.context import FromItem, Scope
from lumos.lineage.sql.dialects import NestedName
from lumos.lineage.sql.expressions import ExpressionLineage, ExpressionRole
from lumos.lineage.sql.projections import output_name
from lumos.lineage.sql.queries import QueryReader
from lumos.lineage.sql.relation import Item, LimitedStar, Origin, QueryColumn, QueryRelation, Star
from lumos.lineage.sql.script import Parts
from lumos.lineage.sql.source_text import Clause
from lumos.model.lineage import Derivation, UseKind


class WriteResult:
    """The columns that a statement writes to a table, with their indirect uses."""

    def __init__(
        self, table: Parts, result: QueryRelation, *, positional: bool = False,
        returned: QueryRelation | None = None, is_whole: bool = False,
    ) -> None:  # fmt: skip
        self.table = table
        self.result = result
        self.positional = positional
        self.returned = returned
        # Whether the table has no other columns.
        self.is_whole = is_whole


class WriteReader:
    """Reads statements that write rows."""

    def __init__(self, queries: QueryReader) -> None:
        self._queries = queries
        self._context = queries.context
        self._expressions = queries.expressions

    def read(self, node: exp.Expr, ctes: Mapping[str, QueryRelation]) -> list[WriteResult]:
        """The writes of a statement that may use these CTEs."""
        ctes = self._queries.with_queries(node, None, ctes)
        if isinstance(node, exp.Insert):
            return self._insert(node, ctes)
        if isinstance(node, exp.Update):
            return self._update(node, ctes)
        if isinstance(node, exp.Delete):
            return self._delete(node, ctes)
        if isinstance(node, exp.Merge):
            return self._merge(node, ctes)
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
        """The columns that LIKE copies from another table."""
        for each in nodes:
            if isinstance(each, exp.LikeProperty) and isinstance(each.this, exp.Table):
                table = self._context.table_name(each.this)
                yield from self._context.known_columns(table) or ()

    def liked(self, node: exp.Create) -> list[str]:
        """The columns of CREATE TABLE name LIKE other."""
        properties = node.args.get("properties")
        return list(self._copied_columns(properties.expressions)) if properties is not None else []

    def placed(
        self, table: Parts, listed: Sequence[str], relation: QueryRelation, *, by_name: bool = False
    ) -> tuple[QueryRelation, bool]:
        """A result under the names of its target, and whether they were matched by position."""
        names = list(listed) or (self._context.known_columns(table) or [])
        if by_name or not names:
            return relation, not by_name
        items: list[Item] = []
        for position, item in enumerate(relation.items):
            if isinstance(item, Star):
                items += [each for each in relation.items[position:]
                          if isinstance(each, Star) or each.name in names]  # fmt: skip
                break
            if position >= len(names):
                given_count = f"{len(relation.items)} columns are given"
                reason = f"{given_count}, {'.'.join(table)} takes {len(names)}"
                self._context.add_problem(reason, None, is_remark=True)
                break
            items.append(item.renamed(names[position]))
        renamed = QueryRelation(items)
        renamed.parents = [relation]
        return renamed, True

    def _insert(self, node: exp.Insert, ctes: Mapping[str, QueryRelation]) -> list[WriteResult]:
        if not isinstance(node.this, exp.Schema | exp.Table):
            return []
        table, listed = self.target(node.this)
        query = node.args.get("expression") or node.args.get("source")
        relation = QueryRelation()
        if isinstance(query, exp.Expr):
            relation = self._queries.read(query, None, ctes)
        fixed, dynamic = self._partitions(node)
        is_whole = not (listed or fixed or dynamic)
        if not listed and (fixed or dynamic):
            known = self._context.known_columns(table)
            if known:
                inner = [name for name in known if name not in fixed and name not in dynamic]
                listed = [*inner, *dynamic]
        result, positional = self.placed(
            table, listed, relation, by_name=bool(node.args.get("by_name"))
        )
        is_by_values = isinstance(query, exp.Values)
        positional = positional and not is_by_values
        written = [WriteResult(table, result, positional=positional, is_whole=is_whole)]
        conflict = node.args.get("conflict")
        if conflict is not None and conflict.expressions:
            scope = self._context.scope(None, ctes)
            scope.sources = [self._target_source(node.this, table, ctes)]
            scope.rows = {**scope.rows, "excluded": result, "new": result}
            assignments = [each.transform(_as_new_row) for each in conflict.expressions]
            clauses = QueryRelation()
            if conflict.args.get("duplicate") and isinstance(query, exp.Select):
                # MySQL also sees the sources of the query.
                self._queries.sources.fill(query, scope, clauses)
                self._register_assigned(conflict, table, scope, also=listed)
            changed = self._write_assignments(table, assignments, scope, [result, clauses])
            where = conflict.args.get("where")
            self._expressions.read_condition(where, scope, clauses, UseKind.FILTER, Clause.WHERE)
            written.append(changed)
        self._returning(node, table, self._context.scope(None, ctes), written)
        return written

    def _partitions(self, node: exp.Insert) -> tuple[set[str], list[str]]:
        """The partition columns with a fixed value, and those that take the last columns."""
        fixed: set[str] = set()
        dynamic: list[str] = []
        partition = node.args.get("partition") or node.this.args.get("partition")
        for each in partition.expressions if isinstance(partition, exp.Partition) else ():
            if isinstance(each, exp.EQ):
                fixed.add(self._context.name(each.this))
            else:
                dynamic.append(self._context.name(each))
        return fixed, dynamic

    def _target_source(
        self, node: exp.Expr, table: Parts, ctes: Mapping[str, QueryRelation]
    ) -> FromItem:
        inside = node.this if isinstance(node, exp.Schema) else node
        alias = inside.args.get("alias")
        name = self._context.name(alias.this) if alias is not None else table[-1]
        relation = ctes.get(table[0]) if len(table) == 1 else None
        if relation is None:
            # A target only counts as read if its columns are named.
            relation = self._context.table(table, is_read=False)
        return FromItem(name, relation, table)

    def _redirect_cte_writes(
        self, written: list[WriteResult], ctes: Mapping[str, QueryRelation]
    ) -> list[WriteResult]:
        """Redirect writes to a CTE to the table that it reads."""
        redirected: list[WriteResult] = []
        for each in written:
            query = ctes.get(each.table[0]) if len(each.table) == 1 else None
            if query is None:
                redirected.append(each)
                continue
            redirected += [
                WriteResult(table, result)
                for table, result in target_columns(query, each.result).items()
            ]
        return redirected

    def _returning(
        self, node: exp.Expr, table: Parts, scope: Scope, written: list[WriteResult]
    ) -> None:
        """RETURNING returns the new rows; OUTPUT ... INTO writes them to another table."""
        returning = node.args.get("returning")
        if returning is None or not written:
            return
        result = written[0].result
        before = self._context.table(table, is_read=False)
        into = returning.args.get("into")
        after = before if into else apply_changes(before, result)
        inner = self._context.scope(None, scope.ctes)
        inner.sources = [FromItem(table[-1], after, table)]
        inner.sources += [each for each in scope.sources if each.parts != table]
        row_names = {"inserted": after, "deleted": before, "new": after, "old": before}
        inner.rows = {**inner.rows, **row_names}
        inner.variables |= {"$action"}
        select = exp.Select(expressions=list(returning.expressions))
        returned = self._queries.projections.read(select, inner, QueryRelation())
        returned.parents += [before, result]
        written[0].returned = returned
        if isinstance(into, exp.Table | exp.Schema | exp.Identifier | exp.Parameter):
            target = into if isinstance(into, exp.Table | exp.Schema) else exp.Table(this=into)
            name, listed = self.target(target)
            placed, positional = self.placed(name, listed, returned)
            written.append(WriteResult(name, placed, positional=positional))

    def _update(self, node: exp.Update, ctes: Mapping[str, QueryRelation]) -> list[WriteResult]:
        scope = self._context.scope(None, ctes)
        clauses = QueryRelation()
        table, scope_has_target = self._updated_table(node, scope, clauses)
        if not table:
            return []
        self._queries.sources.fill(node, scope, clauses)
        if not scope_has_target and not self._is_in_from(table, node, scope):
            scope.sources.insert(0, self._target_source(node.this, table, ctes))
        self._register_assigned(node, table, scope)
        return self._read_assignments(node, table, scope, clauses)

    def _register_assigned(
        self, node: exp.Expr, table: Parts, scope: Scope, *, also: Sequence[str] = ()
    ) -> None:
        """Register that columns in SET belong to the target."""
        target = next((each for each in scope.sources if each.parts == table), None)
        if target is not None:
            found = {(target.name, self._context.name(_assigned_name(each.this)))
                     for each in node.expressions if isinstance(each.this, exp.Column)}  # fmt: skip
            found.update((target.name, name) for name in also)
            known = scope.qualified_names
            scope.qualified_names = lambda: {*known(), *found}

    def _updated_table(
        self, node: exp.Update, scope: Scope, clauses: QueryRelation
    ) -> tuple[Parts, bool]:
        """The target of UPDATE; its name may be an alias from FROM."""
        target = node.this
        if not isinstance(target, exp.Table):
            return (), False
        table = self._context.table_name(target)
        if target.args.get("joins"):
            self._queries.sources.add(target, scope, clauses)
            return self._table_named_in_set(node, scope) or table, True
        start = node.args.get("from_")
        if start is not None and len(table) == 1 and target.args.get("alias") is None:
            for each in start.find_all(exp.Table):
                alias = each.args.get("alias")
                if alias is not None and self._context.name(alias.this) == table[0]:
                    return self._context.table_name(each), False
        return table, False

    def _table_named_in_set(self, node: exp.Update, scope: Scope) -> Parts | None:
        for each in node.expressions:
            column = each.this
            if isinstance(column, exp.Column) and column.args.get("table") is not None:
                source = scope.source(self._context.column_parts(column)[:-1])
                if source is not None and source.relation.table is not None:
                    return source.relation.table
        return None

    def _is_in_from(self, table: Parts, node: exp.Update, scope: Scope) -> bool:
        """Whether FROM contains the target under the same name."""
        alias = node.this.args.get("alias")
        name = self._context.name(alias.this) if alias is not None else None
        started = self._context.table_name(node.this)
        return any(
            source.name in (name, started[-1])
            and (source.parts == table or source.parts[-len(started) :] == started)
            for source in scope.sources
        )

    def _read_assignments(
        self, node: exp.Update, table: Parts, scope: Scope, clauses: QueryRelation
    ) -> list[WriteResult]:
        result = [
            self._write_assignments(changed, assignments, scope, [])
            for changed, assignments in self._by_table(node, table, scope).items()
        ]
        self._expressions.read_condition(
            node.args.get("where"), scope, clauses, UseKind.FILTER, Clause.WHERE
        )
        clauses.parents += [source.relation for source in scope.sources]
        for written in result:
            written.result.parents.append(clauses)
        result = self._redirect_cte_writes(result, scope.ctes)
        self._returning(node, result[0].table if result else table, scope, result)
        return result

    def _by_table(
        self, node: exp.Update, table: Parts, scope: Scope
    ) -> dict[Parts, list[exp.Expr]]:
        """The assignments by table; MySQL may update several tables at once."""
        found: dict[Parts, list[exp.Expr]] = {table: []}
        for each in node.expressions:
            changed = table
            if node.this.args.get("joins") and isinstance(each.this, exp.Column):
                source = scope.source(self._context.column_parts(each.this)[:-1])
                if source is not None and source.relation.table is not None:
                    changed = source.relation.table
            found.setdefault(changed, []).append(each)
        return found

    def _write_assignments(
        self, table: Parts, assignments: Iterable[exp.Expr], scope: Scope,
        parents: list[QueryRelation],
    ) -> WriteResult:  # fmt: skip
        """The columns that SET assigns."""
        items: list[Item] = []
        sources = QueryRelation()
        for name, value, relation in self._assignments(assignments, scope):
            items.append(value.renamed(name))
            sources.parents += relation
        result = QueryRelation(items)
        result.parents = [*parents, *sources.parents]
        return WriteResult(table, result)

    def _assignments(
        self, assignments: Iterable[exp.Expr], scope: Scope
    ) -> Iterator[tuple[str, QueryColumn, list[QueryRelation]]]:
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
            lineage = self._read(right, scope, Clause.VALUE)
            tables = lineage.absorb_subqueries(self._context.count_origins)
            value = lineage.column("", definition=right)
            yield self._context.name(_assigned_name(left)), value, tables

    def _read_tuple_assignment(
        self, names: Sequence[exp.Expr], right: exp.Expr, scope: Scope
    ) -> Iterator[tuple[str, QueryColumn, list[QueryRelation]]]:
        """SET (a, b) = (SELECT x, y ...)"""
        if isinstance(right, exp.Query):
            relation = self._queries.query(right, scope)
            influence = ExpressionLineage()
            influence.relations.append(relation)
            tables = influence.absorb_subqueries(self._context.count_origins)
            for name, column in zip(names, relation.everything(), strict=False):
                yield (
                    self._context.name(_assigned_name(name)),
                    column.decided_by(influence.uses),
                    tables,
                )
            return
        values = right.expressions if isinstance(right, exp.Tuple) else [right.this]
        for name, value in zip(names, values, strict=False):
            lineage = self._read(value, scope)
            tables = lineage.absorb_subqueries(self._context.count_origins)
            assigned = lineage.column("", definition=value)
            yield self._context.name(_assigned_name(name)), assigned, tables

    def _read(
        self, node: exp.Expr, scope: Scope, clause: Clause = Clause.ITEM
    ) -> ExpressionLineage:
        return self._expressions.read([node], scope, ExpressionRole(clause))

    def _delete(self, node: exp.Delete, ctes: Mapping[str, QueryRelation]) -> list[WriteResult]:
        target = node.this
        named = node.args.get("tables")
        scope = self._context.scope(None, ctes)
        clauses = QueryRelation()
        if isinstance(target, exp.Subquery):
            return self._delete_from_query(node, target, scope, clauses)
        if not isinstance(target, exp.Table):
            if not named:
                return []
            target = named[0]
        table = self._context.table_name(target)
        if target.args.get("joins") or named:
            self._queries.sources.add(target, scope, clauses)
        else:
            scope.sources.append(self._target_source(target, table, ctes))
        table = target_table(scope.sources[0].relation) or table
        for each in named or ():
            source = scope.source(self._context.table_name(each))
            if source is not None:
                table = target_table(source.relation) or table
        using = node.args.get("using") or []
        for each in using if isinstance(using, list) else [using]:
            self._queries.sources.add(each, scope, clauses)
        self._expressions.read_condition(
            node.args.get("where"), scope, clauses, UseKind.FILTER, Clause.WHERE
        )
        result = QueryRelation()
        result.parents = [clauses, *(source.relation for source in scope.sources)]
        written = [WriteResult(table, result)]
        self._returning(node, table, scope, written)
        return written

    def _delete_from_query(
        self, node: exp.Delete, target: exp.Subquery, scope: Scope, clauses: QueryRelation
    ) -> list[WriteResult]:
        """Oracle's DELETE FROM (query)"""
        self._queries.sources.add(target, scope, clauses)
        self._expressions.read_condition(
            node.args.get("where"), scope, clauses, UseKind.FILTER, Clause.WHERE
        )
        query = scope.sources[0].relation
        result = QueryRelation()
        result.parents = [clauses, query]
        table = target_table(query)
        return [WriteResult(table, result)] if table is not None else []

    def _merge(self, node: exp.Merge, ctes: Mapping[str, QueryRelation]) -> list[WriteResult]:
        table, _ = self.target(node.this)
        scope = self._context.scope(None, ctes)
        clauses = QueryRelation()
        target = self._target_source(node.this, table, ctes)
        scope.sources.append(target)
        self._queries.sources.add(node.args["using"], scope, clauses)
        self._expressions.read_condition(
            node.args.get("on"), scope, clauses, UseKind.JOIN, Clause.ON
        )
        source = scope.sources[-1]
        clauses.parents += [each.relation for each in scope.sources]
        written: list[WriteResult] = []
        whens = node.args.get("whens")
        for when in whens.expressions if whens is not None else ():
            self._expressions.read_condition(
                when.args.get("condition"), scope, clauses, UseKind.FILTER, Clause.WHEN
            )
            action = when.args.get("then")
            if isinstance(action, exp.Update):
                written.append(self._merge_update(action, table, scope, source))
                self._expressions.read_condition(
                    action.args.get("where"), scope, clauses, UseKind.FILTER, Clause.WHERE
                )
            elif isinstance(action, exp.Insert):
                written.append(self._merge_insert(action, table, scope, source))
                self._expressions.read_condition(
                    action.args.get("where"), scope, clauses, UseKind.FILTER, Clause.WHERE
                )
        written = written or [WriteResult(table, QueryRelation())]
        for each in written:
            each.result.parents.append(clauses)
        written = self._redirect_cte_writes(written, ctes)
        self._returning(node, written[0].table if written else table, scope, written)
        return written

    def _merge_update(
        self, action: exp.Update, table: Parts, scope: Scope, source: FromItem
    ) -> WriteResult:
        if any(isinstance(each, exp.Star) for each in action.expressions):
            return WriteResult(table, self._by_name(table, source.relation))
        return self._write_assignments(table, action.expressions, scope, [])

    def _merge_insert(
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
            return WriteResult(table, self._by_name(table, source.relation))
        column_nodes: list[exp.Expr] = []
        if isinstance(columns, exp.Tuple | exp.Schema):
            column_nodes = columns.expressions
        elif isinstance(columns, exp.Paren):
            column_nodes = [columns.this]
        value_nodes = values.expressions if isinstance(values, exp.Tuple) else [values]
        if isinstance(values, exp.Paren):
            value_nodes = [values.this]
        items: list[Item] = []
        parents: list[QueryRelation] = []
        for value in value_nodes:
            lineage = self._read(value, scope)
            name = output_name(value, self._context)
            items.append(lineage.column(name, definition=value))
            parents += lineage.absorb_subqueries(self._context.count_origins)
        names = [self._context.name(_assigned_name(each)) for each in column_nodes]
        result, positional = self.placed(table, names, QueryRelation(items))
        result.parents += parents
        return WriteResult(table, result, positional=positional and not names)

    def _by_name(self, table: Parts, relation: QueryRelation) -> QueryRelation:
        """UPDATE SET * and INSERT *: columns are matched by name."""
        known = self._context.known_columns(table)
        items: list[Item] = []
        for item in relation.items:
            if isinstance(item, Star):
                items.append(item)
            elif known is None or item.name in known:
                items.append(item.starred())
        if known is not None and relation.is_open:
            found = [relation.guess(name) for name in known if relation.find(name) is None]
            items = [item for item in items if isinstance(item, QueryColumn)]
            items += [column.starred() for column in found if column is not None]
        matched = QueryRelation(items)
        matched.parents = [relation]
        return matched


def _as_new_row(node: exp.Expr) -> exp.Expr:
    """MySQL's VALUES(column) refers to the row that would have been inserted."""
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
    """The first table whose rows a query returns."""
    if query.table is not None:
        return query.table
    for column in query.everything():
        origin = _origin(column)
        if origin is not None:
            return origin[0]
    return None


def target_columns(query: QueryRelation, result: QueryRelation) -> dict[Parts, QueryRelation]:
    """The columns assigned through a query, by their target tables."""
    found: dict[Parts, list[Item]] = {}
    for column in result.columns:
        source = query.find(column.name) or query.guess(column.name)
        origin = _origin(source) if source is not None else None
        if origin is not None:
            found.setdefault(origin[0], []).append(column.renamed(origin[1]))
    table = target_table(query)
    if not found and table is not None:
        found[table] = []
    relations = {table: QueryRelation(items) for table, items in found.items()}
    for relation in relations.values():
        relation.parents = [result]
    return relations


def apply_changes(before: QueryRelation, changed: QueryRelation) -> QueryRelation:
    """A table with some columns replaced."""
    names = {column.name: column for column in changed.columns}
    items: list[Item] = []
    for item in before.items:
        if isinstance(item, Star):
            items += [*names.values(), LimitedStar(item, names)]
        else:
            items.append(names.get(item.name, item))
    return QueryRelation(items)


def _origin(column: QueryColumn) -> Origin | None:
    for origin, fact in column.facts.items():
        if fact.derivation is Derivation.IDENTITY and not isinstance(origin[1], NestedName):
            return origin
    return None
