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

_DATA_HEADERS: Final = {"Content-Type": "application/octet-stream"}
_REDIRECT_STATUSES: Final = (301, 302, 307)
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

    statuses: list[HdfsStatus]
    is_last: bool


class WebHdfs:
    """A file system with one active name node; thread-safe."""

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
        # A token identifies the user; WebHDFS refuses a user name in addition.
        login = {"delegation": token} if token else {"user.name": user} if user else {}
        self._login = login
        self._token = token
        self._headers = dict(headers or {})
        self._active = 0
        self._supports_paging = True
        self._breaker = StorageCircuitBreaker()

    def status(self, path: str) -> HdfsStatus:
        """The status of a file or folder."""
        response = self._json("GET", path, "GETFILESTATUS")
        with _check_webhdfs_format():
            return _status(response["FileStatus"])

    def children(self, path: str, after: str = "") -> HdfsPage:
        """A page of the entries of a folder that sort after a name."""
        if self._supports_paging:
            try:
                response = self._json("GET", path, "LISTSTATUS_BATCH", startAfter=after)
            except StorageFault as problem:
                # Older file systems and gateways do not support this request.
                if problem.status != 400:
                    raise
                self._supports_paging = False
            else:
                with _check_webhdfs_format():
                    listing = response["DirectoryListing"]
                    statuses = _statuses(listing["partialListing"])
                    return HdfsPage(statuses, not listing["remainingEntries"] or not statuses)
        response = self._json("GET", path, "LISTSTATUS")
        with _check_webhdfs_format():
            statuses = _statuses(response)
        return HdfsPage([status for status in statuses if status.name > after], is_last=True)

    def all_children(self, path: str, after: str = "") -> Iterator[HdfsStatus]:
        """All entries of a folder that sort after a name, read page by page."""
        while True:
            page = self.children(path, after)
            yield from page.statuses
            if page.is_last:
                return
            after = page.statuses[-1].name

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes:
        """Read a file or a range of its bytes; fails if the range exceeds the end of the file."""
        part = {} if length is None else {"length": str(length)}
        response = self._request("GET", path, "OPEN", offset=str(start), **part)
        return (
            self._send_to_data_node("GET", response, path)
            if response.status != 200
            else response.body
        )

    def create(self, path: str, data: bytes) -> None:
        """Write or overwrite a file, not atomically."""
        response = self._request("PUT", path, "CREATE", overwrite="true")
        self._send_to_data_node("PUT", response, path, data)

    def rename(self, path: str, target: str, *, size: int) -> None:
        """Rename a file, replacing the target; `size` is the size of the file."""
        if self._try_rename(path, target, size, renameoptions="OVERWRITE"):
            return
        # Gateways without rename options do not overwrite.
        self.delete(target)
        if not self._try_rename(path, target, size):
            raise StorageFault(f"{path} cannot be renamed to {target}")

    def _try_rename(self, path: str, target: str, size: int, **options: str) -> bool:
        """Rename a file and return whether it was renamed; raises if the file does not exist.

        If the response to a successful request was lost, a retry finds that the file is renamed.
        """
        try:
            response = self._request("PUT", path, "RENAME", destination=target, **options)
        except StorageMissing:
            if self._size(path) is None and self._size(target) == size:
                return True
            raise
        if b'"boolean":false' not in response.body.replace(b" ", b""):
            return True
        if self._size(path) is not None:
            return False
        if self._size(target) == size:
            return True
        raise StorageMissing(f"{path} does not exist any more")

    def _size(self, path: str) -> int | None:
        try:
            return self.status(path).size
        except StorageMissing:
            return None

    def delete(self, path: str) -> None:
        """Delete a file, if it exists."""
        self._request("DELETE", path, "DELETE")

    def new_token(self, renewer: str) -> str:
        """A delegation token for the current user."""
        response = self._json("GET", "/", "GETDELEGATIONTOKEN", renewer=renewer)
        with _check_webhdfs_format():
            return str(response["Token"]["urlString"])

    def cancel_token(self, token: str) -> None:
        """Cancel a token."""
        self._request("PUT", "/", "CANCELDELEGATIONTOKEN", token=token)

    def _json(self, method: str, path: str, op: str, **parameters: str) -> Any:
        response = self._request(method, path, op, **parameters)
        with _check_webhdfs_format():
            return json.loads(response.body)

    def _request(self, method: str, path: str, op: str, **parameters: str) -> HttpResponse:
        """Send a request to the active name node; raises its errors."""
        with self._breaker.guard():
            return self._send_to_active(method, path, {"op": op, **self._login, **parameters})

    def _send_to_active(self, method: str, path: str, query: Mapping[str, str]) -> HttpResponse:
        state = RetryState(self._retries)
        while True:
            problem: StorageFault | None = None
            for offset in range(len(self._bases)):
                index = (self._active + offset) % len(self._bases)
                try:
                    response = self._send_to(self._bases[index], method, path, query)
                except (StorageUnreachable, StorageBusy) as error:
                    problem = problem if isinstance(problem, StorageBusy) else error
                    continue
                self._active = index
                return response
            assert problem is not None, "there is no name node"
            wait = state.next_wait()
            # The HTTP client has already retried unreachable servers.
            is_final = isinstance(problem, StorageUnreachable) or problem.code == ""
            if is_final or wait is None:
                raise problem
            time.sleep(wait)

    def _send_to(self, base: str, method: str, path: str, query: Mapping[str, str]) -> HttpResponse:
        url = f"{base}{quote(path, safe='/-._~')}?{urlencode(query, quote_via=quote)}"
        # With several name nodes, the next node is tried instead.
        retries = self._retries if len(self._bases) == 1 else ONCE
        # Gateways return the content of the file directly, without a redirect to a data node.
        limit = None if query["op"] == "OPEN" else MAX_RESPONSE_BYTES
        response = self._http.send(
            method, url, headers=lambda: self._headers, retries=retries, max_bytes=limit
        )
        if response.status in (200, 201):
            return response
        if response.status in _REDIRECT_STATUSES:
            return _with_absolute_location(response, url)
        raise self._without_token(hdfs_error(response.status, response.body))

    def _send_to_data_node(
        self, method: str, redirect: HttpResponse, path: str, data: bytes = b""
    ) -> bytes:
        url = _with_original_path(redirect.headers.get("location", ""), path)
        if redirect.status not in _REDIRECT_STATUSES or not url:
            raise StorageFault(NOT_WEBHDFS)
        try:
            response = self._http.send(
                method,
                url,
                headers=lambda: _DATA_HEADERS,
                body=data,
                retries=self._retries,
                max_bytes=None,
            )
        except StorageUnreachable as error:
            host = urlsplit(url).netloc.rpartition("@")[2]
            raise StorageUnreachable(
                f"the data node {host} with {path} does not respond; make it reachable from here "
                "under this name, or set 'url' to an HttpFS gateway"
            ) from error
        if response.status in (200, 201):
            return response.body
        raise self._without_token(hdfs_error(response.status, response.body))

    def _without_token(self, problem: StorageFault) -> StorageFault:
        text = _TOKEN.sub(MASK, str(problem))
        problem.args = (text.replace(self._token, MASK) if self._token else text,)
        return problem


