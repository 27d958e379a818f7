"""The stub of DataHub's service, talked to by DataHub's own client as it is shipped.

What holds here holds for the stub; it says nothing of a real server.
"""

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

os.environ["DATAHUB_TELEMETRY_ENABLED"] = "false"
pytest.importorskip("datahub", reason="DataHub's package is an extra that is not installed here")

import datahub.metadata.schema_classes as classes
import requests
from datahub.configuration.common import OperationalError
from datahub.emitter.mcp import MetadataChangeProposalWrapper
from datahub.ingestion.graph.client import DataHubGraph
from datahub.ingestion.graph.config import DatahubClientConfig
from datahub.specific.dataset import DatasetPatchBuilder

from .gms import TOKEN, Gms
from .http import Server

ORDERS = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/orders,PROD)"
OTHERS = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/others,PROD)"
Connect = Callable[..., DataHubGraph]


@pytest.fixture
def gms() -> Gms:
    return Gms()


@pytest.fixture
def server(gms: Gms) -> Iterator[Server]:
    with Server(gms) as server:
        yield server


@pytest.fixture
def connect(server: Server) -> Iterator[Connect]:
    graphs = []

    def connect(token: str = TOKEN) -> DataHubGraph:
        config = DatahubClientConfig(
            server=server.address, token=token, retry_max_times=0, openapi_ingestion=False
        )
        graphs.append(DataHubGraph(config))
        return graphs[-1]

    yield connect
    for graph in graphs:
        graph.close()


@pytest.fixture
def graph(connect: Connect) -> DataHubGraph:
    return connect()


def proposal(urn: str, aspect: str, body: Any, change: str = "UPSERT") -> Any:
    kind = "json-patch+json" if change == "PATCH" else "json"
    return classes.MetadataChangeProposalClass(
        entityType=urn.split(":")[2],
        entityUrn=urn,
        changeType=change,
        aspectName=aspect,
        aspect=classes.GenericAspectClass(
            value=json.dumps(body).encode(), contentType=f"application/{kind}"
        ),
    )


def status_of(error: OperationalError) -> tuple[int, str]:
    response = error.__cause__.response  # type: ignore[union-attr]
    return response.status_code, response.json()["message"]


def tags(*names: str) -> dict[str, Any]:
    return {"tags": [{"tag": f"urn:li:tag:{name}"} for name in names]}


def test_the_client_finds_a_service(graph: DataHubGraph, connect: Connect) -> None:
    graph.test_connection()
    assert graph.server_config.service_version == "v1.3.0"
    with pytest.raises(Exception, match="Unauthorized"):
        connect(token="wrong").test_connection()


def test_what_is_emitted_is_read_back_with_what_a_server_fills_in(
    graph: DataHubGraph, gms: Gms
) -> None:
    graph.emit_mcps([proposal(ORDERS, "datasetProperties", {"description": "All orders"})])
    assert gms.aspects(ORDERS) == {
        "datasetProperties": {"description": "All orders", "customProperties": {}, "tags": []},
        "browsePathsV2": {"path": [{"id": "Default"}]},
        "dataPlatformInstance": {"platform": "urn:li:dataPlatform:s3"},
    }
    read = graph.get_entities("dataset", [ORDERS, OTHERS], with_system_metadata=True)
    assert set(read) == {ORDERS}
    properties, metadata = read[ORDERS]["datasetProperties"]
    assert properties.description == "All orders"  # type: ignore[attr-defined]
    assert metadata is not None
    assert metadata.version == "1"
    key = read[ORDERS]["datasetKey"][0]
    assert key.name == "lake/orders"  # type: ignore[attr-defined]


def test_versions_go_up(graph: DataHubGraph) -> None:
    for _ in range(3):
        graph.emit_mcps([proposal(ORDERS, "status", {"removed": False})])
    read = graph.get_entities("dataset", [ORDERS], ["status"], with_system_metadata=True)
    assert read[ORDERS]["status"][1].version == "3"  # type: ignore[union-attr]


