"""Paths into a schema: `orders.items[].price`, map values `{}`, map keys `{key}`.

Names with special characters are in backticks, so a separator outside of backticks always starts a
step.
"""

import re
from functools import lru_cache
from typing import Final

from lumos.model.types import quoted_name

ELEMENT: Final = "[]"
VALUE: Final = "{}"
KEY: Final = "{key}"

_STEP: Final = re.compile(r"\.?(?:`(?:[^`]|``)*`|\w+)|\[\]|\{key\}|\{\}|<\d+>", re.ASCII)
# Column names in lineage need no backticks, even with spaces or umlauts.
_LINEAGE_STEP: Final = re.compile(r"\.?(?:`(?:[^`]|``)*`|[^.\[{<`]+)|\[\]|\{key\}|\{\}|<\d+>")
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


# Cached: the columns of a repository are part of many edges.
@lru_cache(maxsize=16_384)
def lineage_steps(path: str) -> tuple[str, ...]:
    """The steps of a path in lineage, starting with the column; other text is one column name."""
    steps = tuple(_LINEAGE_STEP.findall(path))
    return steps if steps and sum(map(len, steps)) == len(path) else (path,)


def lineage_path(column: str) -> str:
    """The path of a whole column in lineage: its name, in backticks if it looks like a path."""
    is_plain = "`" not in column and lineage_steps(column) == (column,)
    return column if is_plain else "`" + column.replace("`", "``") + "`"


def lineage_column(path: str) -> str:
    """The name of the column of a path in lineage."""
    return _unquote(lineage_steps(path)[0])


def is_lineage_column(path: str) -> bool:
    """Whether a path in lineage is a whole column and not a part of it."""
    return len(lineage_steps(path)) == 1


def overlap(one: str, other: str) -> bool:
    """Whether a value at one path may contain or be part of a value at the other.

    This is the rule for lineage, impact and the gate: a change of a field affects readers of the
    field, of a struct around it, and of its parts. SQL does not show which columns are arrays or
    maps: `items.sku` may mean `items[].sku`, and `notes.x` the value `notes{}`.
    """
    return _remaining_steps(one, other) is not None


def path_below(path: str, outer: str) -> str | None:
    """The rest of a path below `outer`: '' if both are the same, None if it is not below."""
    rest = _remaining_steps(path, outer)
    return None if rest is None or rest[1] else "".join(rest[0])


def _remaining_steps(one: str, other: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The steps of two paths after their common start; None if neither contains the other."""
    one_steps, other_steps = lineage_steps(one), lineage_steps(other)
    i = j = 0
    while i < len(one_steps) and j < len(other_steps):
        if one_steps[i] == other_steps[j] or field_name(one_steps[i]) == field_name(other_steps[j]):
            i, j = i + 1, j + 1
        elif one_steps[i] == ELEMENT:
            i += 1
        elif other_steps[j] == ELEMENT:
            j += 1
        elif {one_steps[i], other_steps[j]} == {KEY, VALUE}:
            return None
        elif _is_unnamed(one_steps[i]) or _is_unnamed(other_steps[j]):
            i, j = i + 1, j + 1
        else:
            return None
    return one_steps[i:], other_steps[j:]


def _is_unnamed(step: str) -> bool:
    """Whether a step has no name, so that SQL may spell it as any name."""
    return step in (VALUE, KEY) or step.startswith("<")


def field_name(step: str) -> str:
    """The case-folded name in a step, without its dot and backticks."""
    return _unquote(step.removeprefix(".")).casefold()


def _unquote(name: str) -> str:
    return name[1:-1].replace("``", "`") if len(name) > 1 and name[0] == name[-1] == "`" else name
