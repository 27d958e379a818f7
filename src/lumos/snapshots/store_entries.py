"""Datasets of the store as entries, with their history; and entries written into the store.

The store counts versions and keeps times in a way of its own. What an entry says beyond that, or
in another way, is kept beside it as it was told, and given out again until the store knows better.
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
from lumos.schemas.compatibility import judge
from lumos.schemas.version_rules import next_schema_version
from lumos.schemas.wording import sentence_of, summary_of
from lumos.store import DatasetState, KnownDataset, Transaction
from lumos.store.datasets import IMPORTED
from lumos.store.entries import NewVersion, StoredEntry, StoredVersion, is_scanned
from lumos.store.lineage.edges import (
    has_reported,
    lineage_fingerprint,
    merge_lineage,
    without_reported,
)

_VERSIONING: Final = "versioning"
_TIMESTAMPS: Final = "timestamps"
_RAW: Final = "raw"
_LINEAGE: Final = "lineage"
# The mark of events that came with a dataset's history.
_HISTORY: Final = "history"


class _ImportedLineage(msgspec.Struct, frozen=True, kw_only=True):
    """What an entry said of lineage, word for word, and a print of what reporters said then."""

    lineage: Lineage | None
    reported: str


class _ImportedVersions(msgspec.Struct, frozen=True, kw_only=True):
    """What an entry said of its versions, and how far the store had counted then."""

    versioning: Versioning | None
    cloud_version: str
    versions: int


def entry_of(stored: StoredEntry) -> CatalogEntry:
    """A dataset of the store with all that is known of it."""
    beside = stored.extras
    timestamps = (
        from_json(beside[_TIMESTAMPS], Timestamps | None)  # type: ignore[arg-type]
        if _TIMESTAMPS in beside
        else _timestamps(stored)
    )
    return CatalogEntry.of(
        msgspec.structs.replace(
            stored.dataset, versioning=_versioning(stored), lineage=_lineage(stored)
        ),
        timestamps=timestamps,
        deleted=stored.known.state != "live",
        raw=from_json(beside[_RAW], dict) if _RAW in beside else {},
    )


def names_in(entry: CatalogEntry) -> Iterator[str]:
    """The names in an entry that the store finds things by."""
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
    counted: Versioning | None = None,
) -> None:
    """Makes a dataset of the store exactly this entry.

    `before` is what the transaction sees of it now, and `event` what began its present version
    where its history does not tell. Events of its history are recorded, but are no news. An entry
    without versions is `counted` so by the store, or else as it was before. The `annotations` of
    the dataset so far are read unless they are given.
    """
    if counted is None or _counted(entry.versioning) is not None:
        counted = entry.versioning
    schema_hash = None if entry.schema is None else transaction.save_schema(entry.schema)
    known = _known(entry, before, schema_hash, counted, at=at)
    history = counted.history if counted else ()
    versions = _History(
        transaction, entry, known, before, history=history, at=at, event=event
    ).versions()
    if before is None:
        transaction.drop_alias(entry.urn)
    reported = transaction.entries.reported(entry.urn) if before is None else before.reported
    told = msgspec.structs.replace(entry.dataset, lineage=without_reported(entry.lineage, reported))
    aspects = {name: getattr(told, name) for name in ASPECTS}
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
    after = StoredEntry(known, told, {}, versions, reported)
    beside = _beside(entry, after)
    if beside != ({} if before is None else before.extras):
        transaction.entries.put_extras(entry.urn, beside, is_new=before is None)


def erase_entry(transaction: Transaction, stored: StoredEntry) -> None:
    """Takes a dataset out of the store with the history that came with it."""
    transaction.entries.forget_events(_of_history(stored.versions))
    transaction.entries.erase(stored.known.urn)


def versions_of(versioning: Versioning | None, before: StoredEntry | None) -> tuple[str, str]:
    """The cloud version and the schema version that the store has where an entry tells these."""
    if counted := _counted(versioning):
        return counted
    if before is not None:
        return before.known.cloud_version, before.known.schema_version
    return str(CloudVersion()), str(SchemaVersion())


def _known(
    entry: CatalogEntry,
    before: StoredEntry | None,
    schema_hash: str | None,
    counted: Versioning | None,
    *,
    at: datetime,
) -> KnownDataset:
    was = None if before is None else before.known
    cloud_version, schema_version = versions_of(counted, before)
    told = entry.timestamps.created if entry.timestamps else None
    return KnownDataset(
        urn=entry.urn,
        name=entry.name,
        platform=entry.platform,
        format=entry.format,
        source=IMPORTED if was is None else was.source,
        state=_state(entry, was),
        cloud_version=cloud_version,
        schema_version=schema_version,
        schema_hash=schema_hash,
        fingerprint="" if entry.schema is None else entry.schema.full,
        content="" if was is None else was.content,
        created_at=utc(told or at) if was is None else was.created_at,
        updated_at=at,
    )


def _state(entry: CatalogEntry, was: KnownDataset | None) -> DatasetState:
    if not entry.deleted:
        return "live"
    # Catalogs do not know why a dataset is no longer there.
    return "missing" if was is None or was.state == "live" else was.state


def _counted(versioning: Versioning | VersionRecord | None) -> tuple[str, str] | None:
    """Both versions, where they are of a kind that the store can count on from."""
    if versioning is None:
        return None
    try:
        CloudVersion.parse(versioning.cloud_version)
        SchemaVersion.parse(versioning.schema_version)
    except MisuseError:
        return None
    return versioning.cloud_version, versioning.schema_version


def _beside(entry: CatalogEntry, after: StoredEntry) -> dict[str, bytes]:
    """What must be kept beside the dataset, so that it reads as this entry again."""
    beside: dict[str, bytes] = {}
    if entry.raw:
        beside[_RAW] = to_json(entry.raw)
    if _differ(entry.timestamps, _timestamps(after)):
        beside[_TIMESTAMPS] = to_json(entry.timestamps)
    if _differ(entry.lineage, _lineage(after)) and has_reported(entry.lineage, after.reported):
        beside[_LINEAGE] = to_json(
            _ImportedLineage(lineage=entry.lineage, reported=lineage_fingerprint(after.reported))
        )
    if _differ(entry.versioning, _versioning(after)):
        beside[_VERSIONING] = to_json(
            _ImportedVersions(
                versioning=entry.versioning,
                cloud_version=after.known.cloud_version,
                versions=len(after.versions),
            )
        )
    return beside


def _differ(one: Any, other: Any) -> bool:
    # Times in two zones are equal, but not the same in a file.
    return to_json(one) != to_json(other)


def utc(moment: datetime) -> datetime:
    """The moment as the store keeps it; one without a zone is meant so."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _timestamps(stored: StoredEntry) -> Timestamps:
    statistics, usage = stored.dataset.statistics, stored.dataset.usage
    return Timestamps(
        created=stored.known.created_at,
        last_modified=statistics.last_modified if statistics else None,
        last_accessed=usage.last_accessed if usage else None,
    )


