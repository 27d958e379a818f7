"""Events of Google Cloud Storage, on a stub of Pub/Sub's published API."""

from collections.abc import Iterator

import pytest

from lumos.config.settings import StorageEventType
from lumos.config.sources import GcsSourceSettings
from lumos.http.retries import ONCE
from lumos.sources.events import EventSourceFailed
from lumos.sources.events.pubsub import PubSubSubscription
from servers.pubsub_contract_stub import SUBSCRIPTION, PubSubContractStub

SOURCE = GcsSourceSettings(buckets=("lake",), project="shop")


@pytest.fixture(params=[False, True], ids=["no dead letters", "dead letters"])
def stub(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PubSubContractStub]:
    with PubSubContractStub(dead_letters=request.param) as server:
        monkeypatch.setenv("PUBSUB_EMULATOR_HOST", server.url.removeprefix("http://"))
        yield server


def opened(subscription: str = SUBSCRIPTION) -> PubSubSubscription:
    source = PubSubSubscription(subscription, SOURCE)
    source.open()
    return source


def notification(key: str, type: str = "OBJECT_FINALIZE") -> dict[str, str]:
    return {
        "eventType": type,
        "bucketId": "lake",
        "objectId": key,
        "eventTime": "2024-01-10T09:29:59.5Z",
        "payloadFormat": "JSON_API_V1",
    }


def test_a_message_is_leased_kept_and_acknowledged(stub: PubSubContractStub) -> None:
    source = opened("lumos")
    assert (source.lease_seconds, source.retention_seconds) == (10, 604_800)
    stub.publish(notification("raw/a b.parquet"))
    stub.publish(notification("raw/c", "OBJECT_DELETE"))
    first, second = source.receive(1)
    assert [(event.path, event.type) for each in (first, second) for event in each.events] == [
        ("gs://lake/raw/a b.parquet", StorageEventType.CREATED),
        ("gs://lake/raw/c", StorageEventType.DELETED),
    ]
    assert first.sent_at is not None
    stub.clock = 9
    source.keep([first.receipt])
    stub.clock = 11
    # The lease of the second one has expired.
    (again,) = source.receive(1)
    assert again.events == second.events
    source.acknowledge([first.receipt, again.receipt])
    stub.clock = 100
    assert source.receive(1) == []
    assert stub.waiting == 0


def test_messages_of_other_kinds_are_ignored(stub: PubSubContractStub) -> None:
    source = opened()
    stub.publish(notification("raw/a", "OBJECT_METADATA_UPDATE"))
    (message,) = source.receive(1)
    assert (message.outcome, message.events) == ("ignored", ())


def test_malformed_messages_become_dead_letters_or_are_deleted(stub: PubSubContractStub) -> None:
    source = opened()
    stub.publish({"hello": "world"})
    for _ in range(10):
        rejected = source.receive(1)
        assert all(each.outcome == "malformed" for each in rejected)
        source.reject(rejected)
    assert stub.waiting == 0
    assert len(stub.dead) == stub._dead_letters


@pytest.mark.parametrize(
    ("subscription", "denied", "words"),
    [
        ("projects/shop/subscriptions/other", False, "Resource not found.*Create it"),
        (SUBSCRIPTION, True, r"not authorized.*Grant roles/pubsub\.subscriber"),
        ("shop/lumos", False, "is not a subscription"),
    ],
)
def test_what_is_wrong_is_said_with_the_next_step(
    stub: PubSubContractStub, subscription: str, denied: bool, words: str
) -> None:
    stub.denied = denied
    with pytest.raises(EventSourceFailed, match=words):
        opened(subscription)


def test_a_server_that_is_not_there_fails_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", "127.0.0.1:9")
    source = PubSubSubscription(SUBSCRIPTION, SOURCE, retries=ONCE)
    with pytest.raises(EventSourceFailed, match=r"127\.0\.0\.1:9"):
        source.open()
