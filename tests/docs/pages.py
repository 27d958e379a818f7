"""The set-up of each page that needs one, in the order of what it is about."""

import gzip
import importlib
import json
import os
import random
import shutil
import sqlite3
import sys
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import boto3
import fastavro
import msgspec
import pyarrow as pa
from alembic import command
from alembic.config import Config
from deltalake import CommitProperties, DeltaTable, write_deltalake
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.types import StringType

from cost.meters.spark_logs import HOUR, START, added, ended, started, written
from docs.pages_with_servers import (
    ApiServer,
    Kafka,
    Mongodb,
    Mysql,
    PlatformMigration,
    Platforms,
    Postgres,
    Reconcile,
    Stores,
)
from docs.set_up import SetUp
from formats.tables.hudi_tables import table_of
from lumos import Lumos
from lumos.catalogs.datahub.file_platform import DatahubFile
from lumos.discovery.watch_status import EventCounts, EventStatus, WatchStatusFiles
from lumos.model.dataset import Documentation, Owner, Ownership
from lumos.storage import DEFAULT_ACCESS
from lumos.store import Store
from lumos.store.database import REVISIONS, Database, FileLocks
from recorded_lake import RecordedLake
from schema_histories import record
from webhook import webhook

PROJECT = Path(__file__).parents[2]


class SqlSources(SetUp):
    """A shop in a SQLite file."""

    def start(self) -> None:
        self.change(
            "CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR(40) NOT NULL)",
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INT REFERENCES customers, "
            "total DECIMAL(10,2), placed DATE)",
            "CREATE TABLE notes (id INTEGER, text TEXT)",
            "CREATE VIEW large_orders AS SELECT id, customer, total FROM orders WHERE total > 100",
        )

    def change(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.folder / "shop.db")) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()

    def some_changes(self) -> None:
        self.change(
            "ALTER TABLE orders DROP COLUMN placed",
            "ALTER TABLE customers ADD COLUMN phone TEXT",
            "DROP VIEW large_orders",
            "CREATE VIEW large_orders AS SELECT id, total FROM orders WHERE total > 200",
        )


class QuickStart(SetUp):
    """The page makes its lake itself; all else goes wrong on purpose."""

    def java_is_removed(self) -> None:
        self.path = self.terminal.variables["PATH"]
        self.terminal.variables["PATH"] = str(self.terminal.commands)
        self.terminal.in_process = False

    def java_is_installed(self) -> None:
        self.terminal.variables["PATH"] = self.path
        self.terminal.in_process = True

    def another_scan_begins(self) -> None:
        locks = FileLocks(self.folder / ".lumos/lumos.locks")
        self.other = self.opened.enter_context(ExitStack())
        self.other.enter_context(locks.hold(f"file:{self.folder}/shop"))

    def the_other_scan_ends(self) -> None:
        self.other.close()

    def another_program_writes(self) -> None:
        self.other = self.opened.enter_context(ExitStack())
        # Thirty seconds of waiting show nothing more.
        waiting = {"busy_seconds": 0.1}
        self.other.enter_context(patch.dict(Database.sqlite.__kwdefaults__, waiting))
        connection = sqlite3.connect(self.folder / ".lumos/lumos.db", isolation_level=None)
        self.other.enter_context(closing(connection)).execute("BEGIN IMMEDIATE")

    def the_store_is_of_the_first_revision(self) -> None:
        self.other.close()
        (self.folder / ".lumos").rename(self.folder / "kept")
        file = self.folder / ".lumos/lumos.db"
        file.parent.mkdir()
        file.touch()
        config = Config()
        config.set_main_option("script_location", "lumos.store:migrations")
        with Database.sqlite(file).writing() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, REVISIONS[0])

    def the_store_is_of_a_later_revision(self) -> None:
        with closing(sqlite3.connect(self.folder / ".lumos/lumos.db")) as connection, connection:
            connection.execute("UPDATE alembic_version SET version_num = '0099'")

    def the_store_is_back(self) -> None:
        shutil.rmtree(self.folder / ".lumos")
        (self.folder / "kept").rename(self.folder / ".lumos")


