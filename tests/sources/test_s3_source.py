"""Buckets as a source: roots, names of datasets, and one clear sentence where something is wrong."""

import logging
import os
import socket
from pathlib import Path

import pytest

from lumos.config.secret import Secret
from lumos.config.sources import FileSourceSettings, S3SourceSettings
from lumos.errors import MisuseError
from lumos.http.retries import RetryPolicy
from lumos.sources import SourceNotUsable
from lumos.sources import s3 as s3_source
from lumos.sources.addresses import access_of, canonical_address, section_of
from lumos.storage import DEFAULT_ACCESS, UnknownStorage
from lumos.storage.s3 import S3Access
from s3_server import Request, Response, S3Server, error

LAKE = {"raw/events/a.csv": b"1", "raw/orders.csv": b"2", "curated/x.csv": b"3"}


@pytest.fixture(autouse=True)
def no_aws_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def source(server: S3Server, **facts: object) -> s3_source.S3Source:
    settings = {"buckets": ("lake",), "endpoint_url": server.url, "anonymous": True, **facts}
    return s3_source.S3Source(S3SourceSettings(**settings))  # type: ignore[arg-type]


def test_there_is_a_root_for_each_bucket_and_prefix() -> None:
    with S3Server({"lake": dict(LAKE), "other": dict(LAKE)}) as server:
        found = source(
            server, buckets=("lake", "other"), prefixes=("/raw/", "curated"),
            file_patterns=("*.csv",), exclude=("tmp/*",), recursive=False,
        ).roots()  # fmt: skip
    assert [root.root for root in found] == [
        "s3://lake/raw", "s3://lake/curated", "s3://other/raw", "s3://other/curated",
    ]  # fmt: skip
    assert {root[1:4] for root in found} == {(("*.csv",), ("tmp/*",), False)}
    assert {root.access for root in found} == {S3Access(endpoint_url=server.url, anonymous=True)}


def test_without_a_prefix_the_bucket_is_the_root() -> None:
    with S3Server({"lake": dict(LAKE)}) as server:
        assert [root.root for root in source(server).roots()] == ["s3://lake"]


def test_an_empty_bucket_is_a_root() -> None:
    with S3Server({"lake": {}}) as server:
        assert [root.root for root in source(server).roots()] == ["s3://lake"]


def test_a_single_file_may_be_named() -> None:
    with S3Server({"lake": dict(LAKE)}) as server:
        (root,) = source(server, prefixes=("raw/orders.csv",)).roots()
    assert root.root == "s3://lake/raw/orders.csv"


@pytest.mark.parametrize(
    ("path", "urn"),
    [
        ("s3://lake", "lumos://s3/lake"),
        ("s3://lake/raw/user clicks", "lumos://s3/lake/raw/user%20clicks"),
        ("s3://lake/raw//x.csv", "lumos://s3/lake/raw//x.csv"),
        ("s3://lake/a%2Fb", "lumos://s3/lake/a%252Fb"),
    ],
)
def test_the_urn_is_the_bucket_and_the_key(path: str, urn: str) -> None:
    plain = s3_source.S3Source(S3SourceSettings(buckets=("lake",)))
    assert str(plain.urn(path, environment="PROD")) == urn


def test_an_instance_keeps_two_endpoints_apart() -> None:
    minio = s3_source.S3Source(S3SourceSettings(buckets=("lake",), instance="minio"))
    assert str(minio.urn("s3://lake/a", environment="DEV")) == "lumos://s3@minio/lake/a?env=DEV"
    assert minio.identity == "s3@minio"


