"""Texts as an OpenMetadata server stores them.

Descriptions are HTML that the server cleans. Plain text is sent escaped, so that `a < b` and
`x<y>z` stay whole, and read unescaped; markup that people wrote reads as it is.
"""

import re
from html import entities
from typing import Final

from lumos.model.json_codec import to_json

_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
# Put between two braces by the server, against templates.
_BETWEEN_BRACES: Final = "<!-- -->"
# `html.unescape` would drop characters that the server keeps.
_REFERENCE: Final = re.compile(
    r"&(?:#(?P<decimal>\d{1,7})|#[xX](?P<hex>[0-9a-fA-F]{1,6})|(?P<name>\w+));"
)
_LOST: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def encoded(text: str) -> str:
    """Words as they are sent."""
    return text.translate(_ESCAPES)


def decoded(text: str) -> str:
    """The text that a stored text stands for."""
    return _REFERENCE.sub(_character, text.replace(_BETWEEN_BRACES, ""))


def has_markup(text: str) -> bool:
    """Whether a stored text has HTML in it, which Lumos would escape."""
    return "<" in text.replace(_BETWEEN_BRACES, "")


def is_same_text(one: str | None, other: str | None) -> bool:
    """Whether two stored texts are the same; the server writes some characters as references."""
    sides = [(decoded(each or ""), has_markup(each or "")) for each in (one, other)]
    return sides[0] == sides[1]


def storable(text: str) -> str:
    """What of some text comes back: characters that no XML may hold are lost."""
    return _LOST.sub("", text)


def _character(reference: re.Match[str]) -> str:
    if (name := reference["name"]) is not None:
        return entities.html5.get(f"{name};", reference.group())
    number = int(reference["decimal"]) if reference["decimal"] else int(reference["hex"], 16)
    return chr(number) if number <= 0x10FFFF else reference.group()


def shown_text(text: str) -> str:
    """A text without NUL, which the server's database takes in no text."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def kept_text(text: str) -> str:
    """A text of Lumos's own that comes back as it is: JSON where it would not."""
    return text if shown_text(text) == text else to_json(text).decode()
