"""Adds and removes hints in a configuration file; the rest of the file stays as it is."""

import fcntl
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from lumos.config.settings import Settings
from lumos.config.sources import DatasetHint, FileStoreSettings
from lumos.config.yaml_tree import ConfigurationError
from lumos.errors import LumosError, MisuseError

SCAN: Final = "scan"
_KEY: Final = "datasets"
_BOM: Final = b"\xef\xbb\xbf"
_SECTION_STEP: Final = re.compile(r"(\w+)(?:\[(\d+)\])?")
# Texts that need no quotes in YAML, in block and in flow style.
_UNQUOTED: Final = re.compile(r"[A-Za-z_/.][\w./*-]*(?:://[\w./*-]+)?\Z", re.ASCII)
_YAML_KEYWORDS: Final = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))

# Loads the settings as if the text were the content of the configuration file.
Reload = Callable[[str], Settings]


class NotEditable(MisuseError):
    """A configuration file into which hints cannot be written safely."""


class FileNotWritable(LumosError):
    """A configuration file that cannot be replaced."""


class HintFile:
    """A configuration file that is locked against edits by other Lumos processes.

    Every edit is verified: apart from the one hint, the settings must not change. This detects
    anchors, merge keys and variables that would copy the hint to other sections or hide it.
    """

    def __init__(self, text: str, reload: Reload) -> None:
        self._reload = reload
        self.text = text
        self.settings = reload(text)

    def add(self, section: str, hint: DatasetHint) -> None:
        """Append a hint to the list `datasets` of a section, `scan` or `sources[0]`."""
        hints = (*hints_of_section(self.settings, section), hint)
        self._accept(_add_hint(self.text, section, hint), section, hints)

    def remove(self, section: str, index: int) -> None:
        """Remove the hint at an index of a section's list."""
        hints = hints_of_section(self.settings, section)
        self._accept(
            _remove_hint(self.text, section, index),
            section,
            (*hints[:index], *hints[index + 1 :]),
        )

    def _accept(self, text: str, section: str, hints: tuple[DatasetHint, ...]) -> None:
        expected = _expected_settings(self.settings, section, hints)
        try:
            settings = self._reload(text)
        except ConfigurationError as problem:
            raise NotEditable(f"The hint does not fit into the file: {problem}") from None
        if settings.to_masked_dict() != expected:
            raise NotEditable(
                f"A change of '{section}.{_KEY}' would change other settings too, or have no "
                "effect: it is shared by an anchor, or overridden by a variable or an option."
            )
        self.text, self.settings = text, settings


@contextmanager
def edit_hint_file(file: Path, reload: Reload, *, write: bool = True) -> Iterator[HintFile]:
    """Lock a configuration file, let the caller edit it and replace it with the result.

    Without `write` the edits are only verified.
    """
    # Replace the target of a symbolic link, not the link.
    target = Path(os.path.realpath(file))
    with _locked(target) as before:
        bom = _BOM if before.startswith(_BOM) else b""
        opened = HintFile(before[len(bom) :].decode(), reload)
        yield opened
        after = bom + opened.text.encode()
        if write and after != before:
            _replace(target, before, after)


def hints_of_section(settings: Settings, section: str) -> tuple[DatasetHint, ...]:
    if section == SCAN:
        return settings.scan.datasets
    watched = tuple(each.source for each in settings.change_detection.sources)
    sources = settings.sources if section.startswith("sources") else watched
    source = next(islice(sources, _steps(section)[-1][1], None), None)
    return source.datasets if isinstance(source, FileStoreSettings) else ()


def _expected_settings(
    settings: Settings, section: str, hints: tuple[DatasetHint, ...]
) -> dict[str, Any]:
    """The settings as plain values, with the hints of a section replaced."""
    expected = settings.to_masked_dict()
    node: Any = expected
    for name, index in _steps(section):
        node = node[name] if index is None else node[name][index]
    # A watched source is a single mapping in the file, but two nested values in the settings.
    node = node.get("source", node)
    node[_KEY] = msgspec.json.decode(msgspec.json.encode(hints))
    return expected


