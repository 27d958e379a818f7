"""Writes annotations of datasets, and records each change as an event."""

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

import msgspec

from lumos.annotations.attribution import attribute, drop_uncontested_source_annotations
from lumos.annotations.reports import AnnotatedDataset, AnnotationReport, OverruledAnnotation
from lumos.annotations.rules import (
    DOC_SLOTS,
    annotate,
    annotations_of,
    owner_from_key,
    resolve,
    resolve_value,
)
from lumos.config.settings import OwnerRules
from lumos.model.annotation import (
    REMINDER,
    USER,
    Annotation,
    AnnotationKey,
    AnnotationMap,
    AnnotationsByReporter,
    Slot,
)
from lumos.model.change import ChangeEvent, EventType, Finding, make_event_id
from lumos.model.dataset import ASPECTS, Dataset
from lumos.model.type_path import field_paths
from lumos.rendering.text import few
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import classify
from lumos.schemas.version_rules import level_of
from lumos.schemas.version_writer import VersionWriter
from lumos.store import KnownDataset, Store, Transaction
from lumos.store.entries import StoredEntry, is_scanned
from lumos.store.transaction import current_user

_BATCH_SIZE: Final = 50
_MAX_PHRASES: Final = 5
# The audit log contains the values of at most this many datasets per edit.
_MAX_AUDITED: Final = 100
_NOUNS: Final[Mapping[Slot, str]] = {
    "description": "description",
    "business_context": "business context",
    "domain": "domain",
    "owner": "owner",
    "tag": "tag",
    "term": "term",
    "compliance": "compliance label",
    "property": "property",
    "schedule": "schedule",
}
_PLURALS: Final = {"property": "properties"}


class Retraction(enum.Enum):
    """Retracts the reporter's own annotation, so that those of other reporters apply again."""

    RETRACT = "retract"


RETRACT: Final = Retraction.RETRACT
AnnotationChanges: TypeAlias = Mapping[AnnotationKey, str | Retraction | None]
# Returns the changes that a reporter makes to a dataset, given the dataset and the reporter's own
# annotations so far. None removes a value, even if other reporters have set it.
AnnotationEdit: TypeAlias = Callable[[Dataset, AnnotationMap], AnnotationChanges]


class AnnotationRevision(NamedTuple):
    """A dataset after an edit, all of its annotations, and the changed values by key."""

    dataset: Dataset
    annotations: AnnotationsByReporter
    changes: dict[AnnotationKey, str | None]
    before: dict[AnnotationKey, str]
    # Annotations of missing fields that were removed; the dataset itself stays the same.
    removed_from_missing_fields: dict[AnnotationKey, None]
    # Keys where the annotation of another reporter applies, with its author or reporter.
    overruled: tuple[tuple[AnnotationKey, str], ...]


