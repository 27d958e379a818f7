"""Types of computed numbers, one class per dialect.

The rules of Spark and DuckDB are compared with the engines themselves over a grid of types; those
of the other dialects follow their documentation. A rule returns UNKNOWN where nothing is proven:
whatever depends on it is then undetermined, never unchanged.
"""

from collections.abc import Iterable
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
# Spark keeps at least so many fraction digits when a result has too many digits in all.
_MIN_ADJUSTED_SCALE: Final = 6
# DuckDB's 128-bit integer.
HUGEINT: Final = Decimal(39)


class Size(NamedTuple):
    """Precision and scale of a decimal."""

    precision: int
    scale: int

    @property
    def whole(self) -> int:
        """Digits before the point."""
        return self.precision - self.scale


class Operand(NamedTuple):
    """A value that is computed with; `digits` are those of an integer literal."""

    type: DataType
    digits: int | None = None


def is_number(type: DataType) -> bool:
    """Whether a type is an integer, a decimal or a float."""
    return type in SIGNED or type in UNSIGNED or type in FLOATS or isinstance(type, Decimal)


class NumberTypes:
    """Types of computed numbers in a dialect without rules of its own: decimals are unknown."""

    # How many decimal digits an integer column of so many bits becomes next to a decimal.
    integer_digits: ClassVar[dict[int, int]] = {}
    # The size of DECIMAL without parameters.
    default_size: ClassVar[Size | None] = None
    # Whether functions of numbers without a rule here are unknown as well.
    is_complete: ClassVar[bool] = False

    def literal(self, text: str) -> DataType | None:
        """The type of a number literal; None leaves it to the parser."""
        return None

    def operand(self, type: DataType, literal: str | None) -> Operand:
        """An operand, with its digits where it is an integer literal."""
        digits = len(literal.lstrip("0")) or 1 if literal is not None and literal.isdigit() else None
        return Operand(type, digits)

    def add(self, one: Operand, other: Operand) -> DataType | None:
        """The type of `one + other` and of `one - other`; None if they are no numbers."""
        return self._calculate("_added", one, other)

    def multiply(self, one: Operand, other: Operand) -> DataType | None:
        """The type of `one * other`."""
        return self._calculate("_multiplied", one, other)

    def divide(self, one: Operand, other: Operand) -> DataType | None:
        """The type of `one / other`."""
        return self._calculate("_divided", one, other)

    def modulo(self, one: Operand, other: Operand) -> DataType | None:
        """The type of `one % other`."""
        return self._calculate("_modulo", one, other)

    def integer_divide(self, one: Operand, other: Operand) -> DataType | None:
        """The type of `one DIV other`."""
        return self._calculate("_integer_divided", one, other)

    def _calculate(self, operation: str, one: Operand, other: Operand) -> DataType | None:
        types = (one.type, other.type)
        if not all(map(is_number, types)):
            # Texts are cast to numbers, by rules that differ between versions.
            is_mixed = any(map(is_number, types)) and any(isinstance(each, String) for each in types)
            return UNKNOWN if self.is_complete and is_mixed else None
        if any(type in FLOATS for type in types):
            return self._floats(operation, *types)
        if not any(isinstance(type, Decimal) for type in types) or HUGEINT in types:
            integers = self._integers(operation, *types)
            if integers is not None or not any(isinstance(type, Decimal) for type in types):
                return integers
        left, right = self._size(one), self._size(other)
        if left is None or right is None:
            return self._unsized(operation)
        found: DataType = getattr(self, operation)(left, right)
        return found

    def _floats(self, operation: str, one: DataType, other: DataType) -> DataType:
        return FLOAT64 if FLOAT64 in (one, other) else UNKNOWN

    def _integers(self, operation: str, one: DataType, other: DataType) -> DataType | None:
        return None

    def _size(self, operand: Operand) -> Size | None:
        """The size that an operand has next to a decimal."""
        type = operand.type
        if isinstance(type, Decimal):
            return None if type.precision is None else Size(type.precision, type.scale)
        if operand.digits is not None:
            return Size(operand.digits, 0)
        digits = self.integer_digits.get(SIGNED.get(type, 0))
        return Size(digits, 0) if digits else None

    def _unsized(self, operation: str) -> DataType:
        return UNKNOWN

    def _added(self, one: Size, other: Size) -> DataType:
        return UNKNOWN

    def _multiplied(self, one: Size, other: Size) -> DataType:
        return UNKNOWN

    def _divided(self, one: Size, other: Size) -> DataType:
        return UNKNOWN

    def _modulo(self, one: Size, other: Size) -> DataType:
        return UNKNOWN

    def _integer_divided(self, one: Size, other: Size) -> DataType:
        return UNKNOWN

    def sum(self, type: DataType) -> DataType | None:
        """The type of SUM."""
        if type in SIGNED:
            return INT64
        if type in FLOATS:
            return FLOAT64
        return UNKNOWN if isinstance(type, Decimal | Unknown) else None

    def average(self, type: DataType) -> DataType | None:
        """The type of AVG."""
        if type in FLOATS:
            return FLOAT64
        return UNKNOWN if isinstance(type, Decimal | Unknown) else None

    def round(self, type: DataType, places: int | None) -> DataType | None:
        """The type of ROUND to so many places; None stands for places that are no literal."""
        if type in FLOATS:
            return FLOAT64
        return UNKNOWN if isinstance(type, Decimal | Unknown) else None

    def floor(self, type: DataType, places: int | None) -> DataType | None:
        """The type of FLOOR and CEIL, with `places` where they round to a place."""
        return UNKNOWN if isinstance(type, Decimal | Unknown) else None

    def truncate(self, type: DataType) -> DataType | None:
        """The type of TRUNC of a number."""
        return UNKNOWN if isinstance(type, Decimal | Unknown) else None

    def same(self, type: DataType) -> DataType | None:
        """The type of a value that is taken as it is: MAX(x), LAG(x), NULLIF(x, 0)."""
        return type if isinstance(type, Decimal | Unknown) else None

    def negate(self, type: DataType) -> DataType | None:
        """The type of -x and of ABS(x)."""
        return self.same(type)

    def default_decimal(self) -> DataType:
        """The type that DECIMAL without parameters stands for."""
        return Decimal() if self.default_size is None else Decimal(*self.default_size)

    def common(self, types: Iterable[DataType]) -> DataType:
        """The type of a value that has one of these types: COALESCE, CASE, an arm of a UNION."""
        left = [type for type in dict.fromkeys(types) if type != NULL]
        return reduce(self._common_pair, left) if left else NULL

    def common_of(self, operands: Iterable[Operand]) -> DataType:
        """The common type of values in an expression, literals among them."""
        return self.common(operand.type for operand in operands)

    def _common_pair(self, one: DataType, other: DataType) -> DataType:
        if one == other:
            return one
        if isinstance(one, String) and isinstance(other, String):
            lengths = (one.length, other.length)
            return String(None if None in lengths else max(filter(None, lengths)))
        if _is_moment(one) and _is_moment(other):
            stamps = [type for type in (one, other) if isinstance(type, Timestamp)]
            return Timestamp(stamps[0].unit, zoned=any(each.zoned for each in stamps))
        if not (is_number(one) and is_number(other)):
            return UNKNOWN
        if one in FLOATS or other in FLOATS:
            return self._floats("common", one, other)
        if HUGEINT in (one, other) or not (isinstance(one, Decimal) or isinstance(other, Decimal)):
            integers = self._common_integers(one, other)
            if integers is not None:
                return integers
        left, right = self._size(Operand(one)), self._size(Operand(other))
        if left is None or right is None:
            return self._unsized("common")
        return self._common_decimals(left, right)

    def _common_integers(self, one: DataType, other: DataType) -> DataType | None:
        if one in SIGNED and other in SIGNED:
            return max(one, other, key=SIGNED.__getitem__)
        return None if isinstance(one, Decimal) or isinstance(other, Decimal) else INT64

    def _common_decimals(self, one: Size, other: Size) -> DataType:
        return UNKNOWN


