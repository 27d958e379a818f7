"""lumos cost model FILE: the contract of its JSON, exact amounts, and what is refused."""

import json
import random
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cost.solver.exact import random_graph
from lumos.cost.model_file.computation import ModelReport
from lumos.cost.model_file.computation import compute as compute_model
from lumos.cost.model_file.parser import InvalidModel
from lumos.cost.solver.attribution import attribute
from lumos.cost.solver.graph import CostGraph
from lumos.cost.solver.savings import savings_of_all
from lumos.errors import MisuseError
from lumos.model.json_codec import to_json
from lumos.model.money import micros

FOUNDING = """
datasets:
  - {urn: raw_events, costs: {storage: 500}}
  - {urn: cleaned_events, costs: {compute: 3000}, team: data}
  - {urn: event_metrics, costs: {compute: 1000}}
  - {urn: feature_store, costs: {compute: 2000, storage: 200}}
  - {urn: ml_predictions, costs: {compute: 1500}, live: true}
edges:
  - {from: raw_events, to: cleaned_events, share: 0.6}
  - {from: raw_events, to: event_metrics, share: 0.4}
  - {from: cleaned_events, to: feature_store%s}
  - {from: feature_store, to: ml_predictions}
method: equal_split
"""
SHARES = ", shares: {compute: 0.6, storage: 1.0}"


@pytest.fixture
def compute(tmp_path: Path) -> Any:
    """The report on a model in a file, given as text or as what JSON makes of it."""

    def of(model: object, name: str = "model.json") -> ModelReport:
        file = tmp_path / name
        file.write_text(model if isinstance(model, str) else json.dumps(model))
        return compute_model(file).report()

    return of


def model(*edges: dict[str, object], method: str | None = None) -> dict[str, object]:
    costs = {"a": 100, "b": 60, "c": 10}
    datasets = [{"urn": urn, "costs": {"compute": cost}} for urn, cost in costs.items()]
    return {"datasets": datasets, "edges": list(edges)} | ({"method": method} if method else {})


def test_the_founding_example_by_its_contract(compute: Any) -> None:
    output = json.loads(to_json(compute(FOUNDING % SHARES, "model.yaml")))
    assert output["format_version"] == "1.0"
    by_urn = {each["urn"]: each for each in output["datasets"]}
    assert by_urn["ml_predictions"] == {
        "urn": "ml_predictions", "direct": 1500, "attributed": 4300, "total": 5800,
        "retained": 5800, "by_type": {"storage": 500, "compute": 5300}, "savings": 6700,
    }  # fmt: skip
    assert by_urn["cleaned_events"]["retained"] == 1200
    assert (
        output["totals"] | {"spent": 8200, "retained": 8200, "unallocated": 0} == output["totals"]
    )
    without = json.loads(to_json(compute(FOUNDING % "")))
    by_urn = {each["urn"]: each for each in without["datasets"]}
    assert by_urn["ml_predictions"]["total"] == 7000
    assert by_urn["event_metrics"]["retained"] == 1200
    assert without["totals"]["retained"] == 8200


def test_json_and_yaml_are_distinguished_by_content(compute: Any) -> None:
    chain = model({"from": "a", "to": "b"}, {"from": "b", "to": "c"})
    as_json = json.dumps(chain, indent=2)
    assert compute(as_json, "model.txt") == compute(as_json, "model.yaml")
    yaml = "# a remark\ndatasets: [{urn: a, costs: {compute: 100}}, {urn: b, costs: {compute: 60}}, {urn: c, costs: {compute: 10}}]\nedges:\n- {from: a, to: b}\n- {from: b, to: c}\n"
    assert compute(yaml, "model.json") == compute(as_json)


