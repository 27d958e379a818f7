"""What every source keeps to, ours and those that come; each tries it on a real place."""

import csv
import io
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from threading import Event
from typing import Any

import boto3
import pyarrow as pa
import pytest
from pymongo import MongoClient

from azure_server import ACCOUNT, KEY, AzureServer
from conftest import Bucket
from databases import MysqlDatabase, PostgresDatabase
from gcs_server import GcsServer
from hdfs_server import TOKEN, HdfsServer
from lumos import Lumos, plugins
from lumos.discovery.targets import create_source
from lumos.doctor import _sources
from lumos.errors import LumosError, MisuseError
from lumos.model.json_codec import to_json
from lumos.model.urn import Urn
from lumos.sources import LakeSource, SampledSource
from lumos.store import Store
from servers.ferretdb import ferretdb
from servers.hive import HiveMetastore, hive_metastore
from servers.iceberg_rest import iceberg_catalog, nessie_server
from servers.kafka import (
    delete_subject,
    kafka_broker,
    register,
    schema_registry,
    set_compatibility,
)
from servers.mongo import mongo_server

pytestmark = pytest.mark.usefixtures("workplace")

HUSH = "hush-hush"
# Reserved words, mixed case, quotes, Unicode, and SQL.
ODD = ("select", "Mixed Case", 'it\'s "quoted"', "naïve_表", "x'); DROP TABLE users; --")


class Place(ABC):
    """Somewhere to put small tables, and the section of a configuration that leads there."""

    # What nothing that leaves Lumos may show.
    secrets: tuple[str, ...] = ()
    # Names that the system allows.
    odd_tables: tuple[str, ...] = ODD
    odd_columns: tuple[str, ...] = ODD
    max_columns = 4_000

    @abstractmethod
    def section(self, **facts: object) -> dict[str, object]: ...

    @abstractmethod
    def nowhere(self) -> dict[str, object]:
        """The section of a place that is not there."""

    @abstractmethod
    def put(self, name: str, *columns: str) -> None:
        """A table of that name with these columns of text, in place of the one that was there."""

    @abstractmethod
    def drop(self, name: str) -> None: ...


class Folder(Place):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def section(self, **facts: object) -> dict[str, object]:
        return {"type": "file", "path": str(self._folder), **facts}

    def nowhere(self) -> dict[str, object]:
        return {"type": "file", "path": str(self._folder / "nothing")}

    def put(self, name: str, *columns: str) -> None:
        self._folder.mkdir(exist_ok=True)
        (self._folder / f"{name}.csv").write_bytes(_csv(columns))

    def drop(self, name: str) -> None:
        (self._folder / f"{name}.csv").unlink()


class InBucket(Place):
    secrets = (HUSH,)

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    def section(self, **facts: object) -> dict[str, object]:
        return self._bucket.section(**facts)

    def nowhere(self) -> dict[str, object]:
        return self._bucket.section(bucket="no-such-bucket")

    def put(self, name: str, *columns: str) -> None:
        self._bucket.put(f"{name}.csv", _csv(columns))

    def drop(self, name: str) -> None:
        self._bucket.made.Object(f"{name}.csv").delete()


class InGoogle(Place):
    secrets = (HUSH, "PRIVATE KEY")

    def __init__(self, server: GcsServer) -> None:
        self._server = server

    def section(self, **facts: object) -> dict[str, object]:
        return {
            "type": "gcs",
            "bucket": "lake",
            "endpoint_url": self._server.url,
            "credentials": self._server.account(),
            **facts,
        }

    def nowhere(self) -> dict[str, object]:
        return self.section(bucket="no-such-bucket")

    def put(self, name: str, *columns: str) -> None:
        self._server.put("lake", f"{name}.csv", _csv(columns))

    def drop(self, name: str) -> None:
        self._server.drop("lake", f"{name}.csv")