def _is_moment(type: DataType) -> bool:
    return type == DATE or isinstance(type, Timestamp)


def _widened(one: Size, other: Size) -> Size:
    """The size that holds all digits of both."""
    scale = max(one.scale, other.scale)
    return Size(max(one.whole, other.whole) + scale, scale)


def _whole_digits_first(size: Size) -> Decimal:
    """A decimal that gives up fraction digits where 38 are too few."""
    whole = min(size.whole, _MAX_PRECISION)
    scale = min(size.scale, _MAX_PRECISION - whole)
    return Decimal(whole + scale or 1, scale)


def _capped(precision: int, scale: int) -> Decimal:
    return Decimal(min(precision, _MAX_PRECISION), min(scale, _MAX_PRECISION))


def _exact(precision: int, scale: int) -> DataType:
    """A decimal that has room for all digits; what happens to others is not proven."""
    return Decimal(precision, scale) if precision <= _MAX_PRECISION else UNKNOWN


def _literal_digits(text: str) -> Size | None:
    """All digits that are written before and behind the point; None for 1e3."""
    whole, _, fraction = text.partition(".")
    if not (whole + fraction).isdigit():
        return None
    return Size(len(whole) + len(fraction), len(fraction))


class SparkNumbers(NumberTypes):
    """Spark 4 with its default settings: ANSI mode, precision loss allowed."""

    integer_digits: ClassVar = {8: 3, 16: 5, 32: 10, 64: 20}
    default_size: ClassVar = Size(10, 0)
    is_complete: ClassVar = True

    def literal(self, text: str) -> DataType | None:
        """0.0 is DECIMAL(1,1): leading zeros are no digits."""
        if "." not in text:
            return _integer_literal(text, beyond=Decimal)
        size = _literal_digits(text)
        if size is None:
            return FLOAT64
        digits = len(str(int(text.replace(".", ""))))
        return _exact(max(digits, size.scale), size.scale)

    def _floats(self, operation: str, one: DataType, other: DataType) -> DataType:
        if operation == "_integer_divided":
            return UNKNOWN
        if operation != "_divided" and one == other == FLOAT32:
            return FLOAT32
        return FLOAT64

    def _integers(self, operation: str, one: DataType, other: DataType) -> DataType | None:
        if one not in SIGNED or other not in SIGNED:
            return UNKNOWN
        if operation == "_divided":
            return FLOAT64
        return INT64 if operation == "_integer_divided" else self._common_integers(one, other)

    def _added(self, one: Size, other: Size) -> DataType:
        size = _widened(one, other)
        return _adjusted(size.precision + 1, size.scale)

    def _multiplied(self, one: Size, other: Size) -> DataType:
        return _adjusted(one.precision + other.precision + 1, one.scale + other.scale)

    def _divided(self, one: Size, other: Size) -> DataType:
        scale = max(_MIN_ADJUSTED_SCALE, one.scale + other.precision + 1)
        return _adjusted(one.whole + other.scale + scale, scale)

    def _modulo(self, one: Size, other: Size) -> DataType:
        scale = max(one.scale, other.scale)
        return _adjusted(min(one.whole, other.whole) + scale, scale)

    def _integer_divided(self, one: Size, other: Size) -> DataType:
        return INT64

    def sum(self, type: DataType) -> DataType | None:
        """Ten digits more."""
        if isinstance(type, Decimal) and type.precision is not None:
            return _capped(type.precision + 10, type.scale)
        return super().sum(type)

    def average(self, type: DataType) -> DataType | None:
        """Four digits more, all of them behind the point."""
        if isinstance(type, Decimal) and type.precision is not None:
            return _capped(type.precision + 4, type.scale + 4)
        return FLOAT64 if type in SIGNED else super().average(type)

    def round(self, type: DataType, places: int | None) -> DataType | None:
        """One whole digit more, as 9.9 becomes 10."""
        if type in SIGNED or type in FLOATS:
            return type
        if not isinstance(type, Decimal) or type.precision is None or places is None:
            return UNKNOWN
        whole = type.precision - type.scale + 1
        if places < 0:
            return _capped(max(whole, 1 - places), 0)
        scale = min(type.scale, places)
        return _capped(whole + scale, scale)

    def floor(self, type: DataType, places: int | None) -> DataType | None:
        """A whole number, unless a place is named."""
        if places is not None:
            return self.round(type, places) if isinstance(type, Decimal) else UNKNOWN
        if type in SIGNED or type in FLOATS:
            return INT64
        if not isinstance(type, Decimal) or type.precision is None:
            return UNKNOWN
        return type if type.scale == 0 else _capped(type.precision - type.scale + 1, 0)

    def same(self, type: DataType) -> DataType | None:
        """The same in every case."""
        return type

    def _common_decimals(self, one: Size, other: Size) -> DataType:
        return _whole_digits_first(_widened(one, other))


