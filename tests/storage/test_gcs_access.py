"""How buckets of Google are reached: keys, logins, the machine's account, and who pays."""

import json
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import PrivateFormat

from gcs_server import REFRESH, GcsServer, pem
from http_server import Response
from lumos.config.secret import Secret
from lumos.config.sources import GcsSourceSettings
from lumos.storage import KeyRange, ListedFile, ListingProblem
from lumos.storage.errors import NoCredentials
from lumos.storage.gcs import GcsAccess, GcsStorage
from storage_folders import BRIEF

# Where google-auth exchanges a login by gcloud, whatever its file says.
USER_TOKENS = "google.oauth2.credentials._GOOGLE_OAUTH2_TOKEN_ENDPOINT"
OBJECTS = {"lake": {"a.csv": b"data"}}


def storage_at(server: GcsServer, **facts: object) -> GcsStorage:
    access = GcsAccess(endpoint_url=server.url, **facts)  # type: ignore[arg-type]
    return GcsStorage(access, retries=BRIEF)


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_a_service_account_signs_for_its_token_once(form: PrivateFormat) -> None:
    with GcsServer(OBJECTS) as server:
        storage = storage_at(server, credentials=server.account(private_key=pem(form)))
        assert storage.read("gs://lake/a.csv") == b"data"
        storage.write("gs://lake/b.csv", b"more")
        assert storage.files("gs://lake") == ["a.csv", "b.csv"]
        assert [request.path for request in server.requests].count("/token") == 1


def test_a_token_is_renewed_before_it_ends() -> None:
    with GcsServer(OBJECTS, seconds=299) as server:
        storage = storage_at(server, credentials=server.account())
        storage.files("gs://lake")
        storage.files("gs://lake")
        used = [request.headers.get("authorization", "") for request in server.requests]
        assert [each for each in used if each] == [f"Bearer {token}" for token in server.given]
        assert len(server.given) == 2


