"""Files that accompany data are skipped; tables that are called like them are not."""

import json
from pathlib import Path

import pytest

from lumos.discovery.grouping.datasets import group_files
from lumos.discovery.grouping.hints import HintMatcher
from lumos.discovery.grouping.sidecars import EXTENSIONS
from lumos.discovery.lake.dataset_schema import SchemaPool
from lumos.discovery.lake.summaries import DataFileReader, summarise
from lumos.storage import DEFAULT_ACCESS, ListedFile, storage_of

DOCS = Path(__file__).parents[3] / "docs" / "GROUPING.md"
EVENTS = [{"id": 1, "user": "ann", "at": "2024-03-01"}, {"id": 2, "user": "bo", "at": "2024-03-02"}]
DBT = {"metadata": {"dbt_schema_version": "v12"}, "nodes": {}, "sources": {}}


def lines(records: list[dict[str, object]]) -> str:
    return "\n".join(map(json.dumps, records))


def datasets(root: Path, files: dict[str, str]) -> set[str]:
    """The paths of the datasets that these files are, relative to the root."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    listed = [
        ListedFile(str(root / name), (root / name).stat().st_size, 0) for name in sorted(files)
    ]
    reader = DataFileReader(storage_of(str(root), DEFAULT_ACCESS), column_stats=False)
    rows = list(reader.read((each, None) for each in listed))
    places = summarise(rows, root=str(root)).file_sets
    found = group_files(
        places, SchemaPool(reader.encoded_schemas), hints=HintMatcher((), root=str(root))
    )
    return {each.dataset.rpartition(f"{root}/")[2] for each in found.groups}


@pytest.mark.parametrize("records", [EVENTS, EVENTS[:1]], ids=["two records", "one record"])
@pytest.mark.parametrize(
    "name",
    [
        "events/onboarding_completed.json",
        "events/training_completed.json",
        "events/shipping_completed.json",
        "events/ship_manifest.json",
        "events/cargo-manifest.json",
        "events/config.json",
        "events/settings.json",
        "events/model.json",
        "events/job_status.json",
        "events/manifest.json",
        "events/catalog.json",
        "users/user_metadata.json",
        "users/order.schema.json",
    ],
)
def test_a_table_is_data_whatever_words_its_name_has(
    tmp_path: Path, name: str, records: list[dict[str, object]]
) -> None:
    signed_up = name.rpartition("/")[0] + "/signed_up.json"
    files = {name: lines(records), signed_up: lines(records)}
    assert datasets(tmp_path, files) == {name, signed_up}


@pytest.mark.parametrize("text", [lines(EVENTS), json.dumps(EVENTS)], ids=["lines", "array"])
@pytest.mark.parametrize("name", ["metadata.json", "schema.json", "manifest.json", "package.json"])
def test_records_are_data_under_the_name_of_a_description(
    tmp_path: Path, name: str, text: str
) -> None:
    assert datasets(tmp_path, {name: text}) == {name}


@pytest.mark.parametrize("name", ["driver_license.csv", "license.csv", "app_changes.txt"])
def test_a_table_of_licences_or_changes_is_data(tmp_path: Path, name: str) -> None:
    rows = "\n".join(["id,name,day", *(f"{number},Ann,2024-03-01" for number in range(9))])
    assert datasets(tmp_path, {name: rows}) == {name}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("target/manifest.json", DBT),
        ("target/catalog.json", DBT),
        ("target/run_results.json", {"metadata": {}, "results": [], "args": {}}),
        ("orders/metadata.json", {"title": "Orders"}),
        ("inventory/manifest.json", {"sourceBucket": "b", "files": [{"key": "k"}]}),
        ("unload/sales_manifest", {"entries": [{"url": "s3://b/sales0000"}]}),
        ("crm/model.json", {"name": "crm", "version": "1.0", "entities": []}),
        ("bert/config.json", {"model_type": "bert", "architectures": ["BertModel"]}),
        ("ckpt/metadata", {"id": "f4c9d6b0-5a0e-4d3b-a39c-5ff3a0c1d2e3"}),
    ],
)
def test_what_tools_write_about_data_is_skipped(
    tmp_path: Path, name: str, content: dict[str, object]
) -> None:
    assert datasets(tmp_path, {name: json.dumps(content)}) == set()


@pytest.mark.parametrize("content", [lines(EVENTS), json.dumps(DBT)], ids=["events", "dbt"])
def test_a_new_file_never_hides_another(tmp_path: Path, content: str) -> None:
    files = {f"s/{name}.json": lines(EVENTS) for name in ("catalog", "index", "sources", "zoo")}
    before = datasets(tmp_path, files)
    assert before == set(files)
    more = {"s/manifest.json": content, "s/@.json": "{}", "s/00000-a.metadata.json": content}
    assert datasets(tmp_path, {**files, **more}) >= before


def test_the_documentation_lists_the_extensions_that_are_skipped() -> None:
    skipped = DOCS.read_text().partition("## What is skipped")[2].partition("\n## ")[0]
    (listed,) = (each for each in skipped.split("\n- ") if each.startswith("Extensions of"))
    documented = {each.strip("`,;. ") for each in listed.replace("(", " ").split() if "`." in each}
    assert documented == {ending for some in EXTENSIONS.values() for ending in some.split()}
