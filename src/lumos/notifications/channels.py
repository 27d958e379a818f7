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
_SECONDS: Final = 30
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
            self._apprise.add(service)

    def send(self, notification: Notification) -> str | None:
        from apprise import NotifyFormat, NotifyType

        if not len(self._apprise):
            return "its address is none that apprise understands"
        kind = NotifyType.WARNING if notification.urgent else NotifyType.INFO
        with _discreetly():
            result = self._apprise.notify(
                body=notification.body,
                title=notification.title,
                notify_type=kind,
                # Names of fields must neither be taken for markup nor call anybody.
                body_format=NotifyFormat.TEXT,
                timeout=_SECONDS,
            )
            with result:
                said = " ".join(entry.message for entry in result.logs())
        return None if result else _reason(said)


def _reason(said: str) -> str:
    """What may be told of a failure: never the words of others, who quote addresses."""
    if status := _STATUS.search(said):
        return f"the service answered {status.group(1)}"
    if "onnection" in said or "ocket" in said:
        return "the service cannot be reached"
    if "imed out" in said or "imeout" in said:
        return "the service did not answer in time"
    return "the service took no message"


@contextmanager
def _discreetly() -> Iterator[None]:
    """Keeps the records of libraries out of whatever log the process writes."""
    loggers = [logging.getLogger(name) for name in _TALKATIVE]
    before = [logger.propagate for logger in loggers]
    silence = logging.NullHandler()
    for logger in loggers:
        logger.propagate = False
        # Without any handler Python itself would print warnings.
        logger.addHandler(silence)
    try:
        yield
    finally:
        for logger, propagated in zip(loggers, before, strict=True):
            logger.propagate = propagated
            logger.removeHandler(silence)
