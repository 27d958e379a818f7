"""How entities hang together in the stub of OpenMetadata, as in a server of release 1.13.4."""

from collections.abc import Iterator

import pytest

from .http import Server
from .openmetadata import BOT, HUMAN, Openmetadata
from .openmetadata_habits import SCHEMA, People, add, columns
from .spec import specification


@pytest.fixture
def stub() -> Openmetadata:
    return Openmetadata(specification())


@pytest.fixture
def people(stub: Openmetadata) -> Iterator[People]:
    with Server(stub) as server:
        people = People(server.address, bot=BOT, human=HUMAN)
        yield people
        people.close()


def test_owners_are_users_or_one_team_and_there_is_one_domain(people: People) -> None:
    people.table()
    ann = {"id": people.get("users", "ann")["id"], "type": "user"}
    bob = {"id": people.put("users", {"name": "abe", "email": "abe@x.org"})["id"], "type": "user"}
    team = {"id": people.put("teams", {"name": "T", "teamType": "Group"})["id"], "type": "team"}
    told = people.change("t", add("/owners", [ann, team]), status=400)
    assert told["errorType"] == "RULE_VIOLATION"
    owners = people.change("t", add("/owners", [ann, bob]))["owners"]
    assert [each["name"] for each in owners] == ["abe", "ann"]
    unknown = {"id": "00000000-0000-0000-0000-000000000001", "type": "user"}
    people.change("t", add("/owners", [unknown]), status=404)
    domains = [
        {"id": people.put("domains", {"name": name, "domainType": "Aggregate", "description": "-"})["id"], "type": "domain"}
        for name in ("One", "Two")
    ]  # fmt: skip
    people.change("t", add("/domains", domains), status=400)
    assert people.change("t", add("/domains", domains[:1]))["domains"][0]["name"] == "One"


def test_terms_have_names_of_their_own_in_a_glossary_whatever_their_case(people: People) -> None:
    people.put("glossaries", {"name": "G", "description": "-"})
    parent = people.put("glossaryTerms", {"glossary": "G", "name": "Order", "description": "-"})
    child = people.put(
        "glossaryTerms",
        {"glossary": "G", "parent": "G.Order", "name": "Child", "description": "-"},
    )
    assert child["fullyQualifiedName"] == "G.Order.Child"
    for name in ("order", "CHILD"):
        told = people.put("glossaryTerms", {"glossary": "G", "name": name, "description": "-"}, status=400)  # fmt: skip
        assert told["message"] == f"A term with the name '{name}' already exists in 'G' glossary."
    people.patch(f"glossaryTerms/{parent['id']}", add("/relatedTerms", [{"id": child["id"], "type": "glossaryTerm"}]))  # fmt: skip
    found = people.get("glossaryTerms", "G.Order.Child", fields="relatedTerms")
    assert [each["term"]["name"] for each in found["relatedTerms"]] == ["Order"]


def test_a_team_has_the_users_that_were_put_last(people: People) -> None:
    ann = people.get("users", "ann")["id"]
    people.put("teams", {"name": "T", "teamType": "Group", "users": [ann]})
    assert [each["name"] for each in people.get("teams", "T", fields="users")["users"]] == ["ann"]
    people.put("teams", {"name": "T", "teamType": "Group"})
    assert not people.get("teams", "T", fields="users").get("users")


def test_a_user_that_is_put_without_teams_leaves_them(people: People) -> None:
    ann = people.get("users", "ann")
    team = people.put("teams", {"name": "T", "teamType": "Group", "users": [ann["id"]]})
    assert [each["name"] for each in people.get("users", "ann", fields="teams")["teams"]] == ["T"]
    body = {"name": "ann", "email": "ann@x.org"}
    people.put("users", {**body, "teams": [team["id"]]})
    assert [each["name"] for each in people.get("teams", "T", fields="users")["users"]] == ["ann"]
    people.put("users", body)
    assert not people.get("teams", "T", fields="users").get("users")
    told = people.get("users", "ann", fields="teams")["teams"]
    assert [each["name"] for each in told] == ["Organization"]


