"""Whatever an estate holds comes back from every catalog and every encoding as it was."""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from examples import examples
from lumos.catalogs import CatalogItem, WrittenEntry
from lumos.model.catalog import CatalogEntity, CatalogEntry, GlossaryTerm, Group, Job, User
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.types import INT64, STRING, Array, DataType, Decimal, Map, Member, Struct
from lumos.snapshots.format.document import SnapshotFacts, SnapshotHeader
from lumos.snapshots.format.encodings import EXTENSIONS
from lumos.snapshots.format.reader import open_snapshot
from lumos.snapshots.format.writer import write_snapshot

from . import live
from .contract_catalogs import CATALOGS, FLAT, Catalog, called, datahub_file, together
from .sample_inventory import items, rich
from .strategies import ITEMS, entries

MANY = settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))
# Each example is dozens of calls to a server.
FEW = settings(MANY, max_examples=8)
ESTATES = st.lists(entries(), max_size=3, unique_by=lambda entry: entry.urn)
THINGS = st.lists(ITEMS, max_size=4)
FACTS = SnapshotFacts(exported_at=datetime(2024, 1, 15, tzinfo=UTC))
WORDS = {
    GlossaryTerm: "glossary",
    User: "users",
    Group: "groups",
    Job: "jobs",
    CatalogEntity: "others",
}

Emptied = Callable[[], Catalog]