@contextmanager
def _check_webhdfs_format() -> Iterator[None]:
    """Raise a StorageFault if a response does not have the format of WebHDFS."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError) as problem:
        raise StorageFault(NOT_WEBHDFS) from problem


def _with_absolute_location(response: HttpResponse, url: str) -> HttpResponse:
    """The response with an absolute redirect; gateways send relative redirects."""
    location = response.headers.get("location", "")
    if not location:
        return response
    with _check_webhdfs_format():
        return response._replace(headers={**response.headers, "location": urljoin(url, location)})


def _with_original_path(location: str, path: str) -> str:
    """The URL of a data node, with the path as it was requested.

    Java normalizes letters with accents in redirects to NFC, so that files whose names are not in
    NFC would not be found.
    """
    normalized = unicodedata.normalize("NFC", path)
    parts = urlsplit(location)
    redirect_path = unquote(parts.path)
    if normalized == path or not redirect_path.endswith(normalized):
        return location
    encoded_path = quote(f"{redirect_path.removesuffix(normalized)}{path}", safe="/-._~")
    return urlunsplit(parts._replace(path=encoded_path))


def _statuses(document: Any) -> list[HdfsStatus]:
    return [_status(item) for item in document["FileStatuses"]["FileStatus"]]


def _status(item: Mapping[str, Any]) -> HdfsStatus:
    return HdfsStatus(
        str(item.get("pathSuffix", "")),
        item["type"] == "DIRECTORY",
        item["type"] == "FILE",
        int(item.get("length", 0)),
        int(item.get("modificationTime", 0)) * 1000,
        str(item.get("fileId", "")),
    )


LOGIN_REQUIRED: Final = "AuthenticationRequired"
NOT_WEBHDFS: Final = "the response is not from WebHDFS"
_DENIED: Final = frozenset(
    ("AccessControlException", "SecurityException", "InvalidToken", "AuthorizationException",
     "AuthenticationException")
)  # fmt: skip
_MISSING: Final = frozenset(("FileNotFoundException", "PathNotFoundException"))
_BUSY: Final = frozenset(("StandbyException", "RetriableException", "SafeModeException"))


def hdfs_error(status: int, body: bytes) -> StorageFault:
    """The error in a response, as a single line."""
    if status == 401:
        return StorageDenied("a login is required (status 401)", code=LOGIN_REQUIRED, status=status)
    name, message = _name_and_message(body)
    kind: type[StorageFault] = StorageFault
    if status == 404 and not name:
        # This is not an error of Hadoop. "Missing" would remove the datasets, so report a failure.
        return StorageFault(f"{NOT_WEBHDFS} (status 404)", status=status)
    if name in _MISSING:
        kind = StorageMissing
    elif name in _DENIED or (status == 403 and not name):
        kind = StorageDenied
    elif name in _BUSY or is_temporary(status):
        kind = StorageBusy
    reason = message or "the request failed"
    return kind(f"{reason} ({name or f'status {status}'})", code=name, status=status)


def _name_and_message(body: bytes) -> tuple[str, str]:
    try:
        exception = json.loads(body)["RemoteException"]
        name, message = str(exception["exception"]), str(exception.get("message") or "")
    except (ValueError, KeyError, TypeError):
        return "", ""
    # The lines after the first one are a stack trace of the server.
    first_line = message.strip().partition("\n")[0].rstrip(". ")
    return name, redact(first_line)[:300]
