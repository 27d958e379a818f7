"""Datasets with the same columns on screens: one line to join them, one row for many of them."""

from collections.abc import Callable, Iterable, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TypeVar

import typer

if TYPE_CHECKING:
    from lumos.model.discovery import Suggestion

_MOST_LINES: Final = 3
_NAMES_SHOWN: Final = 3
_PATTERNS_SHOWN: Final = 10
# More similar datasets than this are one row.
_MOST_ROWS: Final = 20

T = TypeVar("T")

ShowAll = Annotated[
    bool, typer.Option("--all", help="List every dataset; do not fold similar ones.")
]


class Folded(NamedTuple):
    """Several datasets in one row."""

    datasets: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def title(self) -> str:
        """The first and the last name, and how many there are."""
        ordered = sorted(self.names)
        return f"{ordered[0]} ... {ordered[-1]} ({len(self.datasets):,} similar datasets)"


def fold_similar(
    datasets: Sequence[T],
    families: Iterable[Folded],
    urn_of: Callable[[T], str],
    *,
    show_all: bool,
) -> list[T | Folded]:
    """The rows of a screen: datasets, and one row for each large family."""
    row_of = {
        urn: each
        for each in families
        if len(each.datasets) > _MOST_ROWS and not show_all
        for urn in each.datasets
    }
    rows: list[T | Folded] = []
    seen: set[Folded] = set()
    for dataset in datasets:
        folded = row_of.get(urn_of(dataset))
        if folded is None:
            rows.append(dataset)
        elif folded not in seen:
            seen.add(folded)
            rows.append(folded)
    return rows


def families_of(suggestions: "Iterable[Suggestion]") -> Iterable[Folded]:
    """The datasets that a scan suggests to join."""
    return (Folded(each.datasets, each.names) for each in suggestions)


def print_suggestions(suggestions: "Sequence[Suggestion]") -> None:
    """One line for datasets that have the same columns, and the command that joins them."""
    from lumos.cli.screen import stdout
    from lumos.schemas.wording import few

    console = stdout()
    shown, more_groups = few(suggestions, _MOST_LINES)
    for each in shown:
        more = ", ..." if len(each.names) > _NAMES_SHOWN else ""
        names = ", ".join(each.names[:_NAMES_SHOWN]) + more
        console.print(
            f"{len(each.datasets):,} datasets have the same columns ({names}). {_advice(each)}"
        )
    if more_groups:
        console.print(f"... and {more_groups:,} more groups; --json lists them.")


def _advice(suggestion: "Suggestion") -> str:
    if 0 < len(suggestion.hint) <= _PATTERNS_SHOWN:
        patterns = " ".join(map(quote, suggestion.hint))
        return f"Join them with: lumos hint add {patterns} --name {quote(suggestion.name)}"
    if suggestion.join_similar:
        return "Join them with 'join_similar: true' on the source."
    return "No short pattern matches them alone; --json lists them."
