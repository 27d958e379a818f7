"""From a text of SQL to what it reads, writes and does with columns."""

import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple, TypeAlias

import msgspec
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token

from lumos.lineage.jinja import UNKNOWN, Unknown
from lumos.lineage.sql.context import Columns, Context, TooLarge, no_columns
from lumos.lineage.sql.deep_process import DeepProcessFailed, call
from lumos.lineage.sql.keeping import Keeper, is_needed
from lumos.lineage.sql.names import Spellings, dialect_named, name_of
from lumos.lineage.sql.other_dialects import (
    parse_otherwise,
    separate_dotted_names,
    tokenize_otherwise,
)
from lumos.lineage.sql.preparing import prepared
from lumos.lineage.sql.recording import Recorder
from lumos.lineage.sql.script import ColumnEdge, Parts, Script, Statement, UnparsedStatement
from lumos.lineage.sql.secrets import STRINGS, masked, masked_words, names_secret
from lumos.lineage.sql.shapes import Shape, repeated_rows, shape_of
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
    Unread,
    triggers,
)
from lumos.lineage.sql.statements import StatementReader, is_statement
from lumos.lineage.sql.texts import SourceText
from lumos.lineage.sql.tokens import LONGEST, portions, tokenized
from lumos.lineage.sql.unparsed import tables_in
from lumos.lineage.sql.watching import Watcher
from lumos.lineage.sql.words import (
    HARMLESS,
    RUNNING,
    Parted,
    fills_from_procedure,
    hides_query,
    query_within,
    simplified,
    upper,
    without_output,
    without_variables,
)

Progress: TypeAlias = Callable[[float], None]
_NOT_UNDERSTOOD: Final = "not understood: "
_OPEN_QUOTE: Final = f"{_NOT_UNDERSTOOD}a quote in this text is not closed"
_TOO_LONG: Final = f"{_NOT_UNDERSTOOD}too large: it is longer than {LONGEST // 1024**2} MB"
# Statements that no dialect parses; a file with more of them is most likely no SQL.
_MOST_TRIED: Final = 100
# A parsed word takes about a kilobyte.
_MOST_WORDS: Final = 400_000
_MOST_SHAPES: Final = 10_000
# How often it is told how far a text is read.
_PIECES_BETWEEN: Final = 100
_SQL_IN_STRING: Final = re.compile(
    r"[\s(]*(?:select|insert|update|delete|merge|create|replace|with)\b", re.IGNORECASE
)
_CLASS: Final = re.compile(r"<class '[\w.]*?(\w+)'>")
_ESCAPED_QUOTE: Final = re.compile(r"\\['\"]")
_MISSING: Final = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]*?(\w+)'>")
_TOKEN: Final = re.compile(r"<Token .*?\btext: (.*?), line:.*?>", re.DOTALL)


def no_progress(_share: float) -> None:
    """For who does not want to know how far a text is."""


def analyse(
    text: str,
    *,
    dialect: str | None = None,
    columns: Columns = no_columns,
    file: str | None = None,
    watcher: Watcher | None = None,
    progress: Progress = no_progress,
) -> Script:
    """What a text of SQL says about tables and columns.

    `columns` tells the columns of a table by the parts of its name, or None if nobody knows them.
    `progress` is told now and then which share of the text is analysed. A text that is nested too
    deeply for the stack is read by a child process; of one with a `watcher`, who cannot follow
    there, it raises RecursionError.
    """
    try:
        return _read_here(text, dialect, columns, file, watcher, progress)
    except RecursionError:
        if watcher is not None:
            raise
    with suppress(DeepProcessFailed):
        script: Script = call(
            _read_in_child, asks={"columns": _names_from(columns), "progress": progress},
            text=text, dialect=dialect, file=file,
        )  # fmt: skip
        return script
    # What is not too deep is read all the same.
    return _read_here(text, dialect, columns, file, None, progress, gives_up=True)


def _read_here(
    text: str, dialect: str | None, columns: Columns, file: str | None, watcher: Watcher | None,
    progress: Progress, *, gives_up: bool = False,
) -> Script:  # fmt: skip
    with _without_parser_log():
        analysis = _Analysis(dialect, columns, watcher, gives_up=gives_up)
        return analysis.script(text, file, progress)


def _read_in_child(
    text: str, dialect: str | None, file: str | None, columns: Columns, progress: Progress
) -> Script:
    return _read_here(text, dialect, columns, file, None, progress, gives_up=True)


def _names_from(columns: Columns) -> Columns:
    """The same columns as a list, which can be sent whatever it was."""

    def names(table: Parts) -> list[str] | None:
        told = columns(table)
        return None if told is None else list(told)

    return names


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


