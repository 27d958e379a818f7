"""Types of computed numbers, one class per dialect.

Tests compare the rules of Spark and DuckDB with the engines over a grid of types. The rules of
other dialects follow their documentation. A rule returns UNKNOWN if the type is not certain: the
impact on everything that depends on it is then undetermined, never unchanged.
"""

import enum
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import ClassVar, Final, NamedTuple

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
    Unknown,
)

_MAX_PRECISION: Final = 38
# The number of fraction digits that Spark keeps if a result exceeds the maximum precision.
_MIN_ADJUSTED_SCALE: Final = 6
_MAX_PRECISION_IN_64_BITS: Final = 18
# DuckDB's 128-bit integer.
HUGEINT: Final = Decimal(39)


class DecimalSize(NamedTuple):
    """Precision and scale of a decimal."""

    precision: int
    scale: int

    @property
    def whole_digits(self) -> int:
        """Digits before the decimal point."""
        return self.precision - self.scale


class Operand(NamedTuple):
    """An operand; `digits` is the number of digits of an integer literal."""

    type: DataType
    digits: int | None = None

    @classmethod
    def of(cls, type: DataType, literal: str | None) -> "Operand":
        """An operand of a type, with the text of the literal if it is one."""
        is_integer = literal is not None and literal.isdigit()
        return cls(type, len(str(int(literal))) if literal and is_integer else None)


def is_number(type: DataType) -> bool:
    """Whether a type is an integer, a decimal or a float."""
    return type in SIGNED or type in UNSIGNED or type in FLOATS or isinstance(type, Decimal)


class Operator(enum.Enum):
    """An operation on two numbers; COMMON is the common type of both."""

    ADD = enum.auto()
    MULTIPLY = enum.auto()
    DIVIDE = enum.auto()
    MODULO = enum.auto()
    INTEGER_DIVIDE = enum.auto()
    COMMON = enum.auto()


DecimalRule = Callable[[DecimalSize, DecimalSize], DataType]


