"""Reports on cost as text of at most 80 columns, where names allow."""

from datetime import date
from decimal import Decimal
from textwrap import wrap
from typing import TYPE_CHECKING, Final, TypeAlias

from lumos.cli.cost_screen import (
    WIDTH,
    Purse,
    bars,
    facts,
    heading,
    ledger,
    legend,
    percent,
    print_remarks,
    print_trend,
    print_what_if,
    purse_of,
    shortened,
)
from lumos.cli.screen import plural, stdout
from lumos.cost.reports import (
    CostByReport,
    CostComparison,
    CostExplainReport,
    CostPath,
    CostRecordReport,
    CostReport,
    CostReportHeader,
    CostRow,
    CostTopReport,
    CostTrendReport,
    OtherCosts,
    RetireReport,
    SavingsReport,
    UnlistedCosts,
)
from lumos.cost.wording import (
    JOB_COST,
    NO_COST,
    NO_RECORDS,
    OWN_COST,
    RETAINED_COST,
    TOTAL_COST,
    UPSTREAM_COST,
    display_name,
    group_columns_text,
    unattributed_label,
    unattributed_text,
)
from lumos.model.period import month_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    Amounts: TypeAlias = Mapping[str, Decimal]

_ROWS: Final = 12
# Shares from here on are written as all of it.
_WHOLE: Final = 0.9995
_NONE: Final = UnlistedCosts()
_QUARTER: Final = 3
_LONGEST_NAME: Final = 30
_SUM: Final = "Total spend"


def print_answer(report: CostReportHeader) -> None:
    """Any report on cost."""
    match report:
        case CostReport():
            _print_report(report)
        case CostTopReport():
            _print_top(report)
        case CostByReport():
            _print_by(report)
        case CostTrendReport():
            _print_trend(report)
        case CostExplainReport():
            _print_explain(report)
        case CostRecordReport():
            _print_record(report)
        case SavingsReport():
            from lumos.cli.cost_savings_text import print_savings

            print_savings(report)
        case RetireReport():
            from lumos.cli.cost_savings_text import print_retire

            print_retire(report)


def _print_report(report: CostReport) -> None:
    """The answer of `lumos cost report`."""
    console, summary = stdout(), report.summary
    costs = (each.cost for each in report.breakdown.by_upstream)
    purse = purse_of(report, summary.total_cost, *costs)
    console.print(report.name, style="bold", end="  ")
    console.print(report.dataset, style="dim")
    console.print(facts(report))
    console.print(f"Team: {report.team}")
    console.print()
    own, jobs, attributed = purse.balanced(
        (summary.own_cost, summary.jobs_cost, summary.attributed_cost), rest=2
    )
    lines = [("own cost", own, f"the {report.kind} itself")]
    lines += [("job cost", jobs, JOB_COST)] if jobs else []
    lines += [("upstream cost", attributed, UPSTREAM_COST)]
    total = purse(summary.total_cost)
    width = max(len(total), *(len(purse(amount)) for _, amount, _ in lines))
    console.print(f"  {'Total cost':<16} {total:>{width}}", style="bold")
    for name, amount, note in lines:
        console.print(f"    {name:<14} {purse(amount):>{width}}  {note}")
    stays, goes = purse.column((summary.retained_cost, summary.passed_on_cost))
    console.print(f"  Retained: {stays.strip()}. Passed on downstream: {goes.strip()}.")
    print_what_if(console, report, purse)
    breakdown = report.breakdown
    if report.before is not None:
        _print_changes(console, report.before.by_type, breakdown.by_type, purse)
    heading(console, "BY COST TYPE")
    bars(console, list(breakdown.by_type.items()), purse)
    heading(console, "BY TEAM (owner of the datasets and jobs that cause the cost)")
    teams, others = _cut(list(breakdown.by_team.items()))
    bars(console, teams, purse, more=others)
    heading(console, "BY UPSTREAM DATASET OR JOB (where the cost arises)")
    spent = [
        (shortened(display_name(each.name, each.kind), _LONGEST_NAME), each.cost)
        for each in breakdown.by_upstream
    ]
    listed, rest = _cut(spent, breakdown.others)
    bars(console, listed, purse, more=rest, total=True)
    heading(console, "TREND")
    _print_trends(console, report, purse)
    if report.optimization:
        heading(console, "OPTIMIZATION")
        for hint in report.optimization:
            console.print(f"  - {hint}")
        console.print(f"  Potential savings: {purse(report.potential_savings)} per month")
    if not report.is_verified:
        console.print()
        console.print("Readers unknown: no query log covers this dataset.")
    print_remarks(report, summary.total_cost, purse)


