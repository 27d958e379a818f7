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
from lumos.lineage.sql.context import AnalysisContext, SqlWatcher, no_columns
from lumos.lineage.sql.dialects import find_dialect, in_original_case
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
    """A query that computes the rows a statement writes, or the `problem` that prevents it.

    `reads` maps the placeholders in the text to tables. See `StatementQuery` for other fields.
    """

    target: Parts
    statement: int
    line: int | None
    text: str = ""
    reads: Mapping[str, Parts] = {}
    creates: bool = False
    columns: tuple[str, ...] = ()
    is_by_name: bool = False
    needs_all_columns: bool = False
    static_partitions: tuple[str, ...] = ()
    dynamic_partitions: tuple[str, ...] = ()
    stores: bool = True
    problem: str | None = None

    def sql(self, name: Callable[[Parts], str]) -> str:
        """The text with every placeholder replaced by the name of its table."""
        return _PLACEHOLDER.sub(lambda match: f"`{name(self.reads[match.group(1)])}`", self.text)


class ScriptChecks(msgspec.Struct, frozen=True, kw_only=True):
    """The checks of a script, and parts that could not be parsed, by line."""

    checks: tuple[StatementCheck, ...] = ()
    problems: tuple[tuple[int, str], ...] = ()


def checks_of_script(sql: str, *, dialect: str | None) -> ScriptChecks:
    """The checks of all writes of a script; its temporary tables become CTEs."""
    try:
        return _checks(sql, dialect)
    except RecursionError:
        # Nested too deeply for the Spark parser, too; the written tables are still known.
        script = analyse(sql, dialect=dialect)
    checks = (
        StatementCheck(target=write.table, statement=each.number, line=each.line, problem=_TOO_DEEP)
        for each in script.statements
        for write in each.writes
    )
    return ScriptChecks(checks=tuple(checks))


def _checks(sql: str, dialect: str | None) -> ScriptChecks:
    collector = _StatementCollector()
    script = analyse(sql, dialect=dialect, watcher=collector)
    names = TableNames(AnalysisContext(find_dialect(dialect), no_columns))
    problems = tuple(
        (each.line, each.reason) for each in script.unresolved if each.severity == "error"
    )
    checks = _ScriptReader(names).checks(script, collector.nodes)
    return ScriptChecks(checks=tuple(checks), problems=problems)


class _StatementCollector(SqlWatcher):
    """Collects the parsed statements."""

    def __init__(self) -> None:
        self.nodes: list[exp.Expr] = []

    def on_statement(self, node: exp.Expr) -> None:
        self.nodes.append(node.copy())


class TableNames:
    """Table names as the SQL reader normalises them."""

    def __init__(self, context: AnalysisContext) -> None:
        self._context = context

    def of(self, node: exp.Table) -> Parts:
        """The parts of a table name."""
        return tuple(map(in_original_case, self._context.table_name(node)))


