"""Reports on cost as text of at most 80 columns, unless names are very long."""

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from lumos.cli.cost_screen import (
    WIDTH,
    MoneyFormat,
    money_format,
    percent,
    period_and_method,
    print_bars,
    print_cost_table,
    print_heading,
    print_legend,
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
# Larger shares are printed as 100 %, without a number.
_FULL_SHARE: Final = 0.9995
_NO_UNLISTED_COSTS: Final = UnlistedCosts()
_MONTHS_PER_QUARTER: Final = 3
_MAX_NAME_LENGTH: Final = 30
_TOTAL_LABEL: Final = "Total spend"


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
    """Print the result of `lumos cost report`."""
    console, summary = stdout(), report.summary
    costs = (each.cost for each in report.breakdown.by_upstream)
    money = money_format(report, summary.total_cost, *costs)
    print_subject(console, report.name, report.dataset)
    console.print(period_and_method(report))
    console.print(f"Team: {report.team}")
    console.print()
    own, jobs, attributed = money.rounded(
        (summary.own_cost, summary.jobs_cost, summary.attributed_cost), rest_index=2
    )
    lines = [("own cost", own, f"the {report.kind} itself")]
    lines += [("job cost", jobs, JOB_COST)] if jobs else []
    lines += [("upstream cost", attributed, UPSTREAM_COST)]
    table = Table("", ">", "", widths=(17,))
    table.add("  Total cost", money(summary.total_cost), "", style="bold")
    for name, amount, note in lines:
        table.add(f"    {name}", money(amount), note)
    console.print(table)
    retained, passed_on = money.column((summary.retained_cost, summary.passed_on_cost))
    console.print(f"  Retained: {retained.strip()}. Passed on downstream: {passed_on.strip()}.")
    print_what_if(console, report, money)
    breakdown = report.breakdown
    if report.before is not None:
        _print_changes(console, report.before.by_type, breakdown.by_type, money)
    if breakdown.by_type or breakdown.by_upstream:
        _print_breakdown(console, breakdown, money)
    else:
        console.print()
        console.print(f"  {NO_USAGE}")
    print_heading(console, "TREND")
    _print_trends(console, report, money)
    if report.optimization:
        print_heading(console, "OPTIMIZATION")
        for hint in report.optimization:
            console.print(f"  - {hint}")
        console.print(f"  Potential savings: {money(report.potential_savings)} per month")
    if not report.is_verified:
        console.print()
        console.print("Readers unknown: no query log covers this dataset.")
    print_remarks(report, summary.total_cost, money)


def _print_breakdown(console: "Console", breakdown: CostBreakdown, money: MoneyFormat) -> None:
    print_heading(console, "BY COST TYPE")
    print_bars(console, list(breakdown.by_type.items()), money)
    print_heading(console, "BY TEAM (owner of the datasets and jobs that cause the cost)")
    teams, others = _limit_rows(list(breakdown.by_team.items()))
    print_bars(console, teams, money, more=others)
    print_heading(console, "BY UPSTREAM DATASET OR JOB (where the cost arises)")
    costs = [
        (shorten_start(display_name(each.name, each.kind), _MAX_NAME_LENGTH), each.cost)
        for each in breakdown.by_upstream
    ]
    listed, others = _limit_rows(costs, breakdown.others)
    print_bars(console, listed, money, more=others, total=True)


def _print_changes(
    console: "Console",
    before: "Mapping[str, Decimal]",
    after: "Mapping[str, Decimal]",
    money: MoneyFormat,
) -> None:
    names = list(dict.fromkeys((*before, *after)))
    amounts_before, amounts_after = (
        money.rounded(amounts.get(name, Decimal(0)) for name in names)
        for amounts in (before, after)
    )
    for name, old, new in zip(names, amounts_before, amounts_after, strict=True):
        if old != new:
            console.print(f"    {name}: {money(old)} before, {money(new)} after")


def _limit_rows(
    rows: "Sequence[tuple[str, Decimal]]", unlisted: UnlistedCosts = _NO_UNLISTED_COSTS
) -> "tuple[Sequence[tuple[str, Decimal]], tuple[str, Decimal] | None]":
    """The first rows, and one row for all others if there are too many."""
    if len(rows) <= _MAX_ROWS:
        return rows, None
    unshown = rows[_MAX_ROWS - 1 :]
    count = len(unshown) + unlisted.count
    cost = sum((each for _, each in unshown), unlisted.cost)
    return rows[: _MAX_ROWS - 1], (f"{count:,} others", cost)


def _print_trends(
    console: "Console", report: CostReport | CostTrendReport, money: MoneyFormat
) -> None:
    trends = report.trends
    if trends.last_month is None and trends.last_quarter is None:
        console.print(f"  {NO_RECORDS}")
        return
    for name, compared in (("month", trends.last_month), ("quarter", trends.last_quarter)):
        label = "vs" if report.what_if is None else "what-if vs"
        console.print(f"  {label} last {name:<8} {_comparison_text(compared, report, money)}")


def _comparison_text(
    compared: CostComparison | None, report: CostReport | CostTrendReport, money: MoneyFormat
) -> str:
    if compared is None:
        return f"{'':>6}  not recorded"
    change = "" if compared.percent is None else f"{compared.percent:+.0f}%"
    is_mean = len(compared.periods) > 1
    periods = " and ".join(compared.periods)
    if len(compared.periods) == _MONTHS_PER_QUARTER:
        periods = f"{compared.periods[0]} to {compared.periods[-1]}"
    elif report.is_recent and not is_mean and compared.metered_from is None:
        # The last thirty days are compared with a month, so the length of the month matters.
        days = month_of(date.fromisoformat(f"{periods}-01")).days
        periods += "" if days == report.days else f" ({days} days)"
    if part := comparison_text(compared):
        periods += f" ({part})"
    return f"{change:>6}  {money(compared.cost)}{' per month' if is_mean else ''} in {periods}"


def _print_top(report: CostTopReport) -> None:
    """Print the result of `lumos cost top`."""
    console = stdout()
    money = money_format(report, report.spent)
    console.print(f"Total spend {money(report.spent)}", style="bold")
    console.print(period_and_method(report))
    print_what_if(console, report, money)
    console.print()
    datasets, hidden_rows = report.displayed_rows
    if not datasets and not report.beside:
        console.print(NO_COST)
        print_remarks(report, report.spent, money)
        return
    others = [hidden_rows] if hidden_rows.count else []
    names = [
        shorten_start(display_name(each.name, each.kind), _MAX_NAME_LENGTH) for each in datasets
    ]
    names += [
        *(f"{each.count:,} others" for each in others),
        *map(unattributed_label, report.beside),
    ]
    listed: list[CostRow | OtherCosts] = [*datasets, *others]
    unattributed = list(report.beside.values())
    rest_index = len(datasets) if others else None
    own = money.column([*(each.own for each in listed), *unattributed], rest_index)
    retained = [*(each.retained for each in listed), *unattributed]
    shown = money.column(retained, rest_index)
    # Equal total and retained costs must also be equal after rounding.
    total_texts = [
        shown[index].strip() if each.total == each.retained else money(each.total)
        for index, each in enumerate(datasets)
    ]
    total_texts += [""] * (len(names) - len(total_texts))
    total = money(report.spent)
    headers = ["DATASET OR JOB", "OWN", "TOTAL", "RETAINED"]
    totals = [_TOTAL_LABEL, total, "", total]
    columns = [names, own, total_texts, shown]
    ranked = {
        "retained": retained,
        "own": [*(each.own for each in listed), *unattributed],
        "total": [each.total for each in datasets],
    }[report.ranked_by]
    is_by_own = report.ranked_by == "own"
    _add_change(
        report,
        [each.own_before if is_by_own else each.before for each in listed],
        ranked if is_by_own else retained,
        (headers, columns, totals),
        money,
        after="OWN" if is_by_own else "RETAINED",
        rest_index=rest_index,
    )
    bar_amounts = [*ranked, *([Decimal(0)] * (len(names) - len(ranked)))]
    print_cost_table(console, headers, list(zip(*columns, strict=True)), totals, bar_amounts)
    print_legend(console, OWN_COST, TOTAL_COST, RETAINED_COST)
    print_remarks(report, report.spent, money)


def _add_change(
    report: CostTopReport | CostByReport,
    earlier: "Sequence[Decimal | None]",
    amounts: "Sequence[Decimal]",
    table: tuple[list[str], list[list[str]], list[str]],
    money: MoneyFormat,
    *,
    after: str,
    rest_index: int | None = None,
) -> None:
    """In a what-if report, add a column CHANGE after the column `after`, with its changes."""
    if report.what_if is None or report.beside_before is None:
        return
    unattributed_before = [report.beside_before.get(name, Decimal(0)) for name in report.beside]
    before = [*(each or Decimal(0) for each in earlier), *unattributed_before]
    differences = [now - was for now, was in zip(amounts, before, strict=True)]
    changes = money.rounded(differences, rest_index)
    difference = money.difference(report.what_if.before, report.what_if.after)
    # Adjust one change, so that all changes add up to the difference of the rounded totals.
    adjusted = max(range(len(changes)), key=lambda index: abs(changes[index]), default=rest_index)
    if rest_index is not None and changes[rest_index]:
        adjusted = rest_index
    if adjusted is not None:
        changes[adjusted] += difference - sum(changes, Decimal(0))
    headers, columns, totals = table
    index = headers.index(after) + 1
    headers.insert(index, "CHANGE")
    columns.insert(index, [money.signed(each) if each else "" for each in changes])
    totals.insert(index, money.signed(difference))


def _print_by(report: CostByReport) -> None:
    """Print the result of `lumos cost by`."""
    console = stdout()
    money = money_format(report, report.spent)
    console.print(f"Total spend {money(report.spent)} by {report.by}", style="bold")
    console.print(period_and_method(report))
    print_what_if(console, report, money)
    console.print()
    unattributed = list(report.beside.values())
    names = [
        *(shorten_start(each.name, 28) for each in report.groups),
        *map(unattributed_label, report.beside),
    ]
    counts = [*(f"{each.datasets:,}" for each in report.groups), *([""] * len(unattributed))]
    own = money.column([*(each.own for each in report.groups), *unattributed])
    retained = [*(each.retained for each in report.groups), *unattributed]
    shares = [percent(each, report.spent) for each in retained]
    total = money(report.spent)
    headers = [report.by.upper(), "DATASETS", "OWN", "RETAINED", ""]
    columns = [names, counts, own, money.column(retained), shares]
    totals = [_TOTAL_LABEL, "", total, total, ""]
    if report.what_if is not None:
        # Two columns of changes leave no room for shares.
        headers.pop(), columns.pop(), totals.pop()
    spent = [*(each.own for each in report.groups), *unattributed]
    for amounts, earlier, name in (
        (spent, [each.own_before for each in report.groups], "OWN"),
        (retained, [each.before for each in report.groups], "RETAINED"),
    ):
        _add_change(report, earlier, amounts, (headers, columns, totals), money, after=name)
    print_cost_table(console, headers, list(zip(*columns, strict=True)), totals, retained)
    print_legend(console, group_columns_text(report.by))
    for name in report.beside:
        console.print(unattributed_text(name), style="dim")
    print_remarks(report, report.spent, money)


def _print_trend(report: CostTrendReport) -> None:
    """Print the result of `lumos cost trend`."""
    console = stdout()
    money = money_format(report, report.now.cost)
    title = "Total spend" if report.name is None else f"Total cost of {report.name}"
    print_subject(console, title, report.dataset)
    console.print()
    print_trend(console, report, money)
    console.print()
    _print_trends(console, report, money)
    print_what_if(console, report, money)
    print_remarks(report, report.now.cost, money)


def _print_explain(report: CostExplainReport) -> None:
    """Print the result of `lumos cost explain`."""
    console = stdout()
    money = money_format(report, report.total_cost)
    print_subject(console, report.name, report.dataset)
    console.print(period_and_method(report))
    console.print()
    if not report.paths and not report.total_cost:
        console.print(NO_USAGE)
        return
    amounts = money.column([*(path.cost for path in report.paths), report.rest], -1)
    total = money(report.total_cost)
    width = max(len(total), *map(len, amounts))
    for amount, path in zip(amounts, report.paths, strict=False):
        for number, line in enumerate(fold(_path_text(path, money), WIDTH - width - 4)):
            console.print(f"{'' if number else amount:>{width}}  {'  ' if number else ''}{line}")
    if not report.complete or round(report.rest, money.digits):
        where = "in cycles" if report.complete else "on paths that are not listed; see --limit"
        console.print(f"{amounts[-1]:>{width}}  {where}")
    console.print("-" * width)
    console.print(f"{total:>{width}}  total", style="bold")
    for cycle in report.cycles:
        names = ", ".join(cycle[:5])
        console.print(f"Lineage cycle, in which cost circulates: {names}", style="yellow")
    if any(step.assumed for path in report.paths for step in path.steps):
        console.print("~ marks an estimated share: no usage data, so an equal split.", style="dim")
    print_what_if(console, report, money)
    print_remarks(report, report.total_cost, money)


def _path_text(path: CostPath, money: MoneyFormat) -> str:
    """A path as in `raw_events storage $500.00 -60%-> cleaned_events -> feature_store`."""
    first = path.steps[0]
    parts = [f"{display_name(first.name, first.kind)} {path.type} {money(path.own_cost)}"]
    for before, step in zip(path.steps, path.steps[1:], strict=False):
        share = before.share
        mark = "~" if before.assumed else ""
        is_full = share is None or share > _FULL_SHARE
        arrow = "->" if is_full else f"-{mark}{(share or 0) * 100:.3g}%->"
        parts.append(f"{arrow} {display_name(step.name, step.kind)}")
    return " ".join(parts)


def _print_record(report: CostRecordReport) -> None:
    """Print the result of `lumos cost record`."""
    money = money_format(report, report.spent)
    suffix = " again" if report.is_again else ""
    console = stdout()
    count = plural(report.datasets, "dataset or job", "datasets and jobs")
    console.print(f"Recorded {report.period}{suffix}: {money(report.spent)} for {count}.")
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
        closed_note = ", which no cost leaves" if component.closed else ""
        console.print(
            f"Lineage cycle of {plural(len(component.urns), 'dataset')} ({names}){closed_note}: "
            f"total cost {component.total:,}."
        )
    totals = report.totals
    others = {
        "unallocated": totals.unallocated, "idle": totals.idle, "shared": totals.shared,
        "adjustment": totals.adjustment,
    }  # fmt: skip
    other_amounts = "".join(f", {name} {amount:,}" for name, amount in others.items() if amount)
    console.print(f"Total spend {totals.spent:,}: retained {totals.retained:,}{other_amounts}.")
    if totals.assumed:
        share = f"{float(totals.assumed / totals.spent):.0%}" if totals.spent else "0%"
        console.print(estimate_text(f"{totals.assumed:,}", share), style="yellow")