class Configuration(SetUp):
    """Some configurations that the page speaks of and does not show."""

    def start(self) -> None:
        self.write(
            "shop.yaml", "sources:", "  - type: postgres", "    connection_string: ${SHOP_DB}"
        )
        self.write("lake.yaml", "sources:", "  - type: snowflake", "    account: acme")
        self.write("switches.yaml", "features: {cost_attribution: false}")
        self.there_is_a_file()

    def there_is_a_file(self) -> None:
        self.write("lumos.yaml", "sources:", "  - type: file", "    path: data")

    def there_is_no_file(self) -> None:
        (self.folder / "lumos.yaml").unlink()

    def more_files_are_wrong(self) -> None:
        self.write("wrong/1.yaml", "sources:", "\t- type: file")
        self.write("wrong/2.yaml", "sources: []", "sources: []")
        self.write("wrong/3.yaml", "sources:", "  - type: file", "    path: a", "    paths: [b]")
        self.write("wrong/4.yaml", "sources:", "  - type: file")
        self.write("wrong/5.yaml", "scan:", "  max_removed_share: '0.5'")
        self.write("wrong/6.yaml", "cloud_version_prefix: v2")
        self.write("wrong/7.yaml", "- type: file")


class SchemaTracking(SetUp):
    """Two datasets, one of them with three versions; later a repository with a branch."""

    def start(self) -> None:
        events = "event_id STRING NOT NULL\nat TIMESTAMP(us)\npage STRING\nreferrer STRING\n"
        urn = "lumos://file/lake/user_events"
        self.record(urn, f"{events}user_id STRING", "2023-06-01T10:00:41")
        orders = "order_id INT64 NOT NULL\namount INT32\ndiscount DECIMAL(9,2)\nstatus STRING"
        self.record("lumos://file/lake/orders", orders, "2023-06-01T10:00:41")
        self.record(urn, f"{events}user_id STRING\nsession_id STRING", "2023-09-15T14:30:08")
        self.record(urn, f"{events}user_id INT64\nsession_id STRING", "2024-01-10T09:00:12")

    def a_day_passes(self) -> None:
        self.run("lumos export --output monday.json")
        shutil.copytree(self.folder / ".lumos", self.folder / "later")
        schema = "order_id INT64 NOT NULL\namount INT64\nstatus STRING"
        later = Store.open(Database.sqlite(self.folder / "later/lumos.db"))
        record(later, "lumos://file/lake/orders", schema, datetime.now(UTC))
        self.run("lumos export --store later/lumos.db --output tuesday.json")

    def somebody_proposes_a_table(self) -> None:
        columns = ("order_id BIGINT NOT NULL", "amount   DECIMAL(12,2)", "discount DECIMAL(9,2)",
                   "status   STRING", "channel  STRING")  # fmt: skip
        self.write("proposed.sql", "CREATE TABLE orders (", "  " + ",\n  ".join(columns), ");")

    def a_branch_changes_orders(self) -> None:
        git = "git -c user.name=jane -c user.email=jane@example.com"
        self.run("git init --quiet --initial-branch main . && git add schemas")
        self.run(f"{git} commit --quiet -m 'Schemas of the lake' && git switch --quiet -c feature")
        self.run("sed -i '/discount/d; s/amount INT32/amount INT64/' schemas/file/orders.schema")
        self.run(f"{git} commit --quiet -a -m 'Drop the discount'")


class Gate(SetUp):
    """A repository with a schema and two models, and a branch that breaks both."""

    def start(self) -> None:
        users = ("# urn: lumos://s3/lake/users", "user_id STRING", "email STRING")
        self.write("schemas/users.schema", *users)
        query = ("-- owner: analytics-team", "select user_id, email, lower(email) as login",
                 "from users", "where user_id <> ''")  # fmt: skip
        self.write("models/customer_360.sql", *query)
        self.write("models/logins.sql", "select login", "from customer_360")
        git = "git -c user.name=jane -c user.email=jane@example.com"
        self.run("git init --quiet --initial-branch main . && git add .")
        self.run(f"{git} commit --quiet -m 'Models' && git switch --quiet -c feature")
        self.write("schemas/users.schema", users[0], "user_id INT64", users[2])
        self.write("models/customer_360.sql", query[0], "select user_id, email", *query[2:])
        self.run(f"{git} commit --quiet -a -m 'Make user_id a number'")


