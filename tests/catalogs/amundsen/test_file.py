"""Folders of CSV files: databuilder's layout, edits, interrupted writes, and migrations."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from catalogs.sample_inventory import CUSTOMERS, ORDERS, items, rich
from lumos import Lumos, plugins
from lumos.catalogs.amundsen.file_platform import AmundsenFile
from lumos.errors import CatalogError, MisuseError
from lumos.model.catalog import CatalogEntity, CatalogEntry, User, entity_urn
from lumos.model.dataset import (
    ColumnStatistics,
    Documentation,
    Governance,
    Location,
    Owner,
    Ownership,
    Statistics,
    UpstreamEdge,
)
from lumos.model.lineage import ColumnMapping
from lumos.model.schema import Field, Schema
from lumos.model.types import INT64, Unknown
from snapshots.stores import fill

HIVE_ORDERS = "hive://gold.core/orders"


def write_csv(path: Path, *rows: dict[str, object]) -> None:
    """Write rows as databuilder's FsNeo4jCSVLoader does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf8") as file:
        writer = csv.DictWriter(file, rows[0], quoting=csv.QUOTE_NONNUMERIC)
        writer.writeheader()
        writer.writerows(rows)


def rows_in(folder: Path) -> list[dict[str, str]]:
    return [
        row
        for path in sorted(folder.glob("*.csv"))
        for row in csv.DictReader(path.open(encoding="utf8", newline=""))
    ]


def related(
    start: tuple[str, str], end: tuple[str, str], *types: str, **more: object
) -> dict[str, object]:
    names = ("START_LABEL", "START_KEY", "END_LABEL", "END_KEY", "TYPE", "REVERSE_TYPE")
    return dict(zip(names, (*start, *end, *types), strict=True)) | more


@pytest.fixture
def databuilder_folder(tmp_path: Path) -> Path:
    """What models of databuilder write of one table, with nodes that Lumos does not know."""
    nodes, relations = tmp_path / "csv" / "nodes", tmp_path / "csv" / "relationships"
    table, column = ("Table", HIVE_ORDERS), ("Column", f"{HIVE_ORDERS}/id")
    table_row = {
        "LABEL": "Table",
        "KEY": HIVE_ORDERS,
        "name": "orders",
        "is_view:UNQUOTED": False,
        "team": "core",
    }
    write_csv(nodes / "Table_0.csv", table_row)
    write_csv(
        nodes / "Column_1.csv",
        {
            "LABEL": "Column",
            "KEY": column[1],
            "name": "id",
            "col_type": "bigint",
            "sort_order:UNQUOTED": 1,
        },
    )
    write_csv(
        nodes / "Description_2.csv",
        {
            "LABEL": "Description",
            "KEY": f"{HIVE_ORDERS}/_description",
            "description_source": "description",
            "description": "All orders",
        },
    )
    write_csv(
        nodes / "Programmatic_Description_2.csv",
        {
            "LABEL": "Programmatic_Description",
            "KEY": f"{HIVE_ORDERS}/_quality_description",
            "description_source": "quality",
            "description": "99 %",
        },
    )
    write_csv(
        nodes / "Tag_3.csv",
        {"LABEL": "Tag", "KEY": "core", "tag_type": "default"},
        {"LABEL": "Tag", "KEY": "unused", "tag_type": "default"},
    )
    write_csv(
        nodes / "Badge_4.csv",
        {"LABEL": "Badge", "KEY": "golden", "category": "table_status"},
        {"LABEL": "Badge", "KEY": "partition column", "category": "column"},
    )
    write_csv(
        nodes / "User_5.csv",
        {"LABEL": "User", "KEY": "ann@example.com", "email": "ann@example.com"},
    )
    write_csv(
        nodes / "Stat_6.csv",
        {"LABEL": "Stat", "KEY": f"{column[1]}/max/", "stat_type": "max", "stat_val": "9"},
    )
    write_csv(
        nodes / "Schema_7.csv", {"LABEL": "Schema", "KEY": "hive://gold.core", "name": "core"}
    )
    write_csv(
        nodes / "Watermark_8.csv",
        {
            "LABEL": "Watermark",
            "KEY": f"{HIVE_ORDERS}/high_watermark/",
            "partition_key": "ds",
            "partition_value": "2024-01-15",
            "create_time": "now",
        },
    )
    write_csv(
        relations / "all_9.csv",
        related(("Schema", "hive://gold.core"), table, "TABLE", "TABLE_OF"),
        related(table, column, "COLUMN", "COLUMN_OF"),
        related(
            table, ("Description", f"{HIVE_ORDERS}/_description"), "DESCRIPTION", "DESCRIPTION_OF"
        ),
        related(
            table,
            ("Programmatic_Description", f"{HIVE_ORDERS}/_quality_description"),
            "DESCRIPTION",
            "DESCRIPTION_OF",
        ),
        related(table, ("Tag", "core"), "TAGGED_BY", "TAG"),
        related(table, ("Badge", "golden"), "HAS_BADGE", "BADGE_FOR"),
        related(column, ("Badge", "partition column"), "HAS_BADGE", "BADGE_FOR"),
        related(("User", "ann@example.com"), table, "OWNER_OF", "OWNER"),
        related(("Stat", f"{column[1]}/max/"), column, "STAT_OF", "STAT"),
        related(
            ("Watermark", f"{HIVE_ORDERS}/high_watermark/"), table, "BELONG_TO_TABLE", "WATERMARK"
        ),
    )
    write_csv(
        relations / "reads_10.csv",
        related(table, ("User", "bob"), "READ_BY", "READ", **{"read_count:UNQUOTED": 7}),
    )
    return tmp_path / "csv"


