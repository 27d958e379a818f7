"""Prepares a text for the tokenizer; every token stays on its line.

Quoted bodies of routines and commands of client programs are replaced by text of the same length,
so that offsets stay the same.
"""

import re
from typing import Final, NamedTuple

from lumos.lineage.sql.templates import TemplateGap, is_template, render_template

_DOLLARS: Final = re.compile(r"\$([A-Za-z_\u0080-\uffff]\w*)?\$")
_ROUTINE: Final = re.compile(
    r"\b(?:(?:create|alter|replace)\b[^;$']*?\b(?:procedure|function|trigger|package|task)\b|do\b"
    r"|execute\s+immediate\b)",
    re.IGNORECASE,
)
_DO: Final = re.compile(r"\b(?:do|execute\s+immediate)(?:\s+language\s+\w+)?\s*\Z", re.IGNORECASE)
_LANGUAGE: Final = re.compile(r"\blanguage\s+'?(\w+)", re.IGNORECASE)
_SQL_LANGUAGES: Final = frozenset({"sql", "plpgsql", "plsql"})
_QUOTED_BODY: Final = re.compile(
    r"\bas\s+(')((?:[^']|'')*?\b(?:begin|insert|select|update|merge|delete)\b(?:[^']|'')*)(')",
    re.IGNORECASE,
)
_UNLOAD: Final = re.compile(r"\bunload\s*\(\s*'((?:[^']|'')*)'\s*\)[^;]*", re.IGNORECASE)
_REPLACE_INTO: Final = re.compile(r"(?im)(^|;|\bbegin\b)(\s*)replace(\s+into\b)")
_TRIGGER_ROW: Final = re.compile(r":(new|old)\.", re.IGNORECASE)
_PLACEHOLDER: Final = re.compile(r"(?<![\w.'}])\$\{[\w:.-]+\}\.(?=[\w`\"])")
_COPIED_ROWS: Final = re.compile(
    r"(?ims)^([ \t]*copy\b[^;]*?\bfrom\s+stdin\b[^;]*;[ \t]*\r?\n)(.*?^\\\.[ \t]*\r?$)"
)
_TERADATA_PHRASE: Final = re.compile(
    r"\(\s*(?:named\s+(\w+)|(?:title|format)\s+'[^']*')\s*\)", re.IGNORECASE
)
_DELIMITER: Final = re.compile(r"(?im)^[ \t]*delimiter[ \t]+(\S+)[ \t]*$")
_STATEMENT_END_LINE: Final = re.compile(
    r"(?im)^[ \t]*(/|go(?:[ \t]+\d+)?)[ \t]*;?[ \t]*(?=--|\r?$)"
)
_CLIENT: Final = re.compile(
    r"(?im)^[ \t]*(?:\\\w.*|prompt\b.*|spool\b.*|whenever\s+sqlerror\b.*"
    r"|set\s+(?:echo|feedback|define|serveroutput|verify|heading|pagesize|linesize|timing)\b.*|\.(?:logon|logoff|quit|exit|if|set"
    r"|run|goto|label|export|import|os)\b.*)$"
)


class PreparedText(NamedTuple):
    """The text for the tokenizer, and the unknown expressions of its template."""

    text: str
    gaps: tuple[TemplateGap, ...] = ()


def prepare_text(text: str, dialect: str) -> PreparedText:
    """Replace everything that is not SQL."""
    gaps: tuple[TemplateGap, ...] = ()
    if is_template(text):
        text, gaps = render_template(text)
    if "${" in text:
        text, placeholders = _without_placeholders(text)
        gaps = (*gaps, *placeholders)
    if dialect in ("postgres", "redshift", ""):
        text = _COPIED_ROWS.sub(lambda match: match.group(1) + _pad("", match.group(2)), text)
    if "$" in text or "'" in text:
        text = _without_quoted_bodies(text)
    text = _DELIMITER.sub(_blank_match, _with_semicolons(text))
    if dialect in ("tsql", "fabric", "oracle", "teradata", "", "postgres", "redshift"):
        text = _STATEMENT_END_LINE.sub(lambda match: _end_statement(match, dialect), text)
        text = _CLIENT.sub(_blank_match, text)
    if dialect == "teradata":
        text = _TERADATA_PHRASE.sub(_convert_named_phrase, text)
    if dialect == "oracle":
        text = _TRIGGER_ROW.sub(r" \1.", text)
    if dialect in ("mysql", "sqlite", "", "singlestore", "starrocks", "doris"):
        text = _REPLACE_INTO.sub(r"\1\2INSERT \3", text)
    return PreparedText(text, gaps)


