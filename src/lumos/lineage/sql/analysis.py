"""From a text of SQL to what it reads, writes and does with columns."""

import logging
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

import msgspec
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token

from lumos.lineage.jinja import UNKNOWN, Unknown
from lumos.lineage.sql.context import Columns, Context, no_columns
from lumos.lineage.sql.keeping import Keeper, is_needed
from lumos.lineage.sql.names import Spellings, dialect_named
from lumos.lineage.sql.preparing import prepared
from lumos.lineage.sql.recording import Recorder
from lumos.lineage.sql.script import ColumnEdge, Parts, Script, Statement
from lumos.lineage.sql.secrets import masked
from lumos.lineage.sql.splitting import (
    Declared,
    Fetched,
    Piece,
    Plain,
    Routine,
    Rows,
    SameRows,
    Splitter,
    Triggered,
    triggers,
)
from lumos.lineage.sql.statements import StatementReader, is_statement
from lumos.lineage.sql.texts import SourceText
from lumos.lineage.sql.tokens import tokenized
from lumos.lineage.sql.watching import Watcher
from lumos.lineage.sql.words import (
    HARMLESS,
    Parted,
    fills_from_procedure,
    hides_query,
    query_within,
    simplified,
    upper,
    without_output,
    without_variables,
)

_DEEP_STACK: Final = 512 * 1024 * 1024
_DEEPEST: Final = 60_000
_DEEP_THREAD: Final = "lumos-sql"
_DEEP: Final = threading.Lock()
_CLASS: Final = re.compile(r"<class '[\w.]*?(\w+)'>")
_MISSING: Final = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]*?(\w+)'>")
_TOKEN: Final = re.compile(r"<Token .*?\btext: (.*?), line:.*?>", re.DOTALL)


def analyse(
    text: str,
    *,
    dialect: str | None = None,
    columns: Columns = no_columns,
    file: str | None = None,
    watcher: Watcher | None = None,
) -> Script:
    """What a text of SQL says about tables and columns.

    `columns` tells the columns of a table by the parts of its name, or None if nobody knows them.
    """

    def run(*, is_deep: bool) -> Script:
        with _without_parser_log():
            return _Analysis(dialect, columns, watcher, is_deep=is_deep).script(text, file)

    try:
        return run(is_deep=False)
    except RecursionError:
        if threading.current_thread().name == _DEEP_THREAD:
            raise
        return _in_deep_stack(lambda: run(is_deep=True))


@contextmanager
def _without_parser_log() -> Iterator[None]:
    """Drops what the parser logs in this thread: we report it ourselves, with its place."""
    thread = threading.get_ident()

    def is_of_others(record: logging.LogRecord) -> bool:
        return record.thread != thread

    logger = logging.getLogger("sqlglot")
    logger.addFilter(is_of_others)
    try:
        yield
    finally:
        logger.removeFilter(is_of_others)


def _in_deep_stack(work: Callable[[], Script]) -> Script:
    """Runs what is nested deeper than ordinary stacks hold, in a thread with a large one.

    Python has one recursion limit for all threads. So one text at a time is read with a higher one,
    or two of them could leave it behind.
    """
    done: list[Script] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as problem:  # noqa: BLE001 - raised again by the caller's thread
            failed.append(problem)

    with _DEEP:
        limit = sys.getrecursionlimit()
        try:
            sys.setrecursionlimit(_DEEPEST)
            thread = _started(run)
            thread.join()
        finally:
            sys.setrecursionlimit(limit)
    if failed:
        raise failed[0]
    return done[0]


def _started(run: Callable[[], None]) -> threading.Thread:
    """A thread with a large stack; those that others start next have their usual one."""
    thread = threading.Thread(target=run, name=_DEEP_THREAD)
    usual = threading.stack_size(_DEEP_STACK)
    try:
        thread.start()
    finally:
        threading.stack_size(usual)
    return thread


