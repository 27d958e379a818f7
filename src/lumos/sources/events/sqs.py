"""Storage events of S3 in a queue of Amazon SQS."""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec

from lumos.config.sources import S3SourceSettings
from lumos.sources.events.interface import (
    Backlog,
    EventSource,
    EventSourceFailed,
    ReceivedMessage,
)
from lumos.sources.events.messages import parse_message, read_message
from lumos.storage.errors import StorageFault
from lumos.storage.s3.access import S3Access
from lumos.storage.s3.clients import AwsClient

# Both are limits of SQS.
_MAX_MESSAGES: Final = 10
_MAX_WAIT: Final = 20
_CONCURRENCY: Final = 8
_LEASE_SECONDS: Final = 120
# A malformed message is delivered again after this time, until it is in the dead-letter queue.
_REJECTED_SECONDS: Final = 2
_MAX_NAME_LENGTH: Final = 80
_ARN: Final = re.compile(r"arn:[\w-]+:sqs:(?P<region>[\w-]+):(?P<account>\d+):(?P<name>[\w.-]+)\Z")
PERMISSIONS: Final = (
    "sqs:ReceiveMessage, sqs:DeleteMessage, sqs:ChangeMessageVisibility, sqs:GetQueueAttributes "
    "and sqs:GetQueueUrl"
)

T = TypeVar("T")


def default_queue_name(bucket: str) -> str:
    """The name of the queue that `lumos watch setup` creates for a bucket."""
    name = f"lumos-s3-events-{bucket}"
    safe = re.sub(r"[^\w-]", "-", name, flags=re.ASCII)
    if safe == name and len(f"{name}-dead-letters") <= _MAX_NAME_LENGTH:
        return name
    # Without the digest, other buckets would get the same name.
    digest = hashlib.blake2b(bucket.encode(), digest_size=4).hexdigest()
    return f"{safe[:50].rstrip('-')}-{digest}"


