"""Splits a script into statements, including those inside of routines and control flow."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from sqlglot import Token, TokenType

from lumos.lineage.sql.tokens import DYNAMIC_SQL, HARMLESS, VERBS, TokenRun, is_name, keyword


class PlainStatement(NamedTuple):
    """A statement to parse."""

    tokens: Sequence[Token]


class UnparsedTokens(NamedTuple):
    """Tokens that are not parsed, such as the condition of IF; they may contain queries."""

    tokens: Sequence[Token]


class DeclaredVariables(NamedTuple):
    """Variables and parameters that a routine declares."""

    names: tuple[str, ...]


class CursorRows(NamedTuple):
    """The query of a cursor or loop, and the name of its rows."""

    name: str
    tokens: Sequence[Token]


class CursorAlias(NamedTuple):
    """Another name for the rows of a cursor."""

    name: str
    cursor: str


class TriggerTable(NamedTuple):
    """The table whose rows are OLD and NEW in a trigger."""

    tokens: Sequence[Token]


class RoutineStart(NamedTuple):
    """The start of a procedure, function or trigger."""

    name: str = ""


class FetchedVariables(NamedTuple):
    """Variables that FETCH fills from a cursor."""

    cursor: str
    names: tuple[str, ...]


ScriptPart: TypeAlias = (
    PlainStatement
    | UnparsedTokens
    | DeclaredVariables
    | CursorRows
    | CursorAlias
    | FetchedVariables
    | TriggerTable
    | RoutineStart
)

_ROUTINE_KINDS: Final = frozenset({"PROCEDURE", "PROC", "FUNCTION", "TRIGGER", "PACKAGE", "TASK"})
_AFTER_BEGIN: Final = frozenset({"TRY", "CATCH", "TRANSACTION", "TRAN", "WORK", "ATOMIC", "NOT"})
_AFTER_END: Final = frozenset(
    {"IF", "LOOP", "WHILE", "FOR", "CASE", "TRY", "CATCH", "REPEAT", "TRANSACTION"}
)
_TRANSACTION_KEYWORDS: Final = frozenset({"TRANSACTION", "TRAN", "WORK"})
_CONTROL_KEYWORDS: Final = frozenset({"ELSE", "LOOP", "DO", "EXCEPTION", "REPEAT", "THEN"})
# The first keywords of a routine's body, before which the head of the routine ends.
_BODY_KEYWORDS: Final = frozenset(
    {"AS", "IS", "BEGIN", "DECLARE", "RETURN", "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE"}
)
_FETCH: Final = re.compile(r"(\w+)\s+INTO\s+([@:\s\w,]+)", re.IGNORECASE)
_QUERY_STARTS: Final = frozenset({"SELECT", "WITH", "("})


class ScriptSplitter:
    """Splits the tokens of a script into parts."""

    def __init__(self, *, is_tsql: bool) -> None:
        self.is_tsql = is_tsql
        self.in_routine = False
        self._in_package = False
        self._in_declarations = False
        self._open_blocks = 0

    def split(self, tokens: Sequence[Token]) -> Iterator[ScriptPart]:
        """Yield the statements and declarations in order."""
        for chunk in _split_at_semicolons(tokens):
            while chunk and self._is_routine_head(chunk):
                body = _head_length(chunk)
                yield from self._split_head(chunk, body)
                chunk = chunk[body:]
            if not chunk:
                continue
            if self.is_tsql:
                for statement in TokenRun(chunk).statements():
                    yield from self._split_control_flow(statement)
            else:
                yield from self._split_control_flow(chunk)

    def _split_control_flow(self, tokens: Sequence[Token]) -> Iterator[ScriptPart]:
        """Separate control flow, such as IF ... THEN, from the statement after it."""
        while tokens:
            word = keyword(tokens[0])
            length = self._control_flow_length(word, tokens)
            if length == 0:
                break
            if word == "FOR":
                yield from self._split_loop(tokens[:length])
            else:
                yield UnparsedTokens(tokens[:length])
            tokens = tokens[length:]
        if tokens:
            yield from self._split_statement(tokens)

    def _split_statement(self, tokens: Sequence[Token]) -> Iterator[ScriptPart]:
        word = keyword(tokens[0])
        cursor = _read_cursor(tokens)
        if cursor is not None:
            yield cursor
        elif word == "DECLARE":
            if self.is_tsql:
                yield PlainStatement(tokens)
                return
            self._in_declarations = True
            yield from self._split_declaration(tokens[1:])
        elif word == "LET":
            yield from self._split_declaration(tokens[1:])
        elif self._in_declarations and word not in VERBS:
            yield from self._split_declaration(tokens)
        elif word == "FETCH" and len(tokens) > 1:
            yield from _read_fetch(tokens)
        elif word == "RETURN":
            yield from self._split_return(tokens[1:])
        elif word in VERBS or word in DYNAMIC_SQL or not self.in_routine:
            yield PlainStatement(tokens)
        elif word not in HARMLESS:
            yield UnparsedTokens(tokens)

    def _split_return(self, tokens: Sequence[Token]) -> Iterator[ScriptPart]:
        while tokens and keyword(tokens[0]) in ("QUERY", "TABLE", "NEXT"):
            tokens = tokens[1:]
        if tokens and keyword(tokens[0]) in _QUERY_STARTS and (
            keyword(tokens[0]) != "(" or (len(tokens) > 1 and keyword(tokens[1]) in _QUERY_STARTS)
        ):  # fmt: skip
            yield PlainStatement(tokens)
        elif tokens:
            yield UnparsedTokens(tokens)

    def _split_declaration(self, tokens: Sequence[Token]) -> Iterator[ScriptPart]:
        cursor = _read_cursor(tokens)
        if cursor is not None:
            yield cursor
            return
        names = []
        for position, token in enumerate(tokens):
            if not is_name(token):
                break
            names.append(token.text.lower())
            if (
                position + 1 >= len(tokens)
                or tokens[position + 1].token_type is not TokenType.COMMA
            ):
                break
        names = names or [tokens[0].text.lower()] if tokens else []
        if names:
            yield DeclaredVariables(tuple(names))
            yield UnparsedTokens(tokens)

    def _control_flow_length(self, word: str, tokens: Sequence[Token]) -> int:
        """The number of tokens of control flow before the next statement."""
        run = TokenRun(tokens)
        if word == "BEGIN":
            self._in_declarations = False
            length = run.skip(1, _AFTER_BEGIN)
            # BEGIN without a body, or BEGIN TRANSACTION, opens no block.
            is_transaction = not _TRANSACTION_KEYWORDS.isdisjoint(map(keyword, tokens[1:length]))
            if len(tokens) > 1 and not is_transaction:
                self._open_blocks += 1
                self.in_routine = True
            return length
        if word == "END":
            length = run.skip(1, _AFTER_END)
            ends_block = all(keyword(each) in ("TRY", "CATCH") for each in tokens[1:length])
            if ends_block and self._open_blocks:
                self._open_blocks -= 1
                self.in_routine = self._open_blocks > 0
            is_label = (
                length < len(tokens) and keyword(tokens[length]) not in VERBS | _CONTROL_KEYWORDS
            )
            return len(tokens) if is_label and not self.is_tsql else length
        if word in _CONTROL_KEYWORDS:
            return 1
        if word in ("IF", "ELSIF", "ELSEIF", "WHEN", "CASE") and not self.is_tsql:
            end = run.find({"THEN"})
            return end + 1 if end is not None else 0
        if word == "FOR" or (word == "WHILE" and not self.is_tsql):
            end = run.find({"LOOP", "DO"})
            return end + 1 if end is not None else 0
        if word in ("IF", "WHILE"):
            end = run.find(VERBS | {"BEGIN"}, start=1)
            return end if end is not None else len(tokens)
        is_label = (
            len(tokens) > 2 and tokens[1].token_type is TokenType.COLON and is_name(tokens[0])
        )
        return 2 if is_label and keyword(tokens[2]) in ("LOOP", "BEGIN", "WHILE", "REPEAT") else 0

    def _split_loop(self, tokens: Sequence[Token]) -> Iterator[ScriptPart]:
        """Split FOR row IN query LOOP."""
        position = TokenRun(tokens).find({"IN"})
        if position is None or position < 2:
            return
        name = tokens[1].text.lower()
        query = tokens[position + 1 : -1]
        if query and keyword(query[0]) in _QUERY_STARTS:
            yield CursorRows(name, query)
        elif len(query) == 1:
            yield CursorAlias(name, query[0].text.lower())
        else:
            yield DeclaredVariables((name,))

    def _is_routine_head(self, tokens: Sequence[Token]) -> bool:
        # A package declares its procedures without CREATE.
        is_inner = self._in_package and keyword(tokens[0]) in ("PROCEDURE", "FUNCTION")
        return is_inner or _is_routine_head(tokens)

    def _split_head(self, tokens: Sequence[Token], body: int) -> Iterator[ScriptPart]:
        """Split the head of a routine: its name, parameters and trigger table."""
        self.in_routine = True
        self._in_package = self._in_package or _routine_kind(tokens) == "PACKAGE"
        # Between IS and BEGIN, PL/SQL declares variables without a keyword.
        self._in_declarations = not self.is_tsql and keyword(tokens[body - 1]) in ("AS", "IS")
        run = TokenRun(tokens)
        yield RoutineStart(_routine_name(tokens))
        table = run.find({"ON"})
        if table is not None and table < body and _routine_kind(tokens) == "TRIGGER":
            yield TriggerTable(tokens[table + 1 : run.end_of_name(table + 1)])
        names = run.parameters(body)
        if names:
            yield DeclaredVariables(names)


def _is_routine_head(tokens: Sequence[Token]) -> bool:
    if keyword(tokens[0]) not in ("CREATE", "ALTER", "REPLACE"):
        return False
    for token in tokens[1:8]:
        if keyword(token) in _ROUTINE_KINDS:
            return True
        if keyword(token) in ("TABLE", "VIEW", "INTO", "INDEX", "SCHEMA", "AS", "("):
            return False
    return False


def _routine_name(tokens: Sequence[Token]) -> str:
    """The last part of a routine's name."""
    run = TokenRun(tokens)
    kind = next(index for index, token in enumerate(tokens) if keyword(token) in _ROUTINE_KINDS)
    start = run.skip(kind + 1, ("IF", "NOT", "EXISTS", "BODY"))
    end = run.end_of_name(start)
    return tokens[min(end, len(tokens)) - 1].text.lower()