def test_a_folder_of_databuilder_is_read(databuilder_folder: Path) -> None:
    (entry,) = AmundsenFile.at(str(databuilder_folder)).export()
    assert entry.urn == "lumos://hive@gold/core/orders"
    assert entry.schema == Schema(
        fields=(Field(name="id", type=Unknown("bigint"), partition=True),)
    )
    assert entry.documentation == Documentation(description="All orders")
    assert entry.properties == {"quality": "99 %"}
    assert entry.governance == Governance(tags=("core",))
    assert entry.ownership == Ownership(owners=(Owner(name="ann@example.com"),))
    assert entry.usage is not None
    assert [(reader.name, reader.reads) for reader in entry.usage.readers] == [("bob", 7)]
    assert entry.statistics == Statistics(columns={"ds": ColumnStatistics(maximum="2024-01-15")})
    assert entry.raw == {"amundsen": {"badges": {"golden": "table_status"}}}


def test_what_lumos_does_not_know_survives_a_write(databuilder_folder: Path) -> None:
    catalog = AmundsenFile.at(str(databuilder_folder))
    (entry,) = catalog.export()
    described = msgspec.structs.replace(entry, documentation=Documentation(description="New"))
    assert catalog.put(described).changed
    assert AmundsenFile.at(str(databuilder_folder)).get(entry.urn) == described
    nodes = {(row["LABEL"], row["KEY"]): row for row in rows_in(databuilder_folder / "nodes")}
    assert nodes["Table", HIVE_ORDERS]["team"] == "core"
    assert nodes["Watermark", f"{HIVE_ORDERS}/high_watermark/"]["create_time"] == "now"
    assert nodes["Stat", f"{HIVE_ORDERS}/id/max/"]["stat_val"] == "9"
    assert ("Tag", "unused") in nodes
    types = {row["TYPE"] for row in rows_in(databuilder_folder / "relationships")}
    assert {"STAT_OF", "TABLE", "BELONG_TO_TABLE"} <= types
    catalog.erase(entry.urn)
    left = {(row["LABEL"], row["KEY"]) for row in rows_in(databuilder_folder / "nodes")}
    assert left == {("Tag", "unused")}


