"""The report of `lumos watch setup` and `teardown`."""

from typing import Literal

import msgspec

from lumos.model.report import FORMAT_VERSION, Report

StepStatus = Literal["created", "changed", "unchanged", "deleted", "missing", "kept"]


class SetupStep(msgspec.Struct, frozen=True, kw_only=True):
    """A queue, notification, trigger or schema, and what was done with it."""

    kind: Literal[
        "queue", "dead-letter queue", "queue policy", "notification", "event trigger", "schema"
    ]
    name: str
    status: StepStatus


class EventSetupReport(Report, frozen=True, kw_only=True):
    """The steps of a setup or teardown; `sqs_queue` is the value for the configuration.

    `other_notifications` is the number of unchanged notifications that Lumos did not create.
    """

    format_version: str = FORMAT_VERSION
    address: str
    steps: tuple[SetupStep, ...]
    sqs_queue: str | None = None
    dry_run: bool = False
    other_notifications: int = 0
