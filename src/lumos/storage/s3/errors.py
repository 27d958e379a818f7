"""What can go wrong with a bucket, as the errors that local files raise too."""

import re
from typing import Final
from xml.etree import ElementTree

_THROTTLED: Final = frozenset((429, 500, 502, 503, 504))
_ELEMENT: Final = re.compile(r"<(Code|Message|Region)>([^<]*)</\1>")
_STATUS: Final = re.compile(r"status code: (\d{3})")


class S3Error(OSError):
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


class S3Denied(S3Error, PermissionError):
    """No permission, or credentials that are not accepted."""

    @property
    def problem_code(self) -> str:
        return "permission_denied"


class S3Missing(S3Error, FileNotFoundError):
    """No such bucket or key."""


class S3Busy(S3Error):
    """The server kept refusing for the time being until patience ran out."""

    @property
    def problem_code(self) -> str:
        return "storage_busy"


class S3Unreachable(S3Error, ConnectionError):
    """No answer from the endpoint at all."""


class NoCredentials(S3Denied):
    """No place where credentials are looked for has any."""


def is_passing(status: int) -> bool:
    """Whether an answer says no more than: not now."""
    return status in _THROTTLED


def error_of(status: int, body: bytes, *, region: str = "") -> S3Error:
    """The error that an answer means; only its code and message are passed on."""
    facts = dict(_ELEMENT.findall(body.decode(errors="replace")))
    return _error(status, facts, region=region)


def error_in(text: str) -> S3Error:
    """The error behind the long text that obstore makes of it."""
    status = _STATUS.search(text)
    facts = dict(_ELEMENT.findall(text))
    if status is None and "error sending request" in text:
        return S3Unreachable("the endpoint does not answer")
    if status is None and "redirect" in text:
        return S3Error("the bucket lies in another region", code="PermanentRedirect", status=301)
    return _error(int(status.group(1)) if status else 0, facts)


def _error(status: int, facts: dict[str, str], *, region: str = "") -> S3Error:
    code = facts.get("Code", "")
    message = ElementTree.fromstring(f"<m>{facts.get('Message', '')}</m>").text or ""
    told = message.rstrip(".") or "the request failed"
    text = f"{told} ({code or (f'status {status}' if status else 'no answer')})"
    where = region or facts.get("Region", "")
    kind: type[S3Error] = S3Error
    if code == "InvalidObjectState":
        text = "it is archived; restore it before it can be read (InvalidObjectState)"
    elif status == 404:
        kind = S3Missing
    elif status in (401, 403):
        kind = S3Denied
    elif is_passing(status):
        kind = S3Busy
    return kind(text, code=code, status=status, region=where)
