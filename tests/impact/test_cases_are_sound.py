"""The expectations speak of what is there: datasets, columns, places, and all that is in reach."""

from collections import Counter
from collections.abc import Iterator

import pytest

from impact.cases import (
    ADDED,
    OPERATIONS,
    REMOVED,
    UNKNOWN,
    WITHOUT_PLACE,
    Case,
    Expected,
    Usage,
    Verdict,
    cases,
    changed_columns,
)
from impact.sample_inventory import DIALECTS, SampleInventory, load_sample_inventory, words
from lumos.lineage.sql import ColumnEdge
from lumos.model.lineage import Derivation
from lumos.model.paths import is_lineage_column, lineage_column
from lumos.model.types import parse_type

INVENTORY = load_sample_inventory()
CASES = cases()
NULLABILITY = ("required -> nullable", "nullable -> required")
each_case = pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])


@each_case
def test_everything_within_reach_has_a_verdict(case: Case) -> None:
    assert case.expected.keys() == INVENTORY.downstream(case.dataset).keys()


@each_case
def test_the_change_is_a_change(case: Case) -> None:
    assert case.changes
    assert case.why


@each_case
def test_reasons_stand_where_they_are_said_to_stand(case: Case) -> None:
    for row in case.expected.values():
        assert row.why
        assert (row.line is None) == (row.usage in WITHOUT_PLACE)
        if row.clause is not None:
            names = _names_that_may_stand_in(row, case)
            assert words(row.clause) & names or "*" in row.clause, (row.dataset, row.clause, names)


@each_case
def test_changed_columns_exist_and_have_readable_types(case: Case) -> None:
    for row in case.expected.values():
        for column, change in row.columns.items():
            known = INVENTORY.columns[row.dataset]
            assert (column in known) == (change != ADDED), (row.dataset, column)
            for type in _types(change):
                parse_type(type)


@each_case
def test_tables_with_a_schema_of_their_own_keep_it(case: Case) -> None:
    for row in case.expected.values():
        if row.dataset in INVENTORY.tables:
            assert not row.columns, row.dataset


@each_case
def test_who_uses_a_changed_column_is_not_called_untouched(case: Case) -> None:
    for row in case.expected.values():
        uses = [*_uses_of_changes(row.dataset, case)]
        if row.usage is Usage.UNUSED:
            assert not uses, (row.dataset, uses)
        elif not row.tolerated and case.operation not in ("add", "reorder"):
            assert uses or _is_declared(row.dataset, case), row.dataset


@each_case
def test_a_column_that_is_handed_on_changes_as_its_origin_does(case: Case) -> None:
    for row in case.expected.values():
        if row.dataset in INVENTORY.tables or row.usage is Usage.UNION:
            continue
        for edge in _uses_of_changes(row.dataset, case):
            origin = case.expected.get(".".join(edge.from_table))
            is_whole = is_lineage_column(edge.from_column)
            if edge.derivation is not Derivation.IDENTITY or origin is None or not is_whole:
                continue
            change = origin.columns[edge.from_column]
            if change not in NULLABILITY:
                assert edge.to_column is not None
                assert row.columns[edge.to_column] == change, (row.dataset, edge.to_column)


def test_the_documented_example_is_reported_word_by_word() -> None:
    case = next(case for case in CASES if case.id == "founding-user-id")
    assert (case.dataset, case.argument) == ("user_events", "user_id: STRING -> INT64")
    assert [
        (row.dataset, row.verdict.value, row.text, row.owner) for row in case.expected.values()
    ] == [
        ("user_sessions", "BREAKING", "Expects STRING user_id in JOIN", "analytics-team"),
        ("feature_store.user_features", "BREAKING", "Type mismatch in pipeline", "ml-platform"),
        ("reporting.daily_users", "COMPATIBLE", "Casts user_id to STRING anyway", "bi-team"),
    ]
    assert case.recommendations == (
        "Notify analytics-team and ml-platform before deploying",
        "Consider backward-compatible approach: add new column first",
        "Update 2 downstream pipelines before schema change",
    )


def test_the_estate_is_broad() -> None:
    assert len(INVENTORY.models) >= 40
    assert {model.dialect for model in INVENTORY.models} == set(DIALECTS)
    distances = Counter(
        distance for table in INVENTORY.tables for distance in INVENTORY.downstream(table).values()
    )
    assert max(distances) >= 4
    assert all(INVENTORY.owner(dataset) for dataset in INVENTORY.models_of)


def test_the_estate_has_a_cycle_a_self_reference_and_gaps() -> None:
    assert "fin_mart.forecast" in INVENTORY.readers["fin_mart.budget"]
    assert "fin_mart.budget" in INVENTORY.readers["fin_mart.forecast"]
    (journal,) = INVENTORY.models_of["fin_mart.journal"]
    assert ("fin_mart", "journal") in {read.table for read in journal.script.reads}
    (broken,) = (model for model in INVENTORY.models if model.dataset is None)
    assert broken.script.unresolved
    without_sql = {target for _, target in INVENTORY.declared} - INVENTORY.models_of.keys()
    assert "dashboards.carrier_scorecard" in without_sql


def test_only_what_is_meant_not_to_parse_does_not() -> None:
    unresolved = [model.file for model in INVENTORY.models if model.script.unresolved]
    assert unresolved == ["snowflake/churn_scores.sql"]


def test_the_cases_are_broad() -> None:
    assert len(CASES) == len({case.id for case in CASES}) >= 30
    assert {case.operation for case in CASES} == set(OPERATIONS)
    rows = [row for case in CASES for row in case.expected.values()]
    assert {row.usage for row in rows} == set(Usage)
    verdicts = Counter(row.verdict for row in rows if row.usage is not Usage.UNUSED)
    assert verdicts[Verdict.BREAKING] >= 100
    assert verdicts[Verdict.COMPATIBLE] >= 50
    assert verdicts[Verdict.UNDETERMINED] >= 5


def _uses_of_changes(dataset: str, case: Case) -> Iterator[ColumnEdge]:
    """The edges that lead from a changed column into a dataset."""
    for model in INVENTORY.models_of.get(dataset, ()):
        for edge in model.script.edges:
            source = ".".join(edge.from_table)
            column = lineage_column(edge.from_column)
            if source != dataset and column in _changed_in(source, case):
                yield edge


def _changed_in(dataset: str, case: Case) -> frozenset[str]:
    if dataset == case.dataset:
        # A new place or a new neighbour changes no column that was there.
        return frozenset() if case.operation in ("add", "reorder") else changed_columns(case)
    row = case.expected.get(dataset)
    return frozenset(row.columns) if row else frozenset()


def _is_declared(dataset: str, case: Case) -> bool:
    return any(
        target == dataset and _changed_in(source, case) for source, target in INVENTORY.declared
    )


def _names_that_may_stand_in(row: Expected, case: Case) -> frozenset[str]:
    """The names under which changed columns can appear in the SQL of a dataset."""
    parts = {word for path in case.changed_paths for word in words(path)}
    derived = {name for other in case.expected.values() for name in other.columns}
    known = {
        column for table in _sources(INVENTORY, row.dataset) for column in INVENTORY.columns[table]
    }
    return frozenset(parts | derived | (known if row.tolerated else set()))


def _sources(sample: SampleInventory, dataset: str) -> list[str]:
    return [source for source, readers in sample.readers.items() if dataset in readers]


def _types(change: str) -> list[str]:
    if change in (REMOVED, ADDED, *NULLABILITY):
        return []
    before, after = change.split(" -> ")
    return [before] if after == UNKNOWN else [before, after]
