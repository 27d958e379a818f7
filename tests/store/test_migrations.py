"""Migrations, on every database."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext

from lumos.model.json_codec import to_json
from lumos.model.lineage import Edge
from lumos.model.schema import parse_schema
from lumos.store import Database, Facets, Store, tables
from lumos.store.database import HEAD, REVISIONS
from store.conftest import AT, dataset


def include(_object: object, name: str | None, _kind: str, reflected: bool, _other: object) -> bool:
    """All but what only one of the databases has for its search."""
    return not (
        reflected
        and str(name).startswith(
            ("search_index", "search_names", "search_vocabulary", "ix_search_entry_vector")
        )
    )


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database of each kind, without tables."""
    if request.param == "sqlite":
        opened = Database.sqlite(tmp_path / "lumos.db")
    else:
        opened = Database.postgres(request.getfixturevalue("emptied_postgres"))
    yield opened
    opened.engine.dispose()


def test_the_tables_are_what_the_migrations_make(database: Database) -> None:
    Store.open(database, create=True)
    with database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": include})
        assert compare_metadata(context, tables.metadata) == []


def migrate(database: Database, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", "lumos.store:migrations")
    with database.writing() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


def test_a_store_of_the_first_revision_is_brought_up_to_date_with_its_data(
    database: Database,
) -> None:
    if database.engine.dialect.name == "sqlite":
        Path(str(database.engine.url.database)).touch()
    migrate(database, REVISIONS[0])
    with database.writing() as connection:
        row = {name: getattr(dataset(), name) for name in dataset().__struct_fields__}
        connection.execute(tables.dataset.insert().values(**row))
    assert database.upgrade() == (REVISIONS[0], HEAD)
    store = Store.open(database)
    found, hits = store.search("orders", Facets(), limit=5)
    assert (hits.total, found[0].name) == (1, "orders")
    assert store.known(source="file:/lake")["lumos://file/lake/orders"].created_at == AT


def test_an_upgraded_store_finds_nested_fields_and_suggests(database: Database) -> None:
    if database.engine.dialect.name == "sqlite":
        Path(str(database.engine.url.database)).touch()
    migrate(database, "0015")
    body = to_json(parse_schema("meta STRUCT<priority: INT32>"))
    with database.writing() as connection:
        schema = {"hash": "a" * 32, "shape": "", "full": "", "body": body}
        connection.execute(tables.schema_body.insert().values(**schema))
        old = dataset("tickets", schema_hash="a" * 32)
        row = {name: getattr(old, name) for name in old.__struct_fields__}
        connection.execute(tables.dataset.insert().values(**row))
        # As an index looked that held columns alone.
        entry = {"urn": old.urn, "name": "tickets", "path": "lake", "fields": "meta"}
        connection.execute(tables.search_entry.insert().values(**entry, words="", facets=""))
    database.upgrade()
    store = Store.open(database)
    _, hits = store.search("priority", Facets(), limit=5)
    assert hits.fields == {old.urn: ("meta.priority",)}
    assert store.search("priorty", Facets(), limit=5)[1].suggestion == "priority"


def test_upgrading_twice_changes_nothing(database: Database) -> None:
    Store.open(database, create=True)
    assert database.upgrade() == (HEAD, HEAD)


def test_lineage_that_was_reported_before_there_were_edges_counts_in_the_graph(
    database: Database,
) -> None:
    if database.engine.dialect.name == "sqlite":
        Path(str(database.engine.url.database)).touch()
    migrate(database, "0005")
    sales, orders = dataset("sales").urn, dataset().urn
    mapping = {"upstream": "id", "downstream": "sale"}
    expected = {
        "upstream": [{"urn": orders, "type": "VIEW", "columns": [mapping]}, {"urn": "lumos://x/y"}],
        "downstream": [{"urn": orders}],
    }
    with database.writing() as connection:
        row = {name: getattr(dataset("sales"), name) for name in dataset().__struct_fields__}
        connection.execute(tables.dataset.insert().values(**row))
        aspect = {"urn": sales, "name": "lineage", "body": json.dumps(expected).encode()}
        connection.execute(tables.aspect.insert().values(**aspect, writer="import", updated_at=AT))
    database.upgrade()
    store = Store.open(database)
    edges = {(edge.upstream, edge.downstream): edge for edge in store.lineage.all()}
    assert set(edges) == {(orders, sales), ("lumos://x/y", sales), (sales, orders)}
    view = edges[orders, sales]
    assert (view.origin, view.type, view.at) == (f"snapshot:{sales}", "VIEW", AT)
    assert [(each.upstream, each.downstream) for each in view.columns] == [("id", "sale")]
    with store.transaction() as transaction:
        edge = Edge(upstream="lumos://new/one", downstream=orders, origin="user", at=AT)
        assert transaction.lineage.report("user", [edge], at=AT).added == 1


def test_fields_of_one_catalog_are_called_raw_in_an_upgraded_store(database: Database) -> None:
    if database.engine.dialect.name == "sqlite":
        Path(str(database.engine.url.database)).touch()
    migrate(database, "0017")
    cost = b'"cost":{"own":{"compute":0.1000000000000000055511151231}}'
    body = b'{"urn":"lumos://airflow/load","carried":{"datahub":{"carried":[1]}},%b}' % cost
    plain = b'{"name":"a","definition":"Goods that are carried"}'
    with database.writing() as connection:
        row = {name: getattr(dataset(), name) for name in dataset().__struct_fields__}
        connection.execute(tables.dataset.insert().values(**row))
        connection.execute(
            tables.extras.insert().values(urn=dataset().urn, name="carried", body=b'{"datahub":{}}')
        )
        for key, each in (("load", body), ("a", plain)):
            item = {"kind": "jobs", "key": key, "body": each}
            connection.execute(tables.item.insert().values(**item, updated_at=AT))
            connection.execute(tables.merge_base.insert().values(**item, platform="datahub"))
    database.upgrade()
    renamed = body.replace(b'"carried":{"datahub', b'"raw":{"datahub')
    with database.reading() as connection:
        for table in (tables.item, tables.merge_base):
            found = connection.execute(table.select().order_by(table.c.key)).mappings()
            assert [each["body"] for each in found] == [plain, renamed]
        assert [row.name for row in connection.execute(tables.extras.select())] == ["raw"]
