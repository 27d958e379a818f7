"""What comments above SQL say of the table that it makes: description, owner, SLA and tags."""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from lumos.lineage.owners import owners_of
from lumos.model.dataset import Owner

SLA: Final = "sla"

_FACT: Final = re.compile(
    r"@?(owners?|sla|descriptions?|tags?)\s*[:=]\s*(.*)\Z", re.IGNORECASE | re.DOTALL
)
# Lines of stars and dashes, what is meant for linters and optimisers, and what lawyers want.
_DECORATION: Final = re.compile(r"[\s\-=*#_~/+|]*\Z")
_DIRECTIVE: Final = re.compile(
    r"(?:noqa\b|sqlfluff\b|sqlfmt\b|fmt\s*:|depends_on\s*:|flake8\b|nosec\b|lint\b|"
    r"copyright\b|\(c\)\s|©|spdx-|licensed under\b|all rights reserved\b)",
    re.IGNORECASE,
)
_CODE: Final = re.compile(
    r"(?:select|with|insert\s+into|update|delete\s+from|merge\s+into|create|alter|drop|from|join|"
    r"left\s+join|inner\s+join|where|and|or|group\s+by|order\s+by|union)\b.*(?:[;,(=*]|\bas\b|\.\w)",
    re.IGNORECASE | re.DOTALL,
)
_PIECE: Final = re.compile(
    r"(?P<blank>\s+)"
    r"|(?P<line>(?:--|//|\#(?![}\w]))(?P<line_text>[^\n]*))"
    r"|(?P<block>/\*(?P<block_text>.*?)\*/)"
    r"|(?P<jinja_comment>\{\#-?(?P<jinja_text>.*?)-?\#\})"
    r"|(?P<jinja>\{\{.*?\}\}|\{%.*?%\})",
    re.DOTALL,
)


class Header(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a comment says; `empty` where it says nothing."""

    description: str | None = None
    owners: tuple[Owner, ...] = ()
    sla: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        return self == Header()

    def over(self, other: "Header") -> "Header":
        """What this one says, and where it is silent what the other says."""
        return Header(
            description=self.description or other.description,
            owners=self.owners or other.owners,
            sla=self.sla or other.sla,
            tags=self.tags or other.tags,
        )


def header_of(text: str) -> Header:
    """What stands in the comments before the first statement; Jinja among them is passed over."""
    return _read(_leading(text))


def header_above(text: str, line: int) -> Header:
    """What the comments say that end right above a line, counted from 1."""
    lines = text.split("\n")[: line - 1]
    while lines and not lines[-1].strip():
        lines.pop()
    start = _start_of_comments(lines)
    return _read(_leading("\n".join(lines[start:]))) if start < len(lines) else Header()


def _start_of_comments(lines: list[str]) -> int:
    start = len(lines)
    inside = False
    for number in range(len(lines) - 1, -1, -1):
        line = lines[number].strip()
        if inside:
            inside = not line.startswith("/*")
        elif line.endswith("*/") and not line.startswith("/*") and "/*" not in line:
            inside = True
        elif not line.startswith(("--", "/*", "#", "//")):
            break
        start = number
    return len(lines) if inside else start


def _leading(text: str) -> list[str]:
    """The lines of all comments at the beginning; a blank line ends a paragraph."""
    lines: list[str] = []
    at = 1 if text.startswith("\ufeff") else 0
    while (piece := _PIECE.match(text, at)) is not None:
        at = piece.end()
        if piece["line"] is not None:
            lines.append(piece["line_text"].strip())
        elif (inner := piece["block_text"] or piece["jinja_text"]) is not None:
            if inner.startswith("+"):
                # A hint for the optimiser.
                continue
            lines += ["", *(line.strip().removeprefix("*").strip() for line in inner.split("\n"))]
        elif piece["blank"] is not None and piece["blank"].count("\n") > 1:
            lines.append("")
    return lines


def _read(lines: list[str]) -> Header:
    facts: dict[str, list[str]] = {}
    words: list[list[str]] = [[]]
    for line in lines:
        text = line.lstrip("-").strip()
        if _DECORATION.match(text):
            words.append([])
        elif _DIRECTIVE.match(text):
            continue
        elif (fact := _FACT.match(text)) is not None:
            kind = fact.group(1).lower().removesuffix("s")
            facts.setdefault(kind, []).append(fact.group(2).strip())
        else:
            words[-1].append(text)
    told = " ".join(_first_paragraph(words))
    described = [text for text in facts.get("description", ()) if text]
    return Header(
        description=(described[0] if described else told) or None,
        owners=owners_of(facts.get("owner", ())),
        sla=next((text for text in facts.get("sla", ()) if text), None),
        tags=tuple(
            dict.fromkeys(
                tag.strip().lstrip("#")
                for text in facts.get("tag", ())
                for tag in re.split(r"[,;]", text)
                if tag.strip()
            )
        ),
    )


def _first_paragraph(paragraphs: list[list[str]]) -> Iterator[str]:
    """The first one that is words and not code that somebody switched off."""
    for paragraph in paragraphs:
        if paragraph and not any(_CODE.match(line) for line in paragraph):
            yield from paragraph
            return