class InAzure(Place):
    secrets = (HUSH, KEY)

    def __init__(self, server: AzureServer) -> None:
        self._server = server

    def section(self, **facts: object) -> dict[str, object]:
        return {
            "type": "azure",
            "container": "lake",
            "account": ACCOUNT,
            "endpoint_url": self._server.endpoint,
            "account_key": KEY,
            **facts,
        }

    def nowhere(self) -> dict[str, object]:
        return self.section(container="no-such-container")

    def put(self, name: str, *columns: str) -> None:
        self._server.containers["lake"][f"{name}.csv"] = _csv(columns)

    def drop(self, name: str) -> None:
        del self._server.containers["lake"][f"{name}.csv"]


class InHadoop(Place):
    secrets = (HUSH,)

    def __init__(self, server: HdfsServer) -> None:
        self._server = server

    def section(self, **facts: object) -> dict[str, object]:
        return {
            "type": "hdfs",
            "path": "/lake",
            "url": self._server.url,
            "token": TOKEN,
            **facts,
        }

    def nowhere(self) -> dict[str, object]:
        return self.section(path="/no/such/path")

    def put(self, name: str, *columns: str) -> None:
        self._server.put(f"/lake/{name}.csv", _csv(columns))

    def drop(self, name: str) -> None:
        del self._server.files[f"/lake/{name}.csv"]


class InDatabase(Place):
    secrets = (HUSH,)
    # As many as PostgreSQL allows.
    max_columns = 1_600

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._url = database.url.replace("lumos@", f"lumos:{HUSH}@")

    def section(self, **facts: object) -> dict[str, object]:
        return {"type": "postgres", "connection_string": self._url, **facts}

    def nowhere(self) -> dict[str, object]:
        return self.section(database="no_such_database")

    def put(self, name: str, *columns: str) -> None:
        texts = ", ".join(f"{_quoted(each)} text" for each in columns)
        self._database.run(f"DROP TABLE IF EXISTS {_quoted(name)}")
        self._database.run(f"CREATE TABLE {_quoted(name)} ({texts})")

    def drop(self, name: str) -> None:
        self._database.run(f"DROP TABLE {_quoted(name)}")


class InSqlite(Place):
    # As many as SQLite allows.
    max_columns = 2_000

    def __init__(self, folder: Path) -> None:
        self._file = folder / "shop.db"

    def _run(self, *statements: str) -> None:
        with closing(sqlite3.connect(self._file)) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()

    def section(self, **facts: object) -> dict[str, object]:
        return {"type": "sql", "connection_string": f"sqlite:///{self._file}", **facts}

    def nowhere(self) -> dict[str, object]:
        return {"type": "sql", "connection_string": f"sqlite:///{self._file}.missing"}

    def put(self, name: str, *columns: str) -> None:
        texts = ", ".join(f"{_quoted(each)} TEXT" for each in columns)
        name = _quoted(name)
        self._run(f"DROP TABLE IF EXISTS {name}", f"CREATE TABLE {name} ({texts})")

    def drop(self, name: str) -> None:
        self._run(f"DROP TABLE {_quoted(name)}")


class InMysql(Place):
    secrets = (HUSH,)
    # MyISAM's limit; InnoDB allows 1,017 columns.
    max_columns = 2_000

    def __init__(self, database: MysqlDatabase, kind: str, reader: str) -> None:
        self._database = database
        self._kind = kind
        self._url = database.address(reader, HUSH)

    def section(self, **facts: object) -> dict[str, object]:
        return {"type": self._kind, "connection_string": self._url, **facts}

    def nowhere(self) -> dict[str, object]:
        return self.section(database="no_such_database")

    def put(self, name: str, *columns: str) -> None:
        table = _quoted(name, "`")
        engine = "MyISAM" if len(columns) > 1_000 else "InnoDB"
        texts = ", ".join(f"{_quoted(each, '`')} text" for each in columns)
        self._database.run(f"DROP TABLE IF EXISTS {table}")
        self._database.run(f"CREATE TABLE {table} ({texts}) ENGINE={engine}")

    def drop(self, name: str) -> None:
        self._database.run(f"DROP TABLE {_quoted(name, '`')}")


def _csv(columns: Sequence[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, ["x"] * len(columns)])
    return text.getvalue().encode()


def _quoted(name: str, mark: str = '"') -> str:
    return f"{mark}{name.replace(mark, mark * 2)}{mark}"


