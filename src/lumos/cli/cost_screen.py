"""Prints costs on a terminal: rounded amounts that add up, and bars."""

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
_MAX_BAR_WIDTH: Final = 22
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
# Digits of amounts below one unit of the currency.
_SMALL_AMOUNT_DIGITS: Final = 4
_MIN_WITHOUT_CENTS: Final = 100


class MoneyFormat:
    """Formats the amounts of one report: to the cent, or with four digits if all are below 1."""

    def __init__(self, currency: str, largest: Decimal) -> None:
        self._currency = currency
        is_small = 0 < abs(largest) < 1
        self.digits = _SMALL_AMOUNT_DIGITS if is_small else digits_of(currency)

    def __call__(self, amount: Decimal) -> str:
        return format_money(micros(amount), self._currency, self.digits)

    def format_roughly(self, amount: Decimal) -> str:
        """An extrapolated amount, without cents if it is large."""
        digits = 0 if abs(amount) >= _MIN_WITHOUT_CENTS else self.digits
        return format_money(micros(amount), self._currency, digits)

    def signed(self, amount: Decimal) -> str:
        """A difference, with its sign."""
        text = self(amount)
        return text if text.startswith("-") else f"+{text}"

    def rounded(self, amounts: Iterable[Decimal], rest_index: int | None = None) -> list[Decimal]:
        """Amounts rounded so that they add up to their rounded sum.

        The amount at `rest_index`, if given, absorbs the rounding errors of the others.
        """
        exact = [micros(amount) for amount in amounts]
        if rest_index is None:
            rounded_amounts = round_balanced(exact, self.digits)
        else:
            rounded_amounts = round_balanced_by(exact, self.digits, rest_index)
        return [amount_of(units) for units in rounded_amounts]

    def difference(self, before: Decimal, after: Decimal) -> Decimal:
        """The difference of two amounts after rounding."""
        rounded_amounts = [round_amount(micros(each), self.digits) for each in (before, after)]
        return amount_of(rounded_amounts[1] - rounded_amounts[0])

    def column(self, amounts: Iterable[Decimal], rest_index: int | None = None) -> list[str]:
        """Amounts as text, aligned at the right; the rounded amounts add up."""
        texts = [self(amount) for amount in self.rounded(amounts, rest_index)]
        width = max(map(len, texts), default=0)
        return [f"{text:>{width}}" for text in texts]


def money_format(report: "CostReportHeader", *amounts: Decimal) -> MoneyFormat:
    """The format for a report with these amounts; the largest one determines the digits."""
    return MoneyFormat(report.currency, max(map(abs, amounts)))


def bar(amount: Decimal, maximum: Decimal, width: int = _MAX_BAR_WIDTH) -> str:
    """A bar of block characters, with a resolution of an eighth of a character."""
    if maximum <= 0 or amount <= 0:
        return ""
    eighths = max(1, round(float(amount / maximum) * width * 8))
    full_blocks, remainder = divmod(eighths, 8)
    return "█" * full_blocks + (_EIGHTHS[remainder] if remainder else "")


def percent(amount: Decimal, total: Decimal) -> str:
    """The share of an amount in a total, in percent."""
    if not total:
        return ""
    share = float(amount / total) * 100
    return "<1%" if 0 < share < 0.5 else f"{share:.0f}%"


def shorten_start(name: str, max_width: int = _MAX_NAME_LENGTH) -> str:
    """Shorten a long name at its start, since the end is more specific."""
    if width_of(name) <= max_width:
        return name
    while width_of(name) >= max_width:
        name = name[1:]
    return f"…{name}"


def print_wrapped(console: "Console", text: str, *, indent: int) -> None:
    """Print a text with lines of at most 80 columns, all but the first indented."""
    for line in fold(text, WIDTH, indent=" " * indent):
        console.print(line)


def print_subject(console: "Console", name: str, urn: str | None) -> None:
    """Print the subject of a report, with its URN in verbose mode."""
    shows_urn = urn is not None and is_verbose()
    console.print(name, style="bold", end="  " if shows_urn else "\n")
    if shows_urn:
        console.print(urn, style="dim")


def print_heading(console: "Console", text: str) -> None:
    console.print()
    console.print(f"{text}", style="bold")


