"""Events of Azure in a storage queue, on Microsoft's emulator."""

import base64
import json
import uuid
from collections.abc import Iterator
from typing import NamedTuple
from xml.sax.saxutils import escape

import pytest

from lumos.config.secret import Secret
from lumos.config.settings import StorageEventType
from lumos.config.sources import AzureSourceSettings
from lumos.http.client import HttpResponse
from lumos.sources.events import EventSourceFailed, azure_queue
from lumos.sources.events.azure_queue import AzureQueue
from lumos.storage.azure.credentials import AzureRequest, SharedKey
from lumos.storage.http import storage_http_client
from servers.azurite import ACCOUNT, KEY, azurite_queues

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with azurite_queues() as address:
        yield address


class MadeQueue(NamedTuple):
    """A queue, and how to put messages into it."""

    url: str

    def request(self, method: str, path: str = "", body: bytes = b"") -> HttpResponse:
        url = f"{self.url}{path}"
        given = {"content-length": str(len(body)) if body else ""}
        if body:
            given["content-type"] = "application/xml"
        signed = SharedKey(ACCOUNT, KEY).headers(AzureRequest(method, url, given))
        headers = {name: value for name, value in signed.items() if name != "content-length"}
        return storage_http_client().send(method, url, headers=lambda: headers, body=body)

    def send(self, text: str) -> None:
        body = f"<QueueMessage><MessageText>{escape(text)}</MessageText></QueueMessage>".encode()
        assert self.request("POST", "/messages", body).status == 201

    def count(self) -> int:
        headers = self.request("GET", "?comp=metadata").headers
        return int(headers["x-ms-approximate-messages-count"])


@pytest.fixture
def queue(endpoint: str) -> MadeQueue:
    made = MadeQueue(f"{endpoint}/q{uuid.uuid4().hex[:20]}")
    assert made.request("PUT").status == 201
    return made


def source(url: str, key: str = KEY) -> AzureQueue:
    settings = AzureSourceSettings(buckets=("lake",), account=ACCOUNT, account_key=Secret(key))
    return AzureQueue(url, settings)


@pytest.fixture
def opened(queue: MadeQueue) -> Iterator[AzureQueue]:
    found = source(queue.url)
    found.open()
    yield found
    found.close()


def event(key: str, type: str = "Microsoft.Storage.BlobCreated") -> str:
    """A message as Event Grid writes it: base64 of its schema."""
    facts = {
        "topic": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/x",
        "subject": f"/blobServices/default/containers/lake/blobs/{key}",
        "eventType": type,
        "eventTime": "2024-01-10T09:30:00.1234567Z",
        "id": uuid.uuid4().hex,
        "data": {"api": "PutBlob", "url": f"https://{ACCOUNT}.blob.core.windows.net/lake/{key}"},
        "dataVersion": "",
        "metadataVersion": "1",
    }
    return base64.b64encode(json.dumps(facts).encode()).decode()


def test_a_message_is_leased_and_deleted_after_its_effect_is_stored(
    queue: MadeQueue, opened: AzureQueue
) -> None:
    queue.send(event("raw/größe 1/a.parquet"))
    queue.send(event("raw/b", "Microsoft.Storage.BlobDeleted"))
    received = opened.receive(5)
    root = f"abfss://lake@{ACCOUNT}.dfs.core.windows.net"
    assert sorted((each.path, each.type) for message in received for each in message.events) == [
        (f"{root}/raw/b", StorageEventType.DELETED),
        (f"{root}/raw/größe 1/a.parquet", StorageEventType.CREATED),
    ]
    assert all(each.sent_at and each.delivery == 1 for each in received)
    assert opened.receive(0) == []
    opened.keep([each.receipt for each in received])
    # Keeping changed what deletes them.
    opened.acknowledge([each.receipt for each in received])
    assert queue.count() == 0


def test_a_lease_that_has_expired_delivers_the_message_again(
    queue: MadeQueue, opened: AzureQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(azure_queue, "_LEASE_SECONDS", 1)
    queue.send(event("raw/a"))
    (first,) = opened.receive(5)
    other = source(queue.url)
    (second,) = other.receive(10)
    assert (second.events, second.delivery) == (first.events, 2)
    # The first watcher has lost it: that is no failure, and deletes nothing.
    opened.acknowledge([first.receipt])
    opened.keep([first.receipt])
    assert queue.count() == 1
    other.acknowledge([second.receipt])
    assert queue.count() == 0
    other.close()


def test_many_messages_are_received_at_once(queue: MadeQueue, opened: AzureQueue) -> None:
    for number in range(100):
        queue.send(event(f"raw/{number}"))
    found: set[str] = set()
    while len(found) < 100:
        received = opened.receive(10)
        assert received
        found |= {each.receipt for each in received}
        assert opened.backlog().in_progress == len(received)
        opened.acknowledge([each.receipt for each in received])
    assert opened.backlog() == (0, 0, None)


def test_a_malformed_message_is_deleted(queue: MadeQueue, opened: AzureQueue) -> None:
    queue.send("hello <world>")
    (message,) = opened.receive(5)
    assert message.outcome == "malformed"
    opened.reject([message])
    assert queue.count() == 0


def test_what_is_wrong_is_said_with_the_next_step(queue: MadeQueue) -> None:
    with pytest.raises(EventSourceFailed, match=r"QueueNotFound.*let Event Grid send"):
        source(f"{queue.url}x").open()
    wrong = base64.b64encode(b"hush-hush" * 7).decode()
    with pytest.raises(EventSourceFailed, match="Storage Queue Data Message Processor") as refused:
        source(queue.url, wrong).open()
    assert wrong not in str(refused.value)


def test_the_url_of_a_name_and_the_keys_of_another_account() -> None:
    assert source("events")._url == f"https://{ACCOUNT}.queue.core.windows.net/events"
    other = source("https://other.queue.core.windows.net/events")
    assert KEY not in repr(other._credentials._access)
    assert other._credentials._access.account_key == ""
