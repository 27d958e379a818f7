"""Reads expressions: the columns that they are computed from, and those that influence them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from sqlglot import exp

from lumos.lineage.sql.context import AnalysisContext, FromItem, Scope, UnresolvedColumn
from lumos.lineage.sql.relation import (
    Excerpt,
    ListElement,
    MapEntry,
    OriginPath,
    OriginPaths,
    OriginUse,
    QueryColumn,
    QueryRelation,
    Uses,
    WholeRow,
)
from lumos.lineage.sql.script import ALL, Parts
from lumos.lineage.sql.source_text import Clause, offset_of
from lumos.model.lineage import Derivation, UseKind
from lumos.model.paths import ELEMENT, KEY, VALUE

# Functions that return the value of one row, although the parser calls them aggregates.
_SINGLE_ROW_FUNCTIONS: Final = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
_WITHOUT_COLUMNS: Final = (
    exp.Identifier, exp.Literal, exp.DataType, exp.Var, exp.Star, exp.Null, exp.Boolean,
    exp.SessionParameter, exp.JSONPath, exp.NextValueFor,
)  # fmt: skip
_XML_METHODS: Final = frozenset({"value", "query", "exist", "nodes"})
_SEQUENCE_NAMES: Final = frozenset({"nextval", "currval"})


class ExpressionRole(NamedTuple):
    """How a part of an expression contributes: as the value, or as an indirect `usage`."""

    clause: Clause
    usage: UseKind | None = None
    derivation: Derivation = Derivation.IDENTITY
    cast_to: str | None = None
    negated: bool = False
    end: int | None = None
    aliases_first: bool = False
    lambda_parameters: frozenset[str] = frozenset()

    def transformed(self) -> "ExpressionRole":
        """The role of a part whose value is changed."""
        if self.derivation is not Derivation.IDENTITY:
            return self
        return self._replace(derivation=Derivation.TRANSFORMATION)

    def indirect(self, usage: UseKind, clause: Clause) -> "ExpressionRole":
        """The role of a part that only influences the value, unless an outer part already does."""
        if self.usage is not None:
            return self
        return self._replace(usage=usage, clause=clause, cast_to=None)


class ExpressionLineage:
    """The origins of an expression's value, the indirect uses, and the subqueries inside."""

    __slots__ = ("is_resolved", "origins", "relations", "uses")

    def __init__(self) -> None:
        self.origins: OriginPaths = {}
        self.uses: Uses = {}
        self.relations: list[QueryRelation] = []
        self.is_resolved = True

    def column(self, name: str, *, definition: exp.Expr | None = None) -> QueryColumn:
        """A column with the value of the expression."""
        return QueryColumn(
            name, self.origins, self.uses, is_resolved=self.is_resolved, definition=definition
        )

    def add(
        self,
        column: QueryColumn,
        role: ExpressionRole,
        excerpt: Excerpt | None,
        *,
        is_star: bool = False,
    ) -> None:
        """Add a column that the expression names, or takes through a star."""
        if role.usage is not None:
            for origin, path in column.origins.items():
                cast_to = role.cast_to or path.cast_to
                use = OriginUse(origin, role.usage, excerpt, cast_to, role.negated)
                self.uses[use] = None
            for inner in column.uses:
                use = OriginUse(inner.origin, role.usage, excerpt, role.cast_to, role.negated)
                self.uses[use] = None
            return
        step = OriginPath(role.derivation, role.cast_to, is_star, excerpt)
        for origin, path in column.origins.items():
            extended = path.then(step)
            if extended.excerpt is None:
                extended = extended._replace(excerpt=excerpt)
            existing_path = self.origins.get(origin)
            self.origins[origin] = (
                extended if existing_path is None else existing_path.then(extended)
            )
        self.uses.update(column.uses)
        if not column.is_resolved:
            self.is_resolved = False

    def absorb_subqueries(self, count_origins: Callable[[int], None]) -> list[QueryRelation]:
        """Add the indirect uses of subqueries to this expression; returns the tables they read.

        Each table is returned once. With one relation per read, a chain of queries with two
        subqueries each would double the number of relations at every level.
        """
        tables: dict[Parts, None] = {}
        for relation in self.relations:
            for each in relation.self_and_ancestors():
                count_origins(1 + len(each.uses))
                self.uses.update(each.uses)
                if each.table is not None:
                    tables[each.table] = None
        self.relations = []
        return [QueryRelation(table=table) for table in tables]


