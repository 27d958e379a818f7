"""Reads topics, their configuration, offsets, consumer groups and samples of a Kafka cluster.

Reading changes nothing: no topic is created, no group is joined, and no offset is committed. Only
`producer` writes, for subscribers to change events.
"""

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from time import monotonic
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)

# Public, but not declared as exported.
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    OffsetSpec,
)

from lumos.config.secret import MASK, redact
from lumos.config.sources import KafkaSourceSettings
from lumos.sources.interface import SourceNotUsable

_CHUNK: Final = 500
_GROUP_CHUNK: Final = 50
_TOPICS_AT_ONCE: Final = 16
_MESSAGES_AT_ONCE: Final = 500
_MAX_SAMPLE_BYTES: Final = 8 * 1024 * 1024
_POLL_SECONDS: Final = 1.0
_SPECIFIC: Final = (
    KafkaError._AUTHENTICATION,
    KafkaError._SSL,
    KafkaError._RESOLVE,
    KafkaError.SASL_AUTHENTICATION_FAILED,
)
# Errors for which retrying is useless.
_FATAL: Final = (*_SPECIFIC, KafkaError._ALL_BROKERS_DOWN)
NOT_ALLOWED: Final = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
)
# Properties that matter to readers, even if they have their defaults.
_SHOWN_CONFIGS: Final = ("cleanup.policy", "retention.ms")

# A suffix of librdkafka's messages, such as "(after 3ms in state CONNECT)".
_STATE: Final = re.compile(r" \(after \d+ms in state \w+[^)]*\)")

