"""People and other programs work in OpenMetadata beside Lumos; the server is a stub of one."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from catalogs.servers.http import Answer, Mishap, Server
from catalogs.servers.openmetadata import Openmetadata as Stub
from lumos.errors import CatalogError
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import (
    Documentation,
    Governance,
    Owner,
    Ownership,
)
from lumos.model.schema import Field, Schema
from lumos.model.types import INT64, STRING

from .people import FQN, ORDERS, OTHER, SOURCE, Estate, described, table


@pytest.fixture
def estate() -> Iterator[Estate]:
    stub = Stub()
    with Server(stub) as server:
        yield Estate(stub, server)


def test_what_people_wrote_between_two_scans_stays(estate: Estate) -> None:
    base = described("A", governance=Governance(tags=("pii",)))
    estate.catalog().write(base)
    estate.describe("By hand")
    estate.tag("gold")
    estate.tag("private", "/columns/0/tags/-")
    estate.edit({"op": "add", "path": "/columns/1/description", "value": "Net, by hand"})
    ours = described(
        "A",
        governance=Governance(tags=("new",)),
        schema=Schema(fields=(Field(name="net", type=STRING), Field(name="id", type=INT64))),
    )
    estate.catalog().write(ours, base=base)
    now = estate.now()
    assert now.documentation == Documentation(description="By hand")
    assert now.governance == Governance(tags=("People.gold", "new"))
    assert now.schema is not None
    assert now.schema.fields == (
        Field(name="net", type=STRING, description="Net, by hand"),
        Field(name="id", type=INT64, tags=("People.private",)),
    )


def test_what_both_changed_is_told_and_people_win(estate: Estate) -> None:
    base = described("A")
    estate.catalog().write(base)
    estate.describe("By hand")
    written = estate.catalog().write(described("C"), base=base)
    assert [conflict.path for conflict in written.conflicts] == ["documentation.description"]
    assert estate.now().documentation == Documentation(description="By hand")


def test_a_bot_changes_and_removes_its_own_words(estate: Estate) -> None:
    # A PUT of a bot would leave them as they are.
    base = described("A", ownership=Ownership(owners=(Owner(name="ann"),)))
    estate.catalog().write(base)
    estate.catalog().write(described("B", ownership=Ownership()), base=base)
    now = estate.now()
    assert now.documentation == Documentation(description="B")
    assert now.ownership == Ownership()
    assert estate.raw()["owners"] == []


def test_a_team_that_people_put_in_the_place_of_users_stays_shown(estate: Estate) -> None:
    def owned(*names: str) -> CatalogEntry:
        return table(ownership=Ownership(owners=tuple(Owner(name=name) for name in names)))

    estate.catalog().write(owned("ann"))
    team = estate.human("PUT", "teams", {"name": "lake", "teamType": "Group"})
    owners = [{"id": team["id"], "type": "team"}]
    estate.edit({"op": "add", "path": "/owners", "value": owners})
    estate.catalog().write(owned("ann", "bob"), base=owned("ann"))
    assert [owner["name"] for owner in estate.raw()["owners"]] == ["lake"]
    expected = (Owner(name="lake", kind="group"), Owner(name="bob"))
    assert estate.now().ownership == Ownership(owners=expected)
    assert not estate.catalog().put(estate.now()).changed


@pytest.mark.parametrize("named", ["description", "tag", "column", "owner"])
def test_an_edit_between_our_reading_and_our_writing_stays(estate: Estate, named: str) -> None:
    base = described("A", governance=Governance(tags=("one", "two")))
    estate.catalog().write(base)
    acts: dict[str, Callable[[], None]] = {
        "description": lambda: estate.describe("By hand"),
        "tag": lambda: estate.tag("gold"),
        "column": lambda: estate.edit(
            {"op": "add", "path": "/columns/0/description", "value": "By hand"}
        ),
        "owner": lambda: estate.edit(
            {"op": "add", "path": "/owners", "value": [
                {"id": estate.human("PUT", "users", {"name": "bob", "email": "bob@example.com"})["id"],
                 "type": "user"}]}
        ),
    }  # fmt: skip
    estate.just_before("PATCH", "/tables/", acts[named])
    words = "B" if named == "description" else "A"
    ours = described(words, governance=Governance(tags=("two",)), schema=Schema(
        fields=(Field(name="id", type=INT64), Field(name="net", type=INT64, description="Ours"))
    ))  # fmt: skip
    estate.catalog().write(ours, base=base)
    assert not estate.server.before, "the human never came to it"
    now = estate.now()
    assert now.schema is not None
    assert now.documentation == Documentation(
        description="By hand" if named == "description" else "A"
    )
    assert now.governance is not None
    assert set(now.governance.tags) == {"two"} | ({"People.gold"} if named == "tag" else set())
    assert now.schema.fields[0].description == ("By hand" if named == "column" else None)
    assert now.schema.fields[1].description == "Ours"
    assert now.ownership == (Ownership(owners=(Owner(name="bob"),)) if named == "owner" else None)


def domain(estate: Estate) -> None:
    made = estate.human(
        "PUT", "domains", {"name": "Human", "domainType": "Aggregate", "description": ""}
    )
    estate.edit({"op": "add", "path": "/domains", "value": [{"id": made["id"], "type": "domain"}]})


def custom(estate: Estate) -> None:
    type, text = (
        estate.human("GET", f"metadata/types/name/{name}")["id"] for name in ("table", "string")
    )
    estate.human("PUT", f"metadata/types/{type}", {
        "name": "team", "description": "", "propertyType": {"id": text, "type": "type"}
    })  # fmt: skip
    estate.edit({"op": "add", "path": "/extension", "value": {"team": "lake"}})


MORE = Schema(fields=tuple(Field(name=name, type=INT64) for name in ("id", "net", "new")))
WORDED = Schema(
    fields=(Field(name="id", type=INT64, description="Ours"), Field(name="net", type=INT64))
)


@pytest.mark.parametrize(
    ("ours", "act", "kept"),
    [
        pytest.param(described("Ours"), lambda estate: estate.describe("By hand"),
                     lambda raw: raw["description"] == "By hand", id="description"),
        pytest.param(table(schema=WORDED), lambda estate: estate.edit(
                         {"op": "add", "path": "/columns/0/description", "value": "By hand"}),
                     lambda raw: raw["columns"][0]["description"] == "By hand", id="column"),
        pytest.param(table(schema=MORE), lambda estate: estate.edit(
                         {"op": "add", "path": "/columns/0/description", "value": "By hand"}),
                     lambda raw: raw["columns"][0]["description"] == "By hand", id="column beside a new one"),
        pytest.param(table(schema=MORE), lambda estate: estate.tag("gold", "/columns/0/tags/-"),
                     lambda raw: raw["columns"][0]["tags"][0]["tagFQN"] == "People.gold", id="tag of a column"),
        pytest.param(table(schema=MORE), lambda estate: estate.edit(
                         {"op": "add", "path": "/columns/0/displayName", "value": "No."}),
                     lambda raw: raw["columns"][0]["displayName"] == "No.", id="name of a column"),
        pytest.param(table(documentation=Documentation(domain="Sales")), domain,
                     lambda raw: raw["domains"][0]["name"] == "Human", id="domain"),
        pytest.param(table(properties={"a": "b"}), custom,
                     lambda raw: raw["extension"]["team"] == "lake", id="custom property"),
    ],
)  # fmt: skip
def test_what_people_put_where_nothing_was_when_we_read_stays(
    estate: Estate, ours: CatalogEntry, act: Callable[[Estate], None], kept: Callable[[Any], bool]
) -> None:
    estate.catalog().write(table())
    estate.just_before("PATCH", "/tables/", lambda: act(estate))
    estate.catalog().write(ours, base=table())
    assert not estate.server.before, "the human never came to it"
    assert kept(estate.raw())


def test_what_people_hide_while_we_write_stays_hidden(estate: Estate) -> None:
    estate.catalog().write(table())
    id = estate.raw()["id"]
    estate.just_before("PATCH", "/tables/", lambda: estate.human("DELETE", f"tables/{id}"))
    estate.catalog().write(described("A"), base=table())
    assert estate.raw()["deleted"]
    assert estate.raw()["description"] == "A"


def test_ghost_columns_go(estate: Estate) -> None:
    estate.catalog().write(table(ORDERS, "id", "ghost", "net"))
    estate.catalog().write(table(ORDERS, "id", "net"), base=table(ORDERS, "id", "ghost", "net"))
    assert [column["name"] for column in estate.raw()["columns"]] == ["id", "net"]


def test_a_name_that_people_gave_stays(estate: Estate) -> None:
    base = table()
    estate.catalog().write(base)
    estate.edit({"op": "add", "path": "/displayName", "value": "All orders"})
    assert estate.now().name == "All orders"
    estate.catalog().write(described("A"), base=base)
    assert estate.raw()["displayName"] == "All orders"


def test_a_dataset_that_people_hid_stays_hidden(estate: Estate) -> None:
    base = described("A")
    estate.catalog().write(base)
    estate.human("DELETE", f"tables/{estate.raw()['id']}")
    estate.catalog().write(described("B"), base=base)
    assert estate.raw()["deleted"]
    assert estate.now() == msgspec.structs.replace(described("B"), deleted=True)


def test_what_only_people_set_is_never_touched(estate: Estate) -> None:
    base = table()
    estate.catalog().write(base)
    estate.edit({"op": "add", "path": "/retentionPeriod", "value": "P30D"},
                {"op": "add", "path": "/columns/0/displayName", "value": "Number"})  # fmt: skip
    estate.catalog().write(described("A"), base=base)
    raw = estate.raw()
    assert raw["retentionPeriod"] == "P30D"
    assert raw["columns"][0]["displayName"] == "Number"
    found = estate.now()
    assert found.raw["openmetadata"]["entity"] == {"retentionPeriod": "P30D"}
    estate.catalog().erase(ORDERS)
    estate.catalog().put(found)
    assert estate.raw()["retentionPeriod"] == "P30D"
    assert estate.raw()["columns"][0]["displayName"] == "Number"


def test_properties_that_people_declared_are_read_and_written(estate: Estate) -> None:
    estate.catalog().write(table())
    type = estate.human("GET", "metadata/types/name/table")["id"]
    text = estate.human("GET", "metadata/types/name/string")["id"]
    estate.human("PUT", f"metadata/types/{type}", {
        "name": "desk", "description": "", "propertyType": {"id": text, "type": "type"}
    })  # fmt: skip
    estate.edit({"op": "add", "path": "/extension", "value": {"desk": "4"}})
    assert estate.now().properties == {"openmetadata.desk": "4"}
    properties = {"openmetadata.desk": "5", "openmetadata.none": "x", "own": "y"}
    estate.catalog().put(table(properties=properties))
    assert estate.raw()["extension"]["desk"] == "5"
    assert estate.now().properties == properties


def test_labels_that_hang_on_something_else_are_not_nailed_down(estate: Estate) -> None:
    estate.catalog().write(described("A"))
    estate.tag("gold")
    entity = estate.stub.estate.named("table", FQN)
    for label in entity.facts["tags"]:
        label["labelType"] = "Derived"
    assert estate.now().governance is None
    estate.catalog().write(described("B"), base=described("A"))
    assert [label["labelType"] for label in estate.raw()["tags"]] == ["Derived"]


def test_tables_that_differ_only_in_case_are_two(estate: Estate) -> None:
    # Told apart, neither doubled nor merged.
    other = ORDERS.replace("orders", "Orders")
    estate.catalog().write(described("A"))
    estate.catalog().write(CatalogEntry(urn=other, name="Orders", platform="postgres"))
    assert sorted(entry.urn for entry in estate.catalog().export()) == [other, ORDERS]


def test_what_was_there_before_is_recognised_and_not_doubled(estate: Estate) -> None:
    estate.human("PUT", "services/databaseServices", {"name": "pg_prod", "serviceType": "Postgres"})
    estate.human("PUT", "databases", {"name": "shop", "service": "pg_prod"})
    estate.human("PUT", "databaseSchemas", {"name": "public", "database": "pg_prod.shop"})
    estate.human("PUT", "tables", {
        "name": "orders", "databaseSchema": "pg_prod.shop.public", "description": "By hand",
        "columns": [{"name": "id", "dataType": "VARCHAR", "dataLength": 9, "dataTypeDisplay": "varchar(9)"}],
    })  # fmt: skip
    [found] = estate.catalog().export()
    assert found.urn == "lumos://postgres@pg_prod/shop/public/orders"
    [renamed] = estate.catalog(services={"pg_prod": "postgres"}).export()
    assert renamed.urn == ORDERS
    estate.catalog(services={"pg_prod": "postgres"}).write(table(ORDERS, "id", "net"))
    [raw] = estate.stub.entities("table")
    assert raw["fullyQualifiedName"] == "pg_prod.shop.public.orders"
    assert raw["description"] == "By hand"
    assert [column["name"] for column in raw["columns"]] == ["id", "net"]


def test_a_bucket_that_is_a_dataset_itself_is_hidden_and_erased_alone(estate: Estate) -> None:
    lake = CatalogEntry(urn="lumos://s3/lake", name="lake", platform="s3")
    inside = CatalogEntry(urn="lumos://s3/lake/raw", name="raw", platform="s3")
    estate.catalog().put(inside)
    assert [entry.urn for entry in estate.catalog().export()] == [inside.urn]
    hidden = msgspec.structs.replace(lake, deleted=True)
    estate.catalog().put(hidden)
    assert list(estate.catalog().export()) == [hidden, inside]
    estate.catalog().put(lake)
    assert list(estate.catalog().export()) == [lake, inside]
    estate.catalog().erase(lake.urn)
    assert list(estate.catalog().export()) == [inside]
    estate.catalog().erase(inside.urn)
    estate.catalog().clean_up()
    assert estate.stub.entities("container") == []
    assert estate.stub.entities("storageService") == []


def test_what_was_read_long_ago_is_not_written_over_what_is_there(estate: Estate) -> None:
    catalog = estate.catalog()
    base = described("A", governance=Governance(tags=("one",)))
    catalog.put(base)
    over = catalog.get_many([ORDERS])
    # Somebody works in the catalog while Lumos reads another dataset.
    estate.describe("By hand")
    catalog.get(OTHER)
    ours = described("A", governance=Governance(tags=("two",)))
    list(catalog.put_many([ours], current=over))
    assert estate.now() == described("By hand", governance=Governance(tags=("two",)))


def test_nothing_of_others_goes_with_what_lumos_erases(estate: Estate) -> None:
    estate.catalog().put(table())
    estate.human("PUT", "tables", {
        "name": "theirs", "databaseSchema": "postgres.shop.public", "columns": []
    })  # fmt: skip
    estate.catalog().erase_many([ORDERS, SOURCE])
    assert [raw["name"] for raw in estate.stub.entities("table")] == ["theirs"]
    # What people have described is theirs, too, even if nothing is left in it.
    estate.catalog().put(table(ORDERS.replace("public", "private")))
    [schema] = [raw for raw in estate.stub.entities("databaseSchema") if raw["name"] == "private"]
    words = [{"op": "add", "path": "/description", "value": "Ours"}]
    estate.human("PATCH", f"databaseSchemas/{schema['id']}", words, type="json-patch+json")
    estate.catalog().erase(ORDERS.replace("public", "private"))
    estate.catalog().clean_up()
    assert [raw["name"] for raw in estate.stub.entities("databaseSchema")] == ["private", "public"]


@pytest.mark.parametrize(
    "mishap",
    [
        pytest.param(Mishap("reset", takes_effect=True), id="its answer is lost"),
        pytest.param(Mishap("refused", answer=Answer.of({"message": "no"}, 422)), id="refused"),
        pytest.param(
            Mishap("expired", answer=Answer.of({"message": "no"}, 401)), id="token expired"
        ),
    ],
)
def test_what_people_hid_stays_hidden_whatever_becomes_of_a_change(
    estate: Estate, mishap: Mishap
) -> None:
    estate.catalog().write(described("A"))
    estate.human("DELETE", f"tables/{estate.raw()['id']}")
    left = [mishap]
    estate.server.mishaps = lambda request: (
        left.pop() if request.method == "PATCH" and left else None
    )
    if mishap.answer is None:
        estate.catalog().write(described("B"), base=described("A"))
        assert estate.raw()["description"] == "B"
    else:
        with pytest.raises(CatalogError):
            estate.catalog().write(described("B"), base=described("A"))
    assert estate.raw()["deleted"]


def test_a_tag_of_lumos_that_people_deleted_is_made_again_for_who_claims_it(estate: Estate) -> None:
    tagged = table(governance=Governance(tags=("pii",)))
    estate.catalog().write(tagged)
    [tag] = [each for each in estate.stub.entities("tag") if each["name"] == "pii"]
    estate.human("DELETE", f"tags/{tag['id']}")
    estate.catalog().put(table(OTHER, governance=Governance(tags=("pii",))))
    assert estate.now(OTHER).governance == Governance(tags=("pii",))
    estate.catalog().put(table(governance=Governance(tags=("pii", "new"))))
    assert estate.now().governance == Governance(tags=("pii", "new"))
