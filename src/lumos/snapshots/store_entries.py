"""Converts datasets of the store to catalog entries with their history, and writes entries back.

The store has its own version numbers and timestamps. Imported values that it cannot represent are
stored as extras of the dataset. They are returned unchanged until the store has newer values.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from lumos.annotations.attribution import annotations_after_import
from lumos.errors import MisuseError
from lumos.model.annotation import AnnotationsByReporter
from lumos.model.catalog import CatalogEntry, Timestamps
from lumos.model.change import DECLARED_BREAKING, ChangeEvent, EventType, Finding
from lumos.model.dataset import ASPECTS, Lineage, Versioning, VersionRecord
from lumos.model.json_codec import from_json, to_json
from lumos.model.schema import Schema
from lumos.model.version import CloudVersion, SchemaVersion
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import classify
from lumos.schemas.version_rules import next_schema_version
from lumos.schemas.wording import sentence_of, summary_of
from lumos.store import DatasetState, KnownDataset, Transaction
from lumos.store.datasets import IMPORTED
from lumos.store.entries import NewVersion, StoredEntry, StoredVersion, is_scanned
from lumos.store.lineage.edges import (
    contains_reported,
    lineage_fingerprint,
    merge_lineage,
    without_reported,
)

_VERSIONING: Final = "versioning"
_TIMESTAMPS: Final = "timestamps"
_RAW: Final = "raw"
_LINEAGE: Final = "lineage"
# The metadata key of events that were imported with the history of a dataset.
_HISTORY_KEY: Final = "history"


class _ImportedLineage(msgspec.Struct, frozen=True, kw_only=True):
    """The lineage of an imported entry, and a fingerprint of the reported lineage at that time."""

    lineage: Lineage | None
    reported: str


class _ImportedVersions(msgspec.Struct, frozen=True, kw_only=True):
    """The versions of an imported entry, and the version numbers of the store at that time."""

    versioning: Versioning | None
    cloud_version: str
    versions: int


def entry_of(stored: StoredEntry) -> CatalogEntry:
    """The catalog entry for a dataset of the store."""
    extras = stored.extras
    timestamps = (
        from_json(extras[_TIMESTAMPS], Timestamps | None)  # type: ignore[arg-type]
        if _TIMESTAMPS in extras
        else _timestamps(stored)
    )
    return CatalogEntry.of(
        msgspec.structs.replace(
            stored.dataset, versioning=_versioning(stored), lineage=_lineage(stored)
        ),
        timestamps=timestamps,
        deleted=stored.known.state != "live",
        raw=from_json(extras[_RAW], dict) if _RAW in extras else {},
    )


def names_in(entry: CatalogEntry) -> Iterator[str]:
    """The URNs and names in an entry, which the store indexes."""
    yield entry.urn
    yield entry.name
    if entry.lineage is not None:
        yield from (edge.urn for edge in (*entry.lineage.upstream, *entry.lineage.downstream))


def put_entry(
    transaction: Transaction,
    entry: CatalogEntry,
    *,
    before: StoredEntry | None,
    at: datetime,
    annotations: AnnotationsByReporter | None = None,
    event: ChangeEvent | None = None,
    versioning: Versioning | None = None,
) -> None:
    """Write an entry to the store, replacing the stored dataset `before`, if there is one.

    `event` is the event of the current version, unless that version is part of the history. Events
    of the history are recorded without notifications. `versioning` is used if the entry has no
    valid versions. `annotations` are the current annotations of the dataset, by default those in
    the store.
    """
    if versioning is None or _valid_versions(entry.versioning) is not None:
        versioning = entry.versioning
    schema_hash = None if entry.schema is None else transaction.save_schema(entry.schema)
    known = _known(entry, before, schema_hash, versioning, at=at)
    history = versioning.history if versioning else ()
    versions = _VersionWriter(
        transaction, entry, known, before, history=history, at=at, event=event
    ).versions()
    if before is None:
        transaction.drop_alias(entry.urn)
    reported = transaction.entries.reported(entry.urn) if before is None else before.reported
    dataset = msgspec.structs.replace(
        entry.dataset, lineage=without_reported(entry.lineage, reported)
    )
    aspects = {name: getattr(dataset, name) for name in ASPECTS}
    transaction.entries.put(known, aspects, before=before, writer=IMPORTED, at=at)
    _put_versions(transaction, entry.urn, versions, () if before is None else before.versions)
    if annotations is None:
        annotations = {} if before is None else transaction.annotations.get(entry.urn)
    new = annotations_after_import(
        entry,
        None if before is None else before.dataset,
        annotations,
        is_scanned=before is not None and is_scanned(before),
        at=at,
    )
    transaction.annotations.put(entry.urn, new, before=annotations)
    after = StoredEntry(known, dataset, {}, versions, reported)
    extras = _extras(entry, after)
    if extras != ({} if before is None else before.extras):
        transaction.entries.put_extras(entry.urn, extras, is_new=before is None)


def erase_entry(transaction: Transaction, stored: StoredEntry) -> None:
    """Remove a dataset and its imported history from the store."""
    transaction.entries.delete_events(_history_events(stored.versions))
    transaction.entries.erase(stored.known.urn)


def versions_of(versioning: Versioning | None, before: StoredEntry | None) -> tuple[str, str]:
    """The versions of an entry if they are valid, else those of the stored dataset, if any.

    A new dataset without valid versions gets the initial versions.
    """
    if versions := _valid_versions(versioning):
        return versions
    if before is not None:
        return before.known.cloud_version, before.known.schema_version
    return str(CloudVersion()), str(SchemaVersion())


def _known(
    entry: CatalogEntry,
    before: StoredEntry | None,
    schema_hash: str | None,
    versioning: Versioning | None,
    *,
    at: datetime,
) -> KnownDataset:
    previous = None if before is None else before.known
    cloud_version, schema_version = versions_of(versioning, before)
    created = entry.timestamps.created if entry.timestamps else None
    return KnownDataset(
        urn=entry.urn,
        name=entry.name,
        platform=entry.platform,
        format=entry.format,
        source=IMPORTED if previous is None else previous.source,
        state=_state(entry, previous),
        cloud_version=cloud_version,
        schema_version=schema_version,
        schema_hash=schema_hash,
        fingerprint="" if entry.schema is None else entry.schema.full,
        content="" if previous is None else previous.content,
        created_at=utc(created or at) if previous is None else previous.created_at,
        updated_at=at,
    )


def _state(entry: CatalogEntry, previous: KnownDataset | None) -> DatasetState:
    if not entry.deleted:
        return "live"
    # Catalogs do not record why a dataset was deleted.
    return "missing" if previous is None or previous.state == "live" else previous.state


def _valid_versions(versioning: Versioning | VersionRecord | None) -> tuple[str, str] | None:
    """The cloud and the schema version, or None if the store cannot parse them."""
    if versioning is None:
        return None
    try:
        CloudVersion.parse(versioning.cloud_version)
        SchemaVersion.parse(versioning.schema_version)
    except MisuseError:
        return None
    return versioning.cloud_version, versioning.schema_version


def _extras(entry: CatalogEntry, after: StoredEntry) -> dict[str, bytes]:
    """The extras to store with a dataset so that `entry_of` returns this entry again."""
    extras: dict[str, bytes] = {}
    if entry.raw:
        extras[_RAW] = to_json(entry.raw)
    if _differ(entry.timestamps, _timestamps(after)):
        extras[_TIMESTAMPS] = to_json(entry.timestamps)
    if _differ(entry.lineage, _lineage(after)) and contains_reported(entry.lineage, after.reported):
        extras[_LINEAGE] = to_json(
            _ImportedLineage(lineage=entry.lineage, reported=lineage_fingerprint(after.reported))
        )
    if _differ(entry.versioning, _versioning(after)):
        extras[_VERSIONING] = to_json(
            _ImportedVersions(
                versioning=entry.versioning,
                cloud_version=after.known.cloud_version,
                versions=len(after.versions),
            )
        )
    return extras


def _differ(one: Any, other: Any) -> bool:
    # Compare the JSON: equal times in different time zones have different JSON.
    return to_json(one) != to_json(other)


def utc(time: datetime) -> datetime:
    """Convert a time to UTC, as in the store; times without a zone are in UTC."""
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _timestamps(stored: StoredEntry) -> Timestamps:
    statistics, usage = stored.dataset.statistics, stored.dataset.usage
    return Timestamps(
        created=stored.known.created_at,
        last_modified=statistics.last_modified if statistics else None,
        last_accessed=usage.last_accessed if usage else None,
    )


def _lineage(stored: StoredEntry) -> Lineage | None:
    """Imported and reported lineage, as it was imported if nothing changed since."""
    if _LINEAGE in stored.extras:
        imported = from_json(stored.extras[_LINEAGE], _ImportedLineage)
        if imported.reported == lineage_fingerprint(stored.reported):
            return imported.lineage
    return merge_lineage(stored.dataset.lineage, stored.reported)


def _versioning(stored: StoredEntry) -> Versioning | None:
    imported = _imported_versions(stored)
    current = (stored.known.cloud_version, len(stored.versions))
    if imported is not None and (imported.cloud_version, imported.versions) == current:
        return imported.versioning
    return stored_versioning(stored)


def stored_versioning(stored: StoredEntry) -> Versioning:
    """The versions of a dataset in the store, after the imported history."""
    known, versions = stored.known, stored.versions
    history: tuple[VersionRecord, ...] = ()
    imported = _imported_versions(stored)
    if imported is not None:
        schemas = {version.version: version.schema for version in versions}
        history = tuple(
            record
            if record.schema is not None
            else msgspec.structs.replace(record, schema=schemas.get(record.schema_version))
            for record in (imported.versioning.history if imported.versioning else ())
        )
        imported_numbers = {record.schema_version for record in history}
        not_imported = (
            version
            for version in versions[: imported.versions]
            if version.version not in imported_numbers
        )
        versions = (*not_imported, *versions[imported.versions :])
    return Versioning(
        cloud_version=known.cloud_version,
        schema_version=known.schema_version,
        history=(*history, *(_record(version, known) for version in versions)),
    )


def _imported_versions(stored: StoredEntry) -> _ImportedVersions | None:
    body = stored.extras.get(_VERSIONING)
    return None if body is None else from_json(body, _ImportedVersions)


def _record(version: StoredVersion, known: KnownDataset) -> VersionRecord:
    event = version.event
    is_current = (version.version, version.schema_hash) == (known.schema_version, known.schema_hash)
    return VersionRecord(
        cloud_version=version.cloud_version,
        schema_version=version.version,
        at=version.recorded_at,
        changes=_changes(event),
        author=event.author,
        breaking=event.breaking,
        schema=None if is_current else version.schema,
    )


def _changes(event: ChangeEvent) -> tuple[str, ...]:
    """The changes of a version as sentences, or else the summary by the version's author."""
    sentences = tuple(sentence_of(finding.change) for finding in event.findings)
    return sentences if sentences or event.author is None else (event.summary,)


