"""Looks through many datasets for versions that they should have and have not."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Final, NamedTuple

from lumos.model.change import ChangeEvent, EventType, Finding
from lumos.model.dataset_pattern import DatasetPattern
from lumos.model.version import CloudVersion
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import judge
from lumos.schemas.version_rules import level_of
from lumos.schemas.versions.reports import (
    Need,
    ScannedVersion,
    Versions,
    VersionScanReport,
    VersionScanSummary,
)
from lumos.schemas.versions.steps import Steps, source_path, step_id
from lumos.schemas.wording import sentence_of, summary_of
from lumos.store import KnownDataset, Store
from lumos.store.actor import audit, who
from lumos.store.change_log import ChangeLog
from lumos.store.ledger import Entry

_TOGETHER: Final = 50
_EVENTS: Final[dict[Need, EventType]] = {
    "first version": EventType.CREATED,
    "schema": EventType.SCHEMA_CHANGED,
    "prefix": EventType.METADATA_CHANGED,
}


class _Needed(NamedTuple):
    """A dataset, why it needs another version, and how it will be then."""

    entry: Entry
    need: Need
    after: KnownDataset
    findings: tuple[Finding, ...] = ()


def scan(store: Store, steps: Steps, wanted: DatasetPattern, *, update: bool) -> VersionScanReport:
    """The versions that datasets have and need; `update` gives them what they need."""
    at = datetime.now(UTC)
    entries = store.ledger.entries()
    matching = (entry for entry in entries if wanted.matches(entry.known.urn, entry.known.name))
    needed = list(_needs(matching, store.change_log, steps, at))
    lacking = [each for each in needed if each.need != "none"]
    updated = _update(store, steps, lacking, wanted, at) if update and lacking else []
    return VersionScanReport(
        summary=VersionScanSummary(
            datasets=len(needed), outdated=len(lacking), updated=len(updated)
        ),
        datasets=tuple(map(_report, needed)),
    )


def _needs(
    entries: Iterable[Entry], log: ChangeLog, steps: Steps, at: datetime
) -> Iterator[_Needed]:
    for entry in entries:
        known, last = entry.known, entry.last
        if last is None:
            yield _Needed(entry, "first version", known)
            continue
        findings: tuple[Finding, ...] = ()
        if known.schema_hash is not None and last.schema_hash != known.schema_hash:
            schemas = log.schemas([last.schema_hash, known.schema_hash])
            before, after = schemas[last.schema_hash], schemas[known.schema_hash]
            findings = judge(compare(before, after), format=known.format)
        if findings:
            yield _Needed(entry, "schema", steps.after(known, level_of(findings), at=at), findings)
        elif CloudVersion.parse(known.cloud_version).prefix != steps.prefix:
            yield _Needed(entry, "prefix", steps.after(known, "none", at=at))
        else:
            yield _Needed(entry, "none", known)


def _update(
    store: Store, steps: Steps, lacking: list[_Needed], wanted: DatasetPattern, at: datetime
) -> list[str]:
    updated: list[str] = []
    remaining = iter(lacking)
    while some := list(islice(remaining, _TOGETHER)):
        with store.transaction() as transaction:
            for each in some:
                known = transaction.known(each.entry.known.urn)
                # What changed meanwhile got its version from whoever changed it.
                if known != each.entry.known:
                    continue
                begins = each.need != "prefix"
                event = _event(each, steps.prefix, source_path(transaction, known.urn), at)
                steps.write(transaction, each.after, event, begins_version=begins)
                updated.append(known.urn)
    with store.transaction() as transaction:
        details = f"{len(updated)} datasets"
        audit(transaction, "update versions", wanted.text, at=at, details=details)
    steps.written(updated)
    return updated


def _event(needed: _Needed, prefix: str, path: str | None, at: datetime) -> ChangeEvent:
    known, after = needed.entry.known, needed.after
    last = needed.entry.last
    type = _EVENTS[needed.need]
    words = f"cloud versions begin with {prefix} from here" if needed.need == "prefix" else ""
    return ChangeEvent(
        event_id=step_id("update", known.urn, needed.need, after.cloud_version, after.fingerprint),
        urn=known.urn,
        type=type,
        at=at,
        cause="user",
        author=who(),
        cloud_version=after.cloud_version,
        schema_version=after.schema_version,
        source_path=path,
        old_schema=None if last is None else last.schema_hash,
        new_schema=known.schema_hash,
        findings=needed.findings,
        summary=words or summary_of(type, needed.findings),
        metadata={"source": known.source},
    )


def _report(needed: _Needed) -> ScannedVersion:
    return ScannedVersion(
        urn=needed.entry.known.urn,
        name=needed.entry.known.name,
        has=Versions.of(needed.entry.known),
        needs=Versions.of(needed.after),
        need=needed.need,
        level=level_of(needed.findings),
        changes=tuple(sentence_of(finding.change) for finding in needed.findings),
    )
