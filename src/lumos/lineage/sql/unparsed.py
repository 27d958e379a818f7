"""Table names in SQL that could not be parsed.

The keyword before a name shows whether it is read or written. Every other name may be a table too:
no list of keywords is complete for all dialects. Extra names are harmless, since the impact on such
a statement is undetermined anyway; a missed name would make a change look safe.
"""

import re
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Final, NamedTuple

from sqlglot import Tokenizer

from lumos.lineage.sql.dialects import NameFolding
from lumos.lineage.sql.script import Parts

# BigQuery's projects may have dashes without quotes.
_PART: Final = r'(?:"[^"\n]+"|`[^`\n]+`|\[[^\]\n]+\]|[^\W\d][\w$#]*+(?:(?:-\w++){1,9}+(?=\.))?)'
_COMMENT: Final = r"--[^\n]*|/\*.*?\*/"
# Atomic, to avoid exponential backtracking in comments.
_GAP: Final = rf"(?>\s|{_COMMENT})*+"
_LEXEME: Final = re.compile(
    rf"(?P<space>\s+|{_COMMENT})|(?P<string>'(?:[^'\\]|''|\\.)*')"
    rf"|(?P<name>{_PART}(?:{_GAP}\.{_GAP}{_PART})*)|(?P<mark>.)",
    re.DOTALL,
)
_NAME_PART: Final = re.compile(rf"{_COMMENT}|(?P<part>{_PART})", re.DOTALL)
_READ_KEYWORDS: Final = frozenset(("from", "join", "using"))
_WRITE_KEYWORDS: Final = frozenset(("into", "overwrite", "update", "merge"))
_PIVOT_KEYWORDS: Final = frozenset(("pivot", "unpivot"))
_CREATE_KEYWORDS: Final = frozenset(("table", "view"))
# Functions whose string argument is a table name.
_NAMING_FUNCTIONS: Final = frozenset(("identifier", "table"))
_KEYWORDS: Final = frozenset(each.lower() for each in Tokenizer.KEYWORDS)
# Keywords between a clause keyword and the name.
_SKIPPED_KEYWORDS: Final = frozenset(
    ("table", "if", "not", "exists", "only", "lateral", "into", "overwrite", "ignore")
)  # fmt: skip
_END_OF_FROM: Final = frozenset(
    ("where", "group", "order", "having", "select", "set", "values", "window", "qualify", "limit",
     "union", "except", "intersect", "minus", "returning", "when")
)  # fmt: skip
_MAX_NAMES: Final = 10_000


class TablesInText(NamedTuple):
    """The tables that a statement probably reads and writes, and other names."""

    reads: tuple[Parts, ...]
    writes: tuple[Parts, ...]
    others: tuple[Parts, ...]


def tables_in(text: str, folding: NameFolding) -> TablesInText:
    """The names in a statement that could not be parsed."""
    reads: dict[Parts, None] = {}
    writes: dict[Parts, None] = {}
    others: dict[Parts, None] = {}
    by_use = {False: reads, True: writes, None: others}
    for name, is_written in _find_names(text):
        if len(reads) + len(writes) + len(others) >= _MAX_NAMES:
            break
        by_use[is_written].update(dict.fromkeys(_split_name(name, folding)))
    tables = {*reads, *writes}
    return TablesInText(
        tuple(reads), tuple(writes), tuple(each for each in others if each not in tables)
    )


def _find_names(text: str) -> Iterator[tuple[str, bool | None]]:
    """Yield each name, and whether it is written; None if it may be something else than a table."""
    # For each open bracket, whether a comma inside of it separates tables.
    in_from = [False]
    # Whether the next name is a table that is written (True) or read (False).
    is_write_expected: bool | None = None
    is_creating = False
    previous_word = ""
    # After IDENTIFIER( or TABLE(, whether the table that is named by a string is written.
    is_named_table_written: bool | None = None
    matches = (each for each in _LEXEME.finditer(text) if each.lastgroup != "space")
    for match, following in pairwise(chain(matches, [None])):
        if match is None:
            return
        word = match.group().lower()
        is_call = following is not None and following.group() == "("
        if match.lastgroup == "mark":
            if word == "(":
                # FROM (a JOIN b), but not FROM f(a).
                in_from.append(is_write_expected is False)
            elif word == ")" and len(in_from) > 1:
                in_from.pop()
            elif word == "," and in_from[-1]:
                is_write_expected = False
            elif word == ";":
                in_from, is_write_expected, is_creating = [False], None, False
        elif match.lastgroup == "string":
            # A string in place of a table is a path.
            is_write_expected = None
            if is_named_table_written is not None and previous_word == "(":
                yield match.group()[1:-1], is_named_table_written
        elif word in _NAMING_FUNCTIONS and is_call and not is_creating:
            is_named_table_written, previous_word = bool(is_write_expected), word
            continue
        elif word in _READ_KEYWORDS:
            in_from[-1], is_write_expected = True, False
        elif word in _WRITE_KEYWORDS or (is_creating and word in _CREATE_KEYWORDS):
            in_from[-1], is_write_expected, is_creating = False, True, False
        elif (word == "table" and is_write_expected is None) or (
            word in _PIVOT_KEYWORDS and not is_call
        ):
            # A query without SELECT: IN (TABLE sales), UNION TABLE sales, PIVOT sales ON day.
            is_write_expected = False
        elif word == "create":
            is_creating = True
        elif word in _END_OF_FROM:
            in_from[-1], is_write_expected, is_creating = False, None, False
        elif is_write_expected is not None and word not in _SKIPPED_KEYWORDS:
            # INSERT INTO t (a, b) has a list of columns; FROM f(x) calls a function.
            if is_write_expected or not is_call:
                yield match.group(), is_write_expected
            is_write_expected = None
        elif not (is_call or previous_word == "as" or word in _KEYWORDS):
            yield match.group(), None
        if word != "(":
            is_named_table_written = None
        previous_word = word


def _split_name(name: str, folding: NameFolding) -> Iterator[Parts]:
    """Yield the parts of a name, and again with quoted dots as separators, as in BigQuery."""
    parts: list[str] = []
    separated: list[str] = []
    for match in _NAME_PART.finditer(name):
        part = match["part"]
        if part is None:
            continue
        is_quoted = part[0] in '"`['
        text = part[1:-1] if is_quoted else part
        # The dots of a path do not separate names.
        names = [text] if "/" in text else text.split(".")
        parts.append(str(folding.text(text, quoted=is_quoted)))
        separated += (str(folding.text(piece, quoted=is_quoted)) for piece in names)
    yield tuple(parts)
    if separated != parts and all(separated):
        yield tuple(separated)
