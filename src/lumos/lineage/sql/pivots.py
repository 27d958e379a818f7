"""Rows turned into columns, and columns into rows."""

from typing import TYPE_CHECKING

from sqlglot import exp

from lumos.lineage.sql.reading import Reading, Role
from lumos.lineage.sql.relation import Column, Item, LimitedStar, Relation, Star
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
    kept: list[Item] = []
    for item in relation.items:
        if isinstance(item, Star):
            kept.append(LimitedStar(item, gone))
        elif item.name not in gone:
            kept.append(item)
    group = pivot.args.get("group")
    if isinstance(group, exp.Group):
        names = {queries.name(each.this) for each in group.find_all(exp.Column)}
        kept = [item for item in kept if isinstance(item, Column) and item.name in names]
    result = Relation([*kept, *made])
    result.parents = [relation]
    return result


def _pivoted(
    queries: "QueryReader", pivot: exp.Expr, fields: list[exp.In], scope: Scope
) -> tuple[list[Column], set[str]]:
    reading = Reading()
    for each in (*pivot.expressions, *pivot.args.get("using", [])):
        queries.expressions.read([each], scope, Role(Clause.ITEM), into=reading)
    deciding = Reading()
    role = Role(Clause.ITEM, UseKind.CONDITIONAL)
    for field in fields:
        queries.expressions.read([field.this], scope, role, into=deciding)
    uses = {**reading.uses, **deciding.uses}
    gone = {queries.name(column.this) for each in (*pivot.expressions, *fields)
            for column in _own_columns(each)}  # fmt: skip
    columns = [
        Column(name, reading.facts, uses, is_resolved=reading.is_resolved)
        for name in _names(queries, pivot, fields)
    ]
    return columns, gone


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
