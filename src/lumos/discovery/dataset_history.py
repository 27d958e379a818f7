"""The history of a dataset: renames, merges and splits, and the past that a table's log reports."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec

from lumos.annotations.attribution import (
    drop_uncontested_source_annotations,
    match_field_case,
    refresh_source_annotations,
)
from lumos.annotations.rules import claimed_keys
from lumos.model.annotation import (
    DATA_SOURCE,
    AnnotationKey,
    AnnotationMap,
    AnnotationsByReporter,
)
from lumos.model.change import Cause, ChangeEvent, EventType
from lumos.model.dataset import Location
from lumos.model.dataset_pattern import strip_extensions
from lumos.model.discovery import FoundDataset, PastSchema, TableState
from lumos.model.schema import Schema
from lumos.model.type_path import field_paths
from lumos.model.urn import Urn
from lumos.schemas.wording import split_summary
from lumos.store import KnownDataset, Transaction

# Aspects that people and tools annotate. Measured aspects start again with each part of a split.
_INHERITED: Final = ("documentation", "ownership", "governance", "properties", "schedule")
_MAX_PARTS: Final = 1_000


def event_id(*facts: str) -> str:
    """An id by the facts of a change, so that recording the same change twice has no effect."""
    return hashlib.blake2b("\n".join(facts).encode(), digest_size=16).hexdigest()


def dataset_name(found: FoundDataset, urn: Urn) -> str:
    """The name of a found dataset."""
    return strip_extensions(urn.name) if found.name is None else found.name


class InheritedAnnotations(NamedTuple):
    """What a part inherits from the dataset that it was split from."""

    aspects: Mapping[str, Any] = {}
    annotations: Mapping[str, AnnotationMap] = {}


class DatasetSuccession:
    """Continues the history of predecessors in a scan of one source."""

    def __init__(self, urn_of: Callable[[str], Urn], *, source: str, at: datetime) -> None:
        self._urn_of = urn_of
        self._source = source
        self._at = at

    def begin(
        self, transaction: Transaction, found: FoundDataset, urn: Urn, *, name: str
    ) -> ChangeEvent | None:
        """Rename the predecessor of a dataset, and merge others if it is recorded by then."""
        event = None
        old = self._known(transaction, found.renamed_from)
        if old is not None and transaction.known(str(urn)) is None:
            transaction.rename(old, to=str(urn), name=name, at=self._at)
            event = self._save_event(transaction, EventType.RENAMED, urn, old, old, found)
        return self.complete(transaction, found, urn) or event

    def complete(
        self, transaction: Transaction, found: FoundDataset, urn: Urn
    ) -> ChangeEvent | None:
        """Merge the datasets that are now part of this one, if it is recorded."""
        event = None
        for path in filter(None, (found.renamed_from, *found.merged_from)):
            old, now = self._known(transaction, path), transaction.known(str(urn))
            if old is not None and now is not None and old.state == "live":
                transaction.merge_into(old, into=str(urn), at=self._at)
                event = self._save_event(transaction, EventType.MERGED, urn, old, now, found)
        return event

    def origin(
        self, transaction: Transaction, found: FoundDataset, known: KnownDataset | None
    ) -> KnownDataset | None:
        """Return the dataset that a found one was split from.

        This includes a part that is found later than the others, such as an unreadable file.
        """
        old = self._known(transaction, found.split_from)
        if old is None or old.state == "missing" or (old.state == "split" and known is not None):
            return None
        return old

    def inherit(
        self, transaction: Transaction, old: KnownDataset, found: FoundDataset, urn: Urn
    ) -> InheritedAnnotations:
        """The annotations of a split dataset that fit a part, unless the part has its own."""
        own = {name for name in _INHERITED if transaction.aspect(str(urn), name) is not None}
        aspects = {name: transaction.aspect(old.urn, name) for name in _INHERITED}
        before = transaction.annotations.get(old.urn)
        if properties := aspects["properties"]:
            # The source's own annotations describe the old dataset, not its parts.
            reported = before.get(DATA_SOURCE, {})
            aspects["properties"] = {
                name: text
                for name, text in properties.items()
                if AnnotationKey("", "property", name) not in reported
            }
        paths = {"", *field_paths(found.schema)}
        stated: AnnotationsByReporter = {}
        if not claimed_keys(transaction.annotations.get(str(urn))):
            stated = drop_uncontested_source_annotations(before, fields_only=False)
        annotations = {
            reporter: {
                key: word for key, word in annotations_of_reporter.items() if key.path in paths
            }
            for reporter, annotations_of_reporter in match_field_case(stated, found.schema).items()
        }
        return InheritedAnnotations(
            {name: value for name, value in aspects.items() if value and name not in own},
            refresh_source_annotations(
                annotations, found.schema, found.source_metadata, urn.platform
            ),
        )

    def split(
        self, transaction: Transaction, path: str, parts: Mapping[Urn, FoundDataset]
    ) -> ChangeEvent | None:
        """Record that a dataset was split, and retire it unless one part continues its URN.

        Nothing is recorded if the split is already known.
        """
        old = self._known(transaction, path)
        urns = sorted(map(str, parts))
        if old is None or old.state != "live" or urns == [old.urn]:
            return None
        is_continued = old.urn in urns
        # The cloud version of a part that keeps the URN changes with the split itself. So it cannot
        # distinguish a repeated scan from a second split after the parts were merged again.
        started_at = (
            transaction.last_event_id(old.urn, EventType.MERGED)
            if is_continued
            else old.cloud_version
        )
        location: Location | None = transaction.aspect(old.urn, "location")
        event = ChangeEvent(
            event_id=event_id(old.urn, EventType.SPLIT, started_at or "", *urns),
            urn=old.urn,
            type=EventType.SPLIT,
            at=self._at,
            cause="scan",
            cloud_version=old.cloud_version,
            schema_version=old.schema_version,
            source_path=None if location is None else location.uri,
            old_schema=old.schema_hash,
            new_schema=old.schema_hash,
            summary=split_summary(_labels(parts)),
            metadata={
                "source": self._source,
                "part_count": len(urns),
                "parts": " ".join(urns[:_MAX_PARTS]),
            },
        )
        is_new = transaction.save_event(event)
        if not is_continued:
            transaction.mark_split(old, at=self._at)
        if not is_new:
            return None
        sizes = {str(urn): found.statistics.total_size_bytes for urn, found in parts.items()}
        transaction.costs.divide_overrides(old.urn, sizes)
        return event

    def _known(self, transaction: Transaction, path: str | None) -> KnownDataset | None:
        return None if path is None else transaction.known(str(self._urn_of(path)))

    def _save_event(
        self,
        transaction: Transaction,
        type: EventType,
        urn: Urn,
        old: KnownDataset,
        now: KnownDataset,
        found: FoundDataset,
    ) -> ChangeEvent:
        verb = "was" if type is EventType.RENAMED else "took in"
        event = ChangeEvent(
            event_id=event_id(str(urn), type, old.urn, old.cloud_version),
            urn=str(urn),
            type=type,
            at=self._at,
            cause="scan",
            cloud_version=now.cloud_version,
            schema_version=now.schema_version,
            source_path=found.location.uri,
            old_schema=old.schema_hash,
            new_schema=now.schema_hash,
            summary=f"{verb} {old.urn}",
            metadata={"source": self._source, "from": old.urn},
        )
        transaction.save_event(event)
        return event


def _labels(parts: Mapping[Urn, FoundDataset]) -> list[str]:
    """The names of datasets, with their folder if several have the same name."""
    ordered = sorted(parts.items(), key=lambda part: str(part[0]))
    names = [dataset_name(found, urn) for urn, found in ordered]
    times = Counter(names)
    return [
        name if times[name] == 1 else "/".join(urn.path[-2:])
        for name, (urn, _) in zip(names, ordered, strict=True)
    ]


# Later than any scan, so that the time of the scan is used instead.
_UNKNOWN: Final = datetime.max.replace(tzinfo=UTC)


class ChangeTime(NamedTuple):
    """When a change happened, who made it, and whether to notify people.

    `recorded_at` orders the change among all others; None means the time itself.
    """

    at: datetime
    cause: Cause = "scan"
    author: str | None = None
    recorded_at: datetime | None = None
    is_news: bool = True
    metadata: dict[str, str | int] = {}  # noqa: RUF012 - a tuple's default, never written to


class SchemaSteps(NamedTuple):
    """The schemas between the recorded one and the present one, and the origin of the latter."""

    steps: tuple[PastSchema, ...]
    present: PastSchema | None


class LastRecordedSchema(NamedTuple):
    """The recorded schema, the time of the scan that recorded it, and the table's identity then."""

    schema: Schema
    at: datetime
    identity: str | None = None


