"""Columns of tables and queries, each with its origins in permanent tables."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from sqlglot import exp

from lumos.lineage.sql.dialects import nested_name
from lumos.lineage.sql.script import ALL, Parts
from lumos.lineage.sql.source_text import Clause, SourceText
from lumos.model.lineage import Derivation, UseKind

Origin: TypeAlias = tuple[Parts, str]
# A UNION of a thousand branches does not need a thousand edges between two columns.
_MAX_PATHS: Final = 16
_RANK = {Derivation.IDENTITY: 0, Derivation.TRANSFORMATION: 1, Derivation.AGGREGATION: 2}


class Excerpt(NamedTuple):
    """A clause of the text, extracted only on demand."""

    source: SourceText
    offset: int
    clause: Clause
    end: int | None = None
    outwards: int = 0

    @property
    def text(self) -> str | None:
        """The clause, or else the list item around the position."""
        found = self.source.around(self.offset, self.clause, end=self.end, outwards=self.outwards)
        found = found or self.source.around(self.offset, Clause.ITEM, end=self.end)
        return found or self.source.nearest(self.offset)

    @property
    def line(self) -> int:
        return self.source.line(self.offset)


class OriginPath(NamedTuple):
    """How a value gets from its origin into a column."""

    derivation: Derivation = Derivation.IDENTITY
    cast_to: str | None = None
    is_star: bool = False
    excerpt: Excerpt | None = None
    # Taken out of a larger value: the clause that names the part says more than that of the whole.
    is_part: bool = False
    # Other paths of the same value, such as through the branches of a UNION.
    others: "tuple[OriginPath, ...]" = ()

    def each(self) -> "tuple[OriginPath, ...]":
        """All paths, one by one."""
        return (self._replace(others=()), *self.others) if self.others else (self,)

    def merged(self, other: "OriginPath") -> "OriginPath":
        """Both paths; the one that changes more comes first."""
        if other == self or len(self.others) >= _MAX_PATHS:
            return self
        paths = dict.fromkeys((*self.each(), *other.each()))
        first = max(paths, key=lambda fact: _RANK[fact.derivation])
        return first._replace(others=tuple(fact for fact in paths if fact != first))

    def then(self, later: "OriginPath") -> "OriginPath":
        """The path extended by a later step; an identity changes nothing."""
        if later.derivation is Derivation.IDENTITY:
            same = self
            if self.is_part and later.excerpt is not None:
                same = same._replace(excerpt=later.excerpt, is_part=False)
            return same._replace(is_star=True) if later.is_star and not same.is_star else same
        return later._replace(
            derivation=max(self.derivation, later.derivation, key=_RANK.__getitem__),
            cast_to=later.cast_to or self.cast_to,
            excerpt=later.excerpt or self.excerpt,
        )


class OriginUse(NamedTuple):
    """An origin that influences a column or a whole result without being its value."""

    origin: Origin
    usage: UseKind
    excerpt: Excerpt | None = None
    cast_to: str | None = None
    negated: bool = False


Facts: TypeAlias = dict[Origin, OriginPath]
Uses: TypeAlias = dict[OriginUse, None]


class TableColumn(NamedTuple):
    """A column of a permanent table."""

    table: Parts
    name: str


class FieldAccess(NamedTuple):
    """A field of a struct column."""

    holder: "QueryColumn"
    path: Parts


class MergedColumns(NamedTuple):
    """A value of one of several columns."""

    columns: tuple["QueryColumn", ...]


class OuterJoined(NamedTuple):
    """A column of an outer join's optional side."""

    column: "QueryColumn"


