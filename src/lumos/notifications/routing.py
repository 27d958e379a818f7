"""Which channels a change is told over, and by which rule."""

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from lumos.config.notifications import ChangeRule
from lumos.model.change import EventType, Verdict
from lumos.model.urn import SCHEME, Urn


class RoutedChange(NamedTuple):
    """As much of a change as rules look at; `verdicts` are those of its schema changes."""

    urn: Urn
    name: str
    type: EventType
    verdicts: frozenset[Verdict]
    owners: tuple[str, ...] = ()


def routes(change: RoutedChange, rules: Sequence[ChangeRule]) -> dict[str, ChangeRule]:
    """The channels that are told of a change, each with the first rule that says so."""
    found: dict[str, ChangeRule] = {}
    for rule in rules:
        if _wants(rule, change):
            for channel in rule.channels:
                found.setdefault(channel, rule)
    return found


def _wants(rule: ChangeRule, change: RoutedChange) -> bool:
    if rule.events and change.type not in rule.events:
        return False
    if not rule.events and not change.verdicts:
        return False
    # Verdicts are of schema changes; an event that is asked for and has none is told anyway.
    if rule.verdicts and change.verdicts and change.verdicts.isdisjoint(rule.verdicts):
        return False
    if rule.owners and not any(
        _glob(pattern).fullmatch(owner) for pattern in rule.owners for owner in change.owners
    ):
        return False
    return not rule.datasets or any(
        _names(pattern, change.urn, change.name) for pattern in rule.datasets
    )


def _names(pattern: str, urn: Urn, name: str) -> bool:
    """Whether a pattern means a dataset: by URN, by the end of its path, or by its name."""
    if pattern.startswith(SCHEME):
        return _glob(pattern).fullmatch(str(urn)) is not None
    if "/" not in pattern:
        return any(_glob(pattern).fullmatch(each) for each in (name, urn.name))
    path = "/" + "/".join(urn.path).strip("/")
    return _glob(f"**/{pattern.lstrip('/')}").fullmatch(path) is not None


@cache
def _glob(pattern: str) -> re.Pattern[str]:
    """`*` stands for anything up to the next slash, `**` for anything at all."""
    signs = {"*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*{2,}|[*?])", pattern)
    return re.compile(
        "".join(".*" if part[:2] == "**" else signs.get(part, re.escape(part)) for part in parts),
        re.DOTALL,
    )
