"""Queries that stand where a table is changed: what is set there is set in the table behind."""

from lumos.lineage.sql.relation import Column, Item, LimitedStar, Origin, Relation, Star
from lumos.lineage.sql.script import Parts
from lumos.model.lineage import Derivation


def table_behind(query: Relation) -> Parts | None:
    """The table whose rows a query returns, the first if there are several."""
    if query.table is not None:
        return query.table
    for column in query.everything():
        origin = _origin(column)
        if origin is not None:
            return origin[0]
    return None


def columns_behind(query: Relation, result: Relation) -> dict[Parts, Relation]:
    """What is given to the columns of a query, by the tables that it goes to."""
    found: dict[Parts, list[Item]] = {}
    for column in result.columns:
        inside = query.find(column.name) or query.guess(column.name)
        origin = _origin(inside) if inside is not None else None
        if origin is not None:
            found.setdefault(origin[0], []).append(column.renamed(origin[1]))
    table = table_behind(query)
    if not found and table is not None:
        found[table] = []
    made = {table: Relation(items) for table, items in found.items()}
    for relation in made.values():
        relation.parents = [result]
    return made


def replaced(before: Relation, changed: Relation) -> Relation:
    """A table of which some columns have got other values."""
    names = {column.name: column for column in changed.columns}
    items: list[Item] = []
    for item in before.items:
        if isinstance(item, Star):
            items += [*names.values(), LimitedStar(item, names)]
        else:
            items.append(names.get(item.name, item))
    return Relation(items)


def _origin(column: Column) -> Origin | None:
    for origin, fact in column.facts.items():
        if fact.derivation is Derivation.IDENTITY:
            return origin
    return None
