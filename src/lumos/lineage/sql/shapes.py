"""Statements that differ in values alone: one of them tells the lineage of all."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from sqlglot.tokenizer_core import Token, TokenType

from lumos.lineage.sql.secrets import STRINGS

# What identifies a shape; literals count by their kind, or as they are where they may mean more.
Shape: TypeAlias = tuple[tuple[TokenType, str], ...]

_REPEATED: Final = frozenset(
    {TokenType.INSERT, TokenType.UPDATE, TokenType.DELETE, TokenType.MERGE, TokenType.SELECT,
     TokenType.WITH}
)  # fmt: skip
_LITERALS: Final = STRINGS | {TokenType.NUMBER}
_QUERIES: Final = frozenset({TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.EXECUTE})
# Elsewhere in a query, a number may be the place of a column, and a string the path of a table.
_COMPARISONS: Final = frozenset(
    {TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE}
)
_DIGIT: Final = re.compile(r"\d")
_LETTERS: Final = re.compile(r"[^\W\d_]+")


def shape_of(tokens: Sequence[Token]) -> Shape | None:
    """What statements of one lineage have in common; None for one that is no change or query."""
    if tokens[0].token_type not in _REPEATED:
        return None
    is_query = any(token.token_type in _QUERIES for token in tokens)
    return tuple(_words(tokens, is_query=is_query))


def repeated_rows(tokens: Sequence[Token]) -> list[Token]:
    """The rows behind VALUES that look like an earlier one, each with the comma before it."""
    seen: set[Shape] = set()
    repeated: list[Token] = []
    for start, end in _rows(tokens):
        row = tokens[start:end]
        is_query = any(token.token_type in _QUERIES for token in row)
        shape = tuple(_words(row, is_query=is_query))
        if shape in seen and tokens[start - 1].token_type is TokenType.COMMA:
            repeated += tokens[start - 1 : end]
        seen.add(shape)
    return repeated


def _words(tokens: Sequence[Token], *, is_query: bool) -> Iterator[tuple[TokenType, str]]:
    before = TokenType.UNKNOWN
    for token in tokens:
        kind = token.token_type
        if kind not in _LITERALS or (is_query and before not in _COMPARISONS):
            yield kind, token.text
        elif is_query:
            yield kind, _form(token.text)
        else:
            yield kind, "." if "." in token.text and kind is TokenType.NUMBER else ""
        before = kind


def _form(literal: str) -> str:
    """A literal with other letters and digits, which can be compared with the same types.

    The type of a number depends on how many digits it has, without those before the first.
    """
    if literal[:1].isdigit():
        digits = literal.lstrip("0.")
        return literal[: len(literal) - len(digits)] + _DIGIT.sub("1", digits)
    return _LETTERS.sub("a", _DIGIT.sub("1", literal))


def _rows(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Where the rows begin and end that follow VALUES outside of all brackets."""
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
