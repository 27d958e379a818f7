"""Bars of datasets and teams, and columns of months."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from lumos.model.metering import COST_TYPES
from lumos.rendering.svg import shortened, tag, text, title

_WIDTH: Final = 560
_ROW: Final = 26
_NAMES: Final = 176
_AMOUNTS: Final = 92
_LONGEST: Final = 22
_CHART: Final = 190
_FOOT: Final = 40
_LEFT: Final = 64
_WIDEST_COLUMN: Final = 64

_ORDER: Final[tuple[str, ...]] = COST_TYPES

Money = Callable[[int], str]


class Bar(NamedTuple):
    """Something with an amount, and the parts that it is made of, in micro-units."""

    name: str
    amount: int
    parts: Mapping[str, int]
    note: str = ""
    is_now: bool = False


def colour_of(part: str) -> str:
    """The class of a part's colour, the same in every picture."""
    return f"part{_ORDER.index(part)}" if part in _ORDER else f"part{len(_ORDER)}"


def in_order(parts: Iterable[str]) -> list[str]:
    """Parts in the order of all pictures."""
    known = list(dict.fromkeys(parts))
    return [each for each in _ORDER if each in known] + [
        each for each in known if each not in _ORDER
    ]


def bars(rows: Sequence[Bar], parts: Sequence[str], money: Money, *, label: str) -> str:
    """Bars that lie, one below the other."""
    most = max((row.amount for row in rows), default=0)
    room = _WIDTH - _NAMES - _AMOUNTS
    shapes = []
    for number, row in enumerate(rows):
        y = number * _ROW
        shapes.append(
            text(
                shortened(row.name, _LONGEST),
                class_="name",
                x=_NAMES - 8,
                y=y + 17,
                text_anchor="end",
            )
        )
        x = float(_NAMES)
        pieces = []
        for part in parts:
            width = max(row.parts.get(part, 0), 0) / most * room if most > 0 else 0.0
            if width > 0:
                pieces.append(
                    tag("rect", class_=colour_of(part), x=x, y=y + 4, width=width, height=18)
                )
                x += width
        shapes.append(tag("g", title(_hover(row, parts, money)), *pieces))
        shapes.append(text(money(row.amount), class_="amount", x=x + 7, y=y + 17))
    height = max(len(rows) * _ROW, 1)
    return tag(
        "svg",
        *shapes,
        class_="chart",
        viewBox=f"0 0 {_WIDTH} {height}",
        role="img",
        aria_label=label,
    )


def columns(rows: Sequence[Bar], parts: Sequence[str], money: Money, *, label: str) -> str:
    """Columns that stand side by side, the earliest at the left."""
    top = _round_above(max((row.amount for row in rows), default=0))
    step = (_WIDTH - _LEFT) / max(len(rows), 1)
    width = min(step * 0.66, _WIDEST_COLUMN)
    base = 14 + _CHART
    shapes = []
    for share in (0, 0.5, 1):
        y = base - share * _CHART
        shapes.append(tag("line", class_="grid", x1=_LEFT, x2=_WIDTH, y1=y, y2=y))
        amount = money(round(top * share)).removesuffix(".00")
        shapes.append(text(amount, class_="axis", x=_LEFT - 8, y=y + 4, text_anchor="end"))
    every = max(1, -(-len(rows) // 9))
    for number, row in enumerate(rows):
        x = _LEFT + step * number + (step - width) / 2
        y = float(base)
        pieces = []
        for part in parts:
            height = max(row.parts.get(part, 0), 0) / top * _CHART
            y -= height
            name = colour_of(part) + (" now" if row.is_now else "")
            pieces.append(tag("rect", class_=name, x=x, y=y, width=width, height=height))
        shapes.append(tag("g", title(_hover(row, parts, money)), *pieces))
        if (len(rows) - 1 - number) % every == 0:
            middle = x + width / 2
            shapes.append(
                text(row.name, class_="axis", x=middle, y=base + 17, text_anchor="middle")
            )
            if row.note:
                shapes.append(
                    text(row.note, class_="axis", x=middle, y=base + 32, text_anchor="middle")
                )
    return _picture(shapes, base + _FOOT, label)


def _picture(shapes: Sequence[str], height: int, label: str) -> str:
    size = f"0 0 {_WIDTH} {height}"
    return tag("svg", *shapes, class_="chart", viewBox=size, role="img", aria_label=label)


def _hover(row: Bar, parts: Sequence[str], money: Money) -> str:
    lines = [f"{row.name}: {money(row.amount)}"]
    lines += [f"{part} {money(row.parts[part])}" for part in parts if row.parts.get(part)]
    return "\n".join(lines)


def _round_above(amount: int) -> int:
    """The next amount that is easily read."""
    if amount <= 0:
        return 1
    power: int = 10 ** (len(str(amount)) - 1)
    steps = (power * tenths // 10 for tenths in (10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100))
    return next(step for step in steps if step >= amount)
