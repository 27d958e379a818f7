"""The history of a dataset: renames, merges and splits, and schema changes in a table's log."""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

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
from lumos.model.change import Cause, ChangeEvent, EventType, make_event_id
from lumos.model.dataset import Location
from lumos.model.dataset_pattern import strip_extensions
from lumos.model.discovery import FoundDataset, PastSchema, TableState
from lumos.model.schema import Schema
from lumos.model.type_path import field_paths
from lumos.model.urn import Urn
from lumos.schemas.wording import split_summary
from lumos.store import KnownDataset, Transaction

# Aspects that users and tools annotate. Measured aspects are not inherited by parts of a split.
_INHERITED: Final = ("documentation", "ownership", "governance", "properties", "schedule")
_MAX_PARTS: Final = 1_000


def dataset_name(found: FoundDataset, urn: Urn) -> str:
    """The name of a found dataset."""
    return strip_extensions(urn.name) if found.name is None else found.name


class InheritedAnnotations(NamedTuple):
    """The aspects and annotations that a part inherits from the dataset that was split."""

    aspects: Mapping[str, Any] = {}
    annotations: Mapping[str, AnnotationMap] = {}


class DatasetSuccession:
    """Records renames, merges and splits, so that datasets continue their predecessors' history."""

    def __init__(self, urn_of: Callable[[str], Urn], *, source: str, at: datetime) -> None:
        self._urn_of = urn_of
        self._source = source
        self._at = at

    def continue_predecessors(
        self, transaction: Transaction, found: FoundDataset, urn: Urn, *, name: str
    ) -> tuple[ChangeEvent, ...]:
        """Rename the predecessor of a dataset, and merge the other predecessors into it."""
        renamed: tuple[ChangeEvent, ...] = ()
        old = self._known_at(transaction, found.renamed_from)
        if old is not None and transaction.known(str(urn)) is None:
            transaction.rename(old, to=str(urn), name=name, at=self._at)
            renamed = (self._save_event(transaction, EventType.RENAMED, urn, old, old, found),)
        return (*renamed, *self.merge_predecessors(transaction, found, urn))

    def merge_predecessors(
        self, transaction: Transaction, found: FoundDataset, urn: Urn
    ) -> tuple[ChangeEvent, ...]:
        """Merge the predecessors of a dataset into it, if the dataset is recorded."""
        events = []
        for path in filter(None, (found.renamed_from, *found.merged_from)):
            old, current = self._known_at(transaction, path), transaction.known(str(urn))
            if old is not None and current is not None and old.state == "live":
                transaction.merge_into(old, into=str(urn), at=self._at)
                event = self._save_event(transaction, EventType.MERGED, urn, old, current, found)
                events.append(event)
        return tuple(events)

    def split_origin(
        self, transaction: Transaction, found: FoundDataset, known: KnownDataset | None
    ) -> KnownDataset | None:
        """Return the dataset from which a found dataset was split; None if it is already recorded.

        A part may be found later than the other parts, for example after a file became readable.
        """
        old = self._known_at(transaction, found.split_from)
        if old is None or old.state == "missing" or (old.state == "split" and known is not None):
            return None
        return old

    def inherit(
        self, transaction: Transaction, old: KnownDataset, found: FoundDataset, urn: Urn
    ) -> InheritedAnnotations:
        """The annotations of a split dataset that apply to a part, unless it has its own."""
        own_aspects = {
            name for name in _INHERITED if transaction.aspect(str(urn), name) is not None
        }
        aspects = {name: transaction.aspect(old.urn, name) for name in _INHERITED}
        old_annotations = transaction.annotations.get(old.urn)
        if properties := aspects["properties"]:
            # Annotations that the source reported describe the old dataset, not its parts.
            reported = old_annotations.get(DATA_SOURCE, {})
            aspects["properties"] = {
                name: text
                for name, text in properties.items()
                if AnnotationKey("", "property", name) not in reported
            }
        paths = {"", *field_paths(found.schema)}
        inherited: AnnotationsByReporter = {}
        if not claimed_keys(transaction.annotations.get(str(urn))):
            inherited = drop_uncontested_source_annotations(old_annotations, fields_only=False)
        annotations = {
            reporter: {key: annotation for key, annotation in reported.items() if key.path in paths}
            for reporter, reported in match_field_case(inherited, found.schema).items()
        }
        return InheritedAnnotations(
            {name: value for name, value in aspects.items() if value and name not in own_aspects},
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
        old = self._known_at(transaction, path)
        urns = sorted(map(str, parts))
        if old is None or old.state != "live" or urns == [old.urn]:
            return None
        is_continued = old.urn in urns
        # The cloud version of a part that keeps the URN changes with the split itself. So it cannot
        # distinguish a repeated scan from a second split after the parts were merged again.
        generation = (
            transaction.last_event_id(old.urn, EventType.MERGED)
            if is_continued
            else old.cloud_version
        )
        location: Location | None = transaction.aspect(old.urn, "location")
        event = ChangeEvent(
            event_id=make_event_id(old.urn, EventType.SPLIT, generation or "", *urns),
            urn=old.urn,
            type=EventType.SPLIT,
            at=self._at,
            cause="scan",
            cloud_version=old.cloud_version,
            schema_version=old.schema_version,
            source_path=None if location is None else location.uri,
            old_schema=old.schema_hash,
            new_schema=old.schema_hash,
            summary=split_summary(_part_names(parts)),
            metadata={
                "source": self._source,
                "part_count": len(urns),
                "parts": " ".join(urns[:_MAX_PARTS]),
            },
        )
        is_new = transaction.event(event.event_id) is None
        transaction.save_event(event)
        if not is_continued:
            transaction.mark_split(old, at=self._at)
        if not is_new:
            return None
        sizes = {str(urn): found.statistics.total_size_bytes for urn, found in parts.items()}
        transaction.costs.divide_overrides(old.urn, sizes)
        return event

    def _known_at(self, transaction: Transaction, path: str | None) -> KnownDataset | None:
        return None if path is None else transaction.known(str(self._urn_of(path)))

    def _save_event(
        self,
        transaction: Transaction,
        type: EventType,
        urn: Urn,
        old: KnownDataset,
        current: KnownDataset,
        found: FoundDataset,
    ) -> ChangeEvent:
        verb = "was" if type is EventType.RENAMED else "joined with"
        event = ChangeEvent(
            event_id=make_event_id(str(urn), type, old.urn, old.cloud_version),
            urn=str(urn),
            type=type,
            at=self._at,
            cause="scan",
            cloud_version=current.cloud_version,
            schema_version=current.schema_version,
            source_path=found.location.uri,
            old_schema=old.schema_hash,
            new_schema=current.schema_hash,
            summary=f"{verb} {old.urn}",
            metadata={"source": self._source, "from": old.urn},
        )
        transaction.save_event(event)
        return event


def _part_names(parts: Mapping[Urn, FoundDataset]) -> list[str]:
    """The names of parts, with their folder if several parts have the same name."""
    ordered = sorted(parts.items(), key=lambda part: str(part[0]))
    names = [dataset_name(found, urn) for urn, found in ordered]
    counts = Counter(names)
    return [
        name if counts[name] == 1 else "/".join(urn.path[-2:])
        for name, (urn, _) in zip(names, ordered, strict=True)
    ]


# Later than any scan; `ChangeClock` replaces it by the time of the scan.
_UNKNOWN_TIME: Final = datetime.max.replace(tzinfo=UTC)


class ChangeTime(NamedTuple):
    """When a change happened, who made it, and whether to send notifications.

    `recorded_at` is the position of the change in the order of all changes; None means `at`.
    """

    at: datetime
    cause: Cause = "scan"
    author: str | None = None
    recorded_at: datetime | None = None
    should_notify: bool = True
    metadata: dict[str, str | int] = {}  # noqa: RUF012 - a tuple's default, never written to


class SchemaSteps(NamedTuple):
    """The schemas between the recorded and the current schema, and the log entry of the latter."""

    steps: tuple[PastSchema, ...]
    current: PastSchema | None


class LastRecordedSchema(NamedTuple):
    """The recorded schema, the time of the scan that recorded it, and the identity of the table."""

    schema: Schema
    at: datetime
    identity: str | None = None


def schema_steps(
    table: TableState,
    current: Schema,
    recorded: LastRecordedSchema | None,
    *,
    identity: str | None = None,
) -> SchemaSteps:
    """The steps from the recorded schema, or from the beginning of the log, to the current one."""
    past = table.past
    is_in_log = bool(past) and past[-1].schema.full == current.full
    last, earlier = (past[-1], past[:-1]) if is_in_log else (None, past)
    if last is not None and recorded is not None and last.at <= recorded.at:
        # The log does not list this change of the schema (such as a change of partition columns).
        # The table's last commit made it, or a commit that wrote no data.
        at = table.at if table.at > recorded.at else _UNKNOWN_TIME
        last = replace(last, at=at, exact_time=False)
    if recorded is None:
        if last is None:
            last = PastSchema(schema=current, at=table.at, version=table.version, exact_time=False)
        return SchemaSteps(earlier, last)
    if identity != recorded.identity and past and past[0].at > recorded.at:
        # This is another table at the same location, so all entries of its log are new.
        return SchemaSteps(earlier, last)
    # Snapshots are not ordered by name, and logs lose their beginning, so compare schemas.
    matching = [
        number for number, each in enumerate(past) if each.schema.shape == recorded.schema.shape
    ]
    if not matching:
        return SchemaSteps((), last)
    # A schema that was restored occurs twice in the log. The last scan recorded the later one of
    # those that existed then.
    last_seen = max(
        (number for number in matching if past[number].at <= recorded.at), default=matching[-1]
    )
    return SchemaSteps(earlier[last_seen + 1 :], last)


def has_new_schema(table: TableState, *, since: datetime, now: datetime) -> bool:
    """Whether the log has a newer schema change, even if a later commit has reverted it."""
    return len(table.past) > 1 and since < table.past[-1].at <= now


class ChangeClock:
    """Adjusts the times in a table's log to the recorded history.

    Clocks of writers may be wrong. So a change never gets an earlier time than the one before it,
    or a later time than the scan that found it.
    """

    def __init__(self, *, since: datetime | None, now: datetime) -> None:
        self._is_first_scan = since is None
        self._last = since
        self._now = now

    def time_of(self, step: PastSchema, *, is_creation: bool = False) -> ChangeTime:
        """The time of a step; for a new table, only its creation causes notifications."""
        at = min(step.at if self._last is None else max(step.at, self._last), self._now)
        self._last = at
        metadata: dict[str, str | int] = {"table_version": step.version}
        if step.operation is not None:
            metadata["operation"] = step.operation
        if not step.exact_time or at != step.at:
            metadata["time"] = "approximate"
        return ChangeTime(
            at=at,
            cause="log",
            author=step.author,
            recorded_at=None if self._is_first_scan else self._now,
            should_notify=is_creation or not self._is_first_scan,
            metadata=metadata,
        )
