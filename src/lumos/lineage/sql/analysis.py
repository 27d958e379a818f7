"""Analyses a SQL script: tokenise, split, parse, and read the lineage of each statement."""

import logging
import os
import pickle
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from itertools import repeat
from multiprocessing import get_context
from typing import Final, NamedTuple, TypeAlias

import msgspec
from sqlglot import Token, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError

from lumos.lineage.sql.context import (
    AnalysisContext,
    ColumnProvider,
    SqlWatcher,
    StatementTooLarge,
    no_columns,
)
from lumos.lineage.sql.deep_process import DeepProcessFailed, call_in_deep_process
from lumos.lineage.sql.dialects import (
    Spellings,
    dialect_label,
    find_dialect,
    is_statement,
    parse_in_other_dialect,
    separate_dotted_names,
    tokenize_in_other_dialect,
)
from lumos.lineage.sql.preprocessing import prepare_text
from lumos.lineage.sql.redaction import (
    STRINGS,
    StoredText,
    has_secret_name,
    is_needed,
    mask_secrets,
    mask_secrets_without_tokens,
)
from lumos.lineage.sql.rewrites import (
    SeparatedClause,
    has_hidden_query,
    is_insert_from_procedure,
    query_after_as,
    separate_output,
    separate_variables,
    simplify_statement,
)
from lumos.lineage.sql.script import (
    ColumnEdge,
    Parts,
    ScriptLineage,
    SqlText,
    StatementLineage,
    UnparsedSql,
)
from lumos.lineage.sql.source_text import SourceText
from lumos.lineage.sql.splitter import (
    CursorAlias,
    CursorRows,
    DeclaredVariables,
    FetchedVariables,
    PlainStatement,
    RoutineStart,
    ScriptPart,
    ScriptSplitter,
    TriggerTable,
    UnparsedTokens,
    trigger_functions,
)
from lumos.lineage.sql.statements import EdgeRecorder, StatementReader
from lumos.lineage.sql.templates import UNKNOWN_NAME, TemplateGap
from lumos.lineage.sql.tokens import (
    DYNAMIC_SQL,
    HARMLESS,
    MAX_STATEMENT_LENGTH,
    StatementShape,
    keyword,
    repeated_rows,
    split_text,
    statement_shape,
    tokenize,
)
from lumos.lineage.sql.unparsed import tables_in

Progress: TypeAlias = Callable[[float], None]
_NOT_UNDERSTOOD: Final = "not understood: "
_OPEN_QUOTE: Final = f"{_NOT_UNDERSTOOD}a quote in this text is not closed"
_TOO_LONG: Final = (
    f"{_NOT_UNDERSTOOD}too large: it is longer than {MAX_STATEMENT_LENGTH // 1024**2} MB"
)
# No dialect parses these statements; a file with more of them is probably not SQL.
_MAX_UNPARSED: Final = 100
# A parsed token takes about a kilobyte.
_MAX_TOKENS: Final = 400_000
_MAX_SHAPES: Final = 10_000
# How many parts are read between two progress reports.
_PARTS_PER_PROGRESS: Final = 100
_SQL_IN_STRING: Final = re.compile(
    r"[\s(]*(?:select|insert|update|delete|merge|create|replace|with)\b", re.IGNORECASE
)
_CLASS: Final = re.compile(r"<class '[\w.]*?(\w+)'>")
_ESCAPED_QUOTE: Final = re.compile(r"\\['\"]")
_MISSING: Final = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]*?(\w+)'>")
_TOKEN: Final = re.compile(r"<Token .*?\btext: (.*?), line:.*?>", re.DOTALL)


def no_progress(_share: float) -> None:
    """A progress callback that does nothing."""


def analyse(
    text: str,
    *,
    dialect: str | None = None,
    columns: ColumnProvider = no_columns,
    file: str | None = None,
    watcher: SqlWatcher | None = None,
    progress: Progress = no_progress,
) -> ScriptLineage:
    """The lineage of a SQL script.

    `columns` returns the columns of a table by the parts of its name, or None if unknown.
    `progress` is called with the analysed share of the text. A text that is nested too deeply for
    the stack is read in a child process; with a `watcher`, RecursionError is raised instead.
    """
    try:
        return _analyse_in_process(text, dialect, columns, file, watcher, progress)
    except RecursionError:
        if watcher is not None:
            raise
    with suppress(DeepProcessFailed):
        script: ScriptLineage = call_in_deep_process(
            _read_in_child, asks={"columns": _list_columns(columns), "progress": progress},
            text=text, dialect=dialect, file=file,
        )  # fmt: skip
        return script
    # Statements that are not too deep are still read.
    return _analyse_in_process(text, dialect, columns, file, None, progress, gives_up=True)


