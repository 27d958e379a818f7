"""The rules for a type becoming another, engine by engine.

A pair that no rule names is breaking on both axes. A conditional pair depends on how a column is
used; without that knowledge it is undetermined.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from lumos.model.change import Verdict
from lumos.model.types import (
    BOOLEAN,
    DATE,
    FLOAT64,
    FLOATS,
    INT64,
    NULL,
    SIGNED,
    STRING,
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

_DECIMAL_DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 20}


class Judgement(NamedTuple):
    """A rule's verdicts: the consumer's, and for storage one per engine or one for all."""

    rule: str
    consumer: Verdict
    safe_in: frozenset[str] = frozenset()
    breaks_in: frozenset[str] = frozenset()
    any_storage: Verdict | None = None
    flags: tuple[str, ...] = ()
    extra_notes: tuple[str, ...] = ()

    def storage(self, engine: str) -> Verdict:
        """The storage verdict where `engine` reads the files; unnamed engines follow consumers."""
        if self.any_storage is not None:
            return self.any_storage
        if engine in self.safe_in:
            return Verdict.COMPATIBLE
        return Verdict.BREAKING if engine in self.breaks_in else self.consumer

    @property
    def notes(self) -> tuple[str, ...]:
        """Where engines disagree, in words."""
        if not (self.safe_in and self.breaks_in):
            return self.extra_notes
        safe = ", ".join(_TITLES[engine] for engine in _TITLES if engine in self.safe_in)
        breaks = ", ".join(_TITLES[engine] for engine in _TITLES if engine in self.breaks_in)
        return (f"safe in {safe}, breaks {breaks}", *self.extra_notes)


_TITLES: Final = {"avro": "Avro", "iceberg": "Iceberg v2", "delta": "Delta", "spark": "Spark"}
_ENGINES: Final = frozenset(_TITLES)


def _engines(names: str) -> frozenset[str]:
    return frozenset(names.split())


def _rule(
    rule: str, consumer: Verdict, *, safe: str = "", notes: tuple[str, ...] = ()
) -> Judgement:
    safe_in = _engines(safe)
    return Judgement(rule, consumer, safe_in, _ENGINES - safe_in, extra_notes=notes)


def judge_types(before: DataType, after: DataType, *, is_map_key: bool = False) -> Judgement:
    """The verdicts on a type that became another one."""
    if isinstance(before, Unknown) or isinstance(after, Unknown):
        return Judgement("unknown-type", Verdict.UNDETERMINED)
    for rules in _FAMILIES:
        judgement = rules(before, after)
        if judgement is not None:
            break
    else:
        judgement = _rule("unrelated-types", Verdict.BREAKING)
    return _as_map_key(judgement) if is_map_key else judgement


def _as_map_key(judgement: Judgement) -> Judgement:
    widens = judgement.consumer is Verdict.COMPATIBLE
    safe = {"delta"} & judgement.safe_in if widens else frozenset()
    return _rule("map-key", Verdict.BREAKING, safe=" ".join(safe | ({"spark"} & judgement.safe_in)))


def _nulls(before: DataType, after: DataType) -> Judgement | None:
    if before == NULL:
        return _rule("null-to-type", Verdict.COMPATIBLE, safe="avro iceberg delta spark")
    if after == NULL:
        return _rule("type-to-null", Verdict.BREAKING)
    return None


def _unions(before: DataType, after: DataType) -> Judgement | None:
    if not isinstance(after, Union) and not isinstance(before, Union):
        return None
    old = set(before.options) if isinstance(before, Union) else {before}
    new = set(after.options) if isinstance(after, Union) else {after}
    if old == new:
        return Judgement("union-reordered", Verdict.INFORMATIONAL)
    if old < new:
        return Judgement("union-widened", Verdict.BREAKING, any_storage=Verdict.COMPATIBLE)
    if new < old:
        return Judgement("union-narrowed", Verdict.COMPATIBLE, any_storage=Verdict.BREAKING)
    return _rule("union-changed", Verdict.BREAKING)


def _integers(before: DataType, after: DataType) -> Judgement | None:
    if before in SIGNED and after in SIGNED:
        return _widening(SIGNED[before] < SIGNED[after])
    if before in UNSIGNED and after in UNSIGNED:
        return _widening(UNSIGNED[before] < UNSIGNED[after])
    if before in UNSIGNED and after in SIGNED:
        fits = SIGNED[after] > UNSIGNED[before]
        return Judgement("unsigned-to-signed", Verdict.COMPATIBLE if fits else Verdict.BREAKING)
    if before in SIGNED and after in UNSIGNED:
        return _rule("signed-to-unsigned", Verdict.BREAKING)
    return None


def _widening(wider: bool) -> Judgement:
    if wider:
        return _rule("integer-widened", Verdict.COMPATIBLE, safe="avro iceberg delta spark")
    return _rule("integer-narrowed", Verdict.BREAKING)


def _integer_to_other_number(before: DataType, after: DataType) -> Judgement | None:
    bits = SIGNED.get(before)
    if bits is None:
        return None
    if isinstance(after, Decimal):
        whole_digits = None if after.precision is None else after.precision - after.scale
        if whole_digits is None or whole_digits >= _DECIMAL_DIGITS[bits]:
            return _rule("integer-to-decimal", Verdict.COMPATIBLE, safe="delta spark")
        return _rule("integer-to-narrow-decimal", Verdict.BREAKING)
    if before == INT64 and after in FLOATS:
        return _rule(
            "int64-to-float", Verdict.BREAKING, safe="avro spark", notes=("lossy in Spark",)
        )
    if after == FLOAT64:
        return _rule(
            "integer-to-float64",
            Verdict.UNDETERMINED,
            safe="avro spark",
            notes=("Delta widens it only by hand", "breaking as a key, in a join or a group"),
        )
    return None


def _floats(before: DataType, after: DataType) -> Judgement | None:
    if before not in FLOATS or after not in FLOATS:
        return None
    if FLOATS[before] < FLOATS[after]:
        return _rule(
            "float-widened",
            Verdict.COMPATIBLE,
            safe="avro iceberg delta spark",
            notes=("comparisons for equality may change",),
        )
    return _rule("float-narrowed", Verdict.BREAKING)


def _decimals(before: DataType, after: DataType) -> Judgement | None:
    if not isinstance(before, Decimal) or not isinstance(after, Decimal):
        return None
    if after.precision is None:
        return _rule("decimal-unbounded", Verdict.COMPATIBLE)
    if before.precision is None:
        return _rule("decimal-shrunk", Verdict.BREAKING)
    more_digits = after.precision - before.precision
    more_scale = after.scale - before.scale
    if more_scale == 0 and more_digits > 0:
        return _rule("decimal-precision-up", Verdict.COMPATIBLE, safe="iceberg delta spark")
    if more_scale > 0 and more_digits >= more_scale:
        return _rule("decimal-scale-up", Verdict.UNDETERMINED, safe="delta spark")
    return _rule("decimal-shrunk", Verdict.BREAKING)


def _strings(before: DataType, after: DataType) -> Judgement | None:
    if isinstance(before, String) and isinstance(after, String):
        wider = after.length is None or (before.length is not None and after.length > before.length)
        if wider:
            return Judgement("string-longer", Verdict.COMPATIBLE)
        return Judgement("string-shorter", Verdict.UNDETERMINED, breaks_in=frozenset({"spark"}))
    if {type(before), type(after)} == {String, Binary}:
        return _rule("string-and-binary", Verdict.BREAKING, safe="avro")
    if after == STRING and _is_scalar(before):
        return _rule(
            "scalar-to-string",
            Verdict.BREAKING,
            safe="spark",
            notes=("compatible where every use casts",),
        )
    return None


def _is_scalar(type: DataType) -> bool:
    return not isinstance(type, Array | Map | Struct | Union)


def _times(before: DataType, after: DataType) -> Judgement | None:
    match before, after:
        case _, Timestamp(_, zoned) if before == DATE:
            if zoned:
                return _rule("date-to-zoned-timestamp", Verdict.BREAKING, safe="spark")
            return _rule(
                "date-to-timestamp",
                Verdict.UNDETERMINED,
                safe="delta spark",
                notes=("safe in Iceberg v3",),
            )
        case Timestamp(), Timestamp() if before.zoned != after.zoned:
            return _rule("zone-changed", Verdict.BREAKING, safe="spark")
        case (Timestamp(), Timestamp()) | (Time(), Time()) | (Duration(), Duration()):
            return _rule(
                "unit-changed",
                Verdict.BREAKING,
                notes=("silently wrong in Avro", "compatible where the reader normalises units"),
            )
        case _:
            return None


def _enums(before: DataType, after: DataType) -> Judgement | None:
    if not isinstance(before, Enum) or not isinstance(after, Enum):
        return None
    old, new = set(before.symbols), set(after.symbols)
    if old == new:
        return Judgement("enum-reordered", Verdict.INFORMATIONAL)
    storage = Verdict.BREAKING if old - new else Verdict.COMPATIBLE
    if new - old:
        return Judgement("enum-symbol-added", Verdict.UNDETERMINED, any_storage=storage)
    return Judgement("enum-symbol-removed", Verdict.COMPATIBLE, any_storage=storage)


def _booleans(before: DataType, after: DataType) -> Judgement | None:
    return _rule("boolean-and-other", Verdict.BREAKING) if BOOLEAN in (before, after) else None


_FAMILIES: Final[tuple[Callable[[DataType, DataType], Judgement | None], ...]] = (
    _nulls,
    _unions,
    _integers,
    _integer_to_other_number,
    _floats,
    _decimals,
    _strings,
    _times,
    _enums,
    _booleans,
)
