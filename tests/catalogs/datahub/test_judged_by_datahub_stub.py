"""What Lumos sends to a DataHub server (here a stub that records it), judged by DataHub's tools."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import Phase, given, settings

from catalogs.conftest import DataHub
from catalogs.live import datahub as live_datahub
from catalogs.live import gms_of
from catalogs.sample_inventory import items, rich
from catalogs.servers.gms import Proposal
from catalogs.strategies import ITEMS, entries
from examples import examples
from lumos.catalogs import CatalogItem, WrittenEntry
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Documentation, Governance, Owner, Ownership

pytestmark = pytest.mark.slow


def recorded(path: Path, proposals: list[Proposal]) -> Path:
    """Proposals as a metadata file."""
    changes: list[dict[str, Any]] = []
    for proposal in proposals:
        assert proposal.aspect is not None
        body = json.loads(proposal.aspect.value)
        changes.append(
            {
                "entityType": proposal.entityType,
                "entityUrn": proposal.entityUrn,
                "changeType": proposal.changeType,
                "aspectName": proposal.aspectName,
                "aspect": {"json": body},
            }
        )
        if proposal.changeType == "PATCH":
            content = {"value": proposal.aspect.value, "contentType": proposal.aspect.contentType}
            changes[-1]["aspect"] = content
    path.write_text(json.dumps(changes), encoding="utf-8")
    return path


def checked(datahub: DataHub, path: Path) -> int:
    """How many changes DataHub finds in a file; it fails where one is not valid."""
    match = re.search(r"(\d+) MCEs found - all valid", datahub.check(path))
    assert match is not None
    return int(match[1])


def put(folder: Path, estate: list[CatalogEntry], things: list[CatalogItem]) -> list[Proposal]:
    gms = gms_of(folder)
    gms.forget()
    catalog = live_datahub(folder)
    assert not list(catalog.put_items(things))
    there = catalog.get_many([entry.urn for entry in estate])
    written = list(catalog.put_many(estate, current=there))
    assert all(isinstance(each, WrittenEntry) for each in written), written
    return list(gms.proposals)


def test_datahub_finds_everything_valid_that_is_sent(datahub: DataHub, tmp_path: Path) -> None:
    proposals = put(tmp_path, rich(), items())
    path = recorded(tmp_path / "sent.json", proposals)
    assert checked(datahub, path) == len(proposals)
    read = datahub.read(path)
    assert read.total() == len(proposals)
    assert all('"known"]' in change for change in read)
    for name in ("schemaMetadata", "upstreamLineage", "ownership", "globalTags", "glossaryTerms",
                 "structuredProperties", "domains", "viewProperties", "dataPlatformInstance",
                 "status", "corpUserInfo", "corpGroupInfo", "glossaryTermInfo"):  # fmt: skip
        assert any(f'"{name}"' in change for change in read), name


def test_datahub_finds_changes_valid_and_knows_how_to_read_them(
    datahub: DataHub, tmp_path: Path
) -> None:
    put(tmp_path, rich(), items())
    changed = [
        msgspec.structs.replace(
            entry,
            governance=Governance(tags=("other",), terms=("Other.Term",)),
            ownership=Ownership(owners=(Owner(name="somebody"),)),
            documentation=Documentation(description="Now another one"),
            lineage=None,
        )
        for entry in rich()
    ]
    proposals = put(tmp_path, changed, [])
    assert any(proposal.changeType == "PATCH" for proposal in proposals)
    path = recorded(tmp_path / "sent.json", proposals)
    assert checked(datahub, path) == datahub.read(path).total() == len(proposals)
    assert not put(tmp_path, changed, [])


def test_datahub_finds_the_oddest_estates_valid_that_are_sent(
    datahub: DataHub, tmp_path: Path
) -> None:
    estate: dict[str, CatalogEntry] = {}
    things: list[CatalogItem] = []

    @settings(max_examples=examples(200), phases=(Phase.generate,))
    @given(entry=entries(), item=ITEMS)
    def collect(entry: CatalogEntry, item: CatalogItem) -> None:
        estate[entry.urn] = entry
        things.append(item)

    collect()
    proposals = put(tmp_path, list(estate.values()), things)
    path = recorded(tmp_path / "sent.json", proposals)
    assert checked(datahub, path) == datahub.read(path).total() == len(proposals)


def test_what_was_sent_comes_back_through_datahub_lite(datahub: DataHub, tmp_path: Path) -> None:
    """Lite keeps aspects as a server does, and is DataHub's own."""
    from lumos.catalogs.datahub.file_platform import DatahubFile

    estate = rich()
    path = recorded(tmp_path / "sent.json", put(tmp_path, estate, items()))
    datahub.through_lite(path, tmp_path / "back.json")
    back = DatahubFile.at(str(tmp_path / "back.json"))
    assert [entry.dataset for entry in back.export()] == [
        entry.dataset for entry in sorted(estate, key=lambda entry: entry.urn)
    ]
