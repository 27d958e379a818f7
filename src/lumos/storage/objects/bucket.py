"""One bucket of an object store: lists pages of its keys, and reads and writes objects.

Objects are read and written with obstore. Pages are requested here, because obstore cannot list a
range of keys, does not report storage classes, and fails for pages that contain a key such as
`a//b`. obstore also follows redirects, so it is not used if that would expose credentials.
"""

import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Protocol

from obstore.exceptions import BaseError

from lumos.http.client import CA_BUNDLE, HttpClient, HttpResponse
from lumos.http.retries import RetryPolicy
from lumos.storage.errors import StorageFault, error_from_obstore
from lumos.storage.http import StorageCircuitBreaker
from lumos.storage.interface import StorageAccess

if TYPE_CHECKING:
    from obstore import GetOptions, GetResult, PutResult
    from obstore.store import ClientConfig, RetryConfig

PAGE_SIZE: Final = 1000
_CONCURRENCY: Final = 16
_CONTROL_CHARACTER: Final = re.compile(r"[\x00-\x1f\x7f]")


class ObjectEntry(NamedTuple):
    """An object in a listing."""

    key: str
    size: int
    modified: int
    etag: str
    storage_class: str


class ObjectPage(NamedTuple):
    """A page of keys and, if requested, folders; `token` identifies the next page, if any."""

    entries: list[ObjectEntry]
    folders: list[str]
    token: str

    @property
    def last(self) -> str:
        """The end of the page: earlier pages and this page contain all keys up to it."""
        last_keys = [entry.key for entry in self.entries[-1:]]
        last_folders = [f"{folder}{AFTER_ALL}" for folder in self.folders[-1:]]
        return max([*last_keys, *last_folders], default="")


class ObjectBytes(NamedTuple):
    """Bytes of an object, with the size and ETag of the entire object."""

    data: bytes
    size: int
    etag: str


class ByteRange(NamedTuple):
    """A byte range of an object; a negative `start` without `end` means the last bytes."""

    start: int
    end: int | None = None

    @property
    def header(self) -> str:
        """The range as an HTTP header."""
        return f"bytes={self.start}" + ("" if self.end is None else f"-{self.end - 1}")


class ByteStore(Protocol):
    """The methods of obstore's stores that are used here."""

    def get(self, path: str, *, options: "GetOptions | None" = None) -> "GetResult": ...

    def put(self, path: str, file: bytes) -> "PutResult": ...

    def delete(self, paths: str | Sequence[str]) -> None: ...


class BucketCredentials(Protocol):
    """The credentials of a bucket."""

    def current(self) -> object:
        """The current credentials, renewed if they have expired."""

    def mask_secrets(self, text: str) -> str:
        """The text with all secrets masked."""


