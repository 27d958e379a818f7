"""Tokens of SQL: tokenising long texts, searching token runs, and shapes of statements."""

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
# Statements that move no data.
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
# Statements that run or prepare SQL from elsewhere.
DYNAMIC_SQL: Final = frozenset({"EXECUTE", "EXEC", "PREPARE"})
# Keywords that begin a T-SQL statement, since semicolons are optional there.
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
_MODES: Final = frozenset({"IN", "OUT", "INOUT", "VARIADIC"})

_PORTION_LENGTH: Final = 256 * 1024
# The tokens of such a text take about a gigabyte.
MAX_STATEMENT_LENGTH: Final = 8 * 1024**2
_STATEMENT_END: Final = re.compile(r";(?=[^\S\n]*\n)")
_TRIGGER: Final = re.compile(r"\bcreate\b[^;]*?\btrigger\b", re.IGNORECASE)
_CONTROL: Final = frozenset(
    {"BEGIN", "DECLARE", "DO", "ELSEIF", "END", "EXCEPTION", "LOOP", "REPEAT", "WHILE"}
)


def tokenize(text: str, dialect: Dialect) -> list[Token]:
    """All tokens of a text."""
    return _tokenize_swallowed(dialect.tokenize(text), text, dialect)


def split_text(text: str, dialect: Dialect) -> Iterator[tuple[str, list[Token] | None]]:
    """Split a long text into portions of whole statements, without their last semicolons.

    Each comes with its tokens, or None if it is not tokenised yet. A portion longer than
    `MAX_STATEMENT_LENGTH` is a single statement, or cannot be split.

    The tokens of a database dump need a hundred times the memory of its text. A portion ends at a
    semicolon that is a token of its own, not part of a string or a comment.
    """
    # Trigger functions need the later CREATE TRIGGER, so the text is not split.
    size = len(text) if _TRIGGER.search(text) else _PORTION_LENGTH
    start = 0
    while start < len(text):
        found = _STATEMENT_END.search(text, start + size)
        if found is None:
            yield text[start:], None
            return
        portion = text[start : found.start()]
        if len(portion) > MAX_STATEMENT_LENGTH:
            yield portion, None
        elif (tokens := _tokenize_complete(f"{portion};", dialect)) is not None:
            yield portion, _tokenize_swallowed(tokens[:-1], portion, dialect)
        else:
            size *= 2
            continue
        start, size = found.start() + 1, _PORTION_LENGTH


def _tokenize_complete(text: str, dialect: Dialect) -> list[Token] | None:
    """The tokens of a text if its last semicolon is one of them."""
    try:
        tokens = dialect.tokenize(text)
    except TokenError:
        return None
    is_end = bool(tokens) and tokens[-1].token_type is TokenType.SEMICOLON
    return tokens if is_end and tokens[-1].end == len(text) - 1 else None


def _tokenize_swallowed(tokens: list[Token], text: str, dialect: Dialect) -> list[Token]:
    """Tokenise the text that control keywords swallow up to a semicolon."""
    commands = dialect.tokenizer_class.COMMANDS
    # In T-SQL the next statement may follow any other without a semicolon.
    opens_all = TokenType.END in commands
    result: list[Token] = []
    before: Token | None = None
    for token in tokens:
        is_swallowed = (
            token.token_type is TokenType.STRING
            # A quoted string is shorter than its source text.
            and len(token.text) >= token.end - token.start + 1
            and before is not None
            and before.token_type in commands
            and (opens_all or before.text.upper() in _CONTROL)
        )
        if token.token_type is TokenType.NUMBER and _is_field(result, dialect):
            # point.2 is the second field of a column, not a literal of the type POINT.
            result[-2] = _to_name_token(result[-2])
        if is_swallowed and before is not None:
            start = text.find(token.text, before.end + 1)
            result += shift_tokens(tokenize(token.text, dialect), start, text.count("\n", 0, start))
        else:
            result.append(token)
        before = token
    return result


def _is_field(before: list[Token], dialect: Dialect) -> bool:
    """Whether a dot precedes, and before it a name that is also a type name."""
    return (
        len(before) > 1
        and before[-1].token_type is TokenType.DOT
        and before[-2].token_type in dialect.parser_class.TYPE_TOKENS
        and before[-2].token_type is not TokenType.IDENTIFIER
    )


