"""What the log of a table tells of its past becomes versions, each at its own time."""

from datetime import UTC, datetime, timedelta

import pytest

from lumos.discovery.dataset_recorder import RecordingOutcome
from lumos.model.change import ChangeEvent, EventType
from lumos.model.dataset import Location, Statistics
from lumos.model.discovery import FoundDataset, PastSchema, SourceMetadata, TableState
from lumos.model.schema import parse_schema
from lumos.model.urn import Urn
from recorded_lake import SOURCE, RecordedLake, urn_of

A, B, C = "id INT64", "id INT64\nname STRING", "id STRING\nname STRING"
URN = str(urn_of("/lake/orders"))


def day(number: int) -> datetime:
    return datetime(2023, 5, number, 12, tzinfo=UTC)


def past(schema: str, at: datetime, version: int, *, exact: bool = True) -> PastSchema:
    return PastSchema(
        schema=parse_schema(schema),
        at=at,
        version=str(version),
        operation="WRITE",
        author="etl",
        exact_time=exact,
    )


class Table:
    """A table that scans see, with as much of its log as is left."""

    def __init__(self, seen: RecordedLake) -> None:
        self.seen = seen

    def scan(
        self,
        *steps: PastSchema,
        version: int | None = None,
        format: str = "delta",
        content: str | None = None,
        **settings: str,
    ) -> RecordingOutcome:
        """The table after some steps; a version without one only brought data."""
        now = str(version if version is not None else int(steps[-1].version))
        found = FoundDataset(
            path="/lake/orders",
            format=format,
            location=Location(uri="/lake/orders"),
            schema=steps[-1].schema,
            statistics=Statistics(
                file_count=1, total_size_bytes=10, row_count=3, row_count_exact=True
            ),
            drift=(),
            content=content or f"{format} {now}",
            source_metadata=SourceMetadata(
                properties={"delta.appendOnly": "true", "table.version": now, **settings}
            ),
            table=TableState(version=now, at=steps[-1].at, operation="WRITE", past=steps),
        )
        (outcome,) = self.seen.recorder().record([(urn_of(found.path), found)])
        return outcome

    def events(self) -> list[ChangeEvent]:
        return list(self.seen.store.events(URN))

    def versions(self) -> list[tuple[str, str, datetime]]:
        history = self.seen.store.history(URN)
        return [(each.version, each.cloud_version, each.recorded_at) for each in history]


@pytest.fixture
def table(seen: RecordedLake) -> Table:
    return Table(seen)


def test_the_past_of_a_new_table_is_versions_at_their_own_times(table: Table) -> None:
    received: list[ChangeEvent] = []
    table.seen.lumos.on_change(received.append)
    outcome = table.scan(past(A, day(1), 0), past(B, day(2), 3), past(C, day(3), 9), version=12)
    assert table.versions() == [
        ("1.0.0", "S-1", day(1)), ("1.1.0", "S-2", day(2)), ("2.0.0", "S-3", day(3)),
    ]  # fmt: skip
    assert [(event.type, event.cause, event.at, event.author) for event in table.events()] == [
        (EventType.CREATED, "log", day(1), "etl"),
        (EventType.SCHEMA_CHANGED, "log", day(2), "etl"),
        (EventType.SCHEMA_CHANGED, "log", day(3), "etl"),
    ]
    assert [event.metadata["table_version"] for event in table.events()] == ["0", "3", "12"]
    assert "files" not in table.events()[0].metadata, "nobody knows how many there were then"
    assert table.events()[2].metadata["files"] == 1
    # That it is there is news, its past is none; nor does it break anything today.
    assert [event.type for event in received] == [EventType.CREATED]
    assert outcome.event is not None
    assert outcome.event.type is EventType.CREATED
    assert table.seen.store.known(source=SOURCE)[URN].created_at == day(1)


def test_the_same_table_again_records_nothing(table: Table) -> None:
    steps = (past(A, day(1), 0), past(B, day(2), 3))
    table.scan(*steps)
    before = table.events()
    assert table.scan(*steps).event is None
    assert table.events() == before


def test_new_data_is_a_modification_with_the_table_s_version(table: Table) -> None:
    steps = (past(A, day(1), 0), past(B, day(2), 3))
    table.scan(*steps)
    outcome = table.scan(*steps, version=7)
    assert outcome.event is not None
    assert (outcome.event.type, outcome.event.cause) == (EventType.MODIFIED, "scan")
    assert outcome.event.at == table.seen.at
    assert (outcome.event.metadata["table_version"], outcome.event.cloud_version) == ("7", "S-3")
    assert outcome.event.summary == "new data, same schema"


def test_steps_since_the_last_scan_are_news_at_the_time_of_their_commits(table: Table) -> None:
    received: list[ChangeEvent] = []
    table.scan(past(A, day(1), 0))
    table.seen.lumos.on_change(received.append)
    polled = table.seen.at + timedelta(minutes=30)
    later = [table.seen.at + timedelta(minutes=number) for number in (10, 20)]
    outcome = table.scan(past(A, day(1), 0), past(B, later[0], 1), past(C, later[1], 2))
    assert [each[2] for each in table.versions()] == [day(1), *later]
    assert [event.at for event in received] == later
    assert {event.cause for event in received} == {"log"}
    assert outcome.event == table.events()[-1]
    # Whoever asked after the commits and before the scan finds them when asking again.
    found = table.seen.lumos.changes(since=polled).events
    assert [event.timestamp for event in found] == [later[1], later[0]]


