"""Results of the gate that CI systems send to a server, recorded in the store."""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from lumos.errors import UnknownName
from lumos.gate.reports import GateReport, GateVerdict
from lumos.model.json_codec import from_json, to_json
from lumos.model.report import FORMAT_VERSION, Report
from lumos.store import Store
from lumos.store.gate_results import StoredGateResult, save_gate_result
from lumos.store.transaction import current_user

_ID_LENGTH: Final = 16


class GateResult(Report, frozen=True, kw_only=True):
    """A recorded result of the gate, without its findings."""

    id: str
    recorded_at: datetime
    recorded_by: str
    repository: str
    pr: int | None
    head: str
    verdict: str
    headline: str


class GateResultReport(Report, frozen=True, kw_only=True):
    """A recorded result with the report that `lumos gate` printed."""

    format_version: str = FORMAT_VERSION
    result: GateResult
    report: GateReport


class GateResultsReport(Report, frozen=True, kw_only=True):
    """Recorded results, newest first."""

    format_version: str = FORMAT_VERSION
    results: tuple[GateResult, ...]


class GateResults:
    """The recorded results of the gate."""

    def __init__(
        self,
        store: Callable[[], Store],
        create_store: Callable[[], Store],
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._open = store
        self._create_store = create_store
        self._clock = clock

    def record(
        self, report: GateReport, *, repository: str, pr: int | None = None
    ) -> GateResultReport:
        """Record a report of the gate; a report that is already recorded is not added again."""
        body = to_json(report)
        identity = to_json([repository, pr, body.decode()])
        id = hashlib.sha256(identity).hexdigest()[:_ID_LENGTH]
        at = self._clock()
        verdict: GateVerdict = report.verdict
        stored = StoredGateResult(
            id=id,
            recorded_at=at,
            recorded_by=current_user(),
            repository=repository,
            pr=pr,
            head=report.head_commit,
            verdict=verdict,
            body=body,
        )
        store = self._create_store()
        with store.transaction() as transaction:
            if save_gate_result(transaction, stored):
                transaction.audit("gate result", repository, at=at, details=report.headline)
        return self.show(id)

    def list(
        self, *, repository: str | None = None, pr: int | None = None, limit: int = 50
    ) -> GateResultsReport:
        """The newest results."""
        found = self._open().gate_results.newest(repository=repository, pr=pr, limit=limit)
        return GateResultsReport(
            results=tuple(_result(each, from_json(each.body, GateReport)) for each in found)
        )

    def show(self, id: str) -> GateResultReport:
        """A result with its findings."""
        found = self._open().gate_results.get(id)
        if found is None:
            raise UnknownName("result of the gate", id, ())
        report = from_json(found.body, GateReport)
        return GateResultReport(result=_result(found, report), report=report)


def _result(stored: StoredGateResult, report: GateReport) -> GateResult:
    return GateResult(
        id=stored.id,
        recorded_at=stored.recorded_at,
        recorded_by=stored.recorded_by,
        repository=stored.repository,
        pr=stored.pr,
        head=stored.head,
        verdict=stored.verdict,
        headline=report.headline,
    )
