"""The folder of JSON files: its names, its batches, edits in its files, and migrations."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos import Lumos, plugins
from lumos.catalogs import CatalogItem
from lumos.errors import CatalogError
from lumos.model.catalog import CatalogEntity, CatalogEntry, GlossaryTerm, Group, Job, User
from lumos.model.catalog import entity_urn as urn_of
from lumos.model.dataset import Governance, Owner, Ownership
from lumos.model.schema import Field, Schema
from lumos.model.types import INT64, STRING, Unknown
from lumos.snapshots.format.reader import open_snapshot
from snapshots.stores import fill

from .json_folder import COMMITTED, JsonFolder, dataset_file, item_file, item_in, written
from .sample_inventory import items, rich
from .strategies import ITEMS, URNS

FILE = re.compile(r"(dataset|tag|user)\.[a-z0-9._%~-]*\.json")
LONG = st.text(st.characters(exclude_categories=("Cs",)), max_size=150)
KEYS = LONG | LONG.map(lambda name: urn_of("tag", name)) | st.sampled_from(("..", "../x", "/x"))
TYPES = st.sampled_from((GlossaryTerm, User, Group, Job, CatalogEntity))
ORDERS = CatalogEntry(
    urn="lumos://s3/lake/Orders",
    name="Orders",
    platform="s3",
    schema=Schema(fields=(Field(name="id", type=INT64, tags=("key",)),)),
    governance=Governance(tags=("PII",), terms=("Order",)),
    ownership=Ownership(owners=(Owner(name="Jane"), Owner(name="bob"))),
    properties={"note": "x" * 5_000, "lumos.raw": "mine"},
)


@given(first=URNS, second=URNS)
def test_each_urn_has_a_file_of_its_own(first: str, second: str) -> None:
    files = [dataset_file(urn) for urn in (first, second)]
    assert all(FILE.fullmatch(file) and len(file) <= 100 for file in files)
    assert (first == second) == (files[0] == files[1])


@given(types=st.tuples(TYPES, TYPES), keys=st.tuples(KEYS, KEYS))
def test_each_item_has_a_file_of_its_own(
    types: tuple[type[CatalogItem], type[CatalogItem]], keys: tuple[str, str]
) -> None:
    first, second = (item_file(type, key) for type, key in zip(types, keys, strict=True))
    assert FILE.fullmatch(first)
    assert len(first) <= 100
    assert (first == second) == (types[0] is types[1] and keys[0] == keys[1])


@given(item=ITEMS, name=LONG)
def test_an_item_keeps_its_key(item: CatalogItem, name: str) -> None:
    for each in (item, User(name=name), CatalogEntity(urn=urn_of("tag", name))):
        held = item_in(*written(each))
        assert type(held) is type(each)
        assert written(held) == written(each)
        assert item_in(*written(held)) == held


def test_a_committed_batch_is_finished_by_the_next_reader(tmp_path: Path) -> None:
    catalog = JsonFolder.at(str(tmp_path))
    catalog.put(ORDERS)
    file = dataset_file(ORDERS.urn)
    # The writer died after renaming its batch.
    (tmp_path / file).rename(tmp_path / "kept")
    (tmp_path / COMMITTED).mkdir()
    (tmp_path / "kept").rename(tmp_path / COMMITTED / file)
    assert JsonFolder.at(str(tmp_path)).get(ORDERS.urn) == ORDERS
    assert [path.name for path in tmp_path.iterdir()] == [file]
    catalog.erase(ORDERS.urn)
    assert list(tmp_path.iterdir()) == []


def test_edits_in_a_file_win_over_what_was_packed(tmp_path: Path) -> None:
    catalog = JsonFolder.at(str(tmp_path))
    catalog.put(ORDERS)
    path = tmp_path / dataset_file(ORDERS.urn)
    body = json.loads(path.read_text())
    assert all(len(text) <= 2_000 for text in body["properties"].values())
    assert (body["tags"], body["owner"]) == (["%50%49%49"], "%4aane")
    body["columns"][0]["description"] = "By hand"
    body["tags"].append("by-hand")
    path.write_text(json.dumps(body))
    found = catalog.get(ORDERS.urn)
    assert found is not None
    described = Field(name="id", type=INT64, tags=("key",), description="By hand")
    assert found.schema == Schema(fields=(described,))
    assert found.governance == Governance(tags=("PII", "by-hand"), terms=("Order",))
    assert (found.ownership, found.properties) == (ORDERS.ownership, ORDERS.properties)


def test_a_file_that_somebody_made_is_a_dataset(tmp_path: Path) -> None:
    columns = [{"name": "a", "type": "varchar(20)"}, {"name": "b", "type": "string"}]
    (tmp_path / "dataset.made.by-hand.json").write_text(json.dumps({"columns": columns}))
    catalog = JsonFolder.at(str(tmp_path))
    (entry,) = catalog.export()
    assert entry.urn == "lumos://json-folder/made.by-hand"
    assert entry.schema == Schema(
        fields=(Field(name="a", type=Unknown("varchar(20)")), Field(name="b", type=STRING))
    )
    catalog.put(entry)
    assert list(catalog.export()) == [entry]


@pytest.mark.parametrize("file", ["dataset.a.json", f"dataset.a~{'0' * 32}.json", "tag.x~y.json"])
def test_a_file_that_makes_no_sense_is_named(tmp_path: Path, file: str) -> None:
    (tmp_path / file).write_text("{}" if "~" in file else "{")
    catalog = JsonFolder.at(str(tmp_path))
    with pytest.raises(CatalogError, match=re.escape(file)):
        assert not [*catalog.export(), *catalog.items()]


@pytest.fixture
def registered() -> Iterator[None]:
    plugins.register(plugins.PLATFORMS, JsonFolder.kind, JsonFolder)
    yield
    plugins.unregister(plugins.PLATFORMS, JsonFolder.kind)


@pytest.mark.usefixtures("registered")
def test_a_migration_loses_nothing_that_the_catalog_cannot_hold(workplace: Path) -> None:
    sorted_items: dict[str, Any] = {
        "glossary": items()[:1], "users": items()[1:2], "groups": items()[2:3],
        "jobs": items()[3:4], "others": items()[4:],
    }  # fmt: skip
    lumos = Lumos(overrides={"storage.path": str(workplace / "lumos.db")})
    fill(lumos, {"datasets": rich(), **sorted_items})
    assert lumos.migration.migrate("local", "json-folder:target").is_whole
    assert lumos.snapshot.diff("local", "json-folder:target").differences == ()
    assert list(JsonFolder.at("target").items()) != items()
    lumos.snapshot.export("back.jsonl", platform="json-folder:target")
    with open_snapshot(workplace / "back.jsonl") as back:
        kept = (*back.terms(), *back.users(), *back.groups(), *back.jobs(), *back.others())
        assert list(kept) == items()
    lumos.migration.roll_back("local", "json-folder:target")
    assert list((workplace / "target").iterdir()) == []
