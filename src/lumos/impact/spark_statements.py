"""Converts scripts of any dialect to queries for Spark, one or more per writing statement."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace
from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError

from lumos.impact.statement_queries import (
    StatementQuery,
    UnsupportedStatement,
    declared_table,
    queries_of,
)
from lumos.lineage.sql.analysis import analyse
from lumos.lineage.sql.context import AnalysisContext, no_columns
from lumos.lineage.sql.dialects import find_dialect, spelling_of
from lumos.lineage.sql.script import Parts, ScriptLineage, StatementLineage

_TOO_DEEP: Final = "it is nested too deeply"
_PLACEHOLDER: Final = re.compile(r"`?(__lumos_table_\d+__)`?")
# Table functions that depend on their arguments only.
_GENERATORS: Final = frozenset(
    {"range", "explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "stack",
     "inline_outer", "json_tuple"}
)  # fmt: skip
_PARAMETERS: Final = (exp.Parameter, exp.Placeholder, exp.SessionParameter)


class StatementCheck(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A query that computes what a statement writes, or why there is none (`problem`).

    `reads` maps the placeholders in the text to tables. The rest is as in `StatementQuery`.
    """

    target: Parts
    statement: int
    line: int | None
    text: str = ""
    reads: Mapping[str, Parts] = {}
    creates: bool = False
    columns: tuple[str, ...] = ()
    is_by_name: bool = False
    gives_all: bool = False
    fixed: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    stores: bool = True
    problem: str | None = None

    def sql(self, name: Callable[[Parts], str]) -> str:
        """The text with every placeholder replaced by the name of its table."""
        return _PLACEHOLDER.sub(lambda match: f"`{name(self.reads[match.group(1)])}`", self.text)


class ScriptChecks(msgspec.Struct, frozen=True, kw_only=True):
    """The checks of a script, and parts that could not be parsed, by line."""

    found: tuple[StatementCheck, ...] = ()
    problems: tuple[tuple[int, str], ...] = ()


def checks_of_script(sql: str, *, dialect: str | None) -> ScriptChecks:
    """The checks of all writes of a script; its temporary tables become CTEs."""
    try:
        return _checks(sql, dialect)
    except RecursionError:
        # Spark's parser would fail as well; the written tables are still known.
        script = analyse(sql, dialect=dialect)
    found = (
        StatementCheck(target=write.table, statement=each.number, line=each.line, problem=_TOO_DEEP)
        for each in script.statements
        for write in each.writes
    )
    return ScriptChecks(found=tuple(found))


def _checks(sql: str, dialect: str | None) -> ScriptChecks:
    watching = _StatementCollector()
    script = analyse(sql, dialect=dialect, watcher=watching)
    names = TableNames(AnalysisContext(find_dialect(dialect), no_columns))
    problems = tuple(
        (each.line, each.reason) for each in script.unresolved if each.severity == "error"
    )
    found = _ScriptReader(names).checks(script, watching.nodes)
    return ScriptChecks(found=tuple(found), problems=problems)


class _StatementCollector:
    """Collects the parsed statements."""

    def __init__(self) -> None:
        self.nodes: list[exp.Expr] = []

    def begun(self, node: exp.Expr) -> None:
        self.nodes.append(node.copy())

    def named(self, *_: object) -> None: ...

    def joined(self, *_: object) -> None: ...

    def shared(self, *_: object) -> None: ...

    def star_columns_named(self, *_: object) -> None: ...

    def whole_row_used(self, *_: object) -> None: ...

    def numbered(self, *_: object) -> None: ...

    def set_operation_read(self, *_: object, is_by_name: bool) -> None: ...

    def written(self, *_: object, positional: bool) -> None: ...


class TableNames:
    """Table names as the SQL reader normalises them."""

    def __init__(self, context: AnalysisContext) -> None:
        self._context = context

    def of(self, node: exp.Table) -> Parts:
        """The parts of a table name."""
        return tuple(map(spelling_of, self._context.table_name(node)))


