"""Reads YAML into a tree that knows its lines; no object is ever constructed from it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn, Protocol

import yaml

from lumos.config.interpolation import VariableError, interpolated
from lumos.config.tree import (
    Block,
    ConfigurationError,
    Entry,
    Listing,
    Node,
    Place,
    Problem,
    Scalar,
)

MAX_BYTES: Final = 5 * 1024 * 1024
MAX_DEPTH: Final = 100
# Aliases share what they name, so that memory stays small; this bounds the time to walk it all.
MAX_NODES: Final = 500_000

_CORE: Final = "tag:yaml.org,2002:"
_TYPED: Final = frozenset(f"{_CORE}{name}" for name in ("int", "float", "bool", "null"))
_TAGS: Final = _TYPED | {"!", f"{_CORE}str", f"{_CORE}map", f"{_CORE}seq"}
_MERGE: Final = "<<"
_TOO_DEEP: Final = f"The configuration nests deeper than {MAX_DEPTH} levels."


def read(
    file: Path, *, environment: Mapping[str, str], text: str | None = None
) -> tuple[Block, list[Problem]]:
    """The tree of the file with its variables replaced, and errors in it other than syntax errors.

    `text` is read in place of what the file holds.
    """
    place = Place(origin=str(file), folder=str(file.absolute().parent))
    content = _text(file, place) if text is None else text
    return parse(content, place=place, environment=environment)


def parse(
    text: str, *, place: Place, environment: Mapping[str, str]
) -> tuple[Block, list[Problem]]:
    """The tree of a YAML text; `place` names the file."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _Builder(yaml.parse(text, Loader=loader), place, environment)
    try:
        return builder.document(), builder.problems
    except yaml.MarkedYAMLError as error:
        at = _at(place, error.problem_mark)
        # The parser may stop behind the last line, and knows more kinds of line ends.
        lines = dict(enumerate(text.split("\n"), start=1))
        is_tab = lines.get(at.line or 0, "")[(at.column or 1) - 1 :].startswith("\t")
        reason = "a tab stands where YAML wants spaces" if is_tab else error.problem
        _stop(at, f"This is not valid YAML: {reason}.")
    except yaml.reader.ReaderError as error:
        line, column = _position(text, error.position)
        at = Place(origin=place.origin, folder=place.folder, line=line, column=column)
        _stop(at, f"This is not valid YAML: {error.reason}.")