class _Analysed(NamedTuple):
    """What the first statement of a shape is, and how many columns it has and are resolved."""

    statements: tuple[Statement, ...]
    columns: int
    resolved: int


class _Analysis:
    """The way of one text through tokenizer, parser and reader."""

    def __init__(
        self, dialect: str | None, columns: Columns, watcher: Watcher | None = None,
        *, gives_up: bool = False,
    ) -> None:  # fmt: skip
        # Whether a statement that is nested too deeply is left out, and the others are read.
        self._gives_up = gives_up
        self._dialect = dialect_named(dialect)
        self._context = Context(self._dialect, columns, watcher)
        self._recorder = Recorder()
        self._reader = StatementReader(self._context, self._recorder)
        self._splitter = Splitter(is_tsql=self._context.habits.name in ("tsql", "fabric"))
        self._statements: list[Statement] = []
        self._unparsed: dict[UnparsedStatement, None] = {}
        # The dialect in which a statement could be parsed that its own could not.
        self._other_dialect: str | None = None
        self._tried = 0
        # Statements that differ from a later one in values alone.
        self._shapes: dict[Shape | None, _Analysed] = {}
        self._has_open_quote = False
        # The dialect whose quotes the text has, where they are not those of its own.
        self._quotes_of: Dialect | None = None
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

    def script(self, text: str, file: str | None, progress: Progress) -> Script:
        text = text.removeprefix("\ufeff")
        ready = prepared(text, self._context.habits.name)
        # Who reads whole projects has rendered the text before.
        self._recorder.has_templates = UNKNOWN in text or not all(
            each.is_remark for each in ready.unknown
        )
        read = 0
        for source, part, tokens in self._tokenized(ready.text):
            self._source, self._text = source, part
            self._triggers.update(triggers(tokens))
            for number, piece in enumerate(self._splitter.pieces(tokens)):
                if isinstance(piece, Plain) and number % _PIECES_BETWEEN == 0:
                    progress((read + piece.tokens[0].start) / len(text))
                self._piece(piece)
            if self._keeper is not None:
                self._keeper.end(part, tokens)
            read += len(part)
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
        self._report_quotes()
        return Script(
            statements=tuple(statements),
            edges=tuple(edge for edge in edges if not _is_unrendered(edge)),
            unresolved=tuple(self._context.unresolved),
            unparsed=tuple(self._unparsed),
            coverage=self._recorder.coverage,
            file=file,
            kept=self._keeper.text if self._keeper is not None else "",
        )

    def _tokenized(self, text: str) -> Iterator[tuple[SourceText, str, Sequence[Token]]]:
        """The words of the text, of a long one some statements at a time."""
        line = 1
        for portion, tokens in portions(text, self._dialect):
            yield from self._tokenized_portion(portion, tokens, line)
            line += portion.count("\n")

    def _tokenized_portion(
        self, text: str, tokens: Sequence[Token] | None, line: int
    ) -> Iterator[tuple[SourceText, str, Sequence[Token]]]:
        """The words of a text; where a quote is never closed, of every statement by itself."""
        if len(text) > LONGEST:
            self._fail_unread(_TOO_LONG, text, line)
            return
        try:
            text, tokens = self._masked(text, tokens)
        except SqlglotError:
            # In a text whose quotes are misread, any word may be part of a secret.
            self._has_open_quote = True
            text = masked_words(text)
        else:
            yield SourceText(text, tokens, first_line=line), text, tokens
            return
        for part in text.split(";"):
            yield from self._tokenized_part(part, line)
            line += part.count("\n")

    def _tokenized_part(
        self, part: str, line: int
    ) -> Iterator[tuple[SourceText, str, Sequence[Token]]]:
        try:
            part, tokens = self._masked(part)
        except SqlglotError:
            self._fail_unread(_OPEN_QUOTE, part, line)
        else:
            yield SourceText(part, tokens, first_line=line), part, tokens

    def _fail_unread(self, reason: str, part: str, line: int) -> None:
        """A part of the text whose words are not told apart was not understood."""
        if self._keeper is not None:
            self._keeper.leave_out_part(part)
        self._number += 1
        blank = part[: len(part) - len(part.lstrip())].count("\n")
        self._begin(line + blank, SourceText(part, ()))
        self._failed(reason, None, part)

    def _masked(
        self, text: str, tokens: Sequence[Token] | None = None
    ) -> tuple[str, Sequence[Token]]:
        """A text without its secrets, and its words."""
        dialect = self._dialect
        try:
            tokens = tokenized(text, dialect) if tokens is None else tokens
        except SqlglotError:
            other = tokenize_otherwise(text, dialect)
            if other is None:
                raise
            dialect, tokens = other
            self._quotes_of = dialect
        safe = masked(text, tokens)
        return (text, tokens) if safe == text else (safe, tokenized(safe, dialect))

    def _piece(self, piece: Piece) -> None:
        context = self._context
        if not isinstance(piece, Plain):
            self._shapes.clear()
        if isinstance(piece, Plain):
            self._read(piece.tokens)
        elif isinstance(piece, Unread):
            self._keep_tables(piece.tokens)
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
            # Rows may also decide how often something is written.
            self._keep_tables(piece.tokens)
            try:
                for node in self._parsed(piece.tokens):
                    context.rows[piece.name] = self._reader.rows(node)
            except TooLarge as problem:
                reason = f"{_NOT_UNDERSTOOD}too large: {problem}"
                self._failed(reason, piece.tokens[0].start, self._written(piece.tokens))
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
        shape = self._shape(tokens)
        if shape in self._shapes:
            self._repeat(tokens, self._shapes[shape])
            return
        if upper(tokens[0]) in RUNNING:
            text = self._written(tokens).replace("'", " ")
            self._unparsed_text(text, self._source.line(tokens[0].start))
        elif upper(tokens[0]) in ("DECLARE", "SET"):
            self._keep_tables_in_strings(tokens)
        errors, before = self._errors, (len(self._statements), self._recorder.coverage)
        is_needed = False
        tokens = self._shortened(tokens)
        try:
            if len(tokens) > _MOST_WORDS:
                self._number += 1
                self._begin(self._source.line(tokens[0].start), self._source.part(tokens))
                raise TooLarge(f"it has more than {_MOST_WORDS:,} words")
            for node in self._parsed(tokens):
                if is_statement(node):
                    self._statements.append(self._reader.read(node))
                    is_needed |= self._is_needed(node, self._statements[-1])
                    if self._splitter.in_routine and not self._statements[-1].writes:
                        # What a routine does with the rows of a query is not followed.
                        self._keep_tables(tokens)
                elif not self._splitter.in_routine and upper(tokens[0]) not in HARMLESS:
                    reason = f"{_NOT_UNDERSTOOD}this is no statement"
                    self._failed(reason, tokens[0].start, self._written(tokens))
        except TooLarge as problem:
            reason = f"{_NOT_UNDERSTOOD}too large: {problem}"
            self._failed(reason, tokens[0].start, self._written(tokens))
        except RecursionError:
            if not self._gives_up:
                raise
            reason = f"{_NOT_UNDERSTOOD}nested too deeply"
            self._failed(reason, tokens[0].start, self._written(tokens))
        if shape is not None and self._errors == errors and len(self._shapes) < _MOST_SHAPES:
            coverage = self._recorder.coverage
            self._shapes[shape] = _Analysed(
                tuple(self._statements[before[0] :]),
                columns=coverage.columns - before[1].columns,
                resolved=coverage.resolved - before[1].resolved,
            )
        elif shape is None:
            # It may have changed what the next statements mean.
            self._shapes.clear()
        # In what was not understood, a secret may be taken for code.
        is_safe = not self._has_open_quote and not names_secret(self._written(tokens))
        if self._keeper is not None and self._errors > errors and is_safe and not is_needed:
            self._keeper.doubt(tokens)
        elif self._keeper is not None and not is_needed:
            self._keeper.leave_out(tokens)

    def _shape(self, tokens: Sequence[Token]) -> Shape | None:
        """By what a statement is recognised that is like another; None where it has to be read."""
        context = self._context
        # What a statement means depends on those before it.
        has_state = context.temporary or context.rows or context.held or context.renamed
        if has_state or self._splitter.in_routine or context.watcher is not None:
            return None
        return shape_of(tokens)

    def _repeat(self, tokens: Sequence[Token], analysed: "_Analysed") -> None:
        """Counts a statement that differs from one before it in values alone."""
        self._number += 1
        line = self._source.line(tokens[0].start)
        self._begun.append((line, self._number))
        for each in analysed.statements:
            again = msgspec.structs.replace(each, number=self._number, line=line)
            self._statements.append(again)
        self._recorder.columns += analysed.columns
        self._recorder.resolved += analysed.resolved
        if self._keeper is not None:
            self._keeper.leave_out(tokens)

    def _shortened(self, tokens: Sequence[Token]) -> Sequence[Token]:
        """A statement without rows of values that look like the ones before them."""
        rows = repeated_rows(tokens)
        if not rows:
            return tokens
        if self._keeper is not None:
            self._keeper.leave_out(rows)
        repeated = {id(token) for token in rows}
        return [token for token in tokens if id(token) not in repeated]

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
            is_whole = not (output.clause or filled.clause)
            other = self._parsed_otherwise(tokens, problem) if is_whole else None
            if other is not None:
                nodes = other
            else:
                reason = self._safe_reason(problem, tokens)
                self._failed(reason, _place(problem, tokens), self._written(tokens))
        has_backticks = "`" in self._written(tokens)
        for node in nodes:
            if node is not None:
                if has_backticks:
                    separate_dotted_names(node, self._text, self._dialect)
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
        reason = f"{_NOT_UNDERSTOOD}what OUTPUT writes"
        self._failed(reason, clause[0].start, self._written(clause))
        return None

    def _parsed_otherwise(
        self, tokens: Sequence[Token], problem: ParseError
    ) -> Sequence[exp.Expr | None] | None:
        """What another dialect makes of a statement, if one parses it."""
        if self._has_open_quote or self._tried >= _MOST_TRIED:
            return None
        found = parse_otherwise(self._text, tokens, self._dialect, first=self._other_dialect)
        if found is None:
            self._tried += 1
            return None
        self._other_dialect = found.dialect
        self._context.source = self._source.part(found.tokens)
        reason = self._safe_reason(problem, tokens).removeprefix(_NOT_UNDERSTOOD)
        self._context.report(
            f"read as {name_of(dialect_named(found.dialect))} SQL, since it is no "
            f"{name_of(self._dialect)} SQL: {reason}",
            _place(problem, tokens),
            is_remark=True,
        )
        return found.nodes

    def _safe_reason(self, problem: ParseError, tokens: Sequence[Token]) -> str:
        """Why a statement was not parsed, without words of it where they may be a secret."""
        if self._has_open_quote:
            return _OPEN_QUOTE
        text = self._written(tokens)
        # A dialect that does not know the escape takes the rest of the literal for words.
        if names_secret(text) or _ESCAPED_QUOTE.search(text):
            return f"{_NOT_UNDERSTOOD}invalid syntax (not quoted here: it may hold a password)"
        return _reason(problem)

    def _written(self, tokens: Sequence[Token]) -> str:
        return self._text[tokens[0].start : tokens[-1].end + 1]

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

    def _failed(self, reason: str, offset: int | None, text: str) -> None:
        """A statement of which nothing was understood counts as a column that is not resolved.

        The tables named in its text are kept, and all names that may be those of tables.
        """
        self._context.report(reason, offset)
        self._recorder.columns += 1
        self._errors += 1
        if self._has_open_quote:
            # What seems to be a string may be the statement, and the reverse.
            text = text.replace("'", " ")
        # Where words may be a part of a secret, only those are kept that name tables for certain.
        is_safe = not self._has_open_quote and not names_secret(text)
        self._unparsed_text(text, self._context.line, with_others=is_safe)

    def _keep_tables(self, tokens: Sequence[Token]) -> None:
        """Keeps the tables that words name which are not parsed."""
        self._unparsed_text(self._written(tokens), self._source.line(tokens[0].start))
        self._keep_tables_in_strings(tokens)

    def _keep_tables_in_strings(self, tokens: Sequence[Token]) -> None:
        """Keeps the tables of SQL that stands in strings, to be run later or built up."""
        text = " ".join(each.text for each in tokens if each.token_type in STRINGS)
        if _SQL_IN_STRING.match(text):
            self._unparsed_text(text, self._source.line(tokens[0].start))

    def _unparsed_text(self, text: str, line: int, *, with_others: bool = False) -> None:
        reads, named, others = tables_in(text, self._context.folding)
        # SELECT a INTO variable
        writes = tuple(
            each for each in named if ".".join(each).lower() not in self._context.variables
        )
        others = others if with_others else ()
        if reads or writes or others:
            statement = UnparsedStatement(
                number=self._number, line=line, reads=reads, writes=writes, others=others
            )
            self._unparsed[statement] = None

    def _report_quotes(self) -> None:
        if self._quotes_of is not None:
            self._context.begin(1, 1, self._source)
            self._context.report(
                f"quotes are read as in {name_of(self._quotes_of)} SQL, since some are not closed "
                f"in {name_of(self._dialect)} SQL",
                None,
                is_remark=True,
            )

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
    return f"{_NOT_UNDERSTOOD}{_plain(description)}" + (f", near '{near}'" if near else "")


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
