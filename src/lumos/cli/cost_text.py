"""Reports on cost as text of at most 80 columns, where names allow."""

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from lumos.cli.cost_screen import (
    WIDTH,
    MoneyFormat,
    bars,
    facts,
    heading,
    ledger,
    legend,
    money_format,
    percent,
    print_remarks,
    print_subject,
    print_trend,
    print_what_if,
    shorten_start,
)
from lumos.cli.screen import Table, fold, stderr, stdout
from lumos.cost.reports import (
    CostBreakdown,
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
    NO_USAGE,
    OWN_COST,
    RETAINED_COST,
    TOTAL_COST,
    UPSTREAM_COST,
    comparison_text,
    display_name,
    estimate_text,
    group_columns_text,
    unattributed_label,
    unattributed_text,
)
from lumos.model.period import month_of
from lumos.rendering.text import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from lumos.cost.model_file.computation import ModelReport

_MAX_ROWS: Final = 12
# Larger shares are shown as the whole.
_FULL_SHARE: Final = 0.9995
_NONE: Final = UnlistedCosts()
_QUARTER: Final = 3
_MAX_NAME_LENGTH: Final = 30
_SUM: Final = "Total spend"


def print_report(report: CostReportHeader) -> None:
    """Print any report on cost."""
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
    """The result of `lumos cost report`."""
    console, summary = stdout(), report.summary
    costs = (each.cost for each in report.breakdown.by_upstream)
    money = money_format(report, summary.total_cost, *costs)
    print_subject(console, report.name, report.dataset)
    console.print(facts(report))
    console.print(f"Team: {report.team}")
    console.print()
    own, jobs, attributed = money.balanced(
        (summary.own_cost, summary.jobs_cost, summary.attributed_cost), rest=2
    )
    lines = [("own cost", own, f"the {report.kind} itself")]
    lines += [("job cost", jobs, JOB_COST)] if jobs else []
    lines += [("upstream cost", attributed, UPSTREAM_COST)]
    table = Table("", ">", "", widths=(17,))
    table.add("  Total cost", money(summary.total_cost), "", style="bold")
    for name, amount, note in lines:
        table.add(f"    {name}", money(amount), note)
    console.print(table)
    stays, goes = money.column((summary.retained_cost, summary.passed_on_cost))
    console.print(f"  Retained: {stays.strip()}. Passed on downstream: {goes.strip()}.")
    print_what_if(console, report, money)
    breakdown = report.breakdown
    if report.before is not None:
        _print_changes(console, report.before.by_type, breakdown.by_type, money)
    if breakdown.by_type or breakdown.by_upstream:
        _print_breakdown(console, breakdown, money)
    else:
        console.print()
        console.print(f"  {NO_USAGE}")
    heading(console, "TREND")
    _print_trends(console, report, money)
    if report.optimization:
        heading(console, "OPTIMIZATION")
        for hint in report.optimization:
            console.print(f"  - {hint}")
        console.print(f"  Potential savings: {money(report.potential_savings)} per month")
    if not report.is_verified:
        console.print()
        console.print("Readers unknown: no query log covers this dataset.")
    print_remarks(report, summary.total_cost, money)


def _print_breakdown(console: "Console", breakdown: CostBreakdown, money: MoneyFormat) -> None:
    heading(console, "BY COST TYPE")
    bars(console, list(breakdown.by_type.items()), money)
    heading(console, "BY TEAM (owner of the datasets and jobs that cause the cost)")
    teams, others = _limit_rows(list(breakdown.by_team.items()))
    bars(console, teams, money, more=others)
    heading(console, "BY UPSTREAM DATASET OR JOB (where the cost arises)")
    spent = [
        (shorten_start(display_name(each.name, each.kind), _MAX_NAME_LENGTH), each.cost)
        for each in breakdown.by_upstream
    ]
    listed, rest = _limit_rows(spent, breakdown.others)
    bars(console, listed, money, more=rest, total=True)


