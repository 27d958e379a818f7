"""Records the datasets that a scan found, in small transactions that are safe to repeat."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from lumos.annotations.attribution import (
    adopt_imported,
    annotate_scanned_dataset,
    annotate_scanned_schema,
    refresh_source_annotations,
)
from lumos.annotations.rules import claimed_keys
from lumos.discovery.dataset_history import (
    ChangeClock,
    ChangeTime,
    DatasetSuccession,
    InheritedAnnotations,
    LastRecordedSchema,
    dataset_name,
    has_new_schema,
    schema_steps,
)
from lumos.discovery.source_metadata import (
    SOURCE_ASPECTS,
    RecordedMetadata,
    apply_source_metadata,
    describe_differences,
    is_same_metadata,
    is_unchanged,
)
from lumos.model.annotation import DATA_SOURCE, AnnotationKey, AnnotationsByReporter
from lumos.model.change import ChangeEvent, EventType, make_event_id
from lumos.model.dataset import Dataset, Governance, Location, Statistics, Versioning
from lumos.model.discovery import OF_TABLE, FoundDataset, SourceMetadata
from lumos.model.urn import Urn
from lumos.model.version import CloudVersion, SchemaVersion
from lumos.schemas.version_rules import (
    EventDecision,
    ObservedDataset,
    RecordedDataset,
    decide_event,
)
from lumos.schemas.wording import summary_of
from lumos.store import KnownDataset, Store, Transaction
from lumos.store.datasets import IMPORTED

_WRITER = "scan"
_BATCH_SIZE = 50
_DEFAULT_STORAGE_CLASS = "standard"
_SCANNED_ASPECTS = ("location", "statistics", "drift")


class RecordingOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset after it was recorded; `event` is None if nothing has changed.

    `earlier` are the other events of the scan: renames, merges, and changes in the table's log.
    """

    dataset: Dataset
    event: ChangeEvent | None = None
    earlier: tuple[ChangeEvent, ...] = ()

    def as_recorded(self, events: Mapping[str, ChangeEvent]) -> "RecordingOutcome":
        """The outcome with stored events, given by id, instead of its own."""
        if self.event is None:
            return self
        return replace(
            self,
            event=events.get(self.event.event_id, self.event),
            earlier=tuple(events.get(each.event_id, each) for each in self.earlier),
        )


class _RecordedBatch:
    """The records of a batch of datasets; their aspects and annotations are loaded when needed.

    Found datasets are compared with the records in `known`. `own` are the URNs of the records that
    the same source wrote.
    """

    def __init__(
        self,
        store: Store,
        urns: Collection[str],
        *,
        known: Mapping[str, KnownDataset],
        own: Collection[str],
    ) -> None:
        self._store = store
        self._urns = urns
        self.known = known
        self._own = own

    @cached_property
    def locations(self) -> dict[str, Location]:
        return self._aspects("location")

    @cached_property
    def _statistics(self) -> dict[str, Statistics]:
        return self._aspects("statistics")

    @cached_property
    def contested(self) -> dict[str, AnnotationsByReporter]:
        """The annotations of datasets that have annotations from others than their source."""
        return self._store.annotations.contested(self._own) if self._own else {}

    @cached_property
    def annotations(self) -> dict[str, AnnotationsByReporter]:
        return self._store.annotations.of(self._own) if self._own else {}

    def _aspects(self, name: str) -> dict[str, Any]:
        return self._store.aspects_of(name, self._own) if self._own else {}

    @cached_property
    def _governance(self) -> dict[str, Governance]:
        return self._store.aspects_of("governance", self._urns)

    def needs_update(self, urn: str, found: FoundDataset) -> bool:
        """Whether statistics, location or source annotations are new although the data is not."""
        if self.locations.get(urn) != found.location:
            return True
        by_class = found.statistics.bytes_by_class
        if found.is_reported_by_source:
            if self._statistics.get(urn) != found.statistics:
                return True
        elif found.statistics.columns:
            return True
        # Files move to another storage class without a change of their content. They only return to
        # the standard class if they are rewritten, which is a change.
        elif by_class and by_class.keys() != {_DEFAULT_STORAGE_CLASS}:
            recorded = self._statistics.get(urn)
            if recorded is None or recorded.bytes_by_class != by_class:
                return True
        # The source may have changed annotations that users have overridden.
        annotations = self.contested.get(urn, {})
        if found.source_metadata is None or not claimed_keys(annotations):
            return False
        return annotations != refresh_source_annotations(
            annotations, found.schema, found.source_metadata, Urn.parse(urn).platform
        )

    def with_labels(self, outcome: RecordingOutcome) -> RecordingOutcome:
        """Add the labels of the dataset, which decide whether column ranges may be shown."""
        statistics = outcome.dataset.statistics
        if statistics is None or not statistics.columns:
            return outcome
        labels = self._governance.get(outcome.dataset.urn, outcome.dataset.governance)
        dataset = replace(outcome.dataset, governance=labels)
        return replace(outcome, dataset=dataset)


