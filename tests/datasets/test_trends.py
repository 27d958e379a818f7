"""Trends of coverage, incidents and duplicates, by month."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from lumos import Lumos
from lumos.datasets.trends import BreakingChange, Incident, incidents_of, trends
from lumos.errors import MisuseError
from lumos.store.trends import Coverage, Duplicates, Repair
from served_store import fill


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


CHANGE = BreakingChange("orders", day("2026-03-01"), ("revenue", "kpis"))


@pytest.mark.parametrize(
    ("repairs", "resolved"),
    [
        pytest.param({}, None, id="nothing happened"),
        pytest.param({"orders": [Repair(day("2026-03-02"), True)]}, "2026-03-02", id="schema again"),
        pytest.param({"orders": [Repair(day("2026-03-02"), False)]}, None, id="only more data"),
        pytest.param({"orders": [Repair(day("2026-03-01"), True)]}, None, id="the change itself"),
        pytest.param({"revenue": [Repair(day("2026-03-02"), False)]}, None, id="one of two"),
        pytest.param(
            {"revenue": [Repair(day("2026-03-02"), False)], "kpis": [Repair(day("2026-03-05"), True)]},
            "2026-03-05",
            id="all that broke",
        ),
        pytest.param(
            {"revenue": [Repair(day("2026-03-02"), False)], "kpis": [Repair(day("2026-03-05"), True)],
             "orders": [Repair(day("2026-03-04"), True)]},
            "2026-03-04",
            id="whichever comes first",
        ),
    ],
)  # fmt: skip
def test_an_incident_ends_with_its_cause_or_with_all_that_it_broke(
    repairs: dict[str, list[Repair]], resolved: str | None
) -> None:
    (incident,) = incidents_of([CHANGE], repairs)
    assert incident == Incident(CHANGE.at, None if resolved is None else day(resolved))


def test_months_count_what_was_there_at_their_end() -> None:
    coverage = Coverage(
        datasets={date(2026, 1, 5): 1, date(2026, 2, 20): 1},
        owned={date(2026, 2, 10): 1},
        documented={date(2026, 2, 20): 1},
        with_lineage={date(2026, 1, 6): 1},
    )
    report = trends(
        [day("2026-01-01"), day("2026-02-01"), day("2026-03-01")],
        coverage=coverage,
        incidents=[
            Incident(day("2026-01-10"), day("2026-01-11")),
            Incident(day("2026-01-20"), day("2026-01-23")),
            Incident(day("2026-02-02"), None),
        ],
        duplicates=Duplicates(3, (day("2026-02-03"), day("2025-01-01"))),
        prevented=[day("2026-01-31")],
    )
    january, february = report.months
    assert (january.month, january.datasets, january.owned, january.with_lineage) == (
        "2026-01", 1, 0, 1
    )  # fmt: skip
    assert (february.datasets, february.owned, february.documented) == (2, 1, 1)
    assert (january.incidents, january.resolved, january.hours_to_resolve) == (2, 2, 48.0)
    assert (february.incidents, february.resolved, february.hours_to_resolve) == (1, 0, None)
    assert (january.duplicates_retired, february.duplicates_retired) == (0, 1)
    assert (january.prevented, february.prevented) == (1, 0)
    assert (report.duplicates, report.open_incidents) == (3, 1)


@pytest.fixture(scope="module")
def lumos(tmp_path_factory: pytest.TempPathFactory) -> Lumos:
    return fill(tmp_path_factory.mktemp("trends"))


def test_the_last_month_agrees_with_the_overview(lumos: Lumos) -> None:
    report, overview = lumos.datasets.trends(), lumos.overview()
    now = report.months[-1]
    assert len(report.months) == 6
    assert (now.datasets, now.owned, now.documented, now.with_lineage) == (
        overview.datasets, overview.owned, overview.documented, overview.with_lineage
    )  # fmt: skip


@pytest.mark.parametrize("months", [0, -1, 37])
def test_an_impossible_number_of_months_is_refused(lumos: Lumos, months: int) -> None:
    with pytest.raises(MisuseError, match=f"not {months}"):
        lumos.datasets.trends(months)


def test_copies_with_the_same_name_and_schema_are_duplicates(tmp_path: Path) -> None:
    from schema_histories import record

    (tmp_path / "lumos.yaml").write_text("storage: {path: store.db}\n")
    lumos = Lumos(tmp_path / "lumos.yaml")
    store = lumos.create_store()
    schema, other = "id INT64\nname STRING\n", "id INT64\n"
    record(store, "lumos://file/a/users", schema, day("2026-01-01"))
    record(store, "lumos://file/b/users", schema, day("2026-01-01"))
    record(store, "lumos://file/c/users", other, day("2026-01-01"))
    record(store, "lumos://file/d/people", schema, day("2026-01-01"))
    assert lumos.datasets.trends().duplicates == 1


def test_the_overview_follows_every_change(tmp_path: Path) -> None:
    lumos = fill(tmp_path)
    before = lumos.overview()
    assert (before.owned, before.documented, before.with_lineage) == (1, 1, 2)
    lumos.annotations.owners.assign("bob", "tickets")
    lumos.annotations.docs.set("tickets", "Tickets")
    assert (lumos.overview().owned, lumos.overview().documented) == (2, 2)
    lumos.lineage.ingest(_other_models(tmp_path))
    assert lumos.overview().lineage_only == before.lineage_only + 2
    assert lumos.overview() == Lumos(tmp_path / "lumos.yaml").overview()


def _other_models(folder: Path) -> Path:
    models = folder / "other"
    models.mkdir()
    (models / "visits.sql").write_text("create table visits as select * from clicks")
    return models
