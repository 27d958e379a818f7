"""Reads the type texts of SQL catalogs, such as `struct<a:array<int>>` or `numeric(10,2)[]`.

sqlglot is not used here: it reads `struct<a-b:int>` as an empty struct, `integer ARRAY` as an
integer and `bit varying(5)` as a bit, all without an error, and rejects `uniontype` and enums.
"""

import re
from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from lumos.model.type_path import TOO_DEEP
from lumos.model.types import MAX_DEPTH, Array, DataType, Map, Member, Struct, Union

Dialect = Literal["postgres", "snowflake", "bigquery", "hive"]

# Clauses that may follow a type and are not part of its name.
_CLAUSE_KEYWORD: Final = r"(?:not|null|comment|options|collate|default)\b"
_WORD: Final = r"[^\W\d][\w$]*"
_STRING: Final = r"'(?:[^'\\]|''|\\.)*'"
_FLAGS: Final = re.IGNORECASE | re.DOTALL

_SPACE: Final = re.compile(r"\s*")
_PLAIN_NAME: Final = re.compile(_WORD)
# Hive's metastore writes names unquoted, with any characters.
_BARE_HIVE_NAME: Final = re.compile(r"[^:<>,`]+(?=:)")
_NOT_NULL: Final = re.compile(r"not\s+null\b", _FLAGS)
_COMMENT: Final = re.compile(rf"(?:comment|collate)\s*{_STRING}", _FLAGS)
_OPTIONS: Final = re.compile(r"options\s*(?=\()", _FLAGS)
_DIMENSION: Final = re.compile(r"\[\s*\d*\s*\]")
_NUMBERS: Final = re.compile(r"\(\s*-?\d{1,19}\s*(?:,\s*-?\d{1,19}\s*)*\)", re.ASCII)


class _Grammar(NamedTuple):
    """The patterns of a dialect: quoted names, names of types, and types that contain others."""

    quoted: re.Pattern[str]
    words: re.Pattern[str]
    skipped: re.Pattern[str]
    containers: frozenset[str]


def _grammar(quoted: str, *containers: str) -> _Grammar:
    word = f"(?:(?!{_CLAUSE_KEYWORD}){_WORD}|{quoted})"
    return _Grammar(
        quoted=re.compile(quoted, _FLAGS),
        words=re.compile(rf"{word}(?:\s*\.\s*{word})*(?:\s+(?!{_CLAUSE_KEYWORD}){_WORD})*", _FLAGS),
        skipped=re.compile(rf"{quoted}|{_STRING}|[^<>()`'\"]+|.", _FLAGS),
        containers=frozenset(containers),
    )


_GRAMMARS: Final[dict[Dialect, _Grammar]] = {
    "postgres": _grammar(r'"(?:[^"]|"")*"'),
    "snowflake": _grammar(r'"(?:[^"]|"")*"', "array(", "map(", "object("),
    "bigquery": _grammar(r"`(?:[^`\\]|\\.)*`", "array<", "struct<"),
    "hive": _grammar(r"`(?:[^`]|``)*`", "array<", "map<", "struct<", "uniontype<"),
}


class SqlTypeName(NamedTuple):
    """A type's name in lower case, the numbers in its brackets, and its original text."""

    words: str
    numbers: tuple[int, ...] | None
    text: str


class UnreadableType(Exception):
    """A text that does not match its dialect's grammar; the conversion catches this error."""


def quoted(name: str, dialect: Dialect) -> str:
    """The name in the quotes of the dialect."""
    if dialect == "bigquery":
        return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"
    mark = "`" if dialect == "hive" else '"'
    return mark + name.replace(mark, mark * 2) + mark


def _unquote(text: str, dialect: Dialect) -> str:
    if dialect == "bigquery":
        return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)
    return text[1:-1].replace(text[0] * 2, text[0])


