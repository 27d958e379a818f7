"""Reads parsed statements by their kind, and records their edges."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec
from sqlglot import exp

from lumos.lineage.reported_lineage import ColumnCoverage
from lumos.lineage.sql.context import AnalysisContext
from lumos.lineage.sql.dialects import NestedName, Spellings, column_name
from lumos.lineage.sql.expressions import ExpressionRole
from lumos.lineage.sql.queries import QueryReader
from lumos.lineage.sql.relation import (
    Excerpt,
    Item,
    OriginPath,
    OriginUse,
    QueryColumn,
    QueryRelation,
    Star,
    combine_branches,
)
from lumos.lineage.sql.script import ALL, ColumnEdge, Parts, StatementLineage, TableRead, TableWrite
from lumos.lineage.sql.source_text import Clause
from lumos.lineage.sql.templates import UNKNOWN_NAME
from lumos.lineage.sql.writes import WriteReader, WriteResult
from lumos.model.paths import lineage_path

_ROUTINES: Final = frozenset({"PROCEDURE", "FUNCTION", "TRIGGER", "PACKAGE"})


class EdgeRecorder:
    """Collects the edges of a script, each once and in order."""

    def __init__(self) -> None:
        self.edges: dict[ColumnEdge, None] = {}
        self.columns = 0
        self.resolved = 0
        self.has_templates = False
        self._seen: set[tuple[object, ...]] = set()
        self._texts: dict[Excerpt, str | None] = {}
        self._line = 1

    @property
    def coverage(self) -> ColumnCoverage:
        return ColumnCoverage(columns=self.columns, resolved=self.resolved)

    def record(
        self, statement: int, line: int, table: Parts | None, result: QueryRelation,
        *, positional: bool = False,
    ) -> None:  # fmt: skip
        """Record the edges of a result into a table, or of a plain SELECT."""
        self._line = line
        for item in result.items:
            is_star = isinstance(item, Star)
            column = item.everything() if isinstance(item, Star) else item
            self.columns += 1
            is_known = column.is_resolved and not is_star
            self.resolved += is_known and not (
                self.has_templates and _has_unknown_name(table, column)
            )
            self._column(statement, table, column, positional=positional)
        for relation in result.ancestry():
            for use in relation.uses:
                self._use(statement, table, None, use)

    def see(self, spellings: Spellings) -> None:
        """Register how the names of all edges are spelled."""
        for edge in self.edges:
            spellings.see(edge.from_table, column_name(edge.from_column))
            spellings.see(edge.to_table or (), edge.to_column)

    def spelled_edges(self, spellings: Spellings) -> Iterator[ColumnEdge]:
        """The edges with consistent spellings."""
        for edge in self.edges:
            target, column = edge.to_table, edge.to_column
            yield msgspec.structs.replace(
                edge,
                from_table=spellings.table(edge.from_table),
                from_column=spellings.path(edge.from_table, edge.from_column),
                to_table=None if target is None else spellings.table(target),
                to_column=None if column is None else spellings.column(target or (), column),
            )

    def plain_edges(self) -> Iterator[ColumnEdge]:
        """The edges of a script without quoted names."""
        for edge in self.edges:
            path = edge.from_column
            text = str(path) if isinstance(path, NestedName) else lineage_path(path)
            is_same = type(path) is str and text == path
            yield edge if is_same else msgspec.structs.replace(edge, from_column=text)

    def rename(self, before: Parts, after: Parts) -> None:
        """Rename a table that the script wrote."""
        self.edges = {
            msgspec.structs.replace(edge, to_table=after) if edge.to_table == before else edge: None
            for edge in self.edges
        }

    def _column(
        self, statement: int, table: Parts | None, column: QueryColumn, *, positional: bool
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

    def _use(self, statement: int, table: Parts | None, column: str | None, use: OriginUse) -> None:
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

    def _text(self, source: OriginPath | OriginUse) -> str | None:
        excerpt = source.excerpt
        if excerpt is None:
            return ALL if isinstance(source, OriginPath) and source.is_star else None
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


def _origins(item: Item) -> int:
    return len(item.facts) + len(item.uses) if isinstance(item, QueryColumn) else 1


class StatementReader:
    """Reads statements in order, since each may change the state for the next."""

    def __init__(self, context: AnalysisContext, recorder: EdgeRecorder) -> None:
        self._context = context
        self._recorder = recorder
        self._queries = QueryReader(context)
        self._writes = WriteReader(self._queries)
        self._queries.write = self._read_write
        self._written: list[TableWrite] = []

    def read(self, node: exp.Expr) -> StatementLineage:
        """Read one statement; its edges go to the recorder."""
        self._written = []
        if self._context.watcher is not None:
            self._context.watcher.begun(node)
        kind = self._dispatch(node)
        reads = tuple(
            TableRead(table=table, columns=tuple(sorted(columns)))
            for table, columns in sorted(self._context.reads.items())
        )
        return StatementLineage(
            number=self._context.statement,
            line=self._context.line,
            kind=kind,
            reads=reads,
            writes=tuple(dict.fromkeys(self._written)),
        )

    def rows(self, node: exp.Expr) -> QueryRelation:
        """The rows of a cursor or loop query."""
        return self._queries.read(node, None, {})

    def table(self, node: exp.Table) -> QueryRelation:
        """The rows of a table, which does not count as read."""
        return self._context.table(self._context.table_name(node), is_read=False)

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
                self._record_write(written)
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
            self._context.add_problem(
                "SQL that is built at run time is not analysed", None, is_remark=True
            )
        elif isinstance(node, exp.Declare | exp.Set):
            self._declare(node)
        elif isinstance(node, exp.Cache):
            return self._cache(node)
        return node.key.upper()

    def _read_write(self, node: exp.Expr, ctes: Mapping[str, QueryRelation]) -> QueryRelation:
        returned = QueryRelation()
        for written in self._writes.read(node, ctes):
            self._record_write(written)
            if written.returned is not None:
                returned = written.returned
        return returned

    def _record_write(self, written: WriteResult, *, is_view: bool = False) -> None:
        """Record the edges into a permanent table, or the new content of a temporary one."""
        if not written.table:
            return
        if written.table in self._context.temporary or written.table[-1][:1] in ("#", "@"):
            self._store_temporary(written)
            return
        self._context.count_origins(sum(_origins(item) for item in written.result.items))
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

    def _record(
        self, table: Parts | None, result: QueryRelation, *, positional: bool = False
    ) -> None:
        context = self._context
        if context.watcher is None:
            self._recorder.record(
                context.statement, context.line, table, result, positional=positional
            )
        for star in result.stars:
            unknown = [".".join(parts) for parts, _ in star.everything().facts]
            if unknown:
                context.add_problem(
                    f"the columns of {', '.join(unknown)} are not known: `*` stands for them",
                    None,
                    is_remark=True,
                )

    def _store_temporary(self, written: WriteResult) -> None:
        known = self._context.temporary.get(written.table)
        if known is None or not known.items:
            relation = QueryRelation(written.result.items)
        elif known.is_open or written.result.is_open:
            relation = combine_branches([known, written.result], is_by_name=True)
        else:
            names = {column.name: column for column in written.result.columns}
            items: list[Item] = [
                item.merged(names.pop(item.name)) if item.name in names else item
                for item in known.columns
            ]
            relation = QueryRelation([*items, *names.values()])
        relation.parents = [written.result, *([known] if known else [])]
        self._context.temporary[written.table] = relation

    def _select(self, node: exp.Expr) -> str:
        relation = self._queries.read(node, None, {})
        first = node
        while isinstance(first, exp.SetOperation):
            first = first.this
        into = first.args.get("into")
        if into is not None and self._select_into(into, relation):
            return "SELECT_INTO"
        self._record(None, relation)
        return "SELECT"

    def _select_into(self, into: exp.Expr, relation: QueryRelation) -> bool:
        """SELECT ... INTO creates a table or assigns variables."""
        if into.expressions:
            self._assign_variables(
                [self._context.name(each) for each in into.expressions], relation
            )
            return True
        target = into.this
        if not isinstance(target, exp.Table):
            return False
        table = self._context.table_name(target)
        if table[-1] in self._context.variables or table[0][:1] == "@":
            self._assign_variables([table[-1].lstrip("@")], relation)
            return True
        if into.args.get("temporary") or table[-1].startswith("#"):
            self._context.temporary[table] = QueryRelation()
        else:
            self._register_columns(table, relation)
        self._record_write(WriteResult(table, relation, is_whole=True))
        return True

    def _assign_variables(self, names: Sequence[str], relation: QueryRelation) -> None:
        """Assign a row to variables; a single variable may take the whole row."""
        if len(names) == 1:
            self._context.rows[names[0]] = relation
        for name, column in zip(names, relation.everything(), strict=False):
            self._context.variable_values[name] = column

    def fetch(self, cursor: str, names: Sequence[str]) -> None:
        """Assign a row of a cursor to variables."""
        if cursor in self._context.rows:
            self._assign_variables(names, self._context.rows[cursor])

    def _declare(self, node: exp.Expr) -> None:
        """Assign variables, or define the columns of T-SQL table variables."""
        for each in node.expressions:
            if isinstance(each, exp.DeclareItem):
                names, value, kind = each.this, each.args.get("default"), each.args.get("kind")
                if isinstance(kind, exp.Schema):
                    columns = [
                        QueryColumn(self._context.name(part.this))
                        for part in kind.expressions
                        if isinstance(part, exp.ColumnDef)
                    ]
                    for name in names:
                        table = (f"@{self._context.name(name)}",)
                        self._context.temporary[table] = QueryRelation(columns)
            elif isinstance(each, exp.SetItem) and isinstance(each.this, exp.EQ):
                names, value = [each.this.this], each.this.expression
            else:
                continue
            if isinstance(value, exp.Expr) and isinstance(names, list):
                lineage = self._queries.expressions.read(
                    [value], self._context.scope(None, {}), ExpressionRole(Clause.ITEM)
                )
                for name in names:
                    if isinstance(name, exp.Parameter):
                        self._context.variable_values[self._context.name(name)] = lineage.column("")

    def _register_columns(self, table: Parts, relation: QueryRelation) -> None:
        """Remember the columns of a table that the script creates."""
        names = None if relation.is_open else [column.name for column in relation.columns]
        self._context.set_columns(table, names)

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
        target = _target_of_view(node)
        if target is not None:
            table, is_view = self._context.table_name(target), False
        query = node.args.get("expression")
        relation: QueryRelation | None = None
        if isinstance(query, exp.Query | exp.Table | exp.Values):
            ctes = self._queries.with_queries(node, None, {})
            relation = self._queries.read(query, None, ctes).under(listed)
        else:
            relation = self._copy_table(node)
        if _is_temporary(node) or table[-1].startswith("#"):
            self._context.temporary[table] = QueryRelation([QueryColumn(name) for name in listed])
            if relation is not None:
                self._context.temporary[table] = QueryRelation()
                self._record_write(WriteResult(table, relation, is_whole=True))
            return f"CREATE_{kind}"
        self._context.temporary.pop(table, None)
        if relation is not None:
            self._register_columns(table, relation)
            write = WriteResult(table, relation, positional=bool(listed), is_whole=target is None)
            self._record_write(write, is_view=is_view)
        elif listed:
            self._context.set_columns(table, listed)
        elif is_view:
            self._context.add_problem("not understood: a view without a query", None)
        return f"CREATE_{kind.replace(' ', '_')}"

    def _copy_table(self, node: exp.Create) -> QueryRelation | None:
        """CLONE copies a table with its rows; LIKE copies only its columns."""
        clone = node.args.get("clone")
        if clone is not None and isinstance(clone.this, exp.Table):
            scope = self._context.scope(None, {})
            clauses = QueryRelation()
            self._queries.sources.add(clone.this, scope, clauses)
            relation = scope.sources[0].relation
            copy = QueryRelation(
                item if isinstance(item, Star) else item.starred() for item in relation.items
            )
            copy.parents = [relation]
            return copy
        return None

    def _cache(self, node: exp.Cache) -> str:
        table, _ = self._writes.target(node.this)
        query = node.args.get("expression")
        if table and isinstance(query, exp.Query):
            self._context.temporary[table] = QueryRelation()
            self._record_write(WriteResult(table, self._queries.read(query, None, {})))
        return "CACHE"

    def _copy(self, node: exp.Copy) -> None:
        """COPY between a table and files; data from files has no origin columns."""
        table, listed = self._writes.target(node.this)
        files = [each for each in node.args.get("files") or () if isinstance(each, exp.Subquery)]
        if isinstance(node.this, exp.Query):
            self._record(None, self._queries.read(node.this, None, {}))
        elif _is_stage(node.this):
            for each in files:
                self._record(None, self._queries.read(each, None, {}))
        elif node.args.get("kind"):
            relation = self._queries.read(files[0], None, {}) if files else QueryRelation()
            placed, positional = self._writes.placed(table, listed, relation)
            self._record_write(WriteResult(table, placed, positional=positional))
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
                self._record_write(written)
        return "INSERT"

    def _drop(self, node: exp.Drop) -> None:
        for each in node.args.get("tables") or [node.this]:
            if isinstance(each, exp.Table):
                table = self._context.table_name(each)
                self._context.temporary.pop(table, None)
                self._context.set_columns(table, None)

    def _alter(self, node: exp.Alter) -> None:
        """ALTER VIEW with a new query, and renames of tables."""
        for action in node.args.get("actions") or ():
            if isinstance(action, exp.Query) and isinstance(node.this, exp.Table | exp.Schema):
                table, listed = self._writes.target(node.this)
                relation = self._queries.read(action, None, {}).under(listed)
                write = WriteResult(table, relation, positional=bool(listed), is_whole=True)
                self._record_write(write, is_view=True)
                continue
            if not isinstance(action, exp.AlterRename | exp.SwapTable):
                continue
            if not isinstance(node.this, exp.Table):
                continue
            old_name = self._context.table_name(node.this)
            after = self._context.table_name(action.this)
            if isinstance(action, exp.SwapTable) and self._context.is_created(after):
                # The table of the script replaces the existing one.
                old_name, after = after, old_name
            if len(after) < len(old_name):
                after = (*old_name[: len(old_name) - len(after)], *after)
            renamed = self._context.temporary.pop(old_name, None)
            if renamed is not None:
                self._context.temporary[after] = renamed
            elif self._context.is_created(old_name):
                self._context.set_columns(after, self._context.columns_of(old_name))
                self._context.set_columns(old_name, None)
                self._recorder.rename(old_name, after)
                self._context.renamed[old_name] = after


def _with_source(insert: exp.Expr, source: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
    """One INSERT of several, with the source that all share."""
    statement = insert.copy()
    query = statement.args.get("expression")
    if isinstance(query, exp.Select):
        from_clause = source if isinstance(source, exp.From) else exp.From(this=source)
        query.set("from_", from_clause.copy())
        return statement
    subquery = source if isinstance(source, exp.Subquery) else exp.Subquery(this=source.copy())
    select = exp.Select(expressions=[exp.Star()], from_=exp.From(this=subquery.copy()))
    if isinstance(query, exp.Values) and query.expressions:
        row = query.expressions[0]
        select.set("expressions", list(row.expressions) if isinstance(row, exp.Tuple) else [row])
    if condition is not None:
        select.set("where", exp.Where(this=condition.copy()))
    statement.set("expression", select)
    return statement


def _is_dynamic(node: exp.Expr) -> bool:
    """Whether a statement runs a text as SQL."""
    if isinstance(node, exp.Command):
        return node.name.upper() in ("EXECUTE", "EXEC")
    is_call = isinstance(node, exp.Execute) and isinstance(node.this, exp.Subquery)
    return is_call or isinstance(node, exp.ExecuteSql)


def _is_stage(node: exp.Expr) -> bool:
    """Whether a name refers to files, such as Snowflake's @stage."""
    return isinstance(node, exp.Table) and isinstance(node.this, exp.Var)


def _target_of_view(node: exp.Create) -> exp.Table | None:
    """The target table of a ClickHouse materialised view."""
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


def _has_unknown_name(table: Parts | None, column: QueryColumn) -> bool:
    """Whether a name contains an unknown template expression."""
    names = (*(table or ()), column.name)
    return any(UNKNOWN_NAME in name for name in names) or any(
        UNKNOWN_NAME in name for source, origin in column.facts for name in (*source, origin)
    )
