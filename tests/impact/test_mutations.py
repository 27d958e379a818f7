"""What random changes really do in Spark, against what was expected of them."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from impact.cases import Case, Verdict, cases
from impact.inventory_graph import InventoryDownstream, verdict_of
from impact.mutations import Mutation, Outcome, SparkInventory, misjudged, mutations
from impact.sample_inventory import load_sample_inventory

INVENTORY = load_sample_inventory()
DOWNSTREAM = InventoryDownstream(INVENTORY)
CASES = {case.id: case for case in cases() if case.dialect == "spark"}
COUNT = 200
SEED = 20240115
# Among its first changes are many that do harm.
FEW, HARMFUL_SEED = 20, 777


@pytest.fixture(scope="module")
def spark_inventory(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkInventory]:
    sample = SparkInventory(spark, INVENTORY, tmp_path_factory.mktemp("targets"))
    yield sample
    sample.close()


@pytest.fixture(scope="module")
def outcomes(spark_inventory: SparkInventory) -> list[Outcome]:
    """The fate of every model behind 200 random changes."""
    return [
        outcome
        for mutation in mutations(INVENTORY, count=COUNT, seed=SEED)
        for outcome in spark_inventory.outcomes(mutation)
    ]


def _verdicts(mutation: Mutation) -> dict[str, Verdict]:
    found = DOWNSTREAM.impact(mutation.dataset, mutation.proposed)
    return {each.urn: verdict_of(each) for each in found.downstream}


def _all(verdict: Verdict) -> dict[str, Verdict]:
    return dict.fromkeys(INVENTORY.models_of, verdict)


def test_the_same_seed_gives_the_same_changes() -> None:
    assert mutations(INVENTORY, count=50, seed=1) == mutations(INVENTORY, count=50, seed=1)
    assert mutations(INVENTORY, count=50, seed=1) != mutations(INVENTORY, count=50, seed=2)


def test_a_failure_that_was_called_compatible_is_named() -> None:
    (mutation,) = mutations(INVENTORY, count=1, seed=1)
    row = Outcome(mutation=mutation, dataset="parcel_rep.heavy", error="it fails", columns={})
    fine = Outcome(mutation=mutation, dataset="parcel_stg.scans", error=None, columns={})
    assert misjudged([row, fine], lambda _: _all(Verdict.COMPATIBLE)) == [
        f"{mutation} -> parcel_rep.heavy: it fails"
    ]
    assert misjudged([row, fine], lambda _: _all(Verdict.UNDETERMINED)) == []


@pytest.mark.slow
def test_what_fails_after_a_few_random_changes_was_not_called_compatible(
    spark_inventory: SparkInventory,
) -> None:
    few = [
        outcome
        for mutation in mutations(INVENTORY, count=FEW, seed=HARMFUL_SEED)
        for outcome in spark_inventory.outcomes(mutation)
    ]
    assert sum(outcome.failed for outcome in few) >= 10
    assert misjudged(few, _verdicts) == []


@pytest.mark.slow
@pytest.mark.parametrize("id", CASES)
def test_spark_does_what_the_expectations_say(id: str, spark_inventory: SparkInventory) -> None:
    case = CASES[id]
    for outcome in spark_inventory.outcomes(_mutation(case)):
        row = case.expected[outcome.dataset]
        if outcome.failed:
            assert row.verdict is Verdict.BREAKING, (outcome.dataset, outcome.error)
        elif outcome.dataset not in INVENTORY.tables:
            typed = {name: change for name, change in row.columns.items() if _is_typed(change)}
            assert outcome.columns == typed, outcome.dataset


@pytest.mark.slow
@pytest.mark.parametrize(
    ("id", "failing"),
    [
        pytest.param("parcel-weight-becomes-text", "parcel_rep.heavy", id="filter"),
        pytest.param("parcel-carrier-id-becomes-text", "parcel_mart.deliveries", id="join"),
        pytest.param("parcel-claim-amount-becomes-text", "parcel_stg.claims", id="cast"),
    ],
)
def test_texts_that_no_number_was_fail_only_where_they_are_wanted(
    id: str, failing: str, spark_inventory: SparkInventory
) -> None:
    mutation = _mutation(CASES[id])
    usual = [outcome.dataset for outcome in spark_inventory.outcomes(mutation) if outcome.failed]
    odd = {
        outcome.dataset: outcome.error
        for outcome in spark_inventory.outcomes(mutation, odd_texts=True)
        if outcome.failed
    }
    assert usual == []
    assert odd.keys() == {failing}
    assert str(odd[failing]).startswith("[CAST_INVALID_INPUT]")


def _mutation(case: Case) -> Mutation:
    return Mutation(
        dataset=case.dataset,
        operation=case.operation,
        argument=case.argument,
        proposed=case.proposed,
    )


def _is_typed(change: str) -> bool:
    return " -> " in change and "nullable" not in change


@pytest.mark.slow
def test_random_changes_break_some_models_and_spare_others(outcomes: list[Outcome]) -> None:
    assert len({str(outcome.mutation) for outcome in outcomes}) == COUNT
    failed = [outcome for outcome in outcomes if outcome.failed]
    assert len(failed) >= 60
    assert len(outcomes) - len(failed) >= 600
    assert len({outcome.dataset for outcome in failed}) >= 10
    harmful = {outcome.mutation.operation for outcome in failed}
    assert harmful >= {"change", "drop", "rename", "add", "reorder"}
    assert len(misjudged(outcomes, lambda _: _all(Verdict.COMPATIBLE))) == len(failed)


@pytest.mark.slow
def test_what_fails_after_random_changes_was_not_called_compatible(
    outcomes: list[Outcome],
) -> None:
    assert misjudged(outcomes, _verdicts) == []


@pytest.mark.slow
def test_what_became_of_a_change_does_not_hang_on_those_before_it(
    outcomes: list[Outcome], spark_inventory: SparkInventory
) -> None:
    outcome_by_change = {(str(each.mutation), each.dataset): each for each in outcomes}
    for mutation in reversed(mutations(INVENTORY, count=COUNT, seed=SEED)[::10]):
        for again in spark_inventory.outcomes(mutation):
            before = outcome_by_change[str(mutation), again.dataset]
            assert (again.failed, again.columns) == (before.failed, before.columns)
