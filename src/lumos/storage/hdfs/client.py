"""The part of WebHDFS that Lumos uses."""

import json
import re
import time
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote, urlencode, urljoin, urlsplit, urlunsplit

from lumos.config.secret import MASK
from lumos.storage.errors import (
    StorageBusy,
    StorageFault,
    StorageMissing,
    StorageUnreachable,
)
from lumos.storage.fuse import Fuse
from lumos.storage.hdfs.errors import NOT_WEBHDFS, error_of
from lumos.storage.http import Answer, Patience, Transport

_DATA: Final = {"Content-Type": "application/octet-stream"}
_REDIRECTED: Final = (301, 302, 307)
_TOKEN: Final = re.compile(r"(?<=delegation=)[\w-]+|(?<=token=)[\w-]+")


class Status(NamedTuple):
    """A file or folder; `name` is empty for what was asked for itself."""

    name: str
    is_folder: bool
    is_file: bool
    size: int
    modified: int
    file_id: str


class Children(NamedTuple):
    """Some of what lies in a folder, in the order of names, and whether more follows."""

    found: list[Status]
    is_last: bool


class WebHdfs:
    """A file system behind its name nodes, of which one is active; may be used by many threads."""

    def __init__(
        self,
        bases: tuple[str, ...],
        *,
        transport: Transport,
        patience: Patience,
        user: str = "",
        token: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._bases = bases
        self._transport = transport
        self._patience = patience
        # A token says who asks, and a name beside it is refused.
        login = {"delegation": token} if token else {"user.name": user} if user else {}
        self._login = login
        self._token = token
        self._headers = dict(headers or {})
        self._active = 0
        self._pages = True
        self._fuse = Fuse()

    def status(self, path: str) -> Status:
        """A file or folder itself."""
        answer = self._json("GET", path, "GETFILESTATUS")
        with _as_webhdfs_answers():
            return _status(answer["FileStatus"])

    def children(self, path: str, after: str = "") -> Children:
        """What lies right in a folder and sorts after a name."""
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
                    return Children(found, not listing["remainingEntries"] or not found)
        answer = self._json("GET", path, "LISTSTATUS")
        with _as_webhdfs_answers():
            found = _statuses(answer)
        return Children([each for each in found if each.name > after], is_last=True)

    def all_children(self, path: str, after: str = "") -> Iterator[Status]:
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
        answer = self._asked("GET", path, "OPEN", offset=str(start), **part)
        return self._at_data_node("GET", answer, path) if answer.status != 200 else answer.body

    def create(self, path: str, data: bytes) -> None:
        """Writes a file, in place of one that was there; while it lasts, half of it is seen."""
        answer = self._asked("PUT", path, "CREATE", overwrite="true")
        self._at_data_node("PUT", answer, path, data)

    def rename(self, path: str, to: str, *, size: int) -> None:
        """Puts a file of some size in the place of another."""
        if self._is_renamed(path, to, size, renameoptions="OVERWRITE"):
            return
        # Gateways that know no options put nothing in the place of another.
        self.delete(to)
        if not self._is_renamed(path, to, size):
            raise StorageFault(f"{path} cannot be renamed to {to}")

    def _is_renamed(self, path: str, to: str, size: int, **options: str) -> bool:
        """Renames a file unless that is refused; raises where there is none.

        A request whose answer is lost is sent again. Then the file is where it should be already,
        and nothing of it may be removed.
        """
        try:
            answer = self._asked("PUT", path, "RENAME", destination=to, **options)
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
        self._asked("DELETE", path, "DELETE")

    def new_token(self, renewer: str) -> str:
        """A token that stands for whoever asks."""
        answer = self._json("GET", "/", "GETDELEGATIONTOKEN", renewer=renewer)
        with _as_webhdfs_answers():
            return str(answer["Token"]["urlString"])

    def cancel_token(self, token: str) -> None:
        """Ends a token."""
        self._asked("PUT", "/", "CANCELDELEGATIONTOKEN", token=token)

    def _json(self, method: str, path: str, op: str, **parameters: str) -> Any:
        answer = self._asked(method, path, op, **parameters)
        with _as_webhdfs_answers():
            return json.loads(answer.body)

    def _asked(self, method: str, path: str, op: str, **parameters: str) -> Answer:
        """The answer of the name node that is active; what fails there raises."""
        with self._fuse.guarded():
            return self._of_active(method, path, {"op": op, **self._login, **parameters})

    def _of_active(self, method: str, path: str, query: Mapping[str, str]) -> Answer:
        started, tried = time.monotonic(), 0
        while True:
            tried += 1
            problem: StorageFault | None = None
            for turn in range(len(self._bases)):
                at = (self._active + turn) % len(self._bases)
                try:
                    answer = self._of(self._bases[at], method, path, query)
                except (StorageUnreachable, StorageBusy) as failed:
                    problem = problem if isinstance(problem, StorageBusy) else failed
                    continue
                self._active = at
                return answer
            assert problem is not None, "there is some name node"
            wait = self._patience.wait(tried)
            is_late = time.monotonic() - started + wait > self._patience.seconds
            # Whoever did not answer was asked with patience already.
            is_over = isinstance(problem, StorageUnreachable) or problem.code == ""
            if is_over or is_late or tried >= self._patience.tries:
                raise problem
            time.sleep(wait)

    def _of(self, base: str, method: str, path: str, query: Mapping[str, str]) -> Answer:
        url = f"{base}{quote(path, safe='/-._~')}?{urlencode(query, quote_via=quote)}"
        # With a second name node beside it, one that is silent is not waited for.
        patience = self._patience if len(self._bases) == 1 else self._patience._replace(tries=1)
        answer = self._transport.send(method, url, headers=lambda: self._headers, patience=patience)
        if answer.status in (200, 201):
            return answer
        if answer.status in _REDIRECTED:
            return _with_whole_location(answer, url)
        raise self._without_token(error_of(answer.status, answer.body))

    def _at_data_node(self, method: str, told: Answer, path: str, data: bytes = b"") -> bytes:
        where = _undone(told.headers.get("location", ""), path)
        if told.status not in _REDIRECTED or not where:
            raise StorageFault(NOT_WEBHDFS)
        try:
            answer = self._transport.send(
                method,
                where,
                headers=lambda: {**self._headers, **_DATA},
                body=data,
                patience=self._patience,
            )
        except StorageUnreachable as silent:
            host = urlsplit(where).netloc.rpartition("@")[2]
            raise StorageUnreachable(
                f"the data node {host} that holds {path} does not answer; it must be reachable "
                "from here by that name, or 'url' must name an HttpFS gateway"
            ) from silent
        if answer.status in (200, 201):
            return answer.body
        raise self._without_token(error_of(answer.status, answer.body))

    def _without_token(self, problem: StorageFault) -> StorageFault:
        text = _TOKEN.sub(MASK, str(problem))
        problem.args = (text.replace(self._token, MASK) if self._token else text,)
        return problem


@contextmanager
def _as_webhdfs_answers() -> Iterator[None]:
    """Whatever else is at the address may answer anything."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError) as problem:
        raise StorageFault(NOT_WEBHDFS) from problem


def _with_whole_location(answer: Answer, url: str) -> Answer:
    """The answer with the place that it sends to in full; gateways name it without themselves."""
    location = answer.headers.get("location", "")
    if not location:
        return answer
    with _as_webhdfs_answers():
        return answer._replace(headers={**answer.headers, "location": urljoin(url, location)})


def _undone(location: str, path: str) -> str:
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


def _is_refused(answer: Answer) -> bool:
    return b'"boolean":false' in answer.body.replace(b" ", b"")


def _statuses(facts: Any) -> list[Status]:
    return [_status(each) for each in facts["FileStatuses"]["FileStatus"]]


def _status(facts: Mapping[str, Any]) -> Status:
    return Status(
        str(facts.get("pathSuffix", "")),
        facts["type"] == "DIRECTORY",
        facts["type"] == "FILE",
        int(facts.get("length", 0)),
        int(facts.get("modificationTime", 0)) * 1000,
        str(facts.get("fileId", "")),
    )
