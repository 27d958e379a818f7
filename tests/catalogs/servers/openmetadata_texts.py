"""What an OpenMetadata server does to texts: names, descriptions, and JSON Patch."""

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

_PART = re.compile(r'"((?:[^"]|"")*)"|([^."]+)')
_MARKUP = frozenset(
    {"a", "b", "blockquote", "br", "code", "div", "em", "h1", "h2", "h3", "i", "li", "ol", "p", "pre",
     "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "u", "ul"}
)  # fmt: skip
_TAG = re.compile(r"<(?P<end>/?)(?P<name>[a-zA-Z][a-zA-Z0-9]*)[^<>]*>|<!--.*?-->", re.DOTALL)
_WITH_CONTENT = re.compile(r"<(script|style)\b.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_ENCODED = {"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {
    character: f"&#{ord(character)};" for character in "\"'`=@+"
}
_SPECIAL = re.compile("[&<>\"'`=@+\ufeff\U00010000-\U0010ffff]")
_NUMBERED = re.compile(r"&#x([0-9a-fA-F]+);")


class PatchFailed(Exception):
    """Operations that do not fit what they are applied to."""


def quoted(name: str) -> str:
    """A name as a part of a qualified name."""
    if len(name) > 1 and name[0] == name[-1] == '"':
        # Taken for a name that is quoted already.
        return name if "." in name else name[1:-1]
    escaped = name.replace('"', '""')
    return f'"{escaped}"' if "." in name or '"' in name else name


def split(fqn: str) -> list[str]:
    """The names in a qualified name."""
    return [
        match[2] if match[1] is None else match[1].replace('""', '"')
        for match in _PART.finditer(fqn)
    ]


def sanitised(text: str) -> str:
    """A description as the server keeps it: as HTML, with what it holds to be harmless."""
    cleaned = _CONTROL.sub("", _WITH_CONTENT.sub("", text))
    parts: list[str] = []
    unclosed: list[str] = []
    offset = 0
    for tag in _TAG.finditer(cleaned):
        parts.append(_encoded(cleaned[offset : tag.start()]))
        offset = tag.end()
        name = (tag["name"] or "").lower()
        if name not in _MARKUP:
            continue
        if tag["end"]:
            if name in unclosed:
                unclosed.remove(name)
                parts.append(f"</{name}>")
        else:
            if name != "br":
                unclosed.append(name)
            parts.append(f"<{name}>")
    parts.append(_encoded(cleaned[offset:]))
    parts += [f"</{name}>" for name in reversed(unclosed)]
    return "".join(parts).replace("{{", "{<!-- -->{")


def _encoded(text: str) -> str:
    # `html.unescape` drops some characters that the server keeps.
    plain = html.unescape(_NUMBERED.sub(lambda match: chr(int(match[1], 16)), text))
    return _SPECIAL.sub(
        lambda match: _ENCODED.get(match.group()) or f"&#x{ord(match.group()):x};", plain
    )


def patched(document: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """The document after all operations; raises PatchFailed and changes nothing otherwise."""
    for operation in operations:
        path = [
            part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]
        ]
        holder = document
        for part in path[:-1]:
            holder = _at(holder, part)
        _apply(holder, path[-1], operation)
    return document


def _apply(holder: Any, key: str, operation: Mapping[str, Any]) -> None:
    match operation["op"], holder:
        case "add", list():
            holder.insert(len(holder) if key == "-" else _index(holder, key, 1), operation["value"])
        case "add", dict():
            holder[key] = operation["value"]
        case "test", _:
            if _at(holder, key) != operation["value"]:
                raise PatchFailed(
                    f"The JSON Patch operation 'test' failed for path '{operation['path']}' and "
                    f"value '{operation['value']}'"
                )
        case "replace", _:
            _at(holder, key)
            holder[_index(holder, key) if isinstance(holder, list) else key] = operation["value"]
        case "remove", _:
            _at(holder, key)
            del holder[_index(holder, key) if isinstance(holder, list) else key]
        case op, _:
            raise PatchFailed(f"The operation '{op}' is not one that the stub knows")


def _at(holder: Any, key: str) -> Any:
    if isinstance(holder, list):
        return holder[_index(holder, key)]
    if not isinstance(holder, dict) or key not in holder:
        raise PatchFailed(f"Non-existing name/value pair in the object for key {key}")
    return holder[key]


def _index(holder: list[Any], key: str, beyond: int = 0) -> int:
    if not key.isdecimal() or int(key) >= len(holder) + beyond:
        raise PatchFailed(f"An array item index is out of range. Index: {key}")
    return int(key)
