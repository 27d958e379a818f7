"""Kinds of jobs: arguments are checked when a job is requested."""

from pathlib import Path
from typing import Any

import pytest

from lumos.errors import MisuseError
from lumos.jobs.kinds import CHAIN, KINDS, MAX_STEPS, limit_size, plan_job, plan_steps, run_steps
from lumos.model.json_codec import to_json
from lumos.progress import no_progress


def test_the_founding_example_is_a_chain_of_four(workplace: Path) -> None:
    plan = plan_steps(
        ["ingest:sources.yaml", "lineage:models/", "version:auto", "export:nightly.json"]
    )
    assert plan.kind == CHAIN
    assert plan.arguments["steps"] == [
        {"kind": "ingest", "arguments": {"config": str(workplace / "sources.yaml")}},
        {"kind": "lineage", "arguments": {"paths": (str(workplace / "models"),)}},
        {"kind": "version", "arguments": {}},
        {"kind": "export", "arguments": {"output": str(workplace / "nightly.json")}},
    ]


@pytest.mark.parametrize(
    ("step", "kind", "arguments"),
    [
        ("ingest", "ingest", {}),
        ("ingest:s3://lake/raw", "ingest", {"paths": ("s3://lake/raw",)}),
        ("profile:orders", "profile", {"dataset": "orders"}),
        ("sync:datahub-file:copy.json", "sync", {"platforms": ("datahub-file:copy.json",)}),
        ("sync", "sync", {}),
        ("cost-record", "cost-record", {}),
        ("cost-record:2024-01", "cost-record", {"period": "2024-01"}),
        ("version:scan", "version", {"mode": "scan"}),
        ("watch", "watch", {}),
    ],
)
def test_one_step_is_a_job_of_its_kind(step: str, kind: str, arguments: dict[str, Any]) -> None:
    plan = plan_steps([step])
    assert (plan.kind, plan.arguments) == (kind, arguments)


@pytest.mark.parametrize(
    ("kind", "arguments", "words"),
    [
        ("bake", {}, "No kind of job named 'bake'"),
        ("ingst", {}, "Did you mean 'ingest'"),
        ("ingest", {"path": "x"}, "unknown field `path`.*Known arguments: paths"),
        ("ingest", {"paths": "x"}, "Expected `array`"),
        ("ingest", {"paths": [1]}, "Expected `str`"),
        ("ingest", {"paths": ["x"], "config": "y"}, "not both"),
        ("profile", {}, "it has no required field `dataset`"),
        ("export", {"output": None}, "Expected `str`"),
        ("lineage", {"paths": []}, "lineage:models/"),
        ("usage", {"paths": []}, "usage:queries.csv"),
        ("version", {"mode": "never"}, "Invalid enum value"),
        ("export", {"output": "x" * 70_000}, "more than 65,536 bytes"),
        (CHAIN, {}, "steps of a chain"),
        (CHAIN, {"steps": []}, "1 to 50 'steps'"),
        (CHAIN, {"steps": [{"kind": "version"}] * (MAX_STEPS + 1)}, "1 to 50 'steps'"),
        (CHAIN, {"steps": [{"kind": CHAIN}]}, "No kind of job named 'chain'"),
        (CHAIN, {"steps": [{"kind": "version", "x": 1}]}, "unknown field `x`"),
        (CHAIN, {"steps": [{"kind": "version"}], "x": 1}, "no other arguments"),
        (CHAIN, {"steps": "version"}, "steps of a chain"),
        (CHAIN, {"steps": [{"kind": "watch"}]}, "A watcher runs until"),
        ("watch", {"sources": []}, "unknown field `sources`"),
    ],
)
def test_bad_arguments_are_rejected(kind: str, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(MisuseError, match=words):
        plan_job(kind, arguments)


@pytest.mark.parametrize(
    "step",
    [
        "",
        ":",
        "chain",
        "profile",
        "profile:",
        "export:",
        "lineage",
        "usage",
        "version:x",
        "watch:lake",
    ],
)
def test_bad_steps_are_rejected(step: str) -> None:
    with pytest.raises(MisuseError):
        plan_steps([step])


def test_planned_arguments_are_planned_again_without_change(workplace: Path) -> None:
    del workplace
    for step in ("ingest:lake", "profile:x", "sync:a", "export:x.json", "lineage:m", "usage:q.csv"):
        plan = plan_steps([step])
        assert plan_job(plan.kind, plan.arguments).arguments == plan.arguments
    assert set(KINDS) >= {"ingest", "profile", "sync", "export", "cost-record", "lineage", "usage"}


class Recorder:
    """Stands for the SDK: notes what is called."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.fails = ""

    def __getattr__(self, name: str) -> Any:
        return Recorder.__getattribute__(self, "of")(name)

    def of(self, feature: str) -> Any:
        recorder = self

        class Feature:
            def __getattr__(self, verb: str) -> Any:
                def call(*args: Any, **options: Any) -> dict[str, str]:
                    del args, options
                    recorder.calls.append(f"{feature}.{verb}")
                    if recorder.fails == f"{feature}.{verb}":
                        raise MisuseError("No.")
                    return {"ran": verb}

                return call

        return Feature()


def test_a_chain_goes_on_where_it_failed() -> None:
    plan = plan_steps(["version:auto", "cost-record", "export:x.json"])
    lumos: Any = Recorder()
    lumos.fails = "cost.record"
    completed: list[Any] = []

    def run(done: list[Any]) -> Any:
        return run_steps(
            plan, lumos, done=done, progress=no_progress,
            completed=lambda results: completed.append(list(results)),
        )  # fmt: skip

    with pytest.raises(MisuseError):
        run([])
    assert completed == [[{"ran": "update"}]]
    lumos.fails, lumos.calls = "", []
    result = run(completed[-1])
    assert lumos.calls == ["cost.record", "snapshot.export"]
    assert [step["ran"] for step in result["steps"]] == ["update", "record", "export"]


def test_large_results_are_stored_without_their_longest_lists() -> None:
    report = {"summary": {"datasets": 3}, "datasets": [{"urn": "x" * 100}] * 10_000, "told": 7}
    kept = limit_size(report)
    assert kept == {"summary": {"datasets": 3}, "told": 7, "left_out": {"datasets": 10_000}}
    assert len(to_json(kept)) < 1_000
    assert limit_size({"datasets": [1]}) == {"datasets": [1]}
