"""What an expression does with values that change, from the columns up to the whole."""

import re
from collections.abc import Container, Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from sqlglot import exp

from lumos.impact.rules.type_uses import ArgumentKind, ClauseKind, TypeUse, UseOperation, ValueType
from lumos.impact.types import any_type, functions
from lumos.impact.types.types import from_sqlglot
from lumos.impact.types.values import State, Values, root_of
from lumos.lineage.sql.relation import Excerpt, QueryColumn
from lumos.lineage.sql.source_text import Clause
from lumos.model.types import BOOLEAN, STRING, Array, Map, String

_COMPARISONS: Final = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ,
    exp.EqualNull,
)  # fmt: skip
_ORDERINGS: Final = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.Greatest, exp.Least)
_CALCULATIONS: Final = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.Neg)
_COMBINING: Final = (exp.Coalesce, exp.Greatest, exp.Least)
_SPELLING: Final = (exp.Concat, exp.ConcatWs, exp.DPipe)
# The value goes through them as it is.
_TRANSPARENT: Final = (
    exp.Alias, exp.Aliases, exp.Paren, exp.Filter, exp.Subquery, exp.Tuple, exp.WithinGroup,
    exp.Exists, exp.Window, exp.Where, exp.Dot, exp.Collate, exp.Ordered, exp.Having, exp.Limit,
    exp.Kwarg, exp.PropertyEQ, exp.JSONKeyValue, exp.Query, exp.All, exp.Any,
)  # fmt: skip
# They make another type of a value, whatever it is.
_CONVERTING: Final = (
    exp.Date, exp.TsOrDsToDate, exp.TsOrDsToTimestamp, exp.Timestamp, exp.Datetime,
    exp.TimeStrToTime,
)  # fmt: skip
_CONVERSIONS: Final = (exp.Cast, *_CONVERTING)
_CONVERSION: Final = re.compile(
    r"(?:cast|convert|date|datetime|timestamp|time|to_\w+)\s*\(|::", re.IGNORECASE
)
_LONGEST: Final = 120
# They work whatever the value is.
_HEEDLESS: Final = (UseOperation.COUNTED, UseOperation.CAST)


class Leaf(NamedTuple):
    """A column that is named somewhere, and in what clause."""

    node: exp.Expr
    column: QueryColumn
    place: ClauseKind
    excerpt: Excerpt | None

    @property
    def clause(self) -> str | None:
        return self.excerpt.text if self.excerpt is not None else None

    @property
    def line(self) -> int | None:
        return self.excerpt.line if self.excerpt is not None else None