def _lineage(stored: StoredEntry) -> Lineage | None:
    """What the dataset was told and what reporters say, in the order that it was told in."""
    if _LINEAGE in stored.extras:
        told = from_json(stored.extras[_LINEAGE], _ImportedLineage)
        if told.reported == lineage_fingerprint(stored.reported):
            return told.lineage
    return merge_lineage(stored.dataset.lineage, stored.reported)


def _versioning(stored: StoredEntry) -> Versioning | None:
    told = _imported_versions(stored)
    counted = (stored.known.cloud_version, len(stored.versions))
    if told is not None and (told.cloud_version, told.versions) == counted:
        return told.versioning
    return versions_on_record(stored)


def versions_on_record(stored: StoredEntry) -> Versioning:
    """The versions of a dataset as the store counts them, with all that it was told of earlier."""
    known, versions = stored.known, stored.versions
    history: tuple[VersionRecord, ...] = ()
    told = _imported_versions(stored)
    if told is not None:
        schemas = {version.version: version.schema for version in versions}
        history = tuple(
            record
            if record.schema is not None
            else msgspec.structs.replace(record, schema=schemas.get(record.schema_version))
            for record in (told.versioning.history if told.versioning else ())
        )
        covered = {record.schema_version for record in history}
        untold = (each for each in versions[: told.versions] if each.version not in covered)
        versions = (*untold, *versions[told.versions :])
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
    is_present = (version.version, version.schema_hash) == (known.schema_version, known.schema_hash)
    return VersionRecord(
        cloud_version=version.cloud_version,
        schema_version=version.version,
        at=version.recorded_at,
        changes=_changes(event),
        author=event.author,
        breaking=event.breaking,
        schema=None if is_present else version.schema,
    )


def _changes(event: ChangeEvent) -> tuple[str, ...]:
    """What a version changed, in sentences; without any, what its author said of it."""
    told = tuple(sentence_of(finding.change) for finding in event.findings)
    return told if told or event.author is None else (event.summary,)


