"""Reports on savings as text."""

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from lumos.cli.cost_screen import (
    WIDTH,
    MoneyFormat,
    money_format,
    percent,
    period_and_method,
    print_heading,
    print_remarks,
    print_what_if,
    print_wrapped,
    shorten_start,
)
from lumos.cli.screen import Table, stdout
from lumos.cli.text import is_verbose
from lumos.cost.reports import RetireReport, SavingsReport
from lumos.cost.wording import NOTHING_ELSE, READERS_UNKNOWN, display_name, use_text
from lumos.rendering.text import plural

if TYPE_CHECKING:
    from rich.console import Console

    from lumos.cost.reports import NodeKind

_MAX_ROWS: Final = 12
_RISKS: Final = {"LOW": "green", "MEDIUM": "yellow", "HIGH": "bold red"}


def print_savings(report: SavingsReport) -> None:
    """Print the result of `lumos cost savings`."""
    console = stdout()
    money = money_format(report, report.monthly_savings)
    subject = " and ".join(report.asked) if len(report.asked) == 2 else _join_first(report.asked)
    is_one = len(report.asked) == 1 and not report.asked[0].startswith("all ")
    console.print(f"If {subject} {'is' if is_one else 'are'} removed", style="bold")
    console.print(period_and_method(report))
    console.print()
    monthly, annual = money(report.monthly_savings), money.format_roughly(report.annual_savings)
    console.print(f"  Saves {monthly} per month, {annual} per year", style="bold")
    by_type = report.breakdown.by_type
    table = Table("", ">", widths=(12,))
    for name, text in zip(by_type, money.column(by_type.values()), strict=True):
        table.add(f"    {name}", text)
    console.print(table)
    attributed = report.attributed_cost
    if attributed is not None and attributed > report.monthly_savings >= 0:
        remains = money(money.difference(report.monthly_savings, attributed))
        reason = "other datasets need it" + (" or it is committed" if report.committed_cost else "")
        line = (
            f"  Its total cost is {money(attributed)}; {remains} of that remains, because {reason}."
        )
        print_wrapped(console, line, indent=2)
    print_what_if(console, report, money)
    removed = money.column(each.monthly for each in report.disappears)
    _print_section(
        console,
        "REMOVED (saved)",
        [
            (each.name, each.kind, text, "" if each.is_asked else NOTHING_ELSE)
            for each, text in zip(report.disappears, removed, strict=True)
        ],
    )
    stays = money.column(each.monthly for each in report.stays)
    _print_section(
        console,
        "REMAINS (not saved)",
        [
            (each.name, each.kind, text, each.reason)
            for each, text in zip(report.stays, stays, strict=True)
        ],
        unlisted=report.other_stays.count,
    )
    _print_section(
        console,
        "BREAKS",
        [
            (each.name, each.kind, ", ".join(each.owners) or "(no owner)",
             use_text(each))
            for each in report.broken
        ],
    )  # fmt: skip
    impact = report.impact_analysis
    print_heading(console, "RISK")
    console.print(f"  {impact.risk_level}", style=_RISKS[impact.risk_level])
    for reason in impact.reasons:
        print_wrapped(console, f"  - {reason}", indent=4)
    if report.unverified:
        console.print()
        console.print("Readers unknown: no query log covers these datasets:", style="yellow")
        names = {
            **{each.urn: display_name(each.name, each.kind) for each in report.disappears},
            **{each.urn: display_name(each.name, each.kind) for each in report.stays},
            **{each.urn: display_name(each.name, each.kind) for each in report.broken},
        }
        for urn in report.unverified[:_MAX_ROWS]:
            console.print(f"  {urn if is_verbose() else names.get(urn, urn)}")
        if len(report.unverified) > _MAX_ROWS:
            console.print(f"  and {len(report.unverified) - _MAX_ROWS:,} more")
    print_remarks(report, report.monthly_savings, money)


def print_retire(report: RetireReport) -> None:
    """Print the result of `lumos cost retire`."""
    console = stdout()
    money = money_format(report, report.spent)
    if not report.steps and not report.unneeded:
        console.print("Removing datasets would save nothing in this period.")
        _print_in_use(console, report)
        return
    console.print(period_and_method(report))
    if report.unneeded:
        amount, share = report.unneeded_savings, percent(report.unneeded_savings, report.spent)
        title = f"Unused: removing these saves {money(amount)} per month ({share} of total spend)"
        texts = money.column(each.monthly for each in report.unneeded)
        listed = [
            (each.name, each.kind, text, each.team)
            for each, text in zip(report.unneeded, texts, strict=True)
        ]
        _print_section(console, title, listed)
    if report.steps:
        monthly, annual = money(report.monthly_savings), money.format_roughly(report.annual_savings)
        share = percent(report.monthly_savings, report.spent)
        is_known = any(step.is_verified for step in report.steps)
        condition = "Retiring these" if is_known else "If unread, retiring these"
        print_heading(console, f"{condition} saves {monthly} per month ({share} of total spend)")
        _print_steps(console, report, money)
        certainty = "No other selection of this size saves more." if report.exact else (
            "Selected one after the other; another selection might save more."
        )  # fmt: skip
        console.print()
        console.print(f"{annual} per year. {certainty}", style="dim")
        if not is_known:
            console.print(
                "No query log shows who reads them. Add one with: lumos usage ingest PATH"
            )
    _print_in_use(console, report)
    print_what_if(console, report, money)
    print_remarks(report, report.spent, money)


def _print_in_use(console: "Console", report: RetireReport) -> None:
    if report.in_use:
        text = (
            f"Not proposed: {plural(report.in_use, 'dataset')} with recorded reads, and everything "
            "upstream. See the reads with: lumos usage top"
        )
        console.print()
        print_wrapped(console, text, indent=2)


def _print_steps(console: "Console", report: RetireReport, money: MoneyFormat) -> None:
    amounts = money.rounded(each.monthly_savings for each in report.steps)
    # Accumulate the rounded amounts, so that the columns are consistent.
    steps = zip(report.steps, amounts, accumulate(amounts), strict=True)
    table = Table(">", ">SAVES", ">CUMULATIVE", "DATASETS", widths=(3,), fold_at=WIDTH)
    for number, (step, amount, total) in enumerate(steps, start=1):
        use = "" if step.is_verified else READERS_UNKNOWN
        teams = ", ".join(filter(None, (*(team.strip("()") for team in step.teams), use)))
        datasets = f"{_join_first(step.names, _MAX_ROWS)} ({teams})"
        table.add(str(number), money(amount), money(total), datasets)
        if additional := len(step.datasets) - len(step.ends):
            table.add(
                "",
                "",
                "",
                f"and {plural(additional, 'more dataset')} that nothing else uses",
                style="dim",
            )
    console.print(table)


def _print_section(
    console: "Console",
    title: str,
    rows: Sequence[tuple[str, "NodeKind", str, str]],
    *,
    unlisted: int = 0,
) -> None:
    if not rows:
        return
    print_heading(console, title)
    table = Table("", "", "", fold_at=WIDTH)
    for name, kind, amount, note in rows[:_MAX_ROWS]:
        table.add(f"  {shorten_start(display_name(name, kind), 32)}", amount, note)
    console.print(table)
    if more := max(0, len(rows) - _MAX_ROWS) + unlisted:
        console.print(f"  and {more:,} more; see --json")


def _join_first(names: Sequence[str], limit: int = 3) -> str:
    listed = ", ".join(names[:limit])
    return listed if len(names) <= limit else f"{listed} and {len(names) - limit:,} more"