def _steps(section: str) -> list[tuple[str, int | None]]:
    steps = _SECTION_STEP.findall(section)
    return [(name, int(index) if index else None) for name, index in steps]


@contextmanager
def _locked(file: Path) -> Iterator[bytes]:
    """Lock a file and yield its content."""
    while True:
        try:
            handle = file.open("rb")
        except OSError as problem:
            raise FileNotWritable(f"{file} cannot be read: {problem.strerror}.") from None
        with handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            # The previous holder of the lock may have replaced the file.
            if os.path.samestat(os.fstat(handle.fileno()), file.stat()):
                yield handle.read()
                return


def _replace(file: Path, before: bytes, after: bytes) -> None:
    """Replace the content of a file atomically, with the same permissions."""
    advice = "Make it writable, or keep the hint in the store with --in-store."
    mode = stat.S_IMODE(file.stat().st_mode)
    if not mode & 0o222 or not os.access(file, os.W_OK):
        raise FileNotWritable(f"{file} is read-only. {advice}")
    temporary = ""
    try:
        number, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        with os.fdopen(number, "wb") as target:
            target.write(after)
            target.flush()
            os.fsync(target.fileno())
        os.chmod(temporary, mode)
        with suppress(PermissionError):
            owner = file.stat()
            os.chown(temporary, owner.st_uid, owner.st_gid)
        if file.read_bytes() != before:
            raise FileNotWritable(f"{file} was changed by another program. Run the command again.")
        os.replace(temporary, file)
    except OSError as problem:
        raise FileNotWritable(f"{file} cannot be written: {problem.strerror}. {advice}") from None
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _compose(text: str) -> yaml.MappingNode | None:
    """The YAML nodes of a text with their positions; None if the text is not a mapping."""
    # Use the same parser as for settings, since other parsers treat tabs differently.
    events = yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    started = next((each for each in events if isinstance(each, yaml.DocumentStartEvent)), None)
    root = None if started is None else _build_node(next(events), events)
    return root if isinstance(root, yaml.MappingNode) else None


def _build_node(event: Any, events: Iterator[Any]) -> yaml.Node:
    """Build a node from parser events; an alias is a scalar, so that it has its own position."""
    start: Any = event.start_mark
    end: Any = event.end_mark
    if isinstance(event, yaml.AliasEvent):
        return yaml.ScalarNode("alias", f"*{event.anchor}", start, end)
    if isinstance(event, yaml.ScalarEvent):
        return yaml.ScalarNode("", event.value, start, end)
    children: list[yaml.Node] = []
    while not isinstance(child := next(events), yaml.CollectionEndEvent):
        children.append(_build_node(child, events))
    end = child.end_mark
    if isinstance(event, yaml.SequenceStartEvent):
        return yaml.SequenceNode("", children, start, end, event.flow_style)
    pairs = list(zip(children[::2], children[1::2], strict=True))
    return yaml.MappingNode("", pairs, start, end, event.flow_style)


def _entry(mapping: yaml.Node | None, name: str) -> tuple[yaml.Node, yaml.Node] | None:
    pairs = mapping.value if isinstance(mapping, yaml.MappingNode) else ()
    return next(((key, value) for key, value in pairs if key.value == name), None)


def _section_entry(root: yaml.MappingNode | None, section: str) -> tuple[yaml.Node, yaml.Node]:
    """Key and value of a section; for a list item both are the item."""
    for top in (root, (_entry(root, str(Settings.nested)) or (None, None))[1]):
        entry: tuple[yaml.Node, yaml.Node] | None = None
        node: yaml.Node | None = top
        for name, index in _steps(section):
            entry = _entry(node, name)
            if entry is not None and index is not None:
                items = entry[1].value if isinstance(entry[1], yaml.SequenceNode) else ()
                entry = (items[index], items[index]) if index < len(items) else None
            if entry is None:
                break
            node = entry[1]
        if entry is not None:
            return entry
    raise NotEditable(f"The file has no section '{section}'.")


