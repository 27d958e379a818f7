"""Reads queries: SELECT, set operations and WITH."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from sqlglot import exp

from lumos.lineage.sql.context import AnalysisContext, Scope
from lumos.lineage.sql.expressions import ExpressionLineage, ExpressionReader, ExpressionRole
from lumos.lineage.sql.from_clause import FromReader
from lumos.lineage.sql.projections import ProjectionReader
from lumos.lineage.sql.relation import (
    OriginUse,
    QueryColumn,
    QueryRelation,
    Star,
    combine_branches,
)
from lumos.lineage.sql.source_text import Clause, position_of
from lumos.model.lineage import UseKind

_MAX_RECURSION_ROUNDS: Final = 8
_SORT_CLAUSES: Final = ("order", "sort", "cluster", "distribute")


class QueryReader:
    """Reads the queries of one script."""

    def __init__(self, context: AnalysisContext) -> None:
        self.context = context
        self.expressions = ExpressionReader(context, self)
        self.sources = FromReader(context, self.expressions, self)
        self.projections = ProjectionReader(context, self.expressions)
        # WITH may contain writing statements, which return the rows that they wrote.
        self.write: Callable[[exp.Expr, Mapping[str, QueryRelation]], QueryRelation] | None = None

    def query(self, node: exp.Expr, scope: Scope | None) -> QueryRelation:
        """The result of a query; `scope` is that of the enclosing query, if visible."""
        return self.read(node, scope, scope.ctes if scope else {})

    def read(
        self, node: exp.Expr, outer: Scope | None, ctes: Mapping[str, QueryRelation]
    ) -> QueryRelation:
        """The result of a query that may use these CTEs."""
        return self.context.check_size(self._read(node, outer, ctes))

    def _read(
        self, node: exp.Expr, outer: Scope | None, ctes: Mapping[str, QueryRelation]
    ) -> QueryRelation:
        ctes = self.with_queries(node, outer, ctes)
        if isinstance(node, exp.Select):
            return self._select(node, outer, ctes)
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, outer, ctes)
        if isinstance(node, exp.Subquery):
            return self._subquery(node, outer, ctes)
        if isinstance(node, exp.DML) and self.write is not None:
            return self.write(node, ctes)
        scope = self.context.scope(outer, ctes)
        self.sources.add(node, scope, relation := QueryRelation())
        result = QueryRelation(item for source in scope.sources for item in source.relation.items)
        result.parents = [*relation.parents, *(source.relation for source in scope.sources)]
        result.uses = relation.uses
        return result

    def with_queries(
        self, node: exp.Expr, outer: Scope | None, ctes: Mapping[str, QueryRelation]
    ) -> Mapping[str, QueryRelation]:
        """The given CTEs and those that a statement defines."""
        clause = node.args.get("with_")
        if clause is None:
            return ctes
        known = dict(ctes)
        values = self.context.values
        for each in clause.expressions:
            name = self.context.name(each.args["alias"].this)
            columns = [self.context.name(column) for column in each.args["alias"].columns]
            may_recurse = clause.args.get("recursive") or (
                self.context.traits.recurses_without_keyword
            )
            if each.args.get("scalar") and not isinstance(each.this, exp.Query):
                # It refers to the FROM clause, so it is read later.
                continue
            if each.args.get("scalar"):
                # ClickHouse's WITH (query or expression) AS name defines a scalar.
                values[name] = self._value(each.this, outer, known)
            elif may_recurse and isinstance(each.this, exp.SetOperation):
                known[name] = self._read_recursive(name, columns, each.this, outer, known)
            else:
                if clause.args.get("recursive") and self._reads_cte(each.this, name):
                    # A query that only reads itself never returns a row.
                    known[name] = QueryRelation()
                known[name] = self.context.with_names(columns, self.read(each.this, outer, known))
        return known

    def _value(
        self, node: exp.Expr, outer: Scope | None, ctes: Mapping[str, QueryRelation]
    ) -> QueryColumn:
        scope = self.context.scope(outer, ctes)
        return self.expressions.read([node], scope, ExpressionRole(Clause.ITEM)).column("")

    def _read_recursive(
        self, name: str, columns: list[str], body: exp.SetOperation, outer: Scope | None,
        ctes: Mapping[str, QueryRelation],
    ) -> QueryRelation:  # fmt: skip
        """The fixed point of a recursive CTE."""
        ctes = self.with_queries(body, outer, ctes)
        operands = [operand for operand, _ in _operands(body)]
        first = [each for each in operands if not self._reads_cte(each, name)]
        if not first or len(first) == len(operands):
            return self.context.with_names(columns, self.read(body, outer, ctes))
        known = dict(ctes)
        relation = combine_branches([self.read(each, outer, ctes) for each in first])
        known[name] = self.context.with_names(columns, relation)
        previous_origins: list[set[object]] = []
        for _ in range(_MAX_RECURSION_ROUNDS):
            relation = self._set_operation(body, outer, known)
            known[name] = relation.under(columns)
            origins: list[set[object]] = [set(column.facts) for column in relation.everything()]
            if origins == previous_origins:
                break
            previous_origins = origins
        return known[name]

    def _reads_cte(self, node: exp.Expr, name: str) -> bool:
        return any(
            not table.db and self.context.name(table.this) == name
            for table in node.find_all(exp.Table)
        )

    def _subquery(
        self, node: exp.Subquery, outer: Scope | None, ctes: Mapping[str, QueryRelation]
    ) -> QueryRelation:
        inner = self.read(node.this, outer, ctes)
        if any(node.args.get(key) for key in ("joins", "pivots", "laterals")):
            scope = self.context.scope(outer, ctes)
            joins = QueryRelation()
            self.sources.add(node, scope, joins)
            inner = QueryRelation(
                item for source in scope.sources for item in source.relation.items
            )
            inner.parents = [joins, *(source.relation for source in scope.sources)]
        return self._with_order_by(node, inner, outer, ctes)

    def _set_operation(
        self, node: exp.SetOperation, outer: Scope | None, ctes: Mapping[str, QueryRelation]
    ) -> QueryRelation:
        branches: list[QueryRelation] = []
        filtering: list[QueryRelation] = []
        is_by_name = False
        for operand, operation in _operands(node):
            relation = self.read(operand, outer, ctes)
            if isinstance(operation, exp.Except):
                filtering.append(relation)
            else:
                branches.append(relation)
            is_by_name = is_by_name or bool(operation is not None and operation.args.get("by_name"))
        # EXCEPT's second query adds no values to the result, but its types widen it.
        typed = branches if self.context.watcher is None else [*branches, *filtering]
        combined = combine_branches(typed, is_by_name=is_by_name)
        if self.context.watcher is not None:
            self.context.watcher.set_operation_read(
                node, [*branches, *filtering], is_by_name=is_by_name
            )
        for relation in filtering:
            combined.parents.append(relation)
            for column in relation.everything():
                combined.uses.update(
                    {OriginUse(origin, UseKind.FILTER, fact.excerpt): None
                     for origin, fact in column.facts.items()}
                )  # fmt: skip
        return self._with_order_by(node, combined, outer, ctes)

    def _with_order_by(
        self,
        node: exp.Expr,
        relation: QueryRelation,
        outer: Scope | None,
        ctes: Mapping[str, QueryRelation],
    ) -> QueryRelation:
        """A result with the ORDER BY after the whole query."""
        if not any(node.args.get(key) for key in _SORT_CLAUSES):
            return relation
        scope = self.context.scope(outer, ctes)
        scope.aliases = {column.name: column for column in relation.columns}
        ordered = QueryRelation(relation.items, table=relation.table)
        ordered.implicit = relation.implicit
        ordered.parents = [relation]
        self._sort(node, scope, ordered)
        return ordered

    def _select(
        self, node: exp.Select, outer: Scope | None, ctes: Mapping[str, QueryRelation]
    ) -> QueryRelation:
        scope = self.context.scope(outer, ctes)
        clauses = QueryRelation()
        self.sources.fill(node, scope, clauses)
        clause = node.args.get("with_")
        for each in clause.expressions if clause is not None else ():
            if each.args.get("scalar") and not isinstance(each.this, exp.Query):
                name = self.context.name(each.args["alias"].this)
                lineage = self.expressions.read([each.this], scope, ExpressionRole(Clause.ITEM))
                self.context.values[name] = lineage.column(name)
        relation = self.projections.read(node, scope, clauses)
        relation.uses.update(clauses.uses)
        relation.parents += [*clauses.parents, *(source.relation for source in scope.sources)]
        self._clauses(node, scope, relation)
        return relation

    def _clauses(self, node: exp.Select, scope: Scope, relation: QueryRelation) -> None:
        outputs = {column.name: column for column in relation.columns}
        lateral, scope.aliases = scope.aliases, {}
        if self.context.traits.has_aliases_in_where:
            scope.aliases = lateral
        for key in ("where", "prewhere"):
            self.expressions.read_condition(
                node.args.get(key), scope, relation, UseKind.FILTER, Clause.WHERE
            )
        connect = node.args.get("connect")
        if connect is not None:
            self.expressions.read_condition(
                connect.args.get("connect"), scope, relation, UseKind.JOIN, Clause.CONNECT
            )
            self.expressions.read_condition(
                connect.args.get("start"), scope, relation, UseKind.FILTER, Clause.START
            )
        scope.aliases = outputs
        group = node.args.get("group")
        if group is not None:
            parts = list(_group_keys(group))
            if group.args.get("all"):
                parts += [each for each in node.expressions if not _is_aggregate(each)]
            self._positions(parts, scope, relation, UseKind.GROUP_BY, Clause.GROUP)
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            on = distinct.args["on"]
            parts = on.expressions if isinstance(on, exp.Tuple) else [on]
            self._positions(parts, scope, relation, UseKind.GROUP_BY, Clause.ITEM)
        self.expressions.read_condition(
            node.args.get("having"), scope, relation, UseKind.FILTER, Clause.HAVING
        )
        self.expressions.read_condition(
            node.args.get("qualify"), scope, relation, UseKind.FILTER, Clause.QUALIFY
        )
        self._sort(node, scope, relation)

    def _sort(self, node: exp.Expr, scope: Scope, relation: QueryRelation) -> None:
        for key in _SORT_CLAUSES:
            clause = node.args.get(key)
            if clause is not None:
                parts = [each.this if isinstance(each, exp.Ordered) else each
                         for each in clause.expressions]  # fmt: skip
                self._positions(parts, scope, relation, UseKind.SORT, Clause.ORDER)

    def _positions(
        self, nodes: Iterable[exp.Expr], scope: Scope, relation: QueryRelation, usage: UseKind,
        clause: Clause,
    ) -> None:  # fmt: skip
        """Add uses of columns that may be given by position."""
        role = ExpressionRole(clause, usage, aliases_first=usage is UseKind.SORT)
        lineage = ExpressionLineage()
        for node in nodes:
            if isinstance(node, exp.Literal) and not node.is_string:
                position = int(node.this) - 1 if node.this.isdigit() else -1
                if 0 <= position < len(relation.items):
                    item = relation.items[position]
                    column = item.everything() if isinstance(item, Star) else item
                    excerpt = self.context.excerpt(position_of(node), clause)
                    lineage.add(column, role, excerpt)
                    if self.context.watcher is not None:
                        self.context.watcher.named(node, column, usage, excerpt)
            else:
                self.expressions.read([node], scope, role, into=lineage)
        relation.uses.update(lineage.uses)
        relation.parents += lineage.relations


def _group_keys(group: exp.Group) -> Iterator[exp.Expr]:
    for key in ("expressions", "grouping_sets", "rollup", "cube"):
        for each in group.args.get(key) or ():
            if isinstance(each, exp.Expr):
                yield each


def _is_aggregate(node: exp.Expr) -> bool:
    """Whether a projection aggregates, so that GROUP BY ALL does not group by it."""
    return any(not isinstance(each.parent, exp.Window) for each in node.find_all(exp.AggFunc))


def _operands(node: exp.SetOperation) -> list[tuple[exp.Expr, exp.SetOperation | None]]:
    """The operands of a chain of set operations, each with the operation before it."""
    found: list[tuple[exp.Expr, exp.SetOperation | None]] = []
    left: exp.Expr = node
    while isinstance(left, exp.SetOperation) and (left is node or not left.args.get("with_")):
        found.append((left.expression, left))
        left = left.this
    found.append((left, None))
    found.reverse()
    return found