def _print_changes(
    console: "Console",
    before: "Mapping[str, Decimal]",
    after: "Mapping[str, Decimal]",
    money: MoneyFormat,
) -> None:
    names = list(dict.fromkeys((*before, *after)))
    was, now = (
        money.balanced(amounts.get(name, Decimal(0)) for name in names)
        for amounts in (before, after)
    )
    for name, earlier, later in zip(names, was, now, strict=True):
        if earlier != later:
            console.print(f"    {name}: {money(earlier)} before, {money(later)} after")


def _limit_rows(
    rows: "Sequence[tuple[str, Decimal]]", unlisted: UnlistedCosts = _NONE
) -> "tuple[Sequence[tuple[str, Decimal]], tuple[str, Decimal] | None]":
    """The first rows, and all others as one."""
    if len(rows) <= _MAX_ROWS:
        return rows, None
    rest = rows[_MAX_ROWS - 1 :]
    count = len(rest) + unlisted.count
    cost = sum((each for _, each in rest), unlisted.cost)
    return rows[: _MAX_ROWS - 1], (f"{count:,} others", cost)


def _print_trends(
    console: "Console", report: CostReport | CostTrendReport, money: MoneyFormat
) -> None:
    trends = report.trends
    if trends.last_month is None and trends.last_quarter is None:
        console.print(f"  {NO_RECORDS}")
        return
    for name, compared in (("month", trends.last_month), ("quarter", trends.last_quarter)):
        what = "vs" if report.what_if is None else "what-if vs"
        console.print(f"  {what} last {name:<8} {_compared(compared, report, money)}")


def _compared(
    compared: CostComparison | None, report: CostReport | CostTrendReport, money: MoneyFormat
) -> str:
    if compared is None:
        return f"{'':>6}  not recorded"
    change = "" if compared.percent is None else f"{compared.percent:+.0f}%"
    several = len(compared.periods) > 1
    when = " and ".join(compared.periods)
    if len(compared.periods) == _QUARTER:
        when = f"{compared.periods[0]} to {compared.periods[-1]}"
    elif report.is_recent and not several and compared.metered_from is None:
        # Whoever compares thirty days with a month wants to know how long that is.
        days = month_of(date.fromisoformat(f"{when}-01")).days
        when += "" if days == report.days else f" ({days} days)"
    if part := comparison_text(compared):
        when += f" ({part})"
    return f"{change:>6}  {money(compared.cost)}{' per month' if several else ''} in {when}"


def _print_top(report: CostTopReport) -> None:
    """The result of `lumos cost top`."""
    console = stdout()
    money = money_format(report, report.spent)
    console.print(f"Total spend {money(report.spent)}", style="bold")
    console.print(facts(report))
    print_what_if(console, report, money)
    console.print()
    datasets, rest = report.shown
    if not datasets and not report.beside:
        console.print(NO_COST)
        print_remarks(report, report.spent, money)
        return
    others = [rest] if rest.count else []
    names = [
        shorten_start(display_name(each.name, each.kind), _MAX_NAME_LENGTH) for each in datasets
    ]
    names += [
        *(f"{each.count:,} others" for each in others),
        *map(unattributed_label, report.beside),
    ]
    listed: list[CostRow | OtherCosts] = [*datasets, *others]
    beside = list(report.beside.values())
    index = len(datasets) if others else None
    own = money.column([*(each.own for each in listed), *beside], index)
    retained = [*(each.retained for each in listed), *beside]
    shown = money.column(retained, index)
    # What nothing reads has one amount, which is not rounded in two ways.
    totals = [
        shown[index].strip() if each.total == each.retained else money(each.total)
        for index, each in enumerate(datasets)
    ]
    totals += [""] * (len(names) - len(totals))
    whole = money(report.spent)
    head, sums = ["DATASET OR JOB", "OWN", "TOTAL", "RETAINED"], [_SUM, whole, "", whole]
    cells = [names, own, totals, shown]
    ranked = {
        "retained": retained,
        "own": [*(each.own for each in listed), *beside],
        "total": [each.total for each in datasets],
    }[report.ranked_by]
    if report.ranked_by == "own":
        earlier = [each.own_before for each in listed]
        _add_change(report, earlier, ranked, (head, cells, sums), money, after="OWN", rest=index)
    else:
        earlier = [each.before for each in listed]
        _add_change(
            report, earlier, retained, (head, cells, sums), money, after="RETAINED", rest=index
        )
    drawn = [*ranked, *([Decimal(0)] * (len(names) - len(ranked)))]
    ledger(console, head, list(zip(*cells, strict=True)), sums, drawn)
    legend(console, OWN_COST, TOTAL_COST, RETAINED_COST)
    print_remarks(report, report.spent, money)


