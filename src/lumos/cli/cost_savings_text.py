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
    print_wrapped,
    purse_of,
    shortened,
)
from lumos.cli.screen import stdout
from lumos.cost.reports import RetireReport, SavingsReport
from lumos.cost.wording import NOTHING_ELSE, READERS_UNKNOWN, display_name, use_text

if TYPE_CHECKING:
    from rich.console import Console

    from lumos.cost.reports import NodeKind

_ROWS: Final = 12
_PAIR: Final = 2
_RISKS: Final = {"LOW": "green", "MEDIUM": "yellow", "HIGH": "bold red"}


def print_savings(report: SavingsReport) -> None:
    """The answer of `lumos cost savings`."""
    console = stdout()
    purse = purse_of(report, report.monthly_savings)
    what = " and ".join(report.asked) if len(report.asked) == _PAIR else _few(report.asked)
    is_one = len(report.asked) == 1 and not report.asked[0].startswith("all ")
    console.print(f"If {what} {'is' if is_one else 'are'} removed", style="bold")
    console.print(facts(report))
    console.print()
    monthly, annual = purse(report.monthly_savings), purse.roughly(report.annual_savings)
    console.print(f"  Saves {monthly} per month, {annual} per year", style="bold")
    by_type = report.breakdown.by_type
    for name, text in zip(by_type, purse.column(by_type.values()), strict=True):
        console.print(f"    {name:<10}{text}")
    attributed = report.attributed_cost
    if attributed is not None and attributed > report.monthly_savings >= 0:
        remains = purse(purse.difference(report.monthly_savings, attributed))
        why = "other datasets need it" + (" or it is committed" if report.committed_cost else "")
        line = f"  Its total cost is {purse(attributed)}; {remains} of that remains, because {why}."
        print_wrapped(console, line, indent=2)
    print_what_if(console, report, purse)
    gone = purse.column(each.monthly for each in report.disappears)
    _part(
        console,
        "REMOVED (saved)",
        [
            (each.name, each.kind, text, "" if each.is_asked else NOTHING_ELSE)
            for each, text in zip(report.disappears, gone, strict=True)
        ],
    )
    stays = purse.column(each.monthly for each in report.stays)
    _part(
        console,
        "REMAINS (not saved)",
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
             use_text(each))
            for each in report.broken
        ],
    )  # fmt: skip
    impact = report.impact_analysis
    heading(console, "RISK")
    console.print(f"  {impact.risk_level}", style=_RISKS[impact.risk_level])
    for reason in impact.reasons:
        print_wrapped(console, f"  - {reason}", indent=4)
    if report.unverified:
        console.print()
        console.print("Readers unknown: no query log covers these datasets:", style="yellow")
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
        console.print("Removing datasets would save nothing in this period.")
        return
    console.print(facts(report))
    if report.unneeded:
        amount, share = report.unneeded_savings, percent(report.unneeded_savings, report.spent)
        title = f"Unused: removing these saves {purse(amount)} per month ({share} of total spend)"
        texts = purse.column(each.monthly for each in report.unneeded)
        shown = [
            (each.name, each.kind, text, each.team)
            for each, text in zip(report.unneeded, texts, strict=True)
        ]
        _part(console, title, shown)
    if report.steps:
        monthly, annual = purse(report.monthly_savings), purse.roughly(report.annual_savings)
        share = percent(report.monthly_savings, report.spent)
        heading(
            console,
            f"Retiring these saves {monthly} per month ({share} of total spend)",
        )
        _print_steps(console, report, purse)
        tried = "No other selection of this size saves more." if report.exact else (
            "Selected one after the other; another selection might save more."
        )  # fmt: skip
        console.print()
        console.print(f"{annual} per year. {tried}", style="dim")
    print_what_if(console, report, purse)
    print_remarks(report, report.spent, purse)


def _print_steps(console: "Console", report: RetireReport, purse: Purse) -> None:
    amounts = purse.balanced(each.monthly_savings for each in report.steps)
    saved = [purse(each) for each in amounts]
    # Added up as they are shown.
    sums = [purse(each) for each in accumulate(amounts)]
    widest, width = max(map(len, ("SAVES", *saved))), max(map(len, ("CUMULATIVE", *sums)))
    indent = widest + width + 9
    console.print(f"     {'SAVES':>{widest}}  {'CUMULATIVE':>{width}}  DATASETS", style="bold")
    steps = zip(report.steps, saved, sums, strict=True)
    for number, (step, text, total) in enumerate(steps, start=1):
        use = "in use" if step.is_read else "" if step.is_verified else READERS_UNKNOWN
        whose = ", ".join(filter(None, (*(team.strip("()") for team in step.teams), use)))
        line = (
            f"{number:>3}  {text:>{widest}}  {total:>{width}}  {_few(step.names, _ROWS)} ({whose})"
        )
        print_wrapped(console, line, indent=indent)
        also = len(step.datasets) - len(step.ends)
        if also:
            console.print(f"{'':>{indent}}and {also:,} more {NOTHING_ELSE}", style="dim")


def _part(
    console: "Console",
    title: str,
    rows: Sequence[tuple[str, "NodeKind", str, str]],
    *,
    beyond: int = 0,
) -> None:
    if not rows:
        return
    heading(console, title)
    shown = [
        (shortened(display_name(name, kind), 32), amount, note)
        for name, kind, amount, note in rows[:_ROWS]
    ]
    names = max(cell_len(name) for name, _, _ in shown)
    amounts = max(cell_len(amount) for _, amount, _ in shown)
    for name, amount, note in shown:
        print_wrapped(
            console, f"  {padded(name, names)}  {padded(amount, amounts)}  {note}".rstrip(),
            indent=names + amounts + 6,
        )  # fmt: skip
    more = len(rows) - len(shown) + beyond
    if more:
        console.print(f"  and {more:,} more; see --json")


def _few(names: Sequence[str], most: int = 3) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"
