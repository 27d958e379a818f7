"""Records what a scan found: in small transactions, each safe to repeat."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from lumos.annotations.attribution import adopted, retold, seen_again, written
from lumos.discovery.inheritance import Inheritance, Succession, dataset_name, event_id
from lumos.discovery.source_metadata import (
    TOLD_ASPECTS,
    differences,
    is_as_told,
    says_as_before,
    tell,
)
from lumos.discovery.table_history import Calendar, Moment, Reached, way_to, went_on
from lumos.model.change import ChangeEvent, EventType
from lumos.model.dataset import Dataset, Governance, Location, Properties, Statistics, Versioning
from lumos.model.discovery import OF_TABLE, FoundDataset, SourceMetadata
from lumos.model.urn import Urn
from lumos.model.version import CloudVersion, SchemaVersion
from lumos.model.words import Said
from lumos.schemas.sightings import Decision, OnRecord, Sighting, decide
from lumos.schemas.wording import summary_of
from lumos.store import KnownDataset, Store, Transaction
from lumos.store.records import IMPORTED

_WRITER = "scan"
_BATCH = 50
_USUAL_CLASS = "standard"
_SCANNED_ASPECTS = ("location", "statistics", "drift")


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset after its sighting was recorded; no event means that all was as before.

    `earlier` are changes since the scan before that its log tells of, beside the last one.
    """

    dataset: Dataset
    event: ChangeEvent | None = None
    earlier: tuple[ChangeEvent, ...] = ()

    def as_recorded(self, events: Mapping[str, ChangeEvent]) -> "Outcome":
        """With the events as they are on record, by their ids."""
        if self.event is None:
            return self
        return msgspec.structs.replace(
            self,
            event=events.get(self.event.event_id, self.event),
            earlier=tuple(events.get(each.event_id, each) for each in self.earlier),
        )