class _History:
    """The schema versions of an entry that is being written."""

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
        """Those whose schemas are known, oldest first; the last one is the present."""
        told = self._imported_versions()
        events = self._events_on_record(utc(record.at) for record, _ in told)
        versions: list[StoredVersion] = []
        for record, schema in told:
            facts = (record.schema_version, record.cloud_version, utc(record.at))
            hash = self._transaction.save_schema(schema)
            event = events.get(facts) or self._event_of(record, schema, hash, versions[-1:])
            versions.append(StoredVersion(*facts, hash, schema, event))
        return tuple(versions)

    def _imported_versions(self) -> list[tuple[VersionRecord, Schema]]:
        """The records that the store can count on from, with their schemas."""
        present, known = self._entry.schema, self._known
        found: dict[str, tuple[VersionRecord, Schema]] = {}
        for record in self._history:
            is_present = record.schema_version == known.schema_version
            schema = record.schema or (present if is_present else None)
            if schema is not None and _counted(record) is not None:
                # Of two records of one version the later one is believed.
                found.pop(record.schema_version, None)
                found[record.schema_version] = record, schema
        if present is not None and known.schema_version not in found:
            found[known.schema_version] = self._present_record(), present
        return list(found.values())

    def _present_record(self) -> VersionRecord:
        """The present version, of which the history does not tell."""
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

    def _events_on_record(
        self, moments: Iterable[datetime]
    ) -> dict[tuple[str, str, datetime], ChangeEvent]:
        """What began versions that the store knew already, by both versions and their time."""
        if self._before is None:
            return {}
        known = {
            (version.version, version.cloud_version, version.recorded_at): version.event
            for version in self._before.versions
        }
        others = set(moments) - {at for _, _, at in known}
        recorded = self._transaction.entries.events_at(self._entry.urn, others) if others else []
        return {
            **{(each.schema_version, each.cloud_version, each.at): each for each in recorded},
            **known,
        }

    @property
    def _has_creation(self) -> bool:
        """Whether the change log records when the dataset was added to this store."""
        is_created = self._event is not None and self._event.type is EventType.CREATED
        return self._before is not None or is_created

    def _event_of(
        self, record: VersionRecord, schema: Schema, hash: str, before: Sequence[StoredVersion]
    ) -> ChangeEvent:
        """The event that began a version elsewhere, as far as its record lets it be told."""
        if self._event is not None and record.at == self._at:
            return self._event
        findings = _findings(before[0].schema, schema, self._entry.format) if before else ()
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
            metadata={"source": IMPORTED, _HISTORY: 1},
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
    new, old = ([_row(version) for version in each] for each in (versions, before))
    if new == old:
        return
    transaction.entries.put_versions(urn, new, is_new=not old)
    transaction.entries.forget_events(_of_history(before) - _of_history(versions))


def _row(version: StoredVersion) -> NewVersion:
    return NewVersion(
        version.version,
        version.cloud_version,
        version.recorded_at,
        version.schema_hash,
        version.event.event_id,
    )


def _of_history(versions: Iterable[StoredVersion]) -> set[str]:
    return {each.event.event_id for each in versions if _HISTORY in each.event.metadata}


def _findings(before: Schema, after: Schema, format: str | None) -> tuple[Finding, ...]:
    try:
        return judge(compare(before, after), format=format)
    except MisuseError:
        # Schemas from elsewhere may be of a kind that no comparison takes.
        return ()


def _event_id(urn: str, record: VersionRecord, hash: str) -> str:
    facts = (_HISTORY, urn, record.cloud_version, record.schema_version, str(record.at), hash)
    text = "\n".join(facts).encode("utf-8", "surrogatepass")
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
    """The versions of a stored dataset once it is `merged`, which may have `changed` it."""
    told = ours.versioning
    own = versions_on_record(stored)
    if told is not None and _number(told) > CloudVersion.parse(own.cloud_version).number:
        further = msgspec.structs.replace(told, history=_joined(told, own, theirs.schema))
        findings = findings_between(ours.schema, merged.schema, merged.format)
        if not findings:
            return further
        return _stepped(further, ours.schema, findings, prefix=prefix, at=at)
    if not changed:
        known = theirs.versioning or own
        if _joined(known, told, ours.schema) == known.history:
            return theirs.versioning
    joined = msgspec.structs.replace(own, history=_joined(own, told, ours.schema))
    if not changed:
        return joined
    findings = findings_between(theirs.schema, merged.schema, merged.format)
    return _stepped(joined, theirs.schema, findings, prefix=prefix, at=at)


def findings_between(
    before: Schema | None, after: Schema | None, format: str | None
) -> tuple[Finding, ...]:
    """The judged changes between two schemas, where both are known and can be compared."""
    if before is None or after is None or before == after:
        return ()
    try:
        return judge(compare(before, after), format=format)
    except MisuseError:
        # Schemas from elsewhere may be of a kind that no comparison takes.
        return ()


def _stepped(
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


def _joined(main: Versioning, beside: Versioning | None, schema: Schema | None) -> History:
    """The records of both, by time; nothing is touched where the one has all of the other."""
    added = _with_current_schema(beside.history, beside.schema_version, schema) if beside else ()
    known = {_key(record) for record in main.history}
    missing = [record for record in added if _key(record) not in known]
    if not missing:
        return main.history
    return tuple(sorted((*main.history, *missing), key=lambda record: utc(record.at)))


def _with_current_schema(history: History, version: str, schema: Schema | None) -> History:
    """The records with the schema of the version that was the present one."""
    return tuple(
        msgspec.structs.replace(record, schema=schema)
        if record.schema is None and record.schema_version == version
        else record
        for record in history
    )


def _key(record: VersionRecord) -> tuple[str, str, datetime]:
    return record.cloud_version, record.schema_version, utc(record.at)


def _number(versioning: Versioning) -> int:
    """How far a dataset was counted elsewhere, or less than anything."""
    try:
        SchemaVersion.parse(versioning.schema_version)
        return CloudVersion.parse(versioning.cloud_version).number
    except MisuseError:
        return -1
