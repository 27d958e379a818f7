"""Queues of SQS and notifications of S3, on moto."""

import json
import uuid
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from conftest import Bucket
from lumos.config.secret import Secret
from lumos.config.settings import StorageEventType
from lumos.config.sources import S3SourceSettings
from lumos.errors import MisuseError
from lumos.sources.events import EventSourceFailed
from lumos.sources.events.factory import setup_events as setup
from lumos.sources.events.factory import teardown_events as teardown
from lumos.sources.events.s3_setup import EVENTS, _BucketEvents
from lumos.sources.events.setup_report import EventSetupReport
from lumos.sources.events.sqs import SqsQueue, default_queue_name


@pytest.fixture(autouse=True)
def _endpoint(moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", moto)


@pytest.fixture
def sqs(moto: str) -> Any:
    return boto3.client("sqs", "us-east-1", endpoint_url=moto,
                        aws_access_key_id="key-id", aws_secret_access_key="hush-hush")  # fmt: skip


@pytest.fixture
def section(bucket: Bucket) -> S3SourceSettings:
    return S3SourceSettings(
        buckets=(bucket.name,),
        endpoint_url=bucket.endpoint,
        access_key_id=Secret("key-id"),
        secret_access_key=Secret("hush-hush"),
    )


@pytest.fixture
def queue_url(sqs: Any) -> str:
    return str(sqs.create_queue(QueueName=f"q{uuid.uuid4().hex}")["QueueUrl"])


def opened(queue: str, section: S3SourceSettings) -> SqsQueue:
    source = SqsQueue(queue, section)
    source.open()
    return source


def record(bucket: str, key: str) -> str:
    return json.dumps(
        {"Records": [{"eventName": "ObjectCreated:Put",
                      "s3": {"bucket": {"name": bucket}, "object": {"key": key}}}]}
    )  # fmt: skip


def test_messages_are_received_kept_and_deleted(
    sqs: Any, queue_url: str, section: S3SourceSettings
) -> None:
    for number in range(25):
        sqs.send_message(QueueUrl=queue_url, MessageBody=record("lake", f"{number}.csv"))
    queue = opened(queue_url, section)
    received = [each for _ in range(3) for each in queue.receive(1)]
    assert len(received) == 25
    assert {each.events[0].path for each in received} == {f"s3://lake/{n}.csv" for n in range(25)}
    assert all(each.sent_at and each.delivery == 1 for each in received)
    assert queue.backlog()[:2] == (0, 25)
    queue.keep([each.receipt for each in received])
    queue.acknowledge([each.receipt for each in received])
    assert queue.backlog()[:2] == (0, 0)


def test_a_malformed_message_is_deleted_only_without_a_dead_letter_queue(
    sqs: Any, queue_url: str, section: S3SourceSettings
) -> None:
    sqs.send_message(QueueUrl=queue_url, MessageBody="hello")
    queue = opened(queue_url, section)
    (received,) = queue.receive(1)
    assert (received.outcome, received.events) == ("malformed", ())
    assert received.reason.endswith(", not JSON")
    queue.reject([received])
    assert queue.backlog()[:2] == (0, 0)


def test_an_expired_receipt_is_no_failure(
    sqs: Any, queue_url: str, section: S3SourceSettings
) -> None:
    sqs.send_message(QueueUrl=queue_url, MessageBody=record("lake", "x"))
    queue = opened(queue_url, section)
    (received,) = queue.receive(1)
    queue.acknowledge([received.receipt])
    queue.acknowledge([received.receipt])


@pytest.mark.parametrize("form", ["url", "arn", "name"])
def test_a_queue_is_named_by_url_arn_or_name(
    sqs: Any, queue_url: str, section: S3SourceSettings, form: str
) -> None:
    name = queue_url.rpartition("/")[2]
    attributes = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["QueueArn"])
    queue = opened(
        {"url": queue_url, "arn": attributes["Attributes"]["QueueArn"], "name": name}[form], section
    )
    assert (queue.name, queue.retention_seconds) == (name, 345_600)


def test_a_missing_queue_names_the_next_command(section: S3SourceSettings) -> None:
    with pytest.raises(EventSourceFailed, match=rf"lumos watch setup s3://{section.buckets[0]}"):
        opened("arn:aws:sqs:us-east-1:123456789012:none", section)
    with pytest.raises(EventSourceFailed, match="neither the ARN"):
        SqsQueue("arn:aws:sns:us-east-1:1:x", section)


