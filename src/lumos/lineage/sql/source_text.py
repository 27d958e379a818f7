"""The source text of a statement: expressions, clauses and lines around a position.

The parser only keeps the offsets of names and literals. Their clause is found by the brackets and
keywords around them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from enum import Enum
from functools import cached_property
from typing import Final

from sqlglot import Token, TokenType, exp

_MAX_EXCERPT_LENGTH: Final = 1000
_OPENING: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSING: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})
_JOIN_KEYWORDS: Final = frozenset(
    {
        TokenType.JOIN, TokenType.LEFT, TokenType.RIGHT, TokenType.FULL, TokenType.INNER,
        TokenType.CROSS, TokenType.NATURAL, TokenType.OUTER, TokenType.LATERAL,
        TokenType.STRAIGHT_JOIN, TokenType.ASOF,
    }
)  # fmt: skip
_CLAUSE_KEYWORDS: Final = frozenset(
    {
        TokenType.SELECT, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING,
        TokenType.QUALIFY, TokenType.ORDER_BY, TokenType.SORT_BY, TokenType.CLUSTER_BY,
        TokenType.DISTRIBUTE_BY, TokenType.LIMIT, TokenType.FETCH, TokenType.OFFSET,
        TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.WINDOW, TokenType.ON,
        TokenType.USING, TokenType.PARTITION_BY, TokenType.SET, TokenType.INTO, TokenType.VALUES,
        TokenType.RETURNING, TokenType.INSERT, TokenType.WHEN, TokenType.THEN, TokenType.ELSE,
        TokenType.PREWHERE, TokenType.PIVOT, TokenType.UNPIVOT, TokenType.START_WITH,
        TokenType.CONNECT_BY, TokenType.DISTINCT, TokenType.UPDATE, TokenType.BEGIN,
    }
    | _JOIN_KEYWORDS
)  # fmt: skip
_ALSO_FUNCTIONS: Final = frozenset(
    {TokenType.LEFT, TokenType.RIGHT, TokenType.OFFSET, TokenType.INSERT, TokenType.SET}
)
_QUERY_KEYWORDS: Final = frozenset(
    {TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.VALUES}
)


class Clause(Enum):
    """A clause around a name, by the keywords that begin it."""

    ITEM = (
        TokenType.SELECT,
        TokenType.DISTINCT,
        TokenType.SET,
        TokenType.VALUES,
        TokenType.GROUP_BY,
        TokenType.RETURNING,
    )
    VALUE = (TokenType.SET, TokenType.UPDATE)
    ON = (TokenType.ON, TokenType.USING)
    WHERE = (TokenType.WHERE, TokenType.PREWHERE)
    GROUP = (TokenType.GROUP_BY,)
    HAVING = (TokenType.HAVING,)
    QUALIFY = (TokenType.QUALIFY,)
    ORDER = (
        TokenType.ORDER_BY,
        TokenType.SORT_BY,
        TokenType.CLUSTER_BY,
        TokenType.DISTRIBUTE_BY,
    )
    PARTITION = (TokenType.PARTITION_BY,)
    WHEN = (TokenType.WHEN,)
    JOIN = (TokenType.JOIN,)
    START = (TokenType.START_WITH, TokenType.BEGIN)
    CONNECT = (TokenType.CONNECT_BY,)

    # Clauses are parts of many dictionary keys, and the hash function of Enum is slow.
    __hash__ = object.__hash__


_LIST_CLAUSES: Final = frozenset({Clause.GROUP, Clause.ORDER, Clause.PARTITION})
_BEFORE_ROWS: Final = frozenset({TokenType.VALUES, TokenType.REPLACE})
_OPERATORS: Final = frozenset(
    {
        TokenType.EQ, TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH,
        TokenType.GT, TokenType.LT, TokenType.GTE, TokenType.LTE, TokenType.NEQ,
    }
)  # fmt: skip
_ITEM_CLAUSES: Final = frozenset({Clause.ITEM, Clause.VALUE})


class SourceText:
    """A SQL text and its tokens."""

    def __init__(self, text: str, tokens: Sequence[Token], *, first_line: int = 1) -> None:
        self._text = text
        self._tokens = tokens
        self._first_line = first_line
        self._text_cache: dict[tuple[int, int], str] = {}

    def for_statement(self, tokens: Sequence[Token]) -> "SourceText":
        """The same text with only the tokens of one statement."""
        statement = SourceText(self._text, tokens, first_line=self._first_line)
        statement._line_ends = self._line_ends
        return statement

    @cached_property
    def _starts(self) -> list[int]:
        return [token.start for token in self._tokens]

    @cached_property
    def _line_ends(self) -> list[int]:
        ends, offset = [], self._text.find("\n")
        while offset >= 0:
            ends.append(offset)
            offset = self._text.find("\n", offset + 1)
        return ends

    @cached_property
    def _brackets(self) -> "_Brackets":
        brackets = _Brackets()
        open_brackets: list[int] = [-1]
        for index, token in enumerate(self._tokens):
            kind = token.token_type
            is_end_of_case = (
                kind is TokenType.END and self._kind(open_brackets[-1]) is TokenType.CASE
            )
            if (kind in _CLOSING or is_end_of_case) and len(open_brackets) > 1:
                brackets.closing[open_brackets.pop()] = index
            brackets.enclosing.append(open_brackets[-1])
            if kind in _OPENING or kind is TokenType.CASE:
                open_brackets.append(index)
            elif kind is TokenType.COMMA:
                brackets.commas.setdefault(open_brackets[-1], []).append(index)
            elif kind in _CLAUSE_KEYWORDS and not self._has_other_meaning(index):
                brackets.keywords.setdefault(open_brackets[-1], []).append(index)
        return brackets

    def _kind(self, index: int) -> TokenType | None:
        return self._tokens[index].token_type if 0 <= index < len(self._tokens) else None

    def _has_other_meaning(self, index: int) -> bool:
        """Whether a keyword does not start a clause here.

        LEFT(name, 3) is a function, * EXCEPT (name) is not a set operation, DISTINCT ON is not a
        join, IS DISTINCT FROM is a comparison. After an operator, MySQL's VALUES(name) is a column
        of the new row.
        """
        kind = self._kind(index)
        if kind is TokenType.ON:
            return self._kind(index - 1) is TokenType.DISTINCT
        if kind is TokenType.FROM:
            is_distinct = self._kind(index - 1) is TokenType.DISTINCT
            return is_distinct and self._kind(index - 2) in (TokenType.IS, TokenType.NOT)
        if kind is TokenType.DISTINCT:
            return self._kind(index - 1) is not TokenType.SELECT
        if kind is TokenType.BEGIN:
            # START WITH of a hierarchical query is two tokens.
            return self._kind(index + 1) is not TokenType.WITH
        if kind is TokenType.VALUES:
            return self._kind(index - 1) in _OPERATORS
        if kind is TokenType.EXCEPT:
            return self._kind(index - 1) is TokenType.STAR
        return kind in _ALSO_FUNCTIONS and self._kind(index + 1) is TokenType.L_PAREN

    def line(self, offset: int) -> int:
        """The line of an offset, from 1."""
        return bisect_left(self._line_ends, offset) + self._first_line

    def clause_text(
        self, offset: int, clause: Clause, *, end: int | None = None, enclosing_queries: int = 0
    ) -> str | None:
        """The text of the nearest clause of a kind around an offset; None if there is none.

        The text stops before `end`, the offset of an alias. `Clause.ITEM` is one item of a list,
        such as a projection, and `Clause.VALUE` the expression that SET assigns.
        `enclosing_queries` is the number of queries around the offset that the clause contains: the
        search starts outside of them.
        """
        index = bisect_right(self._starts, offset) - 1
        while enclosing_queries and index >= 0:
            index = self._brackets.enclosing[index]
            enclosing_queries -= self._kind(index + 1) in _QUERY_KEYWORDS
        while index >= 0:
            bracket = self._brackets.enclosing[index]
            keywords = self._brackets.keywords.get(bracket, [])
            next_keyword = bisect_right(keywords, index)
            keyword = keywords[next_keyword - 1] if next_keyword else -1
            is_row = (
                clause in _ITEM_CLAUSES
                and self._kind(bracket - 1) in _BEFORE_ROWS
                and not self._has_other_meaning(bracket - 1)
            )
            if is_row or self._kind(keyword) in clause.value:
                stop = self._brackets.closing.get(bracket, len(self._tokens))
                if next_keyword < len(keywords):
                    stop = min(stop, keywords[next_keyword])
                start = keyword
                if clause in _ITEM_CLAUSES:
                    first = bracket if is_row else keyword
                    start, stop = self._item(bracket, index, first + 1, stop)
                elif clause not in _LIST_CLAUSES:
                    _, stop = self._item(bracket, index, start, stop)
                if clause is Clause.JOIN:
                    while self._kind(start - 1) in _JOIN_KEYWORDS:
                        start -= 1
                if clause is Clause.VALUE:
                    equals = (TokenType.EQ, TokenType.COLON_EQ)
                    start = next(
                        (each + 1 for each in range(start, index) if self._kind(each) in equals),
                        start,
                    )
                if clause is Clause.ITEM:
                    start = self._start_after_name(start, end)
                return self._token_text(range(start, self._stop_before_alias(start, stop, end)))
            index = bracket
        return None

    def call_or_token_text(self, offset: int) -> str:
        """The text of the function call around an offset, or else of the token."""
        index = bisect_right(self._starts, offset) - 1
        bracket = self._brackets.enclosing[index]
        if bracket < 1:
            return self._token_text(range(index, index + 1))
        return self._token_text(range(bracket - 1, self._brackets.closing.get(bracket, index) + 1))

    def _item(self, bracket: int, index: int, start: int, stop: int) -> tuple[int, int]:
        """Narrow a range of tokens to the list item that contains a token."""
        commas = self._brackets.commas.get(bracket, [])
        next_comma = bisect_right(commas, index)
        if next_comma:
            start = max(start, commas[next_comma - 1] + 1)
        if next_comma < len(commas):
            stop = min(stop, commas[next_comma])
        # DISTINCT ON (a), TOP (3), TOP 3
        if self._kind(start) in (TokenType.ON, TokenType.TOP):
            start = self._brackets.closing.get(start + 1, start + 1) + 1
            while self._text_of(start) in ("PERCENT", "WITH", "TIES"):
                start += 1
        return start, stop

    def _text_of(self, index: int) -> str:
        return self._tokens[index].text.upper() if index < len(self._tokens) else ""

    def _start_after_name(self, start: int, end: int | None) -> int:
        """The start of an item, after the name in T-SQL's `name = value` or `@name = value`."""
        equals = start + 2 if self._kind(start) is TokenType.PARAMETER else start + 1
        is_named = equals == start + 2 or (end is not None and self._starts[start] == end)
        return equals + 1 if is_named and self._kind(equals) is TokenType.EQ else start

    def _stop_before_alias(self, start: int, stop: int, end: int | None) -> int:
        if end is None:
            return stop
        alias = bisect_left(self._starts, end)
        stop = min(stop, alias) if alias > start else stop
        return stop - 1 if stop > start and self._kind(stop - 1) is TokenType.ALIAS else stop

    def _token_text(self, indexes: range) -> str:
        """The text of a range of tokens, without comments and with single blanks."""
        text = self._text_cache.get((indexes.start, indexes.stop))
        if text is None:
            text = self._text_cache[indexes.start, indexes.stop] = self._join_tokens(indexes)
        return text

    def _join_tokens(self, indexes: range) -> str:
        pieces: list[str] = []
        previous_end = -1
        length = 0
        for index in indexes:
            token = self._tokens[index]
            if previous_end >= 0 and token.start > previous_end + 1:
                pieces.append(" ")
                length += 1
            pieces.append(self._text[token.start : token.end + 1])
            previous_end = token.end
            length += len(pieces[-1])
            if length > _MAX_EXCERPT_LENGTH:
                pieces.append(" ...")
                break
        return "".join(pieces)


