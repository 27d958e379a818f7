"""One bucket: pages of its keys, and the bytes below them.

obstore moves the bytes. Pages are asked for here, since obstore lists no range of keys, tells no
storage class, and fails for a whole page that holds a single key such as `a//b`. It also follows
whoever sends it elsewhere, so that it moves no bytes where a login would be seen there.
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

from lumos.http.client import CA_BUNDLE, HttpResponse
from lumos.http.retries import RetryPolicy
from lumos.storage.errors import StorageFault, error_from_obstore
from lumos.storage.http import StorageCircuitBreaker

if TYPE_CHECKING:
    from obstore import GetOptions, GetResult, PutResult
    from obstore.store import ClientConfig, RetryConfig

PAGE_SIZE: Final = 1000
_CONCURRENCY: Final = 16
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


class ObjectEntry(NamedTuple):
    """A key as a page lists it."""

    key: str
    size: int
    modified: int
    etag: str
    storage_class: str


class ObjectPage(NamedTuple):
    """Some keys and, if requested, folders; `token` requests the next page."""

    entries: list[ObjectEntry]
    folders: list[str]
    token: str

    @property
    def last(self) -> str:
        """The text up to which the page is complete."""
        ends = [entry.key for entry in self.entries[-1:]]
        return max([*ends, *(f"{folder}{AFTER_ALL}" for folder in self.folders[-1:])], default="")


class ObjectBytes(NamedTuple):
    """Some bytes of an object, with the size and ETag of the whole."""

    data: bytes
    size: int
    etag: str


class ByteRange(NamedTuple):
    """Which bytes of an object: those before `end`, or the last ones where `start` is negative."""

    start: int
    end: int | None = None

    @property
    def header(self) -> str:
        """The range as HTTP spells it."""
        return f"bytes={self.start}" + ("" if self.end is None else f"-{self.end - 1}")


class ByteStore(Protocol):
    """What of obstore's stores is used."""

    def get(self, path: str, *, options: "GetOptions | None" = None) -> "GetResult": ...

    def put(self, path: str, file: bytes) -> "PutResult": ...

    def delete(self, paths: str | Sequence[str]) -> None: ...


class BucketCredentials(Protocol):
    """The credentials of a bucket."""

    def current(self) -> object:
        """The login in use, renewed if it has expired."""

    def scrubbed(self, text: str) -> str:
        """The text without any part of them."""


