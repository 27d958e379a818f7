"""`lumos search` and `lumos show` on a catalog, without a store."""

from pathlib import Path
from typing import Any

import pytest

from lumos.catalogs.configured import LOCAL
from lumos.catalogs.datahub.file_platform import DatahubFile
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Documentation, Governance, Owner, Ownership
from lumos.model.schema import parse_schema


def entry(path: str, schema: str, **aspects: Any) -> CatalogEntry:
    name = path.rpartition("/")[2]
    return CatalogEntry(
        urn=f"lumos://s3/{path}", name=name, platform="s3", schema=parse_schema(schema), **aspects
    )


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    platform = DatahubFile.at("estate.json")
    with platform.batch():
        platform.put(
            entry(
                "lake/shop/orders",
                "id INT64\nmeta STRUCT<priority: INT32>",
                documentation=Documentation(description="All orders"),
                ownership=Ownership(owners=(Owner(name="ann"),)),
                governance=Governance(tags=("pii",)),
            )
        )
        platform.put(entry("lake/web/orders", "order_id INT64"))
        platform.put(entry("lake/web/visits", "url STRING"))
    return "datahub-file:estate.json"


def test_a_search_reads_the_catalog_and_needs_no_store(
    lumos: Any, catalog: str, tmp_path: Path
) -> None:
    done = lumos("search", "order", "--platform", catalog)
    assert done.code == 0
    assert "Results (2 datasets):" in done.out
    assert "Fields: order_id" in done.out
    found = lumos("search", "priority", "--platform", catalog, "--json").json
    assert [(each["urn"], each["fields"]) for each in found["results"]] == [
        ("lumos://s3/lake/shop/orders", ["meta.priority"])
    ]
    assert not (tmp_path / ".lumos").exists()


@pytest.mark.parametrize(
    ("option", "value", "count"),
    [("--owner", "ann", 1), ("--tag", "pii", 1), ("--data-platform", "s3", 2),
     ("--data-platform", "gcs", 0), ("--limit", "1", 1)],
)  # fmt: skip
def test_a_search_in_a_catalog_is_filtered(
    lumos: Any, catalog: str, option: str, value: str, count: int
) -> None:
    found = lumos("search", "orders", "--platform", catalog, option, value, "--json").json
    assert len(found["results"]) == count


@pytest.mark.parametrize("name", ["lumos://s3/lake/shop/orders", "shop/orders"])
def test_show_prints_what_the_catalog_holds(lumos: Any, catalog: str, name: str) -> None:
    done = lumos("show", name, "--platform", catalog)
    assert done.code == 0
    assert "All orders" in done.out
    assert "owners ann" in done.words
    report = lumos("show", name, "--platform", catalog, "--json").json
    assert report["state"] == "live"
    assert [field["name"] for field in report["dataset"]["schema"]["fields"]] == ["id", "meta"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("orders", "'orders' is ambiguous in"),
        ("vists", "Did you mean 'visits'?"),
        ("lumos://s3/lake/none", "has no dataset 'lumos://s3/lake/none'"),
        ("lumos://", "URN"),
    ],
)
def test_a_name_that_means_no_dataset_is_an_error(
    lumos: Any, catalog: str, name: str, words: str
) -> None:
    done = lumos("show", name, "--platform", catalog)
    assert done.code == 2
    assert words in done.err
    if "Did you mean" in words:
        assert (
            f"lumos search TEXT --platform datahub-file:{Path('estate.json').resolve()}" in done.err
        )


def test_a_data_platform_may_still_be_given_as_platform(lumos: Any, catalog: str) -> None:
    assert lumos("migrate", catalog, LOCAL).code == 0
    by_alias = lumos("search", "orders", "--platform", "s3", "--json").json
    assert len(by_alias["results"]) == 2
    assert lumos("search", "orders", "--platform", LOCAL, "--json").json["total"] == 2
    refused = lumos("search", "orders", "--platform", "snowflake")
    assert (refused.code, "data platform" in refused.err) == (2, True)