class _VersionWriter:
    """Determines the schema versions of an entry to be written, and records their events."""

    def __init__(
        self,
        transaction: Transaction,
        entry: CatalogEntry,
        known: KnownDataset,
        before: StoredEntry | None,
        *,
        history: Sequence[VersionRecord],
        at: datetime,
        event: ChangeEvent | None,
    ) -> None:
        self._transaction = transaction
        self._entry = entry
        self._known = known
        self._before = before
        self._history = history
        self._at = at
        self._event = event

    def versions(self) -> tuple[StoredVersion, ...]:
        """The versions with known schemas, oldest first; the last one is the current version."""
        imported = self._imported_versions()
        events = self._stored_events(utc(record.at) for record, _ in imported)
        versions: list[StoredVersion] = []
        for record, schema in imported:
            identity = (record.schema_version, record.cloud_version, utc(record.at))
            hash = self._transaction.save_schema(schema)
            event = events.get(identity) or self._event_for(record, schema, hash, versions[-1:])
            versions.append(StoredVersion(*identity, hash, schema, event))
        return tuple(versions)

    def _imported_versions(self) -> list[tuple[VersionRecord, Schema]]:
        """The records with valid versions and known schemas."""
        current, known = self._entry.schema, self._known
        by_version: dict[str, tuple[VersionRecord, Schema]] = {}
        for record in self._history:
            is_current = record.schema_version == known.schema_version
            schema = record.schema or (current if is_current else None)
            if schema is not None and _valid_versions(record) is not None:
                # If two records have the same version, the later one is used.
                by_version.pop(record.schema_version, None)
                by_version[record.schema_version] = record, schema
        if current is not None and known.schema_version not in by_version:
            by_version[known.schema_version] = self._current_record(), current
        return list(by_version.values())

    def _current_record(self) -> VersionRecord:
        """A record for the current version, for a history that has none."""
        known = self._known
        for version in self._before.versions if self._before else ():
            if version.version == known.schema_version:
                cloud_version, at = version.cloud_version, version.recorded_at
                break
        else:
            cloud_version, at = known.cloud_version, self._at
        return VersionRecord(
            cloud_version=cloud_version, schema_version=known.schema_version, at=at
        )

    def _stored_events(
        self, times: Iterable[datetime]
    ) -> dict[tuple[str, str, datetime], ChangeEvent]:
        """The events that the store already has, by schema version, cloud version and time."""
        if self._before is None:
            return {}
        known = {
            (version.version, version.cloud_version, version.recorded_at): version.event
            for version in self._before.versions
        }
        other_times = set(times) - {at for _, _, at in known}
        recorded = (
            self._transaction.entries.events_at(self._entry.urn, other_times) if other_times else []
        )
        return {
            **{(event.schema_version, event.cloud_version, event.at): event for event in recorded},
            **known,
        }

    @property
    def _has_creation(self) -> bool:
        """Whether the change log records when the dataset was added to this store."""
        is_created = self._event is not None and self._event.type is EventType.CREATED
        return self._before is not None or is_created

    def _event_for(
        self, record: VersionRecord, schema: Schema, hash: str, before: Sequence[StoredVersion]
    ) -> ChangeEvent:
        """The event for an imported version, created from its record."""
        if self._event is not None and record.at == self._at:
            return self._event
        findings = findings_between(before[0].schema, schema, self._entry.format) if before else ()
        if not before:
            type = EventType.SCHEMA_CHANGED if self._has_creation else EventType.CREATED
        elif before[0].schema.shape != schema.shape:
            type = EventType.SCHEMA_CHANGED
        else:
            type = EventType.METADATA_CHANGED
        event = ChangeEvent(
            event_id=_event_id(self._entry.urn, record, hash),
            urn=self._entry.urn,
            type=type,
            at=utc(record.at),
            cause="import",
            cloud_version=record.cloud_version,
            schema_version=record.schema_version,
            author=record.author,
            old_schema=before[0].schema_hash if before else None,
            new_schema=hash,
            findings=findings,
            summary=summary_of(type if before else EventType.CREATED, findings)
            or "; ".join(record.changes),
            metadata={"source": IMPORTED, _HISTORY_KEY: 1},
        )
        if record.breaking and not event.breaking:
            event = msgspec.structs.replace(event, flags=(DECLARED_BREAKING,))
        self._transaction.save_event(event, notify=False)
        return event


