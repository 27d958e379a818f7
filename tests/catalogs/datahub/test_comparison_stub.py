"""A file and a server that DataHub's own package loaded from it; the server is a stub."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catalogs.servers.gms import TOKEN, Gms
from catalogs.servers.http import Server
from lumos import Lumos
from lumos.snapshots.reports import SnapshotDiffReport

ORDERS = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/orders,PROD)"
STAMP = {"time": 1, "actor": "urn:li:corpuser:jdoe"}
SYSTEM = {"lastObserved": 1758537741932, "runId": "demo", "lastRunId": "no-run-id-provided"}


def change(urn: str, aspect: str, body: Any) -> dict[str, Any]:
    return {
        "entityType": urn.split(":")[2], "entityUrn": urn, "changeType": "UPSERT",
        "aspectName": aspect, "aspect": {"json": body}, "systemMetadata": SYSTEM,
    }  # fmt: skip


FIELD = {
    "fieldPath": "id", "nullable": False, "type": {"type": {"com.linkedin.schema.NumberType": {}}},
    "nativeDataType": "INT64", "recursive": False, "isPartOfKey": False,
}  # fmt: skip
SCHEMA = {
    "schemaName": "orders", "platform": "urn:li:dataPlatform:s3", "version": 0, "hash": "",
    "created": STAMP, "lastModified": STAMP, "fields": [FIELD],
    "platformSchema": {"com.linkedin.schema.OtherSchema": {"rawSchema": ""}},
}  # fmt: skip
PROFILE = {"timestampMillis": 1, "partitionSpec": {"partition": "FULL_TABLE", "type": "FULL_TABLE"}}
PLATFORM = {"name": "s3", "type": "OBJECT_STORE", "datasetNameDelimiter": "/"}
# Audit stamps, defaults, options of unions without their names, empty aspects, time series, and a
# platform that every server has.
CHANGES = [
    change(ORDERS, "schemaMetadata", SCHEMA),
    change(ORDERS, "datasetProperties", {"customProperties": {}, "description": "x", "tags": []}),
    change(ORDERS, "status", {"removed": False}),
    change(ORDERS, "subTypes", {"typeNames": ["table"]}),
    change(ORDERS, "datasetProfile", {**PROFILE, "rowCount": 1}),
    change(ORDERS, "datasetProfile", {**PROFILE, "timestampMillis": 2, "rowCount": 2}),
    change("urn:li:tag:Legacy", "tagProperties", {"name": "Legacy", "description": "Old"}),
    change("urn:li:chart:(looker,a)", "chartInfo", {
        "title": "A", "description": "B", "customProperties": {}, "inputs": [ORDERS],
        "lastModified": {"created": STAMP, "lastModified": STAMP}}),
    change("urn:li:corpuser:jdoe", "corpUserInfo", {"active": True, "system": False}),
    change("urn:li:dataPlatform:s3", "dataPlatformInfo", PLATFORM),
]  # fmt: skip


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(Gms(validating=False)) as server:
        yield server


def compared(server: Server, folder: Path, changes: list[dict[str, Any]]) -> SnapshotDiffReport:
    """A file compared with a server that DataHub's package loaded from `changes`."""
    from datahub.emitter.rest_emitter import DataHubRestEmitter
    from datahub.ingestion.source.file import read_metadata_file

    loaded, file = folder / "loaded.json", folder / "file.json"
    loaded.write_text(json.dumps(changes))
    file.write_text(json.dumps(CHANGES))
    emitter = DataHubRestEmitter(server.address, token=TOKEN, openapi_ingestion=False)
    emitter.emit_mcps(list(read_metadata_file(loaded)))  # type: ignore[arg-type]
    overrides = {"storage.path": str(folder / "lumos.db"), "platform_config.datahub.token": TOKEN}
    address = {"platform_config.datahub.gms_server": server.address}
    lumos = Lumos(environment={}, overrides={**overrides, **address})
    return lumos.snapshot.diff(f"datahub-file:{file}", "datahub")


def test_a_server_that_was_loaded_from_a_file_does_not_differ_from_it(
    server: Server, tmp_path: Path
) -> None:
    assert compared(server, tmp_path, CHANGES).differences == ()


def test_what_really_differs_is_listed(server: Server, tmp_path: Path) -> None:
    others = {"subTypes": {"typeNames": ["view"]}, "corpUserInfo": {"active": False}}
    changed = [
        {**each, "aspect": {"json": others.get(each["aspectName"], each["aspect"]["json"])}}
        for each in CHANGES
        if each["aspectName"] != "tagProperties"
    ]
    found = {
        (each.kind, each.aspect, each.path, each.change)
        for each in compared(server, tmp_path, changed).differences
    }
    assert found == {
        ("dataset", "raw", "datahub.subTypes", "changed"),
        ("other", "entry", "", "removed"),
        ("user", "ownership", "active", "changed"),
    }
