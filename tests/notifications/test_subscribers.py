"""Change events for programs: signed webhooks, Redis streams, Kafka topics."""

import base64
import json
import re
import socket
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lumos import Lumos
from lumos.config.secret import ConnectionString, Secret
from lumos.config.sources import KafkaSourceSettings
from lumos.config.subscribers import (
    KafkaSubscriber,
    RedisSubscriber,
    Subscriber,
    WebhookSubscriber,
)
from lumos.errors import LumosError
from lumos.http.client import TimeLimits
from lumos.model.change import ChangeEvent, EventType, Finding, TypeChanged, Verdict
from lumos.model.types import parse_type
from lumos.notifications.cloud_events import CloudEvent, to_cloud_event
from lumos.notifications.messages import subscribes_to
from lumos.notifications.subscribers import EventSink, WebhookSink, create_sink
from lumos.schemas.changes import event_report
from lumos.store import Store
from webhook import Webhook, webhook

AT = datetime(2024, 1, 10, 9, 30, 0, 250_000, tzinfo=UTC)
URN = 'lumos://file/lake/größe "50%" of'
KEY = "a-key-of-more-than-16-bytes"
DOCS = Path(__file__).parents[2] / "docs" / "AUTOMATIC_DETECTION.md"

pytestmark = pytest.mark.usefixtures("workplace")


@pytest.fixture
def hook() -> Iterator[Webhook]:
    with webhook() as opened:
        yield opened


def change(number: int = 1, **facts: Any) -> ChangeEvent:
    type_change = TypeChanged(path="id", before=parse_type("STRING"), after=parse_type("INT64"))
    finding = Finding(
        change=type_change, consumer=Verdict.BREAKING, storage=Verdict.BREAKING, rule="type"
    )
    defaults: dict[str, Any] = {
        "event_id": f"event-{number}",
        "urn": URN,
        "type": EventType.SCHEMA_CHANGED,
        "at": AT + timedelta(seconds=number),
        "cause": "scan",
        "cloud_version": f"S-{number}",
        "schema_version": "2.0.0",
        "findings": (finding,),
        "summary": "1 type changed: id STRING -> INT64",
    }
    return ChangeEvent(**{**defaults, **facts})


def record(lumos: Lumos, *events: ChangeEvent) -> Store:
    store = lumos.create_store()
    for each in events:
        with store.transaction() as transaction:
            transaction.save_event(each)
    return store


def cloud_event(number: int = 1) -> CloudEvent:
    store = record(Lumos(), change(number))
    report = event_report(store.change_log, change(number))
    return to_cloud_event(report, position=42, source="/lumos")


def webhook_settings(hook: Webhook, **facts: Any) -> WebhookSubscriber:
    defaults: dict[str, Any] = {"url": Secret(hook.url()), "secrets": (Secret(KEY),)}
    return WebhookSubscriber(**{**defaults, **facts})


def documented_verify() -> Any:
    """The function of the documentation that verifies a request."""
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    (block,) = (each for each in blocks if "def verify" in each)
    names: dict[str, Any] = {}
    exec(block, names)
    return names["verify"]


# Webhooks


def test_a_structured_request_is_a_cloud_event_and_passes_the_documented_verification(
    hook: Webhook,
) -> None:
    event = cloud_event()
    assert WebhookSink(webhook_settings(hook)).write(event) is None
    ((headers, body),) = hook.requests
    documented_verify()(headers, body, KEY.encode())
    assert headers["content-type"] == "application/cloudevents+json; charset=utf-8"
    sent = json.loads(body)
    assert sent.pop("data") == json.loads(event.data)
    assert sent == {
        "specversion": "1.0",
        "id": "event-1",
        "source": "/lumos",
        "type": "lumos.dataset.schema_changed",
        "subject": URN,
        "time": "2024-01-10T09:30:01.250000Z",
        "datacontenttype": "application/json",
        "sequence": "00000000000000000042",
        "breaking": True,
    }
    data = json.loads(event.data)
    assert (data["event_id"], data["urn"], data["format_version"]) == ("event-1", URN, "1.0")
    assert [each["consumer"] for each in data["changes"]] == ["breaking"]


