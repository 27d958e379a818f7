"""Where more evidence regroups files, datasets keep their history and stay findable."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from files import write_parquet, write_text
from lumos import Lumos
from lumos.discovery.reports import IngestReport
from lumos.model.change import EventType
from lumos.store import Store

pytestmark = pytest.mark.usefixtures("spark", "workplace")


def names(report: IngestReport) -> dict[str, str]:
    return {dataset.name: dataset.change for dataset in report.datasets}


def table(lake: Path, *places: str) -> None:
    for place in places:
        write_parquet(lake / place, id=pa.int64(), temperature=pa.float64())


def test_tables_with_the_same_columns_stay_apart_until_a_hint_joins_them(tmp_path: Path) -> None:
    lumos, lake = Lumos(), tmp_path / "lake"
    table(lake, "climate/kitchen.parquet", "climate/attic.parquet")
    assert names(lumos.ingest(lake)) == {"kitchen": "new", "attic": "new"}
    table(lake, *(f"climate/{room}.parquet" for room in ("garage", "bedroom", "cellar")))
    report = lumos.ingest(lake)
    assert set(names(report)) == {"kitchen", "attic", "garage", "bedroom", "cellar"}
    (suggestion,) = report.suggestions
    assert suggestion.hint == (f"{lake}/climate/*.parquet",)
    write_text(tmp_path / "lumos.yaml", [f"scan: {{datasets: ['{suggestion.hint[0]}']}}"])
    report = Lumos().ingest(lake)
    assert names(report) == {"climate": "changed"}
    assert (report.missing, report.held) == ((), ())
    urn = report.datasets[0].urn
    for old in ("attic", "kitchen"):
        assert lumos.show(f"lumos://file{lake}/climate/{old}.parquet").dataset["urn"] == urn
        assert lumos.show(old).dataset["urn"] == urn
    assert Counter(report.datasets[0].events) == {"RENAMED": 1, "MERGED": 4, "MODIFIED": 1}
    types = [each.type for each in Store.open(lumos.database).events(urn)]
    assert types.count(EventType.RENAMED) == 1
    assert types.count(EventType.MERGED) == 4
    assert names(Lumos().ingest(lake)) == {"climate": "unchanged"}
    # Without the hint they come apart again.
    (tmp_path / "lumos.yaml").unlink()
    report = Lumos().ingest(lake)
    assert len(report.datasets) == 5
    (split,) = report.splits
    assert split.urn == urn
    assert (report.missing, report.held) == ((), ())


def test_join_similar_joins_files_of_a_folder(tmp_path: Path) -> None:
    table(tmp_path / "lake", *(f"prices/{ticker}.parquet" for ticker in ("AAPL", "MSFT", "IBM")))
    write_text(tmp_path / "lumos.yaml", ["sources: [{type: file, path: lake, join_similar: true}]"])
    report = Lumos().ingest()
    assert names(report) == {"prices": "new"}
    explained = Lumos().explain(tmp_path / "lake/prices/IBM.parquet")
    assert (explained.datasets[0].rule, explained.datasets[0].files) == ("similar", 3)


def test_join_similar_joins_what_was_scanned_before_as_in_a_new_store(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    table(lake, *(f"px/{ticker}.parquet" for ticker in ("AAPL", "IBM", "MSFT")))
    for host in ("host01", "host02"):
        write_text(lake / host / "cpu.csv", ["at,load,idle", "1,2,3"])
    config = tmp_path / "lumos.yaml"
    write_text(config, ["sources: [{type: file, path: lake}]"])
    before = Lumos().ingest()
    suggested = {each.datasets for each in before.suggestions if each.join_similar}
    assert sorted(map(len, suggested)) == [2, 3]
    write_text(config, ["sources: [{type: file, path: lake, join_similar: true}]"])
    lumos = Lumos()
    report = lumos.ingest()
    root = f"lumos://file{lake}"
    assert {each.urn: each.change for each in report.datasets} == {
        f"{root}/px": "changed",
        f"{root}/hostNNN/cpu.csv": "changed",
    }
    assert (report.missing, report.held, report.suggestions) == ((), (), ())
    store = Store.open(lumos.database)
    for urn, count in ((f"{root}/px", 3), (f"{root}/hostNNN/cpu.csv", 2)):
        types = [each.type for each in store.events(urn)]
        assert (types.count(EventType.RENAMED), types.count(EventType.MERGED)) == (1, count - 1)
    assert lumos.show(f"{root}/px/IBM.parquet").dataset["urn"] == f"{root}/px"
    assert {each.change for each in Lumos().ingest().datasets} == {"unchanged"}
    write_text(config, ["sources: [{type: file, path: lake}]"])
    assert {each.urn for each in Lumos().ingest().datasets} == {
        each.urn for each in before.datasets
    }


def test_a_file_that_joins_renames_nothing(tmp_path: Path) -> None:
    lumos, lake = Lumos(), tmp_path / "lake"
    table(lake, "exports/table1.parquet")
    assert names(lumos.ingest(lake)) == {"table": "new"}
    table(lake, "exports/table2.parquet")
    assert names(lumos.ingest(lake)) == {"table": "changed"}


def test_a_new_neighbour_changes_nothing(tmp_path: Path) -> None:
    lumos, lake = Lumos(), tmp_path / "lake"
    for day in ("20240101", "20240102"):
        write_text(lake / f"ref/rates_{day}.csv", ["code;rate", "EUR;1.5"])
    lumos.ingest(lake)
    before = lumos.show("rates").dataset
    assert before["location"]["uri"] == f"{lake}/ref/rates_*.csv"
    write_text(lake / "ref/users.csv", ["id,name", "1,Ann"])
    assert names(lumos.ingest(lake)) == {"rates": "unchanged", "users": "new"}
    assert lumos.show("rates").dataset == before


def test_a_renamed_tree_is_new_and_its_history_stays(tmp_path: Path) -> None:
    lumos, lake = Lumos(), tmp_path / "lake"
    table(lake, "old/orders/dt=2024-01-01/part-0.parquet", "old/users.parquet")
    lumos.ingest(lake)
    (lake / "old").rename(lake / "new")
    report = lumos.ingest(lake)
    assert names(report) == {"orders": "new", "users": "new"}
    # All of a source's datasets at once are held until somebody confirms that they are gone.
    assert len(report.held) == 2
    lumos.ingest(lake, accept_removals=True)
    assert len(lumos.history(f"lumos://file{lake}/old/orders").versions) == 1


def test_files_that_only_accompany_data_are_no_datasets(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    write_text(lake / "t/2024-01-01.csv", ["id,name", "1,Ann"])
    write_text(lake / "t/metadata.json", ['{"title": "t", "licence": "x"}'])
    write_text(lake / "t/2024-01-01.csv.bak", ["id,name", "1,Ann"])
    assert names(Lumos().ingest(lake)) == {"t": "new"}


def test_a_hint_in_the_configuration_overrules_and_keeps_history(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    table(lake, "a/kitchen.parquet", "a/attic.parquet")
    Lumos().ingest(lake)
    write_text(tmp_path / "lumos.yaml", ["scan: {datasets: [{path: 'a/*', name: climate}]}"])
    lumos = Lumos()
    report = lumos.ingest(lake)
    assert names(report) == {"climate": "changed"}
    assert (report.summary.files_read, report.missing) == (0, ())
    assert lumos.show(f"lumos://file{lake}/a/attic.parquet").dataset["name"] == "climate"
    assert names(lumos.ingest(lake)) == {"climate": "unchanged"}


def test_a_hint_of_a_source_counts_before_those_of_all_scans(tmp_path: Path) -> None:
    table(tmp_path / "lake", "a/kitchen.parquet", "a/attic.parquet")
    write_text(
        tmp_path / "lumos.yaml",
        [
            "sources: [{type: file, path: lake, datasets: [{path: a, apart: true}]}]",
            "scan: {datasets: [a]}",
        ],
    )
    assert sorted(names(Lumos().ingest())) == ["attic", "kitchen"]


def test_folders_with_the_same_path_pattern_are_recorded_by_their_own_paths(tmp_path: Path) -> None:
    for year in ("2023", "2024"):
        write_text(tmp_path / f"data/{year}/sales/orders.csv", ["id,total", "1,2"])
    lumos = Lumos()
    first = lumos.ingest(tmp_path / "data/2023/sales")
    assert [each.urn for each in first.datasets] == [
        f"lumos://file{tmp_path}/data/sales/orders.csv"
    ]
    assert first.problems == ()
    second = lumos.ingest(tmp_path / "data/2024/sales")
    (found,) = second.datasets
    assert (found.urn, found.change) == (
        f"lumos://file{tmp_path}/data/2024/sales/orders.csv",
        "new",
    )
    assert [each.code for each in second.problems] == ["same_pattern"]
    write_text(tmp_path / "data/2024/sales/orders.csv", ["a,b,c", "1,2,3"])
    (found,) = lumos.ingest(tmp_path / "data/2024/sales").datasets
    assert found.change == "changed"
    assert names(lumos.ingest(tmp_path / "data/2023/sales")) == {"orders": "unchanged"}


def test_a_scan_of_a_folder_above_joins_what_was_recorded_apart(tmp_path: Path) -> None:
    for year in ("2023", "2024"):
        write_text(tmp_path / f"data/{year}/sales/orders.csv", ["id,total", "1,2"])
    lumos = Lumos()
    for year in ("2023", "2024"):
        lumos.ingest(tmp_path / f"data/{year}/sales")
    assert len(lumos.list().datasets) == 2
    (whole,) = lumos.ingest(tmp_path / "data").datasets
    assert whole.statistics.file_count == 2
    assert [each.urn for each in lumos.list().datasets] == [whole.urn]
    apart = f"lumos://file{tmp_path}/data/2024/sales/orders.csv"
    assert lumos.show(apart).dataset["urn"] == whole.urn
    (again,) = lumos.ingest(tmp_path / "data").datasets
    assert again.change == "unchanged"


def test_a_folder_inside_a_source_is_scanned_with_the_source_s_hints(tmp_path: Path) -> None:
    table(tmp_path / "lake", "raw/a_log/part-0.parquet", "raw/b_log/part-0.parquet")
    write_text(
        tmp_path / "lumos.yaml",
        [
            "sources:",
            "  - {type: file, path: lake, datasets: [{path: 'raw/*_log/**', name: logs}]}",
        ],
    )
    (whole,) = Lumos().ingest().datasets
    (part,) = Lumos().ingest(tmp_path / "lake/raw").datasets
    assert (part.urn, part.statistics.file_count) == (whole.urn, 2)
    (one,) = Lumos().ingest(tmp_path / "lake/raw/a_log").datasets
    assert (one.urn, one.change) == (whole.urn, "unchanged")
    assert len(Lumos().list().datasets) == 1


def test_a_folder_inherits_the_names_of_the_scan_above(tmp_path: Path) -> None:
    lumos, lake = Lumos(), tmp_path / "lake"
    write_text(lake / "t/part-0.csv", ["id,name", "1,Ann"])
    lumos.ingest(lake)
    table(lake, "t/part-0.parquet")
    whole = {each.urn: each.format for each in lumos.ingest(lake).datasets}
    assert set(whole.values()) == {"csv", "parquet"}
    part = {each.urn: each.format for each in lumos.ingest(lake / "t").datasets}
    assert part == whole
