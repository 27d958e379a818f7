"""Which column a name means, among the sources of a query and of those around it."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from sqlglot import exp

from lumos.lineage.sql.relation import Column, Fact, Member, Relation, Row, Stored
from lumos.lineage.sql.script import Parts
from lumos.model.lineage import Derivation


class Source(NamedTuple):
    """Something in FROM: `name` is what columns are qualified with, `parts` its name in full."""

    name: str
    relation: Relation
    parts: Parts = ()
    # The elements of an array: the name is that of the value itself, too.
    is_value: bool = False


class Unknown(NamedTuple):
    """A name that means no column, or several."""

    reason: str
    column: Column | None = None


class Scope:
    """The sources of one query, with the queries around it."""

    def __init__(self, *, outer: "Scope | None" = None, has_structs: bool = False) -> None:
        self.outer = outer
        self.sources: list[Source] = []
        # Columns that USING or NATURAL made one of two.
        self.merged: dict[str, Column] = {}
        self.aliases: dict[str, Column] = {}
        # Qualified names in this query prove that a source has the column.
        self.witnesses: Callable[[], Collection[tuple[str, str]]] = frozenset
        # Rows that a routine holds under a name.
        self.rows: Mapping[str, Relation] = {}
        # Values that WITH gives a name.
        self.values: Mapping[str, Column] = {}
        self.ctes: dict[str, Relation] = {}
        self.windows: dict[str, exp.Expr] = {}
        self.variables: frozenset[str] = outer.variables if outer else frozenset()
        self.has_structs = has_structs

    def resolve(self, parts: Parts, *, aliases_first: bool = False) -> Column | Unknown | None:
        """The column that a name means; None for a variable."""
        if len(parts) == 1:
            return self._unqualified(parts[0], aliases_first=aliases_first)
        for length in range(len(parts) - 1, 0, -1):
            source = self.source(parts[:length])
            if source is not None:
                found = _qualified(source, parts[length])
                if length + 1 < len(parts) and isinstance(found, Column):
                    return _field(found, parts[length + 1 :])
                return found
        holder = self._struct(parts[0], aliases_first=aliases_first)
        if holder is not None:
            return _field(holder, parts[1:]) if isinstance(holder, Column) else holder
        if parts[0] in self.variables:
            return None
        return Unknown(f"no source is called '{'.'.join(parts[:-1])}'")

    def source(self, qualifier: Parts) -> Source | None:
        """The source of that name, here or around."""
        scope: Scope | None = self
        while scope is not None:
            for source in scope.sources:
                if _is_called(source, qualifier):
                    return source
            scope = scope.outer
        scope = self
        while scope is not None:
            for source in scope.sources:
                if source.parts and source.parts[-len(qualifier) :] == qualifier:
                    return source
            scope = scope.outer
        if len(qualifier) == 1 and qualifier[0] in self.rows:
            return Source(qualifier[0], self.rows[qualifier[0]])
        return None

    def _struct(self, name: str, *, aliases_first: bool) -> Column | Unknown | None:
        """The column whose fields are meant by a qualifier that is no source."""
        if aliases_first and name in self.aliases:
            return self.aliases[name]
        for scope in self._outwards():
            is_certain = name in scope.aliases or name in scope.merged
            is_certain = is_certain or any(each.relation.find(name) for each in scope.sources)
            found = scope._here(name) if self.has_structs or is_certain else None
            if found is not None:
                return found
        return None

    def _outwards(self) -> "Iterator[Scope]":
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def _unqualified(self, name: str, *, aliases_first: bool) -> Column | Unknown | None:
        if aliases_first and name in self.aliases:
            return self.aliases[name]
        refused: Unknown | None = None
        for scope in self._outwards():
            found = scope._here(name)
            if isinstance(found, Column):
                return found
            refused = refused or found
        if name in self.variables:
            return None
        if refused is not None:
            return refused
        return self._elsewhere(name)

    def _here(self, name: str) -> Column | Unknown | None:
        if name in self.merged:
            return self.merged[name]
        certain = [
            (source, found) for source in self.sources if (found := source.relation.find(name))
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
        possible = [source for source in self.sources if source.relation.candidates(name)]
        likely = [
            source for source in possible if any(star.is_likely for star in source.relation.stars)
        ] or possible
        chosen = likely
        if len(likely) > 1:
            proven = [source for source in likely if (source.name, name) in self.witnesses()]
            chosen = proven if len(proven) == 1 else likely
        if len(chosen) == 1:
            found = chosen[0].relation.guess(name)
            return found if found is not None else _ambiguous(name, chosen)
        for source in self.sources:
            if source.name == name:
                # A whole row as one value.
                return _whole(source, name)
        return _ambiguous(name, chosen) if chosen else None

    def _elsewhere(self, name: str) -> Column | Unknown:
        """A column that no schema has; if FROM has one table alone, its schema may be old."""
        scope: Scope | None = self
        while scope is not None:
            tables = [source for source in scope.sources if source.relation.table is not None]
            if len(scope.sources) == 1 and len(tables) == 1:
                table = tables[0].relation.table
                assert table is not None
                return Unknown(
                    f"'{name}' is not among the columns known of {'.'.join(table)}",
                    _stored(table, name),
                )
            scope = scope.outer
        names = ", ".join(source.name for source in self.sources)
        return Unknown(f"no source has a column '{name}' (looked in: {names or 'nothing'})")


def _is_called(source: Source, qualifier: Parts) -> bool:
    if len(qualifier) == 1:
        return source.name == qualifier[0]
    return source.parts[-len(qualifier) :] == qualifier


def _qualified(source: Source, name: str) -> Column | Unknown:
    relation = source.relation
    found = relation.find(name) or relation.guess(name)
    if found is not None:
        return found
    if source.is_value:
        return next(relation.everything()).renamed(name)
    if relation.table is not None:
        return Unknown(
            f"'{name}' is not among the columns known of {'.'.join(relation.table)}",
            _stored(relation.table, name),
        )
    if relation.candidates(name) > 1:
        return Unknown(f"'{source.name}.{name}' may come from several tables of unknown columns")
    return Unknown(f"'{source.name}' has no column '{name}'")


def _ambiguous(name: str, sources: list[Source]) -> Unknown:
    names = ", ".join(source.name or ".".join(source.parts) for source in sources)
    return Unknown(f"column '{name}' is ambiguous: it may come from {names}")


def _stored(table: Parts, name: str) -> Column:
    return Column(name, {(table, name): Fact()}, maker=Stored(table, name))


def _field(column: Column, path: Parts) -> Column:
    inside = column.fields.get(path[0]) if column.fields else None
    if inside is not None:
        if len(path) > 1:
            return _field(inside, path[1:])
        return Column(
            path[0], inside.facts, inside.uses, is_resolved=inside.is_resolved,
            maker=Member(column, path), fields=inside.fields,
        )  # fmt: skip
    later = Fact(Derivation.TRANSFORMATION)
    facts = {
        origin: fact.then(later) if fact.derivation is Derivation.IDENTITY else fact
        for origin, fact in column.facts.items()
    }
    return Column(
        path[-1], facts, column.uses, is_resolved=column.is_resolved, maker=Member(column, path)
    )


def _whole(source: Source, name: str) -> Column:
    columns = tuple(source.relation.everything())
    found = Column(name)
    for column in columns:
        found = found.merged(column)
    row = _field(found, (name,))
    row.maker = Row(columns)
    return row
