"""The columns that a SELECT returns: expressions, aliases, stars."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from lumos.lineage.sql.reading import Reading, Role
from lumos.lineage.sql.relation import (
    Column,
    Item,
    LimitedStar,
    Relation,
    Star,
    ValueStar,
)
from lumos.lineage.sql.scope import Scope, Source
from lumos.lineage.sql.set_operations import laid_over
from lumos.lineage.sql.texts import Clause, place_of, place_within

if TYPE_CHECKING:
    from lumos.lineage.sql.queries import QueryReader

# They return one of the values that they are given: `ARRAY_AGG(t ORDER BY x LIMIT 1)[OFFSET(0)]`.
_PICKING: Final = (
    exp.Paren, exp.AnyValue, exp.ArrayAgg, exp.Bracket, exp.HavingMax, exp.IgnoreNulls, exp.Limit,
    exp.Order, exp.RespectNulls,
)  # fmt: skip


class Projections:
    """Reads what stands between SELECT and FROM."""

    def __init__(self, queries: "QueryReader") -> None:
        self._queries = queries

    def read(self, node: exp.Select, scope: Scope, clauses: Relation) -> Relation:
        """The relation of the projections; queries inside of them become parents of `clauses`."""
        items: list[Item] = []
        implicit: dict[str, Column] = {}
        keeps_aliases = self._queries.context.habits.has_lateral_aliases
        for projection in node.expressions:
            star = _star_of(projection)
            if star is not None:
                before = len(items)
                items += self._star(star, projection, scope, clauses)
                self._queries.context.spend(len(items) - before)
                continue
            if _is_assignment(projection):
                value = self._read(projection.expression, scope, clauses)
                variable = self._queries.name(projection.this)
                self._queries.hold(variable, value.column(variable))
                continue
            made = self._columns(projection, scope, clauses)
            items += made
            if isinstance(projection, exp.Alias | exp.Aliases):
                if keeps_aliases:
                    for column in made:
                        scope.aliases.setdefault(column.name, column)
            elif not isinstance(projection, exp.Column | exp.Dot):
                for name in _implicit_names(projection, self._queries):
                    implicit.setdefault(name, made[0])
        relation = Relation(items)
        relation.implicit = implicit
        return relation

    def _columns(self, node: exp.Expr, scope: Scope, clauses: Relation) -> list[Column]:
        if isinstance(node, exp.QueryTransform) and isinstance(node.args.get("schema"), exp.Schema):
            # Hive's TRANSFORM (a, b) USING 'script' AS (c, d)
            reading = self._read(exp.Tuple(expressions=node.expressions), scope, clauses)
            given = node.args["schema"].expressions
            return [reading.column(self._queries.name(each.this)) for each in given]
        if isinstance(node, exp.Aliases):
            reading = self._read(node.this, scope, clauses)
            names = [self._queries.name(name) for name in node.expressions]
            counts = isinstance(node.this, exp.Posexplode)
            return [
                Column(name) if counts and name == names[0] else reading.column(name)
                for name in names
            ]
        reading = self._read(node, scope, clauses)
        made = reading.column(self.output_name(node), maker=node)
        inside = node.this if isinstance(node, exp.Alias) else node
        if isinstance(inside, exp.Struct):
            made.fields = self._fields(inside, scope)
        return [made]

    def _fields(self, node: exp.Struct, scope: Scope) -> dict[str, Column]:
        """The fields of a struct that the query makes."""
        found: dict[str, Column] = {}
        for each in node.expressions:
            if isinstance(each, exp.PropertyEQ):
                name, value = self._queries.name(each.this), each.expression
            else:
                name, value = self.output_name(each), each
            reading = self._queries.expressions.read([value], scope, Role(Clause.ITEM))
            found[name] = reading.column(name, maker=value)
            if isinstance(value, exp.Struct):
                found[name].fields = self._fields(value, scope)
        return found

    def _read(self, node: exp.Expr, scope: Scope, clauses: Relation) -> Reading:
        end = None
        if isinstance(node, exp.Alias):
            end = place_of(node.args.get("alias"))
        reading = self._queries.expressions.read([node], scope, Role(Clause.ITEM, end=end))
        clauses.parents += reading.settle(self._queries.context.spend)
        return reading

    def output_name(self, node: exp.Expr) -> str:
        """What the column is called: its alias, its own name, or else its text."""
        if isinstance(node, exp.Alias):
            return self._queries.name(node.args["alias"])
        if isinstance(node, exp.Column):
            return self._queries.name(node.this)
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
            return self._queries.name(node.expression)
        inside = self._bare(node)
        return self._queries.name(inside.this) if inside is not None else self.text(node)

    def _bare(self, node: exp.Expr) -> exp.Column | None:
        """The column whose name brackets and casts leave as it is, where the dialect says so."""
        habits = self._queries.context.habits
        while (isinstance(node, exp.Paren) and habits.names_through_brackets) or (
            isinstance(node, exp.Cast) and habits.names_through_casts
        ):
            node = node.this
        is_named = isinstance(node, exp.Column) and not isinstance(node.this, exp.Star)
        return node if is_named and isinstance(node, exp.Column) else None

    def text(self, node: exp.Expr) -> str:
        """An expression as written, in lower case outside of quotes."""
        offset, depth = place_within(node)
        text = None
        if offset is not None:
            text = self._queries.source.around(offset, Clause.ITEM, outwards=depth)
        return lower_outside_quotes(text or self._queries.context.text_of(node))

    def _star(
        self, star: exp.Star, node: exp.Expr, scope: Scope, clauses: Relation
    ) -> Iterator[Item]:
        name = self._queries.name
        excepted = list(self._excepted(star, scope))
        left_out = {name(each) for each in excepted}
        renamed = {name(each.this): name(each.args["alias"])
                   for each in star.args.get("rename") or ()}  # fmt: skip
        replaced = {name(each.args["alias"]): each for each in star.args.get("replace") or ()}
        done: set[str] = set()
        pattern = star.args.get("ilike")
        fits = _pattern(pattern.name) if isinstance(pattern, exp.Literal) else None
        items = list(self._starred(node, scope, clauses))
        self._tell_singled_out([*excepted, *(each.this for each in star.args.get("rename") or ()),
                                *(each.args["alias"] for each in replaced.values())],
                               items)  # fmt: skip
        for item in items:
            if fits is not None and isinstance(item, Column) and not fits.fullmatch(item.name):
                continue
            if isinstance(item, Star):
                hidden = left_out | set(replaced)
                yield LimitedStar(item, hidden, renamed) if hidden or renamed else item
            elif item.name in replaced:
                done.add(item.name)
                node = replaced[item.name]
                yield self._read(node, scope, clauses).column(item.name, maker=node)
            elif item.name not in left_out:
                yield item.renamed(renamed.get(item.name, item.name))
        for column, expression in replaced.items():
            if column not in done:
                yield self._read(expression, scope, clauses).column(column)

    def _excepted(self, star: exp.Star, scope: Scope) -> Iterator[exp.Expr]:
        """The columns that a star leaves out; fields of them are no columns, and only read."""
        for each in star.args.get("except_") or ():
            if isinstance(each, exp.Anonymous):
                # ClickHouse's EXCEPT STRICT (a, b)
                yield from each.expressions
                continue
            parts = self._queries.parts(each) if isinstance(each, exp.Column) else ()
            if len(parts) > 1 and scope.source(parts[:-1]) is None:
                self._queries.expressions.read([each], scope, Role(Clause.ITEM))
            else:
                yield each

    def _tell_singled_out(self, named: Iterable[exp.Expr], items: Sequence[Item]) -> None:
        """Most dialects refuse a list of names beside a star that has one which is not there."""
        watcher = self._queries.watcher
        if watcher is None:
            return
        for each in named:
            name = self._queries.name(each)
            found = [item if isinstance(item, Column) else item.column(name)
                     for item in items
                     if isinstance(item, Star) or item.name == name]  # fmt: skip
            columns = [column for column in found if column is not None]
            excerpt = self._queries.excerpt(place_of(each), Clause.ITEM)
            watcher.singled_out(each, columns, excerpt)

    def _starred(self, node: exp.Expr, scope: Scope, clauses: Relation) -> Iterator[Item]:
        if isinstance(node, exp.Dot) and not isinstance(node.this, exp.Column):
            yield from self._fields_of(node.this, scope, clauses)
            return
        qualifier = _qualifier(node)
        if qualifier is None:
            yield from self._everything(scope)
            return
        parts = self._queries.parts(qualifier)
        if isinstance(qualifier.this, exp.Star):
            parts = parts[:-1]
        source = scope.source(parts)
        if source is not None and source.is_value:
            # The fields of the elements, not the elements.
            yield from source.relation.items
            return
        if source is not None:
            yield from self._items(source, frozenset())
            return
        # The fields of a struct.
        holder = scope.resolve(parts)
        if isinstance(holder, Column) and holder.fields:
            yield from (column.starred() for column in holder.fields.values())
            return
        reading = self._queries.expressions.read(
            [exp.Column(this=exp.to_identifier(part)) if index == 0 else None
             for index, part in enumerate(parts)],
            scope, Role(Clause.ITEM),
        )  # fmt: skip
        yield ValueStar(reading.column("*"))

    def _fields_of(self, node: exp.Expr, scope: Scope, clauses: Relation) -> Iterator[Item]:
        """All fields of a value, such as BigQuery's `IF(new.id IS NULL, old, new).*`."""
        reading = self._read(node, scope, clauses)
        rows: list[Relation] = []
        for value in _values_of(node):
            if isinstance(value, exp.Struct):
                rows.append(Relation(self._fields(value, scope).values()))
            elif isinstance(value, exp.Column):
                parts = self._queries.parts(value)
                is_column = any(source.relation.find(parts[-1]) for source in scope.sources)
                source = None if is_column else scope.source(parts)
                rows += [source.relation] if source is not None else []
        if not rows:
            yield ValueStar(reading.column("*"))
            return
        # Which row is taken decides about all of its fields.
        clauses.uses.update(reading.uses)
        for item in laid_over(rows, is_by_name=True).items:
            yield item.starred() if isinstance(item, Column) else item

    def _everything(self, scope: Scope) -> Iterator[Item]:
        if not scope.sources:
            return
        merged = dict(scope.merged)
        for name, column in merged.items():
            yield column.renamed(name).starred()
        for source in scope.sources:
            yield from self._items(source, frozenset(merged))

    def _items(self, source: Source, hidden: frozenset[str]) -> Iterator[Item]:
        for item in source.relation.items:
            if isinstance(item, ValueStar) and source.is_value and source.name:
                yield item.everything().renamed(source.name).starred()
            elif isinstance(item, Star):
                yield LimitedStar(item, hidden) if hidden else item
            elif item.name not in hidden:
                self._queries.mention(item)
                yield item.starred()


