"""Rules for sqlglot's type annotator that compute types of numbers as engines do.

The original rules return DECIMAL(12,2) for DOUBLE minus DECIMAL(12,2), and for the SUM of a
DECIMAL(12,2); engines do not.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from sqlglot import exp
from sqlglot.optimizer.annotate_types import TypeAnnotator

from lumos.impact.types import functions
from lumos.impact.types.number_types import NumberTypes, Operand, Operator, is_number, number_types
from lumos.impact.types.sqlglot_types import from_sqlglot, to_sqlglot
from lumos.model.types import (
    BOOLEAN,
    FLOATS,
    SIGNED,
    UNKNOWN,
    Array,
    DataType,
    Decimal,
    Map,
    String,
)

_TypeOf = Callable[[NumberTypes, exp.Expr], DataType | None]
_Annotate = Callable[[TypeAnnotator, exp.Expr], exp.Expr]


def _type(node: exp.Expr | None) -> DataType:
    return UNKNOWN if node is None else from_sqlglot(node.type)


def _number_text(node: object) -> str | None:
    """The digits of a number literal, without signs and parentheses."""
    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    if isinstance(node, exp.Literal) and not node.is_string:
        return str(node.this)
    return None


def _has_literal_of_unknown_type(numbers: NumberTypes, nodes: Sequence[exp.Expr]) -> bool:
    """Whether exact numbers are combined with a literal like 0.5 whose type is unknown."""
    texts = [_number_text(node) for node in nodes]
    types = [_type(node) for node in nodes]
    if any(type in FLOATS and text is None for type, text in zip(types, texts, strict=True)):
        return False
    if any(text is not None and "." in text and numbers.literal(text) is None for text in texts):
        return True
    # The parser reads 100L and CAST(100 AS BIGINT) the same way.
    is_suffixed = numbers.has_literal_suffixes and any(
        isinstance(node, exp.Cast) and _number_text(node.this) is not None for node in nodes
    )
    return is_suffixed and any(isinstance(type, Decimal) for type in types)


def _binary(operator: Operator) -> _TypeOf:
    def type_of(numbers: NumberTypes, node: exp.Expr) -> DataType | None:
        operands = (node.this, node.args["expression"])
        if _has_literal_of_unknown_type(numbers, operands):
            return UNKNOWN
        left, right = (Operand.of(_type(operand), _number_text(operand)) for operand in operands)
        return numbers.calculate(operator, left, right)

    return type_of


def _bitwise(numbers: NumberTypes, node: exp.Expr) -> DataType | None:
    types = [_type(node.this), _type(node.args["expression"])]
    return numbers.common(types) if all(type in SIGNED for type in types) else None


def _decimal_places(node: exp.Expr) -> int | None:
    places = node.args.get("decimals")
    text = _number_text(places)
    if text is None or not text.isdigit():
        return None
    return -int(text) if isinstance(places, exp.Neg) else int(text)


def _round(numbers: NumberTypes, node: exp.Expr) -> DataType | None:
    places = _decimal_places(node) if node.args.get("decimals") is not None else 0
    return numbers.round(_type(node.this), places)


def _floor(numbers: NumberTypes, node: exp.Expr) -> DataType | None:
    if node.args.get("to") is not None:
        return UNKNOWN
    if node.args.get("decimals") is None:
        return numbers.floor(_type(node.this), None)
    places = _decimal_places(node)
    return UNKNOWN if places is None else numbers.floor(_type(node.this), places)


def _type_of_argument(numbers: NumberTypes, node: exp.Expr) -> DataType | None:
    if node.args.get("count") is not None:
        # MAX(x, 3) is an array of the three largest.
        return None
    type, default = _type(node.this), node.args.get("default")
    if default is not None and _type(default) != type:
        # LAG(x, 1, 0)
        return UNKNOWN
    return numbers.pass_through(type)


def _max_by(_: NumberTypes, node: exp.Expr) -> DataType | None:
    """The type of MAX_BY(x, y); None for MAX_BY(x, y, 3), which is an array."""
    return None if node.args.get("count") is not None else _type(node.this)


def _array_of(_: NumberTypes, node: exp.Expr) -> DataType | None:
    return Array(_type(node.this))


def _always(type: DataType) -> _TypeOf:
    return lambda _, __: type


def _text_of_same_length(_: NumberTypes, node: exp.Expr) -> DataType | None:
    type = _type(node.this)
    return type if isinstance(type, String) else None


def _array(numbers: NumberTypes, node: exp.Expr) -> DataType | None:
    """The type of an array, whose elements share a type as in COALESCE."""
    if len({_type(each) for each in node.expressions}) < 2:
        return None
    element = _common_type(numbers, node.expressions)
    return UNKNOWN if element == UNKNOWN else Array(element)


def _map_of_pairs(numbers: NumberTypes, node: exp.Expr) -> DataType | None:
    """The type of MAP {'k': x, 'j': y}, which the parser types by the first value."""
    pairs = node.this.expressions
    if not pairs or not all(isinstance(each, exp.PropertyEQ) for each in pairs):
        return UNKNOWN
    key = _common_type(numbers, [each.this for each in pairs])
    value = _common_type(numbers, [each.expression for each in pairs])
    return UNKNOWN if UNKNOWN in (key, value) else Map(key, value)


def _map_value(_: NumberTypes, node: exp.Expr) -> DataType | None:
    """The type of a map value."""
    type = _type(node.this)
    if isinstance(type, Map):
        return type.value
    # The parser would use the type of the one value under that key.
    return UNKNOWN if isinstance(node.this, exp.Map | exp.VarMap) else None


def _concat(_: NumberTypes, node: exp.Expr) -> DataType | None:
    """The type of concatenated arrays; known only if all have the same type."""
    types = {_type(each) for each in node.iter_expressions()}
    if not any(isinstance(type, Array) for type in types):
        return None
    return types.pop() if len(types) == 1 else UNKNOWN


def _common_type(numbers: NumberTypes, results: Sequence[exp.Expr]) -> DataType:
    if _has_literal_of_unknown_type(numbers, results):
        return UNKNOWN
    return numbers.common_of(Operand.of(_type(each), _number_text(each)) for each in results)


def _results(node: exp.Expr) -> Iterable[exp.Expr]:
    """The possible results of an expression."""
    if isinstance(node, exp.Case):
        yield from (each.args["true"] for each in node.args.get("ifs") or ())
        if node.args.get("default") is not None:
            yield node.args["default"]
    elif isinstance(node, exp.If | exp.Nvl2):
        yield from (node.args[key] for key in ("true", "false") if node.args.get(key) is not None)
    else:
        yield node.this
        yield from node.expressions


_TYPES: Final[dict[type[exp.Expr], _TypeOf]] = {
    exp.Literal: lambda numbers, node: (
        None if node.args["is_string"] else numbers.literal(str(node.this))
    ),
    exp.Add: _binary(Operator.ADD),
    exp.Sub: _binary(Operator.ADD),
    exp.Mul: _binary(Operator.MULTIPLY),
    exp.Div: _binary(Operator.DIVIDE),
    exp.Mod: _binary(Operator.MODULO),
    exp.IntDiv: _binary(Operator.INTEGER_DIVIDE),
    **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor), _bitwise),
    exp.Sum: lambda numbers, node: numbers.sum(_type(node.this)),
    exp.Avg: lambda numbers, node: numbers.average(_type(node.this)),
    exp.Round: _round,
    exp.Floor: _floor,
    exp.Ceil: _floor,
    exp.Trunc: lambda numbers, node: (
        UNKNOWN if node.args.get("decimals") else numbers.truncate(_type(node.this))
    ),
    **dict.fromkeys((exp.Neg, exp.Abs), lambda numbers, node: numbers.negate(_type(node.this))),
    **dict.fromkeys((exp.Upper, exp.Lower, exp.Trim, exp.Initcap), _text_of_same_length),
    **dict.fromkeys(
        (exp.Coalesce, exp.Case, exp.If, exp.Nvl2, exp.Greatest, exp.Least),
        lambda numbers, node: _common_type(numbers, list(_results(node))),
    ),
    exp.Array: _array,
    exp.ToMap: _map_of_pairs,
    exp.Bracket: _map_value,
    **dict.fromkeys(
        (exp.ArrayConcat, exp.ArrayExcept, exp.ArrayIntersect, exp.Concat, exp.DPipe), _concat
    ),
    **dict.fromkeys(
        (exp.Nullif, exp.Min, exp.Max, exp.AnyValue, exp.First, exp.Last,
         exp.FirstValue, exp.LastValue, exp.NthValue, exp.Lag, exp.Lead),
        _type_of_argument,
    ),
    **dict.fromkeys((exp.ArgMax, exp.ArgMin), _max_by),
    exp.ArrayUniqueAgg: _array_of,
    exp.EqualNull: _always(BOOLEAN),
}  # fmt: skip
# Functions whose result type depends on the argument in engines, but not in the annotator.
_ARGUMENT_DEPENDENT: Final = (
    exp.Median, exp.Quantile, exp.ApproxQuantile, exp.PercentileCont, exp.PercentileDisc,
    exp.SafeDivide, exp.Mode, exp.Factorial,
)  # fmt: skip
# Expressions that return the value unchanged, or always the same type.
_TRANSPARENT: Final = (
    exp.Count, exp.CountIf,
    exp.Alias, exp.Paren, exp.Window, exp.Filter, exp.Distinct, exp.Order, exp.Ordered,
    exp.Subquery, exp.Query, exp.IgnoreNulls, exp.RespectNulls, exp.Dot, exp.Bracket, exp.Limit,
    exp.HavingMax, exp.Column, exp.Tuple, exp.ArrayAgg, exp.ArraySlice,
)  # fmt: skip


def rules_for(
    dialect: str, original_rules: dict[type[exp.Expr], dict[str, Any]]
) -> dict[type, Any]:
    """The annotator rules of a dialect, overridden by the rules of this module."""
    numbers = number_types(dialect)
    is_affected = is_number if numbers.unknown_without_rule else _is_decimal
    rules = dict(original_rules)
    rules |= {kind: {"annotator": _unknown_for(rule, is_affected)}
              for kind, rule in original_rules.items()
              if ("annotator" in rule or issubclass(kind, _ARGUMENT_DEPENDENT))
              and not issubclass(kind, _TRANSPARENT)}  # fmt: skip
    uses = functions.functions_of_any_type(dialect)
    types = dict(_TYPES)
    if exp.Mode in uses:
        types[exp.Mode] = _type_of_argument
    types |= {kind: _always(use.returns) for kind, use in uses.items()
              if isinstance(kind, type) and use.returns is not None}  # fmt: skip
    types[exp.Anonymous] = _type_of_named_function(uses)
    rules |= {kind: {"annotator": _override(numbers, type_of, original_rules.get(kind, {}))}
              for kind, type_of in types.items()}  # fmt: skip
    return rules


def _type_of_named_function(uses: Mapping[functions.Function, functions.FunctionUse]) -> _TypeOf:
    """The type of a function without a parser class."""

    def type_of(_: NumberTypes, node: exp.Expr) -> DataType | None:
        use = uses.get(functions.function_of(node))
        if use is None or not node.expressions:
            return None
        return use.returns or _type(node.expressions[0])

    return type_of


def _override(numbers: NumberTypes, type_of: _TypeOf, fallback: dict[str, Any]) -> _Annotate:
    def annotate(annotator: TypeAnnotator, node: exp.Expr) -> exp.Expr:
        type = type_of(numbers, node)
        if type is not None:
            annotator._set_type(node, to_sqlglot(type))
        else:
            _annotate(annotator, node, fallback)
        return node

    return annotate


def _is_decimal(type: DataType) -> bool:
    return isinstance(type, Decimal)


def _unknown_for(rule: dict[str, Any], is_affected: Callable[[DataType], bool]) -> _Annotate:
    """The original rule, except that numbers computed from affected types become unknown."""

    def annotate(annotator: TypeAnnotator, node: exp.Expr) -> exp.Expr:
        _annotate(annotator, node, rule)
        types = map(_type, node.iter_expressions())
        type = _type(node)
        computed = type.element if isinstance(type, Array) else type
        if is_number(computed) and any(map(is_affected, types)):
            annotator._set_type(node, exp.DType.UNKNOWN)
        return node

    return annotate


def _annotate(annotator: TypeAnnotator, node: exp.Expr, rule: dict[str, Any]) -> None:
    if "annotator" in rule:
        rule["annotator"](annotator, node)
    else:
        annotator._set_type(node, rule.get("returns"))
