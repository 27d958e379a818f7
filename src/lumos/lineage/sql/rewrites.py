"""Rewrites statements that the parser does not support into equivalent, supported statements."""

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from sqlglot import Token, TokenType

from lumos.lineage.sql.tokens import VERBS, TokenRun, is_name, keyword

_PIVOT_KEYWORDS: Final = frozenset({"PIVOT", "UNPIVOT"})
_QUERY_STARTS: Final = frozenset({"SELECT", "WITH", "FROM", "VALUES"}) | _PIVOT_KEYWORDS
_AFTER_OUTPUT: Final = frozenset(
    {"SELECT", "VALUES", "WITH", "EXEC", "EXECUTE", "FROM", "WHERE", "DEFAULT", "OPTION"}
)
_OPERATORS: Final = frozenset("+-*/%&|^")


def simplify_statement(tokens: Sequence[Token]) -> list[Token] | None:
    """Remove clauses that the parser does not support; None if this cannot help."""
    if keyword(tokens[0]) in ("INSERT", "MERGE"):
        return remove_unknown_clauses(tokens)
    if "UPDATE" in (
        keyword(tokens[0]),
        *(keyword(token) for _, token in TokenRun(tokens).outside_brackets()),
    ):
        return expand_assignments(tokens)
    return remove_options(tokens)


def has_hidden_query(tokens: Sequence[Token]) -> bool:
    """Whether a statement that was parsed as a raw command contains a query, by its keywords."""
    if keyword(tokens[0]) not in VERBS - {"ALTER", "DROP", "SET"}:
        return False
    return any(
        keyword(token) in ("SELECT", "PIVOT", "UNPIVOT") and keyword(previous) != "FOR"
        for previous, token in pairwise(tokens)
    )


def query_after_as(tokens: Sequence[Token]) -> list[Token] | None:
    """The query of a table or view, after AS."""
    index = TokenRun(tokens).find({"AS"})
    if index is None or not {"TABLE", "VIEW"} & {keyword(token) for token in tokens[:index]}:
        return None
    return list(tokens[index + 1 :]) or None


def remove_options(tokens: Sequence[Token]) -> list[Token] | None:
    """Remove the options of CREATE TABLE or VIEW name AS query; None for other statements."""
    run = TokenRun(tokens)
    if keyword(tokens[0]) not in ("CREATE", "REPLACE", "ALTER"):
        return None
    kind_index = next(
        (index for index, token in enumerate(tokens[:9]) if keyword(token) in ("TABLE", "VIEW")),
        None,
    )
    if kind_index is None:
        return None
    name_start = run.skip(kind_index + 1, ("IF", "NOT", "EXISTS"))
    if name_start >= len(tokens):
        return None
    end = run.end_of_name(name_start)
    index = run.find({"AS"}, start=end)
    while index is not None and not _is_query_start(tokens, index + 1):
        index = run.find({"AS"}, start=index + 1)
    if index is None:
        return None
    temporary = [
        each for each in tokens[1:kind_index] if keyword(each) in ("TEMP", "TEMPORARY", "VOLATILE")
    ]
    columns = _column_list(tokens, end)
    query = tokens[index + 1 :]
    if keyword(query[-1]) in ("DATA", "OPTION", "ONLY", "BINDING"):
        # WITH NO DATA, WITH LOCAL CHECK OPTION, WITH READ ONLY
        outside = TokenRun(query).outside_brackets(1)
        indexes = [index for index, token in outside if keyword(token) == "WITH"]
        query = query[: indexes[-1]] if indexes else query
    if keyword(query[0]) in _PIVOT_KEYWORDS:
        # PIVOT is a statement of DuckDB, which the parser only supports in FROM after AS.
        query = [
            _make_token(TokenType.FROM, "FROM", query[0]),
            _make_token(TokenType.L_PAREN, "(", query[0]),
            *query, _make_token(TokenType.R_PAREN, ")", query[-1]),
        ]  # fmt: skip
    return [tokens[0], *temporary[:1], tokens[kind_index], *tokens[name_start:end], *columns,
            tokens[index], *query]  # fmt: skip


def remove_unknown_clauses(tokens: Sequence[Token]) -> list[Token]:
    """Remove clauses that the parser does not support from an INSERT or MERGE.

    These are WITH (TABLOCK) and IF NOT EXISTS of an INSERT, and DELETE WHERE after the UPDATE of a
    MERGE.
    """
    run = TokenRun(tokens)
    if keyword(tokens[0]) == "MERGE":
        start = run.find_not_after({"DELETE"}, previous={"THEN"})
        end = run.find({"WHEN"}, start=start) if start is not None else None
        return [*tokens[:start], *(tokens[end:] if end is not None else ())]
    hints = run.end_of_name(run.skip(1, ("INTO", "OVERWRITE", "TABLE")))
    if [keyword(each) for each in tokens[hints : hints + 2]] == ["WITH", "("]:
        return [*tokens[:hints], *tokens[run.end_of_brackets(hints + 1) :]]
    start = run.find({"IF"})
    if start is not None and [keyword(each) for each in tokens[start : start + 3]] == [
        "IF", "NOT", "EXISTS",
    ]:  # fmt: skip
        return [*tokens[:start], *tokens[start + 3 :]]
    return list(tokens)


