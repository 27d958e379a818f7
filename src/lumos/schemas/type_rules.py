"""Selects the compatibility rule for a changed type.

A pair of types without a rule is breaking for consumers and for storage.
"""

from collections.abc import Callable
from typing import Final

from lumos.model.types import (
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    FLOATS,
    INT64,
    NULL,
    SIGNED,
    UNSIGNED,
    Array,
    Binary,
    DataType,
    Decimal,
    Duration,
    Enum,
    Map,
    String,
    Struct,
    Time,
    Timestamp,
    Union,
    Unknown,
)
from lumos.schemas.rules import BREAKING, COMPATIBLE, RULES, CompatibilityRule

# The decimal digits of integers, by their bits.
_DIGITS_BY_BITS: Final = {8: 3, 16: 5, 32: 10, 64: 19}
# Delta and Spark's Parquet reader require one digit more than 64-bit integers have.
_MIN_DIGITS_FOR_INT64: Final = 20
_MIN_DIGITS_IN_DELTA: Final = 10
_MAX_DECIMAL_DIGITS: Final = 38


def select_type_rule(
    before: DataType, after: DataType, *, is_map_key: bool = False
) -> CompatibilityRule:
    """The rule for a change from one type to another."""
    if isinstance(before, Unknown) or isinstance(after, Unknown):
        return RULES["unknown-type"]
    rules = (rule for select in _SELECTORS if (rule := select(before, after)) is not None)
    rule = next(rules, RULES["unrelated-types"])
    return _as_map_key(rule) if is_map_key else rule


def _as_map_key(value_rule: CompatibilityRule) -> CompatibilityRule:
    """The rule for map keys; Delta and Spark read widened keys like widened values."""
    rule = RULES["map-key"]
    engines = dict(rule.engines)
    if value_rule.consumer is COMPATIBLE and value_rule.storage("delta") is COMPATIBLE:
        engines["delta"] = COMPATIBLE
    if value_rule.storage("parquet") is COMPATIBLE:
        engines["spark"] = COMPATIBLE
    return rule._replace(engines=engines)


def _nulls(before: DataType, after: DataType) -> CompatibilityRule | None:
    if before == NULL:
        return RULES["null-to-type"]
    return RULES["type-to-null"] if after == NULL else None


def _unions(before: DataType, after: DataType) -> CompatibilityRule | None:
    if not isinstance(after, Union) and not isinstance(before, Union):
        return None
    old = set(before.options) if isinstance(before, Union) else {before}
    new = set(after.options) if isinstance(after, Union) else {after}
    if any(isinstance(option, Unknown) for option in old ^ new):
        return RULES["unknown-type"]
    if old == new:
        return RULES["union-reordered"]
    if old < new:
        return RULES["union-widened" if isinstance(before, Union) else "type-to-union"]
    return RULES["union-narrowed" if new < old else "union-changed"]


def _structs(before: DataType, after: DataType) -> CompatibilityRule | None:
    are_nested = isinstance(before, _NESTED), isinstance(after, _NESTED)
    if are_nested == (True, True):
        return RULES[_RULE_OF_NESTED_PAIR.get((type(before), type(after)), "unrelated-types")]
    return RULES["nested-and-scalar"] if any(are_nested) else None


_NESTED: Final = (Array, Map, Struct)
_RULE_OF_NESTED_PAIR: Final[dict[tuple[type[DataType], type[DataType]], str]] = {
    (Struct, Map): "struct-and-map",
    (Map, Struct): "struct-and-map",
    # Structs with unique members are compared member by member.
    (Struct, Struct): "repeated-members",
}


def _strings(before: DataType, after: DataType) -> CompatibilityRule | None:
    match before, after:
        case String(old), String(new):
            is_wider = new is None or (old is not None and new > old)
            return RULES["string-longer" if is_wider else "string-shorter"]
        case (String(), Binary(length)) | (Binary(length), String()):
            rule = RULES["string-and-binary"]
            # Avro converts between strings and bytes, but not values of a fixed length.
            return (
                rule if length is None else rule._replace(engines={**rule.engines, **_BREAKS_AVRO})
            )
        case _, String(length):
            rule = RULES["scalar-to-string"]
            return (
                rule if length is None else rule._replace(engines={**rule.engines, **_BREAKS_SPARK})
            )
        case String(), _:
            return RULES["string-to-other"]
        case _:
            return None


_BREAKS_AVRO: Final = {"avro": BREAKING}
_BREAKS_DELTA: Final = {"delta": BREAKING}
_BREAKS_SPARK: Final = {"spark": BREAKING}
_BREAKS_TABLES: Final = {"iceberg": BREAKING, **_BREAKS_DELTA, **_BREAKS_SPARK}


def _integers(before: DataType, after: DataType) -> CompatibilityRule | None:
    if before in SIGNED and after in SIGNED:
        is_wider = SIGNED[before] < SIGNED[after]
        return RULES["integer-widened" if is_wider else "integer-narrowed"]
    if before in UNSIGNED and after in UNSIGNED:
        is_wider = UNSIGNED[before] < UNSIGNED[after]
        return RULES["unsigned-widened" if is_wider else "integer-narrowed"]
    if before in UNSIGNED and after in SIGNED:
        fits = SIGNED[after] > UNSIGNED[before]
        return RULES["unsigned-to-signed" if fits else "unsigned-to-narrow-signed"]
    if before in SIGNED and after in UNSIGNED:
        return RULES["signed-to-unsigned"]
    return None


