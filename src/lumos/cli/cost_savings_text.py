"""What would be saved, as text."""

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from lumos.cli.cost_screen import (
    Purse,
    facts,
    heading,
    padded,
    percent,
    print_remarks,
    print_what_if,
    purse_of,
    shortened,
    told,
)
from lumos.cli.screen import stdout
from lumos.engine.costs.reports import Broken, RetireReport, SavingsReport

if TYPE_CHECKING:
    from rich.console import Console

_ROWS: Final = 12
_PAIR: Final = 2
_RISKS: Final = {"LOW": "green", "MEDIUM": "yellow", "HIGH": "bold red"}


def print_savings(report: SavingsReport) -> None:
    """The answer of `lumos cost savings`."""
    console = stdout()
    purse = purse_of(report, report.monthly_savings)
    what = " and ".join(report.asked) if len(report.asked) == _PAIR else _few(report.asked)
    console.print(f"If {what} ended", style="bold")
    console.print(facts(report))
    console.print()
    monthly, annual = purse(report.monthly_savings), purse.roughly(report.annual_savings)
    console.print(f"  Saves {monthly} a month, {annual} a year", style="bold")
    by_type = report.breakdown.by_type
    for name, text in zip(by_type, purse.column(by_type.values()), strict=True):
        console.print(f"    {name:<10}{text}")
    attributed = report.attributed_cost
    if attributed is not None and attributed > report.monthly_savings >= 0:
        goes_on = purse(purse.difference(report.monthly_savings, attributed))
        why = "since others need it" + (" or it stays due." if report.committed_cost else ".")
        line = f"  Through everything upstream it costs {purse(attributed)}; {goes_on} of that"
        told(console, f"{line} would go on, {why}", indent=2)
    print_what_if(console, report, purse)
    gone = purse.column(each.monthly for each in report.disappears)
    _part(
        console,
        "DISAPPEARS",
        [
            (each.name, each.kind, text, "" if each.is_asked else "only needed by what ends")
            for each, text in zip(report.disappears, gone, strict=True)
        ],
    )
    stays = purse.column(each.monthly for each in report.stays)
    _part(
        console,
        "STAYS",
        [
            (each.name, each.kind, text, each.reason)
            for each, text in zip(report.stays, stays, strict=True)
        ],
        beyond=report.other_stays.count,
    )
    _part(
        console,
        "BREAKS",
        [
            (each.name, each.kind, ", ".join(each.owners) or "(no owner)",
             _use(each))
            for each in report.broken
        ],
    )  # fmt: skip
    impact = report.impact_analysis
    heading(console, "RISK ")
    console.print(f"  {impact.risk_level}", style=_RISKS[impact.risk_level])
    for reason in impact.reasons:
        told(console, f"  - {reason}", indent=4)
    if report.unverified:
        console.print()
        console.print("Who reads these is not known; no log tells of it:", style="yellow")
        for urn in report.unverified[:_ROWS]:
            console.print(f"  {urn}")
        if len(report.unverified) > _ROWS:
            console.print(f"  and {len(report.unverified) - _ROWS:,} more")
    print_remarks(report, report.monthly_savings, purse)


def print_retire(report: RetireReport) -> None:
    """The answer of `lumos cost retire`."""
    console = stdout()
    purse = purse_of(report, report.spent)
    if not report.steps and not report.unneeded:
        console.print("There is nothing whose end would save anything.")
        return
    console.print(facts(report))
    if report.unneeded:
        amount, share = report.unneeded_savings, percent(report.unneeded_savings, report.spent)
        title = f"Nobody needs these: {purse(amount)} a month, {share} of all"
        texts = purse.column(each.monthly for each in report.unneeded)
        shown = [
            (each.name, each.kind, text, each.team)
            for each, text in zip(report.unneeded, texts, strict=True)
        ]
        _part(console, title, shown)
    if report.steps:
        monthly, annual = purse(report.monthly_savings), purse.roughly(report.annual_savings)
        share = percent(report.monthly_savings, report.spent)
        heading(console, f"Giving up these saves {monthly} a month, {share} of all")
        _print_steps(console, report, purse)
        tried = "No other choice of so many saves more." if report.exact else (
            "Chosen one after the other; another choice might save more."
        )  # fmt: skip
        console.print()
        console.print(f"{annual} a year. {tried}", style="dim")
        console.print("The second amount adds up what is saved so far.", style="dim")
    print_what_if(console, report, purse)
    print_remarks(report, report.spent, purse)


def _print_steps(console: "Console", report: RetireReport, purse: Purse) -> None:
    amounts = purse.balanced(each.monthly_savings for each in report.steps)
    saved = [purse(each) for each in amounts]
    # Added up as they are shown.
    sums = [purse(each) for each in accumulate(amounts)]
    widest, width = max(map(len, saved)), max(map(len, sums))
    indent = widest + width + 9
    steps = zip(report.steps, saved, sums, strict=True)
    for number, (step, text, total) in enumerate(steps, start=1):
        use = "in use" if step.is_read else "" if step.is_verified else "readers not known"
        whose = ", ".join(filter(None, (*step.teams, use)))
        line = (
            f"{number:>3}  {text:>{widest}}  {total:>{width}}  {_few(step.names, _ROWS)} ({whose})"
        )
        told(console, line, indent=indent)
        also = len(step.datasets) - len(step.ends)
        if also:
            console.print(f"{'':>{indent}}with {also:,} more that only this needs", style="dim")


def _part(
    console: "Console",
    title: str,
    rows: Sequence[tuple[str, str, str, str]],
    *,
    beyond: int = 0,
) -> None:
    if not rows:
        return
    heading(console, title)
    shown = [
        (shortened(f"{name} (job)" if kind == "job" else name, 32), amount, note)
        for name, kind, amount, note in rows[:_ROWS]
    ]
    names = max(cell_len(name) for name, _, _ in shown)
    amounts = max(cell_len(amount) for _, amount, _ in shown)
    for name, amount, note in shown:
        told(
            console, f"  {padded(name, names)}  {padded(amount, amounts)}  {note}".rstrip(),
            indent=names + amounts + 6,
        )  # fmt: skip
    more = len(rows) - len(shown) + beyond
    if more:
        console.print(f"  and {more:,} more; see --json")


def _use(broken: Broken) -> str:
    if not broken.is_live:
        return ""
    return "an end use" if broken.is_verified else "readers not known"


def _few(names: Sequence[str], most: int = 3) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"