class ObjectBucket(ABC):
    """A bucket of an object store; thread-safe."""

    # Whether the last bytes of an object can be read without knowing its size.
    supports_suffix_ranges: ClassVar[bool] = True

    def __init__(
        self,
        name: str,
        access: StorageAccess,
        credentials: BucketCredentials,
        *,
        http_client: HttpClient,
        retries: RetryPolicy,
    ) -> None:
        self.name = name
        self._access = access
        self._credentials = credentials
        self._http = http_client
        self._retries = retries
        self._opened_store: ByteStore | None = None
        self._lock = threading.Lock()
        self._breaker = StorageCircuitBreaker()

    @abstractmethod
    def page(
        self,
        prefix: str,
        *,
        after: str = "",
        token: str = "",
        folders: bool = False,
        limit: int = PAGE_SIZE,
    ) -> ObjectPage:
        """The first keys with a prefix that sort after `after`, or the page of a token."""

    def mask_secrets(self, text: str) -> str:
        """The text with all secrets masked."""
        return self._credentials.mask_secrets(text)

    @abstractmethod
    def _request(
        self,
        key: str,
        *,
        query: Mapping[str, str] = MappingProxyType({}),
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> HttpResponse:
        """Send an authenticated GET; raises for any status except 200 and 206."""

    @abstractmethod
    def _new_store(self) -> ByteStore: ...

    def _leaks_on_redirect(self) -> bool:
        """Whether a redirect would send the credentials to another host."""
        return False

    def pages(self, prefix: str, *, after: str = "", folders: bool = False) -> Iterator[ObjectPage]:
        """Yield all keys that start with a prefix and sort after `after`, page by page."""
        page = self.page(prefix, after=after, folders=folders)
        yield page
        while page.token:
            page = self.page(prefix, token=page.token, folders=folders)
            yield page

    def get(self, key: str, byte_range: ByteRange | None = None, *, etag: str = "") -> ObjectBytes:
        """Read an object or a range of its bytes; with `etag`, only if it still has this ETag."""
        with self._breaker.guard():
            can_use_obstore = is_plain(key) and not self._leaks_on_redirect()
            return (self._get if can_use_obstore else self._get_by_http)(key, byte_range, etag)

    def put(self, key: str, data: bytes) -> None:
        """Write an object atomically."""
        try:
            self._store().put(_check_writable(key), data)
        except (BaseError, FileNotFoundError) as problem:
            raise self._fault(problem) from None

    def delete(self, keys: list[str]) -> None:
        """Delete objects; missing objects are ignored."""
        try:
            self._store().delete([_check_writable(key) for key in keys])
        except (BaseError, FileNotFoundError) as problem:
            raise self._fault(problem) from None

    def _get(self, key: str, byte_range: ByteRange | None, etag: str) -> ObjectBytes:
        options: GetOptions = {"if_match": f'"{etag}"'} if etag else {}
        if byte_range is not None and byte_range.end is None:
            options["range"] = {"suffix": -byte_range.start}
        elif byte_range is not None and byte_range.end is not None:
            options["range"] = (byte_range.start, byte_range.end)
        try:
            result = self._store().get(key, options=options)
            data = bytes(result.bytes())
        except (BaseError, FileNotFoundError) as problem:
            raise self._fault(problem) from None
        metadata = result.meta
        return ObjectBytes(data, metadata["size"], plain_etag(metadata["e_tag"] or ""))

    def _get_by_http(self, key: str, byte_range: ByteRange | None, etag: str) -> ObjectBytes:
        headers = {"if-match": f'"{etag}"'} if etag else {}
        if byte_range is not None:
            headers["range"] = byte_range.header
        response = self._request(key, headers=headers)
        response_headers = response.headers
        total = response_headers.get("content-range", "").rpartition("/")[2]
        return ObjectBytes(
            response.body,
            int(total) if total else len(response.body),
            plain_etag(response_headers.get("etag", "")),
        )

    @staticmethod
    def _delete_each(remove: Callable[[str], object], keys: list[str]) -> None:
        """Delete objects with one request each, concurrently."""
        with ThreadPoolExecutor(min(_CONCURRENCY, len(keys) or 1)) as pool:
            list(pool.map(remove, keys))

    def _store(self) -> ByteStore:
        # Authenticate first, because obstore hides authentication errors.
        self._credentials.current()
        with self._lock:
            if self._opened_store is None:
                self._opened_store = self._new_store()
            return self._opened_store

    def _obstore_retries(self) -> "RetryConfig":
        retries = self._retries
        return {
            "max_retries": retries.tries - 1,
            "retry_timeout": timedelta(seconds=retries.seconds),
            "backoff": {
                "init_backoff": timedelta(seconds=retries.first_wait),
                "max_backoff": timedelta(seconds=retries.max_wait),
                "base": retries.factor,
            },
        }

    def _fault(self, problem: Exception) -> StorageFault:
        return self._without_secrets(error_from_obstore(str(problem)))

    def _without_secrets(self, problem: StorageFault) -> StorageFault:
        problem.args = (self.mask_secrets(str(problem)),)
        return problem


def is_plain(key: str) -> bool:
    """Whether obstore supports the key.

    It supports no empty parts, no parts `.` and `..`, and no control characters.
    """
    has_special_part = any(part in ("", ".", "..") for part in key.split("/"))
    return not has_special_part and _CONTROL_CHARACTER.search(key) is None


def client_options(bundle_variable: str = CA_BUNDLE) -> "ClientConfig":
    """The client options for obstore; `bundle_variable` contains the path of a CA bundle."""
    options: ClientConfig = {"allow_http": True, "timeout": timedelta(seconds=30)}
    if bundle := os.environ.get(bundle_variable):
        with open(bundle, "rb") as file:
            options["root_certificate"] = file.read()
    return options


def plain_etag(etag: str) -> str:
    """An ETag without quotes, and without the prefix of weak ETags."""
    return etag.removeprefix("W/").strip('"')


def _check_writable(key: str) -> str:
    if not is_plain(key):
        raise StorageFault(f"'{key}' cannot be written: it has an empty or dotted part")
    return key


# Objects up to this size are fetched entirely: a second request would take longer.
_MIN_RANGE_BYTES: Final = 64 * 1024
_RANGE_NOT_SATISFIABLE: Final = 416


class RangeReader(Protocol):
    """Reads byte ranges of objects."""

    @property
    def supports_suffix_ranges(self) -> bool: ...

    def get(
        self, key: str, byte_range: ByteRange | None = None, *, etag: str = ""
    ) -> ObjectBytes: ...


class ObjectFile:
    """An object that is open for reading; the head and tail that were fetched are cached."""

    def __init__(self, bucket: RangeReader, key: str, size: int | None) -> None:
        self._bucket = bucket
        self._key = key
        self._size = size
        self._etag = ""
        self._head = b""
        self._tail = b""

    @property
    def size(self) -> int:
        if self._size is None:
            self.head(1)
        assert self._size is not None, "a response without the size"
        return self._size

    def head(self, length: int) -> bytes:
        if not self._is_complete() and len(self._head) < length:
            self._fetch_head(length)
        return (self._tail if self._is_complete() else self._head)[:length]

    def tail(self, length: int) -> bytes:
        if not self._is_complete() and len(self._tail) < length:
            self._fetch_tail(length)
            # The fetched bytes may complete the cached head.
            self._is_complete()
        tail = self._tail
        return tail[max(0, len(tail) - length) :]

    def part(self, start: int, length: int) -> bytes:
        end = min(start + length, self.size)
        if start >= end:
            return b""
        return self._tail[start:end] if self._is_complete() else self._fetch(ByteRange(start, end))

    def _is_complete(self) -> bool:
        """Whether all bytes are cached; if so, they are moved to the tail."""
        if self._size is not None and len(self._head) + len(self._tail) >= self._size:
            overlap = len(self._head) + len(self._tail) - self._size
            self._tail = self._head + self._tail[overlap:]
            self._head = b""
        return self._size is not None and len(self._tail) >= self._size

    def _fetch_head(self, length: int) -> None:
        if self._size is not None and self._size <= max(_MIN_RANGE_BYTES, length):
            self._fetch_missing()
            return
        self._head += self._fetch(ByteRange(len(self._head), length))

    def _fetch_tail(self, length: int) -> None:
        if self._size is not None and self._size <= max(_MIN_RANGE_BYTES, length):
            self._fetch_missing()
        elif self._tail:
            end = self.size - len(self._tail)
            self._tail = self._fetch(ByteRange(max(0, self.size - length), end)) + self._tail
        else:
            self._tail = self._fetch_last(length)

    def _fetch_last(self, length: int) -> bytes:
        if self._bucket.supports_suffix_ranges:
            return self._fetch(ByteRange(-length))
        while True:
            size = self.size
            try:
                data = self._fetch(ByteRange(max(0, size - length), size)) if size else b""
            except StorageFault as problem:
                if problem.status != _RANGE_NOT_SATISFIABLE or self._etag:
                    raise
                # The object is shorter than listed.
                self._size = None
                continue
            if self._size == size:
                return data

    def _fetch_missing(self) -> None:
        """Fetch the bytes between head and tail."""
        if not self._head and not self._tail:
            self._tail = self._fetch(None)
            return
        end = self.size - len(self._tail)
        self._tail = self._fetch(ByteRange(len(self._head), end)) + self._tail

    def _fetch(self, byte_range: ByteRange | None) -> bytes:
        try:
            # All pieces must come from the same version of the object.
            piece = self._bucket.get(self._key, byte_range, etag=self._etag)
        except StorageFault as problem:
            may_start_at_zero = byte_range is not None and byte_range.start <= 0
            if problem.status != _RANGE_NOT_SATISFIABLE or self._etag or not may_start_at_zero:
                raise
            # Any range of an empty object is invalid.
            self._size = 0
            return b""
        # The object may have been replaced since the listing.
        self._size, self._etag = piece.size, piece.etag
        return piece.data


# Sorts after any character in a key.
AFTER_ALL: Final = "\U0010ffff"