@pytest.fixture(scope="module", params=[name for name in CATALOGS if name not in live.RIGS])
def emptied(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Emptied:
    """A catalog with nothing in it; making a new one for each example would take too long."""
    folder = tmp_path_factory.mktemp("catalog")
    return lambda: emptied_catalog(request.param, folder)


@pytest.fixture(scope="module", params=live.RIGS, ids=called)
def emptied_stub(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Emptied:
    """A live catalog with nothing in it."""
    folder = tmp_path_factory.mktemp("catalog")
    return lambda: emptied_catalog(request.param, folder)


def emptied_catalog(name: str, folder: Path) -> Catalog:
    """A catalog without what was in it, opened anew."""
    if name in live.EMPTIED:
        live.EMPTIED[name](folder)
        return CATALOGS[name](folder)
    catalog = CATALOGS[name](folder)
    with together(catalog):
        for entry in list(catalog.export()):
            catalog.erase(entry.urn)
        for item in list(catalog.items()):
            catalog.erase_item(item)
    return CATALOGS[name](folder)


def fill(catalog: Catalog, estate: Iterable[CatalogEntry], things: Iterable[CatalogItem]) -> None:
    with together(catalog):
        assert not list(catalog.put_items(list(by_name(things).values())))
        for written in catalog.put_many(list(estate), current={}):
            assert isinstance(written, WrittenEntry), written


def snapshot(catalog: Catalog, path: Path) -> SnapshotHeader:
    sorted_items: dict[str, list[Any]] = {word: [] for word in WORDS.values()}
    for item in catalog.items():
        sorted_items[WORDS[type(item)]].append(item)
    return write_snapshot(path, FACTS, catalog.export(), **sorted_items)


def restore(path: Path, catalog: Catalog) -> None:
    with open_snapshot(path) as opened:
        things: Iterator[Any] = iter(
            (*opened.terms(), *opened.users(), *opened.groups(), *opened.jobs(), *opened.others())
        )
        fill(catalog, opened.datasets(), things)


def by_name(things: Iterable[CatalogItem]) -> dict[tuple[type[CatalogItem], str], CatalogItem]:
    return {
        (type(item), item.urn if isinstance(item, Job | CatalogEntity) else item.name): item
        for item in things
    }


def comes_back(catalog: Catalog, estate: list[CatalogEntry], things: list[CatalogItem]) -> None:
    fill(catalog, estate, things)
    assert list(catalog.export()) == sorted(estate, key=lambda entry: entry.urn)
    assert by_name(catalog.items()) == by_name(map(catalog.item_as_stored, things))
    assert not any(catalog.put(entry).changed for entry in estate)


def the_last_is_there(catalog: Catalog, first: CatalogEntry, second: CatalogEntry) -> None:
    second = CatalogEntry.of(second, urn=first.urn, platform=first.platform)
    catalog.put(first)
    catalog.put(second)
    assert catalog.get(first.urn) == second


@MANY
@given(estate=ESTATES, things=THINGS)
def test_an_estate_comes_back(
    emptied: Emptied, estate: list[CatalogEntry], things: list[CatalogItem]
) -> None:
    comes_back(emptied(), estate, things)


@MANY
@given(first=entries(), second=entries())
def test_the_last_entry_that_was_put_is_there(
    emptied: Emptied, first: CatalogEntry, second: CatalogEntry
) -> None:
    the_last_is_there(emptied(), first, second)


@FEW
@given(estate=ESTATES, things=THINGS)
@example(estate=[], things=[CatalogEntity(urn="id"), GlossaryTerm(name="id")])
def test_an_estate_comes_back_from_a_stub(
    emptied_stub: Emptied, estate: list[CatalogEntry], things: list[CatalogItem]
) -> None:
    comes_back(emptied_stub(), estate, things)


@FEW
@given(first=entries(), second=entries())
def test_the_last_entry_that_was_put_into_a_stub_is_there(
    emptied_stub: Emptied, first: CatalogEntry, second: CatalogEntry
) -> None:
    the_last_is_there(emptied_stub(), first, second)


@pytest.mark.slow
@settings(MANY, max_examples=examples(80))
@given(estate=ESTATES, things=THINGS)
def test_any_estate_comes_back_from_a_stub(
    emptied_stub: Emptied, estate: list[CatalogEntry], things: list[CatalogItem]
) -> None:
    comes_back(emptied_stub(), estate, things)


@pytest.mark.slow
@settings(MANY, max_examples=examples(80))
@given(first=entries(), second=entries())
def test_any_entry_that_was_put_last_into_a_stub_is_there(
    emptied_stub: Emptied, first: CatalogEntry, second: CatalogEntry
) -> None:
    the_last_is_there(emptied_stub(), first, second)


@pytest.mark.parametrize(
    "ending",
    [
        ending
        if ending in (".jsonl.zst", ".parquet")
        else pytest.param(ending, marks=pytest.mark.slow)
        for ending in EXTENSIONS
    ],
)
@settings(MANY, max_examples=8)
@given(estate=ESTATES, things=THINGS)
def test_export_import_export_gives_the_same_snapshot(
    emptied: Emptied, ending: str, estate: list[CatalogEntry], things: list[CatalogItem]
) -> None:
    catalog = emptied()
    with TemporaryDirectory() as name:
        folder = Path(name)
        # What DataHub cannot hold is in no snapshot of a file without the store.
        held = datahub_file(folder).item_as_stored
        fill(catalog, [*estate, *rich()], [held(item) for item in (*things, *items())])
        first = snapshot(catalog, folder / f"first{ending}")
        file = datahub_file(folder)
        restore(folder / f"first{ending}", file)
        second = snapshot(datahub_file(folder), folder / f"second{ending}")
        again = emptied()
        restore(folder / f"second{ending}", again)
        third = snapshot(again, folder / f"third{ending}")
    assert first == second == third


def wide_and_deep() -> CatalogEntry:
    """A thousand columns, and one that nests as deep as types go."""
    type: DataType = Struct((Member("leaf", Decimal(10, 2), nullable=False),))
    for level in range(45):
        type = Struct((Member(f"a.b {level}", Array(type)), Member("x", Map(STRING, INT64))))
    columns = (
        Field(name=f"Column {number}, (odd)", type=INT64, description=f"No. {number}", tags=("t",))
        for number in range(1_000)
    )
    note = NestedField(path="deep.`a.b 44`[].`a.b 43`", description="In the middle", tags=("PII",))
    deep = Field(name="deep", type=type, nested=(note,))
    schema = Schema(fields=(*columns, deep))
    return CatalogEntry(urn="lumos://s3/lake/wide", name="wide", platform="s3", schema=schema)


@pytest.mark.parametrize("name", CATALOGS, ids=called)
def test_a_thousand_columns_and_deep_nesting_come_back(name: str, tmp_path: Path) -> None:
    catalog = CATALOGS[name](tmp_path)
    held = catalog.put(wide_and_deep()).held
    assert catalog.get("lumos://s3/lake/wide") == wide_and_deep()
    assert held == {"schema": "partly" if name in FLAT else "native"}
