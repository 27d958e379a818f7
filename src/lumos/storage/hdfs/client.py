"""The part of WebHDFS that Lumos uses."""

import json
import re
import time
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote, urlencode, urljoin, urlsplit, urlunsplit

from lumos.config.secret import MASK, redact
from lumos.http.client import MAX_RESPONSE_BYTES, HttpClient, HttpResponse
from lumos.http.retries import ONCE, RetryPolicy, RetryState, is_temporary
from lumos.storage.errors import (
    StorageBusy,
    StorageDenied,
    StorageFault,
    StorageMissing,
    StorageUnreachable,
)
from lumos.storage.http import StorageCircuitBreaker

_DATA: Final = {"Content-Type": "application/octet-stream"}
_REDIRECTED: Final = (301, 302, 307)
_TOKEN: Final = re.compile(r"(?<=delegation=)[\w-]+|(?<=token=)[\w-]+")


class HdfsStatus(NamedTuple):
    """A file or folder; `name` is empty for the requested path itself."""

    name: str
    is_folder: bool
    is_file: bool
    size: int
    modified: int
    file_id: str


class HdfsPage(NamedTuple):
    """A page of the entries of a folder, sorted by name."""

    found: list[HdfsStatus]
    is_last: bool


class WebHdfs:
    """A file system behind its name nodes, of which one is active; may be used by many threads."""

    def __init__(
        self,
        bases: tuple[str, ...],
        *,
        http_client: HttpClient,
        retries: RetryPolicy,
        user: str = "",
        token: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._bases = bases
        self._http = http_client
        self._retries = retries
        # A token implies the user; WebHDFS refuses a user name next to it.
        login = {"delegation": token} if token else {"user.name": user} if user else {}
        self._login = login
        self._token = token
        self._headers = dict(headers or {})
        self._active = 0
        self._pages = True
        self._breaker = StorageCircuitBreaker()

    def status(self, path: str) -> HdfsStatus:
        """A file or folder itself."""
        answer = self._json("GET", path, "GETFILESTATUS")
        with _as_webhdfs_answers():
            return _status(answer["FileStatus"])

    def children(self, path: str, after: str = "") -> HdfsPage:
        """A page of the entries of a folder that sort after a name."""
        if self._pages:
            try:
                answer = self._json("GET", path, "LISTSTATUS_BATCH", startAfter=after)
            except StorageFault as problem:
                # Older file systems and gateways do not know it.
                if problem.status != 400:
                    raise
                self._pages = False
            else:
                with _as_webhdfs_answers():
                    listing = answer["DirectoryListing"]
                    found = _statuses(listing["partialListing"])
                    return HdfsPage(found, not listing["remainingEntries"] or not found)
        answer = self._json("GET", path, "LISTSTATUS")
        with _as_webhdfs_answers():
            found = _statuses(answer)
        return HdfsPage([each for each in found if each.name > after], is_last=True)

    def all_children(self, path: str, after: str = "") -> Iterator[HdfsStatus]:
        """All of them, a page at a time."""
        while True:
            page = self.children(path, after)
            yield from page.found
            if page.is_last:
                return
            after = page.found[-1].name

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes:
        """The bytes of a file, or some of them; a read past the end fails."""
        part = {} if length is None else {"length": str(length)}
        answer = self._request("GET", path, "OPEN", offset=str(start), **part)
        return self._at_data_node("GET", answer, path) if answer.status != 200 else answer.body

    def create(self, path: str, data: bytes) -> None:
        """Write or overwrite a file, not atomically."""
        answer = self._request("PUT", path, "CREATE", overwrite="true")
        self._at_data_node("PUT", answer, path, data)

    def rename(self, path: str, to: str, *, size: int) -> None:
        """Rename a file of a known size, replacing the target."""
        if self._is_renamed(path, to, size, renameoptions="OVERWRITE"):
            return
        # Gateways without rename options do not overwrite.
        self.delete(to)
        if not self._is_renamed(path, to, size):
            raise StorageFault(f"{path} cannot be renamed to {to}")

    def _is_renamed(self, path: str, to: str, size: int, **options: str) -> bool:
        """Rename a file, and return whether that was accepted; raise if there is none.

        A request whose response was lost is sent again. Then the file has been renamed already.
        """
        try:
            answer = self._request("PUT", path, "RENAME", destination=to, **options)
        except StorageMissing:
            if self._size(path) is None and self._size(to) == size:
                return True
            raise
        if not _is_refused(answer):
            return True
        if self._size(path) is not None:
            return False
        if self._size(to) == size:
            return True
        raise StorageMissing(f"{path} is not there any more")

    def _size(self, path: str) -> int | None:
        try:
            return self.status(path).size
        except StorageMissing:
            return None

    def delete(self, path: str) -> None:
        """Removes a file; one that is not there is no problem."""
        self._request("DELETE", path, "DELETE")

    def new_token(self, renewer: str) -> str:
        """A delegation token for the current user."""
        answer = self._json("GET", "/", "GETDELEGATIONTOKEN", renewer=renewer)
        with _as_webhdfs_answers():
            return str(answer["Token"]["urlString"])

    def cancel_token(self, token: str) -> None:
        """Ends a token."""
        self._request("PUT", "/", "CANCELDELEGATIONTOKEN", token=token)

    def _json(self, method: str, path: str, op: str, **parameters: str) -> Any:
        answer = self._request(method, path, op, **parameters)
        with _as_webhdfs_answers():
            return json.loads(answer.body)

    def _request(self, method: str, path: str, op: str, **parameters: str) -> HttpResponse:
        """The answer of the name node that is active; what fails there raises."""
        with self._breaker.guard():
            return self._send_to_active(method, path, {"op": op, **self._login, **parameters})

    def _send_to_active(self, method: str, path: str, query: Mapping[str, str]) -> HttpResponse:
        state = RetryState(self._retries)
        while True:
            problem: StorageFault | None = None
            for turn in range(len(self._bases)):
                at = (self._active + turn) % len(self._bases)
                try:
                    answer = self._send_to(self._bases[at], method, path, query)
                except (StorageUnreachable, StorageBusy) as failed:
                    problem = problem if isinstance(problem, StorageBusy) else failed
                    continue
                self._active = at
                return answer
            assert problem is not None, "there is some name node"
            wait = state.next_wait()
            # Silent servers were retried by the HTTP client already.
            is_over = isinstance(problem, StorageUnreachable) or problem.code == ""
            if is_over or wait is None:
                raise problem
            time.sleep(wait)

    def _send_to(self, base: str, method: str, path: str, query: Mapping[str, str]) -> HttpResponse:
        url = f"{base}{quote(path, safe='/-._~')}?{urlencode(query, quote_via=quote)}"
        # With a second name node, a silent one is not retried.
        retries = self._retries if len(self._bases) == 1 else ONCE
        # Gateways answer a read with the bytes of the file.
        limit = None if query["op"] == "OPEN" else MAX_RESPONSE_BYTES
        answer = self._http.send(
            method, url, headers=lambda: self._headers, retries=retries, max_bytes=limit
        )
        if answer.status in (200, 201):
            return answer
        if answer.status in _REDIRECTED:
            return _with_whole_location(answer, url)
        raise self._without_token(hdfs_error(answer.status, answer.body))

    def _at_data_node(self, method: str, told: HttpResponse, path: str, data: bytes = b"") -> bytes:
        where = _with_decomposed_path(told.headers.get("location", ""), path)
        if told.status not in _REDIRECTED or not where:
            raise StorageFault(NOT_WEBHDFS)
        try:
            answer = self._http.send(
                method,
                where,
                headers=lambda: _DATA,
                body=data,
                retries=self._retries,
                max_bytes=None,
            )
        except StorageUnreachable as silent:
            host = urlsplit(where).netloc.rpartition("@")[2]
            raise StorageUnreachable(
                f"the data node {host} that holds {path} does not answer; it must be reachable "
                "from here by that name, or 'url' must name an HttpFS gateway"
            ) from silent
        if answer.status in (200, 201):
            return answer.body
        raise self._without_token(hdfs_error(answer.status, answer.body))

    def _without_token(self, problem: StorageFault) -> StorageFault:
        text = _TOKEN.sub(MASK, str(problem))
        problem.args = (text.replace(self._token, MASK) if self._token else text,)
        return problem


@contextmanager
def _as_webhdfs_answers() -> Iterator[None]:
    """Report responses that are not those of WebHDFS as such."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError) as problem:
        raise StorageFault(NOT_WEBHDFS) from problem


def _with_whole_location(answer: HttpResponse, url: str) -> HttpResponse:
    """The response with an absolute redirect; those of gateways are relative."""
    location = answer.headers.get("location", "")
    if not location:
        return answer
    with _as_webhdfs_answers():
        return answer._replace(headers={**answer.headers, "location": urljoin(url, location)})


def _with_decomposed_path(location: str, path: str) -> str:
    """The address of a data node with the path as it is.

    Java composes letters and their accents in addresses, so that names which have them apart would
    not be found again.
    """
    composed = unicodedata.normalize("NFC", path)
    parts = urlsplit(location)
    told = unquote(parts.path)
    if composed == path or not told.endswith(composed):
        return location
    own = quote(f"{told.removesuffix(composed)}{path}", safe="/-._~")
    return urlunsplit(parts._replace(path=own))


def _is_refused(answer: HttpResponse) -> bool:
    return b'"boolean":false' in answer.body.replace(b" ", b"")


def _statuses(facts: Any) -> list[HdfsStatus]:
    return [_status(each) for each in facts["FileStatuses"]["FileStatus"]]


def _status(facts: Mapping[str, Any]) -> HdfsStatus:
    return HdfsStatus(
        str(facts.get("pathSuffix", "")),
        facts["type"] == "DIRECTORY",
        facts["type"] == "FILE",
        int(facts.get("length", 0)),
        int(facts.get("modificationTime", 0)) * 1000,
        str(facts.get("fileId", "")),
    )


LOGIN_REQUIRED: Final = "AuthenticationRequired"
NOT_WEBHDFS: Final = "the address does not answer as WebHDFS does"
_DENIED: Final = frozenset(
    ("AccessControlException", "SecurityException", "InvalidToken", "AuthorizationException",
     "AuthenticationException")
)  # fmt: skip
_MISSING: Final = frozenset(("FileNotFoundException", "PathNotFoundException"))
_BUSY: Final = frozenset(("StandbyException", "RetriableException", "SafeModeException"))


def hdfs_error(status: int, body: bytes) -> StorageFault:
    """The error of a response, in one line."""
    if status == 401:
        return StorageDenied("a login is required (status 401)", code=LOGIN_REQUIRED, status=status)
    name, message = _name_and_message(body)
    kind: type[StorageFault] = StorageFault
    if status == 404 and not name:
        # Not by Hadoop: if the root counted as missing, its datasets would be removed.
        return StorageFault(f"{NOT_WEBHDFS} (status 404)", status=status)
    if name in _MISSING:
        kind = StorageMissing
    elif name in _DENIED or (status == 403 and not name):
        kind = StorageDenied
    elif name in _BUSY or is_temporary(status):
        kind = StorageBusy
    told = message or "the request failed"
    return kind(f"{told} ({name or f'status {status}'})", code=name, status=status)


def _name_and_message(body: bytes) -> tuple[str, str]:
    try:
        facts = json.loads(body)["RemoteException"]
        name, message = str(facts["exception"]), str(facts.get("message") or "")
    except (ValueError, KeyError, TypeError):
        return "", ""
    # A stack trace of the server follows.
    first = message.strip().partition("\n")[0].rstrip(". ")
    return name, redact(first)[:300]
