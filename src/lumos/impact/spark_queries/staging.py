"""Queries with other names in the places of tables, written for Spark."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError

from lumos.impact.spark_queries.asking import NotAsked
from lumos.lineage.sql.context import AnalysisContext
from lumos.lineage.sql.dialects import spelling_of
from lumos.lineage.sql.script import Parts

# Functions in the place of tables that make rows out of their arguments alone.
_GENERATORS: Final = frozenset(
    {"range", "explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "stack",
     "inline_outer", "json_tuple"}
)  # fmt: skip
_VALUES_LATER: Final = (exp.Parameter, exp.Placeholder, exp.SessionParameter)


class Names:
    """How a script writes the names of tables."""

    def __init__(self, context: AnalysisContext) -> None:
        self._context = context

    def of(self, node: exp.Table) -> Parts:
        """The parts of a name as they leave the reader of SQL."""
        return tuple(map(spelling_of, self._context.table_name(node)))


class Staged:
    """A query whose tables have got other names: `reads` those of stand-ins, which are kept for
    the whole script in `stand_ins`, and `held` those that the script's `own` tables have here.
    """

    def __init__(
        self, query: exp.Query, names: Names, own: Mapping[Parts, str],
        stand_ins: dict[Parts, str],
    ) -> None:  # fmt: skip
        self.reads: dict[Parts, str] = {}
        self.held: dict[Parts, str] = {}
        self._names = names
        self._own = own
        self._stand_ins = stand_ins
        self._replaced: set[tuple[str, ...]] = set()
        self.query = query.copy()
        for within in self.query.find_all(exp.DML, exp.DDL):
            if not isinstance(within, exp.Query):
                raise NotAsked("a statement within a query is not rehearsed")
        for table in [*self.query.find_all(exp.Table)]:
            self._replace(table)
        for column in [*self.query.find_all(exp.Column)]:
            self._shorten(column)
        for value in [*self.query.find_all(*_VALUES_LATER)]:
            if not isinstance(value.parent, exp.Table):
                value.replace(exp.null())

    def _replace(self, table: exp.Table) -> None:
        if isinstance(table.this, exp.Func):
            name = table.this.sql().partition("(")[0]
            if name.lower() not in _GENERATORS:
                raise NotAsked(f"{name.upper()} in the place of a table is not rehearsed")
            return
        parts = self._names.of(table)
        if not parts:
            raise NotAsked("a table without a name is not rehearsed")
        if len(parts) == 1 and parts[0].lower() in _named_queries(table):
            return
        if len(parts) > 1 and parts[0].lower() in _neighbours(table):
            raise NotAsked(f"the list {'.'.join(parts)} in the place of a table is not rehearsed")
        if parts in self._own:
            name = self.held.setdefault(parts, self._own[parts])
        else:
            unused = f"__lumos_table_{len(self._stand_ins)}__"
            name = self.reads.setdefault(parts, self._stand_ins.setdefault(parts, unused))
        self._replaced.add(tuple(part.lower() for part in parts))
        if table.args.get("alias") is None:
            alias = exp.to_identifier(parts[-1].lstrip("#@"), quoted=True)
            table.set("alias", exp.TableAlias(this=alias))
        for part in ("db", "catalog", "partition", "version", "when", "hints", "changes"):
            table.set(part, None)
        table.set("this", exp.to_identifier(name))

    def _shorten(self, column: exp.Column) -> None:
        """Columns are named by their table alone, whose stand-in has no database."""
        table = column.args.get("table")
        if isinstance(table, exp.Identifier):
            table.set("temporary", None)
            table.set("global_", None)
        above = [part.name.lower() for part in column.parts[:-1]]
        if len(above) > 1 and any(tuple(above) == each[-len(above) :] for each in self._replaced):
            column.set("db", None)
            column.set("catalog", None)


def written_for_spark(query: exp.Query, held: Sequence[tuple[str, exp.Query]]) -> str:
    """Spark's words for a query, behind those for the script's own tables that it takes."""
    try:
        text = _text(query)
        if not held:
            return text
        before = ", ".join(f"`{name}` AS ({_text(each)})" for name, each in held)
    except (SqlglotError, ValueError) as problem:
        # What only one dialect has, the writer does not even know.
        raise NotAsked(f"Spark has no words for it: {_first(problem)}") from problem
    return f"WITH {before} SELECT * FROM ({text})"


def _text(query: exp.Query) -> str:
    return query.sql(
        dialect="spark",
        unsupported_level=ErrorLevel.RAISE,
        comments=False,
        # Functions of somebody's own stay spelled as they are, as errors name them.
        normalize_functions=False,
    )


def _first(problem: Exception) -> str:
    return str(problem).strip().partition("\n")[0].rstrip(".")


def _named_queries(table: exp.Table) -> set[str]:
    """The names of queries in WITH that a table's name may mean."""
    found: set[str] = set()
    inside: exp.Expr = table
    above = table.parent
    while above is not None:
        if isinstance(above, exp.With):
            # A named query sees those before it, and itself where it is recursive.
            for each in above.expressions:
                if each is inside and not above.args.get("recursive"):
                    break
                found.add(each.alias.lower())
                if each is inside:
                    break
        else:
            named = above.args.get("with_")
            if named is not None and named is not inside:
                found.update(each.alias.lower() for each in named.expressions)
        inside, above = above, above.parent
    return found


def _neighbours(table: exp.Table) -> set[str]:
    """The names of what stands before a table in the same FROM."""
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