class Versioning(SetUp):
    """Two datasets over some hours, and three models that read one of them."""

    def start(self) -> None:
        lumos = Lumos(overrides={"storage.path": str(self.folder / ".lumos/lumos.db")})
        self.seen = seen = RecordedLake(lumos)
        seen.start = datetime.now(UTC) - timedelta(hours=12)
        clicks, orders = "user_id STRING\npage STRING", "order_id INT64\namount FLOAT64"
        seen.see_all(["clicks"], clicks)
        seen.see_all(["orders"], f"{orders}\ndiscount FLOAT64")
        for name, owner in (("sessions", "analytics-team"), ("features", "ml-platform")):
            query = f"create table {name} as select user_id from clicks where user_id = '7'"
            self.write(f"models/{name}.sql", f"-- Owner: {owner}", query)
        self.run("lumos lineage ingest models")
        seen.see("clicks", f"{clicks}\nsession_id STRING")
        seen.see("clicks", f"{clicks}\nsession_id STRING")
        seen.see("orders", orders)
        seen.see("clicks", "user_id INT64\npage STRING\nsession_id STRING")
        seen.lose("orders")

    def the_pipelines_are_in_a_repository(self) -> None:
        self.run("git init --quiet --initial-branch main . && git add models")
        self.run("git config user.name jane && git config user.email jane@example.com")
        self.run("git commit --quiet -m 'Models'")


class Cost(SetUp):
    """The web shop of `make demo-cost`."""

    def start(self) -> None:
        with patch.object(sys, "path", [str(PROJECT / "demo"), *sys.path]):
            estate = importlib.import_module("estate")
        estate.create(self.folder, today=datetime.now(UTC).date())
        self.run("lumos ingest")
        self.run("lumos lineage ingest openlineage.ndjson")
        self.run("lumos usage ingest usage.csv")
        self.run("lumos enrich enrich.yaml")
        self.run("lumos cost ingest metering.csv")
        day = datetime.now(UTC).date()
        for _ in range(4):
            day = day.replace(day=1) - timedelta(days=1)
            self.run(f"lumos cost record --period {day:%Y-%m}")


class Impact(SetUp):
    """Events and accounts, and three models that read them."""

    def start(self) -> None:
        at, events = "2024-01-08T09:00:00", "lumos://bigquery/user_events"
        self.schema = "user_id {} NOT NULL\nsession_id STRING\nat TIMESTAMP(us)"
        self.record(events, self.schema.format("STRING"), at)
        self.record("lumos://bigquery/user_accounts", "user_id STRING NOT NULL\nplan STRING", at)
        for urn, schema in (
            ("user_sessions", "user_id STRING\nplan STRING\nstarted_at TIMESTAMP(us)"),
            ("feature_store/user_features", "user_id STRING\nevents INT64"),
            ("reporting/daily_users", "day DATE\nuser STRING"),
        ):
            self.record(f"lumos://bigquery/{urn}", schema, at)
        shutil.copytree(self.folder / ".lumos", self.folder / "earlier/.lumos")
        self.write("models/user_sessions.sql", "-- Owner: analytics-team",
                   "create or replace table user_sessions as",
                   "select e.user_id, a.plan, min(e.at) as started_at",
                   "from user_events e", "join user_accounts a",
                   "  on a.user_id = e.user_id", "group by e.user_id, a.plan")  # fmt: skip
        self.write("models/user_features.sql", "-- Owner: ml-platform",
                   "insert into feature_store.user_features (user_id, events)",
                   "select", "  e.user_id,", "  count(*) as events", "from user_events e",
                   "group by e.user_id")  # fmt: skip
        self.write("models/daily_users.sql", "-- Owner: bi-team",
                   "create or replace table reporting.daily_users as",
                   "select distinct date(at) as day,", "  cast(user_id as string) as user",
                   "from user_events")  # fmt: skip
        self.run("lumos lineage ingest models --dialect bigquery")

    def a_scan_finds_the_change(self) -> None:
        schema = self.schema.format("INT64")
        self.record("lumos://bigquery/user_events", schema, "2024-01-10T09:00:00")

    def the_change_is_taken_back(self) -> None:
        schema = self.schema.format("STRING")
        self.record("lumos://bigquery/user_events", schema, "2024-01-11T09:00:00")