class Recorder:
    """Writes sightings of one source into the store."""

    def __init__(
        self,
        store: Store,
        *,
        source: str,
        prefix: str,
        urn_of: Callable[[str], Urn],
        at: datetime,
    ) -> None:
        self._store = store
        self.locations: dict[str, Location] = store.aspects("location", source=source)
        self._urn_of = urn_of
        self._succession = Succession(urn_of, source=source, at=at)
        self._source = source
        self._prefix = prefix
        self._at = at

    @cached_property
    def _statistics(self) -> dict[str, Statistics]:
        return self._store.aspects("statistics", source=self._source)

    @cached_property
    def _properties(self) -> dict[str, Properties]:
        return self._store.aspects("properties", source=self._source)

    @cached_property
    def _governance(self) -> dict[str, Governance]:
        return self._store.aspects("governance", source=self._source)

    @cached_property
    def _said(self) -> dict[str, Said]:
        return self._store.remarks.of_source(self._source)

    def record(
        self, datasets: Iterable[tuple[Urn, FoundDataset]], known: Mapping[str, KnownDataset]
    ) -> Iterator[Outcome]:
        """Records found datasets; `known` spares the transaction where nothing changed."""
        remaining = iter(datasets)
        while some := list(islice(remaining, _BATCH)):
            yield from map(self._labelled, self._record_together(some, known))

    def _labelled(self, outcome: Outcome) -> Outcome:
        """With the labels of the dataset, which say whether ranges of columns may be told."""
        statistics = outcome.dataset.statistics
        if statistics is None or not statistics.columns:
            return outcome
        labels = self._governance.get(outcome.dataset.urn, outcome.dataset.governance)
        dataset = msgspec.structs.replace(outcome.dataset, governance=labels)
        return msgspec.structs.replace(outcome, dataset=dataset)

    def _record_together(
        self, datasets: Sequence[tuple[Urn, FoundDataset]], known: Mapping[str, KnownDataset]
    ) -> Iterator[Outcome]:
        named = {str(urn): (urn, found) for urn, found in datasets}
        as_written = {
            name: _as_written(found, self._said.get(name, {})) for name, (_, found) in named.items()
        }
        changed = {
            name
            for name in named
            if name not in known
            or not self._is_as_known(as_written[name], known[name])
            # Scans of folders inside may have recorded parts before they were known as such.
            or named[name][1].split_from is not None
            or named[name][1].merged_from
        }
        told = {
            name
            for name, (urn, found) in named.items()
            if name not in changed
            and known[name].source == self._source
            and (self._tells_more(name, found) or known[name].name != dataset_name(found, urn))
        }
        remembered = {
            name
            for name, (_, found) in named.items()
            if found.memory is not None and found.memory.body != found.memory.recalled
        }

        def attempt(transaction: Transaction) -> tuple[dict[str, Outcome], Transaction]:
            outcomes: dict[str, Outcome] = {}
            for name, (urn, found) in sorted(named.items()):
                if name in changed:
                    outcomes[name] = self._record(transaction, found, urn)
                    continue
                if name in told:
                    self._tell_more(transaction, found, name)
                if name in remembered and not self._is_overtaken(transaction, found, name):
                    self._remember(transaction, found, name)
            return outcomes, transaction

        self._store.keep_schemas(as_written[name].schema for name in changed)
        self._store.keep_schemas(
            memory.schema for name in remembered if (memory := named[name][1].memory) is not None
        )
        outcomes: dict[str, Outcome] = {}
        if changed or told or remembered:
            outcomes, transaction = self._store.transact(attempt)
            # Who breaks downstream was added to the events when all of them were written.
            recorded = {event.event_id: event for event in transaction.new_events}
            outcomes = {name: each.as_recorded(recorded) for name, each in outcomes.items()}
        for name, (urn, _) in named.items():
            yield outcomes.get(name) or unchanged(as_written[name], urn, known[name])

    def _tells_more(self, urn: str, found: FoundDataset) -> bool:
        # What files tell of themselves only changes with them; tables are counted now and then.
        is_counted_anew = (
            bool(found.statistics.columns) or self._lies_otherwise(urn, found)
            if not found.is_reported_by_source
            else self._statistics.get(urn) != found.statistics
        )
        return (
            is_counted_anew
            or self.locations.get(urn) != found.location
            or self._says_otherwise(urn, found)
        )

    def _lies_otherwise(self, urn: str, found: FoundDataset) -> bool:
        """Whether files went to another storage class, which leaves them as they are."""
        by_class = found.statistics.bytes_by_class
        if not by_class or by_class.keys() == {_USUAL_CLASS}:
            # Nothing comes back from another class without being written anew.
            return False
        known = self._statistics.get(urn)
        return known is None or known.bytes_by_class != by_class

    def _says_otherwise(self, urn: str, found: FoundDataset) -> bool:
        """Whether the place has other words now behind those of people; files change with them."""
        if found.told is None or urn not in self._said:
            return False
        said = self._said[urn]
        return said != seen_again(said, found.schema, found.told, Urn.parse(urn).platform)

    def _tell_more(self, transaction: Transaction, found: FoundDataset, urn: str) -> None:
        """Keeps what is new about the same data: statistics, how it is told apart, old words."""
        self._keep(transaction, urn, "statistics", found.statistics)
        self._keep(transaction, urn, "location", found.location)
        known = transaction.known(urn)
        name = dataset_name(found, Urn.parse(urn))
        if known is not None and known.name != name:
            # An earlier version called it differently, such as by its extension.
            known = msgspec.structs.replace(known, name=name)
            transaction.save(known)
        self._heard(transaction, found, Urn.parse(urn), known)

    def _keep(self, transaction: Transaction, urn: str, name: str, value: object) -> None:
        if transaction.aspect(urn, name) != value:
            transaction.save_aspect(urn, name, value, writer=_WRITER, at=self._at)

    @staticmethod
    def _is_overtaken(transaction: Transaction, found: FoundDataset, urn: str) -> bool:
        """Whether a scan of another root has recorded the dataset since this one recalled it.

        What this scan found may be older then. The next scan compares again.
        """
        if found.memory is None:
            return False
        recorded = transaction.schema_memory(urn)
        return recorded not in (None, found.memory.recalled, found.memory.body)

    @staticmethod
    def _remember(transaction: Transaction, found: FoundDataset, urn: str) -> None:
        """Keeps what the next scan must know of the schemas of the dataset's files."""
        memory = found.memory
        if memory is not None and memory.body != memory.recalled:
            transaction.save_schema_memory(urn, memory.body, memory.schema)

    def remove(self, transaction: Transaction, known: KnownDataset) -> None:
        """Records that a dataset's files are gone; its history stays."""
        cloud_version = CloudVersion.parse(known.cloud_version).next(prefix=self._prefix)
        location = self.locations.get(known.urn)
        gone = msgspec.structs.replace(
            known, state="missing", cloud_version=str(cloud_version), updated_at=self._at
        )
        transaction.save(gone)
        transaction.save_event(
            ChangeEvent(
                event_id=event_id(known.urn, EventType.DELETED, str(cloud_version), known.content),
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
        """Records which datasets came apart, once all of their parts are on record."""
        parts: dict[str, dict[Urn, FoundDataset]] = {}
        for urn, found in datasets:
            if found.split_from is not None:
                parts.setdefault(found.split_from, {})[urn] = found
        events = (self._succession.split(transaction, path, parts[path]) for path in sorted(parts))
        return tuple(event for event in events if event is not None)

    def _is_as_known(self, found: FoundDataset, known: KnownDataset) -> bool:
        return (
            known.state == "live"
            and known.content == found.content
            and known.fingerprint == found.schema.full
            and (found.table is None or self._is_table_as_known(found, known))
        )

    def _is_table_as_known(self, found: FoundDataset, known: KnownDataset) -> bool:
        """Whether a table with the same data has nothing else to tell of itself, or of its past."""
        assert found.table is not None
        recorded = self._properties.get(known.urn), self.locations.get(known.urn)
        return is_as_told(found, *recorded, known.platform) and not went_on(
            found.table, since=known.updated_at, now=self._at
        )

    def _record(self, transaction: Transaction, found: FoundDataset, urn: Urn) -> Outcome:
        moved = self._succession.begin(transaction, found, urn, name=dataset_name(found, urn))
        known = transaction.known(str(urn))
        is_live = known is not None and known.state == "live"
        if known is not None and is_live and self._is_overtaken(transaction, found, str(urn)):
            return unchanged(found, urn, known)
        outcome = self._record_found(transaction, found, urn, known, moved)
        self._remember(transaction, found, str(urn))
        return outcome

    def _record_found(
        self,
        transaction: Transaction,
        found: FoundDataset,
        urn: Urn,
        known: KnownDataset | None,
        moved: ChangeEvent | None,
    ) -> Outcome:
        succession = self._succession
        told = found.told
        if known is not None and self._has_lost_its_log(transaction, found, known):
            told = SourceMetadata()
        inherited = Inheritance()
        if (origin := succession.origin(transaction, found, known)) is None:
            found = msgspec.structs.replace(found, split_from=None)
        elif known is None or known.urn != origin.urn:
            inherited = succession.inherit(transaction, origin, found, urn)
        said = self._heard(transaction, msgspec.structs.replace(found, told=told), urn, known)
        said = said or inherited.annotations
        before = None
        if told is not None and known is not None:
            before = self._before(transaction, known)
        past = self._past(transaction, found, urn, known, said)
        found = _as_written(found, said)
        dataset = dataset_of(found, urn, **inherited.aspects)
        if told is not None and before is not None:
            dataset = retold(tell(dataset, told, before=before), said)
        elif told is not None:
            dataset = retold(dataset, said)
        seen = _sighting(found)
        if found.table is not None and before is not None:
            seen = msgspec.structs.replace(seen, retold=not says_as_before(before, dataset))
        decision = decide(seen, self._on_record(transaction, past.known), prefix=self._prefix)
        if decision is None:
            assert past.known is not None
            if told is not None:
                self._tell_more(transaction, found, str(urn))
            if found.table is not None and before is not None:
                self._keep(transaction, str(urn), "properties", dataset.properties)
            self._save_inherited(transaction, str(urn), inherited)
            *earlier, last = (*past.steps, moved) if moved else past.steps or (None,)
            as_before = unchanged(found, urn, past.known)
            return msgspec.structs.replace(as_before, event=last, earlier=tuple(earlier))
        if known is None or known.state != "live":
            transaction.drop_alias(str(urn))
        dataset = _versioned(dataset, str(decision.cloud_version), str(decision.schema_version))
        moment = past.present if decision.schema_changed else None
        event = self._save(
            transaction, found, urn, decision, past.known, before, moment or Moment(self._at)
        )
        self._save_aspects(transaction, dataset, before, inherited)
        succession.complete(transaction, found, urn)
        return Outcome(dataset=dataset, event=past.created or event, earlier=past.steps)

    @staticmethod
    def _has_lost_its_log(
        transaction: Transaction, found: FoundDataset, known: KnownDataset
    ) -> bool:
        """Whether a table became loose files, so that what its log said counts no longer."""
        if found.told is not None or known.format == found.format:
            return False
        properties: Properties | None = transaction.aspect(known.urn, "properties")
        return f"{known.platform}.{OF_TABLE}version" in (properties or {})

    def _past(
        self,
        transaction: Transaction,
        found: FoundDataset,
        urn: Urn,
        known: KnownDataset | None,
        said: Said,
    ) -> "_Past":
        """Records what a table's log tells of the time since its last sighting, or of all time."""
        table = found.table
        is_followed = known is None or (known.format == found.format and known.state == "live")
        if table is None or not is_followed:
            return _Past(known)
        calendar = Calendar(since=None if known is None else known.updated_at, now=self._at)
        on_record = self._on_record(transaction, known)
        reached = None
        if known is not None and on_record is not None:
            location: Location | None = transaction.aspect(known.urn, "location")
            identity = location.identity if location is not None else None
            reached = Reached(on_record.schema, known.updated_at, identity)
        way = way_to(table, found.schema, reached, identity=found.location.identity)
        created = None
        steps: list[ChangeEvent] = []
        for step in way.steps:
            then = _as_written(msgspec.structs.replace(found, schema=step.schema), said)
            then = msgspec.structs.replace(then, content=event_id(step.version, step.schema.full))
            seen = _sighting(then)
            decision = decide(seen, self._on_record(transaction, known), prefix=self._prefix)
            if decision is None or not decision.schema_changed:
                continue
            moment = calendar.moment(step, is_creation=known is None)
            event = self._save(transaction, then, urn, decision, known, None, moment)
            if known is None:
                created = event
            elif created is None:
                steps.append(event)
            known = transaction.known(str(urn))
        if way.present is None:
            return _Past(known, None, created, tuple(steps))
        present = msgspec.structs.replace(way.present, version=table.version)
        moment = calendar.moment(present, is_creation=known is None)
        return _Past(known, moment, created, tuple(steps))

    def _heard(
        self, transaction: Transaction, found: FoundDataset, urn: Urn, known: KnownDataset | None
    ) -> Said:
        """What is said of a dataset, brought up to date with what its place says."""
        if known is None:
            return {}
        before = transaction.remarks.get(known.urn)
        said = before
        if known.source == IMPORTED and known.schema_hash is not None:
            said = adopted(said, transaction.schema(known.schema_hash), found.schema)
        if said:
            said = seen_again(said, found.schema, found.told, urn.platform)
        for reporter in said.keys() | before.keys():
            if said.get(reporter) != before.get(reporter):
                transaction.remarks.put(known.urn, reporter, said.get(reporter, {}))
        return said

    @staticmethod
    def _on_record(transaction: Transaction, known: KnownDataset | None) -> OnRecord | None:
        if known is None or known.schema_hash is None:
            return None
        return OnRecord(
            schema=transaction.schema(known.schema_hash),
            content=known.content,
            cloud_version=CloudVersion.parse(known.cloud_version),
            schema_version=SchemaVersion.parse(known.schema_version),
            is_live=known.state == "live",
        )

    @staticmethod
    def _before(transaction: Transaction, known: KnownDataset) -> Dataset:
        """As much of the dataset on record as its place tells of."""
        names = ("location", *TOLD_ASPECTS)
        aspects = {name: transaction.aspect(known.urn, name) for name in names}
        return Dataset(
            urn=known.urn,
            name=known.name,
            platform=known.platform,
            format=known.format,
            schema=transaction.schema(known.schema_hash) if known.schema_hash else None,
            **aspects,
        )

    def _save(
        self,
        transaction: Transaction,
        found: FoundDataset,
        urn: Urn,
        decision: Decision,
        known: KnownDataset | None,
        before: Dataset | None,
        moment: Moment,
    ) -> ChangeEvent:
        origin = self._origin(found)
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
            created_at=moment.at if known is None else known.created_at,
            updated_at=self._at,
        )
        event = ChangeEvent(
            event_id=event_id(
                record.urn, decision.type, record.cloud_version, found.content, found.schema.full
            ),
            urn=record.urn,
            type=decision.type,
            at=moment.at,
            cause=moment.cause,
            cloud_version=record.cloud_version,
            schema_version=record.schema_version,
            author=moment.author,
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
                        "" if before is None else differences(before, found),
                        "" if origin in (None, record.urn) else f"split from {origin}",
                    ),
                )
            ),
            metadata=self._metadata(found, moment),
        )
        transaction.save(record)
        transaction.save_event(event, is_news=moment.is_news, recorded_at=moment.recorded_at)
        if decision.schema_changed:
            transaction.save_schema_version(record, event)
        return event

    def _save_aspects(
        self,
        transaction: Transaction,
        dataset: Dataset,
        before: Dataset | None,
        inherited: Inheritance,
    ) -> None:
        told = [
            name
            for name in TOLD_ASPECTS
            if getattr(dataset, name) != (None if before is None else getattr(before, name))
        ]
        names = dict.fromkeys((*_SCANNED_ASPECTS, *told, *inherited.aspects))
        aspects = {name: getattr(dataset, name) for name in names}
        transaction.save_aspects(dataset.urn, aspects, writer=_WRITER, at=self._at)
        self._save_inherited(transaction, dataset.urn, Inheritance({}, inherited.annotations))

    def _save_inherited(self, transaction: Transaction, urn: str, inherited: Inheritance) -> None:
        """Adds what a part inherits that is on record already and did not change."""
        if inherited.aspects:
            transaction.save_aspects(urn, inherited.aspects, writer=_WRITER, at=self._at)
        for reporter, words in inherited.annotations.items():
            transaction.remarks.put(urn, reporter, words)

    def _origin(self, found: FoundDataset) -> str | None:
        """The URN of the dataset that this one was split from."""
        return None if found.split_from is None else str(self._urn_of(found.split_from))

    def _metadata(self, found: FoundDataset, moment: Moment) -> dict[str, str | int]:
        """What the dataset was like when the event was recorded, or what a log tells of then."""
        statistics, table = found.statistics, found.table
        facts: dict[str, str | int | None] = {
            "source": self._source,
            "format": found.format,
            "split_from": self._origin(found),
        }
        if table is None or moment.metadata.get("table_version", table.version) == table.version:
            facts |= {
                "files": None if found.is_reported_by_source else statistics.file_count,
                "bytes": statistics.total_size_bytes if statistics.total_size_exact else None,
                "rows": statistics.row_count if statistics.row_count_exact else None,
                "table_version": None if table is None else table.version,
                "operation": None if table is None else table.operation,
            }
        facts |= moment.metadata
        return {name: fact for name, fact in facts.items() if fact is not None}


