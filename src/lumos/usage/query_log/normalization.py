"""Normalised SQL: statements that differ only in literals, comments, case and white space match."""

import re
from collections.abc import Callable
from functools import cache
from typing import Final

# Dialects in which double quotes enclose strings, not names.
_TEXT_IN_DOUBLE_QUOTES: Final = frozenset({"bigquery", "databricks", "hive", "mysql", "spark"})
# Dialects in which a backslash escapes a quote in a string.
_BACKSLASH_ESCAPES: Final = frozenset(
    {"bigquery", "clickhouse", "databricks", "hive", "mysql", "snowflake", "spark"}
)
_HASH_COMMENTS: Final = frozenset({"bigquery", "mysql"})

# Every pattern begins after its first character and looks back at it. One character class matches
# the first characters of all patterns, which is much faster than trying each pattern everywhere.
_LINE_COMMENT: Final = r"(?<=-)-[^\n]*"
_HASH_COMMENT: Final = r"(?<=\#)[^\n]*"
_BLOCK_COMMENT: Final = r"(?<=/)\*(?:.*?\*/|.*)"
_TEXT: Final = r"(?<=')(?:[^']|'')*'?"
_ESCAPED_TEXT: Final = r"(?<=')(?:[^'\\]|''|\\.)*'?"
_DOUBLE_TEXT: Final = r'(?<=")(?:[^"\\]|""|\\.)*"?'
_DOUBLE_NAME: Final = r'(?<=")(?:[^"]|"")*"'
_BACKTICK_NAME: Final = r"(?<=`)[^`]*`"
_DOLLAR_TEXT: Final = r"(?<=\$)(?:\d+|(?P<mark>[A-Za-z_]*)\$.*?\$(?P=mark)\$)"
_NUMBER: Final = r"(?<=\d)(?<![\w$@.]\d)(?:[xX][\da-fA-F]+|[\d.]*(?:[eE][+-]?\d+)?)(?!\w)"

# Lists and rows of question marks, such as `?, ?` and `(?), (?)`.
_PLACEHOLDER_LIST: Final = re.compile(r"\?(?: ?, ?-?\?)+")
_PLACEHOLDER_ROWS: Final = re.compile(r"\( ?\? ?\)(?: ?, ?\( ?\? ?\))+")
_QUOTED_NAME: Final = re.compile(r'("(?:[^"]|"")*"|`[^`]*`)')


def normalize(statement: str, dialect: str | None = None) -> str:
    """The statement without literals and comments, in lower case except for quoted names.

    Statements with the same result read the same columns. It is a key, not valid SQL.
    """
    replaced = _literal_replacer(dialect)(statement)
    if '"' in replaced or "`" in replaced:
        # Every other part is a quoted name, whose case matters.
        parts = _QUOTED_NAME.split(replaced)
        parts[::2] = [part.lower() for part in parts[::2]]
        replaced = "".join(parts)
    else:
        replaced = replaced.lower()
    text = " ".join(replaced.split())
    if "?," in text or "? ," in text:
        text = _PLACEHOLDER_LIST.sub("?", text)
        if "(?)," in text or "(?) ," in text:
            text = _PLACEHOLDER_ROWS.sub("(?)", text)
    return text.rstrip("; ")


def without_literals(text: str, dialect: str | None = None) -> str:
    """The text with a question mark for each literal, and without comments."""
    return " ".join(_literal_replacer(dialect)(text).split())


@cache
def _literal_replacer(dialect: str | None) -> Callable[[str], str]:
    """A function that replaces literals by question marks and removes comments."""
    double_is_text = dialect in _TEXT_IN_DOUBLE_QUOTES
    literals = [_ESCAPED_TEXT if dialect in _BACKSLASH_ESCAPES else _TEXT, _NUMBER, _DOLLAR_TEXT]
    # Quoted names are matched so that nothing inside them is taken for a literal.
    names = [_BACKTICK_NAME]
    (literals if double_is_text else names).append(_DOUBLE_TEXT if double_is_text else _DOUBLE_NAME)
    comments = [_LINE_COMMENT, _BLOCK_COMMENT]
    marks = ["--", "/*", "`"]
    if dialect in _HASH_COMMENTS:
        comments.append(_HASH_COMMENT)
        marks.append("#")
    if not double_is_text:
        marks.append('"')
    simple = re.compile(f"""['"$\\d](?:{"|".join(literals)})""", re.DOTALL)
    pattern = re.compile(
        f"""['"$\\d/`\\#-](?:{"|".join(literals)}|(?P<comment>{"|".join(comments)})"""
        f"""|(?P<name>{"|".join(names)}))""",
        re.DOTALL,
    )

    def replacement(match: re.Match[str]) -> str:
        if match["comment"] is not None:
            return " "
        return "?" if match["name"] is None else match[0]

    def replace_literals(text: str) -> str:
        if any(mark in text for mark in marks):
            return pattern.sub(replacement, text)
        return simple.sub("?", text)

    return replace_literals