def _analyse_in_process(
    text: str, dialect: str | None, columns: ColumnProvider, file: str | None,
    watcher: SqlWatcher | None, progress: Progress, *, gives_up: bool = False,
) -> ScriptLineage:  # fmt: skip
    with _without_parser_log():
        analysis = _Analysis(dialect, columns, watcher, gives_up=gives_up)
        return analysis.script(text, file, progress)


def _read_in_child(
    text: str, dialect: str | None, file: str | None, columns: ColumnProvider, progress: Progress
) -> ScriptLineage:
    return _analyse_in_process(text, dialect, columns, file, None, progress, gives_up=True)


def _list_columns(columns: ColumnProvider) -> ColumnProvider:
    """The same columns as a list, which can be pickled."""

    def names(table: Parts) -> list[str] | None:
        error = columns(table)
        return None if error is None else list(error)

    return names


@contextmanager
def _without_parser_log() -> Iterator[None]:
    """Drop the parser's log in this thread: its problems are reported with their lines."""
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
    """The first statement of a shape, with its number of columns and resolved columns."""

    statements: tuple[StatementLineage, ...]
    columns: int
    resolved: int


class _Analysis:
    """The analysis of one script."""

    def __init__(
        self, dialect: str | None, columns: ColumnProvider, watcher: SqlWatcher | None = None,
        *, gives_up: bool = False,
    ) -> None:  # fmt: skip
        # Whether statements that are nested too deeply are skipped.
        self._gives_up = gives_up
        self._dialect = find_dialect(dialect)
        self._context = AnalysisContext(self._dialect, columns, watcher)
        self._recorder = EdgeRecorder()
        self._reader = StatementReader(self._context, self._recorder)
        self._splitter = ScriptSplitter(is_tsql=self._context.traits.name in ("tsql", "fabric"))
        self._statements: list[StatementLineage] = []
        self._unparsed: dict[UnparsedSql, None] = {}
        # The fallback dialect that parsed an earlier statement.
        self._other_dialect: str | None = None
        self._tried = 0
        # Statements that later ones repeat with other values.
        self._shapes: dict[StatementShape | None, _Analysed] = {}
        self._has_open_quote = False
        # The dialect whose quoting rules fit, if not its own.
        self._quotes_of: Dialect | None = None
        # A watcher has the text already.
        self._keeper = StoredText() if watcher is None else None
        self._number = 0
        self._errors = 0
        self._source = SourceText("", ())
        self._text = ""
        # The line on which each statement begins.
        self._begun: list[tuple[int, int]] = []
        # In PostgreSQL, only CREATE TRIGGER names the table of a trigger function.
        self._triggers: dict[str, TriggerTable] = {}

    def script(self, text: str, file: str | None, progress: Progress) -> ScriptLineage:
        text = text.removeprefix("\ufeff")
        ready = prepare_text(text, self._context.traits.name)
        # Readers of SQL files have rendered the template before.
        self._recorder.has_templates = UNKNOWN_NAME in text or not all(
            each.is_remark for each in ready.gaps
        )
        read = 0
        for source, part, tokens in self._tokenize(ready.text):
            self._source, self._text = source, part
            self._triggers.update(trigger_functions(tokens))
            for number, piece in enumerate(self._splitter.pieces(tokens)):
                if isinstance(piece, PlainStatement) and number % _PARTS_PER_PROGRESS == 0:
                    progress((read + piece.tokens[0].start) / len(text))
                self._read_part(piece)
            if self._keeper is not None:
                self._keeper.end(part, tokens)
            read += len(part)
        statements = [_rename_tables(each, self._context.renamed) for each in self._statements]
        edges: Iterable[ColumnEdge] = self._recorder.plain_edges()
        if self._context.folding.has_quoted:
            spellings = Spellings()
            self._recorder.see(spellings)
            for each in statements:
                _register_spellings(each, spellings)
            statements = [_apply_spellings(each, spellings) for each in statements]
            edges = self._recorder.spelled_edges(spellings)
        self._report_templates(ready.gaps)
        self._report_quotes()
        return ScriptLineage(
            statements=tuple(statements),
            edges=tuple(edge for edge in edges if not _is_unrendered(edge)),
            unresolved=tuple(self._context.problems),
            unparsed=tuple(self._unparsed),
            coverage=self._recorder.coverage,
            file=file,
            kept=self._keeper.text if self._keeper is not None else "",
        )

    def _tokenize(self, text: str) -> Iterator[tuple[SourceText, str, Sequence[Token]]]:
        """The tokens of the text, some statements at a time."""
        line = 1
        for portion, tokens in split_text(text, self._dialect):
            yield from self._tokenize_portion(portion, tokens, line)
            line += portion.count("\n")

    def _tokenize_portion(
        self, text: str, tokens: Sequence[Token] | None, line: int
    ) -> Iterator[tuple[SourceText, str, Sequence[Token]]]:
        """The tokens of a text; with an unclosed quote, of each statement separately."""
        if len(text) > MAX_STATEMENT_LENGTH:
            self._report_unread(_TOO_LONG, text, line)
            return
        try:
            text, tokens = self._mask(text, tokens)
        except SqlglotError:
            # If quotes are misread, any token may be part of a secret.
            self._has_open_quote = True
            text = mask_secrets_without_tokens(text)
        else:
            yield SourceText(text, tokens, first_line=line), text, tokens
            return
        for part in text.split(";"):
            yield from self._tokenize_part(part, line)
            line += part.count("\n")

    def _tokenize_part(
        self, part: str, line: int
    ) -> Iterator[tuple[SourceText, str, Sequence[Token]]]:
        try:
            part, tokens = self._mask(part)
        except SqlglotError:
            self._report_unread(_OPEN_QUOTE, part, line)
        else:
            yield SourceText(part, tokens, first_line=line), part, tokens

    def _report_unread(self, reason: str, part: str, line: int) -> None:
        """Report a part of the text that could not be tokenised."""
        if self._keeper is not None:
            self._keeper.leave_out_part(part)
        self._number += 1
        blank = part[: len(part) - len(part.lstrip())].count("\n")
        self._begin_statement(line + blank, SourceText(part, ()))
        self._report_failed(reason, None, part)

    def _mask(
        self, text: str, tokens: Sequence[Token] | None = None
    ) -> tuple[str, Sequence[Token]]:
        """A text with masked secrets, and its tokens."""
        dialect = self._dialect
        try:
            tokens = tokenize(text, dialect) if tokens is None else tokens
        except SqlglotError:
            other = tokenize_in_other_dialect(text, dialect)
            if other is None:
                raise
            dialect, tokens = other
            self._quotes_of = dialect
        safe = mask_secrets(text, tokens)
        return (text, tokens) if safe == text else (safe, tokenize(safe, dialect))

    def _read_part(self, piece: ScriptPart) -> None:
        context = self._context
        if not isinstance(piece, PlainStatement):
            self._shapes.clear()
        if isinstance(piece, PlainStatement):
            self._read_statement(piece.tokens)
        elif isinstance(piece, UnparsedTokens):
            self._keep_tables(piece.tokens)
        elif isinstance(piece, DeclaredVariables):
            context.variables.update(piece.names)
        elif isinstance(piece, RoutineStart):
            context.begin_routine()
            if piece.name in self._triggers:
                self._read_trigger_table(self._triggers[piece.name])
        elif isinstance(piece, CursorAlias):
            if piece.cursor in context.rows:
                context.rows[piece.name] = context.rows[piece.cursor]
        elif isinstance(piece, FetchedVariables):
            self._reader.fetch(piece.cursor, piece.names)
        elif isinstance(piece, CursorRows):
            # The rows may also control how often a loop writes.
            self._keep_tables(piece.tokens)
            try:
                for node in self._parse(piece.tokens):
                    context.rows[piece.name] = self._reader.rows(node)
            except StatementTooLarge as problem:
                reason = f"{_NOT_UNDERSTOOD}too large: {problem}"
                self._report_failed(reason, piece.tokens[0].start, self._text_of(piece.tokens))
        elif isinstance(piece, TriggerTable):
            self._read_trigger_table(piece)

    def _read_trigger_table(self, piece: TriggerTable) -> None:
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

    def _read_statement(self, tokens: Sequence[Token]) -> None:
        shape = self._shape(tokens)
        if shape in self._shapes:
            self._count_repeated(tokens, self._shapes[shape])
            return
        if keyword(tokens[0]) in DYNAMIC_SQL:
            text = self._text_of(tokens).replace("'", " ")
            self._unparsed_text(text, self._source.line(tokens[0].start))
        elif keyword(tokens[0]) in ("DECLARE", "SET"):
            self._keep_tables_in_strings(tokens)
        errors, before = self._errors, (len(self._statements), self._recorder.coverage)
        is_needed = False
        tokens = self._drop_repeated_rows(tokens)
        try:
            if len(tokens) > _MAX_TOKENS:
                self._number += 1
                self._begin_statement(self._source.line(tokens[0].start), self._source.part(tokens))
                raise StatementTooLarge(f"it has more than {_MAX_TOKENS:,} tokens")
            for node in self._parse(tokens):
                if is_statement(node):
                    self._statements.append(self._reader.read(node))
                    is_needed |= self._is_needed(node, self._statements[-1])
                    if self._splitter.in_routine and not self._statements[-1].writes:
                        # What a routine does with the rows of a query is not analysed.
                        self._keep_tables(tokens)
                elif not self._splitter.in_routine and keyword(tokens[0]) not in HARMLESS:
                    reason = f"{_NOT_UNDERSTOOD}not a statement"
                    self._report_failed(reason, tokens[0].start, self._text_of(tokens))
        except StatementTooLarge as problem:
            reason = f"{_NOT_UNDERSTOOD}too large: {problem}"
            self._report_failed(reason, tokens[0].start, self._text_of(tokens))
        except RecursionError:
            if not self._gives_up:
                raise
            reason = f"{_NOT_UNDERSTOOD}nested too deeply"
            self._report_failed(reason, tokens[0].start, self._text_of(tokens))
        if shape is not None and self._errors == errors and len(self._shapes) < _MAX_SHAPES:
            coverage = self._recorder.coverage
            self._shapes[shape] = _Analysed(
                tuple(self._statements[before[0] :]),
                columns=coverage.columns - before[1].columns,
                resolved=coverage.resolved - before[1].resolved,
            )
        elif shape is None:
            # It may change the meaning of the next statements.
            self._shapes.clear()
        # In a failed statement, a secret may look like code.
        is_safe = not self._has_open_quote and not has_secret_name(self._text_of(tokens))
        if self._keeper is not None and self._errors > errors and is_safe and not is_needed:
            self._keeper.doubt(tokens)
        elif self._keeper is not None and not is_needed:
            self._keeper.leave_out(tokens)

    def _shape(self, tokens: Sequence[Token]) -> StatementShape | None:
        """The shape of a statement; None if it must be read."""
        context = self._context
        # With state, the meaning of a statement depends on earlier ones.
        has_state = context.temporary or context.rows or context.variable_values or context.renamed
        if has_state or self._splitter.in_routine or context.watcher is not None:
            return None
        return statement_shape(tokens)

    def _count_repeated(self, tokens: Sequence[Token], analysed: "_Analysed") -> None:
        """Count a statement that differs from an earlier one only in values."""
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

    def _drop_repeated_rows(self, tokens: Sequence[Token]) -> Sequence[Token]:
        """A statement without rows of VALUES that repeat the shape of earlier rows."""
        rows = repeated_rows(tokens)
        if not rows:
            return tokens
        if self._keeper is not None:
            self._keeper.leave_out(rows)
        repeated = {id(token) for token in rows}
        return [token for token in tokens if id(token) not in repeated]

    def _is_needed(self, node: exp.Expr, statement: StatementLineage) -> bool:
        return is_needed(
            node,
            writes=bool(statement.writes),
            in_routine=self._splitter.in_routine,
            is_tsql=self._splitter.is_tsql,
        )

    def _parse(self, tokens: Sequence[Token]) -> Iterator[exp.Expr]:
        self._number += 1
        self._begin_statement(self._source.line(tokens[0].start), self._source.part(tokens))
        output = filled = SeparatedClause(tokens)
        if self._splitter.is_tsql:
            tokens = (output := separate_output(tokens)).rest
        elif self._splitter.in_routine:
            tokens = (filled := separate_variables(tokens, self._context.variables)).rest
        problem: ParseError | None = None
        nodes: Sequence[exp.Expr | None] = ()
        try:
            nodes = self._dialect.parser().parse(list(tokens), self._text)
        except ParseError as failed:
            problem = failed
        if problem is not None or _has_command(nodes):
            bare = simplify_statement(tokens)
            if bare is not None:
                with suppress(ParseError):
                    nodes = self._dialect.parser().parse(bare, self._text)
                    problem = None
        if problem is None and _has_command(nodes) and has_hidden_query(tokens):
            problem = self._problem_inside(tokens)
        if problem is not None and is_insert_from_procedure(tokens):
            self._context.add_problem(
                "the rows come from a procedure that is not analysed", tokens[0].start
            )
        elif problem is not None and keyword(tokens[0]) not in HARMLESS:
            is_whole = not (output.clause or filled.clause)
            other = self._parse_in_fallback_dialect(tokens, problem) if is_whole else None
            if other is not None:
                nodes = other
            else:
                reason = self._safe_reason(problem, tokens)
                self._report_failed(reason, _error_position(problem, tokens), self._text_of(tokens))
        has_backticks = "`" in self._text_of(tokens)
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
        self._report_failed(reason, clause[0].start, self._text_of(clause))
        return None

    def _parse_in_fallback_dialect(
        self, tokens: Sequence[Token], problem: ParseError
    ) -> Sequence[exp.Expr | None] | None:
        """The statement as parsed by another dialect, if one can."""
        if self._has_open_quote or self._tried >= _MAX_UNPARSED:
            return None
        found = parse_in_other_dialect(self._text, tokens, self._dialect, first=self._other_dialect)
        if found is None:
            self._tried += 1
            return None
        self._other_dialect = found.dialect
        self._context.source = self._source.part(found.tokens)
        reason = self._safe_reason(problem, tokens).removeprefix(_NOT_UNDERSTOOD)
        self._context.add_problem(
            f"read as {dialect_label(find_dialect(found.dialect))} SQL, since it is not "
            f"{dialect_label(self._dialect)} SQL: {reason}",
            _error_position(problem, tokens),
            is_remark=True,
        )
        return found.nodes

    def _safe_reason(self, problem: ParseError, tokens: Sequence[Token]) -> str:
        """Why a statement was not parsed, without quoting a possible secret."""
        if self._has_open_quote:
            return _OPEN_QUOTE
        text = self._text_of(tokens)
        # A dialect without this escape reads the rest of the literal as tokens.
        if has_secret_name(text) or _ESCAPED_QUOTE.search(text):
            return f"{_NOT_UNDERSTOOD}invalid syntax (not quoted here: it may hold a password)"
        return _parse_error_reason(problem)

    def _text_of(self, tokens: Sequence[Token]) -> str:
        return self._text[tokens[0].start : tokens[-1].end + 1]

    def _problem_inside(self, tokens: Sequence[Token]) -> ParseError:
        """Why the parser fell back to a raw command for a statement with a query."""
        query = query_after_as(tokens)
        if query is not None:
            try:
                self._dialect.parser().parse(query, self._text)
            except ParseError as problem:
                return problem
        kind = " ".join(keyword(each) for each in tokens[:2])
        return ParseError(f"{kind} of this kind is not read")

    def _begin_statement(self, line: int, source: SourceText) -> None:
        self._begun.append((line, self._number))
        self._context.begin(self._number, line, source)

    def _report_failed(self, reason: str, offset: int | None, text: str) -> None:
        """Report a failed statement, which counts as one unresolved column.

        The tables in its text are kept, and all names that may be tables.
        """
        self._context.add_problem(reason, offset)
        self._recorder.columns += 1
        self._errors += 1
        if self._has_open_quote:
            # Strings and statements may be swapped.
            text = text.replace("'", " ")
        # If names may be part of a secret, only certain table names are kept.
        is_safe = not self._has_open_quote and not has_secret_name(text)
        self._unparsed_text(text, self._context.line, with_others=is_safe)

    def _keep_tables(self, tokens: Sequence[Token]) -> None:
        """Keep the tables in tokens that are not parsed."""
        self._unparsed_text(self._text_of(tokens), self._source.line(tokens[0].start))
        self._keep_tables_in_strings(tokens)

    def _keep_tables_in_strings(self, tokens: Sequence[Token]) -> None:
        """Keep the tables of SQL in strings, which runs later."""
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
            statement = UnparsedSql(
                number=self._number, line=line, reads=reads, writes=writes, others=others
            )
            self._unparsed[statement] = None

    def _report_quotes(self) -> None:
        if self._quotes_of is not None:
            self._context.begin(1, 1, self._source)
            self._context.add_problem(
                f"quotes are read as in {dialect_label(self._quotes_of)} SQL, since some are "
                f"not closed in {dialect_label(self._dialect)} SQL",
                None,
                is_remark=True,
            )

    def _report_templates(self, unknown: Sequence[TemplateGap]) -> None:
        for each in unknown:
            started = [number for line, number in self._begun if line <= each.line]
            self._context.begin(started[-1] if started else 1, each.line, self._source)
            self._context.add_problem(
                f"unknown template expression: {each.text}", None, is_remark=each.is_remark
            )


