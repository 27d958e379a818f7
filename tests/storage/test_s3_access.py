"""Who may in: where credentials, endpoints and regions come from, and that nobody sees them."""

import hashlib
import json
import pickle
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from botocore.credentials import SSOProvider
from botocore.tokens import SSOTokenProvider

from lumos.config.secret import Secret
from lumos.config.sources import S3SourceSettings
from lumos.storage import FileSelection, KeyRange, storage_of
from lumos.storage.errors import NoCredentials
from lumos.storage.s3 import S3Access, S3Storage
from lumos.storage.s3.credentials import S3Credentials
from s3_server import Request, Response, S3Server, error

SECRETS = {
    "access_key_id": "key-id-of-somebody",
    "secret_access_key": "hush-hush",
    "session_token": "tok-tok",
}
ROLE = "arn:aws:iam::1:role/reader"


def sts(request: Request) -> Response:
    """The answer of Amazon's token service to any request for a role."""
    action = parse_qs(request.body.decode())["Action"][0]
    body = f"""<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{action}Result>
        <Credentials><AccessKeyId>role-key</AccessKeyId><SecretAccessKey>role-secret</SecretAccessKey>
        <SessionToken>role-token</SessionToken><Expiration>2999-01-01T00:00:00Z</Expiration>
        </Credentials></{action}Result></{action}Response>"""
    return Response(200, body.encode())


def found(
    access: S3Access | None = None, environment: Mapping[str, str] | None = None
) -> tuple[str, str, str]:
    """The keys that an access finds on a machine with these variables."""
    with pytest.MonkeyPatch.context() as variables:
        for name, value in (environment or {}).items():
            variables.setenv(name, value)
        keys = S3Credentials((access or S3Access()).resolve()).current()
    assert keys is not None
    return keys


