"""From a script of any dialect to queries that Spark can analyse, one or more for each writing."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace
from sqlglot import exp

from lumos.impact.spark_queries.asking import Asked, NotAsked, asked, declared
from lumos.impact.spark_queries.staging import Names, Staged, written_for_spark
from lumos.lineage.sql.analysis import analyse
from lumos.lineage.sql.context import AnalysisContext, no_columns
from lumos.lineage.sql.dialects import find_dialect
from lumos.lineage.sql.script import Parts, ScriptLineage, StatementLineage

_TOO_DEEP: Final = "it is nested too deeply"
_STAND_IN: Final = re.compile(r"`?(__lumos_table_\d+__)`?")


class Check(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A query that computes what a statement gives a table, or why there is none (`problem`).

    `reads` are the tables behind the stand-ins in the text. The rest is as in `Asked`.
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
        """The text with a name for every table."""
        return _STAND_IN.sub(lambda match: f"`{name(self.reads[match.group(1)])}`", self.text)


class Checks(msgspec.Struct, frozen=True, kw_only=True):
    """The checks of a script, and what of it was not understood at all, by line."""

    found: tuple[Check, ...] = ()
    problems: tuple[tuple[int, str], ...] = ()


def checks(sql: str, *, dialect: str | None) -> Checks:
    """The checks of everything that a script writes; its own temporary tables are queries there."""
    try:
        return _checks(sql, dialect)
    except RecursionError:
        # Spark's own parser has no deeper stack; who writes what is known all the same.
        script = analyse(sql, dialect=dialect)
    found = (
        Check(target=write.table, statement=each.number, line=each.line, problem=_TOO_DEEP)
        for each in script.statements
        for write in each.writes
    )
    return Checks(found=tuple(found))


def _checks(sql: str, dialect: str | None) -> Checks:
    watching = _Nodes()
    script = analyse(sql, dialect=dialect, watcher=watching)
    names = Names(AnalysisContext(find_dialect(dialect), no_columns))
    problems = tuple(
        (each.line, each.reason) for each in script.unresolved if each.severity == "error"
    )
    found = _Script(names).checks(script, watching.nodes)
    return Checks(found=tuple(found), problems=problems)


class _Nodes:
    """Keeps the statements as the parser gave them."""

    def __init__(self) -> None:
        self.nodes: list[exp.Expr] = []

    def begun(self, node: exp.Expr) -> None:
        self.nodes.append(node.copy())

    def named(self, *_: object) -> None: ...

    def joined(self, *_: object) -> None: ...

    def shared(self, *_: object) -> None: ...

    def singled_out(self, *_: object) -> None: ...

    def taken_whole(self, *_: object) -> None: ...

    def numbered(self, *_: object) -> None: ...

    def laid_over(self, *_: object, is_by_name: bool) -> None: ...

    def written(self, *_: object, positional: bool) -> None: ...


class _Held(msgspec.Struct):
    """A table of the script's own: its query, and others that fill it and must be right as well."""

    name: str
    title: str
    queries: list[Staged]
    problem: str | None = None


class _Script:
    def __init__(self, names: Names) -> None:
        self._names = names
        # The script's own tables, as they are called now, and all that there were.
        self._held: dict[Parts, _Held] = {}
        self._made: dict[str, _Held] = {}
        # One stand-in for each table, however many queries read it.
        self._stand_ins: dict[Parts, str] = {}

    def checks(self, script: ScriptLineage, nodes: Sequence[exp.Expr]) -> Iterable[Check]:
        """Statement by statement, as later ones see the tables of those before."""
        for statement, node in zip(script.statements, nodes, strict=True):
            if statement.writes:
                yield from self._written(statement, node)
            else:
                self._hold(node)

    def _written(self, statement: StatementLineage, node: exp.Expr) -> Iterable[Check]:
        target = statement.writes[0].table
        check = Check(target=target, statement=statement.number, line=statement.line)
        if len({write.table for write in statement.writes}) > 1:
            reason = "a statement that writes several tables is not rehearsed"
            for write in statement.writes:
                yield replace(check, target=write.table, problem=reason)
            return
        try:
            for each in asked(node):
                yield self._filled(check, each)
        except NotAsked as problem:
            yield replace(check, problem=str(problem))
        except RecursionError:
            yield replace(check, problem=_TOO_DEEP)

    def _filled(self, check: Check, ask: Asked) -> Check:
        staged = self._staged(ask.query)
        behind = self._behind(staged)
        text = written_for_spark(staged.query, [(name, each.query) for name, each in behind])
        tables = [read for each in (staged, *dict(behind).values()) for read in each.reads.items()]
        return replace(
            check,
            text=text,
            reads={name: parts for parts, name in tables},
            creates=ask.creates,
            columns=ask.columns,
            is_by_name=ask.is_by_name,
            gives_all=ask.gives_all,
            fixed=ask.fixed,
            last=ask.last,
            stores=ask.stores,
        )

    def _staged(self, query: exp.Query) -> Staged:
        own = {parts: held.name for parts, held in self._held.items()}
        return Staged(query, self._names, own, self._stand_ins)

    def _behind(self, staged: Staged) -> list[tuple[str, Staged]]:
        """The queries of all own tables that a query takes, each behind those that it takes."""
        found: list[tuple[str, Staged]] = []
        seen: set[str] = set()

        def add(name: str) -> None:
            if name in seen:
                return
            seen.add(name)
            held = self._made[name]
            if held.problem is not None:
                raise NotAsked(f"of {held.title}, which it reads: {held.problem}")
            for number, each in enumerate(held.queries):
                for other in each.held.values():
                    add(other)
                found.append((f"{name}{number}" if number else name, each))

        for name in staged.held.values():
            add(name)
        return found

    def _hold(self, node: exp.Expr) -> None:
        """A statement that writes no table of anybody else's may write one of its own."""
        if isinstance(node, exp.Declare):
            for each in node.expressions:
                self._declare(each)
            return
        table = _written_table(node)
        if table is None:
            return
        try:
            queries = [self._staged(each.query) for each in asked(node)]
        except NotAsked as problem:
            self._keep(table, [], str(problem))
            return
        except RecursionError:
            self._keep(table, [], _TOO_DEEP)
            return
        held = self._held.get(self._names.of(table))
        if not queries:
            self._declare(node)
        elif isinstance(node, exp.Create | exp.Query | exp.Cache):
            self._keep(table, queries)
        elif held is not None:
            held.queries += queries

    def _declare(self, node: exp.Expr) -> None:
        made = declared(node)
        if made is not None and isinstance(made[0], exp.Table):
            self._keep(made[0], [self._staged(made[1])])

    def _keep(self, table: exp.Table, queries: list[Staged], problem: str | None = None) -> None:
        parts = self._names.of(table)
        held = _Held(f"__lumos_own_{len(self._made)}__", ".".join(parts), queries, problem)
        self._held[parts] = self._made[held.name] = held


def _written_table(node: exp.Expr) -> exp.Table | None:
    into = node.find(exp.Into) if isinstance(node, exp.Query) else None
    found = into.this if into is not None else node.this
    if isinstance(found, exp.Schema):
        found = found.this
    is_writing = into is not None or isinstance(node, exp.DML | exp.Create | exp.Cache)
    return found if is_writing and isinstance(found, exp.Table) else None