def _print_changes(
    console: "Console",
    before: "Mapping[str, Decimal]",
    after: "Mapping[str, Decimal]",
    purse: Purse,
) -> None:
    names = list(dict.fromkeys((*before, *after)))
    was, now = (
        purse.balanced(amounts.get(name, Decimal(0)) for name in names)
        for amounts in (before, after)
    )
    for name, earlier, later in zip(names, was, now, strict=True):
        if earlier != later:
            console.print(f"    {name}: {purse(earlier)} before, {purse(later)} after")


def _cut(
    rows: "Sequence[tuple[str, Decimal]]", unlisted: UnlistedCosts = _NONE
) -> "tuple[Sequence[tuple[str, Decimal]], tuple[str, Decimal] | None]":
    """The first rows, and all others as one."""
    if len(rows) <= _ROWS:
        return rows, None
    rest = rows[_ROWS - 1 :]
    count = len(rest) + unlisted.count
    cost = sum((each for _, each in rest), unlisted.cost)
    return rows[: _ROWS - 1], (f"{count:,} others", cost)


def _print_trends(console: "Console", report: CostReport | CostTrendReport, purse: Purse) -> None:
    trends = report.trends
    if trends.last_month is None and trends.last_quarter is None:
        console.print(f"  {NO_RECORDS}")
        return
    for name, compared in (("month", trends.last_month), ("quarter", trends.last_quarter)):
        what = "vs" if report.what_if is None else "what-if vs"
        console.print(f"  {what} last {name:<8} {_compared(compared, report, purse)}")


def _compared(
    compared: CostComparison | None, report: CostReport | CostTrendReport, purse: Purse
) -> str:
    if compared is None:
        return f"{'':>6}  not recorded"
    change = "" if compared.percent is None else f"{compared.percent:+.0f}%"
    several = len(compared.periods) > 1
    when = " and ".join(compared.periods)
    if len(compared.periods) == _QUARTER:
        when = f"{compared.periods[0]} to {compared.periods[-1]}"
    elif report.is_recent and not several:
        # Whoever compares thirty days with a month wants to know how long that is.
        days = month_of(date.fromisoformat(f"{when}-01")).days
        when += "" if days == report.days else f" ({days} days)"
    return f"{change:>6}  {purse(compared.cost)}{' per month' if several else ''} in {when}"