def test_typed_proposals_with_unions_come_back(graph: DataHubGraph) -> None:
    schema = classes.SchemaMetadataClass(
        schemaName="orders",
        platform="urn:li:dataPlatform:s3",
        version=0,
        hash="",
        platformSchema=classes.OtherSchemaClass(rawSchema=""),
        fields=[
            classes.SchemaFieldClass(
                fieldPath="id",
                type=classes.SchemaFieldDataTypeClass(type=classes.NumberTypeClass()),
                nativeDataType="bigint",
            )
        ],
    )
    graph.emit_mcps([MetadataChangeProposalWrapper(entityUrn=ORDERS, aspect=schema)])
    assert graph.get_aspect(ORDERS, classes.SchemaMetadataClass) == schema


@pytest.mark.parametrize(
    ("urn", "aspect", "body", "message"),
    [
        (OTHERS, "nonsense", {}, "Unknown aspect nonsense for entity dataset"),
        (OTHERS, "corpUserInfo", {"active": True}, "Unknown aspect corpUserInfo"),
        (OTHERS, "status", {"removed": False, "colour": "red"}, "unrecognized field /colour"),
        (OTHERS, "globalTags", {"tags": [{"tag": "urn:li:tag:a", "x": 1}]}, "field /tags/0/x"),
        (OTHERS, "globalTags", {"tags": [{}]}, "Failed to validate record globalTags"),
        (OTHERS, "status", {"removed": "perhaps"}, "Failed to validate record status"),
        ("urn:li:dataset:lake/orders", "status", {"removed": False}, "DatasetUrn"),
        (f"urn:li:tag:{'/' * 200}", "status", {"removed": False}, "longer than 512 bytes"),
    ],
)
def test_a_bad_proposal_is_named_and_none_of_its_batch_is_taken(
    graph: DataHubGraph, gms: Gms, urn: str, aspect: str, body: Any, message: str
) -> None:
    good = proposal(ORDERS, "status", {"removed": False})
    with pytest.raises(OperationalError) as caught:
        graph.emit_mcps([good, proposal(urn, aspect, body), good])
    status, told = status_of(caught.value)
    assert status == 422
    assert urn in told
    assert message in told
    assert not gms.entities


def test_types_of_files_are_not_types_of_the_wire(server: Server) -> None:
    union = {"com.linkedin.pegasus2avro.schema.StringType": {}}
    field = {"fieldPath": "a", "nativeDataType": "x", "type": {"type": union}}
    schema = {"schemaName": "x", "fields": [field]}
    change = {
        "entityType": "dataset",
        "entityUrn": ORDERS,
        "changeType": "UPSERT",
        "aspectName": "schemaMetadata",
        "aspect": {"value": json.dumps(schema), "contentType": "application/json"},
    }
    told = requests.post(
        f"{server.address}/aspects?action=ingestProposal",
        json={"proposal": change},
        headers={"Authorization": f"Bearer {TOKEN}"},
        timeout=5,
    )
    assert told.status_code == 422
    assert "is not a member type of union" in told.text


