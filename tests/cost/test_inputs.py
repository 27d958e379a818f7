"""What costs are computed from: prices by what was measured, who reads what, and what is missing."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from msgspec.structs import replace

from cost.sample_store import GB, CostSample, along, at, costs, edges, job, job_urn, live, run, urn
from lumos.config.prices import CurrencyMix, MissingPrices
from lumos.errors import MisuseError, UnknownName
from lumos.model.cost import IDLE
from lumos.model.period import period_of, recent
from lumos.store.costs import StoredOverride
from lumos.store.errors import UnknownDataset

PRICES = """
cost_calculation:
  storage_pricing: {aws_s3: {standard: 0.023, glacier: 0.004}}
  compute_pricing: {spark: {per_core_hour: 0.15, per_gb_processed: 0.01}}
"""


@pytest.fixture
def sample(tmp_path: Path) -> CostSample:
    return CostSample(tmp_path, PRICES)


def test_storage_is_priced_by_class(sample: CostSample) -> None:
    raw = sample.dataset("raw", STANDARD=100 * GB, GLACIER=1000 * GB)
    plain = sample.dataset("plain", 3 * GB // 2)
    inputs = sample.inputs()
    assert costs(inputs) == {raw: Decimal("6.3"), plain: Decimal("0.0345")}
    assert (inputs.currency, inputs.remarks) == ("USD", ())


@pytest.mark.parametrize(
    ("period", "share"),
    [("2024-01", Decimal(1)), ("2024-01-15", Decimal(1) / 31), ("2024-01-01..2024-02-29", Decimal(2)), ("2024-01-31..2024-02-01", Decimal(1) / 31 + Decimal(1) / 29)],
)  # fmt: skip
def test_storage_is_charged_by_the_day(sample: CostSample, period: str, share: Decimal) -> None:
    raw = sample.dataset("raw", 1_000_000 * GB)
    found = costs(sample.inputs(period_of(period, today=date.max)))[raw]
    assert found == pytest.approx(23_000 * share, abs=Decimal("0.000001"))


def test_the_last_thirty_days_are_one_month(sample: CostSample) -> None:
    raw = sample.dataset("raw", 1000 * GB)
    assert costs(sample.inputs(recent(date(2024, 2, 10)))) == {raw: Decimal(23)}


def test_the_size_is_the_last_one_of_the_period(sample: CostSample) -> None:
    for day, size in ((5, 10), (20, 30), (40, 90)):
        raw = sample.dataset("raw", size * GB, day=day)
    assert costs(sample.inputs()) == {raw: Decimal("0.69")}
    december = sample.inputs(period_of("2023-12", today=date.max))
    assert costs(december) == {raw: Decimal("0.23")}
    assert (
        "1 dataset was first scanned after this period; its later size is used." in december.remarks
    )


def test_all_missing_prices_are_reported_at_once(sample: CostSample) -> None:
    for number in range(30):
        sample.dataset(f"d{number}", STANDARD_IA=GB, DEEP_ARCHIVE=GB)
    sample.dataset("g", GB, platform="gcs")
    sample.meter("nightly", engine="flink")
    with pytest.raises(MissingPrices) as caught:
        sample.inputs()
    assert caught.value.keys == (
        "cost_calculation.compute_pricing.flink.per_core_hour",
        "cost_calculation.storage_pricing.aws_s3.deep_archive",
        "cost_calculation.storage_pricing.aws_s3.standard_ia",
        "cost_calculation.storage_pricing.gcs.standard",
    )


def test_what_costs_nothing_unless_somebody_says_so_is_a_remark(sample: CostSample) -> None:
    local = sample.dataset("local", 5 * GB, platform="file")
    inputs = sample.inputs()
    assert costs(inputs) == {}
    assert inputs.remarks == ("1 dataset on local (5.0 GB) has no storage price and counts as free. To price storage, set cost_calculation.storage_pricing.local.standard.",)  # fmt: skip
    sample.configure("cost_calculation: {storage_pricing: {local: {standard: 2}}}")
    assert costs(sample.inputs()) == {local: Decimal(10)}


def test_a_price_for_one_class_is_none_for_another(sample: CostSample) -> None:
    sample.configure("cost_model: {storage: {s3: {cost_per_gb_month: 1}}}")
    sample.dataset("raw", STANDARD=GB, GLACIER=GB)
    with pytest.raises(MissingPrices, match=r"Set cost_model\.storage\.s3\.classes\.glacier in"):
        sample.inputs()


def test_compute_is_charged_to_the_job_between_two_datasets(sample: CostSample) -> None:
    raw, clean = sample.dataset("raw"), sample.dataset("clean")
    nightly = job_urn("nightly")
    sample.lineage((raw, clean, nightly), jobs=(job("nightly", inputs=(raw,), outputs=(clean,)),))
    sample.meter(
        "nightly",
        quantities={"core_hour": Decimal(20), "gb_processed": Decimal(50), "hour": Decimal(9)},
    )
    inputs = sample.inputs()
    assert edges(inputs) == {(raw, nightly), (nightly, clean)}
    assert costs(inputs, "compute") == {nightly: Decimal("3.5")}
    assert inputs.graph.is_job.tolist() == [each == nightly for each in inputs.graph.urns]


def test_a_run_counts_by_its_part_in_the_period(sample: CostSample) -> None:
    sample.lineage(jobs=(job("stream"),))
    # Ten days, of which January has the last three of them ahead.
    sample.meter("stream", at(29), at(39), quantities={"core_hour": Decimal(100)})
    january, february = (costs(sample.inputs(period_of(each, today=date.max)), "compute") for each in ("2024-01", "2024-02"))  # fmt: skip
    assert january == {job_urn("stream"): Decimal("4.5")}
    assert february == {job_urn("stream"): Decimal("10.5")}


def test_parts_of_a_run_add_up_to_the_cent_whatever_the_days(sample: CostSample) -> None:
    sample.lineage(jobs=(job("stream"),))
    sample.meter("stream", at(1, 7), at(11, 3), amount=10_000_001, currency="USD")
    days = [
        costs(sample.inputs(period_of(f"2024-01-{day:02}", today=date.max)), "compute")
        for day in range(1, 12)
    ]
    assert sum(each[job_urn("stream")] for each in days) == Decimal("10.000001")


def test_amounts_stay_signed_and_keep_their_type(sample: CostSample) -> None:
    sample.lineage(jobs=(job("a"),))
    sample.meter("a", amount=-2_500_000, currency="USD", type="egress", run="1")
    sample.meter("a", amount=1_000_000, currency="USD", type="compute", run="2")
    inputs = sample.inputs()
    assert inputs.graph.types == ("storage", "compute", "egress")
    assert costs(inputs, "egress") == {job_urn("a"): Decimal("-2.5")}


def test_a_currency_mix_is_refused(sample: CostSample) -> None:
    sample.meter("a", amount=5, currency="EUR")
    with pytest.raises(CurrencyMix, match="EUR and USD"):
        sample.inputs()


def test_what_lineage_does_not_know_is_unallocated(sample: CostSample) -> None:
    sample.meter("nobody", amount=5_000_000, currency="USD")
    sample.meter(IDLE, amount=2_000_000, currency="USD")
    sample.configure(
        PRICES + "  idle: {pool: 30}\n  shared: {support: 4}\n  adjustments: {credit: -1.5}\n"
    )
    inputs = sample.inputs()
    assert inputs.unallocated == 5_000_000
    assert (inputs.idle, inputs.shared, inputs.adjustment) == (32_000_000, 4_000_000, -1_500_000)
    assert inputs.remarks == (
        "$5.00 is unallocated: no dataset or job is named nobody. Correct the names and import "
        "the usage again with --replace, or record their lineage: lumos lineage ingest PATH",
    )


def test_an_unknown_application_is_a_job_of_what_it_wrote(sample: CostSample) -> None:
    clean = sample.dataset("clean")
    from lumos.model.dataset import Location

    with sample.store.transaction() as transaction:
        transaction.save_aspect(
            clean, "location", Location(uri="s3://lake/clean"), writer="scan", at=at(1)
        )
    sample.meter("Nightly", outputs=("s3a://lake/clean", "s3a://lake/elsewhere"))
    inputs = sample.inputs()
    assert edges(inputs) == {("lumos://spark/Nightly", clean)}
    assert costs(inputs, "compute") == {"lumos://spark/Nightly": Decimal("1.5")}
    assert inputs.unallocated == 0


@pytest.mark.parametrize("facts", [{}, {"properties": {"parent": "etl/Nightly Load"}}])
def test_the_steps_of_an_application_share_its_cost(
    sample: CostSample, facts: dict[str, object]
) -> None:
    first, second = ("a", "b") if facts else ("nightly_load.save_a", "nightly_load.save_b")
    sample.lineage(jobs=(job(first, **facts), job(second, **facts)))
    sample.meter("Nightly Load", amount=3, currency="USD")
    assert sorted(costs(sample.inputs(), "compute").values()) == [
        Decimal("0.000001"),
        Decimal("0.000002"),
    ]


def test_run_durations_in_lineage_are_used_without_metered_usage(sample: CostSample) -> None:
    runs = (run("a", at(3), at(3, 2)), run("a", at(60), at(60, 5)), run("a", at(4), None))
    sample.lineage(jobs=(job("a", runs=runs), job("b", runs=(run("b", at(3), at(3, 1)),))))
    remarks = sample.inputs().remarks
    assert remarks[0].startswith("2 jobs on spark count as free")
    assert "cost_calculation.compute_pricing.spark.per_hour is not set" in remarks[0]
    sample.configure(
        "cost_calculation: {compute_pricing: {spark: {per_hour: 3, per_core_hour: 1}}}"
    )
    assert costs(sample.inputs(), "compute") == {job_urn("a"): Decimal(6), job_urn("b"): Decimal(3)}
    sample.meter("b")
    assert costs(sample.inputs(), "compute") == {
        job_urn("a"): Decimal(6),
        job_urn("b"): Decimal(10),
    }


def test_a_job_that_two_reporters_meter_is_reported(sample: CostSample) -> None:
    sample.lineage(jobs=(job("a"),))
    sample.meter("a")
    sample.meter("a", reporter="table:bill")
    assert sample.inputs().remarks == ("1 job is metered by more than one source, and the amounts are added up. Check with: lumos cost meters",)  # fmt: skip


def test_the_way_past_a_job_is_left_out(sample: CostSample) -> None:
    raw, clean, other = (sample.dataset(name) for name in ("raw", "clean", "other"))
    sample.lineage((raw, clean), (raw, other), (clean, clean), reporter="sql")
    sample.lineage(
        (raw, clean, job_urn("a")),
        (clean, clean, job_urn("a")),
        jobs=(job("a", inputs=(raw, clean), outputs=(clean,)),),
    )
    assert edges(sample.inputs()) == {(raw, job_urn("a")), (job_urn("a"), clean), (raw, other)}


def test_a_job_that_reads_its_own_output_for_another_is_a_cycle(sample: CostSample) -> None:
    raw, clean = sample.dataset("raw"), sample.dataset("clean")
    sample.lineage(
        (raw, clean, job_urn("a")), jobs=(job("a", inputs=(raw,), outputs=(clean, raw)),)
    )
    assert edges(sample.inputs()) == {
        (raw, job_urn("a")),
        (job_urn("a"), clean),
        (job_urn("a"), raw),
    }


def test_reads_by_jobs_are_weights(sample: CostSample) -> None:
    raw, one, two = (sample.dataset(name) for name in ("raw", "one", "two"))
    jobs = (
        job("a", inputs=(raw,), outputs=(one,)),
        job("b", inputs=(raw,), outputs=(two,), properties={"namespace": "etl"}),
    )
    sample.lineage(jobs=jobs)
    sample.read(raw, "a", size=600, rows=1)
    sample.read(raw, "etl/b", size=300, rows=None)
    sample.read(raw, "etl/b", size=100, day=7)
    sample.read(raw, "etl/b", size=100, day=50)
    inputs = sample.inputs()
    a, b = (raw, job_urn("a")), (raw, job_urn("b"))
    assert along(inputs, inputs.graph.weights[0]) == {a: 600, b: 400}
    assert along(inputs, inputs.graph.last_read) == {
        a: at(5, 12).timestamp(),
        b: at(7, 12).timestamp(),
    }
    assert raw not in live(inputs)
    assert raw in inputs.read


@pytest.mark.parametrize(
    ("facts", "weights"),
    [
        ([{"size": 6, "rows": 60}, {"size": 4, "rows": 40}], {6, 4}),
        ([{"size": 6, "rows": 60}, {"rows": 40}], {60, 40}),
        ([{"size": 6, "times": 3}, {"rows": 40, "times": 2}], {3, 2}),
        ([{"size": 0, "times": 3}, {"size": 0, "times": 2}], {3, 2}),
    ],
)
def test_weights_use_the_measure_that_all_readers_have(
    sample: CostSample, facts: list[dict[str, int]], weights: set[float]
) -> None:
    raw = sample.dataset("raw")
    sample.lineage(jobs=(job("a", inputs=(raw,)), job("b", inputs=(raw,))))
    for name, each in zip("ab", facts, strict=True):
        sample.read(raw, name, **each)
    inputs = sample.inputs()
    assert set(along(inputs, inputs.graph.weights[0]).values()) == weights


def test_people_who_read_are_end_uses_and_what_nobody_reads_is_none(sample: CostSample) -> None:
    raw, clean, zombie = (sample.dataset(name) for name in ("raw", "clean", "zombie"))
    elsewhere = sample.dataset("far", platform="hdfs")
    sample.lineage((raw, clean), (raw, zombie))
    # Reads of the place are known since long ago.
    sample.read(clean, "ann", day=-300)
    sample.read(clean, "ann", day=-40)
    sample.read(raw, "ann", day=5)
    inputs = sample.inputs()
    assert live(inputs) == {raw, clean, elsewhere}
    assert inputs.unverified == {elsewhere}
    assert inputs.read == {raw, clean}


def test_jobs_that_read_say_nothing_of_people(sample: CostSample) -> None:
    raw, clean = sample.dataset("raw"), sample.dataset("clean")
    sample.lineage(jobs=(job("a", inputs=(raw,), outputs=(clean,)),))
    sample.read(raw, "a", day=-300)
    sample.read(raw, "a", day=5)
    inputs = sample.inputs()
    assert live(inputs) == {clean}
    assert inputs.unverified == {raw, clean}


def test_where_no_reads_are_known_all_ends_are_uses(sample: CostSample) -> None:
    raw, clean = sample.dataset("raw"), sample.dataset("clean")
    sample.lineage((raw, clean), (clean, "lumos://dbt/shop/exposures/board"))
    inputs = sample.inputs()
    assert live(inputs) == {"lumos://dbt/shop/exposures/board"}
    assert inputs.unverified == {raw, clean, "lumos://dbt/shop/exposures/board"}


def test_hashed_readers_are_found(sample: CostSample) -> None:
    from lumos.usage.pseudonyms import pseudonym

    raw = sample.dataset("raw")
    sample.lineage(jobs=(job("a", inputs=(raw,)),))
    sample.configure(PRICES + "usage: {readers: hashed, key: hush}\n")
    sample.read(raw, pseudonym("a", key=b"hush"), size=5)
    inputs = sample.inputs()
    assert along(inputs, inputs.graph.weights[0]) == {(raw, job_urn("a")): 5}


ALLOTTED = "  allocations:\n"


def test_shares_are_allotted_to_edges_by_type(sample: CostSample) -> None:
    raw, one, two = (sample.dataset(name) for name in ("raw", "one", "two"))
    sample.lineage(
        (raw, one), (raw, two, job_urn("a")), jobs=(job("a", inputs=(raw,), outputs=(two,)),)
    )
    sample.configure(
        PRICES
        + ALLOTTED
        + "  - {from: raw, to: one, share: 0.25}\n  - {from: raw, to: two, shares: {compute: 0.6}}\n"
    )
    inputs = sample.inputs()
    storage, compute = (along(inputs, row) for row in inputs.graph.explicit)
    assert storage == {(raw, one): 0.25}
    assert compute == {(raw, one): 0.25, (raw, job_urn("a")): 0.6}


@pytest.mark.parametrize(
    ("allocations", "problem"),
    [
        ("[{from: raw, to: one, share: 0.6}, {from: raw, to: two, shares: {compute: 0.5}}]", "add up to 1.1 for compute"),
        ("[{from: one, to: raw, share: 0.6}]", "lumos lineage add one raw"),
        ("[{from: raw, to: one, share: 0.6}, {from: raw, to: one, share: 0.1}]", "is allocated twice"),
        ("[{from: raw, to: three, share: 0.6}]", r"spark/etl/b between them writes other datasets"),
        ("[{from: nothing, to: one, share: 0.6}]", "nothing"),
    ],
)  # fmt: skip
def test_shares_that_cannot_be_are_refused(
    sample: CostSample, allocations: str, problem: str
) -> None:
    raw, one, two, three = (sample.dataset(name) for name in ("raw", "one", "two", "three"))
    sample.lineage(
        (raw, one), (raw, two), jobs=(job("b", inputs=(raw,), outputs=(three, "lumos://s3/x/y")),)
    )
    sample.configure(f"{PRICES}  allocations: {allocations}\n")
    with pytest.raises(MisuseError, match=problem):
        sample.inputs()


def test_overrides_stand_in_the_place_of_what_was_measured(sample: CostSample) -> None:
    raw = sample.dataset("raw", 1000 * GB)
    sample.lineage(jobs=(job("a"),))
    sample.configure(
        PRICES
        + "  overrides: [{dataset: raw, costs: {storage: 31, other: -6.2}}, {job: a, costs: {compute: 5}}]\n"
    )
    inputs = sample.inputs()
    assert costs(inputs) == {raw: Decimal(31)}
    assert costs(inputs, "other") == {raw: Decimal("-6.2")}
    assert costs(inputs, "compute") == {job_urn("a"): Decimal(5)}
    assert costs(sample.inputs(period_of("2024-01-01", today=date.max))) == {raw: Decimal(1)}


def test_days_that_nobody_set_count_as_measured(sample: CostSample) -> None:
    raw = sample.dataset("raw", 1000 * GB)
    sample.configure(
        PRICES
        + "  overrides: [{dataset: raw, costs: {storage: 62}, since: 2024-01-03, until: 2024-01-03}]\n"
    )
    assert costs(sample.inputs()) == {
        raw: pytest.approx(2 + Decimal(23) * 30 / 31, abs=Decimal("0.000001"))
    }


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        pytest.param("2024-01-20", "2024-12-31", 10 + Decimal(31) * 12 / 31, id="after the run"),
        pytest.param("2023-01-01", "2024-01-04", 10 + Decimal(31) * 4 / 31, id="before the run"),
        pytest.param("2024-01-05", "2024-01-05", Decimal(1), id="on the day of the run"),
        pytest.param("2024-02-01", "2024-12-31", Decimal(10), id="after the period"),
    ],
)
def test_what_was_metered_counts_unless_its_day_is_set(
    sample: CostSample, since: str, until: str, expected: Decimal
) -> None:
    sample.lineage(jobs=(job("a"),))
    sample.meter("a", amount=10_000_000, currency="USD")
    rule = f"{{job: a, costs: {{compute: 31}}, since: {since}, until: {until}}}"
    sample.configure(f"{PRICES}  overrides: [{rule}]\n")
    january = costs(sample.inputs(), "compute")[job_urn("a")]
    assert january == expected
    days = ("2024-01-01..2024-01-04", "2024-01-05", "2024-01-06..2024-01-31")
    parts = [sample.inputs(period_of(each, today=date.max)) for each in days]
    assert sum(sum(costs(each, "compute").values()) for each in parts) == january


def test_an_override_of_months_counts_each_month_as_one(sample: CostSample) -> None:
    raw = sample.dataset("raw", 1000 * GB)
    sample.configure(
        PRICES + "  overrides: [{dataset: raw, costs: {storage: 60}, since: 2024-02-01}]\n"
    )
    both = sample.inputs(period_of("2024-01-01..2024-02-29", today=date.max))
    assert costs(both) == {raw: Decimal(23 + 60)}


def test_a_pace_counts_beside_days_that_are_set(sample: CostSample) -> None:
    sample.lineage(jobs=(job("a"),))
    sample.meter("a", amount=10_000_000, currency="USD")
    rule = "{job: a, costs: {compute: 31}, since: 2024-01-31}"
    sample.configure(f"{PRICES}  overrides: [{rule}]\n")
    inputs = sample.inputs(schedules={"a": "0.5x"})
    assert costs(inputs, "compute") == {job_urn("a"): Decimal(6)}


def test_what_was_set_by_command_counts_before_the_configuration(sample: CostSample) -> None:
    raw = sample.dataset("raw", 1000 * GB)
    sample.configure(PRICES + "  overrides: [{dataset: raw, costs: {storage: 62}}]\n")
    with sample.store.transaction() as transaction:
        for since, amount in ((date(1970, 1, 1), 31), (date(2024, 1, 31), 310)):
            transaction.costs.set_override(StoredOverride(raw, "storage", since, None, amount * 1_000_000, "USD", "", "ann", at(1)))  # fmt: skip
    assert costs(sample.inputs()) == {raw: Decimal(40)}


def test_two_overrides_of_one_time_are_refused(sample: CostSample) -> None:
    sample.dataset("raw")
    sample.configure(
        PRICES
        + "  overrides: [{dataset: raw, costs: {storage: 1}}, {dataset: raw, costs: {storage: 2}, since: 2024-01-01}]\n"
    )
    with pytest.raises(MisuseError, match="set the storage cost of raw for the same time"):
        sample.inputs()


def test_an_override_in_another_currency_is_refused(sample: CostSample) -> None:
    raw = sample.dataset("raw")
    with sample.store.transaction() as transaction:
        transaction.costs.set_override(
            StoredOverride(raw, "storage", date(1970, 1, 1), None, 1, "EUR", "", "ann", at(1))
        )
    with pytest.raises(CurrencyMix, match="EUR and USD"):
        sample.inputs()


def test_prices_classes_and_paces_can_be_supposed(sample: CostSample) -> None:
    raw, clean = sample.dataset("raw", STANDARD=1000 * GB), sample.dataset("clean", 1000 * GB)
    sample.lineage(jobs=(job("a", inputs=(raw,), outputs=(clean,)),))
    for day in range(1, 32):
        sample.meter("a", at(day), at(day, 1), quantities={"core_hour": Decimal(1)})
    assert costs(sample.inputs(), "compute") == {job_urn("a"): Decimal("4.65")}
    supposed = sample.inputs(
        prices={"s3.glacier": Decimal("0.001")},
        moves={"raw": "glacier"},
        schedules={"clean": "0.5x"},
    )
    assert costs(supposed) == {raw: Decimal(1), clean: Decimal(23)}
    assert costs(supposed, "compute") == {job_urn("a"): Decimal("2.325")}
    weekly = sample.inputs(schedules={"a": "weekly"})
    assert costs(weekly, "compute") == {
        job_urn("a"): pytest.approx(Decimal("4.65") / 7, abs=Decimal("0.000001"))
    }
    elsewhere = sample.inputs(
        moves={"raw": "gcs.nearline"}, prices={"gcs.nearline": Decimal("0.01")}
    )
    assert costs(elsewhere)[raw] == 10


@pytest.mark.parametrize(
    ("supposed", "error", "problem"),
    [
        ({"prices": {"s3.standrd": Decimal(1)}}, UnknownName, "s3.standard"),
        ({"moves": {"raw": "deep_archive"}}, MissingPrices, "aws_s3.deep_archive"),
        ({"moves": {"nothing": "glacier"}}, UnknownDataset, "nothing"),
        ({"moves": {"a": "glacier"}}, MisuseError, "is a job and has no storage class"),
        ({"schedules": {"a": "weekly"}}, MisuseError, "a did not run in this period"),
        ({"schedules": {"a": "often"}}, MisuseError, "Unknown schedule 'often' for a"),
        ({"schedules": {"raw": "0.5x"}}, MisuseError, "No job that writes"),
    ],
)  # fmt: skip
def test_what_cannot_be_supposed_is_refused(
    sample: CostSample, supposed: dict[str, dict[str, object]], error: type[Exception], problem: str
) -> None:
    sample.dataset("raw", GB)
    sample.lineage(jobs=(job("a"),))
    with pytest.raises(error, match=problem):
        sample.inputs(**supposed)


def test_what_is_committed_stays_due(sample: CostSample) -> None:
    raw, held, clean = (
        sample.dataset("raw"),
        sample.dataset("held", tags=("legal-hold",)),
        sample.dataset("clean"),
    )
    assert sample.inputs().avoidable is None
    sample.configure(PRICES + "  committed: {patterns: ['ra*'], tags: [legal-hold]}\n")
    inputs = sample.inputs()
    assert inputs.avoidable is not None
    assert dict(zip(inputs.graph.urns, inputs.avoidable.tolist(), strict=True)) == {
        raw: False,
        held: False,
        clean: True,
    }


def test_an_empty_store_is_an_empty_graph(sample: CostSample) -> None:
    inputs = sample.inputs()
    assert (inputs.graph.nodes, inputs.graph.edges, inputs.unallocated) == (0, 0, 0)


def test_urns_of_everything_are_in_one_order(sample: CostSample) -> None:
    sample.lineage((urn("b"), urn("a")))
    sample.dataset("c")
    assert list(sample.inputs().graph.urns) == [urn("a"), urn("b"), urn("c")]


def test_a_name_that_two_jobs_have_is_nobodys(sample: CostSample) -> None:
    twins = tuple(replace(job(name), name="nightly") for name in ("a", "b"))
    sample.lineage(jobs=twins)
    sample.meter("nightly", amount=5, currency="USD")
    assert sample.inputs().unallocated == 5
    sample.meter(twins[0].urn, amount=7, currency="USD")
    assert costs(sample.inputs(), "compute") == {twins[0].urn: Decimal("0.000007")}


def test_a_run_that_used_nothing_of_what_has_a_price_costs_nothing(sample: CostSample) -> None:
    sample.lineage(jobs=(job("a"),))
    sample.meter("a", quantities={"core_hour": Decimal(0), "hour": Decimal("0.2")})
    inputs = sample.inputs()
    assert costs(inputs, "compute") == {}
    assert inputs.remarks == ("1 run on spark used no unit that has a price and counts as free.",)
    sample.meter("a", quantities={"hour": Decimal("0.2")})
    with pytest.raises(MissingPrices, match=r"spark\.per_hour"):
        sample.inputs()


def test_one_job_under_two_names_of_a_table_is_reported(sample: CostSample) -> None:
    sample.lineage(jobs=(job("a", properties={"namespace": "air"}),))
    sample.meter("a", amount=10_000_000, currency="USD", run="", reporter="table:bill")
    assert sample.inputs().remarks == ()
    sample.meter("air/a", amount=10_000_000, currency="USD", run="", reporter="table:bill")
    inputs = sample.inputs()
    assert costs(inputs, "compute") == {job_urn("a"): Decimal(20)}
    assert (
        "a, air/a are names of the same job in one table, and the amounts are added up."
        in inputs.remarks[0]
    )


def test_a_job_that_only_edges_speak_of_is_found_by_its_name(sample: CostSample) -> None:
    first, second = "lumos://airflow/etl/clean", "lumos://airflow/other/clean"
    sample.lineage((urn("a"), urn("b"), first))
    sample.meter("etl/clean", amount=20, currency="USD")
    sample.meter("clean", amount=40, currency="USD")
    assert costs(sample.inputs(), "compute") == {first: Decimal("0.00006")}
    sample.lineage((urn("a"), urn("c"), second), reporter="b")
    assert costs(sample.inputs(), "compute") == {first: Decimal("0.00002")}
    assert sample.inputs().unallocated == 40


def test_an_amount_that_no_number_holds_is_reported(sample: CostSample) -> None:
    sample.lineage(jobs=(job("a"),))
    sample.meter("a", quantities={"core_hour": Decimal(10**15)})
    with pytest.raises(MisuseError, match=r"The compute cost of lumos://spark/etl/a is too large"):
        sample.inputs()


@pytest.mark.parametrize("text", ["0001-01", "0001-01-01..9999-12-31", "9999-12-31"])
def test_a_period_beyond_what_is_reckoned_with_is_refused(text: str) -> None:
    with pytest.raises(MisuseError, match="must be between 1970-01-01 and 9998-12-31"):
        period_of(text, today=date.max)


def test_a_commitment_without_a_match_is_reported(sample: CostSample) -> None:
    sample.dataset("raw", tags=("kept",))
    sample.configure(
        PRICES + "  committed: {datasets: [raw, zzz], patterns: ['nix/*'], tags: [kept, nope]}\n"
    )
    inputs = sample.inputs()
    assert inputs.remarks == (
        "'committed' in the configuration names 'zzz', which matches no dataset or job.",
        "'committed' in the configuration names 'nix/*', which matches no dataset or job.",
        "'committed' in the configuration names the tag 'nope', which matches no dataset or job.",
    )
    assert inputs.avoidable is not None
    assert inputs.avoidable.tolist() == [False]


def test_what_is_unallocated_is_not_more_than_can_be_kept(sample: CostSample) -> None:
    for name in ("one", "two"):
        sample.meter(name, amount=4 * 10**18, currency="USD")
    with pytest.raises(MisuseError, match="The amount of __unallocated__ is too large"):
        sample.inputs()
