"""Converts CREATE, INSERT, UPDATE and MERGE to queries that return the written values."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from sqlglot import exp

_CONSTANT_COLUMN: Final = "one"


class UnsupportedStatement(Exception):
    """A statement that cannot be expressed as a query."""


class StatementQuery(NamedTuple):
    """A query, and the columns in which its result is stored.

    `columns` are those that the statement lists. Without them, an existing table is filled by
    position unless `is_by_name`: all columns except `static_partitions`, with `dynamic_partitions`
    at the end. `creates` means that the result defines the table.
    """

    query: exp.Query
    creates: bool = False
    columns: tuple[str, ...] = ()
    is_by_name: bool = False
    # Whether every column of the table must be supplied, as by the stars of MERGE.
    needs_all_columns: bool = False
    static_partitions: tuple[str, ...] = ()
    dynamic_partitions: tuple[str, ...] = ()
    # Whether the result is stored; False for DELETE.
    stores: bool = True


def queries_of(node: exp.Expr) -> Sequence[StatementQuery]:
    """The queries of a statement; empty if it writes no computed values."""
    readers = (read_queries for kind, read_queries in _READERS_BY_KIND if isinstance(node, kind))
    return [_with_outer_ctes(each, node) for read_queries in readers for each in read_queries(node)]


def declared_table(node: exp.Expr) -> tuple[exp.Expr, exp.Select] | None:
    """A table declared with column types, and a query with the same columns."""
    schema: exp.Expr | None = None
    table: exp.Expr | None = None
    if isinstance(node, exp.Create) and isinstance(node.this, exp.Schema):
        schema, table = node.this, node.this.this
    elif isinstance(node, exp.DeclareItem) and isinstance(node.args.get("kind"), exp.Schema):
        schema, table = node.args["kind"], exp.Table(this=node.this[0])
    columns = [
        exp.alias_(exp.cast(exp.null(), each.args["kind"].copy()), each.this.copy())
        for each in (schema.expressions if schema is not None else ())
        if isinstance(each, exp.ColumnDef) and isinstance(each.args.get("kind"), exp.DataType)
    ]
    if table is None or not columns:
        return None
    return table, exp.Select(expressions=columns)


def _with_outer_ctes(statement_query: StatementQuery, node: exp.Expr) -> StatementQuery:
    """Add the CTEs of the statement to one of its queries."""
    outer_with = node.args.get("with_")
    if outer_with is None or statement_query.query is node:
        return statement_query
    inner_with = statement_query.query.args.get("with_")
    with_clause = outer_with.copy()
    if inner_with is not None:
        with_clause.set("expressions", [*with_clause.expressions, *inner_with.copy().expressions])
    query = statement_query.query.copy()
    query.set("with_", with_clause)
    return statement_query._replace(query=query)


def _as_query(node: object) -> exp.Query | None:
    if isinstance(node, exp.Table):
        return exp.select("*").from_(node.copy())
    if isinstance(node, exp.Subquery) and not node.args.get("alias"):
        return _as_query(node.this)
    return node if isinstance(node, exp.Query) else None


def _create(node: exp.Create) -> Iterator[StatementQuery]:
    clone = node.args.get("clone")
    query = _as_query(clone.this if clone is not None else node.args.get("expression"))
    if query is None:
        return
    columns = node.this.expressions if isinstance(node.this, exp.Schema) else ()
    yield StatementQuery(query, creates=True, columns=tuple(_column_names(columns)))


def _column_names(nodes: Sequence[exp.Expr]) -> Iterator[str]:
    for each in nodes:
        if isinstance(each, exp.ColumnDef | exp.Identifier | exp.Column):
            yield each.name


def _select(node: exp.Query) -> Iterator[StatementQuery]:
    copy = node.copy()
    first = copy
    while isinstance(first, exp.SetOperation):
        first = first.this
    if first.args.get("into") is not None:
        first.set("into", None)
        yield StatementQuery(copy, creates=True)


def _alter(node: exp.Alter) -> Iterator[StatementQuery]:
    for action in node.args.get("actions") or ():
        if isinstance(action, exp.Query):
            yield StatementQuery(action, creates=True)


def _insert(node: exp.Insert) -> Iterator[StatementQuery]:
    query = _as_query(node.args.get("expression") or node.args.get("source"))
    if query is None:
        return
    listed_columns = (
        tuple(_column_names(node.this.expressions)) if isinstance(node.this, exp.Schema) else ()
    )
    static_partitions, dynamic_partitions = _partitions(node)
    yield StatementQuery(
        query,
        columns=listed_columns,
        is_by_name=bool(node.args.get("by_name")),
        static_partitions=static_partitions,
        dynamic_partitions=dynamic_partitions,
    )
    conflict = node.args.get("conflict")
    if conflict is not None and conflict.expressions:
        yield _on_conflict(node, conflict, query, listed_columns)


def _partitions(node: exp.Insert) -> tuple[tuple[str, ...], tuple[str, ...]]:
    partition = node.args.get("partition") or node.this.args.get("partition")
    parts = partition.expressions if isinstance(partition, exp.Partition) else ()
    static_partitions = tuple(each.this.name for each in parts if isinstance(each, exp.EQ))
    return static_partitions, tuple(each.name for each in parts if not isinstance(each, exp.EQ))


def _on_conflict(
    node: exp.Insert, conflict: exp.Expr, query: exp.Query, listed_columns: Sequence[str]
) -> StatementQuery:
    """The assignments of ON CONFLICT, over the target and the row to be inserted."""
    if not listed_columns:
        raise UnsupportedStatement("ON CONFLICT without a column list is not supported")
    rows = exp.Subquery(
        this=query.copy(),
        alias=exp.TableAlias(
            this=exp.to_identifier("excluded"),
            columns=[exp.to_identifier(name, quoted=True) for name in listed_columns],
        ),
    )
    target = node.this.this if isinstance(node.this, exp.Schema) else node.this
    return _assignment_query(conflict.expressions, [target, rows], where=conflict.args.get("where"))


def _update(node: exp.Update) -> Iterator[StatementQuery]:
    from_clause = node.args.get("from_")
    sources = [node.this]
    if from_clause is not None:
        source_names = {
            each.alias_or_name.lower()
            for each in from_clause.find_all(exp.Table, exp.Subquery)
            if each.parent is from_clause or isinstance(each.parent, exp.Join)
        }
        is_target_in_from = (
            node.this.alias_or_name.lower() in source_names and not node.this.args.get("db")
        )
        sources = [from_clause.this] if is_target_in_from else [node.this, from_clause.this]
    yield _assignment_query(node.expressions, sources, where=node.args.get("where"))


def _delete(node: exp.Delete) -> Iterator[StatementQuery]:
    if node.args.get("tables"):
        sources = [node.this or node.args["tables"][0]]
    else:
        using = node.args.get("using") or []
        sources = [node.this, *(using if isinstance(using, list) else [using])]
    select = _select_from(
        [exp.alias_(exp.Literal.number(1), _CONSTANT_COLUMN)], sources, node.args.get("where")
    )
    yield StatementQuery(select, stores=False)


def _merge(node: exp.Merge) -> Iterator[StatementQuery]:
    whens = node.args.get("whens")
    for when in whens.expressions if whens is not None else ():
        yield _merge_branch(node, when)


def _merge_branch(node: exp.Merge, when: exp.When) -> StatementQuery:
    target, using, action = node.this, node.args["using"], when.args.get("then")
    first, second, join_type = target, using, ("", "")
    if not when.args.get("matched"):
        # Only rows without a match on the other side are used.
        join_type = ("LEFT", "ANTI")
        first, second = (target, using) if when.args.get("source") else (using, target)
    conditions = [
        each.this if isinstance(each, exp.Where) else each
        for each in (
            when.args.get("condition"),
            action.args.get("where") if isinstance(action, exp.Expr) else None,
        )
        if isinstance(each, exp.Expr)
    ]
    where = exp.Where(this=exp.and_(*conditions)) if conditions else None
    names, values = _merge_values(action, using)
    named_values = zip(names, values, strict=True)
    values = [
        exp.alias_(value, name, quoted=True) if name else value for name, value in named_values
    ]
    select = _select_from(values, [first], where)
    join = exp.Join(this=second.copy(), on=node.args["on"].copy())
    if any(join_type):
        join.set("side", join_type[0])
        join.set("kind", join_type[1])
    select.set("joins", [join])
    has_names = all(names)
    return StatementQuery(
        select,
        columns=tuple(names) if has_names else (),
        is_by_name=not has_names,
        needs_all_columns=not has_names,
        stores=isinstance(action, exp.Update | exp.Insert),
    )


def _merge_values(action: object, using: exp.Expr) -> tuple[list[str], list[exp.Expr]]:
    """The columns that a branch of MERGE sets, and their values; the name of a star is empty."""
    if isinstance(action, exp.Insert):
        values, names = action.args.get("expression"), action.this
        if isinstance(values, exp.Tuple) and isinstance(names, exp.Tuple):
            return _check_counts([each.name for each in names.expressions], values.expressions)
        if isinstance(values, exp.Tuple) and names is None:
            raise UnsupportedStatement("MERGE inserts values without naming columns")
        return [""], [_star_of(using)]
    if isinstance(action, exp.Update):
        if action.expressions and not isinstance(action.expressions[0], exp.EQ):
            return [""], [_star_of(using)]
        pairs = [*_assignments(action.expressions)]
        return [name for name, _ in pairs], [value for _, value in pairs]
    return [_CONSTANT_COLUMN], [exp.Literal.number(1)]


def _star_of(source: exp.Expr) -> exp.Expr:
    return exp.Column(this=exp.Star(), table=exp.to_identifier(source.alias_or_name, quoted=True))


def _check_counts(
    names: list[str], values: Sequence[exp.Expr]
) -> tuple[list[str], list[exp.Expr]]:  # fmt: skip
    """Return the names and copies of the values; raise an error if their numbers differ."""
    if len(names) != len(values):
        raise UnsupportedStatement(
            f"the statement has {len(values)} values for {len(names)} columns"
        )
    return names, [value.copy() for value in values]


def _assignment_query(
    assignments: Sequence[exp.Expr], sources: Sequence[exp.Expr], *, where: exp.Expr | None
) -> StatementQuery:
    assigned = [*_assignments(assignments)]
    select = _select_from(
        [exp.alias_(value, name, quoted=True) for name, value in assigned], sources, where
    )
    return StatementQuery(select, columns=tuple(name for name, _ in assigned))


def _assignments(assignments: Sequence[exp.Expr]) -> Iterator[tuple[str, exp.Expr]]:
    for each in assignments:
        left, right = each.this, each.args.get("expression")
        if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple):
            names, values = _check_counts(
                [part.name for part in left.expressions], right.expressions
            )
            yield from zip(names, values, strict=True)
        elif isinstance(left, exp.Column | exp.Identifier) and isinstance(right, exp.Expr):
            yield left.name, right.copy()
        else:
            raise UnsupportedStatement("SET of several columns by one query is not supported")


def _select_from(
    expressions: list[exp.Expr], sources: Sequence[exp.Expr], where: exp.Expr | None
) -> exp.Select:
    select = exp.Select(expressions=expressions, from_=exp.From(this=sources[0].copy()))
    if len(sources) > 1:
        select.set("joins", [exp.Join(this=each.copy(), kind="CROSS") for each in sources[1:]])
    if where is not None:
        select.set("where", where.copy())
    return select


_READERS_BY_KIND: Final[
    Sequence[tuple[type[exp.Expr], Callable[..., Iterator[StatementQuery]]]]
] = (
    (exp.Create, _create),
    (exp.Query, _select),
    (exp.Alter, _alter),
    (exp.Cache, _create),
    (exp.Insert, _insert),
    (exp.Update, _update),
    (exp.Delete, _delete),
    (exp.Merge, _merge),
)
