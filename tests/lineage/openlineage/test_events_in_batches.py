"""It does not matter in which batches the events of jobs are ingested."""

import json
import random
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from lineage.openlineage.test_openlineage import TOTALS, event
from lumos import Lumos
from lumos.store import Store

OTHER = {"namespace": "s3://lake", "name": "gold/other"}


def source(name: str, **facets: Any) -> dict[str, Any]:
    return {"namespace": "s3://lake", "name": f"raw/{name}", "facets": facets}


def lineage_of(folder: Path, *batches: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    """The edges with their columns after some ingests of a new store."""
    folder.mkdir()
    lumos = Lumos(overrides={"storage.path": str(folder / "lumos.db")})
    for number, batch in enumerate(batches):
        file = folder / f"{number}.ndjson"
        file.write_text("\n".join(map(json.dumps, batch)))
        lumos.lineage.ingest(file)
    return {
        (edge.upstream.rpartition("/")[2], edge.downstream.rpartition("/")[2], column)
        for edge in Store.open(lumos.database).lineage.all()
        for column in [mapping.upstream for mapping in edge.columns] or [""]
    }


FIRST = [event(run="1", at="2024-01-15T06:00:00Z", inputs=[source("old")])]
SECOND = [event(run="2", at="2024-01-16T06:00:00Z", inputs=[source("new")])]
FAILED = [
    event("START", run="3", at="2024-01-17T06:00:00Z", inputs=[source("half")]),
    event("FAIL", run="3", at="2024-01-17T06:10:00Z", inputs=[source("half")]),
]


def test_a_failed_run_does_not_replace_a_complete_one(workplace):
    assert lineage_of(workplace / "s", SECOND, FAILED) == {("new", "totals", "")}


def test_only_a_failed_run_is_better_than_nothing(workplace):
    assert lineage_of(workplace / "s", FAILED) == {("half", "totals", "")}


@pytest.mark.parametrize("order", list(permutations([FIRST, SECOND, FAILED])))
def test_the_newest_complete_run_counts_in_every_order(workplace, order):
    assert lineage_of(workplace / "s", *order) == {("new", "totals", "")}


def test_a_run_that_failed_with_one_that_is_old_overrules_nothing(workplace):
    batches = [FIRST, SECOND, [*FAILED, *FIRST]]
    assert lineage_of(workplace / "s", *batches) == {("new", "totals", "")}


def test_the_end_of_a_run_may_come_by_itself(workplace):
    start = event("START", run="4", at="2024-01-18T06:00:00Z", inputs=[source("newest")])
    end = event("COMPLETE", run="4", at="2024-01-18T07:00:00Z", inputs=[], outputs=[])
    assert lineage_of(workplace / "s", SECOND, [start]) == {("new", "totals", "")}
    assert lineage_of(workplace / "t", SECOND, [start], [end]) == {("newest", "totals", "")}


def test_silence_on_another_output_takes_nothing_back(workplace):
    both = [event(run="1", inputs=[source("old")], outputs=[TOTALS, OTHER])]
    assert lineage_of(workplace / "s", both, SECOND) == {
        ("old", "other", ""),
        ("new", "totals", ""),
    }


def test_the_newest_of_the_runs_that_wrote_parts_of_a_dataset_counts(workplace):
    data = workplace / "data" / "totals"
    for day in ("01", "02"):
        (data / f"day=2024-01-{day}").mkdir(parents=True)
        (data / f"day=2024-01-{day}" / "part-0.csv").write_text("id,total\n1,2\n")
    lumos = Lumos(overrides={"storage.path": str(workplace / "s.db")})
    lumos.ingest(workplace / "data")
    for number, (name, day) in enumerate((("old", "01"), ("new", "02"))):
        part = {"namespace": "file", "name": f"{data}/day=2024-01-{day}"}
        run_event = event(
            run=day, at=f"2024-01-{day}T06:00:00Z", inputs=[source(name)], outputs=[part]
        )
        (workplace / f"{number}.json").write_text(json.dumps(run_event))
        lumos.lineage.ingest(workplace / f"{number}.json")
    edges = list(Store.open(lumos.database).lineage.all())
    assert [edge.upstream.rpartition("/")[2] for edge in edges] == ["new"]


@pytest.mark.parametrize("seed", range(12))
def test_any_batches_come_to_the_same(workplace, seed):
    """Runs of several events with inputs, outputs and columns here and there."""
    chance = random.Random(seed)
    events = []
    for run in range(5):
        states = ["START", "RUNNING", chance.choice(["COMPLETE", "COMPLETE", "FAIL", "RUNNING"])]
        for step, state in enumerate(states):
            name = chance.choice("abc")
            field = {"inputFields": [{**source(name), "field": chance.choice("xyz")}]}
            facets = (
                {"columnLineage": {"fields": {"total": field}}} if chance.random() < 0.5 else {}
            )
            output = {**chance.choice([TOTALS, OTHER]), "facets": facets}
            events.append(
                event(
                    state,
                    run=str(run),
                    at=f"2024-01-{10 + run}T0{step}:00:00Z",
                    inputs=[source(name)] if chance.random() < 0.7 else [],
                    outputs=[output] if chance.random() < 0.7 else [],
                )
            )
    expected = lineage_of(workplace / "s", events)
    chance.shuffle(events)
    cuts = sorted(chance.sample(range(1, len(events)), 3))
    batches = [events[i:j] for i, j in zip([0, *cuts], [*cuts, None], strict=True)]
    assert lineage_of(workplace / "t", *batches, events[:3]) == expected