class OnServer(Place):
    secrets = (HUSH,)
    # Of documents with more keys, only some are recorded, with a remark.
    max_columns = 1_900

    def __init__(self, address: str) -> None:
        self._client: MongoClient[dict[str, object]] = MongoClient(address)
        for name in self._client.list_database_names():
            self._client.drop_database(name)
        # The server knows no users, so that a secret can only be another of the driver's settings.
        self._address = f"{address}/?appName={HUSH}"

    def section(self, **facts: object) -> dict[str, object]:
        return {"type": "mongodb", "uri": self._address, **facts}

    def nowhere(self) -> dict[str, object]:
        return {"type": "mongodb", "uri": f"mongodb://nobody:{HUSH}@127.0.0.1:1/"}

    def put(self, name: str, *columns: str) -> None:
        self._client["shop"].drop_collection(name)
        self._client["shop"][name].insert_one(dict.fromkeys(columns, "x"))

    def drop(self, name: str) -> None:
        self._client["shop"].drop_collection(name)


class OnFerret(OnServer):
    # FerretDB 1.24 writes double quotes into the SQL and JSON of its own store as they are.
    odd_tables = odd_columns = tuple(name for name in ODD if '"' not in name)


class InKafka(Place):
    """Topics whose schemas are registered; the registry answers without a login."""

    odd_tables = ("select", "Mixed-Case", "drop.table_users")
    odd_columns = ("select", "MixedCase", "drop_table_users")

    def __init__(self, broker: str, registry: str) -> None:
        from confluent_kafka.admin import AdminClient

        self._broker, self._registry = broker, registry
        self._admin = AdminClient({"bootstrap.servers": broker})
        self.secrets = (HUSH,)
        for topic in self._admin.list_topics(timeout=60).topics:
            self.drop(topic)

    def section(self, **facts: object) -> dict[str, object]:
        return {
            "type": "kafka",
            "bootstrap_servers": self._broker,
            "schema_registry_url": self._registry,
            "schema_registry_user": "nobody",
            "schema_registry_password": HUSH,
            **facts,
        }

    def nowhere(self) -> dict[str, object]:
        return self.section(bootstrap_servers="127.0.0.1:1", request_timeout=2)

    def put(self, name: str, *columns: str) -> None:
        from confluent_kafka.admin import NewTopic

        fields = [{"name": each, "type": "string"} for each in columns]
        register(self._registry, f"{name}-value", {"type": "record", "name": "R", "fields": fields})
        if name not in self._admin.list_topics(timeout=60).topics:
            self._admin.create_topics([NewTopic(name, 1)])[name].result(60)

    def drop(self, name: str) -> None:
        self._admin.delete_topics([name])[name].result(60)
        with suppress(OSError):
            delete_subject(self._registry, f"{name}-value")


@pytest.fixture(scope="module")
def kafka() -> Iterator[tuple[str, str]]:
    with kafka_broker() as (broker, _), schema_registry() as registry:
        set_compatibility(registry, "NONE")
        yield broker, registry


class InGlue(Place):
    secrets = (HUSH,)

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._client = boto3.client(
            "glue",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="key-id",
            aws_secret_access_key=HUSH,
        )
        for database in self._client.get_databases()["DatabaseList"]:
            self._client.delete_database(Name=database["Name"])
        self._client.create_database(DatabaseInput={"Name": "shop"})

    def section(self, **facts: object) -> dict[str, object]:
        return {
            "type": "glue",
            "region": "us-east-1",
            "endpoint_url": self._endpoint,
            "access_key_id": "key-id",
            "secret_access_key": HUSH,
            **facts,
        }

    def nowhere(self) -> dict[str, object]:
        return self.section(endpoint_url="http://127.0.0.1:1")

    def put(self, name: str, *columns: str) -> None:
        table = {
            "Name": name,
            "TableType": "EXTERNAL_TABLE",
            "StorageDescriptor": {
                "Columns": [{"Name": each, "Type": "string"} for each in columns],
                "Location": f"s3://lake/{name}/",
            },
        }
        names = {each["Name"] for each in self._client.get_tables(DatabaseName="shop")["TableList"]}
        write = self._client.update_table if name in names else self._client.create_table
        write(DatabaseName="shop", TableInput=table)

    def drop(self, name: str) -> None:
        self._client.delete_table(DatabaseName="shop", Name=name)


