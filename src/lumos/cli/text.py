"""Text on a terminal: lines, remarks and problems.

Names and comments may contain characters that a terminal interprets or that break a line; these
are escaped. JSON output is not escaped.
"""

import os
import re
from typing import Final

import typer

# Environment variables that hold the options of the same names while a command runs.
DEBUG: Final = "LUMOS_DEBUG"
QUIET: Final = "LUMOS_QUIET"
VERBOSE: Final = "LUMOS_VERBOSE"
# Control characters except line breaks and tabs, marks of writing direction, and surrogates.
_CONTROL: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_LINE_BREAK: Final = re.compile(r"[\t\n]")


def escape(text: str) -> str:
    """Escape all characters that a terminal interprets, except line breaks and tabs."""
    return _CONTROL.sub(_escape_character, text)


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
    """Whether --quiet was given."""
    return bool(os.environ.get(QUIET))
