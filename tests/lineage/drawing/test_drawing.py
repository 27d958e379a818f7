"""Pictures of lineage in every language that they are drawn in."""

import json
import random
import re
import subprocess
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from lumos.lineage.drawing import Arrow, Box, Picture, dot, events, mermaid, page
from lumos.lineage.drawing.layout import layers
from lumos.lineage.openlineage.naming import reference
from lumos.lineage.reported import Known
from lumos.model.lineage import ColumnMapping, ColumnUse, Derivation, UseKind

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
            assert reference(dataset["namespace"], dataset["name"]) == Known(urn=dataset["name"])


def test_a_page_holds_all_and_no_name_leads_out_of_its_data() -> None:
    text = page(picture(), title=f"Lineage of {NASTY}")
    assert text.count("</script>") == 2
    data = re.search(r'id="picture">(.*)</script>', text)
    assert data is not None
    held = json.loads(data[1])
    assert [box["name"] for box in held["boxes"]] == ["raw", "clean", NASTY]
    assert not re.search(r"(src|href)=|https?://(?!www\.w3\.org/2000/svg)", text)


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


def test_the_script_of_the_page_is_sound_where_node_can_tell(tmp_path) -> None:  # type: ignore[no-untyped-def]
    script = re.findall(r"<script>\n(.*?)\n</script>", page(picture(), title="x"), re.DOTALL)
    assert len(script) == 1
    file = tmp_path / "page.js"
    file.write_text(script[0])
    try:
        checked = subprocess.run(["node", "--check", str(file)], capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("node is not installed; the page was looked at in a browser")
    assert checked.returncode == 0, checked.stderr
