"""Entities of other catalogs in OpenMetadata; a stub of it, so proved for the stub only."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from catalogs.servers.http import Server
from catalogs.servers.openmetadata import Openmetadata
from catalogs.servers.spec import specification
from lumos.catalogs.openmetadata.kinds import locate, urn_of
from lumos.catalogs.openmetadata.platform import Openmetadata as Platform
from lumos.model.catalog import CatalogEntity, CatalogEntry, GlossaryTerm
from lumos.model.dataset import Documentation, Governance, Owner

from .people import ORDERS, OTHER, SOURCE, Estate, table

ANN = Owner(name="ann")
DATAHUB = {"datahub": {"status": [{"body": {"removed": False}}]}}
PII = CatalogEntity(
    urn="lumos:tag:pii", display_name="Personal", description="a < b", owners=(ANN,),
    raw={**DATAHUB, "openmetadata": {"style": {"color": "#ffd700"}}},
)  # fmt: skip
SALES = CatalogEntity(urn="lumos:domain:sales", display_name="Sales", raw=DATAHUB)
EU = CatalogEntity(
    urn="lumos:domain:eu", description="Europe", parent=SALES.urn, properties={"a": "b"}
)
NIGHTLY = CatalogEntity(
    urn="lumos:pipeline:airflow/nightly", display_name="Nightly load", description="At <night>",
    tags=("pii",), owners=(Owner(name="ann", type="DATAOWNER"),),
    references={"domain": (SALES.urn,), "inputs": (SOURCE,), "outputs": (ORDERS,)},
    properties={"owner": "data"}, raw=DATAHUB,
)  # fmt: skip
EXTRACT = CatalogEntity(
    urn="lumos:task:airflow/nightly/extract", display_name="Extract", parent=NIGHTLY.urn
)
LOAD = CatalogEntity(
    urn="lumos:task:airflow/nightly/load", description="a < b", parent=NIGHTLY.urn, tags=("pii",),
    references={"upstream": (EXTRACT.urn,), "outputs": (ORDERS,)}, raw=DATAHUB,
)  # fmt: skip
STAGED = CatalogEntity(urn="lumos:pipeline:airflow/nightly/STG", description="Tries it")
CHART = CatalogEntity(
    urn="lumos:chart:looker/7", display_name="By month", references={"datasets": (ORDERS,)}
)
BOARD = CatalogEntity(
    urn="lumos:dashboard:looker/sales.eu", display_name="Sales",
    references={"charts": (CHART.urn,), "terms": ("Order",)}, raw=DATAHUB,
)  # fmt: skip
MODEL = CatalogEntity(urn="lumos:ml_model:mlflow/churn", description="Guesses")
PRODUCT = CatalogEntity(urn="lumos:data_product:revenue", description="What we earn")
GROUP = CatalogEntity(urn="lumos:term_group:business", display_name="Business")
QUERY = CatalogEntity(
    urn="lumos:query:a1", description="Top ten", references={"datasets": (ORDERS,)},
    raw={"openmetadata": {"query": "select 1"}},
)  # fmt: skip
POLICY = CatalogEntity(urn="urn:li:dataHubPolicy:7", display_name="All may", raw=DATAHUB)
ALL = (
    LOAD, EXTRACT, BOARD, CHART, EU, SALES, NIGHTLY, STAGED, PII, MODEL, PRODUCT, GROUP, POLICY
)  # fmt: skip


@pytest.fixture(scope="module")
def shared() -> Iterator[Estate]:
    stub = Openmetadata(specification())
    with Server(stub) as server:
        yield Estate(stub, server)


@pytest.fixture
def estate(shared: Estate) -> Estate:
    shared.stub.empty()
    shared.stub.violations.clear()
    return shared


def entity(estate: Estate, type: str, name: str) -> Any:
    return next(each for each in estate.stub.entities(type) if each["name"] == name)


def put(estate: Estate, *items: CatalogEntity) -> Platform:
    catalog = estate.catalog()
    assert list(catalog.put_items(items)) == []
    return catalog


def held(estate: Estate) -> dict[str, Any]:
    return {item.urn: item for item in estate.catalog().items() if isinstance(item, CatalogEntity)}


def test_entities_come_back_as_they_are_held(estate: Estate) -> None:
    estate.catalog().put(table(SOURCE))
    estate.catalog().put(table(ORDERS))
    catalog = put(estate, *ALL, QUERY)
    expected = {item.urn: catalog.item_as_stored(item) for item in (*ALL, QUERY)}
    assert held(estate) == expected
    for urn, item in expected.items():
        assert estate.catalog().get_item(CatalogEntity, urn) == item
    # Tags and queries have no custom properties, everything else is exact.
    assert [item.urn for item in (*ALL, QUERY) if expected[item.urn] != item] == [PII.urn]
    assert expected[PII.urn] == msgspec.structs.replace(
        PII, raw={"openmetadata": {"style": {"color": "#ffd700"}}}
    )
    assert estate.stub.violations == []


def test_entities_are_shown_natively(estate: Estate) -> None:
    estate.catalog().put(table(SOURCE))
    put(estate, *ALL)
    tag, domain = entity(estate, "tag", "pii"), entity(estate, "domain", "eu")
    assert (tag["fullyQualifiedName"], tag["displayName"]) == ("Lumos.pii", "Personal")
    assert (tag["description"], tag["style"]) == ("a &lt; b", {"color": "#ffd700"})
    assert [each["name"] for each in tag["owners"]] == ["ann"]
    # As a subdomain it would have another name.
    assert (domain["fullyQualifiedName"], domain["description"]) == ("eu", "Europe")
    pipeline = next(
        e for e in estate.stub.entities("pipeline") if e["fullyQualifiedName"] == "airflow.nightly"
    )
    assert (pipeline["serviceType"], pipeline["displayName"]) == ("Airflow", "Nightly load")
    assert [each["tagFQN"] for each in pipeline["tags"]] == ["Lumos.pii"]
    assert [each["name"] for each in pipeline["domains"]] == ["sales"]
    tasks = {task["name"]: task for task in pipeline["tasks"]}
    assert tasks["extract"]["downstreamTasks"] == ["load"]
    assert (tasks["load"]["description"], len(tasks["load"]["tags"])) == ("a < b", 1)
    board = entity(estate, "dashboard", "sales.eu")
    assert (board["service"]["name"], board["charts"][0]["name"]) == ("looker", "7")
    assert {each["name"] for each in estate.stub.entities("pipelineService")} == {
        "airflow", "airflow?env=STG",
    }  # fmt: skip
    containers = estate.stub.entities("container")
    assert [(each["name"], each["displayName"]) for each in containers] == [(POLICY.urn, "All may")]


def test_edges_from_datasets_are_drawn_once_these_are_there(estate: Estate) -> None:
    catalog = put(estate, CHART, NIGHTLY)
    assert held(estate)[CHART.urn] == CHART
    list(catalog.put_many([table(ORDERS), table(SOURCE)], current={}))
    for type, name, end in (("chart", "7", "orders"), ("pipeline", "nightly", "source")):
        path = f"lineage/{type}/{entity(estate, type, name)['id']}?upstreamDepth=1"
        assert [node["name"] for node in estate.human("GET", path)["nodes"]] == [end]
    assert held(estate) == {CHART.urn: CHART, NIGHTLY.urn: NIGHTLY}


def test_edits_of_people_come_back_in_fields(estate: Estate) -> None:
    put(estate, NIGHTLY, LOAD, PII, POLICY)
    estate.change("pipelines", "airflow.nightly", description="By hand")
    pipeline = entity(estate, "pipeline", "nightly")
    tasks = [{**pipeline["tasks"][0], "displayName": "Load it"}]
    estate.change("pipelines", "airflow.nightly", tasks=tasks)
    estate.change("tags", "Lumos.pii", displayName="Private")
    estate.change("containers", f"lumos.{POLICY.urn}", description="Some may")
    replace = msgspec.structs.replace
    assert held(estate) == {
        NIGHTLY.urn: replace(NIGHTLY, description="By hand"),
        LOAD.urn: replace(LOAD, display_name="Load it"),
        PII.urn: replace(estate.catalog().item_as_stored(PII), display_name="Private"),
        POLICY.urn: replace(POLICY, description="Some may"),
    }


def test_writing_the_same_again_writes_nothing(estate: Estate) -> None:
    put(estate, *ALL)
    estate.server.forget()
    put(estate, *ALL)
    writes = [(e.method, e.path, e.body) for e in estate.server.requests if e.method != "GET"]
    assert writes == []


def test_a_title_is_changed_although_a_bot_may_not_patch_it(estate: Estate) -> None:
    put(estate, PII, NIGHTLY, LOAD)
    renamed = [msgspec.structs.replace(each, display_name="New") for each in (PII, NIGHTLY)]
    catalog = put(estate, *renamed)
    expected = {each.urn: catalog.item_as_stored(each) for each in (*renamed, LOAD)}
    assert held(estate) == expected


def test_entities_that_are_removed_leave_nothing(estate: Estate) -> None:
    catalog = put(estate, *ALL)
    for item in ALL:
        catalog.erase_item(item)
    catalog.clean_up()
    assert held(estate) == {}
    for type in ("pipeline", "dashboard", "chart", "mlmodel", "container", "domain", "user",
                 "pipelineService", "dashboardService", "storageService"):  # fmt: skip
        left = [e["name"] for e in estate.stub.entities(type) if e["name"] not in BUILT_IN]
        assert left == [], type


BUILT_IN = {"admin", "ingestion-bot"}


def test_a_removed_tag_that_labels_something_is_a_label_again(estate: Estate) -> None:
    entry = table(ORDERS, governance=Governance(tags=("pii",)))
    estate.catalog().put(entry)
    catalog = put(estate, PII)
    catalog.erase_item(PII)
    catalog.clean_up()
    assert held(estate) == {}
    assert estate.now() == entry
    assert not entity(estate, "tag", "pii").get("displayName")


def test_labels_and_domains_of_datasets_are_the_entities(estate: Estate) -> None:
    entry = CatalogEntry(
        urn=OTHER, name="other", platform="postgres", governance=Governance(tags=("pii",)),
        documentation=Documentation(domain="sales"),
    )  # fmt: skip
    estate.catalog().put(entry)
    put(estate, PII, SALES)
    assert len([each for each in estate.stub.entities("tag") if each["name"] == "pii"]) == 1
    raw = estate.raw("postgres.shop.public.other")
    assert [each["displayName"] for each in raw["domains"]] == ["Sales"]
    assert estate.now(OTHER) == entry


@pytest.mark.parametrize(
    ("former", "urn"),
    [
        ("openmetadata:tag:Lumos.pii", "lumos:tag:pii"),
        ("openmetadata:tag:Importance.Gold", "lumos:tag:Importance.Gold"),
        ("openmetadata:pipeline:flows.load", "lumos:pipeline:flows/load"),
        ("openmetadata:classification:Importance", "openmetadata:classification:Importance"),
    ],
)
def test_items_of_format_1_0_are_read_and_written(estate: Estate, former: str, urn: str) -> None:
    tasks = [{"name": "a", "downstreamTasks": ["b"]}, {"name": "b", "taskSQL": "select 1"}]
    record = {"description": "a &lt; b", "displayName": "A"}
    is_pipeline = "pipeline" in former
    item = CatalogEntity(
        urn=former, raw={"openmetadata": {**record, **({"tasks": tasks} if is_pipeline else {})}}
    )
    catalog = put(estate, item)
    now = catalog.item_as_stored(item)
    assert isinstance(now, CatalogEntity)
    assert (now.urn, now.display_name, now.description) == (urn, "A", "a < b")
    for key in (former, urn):
        found = estate.catalog().get_item(CatalogEntity, key)
        assert isinstance(found, CatalogEntity)
        assert (found.urn, found.description) == (urn, "a < b")
    task = estate.catalog().get_item(CatalogEntity, "lumos:task:flows/load/b")
    assert (task is not None) == is_pipeline
    if isinstance(task, CatalogEntity):
        assert task.references == {"upstream": ("lumos:task:flows/load/a",)}
        assert task.raw == {"openmetadata": {"taskSQL": "select 1"}}


def test_tags_that_exclude_each_other_are_not_shown_together(estate: Estate) -> None:
    item = msgspec.structs.replace(CHART, tags=("PII.NonSensitive", "PII.Sensitive", "x"))
    put(estate, item)
    shown = [each["tagFQN"] for each in entity(estate, "chart", "7")["tags"]]
    assert shown == ["Lumos.x", "PII.NonSensitive"]
    assert held(estate) == {CHART.urn: item}


def test_edges_of_format_1_0_are_those_of_the_same_entity(estate: Estate) -> None:
    put(estate, STAGED)
    name, details = "openmetadata:pipeline:airflow?env=STG.nightly", {"source": "Manual"}
    entry = table(raw={"openmetadata": {"edges": {name: details}}})
    for _ in range(2):
        estate.catalog().put(entry)
        assert estate.now().raw == {"openmetadata": {"edges": {STAGED.urn: details}}}
        assert estate.now() == estate.catalog().as_stored(entry)


@pytest.mark.parametrize(
    ("type", "fqn", "urn"),
    [
        ("tag", 'Lumos."a.b"', "lumos:tag:a.b"),
        ("domain", "Sales.EU", "lumos:domain:Sales.EU"),
        ("dataProduct", '"a.b"', "lumos:data_product:a.b"),
        ("pipeline", "flows.a/b", "lumos:pipeline:flows/a%2Fb"),
        ("pipeline", "airflow?env=STG.x", "lumos:pipeline:airflow/x/STG"),
        ("query", "pg.top ten", "lumos:query:pg/top ten"),
        ("query", "lumos.a/b", "lumos:query:a/b"),
        ("databaseSchema", "pg.shop.public", "openmetadata:databaseSchema:pg.shop.public"),
    ],
)
def test_an_entity_has_one_urn(type: str, fqn: str, urn: str) -> None:
    assert urn_of(type, fqn) == urn
    if fqn != "lumos.a/b" and type != "tag":
        assert locate(urn) == (type, fqn)


@pytest.mark.parametrize("urn", ["urn:li:tag:pii", "lumos:pipeline:x", "lumos:foo:x", "x"])
def test_other_urns_are_those_of_no_kind(estate: Estate, urn: str) -> None:
    item = CatalogEntity(urn=urn, kind="tag", description="x", tags=("pii",))
    put(estate, item)
    assert held(estate) == {urn: item}
    assert [each["description"] for each in estate.stub.entities("container")] == ["x"]


def test_a_term_may_be_in_a_group_that_is_written_later(estate: Estate) -> None:
    catalog = estate.catalog()
    term = GlossaryTerm(
        name="business.Net", definition="x", raw={"openmetadata": {"glossary": "business"}}
    )
    catalog.put_item(term)
    put(estate, GROUP)
    assert entity(estate, "glossary", "business")["displayName"] == "Business"
    assert estate.catalog().get_item(GlossaryTerm, "business.Net") == term
    assert held(estate) == {GROUP.urn: GROUP}
