"""Collects type uses: the operations that expressions apply to changed columns."""

import re
from collections.abc import Container, Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from sqlglot import exp

from lumos.impact.rules.type_uses import ArgumentKind, ClauseKind, TypeUse, UseOperation, ValueType
from lumos.impact.types import functions
from lumos.impact.types.sqlglot_types import from_sqlglot
from lumos.impact.types.values import ExpressionTypes, ValueChange, root_of
from lumos.lineage.sql.dialects import NestedName, in_original_case
from lumos.lineage.sql.relation import Excerpt, FieldAccess, QueryColumn
from lumos.lineage.sql.source_text import Clause
from lumos.model.types import BOOLEAN, STRING, Array, Map, String

_COMPARISONS: Final = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ,
    exp.EqualNull,
)  # fmt: skip
_ORDERINGS: Final = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.Greatest, exp.Least)
_CALCULATIONS: Final = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.Neg)
_COMBINING_FUNCTIONS: Final = (exp.Coalesce, exp.Greatest, exp.Least)
_CONCATENATIONS: Final = (exp.Concat, exp.ConcatWs, exp.DPipe)
# Expressions that return the value unchanged.
_TRANSPARENT: Final = (
    exp.Alias, exp.Aliases, exp.Paren, exp.Filter, exp.Subquery, exp.Tuple, exp.WithinGroup,
    exp.Exists, exp.Window, exp.Where, exp.Dot, exp.Collate, exp.Ordered, exp.Having, exp.Limit,
    exp.Kwarg, exp.PropertyEQ, exp.JSONKeyValue, exp.Query, exp.All, exp.Any,
)  # fmt: skip
# Functions that convert a value to another type.
_CONVERSION_FUNCTIONS: Final = (
    exp.Date, exp.TsOrDsToDate, exp.TsOrDsToTimestamp, exp.Timestamp, exp.Datetime,
    exp.TimeStrToTime,
)  # fmt: skip
_CONVERSIONS: Final = (exp.Cast, *_CONVERSION_FUNCTIONS)
_CONVERSION_SYNTAX: Final = re.compile(
    r"(?:cast|convert|date|datetime|timestamp|time|to_\w+)\s*\(|::", re.IGNORECASE
)
_MAX_TEXT_LENGTH: Final = 120
# Operations that work for any type.
_TYPE_INDEPENDENT: Final = (UseOperation.COUNTED, UseOperation.CAST)


class ColumnReference(NamedTuple):
    """A reference to a column in a clause."""

    node: exp.Expr
    column: QueryColumn
    clause_kind: ClauseKind
    excerpt: Excerpt | None

    @property
    def clause(self) -> str | None:
        return self.excerpt.text if self.excerpt is not None else None

    @property
    def line(self) -> int | None:
        return self.excerpt.line if self.excerpt is not None else None

    @property
    def value(self) -> str:
        """The name of the column, or the path of the nested field."""
        paths = [path for _, path in self.column.origins if isinstance(path, NestedName)]
        if len(paths) == len(self.column.origins) == 1 and isinstance(
            self.column.definition, FieldAccess
        ):
            return in_original_case(paths[0])
        return self.node.name if isinstance(self.node, exp.Column) else self.column.name


