"""How costs went: what is on record of earlier periods, and what it is now."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

from lumos.cost.ledger import Books
from lumos.cost.reports import Compared, TrendPoint, Trends
from lumos.model.money import amount_of
from lumos.model.period import Period, month_before, period_of, quarter_before
from lumos.store import Store
from lumos.store.costs import RecordedPeriod


class History:
    """The periods on record of one dataset, or of all that was spent, that some books go on from.

    They are in the same currency. What a dataset costs depends on the method; what was spent does
    not.
    """

    def __init__(self, store: Store, books: Books, urn: str | None) -> None:
        costs = store.costs
        kept = [each for each in costs.periods() if each.currency == books.inputs.currency]
        self._others = {each.method for each in kept if urn and each.method != books.method}
        self._method = books.method
        self._periods = {each.name: each for each in kept if each.method not in self._others}
        if urn is None:
            spent = costs.totals()
        else:
            spent = {
                name: {each.type: each.total for each in figures}
                for name, figures in costs.history(urn).items()
            }
        self._costs: Mapping[str, Mapping[str, int]] = {
            name: spent[name] for name in self._periods if name in spent
        }

    @property
    def remarks(self) -> tuple[str, ...]:
        """What on record is not compared."""
        return tuple(
            f"Records computed with {each} are not compared with costs by {self._method}."
            for each in sorted(self._others)
        )

    def points(self, *, until: Period) -> tuple[TrendPoint, ...]:
        """Whole months before a period, the earliest first; others where no month is kept."""
        kept = [self._periods[name] for name in self._costs]
        end = until.last if until.kind == "recent" else until.first - timedelta(days=1)
        kept = [each for each in kept if each.last <= end]
        months = [each for each in kept if _period(each).kind == "month"]
        return tuple(self._point(each) for each in months or kept)

    def trends(self, period: Period, now: int) -> Trends:
        """A period's monthly cost against the month and the quarter before it."""
        monthly = Fraction(now) / period.months
        month = self._compared([month_before(period)], monthly)
        quarter = self._compared(quarter_before(period), monthly)
        return Trends(
            vs_last_month=month.percent if month else None,
            vs_last_quarter=quarter.percent if quarter else None,
            last_month=month,
            last_quarter=quarter,
        )

    def _compared(self, months: Sequence[Period], monthly: Fraction) -> Compared | None:
        """The mean of those months that are on record."""
        known = [each for each in months if each.name in self._costs]
        if not known:
            return None
        mean = Fraction(sum(self._sum(each.name) for each in known), len(known))
        percent = float((monthly - mean) / abs(mean) * 100) if mean > 0 else None
        return Compared(
            periods=tuple(each.name for each in known),
            cost=amount_of(round(mean)),
            percent=None if percent is None else round(percent, 1),
        )

    def _sum(self, name: str) -> int:
        return sum(self._costs[name].values())

    def _point(self, period: RecordedPeriod) -> TrendPoint:
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
        )


def point_of(books: Books, urn: str | None) -> TrendPoint:
    """What a dataset, or everything, costs in some books, as a point beside those on record."""
    period = books.inputs.period
    if urn is None:
        cost, by_type = books.spent, spent_by_type(books)
    else:
        node = books.places[urn]
        cost = int(books.totals[node])
        by_type = books.by_type(books.attribution.loaded[:, node])
    return TrendPoint(
        period=period.name,
        first_day=period.first,
        last_day=period.last,
        cost=amount_of(cost),
        monthly=amount_of(books.monthly(cost)),
        by_type=by_type,
    )


def spent_by_type(books: Books) -> dict[str, Decimal]:
    """All that was spent by cost type, what lineage does not carry under `other`."""
    by_type = {
        name: int(amount)
        for name, amount in zip(books.graph.types, books.graph.costs.sum(axis=1), strict=True)
    }
    by_type["other"] = by_type.get("other", 0) + sum(books.beside.values())
    return {name: amount_of(amount) for name, amount in by_type.items() if amount}


def _period(recorded: RecordedPeriod) -> Period:
    return period_of(recorded.name, today=recorded.last)
