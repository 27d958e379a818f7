"""Files become the datasets that a person would name."""

import pytest

from lumos.discovery.grouping.datasets import GroupingResult
from lumos.discovery.grouping.hints import HintMatcher
from lumos.discovery.grouping.suggestions import suggest_joins
from lumos.discovery.lake.dataset_schema import partition_fields, partitioning_scheme
from lumos.storage import FileHint

from .lakes import ROOT, Lake, found_sets, grouped
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
            partitioning_scheme(each.names, each.extension, partition_fields(each.keys)) or "",
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
        each.dataset.removeprefix(f"{ROOT}/"): sum(place.file_count for place in each.file_sets)
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


TICKERS = f"t | csv | {A} | px/{{AAPL,MSFT,GOOG}}.csv"
HOSTS = f"h | csv | {B} | site1/host{{01..03}}/cpu.csv"


def test_similar_datasets_of_an_earlier_scan_are_joined_as_in_a_first_one() -> None:
    lake = Lake("scanned", f"{TICKERS}\n{HOSTS}")
    first = grouped(lake)
    assert len(first.groups) == 6
    found = grouped(lake, join_similar=True, before=first.state)
    assert {
        each.dataset.removeprefix(f"{ROOT}/"): (
            each.location.removeprefix(f"{ROOT}/"), each.renamed_from, len(each.merged_from)
        )
        for each in found.groups
    } == {
        "px": ("px/*.csv", f"{ROOT}/px/AAPL.csv", 2),
        "site1/hostNNN/cpu.csv": ("site1/host*/cpu.csv", f"{ROOT}/site1/host01/cpu.csv", 2),
    }  # fmt: skip
    again = grouped(lake, join_similar=True, before=found.state)
    assert [(each.dataset, each.renamed_from, each.merged_from) for each in again.groups] == [
        (each.dataset, None, ()) for each in found.groups
    ]
    apart = grouped(lake, before=again.state)
    assert [each.dataset for each in apart.groups] == [each.dataset for each in first.groups]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param(
            (TICKERS,), (f"t | csv | {A} | px/{{AAPL,IBM}}.csv",), {"px": 2}, id="members change"
        ),
        pytest.param(
            (TICKERS, f"p | parquet | {B} | px/part-0.parquet"),
            (TICKERS, f"p | parquet | {B} | px/part-0.parquet"),
            {"px": 1, "px/*.csv": 3}, id="the folder has a table of another format",
        ),
        pytest.param(
            (TICKERS,),
            (TICKERS, f"c | csv | {B} | px/{{AT,CH,DE,FR}}.csv"),
            {"px": 3, "px/AT.csv": 4}, id="more datasets of other columns come",
        ),
        pytest.param(
            (TICKERS,), (TICKERS, f"x | csv | {A} | px/2024/columns.csv"),
            {"px": 3, "px/columns.csv": 1}, id="a file of another folder comes",
        ),
    ],
)  # fmt: skip
def test_joined_datasets_keep_their_path(
    first: tuple[str, ...], second: tuple[str, ...], expected: dict[str, int]
) -> None:
    before = grouped(Lake("first", "\n".join(first)), join_similar=True).state
    assert groups_of(*second, join_similar=True, before=before) == expected


def test_similar_datasets_replace_a_hint_that_is_removed() -> None:
    hint = FileHint(path="px/*.csv")
    before = grouped(Lake("hinted", TICKERS), hints=[hint]).state
    assert groups_of(TICKERS, before=before, join_similar=True) == {"px": 3}


@pytest.mark.parametrize(
    "line",
    [
        "v1/orders.csv; v2/orders.csv",
        "orders_v1/part-0.csv; orders_v2/part-0.csv",
        "ordersV1/part-0.csv; ordersV2/part-0.csv",
        "px/AAPL.csv; px/2024/MSFT.csv",
        "px/AAPL.csv; py/AAPL.csv",
        "checkout/part-0.csv; login/part-0.csv",
    ],
)
def test_only_files_of_one_folder_and_numbered_folders_are_joined(line: str) -> None:
    assert len(groups_of(f"t | csv | {A} | {line}", join_similar=True)) == 2


