"""Sums over the schema versions of a period."""

from datetime import UTC, datetime, timedelta

import pytest

from lumos.model.change import ChangeEvent, EventType
from lumos.model.schema import parse_schema
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import classify
from lumos.schemas.reports import summarise_evolution

START = datetime(2024, 1, 1, tzinfo=UTC)


def event(before: str, after: str) -> ChangeEvent:
    return ChangeEvent(
        event_id="e",
        urn="lumos://file/orders",
        type=EventType.SCHEMA_CHANGED,
        at=START,
        cause="scan",
        cloud_version="S-2",
        schema_version="1.1.0",
        findings=classify(compare(parse_schema(before), parse_schema(after))),
    )


CREATED = event("a INT32", "a INT32")
GREW = event("a INT32", "a INT64\nb DATE\nc DATE")
BROKE = event("a INT64\nb DATE\nc DATE", "a STRING\nc DATE")


def test_versions_changes_and_breaking_ones_are_counted() -> None:
    found = summarise_evolution([CREATED, GREW, BROKE], start=START, end=START + timedelta(days=10))
    assert (found.total_versions, found.breaking_versions) == (3, 1)
    assert (found.total_changes, found.breaking_changes) == (5, 2)
    assert found.changes_by_kind == {"added": 2, "removed": 1, "type_changed": 2}
    assert found.change_frequency == 0.5


@pytest.mark.parametrize("length", [timedelta(0), timedelta(hours=1)])
def test_a_period_counts_as_a_day_at_least(length: timedelta) -> None:
    assert summarise_evolution([GREW], start=START, end=START + length).change_frequency == 3.0


def test_nothing_is_no_evolution() -> None:
    found = summarise_evolution([], start=START, end=START)
    assert (found.total_versions, found.total_changes, found.change_frequency) == (0, 0, 0.0)