def _print_top(report: CostTopReport) -> None:
    """The answer of `lumos cost top`."""
    console = stdout()
    purse = purse_of(report, report.spent)
    console.print(f"Total spend {purse(report.spent)}", style="bold")
    console.print(facts(report))
    print_what_if(console, report, purse)
    console.print()
    datasets, rest = report.shown
    if not datasets and not report.beside:
        console.print(NO_COST)
        print_remarks(report, report.spent, purse)
        return
    others = [rest] if rest.count else []
    names = [shortened(display_name(each.name, each.kind), _LONGEST_NAME) for each in datasets]
    names += [
        *(f"{each.count:,} others" for each in others),
        *map(unattributed_label, report.beside),
    ]
    listed: list[CostRow | OtherCosts] = [*datasets, *others]
    beside = list(report.beside.values())
    place = len(datasets) if others else None
    own = purse.column([*(each.own for each in listed), *beside], place)
    retained = [*(each.retained for each in listed), *beside]
    shown = purse.column(retained, place)
    # What nothing reads has one amount, which is not rounded in two ways.
    totals = [
        shown[place].strip() if each.total == each.retained else purse(each.total)
        for place, each in enumerate(datasets)
    ]
    totals += [""] * (len(names) - len(totals))
    whole = purse(report.spent)
    head, sums = ["DATASET OR JOB", "OWN", "TOTAL", "RETAINED"], [_SUM, whole, "", whole]
    cells = [names, own, totals, shown]
    ranked = {
        "retained": retained,
        "own": [*(each.own for each in listed), *beside],
        "total": [each.total for each in datasets],
    }[report.ranked_by]
    if report.ranked_by == "own":
        earlier = [each.own_before for each in listed]
        _add_change(report, earlier, ranked, (head, cells, sums), purse, after="OWN", rest=place)
    else:
        earlier = [each.before for each in listed]
        _add_change(
            report, earlier, retained, (head, cells, sums), purse, after="RETAINED", rest=place
        )
    drawn = [*ranked, *([Decimal(0)] * (len(names) - len(ranked)))]
    ledger(console, head, list(zip(*cells, strict=True)), sums, drawn)
    legend(console, OWN_COST, TOTAL_COST, RETAINED_COST)
    print_remarks(report, report.spent, purse)


def _add_change(
    report: CostTopReport | CostByReport,
    earlier: "Sequence[Decimal | None]",
    amounts: "Sequence[Decimal]",
    columns: tuple[list[str], list[list[str]], list[str]],
    purse: Purse,
    *,
    after: str,
    rest: int | None = None,
) -> None:
    """One column more where something is supposed: by how much that changes another column."""
    if report.what_if is None or report.beside_before is None:
        return
    beside = [report.beside_before.get(name, Decimal(0)) for name in report.beside]
    before = [*(each or Decimal(0) for each in earlier), *beside]
    exact = [now - was for now, was in zip(amounts, before, strict=True)]
    changes = purse.balanced(exact, rest)
    difference = purse.difference(report.what_if.before, report.what_if.after)
    # Before and after are rounded each; their difference is shown as between the rounded ones.
    bent = max(range(len(changes)), key=lambda place: abs(changes[place]), default=rest)
    if rest is not None and changes[rest]:
        bent = rest
    if bent is not None:
        changes[bent] += difference - sum(changes, Decimal(0))
    head, cells, sums = columns
    place = head.index(after) + 1
    head.insert(place, "CHANGE")
    cells.insert(place, [purse.signed(each) if each else "" for each in changes])
    sums.insert(place, purse.signed(difference))


def _print_by(report: CostByReport) -> None:
    """The answer of `lumos cost by`."""
    console = stdout()
    purse = purse_of(report, report.spent)
    console.print(f"Total spend {purse(report.spent)} by {report.by}", style="bold")
    console.print(facts(report))
    print_what_if(console, report, purse)
    console.print()
    beside = list(report.beside.values())
    names = [
        *(shortened(each.name, 28) for each in report.groups),
        *map(unattributed_label, report.beside),
    ]
    counts = [*(f"{each.datasets:,}" for each in report.groups), *([""] * len(beside))]
    own = purse.column([*(each.own for each in report.groups), *beside])
    retained = [*(each.retained for each in report.groups), *beside]
    shares = [percent(each, report.spent) for each in retained]
    whole = purse(report.spent)
    head = [report.by.upper(), "DATASETS", "OWN", "RETAINED", ""]
    cells = [names, counts, own, purse.column(retained), shares]
    sums = [_SUM, "", whole, whole, ""]
    if report.what_if is not None:
        # Two columns of changes leave no room for shares.
        head.pop(), cells.pop(), sums.pop()
    spent = [*(each.own for each in report.groups), *beside]
    for amounts, earlier, name in (
        (spent, [each.own_before for each in report.groups], "OWN"),
        (retained, [each.before for each in report.groups], "RETAINED"),
    ):
        _add_change(report, earlier, amounts, (head, cells, sums), purse, after=name)
    ledger(console, head, list(zip(*cells, strict=True)), sums, retained)
    legend(console, group_columns_text(report.by))
    for name in report.beside:
        console.print(unattributed_text(name), style="dim")
    print_remarks(report, report.spent, purse)


