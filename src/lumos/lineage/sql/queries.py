"""What queries return: SELECT, set operations and WITH, down to the real tables."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from sqlglot import exp

from lumos.lineage.sql.context import Context
from lumos.lineage.sql.expressions import Expressions
from lumos.lineage.sql.projections import Projections
from lumos.lineage.sql.reading import Reading, Role
from lumos.lineage.sql.relation import Column, Excerpt, Relation, Star, Use
from lumos.lineage.sql.scope import Scope
from lumos.lineage.sql.script import Parts
from lumos.lineage.sql.set_operations import laid_over
from lumos.lineage.sql.sources import Sources
from lumos.lineage.sql.texts import Clause, SourceText, place_of
from lumos.lineage.sql.watching import Watcher
from lumos.model.lineage import UseKind

_MOST_ROUNDS: Final = 8
_SORTING: Final = ("order", "sort", "cluster", "distribute")


class QueryReader:
    """Reads queries of one script."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.expressions = Expressions(self)
        self.sources = Sources(self)
        self.projections = Projections(self)
        # Statements that write may stand in WITH, and return what they wrote.
        self.write: Callable[[exp.Expr, Mapping[str, Relation]], Relation] | None = None

    @property
    def source(self) -> SourceText:
        return self.context.source

    @property
    def watcher(self) -> Watcher | None:
        return self.context.watcher

    def parts(self, node: exp.Column) -> Parts:
        return tuple(self.context.folding.name(part) for part in node.parts)

    def name(self, node: exp.Expr | str | None) -> str:
        return self.context.folding.name(node)

    def type_text(self, node: exp.Expr) -> str:
        return self.context.type_text(node)

    def report(self, reason: str, offset: int | None, *, is_remark: bool = False) -> None:
        self.context.report(reason, offset, is_remark=is_remark)

    def mention(self, column: Column) -> None:
        self.context.mention(column)

    def spend(self, origins: int) -> None:
        self.context.spend(origins)

    def held(self, name: str) -> Column | None:
        return self.context.held.get(name)

    def hold(self, name: str, value: Column) -> None:
        """A variable takes a value."""
        self.context.held[name] = value

    def excerpt(self, offset: int | None, clause: Clause) -> Excerpt | None:
        """The clause around a place of the text."""
        return None if offset is None else Excerpt(self.source, offset, clause)

    def under(self, names: list[str], relation: Relation) -> Relation:
        """A relation whose columns get names by their places."""
        if names and self.watcher is not None:
            self.watcher.numbered(relation, len(names))
        return relation.under(names)

    def query(self, node: exp.Expr, scope: Scope | None) -> Relation:
        """What a query returns; `scope` is that of the query around it, if it may be used."""
        return self.read(node, scope, scope.ctes if scope else {})

    def scope(self, outer: Scope | None, ctes: Mapping[str, Relation]) -> Scope:
        """A new scope within another."""
        made = Scope(outer=outer, has_structs=self.context.habits.has_structs)
        made.ctes = dict(ctes)
        made.variables = frozenset(self.context.variables)
        made.rows = self.context.rows
        made.values = self.context.values
        return made

    def read(self, node: exp.Expr, outer: Scope | None, ctes: Mapping[str, Relation]) -> Relation:
        """What a query returns, with the named queries that it may use."""
        return self.context.bound(self._read(node, outer, ctes))

    def _read(self, node: exp.Expr, outer: Scope | None, ctes: Mapping[str, Relation]) -> Relation:
        ctes = self.with_queries(node, outer, ctes)
        if isinstance(node, exp.Select):
            return self._select(node, outer, ctes)
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, outer, ctes)
        if isinstance(node, exp.Subquery):
            return self._subquery(node, outer, ctes)
        if isinstance(node, exp.DML) and self.write is not None:
            return self.write(node, ctes)
        scope = self.scope(outer, ctes)
        self.sources.add(node, scope, relation := Relation())
        made = Relation(item for source in scope.sources for item in source.relation.items)
        made.parents = [*relation.parents, *(source.relation for source in scope.sources)]
        made.uses = relation.uses
        return made

    def with_queries(
        self, node: exp.Expr, outer: Scope | None, ctes: Mapping[str, Relation]
    ) -> Mapping[str, Relation]:
        """The named queries that hold inside of a statement."""
        clause = node.args.get("with_")
        if clause is None:
            return ctes
        known = dict(ctes)
        values = self.context.values
        for each in clause.expressions:
            name = self.name(each.args["alias"].this)
            columns = [self.name(column) for column in each.args["alias"].columns]
            may_recurse = clause.args.get("recursive") or (
                self.context.habits.recurses_without_keyword
            )
            if each.args.get("scalar") and not isinstance(each.this, exp.Query):
                # It is made from what FROM holds.
                continue
            if each.args.get("scalar"):
                # ClickHouse's WITH (query or expression) AS name gives a value a name.
                values[name] = self._value(each.this, outer, known)
            elif may_recurse and isinstance(each.this, exp.SetOperation):
                known[name] = self._recursive(name, columns, each.this, outer, known)
            else:
                if clause.args.get("recursive") and self._names(each.this, name):
                    # It reads itself and nothing else, and so never returns a row.
                    known[name] = Relation()
                known[name] = self.under(columns, self.read(each.this, outer, known))
        return known

    def _value(self, node: exp.Expr, outer: Scope | None, ctes: Mapping[str, Relation]) -> Column:
        scope = self.scope(outer, ctes)
        return self.expressions.read([node], scope, Role(Clause.ITEM)).column("")

    def _recursive(
        self, name: str, columns: list[str], body: exp.SetOperation, outer: Scope | None,
        ctes: Mapping[str, Relation],
    ) -> Relation:  # fmt: skip
        """The least that satisfies a query which reads itself."""
        ctes = self.with_queries(body, outer, ctes)
        operands = [operand for operand, _ in _operands(body)]
        first = [each for each in operands if not self._names(each, name)]
        if not first or len(first) == len(operands):
            return self.under(columns, self.read(body, outer, ctes))
        known = dict(ctes)
        relation = laid_over([self.read(each, outer, ctes) for each in first])
        known[name] = self.under(columns, relation)
        before: list[set[object]] = []
        for _ in range(_MOST_ROUNDS):
            relation = self._set_operation(body, outer, known)
            known[name] = relation.under(columns)
            now: list[set[object]] = [set(column.facts) for column in relation.everything()]
            if now == before:
                break
            before = now
        return known[name]

    def _names(self, node: exp.Expr, name: str) -> bool:
        return any(
            not table.db and self.name(table.this) == name for table in node.find_all(exp.Table)
        )

    def _subquery(
        self, node: exp.Subquery, outer: Scope | None, ctes: Mapping[str, Relation]
    ) -> Relation:
        inner = self.read(node.this, outer, ctes)
        if any(node.args.get(key) for key in ("joins", "pivots", "laterals")):
            scope = self.scope(outer, ctes)
            made = Relation()
            self.sources.add(node, scope, made)
            inner = Relation(item for source in scope.sources for item in source.relation.items)
            inner.parents = [made, *(source.relation for source in scope.sources)]
        return self._sorted(node, inner, outer, ctes)

    def _set_operation(
        self, node: exp.SetOperation, outer: Scope | None, ctes: Mapping[str, Relation]
    ) -> Relation:
        branches: list[Relation] = []
        deciding: list[Relation] = []
        is_by_name = False
        for operand, operation in _operands(node):
            relation = self.read(operand, outer, ctes)
            if isinstance(operation, exp.Except):
                deciding.append(relation)
            else:
                branches.append(relation)
            is_by_name = is_by_name or bool(operation is not None and operation.args.get("by_name"))
        # Rows of EXCEPT's second query are no values of the result, but their types widen it.
        typed = branches if self.watcher is None else [*branches, *deciding]
        made = laid_over(typed, is_by_name=is_by_name)
        if self.watcher is not None:
            self.watcher.laid_over(node, [*branches, *deciding], is_by_name=is_by_name)
        for relation in deciding:
            made.parents.append(relation)
            for column in relation.everything():
                made.uses.update(
                    {Use(origin, UseKind.FILTER, fact.excerpt): None
                     for origin, fact in column.facts.items()}
                )  # fmt: skip
        return self._sorted(node, made, outer, ctes)

    def _sorted(
        self, node: exp.Expr, relation: Relation, outer: Scope | None, ctes: Mapping[str, Relation]
    ) -> Relation:
        """A result with the order that is written behind the whole of it."""
        if not any(node.args.get(key) for key in _SORTING):
            return relation
        scope = self.scope(outer, ctes)
        scope.aliases = {column.name: column for column in relation.columns}
        made = Relation(relation.items, table=relation.table)
        made.implicit = relation.implicit
        made.parents = [relation]
        self._sort(node, scope, made)
        return made

    def _select(
        self, node: exp.Select, outer: Scope | None, ctes: Mapping[str, Relation]
    ) -> Relation:
        scope = self.scope(outer, ctes)
        clauses = Relation()
        self.sources.fill(node, scope, clauses)
        clause = node.args.get("with_")
        for each in clause.expressions if clause is not None else ():
            if each.args.get("scalar") and not isinstance(each.this, exp.Query):
                name = self.name(each.args["alias"].this)
                reading = self.expressions.read([each.this], scope, Role(Clause.ITEM))
                self.context.values[name] = reading.column(name)
        relation = self.projections.read(node, scope, clauses)
        relation.uses.update(clauses.uses)
        relation.parents += [*clauses.parents, *(source.relation for source in scope.sources)]
        self._clauses(node, scope, relation)
        return relation

    def _clauses(self, node: exp.Select, scope: Scope, relation: Relation) -> None:
        outputs = {column.name: column for column in relation.columns}
        lateral, scope.aliases = scope.aliases, {}
        if self.context.habits.has_aliases_in_where:
            scope.aliases = lateral
        for key in ("where", "prewhere"):
            self.decide(node.args.get(key), scope, relation, UseKind.FILTER, Clause.WHERE)
        connect = node.args.get("connect")
        if connect is not None:
            self.decide(connect.args.get("connect"), scope, relation, UseKind.JOIN, Clause.CONNECT)
            self.decide(connect.args.get("start"), scope, relation, UseKind.FILTER, Clause.START)
        scope.aliases = outputs
        group = node.args.get("group")
        if group is not None:
            parts = list(_grouped(group))
            if group.args.get("all"):
                parts += [each for each in node.expressions if not _is_aggregate(each)]
            self._positions(parts, scope, relation, UseKind.GROUP_BY, Clause.GROUP)
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            on = distinct.args["on"]
            parts = on.expressions if isinstance(on, exp.Tuple) else [on]
            self._positions(parts, scope, relation, UseKind.GROUP_BY, Clause.ITEM)
        self.decide(node.args.get("having"), scope, relation, UseKind.FILTER, Clause.HAVING)
        self.decide(node.args.get("qualify"), scope, relation, UseKind.FILTER, Clause.QUALIFY)
        self._sort(node, scope, relation)

    def _sort(self, node: exp.Expr, scope: Scope, relation: Relation) -> None:
        for key in _SORTING:
            clause = node.args.get(key)
            if clause is not None:
                parts = [each.this if isinstance(each, exp.Ordered) else each
                         for each in clause.expressions]  # fmt: skip
                self._positions(parts, scope, relation, UseKind.SORT, Clause.ORDER)

    def _positions(
        self, nodes: Iterable[exp.Expr], scope: Scope, relation: Relation, usage: UseKind,
        clause: Clause,
    ) -> None:  # fmt: skip
        """Uses of columns that may be named by their place in the result."""
        role = Role(clause, usage, aliases_first=usage is UseKind.SORT)
        reading = Reading()
        for node in nodes:
            if isinstance(node, exp.Literal) and not node.is_string:
                position = int(node.this) - 1 if node.this.isdigit() else -1
                if 0 <= position < len(relation.items):
                    item = relation.items[position]
                    column = item.everything() if isinstance(item, Star) else item
                    excerpt = self.excerpt(place_of(node), clause)
                    reading.take(column, role, excerpt)
                    if self.watcher is not None:
                        self.watcher.named(node, column, usage, excerpt)
            else:
                self.expressions.read([node], scope, role, into=reading)
        self._keep(reading, relation)

    def decide(
        self, node: exp.Expr | None, scope: Scope, relation: Relation, usage: UseKind,
        clause: Clause,
    ) -> None:  # fmt: skip
        """Keeps the columns of a clause that decides about the whole relation."""
        if node is None:
            return
        inside = node.this if isinstance(node, exp.Where | exp.Having | exp.Qualify) else node
        self._keep(self.expressions.read([inside], scope, Role(clause, usage)), relation)

    def _keep(self, reading: Reading, relation: Relation) -> None:
        relation.uses.update(reading.uses)
        relation.parents += reading.relations


def _grouped(group: exp.Group) -> Iterator[exp.Expr]:
    for key in ("expressions", "grouping_sets", "rollup", "cube"):
        for each in group.args.get(key) or ():
            if isinstance(each, exp.Expr):
                yield each


def _is_aggregate(node: exp.Expr) -> bool:
    """Whether a projection sums up rows, so that GROUP BY ALL does not group by it."""
    return any(not isinstance(each.parent, exp.Window) for each in node.find_all(exp.AggFunc))


def _operands(node: exp.SetOperation) -> list[tuple[exp.Expr, exp.SetOperation | None]]:
    """The queries of a chain of set operations, each with the operation before it."""
    found: list[tuple[exp.Expr, exp.SetOperation | None]] = []
    left: exp.Expr = node
    while isinstance(left, exp.SetOperation) and (left is node or not left.args.get("with_")):
        found.append((left.expression, left))
        left = left.this
    found.append((left, None))
    found.reverse()
    return found
