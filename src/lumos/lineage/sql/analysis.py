"""Analyses a SQL script: tokenise, split, parse, and read the lineage of each statement."""

import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
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
    NameCases,
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
    affects_lineage,
    has_secret_name,
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
from lumos.lineage.sql.templates import TemplateGap
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
from lumos.model.lineage import UNKNOWN_NAME

Progress: TypeAlias = Callable[[float], None]
_NOT_UNDERSTOOD: Final = "not understood: "
_OPEN_QUOTE: Final = f"{_NOT_UNDERSTOOD}a quote in this text is not closed"
_TOO_LONG: Final = (
    f"{_NOT_UNDERSTOOD}too large: it is longer than {MAX_STATEMENT_LENGTH // 1024**2} MB"
)
# How many statements are tried in all dialects without success; a file with more is hardly SQL.
_MAX_FAILED_FALLBACKS: Final = 100
# A parsed token takes about a kilobyte.
_MAX_TOKENS: Final = 400_000
_MAX_SHAPES: Final = 10_000
# How many parts are read between two progress reports.
_PARTS_PER_PROGRESS: Final = 100
_SQL_IN_STRING: Final = re.compile(
    r"[\s(]*(?:select|insert|update|delete|merge|create|replace|with)\b", re.IGNORECASE
)
_CLASS_NAME: Final = re.compile(r"<class '[\w.]*?(\w+)'>")
_ESCAPED_QUOTE: Final = re.compile(r"\\['\"]")
_MISSING_PART: Final = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]*?(\w+)'>")
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

    `columns` returns the columns of a table by the parts of its name, or None if they are unknown.
    `progress` is called with the analysed share of the text. A text that is nested too deeply for
    the stack is analysed in a child process; with a `watcher`, RecursionError is raised instead.
    """
    try:
        return _analyse_in_process(text, dialect, columns, file, watcher, progress)
    except RecursionError:
        if watcher is not None:
            raise
    with suppress(DeepProcessFailed):
        script: ScriptLineage = call_in_deep_process(
            _analyse_in_process,
            callbacks={"columns": _as_lists(columns), "progress": progress},
            text=text, dialect=dialect, file=file, watcher=None, skips_deep=True,
        )  # fmt: skip
        return script
    # Statements that are not nested too deeply can still be analysed.
    return _analyse_in_process(text, dialect, columns, file, None, progress, skips_deep=True)


def _analyse_in_process(
    text: str, dialect: str | None, columns: ColumnProvider, file: str | None,
    watcher: SqlWatcher | None, progress: Progress, *, skips_deep: bool = False,
) -> ScriptLineage:  # fmt: skip
    with _without_parser_log():
        analysis = _Analysis(dialect, columns, watcher, skips_deep=skips_deep)
        return analysis.run(text, file, progress)


def _as_lists(columns: ColumnProvider) -> ColumnProvider:
    """A column provider that returns lists, which can be pickled."""

    def list_columns(table: Parts) -> list[str] | None:
        names = columns(table)
        return None if names is None else list(names)

    return list_columns


@contextmanager
def _without_parser_log() -> Iterator[None]:
    """Silence the parser's log in this thread: its problems are reported with their lines."""
    thread = threading.get_ident()

    def is_from_other_thread(record: logging.LogRecord) -> bool:
        return record.thread != thread

    logger = logging.getLogger("sqlglot")
    logger.addFilter(is_from_other_thread)
    try:
        yield
    finally:
        logger.removeFilter(is_from_other_thread)


def unlink(tree: exp.Expr) -> None:
    """Remove the links to parents, so that a tree is freed without the garbage collector.

    Otherwise, the garbage collector takes a fifth of the time of an analysis.
    """
    stack = [tree]
    while stack:
        node = stack.pop()
        node.parent = None
        for value in node.args.values():
            if isinstance(value, exp.Expr):
                stack.append(value)
            elif isinstance(value, list):
                stack += [each for each in value if isinstance(each, exp.Expr)]


class _AnalysedShape(NamedTuple):
    """The lineage of a shape's first statement, with its numbers of all and resolved columns."""

    statements: tuple[StatementLineage, ...]
    columns: int
    resolved: int