class NumberTypes:
    """Types of computed numbers in a dialect without specific rules: decimals are unknown."""

    # Result types of two decimals; unknown for operators without a rule.
    decimals: ClassVar[Mapping[Operator, DecimalRule]] = {}
    # Digits of an integer column that is combined with a decimal, by bits.
    integer_digits: ClassVar[Mapping[int, int]] = {}
    # The size of DECIMAL without parameters.
    default_size: ClassVar[DecimalSize | None] = None
    # The result type if the size of an operand is unknown.
    type_without_size: ClassVar[DataType] = UNKNOWN
    # Whether results of functions without a rule are unknown for all numbers, not only decimals.
    unknown_without_rule: ClassVar[bool] = False
    # Whether 100L is a literal.
    has_literal_suffixes: ClassVar[bool] = False

    def literal(self, text: str) -> DataType | None:
        """The type of a number literal; None means the type that the parser determines."""
        del text
        return None

    def calculate(self, operator: Operator, left: Operand, right: Operand) -> DataType | None:
        """The type of an operation; None if its operands are not numbers."""
        types = (left.type, right.type)
        if not all(map(is_number, types)):
            # Strings are cast to numbers by rules that differ between versions.
            has_text = any(isinstance(type, String) for type in types)
            is_mixed = has_text and any(map(is_number, types))
            return UNKNOWN if self.unknown_without_rule and is_mixed else None
        if any(type in FLOATS for type in types):
            return self._floats(operator, *types)
        if all(type in SIGNED or type in UNSIGNED or type == HUGEINT for type in types):
            return self._integers(operator, *types)
        return self._decimals(operator, left, right)

    def _floats(self, operator: Operator, left: DataType, right: DataType) -> DataType:
        del operator
        return FLOAT64 if FLOAT64 in (left, right) else UNKNOWN

    def _integers(self, operator: Operator, left: DataType, right: DataType) -> DataType | None:
        """The type of an operation on integers; None means the type that the parser determines."""
        if HUGEINT in (left, right):
            return UNKNOWN
        if operator is not Operator.COMMON:
            return None
        if left in SIGNED and right in SIGNED:
            return max(left, right, key=SIGNED.__getitem__)
        return INT64

    def _decimals(self, operator: Operator, left: Operand, right: Operand) -> DataType:
        rule = self.decimals.get(operator)
        left_size, right_size = self._size(left), self._size(right)
        if left_size is None or right_size is None:
            return self.type_without_size
        return UNKNOWN if rule is None else rule(left_size, right_size)

    def _size(self, operand: Operand) -> DecimalSize | None:
        """The size of an operand when it is combined with a decimal."""
        type = operand.type
        if isinstance(type, Decimal):
            return None if type.precision is None else DecimalSize(type.precision, type.scale)
        if operand.digits is not None:
            return DecimalSize(operand.digits, 0)
        digits = self.integer_digits.get(SIGNED.get(type, 0))
        return DecimalSize(digits, 0) if digits else None

    def sum(self, type: DataType) -> DataType | None:
        """The type of SUM."""
        if type in SIGNED:
            return INT64
        return FLOAT64 if type in FLOATS else self._computed_type(type)

    def average(self, type: DataType) -> DataType | None:
        """The type of AVG."""
        return FLOAT64 if type in FLOATS else self._computed_type(type)

    def round(self, type: DataType, places: int | None) -> DataType | None:
        """The type of ROUND; `places` is None if it is not a literal."""
        del places
        return FLOAT64 if type in FLOATS else self._computed_type(type)

    def floor(self, type: DataType, places: int | None) -> DataType | None:
        """The type of FLOOR and CEIL, with `places` if they round to a decimal place."""
        del places
        return self._computed_type(type)

    def truncate(self, type: DataType) -> DataType | None:
        """The type of TRUNC of a number."""
        return self._computed_type(type)

    def _computed_type(self, type: DataType) -> DataType | None:
        """The type of a number computed from a decimal; None for other types."""
        return UNKNOWN if isinstance(type, Decimal | Unknown) else None

    def pass_through(self, type: DataType) -> DataType | None:
        """The type of a value returned unchanged: MAX(x), LAG(x), NULLIF(x, 0)."""
        return type if isinstance(type, Decimal | Unknown) else None

    def negate(self, type: DataType) -> DataType | None:
        """The type of -x and of ABS(x)."""
        return self.pass_through(type)

    def default_decimal(self) -> DataType:
        """The type of DECIMAL without parameters."""
        return Decimal() if self.default_size is None else Decimal(*self.default_size)

    def common(self, types: Iterable[DataType]) -> DataType:
        """The common type of these types, as in a UNION."""
        return self.common_of(map(Operand, types))

    def common_of(self, operands: Iterable[Operand]) -> DataType:
        """The common type of operands that may be literals, as in COALESCE and CASE."""
        types = [type for type in dict.fromkeys(each.type for each in operands) if type != NULL]
        return reduce(self._common_pair, types) if types else NULL

    def _common_pair(self, left: DataType, right: DataType) -> DataType:
        if left == right:
            return left
        if isinstance(left, String) and isinstance(right, String):
            lengths = (left.length, right.length)
            return String(None if None in lengths else max(filter(None, lengths)))
        if all(type == DATE or isinstance(type, Timestamp) for type in (left, right)):
            timestamps = [type for type in (left, right) if isinstance(type, Timestamp)]
            return Timestamp(timestamps[0].unit, zoned=any(each.zoned for each in timestamps))
        if not (is_number(left) and is_number(right)):
            return UNKNOWN
        return self.calculate(Operator.COMMON, Operand(left), Operand(right)) or UNKNOWN


def _widen(left: DecimalSize, right: DecimalSize) -> DecimalSize:
    """The smallest size that holds all digits of both decimals."""
    scale = max(left.scale, right.scale)
    return DecimalSize(max(left.whole_digits, right.whole_digits) + scale, scale)


def _cap_precision(precision: int, scale: int) -> Decimal:
    return Decimal(min(precision, _MAX_PRECISION), min(scale, _MAX_PRECISION))


def _decimal_or_unknown(precision: int, scale: int) -> DataType:
    """A decimal of that size, or UNKNOWN beyond the maximum precision."""
    return Decimal(precision, scale) if precision <= _MAX_PRECISION else UNKNOWN


def _literal_size(text: str) -> DecimalSize | None:
    """The digits of a literal before and after the point; None for 1e3."""
    whole_digits, _, fraction = text.partition(".")
    if not (whole_digits + fraction).isdigit():
        return None
    return DecimalSize(len(whole_digits) + len(fraction), len(fraction))


