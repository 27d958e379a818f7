"""lumos cost model on the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

MODEL = """
datasets:
  - {urn: raw, costs: {storage: 1000.5}}
  - {urn: core, kind: job, costs: {compute: 60}}
  - {urn: A, costs: {compute: 10}, owner: x}
  - {urn: B, costs: {compute: 20}}
  - {urn: __idle__, costs: {compute: 5}}
edges:
  - {from: raw, to: core}
  - {from: core, to: A}
  - {from: core, to: B}
"""


@pytest.fixture
def file(workplace: Path) -> Path:
    written = workplace / "estate.yaml"
    written.write_text(MODEL)
    return written


def test_a_model_is_shown_as_a_table(lumos: Any, file: Path) -> None:
    done = lumos("cost", "model", file)
    assert done.code == 0
    assert "raw 1,000.5 0 1,000.5 0 1,000.5" in done.words
    assert "A 10 530.25 540.25 540.25 10" in done.words
    assert "Total spend 1,095.5: retained 1,090.5, idle 5." in done.out
    assert "1,060.5 (97%) is estimated: no usage data" in done.out
    assert "remark  Unknown key 'owner' of datasets is ignored" in done.err


def test_a_model_as_json_keeps_to_its_contract(lumos: Any, file: Path) -> None:
    output = json.loads(lumos("cost", "model", file, "--json").out)
    assert output.keys() >= {"format_version", "datasets", "totals"}
    assert all(
        each.keys() == {"urn", "direct", "attributed", "total", "retained", "by_type", "savings"}
        for each in output["datasets"]
    )
    assert output["totals"].keys() >= {"spent", "retained", "unallocated"}


def test_a_cycle_is_named(lumos: Any, workplace: Path) -> None:
    file = workplace / "cycle.json"
    edges = [{"from": "a", "to": "b"}, {"from": "b", "to": "a"}]
    datasets = [{"urn": "a", "costs": {"compute": 1}}, {"urn": "b", "costs": {"compute": 2}}]
    file.write_text(json.dumps({"datasets": datasets, "edges": edges}))
    output = lumos("cost", "model", file).out
    assert "Lineage cycle of 2 datasets (a, b), which no cost leaves: total cost 3." in output


def test_a_wrong_model_is_one_sentence(lumos: Any, workplace: Path) -> None:
    file = workplace / "wrong.yaml"
    file.write_text("datasets:\n  - urn: a\n    costs: {c: .nan}\n")
    done = lumos("cost", "model", file)
    assert done.code == 2
    assert done.out == ""
    assert (
        "wrong.yaml:3: This is not valid YAML: invalid number '.nan', write it as 12.5." in done.err
    )