def trigger_functions(tokens: Sequence[Token]) -> Iterator[tuple[str, TriggerTable]]:
    """The functions that triggers call, with the tables of the triggers."""
    for chunk in _split_at_semicolons(tokens):
        if keyword(chunk[0]) != "CREATE" or _routine_kind(chunk) != "TRIGGER":
            continue
        token_run = TokenRun(chunk)
        table = token_run.find({"ON"})
        execute = token_run.find({"EXECUTE"}, start=table or 0)
        if table is not None and execute is not None and execute + 2 < len(chunk):
            name = chunk[token_run.end_of_name(execute + 2) - 1].text.lower()
            yield name, TriggerTable(chunk[table + 1 : token_run.end_of_name(table + 1)])


def _routine_kind(tokens: Sequence[Token]) -> str:
    return next((keyword(each) for each in tokens[:8] if keyword(each) in _ROUTINE_KINDS), "")


def _head_length(tokens: Sequence[Token]) -> int:
    """The number of tokens before the body of a routine."""
    run = TokenRun(tokens)
    start = 1
    if _routine_kind(tokens) == "TRIGGER":
        start = (run.find({"ON"}) or 1) + 1
    body = run.find(_BODY_KEYWORDS, start=start)
    while body is not None and keyword(tokens[body - 1]) in ("EXECUTE", "EXEC"):
        body = run.find(_BODY_KEYWORDS, start=body + 1)
    if body is None:
        return len(tokens)
    return body + 1 if keyword(tokens[body]) in ("AS", "IS") else body