def _put_versions(
    transaction: Transaction,
    urn: str,
    versions: Sequence[StoredVersion],
    before: Sequence[StoredVersion],
) -> None:
    new_rows, old_rows = ([_row(version) for version in each] for each in (versions, before))
    if new_rows == old_rows:
        return
    transaction.entries.put_versions(urn, new_rows, is_new=not old_rows)
    transaction.entries.delete_events(_history_events(before) - _history_events(versions))


def _row(version: StoredVersion) -> NewVersion:
    return NewVersion(
        version.version,
        version.cloud_version,
        version.recorded_at,
        version.schema_hash,
        version.event.event_id,
    )


def _history_events(versions: Iterable[StoredVersion]) -> set[str]:
    """The ids of events that were imported with the history."""
    return {
        version.event.event_id for version in versions if _HISTORY_KEY in version.event.metadata
    }


def _event_id(urn: str, record: VersionRecord, hash: str) -> str:
    parts = (_HISTORY_KEY, urn, record.cloud_version, record.schema_version, str(record.at), hash)
    text = "\n".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).hexdigest()


History = tuple[VersionRecord, ...]


def versions_after(
    stored: StoredEntry,
    theirs: CatalogEntry,
    ours: CatalogEntry,
    merged: CatalogEntry,
    *,
    changed: bool,
    prefix: str,
    at: datetime,
) -> Versioning | None:
    """The versions of a stored dataset after it was merged with an imported entry.

    `theirs` is the entry of the stored dataset, `ours` the imported entry, and `merged` the result.
    `changed` is false if the merge changed nothing.
    """
    imported = ours.versioning
    in_store = stored_versioning(stored)
    store_number = CloudVersion.parse(in_store.cloud_version).number
    if imported is not None and _number(imported) > store_number:
        newer = msgspec.structs.replace(
            imported, history=_join_histories(imported, in_store, theirs.schema)
        )
        findings = findings_between(ours.schema, merged.schema, merged.format)
        if not findings:
            return newer
        return _next_version(newer, ours.schema, findings, prefix=prefix, at=at)
    if not changed:
        known = theirs.versioning or in_store
        if _join_histories(known, imported, ours.schema) == known.history:
            return theirs.versioning
    joined = msgspec.structs.replace(
        in_store, history=_join_histories(in_store, imported, ours.schema)
    )
    if not changed:
        return joined
    findings = findings_between(theirs.schema, merged.schema, merged.format)
    return _next_version(joined, theirs.schema, findings, prefix=prefix, at=at)


