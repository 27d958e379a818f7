"""The type algebra: one small set of values for every type system Lumos meets.

Each type has one canonical text form. It is what the store keeps, what diffs compare and what
people read, so equality, hashing and pickling all go through it.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any, Final, Literal, NoReturn, Self, get_args

Unit = Literal["s", "ms", "us", "ns"]
UNITS: Final[tuple[Unit, ...]] = get_args(Unit)

# Deeper nesting than this is a generated or hostile schema, not one a person meets.
MAX_DEPTH: Final = 100


def quoted_name(name: str) -> str:
    """The name as it stands in text: bare when plain, otherwise in backticks, doubled inside."""
    is_plain = name.isidentifier() and name.isascii()
    return name if is_plain else "`" + name.replace("`", "``") + "`"


def quoted_text(text: str) -> str:
    """The text in single quotes, doubled inside."""
    return "'" + text.replace("'", "''") + "'"


class _Frozen:
    """A value whose equality and hash rest on its text, so nothing in it may change later."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class DataType(_Frozen):
    """A type; two types are equal when their canonical texts are."""

    __slots__ = ("depth", "text")

    text: str
    depth: int

    def _freeze(self, text: str, *, parts: Iterable["DataType"] = (), **facts: Any) -> None:
        depth = 1 + max((part.depth for part in parts), default=0)
        if depth > MAX_DEPTH:
            raise ValueError(f"A type nests deeper than {MAX_DEPTH} levels.")
        for name, value in {"text": text, "depth": depth, **facts}.items():
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if isinstance(other, DataType) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{self.text}>"

    def __reduce__(self) -> tuple[Any, ...]:
        from lumos.model.text import parse_type

        return parse_type, (self.text,)


class Simple(DataType):
    """A type that its kind says all about."""

    __slots__ = ("kind",)
    __match_args__ = ("kind",)

    kind: str

    def __init__(self, kind: str) -> None:
        self._freeze(kind, kind=kind)


BOOLEAN: Final = Simple("BOOLEAN")
INT8: Final = Simple("INT8")
INT16: Final = Simple("INT16")
INT32: Final = Simple("INT32")
INT64: Final = Simple("INT64")
UINT8: Final = Simple("UINT8")
UINT16: Final = Simple("UINT16")
UINT32: Final = Simple("UINT32")
UINT64: Final = Simple("UINT64")
FLOAT16: Final = Simple("FLOAT16")
FLOAT32: Final = Simple("FLOAT32")
FLOAT64: Final = Simple("FLOAT64")
DATE: Final = Simple("DATE")
INTERVAL: Final = Simple("INTERVAL")
UUID: Final = Simple("UUID")
JSON: Final = Simple("JSON")
NULL: Final = Simple("NULL")

SIMPLE: Final = {
    simple.kind: simple
    for simple in (
        BOOLEAN, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64,
        FLOAT16, FLOAT32, FLOAT64, DATE, INTERVAL, UUID, JSON, NULL,
    )
}  # fmt: skip
SIGNED: Final[dict[DataType, int]] = {INT8: 8, INT16: 16, INT32: 32, INT64: 64}
UNSIGNED: Final[dict[DataType, int]] = {UINT8: 8, UINT16: 16, UINT32: 32, UINT64: 64}
FLOATS: Final[dict[DataType, int]] = {FLOAT16: 16, FLOAT32: 32, FLOAT64: 64}


class Decimal(DataType):
    """An exact number; without a precision it is unbounded."""

    __slots__ = ("precision", "scale")
    __match_args__ = ("precision", "scale")

    precision: int | None
    scale: int

    def __init__(self, precision: int | None = None, scale: int = 0) -> None:
        if precision is not None and precision < 1:
            raise ValueError(f"DECIMAL needs a precision of at least 1, not {precision}.")
        if precision is None and scale:
            raise ValueError("An unbounded DECIMAL has no scale.")
        text = "DECIMAL" if precision is None else f"DECIMAL({precision},{scale})"
        self._freeze(text, precision=precision, scale=scale)


class String(DataType):
    """Text, with its longest length where one is declared."""

    __slots__ = ("length",)
    __match_args__ = ("length",)

    length: int | None

    def __init__(self, length: int | None = None) -> None:
        self._freeze(_sized("STRING", length), length=length)


class Binary(DataType):
    """Bytes, with their fixed length where one is declared."""

    __slots__ = ("length",)
    __match_args__ = ("length",)

    length: int | None

    def __init__(self, length: int | None = None) -> None:
        self._freeze(_sized("BINARY", length), length=length)


def _sized(kind: str, length: int | None) -> str:
    if length is not None and length < 1:
        raise ValueError(f"{kind} needs a length of at least 1, not {length}.")
    return kind if length is None else f"{kind}({length})"


STRING: Final = String()
BINARY: Final = Binary()


