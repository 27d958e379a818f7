"""A mapping holds inside what is no dataset and came from OpenMetadata, too."""

from pathlib import Path
from typing import Any

import pytest

from lumos import Lumos
from lumos.catalogs.datahub.file_platform import DatahubFile
from lumos.catalogs.nearest_kinds import shared_kind
from lumos.model.catalog import CatalogEntity, CatalogEntry, GlossaryTerm, Group, User
from snapshots.stores import fill

ORDERS, SALES = "lumos://postgres/shop/public/orders", "lumos://postgres/shop/public/sales"
THERE = """
tags: {P.Gold: PII.Gold, raw: Data.Raw}
terms: {B.Net: Lumos Net}
owners: {ann: anna, lakers: lake2}
domains: {Sales: Shop.Sales}
datasets:
  lumos://postgres/shop/public/orders: lumos://postgres/shop/public/sales
"""
BACK = """
tags: {PII.Gold: P.Gold, Data.Raw: raw}
terms: {Lumos Net: B.Net}
owners: {anna: ann, lake2: lakers}
domains: {Shop.Sales: Sales}
datasets:
  lumos://postgres/shop/public/sales: lumos://postgres/shop/public/orders
"""


def label(fqn: str, source: str = "Classification") -> dict[str, str]:
    return {"tagFQN": fqn, "source": source, "labelType": "Manual", "state": "Confirmed"}


def reference(type: str, fqn: str) -> dict[str, str]:
    return {"type": type, "fullyQualifiedName": fqn}


def thing(type: str, fqn: str, **record: Any) -> CatalogEntity:
    urn = f"openmetadata:{type}:{fqn}"
    return CatalogEntity(urn=urn, kind=shared_kind(urn), raw={"openmetadata": record})


DASHBOARD = thing(
    "dashboard",
    "boards.revenue",
    description="Of all shops",
    tags=[label("Lumos.raw"), label("P.Gold"), label("B.Net", "Glossary"), label("P.Other")],
    domains=[reference("domain", "Sales")],
    owners=[reference("team", "lakers"), reference("user", "ann")],
    extension={"like": reference("user", "ann")},
    edges=[
        {"from": ORDERS, "pipeline": reference("pipeline", "P.Gold"), "source": "Manual"},
        {"from": "openmetadata:topic:P.Gold", "source": "Manual"},
    ],
)
MODEL = thing(
    "dashboardDataModel",
    "boards.model",
    columns=[{"name": "id", "tags": [label("P.Gold")], "children": []}],
)
INDEX = thing("searchIndex", "el.i", searchIndexSettings=reference("user", "ann"))
QUERY = thing("query", "pg.q", query="select 1", queryUsedIn=[reference("dataset", ORDERS)])
PRODUCT = thing("dataProduct", "Shirts", experts=[reference("user", "ann")])
TAG = CatalogEntity(urn="lumos:tag:P.Gold", description="Dear")
DOMAIN = CatalogEntity(urn="lumos:domain:Sales", description="d")
TERM = GlossaryTerm(
    name="B.Gross",
    owners=("lakers",),
    related=("B.Net",),
    raw={
        "openmetadata": {
            "fullyQualifiedName": "B.Gross",
            "owners": [reference("team", "lakers")],
            "relatedTerms": [
                {"relationType": "relatedTo", "term": reference("glossaryTerm", "B.Net")}
            ],
            "tags": [label("P.Gold")],
        }
    },
)


@pytest.fixture
def lumos(workplace: Path) -> Lumos:
    lumos = Lumos(overrides={"storage.path": str(workplace / "lumos.db")})
    edges = {ORDERS: {"source": "QueryLineage", "description": "nightly"}}
    given: dict[str, Any] = {
        "datasets": [
            CatalogEntry(urn=ORDERS, name="orders", platform="postgres"),
            CatalogEntry(
                urn="lumos://postgres/shop/public/sums",
                name="sums",
                platform="postgres",
                raw={"openmetadata": {"edges": edges}},
            ),
        ],
        "others": [DASHBOARD, MODEL, INDEX, QUERY, PRODUCT, TAG, DOMAIN],
        "glossary": [TERM, GlossaryTerm(name="B.Net", definition="Without taxes")],
        "users": [User(name="ann")],
        "groups": [Group(name="lakers")],
    }
    fill(lumos, given)
    Path("there.yaml").write_text(THERE)
    Path("back.yaml").write_text(BACK)
    lumos.migration.migrate("local", "datahub-file:copy.json", mapping="there.yaml")
    return lumos


