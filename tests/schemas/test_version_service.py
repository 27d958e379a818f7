"""The versions of datasets: shown, mapped, moved by hand and for many at once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from lumos import Lumos
from lumos.errors import LumosError, MisuseError
from lumos.model.change import ChangeEvent, EventType
from lumos.model.schema import parse_schema
from lumos.store.history import EventFilter
from recorded_lake import RecordedLake

ORDERS = "lumos://file/lake/orders"


@pytest.fixture
def clicks(seen: RecordedLake) -> RecordedLake:
    """The founding documents' example: `session_id` comes, `user_id` becomes a number."""
    seen.see("clicks", "user_id STRING")
    seen.see("clicks", "user_id STRING\nsession_id STRING")
    seen.see("clicks", "user_id STRING\nsession_id STRING")
    seen.see("clicks", "user_id INT64\nsession_id STRING")
    return seen


def events(seen: RecordedLake) -> list[ChangeEvent]:
    return list(seen.store.change_log.events(EventFilter()))


def audits(seen: RecordedLake) -> list[tuple[str, str, str]]:
    with seen.lumos.database.reading() as connection:
        rows = connection.exec_driver_sql(
            "SELECT action, target, details FROM audit ORDER BY sequence"
        )
        return [tuple(row) for row in rows]


def test_every_cloud_version_is_mapped_to_its_schema_version(clicks: RecordedLake) -> None:
    assert clicks.lumos.version.map("clicks").versions == {
        "S-1": "1.0.0",
        "S-2": "1.1.0",
        "S-3": "1.1.0",
        "S-4": "2.0.0",
    }


def test_the_map_is_whole_after_events_of_new_data_were_let_go(clicks: RecordedLake) -> None:
    before = clicks.lumos.version.map("clicks")
    assert clicks.lumos.change_history.forget_old("1d").removed == 1
    assert clicks.lumos.version.map("clicks") == before


def test_a_dataset_shows_its_versions_and_how_it_came_to_them(clicks: RecordedLake) -> None:
    shown = clicks.lumos.version.show("clicks")
    assert (shown.cloud_version, shown.schema_version) == ("S-4", "2.0.0")
    assert shown.previous_version == "S-3"
    assert (shown.change_type, shown.cause, shown.author) == ("SCHEMA_CHANGE", "scan", None)
    assert shown.timestamp == clicks.at
    assert shown.change_details.breaking
    assert shown.change_details.summary == "1 type changed: user_id STRING -> INT64"
    assert [
        (entry.version, entry.schema_version, entry.breaking, entry.changes)
        for entry in shown.version_history
    ] == [
        ("S-1", "1.0.0", False, ()),
        ("S-2", "1.1.0", False, ("Added session_id field",)),
        ("S-4", "2.0.0", True, ("Changed type of user_id from STRING to INT64",)),
    ]


def test_a_step_whose_event_was_let_go_was_one_of_new_data(seen: RecordedLake) -> None:
    seen.see("orders", "id INT64")
    seen.see("orders", "id INT64")
    seen.lumos.change_history.forget_old("1d")
    shown = seen.lumos.version.show("orders")
    assert (shown.cloud_version, shown.change_type, shown.cause) == ("S-2", "DATA_UPDATE", None)
    assert (shown.timestamp, shown.previous_version) == (seen.at, "S-1")


def test_gone_and_back_are_steps_of_the_cloud_version_alone(seen: RecordedLake) -> None:
    seen.see("orders", "id INT64")
    seen.lose("orders")
    shown = seen.lumos.version.show("orders")
    assert (shown.state, shown.cloud_version, shown.change_type) == (
        "missing",
        "S-2",
        "DATA_UPDATE",
    )
    assert seen.see("orders", "id INT64").type is EventType.RESTORED
    milestones = seen.lumos.version.show("orders").milestones
    assert [(each.event, each.cloud_version, each.summary) for each in milestones] == [
        ("RESTORED", "S-3", "back again"),
        ("DELETED", "S-2", "gone"),
    ]
    assert seen.lumos.version.map("orders").versions == {
        "S-1": "1.0.0", "S-2": "1.0.0", "S-3": "1.0.0",
    }  # fmt: skip


