"""Brings a snapshot into a catalog so that it can go on after any fault, or be taken back."""

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
from lumos.snapshots.account import Account
from lumos.snapshots.format.checks import Problem
from lumos.snapshots.format.document import KINDS, Header, Kind
from lumos.snapshots.format.reader import Snapshot, open_snapshot
from lumos.snapshots.local_target import LocalTarget
from lumos.snapshots.reports import EntryReport, ImportReport, RollbackReport, Sums
from lumos.snapshots.targets import Target, Undone
from lumos.snapshots.validate import validated
from lumos.store import Store
from lumos.store.actor import audit
from lumos.store.journal import ImportRun
from lumos.store.locks import AlreadyHeld

_NAMED: Final = 3
_UNDONE_AT_ONCE: Final = 2000
_MOST_KEPT: Final = 1000


class UnsoundSnapshot(LumosError):
    """A snapshot with errors, which is not imported."""

    def __init__(self, file: Path, problems: tuple[Problem, ...], count: int) -> None:
        self.problems = problems
        named = "; ".join(str(problem) for problem in problems[:_NAMED])
        more = f"; and {count - _NAMED:,} more" if count > _NAMED else ""
        way_out = f"Nothing was imported. See them all with: lumos validate {file}"
        if all(problem.code == "reference" for problem in problems):
            way_out += f". To import it all the same: lumos import {file} --allow-dangling"
        super().__init__(f"{file} is not sound: {(named + more).rstrip('.')}. {way_out}")


class UnfinishedImport(MisuseError):
    """An earlier import into the catalog was broken off."""

    def __init__(self, run: ImportRun) -> None:
        self.run = run
        words = f"lumos import {run.file} --platform {run.platform}"
        if run.state == "running":
            what = f"was not finished. Go on with: {words} --resume. Or take it"
        else:
            what = "is half taken back. Take the rest"
        super().__init__(
            f"The import of {run.file} into {run.platform} from "
            f"{run.started_at:%Y-%m-%d %H:%M:%S} UTC {what} back with: {words} --rollback"
        )


class ImportStopped(LumosError):
    """An import that met a fault on its way, there or back."""

    def __init__(self, problem: BaseException, *, back: bool = False) -> None:
        way_out = (
            "It is half taken back: run it again with --rollback to take back the rest."
            if back
            else "The import is not finished: run it again with --resume to go on, or with "
            "--rollback to take it back."
        )
        super().__init__(f"{str(problem).rstrip('.')}. {way_out}")


