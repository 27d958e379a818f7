"""The service behind `lumos version`, which shows, checks and raises the versions of datasets."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple, get_args

import msgspec

from lumos.errors import MisuseError, UnknownName
from lumos.model.change import (
    DECLARED_BREAKING,
    ChangeEvent,
    EventType,
    Finding,
    Verdict,
    make_event_id,
)
from lumos.model.dataset_pattern import DatasetPattern
from lumos.model.version import ChangeType, CloudVersion, Level
from lumos.names import find_dataset, find_datasets, find_urn
from lumos.schemas.changes import events_of, milestones_of, schema_versions_of
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import classify
from lumos.schemas.output import require_text
from lumos.schemas.reports import (
    ChangeDetails,
    DatasetVersions,
    ScannedVersion,
    VersionBumpReport,
    VersionEntry,
    VersionMapReport,
    VersionNeed,
    VersionScanReport,
    VersionScanSummary,
    VersionShowReport,
    VersionUpdateReport,
)
from lumos.schemas.version_rules import (
    DEFAULT_LEVEL,
    EVENT_BY_CHANGE_TYPE,
    change_type_of,
    level_of,
)
from lumos.schemas.version_tags import (
    VersionTag,
    VersionTags,
    changed_versions,
    run_versions,
)
from lumos.schemas.version_writer import VersionWriter, source_path
from lumos.schemas.wording import sentence_of, summary_of
from lumos.snapshots.store_entries import stored_versioning, utc
from lumos.store import DatasetFilter, KnownDataset, Store, Transaction
from lumos.store.errors import UnknownDataset
from lumos.store.history import ChangeLog, VersionedDataset
from lumos.store.transaction import current_user

_BATCH_SIZE: Final = 50
_EVENT_BY_NEED: Final[dict[VersionNeed, EventType]] = {
    "first version": EventType.CREATED,
    "schema": EventType.SCHEMA_CHANGED,
    "prefix": EventType.METADATA_CHANGED,
}


class _NeededVersion(NamedTuple):
    """A dataset, why it needs another version (`need`), and the dataset with that version."""

    entry: VersionedDataset
    need: VersionNeed
    after: KnownDataset
    findings: tuple[Finding, ...] = ()


def scan_versions(
    store: Store, writer: VersionWriter, requested: DatasetPattern, *, update: bool
) -> VersionScanReport:
    """Compare the versions of datasets with those that they need; `update` writes these."""
    at = datetime.now(UTC)
    entries = store.schemas.with_last_versions()
    matching = (entry for entry in entries if requested.matches(entry.known.urn, entry.known.name))
    versions = list(_needed_versions(matching, store.change_log, writer, at))
    outdated = [each for each in versions if each.need != "none"]
    updated = _update(store, writer, outdated, requested, at) if update and outdated else []
    return VersionScanReport(
        summary=VersionScanSummary(
            datasets=len(versions), outdated=len(outdated), updated=len(updated)
        ),
        datasets=tuple(map(_report, versions)),
    )


def _needed_versions(
    entries: Iterable[VersionedDataset], log: ChangeLog, writer: VersionWriter, at: datetime
) -> Iterator[_NeededVersion]:
    for entry in entries:
        dataset, last = entry.known, entry.last
        if last is None:
            yield _NeededVersion(entry, "first version", dataset)
            continue
        findings: tuple[Finding, ...] = ()
        if dataset.schema_hash is not None and last.schema_hash != dataset.schema_hash:
            schemas = log.schemas([last.schema_hash, dataset.schema_hash])
            before, after = schemas[last.schema_hash], schemas[dataset.schema_hash]
            findings = classify(compare(before, after), format=dataset.format)
        if findings:
            yield _NeededVersion(
                entry, "schema", writer.next_version(dataset, level_of(findings), at=at), findings
            )
        elif CloudVersion.parse(dataset.cloud_version).prefix != writer.prefix:
            yield _NeededVersion(entry, "prefix", writer.next_version(dataset, "none", at=at))
        else:
            yield _NeededVersion(entry, "none", dataset)


def _update(
    store: Store,
    writer: VersionWriter,
    outdated: list[_NeededVersion],
    requested: DatasetPattern,
    at: datetime,
) -> list[str]:
    updated: list[str] = []
    remaining = iter(outdated)
    while batch := list(islice(remaining, _BATCH_SIZE)):
        with store.transaction() as transaction:
            for each in batch:
                dataset = transaction.known(each.entry.known.urn)
                # If the dataset has changed in the meantime, that change has raised its version.
                if dataset != each.entry.known:
                    continue
                is_new_version = each.need != "prefix"
                event = _event(each, writer.prefix, source_path(transaction, dataset.urn), at)
                writer.write(transaction, each.after, event, starts_version=is_new_version)
                updated.append(dataset.urn)
    with store.transaction() as transaction:
        details = f"{len(updated)} datasets"
        transaction.audit("update versions", requested.text, at=at, details=details)
    writer.on_written(updated)
    return updated


def _event(needed: _NeededVersion, prefix: str, path: str | None, at: datetime) -> ChangeEvent:
    dataset, after = needed.entry.known, needed.after
    last = needed.entry.last
    type = _EVENT_BY_NEED[needed.need]
    prefix_summary = f"cloud versions start with {prefix} from now on"
    return ChangeEvent(
        event_id=make_event_id(
            "update", dataset.urn, needed.need, after.cloud_version, after.fingerprint
        ),
        urn=dataset.urn,
        type=type,
        at=at,
        cause="user",
        author=current_user(),
        cloud_version=after.cloud_version,
        schema_version=after.schema_version,
        source_path=path,
        old_schema=None if last is None else last.schema_hash,
        new_schema=dataset.schema_hash,
        findings=needed.findings,
        summary=prefix_summary if needed.need == "prefix" else summary_of(type, needed.findings),
        metadata={"source": dataset.source},
    )


def _report(needed: _NeededVersion) -> ScannedVersion:
    return ScannedVersion(
        urn=needed.entry.known.urn,
        name=needed.entry.known.name,
        has=DatasetVersions.of(needed.entry.known),
        needs=DatasetVersions.of(needed.after),
        need=needed.need,
        level=level_of(needed.findings),
        changes=tuple(sentence_of(finding.change) for finding in needed.findings),
    )


# Events that do not raise the cloud version.
_EVENTS_WITHOUT_NEW_VERSION: Final = (EventType.RENAMED, EventType.MERGED, EventType.SPLIT)
_MAX_RECENT_EVENTS: Final = 20
_END_OF_TIME: Final = datetime.max.replace(tzinfo=UTC)


class VersionService:
    """Shows, checks and raises the versions of datasets."""

    def __init__(self, store: Callable[[], Store], writer: VersionWriter) -> None:
        self._open = store
        self._writer = writer

    def show(self, name: str) -> VersionShowReport:
        """The versions of a dataset, the event that set the current version, and the history."""
        store = self._open()
        dataset = find_dataset(store, name)
        event = _last_version_event(store, dataset)
        history = _history(store, dataset.urn)
        cloud_versions = tuple(schema_versions_of(store, dataset))
        return VersionShowReport(
            urn=dataset.urn,
            name=dataset.name,
            state=dataset.state,
            cloud_version=dataset.cloud_version,
            schema_version=dataset.schema_version,
            timestamp=dataset.updated_at if event is None else event.at,
            author=None if event is None else event.author,
            cause=None if event is None else event.cause,
            # Without an event, it was new data: only such events are pruned.
            change_type=ChangeType.DATA_UPDATE if event is None else change_type_of(event),
            change_details=_details(event),
            previous_version=cloud_versions[-2] if len(cloud_versions) > 1 else None,
            version_history=history,
            milestones=milestones_of(store, [dataset])[dataset.urn],
        )

    def map(self, name: str) -> VersionMapReport:
        """The schema version of each cloud version that a dataset had."""
        store = self._open()
        dataset = find_dataset(store, name)
        versions = schema_versions_of(store, dataset)
        return VersionMapReport(urn=dataset.urn, name=dataset.name, versions=versions)

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
        """Raise the versions of a dataset manually.

        Without a level, a schema change is minor and everything else a patch. Calls with the same
        `key` raise the versions only once.
        """
        if key is not None:
            require_text(key, "key")
        change_type = _parse_change_type(type)
        bump_level = DEFAULT_LEVEL[change_type] if level is None else _parse_level(level)
        store, at, user = self._open(), datetime.now(UTC), author or current_user()
        urn = find_urn(store, name)
        event_id = None if key is None else make_event_id("bump", urn, key)
        with store.transaction() as transaction:
            dataset = _live_dataset(transaction, urn)
            earlier = None if event_id is None else transaction.event(event_id)
            if earlier is not None:
                return _bump_report(dataset, earlier, applied=False)
            after = self._writer.next_version(dataset, bump_level, at=at)
            event = ChangeEvent(
                event_id=event_id or make_event_id("bump", urn, after.cloud_version),
                urn=urn,
                type=EVENT_BY_CHANGE_TYPE[change_type],
                at=at,
                cause="user",
                author=user,
                cloud_version=after.cloud_version,
                schema_version=after.schema_version,
                source_path=source_path(transaction, urn),
                old_schema=dataset.schema_hash,
                new_schema=dataset.schema_hash,
                flags=(DECLARED_BREAKING,) if bump_level == "major" else (),
                summary=reason or f"declared by {user}",
                metadata={
                    "level": bump_level,
                    "previous_cloud_version": dataset.cloud_version,
                    "previous_schema_version": dataset.schema_version,
                },
            )
            self._writer.write(transaction, after, event, starts_version=bump_level != "none")
            details = f"{dataset.cloud_version} {dataset.schema_version} -> "
            details += f"{after.cloud_version} {after.schema_version}. {reason}".strip()
            transaction.audit(
                "bump version",
                urn,
                at=at,
                details=details,
                before=_versions_of(dataset),
                after=_versions_of(after),
            )
        self._writer.on_written([urn])
        return _bump_report(dataset, event, applied=True)

    def update(
        self,
        *,
        auto_increment: bool = False,
        create_git_tag: bool = False,
        tag_prefix: str = "v",
        ref: str | None = None,
        folder: str | Path = ".",
        dry_run: bool = False,
    ) -> VersionUpdateReport:
        """Raise the versions of datasets, tag a commit, or both.

        `auto_increment` raises the versions of datasets whose schema changed since their last
        version. `create_git_tag` creates a tag, named after the prefix and the cloud version of
        this run; its message records the versions of all datasets. Nothing is written if the tag
        cannot be created.
        """
        if not (auto_increment or create_git_tag):
            raise MisuseError(
                "Nothing to do. Raise versions, create a tag or do both: "
                "lumos version update --auto-increment --create-git-tag"
            )
        store = self._open()
        tags = VersionTags(Path(folder), tag_prefix) if create_git_tag else None
        commit = None if tags is None else tags.target(ref)
        last = None if tags is None else tags.last()
        all_datasets = DatasetPattern("*")
        scanned = scan_versions(store, self._writer, all_datasets, update=False)
        needed = {each.urn: each.needs for each in scanned.datasets if each.need != "none"}
        recorded = {each.urn: each for each in store.list(DatasetFilter())}
        current = {urn: DatasetVersions.of(dataset) for urn, dataset in recorded.items()}
        after = current | (needed if auto_increment else {})
        # Without tags, only the versions that this run raises are reported.
        before = (
            current
            if tags is None
            else {}
            if last is None
            else _tagged_versions(last, current, store)
        )
        names = {urn: dataset.name for urn, dataset in recorded.items()}
        changed = changed_versions(before, after, names)
        run = run_versions(changed, after, last, prefix=self._writer.prefix)
        name = None if tags is None or run is None else tags.check_name(run.cloud_version)
        result = run or last
        raised = 0
        if not dry_run:
            if auto_increment:
                updated = scan_versions(store, self._writer, all_datasets, update=True)
                raised = updated.summary.updated
            if tags is not None and name is not None and run is not None and commit is not None:
                tags.create(VersionTag(name, *run, after), commit)
                with store.transaction() as transaction:
                    at, details = datetime.now(UTC), f"{name} {commit}"
                    transaction.audit("create git tag", "*", at=at, details=details)
            self._writer.on_written([each.urn for each in changed if each.after is not None])
        return VersionUpdateReport(
            cloud_version=None if result is None else str(result.cloud_version),
            schema_version=None if result is None else str(result.schema_version),
            previous_tag=None if last is None else last.name,
            git_tag=name,
            commit=commit,
            changes_detected=len(changed),
            raised=raised,
            dry_run=dry_run,
            datasets=changed,
        )

    def scan(self, pattern: str | None = None, *, update: bool = False) -> VersionScanReport:
        """Find datasets that need another version; `update` writes the version."""
        requested = DatasetPattern("*" if pattern is None else pattern)
        store = self._open()
        if not requested.has_wildcards:
            (dataset,) = find_datasets(store, requested.text)
            requested = DatasetPattern(dataset.urn)
        return scan_versions(store, self._writer, requested, update=update)


def _tagged_versions(
    tag: VersionTag, now: Mapping[str, DatasetVersions], store: Store
) -> dict[str, DatasetVersions]:
    """The versions in a tag, by the current URNs of the datasets."""
    return {
        urn if urn in now else store.resolve(urn): versions
        for urn, versions in tag.datasets.items()
    }


def _history(store: Store, urn: str) -> tuple[VersionEntry, ...]:
    recorded = [
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
        for step in store.schemas.steps(urn=urn, until=_END_OF_TIME)
    ]
    imported = {
        (each.version, each.schema_version): each for each in _imported_versions(store, urn)
    }
    for number, each in enumerate(recorded):
        other = imported.pop((each.version, each.schema_version), each)
        recorded[number] = msgspec.structs.replace(each, changes=each.changes or other.changes)
    return tuple(sorted((*recorded, *imported.values()), key=lambda each: each.timestamp))


def _imported_versions(store: Store, urn: str) -> Iterator[VersionEntry]:
    """Yield the versions that were imported with a dataset, even those without a schema."""
    stored = store.entries.get(urn)
    for record in stored_versioning(stored).history if stored is not None else ():
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


def _last_version_event(store: Store, dataset: KnownDataset) -> ChangeEvent | None:
    """The event that raised the cloud version to the current one, unless it was pruned."""
    return next(
        (
            event
            for event in events_of(store, dataset, limit=_MAX_RECENT_EVENTS)
            if event.cloud_version == dataset.cloud_version
            and event.type not in _EVENTS_WITHOUT_NEW_VERSION
        ),
        None,
    )


def _details(event: ChangeEvent | None) -> ChangeDetails:
    if event is None:
        summary = summary_of(EventType.MODIFIED, ())
        return ChangeDetails(event=EventType.MODIFIED, summary=summary, breaking=False, changes=())
    return ChangeDetails(
        event=event.type, summary=event.summary, breaking=event.breaking, changes=_changes(event)
    )


def _changes(event: ChangeEvent) -> tuple[str, ...]:
    """The changes of a version as sentences, or else the reason given by its author."""
    changes = tuple(sentence_of(finding.change) for finding in event.findings)
    return changes if changes or event.author is None else (event.summary,)


def _parse_change_type(name: ChangeType | str) -> ChangeType:
    try:
        return ChangeType(name.upper())
    except ValueError:
        raise UnknownName(
            "change type",
            name,
            [each.value for each in ChangeType],
            next="Levels such as minor are given with --level",
        ) from None


def _parse_level(name: str) -> Level:
    levels: tuple[Level, ...] = get_args(Level)
    for level in levels:
        if name.lower() == level:
            return level
    raise UnknownName("level", name, levels)


def _live_dataset(transaction: Transaction, urn: str) -> KnownDataset:
    dataset = transaction.known(urn)
    if dataset is None:
        raise UnknownDataset(urn)
    if dataset.state != "live":
        hint = (
            " Its versions can be raised when it exists again."
            if dataset.state == "missing"
            else ""
        )
        raise MisuseError(f"{urn} {dataset.absence}{hint}")
    return dataset


def _bump_report(dataset: KnownDataset, event: ChangeEvent, *, applied: bool) -> VersionBumpReport:
    return VersionBumpReport(
        urn=event.urn,
        name=dataset.name,
        event_id=event.event_id,
        change_type=change_type_of(event),
        level=_parse_level(str(event.metadata["level"])),
        before=DatasetVersions(
            cloud_version=str(event.metadata["previous_cloud_version"]),
            schema_version=str(event.metadata["previous_schema_version"]),
        ),
        after=DatasetVersions(
            cloud_version=event.cloud_version, schema_version=event.schema_version
        ),
        applied=applied,
    )


def _versions_of(dataset: KnownDataset) -> dict[str, str]:
    return {"cloud_version": dataset.cloud_version, "schema_version": dataset.schema_version}