class SubqueryReader(Protocol):
    """Reads queries inside of expressions and FROM clauses."""

    def query(self, node: exp.Expr, scope: Scope | None) -> QueryRelation:
        """The result of a query, which may use the names of an enclosing scope."""
        ...

    def read(
        self, node: exp.Expr, outer: Scope | None, ctes: Mapping[str, QueryRelation]
    ) -> QueryRelation:
        """The result of a query, which may use the given CTEs."""
        ...

    def read_ctes(
        self, node: exp.Expr, outer: Scope | None, ctes: Mapping[str, QueryRelation]
    ) -> Mapping[str, QueryRelation]:
        """The given CTEs and those that a statement defines."""
        ...


class ExpressionReader:
    """Reads expressions within a scope."""

    def __init__(self, context: AnalysisContext, subqueries: SubqueryReader) -> None:
        self._context = context
        self._subqueries = subqueries

    def read(
        self,
        nodes: Iterable[exp.Expr | None],
        scope: Scope,
        role: ExpressionRole,
        into: ExpressionLineage | None = None,
    ) -> ExpressionLineage:
        """The combined lineage of the given expressions."""
        lineage = into or ExpressionLineage()
        stack: list[tuple[exp.Expr, ExpressionRole]] = [
            (node, role) for node in nodes if node is not None
        ]
        stack.reverse()
        while stack:
            node, role = stack.pop()
            if isinstance(node, exp.Column):
                self._column(node, scope, role, lineage)
            elif isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
                # STRUCT(*), * LIKE 's%'; COUNT(*) reads no column.
                self._add_row(node, _columns_of(scope.sources), role, lineage)
            elif isinstance(node, _WITHOUT_COLUMNS):
                continue
            elif isinstance(node, exp.Query):
                self._add_query(node, scope, role, lineage)
            elif (split := _ROLES_OF_PARTS.get(type(node))) is not None:
                stack += reversed(list(split(node, role)))
            elif (read := _READERS.get(type(node))) is not None:
                stack += reversed(list(read(self, node, scope, role, lineage)))
            else:
                is_aggregate = isinstance(node, exp.AggFunc) and not isinstance(
                    node, _SINGLE_ROW_FUNCTIONS
                )
                role = _as_aggregate(role) if is_aggregate else role.transformed()
                stack += reversed([(child, role) for child in _children(node)])
        return lineage

    def read_condition(
        self, node: exp.Expr | None, scope: Scope, relation: QueryRelation, usage: UseKind,
        clause: Clause,
    ) -> None:  # fmt: skip
        """Add the columns of a clause, such as WHERE, to the uses of a relation."""
        if node is None:
            return
        condition = node.this if isinstance(node, exp.Where | exp.Having | exp.Qualify) else node
        lineage = self.read([condition], scope, ExpressionRole(clause, usage))
        relation.uses.update(lineage.uses)
        relation.parents += lineage.relations

    def _column(
        self, node: exp.Column, scope: Scope, role: ExpressionRole, lineage: ExpressionLineage
    ) -> None:
        parts = self._context.column_parts(node)
        if not isinstance(node.this, exp.Star):
            self._add_name(parts, node, scope, role, lineage)
            return
        source = scope.find_source(parts[:-1])
        if source is None:
            # All fields of a struct, as in STRUCT(address.*).
            self._add_name(parts[:-1], node, scope, role, lineage, has_all_fields=True)
        elif not isinstance(node.parent, exp.Count):
            self._add_row(node, _columns_of([source]), role, lineage)

    def _add_name(
        self, parts: Parts, node: exp.Expr, scope: Scope, role: ExpressionRole,
        lineage: ExpressionLineage, *, has_all_fields: bool = False,
    ) -> None:  # fmt: skip
        """Add the column of a name; `has_all_fields` if all fields of a struct are used."""
        if parts[0] in role.lambda_parameters or parts[-1] in _SEQUENCE_NAMES:
            return
        offset = offset_of(node)
        column = scope.resolve(parts, aliases_first=role.aliases_first)
        if isinstance(column, UnresolvedColumn):
            self._context.add_problem(column.reason, offset, is_remark=column.column is not None)
            if column.column is None:
                lineage.is_resolved = False
                return
            column = column.column
        if column is None:
            self._add_variable(parts[-1], offset, role, lineage)
            return
        if isinstance(column.definition, WholeRow):
            self._add_row(node, column.definition.columns, role, lineage)
            return
        self._context.record_read(column)
        excerpt = self._excerpt(offset, role)
        lineage.add(column, role, excerpt)
        self._context.watcher.on_name(node, column, role.usage, excerpt)
        if has_all_fields:
            self._context.watcher.on_whole_row(node, [column], role.usage, excerpt)

    def _excerpt(self, offset: int | None, role: ExpressionRole) -> Excerpt | None:
        if offset is None:
            return None
        return Excerpt(self._context.source, offset, role.clause, role.end)

    def _add_variable(
        self, name: str, offset: int | None, role: ExpressionRole, lineage: ExpressionLineage
    ) -> None:
        value = self._context.variable_values.get(name)
        if value is not None:
            lineage.add(value, role, self._excerpt(offset, role))

    def _add_row(
        self, node: exp.Expr, columns: Sequence[QueryColumn], role: ExpressionRole,
        lineage: ExpressionLineage,
    ) -> None:  # fmt: skip
        """Add all columns of a row as one value, as in `TO_JSON(t.*)` and `SELECT t FROM t`."""
        excerpt = self._excerpt(offset_of(node) or offset_of(node.parent), role)
        for column in columns:
            self._context.record_read(column)
            # Marked as a star, because no clause names the column: a change would seem harmless.
            lineage.add(column, role.transformed(), None, is_star=True)
        self._context.watcher.on_whole_row(node, columns, role.usage, excerpt)

    def _add_query(
        self, node: exp.Expr, scope: Scope, role: ExpressionRole, lineage: ExpressionLineage
    ) -> None:
        relation = self._subqueries.query(node, scope)
        lineage.relations.append(relation)
        for column in relation.all_columns():
            self._context.count_origins(1 + len(column.origins) + len(column.uses))
            offset = offset_of(node) if role.usage is not None else None
            lineage.add(column, role.transformed(), self._excerpt(offset, role))

    def _add_indexed(
        self, node: exp.Expr, scope: Scope, role: ExpressionRole, lineage: ExpressionLineage
    ) -> bool:
        """Add a field of an array element, as in `items[0].sku`; False for other expressions.

        This is only for edges, without a watcher: types are derived from the entire expression.
        """
        steps: list[str] = []
        inner = node
        while not isinstance(inner, exp.Column):
            if isinstance(inner, exp.Bracket) and len(inner.expressions) == 1:
                if not isinstance(inner.expressions[0], exp.Literal):
                    return False
                steps.append(VALUE if inner.expressions[0].is_string else ELEMENT)
            elif isinstance(inner, exp.Dot) and isinstance(inner.expression, exp.Identifier):
                steps.append(self._context.name(inner.expression))
            else:
                return False
            inner = inner.this
        parts = self._context.column_parts(inner)
        column = scope.resolve(parts) if not {ELEMENT, VALUE}.isdisjoint(steps) else None
        if not isinstance(column, QueryColumn) or isinstance(column.definition, WholeRow):
            return False
        if parts[0] in role.lambda_parameters or column.fields:
            return False
        self._context.record_read(column)
        part = column.part(column.name, *reversed(steps), definition=None)
        lineage.add(part, role, self._excerpt(offset_of(inner), role))
        return True

    def read_elements(
        self, node: exp.Expr, names: Sequence[str], scope: Scope
    ) -> tuple[ExpressionLineage, list[QueryColumn]]:
        """The lineage of the argument of EXPLODE, POSEXPLODE or INLINE, and the returned columns.

        If EXPLODE has two names, its argument is a map, and they name its keys and values.
        """
        argument = node.this.expression if isinstance(node.this, exp.Kwarg) else node.this
        lineage = self.read([argument], scope, ExpressionRole(Clause.ITEM))
        collection = lineage.column(ALL)
        columns: list[QueryColumn] = []
        if isinstance(node, exp.Posexplode) and names:
            # The position of an element does not depend on its value.
            columns.append(QueryColumn(names[0]))
            names = names[1:]
        if isinstance(node, exp.Inline):
            element = ListElement(argument, is_expanded=True)
            columns += [
                collection.part(name, ELEMENT, definition=element, is_unknown_field=True)
                for name in names
            ]
        elif len(names) == 2:
            key, value = MapEntry(argument, is_key=True), MapEntry(argument, is_key=False)
            columns.append(collection.part(names[0], KEY, definition=key))
            columns.append(collection.part(names[1], VALUE, definition=value))
        else:
            columns += [
                collection.part(name, ELEMENT, definition=ListElement(argument)) for name in names
            ]
        return lineage, columns

    # Expressions that need the scope, or add columns themselves

    def _parameter(
        self, node: exp.Expr, scope: Scope, role: ExpressionRole, lineage: ExpressionLineage
    ) -> "_PartsWithRoles":
        del scope
        # The parser does not keep the offsets of variables.
        offset = offset_of(node.parent) if role.usage is not None else None
        self._add_variable(self._context.name(node), offset, role, lineage)
        return ()

    def _matching_columns(
        self, node: exp.Expr, scope: Scope, role: ExpressionRole, lineage: ExpressionLineage
    ) -> "_PartsWithRoles":
        """Add all columns for DuckDB's min(COLUMNS(*)), since any of them may match."""
        self._context.add_problem("COLUMNS inside of an expression is not read", None)
        lineage.is_resolved = False
        self._add_row(node, _columns_of(scope.sources), role, lineage)
        return ()

    def _cast(
        self, node: exp.Expr, scope: Scope, role: ExpressionRole, lineage: ExpressionLineage
    ) -> "_PartsWithRoles":
        """CAST(value AS type), and T-SQL's CONVERT(type, value)."""
        del scope, lineage
        is_convert = isinstance(node, exp.Convert)
        if role.cast_to is None:
            type = node.this if is_convert else node.args["to"]
            role = role._replace(cast_to=type.sql(dialect=self._context.dialect).upper())
        yield node.expression if is_convert else node.this, role.transformed()

    def _window(
        self, node: exp.Expr, scope: Scope, role: ExpressionRole, lineage: ExpressionLineage
    ) -> "_PartsWithRoles":
        del lineage
        yield node.this, role.transformed()
        windows: list[exp.Expr] = [node]
        # OVER may name a window, which may in turn be derived from another one.
        while (name := windows[-1].args.get("alias") or windows[-1].args.get("window")) and (
            window := scope.windows.get(self._context.name(name))
        ):
            if any(window is each for each in windows):
                break
            windows.append(window)
        for window in windows:
            for part in window.args.get("partition_by") or ():
                yield part, role.transformed().indirect(UseKind.WINDOW, Clause.PARTITION)
            if window.args.get("order") is not None:
                yield (
                    window.args["order"],
                    role.transformed().indirect(UseKind.WINDOW, Clause.ORDER),
                )

    def _exists(
        self, node: exp.Expr, scope: Scope, role: ExpressionRole, lineage: ExpressionLineage
    ) -> "_PartsWithRoles":
        """EXISTS, which ignores the columns that its query returns."""
        if isinstance(node.this, exp.Query):
            lineage.relations.append(self._subqueries.query(node.this, scope))
            return
        for child in _children(node):
            yield child, role.transformed()

    def _lambda(
        self, node: exp.Expr, scope: Scope, role: ExpressionRole, lineage: ExpressionLineage
    ) -> "_PartsWithRoles":
        del scope, lineage
        names = {self._context.name(each) for each in node.expressions}
        parameters = role.lambda_parameters | names
        yield node.this, role.transformed()._replace(lambda_parameters=parameters)

    def _dot(
        self, node: exp.Expr, scope: Scope, role: ExpressionRole, lineage: ExpressionLineage
    ) -> "_PartsWithRoles":
        """A field of a field, as in `a.b.c.d`: the parser splits long names into several nodes."""
        if not self._context.is_watched and self._add_indexed(node, scope, role, lineage):
            return
        fields: list[str] = []
        inner: exp.Expr = node
        has_all_fields = False
        while isinstance(inner, exp.Dot):
            if isinstance(inner.expression, exp.Star):
                has_all_fields = True
            elif isinstance(inner.expression, exp.Identifier):
                fields.append(self._context.name(inner.expression))
            else:
                yield inner.expression, role.transformed()
            inner = inner.this
        if isinstance(inner, exp.Column) and not isinstance(inner.this, exp.Star):
            parts = (*self._context.column_parts(inner), *reversed(fields))
            inner_role = role.transformed() if has_all_fields else role
            self._add_name(parts, inner, scope, inner_role, lineage, has_all_fields=has_all_fields)
        elif not isinstance(inner, exp.Identifier):
            yield inner, role.transformed()
        elif node.expression.name.lower() in _XML_METHODS:
            # T-SQL's column.value('path', 'type')
            self._add_name((self._context.name(inner),), inner, scope, role.transformed(), lineage)


