"""Names that are legal in a lake, however odd: nothing crashes, nothing is merged, nothing is lost."""

import unicodedata

import pytest

from lumos.discovery.grouping.datasets import group_files
from lumos.discovery.grouping.hints import HintMatcher
from lumos.discovery.lake.summaries import FileRow, summarise

from .lakes import ROOT, schema_of

SCHEMA = schema_of("id:int name")


def grouped(*paths: str) -> dict[str, int]:
    """The number of files of each dataset, by its path below the root."""
    rows = [FileRow(f"{ROOT}/{path}", 1, 1, "", "csv", SCHEMA.full) for path in paths]
    result = group_files(
        summarise(rows, root=ROOT).file_sets,
        {SCHEMA.full: SCHEMA},
        hints=HintMatcher((), root=ROOT),
    )
    return {
        each.dataset.removeprefix(f"{ROOT}/"): sum(place.file_count for place in each.file_sets)
        for each in result.groups
    }


def test_names_that_differ_only_in_case_are_different() -> None:
    assert len(grouped("Orders/0.csv", "orders/0.csv", "ORDERS/0.csv", "a.csv", "A.csv")) == 5
    assert len(grouped("x/a.CSV", "x/a.csv")) == 2


def test_unicode_normal_forms_are_different() -> None:
    forms = {unicodedata.normalize(form, "café") for form in ("NFC", "NFD")}
    assert len(forms) == 2
    assert len(grouped(*(f"{name}/0.csv" for name in forms))) == 2


def test_names_of_255_bytes_are_names() -> None:
    long = ["a" * 251, "é" * 125, "x_" * 125, "(" * 251, "_" * 251, "🜚" * 62]
    assert len(grouped(*(f"{name}.csv" for name in long))) == len(long)
    assert len(grouped(*(f"{name}/part-0.csv" for name in long))) == len(long)


def test_a_table_that_contains_tables_is_one_of_several() -> None:
    found = grouped("t/part-0.csv", "t/dt=2024-01-01/part-0.csv", "t/archive/part-0.csv", "t/x.csv")
    assert found == {"t": 2, "t/archive": 1, "t/x.csv": 1}


def test_a_thousand_tables_in_one_folder_are_a_thousand_datasets() -> None:
    letters = "abcdefghij"
    names = [f"{a}{b}{c}table" for a in letters for b in letters for c in letters]
    assert len(grouped(*(f"{name}.csv" for name in names))) == 1000
    assert len(grouped(*(f"{name}/dt=2024-01-01/part-0.csv" for name in names))) == 1000


@pytest.mark.parametrize(
    "name",
    ["", " ", ".", "..", "%", "=", "=x", "x=", "a=b=c", "{", "}", "{date}", "*", "?", "[", "\\", "#",
     "NNN", "YYYY-MM", "a\nb", "\udce4", "2024-99-99", "0", "00000000000000000000", "1e10", "-1"],
)  # fmt: skip
def test_any_name_of_a_folder_or_file_has_one_dataset(name: str) -> None:
    assert sum(grouped(f"t/{name}/part-0.csv", f"u/{name}.csv").values()) == 2


def test_names_that_look_like_placeholders_have_paths_of_their_own() -> None:
    found = grouped(
        "a_NNN.csv", "a_1.csv", "b_YYYY-MM.csv", "b_2024-01.csv", "c_NNN_1.csv", "c_2_1.csv"
    )
    assert sorted(found.values()) == [1, 1, 1, 1, 1, 1]


@pytest.mark.slow
def test_a_million_files_in_one_folder_are_one_place() -> None:
    rows = (f"e/part-{number:07d}.csv" for number in range(1_000_000))
    assert grouped(*rows) == {"e": 1_000_000}
