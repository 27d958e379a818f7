"""What happened to datasets: told, remembered, let go, and handed to functions."""

import logging
import shutil
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pytest

from files import write_parquet
from lumos import Lumos
from lumos.errors import MisuseError
from lumos.model.change import ChangeEvent, EventType
from lumos.store import Store
from recorded_lake import START, RecordedLake

ORDERS = "lumos://file/lake/orders"


@pytest.fixture
def lake(seen: RecordedLake) -> RecordedLake:
    """Orders lose a column and gain one, users only get data; the lake is gone and back."""
    seen.see("orders", "id INT64\ndiscount INT64")
    seen.see("users", "id INT64")
    seen.see("orders", "id INT64")
    seen.see("users", "id INT64")
    seen.lose("orders")
    seen.see("orders", "id INT64\nnote STRING")
    seen.see("sales", "id INT64\nnote STRING", renamed_from="orders")
    return seen


def change_texts(lake: RecordedLake, **words: object) -> list[tuple[str, str]]:
    found = lake.lumos.changes(**words)  # type: ignore[arg-type]
    return [(event.urn.rpartition("/")[2], event.type.value) for event in found.events]


def test_changes_are_listed_newest_first(lake: RecordedLake) -> None:
    assert change_texts(lake) == [
        ("sales", "MODIFIED"),
        ("sales", "RENAMED"),
        ("orders", "RESTORED"),
        ("orders", "DELETED"),
        ("users", "MODIFIED"),
        ("orders", "SCHEMA_CHANGED"),
        ("users", "CREATED"),
        ("orders", "CREATED"),
    ]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({"breaking": True}, [("orders", "DELETED"), ("orders", "SCHEMA_CHANGED")]),
        ({"types": ["created"], "dataset": "users"}, [("users", "CREATED")]),
        ({"dataset": "us*", "limit": 1}, [("users", "MODIFIED")]),
        ({"until": "2024-01-01T00:00Z"}, [("orders", "CREATED")]),
        ({"since": "2024-01-01T06:00"}, [("sales", "MODIFIED"), ("sales", "RENAMED")]),
        ({"since": "7d"}, []),
        ({"dataset": "nothing*"}, []),
        ({"dataset": "sales", "types": ["SCHEMA_CHANGED"]}, [("orders", "SCHEMA_CHANGED")]),
    ],
)
def test_changes_can_be_asked_for_by_time_type_dataset_and_verdict(
    lake: RecordedLake, words: dict[str, object], expected: list[tuple[str, str]]
) -> None:
    assert change_texts(lake, **words) == expected


def test_a_date_at_the_end_holds_its_day(lake: RecordedLake) -> None:
    assert len(change_texts(lake, until="2024-01-01")) == 8
    assert change_texts(lake, until="2023-12-31") == []


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ({"since": "soon"}, "'soon' is not a time"),
        ({"types": ["CHANGED"]}, "No event type named 'CHANGED'"),
        ({"dataset": "nothing"}, "No dataset nothing in the store"),
        ({"dataset": ""}, "matches nothing"),
        ({"since": "2024-02-01", "until": "2024-01-01"}, "ends .* before it begins"),
    ],
)
def test_what_means_nothing_is_refused_at_once(
    lake: RecordedLake, words: dict[str, object], complaint: str
) -> None:
    with pytest.raises(MisuseError, match=complaint):
        lake.lumos.changes(**words)  # type: ignore[arg-type]


def test_an_event_contains_all_known_facts(lake: RecordedLake) -> None:
    (event,) = lake.lumos.changes(breaking=True, types=["SCHEMA_CHANGED"]).events
    assert event.urn == ORDERS
    assert (event.type, event.change_type) == ("SCHEMA_CHANGED", "SCHEMA_CHANGE")
    assert event.timestamp == START + timedelta(hours=2)
    assert (event.cause, event.author, event.source_path) == ("scan", None, "/lake/orders")
    assert (event.cloud_version, event.schema_version) == ("S-2", "2.0.0")
    assert event.summary == "1 field removed: discount"
    assert event.old_schema is not None
    assert event.new_schema is not None
    assert [field.name for field in event.old_schema.fields] == ["id", "discount"]
    assert [field.name for field in event.new_schema.fields] == ["id"]
    (change,) = event.changes
    assert (change.kind, change.path, change.consumer) == ("removed", "discount", "breaking")
    assert event.metadata == {
        "source": "file:/lake", "format": "parquet", "files": 1, "bytes": 10, "rows": 3,
    }  # fmt: skip


