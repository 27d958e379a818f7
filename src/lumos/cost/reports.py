"""What the verbs on cost return; these names are a promise.

Amounts are decimals of one currency, exact to the micro-unit. `total` is what a dataset costs
through everything upstream of it; totals of several datasets are never added up. `retained` is what
nothing downstream carries on; over all datasets it gives what was spent, and so does `own`.
"""

from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from lumos.model.period import RECENT_DAYS
from lumos.model.report import FORMAT_VERSION, Report

Kind = Literal["dataset", "job"]
Risk = Literal["LOW", "MEDIUM", "HIGH"]
GroupBy = Literal["team", "domain", "platform", "tag"]
Ranking = Literal["retained", "total", "own"]


class WhatIfReport(Report, frozen=True, kw_only=True):
    """What was supposed, and what it does to the headline of a report."""

    changes: tuple[str, ...]
    before: Decimal
    after: Decimal
    difference: Decimal


class CostAnswer(Report, frozen=True, kw_only=True):
    """What every report says of how it came about.

    `assumed` is how much of its headline went along an equal split for want of usage. `is_monthly`
    says that the amounts are those of one month.
    """

    format_version: str = FORMAT_VERSION
    period: str
    first_day: date
    last_day: date
    is_monthly: bool
    currency: str
    method: str
    assumed: Decimal
    what_if: WhatIfReport | None = None
    remarks: tuple[str, ...] = ()

    @property
    def is_recent(self) -> bool:
        """Whether this tells of the last thirty days as a month, and of no period by its name."""
        return self.is_monthly and ".." in self.period and self.days == RECENT_DAYS

    @property
    def days(self) -> int:
        """How many days this tells of."""
        return (self.last_day - self.first_day).days + 1


class Summary(Report, frozen=True, kw_only=True):
    """A dataset's cost in one line.

    Direct is its own cost together with the jobs that write it, attributed what it carries of
    everything further upstream. `passed_on` is carried further by what reads it.
    """

    total_cost: Decimal
    direct_cost: Decimal
    attributed_cost: Decimal
    own_cost: Decimal
    jobs_cost: Decimal
    retained_cost: Decimal
    passed_on_cost: Decimal


class Upstream(Report, frozen=True, kw_only=True):
    """What some dataset or job upstream, or the dataset itself, adds to a total."""

    urn: str
    name: str
    kind: Kind
    team: str
    own_cost: Decimal
    cost: Decimal
    by_type: dict[str, Decimal]


class Rest(Report, frozen=True, kw_only=True):
    """How many are not listed, since there are very many, and what they cost together."""

    count: int = 0
    cost: Decimal = Decimal(0)


class Breakdown(Report, frozen=True, kw_only=True):
    """A total three times: each of these adds up to it, the last one together with `others`.

    `by_team` says whose datasets and jobs cause it. `by_upstream` is ordered, the largest first.
    """

    by_type: dict[str, Decimal]
    by_team: dict[str, Decimal]
    by_upstream: tuple[Upstream, ...]
    others: Rest = Rest()


class Compared(Report, frozen=True, kw_only=True):
    """A month's cost as it was recorded earlier, or the mean of several months."""

    periods: tuple[str, ...]
    cost: Decimal
    percent: float | None


class Trends(Report, frozen=True, kw_only=True):
    """By how many percent a monthly cost differs from earlier ones; nothing where none is kept."""

    vs_last_month: float | None = None
    vs_last_quarter: float | None = None
    last_month: Compared | None = None
    last_quarter: Compared | None = None


class CostReport(CostAnswer, frozen=True, kw_only=True):
    """The answer of `lumos cost report`."""

    dataset: str
    name: str
    kind: Kind
    team: str
    is_live: bool
    is_verified: bool
    summary: Summary
    breakdown: Breakdown
    direct_by_type: dict[str, Decimal]
    trends: Trends
    optimization: tuple[str, ...]
    potential_savings: Decimal
    before: Breakdown | None = None
    cycle: tuple[str, ...] = ()


class CostRow(Report, frozen=True, kw_only=True):
    """A dataset or job with its costs; `before` is what it retains without what is supposed.

    `own_before` is its own cost without that.
    """

    urn: str
    name: str
    kind: Kind
    team: str
    own: Decimal
    total: Decimal
    retained: Decimal
    by_type: dict[str, Decimal]
    before: Decimal | None = None
    own_before: Decimal | None = None


class Others(Report, frozen=True, kw_only=True):
    """What is not listed, in one line; `only` is given where that is a single dataset or job."""

    count: int
    own: Decimal
    retained: Decimal
    before: Decimal | None = None
    own_before: Decimal | None = None
    only: CostRow | None = None


class TopReport(CostAnswer, frozen=True, kw_only=True):
    """The answer of `lumos cost top`.

    Own and retained of the listed, the others and what stands beside lineage give `spent` each.
    """

    ranked_by: Ranking
    spent: Decimal
    datasets: tuple[CostRow, ...]
    others: Others
    beside: dict[str, Decimal]
    beside_before: dict[str, Decimal] | None = None
    by_type: dict[str, Decimal]

    @property
    def shown(self) -> tuple[tuple[CostRow, ...], Others]:
        """The rows for people and the rest: a single one more is shown by its name."""
        only = self.others.only
        if only is None:
            return self.datasets, self.others
        return (*self.datasets, only), Others(count=0, own=Decimal(0), retained=Decimal(0))


class GroupRow(Report, frozen=True, kw_only=True):
    """What a team, domain, platform or tag owns, and what its outputs carry in the end."""

    name: str
    datasets: int
    own: Decimal
    retained: Decimal
    before: Decimal | None = None
    own_before: Decimal | None = None


