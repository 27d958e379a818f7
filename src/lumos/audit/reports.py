"""Reports of `lumos audit`."""

from datetime import datetime
from typing import Any, Literal

import msgspec

from lumos.actor import ActorKind
from lumos.model.report import FORMAT_VERSION, Report
from lumos.store.audit import AuditRow

AuditFault = Literal["changed", "removed", "inserted"]


class AuditEntry(Report, frozen=True, kw_only=True):
    """An action: who (`kind`, `actor`) did what (`action`, `target`), when and from where.

    `before` and `after` are the values that the action changed, if they were recorded.
    """

    sequence: int
    at: datetime
    kind: ActorKind
    actor: str
    origin: str
    action: str
    target: str
    details: str
    before: Any
    after: Any
    request_id: str
    hash: str

    @classmethod
    def of(cls, row: AuditRow) -> "AuditEntry":
        return cls(
            sequence=row.sequence,
            at=row.recorded_at,
            kind=row.kind,
            actor=row.actor,
            origin=row.origin,
            action=row.action,
            target=row.target,
            details=row.details,
            before=None if row.before is None else msgspec.json.decode(row.before),
            after=None if row.after is None else msgspec.json.decode(row.after),
            request_id=row.request_id,
            hash=row.hash,
        )


class AuditListReport(Report, frozen=True, kw_only=True):
    """The report of `lumos audit list`, newest first."""

    format_version: str = FORMAT_VERSION
    entries: tuple[AuditEntry, ...]


class AuditProblem(Report, frozen=True, kw_only=True):
    """The first row at which the log does not match its hashes."""

    sequence: int
    fault: AuditFault
    sentence: str


class AuditVerifyReport(Report, frozen=True, kw_only=True):
    """The report of `lumos audit verify`; `head` is the hash of the last row."""

    format_version: str = FORMAT_VERSION
    rows: int
    head: str
    problems: tuple[AuditProblem, ...]


class AuditExportReport(Report, frozen=True, kw_only=True):
    """The report of `lumos audit export`."""

    format_version: str = FORMAT_VERSION
    file: str
    rows: int
    head: str
