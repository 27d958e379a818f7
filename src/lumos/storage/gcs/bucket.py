"""One bucket of Google: listed and written by its JSON API, and obstore reads the bytes."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from obstore.store import GCSStore

from lumos.storage.errors import StorageFault
from lumos.storage.gcs.access import GcsAccess
from lumos.storage.gcs.credentials import GcsCredentials
from lumos.storage.gcs.pages import SOMEBODY_PAYS, error_of, page_of, page_query
from lumos.storage.http import Answer, Patience, Transport
from lumos.storage.objects.bucket import PAGE, Bucket, ByteStore, Page, client_options

if TYPE_CHECKING:
    from obstore.store import GCSCredential

_PAYER: Final = "x-goog-user-project"


class GcsBucket(Bucket):
    """A bucket as some access reaches it."""

    _credentials: GcsCredentials

    def __init__(
        self,
        name: str,
        access: GcsAccess,
        *,
        credentials: GcsCredentials,
        transport: Transport,
        patience: Patience,
    ) -> None:
        super().__init__(name, patience)
        self._access = access
        self._credentials = credentials
        self._transport = transport
        # Naming a project asks for rights in it, so it is done only where a bucket wants it.
        self._payer: Mapping[str, str] = {}

    def page(
        self,
        prefix: str,
        *,
        after: str = "",
        token: str = "",
        folders: bool = False,
        limit: int = PAGE,
    ) -> Page:
        query = page_query(prefix, after, token, folders=folders, limit=limit)
        with self._fuse.guarded():
            answer = self._asked("", query=query)
        return page_of(answer.body, after=after, limit=limit)

    def _asked(
        self,
        key: str,
        *,
        query: Mapping[str, str] = MappingProxyType({}),
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Answer:
        if key:
            return self._answered("GET", self._object(key), {"alt": "media"}, headers=headers)
        return self._answered("GET", self._objects, query, headers=headers)

    def put(self, key: str, data: bytes) -> None:
        query = {"uploadType": "media", "name": key}
        headers = {"Content-Type": "application/octet-stream"}
        self._answered("POST", f"/upload{self._objects}", query, headers=headers, body=data)

    def delete(self, keys: list[str]) -> None:
        self._each(self._removed, keys)

    def _removed(self, key: str) -> None:
        with suppress(FileNotFoundError):
            self._answered("DELETE", self._object(key), {})

    @property
    def _objects(self) -> str:
        return f"/storage/v1/b/{quote(self.name, safe='')}/o"

    def _object(self, key: str) -> str:
        return f"{self._objects}/{quote(key, safe='')}"

    def _answered(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        body: bytes = b"",
    ) -> Answer:
        asked = f"?{urlencode(query)}" if query else ""

        def to_send() -> Mapping[str, str]:
            token = self._credentials.current()
            login = {} if token is None else {"Authorization": f"Bearer {token.text}"}
            return {**headers, **login, **self._payer}

        answer = self._transport.send(
            method,
            f"{self._access.endpoint_url}{path}{asked}",
            headers=to_send,
            body=body,
            patience=self._patience,
        )
        if answer.status in (200, 204, 206):
            return answer
        problem = error_of(answer.status, answer.body)
        if problem.code == SOMEBODY_PAYS and self._access.project and not self._payer:
            self._payer = {_PAYER: self._access.project}
            return self._answered(method, path, query, headers=headers, body=body)
        raise self._without_secrets(problem)

    def _new_store(self) -> ByteStore:
        if self._access.project and not self._payer:
            # Whether somebody has to pay is told by any answer.
            with suppress(StorageFault):
                self.page("", limit=1)
        options = client_options()
        if self._payer:
            options["default_headers"] = dict(self._payer)
        return GCSStore(
            self.name,
            base_url=self._access.endpoint_url,
            skip_signature=self._access.anonymous,
            credential_provider=None if self._access.anonymous else self._credential,
            client_options=options,
            retry_config=self._retries(),
        )

    def _credential(self) -> "GCSCredential":
        found = self._credentials.current()
        assert found is not None, "anonymous access signs nothing"
        ends = None if found.expires is None else datetime.fromtimestamp(found.expires, UTC)
        return {"token": found.text, "expires_at": ends}
