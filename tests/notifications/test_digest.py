"""Digests: the changes since the last one, for each owner whom they concern."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lumos import Lumos
from lumos.model.change import (
    Affected,
    BlastRadius,
    ChangeEvent,
    EventType,
    Finding,
    TypeChanged,
    Verdict,
)
from lumos.model.types import parse_type
from notifications.test_reminders import MONDAY, SetClock, add, lumos_with, posted, remind

CONFIG = 'notifications:\n  weekly_digest: {schedule: "0 9 * * 1"}\n'

pytestmark = pytest.mark.usefixtures("workplace")


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


def breaking(name: str, **facts: Any) -> ChangeEvent:
    change = TypeChanged(path="id", before=parse_type("STRING"), after=parse_type("INT64"))
    verdict = Verdict.BREAKING
    finding = Finding(change=change, consumer=verdict, storage=verdict, rule="type")
    summary = "1 type changed: id STRING -> INT64"
    return event(name, EventType.SCHEMA_CHANGED, findings=(finding,), summary=summary, **facts)


def event(name: str, type: EventType, **facts: Any) -> ChangeEvent:
    at = facts.pop("at", MONDAY - timedelta(days=1))
    return ChangeEvent(
        event_id=f"{name}-{type}-{at.timestamp()}", urn=f"lumos://file/lake/{name}", type=type,
        at=at, cause="scan", cloud_version="S-2", schema_version="2.0.0", **facts,
    )  # fmt: skip


def record(lumos: Lumos, *events: ChangeEvent) -> None:
    with lumos.create_store().transaction() as transaction:
        for each in events:
            transaction.save_event(each)


def affects(name: str, *owners: str) -> BlastRadius:
    one = Affected(urn=f"lumos://file/lake/{name}", verdict=Verdict.BREAKING, owners=owners)
    return BlastRadius(breaking=1, datasets=(one,))


def recipients(messages: Sequence[tuple[str | None, str, str]]) -> list[str | None]:
    return [recipient for recipient, _, _ in messages]


def test_owners_are_notified_of_their_changes_and_of_changes_that_break_them(
    clock: SetClock,
) -> None:
    lumos = lumos_with(CONFIG, clock)
    add(lumos, "orders", "ann")
    add(lumos, "sessions", "bob")
    record(
        lumos,
        event("orders", EventType.CREATED),
        event("orders", EventType.METADATA_CHANGED),
        event("orders", EventType.MODIFIED),
        breaking("orders", affected=affects("sessions", "carl")),
        event("sessions", EventType.RENAMED),
    )
    remind(lumos)
    ann, bob = posted(lumos)
    assert (ann[0], ann[1]) == ("ann", "3 changes, 1 breaking")
    assert ann[2] == (
        "Hi ann,\n\n"
        "3 changes since 2024-01-08 09:00:00 UTC.\n\n"
        "Breaking changes:\n"
        "- orders: 1 type changed: id STRING -> INT64; breaks sessions (carl)\n\n"
        "Other changes:\n"
        "- 1 new dataset: orders\n"
        "- 1 annotation change: orders\n\n"
        "Catalog: http://127.0.0.1:8765"
    )
    # The owner of today, not the one at the time of the change.
    assert (bob[0], bob[1]) == ("bob", "2 changes, 1 breaking")


def test_a_digest_begins_where_the_last_one_ended(clock: SetClock) -> None:
    lumos = lumos_with(CONFIG, clock)
    add(lumos, "orders", "ann")
    record(lumos, breaking("orders"))
    # Recorded, but with a time before the first digest: the log of a table may report it late.
    assert len(remind(lumos).messages) == 1
    record(lumos, breaking("orders", at=MONDAY - timedelta(days=3)))
    assert remind(lumos).repeated
    clock.move(days=7)
    assert [each.count for each in remind(lumos).messages] == [1]
    clock.move(days=7)
    assert remind(lumos).messages == ()
    assert len(posted(lumos)) == 2


def test_the_first_digest_covers_one_period(clock: SetClock) -> None:
    lumos = lumos_with(CONFIG, clock)
    add(lumos, "orders", "ann")
    record(
        lumos,
        breaking("orders", at=MONDAY - timedelta(days=8)),
        breaking("orders", at=MONDAY - timedelta(days=6)),
    )
    assert [each.count for each in remind(lumos).messages] == [1]


def test_nothing_is_sent_without_changes_to_mention(clock: SetClock) -> None:
    lumos = lumos_with(CONFIG, clock)
    add(lumos, "orders", "ann")
    by_reminder = {"reporter": "reminder:missing_docs"}
    record(
        lumos,
        event("orders", EventType.MODIFIED),
        event("orders", EventType.METADATA_CHANGED, metadata=by_reminder),
    )
    report = remind(lumos)
    assert (report.messages, report.repeated) == ((), False)
    assert posted(lumos) == []


def test_changes_that_concern_nobody_are_summed_up(clock: SetClock) -> None:
    lumos = lumos_with(CONFIG, clock)
    for number in range(30):
        add(lumos, f"t{number:02}")
    record(lumos, *(event(f"t{number:02}", EventType.CREATED) for number in range(30)))
    record(lumos, *(breaking(f"t{number:02}") for number in range(30)))
    remind(lumos)
    ((recipient, title, body),) = posted(lumos)
    assert recipient is None
    assert title == "60 changes, 30 breaking, in datasets without an owner"
    assert "- and 10 more\n" in body
    assert "- 30 new datasets: t00, t01, t02, t03, t04 and 25 more" in body


def test_named_recipients_are_notified_of_everything_with_a_template(clock: SetClock) -> None:
    words = "title: '{breaking_count} of {change_count}', template: 'Since {since}: {breaking}'"
    config = (
        f"notifications:\n  news: {{kind: digest, schedule: daily, recipients: [lead], {words}}}\n"
    )
    lumos = lumos_with(config, clock)
    add(lumos, "orders", "ann")
    record(lumos, breaking("orders", at=datetime(2024, 1, 15, 1, tzinfo=UTC)))
    remind(lumos)
    ((recipient, title, body),) = posted(lumos)
    assert (recipient, title) == ("lead", "1 of 1 change")
    assert body.startswith("Since 2024-01-14 00:00:00 UTC: - orders: 1 type changed")


def test_flags_are_not_mentioned_and_digests_do_not_flag(clock: SetClock) -> None:
    lumos = lumos_with(CONFIG, clock)
    add(lumos, "orders", "ann")
    report = remind(lumos)
    assert (report.kind, report.flagged, report.messages) == ("digest", (), ())
    assert lumos.annotations.properties.list("orders").annotations == ()
