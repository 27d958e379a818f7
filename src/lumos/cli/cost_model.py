"""lumos cost model"""

import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.options import AsJson, print_json

if TYPE_CHECKING:
    from lumos.cost.model_file.computation import ModelReport


def add_to(app: typer.Typer) -> None:
    """Adds the command to the group."""
    app.command(
        epilog="Examples:\n\nlumos cost model estate.yaml\n\nlumos cost model estate.json --json"
    )(model)


def model(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="JSON or YAML: 'datasets' with 'urn' and 'costs' by type, 'edges' with 'from' "
            "and 'to', each with a 'share', with 'shares' by type or with the 'bytes' read, and "
            "a 'method'.",
            show_default=False,
        ),
    ],
    json: AsJson = False,
) -> None:
    """Compute the costs in one model file; no store is needed and nothing is recorded.

    Total cost is own cost plus attributed upstream cost. Retained costs add up to the total spend.
    Savings are what removing that dataset alone saves.
    """
    from lumos.cost.model_file.computation import compute

    computed = compute(file)
    if json and computed.is_large:
        for part in computed.json():
            sys.stdout.buffer.write(part)
        sys.stdout.buffer.write(b"\n")
    elif json:
        print_json(computed.report())
    else:
        _show(computed.report())


def _show(report: "ModelReport") -> None:
    from lumos.cli.screen import plural, stderr, stdout, table

    for remark in report.remarks:
        stderr().print(f"remark  {remark}")
    console = stdout()
    built = table(
        "DATASET", "OWN", "UPSTREAM", "TOTAL", "RETAINED", "SAVINGS",
        right=("OWN", "UPSTREAM", "TOTAL", "RETAINED", "SAVINGS"),
    )  # fmt: skip
    for each in report.datasets:
        figures = (each.direct, each.attributed, each.total, each.retained, each.savings)
        built.add_row(each.urn, *map(_shown, figures))
    console.print(built)
    for component in report.components:
        names = ", ".join(component.urns[:3]) + (", ..." if len(component.urns) > 3 else "")
        kept = ", which no cost leaves" if component.closed else ""
        console.print(
            f"Lineage cycle of {plural(len(component.urns), 'dataset')} ({names}){kept}: total "
            f"cost {_shown(component.total)}."
        )
    totals = report.totals
    apart = {
        "unallocated": totals.unallocated, "idle": totals.idle, "shared": totals.shared,
        "adjustment": totals.adjustment,
    }  # fmt: skip
    parts = [f"{name} {_shown(value)}" for name, value in apart.items() if value]
    rest = "".join(f", {part}" for part in parts)
    console.print(f"Total spend {_shown(totals.spent)}: retained {_shown(totals.retained)}{rest}.")
    if totals.assumed:
        from lumos.cost.wording import estimate_text

        share = f"{float(totals.assumed / totals.spent):.0%}" if totals.spent else "0%"
        console.print(estimate_text(_shown(totals.assumed), share), style="yellow")


def _shown(amount: Decimal) -> str:
    return f"{amount:,}"