class DatasetRecorder:
    """Writes the datasets of one source into the store."""

    def __init__(
        self,
        store: Store,
        *,
        source: str,
        prefix: str,
        urn_of: Callable[[str], Urn],
        at: datetime,
        tracks_schemas: bool = True,
    ) -> None:
        self._store = store
        self._urn_of = urn_of
        self._succession = DatasetSuccession(urn_of, source=source, at=at)
        self._source = source
        self._prefix = prefix
        self._at = at
        # If False, a new schema replaces the old one without an event or a new version.
        self._tracks_schemas = tracks_schemas

    def record(
        self, datasets: Iterable[tuple[Urn, FoundDataset]], *, of_any_source: bool = False
    ) -> Iterator[RecordingOutcome]:
        """Record found datasets, except those that equal their records.

        With `of_any_source`, records that scans of other sources wrote are compared as well.
        """
        remaining = iter(datasets)
        while batch := list(islice(remaining, _BATCH_SIZE)):
            urns = [str(urn) for urn, _ in batch]
            known = {
                urn: each
                for urn, each in self._store.known_datasets(urns).items()
                if each.source == self._source
                or (of_any_source and each.state == "live" and each.source != IMPORTED)
            }
            own = [urn for urn, each in known.items() if each.source == self._source]
            recorded = _RecordedBatch(self._store, urns, known=known, own=own)
            yield from self._record_batch(batch, recorded)

    def _record_batch(
        self, datasets: Sequence[tuple[Urn, FoundDataset]], recorded: _RecordedBatch
    ) -> Iterator[RecordingOutcome]:
        known = recorded.known
        by_urn = {str(urn): (urn, found) for urn, found in datasets}
        with_annotations = {
            key: _with_field_annotations(found, recorded.contested.get(key, {}))
            for key, (_, found) in by_urn.items()
        }
        to_record = {
            key
            for key in by_urn
            if key not in known
            or not self._is_unchanged(with_annotations[key], recorded, key)
            # Scans of nested folders may have recorded parts as separate datasets.
            or by_urn[key][1].split_from is not None
            or by_urn[key][1].merged_from
        }
        to_update = {
            key
            for key, (urn, found) in by_urn.items()
            if key not in to_record
            and known[key].source == self._source
            and (recorded.needs_update(key, found) or known[key].name != dataset_name(found, urn))
        }
        to_remember = {
            key
            for key, (_, found) in by_urn.items()
            if found.memory is not None and found.memory.body != found.memory.recalled
        }

        def write(transaction: Transaction) -> tuple[dict[str, RecordingOutcome], Transaction]:
            outcomes: dict[str, RecordingOutcome] = {}
            transaction.load(to_record | to_update)
            for key, (urn, found) in sorted(by_urn.items()):
                if key in to_record:
                    outcomes[key] = self._record(transaction, found, urn)
                    continue
                if key in to_update:
                    self._update_unchanged(transaction, found, key)
                if key in to_remember and not self._is_outdated(transaction, found, key):
                    self._save_schema_memory(transaction, found, key)
            return outcomes, transaction

        self._store.save_schemas(with_annotations[key].schema for key in to_record)
        self._store.save_schemas(
            memory.schema for key in to_remember if (memory := by_urn[key][1].memory) is not None
        )
        outcomes: dict[str, RecordingOutcome] = {}
        if to_record or to_update or to_remember:
            outcomes, transaction = self._store.transact(write)
            # The transaction has added the downstream impact to the events.
            saved_events = {event.event_id: event for event in transaction.new_events}
            outcomes = {key: each.as_recorded(saved_events) for key, each in outcomes.items()}
        for key, (urn, _) in by_urn.items():
            outcome = outcomes.get(key) or unchanged_dataset(with_annotations[key], urn, known[key])
            yield recorded.with_labels(outcome)

    def _update_unchanged(self, transaction: Transaction, found: FoundDataset, urn: str) -> None:
        """Save new statistics, location, name and annotations of a dataset with unchanged data."""
        self._save_if_changed(transaction, urn, "statistics", found.statistics)
        self._save_if_changed(transaction, urn, "location", found.location)
        known = transaction.known(urn)
        name = dataset_name(found, Urn.parse(urn))
        if known is not None and known.name != name:
            # An earlier version of Lumos used another name, for example with the extension.
            known = replace(known, name=name)
            transaction.save(known)
        if known is not None:
            annotations = transaction.annotations.get(urn)
            refreshed = self._refresh_annotations(
                transaction, annotations, found, known, Urn.parse(urn)
            )
            transaction.annotations.put(urn, refreshed, before=annotations)

    def _save_if_changed(
        self, transaction: Transaction, urn: str, name: str, value: object
    ) -> None:
        if transaction.aspect(urn, name) != value:
            transaction.save_aspect(urn, name, value, writer=_WRITER, at=self._at)

    @staticmethod
    def _is_outdated(transaction: Transaction, found: FoundDataset, urn: str) -> bool:
        """Whether a scan of another root has recorded the dataset since this scan loaded it.

        The results of this scan may then be older, so they are not recorded; the next scan compares
        again.
        """
        if found.memory is None:
            return False
        recorded = transaction.schema_memory(urn)
        return recorded not in (None, found.memory.recalled, found.memory.body)

    @staticmethod
    def _save_schema_memory(transaction: Transaction, found: FoundDataset, urn: str) -> None:
        """Save the memory of the schemas of the dataset's files for the next scan."""
        memory = found.memory
        if memory is not None and memory.body != memory.recalled:
            transaction.save_schema_memory(urn, memory.body, memory.schema)

    def remove(
        self, transaction: Transaction, known: KnownDataset, location: Location | None
    ) -> None:
        """Record that a dataset was deleted; its history remains."""
        cloud_version = CloudVersion.parse(known.cloud_version).next(prefix=self._prefix)
        deleted = replace(
            known, state="missing", cloud_version=str(cloud_version), updated_at=self._at
        )
        transaction.save(deleted)
        transaction.save_event(
            ChangeEvent(
                event_id=make_event_id(
                    known.urn, EventType.DELETED, str(cloud_version), known.content
                ),
                urn=known.urn,
                type=EventType.DELETED,
                at=self._at,
                cause="scan",
                cloud_version=str(cloud_version),
                schema_version=known.schema_version,
                source_path=None if location is None else location.uri,
                old_schema=known.schema_hash,
                summary=summary_of(EventType.DELETED, ()),
                metadata={"source": self._source},
            )
        )

    def record_splits(
        self, transaction: Transaction, datasets: Iterable[tuple[Urn, FoundDataset]]
    ) -> tuple[ChangeEvent, ...]:
        """Record which datasets were split; all of their parts must be recorded already."""
        parts: dict[str, dict[Urn, FoundDataset]] = {}
        for urn, found in datasets:
            if found.split_from is not None:
                parts.setdefault(found.split_from, {})[urn] = found
        events = (self._succession.split(transaction, path, parts[path]) for path in sorted(parts))
        return tuple(event for event in events if event is not None)

    def _is_unchanged(self, found: FoundDataset, recorded: _RecordedBatch, urn: str) -> bool:
        """Whether data, schema and, for tables, metadata and history are the same as recorded."""
        known = recorded.known[urn]
        if (known.state, known.content) != ("live", found.content):
            return False
        if known.fingerprint != found.schema.full:
            return False
        if found.table is None:
            return True
        annotations, location = recorded.annotations.get(urn, {}), recorded.locations.get(urn)
        return is_unchanged(found, annotations, location, known.platform) and not has_new_schema(
            found.table, since=known.updated_at, now=self._at
        )

    def _record(self, transaction: Transaction, found: FoundDataset, urn: Urn) -> RecordingOutcome:
        renames = self._succession.continue_predecessors(
            transaction, found, urn, name=dataset_name(found, urn)
        )
        known = transaction.known(str(urn))
        is_live = known is not None and known.state == "live"
        if known is not None and is_live and self._is_outdated(transaction, found, str(urn)):
            return unchanged_dataset(found, urn, known)
        outcome = self._save_found(transaction, found, urn, known, renames)
        self._save_schema_memory(transaction, found, str(urn))
        return outcome

    def _save_found(
        self,
        transaction: Transaction,
        found: FoundDataset,
        urn: Urn,
        known: KnownDataset | None,
        renames: tuple[ChangeEvent, ...],
    ) -> RecordingOutcome:
        succession = self._succession
        stored = {} if known is None else transaction.annotations.get(known.urn)
        metadata = found.source_metadata
        if known is not None and self._is_no_longer_table(stored, found, known):
            metadata = SourceMetadata()
        inherited = InheritedAnnotations()
        if (origin := succession.split_origin(transaction, found, known)) is None:
            found = replace(found, split_from=None)
        elif known is None or known.urn != origin.urn:
            inherited = succession.inherit(transaction, origin, found, urn)
        annotations = inherited.annotations
        if not claimed_keys(annotations):
            reported = replace(found, source_metadata=metadata)
            annotations = self._refresh_annotations(transaction, stored, reported, known, urn)
        last_metadata = None
        if metadata is not None and known is not None:
            aspects = self._load_source_aspects(transaction, known)
            last_metadata = RecordedMetadata(aspects, stored)
        past = self._record_past(transaction, found, urn, known, annotations)
        found = _with_field_annotations(found, annotations)
        dataset = dataset_of(found, urn, **inherited.aspects)
        if metadata is not None and last_metadata is not None:
            dataset = annotate_scanned_dataset(
                apply_source_metadata(dataset, metadata, before=last_metadata), annotations
            )
        elif metadata is not None:
            dataset = annotate_scanned_dataset(dataset, annotations)
        observed = _to_observed(found)
        if found.table is not None and last_metadata is not None:
            is_same = is_same_metadata(last_metadata, found, metadata or SourceMetadata())
            observed = replace(observed, has_new_source_metadata=not is_same)
        decision = decide_event(
            observed, self._recorded_dataset(transaction, past.known), prefix=self._prefix
        )
        if decision is None:
            assert past.known is not None
            transaction.annotations.put(str(urn), annotations, before=stored)
            if metadata is not None:
                self._update_unchanged(transaction, found, str(urn))
            if found.table is not None and last_metadata is not None:
                self._save_if_changed(transaction, str(urn), "properties", dataset.properties)
            if inherited.aspects:
                transaction.save_aspects(str(urn), inherited.aspects, writer=_WRITER, at=self._at)
            *earlier, last = (*past.steps, *renames) or (None,)
            outcome = unchanged_dataset(found, urn, past.known)
            return replace(outcome, event=last, earlier=tuple(earlier))
        if known is None or known.state != "live":
            transaction.drop_alias(str(urn))
        if self._is_untracked(decision, past.known):
            assert past.known is not None
            dataset = _with_versions(dataset, past.known.cloud_version, past.known.schema_version)
        else:
            dataset = _with_versions(
                dataset, str(decision.cloud_version), str(decision.schema_version)
            )
        time = past.current_time if decision.schema_changed else None
        _, event = self._save_event(
            transaction,
            found,
            urn,
            decision,
            past.known,
            last_metadata,
            time or ChangeTime(self._at),
        )
        self._save_aspects(transaction, dataset, last_metadata, inherited)
        transaction.annotations.put(str(urn), annotations, before=stored)
        merges = succession.merge_predecessors(transaction, found, urn)
        return RecordingOutcome(
            dataset=dataset,
            event=past.created or event,
            earlier=(*renames, *merges, *past.steps),
        )

    @staticmethod
    def _is_no_longer_table(
        annotations: AnnotationsByReporter, found: FoundDataset, known: KnownDataset
    ) -> bool:
        """Whether a table lost its log, so that the recorded metadata of the log is obsolete."""
        if found.source_metadata is not None or known.format == found.format:
            return False
        version = AnnotationKey("", "property", f"{known.platform}.{OF_TABLE}version")
        return version in annotations.get(DATA_SOURCE, {})

    def _record_past(
        self,
        transaction: Transaction,
        found: FoundDataset,
        urn: Urn,
        known: KnownDataset | None,
        annotations: AnnotationsByReporter,
    ) -> "_RecordedPast":
        """Record the schema changes in a table's log since the last scan; for new tables, all."""
        table = found.table
        is_continued = known is None or (known.format == found.format and known.state == "live")
        if table is None or not is_continued or not self._tracks_schemas:
            return _RecordedPast(known)
        clock = ChangeClock(since=None if known is None else known.updated_at, now=self._at)
        recorded = self._recorded_dataset(transaction, known)
        last_schema = None
        if known is not None and recorded is not None:
            location: Location | None = transaction.aspect(known.urn, "location")
            identity = location.identity if location is not None else None
            last_schema = LastRecordedSchema(recorded.schema, known.updated_at, identity)
        history = schema_steps(table, found.schema, last_schema, identity=found.location.identity)
        created = None
        steps: list[ChangeEvent] = []
        for step in history.steps:
            dataset = _with_field_annotations(replace(found, schema=step.schema), annotations)
            dataset = replace(dataset, content=make_event_id(step.version, step.schema.full))
            observed = _to_observed(dataset)
            decision = decide_event(
                observed, self._recorded_dataset(transaction, known), prefix=self._prefix
            )
            if decision is None or not decision.schema_changed:
                continue
            time = clock.time_of(step, is_creation=known is None)
            record, event = self._save_event(transaction, dataset, urn, decision, known, None, time)
            assert event is not None, "the past is only recorded if schemas are tracked"
            if known is None:
                created = event
            elif created is None:
                steps.append(event)
            known = record
        if history.current is None:
            return _RecordedPast(known, None, created, tuple(steps))
        current = replace(history.current, version=table.version)
        time = clock.time_of(current, is_creation=known is None)
        return _RecordedPast(known, time, created, tuple(steps))

    @staticmethod
    def _refresh_annotations(
        transaction: Transaction,
        annotations: AnnotationsByReporter,
        found: FoundDataset,
        known: KnownDataset | None,
        urn: Urn,
    ) -> AnnotationsByReporter:
        """The annotations of a dataset, updated with those of its source."""
        if known is not None and known.source == IMPORTED and known.schema_hash is not None:
            annotations = adopt_imported(
                annotations, transaction.schema(known.schema_hash), found.schema
            )
        return refresh_source_annotations(
            annotations, found.schema, found.source_metadata, urn.platform
        )

    @staticmethod
    def _recorded_dataset(
        transaction: Transaction, known: KnownDataset | None
    ) -> RecordedDataset | None:
        if known is None or known.schema_hash is None:
            return None
        return RecordedDataset(
            schema=transaction.schema(known.schema_hash),
            content=known.content,
            cloud_version=CloudVersion.parse(known.cloud_version),
            schema_version=SchemaVersion.parse(known.schema_version),
            is_live=known.state == "live",
        )

    @staticmethod
    def _load_source_aspects(transaction: Transaction, known: KnownDataset) -> Dataset:
        """The recorded dataset with the aspects that its source reports."""
        names = ("location", *SOURCE_ASPECTS)
        aspects = {name: transaction.aspect(known.urn, name) for name in names}
        return Dataset(
            urn=known.urn,
            name=known.name,
            platform=known.platform,
            format=known.format,
            schema=transaction.schema(known.schema_hash) if known.schema_hash else None,
            **aspects,
        )

    def _save_event(
        self,
        transaction: Transaction,
        found: FoundDataset,
        urn: Urn,
        decision: EventDecision,
        known: KnownDataset | None,
        last_metadata: RecordedMetadata | None,
        time: ChangeTime,
    ) -> tuple[KnownDataset, ChangeEvent | None]:
        """Save the record and the event of a change, and return both."""
        split_origin = self._split_origin(found)
        record = KnownDataset(
            urn=str(urn),
            name=dataset_name(found, urn),
            platform=urn.platform,
            format=found.format,
            source=self._source,
            state="live",
            cloud_version=str(decision.cloud_version),
            schema_version=str(decision.schema_version),
            schema_hash=transaction.save_schema(found.schema),
            fingerprint=found.schema.full,
            content=found.content,
            created_at=time.at if known is None else known.created_at,
            updated_at=self._at,
        )
        if known is not None and self._is_untracked(decision, known):
            versions = {name: getattr(known, name) for name in ("cloud_version", "schema_version")}
            record = replace(record, **versions)
            transaction.save(record)
            return record, None
        event = ChangeEvent(
            event_id=make_event_id(
                record.urn, decision.type, record.cloud_version, found.content, found.schema.full
            ),
            urn=record.urn,
            type=decision.type,
            at=time.at,
            cause=time.cause,
            cloud_version=record.cloud_version,
            schema_version=record.schema_version,
            author=time.author,
            source_path=found.location.uri,
            old_schema=None if known is None else known.schema_hash,
            new_schema=record.schema_hash,
            findings=decision.findings,
            flags=decision.flags,
            summary="; ".join(
                filter(
                    None,
                    (
                        summary_of(decision.type, decision.findings, decision.flags),
                        "" if last_metadata is None else describe_differences(last_metadata, found),
                        "" if split_origin in (None, record.urn) else f"split from {split_origin}",
                    ),
                )
            ),
            metadata=self._event_metadata(found, time),
        )
        transaction.save(record)
        transaction.save_event(event, notify=time.should_notify, recorded_at=time.recorded_at)
        if decision.schema_changed:
            transaction.save_schema_version(record, event)
        return record, event

    def _is_untracked(self, decision: EventDecision, known: KnownDataset | None) -> bool:
        is_change = decision.type is EventType.SCHEMA_CHANGED and known is not None
        return is_change and not self._tracks_schemas

    def _save_aspects(
        self,
        transaction: Transaction,
        dataset: Dataset,
        last_metadata: RecordedMetadata | None,
        inherited: InheritedAnnotations,
    ) -> None:
        recorded = None if last_metadata is None else last_metadata.dataset
        reported = [
            name
            for name in SOURCE_ASPECTS
            if getattr(dataset, name) != getattr(recorded, name, None)
        ]
        names = dict.fromkeys((*_SCANNED_ASPECTS, *reported, *inherited.aspects))
        aspects = {name: getattr(dataset, name) for name in names}
        transaction.save_aspects(dataset.urn, aspects, writer=_WRITER, at=self._at)

    def _split_origin(self, found: FoundDataset) -> str | None:
        """The URN of the dataset from which a found dataset was split."""
        return None if found.split_from is None else str(self._urn_of(found.split_from))

    def _event_metadata(self, found: FoundDataset, time: ChangeTime) -> dict[str, str | int]:
        """Counts of the dataset at the time of the event, and metadata of the commit in its log."""
        statistics, table = found.statistics, found.table
        metadata: dict[str, str | int | None] = {
            "source": self._source,
            "format": found.format,
            "split_from": self._split_origin(found),
        }
        if table is None or time.metadata.get("table_version", table.version) == table.version:
            metadata |= {
                "files": None if found.is_reported_by_source else statistics.file_count,
                "bytes": statistics.total_size_bytes if statistics.total_size_exact else None,
                "rows": statistics.row_count if statistics.row_count_exact else None,
                "table_version": None if table is None else table.version,
                "operation": None if table is None else table.operation,
            }
        metadata |= time.metadata
        return {name: value for name, value in metadata.items() if value is not None}


