"""Which columns an expression is made from, and which only decide about it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Protocol, TypeAlias

from sqlglot import exp

from lumos.lineage.sql.reading import Reading, Role
from lumos.lineage.sql.relation import Column, Excerpt, Relation, Row
from lumos.lineage.sql.scope import Scope, Source, Unknown
from lumos.lineage.sql.script import Parts
from lumos.lineage.sql.texts import Clause, SourceText, place_of
from lumos.lineage.sql.watching import Watcher
from lumos.model.lineage import Derivation, UseKind

# They pick the value of one row out of many, so the value is not an aggregate.
_PICKING: Final = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
_WITHOUT_COLUMNS: Final = (
    exp.Identifier, exp.Literal, exp.DataType, exp.Var, exp.Star, exp.Null, exp.Boolean,
    exp.SessionParameter, exp.JSONPath, exp.NextValueFor,
)  # fmt: skip
_XML_METHODS: Final = frozenset({"value", "query", "exist", "nodes"})
_NO_COLUMNS: Final = frozenset({"nextval", "currval"})


class Queries(Protocol):
    """What expressions need of the reader of queries."""

    @property
    def source(self) -> SourceText: ...

    def query(self, node: exp.Expr, scope: Scope | None) -> Relation:
        """What a query inside an expression returns."""
        ...

    def parts(self, node: exp.Column) -> Parts:
        """The parts of a column's name."""
        ...

    def name(self, node: exp.Expr | str | None) -> str:
        """The name of an identifier."""
        ...

    def type_text(self, node: exp.Expr) -> str:
        """A type as the dialect writes it."""
        ...

    def report(self, reason: str, offset: int | None, *, is_remark: bool = False) -> None:
        """Keeps what could not be resolved."""
        ...

    @property
    def watcher(self) -> Watcher | None: ...

    def held(self, name: str) -> Column | None:
        """What a variable holds, if that is known."""
        ...

    def mention(self, column: Column) -> None:
        """Keeps that the statement names the origins of a column."""
        ...

    def spend(self, origins: int) -> None:
        """Counts columns and origins that a statement reads; raises TooLarge."""
        ...