class TypeUseCollector:
    """Collects distinct type uses."""

    def __init__(self, values: ExpressionTypes, dialect: str = "") -> None:
        self._values = values
        self._dialect = dialect
        self._concatenation_rejects_numbers = dialect == "bigquery"
        self._roots_by_use: dict[TypeUse, set[int]] = {}
        self._collected: set[tuple[int, int]] = set()

    @property
    def type_uses(self) -> tuple[TypeUse, ...]:
        return tuple(self._roots_by_use)

    def indexes_of(self, ids: Container[int]) -> tuple[int, ...]:
        """The indexes of the type uses within one of the expressions or columns with these ids."""
        return tuple(
            index
            for index, roots in enumerate(self._roots_by_use.values())
            if any(root in ids for root in roots)
        )

    def collect_uses(self, reference: ColumnReference) -> None:
        """Collect all uses of a referenced column, up to the end of its clause."""
        change = self._values.change_of_column(reference.column)
        if not change.is_changed:
            return
        if change.is_added:
            # Before the change, the name referred to something else or to nothing.
            self.add(reference, UseOperation.AMBIGUOUS, change)
            return
        if change.is_removed:
            if not isinstance(reference.column.definition, exp.Expr):
                self.add(reference, UseOperation.MISSING, change)
            return
        if change.is_unknown and reference.column.definition is None:
            self.add(reference, UseOperation.UNKNOWN, change)
        if not isinstance(reference.node, exp.Column):
            # A column number in GROUP BY or ORDER BY.
            self._collect_clause_use(reference, reference.node, change)
            return
        child: exp.Expr = reference.node
        while (parent := child.parent) is not None and change.is_changed:
            if self._is_end_of_clause(child, parent) or _expands_elements(child, change):
                break
            if (id(child), id(parent)) not in self._collected:
                self._collected.add((id(child), id(parent)))
                self._collect(reference, child, parent, change)
            if isinstance(parent, exp.Exists | exp.Is) or _is_irrelevant_to_type(child, parent):
                return
            if isinstance(parent, exp.Select):
                reference = _in_outer_clause(reference, parent)
            if not _keeps_value(parent):
                change = self._values.change_of_node(_value_node(parent))
            child = parent
            if change.is_removed:
                if isinstance(parent, exp.Dot):
                    # The field of an element, as in items[0].sku.
                    self.add(reference, UseOperation.MISSING, change, value=parent.expression.name)
                return
        if change.is_changed and not _expands_elements(child, change):
            self._collect_clause_use(reference, child, change)

    def _is_end_of_clause(self, child: exp.Expr, parent: exp.Expr) -> bool:
        """Whether the clause ends here; a scalar subquery belongs to the expression around it."""
        if isinstance(parent, exp.Select) and child.arg_key != "expressions":
            return True
        if isinstance(parent, exp.Select | exp.SetOperation):
            return not isinstance(_containing_node(parent), exp.Condition | exp.Exists)
        if isinstance(parent, exp.Where):
            return not isinstance(parent.parent, exp.Filter)
        if isinstance(parent, exp.Order | exp.Distinct):
            return isinstance(parent.parent, exp.Query)
        is_assignment = isinstance(parent.parent, exp.Update) and parent.arg_key == "expressions"
        return not isinstance(parent, _INNER_NODES) or is_assignment

    def _collect_clause_use(
        self, reference: ColumnReference, child: exp.Expr, change: ValueChange
    ) -> None:
        """Collect the use of a value by its clause: GROUP BY, ORDER BY, a condition."""
        parent = child.parent
        if reference.clause_kind is ClauseKind.GROUP_BY or (
            isinstance(parent, exp.Select)
            and child.arg_key == "expressions"
            and parent.args.get("distinct") is not None
        ):
            self.add(reference, UseOperation.GROUPED, change)
        elif reference.clause_kind is ClauseKind.SORT:
            self.add(reference, UseOperation.SORTED, change)
        elif isinstance(parent, exp.Where | exp.Having | exp.Qualify) or child.arg_key == "on":
            self._collect_condition(reference, child, change)
        elif isinstance(parent, exp.Unnest | exp.Lateral | exp.Table | exp.Pivot):
            self.add(reference, UseOperation.UNKNOWN, change)

    def _collect(
        self, reference: ColumnReference, child: exp.Expr, parent: exp.Expr, change: ValueChange
    ) -> None:
        if isinstance(parent, _CONVERSIONS) and not _CONVERSION_SYNTAX.search(
            reference.clause or ""
        ):
            # Not in the SQL: the parser adds conversions to unify functions of dialects.
            outer = parent.parent if isinstance(parent.parent, exp.Func) else parent
            self._collect_call(reference, child, outer, change)
        elif isinstance(parent, exp.Cast):
            partner = ValueType(type=from_sqlglot(parent.to))
            is_boolean = partner.type == BOOLEAN
            self.add(reference, UseOperation.CAST, change, partner=partner, partner_before=partner,
                      partner_text=parent.to.sql().upper(),
                      accepts=functions.boolean_cast_kinds(self._dialect) if is_boolean else None,
                      )  # fmt: skip
        elif isinstance(parent, _CONVERSION_FUNCTIONS) and child.arg_key == "this":
            converted = self._values.change_of_node(parent)
            self.add(
                reference,
                UseOperation.CAST,
                change,
                partner=converted.after,
                partner_before=converted.before,
                partner_text=functions.name_of(parent),
            )
        elif isinstance(parent, exp.Is):
            if isinstance(parent.expression, exp.Null):
                self.add(reference, UseOperation.COUNTED, change, partner_text="IS NULL")
            else:
                partner = ValueType(type=BOOLEAN)
                self.add(
                    reference,
                    UseOperation.COMPARED,
                    change,
                    partner=partner,
                    partner_before=partner,
                )
        elif isinstance(parent, _COMPARISONS):
            # One null among the values of ALL makes the comparison null.
            is_with_all = isinstance(parent.this, exp.All) or isinstance(parent.expression, exp.All)
            self._collect_comparison(reference, change, [_other_operand(parent, child)],
                          UseOperation.NOT_IN if is_with_all else UseOperation.COMPARED,
                          is_ordering=isinstance(parent, _ORDERINGS))  # fmt: skip
        elif isinstance(parent, exp.Between):
            operands = (parent.this, parent.args["low"], parent.args["high"])
            other_operands = [each for each in operands if each is not child]
            self._collect_comparison(
                reference,
                change,
                other_operands if child is parent.this else [parent.this],
                is_ordering=True,
            )
        elif isinstance(parent, exp.In):
            self._collect_in(reference, child, parent, change)
        elif isinstance(parent, exp.Nullif):
            self._collect_comparison(reference, change, [_other_operand(parent, child)])
        elif isinstance(parent, exp.Case | exp.If | exp.Nvl2):
            self._collect_case(reference, child, parent, change)
        elif isinstance(parent, _COMBINING_FUNCTIONS):
            other_operands = [
                each for each in (parent.this, *parent.expressions) if each is not child
            ]
            self._collect_combination(reference, change, other_operands, functions.name_of(parent),
                          is_ordering=isinstance(parent, _ORDERINGS))  # fmt: skip
        elif isinstance(parent, exp.Lag | exp.Lead) and parent.args.get("default") is not None:
            # LAG(x, 1, 0): the value and its default share a type.
            if child.arg_key == "offset":
                self._collect_call(reference, child, parent, change)
            else:
                key = "default" if child.arg_key == "this" else "this"
                self._collect_combination(
                    reference, change, [parent.args[key]], functions.name_of(parent)
                )
        elif isinstance(parent, exp.Array):
            other_operands = [each for each in parent.expressions if each is not child]
            self._collect_combination(reference, change, other_operands, functions.name_of(parent))
        elif isinstance(parent, _CALCULATIONS):
            other = _other_operand(parent, child) if isinstance(parent, exp.Binary) else None
            operand = self._values.change_of_node(other) if other is not None else None
            accepts, name = functions.operator_kinds(parent, self._dialect)
            is_integer_division = isinstance(parent, exp.Div) and bool(parent.args.get("typed"))
            self.add(
                reference,
                UseOperation.DIVIDED if is_integer_division else UseOperation.CALCULATED,
                change,
                partner=operand.after if operand else None,
                partner_before=operand.before if operand else None,
                accepts=accepts,
                partner_text=name,
            )
        elif isinstance(parent, exp.Distinct):
            self.add(reference, UseOperation.GROUPED, change)
        elif isinstance(parent, exp.Count):
            self.add(reference, UseOperation.COUNTED, change, partner_text="COUNT")
        elif isinstance(parent, exp.Window) and child.arg_key == "partition_by":
            self.add(reference, UseOperation.GROUPED, change)
        elif _returns_array_size(parent, change):
            self.add(reference, UseOperation.COUNTED, change, accepts=functions.COLLECTION,
                      partner_text=functions.name_of(parent))  # fmt: skip
        elif isinstance(parent, exp.Order):
            if child.arg_key == "expressions":
                self.add(reference, UseOperation.SORTED, change)
                self._collect_range_frame(reference, parent, change)
        elif isinstance(parent, exp.Where):
            self._collect_condition(reference, child, change)
        elif isinstance(parent, exp.Bracket) and child.arg_key == "expressions":
            self._collect_index(reference, parent, change)
        elif isinstance(parent, exp.Bracket) and _is_array(change):
            # Uses of the element are collected instead.
            return
        elif isinstance(parent, exp.Explode | exp.Inline) and _is_array(change):
            self.add(reference, UseOperation.UNKNOWN, change)
        elif isinstance(parent, exp.Exists) and not isinstance(parent.this, exp.Query):
            # EXISTS (list, element -> condition)
            self.add(reference, UseOperation.CALLED, change, accepts=functions.COLLECTION,
                      partner_text=functions.name_of(parent))  # fmt: skip
        elif isinstance(parent, _CONCATENATIONS) and not self._concatenation_rejects_numbers:
            self.add(
                reference, UseOperation.FORMATTED, change, partner_text=functions.name_of(parent)
            )
        elif isinstance(parent, _TRANSPARENT):
            return
        else:
            self._collect_call(reference, child, parent, change)

    def _collect_call(
        self, reference: ColumnReference, child: exp.Expr, parent: exp.Expr, change: ValueChange
    ) -> None:
        argument = str(child.arg_key or "")
        accepts = functions.accepted_kinds(parent, argument, self._dialect)
        use = functions.use_of(parent, argument, self._dialect)
        if use is not None:
            is_unknown = (
                UseOperation.PASSED_THROUGH in use.operations
                and self._values.change_of_node(parent).is_unknown
            )
            for operation in use.operations:
                self.add(
                    reference,
                    UseOperation.UNKNOWN if is_unknown else operation,
                    change,
                    accepts=accepts,
                    partner_text=functions.name_of(parent),
                )
            return
        if isinstance(parent, exp.Bracket) and _changes_key_type(change):
            accepts = None
        is_aggregate = isinstance(parent, exp.AggFunc)
        operation = UseOperation.AGGREGATED if is_aggregate else UseOperation.CALLED
        self.add(reference, operation, change, accepts=accepts,
                 partner_text=functions.name_of(parent))  # fmt: skip

    def _collect_condition(
        self, reference: ColumnReference, child: exp.Expr, change: ValueChange
    ) -> None:
        """Collect the use of a value as a condition."""
        if not isinstance(child, exp.Predicate | exp.Connector | exp.Not):
            self.add(reference, UseOperation.CALLED, change, accepts=functions.CONDITION,
                      partner_text="a condition")  # fmt: skip

    def _collect_range_frame(
        self, reference: ColumnReference, order: exp.Order, change: ValueChange
    ) -> None:
        """Collect the use in ORDER BY of a RANGE window, which adds offsets to the value."""
        spec = order.parent.args.get("spec") if isinstance(order.parent, exp.Window) else None
        if spec is None or str(spec.args.get("kind")).upper() != "RANGE":
            return
        for key in ("start", "end"):
            offset = spec.args.get(key)
            if isinstance(offset, exp.Expr) and not isinstance(offset, exp.Var):
                offset_value = self._values.change_of_node(offset)
                self.add(reference, UseOperation.CALCULATED, change, partner=offset_value.after,
                          partner_before=offset_value.before)  # fmt: skip

    def _collect_index(
        self, reference: ColumnReference, parent: exp.Bracket, change: ValueChange
    ) -> None:
        """Collect the use as an array index or map key."""
        container = self._values.change_of_node(parent.this).after
        container_type = container.type if container is not None else None
        if isinstance(container_type, Map) and not functions.is_element_at(parent, self._dialect):
            key = ValueType(type=container_type.key)
            self.add(reference, UseOperation.COMPARED, change, partner=key, partner_before=key,
                      partner_text="a key")  # fmt: skip
            return
        is_list = isinstance(container_type, Array)
        self.add(
            reference,
            UseOperation.CALLED,
            change,
            partner_text="[...]",
            accepts=functions.index_kinds(parent, self._dialect) if is_list else None,
        )

    def _collect_in(
        self, reference: ColumnReference, child: exp.Expr, parent: exp.In, change: ValueChange
    ) -> None:
        query = parent.args.get("query")
        other_operands: list[exp.Expr] = [parent.this]
        if child is parent.this:
            other_operands = [query] if query is not None else list(parent.expressions)
        is_negated = isinstance(parent.parent, exp.Not) or (
            isinstance(parent.parent, exp.Paren) and isinstance(parent.parent.parent, exp.Not)
        )
        self._collect_comparison(
            reference,
            change,
            other_operands,
            UseOperation.NOT_IN if is_negated else UseOperation.COMPARED,
        )

    def _collect_case(
        self, reference: ColumnReference, child: exp.Expr, parent: exp.Expr, change: ValueChange
    ) -> None:
        """Collect the use in CASE or IF: as compared value, condition or result."""
        case = parent
        if isinstance(parent, exp.If) and isinstance(parent.parent, exp.Case):
            case = parent.parent
        branches = case.args.get("ifs") or ([case] if isinstance(case, exp.If) else [])
        operand = case.this if isinstance(case, exp.Case) else None
        if child is operand:
            self._collect_comparison(reference, change, [each.this for each in branches])
        elif child.arg_key == "this" and isinstance(parent, exp.If):
            if operand is not None:
                self._collect_comparison(reference, change, [operand])
            else:
                self._collect_condition(reference, child, change)
        elif child.arg_key in ("true", "false", "default"):
            results = [each.args.get("true") for each in branches]
            results += [case.args.get("default"), case.args.get("false")]
            other_operands = [each for each in results if each is not None and each is not child]
            self._collect_combination(
                reference, change, other_operands, "CASE" if case is not parent else "IF"
            )

    def _collect_comparison(
        self, reference: ColumnReference, change: ValueChange, other_operands: Iterable[exp.Expr],
        operation: UseOperation = UseOperation.COMPARED, *, is_ordering: bool = False,
    ) -> None:  # fmt: skip
        for other, text in _distinct_operands(other_operands):
            partner = self._values.change_of_node(_value_node(other))
            self.add(reference, operation, change, partner=partner.after,
                      partner_before=partner.before, partner_text=text,
                      is_literal=_is_literal(other), is_ordering=is_ordering)  # fmt: skip

    def _collect_combination(
        self, reference: ColumnReference, change: ValueChange, other_operands: Iterable[exp.Expr],
        name: str, *, is_ordering: bool = False,
    ) -> None:  # fmt: skip
        has_partner = False
        for other, text in _distinct_operands(other_operands):
            if isinstance(other, exp.Null):
                continue
            has_partner = True
            partner = self._values.change_of_node(_value_node(other))
            self.add(reference, UseOperation.COMBINED, change, partner=partner.after,
                      partner_before=partner.before, is_literal=_is_literal(other),
                      is_ordering=is_ordering, partner_text=f"{text} in {name}")  # fmt: skip
        if not has_partner:
            self.add(reference, UseOperation.COMBINED, change, partner=change.after,
                      partner_before=change.before, partner_text=name)  # fmt: skip

    def add(
        self, reference: ColumnReference, operation: UseOperation, change: ValueChange, *,
        partner: ValueType | None = None, partner_before: ValueType | None = None,
        partner_text: str | None = None, is_literal: bool = False, is_ordering: bool = False,
        accepts: tuple[ArgumentKind, ...] | None = None, root: int | None = None,
        value: str | None = None,
    ) -> None:  # fmt: skip
        """Add a use; `root` is the id of the outermost expression or column that contains it."""
        if change.is_unknown and operation not in _TYPE_INDEPENDENT:
            operation = UseOperation.UNKNOWN
        if operation is UseOperation.GROUPED and self._may_be_ungroupable(change):
            operation = UseOperation.UNKNOWN
        use = TypeUse(
            clause_kind=reference.clause_kind,
            operation=operation,
            value=value or reference.value,
            before=change.before,
            after=change.after,
            partner=partner,
            partner_before=partner_before,
            partner_text=partner_text,
            is_literal=is_literal,
            is_ordering=is_ordering,
            accepts=accepts,
            clause=reference.clause,
            line=reference.line,
            origins=tuple(dict.fromkeys(self._values.origins(reference.column))),
        )
        self._roots_by_use.setdefault(use, set()).add(root or id(root_of(reference.node)))

    def _may_be_ungroupable(self, change: ValueChange) -> bool:
        """Whether values become strings of any length, which the dialect may not group by."""
        before, after = (each.type if each is not None else None
                         for each in (change.before, change.after))  # fmt: skip
        return (
            after == STRING
            and not isinstance(before, String)
            and not functions.can_group_by_any_string(self._dialect)
        )

    def add_use(self, use: TypeUse) -> None:
        """Add a complete type use."""
        self._roots_by_use.setdefault(use, set())


