"""The own cost of datasets and jobs: storage, compute, and amounts that users set."""

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from lumos.config import Settings
from lumos.config.prices import (
    GB,
    CurrencyMix,
    Prices,
    charges_for_storage,
    class_of,
    default_class,
    engine_of,
    exact_decimal,
    overrides_of,
    provider_of,
)
from lumos.cost.inputs.nodes import CostNodes, NodeFinder
from lumos.cost.solver.graph import Integers
from lumos.errors import MisuseError
from lumos.model.cost import COST_TYPES, UNALLOCATED, CostType, MeteredUsage
from lumos.model.money import MICRO, amount_of, check_amount, format_money, micros
from lumos.model.period import Period
from lumos.rendering.text import plural
from lumos.store.costs import EPOCH, StorageSize
from lumos.store.errors import UnknownDataset
from lumos.store.lineage.reported_items import MAX_RUNS

if TYPE_CHECKING:
    from lumos.model.catalog import Job
    from lumos.store import Store


class StorageCosts:
    """The storage cost of all datasets in a period.

    The last size measured on or before the last day is used for the entire period.
    """

    def __init__(
        self,
        store: "Store",
        prices: Prices,
        period: Period,
        cost_nodes: CostNodes,
        *,
        moves: Mapping[str, str],
    ) -> None:
        self._prices = prices
        self._period = period
        self._moves = moves
        self._rates: dict[tuple[str, str], tuple[int, int] | None] = {}
        self.missing: set[str] = set()
        self._unpriced: dict[str, tuple[int, int]] = {}
        self._scanned_later = 0
        # Pairs of node and cost in a flat array, since there may be millions.
        self._costs = array("q")
        for pair in self._compute_costs(cost_nodes, store.costs.sizes(period.last)):
            self._costs.extend(pair)

    def add_to(self, costs: Integers) -> None:
        pairs = np.array(self._costs).reshape(-1, 2)
        costs[pairs[:, 0]] += pairs[:, 1]

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on datasets without a storage price, and on datasets scanned too late."""
        remarks = [
            f"{plural(datasets, 'dataset')} on {provider} "
            f"({_format_size(size)}) {'has' if datasets == 1 else 'have'} no storage price and "
            f"count{'s' if datasets == 1 else ''} as free. To price storage, set "
            f"{self._prices.storage_key(provider, '')}."
            for provider, (datasets, size) in sorted(self._unpriced.items())
        ]
        if self._scanned_later == 1:
            remarks.append("1 dataset was first scanned after this period; its later size is used.")
        elif self._scanned_later:
            remarks.append(
                f"{self._scanned_later:,} datasets were first scanned after this period; their "
                "later sizes are used."
            )
        return tuple(remarks)

    def _compute_costs(
        self, cost_nodes: CostNodes, sizes: Mapping[str, StorageSize]
    ) -> Iterator[tuple[int, int]]:
        last = (self._period.last - EPOCH).days
        for urn, (platform, _) in cost_nodes.datasets.items():
            size = sizes.get(urn)
            if size is None or size.total <= 0:
                continue
            self._scanned_later += size.day > last
            provider = provider_of(platform)
            if urn in self._moves:
                provider, by_class = self._moved_size(provider, size, self._moves[urn])
            else:
                by_class = _by_class(provider, size)
            cost = sum(
                self._cost(provider, name, size_bytes) for name, size_bytes in by_class.items()
            )
            if cost:
                yield cost_nodes.node_by_urn[urn], check_amount(cost, f"for the storage of {urn}")

    @staticmethod
    def _moved_size(provider: str, size: StorageSize, to: str) -> tuple[str, dict[str, int]]:
        other_provider, dot, storage_class = to.rpartition(".")
        new_provider = provider_of(other_provider) if dot else provider
        return new_provider, {class_of(storage_class): size.total}

    def _cost(self, provider: str, storage_class: str, size_bytes: int) -> int:
        key = provider, storage_class
        if key not in self._rates:
            self._rates[key] = self._rate(provider, storage_class)
        rate = self._rates[key]
        if rate is None:
            self._note_missing(provider, storage_class, size_bytes)
            return 0
        numerator, denominator = rate
        return (2 * size_bytes * numerator + denominator) // (2 * denominator)

    def _rate(self, provider: str, storage_class: str) -> tuple[int, int] | None:
        """The price of one byte for the period in micro-units, as a fraction."""
        price = self._prices.of_storage(provider, storage_class)
        if price is None:
            return None
        rate = Fraction(price) * MICRO * self._period.months / GB
        return rate.numerator, rate.denominator

    def _note_missing(self, provider: str, storage_class: str, size_bytes: int) -> None:
        priced = any(each == provider for each, _ in self._prices.storage)
        if priced or charges_for_storage(provider):
            self.missing.add(self._prices.storage_key(provider, storage_class))
        else:
            datasets, size = self._unpriced.get(provider, (0, 0))
            self._unpriced[provider] = datasets + 1, size + size_bytes


def _format_size(size: int) -> str:
    return f"{size / GB:,.1f} GB" if size >= GB / 10 else f"{size / 1024**2:,.1f} MB"


def _by_class(provider: str, size: StorageSize) -> dict[str, int]:
    """Bytes by storage class; bytes of an unknown class are in the default class."""
    bytes_by_class: dict[str, int] = {}
    for name, size_bytes in size.classes.items():
        storage_class = class_of(name) or default_class(provider)
        bytes_by_class[storage_class] = bytes_by_class.get(storage_class, 0) + size_bytes
    if unclassified := size.total - sum(bytes_by_class.values()):
        default = default_class(provider)
        bytes_by_class[default] = bytes_by_class.get(default, 0) + unclassified
    return {name: size_bytes for name, size_bytes in bytes_by_class.items() if size_bytes > 0}


_FACTOR: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*x?\Z", re.ASCII)
_RUNS_PER_DAY: Final = {
    "hourly": Fraction(24),
    "daily": Fraction(1),
    "weekly": Fraction(1, 7),
    "monthly": Fraction(1200, 36525),
    "never": Fraction(0),
}


def schedule_factor(schedule: str, *, runs: int, days: int, name: str) -> Fraction:
    """The factor by which a schedule changes a job's cost.

    For `0.5x` it is 1/2. For `weekly` it is the number of weeks divided by the number of runs.
    """
    normalized = schedule.strip().lower()
    if match := _FACTOR.match(normalized):
        return Fraction(match.group(1))
    if normalized not in _RUNS_PER_DAY:
        raise MisuseError(
            f"Unknown schedule '{schedule}' for {name}. Use {', '.join(_RUNS_PER_DAY)}, or a "
            "factor such as 0.5x."
        )
    if normalized != "never" and not runs:
        raise MisuseError(
            f"{name} did not run in this period, so the effect of '{schedule}' is unknown. Use a "
            "factor such as 0.5x."
        )
    return _RUNS_PER_DAY[normalized] * days / runs if runs else Fraction(0)


_MICROSECOND: Final = timedelta(microseconds=1)
_SECONDS_PER_HOUR: Final = 3600
_MAX_NAMES: Final = 5
_MAX_AMOUNT: Final = 2**62
# The units for which a missing price is reported, in order of preference.
_PREFERRED_UNITS: Final = (
    "core_hour",
    "dbu",
    "credit",
    "instance_hour",
    "slot_hour",
    "gb_processed",
)


class ComputeCosts:
    """The metered cost of a period by node and cost type.

    A run that is partly outside of the period is charged in proportion to its time inside.
    """

    def __init__(
        self,
        store: "Store",
        prices: Prices,
        period: Period,
        finder: NodeFinder,
        *,
        schedules: Mapping[str, str],
    ) -> None:
        self._store = store
        self._prices = prices
        self._period = period
        self._finder = finder
        self._start = datetime.combine(period.first, time(), UTC)
        self._end = datetime.combine(period.last, time(), UTC) + timedelta(days=1)
        self._costs: dict[int, Counter[CostType]] = defaultdict(Counter)
        self._runs: Counter[int] = Counter()
        self._reporters: dict[int, set[str]] = defaultdict(set)
        self._names: dict[tuple[str, int], set[str]] = defaultdict(set)
        self._unpriced_runs: Counter[str] = Counter()
        self._factors: dict[int, Fraction] = {}
        self._parts: dict[Period, ComputeCosts] = {}
        self._unmatched: Counter[str] = Counter()
        self._unpriced: dict[str, set[str]] = defaultdict(set)
        self._incomplete_jobs = 0
        self.missing: set[str] = set()
        self.reserved: Counter[str] = Counter()
        self._charge_meters()
        self._charge_runs(finder.jobs)
        self._apply_schedules(schedules)

    def add_to(self, costs: Integers) -> None:
        """Add the cost of each node by type."""
        for node, by_type in self._costs.items():
            for cost_type, amount in by_type.items():
                if abs(amount) >= _MAX_AMOUNT:
                    raise MisuseError(
                        f"The {cost_type} cost of {self._finder.urn(node)} is too large to be "
                        "computed. Check the imported usage: lumos cost meters"
                    )
                costs[COST_TYPES.index(cost_type), node] += amount

    def cost(self, node: int, cost_type: CostType) -> int:
        return self._costs[node][cost_type] if node in self._costs else 0

    def cost_of_part(self, part: Period, node: int, cost_type: CostType) -> int:
        """The metered cost of a node in a part of the period."""
        if part not in self._parts:
            self._parts[part] = ComputeCosts(
                self._store, self._prices, part, self._finder, schedules={}
            )
        cost = self._parts[part].cost(node, cost_type)
        return round(cost * self._factors.get(node, 1)) if cost_type == "compute" else cost

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on usage that is unallocated, has no price or may be counted twice."""
        return tuple(self._remarks())

    def _charge_meters(self) -> None:
        currencies = {self._prices.currency}
        for reporter, metered in self._store.costs.metered(self._start, self._end):
            if metered.currency is not None:
                currencies.add(metered.currency)
            amount = self._amount_inside(
                metered.started_at, metered.ended_at, self._amount(metered)
            )
            if metered.is_reserved:
                self.reserved[metered.target] += amount
                continue
            nodes = self._finder.charged_nodes(metered)
            if not nodes:
                self._unmatched[metered.target] += amount
                self.reserved[UNALLOCATED] += amount
            for node, part in zip(nodes, _split_evenly(amount, len(nodes)), strict=True):
                self._costs[node][metered.type] += part
                self._runs[node] += self._starts_inside(metered.started_at)
                if not metered.run:
                    self._names[reporter, node].add(metered.target)
                if metered.type == "compute":
                    self._reporters[node].add(reporter)
        if len(currencies) > 1:
            raise CurrencyMix(currencies, "Imported amounts and prices are in")

    def _amount(self, metered: MeteredUsage) -> int:
        if metered.amount is not None:
            return metered.amount
        priced = self._prices.of_engine(metered.engine)
        used = {unit: number for unit, number in metered.quantities.items() if number}
        priced_units = [unit for unit in used if unit in priced]
        # A quantity of 0 in a priced unit is known usage: the application never got executors.
        if used and not priced_units and any(unit in priced for unit in metered.quantities):
            self._unpriced_runs[metered.engine] += 1
        elif used and not priced_units:
            unit = next((each for each in _PREFERRED_UNITS if each in used), next(iter(used)))
            self.missing.add(self._prices.compute_key(metered.engine, unit))
        total = sum((used[unit] * priced[unit] for unit in priced_units), Decimal(0))
        return round(Fraction(total) * MICRO)

    def _charge_runs(self, jobs: "Iterable[tuple[int, Job]]") -> None:
        """Charge jobs without metered usage for the duration of their runs in the lineage."""
        metered = set(self._reporters)
        for node, job in jobs:
            if node in metered:
                continue
            runs = [run for run in job.runs if run.ended_at is not None]
            runs_inside = [
                run
                for run in runs
                if run.started_at < self._end and (run.ended_at or run.started_at) >= self._start
            ]
            if not runs_inside:
                continue
            engine = engine_of(job.platform)
            price = self._prices.of_engine(engine).get("hour")
            if price is None:
                self._unpriced[engine].add(job.urn)
                continue
            self._incomplete_jobs += (
                len(job.runs) >= MAX_RUNS and job.runs[0].started_at > self._start
            )
            for run in runs_inside:
                assert run.ended_at is not None
                seconds = Fraction((run.ended_at - run.started_at) // _MICROSECOND, MICRO)
                amount = round(seconds * Fraction(price) * MICRO / _SECONDS_PER_HOUR)
                self._costs[node]["compute"] += self._amount_inside(
                    run.started_at, run.ended_at, amount
                )
                self._runs[node] += self._starts_inside(run.started_at)

    def _starts_inside(self, moment: datetime) -> bool:
        return self._start <= moment < self._end

    def _amount_inside(self, start: datetime, end: datetime, amount: int) -> int:
        """The part of an amount in this period; the parts in successive periods add up exactly."""
        length = (end - start) // _MICROSECOND
        if length <= 0:
            return amount if self._starts_inside(start) else 0
        before_end, before_start = (
            amount * min(max((moment - start) // _MICROSECOND, 0), length) // length
            for moment in (self._end, self._start)
        )
        return before_end - before_start

    def _apply_schedules(self, schedules: Mapping[str, str]) -> None:
        for name, schedule in schedules.items():
            for node in self._finder.find_jobs(name):
                factor = schedule_factor(
                    schedule, runs=self._runs[node], days=self._period.days, name=name
                )
                self._factors[node] = Fraction(factor)
                compute = self._costs[node]["compute"]
                self._costs[node]["compute"] = round(compute * factor)

    def _remarks(self) -> Iterator[str]:
        if self._unmatched:
            names = [name for name, _ in self._unmatched.most_common()]
            amount = format_money(sum(self._unmatched.values()), self._prices.currency)
            yield f"{amount} is unallocated: {self._finder.explain_unmatched(names)}"
        for engine, jobs in sorted(self._unpriced.items()):
            yield (
                f"{plural(len(jobs), 'job')} on {engine} count{'s' if len(jobs) == 1 else ''} as "
                "free: no usage is imported (lumos cost ingest) and "
                f"{self._prices.compute_key(engine, 'hour')} is not set."
            )
        metered_twice = sum(len(reporters) > 1 for reporters in self._reporters.values())
        if metered_twice:
            yield (
                f"{metered_twice:,} job{' is' if metered_twice == 1 else 's are'} metered by more "
                "than one source, and the amounts are added up. Check with: lumos cost meters"
            )
        repeated_names = sorted({name for names in self._shared_names for name in names})
        if repeated_names:
            yield (
                f"{', '.join(repeated_names[:_MAX_NAMES])} are names of the same "
                f"{'job' if len(self._shared_names) == 1 else 'jobs'} in one table, and the "
                "amounts are added up. Keep one name if the usage is listed twice."
            )
        for engine, runs in sorted(self._unpriced_runs.items()):
            yield (
                f"{plural(runs, 'run')} on {engine} used no unit that has a price "
                f"and count{'s' if runs == 1 else ''} as free."
            )
        if self._incomplete_jobs:
            yield (
                f"Only the last {MAX_RUNS} runs of {plural(self._incomplete_jobs, 'job')} are "
                "known; they do not reach back to the start of the period."
            )

    @property
    def _shared_names(self) -> list[set[str]]:
        return [names for names in self._names.values() if len(names) > 1]


def _split_evenly(amount: int, parts: int) -> Iterator[int]:
    """Split an amount into equal parts that add up to it."""
    for number in range(parts):
        yield amount * (number + 1) // parts - amount * number // parts


_DAY = timedelta(days=1)


class _AmountInterval(NamedTuple):
    """A monthly amount from `since` to the day before `before`."""

    since: date
    before: date
    amount: int


def override_costs(
    costs: Integers,
    store: "Store",
    settings: Settings,
    currency: str,
    period: Period,
    finder: NodeFinder,
    compute: ComputeCosts,
) -> tuple[str, ...]:
    """Replace measured costs by overrides; return remarks.

    Overrides from commands take precedence over the configuration. On days without an override,
    the measured cost is used.
    """
    stored, remarks = _stored_overrides(store, currency, finder)
    for key, intervals in {**dict(_configured_overrides(settings, finder)), **stored}.items():
        node, cost_type = key
        row = COST_TYPES.index(cost_type)
        costs[row, node] += _difference(
            int(costs[row, node]), _parts(intervals, period), period, compute, node, cost_type
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
    """The override minus the measured cost."""
    measured_parts = [part for part, amount in parts if amount is None]
    if measured_parts == [period]:
        return 0
    total = sum(
        (amount * _months(part, period) for part, amount in parts if amount is not None),
        Fraction(),
    )
    # Storage cost is spread evenly over the period; metered cost belongs to the days of its usage.
    storage_cost = measured - compute.cost(node, cost_type)
    total += (
        storage_cost
        * sum((_months(part, period) for part in measured_parts), Fraction())
        / period.months
    )
    total += sum(compute.cost_of_part(part, node, cost_type) for part in measured_parts)
    return round(total) - measured


def _parts(intervals: list[_AmountInterval], period: Period) -> list[tuple[Period, int | None]]:
    """Divide the period into parts, each with the amount of its override, or None without one."""
    end = period.last + _DAY
    ordered = sorted(intervals)
    parts: list[tuple[Period, int | None]] = []
    day = period.first
    for number, each in enumerate(ordered):
        next_since = ordered[number + 1].since if number + 1 < len(ordered) else end
        first, before = max(each.since, period.first), min(each.before, next_since, end)
        if first < before:
            parts += [(_part(period, day, first), None)] if day < first else []
            parts.append((_part(period, first, before), each.amount))
            day = before
    return [*parts, (_part(period, day, end), None)] if day < end else parts


def _part(period: Period, first: date, before: date) -> Period:
    last = before - _DAY
    if (first, last) == (period.first, period.last):
        return period
    return Period(name=f"{first}..{last}", kind="custom", first=first, last=last)


def _months(part: Period, period: Period) -> Fraction:
    """The number of months in a part; the last thirty days are one month."""
    return Fraction(part.days, period.days) if period.kind == "recent" else part.months


def _stored_overrides(
    store: "Store", currency: str, finder: NodeFinder
) -> tuple[dict[tuple[int, CostType], list[_AmountInterval]], tuple[str, ...]]:
    intervals: dict[tuple[int, CostType], list[_AmountInterval]] = defaultdict(list)
    unmatched: set[str] = set()
    overrides = store.costs.overrides()
    currencies = {currency, *(each.currency for each in overrides)}
    if len(currencies) > 1:
        raise CurrencyMix(currencies, "Overrides (lumos cost list) and prices are in")
    for each in overrides:
        try:
            node = finder.node(each.urn)
        except UnknownDataset:
            unmatched.add(each.urn)
            continue
        before = date.max if each.until is None else each.until + _DAY
        intervals[node, _cost_type(each.type)].append(
            _AmountInterval(each.since, before, each.amount)
        )
    remarks = tuple(
        f"The cost override of {urn} is ignored: no such dataset or job exists any more."
        for urn in sorted(unmatched)
    )
    return intervals, remarks


def _configured_overrides(
    settings: Settings, finder: NodeFinder
) -> Iterator[tuple[tuple[int, CostType], list[_AmountInterval]]]:
    intervals: dict[tuple[int, CostType], list[_AmountInterval]] = defaultdict(list)
    for each in overrides_of(settings):
        node = finder.find_configured(each.target, "An override")
        since = each.first_day or date.min
        before = date.max if each.last_day is None else each.last_day + _DAY
        for cost_type, amount in each.costs.items():
            interval = _AmountInterval(since, before, micros(exact_decimal(amount)))
            _check_overlap(each.target, cost_type, intervals[node, cost_type], interval)
            intervals[node, cost_type].append(interval)
    yield from intervals.items()


def _check_overlap(
    name: str, cost_type: str, known: list[_AmountInterval], added: _AmountInterval
) -> None:
    for each in known:
        if each.since < added.before and added.since < each.before:
            raise MisuseError(
                f"Two overrides in the configuration set the {cost_type} cost of {name} for the "
                f"same time, to {amount_of(each.amount)} and {amount_of(added.amount)}. Give them "
                "'since' and 'until', or keep one."
            )


def _cost_type(name: str) -> CostType:
    return next(each for each in COST_TYPES if each == name)