def _has_command(nodes: Sequence[exp.Expr | None]) -> bool:
    return any(isinstance(node, exp.Command) for node in nodes)


def _parse_error_reason(problem: ParseError) -> str:
    error = problem.errors[0] if problem.errors else {}
    description = str(error.get("description") or _first_line(str(problem))).rstrip(".")
    excerpt = error.get("highlight")
    return f"{_NOT_UNDERSTOOD}{_simplify_message(description)}" + (
        f", near '{excerpt}'" if excerpt else ""
    )


def _simplify_message(description: str) -> str:
    """The parser's message without its class names."""
    missing = _MISSING.search(description)
    if missing is not None:
        return f"something is missing in {_split_class_name(missing.group(1))}"
    plain = _CLASS.sub(lambda match: _split_class_name(match.group(1)), description)
    return _TOKEN.sub(lambda match: _quote(match.group(1)), plain)


def _quote(word: str) -> str:
    return "the end" if word == "SENTINEL" else f"'{word}'"


def _split_class_name(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).upper()


def _first_line(text: str) -> str:
    return _simplify_message(text.splitlines()[0]) if text else "no SQL"


def _error_position(problem: ParseError, tokens: Sequence[Token]) -> int:
    """The position where the parser stopped, or the start of the statement."""
    error = problem.errors[0] if problem.errors else {}
    line, column = error.get("line"), error.get("col")
    for token in tokens:
        if token.line == line and token.col == column:
            return token.start
    return tokens[0].start


