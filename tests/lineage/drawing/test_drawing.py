"""Pictures of lineage in every language that they are drawn in."""

import html
import json
import random
import re
import shutil
import subprocess
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from lumos.lineage.drawing.picture import (
    Arrow,
    Box,
    BoxImpact,
    BoxReason,
    Picture,
    dot,
    events,
    mermaid,
    page,
)
from lumos.lineage.openlineage.naming import dataset_reference
from lumos.lineage.reported_lineage import UrnReference
from lumos.model.lineage import ColumnMapping, ColumnUse, Derivation, UseKind
from lumos.rendering.layout import layers

RAW, CLEAN, REPORT = "lumos://s3/lake/raw", "lumos://s3/lake/clean", "lumos://postgres/app/report"
NASTY = '</script><b>"x"\\\n]'
AT = datetime(2026, 1, 1, tzinfo=UTC)


def picture(**facts: object) -> Picture:
    columns = (
        ColumnMapping(
            upstream="a",
            downstream="b",
            transformation="a + 1",
            derivation=Derivation.TRANSFORMATION,
        ),
        ColumnMapping(upstream="c", downstream="c", derivation=Derivation.IDENTITY),
    )
    uses = (
        ColumnUse(
            upstream="k", usage=UseKind.JOIN, expression="ON x.k = y.k", file="m.sql", line=4
        ),
        ColumnUse(upstream="w", usage=UseKind.WINDOW, downstream="b"),
    )
    return Picture(
        urn=CLEAN,
        boxes=(
            Box(urn=RAW, name="raw", platform="s3", depth=-1, columns=("a", "c", "k", "w")),
            Box(urn=CLEAN, name="clean", platform="s3", state="live", columns=("b", "c")),
            Box(urn=REPORT, name=NASTY, platform="postgres", depth=1, mark="breaking"),
        ),
        arrows=(
            Arrow(
                upstream=RAW, downstream=CLEAN, origins=("sql:m.sql",), columns=columns, uses=uses
            ),
            Arrow(upstream=CLEAN, downstream=REPORT, type="VIEW", jobs=("lumos://airflow/daily",)),
        ),
        **facts,  # type: ignore[arg-type]
    )


def test_dot_names_every_dataset_and_edge_and_escapes_what_would_end_a_text() -> None:
    text = dot(picture())
    assert text.count(" -> ") == 2
    assert f'"{RAW}" -> "{CLEAN}" [style="solid", label="2 columns"];' in text
    assert r"</script><b>\"x\"\\\n]" in text
    assert text.count("\n") == len(text.splitlines())
    assert all(line.endswith((";", "{", "}")) for line in text.splitlines())


def test_mermaid_draws_views_dashed_and_spells_out_what_it_would_read_as_its_own() -> None:
    text = mermaid(picture())
    assert "  n1 -.-> n2" in text
    assert "  n0 -->|2 columns| n1" in text
    label = re.search(r'n2\["(.*)"\]', text)
    assert label is not None
    assert not set('"[]<') & set(label[1].replace("<br/>", ""))
    assert "style n2 stroke:#c0392b" in text


def test_openlineage_events_name_inputs_outputs_and_columns() -> None:
    first, second = events(picture(), at=AT)
    assert [each["name"] for each in first["inputs"]] == [CLEAN]
    assert first["job"]["name"] == "airflow/daily"
    facet = second["outputs"][0]["facets"]["columnLineage"]
    assert [each["field"] for each in facet["fields"]["b"]["inputFields"]] == ["a", "w"]
    assert facet["fields"]["b"]["inputFields"][0]["transformations"] == [
        {"type": "DIRECT", "subtype": "TRANSFORMATION", "description": "a + 1", "masking": False}
    ]
    assert facet["dataset"][0]["transformations"][0]["subtype"] == "JOIN"


def test_datasets_in_events_are_read_back_as_the_same() -> None:
    for event in events(picture(), at=AT):
        for dataset in (*event["inputs"], *event["outputs"]):
            assert dataset_reference(dataset["namespace"], dataset["name"]) == UrnReference(
                urn=dataset["name"]
            )


def test_a_page_holds_all_and_no_name_leads_out_of_its_data() -> None:
    text = page(picture(), title=f"Lineage of {NASTY}")
    assert text.count("</script>") == 2
    data = re.search(r'id="picture">(.*)</script>', text)
    assert data is not None
    held = json.loads(data[1])
    assert [box["name"] for box in held["boxes"]] == ["raw", "clean", NASTY]
    assert not re.search(r"(src|href)=|https?://(?!www\.w3\.org/2000/svg)", text)