def _star_of(node: exp.Expr) -> exp.Star | None:
    if isinstance(node, exp.Star):
        return node
    if isinstance(node, exp.Columns):
        # Those whose names fit a pattern; which ones is not told.
        return node.this if isinstance(node.this, exp.Star) else exp.Star()
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        return node.this
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Star):
        return node.expression
    return None


def _values_of(node: exp.Expr) -> Iterator[exp.Expr]:
    """The expressions that one of several values is taken from; what only decides is left out."""
    waiting: list[exp.Expr | None] = [node]
    while waiting:
        value = waiting.pop()
        if isinstance(value, _PICKING):
            waiting.append(value.this)
        elif isinstance(value, exp.If):
            waiting += [value.args.get("false"), value.args.get("true")]
        elif isinstance(value, exp.Case):
            waiting += [
                value.args.get("default"),
                *(each.args["true"] for each in value.args["ifs"]),
            ]
        elif isinstance(value, exp.Coalesce):
            waiting += [*reversed(value.expressions), value.this]
        elif value is not None:
            yield value


def _pattern(text: str) -> re.Pattern[str]:
    """A pattern of LIKE."""
    parts = (".*" if each == "%" else "." if each == "_" else re.escape(each) for each in text)
    return re.compile("".join(parts), re.IGNORECASE)