class Lineage(SetUp):
    """A lake of two files; the page shows the models."""

    def start(self) -> None:
        self.write("lake/orders.csv", "id,customer_id,amount,country", "1,7,9.5,de")
        self.write("lake/customers.csv", "id,name", "7,Ada")
        self.run("lumos ingest lake")

    def queries_are_named_by_folders(self) -> None:
        self.write("sql/sales/totals/query.sql", "select sum(amount) as total from orders")
        self.write("reports/report.sql", "create table report as",
                   "select o.id, s.name from orderz o join suppliers s on o.id = s.id")  # fmt: skip

    def events_are_in_a_database(self) -> None:
        self.write("events/sessions.sql", "create table analytics.sessions as",
                   "select user_id, min(e.ts) as started_at from raw.events e group by user_id;")  # fmt: skip
        self.write("events/daily.sql", "create table analytics.daily as",
                   "select cast(started_at as date) as day, count(*) as sessions",
                   "from analytics.sessions group by 1;")  # fmt: skip
        self.run("lumos lineage ingest events --dialect postgres")


class Shop(SetUp):
    """A lake with orders and their items, clicks, and a file that nobody needs."""

    def start(self) -> None:
        self.orders("email")
        self.write_parquet("lake/sales/items/part-0.parquet", order_id=[1], sku=["A-1"])
        page = pa.array([{"url": "/"}], pa.struct([("url", pa.string())]))
        at = pa.array([0], pa.timestamp("us"))
        clicks = {"cust_id": [7], "page": page, "click_ts": at}
        self.write_parquet("lake/raw/events/clicks/part-0.parquet", **clicks)
        self.write("lake/tmp/scratch.csv", "a,b", "1,2")
        self.run("lumos ingest lake")

    def orders(self, *more: str) -> None:
        columns = {
            "order_id": [1],
            "cust_id": [7],
            "total": [9.5],
            **{name: ["x"] for name in more},
        }
        self.write_parquet("lake/sales/orders/part-0.parquet", **columns)


class Enrichment(Shop):
    """Later the file is wrong, and a column is gone."""

    def a_name_is_misspelled(self) -> None:
        self.kept = (self.folder / "enrich.yaml").read_text(encoding="utf-8")
        wrong = self.kept.replace("sales/orders", "sales/order")
        (self.folder / "enrich.yaml").write_text(wrong, encoding="utf-8")

    def orders_lose_their_addresses(self) -> None:
        (self.folder / "enrich.yaml").write_text(self.kept, encoding="utf-8")
        self.orders()
        self.run("lumos ingest lake")

    def clicks_are_owned(self) -> None:
        self.run("lumos owner add streaming --group")
        self.run("lumos owner assign clicks streaming")


class OwnersOfAShop(Shop):
    """And a file that names owners."""

    def there_is_a_file_of_owners(self) -> None:
        self.write("CODEOWNERS", "# Everything else", "*                    @acme/data-platform",
                   "/lake/sales/         @acme/sales-analytics jane@example.com",
                   "/lake/raw/events/    @acme/streaming", "/lake/tmp/")  # fmt: skip


class Hints(SetUp):
    """Logs in three folders, two versions of orders, three exports."""

    def start(self) -> None:
        for log in ("app", "pos", "web"):
            for day in (1, 2):
                self.write(f"lake/raw/{log}_log/2024-05-0{day}/x.csv", "at,text", f"{day},a")
        self.write("lake/raw/orders_v1/a.csv", "id,total", "1,2")
        self.write("lake/raw/orders_v2/a.csv", "id,total,sku", "1,2,3")
        for number in range(3):
            self.write(f"lake/exports/table{number}.csv", f"a,{'bcd'[number]}", "1,2")
        self.write("lumos.yaml", "# Where Lumos looks.", "sources:", "  - type: file",
                   "    path: lake      # the landing zone")  # fmt: skip


class Grouping(SetUp):
    """Eight kinds of events with the same columns."""

    def start(self) -> None:
        for name in (
            "bought",
            "came",
            "cart_viewed",
            "clicked",
            "left",
            "paid",
            "searched",
            "shared",
        ):
            self.write(f"lake/events/{name}/2024-05-01.csv", "at,user_id,session_id", "9,7,3")


