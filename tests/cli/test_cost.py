"""lumos cost on the command line."""

import csv
import io
import re
from datetime import date
from decimal import Decimal
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from cost.documented_example import NOW, urn, write_example
from lumos import Lumos
from lumos.cli.cost_savings_text import print_retire
from lumos.cli.cost_screen import MoneyFormat, print_bars, shorten_start
from lumos.cli.screen import stdout
from lumos.cost.reports import RetireReport, RetireStep
from lumos.model.dataset import Statistics
from recorded_lake import RecordedLake

JANUARY = ("--period", "2024-01")


@pytest.fixture
def place(workplace: Path) -> Path:
    """A folder with lumos.yaml and the store of the documented example."""
    write_example(workplace, unattributed=True)
    return workplace


def amounts(text: str) -> list[Decimal]:
    found = re.findall(r"-?\$[\d,]+\.\d\d", text)
    return [Decimal(each.replace("$", "").replace(",", "")) for each in found]


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def with_bytes(place: Path) -> None:
    """Prices raw events by their bytes, in place of the amount in the configuration."""
    text = (place / "lumos.yaml").read_text()
    text = text.replace("    - {dataset: raw_events, costs: {storage: 500}}\n", "")
    (place / "lumos.yaml").write_text(text + "  storage_pricing: {aws_s3: {standard: 0.0217}}\n")
    with Lumos(place / "lumos.yaml")._store.open().transaction() as transaction:
        size = Statistics(file_count=1, total_size_bytes=777 * 1024**3)
        transaction.save_aspect(urn("raw/raw_events"), "statistics", size, writer="scan", at=NOW)


def test_a_trend_has_no_percentage_against_a_month_that_is_metered_in_part(
    lumos: Any, place: Path
) -> None:
    (place / "hours.csv").write_text(
        "dataset,started_at,ended_at,amount,currency\n"
        "raw_events,2024-01-18T03:00:00Z,2024-01-18T04:00:00Z,1,USD\n"
    )
    lumos("cost", "ingest", "hours.csv")
    recorded = lumos("cost", "record", "--period", "2024-01")
    assert "Trends do not compare with it: metered from 2024-01-18, 14 of 31 days." in recorded.err
    result = lumos("cost", "trend", "--period", "2024-02")
    assert "%" not in result.out
    assert "vs last month" in result.words
    assert "in 2024-01 (metered from 2024-01-18, 14 of 31 days)" in result.words
    lumos("cost", "report", "ml_predictions", "--period", "2024-02", "-o", "one.html")
    assert "metered from 2024-01-18, 14 of 31 days" in (place / "one.html").read_text()


@pytest.mark.usefixtures("place")
class TestReport:
    def test_a_report_has_total_direct_and_attributed_cost(self, lumos: Any) -> None:
        result = lumos("cost", "report", "ml_predictions", *JANUARY)
        assert result.code == 0
        assert "Total cost $5,800.00" in result.words
        assert "own cost $1,500.00" in result.words
        assert "upstream cost $4,300.00 attributed" in result.words
        assert "compute $5,300.00 91%" in result.words
        assert "ml-platform $3,700.00 64%" in result.words
        assert "lumos cost record" in result.words

    def test_it_fits_80_columns_but_for_names(self, lumos: Any) -> None:
        result = lumos("cost", "report", "ml_predictions", *JANUARY)
        assert max(len(line) for line in result.out.splitlines()[1:]) <= 80

    def test_its_rows_add_up_as_they_are_shown(self, lumos: Any) -> None:
        result = lumos("cost", "report", "ml_predictions", "--period", "2024-01-15").out
        part = result[result.index("BY UPSTREAM") : result.index("TREND")]
        *shown, total = amounts(part)
        assert sum(shown) == total

    def test_as_json(self, lumos: Any) -> None:
        report = lumos("cost", "report", "ml_predictions", *JANUARY, "--json").json
        assert report["summary"]["total_cost"] == 5800
        assert report["breakdown"]["by_type"] == {"storage": 500, "compute": 5300}
        assert report["trends"]["vs_last_month"] is None

    def test_as_csv(self, lumos: Any) -> None:
        found = rows(lumos("cost", "report", "ml_predictions", *JANUARY, "--csv").out)
        assert sum(Decimal(row["cost"]) for row in found) == 5800
        assert {row["team"] for row in found} == {"ml-platform", "data-engineering"}

    def test_as_a_page(self, lumos: Any, place: Path) -> None:
        result = lumos("cost", "report", "ml_predictions", *JANUARY, "-o", "one.html")
        assert result.code == 0
        page = (place / "one.html").read_text()
        assert "Cost of ml_predictions" in page
        assert "$5,800.00" in page


