"""lumos hint: which files form a dataset, where Lumos should not find out by itself."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.lines import say
from lumos.cli.options import AsJson, ConfigFile, StorePath, lumos_of, print_json

if TYPE_CHECKING:
    from lumos.engine.hint_effects import DatasetFiles, HintEffect
    from lumos.engine.hints import HintChangeReport, HintReport

_MOST_EFFECTS: Final = 20
_MOST_DATASETS: Final = 10
app = typer.Typer(
    help="Join, split and name datasets where the automatic grouping is not what you want.",
    no_args_is_help=True,
)

_DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show the effect on the last scan, and write nothing.")
]


@app.command(
    epilog="Examples:\n\nlumos hint add 'raw/*_log/**' --name logs --dry-run\n\n"
    "lumos hint add raw/orders_v1 raw/orders_v2 --name orders\n\n"
    "lumos hint add raw/orders_v1 --name orders\n\n"
    "lumos hint add 'exports/*.csv' --split\n\n"
    "lumos hint add 's3://bucket/tenants/{tenant}/**' --split"
)
def add(
    pattern: Annotated[
        list[str],
        typer.Argument(
            metavar="PATTERN...",
            help="Files: a path from the current folder, a whole path or an address. * is any "
            "name, ** any folders, {key} separates datasets by its values. Put it in quotes.",
            show_default=False,
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The dataset's name; needed for several patterns. Default: after the pattern.",
            show_default=False,
        ),
    ] = None,
    split: Annotated[
        bool,
        typer.Option("--split", help="Every file, or every value of {key}, is a dataset."),
    ] = False,
    dry_run: _DryRun = False,
    in_store: Annotated[
        bool,
        typer.Option(
            "--in-store", help="Keep the hint in the store even if there is a lumos.yaml."
        ),
    ] = False,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Join all files that match into one dataset, split them, or name their dataset.

    The hint is written to lumos.yaml if there is one, otherwise to the store. It takes effect with
    the next scan; the effect on the last scan is shown at once, without Spark.
    """
    report = lumos_of(config, store).hints.add(
        *pattern, name=name, split=split, in_store=in_store, dry_run=dry_run
    )
    print_json(report) if json else _print_change(report)


@app.command("list", epilog="Examples:\n\nlumos hint list\n\nlumos hint list --json")
def list_(config: ConfigFile = None, store: StorePath = None, json: AsJson = False) -> None:
    """List all hints in the order in which they are tried, and where each is kept.

    The first hint that matches a file decides.
    """
    from lumos.cli.screen import aligned

    report = lumos_of(config, store).hints.list()
    if json:
        print_json(report)
        return
    rows = [
        (
            str(each.number),
            ", ".join(each.patterns),
            each.name or "-",
            each.action,
            _where(each),
            "?" if each.files is None else f"{each.files:,}",
        )
        for each in report.hints
    ]
    for line in aligned(("NO", "PATTERN", "NAME", "ACTION", "KEPT IN", "FILES"), rows):
        say(line)
    if not rows:
        say("No hints. Add one with: lumos hint add PATTERN")


@app.command(
    epilog="Examples:\n\nlumos hint remove 2\n\nlumos hint remove 'raw/*_log/**' --dry-run"
)
def remove(
    hint: Annotated[
        str,
        typer.Argument(
            metavar="NUMBER|PATTERN",
            help="A number from `lumos hint list`, or the pattern.",
            show_default=False,
        ),
    ],
    dry_run: _DryRun = False,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Remove a hint from lumos.yaml or the store."""
    report = lumos_of(config, store).hints.remove(hint, dry_run=dry_run)
    print_json(report) if json else _print_change(report)


def _where(hint: "HintReport") -> str:
    if hint.kept_in == "store":
        return "store"
    file = (hint.file or "").rpartition("/")[2]
    return file if hint.line is None else f"{file}:{hint.line}"


def _print_change(report: "HintChangeReport") -> None:
    from lumos.cli.screen import plural, when

    hint = report.hint
    name = f" as {hint.name}" if hint.name else ""
    text = f"{hint.action} {', '.join(hint.patterns)}{name}"
    if report.change == "unchanged":
        say(f"Nothing to do: {_where(hint)} already has hint {hint.number}: {text}")
        return
    verb = {
        ("added", False): "Added to",
        ("added", True): "Would add to",
        ("removed", False): "Removed from",
        ("removed", True): "Would remove from",
    }[report.change, report.dry_run]
    say(f"{verb} {_where(hint)}: {text}")
    if report.scanned_at is None:
        root = f" of {report.root}" if report.root else ""
        say(f"There is no scan{root} yet, so the effect is not known.")
    else:
        matched = f", {plural(hint.files, 'matching file')}" if hint.files is not None else ""
        say(f"Effect on the scan of {when(report.scanned_at)} UTC{matched}:")
        for effect in report.effects[:_MOST_EFFECTS]:
            _print_effect(effect)
        if (more := len(report.effects) - _MOST_EFFECTS) > 0:
            say(f"  ... and {plural(more, 'more change')}; --json lists them.")
        if not report.effects:
            say("  no dataset changes")
    for warning in report.warnings:
        say(f"Warning: {warning}", err=True)
    if not report.dry_run:
        say(f"Run `{report.next_command}` to apply it.")


def _print_effect(effect: "HintEffect") -> None:
    from lumos.cli.screen import plural

    before, after = len(effect.before), len(effect.after)
    say(f"  {effect.kind}: {plural(before, 'dataset')} -> {plural(after, 'dataset')}")
    for sign, datasets in (("-", effect.before), ("+", effect.after)):
        _print_datasets(sign, datasets)


def _print_datasets(sign: str, datasets: "tuple[DatasetFiles, ...]") -> None:
    from lumos.cli.screen import plural

    for each in datasets[:_MOST_DATASETS]:
        say(f"    {sign} {each.urn}  {plural(each.files, 'file')}")
    if (more := len(datasets) - _MOST_DATASETS) > 0:
        say(f"    {sign} ... and {plural(more, 'more dataset')}; --json lists them.")
