"""What Lumos writes, judged by DataHub's own tools; and DataHub's public samples, in and out."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings

from catalogs import datahub_samples as samples
from catalogs.conftest import DataHub
from catalogs.sample_inventory import items, rich
from catalogs.strategies import ITEMS, entries
from examples import examples
from lumos.catalogs import CatalogItem
from lumos.catalogs.datahub.file_platform import DatahubFile
from lumos.model.catalog import CatalogEntry


def written(path: Path, estate: list[CatalogEntry], things: list[CatalogItem]) -> DatahubFile:
    file = DatahubFile.at(str(path))
    with file.batch():
        for item in things:
            file.put_item(item)
        for entry in estate:
            file.put(entry)
    return DatahubFile.at(str(path))


def checked(datahub: DataHub, path: Path) -> int:
    """How many changes DataHub finds in a file; it fails where one is not valid."""
    match = re.search(r"(\d+) MCEs found - all valid", datahub.check(path))
    assert match is not None
    return int(match[1])


def test_datahub_finds_everything_valid(datahub: DataHub, tmp_path: Path) -> None:
    written(tmp_path / "estate.json", rich(), items())
    read = datahub.read(tmp_path / "estate.json")
    assert checked(datahub, tmp_path / "estate.json") == read.total()
    assert all('"known"]' in change for change in read)
    for name in ("schemaMetadata", "upstreamLineage", "ownership", "globalTags", "glossaryTerms",
                 "structuredProperties", "domains", "viewProperties", "dataPlatformInstance",
                 "status", "corpUserInfo", "corpGroupInfo", "glossaryTermInfo"):  # fmt: skip
        assert any(f'"{name}"' in change for change in read), name


@pytest.mark.slow
def test_datahub_finds_the_oddest_estates_valid(datahub: DataHub, tmp_path: Path) -> None:
    estate: dict[str, CatalogEntry] = {}
    things: list[CatalogItem] = []

    @settings(max_examples=examples(300), phases=(Phase.generate,))
    @given(entry=entries(), item=ITEMS)
    def collect(entry: CatalogEntry, item: CatalogItem) -> None:
        estate[entry.urn] = entry
        things.append(item)

    collect()
    path = tmp_path / "estate.json"
    again = written(path, list(estate.values()), things)
    assert list(again.export()) == [estate[urn] for urn in sorted(estate)]
    assert checked(datahub, path) == datahub.read(path).total()


@pytest.mark.slow
def test_an_estate_comes_back_through_datahub_lite(datahub: DataHub, tmp_path: Path) -> None:
    estate = rich()
    written(tmp_path / "estate.json", estate, items())
    datahub.through_lite(tmp_path / "estate.json", tmp_path / "back.json")
    back = DatahubFile.at(str(tmp_path / "back.json"))
    assert [entry.dataset for entry in back.export()] == [
        entry.dataset for entry in sorted(estate, key=lambda entry: entry.urn)
    ]
    assert [entry.deleted for entry in back.export()] == [True, False, False]


@pytest.mark.slow
def test_an_estate_of_datahub_goes_in_and_out_without_loss(
    datahub: DataHub, tmp_path: Path
) -> None:
    (tmp_path / "there.json").write_text(json.dumps(samples.estate()), encoding="utf-8")
    source = DatahubFile.at(str(tmp_path / "there.json"))
    written(tmp_path / "back.json", list(source.export()), list(source.items()))
    assert datahub.read(tmp_path / "back.json") == datahub.read(tmp_path / "there.json")


@pytest.mark.parametrize("name", ["bootstrap", "showcase-ecommerce"])
@pytest.mark.slow
def test_public_samples_go_in_and_out_without_loss(
    datahub: DataHub, tmp_path: Path, name: str
) -> None:
    for number, sample in enumerate(datahub.sample(name)):
        source = DatahubFile.at(str(sample))
        estate, things = list(source.export()), list(source.items())
        again = written(tmp_path / f"{number}.json", estate, things)
        assert list(again.export()) == estate
        assert datahub.read(tmp_path / f"{number}.json") == datahub.read(sample)


@pytest.mark.parametrize("name", ["bootstrap", "showcase-ecommerce"])
@pytest.mark.slow
def test_what_is_written_back_into_a_sample_changes_no_byte(
    datahub: DataHub, tmp_path: Path, name: str
) -> None:
    for sample in datahub.sample(name):
        copy = tmp_path / sample.name
        copy.write_bytes(sample.read_bytes())
        file = DatahubFile.at(str(copy))
        with file.batch():
            changed = [file.put(entry).changed for entry in file.export()]
            for item in list(file.items()):
                file.put_item(item)
        assert not any(changed)
        assert copy.read_bytes() == sample.read_bytes()
