"""A picture in the language of Graphviz."""

from collections.abc import Iterator
from typing import Final

from lumos.lineage.drawing.picture import Picture

_COLOURS: Final = {"breaking": "#c0392b", "undetermined": "#d68910", "compatible": "#1e8449"}
_STYLES: Final = {"VIEW": "dashed", "COPIED": "bold", "TRANSFORMED": "solid"}


def dot(picture: Picture) -> str:
    """The picture as a digraph."""
    return "\n".join(_lines(picture)) + "\n"


def _lines(picture: Picture) -> Iterator[str]:
    yield "digraph lineage {"
    yield "  rankdir=LR;"
    yield '  node [shape=box, style="rounded,filled", fillcolor=white, fontname="Helvetica"];'
    yield '  edge [fontname="Helvetica", fontsize=10];'
    for box in picture.boxes:
        label = "\n".join((box.name, box.platform, *box.columns))
        facts = {"label": label, "tooltip": box.urn}
        if box.urn == picture.urn:
            facts["fillcolor"] = "#dce9f7"
        if box.mark is not None:
            facts["color"] = _COLOURS[box.mark]
        yield f"  {_quoted(box.urn)} [{_facts(facts)}];"
    for arrow in picture.arrows:
        facts = {"style": _STYLES[arrow.type]}
        if arrow.columns:
            facts["label"] = (
                f"{len(arrow.columns)} columns"
                if len(arrow.columns) > 1
                else (f"{arrow.columns[0].upstream} -> {arrow.columns[0].downstream}")
            )
        if arrow.mark is not None:
            facts["color"] = _COLOURS[arrow.mark]
        yield f"  {_quoted(arrow.upstream)} -> {_quoted(arrow.downstream)} [{_facts(facts)}];"
    yield "}"


def _facts(facts: dict[str, str]) -> str:
    return ", ".join(f"{name}={_quoted(value)}" for name, value in facts.items())


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "").replace("\n", "\\n")
    return f'"{escaped}"'
