"""Files of other kinds, known by their first bytes, so that a wrong name can be explained."""

import re
from typing import Final

_MAGIC: Final = (
    (b"\x89PNG\r\n", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive or an office document"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\xfd7zXZ\x00", "compressed with xz"),
    (b"\x04\x22\x4d\x18", "compressed with LZ4"),
    (b"\xff\x06\x00\x00sNaPpY", "compressed with Snappy"),
    (b"ARROW1\x00\x00", "an Arrow or Feather file"),
    (b"SQLite format 3\x00", "a SQLite database"),
    (b"\x89HDF\r\n", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old office document"),
    (b"\x7fELF", "a program"),
    (b"\xca\xfe\xba\xbe", "a Java class"),
)
_MARKUP: Final = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*<(?:\?(xml)|!doctype html|html)\b", re.IGNORECASE
)


def stranger(head: bytes) -> str | None:
    """What a file that begins like this is, if it certainly holds no dataset."""
    for magic, title in _MAGIC:
        if head.startswith(magic):
            return title
    if head[257:262] == b"ustar":
        return "a tar archive"
    markup = _MARKUP.match(head)
    if markup:
        return "XML" if markup[1] else "HTML"
    return None
