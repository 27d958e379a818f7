"""The type system of Lumos, to which the types of all sources are converted.

Each type has a canonical text form, which is stored, compared and displayed; equality, hashing and
pickling are based on it. The parser of that text is in this module, too.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any, Final, Literal, NamedTuple, NoReturn, Self, TypeVar, get_args

from lumos.errors import MisuseError, did_you_mean

Unit = Literal["s", "ms", "us", "ns"]
UNITS: Final[tuple[Unit, ...]] = get_args(Unit)

# Deeper nesting indicates a generated or malicious schema.
MAX_DEPTH: Final = 100


def quoted_name(name: str) -> str:
    """Format a name for canonical text: plain, or in backticks (doubled inside the name)."""
    is_plain = name.isidentifier() and name.isascii()
    return name if is_plain else "`" + name.replace("`", "``") + "`"


def quoted_text(text: str) -> str:
    """The text in single quotes; quotes inside it are doubled."""
    return "'" + text.replace("'", "''") + "'"


class _Frozen:
    """A base class for immutable values, whose equality and hash are based on their text."""

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
    """A type; two types are equal if their canonical texts are equal."""

    __slots__ = ("depth", "text")

    text: str
    depth: int

    def _freeze(self, text: str, *, parts: Iterable["DataType"] = (), **fields: Any) -> None:
        depth = 1 + max((part.depth for part in parts), default=0)
        if depth > MAX_DEPTH:
            raise ValueError(f"A type nests deeper than {MAX_DEPTH} levels.")
        for name, value in {"text": text, "depth": depth, **fields}.items():
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
        return parse_type, (self.text,)


class Simple(DataType):
    """A type without parameters."""

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
    """Text, with its maximum length if declared."""

    __slots__ = ("length",)
    __match_args__ = ("length",)

    length: int | None

    def __init__(self, length: int | None = None) -> None:
        self._freeze(_text_with_length("STRING", length), length=length)


class Binary(DataType):
    """Bytes, with their fixed length if declared."""

    __slots__ = ("length",)
    __match_args__ = ("length",)

    length: int | None

    def __init__(self, length: int | None = None) -> None:
        self._freeze(_text_with_length("BINARY", length), length=length)


def _text_with_length(kind: str, length: int | None) -> str:
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
        self._freeze(f"TIME({_check_unit(unit)})", unit=unit)


class Timestamp(DataType):
    """A point in time, with time zone (`zoned`) or without."""

    __slots__ = ("unit", "zoned")
    __match_args__ = ("unit", "zoned")

    unit: Unit
    zoned: bool

    def __init__(self, unit: Unit = "us", *, zoned: bool = False) -> None:
        kind = "TIMESTAMPTZ" if zoned else "TIMESTAMP"
        self._freeze(f"{kind}({_check_unit(unit)})", unit=unit, zoned=zoned)


class Duration(DataType):
    """A length of time."""

    __slots__ = ("unit",)
    __match_args__ = ("unit",)

    unit: Unit

    def __init__(self, unit: Unit = "us") -> None:
        self._freeze(f"DURATION({_check_unit(unit)})", unit=unit)


def _check_unit(unit: Unit) -> Unit:
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
            f"ARRAY<{_nullability_text(element, element_nullable)}>",
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
            f"MAP<{key.text}, {_nullability_text(value, value_nullable)}>",
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
        text = f"{quoted_name(name)}: {_nullability_text(type, nullable)}"
        fields = {"name": name, "type": type, "nullable": nullable, "text": text}
        for field, value in fields.items():
            object.__setattr__(self, field, value)

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
    """A type that Lumos does not model; `recursive:Name` marks where a type refers to itself."""

    __slots__ = ("name",)
    __match_args__ = ("name",)

    name: str

    def __init__(self, name: str = "") -> None:
        self._freeze(f"UNKNOWN({quoted_text(name)})" if name else "UNKNOWN", name=name)


UNKNOWN: Final = Unknown()


def _nullability_text(type: DataType, nullable: bool) -> str:
    return type.text if nullable else f"{type.text} NOT NULL"


def kind_of(type: DataType) -> str:
    """The kind of a type, the first word of its canonical text: INT64, DECIMAL, STRUCT, ..."""
    match type:
        case Simple(kind):
            return kind
        case Timestamp(_, zoned):
            return "TIMESTAMPTZ" if zoned else "TIMESTAMP"
        case _:
            return type.__class__.__name__.upper()


ItemT = TypeVar("ItemT")

TOKENS: Final = re.compile(
    r"""(?P<space>[^\S\n]+|\#[^\n]*)
      | (?P<newline>\n)
      | (?P<name>`(?:[^`]|``)*`)
      | (?P<string>'(?:[^']|'')*')
      | (?P<number>-?[0-9]+)
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<mark>[<>(),:])
    """,
    re.VERBOSE | re.ASCII,
)
_PARAMETRISED: Final = (
    "DECIMAL", "STRING", "BINARY", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "DURATION",
    "ENUM", "ARRAY", "MAP", "STRUCT", "UNION", "UNKNOWN",
)  # fmt: skip
# Type names of SQL and programming languages, for suggestions in error messages.
_FOREIGN_TYPE_NAMES: Final = {
    "BOOL": "BOOLEAN", "TINYINT": "INT8", "BYTE": "INT8", "SMALLINT": "INT16", "SHORT": "INT16",
    "INT": "INT32", "INTEGER": "INT32", "BIGINT": "INT64", "LONG": "INT64", "REAL": "FLOAT32",
    "FLOAT": "FLOAT32", "DOUBLE": "FLOAT64", "NUMERIC": "DECIMAL", "NUMBER": "DECIMAL",
    "TEXT": "STRING", "VARCHAR": "STRING", "CHAR": "STRING", "BYTES": "BINARY", "BLOB": "BINARY",
    "DATETIME": "TIMESTAMP", "LIST": "ARRAY", "RECORD": "STRUCT", "ROW": "STRUCT",
}  # fmt: skip


class SchemaSyntaxError(MisuseError):
    """Text that is not a type or schema, with the position of the error."""

    def __init__(self, problem: str, *, line: int, column: int) -> None:
        self.problem = problem
        self.line = line
        self.column = column
        super().__init__(f"line {line}, column {column}: {problem}")


class _Token(NamedTuple):
    kind: str
    text: str
    offset: int


def parse_type(text: str) -> DataType:
    """Parse a type in canonical text; case and spacing are ignored."""
    # Cached: stores repeat a few hundred types in millions of fields.
    return _parse_type(text)


@lru_cache(maxsize=65_536)
def _parse_type(text: str) -> DataType:
    reader = TypeReader(text)
    parsed = reader.type()
    reader.expect_end()
    return parsed


class TypeReader:
    """A recursive-descent parser of types in canonical text; schemas are parsed by a subclass."""

    def __init__(self, text: str, *, strict: bool = False) -> None:
        self.text = text
        self.strict = strict
        self.tokens = list(self._tokenise())
        self.position = 0
        self.depth = 0
        self.open_brackets: list[_Token] = []
        self.path = ""

    def _tokenise(self) -> Iterator[_Token]:
        offset = 0
        while offset < len(self.text):
            match = TOKENS.match(self.text, offset)
            if match is None:
                raise self._error(_describe_invalid(self.text[offset]), offset)
            kind = match.lastgroup or ""
            if kind != "space":
                yield _Token(kind, match.group(), offset)
            offset = match.end()
        yield _Token("end", "", len(self.text))

    def _error(self, problem: str, offset: int | None = None) -> SchemaSyntaxError:
        at = self.tokens[self.position].offset if offset is None else offset
        line = self.text.count("\n", 0, at) + 1
        return SchemaSyntaxError(problem, line=line, column=at - self.text.rfind("\n", 0, at))

    def _peek(self) -> _Token:
        # Inside brackets, a line break is whitespace; outside, it ends the field.
        while self.open_brackets and self.tokens[self.position].kind == "newline":
            self.position += 1
        return self.tokens[self.position]

    def _next(self) -> _Token:
        token = self._peek()
        if token.kind != "end":
            self.position += 1
        return token

    def _take(self, mark: str) -> bool:
        token = self._peek()
        if token.text == mark and token.kind == "mark":
            self.position += 1
            if mark in "<(":
                self.open_brackets.append(token)
            elif mark in ">)":
                self.open_brackets.pop()
            return True
        return False

    def _expect(self, mark: str) -> None:
        if not self._take(mark):
            token = self._peek()
            if mark in ">)" and self.tokens[self.position - 1].kind == "newline":
                # Report the opening bracket, since the next line is probably another field.
                opened = self.open_brackets[-1]
                raise self._error(f"this '{opened.text}' is not closed", opened.offset)
            raise self._error(f"expected '{mark}', found {token.text!r}" if token.text.strip() else
                              f"expected '{mark}', found the end of the line")  # fmt: skip

    def _take_words(self, *words: str) -> bool:
        start = self.position
        for word in words:
            token = self._peek()
            if token.kind != "word" or token.text.upper() != word:
                self.position = start
                return False
            self.position += 1
        return True

    def expect_end(self) -> None:
        while self.tokens[self.position].kind == "newline":
            self.position += 1
        if self._peek().kind != "end":
            raise self._error(f"unexpected {self._peek().text!r} after the type")

    def type(self) -> DataType:
        token = self._next()
        if token.kind != "word":
            self.position -= token.kind != "end"
            raise self._error("expected a type")
        kind = token.text.upper()
        if kind in SIMPLE:
            return SIMPLE[kind]
        if kind not in _PARAMETRISED:
            raise self._error(f"no type named '{token.text}'.{_suggestion(kind)}", token.offset)
        if self.depth >= MAX_DEPTH:
            raise self._error(f"a type nests deeper than {MAX_DEPTH} levels", token.offset)
        self.depth += 1
        try:
            parsed = self._parse_parameters(kind)
        except ValueError as problem:
            raise self._error(str(problem).rstrip("."), token.offset) from None
        self.depth -= 1
        return parsed

    def _parse_parameters(self, kind: str) -> DataType:
        match kind:
            case "DECIMAL":
                return Decimal(*self._numbers(max_count=2))
            case "STRING":
                return String(*self._numbers(max_count=1))
            case "BINARY":
                return Binary(*self._numbers(max_count=1))
            case "TIME":
                return Time(self._unit())
            case "TIMESTAMP" | "TIMESTAMPTZ":
                return Timestamp(self._unit(), zoned=kind == "TIMESTAMPTZ")
            case "DURATION":
                return Duration(self._unit())
            case "ENUM":
                return Enum(self._strings())
            case "UNKNOWN":
                names = self._strings() if self._peek().text == "(" else []
                if len(names) > 1:
                    raise self._error("UNKNOWN takes one name")
                return Unknown(names[0]) if names else UNKNOWN
            case "ARRAY":
                self._expect("<")
                with self._inside("[]"):
                    element, nullable = self._nullable_type()
                self._expect(">")
                return Array(element, element_nullable=nullable)
            case "MAP":
                self._expect("<")
                key = self.type()
                self._expect(",")
                with self._inside("{}"):
                    value, nullable = self._nullable_type()
                self._expect(">")
                return Map(key, value, value_nullable=nullable)
            case "STRUCT":
                return Struct(self._list(self._member, self._member_path))
            case _:
                return Union(
                    self._list(self.type, lambda type: f"'{type.text}'", allow_empty=False)
                )

    def _list(
        self, read: Callable[[], ItemT], name: Callable[[ItemT], str], *, allow_empty: bool = True
    ) -> list[ItemT]:
        self._expect("<")
        items: list[ItemT] = []
        if self._take(">"):
            self._reject_empty(allow_empty)
            return items
        names: set[str] = set()
        while True:
            start = self._peek()
            items.append(read())
            self._reject_repeated(name(items[-1]), names, start)
            if not self._take(","):
                self._expect(">")
                return items

    @contextmanager
    def _inside(self, step: str) -> Iterator[None]:
        outside = self.path
        self.path += step
        yield
        self.path = outside

    def _member_path(self, member: Member) -> str:
        return f"the field '{self.path}.{quoted_name(member.name)}'"

    def _reject_empty(self, allowed: bool) -> None:
        if self.strict and not allowed:
            raise self._error("the brackets are empty", self.tokens[self.position - 1].offset)

    def _reject_repeated(self, name: str, names: set[str], start: _Token) -> None:
        if self.strict and name in names:
            raise self._error(f"{name} is listed twice", start.offset)
        names.add(name)

    def _member(self) -> Member:
        name = self._name()
        self._expect(":")
        with self._inside(f".{quoted_name(name)}"):
            type, nullable = self._nullable_type()
        return Member(name, type, nullable=nullable)

    def _nullable_type(self) -> tuple[DataType, bool]:
        type = self.type()
        return type, not self._take_words("NOT", "NULL")

    def _name(self) -> str:
        token = self._next()
        if token.kind == "word":
            return token.text
        if token.kind == "name":
            return token.text[1:-1].replace("``", "`")
        self.position -= token.kind != "end"
        raise self._error("expected a name (put unusual names in `backticks`)")

    def _numbers(self, *, max_count: int) -> list[int]:
        numbers: list[int] = []
        if not self._take("("):
            return numbers
        while True:
            token = self._next()
            if token.kind != "number":
                raise self._error("expected a whole number", token.offset)
            numbers.append(int(token.text))
            if len(numbers) > max_count:
                raise self._error("too many numbers", token.offset)
            if not self._take(","):
                self._expect(")")
                return numbers

    def _unit(self) -> Unit:
        if not self._take("("):
            return "us"
        token = self._next()
        for unit in UNITS:
            if token.text.lower() == unit:
                self._expect(")")
                return unit
        raise self._error(
            f"'{token.text}' is not a unit of time; known: {', '.join(UNITS)}", token.offset
        )

    def _strings(self) -> list[str]:
        self._expect("(")
        strings: list[str] = []
        if self._take(")"):
            self._reject_empty(allowed=False)
            return strings
        names: set[str] = set()
        while True:
            start = self._peek()
            strings.append(self._string())
            self._reject_repeated(f"'{strings[-1]}'", names, start)
            if not self._take(","):
                self._expect(")")
                return strings

    def _string(self) -> str:
        token = self._next()
        if token.kind != "string":
            raise self._error("expected text in 'single quotes'", token.offset)
        return token.text[1:-1].replace("''", "'")


def _describe_invalid(character: str) -> str:
    if character == "'":
        return "this text has no closing quote"
    if character == "`":
        return "this name has no closing backtick"
    could_be_name = character in "-." or character.isalnum()
    hint = "; put a name with such characters in `backticks`" if could_be_name else ""
    return f"unexpected {character!r}{hint}"


def _suggestion(kind: str) -> str:
    if kind in _FOREIGN_TYPE_NAMES:
        return f" Did you mean '{_FOREIGN_TYPE_NAMES[kind]}'?"
    return did_you_mean(kind, [*SIMPLE, *_PARAMETRISED])