def findings_between(
    before: Schema | None, after: Schema | None, format: str | None
) -> tuple[Finding, ...]:
    """The classified changes between two schemas; none if a schema is unknown or not comparable."""
    if before is None or after is None or before == after:
        return ()
    try:
        return classify(compare(before, after), format=format)
    except MisuseError:
        # Imported schemas may contain types that cannot be compared.
        return ()


def _next_version(
    versioning: Versioning,
    schema: Schema | None,
    findings: Iterable[Finding],
    *,
    prefix: str,
    at: datetime,
) -> Versioning:
    findings = tuple(findings)
    cloud_version = CloudVersion.parse(versioning.cloud_version).next(prefix=prefix)
    schema_version = next_schema_version(SchemaVersion.parse(versioning.schema_version), findings)
    history = versioning.history
    if findings:
        record = VersionRecord(
            cloud_version=str(cloud_version),
            schema_version=str(schema_version),
            at=at,
            changes=tuple(sentence_of(finding.change) for finding in findings),
        )
        history = (*_with_current_schema(history, versioning.schema_version, schema), record)
    return Versioning(
        cloud_version=str(cloud_version), schema_version=str(schema_version), history=history
    )


def _join_histories(main: Versioning, other: Versioning | None, schema: Schema | None) -> History:
    """Join the records of both histories, ordered by time; `main` if it has all records already."""
    added = _with_current_schema(other.history, other.schema_version, schema) if other else ()
    known = {_key(record) for record in main.history}
    missing = [record for record in added if _key(record) not in known]
    if not missing:
        return main.history
    return tuple(sorted((*main.history, *missing), key=lambda record: utc(record.at)))


def _with_current_schema(history: History, version: str, schema: Schema | None) -> History:
    """The records, with this schema in the record of this version if it has none."""
    return tuple(
        msgspec.structs.replace(record, schema=schema)
        if record.schema is None and record.schema_version == version
        else record
        for record in history
    )


def _key(record: VersionRecord) -> tuple[str, str, datetime]:
    return record.cloud_version, record.schema_version, utc(record.at)


def _number(versioning: Versioning) -> int:
    """The number of the cloud version, or -1 if the versions cannot be parsed."""
    try:
        SchemaVersion.parse(versioning.schema_version)
        return CloudVersion.parse(versioning.cloud_version).number
    except MisuseError:
        return -1
