"""Where a file belongs, by its path alone."""

import pytest

from lumos.discovery.grouping.patterns import assign_file, name_of, split_name
from lumos.discovery.lake.summaries import sortable_partitions

_DAY = (("{yyyy}", "2024"), ("{mm}", "01"), ("{dd}", "31"))


@pytest.mark.parametrize(
    ("path", "dataset", "name"),
    [
        pytest.param("/lake/users.csv", "/lake/users.csv", "users", id="a file"),
        pytest.param("/lake/orders/dt=2024-03-01/part-0.parquet", "/lake/orders", "orders", id="a key below"),
        pytest.param("/lake/dt=2024-03-01/orders/part-0.parquet", "/lake/orders", "orders", id="a key above"),
        pytest.param("/lake/2024-03-01/orders/part-0.parquet", "/lake/orders", "orders", id="a date above"),
        pytest.param("/lake/2024/03/01/orders.csv", "/lake/orders.csv", "orders", id="dates above a file"),
        pytest.param("/lake/orders_2024-03/0.csv", "/lake/orders_YYYY-MM", "orders", id="a date in a folder's name"),
        pytest.param("/lake/orders_2024/0.csv", "/lake/orders_YYYY", "orders", id="a year in a folder's name"),
        pytest.param("/lake/orders_2024.csv", "/lake/orders_NNN.csv", "orders", id="a year in a file's name"),
        pytest.param("/lake/rates_01.csv.gz", "/lake/rates_NNN.csv", "rates", id="a sequence"),
        pytest.param("/lake/yellow_2024-01.parquet", "/lake/yellow_YYYY-MM.parquet", "yellow", id="months"),
        pytest.param("/lake/host01/part-1.csv", "/lake/host01", "host01", id="a numbered folder"),
        pytest.param("/lake/t/shard-3/part-1.csv", "/lake/t", "t", id="a writer's folder"),
        pytest.param("/lake/t/base_0000005/bucket_00000", "/lake/t", "t", id="Hive ACID base"),
        pytest.param("/lake/t/delta_0000006_0000006_0000/bucket_00000", "/lake/t", "t", id="Hive ACID delta"),
        pytest.param("/lake/store/0f/3c/0f3c9a1be2d45678.json", "/lake/store", "store", id="fanned out by a hash"),
        pytest.param("/lake/e/a-b_c_9.json", "/lake/e/a-b_c_NNN.json", "a-b_c", id="separators"),
        pytest.param("/lake/topic/topic+0+0000000042.avro", "/lake/topic/topic+NNN+NNN.avro", "topic", id="values in a row"),
        pytest.param("/lake/T202401ADDRESS.csv", "/lake/TYYYY-MMADDRESS.csv", "T_ADDRESS", id="a value between words"),
        pytest.param("/lake/{x}/{y}.csv", "/lake/{x}/{y}.csv", "{y}", id="braces"),
        pytest.param("s3://bucket-2024-01/2024/01/x7k2p.json", "s3://bucket-2024-01", "", id="a bucket has no values"),
        pytest.param("s3://b/AWSLogs/123456789012/vpc/us-east-1/2024/01/05/1.json", "s3://b/AWSLogs/vpc", "vpc", id="accounts"),
        pytest.param("/2024/01/5.json", "/2024", "", id="nothing but values"),
        pytest.param("/lake/orders_20240301_093000/0.csv", "/lake/orders_YYYY-MM-DD_NNN", "orders", id="a folder with a time"),
        pytest.param("/lake/train-00000-of-00002.parquet", "/lake/train-NNN-of-NNN.parquet", "train", id="one of many"),
        pytest.param("/lake/1701/march.csv", "/lake/march.csv", "march", id="not a year"),
        *(pytest.param(f"/lake/{folder}/3b1f0c1e-1c1a-4b1e-9b0a-0123456789ab.csv", f"/lake/{folder}", folder,
                       id=f"{folder} is no digits of the file's hash") for folder in ("ad", "fee", "ca", "b2b")),
        pytest.param("/lake/20240301T0930Z_EURUSD.csv", "/lake/YYYY-MM-DDTHH_EURUSD.csv", "EURUSD", id="letters after a time"),
        pytest.param("/lake/20240301T0930Z-fxRates.csv", "/lake/YYYY-MM-DDTHH-fxRates.csv", "fxRates", id="words after a time"),
        pytest.param("/lake/F1040A/x.csv", "/lake/F1040A/x.csv", "x", id="a form"),
        pytest.param("/lake/2024/M5/bars.csv", "/lake/M5/bars.csv", "bars", id="a letter and a digit below a year"),
        pytest.param("/lake/2024/W2/x.csv", "/lake/W2/x.csv", "x", id="not a week"),
        pytest.param("/lake/2024-03-01/h1/x.csv", "/lake/h1/x.csv", "x", id="not an hour"),
        pytest.param("/lake/2024-03-01-feed1/x.csv", "/lake/YYYY-MM-DD-feed1/x.csv", "x", id="a word of hex digits"),
        pytest.param("/lake/2024/w09/x.csv", "/lake/x.csv", "x", id="a week"),
        pytest.param("/lake/2024-03-01/h07/x.csv", "/lake/x.csv", "x", id="an hour"),
        pytest.param("/lake/123456789012_elb_20240301T0930Z_10.0.0.1_qwxzkvjp.log", "/lake/NNN_elb_YYYY-MM-DDTHH_NNN.log", "elb",
                     id="random letters of a service"),
    ],
)  # fmt: skip
def test_a_path_names_its_dataset(path: str, dataset: str, name: str) -> None:
    assert (assign_file(path).dataset, name_of(path)) == (dataset, name)