def suggested(
    *lines: str, hints: tuple[FileHint, ...] = ()
) -> list[tuple[int, tuple[str, ...], str]]:
    """How many datasets each suggestion joins, and the patterns and the name of its hint.

    Checked on the way: the hint joins the files of these datasets and no others, and so does
    `join_similar` where it is said to.
    """
    lake = Lake("suggested", "\n".join(lines))
    schemas = {file.schema.full: file.schema for file in lake.files()}
    found = grouped(lake, hints=hints)
    files_of = _files_by_dataset(lake, found, hints)
    every = suggest_joins(found.groups, schemas, grouping=found, root=ROOT)
    for each in every:
        members = frozenset().union(*(files_of[path] for path in each.datasets))
        if each.hint:
            joining = (*hints, FileHint(path=each.hint, name=each.name))
            joined = _files_by_dataset(lake, grouped(lake, hints=joining), joining)
            others = {path: some for path, some in files_of.items() if path not in each.datasets}
            assert sorted(map(sorted, joined.values())) == sorted(
                map(sorted, [*others.values(), members])
            )
            assert others.items() <= joined.items()
        by_setting = found_sets(lake, grouped(lake, hints=hints, join_similar=True), hints)
        assert (members in by_setting) == each.join_similar
    return [(len(each.datasets), each.hint, each.name) for each in every]


def _files_by_dataset(
    lake: Lake, found: GroupingResult, hints: tuple[FileHint, ...]
) -> dict[str, frozenset[str]]:
    placing = HintMatcher(hints, root=ROOT)
    dataset_of = {place.key: each.dataset for each in found.groups for place in each.file_sets}
    files: dict[str, set[str]] = {}
    for file in lake.files():
        assignment = placing.assign(file.path)
        key = (assignment.base, assignment.pattern, file.format or "", file.schema.full)
        if key in dataset_of:
            files.setdefault(dataset_of[key], set()).add(file.path)
    return {path: frozenset(some) for path, some in files.items()}


LOGS = f"a | csv | {A} | e/{{app,pos,web}}_log/part-0.csv"


