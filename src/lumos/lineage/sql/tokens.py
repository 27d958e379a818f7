"""Words of a text, also where the tokenizer takes the rest of a statement for one string."""

from collections.abc import Iterator

from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import Token, TokenType


def tokenized(text: str, dialect: Dialect) -> list[Token]:
    """All words of a text."""
    tokens = dialect.tokenize(text)
    if TokenType.END not in dialect.tokenizer_class.COMMANDS:
        return tokens
    return list(_opened(tokens, text, dialect))


def _opened(tokens: list[Token], text: str, dialect: Dialect) -> Iterator[Token]:
    """The words with those inside of what T-SQL's END and its like swallow up to a semicolon."""
    before: Token | None = None
    for token in tokens:
        is_swallowed = (
            token.token_type is TokenType.STRING
            # A string in quotes is no longer than its place.
            and len(token.text) > token.end - token.start + 1
            and before is not None
            and before.token_type in dialect.tokenizer_class.COMMANDS
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
