"""Metadata as DataHub's own sources write it, in both forms, made up for these tests."""

import json
from typing import Any

STAMP = {"time": 1700000000000, "actor": "urn:li:corpuser:etl"}
SYSTEM = {"lastObserved": 1700000000001, "runId": "hive-2024", "lastRunId": "no-run-id-provided",
          "properties": {"clientId": "x"}}  # fmt: skip
ORDERS = "urn:li:dataset:(urn:li:dataPlatform:hive,shop.orders,PROD)"
EVENTS = "urn:li:dataset:(urn:li:dataPlatform:kafka,shop.events,DEV)"
CUSTOMERS = "urn:li:dataset:(urn:li:dataPlatform:snowflake,eu.FINANCE.customers,PROD)"


def field(urn: str, path: str) -> str:
    return f"urn:li:schemaField:({urn},{path})"


def proposal(urn: str, aspect: str, body: Any, **more: Any) -> dict[str, Any]:
    type = urn.split(":")[2]
    return {"entityType": type, "entityUrn": urn, "changeType": "UPSERT", "aspectName": aspect,
            "aspect": {"json": body}, **more}  # fmt: skip


def row(path: str, kind: str, native: str, **more: Any) -> dict[str, Any]:
    return {"fieldPath": path, "nullable": True, "type": {"type": {f"com.linkedin.schema.{kind}": {}}},
            "nativeDataType": native, "recursive": False, "isPartOfKey": False, **more}  # fmt: skip


def event(urn: str, *aspects: tuple[str, Any], system: Any = SYSTEM) -> dict[str, Any]:
    """A change event; the types are spelled as events spell them."""
    prefix = "com.linkedin.pegasus2avro."
    spelled = json.loads(json.dumps(aspects).replace("com.linkedin.schema.", f"{prefix}schema."))
    return {
        "auditHeader": None,
        "proposedSnapshot": {
            f"{prefix}metadata.snapshot.DatasetSnapshot": {
                "urn": urn,
                "aspects": [{f"{prefix}{name}": body} for name, body in spelled],
            }
        },
        "proposedDelta": None,
        "systemMetadata": system,
    }