class RenamedQuery:
    """A query with tables renamed to placeholders.

    `reads` are the placeholders of tables, which the script shares in `placeholders`; `temporary`
    are the names of temporary tables.
    """

    def __init__(
        self, query: exp.Query, names: TableNames, temporary_names: Mapping[Parts, str],
        placeholders: dict[Parts, str],
    ) -> None:  # fmt: skip
        self.reads: dict[Parts, str] = {}
        self.temporary: dict[Parts, str] = {}
        self._names = names
        self._temporary_names = temporary_names
        self._placeholders = placeholders
        self._replaced: set[tuple[str, ...]] = set()
        self.query = query.copy()
        for within in self.query.find_all(exp.DML, exp.DDL):
            if not isinstance(within, exp.Query):
                raise UnsupportedStatement("a statement within a query is not supported")
        for table in [*self.query.find_all(exp.Table)]:
            self._replace(table)
        for column in [*self.query.find_all(exp.Column)]:
            self._shorten(column)
        for value in [*self.query.find_all(*_PARAMETERS)]:
            if not isinstance(value.parent, exp.Table):
                value.replace(exp.null())

    def _replace(self, table: exp.Table) -> None:
        if isinstance(table.this, exp.Func):
            name = table.this.sql().partition("(")[0]
            if name.lower() not in _GENERATORS:
                raise UnsupportedStatement(f"{name.upper()} as a table is not supported")
            return
        parts = self._names.of(table)
        if not parts:
            raise UnsupportedStatement("a table without a name is not supported")
        if len(parts) == 1 and parts[0].lower() in _visible_ctes(table):
            return
        if len(parts) > 1 and parts[0].lower() in _sibling_aliases(table):
            raise UnsupportedStatement(f"the array {'.'.join(parts)} as a table is not supported")
        if parts in self._temporary_names:
            name = self.temporary.setdefault(parts, self._temporary_names[parts])
        else:
            unused = f"__lumos_table_{len(self._placeholders)}__"
            name = self.reads.setdefault(parts, self._placeholders.setdefault(parts, unused))
        self._replaced.add(tuple(part.lower() for part in parts))
        if table.args.get("alias") is None:
            alias = exp.to_identifier(parts[-1].lstrip("#@"), quoted=True)
            table.set("alias", exp.TableAlias(this=alias))
        for part in ("db", "catalog", "partition", "version", "when", "hints", "changes"):
            table.set(part, None)
        table.set("this", exp.to_identifier(name))

    def _shorten(self, column: exp.Column) -> None:
        """Drop database and catalog of a column, as placeholders have none."""
        table = column.args.get("table")
        if isinstance(table, exp.Identifier):
            table.set("temporary", None)
            table.set("global_", None)
        qualifier = [part.name.lower() for part in column.parts[:-1]]
        if len(qualifier) > 1 and any(
            tuple(qualifier) == each[-len(qualifier) :] for each in self._replaced
        ):
            column.set("db", None)
            column.set("catalog", None)


class _TemporaryTable(msgspec.Struct):
    """A temporary table of the script: the query that creates it, and others that fill it."""

    name: str
    title: str
    queries: list[RenamedQuery]
    problem: str | None = None


class _ScriptReader:
    def __init__(self, names: TableNames) -> None:
        self._names = names
        # Current temporary tables by name, and all there have been.
        self._temporary: dict[Parts, _TemporaryTable] = {}
        self._all_temporary: dict[str, _TemporaryTable] = {}
        # One placeholder per table.
        self._placeholders: dict[Parts, str] = {}

    def checks(self, script: ScriptLineage, nodes: Sequence[exp.Expr]) -> Iterable[StatementCheck]:
        """The checks in order, as later statements see temporary tables of earlier ones."""
        for statement, node in zip(script.statements, nodes, strict=True):
            if statement.writes:
                yield from self._checks_of(statement, node)
            else:
                self._record_temporary(node)

    def _checks_of(self, statement: StatementLineage, node: exp.Expr) -> Iterable[StatementCheck]:
        target = statement.writes[0].table
        check = StatementCheck(target=target, statement=statement.number, line=statement.line)
        if len({write.table for write in statement.writes}) > 1:
            reason = "a statement that writes several tables is not supported"
            for write in statement.writes:
                yield replace(check, target=write.table, problem=reason)
            return
        try:
            for each in queries_of(node):
                yield self._with_query(check, each)
        except UnsupportedStatement as problem:
            yield replace(check, problem=str(problem))
        except RecursionError:
            yield replace(check, problem=_TOO_DEEP)

    def _with_query(self, check: StatementCheck, statement_query: StatementQuery) -> StatementCheck:
        renamed = self._rename_tables(statement_query.query)
        required = self._required_tables(renamed)
        text = spark_sql(renamed.query, [(name, each.query) for name, each in required])
        tables = [
            read for each in (renamed, *dict(required).values()) for read in each.reads.items()
        ]
        return replace(
            check,
            text=text,
            reads={name: parts for parts, name in tables},
            creates=statement_query.creates,
            columns=statement_query.columns,
            is_by_name=statement_query.is_by_name,
            gives_all=statement_query.gives_all,
            fixed=statement_query.fixed,
            last=statement_query.last,
            stores=statement_query.stores,
        )

    def _rename_tables(self, query: exp.Query) -> RenamedQuery:
        temporary_names = {parts: temporary.name for parts, temporary in self._temporary.items()}
        return RenamedQuery(query, self._names, temporary_names, self._placeholders)

    def _required_tables(self, renamed: RenamedQuery) -> list[tuple[str, RenamedQuery]]:
        """The queries of all temporary tables that a query reads, in order of dependency."""
        found: list[tuple[str, RenamedQuery]] = []
        seen: set[str] = set()

        def add(name: str) -> None:
            if name in seen:
                return
            seen.add(name)
            temporary = self._all_temporary[name]
            if temporary.problem is not None:
                raise UnsupportedStatement(
                    f"temporary table {temporary.title}: {temporary.problem}"
                )
            for number, each in enumerate(temporary.queries):
                for other in each.temporary.values():
                    add(other)
                found.append((f"{name}{number}" if number else name, each))

        for name in renamed.temporary.values():
            add(name)
        return found

    def _record_temporary(self, node: exp.Expr) -> None:
        """Record the temporary table that a statement fills, if any."""
        if isinstance(node, exp.Declare):
            for each in node.expressions:
                self._declare(each)
            return
        table = _written_table(node)
        if table is None:
            return
        try:
            queries = [self._rename_tables(each.query) for each in queries_of(node)]
        except UnsupportedStatement as problem:
            self._add_temporary(table, [], str(problem))
            return
        except RecursionError:
            self._add_temporary(table, [], _TOO_DEEP)
            return
        temporary = self._temporary.get(self._names.of(table))
        if not queries:
            self._declare(node)
        elif isinstance(node, exp.Create | exp.Query | exp.Cache):
            self._add_temporary(table, queries)
        elif temporary is not None:
            temporary.queries += queries

    def _declare(self, node: exp.Expr) -> None:
        declared = declared_table(node)
        if declared is not None and isinstance(declared[0], exp.Table):
            self._add_temporary(declared[0], [self._rename_tables(declared[1])])

    def _add_temporary(
        self, table: exp.Table, queries: list[RenamedQuery], problem: str | None = None
    ) -> None:
        parts = self._names.of(table)
        temporary = _TemporaryTable(
            f"__lumos_own_{len(self._all_temporary)}__", ".".join(parts), queries, problem
        )
        self._temporary[parts] = self._all_temporary[temporary.name] = temporary