def test_every_type_of_event_says_what_and_where(lake: RecordedLake) -> None:
    facts = {
        event.type.value: (
            event.summary,
            event.source_path,
            event.old_schema is not None,
            event.new_schema is not None,
        )
        for event in lake.lumos.changes().events
    }
    assert facts == {
        "CREATED": ("first seen", "/lake/orders", False, True),
        "MODIFIED": ("new data, same schema", "/lake/users", False, False),
        "SCHEMA_CHANGED": ("1 field removed: discount", "/lake/orders", True, True),
        "DELETED": ("gone", "/lake/orders", True, False),
        "RESTORED": ("back again; 1 field added: note", "/lake/orders", True, True),
        "RENAMED": (f"was {ORDERS}", "/lake/sales", False, False),
    }
    (renamed,) = lake.lumos.changes(types=["RENAMED"]).events
    assert renamed.metadata == {"source": "file:/lake", "from": ORDERS}


def test_many_events_are_read_as_they_are_asked_for(seen: RecordedLake) -> None:
    for _ in range(3):
        seen.see("orders", "id INT64")
    events = seen.lumos.change_history.iterate()
    assert [event.cloud_version for event in islice(events, 1)] == ["S-3"]
    seen.see("orders", "id INT64")
    assert [event.cloud_version for event in events] == ["S-2", "S-1"]


def test_old_events_of_new_data_are_let_go_and_nothing_else(lake: RecordedLake) -> None:
    report = lake.lumos.change_history.forget_old("90d")
    assert (report.removed, len(change_texts(lake))) == (2, 6)
    assert "MODIFIED" not in {type for _, type in change_texts(lake)}
    assert lake.lumos.change_history.forget_old("90d").removed == 0
    with lake.lumos.database.reading() as connection:
        rows = connection.exec_driver_sql("SELECT action, target, details FROM audit").all()
    ((action, target, details),) = rows
    assert (action, target) == ("forget events", "MODIFIED")
    assert details.startswith("2 before 20")


def test_recent_events_of_new_data_stay(seen: RecordedLake) -> None:
    seen.start = datetime.now(UTC) - timedelta(days=89)
    seen.see("orders", "id INT64")
    seen.see("orders", "id INT64")
    assert seen.lumos.change_history.forget_old().removed == 0
    assert seen.lumos.change_history.forget_old("80d").removed == 1


def test_the_configuration_says_how_long_events_of_new_data_are_kept(
    lake: RecordedLake, stored: dict[str, object]
) -> None:
    forever = Lumos(overrides={**stored, "storage.modified_retention_days": 0})
    assert forever.change_history.forget_old().removed == 0
    assert forever.change_history.forget_old().before is None
    days = (datetime.now(UTC) - START).days
    longer = Lumos(overrides={**stored, "storage.modified_retention_days": days + 1})
    assert longer.change_history.forget_old().removed == 0
    assert lake.lumos.change_history.forget_old().removed == 2


def test_an_age_that_means_nothing_is_refused(lake: RecordedLake) -> None:
    with pytest.raises(MisuseError, match="'2024-01-01' is not an age"):
        lake.lumos.change_history.forget_old("2024-01-01")


def test_a_handler_hears_of_what_it_asked_for_once(seen: RecordedLake) -> None:
    heard: dict[str, list[str]] = {name: [] for name in ("all", "breaking", "harmless", "users")}
    lumos = seen.lumos
    lumos.on_change(lambda event: heard["all"].append(event.type.value))
    lumos.on_change(lambda event: heard["breaking"].append(event.summary), breaking=True)
    lumos.on_change(
        lambda event: heard["harmless"].append(event.summary),
        breaking=False,
        types=["schema_changed"],
    )
    lumos.on_change(lambda event: heard["users"].append(event.urn), dataset="users")
    seen.see("orders", "id INT64\ndiscount INT64")
    seen.see("users", "id INT64")
    seen.see("orders", "id INT64")
    seen.see("orders", "id INT64\nnote STRING")
    assert heard == {
        "all": ["CREATED", "CREATED", "SCHEMA_CHANGED", "SCHEMA_CHANGED"],
        "breaking": ["1 field removed: discount"],
        "harmless": ["1 field added: note"],
        "users": ["lumos://file/lake/users"],
    }


