"""Names as a dialect compares them: the same table under another casing or quoting meets itself."""

from collections.abc import Sequence
from typing import Final

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy

from lumos.errors import UnknownName
from lumos.lineage.sql.script import Parts

_ALIASES: Final = {
    "": "", "generic": "", "ansi": "", "postgresql": "postgres", "sqlserver": "tsql",
    "mssql": "tsql", "synapse": "tsql", "mariadb": "mysql", "sparksql": "spark", "impala": "hive",
    "greenplum": "postgres", "non-validating": "", "plsql": "oracle", "vertica": "postgres",
}  # fmt: skip


def dialect_named(name: str | None) -> Dialect:
    """The dialect of that name, or an error that lists those there are."""
    wanted = (name or "").strip().lower()
    wanted = _ALIASES.get(wanted, wanted)
    try:
        return Dialect.get_or_raise(wanted or None)
    except ValueError:
        known = [each for each in Dialect.classes if each]
        raise UnknownName("SQL dialect", name or "", known) from None


def name_of(dialect: Dialect) -> str:
    """What a dialect is called in messages."""
    name = type(dialect).__name__.lower()
    return "standard" if name == "dialect" else name


class Name(str):
    """A name that is compared as the dialect folds it, and remembers how it was quoted."""

    spelled: str

    @classmethod
    def of(cls, folded: str, spelled: str) -> "Name":
        made = cls(folded)
        made.spelled = spelled
        return made


def spelled(name: str) -> str:
    """A name as it was quoted, or else in lower case."""
    return name.spelled if isinstance(name, Name) else name


class Spellings:
    """How names leave that were quoted in some places; where one place has no quotes, none does."""

    def __init__(self) -> None:
        self._tables: dict[Parts, list[str]] = {}
        self._columns: dict[tuple[Parts, str], str] = {}

    def see(self, table: Parts, column: str | None = None) -> None:
        """Keeps how a table or its column is written."""
        before = self._tables.get(table)
        if before is None:
            self._tables[table] = [spelled(part) for part in table]
        else:
            for place, part in enumerate(table):
                if not isinstance(part, Name):
                    before[place] = part
        if column is not None and (
            not isinstance(column, Name) or (table, column) not in self._columns
        ):
            self._columns[table, column] = spelled(column)

    def table(self, table: Parts) -> Parts:
        """A table's name as it leaves."""
        return tuple(self._tables.get(table, map(spelled, table)))

    def column(self, table: Parts, column: str) -> str:
        """A column's name as it leaves."""
        return self._columns.get((table, column), spelled(column))


class Folding:
    """How one dialect folds names; unquoted ones leave in lower case, whatever it stores."""

    def __init__(self, dialect: Dialect) -> None:
        strategy = dialect.normalization_strategy
        self._quotes_keep_case = strategy in (
            NormalizationStrategy.LOWERCASE,
            NormalizationStrategy.UPPERCASE,
        )
        self._stores_upper_case = strategy is NormalizationStrategy.UPPERCASE
        # Whether some name was quoted that equals one without quotes.
        self.has_quoted = False

    def text(self, name: str, *, quoted: bool) -> str:
        """A name that equals every other spelling that the dialect takes for the same."""
        folded = name.lower()
        if not quoted or folded == name:
            return folded
        # A quoted name in the case that the dialect stores is the unquoted one.
        is_stored_so = self._stores_upper_case and name == name.upper()
        if self._quotes_keep_case and not is_stored_so:
            return name
        self.has_quoted = True
        return Name.of(folded, name)

    def stored(self, name: str) -> str:
        """A name from a schema; what only quotes could have made keeps its case."""
        is_plain = name in (name.lower(), name.upper())
        return name if self._quotes_keep_case and not is_plain else name.lower()

    def name(self, node: exp.Expr | str | None) -> str:
        """The name of an identifier, or of whatever stands in the place of one."""
        if isinstance(node, exp.Identifier):
            name = self.text(node.this, quoted=bool(node.args.get("quoted")))
            # Temporary tables of T-SQL, for one session or for all.
            if node.args.get("temporary") or node.args.get("global_"):
                return f"##{name}" if node.args.get("global_") else f"#{name}"
            return name
        if isinstance(node, exp.Expr):
            return self.name(node.this) if isinstance(node.this, exp.Expr) else node.name.lower()
        return (node or "").lower()

    def table(self, node: exp.Table) -> Parts:
        """The parts of a table's name, from the catalog down."""
        return tuple(name for part in node.parts if (name := self.name(part)))


def dotted(parts: Sequence[str]) -> str:
    """Parts as one name; those that a reader would split stand in quotes."""
    return ".".join(f'"{part}"' if "." in part else part for part in parts)