def test_a_log_that_forgot_its_beginning_still_shows_what_came_since(table: Table) -> None:
    table.scan(past(A, day(1), 0), past(B, day(2), 3))
    at = table.seen.at + timedelta(minutes=1)
    table.scan(past(B, day(2), 3), past(C, at, 4))
    assert [each[0] for each in table.versions()] == ["1.0.0", "1.1.0", "2.0.0"]
    # Of how it came from what is on record to what is there now, the log may know nothing.
    table.scan(past(A, table.seen.at + timedelta(minutes=1), 90))
    assert [each[0] for each in table.versions()][-1] == "3.0.0"


def test_a_schema_that_comes_and_goes_is_not_played_again_with_new_data(table: Table) -> None:
    steps = (past(A, day(1), 0), past(B, day(2), 1), past(A, day(3), 2), past(B, day(4), 3))
    table.scan(*steps)
    assert len(table.versions()) == 4
    table.scan(*steps, version=9)
    assert len(table.versions()) == 4
    assert table.events()[-1].type is EventType.MODIFIED


@pytest.mark.parametrize("version", [7, 0])
def test_a_schema_that_was_restored_between_two_scans_is_reported(
    table: Table, version: int
) -> None:
    # Where only the schema changes, nothing else of a table need tell of it.
    table.scan(past(A, day(1), 0), version=0)
    later = [table.seen.at + timedelta(minutes=number) for number in (10, 20)]
    steps = (past(A, day(1), 0), past(B, later[0], 1), past(A, later[1], 2))
    outcome = table.scan(*steps, version=version)
    assert outcome.event is not None
    assert outcome.event.type is EventType.SCHEMA_CHANGED
    reported = [("1.0.0", "S-1", day(1)), ("1.1.0", "S-2", later[0]), ("2.0.0", "S-3", later[1])]
    assert table.versions() == reported
    assert table.scan(*steps, version=version).event is None
    table.scan(*steps, version=9)
    assert table.versions() == reported


# A writer's clock that is a day behind, and one that is years ahead.
@pytest.mark.parametrize("reported", [timedelta(days=-1), timedelta(days=900)])
def test_clocks_of_writers_change_no_order(reported: timedelta, table: Table) -> None:
    table.scan(past(A, day(1), 0))
    first = table.seen.at
    outcome = table.scan(past(A, day(1), 0), past(B, first + reported, 1))
    assert outcome.event is not None
    assert outcome.event.at == first + timedelta(hours=1), "of the scan that found it"
    assert outcome.event.metadata["time"] == "approximate"


def test_a_time_that_only_a_file_shows_is_marked(table: Table) -> None:
    table.scan(past(A, day(1), 0, exact=False), past(B, day(2), 1))
    assert [event.metadata.get("time") for event in table.events()] == ["approximate", None]


def test_files_that_become_a_table_go_on_with_their_history(table: Table) -> None:
    table.seen.see("orders", A)
    outcome = table.scan(past(A, day(1), 0), past(B, day(2), 1))
    assert outcome.event is not None
    assert (outcome.event.type, outcome.event.cause) == (EventType.SCHEMA_CHANGED, "scan")
    assert [each[0] for each in table.versions()] == ["1.0.0", "1.1.0"]
    assert outcome.dataset.format == "delta"


def test_words_of_people_stay_through_imported_steps(table: Table) -> None:
    table.scan(past(A, day(1), 0))
    table.seen.lumos.annotations.docs.set(URN, "what was bought", fields=["id"])
    at = table.seen.at
    table.scan(
        past(A, day(1), 0),
        past(B, at + timedelta(minutes=1), 1),
        past(C, at + timedelta(minutes=2), 2),
    )
    for event in table.events()[-2:]:
        assert all(finding.rule != "description" for finding in event.findings), event.findings
    dataset = table.seen.lumos.show(URN).dataset
    assert dataset["schema"]["fields"][0]["description"] == "what was bought"


def test_metadata_of_a_table_is_stored(table: Table) -> None:
    table.scan(past(A, day(1), 0))
    shown = table.seen.lumos.show(URN).dataset
    assert shown["properties"] == {"file.delta.appendOnly": "true", "file.table.version": "0"}
    assert Urn.parse(shown["urn"]).platform == "file"


def test_another_setting_is_one_event_and_a_version_without_data_is_none(table: Table) -> None:
    table.scan(past(A, day(1), 0), content="same")
    assert table.scan(past(A, day(1), 0), version=1, content="same").event is None
    properties = table.seen.lumos.show(URN).dataset["properties"]
    assert properties["file.table.version"] == "1", "it is told, though nobody needs to hear of it"
    event = table.scan(past(A, day(1), 0), version=2, content="same", team="blue").event
    assert event is not None
    assert (event.type, event.summary) == (EventType.METADATA_CHANGED, "team changed")
    again = table.scan(past(A, day(1), 0), version=2, content="same", team="blue")
    assert again.event is None


def test_metadata_of_a_log_is_removed_with_the_log(table: Table) -> None:
    table.scan(past(A, day(1), 0))
    table.seen.lumos.annotations.docs.set(URN, "what was bought")
    event = table.seen.see("orders", A)
    assert event is not None
    assert event.summary == "new data, same schema; kind, delta.appendOnly changed"
    shown = table.seen.lumos.show(URN).dataset
    assert not shown.get("properties")
    assert shown["documentation"]["description"] == "what was bought"
