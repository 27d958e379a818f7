"""The `lumos` command."""

import errno
import os
import sys
import traceback
from typing import Annotated

import typer

from lumos import __version__
from lumos.cli import config, datasets, db, ingest, init, search
from lumos.cli.options import DEBUG
from lumos.errors import FAILED, LumosError

app = typer.Typer(
    name="lumos",
    help="Finds every dataset in storage, tracks every schema change and keeps any catalog true.",
    epilog="Start with: lumos ingest PATH",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
ingest.add_to(app)
datasets.add_to(app)
search.add_to(app)
init.add_to(app)
app.add_typer(config.app, name="config")
app.add_typer(db.app, name="db")


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"lumos {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[  # noqa: ARG001 - its callback does the work
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", envvar=DEBUG, help="Show a traceback when something fails.")
    ] = False,
) -> None:
    # Errors are shown by `main`, which only the environment reaches.
    if debug:
        os.environ[DEBUG] = "1"


def main() -> None:
    """Runs the command; failures become one sentence on stderr and the right exit code."""
    try:
        app()
    except LumosError as problem:
        _fail(str(problem), problem.exit_code)
    except BrokenPipeError:
        # The reader of our output went away (`lumos list | head`): nothing is wrong.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as problem:
        if problem.errno == errno.ENOSPC:
            _fail("No room left on the disk. Free some and run the command again.", FAILED)
        _fail(f"{problem.filename or 'The system'}: {problem.strerror or problem}.", FAILED)
    except KeyboardInterrupt:
        _fail("Interrupted.", 130)


def _fail(sentence: str, exit_code: int) -> None:
    if os.environ.get(DEBUG):
        traceback.print_exc()
    typer.echo(f"lumos: {sentence}", err=True)
    sys.exit(exit_code)
