"""All that a catalog holds moves into another one: proved, again without harm, and back."""

import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from catalogs.sample_inventory import CUSTOMERS, ORDERS, items, rich
from lumos import Lumos, plugins
from lumos.catalogs import WrittenEntry
from lumos.catalogs.datahub.file_platform import DatahubFile
from lumos.catalogs.migration.reports import MigrationReport, UnmappedName
from lumos.config.yaml_tree import ConfigurationError
from lumos.errors import CatalogError, LumosError, MisuseError
from lumos.model.catalog import CatalogEntry, User
from lumos.model.dataset import (
    Documentation,
    Governance,
    Lineage,
    Owner,
    Ownership,
    UpstreamEdge,
)
from lumos.model.schema import Field, Schema
from lumos.model.types import STRING
from lumos.snapshots.format.reader import open_snapshot
from lumos.store import Store
from snapshots.sample_inventories import many
from snapshots.stores import fill, write

FILE = "datahub-file:estate.json"
_SCRIPT = Path(__file__).with_name("killed_migration.py")
_POINTS = 10


@pytest.fixture
def lumos(workplace: Path) -> Lumos:
    """A store that holds some of everything that DataHub can hold."""
    by_kind: dict[str, list[Any]] = {"datasets": rich()}
    words = {"GlossaryTerm": "glossary", "User": "users", "Group": "groups", "Job": "jobs"}
    for item in map(catalog().item_as_stored, items()):
        by_kind.setdefault(words.get(type(item).__name__, "others"), []).append(item)
    lumos = Lumos(overrides={"storage.path": str(workplace / "lumos.db")})
    fill(lumos, by_kind)
    return lumos


def held(lumos: Lumos, platform: str) -> dict[str, CatalogEntry]:
    """All datasets that a catalog holds."""
    lumos.snapshot.export("held.jsonl", platform=platform)
    with open_snapshot("held.jsonl") as opened:
        return {entry.urn: entry for entry in opened.datasets()}


def catalog() -> DatahubFile:
    return DatahubFile.at("estate.json")


def table(urn: str = "lumos://snowflake/SHOP/orders", **aspects: Any) -> CatalogEntry:
    name = urn.rpartition("/")[2]
    return CatalogEntry(urn=urn, name=name, platform="snowflake", **aspects)


def verified(report: MigrationReport) -> tuple[tuple[int, int], tuple[int, int]]:
    assert report.verified is not None
    found = report.verified
    return (
        (found.datasets.target, found.datasets.source),
        (found.lineage_edges.target, found.lineage_edges.source),
    )


def test_everything_moves_there_and_back_without_loss(lumos: Lumos, workplace: Path) -> None:
    before = lumos.snapshot.export("before.json", include_ranges=True)
    report = lumos.migration.migrate("local", FILE)
    assert verified(report) == ((2, 2), (2, 2))
    assert report.is_whole
    assert report.verified is not None
    assert report.verified.summary.differences == 0
    assert report.snapshot is None
    other = Lumos(overrides={"storage.path": str(workplace / "other.db")})
    assert other.migration.migrate(FILE, "local").is_whole
    assert other.snapshot.export("after.json", include_ranges=True).hash == before.hash


def test_a_second_migration_writes_what_changed_and_keeps_what_people_wrote(lumos: Lumos) -> None:
    lumos.migration.migrate("local", FILE)
    (text,) = (Path("estate.json").read_bytes(),)
    again = lumos.migration.migrate("local", FILE)
    tally = again.imported.sums.kinds["datasets"]
    assert (tally.unchanged, tally.total, Path("estate.json").read_bytes()) == (3, 3, text)
    there = catalog().get(ORDERS)
    assert there is not None
    words = Documentation(description="Typed in the catalog")
    catalog().put(msgspec.structs.replace(there, documentation=words))
    store = fill(lumos, {})
    moved = held(lumos, "local")
    labels = Governance(tags=("new",))
    write(store, msgspec.structs.replace(moved[CUSTOMERS], governance=labels))
    third = lumos.migration.migrate("local", FILE)
    tally = third.imported.sums.kinds["datasets"]
    assert (tally.changed, tally.unchanged) == (1, 2)
    assert third.is_whole
    assert third.verified is not None
    assert third.verified.summary.entries == 1
    now = held(lumos, FILE)
    assert now[ORDERS].documentation == words
    assert now[CUSTOMERS].governance == labels