class HiveNumbers(SparkNumbers):
    """Hive and Spark before version 3: what 38 digits do not hold, and floats, differ."""

    def _floats(self, operation: str, one: DataType, other: DataType) -> DataType:
        return NumberTypes._floats(self, operation, one, other)

    def _calculate(self, operation: str, one: Operand, other: Operand) -> DataType | None:
        return _unless_full(super()._calculate(operation, one, other))

    def _common_decimals(self, one: Size, other: Size) -> DataType:
        return _exact(*_widened(one, other))


def _unless_full(type: DataType | None) -> DataType | None:
    is_full = isinstance(type, Decimal) and type.precision == _MAX_PRECISION
    return UNKNOWN if is_full else type


def _adjusted(precision: int, scale: int) -> Decimal:
    """Spark's decimal of at most 38 digits, of which the fraction gives up the first."""
    if precision <= _MAX_PRECISION:
        return Decimal(max(precision, 1), scale)
    whole = precision - scale
    return Decimal(_MAX_PRECISION, max(_MAX_PRECISION - whole, min(scale, _MIN_ADJUSTED_SCALE)))


def _integer_literal(text: str, *, beyond: type[Decimal] | None = None) -> DataType | None:
    if not text.isdigit():
        return FLOAT64
    value = int(text)
    if value < 2**31:
        return INT32
    if value < 2**63:
        return INT64
    if beyond is None:
        return HUGEINT if value < 2**127 else UNKNOWN
    return beyond(len(str(value))) if len(str(value)) <= _MAX_PRECISION else UNKNOWN


