"""Pages that need a server: a database, a store of objects, a catalog. All of them run on this machine."""

import json
from collections.abc import Sequence
from contextlib import closing
from functools import cached_property
from itertools import pairwise
from typing import Any
from unittest.mock import patch
from uuid import UUID

import boto3
import bson
import psycopg
import pyarrow as pa
from deltalake import write_deltalake

from azure_server import ACCOUNT, KEY, AzureServer
from catalogs import datahub_samples
from catalogs.servers.gms import TOKEN, Gms
from catalogs.servers.http import Server
from catalogs.servers.openmetadata import BOT
from catalogs.servers.openmetadata import Openmetadata as OpenmetadataStub
from databases import MysqlDatabase
from docs.set_up import SetUp
from fake_kafka import FakeCluster
from gcs_server import GcsServer
from hdfs_server import HdfsServer
from lumos.catalogs.openmetadata.platform import Openmetadata
from lumos.config.platforms import OpenmetadataPlatform
from lumos.config.secret import Secret
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Documentation, Governance
from mongo_wire import MongoWire, Served, serving
from registry_stub import RegistryStub
from server.live_server import live_server


class Postgres(SetUp):
    """The database of a shop, and what some migrations do to it."""

    def start(self) -> None:
        server = self.request.getfixturevalue("postgres").rpartition("/")[0]
        with closing(psycopg.connect(f"{server}/postgres", autocommit=True)) as connection:
            connection.execute("DROP DATABASE IF EXISTS shop WITH (FORCE)")
            connection.execute("CREATE DATABASE shop")
        address = server.rpartition("@")[2]
        self.terminal.addresses |= {
            address: "db.example.com",
            address.partition(":")[0]: "db.example.com",
        }
        self.terminal.variables["SHOP_DATABASE"] = self.url = f"{server}/shop"
        self.change(
            "CREATE SCHEMA sales", "CREATE SCHEMA analytics",
            "CREATE TYPE sales.state AS ENUM ('open', 'paid', 'sent')",
            "CREATE TABLE sales.customers (id int PRIMARY KEY, name text, tags text[])",
            "CREATE TABLE sales.orders (id bigint PRIMARY KEY, customer int, state sales.state,"
            " total numeric(10,2), placed date)",
            "INSERT INTO sales.customers SELECT n, 'Customer ' || n FROM generate_series(1, 1200) n",
            "INSERT INTO sales.orders SELECT n, 1, 'paid', 1, date '2024-01-01' + n % 700"
            " FROM generate_series(1, 45000) n",
            "CREATE VIEW sales.paid_orders AS SELECT id, total FROM sales.orders WHERE state = 'paid'",
            "CREATE MATERIALIZED VIEW analytics.revenue AS"
            " SELECT placed, sum(total) AS total FROM sales.orders GROUP BY placed",
            "ANALYZE",
        )  # fmt: skip

    def change(self, *statements: str) -> None:
        with closing(psycopg.connect(self.url, autocommit=True)) as connection:
            for statement in statements:
                connection.execute(statement)

    def some_migrations_run(self) -> None:
        self.change(
            "ALTER MATERIALIZED VIEW analytics.revenue RENAME TO daily_revenue",
            "ALTER TABLE sales.customers DROP tags, ALTER id TYPE bigint, ADD phone text",
            "ALTER TYPE sales.state ADD VALUE 'lost'",
            "CREATE OR REPLACE VIEW sales.paid_orders AS"
            " SELECT id, total FROM sales.orders WHERE state IN ('paid', 'sent')",
            "ANALYZE",
        )


