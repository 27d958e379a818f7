"""How the catalog `openmetadata` deals with servers and their failures; the servers are stubs."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from catalogs.servers.faults import RESET_AFTER, TOO_MANY, UNAVAILABLE, InTurn
from catalogs.servers.http import Answer, Request, Server
from catalogs.servers.openmetadata import BOT
from catalogs.servers.openmetadata import Openmetadata as Stub
from lumos.catalogs import FailedEntry
from lumos.catalogs.http import CATALOG_RETRIES, Caller, CatalogServer
from lumos.catalogs.openmetadata.platform import Openmetadata
from lumos.catalogs.openmetadata.server import (
    KIND,
    IncompleteList,
    Outdated,
    fault_of,
)
from lumos.catalogs.openmetadata.server import Server as Client
from lumos.catalogs.rest import UnexpectedServer
from lumos.config.platforms import OpenmetadataPlatform, Retries
from lumos.config.secret import Secret
from lumos.errors import (
    CatalogBusy,
    CatalogError,
    CatalogRefused,
    CatalogTooOld,
    CatalogUnreachable,
    LumosError,
    MissingDependency,
    MisuseError,
)
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Documentation, Governance, Lineage, UpstreamEdge
from lumos.model.schema import Field, Schema
from lumos.model.types import INT64


@pytest.fixture
def stub() -> Stub:
    return Stub()


@pytest.fixture
def server(stub: Stub) -> Iterator[Server]:
    with Server(stub) as server:
        yield server


def catalog_of(server: Server, token: str | None = BOT, **settings: Any) -> Openmetadata:
    secret = None if token is None else Secret(token)
    return Openmetadata(OpenmetadataPlatform(server=server.address, auth_token=secret, **settings))


def client_of(server: Server) -> Client:
    """A client that waits for nothing."""
    settings = OpenmetadataPlatform(server=server.address, auth_token=Secret(BOT))
    caller = Caller(
        CATALOG_RETRIES, fault_of, server=CatalogServer.of(KIND, settings),
        sleep=lambda _: None, random=Random(1),
    )  # fmt: skip
    return Client(settings, caller)


def plain(name: str = "orders", **aspects: Any) -> CatalogEntry:
    return CatalogEntry(urn=f"lumos://s3/lake/{name}", name=name, platform="s3", **aspects)


def test_a_refused_token_names_the_key_and_the_variable_and_never_the_token(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENMETADATA_JWT_TOKEN", raising=False)
    for token in ("very-secret", None):
        with pytest.raises(CatalogRefused) as refused:
            catalog_of(server, token).get("lumos://s3/lake/a")
        assert "platform_config.openmetadata.auth_token" in str(refused.value)
        assert "OPENMETADATA_JWT_TOKEN" in str(refused.value)
        assert "very-secret" not in str(refused.value)
    # Asking again would not help.
    assert server.calls == 2


def test_a_token_in_the_environment_is_taken_where_none_is_configured(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENMETADATA_JWT_TOKEN", BOT)
    assert list(catalog_of(server, None).export()) == []


def test_a_file_of_authorities_that_is_none_is_named(server: Server, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.touch()
    for path in (empty, tmp_path / "nowhere.pem"):
        with pytest.raises(
            MisuseError, match=rf"{path.name}' \(platform_config\.openmetadata\.ca_file"
        ):
            catalog_of(server, ca_file=path).check()


def test_a_password_in_netrc_is_not_sent_in_the_place_of_the_token(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login a password b\n", encoding="utf-8")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    assert list(catalog_of(server).export()) == []


def test_check_says_who_answers_and_for_whom(stub: Stub, server: Server) -> None:
    said = catalog_of(server).check()
    assert said == f"OpenMetadata 1.13.4 at {server.address}, as ingestion-bot, which may write"
    stub.may_write = False
    assert "which may not write" in catalog_of(server).check()


def test_nobody_there_is_said_at_once() -> None:
    with pytest.raises(CatalogUnreachable, match="Check the address"):
        Openmetadata.at("http://127.0.0.1:1").check()


def test_a_certificate_that_nobody_trusts_names_the_key_for_the_authority(server: Server) -> None:
    address = server.address.replace("http://", "https://")
    with pytest.raises(CatalogUnreachable, match="cannot be reached"):
        Openmetadata.at(address).check()


def test_an_old_server_is_told() -> None:
    answer = Answer.of({"version": "1.8.2"})
    with Server(lambda _: answer) as server, pytest.raises(CatalogTooOld, match=r"1\.9 or later"):
        catalog_of(server).check()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(302, b"", {"Location": "/login"}), "redirects to /login"),
        (Answer(200, b"<html>Please log in</html>"), "is not JSON"),
        (Answer(200, b""), "is not JSON"),
        (Answer.of([]), "is not an object"),
        (Answer.of({}), ""),
        (Answer.of({"data": None, "paging": None}), ""),
        (Answer.of({"data": [{"x": 1}], "paging": {"total": 1}}), ""),
    ],
)
def test_another_service_at_the_address_is_told_at_once(answer: Answer, words: str) -> None:
    acts: list[Callable[[Openmetadata], object]] = [
        lambda catalog: catalog.check(),
        lambda catalog: list(catalog.export()),
        lambda catalog: catalog.put(plain(governance=Governance(tags=("a",)))),
        lambda catalog: catalog.erase("lumos://s3/lake/orders"),
        lambda catalog: list(catalog.items()),
    ]
    with Server(lambda _: answer) as server:
        for number, act in enumerate(acts, 1):
            with pytest.raises(UnexpectedServer, match=f"Unexpected response from .*{words}"):
                act(catalog_of(server))
            assert server.calls == number


def test_many_that_nobody_says_were_taken_are_not_taken(stub: Stub, server: Server) -> None:
    def silent(request: Request) -> Answer:
        return Answer.of({}) if request.path.endswith("/bulk") else stub(request)

    server.application = silent
    with pytest.raises(UnexpectedServer, match="has no status"):
        list(catalog_of(server).put_many([plain()], current={}))


def test_without_the_library_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lumos.catalogs.adapter.find_spec", lambda _: None)
    with pytest.raises(MissingDependency, match=r"pip install 'lumos\[openmetadata\]'"):
        Openmetadata.at("http://localhost:8585")


def test_an_address_is_needed() -> None:
    with pytest.raises(MisuseError, match=r"platform_config\.openmetadata"):
        Openmetadata(None)


def test_the_library_is_not_imported_before_it_is_needed() -> None:
    code = (
        "import sys; from lumos.catalogs.openmetadata.platform import Openmetadata;"
        "Openmetadata.at('http://localhost:1'); assert 'httpx' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_call_that_failed_is_made_again_and_what_was_written_is_there_once(stub: Stub) -> None:
    mishaps = InTurn(UNAVAILABLE, None, TOO_MANY, None, RESET_AFTER, UNAVAILABLE, RESET_AFTER)
    with Server(stub, mishaps=mishaps) as server:
        catalog = catalog_of(server)
        whole = plain(
            governance=Governance(tags=("a",)), documentation=Documentation(description="A")
        )
        catalog.put(whole)
        assert catalog.get(whole.urn) == whole
    assert [each["name"] for each in stub.entities("container")] == ["lake", "orders"]


def test_patience_ends_and_says_how_long_it_lasted() -> None:
    with Server(lambda _: Answer.of({"message": "later"}, 503)) as server:
        catalog = catalog_of(server, retries=Retries(attempts=1))
        with pytest.raises(CatalogBusy, match="503 later"):
            list(catalog.export())


@pytest.mark.parametrize("told", ["by its body", "by its name", "not at all", "by nothing"])
def test_one_entry_that_the_server_does_not_take_is_refused_by_name(
    stub: Stub, server: Server, told: str
) -> None:
    def refuse(request: Request) -> Answer:
        if not request.path.endswith("/bulk"):
            return stub(request)
        rows = [row for row in request.json if row["name"] != "b"]
        headers = {**request.headers, "Content-Type": "application/json"}
        if rows:
            stub(Request(0, "PUT", request.target, headers, json.dumps(rows).encode()))
        bad = [row for row in request.json if row["name"] == "b"]
        shown = {"by its body": bad[:1], "by its name": ["s3.lake.b"], "not at all": [None]}
        failed = [
            {"request": each, "message": "not this one", "status": 400}
            for each in (shown.get(told, []) if bad else [])
        ]
        return Answer.of({
            "status": "partialSuccess" if bad else "success", "failedRequest": failed,
            "numberOfRowsFailed": len(bad), "numberOfRowsPassed": len(rows),
        })  # fmt: skip

    server.application = refuse
    entries = [plain(name) for name in "abc"]
    written = list(catalog_of(server).put_many(entries, current={}))
    refused = [each for each in written if isinstance(each, FailedEntry)]
    assert [each.urn for each in refused] == ["lumos://s3/lake/b"]
    assert "rejected" in str(refused[0].problem)
    assert len(written) == 3
    assert [each["name"] for each in stub.entities("container")] == ["a", "c", "lake"]


def test_a_tag_that_the_server_refuses_fails_its_own_dataset_alone(
    stub: Stub, server: Server
) -> None:
    def refuse(request: Request) -> Answer:
        is_bad = request.path.endswith("/tags") and request.json["name"] == "bad"
        return Answer.of({"code": 400, "message": "no such tag"}, 400) if is_bad else stub(request)

    server.application = refuse
    entries = [plain(name, governance=Governance(tags=(name,))) for name in ("a", "bad", "c")]
    written = list(catalog_of(server).put_many(entries, current={}))
    assert [each.urn for each in written if isinstance(each, FailedEntry)] == [
        "lumos://s3/lake/bad"
    ]
    assert [each["name"] for each in stub.entities("container")] == ["a", "c", "lake"]


def test_a_list_that_ends_too_early_is_told(stub: Stub, server: Server) -> None:
    catalog = catalog_of(server)
    list(catalog.put_many([plain(f"t{number:03}") for number in range(250)], current={}))

    def cut(request: Request) -> Answer:
        answer = stub(request)
        if request.path.endswith("/containers") and "after" in request.query:
            page = json.loads(answer.body)
            return Answer.of({"data": [], "paging": {"total": page["paging"]["total"]}})
        return answer

    server.application = cut
    with pytest.raises(IncompleteList, match="listed only 100 of 251"):
        list(catalog_of(server).export())


def test_many_new_datasets_are_made_by_few_calls_on_few_connections(
    stub: Stub, server: Server
) -> None:
    entries = [plain(f"t{number:03}") for number in range(500)]
    catalog = catalog_of(server)
    assert (
        len(list(catalog.put_many(entries, current=catalog.get_many([e.urn for e in entries]))))
        == 500
    )
    bulk = [request for request in server.requests if request.path.endswith("/bulk")]
    assert [len(request.json) for request in bulk] == [200, 200, 100]
    # The service is not there yet, so no dataset of it is asked for.
    assert server.calls < 25
    assert server.connections <= 6
    assert len(stub.entities("container")) == 501


def test_what_does_not_differ_is_not_sent(server: Server) -> None:
    schema = Schema(fields=(Field(name="id", type=INT64, description="No.", tags=("t",)),))
    edge = Lineage(upstream=(UpstreamEdge(urn="lumos://s3/lake/a"),))
    whole = plain(schema=schema, lineage=edge, documentation=Documentation(description="A & <b>"))
    catalog_of(server).put(plain("a"))
    catalog_of(server).put(whole)
    server.forget()
    assert not catalog_of(server).put(whole).changed
    assert {request.method for request in server.requests} == {"GET"}


@pytest.mark.parametrize(("version", "status"), [("1.13.4", 500), ("2.0.0", 400)])
@pytest.mark.parametrize(
    "mismatch",
    [
        {"op": "test", "path": "/description", "value": "x"},
        {"op": "remove", "path": "/description"},
        {"op": "remove", "path": "/tags/7"},
    ],
    ids=["other value", "no value", "no member"],
)
def test_a_patch_that_does_not_fit_is_told_apart_from_a_server_that_fails(
    stub: Stub, server: Server, version: str, status: int, mismatch: dict[str, Any]
) -> None:
    stub.version = version
    catalog_of(server).put(plain())
    id = next(each["id"] for each in stub.entities("container") if each["name"] == "orders")
    server.forget()
    with pytest.raises(Outdated) as raised:
        client_of(server).patch(f"containers/{id}", [mismatch])
    assert raised.value.status == status
    assert server.calls == 1


def test_what_a_change_refers_to_and_is_not_there_is_told_in_the_server_s_words(
    stub: Stub, server: Server
) -> None:
    catalog = catalog_of(server)
    catalog.put(plain())

    def refuse(request: Request) -> Answer:
        if request.method == "PATCH":
            return Answer.of({"code": 404, "message": "tag instance for Lumos.a not found"}, 404)
        return stub(request)

    server.application = refuse
    with pytest.raises(CatalogError, match=r"tag instance for Lumos\.a not found"):
        catalog.put(plain(governance=Governance(tags=("a",))))


def test_a_urn_that_is_none_is_refused(server: Server) -> None:
    entry = CatalogEntry(urn="job:x", name="x", platform="s3")
    with pytest.raises(LumosError, match="is not a dataset URN"):
        catalog_of(server).put(entry)
    with pytest.raises(LumosError, match="is not a dataset URN"):
        catalog_of(server).as_stored(entry)
    good = plain()
    written = list(catalog_of(server).put_many([entry, good], current={}))
    assert [isinstance(each, FailedEntry) for each in written] == [True, False]


def test_everything_is_read_beyond_the_window_of_a_search(server: Server) -> None:
    client = client_of(server)
    client.put("services/storageServices", {"name": "s3", "serviceType": "S3"})
    rows = [{"name": f"b{number:05}", "service": "s3"} for number in range(10_500)]
    for start in range(0, len(rows), 3_500):
        client.bulk("containers", rows[start : start + 3_500])
    server.forget()
    found = catalog_of(server)._opened.reader.all(edges=False)
    assert [held.urn for held in found] == [f"lumos://s3/b{number:05}" for number in range(10_500)]
    assert not any("search" in request.path for request in server.requests)
    assert catalog_of(server).count() == 10_500
    after = "lumos://s3/b10490"
    assert [entry.urn for entry in catalog_of(server).export(after=after)] == [
        f"lumos://s3/b{number}" for number in range(10_491, 10_500)
    ]
