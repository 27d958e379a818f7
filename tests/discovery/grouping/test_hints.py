"""What the configuration says of files overrules every rule."""

import pytest

from lumos.discovery.grouping.datasets import GroupingResult, group_files
from lumos.discovery.grouping.hints import HintMatcher
from lumos.discovery.grouping.state import GroupingState
from lumos.discovery.lake.summaries import FileRow, summarise
from lumos.model.schema import Schema
from lumos.storage import FileHint

from .lakes import ROOT, schema_of

A, B = schema_of("id:int name"), schema_of("sku price:float stock:int")


def grouped(
    files: dict[str, Schema], *hints: FileHint, before: GroupingState | None = None
) -> GroupingResult:
    schemas = {schema.full: schema for schema in files.values()}
    rows = [
        FileRow(
            f"{ROOT}/{path}",
            10,
            0,
            "",
            "parquet" if path.endswith("parquet") else "csv",
            schema.full,
        )
        for path, schema in files.items()
    ]
    places = summarise(rows, root=ROOT, hints=hints).file_sets
    return group_files(places, schemas, hints=HintMatcher(hints, root=ROOT), before=before)


def sizes(result: GroupingResult) -> dict[str, int]:
    return {
        each.dataset.removeprefix(f"{ROOT}/"): sum(place.file_count for place in each.file_sets)
        for each in result.groups
    }


TABLES = {"raw/users.csv": A, "raw/orders.csv": B, "raw/2024/01/x.csv": A, "ref/x.csv": B}


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (FileHint(path="raw/**"), {"raw": 3, "ref/x.csv": 1}),
        (FileHint(path="raw"), {"raw": 3, "ref/x.csv": 1}),
        (FileHint(path="/raw/*"), {"raw": 3, "ref/x.csv": 1}),
        (FileHint(path=f"{ROOT}/raw"), {"raw": 3, "ref/x.csv": 1}),
        (FileHint(path="raw/*s.csv"), {"raw/s.csv": 2, "raw/x.csv": 1, "ref/x.csv": 1}),
        (FileHint(path="raw/**", name="all"), {"raw/all": 3, "ref/x.csv": 1}),
        (FileHint(path="**/x.csv"), {"raw/users.csv": 1, "raw/orders.csv": 1, "x.csv": 2}),
        (FileHint(path="{top}/**"), {"raw": 3, "ref": 1}),
        (FileHint(path="{top}/**", name="all"), {"all/raw": 3, "all/ref": 1}),
        (FileHint(path="**"), {"": 4}),
    ],
    ids=lambda value: str(value.path) if isinstance(value, FileHint) else "",
)
def test_all_files_that_fit_a_hint_are_one_dataset(
    hint: FileHint, expected: dict[str, int]
) -> None:
    found = {path.removeprefix(ROOT): size for path, size in sizes(grouped(TABLES, hint)).items()}
    assert found == expected


def test_files_apart_are_never_put_together() -> None:
    files = {f"exports/table{number}.csv": A for number in range(3)}
    assert sizes(grouped(files)) == {"exports/tableNNN.csv": 3}
    apart = grouped(files, FileHint(path="exports/*", split=True))
    assert sizes(apart) == dict.fromkeys(files, 1)
    assert {each.rule.name for each in apart.groups} == {"hint"}


def test_every_value_of_a_key_is_split_off() -> None:
    files = {f"lake/{table}/{day}.csv": A for table in "ab" for day in (1, 2)}
    hint = FileHint(path="lake/{table}/**", split=True)
    assert sizes(grouped(files, hint)) == {"lake/a": 2, "lake/b": 2}


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        pytest.param(("raw/orders_v1/**", "raw/orders_v2"), "raw/orders", id="one folder"),
        pytest.param(("raw/orders_v1", "old/2019/orders_v2/*.csv"), "orders", id="two folders"),
        pytest.param(
            (f"{ROOT}/raw/orders_v1", f"{ROOT}/raw/orders_v2"), "raw/orders", id="whole paths"
        ),
    ],
)
def test_several_paths_form_one_dataset(paths: tuple[str, ...], expected: str) -> None:
    files = {"raw/orders_v1/a.csv": A, "raw/orders_v2/b.csv": A, "old/2019/orders_v2/c.csv": A}
    found = grouped(files, FileHint(path=paths, name="orders"))
    assert sizes(found)[expected] == 2