def estate() -> list[dict[str, Any]]:
    """Two datasets with everything that Lumos reads, and much that it does not."""
    return [
        event(
            ORDERS,
            ("common.Status", {"removed": False}),
            ("dataset.DatasetProperties", {
                "customProperties": {"string": "a property of that name", "retention": "90 days"},
                "description": {"string": "Orders as the source says."},
                "qualifiedName": "shop.orders", "tags": [],
            }),
            ("common.Ownership", {
                "owners": [
                    {"owner": "urn:li:corpuser:jdoe", "type": "DATAOWNER", "source": {"type": "MANUAL"}},
                    {"owner": "urn:li:corpGroup:lake", "type": "NONE",
                     "typeUrn": "urn:li:ownershipType:__system__data_steward"},
                ],
                "ownerTypes": {}, "lastModified": STAMP,
            }),
            ("schema.SchemaMetadata", {
                "schemaName": "shop.orders", "platform": "urn:li:dataPlatform:hive", "version": 3,
                "hash": "abc", "created": STAMP, "lastModified": STAMP,
                "platformSchema": {"com.linkedin.pegasus2avro.schema.KafkaSchema": {"documentSchema": "{}"}},
                "fields": [
                    row("id", "NumberType", "bigint", isPartOfKey=True, nullable=False),
                    row("ship", "RecordType", "struct", description="Where to"),
                    row("ship.city", "StringType", "varchar(40)", glossaryTerms={
                        "terms": [{"urn": "urn:li:glossaryTerm:City"}], "auditStamp": STAMP}),
                    row("ship.geo", "RecordType", "struct"),
                    row("ship.geo.lat", "NumberType", "double"),
                    row("lines", "ArrayType", "array<struct>"),
                    row("lines.sku", "StringType", "string", label="SKU"),
                ],
            }),
            ("schema.EditableSchemaMetadata", {
                "created": STAMP, "lastModified": STAMP,
                "editableSchemaFieldInfo": [
                    {"fieldPath": "ship.city", "description": "By hand",
                     "globalTags": {"tags": [{"tag": "urn:li:tag:PII", "context": "scan"}]}},
                ],
            }),
        ),
        proposal(ORDERS, "editableDatasetProperties", {"description": "Orders, by hand.", "created": STAMP}),
        proposal(ORDERS, "globalTags", {"tags": [
            {"tag": "urn:li:tag:tier, one (gold)".replace(",", "%2C").replace("(", "%28").replace(")", "%29")},
            {"tag": "urn:li:tag:legacy", "attribution": {"time": 1, "actor": "urn:li:corpuser:bot"}},
        ]}, systemMetadata=SYSTEM),
        proposal(ORDERS, "glossaryTerms", {"terms": [{"urn": "urn:li:glossaryTerm:Order"}], "auditStamp": STAMP}),
        proposal(ORDERS, "domains", {"domains": ["urn:li:domain:sales", "urn:li:domain:finance"]}),
        proposal(ORDERS, "structuredProperties", {"properties": [
            {"propertyUrn": "urn:li:structuredProperty:io.acme.tier", "values": [{"string": "gold"}]},
            {"propertyUrn": "urn:li:structuredProperty:io.acme.slo", "values": [{"double": 99.5}, {"double": 1}]},
        ]}),
        proposal(ORDERS, "upstreamLineage", {
            "upstreams": [{"dataset": EVENTS, "type": "COPY", "auditStamp": STAMP, "query": "urn:li:query:q1"},
                          {"dataset": CUSTOMERS, "type": "TRANSFORMED", "auditStamp": STAMP}],
            "fineGrainedLineages": [{
                "upstreamType": "FIELD_SET", "downstreamType": "FIELD_SET", "confidenceScore": 0.7,
                "upstreams": [field(EVENTS, "[version=2.0].[type=E].[type=long].id"), field(CUSTOMERS, "C_ID")],
                "downstreams": [field(ORDERS, "id")], "transformOperation": "COALESCE",
            }],
        }),
        # Twice the same aspect: the later one counts.
        proposal(ORDERS, "viewProperties", {"materialized": True, "viewLogic": "SELECT 1", "viewLanguage": "SQL"}),
        proposal(ORDERS, "viewProperties", {"materialized": True, "viewLogic": "SELECT 2", "viewLanguage": "SQL"}),
        proposal(ORDERS, "browsePathsV2", {"path": [{"id": "shop"}]}),
        proposal(ORDERS, "container", {"container": "urn:li:container:c0ffee"}),
        proposal(ORDERS, "datasetProfile", {"timestampMillis": 1, "rowCount": 10}),
        proposal(ORDERS, "datasetProfile", {"timestampMillis": 2, "rowCount": 11}),
        proposal(ORDERS, "somethingNew", {"not": ["known", None, 1.5]}),
        proposal(CUSTOMERS, "dataPlatformInstance", {
            "platform": "urn:li:dataPlatform:snowflake",
            "instance": "urn:li:dataPlatformInstance:(urn:li:dataPlatform:snowflake,eu)"}),
        {**proposal(CUSTOMERS, "globalTags", None), "changeType": "PATCH", "aspect": {
            "contentType": "application/json-patch+json", "value": "[]"}},
        {**proposal(CUSTOMERS, "schemaMetadata", None), "aspect": {"contentType": "application/json", "value":
            '{"schemaName": "c", "platform": "urn:li:dataPlatform:snowflake", "version": 0, "hash": "", '
            '"platformSchema": {"com.linkedin.schema.MySqlDDL": {"tableSchema": ""}}, "fields": []}'}},
        proposal(EVENTS, "status", {"removed": True}),
        proposal("urn:li:corpuser:jdoe", "corpUserInfo", {
            "active": True, "displayName": "John Doe", "email": "jdoe@example.com", "fullName": "John Doe"}),
        proposal("urn:li:corpGroup:lake", "corpGroupInfo", {
            "admins": [], "members": ["urn:li:corpuser:jdoe"], "groups": [], "displayName": "Lake"}),
        proposal("urn:li:glossaryTerm:Order", "glossaryTermInfo", {
            "definition": "What was asked for.", "termSource": "EXTERNAL", "name": "Order"}),
        proposal("urn:li:container:c0ffee", "containerProperties", {"name": "shop"}),
        proposal("urn:li:container:c0ffee", "status", {"removed": False}, systemMetadata=SYSTEM),
        proposal("urn:li:dashboard:(looker,1)", "dashboardInfo", {
            "title": "Sales", "description": "", "customProperties": {},
            "lastModified": {"created": STAMP, "lastModified": STAMP}}),
        proposal("urn:li:dataJob:(urn:li:dataFlow:(airflow,nightly,prod),load)", "dataJobInfo", {
            "name": "load", "type": {"string": "COMMAND"}, "customProperties": {}}),
        {"bucket": 1, "duration": "DAY", "resource": ORDERS, "metrics": {"totalSqlQueries": 7}},
    ]  # fmt: skip
