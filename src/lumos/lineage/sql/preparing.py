"""A text made ready for the tokenizer, every word staying on its place.

Templates, quoted bodies of routines and the marks of client programs are replaced by as many
characters as they have, so that places and lines are those of the text as written.
"""

import re
from typing import Final, NamedTuple

# A letter that no name contains stands for what a template would have inserted.
UNRENDERED: Final = "\u0135"

_COMMENT: Final = re.compile(r"\{#.*?#\}", re.DOTALL)
_LEFT_OUT: Final = re.compile(
    r"\{%-?\s*(?:(?:macro|docs|test)\b|set\s+\w+\s*-?%\}).*?\{%-?\s*end(?:macro|docs|test|set)\s*-?%\}",
    re.DOTALL,
)
_OTHERWISE: Final = re.compile(
    r"\{%-?\s*(?:else|elif\b[^%]*)\s*-?%\}(?:(?!\{%-?\s*(?:if|endif)\b).)*?(?=\{%-?\s*endif\b)",
    re.DOTALL,
)
_TAG: Final = re.compile(r"\{%.*?%\}", re.DOTALL)
_EXPRESSION: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_REF: Final = re.compile(
    r"""^-?\s*(ref|source)\s*\(\s*(['"])([^'"]+)\2\s*(?:,\s*(['"])([^'"]+)\4\s*)?"""
    r"""(?:,\s*(?:v|version)\s*=\s*[^)]*)?\)\s*-?$"""
)
_SILENT: Final = re.compile(r"^-?\s*(config|log|do|print|set_sql_header)\b")

_DOLLARS: Final = re.compile(r"\$([A-Za-z_\u0080-\uffff]\w*)?\$")
_ROUTINE: Final = re.compile(
    r"\b(?:(?:create|alter|replace)\b[^;$']*?\b(?:procedure|function|trigger|package|task)\b|do\b"
    r"|execute\s+immediate\b)",
    re.IGNORECASE,
)
_DO: Final = re.compile(r"\b(?:do|execute\s+immediate)(?:\s+language\s+\w+)?\s*\Z", re.IGNORECASE)
_LANGUAGE: Final = re.compile(r"\blanguage\s+'?(\w+)", re.IGNORECASE)
_OF_SQL: Final = frozenset({"sql", "plpgsql", "plsql"})
_QUOTED_BODY: Final = re.compile(
    r"\bas\s+(')((?:[^']|'')*?\b(?:begin|insert|select|update|merge|delete)\b(?:[^']|'')*)(')",
    re.IGNORECASE,
)
_UNLOAD: Final = re.compile(r"\bunload\s*\(\s*'((?:[^']|'')*)'\s*\)[^;]*", re.IGNORECASE)
_REPLACE_INTO: Final = re.compile(r"(?im)(^|;|\bbegin\b)(\s*)replace(\s+into\b)")
_DELIMITER: Final = re.compile(r"(?im)^[ \t]*delimiter[ \t]+(\S+)[ \t]*$")
_ALONE: Final = re.compile(r"(?im)^[ \t]*(/|go(?:[ \t]+\d+)?)[ \t]*;?[ \t]*(?=--|\r?$)")
_CLIENT: Final = re.compile(
    r"(?im)^[ \t]*(?:\\\w.*|prompt\b.*|spool\b.*|whenever\s+sqlerror\b.*"
    r"|set\s+(?:echo|feedback|define|serveroutput|verify|heading|pagesize|linesize|timing)\b.*|\.(?:logon|logoff|quit|exit|if|set"
    r"|run|goto|label|export|import|os)\b.*)$"
)


class Unrendered(NamedTuple):
    """A part of a template that only its engine could have replaced."""

    offset: int
    text: str


class Prepared(NamedTuple):
    """The text for the tokenizer, and what of a template is left in it."""

    text: str
    unrendered: tuple[Unrendered, ...] = ()


