"""The state of an analysis: dialect, tables so far, and scopes in which names are resolved."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from lumos.lineage.sql.dialects import DialectTraits, NameFolding, column_name
from lumos.lineage.sql.relation import (
    Excerpt,
    Item,
    OriginPath,
    QueryColumn,
    QueryRelation,
    TableColumn,
    TableStar,
    WholeRow,
)
from lumos.lineage.sql.script import ALL, Parts, SqlProblem
from lumos.lineage.sql.source_text import Clause, SourceText
from lumos.model.lineage import Derivation, UseKind

ColumnProvider: TypeAlias = Callable[[Parts], Sequence[str] | Mapping[str, str] | None]

# Larger results come from a mistake or from malicious SQL.
MAX_COLUMNS: Final = 20_000
# The limit for all queries of a statement together: less than a second and some hundred megabytes.
MAX_ORIGINS: Final = 500_000


class StatementTooLarge(Exception):
    """A statement whose analysis would take too much time and memory."""


def no_columns(_: Parts) -> None:
    """A column provider that knows no table."""


class FromItem(NamedTuple):
    """An item of FROM: `name` qualifies its columns, `parts` is its full name."""

    name: str
    relation: QueryRelation
    parts: Parts = ()
    # Elements of an array: the name also stands for the value itself.
    is_value: bool = False


class UnresolvedColumn(NamedTuple):
    """A name that matches no column or several; `column` is the most likely one."""

    reason: str
    column: QueryColumn | None = None


class Scope:
    """The FROM items of one query, inside the scope of the enclosing query."""

    def __init__(self, *, outer: "Scope | None" = None, has_structs: bool = False) -> None:
        self.outer = outer
        self.sources: list[FromItem] = []
        # Columns that USING or NATURAL merged.
        self.merged: dict[str, QueryColumn] = {}
        self.aliases: dict[str, QueryColumn] = {}
        # Qualified names of this query: each proves that its source has the column.
        self.qualified_names: Callable[[], Collection[tuple[str, str]]] = frozenset
        # Rows that a routine holds under a name.
        self.rows: Mapping[str, QueryRelation] = {}
        # Scalars that WITH defines.
        self.values: Mapping[str, QueryColumn] = {}
        self.ctes: dict[str, QueryRelation] = {}
        self.windows: dict[str, exp.Expr] = {}
        self.variables: frozenset[str] = outer.variables if outer else frozenset()
        self.has_structs = has_structs

    def resolve(
        self, parts: Parts, *, aliases_first: bool = False
    ) -> QueryColumn | UnresolvedColumn | None:
        """The column that a name refers to; None for a variable."""
        if len(parts) == 1:
            return self._resolve_unqualified(parts[0], aliases_first=aliases_first)
        for length in range(len(parts) - 1, 0, -1):
            source = self.source(parts[:length])
            if source is not None:
                column = _qualified_column(source, parts[length])
                if length + 1 < len(parts) and isinstance(column, QueryColumn):
                    return column.field(parts[length + 1 :])
                return column
        holder = self._struct(parts[0], aliases_first=aliases_first)
        if holder is not None:
            return holder.field(parts[1:]) if isinstance(holder, QueryColumn) else holder
        if parts[0] in self.variables:
            return None
        return UnresolvedColumn(f"no source is called '{'.'.join(parts[:-1])}'")

    def source(self, qualifier: Parts) -> FromItem | None:
        """The FROM item of that name, here or in an enclosing query."""
        for scope in self._outwards():
            for source in scope.sources:
                if len(qualifier) == 1:
                    if source.name == qualifier[0]:
                        return source
                elif source.parts[-len(qualifier) :] == qualifier:
                    return source
        for scope in self._outwards():
            for source in scope.sources:
                if source.parts and source.parts[-len(qualifier) :] == qualifier:
                    return source
        if len(qualifier) == 1 and qualifier[0] in self.rows:
            return FromItem(qualifier[0], self.rows[qualifier[0]])
        return None

    def _struct(self, name: str, *, aliases_first: bool) -> QueryColumn | UnresolvedColumn | None:
        """Find the column whose field a qualifier accesses if the qualifier is not a source."""
        if aliases_first and name in self.aliases:
            return self.aliases[name]
        for scope in self._outwards():
            is_certain = name in scope.aliases or name in scope.merged
            is_certain = is_certain or any(each.relation.find(name) for each in scope.sources)
            column = scope._resolve_here(name) if self.has_structs or is_certain else None
            if column is not None:
                return column
        return None

    def _outwards(self) -> "Iterator[Scope]":
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def _resolve_unqualified(
        self, name: str, *, aliases_first: bool
    ) -> QueryColumn | UnresolvedColumn | None:
        if aliases_first and name in self.aliases:
            return self.aliases[name]
        unresolved: UnresolvedColumn | None = None
        for scope in self._outwards():
            column = scope._resolve_here(name)
            if isinstance(column, QueryColumn):
                return column
            unresolved = unresolved or column
        if name in self.variables:
            return None
        return unresolved or self._outside_schemas(name)

    def _resolve_here(self, name: str) -> QueryColumn | UnresolvedColumn | None:
        if name in self.merged:
            return self.merged[name]
        certain = [
            (source, column) for source in self.sources if (column := source.relation.find(name))
        ]
        if len(certain) == 1:
            return certain[0][1]
        if certain:
            return _ambiguous(name, [source for source, _ in certain])
        if name in self.values:
            return self.values[name].renamed(name)
        if name in self.aliases:
            return self.aliases[name]
        for source in self.sources:
            if source.is_value and source.name == name:
                return next(source.relation.everything()).renamed(name)
        if name in self.variables:
            return None
        open_sources = [source for source in self.sources if source.relation.candidates(name)]
        candidates = [
            source
            for source in open_sources
            if any(star.is_likely for star in source.relation.stars)
        ] or open_sources
        if len(candidates) > 1:
            names = self.qualified_names()
            confirmed = [source for source in candidates if (source.name, name) in names]
            candidates = confirmed if len(confirmed) == 1 else candidates
        if len(candidates) == 1:
            guess = candidates[0].relation.guess(name)
            return guess if guess is not None else _ambiguous(name, candidates)
        for source in self.sources:
            if source.name == name:
                return _whole_row(source, name)
        return _ambiguous(name, candidates) if candidates else None

    def _outside_schemas(self, name: str) -> QueryColumn | UnresolvedColumn:
        """Resolve a column in no known schema; that of an only table may be outdated."""
        for scope in self._outwards():
            tables = [source for source in scope.sources if source.relation.table is not None]
            if len(scope.sources) == 1 and len(tables) == 1:
                table = tables[0].relation.table
                assert table is not None
                return _unknown_in_table(table, name)
        names = ", ".join(source.name for source in self.sources)
        return UnresolvedColumn(
            f"no source has a column '{name}' (looked in: {names or 'nothing'})"
        )


class SqlWatcher(Protocol):
    """Receives every resolved name and every implicit use of columns, to derive more than edges.

    No edges are recorded for a watched script.
    """

    def begun(self, node: exp.Expr) -> None:
        """A statement is about to be read."""
        ...

    def named(
        self, node: exp.Expr, column: QueryColumn, usage: UseKind | None, excerpt: Excerpt | None
    ) -> None:
        """A name, or a position in GROUP BY or ORDER BY, refers to a column."""
        ...

    def joined(self, join: exp.Expr, scope: Scope, before: int) -> None:
        """The sources from index `before` on were joined to the earlier ones."""
        ...

    def shared(
        self, name: str, sides: Sequence[QueryColumn | None], excerpt: Excerpt | None
    ) -> None:
        """USING or NATURAL compares two columns."""
        ...

    def star_columns_named(
        self, node: exp.Expr, columns: Sequence[QueryColumn], excerpt: Excerpt | None
    ) -> None:
        """EXCEPT, RENAME or REPLACE after a star names columns that the star must contain."""
        ...

    def whole_row_used(
        self, node: exp.Expr, columns: Sequence[QueryColumn], usage: UseKind | None,
        excerpt: Excerpt | None,
    ) -> None:  # fmt: skip
        """All columns are the argument of a function."""
        ...

    def numbered(self, relation: QueryRelation, names: int) -> None:
        """The first `names` columns of a relation are renamed by position, as in t(a, b)."""
        ...

    def set_operation_read(
        self, node: exp.SetOperation, branches: Sequence[QueryRelation], *, is_by_name: bool
    ) -> None:
        """A set operation combines the columns of several queries."""
        ...

    def written(self, table: Parts, result: QueryRelation, *, positional: bool) -> None:
        """A result is written to a permanent table."""
        ...


class AnalysisContext:
    """The state of one script, which its statements change one after the other."""

    def __init__(
        self, dialect: Dialect, columns: ColumnProvider, watcher: SqlWatcher | None = None
    ) -> None:
        self.dialect = dialect
        self.watcher = watcher
        name = type(dialect).__name__.lower()
        self.traits = DialectTraits("" if name == "dialect" else name)
        self.folding = NameFolding(dialect)
        self.source = SourceText("", ())
        # Lineage leads through temporary tables.
        self.temporary: dict[Parts, QueryRelation] = {}
        self.renamed: dict[Parts, Parts] = {}
        # The rows of cursors and loops, and those that a trigger sees.
        self.rows: dict[str, QueryRelation] = {}
        # Scalars that WITH defines.
        self.values: dict[str, QueryColumn] = {}
        # T-SQL variables are stored without their @.
        self.variable_values: dict[str, QueryColumn] = {}
        self.variables: set[str] = set(self.traits.pseudo_columns)
        self.statement = 0
        self.line = 1
        self.reads: dict[Parts, dict[str, None]] = {}
        self.problems: dict[SqlProblem, None] = {}
        self._origins = 0
        self._columns = columns
        self._created: dict[Parts, list[str]] = {}
        self._known: dict[Parts, list[str] | None] = {}

    def begin(self, statement: int, line: int, source: SourceText) -> None:
        """Start the next statement."""
        self.statement = statement
        self.line = line
        self.source = source
        self.reads = {}
        self.values = {}
        self._origins = 0

    def begin_routine(self) -> None:
        """Forget the variables of the previous routine."""
        self.variables = set(self.traits.pseudo_columns)
        self.rows.clear()
        self.variable_values.clear()

    def count_origins(self, origins: int) -> None:
        """Count columns and origins that a statement reads; raises StatementTooLarge."""
        self._origins += origins
        if self._origins > MAX_ORIGINS:
            raise StatementTooLarge(
                f"its queries have more than {MAX_ORIGINS:,} columns and origins"
            )

    def check_size(self, relation: QueryRelation) -> QueryRelation:
        """Return the result of a query; raises StatementTooLarge if it has too many columns."""
        if len(relation.items) > MAX_COLUMNS:
            raise StatementTooLarge(f"a query in it returns more than {MAX_COLUMNS:,} columns")
        self.count_origins(len(relation.items))
        return relation

    # Names

    def name(self, node: exp.Expr | str | None) -> str:
        """The folded name of an identifier."""
        return self.folding.name(node)

    def column_parts(self, node: exp.Column) -> Parts:
        """The folded parts of a column's name."""
        return tuple(self.folding.name(part) for part in node.parts)

    def table_name(self, node: exp.Table) -> Parts:
        """The folded parts of a table's name; variables and temporary tables keep their prefix."""
        if isinstance(node.this, exp.Parameter):
            return (f"@{self.name(node.this.this)}",)
        if is_literal_identifier(node.this):
            return tuple(part.strip('"').lower() for part in node.this.name.split("."))
        parts = self.folding.table(node)
        return parts[-1:] if parts and parts[-1].startswith("#") else parts

    def scope(self, outer: Scope | None, ctes: Mapping[str, QueryRelation]) -> Scope:
        """A new scope inside another."""
        scope = Scope(outer=outer, has_structs=self.traits.has_structs)
        scope.ctes = dict(ctes)
        scope.variables = frozenset(self.variables)
        scope.rows = self.rows
        scope.values = self.values
        return scope

    # Tables

    def columns_of(self, table: Parts) -> list[str] | None:
        """The column names of a permanent table, if known."""
        if table in self._created:
            return self._created[table]
        if table not in self._known:
            columns = self._columns(table)
            # An empty schema counts as unknown.
            self._known[table] = (
                [self.folding.stored(name) for name in columns] if columns else None
            )
        return self._known[table]

    def known_columns(self, table: Parts) -> list[str] | None:
        """The column names of a permanent or temporary table, if known."""
        temporary = self.temporary.get(table)
        if temporary is not None:
            names = [column.name for column in temporary.columns]
            return names if names and not temporary.is_open else None
        return self.columns_of(table)

    def is_created(self, table: Parts) -> bool:
        """Whether the script itself created the table."""
        return table in self._created

    def set_columns(self, table: Parts, names: Iterable[str] | None) -> None:
        """Remember the columns of a table that the script creates; None after DROP."""
        if names is None:
            self._created.pop(table, None)
        else:
            self._created[table] = list(names)

    def table(self, table: Parts, *, is_read: bool = True) -> QueryRelation:
        """A table as a FROM item; a target only counts as read once one of its columns is named."""
        if table in self.temporary:
            return self.temporary[table]
        if is_read:
            self.reads.setdefault(table, {})
        names = self.columns_of(table)
        items: list[Item] = [TableStar(table)]
        if names is not None:
            items = [_table_column(table, name) for name in names]
        return QueryRelation(items, table=table)

    def with_names(self, names: list[str], relation: QueryRelation) -> QueryRelation:
        """A relation whose columns get names by position."""
        if names and self.watcher is not None:
            self.watcher.numbered(relation, len(names))
        return relation.under(names)

    # Results

    def record_read(self, column: QueryColumn) -> None:
        """Record that the statement reads the origins of a column."""
        self.count_origins(1 + len(column.facts) + len(column.uses))
        for table, name in column.facts:
            columns = self.reads.setdefault(table, {})
            if name != ALL:
                columns[column_name(name)] = None

    def add_problem(self, reason: str, offset: int | None, *, is_remark: bool = False) -> None:
        """Record what could not be resolved."""
        line = self.source.line(offset) if offset is not None else self.line
        problem = SqlProblem(
            statement=self.statement,
            line=line,
            reason=reason,
            severity="remark" if is_remark else "error",
        )
        self.problems[problem] = None

    def excerpt(self, offset: int | None, clause: Clause) -> Excerpt | None:
        """The clause around a position of the text."""
        return None if offset is None else Excerpt(self.source, offset, clause)


