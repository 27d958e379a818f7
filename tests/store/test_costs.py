"""Meters that replace themselves, overrides, sizes over time, and the history of costs."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from lumos.model.cost import MeteredUsage
from lumos.model.dataset import Statistics
from lumos.model.lineage import Edge
from lumos.model.period import period_of
from lumos.store import Store
from lumos.store.costs import CostFigure, MeterChange, OverlappingMeter, StorageSize, StoredOverride
from lumos.store.usage import Reads
from store.conftest import AT, dataset

ORDERS, SALES = "lumos://file/lake/orders", "lumos://file/lake/sales"
JANUARY = period_of("2024-01", today=date.max)
FEBRUARY = period_of("2024-02", today=date.max)


def at(day: int, hour: int = 0) -> datetime:
    return datetime(2024, 1, 1, hour, tzinfo=UTC) + timedelta(days=day - 1)


def day(number: int) -> int:
    """A day of January 2024, counted from 1970."""
    return (at(number).date() - date(1970, 1, 1)).days


def metered(
    target: str = "nightly", first: int = 1, last: int = 0, **facts: object
) -> MeteredUsage:
    defaults: dict[str, object] = {"engine": "spark", "quantities": {"core_hour": Decimal("1.5")}}
    stretch = {"started_at": at(first), "ended_at": at(max(first, last) + 1)}
    return MeteredUsage(target=target, **{**defaults, **stretch, **facts})  # type: ignore[arg-type]


def report_usage(store: Store, *several: MeteredUsage, reporter: str = "table:a") -> MeterChange:
    with store.transaction() as transaction:
        return transaction.costs.add_usage(reporter, several, at=AT)


def stored_usage(store: Store, first: int = 1, last: int = 31) -> list[MeteredUsage]:
    return [each for _, each in store.costs.metered(at(first), at(last + 1))]


def test_the_same_report_again_changes_nothing(store: Store) -> None:
    rows = [metered(first=1), metered(first=2), metered(run="r1"), metered(run="r2")]
    assert report_usage(store, *rows) == MeterChange(added=4)
    assert report_usage(store, *rows) == MeterChange(unchanged=4)
    assert sorted(stored_usage(store), key=str) == sorted(rows, key=str)
    (meter,) = store.costs.meters()
    assert meter == ("table:a", 4, at(1), at(3))


def test_a_run_that_continued_replaces_its_earlier_usage(store: Store) -> None:
    report_usage(store, metered(run="app-1"), reporter="spark")
    longer = metered(run="app-1", last=2, quantities={"core_hour": Decimal("48")})
    assert report_usage(store, longer, reporter="spark") == MeterChange(changed=1)
    assert stored_usage(store) == [longer]


def test_an_amount_that_was_corrected_replaces_the_one_before(store: Store) -> None:
    report_usage(store, metered(quantities={}, amount=5, currency="EUR"))
    corrected = metered(quantities={}, amount=-7, currency="EUR")
    assert report_usage(store, corrected) == MeterChange(changed=1)
    assert stored_usage(store) == [corrected]


def test_time_that_would_count_twice_is_refused_and_nothing_is_kept(store: Store) -> None:
    report_usage(store, metered(first=1, last=31))
    with pytest.raises(
        OverlappingMeter,
        match="from 2024-01-01 to 2024-01-31 is already imported from table:a; from 2024-01-15",
    ) as caught:
        report_usage(store, metered("other"), metered(first=15))
    assert "lumos cost remove --meter table:a" in str(caught.value)
    assert stored_usage(store) == [metered(first=1, last=31)]
    # Others may say the same, and so may runs that have ids.
    report_usage(store, metered(first=15), reporter="table:b")
    report_usage(store, metered(first=15, run="r"))
    assert len(stored_usage(store)) == 3


def test_what_reaches_into_a_time_belongs_to_it(store: Store) -> None:
    report_usage(store, metered("a", 1, 10), metered("b", 11, 20), metered("c", 5, 25))
    assert sorted(each.target for each in stored_usage(store, 11, 12)) == ["b", "c"]


def test_a_reporter_is_forgotten_as_a_whole(store: Store) -> None:
    report_usage(store, metered("a"), metered("b"))
    report_usage(store, metered("a"), reporter="dbt")
    with store.transaction() as transaction:
        assert transaction.costs.delete_usage("table:a") == 2
    assert [meter.reporter for meter in store.costs.meters()] == ["dbt"]


def override(urn: str = ORDERS, type: str = "storage", since: date = date(1970, 1, 1), amount: int = 5) -> StoredOverride:  # fmt: skip
    return StoredOverride(urn, type, since, None, amount, "USD", "licence", "ann", AT)


def test_overrides_are_set_replaced_and_taken_back(store: Store) -> None:
    later = override(since=date(2024, 2, 1), amount=9)
    with store.transaction() as transaction:
        for each in (
            override(),
            override(amount=7),
            later,
            override(type="other"),
            override(SALES),
        ):
            transaction.costs.set_override(each)
    assert store.costs.overrides() == (
        override(type="other"),
        override(amount=7),
        later,
        override(SALES),
    )
    with store.transaction() as transaction:
        assert transaction.costs.delete_overrides([ORDERS], ["storage"]) == 2
    assert store.costs.overrides() == (override(type="other"), override(SALES))
    with store.transaction() as transaction:
        assert transaction.costs.delete_overrides([ORDERS, SALES], []) == 2
    assert store.costs.overrides() == ()


def save(store: Store, name: str, size: int, day: int, **classes: int) -> None:
    with store.transaction() as transaction:
        transaction.save(dataset(name))
        statistics = Statistics(total_size_bytes=size, bytes_by_class=classes)
        transaction.save_aspect(
            f"lumos://file/lake/{name}", "statistics", statistics, writer="scan", at=at(day, 7)
        )


def test_sizes_are_those_of_the_last_scan_before_a_day(store: Store) -> None:
    save(store, "orders", 10, 5)
    save(store, "orders", 30, 20, standard=20, glacier=10)
    save(store, "orders", 20, 20, standard=20)
    assert store.costs.sizes(at(10).date()) == {ORDERS: StorageSize(day(5), 10)}
    assert store.costs.sizes(at(20).date()) == {
        ORDERS: StorageSize(day(20), 20, b'{"standard":20}')
    }
    # Before the first scan nothing better is known.
    assert store.costs.sizes(at(1).date()) == {ORDERS: StorageSize(day(5), 10)}


def test_what_is_kept_of_a_dataset_follows_its_name(store: Store) -> None:
    save(store, "orders", 10, 5)
    with store.transaction() as transaction:
        transaction.costs.set_override(override())
        transaction.costs.record(JANUARY, [CostFigure(ORDERS, "storage", 1, 2, 3, 4)], method="equal_split", currency="USD", at=AT)  # fmt: skip
    with store.transaction() as transaction:
        known = transaction.known(ORDERS)
        assert known is not None
        transaction.rename(known, to=SALES, name="sales", at=AT)
    assert store.costs.sizes(at(9).date()) == {SALES: StorageSize(day(5), 10)}
    assert [each.urn for each in store.costs.overrides()] == [SALES]
    assert store.costs.history(SALES) == {"2024-01": (CostFigure(SALES, "storage", 1, 2, 3, 4),)}


def record(store: Store, period: object, *figures: CostFigure) -> int:
    with store.transaction() as transaction:
        return transaction.costs.record(
            period, figures, method="equal_split", currency="EUR", at=AT
        )  # type: ignore[arg-type]


def test_costs_of_a_period_are_kept_once(store: Store) -> None:
    january = [
        CostFigure(ORDERS, "compute", 5, 1, 6, 0),
        CostFigure(ORDERS, "storage", 1, 0, 1, 1),
        CostFigure(SALES, "storage", 2**62, -7, 3, 2**62),
    ]
    assert record(store, JANUARY, *january, CostFigure(SALES, "other", 0, 0, 0, 0)) == 3
    assert record(store, JANUARY, *january) == 3
    record(
        store,
        FEBRUARY,
        CostFigure(ORDERS, "storage", 4, 0, 4, 4),
        CostFigure("__idle__", "other", 9, 0, 9, 9),
    )
    assert list(store.costs.figures("2024-01")) == january
    assert store.costs.history(ORDERS) == {
        "2024-01": (january[0], january[1]),
        "2024-02": (CostFigure(ORDERS, "storage", 4, 0, 4, 4),),
    }
    assert store.costs.totals() == {
        "2024-01": {"compute": 5, "storage": 2**62 + 1},
        "2024-02": {"other": 9, "storage": 4},
    }
    assert [
        (each.name, each.first, each.method, each.currency) for each in store.costs.periods()
    ] == [
        ("2024-01", date(2024, 1, 1), "equal_split", "EUR"),
        ("2024-02", date(2024, 2, 1), "equal_split", "EUR"),
    ]
    record(store, JANUARY, january[0])
    assert list(store.costs.figures("2024-01")) == january[:1]


def test_edges_are_read_with_their_jobs(store: Store) -> None:
    job = "lumos://spark/etl/nightly"
    with store.transaction() as transaction:
        edges = [
            Edge(upstream=ORDERS, downstream=SALES, origin="a", at=AT),
            Edge(upstream=ORDERS, downstream=SALES, origin="a", at=AT, job=job),
        ]
        transaction.lineage.report("a", edges, at=AT)
    urns = dict(store.costs.nodes())
    rows = [row for page in store.costs.links() for row in page]
    named = {(urns[up], urns[down], urns.get(job_id)) for up, down, job_id in rows}
    assert named == {(ORDERS, SALES, None), (ORDERS, SALES, job)}


def test_reads_are_summed_up_by_reader(store: Store) -> None:
    with store.transaction() as transaction:
        transaction.usage.add(
            "log:a",
            [
                Reads(ORDERS, at(1).date(), "ann", 2, at(1), 100, 10),
                Reads(ORDERS, at(2).date(), "ann", 1, at(2), 50, None),
                Reads(ORDERS, at(9).date(), "ann", 9, at(9), 9, 9),
            ],
        )
    (row,) = store.costs.reads(at(1).date(), at(8).date())
    assert row == (ORDERS, "ann", 3, 150, None, at(2))
