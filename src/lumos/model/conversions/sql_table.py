"""CREATE TABLE statements of the supported dialects, as schemas.

Reads the names, types, NOT NULL, PRIMARY KEY, DEFAULT and COMMENT of columns, and the columns of
PARTITIONED BY. Other constraints and options do not affect the schema and are skipped. ALTER TABLE
statements that change columns are rejected.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, NoReturn

import msgspec

from lumos.model.conversions.sql_types import Dialect, type_from_sql, type_to_sql
from lumos.model.schema import Field, Schema
from lumos.model.types import SchemaSyntaxError

_TOKENS: Final = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))
      | (?P<string>'(?:[^'\\]|''|\\.)*')
      | (?P<name>"(?:[^"]|"")*"|`(?:[^`]|``)*`)
      | (?P<body>\$(?P<tag>\w*)\$.*?(?:\$(?P=tag)\$|\Z))
      | (?P<word>[^\W\d][\w$]*)
      | (?P<number>\d[\w.]*)
      | (?P<mark>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_OPENING: Final = frozenset("(<[")
_CLOSING: Final = frozenset(")>]")
# Keywords that end the type of a column.
_CLAUSE_KEYWORDS: Final = frozenset((
    "NOT", "NULL", "DEFAULT", "PRIMARY", "UNIQUE", "REFERENCES", "CHECK", "COMMENT", "CONSTRAINT",
    "COLLATE", "GENERATED", "AS", "OPTIONS", "ENCODE", "DISTKEY", "SORTKEY", "IDENTITY",
    "AUTOINCREMENT", "AUTO_INCREMENT", "MASKING", "TAG", "STORAGE", "COMPRESSION", "ON",
    "DEFERRABLE", "INITIALLY", "EXCLUDE", "WITH", "USING", "FIRST", "AFTER",
))  # fmt: skip
# `;` ends a column in ALTER TABLE.
_COLUMN_END: Final = (",", ")", ";")
_TABLE_CONSTRAINTS: Final = {
    "PRIMARY": ("KEY",),
    "FOREIGN": ("KEY",),
    "UNIQUE": ("(",),
    "CHECK": ("(",),
    "EXCLUDE": ("USING", "("),
}
_COLUMN_CHANGES: Final = frozenset({"ADD", "DROP", "ALTER", "RENAME", "MODIFY", "CHANGE"})
_UNQUOTED_FOLDING: Final = {"postgres": str.lower, "snowflake": str.upper}


class SqlTable(NamedTuple):
    """A table as described by a statement; the column names in `unquoted` are case-insensitive.

    `path` is the name with its schema and database.
    """

    name: str
    schema: Schema
    unquoted: frozenset[str] = frozenset()
    path: tuple[str, ...] = ()


class _Token(NamedTuple):
    kind: str
    text: str
    offset: int

    @property
    def word(self) -> str:
        """The token in upper case, for comparison with keywords; empty for a quoted name."""
        return self.text.upper() if self.kind != "name" else ""


class SqlColumn(NamedTuple):
    """A column as written in a statement."""

    name: str
    type: str
    quoted: bool
    offset: int = 0
    nullable: bool = True
    key: bool = False
    partition: bool = False
    default: str | None = None
    description: str | None = None


def tables_from_sql(text: str, dialect: Dialect) -> tuple[SqlTable, ...]:
    """All tables that a text creates; raises SchemaSyntaxError."""
    return SqlTableReader(text, dialect).tables()


def rendered_in_sql(schema: Schema, dialect: Dialect, *, partitions: bool = True) -> Schema:
    """The schema after writing it as a CREATE TABLE statement and reading that statement."""
    return Schema(
        fields=tuple(
            Field(
                name=field.name,
                type=type_from_sql(type_to_sql(field.type, dialect), dialect),
                nullable=field.nullable,
                key=field.key,
                partition=field.partition and partitions,
                default=field.default,
            )
            for field in schema.fields
        )
    )


class SqlTableReader:
    """Reads the statements of one text."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        self.text = text
        self.dialect: Dialect = dialect
        # The tokens read so far. They are read as needed, since most texts that declare no
        # columns fail at one of the first tokens.
        self.tokens: list[_Token] = []
        self._remaining = self._read_tokens()
        self.at = 0

    def _read_tokens(self) -> Iterator[_Token]:
        for match in _TOKENS.finditer(self.text):
            if match.lastgroup != "space":
                yield _Token(match.lastgroup or "", match.group(), match.start())
        yield _Token("end", "", len(self.text))

    def tables(self) -> tuple[SqlTable, ...]:
        found: dict[str, SqlTable] = {}
        while self._peek().kind != "end":
            if self._take("CREATE"):
                table = self._create()
                if table is not None:
                    found[table.name] = table
            elif self._take("ALTER", "TABLE"):
                self._alter(found)
            self._skip_statement()
        return tuple(found.values())

    def _create(self) -> SqlTable | None:
        while self._peek().kind == "word" and self._peek().word != "TABLE":
            if self._next().word in ("VIEW", "INDEX", "FUNCTION", "SCHEMA", "DATABASE", "TYPE"):
                return None
        if not self._take("TABLE"):
            return None
        self._take("IF", "NOT", "EXISTS")
        path = self._table_path()
        name = path[-1]
        if self._peek().text != "(":
            self._fail(f"the table '{name}' is created without a list of columns")
        self._next()
        columns, key = self._columns()
        partitions = self._partitioning()
        return self._table(name, columns, key, partitions)._replace(path=path)

    def _alter(self, found: dict[str, SqlTable]) -> None:
        """Apply a primary key that ALTER TABLE adds; reject changes of columns."""
        self._take("ONLY")
        self._take("IF", "EXISTS")
        name = self._table_path()[-1]
        change = self._peek()
        if self._take("ADD"):
            if self._take("CONSTRAINT"):
                self._name()
            if self._take("PRIMARY", "KEY"):
                key = self._names_in_brackets()
                if name in found:
                    found[name] = _with_key(found[name], key)
                return
            if self._peek().word in _TABLE_CONSTRAINTS:
                return
        elif self._take("ALTER"):
            self._take("COLUMN")
            self._name()
            if self._take("SET", "DEFAULT") or self._take("ADD", "GENERATED"):
                return
        if change.word in _COLUMN_CHANGES:
            self._fail(
                f"the columns of '{name}' are changed by ALTER TABLE; write the complete "
                "CREATE TABLE instead",
                change.offset,
            )

    def _columns(self) -> tuple[list[SqlColumn], list[str]]:
        columns: list[SqlColumn] = []
        key: list[str] = []
        while True:
            if self._is_table_constraint():
                if self._take("CONSTRAINT"):
                    self._name()
                if self._take("PRIMARY", "KEY"):
                    key = self._names_in_brackets()
            elif self._peek().word == "LIKE":
                self._fail("LIKE copies the columns of another table, which is not known here")
            else:
                columns.append(self._column())
            if self._skip_to(",)") == ")":
                return columns, key

    def _is_table_constraint(self) -> bool:
        first, second = self._peek(), self._peek(1)
        if first.word == "CONSTRAINT":
            return self._peek(2).word in _TABLE_CONSTRAINTS
        return second.word in _TABLE_CONSTRAINTS.get(first.word, ())

    def _column(self) -> SqlColumn:
        first = self._peek()
        column = SqlColumn(self._name(), self._type(), first.kind == "name", first.offset)
        while self._peek().text not in _COLUMN_END and self._peek().kind != "end":
            column = self._clause(column)
        return column

    def _clause(self, column: SqlColumn) -> SqlColumn:
        if self._take("NOT", "NULL"):
            return column._replace(nullable=False)
        if self._take("PRIMARY", "KEY"):
            return column._replace(key=True, nullable=False)
        if self._take("DEFAULT"):
            return column._replace(default=self._expression())
        if self._peek().word == "COMMENT" and self._peek(1).kind == "string":
            self._next()
            return column._replace(description=_unquote(self._next().text))
        if self._peek().word == "OPTIONS":
            return column._replace(description=self._bigquery_description())
        self._skip_one()
        return column

    def _type(self) -> str:
        """Return the text of the type at the current position."""
        first = last = self._peek()
        depth = 0
        while (token := self._peek()).kind != "end":
            if depth == 0 and (token.text in _COLUMN_END or self._ends_type(token)):
                break
            depth += (token.text in _OPENING) - (token.text in _CLOSING)
            last = self._next()
        if self._peek() is first:
            self._fail("expected a type")
        return self.text[first.offset : last.offset + len(last.text)]

    def _ends_type(self, token: _Token) -> bool:
        if token.kind != "word" or token.word not in _CLAUSE_KEYWORDS:
            return False
        zone = (self._peek(1).word, self._peek(2).word)
        return not (token.word == "WITH" and zone[0] in ("TIME", "LOCAL") and zone[1])

    def _expression(self) -> str:
        """Return the text of a default: a value or function call, including casts after it."""
        start = self._peek()
        if start.kind == "string" and self._peek(1).text != ":":
            return _unquote(self._next().text)
        end = start.offset
        while (token := self._peek()).kind != "end" and token.text not in _COLUMN_END:
            if token.kind == "word" and token.word in _CLAUSE_KEYWORDS and end > start.offset:
                break
            self._skip_one()
            end = self.tokens[self.at - 1].offset + len(self.tokens[self.at - 1].text)
        return self.text[start.offset : end]

    def _bigquery_description(self) -> str | None:
        self._next()
        depth = 0
        description = None
        while (token := self._next()).kind != "end":
            depth += (token.text in _OPENING) - (token.text in _CLOSING)
            if token.word == "DESCRIPTION" and self._peek().text == "=":
                description = _unquote(self._peek(1).text)
            if depth == 0:
                break
        return description

    def _partitioning(self) -> list[SqlColumn]:
        """The partition columns in the rest of the statement. Those with a type are new columns."""
        partitions: list[SqlColumn] = []
        while (token := self._peek()).kind != "end" and token.text != ";":
            if self._take("PARTITIONED", "BY", "("):
                while True:
                    first = self._peek()
                    name = self._name()
                    is_typed = self._peek().text not in (",", ")", "(")
                    typed = self._type() if is_typed else ""
                    if self._peek().text != "(":
                        column = SqlColumn(
                            name, typed, first.kind == "name", first.offset, partition=True
                        )
                        if typed and self._peek().word == "COMMENT":
                            column = self._clause(column)
                        partitions.append(column)
                    if self._skip_to(",)") == ")":
                        break
            elif self._take("PARTITION", "BY"):
                if self._peek().word in ("RANGE", "LIST", "HASH"):
                    self._next()
                    partitions += [SqlColumn(each, "", False) for each in self._names_in_brackets()]
                elif self._peek(1).text != "(":
                    quoted = self._peek().kind == "name"
                    partitions.append(SqlColumn(self._name(), "", quoted))
            else:
                self._skip_one()
        return partitions

    def _table(
        self, name: str, columns: list[SqlColumn], key: list[str], partitions: list[SqlColumn]
    ) -> SqlTable:
        columns = [*columns, *(each for each in partitions if each.type)]
        names = {self._folded(each.name, each.quoted) for each in partitions}
        keys = {each.casefold() for each in key}
        fields: dict[str, Field] = {}
        for each in columns:
            field = self._field(each)
            if field.name in fields:
                self._fail(f"the column '{field.name}' is listed twice", each.offset)
            if field.name in names:
                field = msgspec.structs.replace(field, partition=True)
            if field.name.casefold() in keys:
                field = msgspec.structs.replace(field, key=True, nullable=False)
            fields[field.name] = field
        unquoted = frozenset(self._folded(each.name, False) for each in columns if not each.quoted)
        return SqlTable(name, Schema(fields=tuple(fields.values())), unquoted)

    def _field(self, column: SqlColumn) -> Field:
        return Field(
            name=self._folded(column.name, column.quoted),
            type=type_from_sql(column.type, self.dialect),
            nullable=column.nullable,
            key=column.key,
            partition=column.partition,
            default=column.default,
            description=column.description,
            native_type=" ".join(column.type.split()),
        )

    def _folded(self, name: str, quoted: bool) -> str:
        fold = _UNQUOTED_FOLDING.get(self.dialect)
        return name if quoted or fold is None else fold(name)

    def _table_path(self) -> tuple[str, ...]:
        """The parts of a name such as `db.sales.orders`."""
        parts = [self._name()]
        while self._peek().text == ".":
            self._next()
            parts.append(self._name())
        if self.dialect == "bigquery":
            # BigQuery quotes a name with all its parts.
            parts = [part for each in parts for part in each.split(".")]
        return tuple(parts)

    def _name(self) -> str:
        token = self._peek()
        if token.kind not in ("word", "name"):
            self._fail(f"expected a name, found {token.text!r}" if token.text else "unexpected end")
        self._next()
        return _unquote(token.text) if token.kind == "name" else token.text

    def _names_in_brackets(self) -> list[str]:
        if self._peek().text != "(":
            self._fail("expected '('")
        self._next()
        names = []
        while True:
            names.append(self._name())
            if self._skip_to(",)") == ")":
                return names

    def _skip_to(self, marks: str) -> str:
        """Skip to and past the next of these characters outside of brackets; return it."""
        while True:
            token = self._peek()
            if token.kind == "end":
                self._fail("unexpected end: a bracket is not closed")
            if token.kind == "mark" and token.text in marks:
                self._next()
                return token.text
            self._skip_one()

    def _skip_one(self) -> None:
        """Skip one token, or everything inside round brackets."""
        depth = 0
        while (token := self._next()).kind != "end":
            depth += (token.text == "(") - (token.text == ")")
            if depth <= 0:
                return

    def _skip_statement(self) -> None:
        while (token := self._next()).kind != "end" and token.text != ";":
            pass

    def _peek(self, ahead: int = 0) -> _Token:
        position = self.at + ahead
        while len(self.tokens) <= position and (token := next(self._remaining, None)) is not None:
            self.tokens.append(token)
        return self.tokens[min(position, len(self.tokens) - 1)]

    def _next(self) -> _Token:
        token = self._peek()
        self.at += token.kind != "end"
        return token

    def _take(self, *words: str) -> bool:
        if any(self._peek(ahead).word != word for ahead, word in enumerate(words)):
            return False
        self.at += len(words)
        return True

    def _fail(self, problem: str, offset: int | None = None) -> NoReturn:
        at = self._peek().offset if offset is None else offset
        line = self.text.count("\n", 0, at) + 1
        raise SchemaSyntaxError(problem, line=line, column=at - self.text.rfind("\n", 0, at))


def _with_key(table: SqlTable, key: Iterable[str]) -> SqlTable:
    names = {name.casefold() for name in key}
    return table._replace(schema=Schema(fields=tuple(_with_key_fields(table.schema.fields, names))))


def _with_key_fields(fields: Iterable[Field], names: set[str]) -> Iterator[Field]:
    for field in fields:
        is_key = field.name.casefold() in names
        yield msgspec.structs.replace(field, key=True, nullable=False) if is_key else field


def _unquote(text: str) -> str:
    mark = text[:1]
    return text[1:-1].replace(mark * 2, mark) if mark in "'\"`" and mark else text
