"""Reports on cost, from a store to decimals that add up."""

from decimal import Decimal
from pathlib import Path

import pytest

from cost.documented_example import EDGES, NOW, urn, write_example
from lumos import Lumos
from lumos.config.prices import NoPrices
from lumos.cost.page import flow_to
from lumos.errors import MisuseError
from lumos.model.dataset import Statistics
from lumos.store import Store
from lumos.store.errors import UnknownDataset

JANUARY = "2024-01"


@pytest.fixture
def shop(workplace: Path) -> Lumos:
    return write_example(workplace)


def plain(amounts: dict[str, Decimal]) -> dict[str, float]:
    return {name: float(amount) for name, amount in amounts.items()}


def test_the_founding_example_costs_what_it_says(shop: Lumos) -> None:
    report = shop.cost.report("ml_predictions", period=JANUARY)
    summary = report.summary
    assert (summary.total_cost, summary.direct_cost, summary.attributed_cost) == (5800, 1500, 4300)
    assert plain(report.breakdown.by_type) == {"storage": 500, "compute": 5300}
    assert plain(report.breakdown.by_team) == {"ml-platform": 3700, "data-engineering": 2100}
    upstream = {each.name: float(each.cost) for each in report.breakdown.by_upstream}
    assert upstream == {
        "feature_store": 2200, "cleaned_events": 1800, "ml_predictions": 1500, "raw_events": 300
    }  # fmt: skip
    assert (report.period, report.currency, report.dataset) == (
        "2024-01", "USD", urn("ml/ml_predictions"),
    )  # fmt: skip


def test_without_an_allocation_the_reader_carries_all(shop: Lumos) -> None:
    allocation = (
        "    - {from: cleaned_events, to: feature_store, shares: {compute: 0.6, storage: 1.0}}\n"
    )
    file = Path(shop.settings.origin.folder or "") / "lumos.yaml"
    file.write_text(file.read_text().replace(allocation, ""))
    lumos = Lumos(file, environment={})
    total = lumos.cost.report("ml_predictions", period=JANUARY).summary.total_cost
    assert total == 7000


def test_all_datasets_of_a_team_are_counted_whether_or_not_they_cost(shop: Lumos) -> None:
    file = Path(shop.settings.origin.folder or "") / "lumos.yaml"
    free = file.read_text().replace("ml_predictions, costs: {compute: 1500}", "ml_predictions, costs: {compute: 0}")  # fmt: skip
    file.write_text(free.replace("compute: 0.6, storage: 1.0", "compute: 0, storage: 0"))
    groups = Lumos(file, environment={}).cost.by("team", period=JANUARY).groups
    assert sum(each.datasets for each in groups) == 5


def test_the_picture_of_a_dataset_amid_lineage_keeps_what_stays_there(shop: Lumos) -> None:
    computed = shop.cost._compute({"period": JANUARY})
    for name, kept in (("core/cleaned_events", 1200), ("ml/feature_store", 0)):
        node = computed.ledger.node_by_urn[urn(name)]
        stops, _ = flow_to(computed.ledger, node)
        [stop] = [each for each in stops if each.key == urn(name)]
        assert (stop.total, stop.retained) == (computed.ledger.totals[node], kept * 1_000_000)


def test_the_picture_of_a_dataset_in_a_cycle_shows_its_total(shop: Lumos) -> None:
    shop.lineage.add(urn("ml/feature_store"), urn("core/cleaned_events"))
    ledger = shop.cost._compute({"period": JANUARY}).ledger
    for name in ("core/cleaned_events", "ml/feature_store"):
        node = ledger.node_by_urn[urn(name)]
        stops, _ = flow_to(ledger, node)
        totals = {each.key: each.total for each in stops}
        assert totals[urn(name)] == ledger.totals[node]
        assert all(
            total <= ledger.totals[ledger.node_by_urn[key]] + 1 for key, total in totals.items()
        )


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("{dataset: raw_events,", "{dataset: raw_event,", "An override in the configuration names"),
        ("{from: raw_events, to: event", "{from: raw_event, to: event", "An allocation in the"),
    ],
)
def test_an_unknown_name_in_the_configuration_is_reported(
    shop: Lumos, right: str, wrong: str, message: str
) -> None:
    file = Path(shop.settings.origin.folder or "") / "lumos.yaml"
    file.write_text(file.read_text().replace(right, wrong))
    with pytest.raises(MisuseError, match=message):
        Lumos(file, environment={}).cost.top()


