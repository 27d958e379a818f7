"""Options that several commands share, and how results are printed."""

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeVar

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lumos.engine import Lumos

DEBUG: Final = "LUMOS_DEBUG"
QUIET: Final = "LUMOS_QUIET"
# A path has lost one of the slashes.
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
# What commands leave with where somebody asked for it.
BREAKING: Final = 10
UNDETERMINED: Final = 11

AnyPath = TypeVar("AnyPath", str, Path, Path | None)


def local_path(path: AnyPath) -> AnyPath:
    """Refuses a URL where a path is expected: it would be taken for folders, password and all."""
    if path is not None and _URL.match(str(path)):
        raise typer.BadParameter(f"'{path}' is a URL. Give a path on this machine.")
    return path


def _store_file(path: Path | None) -> Path | None:
    try:
        return local_path(path)
    except typer.BadParameter as problem:
        problem.message += " A PostgreSQL store is set in lumos.yaml: storage.connection_string"
        raise


ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="The configuration. Default: $LUMOS_CONFIG, else lumos.yaml here, else defaults.",
    ),
]
StorePath = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="FILE",
        help="The store's file. Default: .lumos/lumos.db here.",
        callback=_store_file,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
# A file with a proposed schema.
FileKind = Annotated[
    Literal["lumos", "json-schema", "avro", "sql", "dbt", "parquet"] | None,
    typer.Option("--as", help="What the file is, where it does not look like it."),
]
FileModel = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="The table or model in the file, if not called like the dataset."
    ),
]


def lumos_of(config: Path | None, store: Path | None = None) -> "Lumos":
    """Lumos as the shared options want it."""
    from lumos.engine import Lumos

    overrides = {} if store is None else {"storage.path": str(store.absolute())}
    return Lumos(config, overrides=overrides)


def start_spark_ahead(paths: "Sequence[str]", config: Path | None, *, short: bool = True) -> None:
    """Starts Spark beside the import of the engine where a scan of these paths will need it."""
    from lumos.config import find_file, load
    from lumos.config.sources import FileStore

    file = find_file(Path.cwd(), os.environ) if config is None else config
    settings = load(file, environment=os.environ)
    if paths:
        will_scan = any("://" not in path and os.path.exists(path) for path in paths)
    else:
        will_scan = any(isinstance(source, FileStore) for source in settings.sources)
    if will_scan:
        from lumos.pipeline.session import start_ahead

        start_ahead(master=settings.spark.master, settings=settings.spark.properties(), short=short)


def stop_printing() -> None:
    """For when the reader of our output went away (`lumos list | head`): nothing is wrong."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(report: object) -> None:
    """One JSON object on stdout, indented for a terminal."""
    from lumos.model.codec import to_json

    data = to_json(report, indent=2 if sys.stdout.isatty() else None)
    sys.stdout.buffer.write(data + b"\n")
    sys.stdout.flush()
