"""Imports a snapshot into a catalog; an import can be resumed and rolled back."""

import hashlib
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

from lumos.errors import LumosError, MisuseError
from lumos.model.json_codec import from_json, to_json
from lumos.progress import Progress
from lumos.snapshots.format.checks import SnapshotProblem
from lumos.snapshots.format.document import KINDS, EntryKind, SnapshotHeader
from lumos.snapshots.format.reader import OpenSnapshot, open_snapshot
from lumos.snapshots.import_progress import ImportProgress
from lumos.snapshots.local_target import LocalTarget
from lumos.snapshots.reports import EntryReport, ImportReport, ImportTotals, RollbackReport
from lumos.snapshots.targets import ImportTarget, UndoneStep
from lumos.snapshots.validate import validate_snapshot
from lumos.storage.file_names import upload_name
from lumos.store import Store
from lumos.store.database import LockHeld
from lumos.store.journal import ImportRun

_MAX_LISTED: Final = 3
_ROLLBACK_BATCH: Final = 2000
_MAX_REPORTED_EDITS: Final = 1000


class InvalidSnapshot(LumosError):
    """The snapshot has errors, so it was not imported."""

    def __init__(self, file: Path, problems: tuple[SnapshotProblem, ...], count: int) -> None:
        self.problems = problems
        listed = "; ".join(str(problem) for problem in problems[:_MAX_LISTED])
        more = f"; and {count - _MAX_LISTED:,} more" if count > _MAX_LISTED else ""
        advice = f"Nothing was imported. See them all with: lumos validate {file}"
        if all(problem.code == "reference" for problem in problems):
            advice += f". To import it anyway: lumos import {file} --allow-dangling"
        super().__init__(f"{file} is invalid: {(listed + more).rstrip('.')}. {advice}")


class UnfinishedImport(MisuseError):
    """An earlier import into the catalog was interrupted."""

    def __init__(self, run: ImportRun) -> None:
        self.run = run
        command = f"lumos import {run.file} --platform {run.platform}"
        if run.state == "running":
            state = f"was not finished. Resume it with: {command} --resume. Or roll it"
        else:
            state = "was rolled back in part. Roll the rest"
        super().__init__(
            f"The import of {run.file} into {run.platform} from "
            f"{run.started_at:%Y-%m-%d %H:%M:%S} UTC {state} back with: {command} --rollback"
        )


class ImportStopped(LumosError):
    """An import or a rollback failed before it finished."""

    def __init__(self, problem: BaseException, *, is_rollback: bool = False) -> None:
        advice = (
            "The rollback is not finished: run it again with --rollback."
            if is_rollback
            else "The import is not finished: resume it with --resume, or undo it with --rollback."
        )
        super().__init__(f"{str(problem).rstrip('.')}. {advice}")