@pytest.mark.usefixtures("place")
class TestSums:
    @pytest.mark.parametrize("words", [("top", "-n", "2"), ("by", "team"), ("by", "tag")])
    def test_columns_add_up_as_they_are_shown(self, lumos: Any, words: tuple[str, ...]) -> None:
        result = lumos("cost", *words, "--period", "2024-01-15").out
        lines = [line for line in result.splitlines() if "$" in line][1:]
        *listed, total = [(found[0], found[-1]) for found in map(amounts, lines)]
        for column in (0, 1):
            assert sum(each[column] for each in listed) == total[column]
        assert "(idle)" in result

    @pytest.mark.parametrize("words", [("top", "-n", "2"), ("by", "domain")])
    def test_csv_adds_up_as_it_stands(self, lumos: Any, words: tuple[str, ...]) -> None:
        found = rows(lumos("cost", *words, *JANUARY, "--csv").out)
        for column in ("own", "retained"):
            assert sum(Decimal(row[column]) for row in found) == Decimal("8370.65")

    def test_bars_are_of_what_ranks(self, lumos: Any) -> None:
        for ranking, first in (("own", "cleaned_events"), ("total", "ml_predictions")):
            result = lumos("cost", "top", "--by", ranking, *JANUARY).out
            [row] = [line for line in result.splitlines() if line.startswith(first)]
            assert row.count("█") == max(line.count("█") for line in result.splitlines())

    def test_an_amount_is_the_same_however_many_are_listed(self, lumos: Any) -> None:
        found = set()
        for count in (1, 2):
            result = lumos("cost", "top", "-n", f"{count}", "--period", "2024-01-15").out
            [row] = [line for line in result.splitlines() if line.startswith("ml_predictions")]
            assert " others" in result
            found.add(tuple(amounts(row)))
        assert len(found) == 1

    def test_types_add_up_to_what_was_spent(self, lumos: Any) -> None:
        top = lumos("cost", "top", *JANUARY, "--json").json
        assert sum(top["by_type"].values()) == pytest.approx(top["spent"])

    def test_captions_fit_80_columns(self, lumos: Any) -> None:
        for words in (("top",), ("by", "team"), ("by", "platform")):
            assert max(map(len, lumos("cost", *words, *JANUARY).out.splitlines())) <= 80

    def test_top_is_written_where_its_ending_says(self, lumos: Any, place: Path) -> None:
        for name in ("top.csv", "top.json", "top.html"):
            assert lumos("cost", "top", "-o", name).code == 0
            assert (place / name).stat().st_size

    def test_what_if_shows_before_after_and_difference(self, lumos: Any, place: Path) -> None:
        text = (place / "lumos.yaml").read_text()
        (place / "lumos.yaml").write_text(text + "  storage_pricing: {aws_s3: {standard: 0.02}}\n")
        result = lumos("cost", "top", *JANUARY, "--price", "s3.standard=0.01").words
        assert "price s3.standard at 0.01 before $8,370.65, after $8,370.65: +$0.00" in result