class Importer:
    """Imports into one catalog; the journal lies in the store."""

    def __init__(
        self, target: Target, store: Store, *, now: Callable[[], datetime], progress: Progress
    ) -> None:
        self._target = target
        self._store = store
        self._now = now
        self._announce = progress

    def run(self, file: Path, *, resume: bool, allow_dangling: bool) -> ImportReport:
        """Imports a snapshot, or with `resume` the rest of one that was begun."""
        self._check(file, allow_dangling=allow_dangling)
        with self._alone(), open_snapshot(file) as snapshot:
            self._target.check()
            self._target.admit(snapshot)
            remarks = self._remarks(snapshot.header)
            account = self._account(file, snapshot.header, resume=resume)
            try:
                for kind, values in self._batches(snapshot, account):
                    self._target.write(
                        account, kind, values, omitted=snapshot.header.omitted, at=self._now()
                    )
                with self._store.transaction() as transaction:
                    account.close(transaction, at=self._now())
            except (LumosError, OSError) as problem:
                raise ImportStopped(problem) from problem
            remarks += self._closing_remarks(snapshot)
            return self._report(file, account, remarks, resumed=resume)

    def trial(self, file: Path, *, allow_dangling: bool) -> ImportReport:
        """Says what an import would do, and does nothing."""
        self._check(file, allow_dangling=allow_dangling)
        with open_snapshot(file) as snapshot:
            account = Account(None, Sums())
            for kind, values in self._batches(snapshot, None):
                account.count(self._target.plan(kind, values, omitted=snapshot.header.omitted))
            remarks = [*self._remarks(snapshot.header), *self._closing_remarks(snapshot)]
            return self._report(file, account, remarks, resumed=False, dry_run=True)

    def rollback(self, file: Path | None) -> RollbackReport:
        """Restores what was there before the last import, as far as nobody edited it since."""
        with self._alone():
            run = self._last_run(file)
            account = Account(run, Sums())
            with self._store.transaction() as transaction:
                account.turn(transaction, "rolling_back", at=self._now())
            total = self._store.journal.count(run.id)
            self._announce(f"taking back what was imported into {self._target.name}")
            done = restored = erased = 0
            kept: list[EntryReport] = []
            steps = self._store.journal.steps(run.id)
            try:
                while some := list(islice(steps, min(self._target.batch, _UNDONE_AT_ONCE))):
                    for undone in self._target.undo(account, some, at=self._now()):
                        done += 1
                        restored += undone.left.value is not None
                        # What was only planned was never there.
                        erased += undone.left.value is None and undone.now is not None
                        if undone.left.kept and len(kept) < _MOST_KEPT:
                            kept.append(_kept(undone))
                    self._tell(done, total)
                self._target.tidy()
                with self._store.transaction() as transaction:
                    account.turn(transaction, "rolled_back", at=self._now())
                    self._audit(transaction, "roll back import", run.file)
            except (LumosError, OSError) as problem:
                raise ImportStopped(problem, back=True) from problem
        return RollbackReport(
            file=run.file,
            platform=self._target.name,
            import_id=run.id,
            restored=restored,
            erased=erased,
            kept=tuple(kept),
        )

    def _check(self, file: Path, *, allow_dangling: bool) -> None:
        """Refuses a snapshot with errors before anything is written."""
        self._announce(f"checking {file.name}")
        found = validated(file)
        errors = tuple(
            problem
            for problem in found.problems
            if problem.severity == "error" and not (allow_dangling and problem.code == "reference")
        )
        if errors:
            raise UnsoundSnapshot(file, errors, len(errors) + found.left_out)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        try:
            with self._store.alone(f"import into {self._target.name}"):
                yield
        except AlreadyHeld:
            raise LumosError(
                f"Another import into {self._target.name} is running. Wait until it has ended."
            ) from None

    def _account(self, file: Path, header: Header, *, resume: bool) -> Account:
        last = self._store.journal.open(self._target.name)
        snapshot = _identity(file, header)
        if last is None or last.state == "done":
            return Account(self._begun(file, snapshot), Sums())
        if not resume or last.state != "running":
            raise UnfinishedImport(last)
        if last.snapshot != snapshot:
            raise MisuseError(
                f"The import that waits to be resumed is of another snapshot: {last.file}."
            )
        return Account(last, from_json(last.sums, Sums))

    def _begun(self, file: Path, snapshot: str) -> ImportRun:
        with self._store.transaction() as transaction:
            run = transaction.journal.begin(
                uuid.uuid4().hex,
                platform=self._target.name,
                file=str(file.resolve()),
                snapshot=snapshot,
                at=self._now(),
            )
            self._audit(transaction, "import snapshot", run.file)
        return run

    def _last_run(self, file: Path | None) -> ImportRun:
        journal = self._store.journal
        open_one, newest = journal.open(self._target.name), journal.last(self._target.name)
        last = open_one if file is not None else newest
        if last is None or last.state == "rolled_back":
            before = f" That of {last.file} was taken back already." if last else ""
            if open_one is not None:
                before += f" To take back the one before it: --rollback --input {open_one.file}"
            raise MisuseError(f"There is no import into {self._target.name} to take back.{before}")
        if file is not None and not _is_of(last, file):
            raise MisuseError(
                f"The last import into {self._target.name} was of another snapshot: "
                f"{last.file}. Only the last one can be taken back."
            )
        return last

    def _batches(
        self, snapshot: Snapshot, account: Account | None
    ) -> Iterator[tuple[Kind, list[Any]]]:
        counts = snapshot.header.counts
        total = sum(getattr(counts, kind.plural) for kind in KINDS) if counts else 0
        self._announce(f"importing into {self._target.name}")
        done = 0
        for kind in KINDS:
            if not self._target.holds(kind):
                continue
            values = snapshot.entries(kind)
            while some := list(islice(values, self._target.batch)):
                done += len(some)
                if account is not None:
                    some = [
                        value
                        for value in some
                        if not account.is_past(kind, getattr(value, kind.key), KINDS)
                    ]
                if some:
                    yield kind, some
                self._tell(done, total)

    def _tell(self, done: int, total: int) -> None:
        if total:
            self._announce("", files=done, share=min(1.0, done / total), unit="entries")

    def _remarks(self, header: Header) -> list[str]:
        base = header.base
        if base is None:
            return []
        last = self._store.journal.finished(self._target.name)
        if last is not None and last.snapshot == base.hash:
            return []
        return [
            "The snapshot only holds what changed since another one, of "
            f"{base.exported_at:%Y-%m-%d %H:%M:%S} UTC, which was not the last to be imported here."
        ]

    def _closing_remarks(self, snapshot: Snapshot) -> list[str]:
        counts = snapshot.header.counts
        remarks = [
            f"{self._target.name} has no place for {kind.plural}; {count:,} were left out."
            for kind in KINDS
            if not self._target.holds(kind) and counts and (count := getattr(counts, kind.plural))
        ]
        if isinstance(self._target, LocalTarget):
            remarks += [
                f"{former} is called {now} here; it was left as it is."
                for former, now in self._target.renamed.items()
            ]
        return remarks

    def _audit(self, transaction: Any, action: str, file: str) -> None:
        audit(transaction, action, self._target.name, at=self._now(), details=file)

    def _report(
        self,
        file: Path,
        account: Account,
        remarks: list[str],
        *,
        resumed: bool,
        dry_run: bool = False,
    ) -> ImportReport:
        return ImportReport(
            file=str(file),
            platform=self._target.name,
            import_id=None if dry_run else account.run.id,
            dry_run=dry_run,
            resumed=resumed,
            sums=account.sums,
            changes=tuple(account.changes),
            conflicts=tuple(account.conflicts),
            remarks=tuple(remarks),
        )


def _kept(undone: Undone) -> EntryReport:
    return EntryReport(
        kind=undone.kind.singular, key=undone.key, change="unchanged", aspects=undone.left.kept
    )


def _is_of(run: ImportRun, file: Path) -> bool:
    """Whether an import was of that snapshot, which need not be there any more."""
    if not file.exists():
        return str(file.resolve()) == run.file
    with open_snapshot(file) as snapshot:
        return _identity(file, snapshot.header) == run.snapshot


def _identity(file: Path, header: Header) -> str:
    """What tells a snapshot from others: its own hash, or else that of its file."""
    if header.hashes is not None:
        return header.hashes.overall
    facts = to_json(header.facts) if file.is_dir() else file.read_bytes()
    return hashlib.sha256(facts).hexdigest()
