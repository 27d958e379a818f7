"""A catalog shows the parts of a dataset that came apart, and the dataset itself no longer."""

from pathlib import Path

import pytest

from discovery.scripted_lake import OLD, OLD_URN, Lake, dataset, parts, urns
from lumos import Lumos
from lumos.catalogs.publisher import CatalogPublisher
from recorded_lake import RecordedLake

from .contract_catalogs import CATALOGS, called


@pytest.mark.parametrize("name", [each for each in CATALOGS if each != "local"], ids=called)
def test_parts_replace_the_published_entry(name: str, workplace: Path) -> None:
    lake = Lake(RecordedLake(Lumos(overrides={"storage.path": str(workplace / "lumos.db")})))
    lake.scan([dataset(OLD), dataset("/lake/orders")])
    lake.lumos.annotations.docs.set(OLD_URN, "What visitors do")
    CatalogPublisher(lake.store, CATALOGS[name](workplace)).deliver()
    lake.scan([*parts(60), dataset("/lake/orders")])
    report = CatalogPublisher(lake.store, CATALOGS[name](workplace)).deliver()
    assert (report.published, report.hidden, report.is_complete) == (60, 1, True)
    entries = {each.urn: each for each in CATALOGS[name](workplace).export()}
    shown = {urn for urn, each in entries.items() if not each.deleted}
    assert shown == urns([*parts(60), dataset("/lake/orders")])
    for urn in urns(parts(60)):
        documentation = entries[urn].documentation
        assert documentation is not None
        assert documentation.description == "What visitors do"
    assert CatalogPublisher(lake.store, CATALOGS[name](workplace)).deliver().published == 0
