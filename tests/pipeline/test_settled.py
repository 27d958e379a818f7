"""What a scan settled stays: datasets keep their names when files come, go or change."""

import pytest

from lumos.pipeline.grouping import Group, Grouping, Settlement

from .lakes import ROOT, Lake, grouped


def lake(*lines: str) -> Lake:
    return Lake("settled", "\n".join(lines))


def after(first: Lake, second: Lake) -> Grouping:
    """What the rules make of a lake once they have seen another state of it."""
    return grouped(second, before=grouped(first).settled)


def by_path(result: Grouping) -> dict[str, Group]:
    return {each.dataset.removeprefix(f"{ROOT}/"): each for each in result.groups}


def files(group: Group) -> int:
    return sum(place.file_count for place in group.places)


TABLE = "t | csv | id:int name total:float | "
OTHER = "o | csv | sku price:float stock:int | "


def test_the_same_lake_again_is_the_same_without_asking_any_rule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    same = lake(f"{TABLE} a/x_2024010{{1..5}}.csv", f"{OTHER} a/y.csv; a/manifest.json")
    first = grouped(same)
    monkeypatch.setattr("lumos.pipeline.grouping.decision.joined", None)
    again = grouped(same, before=first.settled)
    assert (again.groups, again.sidecars) == (first.groups, first.sidecars)
    assert again.settled == first.settled


def test_another_value_is_seen_although_all_patterns_are_the_same() -> None:
    one = lake(f"{TABLE} ref/v1/x.csv")
    assert by_path(grouped(one))["ref/v1/x.csv"].location == f"{ROOT}/ref/v1/x.csv"
    two = after(one, lake(f"{TABLE} ref/v1/x.csv; ref/v2/x.csv"))
    assert by_path(two)["ref/v1/x.csv"].location == f"{ROOT}/ref"


def test_a_file_joins_the_dataset_that_a_lone_file_founded() -> None:
    alone = lake(f"{TABLE} a/table1.csv")
    assert list(by_path(grouped(alone))) == ["a/table1.csv"]
    found = by_path(after(alone, lake(f"{TABLE} a/table{{1..3}}.csv")))
    assert {path: files(each) for path, each in found.items()} == {"a/table1.csv": 3}
    assert (found["a/table1.csv"].renamed_from, found["a/table1.csv"].merged_from) == (None, ())


def test_files_that_go_rename_nothing() -> None:
    many = lake(f"{TABLE} climate/{{kitchen,bedroom,garage,attic}}.csv")
    assert list(by_path(grouped(many))) == ["climate"]
    found = by_path(after(many, lake(f"{TABLE} climate/kitchen.csv; climate/attic.csv")))
    assert {path: files(each) for path, each in found.items()} == {"climate": 2}


def test_a_new_schema_does_not_take_a_dataset_apart() -> None:
    found = after(
        lake(f"{TABLE} a/x_1.csv; a/x_2.csv"),
        lake(f"{TABLE} a/x_1.csv; a/x_2.csv", "t | csv | id:int other:date | a/x_3.csv"),
    )
    assert {path: files(each) for path, each in by_path(found).items()} == {"a/x.csv": 3}


def test_all_files_rewritten_with_another_schema_stay_the_dataset() -> None:
    found = after(
        lake(f"{TABLE} a/dt=2024-01-0{{1..3}}/part-0.csv"),
        lake(f"{OTHER} a/dt=2024-01-0{{1..3}}/part-0.csv"),
    )
    assert list(by_path(found)) == ["a"]


def test_more_evidence_merges_datasets_and_tells_which() -> None:
    few = lake(f"{TABLE} c/red.csv; c/white.csv")
    assert list(by_path(grouped(few))) == ["c/red.csv", "c/white.csv"]
    more = lake(f"{TABLE} c/{{red,white,rose,orange,blush}}.csv")
    found = by_path(after(few, more))
    assert list(found) == ["c"]
    assert found["c"].renamed_from == f"{ROOT}/c/red.csv"
    assert found["c"].merged_from == (f"{ROOT}/c/white.csv",)


def test_a_dataset_that_already_has_the_name_takes_the_others_in() -> None:
    few = lake(f"{TABLE} c/red.csv; c/white.csv")
    settled = Settlement(
        places=[
            each._replace(dataset=f"{ROOT}/c") if each.pattern == "white.csv" else each
            for each in grouped(few).settled.places
        ]
    )
    more = lake(f"{TABLE} c/{{red,white,rose,orange,blush}}.csv")
    found = by_path(grouped(more, before=settled))
    assert list(found) == ["c"]
    assert (found["c"].renamed_from, found["c"].merged_from) == (None, (f"{ROOT}/c/red.csv",))


def test_a_dataset_that_was_away_comes_back_under_its_name() -> None:
    first = lake(f"{TABLE} a/table1.csv", f"{OTHER} b/x.csv")
    joined = after(first, lake(f"{TABLE} a/table{{1..3}}.csv", f"{OTHER} b/x.csv"))
    away = grouped(lake(f"{OTHER} b/x.csv"), before=joined.settled)
    assert list(by_path(away)) == ["b/x.csv"]
    back = grouped(lake(f"{TABLE} a/table{{2..3}}.csv"), before=away.settled)
    assert list(by_path(back)) == ["a/table1.csv"]


def test_places_that_stay_away_are_forgotten_in_the_end() -> None:
    settled = grouped(lake(f"{TABLE} a/x.csv")).settled
    other = lake(f"{OTHER} b/x.csv")
    for _ in range(101):
        settled = grouped(other, before=settled).settled
    assert {each.dataset for each in settled.places} == {f"{ROOT}/b/x.csv"}


def test_a_second_format_does_not_take_the_name_of_the_first() -> None:
    first = lake("t | csv | id:int name | t/part-0.csv")
    both = lake(
        "t | csv | id:int name | t/part-0.csv", "t | parquet | id:int name | t/part-0.parquet"
    )
    assert {path: each.places[0].format for path, each in by_path(after(first, both)).items()} == {
        "t": "csv",
        "t/*.parquet": "parquet",
    }
    assert by_path(grouped(both))["t"].places[0].format == "parquet"


def test_an_unrelated_file_of_a_known_pattern_founds_its_own_dataset() -> None:
    found = after(
        lake(f"{TABLE} e/table1.csv; e/table2.csv"),
        lake(f"{TABLE} e/table1.csv; e/table2.csv", f"{OTHER} e/table3.csv"),
    )
    assert {path: files(each) for path, each in by_path(found).items()} == {
        "e/table.csv": 2,
        "e/table3.csv": 1,
    }


@pytest.mark.parametrize("scans", [2, 5])
def test_what_was_settled_does_not_drift_over_scans(scans: int) -> None:
    state = lake(f"{TABLE} a/table1.csv", f"{OTHER} a/other.csv")
    result = grouped(state)
    more = lake(f"{TABLE} a/table{{1..3}}.csv", f"{OTHER} a/other.csv; a/other_2.csv")
    for _ in range(scans):
        result = grouped(more, before=result.settled)
    assert list(by_path(result)) == ["a/other.csv", "a/table1.csv"]
