"""The stub of OpenMetadata has the habits that a server of release 1.13.4 was seen to have."""

import itertools
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from .servers.http import Server
from .servers.openmetadata import BOT, HUMAN, Openmetadata
from .servers.spec import specification

SCHEMA = "svc.db.raw"
FIELDS = "tags,owners,domains,extension,columns"


class People:
    """Whoever calls: a bot, as Lumos does, and somebody in the web interface."""

    def __init__(self, server: Server, stub: Openmetadata) -> None:
        self.stub = stub
        self.bot, self.human, self.stranger = (
            httpx.Client(
                base_url=f"{server.address}/api/v1/",
                headers={"Authorization": f"Bearer {token}"} if token else {},
                # Plain HTTP: no time is spent on certificates.
                verify=False,
            )
            for token in (BOT, HUMAN, None)
        )
        self.put("services/databaseServices", {"name": "svc", "serviceType": "CustomDatabase"})
        self.put("databases", {"name": "db", "service": "svc"})
        self.put("databaseSchemas", {"name": "raw", "database": "svc.db"})
        self.put("users", {"name": "ann", "email": "ann@x.org"})
        self.put("classifications", {"name": "Lumos", "description": "-"})
        for tag in ("a", "b.c"):
            self.put("tags", {"classification": "Lumos", "name": tag, "description": "-"})

    def put(self, route: str, body: Any, *, by: str = "bot", status: int | None = None) -> Any:
        answer = getattr(self, by).put(route, json=body)
        expected = (200, 201) if status is None else (status,)
        assert answer.status_code in expected, answer.text
        return answer.json() if answer.content else None

    def table(
        self, name: str = "t", *, by: str = "bot", status: int | None = None, **said: Any
    ) -> Any:
        body = {"name": name, "databaseSchema": SCHEMA, "columns": columns("x", "y"), **said}
        return self.put("tables", body, by=by, status=status)

    def get(self, route: str, fqn: str, status: int = 200, **query: Any) -> Any:
        answer = self.bot.get(f"{route}/name/{quote(fqn, safe='')}", params=query)
        assert answer.status_code == status, answer.text
        return answer.json()

    def whole(self, name: str = "t") -> Any:
        return self.get("tables", f"{SCHEMA}.{name}", fields=FIELDS, include="all")

    def patch(self, path: str, *operations: Any, by: str = "bot", status: int = 200) -> Any:
        answer = getattr(self, by).patch(
            path,
            content=httpx.Request("PATCH", "http://x", json=list(operations)).content,
            headers={"Content-Type": "application/json-patch+json"},
        )
        assert answer.status_code == status, answer.text
        return answer.json()

    def change(self, name: str, *operations: Any, **how: Any) -> Any:
        return self.patch(f"tables/{self.whole(name)['id']}", *operations, **how)

    def declare(self, *names: str) -> None:
        table, string = (
            self.bot.get(f"metadata/types/name/{name}").json()["id"] for name in ("table", "string")
        )
        for name in names:
            said = {
                "name": name,
                "description": "-",
                "propertyType": {"id": string, "type": "type"},
            }
            self.put(f"metadata/types/{table}", said)

    def edge(self, source: Any, target: Any, *mapped: tuple[str, str]) -> dict[str, Any]:
        details = [
            {
                "fromColumns": [f"{source['fullyQualifiedName']}.{one}"],
                "toColumn": f"{target['fullyQualifiedName']}.{other}",
            }
            for one, other in mapped
        ]
        return {
            "edge": {
                "fromEntity": {"id": source["id"], "type": "table"},
                "toEntity": {"id": target["id"], "type": "table"},
                "lineageDetails": {"columnsLineage": details},
            }
        }

    def upstream(self, table: Any) -> list[tuple[str, list[str]]]:
        answer = self.bot.get(f"lineage/table/{table['id']}", params={"downstreamDepth": 0}).json()
        return [
            (edge["fromEntity"], [each["toColumn"] for each in edge["lineageDetails"]["columnsLineage"]])
            for edge in answer["upstreamEdges"]
        ]  # fmt: skip