@pytest.mark.parametrize(
    ("bucket", "name"),
    [
        ("lake", "lumos-s3-events-lake"),
        ("a.b", "lumos-s3-events-a-b-"),
        ("x" * 63, "lumos-s3-events-xxx"),
    ],
)
def test_the_default_name_of_a_queue_is_a_possible_one(bucket: str, name: str) -> None:
    found = default_queue_name(bucket)
    assert found.startswith(name)
    assert len(f"{found}-dead-letters") <= 80
    assert default_queue_name("a.b") != default_queue_name("a-b")


def statuses(report: EventSetupReport) -> dict[str, str]:
    return {step.kind: step.status for step in report.steps}


def notifications(bucket: Bucket) -> Any:
    client = bucket.made.meta.client
    found = client.get_bucket_notification_configuration(Bucket=bucket.name)
    return {key: value for key, value in found.items() if key != "ResponseMetadata"}


def test_setup_lets_s3_send_events_and_teardown_removes_them(
    sqs: Any, bucket: Bucket, section: S3SourceSettings
) -> None:
    address = f"s3://{bucket.name}"
    planned = setup(address, [section], dry_run=True)
    assert set(statuses(planned).values()) == {"created"}
    assert notifications(bucket) == {}
    report = setup(address, [section], dry_run=False)
    assert set(statuses(report).values()) == {"created"}
    again = setup(address, [section], dry_run=False)
    assert set(statuses(again).values()) == {"unchanged"}
    queue = opened(report.sqs_queue, section)
    assert queue.retention_seconds == 14 * 86_400
    bucket.put("raw/new file.csv", b"a,b\n")
    received = [each for each in queue.receive(1) if each.events]
    assert [(each.events[0].path, each.events[0].type) for each in received] == [
        (f"{address}/raw/new file.csv", StorageEventType.CREATED)
    ]
    policy = json.loads(
        sqs.get_queue_attributes(QueueUrl=queue._url, AttributeNames=["Policy"])["Attributes"][
            "Policy"
        ]
    )
    (statement,) = policy["Statement"]
    assert statement["Principal"] == {"Service": "s3.amazonaws.com"}
    assert statement["Condition"]["ArnEquals"]["aws:SourceArn"] == f"arn:aws:s3:::{bucket.name}"
    removed = teardown(address, [section], dry_run=False)
    assert statuses(removed) == {
        "notification": "deleted", "queue": "deleted", "dead-letter queue": "deleted",
    }  # fmt: skip
    assert notifications(bucket).get("QueueConfigurations", []) == []
    assert set(statuses(teardown(address, [section], dry_run=False)).values()) == {"missing"}


def other_notification(sqs: Any, bucket: Bucket, prefix: str) -> str:
    url = sqs.create_queue(QueueName=f"other-{uuid.uuid4().hex}")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"][
        "QueueArn"
    ]
    other = {
        "Id": "theirs", "QueueArn": arn, "Events": ["s3:ObjectCreated:*"],
        "Filter": {"Key": {"FilterRules": [{"Name": "prefix", "Value": prefix}]}},
    }  # fmt: skip
    bucket.made.meta.client.put_bucket_notification_configuration(
        Bucket=bucket.name, NotificationConfiguration={"QueueConfigurations": [other]}
    )
    return str(arn)


def test_notifications_of_others_stay(sqs: Any, bucket: Bucket, section: S3SourceSettings) -> None:
    other_notification(sqs, bucket, "exports/")
    before = notifications(bucket)
    report = setup(f"s3://{bucket.name}/raw", [section], dry_run=False)
    assert report.other_notifications == 1
    found = notifications(bucket)["QueueConfigurations"]
    assert {each["Id"] for each in found} > {"theirs"}
    (own,) = (each for each in found if each["Id"] != "theirs")
    assert set(own["Events"]) == set(EVENTS)
    assert own["Filter"]["Key"]["FilterRules"][0]["Value"] == "raw/"
    teardown(f"s3://{bucket.name}/raw", [section], dry_run=False)
    assert notifications(bucket) == before


def test_topics_and_functions_stay(bucket: Bucket, section: S3SourceSettings) -> None:
    def filtered(prefix: str) -> dict[str, Any]:
        rules = [{"Name": "prefix", "Value": prefix}, {"Name": "suffix", "Value": ".csv"}]
        return {"Events": ["s3:ObjectCreated:*"], "Filter": {"Key": {"FilterRules": rules}}}

    client = bucket.made.meta.client
    client.put_bucket_notification_configuration(
        Bucket=bucket.name,
        SkipDestinationValidation=True,
        NotificationConfiguration={
            "TopicConfigurations": [
                {"Id": "t", "TopicArn": "arn:aws:sns:us-east-1:1:t", **filtered("a/")}
            ],
            "LambdaFunctionConfigurations": [
                {"Id": "f", "LambdaFunctionArn": "arn:aws:lambda:us-east-1:1:function:f",
                 **filtered("b/")}
            ],
        },
    )  # fmt: skip
    before = notifications(bucket)
    assert set(before) == {"TopicConfigurations", "LambdaFunctionConfigurations"}
    assert setup(f"s3://{bucket.name}/raw", [section], dry_run=False).other_notifications == 2
    found = notifications(bucket)
    assert len(found.pop("QueueConfigurations")) == 1
    assert found == before
    teardown(f"s3://{bucket.name}/raw", [section], dry_run=False)
    assert notifications(bucket) == before


