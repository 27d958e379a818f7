"""lumos export"""

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from lumos.cli.options import (
    STDOUT,
    CommonOptions,
    Platform,
    argument,
    local_path,
    output_option,
    with_options,
)
from lumos.cli.screen import print_status, stdout, steps
from lumos.cli.text import print_remark
from lumos.errors import MisuseError
from lumos.rendering.text import format_size, plural

if TYPE_CHECKING:
    from lumos.snapshots.reports import SnapshotExportReport

_OTHER_KINDS: Final = {
    "glossary": ("term", "terms"),
    "users": ("user", "users"),
    "groups": ("group", "groups"),
    "jobs": ("job", "jobs"),
    "others": ("other entity", "other entities"),
}


app = typer.Typer()


@app.command(
    epilog="Examples:\n\n"
    "lumos export backup.json\n\n"
    "lumos export backup.jsonl.zst --platform datahub-file:metadata.json\n\n"
    "lumos export -o backups/ --dataset 'sales/*' --no-include-cost\n\n"
    "lumos export today.jsonl --since yesterday.jsonl\n\n"
    "lumos export -o - --format jsonl | head -1"
)
@with_options
def export(
    options: CommonOptions,
    file: Annotated[
        str | None,
        argument(
            "[FILE]",
            "A file ending in .json, .yaml, .jsonl, .jsonl.zst or .parquet (a folder), or a "
            "folder, in which the file name contains the time.",
            callback=local_path,
        ),
    ] = None,
    output: Annotated[
        str | None,
        output_option(
            "The same as FILE; - writes to stdout.",
            show_default=False,
            callback=local_path,
        ),
    ] = None,
    platform: Platform = "local",
    dataset: Annotated[
        list[str] | None,
        typer.Option(metavar="DATASET", help="Only these: orders, 'sales/*'. Repeatable."),
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="Only with this tag. Repeatable.")
    ] = None,
    owner: Annotated[
        list[str] | None, typer.Option(metavar="OWNER", help="Only of this owner. Repeatable.")
    ] = None,
    since: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Only what changed since this snapshot.")
    ] = None,
    no_cost: Annotated[bool, typer.Option("--no-include-cost", help="Leave out costs.")] = False,
    no_quality: Annotated[
        bool, typer.Option("--no-include-quality", help="Leave out quality and profiles.")
    ] = False,
    no_statistics: Annotated[
        bool, typer.Option("--no-include-statistics", help="Leave out rows, bytes and nulls.")
    ] = False,
    include_cost: Annotated[bool, typer.Option("--include-cost", hidden=True)] = False,
    include_quality: Annotated[bool, typer.Option("--include-quality", hidden=True)] = False,
    include_statistics: Annotated[bool, typer.Option("--include-statistics", hidden=True)] = False,
    include_ranges: Annotated[
        bool,
        typer.Option(
            "--include-ranges",
            help="Also the lowest and highest value of each column.",
        ),
    ] = False,
    include_values: Annotated[
        bool,
        typer.Option(
            "--include-values",
            help="Also the values in profiles: ranges, quantiles, frequent values.",
        ),
    ] = False,
    format: Annotated[
        Literal["yaml", "json", "jsonl", "jsonl.zst", "parquet"] | None,
        typer.Option(
            metavar="FORMAT",
            help="Format of a snapshot in a folder or on stdout: yaml, json, jsonl, jsonl.zst or "
            "parquet. Default: yaml in a folder, json on stdout.",
        ),
    ] = None,
) -> None:
    """Write all metadata into one portable file.

    Two exports of the same metadata are identical, except for the time of the export.
    """
    if (file is None) == (output is None):
        raise MisuseError("Name one file to write: lumos export FILE")
    target = file or output or ""
    with TemporaryDirectory(prefix="lumos-") as folder, steps() as progress:
        if to_stdout := target == STDOUT:
            target = f"{folder}/snapshot.{_stdout_extension(format)}"
        report = options.lumos.snapshot.export(
            target,
            platform=platform,
            patterns=dataset or (),
            tags=tag or (),
            owners=owner or (),
            since=since,
            include_cost=include_cost or not no_cost,
            include_quality=include_quality or not no_quality,
            include_statistics=include_statistics or not no_statistics,
            include_ranges=include_ranges,
            include_values=include_values,
            ending=f".{format}" if format else None,
            progress=progress,
        )
        if to_stdout:
            with open(target, "rb") as snapshot:
                shutil.copyfileobj(snapshot, sys.stdout.buffer)
            sys.stdout.buffer.flush()
            return
    options.print(report, _print_report)
    if (dataset or tag or owner) and not report.counts.datasets:
        command = "owner list" if owner else "tag list" if tag else "list"
        print_remark(f"no dataset matches the selection. See what there is with: lumos {command}")


def _stdout_extension(format: str | None) -> str:
    """The file extension for a snapshot that is written to stdout."""
    if format == "parquet":
        raise MisuseError("A Parquet snapshot is a folder. Name one: lumos export FOLDER.parquet")
    return format or "json"


def _print_report(report: "SnapshotExportReport") -> None:
    console = stdout()
    counts = report.counts
    console.print(f"[ok] {plural(counts.live, 'dataset')}")
    if counts.deleted:
        console.print(f"[ok] {plural(counts.deleted, 'deleted dataset')}, with history")
    if report.lineage_left_out:
        all_edges = plural(counts.lineage_edges + report.lineage_left_out, "lineage edge")
        print_status(console, "warn", f"{counts.lineage_edges:,} of {all_edges}")
    else:
        console.print(f"[ok] {plural(counts.lineage_edges, 'lineage edge')}")
    for name, nouns in _OTHER_KINDS.items():
        if count := getattr(counts, name):
            console.print(f"[ok] {plural(count, *nouns)}")
    if report.omitted:
        console.print(f"Left out: {', '.join(report.omitted)}.")
    if report.lineage_left_out:
        edges = plural(report.lineage_left_out, "lineage edge")
        console.print(
            f"Left out: {edges} from or to tables that only SQL mentions. Scan these tables "
            "and ingest the lineage again, then export."
        )
    console.print(f"{report.file}  {format_size(report.size_bytes)}  hash {report.hash[:16]}")
