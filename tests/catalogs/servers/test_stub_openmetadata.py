"""The stub of OpenMetadata has the habits that a server of release 1.13.4 was seen to have."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from .http import Server
from .openmetadata import BOT, HUMAN, Openmetadata
from .openmetadata_habits import SCHEMA, People, add, columns, label
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


def test_nobody_gets_in_without_a_token(people: People) -> None:
    answer = people.stranger.get("tables")
    assert (answer.status_code, answer.json()) == (
        401,
        {"code": 401, "message": "Not Authorized! Token not present"},
    )
    people.stranger.headers["Authorization"] = "Bearer x.y.z"
    assert people.stranger.get("tables").json()["message"] == "Not Authorized! Invalid token."


def test_it_says_its_version_who_one_is_and_what_one_may_do(people: People) -> None:
    assert people.bot.get("system/version").json()["version"] == "1.13.4"
    assert people.bot.get("users/loggedInUser").json()["name"] == "ingestion-bot"
    told = people.bot.get("permissions/table").json()["permissions"]
    assert {"operation": "Create", "access": "allow"} in told


def test_names_with_dots_and_quotes_are_quoted(people: People) -> None:
    made = people.table('a.b"c', columns=columns("geo.pt"))
    assert made["fullyQualifiedName"] == f'{SCHEMA}."a.b""c"'
    assert made["columns"][0]["fullyQualifiedName"] == f'{SCHEMA}."a.b""c"."geo.pt"'
    assert people.get("tables", made["fullyQualifiedName"])["id"] == made["id"]
    assert people.get("tags", 'Lumos."b.c"')["name"] == "b.c"


@pytest.mark.parametrize("name", ["a::b", "a\nb", "", "x" * 257])
def test_names_that_cannot_be_are_refused(people: People, name: str) -> None:
    assert "query param name" in people.table(name, status=400)["message"]


@pytest.mark.parametrize("name", ["a>b", 'a"b', "a\tb", "a::b"])
def test_release_2_refuses_more_names(people: People, stub: Openmetadata, name: str) -> None:
    if name != "a::b":
        assert people.table(name)["name"] == name
    stub.version = "2.0.0"
    assert "query param name must match" in people.table(name, status=400)["message"]


def test_names_differ_by_case_but_those_of_users_do_not(people: People) -> None:
    assert people.table("T")["id"] != people.table("t")["id"]
    made = people.put("users", {"name": "Ann.Smith", "email": "Smith@X.org"})
    assert (made["name"], made["email"], made["fullyQualifiedName"]) == (
        "ann.smith",
        "smith@x.org",
        '"ann.smith"',
    )
    assert people.get("users", "ANN.smith")["id"] == made["id"]


def test_an_email_belongs_to_one_user_and_is_never_changed(people: People) -> None:
    made = people.put("users", {"name": "a", "email": "same@x.org"})
    people.put("users", {"name": "b", "email": "same@x.org"}, status=409)
    people.put("users", {"name": "c", "email": "nothing"}, status=400)
    changed = people.patch(
        f"users/{made['id']}", {"op": "replace", "path": "/email", "value": "other@x.org"}
    )
    assert changed["email"] == "same@x.org"


def test_bulk_answers_well_although_some_were_refused(people: People) -> None:
    good = {"name": "good", "databaseSchema": SCHEMA, "columns": []}
    told = people.put("tables/bulk", [good, {**good, "databaseSchema": "nope"}])
    assert (told["status"], told["numberOfRowsPassed"], told["numberOfRowsFailed"]) == (
        "partialSuccess",
        1,
        1,
    )
    assert told["failedRequest"][0]["message"] == "databaseSchema instance for nope not found"
    assert told["failedRequest"][0]["request"]["databaseSchema"] == "nope"
    people.put("users/bulk", [], status=405)


def test_lists_are_paged_by_name_to_the_end(people: People) -> None:
    for number in range(23):
        people.table(f"t{number:02}")
    people.bot.delete(f"tables/{people.whole('t07')['id']}")
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 10, "include": "all", "fields": "columns"}
    for calls in itertools.count(1):  # noqa: B007
        page = people.bot.get("tables", params=query).json()
        seen += [each["name"] for each in page["data"]]
        assert page["paging"]["total"] == 23
        if "after" not in page["paging"]:
            break
        query["after"] = page["paging"]["after"]
    assert (seen, calls) == ([f"t{number:02}" for number in range(23)], 3)
    for narrowed, total in (({}, 22), ({"include": "deleted"}, 1), ({"databaseSchema": "x"}, 0)):
        page = people.bot.get("tables", params={"limit": 0, **narrowed}).json()
        assert page["paging"]["total"] == total
    assert people.bot.get("tables", params={"limit": 1_000_001}).status_code == 400
    assert people.bot.get("tables", params={"after": "zzz"}).status_code == 500
    answer = people.bot.get("tables", params={"fields": "nope"})
    assert answer.json()["message"] == "Invalid field name nope"


def test_only_the_first_ten_thousand_are_found_by_search(people: People) -> None:
    answer = people.bot.get("search/query", params={"from": 9_990, "size": 11})
    assert answer.status_code == 500


def test_what_is_only_told_when_asked_for(people: People) -> None:
    people.table(tags=[label("Lumos.a")], columns=[{**columns("x")[0], "tags": [label("Lumos.a")]}])
    found = people.get("tables", f"{SCHEMA}.t")
    assert not found.keys() & {"tags", "owners", "domains", "extension"}
    assert found["columns"][0]["tags"] == []
    assert people.whole()["columns"][0]["tags"][0]["tagFQN"] == "Lumos.a"


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("tables", {"name": "t", "databaseSchema": SCHEMA, "columns": [], "nope": 1}),
        ("tables", {"name": "t", "databaseSchema": SCHEMA, "columns": [], "owner": {}}),
        ("tables", {"name": "t", "databaseSchema": SCHEMA, "columns": [{"name": "x", "dataType": "?"}]}),
        ("containers", {"name": "c", "service": "s", "fileFormats": ["nope"]}),
        ("topics", {"name": "t", "service": "m"}),
        ("tags", {"classification": "Lumos", "name": "t"}),
        ("glossaryTerms", {"glossary": "G", "name": "t"}),
        ("users", {"name": "u"}),
        ("users", {"name": "u", "email": "u@x.org", "extension": {}}),
        ("lineage", {"edge": {"fromEntity": {"type": "table"}, "toEntity": {"type": "table"}}}),
    ],
)  # fmt: skip
def test_bodies_are_held_against_the_published_schemas(
    people: People, stub: Openmetadata, route: str, body: Any
) -> None:
    assert "Invalid request format" in people.put(route, body, status=400)["message"]
    assert len(stub.violations) == 1


def test_patched_fields_are_held_against_the_published_schemas(
    people: People, stub: Openmetadata
) -> None:
    people.table()
    people.change("t", add("/tags", [{"tagFQN": "Lumos.a"}]), status=400)
    people.change("t", add("/nope", 1), status=400)
    assert len(stub.violations) == 2


def test_unknown_routes_and_bad_bodies(people: People) -> None:
    assert people.bot.get("nonsense").json() == {"code": 404, "message": "HTTP 404 Not Found"}
    assert people.bot.get("tables/xyz").status_code == 404
    assert people.bot.post("tables/name/x").status_code == 405
    assert people.bot.put("tables", content=b"{").status_code == 400
    assert people.bot.post("databases", json={"name": "db", "service": "svc"}).status_code == 409


def test_an_empty_catalog_has_only_what_is_built_in(stub: Openmetadata) -> None:
    assert stub.entities("table") == stub.entities("glossaryTerm") == []
    assert {each["name"] for each in stub.entities("user")} == {"admin", "ingestion-bot"}
    assert {each["provider"] for each in stub.entities("classification")} == {"system"}