def profiles(folder: Path, config: str = "", credentials: str = "") -> dict[str, str]:
    (folder / "config").write_text(config)
    (folder / "credentials").write_text(credentials)
    return {
        "AWS_CONFIG_FILE": str(folder / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials"),
    }


def test_the_configuration_says_all_of_it() -> None:
    section = S3SourceSettings(
        buckets=("lake",), region="eu-west-1", endpoint_url="http://minio:9000", profile="p",
        role_arn="arn:r", path_style=True, **{name: Secret(text) for name, text in SECRETS.items()},
    )  # fmt: skip
    assert S3Access.of(section) == S3Access(
        region="eu-west-1", endpoint_url="http://minio:9000", profile="p", role_arn="arn:r",
        path_style=True, **SECRETS,
    )  # fmt: skip


def test_an_access_travels_but_shows_no_secret() -> None:
    access = S3Access(region="eu-west-1", **SECRETS)
    selection = FileSelection("s3://lake", access=access)
    assert pickle.loads(pickle.dumps(selection)) == selection
    for text in (repr(access), str(access), f"{selection}", repr([selection])):
        assert not any(secret in text for secret in SECRETS.values())
    assert "eu-west-1" in repr(access)


def test_no_error_repeats_a_secret() -> None:
    def chatty(request: Request) -> Response:
        everything = f"{list(SECRETS.values())} {request.headers}"
        return error(403, "AccessDenied", everything)

    with S3Server({"lake": {}}, answer=chatty) as server:
        storage = S3Storage(S3Access(endpoint_url=server.url, **SECRETS))
        texts = [str(listing) for listing in storage.walk(KeyRange("s3://lake"))]
        for path in ("s3://lake/a", "s3://lake/odd//a"):
            with pytest.raises(PermissionError) as caught:
                storage.read(path)
            texts.append(f"{caught.value!r} {caught.value.__cause__!r}")
    assert all("AccessDenied" in text for text in texts)
    assert not any(secret in text for text in texts for secret in SECRETS.values())


def test_an_access_has_one_storage_in_a_process() -> None:
    access = S3Access(endpoint_url="http://minio:9000")
    assert storage_of("s3://a/b", access) is storage_of("s3://c", access)
    assert storage_of("s3://a", S3Access(endpoint_url="http://other")) is not storage_of("s3://a")


@pytest.mark.parametrize(
    ("access", "bucket", "url"),
    [
        (S3Access(), "lake", "https://lake.s3.us-east-1.amazonaws.com"),
        (S3Access(region="eu-west-1"), "lake", "https://lake.s3.eu-west-1.amazonaws.com"),
        (S3Access(region="cn-north-1"), "lake", "https://lake.s3.cn-north-1.amazonaws.com.cn"),
        (S3Access(path_style=True), "lake", "https://s3.us-east-1.amazonaws.com/lake"),
        (S3Access(), "my.lake", "https://s3.us-east-1.amazonaws.com/my.lake"),
        (S3Access(), "My_Lake", "https://s3.us-east-1.amazonaws.com/My_Lake"),
        (S3Access(endpoint_url="http://minio:9000"), "lake", "http://minio:9000/lake"),
        (S3Access(endpoint_url="https://x/s3/"), "lake", "https://x/s3/lake"),
        (S3Access(endpoint_url="https://{bucket}.oss.example.com"), "lake", "https://lake.oss.example.com"),
    ],
)  # fmt: skip
def test_the_address_of_a_bucket(access: S3Access, bucket: str, url: str) -> None:
    assert access.resolve({}).bucket_url(bucket) == url


def test_a_bucket_may_be_the_host_itself() -> None:
    lake = S3Server({"lake": {"a b": b"1", "odd//a": b"2"}}, keys={"mine": "secret"})

    def of_host(request: Request) -> Response:
        return lake.respond(request._replace(path=f"/lake{request.path}"))

    with S3Server(answer=of_host) as server:
        # A bucket of this name needs no entry in any name server.
        host = server.url.replace("127.0.0.1", "{bucket}")
        access = S3Access(endpoint_url=host, access_key_id="mine", secret_access_key="secret")
        storage = S3Storage(access)
        storage.write("s3://127.0.0.1/c/d", b"3")
        paths = [each.path for each in storage.walk(KeyRange("s3://127.0.0.1"))]
        assert paths == ["s3://127.0.0.1/a b", "s3://127.0.0.1/c/d", "s3://127.0.0.1/odd//a"]
        assert [storage.read(path) for path in paths] == [b"1", b"3", b"2"]
        storage.discard(["s3://127.0.0.1/c/d"])
        assert set(lake.buckets["lake"]) == {"a b", "odd//a"}


def test_endpoint_and_region_come_from_the_environment_and_profiles(tmp_path: Path) -> None:
    files = profiles(tmp_path, "[profile p]\nregion = eu-west-2\nendpoint_url = http://profile\n")
    both = {"AWS_ENDPOINT_URL": "http://all", "AWS_ENDPOINT_URL_S3": "http://s3/", **files}
    assert S3Access().resolve(both).endpoint_url == "http://s3"
    assert S3Access(endpoint_url="http://mine").resolve(both).endpoint_url == "http://mine"
    assert S3Access().resolve({"AWS_DEFAULT_REGION": "eu-west-1"}).region == "eu-west-1"
    of_profile = S3Access().resolve({"AWS_PROFILE": "p", **files})
    assert (of_profile.endpoint_url, of_profile.region) == ("http://profile", "eu-west-2")


def test_what_obstore_would_take_from_the_environment_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {
        "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1", "AWS_ACCESS_KEY_ID": "other",
        "AWS_SECRET_ACCESS_KEY": "other", "AWS_SESSION_TOKEN": "other",
        "AWS_SKIP_SIGNATURE": "true", "AWS_REGION": "eu-north-1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    with S3Server({"lake": {"a": b"1"}}, keys={"mine": "secret"}) as server:
        access = S3Access(
            endpoint_url=server.url, region="eu-west-1", access_key_id="mine", secret_access_key="secret"
        )  # fmt: skip
        assert S3Storage(access).read("s3://lake/a") == b"1"
        (request,) = server.requests
    assert "x-amz-security-token" not in request.headers
    assert "/eu-west-1/s3/" in request.headers["authorization"]


def test_keys_of_the_configuration_win_over_all_others() -> None:
    environment = {"AWS_ACCESS_KEY_ID": "e", "AWS_SECRET_ACCESS_KEY": "f", "AWS_PROFILE": "none"}
    assert found(S3Access(**SECRETS), environment) == tuple(SECRETS.values())


def test_keys_of_the_environment_are_found() -> None:
    environment = {
        "AWS_ACCESS_KEY_ID": "e", "AWS_SECRET_ACCESS_KEY": "f", "AWS_SESSION_TOKEN": "g",
    }  # fmt: skip
    assert found(environment=environment) == ("e", "f", "g")


def test_a_profile_is_read_from_both_files(tmp_path: Path) -> None:
    files = profiles(
        tmp_path,
        "[default]\naws_access_key_id = a\naws_secret_access_key = b%\n[profile p]\nregion = x\n",
        "[p]\naws_access_key_id = c\naws_secret_access_key = d\naws_session_token = e\n",
    )
    in_environment = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "l"}
    assert found(environment=files) == ("a", "b%", "")
    assert found(environment={"AWS_PROFILE": "p", **files}) == ("c", "d", "e")
    assert found(S3Access(profile="p"), {**files, **in_environment}) == ("c", "d", "e")


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ("[profile other]\nregion = x", "there is no profile 'p' in ~/.aws"),
        ("[profile p]\nregion = x", "the profile 'p' has no credentials"),
        ("[profile p]\nrole_arn = r\nmfa_serial = m", "aws configure export-credentials"),
        (
            "[profile p]\nsource_profile = q\nrole_arn = r\n[profile q]\nrole_arn = r\nmfa_serial = m",
            "--profile q",
        ),
        ("[profile p]\nrole_arn = r", "source_profile"),
        ("[profile p]\ncredential_process = hush-hush", "No such file|process of the profile"),
        ("[profile p]\ncredential_process = false", "credential_process of the profile 'p' failed"),
        ("[profile p]\nsso_session = s\nsso_account_id = 1", 'sso-session does not exist: "s"'),
        (
            "[profile p]\nsso_session = s\nsso_account_id = 1\nsso_role_name = r\n"
            "[sso-session s]\nsso_region = eu-west-1\nsso_start_url = https://corp",
            "run: aws sso login --profile p",
        ),
        ("[profile p\naws_secret_access_key = hush-hush", "cannot be read"),
    ],
)
def test_a_profile_that_does_not_help_says_why(tmp_path: Path, config: str, text: str) -> None:
    with pytest.raises(NoCredentials, match=text) as caught:
        found(S3Access(profile="p"), profiles(tmp_path, config))
    assert "hush-hush" not in f"{caught.value!r} {caught.value.__cause__!r}"


