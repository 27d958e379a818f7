"""Tokens of SQL: tokenising long texts, searching in tokens, and shapes of statements."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, TypeAlias

from sqlglot import Token, TokenType
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError

from lumos.lineage.sql.redaction import STRINGS

VERBS: Final = frozenset(
    {
        "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "CREATE", "ALTER", "DROP",
        "TRUNCATE", "REPLACE", "COPY", "UPSERT", "SET", "FROM",
    }
)  # fmt: skip
# The first keywords of statements that copy no data between tables.
HARMLESS: Final = frozenset(
    {
        "GRANT", "REVOKE", "DENY", "CALL", "EXEC", "EXECUTE", "COMMENT", "ANALYZE", "VACUUM",
        "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "PRINT", "RAISE", "RAISERROR", "THROW", "OPEN",
        "FETCH", "CLOSE", "DEALLOCATE", "COMMIT", "ROLLBACK", "SAVEPOINT", "LOCK", "UNLOCK",
        "REFRESH", "MSCK", "OPTIMIZE", "USE", "SET", "RESET", "DECLARE", "COLLECT", "LIST", "PUT",
        "GET", "REMOVE", "BEGIN", "END", "START", "ABORT", "CHECKPOINT", "NOTIFY", "LISTEN",
        "DISCARD", "PRAGMA", "ATTACH", "DETACH", "INSTALL", "UNCACHE", "SIGNAL", "ITERATE",
        "LEAVE", "UNTIL", "ASSERT", "KILL", "PURGE", "RENAME", "REINDEX", "CLUSTER", "SECURITY",
        "DROP", "ALTER", "TRUNCATE", "UNDROP", "LANGUAGE", "INVALIDATE", "COMPUTE", "DBCC",
        "WAITFOR", "GOTO", "RETURN", "ADD", "EXPORT", "IMPORT", "BACKUP", "RESTORE", "RELEASE",
    }
)  # fmt: skip
# The first keywords of statements that run or prepare SQL from a string or variable.
DYNAMIC_SQL: Final = frozenset({"EXECUTE", "EXEC", "PREPARE"})
# Keywords that start a statement in T-SQL, where semicolons are optional.
_TSQL_STATEMENT_STARTS: Final = (VERBS - {"FROM", "REPLACE", "COPY", "UPSERT"}) | {
    "DECLARE", "IF", "WHILE", "EXEC", "EXECUTE", "PRINT", "RETURN", "BEGIN", "END", "ELSE", "USE",
    "THROW", "RAISERROR", "COMMIT", "ROLLBACK", "OPEN", "FETCH", "CLOSE", "DEALLOCATE", "GRANT",
}  # fmt: skip
_CONTINUATION_KEYWORDS: Final = frozenset(
    {"UNION", "ALL", "EXCEPT", "INTERSECT", "AS", ",", "THEN"}
)
_OPENING: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE})
_CLOSING: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET})
_QUOTED: Final = frozenset({TokenType.STRING, TokenType.IDENTIFIER, TokenType.NATIONAL_STRING})
_PARAMETER_MODES: Final = frozenset({"IN", "OUT", "INOUT", "VARIADIC"})

_PORTION_LENGTH: Final = 256 * 1024
# The tokens of a text of this length take about a gigabyte.
MAX_STATEMENT_LENGTH: Final = 8 * 1024**2
_STATEMENT_END: Final = re.compile(r";(?=[^\S\n]*\n)")
_TRIGGER: Final = re.compile(r"\bcreate\b[^;]*?\btrigger\b", re.IGNORECASE)
_CONTROL_KEYWORDS: Final = frozenset(
    {"BEGIN", "DECLARE", "DO", "ELSEIF", "END", "EXCEPTION", "LOOP", "REPEAT", "WHILE"}
)


def tokenize(text: str, dialect: Dialect) -> list[Token]:
    """All tokens of a text."""
    return _tokenize_code_strings(dialect.tokenize(text), text, dialect)


def split_text(text: str, dialect: Dialect) -> Iterator[tuple[str, list[Token] | None]]:
    """Split a long text into portions of complete statements, without their last semicolons.

    This saves memory: the tokens of a database dump need a hundred times the memory of its text.
    Each portion comes with its tokens, or None if it is not tokenised yet. It ends at a semicolon
    that is a token, not part of a string or a comment. A portion longer than
    `MAX_STATEMENT_LENGTH` is a single statement, or cannot be split.
    """
    # A trigger function depends on the later CREATE TRIGGER, so the text is not split.
    size = len(text) if _TRIGGER.search(text) else _PORTION_LENGTH
    start = 0
    while start < len(text):
        end = _STATEMENT_END.search(text, start + size)
        if end is None:
            yield text[start:], None
            return
        portion = text[start : end.start()]
        if len(portion) > MAX_STATEMENT_LENGTH:
            yield portion, None
        elif (tokens := _tokenize_complete(f"{portion};", dialect)) is not None:
            yield portion, _tokenize_code_strings(tokens[:-1], portion, dialect)
        else:
            size *= 2
            continue
        start, size = end.start() + 1, _PORTION_LENGTH


def _tokenize_complete(text: str, dialect: Dialect) -> list[Token] | None:
    """The tokens of a text; None if its last semicolon is part of a string or comment."""
    try:
        tokens = dialect.tokenize(text)
    except TokenError:
        return None
    is_end = bool(tokens) and tokens[-1].token_type is TokenType.SEMICOLON
    return tokens if is_end and tokens[-1].end == len(text) - 1 else None


def _tokenize_code_strings(tokens: list[Token], text: str, dialect: Dialect) -> list[Token]:
    """Tokenise strings that are code.

    After keywords such as BEGIN, the tokenizer returns the text up to the next semicolon as one
    string.
    """
    commands = dialect.tokenizer_class.COMMANDS
    # In T-SQL, a statement may follow any keyword without a semicolon.
    is_after_any_command = TokenType.END in commands
    result: list[Token] = []
    previous: Token | None = None
    for token in tokens:
        is_code = (
            token.token_type is TokenType.STRING
            # A quoted string is shorter than its source text.
            and len(token.text) >= token.end - token.start + 1
            and previous is not None
            and previous.token_type in commands
            and (is_after_any_command or previous.text.upper() in _CONTROL_KEYWORDS)
        )
        if token.token_type is TokenType.NUMBER and _ends_with_column(result, dialect):
            # point.2 is the second field of a column, not a literal of the type POINT.
            name = result[-2]
            result[-2] = Token(
                TokenType.VAR, name.text, name.line, name.col, name.start, name.end, name.comments
            )
        if is_code and previous is not None:
            start = text.find(token.text, previous.end + 1)
            result += shift_tokens(tokenize(token.text, dialect), start, text.count("\n", 0, start))
        else:
            result.append(token)
        previous = token
    return result


def _ends_with_column(tokens: list[Token], dialect: Dialect) -> bool:
    """Whether the last tokens are a name that is also a type name, and a dot."""
    return (
        len(tokens) > 1
        and tokens[-1].token_type is TokenType.DOT
        and tokens[-2].token_type in dialect.parser_class.TYPE_TOKENS
        and tokens[-2].token_type is not TokenType.IDENTIFIER
    )


def shift_tokens(tokens: list[Token], offset: int, lines: int) -> Iterator[Token]:
    """Shift the offsets and lines of tokens of a part, so that they refer to the entire text."""
    for token in tokens:
        yield Token(
            token_type=token.token_type,
            text=token.text,
            line=token.line + lines,
            col=token.col,
            start=token.start + offset,
            end=token.end + offset,
            comments=token.comments,
        )


def keyword(token: Token) -> str:
    """The text of a token in upper case, or an empty string for a quoted token."""
    return "" if token.token_type in _QUOTED else token.text.upper()


def is_name(token: Token) -> bool:
    """Whether a token may be a name."""
    return token.token_type is TokenType.IDENTIFIER or token.text[:1].isidentifier()


class TokenRun:
    """Consecutive tokens; searches skip the contents of brackets."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens

    def outside_brackets(self, start: int = 0) -> Iterator[tuple[int, Token]]:
        """Every token outside of brackets and CASE ... END, with its index."""
        open_kinds: list[TokenType] = []
        for position in range(start, len(self._tokens)):
            token = self._tokens[position]
            kind = token.token_type
            if kind in _CLOSING:
                if open_kinds:
                    open_kinds.pop()
            elif kind is TokenType.END and open_kinds and open_kinds[-1] is TokenType.CASE:
                open_kinds.pop()
            elif kind in _OPENING and not (kind is TokenType.CASE and self._is_end(position)):
                if not open_kinds:
                    yield position, token
                open_kinds.append(kind)
            elif not open_kinds:
                yield position, token

    def _is_end(self, position: int) -> bool:
        """Whether the CASE at this index belongs to END CASE."""
        return position > 0 and self._tokens[position - 1].token_type is TokenType.END

    def find(self, keywords: Collection[str], *, start: int = 0) -> int | None:
        """The index of the first of these keywords outside of brackets."""
        for position, token in self.outside_brackets(start):
            if keyword(token) in keywords:
                return position
        return None

    def find_not_after(self, keywords: Collection[str], *, previous: Collection[str]) -> int | None:
        """The index of the first of these keywords that does not follow one of `previous`."""
        for position, token in self.outside_brackets(1):
            if keyword(token) in keywords and keyword(self._tokens[position - 1]) not in previous:
                return position
        return None

    def skip(self, start: int, keywords: Collection[str]) -> int:
        """The index after all of these keywords, from `start` on."""
        while start < len(self._tokens) and keyword(self._tokens[start]) in keywords:
            start += 1
        return start

    def end_of_name(self, start: int) -> int:
        """The index after a dotted name that starts at an index."""
        position = start + 1
        while (
            position + 1 < len(self._tokens) and self._tokens[position].token_type is TokenType.DOT
        ):
            position += 2
        return position

    def end_of_brackets(self, start: int) -> int:
        """The index after the closing bracket of the bracket at `start`."""
        depth = 0
        for position in range(start, len(self._tokens)):
            kind = self._tokens[position].token_type
            depth += (kind in _OPENING) - (kind in _CLOSING)
            if depth == 0:
                return position + 1
        return len(self._tokens)

    def parameters(self, end: int) -> tuple[str, ...]:
        """The names in the first brackets before an index: the parameters of a routine."""
        names: list[str] = []
        depth = 0
        expects_name = False
        for token in self._tokens[:end]:
            kind = token.token_type
            if kind in _OPENING:
                depth += 1
                expects_name = depth == 1
            elif kind in _CLOSING:
                depth -= 1
                if depth == 0:
                    break
            elif kind is TokenType.COMMA:
                expects_name = depth == 1
            elif expects_name and keyword(token) not in _PARAMETER_MODES and is_name(token):
                names.append(token.text.lower())
                expects_name = False
        return tuple(names)

    def statements(self) -> Iterator[Sequence[Token]]:
        """Split T-SQL statements that are not separated by semicolons."""
        start = 0
        verb = previous = ""
        keywords: set[str] = set()
        for position, token in self.outside_brackets():
            # A keyword next to a dot is a name.
            is_name_part = previous == "." or (
                position + 1 < len(self._tokens)
                and self._tokens[position + 1].token_type is TokenType.DOT
            )
            word = token.text if is_name_part else keyword(token)
            if (
                word in _TSQL_STATEMENT_STARTS
                and not is_name_part
                and not self._continues_statement(word, verb, keywords, previous, position)
            ):
                if position > start:
                    yield self._tokens[start:position]
                start, verb, keywords = position, word, set()
            else:
                if verb == "WITH" and word in VERBS:
                    verb = word
                keywords.add(word)
            previous = word if token.token_type not in _OPENING else ")"
        if start < len(self._tokens):
            yield self._tokens[start:]

    def _continues_statement(
        self, word: str, verb: str, keywords: set[str], previous: str, position: int
    ) -> bool:
        """Whether a keyword that can start a statement belongs to the current one.

        `verb` is the first keyword of the current statement, `keywords` are the others so far.
        """
        if previous in _CONTINUATION_KEYWORDS:
            return True
        next_keywords = [keyword(token) for token in self._tokens[position + 1 : position + 3]]
        if word in ("SELECT", "EXEC", "EXECUTE"):
            if verb == "INSERT":
                return not keywords & {"SELECT", "VALUES", "EXEC", "EXECUTE"}
            if verb in ("CREATE", "ALTER"):
                return "AS" in keywords and "SELECT" not in keywords
            return verb == "WITH" or ("CURSOR" in keywords and previous == "FOR")
        if word in ("INSERT", "UPDATE", "DELETE", "MERGE"):
            return verb == "WITH" or previous in ("FOR", "ON", "AFTER", "OF")
        if word == "SET":
            return (verb == "UPDATE" and "SET" not in keywords) or previous == "UPDATE"
        if word == "WITH" and verb in ("CREATE", "ALTER") and "AS" not in keywords:
            return True
        if word == "WITH":
            return (
                len(next_keywords) < 2
                or next_keywords[0] == "("
                or next_keywords[1] not in ("AS", "(")
            )
        if word == "IF":
            return next_keywords[:1] == ["EXISTS"] and verb in (
                "DROP",
                "ALTER",
                "TRUNCATE",
                "CREATE",
            )
        return word in ("DROP", "ALTER") and (verb == "ALTER" or previous == "OR")