class DuckdbNumbers(NumberTypes):
    """DuckDB: quotients and averages are floats, sums have 38 digits."""

    integer_digits: ClassVar = {8: 3, 16: 5, 32: 10, 64: 19}
    default_size: ClassVar = Size(18, 3)
    is_complete: ClassVar = True
    # Products of decimals that 64 bits hold stay within 64 bits.
    _max_precision_in_64_bits: ClassVar = 18

    def literal(self, text: str) -> DataType | None:
        """0.0 is DECIMAL(2,1): all digits count as they are written."""
        if "." not in text:
            return _integer_literal(text)
        size = _literal_digits(text)
        return FLOAT64 if size is None else _exact(*size)

    def _size(self, operand: Operand) -> Size | None:
        """The size next to a decimal; an integer literal is like a column of its type."""
        if operand.type == HUGEINT:
            return Size(_MAX_PRECISION, 0)
        return super()._size(Operand(operand.type))

    def _calculate(self, operation: str, one: Operand, other: Operand) -> DataType | None:
        return UNKNOWN if _adapts(one, other) else super()._calculate(operation, one, other)

    def common_of(self, operands: Iterable[Operand]) -> DataType:
        """The common type; unknown where a literal takes the type of a short integer."""
        operands = list(operands)
        if any(_adapts(one, other) for one in operands for other in operands):
            return UNKNOWN
        return self.common(operand.type for operand in operands)

    def _common_pair(self, one: DataType, other: DataType) -> DataType:
        """Next to an integer, a decimal keeps its fraction digits even if 38 are too few."""
        for type, integer in ((one, other), (other, one)):
            if isinstance(type, Decimal) and type != HUGEINT and type.precision is not None and (
                integer == HUGEINT or integer in SIGNED
            ):  # fmt: skip
                size = self._size(Operand(integer))
                assert size is not None
                return _capped(*_widened(Size(type.precision, type.scale), size))
        return super()._common_pair(one, other)

    def _floats(self, operation: str, one: DataType, other: DataType) -> DataType:
        return FLOAT64 if FLOAT64 in (one, other) else FLOAT32

    def _integers(self, operation: str, one: DataType, other: DataType) -> DataType | None:
        if one in UNSIGNED or other in UNSIGNED:
            return UNKNOWN
        if operation == "_divided":
            return FLOAT64
        return self._common_integers(one, other)

    def _common_integers(self, one: DataType, other: DataType) -> DataType | None:
        if HUGEINT in (one, other):
            return HUGEINT if all(each == HUGEINT or each in SIGNED for each in (one, other)) else None
        return super()._common_integers(one, other) if one in SIGNED and other in SIGNED else UNKNOWN

    def _added(self, one: Size, other: Size) -> DataType:
        size = _widened(one, other)
        return _capped(size.precision + 1, size.scale)

    def _multiplied(self, one: Size, other: Size) -> DataType:
        precision, scale = one.precision + other.precision, one.scale + other.scale
        if scale > _MAX_PRECISION:
            # DuckDB refuses the statement.
            return UNKNOWN
        small = self._max_precision_in_64_bits
        if precision > small and max(one.precision, other.precision) <= small and scale < small:
            precision = small
        return _capped(precision, scale)

    def _divided(self, one: Size, other: Size) -> DataType:
        return FLOAT64

    def _integer_divided(self, one: Size, other: Size) -> DataType:
        return FLOAT64

    def _modulo(self, one: Size, other: Size) -> DataType:
        size = _widened(one, other)
        return Decimal(*size) if size.precision <= _MAX_PRECISION else FLOAT64

    def sum(self, type: DataType) -> DataType | None:
        """As wide as can be."""
        if type in SIGNED or type == HUGEINT:
            return HUGEINT
        if isinstance(type, Decimal) and type.precision is not None:
            return Decimal(_MAX_PRECISION, type.scale)
        return super().sum(type)

    def average(self, type: DataType) -> DataType | None:
        """A float, whatever the numbers are."""
        return FLOAT64 if is_number(type) else UNKNOWN

    def round(self, type: DataType, places: int | None) -> DataType | None:
        """As many digits as before."""
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

    def same(self, type: DataType) -> DataType | None:
        """The same in every case."""
        return type

    def _common_decimals(self, one: Size, other: Size) -> DataType:
        return _whole_digits_first(_widened(one, other))