def _add_hint(text: str, section: str, hint: DatasetHint) -> str:
    """The text with a hint appended to the list of a section."""
    root = _compose(text)
    try:
        key, owner = _section_entry(root, section)
    except NotEditable:
        if section != SCAN:
            raise
        return _add_scan_section(text, root, hint)
    indent = _indentation(root)
    if _is_empty(owner):
        column = key.start_mark.column + indent
        return _insert_lines(text, owner.end_mark.index, _key_lines(hint, column, root))
    if not isinstance(owner, yaml.MappingNode):
        raise NotEditable(f"'{section}' is not a mapping, so it cannot hold '{_KEY}'.")
    entry = _entry(owner, _KEY)
    if entry is None:
        if owner.flow_style:
            return _insert_inline(text, owner, f"{_KEY}: [{_inline(hint)}]")
        column = owner.value[0][0].start_mark.column
        return _insert_lines(text, _end(owner), _key_lines(hint, column, root))
    key, value = entry
    if _is_empty(value):
        if owner.flow_style:
            raise NotEditable(f"'{section}.{_KEY}' has no value. Write '{_KEY}: []' there.")
        column = key.start_mark.column + _dash_offset(root)
        return _insert_lines(text, value.end_mark.index, _item_lines(hint, column))
    if not isinstance(value, yaml.SequenceNode):
        raise NotEditable(f"'{section}.{_KEY}' is not a list in the file.")
    if value.flow_style:
        return _insert_inline(text, value, _inline(hint))
    dash = _dash(text, value.value[0])
    return _insert_lines(text, _end(value), _item_lines(hint, _column(text, dash)))


def _add_scan_section(text: str, root: yaml.MappingNode | None, hint: DatasetHint) -> str:
    """The text with a new section `scan` at the end."""
    if root is not None and root.flow_style:
        return _insert_inline(text, root, f"{SCAN}: {{{_KEY}: [{_inline(hint)}]}}")
    column = root.value[0][0].start_mark.column if root is not None else 0
    lines = [
        f"{' ' * column}{SCAN}:",
        *_key_lines(hint, column + _indentation(root), root),
    ]
    end = 0 if root is None else _end(root)
    ends_early = re.search(r"^\.\.\.", text[end:], re.MULTILINE)
    return _insert_lines(text, end + ends_early.start() - 1 if ends_early else len(text), lines)


def _remove_hint(text: str, section: str, index: int) -> str:
    """The text without one hint and without keys that would become empty."""
    root = _compose(text)
    key, owner = _section_entry(root, section)
    entry = _entry(owner, _KEY)
    if entry is None or not isinstance(entry[1], yaml.SequenceNode):
        raise NotEditable(f"'{section}.{_KEY}' is not a list in the file. Remove the hint by hand.")
    hints = entry[1]
    item = hints.value[index]
    if hints.flow_style:
        return _remove_inline(text, hints, index)
    if len(hints.value) > 1:
        return _remove_lines(text, _dash(text, item), _end(item))
    assert isinstance(owner, yaml.MappingNode)
    is_alone = len(owner.value) == 1
    if is_alone and owner.flow_style is False and section == SCAN:
        return _remove_lines(text, key.start_mark.index, _end(item))
    if not is_alone and entry[0].start_mark.column == _indent_at(text, entry[0].start_mark.index):
        return _remove_lines(text, entry[0].start_mark.index, _end(item))
    # The key is on the same line as a list item: keep the line, with an empty list.
    start = _dash(text, item)
    line = text.rfind("\n", 0, start) + 1
    colon = entry[0].end_mark.index + 1
    return f"{text[:colon]} []{text[colon:line]}{text[_next_line(text, _end(item)) :]}"


