"""lumos site"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.options import CommonOptions, accept_old_options, argument, local_path, with_options
from lumos.cli.screen import stdout, steps
from lumos.rendering.text import format_size, plural

if TYPE_CHECKING:
    from lumos.site import SiteReport

app = typer.Typer()


@app.command(
    epilog="Examples:\n\nlumos site public\n\nlumos site public --snapshot backup.jsonl.zst",
    cls=accept_old_options(first=("--output", "-o")),
)
@with_options
def site(
    options: CommonOptions,
    folder: Annotated[
        str,
        argument("DIR", "A new or empty folder, or one with an earlier site.", callback=local_path),
    ],
    snapshot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Show a snapshot instead of the store."),
    ] = None,
) -> None:
    """Write the web page with all its data as static files, to host anywhere or open from disk.

    An earlier site in the folder is replaced; other files in it are not touched.
    """
    from lumos.site import write_site

    with steps() as progress:
        report = write_site(options.lumos, folder, snapshot=snapshot, progress=progress)
    options.print(report, _print_report)


def _print_report(report: "SiteReport") -> None:
    console = stdout()
    console.print(f"[ok] {plural(report.datasets, 'dataset')}")
    console.print(f"[ok] {plural(report.lineage_edges, 'lineage edge')}")
    console.print(
        f"{report.folder}  {plural(report.files, 'file')}  {format_size(report.size_bytes)}"
    )
    console.print(f"Open {report.folder}/index.html, or copy the folder to a web server.")
