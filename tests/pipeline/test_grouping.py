"""Files become the datasets that a person would name."""

import pytest

from .lakes import ROOT, Lake, found_sets, grouped, score
from .lakes_company import COMPANY
from .lakes_eighth import EIGHTH
from .lakes_eleventh import ELEVENTH
from .lakes_fifth import FIFTH
from .lakes_fourth import FOURTH
from .lakes_ninth import NINTH
from .lakes_public import PUBLIC
from .lakes_second import SECOND
from .lakes_seventh import SEVENTH
from .lakes_sixth import SIXTH
from .lakes_tenth import TENTH
from .lakes_third import THIRD
from .lakes_thirteenth import THIRTEENTH
from .lakes_twelfth import TWELFTH
from .lakes_writers import WRITERS

# Where people may see it one way or the other, or more than names and columns is needed.
_OPEN = {"census tables", "tennis"}
_LAKES = [
    *PUBLIC,
    *WRITERS,
    *COMPANY,
    *SECOND,
    *THIRD,
    *FOURTH,
    *FIFTH,
    *SIXTH,
    *SEVENTH,
    *EIGHTH,
    *NINTH,
    *TENTH,
    *ELEVENTH,
    *TWELFTH,
    *THIRTEENTH,
]


@pytest.mark.parametrize(
    "lake", [lake for lake in _LAKES if lake.name not in _OPEN], ids=lambda lake: lake.name
)
def test_a_lake_falls_into_the_datasets_that_people_see_in_it(lake: Lake) -> None:
    result = grouped(lake)
    assert found_sets(lake, result) == lake.expected()


def test_the_whole_collection_is_found() -> None:
    total = score(_LAKES)
    assert len(_LAKES) >= 60
    assert total.f1 >= 0.95, total


def test_names_of_lakes_are_distinct() -> None:
    assert len({lake.name for lake in _LAKES}) == len(_LAKES)


@pytest.mark.parametrize("lake", _LAKES, ids=lambda lake: lake.name)
def test_the_order_of_files_does_not_matter(lake: Lake) -> None:
    first = {(each.dataset, each.location) for each in grouped(lake).groups}
    other = {(each.dataset, each.location) for each in grouped(lake, reverse=True).groups}
    assert first == other


@pytest.mark.parametrize("lake", _LAKES, ids=lambda lake: lake.name)
def test_every_dataset_has_a_path_of_its_own_and_a_reason(lake: Lake) -> None:
    groups = grouped(lake).groups
    paths = [each.dataset for each in groups]
    assert len(set(paths)) == len(paths)
    assert all(path == ROOT or path.startswith(f"{ROOT}/") for path in paths)
    assert all(each.rule.name and each.rule.reason for each in groups)


def named(name: str) -> dict[str, tuple[str, str]]:
    """Path, location and partitioning below the root of every dataset of a lake."""
    from lumos.pipeline.partitions import partition_fields, scheme

    (lake,) = (lake for lake in _LAKES if lake.name == name)
    return {
        each.dataset.removeprefix(ROOT): (
            each.location.removeprefix(ROOT),
            scheme(each.names, each.ending, partition_fields(each.keys)) or "",
        )
        for each in grouped(lake).groups
    }


@pytest.mark.parametrize(
    ("lake", "expected"),
    [
        ("New York taxi trips", {
            "/misc/taxi_zone_lookup.csv": ("/misc/taxi_zone_lookup.csv", ""),
            "/trip-data/fhv_tripdata.parquet":
                ("/trip-data/fhv_tripdata_*.parquet", "fhv_tripdata_{yyyy-mm}.parquet"),
            "/trip-data/green_tripdata.parquet":
                ("/trip-data/green_tripdata_*.parquet", "green_tripdata_{yyyy-mm}.parquet"),
            "/trip-data/yellow_tripdata.parquet":
                ("/trip-data/yellow_tripdata_*.parquet", "yellow_tripdata_{yyyy-mm}.parquet"),
        }),
        ("Spark by date", {"/events": ("/events", "dt={date}"), "/users": ("/users", "")}),
        ("Spark year, month, day", {
            "/raw/clicks": ("/raw/clicks", "year={yyyy}/month={mm}/day={dd}"),
            "/raw/views": ("/raw/views", "year={yyyy}/month={mm}/day={dd}"),
        }),
        ("hive keys with word values", {
            "/sales": ("/sales", "region={region}/channel={channel}"),
        }),
        ("CloudTrail", {
            "/AWSLogs/CloudTrail":
                ("/AWSLogs/*/CloudTrail", "{n}/CloudTrail/{region}/{yyyy}/{mm}/{dd}"),
            "/AWSLogs/CloudTrail-Digest":
                ("/AWSLogs/*/CloudTrail-Digest", "{n}/CloudTrail-Digest/{region}/{yyyy}/{mm}/{dd}"),
            "/AWSLogs/vpcflowlogs":
                ("/AWSLogs/*/vpcflowlogs", "{n}/vpcflowlogs/{region}/{yyyy}/{mm}/{dd}"),
        }),
        ("one dated file", {"/events.json": ("", "events_{date}.json")}),
        ("days above tables", {
            "/landing/order_lines.json": ("/landing/*/order_lines.json", "{date}"),
            "/landing/orders.csv": ("/landing/*/orders.csv", "{date}"),
            "/landing/users.csv": ("/landing/*/users.csv", "{date}"),
        }),
        ("stocks and funds", {
            "/etfs": ("/etfs", ""), "/stocks": ("/stocks", ""),
            "/symbols_valid_meta.csv": ("/symbols_valid_meta.csv", ""),
        }),
        ("a table beside partitions", {
            "/o": ("/o", "k={k}"), "/o/other.parquet": ("/o/other.parquet", ""),
        }),
        ("two tables in a folder", {
            "/ref/orders.csv": ("/ref/orders.csv", ""), "/ref/users.csv": ("/ref/users.csv", ""),
        }),
    ],
)  # fmt: skip
def test_datasets_are_named_and_described_as_people_do(
    lake: str, expected: dict[str, tuple[str, str]]
) -> None:
    assert named(lake) == expected


@pytest.mark.parametrize("size", [1, 2, 3, 400])
def test_the_number_of_files_changes_no_name(size: int) -> None:
    lines = f"""
        events | json | id kind at | raw/events/dt=2024-01-{{01..{min(size, 28):02d}}}/part-0.json
        daily | csv | day:date total:float | kpi/daily_{{1..{size}}}.csv
        users | csv | id:int name | kpi/users.csv
    """
    paths = [each.dataset for each in grouped(Lake("sizes", lines)).groups]
    assert paths == [f"{ROOT}/kpi/daily.csv", f"{ROOT}/kpi/users.csv", f"{ROOT}/raw/events"]