def test_a_program_may_hand_out_credentials(tmp_path: Path) -> None:
    program = tmp_path / "vend it"
    text = {"Version": 1, "AccessKeyId": "a", "SecretAccessKey": "b", "SessionToken": "c"}
    program.write_text(f"#!/bin/sh\necho '{json.dumps(text)}'\n")
    program.chmod(0o755)
    files = profiles(tmp_path, f"[profile p]\ncredential_process = '{program}' --fast\n")
    assert found(S3Access(profile="p"), files) == ("a", "b", "c")


def test_a_role_is_taken_on_with_what_the_usual_places_have() -> None:
    with S3Server(answer=sts) as server:
        environment = {"AWS_ACCESS_KEY_ID": "e", "AWS_SECRET_ACCESS_KEY": "f"}
        access = S3Access(endpoint_url=server.url, role_arn=ROLE)
        assert found(access, environment) == ("role-key", "role-secret", "role-token")
        (request,) = server.requests
    assert b"Action=AssumeRole&" in request.body
    assert b"RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Freader" in request.body
    assert "Credential=e/" in request.headers["authorization"]
    assert "/sts/aws4_request" in request.headers["authorization"]


def test_roles_of_profiles_are_taken_on_one_after_the_other(tmp_path: Path) -> None:
    config = """
[profile last]
role_arn = arn:aws:iam::1:role/last
source_profile = middle
external_id = xyz
[profile middle]
role_arn = arn:aws:iam::1:role/middle
source_profile = first
"""
    files = profiles(
        tmp_path, config, "[first]\naws_access_key_id = a\naws_secret_access_key = b\n"
    )
    with S3Server(answer=sts) as server:
        environment = {"AWS_ENDPOINT_URL_STS": server.url, **files}
        assert found(S3Access(profile="last"), environment)[0] == "role-key"
        bodies = [request.body.decode() for request in server.requests]
    assert ["role%2Fmiddle" in body for body in bodies] == [True, False]
    assert "ExternalId=xyz" in bodies[1]


