"""Sends messages through apprise, and says of a failure only what is no secret."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from lumos.config.secret import Secret
from lumos.errors import MissingDependency
from lumos.model.notification import Notification

# A service that has not answered by then is tried again later.
_SECONDS: Final = 30.0
# Some services are asked several things for one message.
_SECONDS_IN_ALL: Final = 90.0
UNREACHABLE: Final = "the service cannot be reached"
TOO_LATE: Final = f"the service did not answer within {_SECONDS:.0f} seconds"
# Whatever the message, another one would fare no better.
HOPELESS: Final = (UNREACHABLE, TOO_LATE)
_WARNINGS: Final = ("WARNING", "ERROR", "CRITICAL")
_EXCEPTION: Final = "Socket Exception"
_STATUS: Final = re.compile(r"\berror=(\d{3})\b")
# These write addresses into their records, with the tokens in them.
_TALKATIVE: Final = ("apprise", "urllib3", "requests_oauthlib", "oauthlib")


class Channel(Protocol):
    """A way to reach people or programs."""

    def send(self, notification: Notification) -> str | None:
        """Sends a message; gives the reason where that failed."""


class AppriseChannel:
    """One address of apprise: a chat, a mailbox, a webhook."""

    def __init__(self, address: Secret) -> None:
        try:
            from apprise import Apprise, AppriseAsset
        except ModuleNotFoundError:
            raise MissingDependency("Sending notifications", "apprise", "notify") from None
        asset = AppriseAsset(app_id="Lumos", app_desc="Lumos", storage_mode="memory")
        self._apprise = Apprise(asset=asset)
        with _discreetly():
            service = Apprise.instantiate(address.reveal(), asset=asset)
        if service is not None:
            # An address may set its own (rto, cto); apprise's usual 4 seconds are too few for some
            # services, which would then get every message twice.
            for name in ("socket_read_timeout", "socket_connect_timeout"):
                if name not in vars(service):
                    setattr(service, name, _SECONDS)
            self._apprise.add(service)

    def send(self, notification: Notification) -> str | None:
        from apprise import NotifyFormat, NotifyType

        if not len(self._apprise):
            return "its address is none that apprise understands"
        kind = NotifyType.WARNING if notification.urgent else NotifyType.INFO
        with _discreetly():
            result = self._apprise.notify(
                # Without one nothing at all would be sent.
                body=notification.body or notification.title or f"{notification.urn} changed.",
                title=notification.title,
                notify_type=kind,
                # Names of fields must neither be taken for markup nor call anybody.
                body_format=NotifyFormat.TEXT,
                timeout=_SECONDS_IN_ALL,
                log_level=logging.DEBUG,
            )
            with result:
                said = [
                    entry.message
                    for entry in result.logs()
                    # Others quote the message itself.
                    if entry.level in _WARNINGS or entry.message.startswith(_EXCEPTION)
                ]
        return None if result else _reason(" ".join(said))


def _reason(said: str) -> str:
    """What may be told of a failure: never the words of others, who quote addresses."""
    if status := _STATUS.search(said):
        return f"the service answered {status.group(1)}"
    if "Read timed out" in said or "did not finish within" in said:
        return TOO_LATE
    if "onnection" in said or "ocket" in said or "imed out" in said:
        return UNREACHABLE
    return "the service took no message"


@contextmanager
def _discreetly() -> Iterator[None]:
    """Keeps the records of libraries out of whatever log the process writes."""
    loggers = [logging.getLogger(name) for name in _TALKATIVE]
    before = [(logger.propagate, logger.level) for logger in loggers]
    silence = logging.NullHandler()
    for logger in loggers:
        logger.propagate = False
        # What a time-out looks like is told on no higher level.
        logger.setLevel(logging.DEBUG)
        # Without any handler Python itself would print warnings.
        logger.addHandler(silence)
    try:
        yield
    finally:
        for logger, (propagated, level) in zip(loggers, before, strict=True):
            logger.propagate = propagated
            logger.setLevel(level)
            logger.removeHandler(silence)
