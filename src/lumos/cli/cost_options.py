"""Options that the commands on cost share, and how their reports are written."""

import enum
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.forms import by_ending, write
from lumos.cli.options import print_json
from lumos.errors import MisuseError

if TYPE_CHECKING:
    from lumos.cost.reports import CostReportHeader
    from lumos.cost.service import CostOptions


class CostForm(enum.StrEnum):
    """The format of a report."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    HTML = "html"


class PlainForm(enum.StrEnum):
    """The format of a report that has no HTML page."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


_BY_ENDING: Final = {
    ".json": CostForm.JSON, ".csv": CostForm.CSV, ".html": CostForm.HTML, ".htm": CostForm.HTML,
}  # fmt: skip
_WHAT_IF: Final = "What if"

PeriodOption = Annotated[
    str | None,
    typer.Option(
        metavar="PERIOD",
        help="2024-01, 2024-01-15 or 2024-01-01..2024-01-31. Default: the last 30 days, as one "
        "month.",
    ),
]
MethodOption = Annotated[
    str | None,
    typer.Option(
        metavar="METHOD",
        help="Attribution method: lineage_weighted, equal_split or last_touch.",
    ),
]
PriceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--price",
        metavar="KEY=PRICE",
        help="Assume another price, such as s3.standard=0.021. May be repeated.",
        rich_help_panel=_WHAT_IF,
    ),
]
MoveOption = Annotated[
    list[str] | None,
    typer.Option(
        "--move",
        metavar="DATASET=CLASS",
        help="Assume that a dataset is in another storage class, such as events=glacier.",
        rich_help_panel=_WHAT_IF,
    ),
]
ScheduleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--schedule",
        metavar="JOB=SCHEDULE",
        help="Assume that a job runs hourly, daily, weekly, monthly, never or 0.5x as often.",
        rich_help_panel=_WHAT_IF,
    ),
]
FormOption = Annotated[
    CostForm | None,
    typer.Option("--format", help="Default: text, or by the file extension of --output."),
]
PlainFormOption = Annotated[
    PlainForm | None,
    typer.Option("--format", help="Default: text, or by the file extension of --output."),
]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")]


def how_of(
    period: str | None,
    method: str | None,
    price: list[str] | None,
    move: list[str] | None,
    schedule: list[str] | None,
) -> "CostOptions":
    """The values of the shared options."""
    return {
        "period": period,
        "method": method,
        "prices": dict(_price(each) for each in price or ()),
        "moves": dict(_pair(each, "--move", "events=glacier") for each in move or ()),
        "schedules": dict(_pair(each, "--schedule", "clean=weekly") for each in schedule or ()),
    }


def _pair(text: str, option: str, example: str) -> tuple[str, str]:
    # A URN may hold the sign itself, the value never does.
    name, sign, value = text.rpartition("=")
    if not (name.strip() and sign and value.strip()):
        raise MisuseError(f"Invalid {option} '{text}'. Write {option} {example}")
    return name.strip(), value.strip()


def _price(text: str) -> tuple[str, Decimal]:
    key, value = _pair(text, "--price", "PROVIDER.CLASS=PRICE or ENGINE.UNIT=PRICE")
    try:
        price = Decimal(value)
    except InvalidOperation:
        price = Decimal("nan")
    if not price.is_finite():
        raise MisuseError(f"Invalid price '{value}'. Write --price {key}=0.021")
    return key, price


def form_of(
    format: CostForm | PlainForm | None, output: Path | None, *, json: bool, csv: bool
) -> CostForm:
    """The format that the options ask for."""
    named = ((CostForm.JSON, json), (CostForm.CSV, csv))
    wanted = [CostForm(format)] if format else []
    wanted += [form for form, is_asked in named if is_asked]
    if len(set(wanted)) > 1:
        raise MisuseError(f"{' and '.join(wanted)} contradict each other. Choose one of them.")
    if wanted:
        return wanted[0]
    if output is None:
        return CostForm.TEXT
    return by_ending(output, _BY_ENDING)


def deliver(
    form: CostForm,
    output: Path | None,
    answer: "Callable[[], CostReportHeader]",
    *,
    page: Callable[[], str] | None = None,
) -> None:
    """Prints a report or writes it to a file."""
    match form:
        case CostForm.TEXT:
            if output is not None:
                raise MisuseError(f"Text is only printed. Name {output} .csv or .json instead.")
            from lumos.cli.cost_text import print_answer

            print_answer(answer())
        case CostForm.JSON if output is None:
            print_json(answer())
        case CostForm.JSON:
            from lumos.model.json_codec import to_json

            write(to_json(answer(), indent=2).decode() + "\n", output)
        case CostForm.CSV:
            from lumos.cli.cost_csv import as_csv

            write(as_csv(answer()), output)
        case CostForm.HTML:
            if page is None:
                raise MisuseError("This report has no HTML page. Try: lumos cost page")
            write(page(), output)