def _is_empty(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.start_mark.index == node.end_mark.index


def _end(node: yaml.Node) -> int:
    """The position of the end of a node in the text, before any comments after a block."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)


def _dash(text: str, item: yaml.Node) -> int:
    """The position of the dash of a list item."""
    before = text[: item.start_mark.index].rstrip()
    if not before.endswith("-"):
        line = item.start_mark.line + 1
        raise NotEditable(f"The list item in line {line} cannot be found. Edit the file by hand.")
    return len(before) - 1


def _column(text: str, position: int) -> int:
    return position - (text.rfind("\n", 0, position) + 1)


def _indent_at(text: str, position: int) -> int:
    """The number of spaces at the beginning of a line."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return len(list(takewhile(lambda character: character == " ", line)))


def _next_line(text: str, position: int) -> int:
    if position and text[position - 1] == "\n":
        return position
    return text.find("\n", position) + 1 or len(text)


def _indentation(root: yaml.MappingNode | None) -> int:
    """The indentation of mappings in the file."""
    return next(
        (
            value.value[0][0].start_mark.column - key.start_mark.column
            for key, value in (root.value if root is not None else ())
            if isinstance(value, yaml.MappingNode) and not value.flow_style and value.value
        ),
        2,
    )


def _dash_offset(root: yaml.MappingNode | None) -> int:
    """The indentation of lists in the file."""
    return next(
        (
            value.start_mark.column - key.start_mark.column
            for key, value in (root.value if root is not None else ())
            if isinstance(value, yaml.SequenceNode)
            and not value.flow_style
            and value.start_mark.line > key.start_mark.line
        ),
        2,
    )


def _key_lines(hint: DatasetHint, column: int, root: yaml.MappingNode | None) -> list[str]:
    return [f"{' ' * column}{_KEY}:", *_item_lines(hint, column + _dash_offset(root))]


def _item_lines(hint: DatasetHint, column: int) -> list[str]:
    first, *rest = _pairs(hint)
    return [f"{' ' * column}- {first}", *(f"{' ' * column}  {pair}" for pair in rest)]


def _inline(hint: DatasetHint) -> str:
    return f"{{{', '.join(_pairs(hint))}}}"


def _pairs(hint: DatasetHint) -> list[str]:
    """A hint as YAML pairs, one per line."""
    paths = [_scalar(path) for path in hint.paths]
    pairs = [f"path: {paths[0]}" if len(paths) == 1 else f"path: [{', '.join(paths)}]"]
    pairs += [f"name: {_scalar(hint.name)}"] if hint.name is not None else []
    return pairs + (["split: true"] if hint.split else [])


def _scalar(text: str) -> str:
    # Escaped, since Lumos would read ${ as the start of a variable.
    text = text.replace("${", "$${")
    if (
        _UNQUOTED.match(text)
        and text.lower() not in _YAML_KEYWORDS
        and not text.startswith(("...", "---"))
    ):
        return text
    return f"'{text.replace(chr(39), chr(39) * 2)}'"


def _insert_lines(text: str, position: int, lines: list[str]) -> str:
    """The text with lines inserted after the line of a position."""
    newline = "\r\n" if "\r\n" in text else "\n"
    position = _next_line(text, position)
    if position == len(text) and text and not text.endswith("\n"):
        return text + newline + newline.join(lines)
    return f"{text[:position]}{newline.join(lines)}{newline}{text[position:]}"


def _remove_lines(text: str, first: int, end: int) -> str:
    """The text without the lines between two positions."""
    start = text.rfind("\n", 0, first) + 1
    return text[:start] + text[_next_line(text, end) :]


def _insert_inline(text: str, node: yaml.CollectionNode, piece: str) -> str:
    """The text with an entry appended to a list or mapping in flow style."""
    if node.value:
        last = node.value[-1]
        position = _end(last[1] if isinstance(last, tuple) else last)
        return f"{text[:position]}, {piece}{text[position:]}"
    position = node.end_mark.index - 1
    return f"{text[:position]}{piece}{text[position:]}"


def _remove_inline(text: str, node: yaml.SequenceNode, index: int) -> str:
    """The text without an item of a list in flow style and its comma."""
    item = node.value[index]
    if index > 0:
        return text[: _end(node.value[index - 1])] + text[_end(item) :]
    if len(node.value) > 1:
        return text[: item.start_mark.index] + text[node.value[1].start_mark.index :]
    return text[: item.start_mark.index] + text[_end(item) :]
