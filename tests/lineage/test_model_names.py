"""A query file keeps its name and URN, whatever other files there are."""

from pathlib import Path

import pytest

from recorded_lake import RecordedLake

ORDERS = "lumos://file/lake/raw/orders"

SALES, HR = "q/sales/rep/query.sql", "q/hr/rep/query.sql"
READER = "jobs/daily.sql"


@pytest.fixture
def lake(seen: RecordedLake, workplace: Path, monkeypatch: pytest.MonkeyPatch) -> RecordedLake:
    """Two datasets, and a working folder for files that tell of them."""
    monkeypatch.chdir(workplace)
    seen.see("raw/orders", "id INT64\namount FLOAT64")
    seen.see("raw/events", "id INT64")
    return seen


def write(name: str, text: str) -> None:
    file = Path(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def near(text: str) -> str:
    """A text with paths from the working folder: a store on a server knows whole paths."""
    return text.replace(f"{Path.cwd()}/", "")


def columns(lake: RecordedLake, downstream: str) -> set[tuple[str, str]]:
    return {
        (mapping.upstream, mapping.downstream)
        for edge in lake.store.lineage.edges_of(downstream, "upstream")
        for mapping in edge.columns
    }


def urn_of(lake, file: str) -> str:
    """The only dataset that a file writes."""
    (name,) = (
        each.name for each in lake.store.lineage.reporters() if near(each.name) == f"sql:{file}"
    )
    (urn,) = {edge.downstream for edge in lake.store.lineage.edges_by(name)}
    return str(urn)


def upstream_of(lake, file: str) -> set[str]:
    (name,) = (
        each.name for each in lake.store.lineage.reporters() if near(each.name) == f"sql:{file}"
    )
    return {edge.upstream for edge in lake.store.lineage.edges_by(name)}


@pytest.mark.parametrize("spelling", ["rep", "sales.rep", "q.sales.rep"])
@pytest.mark.parametrize("file", [SALES, "q/sales/rep.sql"])
def test_every_end_of_the_path_is_a_name_of_the_query(lake, spelling, file):
    write(file, "select id, amount from raw.orders")
    write(READER, f"select * from {spelling}")
    report = lake.lumos.lineage.ingest("q", "jobs")
    assert upstream_of(lake, READER) == {urn_of(lake, file)}
    assert columns(lake, urn_of(lake, READER)) == {("id", "id"), ("amount", "amount")}
    assert (report.not_found, report.problems) == ((), ())
    assert {each.model for each in report.reporters} == {"rep", "daily"}


@pytest.mark.parametrize(
    "added",
    [
        "q/sales/rep/view.sql",
        HR,
        "more/rep/query.sql",
        "q/sales/rep.sql",
        "rep.sql",
        "rep/main.sql",
    ],
)
def test_a_new_file_renames_no_other(lake, added):
    write(SALES, "select id from raw.orders")
    write(READER, "select id from sales.rep")
    lake.lumos.lineage.ingest(".")
    before = urn_of(lake, SALES)
    write(added, "select id from raw.events")
    lake.lumos.lineage.ingest(".")
    assert urn_of(lake, SALES) == before
    assert upstream_of(lake, READER) == {before}


def test_a_name_that_fits_two_queries_is_reported_and_means_neither(lake):
    write(SALES, "select id from raw.orders")
    write(HR, "select id from raw.events")
    write(READER, "select id from rep")
    report = lake.lumos.lineage.ingest("q", "jobs")
    assert upstream_of(lake, READER).isdisjoint({urn_of(lake, SALES), urn_of(lake, HR)})
    (problem,) = report.problems
    assert near(problem.reason) == (
        f"'rep' is defined by 2 files: {HR}, {SALES}; write hr.rep or sales.rep."
    )
    write(READER, "select s.id from sales.rep s join hr.rep using (id)")
    report = lake.lumos.lineage.ingest("q", "jobs")
    assert upstream_of(lake, READER) == {urn_of(lake, SALES), urn_of(lake, HR)}
    assert report.problems == ()


def test_queries_of_an_earlier_ingest_are_found_and_distinguished(lake):
    write(SALES, "select id from raw.orders")
    lake.lumos.lineage.ingest("q")
    write(READER, "select id from rep")
    assert lake.lumos.lineage.ingest("jobs").not_found == ()
    assert upstream_of(lake, READER) == {urn_of(lake, SALES)}
    write("other/hr/rep/query.sql", "select id from raw.events")
    lake.lumos.lineage.ingest("other")
    (problem,) = lake.lumos.lineage.ingest("jobs").problems
    assert "'rep' is defined by 2 files" in problem.reason


def test_two_queries_in_one_folder_are_two_definitions(lake):
    write(SALES, "select id from raw.orders")
    write("q/sales/rep/view.sql", "select id from raw.events")
    (problem,) = lake.lumos.lineage.ingest("q").problems
    assert f"is defined in 2 files: {SALES}, q/sales/rep/view.sql" in near(problem.reason)


def test_the_longest_unique_spelling_is_suggested(lake):
    for folder in ("a/sales", "b/sales"):
        write(f"{folder}/rep/query.sql", "select id from raw.orders")
    write(READER, "select id from sales.rep")
    (problem,) = lake.lumos.lineage.ingest(".").problems
    assert problem.reason.endswith("write a.sales.rep or b.sales.rep.")


def test_a_query_creates_the_dataset_of_its_name_unless_it_reads_it(lake):
    lake.see("mart/rep", "id INT64")
    write(SALES, "select id from raw.orders")
    write("marts/orders.sql", "select id from raw.orders")
    write(READER, "select id from sales.rep")
    lake.lumos.lineage.ingest("q", "marts", "jobs")
    assert urn_of(lake, SALES) == "lumos://file/lake/mart/rep"
    assert upstream_of(lake, READER) == {"lumos://file/lake/mart/rep"}
    assert urn_of(lake, "marts/orders.sql") != ORDERS