@pytest.mark.parametrize(
    "words", [("top", "-n", "2"), ("top", "--by", "own", "-n", "2"), ("by", "team")]
)
@pytest.mark.parametrize("price", ["0.0173", "0.0001", "0.0219"])
def test_changes_add_up_to_the_difference_as_it_is_shown(
    place: Path, lumos: Any, words: tuple[str, ...], price: str
) -> None:
    with_bytes(place)
    result = lumos("cost", *words, "--price", f"s3.standard={price}").out
    before, after, difference = amounts(result.split("before")[1].split("\n")[0])
    sign = 1 if ": +" in result else -1
    assert after - before == sign * abs(difference)
    lines = result.splitlines()
    [head] = [place for place, line in enumerate(lines) if "CHANGE" in line]
    columns = [found.end() for found in re.finditer("CHANGE", lines[head])]
    assert len(columns) == (2 if "by" in words else 1)
    for end in columns:
        cells = [
            re.search(r"[+-]\$[\d,.]+\Z", line[:end])
            for line in lines[head + 1 :]
            if len(line) >= end
        ]
        *changed, total = [Decimal(re.sub("[$,]", "", each[0])) for each in cells if each]
        assert sum(changed) == total == after - before


def test_the_story_of_a_trend(place: Path, lumos: Any) -> None:
    nothing = lumos("cost", "trend")
    assert nothing.code == 0
    assert "lumos cost record" in nothing.words
    recorded = lumos("cost", "record")
    assert "Recorded" in recorded.words
    assert "$8,370.65 for 5 datasets and jobs" in recorded.words
    assert "again" in lumos("cost", "record").words
    result = lumos("cost", "trend", "ml_predictions")
    assert result.words.count("$5,800.00") >= 2
    assert "vs last month +0%" in result.words
    assert (place / "lumos.yaml").exists()


@pytest.mark.parametrize("period", ["2024-02", "2024-02-05", "2024-02-01..2024-03-31"])
@pytest.mark.usefixtures("place")
def test_a_trend_names_its_period_and_compares_months(lumos: Any, period: str) -> None:
    lumos("cost", "record", "--period", "2024-01")
    lumos("cost", "record", "--period", "2024-03")
    result = lumos("cost", "trend", "ml_predictions", "--period", period)
    assert "last 30 days" not in result.out
    [row] = [line.split() for line in result.out.splitlines() if line.split()[:1] == [period]]
    assert row[2] == "+0%"
    assert "vs last month +0% $5,800.00 in 2024-01" in result.words
    assert "2024-03 " not in result.out


@pytest.mark.usefixtures("place")
def test_a_trend_of_which_nothing_is_on_record_names_the_month_to_keep(lumos: Any) -> None:
    lumos("cost", "record", "--period", "2024-02")
    result = lumos("cost", "trend", "--period", "2024-02")
    assert result.code == 0
    assert "lumos cost record --period 2024-01" in result.err


def test_what_if_costs_are_distinguished_from_recorded_ones(place: Path, lumos: Any) -> None:
    with_bytes(place)
    lumos("cost", "record", *JANUARY)
    supposed = ("--period", "2024-02", "--price", "s3.standard=0.01")
    result = lumos("cost", "trend", *supposed)
    rows_shown = [line.split()[0] for line in result.out.splitlines() if "█" in line]
    assert rows_shown == ["2024-01", "2024-02", "what-if"]
    assert "what-if vs last month" in result.words
    found = rows(lumos("cost", "trend", *supposed, "--csv").out)
    assert [row["supposed"] for row in found] == ["False", "False", "True"]
    assert found[0]["recorded_at"].endswith("Z")
    assert "T" in found[0]["recorded_at"]
    for words, title in (
        (("page",), "Cost of all datasets"),
        (("page", "raw_events"), "Cost of raw_events"),
    ):
        assert lumos("cost", *words, *supposed, "-o", "if.html").code == 0
        page = (place / "if.html").read_text()
        assert f"{title} (what-if)</h1>" in page
        assert "What if: price s3.standard at 0.01" in page.split("What-if change")[0]
        assert "vs last month" not in page
        assert ">what-if</text>" in page
        assert ">last 30 days</text>" not in page


