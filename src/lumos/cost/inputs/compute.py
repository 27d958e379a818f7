"""What jobs cost: quantities by their prices, or what was charged, as far as in the period."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from lumos.config.prices import CurrencyMix, Prices, engine_of
from lumos.cost.inputs.names import Finder
from lumos.cost.inputs.schedules import factor_of
from lumos.cost.solver.graph import Integers
from lumos.errors import MisuseError
from lumos.model.metering import COST_TYPES, UNALLOCATED, CostType, Metered
from lumos.model.money import MICRO, amount_of
from lumos.model.period import Period
from lumos.store.lineage.jobs import MOST_RUNS

if TYPE_CHECKING:
    from lumos.model.catalog import Job
    from lumos.store import Store

_A_MICROSECOND: Final = timedelta(microseconds=1)
_SECONDS_PER_HOUR: Final = 3600
_NAMED: Final = 5
_MOST: Final = 2**62
# What a missing price is told for first.
_PREFERRED: Final = ("core_hour", "dbu", "credit", "instance_hour", "slot_hour", "gb_processed")


class ComputeCosts:
    """What was used in a period, by node and cost type, and what belongs to nobody.

    A run that reaches out of the period counts by the part of its time that lies inside.
    """

    def __init__(
        self,
        store: "Store",
        prices: Prices,
        period: Period,
        finder: Finder,
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
        self._free: Counter[str] = Counter()
        self._paces: dict[int, Fraction] = {}
        self._parts: dict[Period, ComputeCosts] = {}
        self._unknown: Counter[str] = Counter()
        self._unpriced: dict[str, set[str]] = defaultdict(set)
        self._cut_short = 0
        self.missing: set[str] = set()
        self.reserved: Counter[str] = Counter()
        self._take_metered()
        self._take_runs(finder.jobs)
        self._pace(schedules)

    def put_into(self, costs: Integers) -> None:
        """Adds the cost of each node to its place, by type."""
        for node, by_type in self._costs.items():
            for cost_type, amount in by_type.items():
                if abs(amount) >= _MOST:
                    raise MisuseError(
                        f"The {cost_type} cost of {self._finder.urn(node)} is too large to be "
                        "computed. Check the imported usage: lumos cost meters"
                    )
                costs[COST_TYPES.index(cost_type), node] += amount

    def cost(self, node: int, cost_type: CostType) -> int:
        """What a node cost."""
        return self._costs[node][cost_type] if node in self._costs else 0

    def cost_of_part(self, part: Period, node: int, cost_type: CostType) -> int:
        """The same in some days of the period."""
        if part not in self._parts:
            self._parts[part] = ComputeCosts(
                self._store, self._prices, part, self._finder, schedules={}
            )
        found = self._parts[part].cost(node, cost_type)
        return round(found * self._paces.get(node, 1)) if cost_type == "compute" else found

    @property
    def remarks(self) -> tuple[str, ...]:
        """What could not be charged to anybody, or perhaps is charged twice."""
        return tuple(self._remarks())

    def _take_metered(self) -> None:
        currencies = {self._prices.currency}
        for reporter, metered in self._store.costs.metered(self._start, self._end):
            if metered.currency is not None:
                currencies.add(metered.currency)
            amount = self._inside(metered.started_at, metered.ended_at, self._amount(metered))
            if metered.is_reserved:
                self.reserved[metered.target] += amount
                continue
            nodes = self._finder.metered(metered)
            if not nodes:
                self._unknown[metered.target] += amount
                self.reserved[UNALLOCATED] += amount
            for node, part in zip(nodes, _divided(amount, len(nodes)), strict=True):
                self._costs[node][metered.type] += part
                self._runs[node] += self._begins_inside(metered.started_at)
                if not metered.run:
                    self._names[reporter, node].add(metered.target)
                if metered.type == "compute":
                    self._reporters[node].add(reporter)
        if len(currencies) > 1:
            raise CurrencyMix(currencies, "Imported amounts and prices are in")

    def _amount(self, metered: Metered) -> int:
        if metered.amount is not None:
            return metered.amount
        priced = self._prices.of_engine(metered.engine)
        counted = {unit: number for unit, number in metered.quantities.items() if number}
        known = [unit for unit in counted if unit in priced]
        # Nothing of what has a price is a quantity too: an application that never got executors.
        if counted and not known and any(unit in priced for unit in metered.quantities):
            self._free[metered.engine] += 1
        elif counted and not known:
            unit = next((each for each in _PREFERRED if each in counted), next(iter(counted)))
            self.missing.add(self._prices.compute_key(metered.engine, unit))
        total = sum((counted[unit] * priced[unit] for unit in known), Decimal(0))
        return round(Fraction(total) * MICRO)

    def _take_runs(self, jobs: "Iterable[tuple[int, Job]]") -> None:
        """The time that jobs ran as lineage knows it, where nobody metered them."""
        metered = set(self._reporters)
        for node, job in jobs:
            if node in metered:
                continue
            runs = [run for run in job.runs if run.ended_at is not None]
            inside = [
                run
                for run in runs
                if run.started_at < self._end and (run.ended_at or run.started_at) >= self._start
            ]
            if not inside:
                continue
            engine = engine_of(job.platform)
            price = self._prices.of_engine(engine).get("hour")
            if price is None:
                self._unpriced[engine].add(job.urn)
                continue
            self._cut_short += len(job.runs) >= MOST_RUNS and job.runs[0].started_at > self._start
            for run in inside:
                assert run.ended_at is not None
                seconds = Fraction((run.ended_at - run.started_at) // _A_MICROSECOND, MICRO)
                whole = round(seconds * Fraction(price) * MICRO / _SECONDS_PER_HOUR)
                self._costs[node]["compute"] += self._inside(run.started_at, run.ended_at, whole)
                self._runs[node] += self._begins_inside(run.started_at)

    def _begins_inside(self, moment: datetime) -> bool:
        return self._start <= moment < self._end

    def _inside(self, start: datetime, end: datetime, amount: int) -> int:
        """The part of an amount whose time lies in the period; parts of periods add up to it."""
        length = (end - start) // _A_MICROSECOND
        if length <= 0:
            return amount if self._begins_inside(start) else 0
        until, before = (
            amount * min(max((moment - start) // _A_MICROSECOND, 0), length) // length
            for moment in (self._end, self._start)
        )
        return until - before

    def _pace(self, schedules: Mapping[str, str]) -> None:
        for name, pace in schedules.items():
            for node in self._finder.jobs_of(name):
                factor = factor_of(pace, runs=self._runs[node], days=self._period.days, name=name)
                self._paces[node] = Fraction(factor)
                compute = self._costs[node]["compute"]
                self._costs[node]["compute"] = round(compute * factor)

    def _remarks(self) -> Iterator[str]:
        if self._unknown:
            names = ", ".join(name for name, _ in self._unknown.most_common(_NAMED))
            more = (
                f" and {len(self._unknown) - _NAMED:,} more" if len(self._unknown) > _NAMED else ""
            )
            amount = amount_of(sum(self._unknown.values()))
            yield (
                f"{amount:,.2f} {self._prices.currency} is unallocated: no job, or more than one, "
                f"in the lineage is named {names}{more}."
            )
        for engine, jobs in sorted(self._unpriced.items()):
            some = f"{len(jobs):,} job{'' if len(jobs) == 1 else 's'}"
            yield (
                f"{some} on {engine} count{'s' if len(jobs) == 1 else ''} as free: no usage is "
                f"imported (lumos cost ingest) and {self._prices.compute_key(engine, 'hour')} is "
                "not set."
            )
        twice = sum(len(reporters) > 1 for reporters in self._reporters.values())
        if twice:
            yield (
                f"{twice:,} job{' is' if twice == 1 else 's are'} metered by more than one source, "
                "and the amounts are added up. Check with: lumos cost meters"
            )
        renamed = sorted({name for names in self._several_names for name in names})
        if renamed:
            yield (
                f"{', '.join(renamed[:_NAMED])} are names of the same "
                f"{'job' if len(self._several_names) == 1 else 'jobs'} in one table, and the "
                "amounts are added up. Keep one name if the usage is listed twice."
            )
        for engine, runs in sorted(self._free.items()):
            yield (
                f"{runs:,} run{'' if runs == 1 else 's'} on {engine} used no unit that has a price "
                f"and count{'s' if runs == 1 else ''} as free."
            )
        if self._cut_short:
            yield (
                f"Only the last {MOST_RUNS} runs of {self._cut_short:,} "
                f"job{'' if self._cut_short == 1 else 's'} are known; they do not reach back to "
                "the start of the period."
            )

    @property
    def _several_names(self) -> list[set[str]]:
        return [names for names in self._names.values() if len(names) > 1]


def _divided(amount: int, parts: int) -> Iterator[int]:
    """An amount in equal parts that add up to it."""
    for number in range(parts):
        yield amount * (number + 1) // parts - amount * number // parts
