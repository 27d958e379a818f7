"""What can go wrong with a bucket, as the errors that local files raise too."""

import html
import re
from typing import Final

_THROTTLED: Final = frozenset((429, 500, 502, 503, 504))
_ELEMENT: Final = re.compile(r"<(Code|Message|Region)>([^<]*)</\1>")
_ARCHIVED: Final = ("InvalidObjectState", "BlobArchived")
_STATUS: Final = re.compile(r"status code: (\d{3})")


class StorageFault(OSError):
    """A request that failed; `code` is the server's word for it, `status` 0 without an answer."""

    def __init__(self, text: str, *, code: str = "", status: int = 0, region: str = "") -> None:
        super().__init__(text)
        self.code = code
        self.status = status
        # Where the bucket really lies, if the answer says so.
        self.region = region

    @property
    def problem_code(self) -> str:
        """The code of the problem that a scan reports."""
        return "not_listed"


class StorageDenied(StorageFault, PermissionError):
    """No permission, or credentials that are not accepted."""

    @property
    def problem_code(self) -> str:
        return "permission_denied"


class StorageMissing(StorageFault, FileNotFoundError):
    """No such bucket or key."""


class StorageBusy(StorageFault):
    """The server kept refusing for the time being until patience ran out."""

    @property
    def problem_code(self) -> str:
        return "storage_busy"


class StorageUnreachable(StorageFault, ConnectionError):
    """No answer from the endpoint at all."""


class NoCredentials(StorageDenied):
    """No place where credentials are looked for has any."""


def is_passing(status: int) -> bool:
    """Whether an answer says no more than: not now."""
    return status in _THROTTLED


def error_of(status: int, body: bytes, *, region: str = "") -> StorageFault:
    """The error that an answer means; only its code and message are passed on."""
    facts = dict(_ELEMENT.findall(body.decode(errors="replace")))
    return _error(status, facts, region=region)


def error_in(text: str) -> StorageFault:
    """The error behind the long text that obstore makes of it."""
    status = _STATUS.search(text)
    facts = dict(_ELEMENT.findall(text))
    if status is None and "error sending request" in text:
        return StorageUnreachable("the endpoint does not answer")
    if status is None and "redirect" in text:
        return StorageFault(
            "the bucket lies in another region", code="PermanentRedirect", status=301
        )
    return _error(int(status.group(1)) if status else 0, facts)


def _error(status: int, facts: dict[str, str], *, region: str = "") -> StorageFault:
    code = facts.get("Code", "")
    # Gateways and proxies send what no parser of XML takes.
    message = html.unescape(facts.get("Message", ""))
    # Azure goes on with ids and times.
    line = message.strip().partition("\n")[0]
    told = "".join(mark if mark.isprintable() else " " for mark in line).strip().rstrip(".")
    told = told or "the request failed"
    text = f"{told} ({code or (f'status {status}' if status else 'no answer')})"
    where = region or facts.get("Region", "")
    kind: type[StorageFault] = StorageFault
    if code in _ARCHIVED:
        text = f"it is archived; restore it before it can be read ({code})"
    elif status == 404:
        kind = StorageMissing
    elif status in (401, 403):
        kind = StorageDenied
    elif is_passing(status):
        kind = StorageBusy
    return kind(text, code=code, status=status, region=where)