def test_a_long_name_is_cut_in_the_figures_to_see_first(shop: Lumos) -> None:
    long = "a" * 300
    labels = shop.cost._labels
    labels._datasets = {**labels._datasets, urn("ml/ml_predictions"): (long, "s3")}
    figures = shop.cost.page(period=JANUARY).partition("<section")[0]
    assert "aaa</span>" in figures
    assert long not in figures


def test_what_a_dataset_passes_on_and_what_it_keeps_is_its_total(shop: Lumos) -> None:
    summary = shop.cost.report("cleaned_events", period=JANUARY).summary
    assert summary.retained_cost == 1200
    assert summary.retained_cost + summary.passed_on_cost == summary.total_cost == 3300


@pytest.mark.parametrize("ranked_by", ["retained", "own", "total"])
@pytest.mark.parametrize("limit", [1, 3, 50])
def test_own_and_retained_of_all_rows_give_what_was_spent(
    workplace: Path, ranked_by: str, limit: int
) -> None:
    shop = write_example(workplace, unattributed=True)
    report = shop.cost.top(limit, ranked_by=ranked_by, period=JANUARY)  # type: ignore[arg-type]
    unattributed = sum(report.beside.values(), Decimal(0))
    assert report.spent == Decimal("8370.65")
    for column in ("own", "retained"):
        listed = sum((getattr(row, column) for row in report.datasets), Decimal(0))
        assert listed + getattr(report.others, column) + unattributed == report.spent
    ranks = [getattr(row, ranked_by) for row in report.datasets]
    assert ranks == sorted(ranks, reverse=True)
    assert set(report.beside) == {"__idle__", "__shared__", "__adjustment__"}


@pytest.mark.parametrize("by", ["team", "domain", "platform", "tag"])
def test_groups_give_what_was_spent_by_both_sums(workplace: Path, by: str) -> None:
    shop = write_example(workplace, unattributed=True)
    report = shop.cost.by(by, period=JANUARY)  # type: ignore[arg-type]
    unattributed = sum(report.beside.values(), Decimal(0))
    for column in ("own", "retained"):
        assert sum((getattr(row, column) for row in report.groups), unattributed) == report.spent


def test_rows_name_the_team_domain_platform_and_tags_that_groups_have(workplace: Path) -> None:
    shop = write_example(workplace)
    rows = shop.cost.top(50, ranked_by="own", period=JANUARY).datasets
    for by in ("team", "domain", "platform"):
        groups = {row.name: row.own for row in shop.cost.by(by, period=JANUARY).groups}
        sums: dict[str, Decimal] = {}
        for row in rows:
            sums[getattr(row, by)] = sums.get(getattr(row, by), Decimal(0)) + row.own
        assert sums == {name: own for name, own in groups.items() if name in sums}
    assert {"(no tag)", "gold, kpi"} <= {row.tag for row in rows}


def test_a_team_owns_one_amount_and_its_outputs_carry_another(shop: Lumos) -> None:
    groups = {row.name: row for row in shop.cost.by("team", period=JANUARY).groups}
    assert (groups["data-engineering"].own, groups["data-engineering"].retained) == (3500, 1200)
    assert (groups["ml-platform"].own, groups["ml-platform"].retained) == (3700, 5800)
    assert groups["analytics"].datasets == 1


