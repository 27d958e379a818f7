"""Addresses of stores: one spelling each, and the section or source that leads there."""

from pathlib import Path

import pytest

from azure_server import ACCOUNT, KEY, SAS, AzureServer
from gcs_server import GcsServer
from lumos.config.check import check
from lumos.config.load import load
from lumos.config.secret import ConnectionString, Secret, mask_secret_text, redact
from lumos.config.sources import (
    AzureSourceSettings,
    GcsSourceSettings,
    HdfsSourceSettings,
    S3SourceSettings,
)
from lumos.config.starter import write_sources
from lumos.errors import MisuseError
from lumos.sources import SourceNotUsable
from lumos.sources.addresses import access_of, canonical_address, roots_of, section_of
from lumos.sources.azure import AzureSource as Azure
from lumos.sources.gcs import GcsSource as Gcs
from lumos.storage import DEFAULT_ACCESS
from lumos.storage.azure import AzureAccess
from lumos.storage.gcs import GcsAccess

AZURE = f"lake@{ACCOUNT}.dfs.core.windows.net"
SECTION = AzureSourceSettings(buckets=("lake",), account=ACCOUNT, account_key=Secret(KEY))


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_KEY",
                 "AZURE_STORAGE_CONNECTION_STRING", "STORAGE_EMULATOR_HOST"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("address", "one"),
    [
        ("gs://lake/raw/", "gs://lake/raw"),
        ("gcs://lake", "gs://lake"),
        (f"abfss://{AZURE}/raw/", f"abfss://{AZURE}/raw"),
        (f"abfs://{AZURE}/raw", f"abfss://{AZURE}/raw"),
        (f"wasbs://lake@{ACCOUNT}.blob.core.windows.net/raw", f"abfss://{AZURE}/raw"),
        (f"https://{ACCOUNT}.blob.core.windows.net/lake/raw", f"abfss://{AZURE}/raw"),
        (f"https://{ACCOUNT}.dfs.core.windows.net/lake", f"abfss://{AZURE}"),
        (f"https://{ACCOUNT}.dfs.core.windows.net/lake/a%20b", f"abfss://{AZURE}/a b"),
        ("az://lake/raw", f"abfss://{AZURE}/raw"),
        ("abfss://lake/raw", f"abfss://{AZURE}/raw"),
    ],
)
def test_an_address_has_one_spelling(address: str, one: str) -> None:
    assert canonical_address(address, [SECTION]) == one


def test_an_account_is_told_by_the_environment_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MisuseError, match="az://lake has no container or account"):
        canonical_address("az://lake")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "other")
    assert canonical_address("az://lake/a") == "abfss://lake@other.dfs.core.windows.net/a"
    assert canonical_address("az://lake/a", [SECTION]) == f"abfss://{AZURE}/a"


@pytest.mark.parametrize(
    "address",
    ["az:///raw", "abfss://@x.dfs.core.windows.net/a", "https://x.blob.core.windows.net/"],
)
def test_an_address_without_a_container_is_refused(address: str) -> None:
    with pytest.raises(MisuseError, match="has no container"):
        canonical_address(address)


def test_a_signature_in_an_address_is_refused_and_not_shown() -> None:
    with pytest.raises(MisuseError, match="sas_token") as refused:
        section_of(f"https://{ACCOUNT}.blob.core.windows.net/lake/raw?{SAS}", [])
    assert "hush" not in str(refused.value)


def test_an_address_is_reached_as_the_configured_source_of_its_place() -> None:
    google = GcsSourceSettings(
        buckets=("lake",), prefixes=("x",), project="p", file_patterns=("*.csv",)
    )
    section = section_of("gs://lake/raw", [google, SECTION])
    assert section == GcsSourceSettings(buckets=("lake",), prefixes=("raw",), project="p")
    assert access_of("gs://elsewhere", [google, SECTION]) == GcsAccess.of(google)
    assert access_of("gs://elsewhere", [SECTION]) == DEFAULT_ACCESS
    blob = section_of(f"wasbs://lake@{ACCOUNT}.blob.core.windows.net/raw", [google, SECTION])
    assert blob == AzureSourceSettings(
        buckets=("lake",), prefixes=("raw",), account=ACCOUNT, account_key=Secret(KEY)
    )
    assert access_of(f"abfss://{AZURE}/state", [SECTION]) == AzureAccess.of(SECTION)
    other = access_of("abfss://lake@other.dfs.core.windows.net/state", [SECTION])
    assert other == AzureAccess(account="other")