def test_a_binary_request_has_its_attributes_in_ascii_headers(hook: Webhook) -> None:
    event = cloud_event()
    assert WebhookSink(webhook_settings(hook, mode="binary")).write(event) is None
    ((headers, body),) = hook.requests
    documented_verify()(headers, body, KEY.encode())
    assert (headers["content-type"], body) == ("application/json", event.data)
    attributes = {name: text for name, text in headers.items() if name.startswith("ce-")}
    assert attributes == {
        "ce-specversion": "1.0",
        "ce-id": "event-1",
        "ce-source": "/lumos",
        "ce-type": "lumos.dataset.schema_changed",
        "ce-subject": "lumos://file/lake/gr%C3%B6%C3%9Fe%20%2250%25%22%20of",
        "ce-time": "2024-01-10T09:30:01.250000Z",
        "ce-sequence": "00000000000000000042",
        "ce-breaking": "true",
    }


@pytest.mark.parametrize("changed", ["body", "key", "id", "timestamp", "old"])
def test_the_documented_verification_rejects_what_was_not_signed(
    hook: Webhook, changed: str
) -> None:
    now = time.time() - (400 if changed == "old" else 0)
    assert WebhookSink(webhook_settings(hook), now=lambda: now).write(cloud_event()) is None
    ((headers, body),) = hook.requests
    key = KEY.encode()
    match changed:
        case "body":
            body = body.replace(b"breaking", b"harmless")
        case "key":
            key = b"another key"
        case "id":
            headers["webhook-id"] = "event-2"
        case "timestamp":
            headers["webhook-timestamp"] = str(int(now) + 1)
    with pytest.raises(ValueError, match="too old" if changed == "old" else "wrong signature"):
        documented_verify()(headers, body, key)


def test_each_of_several_secrets_verifies_a_request(hook: Webhook) -> None:
    raw = b"0123456789abcdef0123456789abcdef"
    encoded = f"whsec_{base64.b64encode(raw).decode()}"
    sink = WebhookSink(webhook_settings(hook, secrets=(Secret(KEY), Secret(encoded))))
    assert sink.write(cloud_event()) is None
    ((headers, body),) = hook.requests
    for key in (KEY.encode(), raw):
        documented_verify()(headers, body, key)


def test_own_headers_are_sent_and_replace_no_signature(hook: Webhook) -> None:
    own = {"authorization": Secret("Bearer hush"), "webhook-id": Secret("forged")}
    assert WebhookSink(webhook_settings(hook, headers=own)).write(cloud_event()) is None
    ((headers, _),) = hook.requests
    assert (headers["authorization"], headers["webhook-id"]) == ("Bearer hush", "event-1")


def test_failures_of_a_webhook_are_reasons_without_its_address(hook: Webhook) -> None:
    sink = WebhookSink(webhook_settings(hook))
    for hook.status in (301, 401, 503):
        assert sink.write(cloud_event()) == f"the service answered {hook.status}"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = Secret(f"http://127.0.0.1:{silent.getsockname()[1]}/hush")
        limits = TimeLimits(connect=0.3, read=0.3)
        sink = WebhookSink(webhook_settings(hook, url=url), limits=limits)
        assert sink.write(cloud_event()) == "the service did not answer within 30 seconds"
    assert sink.write(cloud_event()) == "the service cannot be reached"


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        ({"url": Secret("ftp://hush")}, "not an HTTP address"),
        ({"secrets": (Secret("short"),)}, "at least 16 bytes"),
        ({"secrets": (Secret("whsec_hush!"),)}, "not base64"),
    ],
)
def test_webhooks_that_cannot_work_are_refused_without_quoting_secrets(
    facts: dict[str, Any], problem: str
) -> None:
    with webhook() as hook, pytest.raises(LumosError, match=problem) as refused:
        webhook_settings(hook, **facts)
    assert "hush" not in str(refused.value)
    assert "short" not in str(refused.value)


