"""Words of SQL before they are parsed."""

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from sqlglot.tokenizer_core import Token, TokenType

VERBS: Final = frozenset(
    {
        "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "CREATE", "ALTER", "DROP",
        "TRUNCATE", "REPLACE", "COPY", "UPSERT", "SET", "FROM",
    }
)  # fmt: skip
# Statements that move no data, whatever they say.
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
# Statements that run SQL which stands elsewhere, or keep it to be run.
RUNNING: Final = frozenset({"EXECUTE", "EXEC", "PREPARE"})
# What begins a statement of T-SQL, where nothing parts one from the next.
_BEGINNINGS: Final = (VERBS - {"FROM", "REPLACE", "COPY", "UPSERT"}) | {
    "DECLARE", "IF", "WHILE", "EXEC", "EXECUTE", "PRINT", "RETURN", "BEGIN", "END", "ELSE", "USE",
    "THROW", "RAISERROR", "COMMIT", "ROLLBACK", "OPEN", "FETCH", "CLOSE", "DEALLOCATE", "GRANT",
}  # fmt: skip
_CONTINUING: Final = frozenset({"UNION", "ALL", "EXCEPT", "INTERSECT", "AS", ",", "THEN"})
_OPENING: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE})
_CLOSING: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET})
_QUOTED: Final = frozenset({TokenType.STRING, TokenType.IDENTIFIER, TokenType.NATIONAL_STRING})
_TEMPORARY: Final = frozenset({"TEMP", "TEMPORARY", "VOLATILE"})
_PIVOTS: Final = frozenset({"PIVOT", "UNPIVOT"})
_QUERIES: Final = frozenset({"SELECT", "WITH", "FROM", "VALUES"}) | _PIVOTS
_BEHIND_OUTPUT: Final = frozenset(
    {"SELECT", "VALUES", "WITH", "EXEC", "EXECUTE", "FROM", "WHERE", "DEFAULT", "OPTION"}
)
_OPERATORS: Final = frozenset("+-*/%&|^")
_MODES: Final = frozenset({"IN", "OUT", "INOUT", "VARIADIC"})


def upper(token: Token) -> str:
    """A word in upper case; what stands in quotes is no keyword."""
    return "" if token.token_type in _QUOTED else token.text.upper()


def is_name(token: Token) -> bool:
    """Whether a word may be a name."""
    return token.token_type is TokenType.IDENTIFIER or token.text[:1].isidentifier()


def simplified(tokens: Sequence[Token]) -> list[Token] | None:
    """A statement without what the parser does not know, or None if there is nothing to leave."""
    if upper(tokens[0]) in ("INSERT", "MERGE"):
        return without_decoration(tokens)
    if "UPDATE" in (upper(tokens[0]), *(upper(token) for _, token in Words(tokens).outside())):
        return with_whole_assignments(tokens)
    return without_options(tokens)


def hides_query(tokens: Sequence[Token]) -> bool:
    """Whether a statement that the parser gave up reads or writes rows, as far as words tell."""
    if upper(tokens[0]) not in VERBS - {"ALTER", "DROP", "SET"}:
        return False
    return any(
        upper(token) in ("SELECT", "PIVOT", "UNPIVOT") and upper(before) != "FOR"
        for before, token in pairwise(tokens)
    )


def query_within(tokens: Sequence[Token]) -> list[Token] | None:
    """The query of a table or view, behind AS."""
    behind = Words(tokens).find({"AS"})
    if behind is None or not {"TABLE", "VIEW"} & {upper(token) for token in tokens[:behind]}:
        return None
    return list(tokens[behind + 1 :]) or None


def without_options(tokens: Sequence[Token]) -> list[Token] | None:
    """CREATE TABLE or VIEW name AS query, without the options that a parser may not know."""
    words = Words(tokens)
    if upper(tokens[0]) not in ("CREATE", "REPLACE", "ALTER"):
        return None
    kind = next(
        (place for place, token in enumerate(tokens[:9]) if upper(token) in ("TABLE", "VIEW")), None
    )
    if kind is None:
        return None
    name = words.skip(kind + 1, ("IF", "NOT", "EXISTS"))
    if name >= len(tokens):
        return None
    end = words.end_of_name(name)
    behind = words.find({"AS"}, start=end)
    while behind is not None and not _begins_query(tokens, behind + 1):
        behind = words.find({"AS"}, start=behind + 1)
    if behind is None:
        return None
    temporary = [
        each for each in tokens[1:kind] if upper(each) in ("TEMP", "TEMPORARY", "VOLATILE")
    ]
    columns = _column_list(tokens, end)
    query = tokens[behind + 1 :]
    if upper(query[-1]) in ("DATA", "OPTION", "ONLY", "BINDING"):
        # WITH NO DATA, WITH LOCAL CHECK OPTION, WITH READ ONLY
        places = [place for place, token in Words(query).outside(1) if upper(token) == "WITH"]
        query = query[: places[-1]] if places else query
    if upper(query[0]) in _PIVOTS:
        # DuckDB's PIVOT is a statement; the parser knows it in FROM, too.
        query = [
            _word(TokenType.FROM, "FROM", query[0]), _word(TokenType.L_PAREN, "(", query[0]),
            *query, _word(TokenType.R_PAREN, ")", query[-1]),
        ]  # fmt: skip
    return [tokens[0], *temporary[:1], tokens[kind], *tokens[name:end], *columns,
            tokens[behind], *query]  # fmt: skip


