"""Any path is explained: what was decided, by which rule, and why."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from files import write_parquet, write_text
from lumos import Lumos
from lumos.discovery.reports import ExplainReport
from lumos.errors import MisuseError

pytestmark = pytest.mark.usefixtures("workplace")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    lake = tmp_path / "lake"
    for day in ("2024-01-01", "2024-01-02"):
        write_parquet(lake / f"events/dt={day}/part-0.parquet", id=pa.int64(), name=pa.string())
    write_parquet(lake / "events/dt=2024-01-03/part-0.parquet", id=pa.int64())
    write_text(lake / "ref/users.csv", ["id,name", "1,Ann"])
    for day in ("20240101", "20240102"):
        write_text(lake / f"ref/rates_{day}.csv", ["code;rate", "EUR;1.5"])
    write_text(lake / "ref/metadata.json", ['{"title": "x"}'])
    (lake / "ref/logo.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (lake / "ref/bad.parquet").write_bytes(b"PAR1 cut off")
    (lake / "events/_SUCCESS").touch()
    return lake


@pytest.fixture(params=["afresh", "scanned"])
def lumos(request: pytest.FixtureRequest, lake: Path) -> Lumos:
    """Lumos before and after a scan of the lake."""
    lumos = Lumos(overrides={"scan.exclude": ["*_20240102.csv"]})
    if request.param == "scanned":
        request.getfixturevalue("spark")
        lumos.ingest(lake)
    return lumos


@pytest.mark.parametrize(
    ("path", "verdict", "words"),
    [
        ("events/_SUCCESS", "hidden", "markers"),
        ("ref/rates_20240102.csv", "excluded", "configuration"),
        ("ref/logo.png", "not_data", "data file"),
        ("ref/metadata.json", "accompanies", "description"),
        ("ref/bad.parquet", "unreadable", "Parquet"),
        ("ref/users.csv", "dataset", "no other file"),
        ("events/dt=2024-01-01/part-0.parquet", "dataset", "partition values"),
    ],
)
def test_every_kind_of_file_is_explained(
    lumos: Lumos, lake: Path, path: str, verdict: str, words: str
) -> None:
    report = lumos.explain(lake / path)
    assert (report.kind, report.verdict, report.path) == ("file", verdict, str(lake / path))
    assert words in report.reason


def test_a_file_of_a_dataset_shows_rule_partition_and_drift(lumos: Lumos, lake: Path) -> None:
    new = lumos.explain(lake / "events/dt=2024-01-03/part-0.parquet")
    (dataset,) = new.datasets
    assert (dataset.urn, dataset.rule) == (f"lumos://file{lake}/events", "pattern")
    assert (dataset.files_here, dataset.files) == (1, 3)
    assert [(each.key, each.value) for each in new.partitions] == [("dt", "2024-01-03")]
    assert not new.drifts
    assert lumos.explain(lake / "events/dt=2024-01-01/part-0.parquet").drifts


@pytest.mark.usefixtures("spark")
def test_a_dataset_is_explained_by_its_name(lake: Path, tmp_path: Path) -> None:
    lumos = Lumos()
    lumos.ingest(lake)
    for name, location, rule in (
        ("events", "events", "pattern"),
        ("rates", "ref/rates_*.csv", "pattern"),
        (f"lumos://file{lake}/ref/users.csv", "ref/users.csv", "pattern"),
    ):
        report = lumos.explain(name)
        (dataset,) = report.datasets
        assert report.path.startswith(f"{lake}/{location}")
        assert (dataset.rule, dataset.files_here) == (rule, dataset.files)
        assert (report.others, report.suggestions) == ((), ())
    # A path that is there goes before a dataset of that name.
    (tmp_path / "events").mkdir()
    assert lumos.explain("events").path == str(tmp_path / "events")
    with pytest.raises(MisuseError, match=r"Did you mean 'rates'\? See all with: lumos list"):
        lumos.explain("rate")


def test_patterns_of_files_do_not_pass_over_their_folder(lake: Path) -> None:
    report = Lumos(overrides={"scan.file_patterns": ["*.csv"]}).explain(lake / "ref")
    assert (report.kind, len(report.datasets)) == ("folder", 2)


def test_a_folder_lists_its_datasets_and_other_files(lumos: Lumos, lake: Path) -> None:
    report = lumos.explain(lake / "ref")
    assert report.kind == "folder"
    assert [dataset.urn.rpartition("/")[2] for dataset in report.datasets] == [
        "rates_YYYY-MM-DD.csv",
        "users.csv",
    ]
    assert {each.verdict: each.files for each in report.others} == {
        "not_data": 1,
        "accompanies": 1,
        "unreadable": 1,
    }


@pytest.mark.usefixtures("spark")
def test_what_came_after_the_scan_is_explained_as_new(lake: Path) -> None:
    lumos = Lumos()
    lumos.ingest(lake)
    new = write_parquet(lake / "events/dt=2024-01-04/part-7.parquet", id=pa.int64())
    report = lumos.explain(new)
    assert report.is_new
    assert report.scanned_at is not None
    assert report.datasets[0].urn == f"lumos://file{lake}/events"
    write_text(lake / "later/a.csv", ["x,y", "1,2"])
    folder: ExplainReport = lumos.explain(lake / "later")
    assert [each.urn for each in folder.datasets] == [f"lumos://file{lake}/later/a.csv"]
    assert folder.scanned_at is None


@pytest.mark.usefixtures("spark")
def test_many_names_with_the_same_columns_are_as_many_datasets(tmp_path: Path) -> None:
    letters = "abcdefghijklmno"
    names = [f"{one}{two}name" for one in letters for two in letters]
    for name in names:
        write_text(tmp_path / f"lake/{name}.csv", ["id,name", "1,Ann"])
    lumos = Lumos()
    lumos.ingest(tmp_path / "lake")
    report = lumos.explain(tmp_path / f"lake/{names[7]}.csv")
    assert (report.verdict, report.datasets[0].files) == ("dataset", 1)
    (suggestion,) = lumos.explain(tmp_path / "lake").suggestions
    assert len(suggestion.datasets) == len(names)
    assert suggestion.hint == (f"{tmp_path}/lake/*.csv",)


def test_a_path_with_nothing_at_it_is_refused(lumos: Lumos, lake: Path) -> None:
    with pytest.raises(MisuseError, match="There is nothing at"):
        lumos.explain(lake / "events/nothing.parquet")


def test_hints_are_reported(lake: Path, tmp_path: Path) -> None:
    write_text(tmp_path / "lumos.yaml", ["scan: {datasets: [{path: 'ref/*.csv', name: all}]}"])
    write_text(tmp_path / "sources.yaml", [
        f"sources: [{{type: file, path: {lake}}}]",
        "scan: {datasets: [{path: 'ref/*.csv', name: all}]}",
    ])  # fmt: skip
    report = Lumos(tmp_path / "sources.yaml").explain(lake / "ref/users.csv")
    assert (report.datasets[0].rule, report.datasets[0].files) == ("hint", 3)


@pytest.mark.usefixtures("spark")
def test_a_bucket_is_explained_before_and_after_a_scan(lake: Path, bucket: Any) -> None:
    bucket.upload(lake, "raw")
    lumos = Lumos(overrides={"sources": [bucket.section(prefix="raw/")]})
    root = f"s3://{bucket.name}/raw"
    before = lumos.explain(f"{root}/ref")
    assert (before.kind, len(before.datasets), before.scanned_at) == ("folder", 2, None)
    lumos.ingest()
    file = lumos.explain(f"{root}/events/dt=2024-01-01/part-0.parquet")
    assert file.datasets[0].urn == f"lumos://s3/{bucket.name}/raw/events"
    assert file.scanned_at is not None
    assert file.drifts
    with pytest.raises(MisuseError, match="There is nothing at"):
        lumos.explain(f"{root}/nothing.csv")
