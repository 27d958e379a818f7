"""The service behind `lumos audit`: list, verify and export the audit log."""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from lumos.audit.reports import (
    AuditEntry,
    AuditExportReport,
    AuditListReport,
    AuditProblem,
    AuditVerifyReport,
)
from lumos.model.json_codec import to_json
from lumos.model.time_expression import parse_time
from lumos.store import Store
from lumos.store.audit import GENESIS, AuditFilter, AuditHead, AuditRow


class Audit:
    """The audit log of one store."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._open = store

    def list(
        self,
        *,
        since: str | None = None,
        actor: str | None = None,
        action: str | None = None,
        target: str | None = None,
        limit: int = 50,
        before: int | None = None,
    ) -> AuditListReport:
        """The newest actions; `target` is a part of a dataset's URN or of another target.

        `before` is a sequence number: only actions with a lower one are listed.
        """
        start = None if since is None else parse_time(since, now=datetime.now(UTC))
        filter = AuditFilter(
            since=start, actor=actor, action=action, target=target, limit=limit, before=before
        )
        return AuditListReport(entries=tuple(map(AuditEntry.of, self._open().audit.newest(filter))))

    def entries(self) -> Iterator[AuditEntry]:
        """All actions, oldest first, read lazily."""
        return map(AuditEntry.of, self._open().audit.oldest())

    def verify(self, *, head: str | None = None) -> AuditVerifyReport:
        """Check that no row was changed, removed or inserted.

        `head` is the hash that an earlier verification or export returned; the log must still
        contain it. Without a hash that is stored elsewhere, a rewrite of the entire log cannot be
        detected.
        """
        audit = self._open().audit
        return verify_chain(audit.oldest(), audit.head(), expected_hash=head)

    def export(self, file: str | Path) -> AuditExportReport:
        """Write all actions to a file, oldest first, one JSON object per line."""
        target = Path(file)
        target.parent.mkdir(parents=True, exist_ok=True)
        rows, head = 0, GENESIS
        with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as stream:
            try:
                for entry in self.entries():
                    stream.write(to_json(entry) + b"\n")
                    rows, head = rows + 1, entry.hash
                stream.close()
                os.replace(stream.name, target)
            except BaseException:
                os.unlink(stream.name)
                raise
        return AuditExportReport(file=str(file), rows=rows, head=head)


def verify_chain(
    rows: Iterable[AuditRow], head: AuditHead | None, *, expected_hash: str | None = None
) -> AuditVerifyReport:
    """Compare each row with its hash, and the last one with the recorded end of the log.

    Only the first fault is reported, since it invalidates the hashes of all later rows.
    """
    previous, count = GENESIS, 0
    contains_expected_hash = expected_hash is None or expected_hash == GENESIS
    problem: AuditProblem | None = None
    for row in rows:
        count += 1
        if problem is None:
            problem = _fault(row, previous, expected=count)
        contains_expected_hash = contains_expected_hash or row.hash == expected_hash
        previous = row.hash
    if problem is None:
        problem = _end_fault(count, previous, head)
    if problem is None and not contains_expected_hash:
        text = f"The log no longer contains the hash {expected_hash}: it was rewritten."
        problem = AuditProblem(sequence=count, fault="changed", sentence=text)
    problems = () if problem is None else (problem,)
    return AuditVerifyReport(rows=count, head=previous, problems=problems)


def _fault(row: AuditRow, previous: str, *, expected: int) -> AuditProblem | None:
    if row.sequence > expected:
        text = f"Row {expected} was removed: row {row.sequence} follows row {expected - 1}."
        return AuditProblem(sequence=expected, fault="removed", sentence=text)
    if row.sequence < expected:
        text = f"Row {row.sequence} was inserted."
        return AuditProblem(sequence=row.sequence, fault="inserted", sentence=text)
    if row.hash != row.expected_hash(previous):
        text = f"Row {row.sequence} was changed: its content does not match its hash."
        return AuditProblem(sequence=row.sequence, fault="changed", sentence=text)
    return None


def _end_fault(count: int, last: str, head: AuditHead | None) -> AuditProblem | None:
    if head is None:
        text = "The recorded end of the log was removed."
        return AuditProblem(sequence=count, fault="removed", sentence=text)
    if count < head.sequence:
        text = f"Rows {count + 1} to {head.sequence} were removed."
        return AuditProblem(sequence=count + 1, fault="removed", sentence=text)
    if count > head.sequence:
        text = f"Rows after {head.sequence} were inserted."
        return AuditProblem(sequence=head.sequence + 1, fault="inserted", sentence=text)
    if last != head.hash:
        text = f"Row {count} was changed: its hash is not the recorded end of the log."
        return AuditProblem(sequence=count, fault="changed", sentence=text)
    return None
