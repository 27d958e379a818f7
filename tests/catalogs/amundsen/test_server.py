"""A real Amundsen: the metadata service and databuilder judge what Lumos wrote to Neo4j."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import msgspec
import pytest
from hypothesis import given, settings

from catalogs import test_contract, test_lossless
from catalogs.local_platform import LocalStorePlatform
from catalogs.sample_inventory import CUSTOMERS, ORDERS, items, rich
from catalogs.strategies import entries
from catalogs.test_lossless import ESTATES, FEW, THINGS, by_name, comes_back, the_last_is_there
from examples import examples
from lumos.catalogs.amundsen import neo4j_graph
from lumos.catalogs.amundsen.file_platform import AmundsenFile
from lumos.catalogs.amundsen.names import table_key
from lumos.catalogs.amundsen.platform import Amundsen
from lumos.config.platforms import AmundsenPlatform
from lumos.config.secret import ConnectionString, Secret
from lumos.doctor import platform_checks
from lumos.errors import CatalogUnavailable
from lumos.model.catalog import CatalogEntity, CatalogEntry, entity_urn
from lumos.model.dataset import Documentation, Governance, Owner
from lumos.model.schema import Schema
from lumos.store import Database, Store
from servers.amundsen import PASSWORD, USER, AmundsenServer, amundsen_server

pytestmark = pytest.mark.slow
Opened = Callable[[], Amundsen]
ORDERS_KEY = table_key(ORDERS) or ""
PUBLISH = """
import sys
from pyhocon import ConfigFactory
from databuilder.publisher.neo4j_csv_unwind_publisher import Neo4jCsvUnwindPublisher
uri, user, password, folder = sys.argv[1:]
publisher = Neo4jCsvUnwindPublisher()
publisher.init(ConfigFactory.from_dict({
    "node_files_directory": f"{folder}/nodes", "relation_files_directory": f"{folder}/relationships",
    "neo4j_endpoint": uri, "neo4j_user": user, "neo4j_password": password, "neo4j_encrypted": False,
    "job_publish_tag": "2024-01-15"}))