class Expressions:
    """Reads expressions within a scope."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    def read(
        self,
        nodes: Iterable[exp.Expr | None],
        scope: Scope,
        role: Role,
        into: Reading | None = None,
    ) -> Reading:
        """What the expressions are made from, taken together."""
        reading = into or Reading()
        waiting: list[tuple[exp.Expr, Role]] = [(node, role) for node in nodes if node is not None]
        waiting.reverse()
        while waiting:
            node, role = waiting.pop()
            if isinstance(node, exp.Column):
                self._column(node, scope, role, reading)
            elif isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
                # STRUCT(*), * LIKE 's%'; COUNT(*) reads no column.
                self._row(node, _columns_of(scope.sources), role, reading)
            elif isinstance(node, _WITHOUT_COLUMNS):
                continue
            elif isinstance(node, exp.Query):
                self._query(node, scope, role, reading)
            else:
                waiting += reversed(list(self._parts(node, scope, role, reading)))
        return reading

    def _parts(
        self, node: exp.Expr, scope: Scope, role: Role, reading: Reading
    ) -> Iterator[tuple[exp.Expr, Role]]:
        """The parts of an expression with their roles."""
        special = _SPECIAL.get(type(node))
        if special is not None:
            yield from special(self, node, scope, role, reading)
            return
        if isinstance(node, exp.AggFunc) and not isinstance(node, _PICKING):
            role = role._replace(derivation=Derivation.AGGREGATION)
        else:
            role = role.changed()
        for child in _children(node):
            yield child, role

    def _column(self, node: exp.Column, scope: Scope, role: Role, reading: Reading) -> None:
        parts = self._queries.parts(node)
        if not isinstance(node.this, exp.Star):
            self._named(parts, node, scope, role, reading)
            return
        source = scope.source(parts[:-1])
        if source is None:
            # All fields of a structure, as in STRUCT(address.*).
            self._named(parts[:-1], node, scope, role, reading, is_whole=True)
        elif not isinstance(node.parent, exp.Count):
            self._row(node, _columns_of([source]), role, reading)

    def _named(
        self, parts: Parts, node: exp.Expr, scope: Scope, role: Role, reading: Reading,
        *, is_whole: bool = False,
    ) -> None:  # fmt: skip
        """A name; where it `is_whole`, all fields of the structure that it means."""
        if parts[0] in role.locals or parts[-1] in _NO_COLUMNS:
            return
        offset = place_of(node)
        found = scope.resolve(parts, aliases_first=role.aliases_first)
        if isinstance(found, Unknown):
            self._queries.report(found.reason, offset, is_remark=found.column is not None)
            if found.column is None:
                reading.is_resolved = False
                return
            found = found.column
        if found is None:
            self._variable(parts[-1], offset, role, reading)
            return
        if isinstance(found.maker, Row):
            self._row(node, found.maker.columns, role, reading)
            return
        self._queries.mention(found)
        excerpt = self._excerpt(offset, role)
        reading.take(found, role, excerpt)
        watcher = self._queries.watcher
        if watcher is not None:
            watcher.named(node, found, role.usage, excerpt)
            if is_whole:
                watcher.taken_whole(node, [found], role.usage, excerpt)

    def _excerpt(self, offset: int | None, role: Role) -> Excerpt | None:
        if offset is None:
            return None
        return Excerpt(self._queries.source, offset, role.clause, role.end)

    def _variable(self, name: str, offset: int | None, role: Role, reading: Reading) -> None:
        value = self._queries.held(name)
        if value is not None:
            reading.take(value, role, self._excerpt(offset, role))

    def _parameter(
        self, node: exp.Expr, scope: Scope, role: Role, reading: Reading
    ) -> Iterator[tuple[exp.Expr, Role]]:
        del scope
        # The parser does not keep the places of variables.
        offset = place_of(node.parent) if role.usage is not None else None
        self._variable(self._queries.name(node), offset, role, reading)
        yield from ()

    def _matching(
        self, node: exp.Expr, scope: Scope, role: Role, reading: Reading
    ) -> Iterator[tuple[exp.Expr, Role]]:
        """DuckDB's min(COLUMNS(*)) is one result for each column that fits; any may be one."""
        self._queries.report("COLUMNS inside of an expression is not read", None)
        reading.is_resolved = False
        self._row(node, _columns_of(scope.sources), role, reading)
        yield from ()

    def _row(self, node: exp.Expr, columns: Sequence[Column], role: Role, reading: Reading) -> None:
        """All columns as one value, whatever they are: `TO_JSON(t.*)`, `SELECT t FROM t`."""
        excerpt = self._excerpt(place_of(node) or place_of(node.parent), role)
        for column in columns:
            self._queries.mention(column)
            # Edges tell that nobody named it, or a change of it would seem to concern nobody.
            reading.take(column, role.changed(), None, is_star=True)
        if self._queries.watcher is not None:
            self._queries.watcher.taken_whole(node, columns, role.usage, excerpt)

    def _query(self, node: exp.Expr, scope: Scope, role: Role, reading: Reading) -> None:
        relation = self._queries.query(node, scope)
        reading.relations.append(relation)
        for column in relation.everything():
            self._queries.spend(1 + len(column.facts) + len(column.uses))
            offset = place_of(node) if role.usage is not None else None
            reading.take(column, role.changed(), self._excerpt(offset, role))

    def _cast(
        self, node: exp.Expr, scope: Scope, role: Role, reading: Reading
    ) -> Iterator[tuple[exp.Expr, Role]]:
        del scope, reading
        if role.cast_to is None:
            role = role._replace(cast_to=self._queries.type_text(node.args["to"]))
        yield node.this, role.changed()

    def _convert(
        self, node: exp.Expr, scope: Scope, role: Role, reading: Reading
    ) -> Iterator[tuple[exp.Expr, Role]]:
        """T-SQL's CONVERT(type, value)"""
        del scope, reading
        if role.cast_to is None:
            role = role._replace(cast_to=self._queries.type_text(node.this))
        yield node.expression, role.changed()

    def _case(
        self, node: exp.Expr, scope: Scope, role: Role, reading: Reading
    ) -> Iterator[tuple[exp.Expr, Role]]:
        del scope, reading
        role = role.changed()
        deciding = role.deciding(UseKind.CONDITIONAL, Clause.WHEN)
        if node.this is not None:
            yield node.this, deciding
        for branch in node.args.get("ifs") or ():
            yield branch.this, deciding
            if branch.args.get("true") is not None:
                yield branch.args["true"], role
        if node.args.get("default") is not None:
            yield node.args["default"], role

    def _if(
        self, node: exp.Expr, scope: Scope, role: Role, reading: Reading
    ) -> Iterator[tuple[exp.Expr, Role]]:
        del scope, reading
        role = role.changed()
        deciding = role.deciding(UseKind.CONDITIONAL, Clause.ITEM)
        yield node.this, role if _is_made_up(node) else deciding
        for key in ("true", "false"):
            if node.args.get(key) is not None:
                yield node.args[key], role

    def _decode(
        self, node: exp.Expr, scope: Scope, role: Role, reading: Reading
    ) -> Iterator[tuple[exp.Expr, Role]]:
        """DECODE(value, search, result, ..., default)"""
        del scope, reading
        role = role.changed()
        deciding = role.deciding(UseKind.CONDITIONAL, Clause.ITEM)
        parts = node.expressions
        for position, part in enumerate(parts):
            is_default = position == len(parts) - 1 and position % 2 == 1
            is_result = position > 0 and (position % 2 == 0 or is_default)
            yield part, role if is_result else deciding

    def _function(
        self, node: exp.Expr, scope: Scope, role: Role, reading: Reading
    ) -> Iterator[tuple[exp.Expr, Role]]:
        """A function that the parser does not know; in multiIf every second argument decides."""
        del scope, reading
        role = role.changed()
        deciding = role
        if node.name.lower() == "multiif":
            deciding = role.deciding(UseKind.CONDITIONAL, Clause.ITEM)
        last = len(node.expressions) - 1
        for position, part in enumerate(node.expressions):
            yield part, deciding if position % 2 == 0 and position != last else role

    def _picked(
        self, node: exp.Expr, scope: Scope, role: Role, reading: Reading
    ) -> Iterator[tuple[exp.Expr, Role]]:
        """MAX_BY(value, order): the order only decides which value it is."""
        del scope, reading
        role = role._replace(derivation=Derivation.AGGREGATION)
        yield node.this, role
        yield node.expression, role.deciding(UseKind.SORT, Clause.ITEM)

    def _combined(
        self, node: exp.Expr, scope: Scope, role: Role, reading: Reading
    ) -> Iterator[tuple[exp.Expr, Role]]:
        """ClickHouse's aggregates with a suffix: the last argument of sumIf only decides."""
        del scope, reading
        role = role._replace(derivation=Derivation.AGGREGATION)
        arguments = node.args.get("params") or node.expressions
        for position, part in enumerate(arguments):
            decides = node.name.lower().endswith("if") and position == len(arguments) - 1
            yield part, role.deciding(UseKind.CONDITIONAL, Clause.ITEM) if decides else role

    def _window(
        self, node: exp.Expr, scope: Scope, role: Role, reading: Reading
    ) -> Iterator[tuple[exp.Expr, Role]]:
        del reading
        yield node.this, role.changed()
        windows: list[exp.Expr] = [node]
        # OVER name, and a window that is made from another.
        while (name := windows[-1].args.get("alias") or windows[-1].args.get("window")) and (
            named := scope.windows.get(self._queries.name(name))
        ):
            if any(named is each for each in windows):
                break
            windows.append(named)
        for window in windows:
            for part in window.args.get("partition_by") or ():
                yield part, role.changed().deciding(UseKind.WINDOW, Clause.PARTITION)
            if window.args.get("order") is not None:
                yield window.args["order"], role.changed().deciding(UseKind.WINDOW, Clause.ORDER)

    def _filter(
        self, node: exp.Expr, scope: Scope, role: Role, reading: Reading
    ) -> Iterator[tuple[exp.Expr, Role]]:
        del scope, reading
        yield node.this, role.changed()
        yield node.expression, role.changed().deciding(UseKind.CONDITIONAL, Clause.WHERE)

    def _within_group(
        self, node: exp.Expr, scope: Scope, role: Role, reading: Reading
    ) -> Iterator[tuple[exp.Expr, Role]]:
        """A percentile is taken of what it is ordered by; a list is only put in order."""
        del scope, reading
        role = role._replace(derivation=Derivation.AGGREGATION)
        has_own_value = node.this.find(exp.Column) is not None
        yield node.this, role
        if node.args.get("expression") is not None:
            sorting = role.deciding(UseKind.SORT, Clause.ORDER)
            yield node.args["expression"], sorting if has_own_value else role

    def _order(
        self, node: exp.Expr, scope: Scope, role: Role, reading: Reading
    ) -> Iterator[tuple[exp.Expr, Role]]:
        """The order inside of an aggregate, such as ARRAY_AGG(x ORDER BY y)."""
        del scope, reading
        if node.this is not None:
            yield node.this, role
            role = role.deciding(UseKind.SORT, Clause.ORDER)
        for part in node.expressions:
            yield part, role

    def _not(
        self, node: exp.Expr, scope: Scope, role: Role, reading: Reading
    ) -> Iterator[tuple[exp.Expr, Role]]:
        del scope, reading
        inside = node.this.unnest() if isinstance(node.this, exp.Paren) else node.this
        negated = isinstance(inside, exp.In) or role.negated
        yield inside, role.changed()._replace(negated=negated)

    def _exists(
        self, node: exp.Expr, scope: Scope, role: Role, reading: Reading
    ) -> Iterator[tuple[exp.Expr, Role]]:
        """What a query inside of EXISTS returns does not matter."""
        if isinstance(node.this, exp.Query):
            reading.relations.append(self._queries.query(node.this, scope))
            return
        for child in _children(node):
            yield child, role.changed()

    def _lambda(
        self, node: exp.Expr, scope: Scope, role: Role, reading: Reading
    ) -> Iterator[tuple[exp.Expr, Role]]:
        del scope, reading
        names = {self._queries.name(each) for each in node.expressions}
        yield node.this, role.changed()._replace(locals=role.locals | names)

    def _named_argument(
        self, node: exp.Expr, scope: Scope, role: Role, reading: Reading
    ) -> Iterator[tuple[exp.Expr, Role]]:
        del scope, reading
        yield node.expression, role.changed()

    def _same(
        self, node: exp.Expr, scope: Scope, role: Role, reading: Reading
    ) -> Iterator[tuple[exp.Expr, Role]]:
        del scope, reading
        if node.this is not None:
            yield node.this, role

    def _dot(
        self, node: exp.Expr, scope: Scope, role: Role, reading: Reading
    ) -> Iterator[tuple[exp.Expr, Role]]:
        """A field of a field: the name goes on behind the column."""
        fields: list[str] = []
        inner: exp.Expr = node
        is_whole = False
        while isinstance(inner, exp.Dot):
            if isinstance(inner.expression, exp.Star):
                is_whole = True
            elif isinstance(inner.expression, exp.Identifier):
                fields.append(self._queries.name(inner.expression))
            else:
                yield inner.expression, role.changed()
            inner = inner.this
        if isinstance(inner, exp.Column) and not isinstance(inner.this, exp.Star):
            parts = (*self._queries.parts(inner), *reversed(fields))
            self._named(parts, inner, scope, role.changed(), reading, is_whole=is_whole)
        elif not isinstance(inner, exp.Identifier):
            yield inner, role.changed()
        elif node.expression.name.lower() in _XML_METHODS:
            # T-SQL's column.value('path', 'type')
            self._named((self._queries.name(inner),), inner, scope, role.changed(), reading)


