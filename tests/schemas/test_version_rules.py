"""How versions move, and how the two kinds of them belong together."""

from datetime import UTC, datetime

import pytest

from lumos.model.change import ChangeEvent, EventType, Finding
from lumos.model.schema import parse_schema
from lumos.model.version import ChangeType, CloudVersion, Level, SchemaVersion
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import classify
from lumos.schemas.version_rules import (
    DEFAULT_LEVEL,
    EVENT_BY_CHANGE_TYPE,
    VersionStep,
    change_type_of,
    level_of,
    next_schema_version,
    versions_by_cloud_version,
)


def findings(before: str, after: str) -> tuple[Finding, ...]:
    return classify(compare(parse_schema(before), parse_schema(after)))


def step(cloud: str, version: str) -> VersionStep:
    return VersionStep(CloudVersion.parse(cloud), version)


@pytest.mark.parametrize(
    ("before", "after", "level", "version"),
    [
        pytest.param("a INT64", "a INT64", "none", "1.2.3", id="nothing"),
        pytest.param("a INT64", "a INT64 COMMENT 'x'", "patch", "1.2.4", id="informational"),
        pytest.param("a INT64", "a INT64\nb INT64", "minor", "1.3.0", id="compatible"),
        pytest.param("a INT64\nb INT64", "a INT64", "major", "2.0.0", id="breaking"),
        pytest.param("a INT64", "a UNKNOWN('x')", "major", "2.0.0", id="undetermined"),
        pytest.param(
            "a INT64\nb INT64", "a INT64 COMMENT 'x'\nc INT64", "major", "2.0.0", id="the worst"
        ),
    ],
)
def test_the_worst_verdict_moves_the_schema_version(
    before: str, after: str, level: Level, version: str
) -> None:
    found = findings(before, after)
    assert level_of(found) == level
    assert str(next_schema_version(SchemaVersion(1, 2, 3), found)) == version


def test_the_example_of_the_founding_documents() -> None:
    start = "user_id STRING"
    one = next_schema_version(SchemaVersion(), findings(start, "user_id STRING\nsession_id STRING"))
    two = next_schema_version(
        one, findings("user_id STRING\nsession_id STRING", "user_id INT64\nsession_id STRING")
    )
    assert (str(one), str(two)) == ("1.1.0", "2.0.0")


@pytest.mark.parametrize(
    ("type", "found", "expected"),
    [
        (EventType.CREATED, (), ChangeType.SCHEMA_CHANGE),
        (EventType.SCHEMA_CHANGED, (), ChangeType.SCHEMA_CHANGE),
        (EventType.MODIFIED, (), ChangeType.DATA_UPDATE),
        (EventType.DELETED, (), ChangeType.DATA_UPDATE),
        (EventType.RESTORED, (), ChangeType.DATA_UPDATE),
        (EventType.RESTORED, findings("a INT64", "b INT64"), ChangeType.SCHEMA_CHANGE),
        (EventType.METADATA_CHANGED, (), ChangeType.METADATA_UPDATE),
        (EventType.RENAMED, (), ChangeType.METADATA_UPDATE),
        (EventType.MERGED, (), ChangeType.METADATA_UPDATE),
        (EventType.SPLIT, (), ChangeType.METADATA_UPDATE),
    ],
)
def test_every_event_is_about_schema_data_or_metadata(
    type: EventType, found: tuple[Finding, ...], expected: ChangeType
) -> None:
    event = ChangeEvent(
        event_id="e", urn="lumos://file/a", type=type, at=datetime(2024, 1, 1, tzinfo=UTC),
        cause="scan", cloud_version="S-1", schema_version="1.0.0", findings=found,
    )  # fmt: skip
    assert change_type_of(event) is expected


@pytest.mark.parametrize("type", ChangeType)
def test_what_a_person_declares_is_recorded_as_an_event_of_that_change_type(
    type: ChangeType,
) -> None:
    event = ChangeEvent(
        event_id="e", urn="lumos://file/a", type=EVENT_BY_CHANGE_TYPE[type],
        at=datetime(2024, 1, 1, tzinfo=UTC), cause="user", cloud_version="S-1",
        schema_version="1.0.0",
    )  # fmt: skip
    assert change_type_of(event) is type
    assert DEFAULT_LEVEL[type] in ("minor", "patch")


def test_cloud_versions_between_two_schema_versions_belong_to_the_earlier_one() -> None:
    landmarks = [step("S-311", "1.0.0"), step("S-314", "1.1.0"), step("S-315", "1.1.0")]
    assert versions_by_cloud_version(landmarks) == {
        "S-311": "1.0.0",
        "S-312": "1.0.0",
        "S-313": "1.0.0",
        "S-314": "1.1.0",
        "S-315": "1.1.0",
    }


def test_across_another_prefix_only_steps_on_record_are_reported() -> None:
    landmarks = [step("S-1", "1.0.0"), step("V-5", "2.0.0")]
    recorded = [step("S-2", "1.0.0"), step("V-4", "1.0.0")]
    assert versions_by_cloud_version(landmarks, recorded) == {
        "S-1": "1.0.0",
        "S-2": "1.0.0",
        "V-4": "1.0.0",
        "V-5": "2.0.0",
    }


def test_a_dataset_at_its_first_version_has_one_entry_and_one_without_any_none() -> None:
    first = step("S-1", "1.0.0")
    assert versions_by_cloud_version([first]) == {"S-1": "1.0.0"}
    assert versions_by_cloud_version([first, first]) == {"S-1": "1.0.0"}
    assert versions_by_cloud_version([]) == {}