class _Analysis:
    """The analysis of one script."""

    def __init__(
        self, dialect: str | None, columns: ColumnProvider, watcher: SqlWatcher | None = None,
        *, skips_deep: bool = False,
    ) -> None:  # fmt: skip
        # Whether a statement that is nested too deeply is reported as a problem. Otherwise,
        # RecursionError is raised.
        self._skips_deep = skips_deep
        self._dialect = find_dialect(dialect)
        self._context = AnalysisContext(self._dialect, columns, watcher)
        self._recorder = EdgeRecorder()
        self._reader = StatementReader(self._context, self._recorder)
        self._splitter = ScriptSplitter(is_tsql=self._context.traits.name in ("tsql", "fabric"))
        self._statements: list[StatementLineage] = []
        self._unparsed: dict[UnparsedSql, None] = {}
        # The fallback dialect that parsed an earlier statement.
        self._other_dialect: str | None = None
        self._failed_fallbacks = 0
        # Results by shape: a dump may repeat one INSERT thousands of times with other values.
        self._shapes: dict[StatementShape | None, _AnalysedShape] = {}
        self._has_open_quote = False
        # The other dialect whose quoting rules were used, if any.
        self._quoting_dialect: Dialect | None = None
        # With a watcher, the script comes from the store, so its text is not collected again.
        self._stored_text = StoredText() if watcher is None else None
        self._statement_number = 0
        self._failed_statements = 0
        self._source = SourceText("", ())
        self._text = ""
        # The first line and the number of each statement.
        self._statement_lines: list[tuple[int, int]] = []
        # In PostgreSQL, only CREATE TRIGGER names the table of a trigger function.
        self._triggers: dict[str, TriggerTable] = {}

    def run(self, text: str, file: str | None, progress: Progress) -> ScriptLineage:
        text = text.removeprefix("\ufeff")
        prepared = prepare_text(text, self._context.traits.name)
        # If a SQL file was rendered before, its text contains the placeholder.
        self._recorder.has_templates = UNKNOWN_NAME in text or not all(
            each.is_remark for each in prepared.gaps
        )
        offset = 0
        for source, portion, tokens in self._tokenize(prepared.text):
            self._source, self._text = source, portion
            self._triggers.update(trigger_functions(tokens))
            for number, script_part in enumerate(self._splitter.split(tokens)):
                if isinstance(script_part, PlainStatement) and number % _PARTS_PER_PROGRESS == 0:
                    progress((offset + script_part.tokens[0].start) / len(text))
                self._read_part(script_part)
            if self._stored_text is not None:
                self._stored_text.add(portion, tokens)
            offset += len(portion)
        statements = [
            _rename_tables(each, self._context.renamed_tables) for each in self._statements
        ]
        edges: Iterable[ColumnEdge] = self._recorder.plain_edges()
        if self._context.folding.has_quoted:
            names = NameCases()
            self._recorder.register_names(names)
            for each in statements:
                _register_names(each, names)
            statements = [_in_original_case(each, names) for each in statements]
            edges = self._recorder.edges_in_original_case(names)
        self._report_template_gaps(prepared.gaps)
        self._report_quoting_dialect()
        known_edges = tuple(edge for edge in edges if not _has_unknown_name(edge))
        self._context.release()
        self._recorder.forget_texts()
        return ScriptLineage(
            statements=tuple(statements),
            edges=known_edges,
            unresolved=tuple(self._context.problems),
            unparsed=tuple(self._unparsed),
            coverage=self._recorder.coverage,
            file=file,
            storable_text=self._stored_text.text if self._stored_text is not None else "",
        )

    def _tokenize(self, text: str) -> Iterator[tuple[SourceText, str, Sequence[Token]]]:
        """The source, text and tokens of the script, in portions of several statements."""
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
            text, tokens = self._mask_and_tokenize(text, tokens)
        except SqlglotError:
            # With an unclosed quote, any token may be part of a secret.
            self._has_open_quote = True
            text = mask_secrets_without_tokens(text)
        else:
            yield SourceText(text, tokens, first_line=line), text, tokens
            return
        for part in text.split(";"):
            try:
                masked, tokens = self._mask_and_tokenize(part)
            except SqlglotError:
                self._report_unread(_OPEN_QUOTE, part, line)
            else:
                yield SourceText(masked, tokens, first_line=line), masked, tokens
            line += part.count("\n")

    def _report_unread(self, reason: str, part: str, line: int) -> None:
        """Report a part of the text that was not tokenised."""
        if self._stored_text is not None:
            self._stored_text.add_blank(part)
        blank_lines = part[: len(part) - len(part.lstrip())].count("\n")
        self._begin_statement(line + blank_lines, SourceText(part, ()))
        self._report_failed(reason, None, part)

    def _mask_and_tokenize(
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
            self._quoting_dialect = dialect
        masked = mask_secrets(text, tokens)
        return (text, tokens) if masked == text else (masked, tokenize(masked, dialect))

    def _read_part(self, part: ScriptPart) -> None:
        context = self._context
        if not isinstance(part, PlainStatement):
            self._shapes.clear()
        if isinstance(part, PlainStatement):
            self._read_statement(part.tokens)
        elif isinstance(part, UnparsedTokens):
            self._add_unparsed_tables(part.tokens)
        elif isinstance(part, DeclaredVariables):
            context.variables.update(part.names)
        elif isinstance(part, RoutineStart):
            context.begin_routine()
            if part.name in self._triggers:
                self._read_trigger_table(self._triggers[part.name])
        elif isinstance(part, CursorAlias):
            if part.cursor in context.named_rows:
                context.named_rows[part.name] = context.named_rows[part.cursor]
        elif isinstance(part, FetchedVariables):
            self._reader.fetch(part.cursor, part.names)
        elif isinstance(part, CursorRows):
            # A loop over these rows may also decide whether something is written.
            self._add_unparsed_tables(part.tokens)
            try:
                for node in self._parse(part.tokens):
                    context.named_rows[part.name] = self._reader.rows(node)
            except StatementTooLarge as problem:
                self._report_not_understood(f"too large: {problem}", part.tokens)
        elif isinstance(part, TriggerTable):
            self._read_trigger_table(part)

    def _read_trigger_table(self, part: TriggerTable) -> None:
        names = [token for token in part.tokens if token.text != "."]
        table = exp.Table(
            **{
                key: exp.to_identifier(token.text)
                for key, token in zip(("this", "db", "catalog"), reversed(names), strict=False)
            }
        )
        relation = self._reader.table(table)
        self._context.named_rows.update({"new": relation, "old": relation})
        for name in ("inserted", "deleted"):
            self._context.temporary[name,] = relation

    def _read_statement(self, tokens: Sequence[Token]) -> None:
        shape = self._shape_of(tokens)
        if shape in self._shapes:
            self._count_repeated(tokens, self._shapes[shape])
            return
        if keyword(tokens[0]) in DYNAMIC_SQL:
            text = self._text_of(tokens).replace("'", " ")
            self._add_tables_in_text(text, self._source.line(tokens[0].start))
        elif keyword(tokens[0]) in ("DECLARE", "SET"):
            self._add_tables_in_strings(tokens)
        failed_before, coverage_before = self._failed_statements, self._recorder.coverage
        count_before = len(self._statements)
        is_relevant = False
        nodes: list[exp.Expr] = []
        tokens = self._drop_repeated_rows(tokens)
        try:
            if len(tokens) > _MAX_TOKENS:
                self._begin_statement(
                    self._source.line(tokens[0].start), self._source.for_statement(tokens)
                )
                raise StatementTooLarge(f"it has more than {_MAX_TOKENS:,} tokens")
            for node in self._parse(tokens):
                nodes.append(node)
                if is_statement(node):
                    self._statements.append(self._reader.read(node))
                    is_relevant |= affects_lineage(
                        node,
                        writes=bool(self._statements[-1].writes),
                        in_routine=self._splitter.in_routine,
                        is_tsql=self._splitter.is_tsql,
                    )
                    if self._splitter.in_routine and not self._statements[-1].writes:
                        # How a routine uses the rows of a query is not analysed.
                        self._add_unparsed_tables(tokens)
                elif not self._splitter.in_routine and keyword(tokens[0]) not in HARMLESS:
                    self._report_not_understood("not a statement", tokens)
        except StatementTooLarge as problem:
            self._report_not_understood(f"too large: {problem}", tokens)
        except RecursionError:
            if not self._skips_deep:
                raise
            self._report_not_understood("nested too deeply", tokens)
        if not self._keeps_trees():
            for node in nodes:
                unlink(node)
        has_failed = self._failed_statements > failed_before
        if shape is not None and not has_failed and len(self._shapes) < _MAX_SHAPES:
            coverage = self._recorder.coverage
            self._shapes[shape] = _AnalysedShape(
                tuple(self._statements[count_before:]),
                columns=coverage.columns - coverage_before.columns,
                resolved=coverage.resolved - coverage_before.resolved,
            )
        elif shape is None:
            # The statement may change the meaning of later ones.
            self._shapes.clear()
        if self._stored_text is None or is_relevant:
            return
        # In a failed statement, a secret may look like code.
        is_safe = not self._has_open_quote and not has_secret_name(self._text_of(tokens))
        if has_failed and is_safe:
            self._stored_text.mask_literals_of(tokens)
        else:
            self._stored_text.omit(tokens)

    def _keeps_trees(self) -> bool:
        """Whether the trees of earlier statements may still be needed."""
        context = self._context
        return bool(
            context.is_watched
            or context.temporary
            or context.named_rows
            or context.variable_values
            or self._splitter.in_routine
        )

    def _shape_of(self, tokens: Sequence[Token]) -> StatementShape | None:
        """The shape of a statement; None if its lineage also depends on the state of the script."""
        if self._keeps_trees() or self._context.renamed_tables:
            return None
        return statement_shape(tokens)

    def _count_repeated(self, tokens: Sequence[Token], analysed: _AnalysedShape) -> None:
        """Count a statement that differs from an earlier one only in values."""
        self._statement_number += 1
        line = self._source.line(tokens[0].start)
        self._statement_lines.append((line, self._statement_number))
        for each in analysed.statements:
            repeated = msgspec.structs.replace(each, number=self._statement_number, line=line)
            self._statements.append(repeated)
        self._recorder.columns += analysed.columns
        self._recorder.resolved += analysed.resolved
        if self._stored_text is not None:
            self._stored_text.omit(tokens)

    def _drop_repeated_rows(self, tokens: Sequence[Token]) -> Sequence[Token]:
        """A statement without rows of VALUES that repeat the shape of earlier rows."""
        rows = repeated_rows(tokens)
        if not rows:
            return tokens
        if self._stored_text is not None:
            self._stored_text.omit(rows)
        repeated = {id(token) for token in rows}
        return [token for token in tokens if id(token) not in repeated]

    def _parse(self, tokens: Sequence[Token]) -> Iterator[exp.Expr]:
        self._begin_statement(
            self._source.line(tokens[0].start), self._source.for_statement(tokens)
        )
        # Clauses that the parser does not support are parsed separately, and added afterwards.
        output = variables = SeparatedClause(tokens)
        if self._splitter.is_tsql:
            tokens = (output := separate_output(tokens)).statement
        elif self._splitter.in_routine:
            tokens = (variables := separate_variables(tokens, self._context.variables)).statement
        problem: ParseError | None = None
        nodes: Sequence[exp.Expr | None] = ()
        try:
            nodes = self._dialect.parser().parse(list(tokens), self._text)
        except ParseError as failed:
            problem = failed
        if problem is not None or _has_command(nodes):
            simplified = simplify_statement(tokens)
            if simplified is not None:
                with suppress(ParseError):
                    nodes = self._dialect.parser().parse(simplified, self._text)
                    problem = None
        if problem is None and _has_command(nodes) and has_hidden_query(tokens):
            problem = self._problem_inside(tokens)
        if problem is not None and is_insert_from_procedure(tokens):
            self._context.add_problem(
                "the rows come from a procedure that is not analysed", tokens[0].start
            )
        elif problem is not None and keyword(tokens[0]) not in HARMLESS:
            is_complete = not (output.clause or variables.clause)
            fallback = self._parse_in_fallback_dialect(tokens, problem) if is_complete else None
            if fallback is not None:
                nodes = fallback
            else:
                reason = self._safe_reason(problem, tokens)
                self._report_failed(reason, _error_position(problem, tokens), self._text_of(tokens))
        has_backticks = "`" in self._text_of(tokens)
        for node in nodes:
            if node is not None:
                if has_backticks:
                    separate_dotted_names(node, self._text, self._dialect)
                if output.clause:
                    node.set("returning", self._parse_output(output.clause))
                if variables.clause and isinstance(node, exp.Query):
                    names = [exp.to_identifier(each.text) for each in variables.clause]
                    node.set("into", exp.Into(expressions=names))
                yield node

    def _parse_output(self, clause: Sequence[Token]) -> exp.Returning | None:
        with suppress(ParseError):
            insert = self._dialect.parser().parse(list(clause), self._text)[0]
            if isinstance(insert, exp.Insert) and isinstance(insert.expression, exp.Select):
                return exp.Returning(expressions=insert.expression.expressions, into=insert.this)
        self._report_not_understood("the OUTPUT clause", clause)
        return None

    def _parse_in_fallback_dialect(
        self, tokens: Sequence[Token], problem: ParseError
    ) -> Sequence[exp.Expr | None] | None:
        """The statement as parsed in another dialect; None if no dialect can parse it."""
        if self._has_open_quote or self._failed_fallbacks >= _MAX_FAILED_FALLBACKS:
            return None
        fallback = parse_in_other_dialect(
            self._text, tokens, self._dialect, first=self._other_dialect
        )
        if fallback is None:
            self._failed_fallbacks += 1
            return None
        self._other_dialect = fallback.dialect
        self._context.source = self._source.for_statement(fallback.tokens)
        reason = self._safe_reason(problem, tokens).removeprefix(_NOT_UNDERSTOOD)
        self._context.add_problem(
            f"read as {dialect_label(find_dialect(fallback.dialect))} SQL, since it is not "
            f"{dialect_label(self._dialect)} SQL: {reason}",
            _error_position(problem, tokens),
            is_remark=True,
        )
        return fallback.nodes

    def _safe_reason(self, problem: ParseError, tokens: Sequence[Token]) -> str:
        """The reason why a statement was not parsed, without quoting a possible secret."""
        if self._has_open_quote:
            return _OPEN_QUOTE
        text = self._text_of(tokens)
        # In a dialect without this escape, the rest of the literal becomes tokens.
        if has_secret_name(text) or _ESCAPED_QUOTE.search(text):
            return f"{_NOT_UNDERSTOOD}invalid syntax (not quoted here: it may contain a password)"
        return _parse_error_reason(problem)

    def _text_of(self, tokens: Sequence[Token]) -> str:
        return self._text[tokens[0].start : tokens[-1].end + 1]

    def _problem_inside(self, tokens: Sequence[Token]) -> ParseError:
        """The reason why the parser returned a raw command for a statement with a query."""
        query = query_after_as(tokens)
        if query is not None:
            try:
                self._dialect.parser().parse(query, self._text)
            except ParseError as problem:
                return problem
        kind = " ".join(keyword(each) for each in tokens[:2])
        return ParseError(f"this kind of {kind} is not supported")

    def _begin_statement(self, line: int, source: SourceText) -> None:
        self._statement_number += 1
        self._statement_lines.append((line, self._statement_number))
        self._context.begin(self._statement_number, line, source)

    def _report_not_understood(self, reason: str, tokens: Sequence[Token]) -> None:
        self._report_failed(f"{_NOT_UNDERSTOOD}{reason}", tokens[0].start, self._text_of(tokens))

    def _report_failed(self, reason: str, offset: int | None, text: str) -> None:
        """Report a failed statement, which counts as one unresolved column.

        The tables in its text are reported as well, and all names that may be tables.
        """
        self._context.add_problem(reason, offset)
        self._recorder.columns += 1
        self._failed_statements += 1
        if self._has_open_quote:
            # Strings and code may be mixed up.
            text = text.replace("'", " ")
        # Names that may be part of a secret are left out, unless they are names of tables.
        is_safe = not self._has_open_quote and not has_secret_name(text)
        self._add_tables_in_text(text, self._context.line, with_others=is_safe)

    def _add_unparsed_tables(self, tokens: Sequence[Token]) -> None:
        """Report the tables in tokens that are not parsed."""
        self._add_tables_in_text(self._text_of(tokens), self._source.line(tokens[0].start))
        self._add_tables_in_strings(tokens)

    def _add_tables_in_strings(self, tokens: Sequence[Token]) -> None:
        """Report the tables of SQL in strings, which is executed later."""
        text = " ".join(each.text for each in tokens if each.token_type in STRINGS)
        if _SQL_IN_STRING.match(text):
            self._add_tables_in_text(text, self._source.line(tokens[0].start))

    def _add_tables_in_text(self, text: str, line: int, *, with_others: bool = False) -> None:
        reads, targets, others = tables_in(text, self._context.folding)
        # SELECT a INTO variable writes no table.
        writes = tuple(
            each for each in targets if ".".join(each).lower() not in self._context.variables
        )
        others = others if with_others else ()
        if reads or writes or others:
            statement = UnparsedSql(
                number=self._statement_number, line=line, reads=reads, writes=writes, others=others
            )
            self._unparsed[statement] = None

    def _report_quoting_dialect(self) -> None:
        if self._quoting_dialect is not None:
            self._context.begin(1, 1, self._source)
            self._context.add_problem(
                f"quotes are read as in {dialect_label(self._quoting_dialect)} SQL, since some are "
                f"not closed in {dialect_label(self._dialect)} SQL",
                None,
                is_remark=True,
            )

    def _report_template_gaps(self, gaps: Sequence[TemplateGap]) -> None:
        for each in gaps:
            numbers = [number for line, number in self._statement_lines if line <= each.line]
            self._context.begin(numbers[-1] if numbers else 1, each.line, self._source)
            self._context.add_problem(
                f"unknown template expression: {each.text}", None, is_remark=each.is_remark
            )


def _has_command(nodes: Sequence[exp.Expr | None]) -> bool:
    return any(isinstance(node, exp.Command) for node in nodes)


def _parse_error_reason(problem: ParseError) -> str:
    error = problem.errors[0] if problem.errors else {}
    first_line = str(problem).partition("\n")[0] or "no SQL"
    description = str(error.get("description") or first_line).rstrip(".")
    excerpt = error.get("highlight")
    return f"{_NOT_UNDERSTOOD}{_simplify_message(description)}" + (
        f", near '{excerpt}'" if excerpt else ""
    )


def _simplify_message(description: str) -> str:
    """The parser's message without the names of its classes."""
    missing_part = _MISSING_PART.search(description)
    if missing_part is not None:
        return f"something is missing in {_split_class_name(missing_part[1])}"
    without_class_names = _CLASS_NAME.sub(lambda match: _split_class_name(match[1]), description)
    return _TOKEN.sub(
        lambda match: "the end" if match[1] == "SENTINEL" else f"'{match[1]}'", without_class_names
    )


def _split_class_name(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).upper()


def _error_position(problem: ParseError, tokens: Sequence[Token]) -> int:
    """The position where the parser stopped, or the start of the statement."""
    error = problem.errors[0] if problem.errors else {}
    line, column = error.get("line"), error.get("col")
    for token in tokens:
        if token.line == line and token.col == column:
            return token.start
    return tokens[0].start


def _has_unknown_name(edge: ColumnEdge) -> bool:
    names = (*edge.from_table, edge.from_column, *(edge.to_table or ()), edge.to_column or "")
    return any(UNKNOWN_NAME in name for name in names)


def _register_names(statement: StatementLineage, names: NameCases) -> None:
    for read in statement.reads:
        names.register(read.table)
        for column in read.columns:
            names.register(read.table, column)
    for write in statement.writes:
        names.register(write.table)
        for column in write.columns:
            names.register(write.table, column)
        for source in write.sources:
            names.register(source)


def _in_original_case(statement: StatementLineage, names: NameCases) -> StatementLineage:
    reads = (
        msgspec.structs.replace(
            read,
            table=names.table(read.table),
            columns=tuple(sorted(names.column(read.table, each) for each in read.columns)),
        )
        for read in statement.reads
    )
    writes = (
        msgspec.structs.replace(
            write,
            table=names.table(write.table),
            columns=tuple(names.column(write.table, each) for each in write.columns),
            sources=tuple(sorted(map(names.table, write.sources))),
        )
        for write in statement.writes
    )
    return msgspec.structs.replace(statement, reads=tuple(reads), writes=tuple(writes))


def _rename_tables(statement: StatementLineage, new_names: dict[Parts, Parts]) -> StatementLineage:
    if not new_names:
        return statement
    writes = tuple(
        msgspec.structs.replace(write, table=new_names.get(write.table, write.table))
        for write in statement.writes
    )
    return msgspec.structs.replace(statement, writes=writes)
