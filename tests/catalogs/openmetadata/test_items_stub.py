"""Terms, people, jobs and the rest in OpenMetadata; a stub of it, so proved for the stub only."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalogs.servers.http import Request, Server
from catalogs.servers.openmetadata import BOT, HUMAN, Openmetadata
from catalogs.servers.openmetadata_kinds import Writer
from catalogs.servers.spec import specification
from catalogs.strategies import ITEMS, WORDS
from lumos.catalogs.interface import item_key
from lumos.catalogs.openmetadata.labels import (
    OpenMetadataLabels,
    domain_of,
    owner_of,
    placeholder_email,
    tag_of,
    term_of,
)
from lumos.catalogs.openmetadata.platform import Openmetadata as Platform
from lumos.catalogs.openmetadata.server import Server as Caller
from lumos.config.platforms import OpenmetadataPlatform
from lumos.config.secret import Secret
from lumos.model.catalog import CatalogEntity, GlossaryTerm, Group, Job, User
from lumos.model.dataset import Owner, Schedule
from lumos.model.lineage import JobRun

FEW = settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Catalog:
    """A stub with whoever works in it: Lumos, each time anew, and somebody else."""

    def __init__(self, stub: Openmetadata, server: Server) -> None:
        self.stub = stub
        self.server = server
        settings = OpenmetadataPlatform(server=server.address, auth_token=Secret(BOT))
        self.caller = Caller(settings)
        self.human = httpx.Client(
            base_url=f"{server.address}/api/v1/",
            headers={"Authorization": f"Bearer {HUMAN}"},
            verify=False,
        )

    @property
    def labels(self) -> OpenMetadataLabels:
        return OpenMetadataLabels(self.caller)

    @property
    def items(self) -> Platform:
        return Platform(OpenmetadataPlatform(server=self.server.address, auth_token=Secret(BOT)))

    def found(self, type: str, name: str) -> Any:
        return next(each for each in self.stub.entities(type) if each["name"] == name)

    def edit(self, route: str, type: str, name: str, **fields: Any) -> None:
        """Somebody changes fields in the web interface."""
        operations = [{"op": "add", "path": f"/{key}", "value": fields[key]} for key in fields]
        answer = self.human.patch(
            f"{route}/{self.found(type, name)['id']}",
            content=msgspec.json.encode(operations),
            headers={"Content-Type": "application/json-patch+json"},
        )
        assert answer.status_code == 200, answer.text

    def make(self, route: str, body: dict[str, Any]) -> Any:
        answer = self.human.put(route, json=body)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()


@pytest.fixture(scope="module")
def shared() -> Iterator[Catalog]:
    stub = Openmetadata(specification())
    with Server(stub) as server:
        catalog = Catalog(stub, server)
        yield catalog
        catalog.caller.close()
        catalog.human.close()


@pytest.fixture
def catalog(shared: Catalog) -> Catalog:
    shared.stub.empty()
    shared.stub.violations.clear()
    return shared


def test_an_empty_catalog_has_no_items(catalog: Catalog) -> None:
    assert list(catalog.items.items()) == []


def test_what_open_metadata_has_a_place_for_is_there(catalog: Catalog) -> None:
    catalog.items.put_item(
        GlossaryTerm(name="Order", display_name="An order", definition="a < b & c")
    )
    catalog.items.put_item(User(name="jane.smith", display_name="Jane", email="jane@example.com"))
    catalog.items.put_item(
        Group(name="lake", description="The lake", members=("jane.smith", "bob"))
    )
    job = Job(urn="lumos://airflow/load", name="load", platform="airflow", description="Loads",
              schedule=Schedule(cron="0 1 * * *", timezone="CET"))  # fmt: skip
    catalog.items.put_item(job)
    term = catalog.found("glossaryTerm", "Order")
    assert (term["displayName"], term["description"]) == ("An order", "a &lt; b &amp; c")
    user = catalog.found("user", "jane.smith")
    assert (user["displayName"], user["email"]) == ("Jane", "jane@example.com")
    team = catalog.found("team", "lake")
    assert [each["name"] for each in team["users"]] == ["bob", "jane.smith"]
    assert catalog.found("user", "bob")["email"] == "bob@lumos.invalid"
    pipeline = catalog.found("pipeline", "lumos://airflow/load")
    assert (pipeline["displayName"], pipeline["scheduleInterval"]) == ("load", "0 1 * * *")
    assert pipeline["service"]["name"] == "lumos"
    # Bob is only a member: nobody said anything of him.
    assert {type(each) for each in catalog.items.items()} == {GlossaryTerm, User, Group, Job}
    assert len(list(catalog.items.items())) == 4


def test_a_term_that_was_only_a_label_becomes_an_item(catalog: Catalog) -> None:
    catalog.labels.ensure(terms=["id", "ID"])
    assert list(catalog.items.items()) == []
    terms = [GlossaryTerm(name=name, definition=name, display_name=name) for name in ("ID", "id")]
    for term in terms:
        catalog.items.put_item(term)
    assert sorted(catalog.items.items(), key=lambda term: term.name) == terms
    assert {each["displayName"] for each in catalog.stub.entities("glossaryTerm")} == {"id", "ID"}


@pytest.mark.parametrize("name", ["0.\n", "0.\x1f", "a.b::c", 'a.">'])
def test_a_qualified_name_that_the_server_refuses_is_spelled_otherwise(
    catalog: Catalog, name: str
) -> None:
    term = GlossaryTerm(name=name, raw={"openmetadata": {"id": []}})
    catalog.items.put_item(term)
    assert catalog.items.get_item(GlossaryTerm, name) == catalog.items.item_as_stored(term)
    assert catalog.stub.violations == []


@FEW
@given(st.lists(ITEMS, max_size=6, unique_by=lambda item: (type(item), getattr(item, "urn", None) or getattr(item, "name", None))))  # fmt: skip
def test_items_come_back_as_they_were_put(shared: Catalog, items: list[Any]) -> None:
    shared.stub.empty()
    held = {}
    for item in items:
        shared.items.put_item(item)
        as_stored = shared.items.item_as_stored(item)
        held[type(item), item_key(as_stored)] = as_stored
        assert shared.items.get_item(type(item), item_key(item)) == as_stored
    assert {(type(item), item_key(item)): item for item in shared.items.items()} == held
    for item in items:
        shared.items.erase_item(item)
    assert list(shared.items.items()) == []
    assert shared.stub.violations == []


def test_putting_the_same_again_writes_nothing(catalog: Catalog) -> None:
    items = [
        GlossaryTerm(name="Order", definition="x", related=("y",)),
        User(name="Jane", title="Boss"),
        Group(name="g", members=("a",)),
        CatalogEntity(urn="x", raw={"atlas": {"y": [1]}}),
        Job(urn="j", name="j", platform="p", runs=(JobRun(run_id="1", job="j", started_at=datetime(2024, 1, 1, tzinfo=UTC)),)),
    ]  # fmt: skip
    for item in items:
        catalog.items.put_item(item)
    catalog.server.forget()
    for item in items:
        catalog.items.put_item(item)
    assert {request.method for request in catalog.server.requests} == {"GET"}


def test_what_people_changed_since_is_told(catalog: Catalog) -> None:
    term = GlossaryTerm(name="Order", definition="ours", related=("Customer",))
    user = User(name="jane", display_name="Jane")
    group = Group(name="lake", description="ours", members=("jane",))
    job = Job(urn="j", name="j", platform="p", schedule=Schedule(cron="0 1 * * *", timezone="CET"))
    for item in (term, user, group, job):
        catalog.items.put_item(item)
    catalog.edit("glossaryTerms", "glossaryTerm", "Order", description="theirs &amp; more")
    catalog.edit("users", "user", "jane", displayName="Jane S.")
    catalog.edit("teams", "team", "lake", users=[])
    catalog.edit("pipelines", "pipeline", "j", scheduleInterval="@daily")
    replace = msgspec.structs.replace
    assert catalog.items.get_item(GlossaryTerm, "Order") == replace(
        term, definition="theirs & more"
    )
    assert catalog.items.get_item(User, "jane") == replace(user, display_name="Jane S.")
    assert catalog.items.get_item(Group, "lake") == replace(group, members=())
    daily = Schedule(cron="@daily", timezone="CET")
    assert catalog.items.get_item(Job, "j") == replace(job, schedule=daily)


@pytest.mark.parametrize("definition", ["before", None])
def test_what_somebody_writes_while_lumos_does_is_not_lost_unseen(
    catalog: Catalog, definition: str | None
) -> None:
    catalog.items.put_item(
        GlossaryTerm(name="Order", definition=definition, display_name="An order")
    )
    seen: list[str] = []

    def meanwhile(request: Request) -> None:
        if request.method == "PATCH" and not seen:
            seen.append(request.path)
            entity = next(catalog.stub.estate.listed("glossaryTerm"))
            document = {**catalog.stub.estate.told(entity), "description": "theirs"}
            catalog.stub.estate.patch(entity, document, Writer("admin"))

    catalog.server.before.append(meanwhile)
    catalog.server.forget()
    catalog.items.put_item(GlossaryTerm(name="Order", definition="ours", display_name="An order"))
    catalog.server.before.clear()
    answers = [request for request in catalog.server.requests if request.method == "PATCH"]
    # The first patch was for a term that was not like that any more.
    assert [each.json[0]["path"] for each in answers][:2] == ["/updatedAt", "/updatedAt"]
    assert answers[0].json[0]["value"] != answers[1].json[0]["value"]
    assert catalog.items.get_item(GlossaryTerm, "Order") == GlossaryTerm(
        name="Order", definition="ours", display_name="An order"
    )


def test_an_item_that_was_put_again_is_exactly_that(catalog: Catalog) -> None:
    for definition, members in (("first", ("a",)), (None, ()), ("third", ("b",))):
        term = GlossaryTerm(name="Order", definition=definition, display_name=definition)
        group = Group(name="g", description=definition, members=members)
        job = Job(urn="j", name=definition or "j", platform="p", description=definition)
        for item in (term, group, job):
            catalog.items.put_item(item)
        assert catalog.items.get_item(GlossaryTerm, "Order") == term
        assert catalog.items.get_item(Group, "g") == group
        assert catalog.items.get_item(Job, "j") == job
    assert catalog.found("glossaryTerm", "Order")["description"] == "third"


def test_somebody_who_was_only_a_member_stays_one(catalog: Catalog) -> None:
    group, user = Group(name="g", members=("ann",)), User(name="ann", display_name="Ann")
    for item in (group, user):
        catalog.items.put_item(item)
    assert catalog.items.get_item(Group, "g") == group
    assert catalog.items.get_item(User, "ann") == user
    assert catalog.found("user", "ann")["displayName"] == "Ann"


def test_what_was_only_referred_to_goes_with_its_item(catalog: Catalog) -> None:
    items = [User(name="ann", display_name="Ann"), Group(name="g", description="G"), GlossaryTerm(name="t", definition="T")]  # fmt: skip
    owners = [Owner(name="ann"), Owner(name="g", kind="group")]
    catalog.labels.ensure(owners=owners, terms=["t"])
    catalog.make("teams", {"name": "theirs", "teamType": "Group"})
    for item in items:
        catalog.items.put_item(item)
        catalog.items.erase_item(item)
    assert list(catalog.items.items()) == [Group(name="theirs")]


def test_what_people_made_is_recognised_and_not_replaced(catalog: Catalog) -> None:
    catalog.make("glossaries", {"name": "Biz", "description": "-"})
    catalog.make("glossaryTerms", {"glossary": "Biz", "name": "Customer", "description": "Pays", "synonyms": ["Buyer"]})  # fmt: skip
    catalog.make("users", {"name": "ann", "email": "ann@example.com", "displayName": "Ann"})
    customer = GlossaryTerm(
        name="Biz.Customer",
        definition="Pays",
        raw={"openmetadata": {"synonyms": ["Buyer"], "glossary": "Biz"}},
    )
    ann = User(name="ann", display_name="Ann", email="ann@example.com")
    biz = CatalogEntity(urn="lumos:term_group:Biz", description="-")
    assert list(catalog.items.items()) == [ann, biz, customer]
    assert catalog.items.get_item(GlossaryTerm, "Biz.Customer") == customer
    term = msgspec.structs.replace(customer, definition="Pays us", owners=("ann",))
    for item in (ann, term):
        catalog.items.put_item(item)
        assert catalog.items.get_item(type(item), item.name) == item
    assert catalog.found("glossaryTerm", "Customer")["description"] == "Pays us"
    assert catalog.found("glossaryTerm", "Customer")["synonyms"] == ["Buyer"]


def test_what_openmetadata_cannot_hold_of_people_is_not_held(catalog: Catalog) -> None:
    user = User(name="Jane", title="Boss", groups=("lake",), properties={"desk": "4"})
    group = Group(name="lake", members=("Jane", "bob"), properties={"a": "b"})
    for item in (user, group):
        catalog.items.put_item(item)
    held = [catalog.items.item_as_stored(item) for item in (user, group)]
    assert held == [User(name="jane"), Group(name="lake", members=("bob", "jane"))]
    assert list(catalog.items.items()) == held
    assert catalog.stub.entities("container") == []


def test_an_item_that_says_nothing_is_not_taken_for_a_placeholder(catalog: Catalog) -> None:
    catalog.labels.ensure(
        tags=["label"], owners=[Owner(name="owner"), Owner(name="team", kind="group")]
    )
    assert list(catalog.items.items()) == []
    items = [
        User(name="quiet"),
        Group(name="silent"),
        CatalogEntity(urn="lumos:tag:bare"),
        GlossaryTerm(name="Silent"),
    ]
    for item in items:
        catalog.items.put_item(item)
        assert catalog.items.get_item(type(item), item_key(item)) == item
    assert list(catalog.items.items()) == items


def test_somebody_who_came_with_the_server_is_left_alone(catalog: Catalog) -> None:
    before = catalog.found("user", "admin")
    catalog.items.put_item(User(name="admin", display_name="Somebody else"))
    catalog.items.put_item(Group(name="Organization", members=("admin",)))
    assert catalog.found("user", "admin") == before
    assert not catalog.found("team", "Organization").get("users")
    catalog.items.erase_item(User(name="admin"))
    assert catalog.found("user", "admin") == before


def test_an_address_that_somebody_has_is_not_given_to_another_user(catalog: Catalog) -> None:
    for name in ("a", "b"):
        catalog.items.put_item(User(name=name, display_name=name, email="same@example.com"))
    assert [user.email for user in catalog.items.items()] == ["same@example.com", None]


def test_labels_read_by_the_name_that_they_were_given(catalog: Catalog) -> None:
    labels = catalog.labels
    names = ["pii", "pii.email", "PII.Sensitive", "PII.NonSensitive", "Lumos.x", "", "a\nb::c", "Tier.x"]  # fmt: skip
    labels.ensure(tags=names, terms=names)
    assert [tag_of(each) for each in labels.tags(names)] == names
    assert [term_of(labels.term(name)) for name in names] == names
    assert labels.tags(["PII.Sensitive"])[0]["tagFQN"] == "PII.Sensitive"
    assert labels.tags(["pii.email"])[0]["tagFQN"] == 'Lumos."pii.email"'
    # Only one of a classification whose tags exclude each other.
    assert [each["tagFQN"] for each in labels.tags(names[2:4])] == [
        "PII.Sensitive",
        'Lumos."PII.NonSensitive"',
    ]
    assert list(catalog.items.items()) == []
    catalog.server.forget()
    labels.ensure(tags=names, terms=names)
    assert catalog.server.calls == 0


def test_terms_that_differ_only_by_case_are_kept_apart(catalog: Catalog) -> None:
    names = ["id", "ID", "Id"]
    labels = catalog.labels
    labels.ensure(terms=names)
    assert len({labels.term(name)["tagFQN"] for name in names}) == 3
    assert [term_of(labels.term(name)) for name in names] == names
    again = catalog.labels
    again.ensure(terms=names)
    assert [again.term(name) for name in names] == [labels.term(name) for name in names]
    assert len(catalog.stub.entities("glossaryTerm")) == 3


@FEW
@given(st.lists(WORDS, max_size=6, unique=True))
def test_whatever_it_is_called_a_label_reads_as_it_was_written(
    shared: Catalog, names: list[str]
) -> None:
    shared.stub.empty()
    labels = shared.labels
    assert [tag_of(labels.tags([name])[0]) for name in names] == names
    assert [term_of(labels.term(name)) for name in names] == names
    labels.ensure(tags=names, terms=names, domains=names, owners=[Owner(name=name, kind="group") for name in names])  # fmt: skip
    assert [tag_of(labels.tags([name])[0]) for name in names] == names
    assert [term_of(labels.term(name)) for name in names] == names
    assert [domain_of(labels.domain(name)) for name in names] == names
    groups = [Owner(name=name, kind="group") for name in names]
    assert [owner_of(labels.owner(group)) for group in groups] == groups
    assert all("id" in labels.owner(group) for group in groups)


def test_owners_are_found_whatever_their_case(catalog: Catalog) -> None:
    catalog.make("users", {"name": "jane.smith", "email": "jane@example.com"})
    labels = catalog.labels
    labels.ensure(owners=[Owner(name="Jane.Smith"), Owner(name="team", kind="group")])
    assert owner_of(labels.owner(Owner(name="Jane.Smith"))) == Owner(name="jane.smith")
    assert labels.owner(Owner(name="Jane.Smith"))["id"] == catalog.found("user", "jane.smith")["id"]
    assert labels.owner(Owner(name="team", kind="group"))["type"] == "team"


def test_a_domain_inside_another_is_recognised(catalog: Catalog) -> None:
    catalog.make("domains", {"name": "Sales", "domainType": "Aggregate", "description": "-"})
    catalog.make("domains", {"name": "EU", "parent": "Sales", "domainType": "Aggregate", "description": "-"})  # fmt: skip
    labels = catalog.labels
    labels.ensure(domains=["Sales", "Sales.EU", "Sales.US"])
    assert labels.domain("Sales.EU")["fullyQualifiedName"] == "Sales.EU"
    assert labels.domain("Sales.US")["fullyQualifiedName"] == '"Sales.US"'
    assert [domain_of(labels.domain(name)) for name in ("Sales", "Sales.EU", "Sales.US")] == [
        "Sales",
        "Sales.EU",
        "Sales.US",
    ]


@pytest.mark.parametrize("name", ["jane.smith", "a b", "x" * 100, "größe", ".a", "@"])
def test_a_stand_in_for_an_address_is_one_that_the_server_takes(
    catalog: Catalog, name: str
) -> None:
    assert placeholder_email(name).endswith("@lumos.invalid")
    catalog.make("users", {"name": "u", "email": placeholder_email(name)})
