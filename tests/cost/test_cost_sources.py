"""Taking in meters and setting what things cost."""

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from cost.meters.spark_logs import HOUR, START, added, ended, started, written
from cost.sample_store import CostSample, costs, job, job_urn
from lumos.config.prices import CurrencyMix
from lumos.cost.cost_sources import CostSources
from lumos.cost.meters.tables import InvalidRows
from lumos.errors import MisuseError, UnknownName
from lumos.model.period import period_of
from lumos.store.costs import OverlappingMeter
from lumos.store.errors import UnknownDataset

PRICES = "cost_calculation: {currency: EUR, compute_pricing: {spark: {per_core_hour: 2}, emr: {instance_hour: 3}}}"
TABLE = "job,started_at,ended_at,engine,quantity,unit,amount,currency\n"


@pytest.fixture
def sample(tmp_path: Path) -> CostSample:
    made = CostSample(tmp_path, PRICES)
    made.lineage(jobs=(job("nightly"),))
    return made


@pytest.fixture
def sources(sample: CostSample) -> CostSources:
    return CostSources(sample.settings, lambda: sample.store, lambda: sample.store)


def table(sample: CostSample, *rows: str, name: str = "emr.csv") -> Path:
    path = sample.folder / name
    path.write_text(TABLE + "".join(f"{row}\n" for row in rows))
    return path


def test_an_event_log_becomes_the_cost_of_a_job(sample: CostSample, sources: CostSources) -> None:
    log = written(
        sample.folder / "logs/app-1", started(), added("1", cores=4), ended(START + 3 * HOUR)
    )
    (meter,) = sources.ingest(log.parent).meters
    assert (meter.reporter, meter.kind, meter.files, meter.jobs, meter.added) == (
        "spark",
        "spark",
        1,
        1,
        1,
    )
    assert costs(sample.inputs(), "compute") == {job_urn("nightly"): Decimal(24)}
    (again,) = sources.ingest(log).meters
    assert (again.added, again.changed, again.unchanged) == (0, 0, 1)
    assert costs(sample.inputs(), "compute") == {job_urn("nightly"): Decimal(24)}


def test_a_table_is_known_by_its_name_and_adds_up_by_period(
    sample: CostSample, sources: CostSources
) -> None:
    sources.ingest(table(sample, "nightly,2024-01-01,2024-01-31,emr,10,instance_hour,,"))
    (meter,) = sources.ingest(
        table(sample, "nightly,2024-02-01,2024-02-29,emr,20,instance_hour,,")
    ).meters
    assert (meter.reporter, meter.added) == ("table:emr", 1)
    assert [(each.reporter, each.rows) for each in sources.meters().meters] == [("table:emr", 2)]
    february = period_of("2024-02", today=date.max)
    assert costs(sample.inputs(), "compute") == {job_urn("nightly"): Decimal(30)}
    assert costs(sample.inputs(february), "compute") == {job_urn("nightly"): Decimal(60)}


def test_replacing_forgets_what_was_known_by_the_name(
    sample: CostSample, sources: CostSources
) -> None:
    sources.ingest(table(sample, "nightly,2024-01-01,2024-01-31,emr,10,instance_hour,,"))
    later = table(sample, "nightly,2024-01-15,2024-01-15,emr,1,instance_hour,,")
    with pytest.raises(OverlappingMeter, match="lumos cost remove --meter table:emr"):
        sources.ingest(later)
    sources.ingest(later, replace=True)
    assert costs(sample.inputs(), "compute") == {job_urn("nightly"): Decimal(3)}
    assert sources.forget("emr").rows == 1
    assert sources.meters().meters == ()
    with pytest.raises(UnknownName):
        sources.forget("emr")


def test_nothing_is_taken_in_where_something_is_refused(
    sample: CostSample, sources: CostSources
) -> None:
    good = table(sample, "nightly,2024-01-01,2024-01-31,emr,10,instance_hour,,", name="good.csv")
    bad = table(sample, "nightly,2024-01-01,2024-01-31,emr,ten,instance_hour,,", name="bad.csv")
    with pytest.raises(InvalidRows, match="line 2"):
        sources.ingest(good, bad)
    assert sources.meters().meters == ()


