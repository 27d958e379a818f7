"""A lake in buckets: the same datasets as on disk, state beside them, sentences where it fails."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from files import write_parquet, write_text
from lumos import Lumos
from lumos.discovery.reports import IngestReport
from lumos.errors import LumosError
from lumos.model.json_codec import to_json
from lumos.sources import SourceNotUsable

pytestmark = pytest.mark.usefixtures("spark", "workplace")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Partitioned Parquet, tables beside each other, odd names, and things that are no data."""
    lake = tmp_path / "lake"
    for day in ("2024-01-01", "2024-01-02"):
        write_parquet(lake / f"events/dt={day}/part-0.parquet", id=pa.int64(), name=pa.string())
    write_parquet(lake / "events/dt=2024-01-03/part-0.parquet", id=pa.int64())
    write_text(lake / "ref/users.csv", ["id,name,zip", "1,Ann,01234"])
    write_text(lake / "ref/rates_20240101.csv", ["code;rate", "EUR;1.5"])
    write_text(lake / "ref/rates_20240102.csv", ["code;rate", "EUR;2"])
    write_text(lake / "größe & co/a b%2Fc.csv", ["id", "1"])
    write_text(lake / "broken.parquet", ["nothing"])
    (lake / "ref/logo.png").write_bytes(b"\x89PNG\r\n")
    (lake / "events/_SUCCESS").touch()
    return lake


def what_was_found(report: IngestReport, root: str, platform: str) -> list[dict[str, Any]]:
    """The datasets of a report, without what can only differ: the place and the times."""
    text = to_json(report.datasets).decode()
    plain = text.replace(f"lumos://{platform}{root}", "URN").replace(root, "ROOT")
    datasets: list[dict[str, Any]] = json.loads(plain)
    for dataset in datasets:
        dataset.pop("platform")
        dataset["statistics"].pop("bytes_by_class", None)
        for times in (dataset["statistics"], *(dataset.get("drift") or ())):
            for name in [name for name in times if "modified" in name or "seen" in name]:
                times.pop(name)
    return datasets


def test_a_lake_in_a_bucket_gives_the_same_datasets_as_on_disk(lake: Path, bucket: Any) -> None:
    on_disk = Lumos(overrides={"storage": {"path": "disk.db"}}).ingest(lake)
    bucket.upload(lake, "raw")
    lumos = Lumos(overrides={"sources": [bucket.section(prefix="raw/")]})
    in_bucket = lumos.ingest()
    assert in_bucket.roots == (f"s3://{bucket.name}/raw",)
    root = f"/{bucket.name}/raw"
    found = what_was_found(in_bucket, f"s3:/{root}", "s3")
    found = json.loads(json.dumps(found).replace(f"lumos://s3{root}", "URN"))
    assert found == what_was_found(on_disk, str(lake), "file")
    assert len(found) >= 4
    problems = {(problem.path.rpartition("/")[2], problem.code) for problem in in_bucket.problems}
    assert problems == {
        (problem.path.rpartition("/")[2], problem.code) for problem in on_disk.problems
    }
    again = lumos.ingest()
    assert again.summary.datasets_unchanged == len(found)
    assert again.summary.files_read == 0


def test_only_what_changed_in_a_bucket_is_read_again(bucket: Any) -> None:
    bucket.put("raw/users.csv", b"id,name\n1,Ann\n")
    bucket.put("raw/orders.csv", b"number;total;paid\n1;2.5;true\n")
    bucket.put("raw/rates.csv", b"currency,rate\nEUR,1.5\n")
    lumos = Lumos(overrides={"sources": [bucket.section()]})
    assert lumos.ingest().summary.files_read == 3
    # The same number of bytes, within the same second: the etag alone tells.
    bucket.put("raw/users.csv", b"id,game\n1,Ann\n")
    changed = lumos.ingest()
    assert changed.summary.files_read == 1
    assert [each.name for each in changed.datasets if each.change == "changed"] == ["users"]
    bucket.made.delete_objects(Delete={"Objects": [{"Key": "raw/rates.csv"}]})
    gone = lumos.ingest()
    assert gone.summary.files_read == 0
    assert gone.summary.datasets_missing == 1


def test_state_may_lie_in_a_bucket(lake: Path, bucket: Any) -> None:
    overrides = {
        "state_uri": f"s3://{bucket.name}/lumos/state/",
        "sources": [bucket.section(prefix="raw"), {"type": "file", "path": str(lake)}],
    }
    bucket.upload(lake / "ref", "raw")
    lumos = Lumos(overrides=overrides)
    first = lumos.ingest()
    assert first.summary.files_read > 0
    again = lumos.ingest()
    assert again.summary.files_read == 0
    assert again.summary.datasets_unchanged == len(first.datasets)
    kept = [each.key for each in bucket.made.objects.filter(Prefix="lumos/state/")]
    assert kept
    assert not any(key.endswith(".trial") for key in kept)
    for each in range(3):
        bucket.put("raw/more.csv", f"id\n{each}\n".encode())
        lumos.ingest()
    assert len(list(bucket.made.objects.filter(Prefix="lumos/state/"))) <= len(kept) + 4
    assert not list(Path(".").rglob("*.state"))


