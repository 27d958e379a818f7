"""Prepares a script for the tokenizer.

Templates are rendered, routine bodies are unquoted, and commands of client programs are blanked
out. Every token stays on its line.
"""

import re
from typing import Final, NamedTuple

from lumos.lineage.sql.templates import TemplateGap, is_template, render_template

_DOLLAR_QUOTE: Final = re.compile(r"\$([A-Za-z_\u0080-\uffff]\w*)?\$")
_ROUTINE: Final = re.compile(
    r"\b(?:(?:create|alter|replace)\b[^;$']*?\b(?:procedure|function|trigger|package|task)\b|do\b"
    r"|execute\s+immediate\b)",
    re.IGNORECASE,
)
_DO_AT_END: Final = re.compile(
    r"\b(?:do|execute\s+immediate)(?:\s+language\s+\w+)?\s*\Z", re.IGNORECASE
)
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
_ROWS_AFTER_COPY: Final = re.compile(
    r"(?ims)^([ \t]*copy\b[^;]*?\bfrom\s+stdin\b[^;]*;[ \t]*\r?\n)(.*?^\\\.[ \t]*\r?$)"
)
_TERADATA_PHRASE: Final = re.compile(
    r"\(\s*(?:named\s+(\w+)|(?:title|format)\s+'[^']*')\s*\)", re.IGNORECASE
)
_DELIMITER: Final = re.compile(r"(?im)^[ \t]*delimiter[ \t]+(\S+)[ \t]*$")
_STATEMENT_END_LINE: Final = re.compile(
    r"(?im)^[ \t]*(/|go(?:[ \t]+\d+)?)[ \t]*;?[ \t]*(?=--|\r?$)"
)
_CLIENT_COMMAND: Final = re.compile(
    r"(?im)^[ \t]*(?:\\\w.*|prompt\b.*|spool\b.*|whenever\s+sqlerror\b.*"
    r"|set\s+(?:echo|feedback|define|serveroutput|verify|heading|pagesize|linesize|timing)\b.*|\.(?:logon|logoff|quit|exit|if|set"
    r"|run|goto|label|export|import|os)\b.*)$"
)


class PreparedText(NamedTuple):
    """The text for the tokenizer, and the template expressions whose values are unknown."""

    text: str
    gaps: tuple[TemplateGap, ...] = ()


def prepare_text(text: str, dialect: str) -> PreparedText:
    """Replace the parts of a script that are not SQL, or not SQL of the dialect."""
    gaps: tuple[TemplateGap, ...] = ()
    if is_template(text):
        text, gaps = render_template(text)
    if "${" in text:
        # Parts of names, as in ${database}.orders, are left out.
        gaps += tuple(
            TemplateGap(
                text.count("\n", 0, match.start()) + 1, match[0].rstrip("."), is_remark=True
            )
            for match in _PLACEHOLDER.finditer(text)
        )
        text = _PLACEHOLDER.sub(_blank_match, text)
    if dialect in ("postgres", "redshift", ""):
        text = _ROWS_AFTER_COPY.sub(lambda match: match[1] + _pad("", match[2]), text)
    if "$" in text or "'" in text:
        text = _unquote_bodies(text)
    text = _DELIMITER.sub(_blank_match, _replace_delimiters(text))
    if dialect in ("tsql", "fabric", "oracle", "teradata", "", "postgres", "redshift"):
        text = _STATEMENT_END_LINE.sub(lambda match: _end_statement(match, dialect), text)
        text = _CLIENT_COMMAND.sub(_blank_match, text)
    if dialect == "teradata":
        # `expression (NAMED name)` is an alias.
        text = _TERADATA_PHRASE.sub(
            lambda match: _pad(f"AS {match[1]}" if match[1] else "", match[0]), text
        )
    if dialect == "oracle":
        text = _TRIGGER_ROW.sub(r" \1.", text)
    if dialect in ("mysql", "sqlite", "", "singlestore", "starrocks", "doris"):
        text = _REPLACE_INTO.sub(r"\1\2INSERT \3", text)
    return PreparedText(text, gaps)


def _end_statement(match: re.Match[str], dialect: str) -> str:
    # A slash ends a statement in Oracle's client; in other dialects it may be a division.
    is_division = (
        match.group(1) == "/"
        and dialect != "oracle"
        and not match.string[: match.start()].rstrip().endswith(";")
    )
    return match.group() if is_division else _pad(";", match.group())


def _blank_match(match: re.Match[str]) -> str:
    return _pad("", match.group())


def _pad(new: str, old: str) -> str:
    """Pad a new text to the length of the old one, with its line breaks."""
    return new + re.sub(r"[^\n]", " ", old[len(new) :])


def _unquote_bodies(text: str) -> str:
    """Remove the quotes around the bodies of routines, which are SQL."""
    text = _UNLOAD.sub(lambda match: _pad(_undouble_quotes(match[1]), match[0]), text)
    if not _ROUTINE.search(text):
        return text
    pieces: list[str] = []
    offset = 0
    for match in _DOLLAR_QUOTE.finditer(text):
        if match.start() < offset:
            continue
        close = text.find(match.group(), match.end())
        if close < 0:
            break
        if _is_routine(text, offset, match.start(), close + len(match.group())):
            pieces += [
                _DO_AT_END.sub(_blank_match, text[offset : match.start()]),
                " " * len(match.group()),
            ]
            pieces += [text[match.end() : close], ";".ljust(len(match.group()))]
        else:
            pieces.append(text[offset : close + len(match.group())])
        offset = close + len(match.group())
    pieces.append(text[offset:])
    return _QUOTED_BODY.sub(
        lambda match: f"{match[0][: match.start(1) - match.start()]} {_undouble_quotes(match[2])};",
        "".join(pieces),
    )


def _is_routine(text: str, head_start: int, start: int, end: int) -> bool:
    """Whether a quoted text is the body of a routine in SQL, by the text before and after it."""
    head = text[head_start:start]
    routine_starts = [match.start() for match in _ROUTINE.finditer(head)]
    if not routine_starts:
        return False
    tail = text[end : end + 200].partition(";")[0]
    languages = _LANGUAGE.findall(head[routine_starts[-1] :]) + _LANGUAGE.findall(tail)
    return all(language.lower() in _SQL_LANGUAGES for language in languages)


def _undouble_quotes(text: str) -> str:
    return text.replace("''", " '")


def _replace_delimiters(text: str) -> str:
    """Replace the delimiters of MySQL's DELIMITER command by semicolons."""
    commands = list(_DELIMITER.finditer(text))
    if not commands:
        return text
    pieces = [text[: commands[0].end()]]
    for number, command in enumerate(commands):
        end = commands[number + 1].start() if number + 1 < len(commands) else len(text)
        part = text[command.end() : end]
        delimiter = command.group(1)
        if delimiter != ";":
            part = part.replace(delimiter, ";".ljust(len(delimiter)))
        pieces.append(part)
        if number + 1 < len(commands):
            pieces.append(commands[number + 1].group())
    return "".join(pieces)
