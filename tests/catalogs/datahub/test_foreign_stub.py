"""Tags and domains of OpenMetadata in DataHub: its files, and a stub of its server."""

import json
from pathlib import Path
from typing import Any

import pytest

from catalogs.contract_catalogs import CATALOGS, Catalog, called
from catalogs.live import gms_of
from lumos.catalogs.datahub.platform import Datahub
from lumos.model.catalog import CatalogEntity

TAG, DOMAIN = "openmetadata:tag:PII.Sensitive", "openmetadata:domain:Shop.Marketing"
SENSITIVE = CatalogEntity(
    urn=TAG,
    raw={
        "openmetadata": {
            "displayName": "Handle with care",
            "description": "a &lt; b",
            "style": {"color": "#ff0000", "iconURL": "https://example.com/i.svg"},
        }
    },
)
MARKETING = CatalogEntity(
    urn=DOMAIN,
    raw={"openmetadata": {"description": "Who sells", "domainType": "Aggregate"}},
)
SHOWN_TAG, SHOWN_DOMAIN = "urn:li:tag:PII.Sensitive", "urn:li:domain:Shop.Marketing"


@pytest.fixture(params=["datahub-file", "datahub"], ids=called)
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    return CATALOGS[request.param](tmp_path)


def put(catalog: Catalog, *items: CatalogEntity) -> None:
    assert list(catalog.put_items(items)) == []


def native(catalog: Catalog, urn: str) -> dict[str, Any]:
    """The aspects of an entity as DataHub has it."""
    found = catalog.get_item(CatalogEntity, urn)
    if not isinstance(found, CatalogEntity):
        return {}
    aspects = found.raw.get("datahub", {})
    return {name: said[-1]["body"] for name, said in aspects.items()}


def change(catalog: Catalog, folder: Path, urn: str, **aspects: Any) -> Catalog:
    """The catalog after somebody has said something else in DataHub."""
    if isinstance(catalog, Datahub):
        gms_of(folder).hold(urn, aspects)
        return catalog
    file = folder / "estate.json"
    said = [
        {
            "entityType": urn.split(":")[2],
            "entityUrn": urn,
            "changeType": "UPSERT",
            "aspectName": name,
            "aspect": {"json": body},
        }
        for name, body in aspects.items()
    ]
    file.write_text(json.dumps([*json.loads(file.read_text()), *said]))
    return CATALOGS["datahub-file"](folder)


def held(catalog: Catalog) -> dict[str, Any]:
    return {item.urn: item for item in catalog.items()}  # type: ignore[union-attr]


def test_tags_and_domains_of_openmetadata_are_shown_with_their_words(catalog: Catalog) -> None:
    put(catalog, SENSITIVE, MARKETING)
    assert native(catalog, SHOWN_TAG)["tagProperties"] == {
        "name": "Handle with care",
        "description": "a < b",
        "colorHex": "#ff0000",
    }
    domain = native(catalog, SHOWN_DOMAIN)["domainProperties"]
    assert (domain["name"], domain["description"]) == ("Shop.Marketing", "Who sells")
    assert domain["parentDomain"] == "urn:li:domain:Shop"
    assert held(catalog) == {TAG: SENSITIVE, DOMAIN: MARKETING}


def test_what_people_change_in_datahub_comes_back_in_openmetadatas_words(
    catalog: Catalog, tmp_path: Path
) -> None:
    put(catalog, SENSITIVE, MARKETING)
    words = {"name": "Take care", "description": "x > y", "colorHex": "#ff0000"}
    catalog = change(catalog, tmp_path, SHOWN_TAG, tagProperties=words)
    now = held(catalog)
    assert now[TAG].raw["openmetadata"] == {
        "displayName": "Take care",
        "description": "x &gt; y",
        "style": {"color": "#ff0000", "iconURL": "https://example.com/i.svg"},
    }
    assert now.keys() == {TAG, DOMAIN}
    assert now[DOMAIN] == MARKETING
    assert catalog.get_item(CatalogEntity, TAG) == now[TAG]


def test_what_people_say_beside_is_an_entity_of_its_own(catalog: Catalog, tmp_path: Path) -> None:
    put(catalog, SENSITIVE)
    ann = {"owner": "urn:li:corpuser:ann", "type": "DATAOWNER"}
    catalog = change(catalog, tmp_path, SHOWN_TAG, ownership={"owners": [ann]})
    now = held(catalog)
    assert now.keys() == {TAG, SHOWN_TAG}
    assert now[TAG] == SENSITIVE
    catalog.erase_item(SENSITIVE)
    assert held(catalog).keys() == {SHOWN_TAG}
    assert native(catalog, SHOWN_TAG).keys() == {"ownership"}


def test_what_is_there_under_the_same_name_is_left_alone(catalog: Catalog) -> None:
    own = CatalogEntity(
        urn=SHOWN_TAG,
        raw={"datahub": {"tagProperties": [{"body": {"name": "Ours", "description": "x"}}]}},
    )
    put(catalog, own)
    put(catalog, SENSITIVE)
    assert native(catalog, SHOWN_TAG)["tagProperties"]["name"] == "Ours"
    now = held(catalog)
    assert now == {TAG: SENSITIVE, SHOWN_TAG: own}
    catalog.erase_item(SENSITIVE)
    assert held(catalog) == {SHOWN_TAG: own}


def test_what_datahub_itself_names_so_takes_the_place(catalog: Catalog) -> None:
    own = CatalogEntity(
        urn=SHOWN_TAG,
        raw={"datahub": {"tagProperties": [{"body": {"name": "Ours", "description": "x"}}]}},
    )
    put(catalog, SENSITIVE)
    put(catalog, own)
    assert held(catalog) == {TAG: SENSITIVE, SHOWN_TAG: own}
    assert catalog.get_item(CatalogEntity, TAG) == SENSITIVE
    catalog.erase_item(SENSITIVE)
    assert held(catalog) == {SHOWN_TAG: own}


def test_other_words_are_shown_and_what_is_taken_back_goes_without_a_trace(
    catalog: Catalog,
) -> None:
    put(catalog, SENSITIVE, MARKETING)
    plain = CatalogEntity(urn=TAG, raw={"openmetadata": {"description": "Only this"}})
    put(catalog, plain)
    assert native(catalog, SHOWN_TAG)["tagProperties"] == {
        "name": "PII.Sensitive",
        "description": "Only this",
    }
    assert held(catalog)[TAG] == plain
    for item in (plain, MARKETING):
        catalog.erase_item(item)
    assert held(catalog) == {}
    assert native(catalog, SHOWN_TAG) == native(catalog, SHOWN_DOMAIN) == {}


@pytest.mark.parametrize(
    "item",
    [
        CatalogEntity(urn=TAG, raw={"openmetadata": {"description": "x", "deleted": True}}),
        CatalogEntity(urn=TAG, raw={"openmetadata": ["odd"]}),
        CatalogEntity(urn='openmetadata:tag:A."b.c"', raw={"openmetadata": {"description": "x"}}),
    ],
    ids=["hidden", "odd", "quoted"],
)
def test_what_cannot_be_shown_is_only_kept(catalog: Catalog, item: CatalogEntity) -> None:
    put(catalog, item)
    assert held(catalog) == {item.urn: item}
    assert native(catalog, SHOWN_TAG) == {}
