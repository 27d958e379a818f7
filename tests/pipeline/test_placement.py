"""Where a file belongs, by its path alone."""

import pytest

from lumos.pipeline.placement import Placement, place, split_name
from lumos.pipeline.summaries import age

_DAY = (("{yyyy}", "2024"), ("{mm}", "01"), ("{dd}", "31"))


@pytest.mark.parametrize(
    ("path", "base", "pattern", "partitions"),
    [
        pytest.param("users.csv", "", "users.csv", (), id="a table of its own"),
        pytest.param("e/part-00000-ab.c000.snappy.parquet", "/e", "part-{n}-ab.c{n}.parquet", (), id="a part"),
        pytest.param("e/000000_0", "/e", "{n}_{n}", (), id="Hive"),
        pytest.param("e/dt=2024-01-01/p.parquet", "/e", "dt={hive}/p.parquet", (("dt", "2024-01-01"),), id="a key"),
        pytest.param("e/a=1/b=x/p.csv", "/e", "a={hive}/b={hive}/p.csv", (("a", "1"), ("b", "x")), id="two keys"),
        pytest.param("e/k=a=b/x.csv", "/e", "k={hive}/x.csv", (("k", "a=b"),), id="= in a value"),
        pytest.param("e/dt%3D2024-01-01/c=New%20York/x.csv", "/e", "dt={hive}/c={hive}/x.csv",
                     (("dt", "2024-01-01"), ("c", "New York")), id="encoded keys"),
        pytest.param("e/2024/01/31/x.csv", "/e", "{yyyy}/{mm}/{dd}/x.csv", _DAY, id="date folders"),
        pytest.param("e/2024/1/31/x.csv", "/e", "{yyyy}/{mm}/{dd}/x.csv", _DAY, id="unpadded month"),
        pytest.param("e/2024/Jan/31/x.csv", "/e", "{yyyy}/{mm}/{dd}/x.csv", _DAY, id="month by name"),
        pytest.param("e/y2024/m01/d31/x.csv", "/e", "{yyyy}/{mm}/{dd}/x.csv", _DAY, id="lettered"),
        pytest.param("e/2024/Q1/x.csv", "/e", "{yyyy}/{quarter}/x.csv", (("{yyyy}", "2024"), ("{quarter}", "01")),
                     id="a quarter"),
        pytest.param("e/2024-01-31/x.csv", "/e", "{date}/x.csv", (("{date}", "2024-01-31"),), id="day folders"),
        pytest.param("07/x.csv", "", "{n}/x.csv", (), id="two digits are no month alone"),
        pytest.param("2024/40/x.csv", "", "{yyyy}/{n}/x.csv", (("{yyyy}", "2024"),), id="there is no month 40"),
        pytest.param("r_20240131.csv", "", "r_{date}.csv", (("{date}", "2024-01-31"),), id="a date at the end"),
        pytest.param("r-3.csv", "", "r-{n}.csv", (), id="a number at the end"),
        pytest.param("2024-01.csv", "", "{yyyy-mm}.csv", (("{yyyy-mm}", "2024-01"),), id="only a date"),
        pytest.param("dt=2024-01-31/e_20240131.csv", "", "dt={hive}/e_{date}.csv", (("dt", "2024-01-31"),),
                     id="a date once"),
        pytest.param("k=1/e_20240131.csv", "", "k={hive}/e_{date}.csv", (("k", "1"), ("{date}", "2024-01-31")),
                     id="a date beside a key"),
        pytest.param("logs/123456789012/Trail/us-east-1/f.json.gz", "/logs", "{n}/Trail/{region}/f.json", (), id="account, region"),
        pytest.param("a b/ü.csv", "/a b", "ü.csv", (), id="odd names"),
        pytest.param("a/{x}.csv", "/a", "{open}x{close}.csv", (), id="braces are no placeholders"),
        pytest.param("store/0f/3c/x.json", "/store", "{hash}/{hash}/x.json", (), id="fanned out by a hash"),
    ],
)  # fmt: skip
def test_a_path_tells_folder_pattern_and_partitions(
    path: str, base: str, pattern: str, partitions: tuple[tuple[str, str], ...]
) -> None:
    assert place(f"/lake/{path}", "/lake") == Placement(f"/lake{base}", pattern, partitions)


def test_a_root_that_is_a_file_is_placed_in_its_folder() -> None:
    assert place("/lake/u2.csv", "/lake/u2.csv") == Placement("/lake", "u2.csv", ())


def test_partitions_above_the_root_do_not_count() -> None:
    placed = place("/lake/e/dt=2024-01-01/x.csv", "/lake/e/dt=2024-01-01")
    assert placed == Placement("/lake/e/dt=2024-01-01", "x.csv", ())


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("title.basics.tsv.gz", ("title.basics", ".tsv.gz")),
        ("part-0.c000.snappy.parquet", ("part-0.c000", ".snappy.parquet")),
        ("access.log.3.gz", ("access.3", ".log.gz")),
        ("lineitem.tbl.7", ("lineitem.7", ".tbl")),
        ("events.2024.csv", ("events.2024", ".csv")),
        (".csv", (".csv", "")),
        ("000000_0", ("000000_0", "")),
    ],
)
def test_an_ending_is_what_tells_the_format(name: str, parts: tuple[str, str]) -> None:
    assert split_name(name) == parts


def test_dates_alone_decide_which_partition_is_newer() -> None:
    older = age((("region", "us"), ("dt", "2024-01-01")))
    newer = age((("region", "eu"), ("dt", "2024-02-01")))
    assert older < newer
    assert age((("month", "9"),)) < age((("month", "10"),))
