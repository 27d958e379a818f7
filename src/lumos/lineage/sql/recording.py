"""Edges from what statements return and write."""

from collections.abc import Iterator

import msgspec

from lumos.lineage.jinja import UNKNOWN
from lumos.lineage.reported import Coverage
from lumos.lineage.sql.names import Spellings
from lumos.lineage.sql.relation import Column, Excerpt, Fact, Relation, Star, Use
from lumos.lineage.sql.script import ALL, ColumnEdge, Parts


class Recorder:
    """Collects the edges of a script, each once, in the order in which they are found."""

    def __init__(self) -> None:
        self.edges: dict[ColumnEdge, None] = {}
        self.columns = 0
        self.resolved = 0
        self.has_templates = False
        self._seen: set[tuple[object, ...]] = set()
        self._texts: dict[Excerpt, str | None] = {}
        self._line = 1

    @property
    def coverage(self) -> Coverage:
        return Coverage(columns=self.columns, resolved=self.resolved)

    def record(
        self, statement: int, line: int, table: Parts | None, result: Relation,
        *, positional: bool = False,
    ) -> None:  # fmt: skip
        """The edges from all that a result is made from into a table, or into nothing."""
        self._line = line
        for item in result.items:
            is_star = isinstance(item, Star)
            column = item.everything() if isinstance(item, Star) else item
            self.columns += 1
            is_known = column.is_resolved and not is_star
            self.resolved += is_known and not (self.has_templates and _is_made_up(table, column))
            self._column(statement, table, column, positional=positional)
        for relation in result.ancestry():
            for use in relation.uses:
                self._use(statement, table, None, use)

    def see(self, spellings: Spellings) -> None:
        """Tells how the names of all edges are written."""
        for edge in self.edges:
            spellings.see(edge.from_table, edge.from_column)
            spellings.see(edge.to_table or (), edge.to_column)

    def spelled_edges(self, spellings: Spellings) -> Iterator[ColumnEdge]:
        """The edges with every name written the same everywhere."""
        for edge in self.edges:
            target, column = edge.to_table, edge.to_column
            yield msgspec.structs.replace(
                edge,
                from_table=spellings.table(edge.from_table),
                from_column=spellings.column(edge.from_table, edge.from_column),
                to_table=None if target is None else spellings.table(target),
                to_column=None if column is None else spellings.column(target or (), column),
            )

    def rename(self, before: Parts, after: Parts) -> None:
        """A table that the script wrote goes on under another name."""
        self.edges = {
            msgspec.structs.replace(edge, to_table=after) if edge.to_table == before else edge: None
            for edge in self.edges
        }

    def _column(
        self, statement: int, table: Parts | None, column: Column, *, positional: bool
    ) -> None:
        flows = (
            (source, name, fact)
            for (source, name), facts in column.facts.items()
            for fact in facts.each()
        )
        for source, name, fact in flows:
            self._add(
                ColumnEdge(
                    from_table=source,
                    from_column=name,
                    to_table=table,
                    to_column=column.name,
                    statement=statement,
                    derivation=fact.derivation,
                    expression=self._text(fact),
                    cast_to=fact.cast_to,
                    positional=positional,
                    star=fact.is_star,
                    line=fact.excerpt.line if fact.excerpt is not None else self._line,
                )
            )
        for use in column.uses:
            self._use(statement, table, column.name, use)

    def _use(self, statement: int, table: Parts | None, column: str | None, use: Use) -> None:
        source, name = use.origin
        self._add(
            ColumnEdge(
                from_table=source,
                from_column=name,
                to_table=table,
                to_column=column,
                statement=statement,
                usage=use.usage,
                expression=self._text(use),
                cast_to=use.cast_to,
                negated=use.negated,
                line=use.excerpt.line if use.excerpt is not None else self._line,
            )
        )

    def _text(self, told: Fact | Use) -> str | None:
        excerpt = told.excerpt
        if excerpt is None:
            return ALL if isinstance(told, Fact) and told.is_star else None
        if excerpt not in self._texts:
            self._texts[excerpt] = excerpt.text
        return self._texts[excerpt]

    def _add(self, edge: ColumnEdge) -> None:
        # The same use on two lines of one clause is one use.
        key = (
            edge.from_table, edge.from_column, edge.to_table, edge.to_column, edge.statement,
            edge.usage, edge.expression, edge.cast_to, edge.negated,
        )  # fmt: skip
        if key not in self._seen:
            self._seen.add(key)
            self.edges[edge] = None


def _is_made_up(table: Parts | None, column: Column) -> bool:
    """Whether a template that nobody rendered stands for some of the names."""
    names = (*(table or ()), column.name)
    return any(UNKNOWN in name for name in names) or any(
        UNKNOWN in name for source, origin in column.facts for name in (*source, origin)
    )