def test_schema_history_reports_absences_and_names_too(seen: RecordedLake) -> None:
    seen.see("orders", "id INT64")
    seen.lose("orders")
    seen.see("orders", "id INT64")
    seen.see("sales", "id INT64\nnote STRING", renamed_from="orders")
    history = seen.lumos.history("sales")
    assert [each.event.value for each in history.milestones] == ["RENAMED", "RESTORED", "DELETED"]
    earlier = seen.lumos.schema.history("sales", as_of="2024-01-01T01:30")
    assert [each.event.value for each in earlier.milestones] == ["DELETED"]


def test_a_renamed_dataset_goes_on_counting(seen: RecordedLake) -> None:
    seen.see("orders", "id INT64")
    seen.see("sales", "id INT64\nnote STRING", renamed_from="orders")
    shown = seen.lumos.version.show(ORDERS)
    assert (shown.urn, shown.cloud_version) == ("lumos://file/lake/sales", "S-2")
    assert shown.change_type == "SCHEMA_CHANGE"
    assert seen.lumos.version.map("sales").versions == {"S-1": "1.0.0", "S-2": "1.1.0"}
    assert [each.summary for each in shown.milestones] == [f"was {ORDERS}"]


def test_a_dataset_under_an_old_name_of_another_has_a_life_of_its_own(seen: RecordedLake) -> None:
    seen.see("orders", "id INT64")
    seen.see("orders", "id STRING")
    seen.see("sales", "id STRING", renamed_from="orders")
    seen.see("orders", "key INT64")
    assert seen.lumos.version.map("orders").versions == {"S-1": "1.0.0"}
    shown = seen.lumos.version.show("orders")
    assert (shown.change_details.event, shown.milestones) == (EventType.CREATED, ())
    assert seen.lumos.version.map("sales").versions == {
        "S-1": "1.0.0", "S-2": "2.0.0", "S-3": "2.0.0",
    }  # fmt: skip


def test_people_who_move_versions_at_the_same_time_do_not_lose_one(seen: RecordedLake) -> None:
    seen.see("orders", "id INT64")
    bump = seen.lumos.version.bump
    with ThreadPoolExecutor(4) as people:
        keyed = list(people.map(lambda _: bump("orders", "DATA_UPDATE", key="once"), range(4)))
        free = list(people.map(lambda _: bump("orders", "SCHEMA_CHANGE"), range(4)))
    assert sum(each.applied for each in keyed) == 1
    assert {each.after.cloud_version for each in keyed} == {"S-2"}
    assert {each.after.cloud_version for each in free} == {"S-3", "S-4", "S-5", "S-6"}
    assert seen.lumos.version.show("orders").schema_version == "1.4.0"


@pytest.mark.parametrize(
    ("type", "level", "version", "event"),
    [
        ("SCHEMA_CHANGE", None, "1.1.0", EventType.SCHEMA_CHANGED),
        ("SCHEMA_CHANGE", "major", "2.0.0", EventType.SCHEMA_CHANGED),
        ("data_update", None, "1.0.1", EventType.MODIFIED),
        ("DATA_UPDATE", "none", "1.0.0", EventType.MODIFIED),
        ("METADATA_UPDATE", None, "1.0.1", EventType.METADATA_CHANGED),
        ("METADATA_UPDATE", "Minor", "1.1.0", EventType.METADATA_CHANGED),
    ],
)
def test_a_person_can_move_versions(
    seen: RecordedLake, type: str, level: str | None, version: str, event: EventType
) -> None:
    seen.see("orders", "id INT64")
    bumped = seen.lumos.version.bump(
        "orders", type, level=level, reason="amounts are in cents now", author="ann"  # type: ignore[arg-type]
    )  # fmt: skip
    assert bumped.applied
    assert (bumped.before.cloud_version, bumped.before.schema_version) == ("S-1", "1.0.0")
    assert (bumped.after.cloud_version, bumped.after.schema_version) == ("S-2", version)
    newest = events(seen)[0]
    assert (newest.type, newest.cause, newest.author) == (event, "user", "ann")
    assert (newest.summary, newest.source_path) == ("amounts are in cents now", "/lake/orders")
    assert newest.breaking is (level == "major")
    assert seen.lumos.version.map("orders").versions == {"S-1": "1.0.0", "S-2": version}
    assert audits(seen)[-1] == (
        "bump version", ORDERS, f"S-1 1.0.0 -> S-2 {version}. amounts are in cents now"
    )  # fmt: skip


