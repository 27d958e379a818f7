"""Migrations that were broken off, or did not bring all: what going on with them does."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any, ClassVar

import pytest

from lumos import Lumos, plugins
from lumos.catalogs import WrittenEntry
from lumos.catalogs.datahub.file_platform import DatahubFile
from lumos.errors import CatalogError, LumosError, MisuseError
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Governance
from lumos.snapshots.format.reader import open_snapshot
from snapshots.stores import fill

FILE = "datahub-file:estate.json"
CHOOSY = "choosy:estate.json"


def table(name: str = "orders", *tags: str) -> CatalogEntry:
    labels = Governance(tags=tags) if tags else None
    return CatalogEntry(
        urn=f"lumos://snowflake/SHOP/{name}", name=name, platform="snowflake", governance=labels
    )


@pytest.fixture
def lumos(workplace: Path) -> Lumos:
    lumos = Lumos(overrides={"storage.path": str(workplace / "lumos.db")})
    fill(lumos, {"datasets": [table("customers"), table("orders", "sensitive"), table("stores")]})
    return lumos


def held(lumos: Lumos) -> dict[str, CatalogEntry]:
    if not Path("estate.json").exists():
        return {}
    lumos.snapshot.export("held.jsonl", platform=FILE)
    with open_snapshot("held.jsonl") as opened:
        return {entry.name: entry for entry in opened.datasets() if not entry.deleted}


class Choosy(DatahubFile):
    """A catalog that takes entries one by one, and some of them not yet."""

    kind: ClassVar[str] = "choosy"
    refused: ClassVar[set[str]] = set()
    dropped: ClassVar[set[str]] = set()
    asked: ClassVar[list[str]] = []

    def put(self, entry: CatalogEntry) -> WrittenEntry:
        self.asked.append(entry.name)
        if entry.name in self.refused:
            raise CatalogError("Its name is too long.", platform=self.name, status=400)
        if entry.name in self.dropped:
            return WrittenEntry(urn=entry.urn, changed=True)
        return super().put(entry)


@pytest.fixture
def choosy(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Choosy]]:
    plugins.register(plugins.PLATFORMS, "choosy", Choosy)
    monkeypatch.setattr("lumos.snapshots.targets.WritesInBatches", type("Never", (), {}))
    yield Choosy
    for some in (Choosy.refused, Choosy.dropped, Choosy.asked):
        some.clear()
    plugins.unregister(plugins.PLATFORMS, "choosy")


def broken_off(*_: Any, **__: Any) -> Any:
    raise LumosError("The light went out.")


@contextmanager
def breaking(monkeypatch: pytest.MonkeyPatch, place: str) -> Iterator[None]:
    """Lets what is done be broken off at a place in the code."""
    with monkeypatch.context() as patch:
        patch.setattr(f"lumos.{place}", broken_off)
        with pytest.raises(LumosError, match="light went out"):
            yield


@pytest.mark.parametrize("phase", ["service.export", "service._validate_export", "service.verify"])
def test_the_mapping_outlives_a_migration_that_is_broken_off(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    Path("mapping.yaml").write_text("tags: {sensitive: PII.Sensitive}")
    with breaking(monkeypatch, f"catalogs.migration.{phase}"):
        lumos.migration.migrate("local", FILE, mapping="mapping.yaml", keep="kept.jsonl")
    Path("mapping.yaml").unlink()
    report = lumos.migration.migrate("local", FILE, resume=True)
    assert (report.is_whole, report.snapshot) == (True, "kept.jsonl")
    assert held(lumos)["orders"].governance == Governance(tags=("PII.Sensitive",))


def test_an_export_that_is_broken_off_leaves_the_last_migration_to_be_taken_back(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch
) -> None:
    lumos.migration.migrate("local", FILE)
    fill(lumos, {"datasets": [table("returns")]})
    for phase in ("service.export", "service.Snapshots.load"):
        with breaking(monkeypatch, f"catalogs.migration.{phase}"):
            lumos.migration.migrate("local", FILE)
    assert lumos.migration.roll_back("local", FILE).erased == 3
    assert held(lumos) == {}


def test_what_was_refused_is_sent_again_and_all_of_it_can_be_taken_back(
    lumos: Lumos, choosy: type[Choosy]
) -> None:
    choosy.refused.add("orders")
    report = lumos.migration.migrate("local", CHOOSY)
    assert (report.is_whole, len(report.imported.refused)) == (False, 1)
    choosy.asked.clear()
    again = lumos.migration.migrate("local", CHOOSY, resume=True)
    assert (again.is_whole, len(again.imported.refused)) == (False, 1)
    choosy.refused.clear()
    last = lumos.migration.migrate("local", CHOOSY, resume=True)
    assert (last.is_whole, last.resumed, last.imported.refused) == (True, True, ())
    assert last.imported.sums.kinds["datasets"].created == 3
    assert choosy.asked == ["orders", "orders"]
    assert set(held(lumos)) == {"customers", "orders", "stores"}
    assert lumos.migration.roll_back("local", CHOOSY).erased == 3
    assert held(lumos) == {}


def test_what_was_not_there_when_it_was_read_back_is_sent_again(
    lumos: Lumos, choosy: type[Choosy]
) -> None:
    choosy.dropped.add("orders")
    report = lumos.migration.migrate("local", CHOOSY)
    assert report.verified is not None
    assert report.verified.missing == (table().urn,)
    choosy.dropped.clear()
    assert lumos.migration.migrate("local", CHOOSY, resume=True).is_whole
    assert set(held(lumos)) == {"customers", "orders", "stores"}


def test_what_was_taken_back_is_not_gone_on_with(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch
) -> None:
    with breaking(monkeypatch, "catalogs.migration.service.verify"):
        lumos.migration.migrate("local", FILE)
    lumos.migration.roll_back("local", FILE)
    fill(lumos, {"datasets": [table("returns")]})
    report = lumos.migration.migrate("local", FILE, resume=True)
    assert (report.is_whole, report.resumed) == (True, False)
    assert len(held(lumos)) == 4


def test_a_migration_whose_export_is_gone_can_only_be_taken_back(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch
) -> None:
    with breaking(monkeypatch, "snapshots.targets.CatalogTarget.write"):
        lumos.migration.migrate("local", FILE, keep="kept.jsonl")
    Path("kept.jsonl").unlink()
    fill(lumos, {"datasets": [table("returns")]})
    with pytest.raises(MisuseError, match="jsonl is missing"):
        lumos.migration.migrate("local", FILE, resume=True)
    lumos.migration.roll_back("local", FILE)
    assert lumos.migration.migrate("local", FILE).is_whole


class Slow(DatahubFile):
    """A catalog that answers nothing until it is let go."""

    kind: ClassVar[str] = "slow"
    answer: ClassVar[Event] = Event()

    def export(self, *, after: str | None = None) -> Iterator[CatalogEntry]:
        assert self.answer.wait(60)
        return super().export(after=after)


@pytest.fixture
def slow() -> Iterator[str]:
    plugins.register(plugins.PLATFORMS, "slow", Slow)
    DatahubFile.at("slow.json").put(table())
    Slow.answer.clear()
    yield "slow:slow.json"
    Slow.answer.set()
    plugins.unregister(plugins.PLATFORMS, "slow")


def test_a_source_that_fails_does_not_wait_for_the_target(
    lumos: Lumos, slow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumos.snapshots.catalogs.LocalCatalog.datasets", broken_off)
    for act in (lumos.migration.try_migrate, lumos.migration.migrate, lumos.snapshot.diff):
        with pytest.raises(LumosError, match="light went out"):
            act("local", slow)
        assert not Slow.answer.is_set()


def test_a_target_that_does_not_answer_is_told_before_anything_is_exported(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumos.catalogs.migration.service.export", broken_off)
    with pytest.raises(CatalogError, match=r"openmetadata:http://127\.0\.0\.1:1"):
        lumos.migration.try_migrate("local", "openmetadata:http://127.0.0.1:1")


def test_a_run_that_changed_nothing_leaves_the_one_before_it_to_be_taken_back(
    lumos: Lumos,
) -> None:
    lumos.migration.migrate("local", FILE, keep="first.jsonl")
    lumos.migration.migrate("local", FILE)
    Path("mapping.yaml").write_text("tags: {unknown: known}")
    lumos.migration.migrate("local", FILE, mapping="mapping.yaml")
    assert lumos.migration.roll_back("local", FILE).erased == 3
    assert held(lumos) == {}


def test_what_was_exported_can_be_kept_by_those_who_go_on(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch
) -> None:
    with breaking(monkeypatch, "snapshots.targets.CatalogTarget.write"):
        lumos.migration.migrate("local", FILE)
    report = lumos.migration.migrate("local", FILE, resume=True, keep="kept.yaml")
    assert (report.is_whole, report.snapshot) == (True, "kept.yaml")
    whole = lumos.snapshot.export("whole.json", include_ranges=True)
    assert lumos.snapshot.validate("kept.yaml").hash == whole.hash


def test_a_catalog_that_is_lost_while_it_is_taken_back_is_taken_back_later(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch
) -> None:
    lumos.migration.migrate("local", FILE)
    with monkeypatch.context() as patch:
        patch.setattr("lumos.snapshots.targets.CatalogTarget.undo", broken_off)
        with pytest.raises(LumosError, match="rollback is not finished") as lost:
            lumos.migration.roll_back("local", FILE)
    assert "--resume" not in str(lost.value)
    lumos.migration.roll_back("local", FILE)
    assert held(lumos) == {}


def test_progress_names_the_catalog_and_no_file_of_our_own(lumos: Lumos) -> None:
    steps: list[str] = []
    lumos.migration.migrate("local", FILE, progress=lambda step, **_: steps.append(step))
    assert any(step.startswith("importing into datahub-file:") for step in steps)
    assert not [step for step in steps if "lumos.migrations" in step]


def test_taking_back_the_last_migration_forgets_nothing_of_the_one_that_was_broken_off(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch
) -> None:
    lumos.migration.migrate("local", FILE)
    Path("mapping.yaml").write_text("tags: {sensitive: PII.Sensitive}")
    with breaking(monkeypatch, "catalogs.migration.service.export"):
        lumos.migration.migrate("local", FILE, mapping="mapping.yaml")
    lumos.migration.roll_back("local", FILE)
    assert lumos.migration.migrate("local", FILE, resume=True).is_whole
    assert held(lumos)["orders"].governance == Governance(tags=("PII.Sensitive",))
