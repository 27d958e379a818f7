"""Pages of keys and errors as Google's JSON API spells them.

Its XML API lists as S3 does, but tells no storage class.
"""

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from lumos.storage.errors import (
    StorageBusy,
    StorageDenied,
    StorageFault,
    StorageMissing,
    is_passing,
)
from lumos.storage.objects.bucket import Entry, Page

SOMEBODY_PAYS: Final = "UserProjectMissing"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIELDS: Final = "items(name,size,updated,generation,storageClass),prefixes,nextPageToken"


def page_query(prefix: str, after: str, token: str, *, folders: bool, limit: int) -> dict[str, str]:
    """What to ask for a page; Google begins with the key that is named, so that is one more."""
    return {
        "prefix": prefix,
        "maxResults": str(limit + bool(after)),
        "fields": _FIELDS,
        **({"delimiter": "/"} if folders else {}),
        **({"startOffset": after} if after else {}),
        **({"pageToken": token} if token else {}),
    }


def page_of(body: bytes, *, after: str, limit: int) -> Page:
    """The page that an answer holds."""
    try:
        facts = json.loads(body)
        entries = [_entry(each) for each in facts.get("items", ())]
        folders = [str(each) for each in facts.get("prefixes", ())]
        token = str(facts.get("nextPageToken", ""))
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise StorageFault("the endpoint does not answer as Google Cloud Storage does") from problem
    later = [entry for entry in entries if entry.key > after]
    return Page(later[:limit] if limit == 1 else later, folders, token)


def error_of(status: int, body: bytes) -> StorageFault:
    """The error that an answer means, in one line."""
    message, reason = _told(body)
    kind: type[StorageFault] = StorageFault
    if "requester pays" in message:
        reason = SOMEBODY_PAYS
    elif status == 404:
        kind = StorageMissing
    elif status in (401, 403):
        kind = StorageDenied
    elif is_passing(status):
        kind = StorageBusy
    text = f"{message or 'the request failed'} ({reason or f'status {status}'})"
    return kind(text, code=reason, status=status)


def _entry(facts: dict[str, Any]) -> Entry:
    modified = (datetime.fromisoformat(facts["updated"]) - _EPOCH) // timedelta(microseconds=1)
    # Whatever is written anew has another generation, even the same bytes.
    generation = str(facts.get("generation", ""))
    storage_class = str(facts.get("storageClass", "")).lower()
    return Entry(facts["name"], int(facts["size"]), modified, generation, storage_class)


def _told(body: bytes) -> tuple[str, str]:
    try:
        facts = json.loads(body)["error"]
        reasons = [each.get("reason", "") for each in facts.get("errors", ())]
        return " ".join(str(facts.get("message", "")).split()).rstrip("."), "".join(reasons[:1])
    except (ValueError, KeyError, TypeError, AttributeError):
        return "", ""