class ObjectBucket(ABC):
    """A bucket as some access reaches it; may be used by many threads."""

    _credentials: BucketCredentials

    # Whether the last bytes of an object can be read without knowing its size.
    serves_suffixes: ClassVar[bool] = True

    def __init__(self, name: str, retries: RetryPolicy) -> None:
        self.name = name
        self._retries = retries
        self._opened: ByteStore | None = None
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
        """The first keys with a prefix that sort after a text, or those that a token stands for."""

    def scrubbed(self, text: str) -> str:
        """The text without any part of the credentials in use."""
        return self._credentials.scrubbed(text)

    @abstractmethod
    def _request(
        self,
        key: str,
        *,
        query: Mapping[str, str] = MappingProxyType({}),
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> HttpResponse:
        """The response to an authenticated GET; any status but 200 and 206 raises."""

    @abstractmethod
    def _new_store(self) -> ByteStore: ...

    def _leaks_on_redirect(self) -> bool:
        """Whether the login in use reaches the host that a redirect names."""
        return False

    def pages(self, prefix: str, *, after: str = "", folders: bool = False) -> Iterator[ObjectPage]:
        """All keys with a prefix that sort after a text."""
        page = self.page(prefix, after=after, folders=folders)
        yield page
        while page.token:
            page = self.page(prefix, token=page.token, folders=folders)
            yield page

    def get(self, key: str, wanted: ByteRange | None = None, *, etag: str = "") -> ObjectBytes:
        """An object or some bytes of it; `etag` refuses it where it has changed since."""
        with self._breaker.guard():
            is_for_obstore = is_plain(key) and not self._leaks_on_redirect()
            return (self._get if is_for_obstore else self._get_by_http)(key, wanted, etag)

    def put(self, key: str, data: bytes) -> None:
        """Writes an object, at once."""
        try:
            self._store().put(_writable(key), data)
        except (BaseError, FileNotFoundError) as problem:
            raise self._fault(problem) from None

    def delete(self, keys: list[str]) -> None:
        """Removes objects; those that are gone already are no problem."""
        try:
            self._store().delete([_writable(key) for key in keys])
        except (BaseError, FileNotFoundError) as problem:
            raise self._fault(problem) from None

    def _get(self, key: str, wanted: ByteRange | None, etag: str) -> ObjectBytes:
        options: GetOptions = {"if_match": f'"{etag}"'} if etag else {}
        if wanted is not None and wanted.end is None:
            options["range"] = {"suffix": -wanted.start}
        elif wanted is not None and wanted.end is not None:
            options["range"] = (wanted.start, wanted.end)
        try:
            result = self._store().get(key, options=options)
            data = bytes(result.bytes())
        except (BaseError, FileNotFoundError) as problem:
            raise self._fault(problem) from None
        facts = result.meta
        return ObjectBytes(data, facts["size"], plain_etag(facts["e_tag"] or ""))

    def _get_by_http(self, key: str, wanted: ByteRange | None, etag: str) -> ObjectBytes:
        headers = {"if-match": f'"{etag}"'} if etag else {}
        if wanted is not None:
            headers["range"] = wanted.header
        answer = self._request(key, headers=headers)
        found = answer.headers
        total = found.get("content-range", "").rpartition("/")[2]
        return ObjectBytes(
            answer.body,
            int(total) if total else len(answer.body),
            plain_etag(found.get("etag", "")),
        )

    @staticmethod
    def _for_each(remove: Callable[[str], object], keys: list[str]) -> None:
        """Removes objects one by one, some at a time."""
        with ThreadPoolExecutor(min(_CONCURRENCY, len(keys) or 1)) as pool:
            list(pool.map(remove, keys))

    def _store(self) -> ByteStore:
        # Faults of logging in come from here, and not hidden in what obstore makes of them.
        self._credentials.current()
        with self._lock:
            if self._opened is None:
                self._opened = self._new_store()
            return self._opened

    def _obstore_retries(self) -> "RetryConfig":
        retries = self._retries
        return {
            "max_retries": retries.tries - 1,
            "retry_timeout": timedelta(seconds=retries.seconds),
            "backoff": {
                "init_backoff": timedelta(seconds=retries.first_wait),
                "max_backoff": timedelta(seconds=retries.longest_wait),
                "base": retries.factor,
            },
        }

    def _fault(self, problem: Exception) -> StorageFault:
        return self._without_secrets(error_from_obstore(str(problem)))

    def _without_secrets(self, problem: StorageFault) -> StorageFault:
        problem.args = (self.scrubbed(str(problem)),)
        return problem


def is_plain(key: str) -> bool:
    """Whether obstore can name the key: no empty or dotted folders, no control characters."""
    has_odd_part = any(part in ("", ".", "..") for part in key.split("/"))
    return not has_odd_part and _CONTROL.search(key) is None


def client_options(bundle_variable: str = CA_BUNDLE) -> "ClientConfig":
    """How obstore connects; `bundle_variable` is the variable that names certificates to trust."""
    options: ClientConfig = {"allow_http": True, "timeout": timedelta(seconds=30)}
    if bundle := os.environ.get(bundle_variable):
        with open(bundle, "rb") as file:
            options["root_certificate"] = file.read()
    return options


def plain_etag(etag: str) -> str:
    """An ETag without what HTTP puts around it."""
    return etag.removeprefix("W/").strip('"')


def _writable(key: str) -> str:
    if not is_plain(key):
        raise StorageFault(f"'{key}' cannot be written: it has an empty or dotted part")
    return key


# One request costs more time than this many bytes, so smaller objects are fetched whole.
_WHOLE: Final = 64 * 1024
_RANGE_NOT_SATISFIABLE: Final = 416


class RangeReader(Protocol):
    """Whatever gives ranges of the bytes below a key."""

    @property
    def serves_suffixes(self) -> bool: ...

    def get(self, key: str, wanted: ByteRange | None = None, *, etag: str = "") -> ObjectBytes: ...


class ObjectFile:
    """An object; its fetched beginning and end are cached while it is open."""

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
        assert self._size is not None, "every answer tells the size"
        return self._size

    def head(self, length: int) -> bytes:
        if not self._is_whole() and len(self._head) < length:
            self._fetch_head(length)
        return (self._tail if self._is_whole() else self._head)[:length]

    def tail(self, length: int) -> bytes:
        if not self._is_whole() and len(self._tail) < length:
            self._fetch_tail(length)
            # What was fetched may meet the beginning that is here already.
            self._is_whole()
        kept = self._tail
        return kept[max(0, len(kept) - length) :]

    def part(self, start: int, length: int) -> bytes:
        end = min(start + length, self.size)
        if start >= end:
            return b""
        return self._tail[start:end] if self._is_whole() else self._fetch(ByteRange(start, end))

    def _is_whole(self) -> bool:
        """Whether all bytes are here, which then stand in the tail."""
        if self._size is not None and len(self._head) + len(self._tail) >= self._size:
            overlap = len(self._head) + len(self._tail) - self._size
            self._tail = self._head + self._tail[overlap:]
            self._head = b""
        return self._size is not None and len(self._tail) >= self._size

    def _fetch_head(self, length: int) -> None:
        if self._size is not None and self._size <= max(_WHOLE, length):
            self._fetch_missing()
            return
        self._head += self._fetch(ByteRange(len(self._head), length))

    def _fetch_tail(self, length: int) -> None:
        if self._size is not None and self._size <= max(_WHOLE, length):
            self._fetch_missing()
        elif self._tail:
            end = self.size - len(self._tail)
            self._tail = self._fetch(ByteRange(max(0, self.size - length), end)) + self._tail
        else:
            self._tail = self._last(length)

    def _last(self, length: int) -> bytes:
        if self._bucket.serves_suffixes:
            return self._fetch(ByteRange(-length))
        while True:
            size = self.size
            try:
                found = self._fetch(ByteRange(max(0, size - length), size)) if size else b""
            except StorageFault as problem:
                if problem.status != _RANGE_NOT_SATISFIABLE or self._etag:
                    raise
                # It is shorter than it was when it was listed.
                self._size = None
                continue
            if self._size == size:
                return found

    def _fetch_missing(self) -> None:
        """All that is missing between head and tail."""
        if not self._head and not self._tail:
            self._tail = self._fetch(None)
            return
        end = self.size - len(self._tail)
        self._tail = self._fetch(ByteRange(len(self._head), end)) + self._tail

    def _fetch(self, wanted: ByteRange | None) -> bytes:
        try:
            # Later pieces must be of the same object as the first one.
            piece = self._bucket.get(self._key, wanted, etag=self._etag)
        except StorageFault as problem:
            is_elsewhere = wanted is None or wanted.start > 0
            if problem.status != _RANGE_NOT_SATISFIABLE or self._etag or is_elsewhere:
                raise
            # An object without bytes has no range at all.
            self._size = 0
            return b""
        # It may have been replaced since it was listed, and then has another size.
        self._size, self._etag = piece.size, piece.etag
        return piece.data


# Sorts after whatever may follow in a key.
AFTER_ALL: Final = "\U0010ffff"
