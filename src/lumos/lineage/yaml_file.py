"""YAML files of other tools as plain values, with the lines that they are on."""

import re
from collections.abc import Iterator
from typing import Any, Final

from lumos.config.yaml_tree import (
    MAX_BYTES,
    ConfigNode,
    ConfigPosition,
    ListNode,
    MappingNode,
    ScalarNode,
    parse_yaml,
)
from lumos.errors import LumosError

# The start of a literal block, whose lines are the lines of its text: `native: |-`.
_LITERAL_BLOCK: Final = re.compile(r"\|[-+]?\d?[-+]?\s*(?:#.*)?$")


class UnreadableDocument(LumosError):
    """A file that is too large, or not UTF-8 text."""


class YamlFile:
    """One YAML file; all scalars are strings, or None if empty.

    Raises ConfigurationError if the file is not valid YAML, and UnreadableDocument if it is too
    large or not UTF-8.
    """

    def __init__(self, content: bytes, *, name: str) -> None:
        if len(content) > MAX_BYTES:
            raise UnreadableDocument(f"It is larger than {MAX_BYTES // 1024**2} MB.")
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise UnreadableDocument("It is not UTF-8 text.") from None
        self._lines = text.split("\n")
        position = ConfigPosition(origin=name, folder="")
        # SQL and templates may contain ${, which is not a variable here.
        self._root = parse_yaml(text.replace("${", "$${"), position=position, environment={})[0]
        self.value: dict[str, Any] = _plain(self._root)

    def line(self, *path: str | int) -> int | None:
        """The line on which a value starts; for a literal block, that of its first text line."""
        node: ConfigNode | None = self._root
        for step in path:
            if isinstance(node, MappingNode):
                entry = node.entries.get(str(step))
                node = None if entry is None else entry.node
            elif isinstance(node, ListNode) and isinstance(step, int) and step < len(node.items):
                node = node.items[step]
            else:
                node = None
        line = None if node is None else node.position.line
        if line is None or not isinstance(node, ScalarNode):
            return line
        return line + (_LITERAL_BLOCK.search(self._lines[line - 1]) is not None)


def _plain(node: ConfigNode) -> Any:
    match node:
        case MappingNode():
            return {key: _plain(entry.node) for key, entry in node.entries.items()}
        case ListNode():
            return [_plain(item) for item in node.items]
        case ScalarNode():
            return None if node.empty else node.text
    return None


def mappings_in(value: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """The mappings in a list, with their indexes; empty if the value is not a list."""
    for index, each in enumerate(value if isinstance(value, list) else ()):
        if isinstance(each, dict):
            yield index, each


def text_at(value: Any, *path: str) -> str | None:
    """The text at a path of keys, if there is one."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None
