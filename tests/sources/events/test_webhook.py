"""Events that MinIO sends to a webhook of the watcher."""

import http.client
import json
import socket
import threading
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lumos.config.secret import Secret
from lumos.config.settings import EventWebhook, StorageEventType, WatchedSource
from lumos.config.sources import S3SourceSettings
from lumos.errors import MisuseError
from lumos.sources.events import EventSourceFailed
from lumos.sources.events import webhook as webhook_module
from lumos.sources.events.factory import create_event_sources
from lumos.sources.events.messages import MAX_MESSAGE_BYTES
from lumos.sources.events.webhook import WebhookEvents

TOKEN = "hush-hush-token"


@contextmanager
def opened(folder: Path, *, token: str | None = TOKEN) -> Iterator[WebhookEvents]:
    settings = EventWebhook(listen="127.0.0.1:0", token=Secret(token) if token else None)
    source = WebhookEvents(settings, folder)
    source.open()
    try:
        yield source
    finally:
        source.close()


def message(key: str, name: str = "s3:ObjectCreated:Put") -> bytes:
    """What MinIO sends for one object."""
    record = {"eventName": name, "eventTime": "2024-01-10T09:30:00.000Z",
              "s3": {"bucket": {"name": "lake"}, "object": {"key": key}}}  # fmt: skip
    return json.dumps({"EventName": name, "Key": f"lake/{key}", "Records": [record]}).encode()


def post(source: WebhookEvents, body: bytes, token: str | None = f"Bearer {TOKEN}") -> int:
    headers = {} if token is None else {"Authorization": token}
    request = urllib.request.Request(
        f"http://127.0.0.1:{source.port}/", data=body, headers=headers, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return int(response.status)
    except urllib.error.HTTPError as refused:
        return refused.code
    except urllib.error.URLError as broken:
        # A server that does not read the whole request may close the connection first.
        if not isinstance(broken.reason, ConnectionError):
            raise
        return 0


def test_a_message_is_confirmed_delivered_and_deleted_after_its_effect_is_stored(
    tmp_path: Path,
) -> None:
    with opened(tmp_path) as source:
        assert post(source, message("datasets/a%20b.parquet")) == 200
        (received,) = source.receive(1)
        assert [(each.path, each.type) for each in received.events] == [
            ("s3://lake/datasets/a b.parquet", StorageEventType.CREATED)
        ]
        assert source.receive(0) == []
        assert source.backlog() == (0, 1, None)
        source.acknowledge([received.receipt])
        assert source.backlog() == (0, 0, None)


def test_a_watcher_that_is_killed_gets_unfinished_messages_again(tmp_path: Path) -> None:
    with opened(tmp_path) as source:
        for key in ("a", "b", "c"):
            assert post(source, message(key)) == 200
        first, *_ = source.receive(1)
        source.acknowledge([first.receipt])
    # The file belongs to the address, whatever port the system chose for it.
    with opened(tmp_path) as source:
        again = [event.path for each in source.receive(1) for event in each.events]
        assert again == ["s3://lake/b", "s3://lake/c"]


@pytest.mark.parametrize(
    ("token", "status"),
    [
        pytest.param(f"Bearer {TOKEN}", 200, id="as MinIO sends it"),
        pytest.param(TOKEN, 200, id="the token alone"),
        pytest.param("Bearer other", 401, id="another token"),
        pytest.param("", 401, id="empty"),
        pytest.param(None, 401, id="none"),
        pytest.param("Bearer \xfc", 401, id="not ASCII"),
    ],
)
def test_only_requests_with_the_token_are_accepted(
    tmp_path: Path, token: str | None, status: int
) -> None:
    with opened(tmp_path) as source:
        assert post(source, message("a"), token) == status
        assert len(source.receive(0)) == (status == 200)


def test_without_a_token_only_this_machine_is_listened_to(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "192.168.1.4", "lumos.example.com"):
        with pytest.raises(MisuseError, match="Set 'token', or listen on 127"):
            EventWebhook(listen=f"{host}:8870")
        EventWebhook(listen=f"{host}:8870", token=Secret(TOKEN))
    with opened(tmp_path, token=None) as source:
        assert post(source, message("a"), None) == 200


def test_requests_that_are_no_messages_do_no_harm(tmp_path: Path) -> None:
    with opened(tmp_path) as source:
        head = urllib.request.Request(f"http://127.0.0.1:{source.port}/", method="HEAD")
        with urllib.request.urlopen(head, timeout=30) as response:
            assert response.status == 200
        assert post(source, b"x" * (MAX_MESSAGE_BYTES + 1)) in (413, 0)
        with socket.create_connection(("127.0.0.1", source.port)) as broken:
            broken.sendall(b"POST / HTTP/1.1\r\nContent-Length: 9\r\n")
        assert post(source, b"hello") == 200
        (malformed,) = source.receive(1)
        assert (malformed.outcome, malformed.reason) == ("malformed", "1, not JSON")
        source.reject([malformed])
        assert source.backlog() == (0, 0, None)


def test_minio_keeps_its_events_while_too_many_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_module, "_MAX_QUEUED", 2)
    with opened(tmp_path) as source:
        assert [post(source, message(key)) for key in "abc"] == [200, 200, 503]
        source.acknowledge([each.receipt for each in source.receive(1)])
        assert post(source, message("c")) == 200


