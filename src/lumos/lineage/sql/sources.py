"""What stands in FROM: tables, queries, joins, table functions, pivots."""

from collections.abc import Callable, Collection, Iterable
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from lumos.lineage.sql.pivots import matched, pivoted, turned
from lumos.lineage.sql.reading import Reading, Role
from lumos.lineage.sql.relation import Column, Element, Item, Relation, Use, ValueStar
from lumos.lineage.sql.scope import Scope, Source, Unknown
from lumos.lineage.sql.script import Parts
from lumos.lineage.sql.texts import Clause, place_of
from lumos.model.lineage import Derivation, UseKind

if TYPE_CHECKING:
    from lumos.lineage.sql.queries import QueryReader

_ONE_SIDED: Final = frozenset({"SEMI", "ANTI"})
_READERS: Final = frozenset(
    {"readparquet", "parquetscan", "readcsv", "readcsvauto", "readjson", "readjsonauto",
     "readndjson", "icebergscan", "deltascan"}
)  # fmt: skip
# What Snowflake's FLATTEN returns.
_FLATTENED: Final = ("seq", "key", "path", "index", "value", "this")


class Sources:
    """Reads FROM and its joins into a scope; what decides about the result goes to `clauses`."""

    def __init__(self, queries: "QueryReader") -> None:
        self._queries = queries

    def fill(self, node: exp.Expr, scope: Scope, clauses: Relation) -> None:
        """All that a SELECT, an UPDATE or a DELETE reads from."""
        scope.witnesses = self._witnesses(node)
        start = node.args.get("from_")
        if start is not None:
            self.add(start.this, scope, clauses)
        match = node.args.get("match")
        if match is not None and scope.sources:
            source = scope.sources.pop()
            relation = matched(self._queries, match, source.relation, scope)
            self._append(scope, match.args.get("alias"), relation, match)
        self._joined(node, scope, clauses)
        for window in node.args.get("windows") or ():
            scope.windows[self._queries.name(window.this)] = window

    def _joined(self, node: exp.Expr, scope: Scope, clauses: Relation) -> None:
        hidden: list[Source] = []
        conditions: list[exp.Expr] = []
        joins = node.args.get("joins") or []
        laterals = node.args.get("laterals") or []
        for lateral in laterals:
            if not joins or _starts_before(lateral, joins[0]):
                self.add(lateral, scope, clauses)
        for join in joins:
            before = len(scope.sources)
            self.add(join.this, scope, clauses)
            if self._queries.watcher is not None:
                self._queries.watcher.joined(join, scope, before)
            self._shared(join, scope, before, clauses)
            for key in ("on", "match_condition"):
                if join.args.get(key) is not None:
                    conditions.append(join.args[key])
            if _is_one_sided(join):
                hidden += scope.sources[before:]
        for lateral in laterals:
            if joins and not _starts_before(lateral, joins[0]):
                self.add(lateral, scope, clauses)
        for condition in conditions:
            self._queries.decide(condition, scope, clauses, UseKind.JOIN, Clause.ON)
        if hidden:
            clauses.parents += [source.relation for source in hidden]
            scope.sources = [each for each in scope.sources if not any(each is h for h in hidden)]

    def _witnesses(self, node: exp.Expr) -> Callable[[], Collection[tuple[str, str]]]:
        """The qualified names of a query, which are looked for once somebody asks."""

        @cache
        def found() -> Collection[tuple[str, str]]:
            qualified = (column for column in node.find_all(exp.Column) if column.args.get("table"))
            names = (self._queries.parts(column) for column in qualified)
            # In `a.b.c`, `b` may be a column of the source `a`, or a source with the column `c`.
            return {pair for parts in names for pair in pairwise(parts)}

        return found

    def add(self, node: exp.Expr, scope: Scope, clauses: Relation) -> None:
        """One item of FROM, with the joins inside of it."""
        alias = node.args.get("alias")
        if isinstance(node, exp.Table):
            self._table(node, scope, clauses)
        elif isinstance(node, exp.Subquery):
            self._subquery(node, scope, clauses)
        elif isinstance(node, exp.Lateral):
            self._lateral(node, scope, clauses)
        elif isinstance(node, exp.Unnest):
            self._unnest(node, scope, clauses)
        elif isinstance(node, exp.Values):
            relation = self._values(node, scope, clauses)
            self._append(scope, alias, relation, node)
        elif isinstance(node, exp.Pivot):
            self._turned(node, scope, clauses)
        elif isinstance(node, exp.Final):
            self.add(node.this, scope, clauses)
        elif isinstance(node, exp.Stream) and isinstance(node.this, exp.Subquery):
            # Databricks reads a table as it grows.
            table = node.this.this
            if alias is not None:
                table.set("alias", alias)
            self.add(table, scope, clauses)
        elif isinstance(node, exp.Query):
            relation = self._queries.read(node, scope.outer, scope.ctes)
            self._append(scope, alias, relation, node)
        else:
            self._function(node, alias, scope, clauses)
        if isinstance(node, exp.Table | exp.Subquery):
            self._joined(node, scope, clauses)

    def _append(
        self, scope: Scope, alias: exp.Expr | None, relation: Relation, node: exp.Expr,
        *, parts: Parts = (), is_value: bool = False,
    ) -> None:  # fmt: skip
        relation = self._queries.under(self._columns_of(alias), relation)
        name = self._queries.name(alias.this) if alias is not None and alias.this else ""
        name = name or (parts[-1] if parts else "")
        for pivot in node.args.get("pivots") or ():
            relation = pivoted(self._queries, pivot, relation, scope)
            given = pivot.args.get("alias")
            if given is not None:
                name, parts = self._queries.name(given.this) or name, ()
                relation = relation.under(self._columns_of(given))
        scope.sources.append(Source(name, relation, parts, is_value))

    def _columns_of(self, alias: exp.Expr | None) -> list[str]:
        columns = alias.args.get("columns") if alias is not None else None
        return [self._queries.name(each.this if isinstance(each, exp.ColumnDef) else each)
                for each in columns or ()]  # fmt: skip

    def _table(self, node: exp.Table, scope: Scope, clauses: Relation) -> None:
        alias = node.args.get("alias")
        if node.args.get("rows_from"):
            for each in node.args["rows_from"]:
                self._function(each.this, alias, scope, clauses)
            return
        if isinstance(node.this, exp.Var | exp.Literal):
            # Files, such as Snowflake's @stage or 's3://bucket/data.parquet'.
            self._append(scope, alias, Relation([ValueStar(Column("*"))]), node)
            return
        if isinstance(node.this, exp.Values):
            self._append(scope, alias, self._values(node.this, scope, clauses), node)
            return
        if isinstance(node.this, exp.Query):
            relation = self._queries.read(node.this, scope.outer, scope.ctes)
            self._append(scope, alias, relation, node)
            return
        file = _file_of(node.this)
        if file is not None:
            relation = self._queries.context.table((file,))
            self._append(scope, alias, relation, node, parts=(file,))
            return
        if isinstance(node.this, exp.Func) and not _is_told(node.this):
            if isinstance(node.this, exp.DynamicIdentifier):
                self._queries.report("a table whose name is made while it runs", None)
            self._function(node.this, alias, scope, clauses, holder=node)
            return
        parts = self.table_name(node)
        if len(parts) == 1 and parts[0] in scope.ctes:
            relation = scope.ctes[parts[0]]
        elif self._queries.context.habits.has_paths_in_from and self._is_path(parts, scope):
            self._path(node, parts, scope)
            return
        else:
            relation = self._queries.context.table(parts)
        self._append(scope, alias, relation, node, parts=parts)

    def table_name(self, node: exp.Table) -> Parts:
        """The name of a table; variables and temporary ones keep their marks, and nothing else."""
        if isinstance(node.this, exp.Parameter):
            return (f"@{self._queries.name(node.this.this)}",)
        if _is_told(node.this):
            return tuple(part.strip('"').lower() for part in node.this.name.split("."))
        parts = self._queries.context.folding.table(node)
        return parts[-1:] if parts and parts[-1].startswith("#") else parts

    def _is_path(self, parts: Parts, scope: Scope) -> bool:
        return len(parts) > 1 and scope.source(parts[:1]) is not None

    def _path(self, node: exp.Table, parts: Parts, scope: Scope) -> None:
        """An array of a table that stands before: `FROM orders o, o.items i`."""
        found = scope.resolve(parts)
        column = found if isinstance(found, Column) else Column(parts[-1])
        reading = Reading()
        reading.take(column, Role(Clause.ITEM, derivation=Derivation.TRANSFORMATION), None)
        alias = node.args.get("alias")
        relation = Relation([ValueStar(reading.column(parts[-1]))])
        name = self._queries.name(alias.this) if alias is not None else parts[-1]
        scope.sources.append(Source(name, relation, (), True))

    def _subquery(self, node: exp.Subquery, scope: Scope, clauses: Relation) -> None:
        alias = node.args.get("alias")
        is_join = _is_join_in_brackets(node.this)
        if is_join and alias is None:
            self.add(node.this, scope, clauses)
            return
        if is_join:
            inner = self._queries.scope(scope.outer, scope.ctes)
            made = Relation()
            self.add(node.this, inner, made)
            relation = self._queries.context.bound(
                Relation(item for each in inner.sources for item in each.relation.items)
            )
            relation.uses = made.uses
            relation.parents = [*made.parents, *(each.relation for each in inner.sources)]
        else:
            ctes = self._queries.with_queries(node, scope.outer, scope.ctes)
            relation = self._queries.read(node.this, scope.outer, ctes)
        self._append(scope, alias, relation, node)

    def _turned(self, node: exp.Pivot, scope: Scope, clauses: Relation) -> None:
        inner = self._queries.scope(scope.outer, scope.ctes)
        self.add(node.this, inner, clauses)
        relation = turned(self._queries, node, inner.sources[0].relation, scope)
        self._append(scope, node.args.get("alias"), relation, node)

    def _lateral(self, node: exp.Lateral, scope: Scope, clauses: Relation) -> None:
        alias = node.args.get("alias")
        if isinstance(node.this, exp.Query):
            relation = self._queries.query(node.this, scope)
            self._append(scope, alias, relation, node)
        elif isinstance(node.this, exp.Unnest):
            self._unnest(node.this, scope, clauses, alias=alias)
        else:
            self._function(node.this, alias, scope, clauses, holder=node)

    def _unnest(
        self, node: exp.Unnest, scope: Scope, clauses: Relation, *, alias: exp.Expr | None = None
    ) -> None:
        alias = alias or node.args.get("alias")
        values = [self._value([each], scope, clauses) for each in node.expressions]
        for value, each in zip(values, node.expressions, strict=True):
            value.maker = Element(each)
        names = self._columns_of(alias)
        has_name = alias is not None and alias.this is not None
        offset = node.args.get("offset")
        # The place of an element is made from nothing of it.
        counted = [Column(self._queries.name(offset))] if isinstance(offset, exp.Expr) else []
        if not has_name and len(names) == 1:
            # The alias names the elements themselves.
            relation = Relation([ValueStar(values[0].renamed(names[0])), *counted])
            scope.sources.append(Source(names[0], relation, (), True))
            return
        items: list[Item] = []
        if names:
            for position, name in enumerate(names):
                items.append(values[min(position, len(values) - 1)].renamed(name))
        else:
            items = [ValueStar(value) for value in values]
        name = self._queries.name(alias.this) if alias is not None and has_name else ""
        scope.sources.append(Source(name, Relation([*items, *counted]), (), not names))

    def _value(self, nodes: Iterable[exp.Expr], scope: Scope, clauses: Relation) -> Column:
        role = Role(Clause.ITEM, derivation=Derivation.TRANSFORMATION)
        reading = self._queries.expressions.read(nodes, scope, role)
        clauses.parents += reading.relations
        return reading.column("*")

    def _values(self, node: exp.Values, scope: Scope, clauses: Relation) -> Relation:
        columns: list[Column] = []
        for row in node.expressions:
            cells = row.expressions if isinstance(row, exp.Tuple) else [row]
            for position, cell in enumerate(cells):
                value = self._value([cell], scope, clauses)
                value.maker = cell
                if position < len(columns):
                    columns[position] = columns[position].merged(value)
                else:
                    columns.append(value.renamed(f"column{position + 1}"))
        relation = Relation(columns)
        relation.implicit = {
            f"col{position}": column for position, column in enumerate(columns, start=1)
        }
        return relation

    def _function(
        self, node: exp.Expr, alias: exp.Expr | None, scope: Scope, clauses: Relation,
        *, holder: exp.Expr | None = None,
    ) -> None:  # fmt: skip
        """A table function: every column that it returns is made from its arguments."""
        value = self._value([node], scope, clauses)
        names = self._columns_of(alias) or [
            self._queries.name(each.this) for each in _defined_columns(node)
        ]
        if self._queries.context.habits.flattens and isinstance(node.this, exp.Explode):
            names = names or list(_FLATTENED)
        places = self._places(node, holder, names)
        items: list[Item] = [
            Column(name) if name in places else value.renamed(name) for name in names
        ] or [ValueStar(value)]
        name = self._queries.name(alias.this) if alias is not None and alias.this else ""
        scope.sources.append(Source(name, Relation(items), (), not names))

    def _places(self, node: exp.Expr, holder: exp.Expr | None, names: list[str]) -> set[str]:
        """Which columns of a table function only count its rows."""
        if isinstance(node, exp.Posexplode):
            return set(names[:1])
        if holder is not None and holder.args.get("ordinality"):
            return set(names[-1:])
        is_flattened = names == list(_FLATTENED) and self._queries.context.habits.flattens
        return {"seq", "index"} if is_flattened else set()

    def _shared(self, join: exp.Expr, scope: Scope, before: int, clauses: Relation) -> None:
        """USING and NATURAL make one column of two."""
        left = self._queries.scope(scope.outer, scope.ctes)
        left.sources, left.merged = scope.sources[:before], scope.merged
        right = self._queries.scope(None, scope.ctes)
        right.sources = scope.sources[before:]
        using = join.args.get("using") or ()
        clause = Clause.ON
        names = {self._queries.name(each): place_of(each) for each in using}
        if join.args.get("method") == "NATURAL":
            clause = Clause.JOIN
            place = place_of(join.this)
            names = dict.fromkeys(self._common(left, right, place), place)
        for name, offset in names.items():
            sides = [self._side(name, each, offset) for each in (left, right)]
            reading = Reading()
            for side in sides:
                if side is not None:
                    reading.take(side, Role(Clause.ON, UseKind.JOIN), None)
            excerpt = self._queries.excerpt(offset, clause)
            for use in reading.uses:
                clauses.uses[Use(use.origin, use.usage, excerpt)] = None
            if self._queries.watcher is not None:
                self._queries.watcher.shared(name, sides, excerpt)
            scope.merged[name] = _one_of(sides[:1] if _is_one_sided(join) else sides, name)

    def _side(self, name: str, scope: Scope, offset: int | None) -> Column | None:
        found = scope.resolve((name,))
        if isinstance(found, Unknown):
            self._queries.report(found.reason, offset, is_remark=found.column is not None)
            found = found.column
        if found is not None:
            self._queries.mention(found)
        return found

    def _common(self, left: Scope, right: Scope, offset: int | None) -> list[str]:
        sides = [[column.name for source in scope.sources for column in source.relation.columns]
                 for scope in (left, right)]  # fmt: skip
        if any(source.relation.is_open for scope in (left, right) for source in scope.sources):
            self._queries.report("NATURAL JOIN of tables whose columns are not known", offset)
        there = set(sides[1])
        return [name for name in dict.fromkeys(sides[0]) if name in there]


