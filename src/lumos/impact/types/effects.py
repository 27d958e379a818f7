"""Effects of changed tables on the statements of a script and on what they write."""

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
from lumos.impact.types.values import LOST, ExpressionTypes, Tables, ValueChange
from lumos.lineage.sql.analysis import analyse
from lumos.lineage.sql.context import FromItem, Scope
from lumos.lineage.sql.deep_process import DeepProcessFailed, call_in_deep_process
from lumos.lineage.sql.dialects import find_dialect, spelling_of
from lumos.lineage.sql.relation import Excerpt, QueryColumn, QueryRelation
from lumos.lineage.sql.script import ALL, Parts, ScriptLineage
from lumos.lineage.sql.templates import UNKNOWN_NAME
from lumos.model.lineage import Derivation, UseKind
from lumos.model.schema import Field

_CLAUSE_KINDS: Final = {kind: ClauseKind(kind.value) for kind in UseKind}
_AMBIGUOUS: Final = re.compile(r"column '(.+)' is ambiguous")
_UNRESOLVED_COLUMN: Final = re.compile(r"column '|may come from several tables of unknown columns")
_PARTIAL_COLUMN_ALIASES: Final = frozenset({"postgres", "redshift", "duckdb"})
_PADDED_RIGHT: Final = frozenset({"LEFT", "FULL"})
_PADDED_LEFT: Final = frozenset({"RIGHT", "FULL"})


def effects(
    sql: str, *, dialect: str | None, tables: Tables, is_wanted: Callable[[Parts], bool],
    with_fields: bool = False,
) -> tuple[StatementEffect, ...]:  # fmt: skip
    """Return the effect of each statement that writes a wanted table.

    `tables` and `is_wanted` get table names as the dialect folds them, without quotes.
    `with_fields` adds the types of all written columns.
    """
    try:
        return _effects(sql, dialect, with_fields, tables, is_wanted)
    except RecursionError:
        pass
    with suppress(DeepProcessFailed):
        found: tuple[StatementEffect, ...] = call_in_deep_process(
            _effects, asks={"tables": tables, "is_wanted": is_wanted},
            sql=sql, dialect=dialect, with_fields=with_fields,
        )  # fmt: skip
        return found
    # Nested too deeply to be analysed; the caller treats it as unparsable.
    return ()


def _effects(
    sql: str, dialect: str | None, with_fields: bool, tables: Tables,
    is_wanted: Callable[[Parts], bool],
) -> tuple[StatementEffect, ...]:  # fmt: skip
    return _ScriptAnalysis(dialect, tables).effects(
        sql, dialect, is_wanted, with_fields=with_fields
    )


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
    def given(self) -> QueryRelation:
        """All columns of the query, including those without a target column."""
        if self.creates or not self.result.parents:
            return self.result
        return self.result.parents[0]

    @property
    def has_fixed_columns(self) -> bool:
        """Whether the table expects a fixed number of columns, unlike a plain view."""
        has_list = isinstance(self.node, exp.Create) and isinstance(self.node.this, exp.Schema)
        return self.positional and (has_list or not self.creates)


class _Statement:
    """What the SQL reader reported about one statement."""

    def __init__(self, node: exp.Expr) -> None:
        self.node = node
        self.leaves: dict[int, ColumnReference] = {}
        self.shared: list[tuple[str, Sequence[QueryColumn | None], Excerpt | None]] = []
        self.star_columns_named: list[tuple[exp.Expr, Sequence[QueryColumn], Excerpt | None]] = []
        self.rows: list[tuple[Sequence[QueryColumn], ColumnReference]] = []
        self.numbered: list[tuple[QueryRelation, int]] = []
        self.unions: dict[int, tuple[exp.SetOperation, Sequence[QueryRelation], bool]] = {}


