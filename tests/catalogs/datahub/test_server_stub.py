"""How the catalog `datahub` deals with servers and their failures; the servers are stubs."""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from catalogs.servers.faults import RESET_AFTER, TOO_MANY, UNAVAILABLE, InTurn
from catalogs.servers.gms import TOKEN, Gms
from catalogs.servers.http import Answer, Mishap, Request, Server
from lumos.catalogs import FailedEntry
from lumos.catalogs.datahub.platform import Datahub
from lumos.catalogs.http import CATALOG_RETRIES, Caller, CatalogServer
from lumos.catalogs.rest import fault_of
from lumos.config.platforms import DatahubPlatform
from lumos.config.secret import Secret
from lumos.errors import (
    CatalogBusy,
    CatalogError,
    CatalogRefused,
    CatalogTooOld,
    CatalogUnavailable,
    CatalogUnreachable,
    LumosError,
    MissingDependency,
    MisuseError,
)
from lumos.model.catalog import CatalogEntry, GlossaryTerm
from lumos.model.dataset import Documentation, Governance
from lumos.model.schema import Field, Schema
from lumos.model.types import INT64
from lumos.model.urn import Urn

from .datahub_servers import NAME, catalog_of, plain, put


@pytest.fixture
def gms() -> Gms:
    return Gms()


@pytest.fixture
def server(gms: Gms) -> Iterator[Server]:
    with Server(gms) as server:
        yield server


def patient(server: Server, waits: list[float], **retries: Any) -> Datahub:
    """A catalog whose waits are only written down."""
    settings = DatahubPlatform(gms_server=server.address, token=Secret(TOKEN), timeout=2)
    caller = Caller(
        msgspec.structs.replace(CATALOG_RETRIES, **retries),
        fault_of,
        server=CatalogServer.of("datahub", settings),
        sleep=waits.append,
        random=Random(1),
    )
    return Datahub(settings, caller)


# Who asks, and whom.


