"""The contract, kept by a real OpenMetadata server, and the habits of the stub, asked of it.

    export LUMOS_OPENMETADATA=http://127.0.0.1:8585 OPENMETADATA_JWT_TOKEN=... LUMOS_OPENMETADATA_HUMAN=...
    pytest -m "" tests/catalogs/openmetadata/test_server.py

The first token is that of the bot for ingestion; the second, that of an administrator, is optional
and lets somebody edit between two writes of Lumos. **Everything in that server is removed**, so it
must be one to throw away. No server can be had from the package registries, so none is started
here, and CI has the stub alone.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from catalogs import test_contract
from catalogs.sample_inventory import items, rich
from catalogs.servers import (
    test_stub_openmetadata,
    test_stub_openmetadata_relations,
    test_stub_openmetadata_writing,
)
from catalogs.servers.openmetadata import Openmetadata as Stub
from catalogs.servers.openmetadata_habits import People
from catalogs.test_contract import Opened
from catalogs.test_lossless import ESTATES, THINGS, comes_back, restore, snapshot
from lumos.catalogs.openmetadata.platform import Openmetadata
from lumos.catalogs.openmetadata.server import Server
from lumos.config.platforms import OpenmetadataPlatform
from lumos.config.secret import Secret
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Documentation, Governance
from lumos.model.schema import Field, Schema
from lumos.model.types import INT64
from lumos.model.urn import Urn

from .native_inventory import Native, differences, told

_ADDRESS = os.environ.get("LUMOS_OPENMETADATA", "")
_SERVICES = tuple(
    f"services/{kind}Services"
    for kind in (
        "database", "storage", "messaging", "pipeline", "dashboard", "mlmodel", "search", "api",
    )
)  # fmt: skip
# A thousand datasets take a real server minutes.
_LARGE = ("test_every_dataset_is_read_page_by_page",)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not _ADDRESS,
        reason="no OpenMetadata server that may be emptied is named in LUMOS_OPENMETADATA",
    ),
]
for _module in (
    test_contract,
    test_stub_openmetadata,
    test_stub_openmetadata_relations,
    test_stub_openmetadata_writing,
):
    for _name, _test in vars(_module).items():
        if _name.startswith("test_") and _name not in _LARGE:
            globals()[_name] = _test


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    server = Server(_settings())
    yield server
    _empty(server)
    server.close()


@pytest.fixture
def opened(server: Server) -> Opened:
    _empty(server)
    return _opened


@pytest.fixture
def people(server: Server) -> Iterator[People]:
    """Whoever calls the server in tests of the stub's habits."""
    human = _human()
    _empty(server)
    _remove_properties(human)
    human.close()
    people = People(_ADDRESS, bot=os.environ["OPENMETADATA_JWT_TOKEN"], human=_human_token())
    yield people
    people.close()


@pytest.fixture
def stub() -> Stub:
    pytest.skip("It is about the stub alone.")


def test_an_estate_comes_back_from_a_real_server(opened: Opened) -> None:
    comes_back(opened(), rich(), items())


@settings(max_examples=6, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))  # fmt: skip
@given(estate=ESTATES, things=THINGS)
def test_any_estate_comes_back_from_a_real_server(
    server: Server, estate: list[CatalogEntry], things: list[Any]
) -> None:
    _empty(server)
    comes_back(_opened(), estate, things)


def test_what_people_made_in_a_real_server_is_there_again(
    server: Server, opened: Opened, tmp_path: Path
) -> None:
    human = _human()

    def call(method: str, path: str, body: Any = None) -> Any:
        plain = unquote(path)
        match method:
            case "PUT" if path == "lineage":
                edge = body["edge"]
                return human.put_edge(
                    edge["fromEntity"], edge["toEntity"], edge.get("lineageDetails", {})
                )
            case "PUT":
                return human.put(path, body)
            case _:
                route, _, query = plain.partition("?")
                route = "/".join(quote(part, safe="") for part in route.split("/"))
                asked = dict(part.split("=", 1) for part in query.split("&") if part)
                return human.get(route, **asked)

    Native(call).make()
    before = told(call)
    first = snapshot(opened(), tmp_path / "first.jsonl")
    _empty(server)
    restore(tmp_path / "first.jsonl", opened())
    assert "\n".join(differences(before, told(call))) == ""
    assert snapshot(opened(), tmp_path / "second.jsonl") == first
    human.close()