class Time(DataType):
    """A time of day."""

    __slots__ = ("unit",)
    __match_args__ = ("unit",)

    unit: Unit

    def __init__(self, unit: Unit = "us") -> None:
        self._freeze(f"TIME({_checked(unit)})", unit=unit)


class Timestamp(DataType):
    """A point in time, on a wall clock or (`zoned`) in the world."""

    __slots__ = ("unit", "zoned")
    __match_args__ = ("unit", "zoned")

    unit: Unit
    zoned: bool

    def __init__(self, unit: Unit = "us", *, zoned: bool = False) -> None:
        kind = "TIMESTAMPTZ" if zoned else "TIMESTAMP"
        self._freeze(f"{kind}({_checked(unit)})", unit=unit, zoned=zoned)


class Duration(DataType):
    """A length of time."""

    __slots__ = ("unit",)
    __match_args__ = ("unit",)

    unit: Unit

    def __init__(self, unit: Unit = "us") -> None:
        self._freeze(f"DURATION({_checked(unit)})", unit=unit)


def _checked(unit: Unit) -> Unit:
    if unit not in UNITS:
        raise ValueError(f"'{unit}' is not a unit of time. Known: {', '.join(UNITS)}.")
    return unit


class Enum(DataType):
    """One of a closed set of symbols."""

    __slots__ = ("symbols",)
    __match_args__ = ("symbols",)

    symbols: tuple[str, ...]

    def __init__(self, symbols: Iterable[str]) -> None:
        symbols = tuple(symbols)
        text = f"ENUM({','.join(quoted_text(symbol) for symbol in symbols)})"
        self._freeze(text, symbols=symbols)


class Array(DataType):
    """A list of elements of one type."""

    __slots__ = ("element", "element_nullable")
    __match_args__ = ("element", "element_nullable")

    element: DataType
    element_nullable: bool

    def __init__(self, element: DataType, *, element_nullable: bool = True) -> None:
        self._freeze(
            f"ARRAY<{_required(element, element_nullable)}>",
            parts=(element,),
            element=element,
            element_nullable=element_nullable,
        )


class Map(DataType):
    """Values of one type under keys of another."""

    __slots__ = ("key", "value", "value_nullable")
    __match_args__ = ("key", "value", "value_nullable")

    key: DataType
    value: DataType
    value_nullable: bool

    def __init__(self, key: DataType, value: DataType, *, value_nullable: bool = True) -> None:
        self._freeze(
            f"MAP<{key.text}, {_required(value, value_nullable)}>",
            parts=(key, value),
            key=key,
            value=value,
            value_nullable=value_nullable,
        )


class Member(_Frozen):
    """A named part of a struct."""

    __slots__ = ("name", "nullable", "text", "type")
    __match_args__ = ("name", "type", "nullable")

    name: str
    type: DataType
    nullable: bool
    text: str

    def __init__(self, name: str, type: DataType, *, nullable: bool = True) -> None:
        text = f"{quoted_name(name)}: {_required(type, nullable)}"
        facts = {"name": name, "type": type, "nullable": nullable, "text": text}
        for fact, value in facts.items():
            object.__setattr__(self, fact, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Member, nullable=self.nullable), (self.name, self.type)

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if isinstance(other, Member) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"<{self.text}>"


class Struct(DataType):
    """A record with named members."""

    __slots__ = ("members",)
    __match_args__ = ("members",)

    members: tuple[Member, ...]

    def __init__(self, members: Iterable[Member]) -> None:
        members = tuple(members)
        self._freeze(
            f"STRUCT<{', '.join(member.text for member in members)}>",
            parts=[member.type for member in members],
            members=members,
        )


class Union(DataType):
    """A value of any one of several types."""

    __slots__ = ("options",)
    __match_args__ = ("options",)

    options: tuple[DataType, ...]

    def __init__(self, options: Iterable[DataType]) -> None:
        options = tuple(options)
        text = f"UNION<{', '.join(option.text for option in options)}>"
        self._freeze(text, parts=options, options=options)


class Unknown(DataType):
    """A type outside the algebra, by its own name; `recursive:Name` cuts one that holds itself."""

    __slots__ = ("name",)
    __match_args__ = ("name",)

    name: str

    def __init__(self, name: str = "") -> None:
        self._freeze(f"UNKNOWN({quoted_text(name)})" if name else "UNKNOWN", name=name)


UNKNOWN: Final = Unknown()


def _required(type: DataType, nullable: bool) -> str:
    return type.text if nullable else f"{type.text} NOT NULL"


def kind_of(type: DataType) -> str:
    """The type's kind as its canonical text begins: INT64, DECIMAL, STRUCT, ..."""
    match type:
        case Simple(kind):
            return kind
        case Timestamp(_, zoned):
            return "TIMESTAMPTZ" if zoned else "TIMESTAMP"
        case _:
            return type.__class__.__name__.upper()
