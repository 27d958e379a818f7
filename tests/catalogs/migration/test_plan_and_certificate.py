"""Plans of migrations, and certificates that are checked later."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer

from catalogs.json_folder import JsonFolder
from catalogs.servers.gms import TOKEN, Gms
from catalogs.servers.http import Server
from lumos import Lumos, plugins
from lumos.catalogs.migration.certificate import InvalidCertificate, read_certificate
from lumos.cli.main import app
from recorded_lake import RecordedLake

FILE = "datahub-file:estate.json"


@pytest.fixture
def lake(workplace: Path) -> Lumos:
    """A store with two datasets, a term with an owner, and a tag of more than 64 characters."""
    del workplace
    lumos = Lumos()
    RecordedLake(lumos).see_all(["sales/orders", "sales/items"], "id INT64\namount INT64")
    lumos.annotations.docs.set("orders", "All orders")
    lumos.annotations.terms.define("Order", definition="What is bought")
    lumos.annotations.terms.set("orders", "Order")
    return lumos


def test_a_plan_counts_aspects_and_writes_nothing(lake: Lumos, tmp_path: Path) -> None:
    plan = lake.migration.plan("local", FILE)
    assert plan.aspects["dataset.schema"].source == 2
    assert plan.aspects["dataset.schema"].holding == "native"
    assert plan.aspects["dataset.statistics"].holding == "properties"
    assert plan.calls.total == 0
    assert plan.dry_run.imported.sums.kinds["datasets"].created == 2
    assert not (tmp_path / "estate.json").exists()


def test_a_plan_says_how_aspects_are_stored_as_the_migration_then_does(lake: Lumos) -> None:
    lake.annotations.compliance.set("orders", "GDPR")
    lake.annotations.tags.set("orders", "pii")
    lake.annotations.tags.set("items", "pii")
    plan = lake.migration.plan("local", FILE)
    assert plan.aspects["dataset.governance"].counts == {"native": 1, "partly": 1}
    assert plan.aspects["dataset.governance"].holding == "partly"
    run = lake.migration.migrate("local", FILE)
    for aspect, held in run.imported.sums.held.items():
        assert plan.aspects[f"dataset.{aspect}"].counts == held, aspect


def test_deleted_datasets_are_counted_apart(
    lake: Lumos, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del workplace
    RecordedLake(lake).lose("sales/items")
    edges = "and 0 lineage edges"
    for words, expected in (
        (["export", "all.json"], "[ok] 1 dataset\n[ok] 1 deleted dataset, with history\n"),
        (["validate", "all.json"], "[ok] 1 dataset\n[ok] 1 deleted dataset, with history\n"),
        (["migrate", "local", FILE, "--plan"], f"\n1 dataset, 1 deleted dataset {edges}\n"),
        (["migrate", "local", FILE], f"[ok] 1 dataset, 1 deleted dataset {edges} exported"),
        (["diff", "all.json", "local"], f"Nothing differs in 1 dataset {edges}."),
    ):
        app(words, standalone_mode=False)
        assert expected in capsys.readouterr().out, words


def test_the_commands_of_a_runbook_are_commands(lake: Lumos) -> None:
    known: Any = typer.main.get_command(app)
    for step in lake.migration.plan("local", FILE).runbook:
        command = step.rpartition(": lumos ")[2].split()[0]
        assert command in known.commands, step


def test_a_plan_for_a_server_estimates_calls_and_time_stub(
    lake: Lumos, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATAHUB_GMS_TOKEN", TOKEN)
    monkeypatch.setenv("HOME", str(workplace))
    with Server(Gms()) as server:
        plan = lake.migration.plan("local", f"datahub:{server.address}")
    assert plan.calls.write >= 1
    assert plan.calls.read >= 2
    assert plan.round_trip > 0
    assert plan.seconds > 0


def test_a_plan_names_what_the_target_cannot_hold(
    lake: Lumos, monkeypatch: pytest.MonkeyPatch
) -> None:
    def losing(_self: JsonFolder, item: Any) -> Any:
        return type(item)(name=item.name) if hasattr(item, "definition") else item

    monkeypatch.setattr(JsonFolder, "item_as_stored", losing)
    plugins.register(plugins.PLATFORMS, JsonFolder.kind, JsonFolder)
    try:
        (loss,) = lake.migration.plan("local", "json-folder:catalog").lossy
    finally:
        plugins.unregister(plugins.PLATFORMS, JsonFolder.kind)
    assert (loss.aspect, loss.entries, loss.examples) == ("term.definition", 1, ("Order",))
    assert "json-folder cannot store it exactly" in loss.why


def test_a_certificate_holds_until_the_target_changes(lake: Lumos, workplace: Path) -> None:
    report = lake.migration.migrate("local", FILE, certificate="certificate.json")
    assert report.certificate == "certificate.json"
    certificate = read_certificate(Path("certificate.json"))
    assert certificate.is_whole
    assert certificate.aspects["dataset.schema"].target == 2
    assert set(certificate.entries["datasets"]) == {
        "lumos://file/lake/sales/items",
        "lumos://file/lake/sales/orders",
    }
    same = lake.migration.verify("certificate.json")
    assert same.is_unchanged
    assert same.entries == 3
    estate = workplace / "estate.json"
    estate.write_text(estate.read_text().replace("All orders", "Some orders"))
    changed = lake.migration.verify("certificate.json")
    assert changed.changed == ("lumos://file/lake/sales/orders",)
    estate.write_text("[]")
    gone = lake.migration.verify("certificate.json")
    assert len(gone.missing) == 3


def test_a_second_migration_writes_its_own_certificate_next_to_the_store(lake: Lumos) -> None:
    report = lake.migration.migrate("local", FILE)
    assert report.certificate is not None
    assert ".lumos/lumos.migrations/" in report.certificate
    assert lake.migration.verify(report.certificate).is_unchanged


def test_a_changed_certificate_is_rejected(lake: Lumos) -> None:
    lake.migration.migrate("local", FILE, certificate="certificate.json")
    file = Path("certificate.json")
    content = json.loads(file.read_text())
    content["source"] = "another"
    file.write_text(json.dumps(content))
    with pytest.raises(InvalidCertificate, match="was changed after it was written"):
        lake.migration.verify(file)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"seal": 3}', "\x00"])
def test_another_file_is_not_a_certificate(lake: Lumos, text: str) -> None:
    Path("other.json").write_text(text)
    with pytest.raises(InvalidCertificate, match="is not a certificate"):
        lake.migration.verify("other.json")


def test_exceptions_are_listed_with_their_reason(lake: Lumos) -> None:
    lake.migration.migrate("local", FILE)
    # Somebody edits the catalog, and the source changes at the same place.
    estate = Path("estate.json")
    estate.write_text(estate.read_text().replace("All orders", "Edited"))
    lake.annotations.docs.set("orders", "New text")
    lake.migration.migrate("local", FILE, certificate="second.json")
    exceptions = read_certificate(Path("second.json")).exceptions
    assert [(each.key, each.reason) for each in exceptions] == [
        ("lumos://file/lake/sales/orders", "an edit in the target was kept")
    ]