def answering(answer: Response) -> S3Server:
    return S3Server({"lake": dict(LAKE)}, answer=lambda _request: answer)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            error(404, "NoSuchBucket", "The specified bucket does not exist"),
            "There is no bucket 'lake' at {url}. Check its name and, for other vendors, 'endpoint_url'.",
        ),
        (
            error(403, "InvalidAccessKeyId", "The key does not exist."),
            "No permission to list s3://lake: The key does not exist (InvalidAccessKeyId). "
            "Check the access key, and that it belongs to this endpoint.",
        ),
        (
            error(403, "SignatureDoesNotMatch", "The signatures differ"),
            "No permission to list s3://lake: The signatures differ (SignatureDoesNotMatch). "
            "Check the secret access key.",
        ),
        (
            error(403, "AccessDenied", "Access Denied"),
            "No permission to list s3://lake: Access Denied (AccessDenied). "
            "Grant s3:ListBucket on the bucket and s3:GetObject on its objects.",
        ),
        (
            error(503, "SlowDown", "Reduce your request rate"),
            "{url} is throttling requests for s3://lake: Reduce your request rate (SlowDown). "
            "Try again in a few minutes.",
        ),
        (
            Response(200, b"<html><body>Welcome!</body></html>"),
            "s3://lake cannot be listed: the response is not from S3. Check the source.",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_sentence_with_the_next_step(
    answer: Response, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_source, "INTERACTIVE_RETRIES", RetryPolicy(tries=1))
    with answering(answer) as server:
        with pytest.raises(SourceNotUsable) as caught:
            source(server).roots()
        assert str(caught.value) == sentence.format(url=server.url)


def test_nobody_at_the_endpoint_is_said_before_anything_starts() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        settings = S3SourceSettings(buckets=("a", "b"), endpoint_url=url, anonymous=True)
        with pytest.raises(SourceNotUsable) as caught:
            s3_source.S3Source(settings).roots()
    assert caught.value.found == f"{url} does not answer: Connection refused."
    assert "endpoint_url" in caught.value.next_step


def test_an_address_that_is_none_is_said_too() -> None:
    settings = S3SourceSettings(buckets=("a",), endpoint_url="http://minio:port", anonymous=True)
    with pytest.raises(SourceNotUsable, match="http://minio:port does not answer: Port could not"):
        s3_source.S3Source(settings).roots()


def test_missing_credentials_are_said_with_where_to_put_them() -> None:
    with S3Server({"lake": dict(LAKE)}) as server, pytest.raises(SourceNotUsable) as caught:
        source(server, anonymous=False).roots()
    assert caught.value.found == "No credentials for s3://lake were found."
    assert "AWS_ACCESS_KEY_ID" in caught.value.next_step
    assert "source of the type s3 in lumos.yaml" in caught.value.next_step


def test_missing_credentials_name_the_source_as_it_is_configured() -> None:
    with S3Server({"lake": dict(LAKE)}) as server, pytest.raises(SourceNotUsable) as caught:
        source(server, anonymous=False, name="raw-lake").roots()
    assert (
        caught.value.found == "No credentials for s3://lake (the s3 source 'raw-lake') were found."
    )


def test_a_profile_that_is_not_there_is_named() -> None:
    with S3Server({"lake": dict(LAKE)}) as server, pytest.raises(SourceNotUsable) as caught:
        source(server, anonymous=False, profile="prod").roots()
    assert "there is no profile 'prod' in ~/.aws" in str(caught.value)


def test_a_broken_file_of_profiles_is_named(tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/config").write_text("[default\nsecret = hush-hush\n")
    with S3Server({"lake": dict(LAKE)}) as server, pytest.raises(SourceNotUsable) as caught:
        source(server).roots()
    assert f"{tmp_path}/.aws/config cannot be read" in str(caught.value)
    assert "hush-hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("prefix", "meant"),
    [("raw/ev", "did you mean s3://lake/raw/events?"), ("nowhere", "Check the prefix")],
)
def test_a_prefix_is_a_folder_and_nearly_one_is_asked_about(prefix: str, meant: str) -> None:
    with S3Server({"lake": dict(LAKE)}) as server, pytest.raises(SourceNotUsable) as caught:
        source(server, prefixes=(prefix,)).roots()
    assert str(caught.value).startswith(f"There is nothing at s3://lake/{prefix}/.")
    assert meant in str(caught.value)


def test_one_bucket_that_may_not_be_listed_does_not_stop_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def closed(request: Request) -> Response | None:
        return error(403, "AccessDenied", "No") if request.path.startswith("/closed") else None

    with S3Server({"lake": dict(LAKE), "closed": {}}, answer=closed) as server:
        both = source(server, buckets=("closed", "lake"))
        with caplog.at_level(logging.WARNING):
            assert [root.root for root in both.roots()] == ["s3://closed", "s3://lake"]
    assert list(both.problems()) == ["s3://closed"]
    assert "No permission to list s3://closed" in caplog.text


def test_executors_are_told_the_region_that_was_found_out() -> None:
    def elsewhere(request: Request) -> Response | None:
        if "/eu-west-3/s3/" in request.headers["authorization"]:
            return None
        return error(
            400, "AuthorizationHeaderMalformed", "Wrong", **{"x-amz-bucket-region": "eu-west-3"}
        )

    with S3Server({"lake": dict(LAKE)}, answer=elsewhere) as server:
        keys = {"access_key_id": Secret("a"), "secret_access_key": Secret("b")}
        (root,) = source(server, anonymous=False, region="us-east-1", **keys).roots()
    assert isinstance(root.access, S3Access)
    assert root.access.region == "eu-west-3"


MINIO = S3SourceSettings(
    buckets=("lake", "more"), prefixes=("raw",), endpoint_url="http://minio:9000", instance="minio",
    access_key_id=Secret("a"), secret_access_key=Secret("b"), file_patterns=("*.csv",), name="n",
)  # fmt: skip
AWS = S3SourceSettings(buckets=("state",), region="eu-west-1")


def test_an_address_is_reached_as_the_configured_source_of_its_bucket() -> None:
    section = section_of("s3a://more/some/folder/", [FileSourceSettings(paths=("/x",)), AWS, MINIO])
    assert section == S3SourceSettings(
        buckets=("more",), prefixes=("some/folder/",), endpoint_url="http://minio:9000",
        instance="minio", access_key_id=Secret("a"), secret_access_key=Secret("b"),
    )  # fmt: skip
    assert section_of("s3://unknown", [AWS, MINIO]) == S3SourceSettings(buckets=("unknown",))


def test_state_is_reached_as_the_source_of_its_bucket_or_as_the_only_one() -> None:
    assert access_of("s3://state/lumos", [AWS, MINIO]) == S3Access.of(AWS)
    assert access_of("s3://elsewhere/lumos", [AWS, MINIO]) == DEFAULT_ACCESS
    assert access_of("s3://elsewhere/lumos", [MINIO]) == S3Access.of(MINIO)
    assert access_of("/var/lib/lumos", [MINIO]) == DEFAULT_ACCESS


def test_an_address_has_one_spelling() -> None:
    assert (
        canonical_address("s3a://lake/state/")
        == canonical_address("s3://lake/state")
        == "s3://lake/state"
    )
    assert canonical_address("/var/lib/lumos") == "/var/lib/lumos"


def test_an_address_that_means_nothing_is_refused() -> None:
    with pytest.raises(MisuseError, match="has no bucket"):
        section_of("s3:///raw", [])
    with pytest.raises(UnknownStorage, match="ftp://"):
        section_of("ftp://lake/raw", [])