class RenamedQuery:
    """A copy of a query whose tables are renamed to placeholders.

    `reads` maps tables to placeholders, `temporary` maps temporary tables to their new names. All
    queries of a script share `placeholders`.
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
        self._renamed_tables: set[tuple[str, ...]] = set()
        self.query = query.copy()
        for nested in self.query.find_all(exp.DML, exp.DDL):
            if not isinstance(nested, exp.Query):
                raise UnsupportedStatement("a statement within a query is not supported")
        for table in [*self.query.find_all(exp.Table)]:
            self._rename_table(table)
        for column in [*self.query.find_all(exp.Column)]:
            self._drop_qualifiers(column)
        for value in [*self.query.find_all(*_PARAMETERS)]:
            if not isinstance(value.parent, exp.Table):
                value.replace(exp.null())

    def _rename_table(self, table: exp.Table) -> None:
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
            new_name = f"__lumos_table_{len(self._placeholders)}__"
            name = self.reads.setdefault(parts, self._placeholders.setdefault(parts, new_name))
        self._renamed_tables.add(tuple(part.lower() for part in parts))
        if table.args.get("alias") is None:
            alias = exp.to_identifier(parts[-1].lstrip("#@"), quoted=True)
            table.set("alias", exp.TableAlias(this=alias))
        for part in ("db", "catalog", "partition", "version", "when", "hints", "changes"):
            table.set(part, None)
        table.set("this", exp.to_identifier(name))

    def _drop_qualifiers(self, column: exp.Column) -> None:
        """Drop the database and catalog of a column, since placeholders have none."""
        table = column.args.get("table")
        if isinstance(table, exp.Identifier):
            table.set("temporary", None)
            table.set("global_", None)
        qualifier = [part.name.lower() for part in column.parts[:-1]]
        if len(qualifier) > 1 and any(
            tuple(qualifier) == each[-len(qualifier) :] for each in self._renamed_tables
        ):
            column.set("db", None)
            column.set("catalog", None)


class _TemporaryTable(msgspec.Struct):
    """A temporary table of the script: the query that creates it, and others that fill it."""

    name: str
    sql_name: str
    queries: list[RenamedQuery]
    problem: str | None = None


class _ScriptReader:
    def __init__(self, names: TableNames) -> None:
        self._names = names
        # The current temporary tables by SQL name, and all that ever existed by new name.
        self._temporary: dict[Parts, _TemporaryTable] = {}
        self._all_temporary: dict[str, _TemporaryTable] = {}
        self._placeholders: dict[Parts, str] = {}

    def checks(self, script: ScriptLineage, nodes: Sequence[exp.Expr]) -> Iterable[StatementCheck]:
        """The checks of all statements, which can read temporary tables of earlier statements."""
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
            needs_all_columns=statement_query.needs_all_columns,
            static_partitions=statement_query.static_partitions,
            dynamic_partitions=statement_query.dynamic_partitions,
            stores=statement_query.stores,
        )

    def _rename_tables(self, query: exp.Query) -> RenamedQuery:
        temporary_names = {parts: temporary.name for parts, temporary in self._temporary.items()}
        return RenamedQuery(query, self._names, temporary_names, self._placeholders)

    def _required_tables(self, renamed: RenamedQuery) -> list[tuple[str, RenamedQuery]]:
        """The queries of all temporary tables that a query reads, in order of dependency."""
        required: list[tuple[str, RenamedQuery]] = []
        added_names: set[str] = set()

        def add(name: str) -> None:
            if name in added_names:
                return
            added_names.add(name)
            temporary = self._all_temporary[name]
            if temporary.problem is not None:
                raise UnsupportedStatement(
                    f"temporary table {temporary.sql_name}: {temporary.problem}"
                )
            for number, each in enumerate(temporary.queries):
                for dependency in each.temporary.values():
                    add(dependency)
                required.append((f"{name}{number}" if number else name, each))

        for name in renamed.temporary.values():
            add(name)
        return required

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
    table = into.this if into is not None else node.this
    if isinstance(table, exp.Schema):
        table = table.this
    is_writing = into is not None or isinstance(node, exp.DML | exp.Create | exp.Cache)
    return table if is_writing and isinstance(table, exp.Table) else None


def spark_sql(query: exp.Query, temporary: Sequence[tuple[str, exp.Query]]) -> str:
    """The query in Spark SQL, with the temporary tables it reads as CTEs."""
    try:
        text = _spark_text(query)
        if not temporary:
            return text
        ctes = ", ".join(f"`{name}` AS ({_spark_text(each)})" for name, each in temporary)
    except (SqlglotError, ValueError) as problem:
        # The generator fails on constructs of a single dialect.
        reason = str(problem).strip().partition("\n")[0].rstrip(".")
        raise UnsupportedStatement(f"it cannot be translated to Spark SQL: {reason}") from problem
    return f"WITH {ctes} SELECT * FROM ({text})"


def _spark_text(query: exp.Query) -> str:
    return query.sql(
        dialect="spark",
        unsupported_level=ErrorLevel.RAISE,
        comments=False,
        # Keep the case of user-defined functions, which error messages contain.
        normalize_functions=False,
    )


def _visible_ctes(table: exp.Table) -> set[str]:
    """The names of CTEs visible to a table reference."""
    names: set[str] = set()
    child: exp.Expr = table
    parent = table.parent
    while parent is not None:
        if isinstance(parent, exp.With):
            # A CTE can use earlier CTEs, and itself if it is recursive.
            for each in parent.expressions:
                if each is child and not parent.args.get("recursive"):
                    break
                names.add(each.alias.lower())
                if each is child:
                    break
        else:
            with_clause = parent.args.get("with_")
            if with_clause is not None and with_clause is not child:
                names.update(each.alias.lower() for each in with_clause.expressions)
        child, parent = parent, parent.parent
    return names


def _sibling_aliases(table: exp.Table) -> set[str]:
    """The aliases of the other tables in the same FROM."""
    select = table.find_ancestor(exp.Select)
    from_clause = select.args.get("from_") if select is not None else None
    if select is None or from_clause is None:
        return set()
    return {each.alias.lower() for each in _sources(select, from_clause)
            if each is not table and each.alias}  # fmt: skip


def _sources(select: exp.Select, from_clause: exp.Expr) -> Iterator[exp.Expr]:
    yield from_clause.this
    for join in (*(select.args.get("joins") or ()), *(from_clause.this.args.get("joins") or ())):
        yield join.this