@pytest.mark.parametrize("name", ["model.json", "model.yaml"])
def test_amounts_come_out_as_they_went_in(compute: Any, name: str) -> None:
    text = (
        '{"datasets": [{"urn": "a", "costs": {"c": 0.1}}, {"urn": "b", "costs": {"c": 0.2}},'
        ' {"urn": "d", "costs": {"c": 1234567890.123457}}, {"urn": "e", "costs": {"c": -0.000001}},'
        ' {"urn": "f"}], "edges": [{"from": "a", "to": "b"}, {"from": "d", "to": "f"}]}'
    )
    output = to_json(compute(text, name)).decode()
    totals = re.findall(r'"total":([^,}]*)', output)
    assert totals[:5] == ["0.1", "0.3", "1234567890.123457", "-0.000001", "1234567890.123457"]
    assert '"spent":1234567890.423456' in output


def test_an_amount_finer_than_a_micro_unit_is_rounded(compute: Any) -> None:
    report = compute({"datasets": [{"urn": "a", "costs": {"c": 0.12345678}}]})
    assert report.totals.spent == Decimal("0.123457")


def test_savings_are_those_of_one(compute: Any) -> None:
    edges = [("raw", "core"), ("core", "A"), ("core", "B")]
    costs = {"raw": 100, "core": 60, "A": 10, "B": 20}
    report = compute(
        {
            "datasets": [{"urn": urn, "costs": {"c": cost}} for urn, cost in costs.items()],
            "edges": [{"from": at, "to": to} for at, to in edges],
        }
    )
    assert {each.urn: each.savings for each in report.datasets} == {
        "raw": 100, "core": 160, "A": 10, "B": 20
    }  # fmt: skip


@pytest.mark.parametrize(
    ("live", "saved"),
    [
        pytest.param({}, [100, 160, 170], id="what nothing reads is an end use"),
        pytest.param({"c": False}, [100, 60, 10], id="nobody needs any of it"),
        pytest.param({"b": True}, [100, 160, 10], id="an end use with readers"),
    ],
)
def test_live_marks_end_uses(compute: Any, live: dict[str, bool], saved: list[int]) -> None:
    chain = model({"from": "a", "to": "b"}, {"from": "b", "to": "c"})
    for each in chain["datasets"]:  # type: ignore[attr-defined]
        if each["urn"] in live:
            each["live"] = live[each["urn"]]
    assert [each.savings for each in compute(chain).datasets] == saved


def test_cost_that_lineage_never_carries_stands_apart(compute: Any) -> None:
    chain = model({"from": "a", "to": "b"}, {"from": "b", "to": "c"})
    chain["datasets"] += [  # type: ignore[operator]
        {"urn": "__unallocated__", "costs": {"compute": 7}},
        {"urn": "__adjustment__", "costs": {"compute": -2}},
    ]
    report = compute(chain)
    totals = report.totals
    assert (totals.spent, totals.retained) == (175, 170)
    assert (totals.unallocated, totals.adjustment) == (7, -2)
    assert [each.urn for each in report.datasets] == ["a", "b", "c"]


def test_a_cycle_is_reported_as_one(compute: Any) -> None:
    report = compute(model({"from": "a", "to": "b"}, {"from": "b", "to": "a"}))
    (component,) = report.components
    assert (component.urns, component.total, component.closed) == (("a", "b"), 160, True)


def test_last_touch_takes_times_of_reading(compute: Any) -> None:
    edges = [
        {"from": "a", "to": "b", "last_read": "2024-01-31T12:00:00Z"},
        {"from": "a", "to": "c", "last_read": "2024-01-31T12:30:00+01:00"},
    ]
    report = compute(model(*edges, method="last_touch"))
    assert [each.retained for each in report.datasets] == [0, 160, 10]


def test_equal_splits_without_known_bytes_are_reported(compute: Any) -> None:
    known = [{"from": "a", "to": to, "bytes": size} for to, size in (("b", 3), ("c", 1))]
    report = compute(model(*known))
    assert [each.attributed for each in report.datasets] == [0, 75, 25]
    assert report.totals.assumed == 0
    assert compute(model({"from": "a", "to": "b"}, known[1])).totals.assumed == 100


