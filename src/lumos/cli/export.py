"""lumos export"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from lumos.cli.options import AsJson, ConfigFile, StorePath, local_path, lumos_of, print_json

if TYPE_CHECKING:
    from lumos.engine.snapshots.reports import ExportReport

_OTHER_KINDS: Final = {
    "glossary": ("term", "terms"),
    "users": ("user", "users"),
    "groups": ("group", "groups"),
    "jobs": ("job", "jobs"),
    "others": ("other entity", "other entities"),
}


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(
        epilog="Examples:\n\n"
        "lumos export --output backup.json\n\n"
        "lumos export --platform datahub-file:estate.json --output backup.jsonl.zst\n\n"
        "lumos export --output backups/ --dataset 'sales/*' --no-include-cost\n\n"
        "lumos export --output today.jsonl --since yesterday.jsonl"
    )(export)


def export(
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="A name that ends in .json, .yaml, .jsonl, .jsonl.zst or .parquet (a folder), or "
            "a folder, where the snapshot is called after the time.",
            show_default=False,
            callback=local_path,
        ),
    ],
    platform: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="local, KIND:ADDRESS such as datahub-file:estate.json, or a configured platform.",
        ),
    ] = "local",
    dataset: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Only these: orders, 'sales/*', a URN. Repeatable."),
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="Only with this tag. Repeatable.")
    ] = None,
    owner: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only of this owner. Repeatable.")
    ] = None,
    since: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Only what changed since this snapshot."),
    ] = None,
    include_cost: Annotated[bool, typer.Option(help="What datasets cost.")] = True,
    include_quality: Annotated[bool, typer.Option(help="What was measured of quality.")] = True,
    include_statistics: Annotated[bool, typer.Option(help="Rows, bytes, nulls.")] = True,
    include_ranges: Annotated[
        bool,
        typer.Option(
            "--include-ranges",
            help="Also the lowest and highest values of columns, which are data.",
        ),
    ] = False,
    include_values: Annotated[
        bool,
        typer.Option(
            "--include-values",
            help="Also values that profiles tell of: ranges, quantiles, frequent ones.",
        ),
    ] = False,
    format: Annotated[
        Literal["yaml", "json", "jsonl", "jsonl.zst", "parquet"] | None,
        typer.Option(help="How a snapshot in a folder is written.", show_default="yaml"),
    ] = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Write all that is known of datasets into one portable file.

    The same state gives the same bytes, but for the time of the export.
    """
    from lumos.cli.screen import steps

    lumos = lumos_of(config, store)
    with steps() as announce:
        report = lumos.snapshot.export(
            output,
            platform=platform,
            patterns=dataset or (),
            tags=tag or (),
            owners=owner or (),
            since=since,
            include_cost=include_cost,
            include_quality=include_quality,
            include_statistics=include_statistics,
            include_ranges=include_ranges,
            include_values=include_values,
            ending=f".{format}" if format else None,
            announce=announce,
        )
    if json:
        print_json(report)
    else:
        _show(report)


def _show(report: "ExportReport") -> None:
    from lumos.cli.screen import plural, size, stdout

    console = stdout()
    counts = report.counts
    console.print(f"[ok] {plural(counts.datasets, 'dataset')}")
    console.print(f"[ok] {plural(counts.lineage_edges, 'lineage edge')}")
    for name, words in _OTHER_KINDS.items():
        if count := getattr(counts, name):
            console.print(f"[ok] {count:,} {words[count != 1]}")
    if counts.deleted:
        console.print(f"{plural(counts.deleted, 'dataset')} of them gone, with their history.")
    if report.omitted:
        console.print(f"Left out: {', '.join(report.omitted)}.")
    if report.lineage_left_out:
        links = plural(report.lineage_left_out, "lineage edge")
        console.print(
            f"Left out: {links} from or to tables that the store has no dataset of. Scan the "
            "tables and ingest the lineage again, then export."
        )
    console.print(f"{report.file}  {size(report.size_bytes)}  hash {report.hash[:16]}")
