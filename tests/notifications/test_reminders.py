"""Reminders: one message for each owner and due time, and a flag that documentation removes."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lumos import Lumos
from lumos.errors import LumosError, MisuseError, UnknownName
from lumos.model.dataset import Documentation, Owner, Ownership
from lumos.notifications.reminders import ReminderReport, catalog_url
from lumos.store import KnownDataset
from webhook import Webhook, webhook

# A Monday, an hour after the reminder is due.
MONDAY = datetime(2024, 1, 15, 10, 0, tzinfo=UTC)
NUDGE = """\
notifications:
  missing_docs_reminder:
    schedule: "0 9 * * 1"  # Monday 9am
    recipients:
      - dataset_owner
    template: |
      Hi {owner_name},
      
      Your dataset "{dataset_name}" is missing documentation:
      - [ ] Description
      - [ ] Business context
      
      Add documentation: {catalog_url}
      
      Datasets without documentation will be flagged for deprecation
      after 30 days.
"""  # noqa: W293

pytestmark = pytest.mark.usefixtures("workplace")


class SetClock:
    def __init__(self) -> None:
        self.now = MONDAY

    def __call__(self) -> datetime:
        return self.now

    def move(self, **passed: float) -> None:
        self.now += timedelta(**passed)


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def hook() -> Iterator[Webhook]:
    with webhook() as opened:
        yield opened


def lumos_with(
    config: str, clock: SetClock, *, channels: Mapping[str, str] | None = None, more: str = ""
) -> Lumos:
    """Lumos with the reminders of a configuration, and by default one channel that is down."""
    addresses = {"chat": "json://127.0.0.1:1"} if channels is None else channels
    text = config.rstrip() + "\n  channels:\n"
    text += "".join(f"    {name}: '{address}'\n" for name, address in addresses.items())
    Path("lumos.yaml").write_text(f"{text}{more}")
    lumos = Lumos()
    lumos._reminders._clock = clock
    return lumos


def add(lumos: Lumos, name: str, *owners: str, **docs: str) -> str:
    """Record a dataset as a scan would."""
    urn = f"lumos://file/lake/{name}"
    with lumos.create_store().transaction() as transaction:
        transaction.save(
            KnownDataset(
                urn=urn, name=name, platform="file", format="parquet", source="file:/lake",
                state="live", cloud_version="S-1", schema_version="1.0.0", schema_hash=None,
                fingerprint="f", content="c", created_at=MONDAY, updated_at=MONDAY,
            )
        )  # fmt: skip
        ownership = Ownership(owners=tuple(Owner(name=each) for each in owners))
        transaction.save_aspect(urn, "ownership", ownership, writer="test", at=MONDAY)
        if docs:
            text = Documentation(**docs)
            transaction.save_aspect(urn, "documentation", text, writer="test", at=MONDAY)
    return urn


def posted(lumos: Lumos) -> list[tuple[str | None, str, str]]:
    """The recipients, titles and bodies in the outbox, oldest first."""
    outbox = lumos.create_store().notification_outbox
    queued = outbox.list(states=("pending", "sent", "dead"), limit=1_000)
    messages = [each.notification for each in reversed(queued)]
    return [(each.recipient, each.title, each.body) for each in messages]


def remind(lumos: Lumos, *, dry_run: bool = False) -> ReminderReport:
    (report,) = lumos.notifications.remind(dry_run=dry_run).reminders
    return report


def tags(lumos: Lumos, name: str) -> list[str]:
    return [each.name for each in lumos.annotations.tags.list(name).annotations]


def properties(lumos: Lumos, name: str) -> dict[str, str]:
    return {
        each.name: each.value or "" for each in lumos.annotations.properties.list(name).annotations
    }


def test_one_message_describes_all_datasets_of_an_owner(
    clock: SetClock,
) -> None:
    lumos = lumos_with(NUDGE, clock)
    add(lumos, "orders", "ann")
    add(lumos, "tickets", "ann", description="Every ticket")
    add(lumos, "visits", "ann", description="Every visit", business_context="Marketing")
    report = remind(lumos)
    assert report.due_at == datetime(2024, 1, 15, 9, tzinfo=UTC)
    assert [(each.recipient, each.count) for each in report.messages] == [("ann", 2)]
    ((recipient, title, body),) = posted(lumos)
    assert (recipient, title) == ("ann", "Missing documentation in 2 datasets")
    assert body == (
        "Hi ann,\n\n"
        'Your dataset "orders" is missing documentation:\n'
        "- [ ] Description\n"
        "- [ ] Business context\n\n"
        'Your dataset "tickets" is missing documentation:\n'
        "- [x] Description\n"
        "- [ ] Business context\n\n"
        "Add documentation: http://127.0.0.1:8765\n\n"
        "Datasets without documentation will be flagged for deprecation\n"
        "after 30 days."
    )


def test_the_default_text_names_what_is_missing(clock: SetClock) -> None:
    more = "documentation: {required_fields: [description, owner, business_domain]}\n"
    lumos = lumos_with("notifications:\n  nudge: {schedule: daily}\n", clock, more=more)
    add(lumos, "orders", "ann")
    ((_, _, body),) = [each for each in posted_after_run(lumos) if each[0] == "ann"]
    assert "orders\n- description\n- business domain\n\n" in body
    assert body.endswith("are tagged deprecation-candidate after 30 days.")


def posted_after_run(lumos: Lumos) -> list[tuple[str | None, str, str]]:
    remind(lumos)
    return posted(lumos)


def test_a_message_describes_twenty_datasets_and_counts_the_others(clock: SetClock) -> None:
    lumos = lumos_with(NUDGE, clock)
    for number in range(55):
        add(lumos, f"t{number:02}", "ann")
    ((_, title, body),) = posted_after_run(lumos)
    assert title == "Missing documentation in 55 datasets"
    assert body.count("Your dataset") == 20
    assert "\n\nand 35 more datasets\n\nAdd documentation" in body


def test_datasets_without_an_owner_are_summed_up_in_one_message(clock: SetClock) -> None:
    lumos = lumos_with(NUDGE, clock)
    for number in range(25):
        add(lumos, f"t{number:02}")
    ((recipient, title, body),) = posted_after_run(lumos)
    assert (recipient, title) == (None, "Missing documentation in 25 datasets without an owner")
    assert body.splitlines()[0] == "- t00: description, business context"
    assert "- and 5 more" in body


def test_each_due_time_is_handled_once_however_often_it_is_run(clock: SetClock) -> None:
    lumos = lumos_with(NUDGE, clock)
    add(lumos, "orders", "ann")
    assert not remind(lumos).repeated
    clock.move(days=3)
    assert remind(lumos).repeated
    assert len(posted(lumos)) == 1
    clock.move(days=4)
    assert not remind(lumos).repeated
    assert len(posted(lumos)) == 2


def test_the_job_run_twice_writes_messages_once(clock: SetClock) -> None:
    lumos = lumos_with(NUDGE, clock)
    add(lumos, "orders", "ann")
    for _ in range(2):
        lumos.jobs.submit("remind", {"name": "missing_docs_reminder"})
    report = lumos.jobs.work(once=True)
    assert (report.succeeded, report.failed) == (2, 0)
    assert len(posted(lumos)) == 1


def test_quiet_hours_across_midnight_delay_messages(clock: SetClock) -> None:
    quiet = '    quiet_hours: "22:00-07:00"\n    timezone: Europe/Oslo\n'
    lumos = lumos_with(f"{NUDGE}{quiet}", clock)
    add(lumos, "orders", "ann")
    # 23:30 in Oslo.
    clock.now = datetime(2099, 1, 5, 22, 30, tzinfo=UTC)
    report = remind(lumos)
    assert report.send_at == datetime(2099, 1, 6, 6, 0, tzinfo=UTC)
    (queued,) = lumos.create_store().notification_outbox.list(states=("pending",), limit=9)
    assert (queued.due_at, queued.tries) == (report.send_at, 0)
    # 02:00 in Oslo, a week later.
    clock.now = datetime(2099, 1, 13, 1, 0, tzinfo=UTC)
    assert remind(lumos).send_at == datetime(2099, 1, 13, 6, 0, tzinfo=UTC)


def test_who_opted_out_gets_no_message(clock: SetClock) -> None:
    lumos = lumos_with(f"{NUDGE}    opt_out: [ANN]\n", clock)
    add(lumos, "orders", "ann", "bob")
    report = remind(lumos)
    assert report.opted_out == ("ann",)
    assert [each[0] for each in posted(lumos)] == ["bob"]


def test_named_recipients_are_reminded_of_all_datasets(clock: SetClock) -> None:
    config = NUDGE.replace("- dataset_owner", "- steward")
    lumos = lumos_with(config, clock)
    add(lumos, "orders", "ann")
    add(lumos, "tickets")
    assert [(each.recipient, each.count) for each in remind(lumos).messages] == [("steward", 2)]


def test_exempt_datasets_are_left_alone(clock: SetClock) -> None:
    more = "documentation:\n  exceptions:\n    - {pattern: 'tmp*', reason: temporary}\n"
    lumos = lumos_with(NUDGE, clock, more=more)
    add(lumos, "tmp_orders", "ann")
    assert remind(lumos).messages == ()
    assert posted(lumos) == []


def test_a_dataset_is_flagged_after_thirty_days_until_it_is_documented(clock: SetClock) -> None:
    lumos = lumos_with(NUDGE, clock)
    add(lumos, "orders", "ann")
    add(lumos, "tickets", "ann")
    assert remind(lumos).flagged == ()
    assert properties(lumos, "orders") == {"undocumented-since": "2024-01-15"}
    clock.move(days=29)
    assert remind(lumos).flagged == ()
    clock.move(days=1)
    assert remind(lumos).flagged == ("orders", "tickets")
    assert tags(lumos, "orders") == ["deprecation-candidate"]
    (listed,) = lumos.annotations.tags.list("orders").annotations
    assert listed.by == "reminder:missing_docs_reminder"
    # Half of the documentation does not remove the flag, the rest does at once.
    lumos.annotations.docs.set("orders", "Every order")
    assert tags(lumos, "orders") == ["deprecation-candidate"]
    lumos.annotations.docs.set("orders", context="Sales")
    assert tags(lumos, "orders") == []
    assert not properties(lumos, "orders")
    # Documentation that a scan finds removes it in the next run.
    add(lumos, "tickets", "ann", description="Every ticket", business_context="Support")
    assert tags(lumos, "tickets") == ["deprecation-candidate"]
    assert remind(lumos).unflagged == ("tickets",)
    assert tags(lumos, "tickets") == []


def test_the_time_begins_anew_after_documentation_was_removed(clock: SetClock) -> None:
    lumos = lumos_with(NUDGE, clock)
    add(lumos, "orders", "ann")
    remind(lumos)
    lumos.annotations.docs.set("orders", "Every order", context="Sales")
    lumos.annotations.docs.remove("orders")
    clock.move(days=31)
    assert remind(lumos).flagged == ()


def test_the_tag_of_a_reminder_is_no_documentation(clock: SetClock) -> None:
    more = "documentation: {required_fields: [tags]}\n"
    lumos = lumos_with(NUDGE, clock, more=more)
    add(lumos, "orders", "ann")
    remind(lumos)
    clock.move(days=30)
    assert remind(lumos).flagged == ("orders",)
    clock.move(days=7)
    assert remind(lumos).unflagged == ()
    lumos.annotations.tags.set("orders", "gold")
    assert tags(lumos, "orders") == ["gold"]


def test_zero_days_never_flag(clock: SetClock) -> None:
    lumos = lumos_with(f"{NUDGE}    deprecate_after_days: 0\n", clock)
    add(lumos, "orders", "ann")
    remind(lumos)
    clock.move(days=400)
    assert remind(lumos).flagged == ()


def test_flags_of_a_removed_reminder_disappear(clock: SetClock) -> None:
    lumos = lumos_with(NUDGE, clock)
    add(lumos, "orders", "ann")
    remind(lumos)
    clock.move(days=30)
    remind(lumos)
    assert tags(lumos, "orders") == ["deprecation-candidate"]
    Path("lumos.yaml").write_text("{}")
    assert Lumos().notifications.remind().reminders == ()
    assert tags(lumos, "orders") == []


def test_a_dry_run_shows_messages_and_writes_nothing(clock: SetClock) -> None:
    lumos = lumos_with(NUDGE, clock)
    add(lumos, "orders", "ann")
    report = remind(lumos, dry_run=True)
    assert report.messages[0].body is not None
    assert report.messages[0].body.startswith("Hi ann,")
    assert posted(lumos) == []
    assert not properties(lumos, "orders")
    assert not remind(lumos).repeated


def test_a_reminder_without_channels_is_valid_but_not_sent(clock: SetClock) -> None:
    Path("lumos.yaml").write_text(NUDGE)
    lumos = Lumos()
    lumos._reminders._clock = clock
    add(lumos, "orders", "ann")
    (note,) = [each for each in lumos.config_check().notes if each.key == "notifications"]
    assert "there is no channel" in note.text
    assert remind(lumos, dry_run=True).messages[0].channels == ()
    with pytest.raises(MisuseError, match="There is no channel for reminders"):
        lumos.notifications.remind()


def test_an_unknown_reminder_is_named_with_the_nearest(clock: SetClock) -> None:
    lumos = lumos_with(NUDGE, clock)
    with pytest.raises(UnknownName, match="Did you mean 'missing_docs_reminder'"):
        lumos.notifications.remind("missing_doc_reminder")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('schedule: "0 9 * *"', "is not a cron expression"),
        ("schedule: daily, timezone: Europe/Olso", "Did you mean 'Europe/Oslo'"),
        ("schedule: daily, quiet_hours: evening", "are not quiet hours"),
        ("schedule: daily, quiet_hours: '22:00-22:00'", "have no end"),
        ("schedule: daily, channels: [chta]", "Did you mean 'chat'"),
        ("schedule: daily, template: 'Hi {owner}'", "Did you mean 'owner_name'"),
        ("schedule: daily, kind: digest, template: '{missing}'", "not a known placeholder"),
    ],
)
def test_mistakes_in_a_reminder_are_found_early(line: str, problem: str, clock: SetClock) -> None:
    with pytest.raises(LumosError, match=problem):
        lumos_with(f"notifications:\n  nudge: {{{line}}}\n", clock)


@pytest.mark.parametrize(
    ("config", "url"),
    [
        ("{}", "http://127.0.0.1:8765"),
        ("server: {host: '::1', port: 9000}", "http://[::1]:9000"),
        ("platform: datahub\ndatahub: {gms_server: https://gms.example.com}", "https://gms.example.com"),
        ("platform: openmetadata:https://om.example.com", "https://om.example.com"),
        ("platform: datahub\nnotifications: {catalog_url: https://data.example.com}", "https://data.example.com"),
    ],
)  # fmt: skip
def test_links_lead_to_the_catalog_or_else_to_the_server(config: str, url: str) -> None:
    Path("lumos.yaml").write_text(config)
    assert catalog_url(Lumos().settings) == url


def test_a_mailbox_for_each_owner(clock: SetClock, hook: Webhook) -> None:
    address = hook.address("hush-{owner_email}-{owner_name}")
    lumos = lumos_with(NUDGE, clock, channels={"mail": address})
    add(lumos, "orders", "ann")
    add(lumos, "tickets", "bob")
    add(lumos, "visits", "eve@example.com")
    add(lumos, "clicks")
    lumos.annotations.owners.add("ann", email="ann@example.com", display_name="Ann Lee")
    report = lumos.notifications.remind()
    (reminder,) = report.reminders
    assert reminder.unreached == ("bob", "datasets without an owner")
    assert (report.sent, report.failed) == (2, 0)
    assert sorted(hook.paths) == [
        "/hush-ann@example.com-ann",
        "/hush-eve@example.com-eve@example.com",
    ]
    assert hook.received[0]["message"].startswith("Hi Ann Lee,")


def test_a_mailbox_that_fails_does_not_hold_up_others(clock: SetClock, hook: Webhook) -> None:
    lumos = lumos_with(NUDGE, clock, channels={"mail": hook.address("{owner_name}")})
    for name in ("ann", "bob", "cid"):
        add(lumos, f"of_{name}", name)
    hook.refuses = lambda path: path == "/bob"
    report = lumos.notifications.remind()
    assert (report.sent, report.failed) == (2, 1)
    assert sorted(hook.paths) == ["/ann", "/cid"]


def test_a_channel_of_owners_is_not_for_changes_and_is_tested_with_one(
    clock: SetClock, hook: Webhook
) -> None:
    channels = {"mail": hook.address("{owner_name}")}
    lumos = lumos_with(NUDGE, clock, channels=channels)
    with pytest.raises(MisuseError, match="lumos notify test mail --owner NAME"):
        lumos.notifications.test("mail")
    assert lumos.notifications.test("mail", owner="ann").sent == 1
    assert hook.paths == ["/ann"]
    with pytest.raises(LumosError, match="depends on an owner"):
        lumos_with(f"{NUDGE}  changes: [{{channel: mail}}]\n", clock, channels=channels)


def test_the_command_sends_to_a_real_receiver_once(clock: SetClock, hook: Webhook) -> None:
    lumos = lumos_with(NUDGE, clock, channels={"chat": hook.address("hush")})
    add(lumos, "orders", "ann")
    add(lumos, "tickets", "bob")
    results = [
        subprocess.run(
            [sys.executable, "-m", "lumos", "notify", "remind", "--verbose"],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "LUMOS_DEBUG": "1"},
        )
        for _ in range(2)
    ]
    assert [each.returncode for each in results] == [0, 0]
    assert "2 messages sent, 0 failed." in results[0].stdout
    assert "handled before" in results[1].stdout
    assert "0 messages sent, 0 failed." in results[1].stdout
    assert sorted(each["message"][:7] for each in hook.received) == ["Hi ann,", "Hi bob,"]
    assert "hush" not in "".join(each.stdout + each.stderr for each in results)


def test_a_worker_runs_reminders_on_the_schedules_of_the_configuration(clock: SetClock) -> None:
    lumos = lumos_with(NUDGE, clock)
    lumos.jobs.work(once=True)
    (schedule,) = lumos.schedules.list().schedules
    assert (schedule.name, schedule.cron, schedule.kind, schedule.timezone) == (
        "reminder:missing_docs_reminder", "0 9 * * 1", "remind", "UTC",
    )  # fmt: skip
    with pytest.raises(MisuseError, match="there, or pause it with"):
        lumos.schedules.remove(schedule.name)
    lumos.schedules.pause(schedule.name)
    changed = NUDGE.replace("0 9 * * 1", "30 8 * * 2")
    later = lumos_with(changed, clock)
    later.jobs.work(once=True)
    (schedule,) = later.schedules.list().schedules
    assert (schedule.cron, schedule.next_due) == ("30 8 * * 2", None)
    later.schedules.resume(schedule.name)
    Path("lumos.yaml").write_text("{}")
    assert Lumos().jobs.work(once=True).succeeded == 0
    assert Lumos().schedules.list().schedules == ()


def test_a_due_schedule_of_a_reminder_becomes_a_job_that_sends(
    clock: SetClock, hook: Webhook
) -> None:
    lumos = lumos_with(NUDGE, clock, channels={"chat": hook.address()})
    add(lumos, "orders", "ann")
    lumos.jobs.work(once=True)
    registry = lumos.create_store().jobs
    record = registry.schedules.schedule("reminder:missing_docs_reminder")
    assert record is not None
    registry.schedules.pause(record.name, paused=False, next_due=registry.now())
    report = lumos.jobs.work(once=True)
    assert (report.scheduled, report.succeeded) == (1, 1)
    assert len(hook.wait_for(1)) == 1