def is_literal_identifier(node: exp.Expr) -> bool:
    """Whether this is Snowflake's IDENTIFIER('name') with a literal name."""
    return isinstance(node, exp.DynamicIdentifier) and isinstance(node.this, exp.Literal)


def _qualified_column(source: FromItem, name: str) -> QueryColumn | UnresolvedColumn:
    relation = source.relation
    column = relation.find(name) or relation.guess(name)
    if column is not None:
        return column
    if source.is_value:
        return next(relation.everything()).renamed(name)
    if relation.table is not None:
        return _unknown_in_table(relation.table, name)
    if relation.candidates(name) > 1:
        return UnresolvedColumn(
            f"'{source.name}.{name}' may come from several tables of unknown columns"
        )
    return UnresolvedColumn(f"'{source.name}' has no column '{name}'")


def _ambiguous(name: str, sources: list[FromItem]) -> UnresolvedColumn:
    names = ", ".join(source.name or ".".join(source.parts) for source in sources)
    return UnresolvedColumn(f"column '{name}' is ambiguous: it may come from {names}")


def _unknown_in_table(table: Parts, name: str) -> UnresolvedColumn:
    column = _table_column(table, name)
    column.is_resolved = False
    return UnresolvedColumn(f"'{name}' is not among the columns known of {'.'.join(table)}", column)


def _table_column(table: Parts, name: str) -> QueryColumn:
    return QueryColumn(name, {(table, name): OriginPath()}, definition=TableColumn(table, name))


def _whole_row(source: FromItem, name: str) -> QueryColumn:
    """All columns of a source as one value, as in `SELECT t FROM t`."""
    columns = tuple(source.relation.everything())
    merged = QueryColumn(name)
    for column in columns:
        merged = merged.merged(column)
    step = OriginPath(Derivation.TRANSFORMATION)
    facts = {
        origin: fact.then(step) if fact.derivation is Derivation.IDENTITY else fact
        for origin, fact in merged.facts.items()
    }
    return QueryColumn(
        name, facts, merged.uses, is_resolved=merged.is_resolved, definition=WholeRow(columns)
    )