class InMetastore(Place):
    secrets = (HUSH,)
    odd_tables = ("select", "mixed_case", "drop_table_users")
    # Hive's metastore stores column names in lower case.
    odd_columns = tuple(name.lower() for name in ODD)

    def __init__(self, metastore: HiveMetastore) -> None:
        self._metastore = metastore
        metastore.clear()
        metastore.create_database("shop")

    def section(self, **facts: object) -> dict[str, object]:
        return {"type": "hive", "uri": self._metastore.uri, **facts}

    def nowhere(self) -> dict[str, object]:
        return {"type": "hive", "uri": "thrift://127.0.0.1:1"}

    def put(self, name: str, *columns: str) -> None:
        self._metastore.put("shop", name, [(each, "string") for each in columns])

    def drop(self, name: str) -> None:
        self._metastore.drop("shop", name)


class InIcebergCatalog(Place):
    secrets = (HUSH,)

    def __init__(self, kind: str, address: str, endpoint: str) -> None:
        from pyiceberg.catalog.rest import RestCatalog

        self._kind = kind
        self._address = address
        self._catalog = RestCatalog("writer", uri=endpoint)
        for namespace in self._catalog.list_namespaces():
            for table in self._catalog.list_tables(namespace):
                self._catalog.drop_table(table)
            self._catalog.drop_namespace(namespace)
        self._catalog.create_namespace("shop")

    def section(self, **facts: object) -> dict[str, object]:
        return {"type": self._kind, "uri": self._address, "token": HUSH, **facts}

    def nowhere(self) -> dict[str, object]:
        return self.section(uri="http://127.0.0.1:1")

    def put(self, name: str, *columns: str) -> None:
        schema = pa.schema([(each, pa.string()) for each in columns])
        if self._kind == "nessie" and self._catalog.table_exists(("shop", name)):
            # Nessie 0.99 answers 500 to changes of schemas as pyiceberg 0.12 sends them.
            self.drop(name)
        if not self._catalog.table_exists(("shop", name)):
            self._catalog.create_table(("shop", name), schema)
            return
        with self._catalog.load_table(("shop", name)).update_schema() as update:
            update.union_by_name(schema)

    def drop(self, name: str) -> None:
        self._catalog.drop_table(("shop", name))


@pytest.fixture(scope="module")
def iceberg() -> Iterator[str]:
    with iceberg_catalog() as address:
        yield address


@pytest.fixture(scope="module")
def nessie(moto: str) -> Iterator[str]:
    session = boto3.Session("key-id", HUSH, region_name="us-east-1")
    session.resource("s3", endpoint_url=moto).Bucket("nessie").create()
    with nessie_server(endpoint=moto, bucket="nessie") as address:
        yield address


@pytest.fixture(scope="module")
def hive() -> Iterator[HiveMetastore]:
    with hive_metastore() as uri, HiveMetastore.connect(uri) as metastore:
        yield metastore


@pytest.fixture(scope="module")
def ferret() -> Iterator[str]:
    with ferretdb() as address:
        yield address


@pytest.fixture(scope="module")
def mongo() -> Iterator[str]:
    with mongo_server() as address:
        yield address