def _integer_literal(text: str) -> DataType:
    """The narrowest integer type of 32, 64 or 128 bits; a float if there is an exponent."""
    if not text.isdigit():
        return FLOAT64
    value = int(text)
    if value < 2**31:
        return INT32
    if value < 2**63:
        return INT64
    return HUGEINT if value < 2**127 else UNKNOWN


def _always(type: DataType) -> DecimalRule:
    return lambda *_: type


def _common_up_to_38(left: DecimalSize, right: DecimalSize) -> DataType:
    return _decimal_or_unknown(*_widen(left, right))


def _common_whole_digits_first(left: DecimalSize, right: DecimalSize) -> DataType:
    """The common decimal; beyond 38 digits, fraction digits are dropped."""
    size = _widen(left, right)
    whole_digits = min(size.whole_digits, _MAX_PRECISION)
    scale = min(size.scale, _MAX_PRECISION - whole_digits)
    return Decimal(whole_digits + scale, scale)


def _adjust_for_spark(precision: int, scale: int) -> Decimal:
    """A decimal of at most 38 digits; fraction digits beyond six are dropped first."""
    if precision <= _MAX_PRECISION:
        return Decimal(max(precision, 1), scale)
    whole_digits = precision - scale
    return Decimal(
        _MAX_PRECISION, max(_MAX_PRECISION - whole_digits, min(scale, _MIN_ADJUSTED_SCALE))
    )


def _spark_sum(left: DecimalSize, right: DecimalSize) -> DataType:
    size = _widen(left, right)
    return _adjust_for_spark(size.precision + 1, size.scale)


def _spark_product(left: DecimalSize, right: DecimalSize) -> DataType:
    return _adjust_for_spark(left.precision + right.precision + 1, left.scale + right.scale)


def _spark_quotient(left: DecimalSize, right: DecimalSize) -> DataType:
    scale = max(_MIN_ADJUSTED_SCALE, left.scale + right.precision + 1)
    return _adjust_for_spark(left.whole_digits + right.scale + scale, scale)


def _spark_remainder(left: DecimalSize, right: DecimalSize) -> DataType:
    scale = max(left.scale, right.scale)
    return _adjust_for_spark(min(left.whole_digits, right.whole_digits) + scale, scale)


class SparkNumbers(NumberTypes):
    """Spark 4 with its default settings: ANSI mode, precision loss allowed."""

    decimals: ClassVar = {
        Operator.ADD: _spark_sum,
        Operator.MULTIPLY: _spark_product,
        Operator.DIVIDE: _spark_quotient,
        Operator.MODULO: _spark_remainder,
        Operator.INTEGER_DIVIDE: _always(INT64),
        Operator.COMMON: _common_whole_digits_first,
    }
    integer_digits: ClassVar = {8: 3, 16: 5, 32: 10, 64: 20}
    default_size: ClassVar = DecimalSize(10, 0)
    unknown_without_rule: ClassVar = True
    has_literal_suffixes: ClassVar = True

    def literal(self, text: str) -> DataType | None:
        """The type of a literal: 0.0 is DECIMAL(1,1), as leading zeros are ignored."""
        if "." not in text:
            type = _integer_literal(text)
            return (
                type
                if type in SIGNED or type in FLOATS
                else _decimal_or_unknown(len(str(int(text))), 0)
            )
        size = _literal_size(text)
        if size is None:
            return FLOAT64
        digits = len(str(int(text.replace(".", ""))))
        return _decimal_or_unknown(max(digits, size.scale), size.scale)

    def _floats(self, operator: Operator, left: DataType, right: DataType) -> DataType:
        if operator is Operator.INTEGER_DIVIDE:
            return UNKNOWN
        if operator is not Operator.DIVIDE and left == right == FLOAT32:
            return FLOAT32
        return FLOAT64

    def _integers(self, operator: Operator, left: DataType, right: DataType) -> DataType | None:
        if left not in SIGNED or right not in SIGNED:
            return UNKNOWN
        if operator is Operator.DIVIDE:
            return FLOAT64
        if operator is Operator.INTEGER_DIVIDE:
            return INT64
        return super()._integers(Operator.COMMON, left, right)

    def sum(self, type: DataType) -> DataType | None:
        """A decimal with ten more digits."""
        if isinstance(type, Decimal) and type.precision is not None:
            return _cap_precision(type.precision + 10, type.scale)
        return super().sum(type)

    def average(self, type: DataType) -> DataType | None:
        """A decimal with four more fraction digits."""
        if isinstance(type, Decimal) and type.precision is not None:
            return _cap_precision(type.precision + 4, type.scale + 4)
        return FLOAT64 if type in SIGNED else super().average(type)

    def round(self, type: DataType, places: int | None) -> DataType | None:
        """A decimal with one more integer digit, as 9.9 becomes 10."""
        if type in SIGNED or type in FLOATS:
            return type
        if not isinstance(type, Decimal) or type.precision is None or places is None:
            return UNKNOWN
        whole_digits = type.precision - type.scale + 1
        if places < 0:
            return _cap_precision(max(whole_digits, 1 - places), 0)
        scale = min(type.scale, places)
        return _cap_precision(whole_digits + scale, scale)

    def floor(self, type: DataType, places: int | None) -> DataType | None:
        """An integer, unless a decimal place is given."""
        if places is not None:
            return self.round(type, places) if isinstance(type, Decimal) else UNKNOWN
        if type in SIGNED or type in FLOATS:
            return INT64
        if not isinstance(type, Decimal) or type.precision is None:
            return UNKNOWN
        return type if type.scale == 0 else _cap_precision(type.precision - type.scale + 1, 0)

    def pass_through(self, type: DataType) -> DataType | None:
        """Always the same type."""
        return type