def test_what_has_two_tags_counts_under_both_and_is_taken_back_once(shop: Lumos) -> None:
    groups = {row.name: row.retained for row in shop.cost.by("tag", period=JANUARY).groups}
    assert groups["gold"] == groups["kpi"] == 1200
    assert groups["(counted under several tags)"] == -1200
    assert groups["(no tag)"] == 5800


def test_a_day_costs_its_part_of_the_month(shop: Lumos) -> None:
    report = shop.cost.report("ml_predictions", period="2024-01-15")
    assert float(report.summary.total_cost) == pytest.approx(5800 / 31, abs=1e-4)
    assert not report.is_monthly


def test_without_a_period_the_last_thirty_days_are_reported_as_a_month(shop: Lumos) -> None:
    report = shop.cost.report("ml_predictions")
    assert report.summary.total_cost == 5800
    assert (str(report.first_day), str(report.last_day)) == ("2024-02-09", "2024-03-09")
    assert report.is_monthly


def test_a_period_that_is_not_over_says_so(shop: Lumos) -> None:
    assert any("is not over" in each for each in shop.cost.top(period="2024-03").remarks)
    assert not shop.cost.top(period="2024-02").remarks


def test_another_method_can_be_tried(shop: Lumos) -> None:
    report = shop.cost.report("ml_predictions", period=JANUARY, method="equal_split")
    assert report.method == "equal_split"
    assert report.summary.total_cost == 5800


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (
            lambda cost: cost.report("ml_prediction"),
            "Did you mean 'ml_predictions'",
        ),
        (lambda cost: cost.report("orders"), "No dataset orders in the store"),
        (lambda cost: cost.report("raw_events", period="2024-13"), "no month '2024-13'"),
        (lambda cost: cost.report("raw_events", period="2024-04"), "is in the future"),
        (lambda cost: cost.report("raw_events", method="fair"), "No method named 'fair'"),
        (lambda cost: cost.savings(), "Name what to remove"),
        (lambda cost: cost.savings(feature="prediction"), "Did you mean 'predictions'"),
        (lambda cost: cost.savings(tag="golden"), "Did you mean 'gold'"),
        (lambda cost: cost.record("2024-03"), "is not over yet"),
    ],
)
def test_an_impossible_request_is_reported_with_a_possible_one(
    shop: Lumos, ask, words: str
) -> None:
    with pytest.raises((MisuseError, UnknownDataset), match=words):
        ask(shop.cost)


def test_a_trend_without_recorded_periods_is_the_current_cost_and_how_to_record_one(
    shop: Lumos,
) -> None:
    trend = shop.cost.trend()
    assert trend.points == ()
    assert trend.now.cost == shop.cost.top().spent
    assert "lumos cost record --period" in trend.remarks[-1]


def test_without_prices_the_section_to_write_is_shown(workplace: Path) -> None:
    shop = write_example(workplace)
    (workplace / "lumos.yaml").write_text(
        "sources: [{type: postgres, host: db, database: shop, user: u, password: p}]\n"
    )
    bare = Lumos(workplace / "lumos.yaml", environment={})
    with pytest.raises(NoPrices, match="No prices are configured") as message:
        bare.cost.top()
    # What was scanned first, then what is configured; no job ran, so no engine is named.
    assert (message.value.providers, message.value.engines) == (("s3", "postgres"), ())
    assert "cost_model:\n  storage:\n    s3: {cost_per_gb_month: " in str(message.value)
    assert shop.cost.top().spent == 8200


def test_a_price_hint_names_only_sources_that_are_there(workplace: Path) -> None:
    (workplace / "lake").mkdir()
    (workplace / "lumos.yaml").write_text(
        "sources:\n- {type: file, path: lake}\n"
        "- {type: postgres, host: db, database: shop, user: u, password: p}\n"
    )
    empty = Lumos(workplace / "lumos.yaml", environment={})
    Store.open(empty.database, create=True)
    empty.lineage.add("lumos://sql/a", "lumos://spark/b", allow_dangling=True)
    with pytest.raises(NoPrices) as message:
        empty.cost.top()
    assert message.value.providers == ("local", "postgres")
    assert "s3" not in str(message.value)


