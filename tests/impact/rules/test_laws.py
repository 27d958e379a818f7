"""What holds for every change and every use."""

from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from impact.rules.sql_graph import SqlGraph, of
from lumos.impact.rules.results import rank
from lumos.impact.rules.type_families import accepts_type
from lumos.impact.rules.type_uses import ArgumentKind, ClauseKind, TypeUse, UseOperation, ValueType
from lumos.impact.rules.verdicts import assess_use
from lumos.model.change import Verdict
from lumos.model.types import FLOATS, UNKNOWN, DataType, Decimal, String, parse_type

WIDENINGS = st.sampled_from(
    [
        ("INT8", "INT16"),
        ("INT16", "INT32"),
        ("FLOAT32", "FLOAT64"),
        ("DECIMAL(9,2)", "DECIMAL(12,2)"),
        ("STRING(4)", "STRING"),
        ("UINT8", "INT16"),
    ]
)
# Columns of a fixed type, and functions that count with 32 bits, do not take all that is wider.
BEARING = st.sampled_from(
    sorted(
        set(UseOperation)
        - {
            UseOperation.STORED,
            UseOperation.MISSING,
            UseOperation.AMBIGUOUS,
            UseOperation.USED_BY_POSITION,
            UseOperation.UNKNOWN,
            UseOperation.CAST,
            UseOperation.NATURAL_JOIN_KEY,
        }
    )
)
TYPES = st.sampled_from(
    ["INT32", "INT64", "FLOAT64", "STRING", "DATE", "BOOLEAN", "UNKNOWN", "ARRAY<INT32>"]
).map(parse_type)
KINDS = st.none() | st.sampled_from([(kind,) for kind in ArgumentKind])


def value(type: DataType) -> ValueType:
    return ValueType(type=type, nullable=True)


@given(WIDENINGS, BEARING, st.sampled_from(ClauseKind), st.none() | TYPES, KINDS, st.booleans())
def test_a_widening_breaks_no_use_but_the_text_of_floats(
    types: tuple[str, str], operation: UseOperation, clause_kind: ClauseKind, partner: DataType | None,
    accepts: tuple[ArgumentKind, ...] | None, literal: bool,
) -> None:  # fmt: skip
    before, after = map(parse_type, types)
    met = None if partner is None else value(partner)
    found = assess_use(
        TypeUse(
            clause_kind=clause_kind,
            operation=operation,
            value="x",
            before=value(before),
            after=value(after),
            partner=met,
            partner_before=met,
            accepts=accepts,
            is_literal=literal,
        )
    )
    # Of a function that nobody knows, or that is not known to take the old type, nobody knows
    # which numbers it takes.
    is_known = accepts is not None and (
        ArgumentKind.TEXT in accepts
        or accepts_type(accepts, before) is not False
        or bool(accepts_type(accepts, after))
    )
    is_call = operation in (UseOperation.CALLED, UseOperation.AGGREGATED)
    is_obscure = is_call and not is_known and not isinstance(after, String)
    is_hashed = operation is UseOperation.HASHED and not isinstance(after, String)
    expected = Verdict.UNDETERMINED if is_obscure or is_hashed else Verdict.COMPATIBLE
    is_written_out = operation in (UseOperation.FORMATTED, UseOperation.ENCODED) or (
        is_call and accepts == (ArgumentKind.TEXT,)
    )
    # 0.1 of 32 bits is written as 0.10000000149011612 with 64, and short decimals as floats in JSON.
    is_decimal = isinstance(after, Decimal) and before != after
    if is_written_out and (after in FLOATS or (operation is UseOperation.ENCODED and is_decimal)):
        expected = Verdict.BREAKING
    assert {each.verdict for each in found} == {expected}


@given(TYPES, BEARING, st.sampled_from(ClauseKind), st.none() | TYPES, KINDS)
def test_what_becomes_unknown_is_never_called_safe(
    before: DataType, operation: UseOperation, clause_kind: ClauseKind, partner: DataType | None,
    accepts: tuple[ArgumentKind, ...] | None,
) -> None:  # fmt: skip
    met = None if partner is None else value(partner)
    found = assess_use(
        TypeUse(
            clause_kind=clause_kind,
            operation=operation,
            value="x",
            before=value(before),
            after=value(UNKNOWN),
            partner=met,
            partner_before=met,
            accepts=accepts,
        )
    )
    if operation is not UseOperation.COUNTED:
        assert all(rank(each.verdict) < rank(Verdict.COMPATIBLE) for each in found)


EVENTS = "user_id STRING NOT NULL\namount INT32\nday DATE"
AFTERS = [
    "user_id INT64 NOT NULL\namount INT32\nday DATE",
    "user_id STRING\namount INT32\nday DATE",
    "amount INT32\nday DATE",
    "user_id STRING NOT NULL\namount FLOAT64\nday TIMESTAMP(us)",
    f"{EVENTS}\nextra STRING",
]
QUERIES = [
    "select user_id from events",
    "select cast(user_id as string) as user_id from events",
    "select upper(user_id) as user_id from events",
    "select count(user_id) as user_id from events",
    "select f(user_id) as user_id from events",
    "select amount from events where user_id = 'a'",
    "select sum(amount) as amount from events group by day",
    "select amount from events where day >= '2024-01-01'",
    "select a.amount from events a join events b on a.user_id = b.user_id",
    "select * from events",
    "select 1 as one",
]
UNUSING = [query for query in QUERIES if "user_id" not in query]


def verdict(queries: list[str], after: str) -> Verdict:
    """The verdict on a dataset that several files make."""
    models = {f"m{number}": f"create table model as {q}" for number, q in enumerate(queries)}
    models["other"] = "create table other as select amount, day from events"
    found = SqlGraph({"events": EVENTS}, models).change("events", after).downstream
    return next((each.verdict for each in found if each.urn == "model"), Verdict.COMPATIBLE)


@settings(max_examples=examples(40))
@given(
    st.lists(st.sampled_from(QUERIES), min_size=1, max_size=2),
    st.sampled_from(QUERIES),
    st.sampled_from(AFTERS),
)
def test_more_uses_never_make_a_verdict_milder(few: list[str], one: str, after: str) -> None:
    assert rank(verdict([*few, one], after)) <= rank(verdict(few, after))


@settings(max_examples=examples(20))
@given(
    st.lists(st.sampled_from([each for each in UNUSING if "*" not in each]), min_size=1, max_size=3)
)
def test_dropping_what_nobody_uses_harms_nobody(queries: list[str]) -> None:
    assert verdict(queries, "amount INT32\nday DATE") is Verdict.COMPATIBLE


@settings(max_examples=examples(20))
@given(st.sampled_from(QUERIES), st.sampled_from(AFTERS))
def test_edges_alone_never_call_safe_what_the_sql_shows_to_break(query: str, after: str) -> None:
    graph = SqlGraph({"events": EVENTS}, {"model": f"create table model as {query}"})
    if "events" not in query:
        return
    by_sql = of(graph.change("events", after), "model").verdict
    by_edges = of(graph.change("events", after, with_reason=False), "model").verdict
    if by_sql is Verdict.BREAKING:
        assert by_edges is not Verdict.COMPATIBLE
