"""One bucket: pages of its keys, and the bytes below them.

obstore moves the bytes. Pages are asked for here, since obstore lists no range of keys, and fails
for a whole page that holds a single key such as `a//b`.
"""

import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, unquote_plus, urlsplit
from xml.etree import ElementTree

from obstore.exceptions import BaseError
from obstore.store import S3Store

from lumos.storage.s3.access import S3Access
from lumos.storage.s3.credentials import CredentialSource
from lumos.storage.s3.errors import S3Error, error_in, error_of
from lumos.storage.s3.fuse import Fuse
from lumos.storage.s3.ranges import LAST
from lumos.storage.s3.signing import UNRESERVED, query_text, signed
from lumos.storage.s3.transport import Answer, Patience, Transport

if TYPE_CHECKING:
    from obstore import GetOptions
    from obstore.store import ClientConfig, S3Credential

PAGE: Final = 1000
# Where a bucket is said to lie, and where it then turns out to.
_MOST_PLACES: Final = 2
_MOVED: Final = (301, 307, 400)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


class Entry(NamedTuple):
    """A key as a page lists it."""

    key: str
    size: int
    modified: int
    etag: str
    storage_class: str


class Page(NamedTuple):
    """Some keys and, where they were asked for, folders; `token` asks for those that follow."""

    entries: list[Entry]
    folders: list[str]
    token: str

    @property
    def last(self) -> str:
        """The text up to which the page tells everything."""
        ends = [entry.key for entry in self.entries[-1:]]
        return max([*ends, *(f"{folder}{LAST}" for folder in self.folders[-1:])], default="")


class Piece(NamedTuple):
    """Some bytes of an object, and what the answer says of the whole."""

    data: bytes
    size: int
    etag: str


class Range(NamedTuple):
    """Which bytes of an object: those before `end`, or the last ones where `start` is negative."""

    start: int
    end: int | None = None

    @property
    def header(self) -> str:
        """The range as HTTP spells it."""
        return f"bytes={self.start}" + ("" if self.end is None else f"-{self.end - 1}")


