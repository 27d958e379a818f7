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
    QueryRelation,
    Star,
    combine_branches,
)
from lumos.lineage.sql.source_text import Clause, offset_of
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
        """The result of a subquery; `scope` is the scope of the enclosing query, if visible."""
        return self.read(node, scope, scope.ctes if scope else {})

    def read(
        self, node: exp.Expr, outer: Scope | None, ctes: Mapping[str, QueryRelation]
    ) -> QueryRelation:
        """The result of a query, which may use the given CTEs."""
        return self.context.check_size(self._read(node, outer, ctes))

    def _read(
        self, node: exp.Expr, outer: Scope | None, ctes: Mapping[str, QueryRelation]
    ) -> QueryRelation:
        ctes = self.read_ctes(node, outer, ctes)
        if isinstance(node, exp.Select):
            return self._read_select(node, outer, ctes)
        if isinstance(node, exp.SetOperation):
            return self._read_set_operation(node, outer, ctes)
        if isinstance(node, exp.Subquery):
            return self._read_subquery(node, outer, ctes)
        if isinstance(node, exp.DML) and self.write is not None:
            return self.write(node, ctes)
        scope = self.context.scope(outer, ctes)
        self.sources.add(node, scope, relation := QueryRelation())
        result = QueryRelation(item for source in scope.sources for item in source.relation.items)
        result.parents = [*relation.parents, *(source.relation for source in scope.sources)]
        result.uses = relation.uses
        return result

    def read_ctes(
        self, node: exp.Expr, outer: Scope | None, ctes: Mapping[str, QueryRelation]
    ) -> Mapping[str, QueryRelation]:
        """The given CTEs and those that a statement defines."""
        clause = node.args.get("with_")
        if clause is None:
            return ctes
        all_ctes = dict(ctes)
        for each in clause.expressions:
            name = self.context.name(each.args["alias"].this)
            columns = [self.context.name(column) for column in each.args["alias"].columns]
            may_recurse = clause.args.get("recursive") or (
                self.context.traits.recurses_without_keyword
            )
            if each.args.get("scalar") and not isinstance(each.this, exp.Query):
                # The expression may use the FROM clause, so `_read_select` reads it later.
                continue
            if each.args.get("scalar"):
                # ClickHouse's WITH (query or expression) AS name defines a scalar.
                scope = self.context.scope(outer, all_ctes)
                lineage = self.expressions.read([each.this], scope, ExpressionRole(Clause.ITEM))
                self.context.scalars[name] = lineage.column("")
            elif may_recurse and isinstance(each.this, exp.SetOperation):
                all_ctes[name] = self._read_recursive(name, columns, each.this, outer, all_ctes)
            else:
                if clause.args.get("recursive") and self._reads_cte(each.this, name):
                    # A query that only reads itself never returns a row.
                    all_ctes[name] = QueryRelation()
                relation = self.read(each.this, outer, all_ctes)
                all_ctes[name] = self.context.with_column_names(columns, relation)
        return all_ctes

    def _read_recursive(
        self, name: str, columns: list[str], body: exp.SetOperation, outer: Scope | None,
        ctes: Mapping[str, QueryRelation],
    ) -> QueryRelation:  # fmt: skip
        """The result of a recursive CTE.

        The CTE is read again with its previous result until no column gets new origins.
        """
        ctes = self.read_ctes(body, outer, ctes)
        operands = [operand for operand, _ in _operands(body)]
        initial_operands = [each for each in operands if not self._reads_cte(each, name)]
        if not initial_operands or len(initial_operands) == len(operands):
            return self.context.with_column_names(columns, self.read(body, outer, ctes))
        all_ctes = dict(ctes)
        relation = combine_branches([self.read(each, outer, ctes) for each in initial_operands])
        all_ctes[name] = self.context.with_column_names(columns, relation)
        previous_origins: list[set[object]] = []
        for _ in range(_MAX_RECURSION_ROUNDS):
            relation = self._read_set_operation(body, outer, all_ctes)
            all_ctes[name] = relation.with_column_names(columns)
            origins: list[set[object]] = [set(column.origins) for column in relation.all_columns()]
            if origins == previous_origins:
                break
            previous_origins = origins
        return all_ctes[name]

    def _reads_cte(self, node: exp.Expr, name: str) -> bool:
        return any(
            not table.db and self.context.name(table.this) == name
            for table in node.find_all(exp.Table)
        )

    def _read_subquery(
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

    def _read_set_operation(
        self, node: exp.SetOperation, outer: Scope | None, ctes: Mapping[str, QueryRelation]
    ) -> QueryRelation:
        branches: list[QueryRelation] = []
        excluded: list[QueryRelation] = []
        is_by_name = False
        for operand, operation in _operands(node):
            relation = self.read(operand, outer, ctes)
            if isinstance(operation, exp.Except):
                excluded.append(relation)
            else:
                branches.append(relation)
            is_by_name = is_by_name or bool(operation is not None and operation.args.get("by_name"))
        # The second query of EXCEPT adds no values to the result, but may widen its types. Only
        # watchers derive types.
        all_branches = [*branches, *excluded]
        combined = combine_branches(
            all_branches if self.context.is_watched else branches, is_by_name=is_by_name
        )
        self.context.watcher.on_set_operation(node, all_branches, is_by_name=is_by_name)
        for relation in excluded:
            combined.parents.append(relation)
            for column in relation.all_columns():
                combined.uses.update(
                    {OriginUse(origin, UseKind.FILTER, path.excerpt): None
                     for origin, path in column.origins.items()}
                )  # fmt: skip
        return self._with_order_by(node, combined, outer, ctes)

    def _with_order_by(
        self,
        node: exp.Expr,
        relation: QueryRelation,
        outer: Scope | None,
        ctes: Mapping[str, QueryRelation],
    ) -> QueryRelation:
        """Add the ORDER BY after a set operation or subquery to its result."""
        if not any(node.args.get(key) for key in _SORT_CLAUSES):
            return relation
        scope = self.context.scope(outer, ctes)
        scope.aliases = {column.name: column for column in relation.columns}
        sorted_relation = QueryRelation(relation.items, table=relation.table)
        sorted_relation.implicit_names = relation.implicit_names
        sorted_relation.parents = [relation]
        self._read_sort_clauses(node, scope, sorted_relation)
        return sorted_relation

    def _read_select(
        self, node: exp.Select, outer: Scope | None, ctes: Mapping[str, QueryRelation]
    ) -> QueryRelation:
        scope = self.context.scope(outer, ctes)
        clause_uses = QueryRelation()
        self.sources.fill(node, scope, clause_uses)
        clause = node.args.get("with_")
        for each in clause.expressions if clause is not None else ():
            if each.args.get("scalar") and not isinstance(each.this, exp.Query):
                name = self.context.name(each.args["alias"].this)
                lineage = self.expressions.read([each.this], scope, ExpressionRole(Clause.ITEM))
                self.context.scalars[name] = lineage.column(name)
        relation = self.projections.read(node, scope, clause_uses)
        relation.uses.update(clause_uses.uses)
        relation.parents += [*clause_uses.parents, *(source.relation for source in scope.sources)]
        self._read_clauses(node, scope, relation)
        return relation

    def _read_clauses(self, node: exp.Select, scope: Scope, relation: QueryRelation) -> None:
        outputs = {column.name: column for column in relation.columns}
        if not self.context.traits.has_aliases_in_where:
            scope.aliases = {}
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
            self._read_keys(parts, scope, relation, UseKind.GROUP_BY, Clause.GROUP)
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            on = distinct.args["on"]
            parts = on.expressions if isinstance(on, exp.Tuple) else [on]
            self._read_keys(parts, scope, relation, UseKind.GROUP_BY, Clause.ITEM)
        for key, clause in (("having", Clause.HAVING), ("qualify", Clause.QUALIFY)):
            condition = node.args.get(key)
            self.expressions.read_condition(condition, scope, relation, UseKind.FILTER, clause)
        self._read_sort_clauses(node, scope, relation)

    def _read_sort_clauses(self, node: exp.Expr, scope: Scope, relation: QueryRelation) -> None:
        for key in _SORT_CLAUSES:
            clause = node.args.get(key)
            if clause is not None:
                parts = [each.this if isinstance(each, exp.Ordered) else each
                         for each in clause.expressions]  # fmt: skip
                self._read_keys(parts, scope, relation, UseKind.SORT, Clause.ORDER)

    def _read_keys(
        self, nodes: Iterable[exp.Expr], scope: Scope, relation: QueryRelation, usage: UseKind,
        clause: Clause,
    ) -> None:  # fmt: skip
        """Add uses of the keys of GROUP BY, DISTINCT ON or ORDER BY, which may be positions."""
        role = ExpressionRole(clause, usage, aliases_first=usage is UseKind.SORT)
        lineage = ExpressionLineage()
        for node in nodes:
            if isinstance(node, exp.Literal) and not node.is_string:
                position = int(node.this) - 1 if node.this.isdigit() else -1
                if 0 <= position < len(relation.items):
                    item = relation.items[position]
                    column = item.as_column() if isinstance(item, Star) else item
                    excerpt = self.context.excerpt(offset_of(node), clause)
                    lineage.add(column, role, excerpt)
                    self.context.watcher.on_name(node, column, usage, excerpt)
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
    operands: list[tuple[exp.Expr, exp.SetOperation | None]] = []
    left: exp.Expr = node
    while isinstance(left, exp.SetOperation) and (left is node or not left.args.get("with_")):
        operands.append((left.expression, left))
        left = left.this
    operands.append((left, None))
    operands.reverse()
    return operands
