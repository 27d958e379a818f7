"""What a recorded change does down the stream, in the history and in messages."""

import logging
from collections.abc import Callable, Sequence

import pytest
from sqlalchemy import text

from lumos.model.change import (
    Affected,
    AffectedUse,
    BlastRadius,
    ChangeEvent,
    EventType,
    Verdict,
)
from lumos.model.dataset import Owner, Ownership
from lumos.model.lineage import ColumnMapping, ColumnUse, Edge, Script, UseKind
from lumos.schemas.report_parts import AffectedReport
from lumos.store import Store
from recorded_lake import START, RecordedLake

RAW, STAGED, MART, ODD = (
    f"lumos://file/lake/{name}" for name in ("events", "sessions", "mart", "odd")
)
EVENTS = "user_id STRING\namount INT64\nnote STRING"


def edge(upstream: str, downstream: str, columns: Sequence[str] = (), **facts: object) -> Edge:
    return Edge(
        upstream=upstream,
        downstream=downstream,
        origin="model",
        at=START,
        columns=tuple(ColumnMapping(upstream=each, downstream=each) for each in columns),
        **facts,  # type: ignore[arg-type]
    )


def relate(seen: RecordedLake, *edges: Edge, scripts: Sequence[Script] = ()) -> None:
    with seen.store.transaction() as transaction:
        transaction.lineage.report("model", edges, scripts=scripts, at=START)


def own(seen: RecordedLake, urn: str, *owners: str) -> None:
    ownership = Ownership(owners=tuple(Owner(name=name) for name in owners))
    with seen.store.transaction() as transaction:
        transaction.save_aspect(urn, "ownership", ownership, writer="test", at=START)


@pytest.fixture
def lake(seen: RecordedLake) -> RecordedLake:
    """Sessions join events by user, the mart takes amounts of sessions; both have owners."""
    seen.see("events", EVENTS)
    seen.see("sessions", "user_id STRING\namount INT64")
    seen.see("mart", "amount INT64")
    use = ColumnUse(upstream="user_id", usage="JOIN", file="models/sessions.sql", line=14)
    relate(
        seen,
        edge(RAW, STAGED, ["user_id", "amount"], uses=(use,)),
        edge(STAGED, MART, ["amount"]),
    )
    own(seen, STAGED, "analytics-team")
    own(seen, MART, "ml-platform", "analytics-team")
    return seen


def last(lake: RecordedLake, urn: str = RAW) -> ChangeEvent:
    return lake.store.events(urn)[-1]


def test_a_change_names_what_it_breaks_with_owners(lake: RecordedLake) -> None:
    lake.see("events", EVENTS.replace("amount INT64", "amount STRING"))
    breaking = Verdict.BREAKING
    assert last(lake).affected == BlastRadius(
        breaking=2,
        datasets=(
            Affected(
                urn=STAGED,
                verdict=breaking,
                owners=("analytics-team",),
                uses=(
                    AffectedUse(
                        path="amount", reason="type mismatch in pipeline: amount becomes STRING"
                    ),
                ),
            ),
            Affected(
                urn=MART,
                verdict=breaking,
                owners=("ml-platform", "analytics-team"),
                uses=(
                    AffectedUse(
                        path="amount", reason="type mismatch in pipeline: amount becomes STRING"
                    ),
                ),
            ),
        ),
    )
    assert last(lake).affected_downstream == (STAGED, MART)


def test_only_what_uses_the_column_is_named(lake: RecordedLake) -> None:
    lake.see("events", EVENTS.replace("user_id STRING", "user_id INT64"))
    assert last(lake).affected_downstream == (STAGED,)


def test_each_change_names_the_line_that_it_breaks(lake: RecordedLake) -> None:
    event = lake.see("events", "user_id INT64\namount STRING\nnote STRING")
    report = AffectedReport.of(event)
    assert report is not None
    assert [(each.name, use.sentence) for each in report.datasets for use in each.uses] == [
        (
            "sessions",
            "user_id became INT64: breaks sessions (analytics-team), models/sessions.sql:14",
        ),
        ("sessions", "amount became STRING: breaks sessions (analytics-team)"),
        ("mart", "amount became STRING: breaks mart (ml-platform, analytics-team)"),
    ]


