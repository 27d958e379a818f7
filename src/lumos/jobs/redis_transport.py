"""Redis Streams: each message wakes one worker of the consumer group.

The length of the stream is limited. A message stays pending until its job has ended; if its worker
vanishes, another worker claims it. While Redis is down, workers poll the registry of jobs.
"""

import logging
import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from lumos.errors import MissingDependency
from lumos.jobs.transport import STEP_SECONDS, JobMessage, JobTransport

_log = logging.getLogger(__name__)
_GROUP: Final = "workers"
_MAX_LENGTH: Final = 10_000
_TIMEOUT_SECONDS: Final = 5
# The maximum number of messages to send at once: more workers than this are unlikely.
_MAX_MESSAGES_AT_ONCE: Final = 1_000


class RedisTransport(JobTransport):
    """Messages in one stream, read by the consumer group `workers`."""

    def __init__(self, url: str, *, stream: str, idle_seconds: float, poll_seconds: float) -> None:
        try:
            import redis
        except ModuleNotFoundError:
            raise MissingDependency("The transport redis", "redis", "redis") from None
        self._errors = (redis.RedisError, OSError)
        self._redis: Any = redis.Redis.from_url(
            url,
            protocol=2,
            socket_timeout=_TIMEOUT_SECONDS,
            socket_connect_timeout=_TIMEOUT_SECONDS,
        )
        self._response_error = redis.ResponseError
        self._stream = stream
        self._idle_milliseconds = int(idle_seconds * 1000)
        self._poll_seconds = poll_seconds
        self._consumer = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._is_down = False

    def announce(self, jobs: int = 1) -> None:
        with self._tolerate_errors():
            pipeline = self._redis.pipeline(transaction=False)
            for _ in range(min(jobs, _MAX_MESSAGES_AT_ONCE)):
                pipeline.xadd(self._stream, {"ready": "1"}, maxlen=_MAX_LENGTH, approximate=True)
            pipeline.execute()

    def wait(self, seconds: float, stop: threading.Event) -> JobMessage | None:
        left = seconds
        while left > 0 and not stop.is_set():
            step = min(left, STEP_SECONDS)
            with self._tolerate_errors() as has_responded:
                message = self._claim_idle() or self._read(step)
                if message is not None:
                    return message
            if not has_responded():
                stop.wait(min(left, self._poll_seconds))
                return None
            left -= step
        return None

    def close(self) -> None:
        with self._tolerate_errors():
            # Do not delete a consumer with pending messages, so that others can claim these.
            pending = self._in_group(
                self._redis.xpending_range,
                self._stream,
                _GROUP,
                "-",
                "+",
                1,
                consumername=self._consumer,
            )
            if not pending:
                self._redis.xgroup_delconsumer(self._stream, _GROUP, self._consumer)
        self._redis.close()

    def pending(self) -> int:
        """The number of messages that were delivered but not settled yet."""
        return int(self._in_group(self._redis.xpending, self._stream, _GROUP)["pending"])

    def _claim_idle(self) -> JobMessage | None:
        """Claim a message whose worker has not responded for the duration of a lease."""
        _, messages, *_ = self._in_group(
            self._redis.xautoclaim,
            self._stream,
            _GROUP,
            self._consumer,
            self._idle_milliseconds,
            count=1,
        )
        return RedisMessage(self, messages[0][0]) if messages else None

    def _read(self, seconds: float) -> JobMessage | None:
        streams = self._in_group(
            self._redis.xreadgroup,
            _GROUP,
            self._consumer,
            {self._stream: ">"},
            count=1,
            block=max(1, int(seconds * 1000)),
        )
        if not streams:
            return None
        ((_stream, messages),) = streams
        return RedisMessage(self, messages[0][0])

    def _in_group(self, command: Any, *args: Any, **options: Any) -> Any:
        """Run a command of the consumer group, and create the group if Redis lost it."""
        try:
            return command(*args, **options)
        except self._response_error as problem:
            if "NOGROUP" not in str(problem):
                raise
        try:
            self._redis.xgroup_create(self._stream, _GROUP, id="0", mkstream=True)
        except self._response_error as problem:
            if "BUSYGROUP" not in str(problem):
                raise
        return command(*args, **options)

    def acknowledge(self, id: Any) -> None:
        """Remove a message."""
        with self._tolerate_errors():
            pipeline = self._redis.pipeline(transaction=True)
            pipeline.xack(self._stream, _GROUP, id)
            pipeline.xdel(self._stream, id)
            pipeline.execute()

    def keep(self, id: Any) -> None:
        """Reset the idle time of a message."""
        with self._tolerate_errors():
            self._redis.xclaim(self._stream, _GROUP, self._consumer, 0, [id], justid=True)

    @contextmanager
    def _tolerate_errors(self) -> Iterator[Any]:
        """If Redis does not respond, log it once and continue.

        Yields a function that returns whether Redis has responded.
        """
        has_responded = True
        try:
            yield lambda: has_responded
        except self._errors as problem:
            has_responded = False
            if not self._is_down:
                # Messages of the library do not contain the password of the URL.
                _log.warning("Redis does not respond (%s); jobs are polled.", problem)
            self._is_down = True
        else:
            if self._is_down:
                _log.warning("Redis responds again.")
            self._is_down = False


class RedisMessage(JobMessage):
    """A message in the stream that was delivered to this worker."""

    def __init__(self, transport: RedisTransport, id: Any) -> None:
        self._transport = transport
        self._id = id

    def refresh(self) -> None:
        self._transport.keep(self._id)

    def settle(self) -> None:
        self._transport.acknowledge(self._id)