def test_a_version_that_a_person_began_stands_in_the_history(seen: RecordedLake) -> None:
    seen.see("orders", "id INT64")
    seen.lumos.version.bump("orders", "DATA_UPDATE", reason="backfilled", author="ann")
    history = seen.lumos.version.show("orders").version_history
    assert [(entry.schema_version, entry.author, entry.changes) for entry in history] == [
        ("1.0.0", None, ()),
        ("1.0.1", "ann", ("backfilled",)),
    ]
    assert [version.schema_version for version in seen.lumos.history("orders").versions] == [
        "1.0.1",
        "1.0.0",
    ]
    assert seen.lumos.change_history.forget_old("0s").removed == 0
    assert seen.lumos.version.show("orders").author == "ann"


def test_scans_count_on_from_what_a_person_said(seen: RecordedLake) -> None:
    seen.see("orders", "id INT64")
    seen.lumos.version.bump("orders", "SCHEMA_CHANGE", level="major")
    event = seen.see("orders", "id INT64\nnote STRING")
    assert (event.cloud_version, event.schema_version) == ("S-3", "2.1.0")


def test_a_key_moves_versions_once_and_without_one_each_time(seen: RecordedLake) -> None:
    seen.see("orders", "id INT64")
    bump = seen.lumos.version.bump
    first = bump("orders", "SCHEMA_CHANGE", key="release 42")
    again = bump("orders", "SCHEMA_CHANGE", key="release 42")
    assert (first.applied, again.applied) == (True, False)
    assert (again.event_id, again.before, again.after) == (
        first.event_id, first.before, first.after,
    )  # fmt: skip
    assert bump("orders", "SCHEMA_CHANGE").after.schema_version == "1.2.0"
    assert bump("orders", "SCHEMA_CHANGE").after.schema_version == "1.3.0"
    assert [row[0] for row in audits(seen)] == ["bump version"] * 3


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ({"type": "SCHEMA_CHANGED"}, "No change type named 'SCHEMA_CHANGED'"),
        ({"type": "DATA_UPDATE", "level": "huge"}, "No level named 'huge'"),
        ({"type": "DATA_UPDATE", "name": "nothing"}, "No dataset nothing"),
        ({"type": "DATA_UPDATE", "name": "old"}, "has been missing since 2024-01-01"),
    ],
)
def test_what_cannot_be_moved_is_refused(
    seen: RecordedLake, words: dict[str, str], complaint: str
) -> None:
    seen.see("orders", "id INT64")
    seen.see("old", "id INT64")
    seen.lose("old")
    with pytest.raises(MisuseError, match=complaint):
        seen.lumos.version.bump(**{"name": "orders", **words})  # type: ignore[arg-type]
    assert audits(seen) == []


@pytest.mark.usefixtures("clicks")
def test_a_new_prefix_is_taken_at_the_next_step_and_the_count_goes_on(
    stored: dict[str, object],
) -> None:
    later = RecordedLake(Lumos(overrides={**stored, "cloud_version_prefix": "V-"}))
    event = later.see("clicks", "user_id INT64\nsession_id STRING\npage STRING")
    assert event.cloud_version == "V-5"
    assert later.see("orders", "id INT64").cloud_version == "V-1"
    assert later.lumos.version.map("clicks").versions == {
        "S-1": "1.0.0", "S-2": "1.1.0", "S-3": "1.1.0", "S-4": "2.0.0", "V-5": "2.1.0",
    }  # fmt: skip
    assert later.lumos.version.show("clicks").previous_version == "S-4"


def test_a_scan_of_versions_finds_nothing_where_all_is_as_it_should_be(
    clicks: RecordedLake,
) -> None:
    clicks.see("orders", "id INT64")
    clicks.see("old", "id INT64")
    clicks.lose("old")
    report = clicks.lumos.version.scan()
    assert (report.summary.datasets, report.summary.outdated) == (2, 0)
    assert [(each.name, each.has.schema_version, each.need) for each in report.datasets] == [
        ("clicks", "2.0.0", "none"),
        ("orders", "1.0.0", "none"),
    ]


def test_a_scan_of_versions_takes_a_pattern(clicks: RecordedLake) -> None:
    clicks.see("orders", "id INT64")
    scan = clicks.lumos.version.scan
    assert [each.name for each in scan("ord*").datasets] == ["orders"]
    assert scan("nothing*").summary.datasets == 0
    with pytest.raises(LumosError, match="No dataset nothing"):
        scan("nothing")


