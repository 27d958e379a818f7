"""SQL dialects: lookup, name folding, traits, and parsing in another dialect as a fallback."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlglot import Token, TokenType, exp
from sqlglot.dialects import DIALECT_MODULE_NAMES
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy
from sqlglot.errors import SqlglotError

from lumos.errors import UnknownName
from lumos.lineage.sql.script import Parts
from lumos.lineage.sql.tokens import shift_tokens, tokenize
from lumos.model.paths import ELEMENT, KEY, VALUE, lineage_path
from lumos.model.types import quoted_name

_WITH_STRUCTS: Final = frozenset(
    {
        "athena", "bigquery", "clickhouse", "databricks", "dremio", "drill", "duckdb", "hive",
        "presto", "redshift", "spark", "spark2", "starrocks", "trino", "doris", "",
    }
)  # fmt: skip
# A projection may use the aliases of earlier projections: SELECT a + 1 AS b, b * 2 AS c.
_LATERAL_ALIASES: Final = frozenset(
    {"snowflake", "redshift", "databricks", "spark", "duckdb", "teradata", "clickhouse"}
)
_ALIASES_IN_WHERE: Final = frozenset({"snowflake", "teradata", "clickhouse", "duckdb", "redshift"})
_RECURSIVE_WITHOUT_KEYWORD: Final = frozenset(
    {"tsql", "fabric", "oracle", "snowflake", "sqlite", "teradata", "exasol", "db2", ""}
)
# The output column of CAST(a AS INT) is called a.
_NAMES_THROUGH_CASTS: Final = frozenset({"postgres", "redshift", "materialize", "risingwave"})
# FROM may contain arrays of earlier items: FROM orders o, o.items.
_PATHS_IN_FROM: Final = frozenset({"bigquery", "redshift"})
# UNNEST of an array of rows returns the fields of the rows as columns.
_EXPANDS_ROWS: Final = frozenset(
    {"athena", "materialize", "postgres", "presto", "redshift", "risingwave", "trino"}
)
# Names that are not columns of any table.
_PSEUDO_COLUMNS: Final = frozenset(
    {
        "current_date", "current_timestamp", "current_time", "current_user", "session_user",
        "system_user", "localtime", "localtimestamp", "sysdate", "systimestamp",
        "default",
    }
)  # fmt: skip
_ORACLE_PSEUDO_COLUMNS: Final = frozenset(
    {
        "rownum", "level", "rowid", "user", "uid", "sqlcode", "sqlerrm", "connect_by_isleaf",
        "connect_by_iscycle", "ora_rowscn",
    }
)  # fmt: skip
_ALIASES: Final = {
    "": "", "generic": "", "ansi": "", "postgresql": "postgres", "sqlserver": "tsql",
    "mssql": "tsql", "synapse": "tsql", "mariadb": "mysql", "sparksql": "spark", "impala": "hive",
    "greenplum": "postgres", "non-validating": "", "plsql": "oracle", "vertica": "postgres",
}  # fmt: skip
# Node types that the parser returns for text that is not SQL.
_NON_STATEMENTS: Final = (
    exp.Alias, exp.Aliases, exp.Condition, exp.Identifier, exp.Interval, exp.Paren, exp.Tuple,
)  # fmt: skip
# The most widely used dialects first; the first that parses a statement is used.
_FALLBACK_ORDER: Final = (
    "spark", "bigquery", "snowflake", "postgres", "duckdb", "mysql", "tsql", "oracle", "trino",
    "clickhouse", "redshift", "hive", "sqlite", "databricks", "teradata", "presto", "athena",
    "doris", "starrocks", "singlestore", "exasol", "dremio", "drill", "druid", "materialize",
    "risingwave", "fabric", "dune", "",
)  # fmt: skip
_QUOTES_AND_COMMENTS: Final = ('"', "`", "[", "#", "//")
_ESCAPE: Final = "\\"
# [order id], but neither [1, 2] nor a[1].
_BRACKETED_NAME: Final = re.compile(r"(?<![\w\])])\[[^\W\d][\w $#@-]*\]")


def quote_name(name: str, dialect: str | None) -> str:
    """The name in the quotes of a dialect."""
    return exp.to_identifier(name, quoted=True).sql(dialect=find_dialect(dialect))


def find_dialect(name: str | None) -> Dialect:
    """The dialect of that name; raises UnknownName with the known dialects."""
    key = (name or "").strip().lower()
    key = _ALIASES.get(key, key)
    try:
        return Dialect.get_or_raise(key or None)
    except ValueError:
        # `Dialect.classes` would import all dialects, for each platform that is not a dialect.
        raise UnknownName("SQL dialect", name or "", DIALECT_MODULE_NAMES) from None


def dialect_label(dialect: Dialect) -> str:
    """The name of a dialect in messages."""
    name = type(dialect).__name__.lower()
    return "standard" if name == "dialect" else name


class DialectTraits:
    """How one dialect differs from others; the empty name is standard SQL."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.has_structs = name in _WITH_STRUCTS
        self.has_lateral_aliases = name in _LATERAL_ALIASES
        self.has_aliases_in_where = name in _ALIASES_IN_WHERE
        self.recurses_without_keyword = name in _RECURSIVE_WITHOUT_KEYWORD
        self.has_paths_in_from = name in _PATHS_IN_FROM
        self.names_through_casts = name in _NAMES_THROUGH_CASTS
        self.names_through_brackets = self.names_through_casts or name == "duckdb"
        self.expands_rows = name in _EXPANDS_ROWS
        self.has_flatten = name == "snowflake"
        # These names are only columns if a table has such columns.
        self.pseudo_columns = _PSEUDO_COLUMNS
        if name == "oracle":
            self.pseudo_columns |= _ORACLE_PSEUDO_COLUMNS


