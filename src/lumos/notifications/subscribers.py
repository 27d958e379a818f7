"""Subscribers, programs that receive change events: webhooks, Redis Streams and Kafka topics."""

import base64
import hashlib
import hmac
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from lumos.config.secret import redact
from lumos.config.subscribers import (
    KafkaSubscriber,
    RedisSubscriber,
    Subscriber,
    WebhookSubscriber,
)
from lumos.errors import LumosError, MissingDependency, UnknownName
from lumos.http.client import HttpClient, HttpError, NotConnected, ResponseLost, TimeLimits
from lumos.http.pooled_transport import PooledTransport
from lumos.model.notification import Notification
from lumos.notifications.channels import TIMED_OUT, TIMEOUT_SECONDS, UNREACHABLE
from lumos.notifications.cloud_events import STRUCTURED, CloudEvent, sample_event, to_cloud_event
from lumos.schemas.changes import event_report
from lumos.store.history import ChangeLog

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

_CONNECT_SECONDS: Final = 10.0
_LIMITS: Final = TimeLimits(connect=_CONNECT_SECONDS, read=TIMEOUT_SECONDS)
# Responses are not used, so they may be cut off.
_MAX_RESPONSE_BYTES: Final = 1024 * 1024


class EventSink(ABC):
    """The destination of a subscriber's events; each event is written at least once."""

    @abstractmethod
    def write(self, event: CloudEvent) -> str | None:
        """Write an event durably; return the reason if that failed."""


class SubscriberChannel:
    """Sends events of the change log to a subscriber."""

    def __init__(self, subscriber: Subscriber, change_log: Callable[[], ChangeLog]) -> None:
        self._source = subscriber.source
        self._change_log = change_log
        self._sink = create_sink(subscriber)

    def send(self, notification: Notification) -> str | None:
        if not notification.event_id:
            return self._sink.write(sample_event(uuid.uuid4().hex, source=self._source))
        log = self._change_log()
        entry = log.find(notification.event_id)
        if entry is None:
            return "the event is no longer in the change log"
        position, event = entry
        report = event_report(log, event)
        return self._sink.write(to_cloud_event(report, position=position, source=self._source))


def create_sink(subscriber: Subscriber) -> EventSink:
    """The sink of a subscriber; it connects when it writes the first event."""
    match subscriber:
        case WebhookSubscriber():
            return WebhookSink(subscriber)
        case RedisSubscriber():
            return RedisSink(subscriber)
        case KafkaSubscriber():
            return KafkaSink(subscriber)
    raise UnknownName("type of subscribers", subscriber.type, ("webhook", "redis", "kafka"))


def sign(body: bytes, *, id: str, timestamp: int, keys: Sequence[bytes]) -> dict[str, str]:
    """The headers of a signed webhook (https://www.standardwebhooks.com)."""
    content = f"{id}.{timestamp}.".encode() + body
    digests = (hmac.digest(key, content, hashlib.sha256) for key in keys)
    return {
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{base64.b64encode(each).decode()}" for each in digests),
    }


class WebhookSink(EventSink):
    """Sends POST requests; a service confirms each with a status from 200 to 299."""

    def __init__(
        self,
        subscriber: WebhookSubscriber,
        *,
        now: Callable[[], float] = time.time,
        limits: TimeLimits = _LIMITS,
    ) -> None:
        self._url = subscriber.url.reveal()
        self._keys = subscriber.keys()
        self._own_headers = {key: value.reveal() for key, value in subscriber.headers.items()}
        self._is_binary = subscriber.mode == "binary"
        self._now = now
        self._client = HttpClient(PooledTransport(limits=limits))

    def write(self, event: CloudEvent) -> str | None:
        if self._is_binary:
            headers, body = event.binary_headers(), event.data
        else:
            headers, body = {"content-type": STRUCTURED}, event.structured()
        signature = sign(body, id=event.id, timestamp=int(self._now()), keys=self._keys)
        to_send: Mapping[str, str] = {
            "user-agent": "Lumos", **self._own_headers, **headers, **signature
        }  # fmt: skip
        try:
            response = self._client.send(
                "POST", self._url, headers=lambda: to_send, body=body, max_bytes=_MAX_RESPONSE_BYTES
            )
        except NotConnected:
            return UNREACHABLE
        except ResponseLost as problem:
            return TIMED_OUT if "timed out" in problem.reason else UNREACHABLE
        except HttpError as problem:
            return f"the request failed: {problem.reason}"
        return None if response.status // 100 == 2 else f"the service answered {response.status}"


