"""A picture in the language of Mermaid, which many pages of Markdown draw by themselves."""

import re
from collections.abc import Iterator
from typing import Final

from lumos.lineage.drawing.picture import Picture

_ARROWS: Final = {"VIEW": "-.->", "COPIED": "==>", "TRANSFORMED": "-->"}
_COLOURS: Final = {"breaking": "#c0392b", "undetermined": "#d68910", "compatible": "#1e8449"}
# Mermaid reads entities by number with a # in the place of &#.
_UNSAFE: Final = re.compile(r"[^\w .,/:@+=-]")


def mermaid(picture: Picture) -> str:
    """The picture as a flowchart."""
    return "\n".join(_lines(picture)) + "\n"


def _lines(picture: Picture) -> Iterator[str]:
    yield "flowchart LR"
    ids = {box.urn: f"n{number}" for number, box in enumerate(picture.boxes)}
    for box in picture.boxes:
        label = "<br/>".join(map(_escaped, (box.name, box.platform, *box.columns)))
        yield f'  {ids[box.urn]}["{label}"]'
    for arrow in picture.arrows:
        count = len(arrow.columns)
        label = f"|{count} column{'' if count == 1 else 's'}|" if count else ""
        yield f"  {ids[arrow.upstream]} {_ARROWS[arrow.type]}{label} {ids[arrow.downstream]}"
    if picture.urn in ids:
        yield f"  style {ids[picture.urn]} stroke-width:3px"
    for box in picture.boxes:
        if box.mark is not None:
            yield f"  style {ids[box.urn]} stroke:{_COLOURS[box.mark]}"
    for number, arrow in enumerate(picture.arrows):
        if arrow.mark is not None:
            yield f"  linkStyle {number} stroke:{_COLOURS[arrow.mark]}"


def _escaped(text: str) -> str:
    return _UNSAFE.sub(lambda match: f"#{ord(match.group())};", text)