class Mysql(SetUp):
    """The database of a shop in MariaDB, what migrations do to it, and who reads it."""

    def start(self) -> None:
        server = self.request.getfixturevalue("mariadb")
        self.terminal.addresses[server.rpartition("@")[2]] = "db.example.com"
        self.shop = MysqlDatabase(server, "mysql")
        # Statements of other tests are not reads of this shop.
        self.shop.run(
            "DROP DATABASE IF EXISTS shop", "CREATE DATABASE shop CHARACTER SET utf8mb4",
            "TRUNCATE TABLE performance_schema.events_statements_summary_by_digest",
        )  # fmt: skip
        self.shop = MysqlDatabase(server, "shop")
        self.terminal.variables["SHOP_DATABASE"] = self.shop.url
        self.shop.run(
            "CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(40), tags JSON)",
            "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INT, "
            "state ENUM('open', 'paid', 'sent'), total DECIMAL(10,2), placed DATE)",
            "CREATE VIEW paid_orders AS SELECT id, total FROM orders WHERE state = 'paid'",
            "CREATE TABLE visits (id BIGINT, day DATE) PARTITION BY RANGE (year(day)) "
            "(PARTITION p2026 VALUES LESS THAN (2027), PARTITION later VALUES LESS THAN MAXVALUE)",
        )

    def some_migrations_run(self) -> None:
        self.shop.run(
            "RENAME TABLE visits TO page_visits",
            "ALTER TABLE customers DROP tags, MODIFY id BIGINT, ADD phone VARCHAR(20)",
            "ALTER TABLE orders MODIFY state ENUM('open', 'paid', 'sent', 'lost')",
            "CREATE OR REPLACE VIEW paid_orders AS "
            "SELECT id, total FROM orders WHERE state IN ('paid', 'sent')",
        )

    def somebody_reads(self) -> None:
        self.shop.run(*(f"SELECT id, total FROM orders WHERE customer = {n}" for n in range(12)))


class Reconcile(SetUp):
    """A folder of Parquet files, and a Glue catalog that no longer agrees with it."""

    def start(self) -> None:
        address = self.request.getfixturevalue("moto")
        self.set_variables(
            AWS_ENDPOINT_URL_GLUE=address,
            AWS_ACCESS_KEY_ID="key-id",
            AWS_SECRET_ACCESS_KEY="secret",
        )
        self.glue = boto3.client(
            "glue", endpoint_url=address, region_name="eu-west-1",
            aws_access_key_id="key-id", aws_secret_access_key="secret",
        )  # fmt: skip
        self.glue.create_database(DatabaseInput={"Name": "shop"})
        self.opened.callback(self.glue.delete_database, Name="shop")
        self.write_parquet("lake/customers/part-0.parquet", id=[1, 2], name=["Ada", "Bob"])
        self.register("customers", "id bigint", "name string")
        self.register("clients", "id bigint", "name string", location="customers")
        for day in ("2024-05-01", "2024-05-02"):
            self.write_parquet(f"lake/orders/dt={day}/part-0.parquet", id=[1], total=[9.5])
        self.register("orders", "id bigint", "total double", keys=["dt"])
        for day in ("2024-05-01", "2024-05-03"):
            self.register_partition("orders", day)
        self.write_parquet(
            "lake/payments/part-0.parquet", id=["p-1"], amount=[3.5], method=["card"]
        )
        self.register("payments", "id bigint", "amount double")
        self.write_parquet("lake/visits/part-0.parquet", page=["/"] * 50)
        self.register("visits", "page string", numRows="10", numFiles="1")
        self.write("lake/prices/prices.csv", "sku,price", "A-1,1.50")
        self.register("prices", "sku string", "price double")
        self.register("refunds", "id bigint")
        self.write_parquet("lake/carts/part-0.parquet", id=[1])
        self.register("archive", "id bigint", location="/archive/orders")

    def storage(self, location: str, columns: Sequence[str]) -> dict[str, Any]:
        serde = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
        return {
            "Columns": [dict(zip(("Name", "Type"), each.split(), strict=True)) for each in columns],
            "Location": f"file:{self.folder / 'lake' / location}",
            "SerdeInfo": {"SerializationLibrary": serde},
        }

    def register(
        self,
        name: str,
        *columns: str,
        location: str = "",
        keys: Sequence[str] = (),
        **parameters: str,
    ) -> None:
        self.glue.create_table(
            DatabaseName="shop",
            TableInput={
                "Name": name,
                "TableType": "EXTERNAL_TABLE",
                "Parameters": parameters,
                "PartitionKeys": [{"Name": key, "Type": "string"} for key in keys],
                "StorageDescriptor": self.storage(location or name, columns),
            },
        )

    def register_partition(self, table: str, day: str) -> None:
        self.glue.create_partition(
            DatabaseName="shop",
            TableName=table,
            PartitionInput={
                "Values": [day],
                "StorageDescriptor": self.storage(f"{table}/dt={day}", ()),
            },
        )


