"""lumos search"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.options import AsJson, ConfigFile, StorePath, lumos_of, print_json

if TYPE_CHECKING:
    from lumos.engine.reports import SearchReport, SearchResult


_ABBREVIATIONS = frozenset({"csv", "gcs", "hdfs", "json", "orc", "s3"})


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(epilog="Example: lumos search customer --format parquet --limit 5")(search)


def search(
    text: Annotated[str, typer.Argument(help="Words, or beginnings of words.", show_default=False)],
    platform: Annotated[str | None, typer.Option(help="Only datasets of this platform.")] = None,
    owner: Annotated[str | None, typer.Option(help="Only datasets of this owner.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only datasets with this tag.")] = None,
    format: Annotated[str | None, typer.Option(help="Only datasets of this format.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many results.")] = 20,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Find datasets by words in their name, path, fields, description, tags and owners."""
    report = lumos_of(config, store).search(
        text, platform=platform, owner=owner, tag=tag, format=format, limit=limit
    )
    if json:
        print_json(report)
    else:
        _show(report)


def _show(report: "SearchReport") -> None:
    from lumos.cli.screen import plural, stdout

    console = stdout()
    many = "" if report.all_counted else "at least "
    console.print(f"Results ({many}{plural(report.total, 'dataset')}):")
    for number, result in enumerate(report.results, start=1):
        console.print()
        console.print(f"{number}. ", end="")
        console.print(result.location or result.urn, style="bold")
        console.print(f"   {_facts(result)}")
    if report.total > len(report.results):
        console.print()
        console.print(
            f"... the best {len(report.results)} of {many}{report.total:,}; --limit shows more."
        )


def _title(word: str) -> str:
    return word.upper() if word in _ABBREVIATIONS else word.capitalize()


def _facts(result: "SearchResult") -> str:
    from lumos.cli.screen import ago

    format = f" ({_title(result.format)})" if result.format else ""
    facts = [f"Platform: {_title(result.platform)}{format}"]
    if result.owners:
        facts.append(f"Owner: {', '.join(result.owners)}")
    if result.quality is not None:
        facts.append(f"Quality: {result.quality:.1%}")
    if result.schema_version:
        facts.append(f"Schema: {result.schema_version}")
    if result.last_modified is not None:
        facts.append(f"Last updated: {ago(result.last_modified, datetime.now(UTC))}")
    return " | ".join(facts)
