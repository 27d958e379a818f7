"""A stub of the part of Pub/Sub's REST API that Lumos uses, after its published reference.

It is not Google's: no Pub/Sub, and no emulator of it, can be had here. Messages are leased, come
back when their deadline has passed, and move to a dead-letter topic as the reference says.
"""

import base64
import json
import threading
import time
from collections.abc import Mapping

from http_server import RecordingServer, Request, Response

SUBSCRIPTION = "projects/shop/subscriptions/lumos"


class PubSubContractStub(RecordingServer):
    """One subscription; `clock` is moved by tests."""

    def __init__(self, *, dead_letters: bool = False, pull_seconds: float = 0.2) -> None:
        super().__init__()
        self.clock = 0.0
        self.dead: list[dict[str, object]] = []
        self.denied = False
        self._dead_letters = dead_letters
        self._pull_seconds = pull_seconds
        self._messages: dict[str, dict[str, object]] = {}
        self._deadlines: dict[str, float] = {}
        self._ack_ids: dict[str, str] = {}
        self._attempts: dict[str, int] = {}
        self._lock = threading.Condition()

    def publish(self, attributes: Mapping[str, str], data: bytes = b"{}") -> None:
        """Put a message into the subscription."""
        with self._lock:
            id = str(len(self._attempts) + 1)
            self._attempts[id] = 0
            self._messages[id] = {
                "messageId": id,
                "publishTime": "2024-01-10T09:30:00.123456789Z",
                "attributes": dict(attributes),
                "data": base64.b64encode(data).decode(),
            }
            self._lock.notify_all()

    @property
    def waiting(self) -> int:
        """The number of messages that nobody has acknowledged."""
        return len(self._messages)

    def respond(self, request: Request) -> Response:
        if self.denied:
            return _error(403, "User not authorized to perform this action.")
        path, _, verb = request.path.removeprefix("/v1/").partition(":")
        if path != SUBSCRIPTION:
            return _error(404, f"Resource not found (resource={path.rpartition('/')[2]}).")
        asked = json.loads(request.body or b"{}")
        match request.method, verb:
            case "GET", "":
                return _json(self._description())
            case "POST", "pull":
                return _json(self._pull(asked["maxMessages"]))
            case "POST", "acknowledge":
                with self._lock:
                    for ack_id in asked["ackIds"]:
                        self._messages.pop(self._ack_ids.get(ack_id, ""), None)
                return _json({})
            case "POST", "modifyAckDeadline":
                self._modify(asked["ackIds"], asked["ackDeadlineSeconds"])
                return _json({})
        return _error(404, "Not found.")

    def _description(self) -> dict[str, object]:
        policy = {"deadLetterPolicy": {"deadLetterTopic": "projects/shop/topics/dead",
                                       "maxDeliveryAttempts": 5}}  # fmt: skip
        return {
            "name": SUBSCRIPTION,
            "ackDeadlineSeconds": 10,
            "messageRetentionDuration": "604800s",
            **(policy if self._dead_letters else {}),
        }

    def _pull(self, limit: int) -> dict[str, object]:
        deadline = time.monotonic() + self._pull_seconds
        with self._lock:
            while True:
                ready = [id for id in self._messages if self._deadlines.get(id, 0) <= self.clock]
                remaining = deadline - time.monotonic()
                if ready or remaining <= 0:
                    break
                self._lock.wait(remaining)
            found = [self._lease(id) for id in ready[:limit]]
        return {"receivedMessages": [each for each in found if each]}

    def _lease(self, id: str) -> dict[str, object] | None:
        self._attempts[id] += 1
        if self._dead_letters and self._attempts[id] > 5:
            self.dead.append(self._messages.pop(id))
            return None
        ack_id = f"ack-{id}-{self._attempts[id]}"
        self._ack_ids[ack_id] = id
        self._deadlines[id] = self.clock + 10
        counted = {"deliveryAttempt": self._attempts[id]} if self._dead_letters else {}
        return {"ackId": ack_id, "message": self._messages[id], **counted}

    def _modify(self, ack_ids: list[str], seconds: int) -> None:
        with self._lock:
            for ack_id in ack_ids:
                self._deadlines[self._ack_ids[ack_id]] = self.clock + seconds
            self._lock.notify_all()


def _json(value: object) -> Response:
    return Response(200, json.dumps(value).encode(), {"Content-Type": "application/json"})


def _error(status: int, message: str) -> Response:
    return Response(status, json.dumps({"error": {"code": status, "message": message}}).encode())
