"""Types of numbers that are calculated with, and of values that share a type.

The parser's annotator takes DOUBLE minus DECIMAL(12,2) for DECIMAL(12,2), and the sum of a decimal
for one of the same digits; engines do not.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from sqlglot import exp
from sqlglot.optimizer.annotate_types import TypeAnnotator

from lumos.lineage.sql.typing.types import from_sqlglot, to_sqlglot
from lumos.model.types import (
    DATE,
    FLOAT32,
    FLOAT64,
    FLOATS,
    INT32,
    INT64,
    NULL,
    SIGNED,
    UNKNOWN,
    UNSIGNED,
    DataType,
    Decimal,
    String,
    Timestamp,
)

_MOST_DIGITS: Final = 38
_DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 20}
_UNBOUNDED: Final = frozenset({"postgres", "redshift", "materialize", "risingwave"})
_GROWING_BY_TEN: Final = frozenset({"spark", "spark2", "databricks", "hive"})
_SUMS_OF_INTEGERS_STAY: Final = frozenset({"tsql", "fabric"})
# BigQuery's two decimals have one size each.
_FIXED: Final = (Decimal(38, 9), Decimal(76, 38))

_Typed = Callable[["_Numbers", exp.Expr], DataType | None]


def common(types: Iterable[DataType]) -> DataType:
    """The type of a value that is of one of these types; UNKNOWN where engines differ."""
    left = [type for type in dict.fromkeys(types) if type != NULL]
    if len(left) < 2:
        return left[0] if left else NULL
    if all(isinstance(type, String) for type in left):
        lengths = [type.length for type in left if isinstance(type, String)]
        return String(None if None in lengths else max(each for each in lengths if each))
    if all(type == DATE or isinstance(type, Timestamp) for type in left):
        stamps = [type for type in left if isinstance(type, Timestamp)]
        zoned = any(each.zoned for each in stamps)
        return Timestamp(stamps[0].unit, zoned=zoned)
    if all(_is_number(type) for type in left):
        return _common_number(left)
    return UNKNOWN


def _is_number(type: DataType) -> bool:
    return type in SIGNED or type in UNSIGNED or type in FLOATS or isinstance(type, Decimal)


def _common_number(types: list[DataType]) -> DataType:
    if any(type in FLOATS for type in types):
        is_small = all(FLOATS.get(type, 64) <= 32 for type in types)
        return FLOAT32 if is_small else FLOAT64
    if any(isinstance(type, Decimal) for type in types):
        sizes = [_size(type) for type in types]
        if None in sizes:
            return Decimal()
        whole = max(precision - scale for precision, scale in (size for size in sizes if size))
        scale = max(size[1] for size in sizes if size)
        return _decimal(whole + scale, scale)
    if all(type in SIGNED for type in types):
        return max(types, key=SIGNED.__getitem__)
    return INT64


def _size(type: DataType) -> tuple[int, int] | None:
    if isinstance(type, Decimal):
        return None if type.precision is None else (type.precision, type.scale)
    bits = SIGNED.get(type) or UNSIGNED.get(type)
    return (_DIGITS[bits], 0) if bits else None


def _decimal(precision: int, scale: int) -> DataType:
    return Decimal(min(max(precision, 1), _MOST_DIGITS), min(scale, _MOST_DIGITS))


class _Numbers:
    """How one dialect calculates."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect

    def type_of(self, node: exp.Expr | None) -> DataType:
        """The type of an operand; a whole number that is written out has the digits it has."""
        if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
            return INT32 if len(node.this) < 10 else INT64
        return UNKNOWN if node is None else from_sqlglot(node.type)

    def _operand(self, node: exp.Expr, other: DataType) -> DataType:
        is_whole = isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit()
        if is_whole and isinstance(other, Decimal):
            return Decimal(max(len(node.this), 1), 0)
        return self.type_of(node)

    def summed(self, node: exp.Expr) -> DataType | None:
        type = from_sqlglot(node.this.type)
        if type in SIGNED:
            small = self._dialect in _SUMS_OF_INTEGERS_STAY and SIGNED[type] <= 32
            if self._dialect in _UNBOUNDED and type == INT64:
                return Decimal()
            return INT32 if small else INT64
        if not isinstance(type, Decimal) or type in _FIXED:
            return FLOAT64 if type in FLOATS else (type if isinstance(type, Decimal) else None)
        if self._dialect in _UNBOUNDED or type.precision is None:
            return Decimal()
        if self._dialect in _GROWING_BY_TEN:
            return _decimal(type.precision + 10, type.scale)
        return Decimal(_MOST_DIGITS, type.scale)

    def averaged(self, node: exp.Expr) -> DataType | None:
        type = from_sqlglot(node.this.type)
        if isinstance(type, Decimal):
            is_fixed = type in _FIXED
            return type if is_fixed else (
                Decimal() if self._dialect in _UNBOUNDED or type.precision is None
                else _decimal(type.precision + 4, type.scale + 4)
            )  # fmt: skip
        return FLOAT64 if type in FLOATS else None

    def added(self, node: exp.Expr) -> DataType | None:
        return self._calculated(node, lambda one, other: (
            max(one[0] - one[1], other[0] - other[1]) + max(one[1], other[1]) + 1,
            max(one[1], other[1]),
        ))  # fmt: skip

    def multiplied(self, node: exp.Expr) -> DataType | None:
        more = 1 if self._dialect in _GROWING_BY_TEN else 0
        return self._calculated(
            node, lambda one, other: (one[0] + other[0] + more, one[1] + other[1])
        )

    def divided(self, node: exp.Expr) -> DataType | None:
        return self._calculated(node, lambda one, other: (_MOST_DIGITS, max(one[1], other[1], 6)))

    def _calculated(
        self, node: exp.Expr, size: Callable[[tuple[int, int], tuple[int, int]], tuple[int, int]]
    ) -> DataType | None:
        left, right = node.this, node.args["expression"]
        one, other = self.type_of(left), self.type_of(right)
        if not (_is_number(one) and _is_number(other)):
            return None
        if one in FLOATS or other in FLOATS:
            return FLOAT64
        if not (isinstance(one, Decimal) or isinstance(other, Decimal)):
            return None
        one, other = self._operand(left, other), self._operand(right, one)
        if one in _FIXED or other in _FIXED:
            return max((each for each in (one, other) if each in _FIXED), key=lambda d: d.text)
        sizes = _size(one), _size(other)
        if self._dialect in _UNBOUNDED or sizes[0] is None or sizes[1] is None:
            return Decimal()
        return _decimal(*size(sizes[0], sizes[1]))

    def kept(self, node: exp.Expr) -> DataType | None:
        """A text of the same length."""
        type = from_sqlglot(node.this.type)
        return type if isinstance(type, String) else None

    def rounded(self, node: exp.Expr) -> DataType | None:
        type = from_sqlglot(node.this.type)
        if isinstance(type, Decimal):
            return Decimal() if self._dialect in _UNBOUNDED else type
        return FLOAT64 if type in FLOATS else None

    def signed(self, node: exp.Expr) -> DataType | None:
        """A number with its sign turned, or without one."""
        type = from_sqlglot(node.this.type)
        return Decimal() if isinstance(type, Decimal) and self._dialect in _UNBOUNDED else None

    def shared(self, node: exp.Expr) -> DataType | None:
        parts = list(_results(node))
        types = [self.type_of(part) for part in parts]
        decimal = next((type for type in types if isinstance(type, Decimal)), None)
        if decimal is not None:
            types = [self._operand(part, decimal) for part in parts]
        return common(types)


