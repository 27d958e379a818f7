"""Owners of datasets that no scan has found are those that reporters name."""

import json
from pathlib import Path
from typing import Any

import pytest

from lineage.dbt.dbt_projects import manifest, node, write_project
from lineage.openlineage.test_openlineage import TOTALS, event
from recorded_lake import RecordedLake

pytestmark = pytest.mark.usefixtures("workplace")
RAW = "lumos://file/lake/raw/orders"


@pytest.fixture
def lake(seen: RecordedLake, workplace: Path, monkeypatch: pytest.MonkeyPatch) -> RecordedLake:
    monkeypatch.chdir(workplace)
    seen.see("raw/orders", "id INT64\namount FLOAT64\ncountry STRING")
    return seen


def owners(lake: RecordedLake, urn: str = RAW) -> dict[str, tuple[str, ...]]:
    """Who is named for what hangs on the orders, by the last part of its name."""
    found = lake.lumos.impact.of(urn, change=["amount: FLOAT64 -> STRING"]).downstream
    return {row.urn.rpartition("/")[2]: row.owners for row in found}


def test_a_dbt_project_names_them_for_models_and_exposures(lake: RecordedLake) -> None:
    direct = node(
        "direct",
        meta={"owner": "mart-team"},
        raw_code="select amount from {{ source('raw', 'orders') }}",
        compiled_code='select amount from "shop"."raw"."orders"',
        depends_on={"nodes": ["source.shop.raw.orders"]},
    )
    exposure: dict[str, Any] = {
        "name": "board",
        "resource_type": "exposure",
        "owner": {"name": "bi"},
        "depends_on": {"nodes": ["model.shop.direct"]},
    }
    exposures = {"exposure.shop.board": exposure}
    document = manifest(nodes={"model.shop.direct": direct}, exposures=exposures)
    orders = "lumos://postgres/shop/raw/orders"
    write_project(Path("target"), manifest=document)
    lake.lumos.lineage.ingest("target")
    assert owners(lake, orders) == {"direct": ("mart-team",), "shop.board": ("bi",)}
    direct["meta"] = {"owner": "other-team"}
    exposure["owner"] = {}
    write_project(Path("target"), manifest=document)
    lake.lumos.lineage.ingest("target")
    assert owners(lake, orders) == {"direct": ("other-team",), "shop.board": ()}


def test_events_and_files_of_sql_name_them(lake: RecordedLake) -> None:
    facets = {"ownership": {"owners": [{"name": "team:finance"}, {"name": "jane"}]}}
    orders = {"namespace": "file", "name": "/lake/raw/orders"}
    written = event(inputs=[orders], outputs=[{**TOTALS, "facets": facets}])
    Path("events.ndjson").write_text(json.dumps(written))
    Path("made.sql").write_text("-- Owner: alpha-team\nselect amount from raw.orders")
    lake.lumos.lineage.ingest(".")
    named = owners(lake)
    assert named.pop("made") == ("alpha-team",)
    assert list(named.values()) == [("finance", "jane")]


def test_where_a_file_is_not_understood_its_earlier_word_stays(lake: RecordedLake) -> None:
    first = "-- Owner: alpha-team\n\ncreate table a as select amount from raw.orders;\n"
    Path("models").mkdir()
    file = Path("models/a.sql")
    file.write_text(f"{first}\ncreate table b as select amount from raw.orders;")
    lake.lumos.lineage.ingest("models")
    file.write_text(f"{first}\ncreat table b selec amount;")
    lake.lumos.lineage.ingest("models")
    assert owners(lake) == {"a": ("alpha-team",), "b": ("alpha-team",)}
    file.rename("models/other.sql").write_text("select 1 as x")
    lake.lumos.lineage.ingest("models")
    assert owners(lake) == {}
    assert lake.store.lineage.owners(["lumos://sql/a", "lumos://sql/b"]) == {}


def test_what_a_scan_has_found_has_the_owners_of_the_store(lake: RecordedLake) -> None:
    target = "lumos://file/lake/mart/direct"
    Path("lineage.yaml").write_text(f"lineage:\n  - {{from: {RAW}, to: {target}}}\n")
    lake.lumos.lineage.ingest("lineage.yaml")
    lake.see("mart/direct", "amount FLOAT64")
    with lake.store.transaction() as transaction:
        transaction.lineage.report("x", (), owners={target: ("told",)}, at=lake.at)
    assert owners(lake) == {"direct": ()}
    assert lake.store.lineage.owners([target, RAW]) == {target: ("told",)}
