"""A statement that its own dialect cannot parse, parsed in another one that reads it alike."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from lumos.lineage.sql.names import dialect_named
from lumos.lineage.sql.statements import is_statement
from lumos.lineage.sql.tokens import moved, tokenized

# The most widely used first; the first that parses a statement is taken.
_ORDER: Final = (
    "spark", "bigquery", "snowflake", "postgres", "duckdb", "mysql", "tsql", "oracle", "trino",
    "clickhouse", "redshift", "hive", "sqlite", "databricks", "teradata", "presto", "athena",
    "doris", "starrocks", "singlestore", "exasol", "dremio", "drill", "druid", "materialize",
    "risingwave", "fabric", "dune", "",
)  # fmt: skip
_MARKS: Final = ('"', "`", "[", "#", "//")
_ESCAPE: Final = "\\"
# [order id], but neither [1, 2] nor a[1].
_BRACKETED_NAME: Final = re.compile(r"(?<![\w\])])\[[^\W\d][\w $#@-]*\]")


class OtherReading(NamedTuple):
    """The name of the dialect that parses a statement, and what it makes of it."""

    dialect: str
    tokens: Sequence[Token]
    nodes: Sequence[exp.Expr | None]


def parse_otherwise(
    text: str, words: Sequence[Token], own: Dialect, *, first: str | None = None
) -> OtherReading | None:
    """What another dialect makes of a statement, of which these are its own dialect's words.

    The dialect `first` is tried before all others.
    """
    start, end = words[0].start, words[-1].end + 1
    lines = text.count("\n", 0, start)
    plain, in_backticks = text[start:end], _in_backticks(text, words)
    for name in dict.fromkeys((*([] if first is None else [first]), *_ORDER)):
        dialect = dialect_named(name)
        needs_backticks = _meaning(dialect, '"') == "string" and _meaning(dialect, "`") == "name"
        statement = in_backticks if needs_backticks else plain
        if not _read_alike(statement, own, dialect) or _differ_in_escapes(statement, own, dialect):
            continue
        try:
            tokens = list(moved(tokenized(statement, dialect), start, lines))
            nodes = dialect.parser().parse(tokens, text)
        except SqlglotError:
            continue
        found = [node for node in nodes if node is not None]
        if found and all(map(_is_understood, found)):
            return OtherReading(name, tokens, nodes)
    return None


def tokenize_otherwise(text: str, own: Dialect) -> tuple[Dialect, list[Token]] | None:
    """The dialect that can tell the words of a text which its own cannot, and these words."""
    for dialect in map(dialect_named, _ORDER):
        if not _read_alike(text, own, dialect):
            continue
        try:
            return dialect, tokenized(text, dialect)
        except SqlglotError:
            continue
    return None


def separate_dotted_names(node: exp.Expr, text: str, own: Dialect) -> None:
    """Reads FROM `lake.t` as the table t of lake, as BigQuery does.

    Only where the script's own dialect gives backticks no meaning.
    """
    if _meaning(own, "`") == "name":
        return
    tables: list[exp.Table | exp.Column] = [*node.find_all(exp.Table)]
    for each in [*tables, *node.find_all(exp.Column)]:
        is_table = isinstance(each, exp.Table)
        keys = ("this", "db", "catalog") if is_table else ("table", "db", "catalog")
        names = each.parts if is_table else each.parts[:-1]
        separated = [piece for name in names for piece in _pieces(name, text)]
        if len(names) < len(separated) <= len(keys):
            for key, piece in zip(keys, reversed(separated), strict=False):
                each.set(key, piece)


def _pieces(name: exp.Expr, text: str) -> list[exp.Expr]:
    start = name.meta.get("start")
    parts = name.name.split(".")
    # The dots of a path separate no names.
    if start is None or text[start] != "`" or "/" in name.name or not all(parts):
        return [name]
    pieces = [name.copy() for _ in parts]
    for piece, part in zip(pieces, parts, strict=True):
        piece.set("this", part)
    return pieces


def _is_understood(node: exp.Expr) -> bool:
    return is_statement(node) and not isinstance(node, exp.Command)


def _in_backticks(text: str, words: Sequence[Token]) -> str:
    """A statement whose quoted names stand in backticks, everything on its place."""
    start, end = words[0].start, words[-1].end + 1
    made = list(text[start:end])
    for word in words:
        is_quoted = word.token_type is TokenType.IDENTIFIER and text[word.start] == '"'
        if is_quoted and "`" not in word.text:
            made[word.start - start] = made[word.end - start] = "`"
    return "".join(made)


def _read_alike(text: str, own: Dialect, other: Dialect) -> bool:
    """Whether a dialect takes all quotes and comments of a text for what its own dialect does.

    Otherwise a quoted column may be a string there, and half of a line a comment: the statement
    would be parsed without what it reads.
    """
    if type(other) is type(own):
        return False
    if _meaning(own, "[") is None and _meaning(other, "[") == "name" and not _has_names(text):
        return False
    return all(_agree(own, other, mark) for mark in _MARKS if mark in text)


def _differ_in_escapes(text: str, own: Dialect, other: Dialect) -> bool:
    return _ESCAPE in text and _escapes(own) != _escapes(other)


def _agree(own: Dialect, other: Dialect, mark: str) -> bool:
    meant = _meaning(own, mark)
    return meant is None or meant == _meaning(other, mark)


def _meaning(dialect: Dialect, mark: str) -> str | None:
    """What begins with a mark; None where it has no meaning."""
    tokenizer = dialect.tokenizer_class
    if mark in tokenizer.COMMENTS:
        return "comment"
    if mark in {each if isinstance(each, str) else each[0] for each in tokenizer.IDENTIFIERS}:
        return "name"
    if mark in tokenizer.QUOTES:
        return "string"
    if type(dialect) is Dialect and mark != '"':
        # Nobody said which dialect it is.
        return None
    if mark in tokenizer.KEYWORDS:
        return "operator"
    token = tokenizer.SINGLE_TOKENS.get(mark, TokenType.UNKNOWN)
    return None if token is TokenType.UNKNOWN else "operator"


def _escapes(dialect: Dialect) -> bool:
    return _ESCAPE in dialect.tokenizer_class.STRING_ESCAPES


def _has_names(text: str) -> bool:
    """Whether all brackets hold names, as they do in T-SQL."""
    return "[" not in _BRACKETED_NAME.sub("", text)