class SqlTypeReader:
    """Reads one type text; `scalar` converts types that contain no others."""

    def __init__(
        self, text: str, dialect: Dialect, scalar: Callable[[SqlTypeName], DataType]
    ) -> None:
        self.text = text
        self.dialect: Dialect = dialect
        self.scalar = scalar
        self.at = 0
        self.grammar = _GRAMMARS[dialect]

    def whole(self) -> DataType:
        """Return the type if the text contains nothing else."""
        type = self._type(1)
        self._take(_SPACE)
        if self.at < len(self.text):
            raise UnreadableType(self.text)
        return type

    def _take(self, pattern: re.Pattern[str]) -> str | None:
        match = pattern.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        return match.group()

    def _take_mark(self, marks: str) -> str:
        """Consume and return the next character if it is one of `marks`, else return ""."""
        self._take(_SPACE)
        character = self.text[self.at : self.at + 1]
        if not character or character not in marks:
            return ""
        self.at += 1
        return character

    def _expect(self, marks: str) -> str:
        mark = self._take_mark(marks)
        if not mark:
            raise UnreadableType(self.text)
        return mark

    def _type(self, depth: int) -> DataType:
        self._take(_SPACE)
        start = self.at
        words = self._take(self.grammar.words)
        if words is None:
            raise UnreadableType(self.text)
        end = self.at
        opening = self._take_mark("<(")
        if words.lower() + opening in self.grammar.containers:
            if depth >= MAX_DEPTH:
                self._skip_brackets()
                return TOO_DEEP
            return self._container(words.lower(), depth + 1)
        self.at = end
        type = self._scalar(words, opening, start)
        return self._array_of(type, depth) if self.dialect == "postgres" else type

    def _scalar(self, words: str, opening: str, start: int) -> DataType:
        numbers: tuple[int, ...] | None = ()
        if opening:
            before = self.at
            self._take_mark(opening)
            self._skip_brackets()
            brackets = self.text[before : self.at].strip()
            is_numeric = _NUMBERS.fullmatch(brackets)
            numbers = tuple(map(int, brackets[1:-1].split(","))) if is_numeric else None
            end = self.at
            self._take(_SPACE)
            rest = self._take(self.grammar.words)
            words, self.at = (f"{words} {rest}", self.at) if rest else (words, end)
        text = self.text[start : self.at]
        return self.scalar(SqlTypeName(" ".join(words.lower().split()), numbers, text))

    def _skip_brackets(self) -> None:
        """Skip to the end of the bracket that was just consumed."""
        open_brackets = 1
        while open_brackets:
            token = self._take(self.grammar.skipped)
            if token is None:
                raise UnreadableType(self.text)
            open_brackets += (token in "<(") - (token in ">)")

    def _array_of(self, type: DataType, depth: int) -> DataType:
        dimensions = 0
        while self._take_mark("["):
            self.at -= 1
            if self._take(_DIMENSION) is None:
                raise UnreadableType(self.text)
            dimensions += 1
        if dimensions > MAX_DEPTH - depth:
            type, dimensions = TOO_DEEP, MAX_DEPTH - depth
        for _ in range(dimensions):
            type = Array(type)
        return type

    def _container(self, kind: str, depth: int) -> DataType:
        match kind:
            case "array":
                element, nullable = self._nullable_type(depth)
                self._expect(">)")
                return Array(element, element_nullable=nullable)
            case "map":
                key = self._type(depth)
                self._expect(",")
                value, nullable = self._nullable_type(depth)
                self._expect(">)")
                return Map(key, value, value_nullable=nullable)
            case "uniontype":
                options: list[DataType] = []
                while not self._take_mark(">"):
                    if options:
                        self._expect(",")
                    options.append(self._type(depth))
                return Union(options)
            case _:
                return self._struct(depth)

    def _struct(self, depth: int) -> DataType:
        members: list[Member] = []
        while not self._take_mark(">)"):
            if members:
                self._expect(",")
            name = self._member_name(len(members) + 1)
            type, nullable = self._nullable_type(depth)
            members.append(Member(name, type, nullable=nullable))
        return Struct(members)

    def _nullable_type(self, depth: int) -> tuple[DataType, bool]:
        type = self._type(depth)
        nullable = True
        while True:
            self._take(_SPACE)
            if self._take(_NOT_NULL):
                nullable = False
            elif self._take(_OPTIONS) is not None:
                self._expect("(")
                self._skip_brackets()
            elif self._take(_COMMENT) is None:
                return type, nullable

    def _member_name(self, position: int) -> str:
        self._take(_SPACE)
        start = self.at
        name = self._take(self.grammar.quoted)
        if name is not None:
            name = _unquote(name, self.dialect)
        elif self.dialect == "hive":
            name = (self._take(_BARE_HIVE_NAME) or "").strip()
        else:
            name = self._take(_PLAIN_NAME)
        if self.dialect == "hive":
            self._expect(":")
        elif self.dialect == "bigquery" and self._take_mark(",<(>"):
            # What was read as the name is the type of a member without a name: read it again.
            self.at, name = start, f"_field_{position}"
        if name is None:
            raise UnreadableType(self.text)
        return name


DIALECT_OF_PLATFORM: Final[dict[str, Dialect]] = {
    "postgres": "postgres",
    "redshift": "postgres",
    "snowflake": "snowflake",
    "bigquery": "bigquery",
    "hive": "hive",
}
# Tried in this order if the dialect is unknown, starting with the dialect with most types.
GUESSED_DIALECTS: Final[tuple[Dialect, ...]] = ("hive", "postgres", "snowflake", "bigquery")