class HiveNumbers(SparkNumbers):
    """Hive and Spark before version 3; results of 38 digits and of 32-bit floats are unknown."""

    decimals: ClassVar = {**SparkNumbers.decimals, Operator.COMMON: _common_up_to_38}

    def _floats(self, operator: Operator, left: DataType, right: DataType) -> DataType:
        return NumberTypes._floats(self, operator, left, right)

    def _decimals(self, operator: Operator, left: Operand, right: Operand) -> DataType:
        type = super()._decimals(operator, left, right)
        has_max_precision = isinstance(type, Decimal) and type.precision == _MAX_PRECISION
        return UNKNOWN if has_max_precision else type


def _capped_sum(left: DecimalSize, right: DecimalSize) -> DataType:
    size = _widen(left, right)
    return _cap_precision(size.precision + 1, size.scale)


def _duckdb_sum(left: DecimalSize, right: DecimalSize) -> DataType:
    precision = _widen(left, right).precision + 1
    if precision > _MAX_PRECISION_IN_64_BITS >= max(left.precision, right.precision):
        # DuckDB 1 stays within 64 bits, DuckDB 2 does not.
        return UNKNOWN
    return _capped_sum(left, right)


def _duckdb_product(left: DecimalSize, right: DecimalSize) -> DataType:
    precision, scale = left.precision + right.precision, left.scale + right.scale
    if scale > _MAX_PRECISION:
        # DuckDB rejects the statement.
        return UNKNOWN
    # DuckDB limits products of decimals that fit into 64 bits to 64 bits.
    small = _MAX_PRECISION_IN_64_BITS
    if precision > small and max(left.precision, right.precision) <= small and scale < small:
        precision = small
    return _cap_precision(precision, scale)


def _duckdb_remainder(left: DecimalSize, right: DecimalSize) -> DataType:
    size = _widen(left, right)
    return Decimal(*size) if size.precision <= _MAX_PRECISION else FLOAT64


