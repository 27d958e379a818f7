"""The schemas of datasets over time, on every database."""

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from lumos.errors import MisuseError
from lumos.model.notification import Notification
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.types import parse_type
from lumos.schemas.diff_inputs import UnknownVersion
from lumos.schemas.service import Schemas
from lumos.store import KnownDataset, Store
from schema_histories import day, record

EVENTS = "lumos://s3/data-lake-prod/raw/user_events"
OTHER = "lumos://file@a/lake/Other"
FIRST = "event_id STRING NOT NULL\nuser_id STRING\ntimestamp TIMESTAMP\nevent_type STRING"
SECOND = f"{FIRST}\nsession_id STRING"
THIRD = SECOND.replace("user_id STRING", "user_id INT64")


@pytest.fixture
def schemas(store: Store) -> Schemas:
    """The founding documents' example, with new data between the changes, and another dataset."""
    record(store, EVENTS, FIRST, day("2023-06-01"))
    record(store, EVENTS, FIRST, day("2023-07-01"), content="more data")
    record(store, EVENTS, SECOND, day("2023-09-15"))
    record(store, EVENTS, SECOND, day("2023-10-01"), content="yet more")
    record(store, EVENTS, THIRD, day("2024-01-10"))
    record(store, OTHER, "a INT32", day("2023-12-01"))
    record(store, OTHER, "a INT64\nb DATE", day("2023-12-24"))
    return Schemas(lambda: store)


def test_history_shows_every_version_newest_first(schemas: Schemas) -> None:
    report = schemas.history("user_events")
    assert (report.urn, report.name) == (EVENTS, "user_events")
    assert [(each.schema_version, each.cloud_version) for each in report.versions] == [
        ("2.0.0", "S-5"),
        ("1.1.0", "S-3"),
        ("1.0.0", "S-1"),
    ]
    newest, middle, oldest = report.versions
    assert newest.timestamp == newest.recorded_at == day("2024-01-10")
    assert (newest.cause, newest.author, newest.source) == ("scan", None, "/lake/user_events")
    (change,) = newest.changes
    assert (change.path, change.kind, change.before, change.after) == (
        "user_id", "type_changed", "STRING", "INT64",
    )  # fmt: skip
    assert (newest.breaking, middle.breaking, oldest.breaking) == (True, False, False)
    assert [change.path for change in middle.changes] == ["session_id"]
    assert oldest.changes == ()
    assert len({each.fingerprint for each in report.versions}) == 3
    assert len(newest.schema.fields) == 5
    assert all(each.affected_downstream == () for each in report.versions)


def test_history_shows_whether_a_breaking_change_was_notified(
    schemas: Schemas, store: Store
) -> None:
    assert [each.breaking_change_alert for each in schemas.history(EVENTS).versions] == [None] * 3
    events = {event.schema_version: event for event in store.events(EVENTS)}
    with store.transaction() as transaction:
        for version in ("1.1.0", "2.0.0"):
            message = Notification(
                event_id=events[version].event_id, channel="c", urn=EVENTS, title="t", body="b"
            )
            transaction.post(message, at=day("2024-01-10"))
    found = [each.breaking_change_alert for each in schemas.history(EVENTS).versions]
    assert found == ["PENDING", None, None]


@pytest.mark.parametrize(
    ("when", "newest"),
    [
        ("2023-06-01", "1.0.0"),
        ("2023-09-14", "1.0.0"),
        ("2023-09-15", "1.1.0"),
        ("2023-09-15T11:59:59Z", "1.0.0"),
        ("2023-09-15T12:00:00Z", "1.1.0"),
        ("2099-01-01", "2.0.0"),
    ],
)
def test_history_as_of_a_date_ends_there(schemas: Schemas, when: str, newest: str) -> None:
    assert schemas.history(EVENTS, as_of=when).versions[0].schema_version == newest
    assert schemas.timeline(EVENTS, as_of=when).versions[-1].schema_version == newest