def _integer_to_other_number(before: DataType, after: DataType) -> CompatibilityRule | None:
    bits = SIGNED.get(before)
    if bits is None:
        return None
    if isinstance(after, Decimal):
        return _integer_to_decimal(_DIGITS_BY_BITS[bits], after)
    if before == INT64 and after in (FLOAT32, FLOAT64):
        return RULES["int64-to-float"]
    return RULES["integer-to-float64"] if after == FLOAT64 else None


def _integer_to_decimal(digits: int, after: Decimal) -> CompatibilityRule:
    rule = RULES["integer-to-decimal"]
    if after.precision is None:
        return rule
    whole_digits = after.precision - after.scale
    if after.scale < 0 or whole_digits < digits:
        return RULES["integer-to-narrow-decimal"]
    if digits == _DIGITS_BY_BITS[64] and whole_digits < _MIN_DIGITS_FOR_INT64:
        return rule._replace(
            engines={**rule.engines, **_BREAKS_DELTA, **_BREAKS_SPARK},
            rule_notes=_without_delta(rule.rule_notes),
        )
    if whole_digits < _MIN_DIGITS_IN_DELTA:
        # Delta does not widen integers to decimals with so few digits, not even manually.
        return rule._replace(
            engines={**rule.engines, **_BREAKS_DELTA}, rule_notes=_without_delta(rule.rule_notes)
        )
    return _check_table_precision(rule, after.precision)


def _check_table_precision(rule: CompatibilityRule, precision: int) -> CompatibilityRule:
    """The rule, but breaking for table formats if the decimal has more than 38 digits."""
    if precision <= _MAX_DECIMAL_DIGITS:
        return rule
    note = f"Iceberg, Delta and Spark have no more than {_MAX_DECIMAL_DIGITS} digits"
    return rule._replace(
        engines={**rule.engines, **_BREAKS_TABLES},
        rule_notes=(note, *_without_delta(rule.rule_notes)),
    )


def _without_delta(rule_notes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(note for note in rule_notes if not note.startswith("Delta"))


def _floats(before: DataType, after: DataType) -> CompatibilityRule | None:
    if before not in FLOATS:
        return None
    if after in FLOATS:
        if FLOATS[before] > FLOATS[after]:
            return RULES["float-narrowed"]
        return RULES["float-widened"] if before == FLOAT32 else None
    return RULES["float-to-exact"] if _is_exact(after) else None


def _is_exact(type: DataType) -> bool:
    return type in SIGNED or type in UNSIGNED or isinstance(type, Decimal)


def _decimals(before: DataType, after: DataType) -> CompatibilityRule | None:
    if not isinstance(before, Decimal):
        return None
    if not isinstance(after, Decimal):
        is_number = _is_exact(after) or after in FLOATS
        return RULES["decimal-to-other-number"] if is_number else None
    if after.precision is None:
        # Decimals without a precision have any number of digits.
        return RULES["decimal-scale-up"]
    if before.precision is None:
        return RULES["decimal-shrunk"]
    more_digits = after.precision - before.precision
    more_scale = after.scale - before.scale
    if more_scale == 0 and more_digits > 0:
        return _check_table_precision(RULES["decimal-precision-up"], after.precision)
    if more_scale > 0 and more_digits >= more_scale:
        return _check_table_precision(RULES["decimal-scale-up"], after.precision)
    return RULES["decimal-shrunk"]


def _booleans(before: DataType, after: DataType) -> CompatibilityRule | None:
    other = after if before == BOOLEAN else before
    is_number = _is_exact(other) or other in FLOATS
    return RULES["boolean-and-number"] if BOOLEAN in (before, after) and is_number else None


def _times(before: DataType, after: DataType) -> CompatibilityRule | None:
    match before, after:
        case _, Timestamp(_, zoned) if before == DATE:
            return RULES["date-to-zoned-timestamp" if zoned else "date-to-timestamp"]
        case Timestamp(), Timestamp() if before.zoned != after.zoned:
            is_same_unit = before.unit == after.unit
            return RULES["zone-changed" if is_same_unit else "zone-and-unit-changed"]
        case (Timestamp(), Timestamp()) | (Time(), Time()) | (Duration(), Duration()):
            return RULES["unit-changed"]
        case _:
            return None


def _enums(before: DataType, after: DataType) -> CompatibilityRule | None:
    if not isinstance(before, Enum) or not isinstance(after, Enum):
        return None
    old, new = set(before.symbols), set(after.symbols)
    if old == new:
        return RULES["enum-reordered"]
    if new > old:
        return RULES["enum-symbol-added"]
    return RULES["enum-symbol-removed" if new < old else "enum-symbol-replaced"]


_SELECTORS: Final[tuple[Callable[[DataType, DataType], CompatibilityRule | None], ...]] = (
    _nulls,
    _unions,
    _structs,
    _strings,
    _integers,
    _integer_to_other_number,
    _floats,
    _decimals,
    _booleans,
    _times,
    _enums,
)
