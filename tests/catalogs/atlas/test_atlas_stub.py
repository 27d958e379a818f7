"""What people and other tools do in Atlas is kept; here in a stub of its server."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from catalogs.servers import atlas as stub
from catalogs.servers.http import Answer, Request, Server
from catalogs.strategies import entries
from examples import examples
from lumos import Lumos
from lumos.catalogs import FailedEntry, Filters, WrittenEntry
from lumos.catalogs.atlas import server as server_module
from lumos.catalogs.atlas import types
from lumos.catalogs.atlas.platform import Atlas
from lumos.config.platforms import AtlasPlatform
from lumos.config.secret import Secret
from lumos.errors import CatalogRefused, CatalogTooOld, CatalogUnavailable, MisuseError
from lumos.model.catalog import CatalogEntry, GlossaryTerm
from lumos.model.dataset import Documentation, Governance, Lineage, UpstreamEdge
from lumos.model.lineage import ColumnMapping
from lumos.model.schema import Field, Schema
from lumos.model.types import INT64, STRING

A, B = "lumos://s3/lake/a", "lumos://s3/lake/b"
SCHEMA = Schema(
    fields=(Field(name="id", type=INT64, tags=("key",)), Field(name="old", type=STRING))
)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(stub.Atlas()) as server:
        yield server


@pytest.fixture
def atlas(server: Server) -> stub.Atlas:
    assert isinstance(server.application, stub.Atlas)
    return server.application


@pytest.fixture
def catalog(server: Server) -> Atlas:
    return opened(server)


def opened(server: Server, **settings: Any) -> Atlas:
    login = {"user": stub.USER, "password": Secret(stub.PASSWORD), **settings}
    return Atlas(AtlasPlatform(server=server.address, **login))


def entry(urn: str = A, **aspects: Any) -> CatalogEntry:
    return CatalogEntry(urn=urn, name=urn[-1], platform="s3", **aspects)


def columns(atlas: stub.Atlas) -> dict[str, str]:
    some = [each for each in atlas.entities.values() if each.type == "lumos_column"]
    return {each.attributes["name"]: each.status for each in some}


def test_a_text_that_somebody_typed_is_shown_until_lumos_is_asked_to_replace_it(
    catalog: Atlas, atlas: stub.Atlas
) -> None:
    base = entry(documentation=Documentation(description="Scanned"))
    catalog.write(base)
    atlas.named("/a").attributes["userDescription"] = "By hand"
    found = catalog.get(A)
    assert found is not None
    assert found.documentation == Documentation(description="By hand")
    catalog.write(base, base=base)
    assert atlas.named("/a").attributes["userDescription"] == "By hand"
    catalog.put(base)
    assert atlas.named("/a").attributes["userDescription"] is None
    assert catalog.get(A) == base


def test_how_a_classification_propagates_is_kept(catalog: Atlas, atlas: stub.Atlas) -> None:
    catalog.put(entry(governance=Governance(tags=("PII", "tier-1")), schema=SCHEMA))
    held = atlas.named("/a")
    assert [each["propagate"] for each in held.classifications] == [False, False]
    special = {"typeName": "PII", "propagate": True, "attributes": {"level": 3}}
    held.classifications = [
        {**special, "entityGuid": held.guid, "removePropagationsOnEntityDelete": False},
        {"typeName": "Inherited", "entityGuid": "that of another entity", "propagate": True},
    ]
    found = catalog.get(A)
    assert found is not None
    # What an upstream dataset passes on belongs to that dataset.
    assert found.governance == Governance(tags=("PII",))
    assert found.raw == {"atlas": {"classifications": [special]}}
    more = msgspec.structs.replace(found, governance=Governance(tags=("PII", "new")))
    catalog.put(more)
    assert {each["typeName"]: each["propagate"] for each in held.classifications} == {
        "PII": True, "new": False,
    }  # fmt: skip
    assert catalog.get(A) == more


def test_labels_terms_and_custom_attributes_of_people_are_kept(
    catalog: Atlas, atlas: stub.Atlas
) -> None:
    base = entry(governance=Governance(compliance=("GDPR",)))
    catalog.write(base)
    held = atlas.named("/a")
    held.labels = ["GDPR", "by-hand"]
    held.custom = {"room": "4"}
    catalog.write(entry(governance=Governance(compliance=("SOX",))), base=base)
    assert sorted(held.labels) == ["SOX", "by-hand"]
    assert held.custom == {"room": "4"}


def test_columns_that_are_gone_are_deleted_and_others_only_changed_where_they_differ(
    catalog: Atlas, atlas: stub.Atlas, server: Server
) -> None:
    catalog.put(entry(schema=SCHEMA))
    server.forget()
    described = Field(name="id", type=INT64, tags=("key",), description="Number")
    catalog.put(entry(schema=Schema(fields=(described,))))
    assert columns(atlas) == {"id": "ACTIVE", "old": "DELETED"}
    [post] = [each for each in server.requests if each.target.endswith("v2/entity/bulk")]
    [column] = [each for each in post.json["entities"] if each["typeName"] == "lumos_column"]
    assert column["attributes"].keys() == {"qualifiedName", "name", "description"}
    # A column may come back, and is another one.
    catalog.put(entry(schema=SCHEMA))
    assert opened(server).get(A) == entry(schema=SCHEMA)


def test_lineage_is_drawn_with_columns_and_placeholders(catalog: Atlas, atlas: stub.Atlas) -> None:
    mapping = ColumnMapping(upstream="id", downstream="id")
    edges = (UpstreamEdge(urn=A, columns=(mapping,)), UpstreamEdge(urn="lumos://kafka/t"))
    entries = [entry(A, schema=SCHEMA), entry(B, schema=SCHEMA, lineage=Lineage(upstream=edges))]
    assert all(isinstance(each, WrittenEntry) for each in catalog.put_many(entries, current={}))
    drawn = {
        (
            relation.name,
            *(atlas.entities[guid].attributes["qualifiedName"] for guid in relation.ends),
        )
        for some in atlas.relations.values()
        for relation in some
        if "process" in relation.name
    }
    assert drawn == {
        ("dataset_process_inputs", f"{B}#lineage", A),
        ("dataset_process_inputs", f"{B}#lineage", "lumos://kafka/t"),
        ("process_dataset_outputs", f"{B}#lineage", B),
        ("dataset_process_inputs", f"{B}#id#lineage", f"{A}#id"),
        ("process_dataset_outputs", f"{B}#id#lineage", f"{B}#id"),
    }
    assert [each.urn for each in catalog.export()] == [A, B]
    # Without its upstream the dataset keeps its edge, and gets it drawn again.
    catalog.erase(A)
    assert catalog.get(B) == entries[1]
    catalog.put(entries[0])
    catalog.delete(A)
    catalog.put(entries[0])
    [process] = [each for each in atlas.entities.values()
                 if each.attributes["qualifiedName"] == f"{B}#lineage"]  # fmt: skip
    active = {
        each.ends[1] for each in atlas.relations[process.guid]
        if (each.name, each.status) == ("dataset_process_inputs", "ACTIVE")
    }  # fmt: skip
    assert atlas.named("/a").guid in active
    catalog.erase_many([A, B])
    catalog.clean_up()
    assert not [each for each in atlas.entities.values() if each.type == "lumos_dataset"]


def test_edges_that_other_tools_drew_are_read_and_left_to_them(
    catalog: Atlas, atlas: stub.Atlas
) -> None:
    catalog.put(entry())
    table = atlas.add("hive_table", "db.orders@cluster")
    ends = {"inputs": [{"guid": table.guid}], "outputs": [{"guid": atlas.named("/a").guid}]}
    atlas.add("hive_process", "query:1", **ends)
    found = catalog.get(A)
    assert found is not None
    edge = UpstreamEdge(urn="lumos://atlas/hive_table/db.orders@cluster")
    assert found.lineage == Lineage(upstream=(edge,))
    assert not catalog.put(found).changed


def test_a_search_by_platform_or_format_reads_pages_of_what_atlas_selects(
    catalog: Atlas, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumos.catalogs.atlas.server._PAGE", 2)
    urns = [f"lumos://s3/lake/orders{number}" for number in range(5)]
    for urn in urns:
        catalog.put(entry(urn, format="parquet"))
    catalog.put(entry(B, format="csv"))
    catalog.put(entry(A, format='odd "format"'))
    catalog.delete(urns[0])
    server.requests.clear()
    found = catalog.search("orders", Filters(platform="s3", format="parquet"))
    assert {each.urn for each in found} == set(urns[1:])
    paths = [each.path for each in server.requests]
    assert sum(path.endswith("/search/dsl") for path in paths) == 3
    assert not any(path.endswith("/search/basic") for path in paths)
    assert [each.urn for each in catalog.search("", Filters(format="csv"))] == [B]
    assert [each.urn for each in catalog.search("", Filters(format='odd "format"'))] == [A]
    assert not list(catalog.search("", Filters(platform="hive")))


def hive_table(atlas: stub.Atlas) -> stub.StubEntity:
    """A table as the hook of Hive writes it."""
    table = atlas.add(
        "hive_table", "sales.orders@prod", name="orders", owner="ada", comment="All orders",
        tableType="MANAGED_TABLE",
    )  # fmt: skip
    for position, (name, type) in enumerate((("id", "bigint"), ("price", "decimal(9,2)"))):
        values = {"name": name, "type": type, "position": position, "table": {"guid": table.guid}}
        atlas.add("hive_column", f"sales.orders.{name}@prod", **values)
    return table


HIVE = "lumos://atlas/hive_table/sales.orders@prod"


def test_tables_of_hive_are_read_with_columns(catalog: Atlas, atlas: stub.Atlas) -> None:
    table = hive_table(atlas)
    catalog.put(entry())
    source = atlas.add("hive_table", "raw.orders@prod")
    ends = {"inputs": [{"guid": source.guid}], "outputs": [{"guid": table.guid}]}
    atlas.add("hive_process", "query:1", **ends)
    found = catalog.get(HIVE)
    assert found is not None
    assert (found.name, found.platform) == ("orders", "atlas")
    assert found.documentation == Documentation(description="All orders")
    assert found.ownership is not None
    assert [owner.name for owner in found.ownership.owners] == ["ada"]
    assert found.schema is not None
    assert [(field.name, field.type.text) for field in found.schema.fields] == [
        ("id", "INT64"),
        ("price", "DECIMAL(9,2)"),
    ]
    edge = UpstreamEdge(urn="lumos://atlas/hive_table/raw.orders@prod")
    assert found.lineage == Lineage(upstream=(edge,))
    assert found.raw["atlas"]["attributes"]["tableType"] == "MANAGED_TABLE"
    exported = {each.urn: each for each in catalog.export()}
    assert exported.keys() == {A, HIVE, edge.urn}
    assert exported[HIVE] == found
    before = atlas.state()
    assert not catalog.put(found).changed
    assert atlas.state() == before
    assert list(catalog.export(after=HIVE)) == [exported[A]]


def test_what_lumos_adds_to_a_table_of_hive_is_written_to_that_table(
    catalog: Atlas, atlas: stub.Atlas, server: Server
) -> None:
    table = hive_table(atlas)
    found = catalog.get(HIVE)
    assert found is not None
    assert found.schema is not None
    fields = list(found.schema.fields)
    fields[0] = msgspec.structs.replace(
        fields[0], description="Number", tags=("key",), nullable=False
    )
    changed = msgspec.structs.replace(
        found,
        governance=Governance(tags=("pii",), terms=("Order",), compliance=("GDPR",)),
        documentation=Documentation(description="By Lumos", domain="sales"),
        schema=Schema(fields=tuple(fields)),
        properties={"team": "shop"},
        raw={"atlas": {**found.raw["atlas"], "customAttributes": {"room": "4"}}},
    )
    before = atlas.state()
    assert catalog.put(changed).changed
    assert not [each for each in atlas.entities.values() if each.type == "lumos_dataset"]
    assert table.attributes["userDescription"] == "By Lumos"
    assert table.attributes["comment"] == "All orders"
    assert [each["typeName"] for each in table.classifications] == ["pii"]
    assert (table.labels, table.custom) == (["GDPR"], {"room": "4"})
    assert table.business.keys() == {"lumos_metadata"}
    [column] = [each for each in atlas.entities.values() if each.attributes["name"] == "id"]
    assert column.attributes["userDescription"] == "Number"
    assert [each["typeName"] for each in column.classifications] == ["key"]
    assert catalog.get(HIVE) == changed
    assert [each for each in catalog.export() if each.urn == HIVE] == [changed]
    server.requests.clear()
    assert not opened(server).put(changed).changed
    assert not [each for each in server.requests if each.method != "GET"
                and not each.path.endswith("/search/basic")]  # fmt: skip
    catalog.put(found)
    assert catalog.get(HIVE) == found
    after = {name: each for name, each in atlas.state().items() if name in before}
    assert after == before


def test_what_hive_changes_later_is_shown(catalog: Atlas, atlas: stub.Atlas) -> None:
    table = hive_table(atlas)
    found = catalog.get(HIVE)
    assert found is not None
    assert found.schema is not None
    fields = [msgspec.structs.replace(each, nullable=False) for each in found.schema.fields]
    catalog.put(msgspec.structs.replace(found, schema=Schema(fields=tuple(fields))))
    values = {"name": "added", "type": "int", "position": 2, "table": {"guid": table.guid}}
    atlas.add("hive_column", "sales.orders.added@prod", **values)
    after = catalog.get(HIVE)
    assert after is not None
    assert after.schema is not None
    assert [each.name for each in after.schema.fields] == ["id", "price", "added"]


def test_lineage_to_a_table_of_hive_is_drawn_and_erased(catalog: Atlas, atlas: stub.Atlas) -> None:
    table = hive_table(atlas)
    found = catalog.get(HIVE)
    assert found is not None
    before = atlas.state()
    mapping = ColumnMapping(upstream="id", downstream="id")
    edges = (UpstreamEdge(urn=A, columns=(mapping,)), UpstreamEdge(urn=B))
    linked = msgspec.structs.replace(found, lineage=Lineage(upstream=edges), deleted=True)
    assert not isinstance(catalog.put(entry(schema=SCHEMA)), FailedEntry)
    assert catalog.put(linked).changed
    assert catalog.get(HIVE) == linked
    assert table.status == "ACTIVE"
    drawn = {
        atlas.entities[relation.ends[0]].attributes["qualifiedName"]
        for guid in (table.guid, *(each.guid for each in atlas.entities.values()
                                   if each.type == "hive_column"))
        for relation in atlas.relations.get(guid, ())
        if relation.name == "process_dataset_outputs"
    }  # fmt: skip
    assert drawn == {f"{HIVE}#lineage", f"{HIVE}#id#lineage"}
    # Its annotations stay, because nobody knows who made them.
    catalog.erase(HIVE)
    assert catalog.get(HIVE) == found
    catalog.erase(A)
    catalog.clean_up()
    assert {name: each for name, each in atlas.state().items() if name in before} == before


@settings(max_examples=examples(20), deadline=None)
@given(estate=entries())
def test_every_dataset_can_be_written_to_a_table_of_hive(estate: CatalogEntry) -> None:
    application = stub.Atlas()
    hive_table(application)
    with Server(application) as server:
        written = msgspec.structs.replace(estate, urn=HIVE)
        catalog = opened(server)
        assert catalog.put(written)
        assert catalog.get(HIVE) == catalog.as_stored(written)
        assert not catalog.put(written).changed


def test_lineage_from_a_table_of_hive_leads_to_that_table(
    catalog: Atlas, atlas: stub.Atlas
) -> None:
    table = hive_table(atlas)
    mapping = ColumnMapping(upstream="id", downstream="id")
    edge = UpstreamEdge(urn=HIVE, columns=(mapping,))
    catalog.put(entry(schema=SCHEMA, lineage=Lineage(upstream=(edge,))))
    assert not [each for each in atlas.entities.values() if each.attributes.get("placeholder")]
    inputs = {
        relation.ends[1] for guid in atlas.entities for relation in atlas.relations.get(guid, ())
        if relation.name == "dataset_process_inputs"
    }  # fmt: skip
    [column] = [each for each in atlas.entities.values() if each.attributes["name"] == "id"
                and each.type == "hive_column"]  # fmt: skip
    assert inputs == {table.guid, column.guid}


def test_terms_and_lineage_that_were_removed_can_be_added_again(
    catalog: Atlas, atlas: stub.Atlas
) -> None:
    both = Lineage(upstream=(UpstreamEdge(urn=B), UpstreamEdge(urn="lumos://kafka/t")))
    full = entry(governance=Governance(terms=("Order", "Sale")), lineage=both)
    less = entry(
        governance=Governance(terms=("Sale",)), lineage=Lineage(upstream=both.upstream[:1])
    )
    drawn = []
    for each in (full, less, full):
        assert catalog.put(each).changed
        assert catalog.get(A) == each
        found = {
            relation.ends
            for some in atlas.relations.values()
            for relation in some
            if (relation.name, relation.status) == ("dataset_process_inputs", "ACTIVE")
        }
        drawn.append(len(found))
    assert drawn == [2, 1, 2]
    catalog.put(entry())
    processes = [each.status for each in atlas.entities.values() if each.type == "lumos_process"]
    assert processes == ["DELETED"]


REPLICA = {
    "name": "replica_of", "relationshipCategory": "ASSOCIATION",
    "attributeDefs": [{"name": "since", "typeName": "string"}],
    "endDef1": {"type": "DataSet", "name": "replicas", "cardinality": "SET"},
    "endDef2": {"type": "DataSet", "name": "originals", "cardinality": "SET"},
}  # fmt: skip


def replica(type: str, name: str) -> dict[str, Any]:
    return {
        "relationshipType": "replica_of", "typeName": type, "qualifiedName": name,
        "attributes": {"since": "2020"},
    }  # fmt: skip


def test_other_relationships_are_kept_and_written_to_another_atlas(
    catalog: Atlas, atlas: stub.Atlas
) -> None:
    atlas._define({"relationshipDefs": [REPLICA]}, is_new=True)
    hive_table(atlas)
    raw = {"atlas": {"relationships": {"replicas": [replica("hive_table", "sales.orders@prod"),
                                                    replica("lumos_dataset", B)]}}}  # fmt: skip
    related = entry(raw=raw)
    assert catalog.put(related).changed
    assert "lumos.raw" not in (atlas.named("/a").attributes.get("properties") or {})
    assert catalog.get(A) == related
    assert not catalog.put(related).changed
    # B is a placeholder until it is written, and has the relationship from its own end.
    assert catalog.get(B) is None
    catalog.put(entry(B))
    other_end = catalog.get(B)
    assert other_end is not None
    assert other_end.raw == {"atlas": {"relationships": {"originals": [
        replica("lumos_dataset", A),
    ]}}}  # fmt: skip
    from_table = catalog.get(HIVE)
    assert from_table is not None
    assert from_table.raw["atlas"]["relationships"].keys() == {"originals"}
    less = {"atlas": {"relationships": {"replicas": [replica("lumos_dataset", B)]}}}
    assert catalog.put(entry(raw=less)).changed
    assert catalog.get(A) == entry(raw=less)
    assert catalog.put(entry()).changed
    assert catalog.get(A) == entry()
    assert catalog.get(B) == entry(B)


@pytest.mark.parametrize("definitions", [[], [REPLICA]], ids=["no type", "no target"])
def test_relationships_that_an_atlas_cannot_have_are_carried(
    catalog: Atlas, atlas: stub.Atlas, definitions: list[Any]
) -> None:
    atlas._define({"relationshipDefs": definitions}, is_new=True)
    raw = {"atlas": {"relationships": {"replicas": [replica("hive_table", "sales.orders@prod")]}}}
    assert catalog.put(entry(raw=raw)).changed
    assert catalog.get(A) == entry(raw=raw)
    hive_table(atlas)
    again = catalog.put(entry(raw=raw))
    assert again.changed == bool(definitions)
    assert catalog.get(A) == entry(raw=raw)


GOVERNANCE = {
    "name": "governance",
    "attributeDefs": [
        {"name": name, "typeName": "string", "isOptional": True, "cardinality": "SINGLE",
         "options": {"applicableEntityTypes": f'["{type}"]', "maxStrLength": "100"}}
        for name, type in (("steward", "DataSet"), ("hdfs", "hdfs_path"))
    ],
}  # fmt: skip


def test_business_metadata_is_kept_changed_and_defined_in_another_atlas(
    catalog: Atlas, atlas: stub.Atlas
) -> None:
    atlas._define({"businessMetadataDefs": [GOVERNANCE]}, is_new=True)
    catalog.put(entry())
    atlas.named("/a").business = {"governance": {"steward": "ada"}}
    found = catalog.get(A)
    assert found is not None
    assert found.raw["atlas"]["businessAttributes"] == {"governance": {"steward": "ada"}}
    assert not catalog.put(found).changed
    catalog.write(entry(documentation=Documentation(description="new")), base=entry())
    assert atlas.named("/a").business == {"governance": {"steward": "ada"}}
    with Server(stub.Atlas()) as other:
        copied = opened(other)
        copied.put(found)
        assert isinstance(other.application, stub.Atlas)
        assert other.application.named("/a").business == {"governance": {"steward": "ada"}}
        assert opened(other).get(A) == found
        copied.put(msgspec.structs.replace(found, raw={}))
        assert other.application.named("/a").business == {}


def test_business_metadata_that_does_not_apply_to_datasets_is_carried(
    catalog: Atlas, atlas: stub.Atlas
) -> None:
    values = {"governance": {"hdfs": "x"}}
    raw = {"businessAttributes": values, "businessDefinitions": {"governance": [
        each for each in GOVERNANCE["attributeDefs"] if isinstance(each, dict)
    ]}}  # fmt: skip
    wanted = entry(raw={"atlas": raw})
    catalog.put(wanted)
    assert atlas.named("/a").business == {}
    assert catalog.get(A) == wanted


def test_a_dataset_that_the_server_rejects_does_not_stop_the_others(
    catalog: Atlas, server: Server
) -> None:
    application = server.application

    def picky(request: Request) -> Answer:
        if (
            request.method == "POST"
            and b'"lumos://s3/lake/t3"' in request.body
            and (request.path.endswith("entity/bulk"))
        ):
            return Answer.of({"errorMessage": "not this one"}, 400)
        return application(request)

    server.application = picky
    entries = [entry(f"lumos://s3/lake/t{number}") for number in range(8)]
    outcomes = list(catalog.put_many(entries, current={}))
    [refused] = [each for each in outcomes if isinstance(each, FailedEntry)]
    assert (refused.urn, "not this one" in str(refused.problem)) == ("lumos://s3/lake/t3", True)
    assert len(list(catalog.export())) == 7


def test_types_are_created_once_and_upgraded_in_place(
    server: Server, atlas: stub.Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(server).put(entry())
    opened(server).put(entry(B))
    changes = [
        each.method
        for each in server.requests
        if each.path.endswith("typedefs") and each.method != "GET"
    ]
    assert changes == ["POST"]
    assert atlas.definitions[types.DATASET]["typeVersion"] == types.VERSION
    monkeypatch.setattr(types, "VERSION", "1.10")
    opened(server).put(entry("lumos://s3/lake/c"))
    assert atlas.definitions[types.DATASET]["typeVersion"] == "1.10"
    assert len(list(opened(server).export())) == 3


def test_terms_of_other_glossaries_have_names_of_their_own(
    catalog: Atlas, atlas: stub.Atlas
) -> None:
    catalog.put(entry(governance=Governance(terms=("Order",))))
    glossary = atlas.add("AtlasGlossary", "Sales")
    anchor = {"anchor": {"guid": glossary.guid}}
    body = {"name": "Order", "qualifiedName": "Order@Sales", "longDescription": "Asked for."}
    atlas._post([{"typeName": types.TERM, "guid": "-1", "attributes": body,
                  "relationshipAttributes": anchor}])  # fmt: skip
    assert list(catalog.items()) == [GlossaryTerm(name="Order@Sales", definition="Asked for.")]
    catalog.put_item(GlossaryTerm(name="Order@Sales", definition="Changed."))
    names = {
        each.attributes["qualifiedName"]
        for each in atlas.entities.values()
        if each.type == types.TERM
    }
    assert names == {"Order@Lumos", "Order@Sales"}


def test_more_than_a_search_returns_are_read(server: Server, atlas: stub.Atlas) -> None:
    catalog = opened(server)
    catalog.put(entry())
    for number in range(12_000):
        urn = f"lumos://s3/lake/t{number:05}"
        made = atlas.add("lumos_dataset", urn)
        made.attributes["lookup"] = f"{number:032x}"
    server.forget()
    assert len(list(opened(server).export())) == 12_001
    assert server.calls <= 13 * 2 + 12_001 // 100 + 3


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(401), CatalogRefused),
        (Answer.of({"Version": "2.0.0"}), CatalogTooOld),
        (Answer(200, b"<html>"), CatalogUnavailable),
        (Answer(302, b"", {"Location": "/login.jsp"}), CatalogUnavailable),
        (Answer.of([]), CatalogUnavailable),
    ],
)
def test_a_server_that_is_not_as_expected_is_named(answer: Answer, error: type[Exception]) -> None:
    with Server(lambda _: answer) as server, pytest.raises(error, match=server.address):
        opened(server).check()


def test_a_login_is_only_sent_to_its_own_address(server: Server) -> None:
    configured = AtlasPlatform(
        server=f"{server.address}/api/atlas/v2", user=stub.USER, password=Secret(stub.PASSWORD)
    )
    assert "Atlas 2.1.0" in Atlas.at(server.address, configured).check()
    with Server(server.application) as other, pytest.raises(CatalogRefused):
        Atlas.at(other.address, configured).check()
    assert "authorization" not in {name.lower() for each in other.requests for name in each.headers}


@pytest.mark.parametrize("page", [2, 500])
def test_the_audit_log_is_the_history_of_a_dataset_with_its_columns_and_predecessors(
    catalog: Atlas, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "_AUDIT_PAGE", page)
    catalog.put(entry(schema=SCHEMA))
    for text in ("first", "second"):
        catalog.put(entry(schema=SCHEMA, documentation=Documentation(description=text)))
    catalog.delete(A)
    catalog.put(entry(schema=SCHEMA))
    changes = list(catalog.history(A))
    assert [each.at for each in changes] == sorted((each.at for each in changes), reverse=True)
    assert {each.author for each in changes} == {stub.USER}
    counts = Counter((each.column, each.action) for each in changes)
    assert counts[None, "ENTITY_CREATE"] == counts["id", "ENTITY_CREATE"] == 2
    assert counts[None, "ENTITY_UPDATE"] == 3
    assert counts[None, "ENTITY_DELETE"] == counts["old", "ENTITY_DELETE"] == 1
    assert not list(catalog.history(B))


def test_changes_of_a_catalog_are_listed_and_other_catalogs_say_that_they_have_none(
    server: Server, catalog: Atlas, tmp_path: Path
) -> None:
    catalog.put(entry())
    section = {"server": server.address, "user": stub.USER, "password": stub.PASSWORD}
    lumos = Lumos(
        environment={},
        overrides={f"platform_config.atlas.{key}": text for key, text in section.items()}
        | {"storage.path": str(tmp_path / "lumos.db")},
    )
    lumos.ingest(str(tmp_path))
    report = lumos.catalog_history("a", catalog="atlas", limit=1)
    assert (report.urn, [each.action for each in report.changes]) == (A, ["ENTITY_CREATE"])
    # The name in a catalog may differ from the end of the URN.
    catalog.put(CatalogEntry(urn=B, name="Bills", platform="s3"))
    assert lumos.catalog_history("Bills", catalog="atlas").urn == B
    with pytest.raises(MisuseError, match="lumos changes DATASET"):
        lumos.catalog_history("a", catalog="local")
    (tmp_path / "file.json").write_text("[]")
    with pytest.raises(MisuseError, match="keeps no record"):
        lumos.catalog_history("a", catalog=f"datahub-file:{tmp_path}/file.json")
