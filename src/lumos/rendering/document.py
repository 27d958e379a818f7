"""A self-contained HTML page of charts and tables that loads nothing from the network."""

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Final, NamedTuple

from lumos.rendering.charts import colour_of

# Longer figures are displayed in smaller type.
_LONG_FIGURE_LENGTH: Final = 10


class Tile(NamedTuple):
    """A key figure; `tone` is `up` for a higher cost, `down` for a lower one."""

    what: str
    figure: str
    note: str = ""
    tone: str = ""


class TableRow(NamedTuple):
    """A table row; `tone` is `sum` for a total, `beside` for unattributed costs."""

    cells: tuple[str, ...]
    tone: str = ""


def page(*, title: str, subtitle: str, footer: str, content: Sequence[str]) -> str:
    """The page as HTML; `content` is HTML, the other arguments are text."""
    parts = files("lumos.rendering").joinpath("page")
    template = parts.joinpath("page.html").read_text("utf-8")
    texts = {
        "TITLE": escape(title),
        "SUBTITLE": escape(subtitle),
        "STYLE": parts.joinpath("page.css").read_text("utf-8"),
        "CONTENT": "\n".join(content),
        "FOOTER": escape(footer),
    }
    # Replace all placeholders in one pass: inserted texts may contain `@@` too.
    pieces = template.split("@@")
    return "".join(texts[piece] if number % 2 else piece for number, piece in enumerate(pieces))


def tiles(figures: Iterable[Tile]) -> str:
    """Key figures side by side."""
    elements = (
        f'<div class="tile"><span class="what">{escape(each.what)}</span>'
        f'<b class="{each.tone}{" long" if len(each.figure) > _LONG_FIGURE_LENGTH else ""}">'
        f"{escape(each.figure)}</b>"
        f"<span>{escape(each.note)}</span></div>"
        for each in figures
    )
    return f'<div class="tiles">{"".join(elements)}</div>'


def section(heading: str, explanation: str, *content: str, tone: str = "") -> str:
    """Render a section of the page; `content` is HTML."""
    paragraph = f"<p>{escape(explanation)}</p>" if explanation else ""
    body = "".join(content)
    return f'<section class="{escape(tone)}"><h2>{escape(heading)}</h2>{paragraph}{body}</section>'


def side_by_side(*sections: str) -> str:
    """Sections side by side if there is room."""
    return f'<div class="two">{"".join(sections)}</div>'


def stack(*sections: str) -> str:
    """Sections one below the other, in one column."""
    return f'<div class="stack">{"".join(sections)}</div>'


def parts_legend(parts: Sequence[str]) -> str:
    """The legend of parts with their standard colours."""
    return legend((colour_of(part), part) for part in parts)


def legend(pairs: Iterable[tuple[str, str]]) -> str:
    """A legend of CSS classes and the texts that explain their colours."""
    elements = (f'<span><i class="{escape(css)}"></i>{escape(text)}</span>' for css, text in pairs)
    return f'<div class="key">{"".join(elements)}</div>'


def table(head: Sequence[str], rows: Iterable[TableRow], *, numbers: Sequence[str]) -> str:
    """An HTML table; columns named in `numbers` are right-aligned."""
    sides = ['class="number"' if name in numbers else "" for name in head]
    lines = (f'<tr class="{row.tone}">{_cells("td", row.cells, sides)}</tr>' for row in rows)
    heads = _cells("th", head, sides)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _cells(tag: str, cells: Sequence[str], sides: Sequence[str]) -> str:
    pairs = zip(cells, sides, strict=True)
    return "".join(f"<{tag} {side}>{escape(cell)}</{tag}>" for cell, side in pairs)


def bullet_list(sentences: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(each)}</li>' for each in sentences)}</ul>"
