"""The gate on fields of structs: each finding names the field that is read."""

from pathlib import Path

import pytest

from gate.sample import SampleRepository, findings

ORDERS = """# urn: lumos://s3/lake/orders
order_id INT64
amount INT64
items ARRAY<STRUCT<sku: STRING, qty: INT32, price: DECIMAL(9,2), cost: FLOAT64>>
"""
MODEL = """select
    o.order_id,
    i.qty * i.price as total
from orders o
lateral view explode(o.items) t as i
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SampleRepository:
    monkeypatch.chdir(tmp_path)
    files: dict[str, str | None] = {
        "schemas/orders.schema": ORDERS,
        "models/order_items.sql": MODEL,
    }
    return SampleRepository(tmp_path, files)


def test_only_the_field_that_is_read_breaks(repository: SampleRepository) -> None:
    after = ORDERS.replace("amount INT64\n", "").replace(", price: DECIMAL(9,2)", "")
    repository.commit({"schemas/orders.schema": after.replace(", cost: FLOAT64", "")})
    report = repository.check()
    assert sorted(findings(report), key=str) == [
        ("error", "orders.items[].price", "order_items"),
        ("note", "orders.amount", None),
        ("note", "orders.items[].cost", None),
    ]
    breaking = next(each for each in report.findings if each.level == "error")
    assert breaking.reason == "needs items[].price in PROJECTION"
    assert breaking.used is not None
    assert (breaking.used.file, breaking.used.line) == ("models/order_items.sql", 3)


def test_a_field_that_nobody_reads_may_go(repository: SampleRepository) -> None:
    repository.commit({"schemas/orders.schema": ORDERS.replace(", cost: FLOAT64", "")})
    assert findings(repository.check()) == [("note", "orders.items[].cost", None)]
