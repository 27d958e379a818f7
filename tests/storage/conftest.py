"""Facts that the suites of this folder share."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from servers.azurite import azurite
from servers.fake_gcs import fake_gcs
from servers.hdfs import Cluster, hdfs_cluster

_CLOUDS = ("AWS_", "AZURE_", "CLOUDSDK_", "GCE_", "GOOGLE_", "IDENTITY_", "MSI_", "STORAGE_")


@pytest.fixture(autouse=True)
def no_cloud_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine outside of all clouds, with no credentials for any."""
    for name in [name for name in os.environ if name.startswith(_CLOUDS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate that a company has signed itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "minio")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(address, critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file = tmp_path / "certificate.pem"
    file.write_bytes(made.public_bytes(Encoding.PEM) + key.private_bytes(*plain))
    return file


@pytest.fixture(scope="session")
def fake_gcs_url() -> Iterator[str]:
    """The address of an emulator of Google's storage."""
    with fake_gcs() as url:
        yield url


@pytest.fixture(scope="session")
def azurite_endpoint() -> Iterator[str]:
    """The address of Microsoft's emulator."""
    with azurite() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A real Hadoop file system."""
    with hdfs_cluster() as started:
        yield started
