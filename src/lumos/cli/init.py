"""lumos init"""

from pathlib import Path
from typing import Annotated

import typer

from lumos.cli.options import Force, JsonOptions, accept_old_options, local_path, with_options
from lumos.cli.text import print_line

app = typer.Typer()


@app.command(
    epilog="Example: lumos init && lumos config check",
    cls=accept_old_options(first=("--output", "-o")),
)
@with_options
def init(
    options: JsonOptions,
    file: Annotated[
        Path, typer.Argument(metavar="[FILE]", help="The file to write.", callback=local_path)
    ] = Path("lumos.yaml"),
    force: Force = False,
) -> None:
    """Write a commented starter configuration."""
    from lumos.config import write_starter

    message = f"Wrote {file}. Check it with: lumos config check {file}"
    options.print(write_starter(file, force=force), lambda _: print_line(message))