def test_state_in_a_bucket_that_is_not_there_is_refused_before_spark(
    lake: Path, bucket: Any
) -> None:
    overrides = {
        "state_uri": "s3://not-there/state",
        "sources": [bucket.section(), {"type": "file", "path": str(lake)}],
    }
    bucket.put("a.csv", b"id\n1\n")
    with pytest.raises(LumosError, match=r"state_uri s3://not-there/state cannot be used"):
        Lumos(overrides=overrides).ingest()


def test_a_bucket_that_is_not_there_is_said_before_spark(moto: str) -> None:
    section = {
        "type": "s3",
        "bucket": "not-there",
        "endpoint_url": moto,
        "access_key": "a",
        "secret_key": "b",
    }
    with pytest.raises(SourceNotUsable, match=r"There is no bucket 'not-there' at http://127"):
        Lumos(overrides={"sources": [section]}).ingest()


def test_an_address_is_ingested_as_its_configured_source_is_reached(bucket: Any) -> None:
    bucket.put("raw/a.csv", b"id\n1\n")
    bucket.put("other/b.csv", b"id\n1\n")
    section = bucket.section(prefix="other", instance="minio")
    report = Lumos(overrides={"sources": [section]}).ingest(f"s3a://{bucket.name}/raw/")
    assert [each.urn for each in report.datasets] == [f"lumos://s3@minio/{bucket.name}/raw/a.csv"]


def test_the_command_line_ingests_an_address_with_what_the_environment_says(
    bucket: Any, tmp_path: Path
) -> None:
    write_parquet(tmp_path / "lake/orders/part-0.parquet", id=pa.int64())
    bucket.upload(tmp_path / "lake", "raw")
    bucket.put("raw/users.csv", b"id,name\n1,Ann\n")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
        "AWS_ENDPOINT_URL": bucket.endpoint, "AWS_ACCESS_KEY_ID": "key-id",
        "AWS_SECRET_ACCESS_KEY": "hush-hush", "AWS_REGION": "us-east-1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "lumos", "ingest", f"s3://{bucket.name}/raw", "--json"],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [each["urn"] for each in report["datasets"]] == [
        f"lumos://s3/{bucket.name}/raw/orders",
        f"lumos://s3/{bucket.name}/raw/users.csv",
    ]
    assert "hush-hush" not in done.stdout + done.stderr


def test_doctor_lists_buckets_and_tries_the_state(bucket: Any) -> None:
    bucket.put("raw/a.csv", b"id\n1\n")
    sources = [
        bucket.section(prefixes=["raw", "typo"], name="good"),
        bucket.section(bucket="not-there", name="bad"),
    ]
    overrides = {"sources": sources, "state_uri": f"s3://{bucket.name}/state"}
    checks = [
        (check.name, check.status, check.found, check.next_step or "")
        for check in Lumos(overrides=overrides).doctor().checks
        if check.name in ("source good", "source bad", "state")
    ]
    root = f"s3://{bucket.name}"
    assert checks == [
        ("source good", "ok", f"{root}/raw", ""),
        ("source good", "warning", f"There is nothing at {root}/typo/.",
         f"Check the prefix; 'aws s3 ls {root}/' lists prefixes."),
        ("source bad", "failed", f"There is no bucket 'not-there' at {bucket.endpoint}.",
         "Check its name and, for other vendors, 'endpoint_url'."),
        ("state", "ok", f"{root}/state can be listed and written", ""),
    ]  # fmt: skip


def put_into_class(bucket: Any, key: str, storage_class: str) -> None:
    """What the rules of a bucket do with old files, which keep their times."""
    from moto.s3.models import s3_backends

    (found,) = (
        backends["aws"].buckets[bucket.name]
        for backends in s3_backends.values()
        if bucket.name in backends["aws"].buckets
    )
    found.keys[key]._storage_class = storage_class


def test_files_that_go_to_another_storage_class_are_the_same_data(lake: Path, bucket: Any) -> None:
    bucket.upload(lake / "events", "raw/events")
    lumos = Lumos(overrides={"sources": [bucket.section(prefix="raw/")]})
    (first,) = lumos.ingest().datasets
    assert first.statistics is not None
    size = first.statistics.total_size_bytes
    assert first.statistics.bytes_by_class == {"standard": size}
    # Nobody could open this one any more.
    put_into_class(bucket, "raw/events/dt=2024-01-01/part-0.parquet", "GLACIER")
    again = lumos.ingest()
    assert again.summary.files_read == 0
    assert [each.change for each in again.datasets] == ["unchanged"]
    by_class = lumos.show(first.urn).dataset["statistics"]["bytes_by_class"]
    assert set(by_class) == {"glacier", "standard"}
    assert sum(by_class.values()) == size
    assert list(lumos.changes(types=["modified"]).events) == []
    assert lumos.ingest().summary.files_read == 0
