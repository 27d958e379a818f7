"""The tables that result from SQL migrations: applies CREATE, ALTER, RENAME and DROP statements.

Other statements, the bodies of functions and anonymous blocks are skipped. Tables whose columns are
not in the text, for example because they are created from a query, are omitted.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from lumos.model.conversions.sql_table import SqlColumn, SqlTable, SqlTableReader
from lumos.model.conversions.sql_types import Dialect
from lumos.model.schema import Field, Schema
from lumos.model.types import SchemaSyntaxError

_TABLES_AND_VIEWS: Final = ("TABLE", "VIEW")
_OTHER_OBJECTS: Final = frozenset((
    "INDEX", "FUNCTION", "PROCEDURE", "TRIGGER", "SCHEMA", "DATABASE", "TYPE", "SEQUENCE", "ROLE",
    "USER", "EXTENSION", "POLICY", "STAGE", "PIPE", "TASK", "STREAM", "DOMAIN", "AGGREGATE",
))  # fmt: skip

TableKey = tuple[str, ...]


class ViewStatement(NamedTuple):
    """The statement that creates a view, as offsets into the text of a file."""

    file: str
    start: int
    end: int


class MigratedTables:
    """The tables and views after the migrations so far, and the file that changed each table last.

    A name without a schema means the only table with that name.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._dialect: Dialect = dialect
        self.tables: dict[TableKey, SqlTable] = {}
        self.files: dict[TableKey, str] = {}
        self.views: dict[TableKey, ViewStatement] = {}

    def apply(self, file: str, text: str) -> None:
        """Apply one migration; on SchemaSyntaxError, the state does not change."""
        state = dict(self.tables), dict(self.files), dict(self.views)
        try:
            _MigrationReader(text, self._dialect, self, file).run()
        except SchemaSyntaxError:
            self.tables, self.files, self.views = state
            raise

    def find(self, path: TableKey) -> TableKey:
        """The key of the table or view with a name, or the key for a new one."""
        key = tuple(part.lower() for part in path)
        known = {**self.tables, **self.views}
        if key in known:
            return key
        similar = [
            each
            for each in known
            if each[-len(key) :] == key or (len(each) < len(key) and key[-len(each) :] == each)
        ]
        return similar[0] if len(similar) == 1 else key

    def put(self, key: TableKey, table: SqlTable, file: str) -> None:
        self.tables[key] = table
        self.files[key] = file

    def drop(self, key: TableKey) -> None:
        for mapping in (self.tables, self.files, self.views):
            mapping.pop(key, None)

    def rename(self, key: TableKey, name: TableKey, file: str) -> None:
        new = tuple(part.lower() for part in name)
        new = new if len(new) >= len(key) else (*key[: len(key) - len(new)], *new)
        table = self.tables.get(key)
        view = self.views.get(key)
        self.drop(key)
        if table is not None:
            path = new if len(name) < len(table.path) else name
            self.put(new, table._replace(name=name[-1], path=path), file)
        if view is not None:
            self.views[new] = view


