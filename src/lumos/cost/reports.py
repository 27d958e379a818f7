"""Report types of the cost commands; field names are a public contract.

Amounts are decimals of one currency, exact to the micro-unit. `total` is the cost of a dataset
including everything upstream; totals of datasets overlap and must not be added up. `retained` is
the part that is not passed on downstream. Summed over all datasets, both `retained` and `own` give
the total spend.
"""

from datetime import date, datetime
from decimal import Decimal
from typing import Literal, NamedTuple

from lumos.model.period import RECENT_DAYS
from lumos.model.report import FORMAT_VERSION, Report

NodeKind = Literal["dataset", "job"]
Risk = Literal["LOW", "MEDIUM", "HIGH"]
GroupBy = Literal["team", "domain", "platform", "tag"]
Ranking = Literal["retained", "total", "own"]


class WhatIfReport(Report, frozen=True, kw_only=True):
    """The assumptions of a what-if report, and their effect on its headline amount."""

    changes: tuple[str, ...]
    before: Decimal
    after: Decimal
    difference: Decimal


class CostReportHeader(Report, frozen=True, kw_only=True):
    """The fields that all cost reports share.

    `assumed` is the part of the headline amount that is split equally because usage is unknown.
    `is_monthly` means that the amounts are for one month.
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
        """Whether the period is the last thirty days, counted as one month."""
        return self.is_monthly and ".." in self.period and self.days == RECENT_DAYS

    @property
    def days(self) -> int:
        """The number of days in the period."""
        return (self.last_day - self.first_day).days + 1


class CostSummary(Report, frozen=True, kw_only=True):
    """The cost of a dataset in its parts.

    `direct` is its own cost and that of the jobs that write it, `attributed` the cost from
    everything further upstream, `passed_on` the part that is attributed to downstream datasets.
    """

    total_cost: Decimal
    direct_cost: Decimal
    attributed_cost: Decimal
    own_cost: Decimal
    jobs_cost: Decimal
    retained_cost: Decimal
    passed_on_cost: Decimal


class UpstreamCost(Report, frozen=True, kw_only=True):
    """The contribution of an upstream dataset or job, or of the dataset itself, to a total."""

    urn: str
    name: str
    kind: NodeKind
    team: str
    own_cost: Decimal
    cost: Decimal
    by_type: dict[str, Decimal]


class UnlistedCosts(Report, frozen=True, kw_only=True):
    """Number and cost of entries that are omitted from a long list."""

    count: int = 0
    cost: Decimal = Decimal(0)


class CostBreakdown(Report, frozen=True, kw_only=True):
    """A total by cost type, by owning team and by upstream node, the largest first.

    Each of the three adds up to the total; for `by_upstream`, this includes `others`.
    """

    by_type: dict[str, Decimal]
    by_team: dict[str, Decimal]
    by_upstream: tuple[UpstreamCost, ...]
    others: UnlistedCosts = UnlistedCosts()


class CostComparison(Report, frozen=True, kw_only=True):
    """The recorded cost of an earlier month, or the mean of several months.

    `metered_from` is set, and `percent` is None, if metering began later than these months.
    """

    periods: tuple[str, ...]
    cost: Decimal
    percent: float | None
    metered_from: date | None = None


class CostTrends(Report, frozen=True, kw_only=True):
    """The change of the monthly cost since recorded months, in percent; None if not recorded."""

    vs_last_month: float | None = None
    vs_last_quarter: float | None = None
    last_month: CostComparison | None = None
    last_quarter: CostComparison | None = None


class CostReport(CostReportHeader, frozen=True, kw_only=True):
    """The result of `lumos cost report`."""

    dataset: str
    name: str
    kind: NodeKind
    team: str
    is_live: bool
    is_verified: bool
    summary: CostSummary
    breakdown: CostBreakdown
    direct_by_type: dict[str, Decimal]
    trends: CostTrends
    optimization: tuple[str, ...]
    potential_savings: Decimal
    before: CostBreakdown | None = None
    cycle: tuple[str, ...] = ()


class CostRow(Report, frozen=True, kw_only=True):
    """A dataset or job with its costs; `before` and `own_before` are without the assumptions.

    Several teams, domains or tags are joined by commas.
    """

    urn: str
    name: str
    kind: NodeKind
    team: str
    domain: str
    platform: str
    tag: str
    own: Decimal
    total: Decimal
    retained: Decimal
    by_type: dict[str, Decimal]
    before: Decimal | None = None
    own_before: Decimal | None = None


class OtherCosts(Report, frozen=True, kw_only=True):
    """The sum of unlisted datasets and jobs; `only` is set if there is just one."""

    count: int
    own: Decimal
    retained: Decimal
    before: Decimal | None = None
    own_before: Decimal | None = None
    only: CostRow | None = None


class CostTopReport(CostReportHeader, frozen=True, kw_only=True):
    """The result of `lumos cost top`.

    `beside` are the unattributed costs. The amounts of `datasets`, `others` and `beside` add up to
    `spent`, both the `own` and the `retained` ones.
    """

    ranked_by: Ranking
    spent: Decimal
    datasets: tuple[CostRow, ...]
    others: OtherCosts
    beside: dict[str, Decimal]
    beside_before: dict[str, Decimal] | None = None
    by_type: dict[str, Decimal]

    @property
    def displayed_rows(self) -> tuple[tuple[CostRow, ...], OtherCosts]:
        """The rows and the sum of the others, for display; a single other row becomes a row."""
        only = self.others.only
        if only is None:
            return self.datasets, self.others
        return (*self.datasets, only), OtherCosts(count=0, own=Decimal(0), retained=Decimal(0))


class GroupRow(Report, frozen=True, kw_only=True):
    """The own and the retained cost of the datasets and jobs of a team, domain, platform or tag."""

    name: str
    datasets: int
    own: Decimal
    retained: Decimal
    before: Decimal | None = None
    own_before: Decimal | None = None


class CostByReport(CostReportHeader, frozen=True, kw_only=True):
    """The result of `lumos cost by`."""

    by: GroupBy
    spent: Decimal
    groups: tuple[GroupRow, ...]
    beside: dict[str, Decimal]
    beside_before: dict[str, Decimal] | None = None


class TrendPoint(Report, frozen=True, kw_only=True):
    """The cost of one period; `monthly` is the cost converted to one month, for comparison.

    `recorded_at` is None for the current cost; `metered_from` is set if metering began after the
    first day.
    """

    period: str
    first_day: date
    last_day: date
    cost: Decimal
    monthly: Decimal
    by_type: dict[str, Decimal]
    recorded_at: datetime | None = None
    metered_from: date | None = None


class CostTrendReport(CostReportHeader, frozen=True, kw_only=True):
    """The result of `lumos cost trend`: the total of a dataset, or the total spend.

    `before` is the current cost without the assumptions of a what-if report.
    """

    dataset: str | None
    name: str | None
    points: tuple[TrendPoint, ...]
    now: TrendPoint
    before: TrendPoint | None = None
    trends: CostTrends


class CostPathStep(Report, frozen=True, kw_only=True):
    """A node on a lineage path, and the share of its cost that is passed on along the path."""

    urn: str
    name: str
    kind: NodeKind
    share: float | None
    assumed: bool = False


class CostPath(Report, frozen=True, kw_only=True):
    """A lineage path from the node that causes a cost to the explained dataset."""

    type: str
    own_cost: Decimal
    share: float
    cost: Decimal
    steps: tuple[CostPathStep, ...]


class CostExplainReport(CostReportHeader, frozen=True, kw_only=True):
    """The result of `lumos cost explain`; `paths` and `rest` add up to the total.

    If `complete`, all paths are listed, and `rest` comes from rounding and cycles only.
    """

    dataset: str
    name: str
    total_cost: Decimal
    paths: tuple[CostPath, ...]
    rest: Decimal
    complete: bool
    cycles: tuple[tuple[str, ...], ...] = ()


class RemovedNode(Report, frozen=True, kw_only=True):
    """A dataset or job that is removed, and its monthly savings."""

    urn: str
    name: str
    kind: NodeKind
    team: str
    monthly: Decimal
    is_asked: bool
    is_verified: bool


class RemainingCost(Report, frozen=True, kw_only=True):
    """An upstream dataset or job that still costs money after the removal, and why."""

    urn: str
    name: str
    kind: NodeKind
    monthly: Decimal
    reason: str


class BrokenNode(Report, frozen=True, kw_only=True):
    """A downstream dataset or job that loses an input."""

    urn: str
    name: str
    kind: NodeKind
    owners: tuple[str, ...]
    is_live: bool
    is_verified: bool


class ImpactAnalysis(Report, frozen=True, kw_only=True):
    """The number of datasets to remove and of other datasets that break, and the risk."""

    direct_datasets: int
    downstream_datasets: int
    risk_level: Risk
    reasons: tuple[str, ...]


class SavingsBreakdown(Report, frozen=True, kw_only=True):
    """Monthly savings by cost type, and the number of datasets that are removed or break."""

    storage: Decimal = Decimal(0)
    compute: Decimal = Decimal(0)
    egress: Decimal = Decimal(0)
    other: Decimal = Decimal(0)
    affected_datasets: int

    @property
    def by_type(self) -> dict[str, Decimal]:
        """The cost types with savings."""
        by_type = {"storage": self.storage, "compute": self.compute, "egress": self.egress}
        return {
            name: amount for name, amount in (by_type | {"other": self.other}).items() if amount
        }


class SavingsReport(CostReportHeader, frozen=True, kw_only=True):
    """The result of `lumos cost savings`: the cost that ends if datasets are removed.

    `asked` is the request as text; `feature_name` is set if exactly one feature was requested.
    `committed_cost` must still be paid after the removal. `attributed_cost` is the total cost of
    the datasets, for comparison; it differs from the savings.
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
    disappears: tuple[RemovedNode, ...]
    stays: tuple[RemainingCost, ...]
    other_stays: UnlistedCosts = UnlistedCosts()
    broken: tuple[BrokenNode, ...]
    unverified: tuple[str, ...]
    attributed_cost: Decimal | None


