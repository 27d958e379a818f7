"""A snapshot as one JSON document: the header's keys, then a list for each kind.

Each entry stands on a line of its own, so that line-based tools can tell what changed.
"""

import codecs
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from lumos.snapshots.format.codec import (
    MalformedJson,
    canonical,
    decode_json,
    refuse_repeated,
    seal,
)
from lumos.snapshots.format.document import KINDS, EntryKind, SnapshotHeader
from lumos.snapshots.format.encodings.interface import BUFFER, Bodies, SnapshotContainer, StoredJson
from lumos.snapshots.format.errors import NotASnapshot, SnapshotError, TruncatedSnapshot
from lumos.snapshots.format.legacy_layout import HEADER_KEYS, NESTED

_LISTS: Final = tuple(kind.plural for kind in KINDS)
_HEAD: Final = tuple(dict.fromkeys((*SnapshotHeader.__struct_fields__, *HEADER_KEYS)))
_START: Final = b',\n"%b":['
_BETWEEN: Final = b",\n"
_END: Final = b"\n]"
_CLOSED: Final = b"}\n"
# The document itself, and the one below `lumos_snapshot`.
_OF_THE_DOCUMENT: Final = 2
_BYTE: Final = re.compile(r" \(byte (\d+)\)\Z")
# Entries are found in one pass over the bytes, and decoded only when somebody asks for them.
_KEYS: Final = [
    *((name, msgspec.Raw | msgspec.UnsetType, msgspec.UNSET) for name in (NESTED, *_HEAD)),
    *((name, list[msgspec.Raw], msgspec.field(default_factory=list)) for name in _LISTS),
]
_Document: Final = msgspec.defstruct("_Document", _KEYS)
_ExactDocument: Final = msgspec.defstruct("_ExactDocument", _KEYS, forbid_unknown_fields=True)


class JsonDocument(SnapshotContainer):
    """A document in the memory; the founding documents' layouts have their places in it too."""

    streamed = False

    def __init__(self, file: Path, data: bytes) -> None:
        try:
            document, self.strangers = _apart(data)
            self._within = ""
            if (nested := getattr(document, NESTED)) is not msgspec.UNSET:
                self._within = f"{NESTED}."
                document, self.strangers = _apart(nested)
        except MalformedJson as problem:
            raise refusal(file, problem, data) from None
        head = {name: getattr(document, name) for name in _HEAD}
        given = {name: value for name, value in head.items() if value is not msgspec.UNSET}
        self.header = canonical({NESTED: given} if self._within else given)
        self._lists: dict[str, list[msgspec.Raw]] = {
            name: getattr(document, name) for name in _LISTS
        }

    def entries(self, kind: EntryKind) -> Iterator[StoredJson]:
        for position, raw in enumerate(self._lists[kind.plural]):
            yield StoredJson(position, bytes(raw))

    def is_all(self, size: int) -> bool:
        """Whether a file of that size holds no more than was taken from it, as Lumos lays it out.

        A key that stands twice makes a file longer than that.
        """
        # The line feed that ends a list is the one that its first entry lacks a comma beside.
        frames = sum(len(_START % name.encode()) + len(b"]") for name in _LISTS)
        entries = sum(
            len(_BETWEEN) + len(raw) for entries in self._lists.values() for raw in entries
        )
        return size == len(self.header[:-1]) + frames + entries + len(_CLOSED)

    def place(self, kind: EntryKind, position: int) -> str:
        return f"{self._within}{kind.plural}[{position}]"


def _apart(data: bytes | msgspec.Raw) -> tuple[Any, tuple[str, ...]]:
    """A document taken apart, and the keys in it that nobody knows."""
    try:
        return decode_json(data, _ExactDocument), ()
    except MalformedJson as problem:
        if "unknown field" not in problem.problem:
            raise
    known = {name for name, *_ in _KEYS}
    keys = decode_json(data, dict[str, msgspec.Raw])
    return decode_json(data, _Document), tuple(key for key in keys if key not in known)


def open_json(file: Path) -> JsonDocument:
    """Opens a document."""
    # Some editors put a mark before text in UTF-8, which JSON does not have.
    data = file.read_bytes().removeprefix(codecs.BOM_UTF8)
    document = JsonDocument(file, data)
    if not document.is_all(len(data)):
        refuse_repeated(data, levels=_OF_THE_DOCUMENT)
    return document


def write_json(file: Path, header: bytes, bodies: Bodies) -> None:
    """Writes a document."""
    with file.open("wb", buffering=BUFFER) as stream:
        stream.write(header[:-1])
        for kind in KINDS:
            stream.write(_START % kind.plural.encode())
            before = b"\n"
            for _, body, content_hash in bodies[kind.plural]:
                stream.write(seal(body, content_hash, before=before))
                before = _BETWEEN
            stream.write(b"]" if before == b"\n" else _END)
        stream.write(_CLOSED)


def refusal(file: Path, problem: MalformedJson, data: bytes) -> SnapshotError:
    """The error for JSON that cannot be taken apart."""
    if problem.cut_off:
        cut = "It ends in the middle of a value." if data.strip() else "It is empty."
        return TruncatedSnapshot(file, _position(data, len(data)), cut)
    byte = _BYTE.search(problem.problem)
    if byte is None:
        # The document as a whole is no object, or a list in it is no list.
        error = SnapshotError if problem.path else NotASnapshot
        return error(file, problem.path.removeprefix("."), f"{problem.problem}.")
    offset = int(byte[1])
    error = SnapshotError if data.lstrip().startswith(b"{") else NotASnapshot
    reason = problem.problem[: byte.start()]
    return error(file, _position(data, offset), f"This is not JSON: {reason}.")


def _position(data: bytes, offset: int) -> str:
    line = data.count(b"\n", 0, offset) + 1
    column = offset - data.rfind(b"\n", 0, offset)
    return f"line {line}, column {column}"
