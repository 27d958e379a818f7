"""Handlers as platforms, with the example of the documentation."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from lumos import Lumos, plugins
from lumos.catalogs.configured import platform_of
from lumos.catalogs.handlers import MetadataPlatformInterface
from lumos.errors import CatalogError
from lumos.model.dataset import Dataset, Owner
from recorded_lake import RecordedLake

PAGE = Path(__file__).parents[2] / "docs" / "WRITING_AN_ADAPTER.md"
ORDERS = "lumos://file/lake/sales/orders"


@pytest.fixture
def wiki(workplace: Path) -> Iterator[type[Any]]:
    """The handler of the documentation."""
    del workplace
    (code,) = re.findall(
        r"<!-- file: wiki_handler.py -->\n```python\n(.*?)```", PAGE.read_text(), re.S
    )
    names: dict[str, Any] = {}
    exec(compile(code, "wiki_handler.py", "exec"), names)
    yield names["Wiki"]
    plugins.unregister(plugins.PLATFORMS, "wiki")


def filled() -> Lumos:
    lumos = Lumos(overrides={"platform": "wiki"})
    RecordedLake(lumos).see_all(["sales/orders", "sales/items"], "id INT64")
    lumos.annotations.owners.add("ann")
    lumos.annotations.owners.assign("ann", "orders")
    lumos.lineage.add("items", "orders")
    return lumos


def test_what_is_known_is_published_and_read_back(wiki: type[Any]) -> None:
    lumos = filled()
    assert lumos.migration.sync(scan=False, full=True).is_complete
    assert set(wiki.pages) == {ORDERS, "lumos://file/lake/sales/items"}
    assert (ORDERS, "ann", "TECHNICAL_OWNER") in wiki.owners
    assert ("lumos://file/lake/sales/items", ORDERS, "TRANSFORMED") in wiki.edges
    found = lumos.search("order", catalog="wiki")
    assert [each.name for each in found.results] == ["orders"]
    assert lumos.show(ORDERS, catalog="wiki").dataset["name"] == "orders"
    assert lumos.snapshot.export("wiki.json", platform="wiki").counts.datasets == 2


def test_a_rejected_call_is_an_error(wiki: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def reject(_self: Any, _dataset: Dataset) -> bool:
        return False

    monkeypatch.setattr(wiki, "emit_dataset", reject)
    platform = platform_of(Lumos(overrides={"platform": "wiki"}).settings)
    assert platform is not None
    with pytest.raises(CatalogError, match=f"rejected the dataset {ORDERS}"):
        platform.emit(Dataset(urn=ORDERS, name="orders", platform="file"))


class Plain(MetadataPlatformInterface):
    """A handler that returns plain data, as it comes from a server."""

    answer: ClassVar[Any] = {"urn": ORDERS, "name": "orders", "platform": "file"}

    def emit_dataset(self, dataset: Dataset) -> bool:
        return bool(dataset)

    def emit_lineage(
        self, upstream_urn: str, downstream_urn: str, lineage_type: str = "TRANSFORMED"
    ) -> bool:
        return bool(upstream_urn and downstream_urn and lineage_type)

    def emit_ownership(self, dataset_urn: str, owner: str, owner_type: str) -> bool:
        return bool(dataset_urn and owner and owner_type)

    def get_dataset(self, urn: str) -> Any:
        return self.answer if urn == ORDERS else None

    def search(self, query: str, filters: dict[str, str] | None = None) -> Any:
        return [self.answer, self.answer] if query == "orders" and not filters else []

    def export_all(self) -> Any:
        return {"datasets": [self.answer]}


@pytest.fixture
def plain(workplace: Path) -> Iterator[Any]:
    del workplace
    plugins.register(plugins.PLATFORMS, "plain", Plain)
    yield platform_of(Lumos(overrides={"platform": "plain"}).settings)
    plugins.unregister(plugins.PLATFORMS, "plain")


def test_plain_data_becomes_datasets(plain: Any) -> None:
    assert plain.get(ORDERS).name == "orders"
    assert plain.get("lumos://file/other") is None
    assert [each.urn for each in plain.export()] == [ORDERS]
    assert list(plain.export(after=ORDERS)) == []
    assert len(list(plain.search("orders", limit=1))) == 1
    plain.emit_ownership(ORDERS, Owner(name="ann"))


def test_data_in_another_form_is_an_error(plain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Plain, "answer", {"id": 3})
    with pytest.raises(CatalogError, match="returned an invalid dataset"):
        plain.get(ORDERS)
