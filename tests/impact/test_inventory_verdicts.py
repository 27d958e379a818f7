"""The analysis of impact against the expectations that were written down before it."""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise

import pytest

from impact.cases import Verdict, cases
from impact.inventory_graph import InventoryDownstream
from impact.sample_inventory import load_sample_inventory
from impact.score import Row, rows_of, score
from lumos.impact.rules import propagation
from lumos.impact.rules.results import Impact

INVENTORY = load_sample_inventory()
DOWNSTREAM = InventoryDownstream(INVENTORY)
CASES = {case.id: case for case in cases()}
KEYS = [(case.id, dataset) for case in CASES.values() for dataset in case.expected]
USED_BY_POSITION = [
    (case.id, row.dataset)
    for case in CASES.values()
    for row in case.expected.values()
    if row.verdict is Verdict.BREAKING and row.line is not None
]

# The columns that change are not those that were expected.
OTHER_COLUMNS: dict[tuple[str, str], str] = {
    ("shop-ordered-at-becomes-day", "shop_rep.order_hours"): (
        "that EXTRACT(hour) takes no day is known as a rule on times, not of the column it makes"
    ),
    ("billing-amount-gets-decimals", "billing_rep.revenue_in_euro"): (
        "what an unknown function makes of another type is listed as not known"
    ),
    **dict.fromkeys(
        [
            ("billing-invoices-get-a-column", "billing_stg.invoices"),
            ("parcel-scans-get-a-column", "parcel_stg.scans"),
        ],
        "the column that the star would add is listed, although the union fails by it",
    ),
    **dict.fromkeys(
        [
            ("parcel-region-becomes-number", "parcel_stg.depots"),
            ("parcel-region-becomes-number", "parcel_mart.depot_load"),
            ("parcel-region-becomes-number", "parcel_rep.region_report"),
            ("parcel-region-becomes-number", "parcel_rep.claims_by_depot"),
            ("parcel-scan-depot-becomes-number", "parcel_stg.scans"),
            ("parcel-scan-depot-becomes-number", "parcel_mart.last_scan"),
        ],
        "a value that shares a type with a text fails when it is computed, so it counts as gone",
    ),
    **dict.fromkeys(
        [
            ("parcel-weight-becomes-text", "parcel_rep.heavy"),
            ("parcel-order-no-becomes-number", "parcel_rep.order_lookup"),
        ],
        "a column that is calculated from a type which does not allow it counts as gone",
    ),
    ("parcel-claims-get-an-ambiguous-name", "parcel_rep.claims_by_depot"): (
        "a name that has become ambiguous is a reason, without the column behind it"
    ),
}  # fmt: skip
# The reason stands in another line than expected.
OTHER_PLACES: dict[tuple[str, str], str] = {
    **dict.fromkeys(
        [
            ("parcel-scan-depot-becomes-number", "parcel_mart.last_scan"),
            ("parcel-scan-parcel-dropped", "parcel_mart.last_scan"),
        ],
        "the query inside names the column first, and fails there",
    ),
}
FOUNDING = "founding-user-id"

each_case = pytest.mark.parametrize("id", CASES)


@cache
def _impact(id: str) -> Impact:
    return DOWNSTREAM.impact_of_case(CASES[id])


def _rows(id: str) -> list[Row]:
    return rows_of([CASES[id]], lambda case: _impact(case.id))


@cache
def _row(id: str, dataset: str) -> Row:
    return next(row for row in _rows(id) if row.expected.dataset == dataset)


def _each_row(
    keys: Sequence[tuple[str, str]], known: Mapping[tuple[str, str], str]
) -> pytest.MarkDecorator:
    assert known.keys() <= {*keys}
    return pytest.mark.parametrize(
        ("id", "dataset"),
        [
            pytest.param(
                *key,
                id=":".join(key),
                marks=[pytest.mark.xfail(reason=known[key])] if key in known else [],
            )
            for key in keys
        ],
    )


@each_case
def test_every_dataset_within_reach_gets_the_expected_verdict(id: str) -> None:
    wrong = [
        f"{row.expected.dataset}: {row.verdict}, not {row.expected.verdict}"
        for row in _rows(id)
        if not row.is_met
    ]
    assert wrong == []
    assert {each.urn for each in _impact(id).downstream} == CASES[id].expected.keys()