@pytest.mark.usefixtures("place")
def test_explain_lists_every_path(lumos: Any) -> None:
    result = lumos("cost", "explain", "ml_predictions", *JANUARY)
    assert "$1,800.00 cleaned_events compute $3,000.00 -60%-> feature_store -> ml_predictions" in (
        result.words
    )
    *ways, total = amounts("\n".join(re.findall(r"^ *\$\S+", result.out, re.MULTILINE)))
    assert sum(ways) == total == 5800
    short = lumos("cost", "explain", "ml_predictions", *JANUARY, "--limit", "1").words
    assert "on paths that are not listed" in short


def test_explain_without_any_cost_prints_no_empty_table(lumos: Any, workplace: Path) -> None:
    (workplace / "lumos.yaml").write_text("cost_model: {compute: {spark: {cost_per_hour: 1}}}\n")
    RecordedLake(Lumos()).see_all(["sales/orders"], "id INT64")
    done = lumos("cost", "explain", "orders")
    assert done.out.endswith(
        "\n\nNo cost here or upstream. Import usage with: lumos cost ingest PATH\n"
    )


@pytest.mark.usefixtures("place")
def test_savings_say_what_goes_stays_and_breaks(lumos: Any) -> None:
    result = lumos("cost", "savings", "cleaned_events", *JANUARY)
    assert "Saves $3,000.00 per month, $36,000 per year" in result.words
    assert "BREAKS feature_store ml-platform" in result.words
    assert "HIGH" in result.words
    found = rows(lumos("cost", "savings", "--feature", "predictions", *JANUARY, "--csv").out)
    saved = sum(Decimal(row["monthly"]) for row in found if row["outcome"] == "disappears")
    assert saved == 6700


@pytest.mark.usefixtures("place")
def test_savings_name_all_that_was_asked_for(lumos: Any) -> None:
    alone = lumos("cost", "savings", "--feature", "predictions", *JANUARY)
    assert alone.out.startswith("If the feature predictions is removed")
    both = ("savings", "event_metrics", "--feature", "predictions", *JANUARY)
    assert lumos("cost", *both).out.startswith(
        "If the feature predictions and event_metrics are removed"
    )
    assert lumos("cost", *both, "--json").json["feature_name"] is None
    tagged = lumos("cost", "savings", "--tag", "gold", *JANUARY)
    assert tagged.out.startswith("If all datasets tagged gold are removed")


@pytest.mark.usefixtures("place")
def test_lines_of_what_would_be_saved_fit_80_columns(lumos: Any) -> None:
    for words in (
        ("savings", "raw_events"),
        ("retire", "--top", "2"),
        ("savings", "ml_predictions"),
    ):
        lines = lumos("cost", *words, *JANUARY).out.splitlines()
        assert max(len(line) for line in lines if "lumos://" not in line) <= 80


def test_what_is_saved_so_far_adds_up_as_it_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    amounts_saved = [Decimal(each) for each in ("2540.154505", "3240.904505", "1.004990")]
    sums = list(accumulate(amounts_saved))
    steps = tuple(
        RetireStep(
            datasets=("a",), ends=("a",), names=("a",), teams=("ml",), monthly_savings=monthly,
            cumulative=total, is_verified=True,
        )
        for monthly, total in zip(amounts_saved, sums, strict=True)
    )  # fmt: skip
    report = RetireReport(
        period="2024-01", first_day=date(2024, 1, 1), last_day=date(2024, 1, 31), is_monthly=True,
        currency="USD", method="equal_split", assumed=Decimal(0), steps=steps, exact=True,
        monthly_savings=sums[-1], annual_savings=12 * sums[-1], unneeded=(),
        unneeded_savings=Decimal(0), spent=Decimal(9000),
    )  # fmt: skip
    print_retire(report)
    lines = capsys.readouterr().out.splitlines()
    shown = [amounts(line) for line in lines if re.match(r" +\d +\$", line)]
    assert [each for _, each in shown] == list(accumulate(each for each, _ in shown))
    assert shown[-1][1] == Decimal("5782.06")