# Deeper paths come from recursive queries.
_MAX_PATH_DEPTH: Final = 12
_PATH_MARKS: Final = (ELEMENT, VALUE, KEY)
# In edges, names with other characters could not be distinguished from paths.
_SIMPLE_COLUMN: Final = re.compile(r"[^.\[{<`*]+")


class QuotedName(str):
    """A folded name that also has its original case, as quoted in the script."""

    original: str

    @classmethod
    def of(cls, folded: str, original: str) -> "QuotedName":
        name = cls(folded)
        name.original = original
        return name


class NestedName(QuotedName):
    """The path of a field inside a column, such as `items[].sku`."""

    column: str
    depth: int


def nested_name(name: str, *steps: str) -> str:
    """Append steps to a column or path: an element `[]`, a map's `{}` or `{key}`, or a field.

    Returns the name unchanged if the path is too deep or the column name looks like a path.
    """
    is_nested = isinstance(name, NestedName)
    column = name.column if isinstance(name, NestedName) else name
    depth = (name.depth if isinstance(name, NestedName) else 0) + len(steps)
    if depth > _MAX_PATH_DEPTH or (not is_nested and not _SIMPLE_COLUMN.fullmatch(name)):
        return name
    texts = [
        step if step in _PATH_MARKS else f".{quoted_name(in_original_case(step))}" for step in steps
    ]
    nested = NestedName(name + "".join(texts).lower())
    nested.original = in_original_case(name) + "".join(texts)
    nested.column, nested.depth = column, depth
    return nested


def column_name(name: str) -> str:
    """The column that a name or path belongs to."""
    return name.column if isinstance(name, NestedName) else name


def is_statement(node: exp.Expr) -> bool:
    """Whether the parser found a statement and not just an expression."""
    return not isinstance(node, _NON_STATEMENTS) or isinstance(node, exp.Query | exp.Command)


def in_original_case(name: str) -> str:
    """A name in the case of its quoted form, or else in lower case."""
    return name.original if isinstance(name, QuotedName) else name


