"""Switches: a disabled feature does not run and is hidden, in the SDK, the CLI and the API."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer.main

from lumos import Lumos
from lumos.catalogs.datahub.file_platform import DatahubFile
from lumos.cli.main import app
from lumos.config.switches import SWITCHES, FeatureDisabled
from lumos.model.cron import next_due
from lumos.model.schema import Schema
from lumos.server.routes import ROUTES
from recorded_lake import RecordedLake
from served_store import client_of

Use = Callable[[Lumos], object]
USES: dict[str, list[Use]] = {
    "auto_detection": [lambda lumos: lumos.watch(once=True)],
    "schema_tracking": [
        lambda lumos: lumos.changes(),
        lambda lumos: list(lumos.change_history.iterate()),
        lambda lumos: lumos.change_history.latest(),
        lambda lumos: lumos.history("orders"),
        lambda lumos: lumos.schema.history("orders"),
        lambda lumos: lumos.schema.timeline("orders"),
        lambda lumos: lumos.schema.evolution(),
        lambda lumos: lumos.schema.diff("orders@1.0.0", "orders"),
        lambda lumos: lumos.version.show("orders"),
        lambda lumos: lumos.jobs.submit("version"),
    ],
    "cost_attribution": [
        lambda lumos: lumos.cost.report("orders"),
        lambda lumos: lumos.cost_sources.overrides(),
        lambda lumos: lumos.jobs.submit("cost-record"),
        lambda lumos: lumos.schedules.add("costs", "monthly", "cost-record"),
        lambda lumos: lumos.run("ingest", "cost-record", detach=True),
    ],
    "lineage": [
        lambda lumos: lumos.lineage.view.show("orders"),
        lambda lumos: lumos.impact.of("orders", drop=["amount"]),
        lambda lumos: lumos.jobs.submit("lineage", {"paths": ["models"]}),
    ],
    "usage": [
        lambda lumos: lumos.usage.show("orders"),
        lambda lumos: lumos.usage.ingest("log.csv"),
        lambda lumos: lumos.jobs.submit("usage", {"paths": ["log.csv"]}),
    ],
    "profiles": [
        lambda lumos: lumos.profiles.profile("orders"),
        lambda lumos: lumos.ingest("models", profile=True),
        lambda lumos: lumos.jobs.submit("profile", {"dataset": "orders"}),
    ],
    "notifications": [
        lambda lumos: lumos.notifications.status(),
        lambda lumos: lumos.jobs.submit("remind"),
    ],
    "releases": [
        lambda lumos: lumos.releases.list(),
        lambda lumos: lumos.jobs.submit("release-refresh", {"release": "1.0"}),
    ],
}


def disabling(name: str, *, more: str = "") -> Lumos:
    file = Path("lumos.yaml")
    file.write_text(f"{file.read_text()}features: {{{name}: false}}\n{more}")
    return Lumos(file)


def run(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "lumos", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", USES)
def test_what_is_disabled_fails_with_the_switch_and_the_file(name: str) -> None:
    lumos = disabling(name)
    for use in USES[name]:
        with pytest.raises(FeatureDisabled, match=f"features.{name} is false in .*lumos.yaml"):
            use(lumos)


def test_every_switch_is_tested_and_hides_existing_commands() -> None:
    assert USES.keys() == SWITCHES.keys()
    for switch in SWITCHES.values():
        for name in switch.commands:
            group: Any = typer.main.get_command(app)
            for word in name.split():
                group = group.commands[word]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", [each for each in USES if each != "auto_detection"])
def test_routes_of_a_disabled_feature_answer_404_and_are_not_in_the_document(name: str) -> None:
    with client_of(disabling(name)) as client:
        paths = json.loads(client.get("/openapi.json").content)["paths"]
        for route in ROUTES:
            first = route.sdk_path.partition(".")[0]
            disabled = {first, route.sdk_path} & set(SWITCHES[name].sdk_paths)
            assert (route.method.lower() in paths.get(route.url, {})) is not bool(disabled)
            if not disabled:
                continue
            answer = client.request(route.method, route.url)
            assert answer.status_code == 404
            assert answer.headers["content-type"].startswith("application/problem+json")
            assert f"features.{name} is false" in answer.json()["detail"]


@pytest.mark.usefixtures("folder")
def test_intake_and_streams_of_disabled_features_answer_404() -> None:
    with client_of(disabling("lineage")) as client:
        assert client.post("/api/v1/lineage", json={}).status_code == 404
        assert "post" not in json.loads(client.get("/openapi.json").content)["paths"].get(
            "/api/v1/lineage", {}
        )
    Path("lumos.yaml").write_text("storage: {path: store.db}\n")
    with client_of(disabling("schema_tracking")) as client:
        assert client.get("/api/v1/changes/events").status_code == 404


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("name", "aspect", "dataset"),
    [
        ("cost_attribution", "cost", "orders"),
        ("lineage", "lineage", "tickets"),
        ("usage", "usage", "orders"),
    ],
)
def test_aspects_are_neither_shown_nor_exported(name: str, aspect: str, dataset: str) -> None:
    lumos = Lumos("lumos.yaml")
    lumos.cost.record("2024-01", aspects=True)
    assert lumos.show(dataset).dataset.get(aspect)
    lumos.snapshot.export("with.json")
    lumos = disabling(name)
    assert not lumos.show(dataset).dataset.get(aspect)
    report = lumos.snapshot.export("without.json")
    assert report.omitted == (aspect,)
    entries = {
        file: {each["urn"]: each for each in json.loads(Path(file).read_text())["datasets"]}
        for file in ("with.json", "without.json")
    }
    urn = f"lumos://file/lake/{dataset}"
    assert aspect in entries["with.json"][urn]
    assert aspect not in entries["without.json"][urn]
    assert run("show", dataset).returncode == 0
    lumos.snapshot.try_load("without.json")


@pytest.mark.usefixtures("folder")
def test_without_usage_lineage_is_read_and_reads_are_not_counted() -> None:
    lumos = disabling("usage")
    report = lumos.lineage.ingest("models", "log.csv")
    assert report.files == {"sql": 1, "query log": 1}
    assert [each.reason for each in report.problems if "features.usage" in each.reason] == [
        "Query logs are not read: features.usage is false in the configuration."
    ]
    run_event = {
        "eventTime": "2024-01-05T10:00:00Z",
        "eventType": "COMPLETE",
        "run": {"runId": "0190d1a5-0000-7000-8000-000000000001"},
        "job": {"namespace": "etl", "name": "load"},
        "inputs": [{"namespace": "file", "name": "/lake/tickets"}],
        "outputs": [{"namespace": "file", "name": "/lake/out"}],
    }
    lumos.lineage.record_events(run_event)
    Path("lumos.yaml").write_text("storage: {path: store.db}\n")
    assert Lumos("lumos.yaml").usage.show("tickets").readers == ()


@pytest.mark.usefixtures("folder")
def test_aspects_of_disabled_features_are_not_published_and_stay_in_the_catalog() -> None:
    def published(dataset: str) -> Any:
        entries = DatahubFile.at("catalog.json").export()
        (entry,) = [each for each in entries if each.urn == f"lumos://file/lake/{dataset}"]
        return entry

    Path("lumos.yaml").write_text(
        "storage: {path: store.db}\nplatform: datahub-file:catalog.json\n"
    )
    Lumos("lumos.yaml").migration.sync(full=True)
    before = published("tickets").lineage
    assert before is not None
    lumos = disabling("lineage")
    report = lumos.annotations.tags.set("tickets", "gold")
    assert report.changed == 1
    after = published("tickets")
    assert "gold" in after.governance.tags
    assert after.lineage == before
    # A catalog that has no lineage yet gets none.
    (fresh,) = lumos.migration.sync(full=True, outputs=["datahub-file:other.json"]).published
    assert fresh.is_complete
    other = DatahubFile.at("other.json").export()
    assert [each.urn for each in other if each.lineage is not None] == []
    # Turned on again, everything is published.
    Path("lumos.yaml").write_text("storage: {path: store.db}\n")
    Lumos("lumos.yaml").migration.sync(full=True, outputs=["datahub-file:other.json"])
    found = {each.urn: each.lineage for each in DatahubFile.at("other.json").export()}
    assert found["lumos://file/lake/tickets"] == before


@pytest.mark.usefixtures("folder")
def test_help_lists_no_command_of_a_disabled_feature() -> None:
    Path("lumos.yaml").write_text("{}")
    before = run("--help").stdout
    assert "│ cost " in before
    assert "│ history " in before
    switches = ", ".join(f"{name}: false" for name in ("cost_attribution", "schema_tracking"))
    Path("lumos.yaml").write_text(f"features: {{{switches}}}")
    after = run("--help").stdout
    assert "│ cost " not in after
    assert "│ history " not in after
    assert "│ lineage " in after
    schema = run("schema", "--help").stdout
    assert "│ diff " not in schema
    assert "│ predict " in schema
    failed = run("cost", "top")
    assert failed.returncode == 2
    assert "features.cost_attribution is false in" in failed.stderr
    Path("lumos.yaml").write_text("features: [broken")
    assert "│ cost " in run("--help").stdout


@pytest.mark.usefixtures("folder")
def test_lists_under_features_are_still_features_of_the_cost_model() -> None:
    lumos = disabling("lineage: [orders], auto_detection")
    assert lumos.settings.switches.disabled == ("auto_detection",)
    assert lumos.lineage.view.show("orders")
    notes = [each.text for each in lumos.config_check().notes if each.key.startswith("features")]
    assert notes == ["Watching sources is disabled and hidden."]


@pytest.mark.usefixtures("folder")
def test_a_schedule_of_a_disabled_feature_is_skipped_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lumos = Lumos("lumos.yaml")
    lumos.schedules.add("costs", "monthly", "cost-record")
    registry = lumos.create_store().jobs
    registry.schedules.pause("costs", paused=False, next_due=registry.now())
    with caplog.at_level(logging.WARNING):
        report = disabling("cost_attribution").jobs.work(once=True)
    assert (report.scheduled, report.succeeded) == (0, 0)
    assert "The schedule 'costs' was skipped. Cost attribution is disabled" in caplog.text
    ((_, job),) = registry.schedules.runs("costs")
    assert job is None
    record = registry.schedules.schedule("costs")
    assert record is not None
    assert record.next_due == next_due("0 0 1 * *", "UTC", registry.now())


@pytest.mark.usefixtures("folder")
def test_disabled_notifications_neither_schedule_reminders_nor_write_messages() -> None:
    rules = "notifications:\n  channels: {chat: 'json://127.0.0.1:1'}\n"
    rules += "  changes: [{channel: chat, events: [CREATED]}]\n  nudge: {schedule: daily}\n"
    Path("lumos.yaml").write_text(f"storage: {{path: other.db}}\n{rules}")
    lumos = disabling("notifications")
    RecordedLake(lumos).see("orders", "id INT64")
    lumos.jobs.work(once=True)
    assert lumos.schedules.list().schedules == ()
    assert lumos.create_store().notification_outbox.counts() == ()


@pytest.mark.usefixtures("folder")
def test_without_tracking_scans_replace_schemas_and_versions_stay() -> None:
    Path("lumos.yaml").write_text("storage: {path: other.db}\n")
    seen = RecordedLake(Lumos("lumos.yaml"))
    urn = seen.see("orders", "id INT64").urn
    seen.see("orders", "id INT64\namount INT32")
    (known,) = seen.store.known(source="file:/lake").values()
    assert (known.cloud_version, known.schema_version) == ("S-2", "1.1.0")
    untracked = RecordedLake(disabling("schema_tracking"))
    untracked.start = seen.at
    untracked.recorder()
    assert untracked.see_all(["orders"], "id STRING") == []
    (after,) = seen.store.known(source="file:/lake").values()
    assert (after.cloud_version, after.schema_version) == ("S-2", "1.1.0")
    assert after.content != known.content
    shown = seen.lumos.show("orders").dataset
    assert [(each["name"], each["type"]) for each in shown["schema"]["fields"]] == [
        ("id", "STRING")
    ]
    assert len(seen.store.events(urn)) == 2
    assert len(seen.lumos.history("orders").versions) == 2
    # Once tracking is enabled again, the next change is compared with the schema of the last scan.
    seen.start = untracked.at
    seen.recorder()
    event = seen.see("orders", "id STRING\nname STRING")
    assert [each.change.path for each in event.findings] == ["name"]
    assert isinstance(seen.store.get(urn).schema, Schema)