# From the change to the subscriber


def test_an_event_is_sent_once_and_tried_again_while_the_service_fails(
    hook: Webhook, workplace: Path
) -> None:
    lumos = lumos_with(workplace, f"hook: {{type: webhook, url: '{hook.url()}', secret: {KEY}}}")
    hook.status = 503
    record(lumos, change(1), change(2))
    wait_until_quiet(lumos)
    hook.status = 200
    assert lumos.notifications.send(all=True).sent == 2
    assert [each["id"] for each in hook.received] == ["event-1", "event-2"]
    first, second = (each["sequence"] for each in hook.received)
    assert first < second
    record(lumos, change(1))
    assert lumos.notifications.send(all=True).sent == 0
    (row,) = lumos.notifications.status().channels
    assert (row.channel, row.sent, row.pending) == ("subscriber:hook", 2, 0)


def test_a_test_event_says_that_nothing_has_changed(hook: Webhook, workplace: Path) -> None:
    lumos = lumos_with(workplace, f"hook: {{type: webhook, url: '{hook.url()}', secret: {KEY}}}")
    assert lumos.notifications.test("subscriber:hook").sent == 1
    ((headers, body),) = hook.requests
    documented_verify()(headers, body, KEY.encode())
    assert json.loads(body)["type"] == "lumos.test"


def test_an_event_that_was_deleted_from_the_log_is_reported(hook: Webhook, workplace: Path) -> None:
    lumos = lumos_with(workplace, f"hook: {{type: webhook, url: '{hook.url()}', secret: {KEY}}}")
    hook.status = 503
    store = record(lumos, change(1, type=EventType.MODIFIED, findings=()))
    wait_until_quiet(lumos)
    assert store.change_log.delete_modified(before=datetime.now(UTC), limit=10) == 1
    report = lumos.notifications.send(all=True)
    assert report.problems == {"subscriber:hook": "the event is no longer in the change log"}


def test_an_event_for_a_program_is_no_alert_of_people(hook: Webhook, workplace: Path) -> None:
    lumos = lumos_with(workplace, f"hook: {{type: webhook, url: '{hook.url()}', secret: {KEY}}}")
    store = record(lumos, change(1))
    hook.wait_for(1)
    assert store.notification_outbox.alerts(["event-1"]) == {}


BREAKING = frozenset({Verdict.BREAKING})


@pytest.mark.parametrize(
    ("wanted", "type", "verdicts", "sent"),
    [
        pytest.param({}, EventType.MODIFIED, frozenset(), True, id="everything by default"),
        pytest.param({}, EventType.SPLIT, frozenset(), True, id="splits too"),
        pytest.param({"events": (EventType.DELETED,)}, EventType.SPLIT, frozenset(), False, id="other type"),
        pytest.param({"verdicts": (Verdict.BREAKING,)}, EventType.SCHEMA_CHANGED, BREAKING, True, id="verdict"),
        pytest.param({"verdicts": (Verdict.COMPATIBLE,)}, EventType.SCHEMA_CHANGED, BREAKING, False, id="other verdict"),
        pytest.param({"verdicts": (Verdict.BREAKING,)}, EventType.CREATED, frozenset(), False, id="no verdict"),
        pytest.param({"verdicts": (Verdict.BREAKING,), "events": (EventType.CREATED,)}, EventType.CREATED, frozenset(), True, id="type without verdicts"),
    ],
)  # fmt: skip
def test_a_subscriber_gets_every_event_that_its_filters_select(
    wanted: dict[str, Any], type: EventType, verdicts: frozenset[Verdict], sent: bool
) -> None:
    subscriber = RedisSubscriber(url=ConnectionString("redis://host"), **wanted)
    assert subscribes_to(subscriber, type, verdicts) is sent


