"""Texts as an OpenMetadata server stores them.

Descriptions are HTML that the server sanitizes. Plain text is escaped when it is sent, so that
`a < b` and `x<y>z` are kept, and unescaped when it is read; markup of users is read unchanged.
"""

import re
from html import entities
from typing import Final

from lumos.model.json_codec import to_json

_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
# Inserted by the server between two braces, against template injection.
_BETWEEN_BRACES: Final = "<!-- -->"
# `html.unescape` would drop characters that the server keeps.
_REFERENCE: Final = re.compile(
    r"&(?:#(?P<decimal>\d{1,7})|#[xX](?P<hex>[0-9a-fA-F]{1,6})|(?P<name>\w+));"
)
_LOST: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def escape_html(text: str) -> str:
    return text.translate(_ESCAPES)


def unescape_html(text: str) -> str:
    return _REFERENCE.sub(_character, text.replace(_BETWEEN_BRACES, ""))


def has_markup(text: str) -> bool:
    """Whether a text of the server contains HTML, which Lumos would escape."""
    return "<" in text.replace(_BETWEEN_BRACES, "")


def is_same_text(one: str | None, other: str | None) -> bool:
    """Whether two texts of the server are equal; it writes some characters as references."""
    sides = [(unescape_html(each or ""), has_markup(each or "")) for each in (one, other)]
    return sides[0] == sides[1]


def without_lost_characters(text: str) -> str:
    """A text without the characters that are invalid in XML, which the server drops."""
    return _LOST.sub("", text)


def _character(reference: re.Match[str]) -> str:
    if (name := reference["name"]) is not None:
        return entities.html5.get(f"{name};", reference.group())
    number = int(reference["decimal"]) if reference["decimal"] else int(reference["hex"], 16)
    return chr(number) if number <= 0x10FFFF else reference.group()


def without_nul(text: str) -> str:
    """A text without NUL, which the server's database rejects."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def encode_own_text(text: str) -> str:
    """Encode a text of Lumos so that the server returns it unchanged: as JSON if it has NUL."""
    return text if without_nul(text) == text else to_json(text).decode()
