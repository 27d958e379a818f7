"""Reversible percent-encoding of names: every text has one encoding, and every encoding one text.

Only the given characters are encoded. Text that merely looks encoded is encoded once more, so that
decoding restores it: `%2C` becomes `%252C`.
"""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote

_SURROGATE: Final = "ED%[AB][0-9A-F]%[89AB][0-9A-F]"


class PercentEscaping:
    """Encodes characters, sequences that match a pattern, and lone surrogates.

    `reserved` are sequences with a special meaning to the caller, such as a separator: text that
    contains one is encoded, so that it cannot be mistaken for it. `empty` encodes the empty text.
    """

    def __init__(
        self,
        characters: str,
        *,
        pattern: str | None = None,
        reserved: Iterable[str] = (),
        empty: str | None = None,
    ) -> None:
        encoded = [*map(percent_encode, characters), *reserved, *filter(None, (empty,))]
        endings = "|".join([*(re.escape(each[1:]) for each in encoded), _SURROGATE])
        self._empty = empty
        self._escapes = re.compile(f"%((?:25)*)(?:{endings})")
        pattern_alternative = "" if pattern is None else f"|{pattern}"
        self._characters = re.compile(
            f"[{re.escape(characters)}\ud800-\udfff]{pattern_alternative}"
        )

    def encode(self, text: str) -> str:
        if not text and self._empty is not None:
            return self._empty
        guarded = self._escapes.sub(lambda match: f"%25{match.group()[1:]}", text)
        return self._characters.sub(lambda match: percent_encode(match.group()), guarded)

    def decode(self, text: str) -> str:
        return self._escapes.sub(self._unescape, text)

    def _unescape(self, match: re.Match[str]) -> str:
        if match[1]:
            return f"%{match.group()[3:]}"
        if match.group() == self._empty:
            return ""
        return unquote(match.group(), errors="surrogatepass")


def percent_encode(text: str) -> str:
    """Encode every byte of a text."""
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))