# Nodes of expressions; any other node ends the clause.
_INNER_NODES: Final = (
    exp.Condition, exp.Func, exp.Predicate,
    exp.Alias, exp.Aliases, exp.Ordered, exp.Window, exp.Filter, exp.Subquery, exp.Tuple,
    exp.WithinGroup, exp.If, exp.Interval, exp.Distinct, exp.Order, exp.Query, exp.Kwarg,
    exp.PropertyEQ, exp.JSONKeyValue, exp.IgnoreNulls, exp.RespectNulls, exp.Lambda, exp.Bracket,
    exp.Limit, exp.Having, exp.Where,
)  # fmt: skip


def _changes_key_type(change: ValueChange) -> bool:
    """Whether the key type of a map changes."""
    before, after = (
        each.type.key if each is not None and isinstance(each.type, Map) else None
        for each in (change.before, change.after)
    )
    return before != after


def _is_array(change: ValueChange) -> bool:
    """Whether a value is an array before and after."""
    return all(
        each is not None and isinstance(each.type, Array) for each in (change.before, change.after)
    )


def _expands_elements(node: exp.Expr, change: ValueChange) -> bool:
    """Whether an array or map is only expanded to rows with named columns.

    Uses of these columns are collected instead. INLINE is different, as it turns all fields of an
    element into columns; so is EXPLODE without a name for its column.
    """
    parent = node.parent
    if isinstance(parent, exp.Kwarg):
        parent = parent.parent
    if isinstance(parent, exp.Explode) and isinstance(parent.parent, exp.Lateral):
        alias = parent.parent.args.get("alias")
        has_names = alias is not None and bool(alias.args.get("columns"))
    elif isinstance(parent, exp.Explode):
        is_named = isinstance(parent.parent, exp.Alias | exp.Aliases)
        has_names = is_named and not parent.args.get("expressions")
    else:
        has_names = isinstance(parent, exp.Unnest)
    if not has_names or change.is_unknown:
        return False
    types = [each.type if each is not None else None for each in (change.before, change.after)]
    return any(all(isinstance(type, kind) for type in types) for kind in (Array, Map))