class DuckdbNumbers(NumberTypes):
    """DuckDB 1.3 to 2.0: quotients and averages are floats, sums have 38 digits."""

    decimals: ClassVar = {
        Operator.ADD: _duckdb_sum,
        Operator.MULTIPLY: _duckdb_product,
        Operator.DIVIDE: _always(FLOAT64),
        Operator.MODULO: _duckdb_remainder,
        Operator.INTEGER_DIVIDE: _always(FLOAT64),
        Operator.COMMON: _common_whole_digits_first,
    }
    integer_digits: ClassVar = {8: 3, 16: 5, 32: 10, 64: 19}
    default_size: ClassVar = DecimalSize(18, 3)
    unknown_without_rule: ClassVar = True

    def literal(self, text: str) -> DataType | None:
        """The type of a literal: 0.0 is DECIMAL(2,1), as all digits count."""
        if "." not in text:
            return _integer_literal(text)
        size = _literal_size(text)
        return FLOAT64 if size is None else _decimal_or_unknown(*size)

    def calculate(self, operator: Operator, left: Operand, right: Operand) -> DataType | None:
        """The type of an operation; unknown if a literal adapts to a short integer."""
        if operator is not Operator.DIVIDE and _literal_adapts(left, right):
            return UNKNOWN
        return super().calculate(operator, left, right)

    def common_of(self, operands: Iterable[Operand]) -> DataType:
        """The common type; unknown if a literal adapts to a short integer."""
        operands = list(operands)
        if any(_literal_adapts(left, right) for left in operands for right in operands):
            return UNKNOWN
        return super().common_of(operands)

    def _size(self, operand: Operand) -> DecimalSize | None:
        """The size of an operand; integer literals are treated like columns of their type."""
        if operand.type == HUGEINT:
            return DecimalSize(_MAX_PRECISION, 0)
        return super()._size(Operand(operand.type))

    def _floats(self, operator: Operator, left: DataType, right: DataType) -> DataType:
        del operator
        return FLOAT64 if FLOAT64 in (left, right) else FLOAT32

    def _integers(self, operator: Operator, left: DataType, right: DataType) -> DataType | None:
        if left in UNSIGNED or right in UNSIGNED:
            return UNKNOWN
        if operator is Operator.DIVIDE:
            return FLOAT64
        if HUGEINT in (left, right):
            return HUGEINT
        return super()._integers(Operator.COMMON, left, right)

    def _decimals(self, operator: Operator, left: Operand, right: Operand) -> DataType:
        """The type of an operation; with an integer, fraction digits are kept beyond 38 digits."""
        left_size, right_size = self._size(left), self._size(right)
        has_integer = any(not isinstance(type, Decimal) or type == HUGEINT
                          for type in (left.type, right.type))  # fmt: skip
        if operator is Operator.COMMON and has_integer and left_size and right_size:
            return _cap_precision(*_widen(left_size, right_size))
        return super()._decimals(operator, left, right)

    def sum(self, type: DataType) -> DataType | None:
        """The maximum precision."""
        if type in SIGNED or type == HUGEINT:
            return HUGEINT
        if isinstance(type, Decimal) and type.precision is not None:
            return Decimal(_MAX_PRECISION, type.scale)
        return super().sum(type)

    def average(self, type: DataType) -> DataType | None:
        """Always a float."""
        return FLOAT64 if is_number(type) else UNKNOWN

    def round(self, type: DataType, places: int | None) -> DataType | None:
        """A decimal of the same precision."""
        if type in SIGNED or type in FLOATS or type == HUGEINT:
            return type
        if not isinstance(type, Decimal) or type.precision is None or places is None or places < 0:
            return UNKNOWN
        return Decimal(type.precision, min(type.scale, places))

    def floor(self, type: DataType, places: int | None) -> DataType | None:
        """A decimal without fraction digits; integers become floats."""
        if places is not None:
            return UNKNOWN
        if type in SIGNED or type == HUGEINT:
            return FLOAT64
        return self.truncate(type)

    def truncate(self, type: DataType) -> DataType | None:
        """A decimal without fraction digits."""
        if type in SIGNED or type in FLOATS or type == HUGEINT:
            return type
        if not isinstance(type, Decimal) or type.precision is None:
            return UNKNOWN
        return Decimal(type.precision)

    def pass_through(self, type: DataType) -> DataType | None:
        """Always the same type."""
        return type


def _literal_adapts(left: Operand, right: Operand) -> bool:
    """Whether DuckDB gives an integer literal the type of a shorter integer operand."""
    pair = (left, right) if left.digits is not None else (right, left)
    return pair[0].digits is not None and pair[1].digits is None and (
        SIGNED.get(pair[1].type, 64) < 32
    )  # fmt: skip


class PostgresNumbers(NumberTypes):
    """PostgreSQL: computed numerics have no size."""

    type_without_size: ClassVar = Decimal()

    def literal(self, text: str) -> DataType | None:
        """A numeric if there is a decimal point."""
        return Decimal() if "." in text else None

    def _size(self, operand: Operand) -> DecimalSize | None:
        del operand
        return None

    def sum(self, type: DataType) -> DataType | None:
        """A numeric for 64-bit integers, too."""
        return Decimal() if type == INT64 else super().sum(type)

    def negate(self, type: DataType) -> DataType | None:
        """A numeric."""
        return Decimal() if isinstance(type, Decimal) else super().negate(type)

    def _computed_type(self, type: DataType) -> DataType | None:
        return Decimal() if isinstance(type, Decimal) else super()._computed_type(type)


