"""S3 buckets: signed requests, sent to the region of the bucket."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import quote, unquote_plus, urlsplit
from xml.etree import ElementTree

from obstore.store import S3Store

from lumos.http.client import MAX_RESPONSE_BYTES, HttpResponse
from lumos.http.retries import RetryPolicy
from lumos.storage.errors import StorageFault, error_from_response
from lumos.storage.http import STORAGE_RETRIES
from lumos.storage.objects.bucket import (
    PAGE_SIZE,
    ObjectBucket,
    ObjectEntry,
    ObjectPage,
    client_options,
    plain_etag,
)
from lumos.storage.objects.storage import ObjectStorage
from lumos.storage.s3.access import S3Access
from lumos.storage.s3.credentials import S3Credentials
from lumos.storage.s3.signing import UNRESERVED, query_text, sign_headers

if TYPE_CHECKING:
    from obstore.store import S3Credential

# A request is sent to the configured region, and then to the region in the response.
_MAX_REGIONS: Final = 2
_REDIRECT_STATUSES: Final = (301, 307, 400)
# The time for which obstore may use keys: botocore renews them ten minutes before they expire.
_KEY_LIFETIME: Final = timedelta(minutes=10)


class S3Bucket(ObjectBucket):
    """A bucket of S3."""

    _access: S3Access
    _credentials: S3Credentials
    _has_region = False

    @cached_property
    def region(self) -> str:
        """The configured region, until a response shows the actual region of the bucket."""
        return self._access.region

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
        return page_of(response.body, after=after)

    def _request(
        self,
        key: str,
        *,
        query: Mapping[str, str] = MappingProxyType({}),
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> HttpResponse:
        return self._send("GET", key, query=query, headers=headers)

    def put(self, key: str, data: bytes) -> None:
        if not self._leaks_on_redirect():
            super().put(key, data)
        else:
            self._send("PUT", key, body=data)

    def delete(self, keys: list[str]) -> None:
        if not self._leaks_on_redirect():
            super().delete(keys)
            return
        self._delete_each(partial(self._send, "DELETE"), keys)

    def _leaks_on_redirect(self) -> bool:
        # The session token is in a separate header, which HTTP clients also send after a redirect.
        keys = self._credentials.current()
        return keys is not None and bool(keys.token)

    def _send(
        self,
        method: str,
        key: str,
        *,
        query: Mapping[str, str] = MappingProxyType({}),
        headers: Mapping[str, str] = MappingProxyType({}),
        body: bytes = b"",
    ) -> HttpResponse:
        for _ in range(_MAX_REGIONS):
            url = self._url(key, query)
            response = self._http.send(
                method,
                url,
                headers=partial(self._signed_headers, method, url, headers, body),
                body=body,
                retries=self._retries,
                max_bytes=None if key else MAX_RESPONSE_BYTES,
            )
            self._has_region = True
            if response.status in (200, 204, 206):
                return response
            bucket_region = response.headers.get("x-amz-bucket-region", "")
            problem = error_from_response(response.status, response.body, region=bucket_region)
            is_other_region = problem.region not in ("", self.region)
            if response.status not in _REDIRECT_STATUSES or not is_other_region:
                break
            self.region = problem.region
        raise self._without_secrets(problem)

    def _url(self, key: str, query: Mapping[str, str]) -> str:
        bucket_url = self._access.bucket_url(self.name, self.region)
        path = f"/{quote(key, f'/{UNRESERVED}')}" if key or not urlsplit(bucket_url).path else ""
        return f"{bucket_url}{path}{f'?{query_text(query)}' if query else ''}"

    def _signed_headers(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> Mapping[str, str]:
        keys = self._credentials.current()
        if keys is None:
            return headers
        return sign_headers(
            headers,
            keys,
            method=method,
            url=urlsplit(url),
            body=body,
            region=self._access.signing_region(self.region),
        )

    def _new_store(self) -> S3Store:
        if self._access.is_aws and not self._has_region:
            # Any response contains the region, so errors are ignored: listing may be denied.
            with suppress(StorageFault):
                self.page("", limit=1)
        # Set all options, since obstore would otherwise read environment variables, although
        # `S3Access` has already resolved them.
        return S3Store(
            self.name,
            aws_endpoint_url_s3=self._access.bucket_url(self.name, self.region),
            virtual_hosted_style_request=True,
            region=self._access.signing_region(self.region),
            skip_signature=self._access.anonymous,
            credential_provider=None if self._access.anonymous else self._credentials_for_obstore,
            client_options=client_options("AWS_CA_BUNDLE"),
            retry_config=self._obstore_retries(),
        )

    def _credentials_for_obstore(self) -> "S3Credential":
        keys = self._credentials.current()
        assert keys is not None, "anonymous access has no keys"
        is_static = self._credentials.are_static
        return {
            "access_key_id": keys.key_id,
            "secret_access_key": keys.secret,
            "token": keys.token or None,
            "expires_at": None if is_static else datetime.now(UTC) + _KEY_LIFETIME,
        }


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def page_query(prefix: str, after: str, token: str, *, folders: bool, limit: int) -> dict[str, str]:
    """The query parameters that request a page."""
    return {
        "list-type": "2",
        "prefix": prefix,
        "max-keys": str(limit),
        "encoding-type": "url",
        **({"delimiter": "/"} if folders else {}),
        **({"continuation-token": token} if token else {}),
        **({"start-after": after} if after and not token else {}),
    }


def page_of(body: bytes, *, after: str) -> ObjectPage:
    """Parse the page in a response."""
    try:
        page = _page(body)
    except (ElementTree.ParseError, ValueError) as problem:
        raise StorageFault("the response is not from S3") from problem
    # Some servers ignore `start-after`; drop keys that were listed before.
    return page._replace(entries=[entry for entry in page.entries if entry.key > after])


def _page(body: bytes) -> ObjectPage:
    root = ElementTree.fromstring(body)
    if not root.tag.endswith("ListBucketResult"):
        raise ValueError(root.tag)
    # Servers use different XML namespaces, or none.
    namespace = root.tag.rpartition("}")[0]
    namespace = f"{namespace}}}" if namespace else ""
    is_encoded = root.findtext(f"{namespace}EncodingType") == "url"
    decode = unquote_plus if is_encoded else str
    entries = [
        ObjectEntry(
            decode(node.findtext(f"{namespace}Key", "")),
            int(node.findtext(f"{namespace}Size", "0")),
            (datetime.fromisoformat(node.findtext(f"{namespace}LastModified", "")) - _EPOCH)
            // timedelta(microseconds=1),
            plain_etag(node.findtext(f"{namespace}ETag", "")),
            node.findtext(f"{namespace}StorageClass", "").lower(),
        )
        for node in root.iter(f"{namespace}Contents")
    ]
    folders = [
        decode(node.findtext(f"{namespace}Prefix", ""))
        for node in root.iter(f"{namespace}CommonPrefixes")
    ]
    is_truncated = root.findtext(f"{namespace}IsTruncated") == "true"
    token = root.findtext(f"{namespace}NextContinuationToken", "") if is_truncated else ""
    return ObjectPage(entries, folders, token)


class S3Storage(ObjectStorage[S3Bucket]):
    """Paths are `s3://bucket/key`; keys are not encoded."""

    scheme: ClassVar[str] = "s3"
    list_permission: ClassVar[str] = "s3:ListBucket"
    ca_variable: ClassVar[str] = "AWS_CA_BUNDLE"
    access: S3Access

    def __init__(self, access: S3Access, *, retries: RetryPolicy = STORAGE_RETRIES) -> None:
        super().__init__(access.resolve(), retries)
        self._credentials = S3Credentials(self.access)

    def _new_bucket(self, name: str) -> S3Bucket:
        return S3Bucket(
            name, self.access, self._credentials, http_client=self._http, retries=self._retries
        )