def _containing_node(query: exp.Expr) -> exp.Expr | None:
    """The node that contains a query, skipping parentheses and set operations."""
    parent = query.parent
    while isinstance(parent, exp.Subquery | exp.SetOperation):
        parent = parent.parent
    return parent


def _in_outer_clause(reference: ColumnReference, query: exp.Expr) -> ColumnReference:
    """The reference as part of the clause that contains its query."""
    outer = query.find_ancestor(*_CLAUSES)
    if outer is None:
        return reference
    clause_kind, clause = _CLAUSES[type(outer)]
    excerpt = reference.excerpt
    if excerpt is not None:
        excerpt = excerpt._replace(
            clause=clause, end=None, enclosing_queries=excerpt.enclosing_queries + 1
        )
    return reference._replace(clause_kind=clause_kind, excerpt=excerpt)


_CLAUSES: Final[dict[type[exp.Expr], tuple[ClauseKind, Clause]]] = {
    exp.Where: (ClauseKind.FILTER, Clause.WHERE),
    exp.Having: (ClauseKind.FILTER, Clause.HAVING),
    exp.Qualify: (ClauseKind.FILTER, Clause.QUALIFY),
    exp.Join: (ClauseKind.JOIN, Clause.ON),
    exp.Select: (ClauseKind.PROJECTION, Clause.ITEM),
}


