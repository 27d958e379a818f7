"""Rows turned into columns, and columns into rows."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sqlglot import exp

from lumos.lineage.sql.reading import Reading, Role
from lumos.lineage.sql.relation import Column, Item, LimitedStar, Relation, Star, ValueStar
from lumos.lineage.sql.scope import Scope, Source
from lumos.lineage.sql.texts import Clause
from lumos.model.lineage import Derivation, UseKind

if TYPE_CHECKING:
    from lumos.lineage.sql.queries import QueryReader


def pivoted(queries: "QueryReader", pivot: exp.Expr, relation: Relation, scope: Scope) -> Relation:
    """What PIVOT or UNPIVOT makes of a source."""
    inside = queries.scope(scope.outer, scope.ctes)
    inside.sources = [Source("", relation)]
    fields = [each for each in pivot.args.get("fields") or () if isinstance(each, exp.In)]
    if pivot.args.get("unpivot"):
        made, gone = _unpivoted(queries, pivot, fields, inside)
    else:
        made, gone = _pivoted(queries, pivot, fields, inside)
    kept = _kept(queries, relation, pivot, gone)
    result = Relation([*kept, *made])
    result.parents = [relation]
    return result


def _pivoted(
    queries: "QueryReader", pivot: exp.Expr, fields: list[exp.In], scope: Scope
) -> tuple[list[Column], set[str]]:
    values = [queries.expressions.read([each], scope, Role(Clause.ITEM))
              for each in pivot.expressions]  # fmt: skip
    deciding = Reading()
    role = Role(Clause.ITEM, UseKind.CONDITIONAL)
    for field in fields:
        queries.expressions.read([field.this], scope, role, into=deciding)
    gone = {queries.name(column.this) for each in (*pivot.expressions, *fields)
            for column in _own_columns(each)}  # fmt: skip
    columns: list[Column] = []
    for place, name in enumerate(_names(queries, pivot, fields)):
        # Every value of the field has one column for each aggregate.
        value = values[place % len(values)]
        columns.append(
            Column(
                name, value.facts, {**value.uses, **deciding.uses}, is_resolved=value.is_resolved
            )
        )
    return columns, gone


def turned(queries: "QueryReader", node: exp.Pivot, relation: Relation, scope: Scope) -> Relation:
    """DuckDB's PIVOT and UNPIVOT as queries: the new columns are those that the rows name."""
    inside = queries.scope(scope.outer, scope.ctes)
    inside.sources = [Source("", relation)]
    turned_by = [each.this if isinstance(each, exp.In) else each for each in node.expressions]
    into = node.args.get("into")
    made: list[Item]
    if node.args.get("unpivot"):
        role = Role(Clause.ITEM, derivation=Derivation.TRANSFORMATION)
        value = queries.expressions.read(turned_by, inside, role)
        names = ["name", "value"]
        if isinstance(into, exp.UnpivotColumns):
            names = [queries.name(into.this.this), queries.name(into.expressions[0].this)]
        made = [Column(names[0]), value.column(names[1])]
        gone = _names_in(queries, turned_by)
    else:
        using = node.args.get("using") or []
        value = queries.expressions.read(using, inside, Role(Clause.ITEM))
        role = Role(Clause.ITEM, UseKind.CONDITIONAL)
        queries.expressions.read(turned_by, inside, role, into=value)
        made = [ValueStar(value.column("*"))]
        gone = _names_in(queries, [*turned_by, *using])
    kept = _kept(queries, relation, node, gone)
    result = Relation([*kept, *made])
    result.parents = [relation]
    return result


def _names_in(queries: "QueryReader", nodes: Iterable[exp.Expr]) -> set[str]:
    return {queries.name(column.this) for node in nodes for column in node.find_all(exp.Column)}


def _kept(queries: "QueryReader", relation: Relation, node: exp.Expr, gone: set[str]) -> list[Item]:
    """The columns that stay as they are: those of GROUP BY, or all that are not turned."""
    group = node.args.get("group")
    if isinstance(group, exp.Group):
        names = [queries.name(each.this) for each in group.find_all(exp.Column)]
        found = [relation.find(name) or relation.guess(name) for name in names]
        return [column for column in found if column is not None]
    kept: list[Item] = []
    for item in relation.items:
        if isinstance(item, Star):
            kept.append(LimitedStar(item, gone))
        elif item.name not in gone:
            kept.append(item)
    return kept


def matched(queries: "QueryReader", node: exp.Expr, relation: Relation, scope: Scope) -> Relation:
    """What MATCH_RECOGNIZE finds: the partition, or whole rows, and the measures."""
    # A pattern's variables stand for rows of the one source.
    node = node.transform(
        lambda each: exp.column(each.this) if isinstance(each, exp.Column) else each
    )
    inside = queries.scope(scope.outer, scope.ctes)
    inside.sources = [Source("", relation)]
    items: list[Item] = []
    made = Relation()
    rows = node.args.get("rows")
    if rows is not None and rows.name.upper().startswith("ALL"):
        items += relation.items
    else:
        for part in node.args.get("partition_by") or ():
            reading = queries.expressions.read([part], inside, Role(Clause.ITEM))
            items.append(reading.column(queries.projections.output_name(part)))
    for each in node.args.get("measures") or ():
        reading = queries.expressions.read([each.this], inside, Role(Clause.ITEM))
        items.append(reading.column(queries.projections.output_name(each.this)))
    for each in node.args.get("define") or ():
        queries.decide(each.this, inside, made, UseKind.FILTER, Clause.ITEM)
    result = Relation(items)
    result.parents = [made, relation]
    return result


def _own_columns(node: exp.Expr) -> list[exp.Column]:
    inside = node.this if isinstance(node, exp.In) else node
    return list(inside.find_all(exp.Column))


def _names(queries: "QueryReader", pivot: exp.Expr, fields: list[exp.In]) -> list[str]:
    """The names of the new columns, as the parser made them for the dialect, and as written."""
    names = [queries.name(each) for each in pivot.args.get("columns") or ()]
    is_called = any(isinstance(each, exp.Alias) for each in pivot.expressions)
    if len(pivot.expressions) == 1 and not (is_called and names):
        for field in fields:
            for each in field.expressions:
                alias = each.args.get("alias") if isinstance(each, exp.PivotAlias) else each
                name = queries.name(alias) if alias is not None else ""
                if name and name not in names:
                    names.append(name)
    return list(dict.fromkeys(names))


def _unpivoted(
    queries: "QueryReader", pivot: exp.Expr, fields: list[exp.In], scope: Scope
) -> tuple[list[Column], set[str]]:
    values = [
        queries.name(part)
        for each in pivot.expressions
        for part in (each.expressions if isinstance(each, exp.Tuple) else [each])
    ]
    columns = [Column(name) for name in values]
    made: list[Column] = []
    gone: set[str] = set()
    role = Role(Clause.ITEM, derivation=Derivation.TRANSFORMATION)
    for field in fields:
        for each in field.expressions:
            inside = each.this if isinstance(each, exp.PivotAlias | exp.Alias) else each
            parts = inside.expressions if isinstance(inside, exp.Tuple) else [inside]
            for position, part in enumerate(parts[: len(columns)]):
                reading = queries.expressions.read([part], scope, role)
                columns[position] = columns[position].merged(reading.column(values[position]))
                if isinstance(part, exp.Column):
                    gone.add(queries.name(part.this))
        made.append(Column(queries.name(field.this)))
    return [*made, *columns], gone
