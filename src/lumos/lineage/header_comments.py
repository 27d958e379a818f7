"""Parses annotations in comments above SQL: description, owner, SLA and tags of a table."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from lumos.annotations.owner_names import is_filled_in, parse_owners
from lumos.model.dataset import Owner

SLA: Final = "sla"
_SURROUNDING_CHARS: Final = " \t[]\"'"

# `Owner: jane` or `@owner jane`.
_ANNOTATION: Final = re.compile(
    r"(?:@(?P<mark>owners?|sla|descriptions?|tags?)(?:\s*[:=]|\s|\Z)"
    r"|(?P<word>owners?|sla|descriptions?|tags?)\s*[:=])\s*(?P<text>.*)\Z",
    re.IGNORECASE | re.DOTALL,
)
_LIST_ITEM: Final = re.compile(r"[-*\u2022]\s+(?P<text>\S.*)\Z", re.DOTALL)
_CONTINUATION: Final = re.compile(r"[^A-Z]")
_UNFINISHED: Final = tuple(".,;:!?(-")
# Decorative lines, directives of linters, and licence texts are not part of a description.
_DECORATION: Final = re.compile(r"[\s\-=*#_~/+|]*\Z")
_DIRECTIVE: Final = re.compile(
    r"(?:noqa\b|sqlfluff\b|sqlfmt\b|fmt\s*:|depends_on\s*:|flake8\b|nosec\b|lint\b|"
    r"copyright\b|\(c\)\s|©|spdx-|licensed under\b|all rights reserved\b)",
    re.IGNORECASE,
)
# Prose may start with the same words as code, but does not contain the same characters.
_CODE: Final = re.compile(
    r"(?:select|with|insert\s+into|update|delete\s+from|merge\s+into|create|alter|drop|from|join|"
    r"left\s+join|inner\s+join|where|and|or|group\s+by|order\s+by|union)\b.*"
    r"(?:;\s*\Z|[=*]|\w\((?!s\))|\w\.\w)"
    r"|(?:select|create)\b.*\bas\b"
    r"|with\s+\w+\s+as\s*\("
    r"|select\s+[\w.\"]+\s*,(?:\s*[\w.\"]+\s*,)*(?:\s*[\w.\"]+)?\s*\Z",
    re.IGNORECASE | re.DOTALL,
)
_BLANK_LINE: Final = re.compile(r"\n[^\S\n]*\n")
_PIECE: Final = re.compile(
    r"(?P<blank>\s+)"
    r"|(?P<line>(?:--|//|\#(?![}\w]))(?P<line_text>[^\n]*))"
    r"|(?P<block>/\*(?P<block_text>.*?)\*/)"
    r"|(?P<jinja_comment>\{\#-?(?P<jinja_text>.*?)-?\#\})"
    r"|(?P<jinja>\{\{.*?\}\}|\{%.*?%\})",
    re.DOTALL,
)


class HeaderComment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The annotations of a comment; `empty` if there are none."""

    description: str | None = None
    owners: tuple[Owner, ...] = ()
    sla: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        return self == HeaderComment()

    def merge(self, other: "HeaderComment") -> "HeaderComment":
        """Add the annotations of another comment that this one does not have."""
        return HeaderComment(
            description=self.description or other.description,
            owners=self.owners or other.owners,
            sla=self.sla or other.sla,
            tags=self.tags or other.tags,
        )


def header_of(text: str) -> HeaderComment:
    """The annotations before the first statement; Jinja tags are skipped."""
    return _parse_lines(_leading_lines(text))


def file_header(text: str, line: int) -> HeaderComment:
    """The annotations of a file whose first statement that writes is on `line`.

    A comment directly above that statement belongs to the statement, not to the file.
    """
    leading = text[: max((piece.end() for piece in _pieces(text)), default=0)]
    if leading.count("\n") + 1 != line:
        return _parse_lines(_leading_lines(leading))
    paragraphs = _BLANK_LINE.split(leading)
    return _parse_lines(_leading_lines("\n\n".join(paragraphs[:-1])))


def header_above(lines: Sequence[str], line: int) -> HeaderComment:
    """The annotations of the comments directly above a line; lines are counted from 1."""
    end = min(line - 1, len(lines))
    while end and not lines[end - 1].strip():
        end -= 1
    start = _start_of_comments(lines, end)
    if start == end:
        return HeaderComment()
    return _parse_lines(_leading_lines("\n".join(lines[start:end])))


