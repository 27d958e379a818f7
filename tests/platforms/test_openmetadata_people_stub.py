"""People and other programs work in OpenMetadata beside Lumos; the server is a stub of one."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from lumos.config.platforms import OpenmetadataPlatform, Retries
from lumos.config.secret import Secret
from lumos.errors import CatalogError
from lumos.model.catalog import Entry
from lumos.model.dataset import (
    Documentation,
    Governance,
    Lineage,
    Owner,
    Ownership,
    UpstreamEdge,
)
from lumos.model.lineage import ColumnMapping
from lumos.model.schema import Field, Schema
from lumos.model.types import INT64, STRING
from lumos.platforms.openmetadata.platform import Openmetadata

from .servers.http import Answer, Mishap, Request, Server
from .servers.openmetadata import BOT, HUMAN
from .servers.openmetadata import Openmetadata as Stub

ORDERS = "lumos://postgres/shop/public/orders"
SOURCE = "lumos://postgres/shop/public/source"
OTHER = "lumos://postgres/shop/public/other"
FQN = "postgres.shop.public.orders"


class Estate:
    """A server, and what somebody does in it meanwhile."""

    def __init__(self, stub: Stub, server: Server) -> None:
        self.stub = stub
        self.server = server

    def catalog(self, **settings: Any) -> Openmetadata:
        return Openmetadata(
            OpenmetadataPlatform(server=self.server.address, auth_token=Secret(BOT), **settings)
        )

    def now(self, urn: str = ORDERS) -> Entry:
        found = self.catalog().get(urn)
        assert found is not None
        return found

    def human(self, method: str, path: str, body: Any = None, *, type: str = "json") -> Any:
        """Somebody works in the catalog's own pages."""
        headers = {"Authorization": f"Bearer {HUMAN}", "Content-Type": f"application/{type}"}
        content = b"" if body is None else json.dumps(body).encode()
        answer = self.stub(Request(0, method, f"/api/v1/{path}", headers, content))
        assert answer.status < 300, answer.body
        return json.loads(answer.body) if answer.body else None

    def raw(self, fqn: str = FQN) -> Any:
        fields = "columns,tags,owners,domains,extension,schemaDefinition"
        return self.human("GET", f"tables/name/{fqn}?include=all&fields={fields}")

    def edit(self, *operations: dict[str, Any], fqn: str = FQN) -> None:
        id = self.raw(fqn)["id"]
        self.human("PATCH", f"tables/{id}", list(operations), type="json-patch+json")

    def describe(self, text: str) -> None:
        self.edit({"op": "add", "path": "/description", "value": text})

    def tag(self, name: str, path: str = "/tags/-") -> None:
        """Somebody puts a tag on a dataset or on a column."""
        self.human("PUT", "classifications", {"name": "People", "description": ""})
        self.human("PUT", "tags", {"name": name, "classification": "People", "description": ""})
        label = {"tagFQN": f"People.{name}", "source": "Classification", "labelType": "Manual",
                 "state": "Confirmed"}  # fmt: skip
        self.edit({"op": "add", "path": path, "value": label})

    def edges(self, fqn: str = FQN) -> dict[str, set[tuple[str, str]]]:
        """The edges that lead to a table, with their columns."""
        told = self.human(
            "GET", f"lineage/table/{self.raw(fqn)['id']}?upstreamDepth=1&downstreamDepth=0"
        )
        names = {node["id"]: node["name"] for node in told["nodes"]}
        return {
            names[edge["fromEntity"]]: {
                (start.rpartition(".")[2], line["toColumn"].rpartition(".")[2])
                for line in edge["lineageDetails"]["columnsLineage"]
                for start in line["fromColumns"]
            }
            for edge in told["upstreamEdges"]
        }

    def draw(self, start: str, *pairs: tuple[str, str]) -> None:
        """Somebody draws an edge to the orders."""
        ends = [
            {"id": self.raw(fqn)["id"], "type": "table"}
            for fqn in (f"postgres.shop.public.{start}", FQN)
        ]
        lines = [
            {"fromColumns": [f"postgres.shop.public.{start}.{a}"], "toColumn": f"{FQN}.{b}"}
            for a, b in pairs
        ]
        details = {"source": "Manual", "columnsLineage": lines}
        edge = {"fromEntity": ends[0], "toEntity": ends[1], "lineageDetails": details}
        self.human("PUT", "lineage", {"edge": edge})

    def just_before(self, method: str, word: str, act: Callable[[], object]) -> None:
        """Somebody is faster than Lumos by one moment, once."""

        def once(request: Request) -> None:
            if request.method == method and word in request.path and once in self.server.before:
                self.server.before.remove(once)
                act()

        self.server.before.append(once)