@pytest.mark.parametrize("urn", ["lumos://s3/lake/orders", "lumos://postgres/shop/public/orders"])
def test_what_somebody_wrote_in_a_real_server_stays(opened: Opened, urn: str) -> None:
    human = _human()

    def claim(*columns: str, tags: tuple[str, ...], words: str | None = None) -> CatalogEntry:
        return CatalogEntry(
            urn=urn, name="orders", platform=Urn.parse(urn).platform,
            schema=Schema(fields=tuple(Field(name=name, type=INT64) for name in columns)),
            governance=Governance(tags=tags), documentation=Documentation(description=words),
        )  # fmt: skip

    base = claim("id", "old", tags=("scanned", "pii"))
    opened().write(base)
    is_table = "postgres" in urn
    route, columns = ("tables", "/columns") if is_table else ("containers", "/dataModel/columns")
    fqn = "postgres.shop.public.orders" if is_table else "s3.lake.orders"
    id = human.named(route, fqn)["id"]
    human.put("tags", {"classification": "Lumos", "name": "by hand", "description": ""})
    label = {"tagFQN": "Lumos.by hand", "source": "Classification", "labelType": "Manual", "state": "Confirmed"}  # fmt: skip
    human.patch(
        f"{route}/{id}",
        [
            {"op": "add", "path": "/description", "value": "By <b>hand</b>"},
            {"op": "add", "path": f"{columns}/0/description", "value": "By hand"},
            {"op": "add", "path": "/tags/-", "value": label},
            {"op": "add", "path": "/displayName", "value": "Orders by hand"},
        ],
    )
    human.close()
    written = opened().write(claim("id", "new", tags=("scanned",), words="Ours"), base=base)
    found = opened().get(urn)
    assert found is not None
    assert found.governance == Governance(tags=("by hand", "scanned"))
    assert found.schema is not None
    assert [(each.name, each.description) for each in found.schema.fields] == [
        ("id", "By hand"),
        ("new", None),
    ]
    assert found.documentation == Documentation(description="By <b>hand</b>")
    assert found.name == "Orders by hand"
    assert [each.path for each in written.conflicts] == ["documentation.description"]


def _human() -> Server:
    return Server(OpenmetadataPlatform(server=_ADDRESS, auth_token=Secret(_human_token())))


def _human_token() -> str:
    token = os.environ.get("LUMOS_OPENMETADATA_HUMAN")
    if token is None:
        pytest.skip("nobody's token is in LUMOS_OPENMETADATA_HUMAN")
    return token


def _settings() -> OpenmetadataPlatform:
    return OpenmetadataPlatform(server=_ADDRESS)


def _opened() -> Openmetadata:
    return Openmetadata(_settings())


def _empty(server: Server) -> None:
    """Removes all but what came with the server."""
    for route in (*_SERVICES, "dataProducts", "glossaries", "classifications", "domains"):
        for entity in list(server.pages(route)):
            if entity.get("provider") != "system":
                _remove(server, route, entity)
    for route in ("users", "teams"):
        for entity in list(server.pages(route)):
            is_built_in = entity.get("isBot") or entity.get("isAdmin")
            if not is_built_in and entity.get("teamType") != "Organization":
                _remove(server, route, entity)


def _remove(server: Server, route: str, entity: dict[str, Any]) -> None:
    server.delete(f"{route}/{entity['id']}", hardDelete=True, recursive=True)


def _remove_properties(human: Server) -> None:
    """Removes all custom properties, which bots may not."""
    for type in list(human.pages("metadata/types", include="non-deleted", category="entity")):
        path = f"metadata/types/{type['id']}"
        if human.get(path, fields="customProperties").get("customProperties"):
            human.patch(path, [{"op": "remove", "path": "/customProperties"}])
