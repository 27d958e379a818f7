"""A cluster in memory that answers like `KafkaCluster`; the real one is in servers/kafka.py."""

from collections.abc import Iterator, Mapping, Sequence

from lumos.sources.kafka.cluster import (
    ConsumerGroup,
    Message,
    PartitionRange,
    Topic,
    TopicFacts,
    TopicSample,
)


class FakeCluster:
    """Topics with their messages, settings and groups."""

    address = "kafka://broker:9092"
    cluster_id = "cluster"

    def __init__(self) -> None:
        self.messages: dict[str, list[Message]] = {}
        self.settings: dict[str, dict[str, str]] = {}
        self.committed: dict[str, dict[str, int]] = {}
        self.hidden: set[str] = set()
        self.unreadable: set[str] = set()
        self.no_configs: set[str] = set()
        self.sampled: list[str] = []

    def add(self, topic: str, *values: bytes, key: bytes | None = None) -> None:
        self.messages.setdefault(topic, []).extend(Message(key, value) for value in values)

    def topics(self) -> list[Topic]:
        return [
            Topic(name=name, partitions=1, replication_factor=3)
            for name in sorted(self.messages)
            if name not in self.hidden
        ]

    def topic_ids(self, names: Sequence[str]) -> TopicFacts:
        found = {name: f"id-{name}" for name in names if name in self.messages}
        denied = {
            name: "not_allowed" if name in self.hidden else "no_such_topic"
            for name in names
            if name not in self.messages or name in self.hidden
        }
        return TopicFacts({name: found[name] for name in found if name not in denied}, denied)

    def configs(self, names: Sequence[str]) -> TopicFacts:
        found = {
            name: {"cleanup.policy": "delete", **self.settings.get(name, {})}
            for name in names
            if name not in self.no_configs
        }
        return TopicFacts(found, dict.fromkeys(self.no_configs & set(names), "not authorized"))

    def ranges(self, topics: Sequence[Topic]) -> TopicFacts:
        return TopicFacts(
            {each.name: [PartitionRange(0, 0, len(self.messages[each.name]))] for each in topics},
            {},
        )

    def samples(
        self, ranges: Mapping[str, Sequence[PartitionRange]], count: int
    ) -> Iterator[tuple[str, TopicSample]]:
        for name in ranges:
            self.sampled.append(name)
            if name in self.unreadable:
                yield name, TopicSample((), problem=("not_allowed", "Topic authorization failed"))
                continue
            all_messages = self.messages[name]
            yield name, TopicSample(tuple(all_messages[-count:]), len(all_messages) <= count)

    def groups(self) -> tuple[list[ConsumerGroup], bool]:
        return [ConsumerGroup(name, dict(each)) for name, each in self.committed.items()], False

    def close(self) -> None:
        pass
