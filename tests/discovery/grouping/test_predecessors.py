"""What datasets of the last scan become: the same, renamed, merged or split."""

from collections.abc import Iterable

from lumos.discovery.grouping.datasets import DatasetGroup, GroupingResult
from lumos.discovery.grouping.state import GroupingState, LegacyGrouping
from lumos.discovery.lake.summaries import FileSet
from lumos.storage import FileHint

from .lakes import ROOT, Lake, grouped


def lake(*lines: str) -> Lake:
    return Lake("scans", "\n".join(lines))


def by_path(result: GroupingResult) -> dict[str, DatasetGroup]:
    return {each.dataset.removeprefix(f"{ROOT}/"): each for each in result.groups}


def files(group: DatasetGroup) -> int:
    return sum(place.file_count for place in group.file_sets)


def legacy(*datasets: tuple[str, str, str, str, int]) -> GroupingState:
    """What an earlier version remembers: path, format, first and last file, number of files."""
    places = []
    summaries = []
    for path, format, first, last, count in datasets:
        base, full = f"{ROOT}/{path}".rpartition("/")[0], "any"
        pattern = f"{first.removeprefix(base.removeprefix(f'{ROOT}/') + '/')}"
        places.append((base, pattern, format, full, f"{ROOT}/{path}", 0))
        summaries.append(
            FileSet(
                base,
                pattern,
                format,
                full,
                ("", 0),
                0,
                0,
                f"{ROOT}/{first}",
                f"{ROOT}/{last}",
                count,
            )
        )
    return LegacyGrouping(file_sets=places).upgrade(summaries)


TABLE = "t | csv | id:int name total:float | "
OTHER = "o | csv | sku price:float stock:int | "


def test_a_dataset_whose_files_stay_together_keeps_its_path_in_an_upgrade() -> None:
    before = legacy(("a/daily.csv", "csv", "a/daily_01.csv", "a/daily_09.csv", 9))
    first = grouped(lake(f"{TABLE} a/daily_0{{1..9}}.csv"), before=before)
    (found,) = first.groups
    assert found.dataset == f"{ROOT}/a/daily.csv"
    assert (found.renamed_from, found.merged_from, found.split_from) == (None, (), None)
    # The path stays in all later scans, also while the files are away, be it from the start.
    away = grouped(lake(f"{OTHER} b/x.csv"), before=before)
    assert list(by_path(grouped(lake(f"{TABLE} a/daily_0{{1..9}}.csv"), before=away.state))) == [
        "a/daily.csv"
    ]
    away = grouped(lake(f"{OTHER} b/x.csv"), before=first.state)
    back = grouped(lake(f"{TABLE} a/daily_0{{1..9}}.csv; a/daily_10.csv"), before=away.state)
    assert {path: files(each) for path, each in by_path(back).items()} == {"a/daily.csv": 10}


def test_a_dataset_that_comes_apart_in_an_upgrade_is_split_into_all_its_parts() -> None:
    before = legacy(("events", "csv", "a_log/dt=1/0.csv", "z_log/dt=9/0.csv", 26))
    names = "abcdefghijklmnopqrstuvwxyz"
    tables = lake(*(f"{TABLE} {name}_log/dt=5/0.csv" for name in names))
    result = grouped(tables, before=before)
    assert {each.split_from for each in result.groups} == {f"{ROOT}/events"}
    assert set(by_path(result)) == {f"{name}_log" for name in names}
    again = grouped(tables, before=result.state)
    assert {each.split_from for each in again.groups} == {None}


def test_the_part_that_has_the_path_goes_on_with_it() -> None:
    before = legacy(("c/red.csv", "csv", "c/red.csv", "c/white.csv", 2))
    found = by_path(grouped(lake(f"{TABLE} c/red.csv; c/white.csv"), before=before))
    assert {path: each.split_from for path, each in found.items()} == {
        "c/red.csv": f"{ROOT}/c/red.csv",
        "c/white.csv": f"{ROOT}/c/red.csv",
    }


def test_a_new_table_is_no_part_of_what_was_there() -> None:
    first = grouped(lake(f"{TABLE} a/x_01.csv; a/x_09.csv"))
    found = by_path(grouped_when(first.state, [], f"{TABLE} a/x_01.csv; a/x_09.csv; a/x_03b.csv"))
    assert {path: each.split_from for path, each in found.items()} == {
        "a/x_NNN.csv": None,
        "a/x_03b.csv": None,
    }


