"""Output shared by commands that scan: sizes, problems, and folded lists of similar datasets."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TypeVar

import typer

from lumos.cli.screen import stdout
from lumos.cli.text import is_quiet, print_line, print_problem, print_remark
from lumos.config.sources import store_of
from lumos.rendering.text import few, format_number, format_size, plural

if TYPE_CHECKING:
    from lumos.discovery.reports import DatasetReport
    from lumos.model.discovery import Problem, Suggestion

_MAX_LINES: Final = 3
_MAX_NAMES: Final = 3
_MAX_PATTERNS: Final = 10
# Larger families of similar datasets are folded into one row.
_MAX_UNFOLDED_SIZE: Final = 20
_MAX_PROBLEMS: Final = 20
# Table formats of lakes: a table without files has the file count 0.
_TABLE_FORMATS: Final = ("delta", "hudi", "iceberg")

T = TypeVar("T")

ShowAll = Annotated[
    bool, typer.Option("--all", help="List every dataset; do not fold similar ones.")
]


class DatasetFamily(NamedTuple):
    """Similar datasets, which may be folded into one row."""

    datasets: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def title(self) -> str:
        """The first and the last name, and the number of datasets."""
        ordered = sorted(self.names)
        return f"{ordered[0]} ... {ordered[-1]} ({len(self.datasets):,} similar datasets)"


def fold_similar(
    datasets: Sequence[T],
    families: Iterable[DatasetFamily],
    urn_of: Callable[[T], str],
    *,
    show_all: bool,
) -> Iterator[T | DatasetFamily]:
    """The rows of a list of datasets; each large family is one row."""
    family_of = {
        urn: each
        for each in families
        if len(each.datasets) > _MAX_UNFOLDED_SIZE and not show_all
        for urn in each.datasets
    }
    added: set[DatasetFamily] = set()
    for dataset in datasets:
        family = family_of.get(urn_of(dataset))
        if family is None:
            yield dataset
        elif family not in added:
            added.add(family)
            yield family


def families_of(suggestions: "Iterable[Suggestion]") -> Iterable[DatasetFamily]:
    """The datasets that a scan suggests to join."""
    return (DatasetFamily(each.datasets, each.names) for each in suggestions)


def print_suggestions(suggestions: "Sequence[Suggestion]") -> None:
    """Print a line for each set of datasets with the same columns, and how to join them."""
    console = stdout()
    listed, more_groups = few(suggestions, _MAX_LINES)
    for each in listed:
        more = ", ..." if len(each.names) > _MAX_NAMES else ""
        names = ", ".join(each.names[:_MAX_NAMES]) + more
        console.print(
            f"{len(each.datasets):,} datasets have the same columns ({names}). {_advice(each)}"
        )
    if more_groups:
        console.print(f"... and {more_groups:,} more groups; --json lists them.")


def _advice(suggestion: "Suggestion") -> str:
    if 0 < len(suggestion.hint) <= _MAX_PATTERNS:
        patterns = " ".join(map(quote, suggestion.hint))
        return f"Join them with: lumos hint add {patterns} --name {quote(suggestion.name)}"
    if suggestion.join_similar:
        return "Join them with 'join_similar: true' on the source."
    return "No short pattern matches only these datasets; --json lists them."


def format_file_count(count: int, format: str | None) -> str:
    """The number of files; empty for a database table, and 0 for a lake table without files."""
    return f"{count:,}" if count or format in _TABLE_FORMATS else ""


def format_statistics(dataset: "DatasetReport") -> tuple[str, str, str]:
    """The numbers of files, rows and bytes; empty for files of a database table, and for views."""
    statistics = dataset.statistics
    if statistics is None:
        return "?", "?", "?"
    if dataset.format == "view":
        return "", "", ""
    return (
        format_file_count(statistics.file_count, dataset.format),
        format_number(statistics.row_count, exact=statistics.row_count_exact),
        format_known_size(statistics.total_size_bytes, exact=statistics.total_size_exact),
    )


def format_known_size(count: int, *, exact: bool) -> str:
    """The size, or "" if it is unknown, for example for a table in a metastore."""
    return format_size(count, exact=exact) if count or exact else ""


def format_scope(files: int, tables: int) -> str:
    """The number of files and tables that a scan listed: `3 files and 2 tables`."""
    counts = ((files, "file"), (tables, "table"))
    return " and ".join(plural(count, noun) for count, noun in counts if count)


def print_skipped(files: int) -> None:
    """Print the number of skipped files, which belong to no dataset."""
    if files:
        verbs = "is not data was" if files == 1 else "are not data were"
        stdout().print(
            f"{plural(files, 'file')} that {verbs} skipped; lumos explain PATH shows why."
        )


def print_nothing_found(roots: "Sequence[str]") -> None:
    """Print that a scan found no dataset, and what to check."""
    advice = (
        "Lumos finds tables, views, collections and topics; check the names and patterns."
        if all("://" in root and store_of(root) is None for root in roots)
        else "Lumos finds Parquet, Avro, ORC, CSV and JSON files and Delta, Iceberg and Hudi "
        "tables; check the path and patterns."
    )
    print_line(f"lumos: No dataset was found in {', '.join(roots)}. {advice}", err=True)


def print_problems(problems: "Sequence[Problem]") -> None:
    """Print the first problems of a scan on stderr, unless --quiet was given."""
    if is_quiet():
        return
    listed, more = few(problems, _MAX_PROBLEMS)
    for each in listed:
        print_note = print_remark if each.remark else print_problem
        print_note(f"{each.path}: {each.reason} ({each.code})")
    if more:
        print_problem(f"... and {more:,} more; --json lists them")
