"""What a parsed statement does, by its kind."""

from collections.abc import Mapping, Sequence
from typing import Final

from sqlglot import exp

from lumos.lineage.sql.context import Context
from lumos.lineage.sql.queries import QueryReader
from lumos.lineage.sql.reading import Role
from lumos.lineage.sql.recording import Recorder
from lumos.lineage.sql.relation import Column, Item, Relation, Star
from lumos.lineage.sql.script import ALL, Parts, Statement, TableRead, TableWrite
from lumos.lineage.sql.set_operations import laid_over
from lumos.lineage.sql.texts import Clause
from lumos.lineage.sql.writes import Writes, Written

_ROUTINES: Final = frozenset({"PROCEDURE", "FUNCTION", "TRIGGER", "PACKAGE"})


# What a text that is no SQL looks like to the parser.
_NO_STATEMENTS: Final = (
    exp.Alias, exp.Aliases, exp.Condition, exp.Identifier, exp.Interval, exp.Paren, exp.Tuple,
)  # fmt: skip


def is_statement(node: exp.Expr) -> bool:
    """Whether the parser found a statement, and not just words that look like an expression."""
    return not isinstance(node, _NO_STATEMENTS) or isinstance(node, exp.Query | exp.Command)


def _origins(item: Item) -> int:
    return len(item.facts) + len(item.uses) if isinstance(item, Column) else 1


