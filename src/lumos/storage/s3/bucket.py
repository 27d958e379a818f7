"""One bucket of S3: signed requests, sent to wherever it turns out to lie."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from obstore.store import S3Store

from lumos.storage.errors import StorageFault, error_of
from lumos.storage.http import Answer, Patience, Transport
from lumos.storage.objects.bucket import PAGE, Bucket, Page, client_options
from lumos.storage.s3.access import S3Access
from lumos.storage.s3.credentials import CredentialSource
from lumos.storage.s3.pages import page_of, page_query
from lumos.storage.s3.signing import UNRESERVED, query_text, signed

if TYPE_CHECKING:
    from obstore.store import S3Credential

# Where a bucket is said to lie, and where it then turns out to.
_MOST_PLACES: Final = 2
_MOVED: Final = (301, 307, 400)


class S3Bucket(Bucket):
    """A bucket as some access reaches it."""

    _credentials: CredentialSource

    def __init__(
        self,
        name: str,
        access: S3Access,
        *,
        credentials: CredentialSource,
        transport: Transport,
        patience: Patience,
    ) -> None:
        super().__init__(name, patience)
        self._access = access
        self._credentials = credentials
        self._transport = transport
        # Where the bucket turned out to lie, whatever region was named.
        self.region = access.region
        self._is_located = False

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
        return page_of(answer.body, after=after)

    def _asked(
        self,
        key: str,
        *,
        query: Mapping[str, str] = MappingProxyType({}),
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Answer:
        return self._answered("GET", key, query=query, headers=headers)

    def put(self, key: str, data: bytes) -> None:
        if not self._would_be_seen():
            super().put(key, data)
        else:
            self._answered("PUT", key, body=data)

    def delete(self, keys: list[str]) -> None:
        if not self._would_be_seen():
            super().delete(keys)
            return
        self._each(partial(self._answered, "DELETE"), keys)

    def _would_be_seen(self) -> bool:
        # The token of a session has a header of its own, which stays where others are dropped.
        credentials = self._credentials.current()
        return credentials is not None and bool(credentials.token)

    def _answered(
        self,
        method: str,
        key: str,
        *,
        query: Mapping[str, str] = MappingProxyType({}),
        headers: Mapping[str, str] = MappingProxyType({}),
        body: bytes = b"",
    ) -> Answer:
        for _ in range(_MOST_PLACES):
            url = self._url(key, query)
            answer = self._transport.send(
                method,
                url,
                headers=partial(self._signed, method, url, headers, body),
                body=body,
                patience=self._patience,
            )
            self._is_located = True
            if answer.status in (200, 204, 206):
                return answer
            told = answer.headers.get("x-amz-bucket-region", "")
            problem = error_of(answer.status, answer.body, region=told)
            is_elsewhere = problem.region not in ("", self.region)
            if answer.status not in _MOVED or not is_elsewhere:
                break
            self.region = problem.region
        raise self._without_secrets(problem)

    def _url(self, key: str, query: Mapping[str, str]) -> str:
        bucket = self._access.bucket_url(self.name, self.region)
        path = f"/{quote(key, f'/{UNRESERVED}')}" if key or not urlsplit(bucket).path else ""
        return f"{bucket}{path}{f'?{query_text(query)}' if query else ''}"

    def _signed(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> Mapping[str, str]:
        credentials = self._credentials.current()
        if credentials is None:
            return headers
        return signed(
            headers,
            credentials,
            method=method,
            url=urlsplit(url),
            body=body,
            region=self._access.signing_region(self.region),
            service="s3",
        )

    def _new_store(self) -> S3Store:
        if self._access.is_aws and not self._is_located:
            # Any answer tells the region; that nothing may be listed says nothing about reading.
            with suppress(StorageFault):
                self.page("", limit=1)
        # obstore lets variables of the environment win unless everything is said in so many
        # words; what they mean was settled before, for obstore and for pages alike.
        return S3Store(
            self.name,
            aws_endpoint_url_s3=self._access.bucket_url(self.name, self.region),
            virtual_hosted_style_request=True,
            region=self._access.signing_region(self.region),
            skip_signature=self._access.anonymous,
            credential_provider=None if self._access.anonymous else self._credentials_for_obstore,
            client_options=client_options("AWS_CA_BUNDLE"),
            retry_config=self._retries(),
        )

    def _credentials_for_obstore(self) -> "S3Credential":
        found = self._credentials.current()
        assert found is not None, "anonymous access signs nothing"
        ends = None if found.expires is None else datetime.fromtimestamp(found.expires, UTC)
        return {
            "access_key_id": found.key_id,
            "secret_access_key": found.secret,
            "token": found.token or None,
            "expires_at": ends,
        }