def test_every_relation_leads_from_a_node_to_a_node(tmp_path: Path) -> None:
    catalog = AmundsenFile.at(str(tmp_path / "csv"))
    with catalog.batch():
        for written in catalog.put_many(rich(), current={}):
            assert written.urn
        assert not list(catalog.put_items(items()))
    nodes = {(row["LABEL"], row["KEY"]) for row in rows_in(tmp_path / "csv" / "nodes")}
    relations = rows_in(tmp_path / "csv" / "relationships")
    ends = {
        (row[f"{end}_LABEL"], row[f"{end}_KEY"]) for row in relations for end in ("START", "END")
    }
    assert ends <= nodes
    assert {("Database", "database://s3"), ("Cluster", "s3://PROD"), ("Schema", "s3://PROD.data-lake.raw"),
            ("Table", "s3://PROD.data-lake.raw/orders.v2")} <= nodes  # fmt: skip
    edges = {
        (row["START_KEY"], row["END_KEY"]) for row in relations if row["TYPE"] == "HAS_DOWNSTREAM"
    }
    customers = "snowflake://eu.FINANCE/Customers"
    assert ("s3://PROD.data-lake.raw/orders.v2", customers) in edges
    assert ("s3://PROD.data-lake.raw/orders.v2/customer", f"{customers}/ID") in edges


def test_watermarks_are_the_range_of_the_partitions(tmp_path: Path) -> None:
    entry = CatalogEntry(
        urn="lumos://s3/lake/events", name="events", platform="s3",
        location=Location(uri="s3://lake/events/", partition_keys=("day",)),
        statistics=Statistics(columns={"day": ColumnStatistics(minimum="2024-01-01", maximum="2024-02-01")}),
    )  # fmt: skip
    catalog = AmundsenFile.at(str(tmp_path / "csv"))
    catalog.put(entry)
    assert AmundsenFile.at(str(tmp_path / "csv")).get(entry.urn) == entry
    marks = {
        row["KEY"].split("/")[-2]: row["partition_value"]
        for row in rows_in(tmp_path / "csv" / "nodes")
        if row["LABEL"] == "Watermark"
    }
    assert marks == {"low_watermark": "2024-01-01", "high_watermark": "2024-02-01"}


def test_edits_in_the_files_win_over_what_is_carried(tmp_path: Path) -> None:
    folder = tmp_path / "csv"
    catalog = AmundsenFile.at(str(folder))
    for entry in rich():
        catalog.put(entry)
    key = "s3://PROD.data-lake.raw/orders.v2"
    (path,) = (
        path
        for path in (folder / "nodes").glob("Description_*.csv")
        if "All orders" in path.read_text()
    )
    path.write_text(path.read_text().replace("All orders since 2019.", "By hand"))
    write_csv(
        folder / "nodes" / "Tag_99.csv", {"LABEL": "Tag", "KEY": "by-hand", "tag_type": "default"}
    )
    write_csv(
        folder / "relationships" / "Table_Tag_99.csv",
        related(("Table", key), ("Tag", "by-hand"), "TAGGED_BY", "TAG"),
    )
    before, found = rich()[0], AmundsenFile.at(str(folder)).get(ORDERS)
    assert found is not None
    assert before.documentation is not None
    assert found.documentation == msgspec.structs.replace(
        before.documentation, description="By hand"
    )
    assert found.governance is not None
    assert set(found.governance.tags) == {"PII", "tier-1", "by-hand"}
    assert (found.governance.terms, found.governance.compliance) == (("Order",), ("GDPR",))
    assert found.schema == before.schema


def test_an_edge_outlives_the_dataset_that_it_comes_from(tmp_path: Path) -> None:
    catalog = AmundsenFile.at(str(tmp_path / "csv"))
    for entry in rich():
        catalog.put(entry)
    catalog.erase(ORDERS)
    again = AmundsenFile.at(str(tmp_path / "csv"))
    assert again.get(ORDERS) is None
    assert again.get(CUSTOMERS) == rich()[1]


