"""Types of other tools and business metadata on a real Apache Atlas."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from catalogs.contract_catalogs import atlas_at
from lumos.catalogs import Filters
from lumos.catalogs.atlas.platform import Atlas
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Documentation, Governance, Lineage, UpstreamEdge
from lumos.model.lineage import ColumnMapping
from lumos.model.schema import Field, Schema
from lumos.model.types import INT64
from servers.atlas import USER, atlas_server

pytestmark = pytest.mark.slow

HIVE = "lumos://atlas/hive_table/sales.orders@prod"
REPORT = "lumos://s3/lake/report"
SOURCE = "lumos://s3/lake/source"


def _attributes(*names: str) -> list[dict[str, Any]]:
    common = {"typeName": "string", "isOptional": True, "cardinality": "SINGLE"}
    return [{"name": name, **common} for name in names]


# The part of Atlas's model of Hive that Lumos reads; the web application alone does not have it.
HIVE_TYPES = {
    "entityDefs": [
        {"name": "hive_db", "superTypes": ["DataSet"], "typeVersion": "1.0", "attributeDefs": []},
        {"name": "hive_table", "superTypes": ["DataSet"], "typeVersion": "1.0",
         "attributeDefs": _attributes("tableType", "comment")},
        {"name": "hive_column", "superTypes": ["DataSet"], "typeVersion": "1.0",
         "attributeDefs": _attributes("type", "comment")},
    ],
    "relationshipDefs": [
        # Every update of a table has to name its database.
        {"name": "hive_table_db", "typeVersion": "1.0", "propagateTags": "NONE",
         "relationshipCategory": "COMPOSITION",
         "endDef1": {"type": "hive_db", "name": "tables", "isContainer": True,
                     "cardinality": "SET"},
         "endDef2": {"type": "hive_table", "name": "db", "cardinality": "SINGLE"}},
        {"name": "hive_table_columns", "typeVersion": "1.0", "propagateTags": "NONE",
         "relationshipCategory": "COMPOSITION",
         "endDef1": {"type": "hive_table", "name": "columns", "isContainer": True,
                     "cardinality": "SET"},
         "endDef2": {"type": "hive_column", "name": "table", "cardinality": "SINGLE"}},
    ],
    "businessMetadataDefs": [
        {"name": "governance", "typeVersion": "1.0", "attributeDefs": [
            {**each, "options": {"applicableEntityTypes": '["DataSet"]', "maxStrLength": "100"}}
            for each in _attributes("steward")
        ]},
    ],
}  # fmt: skip


def written_by_hive(catalog: Atlas) -> None:
    """Write a table as the hook of Hive does."""
    call = catalog._opened.server._call
    call("POST", "v2/types/typedefs", HIVE_TYPES)
    table = {"qualifiedName": "sales.orders@prod", "name": "orders", "comment": "All orders"}
    database = {"qualifiedName": "sales@prod", "name": "sales"}
    created = call("POST", "v2/entity/bulk", {"entities": [
        {"typeName": "hive_db", "guid": "-2", "attributes": database},
        {"typeName": "hive_table", "guid": "-1", "attributes": table,
         "relationshipAttributes": {"db": {"guid": "-2", "typeName": "hive_db"}},
         "businessAttributes": {"governance": {"steward": "ada"}}},
    ]})  # fmt: skip
    owner = {"guid": created["guidAssignments"]["-1"], "typeName": "hive_table"}
    column = {"qualifiedName": "sales.orders.id@prod", "name": "id", "type": "bigint"}
    call("POST", "v2/entity/bulk", {"entities": [
        {"typeName": "hive_column", "guid": "-1", "attributes": column,
         "relationshipAttributes": {"table": owner}},
    ]})  # fmt: skip
    catalog.close()


@pytest.fixture
def catalog() -> Iterator[Atlas]:
    with atlas_server() as address:
        yield atlas_at(address)


def test_a_table_of_hive_is_read_linked_and_annotated(catalog: Atlas) -> None:
    written_by_hive(catalog)
    found = catalog.get(HIVE)
    assert found is not None
    assert found.documentation == Documentation(description="All orders")
    assert found.schema is not None
    assert [(each.name, each.type) for each in found.schema.fields] == [("id", INT64)]
    assert found.raw["atlas"]["businessAttributes"] == {"governance": {"steward": "ada"}}
    assert not catalog.put(found).changed
    mapping = ColumnMapping(upstream="id", downstream="id")
    report = CatalogEntry(
        urn=REPORT, name="report", platform="s3",
        schema=Schema(fields=(Field(name="id", type=INT64),)),
        lineage=Lineage(upstream=(UpstreamEdge(urn=HIVE, columns=(mapping,)),)),
        raw={"atlas": found.raw["atlas"]},
    )  # fmt: skip
    catalog.put(report)
    stored = catalog.get(REPORT)
    assert stored == report
    guid = catalog._opened.reader.many([REPORT])[REPORT].guid
    drawn = catalog._opened.server._call("GET", f"v2/lineage/{guid}", query={"direction": "INPUT"})
    names = {each["typeName"] for each in drawn["guidEntityMap"].values()}
    assert names == {"lumos_dataset", "lumos_process", "hive_table"}
    assert {each.urn for each in catalog.export()} == {HIVE, REPORT}
    assert [each.urn for each in catalog.search("rep", Filters(platform="s3"))] == [REPORT]
    assert not list(catalog.search("rep", Filters(platform="s3", format="csv")))
    assert stored is not None
    raw = {"atlas": {**found.raw["atlas"], "businessAttributes": {"governance": {"steward": "bo"}}}}
    catalog.put(msgspec.structs.replace(stored, raw=raw))
    changed = catalog.get(REPORT)
    assert changed is not None
    assert changed.raw == raw
    changes = list(catalog.history(REPORT))
    assert {each.author for each in changes} == {USER}
    actions = [each.action for each in changes if each.column is None]
    assert actions[-1] == "ENTITY_CREATE"
    assert "BUSINESS_ATTRIBUTE_UPDATE" in actions
    assert [each.action for each in changes if each.column == "id"][-1:] == ["ENTITY_CREATE"]
    assert found.schema is not None
    described = msgspec.structs.replace(
        found.schema.fields[0], description="Number", tags=("key",), nullable=False
    )
    mapping = ColumnMapping(upstream="id", downstream="id")
    annotated = msgspec.structs.replace(
        found,
        governance=Governance(tags=("pii",), terms=("Order",), compliance=("GDPR",)),
        documentation=Documentation(description="By Lumos", domain="sales"),
        schema=Schema(fields=(described,)),
        lineage=Lineage(upstream=(UpstreamEdge(urn=SOURCE, columns=(mapping,)),)),
        properties={"text": "long " * 50_000},
    )
    source = msgspec.structs.replace(report, urn=SOURCE, lineage=None, raw={})
    catalog.put(source)
    assert catalog.put(annotated).changed
    assert catalog.get(HIVE) == annotated
    assert not catalog.put(annotated).changed
    assert catalog._opened.reader.versions([HIVE]) == {}
    guid = catalog._opened.reader.many([HIVE])[HIVE].guid
    drawn = catalog._opened.server._call("GET", f"v2/lineage/{guid}", query={"direction": "INPUT"})
    names = {each["typeName"] for each in drawn["guidEntityMap"].values()}
    assert names == {"lumos_dataset", "lumos_process", "hive_table"}
    catalog.put(found)
    assert catalog.get(HIVE) == found
    catalog.put(annotated)
    catalog.erase(HIVE)
    erased = catalog.get(HIVE)
    assert erased is not None
    assert (erased.lineage, erased.properties, erased.governance) == (
        None, None, annotated.governance,
    )  # fmt: skip
