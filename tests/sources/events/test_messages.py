"""Messages about objects, in the formats of their senders and in none."""

import base64
import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.config.settings import StorageEventType
from lumos.sources.events import ObjectEvent
from lumos.sources.events.messages import MAX_MESSAGE_BYTES, MalformedMessage, parse_message

CREATED, DELETED = StorageEventType.CREATED, StorageEventType.DELETED
AT = "2024-01-15T10:30:00.000Z"
SECONDS = 1705314600.0


def s3_record(name: str = "ObjectCreated:Put", key: str = "raw/a%3D1/x+y.parquet") -> Any:
    return {
        "eventVersion": "2.1", "eventSource": "aws:s3", "eventTime": AT, "eventName": name,
        "s3": {"bucket": {"name": "lake"}, "object": {"key": key, "sequencer": "0055"}},
    }  # fmt: skip


def event_bridge(kind: str = "Object Created") -> Any:
    detail = {"bucket": {"name": "lake"}, "object": {"key": "raw/a=1/x y.parquet"}}
    return {"version": "0", "source": "aws.s3", "detail-type": kind, "time": AT, "detail": detail}


def sns(inner: Any) -> Any:
    return {"Type": "Notification", "TopicArn": "arn:aws:sns:x", "Message": json.dumps(inner)}


def pub_sub(kind: str = "OBJECT_FINALIZE") -> Any:
    attributes = {"eventType": kind, "bucketId": "lake", "objectId": "raw/x.csv", "eventTime": AT}
    return {"message": {"attributes": attributes, "data": "e30=", "messageId": "1"}}


def event_grid(kind: str = "Microsoft.Storage.BlobCreated", **data: str) -> Any:
    url = "https://acme.blob.core.windows.net/lake/raw/x.csv"
    return {
        "topic": "/subscriptions/1", "subject": "/blobServices/default/containers/lake/blobs/raw/x.csv",
        "eventType": kind, "eventTime": AT, "data": {"url": url, **data},
    }  # fmt: skip


KEY = "s3://lake/raw/a=1/x y.parquet"
BLOB = "abfss://lake@acme.dfs.core.windows.net/raw/x.csv"


@pytest.mark.parametrize(
    ("message", "events"),
    [
        pytest.param({"Records": [s3_record()]}, [(KEY, CREATED)], id="S3"),
        pytest.param({"Records": [s3_record("ObjectRemoved:DeleteMarkerCreated")]}, [(KEY, DELETED)], id="delete marker"),
        pytest.param({"Records": [s3_record("LifecycleExpiration:Delete")]}, [(KEY, DELETED)], id="expired"),
        pytest.param({"Records": [s3_record(), s3_record("ObjectRemoved:Delete", "b")]}, [(KEY, CREATED), ("s3://lake/b", DELETED)], id="two records"),
        pytest.param({"Records": [s3_record("ObjectTagging:Put")]}, [], id="tags"),
        pytest.param({"Records": [s3_record("ObjectRestore:Completed")]}, [], id="restored"),
        pytest.param(sns({"Records": [s3_record()]}), [(KEY, CREATED)], id="SNS"),
        pytest.param(sns(sns({"Records": [s3_record()]})), [(KEY, CREATED)], id="SNS twice"),
        pytest.param({"Type": "SubscriptionConfirmation", "Message": "x"}, [], id="SNS confirmation"),
        pytest.param(event_bridge(), [(KEY, CREATED)], id="EventBridge"),
        pytest.param(event_bridge("Object Deleted"), [(KEY, DELETED)], id="EventBridge delete"),
        pytest.param(event_bridge("Object Tags Added"), [], id="EventBridge tags"),
        pytest.param(sns(event_bridge()), [(KEY, CREATED)], id="EventBridge over SNS"),
        pytest.param({"EventName": "s3:ObjectCreated:Put", "Key": "lake/x", "Records": [s3_record("s3:ObjectCreated:Put")]}, [(KEY, CREATED)], id="MinIO"),
        pytest.param({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "lake"}, [], id="test message"),
        pytest.param(pub_sub(), [("gs://lake/raw/x.csv", CREATED)], id="Pub/Sub"),
        pytest.param(pub_sub("OBJECT_DELETE"), [("gs://lake/raw/x.csv", DELETED)], id="Pub/Sub delete"),
        pytest.param(pub_sub("OBJECT_METADATA_UPDATE"), [], id="Pub/Sub metadata"),
        pytest.param(event_grid(), [(BLOB, CREATED)], id="Event Grid"),
        pytest.param([event_grid("Microsoft.Storage.BlobDeleted")], [(BLOB, DELETED)], id="Event Grid list"),
        pytest.param(event_grid("Microsoft.Storage.DirectoryDeleted"), [(f"{BLOB}/", DELETED)], id="directory"),
        pytest.param(
            event_grid("Microsoft.Storage.BlobRenamed", sourceUrl="https://acme.dfs.core.windows.net/lake/old%20x.csv"),
            [(BLOB, CREATED), ("abfss://lake@acme.dfs.core.windows.net/old x.csv", DELETED)],
            id="renamed",
        ),
    ],
)  # fmt: skip
def test_a_message_names_the_objects_that_changed(message: Any, events: Any) -> None:
    expected = tuple(ObjectEvent(path, kind, SECONDS) for path, kind in events)
    assert parse_message(json.dumps(message)) == expected