@each_case
def test_owners_and_distances_are_reported(id: str) -> None:
    for row in _rows(id):
        assert row.found is not None
        owner = row.expected.owner
        assert row.found.owners == (() if owner is None else (owner,))
        assert row.found.distance == row.expected.distance


@_each_row(KEYS, OTHER_COLUMNS)
def test_the_columns_that_change_are_reported(id: str, dataset: str) -> None:
    assert _row(id, dataset).has_expected_columns


@_each_row(USED_BY_POSITION, OTHER_PLACES)
def test_the_position_of_what_breaks_is_reported(id: str, dataset: str) -> None:
    assert _row(id, dataset).is_in_place


@each_case
def test_the_way_to_each_column_leads_from_the_change_to_it(id: str) -> None:
    case = CASES[id]
    for found in _impact(id).downstream:
        for column in found.columns:
            assert column.path[-1] == (found.urn, column.name)
            assert column.path[0][0] == case.dataset
            datasets = [dataset for dataset, _ in column.path]
            for upstream, downstream in pairwise(datasets):
                assert downstream in INVENTORY.readers[upstream]


@each_case
def test_what_breaks_is_updated_behind_what_it_is_made_from(id: str) -> None:
    found = _impact(id)
    breaking = {each.urn for each in found.downstream if _is_breaking(each.verdict.value)}
    assert {*found.order} == breaking
    assert len(found.order) == len(breaking)
    for place, urn in enumerate(found.order):
        # Only the budget and its forecast are made from each other.
        later = {*found.order[place + 1 :]} - {"fin_mart.budget", "fin_mart.forecast"}
        assert not later & {name for name, readers in INVENTORY.readers.items() if urn in readers}


@each_case
def test_plain_words_say_what_reasoning_through_the_statement_says(
    id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(propagation, "simple_statement_effect", lambda *_: None)
    reasoned = DOWNSTREAM.impact_of_case(CASES[id])
    assert _summary(_impact(id)) == _summary(reasoned)


def _summary(impact: Impact) -> dict[str, object]:
    """What is said of each dataset, in whatever order."""
    return {
        each.urn: (each.verdict, {*each.columns}, {*each.reasons}) for each in impact.downstream
    }


def test_the_documented_example_has_its_documented_text() -> None:
    case = CASES[FOUNDING]
    found = {each.urn: each for each in _impact(FOUNDING).downstream}
    for dataset, expected in case.expected.items():
        assert expected.text is not None
        first = found[dataset].reasons[0]
        assert _sentence(first.text).partition(":")[0] == expected.text
        assert (first.file, first.line) == (expected.file, expected.line)
    advice = _impact(FOUNDING).recommendations
    assert advice[: len(case.recommendations)] == case.recommendations


def test_precision_and_recall_of_breaking_do_not_fall() -> None:
    found = score(rows_of(CASES.values(), lambda case: _impact(case.id)))
    assert found.rows == len(KEYS)
    assert found.precision == 1.0
    assert found.recall == 1.0
    assert found.met == found.rows
    assert found.tolerated <= 1
    assert found.in_place == found.places - len(OTHER_PLACES)
    assert found.columns == found.rows - len(OTHER_COLUMNS)


def test_a_wrong_alarm_costs_precision_and_a_missed_one_recall() -> None:
    rows = _rows(FOUNDING)
    breaking = next(row for row in rows if row.verdict is Verdict.BREAKING)
    compatible = next(row for row in rows if row.verdict is Verdict.COMPATIBLE)
    alarmed = Row(case=breaking.case, expected=compatible.expected, found=breaking.found)
    missed = Row(case=breaking.case, expected=breaking.expected, found=compatible.found)
    assert score([*rows, alarmed]).precision == pytest.approx(2 / 3)
    assert score([*rows, missed]).recall == pytest.approx(2 / 3)
    assert score([alarmed]).met == score([missed]).met == 0


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _is_breaking(verdict: str) -> bool:
    return verdict.upper() == Verdict.BREAKING
