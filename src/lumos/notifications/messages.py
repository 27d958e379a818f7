"""Selects the channels and subscribers to notify of a change, and writes the messages."""

import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from types import MappingProxyType
from typing import Final, NamedTuple

from lumos.config.settings import PLACEHOLDER, ChangeRule
from lumos.config.subscribers import ChangeFilter, Subscriber
from lumos.model.change import BlastRadius, ChangeEvent, EventType, Verdict
from lumos.model.dataset import Ownership
from lumos.model.dataset_pattern import DatasetPattern
from lumos.model.notification import Notification
from lumos.model.urn import Urn
from lumos.schemas.wording import affected_sentence_of, blast_radius_of, sentence_of
from lumos.store import Transaction

_MAX_LINES: Final = 20
_pattern = cache(DatasetPattern)


class RoutedChange(NamedTuple):
    """The attributes of a change that rules check; `verdicts` are those of its schema changes."""

    urn: str
    name: str
    type: EventType
    verdicts: frozenset[Verdict]
    owners: tuple[str, ...] = ()


def route_change(change: RoutedChange, rules: Sequence[ChangeRule]) -> dict[str, ChangeRule]:
    """The channels to notify of a change, each with the first matching rule that names it."""
    rules_by_channel: dict[str, ChangeRule] = {}
    for rule in rules:
        if _matches(rule, change):
            for channel in rule.channels:
                rules_by_channel.setdefault(channel, rule)
    return rules_by_channel


def covers_event(rule: ChangeRule, type: EventType, verdicts: frozenset[Verdict]) -> bool:
    """Whether a rule covers events of this type with these verdicts, for any dataset."""
    if type is EventType.SPLIT:
        # One message about the split replaces messages about its parts, so every rule covers it.
        return True
    if rule.events and type not in rule.events:
        return False
    if not rule.events and not verdicts:
        return False
    # Only schema changes have verdicts, so the verdicts of a rule do not apply to other events.
    return not (rule.verdicts and verdicts and verdicts.isdisjoint(rule.verdicts))


def _matches(rule: ChangeRule, change: RoutedChange) -> bool:
    return covers_event(rule, change.type, change.verdicts) and _concerns(rule, change)


def _concerns(filter: ChangeFilter, change: RoutedChange) -> bool:
    """Whether the filters of datasets and owners match a change."""
    if filter.owners and not any(
        fnmatchcase(owner, pattern) for pattern in filter.owners for owner in change.owners
    ):
        return False
    return not filter.datasets or any(
        _pattern(text).matches(change.urn, change.name) for text in filter.datasets
    )


def subscribes_to(subscriber: Subscriber, type: EventType, verdicts: frozenset[Verdict]) -> bool:
    """Whether a subscriber selects events of this type with these verdicts, for any dataset."""
    if subscriber.events and type not in subscriber.events:
        return False
    if subscriber.verdicts and not verdicts:
        # Only schema changes have verdicts; others are sent if their type is selected.
        return bool(subscriber.events)
    return not subscriber.verdicts or not verdicts.isdisjoint(subscriber.verdicts)


def fill_template(template: str, values: Mapping[str, str]) -> str:
    """Fill placeholders such as `{name}`; a line whose placeholders are all empty is dropped."""
    lines = (_fill_line(line, values) for line in template.splitlines())
    return "\n".join(line for line in lines if line is not None).strip()


def _fill_line(line: str, values: Mapping[str, str]) -> str | None:
    names = [match.group(2) for match in PLACEHOLDER.finditer(line) if match.group(2)]
    if names and not any(values[name] for name in names):
        return None

    def replacement(match: re.Match[str]) -> str:
        escaped, name = match.groups()
        return f"{{{escaped}}}" if escaped else values[name]

    return PLACEHOLDER.sub(replacement, line)


def printable_text(value: str) -> str:
    """A value as one line of printable text.

    Names in a lake may contain line breaks, or bytes that are not text.
    """
    text = value.encode("utf-8", "replace").decode()
    return "".join(character if character.isprintable() else "?" for character in text)


