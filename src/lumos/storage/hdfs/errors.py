"""What WebHDFS says is wrong, as the errors that all storages raise."""

import json
from typing import Final

from lumos.config.secret import redact
from lumos.storage.errors import (
    StorageBusy,
    StorageDenied,
    StorageFault,
    StorageMissing,
    is_passing,
)

LOGIN: Final = "AuthenticationRequired"
NOT_WEBHDFS: Final = "the address does not answer as WebHDFS does"
_DENIED: Final = frozenset(
    ("AccessControlException", "SecurityException", "InvalidToken", "AuthorizationException",
     "AuthenticationException")
)  # fmt: skip
_MISSING: Final = frozenset(("FileNotFoundException", "PathNotFoundException"))
_BUSY: Final = frozenset(("StandbyException", "RetriableException", "SafeModeException"))


def error_of(status: int, body: bytes) -> StorageFault:
    """The error that an answer means, in one line."""
    if status == 401:
        return StorageDenied("whoever asks must log in (status 401)", code=LOGIN, status=status)
    name, message = _told(body)
    kind: type[StorageFault] = StorageFault
    if status == 404 and not name:
        # Only Hadoop knows what it has; a root that seems empty would have its datasets removed.
        return StorageFault(f"{NOT_WEBHDFS} (status 404)", status=status)
    if name in _MISSING:
        kind = StorageMissing
    elif name in _DENIED or (status == 403 and not name):
        kind = StorageDenied
    elif name in _BUSY or is_passing(status):
        kind = StorageBusy
    told = message or "the request failed"
    return kind(f"{told} ({name or f'status {status}'})", code=name, status=status)


def _told(body: bytes) -> tuple[str, str]:
    try:
        facts = json.loads(body)["RemoteException"]
        name, message = str(facts["exception"]), str(facts.get("message") or "")
    except (ValueError, KeyError, TypeError):
        return "", ""
    # What follows are the lines of the server's own stack.
    first = message.strip().partition("\n")[0].rstrip(". ")
    return name, redact(first)[:300]
