"""Errors of storages, which are subclasses of Python's file errors."""

import html
import re
from typing import Final

from lumos.http.retries import is_temporary

# The body is not parsed as XML, since gateways and proxies send malformed documents.
_ELEMENT: Final = re.compile(r"<(Code|Message|Region)>([^<]*)</\1>")
_ARCHIVED: Final = ("InvalidObjectState", "BlobArchived")
_STATUS: Final = re.compile(r"status code: (\d{3})")


class StorageFault(OSError):
    """A failed request; `code` is the server's error code; `status` is 0 without a response."""

    def __init__(self, text: str, *, code: str = "", status: int = 0, region: str = "") -> None:
        super().__init__(text)
        self.code = code
        self.status = status
        # The region of the bucket, if the response names it.
        self.region = region

    @property
    def problem_code(self) -> str:
        """The code under which a scan reports the problem."""
        return "not_listed"


class StorageDenied(StorageFault, PermissionError):
    """No permission, or the credentials were rejected."""

    @property
    def problem_code(self) -> str:
        return "permission_denied"


class StorageMissing(StorageFault, FileNotFoundError):
    """No such bucket or key."""


class StorageBusy(StorageFault):
    """The server was still throttling or failing after all retries."""

    @property
    def problem_code(self) -> str:
        return "storage_busy"


class StorageUnreachable(StorageFault, ConnectionError):
    """The endpoint does not respond."""


class NoCredentials(StorageDenied):
    """No usable credentials were found."""


def error_from_response(status: int, body: bytes, *, region: str = "") -> StorageFault:
    """The error in a response; only its code and message are shown."""
    elements = dict(_ELEMENT.findall(body.decode(errors="replace")))
    return _error(status, elements, region=region)


def error_from_obstore(text: str) -> StorageFault:
    """Extract the error from the long text of an obstore exception."""
    status = _STATUS.search(text)
    elements = dict(_ELEMENT.findall(text))
    if status is None and "error sending request" in text:
        return StorageUnreachable("the endpoint does not answer")
    if status is None and "redirect" in text:
        return StorageFault("the bucket is in another region", code="PermanentRedirect", status=301)
    return _error(int(status.group(1)) if status else 0, elements)


def _error(status: int, elements: dict[str, str], *, region: str = "") -> StorageFault:
    code = elements.get("Code", "")
    message = html.unescape(elements.get("Message", ""))
    # Azure appends ids and times on further lines.
    line = message.strip().partition("\n")[0]
    reason = "".join(char if char.isprintable() else " " for char in line).strip().rstrip(".")
    cause = code or (f"status {status}" if status else "no response")
    text = f"{reason or 'the request failed'} ({cause})"
    bucket_region = region or elements.get("Region", "")
    kind = fault_type(status)
    if code in _ARCHIVED:
        kind, text = StorageFault, f"it is archived; restore it first ({code})"
    return kind(text, code=code, status=status, region=bucket_region)


def fault_type(status: int) -> type[StorageFault]:
    """The class of errors for an HTTP status."""
    if status == 404:
        return StorageMissing
    if status in (401, 403):
        return StorageDenied
    return StorageBusy if is_temporary(status) else StorageFault
