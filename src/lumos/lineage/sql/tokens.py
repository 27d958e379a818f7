"""Words of a text, also where the tokenizer takes the rest of a statement for one string."""

from collections.abc import Iterator
from typing import Final

from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import Token, TokenType

_CONTROL: Final = frozenset(
    {"BEGIN", "DECLARE", "DO", "ELSEIF", "END", "EXCEPTION", "LOOP", "REPEAT", "WHILE"}
)


def tokenized(text: str, dialect: Dialect) -> list[Token]:
    """All words of a text."""
    return list(_opened(dialect.tokenize(text), text, dialect))


def _opened(tokens: list[Token], text: str, dialect: Dialect) -> Iterator[Token]:
    """The words with those inside of what control words swallow up to a semicolon."""
    commands = dialect.tokenizer_class.COMMANDS
    # In T-SQL the next statement may follow any other without a semicolon.
    opens_all = TokenType.END in commands
    before: Token | None = None
    for token in tokens:
        is_swallowed = (
            token.token_type is TokenType.STRING
            # A string in quotes is no longer than its place.
            and len(token.text) > token.end - token.start + 1
            and before is not None
            and before.token_type in commands
            and (opens_all or before.text.upper() in _CONTROL)
        )
        if is_swallowed and before is not None:
            start = text.find(token.text, before.end + 1)
            yield from _moved(tokenized(token.text, dialect), start, text.count("\n", 0, start))
        else:
            yield token
        before = token


def _moved(tokens: list[Token], offset: int, lines: int) -> Iterator[Token]:
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