def test_a_whole_path_of_another_root_matches_nothing() -> None:
    hints = FileHint(path=f"{ROOT}_old/raw"), FileHint(path="s3://bucket/raw")
    assert sizes(grouped(TABLES, *hints)) == sizes(grouped(TABLES))


def test_all_matching_hints_are_known() -> None:
    hints = HintMatcher(
        [FileHint(path="raw/users.csv"), FileHint(path="ref"), FileHint(path="raw/**")], root=ROOT
    )
    assert hints.matching_hints(f"{ROOT}/raw/users.csv") == [0, 2]
    assert hints.matching_hints(f"{ROOT}/x.csv") == []


def test_the_first_hint_that_fits_decides() -> None:
    hints = FileHint(path="raw/users.csv"), FileHint(path="raw/**")
    assert sizes(grouped(TABLES, *hints)) == {"raw": 2, "raw/users.csv": 1, "ref/x.csv": 1}


def test_a_hint_may_cut_through_files_that_look_alike() -> None:
    files = {f"log/app_{year}0101.csv": A for year in range(2019, 2025)}
    hint = FileHint(path="log/app_202*.csv", name="recent")
    assert sizes(grouped(files, hint)) == {"log/app_YYYY-MM-DD.csv": 1, "log/recent": 5}


def test_keys_in_braces_stay_partition_columns() -> None:
    files = {f"lake/{table}/dt=2024-01-0{day}/x.csv": A for table in "ab" for day in (1, 2)}
    result = grouped(files, FileHint(path="lake/{table}/**"))
    assert sizes(result) == {"lake/a": 2, "lake/b": 2}
    assert [key.key for key in result.groups[0].keys] == ["dt"]
    assert result.groups[0].location == f"{ROOT}/lake/a"


def test_formats_stay_apart_below_a_hint() -> None:
    result = grouped({"t/a.csv": A, "t/b.parquet": A}, FileHint(path="t"))
    assert sizes(result) == {"t": 1, "t/*.csv": 1}


def test_a_hint_renames_what_was_found_without_it() -> None:
    first = grouped(TABLES)
    hinted = grouped(TABLES, FileHint(path="raw/**", name="all"), before=first.state)
    (dataset,) = (each for each in hinted.groups if each.rule.name == "hint")
    former = {dataset.renamed_from, *dataset.merged_from}
    assert former == {f"{ROOT}/raw/{name}.csv" for name in ("orders", "users", "x")}
    again = grouped(TABLES, FileHint(path="raw/**", name="all"), before=hinted.state)
    assert [(each.renamed_from, each.merged_from) for each in again.groups] == [(None, ())] * 2


def test_a_hint_takes_only_its_files_from_a_dataset() -> None:
    files = {f"log/app_{year}0101.csv": A for year in range(2019, 2025)}
    first = grouped(files)
    hint = FileHint(path="log/app_2024*.csv", name="recent")
    found = {each.dataset: each for each in grouped(files, hint, before=first.state).groups}
    assert found[f"{ROOT}/log/recent"].renamed_from is None
    assert f"{ROOT}/log/app_YYYY-MM-DD.csv" in found


def test_a_hint_takes_accompanying_files_too() -> None:
    files = {"t/a.csv": A, "t/metadata.csv.bak": A}
    assert sizes(grouped(files)) == {"t/a.csv": 1}
    assert sizes(grouped(files, FileHint(path="t"))) == {"t": 2}


def test_other_hints_mean_other_sums() -> None:
    rows = [FileRow(f"{ROOT}/a.csv", 1, 0, "", "csv", A.full)]
    plain = summarise(rows, root=ROOT)
    one = summarise(rows, root=ROOT, hints=(FileHint(path="a*"),))
    two = summarise(rows, root=ROOT, hints=(FileHint(path="a*", name="b"),))
    assert len({plain.hints, one.hints, two.hints}) == 3


LOGS = {"raw/a_log/0.csv": A, "raw/b_log/0.csv": A, "raw/orders/0.csv": B}
JOIN = FileHint(path="raw/*_log", name="orders")


