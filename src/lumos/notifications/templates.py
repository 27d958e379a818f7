"""The words of a message: facts put into a text, and nothing else done with it."""

import re
from collections.abc import Mapping

from lumos.config.settings import PLACEHOLDER


def filled(template: str, facts: Mapping[str, str]) -> str:
    """The text with facts for `{name}`; a line whose facts are all empty is left out."""
    lines = (_line(line, facts) for line in template.splitlines())
    return "\n".join(line for line in lines if line is not None).strip()


def _line(line: str, facts: Mapping[str, str]) -> str | None:
    named = [match.group(2) for match in PLACEHOLDER.finditer(line) if match.group(2)]
    if named and not any(facts[name] for name in named):
        return None

    def put(match: re.Match[str]) -> str:
        kept, name = match.groups()
        return f"{{{kept}}}" if kept else facts[name]

    return PLACEHOLDER.sub(put, line)


def plain(value: str) -> str:
    """A value that cannot pretend to be more than one word of one line.

    Names in a lake may hold line ends, or bytes that are no text at all.
    """
    text = value.encode("utf-8", "replace").decode()
    return "".join(sign if sign.isprintable() else "?" for sign in text)
