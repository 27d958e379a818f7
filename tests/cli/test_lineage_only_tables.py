"""Tables that SQL names and no scan has found: owners, costs, search, and what needs a scan."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lumos import Lumos
from recorded_lake import RecordedLake

MODELS = {
    "customer_360.sql": "-- Owner: analytics-team\n"
    "create table marts.customer_360 as select id, amount from orders",
    "scores.sql": "-- Owner: ml-team\n"
    "create table marts.scores as select id, sum(amount) as total from marts.customer_360 "
    "group by 1",
}
METERED = """\
dataset,started_at,ended_at,engine,quantity,unit
orders,2024-05-01T03:00:00Z,2024-05-01T04:00:00Z,spark,10,core_hour
customer_360,2024-05-01T03:00:00Z,2024-05-01T04:00:00Z,spark,20,core_hour
marts.scores,2024-05-01T03:00:00Z,2024-05-01T04:00:00Z,spark,40,core_hour
unknown_table,2024-05-01T03:00:00Z,2024-05-01T04:00:00Z,spark,80,core_hour
"""


@pytest.fixture
def models(workplace: Path) -> Path:
    """A scanned dataset, and two tables that only SQL files produce."""
    (workplace / "lumos.yaml").write_text(
        "cost_model: {currency: USD, compute: {spark: {cost_per_core_hour: 1}}}\n"
    )
    folder = workplace / "models"
    folder.mkdir()
    for name, text in MODELS.items():
        (folder / name).write_text(text)
    lumos = Lumos()
    RecordedLake(lumos).see_all(["sales/orders"], "id INT64\namount INT64")
    lumos.lineage.ingest(folder)
    return folder


@pytest.mark.usefixtures("models")
def test_metered_usage_of_such_a_table_is_its_own_cost(
    lumos: Callable[..., Any], workplace: Path
) -> None:
    (workplace / "metered.csv").write_text(METERED)
    lumos("cost", "ingest", "metered.csv")
    top = lumos("cost", "top", "--by", "own", "--period", "2024-05", "--json").json
    own = {each["name"]: each["own"] for each in top["datasets"]}
    assert own == {"orders": 10, "customer_360": 20, "scores": 40}
    assert top["beside"] == {"__unallocated__": 80}


@pytest.mark.usefixtures("models")
def test_without_usage_a_cost_report_has_no_empty_sections(lumos: Callable[..., Any]) -> None:
    report = lumos("cost", "report", "scores", "--period", "2024-05").words
    assert "Import usage with: lumos cost ingest PATH" in report
    assert "BY TEAM" not in report


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize(
    ("metered", "reason"),
    [
        ("ordrs", "no dataset or job is named ordrs (did you mean 'orders'?)."),
        ("scoress", "no dataset or job is named scoress (did you mean 'scores'?)."),
        ("xyzzy", "no dataset or job is named xyzzy."),
    ],
)
def test_metered_names_that_match_nothing_are_reported_at_once(
    lumos: Callable[..., Any], workplace: Path, metered: str, reason: str
) -> None:
    usage = METERED.replace("unknown_table", metered)
    (workplace / "metered.csv").write_text(usage)
    ingested = lumos("cost", "ingest", "metered.csv")
    assert f"Usage is unallocated: {reason}" in " ".join(ingested.err.split())
    assert "lumos lineage ingest PATH" in " ".join(ingested.err.split())
    top = lumos("cost", "top", "--period", "2024-05")
    assert f"$80.00 is unallocated: {reason}" in " ".join(top.err.split())
    (workplace / "metered.csv").write_text(usage.replace(metered, "orders", 1))
    assert "unallocated" not in lumos("cost", "ingest", "metered.csv", "--replace").err


@pytest.mark.usefixtures("models")
def test_a_metered_name_that_several_tables_have_is_reported(
    lumos: Callable[..., Any], workplace: Path
) -> None:
    RecordedLake(Lumos()).see_all(["old/orders"], "id INT64")
    (workplace / "metered.csv").write_text(METERED.replace("unknown_table", "scores"))
    ingested = lumos("cost", "ingest", "metered.csv")
    assert "Usage is unallocated: several are named orders." in " ".join(ingested.err.split())


@pytest.mark.usefixtures("models")
def test_its_owner_is_the_team_that_pays(lumos: Callable[..., Any], workplace: Path) -> None:
    (workplace / "metered.csv").write_text(METERED)
    lumos("cost", "ingest", "metered.csv")
    by_team = lumos("cost", "by", "team", "--period", "2024-05", "--json").json
    own = {each["name"]: each["own"] for each in by_team["groups"]}
    assert own == {"(no owner)": 10, "analytics-team": 20, "ml-team": 40}
    savings = lumos("cost", "savings", "customer_360", "--period", "2024-05", "--json").json
    assert [each["owners"] for each in savings["broken"]] == [["ml-team"]]


@pytest.mark.usefixtures("models")
def test_its_owner_can_own_other_datasets(lumos: Callable[..., Any]) -> None:
    lumos("owner", "assign", "orders", "analytics-team")
    shown = lumos("owner", "show", "analytics-team")
    assert "kind group" in shown.words
    assert "orders TECHNICAL_OWNER" in shown.words


@pytest.mark.usefixtures("models")
def test_owners_of_such_tables_are_listed(lumos: Callable[..., Any]) -> None:
    assert "ml-team group 1 TECHNICAL_OWNER" in lumos("owner", "list").words
    assert "scores TECHNICAL_OWNER" in lumos("owner", "show", "ml-team").words


@pytest.mark.usefixtures("models")
def test_its_owner_is_shown_in_its_lineage(lumos: Callable[..., Any]) -> None:
    tree = lumos("lineage", "show", "orders").words
    assert "owner analytics-team · not scanned" in tree
    assert "owner ml-team · not scanned" in tree
    assert lumos("lineage", "show", "scores").words.startswith("scores owner ml-team · not scanned")
    shown = lumos("lineage", "show", "scores", "--json").json
    owners = {each["name"]: each.get("owners", []) for each in shown["nodes"]}
    assert owners == {"orders": [], "customer_360": ["analytics-team"], "scores": ["ml-team"]}


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize(
    "words", [("ml-team",), ("ML",), ("scores ml",), ("score", "--owner", "ML-Team")]
)
def test_a_search_finds_it_by_its_owner(lumos: Callable[..., Any], words: tuple[str, ...]) -> None:
    assert "scores (ml-team) is known from lineage only" in lumos("search", *words).out
    found = lumos("search", *words, "--json").json
    assert found["lineage_only"] == ["lumos://sql/marts/scores"]
    assert found["lineage_only_owners"] == {"lumos://sql/marts/scores": ["ml-team"]}


@pytest.mark.usefixtures("models")
def test_a_list_of_names_ignores_owners(lumos: Callable[..., Any]) -> None:
    assert lumos("list", "ml-team", "--lineage-only", "--json").json["lineage_only"] == []


@pytest.mark.usefixtures("models")
def test_a_migration_says_which_lineage_it_leaves_out(lumos: Callable[..., Any]) -> None:
    done = lumos("migrate", "local", "datahub-file:out.json", "--certificate", "c.json")
    assert "[warn] 2 lineage edges from or to tables that only SQL mentions" in done.out
    certificate = json.loads(Path("c.json").read_text())
    assert not certificate["is_whole"]
    assert certificate["exceptions"][0]["key"] == "lineage"


@pytest.mark.usefixtures("models")
def test_an_annotation_needs_a_scan(lumos: Callable[..., Any]) -> None:
    done = lumos("tag", "add", "customer_360", "pii")
    assert done.code == 2
    assert "customer_360 is known from lineage only" in done.err
    assert "lumos ingest PATH" in done.err


@pytest.mark.usefixtures("models")
def test_a_search_points_to_it(lumos: Callable[..., Any]) -> None:
    done = lumos("search", "customer_360")
    assert "customer_360 (analytics-team) is known from lineage only" in done.out
    assert "lumos show customer_360" in done.out
    found = lumos("search", "customer_360", "--json").json
    assert found["lineage_only"] == ["lumos://sql/marts/customer_360"]


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize("text", ["360", "marts cust", "marts.customer", "CUSTOMER"])
def test_a_search_finds_it_by_words(lumos: Callable[..., Any], text: str) -> None:
    found = lumos("search", text, "--json").json
    assert found["lineage_only"] == ["lumos://sql/marts/customer_360"]


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize("text", ["sql", "customer%360", "nightly", "order", " ", "."])
def test_a_search_ignores_platforms_wildcards_and_scanned_datasets(
    lumos: Callable[..., Any], text: str
) -> None:
    Lumos().lineage.add("orders", "scores", job="lumos://airflow/nightly")
    assert lumos("search", text, "--json").json["lineage_only"] == []


@pytest.mark.usefixtures("models")
def test_it_is_found_next_to_scanned_datasets(lumos: Callable[..., Any]) -> None:
    RecordedLake(Lumos()).see_all(["sales/scores_old"], "id INT64")
    found = lumos("search", "scores")
    assert "1 dataset" in found.out
    assert "scores (ml-team) is known from lineage only" in found.out
    assert lumos("search", "scores", "--format", "parquet", "--json").json["lineage_only"] == []


@pytest.mark.usefixtures("models")
def test_a_list_counts_and_lists_such_tables(lumos: Callable[..., Any]) -> None:
    listed = lumos("list")
    assert "2 more tables are known from lineage only: lumos list --lineage-only" in listed.out
    assert "1 more table is known" in lumos("list", "scores").out
    assert "more table" not in lumos("list", "orders").out
    assert lumos("list", "--json").json["lineage_only_count"] == 2
    tables = lumos("list", "--lineage-only")
    assert "customer_360 lumos://sql/marts/customer_360" in tables.words
    assert "orders" not in tables.words
    only = lumos("list", "--lineage-only", "--limit", "1", "--json").json
    assert only["lineage_only"] == ["lumos://sql/marts/customer_360"]
    assert lumos("list", "--lineage-only", "--format", "csv").code == 2


@pytest.mark.usefixtures("models")
def test_an_export_warns_of_lineage_that_it_leaves_out(lumos: Callable[..., Any]) -> None:
    done = lumos("export", "all.json")
    assert "[warn] 0 of 2 lineage edges" in done.out
    assert "Left out: 2 lineage edges" in done.out


@pytest.mark.usefixtures("models")
def test_a_path_leads_from_dataset_to_dataset(lumos: Callable[..., Any]) -> None:
    done = lumos("lineage", "path", "orders", "scores")
    assert "1 path from orders to scores 1. 2 steps orders -> customer_360" in done.words
    found = lumos("lineage", "path", "orders", "scores", "--json").json
    assert [step["downstream"] for step in found["paths"][0]] == [
        "lumos://sql/marts/customer_360",
        "lumos://sql/marts/scores",
    ]
    swapped = lumos("lineage", "path", "scores", "orders")
    assert swapped.code == 3
    assert "Data flows the other way: lumos lineage path orders scores" in swapped.out
    mixed = lumos("lineage", "path", "orders.id", "scores")
    assert mixed.code == 2
    assert "Name a column of scores" in mixed.err


@pytest.mark.usefixtures("models")
def test_a_break_is_shown_where_the_column_is_selected(lumos: Callable[..., Any]) -> None:
    found = lumos("impact", "orders", "--drop", "id", "--json").json
    reasons = {each["urn"]: each["reasons"] for each in found["downstream"]}
    assert reasons["lumos://sql/marts/scores"][0]["usage"] == "PROJECTION"


def test_an_unknown_dialect_is_named_as_the_cause(
    lumos: Callable[..., Any], workplace: Path
) -> None:
    RecordedLake(Lumos()).see_all(["sales/orders"], "amount DECIMAL(10,2)")
    (workplace / "m.sql").write_text("create table m as select sum(amount) as s from orders")
    change = ("impact", "orders", "--change", "amount: DECIMAL(10,2) -> DECIMAL(12,2)")
    lumos("lineage", "ingest", "m.sql")
    assert "the SQL dialect of 1 undetermined dataset is not known" in lumos(*change).err
    lumos("lineage", "ingest", "m.sql", "--dialect", "spark")
    assert "dialect" not in lumos(*change).err