@pytest.fixture
def estate() -> Iterator[Estate]:
    stub = Stub()
    with Server(stub) as server:
        yield Estate(stub, server)


def table(urn: str = ORDERS, *names: str, **aspects: Any) -> Entry:
    fields = tuple(Field(name=name, type=INT64) for name in names or ("id", "net"))
    return Entry(
        urn=urn, name=urn.rpartition("/")[2], platform="postgres",
        **{"schema": Schema(fields=fields), **aspects},
    )  # fmt: skip


def described(text: str | None, **aspects: Any) -> Entry:
    return table(documentation=Documentation(description=text), **aspects)


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
    estate: Estate, ours: Entry, act: Callable[[Estate], None], kept: Callable[[Any], bool]
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
    assert found.carried["openmetadata"]["entity"] == {"retentionPeriod": "P30D"}
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


def lineage(*edges: UpstreamEdge) -> Lineage:
    return Lineage(upstream=edges)


def edge(urn: str, *pairs: tuple[str, str], **facts: Any) -> UpstreamEdge:
    columns = tuple(ColumnMapping(upstream=a, downstream=b) for a, b in pairs)
    return UpstreamEdge(urn=urn, columns=columns, **facts)


def test_another_writers_edges_and_columns_stay(estate: Estate) -> None:
    catalog = estate.catalog()
    for urn in (SOURCE, OTHER):
        catalog.write(table(urn))
    base = table(lineage=lineage(edge(SOURCE, ("id", "id"))))
    catalog.write(base)
    assert estate.edges() == {"source": {("id", "id")}}
    estate.draw("source", ("id", "id"), ("net", "net"))
    estate.draw("other")
    ours = table(lineage=lineage(edge(SOURCE, ("id", "id"), ("id", "net"))))
    estate.catalog().write(ours, base=base)
    assert estate.edges() == {
        "source": {("id", "id"), ("net", "net"), ("id", "net")},
        "other": set(),
    }


def test_an_edge_that_comes_between_our_reading_and_our_writing_stays(estate: Estate) -> None:
    catalog = estate.catalog()
    for urn in (SOURCE, OTHER):
        catalog.write(table(urn))
    base = table(lineage=lineage(edge(SOURCE, ("id", "id"))))
    catalog.write(base)

    def act() -> None:
        estate.draw("source", ("id", "id"), ("net", "net"))
        estate.draw("other")

    estate.just_before("PATCH", "/tables/", act)
    ours = table(lineage=lineage(edge(SOURCE, ("id", "id"), ("id", "net"))))
    estate.catalog().write(ours, base=base)
    assert estate.edges() == {
        "source": {("id", "id"), ("net", "net"), ("id", "net")},
        "other": set(),
    }


def test_edges_and_columns_that_people_took_away_stay_away(estate: Estate) -> None:
    catalog = estate.catalog()
    for urn in (SOURCE, OTHER):
        catalog.write(table(urn))
    base = table(lineage=lineage(edge(SOURCE, ("id", "id"), ("net", "net")), edge(OTHER)))
    catalog.write(base)
    estate.draw("source", ("id", "id"))
    ids = {name: estate.raw(f"postgres.shop.public.{name}")["id"] for name in ("other", "orders")}
    estate.human("DELETE", f"lineage/table/{ids['other']}/table/{ids['orders']}")
    assert estate.now().lineage == lineage(edge(SOURCE, ("id", "id")))
    estate.catalog().write(
        msgspec.structs.replace(base, documentation=Documentation(description="A")), base=base
    )
    assert estate.edges() == {"source": {("id", "id")}}


