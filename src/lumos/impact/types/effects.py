"""Effects of changed tables on the statements of a script and the tables they write."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, TypeVar

import msgspec
from sqlglot import exp

from lumos.impact.rules.type_uses import (
    ClauseKind,
    OutputColumn,
    StatementEffect,
    TypeUse,
    UseOperation,
    ValueType,
)
from lumos.impact.types.uses import ColumnReference, TypeUseCollector
from lumos.impact.types.values import UNKNOWN_CHANGE, ExpressionTypes, Tables, ValueChange
from lumos.lineage.sql.analysis import analyse, unlink
from lumos.lineage.sql.context import FromItem, Scope, SqlWatcher
from lumos.lineage.sql.deep_process import DeepProcessFailed, call_in_deep_process
from lumos.lineage.sql.dialects import find_dialect, in_original_case
from lumos.lineage.sql.relation import Excerpt, QueryColumn, QueryRelation
from lumos.lineage.sql.script import ALL, Parts, ScriptLineage
from lumos.model.lineage import UNKNOWN_NAME, UseKind
from lumos.model.schema import Field

_CLAUSE_KINDS: Final = {kind: ClauseKind(kind.value) for kind in UseKind}
_AMBIGUOUS: Final = re.compile(r"column '(.+)' is ambiguous")
_UNRESOLVED_COLUMN: Final = re.compile(r"column '|may come from several tables of unknown columns")
# Dialects that allow fewer column aliases than columns: FROM orders AS o(id).
_PARTIAL_COLUMN_ALIASES: Final = frozenset({"postgres", "redshift", "duckdb"})
# Joins with nulls for missing rows of the right or the left side.
_NULLABLE_RIGHT: Final = frozenset({"LEFT", "FULL"})
_NULLABLE_LEFT: Final = frozenset({"RIGHT", "FULL"})


def effects(
    sql: str, *, dialect: str | None, tables: Tables, is_wanted: Callable[[Parts], bool],
    with_fields: bool = False,
) -> tuple[StatementEffect, ...]:  # fmt: skip
    """Return the effect of each statement that writes a wanted table.

    `tables` and `is_wanted` get table names as the dialect folds them, without quotes.
    `with_fields` adds the types of all written columns.
    """
    try:
        return _analyse_script(sql, dialect, with_fields, tables, is_wanted)
    except RecursionError:
        pass
    with suppress(DeepProcessFailed):
        result: tuple[StatementEffect, ...] = call_in_deep_process(
            _analyse_script, callbacks={"tables": tables, "is_wanted": is_wanted},
            sql=sql, dialect=dialect, with_fields=with_fields,
        )  # fmt: skip
        return result
    # Nested too deeply to be analysed; the caller treats it as unparsable.
    return ()


def _analyse_script(
    sql: str, dialect: str | None, with_fields: bool, tables: Tables,
    is_wanted: Callable[[Parts], bool],
) -> tuple[StatementEffect, ...]:  # fmt: skip
    analysis = _ScriptAnalysis(dialect, tables)
    try:
        return analysis.effects(sql, dialect, is_wanted, with_fields=with_fields)
    finally:
        analysis.release()


class _Write(NamedTuple):
    """The result that a statement writes to a table."""

    table: Parts
    result: QueryRelation
    positional: bool
    statement: int
    node: exp.Expr

    @property
    def creates(self) -> bool:
        return not isinstance(self.node, exp.DML)

    @property
    def query_result(self) -> QueryRelation:
        """The result of the query, including columns without a target column."""
        if self.creates or not self.result.parents:
            return self.result
        return self.result.parents[0]

    @property
    def has_fixed_columns(self) -> bool:
        """Whether the table expects a fixed number of columns, unlike a plain view."""
        has_list = isinstance(self.node, exp.Create) and isinstance(self.node.this, exp.Schema)
        return self.positional and (has_list or not self.creates)


class _Statement:
    """The arguments that the SQL reader passed to the callbacks for one statement."""

    def __init__(self, node: exp.Expr) -> None:
        self.node = node
        self.references: dict[int, ColumnReference] = {}
        self.join_columns: list[tuple[str, Sequence[QueryColumn | None], Excerpt | None]] = []
        self.star_exceptions: list[tuple[exp.Expr, Sequence[QueryColumn], Excerpt | None]] = []
        self.whole_rows: list[tuple[Sequence[QueryColumn], ColumnReference]] = []
        self.column_aliases: list[tuple[QueryRelation, int]] = []
        self.set_operations: dict[int, tuple[exp.SetOperation, Sequence[QueryRelation], bool]] = {}


class _ScriptAnalysis(SqlWatcher):
    """Records callbacks of the SQL reader, and then computes the effects from them."""

    def __init__(self, dialect: str | None, tables: Tables) -> None:
        self._values = ExpressionTypes(find_dialect(dialect), tables)
        self._dialect = (dialect or "").lower()
        self._uses = TypeUseCollector(self._values)
        self._statements: list[_Statement] = []
        self._outside_statements = _Statement(exp.Select())
        self._writes: list[_Write] = []

    def effects(
        self, sql: str, dialect: str | None, is_wanted: Callable[[Parts], bool],
        *, with_fields: bool,
    ) -> tuple[StatementEffect, ...]:  # fmt: skip
        # A table has the columns of both versions, so that removed and added ones are resolved.
        script = analyse(sql, dialect=dialect, columns=self._values.column_names, watcher=self)
        return tuple(
            self._effect(write, script, with_fields=with_fields)
            for write in self._writes
            if is_wanted(write.table)
        )

    def release(self) -> None:
        """Free the trees and types without the garbage collector.

        `tables` leads to everything downstream of a change, which would stay in memory with them.
        """
        for statement in self._statements:
            unlink(statement.node)
        self._values.release()

    # Callbacks of the SQL reader.

    @property
    def _current(self) -> _Statement:
        return self._statements[-1] if self._statements else self._outside_statements

    def on_statement(self, node: exp.Expr) -> None:
        self._statements.append(_Statement(node))

    def on_name(
        self, node: exp.Expr, column: QueryColumn, usage: UseKind | None, excerpt: Excerpt | None
    ) -> None:
        clause_kind = ClauseKind.PROJECTION if usage is None else _CLAUSE_KINDS[usage]
        self._current.references[id(node)] = ColumnReference(node, column, clause_kind, excerpt)
        self._values.columns_by_node[id(node)] = column

    def on_join(self, join: exp.Expr, scope: Scope, first_joined: int) -> None:
        side = str(join.args.get("side") or "").upper()
        left, right = scope.sources[:first_joined], scope.sources[first_joined:]
        if side in _NULLABLE_RIGHT:
            scope.sources[first_joined:] = map(_with_nullable_columns, right)
        if side in _NULLABLE_LEFT:
            scope.sources[:first_joined] = map(_with_nullable_columns, left)

    def on_shared_column(
        self, name: str, sides: Sequence[QueryColumn | None], excerpt: Excerpt | None
    ) -> None:
        self._current.join_columns.append((name, sides, excerpt))

    def on_star_columns_named(
        self, node: exp.Expr, columns: Sequence[QueryColumn], excerpt: Excerpt | None
    ) -> None:
        is_strict = isinstance(node.parent, exp.Anonymous)
        # Only ClickHouse ignores missing columns in EXCEPT.
        if is_strict or self._dialect != "clickhouse":
            self._current.star_exceptions.append((node, columns, excerpt))

    def on_whole_row(
        self, node: exp.Expr, columns: Sequence[QueryColumn], usage: UseKind | None,
        excerpt: Excerpt | None,
    ) -> None:  # fmt: skip
        clause_kind = ClauseKind.PROJECTION if usage is None else _CLAUSE_KINDS[usage]
        self._values.rows_by_node[id(node)] = columns
        self._current.whole_rows += (
            [(columns, ColumnReference(node, columns[0], clause_kind, excerpt))] if columns else []
        )

    def on_columns_renamed(self, relation: QueryRelation, alias_count: int) -> None:
        self._current.column_aliases.append((relation, alias_count))

    def on_set_operation(
        self, node: exp.SetOperation, branches: Sequence[QueryRelation], *, is_by_name: bool
    ) -> None:
        self._current.set_operations[id(node)] = (node, branches, is_by_name)

    def on_write(self, table: Parts, result: QueryRelation, *, positional: bool) -> None:
        number = len(self._statements) - 1
        self._writes.append(_Write(table, result, positional, number, self._current.node))

    # Effects.

    def _effect(
        self, write: _Write, script: ScriptLineage, *, with_fields: bool
    ) -> StatementEffect:
        self._uses = TypeUseCollector(self._values, self._dialect)
        line = script.statements[write.statement].line
        stars = dict(star_lines(write.node))
        for statement in self._contributing_statements(write):
            self._collect_uses(statement)
        unparsed = self._unparsed_parts(script.statements[write.statement].number, script)
        if write.creates:
            self._collect_duplicates(write.result)
        references = {} if write.creates else self._statements[write.statement].references
        outputs = self._outputs(write.result, references)
        if write.has_fixed_columns:
            self._add_positional_uses(write.query_result, ClauseKind.INSERT)
        if not write.creates:
            outputs = self._collect_stores(write, outputs)
        return StatementEffect(
            type_uses=tuple(with_line(each, line, stars) for each in self._uses.type_uses),
            outputs=tuple(with_line(each, line, stars) for each in outputs),
            fields=self._fields(write.result) if with_fields else (),
            may_write_other_columns=write.result.has_unknown_columns,
            creates=write.creates,
            unparsed=unparsed,
        )

    def _contributing_statements(self, write: _Write) -> Iterator[_Statement]:
        """The writing statement, and earlier statements that fill the temporary tables it reads."""
        writing = {each.statement for each in self._writes}
        needed = _table_names(write.node)
        yield self._statements[write.statement]
        for number in range(write.statement - 1, -1, -1):
            node = self._statements[number].node
            target = node.find(exp.Table)
            if number not in writing and (target is None or target.name.lower() in needed):
                needed |= _table_names(node)
                yield self._statements[number]

    def _collect_uses(self, statement: _Statement) -> None:
        for reference in statement.references.values():
            if self._values.may_change(reference.column):
                self._uses.collect_uses(reference)
        for name, sides, excerpt in statement.join_columns:
            self._collect_shared_join_columns(name, sides, excerpt)
        for node, columns, excerpt in statement.star_exceptions:
            self._collect_star_exceptions(node, columns, excerpt)
        for row, reference in statement.whole_rows:
            for column in self._values.changed_in_row(row):
                change = self._values.change_of_column(column)
                self._uses.add(reference._replace(column=column), UseOperation.UNKNOWN, change)
        for relation, alias_count in statement.column_aliases:
            if not self._only_grows(relation, alias_count):
                self._add_positional_uses(relation, ClauseKind.PROJECTION)
        for node, branches, is_by_name in statement.set_operations.values():
            self._collect_union(node, branches, is_by_name=is_by_name)

    def _unparsed_parts(
        self, statement: int, script: ScriptLineage
    ) -> tuple[tuple[str, int | None], ...]:
        """Parts that could not be parsed; names that a new column makes ambiguous become uses.

        An unresolved column is left out if no column of that name changes, since it could not be
        resolved before the change either.
        """
        parts: list[tuple[str, int | None]] = []
        tables = [self._values.versions(each.table) for each in script.reads]
        changed_names = {
            name.casefold() for each in tables if each for name in each.changed_columns
        }
        may_have_changed = any(each.may_have_changed for each in tables if each)
        only_adds = not may_have_changed and not any(
            each.removes_or_changes for each in tables if each
        )
        for each in script.unresolved:
            if each.severity != "error" or each.statement != statement:
                continue
            reason = each.reason.casefold()
            # An unresolved template may stand for any column that existed before.
            is_unrelated = (
                only_adds
                if UNKNOWN_NAME in reason
                else not any(name in reason for name in changed_names)
            )
            if is_unrelated and _UNRESOLVED_COLUMN.search(reason) and not may_have_changed:
                continue
            match = _AMBIGUOUS.match(each.reason)
            origins = self._added_columns(script, match.group(1)) if match else ()
            if match and origins:
                self._uses.add_use(
                    TypeUse(
                        clause_kind=ClauseKind.PROJECTION,
                        operation=UseOperation.AMBIGUOUS,
                        value=match.group(1),
                        after=ValueType(),
                        line=each.line,
                        origins=origins,
                    )
                )
            else:
                parts.append((each.reason, each.line))
        return tuple(parts)

    def _added_columns(self, script: ScriptLineage, name: str) -> tuple[tuple[str, str], ...]:
        added_columns = []
        for read in script.reads:
            versions = self._values.versions(read.table)
            for column, (before, _) in versions.columns.items() if versions is not None else ():
                if versions is not None and before is None and column.lower() == name.lower():
                    added_columns.append((versions.key, column))
        return tuple(added_columns)

    def _outputs(
        self, result: QueryRelation, references: Mapping[int, ColumnReference]
    ) -> list[OutputColumn]:
        """The columns of a result that change; `references` are the statement's references."""
        outputs = []
        for column in result.all_columns():
            if not (self._values.may_change(column) or self._values.contains_changed_row(column)):
                continue
            change = self._values.change_of_column(column)
            type_uses = self._uses.indexes_of(self._values.ids_of_sources(column))
            if not change.is_changed and not type_uses:
                continue
            if column.name == ALL and not change.is_removed:
                # The expanded fields of a struct, whose names are unknown.
                change = UNKNOWN_CHANGE
            excerpt = self._stored_excerpt(column, references) or _excerpt_of(column)
            outputs.append(
                OutputColumn(
                    name=in_original_case(column.name),
                    before=change.before,
                    after=change.after,
                    is_unknown=change.is_unknown,
                    clause=excerpt.text
                    if excerpt is not None
                    else (ALL if column.origins else None),
                    line=excerpt.line if excerpt is not None else None,
                    origins=tuple(dict.fromkeys(self._values.origins(column))),
                    type_uses=type_uses,
                )
            )
        return outputs

    def _stored_excerpt(
        self, column: QueryColumn, references: Mapping[int, ColumnReference]
    ) -> Excerpt | None:
        """The clause of the writing statement that uses a changed value of a subquery."""
        if not references or not isinstance(column.definition, exp.Expr):
            return None
        used = (references.get(id(node)) for node in column.definition.find_all(exp.Column))
        return next((reference.excerpt for reference in used if reference is not None
                     and self._values.may_change(reference.column)), None)  # fmt: skip

    def _fields(self, result: QueryRelation) -> tuple[Field, ...]:
        """The columns of a result before the change."""
        fields = []
        for column in result.columns:
            change = self._values.change_of_column(column)
            if change.is_added:
                continue
            value = change.before or ValueType()
            nullable = value.nullable is not False
            fields.append(
                Field(name=in_original_case(column.name), type=value.type, nullable=nullable)
            )
        return tuple(fields)

    def _collect_star_exceptions(
        self, node: exp.Expr, columns: Sequence[QueryColumn], excerpt: Excerpt | None
    ) -> None:
        """Collect names in EXCEPT or REPLACE of a star that no longer match a column."""
        changes = [self._values.change_of_column(column) for column in columns]
        if not changes or not all(change.is_removed or change.is_unknown for change in changes):
            return
        if not any(isinstance(column.definition, exp.Expr) for column in columns):
            reference = ColumnReference(node, columns[0], ClauseKind.PROJECTION, excerpt)
            worst = next((change for change in changes if change.is_unknown), changes[0])
            self._uses.add(reference, UseOperation.MISSING, worst)

    def _collect_shared_join_columns(
        self, name: str, sides: Sequence[QueryColumn | None], excerpt: Excerpt | None
    ) -> None:
        for column, other in (sides, tuple(reversed(sides))):
            if column is None or not self._values.may_change(column):
                continue
            change = self._values.change_of_column(column)
            if not change.is_changed:
                continue
            reference = ColumnReference(exp.column(name), column, ClauseKind.JOIN, excerpt)
            partner = self._values.change_of_column(other) if other is not None else None
            operation = UseOperation.MISSING if change.is_removed else UseOperation.COMPARED
            if change.is_added:
                # NATURAL joins use all names that both sides share.
                operation = UseOperation.NATURAL_JOIN_KEY
            self._uses.add(
                reference, operation, change, partner=partner.after if partner else None,
                partner_before=partner.before if partner else None, partner_text=f"USING ({name})",
            )  # fmt: skip

    def _collect_union(
        self, node: exp.SetOperation, branches: Sequence[QueryRelation], *, is_by_name: bool
    ) -> None:
        if is_by_name:
            return
        is_uneven = len({self._changed_positions(branch) for branch in branches}) > 1
        if is_uneven and not self._agree_after_change(branches):
            for branch in branches:
                self._add_positional_uses(branch, ClauseKind.UNION)
        is_distinct = bool(node.args.get("distinct"))
        for branch in branches:
            for position, column in enumerate(branch.columns):
                if branch.has_unknown_columns or not self._values.may_change(column):
                    continue
                change = self._values.change_of_column(column)
                if not change.is_changed or change.is_removed or change.is_added:
                    continue
                other_columns = [each.columns[position] for each in branches
                          if each is not branch and position < len(each.columns)
                          and not each.has_unknown_columns]  # fmt: skip
                reference = self._reference_to(column, ClauseKind.UNION)
                for other in other_columns:
                    partner = self._values.change_of_column(other)
                    self._uses.add(
                        reference, UseOperation.COMBINED, change, partner=partner.after,
                        partner_before=partner.before, partner_text=f"{node.key.upper()}",
                        root=id(column),
                    )  # fmt: skip
                if is_distinct:
                    self._uses.add(reference, UseOperation.GROUPED, change)

    def _reference_to(self, column: QueryColumn, clause_kind: ClauseKind) -> ColumnReference:
        return ColumnReference(
            exp.column(in_original_case(column.name)), column, clause_kind, _excerpt_of(column)
        )

    def _add_positional_uses(self, relation: QueryRelation, clause_kind: ClauseKind) -> None:
        """Add uses of added, removed and moved columns in a list that is matched by position."""
        for column in relation.columns:
            change = self._values.change_of_column(column)
            if change.is_added or (
                change.is_removed and not isinstance(column.definition, exp.Expr)
            ):
                self._add_positional_use(column, change, clause_kind)
        moved = self._find_moved_column(relation)
        if moved is not None:
            self._add_positional_use(moved, self._values.change_of_column(moved), clause_kind)
        for star in relation.stars:
            if self._values.may_change(star.as_column()):
                self._add_positional_use(
                    star.as_column(), ValueChange(ValueType(), ValueType(), True), clause_kind
                )

    def _collect_duplicates(self, relation: QueryRelation) -> None:
        """Collect added columns with the name of another column."""
        names = Counter(column.name for column in relation.columns)
        for column in relation.columns:
            if names[column.name] < 2:
                continue
            change = self._values.change_of_column(column)
            if change.is_added:
                self._uses.add(
                    self._reference_to(column, ClauseKind.PROJECTION),
                    UseOperation.AMBIGUOUS,
                    change,
                )

    def _changed_positions(self, relation: QueryRelation) -> tuple[object, ...]:
        """The positions of added, removed and moved columns, which must agree in a union."""
        changes = [self._values.change_of_column(column) for column in relation.columns]
        moved = self._find_moved_column(relation)
        return (
            tuple(position for position, change in enumerate(changes) if change.is_added),
            tuple(position for position, change in enumerate(changes) if change.is_removed),
            tuple(column.name for column in relation.columns) if moved is not None else (),
            tuple(name for star in relation.stars for name in star.as_column().origins),
        )

    def _agree_after_change(self, branches: Sequence[QueryRelation]) -> bool:
        """Whether added columns give all branches of a union the same columns.

        The order of names is ignored, since the position of an added column is not known.
        """
        if any(
            branch.has_unknown_columns or self._find_moved_column(branch) for branch in branches
        ):
            return False
        changes = [
            self._values.change_of_column(each) for branch in branches for each in branch.columns
        ]
        if any(each.is_removed for each in changes) or not any(each.is_added for each in changes):
            return False
        names = {
            tuple(sorted(column.name.casefold() for column in branch.columns))
            for branch in branches
        }
        return len(names) == 1

    def _only_grows(self, relation: QueryRelation, alias_count: int) -> bool:
        """Whether columns are only added after the aliased ones, which some dialects allow."""
        if (
            self._dialect not in _PARTIAL_COLUMN_ALIASES
            or self._find_moved_column(relation) is not None
        ):
            return False
        changes = [self._values.change_of_column(column) for column in relation.columns]
        return not relation.has_unknown_columns and not any(
            change.is_removed or (change.is_added and position < alias_count)
            for position, change in enumerate(changes)
        )

    def _add_positional_use(
        self, column: QueryColumn, change: ValueChange, clause_kind: ClauseKind
    ) -> None:
        reference = self._reference_to(column, clause_kind)
        self._uses.add_use(
            TypeUse(
                clause_kind=clause_kind,
                operation=UseOperation.UNKNOWN
                if change.is_unknown
                else UseOperation.USED_BY_POSITION,
                value=in_original_case(column.name),
                before=change.before,
                after=change.after,
                clause=reference.clause or ALL,
                line=reference.line,
                origins=tuple(dict.fromkeys(self._values.origins(column)))
                or tuple(self._values.sources(column)),
            )
        )

    def _find_moved_column(self, relation: QueryRelation) -> QueryColumn | None:
        """A column selected by a star from a table whose column order changes."""
        for column in relation.columns:
            for (table, _), path in column.origins.items():
                if path.is_star:
                    versions = self._values.versions(table)
                    if versions is not None and versions.is_reordered:
                        return column
        return None

    def _collect_stores(self, write: _Write, outputs: list[OutputColumn]) -> list[OutputColumn]:
        """Collect the values stored in existing columns; return the outputs of other columns.

        Existing columns of the target keep their type.
        """
        versions = self._values.versions(write.table)
        other_outputs = []
        for output in outputs:
            target = None
            if versions is not None:
                names = {name.lower(): pair for name, pair in versions.columns.items()}
                pair = names.get(output.name.lower())
                target = pair[0] if pair is not None else None
            if target is None:
                other_outputs.append(output)
                continue
            if output.after is None and output.clause == ALL and not write.has_fixed_columns:
                # A star must supply every column of the target table.
                self._uses.add_use(
                    TypeUse(
                        clause_kind=ClauseKind.INSERT,
                        operation=UseOperation.MISSING,
                        value=output.name,
                        before=output.before,
                        clause=output.clause,
                        line=output.line,
                        origins=output.origins,
                    )
                )
            if output.after is None or output.before is None:
                continue
            partner = ValueType(type=target.type, nullable=target.nullable)
            self._uses.add_use(
                TypeUse(
                    clause_kind=ClauseKind.INSERT,
                    operation=UseOperation.UNKNOWN if output.is_unknown else UseOperation.STORED,
                    value=output.name,
                    before=output.before,
                    after=output.after,
                    partner=partner,
                    partner_before=partner,
                    partner_text=output.name,
                    clause=output.clause,
                    line=output.line,
                    origins=output.origins,
                )
            )
        return other_outputs


