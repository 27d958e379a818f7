"""Watching by events, from the changed file to the recorded change."""

import json
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from deltalake import write_deltalake

from conftest import Bucket
from files import write_parquet
from lumos import Lumos
from lumos.discovery.watch_status import EventStatus


class Watch:
    """A watch of sources in a thread, and the changes that it has recorded."""

    def __init__(self, *sources: dict[str, object], **options: Any) -> None:
        config = {"change_detection": {"enabled": True, "sources": list(sources)}}
        Path("lumos.yaml").write_text(yaml.safe_dump(config))
        self.lumos = Lumos("lumos.yaml", overrides={"spark.master": "local[2]"})
        self.events: list[str] = []
        self.stop = threading.Event()
        self.report: Any = None
        self._thread = threading.Thread(target=self._run, kwargs=options)

    def _run(self, **options: Any) -> None:
        self.report = self.lumos.watch(
            stop=self.stop,
            on_event=lambda event: self.events.append(f"{Path(event.urn).name} {event.type}"),
            **options,
        )

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_problem: object) -> None:
        self.stop.set()
        self._thread.join()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 300
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert condition(), self.events

    def expect(self, *events: str) -> None:
        """Waits until exactly these changes have been recorded since the last call."""
        self.wait_for(lambda: len(self.events) >= len(events))
        assert sorted(self.events) == sorted(events)
        self.events.clear()

    @property
    def status(self) -> EventStatus:
        (status,) = self.lumos.events.status().event_sources
        return status


@pytest.fixture
def lake(spark: object, workplace: Path) -> Path:  # noqa: ARG001
    write_parquet(workplace / "lake/users/dt=2024-01-01/part-0.parquet", id=pa.int64())
    return workplace / "lake"


@pytest.fixture
def watch(lake: Path) -> Iterator[Watch]:
    # Few of many datasets may disappear at once.
    for name in ("clicks", "orders", "visits"):
        write_parquet(lake / f"{name}/part-0.parquet", id=pa.int64())
    section = {"type": "file", "path": str(lake), "watch_mode": "events"}
    with Watch(section) as watch:
        watch.expect("users CREATED", "clicks CREATED", "orders CREATED", "visits CREATED")
        yield watch


def test_changes_in_a_folder_are_recorded_without_polling(watch: Watch, lake: Path) -> None:
    write_parquet(lake / "users/dt=2024-01-02/part-0.parquet", id=pa.int64(), name=pa.string())
    watch.expect("users SCHEMA_CHANGED")
    write_deltalake(str(lake / "sales"), pa.table({"id": [1]}))
    watch.expect("sales CREATED")
    write_deltalake(str(lake / "sales"), pa.table({"id": [2]}), mode="append")
    watch.expect("sales MODIFIED")
    shutil.rmtree(lake / "sales")
    watch.expect("sales DELETED")
    watch.stop.set()
    watch._thread.join()
    assert watch.report.looks == 1
    assert watch.report.batches >= 4
    status = watch.status
    assert status.name == str(lake)
    assert status.counts.acknowledged > 0
    assert status.lag_seconds is not None


def record(bucket: str, key: str, name: str = "ObjectCreated:Put") -> str:
    named = {"bucket": {"name": bucket}, "object": {"key": key}}
    return json.dumps({"Records": [{"eventName": name, "s3": named}]})


def test_the_changes_of_a_bucket_are_recorded_once_through_its_queue(
    bucket: Bucket, lake: Path, moto: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import boto3

    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", moto)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush-hush")
    bucket.upload(lake, "datasets")
    section = bucket.section(
        prefix="datasets/",
        watch_mode="events",
        polling_interval=300,
        event_types=["ObjectCreated", "ObjectDeleted"],
    )
    Path("setup.yaml").write_text(yaml.safe_dump({"sources": [bucket.section()]}))
    queue = Lumos("setup.yaml").events.setup(f"s3://{bucket.name}").sqs_queue
    with Watch({**section, "sqs_queue": queue}) as watch:
        watch.expect("users CREATED")
        write_parquet(lake / "orders/part-0.parquet", id=pa.int64())
        data = (lake / "orders/part-0.parquet").read_bytes()
        bucket.put("datasets/orders/part-0.parquet", data)
        bucket.put("elsewhere/part-0.parquet", data)
        watch.expect("orders CREATED")
        sqs = boto3.client("sqs", "us-east-1", endpoint_url=moto)
        url = sqs.get_queue_url(QueueName=queue.rpartition(":")[2])["QueueUrl"]
        # The same message again, one that is nobody's, and one that is no message.
        body = record(bucket.name, "datasets/orders/part-0.parquet")
        for text in (body, body, body.replace(bucket.name, "other"), "hello"):
            sqs.send_message(QueueUrl=url, MessageBody=text)
        bucket.made.delete_objects(
            Delete={"Objects": [{"Key": "datasets/users/dt=2024-01-01/part-0.parquet"}]}
        )
        # moto sends no event of this deletion, as S3 does.
        removed = record(
            bucket.name, "datasets/users/dt%3D2024-01-01/part-0.parquet", "ObjectRemoved:Delete"
        )
        sqs.send_message(QueueUrl=url, MessageBody=removed)
        watch.wait_for(lambda: watch.status.counts.malformed == 1 and watch.status.buffered == 0)
        # One of two datasets is more than the share that may disappear at once.
        assert watch.events == []
        write_parquet(lake / "orders/part-1.parquet", id=pa.int64(), total=pa.float64())
        data = (lake / "orders/part-1.parquet").read_bytes()
        bucket.put("datasets/orders/part-1.parquet", data)
        watch.expect("orders SCHEMA_CHANGED")
        counts = watch.status.counts
        assert counts.foreign >= 2
        assert counts.missed == 0
    attributes = sqs.get_queue_attributes(
        QueueUrl=url,
        AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
    )["Attributes"]
    # Only the message that nobody can parse is left, on its way to the dead letters.
    assert sum(map(int, attributes.values())) <= 1
    assert watch.report.looks == 1


