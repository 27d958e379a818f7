"""dbt artefacts become one report of a project."""

import pytest

from lineage.dbt.dbt_projects import (
    ORDERS,
    TOTALS,
    manifest,
    node,
    write_project,
)
from lumos.annotations.owner_names import OwnerOfUnknownKind
from lumos.lineage.dbt import (
    DbtRelations,
    UnreadableManifest,
    model_queries,
    read_project,
    report_project,
)
from lumos.lineage.reported_lineage import ReportedEdge, ReportedLineage, TableName
from lumos.model.dataset import Owner


def table(*parts: str, platform: str = "postgres") -> TableName:
    return TableName(parts=parts, platform=platform)


SOURCE = table("shop", "raw", "orders")
MODEL = table("shop", "analytics", "orders")
VIEW = table("shop", "analytics", "totals")


def reported(folder, **artefacts) -> ReportedLineage:
    artefacts.setdefault("manifest", manifest())
    return report_project(read_project(write_project(folder, **artefacts)), {})


def test_without_sql_dependencies_are_edges_and_ephemeral_models_no_end_points(tmp_path):
    found = reported(tmp_path)
    ends = {(edge.upstream, edge.downstream) for edge in found.edges}
    assert found.reporter == "dbt:shop"
    assert ends == {
        (SOURCE, MODEL),
        (MODEL, VIEW),
        (table("shop", "seeds", "rates"), VIEW),
    }
    assert all(edge.confidence == 1 for edge in found.edges)


def test_what_sql_shows_goes_before_what_dbt_only_says(tmp_path):
    project = read_project(write_project(tmp_path, manifest=manifest()))
    shown = ReportedLineage(
        reporter="dbt:shop", edges=(ReportedEdge(upstream=MODEL, downstream=VIEW, type="VIEW"),)
    )
    edges = report_project(project, {"model.shop.totals": shown}).edges
    to_view = {
        edge.upstream: (edge.type, edge.confidence, edge.job)
        for edge in edges
        if edge.downstream == VIEW
    }
    job = "lumos://dbt/shop/totals"
    assert to_view == {
        MODEL: ("VIEW", 1.0, job),
        table("shop", "seeds", "rates"): ("TRANSFORMED", 0.5, job),
    }


def test_compiled_sql_makes_the_table_or_view_of_its_model(tmp_path):
    project = read_project(write_project(tmp_path, manifest=manifest()))
    models = {each.key: each for each in model_queries(project, DbtRelations(project))}
    assert models.keys() == {"model.shop.orders", "model.shop.totals"}
    assert models["model.shop.orders"].text.startswith(
        'CREATE TABLE "shop"."analytics"."orders" AS with'
    )
    assert models["model.shop.totals"].text.startswith(
        'CREATE VIEW "shop"."analytics"."totals" AS -- Totals'
    )
    assert models["model.shop.totals"].file == "models/totals.sql"


def test_where_jinja_moves_lines_the_compiled_file_is_named(tmp_path):
    longer = {**ORDERS, "raw_code": "{% if a %}\nselect 1\n{% endif %}\n"}
    project = read_project(
        write_project(tmp_path, manifest=manifest(nodes={"model.shop.orders": longer}))
    )
    (model,) = model_queries(project, DbtRelations(project))
    assert model.file == "compiled/shop/models/orders.sql"


@pytest.mark.parametrize(
    ("raw", "compiled", "is_own"),
    [
        ("-- x\nselect id from {{ ref('a') }}", '-- x\nselect id from "a"', True),
        ("{{ config() }}\nselect 1 as id", "\nselect 1 as id", True),
        (
            "select id\nfrom {{ ref('stg') }}",
            "with __dbt__cte__stg as (\nselect 1 as id) select id from __dbt__cte__stg",
            False,
        ),
        ("{% if a %}\nselect id\n{% endif %}\n", "select id\n\n\n", False),
    ],
)
def test_a_model_is_placed_in_its_own_file_only_where_its_lines_stand_there(
    tmp_path, raw, compiled, is_own
):
    node = {**ORDERS, "raw_code": raw, "compiled_code": compiled}
    project = read_project(
        write_project(tmp_path, manifest=manifest(nodes={"model.shop.orders": node}))
    )
    (model,) = model_queries(project, DbtRelations(project))
    assert model.file == f"{'' if is_own else 'compiled/shop/'}models/orders.sql"


def test_columns_come_from_the_catalog_in_their_order(tmp_path):
    project = read_project(write_project(tmp_path, manifest=manifest()))
    assert list(DbtRelations(project).columns()[SOURCE.parts].items()) == [
        ("id", "bigint"), ("amount", "numeric"), ("country", "text"),
    ]  # fmt: skip


def test_models_keep_their_runs(tmp_path):
    jobs = {job.name: job for job in reported(tmp_path).jobs}
    (run,) = jobs["model.shop.orders"].runs
    assert (run.run_id, run.state, run.started_at.minute, run.ended_at.minute) == (
        "inv-1",
        "COMPLETE",
        1,
        3,
    )
    (failed,) = jobs["model.shop.totals"].runs
    assert (failed.state, failed.started_at.minute, failed.ended_at) == ("FAILED", 10, None)
    assert jobs["seed.shop.rates"].runs == ()
    assert "test.shop.not_null_orders_id" not in jobs


