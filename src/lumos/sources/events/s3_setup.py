"""Sets up the events of an S3 bucket: a queue, its dead-letter queue, and a notification.

S3 stores all notifications of a bucket in one document. Lumos changes only its own entry in this
document, and reads the document again after writing, to detect concurrent changes.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeVar
from urllib.parse import quote_plus, unquote_plus

import msgspec

from lumos.config.sources import S3SourceSettings, SourceSettings
from lumos.errors import MisuseError
from lumos.sources.addresses import section_of
from lumos.sources.events.interface import EventSourceFailed
from lumos.sources.events.setup_report import EventSetupReport, SetupStep
from lumos.sources.events.sqs import default_queue_name
from lumos.storage.errors import StorageFault
from lumos.storage.s3.access import S3Access
from lumos.storage.s3.clients import AwsClient

EVENTS: Final = ("s3:ObjectCreated:*", "s3:ObjectRemoved:*", "s3:LifecycleExpiration:*")
_DEAD_LETTERS: Final = "-dead-letters"
_RETENTION_SECONDS: Final = 14 * 86_400
_MAX_DELIVERIES: Final = 5
_TAG: Final = "lumos:bucket"
_STATEMENT: Final = "LumosS3Events"
# A key in responses of S3 that is not part of the document.
_METADATA: Final = "ResponseMetadata"
SETUP_PERMISSIONS: Final = (
    "s3:GetBucketLocation, s3:GetBucketNotification, s3:PutBucketNotification, sqs:CreateQueue, "
    "sqs:DeleteQueue, sqs:GetQueueUrl, sqs:GetQueueAttributes, sqs:SetQueueAttributes, "
    "sqs:TagQueue and sqs:ListQueueTags"
)

T = TypeVar("T")


def setup_bucket(
    address: str, configured: Sequence[SourceSettings], *, dry_run: bool
) -> EventSetupReport:
    """Create the missing queues and the notification of a bucket or prefix."""
    return _BucketEvents(address, configured, dry_run=dry_run).set_up()


def teardown_bucket(
    address: str, configured: Sequence[SourceSettings], *, dry_run: bool
) -> EventSetupReport:
    """Remove the notification and, if no other notification uses them, the queues."""
    return _BucketEvents(address, configured, dry_run=dry_run).tear_down()


class _BucketEvents:
    """The queues and the notification of one bucket or prefix."""

    def __init__(
        self, address: str, configured: Sequence[SourceSettings], *, dry_run: bool
    ) -> None:
        section = section_of(address, configured) if address.startswith("s3://") else None
        if not isinstance(section, S3SourceSettings):
            raise MisuseError(
                f"'{address}' is not an S3 bucket. Name one: lumos watch setup s3://my-bucket"
            )
        self._bucket = section.buckets[0]
        self._prefix = "".join(f"{each.strip('/')}/" for each in section.prefixes[:1] if each)
        self._dry_run = dry_run
        access = S3Access.of(section)
        endpoint = access.resolve().endpoint_url
        self._s3 = AwsClient("s3", access, endpoint_url=endpoint)
        location = self._call(self._s3, lambda s3: s3.get_bucket_location(Bucket=self._bucket)).get(
            "LocationConstraint"
        )
        # Old buckets have these names for regions.
        region = {None: "us-east-1", "": "us-east-1", "EU": "eu-west-1"}.get(location, location)
        self._sqs = AwsClient("sqs", access, region=str(region))
        self._name = default_queue_name(self._bucket)
        text = f"{self._bucket}\n{self._prefix}".encode()
        self._id = f"lumos-{hashlib.blake2b(text, digest_size=6).hexdigest()}"
        self._steps: list[SetupStep] = []

    def set_up(self) -> EventSetupReport:
        self._check_overlap(self._notifications())
        for name in (self._name, f"{self._name}{_DEAD_LETTERS}"):
            self._check_owner(name)
        dead_letters = self._ensure_queue(f"{self._name}{_DEAD_LETTERS}", "dead-letter queue", {})
        attributes = {
            # The seconds for which a message stays hidden while a watcher processes it; the
            # watcher extends them as needed.
            "VisibilityTimeout": "120",
            "ReceiveMessageWaitTimeSeconds": "20",
            "RedrivePolicy": msgspec.json.encode(
                {"deadLetterTargetArn": dead_letters, "maxReceiveCount": _MAX_DELIVERIES}
            ).decode(),
        }
        queue = self._ensure_queue(self._name, "queue", attributes)
        self._ensure_policy(queue)
        # Others may have changed the notifications meanwhile.
        notifications = self._notifications()
        self._check_overlap(notifications)
        self._ensure_notification(notifications, queue)
        return self._report(queue, notifications)

    def tear_down(self) -> EventSetupReport:
        notifications = self._notifications()
        own = [each for each in _queues(notifications) if each.get("Id") == self._id]
        if own:
            others = [each for each in _queues(notifications) if each.get("Id") != self._id]
            self._put({**notifications, "QueueConfigurations": others})
        self._add_step("notification", self._id, "deleted" if own else "missing")
        url = self._queue_url(self._name)
        queue = self._name if url is None else self._attributes(url)["QueueArn"]
        is_used = any(
            each.get("QueueArn") == queue and each.get("Id") != self._id
            for each in _queues(notifications)
        )
        self._delete_queue(self._name, "queue", is_used=is_used)
        self._delete_queue(f"{self._name}{_DEAD_LETTERS}", "dead-letter queue", is_used=is_used)
        return self._report(queue, notifications)

    def _notifications(self) -> dict[str, Any]:
        found = self._call(
            self._s3, lambda s3: s3.get_bucket_notification_configuration(Bucket=self._bucket)
        )
        return {key: value for key, value in found.items() if key != _METADATA}

    def _check_overlap(self, notifications: dict[str, Any]) -> None:
        """Raise an error for an overlap that S3 rejects, before anything is created."""
        for key in ("QueueConfigurations", "TopicConfigurations", "LambdaFunctionConfigurations"):
            for each in notifications.get(key, ()):
                prefix, suffix = _filter(each)
                families = {name.split(":")[1] for name in each.get("Events", ())}
                has_common_events = not families.isdisjoint(name.split(":")[1] for name in EVENTS)
                has_common_keys = prefix.startswith(self._prefix) or self._prefix.startswith(prefix)
                if each.get("Id") != self._id and has_common_events and has_common_keys:
                    target = (
                        each.get("TopicArn")
                        or each.get("QueueArn")
                        or each.get("LambdaFunctionArn", "")
                    )
                    keys = f"{prefix}*{suffix}"
                    raise EventSourceFailed(
                        f"{self._bucket} already sends events of {keys} to {target}, and S3 sends "
                        "an event to one target only. Send the events to an SNS topic or to "
                        "EventBridge instead, subscribe your own queue there, and set 'sqs_queue' "
                        "to that queue."
                    )

    def _check_owner(self, name: str) -> None:
        """Raise an error if a queue of somebody else has this name."""
        url = self._queue_url(name)
        if url is not None and not self._is_own(url):
            raise EventSourceFailed(
                f"There is already a queue {name} that Lumos did not create for {self._bucket}. "
                f"To let Lumos use and change it, add the tag {_TAG}={self._bucket} to it. "
                "Otherwise let S3 send to a queue of your own, and set 'sqs_queue' to that queue."
            )

    def _is_own(self, url: str) -> bool:
        tags = self._call(self._sqs, lambda sqs: sqs.list_queue_tags(QueueUrl=url)).get("Tags", {})
        return bool(tags.get(_TAG) == self._bucket)

    def _ensure_queue(
        self,
        name: str,
        kind: Literal["queue", "dead-letter queue"],
        attributes: dict[str, str],
    ) -> str:
        """The ARN of a queue, which is created if it is missing."""
        url = self._queue_url(name)
        if url is not None:
            self._add_step(kind, name, "unchanged")
            return self._attributes(url)["QueueArn"]
        self._add_step(kind, name, "created")
        if self._dry_run:
            return name
        wanted = {
            "MessageRetentionPeriod": str(_RETENTION_SECONDS),
            "SqsManagedSseEnabled": "true",
            **attributes,
        }
        url = self._call(
            self._sqs,
            lambda sqs: sqs.create_queue(
                QueueName=name, Attributes=wanted, tags={_TAG: self._bucket}
            ),
        )["QueueUrl"]
        return self._attributes(url)["QueueArn"]

    def _ensure_policy(self, queue: str) -> None:
        """Allow S3 to send events to the queue, only from this bucket."""
        url = self._queue_url(self._name)
        if url is None:
            self._add_step("queue policy", self._name, "created")
            return
        partition, account = queue.split(":")[1], queue.split(":")[4]
        statement = {
            "Sid": _STATEMENT,
            "Effect": "Allow",
            "Principal": {"Service": "s3.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": queue,
            "Condition": {
                "ArnEquals": {"aws:SourceArn": f"arn:{partition}:s3:::{self._bucket}"},
                "StringEquals": {"aws:SourceAccount": account},
            },
        }
        text = self._attributes(url).get("Policy")
        policy: dict[str, Any] = (
            msgspec.json.decode(text) if text else {"Version": "2012-10-17", "Statement": []}
        )
        existing = policy.get("Statement", [])
        # AWS also accepts a single statement without a list.
        existing = existing if isinstance(existing, list) else [existing]
        statements = [each for each in existing if each.get("Sid") != _STATEMENT]
        if statement in existing:
            self._add_step("queue policy", self._name, "unchanged")
            return
        self._add_step("queue policy", self._name, "changed" if text else "created")
        if not self._dry_run:
            document = {**policy, "Statement": [*statements, statement]}
            encoded = msgspec.json.encode(document).decode()
            self._call(
                self._sqs,
                lambda sqs: sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": encoded}),
            )

    def _ensure_notification(self, notifications: dict[str, Any], queue: str) -> None:
        wanted: dict[str, Any] = {"Id": self._id, "QueueArn": queue, "Events": list(EVENTS)}
        if self._prefix:
            # S3 compares with keys in this encoding.
            rule = {"Name": "prefix", "Value": quote_plus(self._prefix, safe="/")}
            wanted["Filter"] = {"Key": {"FilterRules": [rule]}}
        own = [each for each in _queues(notifications) if each.get("Id") == self._id]
        if (own and own[0]["QueueArn"] == queue and set(own[0]["Events"]) == set(EVENTS)
                and _rules(own[0]) == _rules(wanted)):  # fmt: skip
            self._add_step("notification", self._id, "unchanged")
            return
        self._add_step("notification", self._id, "changed" if own else "created")
        others = [each for each in _queues(notifications) if each.get("Id") != self._id]
        self._put({**notifications, "QueueConfigurations": [*others, wanted]})

    def _put(self, notifications: dict[str, Any]) -> None:
        """Write all notifications of the bucket, and check that they exist."""
        if self._dry_run:
            return
        self._call(
            self._s3,
            lambda s3: s3.put_bucket_notification_configuration(
                Bucket=self._bucket, NotificationConfiguration=notifications
            ),
        )
        missing = _ids(notifications) - _ids(self._notifications())
        if missing:
            raise EventSourceFailed(
                f"Another process changed the notifications of {self._bucket} at the same time, "
                f"and these are missing: {', '.join(sorted(missing))}. Check them with: aws s3api "
                f"get-bucket-notification-configuration --bucket {self._bucket}"
            )

    def _queue_url(self, name: str) -> str | None:
        from botocore.exceptions import ClientError

        def find(sqs: Any) -> str | None:
            try:
                return str(sqs.get_queue_url(QueueName=name)["QueueUrl"])
            except ClientError as problem:
                if "NonExistentQueue" in problem.response["Error"]["Code"]:
                    return None
                raise

        return self._call(self._sqs, find)

    def _attributes(self, url: str) -> dict[str, str]:
        found: dict[str, str] = self._call(
            self._sqs,
            lambda sqs: sqs.get_queue_attributes(
                QueueUrl=url, AttributeNames=["QueueArn", "Policy"]
            ),
        )["Attributes"]
        return found

    def _delete_queue(
        self, name: str, kind: Literal["queue", "dead-letter queue"], *, is_used: bool
    ) -> None:
        """Delete a queue that `setup` has created for this bucket."""
        url = self._queue_url(name)
        if url is None:
            self._add_step(kind, name, "missing")
            return
        if is_used or not self._is_own(url):
            self._add_step(kind, name, "kept")
            return
        self._add_step(kind, name, "deleted")
        if not self._dry_run:
            self._call(self._sqs, lambda sqs: sqs.delete_queue(QueueUrl=url))

    def _add_step(self, kind: Any, name: str, status: Any) -> None:
        self._steps.append(SetupStep(kind=kind, name=name, status=status))

    def _report(self, queue: str, notifications: dict[str, Any]) -> EventSetupReport:
        return EventSetupReport(
            address=f"s3://{self._bucket}/{self._prefix}",
            sqs_queue=queue,
            steps=tuple(self._steps),
            dry_run=self._dry_run,
            other_notifications=len(_ids(notifications) - {self._id}),
        )

    def _call(self, client: AwsClient, request: Callable[[Any], T]) -> T:
        try:
            from botocore.exceptions import BotoCoreError, ClientError
        except ImportError:
            raise EventSourceFailed(
                "Setting up events needs botocore: pip install 'lumos[s3]'"
            ) from None
        try:
            return request(client.current)
        except ClientError as problem:
            error = problem.response.get("Error", {})
            code, text = str(error.get("Code", "")), str(error.get("Message", "")).rstrip(".")
            message = f"{problem.operation_name} failed: {client.mask_secrets(text)} ({code})."
            if "Denied" in code or "Forbidden" in code:
                message += f" Grant {SETUP_PERMISSIONS}, or let an administrator run the command."
            raise EventSourceFailed(message) from None
        except (BotoCoreError, StorageFault) as problem:
            text = client.mask_secrets(" ".join(str(problem).split())).rstrip(".")
            raise EventSourceFailed(f"AWS cannot be used: {text}.") from None


def _queues(notifications: dict[str, Any]) -> list[dict[str, Any]]:
    return list(notifications.get("QueueConfigurations", ()))


def _ids(notifications: dict[str, Any]) -> set[str]:
    """The ids of all notifications; the settings of EventBridge have none."""
    return {
        str(each["Id"])
        for entries in notifications.values()
        if isinstance(entries, list)
        for each in entries
        if "Id" in each
    }


def _filter(notification: dict[str, Any]) -> tuple[str, str]:
    """The prefix and suffix of the keys of a notification."""
    rules = _rules(notification)
    return unquote_plus(rules.get("prefix", "")), unquote_plus(rules.get("suffix", ""))


def _rules(notification: dict[str, Any]) -> dict[str, str]:
    rules = notification.get("Filter", {}).get("Key", {}).get("FilterRules", ())
    return {str(rule["Name"]).lower(): str(rule["Value"]) for rule in rules}