def test_datasets_filter_events(hook: Webhook, workplace: Path) -> None:
    lumos = lumos_with(
        workplace,
        f"hook: {{type: webhook, url: '{hook.url()}', secret: {KEY}, datasets: [orders]}}",
    )
    record(lumos, change(1), change(2, urn="lumos://file/lake/orders"))
    hook.wait_for(1)
    wait_until_quiet(lumos)
    assert [each["id"] for each in hook.received] == ["event-2"]


def test_secrets_of_subscribers_are_masked_and_their_mistakes_have_positions(
    workplace: Path,
) -> None:
    text = "hook: {type: webhook, url: 'https://h/hush-1', secret: hush-2-hush-2-hush-2, headers: {a: hush-3}}"
    lumos = lumos_with(workplace, text)
    shown = str(lumos.settings.to_masked_dict())
    assert "subscribers" in shown
    assert "hush" not in shown
    for wrong, problem in {
        "hook: {type: webhook, url: 'https://h'}": "needs 'secrets' or 'secret'",
        "hook: {type: pigeon}": "webhook",
        "hook: {url: 'https://h'}": "needs 'type', one of kafka, redis, webhook",
        "hook: {type: redis, url: 'http://h'}": "not a Redis URL",
        "hook: {type: kafka, topic: t}": "needs 'bootstrap_servers'",
    }.items():
        with pytest.raises(LumosError, match=re.escape(problem)):
            lumos_with(workplace, wrong)


def lumos_with(folder: Path, subscriber: str) -> Lumos:
    file = folder / "lumos.yaml"
    file.write_text(f"notifications:\n  subscribers:\n    {subscriber}\n")
    return Lumos(file)


def wait_until_quiet(lumos: Lumos) -> None:
    """Wait until the background thread has nothing left to send."""
    deadline = time.monotonic() + 30
    while lumos.notification_sender._running and time.monotonic() < deadline:
        time.sleep(0.02)


# One contract for all sinks


class OpenedSink(NamedTuple):
    """A sink, and a way to read what it wrote, as attributes and data."""

    settings: Subscriber
    read: Any

    def sink(self) -> EventSink:
        return create_sink(self.settings)


def _attributes(fields: dict[str, str], separator: str) -> dict[str, str]:
    start = f"ce{separator}"
    return {key.removeprefix(start): text for key, text in fields.items() if key.startswith(start)}


def _webhook_sink(mode: str, hook: Webhook) -> OpenedSink:
    def read() -> list[tuple[dict[str, Any], Any]]:
        found = []
        for headers, body in hook.requests:
            if mode == "binary":
                found.append((_attributes(headers, "-"), json.loads(body)))
            else:
                event = json.loads(body)
                found.append((event, event.pop("data")))
        return found

    return OpenedSink(webhook_settings(hook, mode=mode), read)


def _redis_sink(mode: str, url: str) -> OpenedSink:
    import redis

    stream = f"changes-{uuid.uuid4().hex}"
    client: Any = redis.Redis.from_url(url, protocol=2, decode_responses=True)

    def read() -> list[tuple[dict[str, Any], Any]]:
        found = []
        for _, fields in client.xrange(stream):
            if mode == "binary":
                found.append((_attributes(fields, "_"), json.loads(fields["data"])))
            else:
                event = json.loads(fields["event"])
                found.append((event, event.pop("data")))
        return found

    settings = RedisSubscriber(url=ConnectionString(url), stream=stream, mode=mode)  # type: ignore[arg-type]
    return OpenedSink(settings, read)


@pytest.fixture(scope="session")
def broker() -> Iterator[str]:
    from servers.kafka import kafka_broker

    with kafka_broker() as (address, _):
        yield address


