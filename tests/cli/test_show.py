"""lumos show prints everything that is known of a dataset, and nothing about the rest."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from lumos import Lumos
from lumos.model.dataset import Cost, QualityCheck
from snapshots.sample_inventories import customers, everything
from snapshots.stores import fill, write


@pytest.fixture
def store(workplace: Path) -> Any:  # noqa: ARG001
    return fill(Lumos(), everything())


def facts(shown: str) -> dict[str, str]:
    lines = shown.split("\n\n")[0].splitlines()[1:]
    pairs = (line.split(maxsplit=1) for line in lines if not line.startswith(" "))
    return {pair[0]: pair[1] for pair in pairs}


@pytest.mark.usefixtures("store")
def test_every_aspect_has_its_line(lumos: Any) -> None:
    shown = lumos("show", "customers").out
    assert shown.startswith("customers\n")
    assert facts(shown) == {
        "description": "Master customer table",
        "context": "Who pays",
        "domain": "Finance",
        "owners": "jane.smith, finance-data-team (DATA_STEWARD)",
        "tags": "pii, tier-1",
        "terms": "Customer",
        "compliance": "GDPR",
        "properties": "z=last, a=first, über=größe",
        "location": "snowflake://eu/FINANCE/customers",
        "format": "table",
        "version": "S-312 2.0.0",
        "rows": "12",
        "size": "0 B",
        "modified": "2024-01-15 12:00:00 UTC",
        "schedule": "0 4 * * * (UTC), available 30 min later",
        "quality": "score 98.5%, completeness 99.2%, accuracy 100.0%, 1 check passed, "
        "data up to 2024-01-15 12:00:00 UTC",
        "upstream": "1 dataset",
        "usage": "7 reads by 1 reader since 2024-01-15, the last on 2024-01-15",
        "cost": "45.50 USD (monthly): own 45.50",
    }
    assert "e-mail STRING yes tags: PII" in " ".join(shown.split())
    assert "address.street STRING yes description: and number" in " ".join(shown.split())


def test_failed_checks_and_cost_from_upstream_are_named(lumos: Any, store: Any) -> None:
    quality = msgspec.structs.replace(
        customers().quality,
        checks=(QualityCheck(name="unique", status="FAILED"),),
    )
    cost = Cost(
        currency="EUR", period="2024-01", own={"storage": 1.0, "compute": 2.5},
        attributed={"storage": 1000.0},
    )  # fmt: skip
    write(store, msgspec.structs.replace(customers(), quality=quality, cost=cost))
    shown = facts(lumos("show", "customers").out)
    assert "1 check failed (unique)" in shown["quality"]
    assert shown["cost"] == (
        "1,003.50 EUR (2024-01): own 3.50 (storage 1.00, compute 2.50), upstream 1,000.00"
    )


@pytest.mark.usefixtures("store")
def test_what_is_not_known_has_no_line(lumos: Any) -> None:
    shown = facts(lumos("show", "events.customer_signup").out)
    assert set(shown) == {"version", "downstream"}


def test_a_model_that_only_lineage_knows_is_shown(lumos: Any, workplace: Path) -> None:
    models = workplace / "models"
    models.mkdir()
    (models / "revenue.sql").write_text(
        "-- owner: finance-team\nselect amount from orders\n", encoding="utf-8"
    )
    (models / "report.sql").write_text("select amount from revenue\n", encoding="utf-8")
    assert lumos("lineage", "ingest", "models").code == 0
    shown = lumos("show", "revenue")
    assert shown.code == 0
    assert facts(shown.out) == {
        "state": "known from lineage only: no scan has found it",
        "owners": "finance-team",
        "upstream": "1 dataset",
        "downstream": "1 dataset",
    }
    report = lumos("show", "revenue", "--json").json
    assert report["state"] == "assumed"
    assert lumos("show", "nothing").code == 2
