"""What an analysis of impact reads of many datasets at once, on every database."""

from lumos.model.catalog import Job
from lumos.model.dataset import Owner, Ownership
from lumos.model.lineage import ColumnMapping, Edge
from lumos.model.schema import parse_schema
from lumos.store import Store
from store.conftest import AT, dataset

A, B, C = (f"lumos://file/lake/{name}" for name in "abc")
JOB = "lumos://airflow/etl/load"


def edge(upstream: str, downstream: str, origin: str = "sql:m", **facts: object) -> Edge:
    return Edge(upstream=upstream, downstream=downstream, origin=origin, at=AT, **facts)  # type: ignore[arg-type]


def test_edges_into_many_datasets_come_with_all_that_each_reporter_says(store: Store) -> None:
    columns = (ColumnMapping(upstream="x", downstream="y"),)
    with store.transaction() as transaction:
        reported_edges = [edge(A, B, columns=columns), edge(A, C)]
        transaction.lineage.report("sql:m", reported_edges, at=AT)
        transaction.lineage.report("declared:d", [edge(A, B, "declared:d")], at=AT)
    found = {(each.upstream, each.downstream, each.origin): each.columns
             for each in store.lineage.edges_into([B, "lumos://x/unknown"])}  # fmt: skip
    assert found == {(A, B, "sql:m"): columns, (A, B, "declared:d"): ()}
    assert len(list(store.lineage.edges_into([A, B, C]))) == 3
    assert list(store.lineage.edges_into([])) == []


def test_jobs_are_distinguished_from_datasets(store: Store) -> None:
    job = Job(urn=JOB, name="load", platform="airflow", inputs=(A,), outputs=(B,))
    with store.transaction() as transaction:
        transaction.lineage.report("openlineage:x", [edge(A, JOB, "openlineage:x")], [job], at=AT)
    assert store.lineage.jobs_among([A, B, JOB]) == {JOB}
    assert store.lineage.jobs_among([]) == frozenset()


def test_owners_and_schemas_of_many_datasets_are_read_at_once(store: Store) -> None:
    schema = parse_schema("id INT64")
    names = [f"d{number}" for number in range(1, 1203)]
    with store.transaction() as transaction:
        hash = transaction.save_schema(schema)
        for name in names:
            transaction.save(dataset(name, schema_hash=hash))
        transaction.save(dataset("without"))
        owners = Ownership(owners=(Owner(name="x"), Owner(name="y"), Owner(name="x", type="OTHER")))
        transaction.save_aspect("lumos://file/lake/d7", "ownership", owners, writer="w", at=AT)
        nobody = Ownership(owners=())
        transaction.save_aspect("lumos://file/lake/d8", "ownership", nobody, writer="w", at=AT)
    urns = [f"lumos://file/lake/{name}" for name in (*names, "without", "unknown")]
    assert store.owners(urns) == {"lumos://file/lake/d7": ("x", "y")}
    found = store.schemas.current(urns)
    assert len(found) == len(names)
    assert set(map(str, found.values())) == {"id INT64"}