class RetireStep(Report, frozen=True, kw_only=True):
    """Unread end uses (`ends`) to retire together.

    `datasets` are the end uses and everything that only they need.
    """

    datasets: tuple[str, ...]
    ends: tuple[str, ...]
    names: tuple[str, ...]
    teams: tuple[str, ...]
    monthly_savings: Decimal
    cumulative: Decimal
    is_verified: bool


class RetireReport(CostReportHeader, frozen=True, kw_only=True):
    """The result of `lumos cost retire`; `exact` means that no other choice saves more.

    `unneeded` are the nodes that no end use needs today; they can be removed in any case and are
    not in the steps. `in_use` counts the end uses with recorded reads, which are never proposed.
    """

    steps: tuple[RetireStep, ...]
    in_use: int = 0
    monthly_savings: Decimal
    annual_savings: Decimal
    exact: bool
    unneeded: tuple[RemovedNode, ...]
    unneeded_savings: Decimal
    spent: Decimal


class CostRecordReport(CostReportHeader, frozen=True, kw_only=True):
    """The result of `lumos cost record`."""

    datasets: int
    spent: Decimal
    aspects_written: int
    is_again: bool


class SavingHint(NamedTuple):
    """A suggestion as text, and its monthly savings in micro-units."""

    text: str
    monthly: int