class _Analysis:
    """The way of one text through tokenizer, parser and reader."""

    def __init__(
        self, dialect: str | None, columns: Columns, watcher: Watcher | None = None,
        *, is_deep: bool = False,
    ) -> None:  # fmt: skip
        self._is_deep = is_deep
        self._dialect = dialect_named(dialect)
        self._context = Context(self._dialect, columns, watcher)
        self._recorder = Recorder()
        self._reader = StatementReader(self._context, self._recorder)
        self._splitter = Splitter(is_tsql=self._context.habits.name in ("tsql", "fabric"))
        self._statements: list[Statement] = []
        # Whoever watches has the text already.
        self._keeper = Keeper() if watcher is None else None
        self._number = 0
        self._errors = 0
        self._source = SourceText("", ())
        self._text = ""
        # The line on which each statement begins.
        self._begun: list[tuple[int, int]] = []
        # PostgreSQL's trigger functions learn only from the trigger whose rows they see.
        self._triggers: dict[str, Triggered] = {}

    def script(self, text: str, file: str | None) -> Script:
        text = text.removeprefix("\ufeff")
        ready = prepared(text, self._context.habits.name)
        # Who reads whole projects has rendered the text before.
        self._recorder.has_templates = UNKNOWN in text or not all(
            each.is_remark for each in ready.unknown
        )
        for source, part, tokens in self._tokenized(ready.text):
            self._source, self._text = source, part
            self._triggers.update(triggers(tokens))
            for piece in self._splitter.pieces(tokens):
                self._piece(piece)
            if self._keeper is not None:
                self._keeper.end(part, tokens)
        statements = [_renamed(each, self._context.renamed) for each in self._statements]
        edges: Iterable[ColumnEdge] = self._recorder.edges
        if self._context.folding.has_quoted:
            spellings = Spellings()
            self._recorder.see(spellings)
            for each in statements:
                _see(each, spellings)
            statements = [_spelled(each, spellings) for each in statements]
            edges = self._recorder.spelled_edges(spellings)
        self._report_templates(ready.unknown)
        return Script(
            statements=tuple(statements),
            edges=tuple(edge for edge in edges if not _is_unrendered(edge)),
            unresolved=tuple(self._context.unresolved),
            coverage=self._recorder.coverage,
            file=file,
            kept=self._keeper.text if self._keeper is not None else "",
        )

    def _tokenized(self, text: str) -> Iterator[tuple[SourceText, str, Sequence[Token]]]:
        """The words of the text; where a quote is never closed, of every statement by itself."""
        try:
            text, tokens = self._masked(text)
        except SqlglotError:
            line = 1
            for part in text.split(";"):
                yield from self._tokenized_part(part, line)
                line += part.count("\n")
        else:
            yield SourceText(text, tokens), text, tokens

    def _tokenized_part(
        self, part: str, line: int
    ) -> Iterator[tuple[SourceText, str, Sequence[Token]]]:
        try:
            part, tokens = self._masked(part)
        except SqlglotError as problem:
            if self._keeper is not None:
                self._keeper.leave_out_part(part)
            self._number += 1
            blank = part[: len(part) - len(part.lstrip())].count("\n")
            self._begin(line + blank, SourceText(part, ()))
            self._failed(f"not understood: {_first_line(str(problem))}", None)
        else:
            yield SourceText(part, tokens, first_line=line), part, tokens

    def _masked(self, text: str) -> tuple[str, Sequence[Token]]:
        """A text without its secrets, and its words."""
        tokens = tokenized(text, self._dialect)
        safe = masked(text, tokens)
        return (text, tokens) if safe == text else (safe, tokenized(safe, self._dialect))

    def _piece(self, piece: Piece) -> None:
        context = self._context
        if isinstance(piece, Plain):
            self._read(piece.tokens)
        elif isinstance(piece, Declared):
            context.variables.update(piece.names)
        elif isinstance(piece, Routine):
            context.begin_routine()
            if piece.name in self._triggers:
                self._triggered(self._triggers[piece.name])
        elif isinstance(piece, SameRows):
            if piece.cursor in context.rows:
                context.rows[piece.name] = context.rows[piece.cursor]
        elif isinstance(piece, Fetched):
            self._reader.fetch(piece.cursor, piece.names)
        elif isinstance(piece, Rows):
            for node in self._parsed(piece.tokens):
                context.rows[piece.name] = self._reader.rows(node)
        elif isinstance(piece, Triggered):
            self._triggered(piece)

    def _triggered(self, piece: Triggered) -> None:
        names = [token for token in piece.tokens if token.text != "."]
        table = exp.Table(
            **{
                key: exp.to_identifier(token.text)
                for key, token in zip(("this", "db", "catalog"), reversed(names), strict=False)
            }
        )
        relation = self._reader.table(table)
        self._context.rows.update({"new": relation, "old": relation})
        for name in ("inserted", "deleted"):
            self._context.temporary[name,] = relation

    def _read(self, tokens: Sequence[Token]) -> None:
        errors = self._errors
        is_needed = False
        try:
            for node in self._parsed(tokens):
                if is_statement(node):
                    self._statements.append(self._reader.read(node))
                    is_needed |= self._is_needed(node, self._statements[-1])
                elif not self._splitter.in_routine and upper(tokens[0]) not in HARMLESS:
                    self._failed("not understood: this is no statement", tokens[0].start)
        except RecursionError:
            if not self._is_deep:
                raise
            self._failed("not understood: nested too deeply", tokens[0].start)
        if self._keeper is not None and self._errors > errors and not is_needed:
            self._keeper.doubt(tokens)
        elif self._keeper is not None and not is_needed:
            self._keeper.leave_out(tokens)

    def _is_needed(self, node: exp.Expr, statement: Statement) -> bool:
        return is_needed(
            node,
            writes=bool(statement.writes),
            in_routine=self._splitter.in_routine,
            is_tsql=self._splitter.is_tsql,
        )

    def _parsed(self, tokens: Sequence[Token]) -> Iterator[exp.Expr]:
        self._number += 1
        self._begin(self._source.line(tokens[0].start), self._source.part(tokens))
        output = filled = Parted(tokens)
        if self._splitter.is_tsql:
            tokens = (output := without_output(tokens)).rest
        elif self._splitter.in_routine:
            tokens = (filled := without_variables(tokens, self._context.variables)).rest
        problem: ParseError | None = None
        nodes: Sequence[exp.Expr | None] = ()
        try:
            nodes = self._dialect.parser().parse(list(tokens), self._text)
        except ParseError as failed:
            problem = failed
        if problem is not None or _has_command(nodes):
            bare = simplified(tokens)
            if bare is not None:
                with suppress(ParseError):
                    nodes = self._dialect.parser().parse(bare, self._text)
                    problem = None
        if problem is None and _has_command(nodes) and hides_query(tokens):
            problem = self._problem_inside(tokens)
        if problem is not None and fills_from_procedure(tokens):
            self._context.report("the rows come from a procedure that is not read", tokens[0].start)
        elif problem is not None and upper(tokens[0]) not in HARMLESS:
            self._failed(_reason(problem), _place(problem, tokens))
        for node in nodes:
            if node is not None:
                if output.clause:
                    node.set("returning", self._returning(output.clause))
                if filled.clause and isinstance(node, exp.Query):
                    names = [exp.to_identifier(each.text) for each in filled.clause]
                    node.set("into", exp.Into(expressions=names))
                yield node

    def _returning(self, clause: Sequence[Token]) -> exp.Returning | None:
        with suppress(ParseError):
            insert = self._dialect.parser().parse(list(clause), self._text)[0]
            if isinstance(insert, exp.Insert) and isinstance(insert.expression, exp.Select):
                return exp.Returning(expressions=insert.expression.expressions, into=insert.this)
        self._failed("not understood: what OUTPUT writes", clause[0].start)
        return None

    def _problem_inside(self, tokens: Sequence[Token]) -> ParseError:
        """Why the parser gave a statement up that has a query; it does not tell that by itself."""
        query = query_within(tokens)
        if query is not None:
            try:
                self._dialect.parser().parse(query, self._text)
            except ParseError as problem:
                return problem
        kind = " ".join(upper(each) for each in tokens[:2])
        return ParseError(f"{kind} of this kind is not read")

    def _begin(self, line: int, source: SourceText) -> None:
        self._begun.append((line, self._number))
        self._context.begin(self._number, line, source)

    def _failed(self, reason: str, offset: int | None) -> None:
        """A statement of which nothing was understood counts as a column that is not resolved."""
        self._context.report(reason, offset)
        self._recorder.columns += 1
        self._errors += 1

    def _report_templates(self, unknown: Sequence[Unknown]) -> None:
        for each in unknown:
            before = [number for line, number in self._begun if line <= each.line]
            self._context.begin(before[-1] if before else 1, each.line, self._source)
            self._context.report(
                f"a template that nobody rendered: {each.text}", None, is_remark=each.is_remark
            )


