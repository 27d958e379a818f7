"""Storage events of Google Cloud Storage, pulled from a subscription of Pub/Sub."""

import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

import msgspec

from lumos.config.sources import GcsSourceSettings
from lumos.http.client import HttpClient, HttpError, ResponseLost
from lumos.http.pooled_transport import PooledTransport
from lumos.http.retries import ONCE, RetryPolicy
from lumos.sources.events.interface import (
    EventSource,
    EventSourceFailed,
    ObjectEvent,
    ReceivedMessage,
)
from lumos.sources.events.messages import MalformedMessage, pub_sub_events, read_message
from lumos.storage.errors import NoCredentials
from lumos.storage.gcs.access import GcsAccess
from lumos.storage.gcs.credentials import GcsCredentials
from lumos.storage.http import STORAGE_RETRIES

_GOOGLE: Final = "https://pubsub.googleapis.com"
_EMULATOR: Final = "PUBSUB_EMULATOR_HOST"
_SCOPES: Final = ("https://www.googleapis.com/auth/pubsub",)
_NAME: Final = re.compile(r"projects/[^/\s]+/subscriptions/[^/\s]+")
_MAX_MESSAGES: Final = 1_000
# Pub/Sub accepts requests of up to 512 KiB; this many receipts fit.
_MAX_RECEIPTS: Final = 1_000
_ROLES: Final = "roles/pubsub.subscriber and roles/pubsub.viewer"


class PubSubSubscription(EventSource):
    """A subscription: `projects/PROJECT/subscriptions/NAME`, or its name in the source's project.

    Pub/Sub moves messages that were rejected too often to the dead-letter topic of the
    subscription, if there is one.
    """

    def __init__(
        self,
        subscription: str,
        source: GcsSourceSettings,
        *,
        retries: RetryPolicy = STORAGE_RETRIES,
    ) -> None:
        name = subscription
        if "/" not in name and source.project:
            name = f"projects/{source.project}/subscriptions/{name}"
        if not _NAME.fullmatch(name):
            raise EventSourceFailed(
                f"'{subscription}' is not a subscription. Name it as "
                "projects/my-project/subscriptions/my-subscription."
            )
        self.name = name.rpartition("/")[2]
        emulator = os.environ.get(_EMULATOR, "")
        self._url = f"{f'http://{emulator}' if emulator else _GOOGLE}/v1/{name}"
        access = GcsAccess.of(source)
        if emulator:
            access = msgspec.structs.replace(access, anonymous=True)
        self._credentials = GcsCredentials(access, _SCOPES)
        self._http = HttpClient(PooledTransport())
        self._retries = retries
        self._has_dead_letters = False

    def open(self) -> None:
        found = self._call("GET", "")
        self.lease_seconds = float(found.get("ackDeadlineSeconds") or 10)
        # Pub/Sub returns a text such as '604800s'.
        self.retention_seconds = float(str(found.get("messageRetentionDuration", "604800s"))[:-1])
        self._has_dead_letters = "deadLetterPolicy" in found

    def receive(self, wait: float) -> list[ReceivedMessage]:  # noqa: ARG002 - Pub/Sub decides
        try:
            found = self._call("POST", ":pull", {"maxMessages": _MAX_MESSAGES}, retries=ONCE)
        except _RequestTimedOut:
            # Pub/Sub does not respond before there are messages.
            return []
        return [_to_received(each) for each in found.get("receivedMessages", ())]

    def acknowledge(self, receipts: Sequence[str]) -> None:
        self._send_receipts(":acknowledge", receipts, {})

    def reject(self, messages: Sequence[ReceivedMessage]) -> None:
        receipts = [each.receipt for each in messages]
        if self._has_dead_letters:
            self._send_receipts(":modifyAckDeadline", receipts, {"ackDeadlineSeconds": 0})
        else:
            self.acknowledge(receipts)

    def keep(self, receipts: Sequence[str]) -> None:
        seconds = int(self.lease_seconds or 10)
        self._send_receipts(":modifyAckDeadline", receipts, {"ackDeadlineSeconds": seconds})

    def close(self) -> None:
        self._http.close()

    def _send_receipts(self, verb: str, receipts: Sequence[str], values: Mapping[str, int]) -> None:
        for start in range(0, len(receipts), _MAX_RECEIPTS):
            batch = list(receipts[start : start + _MAX_RECEIPTS])
            self._call("POST", verb, {"ackIds": batch, **values})

    def _call(
        self,
        method: str,
        verb: str,
        body: Mapping[str, object] | None = None,
        *,
        retries: RetryPolicy | None = None,
    ) -> dict[str, Any]:
        def headers() -> Mapping[str, str]:
            token = self._credentials.current()
            login = {} if token is None else {"Authorization": f"Bearer {token.text}"}
            return {"Content-Type": "application/json", **login}

        data = b"" if body is None else msgspec.json.encode(body)
        try:
            response = self._http.send(
                method,
                f"{self._url}{verb}",
                headers=headers,
                body=data,
                retries=retries or self._retries,
            )
        except ResponseLost as problem:
            if "timed out" in problem.reason:
                raise _RequestTimedOut(f"Pub/Sub did not answer for {self.name} in time.") from None
            raise EventSourceFailed(str(problem)) from None
        except (HttpError, NoCredentials) as problem:
            raise EventSourceFailed(
                f"The subscription {self.name} cannot be used: {problem}."
            ) from None
        if response.status == 200:
            found: dict[str, Any] = msgspec.json.decode(response.body or b"{}")
            return found
        raise EventSourceFailed(self._explain(response.status, response.body))

    def _explain(self, status: int, body: bytes) -> str:
        try:
            text = str(msgspec.json.decode(body)["error"]["message"]).rstrip(".")
        except (msgspec.DecodeError, KeyError, TypeError):
            text = f"status {status}"
        text = self._credentials.mask_secrets(" ".join(text.split()))[:300]
        message = f"The subscription {self.name} cannot be used: {text}."
        if status == 404:
            return f"{message} Create it, and let the bucket send notifications to its topic."
        return f"{message} Grant {_ROLES}." if status in (401, 403) else message


class _RequestTimedOut(EventSourceFailed):
    """A request that timed out."""


def _to_received(item: Mapping[str, Any]) -> ReceivedMessage:
    message = item.get("message") or {}
    sent_at = None
    if published := message.get("publishTime"):
        sent_at = datetime.fromisoformat(published).timestamp()
    return read_message(
        str(item["ackId"]),
        partial(_events, message.get("attributes")),
        sent_at=sent_at,
        # Only subscriptions with a dead-letter topic count deliveries.
        delivery=int(item.get("deliveryAttempt") or 1),
        id=str(message.get("messageId", "a message without id")),
    )


def _events(attributes: object) -> tuple[ObjectEvent, ...]:
    if not isinstance(attributes, dict):
        raise MalformedMessage("a Pub/Sub message without attributes")
    return tuple(pub_sub_events(attributes))
