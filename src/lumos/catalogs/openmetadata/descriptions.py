"""Descriptions: OpenMetadata takes them for HTML, cleans that, and keeps what is left.

Plain words are sent escaped, so that `a < b` and `x<y>z` stay whole, and read unescaped. Markup
that people wrote into the catalog reads as it is.
"""

import re
from html import entities
from typing import Final

_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
# Put between two braces by the server, against templates.
_BETWEEN_BRACES: Final = "<!-- -->"
# `html.unescape` would drop characters that the server keeps.
_REFERENCE: Final = re.compile(
    r"&(?:#(?P<decimal>\d{1,7})|#[xX](?P<hex>[0-9a-fA-F]{1,6})|(?P<name>\w+));"
)
_LOST: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def encoded(words: str) -> str:
    """Words as they are sent."""
    return words.translate(_ESCAPES)


def decoded(text: str) -> str:
    """The words that a stored text stands for."""
    return _REFERENCE.sub(_character, text.replace(_BETWEEN_BRACES, ""))


def kept(words: str) -> str:
    """What of some words comes back: characters that no XML may hold are lost."""
    return _LOST.sub("", words)


def _character(reference: re.Match[str]) -> str:
    if (name := reference["name"]) is not None:
        return entities.html5.get(f"{name};", reference.group())
    number = int(reference["decimal"]) if reference["decimal"] else int(reference["hex"], 16)
    return chr(number) if number <= 0x10FFFF else reference.group()
