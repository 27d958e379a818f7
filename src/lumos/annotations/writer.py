"""Writes what somebody says of datasets: words, and the event that tells of them."""

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

import msgspec

from lumos.annotations.attribution import attributed
from lumos.annotations.phrases import sentences_of, summary_of_words
from lumos.annotations.reports import KeptWord, RewordedDataset, WordsReport
from lumos.annotations.rules import paths_of, reworded, settle, words_in
from lumos.catalogs.auto_publisher import AutoPublisher
from lumos.config.settings import OwnerRules
from lumos.model.change import ChangeEvent, EventType, Finding
from lumos.model.dataset import ASPECTS, Dataset
from lumos.model.words import PLACE, USER, Key, Said, Word, Words
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import judge
from lumos.schemas.version_rules import level_of
from lumos.schemas.versions.steps import Steps, step_id
from lumos.snapshots.store_entries import is_scanned
from lumos.store import KnownDataset, Store, Transaction
from lumos.store.actor import audit, who
from lumos.store.entries import StoredEntry
from lumos.store.remarks import said_of

_TOGETHER: Final = 50


class Unsaid(enum.Enum):
    """That somebody takes a word back."""

    UNSAID = "unsaid"


UNSAID: Final = Unsaid.UNSAID
Wanted: TypeAlias = Mapping[Key, str | Unsaid | None]
# What a reporter wants to say of a dataset, given what it has said of it so far. None says that
# something is not so.
Edit: TypeAlias = Callable[[Dataset, Words], Wanted]


class Revision(NamedTuple):
    """A dataset with other words, and what is said of it then."""

    dataset: Dataset
    said: Said
    changes: dict[Key, str | None]
    before: dict[Key, str]
    # What is no longer said of fields that are gone, which changes nothing of the dataset.
    forgotten: dict[Key, None]
    kept: tuple[tuple[Key, str], ...]


