"""Files become the datasets that a person would name."""

import pytest

from lumos.model.dataset import Location, Statistics
from lumos.model.discovery import FoundDataset
from lumos.pipeline.grouping import suggest_joins
from lumos.pipeline.partitions import partition_fields, scheme

from .lakes import ROOT, Lake, found_sets, grouped, schema_of
from .lakes_company import COMPANY
from .lakes_eighth import EIGHTH
from .lakes_eleventh import ELEVENTH
from .lakes_fifth import FIFTH
from .lakes_fourth import FOURTH
from .lakes_more_datasets import MORE_DATASETS
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


@pytest.mark.parametrize("lake", _LAKES, ids=lambda lake: lake.name)
def test_no_dataset_holds_files_of_two_tables(lake: Lake) -> None:
    expected = lake.expected()
    for found in found_sets(lake, grouped(lake)):
        assert any(found <= table for table in expected), sorted(found)


@pytest.mark.parametrize("lake", _LAKES, ids=lambda lake: lake.name)
def test_a_lake_falls_into_the_datasets_that_people_see_in_it(lake: Lake) -> None:
    found, expected = found_sets(lake, grouped(lake)), lake.expected()
    if lake.name in MORE_DATASETS:
        assert (len(expected), len(found)) == MORE_DATASETS[lake.name]
    else:
        assert found == expected


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
            "/trip-data/fhv_tripdata_YYYY-MM.parquet":
                ("/trip-data/fhv_tripdata_*.parquet", "fhv_tripdata_{yyyy-mm}.parquet"),
            "/trip-data/green_tripdata_YYYY-MM.parquet":
                ("/trip-data/green_tripdata_*.parquet", "green_tripdata_{yyyy-mm}.parquet"),
            "/trip-data/yellow_tripdata_YYYY-MM.parquet":
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
        ("one dated file", {
            "/events_YYYY-MM-DD.json": ("/events_*.json", "events_{date}.json"),
        }),
        ("days above tables", {
            "/landing/order_lines.json": ("/landing/*/order_lines.json", "{date}"),
            "/landing/orders.csv": ("/landing/*/orders.csv", "{date}"),
            "/landing/users.csv": ("/landing/*/users.csv", "{date}"),
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
    assert paths == [f"{ROOT}/kpi/daily_NNN.csv", f"{ROOT}/kpi/users.csv", f"{ROOT}/raw/events"]


EVENTS = (
    "checkout_started",
    "signed_up",
    "cart_viewed",
    "item_added",
    "paid",
    "left",
    "came",
    "bought",
)


@pytest.mark.parametrize(
    "layout", ["{0}/dt=2024-03-0{{1..2}}/part-0.parquet", "{0}/part-0.parquet", "{0}.parquet"]
)
@pytest.mark.parametrize("count", [2, 8])
def test_tables_with_the_same_columns_are_different_datasets(layout: str, count: int) -> None:
    lines = [f"{name} | parquet | id at:time | {layout.format(name)}" for name in EVENTS[:count]]
    assert len(grouped(Lake("events", "\n".join(lines))).groups) == count


@pytest.mark.parametrize("count", [2, 10, 40, 800])
def test_the_number_of_tables_does_not_matter(count: int) -> None:
    names = [
        f"{first}{second}{third}"
        for first in "abcdefghij"
        for second in "aeiou"
        for third in "klmnprstvwxyz"
    ]
    columns = " ".join(f"c{number}" for number in range(29))
    lines = [
        f"{name} | parquet | {columns} own_{name} | {name}_log/dt=2024-03-0{{1..2}}/part-0.parquet"
        for name in names[:count]
    ]
    assert len(grouped(Lake("logs", "\n".join(lines))).groups) == min(count, len(names))


def groups_of(*lines: str, **options: object) -> dict[str, int]:
    """Files of each dataset, by its path below the root."""
    result = grouped(Lake("some", "\n".join(lines)), **options)  # type: ignore[arg-type]
    return {
        each.dataset.removeprefix(f"{ROOT}/"): sum(place.file_count for place in each.places)
        for each in result.groups
    }


A, B, C = (
    "id kind page:int at:time",
    "order total:float currency paid:int",
    "id kind page:int browser",
)


def test_columns_that_change_along_dates_or_sequences_are_drift() -> None:
    assert groups_of(
        f"t | csv | {A} | t/dt=2024-01-01/part-0.csv", f"t | csv | {B} | t/dt=2024-01-02/part-0.csv"
    ) == {"t": 2}
    assert groups_of(f"t | csv | {A} | rates_01.csv", f"t | csv | {B} | rates_02.csv") == {
        "rates_NNN.csv": 2
    }


def test_values_with_columns_of_their_own_name_datasets() -> None:
    lake = (
        f"a | json | {A} | e/type=click/dt=2024-01-0{{1..3}}/part-0.json",
        f"b | json | {B} | e/type=order/dt=2024-01-0{{1..2}}/part-0.json",
    )
    assert groups_of(*lake) == {"e/type=click": 3, "e/type=order": 2}
    assert groups_of(*lake, f"a | json | {C} | e/type=view/dt=2024-01-01/part-0.json") == {
        "e": 4, "e/type=order": 2,
    }  # fmt: skip
    assert groups_of(lake[0], f"a | json | {C} | e/type=view/dt=2024-01-01/part-0.json") == {"e": 4}


def test_a_schema_that_several_others_contain_joins_none_of_them() -> None:
    assert groups_of(
        "a | parquet | id geometry box names websites phones tags | m/type=place/part-0.parquet",
        "b | parquet | id geometry box height floors roof colour | m/type=building/part-0.parquet",
        "c | parquet | id geometry box | m/type=connector/part-0.parquet",
    ) == {"m/type=building": 1, "m/type=connector": 1, "m/type=place": 1}


def test_two_jobs_that_write_into_one_folder_are_two_datasets() -> None:
    found = groups_of(
        f"a | parquet | {A} | out/part-00000-3b1f0c1e-1c1a-4b1e-9b0a-0123456789ab.parquet",
        f"b | parquet | {B} | out/part-00000-9b1f0c1e-1c1a-4b1e-9b0a-0123456789ab.parquet",
    )
    assert len(found) == 2


def test_a_breaking_change_is_drift_whatever_identifiers_the_files_have() -> None:
    assert groups_of(
        f"t | parquet | {A} | t/kind=x/dt=2024-01-01/part-0-3b1f0c1e-1c1a-4b1e-9b0a-0123456789ab.parquet",
        f"t | parquet | {B} | t/kind=x/dt=2024-01-02/part-0-9b1f0c1e-1c1a-4b1e-9b0a-0123456789ab.parquet",
    ) == {"t": 2}


def test_keys_name_datasets_before_identifiers_do() -> None:
    assert set(
        groups_of(
            f"a | json | {A} | e/a_key=click/9f86d081884c7d65.json; e/a_key=click/8f86d081884c7d65.json",
            f"b | json | {B} | e/a_key=order/7f86d081884c7d65.json",
        )
    ) == {"e/a_key=click", "e/a_key=order"}


def test_a_decision_by_columns_stays() -> None:
    lake = (
        f"a | json | {A} | e/type=click/dt=2024-01-01/part-0.json",
        f"b | json | {B} | e/type=order/dt=2024-01-01/part-0.json",
    )
    first = grouped(Lake("first", "\n".join(lake)))
    # Orders now have the columns of clicks.
    alike = (lake[0], f"b | json | {A} | e/type=order/dt=2024-01-0{{1..2}}/part-0.json")
    assert groups_of(*alike, before=first.state) == {"e/type=click": 1, "e/type=order": 2}
    assert groups_of(*alike) == {"e": 3}
    more = (*alike, f"c | json | {C} | e/type=view/dt=2024-01-01/part-0.json")
    assert groups_of(*more, before=first.state) == {"e/type=click": 2, "e/type=order": 2}


def test_new_values_join_the_dataset_whose_columns_they_have() -> None:
    lake = (
        f"a | json | {A} | e/type=click/part-0.json",
        f"b | json | {B} | e/type=order/part-0.json",
    )
    first = grouped(Lake("first", "\n".join(lake)))
    more = (*lake, f"b | json | {B} | e/type=refund/part-0.json")
    second = grouped(Lake("second", "\n".join(more)), before=first.state)
    assert {each.dataset.removeprefix(f"{ROOT}/") for each in second.groups} == {
        "e/type=click", "e/type=order",
    }  # fmt: skip
    assert groups_of(*more, before=second.state) == {"e/type=click": 1, "e/type=order": 2}


def test_a_stray_file_undoes_no_decision_by_columns() -> None:
    found = groups_of(
        f"a | json | {A} | e/type=click/part-0.json",
        f"b | json | {B} | e/type=order/part-0.json",
        f"c | json | {A} | e/part-0.json",
    )
    assert found == {"e": 1, "e/type=click": 1, "e/type=order": 1}


JOBS = ("3c0a8d52-6f60-4f9a-9d0b-111111111111", "9e4b7f10-8a2c-4d7e-8c3f-222222222222")


def test_new_columns_of_a_dated_spark_table_are_drift_whatever_its_jobs_are_called() -> None:
    parts = "part-0000{0..1}"
    assert groups_of(
        f"a | parquet | {A} | orders/dt=2024-01-01/{parts}-{JOBS[0]}.c000.snappy.parquet",
        f"b | parquet | {B} | orders/dt=2024-01-02/{parts}-{JOBS[1]}.c000.snappy.parquet",
    ) == {"orders": 4}
    # A partitioned write of pyarrow has one identifier in the folders of many dates.
    assert groups_of(
        f"a | parquet | {A} | orders/dt=2024-01-0{{1..2}}/{JOBS[0]}-0.parquet",
        f"b | parquet | {B} | orders/dt=2024-01-0{{3..4}}/{JOBS[1]}-0.parquet",
    ) == {"orders": 4}


@pytest.mark.parametrize(
    "files",
    [
        ("LOAD0000000{1..3}", "LOAD0000000{4..5}"),
        ("PART0000{1..3}", "PART0000{4..5}"),
        ("part-1000000{1..3}", "part-1000000{4..5}"),
        ("orders+0+000000{1000,2000}", "orders+1+000000{1000,2000}"),
    ],
)
def test_sequence_numbers_in_any_spelling_split_no_table(files: tuple[str, str]) -> None:
    old, new = files
    found = groups_of(f"a | csv | {A} | t/{old}.csv", f"b | csv | {B} | t/{new}.csv")
    assert len(found) == 1


def test_partitions_without_a_value_or_by_an_hour_split_no_table() -> None:
    assert groups_of(
        f"a | csv | {A} | t/event_date=2024-01-01/part-0.csv",
        f"b | csv | {B} | t/event_date=__HIVE_DEFAULT_PARTITION__/part-0.csv",
    ) == {"t": 2}
    assert groups_of(
        f"a | csv | {A} | t/ingestion_hour=7/part-0.csv",
        f"b | csv | {B} | t/ingestion_hour=8/part-0.csv",
    ) == {"t": 2}


def test_a_value_with_columns_of_its_own_is_set_apart_from_files_without_a_value() -> None:
    lake = (f"a | csv | {A} | e/part-0.csv", f"b | csv | {B} | e/850/part-0.csv")
    first = grouped(Lake("first", "\n".join(lake)))
    assert groups_of(*lake) == {"e": 1, "e/850": 1}
    more = (*lake, f"c | csv | {C} | e/856/part-0.csv")
    assert groups_of(*more, before=first.state) == {"e": 1, "e/850": 1, "e/856": 1}
    several = (lake[0], f"b | csv | {B} | e/kind={{x,y}}/part-0.csv")
    assert groups_of(*several) == {"e": 1, "e/kind=x": 2}


def test_a_group_of_values_keeps_the_name_of_the_pattern() -> None:
    lake = (
        f"a | json | {A} | e/type={{click,hover}}/dt=2024-01-01/part-0.json",
        f"b | json | {B} | e/type=order/dt=2024-01-01/part-0.json",
    )
    first = grouped(Lake("first", "\n".join(lake)))
    more = (
        f"a | json | {A} | e/type={{click,hover,scroll}}/dt=2024-01-01/part-0.json",
        lake[1],
        "c | json | mail subject body | e/type={mail,letter,fax,note}/dt=2024-01-01/part-0.json",
    )
    assert groups_of(*more, before=first.state) == {"e": 3, "e/type=fax": 4, "e/type=order": 1}


def test_similar_datasets_are_joined_where_a_source_says_so() -> None:
    tickers = f"t | csv | {A} | prices/{{AAPL,MSFT,GOOG}}.csv"
    odd = f"o | csv | {B} | prices/symbols.csv"
    assert len(groups_of(tickers, odd)) == 4
    assert groups_of(tickers, odd, join_similar=True) == {"prices": 3, "prices/symbols.csv": 1}
    hosts = f"h | csv | {A} | host{{0001..0012}}/cpu/dt=2024-01-0{{1..2}}/part-0.csv"
    assert len(groups_of(hosts)) == 12
    assert groups_of(hosts, join_similar=True) == {"hostNNN/cpu": 24}
    countries = f"c | csv | {B} | prices/{{DE,US}}.csv"
    first = grouped(Lake("first", f"{tickers}\n{countries}"), join_similar=True)
    more = f"c | csv | {B} | prices/{{CH,DE,FR,IT,US}}.csv"
    assert groups_of(tickers, more, join_similar=True, before=first.state) == {
        "prices": 3, "prices/DE.csv": 5,
    }  # fmt: skip
    other = f"o | csv | {B} | host0099/cpu/part-0.csv"
    assert groups_of(hosts, other, join_similar=True) == {"host0099/cpu": 1, "hostNNN/cpu": 24}


def suggested(*locations: str, others: tuple[str, ...] = ()) -> tuple[tuple[str, ...], str]:
    """The patterns and the name of the hint that is suggested for datasets."""

    def dataset(path: str, columns: str) -> FoundDataset:
        return FoundDataset(
            path=path,
            format="csv",
            location=Location(uri=path),
            schema=schema_of(columns),
            statistics=Statistics(),
            drift=(),
            content="",
        )

    (found,) = suggest_joins(
        [*(dataset(path, A) for path in locations), *(dataset(path, B) for path in others)]
    )
    return found.hint, found.name


def test_a_suggested_hint_joins_the_similar_datasets_and_no_others() -> None:
    logs = ("/l/e/a_log", "/l/e/b_log", "/l/e/c_log")
    assert suggested(*logs) == (("/l/e/*_log",), "e")
    assert suggested(*logs, others=("/l/e/x",)) == (("/l/e/*_log",), "e")
    assert suggested(*logs, others=("/l/e/d_log",)) == (logs, "e")
    assert suggested(*logs, others=("/l/e/d_log/deep/x.csv",)) == (logs, "e")
    # What lies below would be taken in as well.
    assert suggested(*logs, others=("/l/e/a_log/other.csv",)) == ((), "e")
    assert suggested(*logs, others=("/l/e/e",)) == (("/l/e/*_log",), "all_e")
    assert suggested("/l/e/a{b}.csv", "/l/e/c{b}.csv") == ((), "e")
    assert suggested("/l/h/host01", "/l/h/host02") == (("/l/h/host*",), "h")
