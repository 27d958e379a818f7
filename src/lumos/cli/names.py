"""Names of datasets in output: short names, or URNs with --verbose."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lumos.cli.text import is_verbose
from lumos.model.urn import SCHEME, DisplayNames

if TYPE_CHECKING:
    from lumos.sdk import Lumos


class Names(DisplayNames):
    """Replaces URNs in texts by the names of datasets, unless --verbose was given."""

    def __init__(self, lumos: "Lumos") -> None:
        super().__init__(lambda urns: lumos.display_names(urns))
        self.verbose = is_verbose()

    def look_up(self, texts: Iterable[str]) -> None:
        if not self.verbose:
            super().look_up(texts)

    def __call__(self, text: str) -> str:
        return text if self.verbose else super().__call__(text)

    def in_error(self, sentence: str) -> str:
        """An error with names instead of URNs, unless it quotes a URN from the command line."""
        given = [word for word in sys.argv[1:] if word.startswith(SCHEME)]
        return sentence if any(word in sentence for word in given) else self(sentence)
