"""lumos cost: reports, savings, records and model files."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

import typer

from lumos.cli import cost_inputs
from lumos.cli.options import (
    AsJson,
    CommonOptions,
    ConfigFile,
    DatasetOrJob,
    JsonOptions,
    OptionalDataset,
    OutputFile,
    SharedOptions,
    StorePath,
    accept_old_options,
    argument,
    choose_format,
    limit_option,
    print_json,
    with_options,
    write,
)
from lumos.errors import MisuseError

if TYPE_CHECKING:
    from lumos.cost.reports import CostReportHeader
    from lumos.cost.service import CostOptions

_FORMATS: Final = {".json": "json", ".csv": "csv", ".html": "html", ".htm": "html"}
_WHAT_IF_PANEL: Final = "What if"

PeriodOption = Annotated[
    str | None,
    typer.Option(
        metavar="PERIOD",
        help="2024-01, 2024-01-15 or 2024-01-01..2024-01-31. Default: the last 30 days, treated "
        "as one month.",
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
        rich_help_panel=_WHAT_IF_PANEL,
    ),
]
MoveOption = Annotated[
    list[str] | None,
    typer.Option(
        "--move",
        metavar="DATASET=CLASS",
        help="Assume that a dataset is in another storage class, such as events=glacier.",
        rich_help_panel=_WHAT_IF_PANEL,
    ),
]
ScheduleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--schedule",
        metavar="JOB=SCHEDULE",
        help="Assume that a job runs hourly, daily, weekly, monthly, never or 0.5x as often.",
        rich_help_panel=_WHAT_IF_PANEL,
    ),
]
_FORMAT_OPTION: Final = typer.Option(
    "--format", help="Default: text, or by the file extension of --output."
)
AsCsv = Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")]

app = typer.Typer(
    help="Show what datasets cost including everything upstream, and what removing them saves.",
    no_args_is_help=True,
)


class _CostInputs(SharedOptions):
    """The options that affect the computed costs: period, method and what-if assumptions."""

    period: str | None = None
    method: str | None = None
    price: list[str] | None = None
    move: list[str] | None = None
    schedule: list[str] | None = None

    @property
    def inputs(self) -> "CostOptions":
        """The values of the options as arguments of the SDK."""
        moves = (_pair(each, "--move", "events=glacier") for each in self.move or ())
        schedules = (_pair(each, "--schedule", "clean=weekly") for each in self.schedule or ())
        return {
            "period": self.period,
            "method": self.method,
            "prices": dict(map(_price, self.price or ())),
            "moves": dict(moves),
            "schedules": dict(schedules),
        }


@dataclass(kw_only=True)
class CostReportOptions(_CostInputs):
    """The options of reports."""

    period: PeriodOption = None
    method: MethodOption = None
    price: PriceOption = None
    move: MoveOption = None
    schedule: ScheduleOption = None
    format: Annotated[Literal["text", "json", "csv"] | None, _FORMAT_OPTION] = None
    output: OutputFile = None
    config: ConfigFile = None
    store: StorePath = None
    json: AsJson = False
    csv: AsCsv = False

    def emit(
        self,
        compute: "Callable[..., CostReportHeader]",
        *args: Any,
        page: Callable[[], str] | None = None,
        **kwargs: Any,
    ) -> None:
        """Compute a report and print it or write it to a file, in the requested format."""
        format = choose_format(
            self.format, self.output, _FORMATS, default="text", json=self.json, csv=self.csv
        )
        if format == "html" and page is None:
            raise MisuseError("This report has no HTML page. Try: lumos cost page")
        if format == "text" and self.output is not None:
            raise MisuseError(
                f"Text can only be printed. Use the extension .csv or .json for {self.output}."
            )
        if format == "html":
            assert page is not None
            write(page(), self.output)
            return
        report = compute(*args, **kwargs, **self.inputs)
        if format == "text":
            from lumos.cli.cost_text import print_report

            print_report(report)
        elif format == "csv":
            from lumos.cli.cost_csv import to_csv

            write(to_csv(report), self.output)
        elif self.output is None:
            print_json(report)
        else:
            from lumos.model.json_codec import to_json

            write(to_json(report, indent=2).decode() + "\n", self.output)


@dataclass(kw_only=True)
class PagedReportOptions(CostReportOptions):
    """The options of reports that also have an HTML page."""

    format: Annotated[Literal["text", "json", "csv", "html"] | None, _FORMAT_OPTION] = None  # type: ignore[assignment]


@dataclass(kw_only=True)
class SavingsOptions(CostReportOptions):
    """The options of reports on savings, which do not depend on the attribution method."""

    method: ClassVar[None] = None  # type: ignore[misc]


@dataclass(kw_only=True)
class CostPageOptions(_CostInputs):
    """The options of the HTML page."""

    output: OutputFile = Path("cost.html")
    period: PeriodOption = None
    method: MethodOption = None
    price: PriceOption = None
    move: MoveOption = None
    schedule: ScheduleOption = None
    config: ConfigFile = None
    store: StorePath = None


def _pair(text: str, option: str, example: str) -> tuple[str, str]:
    # Split at the last `=`, since URNs may contain it, but values never do.
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


@app.command(
    epilog="Examples:\n\n"
    "lumos cost report ml/predictions --period 2024-01\n\n"
    "lumos cost report orders -o orders.html\n\n"
    "lumos cost report orders --move raw/events=glacier --schedule clean_events=weekly"
)
@with_options
def report(options: PagedReportOptions, dataset: DatasetOrJob) -> None:
    """Show the own and upstream cost of a dataset, by cost type, team and upstream dataset."""
    costs = options.lumos.cost
    options.emit(costs.report, dataset, page=lambda: costs.page(dataset, **options.inputs))


@app.command(
    epilog="Examples:\n\n"
    "lumos cost top -n 10\n\n"
    "lumos cost top --by total --period 2024-01 --csv\n\n"
    "lumos cost top --price s3.standard=0.021"
)
@with_options
def top(
    options: PagedReportOptions,
    limit: Annotated[int, limit_option("Maximum number of rows.", "-n", maximum=100_000)] = 20,
    by: Annotated[
        Literal["retained", "total", "own"], typer.Option("--by", help="The amount to rank by.")
    ] = "retained",
) -> None:
    """List the most expensive datasets."""
    costs = options.lumos.cost
    options.emit(costs.top, limit, ranked_by=by, page=lambda: costs.page(**options.inputs))


@app.command("by", epilog="Examples:\n\nlumos cost by team\n\nlumos cost by tag --json")
@with_options
def by_group(
    options: CostReportOptions,
    grouping: Annotated[
        Literal["team", "domain", "platform", "tag"],
        argument("GROUP", "team, domain, platform or tag."),
    ],
) -> None:
    """Sum up the own and retained cost of teams, domains, platforms or tags."""
    options.emit(options.lumos.cost.by, grouping)


@app.command(epilog="Examples:\n\nlumos cost trend\n\nlumos cost trend ml/predictions --csv")
@with_options
def trend(options: CostReportOptions, dataset: OptionalDataset = None) -> None:
    """Show the recorded costs of earlier periods next to the current ones."""
    options.emit(options.lumos.cost.trend, dataset)


@app.command(epilog="Example: lumos cost explain ml/predictions --limit 50")
@with_options
def explain(
    options: CostReportOptions,
    dataset: DatasetOrJob,
    limit: Annotated[int, limit_option("Maximum number of paths.", maximum=100_000)] = 20,
) -> None:
    """Show the lineage paths and shares behind a total cost, the largest first."""
    options.emit(options.lumos.cost.explain, dataset, limit=limit)


@app.command(
    epilog="Examples:\n\nlumos cost record\n\nlumos cost record --period 2024-01 --no-aspects"
)
@with_options
def record(
    options: CommonOptions,
    period: Annotated[
        str | None,
        typer.Option(metavar="PERIOD", help="Such as 2024-01. Default: the last full month."),
    ] = None,
    aspects: Annotated[
        bool, typer.Option(help="Also store costs with datasets, so that snapshots include them.")
    ] = True,
) -> None:
    """Record the costs of a period, for trends and snapshots."""
    from lumos.cli.cost_text import print_report

    options.print(options.lumos.cost.record(period, aspects=aspects), print_report)


@app.command(
    epilog="Examples:\n\nlumos cost page -o cost.html\n\nlumos cost page ml/predictions -o ml.html"
)
@with_options
def page(options: CostPageOptions, dataset: OptionalDataset = None) -> None:
    """Write a self-contained HTML page: cost flow, most expensive datasets, teams and trend."""
    write(options.lumos.cost.page(dataset, **options.inputs), options.output)


@app.command(
    epilog="Examples:\n\n"
    "lumos cost savings marts/legacy_report\n\n"
    "lumos cost savings --feature recommendations\n\n"
    "lumos cost savings --tag deprecated --json"
)
@with_options
def savings(
    options: SavingsOptions,
    datasets: Annotated[
        list[str] | None, argument("[DATASET]...", "Datasets or jobs by URN, name or end of path.")
    ] = None,
    feature: Annotated[
        str | None, typer.Option(metavar="NAME", help="All datasets of a configured feature.")
    ] = None,
    tag: Annotated[str | None, typer.Option(metavar="TAG", help="All datasets with a tag.")] = None,
) -> None:
    """Show what removing datasets saves, which upstream cost remains, and what breaks."""
    options.emit(options.lumos.cost.savings, *(datasets or ()), feature=feature, tag=tag)


@app.command(epilog="Example: lumos cost retire --limit 10", cls=accept_old_options(top="--limit"))
@with_options
def retire(
    options: SavingsOptions,
    limit: Annotated[int, limit_option("Maximum number of datasets.", "-n", maximum=1000)] = 10,
) -> None:
    """Show unused datasets, and which datasets to retire together for the largest savings."""
    options.emit(options.lumos.cost.retire, limit)


@app.command(
    epilog="Examples:\n\nlumos cost model costs.yaml\n\nlumos cost model costs.json --json"
)
@with_options
def model(
    options: JsonOptions,
    file: Annotated[
        Path,
        argument(
            "FILE",
            "JSON or YAML: 'datasets' with 'urn' and 'costs' by type, 'edges' with 'from' "
            "and 'to', each with a 'share', with 'shares' by type or with the 'bytes' read, and "
            "a 'method'.",
        ),
    ],
) -> None:
    """Compute the costs in one model file; no store is needed and nothing is recorded.

    Total cost is own cost plus attributed upstream cost. Retained costs add up to the total spend.
    The savings of a dataset are those from removing only this dataset.
    """
    from lumos.cost.model_file.computation import compute

    computed = compute(file)
    if options.json and computed.is_large:
        for part in computed.json():
            sys.stdout.buffer.write(part)
        sys.stdout.buffer.write(b"\n")
    else:
        from lumos.cli.cost_text import print_model

        options.print(computed.report(), print_model)


app.add_typer(cost_inputs.app)
