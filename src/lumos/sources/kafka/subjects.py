"""Finds the subjects of topics by the naming strategies of serializers."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

Part: TypeAlias = Literal["key", "value"]
NamingStrategy: TypeAlias = Literal["auto", "topic_name", "record_name", "topic_record_name"]

KEY_SUFFIX: Final = "-key"
VALUE_SUFFIX: Final = "-value"


class TopicSubject(NamedTuple):
    """A subject with the schema of a topic's keys or values, or of one record type of them."""

    subject: str
    part: Part
    record: str | None = None


def subjects_by_topic(
    topics: Collection[str], subjects: Iterable[str], strategy: NamingStrategy
) -> dict[str, list[TopicSubject]]:
    """The subjects of each topic, by their names; with `record_name`, names contain no topic.

    A subject `a-b-C` of the strategy topic_record_name belongs to the longest topic: `a-b` before
    `a`. Names that end with -key or -value belong to the topic before it, if there is one.
    """
    found: dict[str, list[TopicSubject]] = {topic: [] for topic in topics}
    for subject in sorted(set(subjects)):
        topic, part = _topic_name(subject)
        if part is not None and topic in found and strategy in ("auto", "topic_name"):
            found[topic].append(TopicSubject(subject, part))
        elif strategy in ("auto", "topic_record_name"):
            owner = _longest_prefix(subject, found)
            if owner is not None:
                record = subject[len(owner) + 1 :]
                found[owner].append(TopicSubject(subject, "value", record))
    for topic, entries in found.items():
        if any(each.part == "value" and each.record is None for each in entries):
            # All serializers of a topic use one strategy, so other subjects only have the same
            # prefix.
            found[topic] = [each for each in entries if each.record is None]
    return found


def subjects_of_records(
    ids: Mapping[Part, Iterable[int]], subjects_of: Mapping[int, Collection[str]]
) -> list[TopicSubject]:
    """The subjects of schema ids that messages of a topic contain."""
    found: dict[str, TopicSubject] = {}
    for part in ("key", "value"):
        for schema_id in sorted(set(ids.get(part, ()))):
            for subject in sorted(subjects_of.get(schema_id, ())):
                record = None if part == "key" else subject
                found.setdefault(subject, TopicSubject(subject, part, record))
    return list(found.values())


def _topic_name(subject: str) -> tuple[str, Part | None]:
    if subject.endswith(KEY_SUFFIX):
        return subject[: -len(KEY_SUFFIX)], "key"
    if subject.endswith(VALUE_SUFFIX):
        return subject[: -len(VALUE_SUFFIX)], "value"
    return "", None


def _longest_prefix(subject: str, topics: Collection[str]) -> str | None:
    end = subject.rfind("-")
    while end > 0:
        if subject[:end] in topics and len(subject) > end + 1:
            return subject[:end]
        end = subject.rfind("-", 0, end)
    return None
