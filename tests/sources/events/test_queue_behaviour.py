"""What a real queue does with messages: leases, dead letters, two consumers; on ElasticMQ."""

import json
import time
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from lumos.config.secret import Secret
from lumos.config.sources import S3SourceSettings
from lumos.sources.events import sqs as queues
from lumos.sources.events.sqs import SqsQueue
from servers.elasticmq import elasticmq

pytestmark = pytest.mark.slow

SECTION = S3SourceSettings(
    buckets=("lake",), access_key_id=Secret("key-id"), secret_access_key=Secret("hush-hush")
)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with elasticmq() as address:
        yield address


@pytest.fixture
def client(server: str) -> Any:
    return boto3.client("sqs", "us-east-1", endpoint_url=server,
                        aws_access_key_id="key-id", aws_secret_access_key="hush-hush")  # fmt: skip


@pytest.fixture
def urls(client: Any, request: pytest.FixtureRequest) -> tuple[str, str]:
    """A queue, and the one for messages that were delivered twice."""
    name = f"q{abs(hash(request.node.name))}"
    dead = client.create_queue(QueueName=f"{name}-dead")["QueueUrl"]
    arn = client.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]
    policy = json.dumps({"deadLetterTargetArn": arn["QueueArn"], "maxReceiveCount": 2})
    attributes = {"RedrivePolicy": policy}
    return client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"], dead


def opened(url: str) -> SqsQueue:
    queue = SqsQueue(url, SECTION)
    queue.open()
    return queue


def send(client: Any, url: str, count: int) -> None:
    for number in range(count):
        record = {"eventName": "ObjectCreated:Put",
                  "s3": {"bucket": {"name": "lake"}, "object": {"key": f"{number}.csv"}}}  # fmt: skip
        client.send_message(QueueUrl=url, MessageBody=json.dumps({"Records": [record]}))


def receive_all(queue: SqsQueue, seconds: float = 10.0) -> list[Any]:
    found, deadline = [], time.monotonic() + seconds
    while time.monotonic() < deadline and (more := queue.receive(1)):
        found += more
    return found


def test_a_message_comes_again_after_its_lease_unless_it_is_kept(
    client: Any, urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "_LEASE_SECONDS", 3)
    send(client, urls[0], 2)
    queue = opened(urls[0])
    kept, lost = receive_all(queue)
    deadline = time.monotonic() + 6
    again: list[Any] = []
    while time.monotonic() < deadline and not again:
        queue.keep([kept.receipt])
        again += queue.receive(1)
    assert [each.events for each in again] == [lost.events]
    assert again[0].delivery == 2


def test_a_malformed_message_ends_among_the_dead_letters_and_the_others_do_not(
    client: Any, urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "_REJECTED_SECONDS", 1)
    client.send_message(QueueUrl=urls[0], MessageBody="hello")
    send(client, urls[0], 3)
    queue = opened(urls[0])
    deadline = time.monotonic() + 30
    done = 0
    while time.monotonic() < deadline and queue.backlog() != (0, 0, 1):
        for message in queue.receive(1):
            if message.outcome == "malformed":
                queue.reject([message])
            else:
                queue.acknowledge([message.receipt])
                done += 1
    assert done == 3
    assert queue.backlog() == (0, 0, 1)


def test_two_consumers_share_a_queue(client: Any, urls: tuple[str, str]) -> None:
    send(client, urls[0], 200)
    one, two = opened(urls[0]), opened(urls[0])
    paths: list[str] = []
    while found := [*one.receive(1), *two.receive(1)]:
        paths += [each.events[0].path for each in found]
        one.acknowledge([each.receipt for each in found])
    assert sorted(paths) == sorted(f"s3://lake/{number}.csv" for number in range(200))


def test_a_purged_queue_is_empty_and_stays_usable(client: Any, urls: tuple[str, str]) -> None:
    send(client, urls[0], 5)
    queue = opened(urls[0])
    client.purge_queue(QueueUrl=urls[0])
    assert receive_all(queue, 2) == []
    send(client, urls[0], 1)
    assert len(receive_all(queue)) == 1
