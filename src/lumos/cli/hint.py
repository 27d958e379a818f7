"""lumos hint: which files form a dataset, where the automatic grouping is not wanted."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.lines import remark, say
from lumos.cli.names import Names
from lumos.cli.options import (
    CommonOptions,
    common_options,
    print_json,
)

if TYPE_CHECKING:
    from lumos.discovery.hints.effects import DatasetFiles, HintEffect
    from lumos.discovery.hints.service import HintChangeReport, HintReport

_MOST_EFFECTS: Final = 20
_MOST_DATASETS: Final = 10
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
@common_options
def add(
    options: CommonOptions,
    pattern: Annotated[
        list[str],
        typer.Argument(
            metavar="PATTERN...",
            help="Files: a relative or absolute path, or a URL, in quotes. * matches a name, ** "
            "any folders, {key} separates datasets by its values.",
            show_default=False,
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
        bool,
        typer.Option("--split", help="Make each file, or each value of {key}, a dataset."),
    ] = False,
    dry_run: _DryRun = False,
    in_store: Annotated[
        bool,
        typer.Option("--in-store", help="Write to the store even if there is a lumos.yaml."),
    ] = False,
) -> None:
    """Join all matching files into one dataset, split them, or name their dataset.

    The hint is written to lumos.yaml if there is one, otherwise to the store, and takes effect
    with the next scan. The effect on the last scan is shown at once.
    """
    lumos = options.lumos
    report = lumos.hints.add(*pattern, name=name, split=split, in_store=in_store, dry_run=dry_run)
    print_json(report) if options.json else _print_change(report, Names(lumos))


@app.command("list", epilog="Examples:\n\nlumos hint list\n\nlumos hint list --json")
@common_options
def list_(options: CommonOptions) -> None:
    """List all hints in the order in which they apply, and where each is stored.

    The first hint that matches a file decides.
    """
    from lumos.cli.screen import aligned

    report = options.lumos.hints.list()
    if options.json:
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
    for line in aligned(("NO", "PATTERN", "NAME", "ACTION", "STORED IN", "FILES"), rows):
        say(line)
    if not rows:
        say("No hints. Add one with: lumos hint add PATTERN")


@app.command(
    epilog="Examples:\n\nlumos hint remove 2\n\nlumos hint remove 'raw/*_log/**' --dry-run"
)
@common_options
def remove(
    options: CommonOptions,
    hint: Annotated[
        str,
        typer.Argument(
            metavar="NUMBER|PATTERN",
            help="A number from `lumos hint list`, or the pattern.",
            show_default=False,
        ),
    ],
    dry_run: _DryRun = False,
) -> None:
    """Remove a hint from lumos.yaml or the store."""
    lumos = options.lumos
    report = lumos.hints.remove(hint, dry_run=dry_run)
    print_json(report) if options.json else _print_change(report, Names(lumos))


def _where(hint: "HintReport") -> str:
    if hint.kept_in == "store":
        return "store"
    file = (hint.file or "").rpartition("/")[2]
    return file if hint.line is None else f"{file}:{hint.line}"


def _print_change(report: "HintChangeReport", names: Names) -> None:
    from lumos.cli.screen import plural, when
    from lumos.schemas.wording import few

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
        say(f"The effect is unknown before the first scan{root}.")
    else:
        matched = f", {plural(hint.files, 'matching file')}" if hint.files is not None else ""
        say(f"Effect on the scan of {when(report.scanned_at)} UTC{matched}:")
        shown, more = few(report.effects, _MOST_EFFECTS)
        for effect in shown:
            _print_effect(effect, names)
        if more:
            say(f"  ... and {more:,} more changes; --json lists them.")
        if not report.effects:
            say("  no dataset changes")
    for warning in report.warnings:
        remark(names(warning))
    if not report.dry_run:
        say(f"Run `{report.next_command}` to apply it.")


def _print_effect(effect: "HintEffect", names: Names) -> None:
    from lumos.cli.screen import plural

    before, after = len(effect.before), len(effect.after)
    say(f"  {effect.kind}: {plural(before, 'dataset')} -> {plural(after, 'dataset')}")
    for sign, datasets in (("-", effect.before), ("+", effect.after)):
        _print_datasets(sign, datasets, names)


def _print_datasets(sign: str, datasets: "tuple[DatasetFiles, ...]", names: Names) -> None:
    from lumos.cli.screen import plural
    from lumos.schemas.wording import few

    shown, more = few(datasets, _MOST_DATASETS)
    names.learn(each.urn for each in shown)
    for each in shown:
        say(f"    {sign} {names(each.urn)}  {plural(each.files, 'file')}")
    if more:
        say(f"    {sign} ... and {more:,} more datasets; --json lists them.")
