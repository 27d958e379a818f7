"""lumos overview, list and show"""

from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from lumos.cli.options import (
    AsJson,
    CommonOptions,
    ConfigFile,
    DataPlatform,
    Dataset,
    OnlyFormat,
    ReadFrom,
    StorePath,
    accept_old_options,
    check_data_platform,
    limit_option,
    print_json,
    with_options,
)
from lumos.cli.scan_text import (
    DatasetFamily,
    ShowAll,
    fold_similar,
    format_file_count,
    format_known_size,
)
from lumos.cli.screen import Table, stdout
from lumos.cli.text import Names, escape_line
from lumos.rendering.text import few, format_number, format_size, format_time, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from lumos.datasets.reports import ListedDataset, ListReport, OverviewReport, ShowReport
    from lumos.model.types import DataType
    from lumos.schemas.changes import SplitDataset
    from lumos.sdk import Lumos

_TABLE_PROPERTIES: Final = "table."
_PROPERTIES_SHOWN_ELSEWHERE: Final = ("comment", "owner")
# The name of a table version in each format.
_VERSION_NAMES: Final = {"iceberg": "snapshot", "hudi": "instant"}
# Labels whose values may have several lines.
_MULTILINE_LABELS: Final = ("description", "context", "settings", "upstream", "downstream")
_DEFAULT_OWNER_TYPE: Final = "TECHNICAL_OWNER"
# The maximum number of edges and parts that are listed.
_MAX_LISTED: Final = 10


app = typer.Typer()


@app.command(epilog="Example: lumos overview --json")
@with_options
def overview(options: CommonOptions) -> None:
    """Show the sources and their last scans, and how many datasets have owners and lineage."""
    options.print(options.lumos.overview(), _print_overview)


def _print_overview(report: "OverviewReport") -> None:
    console = stdout()
    if report.sources:
        table = Table("SOURCE", ">DATASETS", "LAST SCAN (UTC)", "LAST CHANGE (UTC)")
        for each in report.sources:
            table.add(
                escape_line(each.source),
                format_number(each.datasets),
                format_time(each.last_scan) if each.last_scan else "-",
                format_time(each.last_change) if each.last_change else "-",
            )
        console.print(table)
    counts = (
        ("owned", report.owned),
        ("documented", report.documented),
        ("with lineage", report.with_lineage),
    )
    shares = ", ".join(f"{count:,} {what}" for what, count in counts)
    console.print(f"{plural(report.datasets, 'dataset')}: {shares}.")


@app.command(
    "list",
    epilog="Example: lumos list --format parquet --limit 20",
    cls=accept_old_options(platform="--data-platform"),
)
def list_(
    contains: Annotated[
        str | None,
        typer.Argument(metavar="[TEXT]", help="Only datasets whose name or URN contains this."),
    ] = None,
    data_platform: DataPlatform = None,
    format: OnlyFormat = None,
    limit: Annotated[int | None, limit_option("List at most this many.")] = None,
    lineage_only: Annotated[
        bool,
        typer.Option(
            "--lineage-only", help="List tables that are only known from lineage, not from a scan."
        ),
    ] = False,
    config: ConfigFile = None,
    store: StorePath = None,
    show_all: ShowAll = False,
    json: AsJson = False,
) -> None:
    """List the datasets in the store."""
    options = CommonOptions(config=config, store=store, json=json)
    lumos = options.lumos
    check_data_platform(lumos, data_platform)
    report = lumos.list(
        platform=data_platform,
        format=format,
        contains=contains,
        limit=limit,
        lineage_only=lineage_only,
    )
    if lineage_only:
        options.print(report, _print_lineage_only, options.names)
        return
    suggestion = None
    if contains and not report.datasets and not json:
        suggestion = lumos.search(contains, limit=1).suggestion
    options.print(
        report,
        _print_list,
        options.names,
        show_all=show_all,
        is_filtered=any((contains, data_platform, format)),
        suggestion=suggestion,
    )


