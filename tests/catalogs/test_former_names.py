"""Adapters that use the former names of the interface keep working."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pytest

from lumos import catalogs
from lumos.catalogs import CatalogItem, WrittenEntry, former_names
from lumos.catalogs.cleanup import CleansUp
from lumos.model.catalog import CatalogEntry, User

ENTRY = CatalogEntry(urn="lumos://s3/lake/orders", name="orders", platform="s3")


@pytest.mark.parametrize(("name", "former"), former_names.TYPES.items())
def test_a_former_type_is_the_renamed_one(name: str, former: str) -> None:
    with pytest.deprecated_call(match=f"{former} is now called {name}"):
        assert getattr(catalogs, former) == getattr(catalogs, name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Unknown'"):
        catalogs.Unknown  # noqa: B018


def test_methods_under_their_former_names_are_called() -> None:
    with pytest.deprecated_call():

        class Older(catalogs.WritesMany, catalogs.StoresItems, CleansUp):
            most: ClassVar[int] = 7
            native: ClassVar[frozenset[str]] = frozenset()
            is_tidy = False

            def as_held(self, entry: CatalogEntry) -> CatalogEntry:
                return CatalogEntry(urn=entry.urn, name="held", platform="s3")

            def item_as_held(self, item: CatalogItem) -> CatalogItem:
                return User(name=f"{item_name(item)}-held")

            def tidy(self) -> None:
                self.is_tidy = True

            def put_many(  # type: ignore[override]
                self, entries: Sequence[CatalogEntry], *, over: Mapping[str, CatalogEntry | None]
            ) -> Iterator[WrittenEntry]:
                for entry in entries:
                    yield WrittenEntry(urn=entry.urn, changed=over.get(entry.urn) != entry)

            def get_many(self, urns: Sequence[str]) -> dict[str, CatalogEntry]:
                return {ENTRY.urn: ENTRY} if ENTRY.urn in urns else {}

            def export(self, *, after: str | None = None) -> Iterator[CatalogEntry]:
                yield from [ENTRY] if ENTRY.urn > (after or "") else []

            def erase(self, urn: str) -> None:
                raise NotImplementedError(urn)

            def items(self) -> Iterator[CatalogItem]:
                yield from ()

            def get_item(self, type: Any, key: str) -> CatalogItem | None:
                raise NotImplementedError(type, key)

            def put_item(self, item: CatalogItem) -> None:
                raise NotImplementedError(item)

            def erase_item(self, item: CatalogItem) -> None:
                raise NotImplementedError(item)

    older = Older()  # type: ignore[abstract]
    older.clean_up()
    assert older.is_tidy
    assert older.batch_size == 7
    assert older.as_stored(ENTRY).name == "held"
    assert older.item_as_stored(User(name="ada")) == User(name="ada-held")
    assert older.put(ENTRY) == WrittenEntry(urn=ENTRY.urn, changed=False)


def item_name(item: CatalogItem) -> str:
    assert isinstance(item, User)
    return item.name
