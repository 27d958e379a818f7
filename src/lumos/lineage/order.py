"""An order of SQL texts in which tables are made before they are read, as far as there is one."""

import re
from collections.abc import Mapping
from typing import Final

_WORD: Final = re.compile(r"\w+")
_MADE: Final = re.compile(
    r"\b(?:table|view|into|overwrite|merge)\s+(?:if\s+not\s+exists\s+)?([\w.\"`\[\]$-]+)",
    re.IGNORECASE,
)


def in_order(texts: Mapping[str, str]) -> list[str]:
    """The keys of the texts; a rough look is enough, since what it misses is read again."""
    words = {key: frozenset(_WORD.findall(text.lower())) for key, text in texts.items()}
    makers: dict[str, str] = {}
    for key, text in texts.items():
        for name in _MADE.findall(text):
            last = _WORD.findall(name.lower().rpartition(".")[2])
            if last:
                makers.setdefault(last[0], key)
    needed: dict[str, set[str]] = {}
    for key, found in words.items():
        # Either side may be the larger one by far.
        named = found & makers.keys()
        needed[key] = {makers[name] for name in named} - {key}
    # Depth first, so that a cycle costs the order of its own texts only.
    ordered: list[str] = []
    begun: set[str] = set()
    for start in texts:
        path = [] if start in begun else [(start, iter(sorted(needed[start])))]
        begun.add(start)
        while path:
            key, rest = path[-1]
            following = next((each for each in rest if each not in begun), None)
            if following is None:
                ordered.append(key)
                path.pop()
            else:
                begun.add(following)
                path.append((following, iter(sorted(needed[following]))))
    return ordered
