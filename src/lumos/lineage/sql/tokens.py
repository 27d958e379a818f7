"""Words of a text, also where the tokenizer takes the rest of a statement for one string."""

import re
from collections.abc import Iterator
from typing import Final

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

_PORTION: Final = 256 * 1024
# The words of such a text take about a gigabyte.
LONGEST: Final = 8 * 1024**2
_END: Final = re.compile(r";(?=[^\S\n]*\n)")
_TRIGGER: Final = re.compile(r"\bcreate\b[^;]*?\btrigger\b", re.IGNORECASE)
_CONTROL: Final = frozenset(
    {"BEGIN", "DECLARE", "DO", "ELSEIF", "END", "EXCEPTION", "LOOP", "REPEAT", "WHILE"}
)


def tokenized(text: str, dialect: Dialect) -> list[Token]:
    """All words of a text."""
    return _opened(dialect.tokenize(text), text, dialect)


def portions(text: str, dialect: Dialect) -> Iterator[tuple[str, list[Token] | None]]:
    """A long text in portions of whole statements, without the semicolon at the end of each.

    With each come its words, unless they have not been told apart yet. One that is longer than
    `LONGEST` is a single statement, or cannot be cut.

    The words of a whole dump of a database need a hundred times the memory of its text. A portion
    ends at a semicolon that is a word of its own, and not part of a string or a comment; what
    cannot be told apart is left together.
    """
    # The functions of triggers are read with what a later statement says of them.
    size = len(text) if _TRIGGER.search(text) else _PORTION
    start = 0
    while start < len(text):
        found = _END.search(text, start + size)
        if found is None:
            yield text[start:], None
            return
        portion = text[start : found.start()]
        if len(portion) > LONGEST:
            yield portion, None
        elif (tokens := _whole(f"{portion};", dialect)) is not None:
            yield portion, _opened(tokens[:-1], portion, dialect)
        else:
            size *= 2
            continue
        start, size = found.start() + 1, _PORTION


def _whole(text: str, dialect: Dialect) -> list[Token] | None:
    """The words of a text if the semicolon at its end is one of them."""
    try:
        tokens = dialect.tokenize(text)
    except TokenError:
        return None
    is_end = bool(tokens) and tokens[-1].token_type is TokenType.SEMICOLON
    return tokens if is_end and tokens[-1].end == len(text) - 1 else None


def _opened(tokens: list[Token], text: str, dialect: Dialect) -> list[Token]:
    """The words with those inside of what control words swallow up to a semicolon."""
    commands = dialect.tokenizer_class.COMMANDS
    # In T-SQL the next statement may follow any other without a semicolon.
    opens_all = TokenType.END in commands
    made: list[Token] = []
    before: Token | None = None
    for token in tokens:
        is_swallowed = (
            token.token_type is TokenType.STRING
            # A string in quotes is shorter than its place.
            and len(token.text) >= token.end - token.start + 1
            and before is not None
            and before.token_type in commands
            and (opens_all or before.text.upper() in _CONTROL)
        )
        if token.token_type is TokenType.NUMBER and _is_field(made, dialect):
            # point.2 is a column's second field, and not a literal of the type POINT.
            made[-2] = _as_name(made[-2])
        if is_swallowed and before is not None:
            start = text.find(token.text, before.end + 1)
            made += moved(tokenized(token.text, dialect), start, text.count("\n", 0, start))
        else:
            made.append(token)
        before = token
    return made


def _is_field(before: list[Token], dialect: Dialect) -> bool:
    """Whether a dot stands before, and before that a name that is also one of a type."""
    return (
        len(before) > 1
        and before[-1].token_type is TokenType.DOT
        and before[-2].token_type in dialect.parser_class.TYPE_TOKENS
        and before[-2].token_type is not TokenType.IDENTIFIER
    )


def _as_name(token: Token) -> Token:
    return Token(
        TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments
    )


def moved(tokens: list[Token], offset: int, lines: int) -> Iterator[Token]:
    """Words of a part of a text, at their places in the whole."""
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
