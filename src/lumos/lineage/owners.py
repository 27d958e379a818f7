"""Who is meant where a file names an owner."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from lumos.model.dataset import Owner

_GROUP_MARKS: Final = ("team", "group")
_PERSON_MARKS: Final = ("user", "person")
_TEAM: Final = re.compile(r"(?:^|[-_ .])(?:team|group|squad|guild|chapter)s?$", re.IGNORECASE)
_BETWEEN: Final = re.compile(r"\s*[,;]\s*")


def owner_of(text: str, *, type: str = "TECHNICAL_OWNER") -> Owner:
    """The owner of a text such as `analytics-team`, `jane@example.com`, `team:data` or `@org/data`.

    A name says whether it is a group by its mark, its slash or its last word.
    """
    name = text.strip()
    mark, colon, rest = name.partition(":")
    if colon and rest.strip() and mark.strip().lower() in (*_GROUP_MARKS, *_PERSON_MARKS):
        is_group = mark.strip().lower() in _GROUP_MARKS
        return Owner(name=rest.strip(), kind="group" if is_group else "user", type=type)
    name = name.removeprefix("@")
    is_group = "@" not in name and ("/" in name or _TEAM.search(name) is not None)
    return Owner(name=name, kind="group" if is_group else "user", type=type)


def owners_of(texts: Iterable[str]) -> tuple[Owner, ...]:
    """The owners of texts of which each may name several, each owner once."""
    return tuple(dict.fromkeys(map(owner_of, _names(texts))))


def _names(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from (name for name in _BETWEEN.split(text.strip()) if name)
