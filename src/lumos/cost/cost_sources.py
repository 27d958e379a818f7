"""The inputs that users maintain: imported meters (resource usage of jobs) and cost overrides."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Final

import msgspec

from lumos.config import Settings
from lumos.config.prices import CurrencyMix, engine_of, exact_decimal, overrides_of, prices_of
from lumos.cost.inputs.nodes import NodeFinder, load_nodes
from lumos.cost.meters.compression import UnreadableUsageFile
from lumos.cost.meters.reader import MeterReading, find_meters, read_meter
from lumos.errors import MisuseError, UnknownName
from lumos.model.cost import COST_TYPES, CostType, MeteredUsage
from lumos.model.money import amount_of, micros
from lumos.model.report import FORMAT_VERSION, Report
from lumos.names import find_urn
from lumos.progress import Progress, no_progress
from lumos.store import Store
from lumos.store.costs import EPOCH, MeterChange, StoredOverride, time_range_text
from lumos.store.errors import AmbiguousName, UnknownDataset
from lumos.store.transaction import current_user

_BATCH: Final = 500


class IngestedMeter(Report, frozen=True, kw_only=True):
    """The import of one reporter; `jobs` is the number of jobs and datasets with usage."""

    reporter: str
    kind: str
    files: int
    jobs: int
    added: int
    changed: int
    unchanged: int
    since: datetime | None
    until: datetime | None


class MeteringReport(Report, frozen=True, kw_only=True):
    """The result of `lumos cost ingest`."""

    format_version: str = FORMAT_VERSION
    meters: tuple[IngestedMeter, ...]
    remarks: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class ListedMeter(Report, frozen=True, kw_only=True):
    """A reporter of resource usage and the time that its data covers."""

    reporter: str
    rows: int
    since: datetime
    until: datetime


class MetersReport(Report, frozen=True, kw_only=True):
    """The result of `lumos cost meters`."""

    format_version: str = FORMAT_VERSION
    meters: tuple[ListedMeter, ...]


class ForgottenMeter(Report, frozen=True, kw_only=True):
    """The result of `lumos cost remove --meter`."""

    format_version: str = FORMAT_VERSION
    reporter: str
    rows: int


class ListedOverride(Report, frozen=True, kw_only=True):
    """A monthly cost that a user has set."""

    urn: str
    type: str
    amount: Decimal
    currency: str
    since: date | None
    until: date | None
    reason: str
    author: str
    origin: str


class OverridesReport(Report, frozen=True, kw_only=True):
    """The result of `lumos cost list`, `set` and `remove`; `removed` is a number of overrides."""

    format_version: str = FORMAT_VERSION
    overrides: tuple[ListedOverride, ...]
    removed: int = 0


class CostSources:
    """Imports meters and manages overrides; the SDK property `cost_sources`."""

    def __init__(
        self,
        settings: Settings,
        store: Callable[[], Store],
        create_store: Callable[[], Store],
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._settings = settings
        self._store = store
        self._create_store = create_store
        self._clock = clock

    def ingest(
        self,
        *paths: str | Path,
        name: str | None = None,
        engine: str = "",
        replace: bool = False,
        progress: Progress = no_progress,
    ) -> MeteringReport:
        """Import usage from Spark event logs, dbt run results, CSV tables, or folders of these.

        `name` is the reporter name for all files, and `engine` the engine for files that do not
        contain one. With `replace`, earlier imports of the same reporter are deleted first. An
        unreadable file is reported and skipped; a table with invalid rows is rejected.
        """
        store = self._create_store()
        ingest = _MeterImport(store, self._currency, self._clock(), name=name, replace=replace)
        for meter in find_meters(paths):
            progress(meter.name)
            try:
                reading = read_meter(meter, engine=engine_of(engine))
            except UnreadableUsageFile as problem:
                ingest.problems.append(str(problem))
                continue
            ingest.add(reading)
        if not ingest.readings and not ingest.problems:
            raise MisuseError(
                f"No usage found in {', '.join(map(str, paths))}: no Spark event log, no "
                "run_results.json of dbt and no table with the columns job, quantity or amount."
            )
        ingest.check_overlaps()
        report = ingest.write()
        finder = NodeFinder(store, self._settings, load_nodes(store))
        metered = (
            each
            for readings in ingest.readings.values()
            for reading in readings
            for each in reading.metered
        )
        names = dict.fromkeys(
            each.target for each in metered if not (each.is_reserved or finder.charged_nodes(each))
        )
        if not names:
            return report
        remark = f"Usage is unallocated: {finder.explain_unmatched(list(names))}"
        return msgspec.structs.replace(report, remarks=(*report.remarks, remark))

    def meters(self) -> MetersReport:
        """The reporters of resource usage and the time that their data covers."""
        return MetersReport(
            meters=tuple(
                ListedMeter(
                    reporter=each.reporter, rows=each.rows, since=each.first, until=each.last
                )
                for each in self._store().costs.meters()
            )
        )

    def forget(self, reporter: str) -> ForgottenMeter:
        """Delete all imported usage of a reporter."""
        store = self._store()
        known = [each.reporter for each in store.costs.meters()]
        if reporter not in known and f"table:{reporter}" in known:
            reporter = f"table:{reporter}"
        if reporter not in known:
            raise UnknownName(
                "meter", reporter, known, listed="Meters", next="See all with: lumos cost meters"
            )
        with store.transaction() as transaction:
            rows = transaction.costs.delete_usage(reporter)
            transaction.audit("cost remove", reporter, at=self._clock())
        return ForgottenMeter(reporter=reporter, rows=rows)

    def set(
        self,
        target: str,
        costs: Mapping[str, Decimal | int | str],
        *,
        since: str | None = None,
        until: str | None = None,
        currency: str | None = None,
        reason: str = "",
    ) -> OverridesReport:
        """Set the monthly own cost of a dataset or job by cost type."""
        types = {_cost_type(name): micros(amount) for name, amount in costs.items()}
        if not types:
            raise MisuseError("No cost given. Write it as: lumos cost set orders storage=120")
        if currency is not None and currency.upper() != self._currency:
            raise CurrencyMix({currency.upper(), self._currency}, "The amount and prices are in")
        first, last = _parse_day(since) or EPOCH, _parse_day(until)
        if last is not None and last < first:
            raise MisuseError(f"--until {last} is before --since {first}.")
        store = self._store()
        urn = _resolve_urn(store, target)
        at = self._clock()
        with store.transaction() as transaction:
            for cost_type, amount in types.items():
                transaction.costs.set_override(
                    StoredOverride(
                        urn,
                        cost_type,
                        first,
                        last,
                        amount,
                        self._currency,
                        reason,
                        current_user(),
                        at,
                    )
                )
                details = f"{cost_type} {amount_of(amount)} {self._currency} since {first}"
                transaction.audit("cost set", urn, at=at, details=details)
        return self.overrides(urn)

    def unset(self, target: str, types: Iterable[str] = ()) -> OverridesReport:
        """Remove the overrides of a dataset or job, for some cost types or for all."""
        store = self._store()
        names = {_cost_type(each) for each in types}
        stored = store.costs.overrides()
        urn = target if target in {each.urn for each in stored} else _resolve_urn(store, target)
        with store.transaction() as transaction:
            removed = transaction.costs.delete_overrides({urn, target}, names)
            if removed:
                transaction.audit("cost unset", urn, at=self._clock(), details=" ".join(names))
        if not removed:
            known = [each.urn for each in stored]
            raise UnknownName(
                "override", target, known, listed="Overrides", next="See all with: lumos cost list"
            )
        report = self.overrides(urn)
        return OverridesReport(overrides=report.overrides, removed=removed)

    def overrides(self, target: str | None = None) -> OverridesReport:
        """Overrides from commands and from the configuration, for one target or for all."""
        stored = (
            ListedOverride(
                urn=each.urn,
                type=each.type,
                amount=amount_of(each.amount),
                currency=each.currency,
                since=None if each.since == EPOCH else each.since,
                until=each.until,
                reason=each.reason,
                author=each.author,
                origin="command",
            )
            for each in self._store().costs.overrides()
        )
        all_overrides = (*stored, *self._configured())
        return OverridesReport(
            overrides=tuple(each for each in all_overrides if target in (None, each.urn))
        )

    def _configured(self) -> Iterable[ListedOverride]:
        for each in overrides_of(self._settings):
            for cost_type, amount in each.costs.items():
                yield ListedOverride(
                    urn=each.target,
                    type=cost_type,
                    amount=exact_decimal(amount),
                    currency=self._currency,
                    since=each.first_day,
                    until=each.last_day,
                    reason=each.reason,
                    author="",
                    origin="configuration",
                )

    @property
    def _currency(self) -> str:
        return prices_of(self._settings).currency


class _MeterImport:
    """Collects the usage in several files and writes it in one transaction."""

    def __init__(
        self, store: Store, currency: str, at: datetime, *, name: str | None, replace: bool
    ) -> None:
        self._store = store
        self._currency = currency
        self._at = at
        self._name = name
        self._replace = replace
        self.readings: dict[tuple[str, str], list[MeterReading]] = {}
        self.problems: list[str] = []

    def add(self, reading: MeterReading) -> None:
        """Collect a reading; raises CurrencyMix if its amounts are in another currency."""
        currencies = {each.currency for each in reading.metered if each.currency is not None}
        if currencies - {self._currency}:
            where = f"{reading.meter.name} and the configuration are in"
            raise CurrencyMix({*currencies, self._currency}, where)
        reporter = self._name or reading.reporter
        self.readings.setdefault((reporter, reading.meter.kind), []).append(reading)

    def check_overlaps(self) -> None:
        """Raise if files of one reporter contain different usage for the same time."""
        by_subject: dict[tuple[str, tuple[str, ...]], list[tuple[MeteredUsage, str]]] = {}
        for (reporter, _), readings in self.readings.items():
            for reading in readings:
                for each in reading.metered:
                    if not each.run:
                        usages = by_subject.setdefault((reporter, each.subject), [])
                        usages.append((each, reading.meter.name))
        for (reporter, _), usages in by_subject.items():
            usages.sort(key=lambda pair: (pair[0].started_at, pair[0].ended_at))
            for (usage, file), (next_usage, other_file) in pairwise(usages):
                if usage != next_usage and usage.overlaps(next_usage):
                    raise MisuseError(
                        f"{file} and {other_file} both have the name {reporter} and different "
                        f"usage of {usage.target} {time_range_text(usage)}. Keep one of them, or "
                        "import each with its own --name."
                    )

    def write(self) -> MeteringReport:
        """Write all readings in one transaction and report the changes."""
        at, deleted = self._at, set()
        meters: list[IngestedMeter] = []
        with self._store.transaction() as transaction:
            costs = transaction.costs
            for (reporter, kind), readings in self.readings.items():
                if self._replace and reporter not in deleted:
                    costs.delete_usage(reporter)
                    deleted.add(reporter)
                change = MeterChange()
                for start in range(0, len(readings), _BATCH):
                    batch = readings[start : start + _BATCH]
                    rows = [each for reading in batch for each in reading.metered]
                    added = costs.add_usage(reporter, rows, at=at, replace_runs=kind != "table")
                    change = MeterChange(*(a + b for a, b in zip(change, added, strict=True)))
                meters.append(_import_summary(reporter, kind, readings, change))
                transaction.audit("cost ingest", reporter, at=at)
        remarks = [
            remark
            for readings in self.readings.values()
            for reading in readings
            for remark in reading.remarks
        ]
        return MeteringReport(
            meters=tuple(meters), remarks=tuple(remarks), problems=tuple(self.problems)
        )


def _import_summary(
    reporter: str, kind: str, readings: list[MeterReading], change: MeterChange
) -> IngestedMeter:
    rows = [each for reading in readings for each in reading.metered]
    return IngestedMeter(
        reporter=reporter,
        kind=kind,
        files=len(readings),
        jobs=len({(each.target, each.is_dataset) for each in rows}),
        added=change.added,
        changed=change.changed,
        unchanged=change.unchanged,
        since=min((each.started_at for each in rows), default=None),
        until=max((each.ended_at for each in rows), default=None),
    )


def _resolve_urn(store: Store, name: str) -> str:
    """The URN of a dataset or job."""
    try:
        return find_urn(store, name, with_lineage=True)
    except UnknownDataset:
        jobs = [job.urn for job in store.lineage.jobs() if name in (job.urn, job.name)]
        if len(jobs) == 1:
            return jobs[0]
        if jobs:
            raise AmbiguousName(name, tuple(jobs[:5])) from None
        raise


def _cost_type(name: str) -> CostType:
    for cost_type in COST_TYPES:
        if cost_type == name.strip().lower():
            return cost_type
    raise UnknownName("cost type", name, COST_TYPES, listed="Cost types")


def _parse_day(text: str | None) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise MisuseError(f"Invalid day '{text}'. Write it as 2024-01-15.") from None