def prepared(text: str, dialect: str) -> Prepared:
    """The text with everything replaced that is not SQL."""
    unrendered: list[Unrendered] = []
    if "{{" in text or "{%" in text or "{#" in text:
        text = _without_templates(text, unrendered)
    if "$" in text or "'" in text:
        text = _without_quoted_bodies(text)
    text = _DELIMITER.sub(_blank, _with_semicolons(text))
    if dialect in ("tsql", "fabric", "oracle", "teradata", "", "postgres", "redshift"):
        text = _ALONE.sub(lambda match: _padded(";", match.group()), text)
        text = _CLIENT.sub(_blank, text)
    if dialect in ("mysql", "sqlite", "", "singlestore", "starrocks", "doris"):
        text = _REPLACE_INTO.sub(r"\1\2INSERT \3", text)
    return Prepared(text, tuple(unrendered))


def _blank(match: re.Match[str]) -> str:
    return _padded("", match.group())


def _padded(new: str, old: str) -> str:
    """New text of the length of the old, with its line breaks."""
    if "\n" not in old:
        return new + " " * (len(old) - len(new))
    rest = old[len(new) :] if "\n" not in old[: len(new)] else None
    if rest is None:
        return re.sub(r"[^\n]", " ", old)
    return new + re.sub(r"[^\n]", " ", rest)


def _without_templates(text: str, unrendered: list[Unrendered]) -> str:
    for pattern in (_COMMENT, _LEFT_OUT, _OTHERWISE, _OTHERWISE, _TAG):
        text = pattern.sub(_blank, text)

    def expression(match: re.Match[str]) -> str:
        inside = match.group(1)
        named = _REF.match(inside)
        if named is not None:
            first, second = named.group(3), named.group(5)
            is_source = named.group(1) == "source"
            name = f"{first}.{second}" if is_source and second else second or first
            return _padded(name, match.group())
        if _SILENT.match(inside):
            return _blank(match)
        unrendered.append(Unrendered(match.start(), " ".join(match.group().split())))
        if "\n" in match.group():
            return _padded(UNRENDERED * 3, match.group())
        return UNRENDERED * len(match.group())

    return _EXPRESSION.sub(expression, text)


def _without_quoted_bodies(text: str) -> str:
    """The bodies of routines stand in quotes; inside they are SQL like any other."""
    text = _UNLOAD.sub(_unloaded, text)
    if not _ROUTINE.search(text):
        return text
    pieces: list[str] = []
    at = 0
    for match in _DOLLARS.finditer(text):
        if match.start() < at:
            continue
        close = text.find(match.group(), match.end())
        if close < 0:
            break
        if _is_routine(text, at, match.start(), close + len(match.group())):
            pieces += [_DO.sub(_blank, text[at : match.start()]), " " * len(match.group())]
            pieces += [text[match.end() : close], ";".ljust(len(match.group()))]
        else:
            pieces.append(text[at : close + len(match.group())])
        at = close + len(match.group())
    pieces.append(text[at:])
    return _QUOTED_BODY.sub(_unquoted, "".join(pieces))


def _is_routine(text: str, before: int, start: int, end: int) -> bool:
    head = text[before:start]
    opened = [match.start() for match in _ROUTINE.finditer(head)]
    if not opened:
        return False
    tail = text[end : end + 200].partition(";")[0]
    told = _LANGUAGE.findall(head[opened[-1] :]) + _LANGUAGE.findall(tail)
    return all(language.lower() in _OF_SQL for language in told)


def _unquoted(match: re.Match[str]) -> str:
    head = match.group()[: match.start(1) - match.start()]
    return f"{head} {_single(match.group(2))};"


def _unloaded(match: re.Match[str]) -> str:
    return _padded(_single(match.group(1)), match.group())


def _single(text: str) -> str:
    return text.replace("''", " '")


def _with_semicolons(text: str) -> str:
    """The delimiters that MySQL's client was told to take for semicolons."""
    told = list(_DELIMITER.finditer(text))
    if not told:
        return text
    pieces = [text[: told[0].end()]]
    for number, match in enumerate(told):
        end = told[number + 1].start() if number + 1 < len(told) else len(text)
        part = text[match.end() : end]
        mark = match.group(1)
        if mark != ";":
            part = part.replace(mark, ";".ljust(len(mark)))
        pieces.append(part)
        if number + 1 < len(told):
            pieces.append(told[number + 1].group())
    return "".join(pieces)
