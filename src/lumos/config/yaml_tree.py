"""Reads YAML into a tree of texts with their positions, and replaces variables."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NoReturn, Protocol

import msgspec
import yaml

from lumos.config.secret import Secret
from lumos.errors import MisuseError

_NULLS: Final = frozenset(("~", "null", "Null", "NULL"))


class ConfigPosition(msgspec.Struct, frozen=True, kw_only=True):
    """A position in a file, a variable or an option; `folder` is the base of relative paths."""

    origin: str
    folder: str
    kind: Literal["file", "variable", "option"] = "file"
    line: int | None = None
    column: int | None = None

    @property
    def file(self) -> str | None:
        """The file, or None for values from elsewhere."""
        return self.origin if self.kind == "file" else None

    def __str__(self) -> str:
        parts = (self.origin, self.line, self.column)
        return ":".join(str(part) for part in parts if part is not None)


class ConfigProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A problem in a configuration."""

    position: ConfigPosition
    key: str
    text: str

    def __str__(self) -> str:
        return f"{self.position}: {self.text}"


class ConfigurationError(MisuseError):
    """All problems of a configuration; `file`, `line` and `key` are those of the first."""

    def __init__(self, problems: Iterable[ConfigProblem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda each: each.position.line or 0))
        first = self.problems[0]
        self.file = first.position.file
        self.line = first.position.line
        self.key = first.key
        super().__init__("\n".join(str(problem) for problem in self.problems))


class ConfigNode(msgspec.Struct, frozen=True, kw_only=True):
    """A value with its position and its key as written, such as `sources[0].bucket`."""

    position: ConfigPosition
    path: str
    # The number of values and the depth below this node, with aliases expanded.
    size: int = 1
    height: int = 1


class ScalarNode(ConfigNode, frozen=True, kw_only=True):
    """A text; if it is `plain` (without quotes), it may be read as a number or boolean.

    `written` is the text before variables are replaced.
    """

    text: str
    plain: bool = True
    written: str = ""
    problem: str = ""

    @property
    def empty(self) -> bool:
        """Whether no value is given. In the value of a variable, null is an ordinary text."""
        is_null = self.text in _NULLS and self.text == self.written
        return self.plain and not self.problem and (is_null or not self.text)


class ListNode(ConfigNode, frozen=True, kw_only=True):
    """A list of values."""

    items: tuple[ConfigNode, ...]


class MappingEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A value and the position of its key."""

    position: ConfigPosition
    node: ConfigNode


class MappingNode(ConfigNode, frozen=True, kw_only=True):
    """Values by key."""

    entries: dict[str, MappingEntry]

    def with_entries(self, entries: dict[str, MappingEntry]) -> "MappingNode":
        """The mapping with other entries."""
        return msgspec.structs.replace(self, entries=entries)


def is_empty(node: ConfigNode) -> bool:
    """Whether a key has no value, so that it is treated as not given."""
    return isinstance(node, ScalarNode) and node.empty


def lift_nested(block: MappingNode, key: str) -> tuple[MappingNode, tuple[ConfigProblem, ...]]:
    """Move the entries below `key` up into the mapping; duplicates are problems."""
    inner = block.entries.get(key)
    if inner is None:
        return block, ()
    entries = {name: entry for name, entry in block.entries.items() if name != key}
    if not isinstance(inner.node, MappingNode):
        text = f"'{key}' must be a mapping of the keys that are allowed next to it."
        problem = ConfigProblem(position=inner.position, key=inner.node.path, text=text)
        return block.with_entries(entries), () if is_empty(inner.node) else (problem,)
    duplicates = [
        ConfigProblem(
            position=entry.position,
            key=entry.node.path,
            text=f"'{name}' is given both below '{key}' and next to it. Keep one of them.",
        )
        for name, entry in inner.node.entries.items()
        if name in entries
    ]
    return block.with_entries(inner.node.entries | entries), tuple(duplicates)


def build_tree(value: object, *, position: ConfigPosition, path: str) -> ConfigNode:
    """Build a tree from plain values, with one position for all nodes."""
    match value:
        case Mapping():
            entries = {
                str(key): MappingEntry(
                    position=position,
                    node=build_tree(each, position=position, path=f"{path}.{key}"),
                )
                for key, each in value.items()
            }
            return MappingNode(position=position, path=path, entries=entries)
        case list() | tuple():
            items = [
                build_tree(each, position=position, path=f"{path}[{index}]")
                for index, each in enumerate(value)
            ]
            return ListNode(position=position, path=path, items=tuple(items))
        case bool():
            return ScalarNode(position=position, path=path, text=str(value).lower())
        case int() | float():
            return ScalarNode(position=position, path=path, text=str(value))
        case None:
            return ScalarNode(position=position, path=path, text="")
        case Secret():
            return ScalarNode(
                position=position, path=path, text=value.reveal(), plain=False, written="***"
            )
        case _:
            return ScalarNode(position=position, path=path, text=str(value), plain=False)


def put_value(
    block: MappingNode, steps: Iterable[tuple[str, frozenset[str]]], node: ConfigNode
) -> MappingNode:
    """The mapping with a value at a path; a step is a key and all spellings that it replaces."""
    (name, spellings), *rest = steps
    current = next((block.entries[each].node for each in spellings if each in block.entries), None)
    if rest:
        if current is None or is_empty(current):
            path = f"{block.path}.{name}" if block.path else name
            current = MappingNode(position=node.position, path=path, entries={})
        # If the section is not a mapping, the reader reports it.
        node = put_value(current, rest, node) if isinstance(current, MappingNode) else current
    entries = {key: entry for key, entry in block.entries.items() if key not in spellings}
    return block.with_entries(entries | {name: MappingEntry(position=node.position, node=node)})


_VARIABLE: Final = re.compile(
    r"\$\$\{|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}|\$\{"
)


class VariableError(MisuseError):
    """An invalid variable reference, or a variable that is not set."""


def interpolate(text: str, environment: Mapping[str, str]) -> str:
    """Replace the variables in a text; variables in their values are not replaced."""

    def value(match: re.Match[str]) -> str:
        name, default = match["name"], match["default"]
        if match[0] == "$${":
            return "${"
        if name is None:
            raise VariableError(
                "contains '${', but neither ${NAME} nor ${NAME:-default}. "
                "Write $${ for a literal ${"
            )
        variable = environment.get(name)
        # As in a shell, a default also replaces an empty variable.
        if default is not None and not variable:
            return default
        if variable is None:
            raise VariableError(
                f"needs the environment variable {name}, which is not set. "
                f"Set it (export {name}=...) or give a default: ${{{name}:-...}}"
            )
        return variable

    return _VARIABLE.sub(value, text)


MAX_BYTES: Final = 5 * 1024 * 1024
MAX_DEPTH: Final = 100
# The maximum number of values after expanding aliases, to limit the time for reading the tree.
MAX_NODES: Final = 500_000

_CORE_TAG: Final = "tag:yaml.org,2002:"
_TYPED_TAGS: Final = frozenset(f"{_CORE_TAG}{name}" for name in ("int", "float", "bool", "null"))
_KNOWN_TAGS: Final = _TYPED_TAGS | {"!", f"{_CORE_TAG}str", f"{_CORE_TAG}map", f"{_CORE_TAG}seq"}
_MERGE_KEY: Final = "<<"
_TOO_DEEP: Final = f"The configuration nests deeper than {MAX_DEPTH} levels."


def read_yaml(
    file: Path, *, environment: Mapping[str, str], text: str | None = None
) -> tuple[MappingNode, list[ConfigProblem]]:
    """The tree of a file with variables replaced, and problems other than syntax errors.

    `text` replaces the content of the file.
    """
    position = ConfigPosition(origin=str(file), folder=str(file.absolute().parent))
    content = _text(file, position) if text is None else text
    return parse_yaml(content, position=position, environment=environment)


def parse_yaml(
    text: str, *, position: ConfigPosition, environment: Mapping[str, str]
) -> tuple[MappingNode, list[ConfigProblem]]:
    """The tree of a YAML text; `position` names the file."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _Builder(yaml.parse(text, Loader=loader), position, environment)
    try:
        return builder.document(), builder.problems
    except yaml.MarkedYAMLError as error:
        at = _at_mark(position, error.problem_mark)
        # The line may not exist: errors may be after the last line, and the parser recognizes more
        # line separators.
        lines = dict(enumerate(text.split("\n"), start=1))
        is_tab = lines.get(at.line or 0, "")[(at.column or 1) - 1 :].startswith("\t")
        reason = "a tab is used where YAML requires spaces" if is_tab else error.problem
        _fail(at, f"This is not valid YAML: {reason}.")
    except yaml.reader.ReaderError as error:
        line, column = _position(text, error.position)
        at = ConfigPosition(
            origin=position.origin, folder=position.folder, line=line, column=column
        )
        _fail(at, f"This is not valid YAML: {error.reason}.")