class _Brackets:
    """The brackets of a token list; CASE ... END counts as a bracket.

    A bracket is identified by the index of its opening token, the outermost level by -1.
    `enclosing` has the bracket of each token. The others map a bracket to its closing token, and to
    the clause keywords and commas directly inside of it.
    """

    def __init__(self) -> None:
        self.enclosing: list[int] = []
        self.closing: dict[int, int] = {}
        self.keywords: dict[int, list[int]] = {}
        self.commas: dict[int, list[int]] = {}


def offset_of(node: exp.Expr | None) -> int | None:
    """The offset of the first name or literal in an expression that has an offset."""
    if node is None:
        return None
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
        node = node.this
    for each in node.walk():
        start = each.meta_get("start")
        if start is not None:
            return int(start)
    return None


def offset_and_depth(node: exp.Expr) -> tuple[int | None, int]:
    """An offset in an expression, and the number of subqueries of the expression that contain it.

    An offset outside of all subqueries is preferred.
    """
    for each in node.walk(prune=lambda part: isinstance(part, exp.Query) and part is not node):
        start = each.meta_get("start")
        if start is not None:
            return int(start), 0
    for query in node.find_all(exp.Select):
        offset = offset_of(query)
        if offset is not None:
            depth = 0
            parent: exp.Expr | None = query
            while parent is not None and parent is not node.parent:
                depth += isinstance(parent, exp.Select)
                parent = parent.parent
            return offset, depth
    return None, 0
