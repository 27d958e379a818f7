"""Topics of a Kafka cluster as a source; a schema registry is their schema history."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import cached_property
from typing import ClassVar, Final, NamedTuple
from urllib.parse import unquote

from lumos.config.sources import KafkaSourceSettings as Settings
from lumos.errors import did_you_mean
from lumos.model.compressed_list import CompressedList
from lumos.model.conversions.avro import KnownColumns
from lumos.model.dataset import Location, Statistics
from lumos.model.discovery import (
    Discovery,
    FoundDataset,
    ObservedRead,
    Problem,
    SourceMetadata,
    TableState,
)
from lumos.model.schema import Schema
from lumos.sources.interface import (
    EarlierSchemas,
    IncrementalSource,
    ReadProgress,
)
from lumos.sources.kafka.cluster import KafkaCluster, PartitionRange, Topic, TopicSample
from lumos.sources.kafka.registry import (
    RegisteredSchema,
    SchemaRegistry,
    SubjectNotReadable,
)
from lumos.sources.kafka.samples import (
    infer_schema,
    merge_with_known,
    schema_ids,
    with_key,
)
from lumos.sources.kafka.schemas import (
    UNKNOWN_TIME,
    ParsedSchema,
    SubjectVersions,
    combine,
    history_of,
    parse_schema,
    unresolved_names,
)
from lumos.sources.kafka.subjects import (
    Part,
    TopicSubject,
    subjects_by_topic,
    subjects_of_records,
)
from lumos.sources.relational import content_of, matches_pattern, path_of

_WILDCARDS: Final = frozenset("*?[")
# The topic in which Confluent's registry stores its schemas.
_REGISTRY_TOPIC: Final = "_schemas"
_INTERNAL: Final = "__"
_FORMATS: Final = {"AVRO": "avro", "JSON": "json", "PROTOBUF": "protobuf"}
_EMPTY: Final = "topic"
_REPORT_INTERVAL: Final = 20
_SAMPLED: Final = "sample"
_CONFIG: Final = "config."
_REGISTERED: Final = "registry"


class _TopicTask(NamedTuple):
    """A topic with the subjects that are known for it."""

    topic: Topic
    subjects: tuple[TopicSubject, ...]


class _TopicSchema(NamedTuple):
    """The schema of a topic, its history, and properties that describe them."""

    format: str
    schema: Schema
    table: TableState | None
    properties: dict[str, str]
    description: str | None = None
    problems: tuple[Problem, ...] = ()


class KafkaSource(IncrementalSource):
    kind: ClassVar[str] = "kafka"

    _settings: Settings

    @property
    def address(self) -> str:
        return f"kafka://{','.join(self._settings.bootstrap_servers)}"

    @property
    def scope(self) -> str:
        # A constant: the selection may change between runs, and `covers` applies it.
        return "*"

    def covers(self, path: str) -> bool:
        return self._is_selected(unquote(path))

    def check(self) -> str:
        with closing(KafkaCluster(self._settings)) as cluster:
            topics = self.select(cluster.topics())
        found = "1 topic" if len(topics) == 1 else f"{len(topics):,} topics"
        if self._settings.schema_registry_url is None:
            return f"{self.address}, {found}, no schema registry"
        with closing(SchemaRegistry(self._settings)) as registry:
            subjects = len(registry.subjects())
        count = "1 subject" if subjects == 1 else f"{subjects:,} subjects"
        return f"{self.address}, {found}, {count} at {registry.address}"

    def read_changes(self, known: EarlierSchemas, report_progress: ReadProgress) -> Discovery:
        with ExitStack() as resources:
            cluster = resources.enter_context(closing(KafkaCluster(self._settings)))
            registry = None
            if self._settings.schema_registry_url is not None:
                registry = resources.enter_context(closing(SchemaRegistry(self._settings)))
            scan = _TopicScan(self._settings, cluster, registry, known)
            return scan.run(self, report_progress)

    @cached_property
    def patterns(self) -> tuple[str, ...]:
        """The patterns of topics to read; empty for all topics."""
        return (*self._settings.topics, *self._settings.topic_patterns)

    def _is_selected(self, topic: str) -> bool:
        if topic in self.patterns:
            return topic not in self._settings.exclude
        is_internal = topic.startswith(_INTERNAL) or topic == _REGISTRY_TOPIC
        return (
            not is_internal
            and (not self.patterns or any(matches_pattern(topic, each) for each in self.patterns))
            and not any(matches_pattern(topic, each) for each in self._settings.exclude)
        )

    def select(self, topics: Iterable[Topic]) -> list[Topic]:
        """The topics that the source reads."""
        return [each for each in topics if self._is_selected(each.name)]


class _TopicScan:
    """One scan of a cluster and its registry."""

    def __init__(
        self,
        settings: Settings,
        cluster: KafkaCluster,
        registry: SchemaRegistry | None,
        known: EarlierSchemas,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._registry = registry
        self._known = known
        self._problems: list[Problem] = []

    def run(self, source: KafkaSource, report_progress: ReadProgress) -> Discovery:
        listed = self._cluster.topics()
        topics = source.select(listed)
        self._problems += self._missing_topics(source, [each.name for each in listed])
        names = [each.name for each in topics]
        ids = self._cluster.topic_ids(names)
        configs = self._cluster.configs(names)
        ranges = self._cluster.ranges(topics)
        self._remark_denied("configuration", "DescribeConfigs", configs.denied)
        self._remark_denied("offsets", "Describe", ranges.denied)
        subjects = self._subjects(topics)
        samples = self._samples(subjects, ranges.found)
        datasets = CompressedList(FoundDataset)
        paths: set[str] = set()
        for number, (task, found) in enumerate(self._schemas(subjects, samples), start=1):
            if number % _REPORT_INTERVAL == 0:
                report_progress(number / len(topics))
            if isinstance(found, Problem):
                self._problems.append(found)
                continue
            self._problems += found.problems
            name = task.topic.name
            identity = ids.found.get(name)
            dataset = self._dataset(
                task.topic,
                found,
                identity=identity,
                configs=configs.found.get(name) or self._earlier_configs(name),
                ranges=ranges.found.get(name),
            )
            paths.add(dataset.path)
            datasets.append(dataset)
        reads = tuple(self._reads(paths))
        return Discovery(datasets=datasets, problems=tuple(self._problems), reads=reads)

    def _earlier_configs(self, topic: str) -> dict[str, str]:
        """The recorded settings of a topic whose settings cannot be read now."""
        earlier = self._known(path_of(topic))
        return {
            name.removeprefix(_CONFIG): value
            for name, value in (earlier.properties if earlier else {}).items()
            if name.startswith(_CONFIG)
        }

    def _missing_topics(self, source: KafkaSource, listed: Sequence[str]) -> Iterator[Problem]:
        """Problems of topics that are configured by name and not listed."""
        missing = [
            name for name in source.patterns if not _WILDCARDS & set(name) and name not in listed
        ]
        if not missing:
            return
        denied = self._cluster.topic_ids(missing).denied
        for name in missing:
            if denied.get(name) == "not_allowed":
                reason = "the user has no permission to describe the topic. Grant Describe."
                yield Problem(path=path_of(name), reason=reason, code="not_allowed")
            else:
                reason = f"there is no topic '{name}'.{did_you_mean(name, listed)}"
                yield Problem(path=path_of(name), reason=reason, code="no_such_topic", remark=True)

    def _remark_denied(self, what: str, operation: str, denied: Mapping[str, str]) -> None:
        if denied:
            name, reason = next(iter(denied.items()))
            count = f"{len(denied):,} topics" if len(denied) > 1 else "1 topic"
            self._problems.append(
                Problem(
                    path=path_of(name),
                    reason=f"the {what} of {count} cannot be read: {reason}. Grant {operation}.",
                    code=f"no_{what}",
                    remark=True,
                )
            )

    def _subjects(self, topics: Sequence[Topic]) -> list[_TopicTask]:
        names = [] if self._registry is None else self._registry.subjects()
        strategy = self._settings.naming_strategy
        found = subjects_by_topic([each.name for each in topics], names, strategy)
        return [_TopicTask(each, tuple(found[each.name])) for each in topics]

    def _samples(
        self, tasks: Sequence[_TopicTask], ranges: Mapping[str, Sequence[PartitionRange]]
    ) -> dict[str, TopicSample]:
        """The last messages of topics whose values have no subject."""
        if not self._settings.sample_size:
            return {}
        unknown = [task.topic.name for task in tasks if not _has_value(task.subjects)]
        wanted = {name: ranges[name] for name in unknown if name in ranges}
        return dict(self._cluster.samples(wanted, self._settings.sample_size))

    def _schemas(
        self, tasks: Sequence[_TopicTask], samples: Mapping[str, TopicSample]
    ) -> Iterator[tuple[_TopicTask, "_TopicSchema | Problem"]]:
        if self._registry is None:
            for task in tasks:
                yield task, self._sample_schema(task, samples.get(task.topic.name))
            return

        def read(task: _TopicTask) -> "_TopicSchema | Problem":
            return self._schema(task, samples.get(task.topic.name))

        yield from zip(tasks, self._registry.each(tasks, read), strict=True)

    def _schema(self, task: _TopicTask, sample: TopicSample | None) -> "_TopicSchema | Problem":
        path = path_of(task.topic.name)
        try:
            subjects = task.subjects
            if not _has_value(subjects):
                in_messages = self._subjects_in(task, sample)
                subjects = tuple(dict.fromkeys((*subjects, *in_messages)))
            # Without a subject for values, the messages are sampled, even if keys have a subject.
            return (
                self._registry_schema(path, subjects)
                if _has_value(subjects)
                else self._sample_schema(task, sample)
            )
        except SubjectNotReadable as problem:
            return Problem(path=path, reason=f"{problem.reason}.", code=problem.code)

    def _subjects_in(
        self, task: _TopicTask, sample: TopicSample | None
    ) -> tuple[TopicSubject, ...]:
        """The subjects of the schema ids in messages, and the subjects from earlier scans."""
        assert self._registry is not None
        if self._settings.naming_strategy not in ("auto", "record_name"):
            return ()
        messages = sample.messages if sample is not None else ()
        ids: dict[Part, set[int]] = {
            "key": schema_ids(each.key for each in messages if each.key is not None),
            "value": schema_ids(each.value for each in messages if each.value is not None),
        }
        subjects_of = {
            schema_id: self._registry.subjects_of(schema_id)
            for schema_id in sorted(ids["key"] | ids["value"])
        }
        found = subjects_of_records(ids, subjects_of)
        earlier = self._known(path_of(task.topic.name))
        recorded = () if earlier is None else recorded_subjects(earlier.properties)
        known = {each.subject for each in found}
        found += [
            subject
            for subject, _ in recorded
            if subject.subject not in known and self._registry.versions(subject.subject)
        ]
        return tuple(sorted(found))

    def _registry_schema(self, path: str, subjects: Sequence[TopicSubject]) -> _TopicSchema:
        """The schema and history of a topic from the versions of its subjects."""
        registry = self._registry
        assert registry is not None
        earlier = self._known(path)
        recorded = {} if earlier is None else dict(recorded_subjects(earlier.properties))
        by_subject: dict[TopicSubject, SubjectVersions] = {}
        properties = {"schema_from": _REGISTERED}
        problems: list[Problem] = []
        for subject in subjects:
            last = recorded.get(subject)
            schemas: Iterable[RegisteredSchema | None]
            if last is None and (history := registry.history(subject.subject)):
                schemas, numbers = history, [each.version for each in history]
            else:
                numbers = registry.versions(subject.subject)
                wanted = [each for each in numbers if last not in numbers or each >= (last or 0)]
                schemas = (registry.schema(subject.subject, number) for number in wanted)
            is_known = last is not None and last in numbers
            columns: KnownColumns = {}
            versions = [
                parsed
                for schema in schemas
                if schema is not None
                and (
                    parsed := self._parse_version(
                        path, schema, columns, problems, is_last=schema.version == numbers[-1]
                    )
                )
            ]
            if not versions:
                continue
            by_subject[subject] = SubjectVersions(versions, last if is_known else None)
            properties |= self._subject_properties(subject, versions[-1].registered)
        current = {subject: each.versions[-1] for subject, each in by_subject.items()}
        if not current:
            raise SubjectNotReadable("no_schema", "its subjects have no versions any more")
        values = [each for subject, each in current.items() if subject.part == "value"]
        last_schema = (values or list(current.values()))[-1]
        return _TopicSchema(
            format=_FORMATS.get(last_schema.registered.type, _EMPTY),
            schema=combine(current),
            table=TableState(
                version=", ".join(
                    f"{subject.record or subject.part} v{each.registered.version}"
                    for subject, each in current.items()
                ),
                at=UNKNOWN_TIME,
                past=history_of(by_subject),
                has_data=False,
            ),
            properties=properties,
            description=values[0].description if len(values) == 1 else None,
            problems=tuple(problems),
        )

    def _parse_version(
        self,
        path: str,
        schema: RegisteredSchema,
        columns: KnownColumns,
        problems: list[Problem],
        *,
        is_last: bool,
    ) -> ParsedSchema | None:
        """A parsed version; if an older version cannot be parsed, only a remark is reported."""
        assert self._registry is not None
        try:
            references = self._registry.resolve(schema)
            parsed = parse_schema(schema, references, columns)
        except SubjectNotReadable as problem:
            if is_last:
                raise
            reason = f"{problem.reason}; it is missing in the history."
            problems.append(Problem(path=path, reason=reason, code=problem.code, remark=True))
            return None
        if is_last and references.is_cyclic:
            reason = f"the references of '{schema.subject}' are cyclic; each is used once."
            problems.append(
                Problem(path=path, reason=reason, code="cyclic_references", remark=True)
            )
        missing = [*references.missing, *(unresolved_names(parsed.schema) if is_last else ())]
        if is_last and missing:
            reason = f"'{schema.subject}' refers to '{missing[0]}', which is not in the registry."
            problems.append(
                Problem(path=path, reason=reason, code="missing_reference", remark=True)
            )
        return parsed

    def _subject_properties(
        self, subject: TopicSubject, schema: RegisteredSchema
    ) -> dict[str, str]:
        assert self._registry is not None
        prefix = subject.part if subject.record is None else f"{subject.part}.{subject.record}"
        found = {
            "subject": subject.subject,
            "version": str(schema.version),
            "schema_id": str(schema.id),
            "schema_type": schema.type,
            "compatibility": self._registry.compatibility(subject.subject),
            "references": ", ".join(
                f"{each.name} ({each.subject} v{each.version})" for each in schema.references
            ),
        }
        return {f"{prefix}.{name}": text for name, text in found.items() if text}

    def _sample_schema(
        self, task: _TopicTask, sample: TopicSample | None
    ) -> "_TopicSchema | Problem":
        """The schema of a topic, inferred from a sample of its messages."""
        path = path_of(task.topic.name)
        if sample is not None and sample.problem is not None:
            code, reason = sample.problem
            return Problem(path=path, reason=f"its messages cannot be read: {reason}.", code=code)
        messages = sample.messages if sample is not None else ()
        values = [each.value for each in messages if each.value is not None]
        keys = [each.key for each in messages if each.key is not None]
        earlier = self._known(path)
        if earlier is not None and earlier.properties.get("schema_from") != _SAMPLED:
            earlier = None
        properties = {"schema_from": _SAMPLED}
        if not values:
            schema = Schema() if earlier is None else earlier.schema
            format = _EMPTY if earlier is None else earlier.properties.get("format", _EMPTY)
            properties |= {} if format == _EMPTY else {"format": format}
            return _TopicSchema(format, schema, None, properties)
        inferred = infer_schema(values)
        schema = with_key(inferred.schema, keys)
        if earlier is not None and earlier.properties.get("format") == inferred.format:
            is_whole = sample is not None and sample.is_whole
            schema = merge_with_known(schema, earlier.schema, is_whole=is_whole)
        return _TopicSchema(
            inferred.format, schema, None, {**properties, "format": inferred.format}
        )

    def _dataset(
        self,
        topic: Topic,
        found: _TopicSchema,
        *,
        identity: str | None,
        configs: Mapping[str, str],
        ranges: Sequence[PartitionRange] | None,
    ) -> FoundDataset:
        path = path_of(topic.name)
        properties = {
            **found.properties,
            "partitions": str(topic.partitions),
            "replication_factor": str(topic.replication_factor),
            **{f"{_CONFIG}{name}": value for name, value in configs.items()},
        }
        return FoundDataset(
            path=path,
            name=topic.name,
            format=found.format,
            location=Location(uri=f"{self._cluster.address}/{path}", identity=identity),
            schema=found.schema,
            statistics=Statistics(
                row_count=None
                if ranges is None
                else sum(max(0, each.high - each.low) for each in ranges),
                total_size_exact=False,
            ),
            drift=(),
            content=content_of(
                found.format, None, SourceMetadata(properties=properties), found.schema
            ),
            source_metadata=SourceMetadata(description=found.description, properties=properties),
            table=found.table,
        )

    def _reads(self, paths: set[str]) -> Iterator[ObservedRead]:
        if not self._settings.consumer_groups or not paths:
            return
        groups, is_incomplete = self._cluster.groups()
        if is_incomplete:
            reason = "not all consumer groups can be read. Grant Describe on groups."
            self._problems.append(
                Problem(path="", reason=reason, code="groups_not_allowed", remark=True)
            )
        for group in groups:
            for topic, committed in group.committed.items():
                if (path := path_of(topic)) in paths:
                    yield ObservedRead(path=path, reader=group.name, position=str(committed))


def _has_value(subjects: Iterable[TopicSubject]) -> bool:
    return any(each.part == "value" for each in subjects)


def recorded_subjects(properties: Mapping[str, str]) -> Iterator[tuple[TopicSubject, int]]:
    """The subjects and versions that an earlier scan recorded."""
    for name, subject in properties.items():
        if not name.endswith(".subject"):
            continue
        prefix = name.removesuffix(".subject")
        part, _, record = prefix.partition(".")
        version = properties.get(f"{prefix}.version", "")
        if part in ("key", "value") and version.isdecimal():
            known: Part = "key" if part == "key" else "value"
            yield TopicSubject(subject, known, record or None), int(version)
