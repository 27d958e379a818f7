"""In what way a part of an expression counts, and what is found in it."""

from collections.abc import Callable
from typing import NamedTuple

from sqlglot import exp

from lumos.lineage.sql.relation import (
    Column,
    Excerpt,
    Fact,
    Facts,
    Relation,
    Use,
    Uses,
)
from lumos.lineage.sql.script import Parts
from lumos.lineage.sql.texts import Clause
from lumos.model.lineage import Derivation, UseKind


class Role(NamedTuple):
    """In what way a part of an expression counts."""

    clause: Clause
    usage: UseKind | None = None
    derivation: Derivation = Derivation.IDENTITY
    cast_to: str | None = None
    negated: bool = False
    end: int | None = None
    aliases_first: bool = False
    # The parameters of a lambda around it.
    locals: frozenset[str] = frozenset()

    def changed(self) -> "Role":
        """The role of a part that is no longer the value itself."""
        if self.derivation is not Derivation.IDENTITY:
            return self
        return self._replace(derivation=Derivation.TRANSFORMATION)

    def deciding(self, usage: UseKind, clause: Clause) -> "Role":
        """The role of a part that only decides; in a clause that decides, all do alike."""
        if self.usage is not None:
            return self
        return self._replace(usage=usage, clause=clause, cast_to=None)


class Reading:
    """What is found in an expression."""

    __slots__ = ("facts", "is_resolved", "relations", "uses")

    def __init__(self) -> None:
        self.facts: Facts = {}
        self.uses: Uses = {}
        self.relations: list[Relation] = []
        self.is_resolved = True

    def column(self, name: str, *, maker: exp.Expr | None = None) -> Column:
        """A column of this value, which an expression makes."""
        return Column(name, self.facts, self.uses, is_resolved=self.is_resolved, maker=maker)

    def take(
        self, column: Column, role: Role, excerpt: Excerpt | None, *, is_star: bool = False
    ) -> None:
        """Adds a column that the expression names; `is_star` where it takes all, by no name."""
        if role.usage is not None:
            for origin, fact in column.facts.items():
                cast_to = role.cast_to or fact.cast_to
                self._use(Use(origin, role.usage, excerpt, cast_to, role.negated))
            for use in column.uses:
                self._use(Use(use.origin, role.usage, excerpt, role.cast_to, role.negated))
            return
        later = Fact(role.derivation, role.cast_to, is_star, excerpt)
        for origin, fact in column.facts.items():
            grown = fact.then(later)
            if grown.excerpt is None:
                grown = grown._replace(excerpt=excerpt)
            before = self.facts.get(origin)
            self.facts[origin] = grown if before is None else before.then(grown)
        self.uses.update(column.uses)
        if not column.is_resolved:
            self.is_resolved = False

    def settle(self, spend: Callable[[int], None]) -> list[Relation]:
        """What queries inside decide decides about this value alone; the tables that they read.

        Each table is returned once: with one relation for each time that it is read, a chain of
        queries with two subqueries each would double their number at every level.
        """
        tables: dict[Parts, None] = {}
        for relation in self.relations:
            for each in relation.ancestry():
                spend(1 + len(each.uses))
                self.uses.update(each.uses)
                if each.table is not None:
                    tables[each.table] = None
        self.relations = []
        return [Relation(table=table) for table in tables]

    def _use(self, use: Use) -> None:
        self.uses[use] = None
