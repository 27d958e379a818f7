"""Configuration as a tree of values that know where they were written, and what is wrong there."""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

from lumos.config.secret import Secret
from lumos.errors import MisuseError

_NULLS: Final = frozenset(("~", "null", "Null", "NULL"))


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A spot in a file, an environment variable or an option; relative paths hang on `folder`."""

    origin: str
    folder: str
    kind: Literal["file", "variable", "option"] = "file"
    line: int | None = None
    column: int | None = None

    @property
    def file(self) -> str | None:
        """The file, unless the value came from elsewhere."""
        return self.origin if self.kind == "file" else None

    def __str__(self) -> str:
        parts = (self.origin, self.line, self.column)
        return ":".join(str(part) for part in parts if part is not None)


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong in a configuration."""

    place: Place
    key: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


class ConfigurationError(MisuseError):
    """All that is wrong in a configuration; `file`, `line` and `key` are the first problem's."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda each: each.place.line or 0))
        first = self.problems[0]
        self.file = first.place.file
        self.line = first.place.line
        self.key = first.key
        super().__init__("\n".join(str(problem) for problem in self.problems))


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A value with its place and its key as written, such as `sources[0].bucket`."""

    place: Place
    path: str
    # How many values hang on this one and how deep, with aliases unfolded.
    size: int = 1
    height: int = 1


class Scalar(Node, frozen=True, kw_only=True):
    """Text, which is a number or a switch where one is wanted and it stands without quotes."""

    text: str
    plain: bool = True
    written: str = ""
    problem: str = ""

    @property
    def empty(self) -> bool:
        """Whether nothing is given; the value of a variable may well be the word null."""
        is_null = self.text in _NULLS and self.text == self.written
        return self.plain and not self.problem and (is_null or not self.text)


class Listing(Node, frozen=True, kw_only=True):
    """Values in their order."""

    items: tuple[Node, ...]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A value and the place of its key."""

    place: Place
    node: Node


class Block(Node, frozen=True, kw_only=True):
    """Values under keys."""

    entries: dict[str, Entry]

    def having(self, entries: dict[str, Entry]) -> "Block":
        """The same block with other entries."""
        return msgspec.structs.replace(self, entries=entries)


def empty(node: Node) -> bool:
    """Whether a key stands there without a value, which counts as not given."""
    return isinstance(node, Scalar) and node.empty


def lifted(block: Block, key: str) -> tuple[Block, tuple[Problem, ...]]:
    """The block with the entries below `key` beside its other ones; no key may be in both."""
    inner = block.entries.get(key)
    if inner is None:
        return block, ()
    entries = {name: entry for name, entry in block.entries.items() if name != key}
    if not isinstance(inner.node, Block):
        text = f"'{key}' must be a mapping of the keys that could also stand beside it."
        wrong = Problem(place=inner.place, key=inner.node.path, text=text)
        return block.having(entries), () if empty(inner.node) else (wrong,)
    twice = [
        Problem(
            place=entry.place,
            key=entry.node.path,
            text=f"'{name}' stands both below '{key}' and beside it. Keep one of them.",
        )
        for name, entry in inner.node.entries.items()
        if name in entries
    ]
    return block.having(inner.node.entries | entries), tuple(twice)


def tree(value: object, *, place: Place, path: str) -> Node:
    """Plain values as a tree, all at one place."""
    match value:
        case Mapping():
            entries = {
                str(key): Entry(place=place, node=tree(each, place=place, path=f"{path}.{key}"))
                for key, each in value.items()
            }
            return Block(place=place, path=path, entries=entries)
        case list() | tuple():
            items = [
                tree(each, place=place, path=f"{path}[{index}]") for index, each in enumerate(value)
            ]
            return Listing(place=place, path=path, items=tuple(items))
        case bool():
            return Scalar(place=place, path=path, text=str(value).lower())
        case int() | float():
            return Scalar(place=place, path=path, text=str(value))
        case None:
            return Scalar(place=place, path=path, text="")
        case Secret():
            return Scalar(place=place, path=path, text=value.reveal(), plain=False, written="***")
        case _:
            return Scalar(place=place, path=path, text=str(value), plain=False)


def placed(block: Block, steps: Iterable[tuple[str, frozenset[str]]], node: Node) -> Block:
    """The block with a value put at a path; each step is a key and all spellings it replaces."""
    (name, spellings), *rest = steps
    current = next((block.entries[each].node for each in spellings if each in block.entries), None)
    if rest:
        if current is None or empty(current):
            path = f"{block.path}.{name}" if block.path else name
            current = Block(place=node.place, path=path, entries={})
        # A section that is no mapping is a mistake of the file's, which its reader reports.
        node = placed(current, rest, node) if isinstance(current, Block) else current
    entries = {key: entry for key, entry in block.entries.items() if key not in spellings}
    return block.having(entries | {name: Entry(place=node.place, node=node)})
