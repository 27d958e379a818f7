"""The verbs of `lumos version`."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final, get_args

import msgspec

from lumos.errors import MisuseError, UnknownName
from lumos.model.change import DECLARED_BREAKING, ChangeEvent, EventType, Verdict
from lumos.model.dataset_pattern import DatasetPattern
from lumos.model.version import ChangeType, Level
from lumos.schemas.changes import events_of, milestones_of, versions_of
from lumos.schemas.output import given
from lumos.schemas.version_rules import EVENT_OF_CHANGE, USUAL_LEVEL, change_type_of
from lumos.schemas.versions.reports import (
    ChangeDetails,
    VersionBumpReport,
    VersionEntry,
    VersionMapReport,
    Versions,
    VersionScanReport,
    VersionShowReport,
)
from lumos.schemas.versions.scan import scan
from lumos.schemas.versions.steps import Steps, source_path, step_id
from lumos.schemas.wording import sentence_of, summary_of
from lumos.snapshots.store_entries import utc, versions_on_record
from lumos.store import KnownDataset, Store, Transaction
from lumos.store.actor import audit, who
from lumos.store.errors import UnknownDataset

# They leave the cloud version as it is.
_NO_STEPS: Final = (EventType.RENAMED, EventType.MERGED, EventType.SPLIT)
_ENOUGH: Final = 20
_EVER: Final = datetime.max.replace(tzinfo=UTC)


class VersionService:
    """Shows, maps and moves versions in one store."""

    def __init__(self, store: Callable[[], Store], steps: Steps) -> None:
        self._open = store
        self._steps = steps

    def show(self, name: str) -> VersionShowReport:
        """The versions of a dataset, what the last step was about, and its history."""
        store = self._open()
        known = store.ledger.known(store.find(given(name, "name of a dataset")))
        event = _last_step(store, known)
        history = _history(store, known.urn)
        cloud_versions = tuple(versions_of(store, known))
        return VersionShowReport(
            urn=known.urn,
            name=known.name,
            state=known.state,
            cloud_version=known.cloud_version,
            schema_version=known.schema_version,
            timestamp=known.updated_at if event is None else event.at,
            author=None if event is None else event.author,
            cause=None if event is None else event.cause,
            # Of all events only those of new data are ever let go.
            change_type=ChangeType.DATA_UPDATE if event is None else change_type_of(event),
            change_details=_details(event),
            previous_version=cloud_versions[-2] if len(cloud_versions) > 1 else None,
            version_history=history,
            milestones=milestones_of(store, known),
        )

    def map(self, name: str) -> VersionMapReport:
        """The schema version of every cloud version that a dataset had."""
        store = self._open()
        known = store.ledger.known(store.find(given(name, "name of a dataset")))
        versions = versions_of(store, known)
        return VersionMapReport(urn=known.urn, name=known.name, versions=versions)

    def bump(
        self,
        name: str,
        type: ChangeType | str,
        *,
        level: Level | None = None,
        reason: str = "",
        key: str | None = None,
        author: str | None = None,
    ) -> VersionBumpReport:
        """Moves a dataset's versions by a person's word.

        Without a level a change of schema is a minor one and all else a patch. A key moves them
        once only, however often it is used.
        """
        if key is not None:
            given(key, "key")
        change = _change_type(type)
        moved = USUAL_LEVEL[change] if level is None else _level(level)
        store, at, by = self._open(), datetime.now(UTC), author or who()
        urn = store.find(given(name, "name of a dataset"))
        event_id = None if key is None else step_id("bump", urn, key)
        with store.transaction() as transaction:
            known = _live(transaction, urn)
            done = None if event_id is None else transaction.event(event_id)
            if done is not None:
                return _bumped(known, done, applied=False)
            after = self._steps.after(known, moved, at=at)
            event = ChangeEvent(
                event_id=event_id or step_id("bump", urn, after.cloud_version),
                urn=urn,
                type=EVENT_OF_CHANGE[change],
                at=at,
                cause="user",
                author=by,
                cloud_version=after.cloud_version,
                schema_version=after.schema_version,
                source_path=source_path(transaction, urn),
                old_schema=known.schema_hash,
                new_schema=known.schema_hash,
                flags=(DECLARED_BREAKING,) if moved == "major" else (),
                summary=reason or f"declared by {by}",
                metadata={
                    "level": moved,
                    "previous_cloud_version": known.cloud_version,
                    "previous_schema_version": known.schema_version,
                },
            )
            self._steps.write(transaction, after, event, begins_version=moved != "none")
            details = f"{known.cloud_version} {known.schema_version} -> "
            details += f"{after.cloud_version} {after.schema_version}. {reason}".strip()
            audit(transaction, "bump version", urn, at=at, details=details)
        self._steps.written([urn])
        return _bumped(known, event, applied=True)

    def scan(self, pattern: str | None = None, *, update: bool = False) -> VersionScanReport:
        """Compares the present schema of many datasets with the last one that has a version.

        With `update` each of them gets the version that it needs.
        """
        wanted = DatasetPattern("*" if pattern is None else pattern)
        store = self._open()
        report = scan(store, self._steps, wanted, update=update)
        if not report.datasets and not wanted.is_open:
            raise store.unknown(wanted.text)
        return report


def _history(store: Store, urn: str) -> tuple[VersionEntry, ...]:
    own = [
        VersionEntry(
            version=step.cloud_version,
            schema_version=step.version,
            timestamp=step.recorded_at,
            change_type=change_type_of(step.event),
            author=step.event.author,
            breaking=step.event.breaking,
            verdict=step.event.verdict,
            changes=_changes(step.event),
        )
        for step in store.archive.steps(urn=urn, until=_EVER)
    ]
    told = {(each.version, each.schema_version): each for each in _told(store, urn)}
    for number, each in enumerate(own):
        other = told.pop((each.version, each.schema_version), each)
        own[number] = msgspec.structs.replace(each, changes=each.changes or other.changes)
    return tuple(sorted((*own, *told.values()), key=lambda each: each.timestamp))


def _told(store: Store, urn: str) -> Iterator[VersionEntry]:
    """The versions that came with a dataset from elsewhere, perhaps without their schemas."""
    stored = store.entries.get(urn)
    for record in versions_on_record(stored).history if stored is not None else ():
        yield VersionEntry(
            version=record.cloud_version,
            schema_version=record.schema_version,
            timestamp=utc(record.at),
            change_type=ChangeType.SCHEMA_CHANGE,
            author=record.author,
            breaking=record.breaking,
            verdict=Verdict.BREAKING if record.breaking else None,
            changes=record.changes,
        )


def _last_step(store: Store, known: KnownDataset) -> ChangeEvent | None:
    """The event that led to the present cloud version, unless it was let go."""
    return next(
        (
            event
            for event in events_of(store, known, limit=_ENOUGH)
            if event.cloud_version == known.cloud_version and event.type not in _NO_STEPS
        ),
        None,
    )


def _details(event: ChangeEvent | None) -> ChangeDetails:
    if event is None:
        words = summary_of(EventType.MODIFIED, ())
        return ChangeDetails(event=EventType.MODIFIED, summary=words, breaking=False, changes=())
    return ChangeDetails(
        event=event.type, summary=event.summary, breaking=event.breaking, changes=_changes(event)
    )


def _changes(event: ChangeEvent) -> tuple[str, ...]:
    """What a version changed, in sentences; without any, what its author said of it."""
    told = tuple(sentence_of(finding.change) for finding in event.findings)
    return told if told or event.author is None else (event.summary,)


def _change_type(name: ChangeType | str) -> ChangeType:
    try:
        return ChangeType(name.upper())
    except ValueError:
        raise UnknownName("change type", name, [each.value for each in ChangeType]) from None


def _level(name: str) -> Level:
    levels: tuple[Level, ...] = get_args(Level)
    for level in levels:
        if name.lower() == level:
            return level
    raise UnknownName("level", name, levels)


def _live(transaction: Transaction, urn: str) -> KnownDataset:
    known = transaction.known(urn)
    if known is None:
        raise UnknownDataset(urn)
    if known.state != "live":
        back = " Its versions move again when it is back." if known.state == "missing" else ""
        raise MisuseError(f"{urn} {known.absence}{back}")
    return known


def _bumped(known: KnownDataset, event: ChangeEvent, *, applied: bool) -> VersionBumpReport:
    return VersionBumpReport(
        urn=event.urn,
        name=known.name,
        event_id=event.event_id,
        change_type=change_type_of(event),
        level=_level(str(event.metadata["level"])),
        before=Versions(
            cloud_version=str(event.metadata["previous_cloud_version"]),
            schema_version=str(event.metadata["previous_schema_version"]),
        ),
        after=Versions(cloud_version=event.cloud_version, schema_version=event.schema_version),
        applied=applied,
    )
