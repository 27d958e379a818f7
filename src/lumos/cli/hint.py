"""lumos hint: overrides of the automatic grouping of files into datasets."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.options import CommonOptions, argument, with_options
from lumos.cli.screen import Table, stdout
from lumos.cli.text import Names, print_line, print_remark
from lumos.rendering.text import few, format_number, format_time, plural

if TYPE_CHECKING:
    from lumos.discovery.hints.effects import HintEffect
    from lumos.discovery.hints.service import HintChangeReport, HintListReport, HintReport

_MAX_EFFECTS: Final = 20
_MAX_DATASETS: Final = 10
app = typer.Typer(
    help="Override the automatic grouping of files into datasets.",
    no_args_is_help=True,
)

_DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show the effect on the last scan, without writing.")
]


@app.command(
    epilog="Examples:\n\nlumos hint add 'raw/*_log/**' --name logs --dry-run\n\n"
    "lumos hint add raw/orders_v1 raw/orders_v2 --name orders\n\n"
    "lumos hint add raw/orders_v1 --name orders\n\n"
    "lumos hint add 'exports/*.csv' --split\n\n"
    "lumos hint add 's3://bucket/tenants/{tenant}/**' --split"
)
@with_options
def add(
    options: CommonOptions,
    pattern: Annotated[
        list[str],
        argument(
            "PATTERN...",
            "Files: a relative or absolute path, or a URL, in quotes. * matches a name, ** "
            "any folders, {key} separates datasets by its values.",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name of the dataset; required for several patterns. Default: from the pattern.",
            show_default=False,
        ),
    ] = None,
    split: Annotated[
        bool, typer.Option("--split", help="Make each file, or each value of {key}, a dataset.")
    ] = False,
    dry_run: _DryRun = False,
    in_store: Annotated[
        bool, typer.Option("--in-store", help="Write to the store even if there is a lumos.yaml.")
    ] = False,
) -> None:
    """Join all matching files into one dataset, split them, or name their dataset.

    The hint is written to lumos.yaml if it exists, otherwise to the store, and takes effect with
    the next scan. The output shows how it would have changed the last scan.
    """
    report = options.lumos.hints.add(
        *pattern, name=name, split=split, in_store=in_store, dry_run=dry_run
    )
    options.print(report, _print_change, options.names)


@app.command("list", epilog="Examples:\n\nlumos hint list\n\nlumos hint list --json")
@with_options
def list_(options: CommonOptions) -> None:
    """List all hints and where they are stored, in the order in which they apply.

    For each file, the first matching hint is used.
    """
    options.print(options.lumos.hints.list(), _print_list)


@app.command(
    epilog="Examples:\n\nlumos hint remove 2\n\nlumos hint remove 'raw/*_log/**' --dry-run"
)
@with_options
def remove(
    options: CommonOptions,
    hint: Annotated[
        str, argument("NUMBER|PATTERN", "A number from `lumos hint list`, or the pattern.")
    ],
    dry_run: _DryRun = False,
) -> None:
    """Remove a hint from lumos.yaml or the store."""
    report = options.lumos.hints.remove(hint, dry_run=dry_run)
    options.print(report, _print_change, options.names)


def _print_list(report: "HintListReport") -> None:
    table = Table(
        "NO", "PATTERN", "NAME", "ACTION", "STORED IN", ">FILES",
        empty="No hints. Add one with: lumos hint add PATTERN",
    )  # fmt: skip
    for each in report.hints:
        table.add(
            str(each.number),
            ", ".join(each.patterns),
            each.name or "-",
            each.action,
            _location_text(each),
            format_number(each.files),
        )
    stdout().print(table)


def _location_text(hint: "HintReport") -> str:
    if hint.kept_in == "store":
        return "store"
    file = (hint.file or "").rpartition("/")[2]
    return file if hint.line is None else f"{file}:{hint.line}"


def _print_change(report: "HintChangeReport", names: Names) -> None:
    hint = report.hint
    name = f" as {hint.name}" if hint.name else ""
    text = f"{hint.action} {', '.join(hint.patterns)}{name}"
    if report.change == "unchanged":
        print_line(f"Nothing to do: {_location_text(hint)} already has hint {hint.number}: {text}")
        return
    outcome = {
        ("added", False): "Added to",
        ("added", True): "Would add to",
        ("removed", False): "Removed from",
        ("removed", True): "Would remove from",
    }[report.change, report.dry_run]
    print_line(f"{outcome} {_location_text(hint)}: {text}")
    if report.scanned_at is None:
        root = f" of {report.root}" if report.root else ""
        print_line(f"The effect is unknown before the first scan{root}.")
    else:
        matched = f", {plural(hint.files, 'matching file')}" if hint.files is not None else ""
        print_line(f"Effect on the scan of {format_time(report.scanned_at)} UTC{matched}:")
        listed, more = few(report.effects, _MAX_EFFECTS)
        for effect in listed:
            _print_effect(effect, names)
        if more:
            print_line(f"  ... and {more:,} more changes; --json lists them.")
        if not report.effects:
            print_line("  no dataset changes")
    for warning in report.warnings:
        print_remark(names(warning))
    if not report.dry_run:
        print_line(f"Run `{report.next_command}` to apply it.")


def _print_effect(effect: "HintEffect", names: Names) -> None:
    before, after = len(effect.before), len(effect.after)
    print_line(f"  {effect.kind}: {plural(before, 'dataset')} -> {plural(after, 'dataset')}")
    for sign, datasets in (("-", effect.before), ("+", effect.after)):
        listed, more = few(datasets, _MAX_DATASETS)
        names.look_up(each.urn for each in listed)
        for each in listed:
            print_line(f"    {sign} {names(each.urn)}  {plural(each.files, 'file')}")
        if more:
            print_line(f"    {sign} ... and {more:,} more datasets; --json lists them.")