def test_amounts_in_another_currency_are_refused(sample: CostSample, sources: CostSources) -> None:
    with pytest.raises(CurrencyMix, match="EUR and USD") as caught:
        sources.ingest(table(sample, "nightly,2024-01-01,2024-01-31,,,,10,USD"))
    assert caught.value.currencies == ("EUR", "USD")
    assert sources.meters().meters == ()


def test_a_log_that_cannot_be_read_keeps_others_from_nothing(
    sample: CostSample, sources: CostSources
) -> None:
    logs = sample.folder / "logs"
    written(logs / "app-1", started(), ended(START + HOUR))
    written(logs / "app-2", ended(START))
    report = sources.ingest(logs, engine="aws_emr", name="cluster")
    assert [(each.reporter, each.added) for each in report.meters] == [("cluster", 1)]
    assert "app-2 cannot be read" in report.problems[0]


def test_a_folder_that_gives_no_information_is_an_error(
    sample: CostSample, sources: CostSources
) -> None:
    (sample.folder / "empty").mkdir()
    with pytest.raises(MisuseError, match="No usage found"):
        sources.ingest(sample.folder / "empty")


def test_results_of_dbt_are_charged_to_its_models(sample: CostSample, sources: CostSources) -> None:
    sample.lineage(jobs=(job("model.shop.orders"),), reporter="dbt:shop")
    about = {
        "dbt_schema_version": "https://schemas.getdbt.com/dbt/run-results/v6.json",
        "generated_at": "2024-01-05T01:00:00Z",
        "invocation_id": "i",
    }
    results = [
        {
            "unique_id": "model.shop.orders",
            "status": "success",
            "execution_time": 1800.0,
            "timing": [],
        }
    ]
    path = sample.folder / "run_results.json"
    path.write_text(json.dumps({"metadata": about, "results": results, "elapsed_time": 1800.0}))
    sources.ingest(path, engine="snowflake")
    sample.configure("cost_model: {compute: {snowflake: {cost_per_hour: 4}}}")
    assert costs(sample.inputs(), "compute") == {job_urn("model.shop.orders"): Decimal(2)}


def test_what_is_set_counts_and_can_be_taken_back(sample: CostSample, sources: CostSources) -> None:
    raw = sample.dataset("raw", platform="file")
    report = sources.set("raw", {"storage": "31", "other": Decimal("-6.2")}, reason="licence")
    assert [(each.urn, each.type, each.amount, each.reason) for each in report.overrides] == [
        (raw, "other", Decimal("-6.2"), "licence"),
        (raw, "storage", Decimal("31"), "licence"),
    ]
    sources.set("nightly", {"compute": 5}, since="2024-01-17")
    inputs = sample.inputs()
    assert costs(inputs) == {raw: Decimal(31)}
    assert costs(inputs, "compute") == {
        job_urn("nightly"): pytest.approx(Decimal(5) * 15 / 31, abs=Decimal("0.000001"))
    }
    assert len(sources.overrides().overrides) == 3
    assert sources.unset("raw", ["storage"]).removed == 1
    assert [each.type for each in sources.overrides(raw).overrides] == ["other"]
    assert sources.unset("raw").removed == 1
    assert costs(sample.inputs()) == {}


@pytest.mark.parametrize(
    ("name", "costs_set", "more", "error", "problem"),
    [
        ("nothing", {"storage": 1}, {}, UnknownDataset, "nothing"),
        ("nightly", {"stroage": 1}, {}, UnknownName, "Did you mean 'storage'"),
        ("nightly", {}, {}, MisuseError, "No cost given"),
        ("nightly", {"compute": "nan"}, {}, MisuseError, "Invalid amount"),
        ("nightly", {"compute": 1}, {"currency": "usd"}, CurrencyMix, "EUR and USD"),
        ("nightly", {"compute": 1}, {"since": "May"}, MisuseError, "Invalid day 'May'"),
        ("nightly", {"compute": 1}, {"since": "2024-02-01", "until": "2024-01-01"}, MisuseError, "is before --since"),
    ],
)  # fmt: skip
def test_what_cannot_be_set_is_refused(
    sources: CostSources,
    name: str,
    costs_set: dict[str, str | int],
    more: dict[str, str],
    error: type[Exception],
    problem: str,
) -> None:
    with pytest.raises(error, match=problem):
        sources.set(name, costs_set, **more)  # type: ignore[arg-type]
    assert sources.overrides().overrides == ()