def test_docs_owners_tags_and_slas_are_reported(tmp_path):
    descriptions = {each.dataset: each for each in reported(tmp_path).annotations}
    orders, view, source = descriptions[MODEL], descriptions[VIEW], descriptions[SOURCE]
    assert orders.description == "One row for each order"
    assert orders.owners == (OwnerOfUnknownKind(name="sales-team"),)
    assert (orders.tags, orders.properties) == (("tier-1",), {"sla": "daily by 6am UTC"})
    assert (orders.columns, orders.column_tags) == ({"amount": "In euros"}, {"amount": ("money",)})
    assert (view.description, view.properties) == ("Totals of all customers", {"sla": "hourly"})
    assert view.owners == (Owner(name="finance", kind="group"), Owner(name="finance@example.com"))
    assert source.columns == {"id": "The key", "country": "Two letters"}
    assert source.column_tags == {"id": ("key",)}


@pytest.mark.parametrize(
    "owner",
    [
        "jane@example.com",
        ["jane@example.com"],
        {"name": "jane@example.com"},
        {"email": "jane@example.com"},
    ],
)
def test_an_owner_may_be_written_in_several_ways(tmp_path, owner):
    owned = {**TOTALS, "group": None, "config": {"materialized": "view", "meta": {"owner": owner}}}
    descriptions = reported(
        tmp_path, manifest=manifest(nodes={"model.shop.totals": owned})
    ).annotations
    assert descriptions[0].owners == (Owner(name="jane@example.com"),)


@pytest.mark.parametrize(
    ("left_out", "words"),
    [({"catalog": None}, "no catalog.json"), ({"run_results": None}, "no run_results.json")],
)
def test_half_a_project_is_a_remark(tmp_path, left_out, words):
    found = reported(tmp_path, **left_out)
    (remark,) = found.problems
    assert (remark.severity, words in remark.reason) == ("remark", True)
    assert len(found.edges) == 3


def test_models_without_compiled_sql_are_one_remark(tmp_path):
    nodes = manifest()["nodes"]
    bare = {key: {**each, "compiled_code": None} for key, each in nodes.items()}
    (remark,) = reported(tmp_path, manifest=manifest(nodes=bare)).problems
    assert "dbt compile" in remark.reason


def test_compiled_sql_is_read_from_its_file_where_the_manifest_has_none(tmp_path):
    file = tmp_path / "compiled/shop/models/orders.sql"
    file.parent.mkdir(parents=True)
    file.write_text("select 1 as id")
    bare = {**ORDERS, "compiled_code": None}
    project = read_project(
        write_project(tmp_path, manifest=manifest(nodes={"model.shop.orders": bare}))
    )
    (model,) = model_queries(project, DbtRelations(project))
    assert model.text.endswith("AS select 1 as id")


def test_a_manifest_does_not_reach_outside_its_folder(tmp_path):
    (tmp_path / "secret.sql").write_text("select 1")
    reaching = {**ORDERS, "compiled_code": None, "original_file_path": "../../../secret.sql"}
    project = read_project(
        write_project(tmp_path / "target", manifest=manifest(nodes={"model.shop.orders": reaching}))
    )
    assert list(model_queries(project, DbtRelations(project))) == []


@pytest.mark.parametrize(
    ("version", "remarks"), [("v4", 0), ("v7", 0), ("v12", 0), ("v1", 1), ("v13", 1)]
)
def test_older_and_newer_manifests_are_read_as_far_as_possible(tmp_path, version, remarks):
    older = {
        key: {
            **each,
            "compiled_sql": each.get("compiled_code"),
            "raw_sql": each.get("raw_code"),
            "compiled_code": None,
        }
        for key, each in manifest()["nodes"].items()
    }
    metadata = {
        "dbt_schema_version": f"https://schemas.getdbt.com/dbt/manifest/{version}.json",
        "adapter_type": "postgres",
    }
    project = read_project(
        write_project(tmp_path, manifest=manifest(nodes=older, metadata=metadata))
    )
    assert len(project.problems) == remarks
    assert project.name == "shop"
    assert len(list(model_queries(project, DbtRelations(project)))) == 2


def test_a_broken_node_is_named_and_the_others_stay(tmp_path):
    nodes = {**manifest()["nodes"], "model.shop.odd": {"name": 7}}
    found = reported(tmp_path, manifest=manifest(nodes=nodes))
    (problem,) = found.problems
    assert "model.shop.odd" in problem.reason
    assert len(found.edges) == 3


def test_names_meet_whatever_their_case_in_snowflake(tmp_path):
    upper = node("orders", relation_name="SHOP.ANALYTICS.ORDERS")
    quoted = node("totals", relation_name='"SHOP"."ANALYTICS"."Totals"')
    project = read_project(
        write_project(
            tmp_path,
            manifest=manifest(
                metadata={"dbt_schema_version": "/manifest/v12.json", "adapter_type": "snowflake"},
                nodes={each["unique_id"]: each for each in (upper, quoted)},
            ),
        )
    )
    relations = DbtRelations(project)
    assert relations.table("model.shop.orders") == table(
        "shop", "analytics", "orders", platform="snowflake"
    )
    assert relations.table("model.shop.totals") == table(
        "shop", "analytics", "Totals", platform="snowflake"
    )


@pytest.mark.parametrize("content", ["", "{", "[]", "null"])
def test_a_file_that_is_no_manifest_is_refused(tmp_path, content):
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(UnreadableManifest):
        read_project(tmp_path / "manifest.json")


@pytest.mark.parametrize("folder", ["shop/target", "shop"])
def test_a_project_without_models_is_named_after_its_folder(tmp_path, folder):
    nameless = {"dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v7.json"}
    project = read_project(
        write_project(tmp_path / folder, manifest=manifest(nodes={}, metadata=nameless))
    )
    assert project.name == "shop"