class Kafka(SetUp):
    """Two topics of a shop. The cluster is a fake in memory and the registry is a stub."""

    def start(self) -> None:
        self.cluster = FakeCluster()
        self.opened.enter_context(
            patch("lumos.sources.kafka.source.KafkaCluster", lambda _: self.cluster)
        )
        self.registry = self.opened.enter_context(RegistryStub())
        self.terminal.addresses |= {
            self.registry.url: "http://registry.example.com:8081",
            self.cluster.address: "kafka://broker.example.com:9092",
        }
        self.terminal.variables["KAFKA_SERVERS"] = "broker:9092"
        self.cluster.add("events.orders", *[b""] * 1200)
        self.cluster.add(
            "events.visits", *[json.dumps({"page": "/", "ms": n}).encode() for n in range(300)]
        )
        self.cluster.committed = {
            group: {"events.orders": 100} for group in ("billing", "search-index")
        }
        self.registry.register("events.orders-key", '"string"')
        self.register("long")
        coupon = {
            "name": "coupon",
            "type": ["null", "string"],
            "default": None,
            "doc": "What the customer typed.",
        }
        self.coupon = [coupon]
        self.register("long", coupon)

    def register(self, type_of_id: str, *more: dict[str, Any]) -> None:
        fields = [{"name": "id", "type": type_of_id}, {"name": "amount", "type": "double"}, *more]
        self.registry.register(
            "events.orders-value",
            {
                "type": "record",
                "name": "Order",
                "doc": "An order of the web shop.",
                "fields": fields,
            },
        )

    def a_producer_registers_text_as_id(self) -> None:
        self.register("string", *self.coupon)


class Mongodb(SetUp):
    """Orders, customers and visits of a shop; they are served over MongoDB's wire protocol."""

    def start(self) -> None:
        self.wire = MongoWire({"shop": {"orders": self.orders(800), "customers": self.customers(tags=["new"]),
                                        "visits": Served([{"_id": n, "page": "/"} for n in range(300)])}})  # fmt: skip
        address = self.opened.enter_context(serving(self.wire))
        self.terminal.variables["SHOP_MONGO"] = address
        self.terminal.addresses[address.removeprefix("mongodb://")] = "db.example.com"

    def orders(self, count: int, **more: Any) -> Served:
        lines = [{"sku": "A-1", "count": 2, "price": bson.Decimal128("1.50")}]
        documents = [
            {"_id": bson.ObjectId(f"{n:024x}"), "number": n, "customer": {"name": "Ada", "email": "a@b.example"},
             "lines": lines, "total": 3.5, **({"coupon": n if n % 8 else "X"} if n % 4 == 0 else {})}
            for n in range(count)
        ]  # fmt: skip
        documents += (
            [{**each, "_id": bson.ObjectId(), **more} for each in documents] if more else []
        )
        return Served(documents, identity=UUID(int=7))

    def customers(self, **more: Any) -> Served:
        return Served([{"_id": n, "name": "Ada", **more} for n in range(90)], identity=UUID(int=8))

    def the_app_changes(self) -> None:
        self.wire.databases["shop"] |= {
            "orders": self.orders(800, number="4711", channel="app"),
            "customers": self.customers(),
        }

    def the_server_asks_for_a_password(self) -> None:
        self.wire.refuse("saslStart", 18, "Authentication failed.")