def _excerpt_of(column: QueryColumn) -> Excerpt | None:
    excerpts = (path.excerpt for path in column.origins.values())
    return next((each for each in excerpts if each is not None), None)


def _table_names(node: exp.Expr) -> set[str]:
    return {table.name.lower() for table in node.find_all(exp.Table)}


def _with_nullable_columns(source: FromItem) -> FromItem:
    relation = source.relation
    nullable = QueryRelation(
        (
            item.via_outer_join() if isinstance(item, QueryColumn) else item
            for item in relation.items
        ),
        table=relation.table,
    )
    nullable.uses, nullable.implicit_names, nullable.parents = (
        relation.uses,
        relation.implicit_names,
        relation.parents,
    )
    return source._replace(relation=nullable)


UseOrOutput = TypeVar("UseOrOutput", TypeUse, OutputColumn)


def star_lines(node: exp.Expr) -> Iterator[tuple[str, int]]:
    """Tables whose columns a star selects, with the line of the star or else of the table."""
    for select in node.find_all(exp.Select):
        stars = [each for each in select.expressions
                 if isinstance(each, exp.Star) or isinstance(each.this, exp.Star)]  # fmt: skip
        for star in stars:
            for table in select.find_all(exp.Table):
                if table.parent_select is not select or not _selects_from(star, table):
                    continue
                line = _line_of(star) or _line_of(table)
                if line is not None:
                    yield table.name.lower(), line


def _selects_from(star: exp.Expr, table: exp.Table) -> bool:
    qualifier = star.args.get("table")
    return qualifier is None or qualifier.name.lower() == table.alias_or_name.lower()


def _line_of(node: exp.Expr) -> int | None:
    lines = (each.meta.get("line") for each in node.walk())
    return next((int(line) for line in lines if line is not None), None)


def with_line(item: UseOrOutput, line: int, stars: Mapping[str, int]) -> UseOrOutput:
    """Add the line of the star or of the statement, if the use or output has no line."""
    if item.line is not None:
        return item
    names = (table.rpartition(".")[2].rpartition("/")[2].lower() for table, _ in item.origins)
    line_of_star = next((stars[name] for name in names if name in stars), line)
    return msgspec.structs.replace(item, line=line_of_star)
