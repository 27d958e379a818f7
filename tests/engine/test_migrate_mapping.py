"""What a mapping says that is not so: told, and nothing is lost by it."""

from pathlib import Path
from typing import Any

import pytest

from lumos import Lumos
from lumos.errors import MisuseError
from lumos.model.catalog import Entry, GlossaryTerm, User
from lumos.model.dataset import Governance, Owner, Ownership
from lumos.platforms.datahub_file import DatahubFile
from snapshot.stores import fill

FILE = "datahub-file:estate.json"


def catalog() -> DatahubFile:
    return DatahubFile.at("estate.json")


def table(name: str, **aspects: Any) -> Entry:
    return Entry(urn=f"lumos://snowflake/SHOP/{name}", name=name, platform="snowflake", **aspects)


@pytest.fixture
def lumos(workplace: Path) -> Lumos:
    lumos = Lumos(overrides={"storage.path": str(workplace / "lumos.db")})
    orders = table(
        "orders",
        governance=Governance(terms=("Order",)),
        ownership=Ownership(owners=(Owner(name="jane"),)),
    )
    given: dict[str, Any] = {
        "datasets": [orders, table("customers")],
        "glossary": [GlossaryTerm(name="Order", definition="What somebody buys")],
        "users": [User(name="jane", email="jane@shop.example")],
    }
    fill(lumos, given)
    return lumos


def test_terms_and_people_whose_new_names_the_target_does_not_have_go_there_under_them(
    lumos: Lumos,
) -> None:
    Path("mapping.yaml").write_text("terms: {Order: Sale}\nowners: {jane: joan}")
    report = lumos.migration.migrate("local", FILE, mapping="mapping.yaml")
    assert report.remarks == (
        "The mapping leads to term 'Sale', which the target does not have yet: 'Order' goes there "
        "under that name.",
        "The mapping leads to owner 'joan', which the target does not have yet: 'jane' goes there "
        "under that name.",
    )
    assert report.verified is not None
    assert (report.verified.items.target, report.verified.items.source) == (2, 2)
    assert catalog().get_item(GlossaryTerm, "Order") is None
    sale, joan = catalog().get_item(GlossaryTerm, "Sale"), catalog().get_item(User, "joan")
    assert isinstance(sale, GlossaryTerm)
    assert sale.definition == "What somebody buys"
    assert isinstance(joan, User)
    assert joan.email == "jane@shop.example"
    # What becomes of the term in the source still goes there.
    fill(lumos, {"glossary": [GlossaryTerm(name="Order", definition="What somebody wants")]})
    again = lumos.migration.migrate("local", FILE, mapping="mapping.yaml")
    assert again.remarks == ()
    assert again.verified is not None
    assert again.verified.items.source == 2
    sale = catalog().get_item(GlossaryTerm, "Sale")
    assert isinstance(sale, GlossaryTerm)
    assert sale.definition == "What somebody wants"


@pytest.mark.parametrize(
    "mapping",
    [
        "datasets: {lumos://snowflake/SHOP/orders: lumos://snowflake/SHOP/customers}",
        "services: {snowflake: snowflake@eu}",
    ],
)
def test_two_datasets_do_not_become_one(lumos: Lumos, mapping: str) -> None:
    there = Entry(urn="lumos://snowflake@eu/SHOP/customers", name="customers", platform="snowflake")
    fill(lumos, {"datasets": [there]})
    Path("mapping.yaml").write_text(mapping)
    with pytest.raises(MisuseError, match="makes one dataset of two") as refused:
        lumos.migration.migrate("local", FILE, mapping="mapping.yaml")
    assert "lumos://snowflake/SHOP/customers" in str(refused.value)
    assert not Path("estate.json").exists()


def test_a_service_that_the_source_does_not_have_is_told(lumos: Lumos) -> None:
    Path("mapping.yaml").write_text("services: {oracle: mysql, snowflake: snowflake@eu}")
    report = lumos.migration.try_migrate("local", FILE, mapping="mapping.yaml")
    assert report.remarks == (
        "The mapping names service 'oracle', which the source does not have.",
    )