def test_unknown_keys_are_reported(compute: Any) -> None:
    report = compute({"datasets": [{"urn": "a", "cost": {}, "owner": "x"}], "metod": 1})
    assert report.remarks == [
        "Unknown key 'metod' is ignored. Did you mean 'method'?",
        "Unknown key 'cost' of datasets is ignored. Did you mean 'costs'?",
        "Unknown key 'owner' of datasets is ignored. Known: urn, kind, costs, live, team, currency.",
    ]


def test_a_file_says_the_same_as_the_graph_it_describes(compute: Any) -> None:
    chance = random.Random(3)
    for _ in range(100):
        drawn, method = random_graph(chance)
        # Files know one weight of an edge for all cost types.
        graph = replace(drawn, weights=drawn.weights[:1])
        report = compute(_written(graph) | {"method": method})
        found = attribute(graph, method)
        assert [micros(each.total) for each in report.datasets] == found.loaded.sum(axis=0).tolist()
        kept = [micros(each.retained) for each in report.datasets]
        assert kept == found.retained.sum(axis=0).tolist()
        saved = [micros(each.savings) for each in report.datasets]
        assert saved == savings_of_all(graph).tolist()
        assert (
            report.totals.spent
            == report.totals.retained
            == sum(each.direct for each in report.datasets)
        )


def _written(graph: CostGraph) -> dict[str, object]:
    """The graph as a file would have it."""
    datasets = [
        {
            "urn": urn,
            "costs": {
                name: int(own[node]) / 10**6
                for name, own in zip(graph.types, graph.costs, strict=True)
            },
            "live": bool(graph.live[node]),
            "kind": "job" if graph.is_job[node] else "dataset",
        }
        for node, urn in enumerate(graph.urns)
    ]
    edges = []
    for number in range(graph.edges):
        edge: dict[str, object] = {
            "from": graph.urns[graph.upstream[number]],
            "to": graph.urns[graph.downstream[number]],
        }
        rows = np.broadcast_to(graph.explicit, (len(graph.types), graph.edges))[:, number]
        shares = {
            name: float(share)
            for name, share in zip(graph.types, rows, strict=True)
            if not np.isnan(share)
        }
        if shares:
            edge["shares"] = shares
        if not np.isnan(graph.weights[0, number]):
            edge["bytes"] = float(graph.weights[0, number])
        if not np.isnan(graph.last_read[number]):
            edge["last_read"] = f"2024-01-0{int(graph.last_read[number])}T00:00:00Z"
        edges.append(edge)
    return {"datasets": datasets, "edges": edges}


