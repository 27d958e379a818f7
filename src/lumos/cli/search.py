"""lumos search"""

from datetime import UTC, datetime
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.options import (
    CommonOptions,
    DataPlatform,
    OnlyFormat,
    ReadFrom,
    argument,
    check_data_platform,
    is_catalog,
    limit_option,
    with_options,
)
from lumos.cli.screen import stdout
from lumos.cli.text import Names, escape_line, print_line
from lumos.rendering.text import format_age, plural

if TYPE_CHECKING:
    from lumos.datasets.reports import SearchReport, SearchResult


_ABBREVIATIONS = frozenset({"csv", "gcs", "hdfs", "json", "orc", "s3"})
_MAX_FIELDS = 5


app = typer.Typer()


@app.command(
    epilog="Examples:\n\nlumos search customer --format parquet --limit 5\n\n"
    "lumos search customer --platform datahub"
)
@with_options
def search(
    options: CommonOptions,
    text: Annotated[str, argument("TEXT", "Words, or the first letters of words.")],
    platform: ReadFrom = None,
    data_platform: DataPlatform = None,
    owner: Annotated[str | None, typer.Option(metavar="OWNER", help="Only this owner.")] = None,
    tag: Annotated[str | None, typer.Option(metavar="TAG", help="Only this tag.")] = None,
    format: OnlyFormat = None,
    limit: Annotated[int, limit_option("Show at most this many.", maximum=1000)] = 20,
) -> None:
    """Find datasets by words in their name, path, fields, descriptions, tags and owners."""
    lumos = options.lumos
    if platform is not None and not is_catalog(platform):
        # In earlier versions, --platform meant --data-platform.
        platform, data_platform = None, data_platform or platform
    if platform is None:
        check_data_platform(lumos, data_platform)
    report = lumos.search(
        text,
        platform=data_platform,
        owner=owner,
        tag=tag,
        format=format,
        limit=limit,
        catalog=platform,
    )
    values = {"owner": owner, "tag": tag, "format": format, "data-platform": data_platform}
    filters = {name: value for name, value in values.items() if value is not None}
    options.print(report, _print_report, options.names, filters=filters)


def _print_report(report: "SearchReport", names: Names, *, filters: dict[str, str]) -> None:
    console = stdout()
    if not report.results:
        suggestion = f" Did you mean {report.suggestion}?" if report.suggestion else ""
        noun = next((name for name in ("owner", "tag") if name in filters), "")
        advice = f" See all with: lumos {f'{noun} list' if noun else 'list'}"
        hint = "" if suggestion or report.lineage_only else advice
        limits = "".join(f" with --{name} {quote(value)}" for name, value in filters.items())
        print_line(f"No dataset matches '{report.query}'{limits}.{suggestion}{hint}")
        _print_lineage_only(report, names)
        return
    names.look_up(each.urn for each in report.results)
    prefix = "" if report.all_counted else "at least "
    console.print(f"Results ({prefix}{plural(report.total, 'dataset')}):")
    for number, result in enumerate(report.results, start=1):
        console.print()
        console.print(f"{number}. ", end="")
        console.print(names(result.urn), style="bold", end="  ")
        console.print(result.location or result.urn, style="dim")
        console.print(f"   {_summary_line(result)}")
        if result.fields:
            console.print(f"   {_fields_line(result)}")
    if report.total > len(report.results):
        console.print()
        console.print(
            f"... the best {len(report.results)} of {prefix}{report.total:,}; --limit shows more."
        )
    if report.lineage_only:
        console.print()
        _print_lineage_only(report, names)


def _print_lineage_only(report: "SearchReport", names: Names) -> None:
    names.look_up(report.lineage_only)
    for urn in report.lineage_only:
        name = names(urn)
        owners = ", ".join(report.lineage_only_owners.get(urn, ()))
        owned = f"{name}{f' ({owners})' if owners else ''}"
        if urn in report.consumers:
            print_line(f"{owned} reads datasets. See which with: lumos lineage show {quote(name)}")
            continue
        print_line(
            f"{owned} is known from lineage only: no scan has found it. "
            f"Show it with: lumos show {quote(name)}"
        )


def _fields_line(result: "SearchResult") -> str:
    more = len(result.fields) - _MAX_FIELDS
    names = ", ".join(map(escape_line, result.fields[:_MAX_FIELDS]))
    return f"Fields: {names}{f' and {more:,} more' if more > 0 else ''}"


def _title(word: str) -> str:
    return word.upper() if word in _ABBREVIATIONS else word.capitalize()


def _summary_line(result: "SearchResult") -> str:
    format = f" ({_title(result.format)})" if result.format else ""
    parts = [f"Platform: {_title(result.platform)}{format}"]
    if result.owners:
        parts.append(f"Owner: {', '.join(result.owners)}")
    if result.quality is not None:
        parts.append(f"Quality: {result.quality:.1%}")
    if result.schema_version:
        parts.append(f"Schema: {result.schema_version}")
    if result.last_modified is not None:
        parts.append(f"Last updated: {format_age(result.last_modified, datetime.now(UTC))}")
    return " | ".join(parts)