_PartsWithRoles: TypeAlias = Iterable[tuple[exp.Expr, ExpressionRole]]


def _as_aggregate(role: ExpressionRole) -> ExpressionRole:
    return role._replace(derivation=Derivation.AGGREGATION)


def _case(node: exp.Expr, role: ExpressionRole) -> _PartsWithRoles:
    role = role.transformed()
    condition = role.indirect(UseKind.CONDITIONAL, Clause.WHEN)
    if node.this is not None:
        yield node.this, condition
    for branch in node.args.get("ifs") or ():
        yield branch.this, condition
        if branch.args.get("true") is not None:
            yield branch.args["true"], role
    if node.args.get("default") is not None:
        yield node.args["default"], role


def _if(node: exp.Expr, role: ExpressionRole) -> _PartsWithRoles:
    role = role.transformed()
    # The parser rewrites DIV0 and ZEROIFNULL to IF; literals that it adds have no position.
    is_rewritten = any(offset_of(literal) is None for literal in node.find_all(exp.Literal))
    yield node.this, role if is_rewritten else role.indirect(UseKind.CONDITIONAL, Clause.ITEM)
    for key in ("true", "false"):
        if node.args.get(key) is not None:
            yield node.args[key], role


def _decode(node: exp.Expr, role: ExpressionRole) -> _PartsWithRoles:
    """DECODE(value, search, result, ..., default)."""
    role = role.transformed()
    condition = role.indirect(UseKind.CONDITIONAL, Clause.ITEM)
    parts = node.expressions
    for position, part in enumerate(parts):
        is_default = position == len(parts) - 1 and position % 2 == 1
        is_result = position > 0 and (position % 2 == 0 or is_default)
        yield part, role if is_result else condition