def grouped_when(before: GroupingState, known: Iterable[str], *lines: str) -> GroupingResult:
    """What the rules make of a lake of which the last scan met only some files."""
    from lumos.discovery.grouping.datasets import group_files
    from lumos.discovery.grouping.hints import HintMatcher
    from lumos.discovery.lake.summaries import FileRow, summarise

    some = lake(*lines).files()
    rows = [FileRow(each.path, 1, 0, "", each.format, each.schema.full) for each in some]
    return group_files(
        summarise(rows, root=ROOT).file_sets,
        {each.schema.full: each.schema for each in some},
        hints=HintMatcher((), root=ROOT),
        before=before,
        was_listed=set(known).__contains__,
    )


def test_a_hint_renames_and_merges_what_was_found_without_it() -> None:
    state = lake(f"{TABLE} raw/users.csv; raw/extra.csv", f"{OTHER} ref/x.csv")
    first = grouped(state)
    hint = FileHint("raw/**", "all")
    (found,) = (
        each
        for each in grouped(state, before=first.state, hints=[hint]).groups
        if each.rule.name == "hint"
    )
    assert {found.renamed_from, *found.merged_from} == {
        f"{ROOT}/raw/users.csv",
        f"{ROOT}/raw/extra.csv",
    }
    hinted = grouped(state, before=first.state, hints=[hint])
    again = grouped(state, before=hinted.state, hints=[hint])
    assert [(each.renamed_from, each.merged_from) for each in again.groups] == [(None, ())] * 2


def test_a_hint_that_takes_some_files_splits_a_dataset() -> None:
    state = lake(f"{TABLE} log/app_20{{19..24}}0101.csv")
    first = grouped(state)
    found = by_path(
        grouped(state, before=first.state, hints=[FileHint("log/app_2024*.csv", "recent")])
    )
    old = f"{ROOT}/log/app_YYYY-MM-DD.csv"
    assert {path: each.split_from for path, each in found.items()} == {
        "log/app_YYYY-MM-DD.csv": old,
        "log/recent": old,
    }


def test_a_second_format_does_not_take_the_path_of_the_first() -> None:
    csv = "t | csv | id:int name | t/part-0.csv"
    both = lake(csv, "t | parquet | id:int name | t/part-0.parquet")
    fresh = by_path(grouped(both))
    assert {path: each.file_sets[0].format for path, each in fresh.items()} == {
        "t": "parquet",
        "t/*.csv": "csv",
    }
    later = grouped(both, before=grouped(lake(csv)).state)
    assert {path: each.file_sets[0].format for path, each in by_path(later).items()} == {
        "t": "csv",
        "t/*.parquet": "parquet",
    }
    alone = grouped(lake("t | parquet | id:int name | t/part-0.parquet"), before=later.state)
    assert list(by_path(alone)) == ["t/*.parquet"]


def test_all_files_rewritten_with_another_schema_stay_the_dataset() -> None:
    first = grouped(lake(f"{TABLE} a/dt=2024-01-0{{1..3}}/part-0.csv"))
    second = grouped(lake(f"{OTHER} a/dt=2024-01-0{{1..3}}/part-0.csv"), before=first.state)
    assert list(by_path(second)) == ["a"]


def test_the_folders_above_the_scanned_root_are_no_part_of_what_varies() -> None:
    from lumos.discovery.grouping.datasets import group_files
    from lumos.discovery.grouping.hints import HintMatcher
    from lumos.discovery.lake.summaries import FileRow, summarise

    from .lakes import schema_of

    schema, root = schema_of("id:int name"), "/data/2024-03-01/7f3a9b21ce00"
    paths = [f"{root}/orders/dt=2024-01-01/part-0.csv", f"{root}/2024/users.csv", f"{root}/0.csv"]
    rows = [FileRow(path, 1, 1, "", "csv", schema.full) for path in paths]
    found = group_files(
        summarise(rows, root=root).file_sets,
        {schema.full: schema},
        hints=HintMatcher((), root=root),
    )
    assert {each.dataset: (each.location, each.names) for each in found.groups} == {
        "/data/orders": (f"{root}/orders", ("orders", "dt={hive}", "part-{n}")),
        "/data/users.csv": (f"{root}/*/users.csv", ("{yyyy}", "users")),
        "/data": (root, ("{n}",)),
    }
