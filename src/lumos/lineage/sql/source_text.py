"""The source text of a statement: expressions, clauses and lines around a position.

The parser only keeps the positions of names and literals. The brackets and keywords around them
identify the clause.
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
_JOINING: Final = frozenset(
    {
        TokenType.JOIN, TokenType.LEFT, TokenType.RIGHT, TokenType.FULL, TokenType.INNER,
        TokenType.CROSS, TokenType.NATURAL, TokenType.OUTER, TokenType.LATERAL,
        TokenType.STRAIGHT_JOIN, TokenType.ASOF,
    }
)  # fmt: skip
_KEYWORDS: Final = frozenset(
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
    | _JOINING
)  # fmt: skip


_ALSO_FUNCTIONS: Final = frozenset(
    {TokenType.LEFT, TokenType.RIGHT, TokenType.OFFSET, TokenType.INSERT, TokenType.SET}
)


_QUERIES: Final = frozenset({TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.VALUES})


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


_LISTS: Final = frozenset({Clause.GROUP, Clause.ORDER, Clause.PARTITION})
_BEFORE_ROWS: Final = frozenset({TokenType.VALUES, TokenType.REPLACE})
_OPERATORS: Final = frozenset(
    {
        TokenType.EQ, TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH,
        TokenType.GT, TokenType.LT, TokenType.GTE, TokenType.LTE, TokenType.NEQ,
    }
)  # fmt: skip
_ITEMS: Final = frozenset({Clause.ITEM, Clause.VALUE})


class SourceText:
    """A SQL text and its tokens."""

    def __init__(self, text: str, tokens: Sequence[Token], *, first_line: int = 1) -> None:
        self._text = text
        self._tokens = tokens
        self._first_line = first_line
        self._known: dict[tuple[int, int], str] = {}

    def part(self, tokens: Sequence[Token]) -> "SourceText":
        """The same text with the tokens of one statement."""
        part = SourceText(self._text, tokens, first_line=self._first_line)
        part._line_ends = self._line_ends
        return part

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
        found = _Brackets()
        open_at: list[int] = [-1]
        for number, token in enumerate(self._tokens):
            kind = token.token_type
            is_end_of_case = kind is TokenType.END and self._kind(open_at[-1]) is TokenType.CASE
            if (kind in _CLOSING or is_end_of_case) and len(open_at) > 1:
                found.ends[open_at.pop()] = number
            found.around.append(open_at[-1])
            if kind in _OPENING or kind is TokenType.CASE:
                open_at.append(number)
            elif kind is TokenType.COMMA:
                found.commas.setdefault(open_at[-1], []).append(number)
            elif kind in _KEYWORDS and not self._is_other_use(number):
                found.keywords.setdefault(open_at[-1], []).append(number)
        return found

    def _kind(self, number: int) -> TokenType | None:
        return self._tokens[number].token_type if 0 <= number < len(self._tokens) else None

    def _is_other_use(self, number: int) -> bool:
        """Whether a keyword does not start a clause.

        LEFT(name, 3) is a function, * EXCEPT (name) is not a set operation, DISTINCT ON is not a
        join, IS DISTINCT FROM is a comparison. After an operator, MySQL's VALUES(name) is a column
        of the new row.
        """
        kind = self._kind(number)
        if kind is TokenType.ON:
            return self._kind(number - 1) is TokenType.DISTINCT
        if kind is TokenType.FROM:
            is_distinct = self._kind(number - 1) is TokenType.DISTINCT
            return is_distinct and self._kind(number - 2) in (TokenType.IS, TokenType.NOT)
        if kind is TokenType.DISTINCT:
            return self._kind(number - 1) is not TokenType.SELECT
        if kind is TokenType.BEGIN:
            # START WITH of a hierarchical query is two tokens.
            return self._kind(number + 1) is not TokenType.WITH
        if kind is TokenType.VALUES:
            return self._kind(number - 1) in _OPERATORS
        if kind is TokenType.EXCEPT:
            return self._kind(number - 1) is TokenType.STAR
        return kind in _ALSO_FUNCTIONS and self._kind(number + 1) is TokenType.L_PAREN

    def line(self, offset: int) -> int:
        """The line of an offset, from 1."""
        return bisect_left(self._line_ends, offset) + self._first_line

    def around(
        self, offset: int, clause: Clause, *, end: int | None = None, outwards: int = 0
    ) -> str | None:
        """The text of the nearest such clause around an offset, up to `end` (an alias) if given.

        An item is one of a list, such as a projection; a value is what SET gives a column.
        `outwards` is how many enclosing queries are part of the clause.
        """
        number = bisect_right(self._starts, offset) - 1
        while outwards and number >= 0:
            number = self._brackets.around[number]
            outwards -= self._kind(number + 1) in _QUERIES
        while number >= 0:
            bracket = self._brackets.around[number]
            keywords = self._brackets.keywords.get(bracket, [])
            following = bisect_right(keywords, number)
            keyword = keywords[following - 1] if following else -1
            is_row = (
                clause in _ITEMS
                and self._kind(bracket - 1) in _BEFORE_ROWS
                and not self._is_other_use(bracket - 1)
            )
            if is_row or self._kind(keyword) in clause.value:
                stop = self._brackets.ends.get(bracket, len(self._tokens))
                if following < len(keywords):
                    stop = min(stop, keywords[following])
                start = keyword
                if clause in _ITEMS:
                    first = bracket if is_row else keyword
                    start, stop = self._item(bracket, number, first + 1, stop)
                elif clause not in _LISTS:
                    _, stop = self._item(bracket, number, start, stop)
                if clause is Clause.JOIN:
                    while self._kind(start - 1) in _JOINING:
                        start -= 1
                if clause is Clause.VALUE:
                    start = next(
                        (each + 1 for each in range(start, number) if self._is_equals(each)), start
                    )
                if clause is Clause.ITEM:
                    start = self._start_after_name(start, end)
                return self.words(range(start, self._stop_before_alias(start, stop, end)))
            number = bracket
        return None

    def nearest(self, offset: int) -> str:
        """Return the call around an offset, or else the token."""
        number = bisect_right(self._starts, offset) - 1
        bracket = self._brackets.around[number]
        if bracket < 1:
            return self.words(range(number, number + 1))
        return self.words(range(bracket - 1, self._brackets.ends.get(bracket, number) + 1))

    def _is_equals(self, number: int) -> bool:
        return self._kind(number) in (TokenType.EQ, TokenType.COLON_EQ)

    def _item(self, bracket: int, number: int, start: int, stop: int) -> tuple[int, int]:
        commas = self._brackets.commas.get(bracket, [])
        following = bisect_right(commas, number)
        if following:
            start = max(start, commas[following - 1] + 1)
        if following < len(commas):
            stop = min(stop, commas[following])
        # DISTINCT ON (a), TOP (3), TOP 3
        if self._kind(start) in (TokenType.ON, TokenType.TOP):
            start = self._brackets.ends.get(start + 1, start + 1) + 1
            while self._text_of(start) in ("PERCENT", "WITH", "TIES"):
                start += 1
        return start, stop

    def _text_of(self, number: int) -> str:
        return self._tokens[number].text.upper() if number < len(self._tokens) else ""

    def _start_after_name(self, start: int, end: int | None) -> int:
        """The start of an item after T-SQL's `name =` and `@name =`."""
        equals = start + 2 if self._kind(start) is TokenType.PARAMETER else start + 1
        is_named = equals == start + 2 or (end is not None and self._starts[start] == end)
        return equals + 1 if is_named and self._kind(equals) is TokenType.EQ else start

    def _stop_before_alias(self, start: int, stop: int, end: int | None) -> int:
        if end is None:
            return stop
        alias = bisect_left(self._starts, end)
        stop = min(stop, alias) if alias > start else stop
        return stop - 1 if stop > start and self._kind(stop - 1) is TokenType.ALIAS else stop

    def words(self, numbers: range) -> str:
        """Tokens as written, without comments and with single blanks."""
        known = self._known.get((numbers.start, numbers.stop))
        if known is None:
            known = self._known[numbers.start, numbers.stop] = self._join_tokens(numbers)
        return known

    def _join_tokens(self, numbers: range) -> str:
        pieces: list[str] = []
        last = -1
        length = 0
        for number in numbers:
            token = self._tokens[number]
            if last >= 0 and token.start > last + 1:
                pieces.append(" ")
                length += 1
            pieces.append(self._text[token.start : token.end + 1])
            last = token.end
            length += len(pieces[-1])
            if length > _MAX_EXCERPT_LENGTH:
                pieces.append(" ...")
                break
        return "".join(pieces)


class _Brackets:
    """For each token the enclosing bracket (-1: none), with keywords and commas by bracket.

    CASE ... END counts as a bracket.
    """

    def __init__(self) -> None:
        self.around: list[int] = []
        self.ends: dict[int, int] = {}
        self.keywords: dict[int, list[int]] = {}
        self.commas: dict[int, list[int]] = {}


def position_of(node: exp.Expr | None) -> int | None:
    """The offset of the first name or literal in an expression that has one."""
    if node is None:
        return None
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
        node = node.this
    for each in node.walk():
        start = each.meta_get("start")
        if start is not None:
            return int(start)
    return None


def position_within(node: exp.Expr) -> tuple[int | None, int]:
    """A position in an expression, if possible outside of its subqueries, and its query depth."""
    for each in node.walk(prune=lambda part: isinstance(part, exp.Query) and part is not node):
        start = each.meta_get("start")
        if start is not None:
            return int(start), 0
    for query in node.find_all(exp.Select):
        offset = position_of(query)
        if offset is not None:
            depth = 0
            parent: exp.Expr | None = query
            while parent is not None and parent is not node.parent:
                depth += isinstance(parent, exp.Select)
                parent = parent.parent
            return offset, depth
    return None, 0
