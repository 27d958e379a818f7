"""lumos enrich: annotations of datasets, from a file or inferred from names."""

from pathlib import Path
from typing import Annotated

import typer

from lumos.cli.annotations import print_changed
from lumos.cli.options import CommonOptions, DryRun, accept_old_options, argument, with_options
from lumos.errors import MisuseError

app = typer.Typer()


@app.command(
    epilog="Examples:\n\nlumos enrich enrich.yaml --dry-run\n\nlumos enrich --infer",
    cls=accept_old_options(first=("--file", "-f")),
)
@with_options
def enrich(
    options: CommonOptions,
    file: Annotated[
        Path | None,
        argument(
            "[FILE]",
            "Descriptions, owners, tags, terms and properties in YAML. Annotations that were "
            "removed from the file since the last run are retracted.",
        ),
    ] = None,
    infer: Annotated[
        bool,
        typer.Option(
            "--infer",
            help="Infer missing descriptions and terms from names, using glossary_mappings and "
            "path_patterns of the configuration.",
        ),
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Apply the annotations in a file to datasets, or infer annotations from names."""
    if (file is None) == (not infer):
        raise MisuseError("Give either a file or --infer: lumos enrich FILE")
    lumos = options.lumos
    annotations = lumos.annotations
    report = (
        annotations.infer(dry_run=dry_run)
        if file is None
        else annotations.enrich(file, dry_run=dry_run)
    )
    options.print(report, print_changed, options.names)
