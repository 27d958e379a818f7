"""Names of datasets on screens: short ones, and URNs with --verbose."""

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from lumos.cli.text import VERBOSE

if TYPE_CHECKING:
    from lumos.sdk import Lumos

# Punctuation at the end belongs to the sentence around a URN.
_URN: Final = re.compile(r"lumos://[\w.+@%~=:,/?-]*[\w+@%~=/-]", re.ASCII)


class Names:
    """Replaces URNs in texts by the names of datasets.

    Datasets with the same name are shown with as much of their path as is needed to distinguish
    them.
    """

    def __init__(self, lumos: "Lumos", texts: Iterable[str] = ()) -> None:
        self._lumos = lumos
        self.verbose = bool(os.environ.get(VERBOSE))
        self._names: dict[str, str] = {}
        self.look_up(texts)

    def look_up(self, texts: Iterable[str]) -> None:
        """Look up all URNs in some texts at once."""
        if self.verbose:
            return
        urns = {urn for text in texts for urn in _urns_in(text)}
        if new := urns - self._names.keys():
            self._names |= self._lumos.display_names(new)

    def __call__(self, text: str) -> str:
        if self.verbose:
            return text
        self.look_up((text,))
        return self._names.get(text) or _URN.sub(lambda match: self._names[match.group()], text)


def _urns_in(text: str) -> list[str]:
    # A URN may end in characters that are punctuation in a sentence.
    return [text] if text.startswith("lumos://") and " " not in text else _URN.findall(text)
