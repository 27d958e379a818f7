"""Statements that cannot be parsed make what they write undetermined in `lumos impact`."""

from pathlib import Path

import pytest

from lineage.dbt.dbt_projects import ORDERS as ORDERS_MODEL
from lineage.dbt.dbt_projects import manifest, write_project
from lumos import Lumos
from lumos.impact.reports import ImpactReport
from recorded_lake import RecordedLake

ORDERS = "lumos://file/lake/raw/orders"


@pytest.fixture
def files(seen: RecordedLake, workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(workplace)
    seen.see("raw/orders", "id INT64\namount FLOAT64")
    folder = workplace / "sql"
    folder.mkdir()
    (folder / "good.sql").write_text("create table good as select amount from raw.orders")
    return folder


def impact(lumos: Lumos) -> ImpactReport:
    """What it does to drop the column `id`, once all files are ingested."""
    lumos.lineage.ingest("sql", dialect="duckdb", accept_removals=True)
    return lumos.impact.of(ORDERS, drop=["id"])


def verdicts(report: ImpactReport) -> dict[str, str]:
    return {row.urn.rpartition("/")[2]: row.verdict for row in report.downstream}


def test_what_an_unparsed_statement_makes_is_undetermined(seen: RecordedLake, files: Path) -> None:
    (files / "bad.sql").write_text("create table bad as\nselect id x y from raw.orders")
    (files / "late.sql").write_text("create table late as select * from bad")
    report = impact(seen.lumos)
    assert verdicts(report) == {
        "good": "COMPATIBLE", "bad": "UNDETERMINED", "late": "UNDETERMINED",
    }  # fmt: skip
    assert report.coverage == pytest.approx(1 / 3)
    assert [(each.line, len(each.datasets)) for each in report.unparsed] == [(1, 1)]
    (remark,) = report.remarks
    assert "sql/bad.sql:1" in remark


def test_an_unparsed_statement_outweighs_a_parsed_one_that_makes_the_same(
    seen: RecordedLake, files: Path
) -> None:
    (files / "more.sql").write_text("insert into good select amount a b from raw.orders")
    report = impact(seen.lumos)
    assert verdicts(report) == {"good": "UNDETERMINED"}
    assert report.coverage == 0


def test_an_unparsed_statement_that_makes_nothing_known_lowers_the_coverage(
    seen: RecordedLake, files: Path
) -> None:
    (files / "bad.sql").write_text("selec id from raw.orders")
    report = impact(seen.lumos)
    assert verdicts(report) == {"good": "COMPATIBLE"}
    assert report.coverage == pytest.approx(1 / 2)
    (remark,) = report.remarks
    assert "sql/bad.sql:1" in remark


@pytest.mark.parametrize(
    "sql",
    [
        "create table bad as select a b c from x where a in (table raw.orders)",
        "create table bad as select a b c from (pivot raw.orders on a using sum(b))",
        "create table bad as select a b c from identifier('raw.orders')",
        "with q as (table raw.orders) select a b c from q",
        "create table bad as select a b c from x union table raw.orders",
        "create table bad as select a b c from x summon raw.orders",
    ],
)
def test_a_table_that_an_unparsed_statement_names_in_any_way_may_be_read(
    seen: RecordedLake, files: Path, sql: str
) -> None:
    (files / "bad.sql").write_text(sql)
    report = impact(seen.lumos)
    assert verdicts(report)["good"] == "COMPATIBLE"
    assert report.coverage == pytest.approx(1 / 2)
    (remark,) = report.remarks
    assert "sql/bad.sql:1" in remark


def test_names_in_an_unparsed_statement_that_no_dataset_has_mean_nothing(
    seen: RecordedLake, files: Path
) -> None:
    (files / "bad.sql").write_text("create table bad as select id x y from other")
    report = impact(seen.lumos)
    assert verdicts(report) == {"good": "COMPATIBLE"}
    assert (report.coverage, report.remarks) == (1, ())


def test_a_query_that_another_dialect_parses_is_determined(seen: RecordedLake, files: Path) -> None:
    (files / "named.sql").write_text("select id as `the id` from raw.orders")
    report = impact(seen.lumos)
    assert verdicts(report) == {"good": "COMPATIBLE", "named": "BREAKING"}
    assert (report.coverage, report.remarks) == (1, ())


def test_an_unparsed_statement_that_reads_other_tables_does_not_count(
    seen: RecordedLake, files: Path
) -> None:
    (files / "bad.sql").write_text("create table bad as select id x y from others")
    report = impact(seen.lumos)
    assert (report.coverage, report.remarks) == (1, ())


def test_words_that_no_dataset_can_be_called_do_no_harm(seen: RecordedLake, files: Path) -> None:
    (files / "bad.sql").write_text('selec from ` [ x://y/z `, raw.orders, "a/../b"')
    report = impact(seen.lumos)
    assert len(report.unparsed) == 1


def test_a_dbt_model_that_cannot_be_parsed_is_undetermined(seen: RecordedLake, files: Path) -> None:
    del files
    model = ORDERS_MODEL | {"compiled_code": 'select amount x y from "shop"."raw"."orders"'}
    project = manifest()
    project["nodes"]["model.shop.orders"] = model
    seen.lumos.lineage.ingest(write_project(Path("target"), manifest=project))
    report = seen.lumos.impact.of("lumos://postgres/shop/raw/orders", drop=["id"])
    assert verdicts(report)["orders"] == "UNDETERMINED"
    assert any("orders.sql" in remark for remark in report.remarks)


def test_unparsed_statements_go_with_their_file_and_when_they_can_be_parsed(
    seen: RecordedLake, files: Path
) -> None:
    (files / "gone.sql").write_text("selec id from raw.orders")
    (files / "mended.sql").write_text("selec id from raw.orders")
    assert len(impact(seen.lumos).unparsed) == 2
    (files / "gone.sql").unlink()
    (files / "mended.sql").write_text("select id from raw.orders")
    assert impact(seen.lumos).unparsed == ()
    assert verdicts(impact(seen.lumos)) == {"good": "COMPATIBLE", "mended": "BREAKING"}


def test_a_model_that_was_parsed_before_is_undetermined_once_it_is_not(
    seen: RecordedLake, files: Path
) -> None:
    (files / "bad.sql").write_text("create table bad as select amount from raw.orders")
    assert verdicts(impact(seen.lumos)) == {"good": "COMPATIBLE", "bad": "COMPATIBLE"}
    (files / "bad.sql").write_text("create table bad as select amount x y from raw.orders")
    assert verdicts(impact(seen.lumos)) == {"good": "COMPATIBLE", "bad": "UNDETERMINED"}


def test_a_condition_that_reads_what_changes_lowers_the_coverage(
    seen: RecordedLake, files: Path
) -> None:
    text = "begin if exists (select id from raw.orders) then delete from other; end if; end"
    (files / "guarded.sql").write_text(text)
    report = impact(seen.lumos)
    assert verdicts(report) == {"good": "COMPATIBLE"}
    assert report.coverage == pytest.approx(1 / 2)
    (remark,) = report.remarks
    assert "sql/guarded.sql:1" in remark
