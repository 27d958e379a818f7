"""What a script knows while it is read: its dialect, the tables so far, what is found."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from lumos.lineage.sql.dialects import Habits
from lumos.lineage.sql.names import Folding
from lumos.lineage.sql.relation import Column, Fact, Item, Relation, Stored, TableStar
from lumos.lineage.sql.script import ALL, Parts, Unresolved
from lumos.lineage.sql.texts import SourceText
from lumos.lineage.sql.watching import Watcher

Columns: TypeAlias = Callable[[Parts], Sequence[str] | Mapping[str, str] | None]


# A result with more columns was made by a mistake, or by somebody who wants to do harm.
MOST_COLUMNS: Final = 20_000
# Columns that all queries of a statement return, and the origins of what it names. A statement
# needs less than a second and some hundred megabytes for them.
MOST_ORIGINS: Final = 500_000


class TooLarge(Exception):
    """A statement that would take too much time and memory."""


def no_columns(_: Parts) -> None:
    """The schemas of somebody who knows none."""


class Context:
    """The state of one script; statements change it one after the other."""

    def __init__(self, dialect: Dialect, columns: Columns, watcher: Watcher | None = None) -> None:
        self.dialect = dialect
        self.watcher = watcher
        name = type(dialect).__name__.lower()
        self.habits = Habits("" if name == "dialect" else name)
        self.folding = Folding(dialect)
        self.source = SourceText("", ())
        # Temporary tables: lineage leads through them.
        self.temporary: dict[Parts, Relation] = {}
        self.renamed: dict[Parts, Parts] = {}
        # The rows of cursors and loops, and those that a trigger sees.
        self.rows: dict[str, Relation] = {}
        self.values: dict[str, Column] = {}
        # What variables hold; T-SQL's without their mark.
        self.held: dict[str, Column] = {}
        self.variables: set[str] = set(self.habits.pseudo_columns)
        self.statement = 0
        self.line = 1
        self.reads: dict[Parts, dict[str, None]] = {}
        self.unresolved: dict[Unresolved, None] = {}
        self._origins = 0
        self._columns = columns
        self._created: dict[Parts, list[str]] = {}
        self._known: dict[Parts, list[str] | None] = {}
        self._types: dict[str, str] = {}

    def begin(self, statement: int, line: int, source: SourceText) -> None:
        """Turns to the next statement."""
        self.statement = statement
        self.line = line
        self.source = source
        self.reads = {}
        self.values = {}
        self._origins = 0

    def spend(self, origins: int) -> None:
        """Counts columns and origins that a statement reads; raises TooLarge."""
        self._origins += origins
        if self._origins > MOST_ORIGINS:
            raise TooLarge(f"its queries have more than {MOST_ORIGINS:,} columns and origins")

    def bound(self, relation: Relation) -> Relation:
        """A result, if it is not too large; raises TooLarge."""
        if len(relation.items) > MOST_COLUMNS:
            raise TooLarge(f"a query in it returns more than {MOST_COLUMNS:,} columns")
        self.spend(len(relation.items))
        return relation

    def begin_routine(self) -> None:
        """Forgets the variables of the routine before."""
        self.variables = set(self.habits.pseudo_columns)
        self.rows.clear()
        self.held.clear()

    def columns_of(self, table: Parts) -> list[str] | None:
        """The names of a table's columns, if anybody knows them."""
        if table in self._created:
            return self._created[table]
        if table not in self._known:
            told = self._columns(table)
            # A schema of no columns tells nothing.
            self._known[table] = [self.folding.stored(name) for name in told] if told else None
        return self._known[table]

    def is_own(self, table: Parts) -> bool:
        """Whether the script itself made the table."""
        return table in self._created

    def create(self, table: Parts, names: Iterable[str] | None) -> None:
        """Remembers the columns of a table that the script itself makes."""
        if names is None:
            self._created.pop(table, None)
        else:
            self._created[table] = list(names)

    def known_columns(self, table: Parts) -> list[str] | None:
        """The names of a table's columns, of a temporary one, too."""
        temporary = self.temporary.get(table)
        if temporary is not None:
            names = [column.name for column in temporary.columns]
            return names if names and not temporary.is_open else None
        return self.columns_of(table)

    def table(self, table: Parts, *, is_read: bool = True) -> Relation:
        """A table as the source of a query; a target is read once a column of it is named."""
        if table in self.temporary:
            return self.temporary[table]
        if is_read:
            self.reads.setdefault(table, {})
        names = self.columns_of(table)
        items: list[Item] = [TableStar(table)]
        if names is not None:
            items = [
                Column(name, {(table, name): Fact()}, maker=Stored(table, name)) for name in names
            ]
        return Relation(items, table=table)

    def mention(self, column: Column) -> None:
        """Keeps that the statement names the origins of a column."""
        self.spend(1 + len(column.facts) + len(column.uses))
        for table, name in column.facts:
            columns = self.reads.setdefault(table, {})
            if name != ALL:
                columns[name] = None

    def report(self, reason: str, offset: int | None, *, is_remark: bool = False) -> None:
        """Keeps what could not be resolved."""
        line = self.source.line(offset) if offset is not None else self.line
        found = Unresolved(
            statement=self.statement,
            line=line,
            reason=reason,
            severity="remark" if is_remark else "error",
        )
        self.unresolved[found] = None

    def type_text(self, node: exp.Expr) -> str:
        """A type as the dialect writes it."""
        return node.sql(dialect=self.dialect).upper()

    def text_of(self, node: exp.Expr) -> str:
        """An expression that stands nowhere in the text, as the dialect would write it."""
        return node.sql(dialect=self.dialect)