def test_a_dashboard_refers_to_its_tables_and_owners(tmp_path: Path) -> None:
    dashboard = CatalogEntity(
        urn=entity_urn("dashboard", "mode", "gold.finance/42"), display_name="Revenue",
        description="Weekly", owners=(Owner(name="ann@example.com"),), tags=("core",),
        references={"datasets": (CUSTOMERS,)}, properties={"dashboard_url": "https://mode.example/42"},
    )  # fmt: skip
    catalog = AmundsenFile.at(str(tmp_path / "csv"))
    catalog.put_item(dashboard)
    assert list(AmundsenFile.at(str(tmp_path / "csv")).items()) == [dashboard]
    nodes = {(row["LABEL"], row["KEY"]) for row in rows_in(tmp_path / "csv" / "nodes")}
    assert {("Dashboard", "mode_dashboard://gold.finance/42"), ("Dashboardgroup", "mode_dashboard://gold.finance"),
            ("Cluster", "mode_dashboard://gold")} <= nodes  # fmt: skip
    carried = [
        row
        for row in rows_in(tmp_path / "csv" / "nodes")
        if any(name.startswith("lumos_") for name in row)
    ]
    assert carried == []


def test_a_user_who_is_no_item_any_more_stays_an_owner(tmp_path: Path) -> None:
    catalog = AmundsenFile.at(str(tmp_path / "csv"))
    entry = CatalogEntry(
        urn="lumos://s3/lake/a",
        name="a",
        platform="s3",
        ownership=Ownership(owners=(Owner(name="ann"),)),
    )
    catalog.put(entry)
    assert list(catalog.items()) == []
    catalog.put_item(User(name="ann", display_name="Ann"))
    AmundsenFile.at(str(tmp_path / "csv")).erase_item(User(name="ann"))
    again = AmundsenFile.at(str(tmp_path / "csv"))
    assert list(again.items()) == []
    assert again.get(entry.urn) == entry


def test_a_committed_version_is_finished_by_the_next_reader(tmp_path: Path) -> None:
    folder = tmp_path / "csv"
    for entry in rich()[:2]:
        AmundsenFile.at(str(folder)).put(entry)
    # The writer died between moving nodes and relationships.
    (folder / ".committed").mkdir()
    (folder / "relationships").rename(folder / ".committed" / "relationships")
    assert AmundsenFile.at(str(folder)).get(ORDERS) == rich()[0]
    assert sorted(path.name for path in folder.iterdir()) == ["nodes", "relationships"]


def test_a_version_of_another_program_is_not_overwritten(tmp_path: Path) -> None:
    mine, theirs = (AmundsenFile.at(str(tmp_path / "csv")) for _ in range(2))
    assert mine.count() == 0
    theirs.put(rich()[0])
    with pytest.raises(CatalogError, match="changed by another program"):
        mine.put(rich()[1])
    assert AmundsenFile.at(str(tmp_path / "csv")).count() == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [("LABEL,name\nTable,x\n", "has no column KEY"), ("LABEL,KEY\nTable\n", "Table_0.csv:2: expected 2 fields"),
     ("LABEL,KEY\nTable,x,y\n", "expected 2 fields")],
)  # fmt: skip
def test_a_file_that_makes_no_sense_is_named(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "Table_0.csv").write_text(text)
    with pytest.raises(CatalogError, match=problem):
        AmundsenFile.at(str(tmp_path)).count()


