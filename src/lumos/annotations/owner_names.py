"""Who is named where a file names an owner."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from lumos.model.dataset import Owner

_GROUP_MARKS: Final = ("team", "group")
_PERSON_MARKS: Final = ("user", "person")
_BETWEEN: Final = re.compile(r"\s*[,;]\s*")
_AROUND: Final = " \t[]\"'"
# What people write where they do not know yet.
_NOBODY: Final = frozenset(
    (
        "",
        "-",
        "?",
        "n/a",
        "na",
        "nobody",
        "none",
        "null",
        "tba",
        "tbc",
        "tbd",
        "todo",
        "unassigned",
        "unknown",
    )
)


class UnmarkedOwner(Owner, frozen=True, kw_only=True):
    """An owner of whom the text does not say whether it is a user or a group.

    The users and groups that are known decide, and then the section `owners` of the configuration.
    """


def owner_of(text: str, *, type: str = "TECHNICAL_OWNER") -> Owner:
    """The owner of a text such as `analytics-team`, `jane@example.com`, `team:data` or `@org/data`.

    A mark or a slash says that it is a group, a mark or an e-mail address that it is a user.
    """
    name = text.strip()
    mark, colon, rest = name.partition(":")
    if colon and rest.strip() and mark.strip().lower() in (*_GROUP_MARKS, *_PERSON_MARKS):
        is_group = mark.strip().lower() in _GROUP_MARKS
        return Owner(name=rest.strip(), kind="group" if is_group else "user", type=type)
    name = name.removeprefix("@")
    if "@" in name:
        return Owner(name=name, kind="user", type=type)
    if "/" in name:
        return Owner(name=name, kind="group", type=type)
    return UnmarkedOwner(name=name, type=type)


def owners_of(texts: Iterable[str], *, type: str = "TECHNICAL_OWNER") -> tuple[Owner, ...]:
    """The owners of texts of which each may name several, each owner once."""
    return tuple(dict.fromkeys(owner_of(name, type=type) for name in _names(texts)))


def people_in(value: Any) -> Iterator[str]:
    """The names in a text, a list of them, or a mapping with `name` or `email`."""
    match value:
        case str() if value.strip():
            yield value
        case list():
            for each in value:
                yield from people_in(each)
        case {"name": str(name)} if name.strip():
            yield name
        case {"email": str(email)} if email.strip():
            yield email


def is_said(text: str) -> bool:
    """Whether a text says anything, other than that it is still to be said."""
    return text.strip(_AROUND).rstrip(".!").lower() not in _NOBODY


def _names(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for name in _BETWEEN.split(text.strip(_AROUND)):
            if is_said(name):
                yield name.strip(_AROUND)