class Meetings:
    """Collects meetings, each once."""

    def __init__(self, values: Values, dialect: str = "") -> None:
        self._values = values
        self._dialect = dialect
        # Whether the dialect refuses to write numbers out where texts are put together.
        self._takes_only_text = dialect == "bigquery"
        self._found: dict[TypeUse, set[int]] = {}
        self._seen: set[tuple[int, int]] = set()

    @property
    def found(self) -> tuple[TypeUse, ...]:
        return tuple(self._found)

    def within(self, nodes: Container[int]) -> tuple[int, ...]:
        """The places, among those found, of the meetings in some expressions."""
        return tuple(
            number
            for number, roots in enumerate(self._found.values())
            if any(root in nodes for root in roots)
        )

    def follow(self, leaf: Leaf) -> None:
        """All that is done with a named column, up to the end of its clause."""
        state = self._values.of_column(leaf.column)
        if not state.is_touched:
            return
        if state.is_added:
            # The name meant something else before, or nothing that a query could use.
            self.tell(leaf, UseOperation.AMBIGUOUS, state)
            return
        if state.is_gone:
            if not isinstance(leaf.column.definition, exp.Expr):
                self.tell(leaf, UseOperation.NAMED, state)
            return
        if state.is_lost and leaf.column.definition is None:
            self.tell(leaf, UseOperation.LOST, state)
        if not isinstance(leaf.node, exp.Column):
            # A number that stands for a column in GROUP BY or ORDER BY.
            self._at_end(leaf, leaf.node, state)
            return
        child: exp.Expr = leaf.node
        while (parent := child.parent) is not None and state.is_touched:
            if self._ends(child, parent):
                break
            if (id(child), id(parent)) not in self._seen:
                self._seen.add((id(child), id(parent)))
                self._meet(leaf, child, parent, state)
            if isinstance(parent, exp.Exists | exp.Is) or _only_decides(child, parent):
                return
            if isinstance(parent, exp.Select):
                leaf = _outside(leaf, parent)
            if not _holds_as_it_is(parent):
                state = self._values.of_node(_value_of(parent))
            child = parent
            if state.is_gone:
                return
        if state.is_touched:
            self._at_end(leaf, child, state)

    def _ends(self, child: exp.Expr, parent: exp.Expr) -> bool:
        """Whether a clause ends here; a query inside an expression is a value of that."""
        if isinstance(parent, exp.Select):
            if child.arg_key != "expressions":
                return True
            return not isinstance(_holder(parent), exp.Condition | exp.Exists)
        if isinstance(parent, exp.SetOperation):
            return not isinstance(_holder(parent), exp.Condition | exp.Exists)
        if isinstance(parent, exp.Where):
            return not isinstance(parent.parent, exp.Filter)
        if isinstance(parent, exp.Order):
            return isinstance(parent.parent, exp.Query)
        if isinstance(parent, exp.Distinct):
            return isinstance(parent.parent, exp.Query)
        return not isinstance(parent, _INSIDE) or _assigns(parent)

    def _at_end(self, leaf: Leaf, child: exp.Expr, state: State) -> None:
        """What the clause as a whole does with the value."""
        parent = child.parent
        if leaf.place is ClauseKind.GROUP_BY or (
            isinstance(parent, exp.Select)
            and child.arg_key == "expressions"
            and parent.args.get("distinct") is not None
        ):
            self.tell(leaf, UseOperation.GROUPED, state)
        elif leaf.place is ClauseKind.SORT:
            self.tell(leaf, UseOperation.SORTED, state)
        elif isinstance(parent, exp.Where | exp.Having | exp.Qualify) or child.arg_key == "on":
            self._condition(leaf, child, state)
        elif isinstance(parent, exp.Unnest | exp.Lateral | exp.Table | exp.Pivot):
            self.tell(leaf, UseOperation.LOST, state)

    def _meet(self, leaf: Leaf, child: exp.Expr, parent: exp.Expr, state: State) -> None:
        if isinstance(parent, _CONVERSIONS) and not _CONVERSION.search(leaf.clause or ""):
            # Nobody wrote it: so the parser makes functions of different dialects alike.
            around = parent.parent if isinstance(parent.parent, exp.Func) else parent
            self._call(leaf, child, around, state)
        elif isinstance(parent, exp.Cast):
            partner = ValueType(type=from_sqlglot(parent.to))
            is_boolean = partner.type == BOOLEAN
            self.tell(leaf, UseOperation.CAST, state, partner=partner, partner_before=partner,
                      partner_text=parent.to.sql().upper(),
                      accepts=functions.cast_to_boolean(self._dialect) if is_boolean else None,
                      )  # fmt: skip
        elif isinstance(parent, _CONVERTING) and child.arg_key == "this":
            made = self._values.of_node(parent)
            self.tell(leaf, UseOperation.CAST, state, partner=made.after, partner_before=made.before,
                      partner_text=functions.name_of(parent))  # fmt: skip
        elif isinstance(parent, exp.Is):
            if isinstance(parent.expression, exp.Null):
                self.tell(leaf, UseOperation.COUNTED, state, partner_text="IS NULL")
            else:
                partner = ValueType(type=BOOLEAN)
                self.tell(
                    leaf, UseOperation.COMPARED, state, partner=partner, partner_before=partner
                )
        elif isinstance(parent, _COMPARISONS):
            # One null among ALL, and no comparison holds.
            is_with_all = isinstance(parent.this, exp.All) or isinstance(parent.expression, exp.All)
            self._compare(leaf, state, [_other(parent, child)],
                          UseOperation.NOT_IN if is_with_all else UseOperation.COMPARED,
                          is_ordering=isinstance(parent, _ORDERINGS))  # fmt: skip
        elif isinstance(parent, exp.Between):
            others = [each for each in (parent.this, parent.args["low"], parent.args["high"])
                      if each is not child]  # fmt: skip
            self._compare(leaf, state, others if child is parent.this else [parent.this],
                          is_ordering=True)  # fmt: skip
        elif isinstance(parent, exp.In):
            self._in(leaf, child, parent, state)
        elif isinstance(parent, exp.Nullif):
            self._compare(leaf, state, [_other(parent, child)])
        elif isinstance(parent, exp.Case | exp.If | exp.Nvl2):
            self._choose(leaf, child, parent, state)
        elif isinstance(parent, _COMBINING):
            others = [each for each in (parent.this, *parent.expressions) if each is not child]
            self._combine(leaf, state, others, functions.name_of(parent),
                          is_ordering=isinstance(parent, _ORDERINGS))  # fmt: skip
        elif isinstance(parent, exp.Lag | exp.Lead) and parent.args.get("default") is not None:
            # LAG(x, 1, 0): the value and its default share one type.
            if child.arg_key == "offset":
                self._call(leaf, child, parent, state)
            else:
                key = "default" if child.arg_key == "this" else "this"
                self._combine(leaf, state, [parent.args[key]], functions.name_of(parent))
        elif isinstance(parent, exp.Array):
            others = [each for each in parent.expressions if each is not child]
            self._combine(leaf, state, others, functions.name_of(parent))
        elif isinstance(parent, _CALCULATIONS):
            other = _other(parent, child) if isinstance(parent, exp.Binary) else None
            beside = self._values.of_node(other) if other is not None else None
            accepts, name = functions.calculated(parent, self._dialect)
            is_whole = isinstance(parent, exp.Div) and bool(parent.args.get("typed"))
            self.tell(leaf, UseOperation.DIVIDED if is_whole else UseOperation.CALCULATED, state,
                      partner=beside.after if beside else None,
                      partner_before=beside.before if beside else None,
                      accepts=accepts, partner_text=name)  # fmt: skip
        elif isinstance(parent, exp.Distinct):
            self.tell(leaf, UseOperation.GROUPED, state)
        elif isinstance(parent, exp.Count):
            self.tell(leaf, UseOperation.COUNTED, state, partner_text="COUNT")
        elif isinstance(parent, exp.Window) and child.arg_key == "partition_by":
            self.tell(leaf, UseOperation.GROUPED, state)
        elif _measures_list(parent, state):
            self.tell(leaf, UseOperation.COUNTED, state, accepts=functions.NESTED,
                      partner_text=functions.name_of(parent))  # fmt: skip
        elif isinstance(parent, exp.Order):
            if child.arg_key == "expressions":
                self.tell(leaf, UseOperation.SORTED, state)
                self._range(leaf, parent, state)
        elif isinstance(parent, exp.Where):
            self._condition(leaf, child, state)
        elif isinstance(parent, exp.Bracket) and child.arg_key == "expressions":
            self._index(leaf, parent, state)
        elif isinstance(parent, exp.Exists) and not isinstance(parent.this, exp.Query):
            # EXISTS (list, element -> condition)
            self.tell(leaf, UseOperation.CALLED, state, accepts=functions.NESTED,
                      partner_text=functions.name_of(parent))  # fmt: skip
        elif isinstance(parent, _SPELLING) and not self._takes_only_text:
            self.tell(leaf, UseOperation.SPELLED, state, partner_text=functions.name_of(parent))
        elif isinstance(parent, _TRANSPARENT):
            return
        else:
            self._call(leaf, child, parent, state)

    def _call(self, leaf: Leaf, child: exp.Expr, parent: exp.Expr, state: State) -> None:
        argument = str(child.arg_key or "")
        accepts = functions.taken(parent, argument, self._dialect)
        use = any_type.use_of(parent, argument, self._dialect)
        if use is not None:
            is_lost = UseOperation.HANDED_ON in use.acts and self._values.of_node(parent).is_lost
            for act in use.acts:
                self.tell(leaf, UseOperation.LOST if is_lost else act, state, accepts=accepts,
                          partner_text=functions.name_of(parent))  # fmt: skip
            return
        if isinstance(parent, exp.Bracket) and _has_other_key(state):
            accepts = None
        is_aggregate = isinstance(parent, exp.AggFunc)
        self.tell(leaf, UseOperation.AGGREGATED if is_aggregate else UseOperation.CALLED, state,
                  accepts=accepts, partner_text=functions.name_of(parent))  # fmt: skip

    def _condition(self, leaf: Leaf, child: exp.Expr, state: State) -> None:
        """A value that is itself true or false."""
        if not isinstance(child, exp.Predicate | exp.Connector | exp.Not):
            self.tell(leaf, UseOperation.CALLED, state, accepts=functions.BOOLEAN,
                      partner_text="a condition")  # fmt: skip

    def _range(self, leaf: Leaf, order: exp.Order, state: State) -> None:
        """The order of a window whose frame is so much less or more than the value."""
        spec = order.parent.args.get("spec") if isinstance(order.parent, exp.Window) else None
        if spec is None or str(spec.args.get("kind")).upper() != "RANGE":
            return
        for key in ("start", "end"):
            offset = spec.args.get(key)
            if isinstance(offset, exp.Expr) and not isinstance(offset, exp.Var):
                beside = self._values.of_node(offset)
                self.tell(leaf, UseOperation.CALCULATED, state, partner=beside.after,
                          partner_before=beside.before)  # fmt: skip

    def _index(self, leaf: Leaf, parent: exp.Bracket, state: State) -> None:
        """The place in a list, or the key in a map."""
        holder = self._values.of_node(parent.this).after
        held = holder.type if holder is not None else None
        if isinstance(held, Map) and not functions.is_element_at(parent, self._dialect):
            key = ValueType(type=held.key)
            self.tell(leaf, UseOperation.COMPARED, state, partner=key, partner_before=key,
                      partner_text="a key")  # fmt: skip
            return
        is_list = isinstance(held, Array)
        self.tell(leaf, UseOperation.CALLED, state, partner_text="[...]",
                  accepts=functions.place(parent, self._dialect) if is_list else None)  # fmt: skip

    def _in(self, leaf: Leaf, child: exp.Expr, parent: exp.In, state: State) -> None:
        query = parent.args.get("query")
        others: list[exp.Expr] = [parent.this]
        if child is parent.this:
            others = [query] if query is not None else list(parent.expressions)
        is_negated = isinstance(parent.parent, exp.Not) or (
            isinstance(parent.parent, exp.Paren) and isinstance(parent.parent.parent, exp.Not)
        )
        self._compare(
            leaf, state, others, UseOperation.NOT_IN if is_negated else UseOperation.COMPARED
        )

    def _choose(self, leaf: Leaf, child: exp.Expr, parent: exp.Expr, state: State) -> None:
        """CASE and IF: a value that is compared, a condition, or one of the results."""
        case = parent
        if isinstance(parent, exp.If) and isinstance(parent.parent, exp.Case):
            case = parent.parent
        branches = case.args.get("ifs") or ([case] if isinstance(case, exp.If) else [])
        operand = case.this if isinstance(case, exp.Case) else None
        if child is operand:
            self._compare(leaf, state, [each.this for each in branches])
        elif child.arg_key == "this" and isinstance(parent, exp.If):
            if operand is not None:
                self._compare(leaf, state, [operand])
            else:
                self._condition(leaf, child, state)
        elif child.arg_key in ("true", "false", "default"):
            results = [each.args.get("true") for each in branches]
            results += [case.args.get("default"), case.args.get("false")]
            others = [each for each in results if each is not None and each is not child]
            self._combine(leaf, state, others, "CASE" if case is not parent else "IF")

    def _compare(
        self, leaf: Leaf, state: State, others: Iterable[exp.Expr],
        act: UseOperation = UseOperation.COMPARED, *, is_ordering: bool = False,
    ) -> None:  # fmt: skip
        for other, text in _distinct(others):
            partner = self._values.of_node(_value_of(other))
            self.tell(leaf, act, state, partner=partner.after,
                      partner_before=partner.before, partner_text=text,
                      is_literal=_is_literal(other), is_ordering=is_ordering)  # fmt: skip

    def _combine(
        self, leaf: Leaf, state: State, others: Iterable[exp.Expr], name: str,
        *, is_ordering: bool = False,
    ) -> None:  # fmt: skip
        told = False
        for other, text in _distinct(others):
            if isinstance(other, exp.Null):
                continue
            told = True
            partner = self._values.of_node(_value_of(other))
            self.tell(leaf, UseOperation.COMBINED, state, partner=partner.after,
                      partner_before=partner.before, is_literal=_is_literal(other),
                      is_ordering=is_ordering, partner_text=f"{text} in {name}")  # fmt: skip
        if not told:
            self.tell(leaf, UseOperation.COMBINED, state, partner=state.after,
                      partner_before=state.before, partner_text=name)  # fmt: skip

    def tell(
        self, leaf: Leaf, act: UseOperation, state: State, *,
        partner: ValueType | None = None, partner_before: ValueType | None = None,
        partner_text: str | None = None, is_literal: bool = False, is_ordering: bool = False,
        accepts: tuple[ArgumentKind, ...] | None = None, root: int | None = None,
    ) -> None:  # fmt: skip
        """Keeps a meeting; `root` is what is computed there, unless it is the leaf's clause."""
        if state.is_lost and act not in _HEEDLESS:
            act = UseOperation.LOST
        if act is UseOperation.GROUPED and self._may_be_too_long(state):
            act = UseOperation.LOST
        meeting = TypeUse(
            place=leaf.place,
            act=act,
            value=leaf.node.name if isinstance(leaf.node, exp.Column) else leaf.column.name,
            before=state.before,
            after=state.after,
            partner=partner,
            partner_before=partner_before,
            partner_text=partner_text,
            is_literal=is_literal,
            is_ordering=is_ordering,
            accepts=accepts,
            clause=leaf.clause,
            line=leaf.line,
            origins=tuple(dict.fromkeys(self._values.origins(leaf.column))),
        )
        self._found.setdefault(meeting, set()).add(root or id(root_of(leaf.node)))

    def _may_be_too_long(self, state: State) -> bool:
        """Whether values become texts that the dialect may not group by."""
        before, after = (each.type if each is not None else None
                         for each in (state.before, state.after))  # fmt: skip
        return (
            after == STRING
            and not isinstance(before, String)
            and not any_type.groups_by_text(self._dialect)
        )

    def keep(self, meeting: TypeUse) -> None:
        """Keeps a meeting that somebody else found."""
        self._found.setdefault(meeting, set())


