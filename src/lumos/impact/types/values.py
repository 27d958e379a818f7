"""Types and nullability of expressions before and after a change of their tables."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import TypeAnnotator
from sqlglot.schema import MappingSchema

from lumos.impact.rules.type_uses import TableVersions, ValueType
from lumos.impact.types.annotator import rules_for
from lumos.impact.types.nullability import Nullability
from lumos.impact.types.number_types import number_types
from lumos.impact.types.sqlglot_types import from_sqlglot, to_sqlglot
from lumos.lineage.sql.dialects import NameFolding, column_name
from lumos.lineage.sql.relation import (
    FieldAccess,
    ListElement,
    MapEntry,
    MergedColumns,
    OuterJoined,
    QueryColumn,
    TableColumn,
    WholeRow,
)
from lumos.lineage.sql.script import ALL, Parts
from lumos.model.types import UNKNOWN, Array, DataType, Decimal, Map, Struct, Unknown

# Returns the versions of a table by its name; None if the table is unknown.
Tables = Callable[[Parts], TableVersions | None]
_TypeKey = tuple[object, DataType]
# The moments before and after the change, as indexes into `ValueChange`.
BEFORE: Final = 0
AFTER: Final = 1


class ValueChange(NamedTuple):
    """Type and nullability of a value before and after; None if it does not exist."""

    before: ValueType | None
    after: ValueType | None
    is_unknown: bool = False

    @property
    def is_changed(self) -> bool:
        return self.is_unknown or self.before != self.after

    @property
    def is_removed(self) -> bool:
        return self.before is not None and self.after is None

    @property
    def is_added(self) -> bool:
        return self.before is None and self.after is not None


_UNKNOWN_VALUE: Final = ValueType()
UNCHANGED_VALUE: Final = ValueChange(_UNKNOWN_VALUE, _UNKNOWN_VALUE)
UNKNOWN_CHANGE: Final = ValueChange(_UNKNOWN_VALUE, _UNKNOWN_VALUE, True)


class _ColumnChanges(NamedTuple):
    """Summary of several columns: each property holds for at least one of them."""

    is_removed: bool = False
    is_changed: bool = False
    has_type_changes: bool = False
    may_gain_nulls: bool = False

    @classmethod
    def of(cls, change: ValueChange) -> "_ColumnChanges":
        has_type_changes = change.is_unknown or not _has_same_type(change)
        return cls(change.is_removed, change.is_changed, has_type_changes, _may_gain_nulls(change))


_NO_CHANGES: Final = _ColumnChanges()


class ExpressionTypes:
    """Types of the expressions and columns of one script, computed on demand."""

    def __init__(self, dialect: Dialect, tables: Tables) -> None:
        name = _dialect_name(dialect)
        self._schema = MappingSchema(dialect=dialect)
        self._rules = rules_for(name, dialect.EXPRESSION_METADATA)
        self._numbers = number_types(name)
        self._folding = NameFolding(dialect)
        self._tables = tables
        self._versions: dict[Parts, TableVersions | None] = {}
        self._table_columns: dict[tuple[Parts, str], ValueChange] = {}
        self._changed_columns: dict[Parts, frozenset[str] | None] = {}
        self._changes: dict[int, ValueChange] = {}
        self._types: tuple[dict[int, DataType], dict[int, DataType]] = ({}, {})
        self._annotated: set[int] = set()
        self._column_changes: dict[int, _ColumnChanges] = {}
        self._in_progress: set[int] = set()
        # Never read. It keeps nodes alive, since ids of garbage-collected objects are reused.
        self._kept_alive: list[object] = []
        self._nullability = Nullability(self._is_column_nullable)
        self.columns_by_node: dict[int, QueryColumn] = {}
        # The columns of whole rows used as one value, by the id of the node.
        self.rows_by_node: dict[int, Sequence[QueryColumn]] = {}

    def release(self) -> None:
        """Break the reference cycle with the nullability of expressions."""
        del self._nullability

    def versions(self, table: Parts) -> TableVersions | None:
        """The versions of a table, if it is known."""
        if table not in self._versions:
            self._versions[table] = self._tables(table)
        return self._versions[table]

    def column_names(self, table: Parts) -> list[str] | None:
        """The columns that a table has before or after the change."""
        versions = self.versions(table)
        return list(versions.columns) if versions is not None and versions.is_complete else None

    def changed_columns(self, table: Parts) -> frozenset[str] | None:
        """The changed columns of a table, in folded case; None if all may have changed."""
        if table not in self._changed_columns:
            versions = self.versions(table)
            changed: frozenset[str] | None = frozenset()
            if versions is not None:
                stored = frozenset(map(self._folding.stored, versions.changed_columns))
                changed = None if versions.may_have_changed else stored
            self._changed_columns[table] = changed
        return self._changed_columns[table]

    def may_change(self, column: QueryColumn) -> bool:
        """Whether a column is derived from one that changes."""
        return any(True for _ in self.origins(column))

    def changed_in_row(self, row: Sequence[QueryColumn]) -> Sequence[QueryColumn]:
        """The changed columns of a row that is used as one value, or else a moved column."""
        return [each for each in row if self.may_change(each)] or [
            each for each in row if self._is_moved(each)
        ][:1]

    def _is_moved(self, column: QueryColumn) -> bool:
        """Whether a column is used by position, and the column order of its table changes."""
        return any(
            (path.is_star or isinstance(column.definition, TableColumn))
            and (versions := self.versions(table)) is not None
            and versions.is_reordered
            for (table, _), path in column.origins.items()
        )

    def contains_changed_row(self, column: QueryColumn) -> bool:
        """Whether a column is computed from a row used as one value, and the row changes."""
        changed_row_ids = {id for id, row in self.rows_by_node.items() if self.changed_in_row(row)}
        return bool(changed_row_ids) and not changed_row_ids.isdisjoint(self.ids_of_sources(column))

    def origins(self, column: QueryColumn) -> Iterator[tuple[str, str]]:
        """The changed columns or nested fields that a column is derived from."""
        for table, path in column.origins:
            name = column_name(path)
            changed = self.changed_columns(table)
            if changed is None or name in changed or (name == ALL and changed):
                versions = self.versions(table)
                assert versions is not None
                nested_path = path[len(name) :]
                yield versions.key, self._stored_name(versions, name) + nested_path

    def sources(self, column: QueryColumn) -> Iterator[tuple[str, str]]:
        """All columns of known tables that a column is derived from."""
        for table, path in column.origins:
            versions = self.versions(table)
            if versions is not None:
                yield versions.key, self._stored_name(versions, column_name(path))

    def _stored_name(self, versions: TableVersions, name: str) -> str:
        """The name of a column in the case that the schema uses."""
        if name in versions.columns:
            return name
        return next((each for each in versions.columns if self._folding.stored(each) == name), name)

    def change_of_column(self, column: QueryColumn) -> ValueChange:
        """The change of a column."""
        change = self._changes.get(id(column))
        if change is None:
            if id(column) in self._in_progress:
                # A recursive query.
                return UNKNOWN_CHANGE if self.may_change(column) else UNCHANGED_VALUE
            self._in_progress.add(id(column))
            change = self._compute_column(column)
            self._in_progress.discard(id(column))
            self._changes[id(column)] = change
            self._kept_alive.append(column)
        return change

    def _compute_column(self, column: QueryColumn) -> ValueChange:
        definition = column.definition
        if isinstance(definition, TableColumn):
            key = (definition.table, definition.name)
            if key not in self._table_columns:
                self._table_columns[key] = self._load_table_column(definition)
            return self._table_columns[key]
        if isinstance(definition, OuterJoined):
            return self._make_nullable(self.change_of_column(definition.column))
        if isinstance(definition, FieldAccess):
            return self._change_of_field(self.change_of_column(definition.struct), definition.path)
        if isinstance(definition, MergedColumns):
            return self._combine_changes(
                [self.change_of_column(each) for each in definition.columns]
            )
        if isinstance(definition, ListElement):
            return self._change_of_element(definition)
        if isinstance(definition, MapEntry):
            return self._change_of_part(
                self.change_of_node(definition.node),
                _key_of if definition.is_key else _map_value_of,
            )
        if isinstance(definition, exp.Expr):
            return self.change_of_node(definition)
        if isinstance(definition, WholeRow):
            return UNKNOWN_CHANGE if self.changed_in_row(definition.columns) else UNCHANGED_VALUE
        return UNKNOWN_CHANGE if self.may_change(column) else UNCHANGED_VALUE

    def _change_of_element(self, element: ListElement) -> ValueChange:
        """The change of an element of an array."""
        if isinstance(element.list, QueryColumn):
            change = self._change_of_part(self.change_of_column(element.list), _element_of)
        else:
            change = self._change_of_part(self.change_of_node(element.list), _element_of)
        if element.is_expanded and any(
            each is not None and isinstance(each.type, Struct)
            for each in (change.before, change.after)
        ):
            # The column is one field of the struct, but it is unknown which one.
            return UNKNOWN_CHANGE if change.is_changed else UNCHANGED_VALUE
        return change

    def _change_of_part(
        self, change: ValueChange, part_of: Callable[[ValueType | None], ValueType | None]
    ) -> ValueChange:
        """The change of a part of an array or map."""
        before, after = (part_of(value) for value in (change.before, change.after))
        has_unknown_type = any(value is not None and isinstance(value.type, Unknown)
                       for value in (before, after))  # fmt: skip
        return ValueChange(
            before, after, change.is_unknown or (change.is_changed and has_unknown_type)
        )

    def _load_table_column(self, column: TableColumn) -> ValueChange:
        versions = self.versions(column.table)
        if versions is None:
            return UNCHANGED_VALUE
        name = self._stored_name(versions, column.name)
        pair = versions.columns.get(name)
        if pair is None:
            return UNKNOWN_CHANGE if versions.may_have_changed else UNCHANGED_VALUE
        before, after = (None if each is None else ValueType.of(each) for each in pair)
        return ValueChange(
            before, after, versions.may_have_changed or name in versions.unknown_columns
        )

    def _make_nullable(self, change: ValueChange) -> ValueChange:
        before, after = (
            None if each is None else ValueType(type=each.type, nullable=True)
            for each in (change.before, change.after)
        )
        return ValueChange(before, after, change.is_unknown)

    def _change_of_field(self, struct: ValueChange, path: Parts) -> ValueChange:
        """The change of a field of a struct or map, which may be removed with its struct."""
        if struct.is_removed:
            return struct
        before, after = (self._nested_value(value, path) for value in (struct.before, struct.after))
        # If the struct did not have the field before, the name refers to something else.
        has_unknown_type = before is None or any(
            value is not None and isinstance(value.type, Unknown) for value in (before, after)
        )
        is_unknown = struct.is_unknown or (struct.before != struct.after and has_unknown_type)
        return ValueChange(
            before or _UNKNOWN_VALUE, after if before else after or _UNKNOWN_VALUE, is_unknown
        )

    def _nested_value(self, value: ValueType | None, path: Parts) -> ValueType | None:
        if value is None:
            return None
        type, nullable, depth = value.type, value.nullable, 0
        for name in path:
            if isinstance(type, Struct):
                member = next((each for each in type.members if self._has_name(each.name, name)),
                             None)  # fmt: skip
                if member is None:
                    return None
                type, nullable = member.type, nullable or member.nullable
            elif isinstance(type, Map):
                type, nullable = type.value, True
            elif isinstance(type, Array) and isinstance(type.element, Struct):
                # Spark: the field of each element, as an array.
                depth += 1
                inner = self._nested_value(ValueType(type=type.element, nullable=nullable), (name,))
                if inner is None:
                    return None
                type = inner.type
            else:
                return _UNKNOWN_VALUE
        for _ in range(depth):
            type = Array(type)
        return ValueType(type=type, nullable=nullable)

    def _has_name(self, name: str, folded: str) -> bool:
        return self._folding.stored(name) == folded or name.lower() == folded.lower()

    def _combine_changes(self, changes: Iterable[ValueChange]) -> ValueChange:
        changes = list(changes)
        if any(change.is_removed for change in changes):
            return next(change for change in changes if change.is_removed)
        if all(change.is_added for change in changes):
            return ValueChange(None, self._common_value([change.after for change in changes]))
        before = self._common_value([change.before for change in changes])
        after = self._common_value([change.after for change in changes])
        has_unknown_type = isinstance(before.type, Unknown) or isinstance(after.type, Unknown)
        is_changed = any(change.is_changed for change in changes)
        return ValueChange(
            before,
            after,
            any(change.is_unknown for change in changes) or (is_changed and has_unknown_type),
        )

    def _common_value(self, values: list[ValueType | None]) -> ValueType:
        present = [value for value in values if value is not None]
        nulls = [value.nullable for value in present]
        nullable = True if True in nulls else (None if None in nulls else False)
        return ValueType(
            type=self._numbers.common(value.type for value in present), nullable=nullable
        )

    def ids_of_sources(self, column: QueryColumn) -> set[int]:
        """The ids of the expressions and columns that a column is computed from."""
        ids: set[int] = set()
        stack = [column]
        while stack:
            column = stack.pop()
            if id(column) in ids:
                # In n unions that each read the previous one twice, 2 ** n paths lead to a column.
                continue
            ids.add(id(column))
            definition = column.definition
            if isinstance(definition, OuterJoined):
                stack.append(definition.column)
            elif isinstance(definition, FieldAccess):
                stack.append(definition.struct)
            elif isinstance(definition, MergedColumns):
                stack += definition.columns
            elif isinstance(definition, ListElement) and isinstance(definition.list, QueryColumn):
                stack.append(definition.list)
            elif (
                isinstance(definition, exp.Expr | ListElement | MapEntry)
                and id(definition) not in ids
            ):
                ids.add(id(definition))
                node = _node_of(definition)
                columns = (
                    self.columns_by_node.get(id(reference))
                    for reference in node.find_all(exp.Column)
                )
                stack += [each for each in columns if each is not None]
                if self.rows_by_node:
                    ids.update(id(each) for each in node.walk() if id(each) in self.rows_by_node)
        return ids

    def change_of_node(self, node: exp.Expr) -> ValueChange:
        """The change of an expression or of a part of it."""
        change = self._changes.get(id(node))
        if change is None:
            change = self._compute_node(node)
            self._changes[id(node)] = change
            self._kept_alive.append(node)
        return change

    def _changes_of_columns(self, node: exp.Expr) -> Iterator[ValueChange]:
        """The changes of the columns that an expression refers to."""
        for reference in node.find_all(exp.Column):
            column = self.columns_by_node.get(id(reference))
            if column is not None:
                yield self.change_of_column(column)

    def _compute_node(self, node: exp.Expr) -> ValueChange:
        if isinstance(node, exp.Column) and id(node) in self.columns_by_node:
            return self._change_of_reference(node)
        if isinstance(node, exp.Alias | exp.Paren | exp.Ordered):
            return self.change_of_node(node.this)
        if isinstance(node, exp.Dot) and _is_field_of_element(node):
            return self._change_of_field(
                self.change_of_node(node.this), (self._folding.name(node.expression),)
            )
        columns = self._summarize_columns(node)
        if columns.is_removed:
            return ValueChange(_UNKNOWN_VALUE, None)
        if self.rows_by_node and self._uses_changed_row(node):
            return UNKNOWN_CHANGE
        self._annotate_expression(node)
        before, after = (
            ValueType(type=self._types[moment].get(id(node), UNKNOWN),
                  nullable=self._nullability.of(node, moment))
            for moment in (BEFORE, AFTER)
        )  # fmt: skip
        if not columns.is_changed:
            return ValueChange(before, before)
        has_unknown_type = _contains_unknown(before.type) or _contains_unknown(after.type)
        is_unknown = (has_unknown_type and columns.has_type_changes) or (
            columns.may_gain_nulls and None in (before.nullable, after.nullable)
        )
        return ValueChange(before, after, is_unknown)

    def _uses_changed_row(self, node: exp.Expr) -> bool:
        rows = (self.rows_by_node.get(id(each)) for each in node.walk())
        return any(self.changed_in_row(row) for row in rows if row)

    def _summarize_columns(self, node: exp.Expr) -> "_ColumnChanges":
        """Summarize the changes of the columns that an expression refers to."""
        summary = self._column_changes.get(id(node))
        if summary is None:
            left_operand = (
                self._column_changes.get(id(node.this)) if isinstance(node, exp.Binary) else None
            )
            remaining = node.expression if left_operand is not None else node
            parts = [_ColumnChanges.of(change) for change in self._changes_of_columns(remaining)]
            summary = _ColumnChanges(
                *map(any, zip(left_operand or _NO_CHANGES, *parts, strict=True))
            )
            self._column_changes[id(node)] = summary
            self._kept_alive.append(node)
        return summary

    def _change_of_reference(self, node: exp.Column) -> ValueChange:
        """The change of a referenced column, or of the nested field that a.b.c refers to."""
        column = self.columns_by_node[id(node)]
        change = self.change_of_column(column)
        definition = column.definition
        if isinstance(definition, FieldAccess) and isinstance(node.parent, exp.Dot):
            following_fields = 0
            parent: exp.Expr | None = node.parent
            while isinstance(parent, exp.Dot):
                following_fields += 1
                parent = parent.parent
            path = definition.path[: len(definition.path) - following_fields]
            change = self.change_of_column(definition.struct)
            return self._change_of_field(change, path) if path else change
        if self._nullability.conditions_exclude_nulls(node, self.columns_by_node):
            before, after = (
                None if each is None else ValueType(type=each.type, nullable=False)
                for each in (change.before, change.after)
            )
            return ValueChange(before, after, change.is_unknown)
        return change

    def _is_column_nullable(self, node: exp.Column, moment: int) -> bool | None:
        if id(node) not in self.columns_by_node:
            return None
        value = self._change_of_reference(node)[moment]
        return value.nullable if isinstance(value, ValueType) else None

    def _annotate_expression(self, node: exp.Expr) -> None:
        """Determine the types of the outermost expression around a node, before and after."""
        root = root_of(node)
        if id(root) in self._annotated:
            return
        self._annotated.add(id(root))
        self._kept_alive.append(root)
        references = [
            reference
            for reference in root.find_all(exp.Column)
            if id(reference) in self.columns_by_node
        ]
        changes = [(reference, self._change_of_reference(reference)) for reference in references]
        self._annotate(root, changes, BEFORE)
        if any(change.is_changed for _, change in changes):
            self._annotate(root, changes, AFTER)
        else:
            self._types[AFTER].update((id(each), self._types[BEFORE][id(each)])
                                      for each in root.walk())  # fmt: skip

    def _annotate(
        self, root: exp.Expr, references: list[tuple[exp.Column, ValueChange]], moment: int
    ) -> None:
        for node in root.walk():
            node._type = None
        exact_types: dict[_TypeKey, DataType] = {}
        types = self._types[moment]
        for reference, change in references:
            value = change.after if moment == AFTER else change.before
            type = UNKNOWN if value is None else value.type
            reference._type = to_sqlglot(type)
            types[id(reference)] = type
            exact_types.setdefault(_type_key(reference._type), type)
        self._annotate_casts(root)
        for node in root.walk():
            if id(node) not in types or not isinstance(node, exp.Column):
                # The annotator drops details such as the time unit, which types of columns have.
                key = _type_key(node.type)
                types[id(node)] = exact_types.get(key) or key[1]

    def _annotate_casts(self, node: exp.Expr) -> None:
        try:
            annotator = TypeAnnotator(
                self._schema, expression_metadata=self._rules, overwrite_types=False
            )
            for cast in reversed(list(node.find_all(exp.Cast))):
                # The annotator does not descend into casts.
                annotator.annotate_expression(cast.this)
                if from_sqlglot(cast.to) == Decimal():
                    cast._type = to_sqlglot(self._numbers.default_decimal())
            annotator.annotate(node, annotate_scope=False)
        except (SqlglotError, AttributeError, TypeError, ValueError, KeyError, IndexError):
            # The annotator fails on malformed trees; their types stay unknown.
            return


def _type_key(type: exp.Expr | None) -> _TypeKey:
    """A type as sqlglot and as Lumos represent it, since either may drop details."""
    return type.this if isinstance(type, exp.DataType) else None, from_sqlglot(type)


@cache
def _dialect_name(dialect: Dialect) -> str:
    return type(dialect).__name__.lower()


def _element_of(value: ValueType | None) -> ValueType | None:
    if value is None:
        return None
    if isinstance(value.type, Array):
        return ValueType(type=value.type.element, nullable=value.type.element_nullable)
    return _UNKNOWN_VALUE


def _is_field_of_element(node: exp.Dot) -> bool:
    """Whether this is a field of an array's element: items[0].sku."""
    holder = node.this
    while isinstance(holder, exp.Dot):
        holder = holder.this
    return isinstance(holder, exp.Bracket) and isinstance(node.expression, exp.Identifier)


