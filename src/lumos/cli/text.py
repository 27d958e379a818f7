"""Text on a terminal: lines, remarks, problems, and the names of datasets.

Names and comments may contain control characters or line breaks, which are escaped here. They are
not escaped in JSON.
"""

import os
import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import typer

from lumos.model.urn import SCHEME, DisplayNames

if TYPE_CHECKING:
    from lumos.sdk import Lumos

# Environment variables that contain the options of the same names while a command runs.
DEBUG: Final = "LUMOS_DEBUG"
QUIET: Final = "LUMOS_QUIET"
VERBOSE: Final = "LUMOS_VERBOSE"
# Control characters except line breaks and tabs, marks of writing direction, and surrogates.
_CONTROL_CHARACTER: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_LINE_BREAK: Final = re.compile(r"[\t\n]")


def escape(text: str) -> str:
    """Escape all characters that a terminal interprets, except line breaks and tabs."""
    return _CONTROL_CHARACTER.sub(_escape_character, text)


def escape_line(text: str) -> str:
    """Escape line breaks and tabs as well, so that a text stays on one line."""
    return _LINE_BREAK.sub(_escape_character, escape(text))


def _escape_character(match: re.Match[str]) -> str:
    return match.group().encode("unicode_escape").decode("ascii")


def print_line(text: str, *, err: bool = False) -> None:
    """Print one line without styles."""
    typer.echo(escape_line(text), err=err)


def print_remark(text: str) -> None:
    """Print a remark on stderr, unless --quiet was given."""
    if not is_quiet():
        print_line(f"remark   {text}", err=True)


def print_problem(text: str) -> None:
    """Print a problem that does not stop the command on stderr."""
    print_line(f"problem  {text}", err=True)


def is_verbose() -> bool:
    """Whether --verbose was given: URNs are printed instead of names."""
    return bool(os.environ.get(VERBOSE))


def is_quiet() -> bool:
    return bool(os.environ.get(QUIET))


class Names(DisplayNames):
    """Replaces URNs in texts by the names of datasets, unless --verbose was given."""

    def __init__(self, lumos: "Lumos") -> None:
        super().__init__(lambda urns: lumos.datasets.display_names(urns))
        self.verbose = is_verbose()

    def look_up(self, texts: Iterable[str]) -> None:
        if not self.verbose:
            super().look_up(texts)

    def __call__(self, text: str) -> str:
        return text if self.verbose else super().__call__(text)

    def in_error(self, sentence: str) -> str:
        """An error with names instead of URNs, unless it quotes a URN from the command line."""
        urns = [word for word in sys.argv[1:] if word.startswith(SCHEME)]
        return sentence if any(urn in sentence for urn in urns) else self(sentence)