def test_a_handler_may_be_registered_by_decoration(seen: RecordedLake) -> None:
    heard: list[str] = []

    @seen.lumos.on_change
    def note(event: ChangeEvent) -> None:
        heard.append(event.event_id)

    event = seen.see("orders", "id INT64")
    assert heard == [event.event_id]
    assert callable(note)


def test_a_handler_is_called_when_the_event_is_safe(seen: RecordedLake) -> None:
    seen_by_others: list[int] = []
    others = Store(seen.lumos.database)

    @seen.lumos.on_change
    def look(event: ChangeEvent) -> None:
        seen_by_others.append(len(others.events(event.urn)))

    seen.see("orders", "id INT64")
    seen.see("orders", "id INT64\nnote STRING")
    assert seen_by_others == [1, 2]


def test_a_handler_that_fails_is_named_in_the_log_and_harms_nobody(
    seen: RecordedLake, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[EventType] = []

    @seen.lumos.on_change
    def shaky(event: ChangeEvent) -> None:
        raise KeyError(event.urn)

    seen.lumos.on_change(lambda event: heard.append(event.type))
    with caplog.at_level(logging.ERROR, logger="lumos"):
        event = seen.see("orders", "id INT64")
    assert heard == [EventType.CREATED]
    assert [found.event_id for found in seen.store.events(event.urn)] == [event.event_id]
    (record,) = caplog.records
    assert "shaky" in record.getMessage()
    assert record.exc_info is not None
    assert record.exc_info[0] is KeyError


def test_a_handler_hears_of_versions_that_a_person_moved(seen: RecordedLake) -> None:
    seen.see("orders", "id INT64")
    heard: list[tuple[str, str | None]] = []
    seen.lumos.on_change(lambda event: heard.append((event.schema_version, event.author)))
    seen.lumos.version.bump("orders", "SCHEMA_CHANGE", key="once", author="ann")
    seen.lumos.version.bump("orders", "SCHEMA_CHANGE", key="once", author="ann")
    assert heard == [("1.1.0", "ann")]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [({"types": ["NEW"]}, "No event type named 'NEW'"), ({"dataset": " "}, "matches nothing")],
)
def test_a_handler_for_nothing_is_refused(
    seen: RecordedLake, words: dict[str, object], complaint: str
) -> None:
    with pytest.raises(MisuseError, match=complaint):
        seen.lumos.on_change(print, **words)  # type: ignore[arg-type]


@pytest.mark.usefixtures("spark")
def test_a_scan_calls_handlers_and_lets_old_events_go(workplace: Path) -> None:
    lumos = Lumos(overrides={"storage.path": str(workplace / "lumos.db")})
    earlier = RecordedLake(lumos)
    earlier.see("elsewhere", "id INT64")
    earlier.see("elsewhere", "id INT64")
    heard: list[tuple[str, str, bool]] = []
    lumos.on_change(
        lambda event: heard.append((event.type.value, event.summary, event.breaking)),
        dataset="orders",
    )
    file = workplace / "lake/orders/part-0.parquet"
    for columns in ({"id": pa.int64(), "note": pa.string()}, {"id": pa.int64()}):
        write_parquet(file, **columns)
        lumos.ingest(workplace / "lake")
    write_parquet(workplace / "lake/users/part-0.parquet", id=pa.int64())
    shutil.rmtree(workplace / "lake/orders")
    lumos.ingest(workplace / "lake", accept_removals=True)
    assert heard == [
        ("CREATED", "first seen", False),
        ("SCHEMA_CHANGED", "1 field removed: note", True),
        ("DELETED", "gone", True),
    ]
    assert {event.type.value for event in lumos.changes(dataset="elsewhere").events} == {"CREATED"}


def test_handlers_are_checked_when_they_are_registered(seen: RecordedLake) -> None:
    with pytest.raises(MisuseError, match="5 is not callable"):
        seen.lumos.on_change(5)  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match="No event type named 'GONE'"):
        seen.lumos.on_change(print, types="GONE")
    heard: list[str] = []
    seen.lumos.on_change(lambda event: heard.append(event.type.value), types="deleted")
    seen.see("orders", "id INT64")
    seen.lose("orders")
    assert heard == ["DELETED"]