class AnnotationWriter:
    """Writes words into one store; the herald tells a catalog of them."""

    def __init__(
        self,
        store: Callable[[], Store],
        steps: Steps,
        *,
        herald: AutoPublisher,
        owner_rules: OwnerRules,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._open = store
        self._steps = steps
        self.herald = herald
        self.owner_rules = owner_rules
        self._clock = clock

    @property
    def store(self) -> Store:
        """The store that is written to."""
        return self._open()

    def now(self) -> datetime:
        """The time of a change that begins now."""
        return self._clock()

    def write(
        self,
        urns: Iterable[str],
        edit: Edit,
        *,
        action: str,
        target: str,
        reporter: str = USER,
        dry_run: bool = False,
    ) -> WordsReport:
        """Lets a reporter say something of some datasets; those that are gone are passed by.

        The datasets are written some at a time. A dataset of which all is said already is left
        alone, and nobody is told.
        """
        store, at = self._open(), self._clock()
        writing = _Writing(edit, reporter=reporter, at=at, author=who())
        if not dry_run:
            self.herald.check()
        remaining = iter(dict.fromkeys(urns))
        while some := list(islice(remaining, _TOGETHER)):
            if dry_run:
                for stored in store.entries.some(some).values():
                    writing.plan(stored)
                continue
            with store.transaction() as transaction:
                for revised in list(self._revised(transaction, some, writing)):
                    self._save(transaction, *revised, writing=writing)
        report = writing.report(action, dry_run=dry_run)
        if report.changed and not dry_run:
            with store.transaction() as transaction:
                details = f"{report.changed} of {report.matched} datasets"
                audit(transaction, action, target, at=at, details=details)
            self._steps.written([each.urn for each in report.datasets])
        return report

    def _revised(
        self, transaction: Transaction, urns: Sequence[str], writing: "_Writing"
    ) -> Iterator[tuple[StoredEntry, Revision]]:
        for urn in urns:
            transaction.known(urn)
        for stored in transaction.entries.get(urns).values():
            if (revision := writing.revise(stored)) is not None:
                yield stored, revision

    def _save(
        self,
        transaction: Transaction,
        stored: StoredEntry,
        revision: Revision,
        *,
        writing: "_Writing",
    ) -> None:
        urn, before = stored.known.urn, said_of(stored.beside)
        for reporter in before.keys() | revision.said.keys():
            if before.get(reporter) != revision.said.get(reporter):
                transaction.remarks.put(urn, reporter, revision.said.get(reporter, {}))
        if not revision.changes:
            if revision.forgotten:
                writing.note(stored.known, revision, None)
            return
        findings = _findings(stored.dataset, revision.dataset)
        after = self._after(transaction, stored.known, revision, findings, at=writing.at)
        event = ChangeEvent(
            event_id=step_id("words", urn, after.cloud_version),
            urn=urn,
            type=EventType.METADATA_CHANGED,
            at=writing.at,
            cause="user",
            author=writing.author,
            cloud_version=after.cloud_version,
            schema_version=after.schema_version,
            source_path=stored.dataset.location.uri if stored.dataset.location else None,
            old_schema=stored.known.schema_hash,
            new_schema=after.schema_hash,
            findings=findings,
            summary=summary_of_words(revision.before, revision.changes),
            metadata={"reporter": writing.reporter, "source": stored.known.source},
        )
        aspects = {name: getattr(revision.dataset, name) for name in ASPECTS}
        transaction.entries.put(
            after, aspects, before=stored, writer=writing.reporter, at=writing.at
        )
        transaction.save_event(event)
        if findings:
            transaction.save_schema_version(after, event)
        writing.note(after, revision, event.event_id)

    def _after(
        self,
        transaction: Transaction,
        known: KnownDataset,
        revision: Revision,
        findings: tuple[Finding, ...],
        *,
        at: datetime,
    ) -> KnownDataset:
        after = self._steps.after(known, level_of(findings), at=at)
        schema = revision.dataset.schema
        if schema is None:
            return after
        return msgspec.structs.replace(
            after, schema_hash=transaction.save_schema(schema), fingerprint=schema.full
        )


class _Writing:
    """One reporter's edit of many datasets, and what it came to."""

    def __init__(self, edit: Edit, *, reporter: str, at: datetime, author: str) -> None:
        self._edit = edit
        self.reporter = reporter
        self.at = at
        self.author = author
        self._matched = 0
        self._datasets: list[RewordedDataset] = []
        self._kept: list[KeptWord] = []

    def revise(self, stored: StoredEntry) -> Revision | None:
        """What becomes of a dataset; nothing where it is gone or nothing is to be written."""
        if stored.known.state != "live":
            return None
        self._matched += 1
        said = said_of(stored.beside)
        own = said.get(self.reporter, {})
        wanted = self._edit(stored.dataset, own)
        if not wanted:
            return None
        revision = revised(
            stored.dataset,
            said,
            wanted,
            reporter=self.reporter,
            at=self.at,
            author=self.author,
            is_scanned=is_scanned(stored),
        )
        self._kept += [
            KeptWord(urn=stored.known.urn, field=key.path, what=_what(key), by=by)
            for key, by in revision.kept
        ]
        return revision

    def plan(self, stored: StoredEntry) -> None:
        """Notes what would become of a dataset."""
        revision = self.revise(stored)
        if revision is not None and (revision.changes or revision.forgotten):
            self.note(stored.known, revision, None)

    def note(self, known: KnownDataset, revision: Revision, event_id: str | None) -> None:
        """Keeps account of a dataset that changed."""
        self._datasets.append(
            RewordedDataset(
                urn=known.urn,
                name=known.name,
                changes=tuple(
                    sentences_of(revision.before, {**revision.changes, **revision.forgotten})
                ),
                cloud_version=known.cloud_version,
                schema_version=known.schema_version,
                event_id=event_id,
            )
        )

    def report(self, action: str, *, dry_run: bool) -> WordsReport:
        """What it came to."""
        return WordsReport(
            action=action,
            dry_run=dry_run,
            matched=self._matched,
            changed=len(self._datasets),
            datasets=tuple(self._datasets),
            kept=tuple(self._kept),
        )


def revised(
    dataset: Dataset,
    said: Said,
    wanted: Wanted,
    *,
    reporter: str,
    at: datetime,
    author: str | None,
    is_scanned: bool,
) -> Revision:
    """A dataset of which one reporter says something else."""
    before = words_in(dataset)
    said = attributed(said, dataset, before, wanted, is_scanned=is_scanned)
    others = {each: words for each, words in said.items() if each != reporter}
    own = dict(said.get(reporter, {}))
    for key, value in wanted.items():
        if value is UNSAID or (value is None and not _is_said(others, key)):
            own.pop(key, None)
        elif key not in own or own[key].value != value:
            assert not isinstance(value, Unsaid)
            own[key] = Word(value=value, author=author, at=at)
    after = _without_needless({**others, reporter: own})
    changes: dict[Key, str | None] = {}
    kept = []
    is_on_fields = any(key.path for key in wanted)
    there = set(paths_of(dataset.schema)) if is_on_fields and dataset.schema else set()
    forgotten: dict[Key, None] = {}
    for key in wanted:
        if key.path and key.path not in there:
            if _is_said(said, key) and not _is_said(after, key):
                forgotten[key] = None
            continue
        found = settle({**others, reporter: own}, key)
        value = None if found is None else found.word.value
        if before.get(key) != value:
            changes[key] = value
        if found is not None and key in own and own[key].value != value:
            by = found.word.author if found.reporter == USER else None
            kept.append((key, by or found.reporter))
    return Revision(
        dataset=reworded(dataset, changes) if changes else dataset,
        said=after,
        changes=changes,
        before={key: before[key] for key in changes if key in before},
        forgotten=forgotten,
        kept=tuple(kept),
    )


def _is_said(said: Said, key: Key) -> bool:
    found = settle(said, key)
    return found is not None and found.word.value is not None


def _without_needless(said: Said) -> Said:
    """What is said, without a place's words that nobody has others for."""
    claimed = {key for reporter, words in said.items() if reporter != PLACE for key in words}
    kept = {
        reporter: words
        if reporter != PLACE
        else {key: word for key, word in words.items() if key in claimed}
        for reporter, words in said.items()
    }
    return {reporter: words for reporter, words in kept.items() if words}


def _findings(before: Dataset, after: Dataset) -> tuple[Finding, ...]:
    if before.schema is None or after.schema is None or before.schema == after.schema:
        return ()
    return judge(compare(before.schema, after.schema), format=after.format)


def _what(key: Key) -> str:
    return f"{key.slot.replace('_', ' ')} {key.name}".strip()
