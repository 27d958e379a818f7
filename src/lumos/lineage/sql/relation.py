"""What a table, a query or anything else in FROM is made of: columns that lead to real tables."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from sqlglot import exp

from lumos.lineage.sql.script import ALL, Parts
from lumos.lineage.sql.texts import Clause, SourceText
from lumos.model.lineage import Derivation, UseKind

Origin: TypeAlias = tuple[Parts, str]
# A UNION of a thousand branches needs no thousand edges between two columns.
_MOST_WAYS: Final = 16
_RANK = {Derivation.IDENTITY: 0, Derivation.TRANSFORMATION: 1, Derivation.AGGREGATION: 2}


class Excerpt(NamedTuple):
    """A stretch of the text that is read only when somebody asks for it."""

    source: SourceText
    offset: int
    clause: Clause
    end: int | None = None
    outwards: int = 0

    @property
    def text(self) -> str | None:
        """The clause, or the item of a list if there is no such clause around the place."""
        found = self.source.around(self.offset, self.clause, end=self.end, outwards=self.outwards)
        found = found or self.source.around(self.offset, Clause.ITEM, end=self.end)
        return found or self.source.nearest(self.offset)

    @property
    def line(self) -> int:
        return self.source.line(self.offset)


class Fact(NamedTuple):
    """How a value gets from its origin into a column."""

    derivation: Derivation = Derivation.IDENTITY
    cast_to: str | None = None
    is_star: bool = False
    excerpt: Excerpt | None = None
    # Other ways in which the same value gets there, as through the branches of a UNION.
    others: "tuple[Fact, ...]" = ()

    def each(self) -> "tuple[Fact, ...]":
        """All ways, each by itself."""
        return (self._replace(others=()), *self.others) if self.others else (self,)

    def beside(self, other: "Fact") -> "Fact":
        """Both ways; the one that changes more comes first."""
        if other == self or len(self.others) >= _MOST_WAYS:
            return self
        every = dict.fromkeys((*self.each(), *other.each()))
        first = max(every, key=lambda fact: _RANK[fact.derivation])
        return first._replace(others=tuple(fact for fact in every if fact != first))

    def then(self, later: "Fact") -> "Fact":
        """What becomes of the value when it goes on; an identity leaves what was said of it."""
        if later.derivation is Derivation.IDENTITY:
            return self._replace(is_star=True) if later.is_star and not self.is_star else self
        return later._replace(
            derivation=max(self.derivation, later.derivation, key=_RANK.__getitem__),
            cast_to=later.cast_to or self.cast_to,
            excerpt=later.excerpt or self.excerpt,
        )


class Use(NamedTuple):
    """An origin that decides about a column or a whole result without being its value."""

    origin: Origin
    usage: UseKind
    excerpt: Excerpt | None = None
    cast_to: str | None = None
    negated: bool = False


Facts: TypeAlias = dict[Origin, Fact]
Uses: TypeAlias = dict[Use, None]


class Stored(NamedTuple):
    """A column of a real table."""

    table: Parts
    name: str


class Member(NamedTuple):
    """A field of a column that has fields."""

    holder: "Column"
    path: Parts


class Either(NamedTuple):
    """A value of one column or the other."""

    columns: tuple["Column", ...]


class Padded(NamedTuple):
    """A column of a join's side for which there may be no row."""

    column: "Column"


class Element(NamedTuple):
    """One of the values in a list that an expression gives."""

    node: exp.Expr


class Row(NamedTuple):
    """All columns of a row as one value."""

    columns: tuple["Column", ...]


# What makes a column's value, for those who ask for its type; None where that is not followed.
Maker: TypeAlias = Stored | Member | Either | Padded | Element | Row | exp.Expr | None


class Column:
    """A column: the origins of its value, and what decides about it alone."""

    __slots__ = ("facts", "fields", "is_resolved", "maker", "name", "uses")

    def __init__(
        self, name: str, facts: Facts | None = None, uses: Uses | None = None,
        *, is_resolved: bool = True, maker: Maker = None, fields: "Fields | None" = None,
    ) -> None:  # fmt: skip
        self.name = name
        # Those of a struct that the query itself makes.
        self.fields = fields
        self.maker = maker
        self.facts: Facts = facts if facts is not None else {}
        self.uses: Uses = uses if uses is not None else {}
        self.is_resolved = is_resolved

    def renamed(self, name: str) -> "Column":
        """The same column under another name."""
        if name is self.name:
            return self
        return Column(name, self.facts, self.uses, is_resolved=self.is_resolved,
                      maker=self.maker, fields=self.fields)  # fmt: skip

    def starred(self) -> "Column":
        """The same column, which nobody named."""
        later = Fact(is_star=True)
        facts = {origin: fact.then(later) for origin, fact in self.facts.items()}
        return Column(self.name, facts, self.uses, is_resolved=self.is_resolved,
                      maker=self.maker, fields=self.fields)  # fmt: skip

    def padded(self) -> "Column":
        """The same column where there may be no row."""
        return Column(
            self.name, self.facts, self.uses, is_resolved=self.is_resolved, maker=Padded(self)
        )

    def decided_by(self, uses: Uses) -> "Column":
        """The same column, about which others decide, too."""
        return Column(self.name, self.facts, {**self.uses, **uses},
                      is_resolved=self.is_resolved, maker=self.maker)  # fmt: skip

    def merged(self, other: "Column") -> "Column":
        """The column that takes its values from either."""
        if other is self:
            return self
        facts = dict(self.facts)
        for origin, fact in other.facts.items():
            before = facts.get(origin)
            facts[origin] = fact if before is None else before.beside(fact)
        return Column(
            self.name,
            facts,
            {**self.uses, **other.uses},
            is_resolved=self.is_resolved and other.is_resolved,
            maker=Either((self, other)),
        )


