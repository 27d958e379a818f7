"""Text from outside, on a screen: names and comments that a terminal would obey, or break up.

JSON is not for a screen and stays as it is.
"""

import os
import re
from typing import Final

import typer

from lumos.cli.options import QUIET

# Control characters but line breaks and tabs, marks that turn the direction of writing, and halves
# of characters.
_HARMFUL: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_LINE_BREAKING: Final = re.compile(r"[\t\n]")


def escaped(text: str) -> str:
    """The text with everything spelled out that would move, colour or turn what stands beside it.

    Its own lines stay lines.
    """
    return _HARMFUL.sub(_spelled, text)


def one_line(text: str) -> str:
    """The same on one line: tabs and line breaks are spelled out, too."""
    return _LINE_BREAKING.sub(_spelled, escaped(text))


def say(text: str, *, err: bool = False) -> None:
    """Prints one line, without all that a console can do."""
    typer.echo(one_line(text), err=err)


def remark(text: str) -> None:
    """Prints what is worth knowing beside the result, on stderr, unless --quiet was given."""
    if not os.environ.get(QUIET):
        say(f"remark   {text}", err=True)


def problem(text: str) -> None:
    """Prints what went wrong without stopping the command, on stderr."""
    say(f"problem  {text}", err=True)


def _spelled(match: re.Match[str]) -> str:
    return match.group().encode("unicode_escape").decode("ascii")