@pytest.fixture
def stub() -> Openmetadata:
    return Openmetadata(specification())


@pytest.fixture
def people(stub: Openmetadata) -> Iterator[People]:
    with Server(stub) as server:
        people = People(server, stub)
        yield people
        for client in (people.bot, people.human, people.stranger):
            client.close()


def columns(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "dataType": "INT"} for name in names]


def label(fqn: str, source: str = "Classification") -> dict[str, str]:
    return {"tagFQN": fqn, "source": source, "labelType": "Manual", "state": "Confirmed"}


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


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


def test_the_same_again_is_no_new_version(people: People) -> None:
    first = people.table(description="words")
    assert people.table(description="words")["version"] == first["version"]
    assert people.table(tableType="View")["version"] > first["version"]


def test_a_put_by_a_bot_keeps_words_even_its_own(people: People) -> None:
    people.table(description="first", columns=[{**columns("x")[0], "description": "first"}])
    people.table(description="second", columns=[{**columns("x")[0], "description": "second"}])
    found = people.whole()
    assert (found["description"], found["columns"][0]["description"]) == ("first", "first")
    people.table("empty")
    people.table("empty", description="filled")
    assert people.whole("empty")["description"] == "filled"


def test_a_put_by_a_human_replaces_words(people: People) -> None:
    people.table(description="first")
    assert people.table(description="second", by="human")["description"] == "second"
    assert "description" not in people.table(by="human")


def test_a_put_by_a_bot_removes_no_labels_owners_or_domains(people: People) -> None:
    owner = people.get("users", "ann")["id"]
    people.put("domains", {"name": "Sales", "domainType": "Aggregate", "description": "-"})
    said = {"tags": [label("Lumos.a")], "owners": [{"id": owner, "type": "user"}], "domains": ["Sales"]}  # fmt: skip
    people.table(**said)
    people.table(tags=[], owners=[], domains=[])
    people.table()
    found = people.whole()
    assert [each["tagFQN"] for each in found["tags"]] == ["Lumos.a"]
    assert [each["name"] for each in found["owners"]] == ["ann"]
    assert [each["name"] for each in found["domains"]] == ["Sales"]


def test_a_put_by_a_bot_sets_or_wipes_the_display_name_which_it_may_not_patch(
    people: People,
) -> None:
    people.table(displayName="First")
    assert people.table(displayName="Second")["displayName"] == "Second"
    told = people.change("t", add("/displayName", "Third"), status=403)
    assert "EditDisplayName denied" in told["message"]
    assert (
        people.change("t", add("/displayName", "By hand"), by="human")["displayName"] == "By hand"
    )
    assert "displayName" not in people.table()


def test_a_put_without_a_definition_keeps_it_but_not_the_type_and_place(people: People) -> None:
    people.table(schemaDefinition="select 1", tableType="View", locationPath="s3://x")
    found = people.table()
    assert found["schemaDefinition"] == "select 1"
    assert not found.keys() & {"tableType", "locationPath"}
    assert people.table(schemaDefinition="")["schemaDefinition"] == ""


def test_a_patch_that_does_not_say_the_definition_loses_it_and_so_does_a_restore(
    people: People,
) -> None:
    people.table(schemaDefinition="select 1")
    people.change("t", add("/description", "words"))
    assert "schemaDefinition" not in people.whole()
    people.change("t", add("/description", "more"), add("/schemaDefinition", "select 1"))
    assert people.whole()["schemaDefinition"] == "select 1"
    people.change("t", {"op": "remove", "path": "/schemaDefinition"}, status=500)
    people.bot.delete(f"tables/{people.whole()['id']}")
    assert people.whole()["schemaDefinition"] == "select 1"
    people.put("tables/restore", {"id": people.whole()["id"]})
    assert "schemaDefinition" not in people.whole()