def test_what_is_committed_stays_due(place: Path, lumos: Any) -> None:
    text = (place / "lumos.yaml").read_text()
    (place / "lumos.yaml").write_text(f"{text}  committed: {{datasets: [feature_store]}}\n")
    result = lumos("cost", "savings", "ml_predictions", *JANUARY)
    assert (
        "REMAINS (not saved) feature_store $2,200.00 committed: still due after removal"
        in result.words
    )
    report = lumos("cost", "savings", "ml_predictions", *JANUARY, "--json").json
    assert report["committed_cost"] == 2200
    assert report["breakdown"]["affected_datasets"] == len(report["datasets_affected"]) == 3


@pytest.mark.parametrize("price", ["1e12", "1e18", "1e400"])
def test_a_price_beyond_all_measure_is_refused(place: Path, lumos: Any, price: str) -> None:
    with_bytes(place)
    result = lumos("cost", "top", *JANUARY, "--price", f"s3.standard={price}")
    assert result.code == 2
    assert "too large to be computed" in result.err


def test_where_nothing_has_a_cost_no_empty_table_is_printed(lumos: Any, place: Path) -> None:
    (place / "lumos.yaml").write_text("cost_model: {compute: {spark: {cost_per_hour: 1}}}\n")
    result = lumos("cost", "top")
    assert result.code == 0
    assert "No dataset or job has a cost in this period." in result.out
    assert "RETAINED" not in result.out


def test_names_of_wide_characters_stay_in_their_columns(capsys: Any) -> None:
    money = MoneyFormat("USD", Decimal(100))
    print_bars(stdout(), [("表表 🎉", Decimal(60)), ("orders", Decimal(40))], money)
    wide, plain = capsys.readouterr().out.splitlines()
    assert cell_len(wide[: wide.index("$")]) == plain.index("$")
    assert cell_len(shorten_start("表" * 40, 20)) <= 20


def test_shares_of_a_sum_that_is_less_than_its_parts_are_not_reported(capsys: Any) -> None:
    money = MoneyFormat("USD", Decimal(25))
    print_bars(stdout(), [("raw", Decimal(25)), ("credit", Decimal("-25.5"))], money)
    assert "%" not in capsys.readouterr().out


@pytest.mark.usefixtures("place")
def test_retire_says_how_it_chose(lumos: Any) -> None:
    result = lumos("cost", "retire", "--top", "1", *JANUARY).words
    assert "saves $6,700.00 per month (80% of total spend)" in result
    assert "No other selection of this size saves more" in result
    assert len(rows(lumos("cost", "retire", *JANUARY, "--csv").out)) == 1


def test_a_page_of_everything_holds_what_was_spent(place: Path, lumos: Any) -> None:
    assert lumos("cost", "page", *JANUARY).code == 0
    page = (place / "cost.html").read_text()
    for words in ("$8,370.65", "Cost flow through lineage", "(idle)", "ml_predictions"):
        assert words in page


@pytest.mark.parametrize(
    ("words", "result"),
    [
        (("report", "orders"), "No dataset orders"),
        (("report", "raw_events", "--period", "january"), "Invalid period 'january'"),
        (("top", "--price", "s3.standard"), "Invalid --price 's3.standard'"),
        (("top", "--price", "s3.standard=cheap"), "Invalid price 'cheap'"),
        (("top", "--json", "--csv"), "contradict"),
        (("top", "-o", "top.doc"), "Unknown format of top.doc"),
        (("by", "team", "--format", "html"), "'html' is not one of"),
        (("by", "team", "-o", "x.html"), "lumos cost page"),
        (("savings",), "Name what to remove"),
        (("top", "--schedule", "nosuch=weekly"), "No job named 'nosuch'"),
        (("savings", "--feature", "x"), "No feature named 'x'. Features: everything, predictions"),
    ],
)
@pytest.mark.usefixtures("place")
def test_what_is_wrong_is_one_sentence_with_a_way_out(
    lumos: Any, words: tuple[str, ...], result: str
) -> None:
    answer = lumos("cost", *words)
    assert answer.code == 2
    assert result in answer.err