def schema_steps(
    table: TableState,
    present: Schema,
    before: LastRecordedSchema | None,
    *,
    identity: str | None = None,
) -> SchemaSteps:
    """The steps from the recorded schema, or from the beginning, to the present one."""
    past = table.past
    is_in_log = bool(past) and past[-1].schema.full == present.full
    last, between = (past[-1], past[:-1]) if is_in_log else (None, past)
    if last is not None and before is not None and last.at <= before.at:
        # The log's own history does not contain this change, such as other partition columns. It
        # happened with the table's last commit, or with one that wrote no data.
        at = table.at if table.at > before.at else _UNKNOWN
        last = msgspec.structs.replace(last, at=at, exact_time=False)
    if before is None:
        if last is None:
            last = PastSchema(schema=present, at=table.at, version=table.version, exact_time=False)
        return SchemaSteps(between, last)
    if identity != before.identity and past and past[0].at > before.at:
        # Another table at the same location, so its whole log is new.
        return SchemaSteps(between, last)
    # Snapshots are not ordered by name, and logs lose their beginning, so compare schemas.
    matching = [
        number for number, each in enumerate(past) if each.schema.shape == before.schema.shape
    ]
    if not matching:
        return SchemaSteps((), last)
    # A schema that was restored occurs twice in the log: use the last one that the scan has seen.
    last_seen = max(
        (number for number in matching if past[number].at <= before.at), default=matching[-1]
    )
    return SchemaSteps(between[last_seen + 1 :], last)


def has_new_schema(table: TableState, *, since: datetime, now: datetime) -> bool:
    """Whether the log has a newer schema change, even if the schema is the same in the end."""
    return len(table.past) > 1 and since < table.past[-1].at <= now


class ChangeClock:
    """Adjusts the times in a table's log to the recorded history.

    Clocks of writers may be wrong: no change happens before the one that it follows, or after the
    scan that found it.
    """

    def __init__(self, *, since: datetime | None, now: datetime) -> None:
        self._is_first_scan = since is None
        self._last = since
        self._now = now

    def time_of(self, step: PastSchema, *, is_creation: bool = False) -> ChangeTime:
        """When a step happened; of the past of a new table, only its creation is reported."""
        at = min(step.at if self._last is None else max(step.at, self._last), self._now)
        self._last = at
        facts: dict[str, str | int] = {"table_version": step.version}
        if step.operation is not None:
            facts["operation"] = step.operation
        if not step.exact_time or at != step.at:
            facts["time"] = "approximate"
        return ChangeTime(
            at=at,
            cause="log",
            author=step.author,
            recorded_at=None if self._is_first_scan else self._now,
            is_news=is_creation or not self._is_first_scan,
            metadata=facts,
        )