_INSIDE: Final = (
    exp.Condition, exp.Func, exp.Predicate,
    exp.Alias, exp.Aliases, exp.Ordered, exp.Window, exp.Filter, exp.Subquery, exp.Tuple,
    exp.WithinGroup, exp.If, exp.Interval, exp.Distinct, exp.Order, exp.Query, exp.Kwarg,
    exp.PropertyEQ, exp.JSONKeyValue, exp.IgnoreNulls, exp.RespectNulls, exp.Lambda, exp.Bracket,
    exp.Limit, exp.Having, exp.Where,
)  # fmt: skip


def _has_other_key(state: State) -> bool:
    """Whether the keys of a map get another type, in which not every key can be looked up."""
    before, after = (
        each.type.key if each is not None and isinstance(each.type, Map) else None
        for each in (state.before, state.after)
    )
    return before != after


def _assigns(node: exp.Expr) -> bool:
    """Whether an equation is none: SET of an UPDATE gives a column its value."""
    return isinstance(node.parent, exp.Update) and node.arg_key == "expressions"


def _holder(query: exp.Expr) -> exp.Expr | None:
    """What a query is a part of, brackets and arms of set operations aside."""
    parent = query.parent
    while isinstance(parent, exp.Subquery | exp.SetOperation):
        parent = parent.parent
    return parent