def test_a_change_inside_a_column_is_named_by_its_own_path(seen: RecordedLake) -> None:
    seen.see("events", "`odd name` STRUCT<a: INT64, b: INT64>\nplain INT64")
    use = ColumnUse(upstream="odd name", usage=UseKind.FILTER, file="models/mart.sql", line=3)
    relate(seen, edge(RAW, MART, ["odd name"], uses=(use,)))
    event = seen.see("events", "`odd name` STRUCT<a: STRING, b: INT64>\nplain STRING")
    (affected,) = event.affected.datasets if event.affected else ()
    assert [use.path for use in affected.uses] == ["`odd name`.a"]


def test_several_changes_at_once_name_each_dataset_once(lake: RecordedLake) -> None:
    lake.see("events", EVENTS.replace("amount INT64", "amount STRING"))
    lake.see("events", "user_id INT64\namount STRING")
    report = AffectedReport.of(*lake.store.events(RAW)[-2:])
    assert report is not None
    assert (report.breaking, report.undetermined) == (2, 0)
    assert [(each.name, [use.path for use in each.uses]) for each in report.datasets] == [
        ("sessions", ["user_id", "amount"]),
        ("mart", ["amount"]),
    ]


def test_of_a_dataset_that_is_gone_the_sentence_says_so(lake: RecordedLake) -> None:
    lake.lose("events")
    report = AffectedReport.of(last(lake))
    assert report is not None
    assert [use.sentence for each in report.datasets for use in each.uses] == [
        "events is gone: breaks sessions (analytics-team), models/sessions.sql:14"
    ]


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(EVENTS.replace("\nnote STRING", ""), id="nobody reads it"),
        pytest.param(EVENTS + "\nmore STRING", id="added"),
    ],
)
def test_where_nothing_breaks_the_event_says_that_somebody_looked(
    lake: RecordedLake, after: str
) -> None:
    lake.see("events", after)
    assert last(lake).affected == BlastRadius()


def test_first_sightings_and_new_data_have_none(lake: RecordedLake) -> None:
    assert lake.store.events(RAW)[0].affected is None
    lake.see("events", EVENTS)
    assert (last(lake).type, last(lake).affected) == (EventType.MODIFIED, None)


def test_a_change_of_what_nothing_hangs_on_has_none(lake: RecordedLake) -> None:
    lake.see("mart", "amount STRING")
    assert (last(lake, MART).breaking, last(lake, MART).affected) == (True, None)


def test_a_dataset_that_is_gone_breaks_what_reads_it_directly(lake: RecordedLake) -> None:
    lake.lose("events")
    assert last(lake).affected == BlastRadius(
        breaking=1,
        datasets=(
            Affected(
                urn=STAGED,
                verdict=Verdict.BREAKING,
                owners=("analytics-team",),
                uses=(AffectedUse(file="models/sessions.sql", line=14),),
            ),
        ),
    )


def test_what_is_gone_itself_does_not_break_any_more(lake: RecordedLake) -> None:
    lake.lose("mart")
    lake.see("events", EVENTS.replace("amount INT64", "amount STRING"))
    assert last(lake).affected_downstream == (STAGED,)


def test_what_a_person_declares_to_break_is_undetermined_next_to_it(lake: RecordedLake) -> None:
    lake.lumos.version.bump("events", "SCHEMA_CHANGE", level="major", author="ann")
    affected = last(lake).affected
    assert affected is not None
    assert [(each.urn, each.verdict) for each in affected.datasets] == [
        (STAGED, Verdict.UNDETERMINED)
    ]


def test_words_of_people_break_nothing(lake: RecordedLake) -> None:
    lake.lumos.annotations.docs.set("events", "In cents", fields=["amount"])
    assert (last(lake).type, last(lake).affected) == (EventType.METADATA_CHANGED, None)


def _make_odd(lake: RecordedLake) -> None:
    """A table that does not mind how large integers are, if one reads its SQL."""
    script = Script(
        sql="CREATE TABLE odd AS SELECT CAST(amount AS STRING) AS amount FROM events",
        dialect="spark",
        dataset=ODD,
        tables=((("events",), RAW), (("odd",), ODD)),
    )
    relate(lake, edge(RAW, ODD, ["amount"]), scripts=[script])