# The tokens of a statement; a literal whose value does not affect lineage has only its kind.
StatementShape: TypeAlias = tuple[tuple[TokenType, str], ...]

_REPEATABLE_VERBS: Final = frozenset(
    {TokenType.INSERT, TokenType.UPDATE, TokenType.DELETE, TokenType.MERGE, TokenType.SELECT,
     TokenType.WITH}
)  # fmt: skip
_LITERALS: Final = STRINGS | {TokenType.NUMBER}
_QUERY_TOKENS: Final = frozenset(
    {TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.EXECUTE}
)
# In a query, only the values of literals after a comparison are ignored: other literals may be
# positions, as in ORDER BY 1, or paths of tables.
_COMPARISONS: Final = frozenset(
    {TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE}
)
_DIGIT: Final = re.compile(r"\d")
_LETTERS: Final = re.compile(r"[^\W\d_]+")


def statement_shape(tokens: Sequence[Token]) -> StatementShape | None:
    """A key that is equal for statements with the same lineage.

    None if a statement neither changes rows nor is a query.
    """
    if tokens[0].token_type not in _REPEATABLE_VERBS:
        return None
    is_query = any(token.token_type in _QUERY_TOKENS for token in tokens)
    return tuple(_shape_tokens(tokens, is_query=is_query))