@pytest.mark.parametrize("way", ["configured file", "variable", "gcloud", "machine"])
def test_credentials_are_found_in_the_usual_places(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with GcsServer(OBJECTS) as server:
        file = tmp_path / "application_default_credentials.json"
        file.write_text(server.user())
        monkeypatch.setattr(USER_TOKENS, f"{server.url}/token")
        facts = {"credentials_file": str(file)} if way == "configured file" else {}
        match way:
            case "variable":
                monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
            case "gcloud":
                monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
            case "machine":
                monkeypatch.delenv("NO_GCE_CHECK")
                host = server.url.removeprefix("http://")
                monkeypatch.setattr("google.auth.compute_engine._metadata._GCE_METADATA_HOST", host)
                # Read from the environment when the module is imported.
                monkeypatch.setattr("google.auth.compute_engine._metadata._NO_GCE_CHECK", False)
                monkeypatch.setenv("GCE_METADATA_HOST", host)
                monkeypatch.setenv("GCE_METADATA_IP", host)
        assert storage_at(server, **facts).read("gs://lake/a.csv") == b"data"


def test_federated_credentials_are_exchanged_for_a_token(tmp_path: Path) -> None:
    subject = tmp_path / "subject"
    subject.write_text("token-of-another-cloud")
    with GcsServer(OBJECTS) as server:
        federated = {
            "type": "external_account",
            "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q",
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "token_url": f"{server.url}/sts",
            "credential_source": {"file": str(subject)},
        }
        storage = storage_at(server, credentials=json.dumps(federated))
        assert storage.read("gs://lake/a.csv") == b"data"
        (asked,) = (request for request in server.requests if request.path == "/sts")
        assert b"subject_token=token-of-another-cloud" in asked.body


def test_a_file_of_keys_travels_to_where_it_is_not(tmp_path: Path) -> None:
    with GcsServer(OBJECTS) as server:
        file = tmp_path / "key.json"
        file.write_text(server.account())
        section = GcsSourceSettings(
            buckets=("lake",), credentials_file=str(file), endpoint_url=server.url
        )
        access = GcsAccess.of(section)
        file.unlink()
        storage = GcsStorage(access, retries=BRIEF)
        assert storage.read("gs://lake/a.csv") == b"data"
        assert "PRIVATE KEY" not in repr(access)


@pytest.mark.parametrize(
    ("credentials", "output"),
    [
        ("no json", "'credentials' contains no Google credentials"),
        ("[1]", "'credentials' contains no Google credentials"),
        ({"type": "service_account", "client_email": "a@b"}, "missing fields token_uri"),
        ({"type": "other"}, "Type is other, expected one of"),
        (
            {
                "type": "service_account",
                "client_email": "a",
                "private_key": "hush-hush",
                "token_uri": "u",
            },
            "'credentials' contains no Google credentials",
        ),
        (
            {
                "type": "service_account",
                "client_email": "a",
                "private_key": "-----BEGIN PRIVATE KEY-----aHVzaA==-----END PRIVATE KEY-----",
                "token_uri": "u",
            },
            "'credentials' contains no Google credentials",
        ),
        (
            {"type": "service_account", "client_email": "a", "private_key": 5, "token_uri": "u"},
            "'credentials' contains no Google credentials",
        ),
    ],
)
def test_invalid_credentials_are_reported_without_their_text(
    credentials: object, output: str
) -> None:
    text = credentials if isinstance(credentials, str) else json.dumps(credentials)
    with GcsServer(OBJECTS) as server:
        storage = storage_at(server, credentials=text)
        with pytest.raises(NoCredentials) as refused:
            storage.read("gs://lake/a.csv")
    assert output in str(refused.value)
    assert "hush" not in str(refused.value)


def test_a_refused_statement_is_reported_with_googles_message() -> None:
    with GcsServer(OBJECTS) as server:
        storage = storage_at(server, credentials=server.account(client_email="other@lake"))
        with pytest.raises(
            NoCredentials, match=r"Google returned no token: invalid_grant: Invalid JWT Signature\."
        ):
            storage.read("gs://lake/a.csv")
        (listing,) = storage.walk(KeyRange("gs://lake"))
        assert isinstance(listing, ListingProblem)
        assert listing.code == "permission_denied"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with GcsServer(OBJECTS) as server:
        storage = storage_at(server, credentials_file=str(tmp_path / "none.json"))
        with pytest.raises(NoCredentials, match=r"none\.json cannot be read: No such file"):
            storage.read("gs://lake/a.csv")


def test_nothing_is_found_where_nothing_is() -> None:
    with GcsServer(OBJECTS) as server, pytest.raises(NoCredentials) as refused:
        storage_at(server).read("gs://lake/a.csv")
    assert refused.value.code == "NoCredentials"


def test_public_buckets_are_read_without_a_token() -> None:
    with GcsServer(OBJECTS) as server:
        server.given.append("")
        storage = storage_at(server, anonymous=True)
        assert storage.files("gs://lake") == ["a.csv"]
        assert storage.read("gs://lake/a.csv") == b"data"
        storage.write("gs://lake/b.csv", b"more")
        assert {request.path for request in server.requests} & {"/token"} == set()
        reads = [request.headers for request in server.requests if request.method == "GET"]
        assert not any("authorization" in headers for headers in reads)


def test_an_emulator_of_the_environment_needs_no_credentials() -> None:
    host = "localhost:4443"
    access = GcsAccess().resolve({"STORAGE_EMULATOR_HOST": host})
    assert (access.endpoint_url, access.anonymous) == (f"http://{host}", True)
    assert GcsAccess().resolve({}).endpoint_url == "https://storage.googleapis.com"


@pytest.mark.parametrize("first", ["read", "list"])
def test_a_project_pays_only_where_a_bucket_wants_it(first: str) -> None:
    for payer in ("", "analytics"):
        with GcsServer(OBJECTS, payer=payer) as server:
            storage = storage_at(server, credentials=server.account(), project="analytics")
            if first == "list":
                storage.files("gs://lake")
            assert storage.read("gs://lake/a.csv") == b"data"
            named = {request.headers.get("x-goog-user-project", "") for request in server.requests}
            assert named == {"", "analytics"} if payer else {""}


def test_errors_contain_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    with GcsServer(OBJECTS) as server:
        monkeypatch.setattr(USER_TOKENS, f"{server.url}/token")
        storage = storage_at(server, credentials=server.user())
        storage.files("gs://lake")
        server.given.clear()
        (listing,) = storage.walk(KeyRange("gs://lake"))
        assert isinstance(listing, ListingProblem)
        assert listing.code == "permission_denied"
        assert "authError" in listing.reason
        output = f"{listing} {storage.access!r}"
    assert "hush" not in output
    assert REFRESH not in output


def test_a_section_becomes_an_access() -> None:
    section = GcsSourceSettings(
        buckets=("lake",), project="analytics", credentials=Secret("{}"), anonymous=True
    )
    assert GcsAccess.of(section) == GcsAccess(project="analytics", credentials="{}", anonymous=True)


def test_storage_classes_and_generations_are_reported() -> None:
    with GcsServer({"lake": {"a.csv": b"1"}}) as server:
        storage = storage_at(server, credentials=server.account())
        (before,) = storage.walk(KeyRange("gs://lake"))
        server.put("lake", "a.csv", b"2")
        (after,) = storage.walk(KeyRange("gs://lake"))
    assert isinstance(before, ListedFile)
    assert isinstance(after, ListedFile)
    assert (before.storage_class, before.modified) == ("standard", 1_700_000_000_123_000)
    assert before.etag != after.etag


def test_the_key_after_which_a_page_begins_is_not_listed_again() -> None:
    with GcsServer({"lake": dict.fromkeys("abc", b"1")}) as server:
        bucket = storage_at(server, credentials=server.account()).bucket("lake")
        assert [entry.key for entry in bucket.page("", after="a", limit=1).entries] == ["b"]
        assert [entry.key for entry in bucket.page("", after="aa", limit=1).entries] == ["b"]
        assert bucket.page("", after="c", limit=1).entries == []


@pytest.mark.parametrize("key", ["a//b.csv", "/lead.csv", "line\nbreak.csv"])
def test_keys_that_are_no_paths_are_listed_and_read(key: str) -> None:
    with GcsServer({"lake": {key: b"data"}}) as server:
        storage = storage_at(server, credentials=server.account())
        (listed,) = storage.walk(KeyRange("gs://lake"))
        assert isinstance(listed, ListedFile)
        assert listed.path == f"gs://lake/{key}"
        with storage.open(listed.path, size=4) as file:
            assert (file.head(2), file.tail(2)) == (b"da", b"ta")


def test_what_is_no_listing_is_said_so() -> None:
    for body in (b"<html/>", b"[]", b'{"items": [{}]}'):
        answer = Response(200, body)
        with GcsServer(answer=lambda _request, answer=answer: answer) as server:  # type: ignore[misc]
            (listing,) = storage_at(server, anonymous=True).walk(KeyRange("gs://lake"))
        assert isinstance(listing, ListingProblem)
        assert "is not from Google Cloud Storage" in listing.reason


def test_what_needs_a_token_names_the_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.auth.exceptions", None)
    with GcsServer(OBJECTS) as server:
        server.given.append("")
        assert storage_at(server, anonymous=True).read("gs://lake/a.csv") == b"data"
        with pytest.raises(NoCredentials, match=r"need google-auth.*'lumos\[gcs\]'") as missing:
            storage_at(server, credentials=server.account()).read("gs://lake/a.csv")
    assert missing.value.code == "NoLibrary"