def _kafka_sink(mode: str, address: str) -> OpenedSink:
    from confluent_kafka import Consumer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    topic = f"changes-{uuid.uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics([NewTopic(topic, num_partitions=1)]).values():
        future.result()

    def read() -> list[tuple[dict[str, Any], Any]]:
        consumer = Consumer({"bootstrap.servers": address, "group.id": "test"})
        partition = TopicPartition(topic, 0, 0)
        consumer.assign([partition])
        _, high = consumer.get_watermark_offsets(partition)
        found = []
        while len(found) < high:
            message = consumer.poll(10)
            assert message is not None
            assert message.error() is None
            assert message.key() == URN.encode()
            fields = {key: text.decode() for key, text in message.headers() or ()}  # type: ignore[union-attr]
            if mode == "binary":
                found.append((_attributes(fields, "_"), json.loads(message.value() or b"")))
            else:
                event = json.loads(message.value() or b"")
                found.append((event, event.pop("data")))
        consumer.close()
        return found

    cluster = KafkaSourceSettings(bootstrap_servers=(address,))
    return OpenedSink(KafkaSubscriber(topic=topic, mode=mode, cluster=cluster), read)  # type: ignore[arg-type]


@pytest.fixture(
    params=["webhook", "redis", pytest.param("kafka", marks=pytest.mark.slow)],
)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["structured", "binary"])
def opened(kind: str, request: pytest.FixtureRequest, hook: Webhook) -> OpenedSink:
    match kind:
        case "webhook":
            return _webhook_sink(request.param, hook)
        case "redis":
            return _redis_sink(request.param, request.getfixturevalue("redis_url"))
        case _:
            return _kafka_sink(request.param, request.getfixturevalue("broker"))


def test_events_arrive_in_order_with_all_attributes_and_data(opened: OpenedSink) -> None:
    sink = opened.sink()
    events = [cloud_event(number) for number in (1, 2, 3)]
    for each in events:
        assert sink.write(each) is None
    found = opened.read()
    assert [attributes["id"] for attributes, _ in found] == ["event-1", "event-2", "event-3"]
    for (attributes, data), event in zip(found, events, strict=True):
        assert data == json.loads(event.data)
        required = {"specversion", "id", "source", "type", "time", "sequence", "breaking"}
        assert required <= attributes.keys()
        assert (attributes["specversion"], attributes["type"]) == (
            "1.0",
            "lumos.dataset.schema_changed",
        )


@pytest.mark.parametrize("kind", ["redis", pytest.param("kafka", marks=pytest.mark.slow)])
def test_a_service_that_is_not_there_is_a_reason_without_its_address(kind: str) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings: Subscriber
    if kind == "redis":
        settings = RedisSubscriber(url=ConnectionString(f"redis://u:hush@127.0.0.1:{port}"))
    else:
        cluster = KafkaSourceSettings(bootstrap_servers=(f"127.0.0.1:{port}",))
        settings = KafkaSubscriber(topic="t", cluster=cluster)
    assert create_sink(settings).write(cloud_event()) == "the service cannot be reached"


def test_a_stream_is_bounded(redis_url: str) -> None:
    import redis

    stream = f"changes-{uuid.uuid4().hex}"
    sink = create_sink(
        RedisSubscriber(url=ConnectionString(redis_url), stream=stream, max_length=200)
    )
    event = cloud_event()
    for _ in range(1_000):
        assert sink.write(event) is None
    # Redis removes whole nodes of the stream, of 100 entries each.
    assert 200 <= redis.Redis.from_url(redis_url, protocol=2).xlen(stream) <= 300


def test_what_redis_refuses_is_quoted(redis_url: str) -> None:
    import redis

    stream = f"changes-{uuid.uuid4().hex}"
    redis.Redis.from_url(redis_url, protocol=2).set(stream, "text")
    sink = create_sink(RedisSubscriber(url=ConnectionString(redis_url), stream=stream))
    problem = sink.write(cloud_event())
    assert problem is not None
    assert problem.startswith("Redis answered: WRONGTYPE")


@pytest.mark.slow
def test_a_topic_that_kafka_refuses_is_a_reason(broker: str) -> None:
    cluster = KafkaSourceSettings(bootstrap_servers=(broker,))
    sink = create_sink(KafkaSubscriber(topic="not a topic", cluster=cluster))
    assert sink.write(cloud_event()) == "Kafka answered TOPIC_EXCEPTION"
