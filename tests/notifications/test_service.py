"""Changes are told: from the recorded event to the message on the other side."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
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
from lumos.model.dataset import Owner, Ownership
from lumos.model.types import parse_type
from lumos.store import KnownDataset, Store
from webhook import Webhook, webhook

AT = datetime(2024, 1, 10, 9, tzinfo=UTC)
URN = "lumos://file/lake/user_events"

pytestmark = pytest.mark.usefixtures("workplace")


@pytest.fixture
def hook() -> Iterator[Webhook]:
    with webhook() as opened:
        yield opened


def lumos_with(folder: Path, hook: Webhook, rule: str = "verdicts: [breaking]") -> Lumos:
    file = folder / "lumos.yaml"
    file.write_text(
        "notifications:\n"
        f"  channels: {{chat: '{hook.address('hush')}', other: '{hook.address()}'}}\n"
        f"  changes: [{{channels: [chat], {rule}}}]\n"
    )
    return Lumos(file)


def finding(verdict: Verdict = Verdict.BREAKING) -> Finding:
    change = TypeChanged(path="user_id", before=parse_type("STRING"), after=parse_type("INT64"))
    return Finding(change=change, consumer=verdict, storage=verdict, rule="type")


def event(number: int = 1, **facts: Any) -> ChangeEvent:
    defaults: dict[str, Any] = {
        "event_id": f"e{number}",
        "urn": URN,
        "type": EventType.SCHEMA_CHANGED,
        "at": AT,
        "cause": "scan",
        "cloud_version": "S-3",
        "schema_version": "2.0.0",
        "source_path": "/lake/user_events",
        "findings": (finding(),),
        "summary": "1 type changed: user_id STRING -> INT64",
    }
    return ChangeEvent(**{**defaults, **facts})


def record(lumos: Lumos, *events: ChangeEvent, owner: str | None = None) -> Store:
    """Records events as any verb does, through the store that Lumos opens for it."""
    store = lumos._store.create()
    with store.transaction() as transaction:
        transaction.save(
            KnownDataset(
                urn=URN, name="user_events", platform="file", format="parquet", source="file:/lake",
                state="live", cloud_version="S-3", schema_version="2.0.0", schema_hash=None,
                fingerprint="f", content="c", created_at=AT, updated_at=AT,
            )
        )  # fmt: skip
        if owner is not None:
            owners = Ownership(owners=(Owner(name=owner),))
            transaction.save_aspect(URN, "ownership", owners, writer="test", at=AT)
        for each in events:
            transaction.save_event(each)
    return store


def wait_for_sender() -> None:
    for thread in threading.enumerate():
        if thread.name == "lumos-notifications":
            thread.join()


def test_a_breaking_change_is_sent_and_the_time_is_stored(tmp_path: Path, hook: Webhook) -> None:
    lumos = lumos_with(tmp_path, hook)
    before = datetime.now(UTC)
    store = record(lumos, event(), owner="analytics-team")
    (received,) = hook.wait_for(1)
    assert received["title"] == "user_events 2.0.0: breaking"
    assert received["message"].splitlines() == [
        "SCHEMA_CHANGED: 1 type changed: user_id STRING -> INT64",
        "- Changed type of user_id from STRING to INT64 (breaking)",
        f"{URN} S-3",
        "/lake/user_events",
        "owner: analytics-team",
        "2024-01-10 09:00:00 UTC",
    ]
    wait_for_sender()
    alert = store.notification_outbox.alerts(["e1"])["e1"]
    assert alert.state == "SENT"
    assert alert.sent_at is not None
    assert before <= alert.sent_at <= datetime.now(UTC)


def affected(*names: str, count: int | None = None) -> BlastRadius:
    owners = {"sessions": ("ml-platform", "analytics-team")}
    return BlastRadius(
        breaking=count or len(names),
        datasets=tuple(
            Affected(urn=f"lumos://x/{name}", verdict=Verdict.BREAKING, owners=owners.get(name, ()))
            for name in names
        ),
    )


def test_a_message_names_who_breaks_downstream(tmp_path: Path, hook: Webhook) -> None:
    record(lumos_with(tmp_path, hook), event(affected=affected("sessions", "odd\nname")))
    (received,) = hook.wait_for(1)
    assert received["message"].splitlines()[2:5] == [
        "breaks 2 datasets: sessions (ml-platform, analytics-team), odd?name",
        "- lumos://x/sessions breaks (ml-platform, analytics-team)",
        "- lumos://x/odd?name breaks",
    ]


def test_of_many_that_break_the_first_are_named(tmp_path: Path, hook: Webhook) -> None:
    words = "verdicts: [breaking], title: 'to {affected_owners}', template: '{affected}'"
    many = affected("sessions", *(f"t{number:02}" for number in range(24)), count=1_200)
    record(lumos_with(tmp_path, hook, words), event(affected=many))
    (received,) = hook.wait_for(1)
    lines = received["message"].splitlines()
    assert received["title"] == "to ml-platform, analytics-team"
    assert (len(lines), lines[-1]) == (21, "- and 1,180 more")


def test_the_same_event_found_again_is_not_sent_again(tmp_path: Path, hook: Webhook) -> None:
    lumos = lumos_with(tmp_path, hook)
    record(lumos, event())
    record(lumos, event())
    wait_for_sender()
    assert len(hook.received) == 1


def test_changes_without_a_matching_rule_are_not_sent(tmp_path: Path, hook: Webhook) -> None:
    lumos = lumos_with(tmp_path, hook, "verdicts: [breaking], owners: [ml-platform]")
    mine = event(1)
    harmless = event(2, findings=(finding(Verdict.COMPATIBLE),))
    store = record(lumos, mine, harmless, event(3, type=EventType.MODIFIED, findings=()))
    wait_for_sender()
    assert hook.received == []
    assert store.notification_outbox.counts() == ()


def test_events_that_no_rule_is_about_cost_no_query(tmp_path: Path, hook: Webhook) -> None:
    notifier = lumos_with(tmp_path, hook)._store.listeners[-1]
    notifier.before_commit(None, event(type=EventType.CREATED, findings=()))  # type: ignore[arg-type]


def test_the_words_of_a_rule_are_used(tmp_path: Path, hook: Webhook) -> None:
    words = "title: '{verdict} {owner_name}', template: '{dataset_name} at {location}'"
    record(lumos_with(tmp_path, hook, words), event(source_path="/la\nke"), owner="ann")
    (received,) = hook.wait_for(1)
    assert (received["title"], received["message"]) == ("breaking ann", "user_events at /la?ke")


def test_very_many_changes_are_sent_in_a_short_message(tmp_path: Path, hook: Webhook) -> None:
    record(lumos_with(tmp_path, hook), event(findings=(finding(),) * 500))
    (received,) = hook.wait_for(1)
    lines = received["message"].splitlines()
    assert "- and 480 more" in lines
    assert len(lines) < 30


def test_nothing_is_lost_while_the_channel_is_down(tmp_path: Path, hook: Webhook) -> None:
    hook.status = 503
    lumos = lumos_with(tmp_path, hook)
    store = record(lumos, event(1), event(2))
    wait_for_sender()
    assert (hook.received, hook.refused) == ([], 1)
    assert store.notification_outbox.alerts(["e1"])["e1"].state == "PENDING"
    status = lumos.notifications.status()
    (chat, other) = status.channels
    assert (chat.channel, chat.pending, chat.sent, chat.configured) == ("chat", 2, 0, True)
    assert (other.channel, other.pending) == ("other", 0)
    assert {message.problem for message in status.unsent} == {None, "the service answered 503"}
    failed = lumos.notifications.send()
    assert (failed.sent, failed.failed) == (0, 1)
    hook.status = 200
    assert lumos.notifications.send(all=True).sent == 2
    assert [alert.state for alert in store.notification_outbox.alerts(["e1", "e2"]).values()] == [
        "SENT"
    ] * 2
    assert lumos.notifications.send(all=True).sent == 0


def test_without_apprise_events_are_recorded_and_messages_wait(
    tmp_path: Path, hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    lumos = lumos_with(tmp_path, hook)
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "apprise", None)
        store = record(lumos, event())
        wait_for_sender()
    assert len(store.events(URN)) == 1
    assert lumos.notifications.status().channels[0].pending == 1
    assert lumos.notifications.send().sent == 1


def test_a_trial_message_needs_no_store(tmp_path: Path, hook: Webhook) -> None:
    lumos = lumos_with(tmp_path, hook)
    assert lumos.notifications.test("other").sent == 1
    assert "Nothing has changed" in hook.received[0]["message"]
    hook.status = 404
    assert lumos.notifications.test("other").problems == {"other": "the service answered 404"}


def run(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lumos", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LUMOS_DEBUG": "1"},
    )


def test_the_command_sends_what_waits_and_never_shows_the_address(
    tmp_path: Path, hook: Webhook
) -> None:
    hook.status = 500
    record(lumos_with(tmp_path, hook), event())
    wait_for_sender()
    failed = run("notify", "send", "--all", "--verbose", folder=tmp_path)
    assert (failed.returncode, failed.stdout) == (1, "0 messages sent, 1 failed.\n")
    assert failed.stderr == "problem  channel 'chat': the service answered 500\n"
    status = run("notify", "status", folder=tmp_path)
    assert "user_events 2.0.0: breaking" in status.stdout
    hook.status = 200
    sent = run("notify", "send", "--all", "--json", folder=tmp_path)
    assert sent.returncode == 0
    assert '"sent":1' in sent.stdout
    everything = "".join(f"{each.stdout}{each.stderr}" for each in (failed, status, sent))
    assert "hush" not in everything
    assert "127.0.0.1" not in everything


def test_processes_that_send_at_once_send_each_message_once(tmp_path: Path, hook: Webhook) -> None:
    hook.status = 500
    record(lumos_with(tmp_path, hook), *(event(number) for number in range(40)))
    wait_for_sender()
    hook.status = 200
    senders = [
        subprocess.Popen(
            [sys.executable, "-m", "lumos", "notify", "send", "--all"],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
        )
        for _ in range(3)
    ]
    assert [sender.wait() for sender in senders] == [0, 0, 0]
    assert len(hook.received) == 40


def test_a_channel_that_failed_is_left_alone_whatever_comes_meanwhile(
    tmp_path: Path, hook: Webhook, caplog: pytest.LogCaptureFixture
) -> None:
    hook.status = 503
    lumos = lumos_with(tmp_path, hook)
    for number in range(4):
        record(lumos, event(number))
        wait_for_sender()
    assert hook.refused == 1
    assert caplog.text.count("its messages will be retried later") == 1


def test_the_last_try_is_logged(
    tmp_path: Path, hook: Webhook, caplog: pytest.LogCaptureFixture
) -> None:
    hook.status = 503
    lumos = lumos_with(tmp_path, hook)
    (tmp_path / "lumos.yaml").write_text(
        (tmp_path / "lumos.yaml")
        .read_text()
        .replace("notifications:", "notifications:\n  max_tries: 1", 1)
    )
    lumos = Lumos(tmp_path / "lumos.yaml")
    record(lumos, event())
    wait_for_sender()
    assert "given up after their last try: 1; lumos notify send --all" in caplog.text