class SeparatedClause(NamedTuple):
    """A statement without one of its clauses, and the tokens of that clause."""

    statement: Sequence[Token]
    clause: Sequence[Token] = ()


def separate_output(tokens: Sequence[Token]) -> SeparatedClause:
    """Separate T-SQL's OUTPUT inserted.a INTO log (a) from its statement.

    The clause becomes INSERT INTO log (a) SELECT inserted.a.
    """
    run = TokenRun(tokens)
    output = run.find({"OUTPUT"})
    if (
        output is None
        or keyword(tokens[0]) not in ("INSERT", "UPDATE", "DELETE", "MERGE", "WITH")
        or keyword(tokens[output - 1]) in (".", ",", "SET")
        or keyword(tokens[min(output + 1, len(tokens) - 1)]) in ("=", ",", ")")
    ):
        return SeparatedClause(tokens)
    end = run.find(_AFTER_OUTPUT, start=output + 1) or len(tokens)
    into = run.find({"INTO"}, start=output)
    if into is None or into > end:
        return SeparatedClause([*tokens[:output], *tokens[end:]])
    end = run.end_of_name(into + 1 + (keyword(tokens[into + 1]) == "@"))
    if end < len(tokens) and tokens[end].token_type is TokenType.L_PAREN:
        end = run.end_of_brackets(end)
    clause = [
        _make_token(TokenType.INSERT, "INSERT", tokens[output]), *tokens[into:end],
        _make_token(TokenType.SELECT, "SELECT", tokens[output]), *tokens[output + 1 : into],
    ]  # fmt: skip
    return SeparatedClause([*tokens[:output], *tokens[end:]], clause)


def separate_variables(tokens: Sequence[Token], declared: Collection[str]) -> SeparatedClause:
    """Separate the variables after SELECT ... INTO from the query."""
    run = TokenRun(tokens)
    into = run.find({"INTO"}) if keyword(tokens[0]) in ("SELECT", "WITH") else None
    if into is None:
        return SeparatedClause(tokens)
    start = run.skip(into + 1, ("STRICT",))
    end = start
    names: list[Token] = []
    has_marks = start > into + 1
    while end < len(tokens):
        if keyword(tokens[end]) in (":", "@"):
            has_marks = True
            end += 1
        if end < len(tokens):
            names.append(tokens[end])
        end = run.end_of_name(end)
        if end >= len(tokens) or tokens[end].token_type is not TokenType.COMMA:
            break
        end += 1
    is_declared = any(each.text.lower() in declared for each in names)
    if not has_marks and len(names) < 2 and not is_declared:
        return SeparatedClause(tokens)
    return SeparatedClause([*tokens[:into], *tokens[end:]], names)


def expand_assignments(tokens: Sequence[Token]) -> list[Token]:
    """Rewrite SET n += 1 to SET n = n + 1."""
    expanded: list[Token] = []
    start = 0
    for index, token in enumerate(tokens):
        if keyword(token) in ("SET", ","):
            start = index + 1
        is_compound = (
            token.token_type is TokenType.EQ
            and index > start
            and keyword(tokens[index - 1]) in _OPERATORS
            and tokens[index - 1].end + 1 == token.start
        )
        if is_compound:
            operator = expanded.pop()
            expanded += [token, *tokens[start : index - 1], operator]
        else:
            expanded.append(token)
    return expanded


def is_insert_from_procedure(tokens: Sequence[Token]) -> bool:
    """Whether this is `INSERT ... EXEC`, which inserts the rows that a procedure returns."""
    return keyword(tokens[0]) == "INSERT" and TokenRun(tokens).find({"EXEC", "EXECUTE"}) is not None


def _make_token(kind: TokenType, text: str, neighbour: Token) -> Token:
    """Create a token at the position of another one."""
    return Token(kind, text, neighbour.line, neighbour.col, neighbour.start, neighbour.end, [])


def _is_query_start(tokens: Sequence[Token], index: int) -> bool:
    while index < len(tokens) and keyword(tokens[index]) == "(":
        index += 1
    return index < len(tokens) and keyword(tokens[index]) in _QUERY_STARTS


def _column_list(tokens: Sequence[Token], start: int) -> Sequence[Token]:
    """The bracketed tokens at an index if they only contain names, or else no tokens."""
    if start >= len(tokens) or tokens[start].token_type is not TokenType.L_PAREN:
        return ()
    for index in range(start + 1, len(tokens), 2):
        if not is_name(tokens[index]) or index + 1 >= len(tokens):
            return ()
        if tokens[index + 1].token_type is TokenType.R_PAREN:
            return tokens[start : index + 2]
        if tokens[index + 1].token_type is not TokenType.COMMA:
            return ()
    return ()
