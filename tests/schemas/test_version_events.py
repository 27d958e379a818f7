"""What a sighting of a dataset means for its versions."""

import pytest

from lumos.model.change import EventType
from lumos.model.schema import parse_schema
from lumos.model.version import CloudVersion, SchemaVersion
from lumos.schemas.version_rules import ObservedDataset, RecordedDataset, decide_event

RECORDED = RecordedDataset(
    schema=parse_schema("id INT64\nname STRING"),
    content="one",
    cloud_version=CloudVersion(311),
    schema_version=SchemaVersion(1, 2, 3),
)


def sighting(text: str, content: str = "two") -> ObservedDataset:
    return ObservedDataset(schema=parse_schema(text), content=content, format="parquet")


@pytest.mark.parametrize(
    ("seen", "type", "version"),
    [
        pytest.param("id INT64\nname STRING", EventType.MODIFIED, "1.2.3", id="new data"),
        pytest.param("id INT64", EventType.SCHEMA_CHANGED, "2.0.0", id="a column gone"),
        pytest.param(
            "id INT64\nname STRING\nage INT64",
            EventType.SCHEMA_CHANGED,
            "1.3.0",
            id="a column more",
        ),
        pytest.param(
            "id INT64 NOT NULL\nname STRING", EventType.SCHEMA_CHANGED, "1.3.0", id="stricter"
        ),
        pytest.param(
            "name STRING\nid INT64", EventType.SCHEMA_CHANGED, "1.2.4", id="another order"
        ),
        pytest.param(
            "id INT64 COMMENT 'x'\nname STRING", EventType.METADATA_CHANGED, "1.2.4", id="words"
        ),
        pytest.param(
            "id INT64\nname UNKNOWN('x')", EventType.SCHEMA_CHANGED, "2.0.0", id="undetermined"
        ),
    ],
)
def test_a_change_steps_both_versions(seen: str, type: EventType, version: str) -> None:
    decision = decide_event(sighting(seen), RECORDED, prefix="S-")
    assert decision is not None
    assert (decision.type, str(decision.schema_version)) == (type, version)
    assert str(decision.cloud_version) == "S-312"


def test_a_first_sighting_starts_both_versions_with_the_configured_prefix() -> None:
    decision = decide_event(sighting("id INT64"), None, prefix="rel-")
    assert decision is not None
    assert decision.type is EventType.CREATED
    assert (str(decision.cloud_version), str(decision.schema_version)) == ("rel-1", "1.0.0")


def test_an_unchanged_dataset_needs_no_record() -> None:
    assert decide_event(sighting("id INT64\nname STRING", "one"), RECORDED, prefix="S-") is None


def test_a_dataset_that_comes_back_is_restored_even_when_nothing_else_changed() -> None:
    gone = RecordedDataset(
        schema=RECORDED.schema,
        content="one",
        cloud_version=RECORDED.cloud_version,
        schema_version=RECORDED.schema_version,
        is_live=False,
    )
    decision = decide_event(sighting("id INT64\nname STRING", "one"), gone, prefix="S-")
    assert decision is not None
    assert decision.type is EventType.RESTORED


def test_after_another_prefix_is_configured_the_count_goes_on() -> None:
    decision = decide_event(sighting("id INT64"), RECORDED, prefix="V-")
    assert decision is not None
    assert str(decision.cloud_version) == "V-312"