def _unknown_function(node: exp.Expr, role: ExpressionRole) -> _PartsWithRoles:
    """A function unknown to the parser; in multiIf, every second argument is a condition."""
    role = role.transformed()
    condition = role
    if node.name.lower() == "multiif":
        condition = role.indirect(UseKind.CONDITIONAL, Clause.ITEM)
    last = len(node.expressions) - 1
    for position, part in enumerate(node.expressions):
        yield part, condition if position % 2 == 0 and position != last else role


def _max_by(node: exp.Expr, role: ExpressionRole) -> _PartsWithRoles:
    """MAX_BY(value, order), in which the order only selects the value."""
    role = _as_aggregate(role)
    yield node.this, role
    yield node.expression, role.indirect(UseKind.SORT, Clause.ITEM)


def _combined_aggregate(node: exp.Expr, role: ExpressionRole) -> _PartsWithRoles:
    """An aggregate of ClickHouse with a suffix; the last argument of sumIf is a condition."""
    role = _as_aggregate(role)
    arguments = node.args.get("params") or node.expressions
    for position, part in enumerate(arguments):
        is_condition = node.name.lower().endswith("if") and position == len(arguments) - 1
        yield part, role.indirect(UseKind.CONDITIONAL, Clause.ITEM) if is_condition else role