def test_bulk_forgets_labels_on_columns_of_new_containers(people: People) -> None:
    people.put("services/storageServices", {"name": "s", "serviceType": "S3"})
    column = {"name": "x", "dataType": "INT", "tags": [label("Lumos.a")]}
    body = {"name": "b", "service": "s", "dataModel": {"isPartitioned": False, "columns": [column]}}

    def labels() -> list[str]:
        found = people.get("containers", "s.b", fields="dataModel,tags")
        return [each["tagFQN"] for each in found["dataModel"]["columns"][0]["tags"]]

    people.put("containers/bulk", [body])
    assert labels() == []
    people.put("containers/bulk", [body])
    assert labels() == ["Lumos.a"]
    people.put("tables/bulk", [{"name": "t", "databaseSchema": SCHEMA, "columns": [column]}])
    assert people.whole()["columns"][0]["tags"][0]["tagFQN"] == "Lumos.a"


def test_types_are_told_in_small_letters(people: People) -> None:
    made = people.table(columns=[{"name": "x", "dataType": "INT", "dataTypeDisplay": "INT64 & X"}])
    assert made["columns"][0]["dataTypeDisplay"] == "int64 & x"


def test_dropped_columns_vanish_with_a_new_version(people: People) -> None:
    assert people.table()["version"] == 0.1
    changed = people.table(columns=columns("y"))
    assert [each["name"] for each in changed["columns"]] == ["y"]
    assert changed["version"] == 1.1


def test_columns_are_completed_and_checked(people: People) -> None:
    made = people.table(
        columns=[{"name": "s", "dataType": "STRUCT", "children": columns("a", "A")}]
    )
    assert made["columns"][0]["children"][1] == {
        "name": "A", "dataType": "INT", "dataTypeDisplay": "int", "tags": [], "children": [],
        "fullyQualifiedName": f"{SCHEMA}.t.s.A",
    }  # fmt: skip
    for column in (
        {"name": "x", "dataType": "VARCHAR"},
        {"name": "x", "dataType": "ARRAY"},
        {"name": '"x"', "dataType": "INT"},
    ):
        people.table("bad", columns=[column], status=400)
    told = people.table("bad", columns=columns("x", "x"), status=400)
    assert told["message"] == "Column name x is repeated"
    assert people.table("wide", columns=columns("x" * 300))["columns"][0]["name"] == "x" * 300


def test_descriptions_are_taken_for_html(people: People) -> None:
    for said, kept in {
        "a & b": "a &amp; b",
        "a < b > c": "a &lt; b &gt; c",
        "x<y>z": "xz",
        "&lt;b&gt;": "&lt;b&gt;",
        "<b>bold</b>": "<b>bold</b>",
        "<b>": "<b></b>",
        "<script>x</script>": "",
        "'`=@+\"": "&#39;&#96;&#61;&#64;&#43;&#34;",
        "\U0001f986 \U0010ffff": "&#x1f986; &#x10ffff;",
        "a\0\x07b\ufffe\n": "ab\n",
        "{{x}}": "{<!-- -->{x}}",
        " größe ": " größe ",
    }.items():
        people.table()
        assert people.change("t", add("/description", said))["description"] == kept, said
    assert people.table("new", description="<i>&</i>")["description"] == "<i>&amp;</i>"
    made = people.table("plain", columns=[{**columns("x")[0], "description": "<y> & z"}])
    assert made["columns"][0]["description"] == "<y> & z"


def test_nul_breaks_the_database(people: People) -> None:
    people.table(displayName="a\0b", status=500)
    people.declare("lumosUrn")
    people.table(extension={"lumosUrn": '"a\\u0000b"'})
    assert people.whole()["extension"] == {"lumosUrn": '"a\\u0000b"'}