class StatementReader:
    """Reads statements one after the other, as they change what the next ones see."""

    def __init__(self, context: Context, recorder: Recorder) -> None:
        self._context = context
        self._recorder = recorder
        self._queries = QueryReader(context)
        self._writes = Writes(self._queries)
        self._queries.write = self._written_within
        self._written: list[TableWrite] = []

    def read(self, node: exp.Expr) -> Statement:
        """One statement; its edges go to the recorder."""
        self._written = []
        if self._context.watcher is not None:
            self._context.watcher.begun(node)
        kind = self._dispatch(node)
        reads = tuple(
            TableRead(table=table, columns=tuple(sorted(columns)))
            for table, columns in sorted(self._context.reads.items())
        )
        return Statement(
            number=self._context.statement,
            line=self._context.line,
            kind=kind,
            reads=reads,
            writes=tuple(dict.fromkeys(self._written)),
        )

    def rows(self, node: exp.Expr) -> Relation:
        """The rows of a query that a cursor or a loop goes over."""
        return self._queries.read(node, None, {})

    def table(self, node: exp.Table) -> Relation:
        """The rows of a table, without reading it."""
        return self._context.table(self._queries.sources.table_name(node), is_read=False)

    def _dispatch(self, node: exp.Expr) -> str:
        if isinstance(node, exp.Create):
            return self._create(node)
        if isinstance(node, exp.MultitableInserts):
            return self._multitable(node)
        if isinstance(node, exp.Insert) and isinstance(node.this, exp.Directory):
            self._record(None, self._queries.read(node.expression, None, {}))
            return "INSERT"
        if isinstance(node, exp.Insert | exp.Update | exp.Delete | exp.Merge):
            for written in self._writes.read(node, {}):
                self._keep(written)
            return node.key.upper()
        if isinstance(node, exp.Query | exp.Values) or (
            isinstance(node, exp.Table | exp.From) and node.parent is None
        ):
            return self._select(node)
        if isinstance(node, exp.Copy):
            self._copy(node)
        elif isinstance(node, exp.Drop):
            self._drop(node)
        elif isinstance(node, exp.Alter):
            self._alter(node)
        elif _is_dynamic(node):
            self._context.report("SQL that is made while it runs is not read", None, is_remark=True)
        elif isinstance(node, exp.Declare | exp.Set):
            self._declare(node)
        elif isinstance(node, exp.Cache):
            return self._cache(node)
        return node.key.upper()

    def _written_within(self, node: exp.Expr, ctes: Mapping[str, Relation]) -> Relation:
        returned = Relation()
        for written in self._writes.read(node, ctes):
            self._keep(written)
            if written.returned is not None:
                returned = written.returned
        return returned

    def _keep(self, written: Written, *, is_view: bool = False) -> None:
        """Edges into a real table, or what a temporary one now holds."""
        if not written.table:
            return
        if written.table in self._context.temporary or written.table[-1][:1] in ("#", "@"):
            self._hold(written)
            return
        self._context.spend(sum(_origins(item) for item in written.result.items))
        relations = list(written.result.ancestry())
        sources = {each.table for each in relations if each.table is not None}
        self._written.append(
            TableWrite(
                table=written.table,
                is_view=is_view,
                columns=tuple(
                    ALL if isinstance(item, Star) else item.name for item in written.result.items
                ),
                sources=tuple(sorted(sources)),
                is_whole=written.is_whole,
            )
        )
        if self._context.watcher is not None:
            self._context.watcher.written(
                written.table, written.result, positional=written.positional
            )
        self._record(written.table, written.result, positional=written.positional)

    def _record(self, table: Parts | None, result: Relation, *, positional: bool = False) -> None:
        context = self._context
        if context.watcher is None:
            self._recorder.record(
                context.statement, context.line, table, result, positional=positional
            )
        for star in result.stars:
            unknown = [".".join(parts) for parts, _ in star.everything().facts]
            if unknown:
                context.report(
                    f"the columns of {', '.join(unknown)} are not known: `*` stands for them",
                    None,
                    is_remark=True,
                )

    def _hold(self, written: Written) -> None:
        before = self._context.temporary.get(written.table)
        if before is None or not before.items:
            made = Relation(written.result.items)
        elif before.is_open or written.result.is_open:
            made = laid_over([before, written.result], is_by_name=True)
        else:
            names = {column.name: column for column in written.result.columns}
            items: list[Item] = [
                item.merged(names.pop(item.name)) if item.name in names else item
                for item in before.columns
            ]
            made = Relation([*items, *names.values()])
        made.parents = [written.result, *([before] if before else [])]
        self._context.temporary[written.table] = made

    def _select(self, node: exp.Expr) -> str:
        relation = self._queries.read(node, None, {})
        first = node
        while isinstance(first, exp.SetOperation):
            first = first.this
        into = first.args.get("into")
        if into is not None and self._into(into, relation):
            return "SELECT_INTO"
        self._record(None, relation)
        return "SELECT"

    def _into(self, into: exp.Expr, relation: Relation) -> bool:
        """SELECT ... INTO makes a table, unless it fills variables."""
        if into.expressions:
            self._fill([self._queries.name(each) for each in into.expressions], relation)
            return True
        target = into.this
        if not isinstance(target, exp.Table):
            return False
        table = self._queries.sources.table_name(target)
        if table[-1] in self._context.variables or table[0][:1] == "@":
            self._fill([table[-1].lstrip("@")], relation)
            return True
        if into.args.get("temporary") or table[-1].startswith("#"):
            self._context.temporary[table] = Relation()
        else:
            self._learn(table, relation)
        self._keep(Written(table, relation, is_whole=True))
        return True

    def _fill(self, names: Sequence[str], relation: Relation) -> None:
        """Variables take the values of a row; one alone may take the whole row."""
        if len(names) == 1:
            self._context.rows[names[0]] = relation
        for name, column in zip(names, relation.everything(), strict=False):
            self._queries.hold(name, column)

    def fetch(self, cursor: str, names: Sequence[str]) -> None:
        """Variables take the values of a cursor's row."""
        if cursor in self._context.rows:
            self._fill(names, self._context.rows[cursor])

    def _declare(self, node: exp.Expr) -> None:
        """DECLARE and SET give variables values, or T-SQL's table variables columns."""
        for each in node.expressions:
            if isinstance(each, exp.DeclareItem):
                names, value, kind = each.this, each.args.get("default"), each.args.get("kind")
                if isinstance(kind, exp.Schema):
                    columns = [Column(self._queries.name(part.this)) for part in kind.expressions
                               if isinstance(part, exp.ColumnDef)]  # fmt: skip
                    for name in names:
                        table = (f"@{self._queries.name(name)}",)
                        self._context.temporary[table] = Relation(columns)
            elif isinstance(each, exp.SetItem) and isinstance(each.this, exp.EQ):
                names, value = [each.this.this], each.this.expression
            else:
                continue
            if isinstance(value, exp.Expr) and isinstance(names, list):
                reading = self._queries.expressions.read(
                    [value], self._queries.scope(None, {}), Role(Clause.ITEM)
                )
                for name in names:
                    if isinstance(name, exp.Parameter):
                        self._queries.hold(self._queries.name(name), reading.column(""))

    def _learn(self, table: Parts, relation: Relation) -> None:
        """The script's own tables have the columns that it gave them."""
        names = None if relation.is_open else [column.name for column in relation.columns]
        self._context.create(table, names)

    def _create(self, node: exp.Create) -> str:
        kind = str(node.args.get("kind") or "").upper()
        if kind in _ROUTINES:
            return f"CREATE_{kind}"
        if kind not in ("TABLE", "VIEW", "MATERIALIZED VIEW", "DYNAMIC TABLE"):
            return f"CREATE_{kind.replace(' ', '_')}"
        table, listed = self._writes.target(node.this)
        if not table:
            return f"CREATE_{kind}"
        is_view = "VIEW" in kind
        listed = listed or self._writes.liked(node)
        poured = _poured_into(node)
        if poured is not None:
            table, is_view = self._queries.sources.table_name(poured), False
        query = node.args.get("expression")
        relation: Relation | None = None
        if isinstance(query, exp.Query | exp.Table | exp.Values):
            ctes = self._queries.with_queries(node, None, {})
            relation = self._queries.read(query, None, ctes).under(listed)
        else:
            relation = self._copied(node)
        if _is_temporary(node) or table[-1].startswith("#"):
            self._context.temporary[table] = Relation([Column(name) for name in listed])
            if relation is not None:
                self._context.temporary[table] = Relation()
                self._keep(Written(table, relation, is_whole=True))
            return f"CREATE_{kind}"
        self._context.temporary.pop(table, None)
        if relation is not None:
            self._learn(table, relation)
            made = Written(table, relation, positional=bool(listed), is_whole=poured is None)
            self._keep(made, is_view=is_view)
        elif listed:
            self._context.create(table, listed)
        elif is_view:
            self._context.report("not understood: a view without a query", None)
        return f"CREATE_{kind.replace(' ', '_')}"

    def _copied(self, node: exp.Create) -> Relation | None:
        """CLONE copies a table with its rows; LIKE copies its columns alone."""
        clone = node.args.get("clone")
        if clone is not None and isinstance(clone.this, exp.Table):
            scope = self._queries.scope(None, {})
            clauses = Relation()
            self._queries.sources.add(clone.this, scope, clauses)
            relation = scope.sources[0].relation
            made = Relation(
                item if isinstance(item, Star) else item.starred() for item in relation.items
            )
            made.parents = [relation]
            return made
        return None

    def _cache(self, node: exp.Cache) -> str:
        table, _ = self._writes.target(node.this)
        query = node.args.get("expression")
        if table and isinstance(query, exp.Query):
            self._context.temporary[table] = Relation()
            self._keep(Written(table, self._queries.read(query, None, {})))
        return "CACHE"

    def _copy(self, node: exp.Copy) -> None:
        """COPY between a table and files; what is read from files comes from no column."""
        table, listed = self._writes.target(node.this)
        files = [each for each in node.args.get("files") or () if isinstance(each, exp.Subquery)]
        if isinstance(node.this, exp.Query):
            self._record(None, self._queries.read(node.this, None, {}))
        elif _is_stage(node.this):
            for each in files:
                self._record(None, self._queries.read(each, None, {}))
        elif node.args.get("kind"):
            relation = self._queries.read(files[0], None, {}) if files else Relation()
            placed, positional = self._writes.placed(table, listed, relation)
            self._keep(Written(table, placed, positional=positional))
        elif table:
            self._context.table(table)

    def _multitable(self, node: exp.MultitableInserts) -> str:
        """Several INSERTs of one source: INSERT ALL, or Hive's FROM ... INSERT ... INSERT."""
        source = node.args.get("source")
        if not isinstance(source, exp.Expr):
            return "INSERT"
        for each in node.expressions:
            insert = each.this if isinstance(each, exp.ConditionalInsert) else each
            condition = each.args.get("expression") if insert is not each else None
            for written in self._writes.read(_with_source(insert, source, condition), {}):
                self._keep(written)
        return "INSERT"

    def _drop(self, node: exp.Drop) -> None:
        for each in node.args.get("tables") or [node.this]:
            if isinstance(each, exp.Table):
                table = self._queries.sources.table_name(each)
                self._context.temporary.pop(table, None)
                self._context.create(table, None)

    def _alter(self, node: exp.Alter) -> None:
        """A view gets another query; a table that the script made may get its name only now."""
        for action in node.args.get("actions") or ():
            if isinstance(action, exp.Query) and isinstance(node.this, exp.Table | exp.Schema):
                table, listed = self._writes.target(node.this)
                relation = self._queries.read(action, None, {}).under(listed)
                made = Written(table, relation, positional=bool(listed), is_whole=True)
                self._keep(made, is_view=True)
                continue
            if not isinstance(action, exp.AlterRename | exp.SwapTable):
                continue
            if not isinstance(node.this, exp.Table):
                continue
            before = self._queries.sources.table_name(node.this)
            after = self._queries.sources.table_name(action.this)
            if isinstance(action, exp.SwapTable) and self._context.is_own(after):
                # What the script made takes the place of what was there.
                before, after = after, before
            if len(after) < len(before):
                after = (*before[: len(before) - len(after)], *after)
            held = self._context.temporary.pop(before, None)
            if held is not None:
                self._context.temporary[after] = held
            elif self._context.is_own(before):
                self._context.create(after, self._context.columns_of(before))
                self._context.create(before, None)
                self._recorder.rename(before, after)
                self._context.renamed[before] = after


