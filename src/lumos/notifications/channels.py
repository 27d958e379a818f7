"""Channels over which messages are sent to people; errors and logs omit their addresses."""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol
from urllib.parse import quote

from lumos.config.secret import Secret
from lumos.config.settings import OWNER_IN_ADDRESS
from lumos.errors import MissingDependency
from lumos.model.notification import Notification

# A message is sent again later if the service has not answered within this time.
TIMEOUT_SECONDS: Final = 30.0
# Some services need several requests for one message.
_TOTAL_TIMEOUT_SECONDS: Final = 90.0
UNREACHABLE: Final = "the service cannot be reached"
TIMED_OUT: Final = f"the service did not answer within {TIMEOUT_SECONDS:.0f} seconds"
# After these problems, other messages to the same channel would fail too.
CHANNEL_DOWN: Final = (UNREACHABLE, TIMED_OUT)
_WARNINGS: Final = ("WARNING", "ERROR", "CRITICAL")
_EXCEPTION: Final = "Socket Exception"
_STATUS: Final = re.compile(r"\berror=(\d{3})\b")
# These loggers write addresses that contain tokens.
_LEAKING_LOGGERS: Final = ("apprise", "urllib3", "requests_oauthlib", "oauthlib")


class NotificationChannel(Protocol):
    """A channel that delivers messages to people or programs."""

    def send(self, notification: Notification) -> str | None:
        """Send a message; return the reason if that failed."""


class AppriseChannel:
    """One apprise address: a chat, a mailbox, a webhook."""

    def __init__(self, address: Secret) -> None:
        try:
            from apprise import Apprise, AppriseAsset
        except ModuleNotFoundError:
            raise MissingDependency("Sending notifications", "apprise", "notify") from None
        asset = AppriseAsset(app_id="Lumos", app_desc="Lumos", storage_mode="memory")
        self._apprise = Apprise(asset=asset)
        with _mute_loggers():
            service = Apprise.instantiate(address.reveal(), asset=asset)
        if service is not None:
            # An address may set its own timeouts (rto, cto). Apprise's default of 4 seconds is too
            # short for some services, which would then get every message twice.
            for name in ("socket_read_timeout", "socket_connect_timeout"):
                if name not in vars(service):
                    setattr(service, name, TIMEOUT_SECONDS)
            self._apprise.add(service)

    def send(self, notification: Notification) -> str | None:
        from apprise import NotifyFormat, NotifyType

        if not len(self._apprise):
            return "apprise cannot parse its address"
        kind = NotifyType.WARNING if notification.urgent else NotifyType.INFO
        with _mute_loggers():
            result = self._apprise.notify(
                # Apprise sends nothing at all if the body is empty.
                body=notification.body or notification.title or f"{notification.urn} changed.",
                title=notification.title,
                notify_type=kind,
                # Field names must not be interpreted as markup or as mentions.
                body_format=NotifyFormat.TEXT,
                timeout=_TOTAL_TIMEOUT_SECONDS,
                log_level=logging.DEBUG,
            )
            with result:
                messages = [
                    entry.message
                    for entry in result.logs()
                    # Other log entries quote the notification itself.
                    if entry.level in _WARNINGS or entry.message.startswith(_EXCEPTION)
                ]
        return None if result else _failure_reason(" ".join(messages))


class OwnerChannel:
    """A channel whose address contains the mail address or the name of the recipient."""

    def __init__(self, address: Secret, email_of: Callable[[str], str | None]) -> None:
        self._address = address
        self._email_of = email_of

    def send(self, notification: Notification) -> str | None:
        if (name := notification.recipient) is None:
            return "its address needs an owner, and this message has none"
        text = self._address.reveal()
        email = self._email_of(name) if needs_email(self._address) else ""
        if email is None:
            return f"no mail address of '{name}' is known"
        values = dict(zip(OWNER_IN_ADDRESS, (email, name), strict=True))
        for placeholder, value in values.items():
            text = text.replace(placeholder, quote(value, safe=""))
        return AppriseChannel(Secret(text)).send(notification)


def needs_email(address: Secret) -> bool:
    """Whether an address contains the mail address of the recipient."""
    return OWNER_IN_ADDRESS[0] in address.reveal()


def _failure_reason(log: str) -> str:
    """Describe a failure without quoting the log: messages may contain addresses with tokens."""
    if status := _STATUS.search(log):
        return f"the service answered {status.group(1)}"
    if "Read timed out" in log or "did not finish within" in log:
        return TIMED_OUT
    if "onnection" in log or "ocket" in log or "imed out" in log:
        return UNREACHABLE
    return "the service did not accept the message"


@contextmanager
def _mute_loggers() -> Iterator[None]:
    """Keep log records of libraries out of the logs of the process."""
    loggers = [logging.getLogger(name) for name in _LEAKING_LOGGERS]
    before = [(logger.propagate, logger.level) for logger in loggers]
    null_handler = logging.NullHandler()
    for logger in loggers:
        logger.propagate = False
        # Time-outs are only recognisable from debug records.
        logger.setLevel(logging.DEBUG)
        # Without any handler Python itself would print warnings.
        logger.addHandler(null_handler)
    try:
        yield
    finally:
        for logger, (propagated, level) in zip(loggers, before, strict=True):
            logger.propagate = propagated
            logger.setLevel(level)
            logger.removeHandler(null_handler)
