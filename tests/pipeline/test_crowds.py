"""However many names there are, the driver gets few rows and the datasets stay right."""

import random

import pytest

from lumos.model.schema import Schema
from lumos.pipeline.grouping import NOTHING_SETTLED, Grouping, Settlement, group
from lumos.pipeline.summaries import FileRow, summarise

from .lakes import ROOT, schema_of

ROWS = schema_of("id:int at:time value:float")
OTHER = schema_of("station name lat:float lon:float")


def words(count: int) -> list[str]:
    """So many names without a digit, all different."""
    chance = random.Random(count)
    return sorted({"".join(chance.choices("abcdefghijklmnop", k=9)) for _ in range(count + 50)})[
        :count
    ]


def grouped(
    files: dict[str, Schema], *, tasks: int = 4, before: Settlement = NOTHING_SETTLED
) -> tuple[Grouping, int]:
    """What becomes of files that several tasks summed up, and how many rows those sent."""
    rows = [
        FileRow(f"{ROOT}/{path}", 10, 0, "", "csv", schema.full) for path, schema in files.items()
    ]
    schemas = {schema.full: schema for schema in files.values()}
    size = -(-len(rows) // tasks)
    places = [
        place
        for start in range(0, len(rows), size)
        for place in summarise(rows[start : start + size], root=ROOT).places
    ]
    return group(places, schemas, root=ROOT, before=before), len(places)


def sizes(result: Grouping) -> dict[str, int]:
    return {
        each.dataset.removeprefix(f"{ROOT}/"): sum(place.file_count for place in each.places)
        for each in result.groups
    }


@pytest.mark.parametrize("count", [250, 20_000])
def test_a_crowd_of_files_is_one_dataset_beside_the_others(count: int) -> None:
    files = {f"obs/{name}.csv": ROWS for name in words(count)}
    result, rows = grouped({**files, "obs/inventory.csv": OTHER, "ref/x.csv": OTHER})
    assert sizes(result) == {"obs": count, "obs/inventory.csv": 1, "ref/x.csv": 1}
    assert rows < 300


@pytest.mark.parametrize("below", ["profile.csv", "2024/01/05/log.csv", "data/deep/part-0.csv"])
def test_a_crowd_of_folders_is_one_dataset(below: str) -> None:
    files = {f"users/{name}/{below}": ROWS for name in words(4000)}
    result, rows = grouped({**files, "users/index.csv": OTHER})
    assert sorted(sizes(result).values()) == [1, 4000]
    assert rows < 10


def test_a_few_names_that_one_task_met_join_the_crowd_of_the_others() -> None:
    names = words(1210)
    files = {f"obs/{name}.csv": ROWS for name in names}
    result, _ = grouped(files, tasks=4)
    lone, _ = grouped(dict(list(files.items())[:1201]), tasks=3)
    assert sizes(result) == {"obs": 1210}
    assert sizes(lone) == {"obs": 1201}


def test_many_tables_with_columns_of_their_own_are_no_crowd() -> None:
    files = {
        f"dump/{name}.csv": schema_of(f"{name}_id:int {name}_name created_at:time")
        for name in words(600)
    }
    result, _ = grouped(files)
    assert len(result.groups) == 600


def test_tables_that_drown_in_a_crowd_become_part_of_it() -> None:
    names = words(500)
    few, _ = grouped({f"obs/{name}.csv": ROWS for name in names[:2]})
    assert len(few.groups) == 2
    many, _ = grouped({f"obs/{name}.csv": ROWS for name in names}, tasks=2, before=few.settled)
    (crowd,) = many.groups
    former = [crowd.renamed_from, *crowd.merged_from]
    assert former == [f"{ROOT}/obs/{name}.csv" for name in names[:2]]
