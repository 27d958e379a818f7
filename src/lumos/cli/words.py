"""What the commands on owners and enrichment share: options, and how their answers look."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.lines import say

if TYPE_CHECKING:
    from lumos.engine.people.reports import SaidWord, WordListReport, WordsReport

_MOST: Final = 20
_LONGEST: Final = 70

Datasets = Annotated[
    str,
    typer.Argument(
        metavar="DATASET",
        help="A URN, a name that only one dataset has, or a pattern such as 'sales/*'.",
        show_default=False,
    ),
]
SomeDatasets = Annotated[
    str | None,
    typer.Argument(
        metavar="[DATASET]", help="Only of this dataset, or of those that fit a pattern."
    ),
]
Fields = Annotated[
    list[str] | None,
    typer.Option(
        "--field",
        "-f",
        metavar="PATH",
        help="A field instead of the dataset, nested ones as address.city; several times if "
        "needed, also as a pattern such as '*_email'.",
        show_default=False,
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")
]
Mine = Annotated[
    bool,
    typer.Option(
        "--mine", help="Only take back what was said by hand; what others say counts again."
    ),
]


def print_words(report: "WordsReport") -> None:
    """What a command changed, in a line for each dataset and a sum."""
    from lumos.cli.screen import aligned, plural

    rows = [(each.name, each.urn, "; ".join(each.changes)) for each in report.datasets[:_MOST]]
    for line in aligned(("DATASET", "URN", "WHAT"), rows):
        say(line)
    if (more := len(report.datasets) - _MOST) > 0:
        say(f"... and {plural(more, 'more dataset')}; --json lists them.")
    for item in report.items:
        say(f"{item}{' would be written' if report.dry_run else ''}")
    verb = "would change" if report.dry_run else "changed"
    rest = report.matched - report.changed
    others = f", {rest:,} stayed as they were" if rest else ""
    say(f"{plural(report.changed, 'dataset')} {verb}{others}.")
    for kept in report.kept[:_MOST]:
        place = f"{kept.urn} {kept.field}".strip()
        say(f"{place}: {kept.what} stays as {kept.by} said.", err=True)
    if (more := len(report.kept) - _MOST) > 0:
        say(f"... and {plural(more, 'more word')} of others stay.", err=True)
    for remark in report.remarks:
        say(remark, err=True)


def print_list(report: "WordListReport", *, noun: str, whole: bool) -> None:
    """What is said: how often each thing, or every word of the datasets that were asked for."""
    from lumos.cli.screen import aligned, plural

    if whole and not any(word.state != "said" for word in report.words):
        counts = [
            (label.name, f"{label.datasets:,}", f"{label.fields:,}") for label in report.labels
        ]
        for line in aligned((noun.upper(), "DATASETS", "FIELDS"), counts):
            say(line)
    else:
        has_values = any(word.value for word in report.words)
        heads = ("DATASET", "FIELD", noun.upper(), *(("VALUE",) if has_values else ()), "BY", "URN")
        rows = [
            (
                word.dataset,
                word.field or "-",
                word.name or word.slot.replace("_", " "),
                *((shortened(word.value or ""),) if has_values else ()),
                _by(word),
                word.urn,
            )
            for word in report.words
        ]
        for line in aligned(heads, rows):
            say(line)
    if not report.words:
        say(f"No {noun} on {plural(report.datasets, 'dataset')}.")


def _by(word: "SaidWord") -> str:
    """Who says something, and that it is said of a field that is not there now."""
    name = word.author if word.by == "user" and word.author else word.by or ""
    return name if word.state == "said" else f"{name} (the field is gone)"


def shortened(text: str) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
