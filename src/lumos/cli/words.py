"""What the commands on owners and enrichment share: options, and how their answers look."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from shlex import join
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.lines import remark, say
from lumos.cli.names import Names
from lumos.errors import MisuseError, question

if TYPE_CHECKING:
    from lumos.annotations.reports import AnnotationListReport, AnnotationReport, ListedAnnotation
    from lumos.sdk import Lumos

_MOST: Final = 20
_LONGEST: Final = 70
# Commands that add what lists show, where it is not `add`.
_ADDED_BY: Final = {"documentation": "doc set", "property": "property set"}

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
def dataset_first(
    lumos: "Lumos", command: str, dataset: str, words: Sequence[str]
) -> Iterator[None]:
    """Names the right order where no dataset is found because it did not come first."""
    from lumos.names import NoMatchingDataset
    from lumos.store.errors import UnknownDataset

    try:
        yield
    except (UnknownDataset, NoMatchingDataset) as problem:
        near = problem.nearest if isinstance(problem, UnknownDataset) else ()
        meant = f" {question(near)}" if near else ""
        for word in words:
            if lumos.annotations.is_dataset(word):
                others = [each for each in (dataset, *words) if each != word]
                raise MisuseError(
                    f"'{dataset}' is not a dataset, but '{word}' is.{meant} The dataset comes "
                    f"first: lumos {command} {join([word, *others])}"
                ) from None
        raise


def print_words(report: "AnnotationReport", lumos: "Lumos") -> None:
    """What a command changed, in a line for each dataset and a sum."""
    from lumos.cli.screen import aligned, plural
    from lumos.schemas.wording import few

    shown, more = few(report.datasets, _MOST)
    kept, more_kept = few(report.kept, _MOST)
    names = Names(lumos, (each.urn for some in (shown, kept) for each in some))
    rows = [(names(each.urn), "; ".join(each.changes)) for each in shown]
    for line in aligned(("DATASET", "WHAT"), rows):
        say(line)
    if more:
        say(f"... and {more:,} more datasets; --json lists them.")
    for item in report.items:
        say(f"{item}{' would be written' if report.dry_run else ''}")
    verb = "would change" if report.dry_run else "changed"
    rest = report.matched - report.changed
    others = f", {rest:,} unchanged" if rest else ""
    say(f"{plural(report.changed, 'dataset')} {verb}{others}.")
    for each in kept:
        subject = f"{names(each.urn)} {each.field}".strip()
        remark(f"{subject}: {each.what} by {each.by} has priority and was kept")
    if more_kept:
        remark(f"... and {more_kept:,} more annotations of others were kept; --json lists them")
    for text in report.remarks:
        remark(names(text))


def print_list(report: "AnnotationListReport", lumos: "Lumos", *, noun: str, whole: bool) -> None:
    """How often each annotation is used, or all annotations of the datasets asked for."""
    from lumos.cli.screen import aligned, plural

    if whole and not any(word.state != "said" for word in report.words):
        counts = [
            (label.name, f"{label.datasets:,}", f"{label.fields:,}") for label in report.labels
        ]
        for line in aligned((noun.upper(), "DATASETS", "FIELDS"), counts):
            say(line)
    else:
        names = Names(lumos, (word.urn for word in report.words))
        has_values = any(word.value for word in report.words)
        heads = ("DATASET", "FIELD", noun.upper(), *(("VALUE",) if has_values else ()), "BY")
        rows = [
            (
                names(word.urn),
                word.field or "-",
                word.name or word.slot.replace("_", " "),
                *((shortened(word.value or ""),) if has_values else ()),
                _by(word),
            )
            for word in report.words
        ]
        for line in aligned(heads, rows):
            say(line)
    if not report.datasets:
        say("There are no datasets yet. Find some with: lumos ingest PATH")
    elif not report.words:
        command = _ADDED_BY.get(noun, f"{noun} add")
        datasets = plural(report.datasets, "dataset")
        say(f"No {noun} on {datasets}. Add some with: lumos {command} --help")


def _by(word: "ListedAnnotation") -> str:
    """The source of an annotation, and whether its field no longer exists."""
    name = word.author if word.by == "user" and word.author else word.by or ""
    return name if word.state == "said" else f"{name} (the field is gone)"


def shortened(text: str) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