def test_schemas_that_came_without_a_version_get_the_one_their_changes_ask_for(
    seen: RecordedLake,
) -> None:
    seen.see("orders", "id INT64\nnote STRING")
    seen.see("users", "id INT64")
    put(seen, "orders", "id INT64")
    needed = seen.lumos.version.scan()
    assert (needed.summary.outdated, needed.summary.updated) == (1, 0)
    orders = needed.datasets[0]
    assert (orders.need, orders.level, orders.changes) == (
        "schema", "major", ("Removed note field",),
    )  # fmt: skip
    assert (orders.has.schema_version, orders.needs.schema_version) == ("1.0.0", "2.0.0")
    assert len(events(seen)) == 2, "looking changes nothing"

    updated = seen.lumos.version.scan(update=True)
    assert updated.summary.updated == 1
    shown = seen.lumos.version.show("orders")
    assert (shown.cloud_version, shown.schema_version, shown.cause) == ("S-2", "2.0.0", "user")
    assert shown.change_details.breaking
    assert audits(seen)[-1] == ("update versions", "*", "1 datasets")
    assert seen.lumos.version.scan(update=True).summary.outdated == 0
    assert len(events(seen)) == 3


def test_a_dataset_without_any_version_gets_its_first(seen: RecordedLake) -> None:
    seen.see("orders", "id INT64")
    with seen.lumos.database.writing() as connection:
        connection.exec_driver_sql("DELETE FROM schema_version")
    (found,) = seen.lumos.version.scan(update=True).datasets
    assert found.need == "first version"
    assert seen.lumos.version.map("orders").versions == {"S-1": "1.0.0"}
    assert seen.lumos.version.scan().summary.outdated == 0


def test_a_new_prefix_can_be_given_to_all_datasets_at_once(
    clicks: RecordedLake, stored: dict[str, object]
) -> None:
    clicks.see("orders", "id INT64")
    lumos = Lumos(overrides={**stored, "cloud_version_prefix": "V-"})
    report = lumos.version.scan(update=True)
    assert (report.summary.outdated, report.summary.updated) == (2, 2)
    assert [each.needs.cloud_version for each in report.datasets] == ["V-5", "V-2"]
    assert {each.need for each in report.datasets} == {"prefix"}
    shown = lumos.version.show("orders")
    assert (shown.cloud_version, shown.schema_version) == ("V-2", "1.0.0")
    assert shown.change_type == "METADATA_UPDATE"
    assert lumos.version.scan().summary.outdated == 0
    assert lumos.version.map("orders").versions == {"S-1": "1.0.0", "V-2": "1.0.0"}


def put(seen: RecordedLake, name: str, schema: str) -> None:
    """Changes a schema behind the back of its history, as an import may."""
    with seen.store.transaction() as transaction:
        hash = transaction.save_schema(parse_schema(schema))
    with seen.lumos.database.writing() as connection:
        connection.exec_driver_sql(
            f"UPDATE dataset SET schema_hash = '{hash}' WHERE name = '{name}'"
        )


def test_earlier_versions_keep_the_spelling_that_they_had(
    seen: RecordedLake, stored: dict[str, object]
) -> None:
    for _ in range(2):
        seen.see("orders", "a INT64")
    other = RecordedLake(Lumos(overrides={**stored, "cloud_version_prefix": "V-"}))
    other.start = seen.at + timedelta(days=1)
    other.see("orders", "a INT64")
    seen.start = other.at + timedelta(days=1)
    seen.see("orders", "a INT64")
    names = ["S-1", "S-2", "V-3", "S-4"]
    assert list(seen.lumos.version.map("orders").versions) == names
    assert seen.lumos.version.show("orders").previous_version == "V-3"
    assert not seen.lumos.schema.diff("orders@V-3", "orders").summary.changes
    with pytest.raises(MisuseError, match=r"has no version 'S-3'.*S-1, S-2, V-3, S-4"):
        seen.lumos.schema.diff("orders@S-3", "orders")


def test_an_exact_name_is_meant_before_one_in_another_case(seen: RecordedLake) -> None:
    seen.see_all(["a/orders", "b/Orders"], "a INT64")
    assert seen.lumos.version.show("orders").urn == "lumos://file/lake/a/orders"
    assert seen.lumos.version.show("Orders").urn == "lumos://file/lake/b/Orders"
