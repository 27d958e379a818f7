"""What the configuration says of files overrules every rule."""

import pytest

from lumos.model.schema import Schema
from lumos.pipeline.grouping import Grouping, GroupingState, group
from lumos.pipeline.hints import Hints
from lumos.pipeline.summaries import FileRow, summarise
from lumos.storage import Hint

from .lakes import ROOT, schema_of

A, B = schema_of("id:int name"), schema_of("sku price:float stock:int")


def grouped(
    files: dict[str, Schema], *hints: Hint, before: GroupingState | None = None
) -> Grouping:
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
    places = summarise(rows, root=ROOT, hints=hints).places
    return group(places, schemas, hints=Hints(hints, root=ROOT), before=before)


def sizes(result: Grouping) -> dict[str, int]:
    return {
        each.dataset.removeprefix(f"{ROOT}/"): sum(place.file_count for place in each.places)
        for each in result.groups
    }


TABLES = {"raw/users.csv": A, "raw/orders.csv": B, "raw/2024/01/x.csv": A, "ref/x.csv": B}


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (Hint(path="raw/**"), {"raw": 3, "ref/x.csv": 1}),
        (Hint(path="raw"), {"raw": 3, "ref/x.csv": 1}),
        (Hint(path="/raw/*"), {"raw": 3, "ref/x.csv": 1}),
        (Hint(path=f"{ROOT}/raw"), {"raw": 3, "ref/x.csv": 1}),
        (Hint(path="raw/*s.csv"), {"raw/s.csv": 2, "raw/x.csv": 1, "ref/x.csv": 1}),
        (Hint(path="raw/**", name="all"), {"all": 3, "ref/x.csv": 1}),
        (Hint(path="**/x.csv"), {"raw/users.csv": 1, "raw/orders.csv": 1, "x.csv": 2}),
        (Hint(path="{top}/**"), {"raw": 3, "ref": 1}),
        (Hint(path="{top}/**", name="all"), {"all/raw": 3, "all/ref": 1}),
        (Hint(path="**"), {"": 4}),
    ],
    ids=lambda value: str(value.path) if isinstance(value, Hint) else "",
)
def test_all_files_that_fit_a_hint_are_one_dataset(hint: Hint, expected: dict[str, int]) -> None:
    found = {path.removeprefix(ROOT): size for path, size in sizes(grouped(TABLES, hint)).items()}
    assert found == expected


def test_files_apart_are_never_put_together() -> None:
    files = {f"exports/table{number}.csv": A for number in range(3)}
    assert sizes(grouped(files)) == {"exports/tableNNN.csv": 3}
    apart = grouped(files, Hint(path="exports/*", split=True))
    assert sizes(apart) == dict.fromkeys(files, 1)
    assert {each.rule.name for each in apart.groups} == {"hint"}


def test_every_value_of_a_key_is_split_off() -> None:
    files = {f"lake/{table}/{day}.csv": A for table in "ab" for day in (1, 2)}
    hint = Hint(path="lake/{table}/**", split=True)
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
    found = grouped(files, Hint(path=paths, name="orders"))
    assert sizes(found)[expected] == 2


def test_a_whole_path_of_another_root_matches_nothing() -> None:
    hints = Hint(path=f"{ROOT}_old/raw"), Hint(path="s3://bucket/raw")
    assert sizes(grouped(TABLES, *hints)) == sizes(grouped(TABLES))


def test_all_matching_hints_are_known() -> None:
    hints = Hints([Hint(path="raw/users.csv"), Hint(path="ref"), Hint(path="raw/**")], root=ROOT)
    assert hints.matching(f"{ROOT}/raw/users.csv") == [0, 2]
    assert hints.matching(f"{ROOT}/x.csv") == []


def test_the_first_hint_that_fits_decides() -> None:
    hints = Hint(path="raw/users.csv"), Hint(path="raw/**")
    assert sizes(grouped(TABLES, *hints)) == {"raw": 2, "raw/users.csv": 1, "ref/x.csv": 1}


def test_a_hint_may_cut_through_files_that_look_alike() -> None:
    files = {f"log/app_{year}0101.csv": A for year in range(2019, 2025)}
    hint = Hint(path="log/app_202*.csv", name="recent")
    assert sizes(grouped(files, hint)) == {"log/app_YYYY-MM-DD.csv": 1, "log/recent": 5}


def test_keys_in_braces_stay_partition_columns() -> None:
    files = {f"lake/{table}/dt=2024-01-0{day}/x.csv": A for table in "ab" for day in (1, 2)}
    result = grouped(files, Hint(path="lake/{table}/**"))
    assert sizes(result) == {"lake/a": 2, "lake/b": 2}
    assert [key.key for key in result.groups[0].keys] == ["dt"]
    assert result.groups[0].location == f"{ROOT}/lake/a"


def test_formats_stay_apart_below_a_hint() -> None:
    result = grouped({"t/a.csv": A, "t/b.parquet": A}, Hint(path="t"))
    assert sizes(result) == {"t": 1, "t/*.csv": 1}


def test_a_hint_renames_what_was_found_without_it() -> None:
    first = grouped(TABLES)
    hinted = grouped(TABLES, Hint(path="raw/**", name="all"), before=first.state)
    (dataset,) = (each for each in hinted.groups if each.rule.name == "hint")
    former = {dataset.renamed_from, *dataset.merged_from}
    assert former == {f"{ROOT}/raw/{name}.csv" for name in ("orders", "users", "x")}
    again = grouped(TABLES, Hint(path="raw/**", name="all"), before=hinted.state)
    assert [(each.renamed_from, each.merged_from) for each in again.groups] == [(None, ())] * 2


def test_a_hint_takes_only_its_files_from_a_dataset() -> None:
    files = {f"log/app_{year}0101.csv": A for year in range(2019, 2025)}
    first = grouped(files)
    hint = Hint(path="log/app_2024*.csv", name="recent")
    found = {each.dataset: each for each in grouped(files, hint, before=first.state).groups}
    assert found[f"{ROOT}/log/recent"].renamed_from is None
    assert f"{ROOT}/log/app_YYYY-MM-DD.csv" in found


def test_a_hint_takes_accompanying_files_too() -> None:
    files = {"t/a.csv": A, "t/metadata.csv.bak": A}
    assert sizes(grouped(files)) == {"t/a.csv": 1}
    assert sizes(grouped(files, Hint(path="t"))) == {"t": 2}


def test_other_hints_mean_other_sums() -> None:
    rows = [FileRow(f"{ROOT}/a.csv", 1, 0, "", "csv", A.full)]
    plain = summarise(rows, root=ROOT)
    one = summarise(rows, root=ROOT, hints=(Hint(path="a*"),))
    two = summarise(rows, root=ROOT, hints=(Hint(path="a*", name="b"),))
    assert len({plain.hints, one.hints, two.hints}) == 3


def test_a_hint_has_its_name_to_itself() -> None:
    files = {"raw/a_log/0.csv": A, "raw/b_log/0.csv": A, "raw/orders/0.csv": B}
    hint = Hint(path="raw/*_log", name="orders")
    assert sizes(grouped(files, hint)) == {"raw/orders": 2, "raw/orders/*.csv": 1}


def test_several_keys_come_below_the_name() -> None:
    files = {f"ten/{tenant}/{table}/0.csv": A for tenant in ("x", "y") for table in ("o", "u")}
    found = sizes(grouped(files, Hint(path="ten/{tenant}/{table}", name="all")))
    assert found == {f"ten/all/{tenant}/{table}": 1 for tenant in "xy" for table in "ou"}