class Usage(SetUp):
    """Four tables, and a hundred days of queries."""

    def start(self) -> None:
        at = "2024-01-08T09:00:00"
        order = (
            "id INT64\ncustomer_id INT64\nday DATE\namount FLOAT64\nnote STRING\ndiscount FLOAT64"
        )
        people = "id INT64\nname STRING\nemail STRING\nphone STRING"
        for name, schema in (
            ("orders", order),
            ("customers", people),
            ("refunds", order),
            ("legacy_orders", order),
        ):
            self.record(f"lumos://file/lake/sales/{name}", schema, at)
        today = datetime.now(UTC).replace(hour=6, minute=0, second=0, microsecond=0)
        queries = [
            ("dashboard", 1, "select day, sum(amount) from sales.orders group by day"),
            ("ann@example.com", 2, "select o.id, o.amount, c.name, c.email from sales.orders o"
             " join sales.customers c on o.customer_id = c.id"),
            ("etl", 7, "insert into mart.notes select id, amount, note from sales.orders"),
            ("bob@example.com", 8, "select sum(amount) from finance.ledger"),
            ("bob@example.com", 25, "selec 1"),
        ]  # fmt: skip
        lines = [
            f'{today - timedelta(days=days)},{user},{bytes},{10 * every},"{query}"'
            for user, every, query in queries
            for days in range(1, 101, every)
            for bytes in [50_000_000]
        ]
        self.write("queries.csv", "timestamp,user,bytes,rows,sql", *lines)


class CostInputs(SetUp):
    """Data that is licensed, work that has no price yet, logs of Spark and a run of dbt."""

    def start(self) -> None:
        self.record(
            "lumos://file/lake/market_data", "symbol STRING\nprice FLOAT64", "2024-01-08T09:00:00"
        )
        self.write(
            "lumos.yaml", "cost_model:", "  compute:", "    spark: {cost_per_core_hour: 0.15}"
        )
        self.write("work.csv", "job,period,engine,quantity,unit",
                   "enrich,2024-01,flink,12,core_hour", "load,2024-01,emr,6,instance_hour")  # fmt: skip
        self.run("lumos cost ingest work.csv")
        for number in range(3):
            at = START + 24 * number * HOUR
            events = (
                started(id=f"app-{number}", at=at),
                added("1", cores=4, at=at),
                ended(at + HOUR),
            )
            written(self.folder / f"events/app-{number}", *events)
        node = {"status": "success", "unique_id": "model.shop.totals", "execution_time": 600.0,
                "adapter_response": {}, "timing": [{"name": "execute",
                "started_at": "2024-01-31T06:00:00Z", "completed_at": "2024-01-31T06:10:00Z"}]}  # fmt: skip
        about = {
            "dbt_schema_version": "https://schemas.getdbt.com/dbt/run-results/v6.json",
            "invocation_id": "run-1",
            "generated_at": "2024-01-31T06:10:00Z",
        }
        run = {"metadata": about, "results": [node], "elapsed_time": 600.0, "args": {}}
        self.write("target/run_results.json", json.dumps(run))


class AutomaticDetection(SetUp):
    """A lake that is watched, two models that read it, and two webhooks, of which one is down."""

    def start(self) -> None:
        self.team, self.oncall = (self.opened.enter_context(webhook()) for _ in range(2))
        self.oncall.status = 503
        self.terminal.variables |= {
            "DATA_TEAM_CHAT": self.team.address(),
            "ONCALL_CHAT": self.oncall.address(),
        }
        for name, owner in (("sessions", "analytics-team"), ("user_features", "ml-platform")):
            query = f"create table {name} as select user_id from user_events where user_id = '7'"
            self.write(f"models/{name}.sql", f"-- Owner: {owner}", query)
        self.events(1, user_id=["7"])

    def events(self, day: int, **columns: Any) -> None:
        path = f"lake/raw/events/user_events/dt=2024-05-0{day}/part-0.parquet"
        self.write_parquet(path, event_id=["a"], **columns)

    def a_writer_adds_a_column(self) -> None:
        self.run("lumos lineage ingest models")
        self.events(2, user_id=["7"], session_id=["s"])

    def a_writer_changes_a_type(self) -> None:
        self.events(3, user_id=[7], session_id=["s"])

    def the_team_reads_a_message(self) -> None:
        (message,) = self.team.wait_for(1)
        self.write("message.txt", message["title"], "", message["message"])

    def the_webhook_is_back(self) -> None:
        self.oncall.status = 200

    def a_bucket_was_watched(self) -> None:
        counts = EventCounts(received=4209, events=4211, foreign=3, malformed=1)
        WatchStatusFiles(str(self.folder / ".lumos/lumos.state"), DEFAULT_ACCESS).write(
            EventStatus(name="lumos-s3-events-lake", sources=("s3://lake",), lag_p95_seconds=1.9,
                        waiting=0, dead=1, counts=counts)
        )  # fmt: skip