@pytest.mark.parametrize("token", [None, Secret("wrong-and-secret")])
def test_a_refused_token_names_the_key_and_the_variable_and_never_the_token(
    server: Server, token: Secret | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DATAHUB_GMS_TOKEN", raising=False)
    with pytest.raises(CatalogRefused) as refused:
        catalog_of(server, token=token).check()
    text = str(refused.value)
    assert "platform_config.datahub.token" in text
    assert "DATAHUB_GMS_TOKEN" in text
    assert "wrong-and-secret" not in text
    assert len(server.requests) == 1


def test_a_token_in_the_environment_is_taken_where_none_is_configured(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATAHUB_GMS_TOKEN", TOKEN)
    assert "DataHub v1.3.0" in Datahub.at(server.address).check()


def test_a_configured_token_goes_to_its_own_server_only(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DATAHUB_GMS_TOKEN", raising=False)
    configured = DatahubPlatform(gms_server="https://other.example", token=Secret(TOKEN))
    with pytest.raises(CatalogRefused):
        Datahub.at(server.address, configured).check()
    assert "Authorization" not in server.requests[0].headers


def test_a_password_in_netrc_is_not_sent_in_the_place_of_the_token(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password mine\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    catalog_of(server).put(plain())
    assert {request.headers["Authorization"] for request in server.requests} == {f"Bearer {TOKEN}"}


def test_check_says_who_answers_and_for_whom(gms: Gms) -> None:
    claims = (
        base64.urlsafe_b64encode(json.dumps({"actorId": "ingest"}).encode()).decode().rstrip("=")
    )
    gms.token = f"e30.{claims}.x"
    gms.hold(NAME, {"datasetProperties": {"name": "orders"}})
    with Server(gms) as server:
        told = catalog_of(server, token=Secret(gms.token)).check()
    assert told == (
        f"DataHub v1.3.0 at {server.address}, 1 dataset; read as 'ingest'; "
        "write access was not checked"
    )


def test_nobody_there_is_said_at_once() -> None:
    catalog = Datahub(DatahubPlatform(gms_server="http://127.0.0.1:9", token=Secret(TOKEN)))
    with pytest.raises(CatalogUnreachable, match=r"cannot be reached at http://127\.0\.0\.1:9"):
        catalog.get("lumos://s3/lake/orders")


@pytest.mark.parametrize(
    "answer", [Answer(200, b"<html>Sign in</html>"), Answer.of({"noCode": "false"})]
)
def test_another_service_at_the_address_is_told(answer: Answer) -> None:
    with (
        Server(lambda _: answer) as server,
        pytest.raises(CatalogError, match="is not DataHub's metadata service"),
    ):
        catalog_of(server).check()


@pytest.mark.parametrize("page", [{"entities": [{"x": 1}]}, {"entities": None}, [{"x": 1}]])
def test_what_has_no_name_is_no_answer_of_datahub(page: Any) -> None:
    with Server(lambda _: Answer.of(page)) as server:
        catalog = catalog_of(server)
        for read in (catalog.export, lambda: catalog.get_many(["lumos://s3/lake/orders"])):
            with pytest.raises(CatalogError, match="is not DataHub's metadata service"):
                list(read())


@pytest.mark.parametrize(
    "answer", [Answer(200, b"<html>Sign in</html>"), Answer(200), Answer(302, b"", {"Location": "/login"})]
)  # fmt: skip
def test_what_something_else_answers_to_a_write_does_not_count_as_written(
    gms: Gms, answer: Answer
) -> None:
    with (
        Server(lambda request: answer if request.path == "/aspects" else gms(request)) as server,
        pytest.raises(CatalogUnavailable, match="is not DataHub's metadata service"),
    ):
        put(catalog_of(server), plain())
    assert gms.entities == {}


def test_an_answer_that_broke_off_is_asked_for_again(gms: Gms) -> None:
    broken = [True]

    def once(request: Request) -> Answer:
        answer = gms(request)
        if "batchGet" in request.path and broken:
            broken.clear()
            return Answer(answer.status, answer.body[:-9])
        return answer

    entry = plain(governance=Governance(tags=("pii",)))
    with Server(once) as server:
        put(catalog_of(server), entry)
        waits: list[float] = []
        assert patient(server, waits).get(entry.urn) == entry
    assert len(waits) == 1


def test_one_dataset_that_cannot_be_read_keeps_no_other_from_being_written() -> None:
    gms = Gms(validating=False)
    rows = {"schemaName": "x", "fields": [{"nativeDataType": "int"}]}
    gms.hold(NAME, {"schemaMetadata": rows})
    claims = [plain(name, governance=Governance(tags=("pii",))) for name in ("a", "orders", "b")]
    with Server(gms) as server:
        done = list(catalog_of(server).write_many(claims, {}))
    refused = [each for each in done if isinstance(each, FailedEntry)]
    assert [each.urn for each in refused] == [plain().urn]
    assert "fieldPath" in str(refused[0].problem)
    assert len(done) == 3
    assert len(gms.entities) == 3


def test_a_server_without_the_routes_is_too_old() -> None:
    def old(request: Request) -> Answer:
        return Answer.of({"noCode": "true"}) if request.path == "/config" else Answer(404)

    with Server(old) as server, pytest.raises(CatalogTooOld, match=r"DataHub 1\.0 or later"):
        catalog_of(server).get("lumos://s3/lake/orders")


def test_without_the_package_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lumos.catalogs.adapter.find_spec", lambda _: None)
    with pytest.raises(MissingDependency, match=r"pip install 'lumos\[datahub\]'"):
        Datahub(None)


def test_neither_the_command_nor_the_catalog_imports_the_package_before_it_is_needed() -> None:
    code = (
        "import sys, lumos.cli.main; from lumos.catalogs.datahub.platform import Datahub;"
        "Datahub.at('http://x'); print('datahub' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_nothing_is_sent_to_the_makers_of_the_package(server: Server, tmp_path: Path) -> None:
    code = (
        "from lumos.catalogs.datahub.platform import Datahub;"
        f"Datahub.at({server.address!r}).check();"
        "from datahub.telemetry.telemetry import telemetry_instance as t; print(t.enabled)"
    )
    clean = {key: text for key, text in os.environ.items() if key != "DATAHUB_TELEMETRY_ENABLED"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**clean, "HOME": str(tmp_path), "DATAHUB_GMS_TOKEN": TOKEN},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "False"


# Calls that fail.


@pytest.mark.parametrize("mishap", [TOO_MANY, UNAVAILABLE, RESET_AFTER], ids=lambda each: each.name)
def test_a_call_that_failed_is_made_again_and_what_was_written_is_there_once(
    gms: Gms, mishap: Mishap
) -> None:
    with Server(gms, mishaps=InTurn(mishap, mishap)) as server:
        waits: list[float] = []
        catalog = patient(server, waits)
        catalog.write(plain(governance=Governance(tags=("pii",))))
        assert len(waits) >= 2
        found = catalog.get("lumos://s3/lake/orders")
    assert found == plain(governance=Governance(tags=("pii",)))
    assert list(gms.entities) == [NAME]


def test_patience_ends_and_says_how_long_it_lasted(gms: Gms) -> None:
    waits: list[float] = []
    with (
        Server(gms, mishaps=lambda _: UNAVAILABLE) as server,
        pytest.raises(CatalogBusy, match="was tried 3 times"),
    ):
        patient(server, waits, tries=3).get("lumos://s3/lake/orders")
    assert len(waits) == 2


def test_what_was_told_is_there_whatever_came_after(gms: Gms) -> None:
    entries = [plain(f"t{number:03}", governance=Governance(tags=("a",))) for number in range(300)]
    calls = iter(range(1_000))

    def after_the_second(request: Request) -> Mishap | None:
        return UNAVAILABLE if request.path == "/aspects" and next(calls) >= 2 else None

    told: list[str] = []
    with Server(gms, mishaps=after_the_second) as server:
        written = patient(server, [], tries=2).put_many(entries, current={})
        with pytest.raises(CatalogBusy):
            told.extend(each.urn for each in written)
        there = {entry.urn for entry in patient(server, []).export()}
    assert told
    assert set(told) <= there
    assert len(told) < len(entries)


# Entries that are refused.


def test_one_entry_that_the_server_does_not_take_is_refused_by_name(
    gms: Gms, server: Server
) -> None:
    odd = {"": [{"body": None}], "subTypes": [{"body": {"typeNames": 7}}]}
    bad = plain("bad", raw={"datahub": odd})
    good = [plain(f"t{number}") for number in range(20)]
    done = put(catalog_of(server), *good[:10], bad, *good[10:])
    refused = [each for each in done.values() if isinstance(each, FailedEntry)]
    assert [each.urn for each in refused] == [bad.urn]
    assert "subTypes" in str(refused[0].problem)
    assert len(gms.entities) == len(good)


def test_a_file_name_that_is_not_unicode_is_written_and_words_that_are_not_are_refused(
    gms: Gms, server: Server
) -> None:
    name = "caf\udce9"
    schema = Schema(fields=(Field(name="id", type=INT64),))
    odd = CatalogEntry(
        urn=str(Urn.of("s3", ("lake", name))), name=name, platform="s3", schema=schema
    )
    bad = plain("bad", documentation=Documentation(description="caf\udce9"))
    done = put(catalog_of(server), odd, bad, plain())
    refused = [each for each in done.values() if isinstance(each, FailedEntry)]
    assert [each.urn for each in refused] == [bad.urn]
    assert "Unicode" in str(refused[0].problem)
    assert len(gms.entities) == 2
    assert catalog_of(server).get(odd.urn) == odd
    gms.forget()
    catalog_of(server).put(odd)
    assert gms.proposals == []


def test_an_item_with_words_that_are_not_unicode_is_refused(server: Server) -> None:
    bad = GlossaryTerm(name="bad", definition="caf\udce9")
    good = GlossaryTerm(name="good", definition="cafe")
    refused = list(catalog_of(server).put_items([bad, good]))
    assert [each.urn for each in refused] == ["bad"]
    assert catalog_of(server).get_item(GlossaryTerm, "good") == good


def test_a_name_that_is_too_long_is_refused_before_anything_is_sent(
    gms: Gms, server: Server
) -> None:
    long = plain("x" * 500)
    with pytest.raises(CatalogError, match="512"):
        catalog_of(server).as_stored(long)
    done = put(catalog_of(server), long, plain())
    problem = done[long.urn]
    assert isinstance(problem, FailedEntry)
    assert "512" in str(problem.problem)
    assert list(gms.entities) == [NAME]


def test_an_aspect_that_is_too_large_is_refused_before_anything_is_sent(
    gms: Gms, server: Server
) -> None:
    huge = plain(
        "huge", schema=Schema(fields=(Field(name="a", type=INT64, description="x" * (13 << 20)),))
    )
    done = put(catalog_of(server), huge, plain())
    problem = done[huge.urn]
    assert isinstance(problem, FailedEntry)
    assert "schemaMetadata" in str(problem.problem)
    assert list(gms.entities) == [NAME]


def test_a_large_estate_is_sent_in_several_calls(gms: Gms, server: Server) -> None:
    text = "x" * (4 << 20)
    put(
        catalog_of(server),
        *(
            plain(f"t{number}", documentation=Documentation(description=text))
            for number in range(4)
        ),
    )
    assert len([request for request in server.requests if request.path == "/aspects"]) == 2
    assert len(gms.entities) == 4


def test_a_urn_that_is_none_is_refused(server: Server) -> None:
    catalog = catalog_of(server)
    with pytest.raises(MisuseError):
        catalog.put(CatalogEntry(urn="lumos://S3/lake/orders", name="orders", platform="s3"))
    with pytest.raises(LumosError):
        catalog.put(CatalogEntry(urn="orders", name="orders", platform="s3"))


# Lists that are not whole.


def test_a_list_that_is_shorter_than_the_server_says_is_an_error_with_both_numbers(
    gms: Gms,
) -> None:
    for number in range(3):
        gms.hold(NAME.replace("orders", f"t{number}"), {"datasetProperties": {"name": "t"}})

    def forgetful(request: Request) -> Answer:
        answer = gms(request)
        if not request.path.endswith("/scroll"):
            return answer
        return Answer.of({**msgspec.json.decode(answer.body), "totalCount": 5})

    with Server(forgetful) as server:
        with pytest.raises(CatalogError, match=r"has 5 entities .* listed only 3"):
            list(catalog_of(server).export())
        assert len(server.requests) == 2


def test_a_list_that_lagged_behind_is_asked_for_once_more(gms: Gms) -> None:
    gms.hold(NAME, {"datasetProperties": {"name": "orders"}})
    lag = [True]

    def lagging(request: Request) -> Answer:
        answer = gms(request)
        if request.path.endswith("/scroll") and lag and lag.pop():
            return Answer.of({"entities": [], "totalCount": 1})
        return answer

    with Server(lagging) as server:
        assert [entry.name for entry in catalog_of(server).export()] == ["orders"]


def test_a_server_that_does_not_count_is_believed(gms: Gms) -> None:
    gms.counts = False
    gms.hold(NAME, {"datasetProperties": {"name": "orders"}})
    with Server(gms) as server:
        assert [entry.name for entry in catalog_of(server).export()] == ["orders"]
        assert "dataset" not in catalog_of(server).check()
