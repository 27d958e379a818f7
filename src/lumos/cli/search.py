"""lumos search"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.lines import one_line, say
from lumos.cli.options import (
    CommonOptions,
    DataPlatform,
    check_data_platform,
    common_options,
    earlier_options,
    print_json,
)

if TYPE_CHECKING:
    from lumos.datasets.reports import SearchReport, SearchResult


_ABBREVIATIONS = frozenset({"csv", "gcs", "hdfs", "json", "orc", "s3"})
_MOST_FIELDS = 5


def add_to(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command(
        epilog="Example: lumos search customer --format parquet --limit 5",
        cls=earlier_options(platform="--data-platform"),
    )(search)


@common_options
def search(
    options: CommonOptions,
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT", help="Words, or the beginnings of words.", show_default=False
        ),
    ],
    data_platform: DataPlatform = None,
    owner: Annotated[str | None, typer.Option(metavar="OWNER", help="Only this owner.")] = None,
    tag: Annotated[str | None, typer.Option(metavar="TAG", help="Only this tag.")] = None,
    format: Annotated[str | None, typer.Option(metavar="FORMAT", help="Only this format.")] = None,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, max=1000, help="Show at most this many.")
    ] = 20,
) -> None:
    """Find datasets by words in their name, path, fields, descriptions, tags and owners."""
    lumos = options.lumos
    check_data_platform(lumos, data_platform)
    report = lumos.search(
        text, platform=data_platform, owner=owner, tag=tag, format=format, limit=limit
    )
    if options.json:
        print_json(report)
    else:
        _show(report)


def _show(report: "SearchReport") -> None:
    from lumos.cli.screen import plural, stdout

    console = stdout()
    if not report.results:
        meant = f" Did you mean {report.suggestion}?" if report.suggestion else ""
        say(f"No dataset matches '{report.query}'.{meant}")
        return
    many = "" if report.all_counted else "at least "
    console.print(f"Results ({many}{plural(report.total, 'dataset')}):")
    for number, result in enumerate(report.results, start=1):
        console.print()
        console.print(f"{number}. ", end="")
        console.print(result.location or result.urn, style="bold")
        console.print(f"   {_facts(result)}")
        if result.fields:
            console.print(f"   {_fields(result)}")
    if report.total > len(report.results):
        console.print()
        console.print(
            f"... the best {len(report.results)} of {many}{report.total:,}; --limit shows more."
        )


def _fields(result: "SearchResult") -> str:
    more = len(result.fields) - _MOST_FIELDS
    names = ", ".join(map(one_line, result.fields[:_MOST_FIELDS]))
    return f"Fields: {names}{f' and {more:,} more' if more > 0 else ''}"


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
