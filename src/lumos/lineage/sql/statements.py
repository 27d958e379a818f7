"""Reads parsed statements by their kind, and records their edges."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec
from sqlglot import exp

from lumos.lineage.reported_lineage import ColumnCoverage
from lumos.lineage.sql.context import AnalysisContext
from lumos.lineage.sql.dialects import NameCases, NestedName, column_name
from lumos.lineage.sql.expressions import ExpressionRole
from lumos.lineage.sql.queries import QueryReader
from lumos.lineage.sql.relation import (
    Excerpt,
    OriginPath,
    OriginUse,
    QueryColumn,
    QueryRelation,
    RelationItem,
    Star,
    combine_branches,
)
from lumos.lineage.sql.script import ALL, ColumnEdge, Parts, StatementLineage, TableRead, TableWrite
from lumos.lineage.sql.source_text import Clause
from lumos.lineage.sql.writes import WriteReader, WriteResult
from lumos.model.lineage import UNKNOWN_NAME
from lumos.model.paths import lineage_path

_ROUTINES: Final = frozenset({"PROCEDURE", "FUNCTION", "TRIGGER", "PACKAGE"})


class EdgeRecorder:
    """Collects the edges of a script, each once and in order."""

    def __init__(self) -> None:
        self.edges: dict[ColumnEdge, None] = {}
        self.columns = 0
        self.resolved = 0
        self.has_templates = False
        self._edge_keys: set[tuple[object, ...]] = set()
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
            column = item.as_column() if isinstance(item, Star) else item
            self.columns += 1
            has_unknown_name = self.has_templates and _has_unknown_name(table, column)
            self.resolved += column.is_resolved and not is_star and not has_unknown_name
            self._record_column(statement, table, column, positional=positional)
        for relation in result.self_and_ancestors():
            for use in relation.uses:
                self._record_use(statement, table, None, use)

    def register_names(self, names: NameCases) -> None:
        """Register the names in all edges."""
        for edge in self.edges:
            names.register(edge.from_table, column_name(edge.from_column))
            names.register(edge.to_table or (), edge.to_column)

    def edges_in_original_case(self, names: NameCases) -> Iterator[ColumnEdge]:
        """The edges with each name in the case that the script uses."""
        for edge in self.edges:
            target, column = edge.to_table, edge.to_column
            yield msgspec.structs.replace(
                edge,
                from_table=names.table(edge.from_table),
                from_column=names.path(edge.from_table, edge.from_column),
                to_table=None if target is None else names.table(target),
                to_column=None if column is None else names.column(target or (), column),
            )

    def plain_edges(self) -> Iterator[ColumnEdge]:
        """The edges of a script in which no quoted name was folded to lower case."""
        for edge in self.edges:
            path = edge.from_column
            text = str(path) if isinstance(path, NestedName) else lineage_path(path)
            is_same = type(path) is str and text == path
            yield edge if is_same else msgspec.structs.replace(edge, from_column=text)

    def forget_texts(self) -> None:
        """Drop the texts of clauses, which refer to the tokens of the script."""
        self._texts.clear()

    def rename(self, old_name: Parts, new_name: Parts) -> None:
        """Rename a table that the script wrote."""
        self.edges = {
            (
                msgspec.structs.replace(edge, to_table=new_name)
                if edge.to_table == old_name
                else edge
            ): None
            for edge in self.edges
        }

    def _record_column(
        self, statement: int, table: Parts | None, column: QueryColumn, *, positional: bool
    ) -> None:
        paths = (
            (source, name, path)
            for (source, name), origin_path in column.origins.items()
            for path in origin_path.all_paths()
        )
        for source, name, path in paths:
            self._add_edge(
                ColumnEdge(
                    from_table=source,
                    from_column=name,
                    to_table=table,
                    to_column=column.name,
                    statement=statement,
                    derivation=path.derivation,
                    expression=self._text(path),
                    cast_to=path.cast_to,
                    positional=positional,
                    star=path.is_star,
                    line=path.excerpt.line if path.excerpt is not None else self._line,
                )
            )
        for use in column.uses:
            self._record_use(statement, table, column.name, use)

    def _record_use(
        self, statement: int, table: Parts | None, column: str | None, use: OriginUse
    ) -> None:
        source, name = use.origin
        self._add_edge(
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

    def _add_edge(self, edge: ColumnEdge) -> None:
        # A clause that uses a column on two lines is recorded once.
        key = (
            edge.from_table, edge.from_column, edge.to_table, edge.to_column, edge.statement,
            edge.usage, edge.expression, edge.cast_to, edge.negated,
        )  # fmt: skip
        if key not in self._edge_keys:
            self._edge_keys.add(key)
            self.edges[edge] = None


class StatementReader:
    """Reads statements in order, since each may change the state for the next."""

    def __init__(self, context: AnalysisContext, recorder: EdgeRecorder) -> None:
        self._context = context
        self._recorder = recorder
        self._queries = QueryReader(context)
        self._writes = WriteReader(self._queries)
        self._queries.write = self._read_write
        self._statement_writes: list[TableWrite] = []

    def read(self, node: exp.Expr) -> StatementLineage:
        """Read one statement; its edges go to the recorder."""
        self._statement_writes = []
        self._context.watcher.on_statement(node)
        kind = self._read_by_kind(node)
        reads = tuple(
            TableRead(table=table, columns=tuple(sorted(columns)))
            for table, columns in sorted(self._context.reads.items())
        )
        return StatementLineage(
            number=self._context.statement,
            line=self._context.line,
            kind=kind,
            reads=reads,
            writes=tuple(dict.fromkeys(self._statement_writes)),
        )

    def rows(self, node: exp.Expr) -> QueryRelation:
        """The rows of a cursor or loop query."""
        return self._queries.read(node, None, {})

    def table(self, node: exp.Table) -> QueryRelation:
        """The rows of a table, without recording that it is read."""
        return self._context.table(self._context.table_name(node), is_read=False)

    def _read_by_kind(self, node: exp.Expr) -> str:
        if isinstance(node, exp.Create):
            return self._read_create(node)
        if isinstance(node, exp.MultitableInserts):
            return self._read_multitable(node)
        if isinstance(node, exp.Insert) and isinstance(node.this, exp.Directory):
            self._record(None, self._queries.read(node.expression, None, {}))
            return "INSERT"
        if isinstance(node, exp.Insert | exp.Update | exp.Delete | exp.Merge):
            for write in self._writes.read(node, {}):
                self._record_write(write)
            return node.key.upper()
        if isinstance(node, exp.Query | exp.Values) or (
            isinstance(node, exp.Table | exp.From) and node.parent is None
        ):
            return self._read_select(node)
        if isinstance(node, exp.Copy):
            self._read_copy(node)
        elif isinstance(node, exp.Drop):
            self._read_drop(node)
        elif isinstance(node, exp.Alter):
            self._read_alter(node)
        elif _is_dynamic(node):
            self._context.add_problem(
                "SQL that is built at run time is not analysed", None, is_remark=True
            )
        elif isinstance(node, exp.Declare | exp.Set):
            self._read_declare(node)
        elif isinstance(node, exp.Cache):
            return self._read_cache(node)
        return node.key.upper()

    def _read_write(self, node: exp.Expr, ctes: Mapping[str, QueryRelation]) -> QueryRelation:
        returned_rows = QueryRelation()
        for write in self._writes.read(node, ctes):
            self._record_write(write)
            if write.returned_rows is not None:
                returned_rows = write.returned_rows
        return returned_rows

    def _record_write(self, write: WriteResult, *, is_view: bool = False) -> None:
        """Record the edges into a permanent table, or the new content of a temporary one."""
        if not write.table:
            return
        if write.table in self._context.temporary or write.table[-1][:1] in ("#", "@"):
            self._store_temporary(write)
            return
        self._context.count_origins(
            sum(
                len(item.origins) + len(item.uses) if isinstance(item, QueryColumn) else 1
                for item in write.result.items
            )
        )
        relations = list(write.result.self_and_ancestors())
        sources = {each.table for each in relations if each.table is not None}
        self._statement_writes.append(
            TableWrite(
                table=write.table,
                is_view=is_view,
                columns=tuple(
                    ALL if isinstance(item, Star) else item.name for item in write.result.items
                ),
                sources=tuple(sorted(sources)),
                covers_all_columns=write.covers_all_columns,
            )
        )
        self._context.watcher.on_write(write.table, write.result, positional=write.positional)
        self._record(write.table, write.result, positional=write.positional)

    def _record(
        self, table: Parts | None, result: QueryRelation, *, positional: bool = False
    ) -> None:
        context = self._context
        if not context.is_watched:
            self._recorder.record(
                context.statement, context.line, table, result, positional=positional
            )
        for star in result.stars:
            unknown = [".".join(parts) for parts, _ in star.as_column().origins]
            if unknown:
                context.add_problem(
                    f"the columns of {', '.join(unknown)} are not known: `*` represents them",
                    None,
                    is_remark=True,
                )

    def _store_temporary(self, write: WriteResult) -> None:
        """Add the columns of a write to those of a temporary table."""
        existing = self._context.temporary.get(write.table)
        if existing is None or not existing.items:
            relation = QueryRelation(write.result.items)
        elif existing.has_unknown_columns or write.result.has_unknown_columns:
            relation = combine_branches([existing, write.result], is_by_name=True)
        else:
            new_columns = {column.name: column for column in write.result.columns}
            items: list[RelationItem] = [
                item.merge(new_columns.pop(item.name)) if item.name in new_columns else item
                for item in existing.columns
            ]
            relation = QueryRelation([*items, *new_columns.values()])
        relation.parents = [write.result, *([existing] if existing else [])]
        self._context.temporary[write.table] = relation

    def _read_select(self, node: exp.Expr) -> str:
        relation = self._queries.read(node, None, {})
        first = node
        while isinstance(first, exp.SetOperation):
            first = first.this
        into = first.args.get("into")
        if into is not None and self._read_into(into, relation):
            return "SELECT_INTO"
        self._record(None, relation)
        return "SELECT"

    def _read_into(self, into: exp.Expr, relation: QueryRelation) -> bool:
        """Read INTO, which creates a table or assigns variables; False if it does neither."""
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
        self._record_write(WriteResult(table, relation, covers_all_columns=True))
        return True

    def _assign_variables(self, names: Sequence[str], relation: QueryRelation) -> None:
        """Assign the columns of a row to variables; a single variable may take the entire row."""
        if len(names) == 1:
            self._context.named_rows[names[0]] = relation
        for name, column in zip(names, relation.all_columns(), strict=False):
            self._context.variable_values[name] = column

    def fetch(self, cursor: str, names: Sequence[str]) -> None:
        """Assign a row of a cursor to variables."""
        if cursor in self._context.named_rows:
            self._assign_variables(names, self._context.named_rows[cursor])

    def _read_declare(self, node: exp.Expr) -> None:
        """Read DECLARE or SET, which assign variables or define T-SQL's table variables."""
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
        """Set the columns of a table that the script creates."""
        is_known = not relation.has_unknown_columns
        self._context.set_columns(
            table, [each.name for each in relation.columns] if is_known else None
        )

    def _read_create(self, node: exp.Create) -> str:
        kind = str(node.args.get("kind") or "").upper()
        if kind in _ROUTINES:
            return f"CREATE_{kind}"
        if kind not in ("TABLE", "VIEW", "MATERIALIZED VIEW", "DYNAMIC TABLE"):
            return f"CREATE_{kind.replace(' ', '_')}"
        table, listed_columns = self._writes.target(node.this)
        if not table:
            return f"CREATE_{kind}"
        is_view = "VIEW" in kind
        listed_columns = listed_columns or self._writes.columns_of_like(node)
        target = _target_of_view(node)
        if target is not None:
            table, is_view = self._context.table_name(target), False
        query = node.args.get("expression")
        relation: QueryRelation | None = None
        if isinstance(query, exp.Query | exp.Table | exp.Values):
            ctes = self._queries.read_ctes(node, None, {})
            relation = self._queries.read(query, None, ctes).with_column_names(listed_columns)
        else:
            relation = self._read_clone(node)
        if _is_temporary(node) or table[-1].startswith("#"):
            self._context.temporary[table] = QueryRelation(
                [QueryColumn(name) for name in listed_columns]
            )
            if relation is not None:
                self._context.temporary[table] = QueryRelation()
                self._record_write(WriteResult(table, relation, covers_all_columns=True))
            return f"CREATE_{kind}"
        self._context.temporary.pop(table, None)
        if relation is not None:
            self._register_columns(table, relation)
            write = WriteResult(
                table, relation, positional=bool(listed_columns), covers_all_columns=target is None
            )
            self._record_write(write, is_view=is_view)
        elif listed_columns:
            self._context.set_columns(table, listed_columns)
        elif is_view:
            self._context.add_problem("not understood: a view without a query", None)
        return f"CREATE_{kind.replace(' ', '_')}"

    def _read_clone(self, node: exp.Create) -> QueryRelation | None:
        """The columns of CREATE TABLE ... CLONE, which copies a table with its rows."""
        clause = node.args.get("clone")
        if clause is None or not isinstance(clause.this, exp.Table):
            return None
        scope = self._context.scope(None, {})
        self._queries.sources.add(clause.this, scope, QueryRelation())
        relation = scope.sources[0].relation
        clone = QueryRelation(
            item if isinstance(item, Star) else item.via_star() for item in relation.items
        )
        clone.parents = [relation]
        return clone

    def _read_cache(self, node: exp.Cache) -> str:
        table, _ = self._writes.target(node.this)
        query = node.args.get("expression")
        if table and isinstance(query, exp.Query):
            self._context.temporary[table] = QueryRelation()
            self._record_write(WriteResult(table, self._queries.read(query, None, {})))
        return "CACHE"

    def _read_copy(self, node: exp.Copy) -> None:
        """Read COPY between a table and files; data in files has no origin columns."""
        table, listed_columns = self._writes.target(node.this)
        files = [each for each in node.args.get("files") or () if isinstance(each, exp.Subquery)]
        if isinstance(node.this, exp.Query):
            self._record(None, self._queries.read(node.this, None, {}))
        elif isinstance(node.this, exp.Table) and isinstance(node.this.this, exp.Var):
            # The target is a set of files, such as Snowflake's @stage.
            for each in files:
                self._record(None, self._queries.read(each, None, {}))
        elif node.args.get("kind"):
            relation = self._queries.read(files[0], None, {}) if files else QueryRelation()
            matched, positional = self._writes.match_to_target(table, listed_columns, relation)
            self._record_write(WriteResult(table, matched, positional=positional))
        elif table:
            self._context.table(table)

    def _read_multitable(self, node: exp.MultitableInserts) -> str:
        """Read INSERT ALL, or Hive's FROM ... INSERT ... INSERT: inserts that share one source."""
        source = node.args.get("source")
        if not isinstance(source, exp.Expr):
            return "INSERT"
        for each in node.expressions:
            insert = each.this if isinstance(each, exp.ConditionalInsert) else each
            condition = each.args.get("expression") if insert is not each else None
            for write in self._writes.read(_with_source(insert, source, condition), {}):
                self._record_write(write)
        return "INSERT"

    def _read_drop(self, node: exp.Drop) -> None:
        for each in node.args.get("tables") or [node.this]:
            if isinstance(each, exp.Table):
                table = self._context.table_name(each)
                self._context.temporary.pop(table, None)
                self._context.set_columns(table, None)

    def _read_alter(self, node: exp.Alter) -> None:
        """Read ALTER VIEW with a new query, and renames of tables."""
        for action in node.args.get("actions") or ():
            if isinstance(action, exp.Query) and isinstance(node.this, exp.Table | exp.Schema):
                table, listed_columns = self._writes.target(node.this)
                relation = self._queries.read(action, None, {}).with_column_names(listed_columns)
                write = WriteResult(
                    table, relation, positional=bool(listed_columns), covers_all_columns=True
                )
                self._record_write(write, is_view=True)
                continue
            is_rename = isinstance(action, exp.AlterRename | exp.SwapTable)
            if not is_rename or not isinstance(node.this, exp.Table):
                continue
            old_name = self._context.table_name(node.this)
            new_name = self._context.table_name(action.this)
            if isinstance(action, exp.SwapTable) and self._context.is_created(new_name):
                # The table that the script created replaces the existing one.
                old_name, new_name = new_name, old_name
            if len(new_name) < len(old_name):
                new_name = (*old_name[: len(old_name) - len(new_name)], *new_name)
            temporary = self._context.temporary.pop(old_name, None)
            if temporary is not None:
                self._context.temporary[new_name] = temporary
            elif self._context.is_created(old_name):
                self._context.set_columns(new_name, self._context.columns_of(old_name))
                self._context.set_columns(old_name, None)
                self._recorder.rename(old_name, new_name)
                self._context.renamed_tables[old_name] = new_name


def _with_source(insert: exp.Expr, source: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
    """One of several INSERTs, with their shared source as its query."""
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
        UNKNOWN_NAME in name for source, origin in column.origins for name in (*source, origin)
    )
