"""What the gate finds in files that declare schemas, on both sides of a change."""

import json
from pathlib import Path

import pytest

from catalogs.local_platform import LocalStorePlatform
from gate.sample import SampleRepository, code, findings
from lumos import Lumos
from lumos.model.catalog import CatalogEntry
from lumos.model.schema import parse_schema

JSON_SCHEMA = json.dumps(
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
        "required": ["id"],
    },
    indent=2,
)
PROTO = """syntax = "proto3";
package shop.v1;
message Order {
  int64 id = 1;
  string note = 2;
  Status status = 3;
  enum Status { NEW = 0; PAID = 1; }
}
"""
CONTRACT = """apiVersion: v3.0.2
kind: DataContract
id: 53581432-6c55-4ba2-a65f-72344a91553a
version: 1.1.0
status: active
domain: sales
tags: [finance]
servers:
- {server: prod, type: postgres}
schema:
- name: payments
  physicalName: pay.payments
  logicalType: object
  properties:
  - {name: payment_id, logicalType: integer, physicalType: bigint, primaryKey: true}
  - {name: amount, logicalType: number, physicalType: "numeric(10,2)", required: true}
  - name: payer
    logicalType: object
    properties:
    - {name: country, logicalType: string}
"""
DBT = """version: 2
models:
- name: revenue
  config:
    contract: {enforced: true}
    tags: [finance]
  columns:
  - {name: day, data_type: date}
  - {name: total, data_type: "numeric(10,2)"}
- name: documented
  columns:
  - {name: day, description: The day}
  - {name: total}
sources:
- name: raw
  tables:
  - name: visits
    columns:
    - {name: url, data_type: text}
    - {name: seconds, data_type: int}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("files", "change", "expected"),
    [
        pytest.param(
            {"contracts/person.schema.json": JSON_SCHEMA, "models/names.sql": "select name from person\n"},
            {"contracts/person.schema.json": JSON_SCHEMA.replace('"name"', '"title"')},
            [("error", "person.name", "names"), ("note", "person.title", None)],
            id="JSON Schema by its name",
        ),
        pytest.param(
            {"contracts/person.json": JSON_SCHEMA, "models/names.sql": "select name from person\n"},
            {"contracts/person.json": JSON_SCHEMA.replace('"string"', '"boolean"')},
            [("error", "person.name", "names")],
            id="JSON Schema by its $schema",
        ),
        pytest.param(
            {"api/order.proto": PROTO, "models/notes.sql": "select id, note from shop.v1.Order\n"},
            {"api/order.proto": PROTO.replace("  string note = 2;\n", "")},
            [("error", "Order.note", "notes")],
            id="Protobuf",
        ),
        pytest.param(
            {"contracts/payments.yaml": CONTRACT, "models/big.sql": "select payment_id from pay.payments where amount > 9\n"},
            {"contracts/payments.yaml": CONTRACT.replace("numeric(10,2)", "numeric(8,2)")},
            [("error", "payments.amount", "big")],
            id="data contract",
        ),
        pytest.param(
            {"contracts/payments.yaml": CONTRACT, "models/big.sql": "select payment_id from payments where amount > 9\n"},
            {"contracts/payments.yaml": CONTRACT.replace("    - {name: country, logicalType: string}\n", "    - {name: city, logicalType: string}\n")},
            [("note", "payments.payer.city", None), ("note", "payments.payer.country", None)],
            id="nested field of a data contract",
        ),
        pytest.param(
            {
                "models/schema.yml": DBT,
                "models/revenue.sql": "select day, sum(amount) as total from {{ source('raw', 'sales') }} group by 1\n",
                "models/yearly.sql": "select sum(total) as total from {{ ref('revenue') }} where day > '2020-01-01'\n",
            },
            {"models/schema.yml": DBT.replace("data_type: date", "data_type: bigint")},
            [("error", "revenue.day", "yearly")],
            id="enforced contract of dbt",
        ),
        pytest.param(
            {"models/schema.yml": DBT, "models/long.sql": "select url from {{ source('raw', 'visits') }} where seconds > 60\n"},
            {"models/schema.yml": DBT.replace("    - {name: seconds, data_type: int}\n", "")},
            [("error", "visits.seconds", "long")],
            id="source of dbt",
        ),
        pytest.param(
            {
                "models/schema.yml": DBT,
                "models/documented.sql": "select day, total from sales\n",
                "models/uses.sql": "select total from {{ ref('documented') }}\n",
            },
            {"models/schema.yml": DBT.replace("  - {name: total}\n", "").replace("The day", "A day")},
            [("note", "documented.day", None)],
            id="documentation of dbt is not a contract",
        ),
    ],
)  # fmt: skip
def test_a_declared_column_is_compared(
    folder: Path,
    files: dict[str, str | None],
    change: dict[str, str | None],
    expected: list[tuple[str, str, str | None]],
) -> None:
    repository = SampleRepository(folder, files)
    repository.commit(change)
    report = repository.check()
    assert report.remarks == ()
    assert findings(report) == expected


COMMON = """syntax = "proto3";
package shop.v1;
message Money { int64 units = 1; int32 nanos = 2; }
"""
BILL = """syntax = "proto3";
package shop.v1;
import "shop/money.proto";
message Bill { Money total = 1; int32 days = 2; string note = 3; }
"""
BILLS: dict[str, str | None] = {"api/shop/money.proto": COMMON, "api/shop/bill.proto": BILL}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(
            {"api/shop/bill.proto": BILL.replace("note = 3", "note = 4")},
            [("error", "field-number", "note", "3", "4")],
            id="changed number",
        ),
        pytest.param(
            {"api/shop/bill.proto": BILL.replace("string note = 3", "int64 code = 3")},
            [
                ("error", "field-number", "code", "note STRING", "code INT64"),
                ("warning", "removed", "note", "STRING", None),
                ("note", "added", "code", None, "INT64"),
            ],
            id="number reused with another type",
        ),
        pytest.param(
            {"api/shop/bill.proto": BILL.replace("note = 3", "remark = 3")},
            [
                ("warning", "removed", "note", "STRING", None),
                ("note", "added", "remark", None, "STRING"),
            ],
            id="renamed field with its number",
        ),
        pytest.param(
            {"api/shop/bill.proto": BILL.replace("int32 days", "sint32 days")},
            [("error", "field-encoding", "days", "int32", "sint32")],
            id="changed encoding",
        ),
        pytest.param(
            {"api/shop/money.proto": COMMON.replace("nanos = 2", "nanos = 3")},
            [
                ("error", "field-number", "total.nanos", "2", "3"),
                ("error", "field-number", "nanos", "2", "3"),
            ],
            id="number in an imported message",
        ),
    ],
)
def test_protobuf_is_also_judged_by_numbers(
    folder: Path,
    change: dict[str, str | None],
    expected: list[tuple[str, str, str, str | None, str | None]],
) -> None:
    repository = SampleRepository(folder, BILLS)
    repository.commit(change)
    report = repository.check()
    assert [(each.level, each.rule, each.path, each.before, each.after)
            for each in report.findings] == expected  # fmt: skip


V1 = "create table shop.stock (sku varchar(20) not null, amount int, old int);\n"
V2 = "alter table shop.stock add column place text;\n"
V10 = "alter table shop.stock drop column amount;\ncreate view shop.places as select place from shop.stock;\n"


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("db/migration/V1__a.sql", "db/migration/V2__b.sql", "db/migration/V10__c.sql"), id="Flyway"),
        pytest.param(("sql/1_a.sql", "sql/2_b.sql", "sql/10_c.sql"), id="numbered"),
        pytest.param(("m/migrations/1_a/migration.sql", "m/migrations/2_b/migration.sql", "m/migrations/10_c/migration.sql"), id="Prisma"),
    ],
)  # fmt: skip
def test_a_new_migration_changes_the_table(folder: Path, names: tuple[str, str, str]) -> None:
    low = "select sku from shop.stock where amount < 10\n"
    repository = SampleRepository(
        folder, {names[0]: V1, names[1]: V2, "models/low.sql": low, "models/low.down.sql": "x"}
    )
    repository.commit({names[2]: V10})
    report = repository.check()
    assert findings(report) == [("error", "stock.amount", "low")]
    declared = report.findings[0].declared
    assert declared is not None
    assert declared.file == names[2]


def test_a_view_in_a_migration_is_a_reader_and_an_insert_is_not(folder: Path) -> None:
    copied = "insert into shop.copy select sku, old from shop.stock;\n"
    repository = SampleRepository(
        folder, {"migrations/V1__a.sql": V1, "migrations/V2__b.sql": V2 + copied}
    )
    repository.commit({"migrations/V3__c.sql": V10})
    repository.change_main({"migrations/V3__c.sql": V10})
    repository.commit(
        {"migrations/V4__d.sql": "ALTER TABLE shop.stock DROP COLUMN place, DROP COLUMN old;\n"}
    )
    assert findings(repository.check()) == [
        ("error", "stock.place", "places"),
        ("note", "stock.old", None),
    ]


def test_what_undoes_a_migration_is_not_applied(folder: Path) -> None:
    goose = "-- +goose Up\n" + V1 + "-- +goose Down\ndrop table shop.stock;\n"
    liquibase = "--liquibase formatted sql\n--changeset a:1\n" + V2 + "--rollback drop table x;\n"
    repository = SampleRepository(folder, {"db/migrations/1_a.sql": goose})
    repository.commit(
        {
            "db/migrations/2_b.sql": liquibase,
            "db/migrations/2_b.down.sql": "alter table shop.stock drop column sku;",
            "db/migrations/U2__b.sql": "drop table shop.stock;",
        }
    )
    assert findings(repository.check()) == [("note", "stock.place", None)]


def test_a_migration_that_cannot_be_read_is_a_remark(folder: Path) -> None:
    repository = SampleRepository(folder, {"db/migrations/1_a.sql": V1})
    repository.commit({"db/migrations/2_b.sql": "create table x (a int, a int);\n" + V2})
    report = repository.check()
    assert findings(report) == []
    assert report.remarks == (
        "Not compared: db/migrations/2_b.sql:1: the column 'a' is listed twice. The tables are "
        "compared without this migration.",
    )


def test_several_declarations_of_a_table_are_one_dataset(folder: Path) -> None:
    ddl = "create table pay.payments (payment_id bigint primary key, amount numeric(10,2) not null);\n"
    repository = SampleRepository(
        folder,
        {
            "ddl/payments.sql": ddl,
            "contracts/payments.yaml": CONTRACT,
            "models/big.sql": "select payment_id from pay.payments where amount > 9\n",
        },
    )
    repository.commit({"ddl/payments.sql": ddl.replace("(10,2)", "(8,2)")})
    assert findings(repository.check()) == [("error", "payments.amount", "big")]
    repository.commit(
        {
            "ddl/payments.sql": ddl,
            "contracts/payments.yaml": CONTRACT.replace("(10,2)", "(8,2)"),
        }
    )
    assert findings(repository.check()) == [("error", "payments.amount", "big")]


def test_a_view_that_loses_a_column_breaks_its_readers(folder: Path) -> None:
    view = "create view shop.rich as select id, name, wealth from people;\n"
    repository = SampleRepository(
        folder, {"views.sql": view, "models/names.sql": "select name from shop.rich\n"}
    )
    repository.commit({"views.sql": view.replace("name, ", "")})
    assert findings(repository.check()) == [("error", "rich.name", "names")]


def snapshot(folder: Path, columns: str) -> str:
    """The text of a snapshot of a store with one dataset."""
    lumos = Lumos(environment={}, overrides={"storage.path": str(folder / "lumos.db")})
    entry = CatalogEntry(
        urn="lumos://s3/lake/users", name="users", platform="s3", schema=parse_schema(columns)
    )
    LocalStorePlatform(lumos.create_store()).put(entry)
    lumos.snapshot.export(folder / "out.json")
    return (folder / "out.json").read_text(encoding="utf-8")


def test_snapshots_are_compared(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    before, after = (
        snapshot(tmp_path_factory.mktemp("store"), columns)
        for columns in ("id INT64\nname STRING\n", "id INT64\n")
    )
    repository = SampleRepository(
        folder,
        {"catalog/snapshot.json": before, "models/names.sql": "select name from lake.users\n"},
    )
    repository.commit({"catalog/snapshot.json": after})
    report = repository.check()
    assert findings(report) == [("error", "users.name", "names")]
    assert code(report) == 10