class _MigrationReader(SqlTableReader):
    """Applies the statements of one file to the tables."""

    def __init__(self, text: str, dialect: Dialect, state: MigratedTables, file: str) -> None:
        super().__init__(text, dialect)
        self._state = state
        self._file = file

    def run(self) -> None:
        while self._peek().kind != "end":
            start = self.at
            if self._take("CREATE"):
                self._create_object(start)
            elif self._take("DROP"):
                self._drop_objects()
            elif self._take("ALTER", "TABLE"):
                self._alter_table()
            elif self._take("RENAME", "TABLE"):
                self._rename_tables()
            elif self._take("COMMENT", "ON", "COLUMN"):
                self._comment()
            self._skip_statement()

    def _create_object(self, start: int) -> None:
        """Record a table or a view; skip words before its kind, such as OR REPLACE or TEMPORARY."""
        ahead = 0
        while self._peek(ahead).kind == "word" and self._peek(ahead).word not in _TABLES_AND_VIEWS:
            if self._peek(ahead).word in _OTHER_OBJECTS:
                return
            ahead += 1
        kind = self._peek(ahead).word
        if kind == "VIEW":
            self.at += ahead + 1
            self._take("IF", "NOT", "EXISTS")
            key = self._state.find(self._table_path())
            self._state.drop(key)
            self._skip_to_end()
            offset = self.tokens[start].offset
            self._state.views[key] = ViewStatement(self._file, offset, self._peek().offset)
        elif kind == "TABLE":
            self._create_table(ahead)

    def _create_table(self, ahead: int) -> None:
        begin = self.at
        self.at += ahead + 1
        is_optional = self._take("IF", "NOT", "EXISTS")
        key = self._state.find(self._table_path())
        if is_optional and key in self._state.tables:
            return
        self._state.drop(key)
        has_columns = self._peek().text == "(" and self._peek(1).word not in ("SELECT", "WITH")
        if not has_columns or self._peek(1).word == "LIKE":
            return
        self.at = begin
        table = self._create()
        if table is not None:
            self._state.put(key, table, self._file)

    def _drop_objects(self) -> None:
        self._take("MATERIALIZED")
        if not (self._take("TABLE") or self._take("VIEW")):
            return
        self._take("IF", "EXISTS")
        while True:
            self._state.drop(self._state.find(self._table_path()))
            if self._peek().text != ",":
                return
            self._next()

    def _rename_tables(self) -> None:
        while True:
            key = self._state.find(self._table_path())
            if self._take("TO"):
                self._state.rename(key, self._table_path(), self._file)
            if self._peek().text != ",":
                return
            self._next()

    def _comment(self) -> None:
        *table, column = self._table_path()
        key = self._state.find(tuple(table))
        if self._take("IS") and key in self._state.tables:
            token = self._next()
            text = token.text[1:-1].replace("''", "'") if token.kind == "string" else None
            self._change(key, self._field_named(key, column), lambda field: msgspec.structs.replace(
                field, description=text))  # fmt: skip

    def _alter_table(self) -> None:
        self._take("IF", "EXISTS")
        self._take("ONLY")
        key = self._state.find(self._table_path())
        if self._peek().text == "*":
            self._next()
        while True:
            if self._take("RENAME", "TO") or self._take("RENAME", "AS"):
                self._state.rename(key, self._table_path(), self._file)
                return
            if key in self._state.tables:
                self._apply_action(key)
            if self._skip_action() != ",":
                return

    def _apply_action(self, key: TableKey) -> None:
        """Apply one action of ALTER TABLE to a known table."""
        if self._take("ADD"):
            self._add(key)
        elif self._take("DROP"):
            if self._peek().word in ("CONSTRAINT", "PRIMARY", "INDEX", "KEY", "FOREIGN", "CHECK"):
                if self._take("PRIMARY", "KEY"):
                    self._change_all(key, lambda field: msgspec.structs.replace(field, key=False))
                return
            self._drop_columns(key)
        elif self._take("ALTER"):
            self._take("COLUMN")
            self._alter_column(key)
        elif self._take("MODIFY"):
            self._take("COLUMN")
            self._redefine(key, None)
        elif self._take("CHANGE"):
            self._take("COLUMN")
            self._redefine(key, self._field_named(key, self._name()))
        elif self._take("RENAME"):
            self._take("COLUMN")
            old = self._field_named(key, self._name())
            if self._take("TO"):
                first = self._peek()
                name = self._folded(self._name(), first.kind == "name")
                self._change(key, old, lambda field: msgspec.structs.replace(field, name=name))

    def _add(self, key: TableKey) -> None:
        if self._is_table_constraint() or self._peek().word in ("CONSTRAINT", "INDEX", "KEY"):
            if self._take("CONSTRAINT"):
                self._name()
            if self._take("PRIMARY", "KEY"):
                names = {name.casefold() for name in self._names_in_brackets()}
                self._change_all(
                    key,
                    lambda field: (
                        msgspec.structs.replace(field, key=True, nullable=False)
                        if field.name.casefold() in names
                        else field
                    ),
                )
            return
        self._take("COLUMN") or self._take("COLUMNS")
        self._take("IF", "NOT", "EXISTS")
        has_brackets = self._peek().text == "("
        if has_brackets:
            self._next()
        while True:
            column = self._field(self._column())
            if self._field_named(key, column.name) is None:
                table = self._state.tables[key]
                fields = (*table.schema.fields, column)
                self._state.put(key, table._replace(schema=Schema(fields=fields)), self._file)
            if not has_brackets or self._skip_to(",)") == ")":
                return

    def _drop_columns(self, key: TableKey) -> None:
        self._take("COLUMN") or self._take("COLUMNS")
        self._take("IF", "EXISTS")
        names = self._names_in_brackets() if self._peek().text == "(" else [self._name()]
        dropped = {name.casefold() for name in names}
        table = self._state.tables[key]
        fields = tuple(each for each in table.schema.fields if each.name.casefold() not in dropped)
        self._state.put(key, table._replace(schema=Schema(fields=fields)), self._file)

    def _alter_column(self, key: TableKey) -> None:
        name = self._field_named(key, self._name())
        if self._take("SET", "NOT", "NULL"):
            self._change(key, name, lambda field: msgspec.structs.replace(field, nullable=False))
        elif self._take("DROP", "NOT", "NULL"):
            self._change(key, name, lambda field: msgspec.structs.replace(field, nullable=True))
        elif self._take("SET", "DEFAULT"):
            text = self._expression()
            self._change(key, name, lambda field: msgspec.structs.replace(field, default=text))
        elif self._take("DROP", "DEFAULT"):
            self._change(key, name, lambda field: msgspec.structs.replace(field, default=None))
        elif self._take("SET", "DATA", "TYPE") or self._take("TYPE"):
            self._retype(key, name)
        elif self._peek().word not in ("SET", "DROP", "ADD", "RESET", "COMMENT", "FIRST", "AFTER"):
            # In SQL Server, the type follows without a keyword.
            self._retype(key, name)

    def _retype(self, key: TableKey, name: str | None) -> None:
        typed = self._field(SqlColumn(name or "", self._type(), quoted=True))
        self._change(
            key,
            name,
            lambda field: msgspec.structs.replace(
                field, type=typed.type, native_type=typed.native_type
            ),
        )
        if self._take("NOT", "NULL"):
            self._change(key, name, lambda field: msgspec.structs.replace(field, nullable=False))

    def _redefine(self, key: TableKey, old: str | None) -> None:
        """Apply a complete new definition of a column, as in MySQL and Oracle."""
        new = self._field(self._column())
        name = old if old is not None else self._field_named(key, new.name)
        self._change(
            key,
            name,
            lambda field: msgspec.structs.replace(
                new, key=field.key, partition=field.partition, field_id=field.field_id
            ),
        )

    def _field_named(self, key: TableKey, name: str) -> str | None:
        """The name of the column that is equal to a name ignoring case, or None."""
        folded = name.casefold()
        fields = self._state.tables[key].schema.fields
        return next((each.name for each in fields if each.name.casefold() == folded), None)

    def _change(self, key: TableKey, name: str | None, change: Callable[[Field], Field]) -> None:
        self._change_all(key, lambda field: change(field) if field.name == name else field)

    def _change_all(self, key: TableKey, change: Callable[[Field], Field]) -> None:
        table = self._state.tables[key]
        fields = tuple(map(change, table.schema.fields))
        self._state.put(key, table._replace(schema=Schema(fields=fields)), self._file)

    def _skip_action(self) -> str:
        """Skip to the comma before the next action, or to the end of the statement."""
        while (token := self._peek()).kind != "end" and token.text != ";":
            if token.text == ",":
                self._next()
                return ","
            self._skip_one()
        return ""

    def _skip_to_end(self) -> None:
        while (token := self._peek()).kind != "end" and token.text != ";":
            self._next()