publisher.publish()
"""


@pytest.fixture(scope="module")
def server() -> Iterator[AmundsenServer]:
    with amundsen_server() as started:
        yield started


def catalog_on(server: AmundsenServer, password: str = PASSWORD) -> Amundsen:
    uri = ConnectionString(server.neo4j_uri)
    return Amundsen(
        AmundsenPlatform(
            server=server.server, neo4j_uri=uri, neo4j_user=USER, neo4j_password=Secret(password), timeout=20
        )
    )  # fmt: skip


class Administrator:
    """Somebody with Cypher, and people who use the pages of Amundsen."""

    def __init__(self, server: AmundsenServer) -> None:
        from neo4j import GraphDatabase

        self.server = server
        self._driver = GraphDatabase.driver(server.neo4j_uri, auth=(USER, PASSWORD))

    def run(self, statement: str, **parameters: Any) -> list[Any]:
        with self._driver.session() as session:
            return [row.values() for row in session.run(statement, **parameters)]

    def empty(self) -> None:
        self.run("MATCH (n) DETACH DELETE n")

    def get(self, path: str) -> Any:
        return self._call("GET", path, {})

    def put(self, path: str, body: Any = None) -> None:
        self._call("PUT", path, body or {})

    def _call(self, method: str, path: str, body: Any) -> Any:
        # Some routes of the service want a JSON body, even if it says nothing.
        headers, data = {"Content-Type": "application/json"}, json.dumps(body).encode()
        url = f"{self.server.server}{quote(path)}"
        with urlopen(Request(url, data, headers, method=method)) as answer:
            return json.load(answer)


@pytest.fixture(scope="module")
def administrator(server: AmundsenServer) -> Administrator:
    return Administrator(server)


@pytest.fixture
def opened(server: AmundsenServer, administrator: Administrator) -> Iterator[Opened]:
    administrator.empty()
    catalogs: list[Amundsen] = []

    def open_catalog() -> Amundsen:
        catalogs.append(catalog_on(server))
        return catalogs[-1]

    yield open_catalog
    for catalog in catalogs:
        catalog.close()


@pytest.fixture(scope="module")
def emptied(server: AmundsenServer, administrator: Administrator) -> Callable[[], Amundsen]:
    """One catalog for all examples, without what was in it."""
    catalog = catalog_on(server)

    def empty() -> Amundsen:
        administrator.empty()
        return catalog

    return empty


# The contract of all catalogs, on this module's `opened`.
for _name, _test in vars(test_contract).items():
    if _name.startswith("test_") and _name != "test_a_catalog_is_made_of_what_it_can_do":
        globals()[_name] = _test


@FEW
@given(estate=ESTATES, things=THINGS)
def test_an_estate_comes_back(emptied: Any, estate: list[CatalogEntry], things: list[Any]) -> None:
    comes_back(emptied(), estate, list(by_name(things).values()))


@FEW
@given(first=entries(), second=entries())
def test_the_last_entry_that_was_put_is_there(
    emptied: Any, first: CatalogEntry, second: CatalogEntry
) -> None:
    the_last_is_there(emptied(), first, second)


@settings(FEW, max_examples=examples(5))
@given(estate=ESTATES, things=THINGS)
def test_an_estate_moves_from_local_and_back(
    tmp_path_factory: pytest.TempPathFactory, emptied: Any, estate: list[CatalogEntry], things: list[Any]
) -> None:  # fmt: skip
    folder = tmp_path_factory.mktemp("local")
    local, back = (
        LocalStorePlatform(Store.open(Database.sqlite(folder / name), create=True))
        for name in ("a.db", "b.db")
    )
    test_lossless.fill(local, [*estate, *rich()], [*by_name(things).values(), *items()])
    first = test_lossless.snapshot(local, folder / "first.jsonl")
    target = emptied()
    test_lossless.restore(folder / "first.jsonl", target)
    second = test_lossless.snapshot(target, folder / "second.jsonl")
    test_lossless.restore(folder / "second.jsonl", back)
    assert first == second == test_lossless.snapshot(back, folder / "third.jsonl")


def test_a_thousand_columns_and_deep_nesting_come_back(opened: Opened) -> None:
    assert opened().put(test_lossless.wide_and_deep()).held == {"schema": "partly"}
    assert opened().get("lumos://s3/lake/wide") == test_lossless.wide_and_deep()


def test_the_metadata_service_shows_what_was_written(
    opened: Opened, administrator: Administrator
) -> None:
    list(opened().put_many(rich(), current={}))
    shown = administrator.get(f"/table/{ORDERS_KEY}")
    assert (shown["database"], shown["cluster"], shown["schema"], shown["name"]) == (
        "s3",
        "PROD",
        "data-lake.raw",
        "orders.v2",
    )
    assert shown["description"] == "All orders since 2019."
    assert [column["name"] for column in shown["columns"]][:3] == ["id", "customer", "items"]
    assert shown["columns"][0]["description"] == "Order number"
    assert {tag["tag_name"] for tag in shown["tags"]} == {"PII", "tier-1"}
    assert {badge["badge_name"] for badge in shown["badges"]} == {"gdpr"}
    assert {owner["email"] for owner in shown["owners"]} == {"jane.smith", "lake, team (eu)", "bob"}
    assert {text["source"] for text in shown["programmatic_descriptions"]} >= {"team", "größe"}
    assert [
        (reader["user"]["email"], reader["read_count"]) for reader in shown["table_readers"]
    ] == [("dbt", 3)]
    lineage = administrator.get(f"/table/{ORDERS_KEY}/lineage")
    assert [each["key"] for each in lineage["downstream_entities"]] == [table_key(CUSTOMERS)]
    columns = administrator.get(f"/table/{ORDERS_KEY}/column/customer/lineage")
    assert [each["key"] for each in columns["downstream_entities"]] == [
        f"{table_key(CUSTOMERS)}/ID"
    ]


def test_a_deleted_dataset_is_not_shown(opened: Opened, administrator: Administrator) -> None:
    opened().put(rich()[1])
    assert administrator.get(f"/table/{table_key(CUSTOMERS)}")["name"] == "Customers"
    opened().delete(CUSTOMERS)
    with pytest.raises(HTTPError, match="404"):
        administrator.get(f"/table/{table_key(CUSTOMERS)}")


def test_a_dashboard_is_shown(opened: Opened, administrator: Administrator) -> None:
    list(opened().put_many(rich(), current={}))
    dashboard = CatalogEntity(
        urn=entity_urn("dashboard", "mode", "gold.finance/42"), display_name="Revenue", description="Weekly",
        owners=(Owner(name="ann@example.com"),), references={"datasets": (ORDERS,)},
    )  # fmt: skip
    opened().put_item(dashboard)
    shown = administrator.get("/dashboard/mode_dashboard://gold.finance/42")
    assert (shown["name"], shown["group_name"], shown["description"]) == (
        "Revenue",
        "finance",
        "Weekly",
    )
    assert [table["name"] for table in shown["tables"]] == ["orders.v2"]
    assert opened().get_item(CatalogEntity, dashboard.urn) == dashboard


def test_edits_in_the_pages_of_amundsen_are_kept(
    opened: Opened, administrator: Administrator
) -> None:
    base = rich()[0]
    opened().write(base)
    administrator.put(f"/table/{ORDERS_KEY}/description", {"description": "By hand"})
    administrator.put(
        f"/table/{ORDERS_KEY}/column/customer/description", {"description": "Who bought"}
    )
    administrator.put(f"/table/{ORDERS_KEY}/tag/by-hand")
    administrator.put(f"/table/{ORDERS_KEY}/owner/ann@example.com")
    assert base.schema is not None
    ours = msgspec.structs.replace(
        base, governance=Governance(tags=("PII",), terms=("Order",), compliance=("GDPR",))
    )
    opened().write(ours, base=base)
    found = opened().get(ORDERS)
    assert found is not None
    assert found.documentation is not None
    assert found.documentation.description == "By hand"
    assert found.governance is not None
    assert found.governance.tags == ("PII", "by-hand")
    assert base.ownership is not None
    assert found.ownership is not None
    added = Owner(name="ann@example.com")
    assert set(found.ownership.owners) == {*base.ownership.owners, added}
    fields = list(base.schema.fields)
    fields[1] = msgspec.structs.replace(fields[1], description="Who bought")
    assert found.schema == Schema(fields=tuple(fields))


def test_edits_between_reading_and_writing_are_kept(
    opened: Opened, administrator: Administrator
) -> None:
    opened().put(rich()[0])
    over = opened().get_many([ORDERS])
    administrator.put(f"/table/{ORDERS_KEY}/tag/in-between")
    administrator.put(f"/table/{ORDERS_KEY}/description", {"description": "In between"})
    ours = msgspec.structs.replace(over[ORDERS], format="delta")
    list(opened().put_many([ours], current=over))
    found = opened().get(ORDERS)
    assert found is not None
    assert found.format == "delta"
    assert found.documentation is not None
    assert found.documentation.description == "In between"
    assert found.governance is not None
    assert "in-between" in found.governance.tags


def test_databuilder_publishes_a_folder_of_lumos(
    opened: Opened, server: AmundsenServer, tmp_path: Path
) -> None:
    folder = AmundsenFile.at(str(tmp_path / "csv"))
    with folder.batch():
        list(folder.put_many(rich(), current={}))
        list(folder.put_items(items()))
    server.run(PUBLISH, server.neo4j_uri, USER, PASSWORD, str(tmp_path / "csv"))
    assert list(opened().export()) == sorted(rich(), key=lambda entry: entry.urn)
    assert by_name(opened().items()) == by_name(items())
    # What databuilder published is as good as what Lumos wrote.
    assert not any(each.changed for each in opened().put_many(rich(), current={}))  # type: ignore[union-attr]


def test_nodes_are_marked_and_stale_ones_removed(
    opened: Opened, administrator: Administrator
) -> None:
    list(opened().put_many(rich(), current={}))
    untagged = "MATCH (n) WHERE n.published_tag <> 'lumos' OR n.publisher_last_updated_epoch_ms IS NULL RETURN count(n)"
    assert administrator.run(untagged) == [[0]]
    administrator.run("CREATE (:Tag {key: 'theirs', tag_type: 'default', published_tag: '2024'})")
    without_tags = msgspec.structs.replace(rich()[0], governance=None)
    opened().put(without_tags)
    assert (
        administrator.run(
            "MATCH (:Table {key: $key})-[:TAGGED_BY]->(t) RETURN t.key", key=ORDERS_KEY
        )
        == []
    )
    opened().erase_many([entry.urn for entry in rich()])
    opened().clean_up()
    assert administrator.run("MATCH (n) RETURN n.key") == [["theirs"]]


def test_an_edge_outlives_the_dataset_that_it_comes_from(opened: Opened) -> None:
    list(opened().put_many(rich(), current={}))
    opened().erase(ORDERS)
    assert opened().get(ORDERS) is None
    assert opened().get(CUSTOMERS) == rich()[1]


@pytest.mark.parametrize("statements", range(0, 30, 3))
def test_a_transaction_that_dies_leaves_nothing(
    opened: Opened, administrator: Administrator, monkeypatch: pytest.MonkeyPatch, statements: int
) -> None:
    left, run = [statements], neo4j_graph._run

    def dying(*arguments: Any) -> None:
        if left[0] == 0:
            raise KeyError("somebody pulled the plug")
        left[0] -= 1
        run(*arguments)

    monkeypatch.setattr(neo4j_graph, "_run", dying)
    with suppress(KeyError):
        list(opened().put_many(rich(), current={}))
        assert left != [0], "it had more statements than that"
    monkeypatch.undo()
    there = administrator.run("MATCH (n:Table) WHERE n.name IS NOT NULL RETURN count(n)")
    assert there in ([[0]], [[3]])
    assert (there == [[0]]) == (left == [0])
    list(opened().put_many(rich(), current={}))
    assert list(opened().export()) == sorted(rich(), key=lambda entry: entry.urn)


def test_a_table_that_neo4j_rejects_is_named_and_the_others_are_written(opened: Opened) -> None:
    estate = [
        CatalogEntry(urn=f"lumos://s3/lake/{name}", name="t", platform="s3")
        for name in ("a", "b" * 40_000, "c")
    ]
    outcomes = {each.urn: each for each in opened().put_many(estate, current={})}
    assert [isinstance(outcomes[entry.urn], test_contract.FailedEntry) for entry in estate] == [
        False,
        True,
        False,
    ]
    assert opened().count() == 2


def test_a_wrong_password_is_told(server: AmundsenServer) -> None:
    with pytest.raises(CatalogUnavailable, match=r"denied access.*neo4j_password") as problem:
        catalog_on(server, "wrong-secret").count()
    assert "wrong-secret" not in str(problem.value)


def test_doctor_describes_the_server(server: AmundsenServer, workplace: Path) -> None:
    from lumos import Lumos, plugins

    plugins.register(plugins.PLATFORMS, "amundsen", Amundsen)
    (workplace / "lumos.yaml").write_text(
        f"platform: amundsen\nplatform_config:\n  amundsen:\n    server: {server.server}\n    neo4j_uri: {server.neo4j_uri}\n"
        f"    neo4j_user: {USER}\n    neo4j_password: {PASSWORD}\n"
    )
    (check,) = platform_checks(Lumos().settings)
    assert check.status == "ok"
    assert (
        check.found
        == f"Amundsen at {server.server} on Neo4j 4.4.38 at {server.neo4j_uri}, as {USER}"
    )
    plugins.unregister(plugins.PLATFORMS, "amundsen")


def test_descriptions_reach_the_catalog_again_after_people_removed_them(
    opened: Opened, administrator: Administrator
) -> None:
    entry = CatalogEntry(
        urn="lumos://s3/lake/a",
        name="a",
        platform="s3",
        documentation=Documentation(description="x"),
    )
    opened().put(entry)
    administrator.run("MATCH (d:Description) DETACH DELETE d")
    found = opened().get(entry.urn)
    assert found is not None
    assert found.documentation is None
    assert opened().put(entry).changed
    assert opened().get(entry.urn) == entry
