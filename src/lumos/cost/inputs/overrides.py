"""Own costs that people set, in the place of those that were measured."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import date, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from lumos.config import Settings
from lumos.config.prices import CurrencyMix, exact, overrides_of
from lumos.cost.inputs.compute import ComputeCosts
from lumos.cost.inputs.names import Finder
from lumos.cost.solver.graph import Integers
from lumos.errors import MisuseError
from lumos.model.metering import COST_TYPES, CostType
from lumos.model.money import amount_of, micros
from lumos.model.period import Period
from lumos.store.errors import UnknownDataset

if TYPE_CHECKING:
    from lumos.store import Store

_A_DAY = timedelta(days=1)


class _Stretch(NamedTuple):
    """An amount per month, from a day on and before another."""

    since: date
    before: date
    amount: int


def override_costs(
    costs: Integers,
    store: "Store",
    settings: Settings,
    currency: str,
    period: Period,
    finder: Finder,
    compute: ComputeCosts,
) -> tuple[str, ...]:
    """Puts what people set into the costs of a period; gives what should be known about it.

    What was set with a command counts before the configuration. Days that nobody set anything for
    count as measured.
    """
    kept, remarks = _kept(store, currency, finder)
    for at, stretches in {**dict(_configured(settings, finder)), **kept}.items():
        node, cost_type = at
        row = COST_TYPES.index(cost_type)
        costs[row, node] += _difference(
            int(costs[row, node]), _parts(stretches, period), period, compute, node, cost_type
        )
    return remarks


def _difference(
    measured: int,
    parts: list[tuple[Period, int | None]],
    period: Period,
    compute: ComputeCosts,
    node: int,
    cost_type: CostType,
) -> int:
    """By how much what was set differs from what was measured."""
    free = [part for part, amount in parts if amount is None]
    if free == [period]:
        return 0
    total = sum(
        (amount * _months(part, period) for part, amount in parts if amount is not None),
        Fraction(),
    )
    # Storage is kept on every day alike; what was metered counts on the day on which it was.
    stored = measured - compute.cost(node, cost_type)
    total += stored * sum((_months(part, period) for part in free), Fraction()) / period.months
    total += sum(compute.cost_of_part(part, node, cost_type) for part in free)
    return round(total) - measured


def _parts(stretches: list[_Stretch], period: Period) -> list[tuple[Period, int | None]]:
    """The period in parts, each with the amount that the latest stretch before it sets, if any."""
    end = period.last + _A_DAY
    ordered = sorted(stretches)
    found: list[tuple[Period, int | None]] = []
    day = period.first
    for number, each in enumerate(ordered):
        follows = ordered[number + 1].since if number + 1 < len(ordered) else end
        first, before = max(each.since, period.first), min(each.before, follows, end)
        if first < before:
            found += [(_part(period, day, first), None)] if day < first else []
            found.append((_part(period, first, before), each.amount))
            day = before
    return [*found, (_part(period, day, end), None)] if day < end else found


def _part(period: Period, first: date, before: date) -> Period:
    last = before - _A_DAY
    if (first, last) == (period.first, period.last):
        return period
    return Period(name=f"{first}..{last}", kind="custom", first=first, last=last)


def _months(part: Period, whole: Period) -> Fraction:
    """How many months' prices are due for a part; the last thirty days are one month."""
    return Fraction(part.days, whole.days) if whole.kind == "recent" else part.months


def _kept(
    store: "Store", currency: str, finder: Finder
) -> tuple[dict[tuple[int, CostType], list[_Stretch]], tuple[str, ...]]:
    found: dict[tuple[int, CostType], list[_Stretch]] = defaultdict(list)
    gone: set[str] = set()
    overrides = store.costs.overrides()
    currencies = {currency, *(each.currency for each in overrides)}
    if len(currencies) > 1:
        raise CurrencyMix(currencies, "Overrides (lumos cost list) and prices are in")
    for each in overrides:
        try:
            node = finder.node(each.urn)
        except UnknownDataset:
            gone.add(each.urn)
            continue
        before = date.max if each.until is None else each.until + _A_DAY
        found[node, _cost_type(each.type)].append(_Stretch(each.since, before, each.amount))
    remarks = tuple(
        f"The cost override of {urn} is ignored: no such dataset or job exists any more."
        for urn in sorted(gone)
    )
    return found, remarks


def _configured(
    settings: Settings, finder: Finder
) -> Iterator[tuple[tuple[int, CostType], list[_Stretch]]]:
    found: dict[tuple[int, CostType], list[_Stretch]] = defaultdict(list)
    for each in overrides_of(settings):
        node = finder.configured(each.target, "An override")
        since = each.first_day or date.min
        before = date.max if each.last_day is None else each.last_day + _A_DAY
        for cost_type, amount in each.costs.items():
            stretch = _Stretch(since, before, micros(exact(amount)))
            _refuse_overlap(each.target, cost_type, found[node, cost_type], stretch)
            found[node, cost_type].append(stretch)
    yield from found.items()


def _refuse_overlap(name: str, cost_type: str, known: list[_Stretch], told: _Stretch) -> None:
    for each in known:
        if each.since < told.before and told.since < each.before:
            raise MisuseError(
                f"Two overrides in the configuration set the {cost_type} cost of {name} for the "
                f"same time, to {amount_of(each.amount)} and {amount_of(told.amount)}. Give them "
                "'since' and 'until', or keep one."
            )


def _cost_type(name: str) -> CostType:
    return next(each for each in COST_TYPES if each == name)
