"""The storage against moto's server, which was written by others."""

import json
from typing import Any

import boto3
import pytest
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends

from lumos.storage import KeyRange, ListedFile
from lumos.storage.s3 import S3Access, S3Storage

KEYS = {"access_key_id": "key-id", "secret_access_key": "hush-hush"}


def storage_of(bucket: Any) -> S3Storage:
    return S3Storage(S3Access(endpoint_url=bucket.endpoint, **KEYS))


def test_a_bucket_of_several_pages_is_listed_in_stretches(bucket: Any) -> None:
    keys = [
        f"raw/dt=2024-{number % 12 + 1:02d}-01/part-{number:04d}.csv" for number in range(1_200)
    ]
    # Through the server, this many would take a quarter of a minute.
    for key in keys:
        s3_backends[DEFAULT_ACCOUNT_ID]["aws"].put_object(bucket.name, key, b"1")
    bucket.put("rawest/x.csv", b"1")
    storage = storage_of(bucket)
    met, stretches = storage.split(f"s3://{bucket.name}/raw", parts=8)
    assert (met, len(stretches) >= 8) == ([], True)
    found = [each for stretch in stretches for each in storage.walk(stretch)]
    assert sorted(each.path for each in found) == sorted(
        f"s3://{bucket.name}/{key}" for key in keys
    )


@pytest.mark.parametrize(
    "key",
    [
        "a b.csv", "ü/é.csv", "a%2Fb.csv", "dt=2024-01-01/x.csv", "a+b&c=d.csv", "a?b#c.csv",
        "double//slash.csv", "tab\tstop.csv", "back\\slash.csv", "\U0001f600.csv", "a<b>c.csv",
    ],
)  # fmt: skip
def test_odd_keys_are_listed_and_read(bucket: Any, key: str) -> None:
    bucket.put(key, key.encode())
    storage = storage_of(bucket)
    (listed,) = storage.walk(KeyRange(f"s3://{bucket.name}"))
    assert isinstance(listed, ListedFile)
    assert (listed.path, listed.size) == (f"s3://{bucket.name}/{key}", len(key.encode()))
    with storage.open(listed.path, size=listed.size) as file:
        assert (file.head(2), file.tail(4)) == (key.encode()[:2], key.encode()[-4:])


def test_ranges_of_a_large_object(bucket: Any) -> None:
    data = bytes(range(256)) * 1_000
    bucket.put("large", data)
    storage = storage_of(bucket)
    (listed,) = storage.walk(KeyRange(f"s3://{bucket.name}"))
    assert isinstance(listed, ListedFile)
    with storage.open(listed.path, size=listed.size) as file:
        assert (file.tail(70_000), file.head(10_000)) == (data[-70_000:], data[:10_000])
    assert listed.etag == bucket.made.Object("large").e_tag.strip('"')


def test_state_is_written_listed_and_discarded(bucket: Any) -> None:
    storage = storage_of(bucket)
    folder = f"s3://{bucket.name}/state of mine/1"
    storage.write(f"{folder}/a", b"one")
    storage.write(f"{folder}/parts/b", b"two" * 3_000_000)
    assert storage.files(folder) == ["a"]
    assert storage.read(f"{folder}/parts/b") == b"two" * 3_000_000
    storage.discard([f"{folder}/a", f"{folder}/parts/b"])
    assert list(bucket.made.objects.all()) == []


def test_a_role_is_taken_on_at_the_same_server(bucket: Any) -> None:
    iam = boto3.client("iam", endpoint_url=bucket.endpoint, region_name="us-east-1",
                       aws_access_key_id="a", aws_secret_access_key="b")  # fmt: skip
    policy = json.dumps({"Version": "2012-10-17", "Statement": []})
    name = f"role-{bucket.name}"
    role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy)["Role"]["Arn"]
    bucket.put("a.csv", b"1")
    storage = S3Storage(S3Access(endpoint_url=bucket.endpoint, role_arn=role, **KEYS))
    assert storage.read(f"s3://{bucket.name}/a.csv") == b"1"
