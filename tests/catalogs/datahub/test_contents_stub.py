"""What a DataHub server holds and what it has no place for; the servers are stubs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from catalogs import datahub_samples as samples
from catalogs.conftest import DataHub
from catalogs.sample_inventory import rich
from catalogs.servers.gms import TOKEN, Gms
from catalogs.servers.http import Request, Server
from lumos.catalogs import FailedEntry, WrittenEntry
from lumos.catalogs.datahub.file_platform import DatahubFile
from lumos.model.catalog import CatalogEntity, GlossaryTerm, User
from lumos.model.dataset import Governance

from .datahub_servers import NAME, catalog_of, plain, put

TYPES = "/openapi/v1/registry/models/entity/specifications"


@pytest.fixture
def gms() -> Gms:
    return Gms()


@pytest.fixture
def server(gms: Gms) -> Iterator[Server]:
    with Server(gms) as server:
        yield server


def proposal_of(body: dict[str, Any]) -> Any:
    """A proposal as the package makes it of its own classes."""
    from datahub.metadata.schema_classes import GenericAspectClass, MetadataChangeProposalClass

    aspect = GenericAspectClass(
        value=body["aspect"]["value"].encode(), contentType=body["aspect"]["contentType"]
    )
    return MetadataChangeProposalClass(
        entityType=body["entityType"], entityUrn=body["entityUrn"], changeType=body["changeType"],
        aspectName=body["aspectName"], aspect=aspect,
    )  # fmt: skip


def unstamped(body: dict[str, Any]) -> dict[str, Any]:
    for proposal in body["proposals"]:
        assert proposal["systemMetadata"].pop("lastObserved") > 0
    return body


def _get(target: str) -> Request:
    return Request(1, "GET", target, {"Authorization": f"Bearer {TOKEN}"}, b"")


# What is there.


def test_a_server_that_answers_for_what_is_not_there_is_understood(
    gms: Gms, server: Server
) -> None:
    gms.keys_of_missing = True
    assert catalog_of(server).get("lumos://s3/lake/orders") is None


def test_an_aspect_that_only_this_server_knows_stays_where_it_is(gms: Gms, server: Server) -> None:
    gms.validating = False
    gms.hold(NAME, {"datasetProperties": {"name": "orders"}, "ourOwnModel": {"grade": 1}})
    catalog = catalog_of(server)
    entry = catalog.get("lumos://s3/lake/orders")
    assert entry is not None
    assert entry.raw == {"datahub": {"ourOwnModel": [{"body": {"grade": 1}}]}}
    assert not catalog.put(entry).changed
    gms.entities.clear()
    catalog.put(entry)
    assert gms.aspects(NAME)["ourOwnModel"] == {"grade": 1}


def test_an_aspect_that_no_server_knows_of_is_kept_beside(gms: Gms, server: Server) -> None:
    entry = plain(raw={"datahub": {"theirOwnModel": [{"body": {"grade": 1}}]}})
    catalog_of(server).put(entry)
    assert "theirOwnModel" not in gms.aspects(NAME)
    assert catalog_of(server).get(entry.urn) == entry


def test_secrets_of_users_are_not_read(gms: Gms, server: Server) -> None:
    gms.hold(
        "urn:li:corpuser:ann",
        {
            "corpUserInfo": {"active": True},
            "corpUserCredentials": {"salt": "s3cret-salt", "hashedPassword": "s3cret-hash"},
        },
    )
    assert list(catalog_of(server).items()) == [User(name="ann")]


def test_what_a_server_comes_with_is_no_item(gms: Gms, server: Server) -> None:
    gms.hold("urn:li:corpuser:datahub", {"corpUserInfo": {"active": True}})
    gms.hold("urn:li:ownershipType:__system__none", {"ownershipTypeInfo": {
        "name": "None", "created": {"time": 0, "actor": "urn:li:corpuser:unknown"},
        "lastModified": {"time": 0, "actor": "urn:li:corpuser:unknown"}}})  # fmt: skip
    assert list(catalog_of(server).items()) == []


def test_what_only_datahub_knows_comes_back_from_another_server(gms: Gms, server: Server) -> None:
    body = {"title": "Sales", "description": "", "charts": [], "lastModified": {
        "created": {"time": 1, "actor": "urn:li:corpuser:ann"},
        "lastModified": {"time": 2, "actor": "urn:li:corpuser:ann"}}}  # fmt: skip
    gms.hold("urn:li:dashboard:(looker,sales)", {"dashboardInfo": body})
    [item] = catalog_of(server).items()
    gms.emptied()
    catalog_of(server).put_item(item)
    assert gms.aspects("urn:li:dashboard:(looker,sales)")["dashboardInfo"]["title"] == "Sales"
    assert list(catalog_of(server).items()) == [item]


def test_terms_that_people_changed_are_read_as_they_are_now(gms: Gms, server: Server) -> None:
    term = GlossaryTerm(name="Order", definition="What is bought", owners=("ann",))
    catalog_of(server).put_item(term)
    name = "urn:li:glossaryTerm:Order"
    gms.hold(
        name,
        {"glossaryTermInfo": {**gms.aspects(name)["glossaryTermInfo"], "definition": "By hand"}},
    )
    assert catalog_of(server).get_item(GlossaryTerm, "Order") == GlossaryTerm(
        name="Order", definition="By hand", owners=("ann",)
    )


@pytest.mark.parametrize("name", [" blank ", "x" * 600, "a\nb", "(,)", "名前"])
def test_names_that_no_server_takes_are_kept_all_the_same(server: Server, name: str) -> None:
    things = [
        User(name=name),
        GlossaryTerm(name=name),
        CatalogEntity(urn=name, raw={"atlas": {"a": 1}}),
    ]
    assert list(catalog_of(server).put_items(things)) == []
    found = list(catalog_of(server).items())
    assert len(found) == len(things)
    assert all(item in found for item in things)
    catalog_of(server).erase_item(things[0])
    assert catalog_of(server).get_item(User, name) is None


def test_a_server_is_not_asked_for_types_that_it_does_not_know(gms: Gms, server: Server) -> None:
    list(catalog_of(server).items())
    [scroll] = [request for request in server.requests if request.path.endswith("/scroll")]
    known = msgspec.json.decode(gms(_get(f"{TYPES}?start=0&count=100")).body)["elements"]
    assert set(scroll.json["entities"]) <= {each["name"] for each in known}
    assert "dataset" not in scroll.json["entities"]
    assert not any(type.startswith("dataHub") for type in scroll.json["entities"])


def test_what_is_sent_is_what_the_package_itself_would_send(server: Server) -> None:
    from datahub.emitter.rest_emitter import DataHubRestEmitter

    catalog = catalog_of(server)
    catalog.put(plain(governance=Governance(tags=("a",))))
    catalog.put(plain(governance=Governance(tags=("a", "größer")), deleted=True))
    ours = [request.json for request in server.requests if request.path == "/aspects"]
    server.forget()
    emitter = DataHubRestEmitter(server.address, token=TOKEN, openapi_ingestion=False)
    for body in ours:
        emitter.emit_mcps([proposal_of(each) for each in body["proposals"]])
    theirs = [request.json for request in server.requests if request.path == "/aspects"]
    assert [unstamped(body) for body in theirs] == [unstamped(body) for body in ours]
    assert {each["changeType"] for body in ours for each in body["proposals"]} == {
        "UPSERT",
        "PATCH",
    }


# From a file to a server and back.


def test_statements_that_a_server_has_no_place_for_come_back_from_it(
    server: Server, tmp_path: Path
) -> None:
    def change(aspect: str, body: Any, **beside: Any) -> dict[str, Any]:
        return {"entityType": "dataset", "entityUrn": NAME, "changeType": "UPSERT",
                "aspectName": aspect, "aspect": {"json": body}, **beside}  # fmt: skip

    seen = {"lastObserved": 7, "runId": "nightly"}
    tag = {"op": "add", "path": "/tags/urn:li:tag:x", "value": {"tag": "urn:li:tag:x"}}
    file = tmp_path / "estate.json"
    file.write_text(
        json.dumps([
            change("datasetProperties", {"name": "orders", "customProperties": {}, "tags": []}),
            change("status", {"removed": False}, systemMetadata=seen),
            change("globalTags", {"tags": [{"tag": "urn:li:tag:a"}]}, systemMetadata=seen),
            change("globalTags", {"patch": [tag]}, changeType="PATCH"),
            change("browsePathsV2", {"path": [{"id": "Default"}]}),
            change("datasetProfile", {"timestampMillis": 1, "rowCount": 5}),
            change("subTypes", {"typeNames": ["Table"]}),
        ])
    )  # fmt: skip
    [entry] = DatahubFile.at(str(file)).export()
    catalog = catalog_of(server)
    assert catalog.as_stored(entry) == entry
    catalog.put(entry)
    assert catalog_of(server).get(entry.urn) == entry
    assert not catalog_of(server).put(entry).changed


def test_a_deletion_in_a_file_hides_the_dataset_on_a_server(
    gms: Gms, server: Server, tmp_path: Path
) -> None:
    file = tmp_path / "estate.json"
    file.write_text(
        json.dumps([
            {"entityType": "dataset", "entityUrn": NAME, "changeType": "UPSERT",
             "aspectName": "datasetProperties", "aspect": {"json": {"name": "orders"}}},
            {"entityType": "dataset", "entityUrn": NAME, "changeType": "DELETE", "aspectName": ""},
        ])
    )  # fmt: skip
    [entry] = DatahubFile.at(str(file)).export()
    assert entry.deleted
    catalog_of(server).put(entry)
    assert gms.aspects(NAME)["status"] == {"removed": True}
    assert catalog_of(server).get(entry.urn) == entry


def test_a_packed_statement_gives_way_to_what_people_did_since(gms: Gms, server: Server) -> None:
    stated = [{"body": {"typeNames": ["Table"]}, "beside": {"systemMetadata": {"runId": "x"}}}]
    entry = plain(raw={"datahub": {"subTypes": stated}})
    catalog_of(server).put(entry)
    gms.hold(NAME, {"subTypes": {"typeNames": ["View"]}})
    found = catalog_of(server).get(entry.urn)
    assert found is not None
    assert found.raw == {"datahub": {"subTypes": [{"body": {"typeNames": ["View"]}}]}}


def test_few_calls_do_for_many_entries(gms: Gms, server: Server) -> None:
    estate = [plain(f"t{number}", governance=Governance(tags=("a",))) for number in range(250)]
    catalog = catalog_of(server)
    for written in catalog.write_many(estate, {}):
        assert isinstance(written, WrittenEntry)
    assert len(server.requests) <= 2 + 3
    assert server.connections <= 4
    server.forget()
    assert len(catalog_of(server).get_many([entry.urn for entry in estate])) == 250
    assert len(server.requests) == 2
    assert len(gms.entities) == 250


def test_everything_in_a_rich_estate_is_taken_by_the_model(gms: Gms, server: Server) -> None:
    done = put(catalog_of(server), *rich())
    assert all(isinstance(each, WrittenEntry) for each in done.values())
    assert len(gms.entities) == len(rich())


def moved_there_and_back(server: Server, file: Path) -> None:
    source = DatahubFile.at(str(file))
    estate, things = list(source.export()), list(source.items())
    refused = [
        each for each in put(catalog_of(server), *estate).values() if isinstance(each, FailedEntry)
    ]
    assert [*refused, *catalog_of(server).put_items(things)] == []
    there = catalog_of(server)
    assert list(there.export()) == sorted(estate, key=lambda entry: entry.urn)
    found = list(there.items())
    assert len(found) == len(things)
    assert all(there.item_as_stored(item) in found for item in things)
    server.forget()
    over = there.get_many([entry.urn for entry in estate])
    assert not any(written.changed for written in there.put_many(estate, current=over))  # type: ignore[union-attr]
    assert list(there.put_items(things)) == []
    assert not any(request.path == "/aspects" for request in server.requests)


def test_an_estate_in_a_file_of_datahub_comes_back_from_a_server(
    server: Server, tmp_path: Path
) -> None:
    file = tmp_path / "estate.json"
    file.write_text(json.dumps(samples.estate()), encoding="utf-8")
    moved_there_and_back(server, file)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bootstrap", "showcase-ecommerce"])
def test_the_public_samples_of_datahub_come_back_from_a_server(
    datahub: DataHub, server: Server, name: str
) -> None:
    for sample in datahub.sample(name):
        moved_there_and_back(server, sample)


def test_fields_that_the_model_does_not_know_are_sent_only_where_they_were_read(
    gms: Gms, server: Server
) -> None:
    from_elsewhere = plain(
        raw={"datahub": {"subTypes": [{"body": {"typeNames": ["Table"], "grade": 1}}]}}
    )
    catalog_of(server).put(from_elsewhere)
    assert gms.aspects(NAME)["subTypes"] == {"typeNames": ["Table"]}
    assert catalog_of(server).get(from_elsewhere.urn) == from_elsewhere
    # A server of a later version tells of the field itself.
    gms.validating = False
    gms.hold(NAME, {"subTypes": {"typeNames": ["Table"], "grade": 2}})
    catalog = catalog_of(server)
    entry = catalog.get(from_elsewhere.urn)
    assert entry is not None
    gms.emptied()
    catalog.put(entry)
    assert gms.aspects(NAME)["subTypes"] == {"typeNames": ["Table"], "grade": 2}


def test_structured_properties_are_defined_before_they_are_assigned(
    gms: Gms, server: Server
) -> None:
    gms.checks_references = True
    definition = "urn:li:structuredProperty:io.tier"
    assigned = {"properties": [{"propertyUrn": definition, "values": [{"string": "1"}]}]}
    kind = {"qualifiedName": "io.tier", "valueType": "urn:li:dataType:datahub.string",
            "entityTypes": ["urn:li:entityType:datahub.dashboard"]}  # fmt: skip
    things = [
        CatalogEntity(
            urn="urn:li:dashboard:(looker,sales)",
            raw={"datahub": {"structuredProperties": [{"body": assigned}]}},
        ),
        CatalogEntity(urn=definition, raw={"datahub": {"propertyDefinition": [{"body": kind}]}}),
    ]
    assert list(catalog_of(server).put_items(things)) == []
    entry = plain(properties={definition: "2"})
    catalog_of(server).put(entry)
    assert gms.aspects(NAME)["structuredProperties"]["properties"][0]["values"] == [{"string": "2"}]
    assert catalog_of(server).get(entry.urn) == entry
    unknown = plain("unknown", properties={f"{definition}.other": "2"})
    [refused] = put(catalog_of(server), unknown).values()
    assert isinstance(refused, FailedEntry)
    assert "structuredProperties" in str(refused.problem)