def _text(file: Path, position: ConfigPosition) -> str:
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        _fail(position, "There is no such configuration file. Create one with: lumos init")
    except OSError as error:
        _fail(position, f"The configuration file cannot be read: {error.strerror}.")
    if len(content) > MAX_BYTES:
        _fail(position, f"The configuration file is larger than {MAX_BYTES // 1024 // 1024} MB.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = _position(content[: error.start].decode(), error.start)
        at = ConfigPosition(
            origin=position.origin, folder=position.folder, line=line, column=column
        )
        _fail(at, "The configuration file is not UTF-8 text.")


class _Builder:
    """Builds the tree from the events of the parser in one pass."""

    def __init__(
        self, events: Iterator[yaml.Event], position: ConfigPosition, environment: Mapping[str, str]
    ) -> None:
        self._events = events
        self._position = position
        self._environment = environment
        self._anchors: dict[str, ConfigNode | None] = {}
        self.problems: list[ConfigProblem] = []

    def document(self) -> MappingNode:
        """The only document of the stream; an empty one is an empty mapping."""
        next(self._events)
        start = next(self._events)
        empty = MappingNode(position=self._position, path="", entries={})
        if isinstance(start, yaml.StreamEndEvent):
            return empty
        root = self._node(next(self._events), "", 1)
        next(self._events)
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            position = _at_mark(self._position, after.start_mark, column=False)
            _fail(position, "A second document starts here. Keep one per file.")
        if isinstance(root, ScalarNode) and root.empty:
            return empty
        if not isinstance(root, MappingNode):
            _fail(root.position, "The configuration must be a mapping of keys to values.")
        return root

    def _node(self, event: yaml.Event, path: str, depth: int) -> ConfigNode:
        position = _at_mark(self._position, event.start_mark, column=False)
        if isinstance(event, yaml.AliasEvent):
            return self._resolve_alias(event, position, depth)
        assert isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent))
        if depth > MAX_DEPTH:
            _fail(position, _TOO_DEEP)
        if event.tag is not None and event.tag not in _KNOWN_TAGS:
            text = f"The tag '{event.tag.removeprefix(_CORE_TAG)}' is not known here. Leave it out."
            self.problems.append(ConfigProblem(position=position, key=path, text=text))
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        node = self._build_node(event, path, depth, position)
        if node.size > MAX_NODES:
            _fail(
                position,
                f"The configuration has more than {MAX_NODES} values after expanding aliases.",
            )
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _build_node(
        self, event: yaml.Event, path: str, depth: int, position: ConfigPosition
    ) -> ConfigNode:
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, path, position)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[ConfigNode] = []
            while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
                items.append(self._node(event, f"{path}[{len(items)}]", depth + 1))
            size, height = _size_and_height(items)
            return ListNode(
                position=position, path=path, items=tuple(items), size=size, height=height
            )
        entries = self._entries(path, depth)
        size, height = _size_and_height([entry.node for entry in entries.values()])
        return MappingNode(position=position, path=path, entries=entries, size=size, height=height)

    def _entries(self, path: str, depth: int) -> dict[str, MappingEntry]:
        entries: dict[str, MappingEntry] = {}
        merged: dict[str, MappingEntry] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            position = _at_mark(self._position, event.start_mark, column=False)
            key = self._key(event, position)
            node = self._node(next(self._events), f"{path}.{key}" if path else key, depth + 1)
            if key == _MERGE_KEY:
                merged = self._merge_entries(node) | merged
            elif key in entries:
                first = entries[key].position.line
                text = f"The key '{key}' is given twice, first on line {first}."
                self.problems.append(ConfigProblem(position=position, key=node.path, text=text))
            else:
                entries[key] = MappingEntry(position=position, node=node)
        return merged | entries

    def _key(self, event: yaml.Event, position: ConfigPosition) -> str:
        if isinstance(event, yaml.AliasEvent):
            target = self._resolve_alias(event, position, 1)
            if isinstance(target, ScalarNode):
                return target.text
        if not isinstance(event, yaml.ScalarEvent):
            _fail(position, "A key must be text, not a list or a mapping.")
        if event.anchor is not None:
            self._anchors[event.anchor] = self._scalar(event, event.value, position)
        return str(event.value)

    def _merge_entries(self, node: ConfigNode) -> dict[str, MappingEntry]:
        """The entries that `<<` merges; for each key, the first mapping takes precedence."""
        merged: dict[str, MappingEntry] = {}
        for each in node.items if isinstance(node, ListNode) else (node,):
            if not isinstance(each, MappingNode):
                _fail(each.position, "'<<' takes a mapping or a list of mappings.")
            merged = each.entries | merged
        return merged

    def _resolve_alias(
        self, event: yaml.AliasEvent, position: ConfigPosition, depth: int
    ) -> ConfigNode:
        anchor = str(event.anchor)
        if anchor not in self._anchors:
            _fail(position, f"The alias '*{anchor}' has no preceding anchor '&{anchor}'.")
        node = self._anchors[anchor]
        if node is None:
            _fail(position, f"The alias '*{anchor}' refers to a value that contains it.")
        if depth + node.height - 1 > MAX_DEPTH:
            _fail(position, _TOO_DEEP)
        return node

    def _scalar(self, event: yaml.ScalarEvent, path: str, position: ConfigPosition) -> ScalarNode:
        written = str(event.value)
        text, problem = written, ""
        try:
            text = interpolate(written, self._environment)
        except VariableError as error:
            problem = f"{path} {error}"
        plain = event.implicit[0] or event.tag in _TYPED_TAGS
        return ScalarNode(
            position=position, path=path, text=text, plain=plain, written=written, problem=problem
        )


def _size_and_height(nodes: Sequence[ConfigNode]) -> tuple[int, int]:
    size = 1 + sum(node.size for node in nodes)
    return size, 1 + max((node.height for node in nodes), default=0)


class _Mark(Protocol):
    @property
    def line(self) -> int: ...

    @property
    def column(self) -> int: ...


def _at_mark(
    position: ConfigPosition, mark: _Mark | None, *, column: bool = True
) -> ConfigPosition:
    if mark is None:
        return position
    return ConfigPosition(
        origin=position.origin,
        folder=position.folder,
        line=mark.line + 1,
        column=mark.column + 1 if column else None,
    )


def _position(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def _fail(position: ConfigPosition, text: str) -> NoReturn:
    # The parser's error quotes a line of the file, which may contain a password.
    raise ConfigurationError([ConfigProblem(position=position, key="", text=text)]) from None