def test_a_container_is_what_was_put_last(people: People) -> None:
    people.put("services/storageServices", {"name": "s", "serviceType": "S3"})
    bucket = people.put("containers", {"name": "b", "service": "s"})
    above = {"service": "s", "parent": {"id": bucket["id"], "type": "container"}}
    model = {"isPartitioned": False, "columns": [{**columns("x")[0], "description": "words"}]}
    said = {"name": "a/b.c", "prefix": "/x", "size": 3, "numberOfObjects": 2, "dataModel": model}
    made = people.put("containers", {**above, **said})
    assert made["fullyQualifiedName"] == 's.b."a/b.c"'
    assert (made["numberOfObjects"], made["serviceType"]) == (2.0, "S3")
    assert "dataTypeDisplay" not in made["dataModel"]["columns"][0]
    changed = {**model, "columns": [{"name": "x", "dataType": "BIGINT"}]}
    kept = people.put("containers", {**above, **said, "dataModel": changed})
    assert kept["dataModel"]["columns"][0]["description"] == "words"
    bare = people.put("containers", {**above, "name": "a/b.c"})
    assert not bare.keys() & {"prefix", "size", "numberOfObjects", "dataModel"}
    people.put("containers", {"name": "x", "service": "s", "parent": {"type": "container"}}, status=400)  # fmt: skip


def test_a_topic_says_that_its_size_is_not_limited(people: People) -> None:
    people.put("services/messagingServices", {"name": "m", "serviceType": "Kafka"})
    made = people.put("topics", {"name": "t", "service": "m", "partitions": 1})
    assert made["retentionSize"] == -1


def test_what_is_not_empty_is_hidden_or_removed_only_as_a_whole(people: People) -> None:
    people.table()
    schema = people.get("databaseSchemas", SCHEMA)
    for query in ({}, {"hardDelete": "true"}):
        answer = people.bot.delete(f"databaseSchemas/{schema['id']}", params=query)
        assert (answer.status_code, answer.json()["message"]) == (
            400,
            "databaseSchema is not empty",
        )
    people.bot.delete(f"databaseSchemas/{schema['id']}", params={"recursive": "true"})
    assert people.whole()["deleted"]
    people.put("databaseSchemas/restore", {"id": schema["id"]})
    assert not people.whole()["deleted"]
    people.put("databaseSchemas/restore", {"id": schema["id"]}, status=500)


@pytest.mark.parametrize("route", ["tables", "tables/bulk"])
def test_what_was_hidden_comes_back_by_a_put_as_what_it_was(people: People, route: str) -> None:
    made = people.table(description="words")
    for _ in range(2):
        assert people.bot.delete(f"tables/{made['id']}").json()["deleted"]
    people.get("tables", f"{SCHEMA}.t", status=404)
    assert people.whole()["deleted"]
    people.change("t", add("/description", "x"), status=404)
    body = {"name": "t", "databaseSchema": SCHEMA, "columns": []}
    people.put(route, body if route == "tables" else [body])
    found = people.get("tables", f"{SCHEMA}.t")
    assert (found["id"], found["description"]) == (made["id"], "words")
    people.bot.delete(f"tables/name/{SCHEMA}.t", params={"hardDelete": "true"})
    people.get("tables", f"{SCHEMA}.t", status=404, include="all")


def test_lineage_is_replaced_whole_and_unknown_columns_go_without_a_word(people: People) -> None:
    source, target = people.table("source"), people.table("target")
    people.put("lineage", people.edge(source, target, ("x", "x"), ("y", "y")))
    people.put("lineage", people.edge(source, target, ("x", "y"), ("zzz", "x"), ("x", "zzz")))
    assert people.upstream(target) == [(source["id"], [f"{SCHEMA}.target.y"])]
    ends = f"table/{source['id']}/table/{target['id']}"
    more = {"fromColumns": [f"{SCHEMA}.source.y"], "toColumn": f"{SCHEMA}.target.x"}
    people.patch(f"lineage/{ends}", add("/columnsLineage/-", more))
    edge = people.bot.get(f"lineage/getLineageEdge/{source['id']}/{target['id']}").json()["edge"]
    assert edge["columnsLineage"][1] == more
    people.table("source", columns=columns("x"))
    assert people.upstream(target) == [(source["id"], [f"{SCHEMA}.target.y"])]
    assert people.bot.delete(f"lineage/{ends}").status_code == 200
    assert people.upstream(target) == []
    answer = people.bot.get(f"lineage/getLineageEdge/{source['id']}/{target['id']}")
    assert answer.status_code == 404


def test_what_is_hidden_has_no_lineage_of_its_own_but_stays_upstream(people: People) -> None:
    source, target = people.table("source"), people.table("target")
    people.put("lineage", people.edge(source, target))
    people.bot.delete(f"tables/{source['id']}")
    assert people.upstream(target) == [(source["id"], [])]
    assert people.bot.get(f"lineage/table/{source['id']}").status_code == 404
    people.put("lineage", people.edge(source, target), status=404)


def test_an_edge_is_written_although_the_search_engine_is_away(
    people: People, stub: Openmetadata
) -> None:
    source, target = people.table("source"), people.table("target")
    stub.is_searchable = False
    people.put("lineage", people.edge(source, target), status=500)
    assert people.upstream(target) == [(source["id"], [])]