def _without_placeholders(text: str) -> tuple[str, tuple[TemplateGap, ...]]:
    """Remove name parts that are ${...} placeholders."""
    found = tuple(
        TemplateGap(
            text.count("\n", 0, match.start()) + 1, match.group().rstrip("."), is_remark=True
        )
        for match in _PLACEHOLDER.finditer(text)
    )
    return _PLACEHOLDER.sub(_blank_match, text), found


def _convert_named_phrase(match: re.Match[str]) -> str:
    """Convert Teradata's `expression (NAMED name)` to an alias."""
    name = match.group(1)
    return _pad(f"AS {name}" if name else "", match.group())


def _end_statement(match: re.Match[str], dialect: str) -> str:
    # Only Oracle's client ends a statement there; in other dialects it may be a division.
    is_quotient = (
        match.group(1) == "/"
        and dialect != "oracle"
        and not match.string[: match.start()].rstrip().endswith(";")
    )
    return match.group() if is_quotient else _pad(";", match.group())


def _blank_match(match: re.Match[str]) -> str:
    return _pad("", match.group())


def _pad(new: str, old: str) -> str:
    """Pad new text to the length of the old, keeping its line breaks."""
    return new + re.sub(r"[^\n]", " ", old[len(new) :])


def _without_quoted_bodies(text: str) -> str:
    """Unquote the bodies of routines, which are SQL."""
    text = _UNLOAD.sub(_unquote_unload, text)
    if not _ROUTINE.search(text):
        return text
    pieces: list[str] = []
    offset = 0
    for match in _DOLLARS.finditer(text):
        if match.start() < offset:
            continue
        close = text.find(match.group(), match.end())
        if close < 0:
            break
        if _is_routine(text, offset, match.start(), close + len(match.group())):
            pieces += [
                _DO.sub(_blank_match, text[offset : match.start()]),
                " " * len(match.group()),
            ]
            pieces += [text[match.end() : close], ";".ljust(len(match.group()))]
        else:
            pieces.append(text[offset : close + len(match.group())])
        offset = close + len(match.group())
    pieces.append(text[offset:])
    return _QUOTED_BODY.sub(_unquote_body, "".join(pieces))


def _is_routine(text: str, before: int, start: int, end: int) -> bool:
    head = text[before:start]
    opened = [match.start() for match in _ROUTINE.finditer(head)]
    if not opened:
        return False
    tail = text[end : end + 200].partition(";")[0]
    languages = _LANGUAGE.findall(head[opened[-1] :]) + _LANGUAGE.findall(tail)
    return all(language.lower() in _SQL_LANGUAGES for language in languages)


def _unquote_body(match: re.Match[str]) -> str:
    head = match.group()[: match.start(1) - match.start()]
    return f"{head} {_undouble_quotes(match.group(2))};"


def _unquote_unload(match: re.Match[str]) -> str:
    return _pad(_undouble_quotes(match.group(1)), match.group())


def _undouble_quotes(text: str) -> str:
    return text.replace("''", " '")


def _with_semicolons(text: str) -> str:
    """Replace the delimiters of MySQL's DELIMITER command by semicolons."""
    languages = list(_DELIMITER.finditer(text))
    if not languages:
        return text
    pieces = [text[: languages[0].end()]]
    for number, match in enumerate(languages):
        end = languages[number + 1].start() if number + 1 < len(languages) else len(text)
        part = text[match.end() : end]
        mark = match.group(1)
        if mark != ";":
            part = part.replace(mark, ";".ljust(len(mark)))
        pieces.append(part)
        if number + 1 < len(languages):
            pieces.append(languages[number + 1].group())
    return "".join(pieces)