class Notifier:
    """Listens to events and writes messages about them into the outbox, in the same transaction."""

    def __init__(
        self,
        rules: tuple[ChangeRule, ...],
        wake_sender: Callable[[], None],
        subscribers: Mapping[str, Subscriber] = MappingProxyType({}),
    ) -> None:
        self._rules = rules
        self._wake_sender = wake_sender
        self._subscribers = subscribers
        self._has_posted = False

    def before_commit(self, transaction: Transaction, event: ChangeEvent) -> None:
        self._post_to_subscribers(transaction, event)
        if event.type is EventType.SPLIT:
            self._post_splits(transaction, event)
            return
        verdicts = _verdicts(event)
        # Checked before loading the dataset, because most events of a first scan match no rule. The
        # message about a split replaces messages about its parts.
        if "split_from" in event.metadata or not any(
            covers_event(rule, event.type, verdicts) for rule in self._rules
        ):
            return
        change = _routed_change(transaction, event)
        values = _template_values(event, change)
        for channel, rule in route_change(change, self._rules).items():
            message = Notification(
                event_id=event.event_id,
                channel=channel,
                urn=event.urn,
                title=fill_template(rule.title, values),
                body=fill_template(rule.template, values),
                urgent=event.breaking,
            )
            transaction.post(message, at=event.at)
            self._has_posted = True

    def _post_to_subscribers(self, transaction: Transaction, event: ChangeEvent) -> None:
        """Post the event to each subscriber that selects it; the sender reads it from the log."""
        change: RoutedChange | None = None
        for channel, subscriber in self._subscribers.items():
            if not subscribes_to(subscriber, event.type, _verdicts(event)):
                continue
            if subscriber.datasets or subscriber.owners:
                change = change or _routed_change(transaction, event)
                if not _concerns(subscriber, change):
                    continue
            message = Notification(
                event_id=event.event_id,
                channel=channel,
                urn=event.urn,
                title=printable_text(f"{event.type.value}: {event.summary}"),
                body="",
                urgent=event.breaking,
            )
            transaction.post(message, at=event.at)
            self._has_posted = True

    def _post_splits(self, transaction: Transaction, event: ChangeEvent) -> None:
        """Post one message per channel about all datasets that a scan split."""
        splits = [each for each in transaction.new_events if each.type is EventType.SPLIT]
        if event is not splits[0]:
            return
        by_channel: dict[str, list[ChangeEvent]] = {}
        for each in splits:
            for channel in route_change(_routed_change(transaction, each), self._rules):
                by_channel.setdefault(channel, []).append(each)
        for channel, events in by_channel.items():
            datasets = "1 dataset was" if len(events) == 1 else f"{len(events):,} datasets were"
            parts = sum(int(each.metadata["part_count"]) for each in events)
            lines = [f"{each.urn}: {each.summary}" for each in events]
            message = Notification(
                event_id=events[0].event_id,
                channel=channel,
                urn=events[0].urn,
                title=f"Grouping changed: {datasets} split into {parts:,}",
                body=_bullet_list(lines, len(lines)),
                urgent=False,
            )
            transaction.post(message, at=event.at)
            self._has_posted = True

    def after_commit(self, event: ChangeEvent) -> None:  # noqa: ARG002 - the outbox knows what is due
        if self._has_posted:
            self._has_posted = False
            self._wake_sender()


def _routed_change(transaction: Transaction, event: ChangeEvent) -> RoutedChange:
    known = transaction.known(event.urn)
    ownership: Ownership | None = transaction.aspect(event.urn, "ownership")
    return RoutedChange(
        urn=event.urn,
        name=Urn.parse(event.urn).name if known is None else known.name,
        type=event.type,
        verdicts=_verdicts(event),
        owners=tuple(owner.name for owner in ownership.owners) if ownership else (),
    )


def _verdicts(event: ChangeEvent) -> frozenset[Verdict]:
    declared = {Verdict.BREAKING} if event.breaking else set()
    return frozenset({finding.consumer for finding in event.findings} | declared)


def _template_values(event: ChangeEvent, change: RoutedChange) -> dict[str, str]:
    """The values of all placeholders that a template may use."""
    # Verdicts are defined from the worst to the mildest.
    worst = next((each for each in Verdict if each in change.verdicts), None)
    changes = [f"{sentence_of(each.change)} ({each.consumer})" for each in event.findings]
    downstream = event.affected or BlastRadius()
    affected = [affected_sentence_of(each) for each in downstream.datasets]
    values = {
        "dataset_name": change.name,
        "urn": event.urn,
        "location": event.source_path or "",
        "owner_name": ", ".join(change.owners),
        "event": event.type.value,
        "event_id": event.event_id,
        "verdict": worst or event.type.value.lower(),
        "summary": event.summary,
        "schema_version": event.schema_version,
        "cloud_version": event.cloud_version,
        "time": f"{event.at:%Y-%m-%d %H:%M:%S} UTC",
        "blast_radius": blast_radius_of(downstream),
        "affected_owners": ", ".join(downstream.owners),
    }
    return {
        **{name: printable_text(value) for name, value in values.items()},
        "changes": _bullet_list(changes, len(changes)),
        "affected": _bullet_list(affected, downstream.count),
    }


def _bullet_list(sentences: Sequence[str], count: int) -> str:
    """A line for each of the first sentences, and a line with the number of the others."""
    lines = [f"- {printable_text(each)}" for each in sentences[:_MAX_LINES]]
    if (more := count - len(lines)) > 0:
        lines.append(f"- and {more:,} more")
    return "\n".join(lines)
