"""Nullability of SQL expressions."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from sqlglot import exp

from lumos.lineage.sql.relation import OuterJoined, QueryColumn

_NEVER_NULL: Final = (
    exp.Is, exp.Literal, exp.Boolean, exp.Count, exp.CountIf, exp.RowNumber, exp.Rank,
    exp.DenseRank, exp.Exists, exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentUser,
    exp.ApproxDistinct, exp.Struct, exp.Array, exp.Interval, exp.Var, exp.DataType, exp.NullSafeEQ,
    exp.NullSafeNEQ, exp.ConcatWs, exp.Ntile, exp.CumeDist, exp.PercentRank, exp.Star,
)  # fmt: skip
_ALWAYS_NULLABLE: Final = (
    exp.Null, exp.TryCast, exp.Lag, exp.Lead, exp.Nullif, exp.SafeDivide, exp.NthValue, exp.Bracket,
    exp.Subquery, exp.Select, exp.RegexpExtract, exp.JSONExtract, exp.JSONExtractScalar,
)  # fmt: skip


_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Like, exp.In)


class Nullability:
    """Derives the nullability of expressions from that of columns.

    A `moment` is `BEFORE` or `AFTER` the change, as in `values`.
    """

    def __init__(self, is_column_nullable: Callable[[exp.Column, int], bool | None]) -> None:
        self._is_column_nullable = is_column_nullable
        self._results: dict[tuple[int, int], bool | None] = {}
        self._not_null_sources: dict[int, tuple[frozenset[int], frozenset[int]]] = {}
        # Never read. It keeps nodes alive, since ids of garbage-collected objects are reused.
        self._kept_alive: list[exp.Expr] = []

    def of(self, node: exp.Expr, moment: int) -> bool | None:
        """Whether the expression may be null; None if unknown."""
        key = (id(node), moment)
        if key not in self._results:
            # Innermost first: recursion into a sum of thousands of terms would overflow the stack.
            for each in reversed(self._unresolved_chain(node, moment)):
                self._results[id(each), moment] = self._of(each, moment)
                self._kept_alive.append(each)
        return self._results[key]

    def _unresolved_chain(self, node: exp.Expr, moment: int) -> list[exp.Expr]:
        """The node and its nested left operands, outermost first: a + b - c, then a + b."""
        chain = [node]
        while isinstance(node, exp.Binary) and isinstance(node.this, exp.Binary):
            node = node.this
            if (id(node), moment) in self._results:
                break
            chain.append(node)
        return chain

    def _of(self, node: exp.Expr, moment: int) -> bool | None:
        if isinstance(node, exp.Column):
            return self._is_column_nullable(node, moment)
        if isinstance(node, _NEVER_NULL):
            return False
        if isinstance(node, exp.TryCast) and not node.args.get("safe"):
            # How the parser represents CAST in dialects whose casts do not fail.
            return self.of(node.this, moment)
        if isinstance(node, _ALWAYS_NULLABLE):
            return True
        if isinstance(node, exp.Coalesce):
            parts = [self.of(each, moment) for each in (node.this, *node.expressions)]
            return False if False in parts else _any_nullable(parts)
        if isinstance(node, exp.Case):
            results = [each.args["true"] for each in node.args.get("ifs") or ()]
            default = node.args.get("default")
            return True if default is None else self._any_of([*results, default], moment)
        if isinstance(node, exp.If):
            else_branch = node.args.get("false")
            if else_branch is None:
                return True
            return self._any_of([node.args["true"], else_branch], moment)
        if isinstance(node, exp.Window):
            return self._of_aggregate(node.this, moment, has_rows=True)
        if isinstance(node, exp.AggFunc):
            return self._of_aggregate(node, moment, has_rows=_is_grouped(node))
        if isinstance(node, exp.Anonymous | exp.Lambda | exp.Placeholder | exp.Parameter):
            return None
        return self._any_of(_operands(node), moment)

    def _of_aggregate(self, node: exp.Expr, moment: int, *, has_rows: bool) -> bool | None:
        """Nullability of an aggregate, which is null if there are no rows."""
        if isinstance(node, _NEVER_NULL):
            return False
        if isinstance(node, _ALWAYS_NULLABLE) or not has_rows:
            return True
        return self._any_of(_operands(node), moment)

    def _any_of(self, nodes: Iterable[exp.Expr], moment: int) -> bool | None:
        return _any_nullable([self.of(each, moment) for each in nodes])

    def conditions_exclude_nulls(
        self, node: exp.Column, columns_by_node: Mapping[int, QueryColumn]
    ) -> bool:
        """Whether conditions of the query exclude nulls of this column."""
        select = node.find_ancestor(exp.Select)
        if select is None:
            return False
        if id(select) not in self._not_null_sources:
            self._kept_alive.append(select)
            self._not_null_sources[id(select)] = (
                _source_ids(_not_null_columns(select), columns_by_node),
                _source_ids(_compared_columns(select), columns_by_node),
            )
        not_null_ids, compared_ids = self._not_null_sources[id(select)]
        source_id = _source_id(columns_by_node[id(node)])
        # Inside the condition itself, a compared column may still be null.
        return source_id in not_null_ids or (
            source_id in compared_ids and _is_used_outside_conditions(node, select)
        )


def _source_id(column: QueryColumn) -> int:
    definition = column.definition
    if isinstance(definition, OuterJoined):
        return id(definition.column)
    return id(column)


def _source_ids(
    columns: Iterable[exp.Expr], columns_by_node: Mapping[int, QueryColumn]
) -> frozenset[int]:
    return frozenset(
        _source_id(columns_by_node[id(each)]) for each in columns if id(each) in columns_by_node
    )


def _is_used_outside_conditions(node: exp.Expr, select: exp.Expr) -> bool:
    """Whether a column is used outside of the conditions of its query."""
    child: exp.Expr = node
    while child.parent is not None and child.parent is not select:
        child = child.parent
    return not isinstance(child, exp.Where | exp.Join)


def _not_null_columns(select: exp.Expr) -> Iterator[exp.Expr]:
    """The columns with IS NOT NULL in WHERE."""
    where = select.args.get("where")
    for part in _split_conjunction(where.this) if where is not None else ():
        test = part.this if isinstance(part, exp.Not) else part
        if not isinstance(test, exp.Is) or not isinstance(test.expression, exp.Null):
            continue
        # NOT is inside the test in some dialects and around it in others.
        is_negated = isinstance(part, exp.Not) != bool(test.args.get("negate"))
        if is_negated and isinstance(test.this, exp.Column):
            yield test.this


def _compared_columns(select: exp.Expr) -> Iterator[exp.Expr]:
    """The columns that are not null in the result because conditions compare them."""
    where = select.args.get("where")
    conditions = [where.this] if where is not None else []
    for join in select.args.get("joins") or ():
        if not join.args.get("side") and join.args.get("on") is not None:
            conditions.append(join.args["on"])
    for condition in conditions:
        for each in _split_conjunction(condition):
            part = each.this if isinstance(each, exp.Not) else each
            if isinstance(part, _COMPARISONS):
                yield from (side for side in (part.this, part.args.get("expression"))
                            if isinstance(side, exp.Column))  # fmt: skip


def _split_conjunction(condition: exp.Expr) -> Iterator[exp.Expr]:
    for part in condition.flatten() if isinstance(condition, exp.And) else (condition,):
        yield part.unnest() if isinstance(part, exp.Paren) else part


def _is_grouped(node: exp.Expr) -> bool:
    select = node.find_ancestor(exp.Select)
    return select is not None and select.args.get("group") is not None


def _operands(node: exp.Expr) -> Iterator[exp.Expr]:
    for each in node.iter_expressions():
        if not isinstance(each, exp.Identifier | exp.Order | exp.JSONPath | exp.WindowSpec):
            yield each


def _any_nullable(parts: list[bool | None]) -> bool | None:
    if True in parts:
        return True
    return None if None in parts else False
