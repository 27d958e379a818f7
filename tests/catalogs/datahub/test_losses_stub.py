"""What a DataHub server holds and a migration used to lose; the server is a stub."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catalogs.servers.gms import TOKEN, Gms
from catalogs.servers.http import Server
from lumos import Lumos
from lumos.catalogs.datahub.server import classes
from lumos.catalogs.datahub.server_model import shape_of

PLATFORM = {"platform": "urn:li:dataPlatform:snowflake"}


@pytest.fixture
def gms() -> Gms:
    return Gms()


@pytest.fixture
def server(gms: Gms) -> Iterator[Server]:
    with Server(gms) as server:
        yield server


@pytest.fixture
def lumos(server: Server, workplace: Path) -> Lumos:
    settings = {
        "storage.path": str(workplace / "lumos.db"),
        "platform_config.datahub.gms_server": server.address,
        "platform_config.datahub.token": TOKEN,
    }
    return Lumos(overrides=settings)


def changes(path: Path) -> dict[tuple[str, str], Any]:
    return {
        (change["entityUrn"], change["aspectName"]): change["aspect"]["json"]
        for change in json.loads(path.read_text(encoding="utf-8"))
    }


@pytest.mark.parametrize(
    "urn",
    ["urn:li:container:c0ffee", "urn:li:assertion:a55e27", "urn:li:query:0123"],
)
def test_entities_without_an_instance_keep_their_platform(
    gms: Gms, lumos: Lumos, workplace: Path, urn: str
) -> None:
    gms.hold(urn, {"dataPlatformInstance": PLATFORM})
    assert lumos.migration.migrate("datahub", "datahub-file:there.json").is_whole
    assert changes(workplace / "there.json") == {(urn, "dataPlatformInstance"): PLATFORM}


@pytest.mark.parametrize(
    ("urn", "platform"),
    [
        ("urn:li:chart:(Looker,revenue)", "looker"),
        ("urn:li:dataFlow:(airflow,nightly,PROD)", "airflow"),
        ("urn:li:dataJob:(urn:li:dataFlow:(airflow,nightly,PROD),load)", "airflow"),
        ("urn:li:dataProcess:(load,airflow,PROD)", "airflow"),
        ("urn:li:mlModel:(urn:li:dataPlatform:mlflow,churn,PROD)", "mlflow"),
    ],
)
def test_only_the_platform_that_a_server_adds_itself_is_left_out(
    gms: Gms, lumos: Lumos, workplace: Path, urn: str, platform: str
) -> None:
    tags = {"tags": [{"tag": "urn:li:tag:a"}]}
    added = {"platform": f"urn:li:dataPlatform:{platform}"}
    gms.hold(urn, {"globalTags": tags, "dataPlatformInstance": added})
    lumos.migration.migrate("datahub", "datahub-file:there.json")
    assert changes(workplace / "there.json") == {(urn, "globalTags"): tags}
    gms.hold(urn, {"globalTags": tags, "dataPlatformInstance": PLATFORM})
    lumos.migration.migrate("datahub", "datahub-file:there.json")
    assert (urn, "dataPlatformInstance") in changes(workplace / "there.json")


def test_custom_platforms_are_migrated_and_built_in_ones_are_not(
    gms: Gms, lumos: Lumos, workplace: Path
) -> None:
    info = {"name": "shop", "type": "OTHERS", "datasetNameDelimiter": "."}
    for name in ("shop", "snowflake"):
        gms.hold(f"urn:li:dataPlatform:{name}", {"dataPlatformInfo": {**info, "name": name}})
    assert lumos.migration.migrate("datahub", "datahub-file:there.json").is_whole
    shop = ("urn:li:dataPlatform:shop", "dataPlatformInfo")
    assert changes(workplace / "there.json") == {shop: info}


def test_values_of_unions_are_read_as_files_have_them(lumos: Lumos, workplace: Path) -> None:
    job = "urn:li:dataJob:(urn:li:dataFlow:(airflow,nightly,PROD),load)"
    info = {"name": "load", "type": {"string": "SQL"}}
    change = {
        "entityType": "dataJob",
        "entityUrn": job,
        "changeType": "UPSERT",
        "aspectName": "dataJobInfo",
        "aspect": {"json": info},
    }
    (workplace / "here.json").write_text(json.dumps([change]), encoding="utf-8")
    report = lumos.migration.migrate("datahub-file:here.json", "datahub")
    assert (report.is_whole, report.imported.conflicts) == (True, ())
    assert lumos.snapshot.diff("datahub-file:here.json", "datahub").summary.differences == 0
    lumos.migration.migrate("datahub", "datahub-file:there.json")
    assert changes(workplace / "there.json") == {(job, "dataJobInfo"): info}


def test_a_plain_value_of_a_union_gets_the_name_of_its_type() -> None:
    shape = shape_of(classes().StructuredPropertiesClass.RECORD_SCHEMA)
    bodies = [
        {"properties": [{"propertyUrn": "urn:li:structuredProperty:a", "values": values}]}
        for values in (["x", 2.0], [{"string": "x"}, {"double": 2.0}])
    ]
    for body in bodies:
        assert shape.convert(body, set(), send=False) == bodies[1]