def test_taking_back_what_was_never_set_is_an_error(sources: CostSources) -> None:
    with pytest.raises(UnknownName):
        sources.unset("nightly")


def test_overrides_of_the_configuration_are_listed_too(sample: CostSample) -> None:
    sample.configure(
        "cost_model: {overrides: [{job: nightly, costs: {compute: 7}, since: 2024-01-01}]}"
    )
    sources = CostSources(sample.settings, lambda: sample.store, lambda: sample.store)
    (listed,) = sources.overrides().overrides
    assert (listed.urn, listed.amount, listed.since, listed.origin) == (
        "nightly",
        7,
        date(2024, 1, 1),
        "configuration",
    )


@pytest.mark.parametrize(
    ("second", "is_refused"),
    [
        pytest.param("clean,2024-01,7,EUR", True, id="another amount"),
        pytest.param("clean,2024-01-15,7,EUR", True, id="some of the same time"),
        pytest.param("clean,2024-02,7,EUR", False, id="another time"),
        pytest.param("other,2024-01,7,EUR", False, id="another job"),
        pytest.param("clean,2024-01,100,EUR", False, id="a copy"),
    ],
)
def test_two_files_by_one_name_do_not_replace_each_other(
    sample: CostSample, sources: CostSources, second: str, is_refused: bool
) -> None:
    for folder, row in (("one", "clean,2024-01,100,EUR"), ("two", second)):
        file = sample.folder / "bills" / folder / "usage.csv"
        file.parent.mkdir(parents=True)
        file.write_text(f"job,period,amount,currency\n{row}\n")
    if is_refused:
        words = r"one/usage\.csv and .*two/usage\.csv both have the name table:usage"
        with pytest.raises(MisuseError, match=words):
            sources.ingest(sample.folder / "bills")
        assert sources.meters().meters == ()
    else:
        sources.ingest(sample.folder / "bills")
        assert sources.meters().meters[0].rows == (1 if "100" in second else 2)


def test_a_run_that_is_taken_in_again_with_its_engine_counts_once(
    sample: CostSample, sources: CostSources
) -> None:
    sample.lineage(jobs=(job("nightly"),))
    log = written(
        sample.folder / "app-1", started(at=START), added("1", cores=4), ended(START + HOUR)
    )
    sample.configure(
        "cost_model: {compute: {spark: {cost_per_core_hour: 1}, emr: {cost_per_core_hour: 2}}}"
    )
    sources.ingest(log)
    assert costs(sample.inputs(), "compute") == {job_urn("nightly"): Decimal(4)}
    (again,) = sources.ingest(log, engine="emr").meters
    assert (again.added, again.changed, again.unchanged) == (0, 1, 0)
    assert costs(sample.inputs(), "compute") == {job_urn("nightly"): Decimal(8)}
    assert sources.meters().meters[0].rows == 1


def test_results_of_dbt_that_are_taken_in_again_in_other_units_count_once(
    sample: CostSample, sources: CostSources
) -> None:
    about = {
        "dbt_schema_version": "https://schemas.getdbt.com/dbt/run-results/v6.json",
        "generated_at": "2024-01-05T01:00:00Z",
        "invocation_id": "i",
    }
    result = {"unique_id": "model.shop.a", "status": "success", "execution_time": 3.0, "timing": []}
    path = sample.folder / "run_results.json"
    path.write_text(json.dumps({"metadata": about, "results": [result], "elapsed_time": 3.0}))
    sources.ingest(path)
    sources.ingest(path, engine="bigquery")
    assert sources.meters().meters[0].rows == 1


def test_rows_of_a_table_about_one_run_in_several_units_all_count(
    sample: CostSample, sources: CostSources
) -> None:
    file = sample.folder / "usage.csv"
    head = "job,period,engine,quantity,unit,run\n"
    file.write_text(f"{head}a,2024-01,emr,3,instance-hours,r1\na,2024-01,emr,2,licences,r1\n")
    sources.ingest(file)
    assert sources.meters().meters[0].rows == 2
