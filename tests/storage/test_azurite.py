"""What Microsoft's own emulator says to our keys and signatures."""

import base64
import hashlib
import hmac
from urllib.parse import urlencode

import pytest

from lumos.storage import KeyRange, ListingProblem
from lumos.storage.azure import AzureAccess, AzureStorage
from servers.azurite import ACCOUNT, KEY
from storage_folders import BRIEF, InAzurite

pytestmark = pytest.mark.slow


@pytest.fixture
def place(azurite_endpoint: str) -> InAzurite:
    made = InAzurite(azurite_endpoint)
    made.put({"a.csv": b"data", "odd +%ü/b.csv": b"more"})
    return made


def storage_at(endpoint: str, **facts: str) -> AzureStorage:
    access = AzureAccess(account=ACCOUNT, endpoint_url=endpoint, **facts)  # type: ignore[arg-type]
    return AzureStorage(access, retries=BRIEF)


def sas(rights: str, until: str = "2099-01-01T00:00:00Z") -> str:
    """A signature for an account, made as Microsoft describes it."""
    facts = {"sv": "2021-12-02", "ss": "b", "srt": "sco", "sp": rights, "se": until}
    lines = [ACCOUNT, rights, "b", "sco", "", until, "", "", "2021-12-02", "", ""]
    made = hmac.digest(base64.b64decode(KEY), "\n".join(lines).encode(), hashlib.sha256)
    return urlencode({**facts, "sig": base64.b64encode(made).decode()})


def test_a_signature_lists_reads_writes_and_removes(
    azurite_endpoint: str, place: InAzurite
) -> None:
    storage = storage_at(azurite_endpoint, sas_token=sas("rwdlc"))
    assert [each.path for each in storage.walk(KeyRange(place.root))] == [
        f"{place.root}/a.csv",
        f"{place.root}/odd +%ü/b.csv",
    ]
    storage.write(f"{place.root}/state/x y.bin", b"1")
    assert storage.read(f"{place.root}/state/x y.bin") == b"1"
    storage.discard([f"{place.root}/state/x y.bin"])
    assert storage.files(f"{place.root}/state") == []


@pytest.mark.parametrize("rights", ["r", "rl"])
def test_permissions_that_a_signature_lacks_are_reported_without_it(
    azurite_endpoint: str, place: InAzurite, rights: str
) -> None:
    token = sas(rights)
    storage = storage_at(azurite_endpoint, sas_token=token)
    assert storage.read(f"{place.root}/a.csv") == b"data"
    listings = list(storage.walk(KeyRange(place.root)))
    with pytest.raises(PermissionError) as refused:
        storage.write(f"{place.root}/b.csv", b"1")
    assert any(isinstance(each, ListingProblem) for each in listings) == (rights == "r")
    output = f"{listings} {refused.value}"
    assert token not in output
    assert "sig=" not in output
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "facts",
    [
        {"account_key": base64.b64encode(b"another key").decode()},
        {"sas_token": sas("rl", until="2020-01-01T00:00:00Z")},
        {"sas_token": sas("rl").replace("sig=", "sig=x")},
    ],
)
def test_denied_access_is_reported(
    azurite_endpoint: str, place: InAzurite, facts: dict[str, str]
) -> None:
    (listing,) = storage_at(azurite_endpoint, **facts).walk(KeyRange(place.root))
    assert isinstance(listing, ListingProblem)
    assert listing.code == "permission_denied"
    assert not any(secret in listing.reason for secret in facts.values())


def test_a_missing_container_is_reported(azurite_endpoint: str) -> None:
    root = f"abfss://none@{ACCOUNT}.dfs.core.windows.net"
    (listing,) = storage_at(azurite_endpoint, account_key=KEY).walk(KeyRange(root))
    assert isinstance(listing, ListingProblem)
    assert "ContainerNotFound" in listing.reason
