"""What becomes of datasets when files turn out to be a table's, or are one's no more."""

import shutil
from contextlib import ExitStack
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from pyiceberg.catalog.memory import InMemoryCatalog

from discovery.lake.tables_scanned import Scans
from discovery.lake.tables_written import ROWS, write_delta, write_iceberg, write_loose
from lumos.discovery.lake.contents import LakeContents
from lumos.storage import DEFAULT_ACCESS
from storage_folders import SERVED


def test_a_dropped_table_whose_files_are_left_is_files_again(lake: Path, scans: Scans) -> None:
    write_delta(lake / "orders")
    write_delta(lake / "orders")
    assert scans.found() == {"orders": "delta"}
    shutil.rmtree(lake / "orders/_delta_log")
    assert scans.found() == {"orders": "parquet"}
    assert scans.manifest.tables == {}
    write_delta(lake / "orders2")
    shutil.rmtree(lake / "orders")
    assert scans.found() == {"orders2": "delta"}


def test_loose_files_that_turn_out_to_be_a_table_s_go_on_as_the_table(
    lake: Path, scans: Scans
) -> None:
    write_delta(lake / "orders")
    write_delta(lake / "orders")
    write_iceberg(lake, "visits")
    before = scans.found(tables=False)
    assert before["orders"] == "parquet"
    below = {path for path in before if path.startswith("n/visits/")}
    assert below
    assert scans.found(tables=True) == {"orders": "delta", "n/visits": "iceberg"}
    orders, visits = scans.dataset("orders"), scans.dataset("n/visits")
    assert (orders.renamed_from, orders.merged_from) == (None, ())
    former = [visits.renamed_from or "", *visits.merged_from]
    assert {scans.inside(each) for each in former} == below
    assert "/metadata" not in former[0]
    # Nothing is renamed twice.
    scans.scan()
    assert scans.dataset("n/visits").renamed_from is None


def test_tables_below_folders_that_vary_go_on_as_what_they_were_taken_for(
    lake: Path, scans: Scans
) -> None:
    for day in ("2024-01-01", "2024-01-02", "2024-01-03"):
        write_delta(lake / day / "orders")
        write_delta(lake / day / "orders")
    before = scans.found(tables=False)
    assert len(before) == 1
    after = scans.found(tables=True)
    assert set(after.values()) == {"delta"}
    assert len(after) == 3
    former = [scans.dataset(path).renamed_from for path in sorted(after)]
    assert [each and scans.inside(each) for each in former] == [*before, None, None]


@pytest.mark.parametrize(
    ("before", "table"),
    [
        (("sales2/part-0.parquet", "sales2/part-1.parquet"), "aaa"),
        (("ev/2024/01/01/x.parquet", "ev/2024/01/02/x.parquet"), "ev/dim_customer"),
        (("sales/data/part-0.parquet", "sales/data/part-1.parquet"), "sales"),
    ],
)
def test_a_table_does_not_go_on_as_a_dataset_whose_files_were_removed(
    lake: Path, scans: Scans, before: tuple[str, ...], table: str
) -> None:
    write_loose(lake / "kept.parquet", pa.table({"z": [1.5]}))
    for path in before:
        write_loose(lake / path)
    assert len(scans.found()) == 2
    shutil.rmtree(lake / before[0].partition("/")[0])
    write_delta(lake / table)
    assert scans.found() == {"kept.parquet": "parquet", table: "delta"}
    found = scans.dataset(table)
    assert (found.renamed_from, found.merged_from) == (None, ())


@pytest.mark.parametrize("kind", SERVED)
def test_a_table_in_a_bucket_does_not_go_on_as_a_dataset_whose_files_were_removed(
    kind: str, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loose = ["sales/data/part-0.parquet", "sales/data/part-1.parquet"]
    for path in loose:
        write_loose(lake / path)
    with ExitStack() as made:
        place = SERVED[kind](made)
        scans = Scans(place.root, tmp_path / "state", monkeypatch, access=place.access)
        place.put({path: (lake / path).read_bytes() for path in loose})
        assert scans.found() == {"sales/data": "parquet"}
        write_delta(lake / "sales")
        table = [path for path in (lake / "sales").rglob("*.*") if "data" not in path.parts]
        place.put({str(path.relative_to(lake)): path.read_bytes() for path in table})
        place.storage.discard([f"{place.root}/{path}" for path in loose])
        assert scans.found() == {"sales": "delta"}
        found = scans.dataset("sales")
        assert (found.renamed_from, found.merged_from) == (None, ())


def test_each_of_two_folders_named_alike_goes_on_as_its_own_table(lake: Path, scans: Scans) -> None:
    for name in ("h", "h6"):
        rows = ROWS.append_column(f"of_{name}", pa.array([1] * len(ROWS)))
        write_loose(lake / name / "part-00000.parquet", rows)
        write_loose(lake / name / "part-00009.parquet", rows)
    assert scans.found() == {"h": "parquet", "h6": "parquet"}
    for name in ("h", "h6"):
        deltalake.convert_to_deltalake(str(lake / name))
    assert scans.found() == {"h": "delta", "h6": "delta"}
    for name in ("h", "h6"):
        found = scans.dataset(name)
        assert (found.renamed_from, found.merged_from) == (None, ())


@pytest.mark.parametrize("table_comes", ["first", "later"])
def test_a_table_and_dated_folders_of_the_same_word_are_two_datasets(
    lake: Path, scans: Scans, table_comes: str
) -> None:
    for number in range(2):
        write_loose(lake / f"refined/orders_2023/part-0000{number}.parquet")
    if table_comes == "later":
        assert scans.found() == {"refined/orders_YYYY": "parquet"}
    write_delta(lake / "refined/orders")
    expected = {"refined/orders": "delta", "refined/orders_YYYY": "parquet"}
    for _ in range(2):
        assert scans.found() == expected
    assert scans.last is not None
    assert len(scans.last.datasets) == 2
    lens = LakeContents.of_scan(scans.selection, scans.manifest, state_access=DEFAULT_ACCESS)
    (group,) = lens.groups
    assert (group.dataset, len(list(lens.files_of(group)))) == (
        str(lake / "refined/orders_YYYY"),
        2,
    )


def test_a_table_made_above_datasets_takes_over_none_that_its_log_does_not_name(
    lake: Path, scans: Scans
) -> None:
    for name in ("orders", "customers"):
        write_loose(lake / f"shop/{name}/part-00000.parquet", pa.table({name: [1]}))
    before = scans.found()
    assert set(before) == {"shop/orders", "shop/customers"}
    write_delta(lake / "shop")
    (table,) = scans.scan().datasets
    assert (table.format, table.renamed_from, table.merged_from) == ("delta", None, ())
    shutil.rmtree(lake / "shop/_delta_log")
    assert before.items() <= scans.found().items()


def test_a_table_elsewhere_takes_files_in_but_no_name(lake: Path, scans: Scans) -> None:
    write_loose(lake / "raw/events/part-0.parquet")
    assert set(scans.found()) == {"raw/events"}
    catalog = InMemoryCatalog("judge", warehouse=f"file://{lake}")
    catalog.create_namespace("m")
    table = catalog.create_table("m.copy", ROWS.schema)
    table.add_files([str(lake / "raw/events/part-0.parquet")])
    copy = next(each for each in scans.scan().datasets if each.path.endswith("/copy"))
    assert (copy.renamed_from, copy.merged_from) == (None, (str(lake / "raw/events"),))
