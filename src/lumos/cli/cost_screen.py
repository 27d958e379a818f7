"""How costs look on a screen: amounts that add up, and bars beside them."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

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

# What a screen has at least.
WIDTH: Final = 80
_LONGEST_NAME: Final = 34
_BAR: Final = 22
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
# Below one unit of money, cents say nothing.
_FINER: Final = 4
_ROUGH: Final = 100


class Purse:
    """Writes the amounts of one report: to the cent, or finer where all of it is less than 1."""

    def __init__(self, currency: str, whole: Decimal) -> None:
        self._currency = currency
        is_small = 0 < abs(whole) < 1
        self.digits = _FINER if is_small else digits_of(currency)

    def __call__(self, amount: Decimal) -> str:
        return format_money(micros(amount), self._currency, self.digits)

    def roughly(self, amount: Decimal) -> str:
        """An amount that is reckoned up from others, without cents where these say nothing."""
        digits = 0 if abs(amount) >= _ROUGH else self.digits
        return format_money(micros(amount), self._currency, digits)

    def signed(self, amount: Decimal) -> str:
        """A difference, with its sign."""
        text = self(amount)
        return text if text.startswith("-") else f"+{text}"

    def balanced(self, amounts: Iterable[Decimal], rest: int | None = None) -> list[Decimal]:
        """Amounts rounded so that they give their rounded sum; one may make up for the others."""
        exact = [micros(amount) for amount in amounts]
        if rest is None:
            shown = round_balanced(exact, self.digits)
        else:
            shown = round_balanced_by(exact, self.digits, rest)
        return [amount_of(units) for units in shown]

    def difference(self, before: Decimal, after: Decimal) -> Decimal:
        """What lies between two amounts as they are shown."""
        shown = [round_amount(micros(each), self.digits) for each in (before, after)]
        return amount_of(shown[1] - shown[0])

    def column(self, amounts: Iterable[Decimal], rest: int | None = None) -> list[str]:
        """Amounts as text that add up to their sum as text, aligned at the right."""
        texts = [self(amount) for amount in self.balanced(amounts, rest)]
        width = max(map(len, texts), default=0)
        return [f"{text:>{width}}" for text in texts]


def purse_of(report: "CostReportHeader", *amounts: Decimal) -> Purse:
    """The purse for a report with such amounts; the largest decides about digits."""
    return Purse(report.currency, max(map(abs, amounts)))


def bar(amount: Decimal, most: Decimal, width: int = _BAR) -> str:
    """A bar of eighths of characters."""
    if most <= 0 or amount <= 0:
        return ""
    eighths = max(1, round(float(amount / most) * width * 8))
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def percent(amount: Decimal, whole: Decimal) -> str:
    """How much of a whole something is."""
    if not whole:
        return ""
    share = float(amount / whole) * 100
    return "<1%" if 0 < share < 0.5 else f"{share:.0f}%"


def shortened(name: str, most: int = _LONGEST_NAME) -> str:
    """The end of a long name, which says more than its beginning."""
    if cell_len(name) <= most:
        return name
    while cell_len(name) >= most:
        name = name[1:]
    return f"…{name}"


def padded(text: str, width: int) -> str:
    """Text in a column of such a width; some characters take the room of two."""
    return text + " " * (width - cell_len(text))


def print_wrapped(console: "Console", text: str, *, indent: int) -> None:
    """A line of words, and what does not fit on it further in."""
    lines = wrap(
        text,
        WIDTH,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
    for line in lines:
        console.print(line)


def heading(console: "Console", text: str) -> None:
    """The head of a part of a report."""
    console.print()
    console.print(f"{text}", style="bold")


def bars(
    console: "Console",
    rows: Sequence[tuple[str, Decimal]],
    purse: Purse,
    *,
    more: tuple[str, Decimal] | None = None,
    total: bool = False,
) -> None:
    """Rows with amounts, shares and bars; `more` is what is not listed, `total` adds them up."""
    listed = [*rows, *([more] if more else [])]
    if not listed:
        return
    whole = sum((amount for _, amount in listed), Decimal(0))
    amounts = purse.column((amount for _, amount in listed), -1 if more else None)
    summed = purse(whole)
    width = max(len(summed) if total else 0, *(len(each) for each in amounts))
    names = [shortened(name) for name, _ in listed]
    column = max(map(cell_len, names))
    most = max(amount for _, amount in listed)
    # Shares of a sum that is less than its parts would say nothing.
    is_whole = whole >= most and all(abs(amount) <= whole for _, amount in listed)
    for name, text, (_, amount) in zip(names, amounts, listed, strict=True):
        share = percent(amount, whole) if is_whole else ""
        drawn = bar(amount, most, max(6, min(_BAR, WIDTH - column - width - 12)))
        line = f"  {padded(name, column)}  {text:>{width}}  {share:>4}  {drawn}"
        console.print(line.rstrip())
    if total:
        console.print(f"  {'':<{column}}  {'-' * width}")
        console.print(f"  {'':<{column}}  {summed:>{width}}")


def ledger(
    console: "Console",
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    sums: Sequence[str],
    drawn: Sequence[Decimal],
) -> None:
    """Rows of names and amounts with bars behind them, above their sums."""
    widths = [max(map(cell_len, column)) for column in zip(head, *rows, sums, strict=True)]
    room = max(4, min(_BAR, WIDTH - sum(widths) - 2 * len(widths)))
    most = max(drawn, default=Decimal(0))

    def aligned(cells: Sequence[str]) -> str:
        first = padded(cells[0], widths[0])
        numbers = (f"{cell:>{width}}" for cell, width in zip(cells[1:], widths[1:], strict=True))
        return "  ".join((first, *numbers))

    console.print(aligned(head).rstrip(), style="bold")
    for row, amount in zip(rows, drawn, strict=True):
        console.print(f"{aligned(row)}  {bar(amount, most, room)}".rstrip())
    rules = ["-" * width if cell else "" for cell, width in zip(sums, widths, strict=True)]
    rules[0] = ""
    console.print(aligned(rules).rstrip())
    console.print(aligned(sums).rstrip())


def facts(report: "CostReportHeader") -> str:
    """The period of a report and its attribution method."""
    return f"{period_text(report)}, method {report.method}"


def legend(console: "Console", *sentences: str) -> None:
    """What the columns of a table mean."""
    console.print()
    for line in wrap(" ".join(sentences), WIDTH, break_long_words=False, break_on_hyphens=False):
        console.print(line, style="dim")


def print_what_if(console: "Console", report: "CostReportHeader", purse: Purse) -> None:
    """The assumptions of a what-if report, and what they change."""
    supposed = report.what_if
    if supposed is None:
        return
    heading(console, "WHAT IF")
    for change in supposed.changes:
        console.print(f"  {change}")
    before, after = purse(supposed.before), purse(supposed.after)
    style = "green" if supposed.difference < 0 else "red" if supposed.difference > 0 else ""
    console.print(f"  before {before}, after {after}: ", end="")
    difference = purse.difference(supposed.before, supposed.after)
    console.print(purse.signed(difference), style=style)


def print_remarks(report: "CostReportHeader", whole: Decimal, purse: Purse) -> None:
    """The limits of a report: what is estimated, missing or out of date."""
    from lumos.cli.screen import stderr

    console = stderr()
    if report.assumed or report.remarks:
        console.print()
    if report.assumed:
        console.print(estimate_text(purse(report.assumed), percent(report.assumed, whole)))
    for remark in report.remarks:
        console.print(remark, style="yellow")


def print_trend(console: "Console", report: "CostTrendReport", purse: Purse) -> None:
    """Periods one below the other, the earliest first, each against the one before as months."""
    asked = "last 30 days" if report.is_recent else report.period
    rows = [(point.period, point) for point in report.points]
    if report.before is None:
        rows.append((asked, report.now))
    else:
        rows += [(asked, report.before), ("what-if", report.now)]
    most = max(point.cost for _, point in rows)
    texts = [purse(point.cost) for _, point in rows]
    width = max(map(len, texts))
    column = max(len(name) for name, _ in rows)
    before: Decimal | None = None
    for (name, point), text in zip(rows, texts, strict=True):
        change = ""
        if before is not None and before > 0:
            # Rounded as in the comparison below it.
            change = f"{round(float((point.monthly - before) / abs(before)) * 100, 1):+.0f}%"
        drawn = bar(point.cost, most, max(6, min(36, WIDTH - column - width - 14)))
        console.print(f"  {name:<{column}}  {text:>{width}}  {change:>6}  {drawn}".rstrip())
        before = point.monthly
