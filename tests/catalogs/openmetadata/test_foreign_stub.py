"""Tags, domains, flows and jobs of DataHub in OpenMetadata; a stub of it, so proved for that only."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalogs.servers.http import Server
from catalogs.servers.openmetadata import Openmetadata
from catalogs.servers.spec import specification
from catalogs.strategies import WORDS
from lumos.catalogs.openmetadata.platform import Openmetadata as Platform
from lumos.model.catalog import CatalogEntity, CatalogEntry, User
from lumos.model.dataset import Documentation, Governance

from .people import ORDERS, Estate

FEW = settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
ID = "3b1e8d4c-58c2-4e0b-9d43-7f20a1c5e8b6"
TAG, DOMAIN = f"urn:li:tag:{ID}", f"urn:li:domain:{ID}"
FLOW = "urn:li:dataFlow:(airflow,nightly,PROD)"
EXTRACT, LOAD = (f"urn:li:dataJob:({FLOW},{name})" for name in ("extract", "load"))


def other(urn: str, **aspects: Any) -> CatalogEntity:
    said = {aspect: [{"body": body}] for aspect, body in aspects.items()}
    return CatalogEntity(urn=urn, raw={"datahub": said})


GOLD = other(
    TAG,
    tagProperties={"name": "Gold", "description": "a < b", "colorHex": "#ffd700"},
    ownership={"owners": []},
)
MARKETING = other(DOMAIN, domainProperties={"name": "Marketing", "description": "Who sells"})
NIGHTLY = other(
    FLOW,
    dataFlowInfo={
        "name": "Nightly load",
        "description": "At <night>",
        "externalUrl": "https://airflow.example.com/nightly",
        "customProperties": {"owner": "data"},
    },
)
FIRST = other(EXTRACT, dataJobInfo={"name": "Extract", "type": {"string": "BashOperator"}})
SECOND = other(
    LOAD,
    dataJobInfo={"name": "Load it", "description": "a < b", "type": "SQL"},
    dataJobInputOutput={"inputDatasets": [], "outputDatasets": [], "inputDatajobs": [EXTRACT]},
)
ALL = (GOLD, MARKETING, SECOND, NIGHTLY, FIRST)


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


def change(estate: Estate, route: str, id: str, **fields: Any) -> None:
    """Somebody changes fields in the web interface."""
    operations = [{"op": "add", "path": f"/{key}", "value": fields[key]} for key in fields]
    estate.human("PATCH", f"{route}/{id}", operations, type="json-patch+json")


def put(estate: Estate, *items: CatalogEntity) -> Platform:
    catalog = estate.catalog()
    assert list(catalog.put_items(items)) == []
    return catalog


def held(estate: Estate) -> dict[str, Any]:
    return {item.urn: item for item in estate.catalog().items() if isinstance(item, CatalogEntity)}


def said(item: Any, aspect: str) -> Any:
    (statement,) = item.raw["datahub"][aspect]
    return statement["body"]


def test_a_tag_and_a_domain_are_shown_by_their_titles_and_words(estate: Estate) -> None:
    put(estate, GOLD, MARKETING)
    tag, domain = entity(estate, "tag", ID), entity(estate, "domain", ID)
    assert (tag["displayName"], tag["description"]) == ("Gold", "a &lt; b")
    assert tag["style"] == {"color": "#ffd700"}
    assert (domain["displayName"], domain["description"]) == ("Marketing", "Who sells")
    assert held(estate) == {TAG: GOLD, DOMAIN: MARKETING}
    assert estate.stub.violations == []


def test_datasets_refer_to_what_is_shown(estate: Estate) -> None:
    entry = CatalogEntry(
        urn=ORDERS,
        name="orders",
        platform="postgres",
        governance=Governance(tags=(ID,)),
        documentation=Documentation(domain=ID),
    )
    estate.catalog().put(entry)
    put(estate, GOLD, MARKETING)
    raw = estate.raw()
    assert [each["tagFQN"] for each in raw["tags"]] == [f"Lumos.{ID}"]
    assert [each["displayName"] for each in raw["domains"]] == ["Marketing"]
    assert estate.now() == entry


def test_a_flow_is_a_pipeline_of_its_orchestrator_and_its_jobs_are_tasks(estate: Estate) -> None:
    put(estate, SECOND, NIGHTLY, FIRST)
    pipeline = entity(estate, "pipeline", "nightly")
    assert pipeline["service"]["name"] == "airflow"
    assert pipeline["serviceType"] == "Airflow"
    assert (pipeline["displayName"], pipeline["description"]) == (
        "Nightly load",
        "At &lt;night&gt;",
    )
    assert pipeline["sourceUrl"] == "https://airflow.example.com/nightly"
    tasks = {task["name"]: task for task in pipeline["tasks"]}
    assert tasks["load"] == {
        "name": "load",
        "displayName": "Load it",
        "description": "a < b",
        "taskType": "SQL",
    }
    assert tasks["extract"] == {
        "name": "extract",
        "displayName": "Extract",
        "taskType": "BashOperator",
        "downstreamTasks": ["load"],
    }
    assert held(estate) == {FLOW: NIGHTLY, EXTRACT: FIRST, LOAD: SECOND}
    assert estate.stub.violations == []


def test_only_addresses_are_linked(estate: Estate) -> None:
    flow = other(FLOW, dataFlowInfo={"name": "Nightly", "externalUrl": "ask Ann"})
    put(estate, flow)
    assert "sourceUrl" not in entity(estate, "pipeline", "nightly")
    assert held(estate) == {FLOW: flow}


def test_flows_of_another_cluster_are_in_a_service_of_their_own(estate: Estate) -> None:
    staged = other("urn:li:dataFlow:(airflow,nightly,STG)", dataFlowInfo={"name": "Nightly"})
    put(estate, NIGHTLY, staged)
    services = {each["service"]["name"] for each in estate.stub.entities("pipeline")}
    assert services == {"airflow", "airflow?env=STG"}


def test_putting_the_same_again_writes_nothing(estate: Estate) -> None:
    put(estate, *ALL)
    before = len(estate.server.requests)
    put(estate, *ALL)
    assert {request.method for request in estate.server.requests[before:]} == {"GET"}


def test_what_people_change_comes_back_in_datahubs_words(estate: Estate) -> None:
    put(estate, *ALL)
    tag, domain = entity(estate, "tag", ID), entity(estate, "domain", ID)
    pipeline = entity(estate, "pipeline", "nightly")
    change(estate, "tags", tag["id"], description="The best", style={"color": "#000000"})
    change(estate, "domains", domain["id"], displayName="Selling")
    tasks = [{**task, "description": "Mine"} for task in pipeline["tasks"]]
    change(estate, "pipelines", pipeline["id"], description="By day", tasks=tasks)
    now = held(estate)
    assert said(now[TAG], "tagProperties") == {
        "name": "Gold",
        "description": "The best",
        "colorHex": "#000000",
    }
    assert said(now[TAG], "ownership") == {"owners": []}
    assert said(now[DOMAIN], "domainProperties")["name"] == "Selling"
    assert said(now[FLOW], "dataFlowInfo")["description"] == "By day"
    assert said(now[FLOW], "dataFlowInfo")["customProperties"] == {"owner": "data"}
    assert said(now[LOAD], "dataJobInfo")["description"] == "Mine"
    # One by one they read as they do together.
    catalog = estate.catalog()
    assert {urn: catalog.get_item(CatalogEntity, urn) for urn in now} == now


def test_other_words_are_shown_in_the_place_of_those_before(estate: Estate) -> None:
    put(estate, *ALL)
    silver = other(TAG, tagProperties={"name": "Silver"})
    daily = other(FLOW, dataFlowInfo={"name": "Daily"})
    put(estate, silver, daily)
    tag, pipeline = entity(estate, "tag", ID), entity(estate, "pipeline", "nightly")
    assert (tag["displayName"], tag["description"], tag.get("style")) == ("Silver", "", None)
    assert (pipeline["displayName"], pipeline["description"]) == ("Daily", "")
    assert {task["name"] for task in pipeline["tasks"]} == {"extract", "load"}
    assert "sourceUrl" not in pipeline
    now = held(estate)
    assert (now[TAG], now[FLOW]) == (silver, daily)


def test_what_people_made_under_the_same_name_is_left_alone(estate: Estate) -> None:
    estate.human("PUT", "domains", {"name": ID, "domainType": "Aggregate", "description": "Ours"})
    put(estate, MARKETING)
    domain = entity(estate, "domain", ID)
    assert (domain.get("displayName"), domain["description"]) == (None, "Ours")
    assert held(estate).keys() == {DOMAIN, f"openmetadata:domain:{ID}"}
    assert held(estate)[DOMAIN] == MARKETING
    estate.catalog().erase_item(MARKETING)
    assert entity(estate, "domain", ID)["description"] == "Ours"


def test_what_is_taken_back_leaves_nothing_that_people_do_not_use(estate: Estate) -> None:
    put(estate, *ALL)
    catalog = estate.catalog()
    for item in ALL:
        catalog.erase_item(item)
    catalog.tidy()
    assert held(estate) == {}
    assert not [each for each in estate.stub.entities("tag") if each["name"] == ID]
    assert not list(estate.stub.entities("pipeline"))
    assert not list(estate.stub.entities("pipelineService"))
    domain = entity(estate, "domain", ID)
    assert (domain.get("displayName"), domain["description"]) == (None, "")


def test_a_tag_that_is_used_stays_without_the_words_that_were_brought(estate: Estate) -> None:
    entry = CatalogEntry(
        urn=ORDERS, name="orders", platform="postgres", governance=Governance(tags=(ID,))
    )
    estate.catalog().put(entry)
    put(estate, GOLD)
    estate.catalog().erase_item(GOLD)
    tag = entity(estate, "tag", ID)
    assert (tag.get("displayName"), tag["description"], tag.get("style")) == (None, "", None)
    assert estate.now() == entry


def test_what_was_made_to_show_other_catalogs_is_known(estate: Estate) -> None:
    put(estate, *ALL)
    opened = estate.catalog()._opened
    assert opened.items.shown_elsewhere().keys() == {
        ("tag", f"Lumos.{ID}"),
        ("domain", ID),
        ("pipeline", "airflow.nightly"),
    }


def person(estate: Estate, name: str) -> dict[str, str]:
    made = estate.human("PUT", "users", {"name": name, "email": f"{name}@example.com"})
    return {"id": made["id"], "type": "user"}


def erase(estate: Estate, *items: CatalogEntity) -> None:
    catalog = estate.catalog()
    for item in items:
        catalog.erase_item(item)
    catalog.tidy()


def test_a_pipeline_of_people_takes_no_jobs(estate: Estate) -> None:
    estate.human("PUT", "services/pipelineServices", {"name": "airflow", "serviceType": "Airflow"})
    body = {"name": "nightly", "service": "airflow", "description": "Ours"}
    estate.human("PUT", "pipelines", {**body, "tasks": [{"name": "mine"}]})
    before = estate.named("pipelines", "airflow.nightly", "tasks")["tasks"]
    put(estate, NIGHTLY, SECOND)
    assert estate.named("pipelines", "airflow.nightly", "tasks")["tasks"] == before
    assert held(estate).keys() >= {"openmetadata:pipeline:airflow.nightly", FLOW, LOAD}
    assert estate.catalog().get_item(CatalogEntity, LOAD) == SECOND
    erase(estate, SECOND, NIGHTLY)
    assert estate.named("pipelines", "airflow.nightly", "tasks")["tasks"] == before


@pytest.mark.parametrize("urn", [TAG, DOMAIN, FLOW, LOAD])
def test_what_people_have_under_a_name_is_nothing_that_came_from_datahub(
    estate: Estate, urn: str
) -> None:
    put(estate, *ALL)
    for kept in [each for each in estate.stub.entities("container") if "extension" in each]:
        estate.human("DELETE", f"containers/{kept['id']}?hardDelete=true")
    assert estate.catalog().get_item(CatalogEntity, urn) is None


def test_a_job_alone_goes_without_a_trace(estate: Estate) -> None:
    put(estate, SECOND)
    assert estate.named("pipelines", "airflow.nightly") is not None
    erase(estate, SECOND)
    assert estate.stub.entities("pipeline") == []
    assert estate.stub.entities("pipelineService") == []


def test_a_tag_that_people_make_later_is_theirs(estate: Estate) -> None:
    gold = other("urn:li:tag:Importance.Gold", tagProperties={"name": "G", "description": "from"})
    put(estate, gold)
    estate.human("PUT", "classifications", {"name": "Importance", "description": "by people"})
    tag = {"name": "Gold", "classification": "Importance", "description": "by people"}
    estate.human("PUT", "tags", tag)
    now = held(estate)
    assert now[gold.urn] == gold
    assert "openmetadata:tag:Importance.Gold" in now
    erase(estate, gold)
    assert estate.named("tags", "Importance.Gold")["description"] == "by people"


def test_a_domain_with_owners_is_peoples_though_it_has_no_words(estate: Estate) -> None:
    owner = person(estate, "ann")
    body = {"name": "sales", "description": "", "domainType": "Aggregate", "owners": [owner]}
    estate.human("PUT", "domains", body)
    sales = other("urn:li:domain:sales", domainProperties={"name": "S", "description": "from"})
    put(estate, sales)
    assert held(estate).keys() == {"openmetadata:domain:sales", sales.urn}
    assert estate.named("domains", "sales")["description"] == ""


def test_what_people_say_beside_moves_with_a_thing_of_its_own(estate: Estate) -> None:
    put(estate, NIGHTLY, MARKETING)
    owner = person(estate, "ann")
    estate.change("pipelines", "airflow.nightly", owners=[owner], scheduleInterval="0 1 * * *")
    estate.change("domains", ID, owners=[owner])
    moved = list(estate.catalog().items())
    estate.stub.empty()
    person(estate, "ann")
    assert list(estate.catalog().put_items(moved)) == []
    pipeline = estate.named("pipelines", "airflow.nightly", "owners")
    assert [each["name"] for each in pipeline["owners"]] == ["ann"]
    assert (pipeline["displayName"], pipeline["scheduleInterval"]) == ("Nightly load", "0 1 * * *")
    assert [each["name"] for each in estate.named("domains", ID, "owners")["owners"]] == ["ann"]
    now = held(estate)
    assert (now[FLOW], now[DOMAIN]) == (NIGHTLY, MARKETING)


def test_a_pipeline_into_which_people_put_something_stays(estate: Estate) -> None:
    put(estate, NIGHTLY, SECOND)
    there = estate.named("pipelines", "airflow.nightly", "tasks")["tasks"]
    tasks = [{k: v for k, v in task.items() if k != "fullyQualifiedName"} for task in there]
    mine = {"name": "mine", "description": "by people"}
    estate.change("pipelines", "airflow.nightly", tasks=[*tasks, mine])
    erase(estate, NIGHTLY, SECOND)
    left = estate.named("pipelines", "airflow.nightly", "tasks")
    assert "mine" in {task["name"] for task in left["tasks"]}
    assert left.get("displayName") is None


@pytest.mark.parametrize("order", [1, -1])
def test_two_catalogs_may_have_one_name(estate: Estate, order: int) -> None:
    native = CatalogEntity(
        urn="openmetadata:domain:Sales",
        raw={"openmetadata": {"description": "d", "domainType": "Consumer-aligned"}},
    )
    foreign = other("urn:li:domain:Sales", domainProperties={"name": "S", "description": "from"})
    for item in (native, foreign)[::order]:
        put(estate, item)
    assert held(estate) == {native.urn: native, foreign.urn: foreign}


URNS = st.one_of(
    st.builds("urn:li:tag:{}".format, st.sampled_from(["a", "PII.Sensitive", "x.y", "ü\n"])),
    st.builds("urn:li:domain:{}".format, st.sampled_from(["a", "A.b", ID])),
    st.sampled_from([FLOW, EXTRACT, LOAD, "urn:li:dataFlow:(x,y\n,dev)"]),
)
SAID = st.dictionaries(
    st.sampled_from(["name", "description", "colorHex", "externalUrl", "more"]), WORDS | st.none()
)


@FEW
@given(
    st.dictionaries(
        URNS,
        st.dictionaries(
            st.sampled_from(["tagProperties", "domainProperties", "dataFlowInfo", "dataJobInfo"]),
            SAID,
        ),
        max_size=5,
    )
)
def test_whatever_is_said_comes_back(shared: Estate, given: dict[str, Any]) -> None:
    shared.stub.empty()
    items = {urn: other(urn, **aspects) for urn, aspects in given.items()}
    put(shared, *items.values())
    assert held(shared) == items
    put(shared, *(msgspec.structs.replace(item, raw={}) for item in items.values()))
    assert held(shared) == {urn: CatalogEntity(urn=urn) for urn in items}
    assert shared.stub.violations == []


@pytest.mark.parametrize("is_used", [True, False])
def test_somebody_whom_people_made_an_owner_stays_when_an_import_is_taken_back(
    estate: Estate, is_used: bool
) -> None:
    ann = User(name="ann", display_name="Ann", email="ann@example.com")
    estate.catalog().put(CatalogEntry(urn=ORDERS, name="orders", platform="postgres"))
    assert list(estate.catalog().put_items([ann])) == []
    if is_used:
        id = estate.named("users", "ann")["id"]
        estate.edit({"op": "add", "path": "/owners", "value": [{"id": id, "type": "user"}]})
    catalog = estate.catalog()
    catalog.erase_item(ann)
    catalog.tidy()
    assert ("ann" in {user["name"] for user in estate.stub.entities("user")}) == is_used