def test_sql_that_is_kept_decides(lake: RecordedLake) -> None:
    _make_odd(lake)
    lake.see("events", EVENTS.replace("amount INT64", "amount INT32"))
    assert last(lake).affected == BlastRadius()


def test_where_too_much_sql_is_reached_at_once_the_rest_is_undetermined(
    lake: RecordedLake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("lumos.impact.blast_radius.MAX_ANALYSED_CHARACTERS", 0)
    _make_odd(lake)
    with caplog.at_level(logging.WARNING):
        lake.see("events", EVENTS.replace("amount INT64", "amount INT32"))
    affected = last(lake).affected
    assert affected is not None
    assert [each.urn for each in affected.datasets] == [ODD]
    assert "is undetermined" in caplog.text


def test_owners_stay_those_of_the_time(lake: RecordedLake) -> None:
    lake.see("events", EVENTS.replace("user_id STRING", "user_id INT64"))
    own(lake, STAGED, "somebody-else")
    affected = last(lake).affected
    assert affected is not None
    assert affected.owners == ("analytics-team",)


def test_lineage_of_the_same_transaction_counts(lake: RecordedLake) -> None:
    known = lake.store.known(source="file:/lake")[RAW]
    recorder = lake.recorder()
    with lake.store.transaction() as transaction:
        transaction.lineage.report("new", [edge(RAW, ODD)], at=START)
        recorder.remove(transaction, known, None)
    assert last(lake).affected_downstream == (ODD, STAGED)


def test_those_beyond_the_first_thousand_are_counted(lake: RecordedLake) -> None:
    relate(lake, *(edge(RAW, f"lumos://file/lake/copy{number:04}") for number in range(1_005)))
    lake.lose("events")
    affected = last(lake).affected
    assert affected is not None
    assert (affected.breaking, len(affected.datasets)) == (1_005, 1_000)


def _wrong_code(_store: Store) -> object:
    return 1 / 0


def _wrong_statement(store: Store) -> object:
    with store._database.reading() as connection:
        return connection.execute(text("SELECT * FROM nowhere"))


@pytest.mark.parametrize("fail", [_wrong_code, _wrong_statement])
def test_an_analysis_that_fails_loses_no_change(
    lake: RecordedLake,
    fail: Callable[[Store], object],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Failing:
        def __init__(self, store: Store, _events: Sequence[ChangeEvent]) -> None:
            fail(store)

    monkeypatch.setattr("lumos.impact.blast_radius.BlastRadiusAnalysis", Failing)
    with caplog.at_level(logging.WARNING):
        lake.see("events", EVENTS.replace("amount INT64", "amount STRING"))
    affected = last(lake).affected
    assert last(lake).type is EventType.SCHEMA_CHANGED
    assert affected is not None
    assert affected.problem
    assert "could not be computed" in caplog.text


def test_functions_of_the_user_hear_of_it(lake: RecordedLake) -> None:
    received: list[tuple[str, ...]] = []
    lake.lumos.on_change(lambda event: received.append(event.affected_downstream))
    lake.see("events", EVENTS.replace("amount INT64", "amount STRING"))
    assert received == [(STAGED, MART)]


def test_changes_and_history_report_it(lake: RecordedLake) -> None:
    lake.see("events", EVENTS.replace("amount INT64", "amount STRING"))
    (event,) = lake.lumos.changes(breaking=True).events
    version = lake.lumos.history("events").versions[0]
    assert event.affected is not None
    assert event.affected.summary == (
        "breaks 2 datasets: sessions (analytics-team), mart (ml-platform, analytics-team)"
    )
    assert event.affected.datasets[1].owners == ("ml-platform", "analytics-team")
    assert event.affected_downstream == version.affected_downstream == (STAGED, MART)
    assert version.affected == event.affected


def test_an_event_is_the_same_when_it_is_found_again(lake: RecordedLake) -> None:
    event = lake.see("events", EVENTS.replace("amount INT64", "amount STRING"))
    with lake.store.transaction() as transaction:
        transaction.save_event(event)
        assert transaction.new_events == []
    assert last(lake).affected_downstream == (STAGED, MART)