def test_a_dry_run_writes_nothing_and_needs_no_store(lumos: Lumos, workplace: Path) -> None:
    report = lumos.migration.try_migrate("local", FILE)
    assert (report.dry_run, report.verified, report.is_whole) == (True, None, True)
    assert report.imported.sums.kinds["datasets"].created == 2
    assert not Path("estate.json").exists()
    lumos.migration.migrate("local", FILE)
    other = Lumos(overrides={"storage.path": str(workplace / "none" / "lumos.db")})
    other.migration.try_migrate(FILE, "datahub-file:other.json")
    assert not (workplace / "none").exists()
    assert not Path("other.json").exists()


def test_a_migration_is_taken_back(lumos: Lumos) -> None:
    catalog().put(table())
    before = held(lumos, FILE)
    lumos.migration.migrate("local", FILE)
    assert len(held(lumos, FILE)) == 4
    report = lumos.migration.roll_back("local", FILE)
    assert report.erased > 0
    assert held(lumos, FILE) == before
    with pytest.raises(MisuseError, match="no import into"):
        lumos.migration.roll_back("local", FILE)
    with pytest.raises(MisuseError, match="Nothing was migrated from local to datahub-file:b"):
        lumos.migration.roll_back("local", "datahub-file:b.json")


def test_what_was_exported_is_kept_where_it_is_asked_for(lumos: Lumos) -> None:
    exported = lumos.snapshot.export("before.json", include_ranges=True)
    Path("mapping.yaml").write_text("tags: {PII: Personal}")
    report = lumos.migration.migrate("local", FILE, keep="kept.jsonl.zst", mapping="mapping.yaml")
    assert (report.is_whole, report.snapshot) == (True, "kept.jsonl.zst")
    assert lumos.snapshot.validate("kept.jsonl.zst").hash == exported.hash
    assert lumos.migration.roll_back("local", FILE).erased > 0


def test_references_that_lead_out_of_the_source_are_told_and_kept(lumos: Lumos) -> None:
    away = Lineage(upstream=(UpstreamEdge(urn="lumos://s3/elsewhere/x"),))
    fill(lumos, {"datasets": [table(lineage=away)]})
    report = lumos.migration.migrate("local", FILE)
    assert verified(report) == ((3, 3), (3, 3))
    (remark,) = report.remarks
    assert remark.startswith("2 references lead to datasets that local does not contain")
    assert held(lumos, FILE)[table().urn].lineage == away


class Forgetful(DatahubFile):
    """A catalog that says of one dataset that it took it, and drops the tags of another."""

    kind: ClassVar[str] = "forgetful"

    def put(self, entry: CatalogEntry) -> WrittenEntry:
        if entry.urn == ORDERS:
            return WrittenEntry(urn=entry.urn, changed=True)
        return super().put(msgspec.structs.replace(entry, governance=None))


@pytest.fixture
def forgetful() -> Iterator[str]:
    plugins.register(plugins.PLATFORMS, "forgetful", Forgetful)
    yield "forgetful:estate.json"
    plugins.unregister(plugins.PLATFORMS, "forgetful")


def test_what_a_catalog_only_says_it_took_is_found_out(lumos: Lumos, forgetful: str) -> None:
    labels = Governance(tags=("tier-1",))
    fill(lumos, {"datasets": [table(governance=labels)]})
    report = lumos.migration.migrate("local", forgetful)
    assert report.verified is not None
    assert verified(report)[0] == (2, 3)
    assert not report.is_whole
    assert report.verified.missing == (ORDERS,)
    assert {ORDERS, table().urn} <= set(report.verified.unlike)
    assert UnmappedName(kind="tag", name="tier-1") in report.needs
    # What was exported is there until it is known to have arrived.
    assert report.snapshot is not None
    assert Path(report.snapshot).exists()


