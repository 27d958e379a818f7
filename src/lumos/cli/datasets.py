"""lumos list and show: reads of the store that need no Spark."""

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from lumos.cli.lines import one_line
from lumos.cli.options import AsJson, ConfigFile, StorePath, lumos_of, print_json
from lumos.cli.similar import Folded, ShowAll, fold_similar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console
    from rich.table import Table

    from lumos.engine.reports import ListedDataset, ListReport, ShowReport, SplitDataset

_OF_TABLE: Final = "table."
_SHOWN_ELSEWHERE: Final = ("comment", "owner")
# What the formats call a version of a table.
_VERSIONS: Final = {"iceberg": "snapshot", "hudi": "instant"}
_PROSE: Final = ("description", "context")
# As many edges of a dataset as are shown beside its other facts.
_LISTED: Final = 10

Name = Annotated[
    str,
    typer.Argument(
        metavar="URN", help="A dataset's URN, or a name that only one dataset has.",
        show_default=False,
    ),
]  # fmt: skip


def add_to(app: typer.Typer) -> None:
    """Adds the commands to the application."""
    app.command("list", epilog="Example: lumos list --format parquet --limit 20")(list_)
    app.command(epilog="Example: lumos show lumos://s3/data-lake/raw/events")(show)


def list_(
    contains: Annotated[
        str | None, typer.Argument(metavar="[TEXT]", help="Only URNs and names with this text.")
    ] = None,
    platform: Annotated[str | None, typer.Option(help="Only datasets of this platform.")] = None,
    format: Annotated[str | None, typer.Option(help="Only datasets of this format.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many.")] = None,
    config: ConfigFile = None,
    store: StorePath = None,
    show_all: ShowAll = False,
    json: AsJson = False,
) -> None:
    """List the datasets in the store."""
    report = lumos_of(config, store).list(
        platform=platform, format=format, contains=contains, limit=limit
    )
    if json:
        print_json(report)
    else:
        _print_list(report, show_all=show_all)


def show(
    urn: Name, config: ConfigFile = None, store: StorePath = None, json: AsJson = False
) -> None:
    """Show all that is known about a dataset."""
    report = lumos_of(config, store).show(urn)
    if json:
        print_json(report)
    else:
        _print_dataset(report)


def _print_list(report: "ListReport", *, show_all: bool) -> None:
    from lumos.cli.screen import stdout, table, when

    rows = table("DATASET", "FORMAT", "VERSION", "CHANGED (UTC)", "URN")
    for dataset in fold_similar(
        report.datasets, _same_schema(report), lambda each: each.urn, show_all=show_all
    ):
        if isinstance(dataset, Folded):
            folder = dataset.datasets[0].rpartition("/")[0]
            rows.add_row(dataset.title, "", "", "--all shows them", f"{folder}/...")
            continue
        rows.add_row(
            dataset.name,
            dataset.format or "",
            f"{dataset.cloud_version} {dataset.schema_version}",
            when(dataset.updated_at),
            dataset.urn,
        )
    stdout().print(rows if report.datasets else "No dataset matches.")


def _same_schema(report: "ListReport") -> "Iterator[Folded]":
    """Datasets of one folder and format that have the same schema."""
    families: dict[tuple[str, str | None, str], list[ListedDataset]] = {}
    for each in report.datasets:
        key = (each.urn.rpartition("/")[0], each.format, each.fingerprint)
        families.setdefault(key, []).append(each)
    for some in families.values():
        yield Folded(tuple(each.urn for each in some), tuple(each.name for each in some))


