"""Migrations from and to catalogs behind a network, which are stubs here."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catalogs.servers.gms import TOKEN, Gms
from catalogs.servers.http import Request, Server
from catalogs.servers.openmetadata import BOT, Openmetadata
from lumos import Lumos
from lumos.errors import CatalogError

COUNT = 60
PEOPLE = "urn:li:corpuser:"
DASHBOARD = "urn:li:dashboard:(looker,revenue)"


def dataset(number: int) -> str:
    return f"urn:li:dataset:(urn:li:dataPlatform:snowflake,SHOP.PUBLIC.T{number:03},PROD)"


def estate(gms: Gms) -> None:
    """Tables as other programs wrote them to DataHub, and as people labelled them there."""
    stamp = {"time": 0, "actor": f"{PEOPLE}airflow"}
    for number in range(COUNT):
        fields = [
            {
                "fieldPath": name,
                "type": {"type": {"com.linkedin.schema.StringType": {}}},
                "nativeDataType": "VARCHAR",
            }
            for name in ("ID", "CITY")
        ]
        schema = {
            "schemaName": f"T{number:03}",
            "platform": "urn:li:dataPlatform:snowflake",
            "version": 0,
            "hash": "",
            "platformSchema": {"com.linkedin.schema.OtherSchema": {"rawSchema": ""}},
            "fields": fields,
        }
        aspects: dict[str, Any] = {
            "datasetProperties": {"name": f"T{number:03}", "description": f"Table {number}"},
            "schemaMetadata": schema,
            "globalTags": {"tags": [{"tag": "urn:li:tag:pii"}]},
            "ownership": {
                "owners": [{"owner": f"{PEOPLE}jane.smith", "type": "TECHNICAL_OWNER"}],
                "lastModified": stamp,
            },
        }
        if number:
            edge = {"dataset": dataset(number - 1), "type": "TRANSFORMED", "auditStamp": stamp}
            aspects["upstreamLineage"] = {"upstreams": [edge]}
        gms.hold(dataset(number), aspects)
    # What Lumos has no aspect and no kind for.
    link = {"url": "https://wiki.shop.example/t", "description": "Read this", "createStamp": stamp}
    gms.hold(dataset(0), {"institutionalMemory": {"elements": [link]}})
    info = {
        "title": "Revenue",
        "description": "By city",
        "lastModified": {"created": stamp, "lastModified": stamp},
    }
    gms.hold(DASHBOARD, {"dashboardInfo": info})


class Stub:
    """A stub and the server in front of it."""

    def __init__(self, application: Any, server: Server, platform: str) -> None:
        self.application = application
        self.server = server
        self.platform = platform

    def writes(self) -> list[Request]:
        """What was sent to it that changes something."""
        return [
            each
            for each in self.server.requests
            if each.method in ("PUT", "PATCH", "DELETE") or "ingestProposal" in each.target
        ]


@pytest.fixture
def datahub(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    """A DataHub that others have filled."""
    monkeypatch.setenv("DATAHUB_GMS_TOKEN", TOKEN)
    monkeypatch.setenv("HOME", str(workplace))
    gms = Gms()
    estate(gms)
    with Server(gms) as server:
        yield Stub(gms, server, f"datahub:{server.address}")


@pytest.fixture
def second() -> Iterator[Stub]:
    """Another one, with nothing in it."""
    gms = Gms()
    with Server(gms) as server:
        yield Stub(gms, server, f"datahub:{server.address}")


@pytest.fixture
def openmetadata(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    """An OpenMetadata that nobody has worked with yet."""
    monkeypatch.setenv("OPENMETADATA_JWT_TOKEN", BOT)
    stub = Openmetadata()
    with Server(stub) as server:
        yield Stub(stub, server, f"openmetadata:{server.address}")


@pytest.fixture
def lumos(workplace: Path) -> Lumos:
    return Lumos(overrides={"storage.path": str(workplace / "lumos.db")})


@pytest.mark.parametrize("target", ["local", "datahub-file:estate.json"])
def test_a_stub_of_datahub_moves_without_being_written_to(
    lumos: Lumos, datahub: Stub, target: str
) -> None:
    report = lumos.migration.migrate(datahub.platform, target)
    assert report.is_whole
    assert report.verified is not None
    assert (report.verified.datasets.target, report.verified.lineage_edges.target) == (60, 59)
    assert report.verified.summary.differences == 0
    assert datahub.writes() == []


def test_a_stub_moves_into_another_and_the_second_time_nothing_is_sent(
    lumos: Lumos, datahub: Stub, second: Stub
) -> None:
    report = lumos.migration.migrate(datahub.platform, second.platform)
    assert report.is_whole
    assert report.imported.sums.kinds["datasets"].created == COUNT
    assert second.application.datasets() == datahub.application.datasets()
    sent = len(second.writes())
    assert 0 < sent < COUNT
    # Every entry was asked for by its name after the last write, and nothing was searched for.
    after = second.server.requests[second.server.requests.index(second.writes()[-1]) + 1 :]
    assert {each.path.rpartition("/")[2] for each in after} <= {
        "batchGet",
        "config",
        "specifications",
    }
    again = lumos.migration.migrate(datahub.platform, second.platform)
    assert again.is_whole
    assert again.imported.sums.kinds["datasets"].unchanged == COUNT
    assert len(second.writes()) == sent
    assert lumos.snapshot.diff(datahub.platform, second.platform).summary.differences == 0


def test_a_stub_of_datahub_moves_into_one_of_openmetadata_and_back(
    lumos: Lumos, datahub: Stub, openmetadata: Stub, second: Stub
) -> None:
    report = lumos.migration.migrate(datahub.platform, openmetadata.platform)
    assert report.is_whole
    assert report.verified is not None
    assert (report.verified.datasets.target, report.verified.lineage_edges.target) == (60, 59)
    assert report.verified.summary.differences == 0
    assert len(openmetadata.application.entities("table")) == COUNT
    assert len(openmetadata.application.estate.edges) == COUNT - 1
    # Nothing was searched for: what is found lags behind what is there.
    assert not [each for each in openmetadata.server.requests if "/search/" in each.path]
    sent = len(openmetadata.writes())
    again = lumos.migration.migrate(datahub.platform, openmetadata.platform)
    assert again.is_whole
    assert again.imported.sums.kinds["datasets"].unchanged == COUNT
    assert len(openmetadata.writes()) == sent
    assert lumos.migration.migrate(openmetadata.platform, second.platform).is_whole
    assert second.application.datasets() == datahub.application.datasets()
    assert lumos.snapshot.diff(datahub.platform, second.platform).summary.differences == 0
    # Also what neither Lumos nor OpenMetadata has a place for.
    for urn, aspect in ((dataset(0), "institutionalMemory"), (DASHBOARD, "dashboardInfo")):
        before, after = (each.application.aspects(urn)[aspect] for each in (datahub, second))
        # A server fills in what goes without saying.
        assert after | before == after


def test_a_migration_into_a_stub_of_openmetadata_is_taken_back(
    lumos: Lumos, datahub: Stub, openmetadata: Stub
) -> None:
    assert lumos.migration.migrate(datahub.platform, openmetadata.platform).is_whole
    lumos.migration.roll_back(datahub.platform, openmetadata.platform)
    assert openmetadata.application.entities("table") == []
    assert openmetadata.application.estate.edges == {}


def test_what_changed_is_sent_and_what_people_wrote_in_the_target_stays(
    lumos: Lumos, datahub: Stub, second: Stub
) -> None:
    lumos.migration.migrate(datahub.platform, second.platform)
    words = {"description": "Typed in the second catalog"}
    second.application.hold(dataset(7), {"editableDatasetProperties": words})
    labels = {"tags": [{"tag": "urn:li:tag:pii"}, {"tag": "urn:li:tag:gold"}]}
    datahub.application.hold(dataset(7), {"globalTags": labels})
    second.application.forget()
    report = lumos.migration.migrate(datahub.platform, second.platform)
    assert report.is_whole
    assert report.imported.sums.kinds["datasets"].changed == 1
    assert {each.entityUrn for each in second.application.proposals} == {dataset(7)}
    aspects = second.application.aspects(dataset(7))
    assert aspects["editableDatasetProperties"]["description"] == words["description"]
    assert {each["tag"] for each in aspects["globalTags"]["tags"]} == {
        each["tag"] for each in labels["tags"]
    }


def test_a_migration_into_a_stub_is_taken_back(lumos: Lumos, datahub: Stub, second: Stub) -> None:
    second.application.hold(dataset(3), {"datasetProperties": {"description": "Before"}})
    before = second.application.state()
    assert lumos.migration.migrate(datahub.platform, second.platform).is_whole
    lumos.migration.roll_back(datahub.platform, second.platform)
    after = second.application.state()
    assert {urn for urn in after if urn.startswith("urn:li:dataset")} == {dataset(3)}
    assert after[dataset(3)]["datasetProperties"] == before[dataset(3)]["datasetProperties"]


def test_a_stub_that_lets_nobody_in_says_which_token_it_wants(
    lumos: Lumos, datahub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATAHUB_GMS_TOKEN", "hush-hush")
    with pytest.raises(CatalogError, match="DATAHUB_GMS_TOKEN") as refused:
        lumos.migration.migrate(datahub.platform, "local")
    assert "hush-hush" not in str(refused.value)
    # A configured token is never sent to another address.
    assert "for the configured address" in str(refused.value)


def test_doctor_names_the_server_of_a_stub(datahub: Stub) -> None:
    from lumos.doctor import platform_checks

    settings = Lumos(overrides={"platform": datahub.platform}).settings
    (check,) = platform_checks(settings)
    assert check.status == "ok"
    assert datahub.server.address in check.found
    assert "v1.3.0" in check.found