def _written_table(node: exp.Expr) -> exp.Table | None:
    into = node.find(exp.Into) if isinstance(node, exp.Query) else None
    found = into.this if into is not None else node.this
    if isinstance(found, exp.Schema):
        found = found.this
    is_writing = into is not None or isinstance(node, exp.DML | exp.Create | exp.Cache)
    return found if is_writing and isinstance(found, exp.Table) else None


def spark_sql(query: exp.Query, temporary: Sequence[tuple[str, exp.Query]]) -> str:
    """The query in Spark SQL, with the temporary tables it reads as CTEs."""
    try:
        text = _spark_text(query)
        if not temporary:
            return text
        before = ", ".join(f"`{name}` AS ({_spark_text(each)})" for name, each in temporary)
    except (SqlglotError, ValueError) as problem:
        # The generator fails on constructs of a single dialect.
        raise UnsupportedStatement(
            f"it cannot be translated to Spark SQL: {_first_line(problem)}"
        ) from problem
    return f"WITH {before} SELECT * FROM ({text})"


def _spark_text(query: exp.Query) -> str:
    return query.sql(
        dialect="spark",
        unsupported_level=ErrorLevel.RAISE,
        comments=False,
        # User-defined functions keep their spelling, as errors name them.
        normalize_functions=False,
    )


def _first_line(problem: Exception) -> str:
    return str(problem).strip().partition("\n")[0].rstrip(".")


def _visible_ctes(table: exp.Table) -> set[str]:
    """The names of CTEs visible to a table reference."""
    found: set[str] = set()
    child: exp.Expr = table
    parent = table.parent
    while parent is not None:
        if isinstance(parent, exp.With):
            # A CTE sees earlier ones, and itself if it is recursive.
            for each in parent.expressions:
                if each is child and not parent.args.get("recursive"):
                    break
                found.add(each.alias.lower())
                if each is child:
                    break
        else:
            named = parent.args.get("with_")
            if named is not None and named is not child:
                found.update(each.alias.lower() for each in named.expressions)
        child, parent = parent, parent.parent
    return found


def _sibling_aliases(table: exp.Table) -> set[str]:
    """The aliases of the other tables in the same FROM."""
    select = table.find_ancestor(exp.Select)
    start = select.args.get("from_") if select is not None else None
    if select is None or start is None:
        return set()
    return {each.alias.lower() for each in _sources(select, start)
            if each is not table and each.alias}  # fmt: skip


def _sources(select: exp.Select, start: exp.Expr) -> Iterator[exp.Expr]:
    yield start.this
    for join in (*(select.args.get("joins") or ()), *(start.this.args.get("joins") or ())):
        yield join.this
