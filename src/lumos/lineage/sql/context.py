"""The state of an analysis: the dialect, the tables so far, and scopes that resolve names."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from lumos.lineage.sql.dialects import DialectTraits, NameFolding, column_name
from lumos.lineage.sql.relation import (
    Excerpt,
    OriginPath,
    QueryColumn,
    QueryRelation,
    TableRelation,
    TableStar,
    WholeRow,
    table_column,
)
from lumos.lineage.sql.script import ALL, Parts, SqlProblem
from lumos.lineage.sql.source_text import Clause, SourceText
from lumos.model.lineage import Derivation, UseKind

ColumnProvider: TypeAlias = Callable[[Parts], Sequence[str] | Mapping[str, str] | None]

# A query with more columns is a mistake or malicious.
MAX_COLUMNS: Final = 20_000
# The limit for all queries of a statement together. Below it, an analysis takes less than a second
# and some hundred megabytes.
MAX_ORIGINS: Final = 500_000


class StatementTooLarge(Exception):
    """A statement whose analysis would take too much time and memory."""


def no_columns(_: Parts) -> None:
    """A column provider for which the columns of all tables are unknown."""


class FromItem(NamedTuple):
    """An item of FROM: `name` qualifies its columns, `parts` is its full name."""

    name: str
    relation: QueryRelation
    parts: Parts = ()
    # Whether the rows are elements of an array, so that the name also refers to the element.
    is_value: bool = False


class UnresolvedColumn(NamedTuple):
    """A name that matches no column or several; `column` is the most likely match, if any."""

    reason: str
    column: QueryColumn | None = None


class Scope:
    """The FROM items of one query, inside the scope of the enclosing query."""

    def __init__(self, *, outer: "Scope | None" = None, has_structs: bool = False) -> None:
        self.outer = outer
        self.sources: list[FromItem] = []
        # Columns that USING or NATURAL merged.
        self.merged_columns: dict[str, QueryColumn] = {}
        self.aliases: dict[str, QueryColumn] = {}
        # Pairs of a source and one of its columns, from qualified names such as `o.id`.
        self.qualified_names: Callable[[], Collection[tuple[str, str]]] = frozenset
        # Rows of cursors, loops and triggers, by their names in a routine.
        self.named_rows: Mapping[str, QueryRelation] = {}
        # Scalars that WITH defines.
        self.scalars: Mapping[str, QueryColumn] = {}
        self.ctes: dict[str, QueryRelation] = {}
        self.windows: dict[str, exp.Expr] = {}
        self.variables: frozenset[str] = outer.variables if outer else frozenset()
        self.has_structs = has_structs

    def resolve(
        self, parts: Parts, *, aliases_first: bool = False
    ) -> QueryColumn | UnresolvedColumn | None:
        """Resolve a name to a column; None for a variable."""
        if len(parts) == 1:
            return self._resolve_unqualified(parts[0], aliases_first=aliases_first)
        for length in range(len(parts) - 1, 0, -1):
            source = self.find_source(parts[:length])
            if source is not None:
                column = _qualified_column(source, parts[length])
                if length + 1 < len(parts) and isinstance(column, QueryColumn):
                    return column.field(parts[length + 1 :])
                return column
        struct = self._resolve_struct(parts[0], aliases_first=aliases_first)
        if struct is not None:
            return struct.field(parts[1:]) if isinstance(struct, QueryColumn) else struct
        if parts[0] in self.variables:
            return None
        return UnresolvedColumn(f"no source is called '{'.'.join(parts[:-1])}'")

    def find_source(self, qualifier: Parts) -> FromItem | None:
        """The FROM item of that name, in this query or an enclosing one."""
        for scope in self._self_and_outer():
            for source in scope.sources:
                if len(qualifier) == 1:
                    if source.name == qualifier[0]:
                        return source
                elif source.parts[-len(qualifier) :] == qualifier:
                    return source
        # A source with an alias may also be referred to by its table name.
        for scope in self._self_and_outer():
            for source in scope.sources:
                if source.parts and source.parts[-len(qualifier) :] == qualifier:
                    return source
        if len(qualifier) == 1 and qualifier[0] in self.named_rows:
            return FromItem(qualifier[0], self.named_rows[qualifier[0]])
        return None

    def _resolve_struct(
        self, name: str, *, aliases_first: bool
    ) -> QueryColumn | UnresolvedColumn | None:
        """Resolve a qualifier that is not a source: in `address.city`, the column `address`."""
        if aliases_first and name in self.aliases:
            return self.aliases[name]
        for scope in self._self_and_outer():
            is_column = name in scope.aliases or name in scope.merged_columns
            is_column = is_column or any(each.relation.find(name) for each in scope.sources)
            column = scope._resolve_in_query(name) if self.has_structs or is_column else None
            if column is not None:
                return column
        return None

    def _self_and_outer(self) -> "Iterator[Scope]":
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
        for scope in self._self_and_outer():
            column = scope._resolve_in_query(name)
            if isinstance(column, QueryColumn):
                return column
            unresolved = unresolved or column
        if name in self.variables:
            return None
        return unresolved or self._resolve_unknown(name)

    def _resolve_in_query(self, name: str) -> QueryColumn | UnresolvedColumn | None:
        """Resolve an unqualified name in this query only; known columns take precedence."""
        if name in self.merged_columns:
            return self.merged_columns[name]
        matches = [
            (source, column) for source in self.sources if (column := source.relation.find(name))
        ]
        if len(matches) == 1:
            return matches[0][1]
        if matches:
            return _ambiguous_column(name, [source for source, _ in matches])
        if name in self.scalars:
            return self.scalars[name].with_name(name)
        if name in self.aliases:
            return self.aliases[name]
        for source in self.sources:
            if source.is_value and source.name == name:
                return next(source.relation.all_columns()).with_name(name)
        if name in self.variables:
            return None
        possible = [source for source in self.sources if source.relation.count_candidates(name)]
        candidates = [
            source for source in possible if any(star.is_likely for star in source.relation.stars)
        ] or possible
        if len(candidates) > 1:
            qualified = self.qualified_names()
            confirmed = [source for source in candidates if (source.name, name) in qualified]
            candidates = confirmed if len(confirmed) == 1 else candidates
        if len(candidates) == 1:
            guess = candidates[0].relation.guess(name)
            return guess if guess is not None else _ambiguous_column(name, candidates)
        for source in self.sources:
            if source.name == name:
                return _whole_row(source, name)
        return _ambiguous_column(name, candidates) if candidates else None

    def _resolve_unknown(self, name: str) -> QueryColumn | UnresolvedColumn:
        """Resolve a name that no schema contains.

        If a query reads a single table, the name is a column of that table: its known schema may be
        outdated.
        """
        for scope in self._self_and_outer():
            tables = [source for source in scope.sources if source.relation.table is not None]
            if len(scope.sources) == 1 and len(tables) == 1:
                table = tables[0].relation.table
                assert table is not None
                return _unknown_in_table(table, name)
        names = ", ".join(source.name for source in self.sources)
        return UnresolvedColumn(
            f"no source has a column '{name}' (looked in: {names or 'nothing'})"
        )


class SqlWatcher:
    """Callbacks for each statement, resolved name and implicit use of columns.

    The methods do nothing by default.

    No edges are recorded for a script with a watcher.
    """

    def on_statement(self, node: exp.Expr) -> None:
        """Called before a statement is read."""

    def on_name(
        self, node: exp.Expr, column: QueryColumn, usage: UseKind | None, excerpt: Excerpt | None
    ) -> None:
        """Called if a name, or a position in GROUP BY or ORDER BY, refers to a column."""

    def on_join(self, join: exp.Expr, scope: Scope, first_joined: int) -> None:
        """Called after a join; `first_joined` is the index of the first joined source."""

    def on_shared_column(
        self, name: str, sides: Sequence[QueryColumn | None], excerpt: Excerpt | None
    ) -> None:
        """Called if USING or NATURAL compares two columns."""

    def on_star_columns_named(
        self, node: exp.Expr, columns: Sequence[QueryColumn], excerpt: Excerpt | None
    ) -> None:
        """Called if EXCEPT, RENAME or REPLACE after a star names columns of that star."""

    def on_whole_row(
        self, node: exp.Expr, columns: Sequence[QueryColumn], usage: UseKind | None,
        excerpt: Excerpt | None,
    ) -> None:  # fmt: skip
        """Called if a row with all of its columns is used as one value."""

    def on_columns_renamed(self, relation: QueryRelation, alias_count: int) -> None:
        """Called if the first `alias_count` columns are renamed by position, as in t(a, b)."""

    def on_set_operation(
        self, node: exp.SetOperation, branches: Sequence[QueryRelation], *, is_by_name: bool
    ) -> None:
        """Called if a set operation combines several queries."""

    def on_write(self, table: Parts, result: QueryRelation, *, positional: bool) -> None:
        """Called if a result is written to a permanent table."""


class AnalysisContext:
    """The state of one script; each statement may change it."""

    def __init__(
        self, dialect: Dialect, columns: ColumnProvider, watcher: SqlWatcher | None = None
    ) -> None:
        self.dialect = dialect
        self.watcher = watcher or SqlWatcher()
        self.is_watched = watcher is not None
        name = type(dialect).__name__.lower()
        self.traits = DialectTraits("" if name == "dialect" else name)
        self.folding = NameFolding(dialect)
        self.source = SourceText("", ())
        # Temporary tables are not reported: lineage leads through them to permanent tables.
        self.temporary: dict[Parts, QueryRelation] = {}
        self.renamed_tables: dict[Parts, Parts] = {}
        # Rows of cursors, loops and triggers, by their names in a routine.
        self.named_rows: dict[str, QueryRelation] = {}
        # Scalars that WITH defines.
        self.scalars: dict[str, QueryColumn] = {}
        # T-SQL variables are stored without their @.
        self.variable_values: dict[str, QueryColumn] = {}
        self.variables: set[str] = set(self.traits.pseudo_columns)
        self.statement = 0
        self.line = 1
        self.reads: dict[Parts, dict[str, None]] = {}
        self.problems: dict[SqlProblem, None] = {}
        self._origin_count = 0
        self._column_provider = columns
        self._created_columns: dict[Parts, list[str]] = {}
        self._provided_columns: dict[Parts, list[str] | None] = {}

    def begin(self, statement: int, line: int, source: SourceText) -> None:
        """Start the next statement."""
        self.statement = statement
        self.line = line
        self.source = source
        self.reads = {}
        self.scalars = {}
        self._origin_count = 0

    def begin_routine(self) -> None:
        """Clear the variables of the previous routine."""
        self.variables = set(self.traits.pseudo_columns)
        self.named_rows.clear()
        self.variable_values.clear()

    def release(self) -> None:
        """Drop the references to tokens and callers.

        The readers and the context refer to each other, so that all of this would stay in memory
        until garbage collection.
        """
        self.source = SourceText("", ())
        self.watcher = SqlWatcher()
        self._column_provider = no_columns

    def count_origins(self, count: int) -> None:
        """Add to the number of columns and origins of a statement; raises StatementTooLarge."""
        self._origin_count += count
        if self._origin_count > MAX_ORIGINS:
            raise StatementTooLarge(
                f"its queries have more than {MAX_ORIGINS:,} columns and origins"
            )

    def check_size(self, relation: QueryRelation) -> QueryRelation:
        """Return the same relation; raises StatementTooLarge if it has too many columns."""
        if len(relation.items) > MAX_COLUMNS:
            raise StatementTooLarge(f"one of its queries returns more than {MAX_COLUMNS:,} columns")
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
        """A new scope inside the scope of an enclosing query."""
        scope = Scope(outer=outer, has_structs=self.traits.has_structs)
        scope.ctes = dict(ctes)
        scope.variables = frozenset(self.variables)
        scope.named_rows = self.named_rows
        scope.scalars = self.scalars
        return scope

    # Tables

    def columns_of(self, table: Parts) -> list[str] | None:
        """The column names of a permanent table, if known."""
        if table in self._created_columns:
            return self._created_columns[table]
        if table not in self._provided_columns:
            columns = self._column_provider(table)
            # An empty schema counts as unknown.
            self._provided_columns[table] = (
                [self.folding.stored(name) for name in columns] if columns else None
            )
        return self._provided_columns[table]

    def known_columns(self, table: Parts) -> list[str] | None:
        """The column names of a permanent or temporary table, if known."""
        temporary = self.temporary.get(table)
        if temporary is not None:
            names = [column.name for column in temporary.columns]
            return names if names and not temporary.has_unknown_columns else None
        return self.columns_of(table)

    def is_created(self, table: Parts) -> bool:
        """Whether the script itself created the table."""
        return table in self._created_columns

    def set_columns(self, table: Parts, names: Iterable[str] | None) -> None:
        """Set the columns of a table that the script creates; None after DROP."""
        if names is None:
            self._created_columns.pop(table, None)
        else:
            self._created_columns[table] = list(names)

    def table(self, table: Parts, *, is_read: bool = True) -> QueryRelation:
        """The columns of a table.

        Without `is_read`, the table does not count as read yet: the target of a write is only read
        if the statement names one of its columns.
        """
        if table in self.temporary:
            return self.temporary[table]
        if is_read:
            self.reads.setdefault(table, {})
        names = self.columns_of(table)
        if names is None:
            return QueryRelation([TableStar(table)], table=table)
        return TableRelation(table, names)

    def with_column_names(self, names: list[str], relation: QueryRelation) -> QueryRelation:
        """Rename the columns of a relation by position."""
        if names:
            self.watcher.on_columns_renamed(relation, len(names))
        return relation.with_column_names(names)

    # Results

    def record_read(self, column: QueryColumn) -> None:
        """Record that the statement reads the origins of a column."""
        self.count_origins(1 + len(column.origins) + len(column.uses))
        for table, name in column.origins:
            columns = self.reads.setdefault(table, {})
            if name != ALL:
                columns[column_name(name)] = None

    def add_problem(self, reason: str, offset: int | None, *, is_remark: bool = False) -> None:
        """Record a problem; a remark does not affect edges."""
        line = self.source.line(offset) if offset is not None else self.line
        problem = SqlProblem(
            statement=self.statement,
            line=line,
            reason=reason,
            severity="remark" if is_remark else "error",
        )
        self.problems[problem] = None

    def excerpt(self, offset: int | None, clause: Clause) -> Excerpt | None:
        """The clause around an offset in the text."""
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
        return next(relation.all_columns()).with_name(name)
    if relation.table is not None:
        return _unknown_in_table(relation.table, name)
    if relation.count_candidates(name) > 1:
        return UnresolvedColumn(
            f"'{source.name}.{name}' may come from several tables of unknown columns"
        )
    return UnresolvedColumn(f"'{source.name}' has no column '{name}'")


def _ambiguous_column(name: str, sources: list[FromItem]) -> UnresolvedColumn:
    names = ", ".join(source.name or ".".join(source.parts) for source in sources)
    return UnresolvedColumn(f"column '{name}' is ambiguous: it may come from {names}")


def _unknown_in_table(table: Parts, name: str) -> UnresolvedColumn:
    column = table_column(table, name)
    column.is_resolved = False
    return UnresolvedColumn(f"'{name}' is not among the known columns of {'.'.join(table)}", column)


def _whole_row(source: FromItem, name: str) -> QueryColumn:
    """All columns of a source as one value, as in `SELECT t FROM t`."""
    columns = tuple(source.relation.all_columns())
    merged = QueryColumn(name)
    for column in columns:
        merged = merged.merge(column)
    step = OriginPath(Derivation.TRANSFORMATION)
    origins = {
        origin: path.then(step) if path.derivation is Derivation.IDENTITY else path
        for origin, path in merged.origins.items()
    }
    return QueryColumn(
        name, origins, merged.uses, is_resolved=merged.is_resolved, definition=WholeRow(columns)
    )