def _qualifier(node: exp.Expr) -> exp.Column | None:
    if isinstance(node, exp.Column):
        return node
    if isinstance(node, exp.Dot) and isinstance(node.this, exp.Column):
        return node.this
    return None


def _is_assignment(node: exp.Expr) -> bool:
    """SELECT @total = SUM(amount) gives a variable its value and returns nothing."""
    return isinstance(node, exp.EQ | exp.PropertyEQ) and isinstance(node.this, exp.Parameter)


def _implicit_names(node: exp.Expr, queries: "QueryReader") -> Iterator[str]:
    """Names that some dialects give to what has none: of the column that is cast, the function."""
    if isinstance(node, exp.Cast):
        inside = node.this
        while isinstance(inside, exp.Cast | exp.Paren):
            inside = inside.this
        if isinstance(inside, exp.Column):
            yield queries.name(inside.this)
    elif isinstance(node, exp.Func):
        yield (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()


def lower_outside_quotes(text: str) -> str:
    """The text in lower case, except for what stands in quotes."""
    pieces: list[str] = []
    start, quote = 0, ""
    for position, character in enumerate(text):
        if quote:
            if character == quote:
                pieces.append(text[start : position + 1])
                start, quote = position + 1, ""
        elif character in "'\"`":
            pieces.append(text[start:position].lower())
            start, quote = position, character
    pieces.append(text[start:] if quote else text[start:].lower())
    return "".join(pieces)