def repeated_rows(tokens: Sequence[Token]) -> list[Token]:
    """The tokens of rows after VALUES that have the shape of an earlier row, with their commas."""
    if not any(token.token_type is TokenType.VALUES for token in tokens):
        return []
    shapes: set[StatementShape] = set()
    repeated: list[Token] = []
    for start, end in _rows(tokens):
        row = tokens[start:end]
        is_query = any(token.token_type in _QUERY_TOKENS for token in row)
        shape = tuple(_shape_tokens(row, is_query=is_query))
        if shape in shapes and tokens[start - 1].token_type is TokenType.COMMA:
            repeated += tokens[start - 1 : end]
        shapes.add(shape)
    return repeated


def _shape_tokens(tokens: Sequence[Token], *, is_query: bool) -> Iterator[tuple[TokenType, str]]:
    previous = TokenType.UNKNOWN
    for token in tokens:
        kind = token.token_type
        if kind not in _LITERALS or (is_query and previous not in _COMPARISONS):
            yield kind, token.text
        elif is_query:
            yield kind, _normalize_literal(token.text)
        else:
            yield kind, "." if "." in token.text and kind is TokenType.NUMBER else ""
        previous = kind


def _normalize_literal(literal: str) -> str:
    """Replace digits of a literal by 1, and words by a.

    The number of digits and leading zeros stay the same, since the type of a number depends on
    them.
    """
    if literal[:1].isdigit():
        digits = literal.lstrip("0.")
        return literal[: len(literal) - len(digits)] + _DIGIT.sub("1", digits)
    return _LETTERS.sub("a", _DIGIT.sub("1", literal))


def _rows(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """The start and end of each row after a VALUES that is not within brackets."""
    depth = 0
    start: int | None = None
    is_after_values = False
    for position, token in enumerate(tokens):
        kind = token.token_type
        if kind is TokenType.L_PAREN:
            if depth == 0 and is_after_values:
                start = position
            depth += 1
        elif kind is TokenType.R_PAREN:
            depth -= 1
            if depth == 0 and start is not None:
                yield start, position + 1
                start = None
        elif depth == 0 and kind is not TokenType.COMMA:
            is_after_values = kind is TokenType.VALUES
