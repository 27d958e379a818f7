"""Options and output shared by the commands on annotations."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from shlex import join
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.screen import Table, stdout
from lumos.cli.text import Names, print_line, print_remark
from lumos.errors import MisuseError, question
from lumos.rendering.text import few, plural, shorten

if TYPE_CHECKING:
    from lumos.annotations.reports import AnnotationListReport, AnnotationReport, ListedAnnotation
    from lumos.sdk import Lumos

_MAX_LISTED: Final = 20
MAX_VALUE_LENGTH: Final = 70
# Commands that add annotations, by noun; for other nouns, the command is `NOUN add`.
_ADD_COMMANDS: Final = {"documentation": "doc set", "property": "property set"}

Fields = Annotated[
    list[str] | None,
    typer.Option(
        "--field",
        "-f",
        metavar="PATH",
        help="A field instead of the dataset: email, address.city, or a pattern such as "
        "'*_email'. Repeatable.",
        show_default=False,
    ),
]
Mine = Annotated[
    bool,
    typer.Option(
        "--mine", help="Only retract annotations made by hand; those of other sources apply again."
    ),
]


@contextmanager
def suggest_dataset_first(
    lumos: "Lumos", command: str, dataset: str, arguments: Sequence[str]
) -> Iterator[None]:
    """If the first argument is not a dataset but another one is, suggest the right order."""
    from lumos.names import NoMatchingDataset
    from lumos.store.errors import UnknownDataset

    try:
        yield
    except (UnknownDataset, NoMatchingDataset) as problem:
        nearest = problem.nearest if isinstance(problem, UnknownDataset) else ()
        suggestion = f" {question(nearest)}" if nearest else ""
        for argument in arguments:
            if lumos.annotations.is_dataset(argument):
                others = [each for each in (dataset, *arguments) if each != argument]
                raise MisuseError(
                    f"'{dataset}' is not a dataset, but '{argument}' is.{suggestion} The dataset "
                    f"comes first: lumos {command} {join([argument, *others])}"
                ) from None
        raise


def print_changed(report: "AnnotationReport", names: Names) -> None:
    """Print the changes of a command, one line per dataset, and the number of datasets."""
    listed, more = few(report.datasets, _MAX_LISTED)
    overruled, more_overruled = few(report.overruled, _MAX_LISTED)
    names.look_up(each.urn for each in listed)
    names.look_up(each.urn for each in overruled)
    table = Table("DATASET", "WHAT")
    for each in listed:
        table.add(names(each.urn), "; ".join(each.changes))
    stdout().print(table)
    if more:
        print_line(f"... and {more:,} more datasets; --json lists them.")
    for item in report.items:
        print_line(f"{item}{' would be written' if report.dry_run else ''}")
    outcome = "would change" if report.dry_run else "changed"
    unchanged = report.matched - report.changed
    others = f", {unchanged:,} unchanged" if unchanged else ""
    print_line(f"{plural(report.changed, 'dataset')} {outcome}{others}.")
    for other in overruled:
        subject = f"{names(other.urn)} {other.field}".strip()
        print_remark(f"{subject}: {other.what} by {other.by} has priority and was kept")
    if more_overruled:
        print_remark(
            f"... and {more_overruled:,} more annotations of others were kept; --json lists them"
        )
    for text in report.remarks:
        print_remark(names(text))


def print_list(
    report: "AnnotationListReport", names: Names, *, noun: str, is_summary: bool
) -> None:
    """Print the number of uses of each annotation (`is_summary`), or all annotations in a list."""
    if is_summary and not any(listed.state != "said" for listed in report.annotations):
        table = Table(noun.upper(), ">DATASETS", ">FIELDS")
        for label in report.labels:
            table.add(label.name, f"{label.datasets:,}", f"{label.fields:,}")
    else:
        names.look_up(listed.urn for listed in report.annotations)
        table = Table("DATASET", "FIELD", noun.upper(), "VALUE", "BY", compact=True)
        for listed in report.annotations:
            table.add(
                names(listed.urn),
                listed.field or "-",
                listed.name or listed.slot.replace("_", " "),
                shorten(listed.value or "", MAX_VALUE_LENGTH),
                _source(listed),
            )
    stdout().print(table)
    if not report.datasets:
        print_line("There are no datasets yet. Find some with: lumos ingest PATH")
    elif not report.annotations:
        command = _ADD_COMMANDS.get(noun, f"{noun} add")
        datasets = plural(report.datasets, "dataset")
        print_line(f"No {noun} on {datasets}. Add some with: lumos {command} --help")


def _source(listed: "ListedAnnotation") -> str:
    """The source of an annotation, and whether its field no longer exists."""
    name = listed.author if listed.by == "user" and listed.author else listed.by or ""
    return name if listed.state == "said" else f"{name} (the field no longer exists)"