def test_a_body_over_16_mb_is_refused(graph: DataHubGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datahub.emitter.rest_emitter.INGEST_MAX_PAYLOAD_BYTES", 1 << 30)
    large = {"description": "x" * (17 << 20)}
    with pytest.raises(OperationalError) as caught:
        graph.emit_mcps([proposal(ORDERS, "datasetProperties", large)])
    assert status_of(caught.value)[0] == 413


PATCHES: dict[str, tuple[str, Any, Any, Any]] = {
    "a tag is added beside another's": (
        "globalTags",
        tags("theirs"),
        {
            "arrayPrimaryKeys": {"tags": ["attribution␟source", "tag"]},
            "patch": [
                {"op": "add", "path": "/tags//urn:li:tag:ours", "value": {"tag": "urn:li:tag:ours"}}
            ],
        },
        tags("theirs", "ours"),
    ),
    "a tag is added where there were none": (
        "globalTags",
        None,
        [{"op": "add", "path": "/tags/urn:li:tag:a", "value": {"tag": "urn:li:tag:a"}}],
        tags("a"),
    ),
    "a tag is removed": (
        "globalTags",
        tags("theirs", "ours"),
        {
            "arrayPrimaryKeys": {"tags": ["tag"]},
            "patch": [{"op": "remove", "path": "/tags/urn:li:tag:ours"}],
        },
        tags("theirs"),
    ),
    "what is not there can be removed": (
        "globalTags",
        tags("theirs"),
        {
            "arrayPrimaryKeys": {"tags": ["attribution␟source", "tag"]},
            "patch": [{"op": "remove", "path": "/tags//urn:li:tag:ours"}],
        },
        tags("theirs"),
    ),
    "keys and their order are the patch's own": (
        "ownership",
        {"owners": [{"owner": "urn:li:corpuser:a", "type": "DATAOWNER"}]},
        {
            "arrayPrimaryKeys": {"owners": ["typeUrn", "type", "owner"]},
            "patch": [
                {
                    "op": "add",
                    "path": "/owners//DATA_STEWARD/urn:li:corpuser:a",
                    "value": {"owner": "urn:li:corpuser:a", "type": "DATA_STEWARD"},
                }
            ],
        },
        {
            "owners": [
                {"owner": "urn:li:corpuser:a", "type": "DATAOWNER"},
                {"owner": "urn:li:corpuser:a", "type": "DATA_STEWARD"},
            ]
        },
    ),
    "properties are patched one by one": (
        "datasetProperties",
        {"customProperties": {"theirs": "1", "gone": "2"}, "description": "Theirs", "tags": []},
        [
            {"op": "add", "path": "/customProperties/a~1b", "value": "3"},
            {"op": "remove", "path": "/customProperties/gone"},
            {"op": "add", "path": "/name", "value": "orders"},
        ],
        {
            "customProperties": {"theirs": "1", "a/b": "3"},
            "description": "Theirs",
            "name": "orders",
            "tags": [],
        },
    ),
    "tags of a field": (
        "editableSchemaMetadata",
        {"editableSchemaFieldInfo": [{"fieldPath": "a", "globalTags": tags("theirs")}]},
        [
            {
                "op": "add",
                "path": "/editableSchemaFieldInfo/a/globalTags/tags/urn:li:tag:ours",
                "value": {"tag": "urn:li:tag:ours"},
            }
        ],
        {"editableSchemaFieldInfo": [{"fieldPath": "a", "globalTags": tags("theirs", "ours")}]},
    ),
}


@pytest.mark.parametrize("name", PATCHES)
def test_patches_go_by_keys_and_can_be_repeated(graph: DataHubGraph, gms: Gms, name: str) -> None:
    aspect, before, patch, after = PATCHES[name]
    if before is not None:
        graph.emit_mcps([proposal(ORDERS, aspect, before)])
    expected = proposal(OTHERS, aspect, after)
    change = proposal(ORDERS, aspect, patch, "PATCH")
    graph.emit_mcps([expected, change])
    first = without_stamps(gms.aspects(ORDERS)[aspect])
    assert first == without_stamps(gms.aspects(OTHERS)[aspect])
    graph.emit_mcps([change])
    assert without_stamps(gms.aspects(ORDERS)[aspect]) == first


def without_stamps(body: dict[str, Any]) -> dict[str, Any]:
    return {key: body[key] for key in body if key not in ("created", "lastModified", "auditStamp")}


def test_upserts_and_patches_of_a_batch_keep_their_order(graph: DataHubGraph, gms: Gms) -> None:
    patch = PATCHES["a tag is added beside another's"][2]
    graph.emit_mcps(
        [
            proposal(ORDERS, "globalTags", tags("theirs")),
            proposal(ORDERS, "globalTags", patch, "PATCH"),
        ]
    )
    assert gms.aspects(ORDERS)["globalTags"] == tags("theirs", "ours")


def test_the_package_s_own_patches_are_understood(graph: DataHubGraph, gms: Gms) -> None:
    builder = DatasetPatchBuilder(ORDERS)
    builder.add_tag(classes.TagAssociationClass(tag="urn:li:tag:ours"))
    builder.set_description("Ours").add_custom_property("a/b", "c")
    builder.add_upstream_lineage(classes.UpstreamClass(dataset=OTHERS, type="TRANSFORMED"))
    graph.emit_mcps(builder.build())
    held = gms.aspects(ORDERS)
    assert held["globalTags"] == tags("ours")
    assert held["datasetProperties"]["description"] == "Ours"
    assert held["datasetProperties"]["customProperties"] == {"a/b": "c"}
    assert [edge["dataset"] for edge in held["upstreamLineage"]["upstreams"]] == [OTHERS]


@pytest.mark.parametrize(
    ("aspect", "patch"),
    [
        ("glossaryTerms", [{"op": "add", "path": "/terms/urn:li:glossaryTerm:a/", "value": {}}]),
        ("globalTags", [{"op": "move", "path": "/tags/a", "from": "/tags/b"}]),
        ("schemaMetadata", [{"op": "add", "path": "/schemaName", "value": "x"}]),
    ],
)
def test_a_patch_that_does_not_apply_is_the_server_s_own_error(
    graph: DataHubGraph, gms: Gms, aspect: str, patch: Any
) -> None:
    if aspect == "glossaryTerms":
        patch = {"arrayPrimaryKeys": {"terms": ["urn", "attribution␟source"]}, "patch": patch}
    with pytest.raises(OperationalError) as caught:
        graph.emit_mcps([proposal(ORDERS, aspect, patch, "PATCH")])
    assert status_of(caught.value)[0] == 500
    assert not gms.entities


def test_a_template_patch_of_lineage_folds_columns_and_a_keyed_one_does_not(
    graph: DataHubGraph, gms: Gms
) -> None:
    def column(of: str, name: str) -> str:
        return f"urn:li:schemaField:({of},{name})"

    fine = [
        {
            "upstreamType": "FIELD_SET",
            "upstreams": [column(OTHERS, name)],
            "downstreamType": "FIELD",
            "downstreams": [column(ORDERS, "a")],
            "confidenceScore": score,
        }
        for name, score in (("x", 0.5), ("y", 1.0))
    ]
    lineage = {"upstreams": [], "fineGrainedLineages": fine}
    edge = {
        "dataset": OTHERS,
        "type": "COPY",
        "auditStamp": {"time": 0, "actor": "urn:li:corpuser:x"},
    }
    operations = [{"op": "add", "path": f"/upstreams/{OTHERS.replace('/', '~1')}", "value": edge}]
    keyed = {"arrayPrimaryKeys": {"upstreams": ["dataset"]}, "patch": operations}
    graph.emit_mcps(
        [
            proposal(ORDERS, "upstreamLineage", lineage),
            proposal(ORDERS, "upstreamLineage", keyed, "PATCH"),
        ]
    )
    assert gms.aspects(ORDERS)["upstreamLineage"]["fineGrainedLineages"] == fine
    graph.emit_mcps([proposal(ORDERS, "upstreamLineage", operations, "PATCH")])
    assert gms.aspects(ORDERS)["upstreamLineage"]["fineGrainedLineages"] == [
        {
            "upstreamType": "FIELD_SET",
            "upstreams": [column(OTHERS, "x"), column(OTHERS, "y")],
            "downstreamType": "FIELD",
            "downstreams": [column(ORDERS, "a")],
            "confidenceScore": 0.5,
            "transformOperation": "NONE",
        }
    ]


def named(number: int) -> str:
    return f"urn:li:dataset:(urn:li:dataPlatform:s3,lake/{number:05},PROD)"


def filled(gms: Gms, count: int) -> list[str]:
    urns = [named(number) for number in range(count)]
    for number, urn in enumerate(urns):
        gms.hold(urn, {"status": {"removed": number % 10 == 0}})
    return urns


def test_scrolling_goes_beyond_the_window_of_a_search(graph: DataHubGraph, gms: Gms) -> None:
    gms.validating = False
    urns = filled(gms, 12_000)
    found: list[str] = []
    scroll_id = None
    while True:
        page = graph.scroll_entities(
            entity_names=["dataset"], count=5_000, scroll_id=scroll_id, include_soft_delete=True
        )
        assert page.total_count == 12_000
        found += page.entities
        scroll_id = page.scroll_id
        if scroll_id is None:
            break
    assert found == urns
    assert graph.get_search_results(start=9_999, count=1)["value"]["numEntities"] == 10_000
    with pytest.raises(OperationalError, match="Result window is too large"):
        graph.get_search_results(start=10_000, count=1)


def test_soft_deleted_entities_are_found_on_request(graph: DataHubGraph, gms: Gms) -> None:
    urns = filled(gms, 20)
    page = graph.scroll_entities(entity_names=["dataset"], count=50)
    assert list(page.entities) == [urn for urn in urns if urn not in (named(0), named(10))]
    by_filter = graph.get_urns_by_filter(entity_types=["dataset"], batch_size=7)
    assert list(by_filter) == list(page.entities)


def test_a_scroll_leaves_out_what_has_none_of_the_aspects(graph: DataHubGraph, gms: Gms) -> None:
    gms.hold(ORDERS, {"status": {"removed": False}})
    gms.hold(OTHERS, {"globalTags": tags("a")})
    page = graph.scroll_entities(entity_names=["dataset"], aspects=["status"], count=50)
    assert list(page.entities) == [ORDERS]
    assert page.total_count == 2


def test_the_index_lags_behind(graph: DataHubGraph, gms: Gms) -> None:
    gms.index_lag = 2
    graph.emit_mcps([proposal(ORDERS, "status", {"removed": False})])
    assert list(graph.get_entities("dataset", [ORDERS])) == [ORDERS]
    seen = [list(graph.scroll_entities(entity_names=["dataset"]).entities) for _ in range(2)]
    assert seen == [[ORDERS], [ORDERS]]
    graph.emit_mcps([proposal(OTHERS, "status", {"removed": False})])
    seen = [list(graph.scroll_entities(entity_names=["dataset"]).entities) for _ in range(2)]
    assert seen == [[ORDERS], [ORDERS, OTHERS]]


def test_scroll_ids_expire(graph: DataHubGraph, gms: Gms) -> None:
    gms.scroll_life = 1
    filled(gms, 20)
    first = graph.scroll_entities(entity_names=["dataset"], count=5)
    second = graph.scroll_entities(entity_names=["dataset"], count=5, scroll_id=first.scroll_id)
    assert len(second.entities) == 5
    with pytest.raises(requests.HTTPError):
        graph.scroll_entities(entity_names=["dataset"], count=5, scroll_id=first.scroll_id)


def test_entities_and_aspects_are_deleted(graph: DataHubGraph, gms: Gms, server: Server) -> None:
    gms.hold(ORDERS, {"status": {"removed": False}, "globalTags": tags("a")})
    path = f"{server.address}/openapi/v3/entity/dataset/{requests.utils.quote(ORDERS, safe='')}"
    for _ in range(2):
        graph.session.delete(f"{path}/globalTags").raise_for_status()
    assert "globalTags" not in gms.aspects(ORDERS)
    assert graph.hard_delete_entity(ORDERS)[0] == 4
    assert graph.hard_delete_entity(ORDERS)[0] == 0
    assert not gms.entities


def test_deleting_a_whole_entity_by_the_openapi_route_fails_the_test(
    graph: DataHubGraph, server: Server
) -> None:
    assert (
        graph.session.delete(f"{server.address}/openapi/v3/entity/dataset/{ORDERS}").status_code
        == 500
    )
    assert "all that people wrote" in str(server.errors.pop())


def test_the_aspects_that_it_knows_are_told(graph: DataHubGraph) -> None:
    specs = graph.get_entity_aspect_specs()
    assert specs is not None
    assert specs.supports("dataset", "globalTags")
    assert not specs.supports("dataset", "corpUserInfo")


def test_what_is_not_there_has_a_key_all_the_same(graph: DataHubGraph, gms: Gms) -> None:
    assert set(graph.get_entity_semityped(ORDERS)) == {"datasetKey"}
    assert not graph.get_entities("dataset", [ORDERS])
    gms.keys_of_missing = True
    assert set(graph.get_entities("dataset", [ORDERS])[ORDERS]) == {"datasetKey"}


def test_undefined_structured_properties_can_be_refused(graph: DataHubGraph, gms: Gms) -> None:
    gms.checks_references = True
    urn = "urn:li:structuredProperty:lumos.a"
    assigned = {"properties": [{"propertyUrn": urn, "values": [{"string": "x"}]}]}
    with pytest.raises(OperationalError):
        graph.emit_mcps([proposal(ORDERS, "structuredProperties", assigned)])
    gms.hold(urn, {"propertyDefinition": {"qualifiedName": "lumos.a"}})
    graph.emit_mcps([proposal(ORDERS, "structuredProperties", assigned)])
    assert gms.aspects(ORDERS)["structuredProperties"]["properties"][0]["propertyUrn"] == urn
