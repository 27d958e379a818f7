"""Google Cloud Storage: listed and written with its JSON API, read with obstore."""

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import quote, urlencode

from obstore.store import GCSStore

from lumos.http.client import MAX_RESPONSE_BYTES, HttpResponse
from lumos.http.retries import RetryPolicy
from lumos.storage.errors import StorageFault, fault_type
from lumos.storage.gcs.access import GcsAccess
from lumos.storage.gcs.credentials import GcsCredentials
from lumos.storage.http import STORAGE_RETRIES
from lumos.storage.objects.bucket import (
    PAGE_SIZE,
    ByteStore,
    ObjectBucket,
    ObjectEntry,
    ObjectPage,
    client_options,
)
from lumos.storage.objects.storage import ObjectStorage

if TYPE_CHECKING:
    from obstore.store import GCSCredential

_BILLED_PROJECT: Final = "x-goog-user-project"


class GcsBucket(ObjectBucket):
    """A bucket of Google Cloud Storage."""

    _access: GcsAccess
    _credentials: GcsCredentials
    # Only set if the bucket requires it, because billing a project needs permissions in it.
    _billing_header: Mapping[str, str] = MappingProxyType({})

    def page(
        self,
        prefix: str,
        *,
        after: str = "",
        token: str = "",
        folders: bool = False,
        limit: int = PAGE_SIZE,
    ) -> ObjectPage:
        query = page_query(prefix, after, token, folders=folders, limit=limit)
        with self._breaker.guard():
            response = self._request("", query=query)
        return page_of(response.body, after=after, limit=limit)

    def _request(
        self,
        key: str,
        *,
        query: Mapping[str, str] = MappingProxyType({}),
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> HttpResponse:
        if key:
            media = {"alt": "media"}
            return self._send("GET", self._object(key), media, headers=headers, max_bytes=None)
        return self._send("GET", self._objects, query, headers=headers)

    def put(self, key: str, data: bytes) -> None:
        query = {"uploadType": "media", "name": key}
        headers = {"Content-Type": "application/octet-stream"}
        self._send("POST", f"/upload{self._objects}", query, headers=headers, body=data)

    def delete(self, keys: list[str]) -> None:
        self._delete_each(self._remove, keys)

    def _remove(self, key: str) -> None:
        with suppress(FileNotFoundError):
            self._send("DELETE", self._object(key), {})

    @property
    def _objects(self) -> str:
        return f"/storage/v1/b/{quote(self.name, safe='')}/o"

    def _object(self, key: str) -> str:
        return f"{self._objects}/{quote(key, safe='')}"

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        body: bytes = b"",
        max_bytes: int | None = MAX_RESPONSE_BYTES,
    ) -> HttpResponse:
        query_string = f"?{urlencode(query)}" if query else ""

        def request_headers() -> Mapping[str, str]:
            token = self._credentials.current()
            login = {} if token is None else {"Authorization": f"Bearer {token.text}"}
            return {**headers, **login, **self._billing_header}

        response = self._http.send(
            method,
            f"{self._access.endpoint_url}{path}{query_string}",
            headers=request_headers,
            body=body,
            retries=self._retries,
            max_bytes=max_bytes,
        )
        if response.status in (200, 204, 206):
            return response
        problem = gcs_error(response.status, response.body)
        if problem.code == REQUESTER_PAYS and self._access.project and not self._billing_header:
            self._billing_header = {_BILLED_PROJECT: self._access.project}
            return self._send(method, path, query, headers=headers, body=body, max_bytes=max_bytes)
        raise self._without_secrets(problem)

    def _new_store(self) -> ByteStore:
        if self._access.project and not self._billing_header:
            # Send any request, to find out whether the requester pays for this bucket.
            with suppress(StorageFault):
                self.page("", limit=1)
        options = client_options()
        if self._billing_header:
            options["default_headers"] = dict(self._billing_header)
        return GCSStore(
            self.name,
            base_url=self._access.endpoint_url,
            skip_signature=self._access.anonymous,
            credential_provider=None if self._access.anonymous else self._credential_for_obstore,
            client_options=options,
            retry_config=self._obstore_retries(),
        )

    def _credential_for_obstore(self) -> "GCSCredential":
        token = self._credentials.current()
        assert token is not None, "anonymous access has no credentials"
        expires = None if token.expires is None else datetime.fromtimestamp(token.expires, UTC)
        return {"token": token.text, "expires_at": expires}


REQUESTER_PAYS: Final = "UserProjectMissing"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIELDS: Final = "items(name,size,updated,generation,storageClass),prefixes,nextPageToken"


def page_query(prefix: str, after: str, token: str, *, folders: bool, limit: int) -> dict[str, str]:
    """The query parameters that request a page.

    With `after`, one more key is requested, since Google's response includes the key `after`.
    """
    return {
        "prefix": prefix,
        "maxResults": str(limit + bool(after)),
        "fields": _FIELDS,
        **({"delimiter": "/"} if folders else {}),
        **({"startOffset": after} if after else {}),
        **({"pageToken": token} if token else {}),
    }


def page_of(body: bytes, *, after: str, limit: int) -> ObjectPage:
    """Parse the page in a response."""
    try:
        document = json.loads(body)
        entries = [_entry(item) for item in document.get("items", ())]
        folders = [str(prefix) for prefix in document.get("prefixes", ())]
        token = str(document.get("nextPageToken", ""))
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise StorageFault("the response is not from Google Cloud Storage") from problem
    entries_after = [entry for entry in entries if entry.key > after]
    return ObjectPage(entries_after[:limit] if limit == 1 else entries_after, folders, token)


def gcs_error(status: int, body: bytes) -> StorageFault:
    """The error in a response, as a single line."""
    message, reason = _message_and_reason(body)
    kind = fault_type(status)
    if "requester pays" in message:
        kind, reason = StorageFault, REQUESTER_PAYS
    text = f"{message or 'the request failed'} ({reason or f'status {status}'})"
    return kind(text, code=reason, status=status)


def _entry(item: dict[str, Any]) -> ObjectEntry:
    modified = (datetime.fromisoformat(item["updated"]) - _EPOCH) // timedelta(microseconds=1)
    # Every write creates a new generation, even with the same bytes.
    generation = str(item.get("generation", ""))
    storage_class = str(item.get("storageClass", "")).lower()
    return ObjectEntry(item["name"], int(item["size"]), modified, generation, storage_class)


def _message_and_reason(body: bytes) -> tuple[str, str]:
    try:
        error_json = json.loads(body)["error"]
        reasons = [error.get("reason", "") for error in error_json.get("errors", ())]
        return " ".join(str(error_json.get("message", "")).split()).rstrip("."), "".join(
            reasons[:1]
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return "", ""


class GcsStorage(ObjectStorage[GcsBucket]):
    """Paths are `gs://bucket/key`; keys are not encoded."""

    scheme: ClassVar[str] = "gs"
    list_permission: ClassVar[str] = "storage.objects.list"
    access: GcsAccess

    def __init__(self, access: GcsAccess, *, retries: RetryPolicy = STORAGE_RETRIES) -> None:
        super().__init__(access.resolve(), retries)
        self._credentials = GcsCredentials(self.access)

    def _new_bucket(self, name: str) -> GcsBucket:
        return GcsBucket(
            name, self.access, self._credentials, http_client=self._http, retries=self._retries
        )