def test_roots_are_what_scans_call_them() -> None:
    assert roots_of(GcsSourceSettings(buckets=("a", "b"), prefixes=("x/", "y"))) == [
        "gs://a/x", "gs://a/y", "gs://b/x", "gs://b/y",
    ]  # fmt: skip
    assert roots_of(SECTION) == [f"abfss://{AZURE}"]
    with AzureServer({"lake": {"raw/a.csv": b"1"}}) as server:
        section = AzureSourceSettings(buckets=("lake",), prefixes=("raw",), account=ACCOUNT,
                              account_key=Secret(KEY), endpoint_url=server.endpoint)  # fmt: skip
        assert [root.root for root in Azure(section).roots()] == roots_of(section)
    assert roots_of(S3SourceSettings(buckets=("a",))) == ["s3://a"]


def test_the_account_is_the_instance_unless_one_is_given() -> None:
    source = Azure(SECTION)
    assert source.identity == f"azure@{ACCOUNT}"
    urn = source.urn(f"abfss://{AZURE}/raw//a b", environment="PROD")
    assert str(urn) == f"lumos://azure@{ACCOUNT}/lake/raw//a%20b"
    assert (
        str(source.urn(f"abfss://{AZURE}", environment="PROD")) == f"lumos://azure@{ACCOUNT}/lake"
    )
    named = Azure(AzureSourceSettings(buckets=("lake",), account=ACCOUNT, instance="eu"))
    assert named.identity == "azure@eu"


def test_what_is_wrong_with_google_is_said_with_the_next_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("CLOUDSDK_CONFIG", "/nowhere")
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    with GcsServer({"lake": {"raw/a.csv": b"1"}}) as server:
        key = Secret(server.account())

        def told(**facts: object) -> str:
            settings = {"buckets": ("lake",), "endpoint_url": server.url, "credentials": key}
            with pytest.raises(SourceNotUsable) as refused:
                Gcs(GcsSourceSettings(**{**settings, **facts})).roots()  # type: ignore[arg-type]
            return str(refused.value)

        assert "gcloud auth application-default login" in told(credentials=None)
        assert "There is no bucket 'none'" in told(buckets=("none",))
        assert "did you mean gs://lake/raw?" in told(prefixes=("ra",))
        assert "gcloud storage ls gs://lake/" in told(prefixes=("other",))
        server.payer = "somebody"
        assert "Set 'project' to the project to bill" in told()
        server.payer = ""
        refused = told(credentials=Secret(server.account(client_email="x")))
        assert "Invalid JWT Signature" in refused


def test_what_is_wrong_with_azure_is_said_with_the_next_step() -> None:
    with AzureServer({"lake": {"raw/a.csv": b"1"}}) as server:

        def told(**facts: object) -> str:
            settings = {"buckets": ("lake",), "account": ACCOUNT, "account_key": Secret(KEY),
                        "endpoint_url": server.endpoint}  # fmt: skip
            with pytest.raises(SourceNotUsable) as refused:
                Azure(AzureSourceSettings(**{**settings, **facts})).roots()  # type: ignore[arg-type]
            return str(refused.value)

        assert f"no container 'none' in the account '{ACCOUNT}'" in told(buckets=("none",))
        assert f"did you mean abfss://{AZURE}/raw?" in told(prefixes=("ra",))
        assert f"az storage blob list -c lake --account-name {ACCOUNT}" in told(prefixes=("x",))
        assert "Set 'account'" in told(account=None, endpoint_url=None)
        garbled = told(connection_string=ConnectionString("hush"))
        assert "Invalid 'connection_string' of a source of type azure" in garbled
        assert "hush" not in garbled
        wrong = told(account_key=Secret("aHVzaA=="))
        assert "Check the key or SAS token" in wrong
        assert "aHVzaA==" not in wrong


def test_state_may_lie_in_any_store() -> None:
    for address in (f"abfss://{AZURE}/state", "gs://lake/state", "az://lake/state"):
        settings = load(None, environment={}, overrides={"state_uri": address, "sources": []})
        assert settings.state_uri == address
        assert not [note for note in check(settings, {}) if note.key == "state_uri"]