class SqsQueue(EventSource):
    """A queue, given by its ARN, URL or name."""

    def __init__(self, queue: str, source: S3SourceSettings) -> None:
        self.name = queue.rpartition("/")[2] if "://" in queue else queue.rpartition(":")[2]
        self._queue = queue
        arn = _ARN.match(queue)
        self._arn = None if arn is None else arn.groupdict()
        endpoint_url = ""
        if "://" in queue:
            address = urlsplit(queue)
            endpoint_url = f"{address.scheme}://{address.netloc}"
        elif arn is None and (":" in queue or len(queue) > _MAX_NAME_LENGTH):
            raise EventSourceFailed(
                f"'{queue}' is neither the ARN, the URL nor the name of an SQS queue. An ARN looks "
                "like arn:aws:sqs:eu-west-1:123456789012:my-queue."
            )
        region = self._arn["region"] if self._arn else ""
        self._client = AwsClient(
            "sqs", S3Access.of(source), region=region, endpoint_url=endpoint_url
        )
        self._bucket = source.buckets[0]
        self._url = ""
        self._has_dead_letters = False
        self._dead_letters_arn = ""
        self._threads = ThreadPoolExecutor(_CONCURRENCY, thread_name_prefix="sqs")

    def open(self) -> None:
        self._url = self._queue if "://" in self._queue else self._call(self._find_url)
        attributes = self._attributes(self._url)
        self.lease_seconds = float(_LEASE_SECONDS)
        self.retention_seconds = float(attributes.get("MessageRetentionPeriod", 345_600))
        policy = msgspec.json.decode(attributes.get("RedrivePolicy") or "{}")
        self._dead_letters_arn = policy.get("deadLetterTargetArn", "")
        self._has_dead_letters = bool(self._dead_letters_arn)

    def receive(self, wait: float) -> list[ReceivedMessage]:
        found = self._receive(min(_MAX_WAIT, max(1, round(wait))))
        if len(found) == _MAX_MESSAGES:
            # More messages are probably waiting; a request returns at most ten.
            for more in self._threads.map(self._receive, [0] * (_CONCURRENCY - 1)):
                found += more
        return [_to_received(each) for each in found]

    def acknowledge(self, receipts: Sequence[str]) -> None:
        def delete(entries: list[dict[str, Any]]) -> Any:
            return self._client.current.delete_message_batch(QueueUrl=self._url, Entries=entries)

        self._in_batches(delete, receipts)

    def reject(self, messages: Sequence[ReceivedMessage]) -> None:
        """Leave messages to the dead-letter queue, or delete them if there is none."""
        receipts = [each.receipt for each in messages]
        if self._has_dead_letters:
            self._set_visibility(receipts, _REJECTED_SECONDS)
        else:
            self.acknowledge(receipts)

    def keep(self, receipts: Sequence[str]) -> None:
        self._set_visibility(receipts, _LEASE_SECONDS)

    def backlog(self) -> Backlog:
        found = self._attributes(self._url)
        dead = None
        if arn := _ARN.match(self._dead_letters_arn):
            url = self._url.rpartition("/")[0] + "/" + arn["name"]
            try:
                dead = int(self._attributes(url)["ApproximateNumberOfMessages"])
            except EventSourceFailed:
                # The right to read the dead-letter queue is optional.
                dead = None
        return Backlog(
            int(found["ApproximateNumberOfMessages"]),
            int(found["ApproximateNumberOfMessagesNotVisible"]),
            dead,
        )

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _find_url(self) -> str:
        options = {"QueueOwnerAWSAccountId": self._arn["account"]} if self._arn else {}
        name = self._arn["name"] if self._arn else self._queue
        found = self._client.current.get_queue_url(QueueName=name, **options)
        return str(found["QueueUrl"])

    def _attributes(self, url: str) -> dict[str, str]:
        names = [
            "MessageRetentionPeriod", "RedrivePolicy", "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesNotVisible",
        ]  # fmt: skip
        found: dict[str, str] = self._call(
            lambda: self._client.current.get_queue_attributes(QueueUrl=url, AttributeNames=names)
        )["Attributes"]
        return found

    def _receive(self, wait: int) -> list[dict[str, Any]]:
        response = self._call(
            lambda: self._client.current.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=_MAX_MESSAGES,
                WaitTimeSeconds=wait,
                VisibilityTimeout=_LEASE_SECONDS,
                AttributeNames=["SentTimestamp", "ApproximateReceiveCount"],
            )
        )
        return list(response.get("Messages", ()))

    def _set_visibility(self, receipts: Sequence[str], seconds: int) -> None:
        def change(entries: list[dict[str, Any]]) -> Any:
            return self._client.current.change_message_visibility_batch(
                QueueUrl=self._url,
                Entries=[{**each, "VisibilityTimeout": seconds} for each in entries],
            )

        self._in_batches(change, receipts)

    def _in_batches(
        self, send: Callable[[list[dict[str, Any]]], Any], receipts: Sequence[str]
    ) -> None:
        """Send receipts in batches of ten; messages that the queue does not know are ignored."""

        def send_batch(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
            response = self._call(lambda: send(entries))
            # The sender is at fault if a receipt has expired: the message was delivered again.
            return [each for each in response.get("Failed", ()) if not each.get("SenderFault")]

        failed = [each for found in self._threads.map(send_batch, _batches(receipts))
                  for each in found]  # fmt: skip
        if failed:
            raise EventSourceFailed(
                f"The queue {self.name} could not change {len(failed)} messages: "
                f"{failed[0].get('Message') or failed[0].get('Code')}."
            )

    def _call(self, request: Callable[[], T]) -> T:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return request()
        except ClientError as problem:
            error = problem.response.get("Error", {})
            raise EventSourceFailed(self._explain(error)) from None
        except (BotoCoreError, StorageFault) as problem:
            text = self._client.mask_secrets(" ".join(str(problem).split())).rstrip(".")
            raise EventSourceFailed(f"The queue {self.name} cannot be used: {text}.") from None

    def _explain(self, error: dict[str, Any]) -> str:
        code, text = str(error.get("Code", "")), str(error.get("Message", "")).rstrip(".")
        if "NonExistentQueue" in code or "QueueDoesNotExist" in code:
            return (
                f"There is no queue {self.name}. Create it with: "
                f"lumos watch setup s3://{self._bucket}"
            )
        text = self._client.mask_secrets(text)
        message = f"The queue {self.name} cannot be used: {text} ({code})."
        return f"{message} Grant {PERMISSIONS}." if "AccessDenied" in code else message


def _batches(receipts: Sequence[str]) -> Iterator[list[dict[str, Any]]]:
    for start in range(0, len(receipts), _MAX_MESSAGES):
        batch = receipts[start : start + _MAX_MESSAGES]
        yield [{"Id": str(number), "ReceiptHandle": each} for number, each in enumerate(batch)]


def _to_received(message: dict[str, Any]) -> ReceivedMessage:
    attributes = message.get("Attributes", {})
    return read_message(
        message["ReceiptHandle"],
        lambda: parse_message(message["Body"]),
        sent_at=int(attributes.get("SentTimestamp", 0)) / 1000 or None,
        delivery=int(attributes.get("ApproximateReceiveCount", 1)),
        id=message.get("MessageId", "a message without id"),
    )