def test_events_that_already_have_a_target_are_not_taken_away(
    sqs: Any, bucket: Bucket, section: S3SourceSettings
) -> None:
    arn = other_notification(sqs, bucket, "raw/")
    before = notifications(bucket)
    with pytest.raises(EventSourceFailed, match=f"already sends events of raw/.* to {arn}"):
        setup(f"s3://{bucket.name}", [section], dry_run=False)
    assert notifications(bucket) == before
    with pytest.raises(ClientError, match="NonExistentQueue"):
        sqs.get_queue_url(QueueName=default_queue_name(bucket.name))


def test_a_queue_of_somebody_else_is_not_deleted(
    sqs: Any, bucket: Bucket, section: S3SourceSettings
) -> None:
    sqs.create_queue(QueueName=default_queue_name(bucket.name))
    report = teardown(f"s3://{bucket.name}", [section], dry_run=False)
    assert statuses(report)["queue"] == "kept"


def test_a_queue_of_somebody_else_is_not_changed(
    sqs: Any, bucket: Bucket, section: S3SourceSettings
) -> None:
    url = sqs.create_queue(QueueName=default_queue_name(bucket.name))["QueueUrl"]
    with pytest.raises(EventSourceFailed, match=f"add the tag lumos:bucket={bucket.name}"):
        setup(f"s3://{bucket.name}", [section], dry_run=False)
    with pytest.raises(ClientError, match="NonExistentQueue"):
        sqs.get_queue_url(QueueName=f"{default_queue_name(bucket.name)}-dead-letters")
    # With the tag it is one of Lumos, whose policy may be a single statement.
    theirs = {"Sid": "theirs", "Effect": "Allow", "Principal": {"AWS": "*"},
              "Action": "sqs:SendMessage", "Resource": "*"}  # fmt: skip
    policy = json.dumps({"Version": "2012-10-17", "Statement": theirs})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    sqs.tag_queue(QueueUrl=url, Tags={"lumos:bucket": bucket.name})
    assert statuses(setup(f"s3://{bucket.name}", [section], dry_run=False)) == {
        "dead-letter queue": "created", "queue": "unchanged", "queue policy": "changed",
        "notification": "created",
    }  # fmt: skip
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"])["Attributes"]
    statements = json.loads(found["Policy"])["Statement"]
    assert [each["Sid"] for each in statements] == ["theirs", "LumosS3Events"]


def test_a_notification_that_is_added_during_the_setup_stays(
    sqs: Any, bucket: Bucket, section: S3SourceSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure = _BucketEvents._ensure_policy

    def ensure_slowly(self: _BucketEvents, queue: str) -> None:
        other_notification(sqs, bucket, "logs/")
        ensure(self, queue)

    monkeypatch.setattr(_BucketEvents, "_ensure_policy", ensure_slowly)
    report = setup(f"s3://{bucket.name}/raw", [section], dry_run=False)
    assert report.other_notifications == 1
    assert "theirs" in {each["Id"] for each in notifications(bucket)["QueueConfigurations"]}


def test_the_prefix_of_a_notification_is_encoded(
    sqs: Any, bucket: Bucket, section: S3SourceSettings
) -> None:
    address = f"s3://{bucket.name}/my data/dt=1"
    setup(address, [section], dry_run=False)
    (own,) = notifications(bucket)["QueueConfigurations"]
    assert own["Filter"]["Key"]["FilterRules"][0]["Value"] == "my+data/dt%3D1/"
    assert set(statuses(setup(address, [section], dry_run=False)).values()) == {"unchanged"}
    teardown(address, [section], dry_run=False)
    other_notification(sqs, bucket, "my+data/dt%3D1/")
    with pytest.raises(EventSourceFailed, match="already sends events of my data/dt=1/"):
        setup(f"s3://{bucket.name}/my data", [section], dry_run=False)


def test_only_buckets_of_s3_can_be_set_up() -> None:
    with pytest.raises(MisuseError, match="neither an S3 bucket"):
        setup("/lake", [], dry_run=True)