def _add_change(
    report: CostTopReport | CostByReport,
    earlier: "Sequence[Decimal | None]",
    amounts: "Sequence[Decimal]",
    columns: tuple[list[str], list[list[str]], list[str]],
    money: MoneyFormat,
    *,
    after: str,
    rest: int | None = None,
) -> None:
    """In a what-if report, add a column with the changes of another column."""
    if report.what_if is None or report.beside_before is None:
        return
    beside = [report.beside_before.get(name, Decimal(0)) for name in report.beside]
    before = [*(each or Decimal(0) for each in earlier), *beside]
    exact = [now - was for now, was in zip(amounts, before, strict=True)]
    changes = money.balanced(exact, rest)
    difference = money.difference(report.what_if.before, report.what_if.after)
    # Before and after are rounded each; their difference is shown as between the rounded ones.
    bent = max(range(len(changes)), key=lambda index: abs(changes[index]), default=rest)
    if rest is not None and changes[rest]:
        bent = rest
    if bent is not None:
        changes[bent] += difference - sum(changes, Decimal(0))
    head, cells, sums = columns
    index = head.index(after) + 1
    head.insert(index, "CHANGE")
    cells.insert(index, [money.signed(each) if each else "" for each in changes])
    sums.insert(index, money.signed(difference))


def _print_by(report: CostByReport) -> None:
    """The result of `lumos cost by`."""
    console = stdout()
    money = money_format(report, report.spent)
    console.print(f"Total spend {money(report.spent)} by {report.by}", style="bold")
    console.print(facts(report))
    print_what_if(console, report, money)
    console.print()
    beside = list(report.beside.values())
    names = [
        *(shorten_start(each.name, 28) for each in report.groups),
        *map(unattributed_label, report.beside),
    ]
    counts = [*(f"{each.datasets:,}" for each in report.groups), *([""] * len(beside))]
    own = money.column([*(each.own for each in report.groups), *beside])
    retained = [*(each.retained for each in report.groups), *beside]
    shares = [percent(each, report.spent) for each in retained]
    whole = money(report.spent)
    head = [report.by.upper(), "DATASETS", "OWN", "RETAINED", ""]
    cells = [names, counts, own, money.column(retained), shares]
    sums = [_SUM, "", whole, whole, ""]
    if report.what_if is not None:
        # Two columns of changes leave no room for shares.
        head.pop(), cells.pop(), sums.pop()
    spent = [*(each.own for each in report.groups), *beside]
    for amounts, earlier, name in (
        (spent, [each.own_before for each in report.groups], "OWN"),
        (retained, [each.before for each in report.groups], "RETAINED"),
    ):
        _add_change(report, earlier, amounts, (head, cells, sums), money, after=name)
    ledger(console, head, list(zip(*cells, strict=True)), sums, retained)
    legend(console, group_columns_text(report.by))
    for name in report.beside:
        console.print(unattributed_text(name), style="dim")
    print_remarks(report, report.spent, money)


def _print_trend(report: CostTrendReport) -> None:
    """The result of `lumos cost trend`."""
    console = stdout()
    money = money_format(report, report.now.cost)
    what = "Total spend" if report.name is None else f"Total cost of {report.name}"
    print_subject(console, what, report.dataset)
    console.print()
    print_trend(console, report, money)
    console.print()
    _print_trends(console, report, money)
    print_what_if(console, report, money)
    print_remarks(report, report.now.cost, money)


