"""A snapshot as YAML, for people to read and edit.

Only the JSON subset is read. Anchors, aliases, tags and merge keys are refused, so that a small
file cannot expand to a large one and no object is created from a tag.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec
import yaml

from lumos.snapshots.format.codec import HASH_KEY, MalformedJson, decode_plain
from lumos.snapshots.format.document import KINDS, EntryKind
from lumos.snapshots.format.encodings.interface import Bodies
from lumos.snapshots.format.encodings.json_document import JsonDocument
from lumos.snapshots.format.errors import (
    NotASnapshot,
    SnapshotError,
    SnapshotTooLarge,
    TruncatedSnapshot,
)
from lumos.snapshots.format.legacy_layout import NESTED

MAX_BYTES: Final = 64 * 1024 * 1024
MAX_DEPTH: Final = 100
# The levels around an entry: the document, and the list of entries.
_OUTER_LEVELS: Final = 2
_NUMBER: Final = re.compile(
    r"-?(0|[1-9][0-9]{0,300})(\.[0-9]{1,300})?([eE][-+]?[0-9]{1,3})?", re.ASCII
)
_KEYWORDS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_ENTRY_LISTS: Final = frozenset(
    f"{prefix}{kind.plural}" for kind in KINDS for prefix in ("", f"{NESTED}.")
)


class YamlDocument(JsonDocument):
    """A document in memory, with the line numbers of its entries."""

    def __init__(self, file: Path, data: bytes) -> None:
        reader = _Reader(file, data)
        plain = reader.document()
        if not isinstance(plain, dict):
            raise NotASnapshot(file, "line 1", "A snapshot is a mapping of keys to values.")
        self._lines = reader.lines
        super().__init__(file, msgspec.json.encode(plain))

    def path_of(self, kind: EntryKind, position: int) -> str:
        path = super().path_of(kind, position)
        return f"line {self._lines[path]}: {path}"


class _Reader:
    """Converts the events of the parser to plain values in one pass."""

    def __init__(self, file: Path, data: bytes) -> None:
        self._file = file
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._events: Iterator[yaml.Event] = yaml.parse(data, Loader=loader)
        # The line numbers of entries, by path.
        self.lines: dict[str, int] = {}

    def document(self) -> Any:
        """The document in the file; raises an error if there are several."""
        try:
            next(self._events)
            if isinstance(next(self._events), yaml.StreamEndEvent):
                raise TruncatedSnapshot(self._file, "line 1", "It is empty.")
            value = self._value(next(self._events), "", 1)
            next(self._events)
            event = next(self._events)
            if not isinstance(event, yaml.StreamEndEvent):
                self._refuse(event, "A second document starts here.")
            return value
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            text = f"This is not valid YAML: {error.problem}."
            raise SnapshotError(self._file, f"line {line}", text) from None
        except yaml.reader.ReaderError as error:
            text = f"This is not valid YAML: {error.reason}."
            raise SnapshotError(self._file, f"character {error.position}", text) from None

    def _value(self, event: yaml.Event, path: str, depth: int) -> Any:
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            self._refuse(event, "Anchors and aliases are not allowed in a snapshot.")
        if (tag := getattr(event, "tag", None)) is not None:
            self._refuse(event, f"The tag '{tag}' is not allowed in a snapshot.")
        if depth > MAX_DEPTH:
            self._refuse(event, f"It nests deeper than {MAX_DEPTH} levels.")
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._items(path, depth)
        return self._entries(path, depth)

    def _items(self, path: str, depth: int) -> list[Any]:
        items: list[Any] = []
        is_list_of_entries = path in _ENTRY_LISTS
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            item_path = f"{path}[{len(items)}]"
            if is_list_of_entries:
                self.lines[item_path] = _line(event)
            items.append(self._value(event, item_path, depth + 1))
        return items

    def _entries(self, path: str, depth: int) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent) or event.anchor is not None:
                self._refuse(event, "A key must be text, without an anchor.")
            key = str(event.value)
            if key in entries:
                self._refuse(event, f"The key '{key}' is duplicated.")
            if key == "<<" and not event.style:
                self._refuse(event, "Merge keys are not allowed in a snapshot.")
            item_path = f"{path}.{key}" if path else key
            entries[key] = self._value(next(self._events), item_path, depth + 1)
        return entries

    def _refuse(self, event: yaml.Event, text: str) -> NoReturn:
        raise SnapshotError(self._file, f"line {_line(event)}", text)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _scalar(event: yaml.ScalarEvent) -> Any:
    text = str(event.value)
    if event.style:
        return text
    if text in _KEYWORDS:
        return _KEYWORDS[text]
    match = _NUMBER.fullmatch(text)
    if match is None:
        return text
    number = float(text) if match[2] or match[3] else int(text)
    # JSON cannot represent infinity. The text is refused where a number is expected.
    return text if number in (math.inf, -math.inf) else number


def open_yaml(file: Path) -> YamlDocument:
    with file.open("rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        limit = f"It is larger than {MAX_BYTES // 1024 // 1024} MB."
        raise SnapshotTooLarge(
            file, "", f"{limit} Use .jsonl, .jsonl.zst or .parquet for large snapshots."
        )
    return YamlDocument(file, data)


def write_yaml(file: Path, header: bytes, bodies: Bodies) -> None:
    with file.open("wb") as stream:
        stream.write(_yaml(msgspec.json.decode(header)))
        for kind in KINDS:
            start = f"{kind.plural}:\n".encode()
            for key, body, content_hash in bodies[kind.plural]:
                entry = decode_plain(body) | {HASH_KEY: content_hash}
                if _is_deeper(entry, MAX_DEPTH - _OUTER_LEVELS):
                    raise MalformedJson(
                        kind.plural,
                        f"The {kind.singular} '{key}' nests deeper than {MAX_DEPTH} levels. Write "
                        "the snapshot as .json, .jsonl or .parquet",
                    )
                stream.write(start + _yaml([entry]))
                start = b""


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether a value nests deeper than this number of levels; scalars count as a level."""
    nodes = [value]
    for _ in range(levels):
        nodes = [
            child
            for node in nodes
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
        ]
    return bool(nodes)


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Adds quotes to text that `_scalar` would parse as a number."""


_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _NUMBER, list("-0123456789"))


def _yaml(plain: Any) -> bytes:
    dumped = yaml.dump(
        plain,
        Dumper=_Dumper,
        default_flow_style=False,
        sort_keys=False,
        allow_unicode=True,
        width=1_000_000,
        encoding="utf-8",
    )
    return bytes(dumped)