def _adapts(one: Operand, other: Operand) -> bool:
    """Whether DuckDB gives an integer literal the type of the short integer that it meets."""
    pair = (one, other) if one.digits is not None else (other, one)
    return pair[0].digits is not None and pair[1].digits is None and (
        SIGNED.get(pair[1].type, 64) < 32
    )  # fmt: skip


class PostgresNumbers(NumberTypes):
    """PostgreSQL: computed numerics have no size."""

    def _size(self, operand: Operand) -> Size | None:
        return None

    def _unsized(self, operation: str) -> DataType:
        return Decimal()

    def sum(self, type: DataType) -> DataType | None:
        """Sums of 64-bit integers are numerics, too."""
        return Decimal() if type == INT64 or isinstance(type, Decimal) else super().sum(type)

    def average(self, type: DataType) -> DataType | None:
        """A numeric, unless floats are averaged."""
        return Decimal() if isinstance(type, Decimal) else super().average(type)

    def round(self, type: DataType, places: int | None) -> DataType | None:
        """A numeric."""
        return Decimal() if isinstance(type, Decimal) else super().round(type, places)

    def floor(self, type: DataType, places: int | None) -> DataType | None:
        """A numeric."""
        return Decimal() if isinstance(type, Decimal) else super().floor(type, places)

    def truncate(self, type: DataType) -> DataType | None:
        """A numeric."""
        return Decimal() if isinstance(type, Decimal) else super().truncate(type)

    def negate(self, type: DataType) -> DataType | None:
        """A numeric."""
        return Decimal() if isinstance(type, Decimal) else super().negate(type)