def test_a_role_that_is_refused_is_named(tmp_path: Path) -> None:
    refused = error(403, "AccessDenied", "not authorized to perform sts:AssumeRole")
    refused = refused._replace(body=b"<ErrorResponse>" + refused.body + b"</ErrorResponse>")
    with S3Server(answer=lambda _request: refused) as server:
        access = S3Access(endpoint_url=server.url, role_arn=ROLE, **SECRETS)
        with pytest.raises(NoCredentials, match=f"the role {ROLE} cannot be assumed: not auth"):
            found(access, profiles(tmp_path))


def test_a_web_identity_takes_on_its_role(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("web-token\n")
    with S3Server(answer=sts) as server:
        environment = {
            "AWS_ROLE_ARN": ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
            "AWS_ENDPOINT_URL_STS": server.url,
        }  # fmt: skip
        assert found(environment=environment)[0] == "role-key"
        (request,) = server.requests
    assert b"Action=AssumeRoleWithWebIdentity" in request.body
    assert b"WebIdentityToken=web-token" in request.body
    assert "authorization" not in request.headers


def test_a_container_is_asked_with_its_token() -> None:
    text = {
        "AccessKeyId": "a",
        "SecretAccessKey": "b",
        "Token": "c",
        "Expiration": "2999-01-01T00:00:00Z",
    }
    with S3Server(answer=lambda _request: Response(200, json.dumps(text).encode())) as server:
        environment = {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{server.url}/v1/credentials",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": "pod-token",
        }
        assert found(environment=environment) == ("a", "b", "c")
        assert server.requests[0].headers["authorization"] == "pod-token"


@pytest.mark.parametrize(
    "answer", [Response(403, b"no"), Response(200, b"no"), Response(200, b'{"Code": "Failed"}')]
)
def test_a_container_that_denies_credentials_is_reported(answer: Response) -> None:
    with S3Server(answer=lambda _request: answer) as server:
        environment = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{server.url}/v1/credentials"}
        with pytest.raises(NoCredentials, match=r"returned no credentials|from container-role"):
            found(environment=environment)


def test_the_machine_is_asked_for_its_role(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: Request) -> Response:
        if request.method == "PUT":
            return Response(200, b"metadata-token")
        assert request.headers["x-aws-ec2-metadata-token"] == "metadata-token"
        if request.path.endswith("/"):
            return Response(200, b"role-of-machine")
        assert request.path.endswith("/role-of-machine")
        text = {
            "AccessKeyId": "a",
            "SecretAccessKey": "b",
            "Token": "c",
            "Expiration": "2999-01-01T00:00:00Z",
        }
        return Response(200, json.dumps(text).encode())

    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
    with S3Server(answer=answer) as server:
        environment = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": server.url}
        assert found(environment=environment) == ("a", "b", "c")


@pytest.mark.parametrize(("minutes", "is_renewed"), [(60, False), (4, True)])
def test_credentials_are_renewed_before_they_end(
    monkeypatch: pytest.MonkeyPatch, minutes: int, is_renewed: bool
) -> None:
    ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 60 * minutes))
    text = {"AccessKeyId": "a", "SecretAccessKey": "b", "Token": "c", "Expiration": ends}
    with S3Server(answer=lambda _request: Response(200, json.dumps(text).encode())) as server:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{server.url}/v1/credentials")
        credentials = S3Credentials(S3Access())
        assert credentials.current() == ("a", "b", "c")
        asked = len(server.requests)
        assert credentials.current() == ("a", "b", "c")
        assert (len(server.requests) > asked) is is_renewed