@pytest.mark.parametrize(
    ("path", "base", "pattern", "partitions"),
    [
        pytest.param("users.csv", "", "users.csv", (), id="a table of its own"),
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
                     id="a date next to a key"),
        pytest.param("logs/123456789012/Trail/us-east-1/f.json.gz", "/logs", "{number}/Trail/{region}/f.json", (), id="account, region"),
        pytest.param("a b/ü.csv", "/a b", "ü.csv", (), id="odd names"),
        pytest.param("a/{x}.csv", "/a", "{open}x{close}.csv", (), id="braces are no placeholders"),
    ],
)  # fmt: skip
def test_a_path_has_a_base_a_pattern_and_partitions(
    path: str, base: str, pattern: str, partitions: tuple[tuple[str, str], ...]
) -> None:
    assignment = assign_file(f"/lake/{path}")
    assert (assignment.base, assignment.pattern, assignment.partitions) == (
        f"/lake{base}",
        pattern,
        partitions,
    )


@pytest.mark.parametrize(
    ("path", "others"),
    [
        ("e/type=click/dt=2024-01-01/part-0.json", {"type": "click"}),
        ("e/kind=3/part-0.json", {"kind": "3"}),
        ("e/batch=3/load_id=7/hour=4/part-0.json", {}),
        ("e/5101.dat", {"name.0": "5101"}),
        ("e/00017.dat", {}),
        ("e/table1.csv", {}),
        ("e/x_1_2024.csv", {"dated_name.0": "1", "@dated_name.0": "1@2024"}),
        ("e/2024-01-05-13.json", {}),
        ("e/backup_2024-03-01_09-30-15.csv", {}),
        ("e/2024-03-01 15.30.10 orders.csv", {}),
        ("e/2024/03/01/09/30/15/x.csv", {}),
        ("e/week=9/quarter=Q1/second=30/seq=1/date=01-Mar-24/part-0.json", {}),
        ("e/850/x.csv", {"2.0": "850"}),
    ],
)
def test_only_values_that_neither_date_nor_count_may_distinguish_datasets(
    path: str, others: dict[str, str]
) -> None:
    assert dict(assign_file(f"/lake/{path}").path_values) == others


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
def test_an_extension_names_the_format(name: str, parts: tuple[str, str]) -> None:
    assert split_name(name) == parts


def test_dates_alone_decide_which_partition_is_newer() -> None:
    older = sortable_partitions((("region", "us"), ("dt", "2024-01-01")))
    newer = sortable_partitions((("region", "eu"), ("dt", "2024-02-01")))
    assert older < newer
    assert sortable_partitions((("month", "9"),)) < sortable_partitions((("month", "10"),))
