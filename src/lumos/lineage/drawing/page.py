"""A picture as one self-contained page, to pan, zoom and click; it asks nothing of the network."""

import json
from importlib.resources import files
from typing import Any, Final

import msgspec

from lumos.lineage.drawing.picture import Picture
from lumos.rendering.layout import layers

_WIDTH: Final = 260
_GAP: Final = 120
_HEAD: Final = 46
_ROW: Final = 20
_SPACE: Final = 26
# More columns than that are folded; the panel beside the picture lists them all.
MOST_COLUMNS: Final = 12


def page(picture: Picture, *, title: str) -> str:
    """The page as HTML."""
    parts = files("lumos.lineage.drawing").joinpath("page")
    template = parts.joinpath("page.html").read_text("utf-8")
    fills = {
        "TITLE": _escaped(title),
        "STYLE": parts.joinpath("page.css").read_text("utf-8"),
        "SCRIPT": parts.joinpath("page.js").read_text("utf-8"),
        "PICTURE": _json(_placed(picture)),
    }
    # One pass: what is filled in may hold the marks itself.
    pieces = template.split("@@")
    return "".join(fills[piece] if number % 2 else piece for number, piece in enumerate(pieces))


def _placed(picture: Picture) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(picture)
    boxes = {box["urn"]: box for box in plain.get("boxes", ())}
    arrows = [(arrow.upstream, arrow.downstream) for arrow in picture.arrows]
    for number, layer in enumerate(layers(list(boxes), arrows)):
        heights = [_height(boxes[urn]) for urn in layer]
        top = -(sum(heights) + _SPACE * (len(layer) - 1)) / 2
        for urn, height in zip(layer, heights, strict=True):
            boxes[urn] |= {"x": number * (_WIDTH + _GAP), "y": top, "w": _WIDTH, "h": height}
            top += height + _SPACE
    return plain | {"head": _HEAD, "row": _ROW, "most": MOST_COLUMNS}


def _height(box: dict[str, Any]) -> int:
    count = len(box.get("columns", ()))
    rows = count if count <= MOST_COLUMNS else MOST_COLUMNS + 1
    return _HEAD + rows * _ROW + (8 if rows else 0)


def _json(value: object) -> str:
    """JSON that no word in it can lead out of the script it stands in."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