def _with_source(insert: exp.Expr, source: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
    """One INSERT of several, with the source that all share."""
    made = insert.copy()
    query = made.args.get("expression")
    if isinstance(query, exp.Select):
        holder = source if isinstance(source, exp.From) else exp.From(this=source)
        query.set("from_", holder.copy())
        return made
    inside = source if isinstance(source, exp.Subquery) else exp.Subquery(this=source.copy())
    select = exp.Select(expressions=[exp.Star()], from_=exp.From(this=inside.copy()))
    if isinstance(query, exp.Values) and query.expressions:
        row = query.expressions[0]
        select.set("expressions", list(row.expressions) if isinstance(row, exp.Tuple) else [row])
    if condition is not None:
        select.set("where", exp.Where(this=condition.copy()))
    made.set("expression", select)
    return made


def _is_dynamic(node: exp.Expr) -> bool:
    """Whether a statement runs a text as SQL."""
    if isinstance(node, exp.Command):
        return node.name.upper() in ("EXECUTE", "EXEC")
    is_call = isinstance(node, exp.Execute) and isinstance(node.this, exp.Subquery)
    return is_call or isinstance(node, exp.ExecuteSql)


def _is_stage(node: exp.Expr) -> bool:
    """Whether a name stands for files, such as Snowflake's @stage."""
    return isinstance(node, exp.Table) and isinstance(node.this, exp.Var)


def _poured_into(node: exp.Create) -> exp.Table | None:
    """The table that a materialised view of ClickHouse writes to, instead of being one."""
    properties = node.args.get("properties")
    for each in properties.expressions if properties is not None else ():
        if isinstance(each, exp.ToTableProperty) and isinstance(each.this, exp.Table):
            return each.this
    return None


def _is_temporary(node: exp.Create) -> bool:
    properties = node.args.get("properties")
    return properties is not None and any(
        isinstance(each, exp.TemporaryProperty | exp.VolatileProperty)
        or (isinstance(each, exp.StabilityProperty) and each.name.upper() == "VOLATILE")
        for each in properties.expressions
    )