_Future: TypeAlias = Any


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic; its `id` changes if the topic is deleted and created again."""

    name: str
    partitions: int
    replication_factor: int
    id: str | None = None


class PartitionRange(NamedTuple):
    """The first offset of a partition, and the offset after its last message."""

    partition: int
    low: int
    high: int


class ConsumerGroup(NamedTuple):
    """A consumer group: the sum of its committed offsets by topic."""

    name: str
    committed: dict[str, int]


class Message(NamedTuple):
    """The key and the value of a message."""

    key: bytes | None
    value: bytes | None


class TopicSample(NamedTuple):
    """The last messages of a topic; `is_whole` is True if the topic has no other messages."""

    messages: tuple[Message, ...]
    is_whole: bool = False
    # The reason why the topic cannot be read, and its code.
    problem: tuple[str, str] | None = None


class TopicFacts(NamedTuple):
    """Requested facts by topic, and by topic the reasons why they could not be read."""

    found: dict[str, Any]
    denied: dict[str, str]


class KafkaCluster:
    """A cluster; connects with the first call."""

    def __init__(self, settings: KafkaSourceSettings) -> None:
        self._settings = settings
        self._timeout = float(settings.request_timeout)
        self._errors: list[KafkaError] = []

    @property
    def address(self) -> str:
        """The brokers, for messages."""
        return f"kafka://{','.join(self._settings.bootstrap_servers)}"

    @cached_property
    def _admin(self) -> AdminClient:
        try:
            return AdminClient(self._client_settings())
        except KafkaException as problem:
            raise self._not_usable(problem.args[0]) from None

    def producer(self, *, timeout: float) -> Producer:
        """A producer whose messages are written once and in order, or fail after some seconds."""
        try:
            return Producer(
                {
                    **self._client_settings(),
                    "enable.idempotence": True,
                    "message.timeout.ms": int(timeout * 1000),
                    "linger.ms": 0,
                }
            )
        except KafkaException as problem:
            raise self._not_usable(problem.args[0]) from None

    def close(self) -> None:
        """Release the connection; librdkafka closes it once it is not referenced."""
        self.__dict__.pop("_admin", None)

    def topics(self) -> list[Topic]:
        """All topics that the user may see."""
        metadata = self._metadata()
        found = [
            Topic(
                name=each.topic,
                partitions=len(each.partitions),
                replication_factor=max(
                    (len(part.replicas) for part in each.partitions.values()), default=0
                ),
            )
            for each in metadata.topics.values()
            if each.error is None
        ]
        return sorted(found, key=lambda each: each.name)

    @cached_property
    def cluster_id(self) -> str:
        """The id of the cluster."""
        return str(self._metadata().cluster_id or "")

    def topic_ids(self, names: Sequence[str]) -> TopicFacts:
        """The ids of topics, None for old brokers without ids; `denied` has codes of problems."""
        found: dict[str, Any] = {}
        denied: dict[str, str] = {}
        for chunk in _chunks(names, _CHUNK):
            futures = self._admin.describe_topics(
                TopicCollection(list(chunk)), request_timeout=self._timeout
            )
            for name, future in futures.items():
                try:
                    described = self._result(future)
                    found[name] = str(described.topic_id) if described.topic_id else None
                except KafkaException as problem:
                    denied[name] = _code(problem)
        return TopicFacts(found, denied)

    def configs(self, names: Sequence[str]) -> TopicFacts:
        """The settings of topics that differ from those of the cluster, without secrets."""
        found: dict[str, Any] = {}
        denied: dict[str, str] = {}
        for chunk in _chunks(names, _CHUNK):
            resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in chunk]
            futures = self._admin.describe_configs(resources, request_timeout=self._timeout)
            for resource, future in futures.items():
                try:
                    entries = self._result(future)
                    found[resource.name] = dict(_shown_configs(entries))
                except KafkaException as problem:
                    denied[resource.name] = self._describe(problem)
        return TopicFacts(found, denied)

    def ranges(self, topics: Sequence[Topic]) -> TopicFacts:
        """The ranges of offsets of each topic's partitions."""
        lows, denied = self._offsets(topics, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
        highs, also_denied = self._offsets(topics, OffsetSpec.latest())  # type: ignore[no-untyped-call]
        denied |= also_denied
        found = {
            topic.name: [
                PartitionRange(number, lows[topic.name, number], highs[topic.name, number])
                for number in range(topic.partitions)
                if (topic.name, number) in lows and (topic.name, number) in highs
            ]
            for topic in topics
            if topic.name not in denied
        }
        return TopicFacts(found, denied)

    def _offsets(
        self, topics: Sequence[Topic], spec: OffsetSpec
    ) -> tuple[dict[tuple[str, int], int], dict[str, str]]:
        found: dict[tuple[str, int], int] = {}
        denied: dict[str, str] = {}
        for chunk in _chunks(topics, _CHUNK):
            wanted = {
                TopicPartition(topic.name, number): spec
                for topic in chunk
                for number in range(topic.partitions)
            }
            if not wanted:
                continue
            futures = self._admin.list_offsets(wanted, request_timeout=self._timeout)
            for partition, future in futures.items():
                try:
                    result = self._result(future)
                    found[partition.topic, partition.partition] = result.offset
                except KafkaException as problem:
                    denied[partition.topic] = self._describe(problem)
        return found, denied

    def groups(self) -> tuple[list[ConsumerGroup], bool]:
        """Consumer groups with committed offsets, and whether some of them cannot be read."""
        try:
            listing = self._admin.list_consumer_groups(request_timeout=self._timeout)
            listed = self._result(listing)
        except KafkaException:
            return [], True
        names = sorted({each.group_id for each in listed.valid})
        groups: list[ConsumerGroup] = []
        is_incomplete = bool(listed.errors)
        for chunk in _chunks(names, _GROUP_CHUNK):
            futures: list[_Future] = [
                self._admin.list_consumer_group_offsets(
                    [ConsumerGroupTopicPartitions(name)], request_timeout=self._timeout
                )[name]
                for name in chunk
            ]
            for name, future in zip(chunk, futures, strict=True):
                try:
                    offsets = self._result(future).topic_partitions
                except KafkaException:
                    is_incomplete = True
                    continue
                committed: dict[str, int] = {}
                for each in offsets or ():
                    if each.offset >= 0 and each.error is None:
                        committed[each.topic] = committed.get(each.topic, 0) + each.offset
                if committed:
                    groups.append(ConsumerGroup(name, committed))
        return groups, is_incomplete

    def samples(
        self, ranges: Mapping[str, Sequence[PartitionRange]], count: int
    ) -> Iterator[tuple[str, TopicSample]]:
        """Up to `count` of the last messages of each topic."""
        if not ranges:
            return
        consumer = Consumer(
            {
                **self._client_settings(),
                # librdkafka requires a group, which is neither joined nor created.
                "group.id": "lumos",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "allow.auto.create.topics": False,
                "auto.offset.reset": "earliest",
                "queued.max.messages.kbytes": _MAX_SAMPLE_BYTES // 1024,
                "fetch.wait.max.ms": 100,
            }
        )
        try:
            for chunk in _chunks(list(ranges), _TOPICS_AT_ONCE):
                yield from self._sample_chunk(
                    consumer, {name: ranges[name] for name in chunk}, count
                )
        finally:
            consumer.close()

    def _sample_chunk(
        self, consumer: Consumer, ranges: Mapping[str, Sequence[PartitionRange]], count: int
    ) -> Iterator[tuple[str, TopicSample]]:
        starts: dict[tuple[str, int], int] = {}
        ends: dict[tuple[str, int], int] = {}
        whole: dict[str, bool] = {}
        for name, partitions in ranges.items():
            filled = [each for each in partitions if each.high > each.low]
            per_partition = math.ceil(count / len(filled)) if filled else 0
            whole[name] = True
            for each in filled:
                start = max(each.low, each.high - per_partition)
                starts[name, each.partition] = start
                ends[name, each.partition] = each.high
                whole[name] = whole[name] and start == each.low
        messages: dict[str, list[Message]] = {name: [] for name in ranges}
        sizes: dict[str, int] = dict.fromkeys(ranges, 0)
        problems: dict[str, tuple[str, str]] = {}
        pending = set(starts)
        if pending:
            consumer.assign([TopicPartition(*key, start) for key, start in starts.items()])
        deadline = monotonic() + self._timeout
        while pending and monotonic() < deadline:
            for message in consumer.consume(_MESSAGES_AT_ONCE, timeout=_POLL_SECONDS):
                key = (message.topic() or "", message.partition() or 0)
                error = message.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    pending.discard(key)
                elif error is not None:
                    if key[0] in problems or key[0] not in ranges:
                        continue
                    problems[key[0]] = (
                        "not_allowed" if error.code() in NOT_ALLOWED else "unreadable",
                        self._text(error.str()),
                    )
                    pending = {each for each in pending if each[0] != key[0]}
                elif key in pending:
                    body = Message(_bytes(message.key()), _bytes(message.value()))
                    size = len(body.key or b"") + len(body.value or b"")
                    if sizes[key[0]] + size <= _MAX_SAMPLE_BYTES:
                        messages[key[0]].append(body)
                        sizes[key[0]] += size
                    else:
                        whole[key[0]] = False
                    if (message.offset() or 0) + 1 >= ends[key]:
                        pending.discard(key)
        if starts:
            consumer.unassign()
        for name in {topic for topic, _ in pending}:
            whole[name] = False
            if not messages[name] and name not in problems:
                problems[name] = ("too_slow", f"no message within {self._timeout:.0f} seconds")
        for name in ranges:
            yield name, TopicSample(tuple(messages[name]), whole[name], problems.get(name))

    def _metadata(self) -> Any:
        deadline = monotonic() + self._timeout
        while True:
            # The client is created outside of `try`: a wrong setting raises SourceNotUsable.
            admin = self._admin
            try:
                return admin.list_topics(timeout=_POLL_SECONDS)
            except KafkaException as problem:
                admin.poll(0)
                if monotonic() > deadline or any(each.code() in _FATAL for each in self._errors):
                    raise self._not_usable(self._cause(problem.args[0])) from None

    def _cause(self, error: KafkaError) -> KafkaError:
        """The most specific of the errors that librdkafka reported."""
        for codes in (_SPECIFIC, (KafkaError._TRANSPORT,)):
            for each in self._errors:
                if each.code() in codes:
                    return each
        return error

    def _result(self, future: _Future) -> Any:
        try:
            return future.result(self._timeout + _POLL_SECONDS)
        except TimeoutError:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None

    def _client_settings(self) -> dict[str, Any]:
        settings = self._settings
        protocol = settings.security_protocol
        client: dict[str, Any] = {
            "bootstrap.servers": ",".join(settings.bootstrap_servers),
            "client.id": "lumos",
            "security.protocol": protocol,
            # librdkafka would print its messages; errors are reported by `error_cb`.
            "log_level": 0,
            "error_cb": self._errors.append,
        }
        if protocol.startswith("SASL"):
            if settings.sasl_username is None or settings.sasl_password is None:
                raise SourceNotUsable(
                    f"A kafka source with security_protocol {protocol} needs a login.",
                    "Set sasl_mechanism, sasl_username and sasl_password.",
                )
            client |= {
                "sasl.mechanism": settings.sasl_mechanism or "PLAIN",
                "sasl.username": settings.sasl_username,
                "sasl.password": settings.sasl_password.reveal(),
            }
        if protocol.endswith("SSL"):
            files = {
                "ssl.ca.location": settings.ssl_ca_file,
                "ssl.certificate.location": settings.ssl_certificate_file,
                "ssl.key.location": settings.ssl_key_file,
            }
            for file in filter(None, files.values()):
                if not os.access(file, os.R_OK):
                    raise SourceNotUsable(
                        f"The file '{file}' of a kafka source cannot be read.",
                        "Check ssl_ca_file, ssl_certificate_file and ssl_key_file.",
                    )
            client |= {name: file for name, file in files.items() if file is not None}
            if settings.ssl_key_password is not None:
                client["ssl.key.password"] = settings.ssl_key_password.reveal()
        return client

    def _not_usable(self, error: KafkaError) -> SourceNotUsable:
        text = self._text(error.str())
        if error.code() in (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED):
            return SourceNotUsable(
                f"Kafka at {self.address} rejected the login: {text}.",
                "Check sasl_mechanism, sasl_username and sasl_password.",
            )
        if error.code() == KafkaError._SSL:
            return SourceNotUsable(
                f"No encrypted connection to {self.address}: {text}.",
                "Check security_protocol and ssl_ca_file.",
            )
        if error.code() in NOT_ALLOWED:
            return SourceNotUsable(
                f"The user has no permission at {self.address}: {text}.",
                "Grant Describe on the topics and groups.",
            )
        if error.code() == KafkaError._INVALID_ARG:
            return SourceNotUsable(
                f"Invalid settings of a kafka source: {text}.", "Check them in lumos.yaml."
            )
        return SourceNotUsable(
            f"Cannot connect to {self.address}: {text}.",
            "Check bootstrap_servers, security_protocol, the network, and that Kafka is running.",
        )

    def _describe(self, problem: KafkaException) -> str:
        return self._text(problem.args[0].str())

    def _text(self, text: str) -> str:
        """The message of librdkafka in one line, without its prefix and without secrets."""
        text = _STATE.sub("", " ".join(text.split()))
        for secret in (self._settings.sasl_password, self._settings.ssl_key_password):
            if secret is not None and secret.reveal():
                text = text.replace(secret.reveal(), MASK)
        return redact(text).rstrip(".")


def _code(problem: KafkaException) -> str:
    code = problem.args[0].code()
    if code in NOT_ALLOWED:
        return "not_allowed"
    return "no_such_topic" if code == KafkaError.UNKNOWN_TOPIC_OR_PART else "unknown"


def _shown_configs(entries: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, entry in sorted(entries.items()):
        source = getattr(entry.source, "name", str(entry.source))
        is_own = not entry.is_default and "DYNAMIC_TOPIC" in source
        is_shown = (is_own or name in _SHOWN_CONFIGS) and not entry.is_sensitive
        if is_shown and entry.value is not None:
            yield name, str(entry.value)


def _bytes(value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return str(value).encode()


def _chunks(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))
