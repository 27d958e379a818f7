"""Usage as a table, and what is wrong with one, line by line."""

import gzip
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from lumos.cost.meters.reader import MeterReading, find_meters, read_meter
from lumos.cost.meters.tables import InvalidRows, WrongColumns
from lumos.errors import MisuseError
from lumos.model.cost import MeteredUsage

HEADER = "job,started_at,ended_at,engine,quantity,unit,amount,currency,type,run\n"


def read(folder: Path, text: str, name: str = "usage.csv") -> MeterReading:
    path = folder / name
    path.write_bytes(text.encode() if not name.endswith(".gz") else gzip.compress(text.encode()))
    (meter,) = find_meters([path])
    return read_meter(meter)


def test_quantities_and_amounts_are_read(tmp_path: Path) -> None:
    reading = read(
        tmp_path,
        HEADER
        + "nightly,2024-01-01T00:00Z,2024-01-01T02:00Z,EMR,3,instance-hours,,,,\n"
        + "licence,2024-01-01,2024-01-31,,,,-12.345678,eur,other,\n"
        + "scan,2024-01-01T00:00Z,2024-01-01T02:00Z,bigquery,2,TB scanned,,,,r1\n",
    )
    first, second, third = reading.metered
    assert reading.reporter == "table:usage"
    assert (first.target, first.engine, first.quantities) == (
        "nightly",
        "emr",
        {"instance_hour": Decimal(3)},
    )
    assert second == MeteredUsage(
        target="licence",
        started_at=datetime(2024, 1, 1, tzinfo=UTC),
        ended_at=datetime(2024, 2, 1, tzinfo=UTC),
        type="other",
        amount=-12_345_678,
        currency="EUR",
    )
    assert (third.quantities, third.run) == ({"gb_processed": Decimal(2048)}, "r1")


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_separators_and_periods_are_read(tmp_path: Path, delimiter: str) -> None:
    text = "Dataset,Month,Amount,Currency\r\norders,2024-02,10,USD\r\n".replace(",", delimiter)
    (metered,) = read(tmp_path, text, "usage.csv.gz").metered
    assert (metered.target, metered.is_dataset, metered.amount) == ("orders", True, 10_000_000)
    assert metered.ended_at == datetime(2024, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (",2024-01-01,2024-01-02,spark,1,hour,,,,", "either a job or a dataset"),
        ("a,2024-01-01,,spark,1,hour,,,,", "Give 'started_at' and 'ended_at'"),
        ("a,2024-01-05,2024-01-02,spark,1,hour,,,,", "before it started"),
        ("a,yesterday,2024-01-02,spark,1,hour,,,,", "'yesterday' in started_at"),
        ("a,2024-01-01,2024-01-02,spark,many,hour,,,,", "Invalid number 'many' in quantity"),
        ("a,2024-01-01,2024-01-02,spark,nan,hour,,,,", "Invalid number 'nan' in quantity"),
        ("a,2024-01-01,2024-01-02,spark,-1,hour,,,,", "below 0. Write credits as amounts"),
        ("a,2024-01-01,2024-01-02,,1,,,,,", "needs 'engine' and 'unit'"),
        ("a,2024-01-01,2024-01-02,spark,,,,,,", "a quantity and its unit, or an amount"),
        ("a,2024-01-01,2024-01-02,spark,,,12,,,", "The amount 12 has no currency"),
        ("a,2024-01-01,2024-01-02,spark,,,12,dollar,,", "Invalid currency 'dollar'"),
        ("a,2024-01-01,2024-01-02,spark,,,12,USD,computing,", "Did you mean 'compute'"),
        ("a,2024-01-01,2024-01-02,spark,,,1e30,USD,,", "too large"),
        ("a,2024-01-01,2024-01-02,spark,,,1e999999,USD,,", "too large"),
        ("a,2024-01-01,2024-01-02,spark,1e30,hour,,,,", "The quantity 1E[+]30 is too large"),
        ("a,2024-01-01,2024-01-02,spark,,,1,USD,other,run,200.00", "11 values for 10 columns"),
        ("a,2024-01-01,9999-12-31,spark,1,hour,,,,", "Invalid time '9999-12-31' in ended_at"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_line_is_reported_with_its_number(
    tmp_path: Path, row: str, problem: str
) -> None:
    good = "b,2024-01-01,2024-01-02,spark,1,hour,,,,\n"
    with pytest.raises(InvalidRows, match=problem) as caught:
        read(tmp_path, f"{HEADER}{good}\n{row}\n")
    assert [line for line, _ in caught.value.problems] == [4]


def test_an_amount_with_a_comma_is_refused_and_not_cut(tmp_path: Path) -> None:
    header = "job,month,currency,amount\n"
    with pytest.raises(InvalidRows, match="line 2: 5 values for 4 columns"):
        read(tmp_path, header + "clean,2026-10,USD,1,200.00\n")
    (metered,) = read(tmp_path, header + "clean,2026-10,USD,1200.00,,\n").metered
    assert metered.amount == 1_200_000_000


@pytest.mark.parametrize(
    ("written", "ended"),
    [
        ("2026-10-31", datetime(2026, 11, 1, tzinfo=UTC)),
        ("20261031", datetime(2026, 11, 1, tzinfo=UTC)),
        ("20261031T12", datetime(2026, 10, 31, 12, tzinfo=UTC)),
        ("2026-10-31T00:00", datetime(2026, 10, 31, tzinfo=UTC)),
    ],
)
def test_a_day_as_end_is_included_however_it_is_written(
    tmp_path: Path, written: str, ended: datetime
) -> None:
    (metered,) = read(tmp_path, HEADER + f"a,20261001,{written},spark,1,hour,,,,\n").metered
    assert (metered.started_at, metered.ended_at) == (datetime(2026, 10, 1, tzinfo=UTC), ended)


def test_a_period_beyond_all_times_is_a_wrong_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidRows, match="line 2: The period 9999-12 must be between"):
        read(tmp_path, "job,period,amount,currency\nclean,9999-12,100,USD\n")


def test_all_bad_lines_are_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidRows) as caught:
        read(tmp_path, HEADER + ",,,,,,,,,x\n" * 30)
    assert len(caught.value.problems) == 30
    assert "and 20 more" in str(caught.value)