class _ScriptAnalysis:
    """Watches the SQL reader; references are followed once the whole script is read."""

    def __init__(self, dialect: str | None, tables: Tables) -> None:
        self._values = ExpressionTypes(find_dialect(dialect), tables)
        self._dialect = (dialect or "").lower()
        self._uses = TypeUseCollector(self._values)
        self._statements: list[_Statement] = []
        self._loose = _Statement(exp.Select())
        self._writes: list[_Write] = []

    def effects(
        self, sql: str, dialect: str | None, is_wanted: Callable[[Parts], bool],
        *, with_fields: bool,
    ) -> tuple[StatementEffect, ...]:  # fmt: skip
        script = self._read(sql, dialect)
        return tuple(
            self._effect(write, script, with_fields=with_fields)
            for write in self._writes
            if is_wanted(write.table)
        )

    def _read(self, sql: str, dialect: str | None) -> ScriptLineage:
        """Read the script with all columns that its tables have before or after."""
        return analyse(sql, dialect=dialect, columns=self._values.names, watcher=self)

    # Callbacks of the SQL reader.

    @property
    def _current(self) -> _Statement:
        return self._statements[-1] if self._statements else self._loose

    def begun(self, node: exp.Expr) -> None:
        self._statements.append(_Statement(node))

    def named(
        self, node: exp.Expr, column: QueryColumn, usage: UseKind | None, excerpt: Excerpt | None
    ) -> None:
        clause_kind = ClauseKind.PROJECTION if usage is None else _CLAUSE_KINDS[usage]
        self._current.leaves[id(node)] = ColumnReference(node, column, clause_kind, excerpt)
        self._values.named[id(node)] = column

    def joined(self, join: exp.Expr, scope: Scope, before: int) -> None:
        side = str(join.args.get("side") or "").upper()
        if side in _PADDED_RIGHT:
            scope.sources[before:] = map(_pad_source, scope.sources[before:])
        if side in _PADDED_LEFT:
            scope.sources[:before] = map(_pad_source, scope.sources[:before])

    def shared(
        self, name: str, sides: Sequence[QueryColumn | None], excerpt: Excerpt | None
    ) -> None:
        self._current.shared.append((name, sides, excerpt))

    def star_columns_named(
        self, node: exp.Expr, columns: Sequence[QueryColumn], excerpt: Excerpt | None
    ) -> None:
        is_strict = isinstance(node.parent, exp.Anonymous)
        # Only ClickHouse ignores missing columns in EXCEPT.
        if is_strict or self._dialect != "clickhouse":
            self._current.star_columns_named.append((node, columns, excerpt))

    def whole_row_used(
        self, node: exp.Expr, columns: Sequence[QueryColumn], usage: UseKind | None,
        excerpt: Excerpt | None,
    ) -> None:  # fmt: skip
        clause_kind = ClauseKind.PROJECTION if usage is None else _CLAUSE_KINDS[usage]
        self._values.rows[id(node)] = columns
        self._current.rows += (
            [(columns, ColumnReference(node, columns[0], clause_kind, excerpt))] if columns else []
        )

    def numbered(self, relation: QueryRelation, names: int) -> None:
        self._current.numbered.append((relation, names))

    def set_operation_read(
        self, node: exp.SetOperation, branches: Sequence[QueryRelation], *, is_by_name: bool
    ) -> None:
        self._current.unions[id(node)] = (node, branches, is_by_name)

    def written(self, table: Parts, result: QueryRelation, *, positional: bool) -> None:
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
            self._follow(statement)
        doubts = self._doubts(script.statements[write.statement].number, script)
        if write.creates:
            self._collect_duplicates(write.result)
        leaves = {} if write.creates else self._statements[write.statement].leaves
        found = self._outputs(write.result, leaves)
        if write.has_fixed_columns:
            self._add_positions(write.given, ClauseKind.INSERT)
        if not write.creates:
            found = self._collect_stores(write, found)
        return StatementEffect(
            type_uses=tuple(with_line(each, line, stars) for each in self._uses.found),
            outputs=tuple(with_line(each, line, stars) for each in found),
            fields=self._fields(write.result) if with_fields else (),
            is_open=write.result.is_open,
            is_reordered=write.creates and self._find_moved_column(write.result) is not None,
            creates=write.creates,
            doubts=doubts,
        )

    def _contributing_statements(self, write: _Write) -> Iterator[_Statement]:
        """The writing statement, and earlier ones that fill temporary tables it reads."""
        writing = {each.statement for each in self._writes}
        needed = _tables(write.node)
        yield self._statements[write.statement]
        for number in range(write.statement - 1, -1, -1):
            node = self._statements[number].node
            filled = node.find(exp.Table)
            if number not in writing and (filled is None or filled.name.lower() in needed):
                needed |= _tables(node)
                yield self._statements[number]

    def _follow(self, statement: _Statement) -> None:
        for leaf in statement.leaves.values():
            if self._values.may_change(leaf.column):
                self._uses.follow(leaf)
        for name, sides, excerpt in statement.shared:
            self._collect_shared_join_columns(name, sides, excerpt)
        for node, columns, excerpt in statement.star_columns_named:
            self._collect_star_exceptions(node, columns, excerpt)
        for row, leaf in statement.rows:
            for column in self._values.changed_in_row(row):
                state = self._values.of_column(column)
                self._uses.add(leaf._replace(column=column), UseOperation.LOST, state)
        for relation, names in statement.numbered:
            if not self._only_grows(relation, names):
                self._add_positions(relation, ClauseKind.PROJECTION)
        for node, branches, is_by_name in statement.unions.values():
            self._collect_union(node, branches, is_by_name=is_by_name)

    def _doubts(self, statement: int, script: ScriptLineage) -> tuple[tuple[str, int | None], ...]:
        """Return parts that could not be parsed, except names that a new column makes ambiguous.

        A column that cannot be resolved is no doubt if none of that name changes: it was not
        resolved before either.
        """
        found: list[tuple[str, int | None]] = []
        read = [self._values.versions(each.table) for each in script.reads]
        changed = {name.casefold() for each in read if each for name in each.changed}
        is_doubtful = any(each.is_doubtful for each in read if each)
        for each in script.unresolved:
            if each.severity != "error" or each.statement != statement:
                continue
            reason = each.reason.casefold()
            if (
                # A template that was not understood may name any column.
                UNKNOWN_NAME not in reason
                and _UNRESOLVED_COLUMN.search(reason)
                and not is_doubtful
                and not any(name in reason for name in changed)
            ):
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
                found.append((each.reason, each.line))
        return tuple(found)

    def _added_columns(self, script: ScriptLineage, name: str) -> tuple[tuple[str, str], ...]:
        found = []
        for read in script.reads:
            versions = self._values.versions(read.table)
            for column, (before, _) in versions.columns.items() if versions is not None else ():
                if versions is not None and before is None and column.lower() == name.lower():
                    found.append((versions.key, column))
        return tuple(found)

    def _outputs(
        self, result: QueryRelation, leaves: Mapping[int, ColumnReference]
    ) -> list[OutputColumn]:
        """The columns of a result that change; `leaves` are the references of the statement."""
        found = []
        for column in result.everything():
            if not (self._values.may_change(column) or self._values.holds_changed_row(column)):
                continue
            state = self._values.of_column(column)
            type_uses = self._uses.within(self._values.makers(column))
            if not state.is_changed and not type_uses:
                continue
            if column.name == ALL and not state.is_gone:
                # Fields of a struct, as columns of unknown names.
                state = LOST
            facts = list(column.facts.values())
            excerpt = self._stored_excerpt(column, leaves) or _excerpt_of(column)
            found.append(
                OutputColumn(
                    name=spelling_of(column.name),
                    before=state.before,
                    after=state.after,
                    is_unknown=state.is_unknown,
                    is_same_value=len(facts) == 1 and facts[0].derivation is Derivation.IDENTITY,
                    clause=excerpt.text if excerpt is not None else (ALL if facts else None),
                    line=excerpt.line if excerpt is not None else None,
                    origins=tuple(dict.fromkeys(self._values.origins(column))),
                    type_uses=type_uses,
                )
            )
        return found

    def _stored_excerpt(
        self, column: QueryColumn, leaves: Mapping[int, ColumnReference]
    ) -> Excerpt | None:
        """Find the clause that names a stored value that is computed in a subquery."""
        if not leaves or not isinstance(column.definition, exp.Expr):
            return None
        named = (leaves.get(id(node)) for node in column.definition.find_all(exp.Column))
        return next((leaf.excerpt for leaf in named if leaf is not None
                     and self._values.may_change(leaf.column)), None)  # fmt: skip

    def _fields(self, result: QueryRelation) -> tuple[Field, ...]:
        """The columns of a result before the change."""
        fields = []
        for column in result.columns:
            state = self._values.of_column(column)
            if state.is_added:
                continue
            value = state.before or ValueType()
            nullable = value.nullable is not False
            fields.append(Field(name=spelling_of(column.name), type=value.type, nullable=nullable))
        return tuple(fields)

    def _collect_star_exceptions(
        self, node: exp.Expr, columns: Sequence[QueryColumn], excerpt: Excerpt | None
    ) -> None:
        """Collect names in EXCEPT or REPLACE of a star that match no column any more."""
        states = [self._values.of_column(column) for column in columns]
        if not states or not all(state.is_gone or state.is_unknown for state in states):
            return
        if not any(isinstance(column.definition, exp.Expr) for column in columns):
            leaf = ColumnReference(node, columns[0], ClauseKind.PROJECTION, excerpt)
            worst = next((state for state in states if state.is_unknown), states[0])
            self._uses.add(leaf, UseOperation.NAMED, worst)

    def _collect_shared_join_columns(
        self, name: str, sides: Sequence[QueryColumn | None], excerpt: Excerpt | None
    ) -> None:
        for column, other in (sides, tuple(reversed(sides))):
            if column is None or not self._values.may_change(column):
                continue
            state = self._values.of_column(column)
            if not state.is_changed:
                continue
            leaf = ColumnReference(exp.column(name), column, ClauseKind.JOIN, excerpt)
            partner = self._values.of_column(other) if other is not None else None
            operation = UseOperation.NAMED if state.is_gone else UseOperation.COMPARED
            if state.is_added:
                # NATURAL joins use all names that both sides share.
                operation = UseOperation.KEYED
            self._uses.add(
                leaf, operation, state, partner=partner.after if partner else None,
                partner_before=partner.before if partner else None, partner_text=f"USING ({name})",
            )  # fmt: skip

    def _collect_union(
        self, node: exp.SetOperation, branches: Sequence[QueryRelation], *, is_by_name: bool
    ) -> None:
        if is_by_name:
            return
        if len({self._changed_positions(branch) for branch in branches}) > 1:
            for branch in branches:
                self._add_positions(branch, ClauseKind.UNION)
        is_distinct = bool(node.args.get("distinct"))
        for branch in branches:
            for position, column in enumerate(branch.columns):
                if branch.is_open or not self._values.may_change(column):
                    continue
                state = self._values.of_column(column)
                if not state.is_changed or state.is_gone or state.is_added:
                    continue
                others = [each.columns[position] for each in branches
                          if each is not branch and position < len(each.columns)
                          and not each.is_open]  # fmt: skip
                leaf = self._leaf_of(column, ClauseKind.UNION)
                for other in others:
                    partner = self._values.of_column(other)
                    self._uses.add(
                        leaf, UseOperation.COMBINED, state, partner=partner.after,
                        partner_before=partner.before, partner_text=f"{node.key.upper()}",
                        root=id(column),
                    )  # fmt: skip
                if is_distinct:
                    self._uses.add(leaf, UseOperation.GROUPED, state)

    def _leaf_of(self, column: QueryColumn, clause_kind: ClauseKind) -> ColumnReference:
        return ColumnReference(
            exp.column(spelling_of(column.name)), column, clause_kind, _excerpt_of(column)
        )

    def _add_positions(self, relation: QueryRelation, clause_kind: ClauseKind) -> None:
        """Add columns that are added, removed or moved in a list that is matched by position."""
        for column in relation.columns:
            state = self._values.of_column(column)
            if state.is_added or (state.is_gone and not isinstance(column.definition, exp.Expr)):
                self._add_position(column, state, clause_kind)
        moved = self._find_moved_column(relation)
        if moved is not None:
            self._add_position(moved, self._values.of_column(moved), clause_kind)
        for star in relation.stars:
            if self._values.may_change(star.everything()):
                self._add_position(
                    star.everything(), ValueChange(ValueType(), ValueType(), True), clause_kind
                )

    def _collect_duplicates(self, relation: QueryRelation) -> None:
        """Collect new columns whose name another column of the table already has."""
        names = Counter(column.name for column in relation.columns)
        for column in relation.columns:
            if names[column.name] < 2:
                continue
            state = self._values.of_column(column)
            if state.is_added:
                self._uses.add(
                    self._leaf_of(column, ClauseKind.PROJECTION), UseOperation.AMBIGUOUS, state
                )

    def _changed_positions(self, relation: QueryRelation) -> tuple[object, ...]:
        """Positions of added, removed and moved columns; branches of a union must agree on them."""
        states = [self._values.of_column(column) for column in relation.columns]
        moved = self._find_moved_column(relation)
        return (
            tuple(clause_kind for clause_kind, state in enumerate(states) if state.is_added),
            tuple(clause_kind for clause_kind, state in enumerate(states) if state.is_gone),
            tuple(column.name for column in relation.columns) if moved is not None else (),
            tuple(name for star in relation.stars for name in star.everything().facts),
        )

    def _only_grows(self, relation: QueryRelation, names: int) -> bool:
        """Whether columns are only added after the aliased ones, which some dialects allow."""
        if (
            self._dialect not in _PARTIAL_COLUMN_ALIASES
            or self._find_moved_column(relation) is not None
        ):
            return False
        states = [self._values.of_column(column) for column in relation.columns]
        return not relation.is_open and not any(
            state.is_gone or (state.is_added and clause_kind < names)
            for clause_kind, state in enumerate(states)
        )

    def _add_position(
        self, column: QueryColumn, state: ValueChange, clause_kind: ClauseKind
    ) -> None:
        leaf = self._leaf_of(column, clause_kind)
        self._uses.add_use(
            TypeUse(
                clause_kind=clause_kind,
                operation=UseOperation.LOST if state.is_unknown else UseOperation.PLACED,
                value=spelling_of(column.name),
                before=state.before,
                after=state.after,
                clause=leaf.clause or ALL,
                line=leaf.line,
                origins=tuple(dict.fromkeys(self._values.origins(column)))
                or tuple(self._values.sources(column)),
            )
        )

    def _find_moved_column(self, relation: QueryRelation) -> QueryColumn | None:
        """A column selected by a star from a table whose column order changes."""
        for column in relation.columns:
            for (table, _), fact in column.facts.items():
                if fact.is_star:
                    versions = self._values.versions(table)
                    if versions is not None and versions.is_reordered:
                        return column
        return None

    def _collect_stores(self, write: _Write, found: list[OutputColumn]) -> list[OutputColumn]:
        """Collect stores into existing columns, which keep their type; return the other outputs."""
        versions = self._values.versions(write.table)
        remaining = []
        for output in found:
            target = None
            if versions is not None:
                names = {name.lower(): pair for name, pair in versions.columns.items()}
                pair = names.get(output.name.lower())
                target = pair[0] if pair is not None else None
            if target is None:
                remaining.append(output)
                continue
            if output.after is None and output.clause == ALL and not write.has_fixed_columns:
                # A star must supply every column of the target table.
                self._uses.add_use(
                    TypeUse(
                        clause_kind=ClauseKind.INSERT,
                        operation=UseOperation.NAMED,
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
                    operation=UseOperation.LOST if output.is_unknown else UseOperation.STORED,
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
        return remaining


def _excerpt_of(column: QueryColumn) -> Excerpt | None:
    excerpts = (fact.excerpt for fact in column.facts.values())
    return next((each for each in excerpts if each is not None), None)


def _tables(node: exp.Expr) -> set[str]:
    return {table.name.lower() for table in node.find_all(exp.Table)}


def _pad_source(source: FromItem) -> FromItem:
    relation = source.relation
    padded = QueryRelation(
        (item.padded() if isinstance(item, QueryColumn) else item for item in relation.items),
        table=relation.table,
    )
    padded.uses, padded.implicit, padded.parents = (
        relation.uses,
        relation.implicit,
        relation.parents,
    )
    return source._replace(relation=padded)


Located = TypeVar("Located", TypeUse, OutputColumn)


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
    found = (each.meta.get("line") for each in node.walk())
    return next((int(line) for line in found if line is not None), None)


def with_line(found: Located, line: int, stars: Mapping[str, int]) -> Located:
    """The use or output with a line: its own, that of the star, or that of the statement."""
    if found.line is not None:
        return found
    names = (table.rpartition(".")[2].rpartition("/")[2].lower() for table, _ in found.origins)
    known_line = next((stars[name] for name in names if name in stars), line)
    return msgspec.structs.replace(found, line=known_line)