class RedisSink(EventSink):
    """Adds events to a stream; Redis removes the oldest events if it becomes too long."""

    def __init__(self, subscriber: RedisSubscriber) -> None:
        try:
            import redis
        except ModuleNotFoundError:
            raise MissingDependency("A subscriber of the type redis", "redis", "redis") from None
        self._errors = redis.RedisError
        self._timeout, self._not_connected = redis.TimeoutError, redis.ConnectionError
        self._redis: Any = redis.Redis.from_url(
            subscriber.url.reveal(),
            protocol=2,
            socket_timeout=TIMEOUT_SECONDS,
            socket_connect_timeout=_CONNECT_SECONDS,
        )
        self._stream = subscriber.stream
        self._max_length = subscriber.max_length
        self._is_binary = subscriber.mode == "binary"

    def write(self, event: CloudEvent) -> str | None:
        fields: dict[str, str | bytes]
        if self._is_binary:
            fields = {**event.binary_fields(), "data": event.data}
        else:
            fields = {"content-type": STRUCTURED, "event": event.structured()}
        try:
            self._redis.xadd(self._stream, fields, maxlen=self._max_length, approximate=True)
        except self._timeout:
            return TIMED_OUT
        except self._not_connected:
            return UNREACHABLE
        except self._errors as problem:
            return f"Redis answered: {redact(str(problem))}"
        return None


class KafkaSink(EventSink):
    """Writes events to a topic; the URN is the key, so a dataset's events share a partition."""

    def __init__(self, subscriber: KafkaSubscriber) -> None:
        try:
            from lumos.sources.kafka.cluster import KafkaCluster
        except ModuleNotFoundError:
            raise MissingDependency(
                "A subscriber of the type kafka", "confluent-kafka", "kafka"
            ) from None
        self._cluster = KafkaCluster(subscriber.cluster)
        self._topic = subscriber.topic
        self._is_binary = subscriber.mode == "binary"
        self._producer: Any = None

    def write(self, event: CloudEvent) -> str | None:
        from confluent_kafka import KafkaException

        if self._is_binary:
            headers, body = event.binary_fields(), event.data
        else:
            headers, body = {"content-type": STRUCTURED}, event.structured()
        outcome: list[KafkaError | None] = []
        try:
            if self._producer is None:
                self._producer = self._cluster.producer(timeout=TIMEOUT_SECONDS)
            self._producer.produce(
                self._topic,
                value=body,
                key=event.subject.encode(),
                headers=list(headers.items()),
                on_delivery=lambda error, _message: outcome.append(error),
            )
            # Returns when the brokers have confirmed the event, or after the time-out.
            self._producer.flush(TIMEOUT_SECONDS + _CONNECT_SECONDS)
        except KafkaException as problem:
            outcome.append(problem.args[0])
        except LumosError as problem:
            return str(problem)
        if not outcome:
            return TIMED_OUT
        return None if outcome[0] is None else _reason(outcome[0])


def _reason(error: "KafkaError") -> str:
    from confluent_kafka import KafkaError

    if error.code() in (
        KafkaError._MSG_TIMED_OUT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT,
        KafkaError._RESOLVE,
    ):  # fmt: skip
        return UNREACHABLE
    return f"Kafka answered {error.name()}"