def _place(kind: str, request: pytest.FixtureRequest) -> Place:
    match kind:
        case "file":
            return Folder(request.getfixturevalue("tmp_path") / "lake")
        case "s3":
            return InBucket(request.getfixturevalue("bucket"))
        case "azure":
            return InAzure(request.getfixturevalue("servers").enter_context(AzureServer()))
        case "gcs":
            return InGoogle(request.getfixturevalue("servers").enter_context(GcsServer()))
        case "hdfs":
            return InHadoop(
                request.getfixturevalue("servers").enter_context(HdfsServer(secure=True))
            )
        case "postgres":
            return InDatabase(request.getfixturevalue("database"))
        case "glue":
            return InGlue(request.getfixturevalue("moto"))
        case "hive":
            return InMetastore(request.getfixturevalue("hive"))
        case "iceberg":
            address = request.getfixturevalue("iceberg")
            return InIcebergCatalog(kind, address, address)
        case "nessie":
            address = request.getfixturevalue("nessie")
            return InIcebergCatalog(kind, address, f"{address}/iceberg/main")
        case "mysql" | "mariadb":
            database = request.getfixturevalue("mysql_database")
            reader = request.getfixturevalue("servers").enter_context(
                database.user("GRANT REFERENCES ON {database}.* TO {user}", password=HUSH)
            )
            return InMysql(database, kind, reader)
        case "sql":
            return InSqlite(request.getfixturevalue("tmp_path"))
        case "kafka":
            return InKafka(*request.getfixturevalue("kafka"))
        case "mongodb":
            return OnServer(request.getfixturevalue("mongo"))
        case "ferretdb":
            return OnFerret(request.getfixturevalue("ferret"))
        case _:
            raise AssertionError(f"The source '{kind}' has no place to be tried on.")


@pytest.fixture
def servers() -> Iterator[ExitStack]:
    """What is closed when a test is over."""
    with ExitStack() as opened:
        yield opened


# Sources whose places take long to be made.
SLOW = {"ferretdb", "hive", "iceberg", "kafka", "mongodb", "nessie"}


@pytest.fixture(
    params=[
        pytest.param(kind, marks=pytest.mark.slow) if kind in SLOW else kind
        # FerretDB is a second server of the source mongodb.
        for kind in sorted({*plugins.names(plugins.SOURCES), "ferretdb"})
    ]
)
def place(request: pytest.FixtureRequest) -> Place:
    """A place with four tables, for each source that is installed."""
    made = _place(request.param, request)
    for name in ("orders", "users", "visits", "wares"):
        made.put(name, "id", "name")
    return made


@pytest.fixture
def warm(place: Place, request: pytest.FixtureRequest) -> Place:
    """The same, with a Spark session where one is needed."""
    if isinstance(_source(place.section()), LakeSource | SampledSource):
        request.getfixturevalue("spark")
    return place


def _source(section: dict[str, object]) -> Any:
    return create_source(_lumos(section).settings.sources[0])


def _lumos(section: dict[str, object]) -> Lumos:
    return Lumos(overrides={"sources": [section]})


def test_making_a_source_touches_nothing(place: Place) -> None:
    assert _source(place.nowhere()).identity


def test_an_instance_is_part_of_identity_and_urns(place: Place) -> None:
    source = _source(place.section(instance="eu west"))
    assert source.identity == f"{source.kind}@eu west"
    urn = source.urn("a/b/c", environment="DEV")
    assert Urn.parse(str(urn)) == urn
    assert (urn.platform, urn.instance, urn.environment) == (source.kind, "eu west", "DEV")


def test_a_place_that_is_not_there_is_refused_before_anything_is_begun(place: Place) -> None:
    with pytest.raises(MisuseError) as refused:
        _lumos(place.nowhere()).ingest()
    assert str(refused.value).count("\n") == 0
    assert not any(secret in str(refused.value) for secret in place.secrets)
    assert not Path(".lumos").exists()


def test_doctor_tells_what_works_and_what_does_not(place: Place) -> None:
    (well,) = _sources(_lumos(place.section()).settings)
    (ill,) = _sources(_lumos(place.nowhere()).settings)
    assert (well.status, ill.status) == ("ok", "failed")
    told = f"{well} {ill}"
    assert not any(secret in told for secret in place.secrets)