def _split_at_semicolons(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    start = 0
    for position, token in enumerate(tokens):
        if token.token_type is TokenType.SEMICOLON:
            if position > start:
                yield tokens[start:position]
            start = position + 1
    if start < len(tokens):
        yield tokens[start:]


def _read_fetch(tokens: Sequence[Token]) -> Iterator[FetchedVariables]:
    """Read FETCH NEXT FROM name INTO variables.

    The tokenizer returns everything after FETCH as one string.
    """
    match = _FETCH.search(" ".join(token.text for token in tokens))
    if match is not None:
        names = (name.strip(" @:").lower() for name in match.group(2).split(","))
        yield FetchedVariables(match.group(1).lower(), tuple(names))


def _read_cursor(tokens: Sequence[Token]) -> CursorRows | None:
    """Read CURSOR name IS query, DECLARE name CURSOR FOR query, or name CURSOR FOR query."""
    for position, token in enumerate(tokens[:8]):
        if keyword(token) != "CURSOR":
            continue
        index = TokenRun(tokens).find({"FOR", "IS", "AS"}, start=position)
        if index is None or index + 1 >= len(tokens):
            return None
        name = tokens[position - 1] if position and is_name(tokens[position - 1]) else None
        if name is None or keyword(name) in ("DECLARE", "LET"):
            name = tokens[position + 1]
        if keyword(tokens[index + 1]) in _QUERY_STARTS:
            return CursorRows(name.text.lower(), tokens[index + 1 :])
    return None
