"""How containers of Azure are reached: keys, signatures, tokens, and how addresses are spelled."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from azure_server import ACCOUNT, KEY, SAS, SECRET, AzureServer, error
from http_server import Request, Response
from lumos.config.secret import ConnectionString, Secret
from lumos.config.sources import AzureSourceSettings
from lumos.storage import Listed, Stretch, Unlisted
from lumos.storage.azure import AzureAccess, AzureStorage
from lumos.storage.azure.access import Container
from lumos.storage.azure.signing import Bearer, Sas, SharedKey
from lumos.storage.errors import NoCredentials
from lumos.storage.tokens import Token
from storage_places import BRIEF

# Nothing is found by itself on this machine.
NOWHERE = {"AZURE_POD_IDENTITY_AUTHORITY_HOST": "none", "PATH": "/nowhere"}
ROOT = f"abfss://lake@{ACCOUNT}.dfs.core.windows.net"


def storage_at(
    server: AzureServer, environment: Mapping[str, str] = NOWHERE, **facts: object
) -> AzureStorage:
    access = AzureAccess(account=ACCOUNT, endpoint_url=server.endpoint, **facts)  # type: ignore[arg-type]
    return AzureStorage(access, environment=environment, patience=BRIEF)


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
        {"tenant_id": "tenant", "client_id": "client", "client_secret": SECRET},
    ],
)
def test_each_way_to_be_let_in_lists_reads_writes_and_removes(facts: dict[str, str]) -> None:
    with serving() as server:
        environment = {**NOWHERE, "AZURE_AUTHORITY_HOST": server.url}
        used(storage_at(server, environment, **facts))


def test_odd_keys_are_signed_too() -> None:
    with AzureServer({"lake": {"a//b c+ü%.csv": b"data"}}) as server:
        storage = storage_at(server, account_key=KEY)
        (listed,) = storage.walk(Stretch(ROOT))
        assert isinstance(listed, Listed)
        with storage.open(listed.path, size=4) as file:
            assert file.tail(2) == b"ta"


@pytest.mark.parametrize("way", ["variables", "key", "sas", "string", "workload", "app", "machine"])
def test_credentials_are_found_in_the_usual_places(way: str, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("signed\n")
    with serving() as server:
        host = {"AZURE_AUTHORITY_HOST": server.url}
        person = {"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "client", **host}
        found = {
            "variables": {**person, "AZURE_CLIENT_SECRET": SECRET},
            "key": {"AZURE_STORAGE_KEY": KEY},
            "sas": {"AZURE_STORAGE_ACCOUNT": ACCOUNT, "AZURE_STORAGE_SAS_TOKEN": SAS},
            "string": {
                "AZURE_STORAGE_CONNECTION_STRING": f"AccountName={ACCOUNT};AccountKey={KEY}"
            },
            "workload": {**person, "AZURE_FEDERATED_TOKEN_FILE": str(token)},
            "app": {"IDENTITY_ENDPOINT": f"{server.url}/identity", "IDENTITY_HEADER": "header"},
            "machine": {"AZURE_POD_IDENTITY_AUTHORITY_HOST": server.url},
        }[way]
        used(storage_at(server, {**NOWHERE, **found}))


def test_the_command_line_of_azure_is_asked_last(tmp_path: Path) -> None:
    with serving() as server:
        server.tokens.append("eyJ.of.cli")
        program = tmp_path / "az"
        program.write_text('#!/bin/sh\necho \'{"accessToken": "eyJ.of.cli"}\'\n')
        program.chmod(0o755)
        used(storage_at(server, {**NOWHERE, "PATH": f"{tmp_path}:/bin"}))


def test_a_key_of_another_account_is_not_sent() -> None:
    environment = {**NOWHERE, "AZURE_STORAGE_ACCOUNT": "other", "AZURE_STORAGE_KEY": KEY}
    with serving() as server, pytest.raises(NoCredentials) as refused:
        storage_at(server, environment).read(f"{ROOT}/a.csv")
    assert refused.value.code == "NoCredentials"
    assert server.requests == []


def test_what_the_environment_lets_in_does_not_travel() -> None:
    environment = {**NOWHERE, "AZURE_STORAGE_ACCOUNT": ACCOUNT, "AZURE_STORAGE_KEY": KEY}
    storage = AzureStorage(AzureAccess(), environment=environment, patience=BRIEF)
    assert storage.access == AzureAccess(account=ACCOUNT)


@pytest.mark.parametrize("odd", [" x", "é"])
def test_a_signature_that_cannot_be_sent_is_not_told(odd: str) -> None:
    with serving() as server:
        (listing,) = storage_at(server, sas_token=f"{SAS}{odd}").walk(Stretch(ROOT))
    assert isinstance(listing, Unlisted)
    assert "hush" not in listing.reason
    assert "holds a character that nobody may send" in listing.reason


def test_public_containers_are_read_without_credentials() -> None:
    with serving(public=True) as server:
        storage = storage_at(server, anonymous=True)
        assert storage.files(ROOT) == ["a.csv"]
        assert storage.read(f"{ROOT}/a.csv") == b"data"
        assert not any("authorization" in request.headers for request in server.requests)


def test_a_refused_secret_is_told_without_it() -> None:
    with serving() as server:
        environment = {**NOWHERE, "AZURE_AUTHORITY_HOST": server.url}
        login = {"tenant_id": "t", "client_id": "c", "client_secret": f"{SECRET}-not"}
        storage = storage_at(server, environment, **login)
        (listing,) = storage.walk(Stretch(ROOT))
        assert isinstance(listing, Unlisted)
    assert listing.code == "permission_denied"
    assert "Microsoft Entra gives no token: AADSTS7000215" in listing.reason


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"client_secret": "hush-hush"}, "needs a 'tenant_id' beside it"),
        ({"client_secret": "hush-hush", "tenant_id": "t"}, "needs a 'client_id' beside it"),
        ({"account_key": "hush-hush!"}, "not in base64 as Azure shows it"),
    ],
)
def test_credentials_that_are_none_are_told_without_their_text(
    facts: dict[str, str], told: str
) -> None:
    with serving() as server, pytest.raises(NoCredentials) as refused:
        storage_at(server, **facts).files(ROOT)
    assert told in str(refused.value)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize("facts", [{"account_key": KEY}, {"sas_token": SAS}])
def test_no_secret_stands_in_what_is_told(facts: dict[str, str]) -> None:
    told = f"{KEY} {SAS} sig=hush-hush+signature="
    refusal = error(403, "AuthenticationFailed", f"Signature fields: {told}")
    with AzureServer({"lake": {}}, answer=lambda _request: refusal) as server:
        storage = storage_at(server, **facts)
        (listing,) = storage.walk(Stretch(ROOT))
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
    storage = AzureStorage(access, environment=NOWHERE, patience=BRIEF._replace(tries=1))
    (listing,) = storage.walk(Stretch(ROOT))
    with pytest.raises(OSError, match="does not answer") as gone:
        storage.read(f"{ROOT}/a.csv")
    assert "hush" not in f"{listing} {gone.value}"
    assert "does not answer" in str(listing)


# What only Azure has


def test_folders_of_the_account_are_no_files() -> None:
    with AzureServer({"lake": {"raw/orders.parquet/part-0.parquet": b"data"}}) as server:
        server.folders |= {"raw", "raw/orders.parquet"}
        storage = storage_at(server, account_key=KEY)
        found = [each.path for each in storage.walk(Stretch(ROOT))]
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
        (listed,) = storage.walk(Stretch(ROOT))
        assert isinstance(listed, Listed)
        assert (listed.storage_class, listed.modified) == ("archive", 1_700_000_000_000_000)
        with pytest.raises(OSError, match="it is archived; restore it"):
            storage.read(listed.path)


def test_names_that_xml_cannot_hold_are_decoded() -> None:
    with AzureServer({"lake": {"bell\x07%41.csv": b"data"}}) as server:
        (listed,) = storage_at(server, account_key=KEY).walk(Stretch(ROOT))
        assert isinstance(listed, Listed)
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
        (listing,) = storage_at(server, account_key=KEY).walk(Stretch(ROOT))
    assert isinstance(listing, Unlisted)
    assert "does not answer as Azure does" in listing.reason


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
    assert access.container("lake") == Container("lake", "a")


def test_each_cloud_has_its_own_domain() -> None:
    china = Container.parse("lake@store.dfs.core.chinacloudapi.cn")
    assert china == Container("lake", "store", "core.chinacloudapi.cn")
    assert AzureAccess().account_url(china) == "https://store.blob.core.chinacloudapi.cn"
    access = AzureAccess(account="store", endpoint_url="https://store.dfs.core.chinacloudapi.cn")
    assert access.account_url(china) == "https://store.blob.core.chinacloudapi.cn"
    assert access.container("lake") == china


def test_keys_and_signatures_are_not_for_the_containers_of_others() -> None:
    mine = AzureAccess(account="mine", sas_token=SAS, client_secret=SECRET)
    assert mine.reaching(Container("lake", "mine")) == mine
    theirs = mine.reaching(Container("lake", "theirs"))
    assert (theirs.account, theirs.sas_token) == ("theirs", "")
    assert theirs.client_secret == SECRET
    elsewhere = Container("lake", "mine", "core.chinacloudapi.cn")
    assert mine.reaching(elsewhere) == AzureAccess(account="mine", anonymous=True)
    with serving(public=True) as server:
        storage = storage_at(server, sas_token=SAS)
        other = storage._new_bucket("lake@theirs.dfs.core.windows.net")
        assert SAS not in other._credentials._access.sas_token


@pytest.mark.parametrize(
    "login", [SharedKey("a", "hush"), Sas("sig=hush"), Bearer("hush"), Token("hush")]
)
def test_no_login_shows_itself(login: object) -> None:
    assert "hush" not in f"{login!r} {login}"


def test_a_key_that_is_no_base64_is_said_so() -> None:
    with serving() as server, pytest.raises(NoCredentials, match="not in base64") as refused:
        storage_at(server, account_key="hush é").files(ROOT)
    assert "hush" not in str(refused.value)
