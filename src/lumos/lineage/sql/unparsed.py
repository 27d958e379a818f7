"""Names of tables in SQL that no parser understands, found by the keywords that stand before them.

Too many names are harmless: what is made by such a statement is undetermined anyway. A name that
is missed would make a change look safe.
"""

import re
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Final

from lumos.lineage.sql.names import Folding
from lumos.lineage.sql.script import Parts

# BigQuery's projects may have dashes without quotes.
_PART: Final = r'(?:"[^"\n]+"|`[^`\n]+`|\[[^\]\n]+\]|[^\W\d][\w$#]*+(?:(?:-\w++){1,9}+(?=\.))?)'
_COMMENT: Final = r"--[^\n]*|/\*.*?\*/"
# Atomic, since comments that look like several would take exponential time.
_GAP: Final = rf"(?>\s|{_COMMENT})*+"
_WORD: Final = re.compile(
    rf"(?P<space>\s+|{_COMMENT})|(?P<string>'(?:[^'\\]|''|\\.)*')"
    rf"|(?P<name>{_PART}(?:{_GAP}\.{_GAP}{_PART})*)|(?P<mark>.)",
    re.DOTALL,
)
_NAME_PART: Final = re.compile(rf"{_COMMENT}|(?P<part>{_PART})", re.DOTALL)
_READ: Final = frozenset(("from", "join", "using"))
_WRITTEN: Final = frozenset(("into", "overwrite", "update", "merge"))
_CREATED: Final = frozenset(("table", "view"))
# What may stand between a keyword and the name.
_BETWEEN: Final = frozenset(
    ("table", "if", "not", "exists", "only", "lateral", "into", "overwrite", "ignore")
)  # fmt: skip
_END_OF_FROM: Final = frozenset(
    ("where", "group", "order", "having", "select", "set", "values", "window", "qualify", "limit",
     "union", "except", "intersect", "minus", "returning", "when")
)  # fmt: skip
_MOST_NAMES: Final = 10_000


def tables_in(text: str, folding: Folding) -> tuple[tuple[Parts, ...], tuple[Parts, ...]]:
    """The tables that a statement seems to read, and those that it seems to write."""
    reads: dict[Parts, None] = {}
    writes: dict[Parts, None] = {}
    for name, is_written in _named(text):
        if len(reads) + len(writes) >= _MOST_NAMES:
            break
        for parts in _readings(name, folding):
            (writes if is_written else reads)[parts] = None
    return tuple(reads), tuple(writes)


def _named(text: str) -> Iterator[tuple[str, bool]]:
    """Names behind FROM, JOIN, INTO and the like, and whether each is written."""
    # For each open bracket, whether a comma in it separates tables.
    in_from = [False]
    awaited: bool | None = None
    is_creating = False
    words = (each for each in _WORD.finditer(text) if each.lastgroup != "space")
    for match, following in pairwise(chain(words, [None])):
        if match is None:
            return
        word = match.group().lower()
        if match.lastgroup == "mark":
            if word == "(":
                # FROM (a JOIN b), but not FROM f(a).
                in_from.append(awaited is False)
            elif word == ")" and len(in_from) > 1:
                in_from.pop()
            elif word == "," and in_from[-1]:
                awaited = False
            elif word == ";":
                in_from, awaited, is_creating = [False], None, False
        elif match.lastgroup == "string":
            # A path or a text stands where a table could.
            awaited = None
        elif word in _READ:
            in_from[-1], awaited = True, False
        elif word in _WRITTEN or (is_creating and word in _CREATED):
            in_from[-1], awaited, is_creating = False, True, False
        elif word == "create":
            is_creating = True
        elif word in _END_OF_FROM:
            in_from[-1], awaited, is_creating = False, None, False
        elif awaited is not None and word not in _BETWEEN:
            is_call = following is not None and following.group() == "("
            # INSERT INTO t (a, b) has a list of columns; FROM f(x) calls a function.
            if awaited or not is_call:
                yield match.group(), awaited
            awaited = None


def _readings(name: str, folding: Folding) -> Iterator[Parts]:
    """The parts of a name; once more with dots in quotes as separators, as in BigQuery."""
    whole: list[str] = []
    separated: list[str] = []
    for match in _NAME_PART.finditer(name):
        part = match["part"]
        if part is None:
            continue
        is_quoted = part[0] in '"`['
        text = part[1:-1] if is_quoted else part
        # The dots of a path separate no names.
        pieces = [text] if "/" in text else text.split(".")
        whole.append(str(folding.text(text, quoted=is_quoted)))
        separated += (str(folding.text(piece, quoted=is_quoted)) for piece in pieces)
    yield tuple(whole)
    if separated != whole and all(separated):
        yield tuple(separated)
