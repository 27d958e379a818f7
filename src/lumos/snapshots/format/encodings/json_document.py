"""A snapshot as one JSON document: the keys of the header, then a list for each kind.

Each entry is on its own line, so that line-based tools can compare two snapshots.
"""

import codecs
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from lumos.snapshots.format.codec import (
    MalformedJson,
    add_hash,
    canonical,
    decode_json,
    refuse_duplicate_keys,
)
from lumos.snapshots.format.document import KINDS, EntryKind, SnapshotHeader
from lumos.snapshots.format.encodings.interface import BUFFER, Bodies, SnapshotContainer, StoredJson
from lumos.snapshots.format.errors import NotASnapshot, SnapshotError, TruncatedSnapshot
from lumos.snapshots.format.legacy_layout import HEADER_KEYS, NESTED

_LISTS: Final = tuple(kind.plural for kind in KINDS)
_HEADER_NAMES: Final = tuple(dict.fromkeys((*SnapshotHeader.__struct_fields__, *HEADER_KEYS)))
_LIST_START: Final = b',\n"%b":['
_SEPARATOR: Final = b",\n"
_LIST_END: Final = b"\n]"
_DOCUMENT_END: Final = b"}\n"
# The levels with keys of the document: the outermost level, and that below `lumos_snapshot`.
_DOCUMENT_LEVELS: Final = 2
_BYTE_OFFSET: Final = re.compile(r" \(byte (\d+)\)\Z")
# Entries are only split in one pass over the bytes; they are decoded when they are read.
_KEYS: Final = [
    *((name, msgspec.Raw | msgspec.UnsetType, msgspec.UNSET) for name in (NESTED, *_HEADER_NAMES)),
    *((name, list[msgspec.Raw], msgspec.field(default_factory=list)) for name in _LISTS),
]
_Document: Final = msgspec.defstruct("_Document", _KEYS)
_ExactDocument: Final = msgspec.defstruct("_ExactDocument", _KEYS, forbid_unknown_fields=True)


class JsonDocument(SnapshotContainer):
    """A document in memory; it can also have a legacy layout."""

    streamed = False

    def __init__(self, file: Path, data: bytes) -> None:
        try:
            document, self.unknown_keys = _parse_document(data)
            self._prefix = ""
            if (nested := getattr(document, NESTED)) is not msgspec.UNSET:
                self._prefix = f"{NESTED}."
                document, self.unknown_keys = _parse_document(nested)
        except MalformedJson as problem:
            raise json_error(file, problem, data) from None
        values = {name: getattr(document, name) for name in _HEADER_NAMES}
        header = {name: value for name, value in values.items() if value is not msgspec.UNSET}
        self.header = canonical({NESTED: header} if self._prefix else header)
        self._lists: dict[str, list[msgspec.Raw]] = {
            name: getattr(document, name) for name in _LISTS
        }

    def entries(self, kind: EntryKind) -> Iterator[StoredJson]:
        for position, raw in enumerate(self._lists[kind.plural]):
            yield StoredJson(position, bytes(raw))

    def is_canonical_size(self, size: int) -> bool:
        """Whether a file of this size contains only the parsed contents, as Lumos writes them.

        With a duplicate key, for example, the file is longer.
        """
        # Each entry is counted with a comma and a line feed. The first entry of a list has no
        # comma, but its list has a line feed at the end, which is not counted in `frames`.
        frames = sum(len(_LIST_START % name.encode()) + len(b"]") for name in _LISTS)
        entries = sum(
            len(_SEPARATOR) + len(raw) for entries in self._lists.values() for raw in entries
        )
        return size == len(self.header[:-1]) + frames + entries + len(_DOCUMENT_END)

    def path_of(self, kind: EntryKind, position: int) -> str:
        return f"{self._prefix}{kind.plural}[{position}]"


def _parse_document(data: bytes | msgspec.Raw) -> tuple[Any, tuple[str, ...]]:
    """The parsed document and its unknown keys."""
    try:
        return decode_json(data, _ExactDocument), ()
    except MalformedJson as problem:
        if "unknown field" not in problem.problem:
            raise
    known = {name for name, *_ in _KEYS}
    keys = decode_json(data, dict[str, msgspec.Raw])
    return decode_json(data, _Document), tuple(key for key in keys if key not in known)


def open_json(file: Path) -> JsonDocument:
    # Some editors write a byte order mark, which JSON does not allow.
    data = file.read_bytes().removeprefix(codecs.BOM_UTF8)
    document = JsonDocument(file, data)
    if not document.is_canonical_size(len(data)):
        refuse_duplicate_keys(data, levels=_DOCUMENT_LEVELS)
    return document


def write_json(file: Path, header: bytes, bodies: Bodies) -> None:
    with file.open("wb", buffering=BUFFER) as stream:
        stream.write(header[:-1])
        for kind in KINDS:
            stream.write(_LIST_START % kind.plural.encode())
            separator = b"\n"
            for _, body, content_hash in bodies[kind.plural]:
                stream.write(add_hash(body, content_hash, before=separator))
                separator = _SEPARATOR
            stream.write(b"]" if separator == b"\n" else _LIST_END)
        stream.write(_DOCUMENT_END)


def json_error(file: Path, problem: MalformedJson, data: bytes) -> SnapshotError:
    """The error for JSON that cannot be parsed."""
    if problem.is_truncated:
        text = "It ends in the middle of a value." if data.strip() else "It is empty."
        return TruncatedSnapshot(file, _position(data, len(data)), text)
    byte = _BYTE_OFFSET.search(problem.problem)
    if byte is None:
        # The document is not an object, or one of its lists is not a list.
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
