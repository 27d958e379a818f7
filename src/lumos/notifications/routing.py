"""Which channels a change is told over, and by which rule."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import NamedTuple

from lumos.config.settings import ChangeRule
from lumos.model.change import EventType, Verdict
from lumos.model.dataset_pattern import DatasetPattern


class RoutedChange(NamedTuple):
    """As much of a change as rules look at; `verdicts` are those of its schema changes."""

    urn: str
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


def is_about(rule: ChangeRule, type: EventType, verdicts: frozenset[Verdict]) -> bool:
    """Whether a rule is about such changes, of whatever dataset."""
    if type is EventType.SPLIT:
        # One message replaces those about all parts, whichever of them a rule asks for.
        return True
    if rule.events and type not in rule.events:
        return False
    if not rule.events and not verdicts:
        return False
    # Verdicts are of schema changes; an event that is asked for and has none is told anyway.
    return not (rule.verdicts and verdicts and verdicts.isdisjoint(rule.verdicts))


def _wants(rule: ChangeRule, change: RoutedChange) -> bool:
    if not is_about(rule, change.type, change.verdicts):
        return False
    if rule.owners and not any(
        fnmatchcase(owner, pattern) for pattern in rule.owners for owner in change.owners
    ):
        return False
    return not rule.datasets or any(
        _pattern(text).matches(change.urn, change.name) for text in rule.datasets
    )


_pattern = cache(DatasetPattern)
