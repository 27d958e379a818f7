"""Somebody who sees what the reader of SQL sees, and makes more of it than edges."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from sqlglot import exp

if TYPE_CHECKING:
    from lumos.lineage.sql.relation import Column, Excerpt, Relation
    from lumos.lineage.sql.scope import Scope
    from lumos.lineage.sql.script import Parts
    from lumos.model.lineage import UseKind


class Watcher(Protocol):
    """Is told of every name as it is resolved, and of what meets without being named.

    Of a script that is watched no edges are recorded: the watcher has seen more than they tell.
    """

    def begun(self, node: exp.Expr) -> None:
        """A statement is about to be read."""
        ...

    def named(
        self, node: exp.Expr, column: "Column", usage: "UseKind | None", excerpt: "Excerpt | None"
    ) -> None:
        """A name, or a number in GROUP BY or ORDER BY, means a column."""
        ...

    def joined(self, join: exp.Expr, scope: "Scope", before: int) -> None:
        """The sources from place `before` on were joined to those before them."""
        ...

    def shared(
        self, name: str, sides: "Sequence[Column | None]", excerpt: "Excerpt | None"
    ) -> None:
        """USING or NATURAL compares two columns."""
        ...

    def singled_out(
        self, node: exp.Expr, columns: "Sequence[Column]", excerpt: "Excerpt | None"
    ) -> None:
        """EXCEPT, RENAME or REPLACE beside a star names what the star has to bring."""
        ...

    def taken_whole(
        self, node: exp.Expr, columns: "Sequence[Column]", usage: "UseKind | None",
        excerpt: "Excerpt | None",
    ) -> None:  # fmt: skip
        """All columns are the argument of a function."""
        ...

    def numbered(self, relation: "Relation", names: int) -> None:
        """So many of a relation's columns get other names by their places, as in t(a, b)."""
        ...

    def laid_over(
        self, node: exp.SetOperation, branches: "Sequence[Relation]", *, is_by_name: bool
    ) -> None:
        """The columns of several queries meet."""
        ...

    def written(self, table: "Parts", result: "Relation", *, positional: bool) -> None:
        """A real table gets a result."""
        ...