def _to_name_token(token: Token) -> Token:
    return Token(
        TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments
    )


def shift_tokens(tokens: list[Token], offset: int, lines: int) -> Iterator[Token]:
    """Tokens of a part of a text, with their positions in the whole text."""
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
    """A token in upper case; quoted tokens are not keywords."""
    return "" if token.token_type in _QUOTED else token.text.upper()


def is_name(token: Token) -> bool:
    """Whether a token may be a name."""
    return token.token_type is TokenType.IDENTIFIER or token.text[:1].isidentifier()


class TokenRun:
    """A run of tokens, searched outside of brackets."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens

    def outside(self, start: int = 0) -> Iterator[tuple[int, Token]]:
        """Every token outside of brackets and CASE."""
        open_at: list[TokenType] = []
        for position in range(start, len(self._tokens)):
            token = self._tokens[position]
            kind = token.token_type
            if kind in _CLOSING:
                if open_at:
                    open_at.pop()
            elif kind is TokenType.END and open_at and open_at[-1] is TokenType.CASE:
                open_at.pop()
            elif kind in _OPENING and not (kind is TokenType.CASE and self._is_end(position)):
                if not open_at:
                    yield position, token
                open_at.append(kind)
            elif not open_at:
                yield position, token

    def _kind(self, position: int) -> TokenType | None:
        return self._tokens[position].token_type if position < len(self._tokens) else None

    def _is_end(self, position: int) -> bool:
        """Whether CASE stands in END CASE."""
        return position > 0 and self._tokens[position - 1].token_type is TokenType.END

    def find(self, keywords: Collection[str], *, start: int = 0) -> int | None:
        """The index of the first of these keywords outside of brackets."""
        for position, token in self.outside(start):
            if keyword(token) in keywords:
                return position
        return None

    def find_behind(self, keywords: Collection[str], *, preceding: Collection[str]) -> int | None:
        """The index of the first of these keywords that does not follow one of the others."""
        for position, token in self.outside(1):
            if keyword(token) in keywords and keyword(self._tokens[position - 1]) not in preceding:
                return position
        return None

    def skip(self, start: int, keywords: Collection[str]) -> int:
        """The index after such keywords."""
        while start < len(self._tokens) and keyword(self._tokens[start]) in keywords:
            start += 1
        return start

    def end_of_name(self, start: int) -> int:
        """The index after a dotted name."""
        position = start + 1
        while (
            position + 1 < len(self._tokens) and self._tokens[position].token_type is TokenType.DOT
        ):
            position += 2
        return position

    def end_of_brackets(self, start: int) -> int:
        """The index after brackets that open there."""
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
            elif expects_name and keyword(token) not in _MODES and is_name(token):
                names.append(token.text.lower())
                expects_name = False
        return tuple(names)

    def statements(self) -> Iterator[Sequence[Token]]:
        """Statements without semicolons between them."""
        start = 0
        verb = before = ""
        seen: set[str] = set()
        for position, token in self.outside():
            # A keyword next to a dot is a name.
            is_name_part = before == "." or (
                position + 1 < len(self._tokens)
                and self._tokens[position + 1].token_type is TokenType.DOT
            )
            word = token.text if is_name_part else keyword(token)
            if (
                word in _TSQL_STATEMENT_STARTS
                and not is_name_part
                and not self._continues(word, verb, seen, before, position)
            ):
                if position > start:
                    yield self._tokens[start:position]
                start, verb, seen = position, word, set()
            else:
                if verb == "WITH" and word in VERBS:
                    verb = word
                seen.add(word)
            before = word if token.token_type not in _OPENING else ")"
        if start < len(self._tokens):
            yield self._tokens[start:]

    def _continues(self, word: str, verb: str, seen: set[str], before: str, position: int) -> bool:
        """Whether a keyword that could begin a statement belongs to the previous one."""
        if before in _CONTINUATION_KEYWORDS:
            return True
        next_keywords = [keyword(token) for token in self._tokens[position + 1 : position + 3]]
        if word in ("SELECT", "EXEC", "EXECUTE"):
            if verb == "INSERT":
                return not seen & {"SELECT", "VALUES", "EXEC", "EXECUTE"}
            if verb in ("CREATE", "ALTER"):
                return "AS" in seen and "SELECT" not in seen
            return verb == "WITH" or ("CURSOR" in seen and before == "FOR")
        if word in ("INSERT", "UPDATE", "DELETE", "MERGE"):
            return verb == "WITH" or before in ("FOR", "ON", "AFTER", "OF")
        if word == "SET":
            return (verb == "UPDATE" and "SET" not in seen) or before == "UPDATE"
        if word == "WITH" and verb in ("CREATE", "ALTER") and "AS" not in seen:
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
        return word in ("DROP", "ALTER") and (verb == "ALTER" or before == "OR")


# Literals count by their kind, or as they are if their value matters.
StatementShape: TypeAlias = tuple[tuple[TokenType, str], ...]

_REPEATABLE_VERBS: Final = frozenset(
    {TokenType.INSERT, TokenType.UPDATE, TokenType.DELETE, TokenType.MERGE, TokenType.SELECT,
     TokenType.WITH}
)  # fmt: skip
_LITERALS: Final = STRINGS | {TokenType.NUMBER}
_QUERY_TOKENS: Final = frozenset(
    {TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.EXECUTE}
)
# Elsewhere in a query, a number may be a column position, and a string a table path.
_COMPARISONS: Final = frozenset(
    {TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE}
)
_DIGIT: Final = re.compile(r"\d")
_LETTERS: Final = re.compile(r"[^\W\d_]+")


def statement_shape(tokens: Sequence[Token]) -> StatementShape | None:
    """Return a key shared by statements with the same lineage; None unless a change or query."""
    if tokens[0].token_type not in _REPEATABLE_VERBS:
        return None
    is_query = any(token.token_type in _QUERY_TOKENS for token in tokens)
    return tuple(_shape_tokens(tokens, is_query=is_query))


def repeated_rows(tokens: Sequence[Token]) -> list[Token]:
    """The rows after VALUES with the shape of an earlier one, each with its comma."""
    seen: set[StatementShape] = set()
    repeated: list[Token] = []
    for start, end in _rows(tokens):
        row = tokens[start:end]
        is_query = any(token.token_type in _QUERY_TOKENS for token in row)
        shape = tuple(_shape_tokens(row, is_query=is_query))
        if shape in seen and tokens[start - 1].token_type is TokenType.COMMA:
            repeated += tokens[start - 1 : end]
        seen.add(shape)
    return repeated


def _shape_tokens(tokens: Sequence[Token], *, is_query: bool) -> Iterator[tuple[TokenType, str]]:
    before = TokenType.UNKNOWN
    for token in tokens:
        kind = token.token_type
        if kind not in _LITERALS or (is_query and before not in _COMPARISONS):
            yield kind, token.text
        elif is_query:
            yield kind, _normalize_literal(token.text)
        else:
            yield kind, "." if "." in token.text and kind is TokenType.NUMBER else ""
        before = kind


def _normalize_literal(literal: str) -> str:
    """Replace letters and digits of a literal by others of the same kind.

    The type of a number depends on its number of digits, without leading zeros.
    """
    if literal[:1].isdigit():
        digits = literal.lstrip("0.")
        return literal[: len(literal) - len(digits)] + _DIGIT.sub("1", digits)
    return _LETTERS.sub("a", _DIGIT.sub("1", literal))


def _rows(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """The start and end of the rows after VALUES outside of brackets."""
    depth = 0
    start: int | None = None
    is_behind = False
    for number, token in enumerate(tokens):
        kind = token.token_type
        if kind is TokenType.L_PAREN:
            if depth == 0 and is_behind:
                start = number
            depth += 1
        elif kind is TokenType.R_PAREN:
            depth -= 1
            if depth == 0 and start is not None:
                yield start, number + 1
                start = None
        elif depth == 0 and kind is not TokenType.COMMA:
            is_behind = kind is TokenType.VALUES
