"""Entries as rows of a table: the key, the content hash and the JSON without it."""

from typing import Any, Final

from lumos.snapshots.format.codec import Malformed, key_of
from lumos.snapshots.format.document import Kind
from lumos.snapshots.format.encodings.interface import Stored

CONTENT_HASH: Final = "content_hash"
BODY: Final = "body"


def columns_of(kind: Kind) -> tuple[str, str, str]:
    """The names of the columns."""
    return kind.key, CONTENT_HASH, BODY


def stored_row(kind: Kind, position: int, row: tuple[Any, Any, Any]) -> Stored | str:
    """The entry of a row, whose key must be that of the entry; or else what is wrong with it."""
    key, content_hash, body = row
    if body is None:
        return "It has no body."
    try:
        found = key_of(kind, body)
    except Malformed:
        # What is wrong with the body is told when it is decoded.
        found = key
    if found != key:
        return f"The row is that of '{key}', and its body that of '{found}'."
    return Stored(position, body, content_hash)
