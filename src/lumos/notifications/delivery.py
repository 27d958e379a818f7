"""Takes messages out of the outbox, one by one, until none is due."""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import Final, Protocol

import msgspec

from lumos.model.notification import PostedNotification
from lumos.notifications.channels import HOPELESS, Channel

# Longer than the slowest service may take, so that only a dead sender loses its claim.
_CLAIM: Final = timedelta(minutes=2)
_FIRST_WAIT: Final = timedelta(seconds=30)
_LONGEST_WAIT: Final = timedelta(hours=1)


class Outbox(Protocol):
    """Where messages wait."""

    def claim(
        self, channels: Collection[str], *, sender: str, now: datetime, until: datetime
    ) -> PostedNotification | None: ...

    def claim_after(
        self, id: int, channels: Collection[str], *, sender: str, now: datetime, until: datetime
    ) -> PostedNotification | None: ...

    def sent(self, id: int, *, at: datetime) -> None: ...

    def failed(self, id: int, *, sender: str, problem: str, due_at: datetime | None) -> None: ...


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """What one round of sending came to; `problems` by channel."""

    sent: int = 0
    failed: int = 0
    given_up: int = 0
    problems: dict[str, str] = {}


def wait_after(tries: int) -> timedelta:
    """How long a message waits after its nth failure."""
    # 2 ** 7 halves of a minute are more than an hour; higher powers would only overflow.
    return min(_LONGEST_WAIT, _FIRST_WAIT * (1 << min(tries - 1, 7)))


def deliver(
    outbox: Outbox,
    channels: Mapping[str, Channel],
    *,
    sender: str,
    max_tries: int,
    clock: Callable[[], datetime],
    go_on: Callable[[], bool] = lambda: True,
    all: bool = False,
) -> Delivery:
    """Sends what is due while `go_on` says so; a channel that fails is left alone for the round.

    Of `all`, those that wait for later and those that were given up have one try each, and only a
    channel that does not answer is left alone.
    """
    working = set(channels)
    sent = failed = given_up = last = 0
    problems: dict[str, str] = {}
    while working and go_on():
        now = clock()
        until = now + _CLAIM
        posted = (
            outbox.claim_after(last, working, sender=sender, now=now, until=until)
            if all
            else outbox.claim(working, sender=sender, now=now, until=until)
        )
        if posted is None:
            break
        last = posted.id
        channel = posted.notification.channel
        problem = channels[channel].send(posted.notification)
        if problem is None:
            outbox.sent(posted.id, at=clock())
            sent += 1
            continue
        tries = posted.tries + 1
        was_dead = posted.state == "dead"
        is_last = was_dead or tries >= max_tries
        due_at = None if is_last else clock() + wait_after(tries)
        outbox.failed(posted.id, sender=sender, problem=problem, due_at=due_at)
        problems[channel] = problem
        if not all or problem in HOPELESS:
            working.discard(channel)
        failed, given_up = failed + 1, given_up + (is_last and not was_dead)
    return Delivery(sent=sent, failed=failed, given_up=given_up, problems=problems)