def impact_picture(datasets: int) -> Picture:
    """A changed dataset with so many others downstream, all broken, with hostile words."""
    urns = [f"lumos://postgres/app/t{number}" for number in range(datasets)]
    reason = BoxReason(text=f"{NASTY} in JOIN", verdict="breaking", clause=NASTY, where="m.sql:7")
    broken = BoxImpact(
        verdict="breaking", reasons=(reason,), columns=("id: INT64 → STRING",),
        recommendations=(f"Notify {NASTY}",),
    )  # fmt: skip
    changed = BoxImpact(changes=("id type changed",), recommendations=("Update it",))
    return Picture(
        urn=urns[0],
        boxes=tuple(
            Box(
                urn=urn, name=f"{NASTY} {number}", platform="postgres", state="live",
                owners=(NASTY,), columns=("id", "name"), mark="breaking" if number else None,
                impact=broken if number else changed,
            )
            for number, urn in enumerate(urns)
        ),
        arrows=tuple(
            Arrow(upstream=urns[(number - 1) // 4], downstream=urn)
            for number, urn in enumerate(urns) if number
        ),
    )  # fmt: skip


def test_a_page_holds_why_each_dataset_breaks_and_no_word_leads_out_of_its_data() -> None:
    text = page(impact_picture(2), title="x")
    assert text.count("</script>") == 2
    held = json.loads(re.search(r'id="picture">(.*)</script>', text)[1])  # type: ignore[index]
    assert held["boxes"][1]["impact"] == {
        "verdict": "breaking",
        "reasons": [
            {"text": f"{NASTY} in JOIN", "verdict": "breaking", "clause": NASTY, "where": "m.sql:7"}
        ],
        "columns": ["id: INT64 → STRING"],
        "recommendations": [f"Notify {NASTY}"],
    }
    assert "innerHTML" not in text


# Clicks every dataset, and notes which one its panel covers or says too little of.
CLICKS = """
<script>
const wrong = [];
for (const group of document.querySelectorAll(".box")) {
  group.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  const panel = document.getElementById("panel"), covers = panel.getBoundingClientRect();
  const frame = group.querySelector(".frame").getBoundingClientRect();
  const canvas = document.getElementById("canvas").getBoundingClientRect();
  const isInside = frame.left >= canvas.left && frame.right <= canvas.right
    && frame.top >= canvas.top && frame.bottom <= canvas.bottom;
  const isCovered = frame.right > covers.left && frame.bottom > covers.top;
  const words = group.classList.contains("breaking")
    ? ["Owner: ", "BREAKING", " in JOIN", "m.sql:7", "id: INT64", "Notify "] : ["CHANGES", "Update it"];
  const missing = words.filter(each => !panel.textContent.includes(each));
  if (!isInside || isCovered || panel.hidden || missing.length) wrong.push([group.textContent, isInside, isCovered, missing]);
  dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
  if (!panel.hidden) wrong.push("Escape does not close");
}
const told = { clicked: document.querySelectorAll(".box").length, wrong, bold: document.querySelectorAll("b").length };
document.documentElement.replaceChildren(JSON.stringify(told));
</script>
</body>"""


@pytest.mark.slow
@pytest.mark.parametrize("size", ["1280,800", "800,600", "480,700"])
@pytest.mark.parametrize("datasets", [3, 40, 200])
def test_in_a_browser_details_never_cover_the_dataset_they_are_of(
    tmp_path: Path, datasets: int, size: str
) -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no chromium is installed to click on the page with")
    file = tmp_path / "page.html"
    file.write_text(page(impact_picture(datasets), title="x").replace("</body>", CLICKS))
    options = [
        "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", "--dump-dom",
        f"--window-size={size}", f"--user-data-dir={tmp_path / 'profile'}",
    ]  # fmt: skip
    shown = subprocess.run(
        [chromium, *options, file.as_uri()], capture_output=True, text=True, check=True
    ).stdout
    state = json.loads(html.unescape(shown[shown.index("{") : shown.rindex("}") + 1]))
    assert state == {"clicked": datasets, "wrong": [], "bold": 0}


def test_boxes_stand_after_what_leads_to_them_and_never_on_each_other() -> None:
    text = page(picture(), title="x")
    held = json.loads(re.search(r'id="picture">(.*)</script>', text)[1])  # type: ignore[index]
    places = {box["urn"]: box for box in held["boxes"]}
    assert places[RAW]["x"] < places[CLEAN]["x"] < places[REPORT]["x"]


@pytest.mark.parametrize("seed", range(30))
def test_every_box_has_one_layer_and_forward_arrows_lead_right(seed: int) -> None:
    chance = random.Random(seed)
    names = [f"n{number}" for number in range(chance.randint(0, 14))]
    arrows = [(a, b) for a in names for b in names if a < b and chance.random() < 0.3]
    found = layers(names, arrows)
    place = {name: number for number, layer in enumerate(found) for name in layer}
    assert sorted(name for layer in found for name in layer) == sorted(names)
    assert all(place[a] < place[b] for a, b in arrows)


def test_cycles_and_what_feeds_itself_have_a_place_too() -> None:
    found = layers(["a", "b", "c"], [("a", "b"), ("b", "c"), ("c", "a"), ("b", "b")])
    assert found == [["a"], ["b"], ["c"]]


def test_a_long_chain_is_laid_out_without_deep_recursion() -> None:
    names = [f"n{number:05}" for number in range(5000)]
    assert len(layers(names, pairwise(names))) == 5000


def test_the_script_of_the_page_is_valid_according_to_node(tmp_path) -> None:  # type: ignore[no-untyped-def]
    script = re.findall(r"<script>\n(.*?)\n</script>", page(picture(), title="x"), re.DOTALL)
    assert len(script) == 1
    file = tmp_path / "page.js"
    file.write_text(script[0])
    try:
        checked = subprocess.run(["node", "--check", str(file)], capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("node is not installed; the page was looked at in a browser")
    assert checked.returncode == 0, checked.stderr