def _filter(node: exp.Expr, role: ExpressionRole) -> _PartsWithRoles:
    yield node.this, role.transformed()
    yield node.expression, role.transformed().indirect(UseKind.CONDITIONAL, Clause.WHERE)


def _within_group(node: exp.Expr, role: ExpressionRole) -> _PartsWithRoles:
    """WITHIN GROUP (ORDER BY x): a percentile is computed from x, a list is only sorted by it."""
    role = _as_aggregate(role)
    has_own_value = node.this.find(exp.Column) is not None
    yield node.this, role
    if node.args.get("expression") is not None:
        sorting = role.indirect(UseKind.SORT, Clause.ORDER)
        yield node.args["expression"], sorting if has_own_value else role


def _order(node: exp.Expr, role: ExpressionRole) -> _PartsWithRoles:
    """The order inside of an aggregate, such as ARRAY_AGG(x ORDER BY y)."""
    if node.this is not None:
        yield node.this, role
        role = role.indirect(UseKind.SORT, Clause.ORDER)
    for part in node.expressions:
        yield part, role


def _not(node: exp.Expr, role: ExpressionRole) -> _PartsWithRoles:
    operand = node.this.unnest() if isinstance(node.this, exp.Paren) else node.this
    negated = isinstance(operand, exp.In) or role.negated
    yield operand, role.transformed()._replace(negated=negated)