def _is_made_up(node: exp.Expr) -> bool:
    """Whether the parser wrote IF for a function such as DIV0 or ZEROIFNULL."""
    return any(place_of(literal) is None for literal in node.find_all(exp.Literal))


def _columns_of(sources: Iterable[Source]) -> list[Column]:
    return [column for source in sources for column in source.relation.everything()]


def _children(node: exp.Expr) -> Iterator[exp.Expr]:
    for value in node.args.values():
        if isinstance(value, list):
            for each in value:
                if isinstance(each, exp.Expr):
                    yield each
        elif isinstance(value, exp.Expr):
            yield value


_Parts: TypeAlias = Callable[
    [Expressions, exp.Expr, Scope, Role, Reading], Iterator[tuple[exp.Expr, Role]]
]
_SPECIAL: Final[dict[type[exp.Expr], _Parts]] = {
    exp.Alias: Expressions._same,
    exp.Paren: Expressions._same,
    exp.Cast: Expressions._cast,
    exp.TryCast: Expressions._cast,
    exp.Convert: Expressions._convert,
    exp.Case: Expressions._case,
    exp.If: Expressions._if,
    exp.Nvl2: Expressions._if,
    exp.DecodeCase: Expressions._decode,
    exp.Anonymous: Expressions._function,
    exp.CombinedAggFunc: Expressions._combined,
    exp.CombinedParameterizedAgg: Expressions._combined,
    exp.ArgMax: Expressions._picked,
    exp.ArgMin: Expressions._picked,
    exp.HavingMax: Expressions._picked,
    exp.Window: Expressions._window,
    exp.Filter: Expressions._filter,
    exp.WithinGroup: Expressions._within_group,
    exp.Order: Expressions._order,
    exp.Not: Expressions._not,
    exp.Exists: Expressions._exists,
    exp.Lambda: Expressions._lambda,
    exp.Kwarg: Expressions._named_argument,
    exp.PropertyEQ: Expressions._named_argument,
    exp.Dot: Expressions._dot,
    exp.Columns: Expressions._matching,
    exp.Parameter: Expressions._parameter,
    exp.Placeholder: Expressions._parameter,
}
