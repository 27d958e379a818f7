"""lumos enrich: annotations of datasets, from a file or inferred from names."""

from pathlib import Path
from typing import Annotated

import typer

from lumos.cli.options import (
    CommonOptions,
    DryRun,
    common_options,
    earlier_options,
)
from lumos.cli.words import print_words
from lumos.errors import MisuseError


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(
        epilog="Examples:\n\nlumos enrich enrich.yaml --dry-run\n\nlumos enrich --infer",
        cls=earlier_options(first=("--file", "-f")),
    )(enrich)


@common_options
def enrich(
    options: CommonOptions,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="Descriptions, owners, tags, terms and properties in YAML. Annotations that an "
            "earlier version of the file had and this one lacks are retracted.",
            show_default=False,
        ),
    ] = None,
    infer: Annotated[
        bool,
        typer.Option(
            "--infer",
            help="Annotate what has no annotations, by glossary_mappings and path_patterns of the "
            "configuration.",
        ),
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Apply the annotations in a file to datasets, or infer annotations from names."""
    if (file is None) == (not infer):
        raise MisuseError("Give either a file or --infer: lumos enrich FILE")
    lumos = options.lumos
    if file is None:
        report = lumos.annotations.infer(dry_run=dry_run)
    else:
        report = lumos.annotations.enrich(file, dry_run=dry_run)
    options.print(report, print_words)
