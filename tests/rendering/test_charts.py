"""Pictures of cost: what is drawn stays inside, adds up and does no harm."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from lumos.rendering.charts import Bar, bars, columns
from lumos.rendering.document import TableRow, Tile, bullet_list, page, section, table, tiles
from lumos.rendering.flow import FlowBand, FlowNode, flow

HARM = '<script>alert("1")</script>&\'"@@CONTENT@@'


def money(units: int) -> str:
    return f"${units}"


def stop(key: str, total: int, *, direct: int = 0, kept: int = 0) -> FlowNode:
    return FlowNode(key, key, "team", total, direct, kept)


def heights(svg: str, name: str) -> list[float]:
    found = ElementTree.fromstring(svg).iter("rect")
    return [float(each.get("height", 0)) for each in found if each.get("class") == name]


def test_bars_are_as_high_as_what_flows_through_and_bands_as_wide_as_what_is_carried() -> None:
    stops = [stop("raw", 100, direct=100), stop("core", 300, direct=200, kept=300)]
    svg = flow(stops, [FlowBand("raw", "core", 100)], money)
    raw, core = heights(svg, "whole")
    assert core == pytest.approx(3 * raw, rel=0.01)
    assert heights(svg, "kept") == pytest.approx([core], rel=0.01)
    [band] = ElementTree.fromstring(svg).iter("path")
    assert float(band.get("stroke-width", 0)) == pytest.approx(raw, rel=0.01)


@pytest.mark.parametrize("count", [1, 2, 40])
def test_everything_drawn_lies_inside_of_the_picture(count: int) -> None:
    stops = [stop("hub", 1000 * count, direct=1000 * count)]
    stops += [stop(f"end{number}", 1000, kept=1000) for number in range(count)]
    bands = [FlowBand("hub", f"end{number}", 1000) for number in range(count)]
    svg = ElementTree.fromstring(flow(stops, bands, money))
    _, _, width, height = map(float, svg.get("viewBox", "").split())
    for each in svg.iter("rect"):
        x, y, w, h = (float(each.get(name, 0)) for name in ("x", "y", "width", "height"))
        assert x >= 0
        assert y >= 0
        assert x + w <= width
        assert y + h <= height


def test_what_leads_back_in_a_cycle_is_not_drawn_against_the_stream() -> None:
    stops = [stop("a", 10), stop("b", 10)]
    svg = flow(stops, [FlowBand("a", "b", 5), FlowBand("b", "a", 5)], money)
    assert svg.count("<path") == 1


def test_credits_and_nothing_at_all_can_be_drawn() -> None:
    assert flow([], [], money).startswith("<svg")
    assert flow([stop("credit", -5)], [], money).startswith("<svg")
    assert bars([], [], money, label="nothing").startswith("<svg")
    drawn = columns([Bar("2024-01", -5, {"storage": -5})], ["storage"], money, label="credit")
    assert "NaN" not in drawn
    ElementTree.fromstring(drawn)


def test_parts_of_a_bar_are_as_wide_as_their_amounts() -> None:
    row = Bar("orders", 100, {"storage": 25, "compute": 75})
    svg = ElementTree.fromstring(bars([row], ["storage", "compute"], money, label="x"))
    storage, compute = (float(each.get("width", 0)) for each in svg.iter("rect"))
    assert compute == pytest.approx(3 * storage, rel=0.01)


def test_names_from_outside_do_no_harm() -> None:
    picture = flow([stop(HARM, 10), stop("b", 10)], [FlowBand(HARM, "b", 5)], money)
    chart = bars([Bar(HARM, 1, {HARM: 1})], [HARM], money, label=HARM)
    rows = table((HARM, "n"), [TableRow((HARM, "1"))], numbers=("n",))
    content = [tiles([Tile(HARM, HARM, HARM)]), section(HARM, HARM, picture, chart, rows)]
    html = page(title=HARM, subtitle=HARM, footer=HARM, content=[*content, bullet_list([HARM])])
    assert "<script" not in html
    assert html.count("@@CONTENT@@") >= 3
    ElementTree.fromstring(picture)


def test_a_page_asks_nothing_of_the_network_and_runs_nothing() -> None:
    html = page(title="t", subtitle="s", footer="f", content=[])
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)
    assert policy
    assert "default-src 'none'" in policy.group(1)
    assert "script-src" not in policy.group(1)
    assert not re.search(r"(?:src|href)=|url\(|@import|https?://", html)