class ListElement(NamedTuple):
    """An element of a list: of an expression, or of a column.

    `is_expanded` means that the fields of an element become columns by their position.
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


# The definition of a column's value, to derive its type; None if not tracked.
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

    __slots__ = ("definition", "facts", "fields", "is_resolved", "name", "uses")

    def __init__(
        self, name: str, facts: Facts | None = None, uses: Uses | None = None,
        *, is_resolved: bool = True, definition: ColumnDefinition = None,
        fields: "Fields | None" = None,
    ) -> None:  # fmt: skip
        self.name = name
        # The fields of a struct that the query itself creates.
        self.fields = fields
        self.definition = definition
        self.facts: Facts = facts if facts is not None else {}
        self.uses: Uses = uses if uses is not None else {}
        self.is_resolved = is_resolved

    def renamed(self, name: str) -> "QueryColumn":
        """The same column under another name."""
        if name is self.name:
            return self
        return QueryColumn(name, self.facts, self.uses, is_resolved=self.is_resolved,
                      definition=self.definition, fields=self.fields)  # fmt: skip

    def starred(self) -> "QueryColumn":
        """The same column, selected by a star."""
        later = OriginPath(is_star=True)
        facts = {origin: fact.then(later) for origin, fact in self.facts.items()}
        return QueryColumn(self.name, facts, self.uses, is_resolved=self.is_resolved,
                      definition=self.definition, fields=self.fields)  # fmt: skip

    def part(
        self, name: str, *steps: str, definition: ColumnDefinition, is_whole: bool = False
    ) -> "QueryColumn":
        """A part of the value under a name: an element, a map's key or value, or a field.

        `is_whole` means that the value may be any part of the one that the steps lead to.
        """
        facts: Facts = {}
        for (table, path), fact in self.facts.items():
            if any(each.derivation is not Derivation.IDENTITY for each in fact.each()):
                facts[table, path] = fact
                continue
            derivation = Derivation.TRANSFORMATION if is_whole else Derivation.IDENTITY
            origin = table, nested_name(path, *steps)
            if origin[1] == path:
                # The path cannot be extended: the part is computed from the whole.
                derivation = Derivation.TRANSFORMATION
            facts[origin] = fact._replace(
                derivation=derivation, is_star=False, is_part=True, others=()
            )
        return QueryColumn(
            name, facts, self.uses, is_resolved=self.is_resolved, definition=definition
        )

    def field(self, path: Parts) -> "QueryColumn":
        """A field of a struct."""
        known = self.fields.get(path[0]) if self.fields else None
        if known is None:
            return self.part(path[-1], *path, definition=FieldAccess(self, path))
        if len(path) > 1:
            return known.field(path[1:])
        return QueryColumn(
            path[0], known.facts, known.uses, is_resolved=known.is_resolved,
            definition=FieldAccess(self, path), fields=known.fields,
        )  # fmt: skip

    def padded(self) -> "QueryColumn":
        """The same column on the optional side of an outer join."""
        return QueryColumn(
            self.name,
            self.facts,
            self.uses,
            is_resolved=self.is_resolved,
            definition=OuterJoined(self),
        )

    def decided_by(self, uses: Uses) -> "QueryColumn":
        """The same column with more indirect uses."""
        return QueryColumn(self.name, self.facts, {**self.uses, **uses},
                      is_resolved=self.is_resolved, definition=self.definition)  # fmt: skip

    def merged(self, other: "QueryColumn") -> "QueryColumn":
        """A column with the values of both."""
        if other is self:
            return self
        facts = dict(self.facts)
        for origin, fact in other.facts.items():
            before = facts.get(origin)
            facts[origin] = fact if before is None else before.merged(fact)
        return QueryColumn(
            self.name,
            facts,
            {**self.uses, **other.uses},
            is_resolved=self.is_resolved and other.is_resolved,
            definition=MergedColumns((self, other)),
        )


Fields: TypeAlias = Mapping[str, QueryColumn]


class Star:
    """Columns with unknown names."""

    def column(self, name: str) -> QueryColumn | None:
        """The column of that name, or None if it is certainly not included."""
        raise NotImplementedError

    def everything(self) -> QueryColumn:
        """All columns as one."""
        raise NotImplementedError

    @property
    def is_likely(self) -> bool:
        """Whether an unqualified name is likely to be found here."""
        return True


class TableStar(Star):
    """The columns of a table without a known schema."""

    def __init__(self, table: Parts) -> None:
        self.table = table

    def column(self, name: str) -> QueryColumn | None:
        return QueryColumn(
            name, {(self.table, name): OriginPath()}, definition=TableColumn(self.table, name)
        )

    def everything(self) -> QueryColumn:
        return QueryColumn(ALL, {(self.table, ALL): OriginPath(is_star=True)})


class ValueStar(Star):
    """The columns of a table function or array, all derived from one value."""

    def __init__(self, value: QueryColumn) -> None:
        self._value = value

    def column(self, name: str) -> QueryColumn | None:
        if isinstance(self._value.definition, ListElement | FieldAccess):
            return self._value.field((name,))
        return self._value.renamed(name)

    def everything(self) -> QueryColumn:
        return self._value.renamed(ALL)

    @property
    def is_likely(self) -> bool:
        return False


class LimitedStar(Star):
    """A star without some columns and with some renamed ones."""

    def __init__(
        self, star: Star, excluded: Iterable[str], renamed: Mapping[str, str] | None = None
    ) -> None:
        self._star = star
        self._renamed = {new: old for old, new in (renamed or {}).items()}
        self._excluded = frozenset(excluded) | frozenset(renamed or ())

    def column(self, name: str) -> QueryColumn | None:
        if name in self._renamed:
            found = self._star.column(self._renamed[name])
            return found.renamed(name) if found else None
        return None if name in self._excluded else self._star.column(name)

    def everything(self) -> QueryColumn:
        return self._star.everything()

    @property
    def is_likely(self) -> bool:
        return self._star.is_likely


class UnionStar(Star):
    """The unknown columns of several queries, merged by name."""

    def __init__(self, branches: "list[QueryRelation]") -> None:
        self._branches = branches

    def column(self, name: str) -> QueryColumn | None:
        found: QueryColumn | None = None
        for branch in self._branches:
            column = branch.find(name) or branch.guess(name)
            if column is not None:
                found = column if found is None else found.merged(column)
        return found

    def everything(self) -> QueryColumn:
        found = QueryColumn(ALL)
        for branch in self._branches:
            for star in branch.stars:
                found = found.merged(star.everything())
        return found


Item: TypeAlias = QueryColumn | Star


class QueryRelation:
    """Ordered columns and stars, with indirect uses and parent relations."""

    __slots__ = ("_by_name", "implicit", "items", "parents", "stars", "table", "uses")

    def __init__(self, items: Iterable[Item] = (), *, table: Parts | None = None) -> None:
        self.items: list[Item] = list(items)
        self.table = table
        self.uses: Uses = {}
        self.parents: list[QueryRelation] = []
        # Implicit names of unnamed columns in some dialects.
        self.implicit: dict[str, QueryColumn] = {}
        self._by_name: dict[str, QueryColumn] = {}
        self.stars: list[Star] = []
        for item in self.items:
            if isinstance(item, QueryColumn):
                self._by_name.setdefault(item.name, item)
            else:
                self.stars.append(item)

    @property
    def columns(self) -> list[QueryColumn]:
        return [item for item in self.items if isinstance(item, QueryColumn)]

    @property
    def is_open(self) -> bool:
        """Whether there may be unknown columns."""
        return bool(self.stars)

    def find(self, name: str) -> QueryColumn | None:
        """The column that certainly has this name."""
        return self._by_name.get(name) or self.implicit.get(name)

    def guess(self, name: str) -> QueryColumn | None:
        """The column of this name if it may be an unknown one."""
        found = [(star, column) for star in self.stars if (column := star.column(name)) is not None]
        if len(found) > 1:
            found = [(star, column) for star, column in found if star.is_likely]
        return found[0][1] if len(found) == 1 else None

    def candidates(self, name: str) -> int:
        """How many stars may contain a column of this name."""
        return sum(star.column(name) is not None for star in self.stars)

    def under(self, names: list[str]) -> "QueryRelation":
        """The same with columns renamed by position; those of a star are indistinguishable."""
        if not names:
            return self
        items = list(self.items)
        for position, name in enumerate(names):
            if position >= len(items):
                break
            item = items[position]
            if isinstance(item, Star):
                row = item.everything()
                items[position:] = [row.renamed(each) for each in names[position:]]
                break
            items[position] = item.renamed(name)
        renamed = QueryRelation(items, table=self.table)
        renamed.uses, renamed.parents = self.uses, self.parents
        return renamed

    def everything(self) -> Iterator[QueryColumn]:
        """Every column, unknown ones as `*`."""
        for item in self.items:
            yield item if isinstance(item, QueryColumn) else item.everything()

    def ancestry(self) -> "Iterator[QueryRelation]":
        """This relation and all of its ancestors, each once."""
        seen: set[int] = set()
        stack = [self]
        while stack:
            relation = stack.pop()
            if id(relation) not in seen:
                seen.add(id(relation))
                yield relation
                stack += reversed(relation.parents)


def combine_branches(branches: list[QueryRelation], *, is_by_name: bool = False) -> QueryRelation:
    """The result of a set operation; the first branch names the columns."""
    if len(branches) == 1:
        return branches[0]
    first = branches[0]
    if is_by_name or any(branch.is_open for branch in branches):
        items = _by_name(branches, is_by_name=is_by_name)
    else:
        items = list(first.items)
        for branch in branches[1:]:
            for position, other in enumerate(branch.items[: len(items)]):
                item = items[position]
                if isinstance(item, QueryColumn) and isinstance(other, QueryColumn):
                    items[position] = item.merged(other)
    combined = QueryRelation(items)
    combined.implicit = first.implicit
    combined.parents = list(branches)
    return combined


def _by_name(branches: list[QueryRelation], *, is_by_name: bool) -> list[Item]:
    """Match columns by position up to the first star, and by name after it."""
    first = branches[0]
    matched_by_position = (
        0 if is_by_name else min(_count_before_star(branch) for branch in branches)
    )
    items: list[Item] = []
    for position in range(matched_by_position):
        merged: QueryColumn | None = None
        for branch in branches:
            column = branch.items[position]
            assert isinstance(column, QueryColumn)
            merged = column if merged is None else merged.merged(column)
        assert merged is not None
        items.append(merged)
    named = branches if is_by_name or first.is_open else [first]
    names = dict.fromkeys(
        item.name
        for branch in named
        for item in branch.items[matched_by_position:]
        if isinstance(item, QueryColumn)
    )
    union = UnionStar(branches)
    for name in names:
        found = union.column(name)
        if found is not None:
            items.append(found)
    if first.is_open or (is_by_name and any(branch.is_open for branch in branches)):
        items.append(union)
    return items


def _count_before_star(branch: QueryRelation) -> int:
    for position, item in enumerate(branch.items):
        if isinstance(item, Star):
            return position
    return len(branch.items)