class Discovery(SetUp):
    """A lake of several formats, with a wrong name and a file that was cut off."""

    def start(self) -> None:
        self.day(1)
        self.day(2)
        accounts = {"type": "record", "name": "account", "fields": [
            {"name": "id", "type": "long"}, {"name": "name", "type": "string"},
            {"name": "country", "type": ["null", "string"]}]}  # fmt: skip
        (self.folder / "lake/crm").mkdir()
        with (self.folder / "lake/crm/accounts.avro").open("wb") as file:
            rows = [{"id": n, "name": "Ada", "country": None} for n in (1, 2)]
            fastavro.writer(file, accounts, rows)
        self.write_parquet("lake/export/stock.csv", sku=["A", "B"], count=[1, 2])
        self.write("lake/inbox/upload.parquet", "PAR1 this upload was cut off")
        self.write("lake/ref/customers.csv", "id,name,postcode,since", "1,Ada,01067,2023-04-01")
        (self.folder / "lake/ref/logo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(32))
        self.write("lake/README.md", "# The lake")

    def day(self, number: int, last: str = "coupon") -> None:
        numbers = list(range(300))
        for part in (0, 1):
            path = f"lake/raw/orders/dt=2024-05-0{number}/part-0000{part}.parquet"
            columns = {"order_id": numbers, "amount": [1.5] * 300, last: ["x"] * 300}
            self.write_parquet(path, **columns)
        clicks = self.folder / f"lake/raw/clicks/2024/05/0{number}/clicks.json.gz"
        clicks.parent.mkdir(parents=True)
        clicks.write_bytes(
            gzip.compress(b'{"user": 7, "page": {"url": "/"}, "n": 1.5}\n' * 40, mtime=0)
        )
        self.write(f"lake/ref/rates_2024050{number}.csv", "currency;rate", "NOK;11.7", "SEK;11.6")

    def a_day_passes(self) -> None:
        self.day(3, "channel")


class Lake(SetUp):
    """A small lake of a shop, scanned once, and what a week changes in it."""

    def start(self) -> None:
        self.write_parquet("lake/processed/orders/orders_2024-01.parquet", order_id=[1], customer_id=[7],
                           amount=[9.5], quantity=pa.array([2], pa.int32()), discount=[0.5])  # fmt: skip
        self.write_parquet(
            "lake/raw/events/user_clicks/day=01/part-0.parquet", user_id=["7"], page=["/"]
        )
        self.write("lake/reference/customers.csv", "customer_id,name", "7,Ada")
        self.write("lake/reference/rates_20240101.csv", "currency;rate", "NOK;11.7")
        self.run("lumos ingest lake")

    def a_week_passes(self) -> None:
        self.write_parquet("lake/processed/orders/orders_2024-02.parquet", order_id=[2], customer_id=[7],
                           amount=[9.5], quantity=pa.array([2], pa.int64()))  # fmt: skip
        self.write_parquet("lake/raw/events/user_clicks/day=02/part-0.parquet", user_id=[7], page=["/"],
                           session_id=["s"])  # fmt: skip
        self.write("lake/reference/rates_20240102.csv", "currency;rate", "NOK;11.8")
        self.run("lumos ingest lake")


class Jobs(SetUp):
    """A lake and a model; the query log comes later."""

    def start(self) -> None:
        self.write("lake/orders.csv", "id,amount", "1,2.5")
        self.write("models/totals.sql", "select id, sum(amount) as total from orders group by id")

    def the_log_arrives(self) -> None:
        # Reads of long ago are not stored, and reported as a problem.
        read_at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        self.write(
            "queries.csv",
            "QUERY_ID,QUERY_TEXT,START_TIME,USER_NAME,EXECUTION_STATUS",
            f"1,SELECT id FROM orders,{read_at},ANN,SUCCESS",
        )


class Reminders(SetUp):
    """Datasets without documentation, a chat that takes every message, and a month that passes."""

    def start(self) -> None:
        chat = self.opened.enter_context(webhook())
        self.terminal.variables |= {"TEAM_CHAT_URL": chat.address()}
        for name in ("orders", "tickets", "visits"):
            self.record(
                f"lumos://file/lake/{name}", "id INT64\namount INT32", "2024-01-08T12:00:00"
            )
        self.run("lumos owner add ann")
        self.run("lumos owner assign orders ann")
        self.run("lumos owner assign tickets ann")
        self.run("lumos doc set tickets 'Every question'")

    def a_month_passes(self) -> None:
        """The flag depends on the date of the first reminder alone."""
        earlier = (datetime.now(UTC) - timedelta(days=30)).date().isoformat()
        database = self.folder / ".lumos/lumos.db"
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute(
                "UPDATE annotation SET value = ? WHERE name = 'undocumented-since'", (earlier,)
            )
            connection.execute("DELETE FROM reminder_run")
            connection.execute("DELETE FROM notification")

    def a_type_changes(self) -> None:
        now = datetime.now(UTC).isoformat()[:19]
        self.record("lumos://file/lake/orders", "id INT64\namount STRING", now)


class Snapshots(Lake):
    """In the meantime people work in the catalog."""

    def people_work_in_the_catalog(self) -> None:
        catalog = DatahubFile.at(str(self.folder / "estate.json"))
        orders = next(entry for entry in catalog.export() if "orders" in entry.urn)
        owners = Ownership(owners=(Owner(name="jane.smith"),))
        words = Documentation(description="Every order since 2023")
        catalog.put(msgspec.structs.replace(orders, ownership=owners, documentation=words))
        self.a_week_passes()


class Readme(Lake):
    """The same lake beside two models, and once more in a bucket."""

    def start(self) -> None:
        super().start()
        self.write("models/revenue.sql", "-- Owner: analytics-team", "create table revenue as",
                   "select customer_id, sum(amount) as revenue from orders group by customer_id")  # fmt: skip
        endpoint = self.request.getfixturevalue("moto")
        session = boto3.Session("key-id", "hush-hush", region_name="us-east-1")
        bucket = session.resource("s3", endpoint_url=endpoint).Bucket("lake")
        bucket.create()
        bucket.upload_file(str(self.folder / "lake/reference/customers.csv"), "raw/customers.csv")
        keys = {"AWS_ACCESS_KEY_ID": "key-id", "AWS_SECRET_ACCESS_KEY": "hush-hush"}
        self.set_variables(AWS_ENDPOINT_URL=endpoint, AWS_REGION="us-east-1", **keys)


class ProblemsSolved(Lake):
    """A week later, with a model that reads the lake and a rule on documentation."""

    def start(self) -> None:
        super().start()
        self.write("models/active_users.sql", "-- Owner: analytics-team", "create table active_users as",
                   "select user_id from user_clicks where user_id <> 'robot'")  # fmt: skip
        self.write("lumos.yaml", "documentation:", "  required_fields: [description, owner]")
        self.run("lumos lineage ingest models")
        self.a_week_passes()


class Releases(SetUp):
    """Orders by day, each of which arrives at six on the next morning."""

    def start(self) -> None:
        for day in range(1, 17):
            self.day(day)
        self.run("lumos ingest lake")

    def day(self, number: int, **columns: Any) -> None:
        path = f"lake/orders/dt=2026-11-{number:02}/part-0.parquet"
        self.write_parquet(path, order_id=[number, number + 1], **columns)
        arrived = datetime(2026, 11, number + 1, 6, tzinfo=UTC).timestamp()
        os.utime(self.folder / path, (arrived, arrived))

    def the_data_arrives(self) -> None:
        self.day(17, amount=[9.5, 3.5])


class Profiles(SetUp):
    """Orders of three days, and of a fourth: few enough for exact quantiles, which are the same in every run."""

    def start(self) -> None:
        self.chance = random.Random(7)
        for day in (1, 2, 3):
            self.day(day)
        self.run("lumos ingest lake")
        self.run("lumos tag add orders PII --field birth_year")

    def day(self, number: int) -> None:
        chance, rows = self.chance, range(60)
        start = datetime(2024, 5, number)
        self.write_parquet(
            f"lake/orders/dt=2024-05-0{number}/part-0.parquet",
            order_id=[20_000 * number + row for row in rows],
            customer=[f"c{chance.randrange(5000)}" for _ in rows],
            status=[chance.choice(("open", "paid", "sent")) for _ in rows],
            amount=[
                None if row % 50 == 0 else round(chance.lognormvariate(3, 1), 2) for row in rows
            ],
            items=pa.array([chance.choice((1, 1, 1, 2, 3)) for _ in rows], pa.int32()),
            birth_year=pa.array([chance.randrange(1940, 2006) for _ in rows], pa.int32()),
            at=[start + timedelta(seconds=chance.randrange(86_400)) for _ in rows],
            tags=[["new"] * chance.randrange(3) for _ in rows],
        )

    def a_day_passes(self) -> None:
        self.day(4)
        self.run("lumos ingest lake")


class Tables(SetUp):
    """A Delta, an Iceberg and a Hudi table, a plain file, and a Delta table whose log is cut off."""

    def start(self) -> None:
        self.orders = self.folder / "lake/shop/orders"
        rows = pa.table(
            {"order_id": [1, 2], "amount": [1.5, 2.5], "day": ["2024-05-01", "2024-05-02"]}
        )
        write_deltalake(self.orders, rows, partition_by=["day"])
        more = pa.table(
            {"order_id": [3], "amount": [3.5], "day": ["2024-05-02"], "channel": ["web"]}
        )
        by_ann = CommitProperties(custom_metadata={"userName": "ann"})
        write_deltalake(
            self.orders, more, mode="append", schema_mode="merge", commit_properties=by_ann
        )
        DeltaTable(self.orders).delete("day = '2024-05-01'")
        clicks = self.folder / "lake/inbox/clicks"
        for _ in range(2):
            write_deltalake(clicks, pa.table({"id": [1]}), mode="append")
        last = clicks / "_delta_log/00000000000000000001.json"
        last.write_bytes(last.read_bytes()[:40])
        catalog = InMemoryCatalog("lake", warehouse=f"file://{self.folder}/lake")
        catalog.create_namespace("crm")
        accounts = catalog.create_table(
            "crm.accounts", pa.schema([("id", pa.int64()), ("name", pa.string())])
        )
        with accounts.update_schema() as update:
            update.add_column("country", StringType())
        accounts.append(pa.table({"id": [1, 2], "name": ["Ada", "Bob"], "country": ["no", "se"]}))
        for path, data in table_of("appended", 9).files.items():
            file = self.folder / "lake/fleet/trips" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        self.write("lake/ref/rates.csv", "currency,rate", "NOK,11.7", "SEK,11.6")

    def somebody_overwrites_the_table(self) -> None:
        rows = pa.table(
            {"order_id": [1], "day": ["2024-05-01"], "channel": ["web"], "amount": ["1,5"]}
        )
        write_deltalake(
            self.orders, rows, mode="overwrite", schema_mode="overwrite", partition_by=["day"]
        )


SET_UPS: dict[str, type[SetUp]] = {
    "AUTOMATIC_DETECTION": AutomaticDetection,
    "DISCOVERY": Discovery,
    "KAFKA": Kafka,
    "MONGODB": Mongodb,
    "MYSQL": Mysql,
    "SQL_SOURCES": SqlSources,
    "JOBS": Jobs,
    "OPERATIONS": Lake,
    "PLATFORMS": Platforms,
    "CI": Gate,
    "PLATFORM_MIGRATION": PlatformMigration,
    "POSTGRES": Postgres,
    "PROBLEMS_SOLVED": ProblemsSolved,
    "PROFILES": Profiles,
    "SERVER": ApiServer,
    "README": Readme,
    "RECONCILE": Reconcile,
    "RELEASES": Releases,
    "REMINDERS": Reminders,
    "SNAPSHOTS": Snapshots,
    "STORES": Stores,
    "TABLES": Tables,
    "COST_INPUTS": CostInputs,
    "ENRICHMENT": Enrichment,
    "GROUPING": Grouping,
    "HINTS": Hints,
    "IMPACT": Impact,
    "LINEAGE": Lineage,
    "OWNERSHIP": OwnersOfAShop,
    "USAGE": Usage,
    "CONFIGURATION": Configuration,
    "COST_CALCULATION": Cost,
    "QUICK_START": QuickStart,
    "SCHEMA_TRACKING": SchemaTracking,
    "VERSIONING": Versioning,
}