class Choosy(DatahubFile):
    """A catalog that takes entries one by one, and not every one of them."""

    kind: ClassVar[str] = "choosy"

    def put(self, entry: CatalogEntry) -> WrittenEntry:
        if entry.urn == ORDERS:
            raise CatalogError("Its name is too long.", platform=self.name, status=400)
        return super().put(entry)


def test_what_a_catalog_refuses_is_named_and_the_rest_arrives(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins.register(plugins.PLATFORMS, "choosy", Choosy)
    monkeypatch.setattr("lumos.snapshots.targets.WritesInBatches", type("Never", (), {}))
    try:
        report = lumos.migration.migrate("local", "choosy:estate.json")
    finally:
        plugins.unregister(plugins.PLATFORMS, "choosy")
    (refused,) = report.imported.refused
    assert (refused.key, refused.problem) == (ORDERS, "Its name is too long.")
    assert not report.is_whole
    assert report.verified is not None
    assert (report.verified.missing, report.verified.unlike) == ((ORDERS,), ())
    assert verified(report)[0] == (1, 2)


def test_names_that_the_target_spells_otherwise_are_told(lumos: Lumos) -> None:
    there = [
        table(
            "lumos://snowflake@prod/SHOP/customers",
            governance=Governance(tags=("Pii.Sensitive",)),
            ownership=Ownership(owners=(Owner(name="ann"),)),
        ),
        CatalogEntry(urn="lumos://s3/lake/Events", name="Events", platform="s3"),
    ]
    for entry in there:
        catalog().put(entry)
    here = [
        table(
            "lumos://snowflake/SHOP/customers",
            governance=Governance(tags=("sensitive", "new")),
            ownership=Ownership(owners=(Owner(name="Ann@shop.example"), Owner(name="bob"))),
        ),
        CatalogEntry(urn="lumos://s3/lake/events", name="events", platform="s3"),
    ]
    fill(lumos, {"datasets": here})
    report = lumos.migration.try_migrate("local", FILE)
    assert report.needs == (
        UnmappedName(kind="tag", name="sensitive", like=("Pii.Sensitive",), datasets=1),
        UnmappedName(kind="owner", name="Ann@shop.example", like=("ann",), datasets=1),
        UnmappedName(kind="service", name="snowflake", like=("snowflake@prod",), datasets=1),
        UnmappedName(
            kind="dataset",
            name="lumos://s3/lake/events",
            like=("lumos://s3/lake/Events",),
            datasets=1,
        ),
    )


MAPPING = """
tags: {sensitive: Pii.Sensitive, new: new}
owners:
  Ann@shop.example: ann
services:
  snowflake: snowflake@prod
"""


def test_a_mapping_joins_what_has_two_names(lumos: Lumos, workplace: Path) -> None:
    urn, mapped = "lumos://snowflake/SHOP/customers", "lumos://snowflake@prod/SHOP/customers"
    words = Documentation(description="Of people")
    catalog().put(table(mapped, documentation=words))
    catalog().put_item(User(name="ann", title="Of the catalog"))
    column = Field(name="mail", type=STRING, tags=("sensitive",))
    entry = table(
        urn,
        schema=Schema(fields=(column,)),
        governance=Governance(tags=("Pii.Sensitive", "sensitive")),
        ownership=Ownership(owners=(Owner(name="Ann@shop.example"),)),
    )
    made = table(lineage=Lineage(upstream=(UpstreamEdge(urn=urn),)))
    fill(lumos, {"datasets": [entry, made], "users": [User(name="Ann@shop.example")]})
    (workplace / "mapping.yaml").write_text(MAPPING)
    report = lumos.migration.migrate("local", FILE, mapping="mapping.yaml")
    assert (report.is_whole, report.needs) == (True, ())
    assert report.remarks[-1] == "The mapping names tag 'new', which the source does not have."
    now = held(lumos, FILE)
    assert urn not in now
    joined = now[mapped]
    assert joined.documentation == words
    assert joined.schema is not None
    assert joined.schema.fields[0].tags == ("Pii.Sensitive",)
    assert joined.governance == Governance(tags=("Pii.Sensitive",))
    assert joined.ownership == Ownership(owners=(Owner(name="ann"),))
    moved = now["lumos://snowflake@prod/SHOP/orders"].lineage
    assert moved == Lineage(upstream=(UpstreamEdge(urn=mapped),))
    ann = catalog().get_item(User, "ann")
    assert isinstance(ann, User)
    assert ann.title == "Of the catalog"
    with pytest.raises(MisuseError, match="Pass it again with --mapping"):
        lumos.migration.migrate("local", FILE)
    assert lumos.migration.migrate("local", FILE, mapping="mapping.yaml").is_whole


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("tag: {a: b}", "tags"),
        ("tags: [a]", "mapping"),
        ("services: {'snow flake': snowflake}", "snow flake"),
        ("datasets: {orders: 'lumos://s3/orders'}", "orders"),
    ],
)
def test_a_wrong_mapping_is_refused_before_anything_is_read(
    lumos: Lumos, workplace: Path, text: str, complaint: str
) -> None:
    (workplace / "mapping.yaml").write_text(text)
    with pytest.raises((ConfigurationError, MisuseError), match=complaint):
        lumos.migration.migrate("local", FILE, mapping="mapping.yaml")
    assert not Path("estate.json").exists()


