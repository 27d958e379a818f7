"""Deletion vectors: where a table says which rows of a file are deleted."""

import base64
import binascii
import uuid
from collections.abc import Callable
from typing import Final

from lumos.formats.tables.delta.actions import Damaged, DeletionVector
from lumos.formats.tables.interface import Deletes

# Delta writes bytes in ZeroMQ's spelling of base 85, Python reads that of git.
_Z85: Final = (
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
)
_B85: Final = (
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
)
_TO_B85: Final = bytes.maketrans(_Z85, _B85)
_UUID_LENGTH: Final = 20
_UUID_BYTES: Final = 16


def id_of(vector: DeletionVector | None) -> str:
    """What tells one vector of a file from another, or from none."""
    if vector is None:
        return ""
    offset = "" if vector.offset is None else f"@{vector.offset}"
    return f"{vector.storage_type}{vector.path_or_inline_dv}{offset}"


def deletes_of(vector: DeletionVector, resolved: Callable[[str], str]) -> Deletes:
    """Where the vector is written; `resolved` gives the path of an address; raises Damaged."""
    path, inline = "", b""
    place = vector.path_or_inline_dv
    match vector.storage_type:
        case "u":
            prefix, name = place[:-_UUID_LENGTH], _decoded(place[-_UUID_LENGTH:])
            if len(name) != _UUID_BYTES:
                raise Damaged(f"the deletion vector '{place}' has no name")
            folder = f"{prefix}/" if prefix else ""
            path = f"{folder}deletion_vector_{uuid.UUID(bytes=name)}.bin"
        case "p":
            path = resolved(place)
        case "i":
            inline = _decoded(place)[: vector.size_in_bytes]
        case kind:
            raise Damaged(f"deletion vectors of the kind '{kind}' are not known")
    return Deletes(
        kind="dv",
        path=path,
        offset=vector.offset or 0,
        length=vector.size_in_bytes,
        count=vector.cardinality,
        inline=inline,
    )


def _decoded(text: str) -> bytes:
    try:
        spelled = text.encode("ascii")
        if len(spelled) % 5 or spelled.translate(None, _Z85):
            raise ValueError
        return base64.b85decode(spelled.translate(_TO_B85))
    except (ValueError, binascii.Error):
        raise Damaged(f"the deletion vector '{text[:60]}' is not spelled in base 85") from None