def _is_unrendered(edge: ColumnEdge) -> bool:
    names = (*edge.from_table, edge.from_column, *(edge.to_table or ()), edge.to_column or "")
    return any(UNKNOWN_NAME in name for name in names)


def _register_spellings(statement: StatementLineage, spellings: Spellings) -> None:
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


def _apply_spellings(statement: StatementLineage, spellings: Spellings) -> StatementLineage:
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


def _rename_tables(statement: StatementLineage, names: dict[Parts, Parts]) -> StatementLineage:
    if not names:
        return statement
    writes = tuple(
        msgspec.structs.replace(write, table=names.get(write.table, write.table))
        for write in statement.writes
    )
    return msgspec.structs.replace(statement, writes=writes)


# For shorter texts, starting another process takes longer than it saves.
_MIN_PARALLEL_LENGTH: Final = 400_000
_CHUNKS_PER_PROCESS: Final = 8


def analyse_many(
    texts: Sequence[SqlText], *, columns: ColumnProvider = no_columns, processes: int | None = None
) -> Iterator[ScriptLineage]:
    """Analyse many texts; the results are in their order.

    Several processes share the work if there is enough of it and `columns` can be pickled; by
    default one per processor.
    """
    count = min(processes or os.cpu_count() or 1, len(texts))
    size = sum(len(each.text) for each in texts)
    if count < 2 or size < _MIN_PARALLEL_LENGTH or not _can_be_sent(columns):
        for each in texts:
            yield _analyse_text(each, columns)
        return
    # A forked process would inherit the locks and connections of this one.
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        chunk = max(1, len(texts) // (count * _CHUNKS_PER_PROCESS))
        yield from pool.map(_analyse_text, texts, repeat(columns), chunksize=chunk)


def _analyse_text(given: SqlText, columns: ColumnProvider) -> ScriptLineage:
    return analyse(given.text, dialect=given.dialect, columns=columns, file=given.file)


def _can_be_sent(columns: ColumnProvider) -> bool:
    try:
        pickle.dumps(columns)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True