def _one_of(sides: list[Column | None], name: str) -> Column:
    """The standard's COALESCE of both sides."""
    found: Column | None = None
    for side in sides:
        if side is not None:
            found = side if found is None else found.merged(side)
    return found or Column(name, is_resolved=False)


def _is_join_in_brackets(node: exp.Expr) -> bool:
    """Whether brackets hold items of FROM, however deep, and not a query."""
    while isinstance(node, exp.Subquery):
        if node.args.get("alias") is not None or node.args.get("joins"):
            return True
        node = node.this
    return isinstance(node, exp.Table)


def _is_one_sided(join: exp.Expr) -> bool:
    """Whether the right side only decides which rows of the left there are."""
    return join.args.get("kind") in _ONE_SIDED or join.args.get("side") in _ONE_SIDED


def _is_told(node: exp.Expr) -> bool:
    """Whether Snowflake's IDENTIFIER('name') says which table it is."""
    return isinstance(node, exp.DynamicIdentifier) and isinstance(node.this, exp.Literal)


def _file_of(node: exp.Expr) -> str | None:
    """The file that read_parquet('s3://bucket/name') and its like read, if it says where."""
    name = node.name if isinstance(node, exp.Anonymous) else node.key
    arguments = node.expressions or [node.this]
    is_reader = name.lower().replace("_", "") in _READERS
    if not is_reader or not arguments or not isinstance(arguments[0], exp.Literal):
        return None
    file = arguments[0].name
    return file if "://" in file or file.startswith("/") else None


def _defined_columns(node: exp.Expr) -> list[exp.Expr]:
    """The columns that OPENJSON ... WITH, JSON_TABLE and their like declare."""
    return list(node.find_all(exp.OpenJSONColumnDef, exp.JSONColumnDef, exp.ColumnDef))


def _starts_before(one: exp.Expr, other: exp.Expr) -> bool:
    first, second = place_of(one), place_of(other)
    return first is not None and second is not None and first < second