def _start_of_comments(lines: Sequence[str], end: int) -> int:
    """The index of the first of the comment lines directly before the index `end`."""
    start = end
    in_block = False
    for number in range(end - 1, -1, -1):
        line = lines[number].strip()
        if in_block:
            in_block = not line.startswith("/*")
        elif line.endswith("*/") and "/*" not in line:
            in_block = True
        elif not line.startswith(("--", "/*", "#", "//")):
            break
        start = number
    return end if in_block else start


def _pieces(text: str) -> Iterator[re.Match[str]]:
    """The comments at the beginning, and the white space between them."""
    offset = 1 if text.startswith("\ufeff") else 0
    while (piece := _PIECE.match(text, offset)) is not None:
        offset = piece.end()
        yield piece


def _leading_lines(text: str) -> list[str]:
    """The lines of all leading comments; a blank line ends a paragraph."""
    lines: list[str] = []
    for piece in _pieces(text):
        if piece["line"] is not None:
            lines.append(piece["line_text"].rstrip())
        elif (inner := piece["block_text"] or piece["jinja_text"]) is not None:
            if inner.startswith("+"):
                # An optimiser hint.
                continue
            lines += ["", *(_without_star(line) for line in inner.split("\n"))]
        elif piece["blank"] is not None and piece["blank"].count("\n") > 1:
            lines.append("")
    return lines


def _without_star(line: str) -> str:
    """A line of a block comment, without its leading star."""
    text = line.strip()
    return text[1:] if text == "*" or text.startswith("* ") else line.rstrip()


class _AnnotationLines:
    """Collects lines such as `Owner: jane` and their continuation lines."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        # The kind and the indentation of the annotation that the next line may continue.
        self._current: tuple[str, int] | None = None

    def add(self, line: str) -> bool:
        """Add a line if it is part of an annotation; returns whether it was."""
        text = line.lstrip("- ") if line.startswith("-") else line.strip()
        indent = len(line) - len(line.lstrip())
        if (match := _ANNOTATION.match(text)) is not None:
            kind = (match["mark"] or match["word"]).lower().removesuffix("s")
            self._texts.setdefault(kind, []).append(match["text"].strip())
            self._current = kind, indent
            return True
        if self._current is None:
            return False
        kind, start = self._current
        return self._continue(self._texts[kind], kind, line.strip(), is_indented=indent > start)

    def end_current(self) -> None:
        """End the current annotation, so that the next line does not continue it."""
        self._current = None

    def of_kind(self, kind: str) -> list[str]:
        """The texts of one kind of annotation."""
        return [text for text in self._texts.get(kind, ()) if text]

    def _continue(self, texts: list[str], kind: str, line: str, *, is_indented: bool) -> bool:
        item = _LIST_ITEM.match(line)
        if kind in ("owner", "tag"):
            if item is None and not (is_indented and not texts[-1]):
                self.end_current()
                return False
            texts.append(item["text"] if item else line)
            return True
        previous = texts[-1]
        is_unfinished = not previous or previous.endswith(_UNFINISHED)
        if is_indented or is_unfinished or _CONTINUATION.match(line):
            texts[-1] = f"{previous} {line}".strip()
            return True
        self.end_current()
        return False


def _parse_lines(lines: list[str]) -> HeaderComment:
    annotations = _AnnotationLines()
    paragraphs: list[list[str]] = [[]]
    for line in lines:
        text = line.strip().lstrip("-").strip()
        if _DECORATION.match(text):
            annotations.end_current()
            paragraphs.append([])
        elif not _DIRECTIVE.match(text) and not annotations.add(line):
            paragraphs[-1].append(text)
    # Paragraphs of commented-out code are not descriptions.
    texts = (each for each in paragraphs if each and not any(map(_CODE.match, each)))
    descriptions = annotations.of_kind("description") or [" ".join(next(texts, []))]
    return HeaderComment(
        description=descriptions[0] or None,
        owners=parse_owners(annotations.of_kind("owner")),
        sla=next(filter(is_filled_in, annotations.of_kind("sla")), None),
        tags=tuple(
            dict.fromkeys(
                name
                for text in annotations.of_kind("tag")
                for tag in re.split(r"[,;]", text.strip(_SURROUNDING_CHARS))
                if (name := tag.strip(_SURROUNDING_CHARS).lstrip("#"))
            )
        ),
    )
