"""Which SQL a change can concern, by the names in its text.

Parsing takes most of the time of a first run. SQL that a change can affect names a changed dataset
or one that is derived from it; what it reads otherwise is needed to resolve its columns. All other
SQL is not parsed. Names are compared as sets of words, so that too much is parsed, never too
little.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from lumos.gate.migrations import group_of
from lumos.lineage.sql_files import model_name
from lumos.model.dataset_pattern import strip_extensions

_WORD: Final = re.compile(r"\w+")
_COMMENT: Final = re.compile(r"--[^\n]*|/\*.*?\*/|\{#.*?#\}", re.DOTALL)
_PART: Final = r"""(?:"[^"]*"|'[^']*'|`[^`]*`|\[[^\]]*\]|\{\{.*?\}\}|[\w$@#-]+)"""
_WRITTEN: Final = re.compile(
    r"\b(?:table|view|into|overwrite|update)\s+(?:(?:table|into|only)\s+)?"
    rf"(?:if\s+not\s+exists\s+)?(?:{_PART}\s*\.\s*)*(?P<name>{_PART})",
    re.IGNORECASE | re.DOTALL,
)
_TEMPLATE: Final = "{{"
_SET: Final = re.compile(r"\{%-?\s*set\b.*?%\}", re.DOTALL)
_QUOTED: Final = re.compile(r"""'([^']*)'|"([^"]*)\"""")

Name = frozenset[str]


class _SqlUnit:
    """A file, or all migrations of a folder, which only have a meaning together."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.words: set[str] = set()
        self.created: set[Name] = set()

    def add(self, path: str, text: str) -> None:
        self.files.add(path)
        self.words.update(_words(text))
        self.created.add(_name(model_name(path).name[-1]))
        for version in {text, _COMMENT.sub(" ", text)}:
            for match in _WRITTEN.finditer(version):
                if match["name"].startswith(_TEMPLATE):
                    # As in {{ ref('orders') }}, or {{ target }} with {% set target = 'orders' %}.
                    texts = [match["name"], *_SET.findall(text)]
                    self.created.update(_name(name) for each in texts for name in _quoted(each))
                else:
                    self.created.add(_name(match["name"].rpartition(".")[2]))


class SqlRelevance:
    """The SQL files that a change can concern."""

    def __init__(
        self,
        texts: Iterable[tuple[str, bytes]],
        changed_names: Iterable[str],
        *,
        changed_files: Collection[str],
    ) -> None:
        """`texts` are all SQL files, changed ones in both versions."""
        self._units: dict[str, _SqlUnit] = {}
        for path, data in texts:
            text = data.decode("utf-8", "replace")
            group = group_of(path, text)
            key = path if group is None else f"{group}/"
            self._units.setdefault(key, _SqlUnit()).add(path, text)
        self._mentioning: dict[str, set[str]] = {}
        self._creating: dict[Name, set[str]] = {}
        for key, unit in self._units.items():
            for word in unit.words:
                self._mentioning.setdefault(word, set()).add(key)
            for name in unit.created:
                self._creating.setdefault(name, set()).add(key)
        self._names = {*map(_name, changed_names)}
        readers = self._downstream(self._names)
        readers |= {
            key for key, unit in self._units.items() if not unit.files.isdisjoint(changed_files)
        }
        concerned = [self._units[key] for key in self._with_upstream(readers)]
        self.files = frozenset(path for unit in concerned for path in unit.files)
        self._names |= {name for unit in concerned for name in unit.created}
        self._words = {word for unit in concerned for word in unit.words}

    def includes(self, name: str) -> bool:
        """Whether the relevant SQL or the change itself names a dataset."""
        wanted = _name(name)
        return wanted in self._names or wanted <= self._words

    def _downstream(self, names: Iterable[Name]) -> set[str]:
        """The units that mention or create one of the names, or what such a unit creates."""
        found: set[str] = set()
        waiting = list(names)
        seen = set(waiting)
        while waiting:
            name = waiting.pop()
            for key in {*self._mentions(name), *self._creating.get(name, ())} - found:
                found.add(key)
                new = self._units[key].created - seen
                seen |= new
                waiting += new
        return found

    def _mentions(self, name: Name) -> set[str]:
        if not name:
            return set(self._units)
        sets = [self._mentioning.get(word, set()) for word in name]
        return set.intersection(*sets)

    def _with_upstream(self, readers: Iterable[str]) -> set[str]:
        """The units, and everything that creates what they mention."""
        single = {next(iter(name)): name for name in self._creating if len(name) == 1}
        others = [name for name in self._creating if len(name) != 1]
        found = set(readers)
        waiting = list(found)
        while waiting:
            words = self._units[waiting.pop()].words
            named = [single[word] for word in words & single.keys()]
            named += (name for name in others if name <= words)
            new = {key for name in named for key in self._creating[name]} - found
            found |= new
            waiting += new
        return found


def _words(text: str) -> Iterator[str]:
    return (match.group() for match in _WORD.finditer(text.casefold()))


def _quoted(text: str) -> Iterator[str]:
    return (one or other for one, other in _QUOTED.findall(text))


def _name(text: str) -> Name:
    return frozenset(_words(strip_extensions(text)))