class Stores(SetUp):
    """One small lake in three stores."""

    def start(self) -> None:
        gcs = self.opened.enter_context(GcsServer({"lake": dict(self.lake)}))
        self.write("keys/reader.json", gcs.account())
        source = ("  - type: gcs", "    buckets: [lake]", f"    endpoint_url: {gcs.url}",
                  "    credentials_file: keys/reader.json")  # fmt: skip
        self.write("sources.yaml", "sources:", *source)
        self.write("lumos.yaml", "sources:", *source)

    @cached_property
    def lake(self) -> dict[str, bytes]:
        """What lies in each of them: Parquet, CSV and a Delta table."""
        folder = self.folder / "lake"
        for day in (1, 2):
            numbers = list(range(300))
            self.write_parquet(
                f"lake/raw/orders/dt=2024-05-0{day}/part-0.parquet", id=numbers, total=numbers
            )
        self.write("lake/ref/customers.csv", "id,name", "1,Ada", "2,Bob")
        write_deltalake(folder / "tables/events", pa.table({"id": [1, 2, 3]}))
        files = [file for file in folder.rglob("*") if file.is_file()]
        return {str(file.relative_to(folder)): file.read_bytes() for file in files}

    def there_is_an_account_of_azure(self) -> None:
        azure = self.opened.enter_context(AzureServer({"lake": dict(self.lake)}))
        account = f"AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={azure.endpoint}"
        self.set_variables(AZURE_STORAGE_CONNECTION_STRING=account)

    def there_is_a_cluster(self) -> None:
        files = {f"/lake/{path}": data for path, data in self.lake.items()}
        nodes = [
            self.opened.enter_context(HdfsServer(files, standby=each)) for each in (True, False)
        ]
        # Both know the same files.
        nodes[1]._ids = nodes[0]._ids
        self.nodes = nodes
        urls = ", ".join(node.url for node in nodes)
        self.write("hdfs.yaml", "sources:", "  - type: hdfs", "    paths: [/lake]", "    nameservice: cluster",
                   f"    urls: [{urls}]", "    user: lumos", "state_uri: hdfs://cluster/state")  # fmt: skip

    def the_other_node_becomes_active(self) -> None:
        self.nodes[0].standby, self.nodes[1].standby = False, True


class Platforms(SetUp):
    """A lake of two files, a metadata file that others wrote, and a server of DataHub."""

    def start(self) -> None:
        self.write("lake/customers.csv", "id,name", "1,Ada")
        self.write_parquet("lake/orders/part-0.parquet", order_id=[1, 2], total=[9.5, 3.0])
        self.write("warehouse.json", json.dumps(datahub_samples.estate()))
        server = self.opened.enter_context(Server(Gms()))
        self.terminal.addresses[server.address] = "https://gms.example.com"
        self.terminal.variables |= {"DATAHUB_TOKEN": TOKEN, "DATAHUB_GMS_TOKEN": TOKEN}