def test_a_login_is_exchanged_for_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "home" / ".aws" / "sso" / "cache"
    # botocore looks for the home folder when it is imported.
    monkeypatch.setattr(SSOTokenProvider, "_SSO_TOKEN_CACHE_DIR", str(cache))
    monkeypatch.setattr(SSOProvider, "_SSO_TOKEN_CACHE_DIR", str(cache))
    cache.mkdir(parents=True)
    name = hashlib.sha1(b"corp", usedforsecurity=False).hexdigest()
    (cache / f"{name}.json").write_text(
        json.dumps({"accessToken": "login-token", "expiresAt": "2999-01-01T00:00:00Z"})
    )
    files = profiles(
        tmp_path,
        "[profile p]\nsso_session = corp\nsso_account_id = 1\nsso_role_name = reader\n"
        "[sso-session corp]\nsso_region = eu-west-1\nsso_start_url = https://corp\n",
    )
    text = {"roleCredentials": {"accessKeyId": "a", "secretAccessKey": "b", "sessionToken": "c",
                                "expiration": 32_503_680_000_000}}  # fmt: skip
    with S3Server(answer=lambda _request: Response(200, json.dumps(text).encode())) as server:
        environment = {"AWS_ENDPOINT_URL_SSO": server.url, **files}
        assert found(S3Access(profile="p"), environment) == ("a", "b", "c")
        (request,) = server.requests
        assert request.query == {"account_id": "1", "role_name": "reader"}
        assert request.headers["x-amz-sso_bearer_token"] == "login-token"
        server.answer = lambda _request: Response(
            401, b"{}", {"x-amzn-ErrorType": "UnauthorizedException"}
        )
        with pytest.raises(NoCredentials, match="aws sso login --profile p"):
            found(S3Access(profile="p"), environment)


def test_without_any_credentials_nothing_is_sent() -> None:
    with S3Server({"lake": {"a": b"1"}}) as server:
        storage = S3Storage(S3Access(endpoint_url=server.url))
        for path in ("s3://lake/a", "s3://lake/odd//a"):
            with pytest.raises(PermissionError, match="no credentials were found"):
                storage.read(path)
        assert server.requests == []


def test_anonymous_access_signs_nothing_whatever_the_environment_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "e")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "f")
    with S3Server({"lake": {"a": b"1", "odd//a": b"2"}}) as server:
        storage = S3Storage(S3Access(endpoint_url=server.url, anonymous=True))
        assert storage.read("s3://lake/a") + storage.read("s3://lake/odd//a") == b"12"
        assert not any("authorization" in request.headers for request in server.requests)


def test_static_keys_need_no_library_and_others_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("botocore.session", "botocore.credentials", "botocore.exceptions"):
        monkeypatch.setitem(sys.modules, name, None)
    assert found(S3Access(**SECRETS)) == tuple(SECRETS.values())
    environment = {"AWS_ACCESS_KEY_ID": "e", "AWS_SECRET_ACCESS_KEY": "f"}
    assert found(environment=environment) == ("e", "f", "")
    with pytest.raises(NoCredentials, match=r"need botocore.*pip install 'lumos\[s3\]'") as missing:
        found(S3Access(profile="p"))
    assert missing.value.code == "NoLibrary"
