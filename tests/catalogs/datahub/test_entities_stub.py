"""Tags, domains, pipelines and other entities in DataHub: its files, and a stub of its server."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from catalogs.contract_catalogs import CATALOGS, Catalog, called
from catalogs.live import gms_of
from lumos.catalogs.datahub.platform import Datahub
from lumos.model.catalog import CatalogEntity, CatalogEntry
from lumos.model.dataset import Owner

STAMP = {"time": 7, "actor": "urn:li:corpuser:ann"}
CHANGED = {"created": STAMP, "lastModified": STAMP}
ORDERS = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/orders,PROD)"
JOB = "urn:li:dataJob:(urn:li:dataFlow:(airflow,nightly,PROD),load)"
THEIRS = {"openmetadata": {"style": {"color": "#ff0000"}}}
SENSITIVE = CatalogEntity(
    urn="lumos:tag:PII.Sensitive", display_name="Handle with care", description="a < b"
)
EVERY_KIND = [
    SENSITIVE,
    CatalogEntity(urn="lumos:domain:Shop", description="Who sells", raw=THEIRS),
    CatalogEntity(urn="lumos:domain:Shop.Marketing", parent="lumos:domain:Shop"),
    CatalogEntity(
        urn="lumos:data_product:orders",
        display_name="Orders",
        tags=("gold",),
        references={"datasets": ("lumos://s3/lake/orders",), "domain": ("lumos:domain:Shop",)},
    ),
    CatalogEntity(urn="lumos:term_group:finance", description="Money", properties={"a": "b"}),
    CatalogEntity(urn="lumos:pipeline:airflow/nightly", description="", raw=THEIRS),
    CatalogEntity(
        urn="lumos:task:airflow/nightly/load",
        parent="lumos:pipeline:airflow/nightly",
        owners=(Owner(name="ann"), Owner(name="lake", kind="group", type="DATA_STEWARD")),
        references={
            "inputs": ("lumos://s3/lake/raw",),
            "outputs": ("lumos://s3/lake/orders", "lumos://snowflake@eu/F/x"),
            "upstream": ("lumos:task:airflow/nightly/extract",),
        },
    ),
    CatalogEntity(
        urn="lumos:dashboard:looker/1",
        display_name="Sales",
        references={"charts": ("lumos:chart:looker/2",), "terms": ("Order",)},
    ),
    CatalogEntity(urn="lumos:chart:looker/2", references={"datasets": ("lumos://s3/lake/orders",)}),
    CatalogEntity(urn="lumos:ml_model:mlflow/churn/DEV", name="churn", display_name="Churn"),
    CatalogEntity(urn="lumos:query:q1", references={"datasets": ("lumos://s3/lake/orders",)}),
]


@pytest.fixture(params=["datahub-file", "datahub"], ids=called)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def catalog(name: str, tmp_path: Path) -> Catalog:
    return CATALOGS[name](tmp_path)


def put(catalog: Catalog, *items: CatalogEntity) -> None:
    assert list(catalog.put_items(items)) == []


def get(catalog: Catalog, urn: str) -> CatalogEntity:
    found = catalog.get_item(CatalogEntity, urn)
    assert isinstance(found, CatalogEntity)
    return found


def native(catalog: Catalog, folder: Path, urn: str) -> dict[str, Any]:
    """The aspects of an entity in DataHub."""
    if isinstance(catalog, Datahub):
        found = dict(gms_of(folder).aspects(urn))
        return {name: body for name, body in found.items() if not name.endswith("Key")}
    changes = json.loads((folder / "estate.json").read_text())
    return {
        each["aspectName"]: each["aspect"]["json"] for each in changes if each["entityUrn"] == urn
    }


def hold(name: str, folder: Path, urn: str, **aspects: Any) -> Catalog:
    """The catalog after somebody wrote aspects of an entity."""
    catalog = CATALOGS[name](folder)
    if isinstance(catalog, Datahub):
        gms_of(folder).hold(urn, aspects)
        return catalog
    file = folder / "estate.json"
    changes = [
        {
            "entityType": urn.split(":")[2],
            "entityUrn": urn,
            "changeType": "UPSERT",
            "aspectName": aspect,
            "aspect": {"json": body},
        }
        for aspect, body in aspects.items()
    ]
    before = json.loads(file.read_text()) if file.exists() else []
    file.write_text(json.dumps([*before, *changes]))
    return CATALOGS[name](folder)


def test_an_entity_of_each_kind_comes_back_as_it_is_held(
    catalog: Catalog, name: str, tmp_path: Path
) -> None:
    put(catalog, *EVERY_KIND)
    # Only with the dataset itself does DataHub know its instance.
    catalog.put(CatalogEntry(urn="lumos://snowflake@eu/F/x", name="x", platform="snowflake"))
    again = CATALOGS[name](tmp_path)
    for item in EVERY_KIND:
        assert get(again, item.urn) == again.item_as_stored(item)
    found = {item.urn: item for item in again.items() if isinstance(item, CatalogEntity)}
    assert found == {item.urn: again.item_as_stored(item) for item in EVERY_KIND}
    # Only a tag has no custom properties, and this one needs none.
    assert [again.item_as_stored(item) for item in EVERY_KIND] == EVERY_KIND


def test_no_entity_is_made_to_hold_what_another_cannot(catalog: Catalog, tmp_path: Path) -> None:
    put(catalog, *EVERY_KIND)
    if isinstance(catalog, Datahub):
        urns = set(gms_of(tmp_path).entities)
    else:
        changes = json.loads((tmp_path / "estate.json").read_text())
        urns = {change["entityUrn"] for change in changes}
    assert len(urns) == len(EVERY_KIND)
    assert not any("platformResource" in urn for urn in urns)


def test_neutral_fields_are_native_in_datahub(catalog: Catalog, tmp_path: Path) -> None:
    put(catalog, *EVERY_KIND)
    tag = native(catalog, tmp_path, "urn:li:tag:PII.Sensitive")
    assert tag == {"tagProperties": {"name": "Handle with care", "description": "a < b"}}
    domain = native(catalog, tmp_path, "urn:li:domain:Shop.Marketing")["domainProperties"]
    assert (domain["name"], domain["parentDomain"]) == ("Shop.Marketing", "urn:li:domain:Shop")
    edges = native(catalog, tmp_path, JOB)["dataJobInputOutput"]
    assert edges["inputDatasets"] == [ORDERS.replace("orders", "raw")]
    assert edges["inputDatajobs"] == [JOB.replace("load", "extract")]
    dashboard = native(catalog, tmp_path, "urn:li:dashboard:(looker,1)")
    assert dashboard["dashboardInfo"]["title"] == "Sales"
    assert dashboard["dashboardInfo"]["charts"] == ["urn:li:chart:(looker,2)"]
    assert dashboard["glossaryTerms"]["terms"] == [{"urn": "urn:li:glossaryTerm:Order"}]


def test_what_datahub_cannot_hold_is_a_custom_property_or_not_held(
    catalog: Catalog, tmp_path: Path
) -> None:
    pipeline = CatalogEntity(
        urn="lumos:pipeline:airflow/nightly",
        references={"inputs": ("lumos://s3/lake/raw",)},
        raw=THEIRS,
    )
    tag = CatalogEntity(urn="lumos:tag:a", tags=("b",), properties={"c": "d"}, raw=THEIRS)
    put(catalog, pipeline, tag)
    info = native(catalog, tmp_path, "urn:li:dataFlow:(airflow,nightly,PROD)")["dataFlowInfo"]
    assert info["customProperties"].keys() == {"lumos.references", "lumos.raw"}
    assert get(catalog, pipeline.urn) == pipeline
    assert get(catalog, tag.urn) == catalog.item_as_stored(tag) == CatalogEntity(urn="lumos:tag:a")


def test_edits_in_datahub_change_the_neutral_fields(name: str, tmp_path: Path) -> None:
    catalog = CATALOGS[name](tmp_path)
    put(catalog, *EVERY_KIND)
    edited = {"name": "Take care", "description": "x > y", "colorHex": "#ff0000"}
    catalog = hold(name, tmp_path, "urn:li:tag:PII.Sensitive", tagProperties=edited)
    found = get(catalog, SENSITIVE.urn)
    assert (found.display_name, found.description) == ("Take care", "x > y")
    assert found.raw["datahub"]["tagProperties"][-1]["body"] == edited
    typed = {"description": "Typed"}
    flow = "urn:li:dataFlow:(airflow,nightly,PROD)"
    catalog = hold(name, tmp_path, flow, editableDataFlowProperties=typed)
    assert get(catalog, "lumos:pipeline:airflow/nightly").description == "Typed"
    put(catalog, CatalogEntity(urn="lumos:pipeline:airflow/nightly", description="Imported"))
    assert get(catalog, flow).description == "Imported"


def test_what_is_not_modelled_stays_when_a_field_changes(name: str, tmp_path: Path) -> None:
    info = {"title": "Sales", "description": "d", "lastModified": CHANGED, "access": "PRIVATE"}
    chart = "urn:li:chart:(looker,2)"
    catalog = hold(name, tmp_path, chart, chartInfo=info)
    found = get(catalog, chart)
    assert (found.urn, found.kind, found.display_name) == ("lumos:chart:looker/2", "chart", "Sales")
    put(catalog, msgspec.structs.replace(found, display_name="Turnover"))
    now = native(catalog, tmp_path, chart)["chartInfo"]
    assert now | {"customProperties": {}} == {**info, "title": "Turnover", "customProperties": {}}


def test_entities_of_snapshots_of_format_1_0_are_understood(
    catalog: Catalog, tmp_path: Path
) -> None:
    info = {"name": "Gold", "colorHex": "#ffd700"}
    old = CatalogEntity(urn="urn:li:tag:g", raw={"datahub": {"tagProperties": [{"body": info}]}})
    held = catalog.item_as_stored(old)
    assert isinstance(held, CatalogEntity)
    assert (held.urn, held.display_name) == ("lumos:tag:g", "Gold")
    put(catalog, old)
    assert native(catalog, tmp_path, "urn:li:tag:g")["tagProperties"] == info
    assert get(catalog, "urn:li:tag:g") == get(catalog, "lumos:tag:g") == held
    catalog.erase_item(old)
    assert list(catalog.items()) == []


def test_a_relation_that_neutral_urns_cannot_express_is_only_in_raw(
    name: str, tmp_path: Path
) -> None:
    subjects = [{"entity": ORDERS}, {"entity": f"urn:li:schemaField:({ORDERS},id)"}]
    statement = {"value": "SELECT 1", "language": "SQL"}
    properties = {"statement": statement, "source": "MANUAL", **CHANGED}
    catalog = hold(
        name,
        tmp_path,
        "urn:li:query:q",
        queryProperties=properties,
        querySubjects={"subjects": subjects},
    )
    found = get(catalog, "lumos:query:q")
    assert found.references == {}
    put(catalog, found)
    assert native(catalog, tmp_path, "urn:li:query:q")["querySubjects"] == {"subjects": subjects}


@pytest.mark.parametrize("urn", ["urn:li:chart:(looker,a,b)", "urn:li:container:c0ffee"])
def test_what_only_datahub_can_name_keeps_its_urn(tmp_path: Path, urn: str) -> None:
    catalog = hold("datahub-file", tmp_path, urn, status={"removed": True})
    found = get(catalog, urn)
    assert (found.urn, found.kind) == (urn, urn.split(":")[2])
    assert found.raw["datahub"]["status"] == [{"body": {"removed": True}}]


@pytest.mark.parametrize(
    "item",
    [
        CatalogEntity(urn='openmetadata:tag:A."b.c"', raw={"openmetadata": {"description": "x"}}),
        CatalogEntity(urn="lumos:chart:only-one-part", display_name="Odd"),
        CatalogEntity(urn="lumos:ml_model:mlflow/churn/staging", description="No such environment"),
        CatalogEntity(urn="lumos:dbt_exposure:x", kind="dbt_exposure", tags=("a",)),
    ],
    ids=lambda item: item.urn,
)
def test_what_datahub_cannot_name_is_a_platform_resource(
    catalog: Catalog, item: CatalogEntity
) -> None:
    put(catalog, item)
    assert catalog.item_as_stored(item) == item
    assert list(catalog.items()) == [item]
    assert get(catalog, item.urn) == item
    catalog.erase_item(item)
    assert list(catalog.items()) == []
