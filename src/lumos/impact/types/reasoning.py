"""What a change of the tables that a script reads does to the script and to what it writes."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from sqlglot import exp

from lumos.impact.rules.type_uses import (
    ClauseKind,
    OutputColumn,
    StatementEffect,
    TypeUse,
    UseOperation,
    ValueType,
)
from lumos.impact.types.lines import on_line, star_lines
from lumos.impact.types.meetings import Leaf, Meetings
from lumos.impact.types.values import State, Tables, Values
from lumos.lineage.sql.analysis import analyse
from lumos.lineage.sql.context import FromItem, Scope
from lumos.lineage.sql.deep_process import DeepProcessFailed, call_in_deep_process
from lumos.lineage.sql.dialects import find_dialect, spelling_of
from lumos.lineage.sql.relation import Excerpt, QueryColumn, QueryRelation
from lumos.lineage.sql.script import ALL, Parts, ScriptLineage
from lumos.model.lineage import Derivation, UseKind
from lumos.model.schema import Field

_PLACES: Final = {kind: ClauseKind(kind.value) for kind in UseKind}
_AMBIGUOUS: Final = re.compile(r"column '(.+)' is ambiguous")
_NAMING_SOME: Final = frozenset({"postgres", "redshift", "duckdb"})
_PADDED_RIGHT: Final = frozenset({"LEFT", "FULL"})
_PADDED_LEFT: Final = frozenset({"RIGHT", "FULL"})


def effects(
    sql: str, *, dialect: str | None, tables: Tables, is_wanted: Callable[[Parts], bool],
    with_fields: bool = False,
) -> tuple[StatementEffect, ...]:  # fmt: skip
    """What changes for the wanted tables that the script writes, one effect for each writing.

    `tables` and `is_wanted` are asked for names as the dialect folds them, not as they were quoted.
    `with_fields` asks for the types of all columns that it gives them, too.
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
    # Nested too deeply for the parser or for us; who asks takes it for not understood.
    return ()


def _effects(
    sql: str, dialect: str | None, with_fields: bool, tables: Tables,
    is_wanted: Callable[[Parts], bool],
) -> tuple[StatementEffect, ...]:  # fmt: skip
    return _Reasoning(dialect, tables).effects(sql, dialect, is_wanted, with_fields=with_fields)


class _Write(NamedTuple):
    """A result that a statement gives a table."""

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
        """All columns that the query gives, also those for which the table has no place."""
        if self.creates or not self.result.parents:
            return self.result
        return self.result.parents[0]

    @property
    def has_fixed_places(self) -> bool:
        """Whether the table expects so many columns; a plain view takes all of its query."""
        has_list = isinstance(self.node, exp.Create) and isinstance(self.node.this, exp.Schema)
        return self.positional and (has_list or not self.creates)


class _Statement:
    """What was seen in one statement."""

    def __init__(self, node: exp.Expr) -> None:
        self.node = node
        self.leaves: dict[int, Leaf] = {}
        self.shared: list[tuple[str, Sequence[QueryColumn | None], Excerpt | None]] = []
        self.singled_out: list[tuple[exp.Expr, Sequence[QueryColumn], Excerpt | None]] = []
        self.rows: list[tuple[Sequence[QueryColumn], Leaf]] = []
        self.numbered: list[tuple[QueryRelation, int]] = []
        self.unions: dict[int, tuple[exp.SetOperation, Sequence[QueryRelation], bool]] = {}