def changes(result: GroupingResult) -> dict[str, tuple[object, ...]]:
    """For each dataset that was another before: what it was."""
    return {
        each.dataset.removeprefix(f"{ROOT}/"): earlier
        for each in result.groups
        if any(earlier := (each.renamed_from, each.merged_from, each.split_from))
    }


@pytest.mark.parametrize("is_scanned", [False, True])
def test_a_hint_does_not_take_the_path_of_another_dataset(is_scanned: bool) -> None:
    first = grouped(LOGS)
    found = grouped(LOGS, JOIN, before=first.state if is_scanned else None)
    assert sizes(found) == {"raw/all_orders": 2, "raw/orders": 1}
    assert [each.requested_path for each in found.groups] == [f"{ROOT}/raw/orders", None]
    if is_scanned:
        assert changes(found) == {
            "raw/all_orders": (f"{ROOT}/raw/a_log", (f"{ROOT}/raw/b_log",), None)
        }
    # Without the hint all is as before.
    removed = grouped(LOGS, before=found.state)
    assert sizes(removed) == sizes(first)
    assert set(changes(removed).values()) <= {(None, (), f"{ROOT}/raw/all_orders")}


def test_a_hint_may_have_the_path_of_a_dataset_that_it_takes_in() -> None:
    files = {"raw/orders/0.csv": A, "raw/orders_old/0.csv": A}
    found = grouped(files, FileHint(path="raw/orders*", name="orders"), before=grouped(files).state)
    assert sizes(found) == {"raw/orders": 2}
    assert changes(found) == {"raw/orders": (None, (f"{ROOT}/raw/orders_old",), None)}


def test_a_hint_that_takes_a_part_of_a_dataset_gets_a_path_of_its_own() -> None:
    files = {"raw/orders/0.csv": A, "raw/orders/dt=2024-01-01/0.csv": A}
    found = grouped(files, FileHint(path="raw/orders/dt=*", name="orders"))
    assert len(sizes(found)) == 2
    found = grouped(files, FileHint(path=("raw/orders/dt=*", "raw/x"), name="orders"))
    assert sizes(found) == {"raw/all_orders": 1, "raw/orders": 1}


def test_the_path_of_a_hint_stays_whatever_comes_and_goes() -> None:
    logs = {path: schema for path, schema in LOGS.items() if "_log" in path}
    alone = grouped(logs, JOIN)
    assert sizes(alone) == {"raw/orders": 2}
    later = grouped(LOGS, JOIN, before=alone.state)
    assert sizes(later) == {"raw/orders": 2, "raw/orders/*.csv": 1}
    assert [each.requested_path for each in later.groups] == [None, None]
    beside = grouped(LOGS, JOIN)
    assert sizes(grouped(logs, JOIN, before=beside.state)) == {"raw/all_orders": 2}


def test_the_formats_of_a_hint_stay_together_where_its_path_is_taken() -> None:
    files = {**LOGS, "raw/c_log/0.parquet": A}
    expected = {"raw/all_orders": 1, "raw/all_orders/*.csv": 2, "raw/orders": 1}
    found = grouped(files, JOIN)
    assert sizes(found) == expected
    assert sizes(grouped(files, JOIN, before=found.state)) == expected
    more = grouped(files, JOIN, before=grouped(LOGS, JOIN).state)
    assert sizes(more) == {"raw/all_orders": 2, "raw/all_orders/*.parquet": 1, "raw/orders": 1}


def test_a_hint_for_the_root_stays_in_it_where_its_path_is_taken() -> None:
    found = grouped({"0.parquet": B, "a.csv": A, "b.csv": A}, FileHint(path="*.csv"))
    assert {each.dataset for each in found.groups} == {ROOT, f"{ROOT}/all"}


def test_several_keys_come_below_the_name() -> None:
    files = {f"ten/{tenant}/{table}/0.csv": A for tenant in ("x", "y") for table in ("o", "u")}
    found = sizes(grouped(files, FileHint(path="ten/{tenant}/{table}", name="all")))
    assert found == {f"ten/all/{tenant}/{table}": 1 for tenant in "xy" for table in "ou"}