class Importer:
    """Imports snapshots into one catalog; the journal is in the store."""

    def __init__(
        self, target: ImportTarget, store: Store, *, now: Callable[[], datetime], progress: Progress
    ) -> None:
        self._target = target
        self._store = store
        self._now = now
        self._progress = progress

    def run(self, file: Path, *, resume: bool, allow_dangling: bool) -> ImportReport:
        """Import a snapshot; with `resume`, continue an interrupted import."""
        self._check(file, allow_dangling=allow_dangling)
        with self._lock_target(), open_snapshot(file) as snapshot:
            self._target.check()
            self._target.check_snapshot(snapshot)
            remarks = self._remarks(snapshot.header)
            progress = self._start_progress(file, snapshot.header, resume=resume)
            try:
                for kind, values in self._batches(snapshot, progress):
                    self._target.write(
                        progress, kind, values, omitted=snapshot.header.omitted, at=self._now()
                    )
                with self._store.transaction() as transaction:
                    progress.close(transaction, at=self._now())
            except (LumosError, OSError) as problem:
                raise ImportStopped(problem) from problem
            remarks += self._closing_remarks(snapshot)
            return self._report(file, progress, remarks, resumed=resume)

    def preview(self, file: Path, *, allow_dangling: bool) -> ImportReport:
        """Report what an import would do."""
        self._check(file, allow_dangling=allow_dangling)
        with open_snapshot(file) as snapshot:
            progress = ImportProgress(None, ImportTotals())
            for kind, values in self._batches(snapshot, None):
                progress.count(self._target.plan(kind, values, omitted=snapshot.header.omitted))
            remarks = [*self._remarks(snapshot.header), *self._closing_remarks(snapshot)]
            return self._report(file, progress, remarks, resumed=False, dry_run=True)

    def rollback(self, file: Path | None) -> RollbackReport:
        """Restore the state before the last import; later edits are not undone."""
        with self._lock_target():
            run = self._last_run(file)
            progress = ImportProgress(run, ImportTotals())
            with self._store.transaction() as transaction:
                progress.record_state(transaction, "rolling_back", at=self._now())
            total = self._store.journal.count(run.id)
            self._progress(f"rolling back the import into {self._target.name}")
            done = restored = erased = 0
            kept: list[EntryReport] = []
            steps = self._store.journal.steps(run.id)
            try:
                while batch := list(islice(steps, min(self._target.batch, _ROLLBACK_BATCH))):
                    for undone in self._target.undo(progress, batch, at=self._now()):
                        done += 1
                        restored += undone.result.value is not None
                        # A step that was planned but not executed has not created an entry.
                        erased += undone.result.value is None and undone.current is not None
                        if undone.result.kept and len(kept) < _MAX_REPORTED_EDITS:
                            kept.append(_edit_report(undone))
                    self._show_progress(done, total)
                self._target.remove_unused()
                with self._store.transaction() as transaction:
                    progress.record_state(transaction, "rolled_back", at=self._now())
                    self._audit(transaction, "roll back import", run.file)
            except (LumosError, OSError) as problem:
                raise ImportStopped(problem, is_rollback=True) from problem
        return RollbackReport(
            file=run.file,
            platform=self._target.name,
            import_id=run.id,
            restored=restored,
            erased=erased,
            kept=tuple(kept),
        )

    def _check(self, file: Path, *, allow_dangling: bool) -> None:
        """Raise InvalidSnapshot if the snapshot has errors."""
        self._progress(f"checking {file.name}")
        report = validate_snapshot(file)
        errors = tuple(
            problem
            for problem in report.problems
            if problem.severity == "error" and not (allow_dangling and problem.code == "reference")
        )
        if errors:
            raise InvalidSnapshot(file, errors, len(errors) + report.left_out)

    @contextmanager
    def _lock_target(self) -> Iterator[None]:
        try:
            with self._store.lock(f"import into {self._target.name}"):
                yield
        except LockHeld:
            raise LumosError(
                f"Another import into {self._target.name} is running. Wait until it has ended."
            ) from None

    def _start_progress(
        self, file: Path, header: SnapshotHeader, *, resume: bool
    ) -> ImportProgress:
        last = self._store.journal.open_run(self._target.name)
        snapshot = _identity(file, header)
        if last is None or last.state == "done":
            return ImportProgress(self._begin(file, snapshot), ImportTotals())
        if not resume or last.state != "running":
            raise UnfinishedImport(last)
        if last.snapshot != snapshot:
            raise MisuseError(
                f"The unfinished import is of another snapshot: {last.file}. Resume it with: "
                f"lumos import {last.file} --platform {last.platform} --resume"
            )
        return ImportProgress(last, from_json(last.sums, ImportTotals))

    def _begin(self, file: Path, snapshot: str) -> ImportRun:
        with self._store.transaction() as transaction:
            run = transaction.journal.begin(
                uuid.uuid4().hex,
                platform=self._target.name,
                file=upload_name(file) or str(file.resolve()),
                snapshot=snapshot,
                at=self._now(),
            )
            self._audit(transaction, "import snapshot", run.file)
        return run

    def _last_run(self, file: Path | None) -> ImportRun:
        journal = self._store.journal
        open_run = journal.open_run(self._target.name)
        last = open_run if file is not None else journal.last_run(self._target.name)
        if last is None or last.state == "rolled_back":
            hint = f" The import of {last.file} was rolled back already." if last else ""
            if open_run is not None:
                hint += f" To roll back the import before it: --rollback --input {open_run.file}"
            raise MisuseError(f"There is no import into {self._target.name} to roll back.{hint}")
        if file is not None and not _is_import_of(last, file):
            raise MisuseError(
                f"The last import into {self._target.name} was of another snapshot: "
                f"{last.file}. Only the last import can be rolled back."
            )
        return last

    def _batches(
        self, snapshot: OpenSnapshot, progress: ImportProgress | None
    ) -> Iterator[tuple[EntryKind, list[Any]]]:
        counts = snapshot.header.counts
        total = sum(getattr(counts, kind.plural) for kind in KINDS) if counts else 0
        self._progress(f"importing into {self._target.name}")
        done = 0
        for kind in KINDS:
            if not self._target.supports(kind):
                continue
            values = snapshot.entries(kind)
            while batch := list(islice(values, self._target.batch)):
                done += len(batch)
                if progress is not None:
                    batch = [
                        value
                        for value in batch
                        if not progress.is_past(kind, getattr(value, kind.key), KINDS)
                    ]
                if batch:
                    yield kind, batch
                self._show_progress(done, total)

    def _show_progress(self, done: int, total: int) -> None:
        if total:
            self._progress("", files=done, share=min(1.0, done / total), unit="entries")

    def _remarks(self, header: SnapshotHeader) -> list[str]:
        base = header.base
        if base is None:
            return []
        last = self._store.journal.finished_run(self._target.name)
        if last is not None and last.snapshot == base.hash:
            return []
        return [
            "The snapshot only has the changes since a snapshot from "
            f"{base.exported_at:%Y-%m-%d %H:%M:%S} UTC, but another snapshot was imported last."
        ]

    def _closing_remarks(self, snapshot: OpenSnapshot) -> list[str]:
        counts = snapshot.header.counts
        remarks = [
            f"{self._target.name} does not support {kind.plural}; {count:,} were skipped."
            for kind in KINDS
            if not self._target.supports(kind)
            and counts
            and (count := getattr(counts, kind.plural))
        ]
        if isinstance(self._target, LocalTarget):
            remarks += [
                f"{old_name} was renamed to {new_name} in the store; it was not changed."
                for old_name, new_name in self._target.renamed.items()
            ]
        return remarks

    def _audit(self, transaction: Any, action: str, file: str) -> None:
        transaction.audit(action, self._target.name, at=self._now(), details=file)

    def _report(
        self,
        file: Path,
        progress: ImportProgress,
        remarks: list[str],
        *,
        resumed: bool,
        dry_run: bool = False,
    ) -> ImportReport:
        return ImportReport(
            file=str(file),
            platform=self._target.name,
            import_id=None if dry_run else progress.run.id,
            dry_run=dry_run,
            resumed=resumed,
            sums=progress.sums,
            changes=tuple(progress.changes),
            conflicts=tuple(progress.conflicts),
            remarks=tuple(remarks),
        )


def _edit_report(undone: UndoneStep) -> EntryReport:
    return EntryReport(
        kind=undone.kind.singular, key=undone.key, change="unchanged", aspects=undone.result.kept
    )


def _is_import_of(run: ImportRun, file: Path) -> bool:
    """Whether the run imported this snapshot; its file may have been deleted since."""
    if not file.exists():
        return str(file.resolve()) == run.file
    with open_snapshot(file) as snapshot:
        return _identity(file, snapshot.header) == run.snapshot


def _identity(file: Path, header: SnapshotHeader) -> str:
    """The hash in the header of a snapshot, or else the hash of its file."""
    if header.hashes is not None:
        return header.hashes.overall
    content = to_json(header.facts) if file.is_dir() else file.read_bytes()
    return hashlib.sha256(content).hexdigest()