class _Past(NamedTuple):
    """What is on record once a table's past is, when its present began, and its birth, if new.

    Of one that was known, `steps` are the changes that it went through since.
    """

    known: KnownDataset | None
    present: Moment | None = None
    created: ChangeEvent | None = None
    steps: tuple[ChangeEvent, ...] = ()


def _sighting(found: FoundDataset) -> Sighting:
    return Sighting(
        schema=found.schema,
        content=found.content,
        told=found.is_reported_by_source,
        format=found.format,
        reverted=found.reverted,
    )


def _as_written(found: FoundDataset, said: Said) -> FoundDataset:
    """A found dataset with the words on its fields that count."""
    if not said:
        return found
    return msgspec.structs.replace(
        found, schema=written(found.schema, seen_again(said, found.schema, found.told, ""))
    )


def unchanged(found: FoundDataset, urn: Urn, known: KnownDataset) -> Outcome:
    """A dataset as it is on record, with what was found of it now."""
    dataset = dataset_of(found, urn)
    return Outcome(dataset=_versioned(dataset, known.cloud_version, known.schema_version))


def _versioned(dataset: Dataset, cloud_version: str, schema_version: str) -> Dataset:
    versioning = Versioning(cloud_version=cloud_version, schema_version=schema_version)
    return msgspec.structs.replace(dataset, versioning=versioning)


def dataset_of(found: FoundDataset, urn: Urn, **inherited: Any) -> Dataset:
    """A found dataset under its URN, with aspects of an earlier one, before it has any version."""
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
    return dataset if found.told is None else tell(dataset, found.told)
