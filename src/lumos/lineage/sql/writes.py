"""Statements that change rows: INSERT, UPDATE, DELETE, MERGE."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sqlglot import exp

from lumos.lineage.sql.queries import QueryReader
from lumos.lineage.sql.reading import Reading, Role
from lumos.lineage.sql.relation import Column, Item, Relation, Star
from lumos.lineage.sql.scope import Scope, Source
from lumos.lineage.sql.script import Parts
from lumos.lineage.sql.targets import columns_behind, replaced, table_behind
from lumos.lineage.sql.texts import Clause
from lumos.model.lineage import UseKind


class Written:
    """The columns that a statement gives a table, and what decides about them."""

    def __init__(
        self, table: Parts, result: Relation, *, positional: bool = False,
        returned: Relation | None = None, is_whole: bool = False,
    ) -> None:  # fmt: skip
        self.table = table
        self.result = result
        self.positional = positional
        self.returned = returned
        # Whether the table has no other columns than these.
        self.is_whole = is_whole


class Writes:
    """Reads statements that write rows."""

    def __init__(self, queries: QueryReader) -> None:
        self._queries = queries

    def read(self, node: exp.Expr, ctes: Mapping[str, Relation]) -> list[Written]:
        """What a statement writes; `ctes` are those around it."""
        ctes = self._queries.with_queries(node, None, ctes)
        if isinstance(node, exp.Insert):
            return self._insert(node, ctes)
        if isinstance(node, exp.Update):
            return self._update(node, ctes)
        if isinstance(node, exp.Delete):
            return self._delete(node, ctes)
        if isinstance(node, exp.Merge):
            return self._merge(node, ctes)
        return []

    def target(self, node: exp.Expr) -> tuple[Parts, list[str]]:
        """The name of a written table, and the columns listed behind it."""
        columns: list[str] = []
        if isinstance(node, exp.Schema):
            columns = [
                self._queries.name(each.this if isinstance(each, exp.ColumnDef) else each)
                for each in node.expressions
                if isinstance(each, exp.Identifier | exp.Column | exp.ColumnDef | exp.Dot)
            ]
            columns = [*self._liked(node.expressions), *columns]
            node = node.this
        if isinstance(node, exp.Table):
            return self._queries.sources.table_name(node), columns
        return (), columns

    def _liked(self, nodes: Iterable[exp.Expr]) -> Iterator[str]:
        """The columns that LIKE takes over from another table."""
        for each in nodes:
            if isinstance(each, exp.LikeProperty) and isinstance(each.this, exp.Table):
                table = self._queries.sources.table_name(each.this)
                yield from self._queries.context.known_columns(table) or ()

    def liked(self, node: exp.Create) -> list[str]:
        """The columns of CREATE TABLE name LIKE other."""
        properties = node.args.get("properties")
        return list(self._liked(properties.expressions)) if properties is not None else []

    def placed(
        self, table: Parts, listed: Sequence[str], relation: Relation, *, by_name: bool = False
    ) -> tuple[Relation, bool]:
        """A result under the names of the table it goes to, and whether places decided that."""
        names = list(listed) or (self._queries.context.known_columns(table) or [])
        if by_name or not names:
            return relation, not by_name
        items: list[Item] = []
        for position, item in enumerate(relation.items):
            if isinstance(item, Star):
                items += [each for each in relation.items[position:]
                          if isinstance(each, Star) or each.name in names]  # fmt: skip
                break
            if position >= len(names):
                given = f"{len(relation.items)} columns are given"
                reason = f"{given}, {'.'.join(table)} takes {len(names)}"
                self._queries.report(reason, None, is_remark=True)
                break
            items.append(item.renamed(names[position]))
        made = Relation(items)
        made.parents = [relation]
        return made, True

    def _insert(self, node: exp.Insert, ctes: Mapping[str, Relation]) -> list[Written]:
        if not isinstance(node.this, exp.Schema | exp.Table):
            return []
        table, listed = self.target(node.this)
        query = node.args.get("expression") or node.args.get("source")
        relation = Relation()
        if isinstance(query, exp.Expr):
            relation = self._queries.read(query, None, ctes)
        fixed, moving = self._partitions(node)
        is_whole = not (listed or fixed or moving)
        if not listed and (fixed or moving):
            known = self._queries.context.known_columns(table)
            if known:
                inner = [name for name in known if name not in fixed and name not in moving]
                listed = [*inner, *moving]
        result, positional = self.placed(
            table, listed, relation, by_name=bool(node.args.get("by_name"))
        )
        is_by_values = isinstance(query, exp.Values)
        positional = positional and not is_by_values
        written = [Written(table, result, positional=positional, is_whole=is_whole)]
        conflict = node.args.get("conflict")
        if conflict is not None and conflict.expressions:
            scope = self._queries.scope(None, ctes)
            scope.sources = [self._target_source(node.this, table, ctes)]
            scope.rows = {**scope.rows, "excluded": result, "new": result}
            assignments = [each.transform(_as_new_row) for each in conflict.expressions]
            clauses = Relation()
            if conflict.args.get("duplicate") and isinstance(query, exp.Select):
                # MySQL sees what the query reads, too.
                self._queries.sources.fill(query, scope, clauses)
                self._prove(conflict, table, scope, also=listed)
            changed = self._assigned(table, assignments, scope, [result, clauses])
            where = conflict.args.get("where")
            self._queries.decide(where, scope, clauses, UseKind.FILTER, Clause.WHERE)
            written.append(changed)
        self._returning(node, table, self._queries.scope(None, ctes), written)
        return written

    def _partitions(self, node: exp.Insert) -> tuple[set[str], list[str]]:
        """The partition columns with a value of their own, and those that take the last columns."""
        fixed: set[str] = set()
        moving: list[str] = []
        partition = node.args.get("partition") or node.this.args.get("partition")
        for each in partition.expressions if isinstance(partition, exp.Partition) else ():
            if isinstance(each, exp.EQ):
                fixed.add(self._queries.name(each.this))
            else:
                moving.append(self._queries.name(each))
        return fixed, moving

    def _target_source(self, node: exp.Expr, table: Parts, ctes: Mapping[str, Relation]) -> Source:
        inside = node.this if isinstance(node, exp.Schema) else node
        alias = inside.args.get("alias")
        name = self._queries.name(alias.this) if alias is not None else table[-1]
        relation = ctes.get(table[0]) if len(table) == 1 else None
        if relation is None:
            # The statement reads a target only where it names its columns.
            relation = self._queries.context.table(table, is_read=False)
        return Source(name, relation, table)

    def _behind(self, written: list[Written], ctes: Mapping[str, Relation]) -> list[Written]:
        """What is written to a named query goes to the table that it reads."""
        made: list[Written] = []
        for each in written:
            query = ctes.get(each.table[0]) if len(each.table) == 1 else None
            if query is None:
                made.append(each)
                continue
            made += [
                Written(table, result)
                for table, result in columns_behind(query, each.result).items()
            ]
        return made

    def _returning(
        self, node: exp.Expr, table: Parts, scope: Scope, written: list[Written]
    ) -> None:
        """RETURNING gives the rows back as they are now; OUTPUT ... INTO writes them elsewhere."""
        returning = node.args.get("returning")
        if returning is None or not written:
            return
        result = written[0].result
        before = self._queries.context.table(table, is_read=False)
        into = returning.args.get("into")
        now = before if into else replaced(before, result)
        inside = self._queries.scope(None, scope.ctes)
        inside.sources = [Source(table[-1], now, table)]
        inside.sources += [each for each in scope.sources if each.parts != table]
        held = {"inserted": now, "deleted": before, "new": now, "old": before}
        inside.rows = {**inside.rows, **held}
        inside.variables |= {"$action"}
        select = exp.Select(expressions=list(returning.expressions))
        returned = self._queries.projections.read(select, inside, Relation())
        returned.parents += [before, result]
        written[0].returned = returned
        if isinstance(into, exp.Table | exp.Schema | exp.Identifier | exp.Parameter):
            holder = into if isinstance(into, exp.Table | exp.Schema) else exp.Table(this=into)
            name, listed = self.target(holder)
            placed, positional = self.placed(name, listed, returned)
            written.append(Written(name, placed, positional=positional))

    def _update(self, node: exp.Update, ctes: Mapping[str, Relation]) -> list[Written]:
        scope = self._queries.scope(None, ctes)
        clauses = Relation()
        table, scope_has_target = self._updated_table(node, scope, clauses)
        if not table:
            return []
        self._queries.sources.fill(node, scope, clauses)
        if not scope_has_target and not self._is_there(table, node, scope):
            scope.sources.insert(0, self._target_source(node.this, table, ctes))
        self._prove(node, table, scope)
        return self._changed(node, table, scope, clauses)

    def _prove(
        self, node: exp.Expr, table: Parts, scope: Scope, *, also: Sequence[str] = ()
    ) -> None:
        """What SET names is a column of the target."""
        target = next((each for each in scope.sources if each.parts == table), None)
        if target is not None:
            found = {(target.name, self._queries.name(_last(each.this)))
                     for each in node.expressions if isinstance(each.this, exp.Column)}  # fmt: skip
            found.update((target.name, name) for name in also)
            known = scope.witnesses
            scope.witnesses = lambda: {*known(), *found}

    def _updated_table(
        self, node: exp.Update, scope: Scope, clauses: Relation
    ) -> tuple[Parts, bool]:
        """The table that UPDATE changes; its name may be an alias given in FROM."""
        target = node.this
        if not isinstance(target, exp.Table):
            return (), False
        table = self._queries.sources.table_name(target)
        if target.args.get("joins"):
            self._queries.sources.add(target, scope, clauses)
            return self._named_in_set(node, scope) or table, True
        start = node.args.get("from_")
        if start is not None and len(table) == 1 and target.args.get("alias") is None:
            for each in start.find_all(exp.Table):
                alias = each.args.get("alias")
                if alias is not None and self._queries.name(alias.this) == table[0]:
                    return self._queries.sources.table_name(each), False
        return table, False

    def _named_in_set(self, node: exp.Update, scope: Scope) -> Parts | None:
        for each in node.expressions:
            column = each.this
            if isinstance(column, exp.Column) and column.args.get("table") is not None:
                source = scope.source(self._queries.parts(column)[:-1])
                if source is not None and source.relation.table is not None:
                    return source.relation.table
        return None

    def _is_there(self, table: Parts, node: exp.Update, scope: Scope) -> bool:
        """Whether FROM itself has the table, under the name that the statement begins with."""
        alias = node.this.args.get("alias")
        name = self._queries.name(alias.this) if alias is not None else None
        started = self._queries.sources.table_name(node.this)
        return any(
            source.name in (name, started[-1])
            and (source.parts == table or source.parts[-len(started) :] == started)
            for source in scope.sources
        )

    def _changed(
        self, node: exp.Update, table: Parts, scope: Scope, clauses: Relation
    ) -> list[Written]:
        result = [
            self._assigned(changed, assignments, scope, [])
            for changed, assignments in self._by_table(node, table, scope).items()
        ]
        self._queries.decide(node.args.get("where"), scope, clauses, UseKind.FILTER, Clause.WHERE)
        clauses.parents += [source.relation for source in scope.sources]
        for written in result:
            written.result.parents.append(clauses)
        result = self._behind(result, scope.ctes)
        self._returning(node, result[0].table if result else table, scope, result)
        return result

    def _by_table(
        self, node: exp.Update, table: Parts, scope: Scope
    ) -> dict[Parts, list[exp.Expr]]:
        """What SET changes; MySQL may change several tables at once."""
        found: dict[Parts, list[exp.Expr]] = {table: []}
        for each in node.expressions:
            changed = table
            if node.this.args.get("joins") and isinstance(each.this, exp.Column):
                source = scope.source(self._queries.parts(each.this)[:-1])
                if source is not None and source.relation.table is not None:
                    changed = source.relation.table
            found.setdefault(changed, []).append(each)
        return found

    def _assigned(
        self, table: Parts, assignments: Iterable[exp.Expr], scope: Scope,
        parents: list[Relation],
    ) -> Written:  # fmt: skip
        """The columns that SET gives new values."""
        items: list[Item] = []
        made = Relation()
        for name, value, relation in self._assignments(assignments, scope):
            items.append(value.renamed(name))
            made.parents += relation
        result = Relation(items)
        result.parents = [*parents, *made.parents]
        return Written(table, result)

    def _assignments(
        self, assignments: Iterable[exp.Expr], scope: Scope
    ) -> Iterator[tuple[str, Column, list[Relation]]]:
        for each in assignments:
            if not isinstance(each, exp.EQ | exp.PropertyEQ):
                continue
            left, right = each.this, each.expression
            if isinstance(left, exp.Parameter):
                continue
            if isinstance(left, exp.Tuple | exp.Paren):
                names = left.expressions if isinstance(left, exp.Tuple) else [left.this]
                yield from self._several(names, right, scope)
                continue
            reading = self._read(right, scope, Clause.VALUE)
            tables = reading.settle(self._queries.context.spend)
            value = reading.column("", maker=right)
            yield self._queries.name(_last(left)), value, tables

    def _several(
        self, names: Sequence[exp.Expr], right: exp.Expr, scope: Scope
    ) -> Iterator[tuple[str, Column, list[Relation]]]:
        """SET (a, b) = (SELECT x, y ...)"""
        if isinstance(right, exp.Query):
            relation = self._queries.query(right, scope)
            decided = Reading()
            decided.relations.append(relation)
            tables = decided.settle(self._queries.context.spend)
            for name, column in zip(names, relation.everything(), strict=False):
                yield self._queries.name(_last(name)), column.decided_by(decided.uses), tables
            return
        values = right.expressions if isinstance(right, exp.Tuple) else [right.this]
        for name, value in zip(names, values, strict=False):
            reading = self._read(value, scope)
            tables = reading.settle(self._queries.context.spend)
            made = reading.column("", maker=value)
            yield self._queries.name(_last(name)), made, tables

    def _read(self, node: exp.Expr, scope: Scope, clause: Clause = Clause.ITEM) -> Reading:
        return self._queries.expressions.read([node], scope, Role(clause))

    def _delete(self, node: exp.Delete, ctes: Mapping[str, Relation]) -> list[Written]:
        target = node.this
        named = node.args.get("tables")
        scope = self._queries.scope(None, ctes)
        clauses = Relation()
        if isinstance(target, exp.Subquery):
            return self._deleted_through(node, target, scope, clauses)
        if not isinstance(target, exp.Table):
            if not named:
                return []
            target = named[0]
        table = self._queries.sources.table_name(target)
        if target.args.get("joins") or named:
            self._queries.sources.add(target, scope, clauses)
        else:
            scope.sources.append(self._target_source(target, table, ctes))
        table = table_behind(scope.sources[0].relation) or table
        for each in named or ():
            source = scope.source(self._queries.sources.table_name(each))
            if source is not None:
                table = table_behind(source.relation) or table
        using = node.args.get("using") or []
        for each in using if isinstance(using, list) else [using]:
            self._queries.sources.add(each, scope, clauses)
        self._queries.decide(node.args.get("where"), scope, clauses, UseKind.FILTER, Clause.WHERE)
        result = Relation()
        result.parents = [clauses, *(source.relation for source in scope.sources)]
        written = [Written(table, result)]
        self._returning(node, table, scope, written)
        return written

    def _deleted_through(
        self, node: exp.Delete, target: exp.Subquery, scope: Scope, clauses: Relation
    ) -> list[Written]:
        """Oracle's DELETE FROM (query)"""
        self._queries.sources.add(target, scope, clauses)
        self._queries.decide(node.args.get("where"), scope, clauses, UseKind.FILTER, Clause.WHERE)
        query = scope.sources[0].relation
        result = Relation()
        result.parents = [clauses, query]
        table = table_behind(query)
        return [Written(table, result)] if table is not None else []

    def _merge(self, node: exp.Merge, ctes: Mapping[str, Relation]) -> list[Written]:
        table, _ = self.target(node.this)
        scope = self._queries.scope(None, ctes)
        clauses = Relation()
        target = self._target_source(node.this, table, ctes)
        scope.sources.append(target)
        self._queries.sources.add(node.args["using"], scope, clauses)
        self._queries.decide(node.args.get("on"), scope, clauses, UseKind.JOIN, Clause.ON)
        source = scope.sources[-1]
        clauses.parents += [each.relation for each in scope.sources]
        written: list[Written] = []
        whens = node.args.get("whens")
        for when in whens.expressions if whens is not None else ():
            self._queries.decide(
                when.args.get("condition"), scope, clauses, UseKind.FILTER, Clause.WHEN
            )
            action = when.args.get("then")
            if isinstance(action, exp.Update):
                written.append(self._merged_update(action, table, scope, source))
                self._queries.decide(
                    action.args.get("where"), scope, clauses, UseKind.FILTER, Clause.WHERE
                )
            elif isinstance(action, exp.Insert):
                written.append(self._merged_insert(action, table, scope, source))
                self._queries.decide(
                    action.args.get("where"), scope, clauses, UseKind.FILTER, Clause.WHERE
                )
        written = written or [Written(table, Relation())]
        for each in written:
            each.result.parents.append(clauses)
        written = self._behind(written, ctes)
        self._returning(node, written[0].table if written else table, scope, written)
        return written

    def _merged_update(
        self, action: exp.Update, table: Parts, scope: Scope, source: Source
    ) -> Written:
        if any(isinstance(each, exp.Star) for each in action.expressions):
            return Written(table, self._by_name(table, source.relation))
        return self._assigned(table, action.expressions, scope, [])

    def _merged_insert(
        self, action: exp.Insert, table: Parts, scope: Scope, source: Source
    ) -> Written:
        values = action.args.get("expression")
        columns = action.this
        if isinstance(columns, exp.Tuple) and len(columns.expressions) == 1:
            # The parser takes VALUES (...) without a list of columns for a function.
            only = columns.expressions[0]
            if isinstance(only, exp.Anonymous) and only.name.lower() == "values":
                values, columns = exp.Tuple(expressions=only.expressions), None
        if not isinstance(values, exp.Expr):
            return Written(table, self._by_name(table, source.relation))
        listed: list[exp.Expr] = []
        if isinstance(columns, exp.Tuple | exp.Schema):
            listed = columns.expressions
        elif isinstance(columns, exp.Paren):
            listed = [columns.this]
        inside = values.expressions if isinstance(values, exp.Tuple) else [values]
        if isinstance(values, exp.Paren):
            inside = [values.this]
        items: list[Item] = []
        parents: list[Relation] = []
        for value in inside:
            reading = self._read(value, scope)
            name = self._queries.projections.output_name(value)
            items.append(reading.column(name, maker=value))
            parents += reading.settle(self._queries.context.spend)
        names = [self._queries.name(_last(each)) for each in listed]
        result, positional = self.placed(table, names, Relation(items))
        result.parents += parents
        return Written(table, result, positional=positional and not names)

    def _by_name(self, table: Parts, relation: Relation) -> Relation:
        """UPDATE SET * and INSERT *: columns of the same name meet."""
        known = self._queries.context.known_columns(table)
        items: list[Item] = []
        for item in relation.items:
            if isinstance(item, Star):
                items.append(item)
            elif known is None or item.name in known:
                items.append(item.starred())
        if known is not None and relation.is_open:
            found = [relation.guess(name) for name in known if relation.find(name) is None]
            items = [item for item in items if isinstance(item, Column)]
            items += [column.starred() for column in found if column is not None]
        made = Relation(items)
        made.parents = [relation]
        return made


def _as_new_row(node: exp.Expr) -> exp.Expr:
    """MySQL's VALUES(column) means the row that would have been inserted."""
    is_call = isinstance(node, exp.Anonymous) and node.name.lower() == "values"
    inside = node.expressions[0] if is_call and len(node.expressions) == 1 else None
    name = inside.this if isinstance(inside, exp.Column) else inside
    if isinstance(name, exp.Identifier):
        return exp.Column(this=name.copy(), table=exp.to_identifier("new"))
    return node


def _last(node: exp.Expr) -> exp.Expr:
    """The column that is set, without the table or the field behind it."""
    inside = node.this if isinstance(node, exp.Column) else node
    return inside if isinstance(inside, exp.Expr) else node