def test_a_container_before_an_at_sign_is_no_secret_but_a_password_is() -> None:
    place = f"abfss://{AZURE}/raw/a.csv"
    assert redact(f"at {place} it failed") == f"at {place} it failed"
    assert mask_secret_text(place) == place
    assert redact("abfss://lake:hush@x.dfs.core.windows.net/a").count("hush") == 0
    assert redact("postgresql://token@host/db") == "postgresql://***@host/db"
    assert "hush" not in mask_secret_text("abfss://lake:hush@x.dfs.core.windows.net/a")
    assert "hush" not in mask_secret_text(f"{place}?sig=hush")
    with pytest.raises(MisuseError):
        load(None, environment={}, overrides={"state_uri": "s3://key:hush@lake/state"})
    with pytest.raises(MisuseError):
        load(
            None,
            environment={},
            overrides={"state_uri": "abfss://lake:hush@x.dfs.core.windows.net/state"},
        )


def test_a_written_configuration_has_the_place_and_no_secret(tmp_path: Path) -> None:
    hadoop = HdfsSourceSettings(
        paths=("/lake",), urls=("http://nn:9870",), token=Secret("hush-hush")
    )
    file = tmp_path / "sources.yaml"
    write_sources(file, [hadoop, SECTION], datasets=[])
    text = file.read_text()
    assert "# Add the secret as a variable: token: ${NAME}" in text
    assert "# Add the secret as a variable: account_key: ${NAME}" in text
    assert "path: /lake\n  url: http://nn:9870" in text
    assert "hush" not in text
    assert KEY not in text
    loaded = load(file, environment={}).sources
    assert [roots_of(section) for section in loaded] == [["hdfs://nn/lake"], [f"abfss://{AZURE}"]]  # type: ignore[arg-type]


# Clouds

CHINA = "lake@acct.dfs.core.chinacloudapi.cn"


@pytest.mark.parametrize(
    ("address", "root"),
    [
        (f"abfss://{CHINA}/raw", f"abfss://{CHINA}/raw"),
        (
            "https://acct.blob.core.usgovcloudapi.net/lake/raw",
            "abfss://lake@acct.dfs.core.usgovcloudapi.net/raw",
        ),
    ],
)
def test_an_address_of_another_cloud_is_looked_at_there(address: str, root: str) -> None:
    same_name = AzureSourceSettings(buckets=("lake",), account="acct", sas_token=Secret(SAS))
    section = section_of(address, [same_name])
    assert isinstance(section, AzureSourceSettings)
    assert roots_of(section) == [canonical_address(address)] == [root]
    assert section.sas_token is None
    access = access_of(address, [same_name])
    assert isinstance(access, AzureAccess)
    assert access.sas_token == ""
    assert access.container("lake").authority == root.removeprefix("abfss://").partition("/")[0]


def test_a_source_of_another_cloud_is_found_by_it() -> None:
    there = AzureSourceSettings(
        buckets=("lake",),
        account="acct",
        sas_token=Secret(SAS),
        endpoint_url="https://acct.blob.core.chinacloudapi.cn",
    )
    section = section_of(f"abfss://{CHINA}/raw", [there])
    assert isinstance(section, AzureSourceSettings)
    assert section.sas_token == Secret(SAS)
    assert roots_of(section) == [f"abfss://{CHINA}/raw"]
    public = section_of("abfss://lake@acct.dfs.core.windows.net/raw", [there])
    assert roots_of(public) == ["abfss://lake@acct.dfs.core.windows.net/raw"]  # type: ignore[arg-type]


def test_the_environments_account_of_another_cloud_is_not_meant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    string = f"AccountName=acct;AccountKey={KEY};EndpointSuffix=core.chinacloudapi.cn"
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", string)
    public = section_of("abfss://lake@acct.dfs.core.windows.net/raw", [])
    assert roots_of(public) == ["abfss://lake@acct.dfs.core.windows.net/raw"]  # type: ignore[arg-type]
    for address, key in ((public, ""), (section_of(f"abfss://{CHINA}/raw", []), KEY)):
        assert isinstance(address, AzureSourceSettings)
        assert AzureAccess.of(address).resolve().with_keys().account_key == key


@pytest.mark.parametrize(
    "address",
    [
        "gs://user:hush@lake/x",
        "s3://user:hush@lake/x",
        "abfss://lake:hush@acct.dfs.core.windows.net/x",
        "webhdfs://user:hush@nn:9870/x",
        "hdfs://user:hush@nn/x",
        "webhdfs://user:hush/@nn/x",
    ],
)
def test_a_password_in_an_address_is_refused_and_not_shown(address: str) -> None:
    for asked in (canonical_address, section_of, access_of):
        with pytest.raises(MisuseError) as refused:
            asked(address, [])
        assert "hush" not in str(refused.value)
