"""Columns of tables and queries, each with its origins in permanent tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

from sqlglot import exp

from lumos.lineage.sql.dialects import nested_name
from lumos.lineage.sql.script import ALL, Parts
from lumos.lineage.sql.source_text import Clause, SourceText
from lumos.model.lineage import Derivation, UseKind

Origin: TypeAlias = tuple[Parts, str]
# A UNION of a thousand branches does not need a thousand edges between two columns.
_MAX_PATHS: Final = 16
# The larger the number, the more a derivation changes its value.
_DERIVATION_RANK = {Derivation.IDENTITY: 0, Derivation.TRANSFORMATION: 1, Derivation.AGGREGATION: 2}


class Excerpt(NamedTuple):
    """A clause of the SQL text, extracted only on demand."""

    source: SourceText
    offset: int
    clause: Clause
    end: int | None = None
    enclosing_queries: int = 0

    @property
    def text(self) -> str | None:
        """The text of the clause, or else of the list item around the offset."""
        clause = self.source.clause_text(
            self.offset, self.clause, end=self.end, enclosing_queries=self.enclosing_queries
        )
        clause = clause or self.source.clause_text(self.offset, Clause.ITEM, end=self.end)
        return clause or self.source.call_or_token_text(self.offset)

    @property
    def line(self) -> int:
        return self.source.line(self.offset)


class OriginPath(NamedTuple):
    """How the value of an origin becomes the value of a column."""

    derivation: Derivation = Derivation.IDENTITY
    cast_to: str | None = None
    is_star: bool = False
    excerpt: Excerpt | None = None
    # Whether the value is a part of a larger one, such as an element of UNNEST(items). A later
    # clause that names the part then replaces the excerpt, since it describes the value better.
    is_part: bool = False
    # Other paths from the same origin, such as through other branches of a UNION.
    alternatives: "tuple[OriginPath, ...]" = ()

    def all_paths(self) -> "tuple[OriginPath, ...]":
        """This path and its alternatives, as paths without alternatives."""
        if not self.alternatives:
            return (self,)
        return (self._replace(alternatives=()), *self.alternatives)

    def merge(self, other: "OriginPath") -> "OriginPath":
        """Combine both paths; the one that changes the value more comes first."""
        if other == self or len(self.alternatives) >= _MAX_PATHS:
            return self
        paths = dict.fromkeys((*self.all_paths(), *other.all_paths()))
        first = max(paths, key=lambda path: _DERIVATION_RANK[path.derivation])
        return first._replace(alternatives=tuple(path for path in paths if path != first))

    def then(self, later: "OriginPath") -> "OriginPath":
        """Append a later step to the path."""
        if later.derivation is Derivation.IDENTITY:
            path = self
            if self.is_part and later.excerpt is not None:
                path = path._replace(excerpt=later.excerpt, is_part=False)
            return path._replace(is_star=True) if later.is_star and not path.is_star else path
        return later._replace(
            derivation=max(self.derivation, later.derivation, key=_DERIVATION_RANK.__getitem__),
            cast_to=later.cast_to or self.cast_to,
            excerpt=later.excerpt or self.excerpt,
        )


class OriginUse(NamedTuple):
    """An origin that influences a column or an entire result, but not as its value."""

    origin: Origin
    usage: UseKind
    excerpt: Excerpt | None = None
    cast_to: str | None = None
    negated: bool = False


OriginPaths: TypeAlias = dict[Origin, OriginPath]
Uses: TypeAlias = dict[OriginUse, None]


class TableColumn(NamedTuple):
    """A column of a permanent table."""

    table: Parts
    name: str


class FieldAccess(NamedTuple):
    """A field of a struct column."""

    struct: "QueryColumn"
    path: Parts


class MergedColumns(NamedTuple):
    """A value that comes from one of several columns."""

    columns: tuple["QueryColumn", ...]


class OuterJoined(NamedTuple):
    """A column on the optional side of an outer join."""

    column: "QueryColumn"


class ListElement(NamedTuple):
    """An element of a list, which is an expression or a column.

    With `is_expanded`, the fields of each element become columns, matched by position.
    """

    list: "exp.Expr | QueryColumn"
    is_expanded: bool = False


class MapEntry(NamedTuple):
    """A key or value of a map expression."""

    node: exp.Expr
    is_key: bool


class WholeRow(NamedTuple):
    """All columns of a row as one value."""

    columns: tuple["QueryColumn", ...]


# How a column is defined, to derive its type; None if this is not tracked.
ColumnDefinition: TypeAlias = (
    TableColumn
    | FieldAccess
    | MergedColumns
    | OuterJoined
    | ListElement
    | MapEntry
    | WholeRow
    | exp.Expr
    | None
)


class QueryColumn:
    """A column with the origins of its value and its indirect uses."""

    __slots__ = ("definition", "fields", "is_resolved", "name", "origins", "uses")

    def __init__(
        self, name: str, origins: OriginPaths | None = None, uses: Uses | None = None,
        *, is_resolved: bool = True, definition: ColumnDefinition = None,
        fields: "Fields | None" = None,
    ) -> None:  # fmt: skip
        self.name = name
        # The fields of a struct that the query itself creates.
        self.fields = fields
        self.definition = definition
        self.origins: OriginPaths = origins if origins is not None else {}
        self.uses: Uses = uses if uses is not None else {}
        self.is_resolved = is_resolved

    def with_name(self, name: str) -> "QueryColumn":
        """The same column under another name."""
        if name is self.name:
            return self
        return QueryColumn(name, self.origins, self.uses, is_resolved=self.is_resolved,
                      definition=self.definition, fields=self.fields)  # fmt: skip

    def via_star(self) -> "QueryColumn":
        """The same column, selected by a star."""
        star = OriginPath(is_star=True)
        origins = {origin: path.then(star) for origin, path in self.origins.items()}
        return QueryColumn(self.name, origins, self.uses, is_resolved=self.is_resolved,
                      definition=self.definition, fields=self.fields)  # fmt: skip

    def part(
        self, name: str, *steps: str, definition: ColumnDefinition, is_unknown_field: bool = False
    ) -> "QueryColumn":
        """A part of the value as a column: an element, a key or value of a map, or a field.

        `steps` lead to the part, as in `items[].sku`. With `is_unknown_field`, the column is a
        field of the value at the end of the steps, but it is not known which one.
        """
        origins: OriginPaths = {}
        for (table, column), path in self.origins.items():
            if any(each.derivation is not Derivation.IDENTITY for each in path.all_paths()):
                origins[table, column] = path
                continue
            derivation = Derivation.TRANSFORMATION if is_unknown_field else Derivation.IDENTITY
            nested = nested_name(column, *steps)
            if nested == column:
                # The path cannot be written: the part is treated as computed from the whole column.
                derivation = Derivation.TRANSFORMATION
            origins[table, nested] = path._replace(
                derivation=derivation, is_star=False, is_part=True, alternatives=()
            )
        return QueryColumn(
            name, origins, self.uses, is_resolved=self.is_resolved, definition=definition
        )

    def field(self, path: Parts) -> "QueryColumn":
        """The field of a struct at a path."""
        field = self.fields.get(path[0]) if self.fields else None
        if field is None:
            return self.part(path[-1], *path, definition=FieldAccess(self, path))
        if len(path) > 1:
            return field.field(path[1:])
        return QueryColumn(
            path[0], field.origins, field.uses, is_resolved=field.is_resolved,
            definition=FieldAccess(self, path), fields=field.fields,
        )  # fmt: skip

    def via_outer_join(self) -> "QueryColumn":
        """The same column on the optional side of an outer join."""
        return QueryColumn(
            self.name,
            self.origins,
            self.uses,
            is_resolved=self.is_resolved,
            definition=OuterJoined(self),
        )

    def with_uses(self, uses: Uses) -> "QueryColumn":
        """The same column with more indirect uses."""
        return QueryColumn(self.name, self.origins, {**self.uses, **uses},
                      is_resolved=self.is_resolved, definition=self.definition)  # fmt: skip

    def merge(self, other: "QueryColumn") -> "QueryColumn":
        """A column with the values of both columns."""
        if other is self:
            return self
        origins = dict(self.origins)
        for origin, path in other.origins.items():
            own_path = origins.get(origin)
            origins[origin] = path if own_path is None else own_path.merge(path)
        return QueryColumn(
            self.name,
            origins,
            {**self.uses, **other.uses},
            is_resolved=self.is_resolved and other.is_resolved,
            definition=MergedColumns((self, other)),
        )


Fields: TypeAlias = Mapping[str, QueryColumn]


class Star:
    """A star whose column names are unknown."""

    def column(self, name: str) -> QueryColumn | None:
        """The column of that name, or None if it is certainly not included."""
        raise NotImplementedError

    def as_column(self) -> QueryColumn:
        """One column `*` that represents all columns of the star."""
        raise NotImplementedError

    @property
    def is_likely(self) -> bool:
        """Whether an unqualified name is likely to be one of the columns."""
        return True


class TableStar(Star):
    """The columns of a table without a known schema."""

    def __init__(self, table: Parts) -> None:
        self.table = table

    def column(self, name: str) -> QueryColumn | None:
        return table_column(self.table, name)

    def as_column(self) -> QueryColumn:
        return QueryColumn(ALL, {(self.table, ALL): OriginPath(is_star=True)})


class ValueStar(Star):
    """The columns of a table function or array, all derived from one value."""

    def __init__(self, value: QueryColumn) -> None:
        self._value = value

    def column(self, name: str) -> QueryColumn | None:
        if isinstance(self._value.definition, ListElement | FieldAccess):
            return self._value.field((name,))
        return self._value.with_name(name)

    def as_column(self) -> QueryColumn:
        return self._value.with_name(ALL)

    @property
    def is_likely(self) -> bool:
        return False


class LimitedStar(Star):
    """A star with some columns excluded or renamed."""

    def __init__(
        self, star: Star, excluded: Iterable[str], renamed: Mapping[str, str] | None = None
    ) -> None:
        self._star = star
        self._original_names = {new: old for old, new in (renamed or {}).items()}
        self._excluded = frozenset(excluded) | frozenset(renamed or ())

    def column(self, name: str) -> QueryColumn | None:
        if name in self._original_names:
            column = self._star.column(self._original_names[name])
            return column.with_name(name) if column else None
        return None if name in self._excluded else self._star.column(name)

    def as_column(self) -> QueryColumn:
        return self._star.as_column()

    @property
    def is_likely(self) -> bool:
        return self._star.is_likely


class UnionStar(Star):
    """The unknown columns of several queries, merged by name.

    Each result is cached, since branches may share their stars: in a chain of WITH queries that
    each read the previous one twice, the work would double with every query.
    """

    def __init__(self, branches: "list[QueryRelation]") -> None:
        self._branches = branches
        self._columns: dict[str, QueryColumn | None] = {}

    def column(self, name: str) -> QueryColumn | None:
        if name not in self._columns:
            self._columns[name] = self._merge(name)
        return self._columns[name]

    def _merge(self, name: str) -> QueryColumn | None:
        merged: QueryColumn | None = None
        for branch in self._branches:
            column = branch.find(name) or branch.guess(name)
            if column is not None:
                merged = column if merged is None else merged.merge(column)
        return merged

    def as_column(self) -> QueryColumn:
        return self._all_columns

    @cached_property
    def _all_columns(self) -> QueryColumn:
        merged = QueryColumn(ALL)
        for branch in self._branches:
            for star in branch.stars:
                merged = merged.merge(star.as_column())
        return merged


RelationItem: TypeAlias = QueryColumn | Star


class QueryRelation:
    """The ordered columns and stars of a table or query.

    `uses` influence all of its rows, and `parents` are the relations that it is computed from.
    """

    __slots__ = ("_by_name", "_items", "implicit_names", "parents", "stars", "table", "uses")

    def __init__(self, items: Iterable[RelationItem] = (), *, table: Parts | None = None) -> None:
        self._items: list[RelationItem] = list(items)
        self.table = table
        self.uses: Uses = {}
        self.parents: list[QueryRelation] = []
        # Unnamed columns, by the names that some dialects derive for them.
        self.implicit_names: dict[str, QueryColumn] = {}
        self._by_name: dict[str, QueryColumn] = {}
        self.stars: list[Star] = []
        for item in self._items:
            if isinstance(item, QueryColumn):
                self._by_name.setdefault(item.name, item)
            else:
                self.stars.append(item)

    @property
    def items(self) -> Sequence[RelationItem]:
        return self._items

    @property
    def columns(self) -> list[QueryColumn]:
        return [item for item in self.items if isinstance(item, QueryColumn)]

    @property
    def has_unknown_columns(self) -> bool:
        """Whether there may be columns with unknown names."""
        return bool(self.stars)

    def find(self, name: str) -> QueryColumn | None:
        """The column that is known to have this name."""
        return self._by_name.get(name) or self.implicit_names.get(name)

    def guess(self, name: str) -> QueryColumn | None:
        """The column of this name in the only star that may contain it, if there is one."""
        matches = [
            (star, column) for star in self.stars if (column := star.column(name)) is not None
        ]
        if len(matches) > 1:
            matches = [(star, column) for star, column in matches if star.is_likely]
        return matches[0][1] if len(matches) == 1 else None

    def count_candidates(self, name: str) -> int:
        """The number of stars that may contain a column of this name."""
        return sum(star.column(name) is not None for star in self.stars)

    def with_column_names(self, names: list[str]) -> "QueryRelation":
        """The relation with its columns renamed by position.

        A name at or after the position of the first star may be any column of that star.
        """
        if not names:
            return self
        items = list(self.items)
        for position, name in enumerate(names):
            if position >= len(items):
                break
            item = items[position]
            if isinstance(item, Star):
                star_column = item.as_column()
                items[position:] = [star_column.with_name(each) for each in names[position:]]
                break
            items[position] = item.with_name(name)
        renamed = QueryRelation(items, table=self.table)
        renamed.uses, renamed.parents = self.uses, self.parents
        return renamed

    def all_columns(self) -> Iterator[QueryColumn]:
        """All columns, with one column `*` for each star."""
        for item in self.items:
            yield item if isinstance(item, QueryColumn) else item.as_column()

    def self_and_ancestors(self) -> "Iterator[QueryRelation]":
        """This relation and all of its ancestors, each once."""
        visited: set[int] = set()
        stack = [self]
        while stack:
            relation = stack.pop()
            if id(relation) not in visited:
                visited.add(id(relation))
                yield relation
                stack += reversed(relation.parents)


class TableRelation(QueryRelation):
    """A table with known columns; most queries use few of them, so each is created on demand."""

    __slots__ = ("_names", "_unused")

    def __init__(self, table: Parts, names: Sequence[str]) -> None:
        super().__init__(table=table)
        self._names = names
        self._unused = {*names}

    @property
    def items(self) -> Sequence[RelationItem]:
        if not self._items:
            self._items = list(filter(None, map(self.find, self._names)))
        return self._items

    def find(self, name: str) -> QueryColumn | None:
        if name in self._unused:
            assert self.table is not None
            self._by_name[name] = table_column(self.table, name)
            self._unused.remove(name)
        return self._by_name.get(name)


def table_column(table: Parts, name: str) -> QueryColumn:
    """A column of a permanent table."""
    return QueryColumn(name, {(table, name): OriginPath()}, definition=TableColumn(table, name))


def combine_branches(branches: list[QueryRelation], *, is_by_name: bool = False) -> QueryRelation:
    """The result of a set operation; the first branch names the columns."""
    if len(branches) == 1:
        return branches[0]
    first = branches[0]
    if is_by_name or any(branch.has_unknown_columns for branch in branches):
        items = _match_columns(branches, is_by_name=is_by_name)
    else:
        items = list(first.items)
        for branch in branches[1:]:
            for position, other in enumerate(branch.items[: len(items)]):
                item = items[position]
                if isinstance(item, QueryColumn) and isinstance(other, QueryColumn):
                    items[position] = item.merge(other)
    combined = QueryRelation(items)
    combined.implicit_names = first.implicit_names
    combined.parents = list(branches)
    return combined


def _match_columns(branches: list[QueryRelation], *, is_by_name: bool) -> list[RelationItem]:
    """Match columns by position up to the first star, and by name after it.

    With `is_by_name`, as in UNION BY NAME, all columns are matched by name.
    """
    first = branches[0]
    matched_by_position = 0
    while not is_by_name and all(
        matched_by_position < len(branch.items)
        and isinstance(branch.items[matched_by_position], QueryColumn)
        for branch in branches
    ):
        matched_by_position += 1
    items: list[RelationItem] = []
    for position in range(matched_by_position):
        merged: QueryColumn | None = None
        for branch in branches:
            column = branch.items[position]
            assert isinstance(column, QueryColumn)
            merged = column if merged is None else merged.merge(column)
        assert merged is not None
        items.append(merged)
    naming_branches = branches if is_by_name or first.has_unknown_columns else [first]
    names = dict.fromkeys(
        item.name
        for branch in naming_branches
        for item in branch.items[matched_by_position:]
        if isinstance(item, QueryColumn)
    )
    union = UnionStar(branches)
    for name in names:
        named_column = union.column(name)
        if named_column is not None:
            items.append(named_column)
    if first.has_unknown_columns or (
        is_by_name and any(branch.has_unknown_columns for branch in branches)
    ):
        items.append(union)
    return items