A_TO_B = {"from": "a", "to": "b"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param(model(A_TO_B | {"share": -0.1}), "edges[0] (a -> b): the share must be a number from 0 to 1, such as 0.6, not -0.1.", id="negative share"),
        pytest.param(model(A_TO_B | {"share": 1.2}), "such as 0.6, not 1.2.", id="share above one"),
        pytest.param(model(A_TO_B | {"shares": {"compute": 2}}), "edges[0] (a -> b), compute: the share must be", id="share of a type above one"),
        pytest.param(model(A_TO_B | {"share": 0.6}, {"from": "a", "to": "c", "share": 0.5}), "The shares on the edges out of a add up to 1.1. They must add up to at most 1.", id="sum above one"),
        pytest.param(model(A_TO_B | {"share": 0.6}, {"from": "a", "to": "c", "shares": {"compute": 0.5, "storage": 0.1}}), "The shares of compute cost on the edges out of a add up to 1.1.", id="sum above one by type"),
        pytest.param(model(A_TO_B | {"share": 1, "shares": {}}), "give either 'share', or 'shares' by cost type.", id="both shares"),
        pytest.param(model(A_TO_B | {"share": "0.5"}), "edges[0].share: Expected a number, got text.", id="share as text"),
        pytest.param(model(A_TO_B | {"bytes": -1}), "bytes must not be negative (-1).", id="negative bytes"),
        pytest.param(model({"from": "a", "to": "bb"}), "edges[0] (a -> bb): 'bb' is not listed under 'datasets'. Did you mean 'b'?", id="unknown dataset"),
        pytest.param(model(A_TO_B, {"from": "b", "to": "c"}, A_TO_B), "The edge a -> b is listed twice, as edges[0] and edges[2].", id="edge twice"),
        pytest.param(model({"from": "a", "to": "__idle__"}) | {"datasets": [{"urn": "a"}, {"urn": "__idle__"}]}, "__idle__ is never attributed along lineage. Remove the edge.", id="edge to idle"),
        pytest.param(model(method="fair"), "No method named 'fair'. Known: equal_split, last_touch, lineage_weighted.", id="method"),
        pytest.param({"datasets": [{"urn": "a"}, {"urn": "a"}]}, "The URN 'a' is listed twice", id="URN twice"),
        pytest.param({"datasets": [{"urn": ""}]}, "A dataset needs a URN", id="URN empty"),
        pytest.param({"datasets": [{"urn": "a", "costs": {"c": "much"}}]}, "datasets[0].costs: Invalid decimal string.", id="no number"),
        pytest.param({"datasets": [{"urn": "a", "costs": {"c": True}}]}, "datasets[0].costs: Expected a number such as 12.5, got true or false.", id="truth"),
        pytest.param({"datasets": [{"urn": "a", "costs": {"c": "NaN"}}]}, "The c cost of 'a': Invalid amount 'NaN'.", id="nan as text"),
        pytest.param({"datasets": [{"urn": "a", "costs": {"c": 1e30}}]}, "is too large to be computed", id="too large"),
        pytest.param({"datasets": [{"urn": "a", "kind": "table"}]}, "datasets[0].kind: Invalid enum value 'table'.", id="kind"),
        pytest.param({"datasets": []}, "The model is empty.", id="no datasets"),
        pytest.param({}, "The model is empty.", id="nothing in it"),
        pytest.param([], "the file: Expected a mapping, got a list.", id="a list"),
        pytest.param("", "The file is empty.", id="empty file"),
        pytest.param('{"datasets": [\n{"urn": NaN}]}', "model.json:2: This is not valid JSON", id="nan in JSON"),
        pytest.param('{"datasets": [\n{"urn": "a"}', "model.json:2: This is not valid JSON: it ends too early.", id="JSON cut off"),
        pytest.param('{"datasets": ' + "[" * 100_000, "nested too deep", id="deep JSON"),
        pytest.param("datasets:\n  - urn: a\n    costs: {c: .inf}", "model.json:3: This is not valid YAML: invalid number '.inf', write it as 12.5.", id="infinite in YAML"),
        pytest.param("datasets:\n  - urn: a\n    costs: {c: 010}", "model.json:3: This is not valid YAML: invalid number '010', write it as 12.", id="octal in YAML"),
        pytest.param("datasets:\n  - urn: a\n    costs: {c: 1:30}", "invalid number '1:30', write it as 12.", id="sixties in YAML"),
        pytest.param("datasets:\n  - urn: a\n   kind: job", "model.json:3: This is not valid YAML", id="YAML indented wrongly"),
        pytest.param("datasets:\n  - urn: a\n    urn: b", "model.json:3: This is not valid YAML: the key 'urn' is listed twice.", id="YAML key twice"),
        pytest.param("datasets:\n  &x [*x]", "model.json:2: The anchor '&x' contains itself.", id="YAML that holds itself"),
        pytest.param('{"datasets":[{"urn":"a"},{"urn":"b","costs":{"storage":1,"storage":2}}]}', "datasets[1]: the key 'storage' is listed twice. Keep one.", id="JSON cost twice"),
        pytest.param('{"datasets" : [{"urn" : "a", "urn" : "a"}]}', "datasets[0]: the key 'urn' is listed twice.", id="JSON URN twice"),
        pytest.param('{"datasets":[{"urn":"a"}, {"urn":"b"}], "edges": [{"from": "a", "to": "b", "share" :1, "share":0}]}', "edges[0]: the key 'share' is listed twice.", id="JSON share twice"),
        pytest.param('{"datasets":[{"urn":"a"}], "datasets":[{"urn":"b"}]}', "the file: the key 'datasets' is listed twice.", id="JSON datasets twice"),
        pytest.param({"datasets": [{"urn": "a", "currency": "EUR"}, {"urn": "b", "currency": "usd"}]}, "The costs of a are in EUR and those of b in USD.", id="currency mix"),
        pytest.param({"currency": "EUR", "datasets": [{"urn": "b", "currency": "USD"}]}, "The costs of the model are in EUR and those of b in USD.", id="currency mix with the model's"),
        pytest.param({"datasets": [{"urn": urn, "costs": {"c": 4 * 10**12}} for urn in "abd"]}, "model.json: The amounts add up to more than 9 x 10^12", id="sum too large"),
        pytest.param({"datasets": [{"urn": urn, "costs": {"c": 10**10}} for urn in "abd"], "edges": [A_TO_B, {"from": "b", "to": "a", "share": 0.99999999}, {"from": "b", "to": "d"}]}, "model.json: A lineage cycle with ", id="cycle too tight"),
        pytest.param("datasets: !!python/object/apply:os.getcwd []", "model.json:1: This is not valid YAML", id="YAML object"),
        pytest.param("datasets: " + "[" * 60 + "]" * 60, "model.json:1: The model is nested deeper than 50 levels.", id="deep YAML"),
        pytest.param("a: *unknown", "model.json:1: This is not valid YAML", id="unknown alias"),
        pytest.param("\n".join(f"k{n}: &k{n} [{', '.join([f'*k{n - 1}' if n else 'x'] * 9)}]" for n in range(12)), "values after expanding aliases", id="aliases without end"),
    ],
)  # fmt: skip
def test_what_cannot_be_computed_is_refused_with_what_is_right(
    compute: Any, given: object, words: str
) -> None:
    with pytest.raises(MisuseError, match=re.escape(words)):
        compute(given)