def _key_of(value: ValueType | None) -> ValueType | None:
    if value is None or not isinstance(value.type, Map):
        return None if value is None else _UNKNOWN_VALUE
    return ValueType(type=value.type.key, nullable=False)


def _map_value_of(value: ValueType | None) -> ValueType | None:
    if value is None or not isinstance(value.type, Map):
        return None if value is None else _UNKNOWN_VALUE
    return ValueType(type=value.type.value, nullable=True)


def _node_of(definition: exp.Expr | ListElement | MapEntry) -> exp.Expr:
    if isinstance(definition, exp.Expr):
        return definition
    node = definition.list if isinstance(definition, ListElement) else definition.node
    assert isinstance(node, exp.Expr)
    return node


def _contains_unknown(type: DataType) -> bool:
    """Whether a type or a type nested in it is unknown."""
    match type:
        case Array(element):
            return _contains_unknown(element)
        case Map(key, value):
            return _contains_unknown(key) or _contains_unknown(value)
        case Struct(members):
            return any(_contains_unknown(member.type) for member in members)
        case _:
            return isinstance(type, Unknown)


def _has_same_type(change: ValueChange) -> bool:
    return (
        change.before is not None
        and change.after is not None
        and change.before.type == change.after.type
    )


def _may_gain_nulls(change: ValueChange) -> bool:
    """Whether the value may be null after the change, but not before."""
    if change.before is None or change.after is None:
        return True
    nulls = (change.before.nullable, change.after.nullable)
    return nulls[0] != nulls[1] and nulls[0] is not True and nulls[1] is not False


_CLAUSES: Final = (
    exp.Select, exp.Where, exp.Having, exp.Qualify, exp.Join, exp.Group, exp.Merge, exp.When,
    exp.Update, exp.Insert, exp.Values, exp.Connect, exp.Lateral, exp.Pivot, exp.With, exp.CTE,
    exp.Table, exp.From, exp.SetOperation, exp.Limit, exp.Offset, exp.Distinct,
)  # fmt: skip


def root_of(node: exp.Expr) -> exp.Expr:
    """The outermost expression around a node, within its clause."""
    while (parent := node.parent) is not None:
        if isinstance(parent, exp.Order) and isinstance(parent.parent, exp.Query):
            break
        if isinstance(parent, _CLAUSES) and not _is_within_expression(parent):
            break
        node = parent
    return node


def _is_within_expression(node: exp.Expr) -> bool:
    """Whether a clause is part of an expression, like DISTINCT in COUNT(DISTINCT x)."""
    return (isinstance(node, exp.Distinct) and not isinstance(node.parent, exp.Query)) or (
        isinstance(node, exp.Where) and isinstance(node.parent, exp.Filter)
    )