def print_bars(
    console: "Console",
    rows: Sequence[tuple[str, Decimal]],
    money: MoneyFormat,
    *,
    more: tuple[str, Decimal] | None = None,
    total: bool = False,
) -> None:
    """Print rows with amounts, shares and bars; `more` is one row for all unlisted ones."""
    listed = [*rows, *([more] if more else [])]
    if not listed:
        return
    row_sum = sum((amount for _, amount in listed), Decimal(0))
    amounts = money.column((amount for _, amount in listed), -1 if more else None)
    width = max(len(money(row_sum)) if total else 0, *map(len, amounts))
    names = [shorten_start(name) for name, _ in listed]
    bar_width = max(6, min(_MAX_BAR_WIDTH, WIDTH - max(map(width_of, names)) - width - 12))
    maximum = max(amount for _, amount in listed)
    # With credits, the sum may be less than an amount: shares would be meaningless.
    has_shares = row_sum >= maximum and all(abs(amount) <= row_sum for _, amount in listed)
    table = Table("", ">", ">", "", widths=(0, width, 4))
    for name, text, (_, amount) in zip(names, amounts, listed, strict=True):
        share = percent(amount, row_sum) if has_shares else ""
        table.add(f"  {name}", text, share, bar(amount, maximum, bar_width))
    if total:
        table.add("", "-" * width, "", "")
        table.add("", money(row_sum), "", "")
    console.print(table)


def print_cost_table(
    console: "Console",
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    totals: Sequence[str],
    bar_amounts: Sequence[Decimal],
) -> None:
    """Print rows of names and amounts with bars, above their sums."""
    widths = [max(map(width_of, column)) for column in zip(head, *rows, totals, strict=True)]
    bar_width = max(4, min(_MAX_BAR_WIDTH, WIDTH - sum(widths) - 2 * len(widths)))
    maximum = max(bar_amounts, default=Decimal(0))
    table = Table(head[0], *(f">{name}" for name in head[1:]), "")
    for row, amount in zip(rows, bar_amounts, strict=True):
        table.add(*row, bar(amount, maximum, bar_width))
    rules = (
        "-" * width if cell else "" for cell, width in zip(totals[1:], widths[1:], strict=True)
    )
    table.add("", *rules, "")
    table.add(*totals, "")
    console.print(table)


def period_and_method(report: "CostReportHeader") -> str:
    """The period of a report and its attribution method."""
    return f"{period_text(report)}, method {report.method}"


def print_legend(console: "Console", *sentences: str) -> None:
    """Print the meaning of the columns of a table."""
    console.print()
    for line in fold(" ".join(sentences), WIDTH):
        console.print(line, style="dim")


def print_what_if(console: "Console", report: "CostReportHeader", money: MoneyFormat) -> None:
    """Print the assumptions of a what-if report, and their effect on the total."""
    what_if = report.what_if
    if what_if is None:
        return
    print_heading(console, "WHAT IF")
    for change in what_if.changes:
        console.print(f"  {change}")
    before, after = money(what_if.before), money(what_if.after)
    style = "green" if what_if.difference < 0 else "red" if what_if.difference > 0 else ""
    console.print(f"  before {before}, after {after}: ", end="")
    difference = money.difference(what_if.before, what_if.after)
    console.print(money.signed(difference), style=style)


def print_remarks(report: "CostReportHeader", total: Decimal, money: MoneyFormat) -> None:
    """Print the limits of a report: estimates, and missing or outdated inputs."""
    console = stderr()
    if report.assumed or report.remarks:
        console.print()
    if report.assumed:
        console.print(estimate_text(money(report.assumed), percent(report.assumed, total)))
    for remark in report.remarks:
        console.print(remark, style="yellow")


def print_trend(console: "Console", report: "CostTrendReport", money: MoneyFormat) -> None:
    """Print one row per period, earliest first, with its change since the period before."""
    period = "last 30 days" if report.is_recent else report.period
    rows = [(point.period, point) for point in report.points]
    if report.before is None:
        rows.append((period, report.now))
    else:
        rows += [(period, report.before), ("what-if", report.now)]
    maximum = max(point.cost for _, point in rows)
    texts = [money(point.cost) for _, point in rows]
    widest = max(len(name) for name, _ in rows) + max(map(len, texts))
    bar_width = max(6, min(36, WIDTH - widest - 14))
    table = Table("", ">", ">", "", widths=(0, 0, 6))
    before: Decimal | None = None
    for (name, point), text in zip(rows, texts, strict=True):
        change = ""
        if before is not None and before > 0 and point.metered_from is None:
            # Rounded like the comparison that is printed below.
            change = f"{round(float((point.monthly - before) / abs(before)) * 100, 1):+.0f}%"
        table.add(f"  {name}", text, change, bar(point.cost, maximum, bar_width))
        before = point.monthly if point.metered_from is None else None
    console.print(table)