Fields: TypeAlias = Mapping[str, Column]


class Star:
    """Columns whose names nobody knows."""

    def column(self, name: str) -> Column | None:
        """The column of that name, or None if it is certainly not among them."""
        raise NotImplementedError

    def everything(self) -> Column:
        """All of them, as one."""
        raise NotImplementedError

    @property
    def is_likely(self) -> bool:
        """Whether a name without a table is rather looked for here than in what is unlikely."""
        return True


class TableStar(Star):
    """The columns of a table without a known schema."""

    def __init__(self, table: Parts) -> None:
        self.table = table

    def column(self, name: str) -> Column | None:
        return Column(name, {(self.table, name): Fact()}, maker=Stored(self.table, name))

    def everything(self) -> Column:
        return Column(ALL, {(self.table, ALL): Fact(is_star=True)})


class ValueStar(Star):
    """Whatever a table function or the elements of an array hold, all made from the same."""

    def __init__(self, value: Column) -> None:
        self._value = value

    def column(self, name: str) -> Column | None:
        made = self._value.renamed(name)
        if isinstance(self._value.maker, Element):
            made = Column(name, made.facts, made.uses, is_resolved=made.is_resolved,
                          maker=Member(self._value, (name,)))  # fmt: skip
        return made

    def everything(self) -> Column:
        return self._value.renamed(ALL)

    @property
    def is_likely(self) -> bool:
        return False


class LimitedStar(Star):
    """A star without some names, with some of another name."""

    def __init__(
        self, star: Star, excluded: Iterable[str], renamed: Mapping[str, str] | None = None
    ) -> None:
        self._star = star
        self._renamed = {new: old for old, new in (renamed or {}).items()}
        self._excluded = frozenset(excluded) | frozenset(renamed or ())

    def column(self, name: str) -> Column | None:
        if name in self._renamed:
            found = self._star.column(self._renamed[name])
            return found.renamed(name) if found else None
        return None if name in self._excluded else self._star.column(name)

    def everything(self) -> Column:
        return self._star.everything()

    @property
    def is_likely(self) -> bool:
        return self._star.is_likely


class UnionStar(Star):
    """The unknown columns of several queries, laid one over the other by their names."""

    def __init__(self, branches: "list[Relation]") -> None:
        self._branches = branches

    def column(self, name: str) -> Column | None:
        found: Column | None = None
        for branch in self._branches:
            column = branch.find(name) or branch.guess(name)
            if column is not None:
                found = column if found is None else found.merged(column)
        return found

    def everything(self) -> Column:
        found = Column(ALL)
        for branch in self._branches:
            for star in branch.stars:
                found = found.merged(star.everything())
        return found


Item: TypeAlias = Column | Star


class Relation:
    """Columns and stars in their order, what decides about the whole, and what it is made from."""

    __slots__ = ("_by_name", "implicit", "items", "parents", "stars", "table", "uses")

    def __init__(self, items: Iterable[Item] = (), *, table: Parts | None = None) -> None:
        self.items: list[Item] = list(items)
        self.table = table
        self.uses: Uses = {}
        self.parents: list[Relation] = []
        # Names that some dialects give to columns without one.
        self.implicit: dict[str, Column] = {}
        self._by_name: dict[str, Column] = {}
        self.stars: list[Star] = []
        for item in self.items:
            if isinstance(item, Column):
                self._by_name.setdefault(item.name, item)
            else:
                self.stars.append(item)

    @property
    def columns(self) -> list[Column]:
        return [item for item in self.items if isinstance(item, Column)]

    @property
    def is_open(self) -> bool:
        """Whether there may be columns that nobody knows of."""
        return bool(self.stars)

    def find(self, name: str) -> Column | None:
        """The column that certainly has this name."""
        return self._by_name.get(name) or self.implicit.get(name)

    def guess(self, name: str) -> Column | None:
        """The column of this name if it is one of the unknown."""
        found = [(star, column) for star in self.stars if (column := star.column(name)) is not None]
        if len(found) > 1:
            found = [(star, column) for star, column in found if star.is_likely]
        return found[0][1] if len(found) == 1 else None

    def candidates(self, name: str) -> int:
        """How many of the stars may hold a column of this name."""
        return sum(star.column(name) is not None for star in self.stars)

    def under(self, names: list[str]) -> "Relation":
        """The same with its columns called as told; those of a star are told apart by nothing."""
        if not names:
            return self
        items = list(self.items)
        for position, name in enumerate(names):
            if position >= len(items):
                break
            item = items[position]
            if isinstance(item, Star):
                whole = item.everything()
                items[position:] = [whole.renamed(each) for each in names[position:]]
                break
            items[position] = item.renamed(name)
        made = Relation(items, table=self.table)
        made.uses, made.parents = self.uses, self.parents
        return made

    def everything(self) -> Iterator[Column]:
        """Every column, unknown ones as `*`."""
        for item in self.items:
            yield item if isinstance(item, Column) else item.everything()

    def ancestry(self) -> "Iterator[Relation]":
        """This and all that it is made from, each once."""
        seen: set[int] = set()
        waiting = [self]
        while waiting:
            relation = waiting.pop()
            if id(relation) not in seen:
                seen.add(id(relation))
                yield relation
                waiting += reversed(relation.parents)