class _Reasoning:
    """Watches a script being read; names are followed once the whole of it is known."""

    def __init__(self, dialect: str | None, tables: Tables) -> None:
        self._values = Values(find_dialect(dialect), tables)
        self._dialect = (dialect or "").lower()
        self._meetings = Meetings(self._values)
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
        """Reads the script with all columns that its tables have before or after."""
        return analyse(sql, dialect=dialect, columns=self._values.names, watcher=self)

    # What the reader of SQL tells.

    @property
    def _current(self) -> _Statement:
        return self._statements[-1] if self._statements else self._loose

    def begun(self, node: exp.Expr) -> None:
        self._statements.append(_Statement(node))

    def named(
        self, node: exp.Expr, column: QueryColumn, usage: UseKind | None, excerpt: Excerpt | None
    ) -> None:
        place = ClauseKind.PROJECTION if usage is None else _PLACES[usage]
        self._current.leaves[id(node)] = Leaf(node, column, place, excerpt)
        self._values.named[id(node)] = column

    def joined(self, join: exp.Expr, scope: Scope, before: int) -> None:
        side = str(join.args.get("side") or "").upper()
        if side in _PADDED_RIGHT:
            scope.sources[before:] = map(_padded, scope.sources[before:])
        if side in _PADDED_LEFT:
            scope.sources[:before] = map(_padded, scope.sources[:before])

    def shared(
        self, name: str, sides: Sequence[QueryColumn | None], excerpt: Excerpt | None
    ) -> None:
        self._current.shared.append((name, sides, excerpt))

    def singled_out(
        self, node: exp.Expr, columns: Sequence[QueryColumn], excerpt: Excerpt | None
    ) -> None:
        is_strict = isinstance(node.parent, exp.Anonymous)
        # ClickHouse alone leaves out only what is there.
        if is_strict or self._dialect != "clickhouse":
            self._current.singled_out.append((node, columns, excerpt))

    def taken_whole(
        self, node: exp.Expr, columns: Sequence[QueryColumn], usage: UseKind | None,
        excerpt: Excerpt | None,
    ) -> None:  # fmt: skip
        place = ClauseKind.PROJECTION if usage is None else _PLACES[usage]
        self._values.rows[id(node)] = columns
        self._current.rows += [(columns, Leaf(node, columns[0], place, excerpt))] if columns else []

    def numbered(self, relation: QueryRelation, names: int) -> None:
        self._current.numbered.append((relation, names))

    def laid_over(
        self, node: exp.SetOperation, branches: Sequence[QueryRelation], *, is_by_name: bool
    ) -> None:
        self._current.unions[id(node)] = (node, branches, is_by_name)

    def written(self, table: Parts, result: QueryRelation, *, positional: bool) -> None:
        number = len(self._statements) - 1
        self._writes.append(_Write(table, result, positional, number, self._current.node))

    # What it makes of that.

    def _effect(
        self, write: _Write, script: ScriptLineage, *, with_fields: bool
    ) -> StatementEffect:
        self._meetings = Meetings(self._values, self._dialect)
        line = script.statements[write.statement].line
        stars = dict(star_lines(write.node))
        for statement in self._behind(write):
            self._follow(statement)
        doubts = self._doubts(script.statements[write.statement].number, script)
        if write.creates:
            self._repeat(write.result)
        leaves = {} if write.creates else self._statements[write.statement].leaves
        found = self._outputs(write.result, leaves)
        if write.has_fixed_places:
            self._place(write.given, ClauseKind.INSERT)
        if not write.creates:
            found = self._store(write, found)
        return StatementEffect(
            meetings=tuple(on_line(each, line, stars) for each in self._meetings.found),
            outputs=tuple(on_line(each, line, stars) for each in found),
            fields=self._fields(write.result) if with_fields else (),
            is_open=write.result.is_open,
            is_reordered=write.creates and self._moved(write.result) is not None,
            creates=write.creates,
            doubts=doubts,
        )

    def _behind(self, write: _Write) -> Iterator[_Statement]:
        """The statement that writes, and those before it that fill what is temporary."""
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
                self._meetings.follow(leaf)
        for name, sides, excerpt in statement.shared:
            self._compare_sides(name, sides, excerpt)
        for node, columns, excerpt in statement.singled_out:
            self._need_one(node, columns, excerpt)
        for row, leaf in statement.rows:
            for column in self._values.changed_in_row(row):
                state = self._values.of_column(column)
                self._meetings.tell(leaf._replace(column=column), UseOperation.LOST, state)
        for relation, names in statement.numbered:
            if not self._only_grows(relation, names):
                self._place(relation, ClauseKind.PROJECTION)
        for node, branches, is_by_name in statement.unions.values():
            self._lay_over(node, branches, is_by_name=is_by_name)

    def _doubts(self, statement: int, script: ScriptLineage) -> tuple[tuple[str, int | None], ...]:
        """What was not understood; names that a new column makes ambiguous were, before."""
        found: list[tuple[str, int | None]] = []
        for each in script.unresolved:
            if each.severity != "error" or each.statement != statement:
                continue
            match = _AMBIGUOUS.match(each.reason)
            origins = self._added(script, match.group(1)) if match else ()
            if match and origins:
                self._meetings.keep(
                    TypeUse(
                        place=ClauseKind.PROJECTION,
                        act=UseOperation.AMBIGUOUS,
                        value=match.group(1),
                        after=ValueType(),
                        line=each.line,
                        origins=origins,
                    )
                )
            else:
                found.append((each.reason, each.line))
        return tuple(found)

    def _added(self, script: ScriptLineage, name: str) -> tuple[tuple[str, str], ...]:
        found = []
        for read in script.reads:
            versions = self._values.versions(read.table)
            for column, (before, _) in versions.columns.items() if versions is not None else ():
                if versions is not None and before is None and column.lower() == name.lower():
                    found.append((versions.key, column))
        return tuple(found)

    def _outputs(self, result: QueryRelation, leaves: Mapping[int, Leaf]) -> list[OutputColumn]:
        """The columns of a result that change; `leaves` are named where they are stored."""
        found = []
        for column in result.everything():
            if not (self._values.may_change(column) or self._values.holds_changed_row(column)):
                continue
            state = self._values.of_column(column)
            meetings = self._meetings.within(self._values.makers(column))
            if not state.is_touched and not meetings:
                continue
            facts = list(column.facts.values())
            excerpt = self._where_stored(column, leaves) or _excerpt_of(column)
            found.append(
                OutputColumn(
                    name=spelling_of(column.name),
                    before=state.before,
                    after=state.after,
                    is_lost=state.is_lost,
                    is_same_value=len(facts) == 1 and facts[0].derivation is Derivation.IDENTITY,
                    clause=excerpt.text if excerpt is not None else (ALL if facts else None),
                    line=excerpt.line if excerpt is not None else None,
                    origins=tuple(dict.fromkeys(self._values.origins(column))),
                    meetings=meetings,
                )
            )
        return found

    def _where_stored(self, column: QueryColumn, leaves: Mapping[int, Leaf]) -> Excerpt | None:
        """Where a statement names what it stores, though it was computed further inside."""
        if not leaves or not isinstance(column.definition, exp.Expr):
            return None
        named = (leaves.get(id(node)) for node in column.definition.find_all(exp.Column))
        return next((leaf.excerpt for leaf in named if leaf is not None
                     and self._values.may_change(leaf.column)), None)  # fmt: skip

    def _fields(self, result: QueryRelation) -> tuple[Field, ...]:
        """The columns of a result as they are before."""
        fields = []
        for column in result.columns:
            state = self._values.of_column(column)
            if state.is_added:
                continue
            value = state.before or ValueType()
            nullable = value.nullable is not False
            fields.append(Field(name=spelling_of(column.name), type=value.type, nullable=nullable))
        return tuple(fields)

    def _need_one(
        self, node: exp.Expr, columns: Sequence[QueryColumn], excerpt: Excerpt | None
    ) -> None:
        """A name beside a star needs one column at least that it means."""
        states = [self._values.of_column(column) for column in columns]
        if not states or not all(state.is_gone or state.is_lost for state in states):
            return
        if not any(isinstance(column.definition, exp.Expr) for column in columns):
            leaf = Leaf(node, columns[0], ClauseKind.PROJECTION, excerpt)
            worst = next((state for state in states if state.is_lost), states[0])
            self._meetings.tell(leaf, UseOperation.NAMED, worst)

    def _compare_sides(
        self, name: str, sides: Sequence[QueryColumn | None], excerpt: Excerpt | None
    ) -> None:
        for column, other in (sides, tuple(reversed(sides))):
            if column is None or not self._values.may_change(column):
                continue
            state = self._values.of_column(column)
            if not state.is_touched:
                continue
            leaf = Leaf(exp.column(name), column, ClauseKind.JOIN, excerpt)
            partner = self._values.of_column(other) if other is not None else None
            act = UseOperation.NAMED if state.is_gone else UseOperation.COMPARED
            if state.is_added:
                # NATURAL joins by all names that both sides have.
                act = UseOperation.KEYED
            self._meetings.tell(
                leaf, act, state, partner=partner.after if partner else None,
                partner_before=partner.before if partner else None, partner_text=f"USING ({name})",
            )  # fmt: skip

    def _lay_over(
        self, node: exp.SetOperation, branches: Sequence[QueryRelation], *, is_by_name: bool
    ) -> None:
        if is_by_name:
            return
        if len({self._new_places(branch) for branch in branches}) > 1:
            for branch in branches:
                self._place(branch, ClauseKind.UNION)
        is_distinct = bool(node.args.get("distinct"))
        for branch in branches:
            for position, column in enumerate(branch.columns):
                if branch.is_open or not self._values.may_change(column):
                    continue
                state = self._values.of_column(column)
                if not state.is_touched or state.is_gone or state.is_added:
                    continue
                others = [each.columns[position] for each in branches
                          if each is not branch and position < len(each.columns)
                          and not each.is_open]  # fmt: skip
                leaf = self._leaf_of(column, ClauseKind.UNION)
                for other in others:
                    partner = self._values.of_column(other)
                    self._meetings.tell(
                        leaf, UseOperation.COMBINED, state, partner=partner.after,
                        partner_before=partner.before, partner_text=f"{node.key.upper()}",
                        root=id(column),
                    )  # fmt: skip
                if is_distinct:
                    self._meetings.tell(leaf, UseOperation.GROUPED, state)

    def _leaf_of(self, column: QueryColumn, place: ClauseKind) -> Leaf:
        return Leaf(exp.column(spelling_of(column.name)), column, place, _excerpt_of(column))

    def _place(self, relation: QueryRelation, place: ClauseKind) -> None:
        """Columns that come, go or move within a list in which places count."""
        for column in relation.columns:
            state = self._values.of_column(column)
            if state.is_added or (state.is_gone and not isinstance(column.definition, exp.Expr)):
                self._tell_place(column, state, place)
        moved = self._moved(relation)
        if moved is not None:
            self._tell_place(moved, self._values.of_column(moved), place)
        for star in relation.stars:
            if self._values.may_change(star.everything()):
                self._tell_place(star.everything(), State(ValueType(), ValueType(), True), place)

    def _repeat(self, relation: QueryRelation) -> None:
        """New columns that are called as others of the same table."""
        names = Counter(column.name for column in relation.columns)
        for column in relation.columns:
            if names[column.name] < 2:
                continue
            state = self._values.of_column(column)
            if state.is_added:
                self._meetings.tell(
                    self._leaf_of(column, ClauseKind.PROJECTION), UseOperation.AMBIGUOUS, state
                )

    def _new_places(self, relation: QueryRelation) -> tuple[object, ...]:
        """Where columns come, go or move; arms of a union in which that is the same still fit."""
        states = [self._values.of_column(column) for column in relation.columns]
        moved = self._moved(relation)
        return (
            tuple(place for place, state in enumerate(states) if state.is_added),
            tuple(place for place, state in enumerate(states) if state.is_gone),
            tuple(column.name for column in relation.columns) if moved is not None else (),
            tuple(name for star in relation.stars for name in star.everything().facts),
        )

    def _only_grows(self, relation: QueryRelation, names: int) -> bool:
        """Whether columns only come behind those with names, where a dialect needs no more."""
        if self._dialect not in _NAMING_SOME or self._moved(relation) is not None:
            return False
        states = [self._values.of_column(column) for column in relation.columns]
        return not relation.is_open and not any(
            state.is_gone or (state.is_added and place < names)
            for place, state in enumerate(states)
        )

    def _tell_place(self, column: QueryColumn, state: State, place: ClauseKind) -> None:
        leaf = self._leaf_of(column, place)
        self._meetings.keep(
            TypeUse(
                place=place,
                act=UseOperation.LOST if state.is_lost else UseOperation.PLACED,
                value=spelling_of(column.name),
                before=state.before,
                after=state.after,
                clause=leaf.clause or ALL,
                line=leaf.line,
                origins=tuple(dict.fromkeys(self._values.origins(column)))
                or tuple(self._values.sources(column)),
            )
        )

    def _moved(self, relation: QueryRelation) -> QueryColumn | None:
        """A column that a star takes from a table whose columns stand in another order."""
        for column in relation.columns:
            for (table, _), fact in column.facts.items():
                if fact.is_star:
                    versions = self._values.versions(table)
                    if versions is not None and versions.is_reordered:
                        return column
        return None

    def _store(self, write: _Write, found: list[OutputColumn]) -> list[OutputColumn]:
        """Columns that exist take what they are given, or refuse it; either way they stay."""
        versions = self._values.versions(write.table)
        going_on = []
        for output in found:
            target = None
            if versions is not None:
                names = {name.lower(): pair for name, pair in versions.columns.items()}
                pair = names.get(output.name.lower())
                target = pair[0] if pair is not None else None
            if target is None:
                going_on.append(output)
                continue
            if output.after is None and output.clause == ALL and not write.has_fixed_places:
                # A star has to bring what the table has a column for.
                self._meetings.keep(
                    TypeUse(
                        place=ClauseKind.INSERT,
                        act=UseOperation.NAMED,
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
            self._meetings.keep(
                TypeUse(
                    place=ClauseKind.INSERT,
                    act=UseOperation.LOST if output.is_lost else UseOperation.STORED,
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
        return going_on


def _excerpt_of(column: QueryColumn) -> Excerpt | None:
    excerpts = (fact.excerpt for fact in column.facts.values())
    return next((each for each in excerpts if each is not None), None)


def _tables(node: exp.Expr) -> set[str]:
    return {table.name.lower() for table in node.find_all(exp.Table)}


def _padded(source: FromItem) -> FromItem:
    relation = source.relation
    made = QueryRelation(
        (item.padded() if isinstance(item, QueryColumn) else item for item in relation.items),
        table=relation.table,
    )
    made.uses, made.implicit, made.parents = relation.uses, relation.implicit, relation.parents
    return source._replace(relation=made)