class BigqueryNumbers(NumberTypes):
    """BigQuery: NUMERIC and BIGNUMERIC lose their parameters when something is computed."""

    _numeric: ClassVar = Decimal(38, 9)
    _bignumeric: ClassVar = Decimal(76, 38)

    def _decimals(self, operator: Operator, left: Operand, right: Operand) -> DataType:
        del operator
        return self._numeric_for(left.type, right.type)

    def _numeric_for(self, *types: DataType) -> DataType:
        decimals = [type for type in types if isinstance(type, Decimal)]
        is_big = any(
            type.precision is not None and (type.precision - type.scale > 29 or type.scale > 9)
            for type in decimals
        )
        return self._bignumeric if is_big else self._numeric

    def _computed_type(self, type: DataType) -> DataType | None:
        return (
            self._numeric_for(type) if isinstance(type, Decimal) else super()._computed_type(type)
        )


def _snowflake_product(left: DecimalSize, right: DecimalSize) -> DataType:
    scale = min(left.scale + right.scale, max(left.scale, right.scale, 12))
    return _cap_precision(left.whole_digits + right.whole_digits + scale, scale)


def _snowflake_quotient(left: DecimalSize, right: DecimalSize) -> DataType:
    scale = max(left.scale, min(left.scale + 6, 12))
    return _cap_precision(left.whole_digits + right.scale + scale, scale)


class SnowflakeNumbers(NumberTypes):
    """Snowflake, by its documentation of arithmetic operators."""

    decimals: ClassVar = {
        Operator.ADD: _capped_sum,
        Operator.MULTIPLY: _snowflake_product,
        Operator.DIVIDE: _snowflake_quotient,
        Operator.COMMON: _common_up_to_38,
    }

    def sum(self, type: DataType) -> DataType | None:
        """The maximum precision."""
        if isinstance(type, Decimal) and type.precision is not None:
            return Decimal(_MAX_PRECISION, type.scale)
        return super().sum(type)


class TsqlNumbers(NumberTypes):
    """SQL Server, by its documentation of precision and scale."""

    decimals: ClassVar = HiveNumbers.decimals
    integer_digits: ClassVar = {8: 3, 16: 5, 32: 10, 64: 19}

    def _decimals(self, operator: Operator, left: Operand, right: Operand) -> DataType:
        """The type by the rules of Spark; unknown for results of 38 digits."""
        if operator is Operator.INTEGER_DIVIDE:
            return UNKNOWN
        type = super()._decimals(operator, left, right)
        has_max_precision = isinstance(type, Decimal) and type.precision == _MAX_PRECISION
        return UNKNOWN if has_max_precision else type

    def sum(self, type: DataType) -> DataType | None:
        """A 32-bit integer for integers of at most 32 bits."""
        if type in SIGNED and SIGNED[type] <= 32:
            return INT32
        if isinstance(type, Decimal) and type.precision is not None:
            return Decimal(_MAX_PRECISION, type.scale)
        return super().sum(type)

    def average(self, type: DataType) -> DataType | None:
        """A decimal with at least six fraction digits."""
        if isinstance(type, Decimal) and type.precision is not None:
            return Decimal(_MAX_PRECISION, max(type.scale, _MIN_ADJUSTED_SCALE))
        return super().average(type)


_DIALECTS: Final[dict[str, type[NumberTypes]]] = {
    "spark": SparkNumbers,
    "databricks": SparkNumbers,
    "spark2": HiveNumbers,
    "hive": HiveNumbers,
    "duckdb": DuckdbNumbers,
    "postgres": PostgresNumbers,
    "materialize": PostgresNumbers,
    "risingwave": PostgresNumbers,
    "bigquery": BigqueryNumbers,
    "snowflake": SnowflakeNumbers,
    "tsql": TsqlNumbers,
    "fabric": TsqlNumbers,
}


def number_types(dialect: str) -> NumberTypes:
    """The rules of a dialect, by its name in lower case."""
    return _DIALECTS.get(dialect, NumberTypes)()