def _print_dataset(report: "ShowReport") -> None:
    from rich.text import Text

    from lumos.cli.screen import file_count, number, plural, size, stdout, table

    console = stdout()
    dataset = report.dataset
    console.print(dataset["name"], style="bold", end="  ")
    console.print(dataset["urn"])
    facts = table("", "")
    facts.show_header = False
    location, statistics = dataset.get("location"), dataset.get("statistics")
    if report.state == "missing":
        facts.add_row("state", "gone: it was not there at the last scan")
    elif report.split is not None:
        facts.add_row("state", f"was {report.split.summary}")
        facts.add_row("parts", Text("\n".join(map(one_line, _parts_of(report.split)))))
    facts.add_row("format", dataset.get("format"))
    for word, text in (_table_of(dataset) | _said_of(dataset)).items():
        # What people write may have lines of its own.
        facts.add_row(word, Text(text) if word in _PROSE else text)
    if settings := _settings_of(dataset):
        facts.add_row("settings", Text("\n".join(map(one_line, settings))))
    if location:
        facts.add_row("location", location["uri"])
        facts.add_row("partitioning", location["partitioning"] or "none")
    if statistics:
        rows = number(statistics["row_count"], exact=statistics["row_count_exact"])
        if files := file_count(statistics["file_count"], dataset.get("format")):
            facts.add_row("files", files)
        if dataset.get("format") != "view":
            exact = statistics["total_size_exact"]
            facts.add_row("rows", rows)
            facts.add_row("size", size(statistics["total_size_bytes"], exact=exact))
        if statistics["last_modified"]:
            facts.add_row("modified", str(statistics["last_modified"]).replace("T", " ")[:19])
    for word, urns in _lineage_of(dataset).items():
        facts.add_row(word, Text("\n".join(map(one_line, urns))))
    versioning = dataset["versioning"]
    facts.add_row("version", f"{versioning['cloud_version']} {versioning['schema_version']}")
    console.print(facts)
    console.print()
    console.print(_fields_of(dataset))
    _print_profile(console, (dataset.get("quality") or {}).get("profile"))
    if definition := dataset.get("definition"):
        console.print()
        console.print(Text(definition["sql"]))
    if statistics and statistics["alternating"]:
        console.print()
        console.print("writers with different schemas take turns", style="yellow")
    for flag in dataset["flags"]:
        console.print()
        console.print(f"names that differ only in case ({flag})", style="yellow")
    for drift in dataset.get("drift") or ():
        files = plural(drift["file_count"], "file")
        console.print()
        console.print(f"drift: {files} of another schema, e.g.", style="yellow")
        console.print(f"  {drift['examples'][0]}")
        for difference in drift.get("differences", ()):
            console.print(f"  {difference}")


def _fields_of(dataset: dict[str, Any]) -> "Table":
    from lumos.cli.screen import table

    columns = (dataset.get("statistics") or {}).get("columns") or {}
    told = ("NULLS", "SIZE", "MINIMUM", "MAXIMUM") if columns else ()
    known = dataset["schema"]["fields"]
    ids = ("ID",) if any("field_id" in field for field in known) else ()
    fields = table("FIELD", "TYPE", "NULL", *ids, *told, "", right=("ID", "NULLS", "SIZE"))
    for field in known:
        fields.add_row(
            field["name"],
            field["type"],
            "yes" if field["nullable"] else "no",
            *(str(field.get("field_id", "")) for _ in ids),
            *(_column_facts(columns.get(field["name"], {})) if told else ()),
            _said_of_field(field),
        )
        for note in field["nested"]:
            if said := _said_of_field(note):
                id = (str(note.get("field_id", "")) for _ in ids)
                blanks = [""] * len(told)
                fields.add_row(f"  {note['path']}", "", "", *id, *blanks, said)
    return fields


def _table_of(dataset: dict[str, Any]) -> dict[str, str]:
    """What the log of a table tells of its current version."""
    told = _told_of(dataset)
    version = told.get(f"{_OF_TABLE}version")
    if version is None:
        return {}
    operation = told.get(f"{_OF_TABLE}operation")
    word = _VERSIONS.get(dataset.get("format") or "", "table version")
    return {
        word: f"{version} ({operation})" if operation else version,
        "features": told.get(f"{_OF_TABLE}features", "none"),
    }


