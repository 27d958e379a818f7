"""Schema changes as text: the change, its verdict and the downstream datasets that break."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from lumos.cli.screen import Table, stdout
from lumos.cli.text import escape
from lumos.rendering.text import shorten

if TYPE_CHECKING:
    from rich.text import Text

    from lumos.model.change import Verdict
    from lumos.schemas.findings import ChangeRow, ChangeValue
    from lumos.schemas.report_parts import AffectedReport

STYLES: Final = {
    "breaking": "bold red",
    "undetermined": "yellow",
    "compatible": "green",
    "informational": "dim",
}
CHANGE_LABELS: Final = {
    "added": "added",
    "removed": "removed",
    "type_changed": "changed",
    "nullability": "nullable",
    "default": "default",
    "description": "comment",
    "tags": "tags",
    "key": "key",
    "partitioning": "partition",
    "reordered": "reordered",
}
# Labels for false and true, by kind of change.
_BOOLEAN_LABELS: Final = {
    "nullability": ("NOT NULL", "NULL"),
    "key": ("no key", "key"),
    "partitioning": ("no partition", "partition"),
}
_MAX_SIDE_LENGTH: Final = 120
# Minimum widths, so that the tables of several datasets are aligned unless a name is very long.
_WIDTHS: Final = (10, 23, 27)


def changes_table(changes: "Iterable[ChangeRow]", *, notes: bool = False) -> Table:
    """Changes with both sides and the verdict: `removed  discount  DECIMAL(9,2)  BREAKING`."""
    from lumos.schemas.renames import RENAME_NOTE

    table = Table("", "", "", "", widths=_WIDTHS)
    for change in changes:
        verdict = _verdict(change)
        for note in change.notes:
            if notes or note.startswith(RENAME_NOTE):
                verdict.append(f"\n  {note}", style="dim")
        text = "columns" if change.kind == "reordered" else "(whole dataset)"
        table.add(f"  {CHANGE_LABELS[change.kind]}", change.path or text, _sides(change), verdict)
    return table


def print_changes(
    changes: "Iterable[ChangeRow]",
    affected: "AffectedReport | None",
    *,
    limit: int,
    more_command: str,
) -> None:
    """Print changes, each with at most `limit` downstream datasets that it breaks or may break.

    `more_command` is the command that lists the others.
    """
    console = stdout()
    uses: dict[str, list[tuple[str, str]]] = {}
    unnamed = 0
    if affected is not None:
        for each in affected.datasets:
            for use in each.uses:
                uses.setdefault(use.path, []).append((use.sentence, STYLES[each.verdict.value]))
        unnamed = affected.breaking + affected.undetermined - len(affected.datasets)

    def print_affected(path: str) -> None:
        nonlocal unnamed
        lines = uses.pop(path)
        for sentence, style in lines[:limit]:
            console.print(f"    {sentence}", style=style)
        if (more := len(lines) - limit + unnamed) > 0:
            console.print(f"    ... and {more:,} more: {more_command}")
        unnamed = 0

    rows: list[ChangeRow] = []
    for change in changes:
        rows.append(change)
        if change.path in uses:
            console.print(changes_table(rows))
            print_affected(change.path)
            rows.clear()
    console.print(changes_table(rows))
    for path in tuple(uses):
        print_affected(path)
    if affected is not None and affected.problem is not None:
        console.print(f"    {affected.summary}: {affected.problem}", style=STYLES["undetermined"])


def verdict_text(verdict: "Verdict | None") -> "Text":
    """The text for a verdict that raises the major version; empty for other verdicts."""
    from rich.text import Text

    texts = {"breaking": "BREAKING", "undetermined": "undetermined"}
    return Text(texts.get(verdict or "", ""), style=STYLES.get(verdict or "", ""))


def _verdict(change: "ChangeRow") -> "Text":
    from rich.text import Text

    verdict = change.consumer.value
    text = Text(verdict.upper() if verdict == "breaking" else verdict, style=STYLES[verdict])
    if change.storage.value == "breaking" != verdict:
        text.append(", old data BREAKING", style="red")
    if change.flags:
        text.append(f"  [{', '.join(change.flags)}]", style="dim")
    return text


def _sides(change: "ChangeRow") -> "Text":
    from rich.text import Text

    labels = _BOOLEAN_LABELS.get(change.kind, ("no", "yes"))
    text = Text()
    for side, style in ((change.before, "red"), (change.after, "green")):
        if side is not None:
            text.append(" -> " if text else "", style="dim")
            text.append(_side(side, labels), style=style)
    return text


def _side(side: "ChangeValue", labels: tuple[str, str]) -> str:
    if isinstance(side, bool):
        return labels[side]
    text = ", ".join(side) if isinstance(side, tuple) else str(side)
    return shorten(escape(text), _MAX_SIDE_LENGTH)
