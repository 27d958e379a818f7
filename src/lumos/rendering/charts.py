"""SVG elements and bar charts; all texts are escaped."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Final, NamedTuple

from lumos.model.cost import COST_TYPES


def tag(name: str, *content: str, **attributes: object) -> str:
    """An SVG element; `_` in attribute names becomes `-`, and `class_` becomes `class`."""
    rendered = "".join(
        f' {attribute.rstrip("_").replace("_", "-")}="{escape(_format_value(value))}"'
        for attribute, value in attributes.items()
    )
    inner = "".join(content)
    return f"<{name}{rendered}>{inner}</{name}>" if inner else f"<{name}{rendered}/>"


def text(content: str, **attributes: object) -> str:
    return tag("text", escape(content), **attributes)


def title(content: str) -> str:
    """A tooltip."""
    return tag("title", escape(content))


def shorten_name(name: str, max_length: int) -> str:
    """Truncate the beginning of a long name: the end is more specific."""
    return name if len(name) <= max_length else f"…{name[1 - max_length :]}"


def _format_value(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


_WIDTH: Final = 560
_ROW_HEIGHT: Final = 26
_NAMES_WIDTH: Final = 176
_AMOUNTS_WIDTH: Final = 92
_MAX_NAME_LENGTH: Final = 22
_CHART_HEIGHT: Final = 190
_FOOT_HEIGHT: Final = 40
_LEFT_MARGIN: Final = 64
_MAX_COLUMN_WIDTH: Final = 64

FormatMoney = Callable[[int], str]


class Bar(NamedTuple):
    """An amount with its parts, in micro-units."""

    name: str
    amount: int
    parts: Mapping[str, int]
    note: str = ""
    is_current: bool = False


def colour_of(part: str) -> str:
    """The CSS class of a part's colour, the same in all charts."""
    return f"part{COST_TYPES.index(part)}" if part in COST_TYPES else f"part{len(COST_TYPES)}"


def sort_parts(parts: Iterable[str]) -> list[str]:
    """The distinct parts, in the order that all charts use."""
    order: dict[str, int] = {part: number for number, part in enumerate(COST_TYPES)}
    return sorted(dict.fromkeys(parts), key=lambda part: order.get(part, len(order)))


def bars(rows: Sequence[Bar], parts: Sequence[str], money: FormatMoney, *, label: str) -> str:
    """A horizontal bar chart."""
    max_amount = max((row.amount for row in rows), default=0)
    bar_width = _WIDTH - _NAMES_WIDTH - _AMOUNTS_WIDTH
    shapes = []
    for number, row in enumerate(rows):
        y = number * _ROW_HEIGHT
        shapes.append(
            text(
                shorten_name(row.name, _MAX_NAME_LENGTH),
                class_="name",
                x=_NAMES_WIDTH - 8,
                y=y + 17,
                text_anchor="end",
            )
        )
        x = float(_NAMES_WIDTH)
        pieces = []
        for part in parts:
            width = (
                max(row.parts.get(part, 0), 0) / max_amount * bar_width if max_amount > 0 else 0.0
            )
            if width > 0:
                pieces.append(
                    tag("rect", class_=colour_of(part), x=x, y=y + 4, width=width, height=18)
                )
                x += width
        shapes.append(tag("g", title(_tooltip_text(row, parts, money)), *pieces))
        shapes.append(text(money(row.amount), class_="amount", x=x + 7, y=y + 17))
    return _chart(shapes, max(len(rows) * _ROW_HEIGHT, 1), label)


def columns(rows: Sequence[Bar], parts: Sequence[str], money: FormatMoney, *, label: str) -> str:
    """A column chart, the earliest column at the left."""
    top = _round_up(max((row.amount for row in rows), default=0))
    step = (_WIDTH - _LEFT_MARGIN) / max(len(rows), 1)
    width = min(step * 0.66, _MAX_COLUMN_WIDTH)
    base = 14 + _CHART_HEIGHT
    shapes = []
    for share in (0, 0.5, 1):
        y = base - share * _CHART_HEIGHT
        shapes.append(tag("line", class_="grid", x1=_LEFT_MARGIN, x2=_WIDTH, y1=y, y2=y))
        amount = money(round(top * share)).removesuffix(".00")
        shapes.append(text(amount, class_="axis", x=_LEFT_MARGIN - 8, y=y + 4, text_anchor="end"))
    # At most nine columns have a label, including the last one.
    label_interval = max(1, -(-len(rows) // 9))
    for number, row in enumerate(rows):
        x = _LEFT_MARGIN + step * number + (step - width) / 2
        y = float(base)
        pieces = []
        for part in parts:
            height = max(row.parts.get(part, 0), 0) / top * _CHART_HEIGHT
            y -= height
            name = colour_of(part) + (" now" if row.is_current else "")
            pieces.append(tag("rect", class_=name, x=x, y=y, width=width, height=height))
        shapes.append(tag("g", title(_tooltip_text(row, parts, money)), *pieces))
        if (len(rows) - 1 - number) % label_interval == 0:
            middle = x + width / 2
            shapes.append(
                text(row.name, class_="axis", x=middle, y=base + 17, text_anchor="middle")
            )
            if row.note:
                shapes.append(
                    text(row.note, class_="axis", x=middle, y=base + 32, text_anchor="middle")
                )
    return _chart(shapes, base + _FOOT_HEIGHT, label)


def _chart(shapes: Sequence[str], height: int, label: str) -> str:
    size = f"0 0 {_WIDTH} {height}"
    return tag("svg", *shapes, class_="chart", viewBox=size, role="img", aria_label=label)


def _tooltip_text(row: Bar, parts: Sequence[str], money: FormatMoney) -> str:
    lines = [f"{row.name}: {money(row.amount)}"]
    lines += [f"{part} {money(row.parts[part])}" for part in parts if row.parts.get(part)]
    return "\n".join(lines)


def _round_up(amount: int) -> int:
    """The smallest round number that is not below the amount, such as 1200, 1500 or 2000."""
    if amount <= 0:
        return 1
    power: int = 10 ** (len(str(amount)) - 1)
    steps = (power * tenths // 10 for tenths in (10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100))
    return next(step for step in steps if step >= amount)
