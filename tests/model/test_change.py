"""Changes, findings and events: their JSON is what the store and the API keep."""

from datetime import UTC, datetime
from typing import get_args

import msgspec
import pytest

from lumos.model.change import (
    AnySchemaChange,
    ChangeEvent,
    DefaultChanged,
    DescriptionChanged,
    EventType,
    FieldAdded,
    FieldRemoved,
    Finding,
    KeyChanged,
    NullabilityChanged,
    PartitioningChanged,
    Reordered,
    TagsChanged,
    TypeChanged,
    Verdict,
)
from lumos.model.json_codec import from_json, from_plain, to_json, to_plain
from lumos.model.schema import Field
from lumos.model.types import INT32, INT64, Array, Decimal

CHANGES: tuple[AnySchemaChange, ...] = (
    FieldAdded(path="items[].price", after=Field(name="price", type=Decimal(9, 2)), position=2),
    FieldRemoved(path="discount", before=Field(name="discount", type=INT32, description="gone")),
    TypeChanged(path="amount", before=INT32, after=Array(INT64)),
    NullabilityChanged(path="id", before=True, after=False),
    DefaultChanged(path="id", before=None, after="0"),
    DescriptionChanged(path="id", before="old", after=None),
    TagsChanged(path="email", before=(), after=("pii",)),
    KeyChanged(path="id", before=False, after=True),
    PartitioningChanged(path="day", before=True, after=False),
    Reordered(path="", before=("a", "b"), after=("b", "a")),
)
FINDING = Finding(
    change=CHANGES[1],
    consumer=Verdict.BREAKING,
    storage=Verdict.COMPATIBLE,
    rule="field-removed",
    flags=("positional",),
    notes=("safe in Delta, breaks Iceberg v2",),
)
EVENT = ChangeEvent(
    event_id="e1",
    urn="lumos://s3/lake/orders",
    type=EventType.SCHEMA_CHANGED,
    at=datetime(2024, 5, 17, 8, 30, tzinfo=UTC),
    cause="scan",
    cloud_version="S-312",
    schema_version="3.0.0",
    source_path="s3://lake/orders/part-0.parquet",
    old_schema="abc",
    new_schema="def",
    findings=(FINDING,),
    summary="1 change, 1 breaking",
)


def test_every_kind_of_change_is_tried_here() -> None:
    assert {type(change) for change in CHANGES} == set(get_args(AnySchemaChange))


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: type(change).__name__)
def test_a_change_comes_back_from_json(change: AnySchemaChange) -> None:
    back: object = from_json(to_json(change), AnySchemaChange)  # type: ignore[arg-type]
    assert back == change
    assert type(back) is type(change)
    assert from_plain(to_plain(change), AnySchemaChange) == change  # type: ignore[arg-type]


def test_a_change_names_its_kind_and_its_types_in_text() -> None:
    assert to_plain(CHANGES[2]) == {
        "kind": "type_changed",
        "path": "amount",
        "before": "INT32",
        "after": "ARRAY<INT64>",
    }


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: type(change).__name__)
@pytest.mark.parametrize("verdict", Verdict)
def test_a_finding_comes_back_from_json(change: AnySchemaChange, verdict: Verdict) -> None:
    finding = Finding(change=change, consumer=verdict, storage=verdict, rule="r")
    assert from_json(to_json(finding), Finding) == finding


@pytest.mark.parametrize(
    ("stored", "change"),
    [
        (
            b'{"kind":"removed","path":"a","before":{"name":"a","type":"INT64"}}',
            FieldRemoved(path="a", before=Field(name="a", type=INT64)),
        ),
        (
            b'{"kind":"type_changed","path":"a","before":"INT32","after":"INT64","partition":true}',
            TypeChanged(path="a", before=INT32, after=INT64, partition=True),
        ),
        (
            b'{"kind":"nullability","path":"a","before":true,"after":false}',
            NullabilityChanged(path="a", before=True, after=False),
        ),
    ],
)
def test_a_change_of_an_earlier_version_is_still_read(
    stored: bytes, change: AnySchemaChange
) -> None:
    finding = b'{"change":%b,"consumer":"breaking","storage":"breaking","rule":"r"}' % stored
    assert from_json(finding, Finding).change == change


@pytest.mark.parametrize("kind", EventType)
def test_an_event_comes_back_from_json(kind: EventType) -> None:
    event = msgspec.structs.replace(EVENT, type=kind)
    assert from_json(to_json(event), ChangeEvent) == event
    assert from_plain(to_plain(event), ChangeEvent) == event


def test_an_event_leaves_out_what_it_does_not_know() -> None:
    event = ChangeEvent(
        event_id="e2", urn="lumos://s3/a", type=EventType.CREATED, at=EVENT.at, cause="user",
        cloud_version="S-1", schema_version="1.0.0",
    )  # fmt: skip
    assert "findings" not in to_plain(event)
    assert to_plain(event)["at"] == "2024-05-17T08:30:00Z"


@pytest.mark.parametrize(
    ("verdict", "breaking"),
    [
        (Verdict.BREAKING, True),
        (Verdict.UNDETERMINED, False),
        (Verdict.COMPATIBLE, False),
        (Verdict.INFORMATIONAL, False),
    ],
)
def test_an_event_is_breaking_when_a_consumer_may_fail(verdict: Verdict, breaking: bool) -> None:
    finding = msgspec.structs.replace(FINDING, consumer=verdict, storage=Verdict.BREAKING)
    assert msgspec.structs.replace(EVENT, findings=(finding,)).breaking is breaking


def test_an_unknown_kind_or_cause_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="kind"):
        from_plain({"kind": "vanished", "path": "a"}, AnySchemaChange)  # type: ignore[arg-type]
    with pytest.raises(msgspec.ValidationError, match="cause"):
        from_plain({**to_plain(EVENT), "cause": "magic"}, ChangeEvent)