class BigqueryNumbers(NumberTypes):
    """BigQuery: NUMERIC and BIGNUMERIC lose their parameters when something is computed."""

    _numeric: ClassVar = Decimal(38, 9)
    _bignumeric: ClassVar = Decimal(76, 38)

    def _calculate(self, operation: str, one: Operand, other: Operand) -> DataType | None:
        if any(isinstance(each.type, Decimal) for each in (one, other)) and all(
            isinstance(each.type, Decimal) or each.type == INT64 or each.digits is not None
            for each in (one, other)
        ):
            return self._wider(one.type, other.type)
        return super()._calculate(operation, one, other)

    def _wider(self, *types: DataType) -> DataType:
        decimals = [type for type in types if isinstance(type, Decimal)]
        is_big = any(
            type.precision is not None and (type.precision - type.scale > 29 or type.scale > 9)
            for type in decimals
        )
        return self._bignumeric if is_big else self._numeric

    def _computed(self, type: DataType) -> DataType | None:
        return self._wider(type) if isinstance(type, Decimal) else None

    def sum(self, type: DataType) -> DataType | None:
        """Without parameters."""
        return self._computed(type) or super().sum(type)

    def average(self, type: DataType) -> DataType | None:
        """Without parameters."""
        return self._computed(type) or super().average(type)

    def round(self, type: DataType, places: int | None) -> DataType | None:
        """Without parameters."""
        return self._computed(type) or super().round(type, places)

    def floor(self, type: DataType, places: int | None) -> DataType | None:
        """Without parameters."""
        return self._computed(type) or super().floor(type, places)

    def truncate(self, type: DataType) -> DataType | None:
        """Without parameters."""
        return self._computed(type) or super().truncate(type)

    def _common_pair(self, one: DataType, other: DataType) -> DataType:
        types = (one, other)
        if one != other and all(isinstance(each, Decimal) or each in SIGNED for each in types) and (
            any(isinstance(each, Decimal) for each in types)
        ):  # fmt: skip
            return self._wider(*types)
        return super()._common_pair(one, other)


class SnowflakeNumbers(NumberTypes):
    """Snowflake, as its page on arithmetic operators describes them."""

    def _added(self, one: Size, other: Size) -> DataType:
        size = _widened(one, other)
        return _capped(size.precision + 1, size.scale)

    def _multiplied(self, one: Size, other: Size) -> DataType:
        scale = min(one.scale + other.scale, max(one.scale, other.scale, 12))
        return _capped(one.whole + other.whole + scale, scale)

    def _divided(self, one: Size, other: Size) -> DataType:
        scale = max(one.scale, min(one.scale + 6, 12))
        return _capped(one.whole + other.scale + scale, scale)

    def sum(self, type: DataType) -> DataType | None:
        """As wide as can be."""
        if isinstance(type, Decimal) and type.precision is not None:
            return Decimal(_MAX_PRECISION, type.scale)
        return super().sum(type)

    def _common_decimals(self, one: Size, other: Size) -> DataType:
        return _exact(*_widened(one, other))


class TsqlNumbers(NumberTypes):
    """SQL Server, as its page on precision and scale describes it, up to 38 digits."""

    integer_digits: ClassVar = {8: 3, 16: 5, 32: 10, 64: 19}

    def _added(self, one: Size, other: Size) -> DataType:
        size = _widened(one, other)
        return _exact(size.precision + 1, size.scale)

    def _multiplied(self, one: Size, other: Size) -> DataType:
        return _exact(one.precision + other.precision + 1, one.scale + other.scale)

    def _divided(self, one: Size, other: Size) -> DataType:
        scale = max(_MIN_ADJUSTED_SCALE, one.scale + other.precision + 1)
        return _exact(one.whole + other.scale + scale, scale)

    def _modulo(self, one: Size, other: Size) -> DataType:
        scale = max(one.scale, other.scale)
        return _exact(min(one.whole, other.whole) + scale, scale)

    def sum(self, type: DataType) -> DataType | None:
        """Sums of short integers stay short."""
        if type in SIGNED and SIGNED[type] <= 32:
            return INT32
        if isinstance(type, Decimal) and type.precision is not None:
            return Decimal(_MAX_PRECISION, type.scale)
        return super().sum(type)

    def average(self, type: DataType) -> DataType | None:
        """At least six fraction digits."""
        if isinstance(type, Decimal) and type.precision is not None:
            return Decimal(_MAX_PRECISION, max(type.scale, _MIN_ADJUSTED_SCALE))
        return super().average(type)

    def _common_decimals(self, one: Size, other: Size) -> DataType:
        return _exact(*_widened(one, other))


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