def test_a_single_dataset_beyond_the_limit_is_shown_by_its_name(shop: Lumos) -> None:
    report = shop.cost.top(3, ranked_by="own", period=JANUARY)
    assert (report.others.count, report.others.only) == (2, None)
    rows, rest = shop.cost.top(4, ranked_by="own", period=JANUARY).displayed_rows
    assert ([row.name for row in rows][-1], rest.count) == ("raw_events", 0)
    assert sum(row.own for row in rows) == 8200


def test_a_store_without_lineage_says_so(workplace: Path) -> None:
    shop = write_example(workplace)
    for upstream, downstream in EDGES:
        shop.lineage.remove(urn(upstream), urn(downstream))
    text = (workplace / "lumos.yaml").read_text()
    (workplace / "lumos.yaml").write_text(text[: text.index("  allocations")])
    report = Lumos(workplace / "lumos.yaml", environment={}).cost.report("raw_events")
    assert any("lumos lineage ingest" in remark for remark in report.remarks)


def test_what_if_costs_are_reported_next_to_current_ones(workplace: Path) -> None:
    shop = write_example(workplace, unattributed=True)
    with shop._store.open().transaction() as transaction:
        message = Statistics(file_count=1, total_size_bytes=1000 * 1024**3)
        transaction.save_aspect(urn("raw/raw_events"), "statistics", message, writer="scan", at=NOW)
    text = (workplace / "lumos.yaml").read_text()
    prices = "  storage_pricing: {aws_s3: {standard: 0.02, glacier: 0.004}}\n"
    text = text.replace("    - {dataset: raw_events, costs: {storage: 500}}\n", "") + prices
    (workplace / "lumos.yaml").write_text(text)
    cost = Lumos(workplace / "lumos.yaml", environment={}).cost
    assert cost.report("raw_events").summary.own_cost == 20
    for how in (
        {"moves": {"raw_events": "glacier"}},
        {"prices": {"s3.standard": Decimal("0.004")}},
    ):
        report = cost.report("ml_predictions", **how)  # type: ignore[arg-type]
        assert report.what_if is not None
        assert report.what_if.difference == Decimal("-9.6")
        assert report.before is not None
        assert report.before.by_type["storage"] == 212
        top = cost.top(1, **how)  # type: ignore[arg-type]
        assert top.what_if is not None
        assert top.what_if.difference == -16
        [row] = top.datasets
        assert row.before is not None
        assert top.others.before is not None
        changes = row.retained - row.before + top.others.retained - top.others.before
        assert changes == -16
        assert top.beside == top.beside_before


def test_long_lists_are_summed_in_one_row_and_still_add_up(
    shop: Lumos, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumos.cost.report_builder.MAX_ROWS", 2)
    breakdown = shop.cost.report("ml_predictions", period=JANUARY).breakdown
    assert len(breakdown.by_upstream) == 2
    assert (breakdown.others.count, breakdown.others.cost) == (2, 1800)
    assert sum(each.cost for each in breakdown.by_upstream) + breakdown.others.cost == 5800


def test_a_page_of_an_estate_without_lineage_draws_no_flow(workplace: Path) -> None:
    shop = write_example(workplace)
    for upstream, downstream in EDGES:
        shop.lineage.remove(urn(upstream), urn(downstream))
    text = (workplace / "lumos.yaml").read_text()
    (workplace / "lumos.yaml").write_text(text[: text.index("  allocations")])
    page = Lumos(workplace / "lumos.yaml", environment={}).cost.page()
    assert 'class="flow"' not in page
    assert "No cost flows along lineage in this period." in page
