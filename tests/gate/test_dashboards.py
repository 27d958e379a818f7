"""Exports of dashboards as lineage of the gate: findings name the charts and their owners."""

from pathlib import Path

import pytest

from gate.sample import ORDERS, SampleRepository, code, findings
from lineage.bi_exports import write_metabase, write_superset


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SampleRepository:
    monkeypatch.chdir(tmp_path)
    repository = SampleRepository(tmp_path, {"schemas/orders.schema": ORDERS})
    repository.commit({"schemas/orders.schema": ORDERS.replace("amount DECIMAL(10,2)\n", "")})
    return repository


def test_a_removed_column_breaks_the_charts_of_an_export(
    repository: SampleRepository, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("exports")
    metabase = repository.check(lineage=write_metabase(folder / "metabase"))
    assert findings(metabase) == [
        ("error", "orders.amount", "chart Orders by country"),
        ("error", "orders.amount", "chart Top customers"),
        ("error", "orders.amount", "dashboard Customers"),
    ]
    owners = {each.affected: each.owners for each in metabase.findings}
    assert owners["dashboard Customers"] == ("ann@example.com",)
    superset = repository.check(lineage=write_superset(folder / "superset.zip"))
    assert ("error", "orders.amount", "dashboard Revenue") in findings(superset)
    assert code(superset) == 10