def _text(file: Path, place: Place) -> str:
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        _stop(place, "There is no such configuration file. Create one with: lumos init")
    except OSError as error:
        _stop(place, f"The configuration file cannot be read: {error.strerror}.")
    if len(content) > MAX_BYTES:
        _stop(place, f"The configuration file is larger than {MAX_BYTES // 1024 // 1024} MB.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = _position(content[: error.start].decode(), error.start)
        at = Place(origin=place.origin, folder=place.folder, line=line, column=column)
        _stop(at, "The configuration file is not UTF-8 text.")


class _Builder:
    """Builds the tree from the parser's events, in one pass."""

    def __init__(
        self, events: Iterator[yaml.Event], place: Place, environment: Mapping[str, str]
    ) -> None:
        self._events = events
        self._place = place
        self._environment = environment
        self._anchors: dict[str, Node | None] = {}
        self.problems: list[Problem] = []

    def document(self) -> Block:
        """The one document of the stream; an empty one is an empty block."""
        next(self._events)
        start = next(self._events)
        nothing = Block(place=self._place, path="", entries={})
        if isinstance(start, yaml.StreamEndEvent):
            return nothing
        root = self._node(next(self._events), "", 1)
        next(self._events)
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            place = _at(self._place, after.start_mark, column=False)
            _stop(place, "A second document starts here. Keep one per file.")
        if isinstance(root, Scalar) and root.empty:
            return nothing
        if not isinstance(root, Block):
            _stop(root.place, "The configuration must be a mapping of keys to values.")
        return root

    def _node(self, event: yaml.Event, path: str, depth: int) -> Node:
        place = _at(self._place, event.start_mark, column=False)
        if isinstance(event, yaml.AliasEvent):
            return self._aliased(event, place, depth)
        assert isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent))
        if depth > MAX_DEPTH:
            _stop(place, _TOO_DEEP)
        if event.tag is not None and event.tag not in _TAGS:
            text = f"The tag '{event.tag.removeprefix(_CORE)}' is not known here. Leave it out."
            self.problems.append(Problem(place=place, key=path, text=text))
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        node = self._built(event, path, depth, place)
        if node.size > MAX_NODES:
            _stop(place, f"The configuration holds more than {MAX_NODES} values, aliases unfolded.")
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _built(self, event: yaml.Event, path: str, depth: int, place: Place) -> Node:
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, path, place)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[Node] = []
            while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
                items.append(self._node(event, f"{path}[{len(items)}]", depth + 1))
            size, height = _extent(items)
            return Listing(place=place, path=path, items=tuple(items), size=size, height=height)
        entries = self._entries(path, depth)
        size, height = _extent([entry.node for entry in entries.values()])
        return Block(place=place, path=path, entries=entries, size=size, height=height)

    def _entries(self, path: str, depth: int) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        merged: dict[str, Entry] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            place = _at(self._place, event.start_mark, column=False)
            key = self._key(event, place)
            node = self._node(next(self._events), f"{path}.{key}" if path else key, depth + 1)
            if key == _MERGE:
                merged = self._merged(node) | merged
            elif key in entries:
                first = entries[key].place.line
                text = f"The key '{key}' is given twice, first on line {first}."
                self.problems.append(Problem(place=place, key=node.path, text=text))
            else:
                entries[key] = Entry(place=place, node=node)
        return merged | entries

    def _key(self, event: yaml.Event, place: Place) -> str:
        if isinstance(event, yaml.AliasEvent):
            target = self._aliased(event, place, 1)
            if isinstance(target, Scalar):
                return target.text
        if not isinstance(event, yaml.ScalarEvent):
            _stop(place, "A key must be text, not a list or a mapping.")
        if event.anchor is not None:
            self._anchors[event.anchor] = self._scalar(event, event.value, place)
        return str(event.value)

    def _merged(self, node: Node) -> dict[str, Entry]:
        """The entries that `<<` brings in; of several mappings the first one to have a key wins."""
        merged: dict[str, Entry] = {}
        for each in node.items if isinstance(node, Listing) else (node,):
            if not isinstance(each, Block):
                _stop(each.place, "'<<' takes a mapping or a list of mappings.")
            merged = each.entries | merged
        return merged

    def _aliased(self, event: yaml.AliasEvent, place: Place, depth: int) -> Node:
        anchor = str(event.anchor)
        if anchor not in self._anchors:
            _stop(place, f"The alias '*{anchor}' has no anchor '&{anchor}' before it.")
        node = self._anchors[anchor]
        if node is None:
            _stop(place, f"The alias '*{anchor}' stands inside what it names.")
        if depth + node.height - 1 > MAX_DEPTH:
            _stop(place, _TOO_DEEP)
        return node

    def _scalar(self, event: yaml.ScalarEvent, path: str, place: Place) -> Scalar:
        written = str(event.value)
        text, problem = written, ""
        try:
            text = interpolated(written, self._environment)
        except VariableError as error:
            problem = f"{path} {error}"
        plain = event.implicit[0] or event.tag in _TYPED
        return Scalar(
            place=place, path=path, text=text, plain=plain, written=written, problem=problem
        )


def _extent(nodes: Sequence[Node]) -> tuple[int, int]:
    size = 1 + sum(node.size for node in nodes)
    return size, 1 + max((node.height for node in nodes), default=0)


class _Mark(Protocol):
    @property
    def line(self) -> int: ...

    @property
    def column(self) -> int: ...


def _at(place: Place, mark: _Mark | None, *, column: bool = True) -> Place:
    if mark is None:
        return place
    return Place(
        origin=place.origin,
        folder=place.folder,
        line=mark.line + 1,
        column=mark.column + 1 if column else None,
    )


def _position(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def _stop(place: Place, text: str) -> NoReturn:
    # What the parser raised quotes the line it stopped at, and that line may hold a password.
    raise ConfigurationError([Problem(place=place, key="", text=text)]) from None
