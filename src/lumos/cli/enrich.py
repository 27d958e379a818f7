"""lumos enrich: what people say of datasets, from a file or inferred from names."""

from pathlib import Path
from typing import Annotated

import typer

from lumos.cli.options import AsJson, ConfigFile, StorePath, lumos_of, print_json
from lumos.cli.words import DryRun, print_words
from lumos.errors import MisuseError


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(
        epilog="Examples:\n\nlumos enrich --file enrich.yaml --dry-run\n\nlumos enrich --infer"
    )(enrich)


def enrich(
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            help="Descriptions, owners, tags, terms and properties in YAML. What an earlier "
            "version of it said and this one does not is taken back.",
        ),
    ] = None,
    infer: Annotated[
        bool,
        typer.Option(
            "--infer",
            help="Describe what nobody described, by glossary_mappings and path_patterns of the "
            "configuration.",
        ),
    ] = False,
    dry_run: DryRun = False,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Bring datasets to what a file under review says of them, or infer it from names."""
    if (file is None) == (not infer):
        raise MisuseError("Give either --file FILE or --infer.")
    people = lumos_of(config, store).people
    report = people.infer(dry_run=dry_run) if file is None else people.enrich(file, dry_run=dry_run)
    print_json(report) if json else print_words(report)