def test_what_is_there_is_found_once_and_known_again(warm: Place) -> None:
    lumos = _lumos(warm.section())
    discovered = lumos.discover()
    assert not Path(".lumos/lumos.db").exists()
    first = lumos.ingest()
    assert {each.urn for each in first.datasets} == {each.urn for each in discovered.datasets}
    assert {each.name.rpartition(".")[2] for each in first.datasets} == {
        "orders", "users", "visits", "wares",
    }  # fmt: skip
    assert all(Urn.parse(each.urn).platform == each.platform for each in first.datasets)
    before = lumos.store_status().rows
    again = lumos.ingest()
    assert (again.summary.datasets_new, again.summary.datasets_changed) == (0, 0)
    assert {**lumos.store_status().rows, "audit": before["audit"]} == before
    left = to_json([discovered, first, again]).decode()
    assert not any(secret in left for secret in warm.secrets)


def test_changes_are_told_once_and_what_is_gone_keeps_its_history(warm: Place) -> None:
    lumos = _lumos(warm.section())
    (users,) = (each.urn for each in lumos.ingest().datasets if "users" in each.urn)
    warm.put("users", "id", "name", "email")
    changed = {each.urn: each for each in lumos.ingest().datasets if each.change == "changed"}
    assert [(each.path, each.kind) for each in changed.pop(users).changes] == [("email", "added")]
    assert changed == {}
    warm.drop("users")
    gone = lumos.ingest()
    assert (gone.missing, gone.held) == ((users,), ())
    warm.put("users", "id", "name", "email")
    lumos.ingest()
    events = [event.type.value for event in Store.open(lumos.database).events(users)]
    assert events == ["CREATED", "SCHEMA_CHANGED", "DELETED", "RESTORED"]


def test_mass_disappearance_is_held_until_it_is_accepted(warm: Place) -> None:
    lumos = _lumos(warm.section())
    lumos.ingest()
    for name in ("orders", "users"):
        warm.drop(name)
    held = lumos.ingest()
    assert (len(held.held), held.missing) == (2, ())
    assert len(lumos.list().datasets) == 4
    accepted = lumos.ingest(accept_removals=True)
    assert (accepted.held, set(accepted.missing)) == ((), set(held.held))


def test_nobody_else_scans_the_same_place(warm: Place) -> None:
    lumos = _lumos(warm.section())
    lumos.ingest()
    store = Store.open(lumos.database)
    (scan,) = store.scans()
    with store.lock(scan.source), pytest.raises(LumosError, match="Another scan of"):
        lumos.ingest()


@pytest.mark.slow
def test_odd_names_are_only_names_and_wide_tables_are_read_whole(warm: Place) -> None:
    for name in warm.odd_tables:
        warm.put(name, *warm.odd_columns)
    wide = tuple(f"c{number}" for number in range(warm.max_columns))
    warm.put("wide", *wide)
    lumos = _lumos(warm.section())
    first = lumos.ingest()
    assert first.problems == ()
    assert len(first.datasets) == 5 + len(warm.odd_tables)
    paths = {Urn.parse(each.urn).path[-1].removesuffix(".csv") for each in first.datasets}
    assert paths == {"orders", "users", "visits", "wares", "wide", *warm.odd_tables}
    store = Store.open(lumos.database)
    for each in first.datasets:
        name = Urn.parse(each.urn).path[-1].removesuffix(".csv")
        schema = store.get(each.urn).schema
        assert schema is not None
        fields = {field.name for field in schema.fields}
        if name == "wide":
            assert set(wide) <= fields
        elif name in warm.odd_tables:
            assert set(warm.odd_columns) <= fields
    again = lumos.ingest()
    assert (again.summary.datasets_new, again.summary.datasets_changed) == (0, 0)


@pytest.mark.slow
def test_tables_that_come_and_go_during_a_scan_stop_nothing(warm: Place) -> None:
    over = Event()

    def come_and_go() -> None:
        while not over.is_set():
            warm.put("fleeting", "id")
            warm.drop("fleeting")

    lumos = _lumos(warm.section())
    with ThreadPoolExecutor(1) as threads:
        somebody = threads.submit(come_and_go)
        try:
            for _ in range(3):
                report = lumos.ingest()
                found = {each.name.rpartition(".")[2] for each in report.datasets}
                assert found - {"fleeting"} == {"orders", "users", "visits", "wares"}
                assert not {urn for urn in (*report.missing, *report.held) if "fleeting" not in urn}
        finally:
            over.set()
            somebody.result()