@pytest.mark.slow
def test_the_changes_of_a_bucket_of_minio_are_recorded_once_through_its_webhook(
    lake: Path,
) -> None:
    import boto3

    from servers.minio import KEY, SECRET, minio

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    for name in ("clicks", "orders", "visits"):
        write_parquet(lake / f"{name}/part-0.parquet", id=pa.int64())
    with minio(webhook=f"http://{address}/", token="hush-hush-token") as (endpoint, arn):
        s3 = boto3.client("s3", "us-east-1", endpoint_url=endpoint,
                          aws_access_key_id=KEY, aws_secret_access_key=SECRET)  # fmt: skip
        s3.create_bucket(Bucket="lake")
        rule = {"Key": {"FilterRules": [{"Name": "prefix", "Value": "datasets/"}]}}
        events = ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]
        s3.put_bucket_notification_configuration(
            Bucket="lake",
            NotificationConfiguration={
                "QueueConfigurations": [{"QueueArn": arn, "Filter": rule, "Events": events}]
            },
        )

        def put(file: str) -> None:
            s3.put_object(Bucket="lake", Key=f"datasets/{file}", Body=(lake / file).read_bytes())

        for file in lake.rglob("*.parquet"):
            put(str(file.relative_to(lake)))
        section = {
            "type": "s3", "bucket": "lake", "prefix": "datasets/", "endpoint_url": endpoint,
            "region": "us-east-1", "access_key_id": KEY, "secret_access_key": SECRET,
            "watch_mode": "events", "event_types": ["ObjectCreated", "ObjectDeleted"],
            "event_webhook": {"listen": address, "token": "hush-hush-token"},
        }  # fmt: skip
        with Watch(section) as watch:
            watch.expect("users CREATED", "clicks CREATED", "orders CREATED", "visits CREATED")
            write_parquet(lake / "orders/part-1.parquet", id=pa.int64(), total=pa.float64())
            # In one part, which S3 allows for the last one.
            upload = {"Bucket": "lake", "Key": "datasets/orders/part-1.parquet"}
            id = s3.create_multipart_upload(**upload)["UploadId"]
            part = s3.upload_part(
                **upload, UploadId=id, PartNumber=1,
                Body=(lake / "orders/part-1.parquet").read_bytes(),
            )  # fmt: skip
            s3.complete_multipart_upload(
                **upload, UploadId=id,
                MultipartUpload={"Parts": [{"ETag": part["ETag"], "PartNumber": 1}]},
            )  # fmt: skip
            watch.expect("orders SCHEMA_CHANGED")
            s3.delete_object(Bucket="lake", Key="datasets/visits/part-0.parquet")
            watch.expect("visits DELETED")
        # What MinIO has sent while nobody watched is found by the first scan.
        put("visits/part-0.parquet")
        with Watch(section) as watch:
            watch.expect("visits RESTORED")
            watch.wait_for(lambda: watch.status.buffered == 0 and watch.status.counts.events >= 1)
        assert watch.events == []


def _add_slowly(folder: Path, files: dict[str, bytes]) -> None:
    """Write new files one by one, data before logs, so slowly that each is a batch of its own."""
    is_log = ("_delta_log", ".hoodie")
    new = {name: data for name, data in files.items() if not (folder / name).exists()}
    for name in sorted(new, key=lambda name: (name.startswith(is_log), name)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(new[name])
        time.sleep(0 if name.startswith(is_log) else 0.4)


def _files_below(folder: Path) -> dict[str, bytes]:
    found = (each for each in folder.rglob("*") if each.is_file())
    return {str(each.relative_to(folder)): each.read_bytes() for each in found}


def test_a_commit_of_a_table_is_one_event_however_many_files_it_writes(
    lake: Path, tmp_path: Path
) -> None:
    from formats.tables.hudi_tables import HudiTable
    from formats.tables.iceberg_tables import catalog_at

    rows = pa.table({"id": list(range(8)), "part": [f"p{number}" for number in range(8)]})
    delta = tmp_path / "delta"
    write_deltalake(str(delta), rows, partition_by=["part"])
    _add_slowly(lake / "sales", _files_below(delta))
    hudi = HudiTable()
    hudi.write({"g1": 1})
    _add_slowly(lake / "trips", hudi.files)
    catalog = catalog_at(lake)
    iceberg = catalog.create_table("n.visits", rows.schema)
    with iceberg.update_spec() as spec:
        spec.add_identity("part")
    iceberg.append(rows)
    with Watch({"type": "file", "path": str(lake), "watch_mode": "events"}) as watch:
        watch.expect("users CREATED", "sales CREATED", "trips CREATED", "visits CREATED")
        write_deltalake(str(delta), rows, mode="append", partition_by=["part"])
        _add_slowly(lake / "sales", _files_below(delta))
        watch.expect("sales MODIFIED")
        hudi.write({f"h{number}": 1 for number in range(6)})
        _add_slowly(lake / "trips", hudi.files)
        watch.expect("trips MODIFIED")
        iceberg.append(rows)
        watch.expect("visits MODIFIED")
        # Whatever follows a commit, such as events of its last files, adds nothing.
        write_parquet(lake / "orders/part-0.parquet", id=pa.int64())
        watch.expect("orders CREATED")
        # The data files were batches of their own, without any effect.
        watch.wait_for(lambda: watch.status.counts.batches > 6)