class PlatformMigration(SetUp):
    """A DataHub that others filled with the tables of a shop, and an OpenMetadata with one table."""

    def start(self) -> None:
        self.gms = Gms()
        stub = OpenmetadataStub()
        for name, application, shown in (("DH", self.gms, 8080), ("OM", stub, 8081)):
            server = self.opened.enter_context(Server(application))
            self.terminal.addresses[server.address] = f"http://127.0.0.1:{shown}"
            self.terminal.variables[f"{name}_TOKEN"] = TOKEN if name == "DH" else BOT
        settings = OpenmetadataPlatform(server=server.address, auth_token=Secret(BOT))
        self.openmetadata = self.opened.enter_context(closing(Openmetadata(settings)))
        tags = Governance(tags=("PII.Sensitive", "Tier.Tier1"))
        urn = "lumos://mysql@mysql_crm/crm/leads"
        self.openmetadata.put(
            CatalogEntry(urn=urn, name="leads", platform="mysql", governance=tags)
        )
        self.hold(TABLES[0], tags=["sensitive"])
        for before, name in pairwise(TABLES):
            self.hold(
                name, made_from=[before] if name in MARTS else [], tags=["tier-1"] * (name in MARTS)
            )
        self.gms.hold("urn:li:glossaryTerm:Order", {"glossaryTermInfo": {
            "definition": "What somebody bought", "termSource": "INTERNAL", "name": "Order"}})  # fmt: skip
        self.gms.hold("urn:li:corpuser:jane.smith", {"corpUserInfo": {
            "active": True, "displayName": "Jane Smith", "email": "jane@shop.example"}})  # fmt: skip

    def hold(
        self, name: str, *, made_from: Sequence[str] = (), tags: Sequence[str] = (), **words: str
    ) -> None:
        """A table of Snowflake, as another program wrote it to DataHub."""
        stamp = {"time": 0, "actor": "urn:li:corpuser:airflow"}
        column = {"fieldPath": "ID", "type": {"type": {"com.linkedin.schema.StringType": {}}},
                  "nativeDataType": "VARCHAR"}  # fmt: skip
        schema = {"schemaName": name, "platform": "urn:li:dataPlatform:snowflake", "version": 0, "hash": "",
                  "platformSchema": {"com.linkedin.schema.OtherSchema": {"rawSchema": ""}},
                  "fields": [column]}  # fmt: skip
        edges = [
            {"dataset": _snowflake(each), "type": "TRANSFORMED", "auditStamp": stamp}
            for each in made_from
        ]
        self.gms.hold(_snowflake(name), {
            "schemaMetadata": schema, "datasetProperties": {"name": name, **words},
            "globalTags": {"tags": [{"tag": f"urn:li:tag:{tag}"} for tag in tags]},
            "ownership": {"owners": [{"owner": "urn:li:corpuser:jane.smith", "type": "TECHNICAL_OWNER"}],
                          "lastModified": stamp},
            **({"upstreamLineage": {"upstreams": edges}} if edges else {}),
        })  # fmt: skip

    def people_work_in_both(self) -> None:
        urn = "lumos://snowflake/SHOP/PUBLIC/STORES"
        entry = self.openmetadata.get(urn)
        assert entry is not None
        words = Documentation(description="All shops that are open")
        self.openmetadata.put(CatalogEntry(**{**_aspects(entry), "documentation": words}))
        self.hold("STORES", tags=["raw"], description="Shops, by address")
        self.hold("RETURNS", made_from=["ORDERS"])

    def the_sources_are_there(self) -> None:
        self.write("lake/orders.csv", "id,total", "1,9.5")
        self.terminal.variables |= {
            "SHOP_DATABASE": "postgresql://127.0.0.1:1/shop",
            "SNOWFLAKE_ACCOUNT": "acme",
        }


MARTS = ("REVENUE", "CHURN", "BASKETS", "FUNNEL", "ROI", "KPIS")
TABLES = ("ORDERS", "CUSTOMERS", "ITEMS", "STORES", "PRICES", "REFUNDS", "CARTS", "VISITS", *MARTS)


def _snowflake(name: str) -> str:
    return f"urn:li:dataset:(urn:li:dataPlatform:snowflake,SHOP.PUBLIC.{name},PROD)"


def _aspects(entry: CatalogEntry) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in entry.__struct_fields__}


class ApiServer(SetUp):
    """Two datasets, and a server on its default port."""

    def start(self) -> None:
        at = "2024-01-08T12:00:00"
        self.record("lumos://file/lake/orders", "id INT64\namount DECIMAL(9,2)", at)
        self.record("lumos://file/lake/customers", "id INT64\nemail STRING", at)
        server = self.opened.enter_context(live_server(self.folder))
        self.terminal.addresses[server.url] = "http://127.0.0.1:8765"
