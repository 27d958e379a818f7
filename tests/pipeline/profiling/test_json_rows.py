"""Rows of JSON whose keys and values are odd."""

import json
from pathlib import Path
from typing import Any

import pytest

from lumos.pipeline.profiling.columns import leaves_of
from lumos.pipeline.profiling.tallies import Tally
from pipeline.profiling.test_reading import measured, schema_of


def tallies(file: Path, *records: str | dict[str, Any], **options: Any) -> dict[str, Tally]:
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    file.write_text("".join(f"{line}\n" for line in lines))
    schema = options.pop("schema", None) or schema_of(file)[1]
    facts = measured(file, schema, **options)
    return dict(zip((leaf.path for leaf in leaves_of(schema)), facts.tallies, strict=True))


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