@app.command(
    epilog="Examples:\n\nlumos show orders\n\nlumos show lumos://s3/data-lake/raw/events\n\n"
    "lumos show orders --platform datahub"
)
@with_options
def show(options: CommonOptions, dataset: Dataset, platform: ReadFrom = None) -> None:
    """Show everything that is known about a dataset.

    Location, size, versions, schema and drift, owners, tags, terms and descriptions, lineage,
    usage, quality and cost. Sections without content are omitted.
    """
    report = options.lumos.show(dataset, catalog=platform)
    if options.json:
        print_json(report)
    else:
        _print_dataset(report, options.names, has_prices=_has_prices(options.lumos))


def _has_prices(lumos: "Lumos") -> bool:
    """Whether costs can be computed; they may be disabled."""
    from lumos.config.switches import FeatureDisabled

    try:
        return lumos.cost.has_prices()
    except FeatureDisabled:
        return False


def _print_list(
    report: "ListReport",
    names: Names,
    *,
    show_all: bool,
    is_filtered: bool,
    suggestion: str | None,
) -> None:
    if not report.datasets:
        advice = (
            "See all datasets and their formats with: lumos list"
            if is_filtered
            else "Scan some with: lumos ingest PATH"
        )
        similar = f"Did you mean {suggestion}? " if suggestion else ""
        what = "matches" if is_filtered else "is recorded yet"
        stdout().print(f"No dataset {what}. {similar}{advice}")
        _print_lineage_only_count(report)
        return
    names.look_up(each.urn for each in report.datasets)
    table = Table("DATASET", "FORMAT", "VERSION", "CHANGED (UTC)")
    for dataset in fold_similar(
        report.datasets, _schema_families(report), lambda each: each.urn, show_all=show_all
    ):
        if isinstance(dataset, DatasetFamily):
            table.add(dataset.title, "", "", "--all shows them")
            continue
        version = f"{dataset.cloud_version} {dataset.schema_version}"
        changed = format_time(dataset.updated_at)
        table.add(names(dataset.urn), dataset.format or "", version, changed)
    stdout().print(table)
    if report.has_more:
        stdout().print()
        stdout().print("There are more. Raise --limit, or look for a name: lumos search TEXT")
    _print_lineage_only_count(report)


def _print_lineage_only_count(report: "ListReport") -> None:
    if count := report.lineage_only_count:
        more = f"{count:,} more table{' is' if count == 1 else 's are'}"
        stdout().print()
        stdout().print(f"{more} known from lineage only: lumos list --lineage-only")


def _print_lineage_only(report: "ListReport", names: Names) -> None:
    names.look_up(report.lineage_only)
    table = Table(
        "TABLE", "URN", empty="No table is known from lineage only. See datasets with: lumos list"
    )
    for urn in report.lineage_only:
        table.add(names(urn), urn)
    stdout().print(table)


def _schema_families(report: "ListReport") -> "Iterator[DatasetFamily]":
    """Families of datasets in one folder that have the same format and schema."""
    families: dict[tuple[str, str | None, str], list[ListedDataset]] = {}
    for each in report.datasets:
        key = (each.urn.rpartition("/")[0], each.format, each.fingerprint)
        families.setdefault(key, []).append(each)
    for family in families.values():
        yield DatasetFamily(tuple(each.urn for each in family), tuple(each.name for each in family))


