"""Snapshots come into live catalogs as into any other, here into stubs of their servers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import pytest

from lumos import Lumos
from lumos.catalogs import CatalogItem
from lumos.errors import CatalogRefused, MisuseError
from lumos.model.catalog import CatalogEntity, CatalogEntry, GlossaryTerm, Group, Job, User
from lumos.model.dataset import Documentation, Governance, Owner, Ownership
from lumos.snapshots.format.writer import write_snapshot
from snapshots.sample_inventories import FACTS

from .contract_catalogs import CATALOGS, Catalog
from .live import RIGS
from .sample_inventory import CUSTOMERS, ORDERS, items, rich

WORDS = {
    GlossaryTerm: "glossary",
    User: "users",
    Group: "groups",
    Job: "jobs",
    CatalogEntity: "others",
}

Opened: TypeAlias = Callable[[], Catalog]


@pytest.fixture(params=RIGS)
def opened(
    request: pytest.FixtureRequest, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> Opened:
    """Opens the catalog, which the environment has the token for."""
    rig = RIGS[request.param]
    monkeypatch.setenv(rig.variable, rig.token)
    return lambda: CATALOGS[request.param](workplace)


@pytest.fixture
def lumos(workplace: Path) -> Lumos:
    return Lumos(overrides={"storage.path": str(workplace / "lumos.db")})


def snapshot(
    estate: list[CatalogEntry], things: list[CatalogItem] | None = None, file: str = "a.jsonl"
) -> str:
    sorted_things: dict[str, list[Any]] = {word: [] for word in WORDS.values()}
    for item in things or []:
        sorted_things[WORDS[type(item)]].append(item)
    estate = sorted(estate, key=lambda entry: entry.urn)
    write_snapshot(file, FACTS, estate, **sorted_things)
    return file


def load(lumos: Lumos, opened: Opened, file: str, **options: Any) -> Any:
    return lumos.snapshot.load(file, platform=opened().name, allow_dangling=True, **options)


def changed(entries: list[CatalogEntry], **aspects: Any) -> list[CatalogEntry]:
    return [msgspec.structs.replace(entry, **aspects) for entry in entries]


def state(catalog: Catalog) -> tuple[list[CatalogEntry], list[bytes]]:
    return list(catalog.export()), sorted(map(msgspec.json.encode, catalog.items()))


def test_an_estate_comes_in_whole_and_a_second_time_changes_nothing(
    lumos: Lumos, opened: Opened
) -> None:
    file = snapshot(rich(), items())
    report = load(lumos, opened, file)
    assert report.sums.refused == 0
    assert report.sums.tally("datasets").total == len(rich())
    assert report.sums.tally("datasets").unchanged == 0
    assert list(opened().export()) == sorted(rich(), key=lambda entry: entry.urn)
    found = list(opened().items())
    assert all(opened().item_as_stored(item) in found for item in items())
    again = load(lumos, opened, file)
    assert {kind: tally.unchanged for kind, tally in again.sums.kinds.items()} == {
        kind: tally.total for kind, tally in report.sums.kinds.items()
    }
    assert lumos.snapshot.diff(file, opened().name).summary.differences == 0


def test_a_trial_tells_what_would_be_written_and_writes_nothing(
    lumos: Lumos, opened: Opened
) -> None:
    file = snapshot(rich(), items())
    report = lumos.snapshot.try_load(file, platform=opened().name, allow_dangling=True)
    assert report.sums.tally("datasets").total == len(rich())
    assert len(report.changes) == len(rich()) + len(items())
    assert state(opened()) == ([], [])


def test_an_import_that_is_taken_back_was_never_there(lumos: Lumos, opened: Opened) -> None:
    load(lumos, opened, snapshot(rich(), items()))
    report = lumos.snapshot.roll_back(platform=opened().name)
    assert report.erased == len(rich()) + len(items())
    assert state(opened()) == ([], [])


def test_people_s_edits_stay_through_an_import_and_through_its_end(
    lumos: Lumos, opened: Opened
) -> None:
    first = changed(rich(), governance=Governance(tags=("scanned", "old")))
    load(lumos, opened, snapshot(first, items()))
    before = state(opened())
    # Somebody works in the catalog, before the next import and after it.
    by_hand = Documentation(description="By hand")
    edit(
        opened(),
        ORDERS,
        documentation=by_hand,
        governance=Governance(tags=("scanned", "old", "mine")),
    )
    second = changed(rich(), governance=Governance(tags=("scanned", "new")))
    load(lumos, opened, snapshot(second, items()[1:], file="b.jsonl"))
    found = opened().get_many([ORDERS, CUSTOMERS])
    assert found[ORDERS].documentation == by_hand
    assert found[ORDERS].governance == Governance(tags=("scanned", "mine", "new"))
    assert found[CUSTOMERS].governance == Governance(tags=("scanned", "new"))
    ann = Ownership(owners=(Owner(name="ann"),))
    edit(opened(), CUSTOMERS, ownership=ann)
    report = lumos.snapshot.roll_back(platform=opened().name)
    assert [(each.key, each.aspects) for each in report.kept] == [(CUSTOMERS, ("ownership",))]
    entries, things = state(opened())
    after = {entry.urn: entry for entry in entries}
    assert after.pop(CUSTOMERS).ownership == ann
    orders = after.pop(ORDERS)
    assert (orders.documentation, orders.governance) == (
        by_hand, Governance(tags=("scanned", "old", "mine")),
    )  # fmt: skip
    rest = {entry.urn: entry for entry in before[0] if entry.urn not in (CUSTOMERS, ORDERS)}
    assert (after, things) == (rest, before[1])


def edit(catalog: Catalog, urn: str, **aspects: Any) -> None:
    found = catalog.get(urn)
    assert found is not None
    catalog.put(msgspec.structs.replace(found, **aspects))


def test_a_stub_that_does_not_know_us_is_told_before_anything_begins(
    lumos: Lumos, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rig in RIGS.values():
        monkeypatch.setenv(rig.variable, "of-somebody-else")
    with pytest.raises(CatalogRefused, match="_TOKEN") as caught:
        load(lumos, opened, snapshot(rich()))
    assert "of-somebody-else" not in str(caught.value)
    with pytest.raises(MisuseError, match="no import into"):
        lumos.snapshot.roll_back(platform=opened().name)
