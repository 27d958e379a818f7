"""Coverage, duplicates and the figures of an entire store, on every database."""

from datetime import UTC, date, datetime, timedelta

import pytest

from lumos.model.annotation import USER, Annotation, AnnotationKey
from lumos.model.dataset import Documentation, Owner, Ownership
from lumos.model.lineage import Edge
from lumos.model.schema import parse_schema
from lumos.store import Store
from lumos.store.trends import Coverage, Duplicates
from store.conftest import AT, dataset, event

LATER = AT + timedelta(days=40)
OWNED = Ownership(owners=(Owner(name="ann"),))
FIRST_DAY, LATER_DAY = AT.date(), LATER.date()


def save(store: Store, name: str, *aspects: object, **facts: object) -> str:
    known = dataset(name, **facts)
    with store.transaction() as transaction:
        transaction.save(known)
        for each in aspects:
            kind = type(each).__name__.lower()
            transaction.save_aspect(known.urn, kind, each, writer="test", at=AT)
    return known.urn


@pytest.mark.parametrize(
    ("aspect", "owned", "documented"),
    [
        pytest.param(OWNED, 1, 0, id="owner"),
        pytest.param(Ownership(), 0, 0, id="no owner left"),
        pytest.param(Documentation(description="One row per order."), 0, 1, id="description"),
        pytest.param(Documentation(description='"quoted" \x00'), 0, 1, id="odd description"),
        pytest.param(Documentation(description=""), 0, 0, id="empty description"),
        pytest.param(Documentation(description="", domain="sales"), 0, 0, id="empty, with domain"),
        pytest.param(Documentation(domain="sales"), 0, 0, id="domain only"),
    ],
)
def test_owners_and_descriptions_count(
    store: Store, aspect: object, owned: int, documented: int
) -> None:
    save(store, "orders", aspect)
    coverage = store.trends.coverage()
    assert sum(coverage.datasets.values()) == 1
    assert sum(coverage.owned.values()) == owned
    assert sum(coverage.documented.values()) == documented


def test_datasets_count_from_the_day_on_which_they_got_an_owner_or_lineage(store: Store) -> None:
    orders = save(store, "orders", OWNED, Documentation(description="Orders"))
    revenue = save(store, "revenue", OWNED, created_at=LATER)
    save(store, "gone", OWNED, state="missing")
    key = AnnotationKey("", "owner", "DATA_OWNER:user:ann")
    with store.transaction() as transaction:
        for urn, at in ((orders, LATER), (revenue, AT)):
            annotations = {USER: {key: Annotation(at=at)}}
            transaction.annotations.put(urn, annotations, before={})
        edge = Edge(upstream=orders, downstream=revenue, origin="sql", at=AT)
        transaction.lineage.report("sql:models", [edge], at=AT)
    assert store.trends.coverage() == Coverage(
        datasets={FIRST_DAY: 1, LATER_DAY: 1},
        # Revenue was annotated before it was recorded under this name.
        owned={LATER_DAY: 2},
        documented={FIRST_DAY: 1},
        with_lineage={FIRST_DAY: 1, LATER_DAY: 1},
    )


def test_days_begin_at_midnight_utc(store: Store) -> None:
    midnight = datetime(2024, 2, 1, tzinfo=UTC)
    save(store, "before", created_at=midnight - timedelta(microseconds=1))
    save(store, "after", created_at=midnight)
    days = store.trends.coverage().datasets
    assert days == {date(2024, 1, 31): 1, date(2024, 2, 1): 1}


def test_a_deleted_copy_is_a_retired_duplicate(store: Store) -> None:
    with store.transaction() as transaction:
        schema = transaction.save_schema(parse_schema("id INT64\n"))
    for folder, state in (("a", "live"), ("b", "live"), ("c", "missing")):
        urn = f"lumos://file/{folder}/users"
        save(store, "users", urn=urn, state=state, schema_hash=schema, updated_at=LATER)
    save(store, "other", schema_hash=schema)
    assert store.trends.duplicates() == Duplicates(live=1, retired=(LATER,))


def test_a_figure_is_computed_again_only_after_a_change(store: Store) -> None:
    urn = save(store, "orders")
    computed = []

    def compute() -> int:
        computed.append(1)
        return len(computed)

    assert [store.cached("figure", compute) for _ in range(2)] == [1, 1]
    with store.transaction() as transaction:
        transaction.save_event(event())
    assert [store.cached("figure", compute) for _ in range(2)] == [2, 2]
    with store.transaction() as transaction:
        transaction.audit("tag add", urn, at=AT)
    assert [store.cached("figure", compute) for _ in range(2)] == [3, 3]
    with store.transaction() as transaction:
        edge = Edge(upstream=urn, downstream=f"{urn}_copy", origin="sql", at=AT)
        transaction.lineage.report("sql:models", [edge], at=AT)
    assert [store.cached("figure", compute) for _ in range(2)] == [4, 4]