@pytest.mark.parametrize(
    ("lines", "hint", "name"),
    [
        pytest.param((LOGS,), ("e/*_log",), "e", id="common suffix"),
        pytest.param((LOGS, f"x | csv | {B} | e/x.csv"), ("e/*_log",), "e", id="next to another"),
        pytest.param(
            (LOGS, f"x | csv | {B} | e/old_log/part-0.csv"),
            ("e/app_log", "e/pos_log", "e/web_log"), "e", id="another has the suffix",
        ),
        pytest.param(
            (LOGS, f"x | csv | {B} | e/old_log/deep/x.csv"),
            ("e/app_log", "e/pos_log", "e/web_log"), "e", id="a table in a folder with the suffix",
        ),
        pytest.param(
            (LOGS, f"x | json | {B} | e/old_log/part-0.json"),
            ("e/app_log", "e/pos_log", "e/web_log"), "e", id="another format has the suffix",
        ),
        pytest.param((LOGS, f"x | csv | {B} | e/app_log/x.csv"), (), "e", id="a table in a member"),
        pytest.param((LOGS, f"x | csv | {B} | e/part-0.csv"), ("e/*_log",), "all_e", id="name is taken"),
        pytest.param((f"a | csv | {A} | e/a[b].csv; e/c[b].csv",), (), "e", id="special characters"),
        pytest.param((f"a | csv | {A} | h/host{{01..02}}/part-0.csv",), ("h/host*",), "host", id="numbered folders"),
        pytest.param(
            (f"a | csv | {A} | host{{01..12}}/cpu.csv",), ("host*/cpu.csv",), "cpu",
            id="a file in numbered folders",
        ),
        pytest.param(
            (f"a | csv | {A} | host{{01..12}}/cpu.csv", f"b | csv | {B} | hosts/cpu.csv"),
            tuple(f"host{number:02d}/cpu.csv" for number in range(1, 13)), "cpu",
            id="numbered folders next to a word",
        ),
        pytest.param(
            (f"a | csv | {A} | rack{{1..2}}/host{{01..02}}/cpu.csv",), ("rack*/host*/cpu.csv",), "cpu",
            id="two numbered levels",
        ),
        pytest.param(
            (f"a | csv | {A} | v1/orders.csv; v2/orders.csv",), None, "", id="versions of a path",
        ),
        pytest.param((f"a | csv | {A} | app/users.csv; app/accounts.csv",), ("app/*.csv",), "app", id="all files"),
        pytest.param(
            (f"a | csv | {A} | px/{{AAPL,MSFT}}.csv", f"b | csv | {A} | px/2024/columns.csv"),
            ("px/*.csv",), "px", id="all files of a folder with a folder",
        ),
        pytest.param(
            (f"a | csv | {A} | app/users.csv; app/accounts.csv", f"b | csv | {B} | app/visits.csv"),
            ("app/accounts.csv", "app/users.csv"), "app", id="letters that are no word",
        ),
        pytest.param(
            (f"a | csv | {A} | app/users.csv; app/accounts.csv", f"b | json | {B} | app/pay.json"),
            ("app/accounts.csv", "app/users.csv"), "app", id="not all files of the folder",
        ),
        pytest.param(
            (f"a | csv | {A} | dsales/part-0.csv; dstock/part-0.csv", f"b | csv | {B} | x/part-0.csv"),
            ("dsales", "dstock"), "lake", id="folders that begin with the same letters",
        ),
        pytest.param(
            (f"a | json | {A} | raw/{{checkout,login,signup}}/part-0.json",), ("raw/*",), "raw",
            id="all folders",
        ),
        pytest.param(
            (
                f"a | json | {A} | raw/{{checkout,login,signup}}/part-0.json",
                f"b | json | {B} | raw/part-0.json",
            ),
            ("raw/checkout", "raw/login", "raw/signup"), "raw", id="the folder is a table itself",
        ),
        pytest.param(
            (
                f"a | json | {A} | raw/{{checkout,login,signup}}/part-0.json",
                "- | csv | title licence | raw/metadata.csv.bak",
            ),
            ("raw/checkout", "raw/login", "raw/signup"), "raw", id="a file beside data",
        ),
        pytest.param(
            (f"a | csv.gz | {A} | px/{{AAPL,MSFT}}.csv.gz",), ("px/*.csv.gz",), "px", id="compressed",
        ),
        pytest.param(
            (f"a | csv | {A} | {{green,yellow}}_2024-0{{1..2}}.csv", f"b | csv | {B} | x.csv"),
            ("green_*.csv", "yellow_*.csv"), "lake", id="dated files",
        ),
    ],
)  # fmt: skip
def test_a_suggested_hint_joins_the_similar_datasets_and_no_others(
    lines: tuple[str, ...], hint: tuple[str, ...] | None, name: str
) -> None:
    expected = () if hint is None else tuple(f"{ROOT}/{path}" for path in hint)
    found = [(patterns, name) for _, patterns, name in suggested(*lines)]
    assert found == ([] if hint is None else [(expected, name)])


def test_a_suggestion_leaves_the_datasets_of_other_hints_alone() -> None:
    hint = FileHint(path="e/old_log", name="kept")
    (found,) = suggested(LOGS, f"x | csv | {B} | e/old_log/part-0.csv", hints=(hint,))
    assert found == (3, tuple(f"{ROOT}/e/{app}_log" for app in ("app", "pos", "web")), "e")


@pytest.mark.parametrize("lake", _LAKES, ids=lambda lake: lake.name)
def test_what_is_suggested_for_a_lake_joins_nothing_else(lake: Lake) -> None:
    for count, patterns, name in suggested(*lake.table.splitlines()):
        assert count > 1
        assert name
        assert len(set(patterns)) == len(patterns)