class Bucket:
    """A bucket as some access reaches it; may be used by many threads."""

    def __init__(
        self,
        name: str,
        access: S3Access,
        *,
        credentials: CredentialSource,
        transport: Transport,
        patience: Patience,
    ) -> None:
        self.name = name
        self._access = access
        self._credentials = credentials
        self._transport = transport
        self._patience = patience
        # Where the bucket turned out to lie, whatever region was named.
        self.region = access.region
        self._is_located = False
        self._opened: S3Store | None = None
        self._lock = threading.Lock()
        self._fuse = Fuse()

    def page(
        self,
        prefix: str,
        *,
        after: str = "",
        token: str = "",
        folders: bool = False,
        limit: int = PAGE,
    ) -> Page:
        """The first keys with a prefix that sort after a text, or those that a token stands for."""
        query = {
            "list-type": "2",
            "prefix": prefix,
            "max-keys": str(limit),
            "encoding-type": "url",
            **({"delimiter": "/"} if folders else {}),
            **({"continuation-token": token} if token else {}),
            **({"start-after": after} if after and not token else {}),
        }
        with self._fuse.guarded():
            answer = self._asked("", query=query)
        try:
            page = _page(answer.body)
        except (ElementTree.ParseError, ValueError) as problem:
            raise S3Error("the endpoint does not answer as S3 does") from problem
        # Some servers know no beginning; what they list again must not count twice.
        return page._replace(entries=[entry for entry in page.entries if entry.key > after])

    def pages(self, prefix: str, *, after: str = "", folders: bool = False) -> Iterator[Page]:
        """All keys with a prefix that sort after a text."""
        page = self.page(prefix, after=after, folders=folders)
        yield page
        while page.token:
            page = self.page(prefix, token=page.token, folders=folders)
            yield page

    def get(self, key: str, wanted: Range | None = None, *, etag: str = "") -> Piece:
        """An object or some bytes of it; `etag` refuses it where it has changed since."""
        with self._fuse.guarded():
            return (self._get if is_plain(key) else self._get_odd)(key, wanted, etag)

    def _get(self, key: str, wanted: Range | None, etag: str) -> Piece:
        options: GetOptions = {"if_match": f'"{etag}"'} if etag else {}
        if wanted is not None and wanted.end is None:
            options["range"] = {"suffix": -wanted.start}
        elif wanted is not None and wanted.end is not None:
            options["range"] = (wanted.start, wanted.end)
        try:
            result = self._store().get(key, options=options)
            data = bytes(result.bytes())
        except (BaseError, FileNotFoundError) as problem:
            raise self._scrubbed(error_in(str(problem))) from None
        facts = result.meta
        return Piece(data, facts["size"], _bare(facts["e_tag"] or ""))

    def put(self, key: str, data: bytes) -> None:
        """Writes an object, at once."""
        try:
            self._store().put(_writable(key), data)
        except (BaseError, FileNotFoundError) as problem:
            raise self._scrubbed(error_in(str(problem))) from None

    def delete(self, keys: list[str]) -> None:
        """Removes objects; those that are gone already are no problem."""
        try:
            self._store().delete([_writable(key) for key in keys])
        except (BaseError, FileNotFoundError) as problem:
            raise self._scrubbed(error_in(str(problem))) from None

    def _get_odd(self, key: str, wanted: Range | None, etag: str) -> Piece:
        headers = {"if-match": f'"{etag}"'} if etag else {}
        if wanted is not None:
            headers["range"] = wanted.header
        answer = self._asked(key, headers=headers)
        found = answer.headers
        total = found.get("content-range", "").rpartition("/")[2]
        return Piece(
            answer.body, int(total) if total else len(answer.body), _bare(found.get("etag", ""))
        )

    def _asked(
        self,
        key: str,
        *,
        query: Mapping[str, str] = MappingProxyType({}),
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Answer:
        """The answer to a signed request, from wherever the bucket turns out to lie."""
        for _ in range(_MOST_PLACES):
            url = self._url(key, query)
            answer = self._transport.send(
                "GET", url, headers=partial(self._signed, url, headers), patience=self._patience
            )
            self._is_located = True
            if answer.status in (200, 206):
                return answer
            told = answer.headers.get("x-amz-bucket-region", "")
            problem = error_of(answer.status, answer.body, region=told)
            is_elsewhere = problem.region not in ("", self.region)
            if answer.status not in _MOVED or not is_elsewhere:
                break
            self.region = problem.region
        raise self._scrubbed(problem)

    def _url(self, key: str, query: Mapping[str, str]) -> str:
        bucket = self._access.bucket_url(self.name, self.region)
        path = f"/{quote(key, f'/{UNRESERVED}')}" if key or not urlsplit(bucket).path else ""
        return f"{bucket}{path}{f'?{query_text(query)}' if query else ''}"

    def _signed(self, url: str, headers: Mapping[str, str]) -> Mapping[str, str]:
        credentials = self._credentials.current()
        if credentials is None:
            return headers
        return signed(
            headers,
            credentials,
            method="GET",
            url=urlsplit(url),
            body=b"",
            region=self._access.signing_region(self.region),
            service="s3",
        )

    def _store(self) -> S3Store:
        # Asked here, so that nothing is hidden in what obstore makes of a failure.
        self._credentials.current()
        with self._lock:
            if self._opened is None:
                self._opened = self._new_store()
            return self._opened

    def _new_store(self) -> S3Store:
        if self._access.is_aws and not self._is_located:
            # Any answer tells the region; that nothing may be listed says nothing about reading.
            with suppress(S3Error):
                self.page("", limit=1)
        patience = self._patience
        # obstore lets variables of the environment win unless everything is said in so many
        # words; what they mean was settled before, for obstore and for pages alike.
        return S3Store(
            self.name,
            aws_endpoint_url_s3=self._access.bucket_url(self.name, self.region),
            virtual_hosted_style_request=True,
            region=self._access.signing_region(self.region),
            skip_signature=self._access.anonymous,
            credential_provider=None if self._access.anonymous else self._credentials_for_obstore,
            client_options=_client_options(),
            retry_config={
                "max_retries": patience.tries - 1,
                "retry_timeout": timedelta(seconds=patience.seconds),
                "backoff": {
                    "init_backoff": timedelta(seconds=patience.first_wait),
                    "max_backoff": timedelta(seconds=patience.longest_wait),
                    "base": 2,
                },
            },
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

    def _scrubbed(self, problem: S3Error) -> S3Error:
        problem.args = (self._credentials.scrubbed(str(problem)),)
        return problem


def is_plain(key: str) -> bool:
    """Whether obstore can name the key: no empty or dotted folders, no control characters."""
    has_odd_part = any(part in ("", ".", "..") for part in key.split("/"))
    return not has_odd_part and _CONTROL.search(key) is None


def _client_options() -> "ClientConfig":
    options: ClientConfig = {"allow_http": True, "timeout": timedelta(seconds=30)}
    if bundle := os.environ.get("AWS_CA_BUNDLE"):
        with open(bundle, "rb") as file:
            options["root_certificate"] = file.read()
    return options


def _writable(key: str) -> str:
    if not is_plain(key):
        raise S3Error(f"'{key}' cannot be written: it has an empty or dotted part")
    return key


def _bare(etag: str) -> str:
    return etag.removeprefix("W/").strip('"')


def _page(body: bytes) -> Page:
    root = ElementTree.fromstring(body)
    if not root.tag.endswith("ListBucketResult"):
        raise ValueError(root.tag)
    # Servers disagree about the namespace, or leave it out.
    space = root.tag.rpartition("}")[0]
    space = f"{space}}}" if space else ""
    is_encoded = root.findtext(f"{space}EncodingType") == "url"
    decoded = unquote_plus if is_encoded else str
    entries = [
        Entry(
            decoded(node.findtext(f"{space}Key", "")),
            int(node.findtext(f"{space}Size", "0")),
            _microseconds(node.findtext(f"{space}LastModified", "")),
            _bare(node.findtext(f"{space}ETag", "")),
            node.findtext(f"{space}StorageClass", "").lower(),
        )
        for node in root.iter(f"{space}Contents")
    ]
    folders = [
        decoded(node.findtext(f"{space}Prefix", "")) for node in root.iter(f"{space}CommonPrefixes")
    ]
    is_cut = root.findtext(f"{space}IsTruncated") == "true"
    token = root.findtext(f"{space}NextContinuationToken", "") if is_cut else ""
    return Page(entries, folders, token)


def _microseconds(text: str) -> int:
    return (datetime.fromisoformat(text) - _EPOCH) // timedelta(microseconds=1)