def test_custom_properties_must_be_declared(people: People) -> None:
    told = people.table(extension={"lumosUrn": "x"}, status=400)
    assert told["message"] == "Unknown custom field lumosUrn"
    people.declare("lumosUrn", "lumosUrn")
    people.table(extension={"lumosUrn": "x"})
    people.table("number", extension={"lumosUrn": 7}, status=400)
    kind = people.bot.get("metadata/types/name/table", params={"fields": "customProperties"}).json()
    assert [each["name"] for each in kind["customProperties"]] == ["lumosUrn"]
    for name in ("user", "team", "databaseService"):
        assert people.bot.get(f"metadata/types/name/{name}").status_code == 404


def test_a_put_by_a_bot_sets_custom_properties_only_at_first(people: People) -> None:
    people.declare("lumosUrn", "lumosCarried")
    people.table(extension={"lumosUrn": "u", "lumosCarried": "c"})
    people.table(extension={"lumosUrn": "other"})
    people.table(extension={})
    assert people.whole()["extension"] == {"lumosUrn": "u", "lumosCarried": "c"}
    people.table("bare")
    people.put("tables/bulk", [{"name": "bare", "databaseSchema": SCHEMA, "columns": [], "extension": {"lumosUrn": "u"}}])  # fmt: skip
    assert "extension" not in people.whole("bare")
    people.change("bare", add("/extension/lumosUrn", "u"), status=500)
    people.change("bare", add("/extension", {"lumosUrn": "u"}))
    people.change("bare", add("/extension/lumosCarried", "c"))
    people.change("bare", {"op": "remove", "path": "/extension/lumosUrn"})
    assert people.whole("bare")["extension"] == {"lumosCarried": "c"}


def test_a_failed_test_of_a_patch_is_an_internal_error_and_changes_nothing(people: People) -> None:
    people.table()
    told = people.change(
        "t",
        add("/description", "new"),
        {"op": "test", "path": "/columns/0/name", "value": "y"},
        status=500,
    )
    assert "The JSON Patch operation 'test' failed" in told["message"]
    told = people.change("t", {"op": "remove", "path": "/description"}, status=500)
    assert "Non-existing name/value pair in the object for key description" in told["message"]
    assert "description" not in people.whole()
    people.change(
        "t",
        {"op": "test", "path": "/columns/1/name", "value": "y"},
        add("/columns/1/description", "words"),
    )
    assert people.whole()["columns"][1]["description"] == "words"


def test_a_patch_needs_its_media_type(people: People) -> None:
    made = people.table()
    assert people.bot.patch(f"tables/{made['id']}", json=[]).status_code == 415


def test_patches_of_one_writer_in_a_row_are_one_version(people: People) -> None:
    people.table()
    versions = [people.change("t", add("/description", text))["version"] for text in ("a", "b")]
    assert versions == [0.1, 0.1]
    assert people.change("t", add("/description", "c"), by="human")["version"] == 0.2


def test_labels_come_back_once_each_sorted_and_completed(people: People) -> None:
    people.table()
    labels = [label("Lumos.a"), label('Lumos."b.c"'), label("Lumos.a")]
    people.change("t", add("/tags", labels))
    assert people.whole()["tags"] == [
        {**label('Lumos."b.c"'), "name": "b.c", "appliedBy": "ingestion-bot"},
        {**label("Lumos.a"), "name": "a", "appliedBy": "ingestion-bot"},
    ]
    told = people.change("t", add("/tags/-", label("Lumos.zzz")), status=404)
    assert told["message"] == "tag instance for Lumos.zzz not found"
    two = [label("PII.Sensitive"), label("PII.NonSensitive")]
    assert "mutually exclusive" in people.change("t", add("/tags", two), status=400)["message"]


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


def test_an_edge_is_written_although_the_search_engine_is_away(people: People) -> None:
    source, target = people.table("source"), people.table("target")
    people.stub.is_searchable = False
    people.put("lineage", people.edge(source, target), status=500)
    assert people.upstream(target) == [(source["id"], [])]


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
