"""From a text of SQL to what it reads, writes and does with columns."""

import logging
from collections.abc import Iterator, Sequence

import msgspec
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from lumos.lineage.sql.context import Columns, Context, no_columns
from lumos.lineage.sql.names import dialect_named
from lumos.lineage.sql.recording import Recorder
from lumos.lineage.sql.script import Parts, Script, Statement
from lumos.lineage.sql.statements import StatementReader
from lumos.lineage.sql.texts import SourceText

# What the parser does not know is reported by us, with its place.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)


def analyse(
    text: str,
    *,
    dialect: str | None = None,
    columns: Columns = no_columns,
    file: str | None = None,
) -> Script:
    """What a text of SQL says about tables and columns.

    `columns` tells the columns of a table by the parts of its name, or None if nobody knows them.
    """
    spoken = dialect_named(dialect)
    context = Context(spoken, columns)
    recorder = Recorder()
    reader = StatementReader(context, recorder)
    statements: list[Statement] = []
    tokens = spoken.tokenize(text)
    source = SourceText(text, tokens)
    for number, words in enumerate(_split(tokens), start=1):
        context.begin(number, words[0].line, source)
        try:
            nodes = spoken.parser().parse(list(words), text)
        except ParseError as problem:
            context.report(_reason(problem), words[0].start)
            continue
        statements += [reader.read(node) for node in nodes if node is not None]
    return Script(
        statements=tuple(_renamed(each, context.renamed) for each in statements),
        edges=tuple(recorder.edges),
        unresolved=tuple(context.unresolved),
        coverage=recorder.coverage,
        file=file,
    )


def _reason(problem: ParseError) -> str:
    told = problem.errors[0] if problem.errors else {}
    return f"not understood: {told.get('description') or problem}, near '{told.get('highlight')}'"


def _renamed(statement: Statement, names: dict[Parts, Parts]) -> Statement:
    if not names:
        return statement
    writes = tuple(
        msgspec.structs.replace(write, table=names.get(write.table, write.table))
        for write in statement.writes
    )
    return msgspec.structs.replace(statement, writes=writes)


def _split(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    start = 0
    for position, token in enumerate(tokens):
        if token.token_type is TokenType.SEMICOLON:
            if position > start:
                yield tokens[start:position]
            start = position + 1
    if start < len(tokens):
        yield tokens[start:]