def _has_command(nodes: Sequence[exp.Expr | None]) -> bool:
    return any(isinstance(node, exp.Command) for node in nodes)


def _reason(problem: ParseError) -> str:
    told = problem.errors[0] if problem.errors else {}
    description = str(told.get("description") or _first_line(str(problem))).rstrip(".")
    near = told.get("highlight")
    return f"not understood: {_plain(description)}" + (f", near '{near}'" if near else "")


def _plain(description: str) -> str:
    """The parser's words without the names of its classes."""
    missing = _MISSING.search(description)
    if missing is not None:
        return f"something is missing in {_words_of(missing.group(1))}"
    plain = _CLASS.sub(lambda match: _words_of(match.group(1)), description)
    return _TOKEN.sub(lambda match: _quoted(match.group(1)), plain)


def _quoted(word: str) -> str:
    return "the end" if word == "SENTINEL" else f"'{word}'"


def _words_of(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).upper()


def _first_line(text: str) -> str:
    return _plain(text.splitlines()[0]) if text else "no SQL"


def _place(problem: ParseError, tokens: Sequence[Token]) -> int:
    """Where the parser stopped, or else where the statement begins."""
    told = problem.errors[0] if problem.errors else {}
    line, column = told.get("line"), told.get("col")
    for token in tokens:
        if token.line == line and token.col == column:
            return token.start
    return tokens[0].start