class _RecordedPast(NamedTuple):
    """The result of recording the schema changes in a table's log.

    `known` is the record of the table after these changes, and `current_time` is when its current
    schema was written. `created` is the event of a new table. If the table was known, `steps` are
    the changes since the last scan.
    """

    known: KnownDataset | None
    current_time: ChangeTime | None = None
    created: ChangeEvent | None = None
    steps: tuple[ChangeEvent, ...] = ()


def _to_observed(found: FoundDataset) -> ObservedDataset:
    return ObservedDataset(
        schema=found.schema,
        content=found.content,
        is_from_source=found.is_reported_by_source,
        format=found.format,
        reverted=found.reverted,
    )


def _with_field_annotations(
    found: FoundDataset, annotations: AnnotationsByReporter
) -> FoundDataset:
    """A found dataset with the effective annotations of its fields."""
    if not any(key.path for reported in annotations.values() for key in reported):
        return found
    return replace(
        found,
        schema=annotate_scanned_schema(
            found.schema,
            refresh_source_annotations(annotations, found.schema, found.source_metadata, ""),
        ),
    )


def unchanged_dataset(found: FoundDataset, urn: Urn, known: KnownDataset) -> RecordingOutcome:
    """The outcome for a dataset that did not change."""
    dataset = dataset_of(found, urn)
    return RecordingOutcome(
        dataset=_with_versions(dataset, known.cloud_version, known.schema_version)
    )


def _with_versions(dataset: Dataset, cloud_version: str, schema_version: str) -> Dataset:
    versioning = Versioning(cloud_version=cloud_version, schema_version=schema_version)
    return replace(dataset, versioning=versioning)


def dataset_of(found: FoundDataset, urn: Urn, **inherited: Any) -> Dataset:
    """A found dataset with its URN and inherited aspects, but without versions."""
    dataset = Dataset(
        urn=str(urn),
        name=dataset_name(found, urn),
        platform=urn.platform,
        format=found.format,
        location=found.location,
        schema=found.schema,
        statistics=found.statistics,
        drift=found.drift,
        **inherited,
    )
    return (
        dataset
        if found.source_metadata is None
        else apply_source_metadata(dataset, found.source_metadata)
    )
