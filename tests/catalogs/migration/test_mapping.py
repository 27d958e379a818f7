"""What a mapping says that is not so: told, and nothing is lost by it."""

from pathlib import Path
from typing import Any

import pytest

from lumos import Lumos
from lumos.catalogs.datahub.file_platform import DatahubFile
from lumos.errors import MisuseError
from lumos.model.catalog import CatalogEntity, CatalogEntry, GlossaryTerm, User
from lumos.model.dataset import Documentation, Governance, Owner, Ownership
from snapshots.stores import fill

FILE = "datahub-file:estate.json"


def catalog() -> DatahubFile:
    return DatahubFile.at("estate.json")


def table(name: str, **aspects: Any) -> CatalogEntry:
    return CatalogEntry(
        urn=f"lumos://snowflake/SHOP/{name}", name=name, platform="snowflake", **aspects
    )


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
        "The mapping renames term 'Order' to 'Sale', which the target does not have yet. It is "
        "created under that name.",
        "The mapping renames owner 'jane' to 'joan', which the target does not have yet. It is "
        "created under that name.",
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
    there = CatalogEntry(
        urn="lumos://snowflake@eu/SHOP/customers", name="customers", platform="snowflake"
    )
    fill(lumos, {"datasets": [there]})
    Path("mapping.yaml").write_text(mapping)
    with pytest.raises(MisuseError, match="merges two datasets") as refused:
        lumos.migration.migrate("local", FILE, mapping="mapping.yaml")
    assert "lumos://snowflake/SHOP/customers" in str(refused.value)
    assert not Path("estate.json").exists()


def test_a_service_that_the_source_does_not_have_is_told(lumos: Lumos) -> None:
    Path("mapping.yaml").write_text("services: {oracle: mysql, snowflake: snowflake@eu}")
    report = lumos.migration.try_migrate("local", FILE, mapping="mapping.yaml")
    assert report.remarks == (
        "The mapping names service 'oracle', which the source does not have.",
    )


MARKETING = "3b1e8d4c-58c2-4e0b-9d43-7f20a1c5e8b6"
SALES = "a83f0f6a-90a8-4f0e-9c35-15c0b8bb2d11"
GOLD = "0d9b3c52-7c5f-4b0e-8a77-2f1f6f1f9a10"


@pytest.fixture
def named_by_ids(lumos: Lumos) -> Lumos:
    """DataHub as people fill it by hand: ids for names, and titles beside."""
    there = catalog()
    there.put(
        table(
            "orders",
            governance=Governance(tags=(GOLD,)),
            documentation=Documentation(domain=MARKETING),
        )
    )
    titles = {
        f"urn:li:domain:{MARKETING}": {"domainProperties": {"name": "Marketing"}},
        f"urn:li:domain:{SALES}": {
            "domainProperties": {"name": "Sales", "parentDomain": f"urn:li:domain:{MARKETING}"}
        },
        f"urn:li:tag:{GOLD}": {"tagProperties": {"name": "Gold", "colorHex": "#ffd700"}},
    }
    for urn, aspects in titles.items():
        said = {aspect: [{"body": body}] for aspect, body in aspects.items()}
        there.put_item(CatalogEntity(urn=urn, raw={"datahub": said}))
    return lumos


def test_tags_and_domains_that_are_known_by_ids_are_suggested_by_their_titles(
    named_by_ids: Lumos,
) -> None:
    report = named_by_ids.migration.try_migrate(FILE, "local")
    assert [(need.kind, need.name, need.like, need.by_title) for need in report.needs] == [
        ("tag", GOLD, ("Gold",), True),
        ("domain", MARKETING, ("Marketing",), True),
    ]


def test_a_catalog_that_shows_titles_itself_needs_no_other_names(named_by_ids: Lumos) -> None:
    assert named_by_ids.migration.try_migrate(FILE, "datahub-file:copy.json").needs == ()


def test_two_domains_of_one_title_are_not_made_one_by_pasting(named_by_ids: Lumos) -> None:
    said = {"domainProperties": [{"body": {"name": "Marketing"}}]}
    catalog().put_item(CatalogEntity(urn=f"urn:li:domain:{SALES}", raw={"datahub": said}))
    needs = named_by_ids.migration.try_migrate(FILE, "local").needs
    assert [need.like for need in needs if need.kind == "domain"] == [()]


def test_a_title_that_is_like_a_name_of_the_target_is_that_one(named_by_ids: Lumos) -> None:
    DatahubFile.at("copy.json").put(
        table("customers", documentation=Documentation(domain="Shop.marketing"))
    )
    needs = named_by_ids.migration.try_migrate(FILE, "datahub-file:copy.json").needs
    assert [(need.name, need.like) for need in needs] == [(MARKETING, ("Shop.marketing",))]


def test_mapped_tags_and_domains_go_to_the_target_whole_and_come_back_by_the_mapping_reversed(
    named_by_ids: Lumos,
) -> None:
    Path("there.yaml").write_text(f"tags: {{{GOLD}: Gold}}\ndomains: {{{MARKETING}: Marketing}}")
    Path("back.yaml").write_text(f"tags: {{Gold: {GOLD}}}\ndomains: {{Marketing: {MARKETING}}}")
    copy, back = DatahubFile.at("copy.json"), DatahubFile.at("back.json")
    report = named_by_ids.migration.migrate(FILE, "datahub-file:copy.json", mapping="there.yaml")
    assert report.is_whole
    entry = copy.get("lumos://snowflake/SHOP/orders")
    assert entry is not None
    assert entry.governance == Governance(tags=("Gold",))
    assert entry.documentation == Documentation(domain="Marketing")
    assert copy.get_item(CatalogEntity, f"urn:li:domain:{MARKETING}") is None
    sales = copy.get_item(CatalogEntity, f"urn:li:domain:{SALES}")
    assert isinstance(sales, CatalogEntity)
    assert sales.parent == "lumos:domain:Marketing"
    again = named_by_ids.migration.migrate(FILE, "datahub-file:copy.json", mapping="there.yaml")
    assert again.imported.sums.kinds["others"].unchanged == 3
    named_by_ids.migration.migrate(
        "datahub-file:copy.json", "datahub-file:back.json", mapping="back.yaml"
    )
    assert {item.urn: item for item in back.items()} == {  # type: ignore[union-attr]
        item.urn: item  # type: ignore[union-attr]
        for item in catalog().items()
    }


def test_what_is_mapped_is_compared_under_its_new_name(lumos: Lumos) -> None:
    Path("mapping.yaml").write_text("terms: {Order: Sale}\nowners: {jane: joan}")
    lumos.migration.migrate("local", FILE, mapping="mapping.yaml")
    report = lumos.snapshot.diff("local", FILE, mapping="mapping.yaml")
    assert report.summary.differences == 0


def test_a_tag_of_the_target_that_no_dataset_has_is_known_too(named_by_ids: Lumos) -> None:
    there = DatahubFile.at("copy.json")
    there.put_item(CatalogEntity(urn="lumos:tag:Medals.Gold", description="x"))
    needs = named_by_ids.migration.try_migrate(FILE, "datahub-file:copy.json").needs
    assert [(need.kind, need.name, need.like) for need in needs] == [
        ("tag", GOLD, ("Medals.Gold",))
    ]