def test_before_it_was_seen_a_dataset_has_no_version(schemas: Schemas) -> None:
    with pytest.raises(UnknownVersion, match="first seen on 2023-06-01 12:00:00 UTC"):
        schemas.history(EVENTS, as_of="2023-05-31")
    with pytest.raises(MisuseError, match="'soon' is not a time"):
        schemas.history(EVENTS, as_of="soon")


def test_the_timeline_is_listed_oldest_first(schemas: Schemas) -> None:
    report = schemas.timeline("user_events")
    facts = [
        (
            each.schema_version,
            each.field_count,
            each.added,
            each.removed,
            each.changed,
            each.breaking,
        )
        for each in report.versions
    ]
    assert facts == [
        ("1.0.0", 4, 0, 0, 0, False),
        ("1.1.0", 5, 1, 0, 0, False),
        ("2.0.0", 5, 0, 0, 1, True),
    ]


def test_evolution_of_one_dataset_over_a_period(schemas: Schemas) -> None:
    report = schemas.evolution("user_events", since="2023-07-01", until="2024-01-31")
    (found,) = report.datasets
    assert (found.total_versions, found.total_changes, found.breaking_changes) == (2, 2, 1)
    assert found.change_frequency == round(2 / 215, 4)
    assert [each.schema_version for each in found.timeline] == ["1.1.0", "2.0.0"]
    assert report.period_end - report.period_start == timedelta(days=215, microseconds=-1)
    assert (report.summary.total_changes, report.summary.breaking_versions) == (2, 1)


def test_evolution_of_all_datasets_names_the_worst_first(schemas: Schemas) -> None:
    report = schemas.evolution()
    assert [each.name for each in report.datasets] == ["user_events", "Other"]
    assert report.period_start == day("2023-06-01")
    assert (report.summary.total_versions, report.summary.total_changes) == (5, 4)
    assert report.summary.changes_by_kind == {"added": 2, "type_changed": 2}


def test_a_period_without_changes_is_reported_as_such(schemas: Schemas) -> None:
    (found,) = schemas.evolution(OTHER, since="2023-12-25", until="2023-12-31").datasets
    assert (found.total_versions, found.total_changes, found.timeline) == (0, 0, ())
    assert schemas.evolution(since="2023-12-25", until="2023-12-31").datasets == ()


@pytest.mark.parametrize(
    ("before", "after", "versions", "changes"),
    [
        ("user_events@1.0.0", "user_events@2.0.0", ("1.0.0", "2.0.0"), ["user_id", "session_id"]),
        ("user_events@S-1", "user_events", ("1.0.0", "2.0.0"), ["user_id", "session_id"]),
        ("user_events@S-4", "user_events@S-5", ("1.1.0", "2.0.0"), ["user_id"]),
        ("user_events@S-2", "user_events@S-3", ("1.0.0", "1.1.0"), ["session_id"]),
        (f"{EVENTS}@2023-09-01", EVENTS, ("1.0.0", "2.0.0"), ["user_id", "session_id"]),
        ("user_events@1.1.0", "user_events@1.0.0", ("1.1.0", "1.0.0"), ["session_id"]),
        (f"{OTHER}@1.0.0", OTHER, ("1.0.0", "1.1.0"), ["a", "b"]),
    ],
)
def test_a_dataset_is_compared_with_itself_at_another_time(
    schemas: Schemas, before: str, after: str, versions: tuple[str, str], changes: list[str]
) -> None:
    (found,) = schemas.diff(before, after).datasets
    assert (found.from_version, found.to_version) == versions
    assert [change.path for change in found.changes] == changes


def test_the_same_version_does_not_differ(schemas: Schemas) -> None:
    report = schemas.diff("user_events@S-3", "user_events@1.1.0")
    assert (report.datasets, report.summary.datasets, report.summary.changes) == ((), 0, 0)


def test_two_datasets_are_compared(schemas: Schemas) -> None:
    (found,) = schemas.diff(EVENTS, OTHER).datasets
    assert (found.urn, found.from_version, found.to_version) == (OTHER, "2.0.0", "1.1.0")
    assert found.changes[0].consumer.value == "breaking"


