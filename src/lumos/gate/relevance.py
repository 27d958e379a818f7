"""Finds the SQL files that a change can affect, by the names in their texts.

Parsing takes most of the time of a first run, so only these files are parsed. SQL that a change can
affect mentions a changed dataset or a dataset derived from it. The SQL of all other tables that
such SQL reads is needed as well, to resolve columns. Names are compared as sets of words: that may
select too many files, but never too few.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from lumos.gate.migrations import migration_folder
from lumos.lineage.sql_files import model_name
from lumos.model.dataset_pattern import strip_extensions

_WORD: Final = re.compile(r"\w+")
# Strings and quoted names, which may contain the start of a comment, and comments.
_QUOTED_OR_COMMENT: Final = re.compile(
    r"""('(?:[^'\\]|''|\\.)*'|"[^"]*"|`[^`]*`)|--[^\n]*|/\*.*?\*/|\{#.*?#\}""", re.DOTALL
)
# Keywords that follow TABLE, INTO, UPDATE or VIEW in place of the name of a table.
_KEYWORDS: Final = frozenset(
    ("as", "by", "cascade", "exists", "for", "from", "if", "in", "inner", "is", "join", "not",
     "on", "restrict", "select", "set", "values", "where", "with")
)  # fmt: skip
_PART: Final = r"""(?:"[^"]*"|'[^']*'|`[^`]*`|\[[^\]]*\]|\{\{.*?\}\}|[\w$@#-]+)"""
_WRITTEN_TABLE: Final = re.compile(
    r"\b(?:table|view|into|overwrite|update)\s+(?:(?:table|into|only)\s+)?"
    rf"(?:if\s+not\s+exists\s+)?(?:{_PART}\s*\.\s*)*(?P<name>{_PART})",
    re.IGNORECASE | re.DOTALL,
)
_TEMPLATE: Final = "{{"
_SET_STATEMENT: Final = re.compile(r"\{%-?\s*set\b.*?%\}", re.DOTALL)
_QUOTED: Final = re.compile(r"""'([^']*)'|"([^"]*)\"""")

Name = frozenset[str]


class _SqlUnit:
    """A file, or all migrations of a folder, which must be read together."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.created: set[Name] = set()
        # The words in the files that occur in names; sets of all words would be large.
        self.names_words: frozenset[str] = frozenset()
        self._contents: list[bytes] = []

    @property
    def words(self) -> set[str]:
        """All words in the files."""
        return set().union(*(_words(_decode(data)) for data in self._contents))

    def add(self, path: str, data: bytes) -> None:
        self.files.add(path)
        self._contents.append(data)
        text = _decode(data)
        self.created.add(_name(model_name(path).name[-1]))
        # Sentences in comments would look like statements.
        without_comments = _QUOTED_OR_COMMENT.sub(lambda match: match[1] or " ", text)
        for match in _WRITTEN_TABLE.finditer(without_comments):
            if match["name"].startswith(_TEMPLATE):
                # As in {{ ref('orders') }}, or {{ target }} with {% set target = 'orders' %}.
                texts = [match["name"], *_SET_STATEMENT.findall(text)]
                self.created.update(_name(name) for each in texts for name in _quoted(each))
            elif match["name"].lower() not in _KEYWORDS:
                self.created.add(_name(match["name"].rpartition(".")[2]))


class SqlRelevance:
    """The SQL files that a change can affect."""

    def __init__(
        self,
        texts: Iterable[tuple[str, bytes]],
        changed_names: Iterable[str],
        *,
        changed_files: Collection[str],
    ) -> None:
        """`texts` are the paths and contents of all SQL files; changed files have both versions."""
        self._units: dict[str, _SqlUnit] = {}
        for path, data in texts:
            folder = migration_folder(path, _decode(data))
            key = path if folder is None else f"{folder}/"
            self._units.setdefault(key, _SqlUnit()).add(path, data)
        self._names = {*map(_name, changed_names)}
        self._units_by_created_name: dict[Name, set[str]] = {}
        for key, unit in self._units.items():
            for name in unit.created:
                self._units_by_created_name.setdefault(name, set()).add(key)
        words_of_names = {
            word for name in (*self._names, *self._units_by_created_name) for word in name
        }
        self._units_by_word: dict[str, set[str]] = {}
        for key, unit in self._units.items():
            unit.names_words = frozenset(words_of_names & unit.words)
            for word in unit.names_words:
                self._units_by_word.setdefault(word, set()).add(key)
        keys = self._with_upstream(self._downstream(self._names))
        # A changed file that mentions no changed dataset is added without the files upstream of
        # it: its own columns do not change, so they need not be resolved.
        keys |= {
            key for key, unit in self._units.items() if not unit.files.isdisjoint(changed_files)
        }
        relevant = [self._units[key] for key in keys]
        self.files = frozenset(path for unit in relevant for path in unit.files)
        self._names |= {name for unit in relevant for name in unit.created}
        self._words = {word for unit in relevant for word in unit.words}

    def includes(self, name: str) -> bool:
        """Whether relevant SQL or the change itself mentions a dataset."""
        words = _name(name)
        return words in self._names or words <= self._words

    def _downstream(self, names: Iterable[Name]) -> set[str]:
        """The units that mention or create one of the names, and all units downstream of these."""
        units: set[str] = set()
        pending = list(names)
        queued = set(pending)
        while pending:
            name = pending.pop()
            for key in {
                *self._units_mentioning(name),
                *self._units_by_created_name.get(name, ()),
            } - units:
                units.add(key)
                new = self._units[key].created - queued
                queued |= new
                pending += new
        return units

    def _units_mentioning(self, name: Name) -> set[str]:
        if not name:
            return set(self._units)
        units_by_word = [self._units_by_word.get(word, set()) for word in name]
        return set.intersection(*units_by_word)

    def _with_upstream(self, keys: Iterable[str]) -> set[str]:
        """The units, and all units that create names which these mention."""
        single_words = {
            next(iter(name)): name for name in self._units_by_created_name if len(name) == 1
        }
        others = [name for name in self._units_by_created_name if len(name) != 1]
        units = set(keys)
        pending = list(units)
        while pending:
            words = self._units[pending.pop()].names_words
            mentioned = [single_words[word] for word in words & single_words.keys()]
            mentioned += (name for name in others if name <= words)
            new = {key for name in mentioned for key in self._units_by_created_name[name]} - units
            units |= new
            pending += new
        return units


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _quoted(text: str) -> Iterator[str]:
    return (single or double for single, double in _QUOTED.findall(text))


def _name(text: str) -> Name:
    return frozenset(_words(strip_extensions(text)))