def _keeps_value(node: exp.Expr) -> bool:
    """Whether a node only wraps a value, like a field of a struct literal or `DISTINCT a, b`."""
    if isinstance(node, exp.Tuple):
        return isinstance(node.parent, exp.Distinct | exp.GroupingSets | exp.Group)
    return isinstance(node, exp.PropertyEQ | exp.JSONKeyValue | exp.Distinct)


def _returns_array_size(node: exp.Expr, change: ValueChange) -> bool:
    """Whether a function returns the size of an array, as LENGTH does in some dialects."""
    if isinstance(node, exp.ArraySize):
        return True
    return isinstance(node, exp.Length) and _is_array(change)


def _is_irrelevant_to_type(child: exp.Expr, parent: exp.Expr) -> bool:
    """Whether a part of an expression does not affect the type of its result."""
    if isinstance(parent, exp.Window | exp.Filter):
        return child.arg_key != "this"
    if isinstance(parent, exp.If | exp.Case):
        return child.arg_key == "this"
    return isinstance(parent, exp.Order) and child.arg_key == "expressions"


def _value_node(node: exp.Expr) -> exp.Expr:
    """The selected expression of a scalar subquery, or else the node itself."""
    while isinstance(node, exp.Subquery | exp.SetOperation | exp.Paren | exp.All | exp.Any):
        node = node.this
    if isinstance(node, exp.Select) and len(node.expressions) == 1:
        selected: exp.Expr = node.expressions[0]
        return selected
    return node


