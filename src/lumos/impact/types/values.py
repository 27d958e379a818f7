"""Types and nullability of expressions, with their tables before and after a change."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

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
from lumos.model.schema import Field
from lumos.model.types import UNKNOWN, Array, DataType, Decimal, Map, Struct, Unknown

Tables = Callable[[Parts], TableVersions | None]
_Known = tuple[object, DataType]
BEFORE: Final = 0
AFTER: Final = 1


class ValueChange(NamedTuple):
    """A value before and after; None if it does not exist."""

    before: ValueType | None
    after: ValueType | None
    is_unknown: bool = False

    @property
    def is_changed(self) -> bool:
        return self.is_unknown or self.before != self.after

    @property
    def is_gone(self) -> bool:
        return self.before is not None and self.after is None

    @property
    def is_added(self) -> bool:
        return self.before is None and self.after is not None


_UNKNOWN_VALUE: Final = ValueType()
UNCHANGED_VALUE: Final = ValueChange(_UNKNOWN_VALUE, _UNKNOWN_VALUE)
LOST: Final = ValueChange(_UNKNOWN_VALUE, _UNKNOWN_VALUE, True)


class _Leaves(NamedTuple):
    """Properties that hold for at least one of several columns."""

    is_gone: bool = False
    is_changed: bool = False
    has_other_types: bool = False
    may_gain_nulls: bool = False

    @classmethod
    def of(cls, state: ValueChange) -> "_Leaves":
        has_other_types = state.is_unknown or not _same_types(state)
        return cls(state.is_gone, state.is_changed, has_other_types, _may_gain_nulls(state))


_NO_LEAVES: Final = _Leaves()


class ExpressionTypes:
    """Types of the expressions and columns of one script, computed on demand."""

    def __init__(self, dialect: Dialect, tables: Tables) -> None:
        self._schema, self._rules = _annotator_settings(dialect)
        self._numbers = number_types(_name(dialect))
        self._folding = NameFolding(dialect)
        self._tables = tables
        self._versions: dict[Parts, TableVersions | None] = {}
        self._columns: dict[tuple[Parts, str], ValueChange] = {}
        self._changed: dict[Parts, frozenset[str] | None] = {}
        self._states: dict[int, ValueChange] = {}
        self._types: tuple[dict[int, DataType], dict[int, DataType]] = ({}, {})
        self._typed: set[int] = set()
        self._leaf_properties: dict[int, _Leaves] = {}
        self._in_progress: set[int] = set()
        # Keeps nodes alive, as ids of collected objects are reused.
        self._referenced: list[object] = []
        self._nulls = Nullability(self._nullable)
        self.named: dict[int, QueryColumn] = {}
        # The columns of whole rows used as one value, by the id of the node.
        self.rows: dict[int, Sequence[QueryColumn]] = {}

    def versions(self, table: Parts) -> TableVersions | None:
        """The versions of a table, if it is known."""
        if table not in self._versions:
            self._versions[table] = self._tables(table)
        return self._versions[table]

    def names(self, table: Parts) -> list[str] | None:
        """The columns that a table has before or after."""
        versions = self.versions(table)
        return list(versions.columns) if versions is not None and versions.is_complete else None

    def changed(self, table: Parts) -> frozenset[str] | None:
        """The changed columns of a table, with names folded; None if any may have changed."""
        if table not in self._changed:
            versions = self.versions(table)
            found: frozenset[str] | None = frozenset()
            if versions is not None:
                stored = frozenset(map(self._folding.stored, versions.changed))
                found = None if versions.is_doubtful else stored
            self._changed[table] = found
        return self._changed[table]

    def may_change(self, column: QueryColumn) -> bool:
        """Whether a column is derived from one that changes."""
        return any(True for _ in self.origins(column))

    def changed_in_row(self, row: Sequence[QueryColumn]) -> Sequence[QueryColumn]:
        """Return the columns that change a row as a whole: by their type or their position."""
        return [each for each in row if self.may_change(each)] or [
            each for each in row if self._is_moved(each)
        ][:1]

    def _is_moved(self, column: QueryColumn) -> bool:
        """Whether a column is used by position, and the column order of its table changes."""
        return any(
            (fact.is_star or isinstance(column.definition, TableColumn))
            and (versions := self.versions(table)) is not None
            and versions.is_reordered
            for (table, _), fact in column.facts.items()
        )

    def holds_changed_row(self, column: QueryColumn) -> bool:
        """Whether the value of a column contains a row that changes."""
        changed = {id for id, row in self.rows.items() if self.changed_in_row(row)}
        return bool(changed) and not changed.isdisjoint(self.makers(column))

    def origins(self, column: QueryColumn) -> Iterator[tuple[str, str]]:
        """The changed columns, or fields inside of them, that a column is derived from."""
        for table, path in column.facts:
            name = column_name(path)
            changed = self.changed(table)
            if changed is None or name in changed or (name == ALL and changed):
                versions = self.versions(table)
                assert versions is not None
                below = path[len(name) :]
                yield versions.key, self._stored_name(versions, name) + below

    def sources(self, column: QueryColumn) -> Iterator[tuple[str, str]]:
        """All columns of known tables that a column is derived from."""
        for table, path in column.facts:
            versions = self.versions(table)
            if versions is not None:
                yield versions.key, self._stored_name(versions, column_name(path))

    def _stored_name(self, versions: TableVersions, name: str) -> str:
        """The name of a column as the schema spells it."""
        if name in versions.columns:
            return name
        return next((each for each in versions.columns if self._folding.stored(each) == name), name)

    def of_column(self, column: QueryColumn) -> ValueChange:
        """The change of a column."""
        known = self._states.get(id(column))
        if known is None:
            if id(column) in self._in_progress:
                # A recursive query.
                return LOST if self.may_change(column) else UNCHANGED_VALUE
            self._in_progress.add(id(column))
            known = self._column(column)
            self._in_progress.discard(id(column))
            self._states[id(column)] = known
            self._referenced.append(column)
        return known

    def _column(self, column: QueryColumn) -> ValueChange:
        maker = column.definition
        if isinstance(maker, TableColumn):
            return self._stored(maker)
        if isinstance(maker, OuterJoined):
            return self._pad(self.of_column(maker.column))
        if isinstance(maker, FieldAccess):
            return self._member(self.of_column(maker.holder), maker.path)
        if isinstance(maker, MergedColumns):
            return self._combine([self.of_column(each) for each in maker.columns])
        if isinstance(maker, ListElement):
            return self._element(maker)
        if isinstance(maker, MapEntry):
            return self._part(self.of_node(maker.node), _key_of if maker.is_key else _value_in)
        if isinstance(maker, exp.Expr):
            return self.of_node(maker)
        if isinstance(maker, WholeRow):
            return LOST if self.changed_in_row(maker.columns) else UNCHANGED_VALUE
        return LOST if self.may_change(column) else UNCHANGED_VALUE

    def _element(self, element: ListElement) -> ValueChange:
        """The change of an element of an array."""
        if isinstance(element.list, QueryColumn):
            state = self._part(self.of_column(element.list), _element_of)
        else:
            state = self._part(self.of_node(element.list), _element_of)
        if element.is_expanded and any(
            each is not None and isinstance(each.type, Struct)
            for each in (state.before, state.after)
        ):
            # Which of its fields this is depends on their order.
            return LOST if state.is_changed else UNCHANGED_VALUE
        return state

    def _part(
        self, state: ValueChange, part_of: Callable[[ValueType | None], ValueType | None]
    ) -> ValueChange:
        """The change of a part of an array or map."""
        before, after = (part_of(value) for value in (state.before, state.after))
        is_vague = any(value is not None and isinstance(value.type, Unknown)
                       for value in (before, after))  # fmt: skip
        return ValueChange(before, after, state.is_unknown or (state.is_changed and is_vague))

    def _stored(self, stored: TableColumn) -> ValueChange:
        key = (stored.table, stored.name)
        if key not in self._columns:
            self._columns[key] = self._look_up(stored)
        return self._columns[key]

    def _look_up(self, stored: TableColumn) -> ValueChange:
        versions = self.versions(stored.table)
        if versions is None:
            return UNCHANGED_VALUE
        name = self._stored_name(versions, stored.name)
        pair = versions.columns.get(name)
        if pair is None:
            return LOST if versions.is_doubtful else UNCHANGED_VALUE
        before, after = map(_value, pair)
        return ValueChange(before, after, versions.is_doubtful or name in versions.lost)

    def _pad(self, state: ValueChange) -> ValueChange:
        before, after = (
            None if each is None else ValueType(type=each.type, nullable=True)
            for each in (state.before, state.after)
        )
        return ValueChange(before, after, state.is_unknown)

    def _member(self, holder: ValueChange, path: Parts) -> ValueChange:
        """The change of a field of a struct or map; a field that disappears counts as removed."""
        if holder.is_gone:
            return holder
        before, after = (self._nested_value(value, path) for value in (holder.before, holder.after))
        # A field that the struct did not have before: the name means something else.
        is_vague = before is None or any(
            value is not None and isinstance(value.type, Unknown) for value in (before, after)
        )
        is_unknown = holder.is_unknown or (holder.before != holder.after and is_vague)
        return ValueChange(
            before or _UNKNOWN_VALUE, after if before else after or _UNKNOWN_VALUE, is_unknown
        )

    def _nested_value(self, value: ValueType | None, path: Parts) -> ValueType | None:
        if value is None:
            return None
        type, nullable, depth = value.type, value.nullable, 0
        for name in path:
            if isinstance(type, Struct):
                found = next((each for each in type.members if self._has_name(each.name, name)),
                             None)  # fmt: skip
                if found is None:
                    return None
                type, nullable = found.type, nullable or found.nullable
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

    def _combine(self, states: Iterable[ValueChange]) -> ValueChange:
        states = list(states)
        if any(state.is_gone for state in states):
            return next(state for state in states if state.is_gone)
        if all(state.is_added for state in states):
            return ValueChange(None, self._common([state.after for state in states]))
        before = self._common([state.before for state in states])
        after = self._common([state.after for state in states])
        is_vague = isinstance(before.type, Unknown) or isinstance(after.type, Unknown)
        is_changed = any(state.is_changed for state in states)
        return ValueChange(
            before, after, any(s.is_unknown for s in states) or (is_changed and is_vague)
        )

    def _common(self, values: list[ValueType | None]) -> ValueType:
        present = [value for value in values if value is not None]
        nulls = [value.nullable for value in present]
        nullable = True if True in nulls else (None if None in nulls else False)
        return ValueType(
            type=self._numbers.common(value.type for value in present), nullable=nullable
        )

    def makers(self, column: QueryColumn) -> set[int]:
        """The ids of the expressions and columns that a column is computed from."""
        found: set[int] = set()
        stack = [column]
        while stack:
            column = stack.pop()
            found.add(id(column))
            maker = column.definition
            if isinstance(maker, OuterJoined):
                stack.append(maker.column)
            elif isinstance(maker, FieldAccess):
                stack.append(maker.holder)
            elif isinstance(maker, MergedColumns):
                stack += maker.columns
            elif isinstance(maker, ListElement) and isinstance(maker.list, QueryColumn):
                stack.append(maker.list)
            elif isinstance(maker, exp.Expr | ListElement | MapEntry) and id(maker) not in found:
                found.add(id(maker))
                node = _node_of(maker)
                named = (self.named.get(id(leaf)) for leaf in node.find_all(exp.Column))
                stack += [each for each in named if each is not None]
                if self.rows:
                    found.update(id(each) for each in node.walk() if id(each) in self.rows)
        return found

    def of_node(self, node: exp.Expr) -> ValueChange:
        """The change of an expression or a part of one."""
        known = self._states.get(id(node))
        if known is None:
            known = self._node(node)
            self._states[id(node)] = known
            self._referenced.append(node)
        return known

    def leaves(self, node: exp.Expr) -> Iterator[ValueChange]:
        """The changes of the columns that are named in an expression."""
        for leaf in node.find_all(exp.Column):
            column = self.named.get(id(leaf))
            if column is not None:
                yield self.of_column(column)

    def _node(self, node: exp.Expr) -> ValueChange:
        if isinstance(node, exp.Column) and id(node) in self.named:
            return self._leaf(node)
        if isinstance(node, exp.Alias | exp.Paren | exp.Ordered):
            return self.of_node(node.this)
        if isinstance(node, exp.Dot) and _is_field_of_element(node):
            return self._member(self.of_node(node.this), (self._folding.name(node.expression),))
        leaves = self._leaves(node)
        if leaves.is_gone:
            return ValueChange(_UNKNOWN_VALUE, None)
        if self.rows and self._takes_changed_row(node):
            return LOST
        self._type(node)
        before, after = (
            ValueType(type=self._types[version].get(id(node), UNKNOWN),
                  nullable=self._nulls.of(node, version))
            for version in (BEFORE, AFTER)
        )  # fmt: skip
        if not leaves.is_changed:
            return ValueChange(before, before)
        is_vague = _has_unknown(before.type) or _has_unknown(after.type)
        is_unknown = (is_vague and leaves.has_other_types) or (
            leaves.may_gain_nulls and None in (before.nullable, after.nullable)
        )
        return ValueChange(before, after, is_unknown)

    def _takes_changed_row(self, node: exp.Expr) -> bool:
        rows = (self.rows.get(id(each)) for each in node.walk())
        return any(self.changed_in_row(row) for row in rows if row)

    def _leaves(self, node: exp.Expr) -> "_Leaves":
        """Properties of the columns that are named in an expression."""
        known = self._leaf_properties.get(id(node))
        if known is None:
            left_operand = (
                self._leaf_properties.get(id(node.this)) if isinstance(node, exp.Binary) else None
            )
            rest = node.expression if left_operand is not None else node
            parts = [_Leaves.of(state) for state in self.leaves(rest)]
            known = _Leaves(*map(any, zip(left_operand or _NO_LEAVES, *parts, strict=True)))
            self._leaf_properties[id(node)] = known
            self._referenced.append(node)
        return known

    def _leaf(self, node: exp.Column) -> ValueChange:
        """The change of a named column; for a.b.c, that of the column which has the fields."""
        column = self.named[id(node)]
        state = self.of_column(column)
        maker = column.definition
        if isinstance(maker, FieldAccess) and isinstance(node.parent, exp.Dot):
            behind = 0
            parent: exp.Expr | None = node.parent
            while isinstance(parent, exp.Dot):
                behind += 1
                parent = parent.parent
            path = maker.path[: len(maker.path) - behind]
            state = self.of_column(maker.holder)
            return self._member(state, path) if path else state
        if self._nulls.is_filtered(node, self.named):
            before, after = (
                None if each is None else ValueType(type=each.type, nullable=False)
                for each in (state.before, state.after)
            )
            return ValueChange(before, after, state.is_unknown)
        return state

    def _nullable(self, node: exp.Column, version: int) -> bool | None:
        if id(node) not in self.named:
            return None
        value = self._leaf(node)[version]
        return value.nullable if isinstance(value, ValueType) else None

    def _type(self, node: exp.Expr) -> None:
        """Annotate the whole expression around a node with types, before and after."""
        root = root_of(node)
        if id(root) in self._typed:
            return
        self._typed.add(id(root))
        self._referenced.append(root)
        leaves = [leaf for leaf in root.find_all(exp.Column) if id(leaf) in self.named]
        states = [(leaf, self._leaf(leaf)) for leaf in leaves]
        self._annotate(root, states, BEFORE)
        if any(state.is_changed for _, state in states):
            self._annotate(root, states, AFTER)
        else:
            self._types[AFTER].update((id(each), self._types[BEFORE][id(each)])
                                      for each in root.walk())  # fmt: skip

    def _annotate(
        self, root: exp.Expr, leaves: list[tuple[exp.Column, ValueChange]], version: int
    ) -> None:
        for node in root.walk():
            node._type = None
        exact: dict[_Known, DataType] = {}
        types = self._types[version]
        for leaf, state in leaves:
            value = state.after if version == AFTER else state.before
            type = UNKNOWN if value is None else value.type
            leaf._type = to_sqlglot(type)
            types[id(leaf)] = type
            exact.setdefault(_known(leaf._type), type)
        self._annotate_casts(root)
        for node in root.walk():
            if id(node) not in types or not isinstance(node, exp.Column):
                # The annotator drops details such as the time unit; the columns still have them.
                known = _known(node.type)
                types[id(node)] = exact.get(known) or known[1]

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


def _known(type: exp.Expr | None) -> _Known:
    """A type as both sqlglot and Lumos represent it; either may drop details."""
    return type.this if isinstance(type, exp.DataType) else None, from_sqlglot(type)


@cache
def _annotator_settings(dialect: Dialect) -> tuple[MappingSchema, dict[type, Any]]:
    return MappingSchema(dialect=dialect), rules_for(_name(dialect), dialect.EXPRESSION_METADATA)


def _name(dialect: Dialect) -> str:
    return type(dialect).__name__.lower()


def _value(field: Field | None) -> ValueType | None:
    return None if field is None else ValueType(type=field.type, nullable=field.nullable)


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


def _value_in(value: ValueType | None) -> ValueType | None:
    if value is None or not isinstance(value.type, Map):
        return None if value is None else _UNKNOWN_VALUE
    return ValueType(type=value.type.value, nullable=True)


def _node_of(maker: exp.Expr | ListElement | MapEntry) -> exp.Expr:
    if isinstance(maker, exp.Expr):
        return maker
    node = maker.list if isinstance(maker, ListElement) else maker.node
    assert isinstance(node, exp.Expr)
    return node


def _has_unknown(type: DataType) -> bool:
    """Whether a type or a nested one is unknown."""
    match type:
        case Array(element):
            return _has_unknown(element)
        case Map(key, value):
            return _has_unknown(key) or _has_unknown(value)
        case Struct(members):
            return any(_has_unknown(member.type) for member in members)
        case _:
            return isinstance(type, Unknown)


def _same_types(state: ValueChange) -> bool:
    return (
        state.before is not None
        and state.after is not None
        and state.before.type == state.after.type
    )


def _may_gain_nulls(state: ValueChange) -> bool:
    """Whether there may be nulls where there were none."""
    if state.before is None or state.after is None:
        return True
    nulls = (state.before.nullable, state.after.nullable)
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
    """Whether a clause node belongs to an expression, as DISTINCT in COUNT(DISTINCT x)."""
    return (isinstance(node, exp.Distinct) and not isinstance(node.parent, exp.Query)) or (
        isinstance(node, exp.Where) and isinstance(node.parent, exp.Filter)
    )