def _results(node: exp.Expr) -> Iterable[exp.Expr]:
    """The values of which an expression is one."""
    if isinstance(node, exp.Case):
        yield from (each.args["true"] for each in node.args.get("ifs") or ())
        if node.args.get("default") is not None:
            yield node.args["default"]
    elif isinstance(node, exp.If):
        yield from (node.args[key] for key in ("true", "false") if node.args.get(key) is not None)
    else:
        yield node.this
        yield from node.expressions


_TYPED: Final[dict[type[exp.Expr], _Typed]] = {
    exp.Sum: _Numbers.summed,
    exp.Avg: _Numbers.averaged,
    exp.Add: _Numbers.added,
    exp.Sub: _Numbers.added,
    exp.Mul: _Numbers.multiplied,
    exp.Div: _Numbers.divided,
    exp.Round: _Numbers.rounded,
    exp.Neg: _Numbers.signed,
    exp.Abs: _Numbers.signed,
    exp.Upper: _Numbers.kept,
    exp.Lower: _Numbers.kept,
    exp.Trim: _Numbers.kept,
    exp.Initcap: _Numbers.kept,
    exp.Coalesce: _Numbers.shared,
    exp.Case: _Numbers.shared,
    exp.If: _Numbers.shared,
    exp.Greatest: _Numbers.shared,
    exp.Least: _Numbers.shared,
}


def rules_for(dialect: str, known: dict[type[exp.Expr], dict[str, Any]]) -> dict[type, Any]:
    """The annotator's rules of a dialect, with those above in front of them."""
    numbers = _Numbers(dialect)
    return {**known, **{kind: {"annotator": _rule(numbers, typed, known.get(kind, {}))}
                        for kind, typed in _TYPED.items()}}  # fmt: skip


def _rule(
    numbers: _Numbers, typed: _Typed, otherwise: dict[str, Any]
) -> Callable[[TypeAnnotator, exp.Expr], exp.Expr]:
    def annotate(annotator: TypeAnnotator, node: exp.Expr) -> exp.Expr:
        type = typed(numbers, node)
        if type is not None:
            annotator._set_type(node, to_sqlglot(type))
        elif "annotator" in otherwise:
            otherwise["annotator"](annotator, node)
        else:
            annotator._set_type(node, otherwise.get("returns"))
        return node

    return annotate