def _print_dataset(report: "ShowReport", names: Names, *, has_prices: bool) -> None:
    from rich.text import Text

    from lumos.schemas.wording import drift_summary

    console = stdout()
    dataset = report.dataset
    console.print(names(dataset["urn"]), style="bold")
    details = Table("", "")
    if report.state == "missing":
        details.add("state", "missing: the last scan did not find it")
    elif report.state == "assumed":
        is_table = report.kind is None
        text = "known from lineage only: no scan has found it" if is_table else "stores no data"
        details.add("state", text)
    elif report.split is not None:
        details.add("state", f"was {names(report.split.summary)}")
        details.add("parts", Text("\n".join(map(escape_line, _format_parts(report.split, names)))))
    for label, value in _labelled_values(dataset, names):
        # Descriptions may have several lines.
        details.add(label, Text(value) if label in _MULTILINE_LABELS else value)
    if has_prices and not dataset.get("cost"):
        name = names(dataset["urn"])
        # Costs are only recorded for scanned datasets.
        state = "" if report.state == "assumed" else "not recorded; "
        details.add("cost", f"{state}compute it with: lumos cost report {quote(name)}")
    console.print(details)
    if dataset["schema"]["fields"]:
        console.print()
        console.print(_fields_table(dataset))
    _print_profile(console, (dataset.get("quality") or {}).get("profile"))
    if definition := dataset.get("definition"):
        console.print()
        console.print(Text(definition["sql"]))
    statistics = dataset.get("statistics")
    if statistics and statistics["alternating"]:
        console.print()
        console.print("writers with different schemas take turns", style="yellow")
    for flag in dataset["flags"]:
        console.print()
        console.print(f"names that differ only in case ({flag})", style="yellow")
    newest = statistics and statistics["last_modified"]
    for drift in dataset.get("drift") or ():
        last_seen = drift.get("last_seen")
        are_older = bool(newest and last_seen and last_seen < newest)
        summary = drift_summary(
            drift["file_count"], drift.get("differences", ()), are_older=are_older
        )
        console.print()
        console.print(f"drift: {summary}", style="yellow")
        console.print(f"  such as {drift['examples'][0]}")


def _labelled_values(dataset: dict[str, Any], names: Names) -> "Iterator[tuple[str, str]]":
    """The labels and values of everything except for the schema."""
    location, versioning = dataset.get("location"), dataset.get("versioning")
    values = {
        **_format_annotations(dataset),
        "location": location and location["uri"],
        "partitioning": location and location["partitioning"],
        "format": dataset.get("format"),
        **_table_version(dataset),
        "settings": "\n".join(map(escape_line, _table_settings(dataset))),
        "version": versioning and f"{versioning['cloud_version']} {versioning['schema_version']}",
        **_format_sizes(dataset),
        "schedule": _format_schedule(dataset.get("schedule")),
        "quality": _format_quality(dataset.get("quality") or {}),
        **_format_lineage(dataset, names),
        "usage": _format_usage(dataset.get("usage")),
        "cost": _format_cost(dataset.get("cost")),
    }
    for label, value in values.items():
        if value:
            yield label, value


def _format_sizes(dataset: dict[str, Any]) -> dict[str, str]:
    statistics = dataset.get("statistics")
    if not statistics:
        return {}
    sizes = {"files": format_file_count(statistics["file_count"], dataset.get("format"))}
    if dataset.get("format") != "view":
        sizes["rows"] = format_number(statistics["row_count"], exact=statistics["row_count_exact"])
        sizes["size"] = format_known_size(
            statistics["total_size_bytes"], exact=statistics["total_size_exact"]
        )
    if statistics.get("partition_count") is not None:
        sizes["partitions"] = f"{statistics['partition_count']:,}"
    if statistics["last_modified"]:
        sizes["modified"] = f"{_format_time_text(statistics['last_modified'])} UTC"
    return sizes


def _format_schedule(schedule: dict[str, Any] | None) -> str:
    if not schedule:
        return ""
    lag = schedule.get("availability_lag_minutes")
    after = f", available {lag} min later" if lag else ""
    return f"{schedule['cron']} ({schedule.get('timezone', 'UTC')}){after}"


def _format_quality(quality: dict[str, Any]) -> str:
    """Scores and checks; the profile of columns is printed after the schema."""
    parts = [f"score {quality['score']:.1%}"] if quality.get("score") is not None else []
    parts += [f"{name} {share:.1%}" for name, share in quality.get("dimensions", {}).items()]
    by_status: dict[str, list[str]] = {}
    for check in quality.get("checks", ()):
        by_status.setdefault(check["status"], []).append(check["name"])
    for status, names in sorted(by_status.items()):
        failed_names = "" if status == "PASSED" else f" ({', '.join(names)})"
        parts.append(f"{plural(len(names), 'check')} {status.lower()}{failed_names}")
    if parts and (at := quality.get("measured_at")):
        parts.append(f"measured {_format_time_text(at)} UTC")
    if freshness := quality.get("freshness"):
        parts.append(f"data up to {_format_time_text(freshness)} UTC")
    return ", ".join(parts)