def _outside(leaf: Leaf, query: exp.Expr) -> Leaf:
    """The same column where the query around it is a part of another clause."""
    around = query.find_ancestor(*_CLAUSES)
    if around is None:
        return leaf
    place, clause = _CLAUSES[type(around)]
    excerpt = leaf.excerpt
    if excerpt is not None:
        excerpt = excerpt._replace(clause=clause, end=None, outwards=excerpt.outwards + 1)
    return leaf._replace(place=place, excerpt=excerpt)


_CLAUSES: Final[dict[type[exp.Expr], tuple[ClauseKind, Clause]]] = {
    exp.Where: (ClauseKind.FILTER, Clause.WHERE),
    exp.Having: (ClauseKind.FILTER, Clause.HAVING),
    exp.Qualify: (ClauseKind.FILTER, Clause.QUALIFY),
    exp.Join: (ClauseKind.JOIN, Clause.ON),
    exp.Select: (ClauseKind.PROJECTION, Clause.ITEM),
}


def _holds_as_it_is(node: exp.Expr) -> bool:
    """Whether a value stands there beside others as it is: a field, or DISTINCT a, b."""
    if isinstance(node, exp.Tuple):
        return isinstance(node.parent, exp.Distinct | exp.GroupingSets | exp.Group)
    return isinstance(node, exp.PropertyEQ | exp.JSONKeyValue | exp.Distinct)