def without_decoration(tokens: Sequence[Token]) -> list[Token]:
    """A statement without what the parser does not know.

    That is WITH (TABLOCK) and IF NOT EXISTS of an INSERT, and DELETE WHERE behind the UPDATE of a
    MERGE.
    """
    words = Words(tokens)
    if upper(tokens[0]) == "MERGE":
        start = words.find_behind({"DELETE"}, not_behind={"THEN"})
        end = words.find({"WHEN"}, start=start) if start is not None else None
        return [*tokens[:start], *(tokens[end:] if end is not None else ())]
    hints = words.end_of_name(words.skip(1, ("INTO", "OVERWRITE", "TABLE")))
    if [upper(each) for each in tokens[hints : hints + 2]] == ["WITH", "("]:
        return [*tokens[:hints], *tokens[words.end_of_brackets(hints + 1) :]]
    start = words.find({"IF"})
    if start is not None and [upper(each) for each in tokens[start : start + 3]] == [
        "IF", "NOT", "EXISTS",
    ]:  # fmt: skip
        return [*tokens[:start], *tokens[start + 3 :]]
    return list(tokens)


class Parted(NamedTuple):
    """A statement without a clause, and the words of that clause."""

    rest: Sequence[Token]
    clause: Sequence[Token] = ()


def without_output(tokens: Sequence[Token]) -> Parted:
    """T-SQL's OUTPUT inserted.a INTO log (a) apart from the statement, as an INSERT."""
    words = Words(tokens)
    output = words.find({"OUTPUT"})
    if (
        output is None
        or upper(tokens[0]) not in ("INSERT", "UPDATE", "DELETE", "MERGE", "WITH")
        or upper(tokens[output - 1]) in (".", ",", "SET")
        or upper(tokens[min(output + 1, len(tokens) - 1)]) in ("=", ",", ")")
    ):
        return Parted(tokens)
    end = words.find(_BEHIND_OUTPUT, start=output + 1) or len(tokens)
    into = words.find({"INTO"}, start=output)
    if into is None or into > end:
        return Parted([*tokens[:output], *tokens[end:]])
    end = words.end_of_name(into + 1 + (upper(tokens[into + 1]) == "@"))
    if end < len(tokens) and tokens[end].token_type is TokenType.L_PAREN:
        end = words.end_of_brackets(end)
    clause = [
        _word(TokenType.INSERT, "INSERT", tokens[output]), *tokens[into:end],
        _word(TokenType.SELECT, "SELECT", tokens[output]), *tokens[output + 1 : into],
    ]  # fmt: skip
    return Parted([*tokens[:output], *tokens[end:]], clause)


def without_variables(tokens: Sequence[Token], declared: Collection[str]) -> Parted:
    """SELECT ... INTO apart from the variables that it fills."""
    words = Words(tokens)
    into = words.find({"INTO"}) if upper(tokens[0]) in ("SELECT", "WITH") else None
    if into is None:
        return Parted(tokens)
    start = words.skip(into + 1, ("STRICT",))
    end = start
    names: list[Token] = []
    has_marks = start > into + 1
    while end < len(tokens):
        if upper(tokens[end]) in (":", "@"):
            has_marks = True
            end += 1
        if end < len(tokens):
            names.append(tokens[end])
        end = words.end_of_name(end)
        if end >= len(tokens) or tokens[end].token_type is not TokenType.COMMA:
            break
        end += 1
    if not has_marks and len(names) < 2 and not any(n.text.lower() in declared for n in names):
        return Parted(tokens)
    return Parted([*tokens[:into], *tokens[end:]], names)