def said(catalog: DatahubFile, type: str, fqn: str) -> dict[str, Any]:
    found = catalog.get_item(CatalogEntity, f"openmetadata:{type}:{fqn}")
    assert isinstance(found, CatalogEntity)
    record: dict[str, Any] = found.raw["openmetadata"]
    return record


@pytest.mark.usefixtures("lumos")
def test_what_things_refer_to_has_its_name_in_the_target() -> None:
    copy = DatahubFile.at("copy.json")
    dashboard = said(copy, "dashboard", "boards.revenue")
    assert [each["tagFQN"] for each in dashboard["tags"]] == [
        "Data.Raw", "PII.Gold", "Lumos.Lumos Net", "P.Other"
    ]  # fmt: skip
    assert dashboard["domains"] == [reference("domain", "Shop.Sales")]
    assert dashboard["owners"] == [reference("team", "lake2"), reference("user", "anna")]
    assert dashboard["extension"] == {"like": reference("user", "ann")}
    assert dashboard["edges"] == [
        {"from": SALES, "pipeline": reference("pipeline", "P.Gold"), "source": "Manual"},
        {"from": "openmetadata:topic:P.Gold", "source": "Manual"},
    ]
    model = said(copy, "dashboardDataModel", "boards.model")
    assert model["columns"][0]["tags"] == [label("PII.Gold")]
    assert said(copy, "searchIndex", "el.i")["searchIndexSettings"] == reference("user", "ann")
    assert said(copy, "query", "pg.q")["queryUsedIn"] == [reference("dataset", SALES)]
    assert said(copy, "dataProduct", "Shirts")["experts"] == [reference("user", "anna")]
    sums = copy.get("lumos://postgres/shop/public/sums")
    assert sums is not None
    assert sums.raw["openmetadata"]["edges"].keys() == {SALES}


@pytest.mark.usefixtures("lumos")
def test_a_tag_and_a_domain_that_are_mapped_go_there_under_their_new_names_alone() -> None:
    copy = DatahubFile.at("copy.json")
    for type, old, new in (("tag", "P.Gold", "PII.Gold"), ("domain", "Sales", "Shop.Sales")):
        assert copy.get_item(CatalogEntity, f"lumos:{type}:{old}") is None
        found = copy.get_item(CatalogEntity, f"lumos:{type}:{new}")
        assert isinstance(found, CatalogEntity)
        assert found.description is not None


def test_a_tag_that_the_target_has_stays_as_it_is_there(lumos: Lumos) -> None:
    target = DatahubFile.at("full.json")
    theirs = CatalogEntity(urn="lumos:tag:PII.Gold", description="The target's")
    assert list(target.put_items([theirs])) == []
    lumos.migration.migrate("local", "datahub-file:full.json", mapping="there.yaml")
    full = DatahubFile.at("full.json")
    assert full.get_item(CatalogEntity, theirs.urn) == target.item_as_stored(theirs)
    assert full.get_item(CatalogEntity, TAG.urn) is None


@pytest.mark.usefixtures("lumos")
def test_teams_that_own_terms_stay_teams() -> None:
    term = DatahubFile.at("copy.json").get_item(GlossaryTerm, "B.Gross")
    assert isinstance(term, GlossaryTerm)
    assert (term.owners, term.related) == (("lake2",), ("Lumos Net",))
    record = term.raw["openmetadata"]
    assert record["owners"] == [reference("team", "lake2")]
    assert record["tags"] == [label("PII.Gold")]


def test_the_mapping_reversed_brings_all_of_it_back(lumos: Lumos) -> None:
    report = lumos.migration.migrate(
        "datahub-file:copy.json", "datahub-file:back.json", mapping="back.yaml"
    )
    assert report.is_whole
    assert lumos.snapshot.diff("local", "datahub-file:back.json").summary.differences == 0
    back = DatahubFile.at("back.json")
    for item in (DASHBOARD, MODEL, INDEX, QUERY, PRODUCT, TAG, DOMAIN):
        assert back.get_item(CatalogEntity, item.urn) == item
    assert back.get_item(GlossaryTerm, TERM.name) == TERM
