"""Reads the canonical text form of types and schemas; printing lives with the values."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

from lumos.errors import MisuseError, did_you_mean
from lumos.model.schema import Field, Schema
from lumos.model.types import (
    MAX_DEPTH,
    SIMPLE,
    UNITS,
    UNKNOWN,
    Array,
    Binary,
    DataType,
    Decimal,
    Duration,
    Enum,
    Map,
    Member,
    String,
    Struct,
    Time,
    Timestamp,
    Union,
    Unit,
    Unknown,
    quoted_name,
)

Item = TypeVar("Item")

_TOKENS: Final = re.compile(
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
# Words of SQL and of programming languages, so that the error can name the type that was meant.
_FOREIGN: Final = {
    "BOOL": "BOOLEAN", "TINYINT": "INT8", "BYTE": "INT8", "SMALLINT": "INT16", "SHORT": "INT16",
    "INT": "INT32", "INTEGER": "INT32", "BIGINT": "INT64", "LONG": "INT64", "REAL": "FLOAT32",
    "FLOAT": "FLOAT32", "DOUBLE": "FLOAT64", "NUMERIC": "DECIMAL", "NUMBER": "DECIMAL",
    "TEXT": "STRING", "VARCHAR": "STRING", "CHAR": "STRING", "BYTES": "BINARY", "BLOB": "BINARY",
    "DATETIME": "TIMESTAMP", "LIST": "ARRAY", "RECORD": "STRUCT", "ROW": "STRUCT",
}  # fmt: skip


class SchemaSyntaxError(MisuseError):
    """Text that is no type or no schema, with the place where reading stopped."""

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
    """The type whose canonical (or loosely spaced, any-case) text this is."""
    # Estates repeat the same few hundred types in millions of fields.
    return _parse_type(text)


@lru_cache(maxsize=65_536)
def _parse_type(text: str) -> DataType:
    reader = _Reader(text)
    parsed = reader.type()
    reader.expect_end()
    return parsed


def parse_schema(text: str, *, strict: bool = False) -> Schema:
    """The schema written as one field per line.

    A `strict` reader refuses what no person means, although other tools have it: enums and unions
    of nothing, and members, symbols and options that stand twice.
    """
    return _Reader(text, strict=strict).schema()


def comments_in(text: str) -> Iterator[tuple[int, str]]:
    """The comments of a text with their lines, as far as it can be read."""
    offset = line = 0
    while (match := _TOKENS.match(text, offset)) is not None and match.group():
        if match.group().startswith("#"):
            yield line + 1, match.group()
        line += match.group().count("\n")
        offset = match.end()


class _Reader:
    """A recursive-descent reader over the tokens of one text."""

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
            match = _TOKENS.match(self.text, offset)
            if match is None:
                raise self._error(_unreadable(self.text[offset]), offset)
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
        # Inside brackets a line break is only space; outside it ends the field.
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
            found = self._peek()
            if mark in ">)" and self.tokens[self.position - 1].kind == "newline":
                # Whatever stands on the next line is a field of its own.
                opened = self.open_brackets[-1]
                raise self._error(f"this '{opened.text}' is not closed", opened.offset)
            raise self._error(f"expected '{mark}', found {found.text!r}" if found.text.strip() else
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
            built = self._parametrised(kind)
        except ValueError as problem:
            raise self._error(str(problem).rstrip("."), token.offset) from None
        self.depth -= 1
        return built

    def _parametrised(self, kind: str) -> DataType:
        match kind:
            case "DECIMAL":
                return Decimal(*self._numbers(most=2))
            case "STRING":
                return String(*self._numbers(most=1))
            case "BINARY":
                return Binary(*self._numbers(most=1))
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
                return Union(self._list(self.type, lambda type: f"'{type.text}'", empty=False))

    def _list(
        self, read: Callable[[], Item], name: Callable[[Item], str], *, empty: bool = True
    ) -> list[Item]:
        self._expect("<")
        items: list[Item] = []
        if self._take(">"):
            self._refuse_empty(empty)
            return items
        names: set[str] = set()
        while True:
            start = self._peek()
            items.append(read())
            self._refuse_repeated(name(items[-1]), names, start)
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

    def _refuse_empty(self, allowed: bool) -> None:
        if self.strict and not allowed:
            raise self._error(
                "nothing stands between the brackets", self.tokens[self.position - 1].offset
            )

    def _refuse_repeated(self, name: str, names: set[str], start: _Token) -> None:
        if self.strict and name in names:
            raise self._error(f"{name} stands twice", start.offset)
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
        raise self._error("expected a name (odd names stand in `backticks`)")

    def _numbers(self, *, most: int) -> list[int]:
        numbers: list[int] = []
        if not self._take("("):
            return numbers
        while True:
            token = self._next()
            if token.kind != "number":
                raise self._error("expected a whole number", token.offset)
            numbers.append(int(token.text))
            if len(numbers) > most:
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
            self._refuse_empty(allowed=False)
            return strings
        names: set[str] = set()
        while True:
            start = self._peek()
            strings.append(self._string())
            self._refuse_repeated(f"'{strings[-1]}'", names, start)
            if not self._take(","):
                self._expect(")")
                return strings

    def _string(self) -> str:
        token = self._next()
        if token.kind != "string":
            raise self._error("expected text in 'single quotes'", token.offset)
        return token.text[1:-1].replace("''", "'")

    def schema(self) -> Schema:
        fields: list[Field] = []
        names: set[str] = set()
        while (token := self.tokens[self.position]).kind != "end":
            if token.kind == "newline":
                self.position += 1
                continue
            field = self._field()
            if field.name in names:
                raise self._error(f"the field '{field.name}' stands twice", token.offset)
            names.add(field.name)
            fields.append(field)
        return Schema(fields=tuple(fields))

    def _field(self) -> Field:
        name = self._name()
        self.path = quoted_name(name)
        type = self.type()
        clauses: dict[str, bool | str] = {}
        while (token := self._peek()).kind not in ("newline", "end"):
            clause, value = self._clause()
            if clause in clauses:
                raise self._error("the same clause stands twice", token.offset)
            clauses[clause] = value
        return Field(name=name, type=type, **clauses)  # type: ignore[arg-type]

    def _clause(self) -> tuple[str, bool | str]:
        if self._take_words("NOT", "NULL"):
            return "nullable", False
        if self._take_words("KEY"):
            return "key", True
        if self._take_words("PARTITION"):
            return "partition", True
        if self._take_words("DEFAULT"):
            return "default", self._string()
        if self._take_words("COMMENT"):
            return "description", self._string()
        raise self._error(
            f"unexpected {self._peek().text!r}; after the type may stand "
            "NOT NULL, KEY, PARTITION, DEFAULT 'x', COMMENT 'text'"
        )


def _unreadable(character: str) -> str:
    if character == "'":
        return "this text has no closing quote"
    if character == "`":
        return "this name has no closing backtick"
    is_of_name = character in "-." or character.isalnum()
    hint = "; a name with such characters stands in `backticks`" if is_of_name else ""
    return f"unexpected {character!r}{hint}"


def _suggestion(kind: str) -> str:
    if kind in _FOREIGN:
        return f" Did you mean '{_FOREIGN[kind]}'?"
    return did_you_mean(kind, [*SIMPLE, *_PARAMETRISED])
