"""Storage events of Azure, which Event Grid sends to a queue of a storage account."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Final
from urllib.parse import quote, urlencode, urlsplit
from xml.etree import ElementTree

import msgspec

from lumos.config.sources import AzureSourceSettings
from lumos.http.client import HttpResponse
from lumos.sources.events.interface import (
    Backlog,
    EventSource,
    EventSourceFailed,
    ReceivedMessage,
)
from lumos.sources.events.messages import parse_message, read_message
from lumos.storage.azure.access import AzureAccess
from lumos.storage.azure.credentials import AzureCredentials, AzureRequest
from lumos.storage.errors import StorageFault, StorageMissing, error_from_response
from lumos.storage.http import STORAGE_RETRIES, storage_http_client

# A limit of Azure.
_MAX_MESSAGES: Final = 32
_LEASE_SECONDS: Final = 120
# Azure responds immediately, so an empty queue is polled again after this time.
_POLL_SECONDS: Final = 1.0
_CONCURRENCY: Final = 8
# Azure's default retention of messages, which Event Grid does not change.
_RETENTION_SECONDS: Final = 7 * 86_400.0
_ROLE: Final = "Storage Queue Data Message Processor"


class AzureQueue(EventSource):
    """A queue, given by its name or URL.

    Azure queues have no dead-letter queue, so malformed messages are deleted.
    """

    def __init__(self, queue: str, source: AzureSourceSettings) -> None:
        access = AzureAccess.of(source).resolve()
        if "://" in queue:
            self._url = queue.rstrip("/")
        else:
            self._url = f"https://{access.account}.queue.{access.suffix}/{queue}"
        self.name = self._url.rpartition("/")[2]
        host = urlsplit(self._url).hostname or ""
        account = host.partition(".")[0] if ".queue." in host else access.account
        if account != access.account:
            # The keys of the source are not valid for the account of the queue.
            access = msgspec.structs.replace(access, account=account, account_key="", sas_token="")
        self._credentials = AzureCredentials(access.with_keys(), account)
        self._http = storage_http_client()
        self._threads = ThreadPoolExecutor(_CONCURRENCY, thread_name_prefix="azure-queue")
        # The current pop receipt of each message: Azure replaces it with every change.
        self._pop_receipts: dict[str, str] = {}

    def open(self) -> None:
        self._approximate_count()
        self.lease_seconds = float(_LEASE_SECONDS)
        self.retention_seconds = _RETENTION_SECONDS

    def receive(self, wait: float) -> list[ReceivedMessage]:
        deadline = time.monotonic() + wait
        while True:
            messages = self._receive()
            if len(messages) == _MAX_MESSAGES:
                # More messages are probably waiting.
                futures = [self._threads.submit(self._receive) for _ in range(_CONCURRENCY - 1)]
                messages += [message for future in futures for message in future.result()]
            remaining = deadline - time.monotonic()
            if messages or remaining <= 0:
                return messages
            time.sleep(min(_POLL_SECONDS, remaining))

    def acknowledge(self, receipts: Sequence[str]) -> None:
        list(self._threads.map(self._delete, receipts))

    def keep(self, receipts: Sequence[str]) -> None:
        list(self._threads.map(self._extend, receipts))

    def backlog(self) -> Backlog:
        # The count of Azure includes messages that are being processed.
        held = len(self._pop_receipts)
        return Backlog(max(0, self._approximate_count() - held), held)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._http.close()

    def _receive(self) -> list[ReceivedMessage]:
        query = {"numofmessages": str(_MAX_MESSAGES), "visibilitytimeout": str(_LEASE_SECONDS)}
        response = self._call("GET", "/messages", query)
        try:
            nodes = list(ElementTree.fromstring(response.body).iter("QueueMessage"))
        except ElementTree.ParseError:
            raise EventSourceFailed(f"The response of {self._url} is not from Azure.") from None
        return [self._to_received(node) for node in nodes]

    def _to_received(self, node: ElementTree.Element) -> ReceivedMessage:
        id = node.findtext("MessageId", "")
        self._pop_receipts[id] = node.findtext("PopReceipt", "")
        body = node.findtext("MessageText", "")
        return read_message(
            id,
            partial(parse_message, body),
            sent_at=parsedate_to_datetime(node.findtext("InsertionTime", "")).timestamp(),
            delivery=int(node.findtext("DequeueCount", "1")),
        )

    def _delete(self, id: str) -> None:
        self._change("DELETE", id, {})
        self._pop_receipts.pop(id, None)

    def _extend(self, id: str) -> None:
        response = self._change("PUT", id, {"visibilitytimeout": str(_LEASE_SECONDS)})
        if response is not None:
            self._pop_receipts[id] = response.headers.get("x-ms-popreceipt", "")

    def _change(self, method: str, id: str, query: Mapping[str, str]) -> HttpResponse | None:
        """Change a message; None if its lease has expired, so that it is delivered again."""
        receipt = self._pop_receipts.get(id)
        if receipt is None:
            return None
        path = f"/messages/{quote(id, safe='')}"
        try:
            return self._send(method, path, {"popreceipt": receipt, **query})
        except StorageMissing:
            self._pop_receipts.pop(id, None)
            return None
        except StorageFault as problem:
            if problem.code == "PopReceiptMismatch":
                self._pop_receipts.pop(id, None)
                return None
            raise self._failed(problem) from None

    def _approximate_count(self) -> int:
        headers = self._call("GET", "", {"comp": "metadata"}).headers
        return int(headers.get("x-ms-approximate-messages-count", "0"))

    def _call(self, method: str, path: str, query: Mapping[str, str]) -> HttpResponse:
        try:
            return self._send(method, path, query)
        except StorageFault as problem:
            raise self._failed(problem) from None

    def _send(self, method: str, path: str, query: Mapping[str, str]) -> HttpResponse:
        url = f"{self._url}{path}?{urlencode(query, quote_via=quote)}"
        login = self._credentials.current()
        response = self._http.send(
            method,
            login.authenticate_url(url),
            headers=partial(login.headers, AzureRequest(method, url, {})),
            retries=STORAGE_RETRIES,
        )
        if response.status not in (200, 204):
            raise error_from_response(response.status, response.body)
        return response

    def _failed(self, problem: StorageFault) -> EventSourceFailed:
        text = self._credentials.mask_secrets(str(problem)).rstrip(".")
        message = f"The queue {self.name} cannot be used: {text}."
        if isinstance(problem, StorageMissing):
            return EventSourceFailed(f"{message} Create it, and let Event Grid send events to it.")
        if isinstance(problem, PermissionError):
            return EventSourceFailed(f"{message} Grant the role '{_ROLE}' on the queue.")
        return EventSourceFailed(message)
