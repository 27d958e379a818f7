"""Paths into a schema: `orders.items[].price`, map values `{}`, map keys `{key}`.

Special names are in backticks, so a separator outside of backticks always starts a step.
"""

import re
from typing import Final

from lumos.model.types import quoted_name

ELEMENT: Final = "[]"
VALUE: Final = "{}"
KEY: Final = "{key}"

_STEP: Final = re.compile(r"\.?(?:`(?:[^`]|``)*`|\w+)|\[\]|\{key\}|\{\}|<\d+>", re.ASCII)
_SEPARATORS: Final = (".", "[", "{", "<")


def child(parent: str, name: str) -> str:
    """The path of a named field; the parent of columns is ''."""
    return f"{parent}.{quoted_name(name)}" if parent else quoted_name(name)


def parent_of(path: str) -> str:
    """The path of the parent."""
    return "".join(_STEP.findall(path)[:-1])


def column_of(path: str) -> str:
    """The path of the column that contains the field."""
    match = _STEP.match(path)
    return match.group() if match else path


def is_within(path: str, outer: str) -> bool:
    """Whether a path is `outer` or inside it."""
    return path == outer or (path.startswith(outer) and path[len(outer)] in _SEPARATORS)