class NameCases:
    """Chooses the case of each name in the result.

    A script may write a name quoted and unquoted, as in "Orders" and orders. The result then has
    the unquoted form.
    """

    def __init__(self) -> None:
        self._tables: dict[Parts, list[str]] = {}
        self._columns: dict[tuple[Parts, str], str] = {}

    def register(self, table: Parts, column: str | None = None) -> None:
        """Register an occurrence of a table or column."""
        parts = self._tables.get(table)
        if parts is None:
            self._tables[table] = [in_original_case(part) for part in table]
        else:
            for index, part in enumerate(table):
                if not isinstance(part, QuotedName):
                    parts[index] = part
        if column is not None and (
            not isinstance(column, QuotedName) or (table, column) not in self._columns
        ):
            self._columns[table, column] = in_original_case(column)

    def table(self, table: Parts) -> Parts:
        """A table name in the chosen case."""
        return tuple(self._tables.get(table, map(in_original_case, table)))

    def column(self, table: Parts, column: str) -> str:
        """A column name in the chosen case."""
        return self._columns.get((table, column), in_original_case(column))

    def path(self, table: Parts, path: str) -> str:
        """A column or the path of a nested field, with the column name in the chosen case."""
        if not isinstance(path, NestedName):
            return lineage_path(self.column(table, path))
        steps = path.original[len(in_original_case(path.column)) :]
        return self.column(table, path.column) + steps


class NameFolding:
    """Folds names as a dialect does, so that equal names are equal strings.

    Unquoted names become lower case, even if the dialect stores them in upper case.
    """

    def __init__(self, dialect: Dialect) -> None:
        strategy = dialect.normalization_strategy
        self._quotes_keep_case = strategy in (
            NormalizationStrategy.LOWERCASE,
            NormalizationStrategy.UPPERCASE,
        )
        self._stores_upper_case = strategy is NormalizationStrategy.UPPERCASE
        # Whether a quoted name was folded, so that it may equal an unquoted one.
        self.has_quoted = False

    def text(self, name: str, *, quoted: bool) -> str:
        """The folded name, equal for all forms of a name that the dialect treats as the same."""
        folded = name.lower()
        if not quoted or folded == name:
            return folded
        # A quoted name in the case that the dialect stores equals the unquoted name.
        is_in_stored_case = self._stores_upper_case and name == name.upper()
        if self._quotes_keep_case and not is_in_stored_case:
            return name
        self.has_quoted = True
        return QuotedName.of(folded, name)

    def stored(self, name: str) -> str:
        """The folded form of a name from a schema; a name in mixed case requires quotes."""
        is_plain = name in (name.lower(), name.upper())
        return name if self._quotes_keep_case and not is_plain else name.lower()

    def name(self, node: exp.Expr | str | None) -> str:
        """The folded name of an identifier or similar node."""
        if isinstance(node, exp.Identifier):
            name = self.text(node.this, quoted=bool(node.args.get("quoted")))
            # Temporary tables of T-SQL, for one session or for all.
            if node.args.get("temporary") or node.args.get("global_"):
                return f"##{name}" if node.args.get("global_") else f"#{name}"
            return name
        if isinstance(node, exp.Expr):
            return self.name(node.this) if isinstance(node.this, exp.Expr) else node.name.lower()
        return (node or "").lower()

    def table(self, node: exp.Table) -> Parts:
        """The parts of a table's name, from the catalog down."""
        return tuple(name for part in node.parts if (name := self.name(part)))


def dotted(parts: Sequence[str]) -> str:
    """Parts as one dotted name; parts that contain dots are quoted."""
    return ".".join(f'"{part}"' if "." in part else part for part in parts)


class FallbackParse(NamedTuple):
    """A statement as parsed in another dialect."""

    dialect: str
    tokens: Sequence[Token]
    nodes: Sequence[exp.Expr | None]


def parse_in_other_dialect(
    text: str, own_tokens: Sequence[Token], own_dialect: Dialect, *, first: str | None = None
) -> FallbackParse | None:
    """Parse a statement in another dialect; `own_tokens` are its tokens in its own dialect.

    The dialect `first` is tried before all others.
    """
    start, end = own_tokens[0].start, own_tokens[-1].end + 1
    lines = text.count("\n", 0, start)
    plain, in_backticks = text[start:end], _quote_with_backticks(text, own_tokens)
    for name in dict.fromkeys((*([] if first is None else [first]), *_FALLBACK_ORDER)):
        dialect = find_dialect(name)
        needs_backticks = (
            _token_kind(dialect, '"') == "string" and _token_kind(dialect, "`") == "name"
        )
        statement = in_backticks if needs_backticks else plain
        has_other_escapes = _ESCAPE in statement and (
            (_ESCAPE in own_dialect.tokenizer_class.STRING_ESCAPES)
            != (_ESCAPE in dialect.tokenizer_class.STRING_ESCAPES)
        )
        if has_other_escapes or not _has_same_quoting(statement, own_dialect, dialect):
            continue
        try:
            tokens = list(shift_tokens(tokenize(statement, dialect), start, lines))
            nodes = dialect.parser().parse(tokens, text)
        except SqlglotError:
            continue
        parsed_nodes = [node for node in nodes if node is not None]
        if parsed_nodes and all(
            is_statement(node) and not isinstance(node, exp.Command) for node in parsed_nodes
        ):
            return FallbackParse(name, tokens, nodes)
    return None


