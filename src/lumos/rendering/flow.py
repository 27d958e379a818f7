"""A flow diagram (Sankey) of cost through lineage."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from lumos.rendering.charts import shorten_name, tag, text, title
from lumos.rendering.layout import layers

_WIDTH: Final = 1160
_BAR_WIDTH: Final = 16
_GAP: Final = 20
_TOP: Final = 30
_LABEL_WIDTH: Final = 190
_MAX_NAME_LENGTH: Final = 27
# Thinner bands are hard to point at with the mouse.
_MIN_BAND_WIDTH: Final = 1.5
_MAX_HEIGHT: Final = 560
_MIN_HEIGHT: Final = 160


class FlowNode(NamedTuple):
    """A dataset in the diagram, with amounts in micro-units.

    `direct` is the cost of the dataset itself and of the jobs that write it, `retained` the cost
    that is not passed on. The rest comes from or goes to other datasets, which may be missing in
    the diagram. An `unneeded` dataset has no known consumer.
    """

    key: str
    name: str
    team: str
    total: int
    direct: int
    retained: int
    unneeded: bool = False


class FlowBand(NamedTuple):
    """Cost that one dataset passes on to another."""

    upstream: str
    downstream: str
    amount: int


class _Box(NamedTuple):
    x: float
    y: float
    height: float


def flow(nodes: Sequence[FlowNode], bands: Sequence[FlowBand], money: Callable[[int], str]) -> str:
    """The diagram as SVG."""
    by_key = {node.key: node for node in nodes}
    visible = [band for band in bands if band.amount > 0 and band.upstream != band.downstream]
    columns = layers(list(by_key), [(band.upstream, band.downstream) for band in visible])
    scale, height = _scale(columns, by_key)
    boxes = _boxes(columns, by_key, scale, height)
    # Omit bands that would run from right to left: those close a cycle.
    forward = [band for band in visible if boxes[band.upstream].x < boxes[band.downstream].x]
    shapes = [
        *_render_bands(forward, boxes, by_key, scale, money),
        *(_render_node(by_key[key], boxes[key], scale, money) for key in boxes),
        *(_label(by_key[key], boxes[key], money) for key in boxes),
    ]
    return tag(
        "svg",
        *shapes,
        class_="flow",
        viewBox=f"0 0 {_WIDTH} {height + _TOP + 10:.0f}",
        role="img",
        aria_label="Cost flow through lineage",
    )


def _scale(columns: Sequence[Sequence[str]], nodes: Mapping[str, FlowNode]) -> tuple[float, float]:
    """The number of pixels per micro-unit, and the height of the diagram."""
    max_boxes = max((len(column) for column in columns), default=1)
    height = min(_MAX_HEIGHT + 14 * max_boxes, max(_MIN_HEIGHT, 120 * max_boxes))
    sums = [(sum(max(nodes[key].total, 0) for key in column), len(column)) for column in columns]
    scales = [(height - _GAP * (count - 1)) / amount for amount, count in sums if amount > 0]
    return min(scales, default=0.0), float(height)


def _boxes(
    columns: Sequence[Sequence[str]], nodes: Mapping[str, FlowNode], scale: float, height: float
) -> dict[str, _Box]:
    step = (_WIDTH - _LABEL_WIDTH - _BAR_WIDTH) / max(len(columns) - 1, 1)
    boxes: dict[str, _Box] = {}
    for number, column in enumerate(columns):
        sizes = [max(nodes[key].total * scale, _MIN_BAND_WIDTH) for key in column]
        free = height - sum(sizes)
        gap = max(min(free / (len(column) + 1), 3 * _GAP), 2)
        y = _TOP + max((height - sum(sizes) - gap * (len(column) - 1)) / 2, 0)
        for key, size in zip(column, sizes, strict=True):
            boxes[key] = _Box(number * step, y, size)
            y += size + gap
    return boxes


def _render_bands(
    bands: Sequence[FlowBand],
    boxes: Mapping[str, _Box],
    nodes: Mapping[str, FlowNode],
    scale: float,
    money: Callable[[int], str],
) -> list[str]:
    out_y = {key: box.y for key, box in boxes.items()}
    in_y = dict(out_y)
    starts: dict[FlowBand, float] = {}
    for band in sorted(bands, key=lambda each: (boxes[each.downstream].y, each)):
        starts[band] = out_y[band.upstream]
        out_y[band.upstream] += band.amount * scale
    shapes = []
    for band in sorted(bands, key=lambda each: (boxes[each.upstream].y, each)):
        width = band.amount * scale
        x, end = boxes[band.upstream].x + _BAR_WIDTH, boxes[band.downstream].x
        y, end_y = starts[band] + width / 2, in_y[band.downstream] + width / 2
        in_y[band.downstream] += width
        middle = (x + end) / 2
        path = (
            f"M{x:.1f} {y:.1f}C{middle:.1f} {y:.1f} {middle:.1f} {end_y:.1f} {end:.1f} {end_y:.1f}"
        )
        names = f"{nodes[band.upstream].name} → {nodes[band.downstream].name}"
        shapes.append(
            tag(
                "path",
                title(f"{names}: {money(band.amount)}"),
                class_="band",
                d=path,
                stroke_width=max(width, 0.6),
            )
        )
    return shapes


def _render_node(node: FlowNode, box: _Box, scale: float, money: Callable[[int], str]) -> str:
    """A bar for the total; its left half marks direct cost, its right half retained cost."""
    half = _BAR_WIDTH / 2
    direct, retained = (
        min(max(amount * scale, 0.0), box.height) for amount in (node.direct, node.retained)
    )
    parts = [
        title(
            f"{node.name} ({node.team})\ntotal cost {money(node.total)}"
            f"\nown and job cost {money(node.direct)}"
            f"\nupstream cost {money(node.total - node.direct)}\nretained {money(node.retained)}"
            + ("\nunused: no use is known" if node.unneeded else "")
        ),
        tag("rect", class_="whole", x=box.x, y=box.y, width=_BAR_WIDTH, height=box.height),
    ]
    # Bands use the upper part of a bar, so direct and retained cost are at the bottom.
    retained_class = "unneeded" if node.unneeded else "kept"
    for amount, name, x in ((direct, "spent", box.x), (retained, retained_class, box.x + half)):
        if amount > 0:
            y = box.y + box.height - amount
            parts.append(tag("rect", class_=name, x=x, y=y, width=half, height=amount))
    return tag("g", *parts, class_="stop")


def _label(node: FlowNode, box: _Box, money: Callable[[int], str]) -> str:
    x, y = box.x + _BAR_WIDTH + 6, box.y + min(box.height / 2, 40) + 4
    name, amount = shorten_name(node.name, _MAX_NAME_LENGTH), money(node.total)
    if box.height < 26:
        return text(f"{name}  {amount}", class_="name", x=x, y=y)
    return text(name, class_="name", x=x, y=y - 7) + text(amount, class_="amount", x=x, y=y + 9)