def _is_unrendered(edge: ColumnEdge) -> bool:
    names = (*edge.from_table, edge.from_column, *(edge.to_table or ()), edge.to_column or "")
    return any(UNKNOWN in name for name in names)


def _see(statement: Statement, spellings: Spellings) -> None:
    for read in statement.reads:
        spellings.see(read.table)
        for column in read.columns:
            spellings.see(read.table, column)
    for write in statement.writes:
        spellings.see(write.table)
        for column in write.columns:
            spellings.see(write.table, column)
        for source in write.sources:
            spellings.see(source)


def _spelled(statement: Statement, spellings: Spellings) -> Statement:
    reads = (
        msgspec.structs.replace(
            read,
            table=spellings.table(read.table),
            columns=tuple(sorted(spellings.column(read.table, each) for each in read.columns)),
        )
        for read in statement.reads
    )
    writes = (
        msgspec.structs.replace(
            write,
            table=spellings.table(write.table),
            columns=tuple(spellings.column(write.table, each) for each in write.columns),
            sources=tuple(sorted(map(spellings.table, write.sources))),
        )
        for write in statement.writes
    )
    return msgspec.structs.replace(statement, reads=tuple(reads), writes=tuple(writes))


def _renamed(statement: Statement, names: dict[Parts, Parts]) -> Statement:
    if not names:
        return statement
    writes = tuple(
        msgspec.structs.replace(write, table=names.get(write.table, write.table))
        for write in statement.writes
    )
    return msgspec.structs.replace(statement, writes=writes)