def test_a_catalog_is_not_moved_into_itself(lumos: Lumos) -> None:
    catalog().put(table())
    with pytest.raises(MisuseError, match="are the same catalog"):
        lumos.migration.migrate(FILE, "datahub-file:./estate.json")


def run(act: str, *words: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(_SCRIPT), act, "local", FILE, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def large(workplace: Path) -> Lumos:
    """A store with some datasets more, and a catalog that holds some of them already."""
    lumos = Lumos(overrides={"storage.path": str(workplace / ".lumos" / "lumos.db")})
    fill(lumos, {"datasets": list(many(20))})
    catalog().put(msgspec.structs.replace(next(iter(many(1))), name="as it was"))
    return lumos


@pytest.fixture
def killed(large: Lumos) -> Callable[[int], bool]:
    """Kills a migration at a random moment; says whether it had begun to write."""
    calls = int(run("migrate", 0).stdout)
    run("rollback", 0)

    def kill(seed: int) -> bool:
        point = random.Random(seed).randrange(1, calls)
        assert run("migrate", point).returncode == -signal.SIGKILL
        run_there = Store.open(large.database).journal.open_run(catalog().name)
        if run_there is None or run_there.state == "done":
            return False
        with pytest.raises(MisuseError, match="--resume"):
            large.migration.migrate("local", FILE)
        return True

    return kill


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(_POINTS))
def test_a_killed_migration_goes_on_to_the_same_end_or_leaves_nothing(
    large: Lumos, killed: Callable[[int], bool], seed: int
) -> None:
    before = held(large, FILE)
    if killed(seed):
        assert run("rollback", 0).returncode == 0
        assert held(large, FILE) == before
    killed(seed + _POINTS)
    done = run("resume", 0)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(held(large, FILE)) == 20
    assert large.snapshot.diff("local", FILE).summary.differences == 0


def test_a_stopped_migration_says_how_to_go_on(lumos: Lumos, monkeypatch: Any) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise LumosError("The disk is full.")

    monkeypatch.setattr("lumos.snapshots.targets.CatalogTarget.write", full)
    with pytest.raises(LumosError, match="--resume"):
        lumos.migration.migrate("local", FILE)
