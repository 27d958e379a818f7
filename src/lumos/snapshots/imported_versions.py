"""Which versions a dataset of the store has after an import.

They go on from whichever side has counted further, and the history has the records of both sides in
the order of time. A change that an import makes is one step, as any other.
"""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from lumos.errors import MisuseError
from lumos.model.catalog import CatalogEntry
from lumos.model.change import Finding
from lumos.model.dataset import Versioning, VersionRecord
from lumos.model.schema import Schema
from lumos.model.version import CloudVersion, SchemaVersion
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import judge
from lumos.schemas.version_rules import next_schema_version
from lumos.schemas.wording import sentence_of
from lumos.snapshots.store_entries import utc, versions_on_record
from lumos.store.entries import StoredEntry

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
        history = (*_told_in_full(history, versioning.schema_version, schema), record)
    return Versioning(
        cloud_version=str(cloud_version), schema_version=str(schema_version), history=history
    )


def _joined(main: Versioning, beside: Versioning | None, schema: Schema | None) -> History:
    """The records of both, by time; nothing is touched where the one has all of the other."""
    added = _told_in_full(beside.history, beside.schema_version, schema) if beside else ()
    known = {_key(record) for record in main.history}
    missing = [record for record in added if _key(record) not in known]
    if not missing:
        return main.history
    return tuple(sorted((*main.history, *missing), key=lambda record: utc(record.at)))


def _told_in_full(history: History, version: str, schema: Schema | None) -> History:
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
