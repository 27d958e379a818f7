"""How containers of Azure are reached: keys, signatures, tokens, and how addresses are spelled."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from azure_server import ACCOUNT, KEY, SAS, SECRET, AzureServer, error
from http_server import Request, Response
from lumos.config.secret import ConnectionString, Secret
from lumos.config.sources import AzureSourceSettings
from lumos.http.retries import ONCE
from lumos.storage import KeyRange, ListedFile, ListingProblem
from lumos.storage.azure import AzureAccess, AzureStorage
from lumos.storage.azure.access import ContainerAddress
from lumos.storage.azure.credentials import BearerToken, SasToken, SharedKey
from lumos.storage.errors import NoCredentials
from lumos.storage.tokens import Token
from storage_folders import BRIEF

ROOT = f"abfss://lake@{ACCOUNT}.dfs.core.windows.net"


def storage_at(server: AzureServer, **facts: object) -> AzureStorage:
    access = AzureAccess(account=ACCOUNT, endpoint_url=server.endpoint, **facts)  # type: ignore[arg-type]
    return AzureStorage(access, retries=BRIEF)


@pytest.fixture
def entra(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AzureServer]:
    """An account whose server also gives tokens, as Microsoft Entra does; azure-identity wants TLS."""
    with serving(certificate=certificate) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        monkeypatch.setenv("AZURE_AUTHORITY_HOST", server.url)
        yield server


def serving(**options: object) -> AzureServer:
    return AzureServer({"lake": {"a.csv": b"data"}}, **options)  # type: ignore[arg-type]


def used(storage: AzureStorage) -> None:
    """Lists, reads, writes and removes."""
    assert storage.files(ROOT) == ["a.csv"]
    assert storage.read(f"{ROOT}/a.csv") == b"data"
    storage.write(f"{ROOT}/odd name+ü.csv", b"more")
    storage.discard([f"{ROOT}/odd name+ü.csv"])
    assert storage.files(ROOT) == ["a.csv"]


@pytest.mark.parametrize(
    "facts",
    [
        {"account_key": KEY},
        {"sas_token": SAS},
        {"sas_token": f"?{SAS}"},
    ],
)
def test_keys_and_signatures_list_read_write_and_remove(
    facts: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    with serving() as server:
        used(storage_at(server, **facts))


def test_a_client_secret_lists_reads_writes_and_removes(entra: AzureServer) -> None:
    used(storage_at(entra, tenant_id="tenant", client_id="client", client_secret=SECRET))
    assert len(entra.tokens) == 1


def test_what_needs_a_token_names_the_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.core.exceptions", None)
    with (
        serving() as server,
        pytest.raises(NoCredentials, match=r"need azure-identity.*'lumos\[azure\]'") as missing,
    ):
        storage_at(server).files(ROOT)
    assert missing.value.code == "NoLibrary"


def test_odd_keys_are_signed_too() -> None:
    with AzureServer({"lake": {"a//b c+ü%.csv": b"data"}}) as server:
        storage = storage_at(server, account_key=KEY)
        (listed,) = storage.walk(KeyRange(ROOT))
        assert isinstance(listed, ListedFile)
        with storage.open(listed.path, size=4) as file:
            assert file.tail(2) == b"ta"


@pytest.mark.parametrize(
    ("variables", "kind"),
    [
        pytest.param({"AZURE_STORAGE_KEY": KEY}, "", id="key"),
        pytest.param(
            {"AZURE_STORAGE_ACCOUNT": ACCOUNT, "AZURE_STORAGE_SAS_TOKEN": SAS}, "", id="sas"
        ),
        pytest.param(
            {"AZURE_STORAGE_CONNECTION_STRING": f"AccountName={ACCOUNT};AccountKey={KEY}"},
            "",
            id="string",
        ),
        pytest.param(
            {"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_CLIENT_SECRET": SECRET},
            "EnvironmentCredential",
            id="variables",
        ),
        pytest.param(
            {"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_FEDERATED_TOKEN_FILE": "FILE"},
            "WorkloadIdentityCredential",
            id="workload",
        ),
        pytest.param(
            {"IDENTITY_ENDPOINT": "URL/identity", "IDENTITY_HEADER": "header"},
            "ManagedIdentityCredential",
            id="app",
        ),
        pytest.param(
            {"AZURE_POD_IDENTITY_AUTHORITY_HOST": "URL"}, "ManagedIdentityCredential", id="machine"
        ),
    ],
)
def test_credentials_are_found_in_the_usual_places(
    variables: dict[str, str],
    kind: str,
    entra: AzureServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    token = tmp_path / "token"
    token.write_text("signed")
    for name, value in variables.items():
        monkeypatch.setenv(name, value.replace("URL", entra.url).replace("FILE", str(token)))
    # The others would wait for services that are not there.
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", kind)
    used(storage_at(entra))


def test_the_command_line_of_azure_is_asked_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.dumps({"accessToken": "eyJ.of.cli", "expires_on": int(time.time()) + 3600})
    with serving() as server:
        server.tokens.append("eyJ.of.cli")
        program = tmp_path / "az"
        program.write_text(f"#!/bin/sh\necho '{text}'\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
        monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "AzureCliCredential")
        used(storage_at(server))


def test_a_key_of_another_account_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "other")
    monkeypatch.setenv("AZURE_STORAGE_KEY", KEY)
    with serving() as server, pytest.raises(NoCredentials) as refused:
        storage_at(server).read(f"{ROOT}/a.csv")
    assert refused.value.code == "NoCredentials"
    assert server.requests == []


def test_what_the_environment_lets_in_does_not_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_KEY", KEY)
    storage = AzureStorage(AzureAccess(), retries=BRIEF)
    assert storage.access == AzureAccess(account=ACCOUNT)


@pytest.mark.parametrize("odd", [" x", "é"])
def test_a_signature_that_cannot_be_sent_is_not_quoted(odd: str) -> None:
    with serving() as server:
        (listing,) = storage_at(server, sas_token=f"{SAS}{odd}").walk(KeyRange(ROOT))
    assert isinstance(listing, ListingProblem)
    assert "hush" not in listing.reason
    assert "the request contains an invalid character" in listing.reason


def test_public_containers_are_read_without_credentials() -> None:
    with serving(public=True) as server:
        storage = storage_at(server, anonymous=True)
        assert storage.files(ROOT) == ["a.csv"]
        assert storage.read(f"{ROOT}/a.csv") == b"data"
        assert not any("authorization" in request.headers for request in server.requests)


def test_a_rejected_secret_is_not_quoted(entra: AzureServer) -> None:
    login = {"tenant_id": "t", "client_id": "c", "client_secret": f"{SECRET}-not"}
    (listing,) = storage_at(entra, **login).walk(KeyRange(ROOT))
    assert isinstance(listing, ListingProblem)
    assert f"{SECRET}-not" not in listing.reason
    assert listing.code == "permission_denied"
    assert "Microsoft Entra returned no token: AADSTS7000215" in listing.reason


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({"client_secret": "hush-hush"}, "'client_secret' also requires 'tenant_id'"),
        (
            {"client_secret": "hush-hush", "tenant_id": "t"},
            "'client_secret' also requires 'client_id'",
        ),
        ({"account_key": "hush-hush!"}, "not valid base64"),
    ],
)
def test_invalid_credentials_are_reported_without_their_text(
    facts: dict[str, str], text: str
) -> None:
    with serving() as server, pytest.raises(NoCredentials) as refused:
        storage_at(server, **facts).files(ROOT)
    assert text in str(refused.value)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize("facts", [{"account_key": KEY}, {"sas_token": SAS}])
def test_errors_contain_no_secret(facts: dict[str, str]) -> None:
    text = f"{KEY} {SAS} sig=hush-hush+signature="
    refusal = error(403, "AuthenticationFailed", f"Signature fields: {text}")
    with AzureServer({"lake": {}}, answer=lambda _request: refusal) as server:
        storage = storage_at(server, **facts)
        (listing,) = storage.walk(KeyRange(ROOT))
        with pytest.raises(PermissionError) as by_obstore:
            storage.write(f"{ROOT}/a.csv", b"1")
    left = f"{listing} {by_obstore.value} {storage.access!r}"
    for secret in facts.values():
        assert secret not in left
    assert "sas_token" not in facts or "signature=" not in left


def test_a_server_that_is_gone_is_named_without_the_signature() -> None:
    with serving() as server:
        url = server.endpoint
    access = AzureAccess(account=ACCOUNT, endpoint_url=url, sas_token=SAS)
    storage = AzureStorage(access, retries=ONCE)
    (listing,) = storage.walk(KeyRange(ROOT))
    with pytest.raises(OSError, match="does not answer") as gone:
        storage.read(f"{ROOT}/a.csv")
    assert "hush" not in f"{listing} {gone.value}"
    assert "does not answer" in str(listing)


# What only Azure has


def test_folders_of_the_account_are_no_files() -> None:
    with AzureServer({"lake": {"raw/orders.parquet/part-0.parquet": b"data"}}) as server:
        server.folders |= {"raw", "raw/orders.parquet"}
        storage = storage_at(server, account_key=KEY)
        found = [each.path for each in storage.walk(KeyRange(ROOT))]
        met, stretches = storage.split(ROOT, parts=8)
        assert [each.path for each in met] == found
        assert stretches == []
    assert found == [f"{ROOT}/raw/orders.parquet/part-0.parquet"]


def test_a_page_may_be_empty_although_others_follow() -> None:
    first = "<EnumerationResults><Blobs/><NextMarker>0</NextMarker></EnumerationResults>"

    def answer(request: Request) -> Response | None:
        is_first = "comp" in request.query and "marker" not in request.query
        return Response(200, first.encode()) if is_first else None

    with serving(answer=answer) as server:
        storage = storage_at(server, account_key=KEY)
        assert storage.bucket(ROOT.removeprefix("abfss://")).page("", limit=1).entries[0].size == 4


def test_tiers_are_storage_classes_and_archived_blobs_are_said_to_be() -> None:
    with serving() as server:
        server.tiers["a.csv"] = "Archive"
        storage = storage_at(server, account_key=KEY)
        (listed,) = storage.walk(KeyRange(ROOT))
        assert isinstance(listed, ListedFile)
        assert (listed.storage_class, listed.modified) == ("archive", 1_700_000_000_000_000)
        with pytest.raises(OSError, match="it is archived; restore it"):
            storage.read(listed.path)


def test_names_that_xml_cannot_hold_are_decoded() -> None:
    with AzureServer({"lake": {"bell\x07%41.csv": b"data"}}) as server:
        (listed,) = storage_at(server, account_key=KEY).walk(KeyRange(ROOT))
        assert isinstance(listed, ListedFile)
        assert listed.path == f"{ROOT}/bell\x07%41.csv"


def test_a_file_that_grew_or_shrank_since_it_was_listed_is_read_to_its_end() -> None:
    with AzureServer({"lake": {"a.bin": bytes(100_000) + b"PAR1"}}) as server:
        storage = storage_at(server, account_key=KEY)
        for listed in (90_000, 200_000, 5_000_000, None):
            with storage.open(f"{ROOT}/a.bin", size=listed) as file:
                assert file.tail(4) == b"PAR1"
                assert file.size == 100_004


def test_what_is_no_listing_is_said_so() -> None:
    with serving(answer=lambda _request: Response(200, b"<html/>")) as server:
        (listing,) = storage_at(server, account_key=KEY).walk(KeyRange(ROOT))
    assert isinstance(listing, ListingProblem)
    assert "is not from Azure" in listing.reason


@pytest.mark.parametrize(
    ("text", "access"),
    [
        (
            f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={KEY};"
            "EndpointSuffix=core.windows.net",
            AzureAccess(account="a", account_key=KEY),
        ),
        (
            "AccountName=a;AccountKey=k;EndpointSuffix=core.chinacloudapi.cn",
            AzureAccess(
                account="a",
                account_key="k",
                endpoint_url="https://a.blob.core.chinacloudapi.cn",
            ),
        ),
        (
            f"BlobEndpoint=https://a.blob.core.windows.net/;SharedAccessSignature={SAS}",
            AzureAccess(account="a", endpoint_url="https://a.blob.core.windows.net", sas_token=SAS),
        ),
    ],
)
def test_a_connection_string_says_account_endpoint_and_key(text: str, access: AzureAccess) -> None:
    section = AzureSourceSettings(buckets=("lake",), connection_string=ConnectionString(text))
    assert AzureAccess.of(section) == access
    assert KEY not in f"{section} {access!r}"


def test_a_section_becomes_an_access() -> None:
    section = AzureSourceSettings(
        buckets=("lake",), account="a", account_key=Secret("k"), endpoint_url="http://x/a"
    )
    access = AzureAccess.of(section)
    assert access == AzureAccess(account="a", account_key="k", endpoint_url="http://x/a")
    assert access.container("lake") == ContainerAddress("lake", "a")


def test_each_cloud_has_its_own_domain() -> None:
    china = ContainerAddress.parse("lake@store.dfs.core.chinacloudapi.cn")
    assert china == ContainerAddress("lake", "store", "core.chinacloudapi.cn")
    assert AzureAccess().account_url(china) == "https://store.blob.core.chinacloudapi.cn"
    access = AzureAccess(account="store", endpoint_url="https://store.dfs.core.chinacloudapi.cn")
    assert access.account_url(china) == "https://store.blob.core.chinacloudapi.cn"
    assert access.container("lake") == china


def test_keys_and_signatures_are_not_for_the_containers_of_others() -> None:
    mine = AzureAccess(account="mine", sas_token=SAS, client_secret=SECRET)
    assert mine.for_container(ContainerAddress("lake", "mine")) == mine
    theirs = mine.for_container(ContainerAddress("lake", "theirs"))
    assert (theirs.account, theirs.sas_token) == ("theirs", "")
    assert theirs.client_secret == SECRET
    elsewhere = ContainerAddress("lake", "mine", "core.chinacloudapi.cn")
    assert mine.for_container(elsewhere) == AzureAccess(account="mine", anonymous=True)
    with serving(public=True) as server:
        storage = storage_at(server, sas_token=SAS)
        other = storage._new_bucket("lake@theirs.dfs.core.windows.net")
        assert SAS not in other._credentials._access.sas_token


@pytest.mark.parametrize(
    "login", [SharedKey("a", "hush"), SasToken("sig=hush"), BearerToken("hush"), Token("hush")]
)
def test_no_login_shows_itself(login: object) -> None:
    assert "hush" not in f"{login!r} {login}"


def test_a_key_that_is_no_base64_is_said_so() -> None:
    with serving() as server, pytest.raises(NoCredentials, match="not valid base64") as refused:
        storage_at(server, account_key="hush é").files(ROOT)
    assert "hush" not in str(refused.value)
