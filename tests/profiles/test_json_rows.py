"""Rows of JSON whose keys and values are odd."""

import json
from pathlib import Path
from typing import Any

import pytest

from lumos.profiles.columns import profiled_columns
from lumos.profiles.measurements import ColumnTally
from profiles.test_rows import measured, schema_of


def tallies(file: Path, *records: str | dict[str, Any], **options: Any) -> dict[str, ColumnTally]:
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    file.write_text("".join(f"{line}\n" for line in lines))
    schema = options.pop("schema", None) or schema_of(file)[1]
    facts = measured(file, schema, **options)
    return dict(zip((leaf.path for leaf in profiled_columns(schema)), facts.tallies, strict=True))


def _written(file: Path, records: list[dict[str, Any]]) -> Path:
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return file


@pytest.mark.parametrize(
    ("records", "column"),
    [
        pytest.param([{"": 7}, {"": 9}], "column_1", id="alone"),
        pytest.param([{"a": 1, "": 7}, {"": 9}, {"a": 1}], "column_2", id="among others"),
        pytest.param([{"column_1": 7}, {"column_1": 9}], "column_1", id="a key like it"),
        pytest.param(
            [{"": 7, "column_1": 0}, {"": 9, "column_1": 0}], "column_1_1", id="beside one like it"
        ),
    ],
)
def test_a_key_that_is_no_name_has_the_values_of_the_column_that_stands_for_it(
    tmp_path: Path, records: list[dict[str, Any]], column: str
) -> None:
    tally = tallies(tmp_path / "a.jsonl", *records)[column]
    assert (tally.low, tally.high, tally.nulls) == (7, 9, len(records) - 2)


REGULAR = {"tags": ["a"], "o": {"k": 1, "s": "x"}, "n": 1, "f": 0.5, "b": True, "s": "t"}
# For each odd value of a column: misfits, nulls, and NaN among its rows.
ODD = [
    pytest.param({"tags": "x"}, "tags", (1, 0, 0), id="no list"),
    pytest.param({"tags": {"a": 1}}, "tags", (1, 0, 0), id="an object for a list"),
    pytest.param({"tags": None}, "tags", (0, 1, 0), id="null for a list"),
    pytest.param({"o": 5}, "o.k", (1, 0, 0), id="no object"),
    pytest.param({"o": "x"}, "o.s", (1, 0, 0), id="a text for an object with texts"),
    pytest.param({"o": {}}, "o.k", (0, 1, 0), id="an empty object"),
    pytest.param({"o": {}}, "o.s", (0, 1, 0), id="an empty object without its text"),
    pytest.param({"o": None}, "o.s", (0, 1, 0), id="null for an object"),
    pytest.param({"o": {"k": [1]}}, "o.k", (1, 0, 0), id="a list for a number inside"),
    pytest.param({"n": 1.5}, "n", (1, 0, 0), id="no whole number"),
    pytest.param({"n": 1.0}, "n", (0, 0, 0), id="a whole number with a point"),
    pytest.param({"n": "7"}, "n", (0, 0, 0), id="a number in quotes"),
    pytest.param({"n": "x"}, "n", (1, 0, 0), id="a text for a number"),
    pytest.param({"n": True}, "n", (1, 0, 0), id="true for a number"),
    pytest.param({"n": 10**30}, "n", (1, 0, 0), id="too large a number"),
    pytest.param({"f": True}, "f", (1, 0, 0), id="true for a fraction"),
    pytest.param({"f": 2**60}, "f", (0, 0, 0), id="a large number for a fraction"),
    pytest.param('{"f": NaN}', "f", (0, 0, 1), id="no number"),
    pytest.param({"b": 1}, "b", (1, 0, 0), id="one for true"),
    pytest.param({"b": []}, "b", (1, 0, 0), id="a list for true"),
    pytest.param({"s": 9}, "s", (0, 0, 0), id="a number for a text"),
    pytest.param({"s": {"a": 1}}, "s", (0, 0, 0), id="an object for a text"),
]


@pytest.mark.parametrize(
    "others", [pytest.param(False, id="alone"), pytest.param(True, id="among odd ones")]
)
@pytest.mark.parametrize(("odd", "column", "expected"), ODD)
def test_a_value_is_judged_by_itself_whatever_stands_around_it(
    tmp_path: Path, odd: Any, column: str, expected: tuple[int, int, int], others: bool
) -> None:
    file = tmp_path / "a.jsonl"
    schema = schema_of(_written(file, [REGULAR] * 9))[1]
    texts = '{"tags": 7, "o": [], "n": "x", "f": "x", "b": "x", "s": null}'
    neighbours = [REGULAR, texts, REGULAR] if others else [REGULAR] * 2
    first, second = (
        tallies(file, *neighbours, *more, schema=schema)[column]
        for more in ([], [{**REGULAR, **odd} if isinstance(odd, dict) else odd])
    )
    found = tuple(
        getattr(second, name) - getattr(first, name) for name in ("misfits", "nulls", "nans")
    )
    assert found == expected
    assert second.rows == first.rows + 1


@pytest.mark.parametrize("options", [{"sample": 0.5}, {"max_rows": 10}])
def test_odd_values_are_part_of_samples_as_others_are(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    file = tmp_path / "a.jsonl"
    schema = schema_of(_written(file, [REGULAR] * 20))[1]
    odd = [{"tags": 7, "o": 5, "n": []}] * 20
    found = tallies(file, *odd, schema=schema, **options)
    assert [found[each].misfits for each in ("tags", "o.k", "o.s", "n")] == [10] * 4
    assert found["tags"].nulls == 0


def test_a_column_that_only_other_files_show_in_their_sample_has_its_values_here_too(
    tmp_path: Path,
) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text('{"a": 1, "late": 2, "dt": "x"}\n')
    schema = schema_of(other)[1]
    early = [{"a": number} for number in range(20_000)]
    file = tmp_path / "a.jsonl"
    found = tallies(file, *early, {"a": 1, "late": 5}, schema=schema, constants=(("dt", "y"),))
    assert [field.name for field in schema_of(file)[1].fields] == ["a"]
    assert (found["late"].low, found["late"].nulls) == (5, 20_000)
    assert found["dt"].nulls == 0