def test_a_broken_carried_value_names_the_table(tmp_path: Path) -> None:
    catalog = AmundsenFile.at(str(tmp_path))
    catalog.put(
        CatalogEntry(urn="lumos://s3/lake/a", name="A", platform="s3", raw={"atlas": {"x": [1]}})
    )
    (path,) = (path for path in (tmp_path / "nodes").glob("Table_*.csv"))
    path.write_text(path.read_text().replace("atlas", "atl\\as"))
    found = AmundsenFile.at(str(tmp_path)).get("lumos://s3/lake/a")
    assert found is not None
    assert (found.name, found.raw) == ("A", {})


def test_a_folder_that_cannot_be_written_is_found_early(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CatalogError, match="is not a writable folder"):
        AmundsenFile.at(str(tmp_path / "file" / "csv")).check_writable()
    AmundsenFile.at(str(tmp_path / "new" / "csv")).check_writable()
    assert not (tmp_path / "new").exists()
    with pytest.raises(MisuseError, match="amundsen-file:csv"):
        AmundsenFile(None)


@pytest.fixture
def registered() -> Iterator[None]:
    plugins.register(plugins.PLATFORMS, AmundsenFile.kind, AmundsenFile)
    yield
    plugins.unregister(plugins.PLATFORMS, AmundsenFile.kind)


@pytest.mark.usefixtures("registered")
def test_a_migration_there_and_back_loses_nothing(workplace: Path) -> None:
    sorted_items: dict[str, Any] = {
        "glossary": items()[:1], "users": items()[1:2], "groups": items()[2:3],
        "jobs": items()[3:4], "others": items()[4:],
    }  # fmt: skip
    lumos = Lumos(overrides={"storage.path": str(workplace / "lumos.db")})
    fill(lumos, {"datasets": rich(), **sorted_items})
    assert lumos.migration.migrate("local", "amundsen-file:csv").is_whole
    assert lumos.snapshot.diff("local", "amundsen-file:csv").differences == ()
    assert len(list(AmundsenFile.at("csv").items())) == len(items())
    lumos.migration.roll_back("local", "amundsen-file:csv")
    assert [
        *rows_in(workplace / "csv" / "nodes"),
        *rows_in(workplace / "csv" / "relationships"),
    ] == []


def test_columns_of_an_edge_are_columns_of_the_graph(tmp_path: Path) -> None:
    mapping = ColumnMapping(upstream="a/b", downstream="id")
    lineage = rich()[1].lineage
    assert lineage is not None
    edge = UpstreamEdge(urn="lumos://hive@gold/core/orders", columns=(mapping,))
    entry = CatalogEntry(
        urn="lumos://s3/lake/a", name="a", platform="s3",
        schema=Schema(fields=(Field(name="id", type=INT64),)),
        lineage=msgspec.structs.replace(lineage, upstream=(edge,), downstream=()),
    )  # fmt: skip
    catalog = AmundsenFile.at(str(tmp_path))
    assert catalog.put(entry).held == {"schema": "native", "lineage": "native"}
    assert AmundsenFile.at(str(tmp_path)).get(entry.urn) == entry
    assert json.dumps(rows_in(tmp_path / "nodes")).count("lumos_") == 0


def test_nodes_that_lead_to_themselves_are_read(tmp_path: Path) -> None:
    cluster = ("Cluster", "hive://gold")
    write_csv(
        tmp_path / "nodes" / "Table_0.csv", {"LABEL": "Table", "KEY": HIVE_ORDERS, "name": "orders"}
    )
    table, schema = ("Table", HIVE_ORDERS), ("Schema", "hive://gold.core")
    write_csv(
        tmp_path / "relationships" / "all_1.csv",
        related(schema, table, "TABLE", "TABLE_OF"),
        related(cluster, schema, "SCHEMA", "SCHEMA_OF"),
        related(cluster, cluster, "CLUSTER", "CLUSTER_OF"),
        related(table, table, "HAS_DOWNSTREAM", "HAS_UPSTREAM"),
    )
    (entry,) = AmundsenFile.at(str(tmp_path)).export()
    assert entry.lineage is not None
    assert [edge.urn for edge in entry.lineage.upstream] == [entry.urn]