def test_edges_that_lumos_no_longer_claims_go(estate: Estate) -> None:
    catalog = estate.catalog()
    for urn in (SOURCE, OTHER):
        catalog.write(table(urn))
    base = table(lineage=lineage(edge(SOURCE, ("id", "id"), ("net", "net")), edge(OTHER)))
    catalog.write(base)
    estate.catalog().write(table(lineage=lineage(edge(SOURCE, ("id", "id")))), base=base)
    assert estate.edges() == {"source": {("id", "id")}}


def test_an_edge_is_drawn_once_its_other_end_is_there(estate: Estate) -> None:
    catalog = estate.catalog()
    whole = table(lineage=lineage(edge(SOURCE, ("id", "id"), type="COPIED")))
    catalog.write(whole)
    assert estate.edges() == {}
    catalog.write(table(SOURCE))
    assert estate.edges() == {"source": {("id", "id")}}
    assert estate.now() == whole
    assert not estate.catalog().put(whole).changed


def test_an_edge_that_waited_in_vain_is_drawn_by_the_next_write(estate: Estate) -> None:
    whole = table(lineage=lineage(edge(SOURCE, ("id", "id"))))
    estate.catalog().write(whole)
    estate.catalog().write(table(SOURCE))
    assert estate.edges() == {}
    assert estate.now() == whole
    estate.catalog().write(whole, base=whole)
    assert estate.edges() == {"source": {("id", "id")}}


def test_columns_that_the_server_drops_without_a_word_are_not_lost(estate: Estate) -> None:
    estate.catalog().write(table(SOURCE))
    whole = table(lineage=lineage(edge(SOURCE, ("id", "id"), ("nowhere", "net"))))
    estate.catalog().write(whole)
    assert estate.edges() == {"source": {("id", "id")}}
    assert estate.now() == whole
    assert not estate.catalog().put(whole).changed


def test_an_edge_stays_known_when_its_other_end_is_erased_and_comes_again(estate: Estate) -> None:
    whole = table(lineage=lineage(edge(SOURCE, ("id", "id"))))
    estate.catalog().write(table(SOURCE))
    estate.catalog().write(whole)
    estate.catalog().erase(SOURCE)
    assert estate.now() == whole
    estate.catalog().write(table(SOURCE))
    assert estate.now() == whole


def test_a_server_without_its_search_engine_draws_edges_all_the_same(estate: Estate) -> None:
    estate.catalog().write(table(SOURCE))
    estate.stub.is_searchable = False
    once = estate.catalog(retries=Retries(attempts=1))
    once.write(table(lineage=lineage(edge(SOURCE, ("id", "id")))))
    assert estate.edges() == {"source": {("id", "id")}}


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
    estate.catalog().write(Entry(urn=other, name="Orders", platform="postgres"))
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
    lake = Entry(urn="lumos://s3/lake", name="lake", platform="s3")
    inside = Entry(urn="lumos://s3/lake/raw", name="raw", platform="s3")
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
    list(catalog.put_many([ours], over=over))
    assert estate.now() == described("By hand", governance=Governance(tags=("two",)))


def test_an_edge_from_what_people_hid_stays_known(estate: Estate) -> None:
    whole = table(lineage=lineage(edge(SOURCE, ("id", "id"))))
    estate.catalog().write(table(SOURCE))
    estate.catalog().write(whole)
    estate.human("DELETE", f"tables/{estate.raw('postgres.shop.public.source')['id']}")
    assert estate.now() == whole
    assert not estate.catalog().put(whole).changed


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


def test_columns_of_an_edge_come_back_when_the_upstream_column_does(estate: Estate) -> None:
    whole = table(lineage=lineage(edge(SOURCE, ("net", "id"), ("id", "net"))))
    estate.catalog().write(table(SOURCE))
    estate.catalog().write(whole)
    # One bad scan, after which the server itself takes the column out of the edge.
    estate.catalog().write(table(SOURCE, "id"), base=table(SOURCE))
    assert estate.edges() == {"source": {("id", "net")}}
    assert estate.now() == whole
    estate.catalog().write(table(SOURCE), base=table(SOURCE, "id"))
    estate.catalog().write(whole, base=whole)
    assert estate.edges() == {"source": {("net", "id"), ("id", "net")}}
    assert estate.now() == whole