def _print_trend(report: CostTrendReport) -> None:
    """The answer of `lumos cost trend`."""
    console = stdout()
    purse = purse_of(report, report.now.cost)
    what = "Total spend" if report.name is None else f"Total cost of {report.name}"
    console.print(what, style="bold", end="  " if report.dataset else "\n")
    if report.dataset:
        console.print(report.dataset, style="dim")
    console.print()
    print_trend(console, report, purse)
    console.print()
    _print_trends(console, report, purse)
    print_what_if(console, report, purse)
    print_remarks(report, report.now.cost, purse)


def _print_explain(report: CostExplainReport) -> None:
    """The answer of `lumos cost explain`."""
    console = stdout()
    purse = purse_of(report, report.total_cost)
    console.print(report.name, style="bold", end="  ")
    console.print(report.dataset, style="dim")
    console.print(facts(report))
    console.print()
    amounts = purse.column([*(path.cost for path in report.paths), report.rest], -1)
    whole = purse(report.total_cost)
    width = max(len(whole), *map(len, amounts))
    for amount, path in zip(amounts, report.paths, strict=False):
        lines = wrap(
            _way(path, purse), WIDTH - width - 4, break_long_words=False, break_on_hyphens=False
        )
        for number, line in enumerate(lines):
            console.print(f"{'' if number else amount:>{width}}  {'  ' if number else ''}{line}")
    if not report.complete or round(report.rest, purse.digits):
        where = "in cycles" if report.complete else "on paths that are not listed; see --limit"
        console.print(f"{amounts[-1]:>{width}}  {where}")
    console.print("-" * width)
    console.print(f"{whole:>{width}}  total", style="bold")
    for cycle in report.cycles:
        names = ", ".join(cycle[:5])
        console.print(f"Lineage cycle, in which cost circulates: {names}", style="yellow")
    if any(step.assumed for path in report.paths for step in path.steps):
        console.print("~ marks an estimated share: no usage data, so an equal split.", style="dim")
    print_what_if(console, report, purse)
    print_remarks(report, report.total_cost, purse)


def _way(path: CostPath, purse: Purse) -> str:
    """raw_events storage $500.00 -60%-> cleaned_events -> feature_store"""
    first = path.steps[0]
    words = [f"{display_name(first.name, first.kind)} {path.type} {purse(path.own_cost)}"]
    for before, step in zip(path.steps, path.steps[1:], strict=False):
        share = before.share
        mark = "~" if before.assumed else ""
        is_whole = share is None or share > _WHOLE
        arrow = "->" if is_whole else f"-{mark}{(share or 0) * 100:.3g}%->"
        words.append(f"{arrow} {display_name(step.name, step.kind)}")
    return " ".join(words)


def _print_record(report: CostRecordReport) -> None:
    """The answer of `lumos cost record`."""
    purse = purse_of(report, report.spent)
    again = " again" if report.is_again else ""
    console = stdout()
    what = "dataset or job" if report.datasets == 1 else "datasets and jobs"
    console.print(
        f"Recorded {report.period}{again}: {purse(report.spent)} for {report.datasets:,} {what}."
    )
    if report.aspects_written:
        console.print(
            f"Snapshots now include the cost of {plural(report.aspects_written, 'dataset')}."
        )
    print_remarks(report, report.spent, purse)