def with_whole_assignments(tokens: Sequence[Token]) -> list[Token]:
    """SET n += 1 as SET n = n + 1."""
    made: list[Token] = []
    start = 0
    for place, token in enumerate(tokens):
        if upper(token) in ("SET", ","):
            start = place + 1
        is_compound = (
            token.token_type is TokenType.EQ
            and place > start
            and upper(tokens[place - 1]) in _OPERATORS
            and tokens[place - 1].end + 1 == token.start
        )
        if is_compound:
            operator = made.pop()
            made += [token, *tokens[start : place - 1], operator]
        else:
            made.append(token)
    return made


def fills_from_procedure(tokens: Sequence[Token]) -> bool:
    """Whether this is INSERT ... EXEC."""
    return upper(tokens[0]) == "INSERT" and Words(tokens).find({"EXEC", "EXECUTE"}) is not None


def _word(kind: TokenType, text: str, place: Token) -> Token:
    """A word that nobody wrote, on the place of another."""
    return Token(kind, text, place.line, place.col, place.start, place.end, [])


def _begins_query(tokens: Sequence[Token], place: int) -> bool:
    while place < len(tokens) and upper(tokens[place]) == "(":
        place += 1
    return place < len(tokens) and upper(tokens[place]) in _QUERIES


def _column_list(tokens: Sequence[Token], start: int) -> Sequence[Token]:
    """Bare names in brackets."""
    if start >= len(tokens) or tokens[start].token_type is not TokenType.L_PAREN:
        return ()
    for place in range(start + 1, len(tokens), 2):
        if not is_name(tokens[place]) or place + 1 >= len(tokens):
            return ()
        if tokens[place + 1].token_type is TokenType.R_PAREN:
            return tokens[start : place + 2]
        if tokens[place + 1].token_type is not TokenType.COMMA:
            return ()
    return ()


class Words:
    """A run of words, searched outside of brackets."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens

    def outside(self, start: int = 0) -> Iterator[tuple[int, Token]]:
        """Every word that stands in no bracket and no CASE."""
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

    def find(self, wanted: Collection[str], *, start: int = 0) -> int | None:
        """The place of the first of these words outside of brackets."""
        for position, token in self.outside(start):
            if upper(token) in wanted:
                return position
        return None

    def find_behind(self, wanted: Collection[str], *, not_behind: Collection[str]) -> int | None:
        """The place of the first of these words that stands behind another one than these."""
        for position, token in self.outside(1):
            if upper(token) in wanted and upper(self._tokens[position - 1]) not in not_behind:
                return position
        return None

    def skip(self, start: int, words: Collection[str]) -> int:
        """The place behind such words."""
        while start < len(self._tokens) and upper(self._tokens[start]) in words:
            start += 1
        return start

    def end_of_name(self, start: int) -> int:
        """The place behind a name with dots."""
        position = start + 1
        while (
            position + 1 < len(self._tokens) and self._tokens[position].token_type is TokenType.DOT
        ):
            position += 2
        return position

    def end_of_brackets(self, start: int) -> int:
        """The place behind brackets that open there."""
        depth = 0
        for position in range(start, len(self._tokens)):
            kind = self._tokens[position].token_type
            depth += (kind in _OPENING) - (kind in _CLOSING)
            if depth == 0:
                return position + 1
        return len(self._tokens)

    def parameters(self, end: int) -> tuple[str, ...]:
        """The names in the first brackets before a place: those of a routine's parameters."""
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
            elif expects_name and upper(token) not in _MODES and is_name(token):
                names.append(token.text.lower())
                expects_name = False
        return tuple(names)

    def statements(self) -> Iterator[Sequence[Token]]:
        """Statements that no semicolon parts."""
        start = 0
        verb = before = ""
        seen: set[str] = set()
        for position, token in self.outside():
            # A keyword beside a dot is a name.
            is_name_part = before == "." or (
                position + 1 < len(self._tokens)
                and self._tokens[position + 1].token_type is TokenType.DOT
            )
            word = token.text if is_name_part else upper(token)
            if (
                word in _BEGINNINGS
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
        """Whether a word that could begin a statement belongs to the one before it."""
        if before in _CONTINUING:
            return True
        following = [upper(token) for token in self._tokens[position + 1 : position + 3]]
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
            return len(following) < 2 or following[0] == "(" or following[1] not in ("AS", "(")
        if word == "IF":
            return following[:1] == ["EXISTS"] and verb in ("DROP", "ALTER", "TRUNCATE", "CREATE")
        return word in ("DROP", "ALTER") and (verb == "ALTER" or before == "OR")