def test_minio_does_not_go_on_to_send_to_a_watcher_that_was_closed(tmp_path: Path) -> None:
    with opened(tmp_path) as source:
        connection = http.client.HTTPConnection("127.0.0.1", source.port, timeout=30)

        def send() -> http.client.HTTPResponse:
            connection.request("POST", "/", message("a"), {"Authorization": f"Bearer {TOKEN}"})
            response = connection.getresponse()
            response.read()
            return response

        assert (send().status, connection.sock is None) == (200, False)
        source.close()
        # The connection has outlived the watcher, and MinIO opens the next one to its successor.
        assert (send().status, connection.sock is None) == (503, True)


def test_messages_of_many_connections_are_all_kept(tmp_path: Path) -> None:
    with opened(tmp_path) as source:

        def send(start: int) -> None:
            for number in range(start, start + 25):
                assert post(source, message(f"k{number}")) == 200

        threads = [threading.Thread(target=send, args=(start,)) for start in range(0, 200, 25)]
        for each in threads:
            each.start()
        paths: set[str] = set()
        while len(paths) < 200:
            received = source.receive(30)
            assert received
            paths |= {event.path for each in received for event in each.events}
        for each in threads:
            each.join()
    assert paths == {f"s3://lake/k{number}" for number in range(200)}


def test_an_address_in_use_is_explained(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        source = WebhookEvents(EventWebhook(listen=listen), tmp_path)
        with pytest.raises(EventSourceFailed, match=r"Cannot listen on 127.*event_webhook\.listen"):
            source.open()


def test_sources_of_one_webhook_share_it_and_need_a_local_folder(tmp_path: Path) -> None:
    webhook = EventWebhook(listen="127.0.0.1:8870")
    watched = [
        WatchedSource(
            source=S3SourceSettings(buckets=(name,)), watch_mode="events", event_webhook=webhook
        )
        for name in ("a", "b")
    ]
    ((source, shared),) = create_event_sources(watched, state=str(tmp_path))
    assert (source.name, shared) == ("webhook 127.0.0.1:8870", watched)
    with pytest.raises(MisuseError, match=r"Set event_webhook\.folder"):
        list(create_event_sources(watched, state="s3://bucket/state"))


@pytest.mark.slow
def test_minio_sends_the_events_of_a_bucket_and_those_of_a_time_without_watcher(
    tmp_path: Path,
) -> None:
    import boto3

    from servers.minio import KEY, SECRET, minio

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = EventWebhook(listen=f"127.0.0.1:{port}", token=Secret(TOKEN))
    with minio(webhook=f"http://127.0.0.1:{port}/events", token=TOKEN) as (endpoint, arn):
        source = WebhookEvents(settings, tmp_path)
        source.open()
        s3 = boto3.client("s3", "us-east-1", endpoint_url=endpoint,
                          aws_access_key_id=KEY, aws_secret_access_key=SECRET)  # fmt: skip
        bucket = f"b{uuid.uuid4().hex}"
        s3.create_bucket(Bucket=bucket)
        rule = {"Key": {"FilterRules": [{"Name": "prefix", "Value": "datasets/"}]}}
        s3.put_bucket_notification_configuration(
            Bucket=bucket,
            NotificationConfiguration={
                "QueueConfigurations": [
                    {"Id": "lumos", "QueueArn": arn, "Filter": rule,
                     "Events": ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]}
                ]
            },
        )  # fmt: skip

        def expect(count: int) -> list[tuple[str, str]]:
            found: list[tuple[str, str]] = []
            while len(found) < count:
                received = source.receive(60)
                assert received, found
                found += [(e.path, e.type.value) for each in received for e in each.events]
                source.acknowledge([each.receipt for each in received])
            return sorted(found)

        s3.put_object(Bucket=bucket, Key="datasets/größe 1+1/a.parquet", Body=b"1")
        s3.put_object(Bucket=bucket, Key="elsewhere/b.parquet", Body=b"2")
        s3.delete_object(Bucket=bucket, Key="datasets/größe 1+1/a.parquet")
        path = f"s3://{bucket}/datasets/größe 1+1/a.parquet"
        assert expect(2) == [(path, "ObjectCreated"), (path, "ObjectDeleted")]
        source.close()
        for number in range(3):
            s3.put_object(Bucket=bucket, Key=f"datasets/late-{number}", Body=b"3")
        source = WebhookEvents(settings, tmp_path)
        source.open()
        assert [name.rpartition("/")[2] for name, _ in expect(3)] == ["late-0", "late-1", "late-2"]
        source.close()