def _format_usage(usage: dict[str, Any] | None) -> str:
    if not usage:
        return ""
    readers = usage.get("readers", ())
    since = f" since {usage['since']}" if usage.get("since") else ""
    if not readers:
        return f"no reads{since}" if since else ""
    reads = plural(sum(each.get("reads", 0) for each in readers), "read")
    last = usage.get("last_accessed")
    last_read = f", the last on {last[:10]}" if last else ""
    return f"{reads} by {plural(len(readers), 'reader')}{since}{last_read}"


def _format_cost(cost: dict[str, Any] | None) -> str:
    """The own and attributed cost of the last recorded period."""
    if not cost:
        return ""
    own, attributed = (cost.get(kind) or {} for kind in ("own", "attributed"))
    types = ", ".join(f"{type} {amount:,.2f}" for type, amount in own.items())
    total = sum(own.values()) + sum(attributed.values())
    parts = [f"own {sum(own.values()):,.2f}" + (f" ({types})" if len(own) > 1 else "")]
    if attributed:
        parts.append(f"upstream {sum(attributed.values()):,.2f}")
    return f"{total:,.2f} {cost['currency']} ({cost['period']}): {', '.join(parts)}"


def _format_time_text(text: str) -> str:
    return str(text).replace("T", " ")[:19]


def _fields_table(dataset: dict[str, Any]) -> Table:
    """The fields, with a row for each member of a struct."""
    # Imported late, since `lumos list` does not need them.
    from lumos.model.schema import Field
    from lumos.model.type_path import nested_parts
    from lumos.model.types import parse_type

    columns = (dataset.get("statistics") or {}).get("columns") or {}
    headers = (">NULLS", ">SIZE", "MINIMUM", "MAXIMUM") if columns else ()
    schema_fields = dataset["schema"]["fields"]
    id_header = (">ID",) if any("field_id" in field for field in schema_fields) else ()
    fields = Table("FIELD", "TYPE", "NULL", *id_header, *headers, "")
    blanks = [""] * len(headers)
    for field in schema_fields:
        type = parse_type(field["type"])
        fields.add(
            field["name"],
            _outline_type(type),
            "yes" if field["nullable"] else "no",
            *(str(field.get("field_id", "")) for _ in id_header),
            *(_column_statistics(columns.get(field["name"], {})) if headers else ()),
            _format_field_annotations(field),
        )
        notes = {note["path"]: note for note in field["nested"]}
        for part in nested_parts(Field(name=field["name"], type=type)):
            note = notes.get(part.path, {"path": part.path})
            annotations = _format_field_annotations(note)
            if part.name is not None or annotations:
                fields.add(
                    f"  {part.path}",
                    _outline_type(part.type),
                    "yes" if part.nullable else "no",
                    *(str(note.get("field_id", "")) for _ in id_header),
                    *blanks,
                    annotations,
                )
    return fields


def _outline_type(type: "DataType") -> str:
    """A type without the members of its structs, which have separate rows."""
    from lumos.model.types import Array, Map, Struct, Union

    match type:
        case Struct():
            return "STRUCT"
        case Array(element):
            return f"ARRAY<{_outline_type(element)}>"
        case Map(key, value):
            return f"MAP<{_outline_type(key)}, {_outline_type(value)}>"
        case Union(options):
            return f"UNION<{', '.join(map(_outline_type, options))}>"
    return type.text


def _table_version(dataset: dict[str, Any]) -> dict[str, str]:
    """The current version of a table, from its log."""
    properties = _source_properties(dataset)
    version = properties.get(f"{_TABLE_PROPERTIES}version")
    if version is None:
        return {}
    operation = properties.get(f"{_TABLE_PROPERTIES}operation")
    label = _VERSION_NAMES.get(dataset.get("format") or "", "table version")
    return {
        label: f"{version} ({operation})" if operation else version,
        "features": properties.get(f"{_TABLE_PROPERTIES}features", "none"),
    }


def _table_settings(dataset: dict[str, Any]) -> list[str]:
    """The settings of a table, from its log."""
    properties = _source_properties(dataset)
    if f"{_TABLE_PROPERTIES}version" not in properties:
        return []
    return [
        f"{name}={text}"
        for name, text in sorted(properties.items())
        if not name.startswith(_TABLE_PROPERTIES) and name not in _PROPERTIES_SHOWN_ELSEWHERE
    ]