def test_keys_that_look_like_several_are_one(compute: Any) -> None:
    text = r'{"datasets": [{"urn": "a\u0022:b", "team": "x : \":y\":", "costs": {"c": 1}}]}'
    assert compute(text).datasets[0].urn == 'a":b'


def test_a_share_of_an_unused_cost_type_is_reported(compute: Any) -> None:
    output = compute(model(A_TO_B | {"shares": {"computr": 0.5, "storage": 0.5}})).remarks
    assert output == [
        "Shares of 'computr' are ignored: no cost has that type. Did you mean 'compute'?"
    ]


def test_one_currency_is_no_mix(compute: Any) -> None:
    datasets = [{"urn": "a", "currency": "EUR"}, {"urn": "b", "currency": "eur"}, {"urn": "c"}]
    assert compute({"datasets": datasets, "currency": "EUR"}).remarks == []


def test_a_missing_or_binary_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match="There is no such file"):
        compute_model(tmp_path / "none.json")
    file = tmp_path / "model.json"
    file.write_bytes(b'{"datasets":\n "\xff"}')
    with pytest.raises(InvalidModel, match=r"model\.json:2: The model is not UTF-8 text"):
        compute_model(file)
    with pytest.raises(InvalidModel, match="cannot be read"):
        compute_model(tmp_path)


def test_a_large_report_is_the_same_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "model.yaml"
    file.write_text(FOUNDING % "")
    whole = compute_model(file)
    assert not whole.is_large
    assert b"".join(whole.json()) == to_json(whole.report())
    monkeypatch.setattr("lumos.cost.model_file.computation._BATCH_SIZE", 2)
    monkeypatch.setattr("lumos.cost.model_file.parser._BATCH_SIZE", 2)
    parts = compute_model(file)
    assert parts.is_large
    assert b"".join(parts.json()) == to_json(whole.report())
