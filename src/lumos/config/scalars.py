"""Single values: what a text is where a number, a switch, a path or a choice is wanted."""

import math
import os.path
import re
from pathlib import Path
from typing import Final

from msgspec import inspect

from lumos.config.keys import Kind
from lumos.config.secret import Secret, scrubbed
from lumos.config.section import PATH
from lumos.config.tree import Block, Listing, Node, Scalar

_SWITCHES: Final = {
    "true": True, "yes": True, "on": True, "false": False, "no": False, "off": False,
}  # fmt: skip
_INTEGER: Final = re.compile(r"[-+]?(0|[1-9][0-9_]*)\Z", re.ASCII)
_NUMBER: Final = re.compile(
    r"[-+]?((0|[1-9][0-9_]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,2})?\Z", re.ASCII
)
_LONGEST_NUMBER: Final = 40
_LONGEST_ECHO: Final = 60


class Failed:
    """Stands for a value that could not be had."""


FAILED: Final = Failed()


def scalar(node: Scalar, kind: Kind) -> object:
    """The value that the kind wants, or `FAILED`."""
    match kind.type:
        case inspect.CustomType(cls=cls) if issubclass(cls, Secret):
            return cls(node.text)
        case inspect.StrType():
            if not matches(node.text, kind.type):
                return FAILED
            return _anchored(node) if PATH in kind.extra else node.text
        case inspect.LiteralType(values=values):
            return node.text if node.text in values else FAILED
        case inspect.EnumType(cls=cls):
            # An enumeration may know more spellings than its members' own.
            try:
                return cls(node.text)
            except ValueError:
                return FAILED
        case inspect.BoolType():
            return _SWITCHES.get(node.text.lower(), FAILED) if node.plain else FAILED
        case inspect.IntType() | inspect.FloatType():
            return _number(node, kind.type)
        case _:
            raise TypeError(f"{kind.type} is no kind of a single value")


def matches(text: str, type: inspect.Type) -> bool:
    """Whether the text has the form that its type prescribes, if any."""
    pattern = type.pattern if isinstance(type, inspect.StrType) else None
    return pattern is None or re.search(pattern, text) is not None


def free(node: Scalar) -> str | int | float | bool | None:
    """The value by its looks alone, where nothing says what it must be."""
    if node.empty:
        return None
    if not node.plain or len(node.text) > _LONGEST_NUMBER:
        return node.text
    if node.text.lower() in ("true", "false"):
        return node.text.lower() == "true"
    if _INTEGER.match(node.text):
        return int(node.text.replace("_", ""))
    return float(node.text.replace("_", "")) if _NUMBER.match(node.text) else node.text


def choices(type: inspect.Type) -> tuple[str, ...]:
    """The values to choose from, where the type is a closed set."""
    match type:
        case inspect.LiteralType(values=values):
            return tuple(str(value) for value in values)
        case inspect.EnumType(cls=cls):
            return tuple(member.value for member in cls)
        case _:
            return ()


def in_words(kind: Kind) -> str:
    """What the value must be, as a person says it."""
    match kind.type:
        case _ if kind.words:
            return kind.words
        case inspect.LiteralType() | inspect.EnumType():
            return f"one of {', '.join(choices(kind.type))}"
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType():
            return "a whole number"
        case inspect.FloatType():
            return "a number"
        case inspect.VarTupleType():
            return "a list, such as [a, b]"
        case inspect.StructType() | inspect.DictType():
            return "a mapping"
        case _:
            return "text"


def as_found(node: Node, *, echo: bool) -> str:
    """What stands there instead; a variable is named and never shown with its value."""
    match node:
        case Scalar() if node.empty:
            return "empty"
        case Scalar():
            text = scrubbed(node.written or node.text)
            shown = text if len(text) <= _LONGEST_ECHO else f"{text[:_LONGEST_ECHO]}..."
            return f"'{shown}'" if echo else "a single value"
        case Listing():
            return "a list"
        case Block():
            return "a mapping"
        case _:
            raise TypeError(f"{type(node).__name__} is no part of a tree")


def _anchored(node: Scalar) -> str:
    """The path in full: relative ones hang on the folder of what they are written in."""
    if "://" in node.text:
        return node.text
    return str(Path(node.place.folder, os.path.expanduser(node.text)))


def _number(node: Scalar, type: inspect.IntType | inspect.FloatType) -> int | float | Failed:
    whole = isinstance(type, inspect.IntType)
    form = _INTEGER if whole else _NUMBER
    if not node.plain or len(node.text) > _LONGEST_NUMBER or not form.match(node.text):
        return FAILED
    digits = node.text.replace("_", "")
    number = int(digits) if whole else float(digits)
    too_small = type.ge is not None and number < type.ge
    too_large = type.le is not None and number > type.le
    return FAILED if too_small or too_large or not math.isfinite(number) else number
