"""`lumos ingest` beside a pretended catalog that is down, and comes back."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catalogs.fake_catalog import PretendedCatalog
from lumos.plugins import PLATFORMS, register, unregister


@pytest.fixture
def catalog() -> Iterator[PretendedCatalog]:
    pretended = PretendedCatalog()
    register(PLATFORMS, "pretended", lambda _settings: pretended)
    yield pretended
    unregister(PLATFORMS, "pretended")


@pytest.mark.usefixtures("spark")
def test_a_scan_succeeds_where_the_catalog_is_down_unless_it_is_strict(
    workplace: Path, lumos: Any, catalog: PretendedCatalog
) -> None:
    (workplace / "lumos.yaml").write_text("platform: pretended", encoding="utf-8")
    for name in ("orders", "users"):
        (workplace / "lake" / name).mkdir(parents=True)
        (workplace / "lake" / name / "part.csv").write_text(f"{name}_id,n\n1,2\n", encoding="utf-8")
    catalog.strength = 1
    done = lumos("ingest", "lake")
    assert (done.code, "Published 1 dataset to pretended." in done.out) == (0, True)
    assert "1 dataset not yet published to pretended (503). Retry with `lumos sync`" in done.err
    assert lumos("ingest", "lake", "--strict").code == 1
    catalog.strength = None
    done = lumos("ingest", "lake", "--strict", "--json")
    assert (done.code, done.json["catalog"]["told"], done.json["catalog"]["problem"]) == (
        0,
        1,
        None,
    )
    assert {entry.name for entry in catalog.export()} == {"orders", "users"}
