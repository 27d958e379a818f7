"""Where a file belongs, by its path alone."""

import pytest

from lumos.pipeline.placement import Placement, place


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("/lake/users.csv", ("/lake", "users.csv", ()), id="a table of its own"),
        pytest.param("/lake/events/part-00000-ab.c000.snappy.parquet", ("/lake/events", "", ()), id="Spark"),
        pytest.param("/lake/events/000000_0", ("/lake/events", "", ()), id="Hive"),
        pytest.param("/lake/e/dt=2024-01-01/p.parquet", ("/lake/e", "", (("dt", "2024-01-01"),)), id="one key"),
        pytest.param("/lake/e/a=1/b=x/p.csv", ("/lake/e", "", (("a", "1"), ("b", "x"))), id="two keys"),
        pytest.param("/lake/e/2024/01/31/x.csv", ("/lake/e", "", ()), id="date folders"),
        pytest.param("/lake/e/2024-01-31/x.csv", ("/lake/e", "", ()), id="day folders"),
        pytest.param("/lake/07/x.csv", ("/lake/07", "x.csv", ()), id="two digits are no month alone"),
        pytest.param("/lake/rates_20240101.csv", ("/lake", "rates*.csv", ()), id="a date at the end"),
        pytest.param("/lake/rates-3.csv", ("/lake", "rates*.csv", ()), id="a number at the end"),
        pytest.param("/lake/2024-01.csv", ("/lake", "", ()), id="only a date"),
        pytest.param("/lake/users/users.csv", ("/lake/users", "", ()), id="named like its folder"),
        pytest.param("/lake/e/k=a=b/x.csv", ("/lake/e", "", (("k", "a=b"),)), id="= in a value"),
        pytest.param("/lake/a b/ü.csv", ("/lake/a b", "ü.csv", ()), id="odd names"),
    ],
)  # fmt: skip
def test_a_path_tells_folder_pattern_and_partitions(
    path: str, expected: tuple[str, str, tuple[tuple[str, str], ...]]
) -> None:
    assert place(path, "/lake") == Placement(*expected)


def test_a_root_that_is_a_file_is_placed_in_its_folder() -> None:
    assert place("/lake/users.csv", "/lake/users.csv") == Placement("/lake", "users.csv", ())


def test_partitions_above_the_root_do_not_count() -> None:
    placed = place("/lake/e/dt=2024-01-01/part-0.csv", "/lake/e/dt=2024-01-01")
    assert placed == Placement("/lake/e/dt=2024-01-01", "", ())
