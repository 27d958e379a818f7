"""Texts that the terminal output and the HTML page on costs share."""

from datetime import date
from typing import TYPE_CHECKING, Final

from lumos.model.cost import ADJUSTMENT, IDLE, SHARED, UNALLOCATED
from lumos.model.period import Period, month_of
from lumos.rendering.text import plural

if TYPE_CHECKING:
    from lumos.cost.reports import BrokenNode, CostComparison, CostReportHeader, NodeKind

# Labels and explanations of unattributed costs for display; JSON and CSV use the reserved names.
NOT_ATTRIBUTED: Final = {
    UNALLOCATED: ("(unallocated)", "metered, but for no known dataset or job"),
    IDLE: ("(idle)", "paid for but not used"),
    SHARED: ("(shared)", "shared by everyone"),
    ADJUSTMENT: ("(adjustments)", "credits and corrections"),
}
OWN_COST: Final = "Own cost is spent on the dataset or job itself."
TOTAL_COST: Final = (
    "Total cost is own cost plus the attributed upstream cost; totals overlap, so they do not "
    "add up."
)
RETAINED_COST: Final = "Retained cost is the part of the total that no downstream dataset takes on."
JOB_COST: Final = "jobs that write it"
UPSTREAM_COST: Final = "attributed from everything further upstream"
NOTHING_ELSE: Final = "used by nothing else"
READERS_UNKNOWN: Final = "readers unknown"
NO_COST: Final = "No dataset or job has a cost in this period."
NO_USAGE: Final = "No cost here or upstream. Import usage with: lumos cost ingest PATH"
NO_RECORDS: Final = "No earlier month is recorded. Record the last one with: lumos cost record"


def unattributed_label(name: str) -> str:
    """The label of an unattributed cost: `(idle)`."""
    return NOT_ATTRIBUTED[name][0]


def unattributed_text(name: str) -> str:
    """The label with an explanation: `(idle): paid for but not used`."""
    return ": ".join(NOT_ATTRIBUTED[name])


def display_name(name: str, kind: "NodeKind") -> str:
    """The name of a dataset, or the name of a job with the suffix ` (job)`."""
    return f"{name} (job)" if kind == "job" else name


def use_text(broken: "BrokenNode") -> str:
    """Whether a broken dataset is in use."""
    if not broken.is_live:
        return ""
    return "in use" if broken.is_verified else READERS_UNKNOWN


def period_text(report: "CostReportHeader") -> str:
    """The period of a report as text."""
    days = f"{report.first_day} to {report.last_day}"
    if report.is_recent:
        return f"Last 30 days ({days}) as one month"
    return days if report.period == f"{report.first_day}..{report.last_day}" else report.period


def metered_text(since: date, period: Period) -> str:
    """The metered part of a period: `metered from 2024-05-18, 14 of 31 days`."""
    days = max(0, (period.last - since).days + 1)
    return f"metered from {since}, {days} of {plural(period.days, 'day')}"


def comparison_text(comparison: "CostComparison") -> str:
    """The metered part of the compared months; empty if they are fully metered."""
    if comparison.metered_from is None:
        return ""
    if len(comparison.periods) > 1:
        return f"metered from {comparison.metered_from}"
    first_day = date.fromisoformat(f"{comparison.periods[0]}-01")
    return metered_text(comparison.metered_from, month_of(first_day))


def group_columns_text(by: str) -> str:
    """The meaning of the columns in a report by team, domain, platform or tag."""
    return (
        f"Own cost is spent on the datasets and jobs of each {by}. Retained cost is what its "
        "final datasets cost including everything upstream, whoever owns that. Each column adds "
        "up to the total spend."
    )


def estimate_text(amount: str, share: str) -> str:
    """The part of a report that is estimated by equal splits."""
    return (
        f"{amount} ({share}) is estimated: no usage data says how much each downstream dataset "
        "reads, so it is split equally."
    )
