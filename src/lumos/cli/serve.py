"""lumos serve"""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from lumos.cli import logs
from lumos.cli.options import ConfigFile, StorePath, open_lumos
from lumos.cli.text import is_quiet, print_remark

app = typer.Typer()


@app.command(
    epilog="Examples:\n\nlumos serve\n\nlumos serve --host 0.0.0.0 --tls-certificate server.pem "
    "--tls-key server.key"
)
def serve(
    host: Annotated[
        str | None,
        typer.Option(metavar="HOST", help="Address to listen on. Default: 127.0.0.1."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, max=65535, help="Port. 0 takes any. Default: 8765."),
    ] = None,
    require_token: Annotated[
        bool, typer.Option("--require-token", help="Require a token on this machine as well.")
    ] = False,
    tls_certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Certificate of the server, PEM.")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Private key of the certificate, PEM.")
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            max=64,
            help="The number of jobs that the server runs at a time; with 0, use lumos worker.",
        ),
    ] = 1,
    config: ConfigFile = None,
    store: StorePath = None,
) -> None:
    """Serve the store over HTTP, for lumos --server, the SDK and other programs, and run jobs.

    By default, only programs on this machine can connect, and need no token. If the server listens
    on another address, every request needs a token. Logs go to stderr, as JSON unless stderr is a
    terminal.
    """
    from lumos.server.run import serve as run
    from lumos.tracing import start_tracing

    format: logs.LogFormat = "text" if sys.stderr.isatty() else "json"
    logs.set_up(format=format, verbose=True, quiet=is_quiet())
    flush_spans = start_tracing("server", os.environ)
    run(
        open_lumos(config, store),
        host=host,
        port=port,
        require_token=require_token,
        certificate=tls_certificate,
        key=tls_key,
        workers=workers,
        started=lambda url: print_remark(f"Serving on {url}. Stop it with Ctrl-C."),
    )
    flush_spans()