def _source_properties(dataset: dict[str, Any]) -> dict[str, str]:
    """The properties that the source reported, without the prefix of the platform."""
    prefix = f"{dataset['platform']}."
    properties = (dataset.get("properties") or {}).items()
    return {name.removeprefix(prefix): text for name, text in properties if name.startswith(prefix)}


def _print_profile(console: "Console", profile: dict[str, Any] | None) -> None:
    if profile is None:
        return
    from lumos.cli.profile import format_sample, frequent_lines, profile_table

    console.print()
    rows = f"{plural(profile['rows'], 'row')}{format_sample(profile)}"
    console.print(f"profile of {_format_time_text(profile['measured_at'])} UTC: {rows}")
    console.print(profile_table(profile))
    for line in frequent_lines(profile):
        console.print(line)


def _format_annotations(dataset: dict[str, Any]) -> dict[str, str | None]:
    """Descriptions, owners and labels of a dataset."""
    documentation, governance = dataset.get("documentation") or {}, dataset.get("governance") or {}
    owners = (dataset.get("ownership") or {}).get("owners", ())
    source_prefix = f"{dataset['platform']}."
    properties = (dataset.get("properties") or {}).items()
    return {
        "description": documentation.get("description"),
        "context": documentation.get("business_context"),
        "domain": documentation.get("domain"),
        "owners": ", ".join(map(_format_owner, owners)),
        "tags": ", ".join(governance.get("tags", ())),
        "terms": ", ".join(governance.get("terms", ())),
        "compliance": ", ".join(governance.get("compliance", ())),
        "properties": ", ".join(
            f"{name}={text}" for name, text in properties if not name.startswith(source_prefix)
        ),
    }


def _format_owner(owner: dict[str, Any]) -> str:
    type = owner.get("type", _DEFAULT_OWNER_TYPE)
    return owner["name"] if type == _DEFAULT_OWNER_TYPE else f"{owner['name']} ({type})"


def _format_field_annotations(field: dict[str, Any]) -> str:
    """Everything that is known about a field except for its type, in one line."""
    parts = [word for word in ("key", "partition") if field.get(word)]
    if (default := field.get("default")) is not None:
        parts.append(" ".join(["default", *(default.split() or ["''"])]))
    for label in ("tags", "terms", "compliance"):
        if names := field.get(label):
            parts.append(f"{label}: {', '.join(names)}")
    parts += [f"{name}={text}" for name, text in field.get("properties", {}).items()]
    if description := " ".join((field.get("description") or "").split()):
        parts.append(f"description: {description}")
    return "; ".join(parts)


def _format_parts(split: "SplitDataset", names: Names) -> list[str]:
    """The names of the datasets that a dataset was split into; long lists are truncated."""
    listed, _ = few(split.parts, _MAX_LISTED)
    names.look_up(listed)
    more = split.part_count - len(listed)
    more_line = [f"and {more:,} more: lumos show --json {names(split.urn)}"] if more else []
    return [*map(names, listed), *more_line]


def _format_lineage(dataset: dict[str, Any], names: Names) -> dict[str, str]:
    """The first upstream and downstream datasets of a dataset."""
    text_by_side = {}
    for side in ("upstream", "downstream"):
        urns = [edge["urn"] for edge in (dataset.get("lineage") or {}).get(side, ())]
        if not urns:
            continue
        listed, more = few(urns, _MAX_LISTED)
        names.look_up(listed)
        lines = [plural(len(urns), "dataset"), *(f"  {names(urn)}" for urn in listed)]
        if more:
            lines.append(f"  and {more:,} more: lumos lineage show {names(dataset['urn'])}")
        text_by_side[side] = "\n".join(map(escape_line, lines))
    return text_by_side


def _column_statistics(statistics: dict[str, Any]) -> tuple[str, ...]:
    nulls, bytes = statistics.get("null_count"), statistics.get("compressed_bytes")
    return (
        "" if nulls is None else format_number(nulls),
        "" if bytes is None else format_size(bytes),
        statistics.get("minimum") or "",
        statistics.get("maximum") or "",
    )