@pytest.mark.parametrize(
    ("first", "second", "overlaps"),
    [
        ("a,2024-01-01,2024-01-31,spark,1,hour,,,,", "a,2024-01-15,2024-01-15,spark,1,hour,,,,", True),
        ("a,2024-01-01,2024-01-31,spark,1,hour,,,,", "a,2024-01-01,2024-01-31,spark,1,hour,,,,", True),
        ("a,2024-01-01T00:00,2024-01-01T00:00,spark,1,hour,,,,", "a,2024-01-01T00:00,2024-01-01T00:00,spark,1,hour,,,,", True),
        ("a,2024-01-01,2024-01-31,spark,1,hour,,,,", "a,2024-02-01,2024-02-02,spark,1,hour,,,,", False),
        ("a,2024-01-01,2024-01-31,spark,1,hour,,,,", "b,2024-01-01,2024-01-31,spark,1,hour,,,,", False),
        ("a,2024-01-01,2024-01-31,spark,1,hour,,,,", "a,2024-01-01,2024-01-31,spark,1,gb,,,,", False),
        ("a,2024-01-01,2024-01-31,spark,1,hour,,,,r1", "a,2024-01-01,2024-01-31,spark,1,hour,,,,r2", False),
        ("a,2024-01-01,2024-01-31,spark,1,hour,,,,r1", "a,2024-01-01,2024-01-31,spark,2,hour,,,,r1", True),
    ],
)  # fmt: skip
def test_time_that_counts_twice_is_refused(
    tmp_path: Path, first: str, second: str, overlaps: bool
) -> None:
    text = f"{HEADER}{first}\n{second}\n"
    if not overlaps:
        assert len(read(tmp_path, text).metered) == 2
        return
    with pytest.raises(InvalidRows, match="line 3: Its time overlaps that of line 2"):
        read(tmp_path, text)


def test_two_currencies_are_refused(tmp_path: Path) -> None:
    rows = "a,2024-01-01,2024-01-02,,,,1,USD,,\nb,2024-01-01,2024-01-02,,,,1,EUR,,\n"
    with pytest.raises(InvalidRows, match="line 3: The amount is in EUR, others are in USD"):
        read(tmp_path, HEADER + rows)


def test_a_file_that_gives_no_information_is_an_error_and_in_a_folder_passed_over(
    tmp_path: Path,
) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    assert list(find_meters([tmp_path])) == []
    with pytest.raises(MisuseError, match=r"notes\.txt is not a Spark event log"):
        list(find_meters([tmp_path / "notes.txt"]))
    with pytest.raises(MisuseError, match="no file or folder"):
        list(find_meters([tmp_path / "nowhere"]))


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("table,amount,currency,month", "lacks a column: job or dataset. It has table, amount"),
        ("dataset,quantity,unit,engine,mnth", "lacks a column: started_at and ended_at, or period."),
        ("job,period,quantity,unit", "lacks a column: quantity, unit and engine, or amount and currency."),
    ],
)  # fmt: skip
def test_wrong_columns_are_named_with_the_expected_ones(
    tmp_path: Path, header: str, problem: str
) -> None:
    with pytest.raises(WrongColumns) as caught:
        read(tmp_path, f"{header}\na,b,c,d,e\n")
    assert problem in str(caught.value)
    assert ("Did you mean 'month'?" in str(caught.value)) == ("mnth" in header)
    assert "Expected: job or dataset; started_at and ended_at, or period; " in str(caught.value)
    assert str(caught.value).endswith("usage.csv")