def _settings_of(dataset: dict[str, Any]) -> list[str]:
    """How a table is set up, as its log tells."""
    told = _told_of(dataset)
    if f"{_OF_TABLE}version" not in told:
        return []
    return [
        f"{name}={text}"
        for name, text in sorted(told.items())
        if not name.startswith(_OF_TABLE) and name not in _SHOWN_ELSEWHERE
    ]


def _told_of(dataset: dict[str, Any]) -> dict[str, str]:
    """What the place itself tells of a dataset."""
    mark = f"{dataset['platform']}."
    properties = (dataset.get("properties") or {}).items()
    return {name.removeprefix(mark): text for name, text in properties if name.startswith(mark)}


def _print_profile(console: "Console", profile: dict[str, Any] | None) -> None:
    if profile is None:
        return
    from lumos.cli.profile import frequent_lines, profile_table, sampled
    from lumos.cli.screen import plural

    at = str(profile["measured_at"]).replace("T", " ")[:19]
    console.print()
    console.print(f"profile of {at} UTC: {plural(profile['rows'], 'row')}{sampled(profile)}")
    console.print(profile_table(profile))
    for line in frequent_lines(profile):
        console.print(line)


def _said_of(dataset: dict[str, Any]) -> dict[str, str]:
    """What people and the place itself say of a dataset."""
    documented, governed = dataset.get("documentation") or {}, dataset.get("governance") or {}
    owners = (dataset.get("ownership") or {}).get("owners", ())
    mark = f"{dataset['platform']}."
    properties = (dataset.get("properties") or {}).items()
    said = {
        "description": documented.get("description"),
        "context": documented.get("business_context"),
        "domain": documented.get("domain"),
        "owners": ", ".join(owner["name"] for owner in owners),
        "tags": ", ".join(governed.get("tags", ())),
        "terms": ", ".join(governed.get("terms", ())),
        "compliance": ", ".join(governed.get("compliance", ())),
        "properties": ", ".join(
            f"{name}={text}" for name, text in properties if not name.startswith(mark)
        ),
    }
    return {word: text for word, text in said.items() if text}


def _said_of_field(field: dict[str, Any]) -> str:
    """What is said of a field, in one line."""
    words = [word for word in ("key", "partition") if field.get(word)]
    for labels in ("tags", "terms", "compliance"):
        words += field.get(labels, ())
    if (default := field.get("default")) is not None:
        words += ["default", *(default.split() or ["''"])]
    words += [f"{name}={text}" for name, text in field.get("properties", {}).items()]
    words += (field.get("description") or "").split()
    return " ".join(words)


def _parts_of(split: "SplitDataset") -> list[str]:
    """The datasets that one was split into; of very many, the first few."""
    shown = [*split.parts[:_LISTED]]
    if (more := split.part_count - len(shown)) > 0:
        shown.append(f"and {more:,} more: lumos show --json {split.urn}")
    return shown


def _lineage_of(dataset: dict[str, Any]) -> dict[str, list[str]]:
    """What a dataset is made from and what is made from it; of very many, the first few."""
    told = {}
    for side in ("upstream", "downstream"):
        urns = [edge["urn"] for edge in (dataset.get("lineage") or {}).get(side, ())]
        shown = urns[:_LISTED]
        if len(urns) > len(shown):
            shown.append(f"and {len(urns) - len(shown)} more: lumos lineage show {dataset['urn']}")
        if shown:
            told[side] = shown
    return told


def _column_facts(facts: dict[str, Any]) -> tuple[str, ...]:
    from lumos.cli.screen import number, size

    nulls, bytes = facts.get("null_count"), facts.get("compressed_bytes")
    return (
        "" if nulls is None else number(nulls),
        "" if bytes is None else size(bytes),
        facts.get("minimum") or "",
        facts.get("maximum") or "",
    )
