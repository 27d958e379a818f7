"""The encoding of text files, and the text of their samples."""

import codecs
from typing import Final

from lumos.formats.interface import Sample, UnreadableFile

_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Control characters that do not occur in text, unlike ^A (Hive's delimiter), ^Z and escape.
_CONTROL: Final = bytes({*range(0x09), *range(0x0E, 0x20)} - {0x01, 0x1A, 0x1B})
# Bytes that are undefined in Windows-1252.
_UNDEFINED_IN_WINDOWS: Final = bytes.fromhex("81 8d 8f 90 9d")
_MAX_CHARACTER_BYTES: Final = 4
_MAX_LEADING_BYTES: Final = 256


def text_of(sample: Sample) -> str:
    """The text of a sample: UTF-8, UTF-16 or UTF-32 by byte order marks, else Windows-1252."""
    data = sample.data
    encoding = _encoding(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as problem:
        # The sample may end inside a character.
        is_cut = problem.start >= len(data) - _MAX_CHARACTER_BYTES and (
            not sample.whole or encoding != "utf-8"
        )
        text = data[: problem.start].decode(encoding) if is_cut else _decode_windows(data)
    if encoding not in ("utf-8", "utf-8-sig"):
        data = text.encode(errors="replace")
    if len(data.translate(None, _CONTROL)) != len(data):
        raise UnreadableFile("not_text", "The file contains binary data, not text.")
    return text


def encoding_of(sample: Sample) -> str:
    """The encoding of the file that begins with a sample."""
    encoding = _encoding(sample.data)
    try:
        codecs.getincrementaldecoder(encoding)().decode(sample.data, sample.whole)
    except UnicodeDecodeError:
        return "latin-1" if any(byte in sample.data for byte in _UNDEFINED_IN_WINDOWS) else "cp1252"
    return encoding


def _encoding(data: bytes) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return encoding
    # UTF-16 without a byte order mark: every other byte of ASCII letters is zero.
    head = data[:64]
    if len(head) >= 4 and b"\x00" in head:
        even_zeros, odd_zeros = head[::2].count(0), head[1::2].count(0)
        if even_zeros == 0 and odd_zeros > len(head) // 3:
            return "utf-16-le"
        if odd_zeros == 0 and even_zeros > len(head) // 3:
            return "utf-16-be"
    return "utf-8"


def _decode_windows(data: bytes) -> str:
    try:
        return data.decode("cp1252")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def is_text(data: bytes) -> bool:
    """Whether these first bytes of a file are text."""
    try:
        text_of(Sample(data, whole=False, total=None))
    except UnreadableFile:
        return False
    return True


def first_character(sample: Sample) -> str:
    """The first character of the text that is not a space."""
    return text_of(Sample(sample.data[:_MAX_LEADING_BYTES], whole=False, total=None)).lstrip()[:1]