class AnnotationWriter:
    """Writes annotations into one store and publishes them to the configured catalog.

    `check_catalog` fails if the catalog is not configured correctly. `publish` publishes changes;
    inside a `batch_publishing` block, they are published once at its end. `on_edited` is called
    with the datasets that anyone but a reminder has annotated.
    """

    def __init__(
        self,
        store: Callable[[], Store],
        versions: VersionWriter,
        *,
        check_catalog: Callable[[], None],
        publish: Callable[[], object],
        batch_publishing: Callable[[], AbstractContextManager[None]],
        owner_rules: OwnerRules,
        on_edited: Callable[[Sequence[str]], None] = lambda _urns: None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._open = store
        self._versions = versions
        self.check_catalog = check_catalog
        self.publish = publish
        self.batch_publishing = batch_publishing
        self.owner_rules = owner_rules
        self._on_edited = on_edited
        self._clock = clock

    @property
    def store(self) -> Store:
        return self._open()

    def now(self) -> datetime:
        """The current time of the injected clock."""
        return self._clock()

    def write(
        self,
        urns: Iterable[str],
        edit: AnnotationEdit,
        *,
        action: str,
        target: str,
        reporter: str = USER,
        dry_run: bool = False,
    ) -> AnnotationReport:
        """Apply a reporter's edit to datasets; those that are not live are skipped.

        Datasets are written in batches. A dataset that the edit does not change is not written.
        """
        store, at = self._open(), self._clock()
        run = _EditRun(edit, reporter=reporter, at=at, author=current_user())
        if not dry_run:
            self.check_catalog()
        remaining = iter(dict.fromkeys(urns))
        while batch := list(islice(remaining, _BATCH_SIZE)):
            if dry_run:
                annotations = store.annotations.of(batch)
                for urn, stored in store.entries.get_many(batch).items():
                    run.plan(stored, annotations.get(urn, {}))
                continue
            with store.transaction() as transaction:
                for revised in list(self._revise(transaction, batch, run)):
                    self._save(transaction, *revised, run=run)
        report = run.report(action, dry_run=dry_run)
        if report.changed and not dry_run:
            with store.transaction() as transaction:
                details = f"{report.changed} of {report.matched} datasets"
                transaction.audit(
                    action,
                    target,
                    at=at,
                    details=details,
                    before=run.before,
                    after=run.after,
                )
            urns = [each.urn for each in report.datasets]
            if not reporter.startswith(REMINDER):
                self._on_edited(urns)
            self._versions.on_written(urns)
        return report

    def _revise(
        self, transaction: Transaction, urns: Sequence[str], run: "_EditRun"
    ) -> Iterator[tuple[StoredEntry, AnnotationsByReporter, AnnotationRevision]]:
        for urn in urns:
            # Locks the dataset until the end of the transaction.
            transaction.known(urn)
        annotations = transaction.annotations.of(urns)
        for urn, stored in transaction.entries.get(urns).items():
            before = annotations.get(urn, {})
            if (revision := run.revise(stored, before)) is not None:
                yield stored, before, revision

    def _save(
        self,
        transaction: Transaction,
        stored: StoredEntry,
        before: AnnotationsByReporter,
        revision: AnnotationRevision,
        *,
        run: "_EditRun",
    ) -> None:
        urn = stored.known.urn
        transaction.annotations.put(urn, revision.annotations, before=before)
        if not revision.changes:
            if revision.removed_from_missing_fields:
                run.add(stored.known, revision, None)
            return
        findings = _findings(stored.dataset, revision.dataset)
        after = self._versions.next_version(stored.known, level_of(findings), at=run.at)
        if (schema := revision.dataset.schema) is not None:
            hash = transaction.save_schema(schema)
            after = msgspec.structs.replace(after, schema_hash=hash, fingerprint=schema.full)
        event = ChangeEvent(
            # "words" is part of stored event ids.
            event_id=make_event_id("words", urn, after.cloud_version),
            urn=urn,
            type=EventType.METADATA_CHANGED,
            at=run.at,
            cause="user",
            author=run.author,
            cloud_version=after.cloud_version,
            schema_version=after.schema_version,
            source_path=stored.dataset.location.uri if stored.dataset.location else None,
            old_schema=stored.known.schema_hash,
            new_schema=after.schema_hash,
            findings=findings,
            summary=summarise_changes(revision.before, revision.changes),
            metadata={"reporter": run.reporter, "source": stored.known.source},
        )
        aspects = {name: getattr(revision.dataset, name) for name in ASPECTS}
        transaction.entries.put(after, aspects, before=stored, writer=run.reporter, at=run.at)
        transaction.save_event(event)
        if findings:
            transaction.save_schema_version(after, event)
        run.add(after, revision, event.event_id)


class _EditRun:
    """One reporter's edit of many datasets, and its results so far."""

    def __init__(self, edit: AnnotationEdit, *, reporter: str, at: datetime, author: str) -> None:
        self._edit = edit
        self.reporter = reporter
        self.at = at
        self.author = author
        self._matched = 0
        self._datasets: list[AnnotatedDataset] = []
        self._overruled: list[OverruledAnnotation] = []
        # Values for the audit log, by dataset and annotation.
        self.before: dict[str, dict[str, str | None]] = {}
        self.after: dict[str, dict[str, str | None]] = {}

    def revise(
        self, stored: StoredEntry, annotations: AnnotationsByReporter
    ) -> AnnotationRevision | None:
        """The dataset after the edit; None if it is not live or the edit is empty."""
        if stored.known.state != "live":
            return None
        self._matched += 1
        changes = self._edit(stored.dataset, annotations.get(self.reporter, {}))
        if not changes:
            return None
        revision = revise(
            stored.dataset,
            annotations,
            changes,
            reporter=self.reporter,
            at=self.at,
            author=self.author,
            is_scanned=is_scanned(stored),
        )
        self._overruled += [
            OverruledAnnotation(
                urn=stored.known.urn,
                field=key.path,
                what=f"{key.slot.replace('_', ' ')} {key.name}".strip(),
                by=by,
            )
            for key, by in revision.overruled
        ]
        return revision

    def plan(self, stored: StoredEntry, annotations: AnnotationsByReporter) -> None:
        """Add the changes that the edit would make to a dataset."""
        revision = self.revise(stored, annotations)
        if revision is not None and (revision.changes or revision.removed_from_missing_fields):
            self.add(stored.known, revision, None)

    def add(self, known: KnownDataset, revision: AnnotationRevision, event_id: str | None) -> None:
        """Add a changed dataset to the report."""
        changes = {**revision.changes, **revision.removed_from_missing_fields}
        if len(self.after) < _MAX_AUDITED:
            self.before[known.urn] = {_label(key): revision.before.get(key) for key in changes}
            self.after[known.urn] = {_label(key): value for key, value in changes.items()}
        self._datasets.append(
            AnnotatedDataset(
                urn=known.urn,
                name=known.name,
                changes=tuple(describe_changes(revision.before, changes)),
                cloud_version=known.cloud_version,
                schema_version=known.schema_version,
                event_id=event_id,
            )
        )

    def report(self, action: str, *, dry_run: bool) -> AnnotationReport:
        return AnnotationReport(
            action=action,
            dry_run=dry_run,
            matched=self._matched,
            changed=len(self._datasets),
            datasets=tuple(self._datasets),
            overruled=tuple(self._overruled),
        )


def revise(
    dataset: Dataset,
    annotations: AnnotationsByReporter,
    wanted: AnnotationChanges,
    *,
    reporter: str,
    at: datetime,
    author: str | None,
    is_scanned: bool,
) -> AnnotationRevision:
    """Change the annotations that one reporter makes on a dataset."""
    before = annotations_of(dataset)
    annotations = attribute(annotations, before, wanted, is_scanned=is_scanned)
    others = {each: values for each, values in annotations.items() if each != reporter}
    own = dict(annotations.get(reporter, {}))
    for key, value in wanted.items():
        if value is RETRACT or (value is None and resolve_value(others, key) is None):
            own.pop(key, None)
        elif key not in own or own[key].value != value:
            assert not isinstance(value, Retraction)
            own[key] = Annotation(value=value, author=author, at=at)
    all_annotations = {**others, reporter: own}
    after = drop_uncontested_source_annotations(all_annotations, fields_only=True)
    has_field_keys = any(key.path for key in wanted)
    existing_paths = (
        set(field_paths(dataset.schema)) if has_field_keys and dataset.schema else set()
    )
    changes: dict[AnnotationKey, str | None] = {}
    removed_from_missing_fields: dict[AnnotationKey, None] = {}
    overruled = []
    for key in wanted:
        if key.path and key.path not in existing_paths:
            had_value = resolve_value(annotations, key) is not None
            if had_value and resolve_value(after, key) is None:
                removed_from_missing_fields[key] = None
            continue
        resolved = resolve(all_annotations, key)
        value = None if resolved is None else resolved.annotation.value
        if before.get(key) != value:
            changes[key] = value
        if resolved is not None and key in own and own[key].value != value:
            by = resolved.annotation.author if resolved.reporter == USER else None
            overruled.append((key, by or resolved.reporter))
    return AnnotationRevision(
        dataset=annotate(dataset, changes) if changes else dataset,
        annotations=after,
        changes=changes,
        before={key: before[key] for key in changes if key in before},
        removed_from_missing_fields=removed_from_missing_fields,
        overruled=tuple(overruled),
    )


def _findings(before: Dataset, after: Dataset) -> tuple[Finding, ...]:
    if before.schema is None or after.schema is None or before.schema == after.schema:
        return ()
    return classify(compare(before.schema, after.schema), format=after.format)


def _label(key: AnnotationKey) -> str:
    """The key of an annotation as text: `email tag pii`."""
    return " ".join(part for part in (key.path, key.slot, key.name) if part)


def summarise_changes(
    before: Mapping[AnnotationKey, str], changes: Mapping[AnnotationKey, str | None]
) -> str:
    shown, more = few(describe_changes(before, changes), _MAX_PHRASES)
    return "; ".join([*shown, *([f"{more} more changes"] if more else [])])


def describe_changes(
    before: Mapping[AnnotationKey, str], changes: Mapping[AnnotationKey, str | None]
) -> list[str]:
    """The changes as phrases, one for each kind: `tags pii, gold added to email`."""
    groups: dict[tuple[str, Slot, str], list[str]] = {}
    for key, value in changes.items():
        if value is None:
            verb = "removed"
        elif key.slot in DOC_SLOTS or key.slot == "property":
            verb = "changed" if key in before else "written"
        else:
            verb = "added"
        name = key.name
        if key.slot == "owner":
            owner = owner_from_key(key.name)
            name = f"{owner.name} ({owner.type})"
        groups.setdefault((key.path, key.slot, verb), []).append(name)
    return [_phrase(path, slot, verb, names) for (path, slot, verb), names in groups.items()]


def _phrase(path: str, slot: Slot, verb: str, names: Sequence[str]) -> str:
    noun = _NOUNS[slot]
    if len(names) > 1:
        noun = _PLURALS.get(noun, f"{noun}s")
    subject = f"{noun} {', '.join(names)}" if names[0] else noun
    if not path:
        return f"{subject} {verb}"
    if slot == "description" or verb not in ("added", "removed"):
        return f"{subject} of {path} {verb}"
    return f"{subject} {verb} {'to' if verb == 'added' else 'from'} {path}"