def _measures_list(node: exp.Expr, state: State) -> bool:
    """Whether a function counts the elements of a list, as LENGTH does in some dialects."""
    if isinstance(node, exp.ArraySize):
        return True
    return isinstance(node, exp.Length) and all(
        each is not None and isinstance(each.type, Array) for each in (state.before, state.after)
    )


def _only_decides(child: exp.Expr, parent: exp.Expr) -> bool:
    """Whether a part of an expression has no say in its value's type."""
    if isinstance(parent, exp.Window):
        return child.arg_key != "this"
    if isinstance(parent, exp.If):
        return child.arg_key == "this"
    if isinstance(parent, exp.Case):
        return child.arg_key == "this"
    if isinstance(parent, exp.Filter):
        return child.arg_key != "this"
    return isinstance(parent, exp.Order) and child.arg_key == "expressions"


def _value_of(node: exp.Expr) -> exp.Expr:
    """A query stands for the first column that it returns."""
    while isinstance(node, exp.Subquery | exp.SetOperation | exp.Paren | exp.All | exp.Any):
        node = node.this
    if isinstance(node, exp.Select) and len(node.expressions) == 1:
        only: exp.Expr = node.expressions[0]
        return only
    return node


def _other(node: exp.Expr, child: exp.Expr) -> exp.Expr:
    other: exp.Expr = node.args["expression"] if node.this is child else node.this
    return other


def _distinct(nodes: Iterable[exp.Expr]) -> Iterator[tuple[exp.Expr, str]]:
    """Of many literals of one kind, one stands for all, with the text of all."""
    kinds: dict[str, list[exp.Expr]] = {}
    for node in nodes:
        if isinstance(node, exp.Literal):
            kind = "text" if node.is_string else ("whole" if node.this.isdigit() else "number")
            kinds.setdefault(kind, []).append(node)
        else:
            yield node, _text(node)
    for literals in kinds.values():
        yield literals[0], ", ".join(map(_text, literals))


def _is_literal(node: exp.Expr) -> bool:
    inside = node.this if isinstance(node, exp.Neg | exp.Paren) else node
    return isinstance(inside, exp.Literal | exp.Boolean)


def _text(node: exp.Expr) -> str:
    if next(islice(node.walk(), _LONGEST, None), None) is not None:
        return "an expression"
    text = node.sql()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
