"""Recorded costs: record a period, and compare costs with earlier periods."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Final

import msgspec
import numpy as np

from lumos.cost.ledger import CostLedger
from lumos.cost.reports import CostComparison, CostTrends, TrendPoint
from lumos.cost.solver.graph import Integers
from lumos.cost.wording import metered_text
from lumos.model.dataset import Cost
from lumos.model.money import MICRO, amount_of
from lumos.model.period import Period, month_before, period_of, quarter_before
from lumos.store import Store
from lumos.store.costs import CostFigure, RecordedPeriod

_WRITER: Final = "cost"
_UNATTRIBUTED_TYPE: Final = "other"
_BATCH: Final = 500


def record(store: Store, ledger: CostLedger, *, aspects: bool, at: datetime) -> tuple[int, int]:
    """Record a period; return the number of recorded nodes and of written cost aspects.

    Cost aspects of datasets are only written if `aspects`, and for the latest recorded period.
    """
    inputs = ledger.inputs
    latest = max((each.last for each in store.costs.periods()), default=inputs.period.last)
    with store.transaction() as transaction:
        transaction.costs.record(
            inputs.period,
            _figures(ledger),
            method=ledger.method,
            currency=inputs.currency,
            at=at,
        )
    recorded = int(((ledger.own != 0) | (ledger.totals != 0)).sum())
    is_latest = inputs.period.last >= latest
    return recorded, _write_aspects(store, ledger, at) if aspects and is_latest else 0


def _figures(ledger: CostLedger) -> Iterator[CostFigure]:
    graph, attribution = ledger.graph, ledger.attribution
    has_cost = (graph.costs != 0) | (attribution.loaded != 0)
    for row, node in zip(*np.nonzero(has_cost), strict=True):
        own, total = int(graph.costs[row, node]), int(attribution.loaded[row, node])
        retained = int(attribution.retained[row, node])
        yield CostFigure(ledger.urn(node), graph.types[row], own, total - own, total, retained)
    for name, amount in ledger.unattributed.items():
        yield CostFigure(name, _UNATTRIBUTED_TYPE, amount, 0, amount, amount)


def _write_aspects(store: Store, ledger: CostLedger, at: datetime) -> int:
    """Write the cost aspects of datasets whose costs have changed."""
    before = store.aspects("cost")
    live_urns = {each.urn for each in store.dataset_locations() if each.state == "live"}
    changed = (
        (urn, cost)
        for urn, cost in _costs(ledger, at)
        if urn in live_urns and not _is_same(before.get(urn), cost)
    )
    written = 0
    while batch := list(islice(changed, _BATCH)):
        with store.transaction() as transaction:
            for urn, cost in batch:
                transaction.save_aspect(urn, "cost", cost, writer=_WRITER, at=at)
        written += len(batch)
    return written


def _costs(ledger: CostLedger, at: datetime) -> Iterator[tuple[str, Cost]]:
    graph, loaded = ledger.graph, ledger.attribution.loaded
    for node in map(int, np.flatnonzero(~graph.is_job)):
        own = _by_type(ledger, graph.costs[:, node])
        attributed = _by_type(ledger, loaded[:, node] - graph.costs[:, node])
        if own or attributed:
            yield (
                ledger.urn(node),
                Cost(
                    currency=ledger.inputs.currency,
                    period=ledger.inputs.period.name,
                    own=own,
                    attributed=attributed,
                    calculated_at=at,
                ),
            )


def _by_type(ledger: CostLedger, amounts: Integers) -> dict[str, float]:
    amounts_by_type = zip(ledger.graph.types, amounts.tolist(), strict=True)
    return {name: amount / MICRO for name, amount in amounts_by_type if amount}


def _is_same(before: Cost | None, after: Cost) -> bool:
    return before is not None and msgspec.structs.replace(before, calculated_at=None) == (
        msgspec.structs.replace(after, calculated_at=None)
    )


class CostHistory:
    """The recorded periods that a ledger is compared with, for one dataset or the total spend.

    Only records in the same currency are used. The cost of a dataset depends on the method, so
    records by another method are omitted; the total spend does not depend on it.
    """

    def __init__(self, store: Store, ledger: CostLedger, urn: str | None) -> None:
        costs = store.costs
        recorded = [each for each in costs.periods() if each.currency == ledger.inputs.currency]
        self._other_methods = {
            each.method for each in recorded if urn and each.method != ledger.method
        }
        self._method = ledger.method
        self._period = ledger.inputs.period
        self._metered_since = costs.metered_since()
        self._periods = {
            each.name: each for each in recorded if each.method not in self._other_methods
        }
        if urn is None:
            costs_by_period = costs.totals()
        else:
            costs_by_period = {
                name: {each.type: each.total for each in figures}
                for name, figures in costs.history(urn).items()
            }
        self._costs: Mapping[str, Mapping[str, int]] = {
            name: costs_by_period[name] for name in self._periods if name in costs_by_period
        }

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on records and periods that are not compared."""
        methods = [
            f"Records computed with {each} are not compared with costs "
            f"computed with {self._method}."
            for each in sorted(self._other_methods)
        ]
        since = self._metering_start_in(self._period)
        if since is None or not self._costs:
            return tuple(methods)
        text = metered_text(since, self._period)
        return (*methods, f"{self._period.name} is not compared with other periods: {text}.")

    def points(self, *, until: Period) -> tuple[TrendPoint, ...]:
        """The recorded months before a period, or other periods if no month is recorded.

        Oldest first.
        """
        recorded = [self._periods[name] for name in self._costs]
        end = until.last if until.kind == "recent" else until.first - timedelta(days=1)
        recorded = [each for each in recorded if each.last <= end]
        months = [each for each in recorded if _period(each).kind == "month"]
        return tuple(self._trend_point(each) for each in months or recorded)

    def trends(self, period: Period, cost: int) -> CostTrends:
        """The monthly cost of a period compared with the month and the quarter before it."""
        monthly = Fraction(cost) / period.months
        month = self._compare([month_before(period)], monthly)
        quarter = self._compare(quarter_before(period), monthly)
        return CostTrends(
            vs_last_month=month.percent if month else None,
            vs_last_quarter=quarter.percent if quarter else None,
            last_month=month,
            last_quarter=quarter,
        )

    def _compare(self, months: Sequence[Period], monthly: Fraction) -> CostComparison | None:
        """Compare a monthly cost with the mean of recorded months, preferably fully metered ones.

        There is no percentage if one of the compared periods is metered for only some of its days.
        """
        recorded = [each for each in months if each.name in self._costs]
        fully_metered = [each for each in recorded if not self._metering_start_in(each)]
        compared = fully_metered or recorded
        if not compared:
            return None
        costs = [sum(self._costs[each.name].values()) for each in compared]
        mean = Fraction(sum(costs), len(costs))
        percent = None
        # A percentage of an amount that is displayed as 0.00 is meaningless.
        is_mean_visible = mean * 100 >= MICRO
        if is_mean_visible and fully_metered and not self._metering_start_in(self._period):
            percent = round(float((monthly - mean) / abs(mean) * 100), 1)
        return CostComparison(
            periods=tuple(each.name for each in compared),
            cost=amount_of(round(mean)),
            percent=percent,
            metered_from=None if fully_metered else self._metered_since,
        )

    def _metering_start_in(self, period: Period) -> date | None:
        return metering_start_in(self._metered_since, period)

    def _trend_point(self, period: RecordedPeriod) -> TrendPoint:
        by_type = self._costs[period.name]
        cost = sum(by_type.values())
        return TrendPoint(
            period=period.name,
            first_day=period.first,
            last_day=period.last,
            cost=amount_of(cost),
            monthly=amount_of(round(cost / _period(period).months)),
            by_type={name: amount_of(amount) for name, amount in by_type.items() if amount},
            recorded_at=period.computed_at,
            metered_from=self._metering_start_in(_period(period)),
        )

    def current_point(self, ledger: CostLedger, urn: str | None) -> TrendPoint:
        """The current cost of a dataset, or the total spend, as a point of a trend."""
        if urn is None:
            cost, by_type = ledger.spent, spent_by_type(ledger)
        else:
            node = ledger.node_by_urn[urn]
            cost = int(ledger.totals[node])
            by_type = ledger.by_type(ledger.attribution.loaded[:, node])
        return TrendPoint(
            period=self._period.name,
            first_day=self._period.first,
            last_day=self._period.last,
            cost=amount_of(cost),
            monthly=amount_of(ledger.monthly(cost)),
            by_type=by_type,
            metered_from=self._metering_start_in(self._period),
        )


def metering_start_in(since: date | None, period: Period) -> date | None:
    """The day on which metering started, if the period is not metered from its first day."""
    return since if since is not None and since > period.first else None


def spent_by_type(ledger: CostLedger) -> dict[str, Decimal]:
    """The total spend by cost type; unattributed costs are of the type `other`."""
    by_type = {
        name: int(amount)
        for name, amount in zip(ledger.graph.types, ledger.graph.costs.sum(axis=1), strict=True)
    }
    by_type["other"] = by_type.get("other", 0) + sum(ledger.unattributed.values())
    return {name: amount_of(amount) for name, amount in by_type.items() if amount}


def _period(recorded: RecordedPeriod) -> Period:
    return period_of(recorded.name, today=recorded.last)