def test_messages_of_azure_queues_are_encoded() -> None:
    encoded = base64.b64encode(json.dumps(event_grid()).encode()).decode()
    assert parse_message(encoded) == (ObjectEvent(BLOB, CREATED, SECONDS),)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("", id="empty"),
        pytest.param("hello", id="text"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param('{"Records": ' + '[' * 5000 + ']' * 5000 + '}', id="deep records"),
        pytest.param("{" + " " * MAX_MESSAGE_BYTES + "}", id="long"),
        pytest.param("{}", id="nothing"),
        pytest.param('"text"', id="a string"),
        pytest.param('{"Records": [{}]}', id="empty record"),
        pytest.param('{"Records": {"0": 1}}', id="records that are no list"),
        pytest.param(json.dumps({"Records": [s3_record(key="%ff")]}), id="a key that is not UTF-8"),
        pytest.param(json.dumps({"Records": [s3_record(key="")]}), id="no key"),
        pytest.param(json.dumps({"Records": [s3_record(key="a%00b")]}), id="NUL"),
        pytest.param(json.dumps({"Records": [s3_record(key="k" * 5000)]}), id="an impossible key"),
        pytest.param(json.dumps({"Records": [1] * 10_001}), id="too many records"),
        pytest.param(json.dumps(sns(sns(sns(sns({"Records": []}))))), id="too many envelopes"),
        pytest.param(json.dumps({**event_bridge(), "source": "aws.ec2"}), id="not of S3"),
        pytest.param(json.dumps(event_grid("Microsoft.KeyVault.SecretExpired")), id="not of a storage"),
        pytest.param('{"subject": "/x", "data": {}, "eventType": "Microsoft.Storage.BlobCreated"}', id="no container"),
        pytest.param(json.dumps({**event_grid(), "data": {"url": "http://[x"}}), id="an impossible URL"),
        pytest.param(
            json.dumps({**event_grid("Microsoft.Storage.BlobRenamed"),
                        "data": {"destinationUrl": "https://a.b/c", "sourceUrl": "http://[x"}}),
            id="an impossible old URL",
        ),
    ],
)  # fmt: skip
def test_everything_else_is_malformed(body: str) -> None:
    with pytest.raises(MalformedMessage):
        parse_message(body)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["Records", "s3", "bucket", "object", "name", "key", "eventName", "Type", "Message",
                 "detail", "detail-type", "source", "subject", "data", "message", "attributes"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)  # fmt: skip


@given(_JSON)
def test_no_message_is_anything_but_parsed_or_malformed(message: Any) -> None:
    with contextlib.suppress(MalformedMessage):
        parse_message(json.dumps(message))