SCHEMA_VERSIONS = ("1.0.0", "1.1.0", "2.0.0")
CLOUD_VERSIONS = ("S-1", "S-2", "S-3", "S-4", "S-5")


@pytest.mark.parametrize(
    ("version", "words", "known"),
    [
        ("1.0.1", "Its versions: 1.0.0, 1.1.0, 2.0.0. Did you mean '1.0.0'?", SCHEMA_VERSIONS),
        ("S-6", "has no version 'S-6'. Its versions: S-1, S-2", CLOUD_VERSIONS),
        ("S-0", "has no version 'S-0'", CLOUD_VERSIONS),
        ("X-1", "has no version 'X-1'", CLOUD_VERSIONS),
        ("latest", "has no version 'latest'", SCHEMA_VERSIONS),
        ("2023-01-01", "first seen on 2023-06-01", SCHEMA_VERSIONS),
    ],
)
def test_an_unknown_version_is_refused_with_those_of_its_kind(
    schemas: Schemas, version: str, words: str, known: tuple[str, ...]
) -> None:
    with pytest.raises(UnknownVersion) as error:
        schemas.diff(f"user_events@{version}", "user_events")
    assert words in str(error.value)
    assert error.value.known == known


def test_what_a_file_cannot_say_of_a_dataset_is_no_change(
    schemas: Schemas, store: Store, tmp_path: Path
) -> None:
    with store.transaction() as transaction:
        known = transaction.known(OTHER)
        assert known is not None
        field = Field(name="a", type=parse_type("STRUCT<b: INT32>"), tags=("pii",),
                      nested=(NestedField(path="a.b", description="x"),))  # fmt: skip
        hash = transaction.save_schema(Schema(fields=(field,)))
        transaction.save(msgspec.structs.replace(known, schema_hash=hash))
    file = tmp_path / "other.schema"
    file.write_text("a STRUCT<b: INT32>\n")
    assert schemas.diff(file, OTHER).datasets == ()
    assert schemas.diff(OTHER, file).datasets == ()
    file.write_text("a STRUCT<b: INT64>\n")
    (found,) = schemas.diff(OTHER, file).datasets
    assert (found.urn, [change.path for change in found.changes]) == (OTHER, ["a.b"])


def test_data_that_is_called_like_its_dataset_is_no_schema_file(
    schemas: Schemas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "user_events").mkdir()
    (tmp_path / "Other").touch()
    assert len(schemas.diff("user_events@1.0.0", "user_events").datasets) == 1
    assert len(schemas.diff("Other", "user_events").datasets) == 1


def test_a_period_does_not_end_before_it_begins(schemas: Schemas) -> None:
    with pytest.raises(MisuseError, match=r"ends \(2023-01-01\) before it begins \(2024-01-01\)"):
        schemas.evolution(since="2024-01-01", until="2023-01-01")


def test_names_that_hold_an_at_sign_are_names(schemas: Schemas, store: Store) -> None:
    record(store, "lumos://kafka@eu/orders@v2", "a INT32", day("2024-01-01"))
    record(store, "lumos://kafka@eu/orders@v2", "a STRING", day("2024-01-02"))
    assert schemas.history("orders@v2").urn == "lumos://kafka@eu/orders@v2"
    (found,) = schemas.diff("orders@v2@1.0.0", "orders@v2").datasets
    assert found.to_version == "2.0.0"
    with pytest.raises(MisuseError, match="No dataset lumos://kafka@eu/none"):
        schemas.diff("lumos://kafka@eu/none", "orders@v2")


def test_only_existing_datasets_are_in_the_archive(store: Store) -> None:
    record(store, EVENTS, FIRST, day("2023-06-01"))
    record(store, OTHER, "a INT32", day("2023-06-01"))
    with store.transaction() as transaction:
        known = transaction.known(OTHER)
        assert isinstance(known, KnownDataset)
        transaction.save(msgspec.structs.replace(known, state="missing"))
    (live,) = store.schemas.live()
    assert (live.urn, live.format, live.schema_version) == (EVENTS, "parquet", "1.0.0")
    assert str(live.schema).startswith("event_id STRING NOT NULL")
