"""What a PUT and a PATCH make of an entity in the stub, as a server of release 1.13.4 did."""

from collections.abc import Iterator

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


def test_types_are_told_in_small_letters(people: People) -> None:
    made = people.table(columns=[{"name": "x", "dataType": "INT", "dataTypeDisplay": "INT64 & X"}])
    assert made["columns"][0]["dataTypeDisplay"] == "int64 & x"


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