def _other_operand(node: exp.Expr, child: exp.Expr) -> exp.Expr:
    other: exp.Expr = node.args["expression"] if node.this is child else node.this
    return other


def _distinct_operands(nodes: Iterable[exp.Expr]) -> Iterator[tuple[exp.Expr, str]]:
    """Yield each operand with its SQL; literals of one kind become one, with the SQL of all."""
    kinds: dict[str, list[exp.Expr]] = {}
    for node in nodes:
        if isinstance(node, exp.Literal):
            kind = "text" if node.is_string else ("integer" if node.this.isdigit() else "number")
            kinds.setdefault(kind, []).append(node)
        else:
            yield node, _sql_text(node)
    for literals in kinds.values():
        yield literals[0], ", ".join(map(_sql_text, literals))


def _is_literal(node: exp.Expr) -> bool:
    operand = node.this if isinstance(node, exp.Neg | exp.Paren) else node
    return isinstance(operand, exp.Literal | exp.Boolean)


def _sql_text(node: exp.Expr) -> str:
    if next(islice(node.walk(), _MAX_TEXT_LENGTH, None), None) is not None:
        return "an expression"
    text = node.sql()
    return text if len(text) <= _MAX_TEXT_LENGTH else f"{text[: _MAX_TEXT_LENGTH - 3]}..."