def _named_argument(node: exp.Expr, role: ExpressionRole) -> _PartsWithRoles:
    yield node.expression, role.transformed()


def _unchanged(node: exp.Expr, role: ExpressionRole) -> _PartsWithRoles:
    if node.this is not None:
        yield node.this, role


def _columns_of(sources: Iterable[FromItem]) -> list[QueryColumn]:
    return [column for source in sources for column in source.relation.all_columns()]


def _children(node: exp.Expr) -> Iterator[exp.Expr]:
    for value in node.args.values():
        if isinstance(value, list):
            for each in value:
                if isinstance(each, exp.Expr):
                    yield each
        elif isinstance(value, exp.Expr):
            yield value


# Expressions whose parts get different roles.
_ROLES_OF_PARTS: Final[
    dict[type[exp.Expr], Callable[[exp.Expr, ExpressionRole], _PartsWithRoles]]
] = {
    exp.Alias: _unchanged,
    exp.Paren: _unchanged,
    exp.Case: _case,
    exp.If: _if,
    exp.Nvl2: _if,
    exp.DecodeCase: _decode,
    exp.Anonymous: _unknown_function,
    exp.CombinedAggFunc: _combined_aggregate,
    exp.CombinedParameterizedAgg: _combined_aggregate,
    exp.ArgMax: _max_by,
    exp.ArgMin: _max_by,
    exp.HavingMax: _max_by,
    exp.Filter: _filter,
    exp.WithinGroup: _within_group,
    exp.Order: _order,
    exp.Not: _not,
    exp.Kwarg: _named_argument,
    exp.PropertyEQ: _named_argument,
}
# Expressions that also need the scope, or add columns themselves.
_READERS: Final[
    dict[
        type[exp.Expr],
        Callable[
            [ExpressionReader, exp.Expr, Scope, ExpressionRole, ExpressionLineage], _PartsWithRoles
        ],
    ]
] = {
    exp.Cast: ExpressionReader._cast,
    exp.TryCast: ExpressionReader._cast,
    exp.Convert: ExpressionReader._cast,
    exp.Window: ExpressionReader._window,
    exp.Exists: ExpressionReader._exists,
    exp.Lambda: ExpressionReader._lambda,
    exp.Dot: ExpressionReader._dot,
    exp.Columns: ExpressionReader._matching_columns,
    exp.Parameter: ExpressionReader._parameter,
    exp.Placeholder: ExpressionReader._parameter,
}
