"""One bucket: pages of its keys, and the bytes below them.

obstore moves the bytes. Pages are asked for here, since obstore lists no range of keys, tells no
storage class, and fails for a whole page that holds a single key such as `a//b`. It also follows
whoever sends it elsewhere, so that it moves no bytes where a login would be seen there.
"""

import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Protocol

from obstore.exceptions import BaseError

from lumos.storage.errors import StorageFault, error_in
from lumos.storage.fuse import Fuse
from lumos.storage.http import CA_BUNDLE, Answer, Patience
from lumos.storage.objects.ranges import LAST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from obstore import GetOptions, GetResult, PutResult
    from obstore.store import ClientConfig, RetryConfig

PAGE: Final = 1000
_AT_ONCE: Final = 16
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


class ByteStore(Protocol):
    """What of obstore's stores is used."""

    def get(self, path: str, *, options: "GetOptions | None" = None) -> "GetResult": ...

    def put(self, path: str, file: bytes) -> "PutResult": ...

    def delete(self, paths: "str | Sequence[str]") -> None: ...


class Credentials(Protocol):
    """What a bucket is asked with."""

    def current(self) -> object:
        """The login in use, made anew where it has ended."""

    def scrubbed(self, text: str) -> str:
        """The text without any part of them."""


class Bucket(ABC):
    """A bucket as some access reaches it; may be used by many threads."""

    _credentials: Credentials

    # Whether the last bytes of an object may be asked for without knowing its size.
    serves_ends: ClassVar[bool] = True

    def __init__(self, name: str, patience: Patience) -> None:
        self.name = name
        self._patience = patience
        self._opened: ByteStore | None = None
        self._lock = threading.Lock()
        self._fuse = Fuse()

    @abstractmethod
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

    def scrubbed(self, text: str) -> str:
        """The text without any part of the credentials in use."""
        return self._credentials.scrubbed(text)

    @abstractmethod
    def _asked(
        self,
        key: str,
        *,
        query: Mapping[str, str] = MappingProxyType({}),
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Answer:
        """The answer to a GET that lets us in; any other status than 200 and 206 raises."""

    @abstractmethod
    def _new_store(self) -> ByteStore: ...

    def _would_be_seen(self) -> bool:
        """Whether the login in use reaches the host that a redirect names."""
        return False

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
            is_for_obstore = is_plain(key) and not self._would_be_seen()
            return (self._get if is_for_obstore else self._get_odd)(key, wanted, etag)

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
            raise self._fault(problem) from None
        facts = result.meta
        return Piece(data, facts["size"], bare(facts["e_tag"] or ""))

    def _get_odd(self, key: str, wanted: Range | None, etag: str) -> Piece:
        headers = {"if-match": f'"{etag}"'} if etag else {}
        if wanted is not None:
            headers["range"] = wanted.header
        answer = self._asked(key, headers=headers)
        found = answer.headers
        total = found.get("content-range", "").rpartition("/")[2]
        return Piece(
            answer.body, int(total) if total else len(answer.body), bare(found.get("etag", ""))
        )

    @staticmethod
    def _each(remove: "Callable[[str], object]", keys: list[str]) -> None:
        """Removes objects one by one, some at a time."""
        with ThreadPoolExecutor(min(_AT_ONCE, len(keys) or 1)) as pool:
            list(pool.map(remove, keys))

    def _store(self) -> ByteStore:
        # Faults of logging in come from here, and not hidden in what obstore makes of them.
        self._credentials.current()
        with self._lock:
            if self._opened is None:
                self._opened = self._new_store()
            return self._opened

    def _retries(self) -> "RetryConfig":
        patience = self._patience
        return {
            "max_retries": patience.tries - 1,
            "retry_timeout": timedelta(seconds=patience.seconds),
            "backoff": {
                "init_backoff": timedelta(seconds=patience.first_wait),
                "max_backoff": timedelta(seconds=patience.longest_wait),
                "base": 2,
            },
        }

    def _fault(self, problem: Exception) -> StorageFault:
        return self._without_secrets(error_in(str(problem)))

    def _without_secrets(self, problem: StorageFault) -> StorageFault:
        problem.args = (self.scrubbed(str(problem)),)
        return problem


def is_plain(key: str) -> bool:
    """Whether obstore can name the key: no empty or dotted folders, no control characters."""
    has_odd_part = any(part in ("", ".", "..") for part in key.split("/"))
    return not has_odd_part and _CONTROL.search(key) is None


def client_options(own_bundle: str = CA_BUNDLE) -> "ClientConfig":
    """How obstore connects; `own_bundle` is the variable that names certificates to trust."""
    options: ClientConfig = {"allow_http": True, "timeout": timedelta(seconds=30)}
    if bundle := os.environ.get(own_bundle):
        with open(bundle, "rb") as file:
            options["root_certificate"] = file.read()
    return options


def bare(etag: str) -> str:
    """An ETag without what HTTP puts around it."""
    return etag.removeprefix("W/").strip('"')


def _writable(key: str) -> str:
    if not is_plain(key):
        raise StorageFault(f"'{key}' cannot be written: it has an empty or dotted part")
    return key
