"""Parses owner names as written in files."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from lumos.model.dataset import Owner

_GROUP_PREFIXES: Final = ("team", "group")
_USER_PREFIXES: Final = ("user", "person")
_SEPARATOR: Final = re.compile(r"\s*[,;]\s*")
_SURROUNDING_CHARACTERS: Final = " \t[]\"'"
# Texts that people enter if there is no owner.
_PLACEHOLDERS: Final = frozenset(
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


class OwnerOfUnknownKind(Owner, frozen=True, kw_only=True):
    """An owner whose text does not show whether it is a user or a group.

    The name is looked up among registered users and groups, then in the section `owners` of the
    configuration.
    """


def parse_owner(text: str, *, type: str = "TECHNICAL_OWNER") -> Owner:
    """Parse an owner such as `analytics-team`, `jane@example.com`, `team:data` or `@org/data`.

    A prefix or a slash marks a group; a prefix or an e-mail address marks a user.
    """
    name = text.strip()
    prefix, colon, rest = name.partition(":")
    if colon and rest.strip() and prefix.strip().lower() in (*_GROUP_PREFIXES, *_USER_PREFIXES):
        is_group = prefix.strip().lower() in _GROUP_PREFIXES
        return Owner(name=rest.strip(), kind="group" if is_group else "user", type=type)
    name = name.removeprefix("@")
    if "@" in name:
        return Owner(name=name, kind="user", type=type)
    if "/" in name:
        return Owner(name=name, kind="group", type=type)
    return OwnerOfUnknownKind(name=name, type=type)


def parse_owners(texts: Iterable[str], *, type: str = "TECHNICAL_OWNER") -> tuple[Owner, ...]:
    """Parse the distinct owners in texts; each text may contain several names."""
    return tuple(dict.fromkeys(parse_owner(name, type=type) for name in _names(texts)))


def owner_texts(value: Any) -> Iterator[str]:
    """Yield owner names from a text, a list, or a mapping with `name` or `email`."""
    match value:
        case str() if value.strip():
            yield value
        case list():
            for each in value:
                yield from owner_texts(each)
        case {"name": str(name)} if name.strip():
            yield name
        case {"email": str(email)} if email.strip():
            yield email


def is_filled_in(text: str) -> bool:
    """Whether a text is neither empty nor a placeholder such as `tbd`."""
    return text.strip(_SURROUNDING_CHARACTERS).rstrip(".!").lower() not in _PLACEHOLDERS


def _names(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for name in _SEPARATOR.split(text.strip(_SURROUNDING_CHARACTERS)):
            if is_filled_in(name):
                yield name.strip(_SURROUNDING_CHARACTERS)
