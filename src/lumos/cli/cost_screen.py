"""Costs on a terminal: amounts that add up, with bars."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from lumos.cli.screen import Table, fold, stderr, width_of
from lumos.cli.text import is_verbose
from lumos.cost.wording import estimate_text, period_text
from lumos.model.money import (
    amount_of,
    digits_of,
    format_money,
    micros,
    round_amount,
    round_balanced,
    round_balanced_by,
)

if TYPE_CHECKING:
    from rich.console import Console

    from lumos.cost.reports import CostReportHeader, CostTrendReport

# The width of all reports on cost.
WIDTH: Final = 80
_MAX_NAME_LENGTH: Final = 34
_BAR: Final = 22
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
# Digits of amounts below one unit of the currency.
_FINER: Final = 4
_ROUGH_AMOUNT: Final = 100


class MoneyFormat:
    """Formats the amounts of one report: to the cent, or finer if all of it is less than 1."""

    def __init__(self, currency: str, whole: Decimal) -> None:
        self._currency = currency
        is_small = 0 < abs(whole) < 1
        self.digits = _FINER if is_small else digits_of(currency)

    def __call__(self, amount: Decimal) -> str:
        return format_money(micros(amount), self._currency, self.digits)

    def format_roughly(self, amount: Decimal) -> str:
        """An extrapolated amount: large ones without cents."""
        digits = 0 if abs(amount) >= _ROUGH_AMOUNT else self.digits
        return format_money(micros(amount), self._currency, digits)

    def signed(self, amount: Decimal) -> str:
        """A difference, with its sign."""
        text = self(amount)
        return text if text.startswith("-") else f"+{text}"

    def balanced(self, amounts: Iterable[Decimal], rest: int | None = None) -> list[Decimal]:
        """Amounts rounded so that they give their rounded sum; one may make up for the others."""
        exact = [micros(amount) for amount in amounts]
        if rest is None:
            rounded_amounts = round_balanced(exact, self.digits)
        else:
            rounded_amounts = round_balanced_by(exact, self.digits, rest)
        return [amount_of(units) for units in rounded_amounts]

    def difference(self, before: Decimal, after: Decimal) -> Decimal:
        """The difference of two amounts as they are shown."""
        rounded_amounts = [round_amount(micros(each), self.digits) for each in (before, after)]
        return amount_of(rounded_amounts[1] - rounded_amounts[0])

    def column(self, amounts: Iterable[Decimal], rest: int | None = None) -> list[str]:
        """Amounts as text that add up to their sum as text, aligned at the right."""
        texts = [self(amount) for amount in self.balanced(amounts, rest)]
        width = max(map(len, texts), default=0)
        return [f"{text:>{width}}" for text in texts]


def money_format(report: "CostReportHeader", *amounts: Decimal) -> MoneyFormat:
    """The format for a report with such amounts; the largest decides about digits."""
    return MoneyFormat(report.currency, max(map(abs, amounts)))


def bar(amount: Decimal, limit: Decimal, width: int = _BAR) -> str:
    """A bar of eighths of characters."""
    if limit <= 0 or amount <= 0:
        return ""
    eighths = max(1, round(float(amount / limit) * width * 8))
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def percent(amount: Decimal, whole: Decimal) -> str:
    """The share of an amount in the whole."""
    if not whole:
        return ""
    share = float(amount / whole) * 100
    return "<1%" if 0 < share < 0.5 else f"{share:.0f}%"


def shorten_start(name: str, limit: int = _MAX_NAME_LENGTH) -> str:
    """A long name shortened at its start, since the end is more specific."""
    if width_of(name) <= limit:
        return name
    while width_of(name) >= limit:
        name = name[1:]
    return f"…{name}"


def print_wrapped(console: "Console", text: str, *, indent: int) -> None:
    """Print a text with lines of at most 80 columns, all but the first indented."""
    for line in fold(text, WIDTH, indent=" " * indent):
        console.print(line)


def print_subject(console: "Console", name: str, urn: str | None) -> None:
    """The name of what a report is about, with its URN in verbose mode."""
    shows_urn = urn is not None and is_verbose()
    console.print(name, style="bold", end="  " if shows_urn else "\n")
    if shows_urn:
        console.print(urn, style="dim")


def heading(console: "Console", text: str) -> None:
    """The head of a part of a report."""
    console.print()
    console.print(f"{text}", style="bold")


def bars(
    console: "Console",
    rows: Sequence[tuple[str, Decimal]],
    money: MoneyFormat,
    *,
    more: tuple[str, Decimal] | None = None,
    total: bool = False,
) -> None:
    """Print rows with amounts, shares and bars; `more` is one row for all that are not listed."""
    listed = [*rows, *([more] if more else [])]
    if not listed:
        return
    whole = sum((amount for _, amount in listed), Decimal(0))
    amounts = money.column((amount for _, amount in listed), -1 if more else None)
    width = max(len(money(whole)) if total else 0, *map(len, amounts))
    names = [shorten_start(name) for name, _ in listed]
    room = max(6, min(_BAR, WIDTH - max(map(width_of, names)) - width - 12))
    limit = max(amount for _, amount in listed)
    # Shares of a sum that is less than its parts would say nothing.
    is_whole = whole >= limit and all(abs(amount) <= whole for _, amount in listed)
    table = Table("", ">", ">", "", widths=(0, width, 4))
    for name, text, (_, amount) in zip(names, amounts, listed, strict=True):
        share = percent(amount, whole) if is_whole else ""
        table.add(f"  {name}", text, share, bar(amount, limit, room))
    if total:
        table.add("", "-" * width, "", "")
        table.add("", money(whole), "", "")
    console.print(table)


def ledger(
    console: "Console",
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    sums: Sequence[str],
    drawn: Sequence[Decimal],
) -> None:
    """Print rows of names and amounts with bars, above their sums."""
    widths = [max(map(width_of, column)) for column in zip(head, *rows, sums, strict=True)]
    room = max(4, min(_BAR, WIDTH - sum(widths) - 2 * len(widths)))
    limit = max(drawn, default=Decimal(0))
    table = Table(head[0], *(f">{name}" for name in head[1:]), "")
    for row, amount in zip(rows, drawn, strict=True):
        table.add(*row, bar(amount, limit, room))
    rules = ("-" * width if cell else "" for cell, width in zip(sums[1:], widths[1:], strict=True))
    table.add("", *rules, "")
    table.add(*sums, "")
    console.print(table)


def facts(report: "CostReportHeader") -> str:
    """The period of a report and its attribution method."""
    return f"{period_text(report)}, method {report.method}"


def legend(console: "Console", *sentences: str) -> None:
    """What the columns of a table mean."""
    console.print()
    for line in fold(" ".join(sentences), WIDTH):
        console.print(line, style="dim")


def print_what_if(console: "Console", report: "CostReportHeader", money: MoneyFormat) -> None:
    """The assumptions of a what-if report, and what they change."""
    supposed = report.what_if
    if supposed is None:
        return
    heading(console, "WHAT IF")
    for change in supposed.changes:
        console.print(f"  {change}")
    before, after = money(supposed.before), money(supposed.after)
    style = "green" if supposed.difference < 0 else "red" if supposed.difference > 0 else ""
    console.print(f"  before {before}, after {after}: ", end="")
    difference = money.difference(supposed.before, supposed.after)
    console.print(money.signed(difference), style=style)


def print_remarks(report: "CostReportHeader", whole: Decimal, money: MoneyFormat) -> None:
    """The limits of a report: what is estimated, missing or out of date."""
    console = stderr()
    if report.assumed or report.remarks:
        console.print()
    if report.assumed:
        console.print(estimate_text(money(report.assumed), percent(report.assumed, whole)))
    for remark in report.remarks:
        console.print(remark, style="yellow")


def print_trend(console: "Console", report: "CostTrendReport", money: MoneyFormat) -> None:
    """Periods one below the other, the earliest first, each against the one before as months."""
    asked = "last 30 days" if report.is_recent else report.period
    rows = [(point.period, point) for point in report.points]
    if report.before is None:
        rows.append((asked, report.now))
    else:
        rows += [(asked, report.before), ("what-if", report.now)]
    limit = max(point.cost for _, point in rows)
    texts = [money(point.cost) for _, point in rows]
    widest = max(len(name) for name, _ in rows) + max(map(len, texts))
    room = max(6, min(36, WIDTH - widest - 14))
    table = Table("", ">", ">", "", widths=(0, 0, 6))
    before: Decimal | None = None
    for (name, point), text in zip(rows, texts, strict=True):
        change = ""
        if before is not None and before > 0 and point.metered_from is None:
            # Rounded as in the comparison below it.
            change = f"{round(float((point.monthly - before) / abs(before)) * 100, 1):+.0f}%"
        table.add(f"  {name}", text, change, bar(point.cost, limit, room))
        before = point.monthly if point.metered_from is None else None
    console.print(table)