class ByReport(CostAnswer, frozen=True, kw_only=True):
    """The answer of `lumos cost by`."""

    by: GroupBy
    spent: Decimal
    groups: tuple[GroupRow, ...]
    beside: dict[str, Decimal]
    beside_before: dict[str, Decimal] | None = None


class TrendPoint(Report, frozen=True, kw_only=True):
    """The cost of one period, also as that of a month, by which periods are compared.

    `recorded_at` is empty for what is computed now.
    """

    period: str
    first_day: date
    last_day: date
    cost: Decimal
    monthly: Decimal
    by_type: dict[str, Decimal]
    recorded_at: datetime | None = None


class TrendReport(CostAnswer, frozen=True, kw_only=True):
    """The answer of `lumos cost trend`: the total of a dataset, or all that was spent.

    `before` is what it is now without what is supposed.
    """

    dataset: str | None
    name: str | None
    points: tuple[TrendPoint, ...]
    now: TrendPoint
    before: TrendPoint | None = None
    trends: Trends


class PathStep(Report, frozen=True, kw_only=True):
    """A stop of a way down the stream, and the share that is carried on from there."""

    urn: str
    name: str
    kind: Kind
    share: float | None
    assumed: bool = False


class CostPath(Report, frozen=True, kw_only=True):
    """One way along which cost comes to a dataset, from where it is spent."""

    type: str
    own_cost: Decimal
    share: float
    cost: Decimal
    steps: tuple[PathStep, ...]


class ExplainReport(CostAnswer, frozen=True, kw_only=True):
    """The answer of `lumos cost explain`; the ways and the rest add up to the total.

    Where all ways are listed it is `complete`, and the rest comes of rounding and of cycles alone.
    """

    dataset: str
    name: str
    total_cost: Decimal
    paths: tuple[CostPath, ...]
    rest: Decimal
    complete: bool
    cycles: tuple[tuple[str, ...], ...] = ()


class Removed(Report, frozen=True, kw_only=True):
    """Something that ends, and what that saves in a month."""

    urn: str
    name: str
    kind: Kind
    team: str
    monthly: Decimal
    is_asked: bool
    is_verified: bool


class Staying(Report, frozen=True, kw_only=True):
    """Something upstream that goes on to cost, and why."""

    urn: str
    name: str
    kind: Kind
    monthly: Decimal
    reason: str


class Broken(Report, frozen=True, kw_only=True):
    """Something downstream that loses what it is made from."""

    urn: str
    name: str
    kind: Kind
    owners: tuple[str, ...]
    is_live: bool
    is_verified: bool


class ImpactAnalysis(Report, frozen=True, kw_only=True):
    """How many datasets are meant, how many others break, and how risky that is."""

    direct_datasets: int
    downstream_datasets: int
    risk_level: Risk
    reasons: tuple[str, ...]


class SavingsBreakdown(Report, frozen=True, kw_only=True):
    """What is saved in a month by cost type, and how many datasets end or break."""

    storage: Decimal = Decimal(0)
    compute: Decimal = Decimal(0)
    egress: Decimal = Decimal(0)
    other: Decimal = Decimal(0)
    affected_datasets: int

    @property
    def by_type(self) -> dict[str, Decimal]:
        """The cost types that something is saved of."""
        told = {"storage": self.storage, "compute": self.compute, "egress": self.egress}
        return {name: amount for name, amount in (told | {"other": self.other}).items() if amount}


class SavingsReport(CostAnswer, frozen=True, kw_only=True):
    """The answer of `lumos cost savings`: what truly disappears.

    `asked` is what was asked for, in words; `feature_name` is told where that is one feature alone.
    `committed_cost` is the part of what ends that stays due.
    `attributed_cost` is what the datasets cost through everything upstream; it says nothing of what
    would be saved and stands here to be compared.
    """

    asked: tuple[str, ...]
    feature_name: str | None
    datasets_affected: tuple[str, ...]
    monthly_savings: Decimal
    annual_savings: Decimal
    storage_savings: Decimal
    compute_savings: Decimal
    committed_cost: Decimal
    breakdown: SavingsBreakdown
    impact_analysis: ImpactAnalysis
    disappears: tuple[Removed, ...]
    stays: tuple[Staying, ...]
    other_stays: Rest = Rest()
    broken: tuple[Broken, ...]
    unverified: tuple[str, ...]
    attributed_cost: Decimal | None


class RetireStep(Report, frozen=True, kw_only=True):
    """What to retire together: the end uses, and `datasets`, all that goes with them.

    `is_read` says that somebody was seen to read one of the end uses.
    """

    datasets: tuple[str, ...]
    ends: tuple[str, ...]
    names: tuple[str, ...]
    teams: tuple[str, ...]
    monthly_savings: Decimal
    cumulative: Decimal
    is_read: bool
    is_verified: bool


class RetireReport(CostAnswer, frozen=True, kw_only=True):
    """The answer of `lumos cost retire`; `exact` says that no other choice saves more.

    `unneeded` is what no end use needs today; it may go in any case and is no part of the steps.
    """

    steps: tuple[RetireStep, ...]
    monthly_savings: Decimal
    annual_savings: Decimal
    exact: bool
    unneeded: tuple[Removed, ...]
    unneeded_savings: Decimal
    spent: Decimal


class RecordReport(CostAnswer, frozen=True, kw_only=True):
    """The answer of `lumos cost record`."""

    datasets: int
    spent: Decimal
    aspects_written: int
    is_again: bool