def _print_explain(report: CostExplainReport) -> None:
    """The result of `lumos cost explain`."""
    console = stdout()
    money = money_format(report, report.total_cost)
    print_subject(console, report.name, report.dataset)
    console.print(facts(report))
    console.print()
    amounts = money.column([*(path.cost for path in report.paths), report.rest], -1)
    whole = money(report.total_cost)
    width = max(len(whole), *map(len, amounts))
    for amount, path in zip(amounts, report.paths, strict=False):
        for number, line in enumerate(fold(_path_text(path, money), WIDTH - width - 4)):
            console.print(f"{'' if number else amount:>{width}}  {'  ' if number else ''}{line}")
    if not report.complete or round(report.rest, money.digits):
        where = "in cycles" if report.complete else "on paths that are not listed; see --limit"
        console.print(f"{amounts[-1]:>{width}}  {where}")
    console.print("-" * width)
    console.print(f"{whole:>{width}}  total", style="bold")
    for cycle in report.cycles:
        names = ", ".join(cycle[:5])
        console.print(f"Lineage cycle, in which cost circulates: {names}", style="yellow")
    if any(step.assumed for path in report.paths for step in path.steps):
        console.print("~ marks an estimated share: no usage data, so an equal split.", style="dim")
    print_what_if(console, report, money)
    print_remarks(report, report.total_cost, money)


def _path_text(path: CostPath, money: MoneyFormat) -> str:
    """raw_events storage $500.00 -60%-> cleaned_events -> feature_store"""
    first = path.steps[0]
    words = [f"{display_name(first.name, first.kind)} {path.type} {money(path.own_cost)}"]
    for before, step in zip(path.steps, path.steps[1:], strict=False):
        share = before.share
        mark = "~" if before.assumed else ""
        is_whole = share is None or share > _FULL_SHARE
        arrow = "->" if is_whole else f"-{mark}{(share or 0) * 100:.3g}%->"
        words.append(f"{arrow} {display_name(step.name, step.kind)}")
    return " ".join(words)


def _print_record(report: CostRecordReport) -> None:
    """The result of `lumos cost record`."""
    money = money_format(report, report.spent)
    again = " again" if report.is_again else ""
    console = stdout()
    what = plural(report.datasets, "dataset or job", "datasets and jobs")
    console.print(f"Recorded {report.period}{again}: {money(report.spent)} for {what}.")
    if report.aspects_written:
        console.print(
            f"Snapshots now include the cost of {plural(report.aspects_written, 'dataset')}."
        )
    print_remarks(report, report.spent, money)


def print_model(report: "ModelReport") -> None:
    """Print the costs that were computed from a model file."""
    for remark in report.remarks:
        stderr().print(f"remark  {remark}")
    console = stdout()
    table = Table("DATASET", ">OWN", ">UPSTREAM", ">TOTAL", ">RETAINED", ">SAVINGS")
    for each in report.datasets:
        figures = (each.direct, each.attributed, each.total, each.retained, each.savings)
        table.add(each.urn, *(f"{amount:,}" for amount in figures))
    console.print(table)
    for component in report.components:
        names = ", ".join(component.urns[:3]) + (", ..." if len(component.urns) > 3 else "")
        closed = ", which no cost leaves" if component.closed else ""
        console.print(
            f"Lineage cycle of {plural(len(component.urns), 'dataset')} ({names}){closed}: total "
            f"cost {component.total:,}."
        )
    totals = report.totals
    others = {
        "unallocated": totals.unallocated, "idle": totals.idle, "shared": totals.shared,
        "adjustment": totals.adjustment,
    }  # fmt: skip
    rest = "".join(f", {name} {amount:,}" for name, amount in others.items() if amount)
    console.print(f"Total spend {totals.spent:,}: retained {totals.retained:,}{rest}.")
    if totals.assumed:
        share = f"{float(totals.assumed / totals.spent):.0%}" if totals.spent else "0%"
        console.print(estimate_text(f"{totals.assumed:,}", share), style="yellow")