def tokenize_in_other_dialect(
    text: str, own_dialect: Dialect
) -> tuple[Dialect, list[Token]] | None:
    """Tokenise a text in the first other dialect that accepts it; None if no dialect does."""
    for dialect in map(find_dialect, _FALLBACK_ORDER):
        if not _has_same_quoting(text, own_dialect, dialect):
            continue
        try:
            return dialect, tokenize(text, dialect)
        except SqlglotError:
            continue
    return None


def separate_dotted_names(node: exp.Expr, text: str, own_dialect: Dialect) -> None:
    """Read FROM `lake.t` as the table t of lake, as BigQuery does.

    This applies only if backticks have no meaning in the script's own dialect.
    """
    if _token_kind(own_dialect, "`") == "name":
        return
    tables: list[exp.Table | exp.Column] = [*node.find_all(exp.Table)]
    for each in [*tables, *node.find_all(exp.Column)]:
        is_table = isinstance(each, exp.Table)
        keys = ("this", "db", "catalog") if is_table else ("table", "db", "catalog")
        names = each.parts if is_table else each.parts[:-1]
        separated = [piece for name in names for piece in _split_name(name, text)]
        if len(names) < len(separated) <= len(keys):
            for key, piece in zip(keys, reversed(separated), strict=False):
                each.set(key, piece)


def _split_name(name: exp.Expr, text: str) -> list[exp.Expr]:
    start = name.meta.get("start")
    parts = name.name.split(".")
    # The dots of a path do not separate names.
    if start is None or text[start] != "`" or "/" in name.name or not all(parts):
        return [name]
    pieces = [name.copy() for _ in parts]
    for piece, part in zip(pieces, parts, strict=True):
        piece.set("this", part)
    return pieces


def _quote_with_backticks(text: str, tokens: Sequence[Token]) -> str:
    """A statement with quoted names in backticks, at unchanged offsets."""
    start, end = tokens[0].start, tokens[-1].end + 1
    characters = list(text[start:end])
    for token in tokens:
        is_quoted = token.token_type is TokenType.IDENTIFIER and text[token.start] == '"'
        if is_quoted and "`" not in token.text:
            characters[token.start - start] = characters[token.end - start] = "`"
    return "".join(characters)


def _has_same_quoting(text: str, own_dialect: Dialect, other: Dialect) -> bool:
    """Whether another dialect reads all quotes and comments of a text like its own dialect.

    Otherwise a quoted column could be read as a string, or part of a line as a comment, and origins
    would be lost.
    """
    if type(other) is type(own_dialect):
        return False
    are_brackets_names = _token_kind(own_dialect, "[") is None and _token_kind(other, "[") == "name"
    if are_brackets_names and "[" in _BRACKETED_NAME.sub("", text):
        # Some brackets contain no names, unlike in T-SQL.
        return False
    return all(
        _token_kind(own_dialect, mark) in (None, _token_kind(other, mark))
        for mark in _QUOTES_AND_COMMENTS
        if mark in text
    )


def _token_kind(dialect: Dialect, mark: str) -> str | None:
    """The kind of token that begins with a mark; None if it has no meaning."""
    tokenizer = dialect.tokenizer_class
    if mark in tokenizer.COMMENTS:
        return "comment"
    if mark in {each if isinstance(each, str) else each[0] for each in tokenizer.IDENTIFIERS}:
        return "name"
    if mark in tokenizer.QUOTES:
        return "string"
    if type(dialect) is Dialect and mark != '"':
        # The script's dialect is unknown.
        return None
    if mark in tokenizer.KEYWORDS:
        return "operator"
    token = tokenizer.SINGLE_TOKENS.get(mark, TokenType.UNKNOWN)
    return None if token is TokenType.UNKNOWN else "operator"
