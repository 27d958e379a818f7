"""A database over several scans: the right events, and nothing believed that is in doubt."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from databases import PostgresDatabase
from files import write_text
from lumos import Lumos
from lumos.discovery.reports import DatasetReport, IngestReport
from lumos.doctor import _sources
from lumos.errors import LumosError, MisuseError
from lumos.model.change import ChangeEvent, EventType
from lumos.model.dataset import Documentation, Owner, Ownership
from lumos.model.json_codec import to_json
from lumos.sources import SourceNotUsable
from lumos.store import Store

pytestmark = pytest.mark.usefixtures("workplace")


@pytest.fixture
def shop(database: PostgresDatabase) -> PostgresDatabase:
    database.run(
        "CREATE SCHEMA sales",
        "CREATE TABLE sales.orders (id bigint PRIMARY KEY, customer int NOT NULL, total numeric(12,2))",
        "CREATE TABLE sales.customers (id int PRIMARY KEY, email varchar(40))",
        "CREATE VIEW sales.large AS SELECT id, total FROM sales.orders WHERE total > 100",
        "CREATE TABLE public.notes (body text)",
    )
    return database


def lumos_for(shop: PostgresDatabase, **facts: object) -> Lumos:
    return Lumos(overrides={"sources": [shop.section(**facts)]})


def urn(shop: PostgresDatabase, name: str) -> str:
    return f"lumos://postgres/{shop.name}/{name.replace('.', '/')}"


def events(lumos: Lumos, name: str) -> list[ChangeEvent]:
    return list(Store.open(lumos.database).events(name))


def of(report: IngestReport, shop: PostgresDatabase, name: str) -> DatasetReport:
    return next(each for each in report.datasets if each.urn == urn(shop, name))


def test_tables_and_views_become_datasets_without_spark(shop: PostgresDatabase) -> None:
    report = lumos_for(shop).ingest()
    assert {each.urn: each.format for each in report.datasets} == {
        urn(shop, "sales.orders"): "table",
        urn(shop, "sales.customers"): "table",
        urn(shop, "sales.large"): "view",
        urn(shop, "public.notes"): "table",
    }
    assert (report.summary.datasets_new, report.summary.files_listed) == (4, 0)
    assert report.roots == (f"{shop.url.replace('lumos@', '')}",)
    orders = of(report, shop, "sales.orders")
    assert [(field.name, field.type, field.key) for field in orders.schema.fields] == [
        ("id", "INT64", True), ("customer", "INT32", False), ("total", "DECIMAL(12,2)", False),
    ]  # fmt: skip
    assert orders.location is not None
    assert orders.location.uri == f"{shop.url.replace('lumos@', '')}/sales/orders"


def test_neither_spark_nor_arrow_is_imported(shop: PostgresDatabase) -> None:
    script = (
        "import sys; from lumos import Lumos; Lumos().ingest(sys.argv[1]); "
        "sys.exit(any(name in sys.modules for name in ('pyspark', 'pyarrow')))"
    )
    assert subprocess.run([sys.executable, "-c", script, shop.url], check=False).returncode == 0


def test_a_second_scan_of_the_same_changes_nothing(shop: PostgresDatabase) -> None:
    lumos = lumos_for(shop)
    lumos.ingest()
    before = lumos.store_status().rows
    again = lumos.ingest()
    assert again.summary.datasets_unchanged == 4
    after = lumos.store_status().rows
    assert {**after, "audit": before["audit"]} == before


CHANGES = [
    ("ALTER TABLE sales.orders ADD note text", "SCHEMA_CHANGED", "1.1.0", [("note", "added", "compatible", "compatible")]),
    ("ALTER TABLE sales.orders ADD n int NOT NULL DEFAULT 1", "SCHEMA_CHANGED", "1.1.0", [("n", "added", "compatible", "compatible")]),
    ("ALTER TABLE sales.orders ADD n int GENERATED ALWAYS AS IDENTITY", "SCHEMA_CHANGED", "1.1.0", [("n", "added", "compatible", "compatible")]),
    ("ALTER TABLE sales.orders DROP customer", "SCHEMA_CHANGED", "2.0.0", [("customer", "removed", "breaking", "compatible")]),
    ("ALTER TABLE sales.orders ALTER customer TYPE bigint", "SCHEMA_CHANGED", "1.1.0", [("customer", "type_changed", "compatible", "compatible")]),
    ("ALTER TABLE sales.orders ALTER customer TYPE text", "SCHEMA_CHANGED", "2.0.0", [("customer", "type_changed", "breaking", None)]),
    ("ALTER TABLE sales.customers ALTER email TYPE varchar(80)", "SCHEMA_CHANGED", "1.1.0", [("email", "type_changed", "compatible", None)]),
    ("ALTER TABLE sales.customers ALTER email SET NOT NULL", "SCHEMA_CHANGED", "1.1.0", [("email", "nullability", "compatible", "breaking")]),
    ("ALTER TABLE sales.orders ALTER customer DROP NOT NULL", "SCHEMA_CHANGED", "2.0.0", [("customer", "nullability", "undetermined", "compatible")]),
    ("ALTER TABLE sales.orders ALTER customer SET DEFAULT 7", "METADATA_CHANGED", "1.0.1", [("customer", "default", "informational", None)]),
    ("COMMENT ON COLUMN sales.orders.customer IS 'who'", "METADATA_CHANGED", "1.0.1", [("customer", "description", "informational", None)]),
    ("ALTER TABLE sales.customers DROP CONSTRAINT customers_pkey", "SCHEMA_CHANGED", "2.0.0", [("id", "key", "undetermined", None)]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "type", "version", "changes"), CHANGES, ids=[row[0] for row in CHANGES]
)
def test_a_changed_table_gives_its_event_and_its_verdicts(
    shop: PostgresDatabase, statement: str, type: str, version: str, changes: list[Any]
) -> None:  # fmt: skip
    name = "sales.customers" if "customers" in statement else "sales.orders"
    shop.run("DROP VIEW sales.large")
    lumos = lumos_for(shop)
    lumos.ingest()
    shop.run(statement)
    report = lumos.ingest()
    assert report.summary.datasets_changed == 1
    found = of(report, shop, name)
    assert found.versioning is not None
    assert (found.versioning.cloud_version, found.versioning.schema_version) == ("S-2", version)
    assert [
        (change.path, change.kind, change.consumer.value, None if storage is None else change.storage.value)
        for change, (*_, storage) in zip(found.changes, changes, strict=True)
    ] == changes  # fmt: skip
    assert [event.type.value for event in events(lumos, urn(shop, name))] == ["CREATED", type]
    assert lumos.ingest().summary.datasets_changed == 0


REPORTED = [
    ("COMMENT ON TABLE sales.orders IS 'All orders'", "sales.orders", "description changed"),
    ("CREATE OR REPLACE VIEW sales.large AS SELECT id, total FROM sales.orders WHERE total > 200", "sales.large", "query changed"),
    ("ALTER TABLE sales.orders ADD CONSTRAINT positive CHECK (total > 0)", "sales.orders", "constraint positive changed"),
    ("ALTER TABLE public.notes SET UNLOGGED", "public.notes", "persistence changed"),
    ("ALTER TABLE public.kinds ALTER j TYPE jsonb", "public.kinds", "type of j changed: json -> jsonb"),
    ("ALTER TABLE public.kinds ALTER i TYPE interval day to second", "public.kinds", "type of i changed: interval -> interval day to second"),
    ("ALTER TABLE public.kinds ALTER c TYPE varchar(5)", "public.kinds", "type of c changed: character(5) -> character varying(5)"),
    ("ALTER TABLE public.kinds ALTER t TYPE public.words", "public.kinds", "type of t changed: text -> public.words"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "name", "summary"), REPORTED, ids=[row[2] for row in REPORTED]
)
def test_comments_owners_and_constraints_are_metadata(
    shop: PostgresDatabase, statement: str, name: str, summary: str
) -> None:
    shop.run(
        "CREATE DOMAIN public.words AS text",
        "CREATE TABLE public.kinds (j json, i interval, c char(5), t text)",
    )
    lumos = lumos_for(shop)
    lumos.ingest()
    shop.run(statement)
    found = of(lumos.ingest(), shop, name)
    assert found.versioning is not None
    assert (found.versioning.cloud_version, found.versioning.schema_version) == ("S-2", "1.0.0")
    event = events(lumos, urn(shop, name))[-1]
    assert (event.type, event.summary) == (EventType.METADATA_CHANGED, summary)
    assert lumos.ingest().summary.datasets_changed == 0


def test_metadata_that_changed_with_the_schema_is_reported_too(shop: PostgresDatabase) -> None:
    lumos = lumos_for(shop)
    lumos.ingest()
    shop.run(
        "ALTER TABLE sales.orders ADD note text",
        "COMMENT ON TABLE sales.orders IS 'All orders'",
        "ALTER TABLE sales.orders ADD CONSTRAINT positive CHECK (total > 0)",
    )
    lumos.ingest()
    event = events(lumos, urn(shop, "sales.orders"))[-1]
    assert event.type is EventType.SCHEMA_CHANGED
    assert event.summary == "1 field added: note; description, constraint positive changed"


def test_a_zone_that_comes_to_a_time_of_day_is_a_change_of_its_type(shop: PostgresDatabase) -> None:
    shop.run("CREATE TABLE sales.opening (at time)")
    lumos = lumos_for(shop)
    lumos.ingest()
    shop.run("ALTER TABLE sales.opening ALTER at TYPE timetz")
    (change,) = of(lumos.ingest(), shop, "sales.opening").changes
    assert (change.path, change.kind, change.consumer) == ("at", "type_changed", "undetermined")


def test_rows_that_come_and_go_are_no_change_but_are_counted(shop: PostgresDatabase) -> None:
    lumos = lumos_for(shop)
    lumos.ingest()
    shop.run("INSERT INTO public.notes SELECT 'x' FROM generate_series(1, 500)", "ANALYZE")
    assert lumos.ingest().summary.datasets_changed == 0
    shown = lumos.show(urn(shop, "public.notes")).dataset
    assert (shown["statistics"]["row_count"], shown["statistics"]["row_count_exact"]) == (
        500,
        False,
    )
    assert [event.type.value for event in events(lumos, urn(shop, "public.notes"))] == ["CREATED"]


def test_a_dropped_table_is_deleted_and_comes_back_with_its_history(shop: PostgresDatabase) -> None:
    lumos = lumos_for(shop)
    lumos.ingest()
    shop.run("DROP TABLE public.notes")
    assert lumos.ingest().missing == (urn(shop, "public.notes"),)
    shop.run("CREATE TABLE public.notes (body text, by text)")
    lumos.ingest()
    assert [event.type.value for event in events(lumos, urn(shop, "public.notes"))] == [
        "CREATED", "DELETED", "RESTORED",
    ]  # fmt: skip


def test_a_renamed_table_keeps_its_history(shop: PostgresDatabase) -> None:
    lumos = lumos_for(shop)
    lumos.ingest()
    shop.run(
        "ALTER TABLE public.notes RENAME TO remarks", "ALTER TABLE public.remarks SET SCHEMA sales"
    )
    report = lumos.ingest()
    assert (report.summary.datasets_new, report.missing) == (0, ())
    found = events(lumos, urn(shop, "sales.remarks"))
    assert [event.type.value for event in found] == ["CREATED", "RENAMED"]
    assert lumos.show(urn(shop, "public.notes")).dataset["urn"] == urn(shop, "sales.remarks")
    assert lumos.show("remarks").dataset["location"]["uri"].endswith("/sales/remarks")
    assert lumos.ingest().summary.datasets_unchanged == 4


def test_tables_that_swap_their_names_are_judged_by_their_names(shop: PostgresDatabase) -> None:
    lumos = lumos_for(shop)
    lumos.ingest()
    shop.run(
        "CREATE TABLE public.notes_new (body text, at timestamptz)",
        "ALTER TABLE public.notes RENAME TO notes_old",
        "ALTER TABLE public.notes_new RENAME TO notes",
    )
    report = lumos.ingest()
    notes = of(report, shop, "public.notes")
    assert [(change.path, change.kind) for change in notes.changes] == [("at", "added")]
    assert of(report, shop, "public.notes_old").change == "new"


def test_a_copy_under_the_same_name_is_the_same_database(
    shop: PostgresDatabase, postgres: str
) -> None:
    lumos = lumos_for(shop)
    lumos.ingest()
    before = lumos.store_status().rows
    PostgresDatabase(postgres).run(
        f"CREATE DATABASE {shop.name}_copy TEMPLATE {shop.name}",
        f"DROP DATABASE {shop.name}",
        f"ALTER DATABASE {shop.name}_copy RENAME TO {shop.name}",
    )
    assert lumos.ingest().summary.datasets_unchanged == 4
    assert {**lumos.store_status().rows, "audit": before["audit"]} == before
    shop.run("ALTER TABLE public.notes RENAME TO remarks")
    assert lumos.ingest().summary.datasets_new == 0


def test_a_dropped_view_and_a_table_of_its_name_are_one_dataset(shop: PostgresDatabase) -> None:
    lumos = lumos_for(shop)
    lumos.ingest()
    shop.run("DROP VIEW sales.large", "CREATE TABLE sales.large (id bigint, total numeric(12,2))")
    lumos.ingest()
    event = events(lumos, urn(shop, "sales.large"))[-1]
    assert (event.type.value, event.summary) == ("METADATA_CHANGED", "kind, query changed")
    assert lumos.show("large").dataset.get("definition") is None


def test_mass_disappearance_is_held_until_it_is_accepted(shop: PostgresDatabase) -> None:
    lumos = lumos_for(shop)
    lumos.ingest()
    shop.run("DROP SCHEMA sales CASCADE")
    held = lumos.ingest()
    assert (len(held.held), held.missing) == (3, ())
    assert len(lumos.ingest(accept_removals=True).missing) == 3


def test_what_a_scan_does_not_look_for_is_not_missing(shop: PostgresDatabase) -> None:
    lumos_for(shop).ingest()
    narrowed = lumos_for(shop, schemas=["sales"], exclude=["large"])
    report = narrowed.ingest(accept_removals=True)
    assert (len(report.datasets), report.missing, report.held) == (2, (), ())
    shop.run("DROP TABLE sales.customers")
    assert narrowed.ingest(accept_removals=True).missing == (urn(shop, "sales.customers"),)
    assert len(narrowed.list().datasets) == 3


def test_two_sources_may_share_a_database(shop: PostgresDatabase) -> None:
    sections = [shop.section(schemas=["sales"]), shop.section(schemas=["public"])]
    lumos = Lumos(overrides={"sources": sections})
    assert lumos.ingest().summary.datasets_new == 4
    assert lumos.ingest().summary.datasets_unchanged == 4


def test_two_databases_of_one_name_need_an_instance(shop: PostgresDatabase) -> None:
    elsewhere = shop.url.replace("127.0.0.1", "localhost")
    sections = [shop.section(), shop.section(connection_string=elsewhere)]
    with pytest.raises(MisuseError, match="would have the same URNs"):
        Lumos(overrides={"sources": sections}).ingest()
    sections[1]["instance"] = "replica"
    assert Lumos(overrides={"sources": sections}).ingest().summary.datasets_new == 8


def test_a_failed_read_removes_nothing(shop: PostgresDatabase) -> None:
    lumos = lumos_for(shop)
    lumos.ingest()
    shop.run("REVOKE SELECT ON pg_catalog.pg_constraint FROM PUBLIC")
    with shop.role() as role:
        other = lumos_for(shop, connection_string=shop.address(role))
        with pytest.raises(SourceNotUsable, match="permission denied"):
            other.ingest(accept_removals=True)
    assert len(lumos.list().datasets) == 4


def test_a_locked_view_is_a_problem_and_stays(
    shop: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumos.sources.postgres.source._LOCK_TIMEOUT", "100ms")
    lumos = lumos_for(shop)
    lumos.ingest()
    with shop.transaction("LOCK TABLE sales.orders IN ACCESS EXCLUSIVE MODE"):
        report = lumos.ingest(accept_removals=True)
    assert [problem.code for problem in report.problems] == ["locked"]
    assert (report.held, report.missing) == ((), ())
    assert lumos.ingest().summary.datasets_unchanged == 4


def test_two_scans_of_one_database_do_not_run_at_once(shop: PostgresDatabase) -> None:
    lumos = lumos_for(shop)
    lumos.ingest()
    store = Store.open(lumos.database)
    with store.lock(f"postgres:{shop.name}"), pytest.raises(LumosError, match="Another scan of"):
        lumos.ingest()


def test_annotations_of_users_stay_and_metadata_of_the_source_is_updated(
    shop: PostgresDatabase,
) -> None:
    shop.run("COMMENT ON TABLE public.notes IS 'first'")
    lumos = lumos_for(shop)
    lumos.ingest()
    store = Store.open(lumos.database)
    notes = urn(shop, "public.notes")
    before = store.get(notes)
    assert before.documentation == Documentation(description="first")
    assert before.ownership == Ownership(owners=(Owner(name="lumos"),))
    steward = Owner(name="ann", type="DATA_STEWARD")
    mine = msgspec.structs.replace(before.documentation, domain="harbour")
    with store.transaction() as transaction:
        at = lumos.list().datasets[0].updated_at
        transaction.save_aspect(notes, "documentation", mine, writer="user", at=at)
        owners = Ownership(owners=(Owner(name="lumos"), steward))
        transaction.save_aspect(notes, "ownership", owners, writer="user", at=at)
        properties = {**(before.properties or {}), "tier": "gold"}
        transaction.save_aspect(notes, "properties", properties, writer="user", at=at)
    shop.run("COMMENT ON TABLE public.notes IS 'second'")
    with shop.role("ALTER TABLE public.notes OWNER TO {role}") as role:
        lumos.ingest()
        shop.run(f"REASSIGN OWNED BY {role} TO lumos")
    after = store.get(notes)
    assert after.documentation == Documentation(description="second", domain="harbour")
    assert after.ownership == Ownership(owners=(Owner(name=role), steward))
    assert after.properties == {
        "tier": "gold", "postgres.comment": "second", "postgres.owner": role,
    }  # fmt: skip
    own = msgspec.structs.replace(mine, description="in my words")
    with store.transaction() as transaction:
        transaction.save_aspect(notes, "documentation", own, writer="user", at=at)
    shop.run("COMMENT ON TABLE public.notes IS 'third'")
    lumos.ingest()
    assert store.get(notes).documentation == own


def test_a_view_shows_its_query_and_is_found_by_its_comment(shop: PostgresDatabase) -> None:
    shop.run("COMMENT ON VIEW sales.large IS 'Purchases of whales'")
    lumos = lumos_for(shop)
    lumos.ingest()
    assert [hit.name for hit in lumos.search("whales").results] == ["sales.large"]
    shown = lumos.show("large").dataset
    assert shown["definition"]["dialect"] == "postgres"
    assert "FROM sales.orders" in shown["definition"]["sql"]


def test_an_address_may_be_named_and_nothing_keeps_its_password(
    shop: PostgresDatabase, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    with shop.role(password="hush-4711") as role:
        address = shop.address(role, "hush-4711")
        report = Lumos().ingest(address)
        found = Lumos().discover(address, write_config=tmp_path / "shop.yaml")
        written = Lumos(tmp_path / "shop.yaml", environment={"DATABASE_URL": address})
        assert written.ingest().summary.datasets_unchanged == 4
    assert "# Set DATABASE_URL to postgresql://" in (tmp_path / "shop.yaml").read_text()
    assert len(report.datasets) == len(found.datasets) == 4
    assert all(
        b"hush-4711" not in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()
    )
    assert "hush-4711" not in caplog.text
    assert b"hush-4711" not in to_json(report)


def test_an_address_of_no_known_kind_hides_its_password() -> None:
    with pytest.raises(MisuseError) as refused:
        Lumos().ingest("db2://u:hush-4711@db/shop")
    assert "hush-4711" not in str(refused.value)


def test_the_watcher_looks_at_the_tables_that_are_named(shop: PostgresDatabase) -> None:
    lumos_for(shop).ingest()
    # Both lists hold.
    watched = shop.section(
        schemas=["sales"], tables=["orders", "large"], watch_tables=["orders", "sales.c*"]
    )
    lumos = Lumos(overrides={"change_detection": {"sources": [watched]}})
    shop.run(
        "ALTER TABLE sales.orders ADD note text",
        "ALTER TABLE sales.customers ADD note text",
        "DROP TABLE public.notes",
    )
    events: list[str] = []
    report = lumos.watch(
        once=True, on_event=lambda event: events.append(f"{event.urn} {event.type}")
    )
    assert (report.looks, report.failures) == (1, 0)
    assert events == [f"{urn(shop, 'sales.orders')} SCHEMA_CHANGED"]


def test_a_renamed_column_is_suggested_as_one(shop: PostgresDatabase) -> None:
    lumos = lumos_for(shop)
    lumos.ingest()
    shop.run(
        "ALTER TABLE sales.customers ADD zip text",
        "ALTER TABLE sales.customers RENAME email TO mail",
    )
    changes = {each.path: each for each in of(lumos.ingest(), shop, "sales.customers").changes}
    assert {path: change.kind for path, change in changes.items()} == {
        "email": "removed", "mail": "added", "zip": "added",
    }  # fmt: skip
    assert "rename" in str(changes["email"])
    assert "mail" in str(changes["email"])


def test_doctor_checks_the_connection(shop: PostgresDatabase) -> None:
    (check,) = _sources(lumos_for(shop).settings)
    assert (check.name, check.status) == ("source postgres", "ok")
    assert re.search(r"PostgreSQL \d+, 4 tables and views$", check.found)
    (check,) = _sources(lumos_for(shop, database="shp").settings)
    assert (check.status, check.next_step) == ("failed", "Check 'database'; 'psql -l' lists them.")


@pytest.mark.usefixtures("spark")
def test_a_lake_and_a_database_in_one_scan(shop: PostgresDatabase, tmp_path: Path) -> None:
    write_text(tmp_path / "lake/users.csv", ["id,name", "1,Ann"])
    sections = [{"type": "file", "path": str(tmp_path / "lake")}, shop.section()]
    report = Lumos(overrides={"sources": sections}).ingest()
    assert {each.platform for each in report.datasets} == {"file", "postgres"}
    assert (report.summary.datasets_new, report.summary.files_listed) == (5, 1)


def test_a_table_that_moves_to_the_schema_of_another_section_keeps_its_history(
    shop: PostgresDatabase,
) -> None:
    sections = [shop.section(schemas=["public"]), shop.section(schemas=["sales"])]
    for first, second in (("public", "sales"), ("sales", "public")):
        lumos = Lumos(overrides={"sources": sections})
        lumos.ingest()
        shop.run(f"ALTER TABLE {first}.notes SET SCHEMA {second}")
        lumos.ingest(accept_removals=True)
        types = [event.type for event in events(lumos, urn(shop, f"{second}.notes"))]
        assert EventType.RENAMED in types
        assert types.count(EventType.CREATED) <= 1


def test_a_source_that_does_not_answer_keeps_no_other_from_being_scanned(
    shop: PostgresDatabase, workplace: Path
) -> None:
    away = {"type": "postgres", "host": "127.0.0.1", "port": 1, "database": "d", "user": "u"}
    missing = {"type": "file", "path": str(workplace / "nothing")}
    lumos = Lumos(overrides={"sources": [away, missing, shop.section()]})
    report = lumos.ingest()
    assert len(report.datasets) == 4
    assert [(each.path, each.code) for each in report.problems] == [
        ("postgres 127.0.0.1", "source_failed"),
        (f"file {workplace / 'nothing'}", "source_failed"),
    ]
    with pytest.raises(MisuseError, match=r"Cannot connect to PostgreSQL.*There is nothing at"):
        Lumos(overrides={"sources": [away, missing]}).ingest()


def test_without_java_databases_are_ingested_all_the_same(
    shop: PostgresDatabase, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_options: object) -> None:
        raise LumosError("Spark needs Java 17 and none was found.")

    monkeypatch.setattr("lumos.spark.session.spark_session", refuse)
    (workplace / "lake").mkdir()
    lake = {"type": "file", "path": str(workplace / "lake")}
    report = Lumos(overrides={"sources": [lake, shop.section()]}).ingest()
    assert len(report.datasets) == 4
    assert [each.reason for each in report.problems] == ["Spark needs Java 17 and none was found"]


@pytest.mark.parametrize("path", ["host=db password=hush-4711", "u:hush-4711@db/shop"])
def test_a_connection_string_given_as_a_path_is_not_repeated(path: str) -> None:
    with pytest.raises(MisuseError, match="looks like a connection string") as refused:
        Lumos().ingest(path)
    assert "hush-4711" not in str(refused.value)
