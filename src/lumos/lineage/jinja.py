"""SQL templates as plain SQL, as far as that can be said without running them.

Lines stay where they are. `ref` and `source` are the tables that they name, an incremental part is
left out as in a first run, of other branches the first one is taken.
"""

import re
from typing import Final, NamedTuple

# Stands where only the template's own project knows what.
UNKNOWN: Final = "__jinja__"

_TAG: Final = re.compile(r"\{\{-?(.*?)-?\}\}|\{%-?(.*?)-?%\}|\{#(.*?)#\}", re.DOTALL)
_TEXTS: Final = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_CALL: Final = re.compile(r"\s*([\w.]+)\s*(\(.*\))?\s*\Z", re.DOTALL)
_SILENT: Final = frozenset(("config", "log", "print", "exceptions.warn", "return"))
_BLOCKS: Final = frozenset(("if", "for", "macro", "call", "filter", "set", "snapshot", "raw"))
# What stands inside is not what runs.
_LEFT_OUT: Final = frozenset(("macro", "call", "set"))
_INCREMENTAL: Final = re.compile(r"\bis_incremental\s*\(")
_NOT: Final = re.compile(r"\s*not\b")


class Unknown(NamedTuple):
    """A place that only running the template would resolve."""

    line: int
    text: str
    # Nothing is lost by it.
    is_remark: bool = False


class Rendered(NamedTuple):
    """Plain SQL, and what of the template could not be told."""

    text: str
    unknown: tuple[Unknown, ...]


def is_template(text: str) -> bool:
    """Whether a text has Jinja in it."""
    return "{{" in text or "{%" in text or "{#" in text


def rendered(text: str, *, this: str) -> Rendered:
    """The SQL of a template; `this` is the table that it makes."""
    return _Renderer(text, this).render()


class _Renderer:
    def __init__(self, text: str, this: str) -> None:
        self._text = text
        self._this = this
        self._parts: list[str] = []
        self._unknown: list[Unknown] = []
        # For each open block its name, and whether what stands in it is taken.
        self._open: list[tuple[str, bool]] = []

    def render(self) -> Rendered:
        at = 0
        for tag in _TAG.finditer(self._text):
            self._take(self._text[at : tag.start()])
            expression, statement, _ = tag.groups()
            said = ""
            if expression is not None and self._is_taken():
                said = self._expression(expression, self._line(tag.start()))
            elif statement is not None:
                self._statement(statement)
            lines = "\n" * tag.group().count("\n")
            self._parts.append(said + lines)
            at = tag.end()
        self._take(self._text[at:])
        return Rendered("".join(self._parts), tuple(self._unknown))

    def _take(self, text: str) -> None:
        self._parts.append(text if self._is_taken() else "\n" * text.count("\n"))

    def _is_taken(self) -> bool:
        return all(taken for _, taken in self._open)

    def _line(self, at: int) -> int:
        return self._text.count("\n", 0, at) + 1

    def _expression(self, inner: str, line: int) -> str:
        call = _CALL.match(inner)
        name = call.group(1) if call else ""
        texts = [one or other for one, other in _TEXTS.findall(call.group(2) or "")] if call else []
        match name:
            case "ref" if texts:
                return _quoted(str(texts[:2][-1]))
            case "source" if len(texts) == 2:
                return f"{_quoted(texts[0])}.{_quoted(texts[1])}"
            case "this":
                return self._this
            case "var" | "env_var" if len(texts) == 2:
                return str(texts[1])
        if name in _SILENT:
            return ""
        self._unknown.append(Unknown(line, " ".join(f"{{{{{inner}}}}}".split())))
        return UNKNOWN

    def _statement(self, inner: str) -> None:
        word, _, rest = inner.strip().partition(" ")
        if word.startswith("end"):
            if self._open:
                self._open.pop()
        elif word in ("elif", "else"):
            if self._open and self._open[-1][0] == "if":
                self._open[-1] = ("if", False)
            elif self._open and self._open[-1][0] == "incremental":
                self._open[-1] = ("if", True)
        elif word == "if":
            is_left_out = bool(_INCREMENTAL.search(rest)) and not _NOT.match(rest)
            self._open.append(("incremental", False) if is_left_out else ("if", True))
        elif word in _BLOCKS and not (word == "set" and "=" in rest):
            self._open.append((word, word not in _LEFT_OUT))


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f'"{name}"'
